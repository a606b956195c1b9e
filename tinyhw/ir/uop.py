"""UOps: the one immutable, interned node of the tensor graph, the kernel graph and the linear program.

`UOp(op, dtype, src, arg)`: equal nodes are one object: `is` compares graphs and rewriting shares common parts. A node
knows its `shape` (a tuple of sizes), `device`, `toposort()` and, for integers and bools, its bounds `vmin`, `vmax`.

A size, in a shape and in every argument that counts elements, is an int or an `ir.size.Size`: an integer expression of
DEFINE_VARs, which a launch gives its value.

Every stage: `op (sources) arg`
===============================
CONST () or (DEVICE,), number      A scalar, shape (). The number is canonical for the dtype (`ir.semantics`).
DEFINE_VAR (), (name, min, max)    An int32 scalar, shape (): a value given at launch, min..max inclusive. In the tensor
                                   graph a CONST as its source is that value; kernels are without it.
CAST (x,)                          To the node's dtype; meaning in `ir.semantics`.
BITCAST (x,)                       The same memory as another dtype of the same itemsize.
arithmetic (x[, y[, z]])           Meaning in `ir.semantics`. All sources have one shape and one dtype, but WHERE's
                                   condition, which is bool, and the count of a shift, which is any integer type.
                                   Comparisons give bool, WHERE the dtype of its second source, all else of the first.

Tensor graph
============
DEVICE (), name                    Void; the device ("AMD:1") of a CONST, as its source. Each device may be a group of
                                   several (`ir.group`), which `compile.spread` makes graphs of single ones of.
BUFFER (), (uid, device, size, cut)  Memory of `size` elements of the dtype, shape (size,); a group's is cut so.
RESHAPE (x,), shape                The elements in row-major order under a new shape.
PERMUTE (x,), order                Axis i of the result is axis order[i] of x.
EXPAND (x,), shape                 Axes of size 1 repeat to the new size; the rank stays.
PAD (x,), ((before, after), ...)   Adds zeros.
SHRINK (x,), ((start, stop), ...)  Keeps start <= i < stop.
FLIP (x,), (bool, ...)             Reverses the axes marked True.
REDUCE_AXIS (x,), (op, axes)       By ADD, MUL or MAX, in its own dtype. The axes stay with size 1 (keepdim). Over no
                                   elements: 0, 1, the least value.
CONTIGUOUS (x,)                    x, realized in memory of its own.
CONTIGUOUS (x,), number            The same, and no other node, and nobody else's memory: the value of a leaf.
COPY (x,), device                  x, in memory on `device`; on a group all of it on each, or cut as it was on another.
SHARD (x,), (group, axis)          x cut along an axis, a part on each device of the group; None: all of it on each.
ASSIGN (target, value)             Stores value into target, then reads as target. The target is a BUFFER, or RESHAPE,
                                   PERMUTE, SHRINK and FLIP of one, or of another ASSIGN to one.
DETACH (x,)                        x, without a gradient.
DETACH (x,), number                The same, and no other node: gradients may be asked by it, though x is a constant.
DETACH (x, y, derivative, ...)     x, a function of y (...) element by element: the gradient goes to y, times that;
                                   with argument "once" there are no second derivatives.
DETACH (x, y, ...), "one way"      x, computed of y (...) so that no gradient can go back: one that is asked is refused.
GATHER (x, table, index), axis     x, which is the elements of `table` that `index` names on an axis, where it is in it:
                                   the gradient goes to these. The other axes of table and index are alike.
SCATTER (table, index, value), ScatterArg  The table after each value, in their order along an axis, went to the place
                                   of the table's axis that its index names (an int32; not where there is none such),
                                   alone or combined with what is there. The other axes of all three are alike.
SINK outputs                       Void; the root of several graphs.

Kernel graph: the `ast` of a scheduled kernel
=============================================
CONST (without DEVICE), DEFINE_VAR, movement, REDUCE_AXIS, CAST, BITCAST and arithmetic as above, and:
DEFINE_GLOBAL (), index            A pointer with its size: the kernel's buffer of that index; shape (size,).
VIEW (DEFINE_GLOBAL,), ShapeTracker  A pointer: the buffer seen through movements.
LOAD (VIEW,)                       The view's elements; zero where its mask does not hold.
STORE (VIEW, value)                Void; the value, which has the view's shape, goes to memory.
SCATTER (VIEW, index, value[, VIEW]), ScatterArg  Void; as above, into the table's memory; of the elements as they were
                                   before each, a copy into the second view.
SINK stores, arg KernelInfo|None   Void; the root of a kernel: STOREs or one SCATTER.
COPY (DEFINE_GLOBAL 1,), device    As a root: no kernel, but the copy of buffer 1 to buffer 0.
While a kernel is lowered RANGE, SPECIAL and INDEX (below) replace shapes: every shape is () from then on. Until the
linear program REDUCE (value, RANGE...), ADD|MUL|MAX accumulates the value over the ranges.

Linear program: `ProgramSpec.uops`, a tuple in order of execution, sources before their users
=============================================================================================
Values are scalars of one thread, or vectors: CAST, BITCAST and arithmetic work on all lanes alike, and only renderers
with `lanes` get such programs. bfloat16 and the floats of 8 bits do not occur: they are unsigned integers here. All
index arithmetic is int32.
DEFINE_GLOBAL (), index            A pointer to the argument of that index: dtype.base, dtype.size elements.
DEFINE_VAR (), (name, min, max)    The launch value of that name, int32.
DEFINE_LOCAL (), name              A pointer to dtype.size elements of dtype.base shared by the workgroup.
SPECIAL (), (name, size)           int32 in 0..size-1: "gidx0", "gidx1", "gidx2" the workgroup id in x, y, z, and
                                   "lidx0", "lidx1", "lidx2" the work-item id.
SPECIAL (end,), (name, size)       The same in 0..end-1, where a launch decides how many there are; `size` is the most.
CONST (), number                   A scalar.
RANGE (end,), (axis, Axis)         A loop begins here; its int32 counter runs from 0 to end-1 (not at all where the end
                                   is 0 or less).
ENDRANGE (RANGE,)                  Void; the loop ends here.
DEFINE_ACC (initial,), number      A register. It is set to the initial value here, before the loops that accumulate.
                                   As a source: its present value. All uses come before its ASSIGN in the loop.
ASSIGN (DEFINE_ACC, value)         Sets the register. As a source: that value; after the loop, the last one, or the
                                   register's value before the loop where that did not run.
INDEX (pointer, i)                 A pointer to element i.
INDEX (image, (x, y)[, gate])      A pixel of an image, which is a DEFINE_GLOBAL in memory of that kind: four elements,
                                   for LOADs and STOREs of vectors of 4 (`compile.images`). LOADs have no gate: what
                                   is outside reads as zeros.
INDEX (pointer, i, gate)           The same; where the bool gate is False the address is not used. With vectors: each
                                   lane has a gate of its own; a vector i is an element for each lane, in any order.
LOAD (INDEX,)                      An element; with a vector dtype dtype.count consecutive elements from i on. (Where
                                   the target's vectors are of memory, i is a multiple of the count; a processor's may
                                   begin anywhere.)
LOAD (INDEX with gate, alt)        The same, and `alt` (of the same dtype) where the gate is False.
LOAD (..., BARRIER)                A BARRIER as the last source only orders: the load comes after it.
STORE (INDEX, value)               Void; stores the value (a vector to consecutive elements), not where a gate is False.
                                   (Until the linear program a RANGE of kind ORDER that it stands in may be a source.)
BARRIER stores                     Void; all work-items of the workgroup arrive before any goes on. The loops of the
                                   stores have ended. (Until the linear program those RANGEs are sources too.)
VECTORIZE scalars                  Their vector.
GEP (vector,), (lane, ...)         A lane as a scalar, or several as a vector.
WMMA (a, b, c), unit               A matrix unit's a * b + c of a whole wave, on each lane's vectors of it: for targets
                                   that have the unit (`compile.units`).
WGMMA (a, b, memory, item),        A thread's numbers of a workgroup's tile of a whole product
  product                          (`ir.matrix.TileProduct`): a and b are INDEXes of what work-item number `item` copies
                                   first, `memory` is the DEFINE_LOCAL of the tiles. All work-items come here.
"""
from __future__ import annotations

