"""The copy engine: copies from one byte to gigabytes, at all offsets; fills, its clock and its atomics."""
from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final

from tinyhw.bringup.amd.bench import GTT, PAGE, VRAM, AmdBench, BenchMemory
from tinyhw.bringup.amd.ladder import AMD
from tinyhw.bringup.amd.queue import atomic_rows
from tinyhw.bringup.amd.queue import put as packet
from tinyhw.bringup.bench import check, same
from tinyhw.bringup.rung import Broken
from tinyhw.drive.amd.commands import CopyCommands

_ENGINE = "sdma_v6_0.c (or the generation's), and the queue's descriptor"
_PACKET_BYTES: Final = 1 << 22   # copy_max_bytes of the kernel driver
_SIZES: Final = (1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 257, 1023, 1024, 4095, 4096,
                 4097, 8192, 12_288, 16_384)
_FIXED: Final = 0x0BAD_F00D
_SAMPLE: Final = 1 << 16  # bytes between places of a large copy that are looked at


def copying(c: CopyCommands, target: int, source: int, size: int) -> CopyCommands:
  """A copy, in packets of as many bytes as the kernel driver gives one."""
  for at in range(0, size, _PACKET_BYTES):
    count = min(_PACKET_BYTES, size - at)
    c._put(c.packets.SDMA_PKT_COPY_LINEAR(count=count - 1, src_addr=source + at, dst_addr=target + at))
  return c


@AMD.rung("copies.queue", needs=("memory.page", "device.target"), seconds=5,
          why="The copy engine's queue counts bytes where compute's counts dwords; its fence is the first effect.")
def queue(b: AmdBench) -> str:
  q = b.copier
  page = b.take(PAGE)
  page.fill(0)
  words = page.words
  c = b.sdma().fence(page.address + 8, _FIXED)
  q.run(c, lambda: bool(words[2]), "a fence writes nothing", _ENGINE, f"{_FIXED:#x}")
  same(words[2], _FIXED, "what the fence wrote", _ENGINE)
  check(words[1] == 0 and words[3] == 0, f"words beside it are {words[1]:#x}, {words[3]:#x}", "untouched", _ENGINE)
  if not b.wait(lambda: q.idle): raise Broken(q.ring.pointers(), "the read pointer comes to the write pointer", _ENGINE)
  words.release()
  b.free(page)
  return f"queue {q.queue_id}; {q.ring.pointers()}"


@AMD.rung("copies.four", needs=("copies.queue",), seconds=5, why="The smallest useful copy: four bytes.")
def four(b: AmdBench) -> str:
  page = b.take(PAGE)
  page.fill(0)
  page.words[0] = _FIXED
  b.copier.finish(copying(b.sdma(), page.address + 64, page.address, 4), _ENGINE)
  same(page.words[16], _FIXED, "the copy of 4 bytes", _ENGINE + "; is the count one less than the bytes?")
  same(page.words[17], 0, "the word behind it", _ENGINE + "; is the count one less than the bytes?")
  b.free(page)
  return f"{_FIXED:#x}"


@AMD.rung("copies.sizes", needs=("copies.four",), seconds=20,
          why="Sizes and offsets choose paths of the engine: one that is off by one corrupts rarely.")
def sizes(b: AmdBench) -> str:
  source, target, count = b.take(32 << 10), b.take(32 << 10), 0
  data = random.Random(3).randbytes(source.size)
  source.bytes[:] = data
  for i, size in enumerate(_SIZES):
    for at, to in ((0, 0), (i % 7, 64 + i % 5), (64 + i % 3, i % 9)):
      target.bytes[:] = b"\xa5" * target.size
      b.copier.finish(copying(b.sdma(), target.address + to, source.address + at, size), _ENGINE)
      wanted = b"\xa5" * to + data[at:at + size] + b"\xa5" * (target.size - to - size)
      found = bytes(target.bytes)
      if found != wanted:
        place = next(k for k in range(len(found)) if found[k] != wanted[k])
        raise Broken(f"{size} bytes from offset {at} to offset {to}: byte {place} is {found[place]:#04x}",
                     f"{wanted[place]:#04x}", _ENGINE + "; sizes and offsets that are no multiples of 4, 64 or a page")
      count += 1
  for buffer in (source, target): b.free(buffer)
  return f"{count} copies of 1 to {_SIZES[-1]:,} bytes; nothing around them is touched"


@AMD.rung("copies.vram", needs=("copies.sizes",), seconds=10,
          why="To the card's memory and back, which the host may not see at all.")
