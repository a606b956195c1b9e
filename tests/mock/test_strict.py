"""What a chip does not forgive, and the mock neither: queues that leave their engine, missing buffers, wrong events."""

from __future__ import annotations

import errno
from collections.abc import Iterator

import pytest

from tests.mock.client import FLAGS, USERPTR, VRAM, Client
from tests.mock.test_queues import release, write
from tests.strength import seeds
from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import kfd, mqd
from tinyhw.autogen import pm4_gfx11 as p4
from tinyhw.autogen import sdma_v6 as s6
from tinyhw.core.errors import EncodeError, Unsupported
from tinyhw.mock.amd.chip.registers import MODELLED, registers_of
from tinyhw.mock.amd.machine import TURNS_ON_ENGINE, Machine
from tinyhw.wire import pm4

MOST = TURNS_ON_ENGINE[1]


@pytest.fixture
def client() -> Iterator[Client]:
  client = Client()
  yield client
  client.port.end()


# ---- queues leave their engine and come back


@pytest.mark.parametrize(("card", "preload", "size"), [
  ("gfx1100", mqd.PRELOAD_GFX11, mqd.PRELOAD_SIZE_GFX11), ("gfx1201", mqd.PRELOAD_GFX12, mqd.PRELOAD_SIZE_GFX12)])
def test_every_register_that_a_dispatch_reads_is_the_queues_own(card: str, preload: dict[str, int], size: int) -> None:
  """The kernel's descriptor of a queue, not a copy of what the mock models."""
  known = registers_of(card)
  names = {r.__name__ for r in known.declared.REGISTERS if r.OFFSET in MODELLED}
  assert names <= preload.keys() and known.kept >= MODELLED
  assert max(preload.values()) < size
  assert not {"GRBM_GFX_INDEX", "TA_CS_BC_BASE_ADDR"} & preload.keys()


def test_registers_outside_of_the_descriptor_are_lost(client: Client) -> None:
  queue = client.queue()
  queue.submit(pm4.set_sh_reg(gc.COMPUTE_USER_DATA_3, 77), pm4.set_uconfig_reg(gc.TA_CS_BC_BASE_ADDR, 5))
  for _ in range(2 * MOST):
    queue.submit(p4.NOP(payload=()))
    client.run()
  (mock,) = client.machine.queues
  registers = mock.snapshot()
  assert registers["COMPUTE_USER_DATA_3"] == 77 and registers["TA_CS_BC_BASE_ADDR"] != 5


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("seed", seeds(range(4)))
def test_a_write_pointer_that_is_never_stored_hangs_the_queue(copy: bool, seed: int) -> None:
  client = Client(Machine(seed=seed))
  queue = client.queue(copy=copy)
  for _ in range(MOST + 1):
    queue.push(pm4.stream([p4.NOP(payload=())]) if not copy else [0], ring=False)
    client.port.doorbell(queue.doorbell, queue.at * (4 if copy else 1))
    client.run()
  assert queue.state == "hung" and "write pointer in memory" in str(client.machine.report())
  client.port.end()


@pytest.mark.parametrize("memory_model", ["strong", "weak"])
@pytest.mark.parametrize("seed", seeds(range(6)))
def test_a_doorbell_of_a_queue_that_is_off_its_engine_is_lost(seed: int, memory_model: str) -> None:
  """The submission is found with the next doorbell, when the pointer in memory is right again; also what was read of
  the ring and has not begun."""
  client = Client(Machine(seed=seed, memory=memory_model))
  queue, memory = client.queue(), client.alloc(4096, flags=FLAGS | kfd.KFD_IOC_ALLOC_MEM_FLAGS_COHERENT)
  late = 0
  for step in range(1, 2 * MOST):
    queue.push(pm4.stream([write(memory.address, step)]), ring=False)
    client.port.doorbell(queue.doorbell, queue.at)  # the pointer in memory is that of the submission before
    client.run()
    late += memory.u32[0] != step
    queue.write.u64[0] = queue.at
  assert late and queue.state == "ready"
  for _ in range(MOST + 1):
    client.port.doorbell(queue.doorbell, queue.at)
    client.run()
  assert memory.u32[0] == 2 * MOST - 1
  client.port.end()


def test_a_new_ring_goes_on_from_the_pointers_in_memory(client: Client) -> None:
  queue, memory = client.queue(), client.alloc(4096)
  queue.submit(p4.NOP(payload=()))
  client.run()
  stopped = {"queue_id": queue.queue_id, "ring_base_address": queue.ring.address, "ring_size": 4096}
  client.call("UPDATE_QUEUE", **stopped, queue_percentage=0)
  queue.push(pm4.stream([write(memory.address, 9)]), ring=False)
  queue.write.u64[0] = queue.at  # and no doorbell
  client.run()
  assert memory.u32[0] == 0
  client.call("UPDATE_QUEUE", **stopped, queue_percentage=100)
  client.run()
  assert memory.u32[0] == 9


