"""The engines: packets, waits across queues, ring wrap, faults; under any interleaving."""

from __future__ import annotations

import random
import threading
from array import array
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mock.client import GTT, READ_ONLY, VRAM, Client
from tests.strength import examples
from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import kfd
from tinyhw.autogen import pm4_gfx11 as p4
from tinyhw.autogen import sdma_v6 as s6
from tinyhw.core.errors import EncodeError, Unsupported
from tinyhw.core.timeout import Terms
from tinyhw.mock.amd.chip.pm4 import ComputeQueue
from tinyhw.mock.amd.chip.sdma import SdmaQueue
from tinyhw.mock.amd.machine import Machine
from tinyhw.wire import pm4, sdma

E = p4.VGT_EVENT_TYPE
MEMORY = p4.WAIT_REG_MEM_mem_space.memory_space
UC = 3  # MTYPE of what no cache keeps
GE = p4.WAIT_REG_MEM_function.greater_than_or_equal_reference_value


@pytest.fixture
def client() -> Iterator[Client]:
  client = Client()
  yield client
  client.port.end()


def write(address: int, *values: int) -> p4.WRITE_DATA:
  return p4.WRITE_DATA(dst_sel=p4.WRITE_DATA_dst_sel.memory, dst_mem_addr=address, payload=values)


def wait(address: int, value: int, function: int = GE) -> p4.WAIT_REG_MEM:
  return p4.WAIT_REG_MEM(function=function, mem_space=MEMORY, mem_poll_addr=address, reference=value, mask=0xFFFF_FFFF)


def release(
  address: int, value: int = 0, data: int = p4.RELEASE_MEM_data_sel.send_64_bit_data, interrupt: int = 0, event: int = 0
) -> p4.RELEASE_MEM:

  return p4.RELEASE_MEM(
    event_type=E.CACHE_FLUSH_AND_INV_TS_EVENT,
    event_index=p4.RELEASE_MEM_event_index.end_of_pipe,
    data_sel=data,
    int_sel=interrupt,
    address=address,
    data=value,
    int_ctxid=event,
  )


def poll(address: int, value: int) -> s6.SDMA_PKT_POLL_REGMEM:
  return s6.SDMA_PKT_POLL_REGMEM(func=5, mem_poll=1, addr=address, value=value, mask=0xFFFF_FFFF, retry_count=0xFFF)


def _words(values: list[int]) -> memoryview:
  return memoryview(array("I", values))


# ---- the command processor


def test_writes_copies_and_timestamps(client: Client) -> None:
  queue, memory = client.queue(), client.alloc(4096)
  at = memory.address
  queue.submit(
    write(at, 1, 2, 3),
    p4.COPY_DATA(
      src_sel=p4.COPY_DATA_src_sel.tc_l2, dst_sel=p4.COPY_DATA_dst_sel.tc_l2, count_sel=1, src_addr=at, dst_addr=at + 64
    ),
    p4.COPY_DATA(
      src_sel=p4.COPY_DATA_src_sel.immediate_data, dst_sel=p4.COPY_DATA_dst_sel.tc_l2, src_addr=99, dst_addr=at + 72
    ),
    p4.COPY_DATA(
      src_sel=p4.COPY_DATA_src_sel.gpu_clock_count,
      dst_sel=p4.COPY_DATA_dst_sel.tc_l2,
      count_sel=1,
      src_addr=0,
      dst_addr=at + 80,
    ),
    pm4.set_sh_reg(gc.COMPUTE_USER_DATA_0, 5, 6),
    p4.COPY_DATA(src_addr=gc.COMPUTE_USER_DATA_1.OFFSET, dst_sel=p4.COPY_DATA_dst_sel.tc_l2, dst_addr=at + 76),
    p4.ATOMIC_MEM(atomic=p4.TC_OP.TC_OP_ATOMIC_ADD_RTN_64, addr=at + 64, src_data=10, cmp_data=0),
    p4.NOP(payload=(1, 2, 3)),
    p4.EVENT_WRITE(event_type=E.CS_PARTIAL_FLUSH, event_index=4),
    release(at + 96, 0x1_2345_6789),
    release(at + 104, 7, p4.RELEASE_MEM_data_sel.send_32_bit_low),
    release(at + 112, data=p4.RELEASE_MEM_data_sel.send_gpu_clock_counter),
    p4.DMA_DATA(
      src_sel=p4.DMA_DATA_src_sel.data,
      dst_sel=p4.DMA_DATA_dst_sel.dst_addr_using_l2,
      src_addr_lo_or_data=0xABCD,
      src_addr_hi=0,
      dst_addr=at + 256,
      byte_count=16,
    ),
  )
  client.run()
  words = memory.u32
  assert words[:3].tolist() == [1, 2, 3] and memory.u64[8] == (2 << 32 | 1) + 10 and words[18] == 99 and words[19] == 6
  assert memory.u64[12] == 0x1_2345_6789 and words[26] == 7 and words[64:69].tolist() == [0xABCD] * 4 + [0]
  assert 0 < memory.u64[10] <= memory.u64[14]
  assert queue.read_pointer == queue.at and queue.state == "ready" and client.machine.report() == []


