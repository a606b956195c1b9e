"""What the driver asks of the kernel in single cases: the event page, peers, hidden arguments, errors of calls."""

from __future__ import annotations

import errno
from typing import Any

import numpy as np
import pytest

from tinyhw.autogen import kfd, kfd_sysfs
from tinyhw.autogen import pm4_gfx11 as p
from tinyhw.autogen import sdma_v6 as s
from tinyhw.core.errors import DeviceError, DriverError, InvalidArgument, WaitTimeout
from tinyhw.drive.amd.batch import Batch, BatchedLaunch
from tinyhw.drive.amd.device import AMDRuntime
from tinyhw.drive.amd.kfd import Domain, Event, Kfd
from tinyhw.drive.amd.program import HIDDEN, LaunchShape
from tinyhw.drive.amd.topology import Link, gpus


def test_the_event_page_has_a_slot_for_every_event(port: Any, machine: Any) -> None:
  """kfd_event_page_set wants KFD_SIGNAL_EVENT_LIMIT slots of 8 bytes; an event's mailbox is its slot."""
  connection = Kfd.of(port)
  connection.open_gpu(0)
  page = connection.event_page
  assert page is not None and page.size == 4096 * 8
  assert machine.of("CREATE_EVENT")[0]["event_page_offset"] == page.handle
  for slot in (0, 1, 4095):
    assert connection.mailbox(Event(7, 7, slot)) == page.address + 8 * slot
  row = next(a for a in machine.of("ALLOC_MEMORY_OF_GPU") if a["va_addr"] == page.address)
  assert row["flags"] & kfd.KFD_IOC_ALLOC_MEM_FLAGS_GTT and row["flags"] & kfd.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE


@pytest.mark.parametrize(
  ("flags", "peers"), [(0, True), (1, True), (1 << 4, False), (1 << 4 | 1, False), (1 << 3, True)]
)
def test_peers_are_linked_cards_whose_link_carries_dma(port: Any, machine: Any, flags: int, peers: bool) -> None:
  """HSA_IOLINK_FLAGS_NO_PEER_TO_PEER_DMA is bit 4 of a link's flags (kfd_sysfs.h)."""
  assert kfd_sysfs.HSA_IOLINK_FLAGS_NO_PEER_TO_PEER_DMA == 1 << 4
  machine.gpus = 3
  first, second, third = (AMDRuntime(port, k) for k in range(3))

  def link(*pairs: tuple[int, int]) -> None:
    for gpu in (first, second, third):
      object.__setattr__(gpu.gpu.node, "links", tuple(Link(a, b, 2, flags) for a, b in pairs if a == gpu.gpu.node.node))

  for pairs in (((1, 2),), ((2, 1),), ((1, 0), (2, 1))):
    link(*pairs)
    assert first.is_peer(second) == second.is_peer(first) == peers, pairs
    assert not first.is_peer(third) and not third.is_peer(second) and first.is_peer(first)
  link((1, 0), (2, 0), (3, 0))
  assert not first.is_peer(second)
  a = first.alloc(16)
  with pytest.raises(InvalidArgument, match="AMD:1: no peer link to AMD"):
    second.reach(a)
  assert first.reach(a) is first


def test_cards_of_other_connections_are_no_peers(port: Any, machine: Any) -> None:
  machine.gpus = 2
  first, other = AMDRuntime(port), AMDRuntime(type(port)(machine), 1)
  assert not first.is_peer(other) and not other.is_peer(first)


@pytest.mark.parametrize(
  ("grid", "block", "wanted"),
  [
    ((1, 1, 1), (64, 1, 1), 1),
    ((9, 1, 1), (1, 1, 1), 1),
    ((1, 1, 1), (1, 2, 1), 2),
    ((1, 2, 1), (1, 1, 1), 2),
    ((1, 1, 1), (1, 1, 2), 3),
    ((1, 1, 2), (1, 1, 1), 3),
    ((2, 2, 2), (2, 2, 2), 3),
    ((1, 1, 2), (1, 3, 1), 3),
  ],
)
def test_the_dimensions_of_a_launch(grid: tuple[int, int, int], block: tuple[int, int, int], wanted: int) -> None:
  """hidden_grid_dims: up to the last axis that has more than one work-item."""
  assert LaunchShape(grid, block, 0, 0, 0, 0).dimensions == wanted