def test_a_write_pointer_in_user_memory_is_refused(client: Client) -> None:
  """The scheduler reads it: the kernel pins it, and pins no user memory (amdgpu_bo_pin)."""
  arguments, _, _, _ = client.queue_arguments()
  at = client.port.mmap(-1, 4096)
  buffer = client.call("ALLOC_MEMORY_OF_GPU", va_addr=at, size=4096, gpu_id=client.gpu_ids[0], flags=USERPTR | FLAGS,
                       mmap_offset=at)
  client.map(buffer.handle, [0])
  assert client.errno("CREATE_QUEUE", **arguments | {"read_pointer_address": at}) == 0
  assert client.errno("CREATE_QUEUE", **arguments | {"write_pointer_address": at}) == errno.EPERM


# ---- events of a queue


def test_without_an_eop_buffer_nothing_ends(client: Client) -> None:
  """CREATE_QUEUE takes it, as the kernel does."""
  arguments, ring, read, pointer = client.queue_arguments()
  made = client.call("CREATE_QUEUE", **arguments | {"eop_buffer_address": 0, "eop_buffer_size": 0})
  memory = client.alloc(4096)
  at = client.port.mmap(client.fd, 8192, made.doorbell_offset & ~0x1FFF) + (made.doorbell_offset & 0x1FFF)
  words = pm4.stream([write(memory.address, 5), release(memory.address + 8, 6), write(memory.address, 7)])
  ring.u32[: len(words)] = memoryview(bytes(b for w in words for b in w.to_bytes(4, "little"))).cast("I")
  pointer.u64[0] = len(words)
  client.port.doorbell(at, len(words))
  client.run()
  assert memory.u32[0] == 5 and memory.u32[2] == 0
  assert any("no EOP buffer" in line for line in client.machine.report())
  assert any("RELEASE_MEM waits for a free entry of the EOP buffer" in line for line in client.machine.report())


@pytest.mark.parametrize(
  ("event", "index", "fits"),
  [
    ("CACHE_FLUSH_AND_INV_TS_EVENT", 5, True),
    ("BOTTOM_OF_PIPE_TS", 5, True),
    ("CS_DONE", 6, True),
    ("CS_DONE", 5, False),
    ("BOTTOM_OF_PIPE_TS", 6, False),
    ("CS_PARTIAL_FLUSH", 5, False),
  ],
)
def test_the_event_of_a_release_fits_its_index(client: Client, event: str, index: int, fits: bool) -> None:
  queue, memory = client.queue(), client.alloc(4096)
  packet = release(memory.address, 1)
  packet.event_type, packet.event_index = p4.VGT_EVENT_TYPE[event], index
  queue.submit(packet)
  client.run()
  assert memory.u32[0] == 1 and any("event_index" in line for line in client.machine.report()) is not fits


def test_an_interrupt_that_signals_nobody_is_doubtful(client: Client) -> None:
  page = client.alloc(kfd.KFD_SIGNAL_EVENT_LIMIT * 8)
  event = client.call("CREATE_EVENT", event_type=kfd.KFD_IOC_EVENT_SIGNAL, auto_reset=1, event_page_offset=page.handle)
  copy = client.queue(copy=True)
  copy.submit(s6.SDMA_PKT_FENCE(addr=page.address + 8 * event.event_id, data=1), s6.SDMA_PKT_TRAP(int_context=9))
  client.run()
  assert client.machine.report() == []  # the kernel looks through all slots where the named one was not written
  copy.submit(s6.SDMA_PKT_FENCE(addr=page.address + 8 * 77, data=1), s6.SDMA_PKT_TRAP(int_context=77))
  client.run()
  assert "signals no event" in str(client.machine.report())


def test_the_mailbox_is_mapped_on_the_gpu_that_writes_it() -> None:
  client = Client(Machine("gfx1100,gfx1100"))
  page = client.alloc(kfd.KFD_SIGNAL_EVENT_LIMIT * 8, map_to=[0])
  event = client.call("CREATE_EVENT", event_type=kfd.KFD_IOC_EVENT_SIGNAL, auto_reset=1, event_page_offset=page.handle)
  both = p4.RELEASE_MEM_int_sel.send_interrupt_after_write_confirm
  signal = release(page.address + 8 * event.event_id, event.event_id, interrupt=both, event=event.event_id)
  second = client.queue(1)
  second.submit(signal)
  client.run()
  assert second.state == "faulted" and client.wait_events([event.event_id])[0] != kfd.KFD_IOC_WAIT_RESULT_COMPLETE
  first = client.queue(0)
  first.submit(signal)
  assert client.wait_events([event.event_id], timeout=1000)[0] == kfd.KFD_IOC_WAIT_RESULT_COMPLETE
  client.port.end()


