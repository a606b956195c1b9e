"""PyTorch's checkpoints, as `torch.save` writes them: zip archives since 1.6, and the stream of pickles before.

Nothing in a checkpoint runs (`pickled`): containers, numbers, texts and tensors come out, everything else is refused
by its name. Source: the formats are told in PyTorch's documentation, "Serialization semantics", and seen in files.
"""
from __future__ import annotations

import math
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Final

from tinyhw.core.errors import Unsupported
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.nn.formats.pickled import Machine, Named
from tinyhw.nn.formats.source import Data, File, shown, tensor
from tinyhw.tensor.tensor import Tensor

MAGIC: Final = 0x1950A86A20F9469CFC6C  # the first value of the older format
PROTOCOL: Final = 1001                 # the second
STORAGES: Final = {"DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16",
                   "BFloat16Storage": "bfloat16", "LongStorage": "int64", "IntStorage": "int32",
                   "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "bool",
                   "UntypedStorage": "uint8"}
NAMES: Final = {"float64": "float64", "double": "float64", "float32": "float32", "float": "float32",
                "float16": "float16", "half": "float16", "bfloat16": "bfloat16", "int64": "int64", "long": "int64",
                "int32": "int32", "int": "int32", "int16": "int16", "short": "int16", "int8": "int8", "uint8": "uint8",
                "uint16": "uint16", "uint32": "uint32", "uint64": "uint64", "bool": "bool",
                "float8_e4m3fn": "float8_e4m3fn", "float8_e5m2": "float8_e5m2",
                "float8_e4m3fnuz": "float8_e4m3fnuz", "float8_e5m2fnuz": "float8_e5m2fnuz"}


@dataclass(eq=False)
class _Storage:
  """Memory that tensors are views of; `raw` is known once the file's end was read."""
  dtype: DType
  count: int
  key: str
  raw: memoryview = field(default_factory=lambda: memoryview(b""))


@dataclass(eq=False)
class _View:
  """A tensor: elements of a storage from `offset` on, each axis a stride apart, in elements."""
  storage: _Storage
  offset: int
  shape: tuple[int, ...]
  strides: tuple[int, ...]
  dtype: DType
  requires_grad: bool = False


