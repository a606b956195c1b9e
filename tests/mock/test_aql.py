"""AQL queues: dispatches from kernel descriptors, signals, barriers, stalls at invalid packets."""

from __future__ import annotations

import ctypes
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mock.client import VRAM, Client
from tests.mock.test_waves import binary
from tests.strength import examples
from tinyhw.autogen import hsa, kfd
from tinyhw.core.errors import Unsupported
from tinyhw.core.layout import Struct
from tinyhw.mock.amd.machine import Machine
from tinyhw.wire import aql, codeobject

SIGNAL = ctypes.sizeof(hsa.amd_signal_t)


@dataclass
class AqlClient:
  """An AQL queue of 64 packets with its amd_queue_t, a page of signals and a loaded code object."""

  client: Client

  def __post_init__(self) -> None:
    client = self.client
    self.ring, self.state, self.signals = client.alloc(4096), client.alloc(4096), client.alloc(4096)
    card = client.machine.gpus[0].card
    eop, save = client.alloc(4096, VRAM), client.alloc((card.save_area_size + card.debug_memory_size) * card.xccs, VRAM)
    self.queue_id = client.call(
      "CREATE_QUEUE",
      ring_base_address=self.ring.address,
      ring_size=4096,
      gpu_id=client.gpu_ids[0],
      queue_percentage=100,
      queue_type=kfd.KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
      queue_priority=7,
      read_pointer_address=self.state.address + hsa.amd_queue_t.read_dispatch_id.offset,
      write_pointer_address=self.state.address + hsa.amd_queue_t.write_dispatch_id.offset,
      eop_buffer_address=eop.address,
      eop_buffer_size=4096,
      ctx_save_restore_address=save.address,
      ctx_save_restore_size=card.save_area_size,
      ctl_stack_size=card.control_stack_size,
    )
    self.queue = client.machine.kfd.processes[client.port.pid()].queues[self.queue_id.queue_id]
    self.doorbell = client.port.mmap(client.fd, 8192, self.queue_id.doorbell_offset & ~0x1FFF) + (
      self.queue_id.doorbell_offset & 0x1FFF
    )
    self.index = 0
    for slot in range(64):
      self.ring.u32[slot * 16] = hsa.HSA_PACKET_TYPE_INVALID
    code = codeobject.load(binary())
    self.image = client.alloc(len(code.image), VRAM)
    self.image.view[: len(code.image)] = code.link(self.image.address)
    self.store = self.image.address + code.kernel("store").descriptor_offset
    self.arguments, self.data = client.alloc(4096), client.alloc(4096)

  def signal(self, index: int, value: int = 1) -> int:
    """The handle of a signal with this value."""
    struct.pack_into("<qq", self.signals.view, index * SIGNAL, hsa.AMD_SIGNAL_KIND_USER, value)
    return self.signals.address + index * SIGNAL

  def value(self, index: int) -> int:
    return int(struct.unpack_from("<q", self.signals.view, index * SIGNAL + 8)[0])

  def put(self, packet: Struct, ring: bool = True) -> None:
    at = self.index % 64 * 64
    self.ring.view[at : at + 64] = bytes(packet)
    self.index += 1
    self.state.u64[hsa.amd_queue_t.write_dispatch_id.offset // 8] = self.index
    if ring:
      self.client.port.doorbell(self.doorbell, self.index - 1)

  def launch(self, groups: int, value: int, signal: int = 0, slot: int = 0) -> hsa.hsa_kernel_dispatch_packet_t:
    struct.pack_into("<QI", self.arguments.view, slot * 64, self.data.address, value)
    return aql.dispatch(
      (groups, 1, 1),
      (32, 1, 1),
      kernel_object=self.store,
      kernarg_address=self.arguments.address + slot * 64,
      private_bytes=0,
      group_bytes=0,
      completion_signal=signal,
    )


def barrier(*signals: int, either: bool = False, done: int = 0) -> Struct:
  kind = hsa.HSA_PACKET_TYPE_BARRIER_OR if either else hsa.HSA_PACKET_TYPE_BARRIER_AND
  packet = (hsa.hsa_barrier_or_packet_t if either else hsa.hsa_barrier_and_packet_t)(header=aql.header(kind))
  for slot, handle in zip(packet.dep_signal, signals):
    slot.handle = handle
  packet.completion_signal.handle = done
  return packet


@pytest.fixture
def q() -> Iterator[AqlClient]:
  client = Client(Machine(watchdog=20_000))
  yield AqlClient(client)
  client.port.end()


def test_a_dispatch_runs_and_signals(q: AqlClient) -> None:
  q.put(q.launch(3, 100, q.signal(0)))
  assert q.client.port.wait(lambda: q.value(0) == 0, 1.0)
  assert q.data.u32[:96].tolist() == list(range(100, 196)) and q.data.u32[96] == 0
  start, end = struct.unpack_from("<QQ", q.signals.view, hsa.amd_signal_t.start_ts.offset)
  assert 0 < start <= end and q.ring.u32[0] & 0xFF == hsa.HSA_PACKET_TYPE_INVALID
  assert q.state.u64[hsa.amd_queue_t.read_dispatch_id.offset // 8] == 1 and q.client.machine.report() == []


def test_a_stalled_queue_goes_on_without_a_doorbell(q: AqlClient) -> None:
  packet = q.launch(1, 5, q.signal(0))
  packet.header = hsa.HSA_PACKET_TYPE_INVALID
  q.put(packet)
  q.client.run()
  assert q.value(0) == 1
  q.ring.u32[0] = q.ring.u32[0] & ~0xFF | hsa.HSA_PACKET_TYPE_KERNEL_DISPATCH
  assert q.client.port.wait(lambda: q.value(0) == 0, 1.0)


def test_barriers(q: AqlClient) -> None:
  first, second, done = q.signal(0), q.signal(1), q.signal(2)
  q.put(barrier(first, second, either=True))
  q.put(barrier(first, second, done=done))
  q.client.run()
  assert q.queue.state.value == "blocked" and "any signal of" in str(q.client.machine.report())
  q.signal(0, 0)
  q.client.run()
  assert q.queue.read == 1 and q.queue.state.value == "blocked"
  q.signal(1, 0)
  q.client.run()
  assert q.queue.read == 2 and q.value(2) == 0 and q.queue.state.value == "ready"


def test_a_barrier_on_a_value(q: AqlClient) -> None:

  header = hsa.hsa_amd_vendor_packet_header_t(
    header=hsa.HSA_PACKET_TYPE_VENDOR_SPECIFIC, AmdFormat=hsa.HSA_AMD_PACKET_TYPE_BARRIER_VALUE
  )
  packet = hsa.hsa_amd_barrier_value_packet_t(header=header, value=5, mask=-1, cond=hsa.HSA_SIGNAL_CONDITION_GTE)
  packet.signal.handle, packet.completion_signal.handle = q.signal(0, 4), q.signal(1)
  q.put(packet)
  q.client.run()
  assert q.value(1) == 1
  q.signal(0, 7)
  q.client.run()
  assert q.value(1) == 0


def test_a_completion_wakes_its_event(q: AqlClient) -> None:
  page = q.client.alloc(kfd.KFD_SIGNAL_EVENT_LIMIT * 8)
  event = q.client.call(
    "CREATE_EVENT", event_type=kfd.KFD_IOC_EVENT_SIGNAL, auto_reset=1, event_page_offset=page.handle
  )
  handle = q.signal(0)
  struct.pack_into(
    "<QI", q.signals.view, hsa.amd_signal_t.event_mailbox_ptr.offset, page.address + 8 * event.event_id, event.event_id
  )
  q.put(q.launch(1, 0, handle))
  assert q.client.wait_events([event.event_id], timeout=1000)[0] == kfd.KFD_IOC_WAIT_RESULT_COMPLETE


def test_what_the_packet_processor_refuses(q: AqlClient) -> None:
  packet = q.launch(1, 0)
  packet.workgroup_size_y = 0
  q.put(packet)
  q.client.run()
  assert q.queue.state.value == "hung" and "workgroups of (32, 0, 1)" in str(q.client.machine.report())


def test_partial_workgroups_are_not_modelled(q: AqlClient) -> None:
  packet = q.launch(1, 0)
  packet.grid_size_x = 33
  q.put(packet)
  with pytest.raises(Unsupported, match="partial workgroups"):
    q.client.run()


def test_a_bad_kernel_object_is_a_page_fault(q: AqlClient) -> None:
  packet = q.launch(1, 0)
  packet.kernel_object = 0x4000
  q.put(packet)
  q.client.run()
  assert q.queue.state.value == "faulted"


@settings(max_examples=examples(10))
@given(seed=st.integers(0, 1 << 30))
def test_two_queues_hand_over_in_any_order_and_wrap(seed: int) -> None:
  """200 hand-overs through 64 slots: barrier on the other queue's last signal, then a dispatch that signals."""
  client = Client(Machine(seed=seed))
  pair = AqlClient(client), AqlClient(client)
  shared, rng = pair[0].signals, random.Random(seed)

  def handle(step: int) -> int:
    struct.pack_into("<qq", shared.view, step % 32 * SIGNAL, hsa.AMD_SIGNAL_KIND_USER, 1)
    return shared.address + step % 32 * SIGNAL

  last = 0
  for step in range(100):
    queue = pair[step & 1]
    signal = handle(step)
    if last:
      queue.put(barrier(last))
    queue.put(queue.launch(1, step, signal, step % 32))
    last = signal
    if rng.random() < 0.3 or step % 16 == 15:
      client.run()
  client.run()
  assert [p.queue.read for p in pair] == [p.index for p in pair] == [99, 100]
  assert pair[1].data.u32[0] == 99 and client.machine.report() == []
  client.port.end()
