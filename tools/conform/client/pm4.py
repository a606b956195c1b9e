"""Cases of the command processor's packets on a compute queue (PM4 of gfx9, gfx11 and gfx12).

What a packet does is told by the fields' names in AMD's PAL headers and by their use in the kernel driver
(gfx_v9_4_3.c, gfx_v11_0.c, gfx_v12_0.c). Atomics are asked in the card's own memory: a bus need not carry them.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from tinyhw.arch import Arch
from tinyhw.bringup.amd.programs import END, RungCode, launched
from tinyhw.drive.amd.commands import ComputeCommands
from tinyhw.tools.conform.client import models
from tinyhw.tools.conform.client.amd import AmdRoom, maker, packet
from tinyhw.tools.conform.client.question import Area, Heard, Question, Stage
from tinyhw.tools.conform.client.sdma import ONES, PLACES, POLLS, SIZES, WORDS, atomic_codes, released

UNIT: Final = "pm4"
PAGE: Final = 4096
_DONE: Final = 0x600D_600D
_LONGS: Final = (0, 1, 0x7FFF_FFFF_FFFF_FFFF, 0x8000_0000_0000_0000, (1 << 64) - 1, 0x0102_0304_0506_0708, 1 << 32)
_LONG_POLLS: Final = ((4, 5, (1 << 64) - 1), (5 << 32, 5 << 32 | 1, (1 << 64) - 1), (1 << 63, 5, (1 << 64) - 1),
                      (0xAB << 40 | 5, 5, 0xFF), (7 << 56, 5 << 56, 0xFF << 56), (5, 5, (1 << 64) - 1))
SHAPES: Final = (((1, 1, 1), (1, 1, 1)), ((3, 1, 1), (64, 1, 1)), ((2, 3, 1), (8, 8, 1)), ((1, 1, 5), (33, 1, 1)),
                  ((2, 2, 3), (4, 4, 4)), ((17, 1, 1), (256, 1, 1)), ((1, 7, 2), (1, 64, 1)), ((2, 1, 1), (1, 1, 96)))
# Adds 1 for each work-item to the word of its group: (z * s3 + y) * s2 + x, of the grid's x and y in s2 and s3.
COUNTS: Final = """{groups}
  s_mul_i32 s7, s6, s3
  s_add_u32 s7, s7, s5
  s_mul_i32 s7, s7, s2
  s_add_u32 s7, s7, s4
  s_lshl_b32 s7, s7, 2
  v_mov_b32_e32 v2, s7
  v_mov_b32_e32 v3, 1
  global_atomic_add_u32 v2, v3, s[0:1]
  s_endpgm"""
# Stores each work-item's packed ids at (z * s3 + y) * s2 + x, of the group's x and y in s2 and s3.
_IDS: Final = """v_and_b32_e32 v1, 0x3ff, v0
  v_bfe_u32 v2, v0, 10, 10
  v_bfe_u32 v3, v0, 20, 10
  v_mul_lo_u32 v4, v3, s3
  v_add_nc_u32_e32 v4, v4, v2
  v_mul_lo_u32 v4, v4, s2
  v_add_nc_u32_e32 v4, v4, v1
  v_lshlrev_b32_e32 v4, 2, v4
  global_store_b32 v4, v0, s[0:1]
  s_endpgm"""
# Stores s2 and s3, which are user data 2 and 3.
_USERS: Final = """v_mov_b32_e32 v2, 0
  v_mov_b32_e32 v3, s2
  v_mov_b32_e32 v4, s3
  global_store_b32 v2, v3, s[0:1]
  global_store_b32 v2, v4, s[0:1] offset:4
  """ + END


def questions(arch: Arch) -> Iterator[Question]:
  """All cases of a generation."""
  yield from _nops(arch)
  yield from _writes(arch)
  yield from _copies(arch)
  yield from _moves(arch)
  yield from _atomics(arch)
  yield from _releases(arch)
  yield from _waits(arch)
  yield from _caches(arch)
  yield from _buffers(arch)
  yield from _dispatches(arch)
  if hasattr(arch.packets, "PRED_EXEC"): yield from _predicates(arch)


def _put(c: Any, name: str, **fields: Any) -> Any: return c._put(getattr(c._p, name)(**fields))


def mark(c: Any, address: int, *words: int) -> Any:
  """WRITE_DATA to memory, confirmed."""
  return _put(c, "WRITE_DATA", dst_sel=c._p.WRITE_DATA_dst_sel.memory, wr_confirm=1, dst_mem_addr=address,
              payload=words or (_DONE,))


def _nops(arch: Arch) -> Iterator[Question]:
  before = models.noise(11, 64)
  for count in (1, 2, 3, 64, 4095):
    def put(c: Any, a: int, count: int = count) -> None: mark(_put(c, "NOP", payload=tuple(range(count))), a + 8)
    yield maker(arch, UNIT)("NOP", f"{count}", [Area(before)], [models.written(before, 8, models.words(_DONE))], put)


def _writes(arch: Arch) -> Iterator[Question]:
  make, name, before = maker(arch, UNIT), "WRITE_DATA", models.noise(12, 2 * PAGE)
  for target in ("memory", "tc_l2"):
    for count in (1, 2, 3, 4, 5, 64, 255):
      for at in (0, 4, 60, PAGE - 4):
        payload = tuple(0x0100_0000 * (i % 200) + i + 1 for i in range(count))

        def put(c: Any, a: int, target: str = target, payload: tuple[int, ...] = payload, at: int = at) -> None:
          _put(c, name, dst_sel=c._p.WRITE_DATA_dst_sel[target], wr_confirm=1, dst_mem_addr=a + at, payload=payload)
        yield make(name, f"{target}-{count}-at-{at}", [Area(before)],
                   [models.written(before, at, models.words(*payload))], put)
  for count in (1, 2, 5):
    def same(c: Any, a: int, count: int = count) -> None:
      _put(c, name, dst_sel=c._p.WRITE_DATA_dst_sel.memory, addr_incr=1, wr_confirm=1, dst_mem_addr=a + 8,
           payload=tuple(range(1, count + 1)))
    yield make(name, f"one-address-{count}", [Area(before)], [models.written(before, 8, models.words(count))], same)


def _copies(arch: Arch) -> Iterator[Question]:
  make, name = maker(arch, UNIT), "COPY_DATA"
  for wide in (0, 1):
    size = 8 if wide else 4
    for at, to in ((0, 64), (8, 72), (64, 0), (16, 24)):
      before = models.noise(13, 128)

      def put(c: Any, a: int, wide: int = wide, at: int = at, to: int = to) -> None:
        p = c._p
        _put(c, name, src_sel=p.COPY_DATA_src_sel.tc_l2, dst_sel=p.COPY_DATA_dst_sel.tc_l2, count_sel=wide,
             wr_confirm=1, src_addr=a + at, dst_addr=a + to)
      yield make(name, f"memory-{8 * size}-from-{at}-to-{to}", [Area(before)],
                 [models.copied(before, before, at, to, size)], put)
    for value in (_LONGS if wide else WORDS):
      before = models.noise(14, 64)

      def immediate(c: Any, a: int, wide: int = wide, value: int = value) -> None:
        p = c._p
        _put(c, name, src_sel=p.COPY_DATA_src_sel.immediate_data, dst_sel=p.COPY_DATA_dst_sel.tc_l2, count_sel=wide,
             wr_confirm=1, src_addr=value, dst_addr=a + 16)
      yield make(name, f"immediate-{8 * size}-{value:#x}", [Area(before)],
                 [models.written(before, 16, value.to_bytes(size, "little"))], immediate)

  def clock(c: Any, a: int) -> None:
    p = c._p
    for at in (8, 24):
      _put(c, name, src_sel=p.COPY_DATA_src_sel.gpu_clock_count, dst_sel=p.COPY_DATA_dst_sel.tc_l2, count_sel=1,
           wr_confirm=1, src_addr=0, dst_addr=a + at)
  yield packet(arch, UNIT, name, "clock", [Area(bytes(64))], [clocks(clock)])


def clocks(put: Callable[..., Any]) -> Stage:
  """A stage that stores the clock at 8 and at 24, of 64 bytes of zeros."""
  def then(room: AmdRoom, heard: Heard, found: Sequence[bytes]) -> None:
    first, second = (int.from_bytes(found[0][at:at + 8], "little") for at in (8, 24))
    now, second_long = int(room.bench.clocks().gpu_clock_counter), 60 * room.bench.counter_khz * 1000
    heard.holds("clock", 0 < first <= second <= now < first + second_long, f"{first:#x}, {second:#x}",
                f"a clock that goes forward, just below {now:#x}")
  return Stage((bytes(64),), put, loose={0: (slice(8, 16), slice(24, 32))}, then=then)


def _moves(arch: Arch) -> Iterator[Question]:
  make, name = maker(arch, UNIT), "DMA_DATA"

  def copy(form: str, size: int, at: int, to: int, source: str, target: str) -> Question:
    room = -(-(max(at, to) + size + 256) // 256) * 256
    given, before = models.noise(15, room), models.noise(16, room)

    def put(c: Any, a: int, b: int) -> None:
      p, whole = c._p, a + at
      _put(c, name, src_sel=p.DMA_DATA_src_sel[source], dst_sel=p.DMA_DATA_dst_sel[target],
           src_addr_lo_or_data=whole & ONES, src_addr_hi=whole >> 32, dst_addr=b + to, byte_count=size)
    return make(name, form, [Area(given), Area(before)], [given, models.copied(before, given, at, to, size)], put)
  for i, size in enumerate(SIZES):
    for j in {0, 1 + i % 6}:
      at, to = PLACES[j]
      yield copy(f"{size}-from-{at}-to-{to}", size, at, to, "src_addr_using_l2", "dst_addr_using_l2")
  for source in ("src_addr_using_sas", "src_addr_using_l2"):
    for target in ("dst_addr_using_das", "dst_addr_using_l2"):
      yield copy(f"{source}-{target}", 260, 4, 8, source, target)
  before = models.noise(17, 2 * PAGE)
  for size in (4, 8, 64, PAGE, PAGE + 4):
    for data in (0, 0x0102_0304):
      def fill(c: Any, a: int, size: int = size, data: int = data) -> None:
        p = c._p
        _put(c, name, src_sel=p.DMA_DATA_src_sel.data, dst_sel=p.DMA_DATA_dst_sel.dst_addr_using_l2,
             src_addr_lo_or_data=data, src_addr_hi=0, dst_addr=a + 60, byte_count=size)
      yield make(name, f"fill-{size}-{data:#x}", [Area(before)],
                 [models.written(before, 60, data.to_bytes(4, "little") * (size // 4))], fill)


def _atomics(arch: Arch) -> Iterator[Question]:
  make, name = maker(arch, UNIT), "ATOMIC_MEM"
  for op, width, code in atomic_codes(arch):
    rows = models.operands(op, width)
    before = models.words(*(r[0] | 0x55 << 56 & -(1 << width) for r in rows), bits=64)
    after = models.words(*(models.atomic(op, width, *r) | 0x55 << 56 & -(1 << width) for r in rows), bits=64)
    for word in ("_RTN", ""):
      number = code(word)

      def put(c: Any, a: int, rows: Sequence[tuple[int, int, int]] = rows, number: int = number) -> None:
        for i, (_, source, compare) in enumerate(rows):
          _put(c, name, atomic=number, command=c._p.ATOMIC_MEM_command.single_pass_atomic, addr=a + 8 * i,
               src_data=source, cmp_data=compare)
      yield make(name, f"{op}{word}_{width}", [Area(before, "video")], [after], put)
  for width in (32, 64):
    number = next(code("_RTN") for op, w, code in atomic_codes(arch) if op == "CMPSWAP" and w == width)
    before, taken = models.words(9, 0, bits=64), models.words(7, 0, bits=64)

    def loops(c: Any, a: int, number: int = number, width: int = width) -> None:
      _put(c, name, atomic=number, command=c._p.ATOMIC_MEM_command.loop_until_compare_satisfied, loop_interval=4,
           addr=a, src_data=7, cmp_data=5 | 9 << width & (1 << 64) - 1)
      mark(c, a + 8)
    done = models.written(taken, 8, models.words(_DONE))
    yield packet(arch, UNIT, name, f"CMPSWAP_RTN_{width}-loops", [Area(before)],
                 [Stage((before,), loops, ends=False), Stage((done,), store=((0, 0, models.words(5, bits=64)),))])
    yield make(name, f"CMPSWAP_RTN_{width}-loops-once", [Area(models.words(5, 0, bits=64))], [done], loops)


def release(c: Any, **fields: Any) -> Any:
  """RELEASE_MEM at the end of the pipe, of an event with a time stamp, unless it is told otherwise."""
  p = c._p
  plain = {"event_type": p.VGT_EVENT_TYPE.CACHE_FLUSH_AND_INV_TS_EVENT,
           "event_index": p.RELEASE_MEM_event_index.end_of_pipe, "dst_sel": p.RELEASE_MEM_dst_sel.memory_controller,
           "data_sel": 0, "int_sel": p.RELEASE_MEM_int_sel.none, "data": 0, "int_ctxid": 0}
  return _put(c, "RELEASE_MEM", **plain | fields)


def _releases(arch: Arch) -> Iterator[Question]:
  make, name, p = maker(arch, UNIT), "RELEASE_MEM", arch.packets
  before, select = models.noise(18, 64), p.RELEASE_MEM_data_sel
  for events in ("CACHE_FLUSH_AND_INV_TS_EVENT", "BOTTOM_OF_PIPE_TS"):
    for target in p.RELEASE_MEM_dst_sel:
      if target > 1: continue
      for word, size in (("none", 0), ("send_32_bit_low", 4), ("send_64_bit_data", 8)):
        for data in (0x0102_0304_0506_0708, (1 << 64) - 1) if size else (5,):
          def put(c: Any, a: int, events: str = events, target: int = target, word: str = word,
                  data: int = data) -> None:
            release(c, event_type=c._p.VGT_EVENT_TYPE[events], dst_sel=target, data_sel=select[word], address=a + 16,
                    data=data)
          yield make(name, f"{word}-{events}-{target.name}-{data:#x}", [Area(before)],
                     [models.written(before, 16, data.to_bytes(8, "little")[:size])], put)
  for at in (0, 4, 12):
    def low(c: Any, a: int, at: int = at) -> None:
      release(c, data_sel=select.send_32_bit_low, address=a + at, data=_DONE)
    yield make(name, f"send_32_bit_low-at-{at}", [Area(before)],
               [models.written(before, at, models.words(_DONE))], low)

  def clock(c: Any, a: int) -> None:
    for at in (8, 24): release(c, data_sel=select.send_gpu_clock_counter, address=a + at)
  yield packet(arch, UNIT, name, "send_gpu_clock_counter", [Area(bytes(64))], [clocks(clock)])
  if arch.pm4 == "gfx11":
    rows = [(a, b) for a in WORDS for b in WORDS]
    sums = models.words(*((a + b) & ONES for a, b in rows))

    def add(c: Any, a: int) -> None:
      for i, (_, b) in enumerate(rows): release(c, data_sel=select.atomic_add32bit_low, address=a + 4 * i, data=b)
    yield make(name, "atomic_add32bit_low", [Area(models.words(*(a for a, _ in rows)), "video")], [sums], add)
  for word, writes, tells in (("none", True, False), ("send_interrupt_only", False, True),
                              ("send_interrupt_after_write_confirm", True, True),
                              ("send_data_and_write_confirm", True, False)):
    def interrupts(room: AmdRoom, heard: Heard, word: str = word, writes: bool = writes, tells: bool = tells) -> None:
      _interrupts(room, heard, word, writes, tells)
    yield Question(f"{arch.name}/packet/{UNIT}/{name}/interrupt-{word}", UNIT, name, f"interrupt-{word}",
                   f"pm4: {arch.pm4}", interrupts, (f"RELEASE_MEM of 64 bits into a mailbox, int_sel={word}",))


def _interrupts(room: AmdRoom, heard: Heard, word: str, writes: bool, tells: bool) -> None:
  """Data and interrupt, each as int_sel says: an event by its mailbox where there are data, else by its slot."""
  b, p = room.bench, room.bench.arch.packets
  made, other = b.event(), b.event()
  memory = room.take(0, Area(bytes(64)))
  mailbox = b.event_page.address + 8 * made.event_slot_index
  c = b.pm4()
  if not writes: mark(c, mailbox, made.event_id, 0)  # the event is known by its slot
  else: release(c, data_sel=p.RELEASE_MEM_data_sel.send_64_bit_data, address=mailbox, data=made.event_id)
  release(c, data_sel=p.RELEASE_MEM_data_sel.send_64_bit_data, address=memory.address + 8, data=_DONE,
          int_sel=p.RELEASE_MEM_int_sel[word], int_ctxid=made.event_trigger_data)
  b.compute.finish(c, "RELEASE_MEM")
  left = models.written(bytes(64), 8, models.words(_DONE, bits=64)) if writes else bytes(64)
  heard.memory("memory", room.load(memory, 64), left)
  came = b.wait_events([made.event_id], 2000 if tells else 5) is not None
  heard.holds("the event", came == tells, "is set" if came else "is not set", "is set" if tells else "is not set")
  heard.holds("another event", b.wait_events([other.event_id], 1) is None, "is set too", "is not")


def _waits(arch: Arch) -> Iterator[Question]:
  p = arch.packets
  kinds = [("WAIT_REG_MEM", 32, POLLS)]
  if hasattr(p, "WAIT_REG_MEM64"): kinds.append(("WAIT_REG_MEM64", 64, (*_LONG_POLLS, *POLLS[3:6])))
  for name, width, rows in kinds:
    for function, (word, holds) in enumerate(models.COMPARISONS):
      for seen, reference, mask in rows:
        before = models.words(seen, 0, bits=64)
        done = models.written(before, 8, models.words(_DONE))

        def put(c: Any, a: int, name: str = name, function: int = function, reference: int = reference,
                mask: int = mask) -> None:
          space = getattr(c._p, f"{name}_mem_space").memory_space
          _put(c, name, function=function, mem_space=space, mem_poll_addr=a, reference=reference, mask=mask,
               poll_interval=4)
          mark(c, a + 8)
        stages = [Stage((done,), put)]
        if not holds(seen & mask, reference):
          value = released(seen, reference, mask, holds, (1 << width) - 1)
          if value is None: continue
          store = value.to_bytes(width // 8, "little")
          stages = [Stage((before,), put, ends=False), Stage((models.written(done, 0, store),), store=((0, 0, store),))]
        yield packet(arch, UNIT, name, f"{word}-{seen:#x}-{reference:#x}-{mask:#x}", [Area(before)], stages)


def _caches(arch: Arch) -> Iterator[Question]:
  make, before = maker(arch, UNIT), models.noise(19, 64)
  done = models.written(before, 8, models.words(_DONE))
  whole = next(f.limit for f in arch.packets.ACQUIRE_MEM.FIELDS if f.name == "coher_size")
  for word, size in (("all", whole), ("range", 1)):
    def acquire(c: Any, a: int, size: int = size) -> None:
      first = len(c.words)
      c.memory_barrier()
      if size != whole:  # the same caches, over a range
        wire = c.words[first + 2:]
        del c.words[first:]
        caches = ({"gcr_cntl": wire[7]} if "gcr_cntl" in {f.name for f in c._p.ACQUIRE_MEM.FIELDS}
                  else {"coher_cntl": wire[1]})
        _put(c, "ACQUIRE_MEM", coher_size=size, coher_base=a >> 8, poll_interval=4, **caches)
      mark(c, a + 8)
    yield make("ACQUIRE_MEM", word, [Area(before)], [done], acquire)
  if hasattr(arch.packets, "HDP_FLUSH"):
    def flush(c: Any, a: int) -> None: mark(_put(c, "HDP_FLUSH", dummy=0), a + 8)
    yield make("HDP_FLUSH", "plain", [Area(before)], [done], flush)
  yield Question(f"{arch.name}/packet/{UNIT}/EVENT_WRITE/CS_PARTIAL_FLUSH", UNIT, "EVENT_WRITE", "CS_PARTIAL_FLUSH",
                 f"pm4: {arch.pm4}", _flushed, ("a dispatch, EVENT_WRITE(CS_PARTIAL_FLUSH), ACQUIRE_MEM, and COPY_DATA "
                                                "of what it stored",))


def _flushed(room: AmdRoom, heard: Heard) -> None:
  """A packet behind EVENT_WRITE CS_PARTIAL_FLUSH and ACQUIRE_MEM sees what a dispatch before it has stored."""
  b = room.bench
  p = b.arch.packets
  memory = room.take(0, Area(models.noise(20, 64)))
  code = RungCode(b, _USERS)
  c = launched(b, b.pm4(), code, memory.address, users=(0x1234, 0x5678)).memory_barrier()
  _put(c, "COPY_DATA", src_sel=p.COPY_DATA_src_sel.tc_l2, dst_sel=p.COPY_DATA_dst_sel.tc_l2, count_sel=1, wr_confirm=1,
       src_addr=memory.address, dst_addr=memory.address + 16)
  b.compute.finish(c, "EVENT_WRITE")
  stored = models.words(0x1234, 0x5678)
  wanted = models.written(models.written(models.noise(20, 64), 0, stored), 16, stored)
  heard.memory("memory", room.load(memory, 64), wanted)
  b.free(code.memory)


def _buffers(arch: Arch) -> Iterator[Question]:
  before, name = models.noise(21, 64), "INDIRECT_BUFFER"
  after = models.written(before, 8, models.words(5, 6, _DONE))
  for count in (0, 1, 61, 1000):
    def called(a: int, b: int, count: int = count) -> list[tuple[int, int, bytes]]:
      return [(1, 64, models.words(*mark(_called(arch, a, count), a + 24, 0xBAD).words))]  # the last is behind the end

    def calls(c: Any, a: int, b: int, count: int = count) -> None:
      c.indirect_buffer(b + 64, len(_called(arch, a, count).words))
      mark(c, a + 16)
    yield packet(arch, UNIT, name, f"{count}-between", [Area(before), Area(bytes(8192))],
                 [Stage((after, None), calls, stores=called)])

  def chained(a: int, b: int) -> list[tuple[int, int, bytes]]:
    first, second = mark(ComputeCommands(arch), a + 8, 5), mark(ComputeCommands(arch), a + 12, 6)
    _put(first, name, ib_base=b + 512, ib_size=len(second.words), chain=1, valid=1)
    mark(first, a + 8, 0xBAD)  # behind a chain nothing is executed
    return [(1, 64, models.words(*first.words)), (1, 512, models.words(*second.words))]

  def chains(c: Any, a: int, b: int) -> None:
    count = len(mark(ComputeCommands(arch), a, 5).words)
    c.indirect_buffer(b + 64, 2 * count + 4)
    mark(c, a + 16)
  yield packet(arch, UNIT, name, "chained", [Area(before), Area(bytes(4096))],
               [Stage((after, None), chains, stores=chained)])

  def empty(c: Any, a: int) -> None: mark(c.indirect_buffer(a, 0), a + 16)
  yield maker(arch, UNIT)(name, "empty", [Area(before)], [models.written(before, 16, models.words(_DONE))], empty)


def _called(arch: Arch, a: int, count: int) -> ComputeCommands:
  """Packets for an indirect buffer: two marks, and so many NOPs between them."""
  c: ComputeCommands = mark(ComputeCommands(arch), a + 8, 5)
  for i in range(count): _put(c, "NOP", payload=(i,))
  return mark(c, a + 12, 6)  # type: ignore[no-any-return]


def _dispatches(arch: Arch) -> Iterator[Question]:
  def question(name: str, form: str, play: Callable[[AmdRoom, Heard], None], *text: str) -> Question:
    return Question(f"{arch.name}/packet/{UNIT}/{name}/{form}", UNIT, name, form, f"pm4: {arch.pm4}", play, text)
  for grid, block in SHAPES:
    word = f"{'x'.join(map(str, grid))}-of-{'x'.join(map(str, block))}"
    for name in ("DISPATCH_DIRECT", "DISPATCH_INDIRECT"):
      def play(room: AmdRoom, heard: Heard, name: str = name, grid: tuple[int, int, int] = grid,
               block: tuple[int, int, int] = block) -> None:
        _dispatched(room, heard, grid, block, name == "DISPATCH_INDIRECT")
      yield question(name, word, play, f"each work-item adds 1 for its group: {grid} of {block}", COUNTS)

    def ids(room: AmdRoom, heard: Heard, block: tuple[int, int, int] = block) -> None: _numbered(room, heard, block)
    if grid[0] > 1 or grid[2] > 1:
      yield question("DISPATCH_DIRECT", f"ids-of-{'x'.join(map(str, block))}", ids, "each work-item stores its ids",
                     _IDS)
  for first, second in ((1, 2), (ONES, 0x8000_0000)):
    def users(room: AmdRoom, heard: Heard, first: int = first, second: int = second) -> None:
      _user_data(room, heard, first, second)
    yield question("SET_SH_REG", f"user-data-{first:#x}-{second:#x}", users, "a wave stores COMPUTE_USER_DATA_2 and _3",
                   _USERS)


def _dispatched(room: AmdRoom, heard: Heard, grid: tuple[int, int, int], block: tuple[int, int, int],
                indirect: bool) -> None:
  """Each group of the grid runs once, with all its work-items."""
  b, count = room.bench, grid[0] * grid[1] * grid[2]
  memory = room.take(0, Area(bytes(4 * count + 64), "video"))
  code = RungCode(b, COUNTS)
  c = launched(b, b.pm4(), code, memory.address, grid, block, users=(grid[0], grid[1]))
  if indirect:
    sizes = room.take(1, Area(models.words(7, *grid, 9)))
    start = c.words[-1]
    del c.words[-5:]  # DISPATCH_DIRECT and its header
    _put(c, "DISPATCH_INDIRECT", addr=sizes.address + 4, dispatch_initiator=start)
  b.compute.finish(c, "the dispatch")
  threads = block[0] * block[1] * block[2]
  heard.memory("memory", room.load(memory, 4 * count + 64), models.words(*[threads] * count) + bytes(64))
  b.free(code.memory)


def _numbered(room: AmdRoom, heard: Heard, block: tuple[int, int, int]) -> None:
  """Each work-item has ids of its own, packed in ten bits each."""
  b, (x, y, z) = room.bench, block
  before = models.noise(22, 4 * x * y * z + 64)
  memory = room.take(0, Area(before))
  code = RungCode(b, _IDS)
  b.compute.finish(launched(b, b.pm4(), code, memory.address, (1, 1, 1), block, users=(x, y)), "the dispatch")
  wanted = models.words(*(i % x | i // x % y << 10 | i // (x * y) << 20 for i in range(x * y * z)))
  heard.memory("memory", room.load(memory, len(before)), models.written(before, 0, wanted))
  b.free(code.memory)


def _user_data(room: AmdRoom, heard: Heard, first: int, second: int) -> None:
  b = room.bench
  memory = room.take(0, Area(models.noise(23, 64)))
  code = RungCode(b, _USERS)
  b.compute.finish(launched(b, b.pm4(), code, memory.address, users=(first, second)), "the dispatch")
  heard.memory("memory", room.load(memory, 64), models.written(models.noise(23, 64), 0, models.words(first, second)))
  b.free(code.memory)


def _predicates(arch: Arch) -> Iterator[Question]:
  """A queue is one core's (XCC): here the first one's."""
  make, before = maker(arch, UNIT), models.noise(24, 64)
  for select in (1, 2, 3, 0x80):
    for marks in (1, 2):
      def put(c: Any, a: int, select: int = select, marks: int = marks) -> None:
        count = len(mark(ComputeCommands(arch), a).words)
        _put(c, "PRED_EXEC", device_select=select, exec_count=marks * count)
        for i in range(3): mark(c, a + 4 * i, 100 + i)
      skipped = 0 if select & 1 else marks
      wanted = models.written(before, 4 * skipped, models.words(*(100 + i for i in range(skipped, 3))))
      yield make("PRED_EXEC", f"{select:#x}-{marks}", [Area(before)], [wanted], put)
