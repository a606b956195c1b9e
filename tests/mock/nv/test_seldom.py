"""What drivers seldom send: methods that the engines refuse, each by its words, and those that only tell or wait."""
from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.mock.nv.bench import BASE, COMPUTE, COPY, FAR, Bench, launch_qmd, release, semaphore
from tests.mock.nv.test_compute import ADD, Compute
from tests.mock.nv.test_host import dead
from tinyhw.autogen import nv_c56f as host
from tinyhw.autogen import nv_rm_status as status
from tinyhw.core.errors import Unsupported
from tinyhw.core.layout import Method
from tinyhw.mock.nv.chip.channel import State
from tinyhw.mock.nv.driver.objects import status_name
from tinyhw.wire import methods

M = methods.declared(0xCBC0)
C = methods.declared(0xC8B5)
GR, PBDMA, MMU = (status.ROBUST_CHANNEL_GR_EXCEPTION, status.ROBUST_CHANNEL_PBDMA_ERROR,
                  status.ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT)
HIGH, LOW = BASE >> 32, BASE & 0xFFFF_FFFF


def inline(length: int, lines: int = 1, **more: int) -> list[Method]:
  """Inline data to BASE, begun; a semaphore behind it."""
  return [M.OFFSET_OUT_UPPER(VALUE=HIGH), M.OFFSET_OUT(VALUE=LOW), M.LINE_LENGTH_IN(VALUE=length),
          M.LINE_COUNT(VALUE=lines), M.SET_I2M_SEMAPHORE_A(OFFSET_UPPER=HIGH), M.SET_I2M_SEMAPHORE_C(PAYLOAD=9),
          M.LAUNCH_DMA(**({"DST_MEMORY_LAYOUT": M.LAUNCH_DMA_DST_MEMORY_LAYOUT.PITCH} | more))]


def report(at: int = 0, **more: int) -> list[Method]:
  """A report semaphore of 16 bytes at BASE, or `at` bytes behind it."""
  return [M.SET_REPORT_SEMAPHORE_A(OFFSET_UPPER=HIGH), M.SET_REPORT_SEMAPHORE_B(OFFSET_LOWER=LOW + at),
          M.SET_REPORT_SEMAPHORE_C(PAYLOAD=6), M.SET_REPORT_SEMAPHORE_D(**more)]


def execute(at: int = 0, **more: int) -> list[Method]:
  """The same by other methods."""
  return [M.SET_REPORT_SEMAPHORE_ADDRESS_UPPER(UPPER=HIGH), M.SET_REPORT_SEMAPHORE_ADDRESS_LOWER(LOWER=LOW + at),
          M.SET_REPORT_SEMAPHORE_PAYLOAD_LOWER(PAYLOAD_LOWER=1), M.SET_REPORT_SEMAPHORE_PAYLOAD_UPPER(PAYLOAD_UPPER=2),
          M.REPORT_SEMAPHORE_EXECUTE(**more)]


def copy(**more: int) -> list[Method]:
  """64 bytes from BASE to BASE + 0x100, with a semaphore at BASE + 0x200."""
  return [C.OFFSET_IN_UPPER(UPPER=HIGH), C.OFFSET_IN_LOWER(VALUE=LOW), C.OFFSET_OUT_UPPER(UPPER=HIGH),
          C.OFFSET_OUT_LOWER(VALUE=LOW + 0x100), C.LINE_LENGTH_IN(VALUE=64), C.LINE_COUNT(VALUE=1),
          C.SET_SEMAPHORE_A(UPPER=HIGH), C.SET_SEMAPHORE_B(LOWER=LOW + 0x200), C.SET_SEMAPHORE_PAYLOAD(PAYLOAD=3),
          C.LAUNCH_DMA(**({"DATA_TRANSFER_TYPE": C.LAUNCH_DMA_DATA_TRANSFER_TYPE.NON_PIPELINED, "FLUSH_ENABLE": 1,
                           "SRC_MEMORY_LAYOUT": C.LAUNCH_DMA_SRC_MEMORY_LAYOUT.PITCH,
                           "DST_MEMORY_LAYOUT": C.LAUNCH_DMA_DST_MEMORY_LAYOUT.PITCH} | more))]


OPERATION = M.REPORT_SEMAPHORE_EXECUTE_OPERATION
COMPLETE = {"COMPLETION_TYPE": M.LAUNCH_DMA_COMPLETION_TYPE.RELEASE_SEMAPHORE}


