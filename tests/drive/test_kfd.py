"""What the driver asks of KFD, in which order and with which sizes; checked against a recording stand-in
(conftest.py)."""
from __future__ import annotations

import errno
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import kfd
from tinyhw.autogen import pm4_gfx11 as p
from tinyhw.autogen import sdma_v6 as s
from tinyhw.core.errors import DeviceError, InvalidArgument, OutOfMemory, Unsupported, WaitTimeout
from tinyhw.drive.amd.device import AMDRuntime
from tinyhw.drive.amd.topology import gpus, save_area
from tinyhw.drive.queue import CommandStream


def test_the_order_of_a_start(port: Any, machine: Any) -> None:
  AMDRuntime(port)
  names = machine.names()
  first = [
    names.index(n)
    for n in ("open", "GET_VERSION", "ACQUIRE_VM", "GET_PROCESS_APERTURES_NEW", "CREATE_EVENT", "CREATE_QUEUE")
  ]
  assert first == sorted(first)
  assert [a["path"] for a in machine.of("open")] == ["/dev/kfd", "/dev/dri/renderD128"]
  page, *others = machine.of("CREATE_EVENT")
  assert page["event_type"] == kfd.KFD_IOC_EVENT_MEMORY and page["event_page_offset"] != 0
  assert all(a["event_page_offset"] == 0 for a in others)


def test_queues_bring_what_the_kernel_checks(port: Any, machine: Any) -> None:
  """kfd_queue_acquire_buffers: each buffer is exactly one mapping, with the sizes of the node."""
  AMDRuntime(port)
  sizes = {a["va_addr"]: a["size"] for a in machine.of("ALLOC_MEMORY_OF_GPU")}
  compute, copy = machine.of("CREATE_QUEUE")
  for a in (compute, copy):
    assert sizes[a["ring_base_address"]] == a["ring_size"] and not a["ring_size"] & (a["ring_size"] - 1)
    assert sizes[a["write_pointer_address"]] == sizes[a["read_pointer_address"]] == 4096
    assert a["queue_percentage"] == 100 and a["queue_priority"] <= kfd.KFD_MAX_QUEUE_PRIORITY
  waves = 96 * 32
  assert sizes[compute["eop_buffer_address"]] == compute["eop_buffer_size"] == 4096
  assert compute["ctl_stack_size"] == 0xA000 and compute["ctx_save_restore_size"] == 0x2600000
  assert sizes[compute["ctx_save_restore_address"]] == 0x2600000 + waves * 32
  assert copy["queue_type"] == kfd.KFD_IOC_QUEUE_TYPE_SDMA and compute["queue_type"] == kfd.KFD_IOC_QUEUE_TYPE_COMPUTE
  assert [m[1] for m in machine.mappings if m[0] >> 62 == 3] == [8192], "doorbells are mapped once, whole"


