"""The part of Tensor that all functions share: the graph node it holds, its facts, and how results are made."""
from __future__ import annotations

import contextlib
import math
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument, InvalidIndex, InvalidNumber, InvalidShape, InvalidType
from tinyhw.core.locks import TABLES, shared_lock
from tinyhw.core.timeout import again
from tinyhw.devices import watch
from tinyhw.devices.buffer import Held
from tinyhw.function.limits import refuse_beyond
from tinyhw.function.spelling import accept_all_spellings
from tinyhw.function.views import Clock, View, Views
from tinyhw.ir.dtype import DType, can_cast_losslessly, dtypes, promote
from tinyhw.ir.group import is_group, members
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.uop import UOp

if TYPE_CHECKING:
  from typing import Self

ConstType = bool | int | float
Places = str | Sequence[str] | None
"""Where a tensor is made: a device, several together, or the default one."""

_living: dict[weakref.ref[TensorBase], None] = {}
"""Every tensor alive that has a graph: memory on the way of a schedule is kept for those that may yet ask for it."""
_learning: dict[int, weakref.ref[TensorBase]] = {}
"""By id, the tensors alive that somebody has said a gradient is wanted for."""
_gone: Callable[[weakref.ref[TensorBase]], None] = _living.pop
_naming = shared_lock(TABLES)  # held while a value that is memory alone gets a node


_no_grad: dict[int, bool] = {}
_training: dict[int, bool] = {}
"""Modes by thread, of those that are in a block of `no_grad()` or `train()`."""


class Modes(type):
  """Modes that are read and set as attributes of the class."""
  _trains = False

  @property
  def training(cls) -> bool:
    """Whether dropout and the like are active. Set it for all threads; `with Tensor.train():` sets it for one."""
    return _training.get(threading.get_ident(), Modes._trains) if _training else Modes._trains

  @training.setter
  def training(cls, mode: bool) -> None: Modes._trains = mode