def test_links_of_both_kinds_are_read(port: Any, machine: Any) -> None:
  machine.gpus = 2
  first, _ = gpus(port)
  assert {(link.node_from, link.node_to) for link in first.links} == {(1, 0), (1, 2)}
  assert all(link.peer_dma and link.type == 2 for link in first.links)


@pytest.mark.parametrize(
  ("kind", "host", "executable", "wanted"),
  [
    (Domain.VRAM, None, False, "VRAM WRITABLE"),
    (Domain.VRAM, True, False, "VRAM WRITABLE PUBLIC"),
    (Domain.VRAM, None, True, "VRAM WRITABLE EXECUTABLE"),
    (Domain.GTT, None, False, "GTT WRITABLE"),
    (Domain.GTT, False, True, "GTT WRITABLE EXECUTABLE"),
    (Domain.MMIO, None, False, "MMIO_REMAP WRITABLE COHERENT"),
  ],
)
def test_flags_of_memory(
  port: Any, machine: Any, kind: Domain, host: bool | None, executable: bool, wanted: str
) -> None:
  connection = Kfd.of(port)
  gpu = connection.open_gpu(0)
  buffer = connection.alloc(gpu, 5000, kind, executable=executable, host=host)
  asked = machine.of("ALLOC_MEMORY_OF_GPU")[-1]["flags"]
  names = {
    n.removeprefix("KFD_IOC_ALLOC_MEM_FLAGS_"): v & 0xFFFFFFFF
    for n, v in vars(kfd).items()
    if n.startswith("KFD_IOC_ALLOC_MEM_FLAGS_")
  }
  always = {Domain.MMIO: set(), Domain.GTT: {"NO_SUBSTITUTE", "COHERENT", "UNCACHED"}}.get(kind, {"NO_SUBSTITUTE"})
  assert {n for n, mask in names.items() if asked & mask} == {*wanted.split(), *always}
  assert buffer.size == 8192 and (buffer.memory is not None) == (kind is not Domain.VRAM if host is None else host)
  if buffer.memory is None:
    with pytest.raises(DeviceError, match=f"{kind.name} buffer at .* is not visible to the host"):
      buffer.bytes()


