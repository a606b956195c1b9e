"""Cases of AQL packets: barriers of every kind, dispatches, calls of PM4 packets, completion signals, stalls.

What a packet does is told by the HSA System Architecture Specification (user mode queues, 2.8 and 2.9) and the HSA
headers; the barrier on a value by its fields' names in AMD's.
"""
from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from tinyhw.arch import Arch
from tinyhw.autogen import hsa
from tinyhw.core.layout import Struct
from tinyhw.drive.amd.commands import ComputeCommands
from tinyhw.tools.conform.client import models
from tinyhw.tools.conform.client.amd import QUIET_S, AmdRoom
from tinyhw.tools.conform.client.aqlring import FORMAT_PM4_IB, AqlRing, KernelObject
from tinyhw.tools.conform.client.pm4 import COUNTS, SHAPES, mark
from tinyhw.tools.conform.client.question import Area, Heard, Question
from tinyhw.wire import aql

UNIT: Final = "aql"
_PLACES: Final = 5  # signals that a barrier has room for
_DONE: Final = 0x600D_600D
# What a barrier on a value finds, its value and mask.
_VALUES: Final = ((4, 5, -1), (5, 5, -1), (6, 5, -1), (-1, 5, -1), (-1, 0, -1), (1 << 62, -5, -1), (-5, -5, -1),
                  (0xAB05, 5, 0xFF), (0xAB06, 5, 0xFF), (0x5AB, 5, 0xFF))
_CONDITIONS: Final[Sequence[tuple[str, models.Comparison]]] = (
  ("EQ", lambda seen, wanted: seen == wanted), ("NE", lambda seen, wanted: seen != wanted),
  ("LT", lambda seen, wanted: seen < wanted), ("GTE", lambda seen, wanted: seen >= wanted))
# Arguments: the buffer, the grid's x and y. What stands behind is a case's program of PM4 dispatches.
_ARGUMENTS: Final = """s_load_b64 s[12:13], s[2:3], 0x0
  s_load_b64 s[14:15], s[2:3], 0x8
  {wait}
  s_mov_b32 s0, s12
  s_mov_b32 s1, s13
  s_mov_b32 s2, s14
  s_mov_b32 s3, s15
"""
# Stores the sizes that the dispatch packet itself says: workgroup x and y, grid x, y and z.
_PACKET: Final = """s_load_b64 s[12:13], s[2:3], 0x0
  s_load_b32 s14, s[0:1], 0x4
  s_load_b32 s15, s[0:1], 0xc
  s_load_b64 s[16:17], s[0:1], 0x10
  {wait}
  v_mov_b32_e32 v2, 0
  v_mov_b32_e32 v3, s14
  v_mov_b32_e32 v4, s15
  v_mov_b32_e32 v5, s16
  v_mov_b32_e32 v6, s17
  global_store_b32 v2, v3, s[12:13]
  global_store_b32 v2, v4, s[12:13] offset:4
  global_store_b32 v2, v5, s[12:13] offset:8
  global_store_b32 v2, v6, s[12:13] offset:12
  s_endpgm"""
Play = Callable[[AmdRoom, AqlRing, Heard], None]


def questions(arch: Arch) -> Iterator[Question]:
  """All cases of a generation."""
  def question(name: str, form: str, play: Play, *text: str) -> Question:
    def asked(room: AmdRoom, heard: Heard) -> None:
      ring = room.aql
      play(room, ring, heard)
      ring.finish()
      heard.same("read_dispatch_id", ring.index - ring.read, 0)
    return Question(f"{arch.name}/packet/{UNIT}/{name}/{form}", UNIT, name, form, "aql: HSA 1.2", asked, text)
  yield from _barriers(question)
  yield from _values(question)
  yield from _dispatches(question)
  yield question("vendor_specific", "pm4-indirect-buffer", _calls, "a call of two WRITE_DATA in an indirect buffer")
  yield question("invalid", "stalls", _stalls, "a packet of type INVALID, whose type is written later")
  yield question("completion", "event", _event, "a barrier whose completion signal has an event")


