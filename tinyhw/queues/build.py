"""A queue's words as a Python program: a verb for each declared packet or method, memory by name.

    q = QueueProgram("sdma")
    source, target = q.buffer("source", b"0123456789abcdef"), q.buffer("target", 16)
    q.SDMA_PKT_COPY_LINEAR(count=15, src_addr=source, dst_addr=target)
    assert q.run(Device["AMD"].runtime)["target"] == b"0123456789abcdef"

Verbs and fields are the declarations' own, of `pm4`, `sdma`, `aql` or, for a `pushbuffer`, of the class that is named
and of the host engine's; values of an enum go by their names. What is not declared goes by `words`. The program is text
in source form (`source`), with its buffers as labels, and so words. A device is handed in: a mock's or a card's.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Final, Protocol

from tinyhw.autogen import nv_c56f as host
from tinyhw.core.errors import EncodeError, InvalidArgument
from tinyhw.core.layout import Method
from tinyhw.queues import source
from tinyhw.queues.amd import text as amd
from tinyhw.wire import aql, methods

KINDS: Final = ("pm4", "sdma", "aql", "pushbuffer")
_GENERATIONS: Final = (9, 11, 12)
_COPY_CLASS: Final = 0xB5  # the low byte of a copy class
_COMPUTE, _COPY = 1, 4     # the subchannels that classes stand on (`nv.stream.NvState.class_of`)
_WORD: Final = 0xFFFFFFFF
_APART: Final = 256        # bytes: what a QMD wants, which wants most


@dataclass(frozen=True)
class Address:
  """A buffer's address, which is known when the program runs. `+` goes on in it; `low` and `high` are its halves."""
  name: str
  offset: int = 0
  shift: int = 0
  mask: int = -1

  def __add__(self, count: int) -> Address: return replace(self, offset=self.offset + count)
  def __rshift__(self, bits: int) -> Address: return replace(self, shift=self.shift + bits)

  @property
  def low(self) -> Address:
    """Bits 31 to 0."""
    return replace(self, mask=_WORD)

  @property
  def high(self) -> Address:
    """The bits above 31."""
    return self >> 32

  def value(self, addresses: Mapping[str, int]) -> int:
    """The number, where buffers lie there."""
    if self.name not in addresses: raise InvalidArgument(f"nobody says where {self.name} lies", where="queue program")
    whole = addresses[self.name] + self.offset
    return (whole & self.mask if self.mask >= 0 else whole) >> self.shift


Value = int | str | Address | Sequence[int | Address]


class Runs(Protocol):
  """A device that takes words: a runtime of `drive`, which is handed in. Its methods are described there."""

  def alloc_for_words(self, nbytes: int) -> Any: ...
  def free(self, allocation: Any) -> None: ...
  def copyin(self, dst: Any, data: memoryview) -> None: ...
  def copyout(self, dst: memoryview, src: Any) -> None: ...
  def submit_words(self, words: Sequence[int], copies: bool) -> int: ...
  def synchronize(self) -> None: ...