class TensorBase(metaclass=Modes):
  """A value on a device: `uop` is the graph that gives it, or the buffer that holds it. (`_uop` is the same, and nobody
  is told that it was used.)

  Tensors are values: `assign` gives this one a new value and leaves other tensors as they were, but for those that it
  is a view of, and their views (`function.views`).
  `requires_grad` of a leaf is set by the user; of a result it says whether a leaf that requires it was used.

  What a replay of TinyJit gives is memory with a view of it, `held`, until somebody asks for the node.
  """
  __slots__ = ("_node", "held", "_grad", "_learns", "is_leaf", "spent", "_listed", "_view", "_views",
               "changes", "__weakref__")
  _node: UOp | None      # None: it is `held`
  held: Held | None
  _listed: weakref.ref[TensorBase] | None  # among the living
  _view: View | None  # of another tensor
  _views: Views | None  # of this one
  changes: int  # the number of the last change (`function.views`)
  _grad: Self | None
  _learns: bool | None  # None: nobody has said so
  is_leaf: bool
  spent: bool  # whether a gradient went back from it: nothing is kept in memory for another one

  def __init_subclass__(cls, **options: Any) -> None:
    super().__init_subclass__(**options)
    accept_all_spellings(cls)

  @staticmethod
  def _steps(count: int, made: Sequence[UOp], inside: Sequence[UOp], state: Sequence[UOp]) -> list[UOp] | None:
    """What becomes of a state by `count` steps at once, see `engine.loops.repeated`, which Tensor has; None: not so."""
    return None

  @classmethod
  def _wrap(cls, uop: UOp, *parents: TensorBase) -> Self:
    """The tensor of a graph node; it requires a gradient when one of `parents` does."""
    self = cls.__new__(cls)
    self._grad = None
    wanted, unsaid = False, not parents
    for p in parents:
      if p._learns: wanted = True
      elif p._learns is None: unsaid = True
    remembers = grad_enabled()
    # What is made of tensors that are said not to learn is no parameter either.
    self._learns = True if wanted and remembers else None if unsaid else False
    self.is_leaf = not self._learns
    # What requires no gradient lets none through, also while it is a graph that has a leaf in it.
    self._live(uop if remembers or not (wanted or unsaid and parents and uop.dtype.is_float) else uop.detach())
    return self

  @classmethod
  def _holding(cls, held: Held) -> Self:
    """A new leaf whose value is in memory, for a thread that nobody watches."""
    self = cls.__new__(cls)
    self._node, self.held, self._grad, self._learns, self.is_leaf, self.spent = None, held, None, None, True, False
    self._listed, self._view, self._views, self.changes = None, None, None, 0
    return self

  def _hold(self, held: Held) -> None:
    """Get a value that is in memory."""
    with _naming: self.held, self._node = held, None
    self._changed()

  def _changed(self) -> None:
    """It has got another value."""
    Clock.tick(self)
    if self._views is not None: self._views.keep(self)

  def _given(self, node: UOp) -> None:
    """Get a value from a call of TinyJit."""
    self.uop = node
    self._changed()

  def _followed(self) -> None:
    """Have the value that it is a view of now."""
    if (view := self._view) is not None and view.looked < Clock.now: self._follow(view)

  def _follow(self, view: View) -> None:
    """The same, where something has changed since it was looked for."""

  def _named(self) -> UOp:
    """The node of a value that was memory alone."""
    with _naming:
      if (node := self._node) is None:
        held = self.held
        assert held is not None, "a tensor has a node, or memory"
        node = self._node = held[1].node(held[0])
        self.held = None
        self._list()
      return node

  def _list(self) -> None:
    """Be among the living: under the lock, or before anybody else knows the tensor."""
    if self._listed is None:
      self._listed = me = weakref.ref(self, _gone)
      _living[me] = None

  def _learn(self) -> None:
    """Become the result of something that learns, by another value in the place of this one."""
    self._learns, self.is_leaf = True, False
    if watch.active and (watcher := watch.watching()) is not None: watcher.learned(self)

  def _forget(self) -> None:
    """Be a leaf of the same value, without a history."""
    self.uop = self.uop.detach()
    self._learns, self.is_leaf = None, True

  def _same(self) -> Self:
    """The value as a tensor of its own: `assign` to either leaves the other alone."""
    return self._derive(self.uop)

  def _live(self, uop: UOp) -> None:
    """The last step of making a tensor: its graph."""
    self._node, self.held, self.spent = uop, None, False
    self._listed, self._view, self._views, self.changes = None, None, None, 0
    self._list()
    if watch.active and (watcher := watch.watching()) is not None: watcher.made(self)

  def _derive(self, uop: UOp) -> Self:
    return self._wrap(uop, self)

  def _with_derivative(self, *ways: tuple[Self, Callable[[], Self]], once: bool = False) -> Self:
    """This value, a function of others element by element whose derivatives are known: (argument, its derivative) each.

    All have one shape and dtype. No gradient goes another way; derivatives that nobody asks for are not made. `once`:
    they have no derivatives in their turn.
    """
    wanted = [(x, derivative) for x, derivative in ways if x._asked]
    if not wanted or not grad_enabled(): return self._wrap(self.uop.detach())
    sources = [u for x, derivative in wanted for u in (x.uop, derivative().uop)]
    node = UOp(Ops.DETACH, self.dtype, (self.uop, *sources), "once" if once else None)
    return self._wrap(node, *(x for x, _ in wanted))

  @property
  def _asked(self) -> bool:
    """Whether somebody may ask for a gradient by it: it learns, or nobody has said that it does not, and it is no
    constant."""
    if self._learns is not None: return self._learns
    u = self._uop
    while u.op in GroupOp.MOVEMENT or u.op is Ops.DETACH and u.arg is None: u = u.src[0]
    return u.op is not Ops.CONST

  def _one_way(self, *sources: TensorBase) -> Self:
    """This value, which was computed of others at once, since none of them is said to learn: the gradient by one of
    which nobody has said anything is refused, not 0."""
    unsaid = [x for x in sources if x._asked and x.dtype.is_float]
    if not unsaid or not grad_enabled(): return self
    return self._wrap(UOp(Ops.DETACH, self.dtype, (self.uop, *(x.uop for x in unsaid)), "one way"), *unsaid)

  def _unmoved_by(self, x: Self) -> Self:
    """This value, whose derivative by `x` (of the same shape and dtype) is 0."""
    return self._with_derivative((x, lambda: self.const_like(0)))

  @property
  def grad(self) -> Self | None:
    """The gradient that `backward` has left, if there is one."""
    return self._grad

  @grad.setter
  def grad(self, gradient: Self | None) -> None:
    if watch.active and (watcher := watch.watching()) is not None: watcher.graded(self)
    self._grad = gradient

  @property
  def requires_grad(self) -> bool:
    """Whether gradients are wanted for it."""
    return self._learns is True

  @requires_grad.setter
  def requires_grad(self, wanted: bool) -> None:
    self._learns = wanted
    if not wanted or (known := _learning.get(key := id(self))) is not None and known() is self: return
    def gone(reference: weakref.ref[TensorBase]) -> None:
      try:
        if _learning.get(key) is reference: del _learning[key]
      except KeyboardInterrupt: again()
    _learning[key] = weakref.ref(self, gone)

  @property
  def uop(self) -> UOp:
    """The graph that gives the value, or the buffer that holds it."""
    if (view := self._view) is not None and view.looked < Clock.now: self._follow(view)
    if watch.active and (watcher := watch.watching()) is not None: watcher.read(self)
    node = self._node
    return self._named() if node is None else node

  @uop.setter
  def uop(self, node: UOp) -> None:
    if watch.active and (watcher := watch.watching()) is not None and node is not self._uop:
      watcher.wrote(self)
    self._uop = node

  @property
  def _uop(self) -> UOp:
    """The same, and nobody is told."""
    node = self._node
    return self._named() if node is None else node

  @_uop.setter
  def _uop(self, node: UOp) -> None:
    if self.held is None: self._node = node
    else:
      with _naming:
        self._node, self.held = node, None
        self._list()

  # *** facts ***

  @property
  def dtype(self) -> DType:
    """Type of the elements."""
    return self.uop.dtype

  @property
  def shape(self) -> tuple[int, ...]:
    """Size of each axis."""
    return self.uop.shape

  @property
  def ndim(self) -> int:
    """Number of axes."""
    return len(self.uop.shape)

  @property
  def device(self) -> str | tuple[str, ...]:
    """Canonical name of the device that holds the value; a tuple of names where several hold it together."""
    device = self._device
    return members(device) if is_group(device) else device

  @property
  def _device(self) -> str:
    """The same as one name, as graphs have it."""
    device = self.uop.device
    assert device is not None, "constants of tensors name their device"
    return device

  def numel(self) -> int:
    """Number of elements."""
    return math.prod(self.uop.shape)

  def dim(self) -> int:
    """Number of axes."""
    return len(self.uop.shape)

  def size(self, axis: int | None = None) -> int | tuple[int, ...]:
    """The shape, or the size of one axis."""
    return self.shape if axis is None else self.shape[self._axis(axis)]

  nelement = numel
  ndimension = dim

  @property
  def itemsize(self) -> int:
    """Bytes of one element."""
    return self.dtype.itemsize

  def element_size(self) -> int:
    """Bytes of one element."""
    return self.dtype.itemsize

  def nbytes(self) -> int:
    """Bytes of all elements."""
    return self.numel() * self.dtype.itemsize

  def is_floating_point(self) -> bool:
    """Whether the elements are floats."""
    return self.dtype.is_float

  def __len__(self) -> int:
    if not self.shape: raise TypeError("a tensor of shape () has no length")
    return self.shape[0]

  # *** helpers of the functions ***

  def _axis(self, axis: int, extra: int = 0) -> int:
    """The axis counted from the front; `extra` allows positions past the end, for new axes."""
    if not isinstance(axis, int): raise InvalidType(f"{axis!r} is not an axis", hint="an axis is an int")
    rank = self.ndim + extra
    if not -max(rank, 1) <= axis < max(rank, 1):
      raise InvalidIndex(f"axis {axis} of a tensor of shape {self.shape}", hint=f"it has {self.ndim} axes")
    return axis % max(rank, 1)

  def _axes(self, axes: int | Sequence[int] | None) -> tuple[int, ...]:
    """The axes counted from the front, each once; all of them for None."""
    if axes is None: return tuple(range(self.ndim))
    found = tuple(self._axis(a) for a in ((axes,) if isinstance(axes, int) else axes))
    if len(set(found)) != len(found): raise InvalidShape(f"an axis occurs twice in {axes}")
    return tuple(a for a in found if self.ndim)

  def _const(self, value: ConstType, dtype: DType | None = None, shape: tuple[int, ...] | None = None) -> UOp:
    """A constant on this tensor's device; this tensor's dtype and shape unless told."""
    return UOp.const(dtype or self.dtype, value, self._device, self.shape if shape is None else shape)

  def const_like(self, value: ConstType, dtype: DType | None = None) -> Self:
    """A constant of this tensor's shape and device, and dtype unless told."""
    return self._wrap(self._const(value, dtype))

  def _still(self) -> Self:
    """This value without its history."""
    return self._wrap(self.uop.detach())

  def contiguous(self, arg: Any = None, memory_format: Any = None) -> Self:
    """The same value in memory of its own, in row-major order. `arg` is tinygrad's list of steps for the kernel: values
    are the same, and the optimizer here chooses by itself. There is one `memory_format`, row-major."""
    if str(memory_format) not in ("None", "torch.contiguous_format", "torch.preserve_format"):
      raise InvalidArgument(f"memory_format {memory_format}", hint="values are in row-major order; permute the axes")
    return self._derive(self.uop.contiguous())

  def contiguous_backward(self) -> Self:
    """The same value. That its gradient has memory of its own is tinygrad's way to cut kernels; values are the same."""
    return self._same()

  # *** modes ***

  @staticmethod
  @contextlib.contextmanager
  def train(mode: bool = True) -> Iterator[None]:
    """`with Tensor.train():` sets `Tensor.training` inside, for this thread."""
    me = threading.get_ident()
    before = _training.get(me)
    _training[me] = mode
    try: yield
    finally: _put(_training, me, before)

  @staticmethod
  @contextlib.contextmanager
  def no_grad() -> Iterator[None]:
    """`with Tensor.no_grad():` makes tensors inside that do not remember how they were made, in this thread."""
    me = threading.get_ident()
    before = _no_grad.get(me)
    _no_grad[me] = True
    try: yield
    finally: _put(_no_grad, me, before)