def barrier(*handles: int, either: bool = False, done: int = 0, barrier_bit: bool = False) -> Struct:
  """A barrier over signals; 0 is none."""
  kind = hsa.HSA_PACKET_TYPE_BARRIER_OR if either else hsa.HSA_PACKET_TYPE_BARRIER_AND
  made = (hsa.hsa_barrier_or_packet_t if either else hsa.hsa_barrier_and_packet_t)(
    header=aql.header(kind, barrier=barrier_bit, acquire=hsa.HSA_FENCE_SCOPE_SYSTEM,
                      release=hsa.HSA_FENCE_SCOPE_SYSTEM))
  for slot, handle in zip(made.dep_signal, handles): slot.handle = handle
  made.completion_signal.handle = done
  return made


def _barriers(question: Callable[..., Question]) -> Iterator[Question]:
  for either in (False, True):
    name = "barrier_or" if either else "barrier_and"
    for word, values in _rows(either):
      def play(room: AmdRoom, ring: AqlRing, heard: Heard, either: bool = either,
               values: tuple[int | None, ...] = values) -> None:
        handles = [0 if v is None else ring.signal(i, v) for i, v in enumerate(values)]
        ring.put(barrier(*handles, either=either, done=ring.signal(9, 3)))
        given = [v for v in values if v is not None]
        ready = not given or (any if either else all)(v == 0 for v in given)
        room.bench.wait(lambda: ring.idle, None if ready else QUIET_S)
        heard.same("completion signal", ring.value(9), 2 if ready else 3)
        if not ready:
          left = [i for i, v in enumerate(values) if v]
          for i in left[:1] if either else left:
            heard.same("completion signal", ring.value(9), 3)
            ring.set(i, 0)
            room.bench.wait(lambda: ring.idle, QUIET_S if i != left[-1] and not either else None)
        ring.finish()
        heard.same("completion signal at the end", ring.value(9), 2)
        start, end = ring.times(9)
        heard.holds("timestamps", 0 < start <= end, f"{start:#x} to {end:#x}", "a start and an end behind it")
        heard.same("the slot's type", ring.header(ring.index - 1) & 0xFF, hsa.HSA_PACKET_TYPE_INVALID)
      yield question(name, word, play, f"signals {values}; the completion signal is 3")


def _rows(either: bool) -> Iterator[tuple[str, tuple[int | None, ...]]]:
  """Signals' values, None for a handle that is null: in all places, alone and among others."""
  yield "none", ()
  for place in range(_PLACES):
    holes: list[int | None] = [None] * _PLACES
    for word, value in (("ready", 0), ("waits", 1), ("waits-negative", -1)):
      holes[place] = value
      yield f"{word}-{place}", tuple(holes)
    others: list[int | None] = [7 if either else 0] * _PLACES
    others[place] = 0 if either else 7
    yield f"one-of-five-{place}", tuple(others)
  yield "all-of-five-wait", (1, 2, 3, 1 << 40, -1)
  yield "two-wait", (None, 5, None, 1 << 32, None)


def _values(question: Callable[..., Question]) -> Iterator[Question]:
  for cond, (word, holds) in enumerate(_CONDITIONS):
    for seen, value, mask in _VALUES:
      def play(room: AmdRoom, ring: AqlRing, heard: Heard, cond: int = cond, holds: models.Comparison = holds,
               seen: int = seen, value: int = value, mask: int = mask) -> None:
        head = hsa.hsa_amd_vendor_packet_header_t(header=aql.header(hsa.HSA_PACKET_TYPE_VENDOR_SPECIFIC),
                                                  AmdFormat=hsa.HSA_AMD_PACKET_TYPE_BARRIER_VALUE)
        made = hsa.hsa_amd_barrier_value_packet_t(header=head, value=value, mask=mask, cond=cond)
        made.signal.handle, made.completion_signal.handle = ring.signal(0, seen), ring.signal(1, 1)
        ready = holds(seen & mask, value)
        ring.put(made)
        room.bench.wait(lambda: ring.idle, None if ready else QUIET_S)
        heard.same("completion signal", ring.value(1), 0 if ready else 1)
        if ready: return
        ring.set(0, next(v for v in (value, value - 1, value + 1) if holds(v & mask, value)))
        ring.finish()
        heard.same("completion signal at the end", ring.value(1), 0)
      yield question("barrier_value", f"{word}-{seen:#x}-{value:#x}-{mask:#x}", play,
                     f"a signal of {seen:#x}; condition {word}, value {value:#x}, mask {mask:#x}")