def test_save_area_is_computed_as_the_kernel_does_where_sysfs_is_silent(port: Any, machine: Any) -> None:
  del machine.properties["cwsr_size"], machine.properties["ctl_stack_size"]
  area = save_area(gpus(port)[0])
  stack = -(-(40 + 3072 * 12 + 8) // 4096) * 4096
  assert (area.control_stack, area.debug) == (stack, 3072 * 32)
  assert area.save_restore == stack + 96 * (0x60000 + 0x4000 + 0x10000 + 0x1000)


def test_topology(port: Any, machine: Any) -> None:
  machine.gpus = 2
  first, second = gpus(port)
  assert (first.target, first.compute_units, first.shader_engines, first.max_waves) == ("gfx1100", 96, 6, 3072)
  assert (second.render_node, second.gpu_id, second.public_vram, second.vram_bytes) == (
    "/dev/dri/renderD129",
    0x1001,
    True,
    1 << 34,
  )


def test_copies_in_and_out_of_any_size(port: Any) -> None:
  gpu = AMDRuntime(port)
  for size in (1, 4096, gpu.bounce.half_bytes, gpu.bounce.half_bytes + 1, 3 * gpu.bounce.half_bytes + 7):
    data, back = os.urandom(size), bytearray(size)
    a, b = gpu.alloc(size), gpu.alloc(size)
    gpu.copyin(a, memoryview(data))
    gpu.copy(b, a, size)
    gpu.copyout(memoryview(back), b)
    assert back == data
    gpu.free(a)
    gpu.free(b)
  with pytest.raises(InvalidArgument, match="freed"): gpu.copyin(a, memoryview(b"1"))
  with pytest.raises(InvalidArgument, match="has 10"): gpu.copyin(gpu.alloc(10), memoryview(bytes(11)))


def test_changing_queues_waits_for_the_timeline_and_staying_does_not(port: Any, machine: Any) -> None:
  machine.heap_type = 2  # all copies by the copy engine
  gpu = AMDRuntime(port)
  a = gpu.alloc(64)
  gpu.synchronize()
  machine.packets.clear()
  gpu.copyin(a, memoryview(bytes(64)))
  assert isinstance(machine.packets[0], s.SDMA_PKT_POLL_REGMEM), "what the caches hold is forgotten after any wait"
  machine.packets.clear()
  gpu.copyin(a, memoryview(bytes(64)))
  assert not [q for q in machine.packets if isinstance(q, s.SDMA_PKT_POLL_REGMEM)]
  machine.stalled = True
  gpu.copyin(a, memoryview(bytes(64)))
  gpu.submit(gpu.compute, gpu.compute_marker())
  queue = machine.queues[0x100]
  port.run(queue, gpu.compute.ring.at)
  wait = next(q for q in machine.packets if isinstance(q, p.WAIT_REG_MEM))
  assert (wait.mem_poll_addr, wait.reference) == (gpu.timeline.signal.address, gpu.timeline.last - 1)


def test_few_bytes_go_through_the_bar_where_nothing_is_queued(port: Any, machine: Any) -> None:
  """The store is flushed."""
  gpu = AMDRuntime(port)
  few, many = gpu.alloc(64), gpu.alloc(1 << 16)
  machine.packets.clear()
  back = bytearray(64)
  assert gpu._hdp is not None and gpu._hdp[0] == 0
  gpu.copyin(few, memoryview(bytes(range(64))))
  assert gpu._hdp[0] == 1
  gpu.copyout(memoryview(back), few)
  assert back == bytes(range(64)) and not machine.packets
  gpu.copyin(many, memoryview(bytes(1 << 16)))
  gpu.copyin(few, memoryview(bytes(64)))
  gpu.copy(many, few, 64)
  assert [type(q).__name__.removeprefix("SDMA_PKT_") for q in machine.packets] == [
    "POLL_REGMEM", "GCR_REQ", *["COPY_LINEAR", "FENCE"] * 2]
  machine.stalled = True
  gpu.submit(gpu.compute, gpu.compute_marker())
  gpu.copyin(few, memoryview(bytes(range(64))))
  assert not any(gpu.host_view(few) or b""), "it is queued behind what runs"
  mmio = [a for a in machine.of("ALLOC_MEMORY_OF_GPU") if a["flags"] & kfd.KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP]
  assert [a["size"] for a in mmio] == [4096]


@pytest.mark.parametrize("refused", [False, True])
def test_a_small_bar_or_a_kernel_without_the_register_leaves_all_to_the_copy_engine(
  port: Any, machine: Any, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
  machine.heap_type = 1 if refused else 2
  allocate = type(port)._alloc_memory_of_gpu

  def without(self: Any, a: Any) -> None:
    if a.flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP: raise OSError(errno.ENOMEM, "no register page")
    allocate(self, a)
  monkeypatch.setattr(type(port), "_alloc_memory_of_gpu", without)
  gpu = AMDRuntime(port)
  a, back = gpu.alloc(64), bytearray(64)
  assert not gpu.host_writes and gpu.host_view(a) is None
  gpu.flush_host_writes()
  gpu.copyin(a, memoryview(bytes(range(64))))
  gpu.copyout(memoryview(back), a)
  assert back == bytes(range(64)) and len([q for q in machine.packets if isinstance(q, s.SDMA_PKT_COPY_LINEAR)]) == 2


def test_a_page_fault_names_address_access_and_buffer_and_how_to_go_on(
  port: Any, machine: Any
) -> None:
  machine.heap_type = 2  # all copies by the copy engine
  gpu = AMDRuntime(port, timeout_s=1)
  a = gpu.alloc(100)
  address = a.address
  assert address is not None
  machine.stalled = True
  gpu.copyin(a, memoryview(bytes(100)))
  machine.memory_fault = (0x1000, address + 4096 + 40, True)
  with pytest.raises(
    DeviceError, match=rf"page fault: write at {address + 4136:#x} \(page not present.*40 bytes past the end"
  ) as error:
    gpu.synchronize()
  assert "new process" in str(error.value) and "in copy;" in str(error.value)
  with pytest.raises(DeviceError, match="page fault"): gpu.copyin(a, memoryview(bytes(100)))
  machine.stalled = False
  gpu.reset()
  back = bytearray(100)
  gpu.copyin(a, memoryview(bytes(range(100))))
  gpu.copyout(memoryview(back), a)
  assert back == bytes(range(100))


def test_a_reset_that_does_not_help_says_so(port: Any, machine: Any) -> None:
  gpu = AMDRuntime(port, timeout_s=0.05)
  machine.stalled = True
  with pytest.raises(DeviceError, match="new process"): gpu.reset()
  with pytest.raises(DeviceError, match="new process"): gpu.alloc(1)


def test_a_fault_of_the_other_gpu_is_not_ours(port: Any, machine: Any) -> None:
  machine.gpus = 2
  first, second = AMDRuntime(port), AMDRuntime(port, 1)
  machine.memory_fault = (0x1001, 0x1000, False)
  first.raise_faults()
  with pytest.raises(DeviceError, match="AMD:1.*read at 0x1000"): second.raise_faults()


def test_a_wait_that_nobody_ends_names_queue_packet_address_and_values(port: Any, machine: Any) -> None:
  gpu = AMDRuntime(port, timeout_s=0.05)
  signal = gpu.new_signal()
  signal.value = 3
  machine.stalled = True
  gpu.wait_for(signal, 7)
  with pytest.raises(WaitTimeout) as error: gpu.synchronize()
  e = error.value
  assert (e.queue, e.packet, e.address, e.wanted, e.seen) == (
    "AMD compute queue 0",
    "WAIT_REG_MEM",
    signal.address,
    7,
    3,
  )
  assert "WAIT_REG_MEM(" in str(e)


def test_a_sleeping_wait_asks_for_one_interrupt(port: Any, machine: Any) -> None:
  machine.heap_type = 2  # all copies by the copy engine
  gpu = AMDRuntime(port, timeout_s=0.5)
  machine.stalled = True
  gpu.copyin(gpu.alloc(8), memoryview(bytes(8)))
  with pytest.raises(WaitTimeout, match="copy queue 1"): gpu.synchronize()
  queue = machine.queues[0x108]
  port.run(queue, gpu.copier.ring.at * 4)
  assert len([q for q in machine.packets if isinstance(q, s.SDMA_PKT_TRAP)]) == 1
  assert len(machine.of("WAIT_EVENTS")) >= 3


def test_memory_is_named_when_it_runs_out_and_freed_memory_is_used_first(port: Any, machine: Any) -> None:
  gpu = AMDRuntime(port)
  free = machine.vram_free
  with pytest.raises(OutOfMemory) as error: gpu.alloc(free + 4096)
  assert (error.value.asked, error.value.free) == (free + 4096, free)
  a = gpu.alloc(1 << 20)
  address = a.address
  gpu.free(a)
  assert gpu.alloc(1 << 20).address == address
  machine.vram_free = 0
  cached = gpu.alloc(1 << 20) if machine.vram_free else None
  assert cached is None


def test_peers_map_memory_and_wait_for_each_other(port: Any, machine: Any) -> None:
  machine.gpus = 2
  first, second = AMDRuntime(port), AMDRuntime(port, 1)
  a, b = first.alloc(5000), second.alloc(5000)
  data, back = os.urandom(5000), bytearray(5000)
  first.copyin(a, memoryview(data))
  before = len(machine.of("MAP_MEMORY_TO_GPU"))
  second.copy(b, a, 5000)
  second.copy(b, a, 5000)
  assert len(machine.of("MAP_MEMORY_TO_GPU")) == before + 3, "the buffer and both timelines, once"
  second.copyout(memoryview(back), b)
  assert back == data and second.is_peer(first) and first.is_peer(second)
  machine.gpus = 0
  with pytest.raises(DeviceError, match="MOCKGPU=1"): AMDRuntime(type(port)(machine))


def test_no_gpu_of_that_number(port: Any) -> None:
  with pytest.raises(DeviceError, match="AMD:0 gfx1100"): AMDRuntime(port, 3)


def test_another_generation_is_refused_by_name(port: Any, machine: Any) -> None:
  machine.properties["gfx_target_version"] = 90008
  with pytest.raises(Unsupported, match="gfx908"): AMDRuntime(port)


def test_a_fork_is_told(port: Any) -> None:
  gpu = AMDRuntime(port)
  read, write = os.pipe()
  child = os.fork()
  if not child:
    try: gpu.copyin(gpu.alloc(4), memoryview(bytes(4)))
    except DeviceError as e: os.write(write, str(e).encode())
    finally: os._exit(0)
  os.waitpid(child, 0)
  assert b"fork" in os.read(read, 1000)
  os.close(read)
  os.close(write)
  gpu.copyin(gpu.alloc(4), memoryview(bytes(4)))


def test_close_gives_everything_back_and_may_be_repeated(port: Any, machine: Any) -> None:
  gpu = AMDRuntime(port)
  gpu.free(gpu.alloc(100))
  gpu.close()
  gpu.close()
  assert len(machine.of("FREE_MEMORY_OF_GPU")) >= len(machine.of("ALLOC_MEMORY_OF_GPU")) - 1, "all but the event page"
  assert len(machine.of("DESTROY_QUEUE")) == 2
  with pytest.raises(DeviceError, match="closed"): gpu.alloc(1)
  AMDRuntime(port).close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(30))
@given(st.integers(1, 1 << 23), st.integers(0, 3071))
def test_scratch_registers_address_memory_that_is_there(port: Any, machine: Any, wave_bytes: int, wave: int) -> None:
  gpu = AMDRuntime(port)
  limit = 0x7FFF * 256
  if wave_bytes > limit:
    with pytest.raises(InvalidArgument, match="scratch"): gpu.require_scratch(wave_bytes, "kernel k")
    return
  if wave_bytes > 1 << 22: return  # keep the test's memory small
  gpu.require_scratch(wave_bytes, "kernel k")
  base, size = gpu.scratch_registers(wave_bytes)
  assert isinstance(size, gc.COMPUTE_TMPRING_SIZE) and size.WAVES * 6 == 3072 and base % 256 == 0
  held = next(b for b in gpu.live_buffers() if b.address == base)
  assert size.WAVESIZE * 256 >= wave_bytes and (wave + 1) * size.WAVESIZE * 256 <= held.size
  gpu.close()


def test_what_it_says_of_itself(port: Any, machine: Any) -> None:
  machine.gpus = 2
  gpu = AMDRuntime(port, 1)
  assert gpu.describe() == "gfx1100, 96 CUs, 16,384 MiB, KFD 1.17" and gpu.siblings() == 2 and gpu.name == "AMD:1"


def test_the_time_out_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch, port: Any) -> None:
  assert AMDRuntime(port).timeout_s == 30
  monkeypatch.setenv("TINYHW_TIMEOUT_S", "2.5")
  assert AMDRuntime(port).timeout_s == 2.5 and AMDRuntime(port, timeout_s=7).timeout_s == 7
  monkeypatch.setenv("TINYHW_TIMEOUT_S", "0.5")
  assert AMDRuntime(port).timeout_s == 0.5
  for wrong in ("0", "-1", "soon"):
    monkeypatch.setenv("TINYHW_TIMEOUT_S", wrong)
    with pytest.raises(InvalidArgument, match="TINYHW_TIMEOUT_S"): AMDRuntime(port)


