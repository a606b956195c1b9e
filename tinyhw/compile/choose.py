"""Which options suit a kernel: the heuristic. Targets with arithmetic on vectors have one of their own (`lanes`)."""
from __future__ import annotations

import math

from tinyhw.compile import images, lanes, matrix, warpgroup
from tinyhw.compile.kernel import Kernel
from tinyhw.compile.product import Product
from tinyhw.compile.program import Opt, OptKind
from tinyhw.compile.units import available
from tinyhw.ir.dtype import PtrDType
from tinyhw.ir.uop import Axis, GroupOp, UOp

_TILE = 128               # rows and columns of a product that a workgroup has, of four waves
_TILE_BYTES = 64          # of each, at once
_TILES = 128              # fewer of them leave a large GPU without work
_BROAD = 1 << 16          # threads that a large GPU has at once, each with few registers
_LONG_ARITHMETIC = 100    # operations after which a value is not computed for several neighbours in one thread


def divisor(size: int, limit: int) -> int:
  """The greatest divisor of `size` that is at most `limit`."""
  return next(d for d in range(min(size, limit), 0, -1) if size % d == 0)


def heuristic(kernel: Kernel) -> None:
  """Applies options that suit most kernels of the target."""
  renderer = kernel.renderer
  if available(renderer) and _matrix(kernel): return
  if renderer.lanes and lanes.heuristic(kernel): return
  tiled = _tile(kernel) if renderer.tile > 1 else False
  if renderer.local and not tiled: _group(kernel)
  if renderer.vector_bytes:
    if not tiled: _vectorize(kernel)
    _unroll(kernel)
  if renderer.local and not (tiled and renderer.square): _workgroups(kernel)
  if renderer.images is not None and images.wanted(): images.choose(kernel)


def _try(kernel: Kernel, kind: OptKind, axis: UOp, amount: int) -> bool:
  if amount < 2: return False
  try: kernel.apply(Opt(kind, int(axis.arg.axis), amount))
  except ValueError: return False
  return True


def _matrix(kernel: Kernel) -> bool:
  """A product that a matrix unit computes: each wave has some blocks of it, so that a load serves several."""
  found = matrix.find(kernel)
  if isinstance(found, str): return False
  if kernel.renderer.warpgroups and _warpgroups(kernel, found): return True
  kernel.apply(Opt(OptKind.TC, int(found.steps.arg.axis)))
  assert kernel.unit_product is not None
  if kernel.renderer.stages and _staged(kernel): return True
  columns = max(2 // kernel.unit_product.columns_a_lane, 1)
  _try(kernel, OptKind.UPCAST, found.rows, divisor(kernel.left(found.rows), 4))
  _try(kernel, OptKind.UPCAST, found.columns, divisor(kernel.left(found.columns), columns))
  waves = 4 if kernel.renderer.max_block >= 4 * found.unit.lanes else 1
  if kernel.renderer.local: _try(kernel, OptKind.LOCAL, found.rows, divisor(kernel.left(found.rows), waves))
  return True


def _warpgroups(kernel: Kernel, found: Product) -> bool:
  """A product of so many tiles that all of a GPU has some, by warpgroups."""
  for columns in warpgroup.COLUMNS:
    if kernel.product(Axis.LOOP) < _TILES * _TILE * columns: continue
    if _try(kernel, OptKind.WARPGROUP, found.steps, columns): return True
  return False


def _staged(kernel: Kernel) -> bool:
  """A product of so many tiles of 128 x 128 that all of a GPU has some: four waves each, through local memory."""
  found = kernel.unit_product
  assert found is not None
  blocks = {found.rows: _TILE // found.unit.rows, found.columns: _TILE // found.unit.columns,
            found.steps: _TILE_BYTES // (found.unit.steps * found.a.dtype.itemsize)}
  if any(not kernel.fixed(axis) for axis in kernel.parts): return False
  if any(n < 1 or kernel.left(axis) % n for axis, n in blocks.items()): return False
  if kernel.product(Axis.LOOP) < _TILES * blocks[found.rows] * blocks[found.columns]: return False
  for axis in (found.rows, found.columns):
    _try(kernel, OptKind.UPCAST, axis, blocks[axis] // 2)
    _try(kernel, OptKind.LOCAL, axis, 2)
  _try(kernel, OptKind.UNROLL, found.steps, blocks[found.steps])
  kernel.apply(Opt(OptKind.STAGE, int(found.steps.arg.axis)))
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
  renderer, threads = kernel.renderer, kernel.product(Axis.LOOP)
  broad = renderer.broad_tile
  for x, y in sorted(pairs, key=lambda p: -_contiguity(kernel, p[1])):
    if any(x in a.other or y in a.other for a in loads): continue
    wide = broad and threads >= _BROAD * broad ** 2 and not kernel.left(x) % broad and not kernel.left(y) % broad
    tile = broad if wide else renderer.tile
    amounts = divisor(kernel.left(x), tile), divisor(kernel.left(y), tile)
    if min(amounts) < 2: continue
    _try(kernel, OptKind.UPCAST, x, amounts[0])
    _try(kernel, OptKind.UPCAST, y, amounts[1])
    if renderer.square:  # both loads are of few lines of memory then
      _try(kernel, OptKind.LOCAL, y, divisor(kernel.left(y), 8 if wide else 32))
      _try(kernel, OptKind.LOCAL, x, divisor(kernel.left(x), 8))
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
  threads, steps = kernel.product(Axis.LOOP), math.prod(kernel.most(a) for a in kernel.reductions)
  for axis in sorted(kernel.reductions, key=lambda a: (-_contiguity(kernel, a), -kernel.most(a))):
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
    left, most = kernel.left(axis), kernel.most(axis)
    if room < 2 or most < 2: continue
    amount = divisor(left, room)
    # A size without good divisors, or without known ones: the last workgroup is partly idle.
    if amount < 16 and amount < room and (most > room or left < most): amount = min(room, 64, most)
    _try(kernel, OptKind.LOCAL, axis, amount)
