"""Channels beside models of a few lines, semaphores of every engine, and which calls are for which file."""
from __future__ import annotations

import random
import struct
from itertools import product

import pytest

from tests.mock.nv.bench import COMPUTE, COPY, FAR, Bench, launch_qmd, release, semaphore
from tests.mock.nv.client import Client
from tests.mock.nv.test_compute import ADD, Compute, body
from tests.mock.nv.test_host import MMU, PBDMA, dead
from tests.strength import seeds
from tinyhw.autogen import nv_c56f as host
from tinyhw.autogen import nv_rm
from tinyhw.autogen import nv_rm_status as status
from tinyhw.core.errors import Unsupported, WatchdogExpired
from tinyhw.core.memory import Access
from tinyhw.core.trace import Clock
from tinyhw.mock.nv.card import CARDS
from tinyhw.mock.nv.chip.channel import Channel, State
from tinyhw.mock.nv.driver.rm import Rm
from tinyhw.mock.nv.machine import NvMachine
from tinyhw.wire import cubin, gpfifo, methods

ACQUIRE = host.SEM_EXECUTE(OPERATION=host.SEM_EXECUTE_OPERATION.ACQUIRE)


@pytest.mark.parametrize("seed", seeds(range(4)))
def test_sub_device_masks_beside_a_model(seed: int) -> None:
  """A GPU that is linked to no other one is sub-device 0. Each release that bit 0 of the mask lets through counts one
  more; the masks are those of `dev_pbdma.ref`: set, stored, taken from the stored one."""
  rng, b = random.Random(seed), Bench()
  c, at = b.channel(), b.take(16)
  mask = kept = 0xFFF
  seen = 0
  for n in range(1, 41):
    what = rng.randrange(4)
    value = rng.choice((1, 2, 3, 0xFFE, 0xFFF))
    words: list[int] = []
    if what == 0: words, mask = [host.DMA_SET_SUBDEVICE_MASK(VALUE=value, OPCODE=1).value()], value
    if what == 1: words, kept = [host.DMA_STORE_SUBDEVICE_MASK(VALUE=value, OPCODE=2).value()], value
    if what == 2: words, mask = [host.DMA_USE_SUBDEVICE_MASK(OPCODE=3).value()], kept
    b.submit(c, [*words, *methods.send(0, *release(at, n)), *methods.send(0, host.NON_STALL_INTERRUPT(HANDLE=n))])
    b.run()
    if mask & 1: seen = n
    assert b.space.load(at, 4) == seen and c.state is State.READY, (n, mask, kept)
  assert c.get == c.put


def test_what_is_told_of_a_channel() -> None:
  """Ready, waiting, and ended by a fault, after which nothing of it goes on."""
  b = Bench()
  c, at = b.channel(), b.take(16)
  kept = {"rc": 0, "wait": None, "error": None}
  assert c.snapshot() == {"state": "ready", "get": 0, "put": 0, "packets": 0, **kept}
  b.submit(c, [*methods.send(0, *semaphore(at, 77), ACQUIRE), *methods.send(0, *release(at, 5))])
  b.run()
  told = c.snapshot()
  assert told == {"state": "blocked", "get": 1, "put": 1, "packets": 1, "rc": 0, "wait": str(c.wait),
                  "error": None}
  assert f"{at:#x}" in told["wait"] and c.describe() == f"{c.name}: blocked, GP_GET 1, GP_PUT 1; {c.wait}"
  b.space.store(at, 4, 77)
  b.run()
  assert c.snapshot() == {"state": "ready", "get": 1, "put": 1, "packets": 2, **kept}
  b.space.map(FAR, 4096, b.gpu.vram, 1 << 19)
  b.submit(c, methods.send(0, *semaphore(FAR, 77), ACQUIRE))
  b.submit(c, methods.send(0, *release(at, 6)))
  b.run()
  assert c.runnable() is False and c.get == 2
  b.space.unmap(FAR, 4096)
  assert c.runnable() is False and c.state is State.DEAD
  before = c.snapshot()
  assert before["rc"] == MMU and before["error"] == str(c.error) and before["wait"] is None
  assert c.describe() == f"{c.name}: dead, GP_GET 2, GP_PUT 3; {c.error}"
  b.submit(c, methods.send(0, *release(at, 7)))
  b.run()
  assert c.snapshot() == before and b.space.load(at, 4) == 5
  c.run(4)
  assert c.snapshot() == before and c.method_text().startswith("AMPERE_CHANNEL_GPFIFO_A.SEM_EXECUTE")


