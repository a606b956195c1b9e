"""The option IMAGE: a buffer of floats or halves is a two-dimensional image of four numbers a pixel.

An image is read and written by whole pixels, through the texture cache where a GPU has one. What a kernel loads of a
smaller piece is the pixel around it; what it stores has to be pixels. `IMAGE=1` in the environment lets the heuristic
choose it for the operands and results of products (convolutions among them), on targets that have images.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from tinyhw.compile.program import Opt, OptKind
from tinyhw.core.environment import variable
from tinyhw.core.errors import InvalidArgument
from tinyhw.ir.dtype import AddressSpace, DType, PtrDType, dtypes
from tinyhw.ir.symbolic import linear, simplify
from tinyhw.ir.uop import Axis, Ops, UOp

if TYPE_CHECKING:
  from tinyhw.compile.kernel import Kernel

VARIABLE = "IMAGE"
PIXEL = 4
_WIDTH = 128              # of an image that may as well be high: texture caches keep what is near in both directions
KINDS = (dtypes.float32, dtypes.float16)


def wanted() -> bool:
  """What the environment says of images."""
  return variable(VARIABLE, b"IMAGE") not in ("", "0")


def shape(size: int, most: tuple[int, int]) -> tuple[int, int] | None:
  """(width, height) in pixels of an image that holds as many numbers exactly, within `most`; None: there is none."""
  pixels, rest = divmod(size, PIXEL)
  if rest or not pixels: return None
  for limit in (_WIDTH, most[0]):
    width = next(w for w in range(min(pixels, limit, most[0]), 0, -1) if pixels % w == 0)
    if pixels // width <= most[1]: return width, pixels // width
  return None


def fitting(kernel: Kernel, opt: Opt) -> int:
  """The number of the buffer that becomes an image; InvalidArgument where the kernel or the target has no such one."""
  most = kernel.renderer.images
  def refused(why: str) -> InvalidArgument: return InvalidArgument(f"{opt}: {why}")
  if most is None: raise refused(f"target {kernel.renderer.target} has no images")
  accesses = [a for a in kernel.accesses if a.index.src[0].op is Ops.DEFINE_GLOBAL and a.index.src[0].arg == opt.axis]
  if not accesses: raise refused(f"the kernel has no buffer {opt.axis}")
  pointer = accesses[0].index.src[0]
  assert isinstance(pointer.dtype, PtrDType)
  base = pointer.dtype.base
  if base not in KINDS: raise refused(f"an image is of floats or halves, not of {base.name}")
  if shape(pointer.dtype.size, most) is None:
    raise refused(f"no image of {PIXEL} numbers a pixel has {pointer.dtype.size:,}")
  if len({a.is_store for a in accesses}) > 1: raise refused("the buffer is read and written")
  if opt.axis in kernel.images: raise refused("it is an image already")
  if not accesses[0].is_store: return opt.axis
  for a in accesses:
    along = [r for r, step in a.steps.items() if step == 1 and kernel.taken(r, Axis.UPCAST) % PIXEL == 0]
    terms, constant = linear(a.index.src[1])
    rest = [step for t, step in terms.items() if t not in along[:1]]
    inner = along and kernel.parts[along[0]][-1]
    if not inner or inner.kind is not Axis.UPCAST or inner.size % PIXEL or a.other or constant % PIXEL or any(
        step % PIXEL for step in rest): raise refused("a thread does not store whole pixels")
  return opt.axis


def choose(kernel: Kernel) -> None:
  """Applies the option to all that a product reads and writes, as far as it fits."""
  if not any(u.op is Ops.REDUCE and u.src[0].op is Ops.MUL for u in kernel.sink.toposort()): return
  for number in kernel.buffers():
    try: kernel.apply(Opt(OptKind.IMAGE, number))
    except InvalidArgument: continue


def with_images(sink: UOp, numbers: frozenset[int], most: tuple[int, int]) -> UOp:
  """An expanded graph, with vectors, whose buffers of those numbers are images: a load or store is of a pixel, at an
  INDEX by column and row."""
  done: dict[UOp, UOp] = {}
  stores: dict[UOp, tuple[UOp, ...]] = {}
  def place(index: UOp, element: UOp) -> UOp:
    """The INDEX of the pixel that holds an element."""
    pointer = index.src[0]
    assert isinstance(pointer.dtype, PtrDType)
    made, pixel = shape(pointer.dtype.size, most), element // PIXEL
    assert made is not None, "the option was checked"
    at = UOp(Ops.VECTORIZE, dtypes.index.vec(2), (simplify(pixel % made[0]), simplify(pixel // made[0])))
    image = UOp(Ops.DEFINE_GLOBAL, pointer.dtype.base.ptr(pointer.dtype.size, AddressSpace.IMAGE), (), pointer.arg)
    return image.index(at)
  def is_image(index: UOp) -> bool: return index.src[0].op is Ops.DEFINE_GLOBAL and index.src[0].arg in numbers
  def numbers_at(index: UOp, at: UOp, count: int, dtype: DType) -> list[UOp]:
    """`count` neighbours, at a multiple of it."""
    pixel = dtype.vec(PIXEL)
    if count % PIXEL == 0:
      pixels = [UOp(Ops.LOAD, pixel, (place(index, at + i),)) for i in range(0, count, PIXEL)]
      return [p.gep(j) for p in pixels for j in range(PIXEL)]
    found, lane = UOp(Ops.LOAD, pixel, (place(index, at),)), simplify(at % PIXEL)
    if lane.op is Ops.CONST: return [found.gep(int(lane.arg) + i) for i in range(count)]
    one = [found.gep(i) for i in range(PIXEL)]
    def pick(first: int) -> UOp:
      value = one[first]
      for k in range(first + count, PIXEL, count): value = lane.eq(k - first).where(one[k], value)
      return value
    return [pick(i) for i in range(count)]
  for u in sink.toposort():
    src = tuple(done[s] for s in u.src)
    new = u if src == u.src else UOp(u.op, u.dtype, src, u.arg)
    if u.op is Ops.LOAD and is_image(u.src[0]):
      # A place outside of the image is nothing that happens: it reads as zeros, which the gate then replaces.
      index, at = u.src[0], done[u.src[0].src[1]]
      found = numbers_at(index, at, u.dtype.count, u.dtype.scalar)
      if len(index.src) > 2:
        gate, other = done[index.src[2]], src[1]
        found = [gate.where(x, other.gep(i) if other.dtype.count > 1 else other) for i, x in enumerate(found)]
      new = found[0] if len(found) == 1 else UOp(Ops.VECTORIZE, u.dtype, tuple(found))
    elif u.op is Ops.STORE and is_image(u.src[0]):
      index, value, at = u.src[0], src[1], done[u.src[0].src[1]]
      if value.dtype.count % PIXEL: raise InvalidArgument(f"buffer {index.src[0].arg}: no thread stores whole pixels")
      pixels = (value.gep(tuple(range(i, i + PIXEL))) for i in range(0, value.dtype.count, PIXEL))
      stores[u] = tuple(UOp(Ops.STORE, dtypes.void, (place(index, at + PIXEL * i).replace(
        src=(*place(index, at + PIXEL * i).src, *(done[g] for g in index.src[2:]))), x)) for i, x in enumerate(pixels))
    elif u.op is Ops.SINK: new = u.replace(src=tuple(x for s in u.src for x in stores.get(s, (done[s],))))
    done[u] = new
  return done[sink]