def test_a_submission_that_does_not_fit_leaves_the_timeline_as_it_was(port: Any) -> None:
  gpu = AMDRuntime(port)
  stream = CommandStream("huge")
  stream.words += [0] * gpu.compute.ring.size
  stream.mark_words("timeline", 0, 1)
  before = gpu.timeline.last
  with pytest.raises(InvalidArgument, match="indirect buffer"): gpu.submit(gpu.compute, stream.bind())
  assert gpu.timeline.last == before
  gpu.copyin(gpu.alloc(4), memoryview(bytes(4)))
  gpu.synchronize()


def test_a_timeline_that_wraps_32_bits_goes_on(port: Any, machine: Any) -> None:
  machine.heap_type = 2  # all copies by the copy engine
  gpu = AMDRuntime(port)
  gpu.timeline.last = gpu.timeline.signal.value = (1 << 32) - 3
  a, data = gpu.alloc(64), bytes(range(64))
  for _ in range(4):
    gpu.copyin(a, memoryview(data))
    gpu.submit(gpu.compute, gpu.compute_marker())
  back = bytearray(64)
  gpu.copyout(memoryview(back), a)
  assert back == data and gpu.timeline.signal.value == gpu.timeline.last == (1 << 32) + 7


def test_a_gpu_that_a_cgroup_hides_is_not_there(port: Any, machine: Any) -> None:
  machine.gpus, machine.hidden = 2, frozenset({1})
  assert [node.render_node for node in gpus(port)] == ["/dev/dri/renderD129"]


