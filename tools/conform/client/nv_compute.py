"""Cases of the compute class: inline data, report semaphores, and launches by a QMD with its grid, block, shared
memory, constant banks and release semaphores.

What methods and fields mean is told by their names in the class headers and QMD headers (open-gpu-doc). Programs are
PTX; a launch's bank 0 and program address are those that the driver makes, its other fields the case's own.
"""
from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from tinyhw.arch.nv import NvArch
from tinyhw.bringup.nv.programs import kernel
from tinyhw.drive.nv.commands import ComputeCommands
from tinyhw.drive.nv.rm import Aperture
from tinyhw.tools.conform.client import models
from tinyhw.tools.conform.client.nv import ANY, NvRoom, class_of, interrupts, maker, methods
from tinyhw.tools.conform.client.nv_host import LONGS, ONES, reduced, reductions, rows_of, timed
from tinyhw.tools.conform.client.question import Area, Heard, Question, Stage
from tinyhw.tools.conform.client.sdma import WORDS
from tinyhw.wire import methods as wire
from tinyhw.wire import qmd

UNIT: Final = "compute"
PAGE: Final = 4096
Dim3 = tuple[int, int, int]
_GRIDS: Final[Sequence[Dim3]] = ((1, 1, 1), (7, 1, 1), (2, 3, 1), (3, 1, 4), (2, 5, 3))
_BLOCKS: Final[Sequence[Dim3]] = ((1, 1, 1), (32, 1, 1), (33, 1, 1), (1, 32, 1), (1, 1, 32), (7, 5, 3), (16, 16, 4),
                                  (1024, 1, 1), (1, 1024, 1), (16, 1, 64))
_FILL: Final = 0xEEEE_EEEE


def questions(arch: NvArch) -> Iterator[Question]:
  """All cases of a generation."""
  yield from _inline(arch)
  yield from _reports(arch)
  yield from _plain(arch)
  yield from _launches(arch)


def inline(c: Any, address: int, data: bytes, length: int, lines: int, pitch: int, **fields: Any) -> None:
  """Lines of inline data to memory."""
  m = c.module
  c.run(m.LINE_LENGTH_IN, length, lines, address >> 32, address & ONES)
  if lines > 1: c.run(m.PITCH_OUT, pitch)
  c.send(m.LAUNCH_DMA(**{"DST_MEMORY_LAYOUT": m.LAUNCH_DMA_DST_MEMORY_LAYOUT.PITCH,
                         "COMPLETION_TYPE": m.LAUNCH_DMA_COMPLETION_TYPE.FLUSH_ONLY, **fields}))
  padded = data + bytes(-len(data) % 4)
  c.words += wire.repeated(c.subchannel, m.LOAD_INLINE_DATA, list(memoryview(padded).cast("I")))


def _inline(arch: NvArch) -> Iterator[Question]:
  make, name, before = maker(arch, UNIT), "LOAD_INLINE_DATA", models.noise(71, 3 * PAGE)
  for size in (1, 2, 3, 4, 5, 8, 61, 64, 256, PAGE - 1, PAGE, PAGE + 1):
    for at in (0, 1, 4, PAGE - 2):
      data = models.noise(size, size)

      def put(c: Any, a: int, data: bytes = data, at: int = at) -> None: inline(c, a + at, data, len(data), 1, 0)
      yield make(name, f"{size}-at-{at}", [Area(before)], [models.written(before, at, data)], put)
  for length, lines, pitch in ((4, 3, 64), (3, 5, 8), (16, 16, 100), (1, 2, 1)):
    data = models.noise(72, length * lines)
    after = before
    for i in range(lines): after = models.written(after, 8 + i * pitch, data[i * length:(i + 1) * length])

    def window(c: Any, a: int, data: bytes = data, length: int = length, lines: int = lines,
               pitch: int = pitch) -> None:
      inline(c, a + 8, data, length, lines, pitch)
    yield make(name, f"lines-{lines}-of-{length}-{pitch}", [Area(before)], [after], window)
  for word in ("ONE_WORD", "FOUR_WORDS"):
    data = models.noise(73, 20)
    after = models.written(before, 64, data)

    def signals(c: Any, a: int, word: str = word, data: bytes = data) -> None:
      m = c.module
      c.run(m.SET_I2M_SEMAPHORE_A, a >> 32, a + 16 & ONES, 0x600D)
      inline(c, a + 64, data, len(data), 1, 0, COMPLETION_TYPE=m.LAUNCH_DMA_COMPLETION_TYPE.RELEASE_SEMAPHORE,
             SEMAPHORE_STRUCT_SIZE=m.LAUNCH_DMA_SEMAPHORE_STRUCT_SIZE[word])
    if word == "ONE_WORD":
      yield make(name, "semaphore", [Area(before)], [models.written(after, 16, models.words(0x600D))], signals)
    else:
      yield methods(arch, UNIT, name, "semaphore-timestamp", [Area(before)],
                    [timed(signals, after, 16, models.words(0x600D, bits=64))])