class QueueProgram:
  """See the module. `kind` is one of `KINDS`; a pushbuffer names the class that its methods go to, PM4 and SDMA the
  generation of AMD's graphics core (9, 11, 12; 0: gfx11). Raises InvalidArgument."""

  def __init__(self, kind: str, class_id: int = 0) -> None:
    if kind not in KINDS: raise InvalidArgument(f"no queue is of kind {kind!r}", hint=f"there are {', '.join(KINDS)}")
    known = methods.CLASS_IDS if kind == "pushbuffer" else (0, *_GENERATIONS) if kind in ("pm4", "sdma") else (0,)
    if class_id not in known:
      raise InvalidArgument(f"a {kind} with class {class_id:#x}", where="queue program",
                            hint="a pushbuffer wants a compute or copy class; pm4 and sdma may have a generation")
    self.kind, self.class_id = kind, class_id
    self.copies = kind == "sdma" or class_id & 0xFF == _COPY_CLASS
    self._buffers: dict[str, bytes] = {}
    self._lines: list[Callable[[Mapping[str, int]], str]] = []
    self._verbs = _verbs(kind, class_id)

  def buffer(self, name: str, content: bytes | int) -> Address:
    """Memory of the device: its content, or how many bytes of zeros. Raises InvalidArgument for a name that is taken.
    """
    if name in self._buffers or not name.isidentifier():
      raise InvalidArgument(f"a buffer cannot be called {name!r}", where="queue program")
    self._buffers[name] = bytes(content)
    return Address(name)

  def words(self, *given: int | Address) -> QueueProgram:
    """Dwords as they are."""
    self._lines.append(lambda at: ".words " + " ".join(_shown(v, at) for v in given))
    return self

  def __dir__(self) -> list[str]: return [*super().__dir__(), *self._verbs]

  def __getattr__(self, name: str) -> Callable[..., QueueProgram]:
    verbs: dict[str, Any] = self.__dict__.get("_verbs", {})
    if name not in verbs:
      near = get_close_matches(name, verbs, 3)
      raise AttributeError(f"no packet of {self.__dict__.get('kind')} is called {name}"
                           + (f"; there are {', '.join(near)}" if near else ""), name=name, obj=self)
    def verb(value: int | Address | None = None, /, **fields: Value) -> QueueProgram:
      """Put the packet behind the others; a method also by its whole value."""
      self._lines.append(self._line(verbs[name], value, fields))
      return self
    return verb

  def _line(self, declared: Any, value: int | Address | None,
            fields: Mapping[str, Value]) -> Callable[[Mapping[str, int]], str]:
    name, known = declared.__name__, _fields(declared)
    if wrong := next((f for f in fields if f not in known), None):
      near = get_close_matches(wrong, known, 3)
      raise EncodeError("no such field", where=f"{name}.{wrong}", hint=f"there is {', '.join(near)}" if near else None)
    for f in getattr(declared, "FIELDS", ()):
      if isinstance(named := fields.get(f.name), str) and (f.enum is None or named not in f.enum.__members__):
        there = f"it has {', '.join(f.enum.__members__)}" if f.enum is not None else "it takes numbers"
        raise EncodeError(f"no value is called {named!r}", where=f"{name}.{f.name}", hint=there)
    if not issubclass(declared, Method):
      if value is not None: raise EncodeError("a packet is given by its fields", where=name)
      return lambda at: f"{name}({', '.join(f'{f}={_shown(v, at)}' for f, v in fields.items())})"
    head = f"INCR {_COPY if self.copies else _COMPUTE}\n  "
    if value is not None:
      whole = value
      return lambda at: f"{head}{declared.OFFSET:#x} = {_shown(whole, at)}"
    owner = "" if declared.OFFSET >= methods.HOST_END else f"{host.NAME}."
    owner = owner or f"{methods.declared(self.class_id).NAME}."
    return lambda at: f"{head}{owner}{name}({', '.join(f'{f}={_shown(v, at)}' for f, v in fields.items())})"

  def source(self, addresses: Mapping[str, int]) -> str:
    """Its text (`tinyhw assemble` reads it), where buffers lie there."""
    head = [f".kind {self.kind}", *([f".class {self.class_id:#x}"] if self.class_id else [])]
    return "\n".join([*head, *(line(addresses) for line in self._lines), ""])

  def encode(self, addresses: Mapping[str, int]) -> list[int]:
    """Its words, where buffers lie there. Raises DecodeError or EncodeError that name the line."""
    return source.assemble(self.source(addresses), "queue program").words

  def run(self, device: Runs) -> dict[str, bytes]:
    """Run it on a device, behind all work that it has; the buffers' bytes when it is done. Raises what the device
    raises, and InvalidArgument for AQL, which no runtime of ours has a queue for."""
    if self.kind == "aql": raise InvalidArgument("no runtime has an AQL queue", where="queue program",
                                                 hint="encode() gives its words")
    places, memory = dict[str, int](), bytearray()
    for name, content in self._buffers.items():
      places[name] = len(memory)
      memory += content + bytes(-len(content) % _APART)
    held = device.alloc_for_words(len(memory) or _APART)
    try:
      if memory: device.copyin(held, memoryview(memory))
      device.submit_words(self.encode({name: int(held.address) + at for name, at in places.items()}), self.copies)
      device.synchronize()
      if memory: device.copyout(memoryview(memory), held)
    finally: device.free(held)
    return {name: bytes(memory[at:at + len(self._buffers[name])]) for name, at in places.items()}


def _verbs(kind: str, class_id: int) -> dict[str, Any]:
  """What a queue takes, by name."""
  if kind == "pm4": return {cls.__name__: cls for cls in amd.declared(class_id).packets}
  if kind == "sdma": return {cls.__name__: cls for cls in amd.copies(class_id).packets}
  if kind == "aql": return {cls.__name__: cls for cls in aql.KINDS.values()}
  own = [method for method in methods.declared(class_id).METHODS if method.OFFSET >= methods.HOST_END]
  return {method.__name__: method for method in (*host.METHODS, *own)}


def _fields(declared: Any) -> list[str]:
  if hasattr(declared, "FIELDS"): return [f.name for f in declared.FIELDS] + ([declared.REST] if declared.REST else [])
  return [str(row[0]) for row in declared._fields_]


def _shown(value: Value, addresses: Mapping[str, int]) -> str:
  if isinstance(value, Address): return hex(value.value(addresses))
  if isinstance(value, str): return value
  if isinstance(value, int): return hex(value)
  return f"({', '.join(_shown(v, addresses) for v in value)})"