@contextlib.contextmanager
def remembering() -> Iterator[None]:
  """`with remembering():` undoes `no_grad` inside, for this thread."""
  me = threading.get_ident()
  before = _no_grad.pop(me, None)
  try: yield
  finally: _put(_no_grad, me, before)


def _put(modes: dict[int, bool], thread: int, mode: bool | None) -> None:
  if mode is None: modes.pop(thread, None)
  else: modes[thread] = mode


def grad_enabled() -> bool:
  """Whether tensors that this thread makes remember how they were made."""
  return not _no_grad or threading.get_ident() not in _no_grad


def threads_modes() -> tuple[bool | None, bool | None, bool]:
  """This thread's modes, to be compared: what it says of training, and of gradients, and what is for all threads."""
  if not _training and not _no_grad: return None, None, Modes._trains
  me = threading.get_ident()
  return _training.get(me), _no_grad.get(me), Modes._trains


def living() -> list[TensorBase]:
  """Every tensor alive that has a graph, as they are now: other threads make tensors meanwhile."""
  return [t for r in list(_living) if (t := r()) is not None]


def learning() -> list[TensorBase]:
  """The leaves alive that require a gradient, as they are now: other threads make tensors meanwhile."""
  return [t for r in list(_learning.values()) if (t := r()) is not None and t._learns and t.is_leaf]


