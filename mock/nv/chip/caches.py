"""What caches of a channel's SMs may still hold, and what a copy engine has not yet told: the mock's memory is strong,
so nothing goes wrong for it here. What would have needed an invalidation, barrier or flush on a chip is a finding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
  from tinyhw.mock.nv.chip.channel import Channel
  from tinyhw.mock.nv.chip.launch import QmdLaunch


class Caches:
  """See the module; of one channel."""

  def __init__(self, channel: Channel) -> None:
    self.channel, self.machine = channel, channel.machine
    self._constants: dict[tuple[int, int], bytes] = {}  # banks as launches have read them
    self._qmds: dict[int, bytes] = {}  # as the scheduler has read them, by address
    self._data = False  # a launch may have filled the data caches since they were last invalidated
    self._unflushed = False  # a copy without FLUSH_ENABLE was the last

  def invalidate(self, constants: bool, data: bool) -> None:
    """A method has these caches forget what they hold."""
    if constants:
      self._constants.clear()
    if data:
      self._data = False

  def scheduled(self, address: int, raw: bytes, fresh: bool) -> None:
    """A QMD is scheduled; `fresh`: what the scheduler may hold of it is invalidated first."""
    before = raw if fresh else self._qmds.get(address, raw)
    if before != raw:
      self._tell(f"the scheduler may hold the QMD at {address:#x} as it was before: it is scheduled without INVALIDATE")
    self._qmds[address] = raw

  def forget(self, address: int) -> None:
    """The scheduler's copy of a QMD is invalidated."""
    self._qmds.pop(address, None)

  def begins(self, launch: QmdLaunch) -> None:
    """A launch begins, and ends with the barrier that its QMD names."""
    plan, name = launch.plan, launch.name
    self.invalidate(plan.forgets_constants, plan.forgets_data)
    if self._data:
      self._tell(f"{name} is launched without INVALIDATE_SHADER_DATA_CACHE: SMs read what their L1 holds of launches "
                 "before")
    self._data = True
    for index, place in launch.banks.items():
      now = launch.space.read(*place)
      before = now if plan.fresh[index] else self._constants.get(place, now)
      if before != now:
        self._tell(f"constant bank {index} of {name} may hold what was at its place before: neither "
                   "CONSTANT_BUFFER_INVALIDATE nor INVALIDATE_SHADER_CONSTANT_CACHE")
      self._constants[place] = now
    if not plan.barrier:
      self._tell(f"{name} ends with CWD_MEMBAR_TYPE L1_NONE: who sees its semaphore need not see what it wrote")

  def copied(self, flushed: bool) -> None:
    """A copy has begun."""
    self._unflushed = not flushed

  def released(self) -> None:
    """The host engine has written a semaphore."""
    if self._unflushed:
      self._tell("a semaphore is released behind LAUNCH_DMA with FLUSH_ENABLE 0: who sees it need not see what was "
                 "copied")

  def _tell(self, text: str) -> None:
    self.machine.doubt(f"{self.channel.name}: {text}")
