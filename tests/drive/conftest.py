"""A stand-in for a machine with KFD that answers the calls and moves the signals, and executes no kernel.

It is written for these tests from the kernel's sources, apart from the mock: it records what the driver does, in order.
GPU addresses are addresses of this process (the driver maps at fixed addresses), so that copies are plain memory moves.
"""
from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tinyhw.autogen import amdgpu_drm, kfd
from tinyhw.autogen import pm4_gfx11 as p
from tinyhw.autogen import sdma_v6 as s
from tinyhw.drive.linux import LinuxPort
from tinyhw.wire import pm4, sdma

NODES = "/sys/devices/virtual/kfd/kfd/topology/nodes"
PROPERTIES = {
  "cpu_cores_count": 0,
  "simd_count": 192,
  "mem_banks_count": 1,
  "io_links_count": 1,
  "max_waves_per_simd": 16,
  "lds_size_in_kb": 64,
  "wave_front_size": 32,
  "array_count": 12,
  "simd_arrays_per_engine": 2,
  "cu_per_simd_array": 8,
  "simd_per_cu": 2,
  "max_slots_scratch_cu": 32,
  "gfx_target_version": 110000,
  "vendor_id": 4098,
  "device_id": 29772,
  "drm_render_minor": 128,
  "num_sdma_engines": 2,
  "num_cp_queues": 8,
  "cwsr_size": 0x2600000,
  "ctl_stack_size": 0xA000,
  "num_xcc": 1,
}


@dataclass
class FakeQueue:
  """A queue as the kernel and the engine know it."""
  args: Any
  read: int = 0


@dataclass
class FakeMachine:
  """See the module. `log` has one row a call: (name, dict of its arguments)."""
  gpus: int = 1
  vram_free: int = 1 << 34
  hidden: frozenset[int] = frozenset()  # nodes that a cgroup keeps from this process
  gtt_limit: int = 1 << 40
  heap_type: int = 1                   # of video memory: 1 is seen by the host, 2 is not
  stalled: bool = False                # queues do not read
  memory_fault: tuple[int, int, bool] | None = None  # (gpu_id, address, write), for the next WAIT_EVENTS
  log: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
  packets: list[Any] = field(default_factory=list)
  queues: dict[int, FakeQueue] = field(default_factory=dict)
  mappings: list[tuple[int, int, int]] = field(default_factory=list)
  clock: int = 1000
  properties: dict[str, int] = field(default_factory=lambda: dict(PROPERTIES))

  def gpu_id(self, index: int) -> int: return 0x1000 + index

  def names(self) -> list[str]: return [name for name, _ in self.log]

  def of(self, name: str) -> list[dict[str, Any]]: return [args for called, args in self.log if called == name]