accept_all_spellings(TensorBase)  # those that derive from it do so as they are made


def broadcast_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
  """The common shape that all of `shapes` broadcast to, by NumPy's rules."""
  if not shapes: return ()
  result = shapes[0]
  for shape in shapes[1:]:
    if shape == result: continue
    rank = max(len(shape), len(result))
    longer, other = (1,) * (rank - len(result)) + result, (1,) * (rank - len(shape)) + shape
    met = [y if x == 1 else x if y == 1 or x == y else None for x, y in zip(longer, other)]
    if None in met: raise InvalidShape(f"shapes {', '.join(map(str, shapes))} do not broadcast together")
    result = tuple([size for size in met if size is not None])
  return result


def expand_to(u: UOp, shape: tuple[int, ...]) -> UOp:
  """`u` with leading axes added and axes of size 1 repeated."""
  if u.shape == shape: return u
  return u.reshape((1,) * (len(shape) - len(u.shape)) + u.shape).expand(shape)


def _rank(dtype: DType) -> int: return 2 if dtype.is_float else 0 if dtype.is_bool else 1


def result_dtype(*operands: TensorBase) -> DType:
  """The type that operands meet in, by PyTorch's rule: a tensor of shape () beside others counts as a number does, with
  its type only where it is of a higher kind (bool, integer, float) than all of them."""
  placed, scalars = [t.dtype for t in operands if t.shape], [t.dtype for t in operands if not t.shape]
  if not placed or not scalars: return promote(*placed, *scalars)
  wide, high = promote(*placed), promote(*scalars)
  return promote(wide, high) if _rank(high) > _rank(wide) else wide