def _dispatches(question: Callable[..., Question]) -> Iterator[Question]:
  for grid, block in SHAPES:
    for signals in (True, False):
      def play(room: AmdRoom, ring: AqlRing, heard: Heard, grid: tuple[int, int, int] = grid,
               block: tuple[int, int, int] = block, signals: bool = signals) -> None:
        _dispatched(room, ring, heard, grid, block, signals)
      form = f"{'x'.join(map(str, grid))}-of-{'x'.join(map(str, block))}" + ("" if signals else "-unsignalled")
      yield question("kernel_dispatch", form, play, f"each work-item adds 1 for its group: {grid} of {block}",
                     _ARGUMENTS + COUNTS)
  yield question("kernel_dispatch", "packet", _packet, "a wave stores what the dispatch packet says", _PACKET)
  yield question("kernel_dispatch", "barrier-bit", _ordered, "dispatches of which each needs the one before",
                 _ARGUMENTS + COUNTS)


def _dispatch(ring: AqlRing, kernel: KernelObject, arguments: int, grid: tuple[int, int, int],
              block: tuple[int, int, int], done: int) -> Struct:
  return aql.dispatch(grid, block, kernel_object=kernel.address, kernarg_address=arguments, private_bytes=0,
                      group_bytes=0, completion_signal=done)


def _dispatched(room: AmdRoom, ring: AqlRing, heard: Heard, grid: tuple[int, int, int], block: tuple[int, int, int],
                signals: bool) -> None:
  """Each group of the grid runs once, with all its work-items, and the signal counts down behind them."""
  count, threads = grid[0] * grid[1] * grid[2], block[0] * block[1] * block[2]
  memory = room.take(0, Area(bytes(4 * count + 64), "video"))
  arguments = room.take(1, Area(struct.pack("<QII", memory.address, grid[0], grid[1])))
  kernel = KernelObject(room.bench, _ARGUMENTS + COUNTS)
  ring.put(_dispatch(ring, kernel, arguments.address, grid, block, ring.signal(0, 1) if signals else 0))
  if not signals: ring.put(barrier(done=ring.signal(0, 1), barrier_bit=True))
  room.bench.wait(lambda: ring.value(0) == 0)
  heard.same("completion signal", ring.value(0), 0)
  start, end = ring.times(0)
  heard.holds("timestamps", 0 < start <= end, f"{start:#x} to {end:#x}", "a start and an end behind it")
  heard.memory("memory", room.load(memory, 4 * count + 64), models.words(*[threads] * count) + bytes(64))
  room.bench.free(kernel.memory)


def _packet(room: AmdRoom, ring: AqlRing, heard: Heard) -> None:
  """A wave finds the packet that has started it."""
  before = models.noise(31, 64)
  memory = room.take(0, Area(before))
  arguments = room.take(1, Area(struct.pack("<QQ", memory.address, 0)))
  kernel = KernelObject(room.bench, _PACKET)
  ring.put(_dispatch(ring, kernel, arguments.address, (3, 2, 5), (8, 4, 2), ring.signal(0, 1)))
  room.bench.wait(lambda: ring.value(0) == 0)
  wanted = models.words(8 | 4 << 16, 24, 8, 10)
  heard.memory("memory", room.load(memory, 64), models.written(before, 0, wanted))
  room.bench.free(kernel.memory)


