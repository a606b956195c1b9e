"""The copy engine: copies from one byte to gigabytes, at all offsets; lines, fills and its semaphores."""
from __future__ import annotations

import random
import time
from typing import Any, Final

from tinyhw.bringup.bench import check, same
from tinyhw.bringup.nv.bench import PAGE, Aperture, NvBench
from tinyhw.bringup.nv.ladder import NV
from tinyhw.bringup.rung import Absent, Broken
from tinyhw.drive.nv.commands import CopyCommands

_ENGINE: Final = "the copy engine's class (methods LINE_LENGTH_IN, OFFSET_IN, OFFSET_OUT), and its runlist"
_SIZES: Final = (1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 257, 1023, 1024, 4095, 4096,
                 4097, 8192, 12_288, 16_384)
_FIXED: Final = 0x0BAD_F00D
_FIRST: Final = 1 << 21
_MOST: Final = 1 << 30  # bytes of one launch
_SAMPLE: Final = 1 << 16


def launch(c: CopyCommands, **fields: Any) -> CopyCommands:
  """LAUNCH_DMA between pitch layouts by virtual addresses, with these fields."""
  m = c.module
  plain = {"FLUSH_ENABLE": 1, "SRC_MEMORY_LAYOUT": m.LAUNCH_DMA_SRC_MEMORY_LAYOUT.PITCH,
           "DST_MEMORY_LAYOUT": m.LAUNCH_DMA_DST_MEMORY_LAYOUT.PITCH}
  return c.send(m.LAUNCH_DMA(**plain | fields))


def copying(c: CopyCommands, target: int, source: int, size: int) -> CopyCommands:
  """A copy, in launches of as many bytes as one has."""
  for at in range(0, size, _MOST): c.copy(target + at, source + at, min(_MOST, size - at))
  return c


@NV.rung("copies.queue", needs=("queue.create",), seconds=10,
         why="The copy engine has a channel of its own; the host engine in front of it is the same.")
def queue(b: NvBench) -> str:
  b.finish(b.copier, b.copies().begin(), "the copy engine's runlist, and SET_OBJECT")
  return f"channel {b.copier.handle:#x}; {b.copier.queue.ring.pointers()}"


@NV.rung("copies.four", needs=("copies.queue",), seconds=5, why="The smallest useful copy: four bytes.")
def four(b: NvBench) -> str:
  page = b.take(PAGE)
  page.bytes()[:] = bytes(page.size)
  words = page.bytes().cast("I")
  words[0], words[1] = _FIXED, 77
  b.finish(b.copier, b.copies().begin().copy(page.address + 64, page.address, 4), _ENGINE)
  same(words[16], _FIXED, "the copy of 4 bytes", _ENGINE)
  same(words[17], 0, "the word behind it", _ENGINE)
  words.release()
  b.free(page)
  return f"{_FIXED:#x}"


@NV.rung("copies.sizes", needs=("copies.four",), seconds=20,
         why="Sizes and offsets choose paths of the engine: one that is off by one corrupts rarely.")
def sizes(b: NvBench) -> str:
  source, target, count = b.take(32 << 10), b.take(32 << 10), 0
  data = random.Random(3).randbytes(source.size)
  source.bytes()[:] = data
  for i, size in enumerate(_SIZES):
    for at, to in ((0, 0), (i % 7, 64 + i % 5), (64 + i % 3, i % 9)):
      target.bytes()[:] = b"\xa5" * target.size
      b.finish(b.copier, b.copies().copy(target.address + to, source.address + at, size), _ENGINE)
      wanted = b"\xa5" * to + data[at:at + size] + b"\xa5" * (target.size - to - size)
      found = bytes(target.bytes())
      if found != wanted:
        place = next(k for k in range(len(found)) if found[k] != wanted[k])
        raise Broken(f"{size} bytes from offset {at} to offset {to}: byte {place} is {found[place]:#04x}",
                     f"{wanted[place]:#04x}", _ENGINE + "; sizes and offsets that are no multiples of 4, 64 or a page")
      count += 1
  b.free(source, target)
  return f"{count} copies of 1 to {_SIZES[-1]:,} bytes; nothing around them is touched"


@NV.rung("copies.vram", needs=("copies.sizes",), seconds=10,
         why="To the card's memory and back, which the host need not see at all.")
def vram(b: NvBench) -> str:
  size = 64 << 10
  there, near, back = b.take(size), b.take(size, Aperture.VRAM), b.take(size)
  data = random.Random(4).randbytes(size)
  there.bytes()[:] = data
  back.bytes()[:] = bytes(back.size)
  c = b.copies().copy(near.address, there.address, size).copy(back.address, near.address, size)
  b.finish(b.copier, c, _ENGINE)
  check(bytes(back.bytes()[:size]) == data, "bytes that went through video memory differ", "the same",
        "page kinds and apertures of video memory (UVM_MAP_EXTERNAL_ALLOCATION)")
  b.free(there, near, back)
  return f"{size:,} bytes there and back"