def scalar_dtype(value: ConstType, other: DType) -> DType:
  """The type that a Python number takes beside a tensor of type `other`: that one, unless it cannot hold the kind."""
  if isinstance(value, bool): return other
  if isinstance(value, int): return dtypes.default_int if other.is_bool else other
  return other if other.is_float else dtypes.default_float


def fitting(value: ConstType, dtype: DType) -> ConstType:
  """A number that a tensor of this type may be made of. As in PyTorch a negative number is an unsigned one with its
  bits; what has no such bits is a mistake."""
  if dtype.is_int and not (dtype.min if dtype.is_signed else -dtype.max) <= value <= dtype.max:
    refuse_beyond("Tensor", (value,))
    raise InvalidNumber(f"{value} does not fit {dtype}", hint="give a wider dtype")
  if dtype.is_float: refuse_beyond("Tensor", (value,))
  return value


def wide_float(dtype: DType) -> DType:
  """The type to compute a transcendental function in: floats of 8 and 16 bits in float32, integers in the default
  float."""
  if not dtype.is_float: return dtypes.default_float
  return dtypes.float32 if dtype.bits < 32 else dtype


def number(value: Any) -> ConstType:
  """`value` as a Python number (NumPy scalars become one)."""
  if isinstance(value, (bool, int, float)): return value
  if hasattr(value, "item") and getattr(value, "shape", None) == ():
    return number(value.item())
  raise InvalidType(f"a {type(value).__name__} is not a number or a Tensor: {value!r}")


__all__ = ["ConstType", "Places", "TensorBase", "broadcast_shape", "can_cast_losslessly", "expand_to", "fitting",
           "grad_enabled",
           "learning", "living", "number", "remembering", "result_dtype", "scalar_dtype", "threads_modes",
           "wide_float"]
