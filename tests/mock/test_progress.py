"""Kernels that wait for other queues, the copy engine and the host: those go on, or the GPU hangs and says so."""

from __future__ import annotations

import struct
import threading
import time
from array import array
from collections.abc import Iterator

import pytest

from tests.emulator.checking import code_of
from tests.mock.client import VRAM, Client, Memory, Queue
from tests.mock.test_aql import AqlClient
from tests.mock.test_queues import poll, wait, write
from tests.mock.test_waves import settings
from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import kfd
from tinyhw.autogen import pm4_gfx11 as p4
from tinyhw.autogen import sdma_v6 as s6
from tinyhw.emulator.check.checker import Checker
from tinyhw.mock.amd.machine import TURNS_ON_ENGINE, Machine
from tinyhw.wire import pm4

# s[0:1]: what is polled, s[2:3]: what is written, s4: the first number, s5: how many. With s6 it begins.
EXCHANGE = """
  v_mov_b32 v1, 0
  s_cmp_lg_u32 s6, 0
  s_cbranch_scc1 tell
again:
  global_load_b32 v2, v1, s[0:1] glc dlc
  s_waitcnt vmcnt(0)
  v_readfirstlane_b32 s7, v2
  s_cmp_lg_u32 s7, s4
  s_cbranch_scc1 again
  s_cmp_lg_u32 s6, 0
  s_cbranch_scc1 next
tell:
  v_mov_b32 v2, s4
  global_store_b32 v1, v2, s[2:3]
  s_cmp_lg_u32 s6, 0
  s_cbranch_scc1 again
next:
  s_add_u32 s4, s4, 1
  s_sub_u32 s5, s5, 1
  s_cmp_lg_u32 s5, 0
  s_cbranch_scc0 done
  s_cmp_lg_u32 s6, 0
  s_cbranch_scc1 tell
  s_branch again
done:
  s_endpgm"""


class Bench:
  """A client with the kernel and a page of words."""

  def __init__(self, engine: str = "auto", seed: int = 0, **more: object) -> None:
    self.client = Client(Machine(engine=engine, seed=seed, **more))  # type: ignore[arg-type]  # options of Machine
    self.code, self.memory = self.client.alloc(4096, VRAM), self.client.alloc(4096)
    machine_code = code_of(EXCHANGE, "gfx11")
    self.code.view[: len(machine_code)] = machine_code

  def packets(self, polled: int, written: int, first: int, count: int = 1, begins: bool = False) -> list[p4.Pm4]:
    """A dispatch that polls and writes words of the memory."""
    at = self.memory.address
    data = [w for n in (polled, written) for w in ((at + 4 * n) & 0xFFFF_FFFF, (at + 4 * n) >> 32)]
    users = pm4.set_sh_reg(gc.COMPUTE_USER_DATA_0, *data, first, count, int(begins))
    *registers, dispatch = settings(self.code.address, user=7)
    return [*registers, users, dispatch]

  @property
  def words(self) -> Memory:
    return self.memory


@pytest.fixture
def bench() -> Iterator[Bench]:
  bench = Bench()
  yield bench
  bench.client.port.end()


@pytest.mark.parametrize("engine", ["ref", "jit", "auto"])
def test_two_kernels_on_two_queues_wait_for_each_other(engine: str) -> None:
  """One question and answer after the other, whoever has its turn first."""
  for seed in range(2):
    bench = Bench(engine, seed)
    first, second = bench.client.queue(), bench.client.queue()
    first.submit(*bench.packets(0, 1, 5, 6, begins=True), write(bench.memory.address + 64, 1))
    second.submit(*bench.packets(1, 0, 5, 6), write(bench.memory.address + 68, 2))
    bench.client.run()
    assert bench.memory.u32[:2].tolist() == [10, 10] and bench.memory.u32[16:18].tolist() == [1, 2]
    assert first.state == second.state == "ready" and first.read_pointer == first.at
    assert bench.client.machine.report() == []
    bench.client.port.end()


