"""The optimizer: splits the axes of a lowered kernel into loops, workgroups, work-items and unrolled steps.

Options are data (`Opt`): `heuristic` proposes a list, `Kernel.apply` checks and applies each, `Kernel.build` makes the
graph. Anything else that chooses options, such as a search, uses the same three.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, field

from tinyhw.compile.program import Dim3, Opt, OptKind
from tinyhw.compile.render.base import Renderer
from tinyhw.compile.schedule import identity_element
from tinyhw.core.errors import InvalidArgument
from tinyhw.ir.dtype import PtrDType, dtypes
from tinyhw.ir.symbolic import linear, simplify
from tinyhw.ir.uop import Axis, GroupOp, Ops, UOp

_KINDS = {OptKind.UPCAST: (Axis.LOOP, Axis.UPCAST), OptKind.LOCAL: (Axis.LOOP, Axis.LOCAL),
          OptKind.UNROLL: (Axis.REDUCE, Axis.UNROLL), OptKind.GROUP: (Axis.REDUCE, Axis.GROUP)}
_MAX_UNROLLED = 256       # values that one thread may keep, as a bound on code size
_LONG_ARITHMETIC = 100    # operations after which a value is not computed for several neighbours in one thread


@dataclass
class Part:
  """Some steps of an axis and how they are done."""
  size: int
  kind: Axis


@dataclass(frozen=True)
class Access:
  """One INDEX: how many elements each axis moves it by. An axis that it uses in another way is in `other`."""
  index: UOp
  steps: dict[UOp, int]
  other: frozenset[UOp]
  is_store: bool


@dataclass
class Kernel:
  """A lowered kernel and the parts its axes are split into (outermost first)."""
  sink: UOp
  renderer: Renderer
  parts: dict[UOp, list[Part]] = field(default_factory=dict)
  accesses: list[Access] = field(default_factory=list)
  opts: list[Opt] = field(default_factory=list)

  def __post_init__(self) -> None:
    nodes = self.sink.toposort()
    ranges = sorted((u for u in nodes if u.op is Ops.RANGE), key=lambda r: int(r.arg.axis))
    self.parts = {r: [Part(int(r.src[0].arg), r.arg.kind)] for r in ranges}
    stored = {u.src[0] for u in nodes if u.op is Ops.STORE}
    for u in nodes:
      if u.op is not Ops.INDEX: continue
      terms, _ = linear(u.src[1])
      steps = {t: c for t, c in terms.items() if t.op is Ops.RANGE}
      other = frozenset().union(*(t.ranges for t in terms if t.op is not Ops.RANGE), *(s.ranges for s in u.src[2:]))
      self.accesses.append(Access(u, steps, other, u in stored))

  @property
  def outputs(self) -> list[UOp]:
    """The output axes."""
    return [r for r in self.parts if r.arg.kind is Axis.LOOP]

  @property
  def reductions(self) -> list[UOp]:
    """The axes of the reductions."""
    return [r for r in self.parts if r.arg.kind is Axis.REDUCE]

  def left(self, axis: UOp) -> int:
    """The steps of an axis that no option has taken."""
    return self.parts[axis][0].size

  def product(self, *kinds: Axis) -> int:
    """The product of all parts of these kinds."""
    return math.prod(p.size for parts in self.parts.values() for p in parts if p.kind in kinds)

  def apply(self, opt: Opt) -> None:
    """Splits an axis; ValueError when the option does not fit the kernel or the target."""
    def refuse(why: str) -> InvalidArgument: return InvalidArgument(f"{opt}: {why}")
    axis = next((r for r in self.parts if r.arg.axis == opt.axis), None)
    if axis is None: raise refuse(f"the kernel has axes {[r.arg.axis for r in self.parts]}")
    before, after = _KINDS[opt.kind]
    if axis.arg.kind is not before: raise refuse(f"axis {opt.axis} is a {axis.arg.kind.value} axis")
    size = self.left(axis)
    if opt.amount < 2: raise refuse("the amount is less than 2")
    if size % opt.amount and opt.kind not in (OptKind.LOCAL, OptKind.GROUP):
      raise refuse(f"{opt.amount} does not divide {size}")
    if opt.amount > size: raise refuse(f"only {size} steps are left")
    if opt.kind in (OptKind.LOCAL, OptKind.GROUP):
      if not self.renderer.local: raise refuse(f"target {self.renderer.target} has no workgroups")
      if self.product(Axis.LOCAL, Axis.GROUP) * opt.amount > self.renderer.max_block:
        raise refuse(f"the workgroup would have more than {self.renderer.max_block} work-items")
    elif self.product(Axis.UPCAST, Axis.UNROLL) * opt.amount > _MAX_UNROLLED:
      raise refuse(f"a thread would unroll more than {_MAX_UNROLLED} steps")
    if opt.kind is OptKind.GROUP and any(p.kind is Axis.GROUP for parts in self.parts.values() for p in parts):
      raise refuse("a reduction is grouped already")
    self.parts[axis][0].size = -(-size // opt.amount)
    self.parts[axis].insert(1, Part(opt.amount, after))
    if self.local_bytes() > self.renderer.max_local:
      self.parts[axis].pop(1)
      self.parts[axis][0].size = size
      raise refuse(f"the grouped reduction would need more than {self.renderer.max_local} bytes of local memory")
    self.opts.append(opt)

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
    spread: list[tuple[UOp, int, int]] = []              # (axis, part, size) of workgroups, in order
    items: list[tuple[UOp, int, int]] = []
    number = max((int(r.arg.axis) for r in self.parts), default=-1) + 1
    for r, parts in self.parts.items():
      for i, part in enumerate(parts):
        made[r].append(UOp.const(dtypes.index, 0) if part.size == 1 else UOp.range(part.size, number, part.kind))
        number += 1
        if part.size == 1: continue
        if part.kind is Axis.LOOP and self.renderer.threads: spread.append((r, i, part.size))
        if part.kind is Axis.LOCAL: items.append((r, i, part.size))
    grid = self._assign(spread, "gidx", made)
    grouped = math.prod(p.size for parts in self.parts.values() for p in parts if p.kind is Axis.GROUP)
    block = self._assign(items, "lidx", made, 1 if grouped > 1 else 0)
    if grouped > 1: block = (grouped, *block[:2])
    whole: dict[UOp, UOp] = {}
    gates: dict[UOp, UOp] = {}
    for r, parts in self.parts.items():
      total, inner = UOp.const(dtypes.index, 0), 1
      for part, u in reversed(list(zip(parts, made[r]))):
        total, inner = total + u * inner, inner * part.size
      whole[r] = simplify(total)
      if inner > int(r.src[0].arg): gates[r] = simplify(whole[r] < r.src[0])
    return _substitute(self.sink, whole, made, gates), grid, block

  def _assign(self, spread: list[tuple[UOp, int, int]], prefix: str, made: dict[UOp, list[UOp]],
              first: int = 0) -> Dim3:
    """Puts parts onto the hardware's three dimensions, the last on the fastest; what is over shares the slowest."""
    dimensions = 3 - first
    groups: list[list[tuple[UOp, int, int]]] = [[p] for p in reversed(spread)]
    while len(groups) > dimensions: groups[-2:] = [groups[-2] + groups[-1]]
    sizes = [1, 1, 1]
    for d, group in enumerate(groups):
      total = math.prod(size for _, _, size in group)
      if prefix == "gidx" and total > self.renderer.max_grid:
        raise InvalidArgument(f"{total} workgroups, {self.renderer.target} has at most {self.renderer.max_grid}")
      special, inner = UOp.special(f"{prefix}{d + first}", total), 1
      for axis, part, size in group:
        made[axis][part] = simplify(special // inner % size)
        inner *= size
      sizes[d] = total
    return (sizes[0], sizes[1], sizes[2])


def _substitute(sink: UOp, whole: dict[UOp, UOp], made: dict[UOp, list[UOp]], gates: dict[UOp, UOp]) -> UOp:
  done: dict[UOp, UOp] = {}
  simplified: dict[UOp, UOp] = {}
  for u in sink.toposort():
    if u in whole:
      done[u] = whole[u]
      continue
    src = tuple(done[s] for s in u.src)
    if u.op is Ops.REDUCE:
      value = src[0]
      for r in u.src[1:]:       # what is beyond the end of an axis adds nothing
        if r in gates: value = gates[r].where(value, identity_element(u.arg, u))
      src = (value, *(p for r in u.src[1:] for p in made[r] if p.op is Ops.RANGE))
      done[u] = src[0] if len(src) == 1 else UOp(u.op, u.dtype, src, u.arg)
      continue
    if u.op is Ops.INDEX:
      gate = src[2] if len(src) > 2 else None
      for r, g in gates.items():
        if r in u.ranges: gate = g if gate is None else gate & g
      done[u] = src[0].index(simplify(src[1], simplified), simplify(gate, simplified) if gate is not None else None)
      continue
    if u.op is Ops.LOAD and len(src) == 1 and len(src[0].src) > 2: src = (*src, UOp.const(u.dtype, 0))
    done[u] = u if src == u.src else UOp(u.op, u.dtype, src, u.arg)
  return simplify(done[sink], simplified)


def divisor(size: int, limit: int) -> int:
  """The greatest divisor of `size` that is at most `limit`."""
  return next(d for d in range(min(size, limit), 0, -1) if size % d == 0)


def heuristic(kernel: Kernel) -> None:
  """Applies options that suit most kernels of the target."""
  renderer = kernel.renderer
  tiled = _tile(kernel) if renderer.tile > 1 else False
  if renderer.local and not tiled: _group(kernel)
  if renderer.vector_bytes:
    if not tiled: _vectorize(kernel)
    _unroll(kernel)
  if renderer.local: _workgroups(kernel)


def _try(kernel: Kernel, kind: OptKind, axis: UOp, amount: int) -> bool:
  if amount < 2: return False
  try: kernel.apply(Opt(kind, int(axis.arg.axis), amount))
  except ValueError: return False
  return True


def _tile(kernel: Kernel) -> bool:
  """A matrix product and its like: two output axes, each of which some load of the reduction does not depend on. Each
  thread computes a square of both, so that every load is used several times."""
  reductions = kernel.reductions
  if not reductions: return False
  loads = [a for a in kernel.accesses if not a.is_store and any(r in a.steps or r in a.other for r in reductions)]
  free = {axis: [a for a in loads if axis not in a.steps and axis not in a.other] for axis in kernel.outputs}
  pairs = [(x, y) for x in kernel.outputs for y in kernel.outputs
           if x is not y and any(a not in free[y] for a in free[x]) and any(a not in free[x] for a in free[y])]
  tile = kernel.renderer.tile
  for x, y in sorted(pairs, key=lambda p: -_contiguity(kernel, p[1])):
    if any(x in a.other or y in a.other for a in loads): continue
    amounts = divisor(kernel.left(x), tile), divisor(kernel.left(y), tile)
    if min(amounts) < 2: continue
    _try(kernel, OptKind.UPCAST, x, amounts[0])
    _try(kernel, OptKind.UPCAST, y, amounts[1])
    return True
  return False


def _contiguity(kernel: Kernel, axis: UOp) -> int:
  return sum(a.steps.get(axis) == 1 for a in kernel.accesses)


def _lanes(kernel: Kernel, axis: UOp) -> int:
  """Elements of the widest vector in which the accesses along an axis come (1: none)."""
  sizes = [a.index.dtype.base.itemsize for a in kernel.accesses
           if a.steps.get(axis) == 1 and axis not in a.other and isinstance(a.index.dtype, PtrDType)]
  return min(kernel.renderer.vector_bytes // max(sizes), 8) if sizes else 1


def _vectorize(kernel: Kernel) -> None:
  """Each thread takes as many neighbouring outputs as a vector holds."""
  # Long arithmetic hides its few loads and stores anyway: copies of it would only cost time to compile.
  if sum(u.op in GroupOp.ALU for u in kernel.sink.toposort()) > _LONG_ARITHMETIC: return
  axes = sorted((a for a in kernel.outputs if _contiguity(kernel, a)), key=lambda a: -_contiguity(kernel, a))
  threads = kernel.product(Axis.LOOP)
  for axis in axes[:1]:
    if kernel.reductions and threads < 4096: break          # few threads already: let them reduce
    _try(kernel, OptKind.UPCAST, axis, divisor(kernel.left(axis), _lanes(kernel, axis)))


def _unroll(kernel: Kernel) -> None:
  """The innermost reduction does several steps at once: all when they are few, else a vector's."""
  if not kernel.reductions: return
  axis = max(kernel.reductions, key=lambda a: (_contiguity(kernel, a), int(a.arg.axis)))
  left = kernel.left(axis)
  # A thread with many upcast values has enough to do in one step.
  room = max(64 // max(kernel.product(Axis.UPCAST), 1), 4)
  _try(kernel, OptKind.UNROLL, axis, left if left <= min(room, 8) else divisor(left, 4))


def _group(kernel: Kernel) -> None:
  """Few outputs of a long reduction: work-items share it."""
  threads, steps = kernel.product(Axis.LOOP), math.prod(kernel.left(a) for a in kernel.reductions)
  for axis in sorted(kernel.reductions, key=lambda a: (-_contiguity(kernel, a), -kernel.left(a))):
    left = kernel.left(axis)
    if threads >= 1024 or steps < 128: continue
    vector = divisor(left, 4)
    amount = divisor(left // vector, min(256 if threads <= 16 else 32, kernel.renderer.max_block))
    # A length without good divisors: some work-items have one step less.
    if amount < 8: amount = min(64, kernel.renderer.max_block)
    if _try(kernel, OptKind.GROUP, axis, amount): return


def _workgroups(kernel: Kernel) -> None:
  """Neighbouring outputs become the work-items of a workgroup."""
  wanted = min(256, kernel.renderer.max_block)
  for axis in sorted(kernel.outputs, key=lambda a: (-_contiguity(kernel, a), -int(a.arg.axis))):
    room = wanted // max(kernel.product(Axis.LOCAL, Axis.GROUP), 1)
    left = kernel.left(axis)
    if room < 2 or left < 2: continue
    amount = divisor(left, room)
    # A size without good divisors: the last workgroup is partly idle.
    if amount < 16 and amount < room and left > room: amount = min(room, 64)
    _try(kernel, OptKind.LOCAL, axis, amount)