# ---- dispatches


def _dispatch(client: Client, initiator: int, *, waves: int = 0, wave_size: int = 0) -> list[str]:
  """Dispatch a program that ends at once; the findings."""
  queue, memory = client.queue(), client.alloc(4096, VRAM)
  memory.u32[0] = 0xBFB00000  # s_endpgm
  scratch = client.alloc(4096, VRAM)
  queue.submit(
    pm4.set_sh_reg(gc.COMPUTE_PGM_LO, memory.address >> 8 & 0xFFFF_FFFF, memory.address >> 40),
    pm4.set_sh_reg(gc.COMPUTE_PGM_RSRC1, 0, gc.COMPUTE_PGM_RSRC2(SCRATCH_EN=int(waves > 0)).value()),
    pm4.set_sh_reg(gc.COMPUTE_NUM_THREAD_X, 32, 1, 1),
    pm4.set_sh_reg(gc.COMPUTE_DISPATCH_SCRATCH_BASE_LO, scratch.address >> 8 & 0xFFFF_FFFF, scratch.address >> 40),
    pm4.set_sh_reg(gc.COMPUTE_TMPRING_SIZE, gc.COMPUTE_TMPRING_SIZE(WAVES=waves, WAVESIZE=wave_size).value()),
    p4.DISPATCH_DIRECT(dim_x=1, dim_y=1, dim_z=1, dispatch_initiator=initiator),
  )
  client.run()
  assert queue.state == "ready", client.machine.report()
  return client.machine.findings


START = gc.COMPUTE_DISPATCH_INITIATOR(COMPUTE_SHADER_EN=1, FORCE_START_AT_000=1, CS_W32_EN=1).value()
ANYWHERE = gc.COMPUTE_DISPATCH_INITIATOR(COMPUTE_SHADER_EN=1, CS_W32_EN=1).value()


def test_a_dispatch_says_where_it_starts(client: Client) -> None:
  assert _dispatch(client, START) == []
  assert "FORCE_START_AT_000" in str(_dispatch(client, ANYWHERE))


@pytest.mark.parametrize(("waves", "wave_size", "fits"), [(2, 1, True), (3, 1, False), (1, 2, True), (1, 3, False)])
def test_scratch_has_room_for_all_shader_engines(client: Client, waves: int, wave_size: int, fits: bool) -> None:
  """4,096 bytes: 256 x WAVESIZE bytes for each of WAVES waves of 6 shader engines, whichever slots are used."""
  assert bool(_dispatch(client, START, waves=waves, wave_size=wave_size)) is not fits


def test_a_release_writes_whole_words_at_their_address(client: Client) -> None:
  """The packet's address has no low bits: 2 of them for 32-bit data, 3 for 64-bit data (PAL, RELEASE_MEM)."""
  queue, memory = client.queue(), client.alloc(4096)
  with pytest.raises(EncodeError, match="address"):
    queue.submit(release(memory.address + 2, 1, data=p4.RELEASE_MEM_data_sel.send_32_bit_low))
  queue.submit(release(memory.address + 4, 1, data=p4.RELEASE_MEM_data_sel.send_32_bit_low))
  client.run()
  assert memory.u32[1] == 1
  queue.submit(release(memory.address + 4, 1))
  client.run()
  assert queue.state == "hung" and "multiple of 8" in str(client.machine.report())


@pytest.mark.parametrize("card, needs", [("gfx1100", True), ("gfx942", False)])
def test_an_aql_queue_without_an_eop_buffer_runs_nothing_where_it_needs_one(card: str, needs: bool) -> None:
  """gfx9 goes without (kfd_mqd_manager_v9.c, "only if EOP is used"), as ROCr has it do on several XCCs."""
  client = Client(Machine(card))
  arguments, _, _, pointer = client.queue_arguments()
  kind = kfd.KFD_IOC_QUEUE_TYPE_COMPUTE_AQL
  made = client.call("CREATE_QUEUE", **arguments | {"eop_buffer_address": 0, "eop_buffer_size": 0, "queue_type": kind})
  at = client.port.mmap(client.fd, 8192, made.doorbell_offset & ~0x1FFF) + (made.doorbell_offset & 0x1FFF)
  pointer.u64[0] = 1
  client.port.doorbell(at, 0)  # a packet of zeros: vendor-specific
  if not needs:
    with pytest.raises(Unsupported, match="vendor-specific format 0"): client.run()
    return client.port.end()
  client.run()
  assert any("an AQL packet waits for a free entry of the EOP buffer" in line
             for line in client.machine.report())
  client.port.end()
  return None
