"""From a tensor graph to kernels: which nodes get memory of their own, and the kernel graph that computes each.

Elementwise operations and movements are computed where they are used; a kernel holds one reduction at most, and what is
done to its result as long as no axis is expanded again. Realized are: outputs, CONTIGUOUS, COPY and its source, ASSIGN,
reductions whose result needs more than that, costly values before they are expanded, and values that would otherwise be
computed in many different places of one kernel. What is realized alike shares a kernel with several results
(`together`).

Long sums to few results are two kernels.
"""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from itertools import combinations

from tinyhw.compile.program import Schedule, ScheduleItem
from tinyhw.compile.together import goes_by_rows, groups, squeezed
from tinyhw.core.errors import InvalidArgument
from tinyhw.ir import semantics
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.rewrite import PatternMatcher, UPat, graph_rewrite
from tinyhw.ir.shape import ShapeTracker
from tinyhw.ir.size import changed, common_divisor, highest, value_of
from tinyhw.ir.spec import check_tensor
from tinyhw.ir.uop import GroupOp, Ops, UOp, VariableArg, sources

_COSTLY = GroupOp.LIBRARY | {Ops.SQRT, Ops.RECIP, Ops.FDIV, Ops.IDIV, Ops.MOD}
_MANY = 64              # operations from which on a value is costly whatever they are
_SMALL, _OUTWEIGHS = 24, 32     # nodes of a value that is computed again for each reduction of so many elements
_MAX_READS = 8          # values in memory from which one that is wanted more than once is computed again
_DEAR, _LIBRARY_WORK = 24, 20   # operations of a value that several kernels do not compute again; what exp counts for
_LOADS = 3              # values in memory that such a value is made of, at least: what is made of fewer costs memory
_LOOKED, _MAX_PADS = 256, 16   # nodes that are looked at for that; pieces of a concatenation whose kernels may differ
_MAX_CONTEXTS = 16      # different indices at which one kernel may compute a value
_LONG, _FEW = 1 << 18, 32       # elements of a reduction, and results, from and up to which it is done in two steps
_STRETCHES, _STRETCH = 256, 1 << 12   # parts of the first step for all results, at most; elements of one, at least
_KEEPS_SIZE = frozenset({Ops.RESHAPE, Ops.PERMUTE, Ops.FLIP})


def identity_element(op: Ops, like: UOp) -> UOp:
  """What a reduction starts from: 0, 1 or the least value; the zero of floats is -0.0, which changes no sum."""
  dtype = like.dtype.scalar
  return UOp.const(dtype, {Ops.ADD: -0.0 if dtype.is_float else 0, Ops.MUL: 1, Ops.MAX: dtype.min}[op])


def _empty_reduce(u: UOp) -> UOp | None:
  if u.src[0].size != 0 or u.size == 0: return None
  return UOp.const(u.dtype, identity_element(u.arg[0], u).arg or 0, u.device, u.shape)     # -0.0 or 0 is 0


def _trivial_reduce(u: UOp) -> UOp | None:
  """A reduction over axes of size 1 is its source."""
  axes = tuple(a for a in u.arg[1] if u.src[0].shape[a] != 1)
  if axes == u.arg[1]: return None
  return u.replace(arg=(u.arg[0], axes)) if axes else u.src[0]


