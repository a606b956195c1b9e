"""From a kernel graph with shapes to a graph over ranges: every value a scalar, every access an INDEX with a gate.

The output's axes and the reductions' axes become RANGEs; movement operations become index arithmetic. Axes that every
access steps through as one are merged.
"""
from __future__ import annotations

import math
from collections.abc import Sequence

from tinyhw.compile.fold import fold_picks
from tinyhw.core.errors import Unsupported
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.shape import ShapeTracker, move_indices
from tinyhw.ir.size import highest, index
from tinyhw.ir.symbolic import linear, simplify
from tinyhw.ir.uop import Axis, GroupOp, Ops, UOp

Indices = tuple[UOp, ...]
TRUE = UOp.const(dtypes.bool, True)
ZERO = UOp.const(dtypes.index, 0)


class _Lowering:
  """The state of lowering one kernel."""

  def __init__(self) -> None:
    self.axes = 0                                # RANGEs made so far
    self.simplified: dict[UOp, UOp] = {}
    self.values: dict[tuple[UOp, Indices, UOp], UOp] = {}
    self.levels: dict[UOp, int] = {}             # reductions one above the other below a node
    self.counters: dict[object, list[UOp]] = {}  # RANGEs of reductions

  def ranges(self, sizes: Sequence[int], kind: Axis) -> list[UOp]:
    """A RANGE for each size; 0 for the size 1."""
    made = []
    for size in sizes:
      if size != 1: self.axes += 1
      made.append(UOp.range(size, self.axes - 1, kind) if size != 1 else ZERO)
    return made

  def view(self, view: UOp, indices: Indices, gate: UOp) -> UOp:
    """INDEX of a VIEW at the indices, gated where `gate` or the view's mask asks for it."""
    tracker: ShapeTracker = view.arg
    index, valid = tracker.expression(indices, self.simplified)
    valid = simplify(gate & valid, self.simplified)
    return view.src[0].index(index, None if valid is TRUE else valid)

  def count(self, ast: UOp) -> None:
    """Notes the levels of a kernel's nodes."""
    for u in ast.toposort():
      self.levels[u] = max([self.levels[s] for s in u.src], default=0) + (u.op is Ops.REDUCE_AXIS)

  def steps(self, u: UOp, indices: Indices, gate: UOp) -> tuple[list[tuple[UOp, Indices, UOp]], object]:
    """What is needed to lower `u` at the indices: the (node, indices, gate) below, and a note for `finish`."""
    if u.op in GroupOp.MOVEMENT:
      at, valid = move_indices(u.op, u.arg, u.src[0].shape, indices, self.simplified)
      return [(u.src[0], tuple(at), simplify(gate & valid, self.simplified))], valid
    if u.op is Ops.REDUCE_AXIS:
      sizes = tuple([u.src[0].shape[a] for a in u.arg[1]])
      # Reductions of which none needs another go through the same steps together.
      known = (self.levels[u], u.arg[1], sizes, indices)
      if (made := self.counters.get(known)) is None: made = self.counters[known] = self.ranges(sizes, Axis.REDUCE)
      at = list(indices)
      for axis, r in zip(u.arg[1], made): at[axis] = r
      return [(u.src[0], tuple(at), gate)], [r for r in made if r is not ZERO]
    return [(s, indices, gate) for s in u.src] if u.op is not Ops.LOAD else [], None

  def scatter(self, u: UOp) -> list[UOp]:
    """The STOREs of a SCATTER: where the order along the axis counts, it is a loop that ends with them."""
    table, places, value = u.src[:3]
    axis, shape = u.arg.axis, places.shape
    rows = self.ranges((*shape[:axis], *shape[axis + 1:]), Axis.LOOP)
    (step,) = self.ranges(shape[axis:axis + 1], Axis.LOOP if u.arg.unique else Axis.ORDER)
    indices = (*rows[:axis], step, *rows[axis:])
    place = self.value(places, indices)
    inside = (place >= 0) & (place < index(table.shape[axis]))
    pointer = self.view(table, (*rows[:axis], place.cast(dtypes.index), *rows[axis:]), inside)
    new, old = self.value(value, indices), None
    if u.arg.op is not None or u.arg.before:
      old = pointer.load(UOp.const(new.dtype, 0)) if len(pointer.src) > 2 else pointer.load()
    if u.arg.op is not None and old is not None: new = old.alu(u.arg.op, new)
    # What was there is loaded first.
    kept = [self.view(u.src[3], indices, TRUE).store(old)] if u.arg.before and old is not None else []
    # The loop is the STORE's also where neither its place nor its value changes.
    loop = () if u.arg.unique or step is ZERO else (step,)
    return [*kept, UOp(Ops.STORE, dtypes.void, (pointer, new, *loop))]

  def finish(self, u: UOp, indices: Indices, gate: UOp, src: list[UOp], note: object) -> UOp:
    """The scalar value of `u`, its sources lowered."""
    if u.op is Ops.LOAD:
      index = self.view(u.src[0], indices, gate)
      if len(index.src) == 2: return index.load()
      return UOp.const(u.dtype, 0) if not index.src[2].vmax else index.load(UOp.const(u.dtype, 0))
    if u.op is Ops.PAD:
      assert isinstance(note, UOp)
      return note.where(src[0], UOp.const(u.dtype, 0)) if note is not TRUE else src[0]
    if u.op in GroupOp.MOVEMENT: return src[0]
    if u.op is Ops.REDUCE_AXIS:
      assert isinstance(note, list)
      return UOp(Ops.REDUCE, u.dtype, (src[0], *note), u.arg[0]) if note else src[0]
    if u.op is Ops.CONST: return UOp.const(u.dtype, u.arg)
    return UOp(u.op, u.dtype, tuple(src), u.arg)

  def value(self, root: UOp, indices: Indices) -> UOp:
    """The scalar value of a node of the kernel graph at the indices."""
    first = (root, indices, TRUE)
    pending: dict[tuple[UOp, Indices, UOp], tuple[list[tuple[UOp, Indices, UOp]], object]] = {}
    stack = [first]
    while stack:
      key = stack[-1]
      if key in self.values:
        stack.pop()
        continue
      if key not in pending: pending[key] = self.steps(*key)
      needs, note = pending[key]
      missing = [n for n in needs if n not in self.values]
      if missing: stack += missing[::-1]
      else:
        self.values[key] = self.finish(*key, [self.values[n] for n in needs], note)
        stack.pop()
    return self.values[first]


