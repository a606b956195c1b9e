"""The compute engine: launches from a QMD on every generation, chains, inline data, faults with line and address."""
from __future__ import annotations

import struct
import threading

import pytest

from tests.mock.nv.bench import BASE, COMPUTE, FAR, Bench, cubin, launch_qmd, release
from tests.mock.nv.test_host import MMU, dead
from tinyhw.autogen import nv_rm_status as status
from tinyhw.core.errors import Deadlock, PageFault, Unsupported, WatchdogExpired
from tinyhw.core.layout import Method
from tinyhw.core.timeout import Terms
from tinyhw.mock.nv.card import CARDS
from tinyhw.mock.nv.chip.channel import Channel, State
from tinyhw.mock.nv.machine import NvMachine
from tinyhw.wire import methods, qmd

GR, GR_CLASS = status.ROBUST_CHANNEL_GR_EXCEPTION, status.ROBUST_CHANNEL_GR_CLASS_ERROR
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
ADD = HEAD + """.visible .entry add(.param .u64 p, .param .u32 n) {
  .reg .b32 %r<6>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mad.lo.u32 %r2, %r3, 32, %r2;
  mul.wide.u32 %rd2, %r2, 4; add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r4, [%rd3];
  add.u32 %r4, %r4, %r1;
  st.global.u32 [%rd3], %r4;
  ret;
}
"""
WAIT = HEAD + """.visible .entry wait(.param .u64 p, .param .u32 n) {
  .reg .b32 %r<3>; .reg .b64 %rd<2>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [p];
again:
  ld.volatile.global.u32 %r1, [%rd1];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra again;
  st.global.u32 [%rd1+4], %r1;
  ret;
}
"""


def body(code: str, registers: str = ".reg .b32 %r<6>; .reg .b64 %rd<4>; .reg .pred %p<2>;") -> str:
  head = ".visible .entry k(.param .u64 p, .param .u32 n) {\n"
  return HEAD + f"{head}  {registers}\n  ld.param.u64 %rd1, [p];\n{code}}}\n"