def test_threads_that_run_in_circles() -> None:
  """Nobody can end what looks at no memory: it is a fault at once, before anybody waits for it."""
  b = Compute()
  c, at = b.channel(), b.take(16)
  b.pcas(c, launch_qmd(b, b.load(body("again: bra again;"), "k"), bank=b.bank(at), block=(1, 1, 1)))
  b.submit(c, methods.send(COMPUTE, methods.declared(0xCBC0).NO_OPERATION(V=1)))
  b.run()
  assert isinstance(c.error, WatchdogExpired) and "an endless loop" in str(c.error) and c.state is State.DEAD


# ---- semaphores

OPERATIONS = ("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR")


def reduced(name: str, v: int, p: int, bits: int, signed: bool) -> int:
  """What `dev_pbdma.ref` says of a reduction of so many bits."""
  v, p = v % 2**bits, p % 2**bits
  def order(x: int) -> int: return (x + (2**(bits - 1) if signed else 0)) % 2**bits
  return {"ADD": (v + p) % 2**bits, "MIN": min(v, p, key=order), "MAX": max(v, p, key=order),
          "INC": 0 if v >= p else v + 1, "DEC": p if v == 0 or v > p else v - 1, "AND": v & p, "OR": v | p,
          "XOR": v ^ p}[name]


