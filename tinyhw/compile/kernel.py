"""The optimizer: splits the axes of a lowered kernel into loops, workgroups, work-items and unrolled steps.

Options are data (`Opt`): `choose.heuristic` proposes a list, `Kernel.apply` checks and applies each, `Kernel.build`
makes the graph. Anything else that chooses options, such as a search, uses the same three.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, field

from tinyhw.compile import images, matrix, stage, warpgroup
from tinyhw.compile.axes import AxisPart, IndexAccess, substituted
from tinyhw.compile.product import Product
from tinyhw.compile.program import Dim3, Opt, OptKind
from tinyhw.compile.render.base import Renderer
from tinyhw.core.errors import InvalidArgument
from tinyhw.ir.dtype import AddressSpace, PtrDType, dtypes
from tinyhw.ir.size import common_divisor, from_node, highest, is_size
from tinyhw.ir.symbolic import linear, simplify
from tinyhw.ir.uop import Axis, Ops, UOp

_MAX_UNROLLED = 256       # values that one thread may keep, as a bound on code size
_MAX_SUMS = 128          # registers of a lane that the sums of a matrix unit's blocks may fill
# option: (kind of axis that it splits, what becomes of the steps that it takes)
_KINDS = {OptKind.UPCAST: (Axis.LOOP, Axis.UPCAST), OptKind.LOCAL: (Axis.LOOP, Axis.LOCAL),
          OptKind.THREAD: (Axis.LOOP, Axis.GLOBAL), OptKind.UNROLL: (Axis.REDUCE, Axis.UNROLL),
          OptKind.GROUP: (Axis.REDUCE, Axis.GROUP), OptKind.GROUPTOP: (Axis.REDUCE, Axis.GROUP)}
_UNEVEN = (OptKind.LOCAL, OptKind.GROUP, OptKind.GROUPTOP)    # the last work-items may be idle
_OUTERMOST = (OptKind.THREAD, OptKind.GROUPTOP)               # the steps taken are whole stretches of the axis
_INNER = (Axis.REDUCE, Axis.UNROLL, Axis.UPCAST, Axis.VECTOR)


@dataclass
class Kernel:
  """A lowered kernel and the parts its axes are split into (outermost first)."""
  sink: UOp
  renderer: Renderer
  parts: dict[UOp, list[AxisPart]] = field(default_factory=dict)
  accesses: list[IndexAccess] = field(default_factory=list)
  opts: list[Opt] = field(default_factory=list)
  packed: list[UOp] = field(default_factory=list)     # INDEXes of operands that are copied to local memory first
  locals: bool = True                                 # False after NOLOCALS
  unit_product: Product | None = None          # what a matrix unit computes
  staged: tuple[stage.Tile, stage.Tile] | None = None  # what is copied to local memory for it, tile by tile
  images: frozenset[int] = frozenset()                # numbers of the buffers that are images

  def __post_init__(self) -> None:
    nodes = self.sink.toposort()
    ranges = sorted((u for u in nodes if u.op is Ops.RANGE), key=lambda r: int(r.arg.axis))
    self.parts = {r: [AxisPart(from_node(r.src[0]), r.arg.kind)] for r in ranges}
    stored = {u.src[0] for u in nodes if u.op is Ops.STORE}
    for u in nodes:
      if u.op is not Ops.INDEX: continue
      terms, _ = linear(u.src[1])
      steps = {t: c for t, c in terms.items() if t.op is Ops.RANGE}
      twisted = frozenset[UOp]().union(*(t.ranges for t in terms if t.op is not Ops.RANGE))
      self.accesses.append(IndexAccess(u, steps, twisted.union(*(s.ranges for s in u.src[2:])), u in stored, twisted))

  @property
  def outputs(self) -> list[UOp]:
    """The output axes."""
    return [r for r in self.parts if r.arg.kind is Axis.LOOP]

  @property
  def reductions(self) -> list[UOp]:
    """The axes of the reductions."""
    return [r for r in self.parts if r.arg.kind is Axis.REDUCE]

  def buffers(self) -> list[int]:
    """The numbers of the buffers that it reads or writes."""
    return sorted({a.index.src[0].arg for a in self.accesses if a.index.src[0].op is Ops.DEFINE_GLOBAL})

  def rest(self, axis: UOp) -> int:
    """Which part of an axis is what no option has taken."""
    return next(i for i, p in enumerate(self.parts[axis]) if p.kind is axis.arg.kind)

  def left(self, axis: UOp) -> int:
    """The steps of an axis that no option has taken; where launches decide them, what is known to divide them."""
    return common_divisor(self.parts[axis][self.rest(axis)].size)

  def fixed(self, axis: UOp) -> bool:
    """Whether the steps of an axis are the same in every launch."""
    return axis.src[0].op is Ops.CONST

  def most(self, axis: UOp) -> int:
    """The most steps of an axis that no option has taken."""
    return highest(self.parts[axis][self.rest(axis)].size)

  def product(self, *kinds: Axis) -> int:
    """The product of all parts of these kinds, as it is at most."""
    return math.prod(highest(p.size) for parts in self.parts.values() for p in parts if p.kind in kinds)

  def taken(self, axis: UOp, kind: Axis) -> int:
    """The steps of an axis that are done in a way."""
    return math.prod(p.size for p in self.parts[axis] if p.kind is kind)

  def apply(self, opt: Opt) -> None:
    """Applies an option; ValueError when it does not fit the kernel or the target."""
    if opt.kind is OptKind.NOLOCALS: self._no_locals(opt)
    elif opt.kind is OptKind.SWAP: self._swap(opt)
    elif opt.kind is OptKind.PADTO: self._pad(opt)
    elif opt.kind is OptKind.PACK: self._pack(opt)
    elif opt.kind is OptKind.IMAGE: self.images |= {images.fitting(self, opt)}
    elif opt.kind is OptKind.STAGE: self._stage(opt)
    elif opt.kind in (OptKind.TC, OptKind.WARPGROUP): self.unit_product = matrix.fitting(self, opt)
    else: self._split(opt)
    self.opts.append(opt)

  def _axis(self, opt: Opt, number: int) -> UOp:
    axis = next((r for r in self.parts if r.arg.axis == number), None)
    if axis is None: raise _refusal(opt, f"the kernel has axes {[r.arg.axis for r in self.parts]}")
    return axis

  def _no_locals(self, opt: Opt) -> None:
    if any(p.kind in (Axis.LOCAL, Axis.GROUP) for parts in self.parts.values() for p in parts):
      raise _refusal(opt, "the kernel has work-items already")
    self.locals = False

  def _swap(self, opt: Opt) -> None:
    """Two output axes, or two axes of one reduction, change places in the nest of loops and workgroups."""
    x, y = self._axis(opt, opt.axis), self._axis(opt, opt.amount)
    if x is y or x.arg.kind is not y.arg.kind: raise _refusal(opt, "these two do not change places")
    if x.arg.kind is Axis.REDUCE and not any(u.op is Ops.REDUCE and x in u.src and y in u.src
                                             for u in self.sink.toposort()):
      raise _refusal(opt, "these are axes of different reductions")
    order = [y if r is x else x if r is y else r for r in self.parts]
    self.parts = {r: self.parts[r] for r in order}

  def _pad(self, opt: Opt) -> None:
    """The axis gets longer, to a multiple of the amount; what is beyond its end is neither read nor written."""
    axis = self._axis(opt, opt.axis)
    if len(self.parts[axis]) > 1: raise _refusal(opt, f"axis {opt.axis} is split already")
    size = self.parts[axis][0].size
    if not self.fixed(axis): raise _refusal(opt, f"launches decide the size {size}")
    if opt.amount < 2 or size % opt.amount == 0: raise _refusal(opt, f"{size} needs no padding")
    padded = -(-size // opt.amount) * opt.amount
    if padded > 2 * size: raise _refusal(opt, f"{size} would more than double")
    self.parts[axis][0].size = padded

  def _pack(self, opt: Opt) -> None:
    """What the reductions read without moving along an output axis is copied, once for all steps of that axis, in the
    order in which it is read."""
    axis = self._axis(opt, opt.axis)
    if axis.arg.kind is not Axis.LOOP: raise _refusal(opt, f"axis {opt.axis} is a {axis.arg.kind.value} axis")
    if self.renderer.threads or self.packed: raise _refusal(opt, "this target keeps no copies, or there is one already")
    reductions = set(self.reductions)
    found = [a.index for a in self.accesses if not a.is_store and a.index.ranges & reductions
             and axis not in a.index.ranges]
    if not found: raise _refusal(opt, "every operand moves along the axis")
    if not any(axis in a.index.ranges for a in self.accesses if a.index.ranges & reductions):
      raise _refusal(opt, "no operand moves along the axis")
    if any(is_size(p.size) for index in found for r in index.ranges for p in self.parts[r] if p.kind in _INNER):
      raise _refusal(opt, "launches decide the size of an operand")
    size = sum(self._packed_size(index) * max(index.dtype.base.bits, 8) // 8 for index in found
               if isinstance(index.dtype, PtrDType))
    if size > self.renderer.max_local: raise _refusal(opt, f"{size:,} bytes, of {self.renderer.max_local:,}")
    self.packed = found

  def _stage(self, opt: Opt) -> None:
    """A workgroup's tiles of both factors go through local memory."""
    found = stage.fitting(self, opt.axis)
    if isinstance(found, str): raise _refusal(opt, found)
    self.staged = found

  def _packed_size(self, index: UOp) -> int:
    return math.prod(p.size for r in index.ranges for p in self.parts[r] if p.kind in _INNER)

  def _split(self, opt: Opt) -> None:
    axis = self._axis(opt, opt.axis)
    before, after = _KINDS.get(opt.kind, (axis.arg.kind, Axis.VECTOR))
    if axis.arg.kind is not before: raise _refusal(opt, f"axis {opt.axis} is a {axis.arg.kind.value} axis")
    size = self.parts[axis][self.rest(axis)].size
    if opt.amount < 2: raise _refusal(opt, "the amount is less than 2")
    if size % opt.amount != 0 and opt.kind not in _UNEVEN: raise _refusal(opt, f"{opt.amount} does not divide {size}")
    if opt.amount > highest(size): raise _refusal(opt, f"only {size} steps are left")
    if self.packed or self.staged or self.unit_product is not None and self.unit_product.whole:
      raise _refusal(opt, "operands are packed already")
    self._check_target(opt, axis)
    at = self.rest(axis)
    self.parts[axis][at].size = (size + opt.amount - 1) // opt.amount
    self.parts[axis].insert(at + (opt.kind not in _OUTERMOST), AxisPart(opt.amount, after))
    if self.local_bytes() > self.renderer.max_local:
      self.parts[axis].pop(at + (opt.kind not in _OUTERMOST))
      self.parts[axis][at].size = size
      raise _refusal(opt, f"the grouped reduction would need more than {self.renderer.max_local} bytes of local memory")

  def _check_target(self, opt: Opt, axis: UOp) -> None:
    renderer = self.renderer
    if opt.kind in _UNEVEN:
      if not renderer.local: raise _refusal(opt, f"target {renderer.target} has no workgroups")
      if not self.locals: raise _refusal(opt, "NOLOCALS came before")
      if self.product(Axis.LOCAL, Axis.GROUP) * opt.amount > renderer.max_block:
        raise _refusal(opt, f"the workgroup would have more than {renderer.max_block} work-items")
      if opt.kind is not OptKind.LOCAL and self.product(Axis.GROUP) > 1:
        raise _refusal(opt, "a reduction is grouped already")
    elif opt.kind is OptKind.THREAD:
      if not renderer.pool: raise _refusal(opt, f"target {renderer.target} has no threads of its own")
      if self.taken(axis, Axis.GLOBAL) > 1: raise _refusal(opt, "the axis is shared among threads already")
    elif opt.kind is OptKind.VECTOR: self._check_vector(opt, axis)
    elif self.unit_product is not None and opt.kind is OptKind.UPCAST and (
        self.product(Axis.UPCAST) * opt.amount > _MAX_SUMS):
      raise _refusal(opt, f"a lane would hold more than {_MAX_SUMS} sums of a matrix unit")
    elif self.product(Axis.UPCAST, Axis.UNROLL) * opt.amount > _MAX_UNROLLED * (
        self.unit_product.unit.results * self.unit_product.unit.steps if self.unit_product is not None else 1):
      raise _refusal(opt, f"a thread would unroll more than {_MAX_UNROLLED} steps")

  def meet(self, x: UOp, y: UOp) -> bool:
    """Whether some value depends on two axes, or some reduction is over both."""
    return any(x in near and y in near for u in self.sink.toposort()
               for near in (u.ranges, u.src[1:] if u.op is Ops.REDUCE else ()))

  def _check_vector(self, opt: Opt, axis: UOp) -> None:
    """A value has the lanes of one axis at most."""
    if opt.amount > self.renderer.lanes:
      raise _refusal(opt, f"target {self.renderer.target} has {self.renderer.lanes or 'no'} lanes")
    if self.renderer.powers and opt.amount & (opt.amount - 1):
      raise _refusal(opt, f"vectors of {self.renderer.target} have 2, 4, 8 ... lanes")
    if len(self.parts[axis]) > 1: raise _refusal(opt, "lanes are the innermost part of an axis: they come first")
    if any(self.meet(axis, r) for r, parts in self.parts.items() if any(p.kind is Axis.VECTOR for p in parts)):
      raise _refusal(opt, "values have lanes along another axis already")

  def local_bytes(self) -> int:
    """Local memory of a workgroup, in bytes."""
    grouped = [u for u in self.sink.toposort() if u.op is Ops.REDUCE and
               any(p.kind is Axis.GROUP for r in u.src[1:] for p in self.parts[r])]
    slots = self.product(Axis.LOCAL, Axis.GROUP, Axis.UPCAST)
    return sum(max(u.dtype.bits, 8) // 8 * slots for u in grouped)

  def build(self) -> tuple[UOp, Dim3, Dim3]:
    """(the graph with split axes, grid, block). Output axes are SPECIALs where the target has threads; upcast, unrolled
    and grouped parts are RANGEs of those kinds."""
    made: dict[UOp, list[UOp]] = {r: [] for r in self.parts}
    wave = self.unit_product.unit.lanes if self.unit_product is not None else 1
    spread: list[tuple[UOp, int, int]] = []              # (axis, part, size) of workgroups, in order
    items: list[tuple[UOp, int, int]] = []
    number = max((int(r.arg.axis) for r in self.parts), default=-1) + 1
    for r, parts in self.parts.items():
      for i, part in enumerate(parts):
        made[r].append(UOp.const(dtypes.index, 0) if part.size == 1 else UOp.range(part.size, number, part.kind))
        number += 1
        if part.size == 1: continue
        if part.kind is (Axis.LOOP if self.renderer.threads else Axis.GLOBAL): spread.append((r, i, part.size))
        if part.lane: made[r][-1] = simplify(UOp.special("lidx0", wave) // part.lane % part.size)
        elif part.kind is Axis.LOCAL: items.append((r, i, part.size))
    grid = self._assign(spread, "gidx", made, 0 if self.renderer.threads else 2)
    if self.unit_product is not None and self.unit_product.whole: warpgroup.regroup(self, self.unit_product, made)
    grouped = math.prod(p.size for parts in self.parts.values() for p in parts if p.kind is Axis.GROUP)
    first = max(grouped, wave)
    block = self._assign(items, "lidx", made, 1 if first > 1 else 0)
    if first > 1: block = (first, *block[:2])
    whole: dict[UOp, UOp] = {}
    for r, parts in self.parts.items():
      total, inner = UOp.const(dtypes.index, 0), 1
      for part, u in reversed(list(zip(parts, made[r]))):
        total, inner = total + u * inner, inner * part.size
      whole[r] = simplify(total)
    gates = {r: simplify(whole[r] < r.src[0]) for r in self.uneven()}
    product = self.unit_product
    if product is not None: whole[product.reduction] = matrix.result(product)
    done = substituted(self.sink, whole, made, gates, self._clamped(whole, gates))
    sink = done[self.sink]
    if product is not None: sink = matrix.joined(self, product, sink, made, whole, number)
    if self.packed: sink = self._with_copies(sink, [done[index] for index in self.packed], made, number)
    return sink, grid, block

  def uneven(self) -> list[UOp]:
    """The axes whose parts are more than there are steps."""
    return [r for r, parts in self.parts.items() if math.prod(p.size for p in parts) != from_node(r.src[0])]

  def _clamped(self, whole: dict[UOp, UOp], gates: dict[UOp, UOp]) -> dict[UOp, UOp]:
    """Output axes that a processor's loads follow up to their end and then stay there: what is computed beyond is not
    stored. That costs less than a branch at each load, but lanes must stay neighbours."""
    if self.renderer.threads: return {}
    return {r: gates[r].where(whole[r], simplify(r.src[0] - 1)) for r in gates
            if r.arg.kind is Axis.LOOP and not any(p.kind is Axis.VECTOR for p in self.parts[r])}

  def _with_copies(self, sink: UOp, indices: list[UOp], made: dict[UOp, list[UOp]], number: int) -> UOp:
    """The graph with the operands read from local memory, which loops of their own fill before."""
    inner = [u for kind in (Axis.REDUCE, Axis.LOOP) for r in made if r.arg.kind is kind for u in made[r]
             if u.op is Ops.RANGE and u.arg.kind in _INNER]
    inner.sort(key=lambda u: u.arg.kind is Axis.VECTOR)        # lanes are neighbours
    mapping: dict[UOp, UOp] = {}
    for place, index in enumerate(dict.fromkeys(indices)):
      pointer = index.dtype
      assert isinstance(pointer, PtrDType)
      ranges = [u for u in inner if u in index.ranges]
      own = {u: UOp.range(int(u.src[0].arg), number + i, u.arg.kind) for i, u in enumerate(ranges)}
      number += len(ranges)
      flat = UOp.const(dtypes.index, 0)
      for u in ranges: flat = flat * int(u.src[0].arg) + u
      flat = simplify(flat)
      memory = UOp(Ops.DEFINE_LOCAL, pointer.base.ptr(math.prod(int(u.src[0].arg) for u in ranges), AddressSpace.LOCAL),
                   (), f"packed{place}")
      loads = [u for u in sink.toposort() if u.op is Ops.LOAD and u.src[0] is index]
      copy = memory.index(flat.substitute(own)).store(loads[0].substitute(own))
      ready = UOp(Ops.BARRIER, dtypes.void, (copy, *own.values()))
      mapping.update({load: memory.index(flat).load(ready) for load in loads})
    return sink.substitute(mapping)

  def _assign(self, spread: list[tuple[UOp, int, int]], prefix: str, made: dict[UOp, list[UOp]],
              first: int = 0) -> Dim3:
    """Puts parts onto the hardware's three dimensions, the last on the fastest; what is over shares the slowest."""
    dimensions = 3 - first
    if prefix == "gidx": first = 0
    groups: list[list[tuple[UOp, int, int]]] = [[p] for p in reversed(spread)]
    while len(groups) > dimensions: groups[-2:] = [groups[-2] + groups[-1]]
    sizes = [1, 1, 1]
    for d, group in enumerate(groups):
      total = math.prod(size for _, _, size in group)
      if prefix == "gidx" and highest(total) > self.renderer.max_grid:
        raise InvalidArgument(f"{total} workgroups, {self.renderer.target} has at most {self.renderer.max_grid}")
      special, inner = UOp.special(f"{prefix}{d + first}", total), 1
      for axis, part, size in group:
        made[axis][part] = simplify(special // inner % size)
        inner *= size
      sizes[d] = total
    return (sizes[0], sizes[1], sizes[2])


def _refusal(opt: Opt, why: str) -> InvalidArgument: return InvalidArgument(f"{opt}: {why}")
