"""A workgroup's tile of a product (`ir.matrix.TileProduct`) in PTX, by `wgmma` out of shared memory.

Tiles of shared memory take turns. In each loop a workgroup multiplies the oldest tile that has come, and asks for the
one that comes two loops before that turn's end: of the two loops behind, every warpgroup has passed the barrier once
it has read the first, so its tile is free. `cp.async` copies 16 bytes a thread; the vectors of a line change places by
the line's number, as the swizzle of 128 bytes has it, so that neither copies nor `wgmma` meet in a bank.

Facts: PTX ISA 9.7.15.5.1 (where operands lie, descriptors), 9.7.9.25 (cp.async), 9.7.13.4 (proxies: what cp.async wrote
is for the asynchronous proxy to read). The fence is one of shared memory alone: on an H200 one of all memory waits for
copies that are still on their way, and the product of 8,192 rows takes 2.16 ms for 1.48.
"""
from __future__ import annotations

from typing import Final

from tinyhw.compile.render.ptxlanes import Lanes, PTXLine, group
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.matrix import LINE_BYTES, TILE_ALIGN, Operand, TileProduct
from tinyhw.ir.uop import UOp

Place = tuple[str, int]           # a register with an address, bytes behind it
_BEHIND: Final = 2                # tiles that are not asked for: the one that is multiplied, and the one before it
_BLOCK: Final = 64                # lines of a block: rows of a warpgroup; steps, where lines go across them
_VECTOR: Final = 16
_LABEL: Final = "$tile"
_GROUP_BYTES: Final = 8 * LINE_BYTES  # of eight lines, in which the swizzle's pattern comes once
_SWIZZLE_128: Final = 1 << 62     # of a matrix descriptor
_STEPS: Final = 4                 # instructions a line: each has 32 bytes of it
_U32, _U64, _BOOL = dtypes.uint32, dtypes.uint64, dtypes.bool


def descriptor(operand: Operand) -> int:
  """A matrix descriptor without its address: bytes from block to block, and from eight lines to eight lines."""
  apart = 0 if operand.along else _BLOCK * LINE_BYTES
  return _SWIZZLE_128 | _GROUP_BYTES >> 4 << 32 | apart >> 4 << 16


def step_bytes(operand: Operand) -> int:
  """From what an instruction multiplies to what the next one does."""
  return LINE_BYTES // _STEPS if operand.along else _BLOCK // _STEPS * LINE_BYTES


class _Copies:
  """What a thread copies of a factor in a loop, from where its pointer is to where its lines of a tile are."""

  def __init__(self, w: Lanes, product: TileProduct, operand: Operand, place: Place, first: int) -> None:
    self.w, self.operand = w, operand
    self.pointer = w.new(_U64, "add.u64", place[0], str(place[1]))
    apart = product.threads * _VECTOR // LINE_BYTES   # lines that all threads copy at once
    lines = range(0, operand.count, apart)
    def source(line: int) -> int:
      if operand.along: return line * operand.pitch
      return line % _BLOCK * operand.pitch + line // _BLOCK * LINE_BYTES
    self.places = [(first + line * LINE_BYTES, source(line)) for line in lines]

  def ask(self, tile: str, guard: str = "") -> None:
    """The copies, and the pointer goes on."""
    for to, source in self.places:
      self.w.line("cp.async.cg.shared.global", f"[{tile}+{to}]", f"[{self.pointer}+{source}]", str(_VECTOR),
                  guard=guard)
    self.w.line("add.u64", self.pointer, str(self.operand.advance), result=self.pointer)


