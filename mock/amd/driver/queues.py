"""CREATE_QUEUE and its kin: what the kernel driver checks before a client's ring is put on an engine.

After Linux 6.12 `amdkfd/kfd_chardev.c` (set_queue_properties_from_user), `kfd_queue.c` (kfd_queue_acquire_buffers),
`kfd_process_queue_manager.c` and `kfd_device_queue_manager.c` (doorbells, SDMA queues). GC 11 schedules through MES.
"""

from __future__ import annotations

import errno
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tinyhw.autogen import kfd
from tinyhw.core.errors import Unsupported
from tinyhw.core.memory import PAGE
from tinyhw.mock.amd.chip.aql import AqlQueue
from tinyhw.mock.amd.chip.pm4 import ComputeQueue
from tinyhw.mock.amd.chip.queue import Properties, Queue, State
from tinyhw.mock.amd.chip.sdma import SdmaQueue
from tinyhw.mock.amd.driver.process import KfdProcess, ProcessDevice
from tinyhw.mock.memory import BufferObject, Refused, page_align

if TYPE_CHECKING:
  from tinyhw.mock.amd.machine import Machine

TASK_SIZE: Final = 1 << 47
MAX_QUEUES: Final = 127  # per process and GPU: the limit of the hardware scheduler
MAX_QUEUES_PER_PROCESS: Final = 1024  # KFD_MAX_NUM_OF_QUEUES_PER_PROCESS
DOORBELL_MIRROR: Final = 512  # KFD_QUEUE_DOORBELL_MIRROR_OFFSET
SDMA_KINDS: Final = (
  kfd.KFD_IOC_QUEUE_TYPE_SDMA,
  kfd.KFD_IOC_QUEUE_TYPE_SDMA_XGMI,
  kfd.KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID,
)


def _ring_checks(args: Any) -> None:
  """Percentage, priority and ring, as both CREATE_QUEUE and UPDATE_QUEUE check them."""
  if args.queue_percentage & 0xFF > kfd.KFD_MAX_QUEUE_PERCENTAGE:
    raise Refused(errno.EINVAL, f"queue percentage {args.queue_percentage & 0xFF}")
  if args.queue_priority > kfd.KFD_MAX_QUEUE_PRIORITY:
    raise Refused(errno.EINVAL, f"queue priority {args.queue_priority}")
  if args.ring_base_address >= TASK_SIZE - 8:
    raise Refused(errno.EFAULT, f"ring at {args.ring_base_address:#x}")
  if args.ring_size & (args.ring_size - 1):
    raise Refused(errno.EINVAL, f"ring of {args.ring_size:#x} bytes: a power of two is needed")
  args.ring_size = max(args.ring_size, kfd.KFD_MIN_QUEUE_RING_SIZE)


def _properties(args: Any) -> Properties:
  _ring_checks(args)
  for what, address in (
    ("read pointer", args.read_pointer_address),
    ("write pointer", args.write_pointer_address),
    ("EOP buffer", args.eop_buffer_address),
    ("save area", args.ctx_save_restore_address),
  ):
    if address >= TASK_SIZE - 4:
      raise Refused(errno.EFAULT, f"{what} at {address:#x}")
  if args.queue_type not in (kfd.KFD_IOC_QUEUE_TYPE_COMPUTE, kfd.KFD_IOC_QUEUE_TYPE_COMPUTE_AQL, *SDMA_KINDS):
    raise Refused(524, f"queue type {args.queue_type}")  # ENOTSUPP of the kernel, which has no name in user space
  return Properties(
    kind=args.queue_type,
    ring_address=args.ring_base_address,
    ring_size=args.ring_size,
    read_pointer=args.read_pointer_address,
    write_pointer=args.write_pointer_address,
    percentage=args.queue_percentage & 0xFF,
    priority=args.queue_priority,
    eop_address=args.eop_buffer_address,
    eop_size=args.eop_buffer_size,
    save_area=args.ctx_save_restore_address,
    save_size=args.ctx_save_restore_size,
    control_stack_size=args.ctl_stack_size,
    engine=args.sdma_engine_id,
    target_xcc=args.queue_percentage >> 8 & 0xFF,
  )


def _held(device: ProcessDevice, what: str, address: int, size: int, code: int = errno.EINVAL) -> BufferObject:
  """kfd_queue_buffer_get: the buffer must be mapped on this GPU, start at the address's page and be exactly as large
  as expected."""
  start = address & ~(PAGE - 1)
  buffer = device.by_address.get(start)
  if buffer is None:
    raise Refused(code, f"{what}: no buffer is mapped at {start:#x}")
  if size and buffer.size * (2 if buffer.twice else 1) != size:
    raise Refused(code, f"{what}: the buffer at {start:#x} has {buffer.size:#x} bytes, {size:#x} are expected")
  return buffer