def _long_reduce(u: UOp) -> UOp | None:
  """A long reduction to few results in two steps: stretches of it, which are as many kernels' worth of work, first."""
  x, (op, axes) = u.src[0], u.arg
  length = highest(math.prod(x.shape[a] for a in axes))        # at most, where launches decide it
  if length < _LONG or highest(u.size) > _FEW or highest(x.size) > dtypes.index.max: return None
  axis = max(axes, key=lambda a: common_divisor(x.shape[a]))
  n, most = x.shape[axis], min(_STRETCHES // highest(u.size), length // _STRETCH)
  parts = next((d for d in range(most, 7, -1) if n % d == 0), 0)
  if not parts: return None
  split = x.reshape((*x.shape[:axis], parts, n // parts, *x.shape[axis + 1:]))
  inner = split.reduce(op, tuple(a + (a >= axis) for a in axes))
  return inner.contiguous().reduce(op, (axis,)).reshape(u.shape)


def _empty_scatter(u: UOp) -> UOp | None:
  table, places = u.src[:2]
  if u.size and table.size and places.size: return None
  return UOp.const(u.dtype, 0, u.device, u.shape) if u.arg.before else table


def _everywhere(u: UOp) -> UOp | None:
  """The constant that a node is at each of its elements."""
  while u.op in GroupOp.MOVEMENT and u.op is not Ops.PAD: u = u.src[0]
  return u if u.op is Ops.CONST else None


def _neutral(op: Ops, c: UOp) -> bool:
  """Whether an operation with this constant behind leaves every number as it is, the zeros' signs included."""
  one, zero = bool(c.arg == 1), bool(c.arg == 0)
  match op:
    case Ops.MUL | Ops.FDIV | Ops.IDIV: return one
    case Ops.ADD | Ops.SUB: return zero and (not c.dtype.is_float or (math.copysign(1.0, c.arg) < 0) is (op is Ops.ADD))
    case Ops.OR | Ops.XOR | Ops.SHL | Ops.SHR: return zero
    case Ops.CMPNE: return zero and c.dtype.is_bool
    case Ops.CMPEQ: return one and c.dtype.is_bool
    case Ops.AND: return one if c.dtype.is_bool else semantics.wrap(int(c.arg) + 1, c.dtype) == 0
    case _: return False


def _absorbed(op: Ops, c: UOp) -> bool:
  """Whether an operation with this constant behind makes 0 of every integer."""
  return c.arg == 1 and op is Ops.MOD or c.arg == 0 and op in (Ops.MUL, Ops.AND)


def _constant_cast(u: UOp) -> UOp | None:
  if (c := _everywhere(u.src[0])) is None or u.device is None: return None
  convert = semantics.cast if u.op is Ops.CAST else semantics.bitcast
  return UOp.const(u.dtype, convert(c.arg, c.dtype, u.dtype), u.device, u.shape)


def _inverted(u: UOp) -> UOp | None:
  """What a node is the inverse of, each bit of it."""
  if len(u.src) != 2 or u.op not in (Ops.XOR, Ops.CMPNE, Ops.CMPEQ): return None
  if u.op is not Ops.XOR and not u.src[0].dtype.is_bool: return None
  for x, other in (u.src, u.src[::-1]):
    if (c := _everywhere(other)) is None or x.device != u.device: continue
    ones = bool(c.arg) if c.dtype.is_bool else semantics.wrap(int(c.arg) + 1, c.dtype) == 0
    if ones if u.op is not Ops.CMPEQ else not c.arg: return x
  return None


def _of_the_same(u: UOp) -> UOp | None:
  """An operation on one value twice, where that is the value."""
  if u.op is Ops.WHERE: return u.src[1] if u.src[1] is u.src[2] and u.src[1].device == u.device else None
  alike = len(u.src) == 2 and u.src[0] is u.src[1] and u.op in (Ops.AND, Ops.OR, Ops.MAX)
  return u.src[0] if alike and not u.dtype.is_float else None      # not of a float: a NaN's bits might change


def _nothing(u: UOp) -> UOp | None:
  """What an operation leaves as it is, or makes of constants alone: that takes no kernel."""
  if u.op is u.src[0].op is Ops.NEG: return u.src[0].src[0]
  if (found := _of_the_same(u)) is not None: return found
  if (once := _inverted(u)) is not None and (found := _inverted(once)) is not None: return found
  known = [_everywhere(s) for s in u.src]
  if all(c is not None for c in known):
    if u.op in GroupOp.LIBRARY or u.device is None: return None
    operand = u.src[1 if u.op is Ops.WHERE else 0].dtype
    value = semantics.alu(u.op, operand, *(c.arg for c in known if c is not None))
    return UOp.const(u.dtype, value, u.device, u.shape)
  if u.op is Ops.WHERE and known[0] is not None:
    chosen = u.src[1 if known[0].arg else 2]
    return chosen if chosen.device == u.device else None
  if u.op is Ops.WHERE and u.dtype.is_bool and known[1] is not None and known[2] is not None:
    return u.src[0] if known[1].arg and not known[2].arg and u.src[0].device == u.device else None
  if len(known) != 2: return None
  (x, y), (first, second) = u.src, known
  if second is None and u.op in GroupOp.COMMUTATIVE: x, second = y, first
  if second is None or x.dtype is not u.dtype: return None
  if not u.dtype.is_float and u.device is not None and _absorbed(u.op, second):
    return UOp.const(u.dtype, 0, u.device, u.shape)
  return x if _neutral(u.op, second) and x.device == u.device else None  # a Variable has no device of its own


def _there_and_back(u: UOp) -> UOp | None:
  """Bits taken for another type's and back, and integers made wider and back, are what they were."""
  inner = u.src[0]
  if inner.op is not u.op or (x := inner.src[0]).dtype is not u.dtype: return None
  wider = x.dtype.is_int and inner.dtype.is_int and inner.dtype.bits > x.dtype.bits
  return x if wider or u.op is Ops.BITCAST and x.shape == u.shape else None


def constant_of(u: UOp) -> semantics.Scalar | None:
  """The number that a graph of constants alone is at each of its elements; None where it is not one."""
  found = graph_rewrite(u, _prepare)
  while found.op is Ops.CONTIGUOUS: found = found.src[0]
  return None if (c := _everywhere(found)) is None or c.dtype is not u.dtype else c.arg


_OWN = (Ops.CONTIGUOUS, Ops.COPY)  # what has memory of its own

_prepare = PatternMatcher([
  (UPat(Ops.GATHER, "u"), lambda u: u.src[0]),
  (UPat(GroupOp.ALU, "u"), _nothing),
  (UPat(Ops.SCATTER, "u"), _empty_scatter),
  (UPat(Ops.DETACH, "u"), lambda u: u.src[0]),
  (UPat(Ops.REDUCE_AXIS, "u"), _empty_reduce),
  (UPat(Ops.REDUCE_AXIS, "u"), _trivial_reduce),
  (UPat(Ops.REDUCE_AXIS, "u"), _long_reduce),
  (UPat((Ops.CAST, Ops.BITCAST), "u"), lambda u: u.src[0] if u.src[0].dtype is u.dtype else None),
  (UPat((Ops.CAST, Ops.BITCAST), "u"), _there_and_back),
  (UPat((Ops.CAST, Ops.BITCAST), "u"), _constant_cast),
  (UPat(Ops.CONTIGUOUS, "u"), lambda u: u.src[0] if u.arg is None and u.src[0].op in _OWN else None),
])

_views = PatternMatcher([
  (UPat(GroupOp.MOVEMENT, "u", (UPat(Ops.LOAD, "x"),)), lambda u, x: x.src[0].replace(
    arg=x.src[0].arg.apply(u.op, u.arg)).load()),
  (UPat(Ops.CONST, "u"), lambda u: u.replace(src=()) if u.src else None),
])


def _unreshaped(u: UOp) -> UOp:
  while u.op is Ops.RESHAPE: u = u.src[0]
  return u


def _inside(u: UOp) -> UOp:
  """What the kernel of a realized node computes."""
  return u.src[0] if u.op is Ops.CONTIGUOUS else u


def _target_buffer(assign: UOp) -> UOp:
  u = assign
  while u.op is not Ops.BUFFER:
    if u.op is not Ops.ASSIGN and u.op not in (Ops.RESHAPE, Ops.PERMUTE, Ops.SHRINK, Ops.FLIP):
      raise InvalidArgument(f"ASSIGN to {u.op.name}: the target must be a view of a BUFFER without EXPAND and PAD")
    u = u.src[0]
  return u


def _memory_view(u: UOp) -> UOp:
  """A view of an ASSIGN's target as movements of the BUFFER itself."""
  if u.op is Ops.ASSIGN: return _memory_view(u.src[0])
  return u if u.op is Ops.BUFFER else u.replace(src=(_memory_view(u.src[0]),))


class _Decider:
  """Chooses the nodes to realize."""

  def __init__(self, outputs: list[UOp]) -> None:
    self.nodes = sources(outputs)
    self.users: dict[UOp, dict[UOp, None]] = {u: {} for u in self.nodes}
    for u in self.nodes:
      for s in u.src: self.users[s][u] = None
    self.realized: dict[UOp, None] = {}
    self.in_rows: set[UOp] = set()       # what is computed row by row in the kernel that needs it
    for u in outputs: self._realize(u)
    for u in self.nodes:
      if u.op in (Ops.CONTIGUOUS, Ops.ASSIGN, Ops.COPY, Ops.SCATTER): self.realized[u] = None
      if u.op is Ops.COPY and _unreshaped(u.src[0]).op is not Ops.BUFFER: self._realize(u.src[0])
    for u in self.nodes:
      # What has an order has no other loops in it.
      for s in u.src[1:] if u.op is Ops.SCATTER else ():
        if self._below(s): self._realize(s)
    for u in self.nodes:
      if u.op is Ops.REDUCE_AXIS: self._place(u)
    self._costs()
    self._shared()

  def _realize(self, u: UOp) -> None:
    u = _unreshaped(u)
    if u.op is not Ops.BUFFER: self.realized[u] = None

  def _place(self, reduction: UOp) -> None:
    """Lets what follows a reduction share its kernel as far as possible, and realizes the last of that."""
    if reduction in self.realized or reduction in self.in_rows: return
    if self._closes(reduction) or self._rows(reduction): return
    last = at = reduction
    while True:
      users = list(self.users[at])
      if len(users) != 1: break
      user = users[0]
      if user.op in GroupOp.ELEMENTWISE and not self._meets_reduction(user, at): last = at = user
      elif user.op in _KEEPS_SIZE or user.op is Ops.SHRINK: at = user
      else: break
      if at in self.realized: return
    # A realized user (CONTIGUOUS, ASSIGN, an output) takes the value as it is.
    if len(users) == 1 and users[0] in self.realized and users[0].op in (Ops.CONTIGUOUS, Ops.ASSIGN): return
    self.realized[last] = None

  def _closes(self, reduction: UOp) -> bool:
    """Whether all that uses the reduction ends in one realized node, with no axis expanded and no other reduction."""
    ends: dict[UOp, None] = {}
    seen: dict[UOp, None] = {}
    stack = [reduction]
    while stack:
      u = stack.pop()
      if u in seen: continue
      seen[u] = None
      if u in self.realized and u is not reduction:
        ends[u] = None
        if len(ends) > 1: return False
        continue
      for user in self.users[u]:
        follows = user.op in GroupOp.ELEMENTWISE or user.op in _KEEPS_SIZE or user.op in (Ops.CONTIGUOUS, Ops.ASSIGN)
        if not follows or len(seen) > 200: return False
        if user.op in GroupOp.ELEMENTWISE and self._meets_reduction(user, u): return False
        stack.append(user)
    return len(ends) == 1

  def _rows(self, reduction: UOp) -> bool:
    """Whether a reduction and all that follows it, other reductions over the same axes too, may be one kernel that goes
    from row to row: a softmax, a normalization. Its end is realized."""
    x, axes = reduction.src[0], reduction.arg[1]
    if not goes_by_rows(reduction.device, x.shape, reduction.size): return False
    group: dict[UOp, None] = {}
    ends: dict[UOp, None] = {}
    stack = [reduction]
    while stack:
      u = stack.pop()
      if u in group: continue
      group[u] = None
      if len(group) > 100: return False
      if u in self.realized: ends[u] = None
      else:
        for user in self.users[u]:
          taken = user in self.realized and user.op in (Ops.CONTIGUOUS, Ops.ASSIGN)
          if taken or self._in_row(user, u, x.shape, axes): stack.append(user)
          else: ends[u] = None
        if not self.users[u]: return False
      if len(ends) > 1: return False
    (end,) = ends
    # The end is rows, or one value for each, and all that meets in them is of this group.
    if end.shape not in (x.shape, reduction.shape) or not any(u.op is Ops.EXPAND for u in group): return False
    if any(not self._below(s) <= group.keys() for u in group for s in u.src if s not in group or u is reduction):
      return False
    self.realized[end] = None
    self.in_rows |= group.keys()
    return True

  @staticmethod
  def _in_row(user: UOp, u: UOp, shape: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    """Whether a node that uses `u` stays in the rows, which are `axes` of `shape`."""
    if user.op in GroupOp.ELEMENTWISE: return True
    if user.op is Ops.EXPAND:
      return user.shape == shape and all(u.shape[a] == size for a, size in enumerate(shape) if a not in axes)
    return user.op is Ops.REDUCE_AXIS and user.arg[1] == axes and u.shape == shape

  def _meets_reduction(self, user: UOp, known: UOp) -> bool:
    """Whether an operand of `user` other than `known` needs a reduction in the same kernel."""
    own = self._below(known)
    return any(self._below(s) - own for s in user.src if s is not known)

  def _below(self, u: UOp) -> frozenset[UOp]:
    """The reductions computed in the kernel that computes `u`."""
    found: set[UOp] = set()
    stack: list[UOp] = [u]
    seen: set[UOp] = set()
    while stack:
      v = stack.pop()
      if v in seen or v in self.realized: continue
      seen.add(v)
      if v.op is Ops.REDUCE_AXIS: found.add(v)
      stack += v.src
    return frozenset(found)

  def _long(self, u: UOp) -> bool:
    """Whether more than some operations compute a value of `u`, in the kernel that computes it: random numbers."""
    stack, seen, found = [u], set[UOp](), 0
    while stack and found <= _MANY:
      v = stack.pop()
      if v in seen or v in self.realized: continue
      seen.add(v)
      found += v.op in GroupOp.ELEMENTWISE
      stack += v.src
    return found > _MANY

  def _outweighed(self, u: UOp, below: UOp) -> bool:
    """Whether an expanded value of few operations meets, before any reduction, one so long in the same kernel that it
    costs less than a kernel of its own: what a normalization does to a convolution."""
    stack, seen = [below], set[UOp]()
    while stack:
      v = stack.pop()
      if v in seen or v in self.realized: continue
      seen.add(v)
      if v.op is Ops.REDUCE_AXIS or v.op in GroupOp.LIBRARY or len(seen) > _SMALL: return False
      stack += v.src
    for _ in range(_SMALL):
      if u in self.realized or len(self.users[u]) != 1: return False
      (user,) = self.users[u]
      if user.op not in GroupOp.ELEMENTWISE and user.op not in GroupOp.MOVEMENT: return False
      met = self._below(user)
      if met: return all(highest(math.prod(r.src[0].shape[a] for a in r.arg[1])) >= _OUTWEIGHS for r in met)
      u = user
    return False

  def _costs(self) -> None:
    """Realizes costly values before they are expanded, and values wanted at too many different indices."""
    costly: dict[UOp, bool] = {}
    contexts: dict[UOp, int] = {}
    reads: dict[UOp, frozenset[UOp]] = {}
    for u in self.nodes:
      if u in self.realized or not u.src:
        costly[u], contexts[u] = False, 0 if not u.src and u.op is not Ops.BUFFER else 1
        reads[u] = frozenset({u} if u in self.realized or u.op is Ops.BUFFER else ())
        continue
      reads[u] = frozenset().union(*(reads[s] for s in u.src))
      if u.op is Ops.EXPAND and u in self.in_rows: costly[u.src[0]] = False
      if u.op is Ops.EXPAND and u.size != u.src[0].size and (costly[u.src[0]] or self._long(u.src[0])):
        below = u.src[0]
        while below.op in GroupOp.MOVEMENT: below = below.src[0]
        if self._outweighed(u, below): pass
        elif self._below(below) or self._long(below) or any(v.op is Ops.BUFFER for v in below.toposort()):
          self.realized[below] = None
        costly[u.src[0]] = False
      costly[u] = u.op in _COSTLY or any(costly[s] for s in u.src)
      moved = [s for s in u.src if s.op in GroupOp.MOVEMENT and s.base.op not in (Ops.BUFFER, Ops.CONST)]
      contexts[u] = max([contexts[s] for s in u.src if s not in moved], default=0) + sum(contexts[s] for s in moved)
      if contexts[u] > _MAX_CONTEXTS and u.op in GroupOp.ELEMENTWISE:
        self.realized[u] = None
        costly[u], contexts[u], reads[u] = False, 1, frozenset({u})
      elif len(reads[u]) > _MAX_READS and len(self.users[u]) > 1 and u.op in GroupOp.ELEMENTWISE:
        # Each user would compute it again, and so would theirs: kernels of a long chain must not grow with it.
        self.realized[u] = None
        costly[u], contexts[u], reads[u] = False, 1, frozenset({u})

  def _shared(self) -> None:
    """Realizes dear values where ways part to different kernels, each of which would compute them again, and where
    PADs put them beside each other, for each element would take all."""
    ends: dict[UOp, UOp | None] = {}     # the one realized node that all users lead to; None where there are several
    for u in reversed(self.nodes):
      if u in self.realized: ends[u] = u
      else:
        found = {ends[v] for v in self.users[u]}
        ends[u] = found.pop() if len(found) == 1 else None
    pads: dict[UOp, frozenset[UOp]] = {}
    for u in self.nodes:
      pads[u] = self._pads(u, pads)
      if u in self.realized or u in self.in_rows or u.op not in GroupOp.ELEMENTWISE or not u.size: continue
      if _disjoint(pads[u]) and len(dear := [s for s in (p.base for p in pads[u]) if self._dear(s)]) > 1:
        self.realized |= dict.fromkeys(dear)
        pads[u] = frozenset()
      to = {ends[v] for v in self.users[u]}
      if (len(to) > 1 or None in to) and self._dear(u): self.realized[u], pads[u] = None, frozenset()

  def _dear(self, u: UOp) -> bool:
    """Whether an element takes much in the kernel that computes it: operations, of which functions count for several,
    with several values in memory. Reductions are another's to weigh."""
    stack, seen, work, loads = [u], set[UOp](), 0, 0
    while stack and (work < _DEAR or loads < _LOADS) and len(seen) < _LOOKED:
      v = stack.pop()
      if v in seen or v.op is Ops.REDUCE_AXIS: continue
      seen.add(v)
      below = v.base
      if below in self.realized or below.op is Ops.BUFFER: loads += 1
      else:
        work += _LIBRARY_WORK if v.op in GroupOp.LIBRARY else int(v.op in GroupOp.ELEMENTWISE)
        stack += v.src
    return work >= _DEAR and loads >= _LOADS

  def _pads(self, u: UOp, pads: dict[UOp, frozenset[UOp]]) -> frozenset[UOp]:
    """The PADs whose values meet in a node, through operations that compute with all of them."""
    if u in self.realized: return frozenset()
    if u.op is Ops.PAD: return frozenset({u})
    if u.op not in GroupOp.ELEMENTWISE and u.op not in _KEEPS_SIZE: return frozenset()
    found = frozenset[UOp]().union(*(pads[s] for s in u.src))
    return found if len(found) <= _MAX_PADS else frozenset()


def _disjoint(pads: frozenset[UOp]) -> bool:
  """Whether no element takes more than one of what several PADs pad: a concatenation."""
  if len(pads) < 2 or len({p.shape for p in pads}) > 1: return False
  boxes = [[(before, before + size) for (before, _), size in zip(p.arg, p.src[0].shape)] for p in pads]
  if any(not isinstance(n, int) for box in boxes for ends in box for n in ends): return False
  return all(any(a[1] <= b[0] or b[1] <= a[0] for a, b in zip(one, other)) for one, other in combinations(boxes, 2))


class _Builder:
  """Makes the kernels of the realized nodes."""

  def __init__(self, realized: Iterable[UOp]) -> None:
    realized = list(realized)
    # A constant costs less than a load, also where it was realized for somebody.
    self.stops = {u for u in realized if u.base.op is not Ops.CONST}
    self.buffer: dict[UOp, UOp] = {}                # realized node -> the BUFFER view that reads it, in its shape
    self.items: list[ScheduleItem] = []
    self.reads: list[set[UOp]] = []                 # per item: BUFFERs and realized nodes that it reads
    self.makes: list[tuple[UOp, ...]] = []          # per item: the realized nodes
    # An ASSIGN overwrites what others may have to read before: then each node has a kernel of its own.
    self.together = {} if any(u.op is Ops.ASSIGN for u in realized) else groups(realized, self.stops)

  def build(self, u: UOp) -> None:
    """Adds the work for one realized node; those below it are done."""
    if (device := u.device) is None:
      raise InvalidArgument(f"{u} is made of constants only, and none names a device to realize it on")
    if u.op is Ops.ASSIGN:
      self.assign(u, device)
      return
    if u.op is Ops.SCATTER:
      self.scatter(u, device)
      return
    out = UOp.new_buffer(device, u.size, u.dtype)
    self.buffer[u] = out.reshape(u.shape)
    if not u.size: return
    if u.op is Ops.COPY:
      source = _unreshaped(u.src[0])
      memory = _unreshaped(self.buffer.get(source, source))
      assert memory.op is Ops.BUFFER, "the source of a COPY is realized"
      ast = UOp(Ops.COPY, u.dtype, (UOp(Ops.DEFINE_GLOBAL, u.dtype.ptr(highest(u.size)), (), 1),), device)
      self.add((u,), ast, (out, memory), {source}, device)
      return
    members = self.together.get(u, [u])
    if u is not members[-1]: return                 # the last one makes the kernel
    outs = [_unreshaped(self.buffer[v]) for v in members]
    shape = u.shape if len(members) == 1 else squeezed(u.shape)
    targets = [out.reshape(shape) for out in outs]
    self.add(tuple(members), *self.kernel([_inside(v).reshape(shape) for v in members], outs, targets, members), device)

  def assign(self, u: UOp, device: str) -> None:
    """Adds the kernel that stores into existing memory: two by way of a buffer if it would overwrite what it reads."""
    out, target = _target_buffer(u), _memory_view(u.src[0])
    self.buffer[u] = target
    if not u.size: return
    ast, buffers, reads = self.kernel([u.src[1]], [out], [target], [u])
    if _overlaps(ast):
      temporary = UOp.new_buffer(device, u.size, u.dtype)
      self.add((u,), *self.kernel([u.src[1]], [temporary], [temporary.reshape(u.shape)], [u]), device)
      ast, buffers, _ = self.kernel([temporary.reshape(u.shape)], [out], [target], [u])
      reads = set()
    # The target's earlier writer comes first although nothing is read from it.
    if u.src[0].base.op is Ops.ASSIGN: reads.add(u.src[0].base)
    self.add((u,), ast, buffers, reads, device)

  def scatter(self, u: UOp, device: str) -> None:
    """Adds the kernel that makes the table, in memory that nobody else sees yet, and the one that changes it."""
    base = u.src[0]
    table = UOp.new_buffer(device, base.size, u.dtype)
    if not u.arg.whole: self.add((u,), *self.kernel([base], [table], [table.reshape(base.shape)], [u]), device)
    number: dict[UOp, int] = {}
    out = UOp.new_buffer(device, u.size, u.dtype) if u.arg.before else table
    self.buffer[u] = out.reshape(u.shape)
    views = [_view(memory.reshape(shape), number) for memory, shape in ((out, u.shape), (table, base.shape))]
    parts, reads = self.values(u.src[1:], number, [u])
    ast = UOp(Ops.SCATTER, dtypes.void, (views[1], *parts, *(views[:1] if u.arg.before else ())), u.arg)
    self.add((u,), UOp.sink(ast), tuple(number), reads, device)

  def add(self, made: tuple[UOp, ...], ast: UOp, buffers: tuple[UOp, ...], reads: set[UOp], device: str) -> None:
    """Appends an item."""
    self.items.append(ScheduleItem(*_for_all_values(ast, buffers, device)))
    self.reads.append(reads)
    self.makes.append(made)

  def kernel(self, values: list[UOp], outs: list[UOp], targets: list[UOp],
             roots: list[UOp]) -> tuple[UOp, tuple[UOp, ...], set[UOp]]:
    """(kernel graph, buffers, what it reads) of values stored through `targets`, views of the BUFFERs `outs`."""
    number: dict[UOp, int] = {out: n for n, out in enumerate(outs)}
    bodies, reads = self.values(tuple(values), number, roots)
    views = [_view(target, number) for target in targets]
    return UOp.sink(*(view.store(body) for view, body in zip(views, bodies))), tuple(number), reads

  def values(self, wanted: tuple[UOp, ...], number: dict[UOp, int], roots: list[UOp]) -> tuple[list[UOp], set[UOp]]:
    """What a kernel computes of some values, with loads of what is realized, and what it reads; memory is numbered."""
    reads: set[UOp] = set()
    done: dict[UOp, UOp] = {}
    def stops(v: UOp) -> bool: return v.op is Ops.BUFFER or v in self.stops and v not in roots
    def load(v: UOp) -> UOp:
      reads.add(v)
      return _view(self.buffer[v] if v.op is not Ops.BUFFER else v, number).load()
    for value in wanted:
      if stops(value): done[value] = load(value)
      for v in value._postorder(lambda v: not stops(v)):
        if v in done: continue
        for s in v.src:
          if s not in done: done[s] = load(s)
        src = tuple(done[s] for s in v.src)
        if v.op is Ops.CONTIGUOUS: done[v] = src[0]         # one of the nodes that this kernel makes
        else: done[v] = v if src == v.src else UOp(v.op, v.dtype, src, v.arg)
    rewritten: dict[UOp, UOp] = {}
    return [graph_rewrite(done[value], _views, None, rewritten) for value in wanted], reads

  def ordered(self) -> list[ScheduleItem]:
    """The items in an order that respects what reads and overwrites what."""
    makers: dict[UOp, list[int]] = {}
    for i, made in enumerate(self.makes):
      for u in made: makers.setdefault(u, []).append(i)
    before: list[set[int]] = [set() for _ in self.items]
    for i, reads in enumerate(self.reads):
      for u in reads: before[i].update(makers.get(u, ()))
    for u, indices in makers.items():
      for first, second in zip(indices, indices[1:]): before[second].add(first)
      if u.op is not Ops.ASSIGN: continue
      old = u.src[0].base                            # the memory before this ASSIGN: its readers come first
      for i, reads in enumerate(self.reads):
        if old in reads and u not in self.makes[i]: before[indices[-1]].add(i)
    order: list[int] = []
    placed: set[int] = set()
    waiting = list(range(len(self.items)))
    while waiting:
      ready = next((i for i in waiting if before[i] <= placed), None)
      if ready is None:
        raise InvalidArgument("a kernel needs memory both before and after an ASSIGN overwrites it: realize one first")
      waiting.remove(ready)
      placed.add(ready)
      order.append(ready)
    return [self.items[i] for i in order]


def _view(memory: UOp, number: dict[UOp, int]) -> UOp:
  """VIEW of movements of a BUFFER, which gets the next kernel argument number if it has none."""
  chain: list[UOp] = []
  while memory.op is not Ops.BUFFER:
    chain.append(memory)
    memory = memory.src[0]
  tracker = ShapeTracker.contiguous((memory.arg.size,))
  for m in reversed(chain): tracker = tracker.apply(m.op, m.arg)
  pointer = UOp(Ops.DEFINE_GLOBAL, memory.dtype.ptr(highest(memory.arg.size)), (),
                number.setdefault(memory, len(number)))
  return UOp(Ops.VIEW, pointer.dtype, (pointer,), tracker)


def _for_all_values(ast: UOp, buffers: tuple[UOp, ...], device: str) -> tuple[
    UOp, tuple[UOp, ...], str, tuple[tuple[VariableArg, int], ...]]:
  """A ScheduleItem's parts: the kernel without the values of its Variables, which come last. One that is there with
  several values is several Variables."""
  if not ast.variables: return ast, buffers, device, ()
  names: dict[UOp, UOp] = {}
  values: dict[VariableArg, int] = {}
  taken: set[VariableArg] = set()
  done: dict[UOp, UOp] = {}
  def named(v: UOp) -> UOp:
    if v not in names:
      arg, count = v.arg, 1
      while arg in taken: arg, count = v.arg._replace(name=f"{v.arg.name}__{count}"), count + 1
      taken.add(arg)
      if v.src: values[arg] = value_of(v)
      names[v] = UOp(Ops.DEFINE_VAR, v.dtype, (), arg)
    return names[v]
  for u in ast.toposort():
    src = tuple(done[s] for s in u.src)
    if u.op is Ops.DEFINE_VAR: done[u] = named(u)
    else:
      arg = changed(u.arg, named) if u.op in GroupOp.MOVEMENT or u.op is Ops.VIEW else u.arg
      done[u] = u if src == u.src and arg is u.arg else UOp(u.op, u.dtype, src, arg)
  return done[ast], buffers, device, tuple(values.items())


def _overlaps(ast: UOp) -> bool:
  """Whether a work-item may read of buffer 0 what another one has overwritten: it is read elsewhere than at the element
  that the work-item stores."""
  view, value = ast.src[0].src
  own: set[UOp] = set()
  stack = [value]
  while stack:
    u = stack.pop()
    if u in own: continue
    own.add(u)
    if u.op in GroupOp.ELEMENTWISE: stack += u.src
  for u in value.toposort():
    if u.op is Ops.LOAD and u.src[0].src[0] is view.src[0] and (u not in own or u.src[0] is not view): return True
    # The same element again by another way: below a reduction or a movement.
    if u.op is not Ops.LOAD and u.op not in GroupOp.ELEMENTWISE and any(
        v.op is Ops.LOAD and v.src[0].src[0] is view.src[0] for v in u.toposort() if v is not u): return True
  return False


def _taken(outputs: list[UOp]) -> dict[UOp, UOp]:
  """CONTIGUOUS with a number of what has memory of its own, which nobody else uses here: it takes that memory, and
  whoever asks for the other node later computes it anew."""
  nodes = sources(outputs)
  found = {u: u.src[0] for u in nodes if u.op is Ops.CONTIGUOUS and u.arg is not None and u.src[0].op in _OWN}
  if not found: return {}
  users = Counter(s for u in nodes for s in u.src)
  return {u: own for u, own in found.items() if users[own] == 1 and own not in outputs}


def schedule(outputs: Iterable[UOp]) -> Schedule:
  """The kernels and copies that realize the outputs, which are graphs of the tensor stage.

  Views of BUFFERs need no work. The same graph gives the same kernel graphs in every process.
  """
  wanted = [u for u in dict.fromkeys(outputs) if u.base.op is not Ops.BUFFER]
  check_tensor(wanted)
  prepared: dict[UOp, UOp] = {}
  roots = [graph_rewrite(u, _prepare, None, prepared) for u in wanted]
  work = [u if u.base.op is not Ops.ASSIGN else u.base for u in roots if u.base.op is not Ops.BUFFER]
  if not work: return Schedule([], {u: r for u, r in zip(wanted, roots)})
  taken = _taken(work)
  if taken: work, roots = ([u.substitute(taken) for u in us] for us in (work, roots))
  decider = _Decider(work)
  builder = _Builder(u for u in decider.nodes if u in decider.realized)
  for u in decider.nodes:
    if u in decider.realized: builder.build(u)
  hidden = set(taken.values())
  becomes = {u: memory for u, memory in builder.buffer.items() if u.op is not Ops.ASSIGN and u not in hidden}
  # Tensors name what they are made of as it was before it was prepared.
  becomes |= {u: becomes[v] for u, v in prepared.items() if u is not v and v in becomes and u not in becomes}
  for u, root in zip(wanted, roots):
    inner = _unreshaped(root)
    if inner in builder.buffer: becomes[u] = builder.buffer[inner].reshape(root.shape)
    elif root.base.op is Ops.ASSIGN: becomes[u] = _memory_view(root)
    else: becomes[u] = root
  return Schedule(builder.ordered(), becomes)