class FakePort(LinuxPort):
  """The machine's operating system. Host memory is real; devices are not."""

  def __init__(self, machine: FakeMachine) -> None:
    super().__init__()
    self.machine, self._paths, self._next, self._vram = machine, {}, 1, {}

  def open(self, path: str, flags: int = os.O_RDWR) -> int:
    if not path.startswith(("/dev/kfd", "/dev/dri/renderD")) or not self.machine.gpus:
      raise FileNotFoundError(errno.ENOENT, "No such file", path)
    fd = os.open("/dev/null", os.O_RDWR)
    self._paths[fd] = path
    self.machine.log.append(("open", {"path": path}))
    return fd

  def read(self, path: str) -> bytes:
    if not self.machine.gpus: raise FileNotFoundError(path)
    if path.endswith("generation_id"): return b"2\n"
    if path == "/dev/kmsg": raise PermissionError(path)
    node = int(path.removeprefix(NODES + "/").split("/")[0])
    rest = path.split(f"/nodes/{node}/")[1]
    if node in self.machine.hidden: raise PermissionError(errno.EPERM, "Operation not permitted", path)
    if rest == "gpu_id": return f"{self.machine.gpu_id(node - 1) if node else 0}\n".encode()
    if rest == "name": return b"gfx1100\n"
    rows = dict(self.machine.properties)
    rows["drm_render_minor"] = 127 + node
    if rest.startswith("mem_banks"): rows = {"heap_type": self.machine.heap_type, "size_in_bytes": 1 << 34}
    if rest.startswith("io_links"):
      rows = {"type": 2, "node_from": node, "node_to": int(rest.split("/")[1]), "flags": 1}
    return "".join(f"{name} {value}\n" for name, value in rows.items()).encode()

  def listdir(self, path: str) -> list[str]:
    if not self.machine.gpus: raise FileNotFoundError(path)
    if path.endswith("/nodes"): return [str(n) for n in range(self.machine.gpus + 1)]
    if path.endswith("mem_banks"): return ["0"]
    if path.endswith("p2p_links"): raise FileNotFoundError(path)
    node = int(path.split("/nodes/")[1].split("/")[0])
    return [str(n) for n in range(self.machine.gpus + 1) if n != node]

  def ioctl(self, fd: int, request: int, argument: Any) -> int:
    name = {**kfd.IOCTLS, **amdgpu_drm.IOCTLS}[request].name.removeprefix("AMDKFD_IOC_")
    self.machine.log.append((name, argument.to_dict()))
    handler: Callable[[Any], None] | None = getattr(self, f"_{name.lower()}", None)
    if handler is not None: handler(argument)
    return 0

  def _get_version(self, a: Any) -> None: a.major_version, a.minor_version = 1, 17

  def _drm_ioctl_amdgpu_info(self, a: Any) -> None:
    amdgpu_drm.drm_amdgpu_info_device.from_address(a.return_pointer).gpu_counter_freq = 100_000

  def _get_process_apertures_new(self, a: Any) -> None:
    rows = (kfd.kfd_process_device_apertures * a.num_of_nodes).from_address(a.kfd_process_device_apertures_ptr)
    for i, row in enumerate(rows): row.gpu_id, row.lds_base, row.scratch_base = self.machine.gpu_id(i), 1 << 48, 2 << 48

  def _available_memory(self, a: Any) -> None: a.available = self.machine.vram_free

  def _alloc_memory_of_gpu(self, a: Any) -> None:
    if a.flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_VRAM:
      if a.size > self.machine.vram_free: raise OSError(errno.ENOMEM, "no memory")
      self.machine.vram_free -= a.size
      self._vram[self._next] = a.size
    elif a.size > self.machine.gtt_limit: raise OSError(errno.ENOMEM, "no memory")
    a.handle, a.mmap_offset = self._next, self._next << 20
    self._next += 1
    if not a.flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR:
      super().mmap(-1, a.size, 0, a.va_addr)

  def _free_memory_of_gpu(self, a: Any) -> None: self.machine.vram_free += self._vram.pop(a.handle, 0)

  def mmap(self, fd: int, length: int, offset: int = 0, address: int | None = None, protection: Any = 3) -> int:
    self.machine.mappings.append((offset, length, address or 0))
    if address is not None: return address  # memory of a buffer: there since its allocation
    return super().mmap(-1, length)

  def _create_event(self, a: Any) -> None:
    a.event_id, a.event_trigger_data, a.event_slot_index = self._next, self._next | 1 << 20, self._next
    self._next += 1

  def _create_queue(self, a: Any) -> None:
    a.queue_id = len(self.machine.queues)
    a.doorbell_offset = 3 << 62 | a.gpu_id << 46 | 0x100 + 8 * a.queue_id
    self.machine.queues[0x100 + 8 * a.queue_id] = FakeQueue(type(a).from_buffer_copy(a))

  def _wait_events(self, a: Any) -> None:
    rows = (kfd.kfd_event_data * a.num_events).from_address(a.events_ptr)
    a.wait_result = kfd.KFD_IOC_WAIT_RESULT_TIMEOUT
    if self.machine.memory_fault:
      data = rows[0].memory_exception_data
      data.gpu_id, data.va, data.failure.ReadOnly = self.machine.memory_fault
      data.failure.NotPresent = 1
      self.machine.memory_fault, a.wait_result = None, kfd.KFD_IOC_WAIT_RESULT_COMPLETE

  def doorbell(self, address: int, value: int, nbytes: int = 8) -> None:
    super().doorbell(address, value)
    if not self.machine.stalled: self.run(self.machine.queues[address & 0xFFF], value)

  def run(self, queue: FakeQueue, end: int) -> None:
    """Execute the packets up to the write pointer."""
    compute = queue.args.queue_type == kfd.KFD_IOC_QUEUE_TYPE_COMPUTE
    unit = 1 if compute else 4
    size = queue.args.ring_size // 4
    ring = (ctypes.c_uint32 * size).from_address(queue.args.ring_base_address)
    words = [ring[i % size] for i in range(queue.read, end // unit)]
    for _, packet in (pm4 if compute else sdma).walk(words): self.execute(packet)
    queue.read = end // unit
    ctypes.c_uint64.from_address(queue.args.read_pointer_address).value = queue.read % size * unit

  def execute(self, packet: Any) -> None:
    self.machine.packets.append(packet)
    self.machine.clock += 10
    store = lambda address, value, width=8: ctypes.memmove(address, int(value).to_bytes(width, "little"), width)
    if isinstance(packet, p.INDIRECT_BUFFER):
      words = list((ctypes.c_uint32 * packet.ib_size).from_address(packet.ib_base))
      for _, inner in pm4.walk(words): self.execute(inner)
    elif isinstance(packet, p.RELEASE_MEM):
      store(
        packet.address,
        self.machine.clock if packet.data_sel == p.RELEASE_MEM_data_sel.send_gpu_clock_counter else packet.data,
      )
    elif isinstance(packet, s.SDMA_PKT_FENCE): store(packet.addr, packet.data, 4)
    elif isinstance(packet, s.SDMA_PKT_COPY_LINEAR): ctypes.memmove(packet.dst_addr, packet.src_addr, packet.count + 1)


@pytest.fixture
def machine() -> FakeMachine: return FakeMachine()


@pytest.fixture
def port(machine: FakeMachine) -> FakePort: return FakePort(machine)


LAYOUT = (  # LLVM 22, AMDGPU
  "e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128-p9:192:256:256:32"
  "-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1"
  "-ni:7:8:9")
NO = ("completion-action", "default-queue", "dispatch-id", "dispatch-ptr", "heap-ptr", "hostcall-ptr",
      "implicitarg-ptr", "lds-kernel-id", "multigrid-sync-arg", "queue-ptr")  # what a kernel says that it does not use
HEAD = f'target datalayout = "{LAYOUT}"' + """
target triple = "amdgcn-amd-amdhsa"
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare ptr addrspace(4) @llvm.amdgcn.dispatch.ptr()
declare ptr addrspace(4) @llvm.amdgcn.queue.ptr()
declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
declare i64 @llvm.amdgcn.dispatch.id()
@lds = internal addrspace(3) global [1024 x i32] poison
"""
ADD = """
define amdgpu_kernel void @add(ptr addrspace(1) %out, ptr addrspace(1) %a, ptr addrspace(1) %b) #0 {
  %l = call i32 @llvm.amdgcn.workitem.id.x()
  %g = call i32 @llvm.amdgcn.workgroup.id.x()
  %base = mul i32 %g, 64
  %i = add i32 %base, %l
  %pa = getelementptr float, ptr addrspace(1) %a, i32 %i
  %pb = getelementptr float, ptr addrspace(1) %b, i32 %i
  %po = getelementptr float, ptr addrspace(1) %out, i32 %i
  %x = load float, ptr addrspace(1) %pa
  %y = load float, ptr addrspace(1) %pb
  %s = fadd float %x, %y
  store float %s, ptr addrspace(1) %po
  ret void
}
define amdgpu_kernel void @fill(ptr addrspace(1) %out, i32 %value, i16 %step, double %d, i8 %last) #0 {
  %l = call i32 @llvm.amdgcn.workitem.id.x()
  %po = getelementptr i32, ptr addrspace(1) %out, i32 %l
  %w = zext i16 %step to i32
  %m = mul i32 %l, %w
  %v = add i32 %value, %m
  %f = fptosi double %d to i32
  %u = add i32 %v, %f
  %q = zext i8 %last to i32
  %r = add i32 %u, %q
  store i32 %r, ptr addrspace(1) %po
  ret void
}
""" + f"""
attributes #0 = {{ nounwind "amdgpu-flat-work-group-size"="1,256" "uniform-work-group-size"="true"
  {' '.join(f'"amdgpu-no-{name}"' for name in NO)} }}
"""
ASKS = """
define amdgpu_kernel void @asks(ptr addrspace(1) %out) #0 {
  %dp = call ptr addrspace(4) @llvm.amdgcn.dispatch.ptr()
  %qp = call ptr addrspace(4) @llvm.amdgcn.queue.ptr()
  %id = call i64 @llvm.amdgcn.dispatch.id()
  %ip = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %p0 = getelementptr i32, ptr addrspace(4) %dp, i64 1
  %wg = load i32, ptr addrspace(4) %p0
  %p1 = getelementptr i32, ptr addrspace(4) %dp, i64 3
  %gs = load i32, ptr addrspace(4) %p1
  %bc = load i32, ptr addrspace(4) %ip
  %ap = getelementptr i32, ptr addrspace(4) %qp, i64 16
  %ah = load i32, ptr addrspace(4) %ap
  %id32 = trunc i64 %id to i32
  store i32 %wg, ptr addrspace(1) %out
  %o1 = getelementptr i32, ptr addrspace(1) %out, i64 1
  store i32 %gs, ptr addrspace(1) %o1
  %o2 = getelementptr i32, ptr addrspace(1) %out, i64 2
  store i32 %bc, ptr addrspace(1) %o2
  %o3 = getelementptr i32, ptr addrspace(1) %out, i64 3
  store i32 %ah, ptr addrspace(1) %o3
  %o4 = getelementptr i32, ptr addrspace(1) %out, i64 4
  store i32 %id32, ptr addrspace(1) %o4
  ret void
}
define amdgpu_kernel void @shared(ptr addrspace(1) %out) #0 {
  %l = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr [1024 x i32], ptr addrspace(3) @lds, i32 0, i32 %l
  store volatile i32 %l, ptr addrspace(3) %p
  %v = load volatile i32, ptr addrspace(3) %p
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %l
  store i32 %v, ptr addrspace(1) %o
  ret void
}
define amdgpu_kernel void @private(ptr addrspace(1) %out) #0 {
  %l = call i32 @llvm.amdgcn.workitem.id.x()
  %m = alloca [64 x i32], addrspace(5)
  %p = getelementptr [64 x i32], ptr addrspace(5) %m, i32 0, i32 %l
  store volatile i32 %l, ptr addrspace(5) %p
  %v = load volatile i32, ptr addrspace(5) %p
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %l
  store i32 %v, ptr addrspace(1) %o
  ret void
}
attributes #0 = { nounwind "amdgpu-flat-work-group-size"="1,1024" "uniform-work-group-size"="true" }
"""


def compile_ir(text: str, cpu: str = "gfx1100") -> bytes:
  """LLVM IR to a relocatable AMDGPU object, through llvmlite alone."""
  import llvmlite.binding as llvm
  llvm.initialize_all_targets()
  llvm.initialize_all_asmprinters()
  module = llvm.parse_assembly(HEAD + text)
  machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu=cpu, opt=2, reloc="pic")
  object_code: bytes = machine.emit_object(module)
  return object_code


@pytest.fixture(scope="session")
def add_object() -> bytes: return compile_ir(ADD)


@pytest.fixture(scope="session")
def asks_object() -> bytes: return compile_ir(ASKS)


@pytest.fixture(scope="session", name="compile_ir")
def compile_ir_fixture() -> Callable[..., bytes]: return compile_ir
