"""The left operand of mma.sp and wgmma.sp with its zeros, as LLVM IR; `emulator.ptx.tensorcore.sparse` tells who has
which metadata."""
from __future__ import annotations

from typing import Final

from tinyhw.emulator.jit.ptx.module.emit import Lanes
from tinyhw.emulator.jit.ptx.routine import Routine, defined
from tinyhw.emulator.jit.values import Value, convert
from tinyhw.emulator.ptx.tensorcore.matrix import BITS
from tinyhw.emulator.ptx.tensorcore.sparse import CHUNK
from tinyhw.emulator.values.ops import U32, U64

ROWS: Final = 16


def _routine(t: str, k: int, stored: int, dense: int, size: int) -> Routine:
  """Puts rows of k // 2 elements of `size` bytes where the metadata says, in rows of k. They lie in pieces of eight
  rows and `stored` columns, and of `dense` ones. Not done where the metadata names a place twice."""
  r = Routine(f"expanded.{t}.{k}.{stored}", ("dense", "stored", "words", "selector"))
  chunk = CHUNK[t]
  bits = 4 * k // chunk  # of metadata, for a row
  with r.each(r.number(ROWS * k * size >> 3)) as at: r.store(r["dense"] + (at << 3), r.number(0))
  with r.each(r.number(ROWS)) as row:
    half, g = row >> 3, row & 7
    each = 16 if BITS[t] > 8 else 32
    found = r.number(0)
    for part in range(bits // each):
      lane = r["selector"] * (bits // 16) + part if each == 16 else (r["selector"] + part << 1) + half
      word = convert(r.load(r["words"] + (((g << 2) + lane) << 2), U32), U64)
      if each == 16: word = word >> (half << 4) & 0xFFFF
      found = found | word << each * part
    if chunk > 2:
      differ = found ^ found >> 2
      ones = int("1" * (bits // 4), 16)
      r.need(((differ | differ >> 1) & ones) == ones)
    with r.each(r.number(k // 2)) as j:
      if chunk == 4: column = (j >> 1 << 2) + (found >> (j << 1) & 3)
      elif chunk == 8: column = (j >> 2 << 3) + ((found >> (j >> 1 << 1) & 3) << 1) + (j & 1)
      else: column = (j << 1) + (found >> ((j << 2) + 3) & 1)
      element = r.load(r["stored"] + _place(half, g, j, stored) * size, U64 if size == 8 else U32)
      r.store(r["dense"] + _place(half, g, column, dense) * size, element)
  return r


def _place(half: Value, g: Value, column: Value, width: int) -> Value:
  """The number of an element in memory."""
  return half * (8 * width) + g * width + (column >> width.bit_length() - 1) * (ROWS * width) + (column & width - 1)


def expand(g: Lanes, t: str, k: int, widths: tuple[int, int], element: str, stored: str, metadata: Value,
           selector: int) -> str:
  """The whole operand in memory, of what lies in `stored`; `widths` are the columns of their pieces."""
  e, size = g.e, 4 if element == "i32" else 8
  dense, words = f"dense.{element}.{ROWS * k}", "metadata"
  e.stack[dense], e.stack[words] = f"alloca [{ROWS * k} x {element}], align 64", "alloca <32 x i32>, align 64"
  r = _routine(t, k, *widths, size)
  defined(e, r.text())
  away = g.deopt()
  e.do(f"store <32 x i32> {metadata.in_lanes()}, ptr %{words}, align 64")
  given = ", ".join(f"i64 {e.op(f'ptrtoint ptr {p} to i64')}" for p in (f"%{dense}", stored, f"%{words}"))
  good, fine = e.op(f"call i1 @{r.name}(ptr %context, ptr %state, {given}, i64 {selector})"), e.new_label("expanded")
  e.do(f"br i1 {good}, label %{fine}, label %{away}, !prof !1")
  e.start(fine)
  return f"%{dense}"
