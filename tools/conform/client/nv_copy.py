"""Cases of the copy engine's class (AMPERE_DMA_COPY_A to BLACKWELL_DMA_COPY_B): lines, windows, components, semaphores.

What fields mean is told by their names in the class headers, and by NVIDIA's notes in clc6b5.h's manual pages: lengths
count bytes, or elements where components are remapped; pitches are from line to line.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from tinyhw.arch.nv import NvArch
from tinyhw.tools.conform.client import models
from tinyhw.tools.conform.client.nv import ANY, interrupts, maker, methods
from tinyhw.tools.conform.client.nv_host import LONGS, ONES, reduced, reductions, rows_of, timed
from tinyhw.tools.conform.client.question import Area, Question, Stage
from tinyhw.tools.conform.client.sdma import KINDS, PLACES, SIZES, WORDS

UNIT: Final = "copy"
PAGE: Final = 4096
_LARGE: Final = 4 << 20
# Lines: how long, how many, from pitch, to pitch, from place, to place.
_WINDOWS: Final = ((8, 1, 32, 48, 4, 4), (8, 2, 32, 48, 0, 0), (1, 3, 1, 1, 0, 0), (3, 5, 7, 4, 1, 2),
                   (16, 16, 64, 16, 0, 0), (100, 37, 256, 130, 0, 0), (64, 4, 64, 64, 3, 5),
                   (4, 1, 0, 0, 8, 12), (33, 9, 40, 4097, 5, 0), (PAGE, 3, PAGE + 64, PAGE, 0, 64))
_PICKS: Final = (("SRC_X",), ("CONST_A",), ("CONST_B",), ("SRC_Y", "SRC_X"), ("CONST_A", "CONST_B"),
                 ("SRC_X", "NO_WRITE"), ("SRC_Z", "SRC_Y", "SRC_X"), ("SRC_W", "CONST_B", "NO_WRITE", "SRC_X"),
                 ("SRC_X", "SRC_X", "SRC_X", "SRC_X"))


def questions(arch: NvArch) -> Iterator[Question]:
  """All cases of a generation."""
  yield from _lines(arch)
  yield from _windows(arch)
  yield from _remaps(arch)
  yield from _semaphores(arch)
  yield from _interrupts(arch)
  before = models.noise(61, 64)
  yield maker(arch, UNIT)("NOP", "plain", [Area(before)], [before], lambda c, a: c.send(c.module.NOP()))


def places(c: Any, source: int, target: int) -> None:
  """OFFSET_IN and OFFSET_OUT."""
  c.run(c.module.OFFSET_IN_UPPER, source >> 32, source & ONES, target >> 32, target & ONES)


def launch(c: Any, kind: str = "NON_PIPELINED", **fields: Any) -> None:
  """LAUNCH_DMA between pitch layouts at virtual addresses."""
  m = c.module
  c.send(m.LAUNCH_DMA(**{"DATA_TRANSFER_TYPE": m.LAUNCH_DMA_DATA_TRANSFER_TYPE[kind], "FLUSH_ENABLE": 1,
                         "SRC_MEMORY_LAYOUT": m.LAUNCH_DMA_SRC_MEMORY_LAYOUT.PITCH,
                         "DST_MEMORY_LAYOUT": m.LAUNCH_DMA_DST_MEMORY_LAYOUT.PITCH, **fields}))


def _lines(arch: NvArch) -> Iterator[Question]:
  make, name = maker(arch, UNIT), "LAUNCH_DMA"

  def copy(form: str, size: int, at: int, to: int, kinds: tuple[str, str] = ("system", "system"),
           kind: str = "NON_PIPELINED") -> Question:
    room = -(-(max(at, to) + size + 256) // 256) * 256
    source, target = models.noise(size, room), models.noise(size + 1, room)

    def put(c: Any, a: int, b: int) -> None:
      places(c, a + at, b + to)
      c.run(c.module.LINE_LENGTH_IN, size, 77)  # how many lines does not count
      launch(c, kind)
    return make(name, form, [Area(source, kinds[0]), Area(target, kinds[1])],
                [source, models.copied(target, source, at, to, size)], put)
  for i, size in enumerate(SIZES):
    for j in sorted({0, 1 + i % 6, 1 + (i + 3) % 6}):
      at, to = PLACES[j]
      yield copy(f"{size}-from-{at}-to-{to}", size, at, to)
  for size in (4, 5, PAGE + 1):
    for a in KINDS:
      for b in KINDS: yield copy(f"{size}-{a}-to-{b}", size, 0, 0, (a, b))
  for size in (2, PAGE): yield copy(f"{size}-over-a-page's-end", size, PAGE - 1, 2 * PAGE - 1)
  for size in (_LARGE - 1, _LARGE, _LARGE + 4): yield copy(f"{size}", size, 0, 0)
  for size in (0, 1, 64, PAGE): yield copy(f"pipelined-{size}", size, 3, 5, kind="PIPELINED")
  yield copy("0", 0, 0, 0)

  def ordered(c: Any, a: int, b: int) -> None:  # the second one, which is not pipelined, sees what the first one wrote
    places(c, a, b)
    c.run(c.module.LINE_LENGTH_IN, PAGE, 1)
    launch(c, "PIPELINED")
    places(c, b, a + PAGE)
    launch(c)
  source, target = models.noise(62, 2 * PAGE), models.noise(63, PAGE)
  yield make(name, "behind-pipelined", [Area(source), Area(target)],
             [source[:PAGE] + source[:PAGE], source[:PAGE]], ordered)


def _windows(arch: NvArch) -> Iterator[Question]:
  make = maker(arch, UNIT)
  for length, count, pitch, to_pitch, at, to in _WINDOWS:
    room = -(-(max(at + pitch * count, to + to_pitch * count) + length + 256) // 256) * 256
    source, target = models.noise(64 + length, room), models.noise(65 + length, room)
    after = target
    for i in range(count): after = models.copied(after, source, at + i * pitch, to + i * to_pitch, length)

    def put(c: Any, a: int, b: int, length: int = length, count: int = count, pitch: int = pitch,
            to_pitch: int = to_pitch, at: int = at, to: int = to) -> None:
      places(c, a + at, b + to)
      c.run(c.module.PITCH_IN, pitch, to_pitch, length, count)
      launch(c, MULTI_LINE_ENABLE=1)
    yield make("LAUNCH_DMA", f"lines-{count}-of-{length}-{pitch}-to-{to_pitch}", [Area(source), Area(target)],
               [source, after], put)


def remapped(source: bytes, before: bytes, picks: Sequence[str], size: int, count: int, given: int,
             constants: tuple[int, int]) -> bytes:
  """`count` elements of new components: of the source's `given`, of constants, or what was there."""
  elements = np.frombuffer(source[:count * given * size], np.uint8).reshape(count, given, size)
  out = np.frombuffer(before[:count * len(picks) * size], np.uint8).copy().reshape(count, len(picks), size)
  for i, pick in enumerate(picks):
    if pick.startswith("SRC"): out[:, i] = elements[:, "XYZW".index(pick[-1])]
    elif pick != "NO_WRITE":
      out[:, i] = np.frombuffer(constants[pick == "CONST_B"].to_bytes(4, "little")[:size], np.uint8)
  return out.tobytes() + before[count * len(picks) * size:]