def test_a_refused_call_says_its_name_errno_and_arguments(
  port: Any, machine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
  connection = Kfd.of(port)
  gpu = connection.open_gpu(0)

  def refuse(fd: int, request: int, argument: Any) -> int:
    raise OSError(errno.EIO, "no")

  reserved: list[tuple[int, int]] = []
  monkeypatch.setattr(port, "munmap", lambda address, size: reserved.append((address, size)))
  monkeypatch.setattr(port, "ioctl", refuse)
  with pytest.raises(DriverError, match="AMDKFD_IOC_ALLOC_MEMORY_OF_GPU") as error:
    connection.alloc(gpu, 4096, Domain.VRAM)
  assert error.value.errno == errno.EIO and len(reserved) == 1 and reserved[0][1] > 4096
  with pytest.raises(DriverError, match="DRM_IOCTL_AMDGPU_INFO"):
    connection.counter_hz(gpu)


@pytest.mark.parametrize(("address", "size"), [(1, 4096), (4096, 4095), (4096, 0), (4096, -4096), (2048, 4096)])
def test_user_memory_is_whole_pages(port: Any, machine: Any, address: int, size: int) -> None:
  connection = Kfd.of(port)
  gpu = connection.open_gpu(0)
  with pytest.raises(InvalidArgument, match="are not whole pages"):
    connection.register_host(gpu, address, size)


def test_one_connection_for_a_port_and_a_second_after_a_fork(
  port: Any, machine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
  first = Kfd.of(port)
  assert Kfd.of(port) is first and len(machine.of("open")) == 1
  assert first.open_gpu(0) is first.open_gpu(0) and len(machine.of("open")) == 2
  monkeypatch.setattr(port, "pid", lambda: -1)
  assert Kfd.of(port) is not first


def test_memory_is_mapped_once_for_each_card(port: Any, machine: Any) -> None:
  machine.gpus = 2
  connection = Kfd.of(port)
  one, two = connection.open_gpu(0), connection.open_gpu(1)
  buffer = connection.alloc(one, 4096, Domain.VRAM)
  before = len(machine.of("MAP_MEMORY_TO_GPU"))
  connection.map_to(buffer, [one.gpu_id, two.gpu_id])
  connection.map_to(buffer, [two.gpu_id])
  assert len(machine.of("MAP_MEMORY_TO_GPU")) == before + 1 and machine.of("MAP_MEMORY_TO_GPU")[-1]["n_devices"] == 1
  assert buffer.mapped == {one.gpu_id, two.gpu_id} and buffer in connection.buffers
  connection.free(buffer)
  assert machine.of("UNMAP_MEMORY_FROM_GPU")[-1]["n_devices"] == 2 and buffer not in connection.buffers
  assert not buffer.mapped and buffer.memory is None


def test_another_interface_version_is_refused(port: Any, machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
  def newer(argument: Any) -> None:
    argument.major_version, argument.minor_version = 2, 0

  monkeypatch.setattr(type(port), "_get_version", lambda self, argument: newer(argument))
  with pytest.raises(DeviceError, match=r"KFD interface 2\.0, this driver speaks 1\.x"):
    Kfd.of(port)


@pytest.mark.parametrize(
  ("read_only", "absent", "no_execute", "access", "reason"),
  [
    (1, 1, 0, "write", "page not present"),
    (0, 1, 0, "read", "page not present"),
    (1, 0, 0, "write", "page is read-only"),
    (0, 0, 1, "execute", "page is not executable"),
  ],
)
def test_what_the_kernel_says_of_a_fault(
  port: Any, machine: Any, read_only: int, absent: int, no_execute: int, access: str, reason: str
) -> None:
  connection = Kfd.of(port)
  row, other = kfd.kfd_event_data(), kfd.kfd_event_data()
  data = row.memory_exception_data
  data.gpu_id, data.va = 0x1000, 0x123456000
  data.failure.ReadOnly, data.failure.NotPresent, data.failure.NoExecute = read_only, absent, no_execute
  connection._collect(data, other.hw_exception_data)
  fault = connection.faults[0x1000]
  assert (fault.gpu_id, fault.message, fault.address, fault.access) == (0x1000, reason, 0x123456000, access)
  data.failure.imprecise = 1
  connection._collect(data, other.hw_exception_data)
  assert connection.faults[0x1000].message == f"{reason}, address imprecise"


def test_what_the_kernel_says_of_a_reset(port: Any, machine: Any) -> None:
  for cause, lost, wanted in (
    (kfd.KFD_HW_EXCEPTION_GPU_HANG, 0, "GPU hang"),
    (kfd.KFD_HW_EXCEPTION_ECC, 1, "uncorrectable memory error, memory lost"),
    (77, 0, "reset"),
  ):
    connection = Kfd(port)
    memory, row = kfd.kfd_event_data(), kfd.kfd_event_data()
    hardware = row.hw_exception_data
    hardware.gpu_id, hardware.reset_cause, hardware.memory_lost = 0x1000, cause, lost
    connection._collect(memory.memory_exception_data, hardware)
    assert connection.faults[0x1000].message == wanted and connection.faults[0x1000].address is None
    memory.memory_exception_data.gpu_id = 0x1001
    connection._collect(memory.memory_exception_data, hardware)  # what came first stays
    assert connection.faults[0x1000].message == wanted and connection.faults[0x1001].address == 0


def test_new_lines_of_the_kernels_log(port: Any, monkeypatch: pytest.MonkeyPatch) -> None:
  text = b"6,1,2,-;usb 1-1: new\n6,2,3,-;amdgpu 0000:03:00.0: first; part\n"
  connection = Kfd.of(port)
  monkeypatch.setattr(port, "read", lambda path: text if path == "/dev/kmsg" else b"")
  assert connection.kernel_log() == ["amdgpu 0000:03:00.0: first; part"] and connection.kernel_log() == []
  text += b" SUBSYSTEM=amdgpu\n6,3,4,-;kfd kfd: second\n"
  assert connection.kernel_log() == ["kfd kfd: second"]
  text = b"6,9,9,-;kfd kfd: third\n"  # the log is a ring: what is older is gone
  assert connection.kernel_log() == ["kfd kfd: third"] and connection.kernel_log() == []


def test_a_buffer_says_whose_it_is(port: Any, machine: Any) -> None:
  connection = Kfd.of(port)
  gpu = connection.open_gpu(0)
  buffer = connection.alloc(gpu, 5000, Domain.GTT)
  assert (buffer.gpu_id, buffer.kind, buffer.size) == (gpu.gpu_id, Domain.GTT, 8192)
  assert buffer.handle == machine.of("MAP_MEMORY_TO_GPU")[-1]["handle"] and buffer.span > 8192  # the guard behind it
  released: list[tuple[int, int]] = []
  port.munmap = lambda address, size: released.append((address, size))
  connection.free(buffer)
  assert released == [(buffer.address, buffer.span)]


def test_a_lost_device_is_not_waited_for_again(port: Any, machine: Any) -> None:
  machine.heap_type = 2  # all copies by the copy engine
  gpu = AMDRuntime(port, timeout_s=0.1)
  machine.stalled = True
  gpu.copyin(gpu.alloc(8), memoryview(bytes(8)))
  machine.memory_fault = (0x1000, 0x5000, False)
  with pytest.raises(DeviceError, match="page fault"):
    gpu.synchronize()
  before = len(machine.of("WAIT_EVENTS"))
  with pytest.raises(DeviceError, match="page fault"):
    gpu.synchronize()
  assert len(machine.of("WAIT_EVENTS")) == before


def test_what_is_remembered_of_launches_has_an_end(port: Any, machine: Any, asks_object: bytes) -> None:
  program = AMDRuntime(port).load(asks_object, "asks")
  for k in range(600):
    assert program._make_hidden((k + 1, 1, 1), (1, 1, 1), 0) == program._hidden[(k + 1, 1, 1), (1, 1, 1), 0]
    assert len(program._hidden) <= 256


def test_a_batch_takes_a_new_grid_after_it_ran(port: Any, machine: Any, add_object: bytes) -> None:
  """Without a kernel that wants a dispatch id, the packets are written only where something changed."""
  gpu = AMDRuntime(port)
  batch = Batch(gpu, [BatchedLaunch(gpu.load(add_object, "add"), bytes(24), (3, 1, 1), (8, 1, 1))])
  for grid in ((3, 1, 1), (3, 1, 1), (5, 2, 1)):
    batch.set_grid(0, grid)
    machine.packets.clear()
    batch.submit()
    gpu.synchronize()
    assert [(d.dim_x, d.dim_y, d.dim_z) for d in machine.packets if isinstance(d, p.DISPATCH_DIRECT)] == [grid]
  batch.close()


def test_interrupts_carry_the_events_numbers(port: Any, machine: Any) -> None:
  """The mailbox is the event's slot, what is written there its id, and the context its trigger data."""
  machine.heap_type = 2  # all copies by the copy engine
  gpu = AMDRuntime(port, timeout_s=0.3)
  machine.stalled = True
  gpu.copyin(gpu.alloc(8), memoryview(bytes(8)))
  with pytest.raises(WaitTimeout):
    gpu.synchronize()
  port.run(machine.queues[0x108], gpu.copier.ring.at * 4)
  (trap,) = [q for q in machine.packets if isinstance(q, s.SDMA_PKT_TRAP)]
  event_id = trap.int_context & ~(1 << 20)
  page = gpu.kfd.event_page
  assert trap.int_context >> 20 == 1 and page is not None
  fences = [(q.addr, q.data) for q in machine.packets if isinstance(q, s.SDMA_PKT_FENCE)]
  assert (page.address + 8 * event_id, event_id) in fences and (page.address + 8 * event_id + 4, 0) in fences


def test_the_counters_frequency_is_needed(port: Any, machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
  connection = Kfd.of(port)
  gpu = connection.open_gpu(0)
  assert connection.counter_hz(gpu) > 0
  monkeypatch.setattr(type(port), "_drm_ioctl_amdgpu_info", lambda self, argument: None)
  with pytest.raises(DeviceError, match="/dev/dri/renderD128: the kernel gives no gpu_counter_freq"):
    connection.counter_hz(gpu)


def test_hidden_arguments_one_by_one() -> None:
  shape = LaunchShape((2, 3, 4), (5, 6, 7), 1000, 0x1_0000_0000_0000, 0x2_0000_0000_0000, 0x1122_3344_5566_7788)
  values = {name: int.from_bytes(make(shape), "little") for name, make in HIDDEN.items()}
  sizes = {name: len(make(shape)) for name, make in HIDDEN.items()}
  assert values == {
    "hidden_grid_dims": 3,
    "hidden_private_base": 0x1_0000,
    "hidden_shared_base": 0x2_0000,
    "hidden_queue_ptr": 0x1122_3344_5566_7788,
    "hidden_dynamic_lds_size": 1000,
    "hidden_block_count_x": 2,
    "hidden_block_count_y": 3,
    "hidden_block_count_z": 4,
    "hidden_group_size_x": 5,
    "hidden_group_size_y": 6,
    "hidden_group_size_z": 7,
    **{f"hidden_{kind}_{x}": 0 for kind in ("remainder", "global_offset") for x in "xyz"},
  }
  assert {
    n: s for n, s in sizes.items() if n.startswith(("hidden_r", "hidden_glo", "hidden_gri", "hidden_group_size"))
  } == {
    "hidden_grid_dims": 2,
    **{f"hidden_{k}_{x}": n for k, n in (("remainder", 2), ("global_offset", 8), ("group_size", 2)) for x in "xyz"},
  }


def test_a_grid_has_32_bits(port: Any, machine: Any, add_object: bytes) -> None:
  program = AMDRuntime(port).load(add_object, "add")
  program.check_grid((0xFFFFFFFF, 1, 1))
  for grid in ((1 << 32, 1, 1), (0, 1, 1), (1, 1, -1), (1, 1)):
    with pytest.raises(InvalidArgument, match="three numbers of workgroups from 1 to 4294967295"):
      program.check_grid(grid)


@pytest.mark.parametrize("shape", [(8,), (2, 4), (2, 2, 2)])
@pytest.mark.parametrize("kind", ["u1", "i1", "<u4"])
def test_copies_of_arrays_of_any_shape(port: Any, shape: tuple[int, ...], kind: str) -> None:
  gpu = AMDRuntime(port)
  data = np.arange(8).astype(kind).reshape(shape)
  back, a = np.zeros_like(data), gpu.alloc(data.nbytes)
  gpu.copyin(a, memoryview(data))
  gpu.copyout(memoryview(back), a)
  assert (back == data).all()


def test_a_scratch_that_grows_is_seen_by_a_batch_that_ran(port: Any, machine: Any, add_object: bytes) -> None:
  gpu = AMDRuntime(port)
  batch = Batch(gpu, [BatchedLaunch(gpu.load(add_object, "add"), bytes(24), (3, 1, 1), (8, 1, 1))])
  batch.submit()
  gpu.require_scratch(1 << 16, "a kernel")
  machine.packets.clear()
  batch.submit()
  gpu.synchronize()
  base, size = gpu.scratch_registers(1 << 16)
  assert batch._generation == gpu.scratch_generation and base and size
  assert bytes(batch._packets.bytes()[: 4 * len(batch._stream.words)]) == bytes(
    memoryview(batch._stream.words).cast("B")
  )
  batch.close()
