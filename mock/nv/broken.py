"""Faults of the chip that are declared (`mock.injected`), told as RM tells them: the channel's notifier and an Xid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tinyhw.autogen import nv_rm_status as status
from tinyhw.core.errors import PageFault
from tinyhw.mock.nv.chip.faults import ChannelFault
from tinyhw.mock.nv.driver.objects import RmError

if TYPE_CHECKING:
  from tinyhw.mock.injected import Fault
  from tinyhw.mock.nv.chip.channel import Channel
  from tinyhw.mock.nv.machine import NvMachine

_DECLARED: Final = "a fault that is declared"


def answer(machine: NvMachine, name: str) -> None:
  """RM or UVM is asked for something. Raises RmError where a fault is declared of it."""
  fault = machine.injected.answer(name)
  if fault is not None: raise RmError(fault.status or status.NV_ERR_GENERIC, _DECLARED)


def strike(channel: Channel, fault: Fault) -> None:
  """Have a fault happen in a turn of a channel. Numbers are those of nverror.h."""
  if fault.kind == "page fault":
    channel.fail(PageFault(fault.address, "read", 4, reason=_DECLARED))
  elif fault.kind == "ecc": channel.fail(ChannelFault(status.ROBUST_CHANNEL_GPU_ECC_DBE, "DBE", _DECLARED))
  elif fault.kind == "xid": channel.fail(ChannelFault(fault.number, f"Xid {fault.number}", _DECLARED))
  else:  # calls of its file are NV_ERR_GPU_IS_LOST from here on (mock.nv.rm)
    channel.machine.injected.gone.add(channel.gpu.index)
    lost = ChannelFault(status.ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS, "GPU has fallen off the bus", _DECLARED)
    for other in [c for c in channel.machine.channels if c.gpu is channel.gpu]: other.fail(lost)