def product(w: Lanes, u: UOp, a: Place, b: Place, memory: str, thread: str) -> list[str]:
  """The instructions of a WGMMA, of which a kernel has one; gives a lane's results. `a` and `b` are where the thread of
  that number copies first, `memory` is the address of the tiles."""
  made: TileProduct = u.arg
  kind, size, whole = u.dtype.scalar, made.stage_bytes, made.stages * made.stage_bytes
  ahead = made.stages - _BEHIND
  sums = [w.register(kind) for _ in range(u.dtype.count)]
  base = w.new(_U32, "add.u32", memory, str(TILE_ALIGN - 1), note=f"{made.stages} tiles of {size} bytes")
  base = w.new(_U32, "and.b32", base, f"{0x100000000 - TILE_ALIGN:#x}")
  line = w.new(_U32, "shr.u32", thread, "3")
  turned = w.new(_U32, "xor.b32", line, thread)
  turned = w.new(_U32, "and.b32", turned, "7")
  at = w.new(_U32, "mad.lo.u32", line, str(LINE_BYTES), base)
  at = w.new(_U32, "mad.lo.u32", turned, str(_VECTOR), at)
  copies = [_Copies(w, made, made.a, a, 0), _Copies(w, made, made.b, b, LINE_BYTES * made.a.count)]
  for n in range(ahead):
    tile = w.new(_U32, "add.u32", at, str(n * size))
    if n < made.loops:
      for c in copies: c.ask(tile)
    w.line("cp.async.commit_group")
  for x in sums: w.line(f"mov.{'b32' if kind is dtypes.int32 else 'f32'}", w.constant(0, kind), result=x)
  warp = w.new(_U32, "shr.u32", thread, "7")
  warpgroup = w.new(_U32, "shfl.sync.idx.b32", warp, "0", "31", "-1")
  rows = w.new(_U32, "mad.lo.u32", warpgroup, str(_BLOCK * LINE_BYTES), base)
  columns = w.new(_U32, "add.u32", base, str(LINE_BYTES * made.a.count))
  matrices = []
  for operand, address in ((made.a, rows), (made.b, columns)):
    low = w.new(_U64, "cvt.u64.u32", w.new(_U32, "shr.u32", address, "4"))
    matrices.append(w.new(_U64, "or.b64", low, f"{descriptor(operand):#x}"))
  always = w.new(_BOOL, "setp.eq.u32", thread, thread)
  loops, reads, fills = w.register(_U32), w.register(_U32), w.register(_U32)
  for register, first in ((loops, 0), (reads, 0), (fills, ahead * size)):
    w.line("mov.u32", str(first), result=register)
  w.lines.append(PTXLine(0, f"{_LABEL}:"))
  w.depth += 1
  w.line("cp.async.wait_group", str(ahead - 1))
  w.line("fence.proxy.async.shared::cta")
  w.line("bar.sync", "0")
  w.line("wgmma.fence.sync.aligned")
  offset = w.new(_U64, "cvt.u64.u32", w.new(_U32, "shr.u32", reads, "4"))
  found = [w.new(_U64, "add.u64", m, offset) for m in matrices]
  _, shape, types = made.name.split(".", 2)
  scales = () if kind is dtypes.int32 else ("1", "1")
  across = [str(int(not o.along)) for o in (made.a, made.b)] if made.steps == _BLOCK else []
  for n in range(_STEPS):
    if n: found = [w.new(_U64, "add.u64", m, str(step_bytes(o) >> 4)) for m, o in zip(found, (made.a, made.b))]
    w.line(f"wgmma.mma_async.sync.aligned.{shape}.{types}", *found, always, *scales, *across, result=group(sums))
  w.line("wgmma.commit_group.sync.aligned")
  more = w.new(_BOOL, "setp.lt.u32", loops, str(max(made.loops - ahead, 0)))
  tile = w.new(_U32, "add.u32", at, fills)
  for c in copies: c.ask(tile, more)
  w.line("cp.async.commit_group")
  w.line("wgmma.wait_group.sync.aligned", "1")
  for register in (reads, fills):
    w.line("add.u32", register, str(size), result=register)
    over = w.new(_BOOL, "setp.eq.u32", register, str(whole))
    w.line("mov.u32", "0", result=register, guard=over)
  w.line("add.u32", loops, "1", result=loops)
  again = w.new(_BOOL, "setp.lt.u32", loops, str(made.loops))
  w.line("bra", _LABEL, guard=again)
  w.depth -= 1
  w.line("wgmma.wait_group.sync.aligned", "0")
  return sums
