"""`Tensor`: values on a device, computed lazily by kernels that the compiler makes.

A tensor holds a graph of UOps. Its value is computed when it is asked for (`numpy`, `tolist`, `item`,
`realize`), by programs that run on its device; NumPy only carries data in and out. The functions live in
`tinyhw.function`.

Tensors are values. `assign` gives a tensor new memory and leaves what was computed from the old
value alone. So no launch reads memory that it writes, and there is no order of reads and writes to
get wrong. Every function gives a tensor of its own; `cast`, `to` and `positive` alone may give the
tensor itself.
"""
from __future__ import annotations

import functools
import itertools
import math
import struct
import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.core.locks import GRADIENTS, shared_lock
from tinyhw.devices import watch
from tinyhw.devices.buffer import BorrowedBuffer, ByNode, buffer_of, new_node
from tinyhw.devices.registry import STORAGE, Device
from tinyhw.drive.base import host_memory
from tinyhw.drive.storage import DiskRuntime
from tinyhw.engine.loops import repeated
from tinyhw.engine.realize import (
  copied,
  element_of_constant,
  history_forgotten,
  home,
  lost_below,
  memory_of,
  placed_among,
  realize,
  realize_nodes,
  shares,
)
from tinyhw.function.core import ConstType, grad_enabled, learning, living, remembering
from tinyhw.function.gradient import carries_gradient, gradients
from tinyhw.function.inplace import InPlace
from tinyhw.function.views import Clock, Detached, Indexed, View, above, same_index, stale, values
from tinyhw.ir import semantics
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.group import cut_axis, is_group, members
from tinyhw.ir.ops import Ops
from tinyhw.ir.size import worth
from tinyhw.ir.uop import UOp
from tinyhw.tensor.conversion import exchanged, nested, node_of

if TYPE_CHECKING:
  from collections.abc import Sequence

  import numpy as np

  NDArray = np.ndarray[Any, np.dtype[Any]]

DTypeLike = DType | str | None
_accumulating = shared_lock(GRADIENTS)
_retaining: weakref.WeakSet[Tensor] = weakref.WeakSet()  # results that gradients are left in
_former: ByNode[weakref.ref[Tensor]] = ByNode()  # leaves that learn, by what stood for them before another value


def _dtype(dtype: DTypeLike) -> DType | None:
  return dtypes.named(dtype) if isinstance(dtype, str) else dtype


def _check_leaves(chain: list[tuple[View, Tensor | None]]) -> None:
  """Raises InvalidArgument where a change of a view would reach a leaf that learns."""
  for view, whole in chain:
    if not view.tracks: return
    if whole is not None and whole.requires_grad and whole.is_leaf:
      raise InvalidArgument("a change in place of a view of a leaf that requires a gradient",
                            hint="change a copy (`contiguous()`), or use `with Tensor.no_grad()`")


