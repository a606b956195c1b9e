"""Dwords of lanes from and to the host's memory, as LLVM IR: side by side, or each lane's at a place of its own."""
from __future__ import annotations

from collections.abc import Sequence

from tinyhw.emulator.jit.values import Emitter, Value, gather
from tinyhw.emulator.jit.vectors import interleaved, scatter
from tinyhw.emulator.values.ops import U32


class Moves:
  """Loads and stores at addresses that have been checked."""

  e: Emitter

  def _at(self, base: str, t: str, offsets: str) -> str:
    """Pointers at byte offsets from a base; without one the offsets are host addresses."""
    if base: return self.e.op(f"getelementptr i8, ptr {base}, {t} {offsets}")
    lanes = f"<{t[1:].split()[0]} x ptr>" if t[0] == "<" else "ptr"
    return self.e.op(f"inttoptr {t} {offsets} to {lanes}")

  # ---- gathers and scatters of dwords; `stride` is from dword to dword of a lane

  def _gather(self, base: str, offsets: Value, width: int, stride: int, mask: str) -> list[Value]:
    e, n = self.e, self.e.lanes
    words = []
    element = f"i{min(width, 4) * 8}"
    for k in range(max(1, width // 4)):
      if base and k: pointers = self._at(self._at(base, "i64", str(k * stride)), offsets.type, offsets.text)
      else: pointers = self._at(base, offsets.type, (offsets + k * stride).text if k else offsets.text)
      x = gather(e, element, pointers, mask)
      words.append(x if width >= 4 else e.op(f"zext <{n} x {element}> {x} to <{n} x i32>"))
    return [Value(e, x, U32, True) for x in words]

  def _scatter(self, base: str, offsets: Value, words: Sequence[Value], width: int, stride: int, mask: str) -> None:
    """In the order of lanes, each lane's dwords together, so that the highest lane wins."""
    e, n, count = self.e, self.e.lanes, len(words)
    if width < 4:
      t = f"i{width * 8}"
      data = e.op(f"trunc <{n} x i32> {words[0].in_lanes()} to <{n} x {t}>")
      pointers = self._at(base, offsets.type, offsets.text)
      scatter(e, t, n, data, pointers, mask)
      return
    if count == 1:
      pointers = self._at(base, offsets.type, offsets.text)
      scatter(e, "i32", n, words[0].view(U32).in_lanes(), pointers, mask)
      return
    total = n * count
    data = interleaved(e, [w.view(U32).in_lanes() for w in words], "i32")
    each = ", ".join(f"i32 {k // count}" for k in range(total))
    t = offsets.type[:-1].split(" x ")[1]
    repeated = e.op(f"shufflevector {offsets.type} {offsets.text}, {offsets.type} poison, <{total} x i32> <{each}>")
    steps = ", ".join(f"{t} {k % count * stride}" for k in range(total))
    at = e.op(f"add <{total} x {t}> {repeated}, <{steps}>")
    pointers = self._at(base, f"<{total} x {t}>", at)
    wide = e.op(f"shufflevector <{n} x i1> {mask}, <{n} x i1> poison, <{total} x i32> <{each}>")
    scatter(e, "i32", total, data, pointers, wide)

  def _load_block(self, pointer: str, width: int) -> list[Value]:
    """Elements of consecutive lanes that follow one another in memory."""
    e, n = self.e, self.e.lanes
    if width < 4:
      x = e.op(f"load <{n} x i{width * 8}>, ptr {pointer}, align 1")
      return [Value(e, e.op(f"zext <{n} x i{width * 8}> {x} to <{n} x i32>"), U32, True)]
    count = width // 4
    t = f"<{n * count} x i32>"
    x = e.op(f"load {t}, ptr {pointer}, align 1")
    if count == 1: return [Value(e, x, U32, True)]
    out = []
    for k in range(count):
      order = ", ".join(f"i32 {lane * count + k}" for lane in range(n))
      out.append(Value(e, e.op(f"shufflevector {t} {x}, {t} poison, <{n} x i32> <{order}>"), U32, True))
    return out

  def _store_block(self, pointer: str, words: Sequence[Value], width: int) -> None:
    e, n = self.e, self.e.lanes
    if width < 4:
      x = e.op(f"trunc <{n} x i32> {words[0].in_lanes()} to <{n} x i{width * 8}>")
      e.do(f"store <{n} x i{width * 8}> {x}, ptr {pointer}, align 1")
    elif len(words) == 1: e.do(f"store <{n} x i32> {words[0].view(U32).in_lanes()}, ptr {pointer}, align 1")
    else:
      x = interleaved(e, [w.view(U32).in_lanes() for w in words], "i32")
      e.do(f"store <{n * len(words)} x i32> {x}, ptr {pointer}, align 1")
