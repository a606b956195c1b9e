"""Expansion: grouped reductions through local memory, upcast and unrolled ranges as copies, accesses as vectors."""
from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from tinyhw.compile.render.base import Renderer
from tinyhw.compile.schedule import identity_element
from tinyhw.compile.widen import broadcast
from tinyhw.ir.dtype import AddressSpace, PtrDType, dtypes
from tinyhw.ir.symbolic import from_linear, linear, simplify
from tinyhw.ir.uop import Axis, Ops, UOp

_COPIED = (Axis.UPCAST, Axis.UNROLL)


def group_reductions(sink: UOp) -> UOp:
  """Replaces the GROUP ranges: each work-item reduces its share, stores it in local memory, and after a barrier reduces
  the shares of its group. Work-item 0 of the group stores the result."""
  nodes = sink.toposort()
  groups = [u for u in nodes if u.op is Ops.RANGE and u.arg.kind is Axis.GROUP]
  if not groups: return sink
  group = groups[0]
  size = int(group.src[0].arg)
  item = UOp.special("lidx0", size)
  items = [u for u in nodes if u.op is Ops.SPECIAL and u.arg.name.startswith("lidx")]
  upcasts = [u for u in nodes if u.op is Ops.RANGE and u.arg.kind is Axis.UPCAST]
  slot, slots = UOp.const(dtypes.index, 0), 1
  for u in sorted(upcasts, key=lambda u: int(u.arg.axis)) + sorted(items, key=lambda u: str(u.arg.name)):
    count = int(u.src[0].arg) if u.op is Ops.RANGE else u.arg.size
    slot, slots = slot * count + u, slots * count
  axis = max(int(u.arg.axis) for u in nodes if u.op is Ops.RANGE) + 1
  mapping: dict[UOp, UOp] = {}
  for number, u in enumerate([u for u in nodes if u.op is Ops.REDUCE and group in u.src]):
    memory = UOp(Ops.DEFINE_LOCAL, u.dtype.ptr(slots * size, AddressSpace.LOCAL), (), f"shares{number}")
    others = tuple(r for r in u.src[1:] if r is not group)
    share = u.src[0].substitute({group: item})
    if others: share = UOp(Ops.REDUCE, u.dtype, (share, *others), u.arg)
    barrier = UOp(Ops.BARRIER, dtypes.void, (memory.index(slot * size + item).store(share),))
    # Four shares at a time, which is one load of a vector where they are 32-bit.
    step = 4 if size % 4 == 0 else 1
    inner = [UOp.range(step, axis + 1, Axis.UNROLL)] if step > 1 else []
    outer = [UOp.range(size // step, axis, Axis.REDUCE)] if size > step else []
    axis += 2
    at = slot * size
    for r, scale in [*((r, step) for r in outer), *((r, 1) for r in inner)]: at = at + r * scale
    mapping[u] = UOp(Ops.REDUCE, u.dtype, (memory.index(at).load(barrier), *outer, *inner), u.arg)
  first = item < 1
  stores = []
  for store in sink.substitute(mapping).src:
    index = store.src[0]
    gate = first if len(index.src) == 2 else index.src[2] & first
    stores.append(index.src[0].index(index.src[1], gate).store(store.src[1]))
  return simplify(UOp.sink(*stores))


_Key = tuple[UOp, tuple[tuple[UOp, int], ...]]


class _Expander:
  """Copies the graph for the values of its upcast and unrolled ranges; what does not depend on one is shared."""

  def __init__(self) -> None:
    self.done: dict[_Key, UOp] = {}
    self.copied: dict[UOp, tuple[UOp, ...]] = {}
    self.simplified: dict[UOp, UOp] = {}
    self.places: dict[UOp, tuple[UOp, dict[UOp, int], int] | None] = {}
    self.accumulators = 0

  def prepare(self, sink: UOp) -> None:
    """Notes on which copied ranges each node depends. Its only copy is the node itself where nothing below it has any,
    and no reduction."""
    for u in sink.toposort():
      ranges = [r for r in u.ranges if r.op is Ops.RANGE and r.arg.kind in _COPIED]
      self.copied[u] = tuple(sorted(ranges, key=lambda r: int(r.arg.axis))) if ranges else ()
      if not ranges and u.op is not Ops.REDUCE and all([(s, ()) in self.done for s in u.src]): self.done[u, ()] = u

  def place(self, index: UOp) -> tuple[UOp, dict[UOp, int], int] | None:
    """An INDEX whose element is a sum of what all copies share, steps of copied ranges, and a constant."""
    if index not in self.places:
      terms, constant = linear(index.src[1])
      steps = {r: terms.pop(r) for r in self.copied[index] if r in terms}
      shared = not any(r in t.ranges for t in terms for r in self.copied[index]) and index.src[1].dtype.count == 1
      self.places[index] = (from_linear(terms, 0, index.src[1]), steps, constant) if shared else None
    return self.places[index]

  def copies(self, ranges: tuple[UOp, ...]) -> list[dict[UOp, int]]:
    """All values of some ranges."""
    return [dict(zip(ranges, values)) for values in product(*(range(int(r.src[0].arg)) for r in ranges))]

  def at(self, root: UOp, values: dict[UOp, int]) -> UOp:
    """The copy of a node for the values of the ranges it depends on."""
    done, key = self.done, self.key
    goal = key(root, values)
    stack: list[tuple[_Key, UOp, dict[UOp, int], list[_Key] | None]] = [(goal, root, values, None)]
    while stack:
      own, u, known, below = stack[-1]
      if own in done:
        stack.pop()
        continue
      if below is None:       # the first time
        needs = [(key(source, its), source, its) for source, its in self.needs(u, known)]
        below = [k for k, _, _ in needs]
        if missing := [(*need, None) for need in needs if need[0] not in done]:
          stack[-1] = own, u, known, below
          stack += missing[::-1]
          continue
      done[own] = self.make(u, known, [done[k] for k in below])
      stack.pop()
    return done[goal]

  def key(self, u: UOp, values: dict[UOp, int]) -> _Key:
    """What the copy is known by."""
    ranges = self.copied[u]
    return u, tuple([(r, values[r]) for r in ranges if r in values]) if ranges else ()

  def needs(self, u: UOp, values: dict[UOp, int]) -> list[tuple[UOp, dict[UOp, int]]]:
    """The copies of sources that a copy is made of."""
    if u.op is Ops.REDUCE:
      unrolled = tuple(r for r in u.src[1:] if r.arg.kind is Axis.UNROLL)
      return [(u.src[0], {**values, **more}) for more in self.copies(unrolled)]
    if u.op is Ops.BARRIER:
      stores = [s for s in u.src if s.op is Ops.STORE]
      return [(s, {**values, **more}) for s in stores for more in self.copies(self.copied[s])] + [
        (r, values) for r in u.src if r.op is Ops.RANGE and r.arg.kind not in _COPIED]
    if u.op is Ops.INDEX and self.copied[u] and self.place(u) is not None:
      return [(s, values) for s in u.src[2:]]
    return [(s, values) for s in u.src]

  def make(self, u: UOp, values: dict[UOp, int], src: list[UOp]) -> UOp:
    """The copy, of copied sources."""
    if u in values: return UOp.const(u.dtype, values[u])
    if u.op is Ops.INDEX and self.copied[u] and (place := self.place(u)) is not None:
      base, steps, constant = place
      constant += sum(values[r] * step for r, step in steps.items())
      at = base if not constant else UOp.const(base.dtype, constant + int(base.arg)) if base.op is Ops.CONST else (
        base + constant)
      return u.src[0].index(at, *(simplify(s, self.simplified) for s in src))
    if u.op is Ops.REDUCE:
      loops = tuple(r for r in u.src[1:] if r.arg.kind is not Axis.UNROLL)
      if not loops:
        total = src[0]
        for s in src[1:]: total = _added(total, u.arg, s)
        return total
      # The register names its loops, so that what accumulates stands in them even where the value depends on none.
      initial = broadcast(identity_element(u.arg, u), u.dtype.count)
      register = UOp(Ops.DEFINE_ACC, u.dtype, (initial, *loops), self.accumulators)
      self.accumulators += 1
      total = register
      for s in src: total = _added(total, u.arg, s)
      return UOp(Ops.REDUCE, u.dtype, (UOp(Ops.ASSIGN, u.dtype, (register, total)), *loops), u.arg)
    new = u if tuple(src) == u.src else UOp(u.op, u.dtype, tuple(src), u.arg)
    return simplify(new, self.simplified) if u.op is Ops.INDEX and new is not u else new


def _added(total: UOp, op: Ops, value: UOp) -> UOp:
  """A total and one value more; a matrix unit adds its product itself."""
  return value.replace(src=(*value.src[:2], total)) if value.op is Ops.WMMA else total.alu(op, value)


def expand(sink: UOp) -> UOp:
  """The graph without UPCAST and UNROLL ranges: a STORE for each copy. A REDUCE that remains holds the ASSIGN of its
  register, a DEFINE_ACC with the loops as further sources."""
  expander = _Expander()
  expander.prepare(sink)
  stores = [expander.at(store, values) for store in sink.src for values in expander.copies(expander.copied[store])]
  return UOp.sink(*stores)


def _runs(offsets: list[int], widest: int, aligned: int) -> list[tuple[int, int]]:
  """Splits sorted offsets into aligned runs of 1, 2, 4, ... consecutive ones, as (start, length)."""
  runs, i = [], 0
  while i < len(offsets):
    length = widest
    while length > 1 and (offsets[i] % length or aligned % length or
                          offsets[i:i + length] != list(range(offsets[i], offsets[i] + length))): length //= 2
    runs.append((i, length))
    i += length
  return runs


def _place(index: UOp) -> tuple[object, int, int]:
  """(what the accesses of one vector share, the element within that, what divides the shared part)."""
  terms, constant = linear(index.src[1])
  aligned = math.gcd(*terms.values()) if terms else 0
  return (index.src[0], frozenset(terms.items()), index.src[2:]), constant, aligned


def vectorize(sink: UOp, renderer: Renderer) -> UOp:
  """The graph with loads and stores of consecutive elements joined into vectors."""
  # Where arithmetic is on vectors, scalars are what lanes share: a load of several would only be taken apart again.
  if not renderer.vector_bytes or renderer.lanes and any(u.dtype.count > 1 for u in sink.toposort()): return sink
  # Loads after a barrier depend on the other loads: they come second, so that neither replacement hides the other.
  for behind_barrier in (False, True):
    sink = sink.substitute(_vector_loads(sink, renderer, behind_barrier))
  copies = {u: u.replace(src=(*_vector_stores([s for s in u.src if s.op is Ops.STORE], renderer),
                              *(s for s in u.src if s.op is not Ops.STORE)))
            for u in sink.toposort() if u.op is Ops.BARRIER}
  sink = sink.substitute({u: new for u, new in copies.items() if new is not u})
  return UOp.sink(*_vector_stores(sink.src, renderer))


def _vector_stores(stores: Sequence[UOp], renderer: Renderer) -> list[UOp]:
  """Stores with those of consecutive elements joined into vectors."""
  groups: dict[object, dict[int, UOp]] = {}
  for u in stores:
    shared, offset, _ = _place(u.src[0])
    groups.setdefault((shared, u.src[1].dtype), {})[offset] = u
  joined: list[UOp] = []
  for found in groups.values():
    offsets = sorted(found)
    first = found[offsets[0]]
    widest = 1 if first.src[1].dtype.is_bool else _widest(first.src[0], renderer)
    for start, length in _runs(offsets, widest, _place(first.src[0])[2]):
      parts = [found[offsets[start + i]] for i in range(length)]
      value = parts[0].src[1]
      if length > 1: value = UOp(Ops.VECTORIZE, value.dtype.vec(length), tuple(p.src[1] for p in parts))
      joined.append(parts[0].replace(src=(parts[0].src[0], value, *parts[0].src[2:])) if length > 1 else parts[0])
  return joined


def _vector_loads(sink: UOp, renderer: Renderer, behind_barrier: bool) -> dict[UOp, UOp]:
  """LOADs of one element that are lanes of a vector -> that lane."""
  groups: dict[object, dict[int, UOp]] = {}
  for u in sink.toposort():
    if u.op is not Ops.LOAD or u.dtype.is_bool or (u.src[-1].op is Ops.BARRIER) != behind_barrier: continue
    shared, offset, _ = _place(u.src[0])
    groups.setdefault((shared, u.src[1:]), {})[offset] = u
  mapping: dict[UOp, UOp] = {}
  for found in groups.values():
    offsets = sorted(found)
    first = found[offsets[0]]
    for start, length in _runs(offsets, _widest(first.src[0], renderer), _place(first.src[0])[2]):
      if length == 1: continue
      lowest = found[offsets[start]]
      rest = tuple(s if s.op is Ops.BARRIER else UOp(Ops.VECTORIZE, s.dtype.vec(length), (s,) * length)
                   for s in lowest.src[1:])
      vector = lowest.src[0].load(*rest, dtype=lowest.dtype.vec(length))
      for lane in range(length): mapping[found[offsets[start + lane]]] = vector.gep(lane)
  return mapping


def _widest(index: UOp, renderer: Renderer) -> int:
  assert isinstance(index.dtype, PtrDType)
  return renderer.vector_widths(index.dtype.base)[0]


def fuse_multiply_add(sink: UOp) -> UOp:
  """register + a*b as MULACC, where the product has no other use: what accumulates sums of products may round once.
  Elsewhere a sum and a product round as they are written, on every target alike."""
  nodes = sink.toposort()
  accumulating: set[UOp] = set()
  for u in nodes:
    if u.op is Ops.DEFINE_ACC or u.op is Ops.ADD and any(s in accumulating for s in u.src): accumulating.add(u)
  uses: dict[UOp, int] = {}
  for u in nodes:
    for s in u.src: uses[s] = uses.get(s, 0) + 1
  done: dict[UOp, UOp] = {}
  for u in nodes:
    src = tuple(done[s] for s in u.src)
    done[u] = u if src == u.src else UOp(u.op, u.dtype, src, u.arg)
    if u.op is not Ops.ADD or not u.dtype.is_float: continue
    for product_, other in ((1, 0), (0, 1)):
      if u.src[other] in accumulating and u.src[product_].op is Ops.MUL and uses[u.src[product_]] == 1:
        a, b = done[u.src[product_]].src
        done[u] = UOp(Ops.MULACC, u.dtype, (a, b, done[u.src[other]]))
        break
  return done[sink]