import functools
import hashlib
import itertools
import math
import struct
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, cast

from tinyhw.core.errors import InvalidArgument
from tinyhw.core.locks import NODES, shared_lock
from tinyhw.ir import semantics
from tinyhw.ir.arguments import Axis, BufferArg, RangeArg, ScatterArg, SpecialArg, VariableArg
from tinyhw.ir.dtype import DType, Kind, PtrDType, dtypes
from tinyhw.ir.group import Cut
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.results import interval, movement_shape
from tinyhw.ir.semantics import Scalar

__all__ = ["Axis", "BufferArg", "GroupOp", "Ops", "RangeArg", "ScatterArg", "SpecialArg", "UOp", "VariableArg",
           "movement_shape"]


class _Reference(weakref.ref["UOp"]):
  """A weak reference that knows its key in the table of all UOps."""
  __slots__ = ("key",)
  key: Any


# The table's keys name sources by their ids, so that it keeps none alive: while a node lives its sources do too, and no
# other node has their ids. What is left of a node that went is found dead, replaced, or swept away with others: the
# callback is C's, because Python loses what a signal's handler raises inside one of its own (Ctrl-C).
_interned: dict[Any, _Reference] = {}
_interning = shared_lock(NODES)  # held while the table changes; looking a node up needs no lock
_went: deque[_Reference] = deque()
_goes: Final = _went.append  # one object for all nodes
_AT_ONCE = 256
_buffer_ids = itertools.count()
_INT: Final = frozenset({int})
_UNSHAPED: Final[tuple[int, ...]] = (-1,)
_UNKNOWN: Final = "unknown"
_BOTTOM, _TOP = -math.inf, math.inf
_CLOSING = frozenset({Ops.REDUCE, Ops.BARRIER})
_MOVING = frozenset({Ops.COPY, Ops.SHARD})  # to another device
_NONE: frozenset[UOp] = frozenset()