def _remaps(arch: NvArch) -> Iterator[Question]:
  make, constants, words = maker(arch, UNIT), (0x0102_0304, 0xA5B6_C7D8), ("ONE", "TWO", "THREE", "FOUR")
  for size in (1, 2, 4):
    for picks in _PICKS:
      given = max(["XYZW".index(p[-1]) + 1 for p in picks if p.startswith("SRC")], default=1)
      for count in (1, 5, 64):
        source, before = models.noise(66, 1024), models.noise(67, 1280)

        def put(c: Any, a: int, b: int, size: int = size, picks: Sequence[str] = picks, given: int = given,
                count: int = count) -> None:
          m = c.module
          c.run(m.SET_REMAP_CONST_A, *constants)
          chosen = {f"DST_{axis}": getattr(m, f"SET_REMAP_COMPONENTS_DST_{axis}")[p]
                    for axis, p in zip("XYZW", picks, strict=False)}
          c.send(m.SET_REMAP_COMPONENTS(
            **chosen, COMPONENT_SIZE=m.SET_REMAP_COMPONENTS_COMPONENT_SIZE[words[size - 1]],
            NUM_SRC_COMPONENTS=m.SET_REMAP_COMPONENTS_NUM_SRC_COMPONENTS[words[given - 1]],
            NUM_DST_COMPONENTS=m.SET_REMAP_COMPONENTS_NUM_DST_COMPONENTS[words[len(picks) - 1]]))
          places(c, a, b)
          c.run(m.LINE_LENGTH_IN, count, 1)
          launch(c, REMAP_ENABLE=1)
        yield make("SET_REMAP_COMPONENTS", f"{'-'.join(picks)}-{8 * size}-{count}", [Area(source), Area(before)],
                   [source, remapped(source, before, picks, size, count, given, constants)], put)


def _interrupts(arch: NvArch) -> Iterator[Question]:
  for word, comes in (("NON_BLOCKING", True), ("NONE", False)):
    def put(c: Any, a: int, word: str = word) -> None:
      c.run(c.module.SET_SEMAPHORE_A, a >> 32, a & ONES, 1)
      launch(c, "NONE", SEMAPHORE_TYPE=c.module.LAUNCH_DMA_SEMAPHORE_TYPE.RELEASE_ONE_WORD_SEMAPHORE,
             INTERRUPT_TYPE=c.module.LAUNCH_DMA_INTERRUPT_TYPE[word])
    yield interrupts(arch, UNIT, "LAUNCH_DMA", f"interrupt-{word}", put, comes)