def test_an_indirect_buffer_and_a_chained_one(client: Client) -> None:
  queue, memory = client.queue(), client.alloc(8192)
  second, first = memory.address + 4096, memory.address + 1024
  tail = pm4.stream([write(memory.address + 4, 2)])
  memory.u32[1024 : 1024 + len(tail)] = _words(tail)
  head = pm4.stream([write(memory.address, 1), p4.INDIRECT_BUFFER(ib_base=second, ib_size=len(tail), chain=1, valid=1)])
  memory.u32[256 : 256 + len(head)] = _words(head)
  queue.submit(p4.INDIRECT_BUFFER(ib_base=first, ib_size=len(head), valid=1), write(memory.address + 8, 3))
  client.run()
  assert memory.u32[:3].tolist() == [1, 2, 3] and queue.state == "ready"


@pytest.mark.parametrize("memory_model", ["strong", "weak"])
@pytest.mark.parametrize("copy", [False, True])
def test_an_indirect_buffer_may_lie_in_two_allocations(copy: bool, memory_model: str) -> None:
  client = Client(Machine(memory=memory_model))
  queue, memory = client.queue(copy=copy), client.alloc(4096)
  at = client.port.reserve(8192)
  parts = [client.alloc(4096, address=at), client.alloc(4096, address=at + 4096)]
  if copy:
    fence = s6.SDMA_PKT_FENCE(mtype=UC, addr=memory.address, data=4)
    words = _words(sdma.stream([s6.SDMA_PKT_NOP(payload=())] * 8 + [fence]))
    indirect = s6.SDMA_PKT_INDIRECT(ib_base=at + 4096 - 32, ib_size=len(words), csa_addr=0)
    queue.submit(s6.SDMA_PKT_NOP(payload=()), s6.SDMA_PKT_NOP(payload=()), indirect)
  else:
    words = _words(pm4.stream([write(memory.address, 3), write(memory.address, 4)]))
    queue.submit(p4.INDIRECT_BUFFER(ib_base=at + 4096 - 32, ib_size=len(words), valid=1))
  parts[0].u32[-8:] = words[:8]
  parts[1].u32[: len(words) - 8] = words[8:]
  client.run()
  assert memory.u32[0] == 4 and queue.state == "ready"


def test_indirect_buffers_that_chain_for_ever_meet_the_watchdog(client: Client) -> None:
  queue, memory = client.queue(), client.alloc(4096)
  words = pm4.stream([p4.INDIRECT_BUFFER(ib_base=memory.address, ib_size=4, chain=1, valid=1)])
  memory.u32[:4] = _words(words)
  queue.submit(p4.INDIRECT_BUFFER(ib_base=memory.address, ib_size=4, valid=1))
  client.run()
  assert queue.state == "hung" and "without an end" in str(client.machine.report())


@pytest.mark.parametrize("seed", range(3))
def test_submissions_that_come_again_set_the_registers_that_they_name(client: Client, seed: int) -> None:
  """Whatever the engine remembers of those before: each register has what was written last."""
  rng, queue, expected = random.Random(seed), client.queue(), dict[int, int]()
  registers = gc.COMPUTE_USER_DATA_0, gc.COMPUTE_USER_DATA_1, gc.COMPUTE_USER_DATA_2
  held = client.machine.kfd.processes[client.port.pid()].queues[queue.queue_id]
  assert isinstance(held, ComputeQueue)
  for _ in range(80):
    writes = [(rng.choice(registers), rng.randrange(2)) for _ in range(rng.randint(1, 2))]
    queue.submit(*(pm4.set_sh_reg(register, value) for register, value in writes))
    client.run()
    expected |= {register.OFFSET: value for register, value in writes}
    assert {offset: held.read_register(offset) for offset in expected} == expected


