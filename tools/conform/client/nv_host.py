"""Cases of the host engine's methods: semaphores, waits, cache operations, and the headers that methods come under.

What they do is told by dev_pbdma.ref and dev_ram.ref of GA100 ("Host Methods", "Host Pushbuffer Format"): a semaphore
is a payload of 4 or 8 bytes, or 16 bytes with the timer's nanoseconds at byte 8.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from tinyhw.arch.nv import NvArch
from tinyhw.autogen import nv_c56f as host
from tinyhw.tools.conform.client import models
from tinyhw.tools.conform.client.nv import PBDMA, NvRoom, interrupts, maker, methods, xid
from tinyhw.tools.conform.client.question import Area, Heard, Question, Stage
from tinyhw.tools.conform.client.sdma import WORDS
from tinyhw.wire.methods import IMMD, INCR, NONINCR, ONEINCR, Send

UNIT: Final = "host"
ONES: Final = 0xFFFF_FFFF
LONGS: Final = (0, 1, 0x7FFF_FFFF_FFFF_FFFF, 0x8000_0000_0000_0000, (1 << 64) - 1, 0x0102_0304_0506_0708, 1 << 32)
_DONE: Final = 0x600D_600D
_OP: Final = host.SEM_EXECUTE_OPERATION
# What acquires find and are given, of 32 bits; of 64 the same, moved up.
_ACQUIRES: Final = ((4, 5), (5, 5), (6, 5), (0x8000_0004, 5), (0x8000_0005, 5), (0x8000_0006, 5), (ONES, 0), (0, ONES),
                    (0b1010, 0b0101), (0b1010, 0b0010), (0xFFFF_FFF0, 0xF), (0xFFFF_FFF0, 7))


def acquires(name: str, seen: int, payload: int, bits: int) -> bool:
  """Whether an acquire succeeds (dev_pbdma.ref, SEM_EXECUTE.OPERATION)."""
  ones = (1 << bits) - 1
  match name:
    case "ACQUIRE": return seen == payload
    case "ACQ_STRICT_GEQ": return seen >= payload
    case "ACQ_CIRC_GEQ": return (seen - payload) & ones < 1 << bits - 1  # the difference has no sign
    case "ACQ_AND": return seen & payload != 0
    case "ACQ_NOR": return (seen | payload) ^ ones != 0
  raise KeyError(name)


def questions(arch: NvArch) -> Iterator[Question]:
  """All cases of a generation."""
  yield from _releases(arch)
  yield from _acquired(arch)
  yield from _reductions(arch)
  yield from _old(arch)
  yield from _orders(arch)
  for word, sent in (("NON_STALL_INTERRUPT", host.NON_STALL_INTERRUPT()), ("NOP", host.NOP())):
    def put(c: Any, a: int, sent: Any = sent) -> None: c.send(sent)
    yield interrupts(arch, UNIT, word, "interrupt", put, word == "NON_STALL_INTERRUPT")
  yield from _headers(arch)
  yield from _refused(arch)
  before = models.noise(56, 64)
  after = models.written(before, 8, models.words(_DONE))

  def again(c: Any, a: int) -> None: mark(c.begin(), a + 8)  # the class that is there already
  yield maker(arch, UNIT)("SET_OBJECT", "again", [Area(before)], [after], again)


def semaphore(c: Any, address: int, payload: int, **fields: Any) -> Any:
  """A semaphore method by its fields."""
  c.run(host.SEM_ADDR_LO, address & ONES, address >> 32, payload & ONES, payload >> 32,
        host.SEM_EXECUTE(**fields).value())
  return c


def mark(c: Any, address: int, value: int = _DONE) -> Any:
  """A release of 32 bits."""
  return semaphore(c, address, value, OPERATION=_OP.RELEASE, RELEASE_WFI=1)


def timed(put: Callable[..., Any], before: bytes, at: int, payload: bytes) -> Stage:
  """A stage that leaves a payload and a time of now behind it."""
  def then(room: NvRoom, heard: Heard, found: Sequence[bytes]) -> None:
    time, now = int.from_bytes(found[0][at + 8:at + 16], "little"), room.bench.time_ns()
    heard.holds("the timer", 0 <= now - time < 60_000_000_000, f"{time:#x}", f"just below {now:#x}")
  return Stage((models.written(before, at, payload),), put, loose={0: (slice(at + 8, at + 16),)}, then=then)


def _releases(arch: NvArch) -> Iterator[Question]:
  make, name, before = maker(arch, UNIT), "SEM_EXECUTE", models.noise(51, 128)
  for wide, values in ((0, WORDS), (1, LONGS)):
    size, bits = 8 if wide else 4, 64 if wide else 32
    for wfi in (0, 1):
      for value in values:
        def put(c: Any, a: int, wide: int = wide, wfi: int = wfi, value: int = value) -> None:
          semaphore(c, a + 32, value, OPERATION=_OP.RELEASE, RELEASE_WFI=wfi, PAYLOAD_SIZE=wide)
        yield make(name, f"release-{bits}-wfi-{wfi}-{value:#x}", [Area(before)],
                   [models.written(before, 32, value.to_bytes(size, "little"))], put)
    for at in (0, size, 64 - size, 128 - size):
      def place(c: Any, a: int, wide: int = wide, at: int = at) -> None:
        semaphore(c, a + at, _DONE, OPERATION=_OP.RELEASE, PAYLOAD_SIZE=wide)
      yield make(name, f"release-{bits}-at-{at}", [Area(before)],
                 [models.written(before, at, _DONE.to_bytes(size, "little"))], place)
    for value in values[1::2]:
      def stamp(c: Any, a: int, wide: int = wide, value: int = value) -> None:
        semaphore(c, a + 16, value, OPERATION=_OP.RELEASE, PAYLOAD_SIZE=wide, RELEASE_TIMESTAMP=1, RELEASE_WFI=1)
      yield methods(arch, UNIT, name, f"release-{bits}-timestamp-{value:#x}", [Area(before)],
                    [timed(stamp, before, 16, value.to_bytes(8, "little"))])

  def high(c: Any, a: int) -> None:  # of 32 bits the upper payload does not count
    semaphore(c, a, 0xDEAD_0000_0000 | _DONE, OPERATION=_OP.RELEASE)
  yield make(name, "release-32-upper-payload", [Area(before)], [models.written(before, 0, models.words(_DONE))], high)


def _acquired(arch: NvArch) -> Iterator[Question]:
  for name in ("ACQUIRE", "ACQ_STRICT_GEQ", "ACQ_CIRC_GEQ", "ACQ_AND", "ACQ_NOR"):
    for bits in (32, 64):
      ones, move = (1 << bits) - 1, bits - 32
      for seen, payload in _ACQUIRES:
        if move: seen, payload = seen << move | ONES & -(seen == ONES), payload << move | ONES & -(payload == ONES)
        before = models.words(seen, 0, bits=64)
        done = models.written(before, 8, models.words(_DONE))

        def put(c: Any, a: int, name: str = name, bits: int = bits, payload: int = payload) -> None:
          semaphore(c, a, payload, OPERATION=_OP[name], PAYLOAD_SIZE=int(bits == 64), ACQUIRE_SWITCH_TSG=1)
          mark(c, a + 8)
        stages = [Stage((done,), put)]
        if not acquires(name, seen, payload, bits):
          value = next((v for v in (payload, payload + 1 & ones, 0) if acquires(name, v, payload, bits)), None)
          if value is None: continue
          store = value.to_bytes(bits // 8, "little")
          stages = [Stage((before,), put, ends=False), Stage((models.written(done, 0, store),), store=((0, 0, store),))]
        yield methods(arch, UNIT, "SEM_EXECUTE", f"{name}-{bits}-{seen:#x}-{payload:#x}", [Area(before)], stages)


def reduced(name: str, bits: int, signed: bool, before: int, payload: int) -> int:
  """What a reduction leaves."""
  plain = name.removeprefix("I")
  if plain == "NC": plain = "INC"
  if plain in {"MIN", "MAX"}: plain = ("S" if signed else "U") + plain
  return models.atomic(plain, bits, before, payload)


def reductions(names: Sequence[str], widths: Sequence[int] = (32, 64)) -> Iterator[tuple[str, int, bool]]:
  """(name, bits, signed) of those that memory has: no signed or wide INC and DEC, no signed wide IADD."""
  for name in names:
    for bits in widths:
      for signed in (False, True):
        if name in {"INC", "DEC", "RED_INC", "RED_DEC"} and (signed or bits == 64): continue
        if name in {"IADD", "RED_ADD"} and signed and bits == 64: continue
        yield name, bits, signed


def rows_of(name: str, bits: int) -> list[tuple[int, int]]:
  """(before, payload) at which a reduction changes."""
  return [(a, b) for a, b, _ in models.operands(name, bits)]


def _reductions(arch: NvArch) -> Iterator[Question]:
  make, form = maker(arch, UNIT), host.SEM_EXECUTE_REDUCTION_FORMAT
  for name, bits, signed in reductions([r.name for r in host.SEM_EXECUTE_REDUCTION]):
    rows = rows_of(name, bits)
    before = models.words(*(a for a, _ in rows), bits=64)
    after = models.words(*(reduced(name, bits, signed, a, b) for a, b in rows), bits=64)

    def put(c: Any, a: int, name: str = name, bits: int = bits, signed: bool = signed,
            rows: Sequence[tuple[int, int]] = rows) -> None:
      for i, (_, payload) in enumerate(rows):
        semaphore(c, a + 8 * i, payload, OPERATION=_OP.REDUCTION, PAYLOAD_SIZE=int(bits == 64),
                  REDUCTION=host.SEM_EXECUTE_REDUCTION[name], REDUCTION_FORMAT=form.SIGNED if signed else form.UNSIGNED)
    yield make("SEM_EXECUTE", f"{name}-{'signed' if signed else 'unsigned'}-{bits}", [Area(before, "video")], [after],
               put)


def _old(arch: NvArch) -> Iterator[Question]:
  """SEMAPHOREA to SEMAPHORED, which the class still has."""
  make, before, o = maker(arch, UNIT), models.noise(52, 64), host.SEMAPHORED_OPERATION
  size = host.SEMAPHORED_RELEASE_SIZE

  def old(c: Any, address: int, payload: int, **fields: Any) -> None:
    c.run(host.SEMAPHOREA, address >> 32, address & ONES, payload, host.SEMAPHORED(**fields).value())
  for value in WORDS:
    def put(c: Any, a: int, value: int = value) -> None:
      old(c, a + 16, value, OPERATION=o.RELEASE, RELEASE_SIZE=size._4BYTE)
    yield make("SEMAPHORED", f"release-{value:#x}", [Area(before)],
               [models.written(before, 16, models.words(value))], put)

  def stamp(c: Any, a: int) -> None: old(c, a + 16, _DONE, OPERATION=o.RELEASE, RELEASE_SIZE=size._16BYTE)
  yield methods(arch, UNIT, "SEMAPHORED", "release-timestamp", [Area(before)],
                [timed(stamp, before, 16, models.words(_DONE, bits=64))])
  for name, modern in (("ACQUIRE", "ACQUIRE"), ("ACQ_GEQ", "ACQ_CIRC_GEQ"), ("ACQ_AND", "ACQ_AND")):
    for seen, payload in _ACQUIRES:
      start = models.words(seen, 0, bits=64)
      done = models.written(start, 8, models.words(_DONE))

      def acquire(c: Any, a: int, name: str = name, payload: int = payload) -> None:
        old(c, a, payload, OPERATION=o[name], ACQUIRE_SWITCH=1)
        mark(c, a + 8)
      stages = [Stage((done,), acquire)]
      if not acquires(modern, seen, payload, 32):
        store = models.words(payload)
        if not acquires(modern, payload, payload, 32): continue
        let = Stage((models.written(done, 0, store),), store=((0, 0, store),))
        stages = [Stage((start,), acquire, ends=False), let]
      yield methods(arch, UNIT, "SEMAPHORED", f"{name}-{seen:#x}-{payload:#x}", [Area(start)], stages)
  form = host.SEMAPHORED_FORMAT
  for name, bits, signed in reductions([r.name for r in host.SEMAPHORED_REDUCTION], (32,)):
    rows = rows_of(name, bits)
    start = models.words(*(a for a, _ in rows))
    after = models.words(*(reduced(name, 32, signed, a, b) for a, b in rows))

    def reduce(c: Any, a: int, name: str = name, signed: bool = signed, rows: Sequence[tuple[int, int]] = rows) -> None:
      for i, (_, payload) in enumerate(rows):
        old(c, a + 4 * i, payload, OPERATION=o.REDUCTION, REDUCTION=host.SEMAPHORED_REDUCTION[name],
            FORMAT=form.SIGNED if signed else form.UNSIGNED)
    yield make("SEMAPHORED", f"{name}-{'signed' if signed else 'unsigned'}", [Area(start, "video")], [after], reduce)


def _orders(arch: NvArch) -> Iterator[Question]:
  """Methods that leave nothing in memory: what is behind them is executed."""
  make, before, d = maker(arch, UNIT), models.noise(53, 64), host.MEM_OP_D_OPERATION
  rows: list[tuple[str, str, list[Any]]] = [
    ("NOP", "plain", [host.NOP()]), ("NOP", "data", [host.NOP(HANDLE=0x1234)]),
    ("WFI", "current", [host.WFI(SCOPE=host.WFI_SCOPE.CURRENT_SCG_TYPE)]), ("WFI", "all", [host.WFI(SCOPE=1)]),
    ("SET_REFERENCE", "plain", [host.SET_REFERENCE(COUNT=5)]),
    ("NON_STALL_INTERRUPT", "plain", [host.NON_STALL_INTERRUPT()]), ("FB_FLUSH", "plain", [host.FB_FLUSH()]),
    ("YIELD", "nop", [host.YIELD(OP_=host.YIELD_OP.NOP)]),
    *(("MEM_OP_D", o.name, [host.MEM_OP_A(), host.MEM_OP_B(), host.MEM_OP_C(), host.MEM_OP_D(OPERATION=o)])
      for o in (d.MEMBAR, d.L2_SYSMEM_INVALIDATE, d.L2_FLUSH_DIRTY))]
  for name, form, sent in rows:
    def put(c: Any, a: int, sent: Sequence[Any] = sent) -> None: mark(c.send(*sent), a + 8)
    yield make(name, form, [Area(before)], [models.written(before, 8, models.words(_DONE))], put)


def _headers(arch: NvArch) -> Iterator[Question]:
  """The same semaphore under each header that methods come under."""
  make, before = maker(arch, UNIT), models.noise(54, 64)
  after = models.written(before, 8, models.words(5))
  execute = host.SEM_EXECUTE(OPERATION=_OP.RELEASE).value()

  def one(c: Any, header: Any, method: Any, *data: int) -> None:
    c.words += Send(header, c.subchannel, method.OFFSET, data).encode()

  def incr(c: Any, a: int) -> None: one(c, INCR, host.SEM_ADDR_LO, a + 8 & ONES, a >> 32, 5, 0, execute)

  def immd(c: Any, a: int) -> None:
    one(c, INCR, host.SEM_ADDR_LO, a + 8 & ONES, a >> 32)
    one(c, IMMD, host.SEM_PAYLOAD_LO, 5)
    one(c, IMMD, host.SEM_EXECUTE, execute)

  def nonincr(c: Any, a: int) -> None:
    one(c, INCR, host.SEM_ADDR_LO, a + 8 & ONES, a >> 32)
    one(c, NONINCR, host.SEM_PAYLOAD_LO, 9, 7, 5)  # the last one stands
    one(c, NONINCR, host.SEM_EXECUTE, execute)

  def oneincr(c: Any, a: int) -> None:
    one(c, INCR, host.SEM_ADDR_LO, a + 8 & ONES, a >> 32)
    one(c, ONEINCR, host.SEM_PAYLOAD_LO, 5, 1, 0)  # the first to one method, the rest to the next
    one(c, INCR, host.SEM_EXECUTE, execute)

  def zeros(c: Any, a: int) -> None:
    c.words += [0, 0, 0]
    incr(c, a)
    c.words.append(0)
  for name, put in (("INCR", incr), ("IMMD", immd), ("NONINCR", nonincr), ("ONEINCR", oneincr), ("NOP-words", zeros)):
    yield make("header", name, [Area(before)], [after], put)


def _refused(arch: NvArch) -> Iterator[Question]:
  """What ends a channel, by the Xid that the notifier tells."""
  area, same = Area(models.noise(55, 64)), (None,)

  def misaligned(wide: int, stamp: int, at: int) -> Callable[..., Any]:
    def put(c: Any, a: int) -> None:
      semaphore(c, a + at, 1, OPERATION=_OP.RELEASE, PAYLOAD_SIZE=wide, RELEASE_TIMESTAMP=stamp)
    return put

  def reduces(reduction: str, signed: int, wide: int) -> Callable[..., Any]:
    def put(c: Any, a: int) -> None:
      semaphore(c, a, 1, OPERATION=_OP.REDUCTION, PAYLOAD_SIZE=wide, REDUCTION=host.SEM_EXECUTE_REDUCTION[reduction],
                REDUCTION_FORMAT=int(not signed))
    return put
  rows: list[tuple[str, str, Callable[..., Any]]] = [
    ("SEM_EXECUTE", "refuses-64-bits-at-4", misaligned(1, 0, 4)),
    ("SEM_EXECUTE", "refuses-timestamp-at-8", misaligned(0, 1, 8)),
    *(("SEM_EXECUTE", f"refuses-{n}-{'signed' if s else 'unsigned'}-{64 if w else 32}", reduces(n, s, w))
      for n, s, w in (("INC", 1, 0), ("INC", 0, 1), ("DEC", 1, 0), ("DEC", 0, 1), ("IADD", 1, 1))),
    ("ILLEGAL", "refuses", lambda c, a: c.send(host.ILLEGAL(HANDLE=1))),
    ("no-method", "refuses-0x3c", lambda c, a: c.words.extend(Send(INCR, c.subchannel, 0x3C, (1,)).encode()))]
  for name, form, put in rows:
    yield methods(arch, UNIT, name, form, [area], [Stage(same, put)], error=xid(PBDMA))
