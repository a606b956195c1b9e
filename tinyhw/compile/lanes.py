"""Which options suit a kernel of a target with vectors and threads of its own: a processor.

One axis becomes the lanes of vectors: the one along which most accesses walk memory. Products are computed in tiles of
rows times vectors that the registers hold, from a copy of what all rows share. Large kernels are cut into stretches
that threads take. None of it depends on how many threads there are, and what a value is summed in which order depends
on the sizes alone, not on the processor's registers.

LLVM's vectorizer has nothing left to find in these kernels. A pool of native threads takes the
stretches (`drive/pool.py`). How a sum is made does not depend on load either.
"""
from __future__ import annotations

import math

from tinyhw.compile.axes import IndexAccess
from tinyhw.compile.kernel import Kernel
from tinyhw.compile.program import Opt, OptKind
from tinyhw.ir.dtype import PtrDType
from tinyhw.ir.uop import Axis, GroupOp, Ops, UOp

_VECTOR_BYTES = 64        # of one vector; targets with shorter registers take several for it
_STRIDED = 24             # what an access element by element costs, a vector's being 16
_WORTH_THREADS = 1 << 18  # operations from which on threads are woken
_STRETCH = 1 << 16        # operations of one stretch, at least
_STRETCHES = 64           # of one axis, at most
_LONG_ARITHMETIC = 60     # operations after which a value is not computed for several vectors at once
_UNROLLED = 16            # vectors that a reduction's iteration computes, at least where it has several