def _semaphores(arch: NvArch) -> Iterator[Question]:
  make, name, before = maker(arch, UNIT), "LAUNCH_DMA", models.noise(68, 64)

  def at(c: Any, address: int, payload: int) -> None:
    c.run(c.module.SET_SEMAPHORE_A, address >> 32, address & ONES, payload & ONES)
    if hasattr(c.module, "SET_SEMAPHORE_PAYLOAD_UPPER"): c.run(c.module.SET_SEMAPHORE_PAYLOAD_UPPER, payload >> 32)
  wide_too = arch.copy_class >= 0xC8B5  # SEMAPHORE_PAYLOAD_SIZE
  for value in WORDS:
    def one(c: Any, a: int, value: int = value) -> None:
      at(c, a + 16, value)
      launch(c, "NONE", SEMAPHORE_TYPE=c.module.LAUNCH_DMA_SEMAPHORE_TYPE.RELEASE_ONE_WORD_SEMAPHORE)
    yield make(name, f"semaphore-{value:#x}", [Area(before)],
               [models.written(before, 16, models.words(value))], one)

    def four(c: Any, a: int, value: int = value) -> None:
      at(c, a + 16, value)
      launch(c, "NONE", SEMAPHORE_TYPE=c.module.LAUNCH_DMA_SEMAPHORE_TYPE.RELEASE_FOUR_WORD_SEMAPHORE)
    yield methods(arch, UNIT, name, f"semaphore-timestamp-{value:#x}", [Area(before)],
                  [timed(four, before, 16, models.words(value, bits=64))])
  for kind, place in (("RELEASE_ONE_WORD_SEMAPHORE", 2), ("RELEASE_FOUR_WORD_SEMAPHORE", 8)):
    def misaligned(c: Any, a: int, kind: str = kind, place: int = place) -> None:
      at(c, a + place, 1)
      launch(c, "NONE", SEMAPHORE_TYPE=c.module.LAUNCH_DMA_SEMAPHORE_TYPE[kind])
    yield methods(arch, UNIT, name, f"refuses-{kind}-at-{place}", [Area(before)], [Stage((None,), misaligned)],
                  error=ANY)
  if wide_too:
    for value in LONGS:
      def wide(c: Any, a: int, value: int = value) -> None:
        at(c, a + 16, value)
        launch(c, "NONE", SEMAPHORE_PAYLOAD_SIZE=1,
               SEMAPHORE_TYPE=c.module.LAUNCH_DMA_SEMAPHORE_TYPE.RELEASE_ONE_WORD_SEMAPHORE)
      yield make(name, f"semaphore-64-{value:#x}", [Area(before)],
                 [models.written(before, 16, models.words(value, bits=64))], wide)
  for kind in ("PIPELINED", "NON_PIPELINED"):
    def behind(c: Any, a: int, kind: str = kind) -> None:  # it tells of what was copied
      at(c, a + PAGE, 0x600D)
      places(c, a, a + 2 * PAGE)
      c.run(c.module.LINE_LENGTH_IN, PAGE, 1)
      launch(c, kind, SEMAPHORE_TYPE=c.module.LAUNCH_DMA_SEMAPHORE_TYPE.RELEASE_ONE_WORD_SEMAPHORE)
    start = models.noise(69, 3 * PAGE)
    yield make(name, f"semaphore-behind-{kind}", [Area(start)],
               [models.written(models.copied(start, start, 0, 2 * PAGE, PAGE), PAGE, models.words(0x600D))], behind)
  names = ("IMIN", "IMAX", "IXOR", "IAND", "IOR", "IADD", "INC", "DEC")
  for reduction, bits, signed in reductions(names, (32, 64) if wide_too else (32,)):
    rows = rows_of(reduction, bits)
    begin = models.words(*(x for x, _ in rows), bits=64)
    after = models.words(*(reduced(reduction, bits, signed, x, y) for x, y in rows), bits=64)

    def reduce(c: Any, a: int, reduction: str = reduction, bits: int = bits, signed: bool = signed,
               rows: Sequence[tuple[int, int]] = rows) -> None:
      m = c.module
      sign = m.LAUNCH_DMA_SEMAPHORE_REDUCTION_SIGN
      size: dict[str, int] = {"SEMAPHORE_PAYLOAD_SIZE": 1} if bits == 64 else {}
      for i, (_, payload) in enumerate(rows):
        at(c, a + 8 * i, payload)
        launch(c, "NONE", SEMAPHORE_TYPE=m.LAUNCH_DMA_SEMAPHORE_TYPE.RELEASE_ONE_WORD_SEMAPHORE, **size,
               SEMAPHORE_REDUCTION=m.LAUNCH_DMA_SEMAPHORE_REDUCTION[reduction], SEMAPHORE_REDUCTION_ENABLE=1,
               SEMAPHORE_REDUCTION_SIGN=sign.SIGNED if signed else sign.UNSIGNED)
    yield make(name, f"{reduction}-{'signed' if signed else 'unsigned'}-{bits}", [Area(begin, "video")], [after],
               reduce)