@pytest.mark.parametrize(("sent", "text"), [
  (inline(4, DST_MEMORY_LAYOUT=M.LAUNCH_DMA_DST_MEMORY_LAYOUT.BLOCKLINEAR), "DST_MEMORY_LAYOUT = BLOCKLINEAR"),
  (inline(4, REDUCTION_ENABLE=1), "LAUNCH_DMA.REDUCTION_ENABLE"),
  ([*inline(4), *inline(4)], "LAUNCH_DMA while 4 bytes of inline data are missing"),
  ([M.SET_I2M_SEMAPHORE_B(OFFSET_LOWER=LOW + 2), *inline(0, SEMAPHORE_STRUCT_SIZE=1, **COMPLETE)],
   f"a semaphore of 4 bytes at {BASE + 2:#x}"),
  ([M.SET_I2M_SEMAPHORE_B(OFFSET_LOWER=LOW + 8), *inline(0, SEMAPHORE_STRUCT_SIZE=0, **COMPLETE)],
   f"a semaphore of 16 bytes at {BASE + 8:#x}"),
  (execute(OPERATION=OPERATION.ACQUIRE), "REPORT_SEMAPHORE_EXECUTE.OPERATION = ACQUIRE"),
  (execute(OPERATION=OPERATION.REPORT_ONLY), "REPORT_SEMAPHORE_EXECUTE.OPERATION = REPORT_ONLY"),
  (execute(at=4, STRUCTURE_SIZE=2, PAYLOAD_SIZE64=1), f"a semaphore of 8 bytes at {BASE + 4:#x}"),
  (report(at=8), f"a semaphore of 16 bytes at {BASE + 8:#x}"),
  (report(at=2, STRUCTURE_SIZE=1), f"a semaphore of 4 bytes at {BASE + 2:#x}"),
  ([M.SEND_PCAS_A(QMD_ADDRESS_SHIFTED8=BASE >> 8), M.SEND_SIGNALING_PCAS2_B(PCAS_ACTION=12)],
   "PCAS_ACTION = INCREMENT_DEPENDENCE"),
])
def test_what_the_compute_engine_refuses(sent: Sequence[Method], text: str) -> None:
  b = Bench()
  c = b.channel()
  b.take(0x400)
  try: b.send(c, COMPUTE, *sent)
  except Unsupported as refused:
    assert text in str(refused) and c.state is State.DEAD
  else: dead(b, c, GR, text)


def test_what_the_compute_engine_only_tells() -> None:
  b = Bench()
  c = b.channel()
  b.take(0x400)
  b.send(c, COMPUTE, M.SET_I2M_SEMAPHORE_B(OFFSET_LOWER=LOW), *inline(0, SEMAPHORE_STRUCT_SIZE=1, **COMPLETE))
  assert b.space.load(BASE, 4) == 9  # nothing was to come
  b.send(c, COMPUTE, *inline(0, INTERRUPT_TYPE=M.LAUNCH_DMA_INTERRUPT_TYPE.INTERRUPT))
  assert c.interrupts == 1
  b.send(c, COMPUTE, *report(AWAKEN_ENABLE=1))
  assert c.interrupts == 2 and b.space.load(BASE, 8) == 6
  b.send(c, COMPUTE, M.SEND_PCAS_A(QMD_ADDRESS_SHIFTED8=BASE >> 8), M.SEND_SIGNALING_PCAS2_B(
    PCAS_ACTION=M.SEND_SIGNALING_PCAS2_B_PCAS_ACTION.PREFETCH), M.SEND_SIGNALING_PCAS2_B(
    PCAS_ACTION=M.SEND_SIGNALING_PCAS2_B_PCAS_ACTION.NOP))
  assert c.state is State.READY and not c.jobs


def test_qmds_that_are_sent_in_part() -> None:
  for words, text in (({64: 1}, "LOAD_INLINE_QMD_DATA[64] of a QMD of 64 dwords"),
                      (dict.fromkeys({*range(64)} - {3, 9}, 0), "dwords [3, 9] were never sent")):
    b = Bench("sm_86")
    m, c = methods.declared(b.gpu.card.compute_class), b.channel()
    b.submit(c, methods.send(COMPUTE, m.SET_INLINE_QMD_ADDRESS_A(QMD_ADDRESS_SHIFTED8_UPPER=0),
                             m.SET_INLINE_QMD_ADDRESS_B(QMD_ADDRESS_SHIFTED8_LOWER=0)))
    sent = [methods.Send(methods.INCR, COMPUTE, m.LOAD_INLINE_QMD_DATA.OFFSET + 4 * place, (word,)).encode()
            for place, word in words.items()]
    b.submit(c, [word for part in sent for word in part])
    b.run()
    dead(b, c, GR, text)


@pytest.mark.parametrize(("sent", "text"), [
  (copy(COPY_TYPE=1), "LAUNCH_DMA.COPY_TYPE = 1"), (copy(MEMORY_SCRUB_ENABLE=1), "LAUNCH_DMA.MEMORY_SCRUB_ENABLE = 1"),
  (copy(VPRMODE=1), "LAUNCH_DMA.VPRMODE = 1"), (copy(SEMAPHORE_TYPE=3), "LAUNCH_DMA.SEMAPHORE_TYPE = 3"),
  (copy(SRC_TYPE=1), "LAUNCH_DMA.SRC_TYPE = PHYSICAL"), (copy(DST_TYPE=1), "LAUNCH_DMA.DST_TYPE = PHYSICAL"),
  ([C.SET_RENDER_ENABLE_C(MODE=0), *copy()], "SET_RENDER_ENABLE_C.MODE = 0"),
  (copy(SEMAPHORE_TYPE=1, SEMAPHORE_REDUCTION_ENABLE=1,
        SEMAPHORE_REDUCTION=C.LAUNCH_DMA_SEMAPHORE_REDUCTION.FADD), "LAUNCH_DMA.SEMAPHORE_REDUCTION = FADD"),
])
def test_what_the_copy_engine_refuses(sent: Sequence[Method], text: str) -> None:
  b = Bench()
  c = b.channel("copy")
  b.take(0x400)
  try: b.send(c, COPY, *sent)
  except Unsupported as refused: assert text in str(refused)
  assert text in str(c.error) and c.state is State.DEAD