@NV.rung("copies.lines", needs=("copies.vram",), seconds=5,
         why="Lines that begin a pitch apart: pictures and sub-matrices.")
def lines(b: NvBench) -> str:
  source, target = b.take(4 * PAGE), b.take(4 * PAGE)
  data = random.Random(5).randbytes(source.size)
  source.bytes()[:] = data
  target.bytes()[:] = bytes(target.size)
  length, count, pitch_in, pitch_out = 100, 37, 256, 130
  b.finish(b.copier, b.copies().copy_lines(target.address, source.address, length, count, pitch_out, pitch_in), _ENGINE)
  wanted = bytearray(target.size)
  for i in range(count): wanted[pitch_out * i:pitch_out * i + length] = data[pitch_in * i:pitch_in * i + length]
  found = bytes(target.bytes())
  if found != wanted:
    at = next(k for k in range(len(found)) if found[k] != wanted[k])
    raise Broken(f"{count} lines of {length} bytes: byte {at} (line {at // pitch_out}) is {found[at]:#04x}",
                 f"{wanted[at]:#04x}", _ENGINE + "; PITCH_IN, PITCH_OUT, LINE_COUNT")
  b.free(source, target)
  return f"{count} lines of {length} bytes, {pitch_in} and {pitch_out} apart"


@NV.rung("copies.large", needs=("copies.vram",), seconds=60,
         why="From megabytes to gigabytes: counts and addresses that wrap show here.")