@pytest.mark.parametrize("turns", [2, 7])
def test_a_queue_stays_on_its_engine_for_the_turns_that_are_drawn(turns: int) -> None:
  client = Client(Machine(tracing=True))
  client.machine.turns_of_a_queue = lambda queue: turns  # type: ignore[method-assign]
  queue = client.queue()
  held = client.machine.kfd.processes[client.port.pid()].queues[queue.queue_id]
  queue.submit(*[p4.NOP(payload=())] * 40)
  seen = []
  for turn in range(40):
    before = len(client.machine.trace)
    held.run(1)
    if any(event.kind == "mapped" for event in list(client.machine.trace)[before:]):
      seen.append(turn)
  assert len(seen) > 3 and {b - a for a, b in zip(seen, seen[1:])} == {turns}
  client.port.end()


def test_work_without_its_doorbell_waits_where_threads_have_terms() -> None:
  """A thread that has stored its write pointer and not rung yet is not known; a queue that is mapped again at that
  moment would run its dispatch without the observer and the time limit that it has agreed on."""
  client = Client(Machine(agreed={threading.get_ident(): Terms()}))
  client.machine.turns_of_a_queue = lambda queue: 1  # type: ignore[method-assign]
  queue, memory = client.queue(), client.alloc(4096)
  held = client.machine.kfd.processes[client.port.pid()].queues[queue.queue_id]
  queue.submit(write(memory.address, 1))
  queue.push(pm4.stream([write(memory.address + 4, 2)]), ring=False)
  queue.write.u64[0] = queue.at
  client.run()
  assert memory.u32[:2].tolist() == [1, 0] and queue.read_pointer < queue.at
  queue.ring_doorbell()
  assert held.queued_by() == threading.get_ident()
  client.run()
  assert memory.u32[:2].tolist() == [1, 2] and queue.read_pointer == queue.at
  client.machine.agreed.clear()
  queue.submit(p4.NOP(payload=()))
  queue.push(pm4.stream([write(memory.address + 4, 3)]), ring=False)
  queue.write.u64[0] = queue.at
  client.run()
  assert memory.u32[1] == 3  # as the scheduler does: it finds the pointer in memory
  client.port.end()


def test_the_ring_wraps(client: Client) -> None:
  queue, memory = client.queue(), client.alloc(4096)
  for i in range(700):
    queue.submit(write(memory.address + 4 * (i % 1000), i), p4.NOP(payload=(0,) * (i % 7)))
    client.run()
  assert memory.u32[:700].tolist() == list(range(700)) and queue.at > 4096 and queue.read_pointer == queue.at


def test_a_packet_submitted_in_two_parts_waits_for_its_end(client: Client) -> None:
  queue, memory = client.queue(), client.alloc(4096)
  words = pm4.stream([write(memory.address, 5)])
  queue.push(words[:2])
  client.run()
  assert memory.u32[0] == 0 and "3 more dwords" in str(client.machine.report())
  queue.push(words[2:])
  client.run()
  assert memory.u32[0] == 5 and queue.read_pointer == queue.at


def test_a_wait_parks_its_queue_until_another_one_writes(client: Client) -> None:
  first, second, memory = client.queue(), client.queue(), client.alloc(4096)
  first.submit(wait(memory.address, 3), write(memory.address + 8, 1))
  client.run()
  assert first.state == "blocked" and memory.u32[2] == 0
  assert any("waits for" in line and ">= 0x3" in line for line in client.machine.report())
  second.submit(write(memory.address, 3))
  client.run()
  assert first.state == "ready" and memory.u32[2] == 1


def test_a_stopped_queue_does_not_go_on(client: Client) -> None:
  """UPDATE_QUEUE with 0 percent stops a queue, also one that waits; with more it goes on where it was."""
  queue, memory = client.queue(), client.alloc(4096)
  queue.submit(wait(memory.address, 1), write(memory.address + 8, 1))
  client.run()
  setting = {"queue_id": queue.queue_id, "ring_base_address": queue.ring.address, "ring_size": 4096}
  client.call("UPDATE_QUEUE", **setting, queue_percentage=0, queue_priority=1)
  memory.u32[0] = 1
  client.run()
  assert memory.u32[2] == 0
  client.call("UPDATE_QUEUE", **setting, queue_percentage=100, queue_priority=1)
  client.run()
  assert memory.u32[2] == 1