class UOp:
  """A node: see the module's page for what each op takes and means. Made through the helpers below, or directly."""
  __slots__ = ("op", "dtype", "src", "arg", "_shape", "_device", "_bounds", "_ranges", "_variables", "_key",
               "_order", "__weakref__")
  op: Ops
  dtype: DType
  src: tuple[UOp, ...]
  arg: Any
  _shape: tuple[int, ...]     # _UNSHAPED until it is asked for
  _device: str | None         # _UNKNOWN until it is asked for
  _bounds: tuple[Scalar, Scalar]
  _ranges: frozenset[UOp]
  _variables: frozenset[UOp]
  _key: bytes
  _order: tuple[int, str, bytes]

  def __new__(cls, op: Ops, dtype: DType = dtypes.void, src: tuple[UOp, ...] = (), arg: Any = None) -> UOp:
    # 1, 1.0 and True hash alike, 0.0 equals -0.0 and NaN differs from itself: a float constant is known by its bits.
    known = struct.pack("<d", arg) if op is Ops.CONST and dtype.kind is Kind.FLOAT else arg
    key = (op, dtype, known, *map(id, src))
    reference = _interned.get(key)
    if reference is not None and (found := reference()) is not None: return found
    self = object.__new__(cls)
    self.op, self.dtype, self.src, self.arg, self._shape, self._device = op, dtype, src, arg, _UNSHAPED, _UNKNOWN
    mine = _Reference(self, _goes)
    mine.key = key
    with _interning:
      if len(_went) >= _AT_ONCE: _sweep()
      if (reference := _interned.get(key)) is not None and (found := reference()) is not None: return found
      _interned[key] = mine
    return self

  def __reduce__(self) -> tuple[Any, ...]: return (UOp, (self.op, self.dtype, self.src, self.arg))

  def __repr__(self) -> str:
    arg = "" if self.arg is None else f", arg={self.arg!r}"
    return f"UOp({self.op.name}, {self.dtype}{arg}, src={len(self.src)})"

  def text(self) -> str:
    """The whole graph below this node, a numbered line for each."""
    number = {u: i for i, u in enumerate(self.toposort())}
    return "\n".join(f"{i:4d} {u.op.name:13s} {u.dtype!r:24s} {[number[s] for s in u.src]!s:18s} "
                     f"{'' if u.arg is None else u.arg}" for u, i in number.items())

  # *** derived ***

  @property
  def shape(self) -> tuple[int, ...]:
    """The shape, in elements; () for scalars and for every node of a lowered kernel."""
    if (known := self._shape) is not _UNSHAPED: return known
    for s in self.src:
      if s._shape is _UNSHAPED:
        _derive_below(self, lambda u: u._shape is _UNSHAPED, _set_shape)
        break
    else: _set_shape(self)     # the usual case: the sources know theirs
    return self._shape

  @property
  def size(self) -> int:
    """How many elements the shape holds."""
    return math.prod(self.shape)

  @property
  def device(self) -> str | None:
    """The device that holds the memory read; None when only constants are read. Mixed devices are an error."""
    if (known := self._device) is not _UNKNOWN: return known
    # A chain of movements and the like is where what is below it is.
    chain, u = [self], self
    while len(u.src) == 1 and u.op not in _MOVING and (u := u.src[0])._device is _UNKNOWN: chain.append(u)
    if u._device is _UNKNOWN:
      for s in u.src:
        if s._device is _UNKNOWN:
          _derive_below(u, lambda u: u._device is _UNKNOWN, _set_device)
          break
      else: _set_device(u)
    known = u._device
    for u in chain: u._device = known
    return known

  @property
  def vmin(self) -> Scalar:
    """A lower bound of an integer or bool (exact for constants; -inf for floats)."""
    return self._minmax()[0]

  @property
  def vmax(self) -> Scalar:
    """An upper bound of an integer or bool (inf for floats)."""
    return self._minmax()[1]

  def _minmax(self) -> tuple[Scalar, Scalar]:
    try: return self._bounds
    except AttributeError: pass
    try: _set_bounds(self)     # the usual case: the sources know theirs
    except AttributeError: _derive_below(self, lambda u: not hasattr(u, "_bounds"), _set_bounds)
    return self._bounds

  @property
  def ranges(self) -> frozenset[UOp]:
    """The open RANGEs and SPECIALs that the value depends on (a REDUCE and a BARRIER close their own)."""
    try: return self._ranges
    except AttributeError: pass
    try: _set_ranges(self)     # the usual case: the sources know theirs
    except AttributeError: _derive_below(self, lambda u: not hasattr(u, "_ranges"), _set_ranges)
    return self._ranges

  @property
  def variables(self) -> frozenset[UOp]:
    """The DEFINE_VARs that the value or the shape of something below depends on."""
    try: return self._variables
    except AttributeError: pass
    try: _set_variables(self)     # the usual case: the sources know theirs
    except AttributeError: _derive_below(self, lambda u: not hasattr(u, "_variables"), _set_variables)
    return self._variables

  @property
  def key(self) -> bytes:
    """A digest of the whole graph below, the same in every process: for caches and for orders that do not vary."""
    try: return self._key
    except AttributeError: pass
    try: _set_key(self)     # the usual case: the sources know theirs
    except AttributeError: _derive_below(self, lambda u: not hasattr(u, "_key"), _set_key)
    return self._key

  @property
  def order(self) -> tuple[int, str, bytes]:
    """What factors and terms are sorted by: the same in every process."""
    try: return self._order
    except AttributeError: self._order = (self.op.value, str(self.arg), self.key)
    return self._order

  @property
  def base(self) -> UOp:
    """The node under all movement operations."""
    u = self
    while u.op in GroupOp.MOVEMENT or u.op is Ops.DETACH: u = u.src[0]
    return u

  def _postorder(self, wanted: Callable[[UOp], bool]) -> list[UOp]:
    """The nodes below that are `wanted`, sources first. Not recursive: graphs are deep."""
    done: dict[UOp, None] = {}
    stack: list[UOp | None] = [self]
    pop, push = stack.pop, stack.append
    while stack:
      u = pop()
      if u is None: done[cast("UOp", pop())] = None  # its sources are done
      elif u not in done and wanted(u):
        if src := u.src:
          push(u)
          push(None)
          for s in reversed(src):
            if s not in done: push(s)
        else: done[u] = None
    return list(done)

  def toposort(self, gate: Callable[[UOp], bool] | None = None) -> dict[UOp, None]:
    """All nodes below, sources first, this one last, as an ordered set. Nodes that `gate` refuses are left out, and
    what is only reached through them."""
    return dict.fromkeys(self._postorder(gate or (lambda _: True)))

  # *** making ***

  def replace(self, **changes: Any) -> UOp:
    """This node with other `op`, `dtype`, `src` or `arg`."""
    new = UOp(changes.pop("op", self.op), changes.pop("dtype", self.dtype), changes.pop("src", self.src),
              changes.pop("arg", self.arg))
    if changes: raise TypeError(f"a UOp has no {', '.join(changes)}")
    return new

  @staticmethod
  def const(dtype: DType, value: Scalar, device: str | None = None, shape: tuple[int, ...] = ()) -> UOp:
    """A constant of the scalar type, wrapped or rounded to it; with a shape it is reshaped and expanded to it."""
    # Sizes that launches decide are equal whatever their values, which graphs keep: those are not looked up.
    make = _const if not shape or _INT.issuperset(map(type, shape)) else _const.__wrapped__
    return make(dtype, value, device, shape, value == 0 and math.copysign(1.0, value) < 0)

  @staticmethod
  def new_buffer(device: str, size: int, dtype: DType, cut: Cut | None = None) -> UOp:
    """A BUFFER of `size` elements that no other node names."""
    return UOp(Ops.BUFFER, dtype, (), BufferArg(next(_buffer_ids), device, size, cut))

  @staticmethod
  def variable(name: str, minimum: int, maximum: int) -> UOp:
    """A launch-time integer."""
    return UOp(Ops.DEFINE_VAR, dtypes.int32, (), VariableArg(name, minimum, maximum))

  @staticmethod
  def sink(*src: UOp, arg: Any = None) -> UOp:
    """The root of several graphs."""
    return UOp(Ops.SINK, dtypes.void, src, arg)

  @staticmethod
  def range(end: int | UOp, axis: int, kind: Axis = Axis.LOOP) -> UOp:
    """The counter of axis number `axis`, 0..end-1."""
    bound = end if isinstance(end, UOp) else getattr(end, "node", None) or UOp.const(dtypes.index, end)
    return UOp(Ops.RANGE, dtypes.index, (bound,), RangeArg(axis, kind))

  @staticmethod
  def special(name: str, size: int) -> UOp:
    """A hardware index."""
    if (end := getattr(size, "node", None)) is None: return UOp(Ops.SPECIAL, dtypes.index, (), SpecialArg(name, size))
    return UOp(Ops.SPECIAL, dtypes.index, (end,), SpecialArg(name, size.high))  # type: ignore[attr-defined]  # a Size

  def const_like(self, value: Scalar) -> UOp:
    """A constant of this node's dtype and shape."""
    return UOp.const(self.dtype, value, None, self.shape)

  def cast(self, dtype: DType) -> UOp:
    """CAST, or this node when it has the type."""
    return self if self.dtype is dtype else UOp(Ops.CAST, dtype, (self,))

  def bitcast(self, dtype: DType) -> UOp:
    """BITCAST, or this node when it has the type."""
    return self if self.dtype is dtype else UOp(Ops.BITCAST, dtype, (self,))

  def alu(self, op: Ops, *others: UOp) -> UOp:
    """Arithmetic of this node and others: all of one shape and dtype."""
    src = (self, *others)
    dtype = dtypes.bool.vec(self.dtype.count) if op in GroupOp.COMPARE else src[1 if op is Ops.WHERE else 0].dtype
    return UOp(op, dtype, src)

  def _with(self, op: Ops, other: UOp | Scalar, reverse: bool = False) -> UOp:
    fixed = other if isinstance(other, UOp) else getattr(other, "node", None) or self.const_like(other)
    return fixed.alu(op, self) if reverse else self.alu(op, fixed)

  def __add__(self, x: UOp | Scalar) -> UOp: return self._with(Ops.ADD, x)
  def __radd__(self, x: Scalar) -> UOp: return self._with(Ops.ADD, x, True)
  def __sub__(self, x: UOp | Scalar) -> UOp: return self._with(Ops.SUB, x)
  def __rsub__(self, x: Scalar) -> UOp: return self._with(Ops.SUB, x, True)
  def __mul__(self, x: UOp | Scalar) -> UOp: return self._with(Ops.MUL, x)
  def __rmul__(self, x: Scalar) -> UOp: return self._with(Ops.MUL, x, True)
  def __truediv__(self, x: UOp | Scalar) -> UOp: return self._with(Ops.FDIV, x)
  def __rtruediv__(self, x: Scalar) -> UOp: return self._with(Ops.FDIV, x, True)
  def __floordiv__(self, x: UOp | Scalar) -> UOp: return self._with(Ops.IDIV, x)      # truncates toward zero: IDIV
  def __rfloordiv__(self, x: Scalar) -> UOp: return self._with(Ops.IDIV, x, True)
  def __mod__(self, x: UOp | Scalar) -> UOp: return self._with(Ops.MOD, x)            # sign of the dividend: MOD
  def __and__(self, x: UOp | Scalar) -> UOp: return self._with(Ops.AND, x)
  def __or__(self, x: UOp | Scalar) -> UOp: return self._with(Ops.OR, x)
  def __xor__(self, x: UOp | Scalar) -> UOp: return self._with(Ops.XOR, x)
  def __lshift__(self, x: UOp | Scalar) -> UOp: return self._with(Ops.SHL, x)
  def __rshift__(self, x: UOp | Scalar) -> UOp: return self._with(Ops.SHR, x)
  def __lt__(self, x: UOp | Scalar) -> UOp: return self._with(Ops.CMPLT, x)
  def __gt__(self, x: UOp | Scalar) -> UOp: return self._with(Ops.CMPLT, x, True)
  def __ge__(self, x: UOp | Scalar) -> UOp: return (self < x).logical_not()    # True for a float NaN
  def __le__(self, x: UOp | Scalar) -> UOp: return (self > x).logical_not()
  def __neg__(self) -> UOp: return self.alu(Ops.NEG)
  def eq(self, x: UOp | Scalar) -> UOp:
    """CMPEQ. (`==` compares identity, as for any object.)"""
    return self._with(Ops.CMPEQ, x)
  def ne(self, x: UOp | Scalar) -> UOp:
    """CMPNE."""
    return self._with(Ops.CMPNE, x)
  def logical_not(self) -> UOp:
    """The inverse of a bool."""
    return self._with(Ops.CMPNE, True)
  def maximum(self, x: UOp | Scalar) -> UOp:
    """MAX."""
    return self._with(Ops.MAX, x)
  def where(self, yes: UOp, no: UOp | Scalar) -> UOp:
    """WHERE with this bool as the condition."""
    return self.alu(Ops.WHERE, yes, no if isinstance(no, UOp) else yes.const_like(no))
  def exp2(self) -> UOp: return self.alu(Ops.EXP2)
  def log2(self) -> UOp: return self.alu(Ops.LOG2)
  def sin(self) -> UOp: return self.alu(Ops.SIN)
  def sqrt(self) -> UOp: return self.alu(Ops.SQRT)
  def recip(self) -> UOp: return self.alu(Ops.RECIP)
  def trunc(self) -> UOp: return self.alu(Ops.TRUNC)

  # *** movement (each checks its argument when its shape is asked for; identities return the node) ***

  def _move(self, op: Ops, arg: tuple[Any, ...], same: bool) -> UOp:
    if same: return self
    u = UOp(op, self.dtype, (self,), arg)
    _ = u.shape           # a wrong argument is an error here, not at the first use
    return u

  def reshape(self, shape: tuple[int, ...]) -> UOp:
    """The same elements in row-major order under another shape."""
    if self.shape == shape: return self
    below = self
    while below.op is Ops.RESHAPE: below = below.src[0]
    return below._move(Ops.RESHAPE, tuple(shape), below.shape == shape)
  def permute(self, order: tuple[int, ...]) -> UOp:
    """Axis i of the result is axis `order[i]`."""
    return self._move(Ops.PERMUTE, tuple(order), tuple(order) == tuple(range(len(self.shape))))
  def expand(self, shape: tuple[int, ...]) -> UOp:
    """Repeats axes of size 1."""
    return self._move(Ops.EXPAND, tuple(shape), self.shape == tuple(shape))
  def pad(self, padding: tuple[tuple[int, int], ...]) -> UOp:
    """Adds (before, after) zeros on each axis."""
    return self._move(Ops.PAD, tuple(padding), all(p == (0, 0) for p in padding))
  def shrink(self, bounds: tuple[tuple[int, int], ...]) -> UOp:
    """Keeps start <= i < stop on each axis."""
    return self._move(Ops.SHRINK, tuple(bounds), all(b == (0, s) for b, s in zip(bounds, self.shape)))
  def flip(self, axes: tuple[bool, ...]) -> UOp:
    """Reverses the axes marked True."""
    return self._move(Ops.FLIP, tuple(axes), not any(axes))

  # *** tensor graph ***

  def reduce(self, op: Ops, axes: Iterable[int]) -> UOp:
    """REDUCE_AXIS by ADD, MUL or MAX; the axes stay with size 1."""
    axes = tuple(sorted(set(axes)))
    return UOp(Ops.REDUCE_AXIS, self.dtype, (self,), (op, axes)) if axes else self
  def contiguous(self) -> UOp:
    """CONTIGUOUS."""
    return UOp(Ops.CONTIGUOUS, self.dtype, (self,))
  def own(self) -> UOp:
    """CONTIGUOUS with a number: memory and a node that are nobody else's, whoever has the same value."""
    return UOp(Ops.CONTIGUOUS, self.dtype, (self,), next(_buffer_ids))
  def copy_to(self, device: str) -> UOp:
    """COPY to a device."""
    return UOp(Ops.COPY, self.dtype, (self,), device)
  def shard(self, group: str, axis: int | None) -> UOp:
    """SHARD onto a group of devices."""
    return UOp(Ops.SHARD, self.dtype, (self,), (group, axis))
  def assign(self, value: UOp) -> UOp:
    """ASSIGN of a value to this node's memory."""
    return UOp(Ops.ASSIGN, self.dtype, (self, value))
  def scatter(self, index: UOp, value: UOp, how: ScatterArg) -> UOp:
    """SCATTER of values into this table."""
    return UOp(Ops.SCATTER, self.dtype, (self, index, value), how)
  def detach(self) -> UOp:
    """DETACH."""
    return UOp(Ops.DETACH, self.dtype, (self,))
  def apart(self) -> UOp:
    """DETACH with a number of its own: a node that no other constant of the same value is."""
    return UOp(Ops.DETACH, self.dtype, (self,), next(_buffer_ids))

  # *** programs ***

  def index(self, i: UOp, gate: UOp | None = None) -> UOp:
    """INDEX of this pointer."""
    return UOp(Ops.INDEX, self.dtype, (self, i) if gate is None else (self, i, gate))
  def load(self, *src: UOp, dtype: DType | None = None) -> UOp:
    """LOAD from this INDEX or VIEW; `src` may hold the alternative value and a BARRIER."""
    assert isinstance(self.dtype, PtrDType)
    return UOp(Ops.LOAD, dtype or self.dtype.base, (self, *src))
  def store(self, value: UOp) -> UOp:
    """STORE to this INDEX or VIEW."""
    return UOp(Ops.STORE, dtypes.void, (self, value))
  def gep(self, lanes: int | tuple[int, ...]) -> UOp:
    """A lane of this vector, or a vector of lanes."""
    lanes = (lanes,) if isinstance(lanes, int) else lanes
    return UOp(Ops.GEP, self.dtype.scalar.vec(len(lanes)), (self,), lanes)

  def substitute(self, mapping: dict[UOp, UOp]) -> UOp:
    """The graph with nodes replaced (a replacement is not looked into)."""
    done: dict[UOp, UOp] = dict(mapping)
    for u in self._postorder(lambda v: v not in mapping):
      src = tuple(done.get(s, s) for s in u.src)
      done[u] = u if src == u.src else UOp(u.op, u.dtype, src, u.arg)
    return done[self]