def heuristic(kernel: Kernel) -> bool:
  """Applies what suits the kernel; False when no axis suits vectors, and but for threads nothing was done."""
  if not (best := _lane_axis(kernel)):
    if not kernel.reductions: _threads(kernel, None)
    return False
  axis, amount = best
  size, summed = kernel.left(axis), axis in kernel.reductions
  # Without masks an output axis has the lanes that divide it, if any; a sum is made alike everywhere.
  if size % amount and not summed and not kernel.renderer.masks:
    amount = next((n for n in (amount // 2, amount // 4) if n >= 4 and size % n == 0), 0)
  if amount and size % amount: kernel.apply(Opt(OptKind.PADTO, int(axis.arg.axis), amount))
  if summed:
    while amount * 2 <= kernel.renderer.lanes and kernel.left(axis) % (8 * amount) == 0: amount *= 2
  if amount: kernel.apply(Opt(OptKind.VECTOR, int(axis.arg.axis), amount))
  # In rows that several loops go through, each loop has its lanes.
  for other in (*kernel.reductions, *kernel.outputs):
    most = min(_limit(kernel, other), kernel.renderer.lanes)
    wide = next((n for n in (64, 32, 16, 8) if kernel.left(other) % n == 0 and n <= most), 0)
    if not wide or not kernel.fixed(other) or kernel.meet(axis, other): continue
    if _walked(kernel, other): _try(kernel, OptKind.VECTOR, other, wide)
  if kernel.product(Axis.VECTOR) == 1: return False
  rows = _tile(kernel, axis) if axis in kernel.outputs else None
  if rows is None: _neighbours(kernel, axis)
  _unroll(kernel)
  if rows is not None: _rows_last(kernel, rows)
  _threads(kernel, rows)
  if rows is not None and kernel.left(rows) >= 4: _try(kernel, OptKind.PACK, rows)
  return True


def _try(kernel: Kernel, kind: OptKind, axis: UOp, amount: int = 0) -> bool:
  try: kernel.apply(Opt(kind, int(axis.arg.axis), amount))
  except ValueError: return False
  return True


def divisor(size: int, limit: int) -> int:
  """The greatest divisor of `size` that is at most `limit`."""
  return next(d for d in range(min(size, limit), 0, -1) if size % d == 0)


def _walked(kernel: Kernel, axis: UOp) -> bool:
  """Whether accesses that move along an axis do so one element a step."""
  moving = [a for a in kernel.accesses if axis in a.index.ranges]
  return bool(moving) and all(a.steps.get(axis) == 1 and axis not in a.twisted for a in moving)


def _limit(kernel: Kernel, axis: UOp) -> int:
  """Lanes of an axis: one vector's for outputs, four for sums."""
  bits = max((u.dtype.bits for u in _values(kernel) if not isinstance(u.dtype, PtrDType)), default=32)
  return _VECTOR_BYTES * 8 // max(bits, 8) * (4 if axis in kernel.reductions else 1)


def _values(kernel: Kernel) -> list[UOp]:
  """What the kernel computes, without the arithmetic of indices."""
  return kernel.sink._postorder(lambda u: u.op is not Ops.INDEX)


def _lane_axis(kernel: Kernel) -> tuple[UOp, int] | None:
  """The axis that becomes lanes, and how many."""
  widest = max((max(u.dtype.bits, 8) // 8 for u in _values(kernel) if not isinstance(u.dtype, PtrDType)), default=4)
  lanes = min(_VECTOR_BYTES // widest, kernel.renderer.lanes)
  best: tuple[float, int, UOp, int] | None = None
  for axis in (*kernel.outputs, *kernel.reductions):
    size = kernel.left(axis)
    amount = next((n for n in (lanes, lanes // 2, lanes // 4) if n >= 4 and size % n == 0), 0)
    # A tile has masks where its operand is copied and where it is stored alone.
    if amount < lanes and size > 4 * lanes and _shared(kernel, axis) and kernel.fixed(axis): amount = lanes
    # A mask at each access where the length has no good divisor. What is chosen does not depend on the processor, for
    # sums over lanes are made in another order.
    if not amount and size > 2 * lanes and kernel.fixed(axis): amount = lanes
    if not amount: continue
    cost = sum(_cost(kernel, a, axis, amount) for a in kernel.accesses)
    # Lanes of a tile share what they load; those of outputs need no joining at the end. The innermost axis is the best
    # of equals.
    if axis in kernel.outputs: cost *= 0.5 if _shared(kernel, axis) else 0.99
    found = (cost, -int(axis.arg.axis), axis, amount)
    if best is None or found[:2] < best[:2]: best = found
  if best is None: return None
  scalar = sum(16 * _times(kernel, a) for a in kernel.accesses)
  return (best[2], best[3]) if best[0] < scalar else None


def _times(kernel: Kernel, access: IndexAccess) -> int:
  """How often an access happens for one output."""
  return math.prod(kernel.left(r) for r in kernel.reductions if r in access.index.ranges)


def _cost(kernel: Kernel, access: IndexAccess, axis: UOp, amount: int) -> float:
  """What an access costs for one lane."""
  times = _times(kernel, access)
  if axis not in access.index.ranges: return times * 16 / amount
  if access.steps.get(axis) == 1 and axis not in access.twisted: return times * 16 / amount
  # A tile reads it from a copy in the order of its lanes, made once for all rows.
  rows = max((kernel.left(x) for x in kernel.outputs if x not in access.index.ranges), default=1)
  if axis in kernel.outputs and not access.is_store and kernel.reductions and rows >= 16:
    return times * (16 / amount + _STRIDED / rows)
  return times * _STRIDED


def _reduced(kernel: Kernel) -> list[IndexAccess]:
  """The loads of reductions."""
  return [a for a in kernel.accesses if not a.is_store and any(r in a.index.ranges for r in kernel.reductions)]


def _shared(kernel: Kernel, lanes: UOp) -> list[UOp]:
  """The axes whose steps may be the rows of tiles with such lanes: what is loaded for the lanes serves all rows, and
  what is loaded for a row serves all lanes."""
  loads = _reduced(kernel)
  return [x for x in kernel.outputs if x is not lanes and kernel.left(x) >= 4
          and any(x not in a.index.ranges and lanes in a.index.ranges for a in loads)
          and any(x in a.index.ranges and lanes not in a.index.ranges for a in loads)]


def _tile(kernel: Kernel, lanes: UOp) -> UOp | None:
  """A product and its like: rows of an axis that some operand does not move along, times vectors of another. Gives the
  axis of the rows."""
  best: tuple[float, int, UOp, int, int] | None = None
  loads = _reduced(kernel)
  for x in _shared(kernel, lanes):
    uneven = kernel.fixed(x) and kernel.left(x) > 64 and divisor(kernel.left(x), 8) < 4
    for rows in (8, 6, 4) if uneven else range(1, 13):
      if kernel.left(x) % rows and not uneven: continue
      for vectors in (1, 2, 3, 4):
        if kernel.left(lanes) % vectors or rows * vectors > max(kernel.renderer.tile_vectors, 1): continue
        # What is loaded for one result. A vector of the operand comes from farther away than a number of a row.
        total = sum((rows if x in a.index.ranges else 1) * (vectors if lanes in a.index.ranges else 0.5) for a in loads)
        found = (total / (rows * vectors), -rows, x, rows, vectors)
        if best is None or found[:2] < best[:2]: best = found
  if best is None or best[3] * best[4] == 1: return None
  _, _, x, rows, vectors = best
  if kernel.left(x) % rows: kernel.apply(Opt(OptKind.PADTO, int(x.arg.axis), rows))
  if vectors > 1: kernel.apply(Opt(OptKind.UPCAST, int(lanes.arg.axis), vectors))
  if rows > 1: kernel.apply(Opt(OptKind.UPCAST, int(x.arg.axis), rows))
  return x


def _neighbours(kernel: Kernel, axis: UOp) -> None:
  """Several vectors at once: a column sum walks longer pieces of a row, a transposed copy uses whole lines of the
  cache."""
  if sum(u.op in GroupOp.ALU for u in _values(kernel)) > _LONG_ARITHMETIC: return
  if axis in kernel.outputs:
    _try(kernel, OptKind.UPCAST, axis, divisor(kernel.left(axis), 8 if kernel.reductions else 2))
  strided = [a for a in kernel.accesses if axis in a.index.ranges and a.steps.get(axis) != 1]
  for other in kernel.outputs:
    if other is not axis and any(a.steps.get(other) == 1 for a in strided):
      _try(kernel, OptKind.UPCAST, other, divisor(kernel.left(other), 8))


def _unroll(kernel: Kernel) -> None:
  """The innermost reduction does several steps at once."""
  if not kernel.reductions: return
  axis = max(kernel.reductions, key=lambda r: int(r.arg.axis))
  left, vectors = kernel.left(axis), kernel.product(Axis.UPCAST)
  if vectors * left <= _UNROLLED and left <= 4: amount = left
  else: amount = divisor(left, max(min(4, _UNROLLED // vectors), 1))
  if amount > 1: _try(kernel, OptKind.UNROLL, axis, amount)


def _rows_last(kernel: Kernel, rows: UOp) -> None:
  """The loop over rows is the innermost one of the outputs, so that what all rows share is at hand."""
  outputs = kernel.outputs
  for other in outputs[outputs.index(rows) + 1:]:
    kernel.apply(Opt(OptKind.SWAP, int(rows.arg.axis), int(other.arg.axis)))


def _threads(kernel: Kernel, rows: UOp | None) -> None:
  """Stretches of output axes for threads."""
  work = math.prod(int(r.src[0].vmax) for r in kernel.parts) * (
    len(kernel.accesses) + sum(u.op in GroupOp.ALU for u in _values(kernel)))
  if not kernel.renderer.pool or work < _WORTH_THREADS: return
  wanted = min(work // _STRETCH, _STRETCHES)
  sums = [u for u in kernel.sink.toposort() if u.op is Ops.REDUCE]
  for axis in kernel.outputs:
    # A sum that an axis shares would be made anew by each stretch of it.
    if any(axis not in u.ranges for u in sums): continue
    if wanted < 2: return
    # Each stretch of rows makes its own copy of what they share: only where there are few others.
    room = min(wanted, kernel.left(axis) // 8, 16 // kernel.product(Axis.GLOBAL)) if axis is rows else wanted
    amount = divisor(kernel.left(axis), room) if room > 1 else 1
    if amount > 1 and _try(kernel, OptKind.THREAD, axis, amount): wanted //= amount