@pytest.mark.parametrize("card", ["sm_80", "sm_90"])
def test_report_semaphores_of_every_shape(card: str) -> None:
  """One, two and four words, by both methods; what is there is replaced or reduced, with a sign or without; each is at
  a multiple of its size; who asks for an interrupt has one."""
  b = Compute(card)
  m = methods.declared(CARDS[card].compute_class)
  base = b.take(64)
  new = hasattr(m, "REPORT_SEMAPHORE_EXECUTE")

  def sent(at: int, payload: int, by_new: bool, words: int, **more: int) -> Channel:
    c, high, low = b.channel(), at >> 32, at & 0xFFFF_FFFF
    size = {4: 0, 1: 1, 2: 2}[words]
    if by_new:
      b.send(c, COMPUTE, m.SET_REPORT_SEMAPHORE_ADDRESS_UPPER(UPPER=high),
             m.SET_REPORT_SEMAPHORE_ADDRESS_LOWER(LOWER=low),
             m.SET_REPORT_SEMAPHORE_PAYLOAD_LOWER(PAYLOAD_LOWER=payload & 0xFFFF_FFFF),
             m.SET_REPORT_SEMAPHORE_PAYLOAD_UPPER(PAYLOAD_UPPER=payload >> 32),
             m.REPORT_SEMAPHORE_EXECUTE(STRUCTURE_SIZE=size, **more))
    else:
      b.send(c, COMPUTE, m.SET_REPORT_SEMAPHORE_A(OFFSET_UPPER=high), m.SET_REPORT_SEMAPHORE_B(OFFSET_LOWER=low),
             m.SET_REPORT_SEMAPHORE_C(PAYLOAD=payload & 0xFFFF_FFFF),
             m.SET_REPORT_SEMAPHORE_D(STRUCTURE_SIZE=size, **more))
    return c
  for by_new in (False, True)[:1 + new]:
    for words, wide in ((1, 0), (4, 0), *(((2, 1), (4, 1)) if by_new else ())):
      payload, bits = 0x8765_4321_FEDC_BA98, 64 if wide else 32
      more = {"PAYLOAD_SIZE64": wide} if by_new else {}
      b.space.write(base, b"\xee" * 64)
      c = sent(base + 16, payload, by_new, words, **more)
      assert b.space.load(base + 16, bits // 8) == payload % 2**bits and c.interrupts == 0
      assert b.space.load(base + 24, 8) == (b.space.load(base + 24, 8) if words == 4 else 0xEEEE_EEEE_EEEE_EEEE)
      assert words < 4 or b.space.load(base + 24, 8) < 1 << 60
      assert words == 4 or b.space.load(base + 16 + bits // 8, 4) == 0xEEEE_EEEE
      assert sent(base + 16, payload, by_new, words, AWAKEN_ENABLE=1, **more).interrupts == 1
      wrong = 8 if words == 4 else 4 if wide else 2
      code = status.ROBUST_CHANNEL_GR_EXCEPTION
      dead(b, sent(base + 16 + wrong, payload, by_new, words, **more), code, f"at {base + 16 + wrong:#x}")
      for n, name in enumerate(OPERATIONS):
        for signed in (0, 1):
          for old in (5, payload, 2**bits - 1):
            b.space.store(base + 16, 8, old)
            sent(base + 16, payload, by_new, words, REDUCTION_ENABLE=1, REDUCTION_OP=n, REDUCTION_FORMAT=signed, **more)
            wanted = reduced(name, old, payload, bits, bool(signed))
            assert b.space.load(base + 16, bits // 8) == wanted, (name, signed, old, bits)


def test_semaphores_of_older_methods_have_a_place() -> None:
  """At a multiple of 4 bytes, of 16 with a time; an acquire looks at 32 bits."""
  b = Bench()
  at = b.take(32)

  def sent(place: int, **fields: int) -> Channel:
    c = b.channel()
    b.send(c, 0, host.SEMAPHOREA(OFFSET_UPPER=place >> 32), host.SEMAPHOREB(OFFSET_LOWER=(place & 0xFFFF_FFFF) >> 2),
           host.SEMAPHOREC(PAYLOAD=5), host.SEMAPHORED(**fields))
    return c
  operations = host.SEMAPHORED_OPERATION
  b.space.write(at, b"\xee" * 32)
  assert sent(at + 4, OPERATION=operations.RELEASE, RELEASE_SIZE=1).state is State.READY
  assert b.space.read(at, 12) == b"\xee" * 4 + b"\5\0\0\0" + b"\xee" * 4
  sent(at, OPERATION=operations.RELEASE, RELEASE_SIZE=0)
  assert b.space.load(at, 8) == 5
  for wrong in (4, 8, 12): dead(b, sent(at + wrong, OPERATION=operations.RELEASE, RELEASE_SIZE=0), PBDMA, "16 bytes at")
  b.space.store(at, 8, 7 << 32 | 5)
  assert sent(at, OPERATION=operations.ACQUIRE).state is State.READY
  sent(at, OPERATION=operations.REDUCTION, REDUCTION=host.SEMAPHORED_REDUCTION.ADD, FORMAT=1)
  assert b.space.load(at, 8) == 7 << 32 | 10


def test_a_reduction_with_a_time_is_one_access() -> None:
  b = Bench()
  c = b.channel()
  b.space.map(FAR, 4096, b.gpu.vram, 1 << 19, Access.READ)
  add = host.SEM_EXECUTE(OPERATION=host.SEM_EXECUTE_OPERATION.REDUCTION, REDUCTION=host.SEM_EXECUTE_REDUCTION.IADD,
                         REDUCTION_FORMAT=1, RELEASE_TIMESTAMP=1)
  b.send(c, 0, *semaphore(FAR, 1), add)
  dead(b, c, MMU, f"write of 16 bytes at {FAR:#x}")


def test_a_dead_channel_runs_nothing_any_more() -> None:
  """What was begun before the fault is gone with it."""
  b = Compute()
  c, at = b.channel(), b.take(16)
  wait = "again: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra again;"
  b.pcas(c, launch_qmd(b, b.load(body(wait), "k"), bank=b.bank(at)))
  b.run()
  assert c.busy and c.standing() is not None
  b.send(c, 0, *release(FAR, 1, idle=False))
  assert c.state is State.DEAD and not c.busy and c.standing() is None


def test_a_reference_is_set_behind_the_engines_work() -> None:
  b = Compute()
  c, at = b.channel(), b.take(16)
  wait = "again: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra again;"
  b.pcas(c, launch_qmd(b, b.load(body(wait), "k"), bank=b.bank(at)))
  b.send(c, 0, host.SET_REFERENCE(COUNT=9))
  assert c.host.reference != 9 and c.state is State.BLOCKED
  b.space.store(at, 4, 1)
  b.run()
  assert c.host.reference == 9


# ---- versions, inline data, local memory

def test_ranges_of_versions_meet() -> None:
  """Of a class from the oldest that it supports to its own, against that of a program."""
  m = methods.declared(0xCBC0)
  for oldest, current, asked_oldest, asked in product((2, 3), (3, 4), (1, 3, 4, 5), (2, 3, 4, 5)):
    if asked < asked_oldest: continue
    b = Bench()
    c = b.channel()
    b.send(c, COMPUTE, m.SET_COMPUTE_CLASS_VERSION(CURRENT=current, OLDEST_SUPPORTED=oldest),
           m.CHECK_COMPUTE_CLASS_VERSION(CURRENT=asked, OLDEST_SUPPORTED=asked_oldest))
    meet = {*range(oldest, current + 1)} & {*range(asked_oldest, asked + 1)}
    assert (c.state is State.READY) == bool(meet), (oldest, current, asked_oldest, asked)


@pytest.mark.parametrize(("card", "version"), [(c, v) for c in ("sm_80", "sm_90", "sm_120")
                                               for v in CARDS[c].qmd_versions])
def test_a_qmd_that_is_sent_goes_to_its_address(card: str, version: tuple[int, int]) -> None:
  """Past 40 bits, too. The scheduler takes it as it was sent, whatever it held of that address before."""
  b = Compute(card)
  m = methods.declared(CARDS[card].compute_class)
  c, data, far = b.channel(), b.take(64), 0x1_2300_0000_0000 + (1 << 12)
  b.space.map(far, 4096, b.gpu.vram, 1 << 21, Access.ALL)
  for n in (1, 10):
    at = launch_qmd(b, b.load(ADD, "add"), bank=b.bank(data, n), block=(1, 1, 1), version=version)
    words = struct.unpack("<96I", b.space.read(at, 384))
    size = {"INLINE_SIZE": int(version >= (4, 0))} if card != "sm_80" else {}
    count = 96 if size.get("INLINE_SIZE") else 64
    b.submit(c, methods.send(COMPUTE, m.SET_INLINE_QMD_ADDRESS_A(QMD_ADDRESS_SHIFTED8_UPPER=far >> 40, **size),
                             m.SET_INLINE_QMD_ADDRESS_B(QMD_ADDRESS_SHIFTED8_LOWER=far >> 8 & 0xFFFF_FFFF)))
    first = m.LOAD_INLINE_QMD_DATA.OFFSET
    b.submit(c, methods.Send(methods.INCR, COMPUTE, first, words[:count]).encode())
    b.run()
    assert c.state is State.READY, c.describe()
  assert b.space.load(data, 4) == 11 and b.space.read(far, 4 * count) == struct.pack(f"<{count}I", *words[:count])
  assert not [f for f in b.machine.findings if "scheduler" in f]


@pytest.mark.parametrize(("top", "right"), [(1 << 24, True), ((1 << 24) - 1024 + 64, True),
                                            ((1 << 24) - 1024 + 60, False), (0, False)])
def test_a_stack_lies_in_local_memory(top: int, right: bool) -> None:
  """64 bytes of the kernel's below where constant bank 0 says that a thread's stack begins; the QMD gives 1,024, which
  end at 16 MiB."""
  b = Compute()
  m, arch = methods.declared(0xCBC0), b.gpu.card.arch.bank0
  c, data, local = b.channel(), b.take(64), b.take(1 << 16)
  b.send(c, COMPUTE, m.SET_SHADER_LOCAL_MEMORY_A(ADDRESS_UPPER=local >> 32),
         m.SET_SHADER_LOCAL_MEMORY_B(ADDRESS_LOWER=local & 0xFFFF_FFFF),
         m.SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A(SIZE_UPPER=0),
         m.SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_B(SIZE_LOWER=1 << 16))
  text = body(".local .align 4 .b8 own[64]; st.local.u32 [own], 1; ld.local.u32 %r1, [own]; st.global.u32 [%rd1], %r1;")
  at = b.take(arch.params + 16)
  b.space.store(at + arch.params, 8, data)
  b.space.store(at + arch.stack, 8, 0xEEEE_EEEE << 32 | top)
  image = cubin.write(text.encode(), 90, arch.params, [cubin.CubinEntry("k", (cubin.Parameter(0, 8),), local=64)])
  where = b.take(len(image), 4096)
  b.space.write(where, image)
  b.pcas(c, launch_qmd(b, where + cubin.Cubin(image).kernels["k"].text, bank=(at, arch.params + 16),
                       SHADER_LOCAL_MEMORY_LOW_SIZE=1024))
  b.run()
  assert (c.state is State.READY) == right, c.describe()
  if not right: dead(b, c, status.ROBUST_CHANNEL_GR_EXCEPTION, "a frame of 64 bytes")


@pytest.mark.parametrize(("size", "right"), [(16, True), (65536, True), (65536 + 16, False), (0, False)])
def test_constant_banks_have_a_size(size: int, right: bool) -> None:
  """Up to 64 KiB, in units of 16 bytes."""
  b = Compute()
  c, data = b.channel(), b.take(1 << 17)
  b.pcas(c, launch_qmd(b, b.load(ADD, "add"), bank=b.bank(data, 1), CONSTANT_BUFFER_VALID__2=1,
                       CONSTANT_BUFFER_ADDR__2=data, CONSTANT_BUFFER_SIZE__2=size))
  b.run()
  if right: assert c.state is State.READY, c.describe()
  else: dead(b, c, status.ROBUST_CHANNEL_GR_EXCEPTION, "SKEDCHECK23_CONSTANT_BUFFER_SIZE")


@pytest.mark.parametrize(("length", "right"), [(4, True), (5, False), (8, False)])
def test_inline_data_is_whole_before_the_next_launch(length: int, right: bool) -> None:
  """After one dword of so many bytes."""
  b = Bench()
  m, at = methods.declared(0xCBC0), b.take(64)
  c = b.channel()
  begin = m.LAUNCH_DMA(DST_MEMORY_LAYOUT=1, COMPLETION_TYPE=0)
  b.send(c, COMPUTE, m.OFFSET_OUT_UPPER(VALUE=at >> 32), m.OFFSET_OUT(VALUE=at & 0xFFFF_FFFF),
         m.LINE_LENGTH_IN(VALUE=length), m.LINE_COUNT(VALUE=1), begin, m.LOAD_INLINE_DATA(V=0x44332211), begin)
  if right: assert c.state is State.READY and b.space.load(at, 4) == 0x44332211
  else: dead(b, c, status.ROBUST_CHANNEL_GR_EXCEPTION, f"{length - 4} bytes of inline data are missing")


@pytest.mark.parametrize("sent", [(), ("IN",), ("OUT",)])
def test_lines_of_a_copy_have_pitches(sent: tuple[str, ...]) -> None:
  b = Bench()
  m = methods.declared(b.gpu.card.copy_class)
  c, at = b.channel("copy"), b.take(256)
  given = [m.OFFSET_IN_UPPER(UPPER=at >> 32), m.OFFSET_IN_LOWER(VALUE=at & 0xFFFF_FFFF),
           m.OFFSET_OUT_UPPER(UPPER=at >> 32), m.OFFSET_OUT_LOWER(VALUE=at + 128 & 0xFFFF_FFFF),
           m.LINE_LENGTH_IN(VALUE=4), m.LINE_COUNT(VALUE=2),
           *(getattr(m, f"PITCH_{side}")(VALUE=8) for side in sent)]
  b.send(c, COPY, *given, m.LAUNCH_DMA(DATA_TRANSFER_TYPE=2, FLUSH_ENABLE=1, SRC_MEMORY_LAYOUT=1, DST_MEMORY_LAYOUT=1,
                                       MULTI_LINE_ENABLE=1))
  missing = "OUT" if "IN" in sent else "IN"
  assert c.state is State.DEAD and f"PITCH_{missing} was never sent" in str(c.error)


# ---- which calls are for which file

def test_calls_of_rm_are_for_one_kind_of_file() -> None:
  """escape.c: of nvidiactl alone, of a card's file alone, or of either. A call for another file is EINVAL, and changes
  nothing."""
  ctl = {"CARD_INFO", "RM_FREE", "RM_DUP_OBJECT", "RM_CONTROL", "RM_MAP_MEMORY_DMA", "RM_UNMAP_MEMORY_DMA",
         "RM_MAP_MEMORY", "RM_UNMAP_MEMORY", "RM_IDLE_CHANNELS", "RM_ALLOC"}
  c = Client()
  before = sorted(c.machine.rm.clients[c.root].objects)
  for number, row in nv_rm.IOCTLS.items():
    if row.struct is None or Rm.calls.get(row.name) is None: continue
    name = row.name.removeprefix("NV_ESC_")
    for fd, kind in ((c.ctl, "ctl"), (c.gpu_fd, "gpu")):
      said = ""
      try: c.port.ioctl(fd, number, row.struct())
      except OSError: said = str([*c.machine.trace][-1])
      wrong = name in ctl and kind == "gpu" or name == "RM_ALLOC_MEMORY" and kind == "ctl"
      assert ("this call is for" in said) == wrong, (name, kind)
  assert sorted(c.machine.rm.clients[c.root].objects) == before


def test_lines_of_inline_data_leave_what_is_between_them() -> None:
  b = Bench()
  m, at, c = methods.declared(0xCBC0), b.take(64), b.channel()
  b.space.write(at, b"\xee" * 64)
  data = [m.LOAD_INLINE_DATA(V=0x01010101 * n) for n in range(1, 7)]
  b.send(c, COMPUTE, m.OFFSET_OUT_UPPER(VALUE=at >> 32), m.OFFSET_OUT(VALUE=at & 0xFFFF_FFFF),
         m.LINE_LENGTH_IN(VALUE=8), m.LINE_COUNT(VALUE=3), m.PITCH_OUT(VALUE=20),
         m.LAUNCH_DMA(DST_MEMORY_LAYOUT=1), *data)
  lines = [bytes([2 * n + 1] * 4 + [2 * n + 2] * 4) for n in range(3)]
  assert b.space.read(at, 64) == (b"\xee" * 12).join(lines) + b"\xee" * 16


@pytest.mark.parametrize("count", [1, 255])
def test_a_thread_has_registers(count: int) -> None:
  b = Compute()
  c, data = b.channel(), b.take(64)
  b.pcas(c, launch_qmd(b, b.load(ADD, "add"), bank=b.bank(data, 1), REGISTER_COUNT=count))
  b.run()
  assert c.state is State.READY, c.describe()


def test_methods_of_copies_without_an_effect_are_in_the_report() -> None:
  b = Bench()
  m, c = methods.declared(b.gpu.card.copy_class), b.channel("copy")
  names = ("PM_TRIGGER", "PM_TRIGGER_END", "SET_MONITORED_FENCE_TYPE", "SET_MONITORED_FENCE_SIGNAL_ADDR_BASE_UPPER",
           "SET_MONITORED_FENCE_SIGNAL_ADDR_BASE_LOWER")
  for name in names: b.send(c, COPY, getattr(m, name)())
  assert c.state is State.READY, c.describe()
  for name in names: assert any(f"copy method {name} x1: " in line for line in b.machine.report()), name


def test_what_is_not_modelled_is_recorded_by_its_name() -> None:
  b = Bench()
  c, m = b.channel("copy"), methods.declared(b.gpu.card.copy_class)
  b.submit(c, methods.send(COPY, m.LAUNCH_DMA(DATA_TRANSFER_TYPE=2, SRC_MEMORY_LAYOUT=0, DST_MEMORY_LAYOUT=1)))
  with pytest.raises(Unsupported, match="BLOCKLINEAR"): b.run()
  rows = [(e.source, e.kind, e.name) for e in b.machine.trace]
  assert rows[-2:] == [(c.name, "fault", f"Unsupported: {c.error}"), (c.name, "unsupported", str(c.error))]


# ---- time, and the record

def still(b: Bench) -> Bench:
  """A bench on whose clock nothing passes but what the machine says."""
  b.machine.clock = b.machine.trace.clock = Clock(step_ns=0)
  return b


def test_what_takes_time() -> None:
  """Each entry of a ring and each header, copies by their bytes, launches by the instructions of a wave and by how many
  turns all waves need: four at a time on each SM, four cycles an instruction."""
  b = Compute()
  still(b)
  machine, m, own = b.machine, methods.declared(b.gpu.card.copy_class), methods.declared(0xCBC0)
  c, at = b.channel(), b.take(1 << 17)

  def taken(words: list[int]) -> int:
    before = machine.clock.now_ns()
    b.submit(c, words)
    b.run()
    assert c.state is State.READY, c.describe()
    return machine.clock.now_ns() - before
  nop = methods.send(0, host.NON_STALL_INTERRUPT(HANDLE=1))
  for count in (1, 5): assert taken(nop * count) == machine.packet_ns * (1 + count)
  sent = methods.send(COPY, m.OFFSET_IN_UPPER(UPPER=at >> 32), m.OFFSET_IN_LOWER(VALUE=at & 0xFFFF_FFFF),
                      m.OFFSET_OUT_UPPER(UPPER=at >> 32), m.OFFSET_OUT_LOWER(VALUE=at + 65536 & 0xFFFF_FFFF),
                      m.LINE_LENGTH_IN(VALUE=25_000))
  how = {"DATA_TRANSFER_TYPE": 2, "FLUSH_ENABLE": 1, "SRC_MEMORY_LAYOUT": 1, "DST_MEMORY_LAYOUT": 1}
  alone = taken(sent)
  assert taken([*sent, *methods.send(COPY, m.LAUNCH_DMA(**how))]) == alone + machine.packet_ns + 1000
  two = m.LAUNCH_DMA(MULTI_LINE_ENABLE=1, **how)
  lines = methods.send(COPY, m.LINE_COUNT(VALUE=2), m.PITCH_IN(VALUE=0), m.PITCH_OUT(VALUE=0))
  assert taken([*lines, *methods.send(COPY, two)]) == taken(lines) + machine.packet_ns + 2000
  program, bank, sms = b.load(ADD, "add"), b.bank(at), b.gpu.card.sms
  for blocks, turns in ((1, 1), (4 * sms, 1), (4 * sms + 1, 2)):
    q = launch_qmd(b, program, bank=bank, grid=(blocks, 1, 1), block=(1, 1, 1))
    def words(schedule: int, q: int = q) -> list[int]:
      return methods.send(COMPUTE, own.SEND_PCAS_A(QMD_ADDRESS_SHIFTED8=q >> 8),
                          own.SEND_SIGNALING_PCAS_B(INVALIDATE=1, SCHEDULE=schedule))
    nothing, before = taken(words(0)), machine.executed
    found = taken(words(1)) - nothing
    each = (machine.executed - before) // blocks
    assert found == each * turns * 4 * 1000 // b.gpu.card.clock_mhz > 0, (blocks, found)


def test_the_record_of_a_submission() -> None:
  """Doorbells, entries, methods, dispatches, interrupts and the fault, in their order, with what they say; without
  tracing the fault alone."""
  for tracing in (True, False):
    b = Compute(machine=NvMachine("sm_90", vram=1 << 22, system_memory=1 << 22, tracing=tracing))
    still(b)
    c, at = b.channel(), b.take(16)
    b.pcas(c, launch_qmd(b, b.load(ADD, "add"), bank=b.bank(at), grid=(2, 1, 1), block=(3, 1, 1)))
    b.run()
    b.send(c, 0, host.NON_STALL_INTERRUPT(HANDLE=5), *release(FAR, 1))
    rows = [(e.kind, e.name, e.fields) for e in b.machine.trace if e.source == c.name]
    kinds = [kind for kind, *_ in rows]
    text = str(c.error)
    assert rows[-1] == ("fault", f"PageFault: {text}", {"address": FAR, "access": "write"})
    place = "Xid (PCI:0000:01:00): 31, Ch 00000000"
    assert [*b.machine.kernel_log] == [f"4,0,{b.machine.clock.now_ns() // 1000},-;NVRM: {place}, {text}; method "
                                       f"{c.method_text()}\n"]
    assert b.machine.findings[-1:] == [f"{c.name}: ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT (31): {text}; method "
                                  f"{c.method_text()}"] and b.machine.failures == 1
    if not tracing:
      assert len(rows) == 1
      continue
    assert [name for kind, name, _ in rows if kind == "doorbell"] == ["0x1", "0x2"]
    entries = [(name, fields) for kind, name, fields in rows if kind == "entry"]
    assert [fields for _, fields in entries] == [{"index": 0}, {"index": 1}]
    assert [name for name, _ in entries] == [str(gpfifo.decode(b.space.load(c.ring + 8 * n, 8))) for n in (0, 1)]
    assert ("dispatch", "add", {"grid": (2, 1, 1), "block": (3, 1, 1)}) in rows
    assert [name for kind, name, _ in rows if kind.startswith("interrupt")] == ["0x1"]
    assert "interrupt NON_STALL_INTERRUPT" in kinds
    assert [name for kind, name, _ in rows if kind == "method"][-2:] == [
      "AMPERE_CHANNEL_GPFIFO_A.SEM_PAYLOAD_HI(PAYLOAD=0)", c.method_text()]
    assert kinds[:3] == ["doorbell", "entry", "method"] and c.fault_pc is None
