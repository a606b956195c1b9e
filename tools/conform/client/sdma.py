"""Cases of the copy engine's packets (SDMA v6 of gfx11 and gfx12, v4 of gfx9).

Counts are stored less one (copy_max_bytes and the kernel driver's use of COPY_LINEAR and CONSTANT_FILL,
sdma_v6_0.c), and so are extents and pitches of COPY_LINEAR_SUBWIN (Mesa's radv_sdma.c); POLL_REGMEM's functions count
as WAIT_REG_MEM's.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from tinyhw.arch import Arch
from tinyhw.drive.amd.commands import CopyCommands
from tinyhw.tools.conform.client import models
from tinyhw.tools.conform.client.amd import AmdRoom, maker, packet
from tinyhw.tools.conform.client.question import Area, Heard, Question, Stage

UNIT: Final = "sdma"
Box = tuple[int, int, int]  # x, y, z
PAGE: Final = 4096
_GUARD: Final = 256
_LARGE: Final = 4 << 20
SIZES: Final = (1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025,
                PAGE - 1, PAGE, PAGE + 1, 2 * PAGE - 1, 2 * PAGE + 1)
PLACES: Final = ((0, 0), (1, 0), (0, 1), (3, 2), (4, 8), (7, 60), (63, 65))  # from, to: bytes into their areas
KINDS: Final = ("system", "video")
ONES: Final = 0xFFFF_FFFF
WORDS: Final = (0, 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 0x0102_0304)
# What a poll finds, its reference and mask: below, at and above it; unsigned; bits that the mask leaves out.
POLLS: Final = ((4, 5, ONES), (5, 5, ONES), (6, 5, ONES), (0x7FFF_FFFF, 0x8000_0000, ONES),
                (ONES, 0x8000_0000, ONES), (0xAB04, 5, 0xFF), (0xAB05, 5, 0xFF), (0x4AB, 0x500, 0xFF00),
                (0x600, 0x500, 0xFF00))
_DONE: Final = 0x600D_600D
_MTYPE_UC: Final = 3  # of SDMA_PKT_FENCE: uncached (sdma_v6_0_ring_emit_fence)


def questions(arch: Arch) -> Iterator[Question]:
  """All cases of a generation."""
  yield from _copies(arch)
  yield from _windows(arch)
  yield from _writes(arch)
  yield from _fills(arch)
  yield from _fences(arch)
  yield from _clocks(arch)
  yield from _polls(arch)
  yield from _atomics(arch)
  yield from _control(arch)


def _put(c: Any, name: str, **fields: Any) -> Any: return c._put(getattr(c.packets, name)(**fields))


def _copies(arch: Arch) -> Iterator[Question]:
  make, name = maker(arch, UNIT), "SDMA_PKT_COPY_LINEAR"

  def copy(form: str, size: int, at: int, to: int, kinds: tuple[str, str] = ("system", "system")) -> Question:
    room = -(-(max(at, to) + size + _GUARD) // _GUARD) * _GUARD
    source, target = models.noise(size, room), models.noise(size + 1, room)

    def put(c: Any, a: int, b: int) -> None: _put(c, name, count=size - 1, src_addr=a + at, dst_addr=b + to)
    return make(name, form, [Area(source, kinds[0]), Area(target, kinds[1])],
                [source, models.copied(target, source, at, to, size)], put)
  for i, size in enumerate(SIZES):
    for j, (at, to) in enumerate(PLACES):
      if j in {0, 1 + i % 6, 1 + (i + 3) % 6}: yield copy(f"{size}-from-{at}-to-{to}", size, at, to)
  for size in (4, 5, PAGE + 1):
    for a in KINDS:
      for b in KINDS: yield copy(f"{size}-{a}-to-{b}", size, 0, 0, (a, b))
  for size in (2, PAGE): yield copy(f"{size}-over-a-page's-end", size, PAGE - 1, 2 * PAGE - 1)
  largest = next(f.limit for f in arch.copies.SDMA_PKT_COPY_LINEAR.FIELDS if f.name == "count") + 1
  for size in sorted({_LARGE - 1, _LARGE, min(_LARGE + 4, largest)}): yield copy(f"{size}", size, 0, 0)


def _windows(arch: Arch) -> Iterator[Question]:
  make, name = maker(arch, UNIT), "SDMA_PKT_COPY_LINEAR_SUBWIN"

  def window(form: str, log: int, rect: Box, source: tuple[Box, Box], target: tuple[Box, Box],
             kinds: tuple[str, str] = ("system", "system")) -> Question:
    """A box of elements of 2^log bytes; `source` and `target` are (extent of the surface, where the box begins there),
    all as (x, y, z)."""
    shapes = [(*reversed(extent), 1 << log) for extent, _ in (source, target)]
    before = [models.noise(51 + i, int(np.prod(shape))) for i, shape in enumerate(shapes)]
    a, b = (np.frombuffer(data, np.uint8).reshape(shape).copy() for data, shape in zip(before, shapes, strict=True))
    box = [tuple(slice(at, at + size) for at, size in zip(reversed(begin), reversed(rect), strict=True))
           for _, begin in (source, target)]
    b[box[1]] = a[box[0]]

    def put(c: Any, x: int, y: int) -> None:
      fields: dict[str, int] = {}
      for side, address, (extent, begin) in (("src", x, source), ("dst", y, target)):
        fields |= {f"{side}_addr": address, f"{side}_pitch": extent[0] - 1,
                   f"{side}_slice_pitch": extent[0] * extent[1] - 1}
        fields |= {f"{side}_{axis}": at for axis, at in zip("xyz", begin, strict=True)}
      fields |= {f"rect_{axis}": size - 1 for axis, size in zip("xyz", rect, strict=True)}
      _put(c, name, elementsize=log, **fields)
    return make(name, form, [Area(before[0], kinds[0]), Area(before[1], kinds[1])], [before[0], b.tobytes()], put)
  origin = (0, 0, 0)
  for log in range(5):
    yield window(f"element-{1 << log}", log, (3, 2, 2), ((8, 4, 3), (1, 1, 1)), ((12, 5, 4), (4, 2, 0)))
  for form, rect in (("one", (1, 1, 1)), ("line", (16, 1, 1)), ("column", (1, 8, 1)), ("depth", (1, 1, 4)),
                     ("plane", (16, 8, 1)), ("all", (16, 8, 4))):
    yield window(form, 2, rect, ((16, 8, 4), origin), ((16, 8, 4), origin))
  for axis in range(3):
    at = tuple(int(i == axis) for i in range(3))
    yield window(f"from-{'xyz'[axis]}", 2, (4, 3, 2), ((16, 8, 4), (at[0], at[1], at[2])), ((16, 8, 4), origin))
    yield window(f"to-{'xyz'[axis]}", 2, (4, 3, 2), ((16, 8, 4), origin), ((16, 8, 4), (at[0], at[1], at[2])))
  for a in KINDS:
    for b in KINDS:
      yield window(f"{a}-to-{b}", 0, (5, 3, 2), ((64, 32, 4), (3, 2, 1)), ((32, 64, 4), (1, 7, 2)), (a, b))
  yield window("over-pages", 4, (200, 3, 2), ((256, 4, 2), (9, 1, 0)), ((320, 3, 3), (5, 0, 1)))


def _writes(arch: Arch) -> Iterator[Question]:
  make, name, before = maker(arch, UNIT), "SDMA_PKT_WRITE_UNTILED", models.noise(3, 2 * PAGE)
  for count in (1, 2, 3, 4, 5, 16, 255, 256):
    for at in (0, 4, 60, PAGE - 4):
      payload = [0x1000_0000 * (i % 16) + i for i in range(1, count + 1)]

      def put(c: Any, a: int, payload: Sequence[int] = payload, at: int = at) -> None:
        _put(c, name, dst_addr=a + at, count=len(payload) - 1, payload=tuple(payload))
      yield make(name, f"{count}-at-{at}", [Area(before)], [models.written(before, at, models.words(*payload))], put)


def _fills(arch: Arch) -> Iterator[Question]:
  make, name = maker(arch, UNIT), "SDMA_PKT_CONSTANT_FILL"

  def fill(form: str, size: int, at: int, data: int, unit: int, kind: str = "system", less: int = 4) -> Question:
    before = models.noise(5, -(-(at + size + _GUARD) // _GUARD) * _GUARD)
    pattern = data.to_bytes(4, "little")[:unit]

    def put(c: Any, a: int) -> None:
      _put(c, name, fillsize=unit // 2, dst_addr=a + at, src_data=data, count=size - (less if unit == 4 else 1))
    return make(name, form, [Area(before, kind)], [models.written(before, at, pattern * (size // unit))], put)
  for size in (4, 8, 12, 64, 256, PAGE - 4, PAGE, PAGE + 4):
    for at in (0, 4, 60, PAGE - 4): yield fill(f"{size}-at-{at}", size, at, 0x0102_0304, 4)
    yield fill(f"{size}-less-one", size, 0, 0x0102_0304, 4, less=1)  # as the kernel driver counts
  for data in WORDS: yield fill(f"with-{data:#x}", 20, 8, data, 4)
  for size in (1, 2, 3, 4, 5, 63, PAGE - 1, PAGE + 1):
    for at in (0, 1, 3, PAGE - 1): yield fill(f"bytes-{size}-at-{at}", size, at, 0xA5, 1)
  yield fill("4096-video", PAGE, 0, 0x0102_0304, 4, "video")
  yield fill(f"{_LARGE}", _LARGE, 0, 0x8000_0001, 4)


def _fences(arch: Arch) -> Iterator[Question]:
  make, name, before = maker(arch, UNIT), "SDMA_PKT_FENCE", models.noise(7, 256)
  kind = {} if arch.sdma == "v4" else {"mtype": _MTYPE_UC}
  for data in WORDS:
    def put(c: Any, a: int, data: int = data) -> None: _put(c, name, addr=a + 12, data=data, **kind)
    yield make(name, f"{data:#x}", [Area(before)], [models.written(before, 12, models.words(data))], put)
  for at in (0, 4, 124, 252):
    def put_at(c: Any, a: int, at: int = at) -> None: c.fence(a + at, _DONE)
    yield make(name, f"at-{at}", [Area(before)], [models.written(before, at, models.words(_DONE))], put_at)


def _clocks(arch: Arch) -> Iterator[Question]:
  names = ("SDMA_PKT_TIMESTAMP_GET", "SDMA_PKT_TIMESTAMP_GET_GLOBAL")
  for name in names:
    before = bytes([0xEE]) * 64

    def put(c: Any, a: int, name: str = name) -> None:
      _put(c, name, write_addr=a + 8)
      _put(c, name, write_addr=a + 24)

    def then(room: AmdRoom, heard: Heard, found: Sequence[bytes], name: str = name) -> None:
      first, second = (int.from_bytes(found[0][at:at + 8], "little") for at in (8, 24))
      heard.holds("clock", first <= second, f"{first:#x}, then {second:#x}", "a clock that goes forward")
      if name != names[1]: return
      now = int(room.bench.clocks().gpu_clock_counter)
      soon = 60 * room.bench.counter_khz * 1000
      heard.holds("clock", 0 < now - second < soon, f"{second:#x}", f"just below {now:#x}")
    stage = Stage((before,), put, loose={0: (slice(8, 16), slice(24, 32))}, then=then)
    yield packet(arch, UNIT, name, "forward", [Area(before)], [stage])


def released(seen: int, reference: int, mask: int, holds: models.Comparison, wide: int = ONES) -> int | None:
  """A value for which the comparison holds, near the one that is there; None where there is none."""
  step = mask & -mask
  near = (reference, reference - step, reference + step)
  return next(((v & mask) | (seen & ~mask & wide) for v in near
               if 0 <= v and v & mask == v and holds(v & mask, reference)), None)


def _polls(arch: Arch) -> Iterator[Question]:
  name = "SDMA_PKT_POLL_REGMEM"
  for func, (word, holds) in enumerate(models.COMPARISONS):
    for seen, reference, mask in POLLS:
      before = models.words(seen, 0, 0, 0)
      done = models.written(before, 8, models.words(_DONE))

      def put(c: Any, a: int, func: int = func, reference: int = reference, mask: int = mask) -> None:
        _put(c, name, func=func, mem_poll=1, addr=a, value=reference, mask=mask, interval=4, retry_count=0xFFF)
        c.fence(a + 8, _DONE)
      stages = [Stage((done,), put)]
      if not holds(seen & mask, reference):
        value = released(seen, reference, mask, holds)
        if value is None: continue
        stages = [Stage((before,), put, ends=False),
                  Stage((models.written(done, 0, models.words(value)),), store=((0, 0, models.words(value)),))]
      yield packet(arch, UNIT, name, f"{word}-{seen:#x}-{reference:#x}-{mask:#x}", [Area(before)], stages)
  flush = {"hdp_flush": 1} if arch.sdma == "v4" else {"func": 0, "mem_poll": 0}

  def flushes(c: Any, a: int) -> None:
    _put(c, name, addr=0, value=0, mask=0, interval=4, retry_count=10, **flush)
    c.fence(a, _DONE)
  yield packet(arch, UNIT, name, "flushes-host-data-path", [Area(bytes(16))],
               [Stage((models.words(_DONE) + bytes(12),), flushes)])


def _atomics(arch: Arch) -> Iterator[Question]:
  make, name = maker(arch, UNIT), "SDMA_PKT_ATOMIC"
  for op, width, code in atomic_codes(arch):
    rows = models.operands(op, width)
    before = models.words(*(r[0] | 0x55 << 56 & -(1 << width) for r in rows), bits=64)
    after = models.words(*(models.atomic(op, width, *r) | 0x55 << 56 & -(1 << width) for r in rows), bits=64)
    for word in ("_RTN", ""):
      number = code(word)

      def put(c: Any, a: int, rows: Sequence[tuple[int, int, int]] = rows, number: int = number) -> None:
        for i, (_, source, compare) in enumerate(rows):
          _put(c, name, atomic_op=number, addr=a + 8 * i, src_data=source, cmp_data=compare)
      yield make(name, f"{op}{word}_{width}", [Area(before, "video")], [after], put)
  for width in (32, 64):
    number = next(code("_RTN") for op, w, code in atomic_codes(arch) if op == "CMPSWAP" and w == width)
    before, taken = models.words(9, 0, bits=64), models.words(7, 0, bits=64)

    def loops(c: Any, a: int, number: int = number, width: int = width) -> None:
      compare = 5 | 9 << width & (1 << 64) - 1  # of 32 bits the upper ones do not count
      _put(c, name, atomic_op=number, loop=1, loop_interval=4, addr=a, src_data=7, cmp_data=compare)
      c.fence(a + 8, _DONE)
    done = models.written(taken, 8, models.words(_DONE))
    yield packet(arch, UNIT, name, f"CMPSWAP_RTN_{width}-loops", [Area(before)],
                 [Stage((before,), loops, ends=False), Stage((done,), store=((0, 0, models.words(5, bits=64)),))])
    ready = models.words(5, 0, bits=64)
    yield make(name, f"CMPSWAP_RTN_{width}-loops-once", [Area(ready)], [done], loops)


def atomic_codes(arch: Arch) -> Iterator[tuple[str, int, Any]]:
  """(operation, bits, what gives the number of the operation that returns the old value, or not)."""
  for op in models.ATOMICS:
    for width in (32, 64):
      def code(word: str, op: str = op, width: int = width) -> int:
        return int(arch.packets.TC_OP[f"TC_OP_ATOMIC_{op}{word}_{width}"])
      yield op, width, code


def _control(arch: Arch) -> Iterator[Question]:
  make, before = maker(arch, UNIT), models.noise(9, 256)
  done = models.written(before, 16, models.words(_DONE))
  for count in (0, 1, 2, 7, 255):
    def nop(c: Any, a: int, count: int = count) -> None:
      _put(c, "SDMA_PKT_NOP", count=count, payload=tuple(range(count)))
      c.fence(a + 16, _DONE)
    yield make("SDMA_PKT_NOP", f"{count}", [Area(before)], [done], nop)
  for word, reference in (("runs", 0x77), ("skips", 0x78)):
    for count in (4, 8):  # dwords of a fence, of two
      def conditional(c: Any, a: int, reference: int = reference, count: int = count) -> None:
        _put(c, "SDMA_PKT_COND_EXE", addr=a, reference=reference, exec_count=count)
        c.fence(a + 16, 1).fence(a + 20, 2).fence(a + 24, 3)
      start = models.words(0x77) + bytes(60)
      left = {"runs": (1, 2, 3), "skips": (0, 2, 3) if count == 4 else (0, 0, 3)}[word]
      yield make("SDMA_PKT_COND_EXE", f"{word}-{count}", [Area(start)],
                 [models.written(start, 16, models.words(*left))], conditional)
  for size in (8, 16, 256):
    def called(a: int, b: int, size: int = size) -> list[tuple[int, int, bytes]]:
      made = CopyCommands(arch)
      made.fence(a + 4, 5)
      while len(made.words) < size - 4: _put(made, "SDMA_PKT_NOP", count=0, payload=())
      made.fence(a + 8, 6)
      return [(1, 0, models.words(*made.fence(a + 20, 0xBAD).words))]  # the last one is behind the buffer's end

    def calls(c: Any, a: int, b: int, size: int = size) -> None:
      for _ in range(2): _put(c, "SDMA_PKT_NOP", count=0, payload=())
      _put(c, "SDMA_PKT_INDIRECT", ib_base=b, ib_size=size, csa_addr=0)
      c.fence(a + 16, _DONE)
    yield packet(arch, UNIT, "SDMA_PKT_INDIRECT", f"{size}-dwords", [Area(before), Area(bytes(2048))],
                 [Stage((models.written(done, 4, models.words(5, 6)), None), calls, stores=called)])
  for name in ("SDMA_PKT_GCR_REQ", "SDMA_PKT_GCR_USER"):
    if not hasattr(arch.copies, name): continue
    for word, base, limit in (("all", 0, 0), ("range", 0, PAGE)):
      def request(c: Any, a: int, name: str = name, base: int = base, limit: int = limit) -> None:
        caches = arch.packets.ACQUIRE_MEM_GCR_CNTL.decode(0)
        for f in caches.FIELDS:
          if f.name.endswith(("_INV", "_WB")) and f.name != "GLI_INV": setattr(caches, f.name, 1)
        _put(c, name, base_va=base and a, gcr_control=caches.value(), limit_va=limit and a + limit, vmid=0)
        c.fence(a + 16, _DONE)
      yield make(name, word, [Area(before)], [done], request)
  yield Question(f"{arch.name}/packet/{UNIT}/SDMA_PKT_TRAP/event", UNIT, "SDMA_PKT_TRAP", "event", f"sdma: {arch.sdma}",
                 _trap, ("the event's id into its mailbox, then SDMA_PKT_TRAP(int_context=the event's)",))


def _trap(room: AmdRoom, heard: Heard) -> None:
  """The event is set by the packet, and no other one is."""
  b = room.bench
  made, other = b.event(), b.event()
  heard.holds("before", b.wait_events([made.event_id], 1) is None, "the event is set", "it is not")
  b.copier.write(b.sdma().interrupt(b.event_page.address + 8 * made.event_slot_index, made.event_id,
                                    made.event_trigger_data))
  heard.holds("behind SDMA_PKT_TRAP", b.wait_events([made.event_id], 2000) is not None, "nothing", "the event")
  heard.holds("another event", b.wait_events([other.event_id], 1) is None, "is set too", "is not")
