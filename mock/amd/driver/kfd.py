"""The kernel driver behind /dev/kfd: processes, memory, events and queues, by ioctl.

Checks, their order and their errnos are those of Linux 6.12 `amdkfd/kfd_chardev.c` and `amdgpu/amdgpu_amdkfd_gpuvm.c`;
memory is in `kfd_memory.py`, queues in `kfd_queues.py`. Each handler is registered under the request number of the
generated uapi.
"""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tinyhw.autogen import kfd
from tinyhw.core.errors import PageFault, Unsupported
from tinyhw.core.ioctl import split
from tinyhw.core.memory import PAGE, AddressSpace, Region
from tinyhw.mock.amd.chip.queue import Queue, State
from tinyhw.mock.amd.driver import debug, drm
from tinyhw.mock.amd.driver import queues as kfd_queues
from tinyhw.mock.amd.driver.events import Events
from tinyhw.mock.amd.driver.memory import KfdMemory, ioctls
from tinyhw.mock.amd.driver.process import KfdProcess, OpenFile, ProcessDevice
from tinyhw.mock.memory import Refused

if TYPE_CHECKING:
  from tinyhw.mock.amd.machine import Machine

GPUVM_LIMIT: Final = (1 << 47) - 1  # AMDGPU_GMC_HOLE_START - 1
GPUVM_BASE: Final = 1 << 16  # AMDGPU_VA_RESERVED_BOTTOM
LDS_BASE: Final = 1 << 48  # MAKE_LDS_APP_BASE_V9
SCRATCH_BASE: Final = 2 << 48  # MAKE_SCRATCH_APP_BASE_V9
APERTURE_BYTES: Final = 1 << 32