def test_the_host_ends_a_wait(client: Client) -> None:
  queue, memory = client.queue(), client.alloc(4096)
  queue.submit(wait(memory.address, 9), release(memory.address + 8, 1))
  assert client.port.wait(lambda: memory.u64[1] == 1, 60.0) is False  # at once: nobody else can
  memory.u32[0] = 9
  assert client.port.wait(lambda: memory.u64[1] == 1, 60.0)


@pytest.mark.parametrize(
  ("function", "below", "equal", "above"),
  [(1, 1, 0, 0), (2, 1, 1, 0), (3, 0, 1, 0), (4, 1, 0, 1), (5, 0, 1, 1), (6, 0, 0, 1)],
)
def test_each_comparison(client: Client, function: int, below: int, equal: int, above: int) -> None:
  memory = client.alloc(4096)
  for value, passes in ((4, below), (5, equal), (6, above)):
    queue = client.queue()
    memory.u32[0] = value
    queue.submit(wait(memory.address, 5, function))
    client.run()
    assert queue.state == ("ready" if passes else "blocked")


# ---- the copy engine


def test_copy_engine_packets(client: Client) -> None:
  queue, memory = client.queue(copy=True), client.alloc(1 << 16, VRAM)
  at = memory.address
  memory.view[:8] = b"abcdefgh"
  queue.submit(
    s6.SDMA_PKT_NOP(count=2, payload=(0, 0)),
    s6.SDMA_PKT_COPY_LINEAR(count=6, src_addr=at + 1, dst_addr=at + 101),
    s6.SDMA_PKT_WRITE_UNTILED(dst_addr=at + 128, count=1, payload=(7, 8)),
    s6.SDMA_PKT_CONSTANT_FILL(fillsize=2, dst_addr=at + 256, src_data=0x01020304, count=15),
    s6.SDMA_PKT_ATOMIC(atomic_op=p4.TC_OP.TC_OP_ATOMIC_ADD_RTN_64, addr=at + 128, src_data=1, cmp_data=0),
    s6.SDMA_PKT_TIMESTAMP_GET_GLOBAL(write_addr=at + 512),
    s6.SDMA_PKT_COND_EXE(addr=at + 128, reference=1, exec_count=4),
    s6.SDMA_PKT_FENCE(addr=at + 520, data=1),
    s6.SDMA_PKT_COND_EXE(addr=at + 128, reference=8, exec_count=4),
    s6.SDMA_PKT_FENCE(addr=at + 524, data=2),
    s6.SDMA_PKT_GCR_REQ(base_va=0, limit_va=0),
    poll(at + 524, 2),
    s6.SDMA_PKT_FENCE(addr=at + 528, data=3),
  )
  client.run()
  assert bytes(memory.view[101:108]) == b"bcdefgh" and memory.u64[16] == (8 << 32 | 7) + 1
  assert memory.u32[64:69].tolist() == [0x01020304] * 4 + [0] and memory.u64[64] > 0
  assert memory.u32[130:133].tolist() == [0, 2, 3] and queue.state == "ready" and queue.read_pointer == queue.at
  assert client.machine.report() == ["SDMA packet SDMA_PKT_GCR_REQ x1: no caches are modelled"]


def test_copy_engine_indirect_buffer(client: Client) -> None:
  queue, memory = client.queue(copy=True), client.alloc(4096)
  words = sdma.stream([s6.SDMA_PKT_FENCE(mtype=UC, addr=memory.address, data=4)])
  memory.u32[64 : 64 + len(words)] = _words(words)
  queue.submit(
    s6.SDMA_PKT_NOP(payload=()),
    s6.SDMA_PKT_NOP(payload=()),
    s6.SDMA_PKT_INDIRECT(ib_base=memory.address + 256, ib_size=len(words), csa_addr=0),
  )
  client.run()
  assert memory.u32[0] == 4 and client.machine.report() == []


def test_two_gpus_copy_to_each_other() -> None:
  client = Client(Machine("gfx1100,gfx1100"))
  near, far = client.alloc(4096, VRAM, 0, map_to=[0, 1]), client.alloc(4096, VRAM, 1, map_to=[1])
  near.view[:4] = b"peer"
  there = client.queue(1, copy=True)
  there.submit(s6.SDMA_PKT_COPY_LINEAR(count=3, src_addr=near.address, dst_addr=far.address))
  client.run()
  assert bytes(far.view[:4]) == b"peer"
  here = client.queue(0, copy=True)  # GPU 0 has no mapping of GPU 1's memory
  here.submit(s6.SDMA_PKT_COPY_LINEAR(count=3, src_addr=near.address, dst_addr=far.address))
  client.run()
  assert here.state == "faulted" and there.state == "ready"