def vram(b: AmdBench) -> str:
  size = 64 << 10
  there, near, back = b.take(size), b.take(size, VRAM, host=False), b.take(size)
  data = random.Random(4).randbytes(size)
  there.bytes[:] = data
  back.fill(0)
  c = copying(copying(b.sdma(), near.address, there.address, size), back.address, near.address, size)
  b.copier.finish(c, _ENGINE)
  check(bytes(back.bytes) == data, "bytes that went through video memory differ", "the same",
        "page tables of video memory (amdgpu_vm_bo_update), and its address on the engine's side")
  for buffer in (there, near, back): b.free(buffer)
  return f"{size:,} bytes there and back"


@AMD.rung("copies.large", needs=("copies.vram",), seconds=60,
          why="From a packet's limit to gigabytes: counts and addresses that wrap at 16, 22 or 32 bits show here.")
def large(b: AmdBench) -> str:
  size, done = _PACKET_BYTES // 2, 0
  began, most = time.monotonic(), min(b.largest, b.available() // 4)
  while size <= most:
    done = size
    source, target = b.take(size + PAGE, GTT), b.take(size + PAGE, VRAM, host=False)
    back = b.take(PAGE)
    mark = random.Random(size).randbytes(PAGE)
    places = sorted({0, size - PAGE, size // 2, size // 3 & -PAGE, *range(0, size, max(_SAMPLE, size // 64))})
    for i, at in enumerate(places):
      source.bytes[at:at + PAGE] = mark
      source.words[at // 4] = i
    b.copier.finish(copying(b.sdma(), target.address, source.address, size), _ENGINE)
    for i, at in enumerate(places):
      b.copier.finish(copying(b.sdma(), back.address, target.address + at, PAGE), _ENGINE)
      good = back.words[0] == i and bytes(back.bytes[4:]) == mark[4:]
      check(good, f"a copy of {size:#x} bytes: the page at {at:#x} is wrong", "what the source has there",
            _ENGINE + "; SDMA_PKT_COPY_LINEAR.count")
    for buffer in (source, target, back): b.free(buffer)
    size *= 2
  if not done: return f"no more than {most:,} bytes were asked for"
  return f"{_PACKET_BYTES // 2:,} to {done:,} bytes in {time.monotonic() - began:.2f} s"


@AMD.rung("copies.high", needs=("copies.vram",), seconds=20,
          why="Bytes more than 4 GiB behind a buffer's start: an offset of 32 bits wraps to the start.")
def high(b: AmdBench) -> str:
  size, far = (4 << 30) + (64 << 10), 4 << 30
  check(b.available() > size + (64 << 20), f"AVAILABLE_MEMORY is {b.available():#x}", f"more than {size:#x}",
        "a smaller card cannot have this rung") if b.node.vram_bytes > 2 * size else None
  if b.available() <= size: return f"{b.available() >> 20:,} MiB are free: too few"
  big, page = b.take(size, VRAM, host=False), b.take(2 * PAGE)
  page.fill(0)
  page.words[0], page.words[1] = 1, 2
  start = big.address
  c = copying(copying(b.sdma(), start + 16, page.address, 4), start + far + 16, page.address + 4, 4)
  copying(copying(c, page.address + 64, start + 16, 4), page.address + 68, start + far + 16, 4)
  b.copier.finish(c, _ENGINE)
  found = (page.words[16], page.words[17])
  check(found == (1, 2), f"at the start is {found[0]}, 4 GiB behind it {found[1]}", "1 and 2",
        _ENGINE + "; 32 bits of an address, or page tables of large pages")
  for buffer in (big, page): b.free(buffer)
  return "two words 4 GiB apart in one buffer"


@AMD.rung("copies.fill", needs=("copies.queue",), seconds=5,
          why="CONSTANT_FILL is how memory is cleared before somebody else gets it.")
def fill(b: AmdBench) -> str:
  page = b.take(2 * PAGE)
  page.fill(0)
  packet = b.arch.copies.SDMA_PKT_CONSTANT_FILL(fillsize=2, dst_addr=page.address + 128, src_data=_FIXED, count=1023)
  c = b.sdma()._put(packet)
  b.copier.finish(c, _ENGINE)
  words = page.words
  wrong = [i for i in range(len(words)) if words[i] != (_FIXED if 32 <= i < 32 + 256 else 0)]
  check(not wrong, f"CONSTANT_FILL of 1,024 bytes: {len(wrong)} words are wrong, the first {wrong[:1]}",
        "256 words of the pattern, and none else", _ENGINE + "; SDMA_PKT_CONSTANT_FILL.count")
  words.release()
  b.free(page)
  return "256 words"


@AMD.rung("copies.timestamp", needs=("copies.queue", "device.clock"), seconds=5,
          why="The copy engine's clock is the same as the command processor's.")
def timestamp(b: AmdBench) -> str:
  page = b.take(PAGE)
  page.fill(0)
  before = int(b.clocks().gpu_clock_counter)
  b.copier.finish(b.sdma().timestamp(page.address), _ENGINE)
  after = int(b.clocks().gpu_clock_counter)
  found = page.longs[0]
  check(before <= found <= after, f"the copy engine's clock is {found:#x}", f"between {before:#x} and {after:#x}",
        "SDMA_PKT_TIMESTAMP_GET_GLOBAL")
  b.free(page)
  return f"{found - before:,} ticks behind the host's look"


def put(b: AmdBench, near: BenchMemory, data: bytes) -> None:
  """Bytes into memory that the host need not see."""
  stage = b.take(len(data))
  stage.bytes[:len(data)] = data
  b.copier.finish(copying(b.sdma().memory_barrier(), near.address, stage.address, len(data)), _ENGINE)
  b.free(stage)


def fetch(b: AmdBench, near: BenchMemory, size: int) -> bytes:
  """Bytes out of it."""
  stage = b.take(size)
  b.copier.finish(copying(b.sdma().memory_barrier(), stage.address, near.address, size), _ENGINE)
  found = bytes(stage.bytes[:size])
  b.free(stage)
  return found


def _atomics(b: AmdBench, do: Callable[[list[tuple[str, int, int, int, int, int]], int], None], near: BenchMemory,
             look: str) -> str:
  """Operations of both widths on words of the card's memory: of the system's, a bus need not carry them."""
  count = 0
  for width in (32, 64):
    rows = atomic_rows(width)
    put(b, near, b"".join(row[2].to_bytes(8, "little") for row in rows))
    do(rows, near.address)
    found = memoryview(fetch(b, near, 8 * len(rows))).cast("Q")
    for i, (name, _, before, source, compare, after) in enumerate(rows):
      same(found[i], after, f"{name} of {width} bits: {before:#x}, {source:#x} (compare {compare:#x})", look)
    count += len(rows)
  b.free(near)
  return f"{count} operations"


@AMD.rung("queue.atomics", needs=("queue.release", "copies.vram"), seconds=10,
          why="Counters and locks between engines are atomics of packets: each operation, of 32 and 64 bits.")
def packets_atomics(b: AmdBench) -> str:
  def do(rows: list[tuple[str, int, int, int, int, int]], address: int) -> None:
    p, c = b.arch.packets, b.pm4()
    for i, (_, op, _, source, compare, _) in enumerate(rows):
      packet(c, "ATOMIC_MEM", atomic=op, command=p.ATOMIC_MEM_command.single_pass_atomic, addr=address + 8 * i,
             src_data=source, cmp_data=compare)
    b.compute.finish(c, "ATOMIC_MEM, and atomics of GL2")
  return _atomics(b, do, b.take(PAGE, VRAM, host=False), "TC_OP (soc21_enum.h), and atomics of GL2")


@AMD.rung("copies.atomics", needs=("copies.vram",), seconds=5,
          why="The copy engine's atomics are TC_OPs as the command processor's are.")
def atomics(b: AmdBench) -> str:
  def do(rows: list[tuple[str, int, int, int, int, int]], address: int) -> None:
    c = b.sdma()
    for i, (_, op, _, source, compare, _) in enumerate(rows):
      c._put(b.arch.copies.SDMA_PKT_ATOMIC(atomic_op=op, addr=address + 8 * i, src_data=source, cmp_data=compare))
    b.copier.finish(c, _ENGINE + "; SDMA_PKT_ATOMIC")
  return _atomics(b, do, b.take(PAGE, VRAM, host=False), _ENGINE + "; SDMA_PKT_ATOMIC")


@AMD.rung("copies.wrap", needs=("copies.four",), seconds=10,
          why="The ring's end: packets are not split there, no-operations fill it.")
def wrap(b: AmdBench) -> str:
  page, q, rounds = b.take(PAGE), b.copier, 0
  page.fill(0)
  start = q.ring.at
  while q.ring.at - start < q.ring.size * 5 // 4:
    rounds += 1
    c = b.sdma()
    for i in range(101): copying(c, page.address + 64 + 4 * (i % 8), page.address, 4)
    page.words[0] = rounds
    q.finish(copying(c, page.address + 2048, page.address, 4), _ENGINE + "; the pointers count bytes")
    same(page.words[512], rounds, f"what submission {rounds} copied", _ENGINE)
  b.free(page)
  return f"{rounds} submissions over {(q.ring.at - start) / q.ring.size:.2f} rings"