class _Reader:
  """One checkpoint: what its names mean, and its storages."""

  def __init__(self, file: File, device: str | None) -> None:
    self.file, self.device = file, device
    self.storages: dict[str, _Storage] = {}
    self.made: dict[int, tuple[Any, Any]] = {}  # id of what was read -> it, and what it became
    self.calls: dict[str, Callable[..., Any]] = {
      "collections.OrderedDict": self.ordered,
      "torch._utils._rebuild_tensor_v2": self.view,
      "torch._utils._rebuild_tensor": self.view,
      "torch._utils._rebuild_tensor_v3": self.typed_view,
      "torch._utils._rebuild_parameter": self.parameter,
      "torch.Size": lambda sizes=(): tuple(sizes),
      "torch.device": lambda *where: ":".join(map(str, where)),
      "builtins.set": lambda items=(): set(items), "__builtin__.set": lambda items=(): set(items),
      "_codecs.encode": self.encoded,
    }

  def refused(self, named: Named) -> Unsupported:
    """The error for a name that is no tensor's."""
    return Unsupported("object in a checkpoint", str(named), where=self.file.name,
                       hint="only containers, numbers, texts and tensors are read: save model.state_dict() instead")

  def call(self, named: Named, arguments: tuple[Any, ...]) -> Any:
    """What a pickle's call gives."""
    if (known := self.calls.get(str(named))) is None: raise self.refused(named)
    return known(*arguments)

  def ordered(self, *items: Any) -> dict[Any, Any]:
    """An OrderedDict, empty or of a list of pairs."""
    if items not in ((), ([],)): raise ValueError("an OrderedDict with contents of its own")
    return {}

  def encoded(self, text: str, encoding: str) -> bytes:
    """Bytes, which older pickles write as text."""
    if encoding != "latin1": raise ValueError(f"text encoded as {encoding!r}")
    return text.encode("latin1")

  def dtype(self, named: Any) -> DType:
    """The type of a storage class (`torch.FloatStorage`) or of a dtype (`torch.float32`)."""
    if not isinstance(named, Named): raise ValueError("a storage without a type")
    ours = STORAGES.get(named.name) or NAMES.get(named.name) if named.module in ("torch", "torch.storage") else None
    if ours is None or not isinstance(dtype := getattr(dtypes, ours, None), DType): raise self.refused(named)
    return dtype

  def persistent(self, key: Any) -> _Storage:
    """The storage of a persistent id."""
    if not isinstance(key, tuple) or len(key) < 5 or key[0] != "storage": raise ValueError("an id of no storage")
    _, kind, name, _, count, *view = key
    if view and view[0] is not None: raise Unsupported("checkpoint", "a storage that is a view of another",
                                                       where=self.file.name)
    if not isinstance(name, str) or type(count) is not int or count < 0 or count >> 63:
      raise ValueError("a storage without a size")
    return self.storages.setdefault(name, _Storage(self.dtype(kind), count, name))

  def view(self, storage: Any, offset: Any, shape: Any, strides: Any, requires_grad: Any = False, *rest: Any) -> _View:
    """A tensor of its storage's type."""
    if not isinstance(storage, _Storage): raise ValueError("a tensor of no storage")
    return self.typed_view(storage, offset, shape, strides, requires_grad, rest[:1], storage.dtype)

  def typed_view(self, storage: Any, offset: Any, shape: Any, strides: Any, requires_grad: Any, hooks: Any,
                 dtype: Any, *rest: Any) -> _View:
    """A tensor of a type that its storage does not have."""
    if not isinstance(storage, _Storage) or not isinstance(shape, tuple) or not isinstance(strides, tuple):
      raise ValueError("a tensor without storage, shape or strides")
    if len(shape) != len(strides) or any(type(n) is not int or n < 0 or n >> 63
                                          for n in (offset, *shape, *strides)):
      raise ValueError(f"a tensor of shape {shown(shape)}, strides {shown(strides)}, offset {shown(offset)}")
    return _View(storage, offset, shape, strides, dtype if isinstance(dtype, DType) else self.dtype(dtype),
                 bool(requires_grad))

  def parameter(self, data: Any, requires_grad: Any = True, *rest: Any) -> _View:
    """A tensor that learns."""
    if not isinstance(data, _View): raise ValueError("a parameter of no tensor")
    data.requires_grad = bool(requires_grad)
    return data

  def tensor(self, view: _View) -> Tensor:
    """The tensor, its elements in row-major order."""
    import numpy as np
    width, raw = view.dtype.itemsize, view.storage.raw
    last = view.offset + sum((n - 1) * s for n, s in zip(view.shape, view.strides))
    if 0 in view.shape: raw = memoryview(b"")
    elif (last + 1) * width > raw.nbytes:
      raise self.file.damaged(f"a tensor of shape {view.shape} and strides {view.strides} reaches element {last}, and "
                              f"storage {view.storage.key!r} has {raw.nbytes // width}")
    elif math.prod(view.shape) * width > raw.nbytes:
      if 0 not in view.strides: raise self.file.damaged(f"elements of shape {view.shape}, {view.strides} overlap")
      # An expanded tensor: its elements are told once, and may be more than memory holds.
      axes = tuple(1 if s == 0 else n for n, s in zip(view.shape, view.strides))
      return self.tensor(_View(view.storage, view.offset, axes, view.strides, view.dtype)).expand(view.shape)
    else:
      words = np.frombuffer(raw, f"u{width}", count=last + 1 - view.offset, offset=view.offset * width)
      strides = tuple(s * width for s in view.strides)
      raw = np.ascontiguousarray(np.lib.stride_tricks.as_strided(words, view.shape, strides)).reshape(-1).data.cast("B")
    made = tensor(raw, view.dtype, view.shape, self.device)
    return made.requires_grad_() if view.requires_grad and view.dtype.is_float else made

  def finished(self, value: Any) -> Any:
    """The value with its tensors made; one that stands in several places is one."""
    if isinstance(value, Named): raise self.refused(value)
    if not isinstance(value, (dict, list, tuple, _View, _Storage)): return value
    if (known := self.made.get(id(value))) is not None: return known[1]
    if isinstance(value, tuple):
      done = tuple(self.finished(v) for v in value)
      self.made[id(value)] = value, done
      return done
    if isinstance(value, _Storage): raise Unsupported("object in a checkpoint", "a storage without a tensor",
                                                      where=self.file.name)
    if isinstance(value, _View):
      self.made[id(value)] = value, (made := self.tensor(value))
      return made
    self.made[id(value)] = value, value
    places = list(value) if isinstance(value, dict) else range(len(value))
    for i in places: value[i] = self.finished(value[i])
    return value

  def machine(self, data: bytes | memoryview) -> Machine:
    """The reader of this checkpoint's pickles."""
    return Machine(BytesIO(data), self.file.name, self.call, self.persistent)

  def zipped(self) -> Any:
    """The value of an archive."""
    try: archive = zipfile.ZipFile(BytesIO(self.file.data))
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
      raise self.file.damaged(f"a damaged zip archive: {error}") from None
    with archive:
      pickle = next((n for n in archive.namelist() if n == "data.pkl" or n.endswith("/data.pkl")), None)
      if pickle is None:
        if any(n.endswith("constants.pkl") for n in archive.namelist()):
          raise Unsupported("checkpoint", "TorchScript archive", where=self.file.name)
        raise self.file.damaged("an archive without data.pkl", hint="is it a checkpoint of torch.save?")
      folder = pickle[:-len("data.pkl")]
      order = self.member(archive, folder + "byteorder") if folder + "byteorder" in archive.namelist() else b"little"
      if bytes(order).strip() != b"little": raise Unsupported("checkpoint", "big-endian storages", where=self.file.name)
      value = self.machine(self.member(archive, pickle)).read()
      for storage in self.storages.values():
        storage.raw = self.sized(storage, self.member(archive, f"{folder}data/{storage.key}"))
      return self.complete(value)

  def member(self, archive: zipfile.ZipFile, name: str) -> memoryview:
    """The bytes of one member; torch compresses none, so that no small file grows without bound."""
    try:
      info = archive.getinfo(name)
      if info.compress_type != zipfile.ZIP_STORED: raise self.file.damaged(f"{name} is compressed")
      return memoryview(archive.read(info))
    except KeyError: raise self.file.damaged(f"the archive has no {name}") from None
    except (zipfile.BadZipFile, EOFError, RuntimeError, ValueError) as error:
      raise self.file.damaged(f"{name}: {error}") from None

  def sized(self, storage: _Storage, raw: memoryview) -> memoryview:
    """The bytes, which must be all that the storage has."""
    if raw.nbytes != storage.count * storage.dtype.itemsize:
      raise self.file.damaged(f"storage {storage.key!r} has {raw.nbytes:,} bytes, and {storage.count:,} of "
                              f"{storage.dtype.name} are told of")
    return raw

  def streamed(self) -> Any:
    """The value of the older format: pickles of magic, version, system and value, the keys, then the storages."""
    machine = self.machine(self.file.data)
    if machine.read() != MAGIC:
      raise self.file.damaged("neither a zip archive nor the older format", hint="is it a checkpoint of torch.save?")
    if (version := machine.read()) != PROTOCOL: raise Unsupported("checkpoint version", shown(version),
                                                                  where=self.file.name)
    system = machine.read()
    if not isinstance(system, dict) or system.get("little_endian") is not True:
      raise Unsupported("checkpoint", "big-endian storages", where=self.file.name)
    value, keys = machine.read(), machine.read()
    if not isinstance(keys, list) or not all(isinstance(k, str) and k in self.storages for k in keys):
      raise self.file.damaged("the list of storages names one that no tensor has")
    at = machine.stream.tell()
    for key in keys:
      storage = self.storages[key]
      count = int.from_bytes(self.file.cut(at, 8, f"the size of storage {key!r}"), "little")
      if count != storage.count:
        raise self.file.damaged(f"storage {key!r} has {count:,} elements, not {storage.count:,}")
      size = count * storage.dtype.itemsize
      storage.raw = self.file.cut(at + 8, size, f"storage {key!r}")
      at += 8 + size
    if missing := [s.key for s in self.storages.values() if s.count and not s.raw.nbytes]:
      raise self.file.damaged(f"storage {missing[0]!r} is not in the file")
    return self.complete(value)

  def complete(self, value: Any) -> Any:
    """The value with its tensors; nesting that Python could not follow is damage."""
    try: return self.finished(value)
    except RecursionError: raise self.file.damaged("values nested too deeply") from None


def read(source: Data, device: str | None = None) -> Any:
  """What `torch.save` was given: containers, numbers, texts, and tensors on a device. Nothing in the file runs.

  Tensors that shared memory have memory of their own.
  """
  file = File.of(source)
  if sys.byteorder != "little": raise Unsupported("host", "big-endian")
  reader = _Reader(file, device)
  return reader.zipped() if bytes(file.data[:4]) == b"PK\x03\x04" else reader.streamed()


