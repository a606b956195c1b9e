"""A client's own memory that it has given to GPUs (user pointers), where the client is another process.

No process can map another one's private pages. So GPUs have a copy: before queues run it takes what the process has
there, and behind that the process gets each dword that GPUs have changed. What a program may rely on comes out right:
GPUs see what was stored before a doorbell, and the process sees what was stored before the signal that it waits for. It
costs time by size (some milliseconds for 16 MiB). A dword that both change meanwhile is the GPU's. Atomic operations of
both on one dword would lose some: the report says that there were copies.
"""
from __future__ import annotations

import errno

import numpy as np

from tinyhw.core.memory import HostRegion
from tinyhw.mock.clients.memory import ClientMemory
from tinyhw.mock.memory import Refused


class UserCopy(HostRegion):
  """`size` bytes at `address` of a client, as GPUs have them. `gone` when the client has them no more."""

  def __init__(self, memory: ClientMemory, address: int, size: int) -> None:
    self.memory, self.address, self.size, self.gone = memory, address, size, False
    self.u8 = np.zeros(size, np.uint8)
    self._seen = np.zeros(size, np.uint8)

  def take(self) -> None:
    """Have what the client has."""
    if self.gone: return
    try: self.memory.read_into(self.address, self.u8)
    except Refused: self.gone = True
    else: self._seen[:] = self.u8

  def give(self) -> None:
    """Give the client what GPUs have changed since."""
    if self.gone: return
    now, before = self.u8.view(np.uint32), self._seen.view(np.uint32)
    changed = np.flatnonzero(now != before)
    if not len(changed): return
    for run in np.split(changed, np.flatnonzero(np.diff(changed) != 1) + 1):
      first, end = int(run[0]), int(run[-1]) + 1
      try: self.memory.write(self.address + 4 * first, now[first:end].tobytes())
      except Refused:
        self.gone = True
        return
      before[first:end] = now[first:end]


def copy_of(memory: ClientMemory, address: int, size: int) -> UserCopy:
  """The copy of memory that the client has by now. Raises Refused where it has not got it."""
  found = UserCopy(memory, address, size)
  found.take()
  if found.gone: raise Refused(errno.EFAULT, f"user memory at {address:#x} is not mapped")
  return found