class Kfd(KfdMemory):
  """The driver's state and its calls."""

  def __init__(self, machine: Machine) -> None:
    super().__init__(machine)
    self.processes: dict[int, KfdProcess] = {}
    self.by_number = {request & 0xFF: request for request in kfd.IOCTLS}

  def close(self) -> None:
    for process in self.processes.values():
      process.debug.detach(())
      process.places.close()
      process.events.close()
      for device in process.devices.values():
        device.close()
    for page in self.mmio.values():
      page.close()
    self.processes.clear()

  def process(self, pid: int) -> KfdProcess:
    """kfd_create_process: the one of this pid, made at its first open."""
    if pid not in self.processes:
      places = self.machine.places(pid)
      devices = {g.gpu_id: ProcessDevice(g, places, chip=g.chip) for g in self.machine.gpus}
      self.processes[pid] = KfdProcess(pid, places, devices, Events(places))
    return self.processes[pid]

  def end_process(self, pid: int) -> None:
    """A client is gone (kfd_process_wq_release): its queues stop, its memory is free again."""
    process = self.processes.pop(pid, None)
    if process is None:
      return
    for queue_id in list(process.queues):
      kfd_queues.destroy(self.machine, process, queue_id)
    process.debug.detach(())
    for device in process.devices.values():
      for buffer in device.buffers.values():
        self._give_back(device, buffer)
      device.close()
    process.events.close()
    process.places.close()

  def forget_gpu(self, gpu_id: int) -> None:
    """Every process begins anew on a GPU: its queues, memory and address space there are gone, on other GPUs too where
    they were mapped. A process keeps its event page."""
    for process in self.processes.values():
      old = process.devices[gpu_id]
      for queue in list(old.queues):
        kfd_queues.destroy(self.machine, process, queue.queue_id)
      for device in process.devices.values():
        for buffer in device.buffers.values():
          if device is not old:
            buffer.mapped.discard(gpu_id)
      new = process.devices[gpu_id] = ProcessDevice(old.gpu, process.places)
      for handle, buffer in list(old.buffers.items()):
        if buffer.handle == process.events.page_handle:
          buffer.mapped.discard(gpu_id)
          new.enter(buffer, handle)
          new.by_mmap[buffer.mmap_offset] = buffer
          continue
        for peer in (process.devices[g] for g in buffer.mapped if g != gpu_id):
          if not buffer.gone:
            peer.bind().unmap(buffer.va, buffer.size * (2 if buffer.twice else 1))
          del peer.by_address[buffer.va]
        self._give_back(old, buffer)
      old.close()

  # ---- the call

  def ioctl(self, file: OpenFile, request: int, argument: Any, pid: int) -> int:
    """kfd_ioctl: the number selects the call, sizes may differ (the shorter is extended with zeros), any process but
    the opener is EBADF."""
    known = self.by_number.get(request & 0xFF)
    if known is None:
      raise Refused(errno.ENOTTY, f"no KFD ioctl has number {request & 0xFF:#x}")
    if file.pid != pid:
      raise Refused(
        errno.EBADF, f"the file was opened by process {file.pid}, used by {pid}: open /dev/kfd again after a fork"
      )
    name, struct = kfd.IOCTLS[known].name, kfd.IOCTLS[known].struct
    assert struct is not None
    handler = ioctls.get(known)
    if handler is None:
      why = ioctls.why_ignored(known)
      if why is not None:
        self.machine.ignored.note("KFD ioctl", name, why)
        return 0
      self.machine.doubt(f"KFD ioctl {name} is not modelled: EOPNOTSUPP")
      raise Refused(errno.EOPNOTSUPP, f"{name} is not modelled")
    process = self.process(pid)
    given, size, direction = split(request).size, ctypes.sizeof(struct), split(known).direction
    if argument is None or ctypes.sizeof(argument) < given:
      raise Refused(errno.EFAULT, f"{name}: {given} bytes of argument are promised, fewer are there")
    if type(argument) is struct and given == size and direction == 3:
      handler(self, process, argument)
      return 0
    data = struct()
    raw = (ctypes.c_ubyte * given).from_buffer(argument)
    if direction & 1:
      ctypes.memmove(ctypes.addressof(data), raw, min(given, size))
    try:
      handler(self, process, data)
    finally:
      if direction & 2:
        ctypes.memmove(raw, ctypes.addressof(data), min(given, size))
    return 0

  # ---- information

  @ioctls.handles(kfd.AMDKFD_IOC_GET_VERSION)
  def get_version(self, process: KfdProcess, args: Any) -> None:
    args.major_version, args.minor_version = kfd.KFD_IOCTL_MAJOR_VERSION, kfd.KFD_IOCTL_MINOR_VERSION

  @ioctls.handles(kfd.AMDKFD_IOC_GET_CLOCK_COUNTERS)
  def get_clock_counters(self, process: KfdProcess, args: Any) -> None:
    device = process.devices.get(args.gpu_id)
    args.gpu_clock_counter = device.gpu.counter() if device else 0
    args.cpu_clock_counter = args.system_clock_counter = self.machine.clock.now_ns()
    args.system_clock_freq = 1_000_000_000

  def _aperture(self, device: ProcessDevice) -> Any:
    return kfd.kfd_process_device_apertures(
      gpu_id=device.gpu.gpu_id,
      lds_base=LDS_BASE,
      lds_limit=LDS_BASE + APERTURE_BYTES - 1,
      scratch_base=SCRATCH_BASE,
      scratch_limit=SCRATCH_BASE + APERTURE_BYTES - 1,
      gpuvm_base=GPUVM_BASE,
      gpuvm_limit=GPUVM_LIMIT,
    )

  @ioctls.handles(kfd.AMDKFD_IOC_GET_PROCESS_APERTURES)
  def get_process_apertures(self, process: KfdProcess, args: Any) -> None:
    devices = list(process.devices.values())[: kfd.NUM_OF_SUPPORTED_GPUS]
    for i, device in enumerate(devices):
      args.process_apertures[i] = self._aperture(device)
    args.num_of_nodes = len(devices)

  @ioctls.handles(kfd.AMDKFD_IOC_GET_PROCESS_APERTURES_NEW)
  def get_process_apertures_new(self, process: KfdProcess, args: Any) -> None:
    devices = list(process.devices.values())
    if args.num_of_nodes == 0:
      args.num_of_nodes = len(devices)
      return
    if args.num_of_nodes > len(devices) + 1:
      raise Refused(errno.EINVAL, f"{args.num_of_nodes} nodes asked, there are {len(devices) + 1}")
    devices = devices[: args.num_of_nodes]
    process.user.write(args.kfd_process_device_apertures_ptr, b"".join(bytes(self._aperture(d)) for d in devices))
    args.num_of_nodes = len(devices)

  @ioctls.handles(kfd.AMDKFD_IOC_GET_TILE_CONFIG)
  def get_tile_config(self, process: KfdProcess, args: Any) -> None:
    process.device(args.gpu_id)
    args.gb_addr_config, args.num_banks, args.num_ranks = drm.TILING, 0, 0
    args.num_tile_configs, args.num_macro_tile_configs = (
      min(args.num_tile_configs, 32),
      min(args.num_macro_tile_configs, 16),
    )
    process.user.write(args.tile_config_ptr, bytes(4 * args.num_tile_configs))
    process.user.write(args.macro_tile_config_ptr, bytes(4 * args.num_macro_tile_configs))

  # ---- settings of a process or GPU

  @ioctls.handles(kfd.AMDKFD_IOC_ACQUIRE_VM)
  def acquire_vm(self, process: KfdProcess, args: Any) -> None:
    file = process.places.file(args.drm_fd)
    if file is None:
      raise Refused(errno.EINVAL, f"{args.drm_fd} is not an open file")
    device = process.device(args.gpu_id)
    if device.drm_file is not None:
      if device.drm_file is not file:
        raise Refused(errno.EBUSY, "the GPU has an address space from another file")
      return
    if file.kind != "render" or file.gpu is not device.gpu:
      raise Refused(errno.EINVAL, f"{args.drm_fd} is not this GPU's render node")
    if file.space is not None:
      raise Refused(errno.EINVAL, "the file's address space is a compute one already")
    device.drm_file, device.space = file, AddressSpace(f"GPU{device.gpu.index} of process {process.pid}")
    file.space = device.space

  def _bound(self, process: KfdProcess, gpu_id: int) -> ProcessDevice:
    """The GPU with its address space; several calls answer ESRCH before ACQUIRE_VM."""
    device = process.device(gpu_id)
    if device.space is None:
      raise Refused(errno.ESRCH, f"no address space on GPU {gpu_id:#x} yet: ACQUIRE_VM comes first")
    return device

  @ioctls.handles(kfd.AMDKFD_IOC_SET_MEMORY_POLICY)
  def set_memory_policy(self, process: KfdProcess, args: Any) -> None:
    legal = (kfd.KFD_IOC_CACHE_POLICY_COHERENT, kfd.KFD_IOC_CACHE_POLICY_NONCOHERENT)
    for policy in (args.default_policy, args.alternate_policy):
      if policy not in legal:
        raise Refused(errno.EINVAL, f"cache policy {policy}")
    self._bound(process, args.gpu_id).cache_policy = (
      args.default_policy,
      args.alternate_policy,
      args.alternate_aperture_base,
      args.alternate_aperture_size,
    )
    self.machine.ignored.note("KFD setting", "SET_MEMORY_POLICY", "no caches are modelled")

  @ioctls.handles(kfd.AMDKFD_IOC_SET_XNACK_MODE)
  def set_xnack_mode(self, process: KfdProcess, args: Any) -> None:
    if args.xnack_enabled < 0:
      args.xnack_enabled = process.xnack
    elif process.queues:
      raise Refused(errno.EBUSY, "the process has queues")
    elif args.xnack_enabled:
      if all(card.gc_version < (10, 0, 0) for card in self.machine.cards):  # kfd_process_xnack_mode
        raise Unsupported("KFD setting", "SET_XNACK_MODE on", where="retry of page faults")
      raise Refused(errno.EPERM, "these GPUs cannot retry page faults")

  @ioctls.handles(kfd.AMDKFD_IOC_SET_SCRATCH_BACKING_VA)
  def set_scratch_backing_va(self, process: KfdProcess, args: Any) -> None:
    device = process.device(args.gpu_id)
    device.bind()
    device.scratch_base = args.va_addr
    self.machine.ignored.note(
      "KFD setting", "SET_SCRATCH_BACKING_VA", "queues take their scratch base from COMPUTE_DISPATCH_SCRATCH_BASE"
    )

  @ioctls.handles(kfd.AMDKFD_IOC_SET_TRAP_HANDLER)
  def set_trap_handler(self, process: KfdProcess, args: Any) -> None:
    self._bound(process, args.gpu_id).trap_handler = (args.tba_addr, args.tma_addr)
    self.machine.ignored.note("KFD setting", "SET_TRAP_HANDLER", "trap handlers are not run")

  @ioctls.handles(kfd.AMDKFD_IOC_RUNTIME_ENABLE)
  def runtime_enable(self, process: KfdProcess, args: Any) -> None:
    debug.runtime_enable(self.machine, process, args)

  @ioctls.handles(kfd.AMDKFD_IOC_DBG_TRAP)
  def dbg_trap(self, process: KfdProcess, args: Any) -> None:
    debug.trap(self.machine, process, args)

  @ioctls.handles(
    kfd.AMDKFD_IOC_DBG_REGISTER_DEPRECATED,
    kfd.AMDKFD_IOC_DBG_UNREGISTER_DEPRECATED,
    kfd.AMDKFD_IOC_DBG_ADDRESS_WATCH_DEPRECATED,
    kfd.AMDKFD_IOC_DBG_WAVE_CONTROL_DEPRECATED,
    kfd.AMDKFD_IOC_SVM,
  )
  def not_permitted(self, process: KfdProcess, args: Any) -> None:
    """The old debugger calls always, and shared virtual memory in a kernel built without it."""
    raise Refused(errno.EPERM, "the kernel has no support for it")

  @ioctls.handles(kfd.AMDKFD_IOC_CRIU_OP)
  def criu(self, process: KfdProcess, args: Any) -> None:
    raise Refused(errno.EACCES, "checkpoint and restore needs CAP_CHECKPOINT_RESTORE")

  # ---- events

  @ioctls.handles(kfd.AMDKFD_IOC_CREATE_EVENT)
  def create_event(self, process: KfdProcess, args: Any) -> None:
    if args.event_page_offset:
      if process.events.page is not None:
        raise Refused(errno.EINVAL, "the event page is set already")
      device = process.device(args.event_page_offset >> 32)
      device.bind()
      buffer = device.buffer(args.event_page_offset, errno.EINVAL)
      if not isinstance(buffer.backing, Region):
        raise Refused(errno.EINVAL, "user memory cannot be the event page")
      process.events.set_page(buffer.backing, buffer.offset, buffer.size, args.event_page_offset)
    event, token = process.events.create(args.event_type, args.auto_reset != 0)
    args.event_page_offset, args.event_id, args.event_trigger_data = token, event.event_id, event.event_id
    if event.in_page:
      args.event_slot_index = event.event_id

  @ioctls.handles(kfd.AMDKFD_IOC_DESTROY_EVENT)
  def destroy_event(self, process: KfdProcess, args: Any) -> None:
    process.events.destroy(args.event_id)

  @ioctls.handles(kfd.AMDKFD_IOC_SET_EVENT)
  def set_event(self, process: KfdProcess, args: Any) -> None:
    process.events.set(args.event_id)

  @ioctls.handles(kfd.AMDKFD_IOC_RESET_EVENT)
  def reset_event(self, process: KfdProcess, args: Any) -> None:
    process.events.reset(args.event_id)

  @ioctls.handles(kfd.AMDKFD_IOC_WAIT_EVENTS)
  def wait_events(self, process: KfdProcess, args: Any) -> None:
    def run(done: Callable[[], bool], ns: int | None) -> None:
      machine = self.machine
      if machine.run(done, None if ns is None else ns / 1e9, machine.other_threads):
        return
      if ns is None:
        raise Refused(errno.EINTR, "nothing can signal these events any more: a kernel would wait for ever")
      machine.clock.advance(ns)  # the time that the client slept

    args.wait_result = kfd.KFD_IOC_WAIT_RESULT_FAIL
    args.wait_result = process.events.wait(args.events_ptr, args.num_events, args.wait_for_all != 0, args.timeout, run)

  # ---- queues

  @ioctls.handles(kfd.AMDKFD_IOC_CREATE_QUEUE)
  def create_queue(self, process: KfdProcess, args: Any) -> None:
    kfd_queues.create(self.machine, process, args)

  @ioctls.handles(kfd.AMDKFD_IOC_UPDATE_QUEUE)
  def update_queue(self, process: KfdProcess, args: Any) -> None:
    kfd_queues.update(process, args)

  @ioctls.handles(kfd.AMDKFD_IOC_DESTROY_QUEUE)
  def destroy_queue(self, process: KfdProcess, args: Any) -> None:
    kfd_queues.destroy(self.machine, process, args.queue_id)

  @ioctls.handles(kfd.AMDKFD_IOC_SET_CU_MASK)
  def set_cu_mask(self, process: KfdProcess, args: Any) -> None:
    kfd_queues.set_cu_mask(self.machine, process, args)

  @ioctls.handles(kfd.AMDKFD_IOC_ALLOC_QUEUE_GWS)
  def alloc_queue_gws(self, process: KfdProcess, args: Any) -> None:
    if args.queue_id not in process.queues:
      raise Refused(errno.EINVAL, f"no queue {args.queue_id}")
    queue = process.queues[args.queue_id]
    if process.debug.attached and queue.gpu.card.traps_off:
      raise Refused(errno.EBUSY, "a debugger is attached, under which this chip has no global wave synchronization")
    queue.gws = bool(args.num_gws)
    args.first_gws = 0
    self.machine.ignored.note("KFD setting", "ALLOC_QUEUE_GWS", "every dispatch has the resources")

  @ioctls.handles(kfd.AMDKFD_IOC_GET_QUEUE_WAVE_STATE)
  def get_queue_wave_state(self, process: KfdProcess, args: Any) -> None:
    kfd_queues.wave_state(process, args)

  # ---- exceptions

  def memory_violation(self, queue: Queue, fault: PageFault) -> None:
    """event_interrupt_wq_v11 for a page fault: all queues of the process on this GPU are evicted, memory events are
    signalled.

    The kernel tells the page, not the byte. The chip reports one bit a missing permission: valid, read, write; the
    kernel shows the first as NotPresent and the last as ReadOnly, so that a write to a page that is not there has
    both, and a fetch from a page that is not executable has none.
    """
    process, device = queue.process, queue.device
    device.evicted += 1
    for other in device.queues:
      if other.error is None:
        other.state = State.EVICTED
    self.machine.log(
      device.gpu,
      f"[gfxhub] page fault (process {process.pid}) in page starting at address "
      f"{(fault.address or 0) & ~(PAGE - 1):#018x}, "
      f"{fault.access} of {fault.size} bytes at {fault.address or 0:#x}: {fault.reason}",
    )
    data = kfd.kfd_hsa_memory_exception_data(gpu_id=device.gpu.gpu_id, va=(fault.address or 0) & ~(PAGE - 1))
    data.failure.NotPresent = int(fault.reason != "no permission")
    data.failure.ReadOnly = int(fault.access in ("write", "atomic"))
    if not process.events.exception(kfd.KFD_IOC_EVENT_MEMORY, data):
      self.machine.doubt(
        f"process {process.pid} has no memory event: nobody hears of the page fault at {fault.address or 0:#x}"
      )

  def gpu_hang(self, queue: Queue, *, hang: bool) -> None:
    """A queue that cannot go on and cannot be taken off the chip: the driver resets the GPU and says so to its
    processes.

    After kfd_signal_reset_event and kgd2kfd_post_reset: every queue on this GPU is gone, in all processes, and these
    processes stay evicted from it until they end. (Linux 6.12 evicts them from the other GPUs too; here those go on.)
    """
    gpu = queue.gpu
    for process in self.processes.values():
      device = process.devices.get(gpu.gpu_id)
      if device is None or not device.queues:
        continue
      for other in device.queues:
        if other.error is None:
          other.state = State.EVICTED
      device.evicted += 1
      process.events.exception(
        kfd.KFD_IOC_EVENT_HW_EXCEPTION,
        kfd.kfd_hsa_hw_exception_data(
          reset_type=kfd.KFD_HW_EXCEPTION_WHOLE_GPU_RESET,
          reset_cause=kfd.KFD_HW_EXCEPTION_GPU_HANG,
          memory_lost=1,
          gpu_id=gpu.gpu_id,
        ),
      )
    cause = "its waves cannot end" if hang else "the engine refused a packet"
    self.machine.trace.add(f"GPU{gpu.index}", "reset", f"{queue.name}: {cause}")
    self.machine.log(gpu, f"GPU reset: {queue.name}: {cause}; video memory is lost")
