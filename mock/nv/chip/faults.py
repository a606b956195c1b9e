"""What ends a channel: errors with the number under which the kernel driver reports them (Xid).

Which unit reports what: the host engine ROBUST_CHANNEL_PBDMA_ERROR (`dev_pbdma.ref` of GA100, NV_PPBDMA_INTR_0), the
graphics and compute engine GR_EXCEPTION, copy engines an error each, the MMU FIFO_ERROR_MMU_ERR_FLT. Numbers are those
of nverror.h.
"""

from __future__ import annotations

from typing import Final

from tinyhw.autogen import nv_rm_status as status
from tinyhw.core.errors import MachineFault, PageFault, WatchdogExpired

_COPY: Final = tuple(getattr(status, f"ROBUST_CHANNEL_CE{n}_ERROR") for n in range(20))


class ChannelFault(MachineFault):
  """A command that the chip refuses: its channel, and the group that the channel is in, are dead from here on.

  `code` is one of ROBUST_CHANNEL_*; `unit` names the interrupt or exception that the chip raises.
  """

  def __init__(self, code: int, unit: str, message: str, *, address: int | None = None) -> None:
    self.code, self.unit = code, unit
    super().__init__(f"{unit}: {message}", address=address)


def host(unit: str, message: str) -> ChannelFault:
  """The host engine refuses: `unit` is a field of NV_PPBDMA_INTR_0 or 1."""
  return ChannelFault(status.ROBUST_CHANNEL_PBDMA_ERROR, unit, message)


def compute(unit: str, message: str) -> ChannelFault:
  """The compute engine refuses."""
  return ChannelFault(status.ROBUST_CHANNEL_GR_EXCEPTION, unit, message)


def compute_class(message: str) -> ChannelFault:
  """A method or class that the compute engine does not have."""
  return ChannelFault(status.ROBUST_CHANNEL_GR_CLASS_ERROR, "CLASS_ERROR", message)


def copy(engine: int, unit: str, message: str) -> ChannelFault:
  """The copy engine of that number refuses."""
  return ChannelFault(_COPY[engine], unit, message)


def code_of(error: Exception) -> int:
  """The number under which an error is reported."""
  if isinstance(error, ChannelFault):
    return error.code
  if isinstance(error, PageFault):
    return status.ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT
  if isinstance(error, WatchdogExpired):
    return status.ROBUST_CHANNEL_RESETCHANNEL_VERIF_ERROR  # "GPU stopped processing"
  return status.ROBUST_CHANNEL_GR_EXCEPTION