@functools.lru_cache(maxsize=1024)
def _const(dtype: DType, value: Scalar, device: str | None, shape: tuple[int, ...], negative: bool) -> UOp:
  """See `UOp.const`. Equal numbers of several types are one constant, but -0.0 is not 0.0: it is `negative`."""
  src = () if device is None else (UOp(Ops.DEVICE, dtypes.void, (), device),)
  u = UOp(Ops.CONST, dtype, src, semantics.canonical(value, dtype))
  return u.reshape((1,) * len(shape)).expand(shape) if shape else u


_SIZED = GroupOp.MOVEMENT | {Ops.VIEW, Ops.BUFFER}


def named_in(arg: Any) -> frozenset[UOp]:
  """The DEFINE_VARs of the sizes in an argument."""
  if type(arg) is int or type(arg) is str or arg is None: return frozenset()
  if isinstance(arg, tuple):
    found: frozenset[UOp] = frozenset()
    for a in arg:
      if type(a) is not int: found |= named_in(a)
    return found
  if (node := getattr(arg, "node", None)) is not None: return cast("UOp", node).variables
  if hasattr(arg, "views"): return named_in(tuple((v.shape, v.strides, v.offset, v.mask) for v in arg.views))
  return frozenset()


def _sweep() -> None:
  """Take nodes that went out of the table, whose lock is held."""
  while _went:
    reference = _went.popleft()
    if _interned.get(reference.key) is reference: del _interned[reference.key]  # else the key is a new node's


