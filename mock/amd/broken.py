"""Faults of the chip that are declared (`mock.injected`), told as Linux 6.12's amdkfd tells them."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

from tinyhw.autogen import kfd
from tinyhw.core.errors import Error, MachineFault, PageFault
from tinyhw.mock.amd.chip.queue import Queue, State
from tinyhw.mock.amd.driver import drm
from tinyhw.mock.memory import Refused

if TYPE_CHECKING:
  from tinyhw.mock.amd.driver.process import OpenFile
  from tinyhw.mock.amd.machine import Machine
  from tinyhw.mock.injected import Fault

DECLARED: Final = "a fault that is declared"


def may_fail(machine: Machine, file: OpenFile, request: int) -> None:
  """A call of the kernel driver's. Raises Refused where a fault is declared for it, and where the card is gone."""
  injected = machine.injected
  known = machine.kfd.by_number.get(request & 0xFF) if file.kind == "kfd" else None
  injected.call(kfd.IOCTLS[known].name if known is not None else drm.name_of(request))
  if file.gpu is not None and file.gpu.index in injected.gone:
    raise Refused(errno.ENODEV, "the card is gone from the bus")


def strike(queue: Queue, fault: Fault) -> None:
  """Have a fault happen in a turn of a queue."""
  if fault.kind == "page fault":
    return queue.fail(PageFault(fault.address, "read", 4, reason=DECLARED))
  if fault.kind == "ecc": return _ecc(queue)
  _gone(queue)


def _stop(queue: Queue, error: Error) -> None:
  queue.error, queue.wait, queue.state = error, None, State.HUNG
  machine = queue.machine
  machine.failures += 1
  machine.found(f"{queue.name}: {error}")
  for other in queue.device.queues:
    if other.error is None: other.state = State.EVICTED
  queue.device.evicted += 1


def _ecc(queue: Queue) -> None:
  """kfd_signal_poison_consumed_event (kfd_events.c): hardware events say that ECC has lost memory, memory events that
  poison was consumed, imprecisely; the queues are off the chip (event_interrupt_poison_consumption_v11). The SIGBUS
  that the kernel sends with them is logged and not sent."""
  gpu_id, events = queue.gpu.gpu_id, queue.process.events
  _stop(queue, MachineFault("an uncorrectable ECC error: poisoned memory was consumed (a fault that is declared)"))
  queue.machine.log(queue.gpu, f"Send SIGBUS to process {queue.process.pid}")
  events.exception(kfd.KFD_IOC_EVENT_HW_EXCEPTION, kfd.kfd_hsa_hw_exception_data(
    reset_type=kfd.KFD_HW_EXCEPTION_WHOLE_GPU_RESET, reset_cause=kfd.KFD_HW_EXCEPTION_ECC, memory_lost=1,
    gpu_id=gpu_id))
  data = kfd.kfd_hsa_memory_exception_data(gpu_id=gpu_id, ErrorType=kfd.KFD_MEM_ERR_POISON_CONSUMED)
  data.failure.imprecise = 1
  events.exception(kfd.KFD_IOC_EVENT_MEMORY, data)


def _gone(queue: Queue) -> None:
  """The card has left the bus: its queues stand, and nobody tells (drm_dev_unplug; calls of its node are ENODEV,
  drm_ioctl.c)."""
  queue.machine.injected.gone.add(queue.gpu.index)
  _stop(queue, MachineFault("the card is gone from the bus (a fault that is declared)"))
  queue.machine.log(queue.gpu, "device lost from bus!")