def test_a_kernel_waits_for_the_copy_engine_and_it_for_the_kernel(bench: Bench) -> None:
  queue, copy = bench.client.queue(), bench.client.queue(copy=True)
  at = bench.memory.address
  queue.submit(*bench.packets(0, 1, 7, 2, begins=True), write(at + 64, 3))
  copy.submit(poll(at + 4, 7), s6.SDMA_PKT_FENCE(addr=at, data=7), poll(at + 4, 8), s6.SDMA_PKT_FENCE(addr=at, data=8))
  bench.client.run()
  assert bench.memory.u32[:2].tolist() == [8, 8] and bench.memory.u32[16] == 3


def test_a_kernel_waits_for_packets_of_another_queue(bench: Bench) -> None:
  queue, other = bench.client.queue(), bench.client.queue()
  at = bench.memory.address
  queue.submit(*bench.packets(0, 1, 3, 2, begins=True))
  other.submit(wait(at + 4, 3), write(at, 3), wait(at + 4, 4), write(at, 4))
  bench.client.run()
  assert bench.memory.u32[:2].tolist() == [4, 4] and queue.read_pointer == queue.at


def test_the_host_writes_between_two_looks(bench: Bench) -> None:
  """Nobody else could change what the kernel polls: it stays until the host does."""
  queue = bench.client.queue()
  queue.submit(*bench.packets(0, 1, 9, 3), write(bench.memory.address + 64, 1))
  for number in (9, 10, 11):
    bench.client.run()
    assert queue.state == "blocked" and bench.memory.u32[1] == (number - 1 if number > 9 else 0)
    assert queue.read_pointer < queue.at and not bench.memory.u32[16]
    (line,) = bench.client.machine.report()
    assert f"a dispatch waits for 4 bytes at {bench.memory.address:#x}" in line and "to change, found" in line
    bench.memory.u32[0] = number
  bench.client.run()
  assert queue.state == "ready" and bench.memory.u32[1] == 11 and bench.memory.u32[16] == 1


@pytest.mark.parametrize("engine", ["ref", "jit"])
def test_another_thread_of_the_host_writes(engine: str) -> None:
  bench = Bench(engine)
  queue, port = bench.client.queue(), bench.client.port
  queue.submit(*bench.packets(0, 1, 1, 20))

  known = threading.Event()

  def answer() -> None:
    bench.client.machine.note_thread()
    known.set()
    for number in range(1, 21):
      bench.memory.u32[0] = number
      until = time.monotonic() + 20
      while bench.memory.u32[1] != number and time.monotonic() < until:
        time.sleep(0.0005)

  host = threading.Thread(target=answer)
  host.start()
  known.wait()
  assert port.wait(lambda: bench.memory.u32[1] == 20 and queue.read_pointer == queue.at, 20), (
    bench.client.machine.report()
  )
  host.join()
  bench.client.port.end()


def test_an_aql_queue_signals_when_the_wait_is_over() -> None:
  client = Client()
  q = AqlClient(client)
  at = q.data.address
  code = client.alloc(4096, VRAM)
  machine_code = code_of(EXCHANGE, "gfx11")
  code.view[256 : 256 + len(machine_code)] = machine_code
  # a descriptor whose code follows it; the words of the arguments are loaded before
  load = code_of("s_load_b256 s[0:7], s[0:1], 0\n s_waitcnt lgkmcnt(0)", "gfx11")
  code.view[256 : 256 + len(load)] = load
  code.view[256 + len(load) : 256 + len(load) + len(machine_code)] = machine_code
  struct.pack_into("<IIIIq20xIIIH", code.view, 0, 0, 0, 32, 0, 256, 0, 1, 2 << 1, 8 | 1 << 10)
  packet = q.launch(1, 0, q.signal(0))
  struct.pack_into("<QQIII", q.arguments.view, 0, at, at + 4, 4, 1, 0)
  packet.kernel_object = code.address
  q.put(packet)
  client.run()
  assert q.queue.state.value == "blocked" and q.value(0) == 1 and not q.data.u32[1], client.machine.report()
  q.data.u32[0] = 4
  client.run()
  assert q.value(0) == 0 and q.data.u32[1] == 4, client.machine.report()
  assert q.queue.state.value == "ready"
  client.port.end()