def _reports(arch: NvArch) -> Iterator[Question]:
  yield from _old_reports(arch)
  if arch.compute_class >= 0xC7C0: yield from _new_reports(arch)


def _old_reports(arch: NvArch) -> Iterator[Question]:
  make, name, before = maker(arch, UNIT), "SET_REPORT_SEMAPHORE_D", models.noise(74, 64)

  def report(c: Any, address: int, payload: int, **fields: Any) -> None:
    c.run(c.module.SET_REPORT_SEMAPHORE_A, address >> 32, address & ONES, payload,
          c.module.SET_REPORT_SEMAPHORE_D(**fields).value())
  for value in WORDS:
    def one(c: Any, a: int, value: int = value) -> None: report(c, a + 16, value, STRUCTURE_SIZE=1)
    yield make(name, f"one-word-{value:#x}", [Area(before)], [models.written(before, 16, models.words(value))], one)

    def four(c: Any, a: int, value: int = value) -> None: report(c, a + 16, value, STRUCTURE_SIZE=0)
    yield methods(arch, UNIT, name, f"four-words-{value:#x}", [Area(before)],
                  [timed(four, before, 16, models.words(value, bits=64))])
  for form, fields, comes in (("awakens", {"AWAKEN_ENABLE": 1}, True), ("sleeps", {}, False),
                              ("traps", {"OPERATION": 3}, True)):
    def tells(c: Any, a: int, fields: dict[str, int] = fields) -> None:
      report(c, a + 16, 1, STRUCTURE_SIZE=1, **fields)
    yield interrupts(arch, UNIT, name, form, tells, comes)
  for size, at in ((0, 8), (1, 2)):
    def misaligned(c: Any, a: int, size: int = size, at: int = at) -> None: report(c, a + at, 1, STRUCTURE_SIZE=size)
    yield methods(arch, UNIT, name, f"refuses-{'one-word' if size else 'four-words'}-at-{at}", [Area(before)],
                  [Stage((None,), misaligned)], error=ANY)
  for op, bits, signed in reductions(("RED_ADD", "RED_MIN", "RED_MAX", "RED_INC", "RED_DEC", "RED_AND", "RED_OR",
                                      "RED_XOR"), (32,)):
    rows = rows_of(op.removeprefix("RED_"), bits)
    start = models.words(*(a for a, _ in rows))
    after = models.words(*(reduced(op.removeprefix("RED_"), 32, signed, a, b) for a, b in rows))

    def reduce(c: Any, a: int, op: str = op, signed: bool = signed, rows: Sequence[tuple[int, int]] = rows) -> None:
      for i, (_, payload) in enumerate(rows):
        report(c, a + 4 * i, payload, STRUCTURE_SIZE=1, REDUCTION_ENABLE=1,
               REDUCTION_OP=c.module.SET_REPORT_SEMAPHORE_D_REDUCTION_OP[op], REDUCTION_FORMAT=int(signed))
    yield make(name, f"{op}-{'signed' if signed else 'unsigned'}", [Area(start, "video")], [after], reduce)


def _new_reports(arch: NvArch) -> Iterator[Question]:
  make, name, before = maker(arch, UNIT), "REPORT_SEMAPHORE_EXECUTE", models.noise(75, 64)

  def report(c: Any, address: int, payload: int, size: str, **fields: Any) -> None:
    m = c.module
    c.run(m.SET_REPORT_SEMAPHORE_PAYLOAD_LOWER, payload & ONES, payload >> 32, address & ONES, address >> 32)
    c.send(m.REPORT_SEMAPHORE_EXECUTE(STRUCTURE_SIZE=m.REPORT_SEMAPHORE_EXECUTE_STRUCTURE_SIZE[f"SEMAPHORE_{size}"],
                                      **fields))
  for wide, values in ((0, WORDS), (1, LONGS)):
    for value in values:
      def put(c: Any, a: int, wide: int = wide, value: int = value) -> None:
        report(c, a + 16, value, "TWO_WORDS" if wide else "ONE_WORD", PAYLOAD_SIZE64=wide)
      size = 8 if wide else 4
      yield make(name, f"{8 * size}-{value:#x}", [Area(before)],
                 [models.written(before, 16, value.to_bytes(size, "little"))], put)

      def four(c: Any, a: int, wide: int = wide, value: int = value) -> None:
        report(c, a + 16, value, "FOUR_WORDS", PAYLOAD_SIZE64=wide)
      yield methods(arch, UNIT, name, f"{8 * size}-four-words-{value:#x}", [Area(before)],
                    [timed(four, before, 16, value.to_bytes(8, "little"))])