def _derive_below(root: UOp, lacks: Callable[[UOp], bool], derive: Callable[[UOp], None]) -> None:
  """Give the node what it lacks, and those below that lack it too."""
  stack = [root]
  while stack:
    u = stack[-1]
    if missing := [s for s in u.src if lacks(s)]: stack += missing
    else:
      derive(u)
      stack.pop()


def _set_device(u: UOp) -> None: u._device = _derive_device(u)
def _set_shape(u: UOp) -> None: u._shape = _derive_shape(u)
def _set_bounds(u: UOp) -> None: u._bounds = _derive_bounds(u)


def _joined(sets: list[frozenset[UOp]]) -> frozenset[UOp]:
  """What is in any of them: where one has all of it, as it mostly is, that one."""
  found = max(sets, key=len, default=_NONE)
  for s in sets:
    if s is not found and not s <= found: found |= s
  return found


def _set_ranges(u: UOp) -> None:
  src = u.src
  if u.op is Ops.RANGE or u.op is Ops.SPECIAL: u._ranges = frozenset({u})
  else:
    found = _joined([s._ranges for s in src])
    u._ranges = found.difference(src[1:]) or _NONE if u.op in _CLOSING else found


def _set_variables(u: UOp) -> None:
  if u.op is Ops.DEFINE_VAR: u._variables = frozenset({u})
  else:
    found = _joined([s._variables for s in u.src])
    own = named_in(u.arg) if u.op in _SIZED else None
    u._variables = found | own if own else found