# ---- interrupts and events


@pytest.mark.parametrize("memory_model", ["strong", "weak"])
def test_a_release_signals_its_event(memory_model: str) -> None:
  client = Client(Machine(memory=memory_model))
  page = client.alloc(kfd.KFD_SIGNAL_EVENT_LIMIT * 8)
  event = client.call("CREATE_EVENT", event_type=kfd.KFD_IOC_EVENT_SIGNAL, auto_reset=1, event_page_offset=page.handle)
  assert (
    event.event_id
    and event.event_page_offset
    and client.wait_events([event.event_id])[0] == kfd.KFD_IOC_WAIT_RESULT_TIMEOUT
  )
  queue = client.queue()
  slot = page.address + event.event_id * 8
  queue.submit(
    release(
      slot, event.event_id, interrupt=p4.RELEASE_MEM_int_sel.send_interrupt_after_write_confirm, event=event.event_id
    )
  )
  assert client.wait_events([event.event_id], timeout=1000)[0] == kfd.KFD_IOC_WAIT_RESULT_COMPLETE
  assert client.wait_events([event.event_id])[0] == kfd.KFD_IOC_WAIT_RESULT_TIMEOUT  # reset by the wait
  copy = client.queue(copy=True)
  copy.submit(s6.SDMA_PKT_FENCE(mtype=UC, addr=slot, data=1), s6.SDMA_PKT_TRAP(int_context=event.event_id))
  assert client.wait_events([event.event_id], timeout=0xFFFF_FFFF)[0] == kfd.KFD_IOC_WAIT_RESULT_COMPLETE


def test_events_of_the_host(client: Client) -> None:
  sticky, auto = client.event(auto_reset=False), client.event()
  both = [sticky.event_id, auto.event_id]
  client.call("SET_EVENT", event_id=sticky.event_id)
  assert client.wait_events(both)[0] == client.wait_events(both)[0] == kfd.KFD_IOC_WAIT_RESULT_COMPLETE
  assert client.wait_events(both, wait_all=True)[0] == kfd.KFD_IOC_WAIT_RESULT_TIMEOUT
  client.call("SET_EVENT", event_id=auto.event_id)
  assert client.wait_events(both, wait_all=True)[0] == kfd.KFD_IOC_WAIT_RESULT_COMPLETE
  client.call("RESET_EVENT", event_id=sticky.event_id)
  assert client.wait_events(both)[0] == kfd.KFD_IOC_WAIT_RESULT_TIMEOUT
  memory = client.event(kfd.KFD_IOC_EVENT_MEMORY)
  assert memory.event_id >= 4096 and client.errno("SET_EVENT", event_id=memory.event_id) == 22
  client.call("DESTROY_EVENT", event_id=auto.event_id)
  assert (
    client.errno("DESTROY_EVENT", event_id=auto.event_id) == client.errno("SET_EVENT", event_id=auto.event_id) == 22
  )
  assert client.errno("WAIT_EVENTS", events_ptr=8, num_events=1) == 14


def test_a_wait_without_end_that_nobody_can_end_says_so(client: Client) -> None:
  event = client.event()
  with pytest.raises(OSError, match="nothing can signal"):
    client.wait_events([event.event_id], timeout=0xFFFF_FFFF)


# ---- faults


@pytest.mark.parametrize("copy", [False, True])
def test_an_unmapped_address_is_a_memory_exception(client: Client, copy: bool) -> None:
  event, sibling, memory = client.event(kfd.KFD_IOC_EVENT_MEMORY), client.queue(), client.alloc(4096)
  queue = client.queue(copy=copy)
  bad = 0x7000_1234_5678
  queue.submit(s6.SDMA_PKT_FENCE(addr=bad, data=1) if copy else write(bad, 1))
  result, data = client.wait_events([event.event_id], timeout=0xFFFF_FFFF)
  assert result == kfd.KFD_IOC_WAIT_RESULT_COMPLETE
  fault = data[0].memory_exception_data
  assert (fault.va, fault.gpu_id, fault.failure.NotPresent, fault.failure.ReadOnly) == (
    bad & ~4095,
    client.gpu_ids[0],
    1,
    1,
  )
  assert queue.state == "faulted" and sibling.state == "evicted"
  sibling.submit(write(memory.address, 1))
  client.run()
  assert memory.u32[0] == 0
  assert any(f"write of 4 bytes at {bad:#x}" in line for line in client.machine.report())
  assert b"amdgpu" in client.port.read("/dev/kmsg") and hex(bad).encode() in client.port.read("/dev/kmsg")