@pytest.mark.parametrize(("said", "good", "bad"), [
  ("", 32, 0), (".reqntid 32", 32, 31), (".reqntid 8, 4, 1", 0, 32), (".maxntid 32", 31, 33),
  (".maxntid 8, 4, 1", 32, 64)])
def test_blocks_that_a_program_was_made_for(said: str, good: int, bad: int) -> None:
  """All sizes, one, or none that is larger."""
  for threads, runs in ((good, True), (bad, False)):
    if not threads: continue
    b = Compute()
    c, data = b.channel(), b.take(1024)
    b.pcas(c, launch_qmd(b, b.load(ADD.replace("n) {", f"n) {said} {{"), "add"), block=(threads, 1, 1),
                         bank=b.bank(data, 3)))
    b.run()
    assert (b.space.load(data, 4) == 3) is runs
    if not runs: dead(b, c, GR, f"ILLEGAL_LAUNCH: add: a block of ({threads}, 1, 1)")


def test_what_the_copy_engine_tells() -> None:
  b = Bench()
  c = b.channel("copy")
  b.take(0x400)
  b.space.write(BASE, b"\x11" * 64)
  b.send(c, COPY, C.SET_RENDER_ENABLE_C(MODE=C.SET_RENDER_ENABLE_C_MODE.TRUE),
         *copy(INTERRUPT_TYPE=C.LAUNCH_DMA_INTERRUPT_TYPE.BLOCKING))
  assert c.interrupts == 1 and b.space.read(BASE + 0x100, 65) == b"\x11" * 64 + b"\0"


def test_host_methods_that_wait() -> None:
  """Behind WFI all that was begun has ended; a reference is told then."""
  for seed in range(6):
    b = Bench(seed=seed)
    one, two = b.channel("copy"), b.channel("copy")
    b.take(0x400)
    done = b.take(16)
    b.space.write(BASE, b"\x22" * 64)
    onward = [C.OFFSET_IN_UPPER(UPPER=HIGH), C.OFFSET_IN_LOWER(VALUE=LOW + 0x100), C.OFFSET_OUT_UPPER(UPPER=HIGH),
              C.OFFSET_OUT_LOWER(VALUE=LOW + 0x300), *copy()[4:6], copy()[-1]]
    b.submit(two, methods.send(0, *semaphore(done, 1), host.SEM_EXECUTE(OPERATION=host.SEM_EXECUTE_OPERATION.ACQUIRE))
             + methods.send(COPY, *onward))
    b.submit(one, methods.send(COPY, *copy()) + methods.send(
      0, host.SET_REFERENCE(COUNT=seed + 1), host.WFI(), *release(done, 1, idle=False)))
    b.run()
    assert b.space.read(BASE + 0x300, 64) == b"\x22" * 64 and one.host.reference == seed + 1


def test_host_methods_that_are_refused_or_have_no_effect() -> None:
  b = Bench()
  c = b.channel()
  b.send(c, 0, host.YIELD(OP_=0), host.FB_FLUSH(HANDLE=0), host.MEM_OP_D(
    OPERATION=host.MEM_OP_D_OPERATION.L2_FLUSH_DIRTY))
  assert {"host method YIELD x1: time slices are the scheduler's own",
          "host method FB_FLUSH x1: no caches are modelled",
          "host method MEM_OP_D L2_FLUSH_DIRTY x1: no caches are modelled"} <= {*b.machine.report()}
  for words, text in ((methods.Send(methods.INCR, 0, host.SEMAPHORED.OFFSET, (16 | 15 << 27,)).encode(),
                       "SEMAPHORED.REDUCTION = 15"),
                      (methods.Send(methods.INCR, 1, 0, (1 << 31,)).encode(), "SET_OBJECT: undeclared bits")):
    c = b.channel()
    b.submit(c, words)
    b.run()
    dead(b, c, PBDMA, text)


def test_a_wait_for_memory_that_goes() -> None:
  b = Bench()
  c = b.channel()
  b.space.map(FAR, 4096, b.gpu.vram, 1 << 19)
  b.send(c, 0, *semaphore(FAR, 77), host.SEM_EXECUTE(OPERATION=host.SEM_EXECUTE_OPERATION.ACQUIRE))
  assert c.state is State.BLOCKED
  b.space.unmap(FAR, 4096)
  b.run()
  dead(b, c, MMU, f"read of 4 bytes at {FAR:#x}")


def test_statuses_have_names() -> None:
  assert status_name(status.NV_ERR_INVALID_ARGUMENT) == "NV_ERR_INVALID_ARGUMENT" and status_name(0xABCDE) == "0xabcde"