def _set_key(u: UOp) -> None:
  own = f"{u.op.name} {u.dtype!r} {u.arg!r}".encode()
  # The text of a size names its Variables without their bounds.
  if u.op in _SIZED and (named := named_in(u.arg)): own += str(sorted(v.arg for v in named)).encode()
  u._key = hashlib.blake2b(own + b"".join([s._key for s in u.src]), digest_size=16).digest()


def _derive_device(u: UOp) -> str | None:
  op, found = u.op, None
  if op is Ops.BUFFER: return str(u.arg.device)
  if op is Ops.DEVICE or op is Ops.COPY: return str(u.arg)
  if op is Ops.SHARD: return str(u.arg[0])
  for s in u.src:
    if (device := s._device) is None or device == found: continue
    if found is not None:
      if op is Ops.SINK: return None
      mixed = ", ".join(sorted({s._device for s in u.src if s._device is not None}))
      raise InvalidArgument(f"{op.name} mixes devices {mixed}: copy its operands to one of them")
    found = device
  return found


def _derive_shape(u: UOp) -> tuple[int, ...]:
  op = u.op
  if op in GroupOp.MOVEMENT: return movement_shape(op, u.src[0]._shape, u.arg)
  if op in GroupOp.ELEMENTWISE:
    shape = u.src[0]._shape
    for s in u.src[1:]:
      if s._shape != shape:
        raise InvalidArgument(f"{op.name} of different shapes {', '.join(str(s._shape) for s in u.src)}",
                              hint="expand them first")
    return shape
  if op is Ops.BUFFER: return (u.arg.size,)
  if op is Ops.DEFINE_GLOBAL: return (u.dtype.size,) if isinstance(u.dtype, PtrDType) else ()
  if op is Ops.VIEW: return tuple(u.arg.shape)
  if op is Ops.REDUCE_AXIS:
    shape, axes = u.src[0]._shape, u.arg[1]
    if any(not 0 <= a < len(shape) for a in axes):
      raise InvalidArgument(f"REDUCE_AXIS over axes {axes} of shape {shape}")
    return tuple(1 if i in axes else s for i, s in enumerate(shape))
  if op is Ops.ASSIGN and u.src[0].op is not Ops.DEFINE_ACC:
    if u.src[0]._shape != u.src[1]._shape:
      raise InvalidArgument(f"ASSIGN of shape {u.src[1]._shape} to a target of shape {u.src[0]._shape}")
    return u.src[0]._shape
  if op is Ops.SCATTER and u.dtype is not dtypes.void: return u.src[1 if u.arg.before else 0]._shape
  if op in (Ops.CONTIGUOUS, Ops.COPY, Ops.SHARD, Ops.DETACH, Ops.GATHER, Ops.LOAD): return u.src[0]._shape
  return ()


def _derive_bounds(u: UOp) -> tuple[Scalar, Scalar]:
  op, dtype = u.op, u.dtype
  if op is Ops.CONST: return u.arg, u.arg
  if dtype.kind is Kind.FLOAT or dtype.kind is Kind.VOID or dtype.count > 1: return _BOTTOM, _TOP
  if op is Ops.SPECIAL: return 0, u.arg.size - 1
  if op is Ops.DEFINE_VAR: return u.arg.min, u.arg.max
  if op is Ops.RANGE: return 0, max(u.src[0]._bounds[1] - 1, 0)
  low, high = interval(op, dtype, bool(u.src) and u.src[0].dtype.is_float, [s._bounds for s in u.src])
  # A result that may leave the type's range wraps: nothing is known of it then.
  return (low, high) if low >= dtype.min and high <= dtype.max else (dtype.min, dtype.max)


def sources(nodes: Sequence[UOp]) -> dict[UOp, None]:
  """All nodes below several roots, sources first, as an ordered set."""
  found: dict[UOp, None] = {}
  for u in nodes: found.update(dict.fromkeys(u._postorder(lambda v: v not in found)))
  return found