def test_a_write_to_read_only_memory_says_so(client: Client) -> None:
  event, memory, queue = (
    client.event(kfd.KFD_IOC_EVENT_MEMORY),
    client.alloc(4096, VRAM, flags=READ_ONLY),
    client.queue(),
  )
  queue.submit(write(memory.address, 1))
  failure = client.wait_events([event.event_id], timeout=1)[1][0].memory_exception_data.failure
  assert (failure.NotPresent, failure.ReadOnly) == (0, 1)


def test_a_new_process_can_use_the_gpu_after_a_fault() -> None:
  machine = Machine(vram=512 << 20)
  first = Client(machine)
  free = machine.gpus[0].vram_allocator.free_bytes
  first.alloc(16 << 20, VRAM).u32[0] = 5
  queue = first.queue()
  queue.submit(write(0x1000, 1))
  first.run()
  assert queue.state == "faulted" and first.queue().state == "evicted"  # this process is off the GPU
  first.port.end()
  assert machine.gpus[0].vram_allocator.free_bytes == free and not machine.queues
  second = Client(machine)
  memory, queue = second.alloc(16 << 20, VRAM), second.queue()
  assert memory.u32[0] == 0  # nothing of the first process is left
  queue.submit(write(memory.address, 7))
  second.run()
  assert memory.u32[0] == 7
  second.port.end()


def test_the_other_gpu_and_the_other_machine_go_on() -> None:
  client, elsewhere = Client(Machine("gfx1100,gfx1100")), Client()
  bad, good, far = client.queue(0), client.queue(1), elsewhere.queue()
  memory, apart = client.alloc(4096, GTT, 1), elsewhere.alloc(4096)
  bad.submit(write(0x1000, 1))
  good.submit(write(memory.address, 2))
  far.submit(write(apart.address, 3))
  client.run()
  assert memory.u32[0] == 2 and apart.u32[0] == 0 and bad.state == "faulted" and good.state == "ready"
  elsewhere.run()
  assert apart.u32[0] == 3 and elsewhere.machine.report() == []


@pytest.mark.parametrize(
  "words",
  [[0xC000_0A00 | 0x200, 0], [0xFFFF_FFFF, 0, 0], [0x0000_0001, 0], [0xC001_1000 | 1, 0, 0], [0xC000_7600, 0x10_0000]],
)
def test_words_that_are_no_packet_hang_the_queue(client: Client, words: list[int]) -> None:
  event, queue = client.event(kfd.KFD_IOC_EVENT_HW_EXCEPTION), client.queue()
  queue.push(words + [0] * 64 if words[0] == 0xFFFF_FFFF else words)
  result, data = client.wait_events([event.event_id], timeout=0xFFFF_FFFF)
  assert (
    result == kfd.KFD_IOC_WAIT_RESULT_COMPLETE
    and data[0].hw_exception_data.reset_cause == kfd.KFD_HW_EXCEPTION_GPU_HANG
  )
  assert queue.state == "hung" and "hung" in str(client.machine.report())


def test_unknown_copy_packets_hang_the_queue(client: Client) -> None:
  queue = client.queue(copy=True)
  queue.push([0x0000_00EE])
  client.run()
  assert queue.state == "hung" and "0xee" in str(client.machine.report())


def test_what_is_not_modelled_is_raised_by_name(client: Client) -> None:
  queue = client.queue()
  queue.submit(p4.REWIND())
  with pytest.raises(Unsupported, match="REWIND"):
    client.run()
  assert queue.state == "hung"
  other = Client()
  queue = other.queue()
  queue.submit(pm4.set_sh_reg(gc.COMPUTE_RELAUNCH, 1))
  with pytest.raises(Unsupported, match="COMPUTE_RELAUNCH"):
    other.run()


def test_bits_that_a_register_does_not_have_are_refused(client: Client) -> None:
  queue = client.queue()
  queue.submit(pm4.set_sh_reg(gc.COMPUTE_PGM_HI, 0x100))
  client.run()
  assert queue.state == "hung" and "COMPUTE_PGM_HI" in str(client.machine.report())