def large(b: NvBench) -> str:
  size, done, began, most = _FIRST, 0, time.monotonic(), min(b.largest, b.free_vram() // 4)
  while size <= most:
    done = size
    source, target, back = b.take(size), b.take(size, Aperture.VRAM), b.take(PAGE)
    mark = random.Random(size).randbytes(PAGE)
    places = sorted({0, size - PAGE, size // 2, size // 3 & -PAGE, *range(0, size, max(_SAMPLE, size // 64))})
    memory, words = source.bytes(), source.bytes().cast("I")
    for i, at in enumerate(places):
      memory[at:at + PAGE] = mark
      words[at // 4] = i
    words.release()
    memory.release()
    b.finish(b.copier, copying(b.copies(), target.address, source.address, size), _ENGINE)
    for i, at in enumerate(places):
      b.finish(b.copier, b.copies().copy(back.address, target.address + at, PAGE), _ENGINE)
      found = bytes(back.bytes())
      good = int.from_bytes(found[:4], "little") == i and found[4:] == mark[4:]
      check(good, f"a copy of {size:#x} bytes: the page at {at:#x} is wrong", "what the source has there",
            _ENGINE + "; LINE_LENGTH_IN")
    b.free(source, target, back)
    size *= 2
  if not done: raise Absent(f"no more than {most:,} bytes were asked for")
  return f"{_FIRST:,} to {done:,} bytes in {time.monotonic() - began:.2f} s"


@NV.rung("copies.high", needs=("copies.vram",), seconds=20,
         why="Bytes more than 4 GiB behind a buffer's start: an offset of 32 bits wraps to the start.")
def high(b: NvBench) -> str:
  size, far = (4 << 30) + (2 << 20), 4 << 30
  if b.free_vram() < size + (256 << 20): raise Absent(f"{b.free_vram() >> 20:,} MiB are free: too few")
  big, page = b.take(size, Aperture.VRAM), b.take(PAGE)
  page.bytes()[:] = bytes(page.size)
  words = page.bytes().cast("I")
  words[0], words[1] = 1, 2
  c = b.copies().copy(big.address + 16, page.address, 4).copy(big.address + far + 16, page.address + 4, 4)
  c.copy(page.address + 64, big.address + 16, 4).copy(page.address + 68, big.address + far + 16, 4)
  b.finish(b.copier, c, _ENGINE)
  check((words[16], words[17]) == (1, 2), f"at the start is {words[16]}, 4 GiB behind it {words[17]}", "1 and 2",
        _ENGINE + "; 32 bits of an address, or page tables of 2 MiB pages")
  words.release()
  b.free(big, page)
  return "two words 4 GiB apart in one buffer"


@NV.rung("copies.fill", needs=("copies.four",), seconds=5,
         why="Constants instead of a source (remap) are how memory is cleared before somebody else gets it.")
def fill(b: NvBench) -> str:
  page, c = b.take(PAGE), b.copies()
  m = c.module
  page.bytes()[:] = bytes(page.size)
  target = page.address + 128
  c.run(m.SET_REMAP_CONST_A, _FIXED)
  c.send(m.SET_REMAP_COMPONENTS(DST_X=m.SET_REMAP_COMPONENTS_DST_X.CONST_A,
                                COMPONENT_SIZE=m.SET_REMAP_COMPONENTS_COMPONENT_SIZE.FOUR,
                                NUM_SRC_COMPONENTS=m.SET_REMAP_COMPONENTS_NUM_SRC_COMPONENTS.ONE,
                                NUM_DST_COMPONENTS=m.SET_REMAP_COMPONENTS_NUM_DST_COMPONENTS.ONE))
  c.run(m.OFFSET_IN_UPPER, target >> 32, target & 0xFFFFFFFF, target >> 32, target & 0xFFFFFFFF)
  c.run(m.LINE_LENGTH_IN, 256, 1)
  launch(c, REMAP_ENABLE=1, DATA_TRANSFER_TYPE=m.LAUNCH_DMA_DATA_TRANSFER_TYPE.NON_PIPELINED)
  b.finish(b.copier, c, _ENGINE)
  words = page.bytes().cast("I")
  wrong = [i for i in range(len(words)) if words[i] != (_FIXED if 32 <= i < 32 + 256 else 0)]
  check(not wrong, f"a fill of 256 words: {len(wrong)} are wrong, the first {wrong[:1]}", "the pattern, and none else",
        _ENGINE + "; SET_REMAP_COMPONENTS: LINE_LENGTH_IN counts elements")
  words.release()
  b.free(page)
  return "256 words"


@NV.rung("copies.signal", needs=("copies.four", "device.clock"), seconds=5,
         why="The copy engine writes semaphores itself, with its time, behind what it copied.")
def signal(b: NvBench) -> str:
  page, c = b.take(PAGE), b.copies()
  m = c.module
  longs = page.bytes().cast("Q")
  for i in range(8): longs[i] = 0
  before = b.time_ns()
  c.run(m.SET_SEMAPHORE_A, page.address >> 32, page.address & 0xFFFFFFFF, _FIXED)
  launch(c, DATA_TRANSFER_TYPE=m.LAUNCH_DMA_DATA_TRANSFER_TYPE.NONE,
         SEMAPHORE_TYPE=m.LAUNCH_DMA_SEMAPHORE_TYPE.RELEASE_FOUR_WORD_SEMAPHORE)
  b.finish(b.copier, c, _ENGINE)
  after = b.time_ns()
  same(longs[0] & 0xFFFFFFFF, _FIXED, "the semaphore of LAUNCH_DMA", _ENGINE + "; SET_SEMAPHORE_PAYLOAD")
  check(before <= longs[1] <= after, f"its time is {longs[1]:#x}", f"between {before:#x} and {after:#x} of RM", _ENGINE)
  longs.release()
  b.free(page)
  return f"{_FIXED:#x}, {after - before:,} ns between the host's looks"


@NV.rung("copies.atomics", needs=("copies.signal",), seconds=5,
         why="Semaphores of the copy engine can add, which counts what has been copied.")
def atomics(b: NvBench) -> str:
  page = b.take(PAGE, Aperture.VRAM, host=True)
  words = page.bytes().cast("I")
  rows = (("IMIN", 5, 3, 3), ("IMAX", 5, 9, 9), ("IADD", 40, 2, 42), ("IAND", 12, 10, 8), ("IOR", 12, 10, 14),
          ("IXOR", 12, 10, 6), ("INC", 6, 7, 7), ("DEC", 0, 7, 7))
  c = b.copies()
  m = c.module
  for i, (name, before, payload, _) in enumerate(rows):
    words[i] = before
    at = page.address + 4 * i
    c.run(m.SET_SEMAPHORE_A, at >> 32, at & 0xFFFFFFFF, payload)
    launch(c, DATA_TRANSFER_TYPE=m.LAUNCH_DMA_DATA_TRANSFER_TYPE.NONE,
           SEMAPHORE_TYPE=m.LAUNCH_DMA_SEMAPHORE_TYPE.RELEASE_ONE_WORD_SEMAPHORE, SEMAPHORE_REDUCTION_ENABLE=1,
           SEMAPHORE_REDUCTION=m.LAUNCH_DMA_SEMAPHORE_REDUCTION[name],
           SEMAPHORE_REDUCTION_SIGN=m.LAUNCH_DMA_SEMAPHORE_REDUCTION_SIGN.UNSIGNED)
  b.finish(b.copier, c, _ENGINE)
  for i, (name, before, payload, after) in enumerate(rows):
    same(words[i], after, f"{name} of {before:#x} by {payload:#x}", _ENGINE + "; SEMAPHORE_REDUCTION")
  words.release()
  b.free(page)
  return f"{len(rows)} reductions"