def _ordered(room: AmdRoom, ring: AqlRing, heard: Heard) -> None:
  """Behind a dispatch, one with the barrier bit begins when it has ended: its start is not before the other's end."""
  memory = room.take(0, Area(bytes(128), "video"))
  arguments = room.take(1, Area(struct.pack("<QII", memory.address, 4, 1)))
  kernel = KernelObject(room.bench, _ARGUMENTS + COUNTS)
  ring.put(*(_dispatch(ring, kernel, arguments.address, (4, 1, 1), (32, 1, 1), ring.signal(i, 1)) for i in range(8)))
  room.bench.wait(lambda: ring.value(7) == 0)
  heard.memory("memory", room.load(memory, 128), models.words(*[8 * 32] * 4) + bytes(112))
  times = [ring.times(i) for i in range(8)]
  good = all(a[1] <= b[0] for a, b in zip(times, times[1:]))
  heard.holds("timestamps", good, " ".join(f"{a:#x}-{b:#x}" for a, b in times), "one behind the other")
  room.bench.free(kernel.memory)


def _calls(room: AmdRoom, ring: AqlRing, heard: Heard) -> None:
  """The packets of the indirect buffer are executed, and then the signal counts down (ROCr, amd_aql_pm4_ib)."""
  before, arch = models.noise(32, 64), room.bench.arch
  memory, code = room.take(0, Area(before)), room.take(1, Area(bytes(256)))
  called: Any = mark(mark(ComputeCommands(arch), memory.address + 8, 5), memory.address + 16, 6, 7)
  room.store(code, 0, models.words(*called.words))
  jump = ComputeCommands(arch).indirect_buffer(code.address, len(called.words)).words
  head = aql.header(hsa.HSA_PACKET_TYPE_VENDOR_SPECIFIC, barrier=True) | FORMAT_PM4_IB << 16
  raw = models.words(head, *jump, 10, *[0] * 8) + models.words(ring.signal(0, 1), bits=64)
  ring.put(raw)
  room.bench.wait(lambda: ring.value(0) == 0)
  heard.same("completion signal", ring.value(0), 0)
  wanted = models.written(models.written(before, 8, models.words(5)), 16, models.words(6, 7))
  heard.memory("memory", room.load(memory, 64), wanted)


def _stalls(room: AmdRoom, ring: AqlRing, heard: Heard) -> None:
  """The queue stands at a packet of no type, hears no doorbell, and goes on when the type is there."""
  at = ring.index
  ring.put(barrier(done=ring.signal(0, 1)), kind=hsa.HSA_PACKET_TYPE_INVALID)
  ring.put(barrier(done=ring.signal(1, 1)))
  room.bench.wait(lambda: ring.value(0) == 0, QUIET_S)
  heard.same("the signals while it stands", ring.value(0) << 8 | ring.value(1), 0x101)
  word = ring.ring.words[at % 64 * 16]
  ring.ring.words[at % 64 * 16] = word & ~0xFF | hsa.HSA_PACKET_TYPE_BARRIER_AND
  room.bench.wait(lambda: ring.value(1) == 0)
  heard.same("the signals behind it", ring.value(0) << 8 | ring.value(1), 0)


def _event(room: AmdRoom, ring: AqlRing, heard: Heard) -> None:
  """The completion writes the event's id to its mailbox and interrupts."""
  b = room.bench
  made, other = b.event(), b.event()
  handle = ring.signal(0, 1, b.event_page.address + 8 * made.event_slot_index, made.event_id)
  ring.put(barrier(done=handle))
  heard.holds("the event", b.wait_events([made.event_id], 2000) is not None, "is not set", "is set")
  heard.same("completion signal", ring.value(0), 0)
  heard.holds("another event", b.wait_events([other.event_id], 1) is None, "is set too", "is not")