def test_doorbells_that_make_no_sense(client: Client) -> None:
  queue = client.queue()
  queue.submit(p4.NOP(payload=()))
  client.run()
  queue.ring_doorbell(0)
  assert queue.state == "hung"
  second = client.queue()
  client.port.doorbell(second.doorbell, 0)
  third = Client()
  over = third.queue()
  over.ring_doorbell(5000)
  assert over.state == "hung" and "never passes" in str(third.machine.report())


def test_a_write_pointer_left_behind_is_doubtful(client: Client) -> None:
  queue = client.queue()
  queue.push(pm4.stream([p4.NOP(payload=())]), ring=False)
  client.port.doorbell(queue.doorbell, queue.at)
  assert "would lose the submission" in str(client.machine.report())


def test_the_report_lists_what_has_no_effect(client: Client) -> None:
  queue = client.queue()
  flush = p4.ACQUIRE_MEM(coher_size=0, coher_base=0)
  queue.submit(flush, flush, pm4.set_sh_reg(gc.COMPUTE_RESOURCE_LIMITS, 0))
  client.run()
  assert client.machine.report() == [
    "PM4 packet ACQUIRE_MEM x2: no caches are modelled",
    "register COMPUTE_RESOURCE_LIMITS x1: a dispatch has the whole chip to itself",
  ]


def test_what_a_chip_has_no_bits_for_has_no_effect(client: Client) -> None:
  """Linux flushes with 0xffffff in COHER_SIZE_HI, tinygrad with 0xffffffff: the register has 8 bits."""
  queue = client.queue()
  for unused in (0xFFFF, 0xFFFFFF):
    p = p4.ACQUIRE_MEM(coher_size=(1 << 40) - 1, coher_base=0, coher_size_unused=unused)
    assert pm4.encode(p)[3] == unused << 8 | 0xFF and f"coher_size_unused={unused:#x}, coher_base" in repr(p)
    queue.submit(p)
  assert "unused" not in repr(p4.ACQUIRE_MEM(coher_size=1, coher_base=0))
  client.run()
  assert queue.read_pointer == 16 and "hung" not in str(client.machine.report())


def test_a_fill_that_leaves_its_memory_faults_before_it_writes(client: Client) -> None:
  queue, memory = client.queue(copy=True), client.alloc(4096, VRAM)
  end = memory.address + 4096
  queue.submit(s6.SDMA_PKT_CONSTANT_FILL(fillsize=2, dst_addr=end - 16, src_data=1, count=(1 << 30) - 1))
  client.run()
  assert queue.state == "faulted" and memory.u32[1020] == 0


@settings(max_examples=examples(60))
@given(seed=st.integers(0, 1 << 30))
def test_no_packet_hurts_the_host(seed: int) -> None:
  """Random legal fields of every declared packet, random words: the queue goes on or stops with a named error."""
  rng = random.Random(seed)
  client = Client(Machine(executor=lambda queue, program, size, data: 1))
  memory = client.alloc(1 << 16, VRAM)
  for copy, kinds, stream in ((False, p4.PACKETS, pm4), (True, s6.PACKETS, sdma)):
    queue = client.queue(copy=copy)
    for _ in range(4):
      packet = rng.choice(kinds).fuzz(rng)
      for field in packet.FIELDS:
        if field.width == 64 and rng.random() < 0.7:
          setattr(packet, field.name, memory.address + 8 * rng.randrange(4096))
      try:
        words = stream.encode(packet)
      except EncodeError:
        words = [rng.getrandbits(32) for _ in range(4)]
      if len(words) < 512:
        queue.push(words)
      try:
        client.run()
      except Unsupported:
        pass
    assert queue.state in {"ready", "blocked", "hung", "faulted", "evicted"}
  assert client.errno("GET_VERSION") == 0
  client.port.end()


# ---- any interleaving


@settings(max_examples=examples(25))
@given(seed=st.integers(0, 1 << 30), chain=st.lists(st.integers(0, 3), min_size=4, max_size=24))
def test_a_token_passed_between_queues_arrives_in_every_order(seed: int, chain: list[int]) -> None:
  """Each hand-over is a wait and a signal on another queue; whatever the scheduler does, the steps happen in order."""
  client = Client(Machine(seed=seed))
  queues = [client.queue(), client.queue(), client.queue(copy=True), client.queue(copy=True)]
  memory = client.alloc(4096)
  token, counter = memory.address, memory.address + 64
  for who in random.Random(seed).sample(
    range(4), 4
  ):  # each queue gets its own steps in order; queues are filled in any order
    for step, mine in enumerate(chain):
      if mine != who:
        continue
      if queues[who].copy:
        queues[who].submit(
          poll(token, step),
          s6.SDMA_PKT_FENCE(addr=counter + 4 * step, data=step + 1),
          s6.SDMA_PKT_FENCE(addr=token, data=step + 1),
        )
      else:
        queues[who].submit(wait(token, step), write(counter + 4 * step, step + 1), write(token, step + 1))
  assert client.port.wait(lambda: memory.u32[0] == len(chain), 1.0)
  assert memory.u32[16 : 16 + len(chain)].tolist() == list(range(1, len(chain) + 1))
  assert client.machine.report() == []
  client.port.end()