def _acquire(device: ProcessDevice, p: Properties) -> list[BufferObject]:
  """kfd_queue_acquire_buffers: pointers, ring and, for compute, EOP buffer and save area."""
  card = device.gpu.card
  held = [
    _held(device, "write pointer", p.write_pointer, PAGE),
    _held(device, "read pointer", p.read_pointer, PAGE),
    _held(device, "ring", p.ring_address, p.ring_size & ~(PAGE - 1)),
  ]
  if p.kind in SDMA_KINDS:
    return held
  if p.eop_address:
    if p.eop_size < card.eop_buffer_size:
      raise Refused(errno.EINVAL, f"EOP buffer of {p.eop_size:#x} bytes, {card.eop_buffer_size:#x} are needed")
    held.append(_held(device, "EOP buffer", p.eop_address, page_align(p.eop_size)))
  if p.control_stack_size != card.control_stack_size:
    raise Refused(
      errno.EINVAL, f"control stack of {p.control_stack_size:#x} bytes, the node has {card.control_stack_size:#x}"
    )
  if p.save_size < card.save_area_size:
    raise Refused(errno.EINVAL, f"save area of {p.save_size:#x} bytes, {card.save_area_size:#x} are needed")
  held.append(_held(device, "save area", p.save_area, page_align((p.save_size + card.debug_memory_size) * card.xccs)))
  return held