class Tensor(InPlace):
  """A value of some shape and dtype on a device.

  `data` is a number, nested lists, a NumPy array or scalar, bytes (dtype uint8 unless told), the path of a file (its
  bytes, on DISK unless told), a Variable, another Tensor, or None for an empty tensor. Python floats become float32,
  ints int32, bools bool; NumPy data keeps its type.
  """
  __slots__ = ()
  _steps = staticmethod(repeated)

  def __init__(self, data: Any = None, device: str | Sequence[str] | None = None, dtype: DTypeLike = None,
               requires_grad: bool | None = None):
    self._grad, self._learns, self.is_leaf = None, None, True
    self._live(node_of(data, Device.canonicalize(device), _dtype(dtype), device is None, Tensor))
    if requires_grad is not None: self.requires_grad_(requires_grad)

  # *** data of others ***

  @classmethod
  def from_numpy(cls, array: Any, device: str | None = None) -> Tensor:
    """A copy of a NumPy array."""
    return cls(array, device=device)

  @classmethod
  def frombuffer(cls, buffer: Any, dtype: DTypeLike = None, count: int = -1, offset: int = 0,
                 device: str | None = None) -> Tensor:
    """A copy of `count` elements (all, for -1) of what has a buffer, from so many bytes on, as a vector."""
    raw, kind = memoryview(buffer).cast("B"), _dtype(dtype) or dtypes.default_float
    if not 0 <= offset <= raw.nbytes: raise InvalidArgument(f"{offset} bytes into a buffer of {raw.nbytes}")
    end = raw.nbytes if count < 0 else offset + count * kind.itemsize
    if end > raw.nbytes: raise InvalidArgument(f"{count} elements of {kind} from byte {offset} on of {raw.nbytes}")
    return cls(raw[offset:end], device=device, dtype=kind)

  @classmethod
  def from_blob(cls, ptr: int, shape: int | Sequence[int], dtype: DTypeLike = None, device: str | None = None,
                requires_grad: bool | None = None) -> Tensor:
    """Memory of this process at an address as a tensor on one of the host's devices: nothing is copied, so it must stay
    for as long as the tensor is used. What is written there later is seen by what is computed later;
    whether a change of the tensor is written there is not said."""
    sizes, name, kind = (shape,) if isinstance(shape, int) else tuple(shape), Device.canonicalize(device), _dtype(dtype)
    kind = kind or dtypes.default_float
    if min(sizes, default=1) < 0: raise InvalidArgument(f"a tensor of shape {sizes}")
    if not math.prod(sizes): return cls.empty(sizes, device=name, dtype=kind, requires_grad=requires_grad)
    made = cls._wrap(new_node(BorrowedBuffer(name, math.prod(sizes), kind, ptr)).reshape(sizes))
    return made if requires_grad is None else made.requires_grad_(requires_grad)

  @classmethod
  def from_dlpack(cls, data: Any, device: str | None = None) -> Tensor:
    """A copy of any array in host memory that speaks DLPack (`__dlpack__`)."""
    return cls._wrap(exchanged(data, Device.canonicalize(device)))

  def __dlpack__(self, **options: Any) -> Any:
    """The value's copy in host memory as a DLPack capsule."""
    return self.numpy().__dlpack__(**options)

  def __dlpack_device__(self) -> tuple[int, int]: return (1, 0)     # kDLCPU

  # *** value out ***

  def realize(self, *others: Tensor) -> Tensor:
    """Compute the value now (with the others' in one schedule), unless it is there; and what it is a view of, where
    that has changed with it. Returns this."""
    for t in (self, *others):
      if (view := t._view) is not None and view.wrote:
        for part, whole in above(view):
          part.wrote = False
          if whole is not None: others = (*others, whole)
    realize(self, *others)
    return self

  def contiguous(self, arg: Any = None, memory_format: Any = None) -> Tensor:
    made = super().contiguous(arg, memory_format)
    shares(made._uop, self._uop)
    return made

  def clone(self, device: str | Sequence[str] | None = None) -> Tensor:
    """A copy in memory of its own, on another device if told."""
    copy = super(Tensor, self if device is None else self.to(device)).contiguous()  # not shared with this
    if copy.is_leaf and copy.dtype.is_float and _constant(copy._uop): copy.uop = copy._uop.apart()
    return copy

  def _read(self, out: memoryview[Any]) -> None:
    """Fill host memory of the value's size; the one way out of a device."""
    if (watcher := watch.watching()) is not None: watcher.to_host(self)
    if is_group(self._device):
      with watch.watched(None): self.detach().to(self.devices[0])._read(out)
    elif out.nbytes and _stored(self) and home(self._uop) is None:      # a part, or in another order
      with watch.watched(None): self.detach().to("LLVM")._read(out)
    elif out.nbytes and (one := element_of_constant(self._uop)) is not None:
      _ = Device[str(self._device)]                                     # one that is none is told
      out.cast("B")[:] = one * (out.nbytes // len(one))
    elif out.nbytes: memory_of(self).copyout(out.cast("B"))

  def _wide(self, read: str) -> Any:
    """The value as float32, read in one of the ways: Python and NumPy have no such type."""
    if (watcher := watch.watching()) is not None: watcher.to_host(self)
    with watch.watched(None): return getattr(self.detach().float(), read)()

  def data(self) -> memoryview[Any]:
    """A copy of the memory, as a memoryview of this shape (floats of 8 and 16 bits as unsigned integers)."""
    shape, nbytes = self._worth()
    with host_memory("host memory of a value", nbytes): raw = bytearray(nbytes)
    self._read(memoryview(raw))
    # memoryview knows no floats of 8 and 16 bits.
    small = {8: "B", 16: "H"}.get(self.dtype.bits) if self.dtype.is_float else None
    letter: Any = small or semantics.FORMATS[self.dtype.name]
    view: memoryview[Any] = memoryview(raw)
    return view.cast(letter, shape) if raw else view.cast(letter)      # a memoryview has no shape with a 0 in it

  def _worth(self) -> tuple[tuple[int, ...], int]:
    """The shape in numbers, also where launches decide it, and the bytes of the value."""
    shape = tuple(worth(size) for size in self.shape)
    return shape, math.prod(shape) * self.dtype.itemsize

  def numpy(self, *, force: bool = True) -> NDArray:
    """The value as a new NumPy array (what NumPy has not, such as bfloat16, as float32). It is always a copy from
    wherever the value is, as PyTorch has it by `force`."""
    import numpy
    if self.dtype.bits_type is not None: return cast("NDArray", self._wide("numpy"))
    shape, nbytes = self._worth()
    with host_memory("host memory of a value", nbytes): out = numpy.empty(shape, self.dtype.numpy)
    self._read(out.reshape(-1).data)
    return out

  def tolist(self) -> Any:
    """The value as nested lists of Python numbers, or one number for shape ()."""
    if self.dtype.bits_type is not None: return self._wide("tolist")
    shape, nbytes = self._worth()
    if not nbytes: return nested([], shape)
    with host_memory("host memory of a value", nbytes): raw = bytearray(nbytes)
    self._read(memoryview(raw))
    return nested(list(struct.unpack(f"<{math.prod(shape)}{semantics.FORMATS[self.dtype.name]}", raw)), shape)

  def item(self) -> ConstType:
    """The one element as a Python number."""
    if worth(self.numel()) != 1:
      raise InvalidArgument(f"item() of shape {self.shape}", hint="it is for one element; use tolist()")
    value: Any = self.tolist()
    while isinstance(value, list): value = value[0]
    return cast(ConstType, value)

  def __bool__(self) -> bool:
    if worth(self.numel()) != 1:
      raise InvalidArgument(f"the truth of a tensor of shape {self.shape} is not one value", hint="use any() or all()")
    return bool(self.item())
  def __float__(self) -> float: return float(self.item())
  def __int__(self) -> int: return int(self.item())
  def __index__(self) -> int:
    if not self.dtype.is_int: raise TypeError(f"a tensor of {self.dtype} is not an index")
    return int(self.item())
  def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
    return self.numpy() if dtype is None else self.numpy().astype(dtype)
  __array_priority__ = 1000.0       # so that `array + tensor` asks the tensor

  def __iter__(self) -> Any:
    if not self.shape: raise TypeError("a tensor of shape () has no elements to go through")
    return (self[i] for i in range(self.shape[0]))

  def __repr__(self) -> str:
    """The value, computed if it is not yet, and shape, dtype, device; why there is none, where it cannot be had."""
    if not hasattr(self, "_node"): return "Tensor(<not made yet>)"
    grad = ", requires_grad=True" if self.requires_grad else ""
    return f"Tensor({self._shown()}, shape={self.shape}, dtype={self.dtype}, device={self.device!r}{grad})"

  def _shown(self) -> str:
    """The value as NumPy writes it, large ones abbreviated. Showing never raises: it happens in debuggers and logs."""
    if watch.watching() is not None: return "<not computed while a TinyJit records>"
    import numpy
    try: return numpy.array2string(self.numpy(), 120, separator=", ", prefix="Tensor(", threshold=1000)
    except Exception as error: return f"<{next(iter(str(error).splitlines()), type(error).__name__)}>"

  # *** place and identity ***

  def to(self, device: Any = None, dtype: DTypeLike = None, non_blocking: bool = False, copy: bool = False) -> Tensor:
    """The value on another device, or on several, each of which gets all of it; as another type, if one is given; or on
    the device and of the type of another tensor. This tensor itself when it is so already, unless a `copy` is wanted.
    Nothing is said by `non_blocking`: values are waited for where they are read."""
    if isinstance(device, Tensor): device, dtype = device.device, device.dtype
    elif isinstance(device, DType): device, dtype = self.device, device
    elif device is None and dtype is not None: device = self.device
    name = Device.canonicalize(device)
    found = self if name == self._device else self._derive(copied(self.uop, name))
    if dtype is not None: found = found.cast(dtype)
    return found.contiguous() if copy and found is self else found

  def to_(self, device: str | Sequence[str] | None) -> Tensor:
    """Become the same value on another device, as by `to`; a leaf stays one. Returns this."""
    return self.shard_(members(Device.canonicalize(device)))

  def cpu(self) -> Tensor:
    """The value on the host's processor (`LLVM`)."""
    return self.to("LLVM")

  def cuda(self) -> Tensor:
    """The value on the first GPU of CUDA."""
    return self.to("CUDA")

  def sequential(self, functions: Any) -> Tensor:
    """The functions called one after another, each on what the one before gave."""
    result: Tensor = self
    for function in functions: result = function(result)
    return result

  def new_tensor(self, data: Any, dtype: DTypeLike = None, requires_grad: bool | None = None,
                 device: str | None = None) -> Tensor:
    """A tensor of data, of this device and dtype unless told."""
    return Tensor(data, device=device or self.device, dtype=_dtype(dtype) or self.dtype, requires_grad=requires_grad)

  def shard(self, devices: Sequence[str], axis: int | None = None) -> Tensor:
    """The value on several devices together: cut along an axis, a part on each; without an axis a copy on each. What is
    computed from it is computed on all of them."""
    group = Device.canonicalize(tuple(devices))
    axis = None if axis is None else self._axis(axis)
    if axis is not None and not all(type(n) is int for n in self.shape):
      raise InvalidArgument(f"shard of shape {self.shape} along an axis", hint="launches decide a size: cut it before")
    if axis is not None and self.shape[axis] < len(members(group)):
      raise InvalidArgument(f"axis {axis} of {self.shape} in {len(members(group))} parts",
                            hint="it needs an element for each")
    if not is_group(group): return self.to(group)
    if self._device.partition(":")[0] in STORAGE: return self.to(members(group)[0]).shard(devices, axis)
    return self._derive(self.uop.shard(group, axis))

  def shard_(self, devices: Sequence[str], axis: int | None = None) -> Tensor:
    """Become the same value on several devices, as by `shard`; a leaf stays one. Returns this."""
    placed = self.detach().shard(devices, axis).realize()
    if not self.is_leaf: raise InvalidArgument("shard_ of a value that has a history", hint="use shard()")
    found = home(placed.uop)
    self.uop = placed.uop if found is None else new_node(buffer_of(found)).reshape(self.shape)
    if self.grad is not None: self.grad = self.grad.shard(devices, axis).realize()
    return self

  def shard_like(self, other: Tensor) -> Tensor:
    """The value as the other one lies: on its devices, cut along its axis."""
    return self.shard(other.devices, other.shard_axis)

  @property
  def devices(self) -> tuple[str, ...]:
    """The devices that hold the value: several after `shard`."""
    return members(self._device)

  def parts(self) -> tuple[Tensor, ...]:
    """The value as it lies on each of its devices, without a history."""
    if not is_group(self._device): return (self.detach(),)
    from tinyhw.engine.shard import parts
    return tuple(Tensor._wrap(p) for p in parts(self.detach())[0])

  @property
  def shard_axis(self) -> int | None:
    """The axis along which the parts follow each other; None where each device has all. Computes the value."""
    if not is_group(self._device): return None
    from tinyhw.engine.shard import parts
    return parts(self.detach())[1]

  def detach(self) -> Tensor:
    """The value without its history: no gradient goes through."""
    result = Tensor._wrap(self.uop.detach())
    result._view, result._learns = Detached(self), False
    return result

  def assign(self, value: Any) -> Tensor:
    """Give this tensor another value of the same shape, dtype and device. Tensors made from the old value keep it; what
    this is a view of (`reshape`, `permute`, parts ...) gets it, too.

    A leaf gets the value alone; what changes it in place (`add_`, `+=`, `x[i] = v`) gives it the value's history, too.
    """
    return self._assigned(value, False)

  def _assigned(self, value: Any, with_history: bool) -> Tensor:
    device = "LLVM" if (stored := _stored(self)) else self.device
    other = value if isinstance(value, Tensor) else Tensor(value, device=device, dtype=self.dtype)
    if stored: return self._stored_value(other)
    if other.device != self.device:
      raise InvalidArgument(f"assign of a value on {other.device} to a tensor on {self.device}")
    if other.dtype is not self.dtype:
      raise InvalidArgument(f"assign of {other.dtype} to {self.dtype}", hint="cast the value first")
    if other.shape != self.shape:
      try: other = other._as_long_as(self.shape).expand(self.shape)
      except InvalidArgument:
        raise InvalidArgument(f"assign of a value of shape {other.shape} to a tensor of shape {self.shape}") from None
    if self.requires_grad and self.is_leaf and grad_enabled() and other.requires_grad:
      raise InvalidArgument("assign to a leaf that requires a gradient, from a value with a history",
                            hint="detach the value, or use `with Tensor.no_grad()`")
    if (gone := lost_below(other._uop)) is not None: gone.check()  # told of here, and this tensor keeps its value
    if is_group(self._device) and (place := home(self._uop)) is not None:
      # It lies as the value before did, where that is known.
      other = other._derive(other.uop.shard(self._device, cut_axis(self.shape, place.arg.cut)))
    chain = self._written_above() if self.numel() else []
    if chain and grad_enabled(): _check_leaves(chain)
    self._put(other, with_history, with_history and not grad_enabled())
    if chain: self._put_above(chain, with_history)
    return self

  def _written_above(self) -> list[tuple[View, Tensor | None]]:
    """What a change goes up to. What nothing goes up from is no view any more."""
    if (view := self._view) is None: return []
    if not (chain := above(view)) and not view.writes: self._view = None
    if (end := next((n for n, (view, _) in enumerate(chain) if not view.writes), None)) is None: return chain
    while end and chain[end - 1][1] is None: end -= 1
    last = chain[end - 1][1] if end else self
    assert last is not None
    last._followed()
    last._view = None
    return chain[:end]

  def _stored_value(self, other: Tensor) -> Tensor:
    """`assign` where nothing computes: in the host's memory, then written as a whole, at once."""
    if other.dtype is not self.dtype or other.shape != self.shape:
      raise InvalidArgument(f"assign of {other.dtype} {other.shape} to {self.dtype} {self.shape} on {self.device}",
                            hint="cast and expand the value first")
    part, chain = other.detach().to("LLVM"), [] if self._view is None else above(self._view)
    runtime = Device[self._device].runtime
    if chain and isinstance(runtime, DiskRuntime):
      runtime.reserve(next((t for _, t in reversed(chain) if t is not None), self).nbytes())
    if not chain: self._given(part.to(self.device).realize().uop)
    for (view, whole), old in zip(chain, [old.to("LLVM") for old in values(chain)]):
      part = view.back(old, part)
      if whole is not None: super(Tensor, whole)._given(part.to(self.device).realize().uop)
    for view, _ in chain: view.version = view.looked = Clock.now
    if self._view is not None and chain:
      super()._given(self._view.forward(values(chain)[0]).uop)
    return self

  def _put(self, other: Tensor, with_history: bool, unseen: bool = False) -> None:
    """Get another value, which fits; by a change that is `unseen` by gradients what has a history keeps it, as in
    PyTorch."""
    if unseen and self._has_history:
      one = UOp.const(self.dtype, 1, self._device, self.shape)
      self.uop = UOp(Ops.DETACH, self.dtype, (other._uop.detach(), self._uop, one)).contiguous()
      self._changed()
      return
    if self.is_leaf and self._learns: _former.set(_variable(self._uop), weakref.ref(self))
    if with_history and self.is_leaf and other.requires_grad and grad_enabled(): self._learn()
    # CONTIGUOUS: the value gets memory of its own. A leaf that learns is never one node with a constant or another
    # tensor: what is derived by it would be derived by them.
    alone = self.is_leaf and not (with_history and self._learns is None)
    if alone and self._learns: self.uop = other.uop.detach().own()
    else: self.uop = other.uop.detach().contiguous() if alone else other.uop.contiguous()
    self._changed()

  @property
  def _has_history(self) -> bool:
    """Whether a gradient that comes here may go on to something else."""
    if not self.is_leaf or self._learns is not None or not self.dtype.is_float: return not self.is_leaf
    node = _variable(self._uop)
    return any(u.op is Ops.BUFFER and u is not node for u in node.toposort(carries_gradient))

  def _put_above(self, chain: list[tuple[View, Tensor | None]], with_history: bool) -> None:
    """Have what this is a view of get its value, and know that it has."""
    part, unseen = self, with_history and not grad_enabled()
    for (view, whole), old in zip(chain, values(chain)):
      with_history, unseen = with_history and view.tracks, unseen or not view.tracks
      part = view.back(old, part)
      if whole is not None: whole._put(part, with_history, unseen)
    for view, _ in chain: view.wrote, view.version, view.looked, view.kept = True, Clock.now, Clock.now, None

  def _given(self, node: UOp) -> None:
    super()._given(node)
    if self._view is not None and (chain := self._written_above()): self._put_above(chain, False)

  def _follow(self, view: View) -> None:
    now = Clock.now
    if not stale(view, chain := above(view)): view.looked = now
    else:
      with remembering(): fresh = view.forward(values(chain)[0])
      if watch.active and watch.watching() is not None: self._view = None  # a recording looks at what was before
      if self._learns and self.is_leaf: self.uop = fresh.uop.detach().own()
      else:
        if fresh.requires_grad and not self.requires_grad: self._learn()
        self.uop = fresh.uop
      self._changed()
      self._view = view
      view.version = view.looked = now
      view.kept = None

  def _in_place(self, name: str, args: Any, kwargs: Any) -> Tensor:
    found = getattr(type(self), name)(self, *args, **kwargs)
    fits = found.dtype.is_bool or self.dtype.is_float or found.dtype.is_int and self.dtype.is_int
    return self._assigned(found.cast(self.dtype) if fits else found, True)

  def _become(self, other: Tensor) -> None:
    learns, leaf = other._learns, other.is_leaf
    self.replace(other)
    self._learns, self.is_leaf = learns, leaf

  def copy_(self, other: Any) -> Tensor:
    """The other's value, cast to this dtype and broadcast."""
    value = other if isinstance(other, Tensor) else Tensor(other, device=self.device)
    return self._assigned(value.to(self.device).cast(self.dtype), True)
  def replace(self, other: Tensor) -> Tensor:
    """Become the other tensor's value, whatever its shape."""
    self.uop = other.uop
    self._view = self._views = None
    self._changed()
    return self

  def __setitem__(self, index: Any, value: Any) -> None:
    """Give new values to a part chosen by ints, slices, Ellipsis, None, integer tensors or masks. Of several values for
    one place the last one stays."""
    if _stored(self):
      found = self.to("LLVM").contiguous()
      found[index] = value
      self._stored_value(found)
      return
    other = value if isinstance(value, Tensor) else Tensor(value, device=self.device, dtype=self.dtype)
    view = other._view
    if isinstance(view, Indexed) and view.wrote and view.parent() is self and view.version >= self.changes and \
       same_index(view.index, index): return  # `x[i] += v` has come up already
    if isinstance(index, Tensor) and index.dtype.is_bool and index.shape == self.shape and other.shape in ((),
                                                                                                           self.shape):
      found = index.where(other, self).cast(self.dtype)       # nothing needs to be read for it
    else: found = self._with_part(index, other)
    self._assigned(found, True)

  def __delitem__(self, index: Any) -> None:
    raise TypeError("a tensor's elements are not deleted: its shape is what it is")

  # *** gradients ***

  def detach_(self) -> Tensor:
    """Forget how this value was made: it is a leaf that requires no gradient. Returns this."""
    if self._view is not None: raise InvalidArgument("detach_ of a view", hint="use detach()")
    self.uop = self.uop.detach()
    self._learns, self.is_leaf = False, True
    return self

  def is_nonzero(self) -> bool:
    """Whether the one element is not 0; read."""
    return bool(self)

  def type(self, dtype: DTypeLike = None) -> Any:
    """The type's name, or the value as another type."""
    return str(self.dtype) if dtype is None else self.cast(dtype)

  def __copy__(self) -> Tensor:
    """This value as a tensor of its own. A copy of a leaf is a leaf: what is learned by it does not reach this one."""
    if not self.is_leaf: return self._same()
    copied = Tensor._wrap(self.uop.detach())
    if self.requires_grad: copied.requires_grad_()
    copied.grad = None if self.grad is None else self.grad._same()
    return copied

  def __deepcopy__(self, memo: dict[int, Any]) -> Tensor: return self.__copy__()  # tensors are values

  def __reduce__(self) -> tuple[Any, ...]:
    """Pickled is the value, with its devices' names and how it lies on them; history and gradient are not."""
    shape, _ = self._worth()
    return _unpickled, (self.data().tobytes(), shape, self.dtype.name, self.devices, self.shard_axis,
                        self.requires_grad and self.is_leaf)

  def requires_grad_(self, wanted: bool = True) -> Tensor:
    """Say whether `backward` leaves a gradient in this leaf. Returns this."""
    if wanted and not self.dtype.is_float:
      raise InvalidArgument(f"a gradient for {self.dtype}", hint="only floats have one")
    if wanted and self.is_leaf and not self.requires_grad:
      # A node of its own, which no graph made before has in it; and memory of its own, where it had none.
      realize(self)
      if (found := home(self.uop)) is None:
        copy = self.uop.detach().contiguous()
        realize_nodes([copy])
        found = home(copy)
      assert found is not None or not self.numel()
      if found is not None: self.uop = new_node(buffer_of(found)).reshape(self.shape)
    self.requires_grad = wanted
    return self

  is_param_ = requires_grad_

  @property
  def is_param(self) -> bool:
    """Whether it is a leaf that learns."""
    return self.requires_grad and self.is_leaf

  def gradient(self, *targets: Tensor, gradient: Tensor | None = None,
               create_graph: bool | None = None) -> list[Tensor]:
    """The derivative of this scalar (or of `gradient` times this) by each of the targets; zeros for what was not used.
    Values without a history, unless `create_graph`: then they may be derived again. So they may, unless told, where no
    target is said to learn."""
    for number, t in enumerate(targets):
      if t._learns is False or not t.dtype.is_float:
        raise InvalidArgument(f"the gradient by target {number}, of shape {t.shape}, which does not require one",
                              hint="call requires_grad_() on it before it is used")
      if not t.requires_grad and _constant(t._uop):
        raise InvalidArgument(f"the gradient by target {number}, of shape {t.shape}, a constant",
                              hint="call requires_grad_() on it before it is used, or clone() it")
    if targets and self._learns is False:
      raise InvalidArgument("the gradient of a value that no leaf with requires_grad was used for")
    below = self.uop.toposort(carries_gradient)
    if (gone := next((n for n, t in enumerate(targets) if not t.requires_grad and _variable(t._uop) not in below), None)
       ) is not None and history_forgotten(below):
      raise InvalidArgument(f"the gradient by target {gone}, which is not in what is known of this value's history",
                            hint="a value on the way was read or realized, which keeps the history of those alone that "
                                 "require a gradient: call requires_grad_() on the target before it is used")
    places = placed_among(below)
    if create_graph is None and not any(t.requires_grad for t in targets):
      try: return self._differentiated(targets, gradient, below, places, True)
      except Unsupported: pass                 # what is no function of the targets has no second derivative
    return self._differentiated(targets, gradient, below, places, bool(create_graph))

  def _differentiated(self, targets: Sequence[Tensor], seed: Tensor | None, below: Iterable[UOp],
                      places: list[tuple[UOp, UOp]], create_graph: bool) -> list[Tensor]:
    """See `gradient`; with what of the graph carries gradients, which of it is in memory, and where."""
    if seed is None and self.shape != ():
      raise InvalidArgument(f"backward of shape {self.shape}", hint="reduce to a scalar, or give a gradient")
    if not self.dtype.is_float: raise InvalidArgument(f"backward of {self.dtype}", hint="only floats have derivatives")
    start = UOp.const(self.dtype, 1.0, self._device) if seed is None else seed.cast(self.dtype).expand(self.shape).uop
    nodes = [[_variable(t.uop)] for t in targets]
    if len(_former):          # a leaf that has another value by now is in the graph as it was
      before = _leaves_before(below, (_variable(place) for _, place in places))
      for t, all_of_it in zip(targets, nodes): all_of_it += [u for u, leaf in before.items() if leaf is t]
    wanted = {n for all_of_it in nodes for n in all_of_it}
    # A target that was pending when the graph was made is in it as it was then; by now it may be memory.
    memory = {u: place for u, place in places if u is not place and u not in wanted and _variable(place) in wanted}
    root, now = self.uop, {n: n for n in wanted}
    if memory: root, now = root.substitute(memory), {n: n.substitute(memory) for n in wanted}
    found = gradients(root, start, set(now.values()), create_graph)
    nodes = [[now[n] for n in all_of_it] for all_of_it in nodes]
    used = [t for t, all_of_it in zip(targets, nodes) if any(n in found for n in all_of_it)]
    if seed is not None: used.append(seed)
    def total(t: Tensor, all_of_it: list[UOp]) -> Tensor:
      parts = [found[n].reshape(t.shape) for n in all_of_it if n in found and n.device == t._device]
      if not parts: return t._wrap(t._const(0))
      whole = functools.reduce(UOp.__add__, parts)
      return Tensor._wrap(whole, *used) if create_graph else Tensor._wrap(whole.detach())
    return [total(t, all_of_it) for t, all_of_it in zip(targets, nodes)]

  def retain_grad(self) -> None:
    """Have `backward` leave the gradient in this one too, which is no leaf."""
    if not self.requires_grad: raise InvalidArgument("retain_grad of a value that requires no gradient")
    _retaining.add(self)

  def backward(self, gradient: Tensor | None = None, retain_graph: bool | None = None,
               create_graph: bool = False, inputs: Tensor | Sequence[Tensor] | None = None) -> Tensor:
    """Add the derivative of this scalar (or of `gradient` times this) to `.grad` of the leaves that require it. Where
    none does, to that of all floats alive that it was computed of, unless they are said not to learn.

    It may be called again; where it will be, `retain_graph` keeps in memory what it needs. With `create_graph` the
    gradients have a history, and may be derived again. `inputs`: only these get one.
    Threads may do so for the same leaves at the same time.
    """
    # Before the graph is looked at: threads may realize leaves.
    asked = _leaves() if self.requires_grad else _unsaid() if self._asked else []
    if inputs is not None: asked = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    there = [(t, _variable(t._uop)) for t in asked]
    below = self.uop.toposort(carries_gradient)
    places = placed_among(below)
    memory = {_variable(found) for _, found in places}
    before = set(_leaves_before(below, memory).values())
    leaves = [t for t, variable in there if variable in below or variable in memory or t in before]
    if not self.requires_grad:
      leaves = [t for t in leaves if t is not self and not _constant(t._uop)]
      if not leaves: raise InvalidArgument("backward of a value that no leaf with requires_grad was used for")
    for leaf, g in zip(leaves, self._differentiated(leaves, gradient, below, places, create_graph)):
      with _accumulating: leaf._gather(g, create_graph)
    self.spent = not (create_graph if retain_graph is None else retain_graph)
    return self

  def _gather(self, gradient: Tensor, create_graph: bool) -> None:
    """Add to the gradient: whoever holds it sees that, as in PyTorch, unless it has a history, or a TinyJit looks (its
    replays hand out new ones)."""
    if (before := self.grad) is None: self.grad = gradient
    elif create_graph or before.requires_grad or watch.watching() is not None: self.grad = before + gradient
    else: before._given((before + gradient).uop)

  def zero_grad(self) -> None:
    """Forget the gradient."""
    self.grad = None


def _unpickled(raw: bytes, shape: tuple[int, ...], dtype: str, devices: tuple[str, ...], axis: int | None,
               requires_grad: bool) -> Tensor:
  value = Tensor(raw, device=devices[0], dtype=dtypes.named(dtype)).reshape(shape)
  return value.shard(devices, axis).requires_grad_(requires_grad)


def _stored(tensor: Tensor) -> bool:
  """Whether it is where nothing computes."""
  return tensor._device.partition(":")[0] in STORAGE


def _variable(node: UOp) -> UOp:
  """The node that stands for a leaf in every graph made from it: the one below its reshapes, which graphs leave out."""
  while node.op is Ops.RESHAPE: node = node.src[0]
  return node


def _constant(node: UOp) -> bool:
  """Whether it is a number that is the very node of all others of its value."""
  return node.size > 0 and not any(u.op is Ops.BUFFER or u.op is Ops.DETACH and u.arg is not None
                                   for u in node.toposort())


def _leaves_before(*nodes: Iterable[UOp]) -> dict[UOp, Tensor]:
  """Those of the nodes that stood for leaves before they got another value."""
  if not len(_former): return {}
  return {u: leaf for u in itertools.chain(*nodes) if (known := _former.get(u)) is not None and
          (leaf := known()) is not None}


def _unsaid() -> list[Tensor]:
  """The floats alive of which nobody has said whether they learn; not those that are another one in another shape."""
  found = [t for t in living() if t._learns is None and isinstance(t, Tensor) and t._uop.dtype.is_float]
  return [t for t in found if t._view is None or (whole := t._view.parent()) is None or
          _variable(whole._uop) is not _variable(t._uop)]


def _leaves() -> list[Tensor]:
  """Every leaf that requires a gradient. Whether one is used is told by its `_uop`: looking is no use of it."""
  return [*(t for t in learning() if isinstance(t, Tensor)), *(t for t in _retaining if not t.is_leaf)]