def _plain(arch: NvArch) -> Iterator[Question]:
  """Methods that leave nothing in memory: what is behind them is executed."""
  make, before = maker(arch, UNIT), models.noise(76, 64)
  after = models.written(before, 8, models.words(0x600D))
  rows: list[tuple[str, str, Callable[[Any], Any]]] = [
    ("NO_OPERATION", "plain", lambda m: m.NO_OPERATION()), ("PIPE_NOP", "plain", lambda m: m.PIPE_NOP()),
    ("WAIT_FOR_IDLE", "plain", lambda m: m.WAIT_FOR_IDLE()),
    ("INVALIDATE_SHADER_CACHES", "all", lambda m: m.INVALIDATE_SHADER_CACHES(INSTRUCTION=1, DATA=1, CONSTANT=1)),
    ("INVALIDATE_SHADER_CACHES_NO_WFI", "all",
     lambda m: m.INVALIDATE_SHADER_CACHES_NO_WFI(INSTRUCTION=1, GLOBAL_DATA=1, CONSTANT=1))]
  for name, form, sent in rows:
    def put(c: Any, a: int, sent: Callable[[Any], Any] = sent) -> None:
      c.send(sent(c.module))
      inline(c, a + 8, models.words(0x600D), 4, 1, 0)
    yield make(name, form, [Area(before)], [after], put)

  def windows(c: Any, a: int) -> None:
    c.windows(0x7294 << 32, 0x7293 << 32)
    inline(c, a + 8, models.words(0x600D), 4, 1, 0)
  for name in ("SET_SHADER_SHARED_MEMORY_WINDOW_A", "SET_SHADER_LOCAL_MEMORY_WINDOW_A"):
    yield make(name, "plain", [Area(before)], [after], windows)
  major, minor = arch.version
  states: dict[str, Callable[[Any, int], tuple[int, ...]]] = {
    "SET_SHADER_LOCAL_MEMORY_A": lambda m, b: (b >> 32, b & ONES),
    "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A": lambda m, b: (0, 0x8000, 0x40),
    "SET_SPA_VERSION": lambda m, b: (m.SET_SPA_VERSION(MAJOR=major, MINOR=minor).value(),),
    "SET_TEX_HEADER_POOL_A": lambda m, b: (b >> 32, b & ONES, 0), "SET_TRAP_HANDLER_A": lambda m, b: (0, 0),
    "SET_TEX_SAMPLER_POOL_A": lambda m, b: (b >> 32, b & ONES, 0), "INVALIDATE_TEXTURE_DATA_CACHE": lambda m, b: (0,),
    "SET_QMD_VERSION": lambda m, b: (m.SET_QMD_VERSION(
      CURRENT=arch.qmd[0] << 4 | arch.qmd[1], OLDEST_SUPPORTED=1).value(),)}
  for name, values in states.items():
    def state(c: Any, a: int, b: int, name: str = name, values: Callable[[Any, int], tuple[int, ...]] = values) -> None:
      c.run(getattr(c.module, name), *values(c.module, b))
      inline(c, a + 8, models.words(0x600D), 4, 1, 0)
    rest = models.noise(77, 1 << 16)
    yield make(name, "plain", [Area(before), Area(rest, "video")], [after, rest], state)


# ---- launches

