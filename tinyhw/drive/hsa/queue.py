"""An AQL queue of ROCm's runtime: packets written into its ring, and its doorbell.

One thread at a time writes (the device's lock). A packet's body is stored before its first dword, which makes it valid,
and the doorbell is rung behind both: a processor that keeps stores in order (x86-64) needs no more.
"""
from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from tinyhw.autogen import hsa
from tinyhw.core.called import Plain
from tinyhw.core.errors import DeviceError
from tinyhw.wire import aql

if TYPE_CHECKING:
  import numpy.typing as npt

  from tinyhw.drive.hsa.library import Agent, HsaSystem

PACKETS: Final = 4096  # of the ring, at most
_NO_HINT: Final = 0xFFFFFFFF  # of scratch and LDS: the runtime sees what packets ask for
_BARRIER: Final = aql.body(hsa.hsa_barrier_and_packet_t)
_SYSTEM: Final = hsa.HSA_FENCE_SCOPE_SYSTEM
BARRIER_HEAD: Final = aql.header(hsa.HSA_PACKET_TYPE_BARRIER_AND, barrier=True, acquire=_SYSTEM, release=_SYSTEM)
# What kernels of the device have written, later ones see; hosts and others see it behind a barrier packet.
DISPATCH_HEAD: Final = aql.header(hsa.HSA_PACKET_TYPE_KERNEL_DISPATCH, barrier=True, acquire=_SYSTEM,
                                  release=hsa.HSA_FENCE_SCOPE_AGENT)
_POLL_S: Final = 20e-6


class AqlQueue:
  """A queue of an agent. `stopped` hears, in a thread of the runtime's, with which status the queue has stopped;
  `check` raises where nothing goes on any more."""

  def __init__(self, system: HsaSystem, agent: Agent, stopped: Callable[[int], None],
               check: Callable[[], None]) -> None:
    library = system.library
    most = library.number(ctypes.c_uint32, "hsa_agent_get_info", agent.handle, hsa.HSA_AGENT_INFO_QUEUE_MAX_SIZE)
    self.size, self._check = min(PACKETS, most), check
    # The runtime keeps its address.
    self._heard = Plain(lambda status, queue, data: stopped(status), ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p,
                        failed=0)
    self.handle = library.handle("hsa_queue_create", agent.handle, self.size, hsa.HSA_QUEUE_TYPE_MULTI,
                                 self._heard.address, None, _NO_HINT, _NO_HINT)
    library.call("hsa_amd_profiling_set_profiler_enabled", self.handle, 1)
    self.told = hsa.amd_queue_t.from_address(self.handle)
    ring = (ctypes.c_ubyte * (self.size * aql.PACKET_BYTES)).from_address(self.told.hsa_queue.base_address)
    self._bytes = memoryview(ring).cast("B")
    self._heads = self._bytes.cast("I")
    self._words = np.frombuffer(self._bytes, np.uint32).reshape(self.size, -1)
    self._bell = self.told.hsa_queue.doorbell_signal.handle
    self._read_index = library.function("hsa_queue_load_read_index_scacquire")
    self._write_index = library.function("hsa_queue_store_write_index_screlease")
    self._ring = library.function("hsa_signal_store_screlease")
    self._destroy = library.function("hsa_queue_destroy")
    self.next = self._read = 0  # the index of the next packet, and how far the packet processor was

  def push(self, head: int, body: bytes) -> None:
    """Queue a packet: its first dword, and the 60 bytes behind it."""
    index = self.next
    if index - self._read >= self.size: self._await_room(1)
    slot = index % self.size
    at = slot * aql.PACKET_BYTES
    self._bytes[at + 4:at + aql.PACKET_BYTES] = body
    self._heads[at // 4] = head
    self._told(index + 1)

  def push_all(self, packets: npt.NDArray[np.uint32]) -> None:
    """Queue packets, 16 dwords each; no more than the ring has."""
    count, index = len(packets), self.next
    if index - self._read + count > self.size: self._await_room(count)
    slots = np.arange(index, index + count) % self.size
    self._words[slots, 1:] = packets[:, 1:]
    self._words[slots, 0] = packets[:, 0]
    self._told(index + count)

  def barrier(self, depends: int, completion: int) -> None:
    """Queue a packet behind which work comes after all before it, and after a signal has reached 0; the signal
    `completion` is counted down."""
    self.push(BARRIER_HEAD, _BARRIER.pack(0, depends, 0, 0, 0, 0, 0, completion))

  def _told(self, end: int) -> None:
    self._write_index(self.handle, end)
    self.next = end
    self._ring(self._bell, end - 1)

  def _await_room(self, count: int) -> None:
    while self.next - self._read + count > self.size:
      self._read = self._read_index(self.handle)
      if self.next - self._read + count <= self.size: return
      self._check()
      time.sleep(_POLL_S)

  def destroy(self) -> None:
    """Take the queue off the device. Raises DeviceError where the runtime refuses."""
    self._bytes = self._heads = memoryview(b"")
    self._words = self._words[:0]
    if self._destroy(self.handle): raise DeviceError("hsa_queue_destroy fails", where="HSA")
