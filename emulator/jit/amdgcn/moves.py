"""Dwords of lanes from and to the host's memory, as LLVM IR: side by side, or each lane's at a place of its own."""
from __future__ import annotations

from collections.abc import Sequence

from tinyhw.emulator.jit.values import Emitter, Value, gather
from tinyhw.emulator.jit.vectors import chained, interleaved, scatter
from tinyhw.emulator.values.ops import U32

EVERY = "splat (i1 true)"  # the mask of all lanes
LINE = 64  # bytes of a line of the host's caches


def fetch(e: Emitter, pointer: str) -> None:
  """Have the processor fetch the line of a place."""
  e.declared["llvm.prefetch.p0"] = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"
  e.do(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 3, i32 1)")


class Moves:
  """Loads and stores at addresses that have been checked."""

  e: Emitter
  ahead: bool  # whether loads fetch ahead: where a site is one place of a function, which remembers the last

  def _at(self, base: str, t: str, offsets: str) -> str:
    """Pointers at byte offsets from a base; without one the offsets are host addresses."""
    if base: return self.e.op(f"getelementptr i8, ptr {base}, {t} {offsets}")
    lanes = f"<{t[1:].split()[0]} x ptr>" if t[0] == "<" else "ptr"
    return self.e.op(f"inttoptr {t} {offsets} to {lanes}")

  # ---- gathers and scatters of dwords; `stride` is from dword to dword of a lane

  def _gather(self, base: str, offsets: Value, width: int, stride: int, mask: str) -> list[Value]:
    e, n = self.e, self.e.lanes
    if width == 8 and stride == 4:
      pairs = gather(e, "i64", self._at(base, offsets.type, offsets.text), mask)
      return self._dealt(e.op(f"bitcast <{n} x i64> {pairs} to <{2 * n} x i32>"), 2)
    if width == 16 and stride == 4 and mask == EVERY and n % 8 == 0: return self._quads(base, offsets)
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
    return [Value(e, x, U32, True)] if count == 1 else self._dealt(x, count)

  def _dealt(self, x: str, count: int) -> list[Value]:
    """The dwords of lanes whose `count` dwords follow one another."""
    e, n = self.e, self.e.lanes
    t, out = f"<{n * count} x i32>", []
    for k in range(count):
      order = ", ".join(f"i32 {lane * count + k}" for lane in range(n))
      out.append(Value(e, e.op(f"shufflevector {t} {x}, {t} poison, <{n} x i32> <{order}>"), U32, True))
    return out

  def _quads(self, base: str, offsets: Value) -> list[Value]:
    """Four dwords of each lane, from a place of its own: 16 bytes at a time, and a transposition of eight lanes each,
    in steps that processors have as instructions on halves of registers."""
    e, n, four, eight = self.e, self.e.lanes, "<4 x i32>", "<8 x i32>"

    def mixed(a: str, b: str, order: Sequence[int], t: str = eight) -> str:
      return e.op(f"shufflevector {t} {a}, {t} {b}, <8 x i32> <{', '.join(f'i32 {k}' for k in order)}>")

    def lane(k: int) -> str:
      t, number = offsets.type[:-1].split(" x ")[1], "i32" if offsets.dtype.itemsize == 4 else "i64"
      at = self._at(base, t, e.op(f"extractelement {offsets.type} {offsets.text}, {number} {k}"))
      if self.ahead: fetch(e, e.op(f"getelementptr i8, ptr {at}, i64 {LINE}"))
      return e.op(f"load {four}, ptr {at}, align 1")
    words: list[list[str]] = [[], [], [], []]
    for first in range(0, n, 8):
      rows = [mixed(lane(first + k), lane(first + k + 4), range(8), four) for k in range(4)]
      low, high = (0, 8, 1, 9, 4, 12, 5, 13), (2, 10, 3, 11, 6, 14, 7, 15)
      (a, b), (c, d) = ((mixed(x, y, low), mixed(x, y, high)) for x, y in zip(rows[::2], rows[1::2]))
      for k, (x, y, order) in enumerate(((a, c, (0, 1, 8, 9, 4, 5, 12, 13)), (a, c, (2, 3, 10, 11, 6, 7, 14, 15)),
                                         (b, d, (0, 1, 8, 9, 4, 5, 12, 13)), (b, d, (2, 3, 10, 11, 6, 7, 14, 15)))):
        words[k].append(mixed(x, y, order))
    return [Value(e, chained(e, parts, 8), U32, True) for parts in words]

  def _store_block(self, pointer: str, words: Sequence[Value], width: int) -> None:
    e, n = self.e, self.e.lanes
    if width < 4:
      x = e.op(f"trunc <{n} x i32> {words[0].in_lanes()} to <{n} x i{width * 8}>")
      e.do(f"store <{n} x i{width * 8}> {x}, ptr {pointer}, align 1")
    elif len(words) == 1: e.do(f"store <{n} x i32> {words[0].view(U32).in_lanes()}, ptr {pointer}, align 1")
    else:
      x = interleaved(e, [w.view(U32).in_lanes() for w in words], "i32")
      e.do(f"store <{n * len(words)} x i32> {x}, ptr {pointer}, align 1")