class Compute(Bench):
  """A bench with a program and a bank of parameters."""

  def load(self, ptx: str, kernel: str, offset: int = 0x210) -> int:
    """Upload an ELF in an allocation of its own; the address of the kernel's text."""
    image = cubin(ptx, kernel, offset=offset, size=12)
    at = self.take(-(-len(image) // 4096) * 4096, 4096)
    self.space.write(at, image)
    return at + 128

  def bank(self, pointer: int, number: int = 0, offset: int = 0x210) -> tuple[int, int]:
    at = self.take(offset + 16)
    self.space.write(at + offset, struct.pack("<QI", pointer, number))
    return at, offset + 16

  def pcas(self, channel: Channel, address: int) -> None:
    """Schedule a QMD, as drivers do."""
    m = methods.declared(self.gpu.card.compute_class)
    sent: list[Method] = [m.SEND_PCAS_A(QMD_ADDRESS_SHIFTED8=address >> 8)]
    if hasattr(m, "SEND_SIGNALING_PCAS2_B"):
      sent.append(m.SEND_SIGNALING_PCAS2_B(PCAS_ACTION=m.SEND_SIGNALING_PCAS2_B_PCAS_ACTION.INVALIDATE_COPY_SCHEDULE))
    else: sent.append(m.SEND_SIGNALING_PCAS_B(INVALIDATE=1, SCHEDULE=1))
    self.submit(channel, methods.send(COMPUTE, *sent))


@pytest.mark.parametrize(("card", "version"), [(c, v) for c in CARDS for v in CARDS[c].qmd_versions])
def test_a_kernel_runs(card: str, version: tuple[int, int]) -> None:
  b = Compute(card)
  c, data, at = b.channel(), b.take(1024), b.take(64)
  for i in range(96): b.space.store(data + 4 * i, 4, i)
  q = launch_qmd(b, b.load(ADD, "add"), version=version, grid=(3, 1, 1), bank=b.bank(data, 7),
                 RELEASE_ENABLE__0=1, RELEASE_SEMAPHORE_ADDR__0=at, RELEASE_SEMAPHORE_PAYLOAD__0=5)
  b.pcas(c, q)
  b.submit(c, methods.send(0, *release(at + 32, 1)))
  b.run()
  assert c.state is State.READY, c.describe()
  assert [b.space.load(data + 4 * i, 4) for i in range(96)] == [i + 7 for i in range(96)]
  assert b.space.load(at, 8) == 5 and b.space.load(at + 8, 8) and b.space.load(at + 32, 4) == 1
  assert b.machine.executed


def test_chains_and_reductions() -> None:
  b = Compute()
  c, data, at = b.channel(), b.take(1024), b.take(64)
  program = b.load(ADD, "add")
  second = launch_qmd(b, program, bank=b.bank(data, 100), RELEASE_ENABLE__0=1, RELEASE_SEMAPHORE_ADDR__0=at,
                      RELEASE_SEMAPHORE_PAYLOAD__0=3, RELEASE_STRUCTURE_SIZE__0=1, RELEASE_REDUCTION_ENABLE__0=1)
  first = launch_qmd(b, program, bank=b.bank(data, 1), DEPENDENT_QMD_ENABLE__0=1, DEPENDENT_QMD_ACTION__0=1,
                     DEPENDENT_QMD_POINTER__0=second >> 8, RELEASE_ENABLE__1=1, RELEASE_SEMAPHORE_ADDR__1=at,
                     RELEASE_SEMAPHORE_PAYLOAD__1=10, RELEASE_STRUCTURE_SIZE__1=1)
  b.pcas(c, first)
  b.run()
  assert b.space.load(data, 4) == 101 and b.space.load(at, 4) == 13


@pytest.mark.parametrize("fresh", [False, True])
def test_a_qmd_that_the_scheduler_may_hold(fresh: bool) -> None:
  """Scheduled again after it has changed: what it was before is invalidated, or the report says so."""
  b = Compute()
  m = methods.declared(0xCBC0)
  c, data, program = b.channel(), b.take(1024), b.load(ADD, "add")
  first, second = (launch_qmd(b, program, bank=b.bank(data, n)) for n in (1, 10))
  for _ in range(2):
    b.send(c, COMPUTE, m.SEND_PCAS_A(QMD_ADDRESS_SHIFTED8=first >> 8), m.SEND_SIGNALING_PCAS_B(SCHEDULE=1))
  assert not b.machine.findings or "scheduler" not in b.machine.findings[-1]
  b.space.write(first, b.space.read(second, 384))
  if fresh:
    b.send(c, COMPUTE, m.SEND_SIGNALING_PCAS2_B(PCAS_ACTION=m.SEND_SIGNALING_PCAS2_B_PCAS_ACTION.INVALIDATE))
  b.send(c, COMPUTE, m.SEND_SIGNALING_PCAS2_B(PCAS_ACTION=m.SEND_SIGNALING_PCAS2_B_PCAS_ACTION.SCHEDULE))
  assert b.space.load(data, 4) == 12
  assert any("scheduler may hold the QMD" in line for line in b.machine.findings) != fresh


def test_many_launches_of_one_plan() -> None:
  """Other banks, payloads and chains are the launch's own."""
  b = Compute()
  c, data, at, program = b.channel(), b.take(1024), b.take(64), b.load(ADD, "add")
  for i in range(1, 9):
    q = launch_qmd(b, program, bank=b.bank(data, i), RELEASE_ENABLE__0=1, RELEASE_SEMAPHORE_ADDR__0=at + 16 * (i % 4),
                   RELEASE_SEMAPHORE_PAYLOAD__0=i)
    b.pcas(c, q)
    b.run()
    assert b.space.load(data, 4) == i * (i + 1) // 2 and b.space.load(at + 16 * (i % 4), 4) == i
  assert len(c.engines[COMPUTE]._plans) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("what", ["code", "bank", "misaligned bank", "windows", "local", "size"])
def test_a_plan_skips_no_check(what: str) -> None:
  """After launches that were fine: what changes in memory, in the engine's state or in the QMD is noticed."""
  b = Compute("sm_86" if what == "misaligned bank" else "sm_90")  # version 4.0 has no room for its low bits
  m = methods.declared(b.gpu.card.compute_class)
  c, data, program = b.channel(), b.take(1024), b.load(ADD, "add")
  high, low = BASE >> 32, BASE & 0xFFFFFFFF
  def local(size: int) -> list[Method]:
    return [m.SET_SHADER_LOCAL_MEMORY_A(ADDRESS_UPPER=high), m.SET_SHADER_LOCAL_MEMORY_B(ADDRESS_LOWER=low),
            m.SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A(SIZE_UPPER=0),
            m.SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_B(SIZE_LOWER=size)]
  def windows(second: int) -> list[Method]:
    return [m.SET_SHADER_SHARED_MEMORY_WINDOW_A(BASE_ADDRESS_UPPER=1),
            m.SET_SHADER_SHARED_MEMORY_WINDOW_B(BASE_ADDRESS=0),
            m.SET_SHADER_LOCAL_MEMORY_WINDOW_A(BASE_ADDRESS_UPPER=second),
            m.SET_SHADER_LOCAL_MEMORY_WINDOW_B(BASE_ADDRESS=0)]
  b.send(c, COMPUTE, *local(1 << 16), *windows(3))
  def launch(bank: tuple[int, int], shared: int = 1024) -> None:
    b.pcas(c, launch_qmd(b, program, bank=bank, shared=shared, SHADER_LOCAL_MEMORY_HIGH_SIZE=32))
    b.run()
  for _ in range(3): launch(b.bank(data, 1))
  assert c.state is State.READY, c.describe()
  bank, shared = b.bank(data, 1), 1024
  if what == "code":
    b.space.write(program - 128 + 40, bytes(8))  # e_shoff
    with pytest.raises(Unsupported): launch(bank)
    return
  if what == "bank": bank = FAR, bank[1]
  elif what == "misaligned bank": bank = bank[0] + 256 + 16, bank[1]
  elif what == "windows": b.send(c, COMPUTE, *windows(1))
  elif what == "local": b.send(c, COMPUTE, *local(512))
  else: shared = 896
  launch(bank, shared)
  words = {"bank": "page fault", "misaligned bank": "multiple of 64", "windows": "SKEDCHECK17", "local": "SKEDCHECK05",
           "size": "OOR_SHARED"}
  assert words[what] in str(c.error), c.describe()


def test_inline_qmd() -> None:
  for card in ("sm_86", "sm_90"):
    b = Compute(card)
    m = methods.declared(b.gpu.card.compute_class)
    c, data = b.channel(), b.take(128)
    at = launch_qmd(b, b.load(ADD, "add"), bank=b.bank(data, 3))
    words = list(memoryview(b.space.read(at, 256)).cast("I"))
    b.space.write(at, bytes(256))
    b.submit(c, methods.send(COMPUTE, m.SET_INLINE_QMD_ADDRESS_A(QMD_ADDRESS_SHIFTED8_UPPER=at >> 40),
                             m.SET_INLINE_QMD_ADDRESS_B(QMD_ADDRESS_SHIFTED8_LOWER=at >> 8 & 0xFFFF_FFFF))
             + methods.array(COMPUTE, m.LOAD_INLINE_QMD_DATA, words))
    b.run()
    assert b.space.load(data, 4) == 3 and list(memoryview(b.space.read(at, 256)).cast("I")) == words


def test_inline_data() -> None:
  b = Compute()
  m = methods.declared(0xCBC0)
  c, at, sem = b.channel(), b.take(256), b.take(16)
  place = [m.OFFSET_OUT_UPPER(VALUE=at >> 32), m.OFFSET_OUT(VALUE=at & 0xFFFF_FFFF)]
  start = m.LAUNCH_DMA(DST_MEMORY_LAYOUT=m.LAUNCH_DMA_DST_MEMORY_LAYOUT.PITCH)
  b.submit(c, methods.send(COMPUTE, *place, m.LINE_LENGTH_IN(VALUE=6), m.LINE_COUNT(VALUE=1), start)
           + methods.repeated(COMPUTE, m.LOAD_INLINE_DATA, [0x44332211, 0x88776655]))
  b.run()
  assert b.space.read(at, 8) == b"\x11\x22\x33\x44\x55\x66\0\0"
  done = m.LAUNCH_DMA(DST_MEMORY_LAYOUT=1, COMPLETION_TYPE=m.LAUNCH_DMA_COMPLETION_TYPE.RELEASE_SEMAPHORE,
                      SEMAPHORE_STRUCT_SIZE=m.LAUNCH_DMA_SEMAPHORE_STRUCT_SIZE.ONE_WORD)
  b.submit(c, methods.send(COMPUTE, m.LINE_LENGTH_IN(VALUE=4), m.LINE_COUNT(VALUE=2), m.PITCH_OUT(VALUE=16),
                           m.SET_I2M_SEMAPHORE_A(OFFSET_UPPER=sem >> 32),
                           m.SET_I2M_SEMAPHORE_B(OFFSET_LOWER=sem & 0xFFFF_FFFF),
                           m.SET_I2M_SEMAPHORE_C(PAYLOAD=4), done)
           + methods.repeated(COMPUTE, m.LOAD_INLINE_DATA, [1, 2]))
  b.run()
  assert (b.space.load(at, 4), b.space.load(at + 16, 4), b.space.load(sem, 4)) == (1, 2, 4)
  b.submit(c, methods.repeated(COMPUTE, m.LOAD_INLINE_DATA, [1]))
  b.run()
  dead(b, c, GR, "LOAD_INLINE_DATA without LAUNCH_DMA")


CLUSTER = HEAD.replace("80", "90") + """.visible .entry k(.param .u64 p, .param .u32 n) {
  .reg .b32 %r<6>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p]; mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;
  mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %cluster_nctarank; mad.lo.u32 %r2, %r3, 16, %r2;
  st.global.u32 [%rd3], %r2;
  ret;
}
"""
CLUSTERED = [(c, v) for c in CARDS for v in CARDS[c].qmd_versions
             if qmd.has(qmd.declared(CARDS[c].compute_class, v), "GPC_CGA_WIDTH")]


@pytest.mark.parametrize(("card", "version"), CLUSTERED)
def test_clusters(card: str, version: tuple[int, int]) -> None:
  b = Compute(card)
  c, data = b.channel(), b.take(128)
  q = launch_qmd(b, b.load(CLUSTER, "k"), version=version, grid=(2, 1, 1), block=(1, 1, 1), bank=b.bank(data),
                 QMD_TYPE=3, GPC_CGA_WIDTH=3, GPC_CGA_HEIGHT=1, GPC_CGA_DEPTH=1)
  b.pcas(c, q)
  b.run()
  assert c.state is State.READY, c.describe()
  assert [b.space.load(data + 4 * i, 4) for i in range(6)] == [48, 49, 50] * 2


@pytest.mark.parametrize(("more", "text"), [
  ({"QMD_TYPE": 3, "GPC_CGA_WIDTH": 2}, "1 to 16"),
  ({"QMD_TYPE": 3, "GPC_CGA_WIDTH": 18, "GPC_CGA_HEIGHT": 1, "GPC_CGA_DEPTH": 1}, "1 to 16"),
  ({"GPC_CGA_WIDTH": 2}, "GPC_CGA_WIDTH and so on"), ({"GPU_CGA_WIDTH": 2}, "GPU_CGA_WIDTH and so on"),
  ({"QMD_TYPE": 4}, "QMD_TYPE = 4"), ({"QMD_TYPE": 5}, "QMD_TYPE = 5"), ({"QMD_TYPE": 1}, "GRID_NULL"),
  ({"QMD_TYPE": 0}, "QMD_TYPE of a queue")])
def test_clusters_that_cannot_be(more: dict[str, int], text: str) -> None:
  b = Compute()
  c = b.channel()
  b.pcas(c, launch_qmd(b, b.load(CLUSTER, "k"), version=(4, 0), bank=b.bank(b.take(128)),
                       **{"grid": (6, 1, 1), "block": (1, 1, 1), **more}))  # type: ignore[arg-type]
  try: b.run()
  except Unsupported as refused: assert text in str(refused)
  else: assert text in str(c.error)
  assert c.state is State.DEAD


def test_a_queue_is_no_grid() -> None:
  """Older QMDs say so with a bit, later ones with their type."""
  b = Compute("sm_80")
  c = b.channel()
  b.pcas(c, launch_qmd(b, b.load(ADD, "add"), bank=b.bank(b.take(128)), IS_QUEUE=1))
  with pytest.raises(Unsupported, match="of a queue"): b.run()


def test_report_semaphores() -> None:
  b = Compute()
  m = methods.declared(0xCBC0)
  c, at = b.channel(), b.take(32)
  b.send(c, COMPUTE, m.SET_REPORT_SEMAPHORE_A(OFFSET_UPPER=at >> 32),
         m.SET_REPORT_SEMAPHORE_B(OFFSET_LOWER=at & 0xFFFF_FFFF), m.SET_REPORT_SEMAPHORE_C(PAYLOAD=6),
         m.SET_REPORT_SEMAPHORE_D(STRUCTURE_SIZE=0))
  assert b.space.load(at, 8) == 6 and b.space.load(at + 8, 8)
  b.send(c, COMPUTE, m.SET_REPORT_SEMAPHORE_D(STRUCTURE_SIZE=1, REDUCTION_ENABLE=1, REDUCTION_OP=0))
  assert b.space.load(at, 4) == 12
  b.send(c, COMPUTE, m.SET_REPORT_SEMAPHORE_ADDRESS_UPPER(UPPER=at >> 32),
         m.SET_REPORT_SEMAPHORE_ADDRESS_LOWER(LOWER=at & 0xFFFF_FFFF),
         m.SET_REPORT_SEMAPHORE_PAYLOAD_LOWER(PAYLOAD_LOWER=1), m.SET_REPORT_SEMAPHORE_PAYLOAD_UPPER(PAYLOAD_UPPER=2),
         m.REPORT_SEMAPHORE_EXECUTE(STRUCTURE_SIZE=2, PAYLOAD_SIZE64=1))
  assert b.space.load(at, 8) == 2 << 32 | 1


@pytest.mark.parametrize(("more", "text"), [
  ({"block": (0, 1, 1)}, "SKEDCHECK16_CTA_THREAD_DIMENSION_ZERO"),
  ({"block": (1024, 2, 1)}, "SKEDCHECK11_TOTAL_THREADS"),
  ({"REGISTER_COUNT": 0}, "SKEDCHECK06_REGISTER_COUNT"),
  ({"REGISTER_COUNT": 255, "block": (1024, 1, 1)}, "SKEDCHECK19_CTA_REGISTER_CONSUMPTION"),
  ({"shared": 229 << 10}, "SKEDCHECK14_SHARED_MEMORY_SIZE"),
  ({"SHADER_LOCAL_MEMORY_LOW_SIZE": 8}, "SKEDCHECK02_LOCAL_MEMORY_LOW_SIZE"),
  ({"SHADER_LOCAL_MEMORY_LOW_SIZE": 16}, "SKEDCHECK05_LOCAL_MEMORY_TOTAL_SIZE"),
  ({"CONSTANT_BUFFER_SIZE__0": 0}, "SKEDCHECK23_CONSTANT_BUFFER_SIZE"),
  ({"CONSTANT_BUFFER_SIZE__0": 0x210}, "OOR_CONSTANT: add reads 540 bytes"),
  ({"CONSTANT_BUFFER_VALID__0": 0}, "constant bank 0 is not valid"),
])
def test_what_the_scheduler_checks(more: dict[str, int], text: str) -> None:
  b = Compute()
  c, data = b.channel(), b.take(128)
  b.pcas(c, launch_qmd(b, b.load(ADD, "add"), bank=b.bank(data), **more))  # type: ignore[arg-type]
  b.run()
  dead(b, c, GR, text)


@pytest.mark.parametrize("field", ["CWD_REFERENCE_COUNT_INCR_ENABLE", "SELF_COPY_ON_COMPLETION", "GRID_WIDTH_RESUME",
                                   "REQUIRE_SCHEDULING_PCAS", "WAIT_ON_LATCH_ID"])
def test_a_field_that_would_do_something(field: str) -> None:
  """What the mock does not know is refused by name; what has no effect is in the report."""
  b = Compute()
  c, data, program = b.channel(), b.take(128), b.load(ADD, "add")
  b.pcas(c, launch_qmd(b, program, version=(4, 0), bank=b.bank(data, 3), OCCUPANCY_MAX_WARP=5,
                       DEPENDENT_QMD_ACTION__1=4, RELEASE_STRUCTURE_SIZE__2=1, CONSTANT_BUFFER_SIZE__3=64))
  b.run()
  assert b.space.load(data, 4) == 3 and (
    "QMD field OCCUPANCY_MAX_WARP x1: blocks are placed as they come" in b.machine.report())
  b.pcas(c, launch_qmd(b, program, version=(4, 0), bank=b.bank(data, 3), **{field: 1}))  # type: ignore[arg-type]
  with pytest.raises(Unsupported, match=field): b.run()


def test_a_version_that_the_chip_executes_nothing_of_is_told() -> None:
  """Hopper's class declares two (seen on an H200: a QMD of 3.0 does nothing, and nothing is said)."""
  b = Compute()
  c = b.channel()
  b.pcas(c, launch_qmd(b, b.load(ADD, "add"), version=(3, 0), bank=b.bank(b.take(128))))
  b.run()
  dead(b, c, GR, "version 3.0, and the chip executes nothing of it")


def test_bad_qmds_and_programs() -> None:
  def run(q: int, b: Compute, c: Channel) -> None:
    b.pcas(c, q)
    b.run()
  b = Compute()
  c = b.channel()
  run(b.take(256), b, c)
  dead(b, c, GR, "state no version of compute class 0xcbc0")
  c = b.channel()
  good = launch_qmd(b, b.load(ADD, "add"), bank=b.bank(b.take(128)))
  fields = qmd.declared(b.gpu.card.compute_class, b.gpu.card.qmd_versions[0]).FIELDS
  stray = next(i for i in range(2048) if not any(f.lo <= i < f.lo + f.width for f in fields))
  b.space.store(good + stray // 32 * 4, 4, 1 << stray % 32)
  run(good, b, c)
  dead(b, c, GR, "undeclared bits")
  for address, code, text in ((FAR, MMU, "read of 256 bytes"),):
    c = b.channel()
    run(address, b, c)
    dead(b, c, code, text)
  c = b.channel()
  run(launch_qmd(b, FAR, bank=b.bank(b.take(128))), b, c)
  dead(b, c, MMU, "execute")
  c = b.channel()
  run(launch_qmd(b, b.load(ADD, "add") + 64, bank=b.bank(b.take(128))), b, c)
  dead(b, c, GR, "is amid add")
  for image, text in ((cubin(ADD, "add", text=False), "add: a cubin without PTX"),
                      (cubin(ADD, "add").replace(b".nv.info.", b".nv.inf0."), r"no .nv.info.add says"),
                      (cubin(ADD, "other"), "no kernel 'other'"), (cubin("nonsense", "add"), "add: ")):
    b = Compute()
    c, at = b.channel(), b.take(4096, 4096)
    b.space.write(at, image)
    b.pcas(c, launch_qmd(b, at + 128))
    with pytest.raises(Unsupported, match=text): b.run()
    assert c.state is State.DEAD


def test_methods_are_checked() -> None:
  m = methods.declared(0xCBC0)
  missing = next(at for at in range(0x100, 0x4000, 4) if at not in methods.by_address(m))
  for words, code, text in (
      (methods.Send(methods.IMMD, COMPUTE, missing, (0,)).encode(), GR_CLASS, "has no method"),
      (methods.Send(methods.INCR, COMPUTE, m.OFFSET_OUT_UPPER.OFFSET, (1 << 25,)).encode(), GR, "undeclared bits"),
      (methods.Send(methods.IMMD, COMPUTE, m.SEND_SIGNALING_PCAS2_B.OFFSET, (4,)).encode(), GR,
       "SEND_SIGNALING_PCAS2_B.PCAS_ACTION = 0x4"),
      (methods.Send(methods.IMMD, COMPUTE, m.SEND_SIGNALING_PCAS_B.OFFSET, (2,)).encode(), GR, "SEND_PCAS_A was never"),
      (methods.Send(methods.IMMD, 2, 0x200, (2,)).encode(), GR_CLASS, "subchannel 2")):
    b = Compute()
    c = b.channel()
    b.submit(c, words)
    b.run()
    dead(b, c, code, text)
  b = Compute()
  c = b.channel()
  with pytest.raises(Unsupported, match="CALL_MME_MACRO"):
    b.send(c, COMPUTE, m.CALL_MME_MACRO(V=0))
  b.send(b.channel(), COMPUTE, m.INVALIDATE_SKED_CACHES(V=0))
  assert any("INVALIDATE_SKED_CACHES x1: no caches" in line for line in b.machine.report())


@pytest.mark.parametrize(("code", "kind", "rc", "line", "text"), [
  (f"  mov.u64 %rd2, {FAR};\n  ld.global.u32 %r1, [%rd2];\n  st.global.u32 [%rd1], %r1;\n  ret;\n", PageFault, MMU, 8,
   f"read of 4 bytes at {FAR:#x}"),
  ("  st.global.u32 [%rd1+2], %r1;\n  ret;\n", None, GR, 7, "misaligned"),
  ("  trap;\n", None, GR, 7, "trap"),
  ("here:\n  bra here;\n", WatchdogExpired, status.ROBUST_CHANNEL_RESETCHANNEL_VERIF_ERROR, 8,
   "an endless loop"),
  ("  mov.u32 %r1, %tid.x;\n  setp.eq.u32 %p1, %r1, 0;\n  @%p1 bra one;\n  bar.sync 0, 64;\none:\n  ret;\n", None,
   None, None, ""),
])
def test_faults_in_kernels(code: str, kind: type | None, rc: int | None, line: int | None, text: str) -> None:
  b = Compute()
  other, c, data = b.channel(), b.channel(), b.take(128)
  b.pcas(c, launch_qmd(b, b.load(body(code), "k"), bank=b.bank(data)))
  b.run()
  b.machine.run(lambda: False, None)
  assert c.state is State.DEAD, c.describe()
  error = c.error
  if rc is not None: dead(b, c, rc, text)
  if kind is not None: assert isinstance(error, kind)
  if line is not None:
    assert getattr(error, "line", None) == line, error
    image = c.images.at(b.machine.gpus[0] and launch_program(b))
    start = body(code).split("\n")[line - 1]
    offset = c.fault_pc - image.ptx_address  # type: ignore[operator]
    assert body(code)[:offset].count("\n") == line - 1 and start
  b.send(other, 0, *release(data, 9))
  assert b.space.load(data, 4) == 9


def launch_program(b: Compute) -> int:
  """The only program of a bench."""
  raw = b.space.read(BASE, 1 << 20)
  return BASE + raw.index(b"\x7fELF") + 128


def test_kernels_wait_for_the_host_and_for_other_channels() -> None:
  for seed in range(3):
    b = Compute(seed=seed)
    c, other, data = b.channel(), b.channel(), b.take(128)
    b.pcas(c, launch_qmd(b, b.load(WAIT, "wait"), bank=b.bank(data)))
    b.run()
    assert c.standing() is not None and "a launch waits for" in c.describe() and b.machine.report()
    b.send(other, 0, *release(data, 8))
    assert b.space.load(data + 4, 4) == 8 and c.state is State.READY
  b = Compute()
  c, data = b.channel(), b.take(128)
  b.pcas(c, launch_qmd(b, b.load(WAIT, "wait"), bank=b.bank(data)))
  b.machine.run(lambda: False, None)
  assert isinstance(c.error, Deadlock) and c.state is State.DEAD and c.error.line == 8 and c.error.kernel == "wait"


def test_launches_without_a_wait_between_may_overlap() -> None:
  """The second kernel frees the first one, so both must be able to run at once; with WFI between they hang."""
  b = Compute()
  c, data = b.channel(), b.take(128)
  b.pcas(c, launch_qmd(b, b.load(WAIT, "wait"), bank=b.bank(data)))
  b.pcas(c, launch_qmd(b, b.load(ADD, "add"), block=(1, 1, 1), bank=b.bank(data, 5)))
  b.run()
  assert b.space.load(data + 4, 4) == 5
  b = Compute()
  m = methods.declared(0xCBC0)
  c, data = b.channel(), b.take(128)
  b.pcas(c, launch_qmd(b, b.load(WAIT, "wait"), bank=b.bank(data)))
  b.submit(c, methods.send(COMPUTE, m.WAIT_FOR_IDLE(V=0)))
  b.pcas(c, launch_qmd(b, b.load(ADD, "add"), block=(1, 1, 1), bank=b.bank(data, 5)))
  b.machine.run(lambda: False, None)
  assert isinstance(c.error, Deadlock)


def test_what_the_seed_decides_is_repeatable() -> None:
  def run(seed: int) -> list[str]:
    b = Compute(seed=seed)
    one, two, data = b.channel(), b.channel(), b.take(256)
    for c in (one, two):
      for n in range(3):
        b.pcas(c, launch_qmd(b, b.load(ADD, "add"), bank=b.bank(data, n)))
    b.run()
    return [f"{e.source} {e.kind} {e.name}" for e in b.machine.trace]
  assert run(1) == run(1) != run(2)


def test_a_changed_program_is_read_again() -> None:
  b = Compute()
  c, data = b.channel(), b.take(128)
  at = b.load(ADD, "add")
  q = launch_qmd(b, at, bank=b.bank(data, 2))
  b.pcas(c, q)
  b.run()
  b.space.write(at - 128, cubin(ADD.replace("add.u32 %r4, %r4, %r1", "sub.u32 %r4, %r4, %r1"), "add", size=12))
  b.pcas(c, q)
  b.run()
  assert b.space.load(data, 4) == 0
  table = b.space.load(at - 128 + 40, 8)  # e_shoff: the headers of sections are a part of the program
  b.space.write(at - 128 + table, bytes(64 * 4))
  b.pcas(c, q)
  with pytest.raises(Unsupported, match="program"): b.run()


QUIET = {"CWD_MEMBAR_TYPE": 1, "INVALIDATE_SHADER_DATA_CACHE": 1}


@pytest.mark.parametrize(("more", "between", "told"), [
  (QUIET | {"INVALIDATE_SHADER_CONSTANT_CACHE": 1}, None, ""),
  (QUIET | {"CONSTANT_BUFFER_INVALIDATE__0": 1}, None, ""),
  (QUIET, {"CONSTANT": 1}, ""),
  (QUIET, {"INSTRUCTION": 1}, "constant bank 0 of add may hold what was at its place before"),
  (QUIET | {"CWD_MEMBAR_TYPE": 0}, {"CONSTANT": 1}, "add ends with CWD_MEMBAR_TYPE L1_NONE"),
  ({"CWD_MEMBAR_TYPE": 1}, {"CONSTANT": 1}, "add is launched without INVALIDATE_SHADER_DATA_CACHE"),
  ({"CWD_MEMBAR_TYPE": 1}, {"CONSTANT": 1, "DATA": 1}, ""),
])
def test_what_caches_may_hold(more: dict[str, int], between: dict[str, int] | None, told: str) -> None:
  """Two launches, between which the host changes constant bank 0."""
  m, b = methods.declared(0xcbc0), Compute()
  c, data = b.channel(), b.take(1024)
  bank = b.bank(data, 7)
  for number in (7, 9):
    b.pcas(c, launch_qmd(b, b.load(ADD, "add"), bank=bank, **more))
    b.run()
    b.space.store(bank[0] + 0x218, 4, number + 2)
    if between is not None: b.send(c, COMPUTE, m.INVALIDATE_SHADER_CACHES(**between))
  found = [f for f in b.machine.findings if " add " in f]
  assert len(found) == bool(told) and all(told in f for f in found)


def test_versions_of_another_chip_are_refused() -> None:
  b = Compute("sm_89")
  c = b.channel()
  machine = NvMachine("sm_89")
  assert machine.cards[0].qmd_versions == ((2, 4), (3, 0))
  with pytest.raises(Unsupported): qmd.declared(0xC9C0, (2, 3))
  b.pcas(c, launch_qmd(b, b.load(ADD, "add"), version=(3, 0), bank=b.bank(b.take(128))))
  b.run()
  assert c.state is State.READY


def test_modes_that_would_change_a_launch() -> None:
  b = Compute()
  m = methods.declared(0xCBC0)
  c, data = b.channel(), b.take(128)
  q = launch_qmd(b, b.load(ADD, "add"), bank=b.bank(data, 3))
  b.submit(c, methods.send(COMPUTE, m.SET_RENDER_ENABLE_C(MODE=m.SET_RENDER_ENABLE_C_MODE.TRUE),
                           m.SET_RENDER_ENABLE_OVERRIDE(MODE=0)))
  b.pcas(c, q)
  b.run()
  assert b.space.load(data, 4) == 3
  b.submit(c, methods.send(COMPUTE, m.SET_RENDER_ENABLE_C(MODE=m.SET_RENDER_ENABLE_C_MODE.CONDITIONAL)))
  b.pcas(c, q)
  with pytest.raises(Unsupported, match="SET_RENDER_ENABLE_C.MODE = CONDITIONAL"): b.run()
  assert b.space.load(data, 4) == 3
  b = Compute()
  c = b.channel()
  b.send(c, COMPUTE, m.SET_COMPUTE_CLASS_VERSION(CURRENT=4), m.CHECK_COMPUTE_CLASS_VERSION(CURRENT=4))
  assert c.state is State.READY
  b.send(c, COMPUTE, m.CHECK_COMPUTE_CLASS_VERSION(CURRENT=5, OLDEST_SUPPORTED=5))
  dead(b, c, GR, "CHECK_COMPUTE_CLASS_VERSION 0x5 against 0x4")


@pytest.mark.parametrize("engine", ["ref", "jit", "auto"])
def test_engines_agree(engine: str) -> None:
  b = Compute(machine=NvMachine("sm_90", vram=1 << 22, system_memory=1 << 22, engine=engine))
  c, data = b.channel(), b.take(1024)
  for n in (1, 2):
    b.pcas(c, launch_qmd(b, b.load(ADD, "add"), grid=(4, 1, 1), bank=b.bank(data, n)))
    b.submit(c, methods.send(COMPUTE, methods.declared(0xCBC0).WAIT_FOR_IDLE(V=0)))
    b.run()
  assert [b.space.load(data + 4 * i, 4) for i in range(128)] == [3] * 128, c.describe()
  bad = b.channel()
  b.pcas(bad, launch_qmd(b, b.load(ADD, "add"), bank=b.bank(FAR, 1)))
  b.run()
  dead(b, bad, MMU, f"read of 4 bytes at {FAR:#x}")
  assert getattr(bad.error, "line", None) == 9 and "PTX:9" in str(bad.error)


def test_a_launch_that_is_taken_off_counts_as_ended() -> None:
  """Who has no patience loses the launch alone: the channel has no work left of it, and goes on behind it."""
  terms = Terms(seconds=0.0)
  b = Compute(machine=NvMachine("sm_90", vram=1 << 22, system_memory=1 << 22, engine="ref",
                                agreed={threading.get_ident(): terms}))
  c, data = b.channel(), b.take(128)
  b.pcas(c, launch_qmd(b, b.load(body("here:\n  bra here;\n"), "k"), bank=b.bank(data)))
  b.submit(c, methods.send(0, *release(data, 9)))
  while not b.machine.stops: c.run(1)
  assert not c.busy and not c.jobs and b.space.load(data, 4) == 0
  assert terms.interrupted is not None and "ran for more than 0 s" in b.machine.findings[-1]
  b.run()
  assert b.space.load(data, 4) == 9 and c.state is State.READY


def test_a_launch_takes_as_long_as_its_waves_need() -> None:
  """Four waves a multiprocessor at once: with one more the launch takes twice as long, as with twice as many."""
  b = Compute("sm_86")
  c, data = b.channel(), b.take(128)
  loop = "again:\n  add.u32 %r1, %r1, 1;\n  setp.lt.u32 %p1, %r1, 50;\n  @%p1 bra again;\n  ret;\n"
  program, at_once = b.load(body("  mov.u32 %r1, 0;\n" + loop), "k"), 4 * CARDS["sm_86"].sms

  def took(blocks: int) -> int:
    q = launch_qmd(b, program, grid=(blocks, 1, 1), bank=b.bank(data, 1))
    before = b.machine.clock.now_ns()
    b.pcas(c, q)
    b.run()
    return b.machine.clock.now_ns() - before
  one, full, more, twice = (took(n) for n in (1, at_once, at_once + 1, 2 * at_once))
  assert one == pytest.approx(full, abs=50) and more == pytest.approx(twice, abs=50)  # looks at the clock cost 10 ns
  assert more - one == pytest.approx(150 * 4 * 1000 / 1695, rel=0.2)