@settings(max_examples=examples(10))
@given(seed=st.integers(0, 1 << 30))
def test_one_seed_one_run(seed: int) -> None:
  def run() -> tuple[list[str], list[int]]:
    client = Client(Machine(seed=seed, tracing=True))
    memory = client.alloc(4096)
    queues = [client.queue() for _ in range(3)]
    for i, queue in enumerate(queues):
      for n in range(8):
        queue.submit(
          p4.ATOMIC_MEM(atomic=p4.TC_OP.TC_OP_ATOMIC_SWAP_32, addr=memory.address, src_data=i * 8 + n, cmp_data=0),
          write(memory.address + 64 + 4 * (i * 8 + n), 1),
        )
    client.run()
    return [e.source for e in client.machine.trace if e.kind == "packet"], memory.u32[:64].tolist()

  assert run() == run()


def test_seeds_differ() -> None:
  orders = set()
  for seed in range(6):
    client = Client(Machine(seed=seed, tracing=True))
    queues = [client.queue(), client.queue()]
    for queue in queues:
      for _ in range(6):
        queue.submit(p4.NOP(payload=()))
    client.run()
    orders.add(tuple(e.source for e in client.machine.trace if e.kind == "packet"))
  assert len(orders) > 1


def test_snapshots_tell_what_changed(client: Client) -> None:
  queue = client.queue()
  before = client.machine.snapshot()
  queue.submit(pm4.set_sh_reg(gc.COMPUTE_USER_DATA_0, 5))
  client.run()
  changes = Machine.diff(before, client.machine.snapshot())
  assert "GPU0.PM4.0 read: 0x0 -> 0x3" in changes and "GPU0.PM4.0 COMPUTE_USER_DATA_0: 0x0 -> 0x5" in changes
  client.call("DESTROY_QUEUE", queue_id=queue.queue_id)
  assert "GPU0.PM4.0: destroyed" in Machine.diff(before, client.machine.snapshot())


# ---- coverage, pinned


def test_declared_packets_without_handler_are_these() -> None:
  """A gap is a reviewed line: a new packet in the tables, or a new handler, changes this list."""
  assert ComputeQueue.packets_table.gaps(p4.PACKETS) == [
    "ATOMIC_GDS",
    "COND_EXEC",
    "COND_INDIRECT_BUFFER",
    "COND_WRITE",
    "DISPATCH_TASK_STATE_INIT",
    "DISPATCH_TASKMESH_DIRECT_ACE",
    "DISPATCH_TASKMESH_INDIRECT_MULTI_ACE",
    "DMA_DATA_FILL_MULTI",
    "EVENT_WRITE_ADDRESS",
    "INDIRECT_BUFFER_PASID",
    "REWIND",
    "SET_CONFIG_REG",
    "SET_QUEUE_REG",
    "LOAD_SH_REG_INDEX",
    "PERFMON_CONTROL",
    "PERF_COUNTER_WINDOW",
    "SET_SH_REG_PAIRS_PACKED",
    "SET_SH_REG_PAIRS_PACKED_N",
    "TIMESTAMP",
  ]
  handled = set(s6.PACKETS) - {p for p in s6.PACKETS if p.__name__ in SdmaQueue.packets_table.gaps(s6.PACKETS)}
  assert {p.__name__.removeprefix("SDMA_PKT_") for p in handled} == {
    "COPY_LINEAR",
    "COPY_LINEAR_SUBWIN",
    "WRITE_UNTILED",
    "CONSTANT_FILL",
    "FENCE",
    "TRAP",
    "POLL_REGMEM",
    "TIMESTAMP_GET",
    "TIMESTAMP_GET_GLOBAL",
    "ATOMIC",
    "NOP",
    "INDIRECT",
    "COND_EXE",
    "GCR_REQ",
    "GCR_USER",
  }