def hung(bench: Bench, *queues: Queue) -> str:
  """A client waits for long: the queues stop, the event says so, the report has the rest."""
  event = bench.client.event(kfd.KFD_IOC_EVENT_HW_EXCEPTION)
  result, data = bench.client.wait_events([event.event_id], 5000)
  assert result == kfd.KFD_IOC_WAIT_RESULT_COMPLETE
  assert data[0].hw_exception_data.reset_cause == kfd.KFD_HW_EXCEPTION_GPU_HANG
  assert {q.state for q in queues} <= {"hung", "evicted"}
  return "\n".join(bench.client.machine.report())


@pytest.mark.parametrize("engine", ["ref", "jit", "auto", "both"])
def test_what_nobody_writes_hangs_the_gpu(engine: str) -> None:
  bench = Bench(engine)
  queue = bench.client.queue()
  queue.submit(*bench.packets(0, 1, 5))
  text = hung(bench, queue)
  assert f"a deadlock: a wave waits for 4 bytes at {bench.memory.address:#x} (they hold 0x0)" in text
  assert f"PC {bench.code.address + 12:#x} in 'global_load_b32" in text
  bench.client.port.end()


def test_two_kernels_that_both_wait_hang_with_both_places(bench: Bench) -> None:
  first, second = bench.client.queue(), bench.client.queue()
  first.submit(*bench.packets(0, 1, 5))
  second.submit(*bench.packets(1, 0, 5))
  text = hung(bench, first, second)
  for word in (0, 4):
    assert f"a wave waits for 4 bytes at {bench.memory.address + word:#x}" in text


def test_under_an_observer_a_kernel_that_waits_is_no_hindrance() -> None:
  """It waits for the host; a second one beside it runs to its end."""
  bench = Bench(observer=Checker(fails=True))
  bench.memory.u32[:4] = memoryview(array("I", [0] * 4))
  first, second = bench.client.queue(), bench.client.queue()
  first.submit(*bench.packets(0, 1, 5))
  bench.client.run()
  assert first.state == "blocked"
  second.submit(*bench.packets(2, 3, 0))
  bench.client.run()
  assert second.state == "ready" and first.state == "blocked" and second.read_pointer == second.at
  bench.memory.u32[0] = 5
  bench.client.run()
  assert first.state == "ready" and bench.memory.u32[1] == 5 and bench.client.machine.report() == []
  bench.client.port.end()


@pytest.mark.parametrize("memory_model", ["strong", "weak"])
@pytest.mark.parametrize("priv", [0, 1])
def test_waves_that_wait_are_taken_off_the_card_where_they_started_privileged(priv: int, memory_model: str) -> None:
  """On this card a context save reaches no others: COMPUTE_PGM_RSRC1.PRIV. With weak memory a queue goes on beside its
  dispatches."""
  bench = Bench("ref", memory=memory_model)
  queue, memory = bench.client.queue(), bench.memory
  packets = bench.packets(0, 1, 500)
  register = next(p for p in packets if dict(pm4.registers(p)).get(gc.COMPUTE_PGM_RSRC1.OFFSET))
  assert isinstance(register, p4.SET_SH_REG)
  rsrc1 = gc.COMPUTE_PGM_RSRC1.decode(register.payload[0])
  rsrc1.PRIV = priv
  register.payload = (rsrc1.value(), *register.payload[1:])
  queue.submit(*packets)
  for value in range(2 * TURNS_ON_ENGINE[1]):
    memory.u32[0] = value
    bench.client.run()
  assert queue.state == ("hung" if not priv else "ready" if memory_model == "weak" else "blocked")
  assert ("context save" in str(bench.client.machine.report())) is (not priv)