def _sdma_place(device: ProcessDevice, p: Properties) -> tuple[Properties, int]:
  """allocate_sdma_queue: a free queue of the engines, numbered engine first; returns the queue's bit too."""
  gpu, card = device.gpu, device.gpu.card
  if p.kind == kfd.KFD_IOC_QUEUE_TYPE_SDMA_XGMI:
    if card.sdma_xgmi_engines:
      raise Unsupported("queue", "SDMA_XGMI", arch=card.name, where="CREATE_QUEUE", hint="ask for a queue of type SDMA")
    raise Refused(errno.ENOMEM, "this card has no XGMI copy engines")
  bits = range(card.sdma_engines * card.sdma_queues_reserved, card.sdma_engines * card.sdma_queues_per_engine)
  if p.kind == kfd.KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID:
    if p.engine >= card.sdma_engines:
      raise Refused(errno.EINVAL, f"copy engine {p.engine} of {card.sdma_engines}")
    free = [b for b in bits if b not in gpu.sdma_used and b % card.sdma_engines == p.engine]
  else:
    free = [b for b in bits if b not in gpu.sdma_used]
  if not free:
    raise Refused(errno.ENOMEM, "all queues of the copy engines are taken")
  return replace(p, engine=free[0] % card.sdma_engines, engine_queue=free[0] // card.sdma_engines), free[0]


def _doorbell_index(device: ProcessDevice, p: Properties) -> int:
  """allocate_doorbell: copy queues have fixed places, compute queues take the first free one outside of those."""
  card = device.gpu.card
  if p.kind in SDMA_KINDS:
    step = card.sdma_doorbell_step
    first = -(-card.sdma_doorbells[p.engine] // step) * step
    return first + (p.engine_queue & 1) * DOORBELL_MIRROR + (p.engine_queue >> 1)
  lo, hi = card.non_cp_doorbells
  for index in range(MAX_QUEUES_PER_PROCESS):
    if index not in device.doorbell_used and not lo <= index % DOORBELL_MIRROR <= hi:
      return index
  raise Refused(errno.EBUSY, "no doorbell is free")


def create(machine: Machine, process: KfdProcess, args: Any) -> None:
  """kfd_ioctl_create_queue."""
  p = _properties(args)
  device = process.device(args.gpu_id)
  if device.space is None:
    raise Refused(errno.ESRCH, "no address space yet: ACQUIRE_VM comes first")
  if p.kind == kfd.KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID and p.engine >= device.gpu.card.sdma_engines:
    raise Refused(errno.EINVAL, f"copy engine {p.engine} of {device.gpu.card.sdma_engines}")
  if device.gpu.card.gc_version >= (10, 0, 0):
    p = replace(p, target_xcc=0)  # only kfd_mqd_manager_v9.c reads it
  elif p.target_xcc >= device.gpu.card.xccs:  # the kernel driver hands it to the command processor unseen
    raise Unsupported("queue", f"PM4 for XCC {p.target_xcc} of {device.gpu.card.xccs}", where="CREATE_QUEUE")
  device.doorbell_region()
  held = _acquire(device, p)
  if len(device.queues) >= MAX_QUEUES:
    raise Refused(errno.ENOSPC, f"the process has {MAX_QUEUES} queues on this GPU")
  if held[0].gpu_id != device.gpu.gpu_id:
    raise Refused(errno.EINVAL, "the write pointer's buffer was allocated on another GPU")
  if held[0].kind == "userptr":  # amdgpu_amdkfd_map_gtt_bo_to_gart pins it for the scheduler, which reads it
    raise Refused(errno.EPERM, "the write pointer is in user memory, which cannot be pinned")
  bit = -1
  if p.kind in SDMA_KINDS:
    p, bit = _sdma_place(device, p)
  index = _doorbell_index(device, p)
  queue_id = next(i for i in range(len(process.queues) + 1) if i not in process.queues)
  kind = (
    SdmaQueue if p.kind in SDMA_KINDS else AqlQueue if p.kind == kfd.KFD_IOC_QUEUE_TYPE_COMPUTE_AQL else ComputeQueue
  )
  queue: Queue = kind(process, device, queue_id, p, index * 8)
  if bit >= 0:
    device.gpu.sdma_used.add(bit)
  queue.sdma_bit = bit
  queue.debugged = process.debug.attached and device.gpu.card.traps_off
  for buffer in held:
    buffer.queues[device.gpu.gpu_id] = buffer.queues.get(device.gpu.gpu_id, 0) + 1
  queue.held = held
  device.doorbell_used.add(index)
  device.by_doorbell[index * 8] = queue
  device.queues.append(queue)
  process.queues[queue_id] = queue
  machine.queues.append(queue)
  args.queue_id = queue_id
  args.doorbell_offset = device.places.doorbell_offset(device.gpu) | index * 8
  machine.trace.add(queue.name, "queue", "created", ring=p.ring_address, size=p.ring_size, doorbell=index * 8)


def update(process: KfdProcess, args: Any) -> None:
  """kfd_ioctl_update_queue: a new ring, percentage or priority; a ring of 0 or 0 percent stops the queue."""
  _ring_checks(args)
  queue = process.queues.get(args.queue_id)
  if queue is None:
    raise Refused(errno.EFAULT, f"no queue {args.queue_id}")
  device, gpu_id = queue.device, queue.gpu.gpu_id
  if args.ring_base_address and args.ring_size:
    ring = _held(device, "ring", args.ring_base_address, args.ring_size & ~(PAGE - 1), errno.EFAULT)
    queue.held[2].queues[gpu_id] -= 1
    ring.queues[gpu_id] = ring.queues.get(gpu_id, 0) + 1
    queue.held[2] = ring
  queue.reconfigure(
    replace(
      queue.properties,
      ring_address=args.ring_base_address,
      ring_size=args.ring_size,
      percentage=args.queue_percentage & 0xFF,
      priority=args.queue_priority,
    )
  )


def destroy(machine: Machine, process: KfdProcess, queue_id: int) -> None:
  """kfd_ioctl_destroy_queue: what it had not read is lost."""
  queue = process.queues.pop(queue_id, None)
  if queue is None:
    raise Refused(errno.EINVAL, f"no queue {queue_id}")
  device = queue.device
  machine.settle(queue)
  for buffer in queue.held:
    buffer.queues[queue.gpu.gpu_id] -= 1
  device.queues.remove(queue)
  machine.queues.remove(queue)
  device.by_doorbell.pop(queue.doorbell, None)
  device.doorbell_used.discard(queue.doorbell // 8)
  queue.gpu.sdma_used.discard(queue.sdma_bit)
  if queue.error is None and (queue.read != queue.write or queue.dispatching):
    machine.doubt(f"{queue.name}: destroyed with work in its ring (read {queue.read:#x}, write {queue.write:#x})")
  queue.state = State.INACTIVE


def set_cu_mask(machine: Machine, process: KfdProcess, args: Any) -> None:
  """kfd_ioctl_set_cu_mask: multiples of 32 units, which GC 10 and later enable in pairs."""
  if args.num_cu_mask % 32:
    raise Refused(errno.EINVAL, f"{args.num_cu_mask} bits of mask: a multiple of 32 is needed")
  if not args.num_cu_mask:
    raise Refused(errno.EINVAL, "an empty mask")
  count = min(args.num_cu_mask, 1024)
  mask = int.from_bytes(process.user.read(args.cu_mask_ptr, count // 8), "little")
  if args.queue_id not in process.queues:
    raise Refused(errno.EFAULT, f"no queue {args.queue_id}")
  queue = process.queues[args.queue_id]
  if queue.debugged:
    raise Refused(errno.EBUSY, "its compute units are masked for the debugger")
  pairs = queue.gpu.card.gc_version >= (10, 0, 0)  # which have WGPs (pqm_update_mqd)
  if pairs and any((mask >> i & 3) not in (0, 3) for i in range(0, count, 2)):
    raise Refused(errno.EINVAL, "compute units are enabled in pairs")
  queue.masked = True
  machine.ignored.note("KFD setting", "SET_CU_MASK", "a dispatch has the whole chip to itself")


def wave_state(process: KfdProcess, args: Any) -> None:
  """kfd_ioctl_get_queue_wave_state: only stopped compute queues have one; none of ours ever saves waves."""
  queue = process.queues.get(args.queue_id)
  if queue is None:
    raise Refused(errno.EFAULT, f"no queue {args.queue_id}")
  if not isinstance(queue, ComputeQueue) or queue.properties.active:
    raise Refused(errno.EINVAL, "only a stopped compute queue has a wave state")
  args.ctl_stack_used_size = args.save_area_used_size = 0
  offset = queue.properties.control_stack_size.to_bytes(4, "little")
  process.user.write(args.ctl_stack_address, offset + bytes(4) + offset + bytes(4))