class QmdLaunch:
  """A launch whose QMD a case has made, on a channel of the driver's: out, 4 KiB of semaphores, the QMD and bank 0."""

  def __init__(self, room: NvRoom, name: str, grid: Dim3, block: Dim3, numbers: tuple[int, int] = (0, 0),
               dynamic: int = 0) -> None:
    self.runtime: Any = room.bench.runtime
    self.program: Any = kernel(room.bench, name)
    rm, gpu = self.runtime.rm, self.runtime.gpu
    self.out, self.place = (rm.take(gpu, size, Aperture.SYSTEM, host=True, low=True) for size in (1 << 16, 4 * PAGE))
    self.out.bytes()[:] = models.words(_FILL) * (self.out.size // 4)
    self.place.bytes()[:] = bytes(self.place.size)
    program = self.program
    program.check_grid(grid, None)
    self.made = program._meta_data(block, program._check(block, dynamic), None)
    for field, value in zip(("GRID_WIDTH", "GRID_HEIGHT", "GRID_DEPTH"), grid, strict=True): self.write(field, value)
    self.bank = program._bank0(block, None)
    struct.pack_into("<III", self.bank, program.arch.bank0.nctaid, *grid)
    for start, told in program._cluster_banks():
      struct.pack_into("<III", self.bank, start + told.nclusterid, *grid)
    struct.pack_into("<QII", self.bank, program.code.params, self.out.address, *numbers)
    self.write("CONSTANT_BUFFER_ADDR", self.place.address + PAGE, 0)

  def write(self, field: str, value: int, index: int | None = None) -> None: qmd.write(self.made, field, value, index)

  @property
  def semaphores(self) -> int:
    """Where they are."""
    return int(self.place.address + 3 * PAGE)

  def run(self) -> None:
    """Schedule it, and wait until all of it has ended."""
    place, runtime = self.place, self.runtime
    words = qmd.encode(self.made)
    place.bytes()[:4 * len(words)] = models.words(*words)
    place.bytes()[PAGE:PAGE + len(self.bank)] = bytes(self.bank)
    c = ComputeCommands(runtime.arch.compute_class, "a case's launch").wait_for_idle()
    c.launch("qmd")
    c.wait_for_idle().signal(runtime.timeline.signal.address, "timeline")
    runtime.submit(runtime.compute, c.bind(qmd=place.address))
    runtime.synchronize()

  def output(self, count: int) -> bytes: return bytes(self.out.bytes()[:4 * count])

  def close(self) -> None:
    for buffer in (self.out, self.place): self.runtime.rm.give(buffer)


def _launches(arch: NvArch) -> Iterator[Question]:
  kind = class_of(arch, UNIT)

  def question(form: str, play: Callable[[NvRoom, Heard], None], name: str = "QMD") -> Question:
    source = f"{kind} QMD {arch.qmd[0]}.{arch.qmd[1]}"
    return Question(f"{arch.name}/method/{kind}/{name}/{form}", kind, name, form, source, play,
                    (" ".join((play.__doc__ or "").split()), form))
  for grid in _GRIDS:
    def grids(room: NvRoom, heard: Heard, grid: Dim3 = grid) -> None:
      """Each block of the grid stores its place, and no other does."""
      x, y, z = grid
      wanted = [i % x | i // x % y << 8 | i // (x * y) << 16 for i in range(x * y * z)] + [_FILL] * 16
      _ran(QmdLaunch(room, "groups", grid, (1, 1, 1), (x, y)), heard, wanted)
    yield question(f"GRID-{'x'.join(map(str, grid))}", grids)
  for block in _BLOCKS:
    def blocks(room: NvRoom, heard: Heard, block: Dim3 = block) -> None:
      """Each thread of a block stores its place, and no other does."""
      x, y, z = block
      wanted = [i % x | i // x % y << 10 | i // (x * y) << 20 for i in range(x * y * z)] + [_FILL] * 16
      _ran(QmdLaunch(room, "blocks", (1, 1, 1), block, (x, y)), heard, wanted)
    yield question(f"CTA_THREAD_DIMENSION-{'x'.join(map(str, block))}", blocks)
  for threads in (32, 64, 256):
    def shared(room: NvRoom, heard: Heard, threads: int = threads) -> None:
      """Threads hand values to each other through shared memory, block by block."""
      row = [threads - 1 - i for i in range(threads)]
      _ran(QmdLaunch(room, "shared", (3, 1, 1), (threads, 1, 1), (threads - 1, 0)), heard, row * 3 + [_FILL] * 16)
    yield question(f"SHARED_MEMORY_SIZE-{threads}", shared)

  def constants(room: NvRoom, heard: Heard) -> None:
    """A constant bank of the program's own, beside that of the arguments."""
    _ran(QmdLaunch(room, "constants", (1, 1, 1), (32, 1, 1)), heard, [(i % 8) ** 2 for i in range(32)] + [_FILL] * 16)
  yield question("CONSTANT_BUFFER", constants)
  for values in ((0, 0), (1, ONES), (0x0102_0304, 0x8000_0000)):
    def arguments(room: NvRoom, heard: Heard, values: tuple[int, int] = values) -> None:
      """The arguments arrive as they stand in bank 0."""
      launch = QmdLaunch(room, "arguments", (1, 1, 1), (1, 1, 1), values)
      launch.run()
      heard.memory("the numbers", launch.output(4)[8:], models.words(*values))
      heard.same("the address", int(int.from_bytes(launch.output(2), "little") == launch.out.address), 1)
      launch.close()
    yield question(f"CONSTANT_BUFFER-arguments-{values[0]:#x}-{values[1]:#x}", arguments)
  yield from _released(arch, question)


def _ran(launch: QmdLaunch, heard: Heard, wanted: Sequence[int]) -> None:
  launch.run()
  heard.memory("memory", launch.output(len(wanted)), models.words(*wanted))
  launch.close()


def _released(arch: NvArch, question: Callable[..., Question]) -> Iterator[Question]:
  """Release semaphores: what the chip writes when the grid has ended."""
  for slot in (0, 1):
    for wide in (0, 1):
      for value in ((1, 0x8000_0001) if not wide else (1, 0x0102_0304_0506_0708)):
        def plain(room: NvRoom, heard: Heard, slot: int = slot, wide: int = wide, value: int = value) -> None:
          """The payload is there when the grid has ended, in as many bytes as it has, behind what the grid stored."""
          launch = QmdLaunch(room, "store", (2, 1, 1), (32, 1, 1), (7, 0))
          _release(launch, slot, launch.semaphores + 16, value, wide, "ONE_WORD")
          launch.place.bytes()[3 * PAGE:] = b"\xee" * PAGE
          launch.run()
          size = 8 if wide else 4
          wanted = models.written(b"\xee" * 64, 16, value.to_bytes(size, "little"))
          heard.memory("semaphore", bytes(launch.place.bytes()[3 * PAGE:3 * PAGE + 64]), wanted)
          heard.memory("memory", launch.output(2), models.words(7, _FILL))
          launch.close()
        yield question(f"RELEASE{slot}-{64 if wide else 32}-{value:#x}", plain)

  def stamped(room: NvRoom, heard: Heard) -> None:
    """Four words: the payload, and the timer's nanoseconds behind it."""
    launch = QmdLaunch(room, "nothing", (1, 1, 1), (1, 1, 1))
    _release(launch, 0, launch.semaphores + 16, 0x600D, 0, "FOUR_WORDS")
    launch.run()
    found, now = bytes(launch.place.bytes()[3 * PAGE + 16:3 * PAGE + 32]), room.bench.time_ns()
    heard.same("payload", int.from_bytes(found[:4], "little"), 0x600D)
    time = int.from_bytes(found[8:], "little")
    heard.holds("the timer", 0 < now - time < 60_000_000_000, f"{time:#x}", f"just below {now:#x}")
    launch.close()
  yield question("RELEASE0-timestamp", stamped)

  def none(room: NvRoom, heard: Heard) -> None:
    """Without RELEASE_ENABLE nothing is written."""
    launch = QmdLaunch(room, "store", (1, 1, 1), (1, 1, 1), (9, 0))
    _release(launch, 0, launch.semaphores, 5, 0, "ONE_WORD")
    launch.write("RELEASE_ENABLE", 0, 0)
    launch.run()
    heard.memory("semaphore", bytes(launch.place.bytes()[3 * PAGE:3 * PAGE + 64]), bytes(64))
    heard.memory("memory", launch.output(2), models.words(9, _FILL))
    launch.close()
  yield question("RELEASE0-disabled", none)


def _release(launch: QmdLaunch, slot: int, address: int, payload: int, wide: int, size: str) -> None:
  """The fields of a release semaphore."""
  launch.write("RELEASE_ENABLE", 1, slot)
  launch.write("RELEASE_STRUCTURE_SIZE", {"FOUR_WORDS": 0, "ONE_WORD": 1}[size] if not wide else 2, slot)
  launch.write("RELEASE_SEMAPHORE_ADDR", address, slot)
  launch.write("RELEASE_PAYLOAD64B", wide, slot)
  launch.write("RELEASE_SEMAPHORE_PAYLOAD", payload, slot)