def test_system_memory_that_the_kernel_refuses(port: Any, machine: Any) -> None:
  machine.gtt_limit = 1 << 20
  with pytest.raises(DeviceError, match="8,388,608 bytes of system memory.*gttsize"): AMDRuntime(port)


def test_a_process_says_once_that_it_can_be_debugged(port: Any, machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
  """runtime_enable: before the first queue of any GPU."""
  machine.gpus = 2
  monkeypatch.setenv("TINYHW_DEBUGGABLE", "1")
  for index in range(2): AMDRuntime(port, index)
  names = machine.names()
  assert names.count("RUNTIME_ENABLE") == 1 and names.index("RUNTIME_ENABLE") < names.index("CREATE_QUEUE")
  assert machine.of("RUNTIME_ENABLE")[0]["mode_mask"] == (
    kfd.KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK | kfd.KFD_RUNTIME_ENABLE_MODE_TTMP_SAVE_MASK)


def test_a_process_does_not_say_so_by_itself(port: Any, machine: Any) -> None:
  AMDRuntime(port)
  assert "RUNTIME_ENABLE" not in machine.names()


def test_the_event_page_is_mapped_on_each_gpu_that_is_opened(port: Any, machine: Any) -> None:
  """Each GPU writes the ids of its events there before it interrupts."""
  machine.gpus = 2
  for index in range(2): AMDRuntime(port, index)
  handle = next(a["event_page_offset"] for a in machine.of("CREATE_EVENT") if a["event_page_offset"])
  assert sum(a["handle"] == handle for a in machine.of("MAP_MEMORY_TO_GPU")) == 2