def _mergeable(accesses: list[dict[UOp, int]], outer: UOp, inner: UOp) -> bool:
  if inner.src[0].op is not Ops.CONST: return False       # products with a counter are no steps
  step = int(inner.src[0].arg)
  if step * int(outer.src[0].vmax) > dtypes.index.max: return False
  return all(terms.get(outer, 0) == terms.get(inner, 0) * step for terms in accesses)


def merge_axes(sink: UOp) -> UOp:
  """The graph with RANGEs merged where each access's index steps through them as through one axis."""
  nodes = sink.toposort()
  reads: set[UOp] = set()                  # what depends on memory
  for u in nodes:
    if u.op is Ops.LOAD or u.op is Ops.REDUCE or not reads.isdisjoint(u.src): reads.add(u)
  def is_index(u: UOp) -> bool: return bool(u.ranges) and u not in reads  # index arithmetic
  accesses = [linear(u.src[1])[0] for u in nodes if u.op is Ops.INDEX]
  # A range used other than linearly in an index (in a gate, a division, a value) stays as it is.
  inside: set[UOp] = set()
  for u in nodes:
    if u.op is Ops.INDEX:
      for term in linear(u.src[1])[0]:
        if term.op is not Ops.RANGE: inside |= term.ranges
      if len(u.src) > 2: inside |= u.src[2].ranges
    elif u.op in GroupOp.ELEMENTWISE and not is_index(u):
      for s in u.src:
        if is_index(s): inside |= s.ranges
    elif u.op in (Ops.STORE, Ops.REDUCE) and is_index(u.src[1 if u.op is Ops.STORE else 0]):
      inside |= u.src[1 if u.op is Ops.STORE else 0].ranges
  groups = [[u for u in nodes if u.op is Ops.RANGE and u.arg.kind is Axis.LOOP and u not in inside]]
  groups += map(list, dict.fromkeys(tuple([s for s in u.src[1:] if s not in inside])
                                    for u in nodes if u.op is Ops.REDUCE))
  mapping: dict[UOp, UOp] = {}
  for group in groups:
    group.sort(key=lambda r: r.arg.axis)
    again = True
    while again:
      again = False
      for outer in group:
        inner = next((r for r in group if r is not outer and _mergeable(accesses, outer, r)), None)
        if inner is None: continue
        merged = UOp.range(simplify(outer.src[0] * inner.src[0]), inner.arg.axis, inner.arg.kind)
        mapping = {k: v.substitute({outer: ZERO, inner: merged}) for k, v in mapping.items()}
        mapping.update({outer: ZERO, inner: merged})
        for terms in accesses:
          terms.pop(outer, None)
          if inner in terms: terms[merged] = terms.pop(inner)
        group[:] = [merged if r is inner else r for r in group if r is not outer]
        again = True
        break
  if not mapping: return sink
  return drop_zero_ranges(simplify(sink.substitute(mapping)))


def drop_zero_ranges(sink: UOp) -> UOp:
  """REDUCEs without the sources that are no RANGEs any more."""
  done: dict[UOp, UOp] = {}
  for u in sink.toposort():
    src = tuple(done[s] for s in u.src)
    if u.op is Ops.REDUCE: src = (src[0], *(s for s in src[1:] if s.op is Ops.RANGE))
    done[u] = u if src == u.src else UOp(u.op, u.dtype, src, u.arg)
  return done[sink]


def _check_sizes(ast: UOp) -> None:
  """Refuses what int32 indices cannot count: they would wrap."""
  for u in ast.toposort():
    # A single view and its axes are never flattened, so only the shapes between views count.
    shapes = [v.shape for v in u.arg.views[:-1]] if u.op is Ops.VIEW else []
    if u.op in (Ops.RESHAPE, Ops.DEFINE_GLOBAL): shapes.append(u.shape)
    for shape in shapes:
      if (most := highest(math.prod(shape))) > dtypes.index.max:
        raise Unsupported("kernel", f"over {most:,} elements: indices have 32 bits", where=u.op.name)


def lower(ast: UOp) -> UOp:
  """The kernel over ranges: SINK of STOREs to INDEXes. Output axes are RANGEs of kind LOOP, in order."""
  _check_sizes(ast)
  state = _Lowering()
  state.count(ast)
  stores, known = [], dict[tuple[int, ...], Indices]()
  for store in ast.src:
    if store.op is Ops.SCATTER:
      stores += state.scatter(store)
      continue
    view, value = store.src
    # Results of one shape are computed in one loop.
    if (indices := known.get(view.shape)) is None:
      indices = known[view.shape] = tuple(state.ranges(view.shape, Axis.LOOP))
    stores.append(state.view(view, indices, TRUE).store(state.value(value, indices)))
  return merge_axes(simplify(fold_picks(simplify(UOp.sink(*stores)))))
