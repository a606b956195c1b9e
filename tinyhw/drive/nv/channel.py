"""A GPFIFO channel: a pushbuffer and its ring of entries, what the GPU reads of them, and the error notifier.

Pushbuffer, ring and GP_PUT lie in the GPU's memory, where the host engine has them at once: the host's stores travel to
it, and none of the GPU's loads back. The processor gathers such stores, so `Port.fence` stands between entries, GP_PUT
and doorbell. What was submitted is free again once the timeline says that it is done: GP_GET only says that an entry
was fetched.
"""
from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from tinyhw.autogen import nv_rm_alloc, nv_rm_control, nv_uvm
from tinyhw.core.errors import InvalidArgument, WaitTimeout
from tinyhw.drive.nv.rm import Aperture, Buffer, Gpu, Rm
from tinyhw.drive.queue import BoundStream, Decoder, HardwareQueue, Ring
from tinyhw.wire import gpfifo
from tinyhw.wire.gpfifo import Notification, Userd

ENTRIES: Final = 4096
PUSH_BYTES: Final = 1 << 20
_USERD_AT: Final = 0
_CONTEXT_BYTES: Final = 64 << 20  # addresses for what UVM maps of a channel (its context); RM says how much it needs
_SPARE: Final = 8            # entries that are never used, so that a full ring is not an empty one


class Channel:
  """What RM has of one channel: its group, its objects, its memory. Freed with `close`."""

  def __init__(self, rm: Rm, gpu: Gpu, name: str, engine: int, class_id: int, done: Callable[[], int],
               decode: Decoder) -> None:
    self.rm, self.gpu = rm, gpu
    self._buffers: list[Buffer] = []
    self._handles: list[int] = []
    compute = engine == nv_rm_alloc.NV2080_ENGINE_TYPE_GRAPHICS
    try:
      self._open(engine, class_id, compute)
      token = rm.control(self.handle, nv_rm_control.NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN,
                         nv_rm_control.NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS())
      ring = PushRing(rm, self._push, self._ring, self.userd, gpu.usermode + nv_rm_alloc.NVC361_NOTIFY_CHANNEL_PENDING,
                      int(token.workSubmitToken), done)
    except BaseException:
      self.close()
      raise
    self.queue = PushQueue(name, ring, decode)

  def _open(self, engine: int, class_id: int, compute: bool) -> None:
    a, rm, gpu = nv_rm_alloc, self.rm, self.gpu
    self._ring, self._push = self._take(ENTRIES * gpfifo.SIZE), self._take(PUSH_BYTES)
    page = self._take(4096, contiguous=True)
    self.userd = Userd.from_buffer(page.bytes(), _USERD_AT)
    errors = self._take(4096, Aperture.SYSTEM, mapped=False)
    self.notifier = Notification.from_buffer(errors.bytes())  # NV_CHANNELGPFIFO_NOTIFICATION_TYPE_ERROR is the first
    group = rm.alloc(gpu.device, a.KEPLER_CHANNEL_GROUP_A, a.NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS(
      hVASpace=gpu.va_space, engineType=engine))
    self._handles.append(group)
    share = rm.alloc(group, a.FERMI_CONTEXT_SHARE_A, a.NV_CTXSHARE_ALLOCATION_PARAMETERS(
      hVASpace=gpu.va_space, flags=a.NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC)) if compute else 0
    params = a.NV_CHANNEL_ALLOC_PARAMS(hObjectError=errors.handle, gpFifoOffset=self._ring.address,
                                       gpFifoEntries=ENTRIES, hContextShare=share, engineType=engine)
    params.hUserdMemory[0], params.userdOffset[0] = page.handle, _USERD_AT
    self.handle = rm.alloc(group, gpu.arch.channel_class, params)
    if compute: rm.alloc(self.handle, class_id)
    else: rm.alloc(self.handle, class_id, a.NVB0B5_ALLOCATION_PARAMETERS(
      version=a.NVB0B5_ALLOCATION_PARAMETERS_VERSION_1, engineType=engine))
    rm.uvm(nv_uvm.UVM_REGISTER_CHANNEL, nv_uvm.UVM_REGISTER_CHANNEL_PARAMS(
      gpuUuid=gpu.identity(), rmCtrlFd=rm.fd, hClient=rm.root, hChannel=self.handle,
      base=rm.reserve(_CONTEXT_BYTES), length=_CONTEXT_BYTES))
    rm.control(group, nv_rm_control.NVA06C_CTRL_CMD_GPFIFO_SCHEDULE,
               nv_rm_control.NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS(bEnable=1))

  def _take(self, size: int, kind: Aperture = Aperture.VRAM, **options: Any) -> Buffer:
    buffer = self.rm.take(self.gpu, size, kind, host=True, low=True, **options)
    self._buffers.append(buffer)
    return buffer

  def close(self) -> None:
    """Free the group, and with it the channel; then its memory."""
    for handle in self._handles: self.rm.free_object(handle)
    self._handles.clear()
    for buffer in self._buffers: self.rm.give(buffer)
    self._buffers.clear()


class PushRing(Ring):
  """The host's side of a channel, as queues see it: words, of which each doorbell tells one piece or two."""

  def __init__(self, rm: Rm, push: Buffer, entries: Buffer, userd: Any, door: int, token: int,
               done: Callable[[], int]) -> None:
    self._port, self._address, self._userd, self._doorbell, self._token = rm.port, push.address, userd, door, token
    self.words, self._entries = push.bytes().cast("I"), entries.bytes()[:ENTRIES * gpfifo.SIZE].cast("Q")
    self.size, self._done = len(self.words), done
    # An entry's bits are sums of what its address and its words say.
    self._one = gpfifo.Segment(0, 1).encode()
    self._more = gpfifo.Segment(0, 2).encode() - self._one
    self.at = self._told = self._free = 0  # words written, told to the GPU, free again; they only grow
    self._entry = self._entry_free = 0
    self.free_to = -1  # `has_room` says
    self._pending: deque[tuple[int, int, int]] = deque()  # (timeline value, words, entries) up to a submission's end

  @property
  def read_at(self) -> int:
    """Where the oldest words are that may still be read."""
    self._look()
    return self._free % self.size

  def pointers(self) -> str:
    """The entries that host and device look at, for people."""
    return f"GP_GET is {self._userd.GPGet:#x}, GP_PUT {self._userd.GPPut:#x}"

  @property
  def used(self) -> int:
    """Words that may still be read."""
    self._look()
    return self.at - self._free

  def _look(self) -> None:
    done, pending = self._done(), self._pending
    while pending and pending[0][0] <= done: _, self._free, self._entry_free = pending.popleft()

  def has_room(self, count: int) -> bool:
    """Whether so many words fit now, in two entries more."""
    if self.size - (self.at - self._free) > count and self._entry - self._entry_free < ENTRIES - _SPARE: return True
    self._look()
    return self.size - (self.at - self._free) > count and self._entry - self._entry_free < ENTRIES - _SPARE

  def has_entry(self) -> bool:
    """Whether an entry is free, as far as is known."""
    return self._entry - self._entry_free < ENTRIES - _SPARE

  def wait_for_room(self, count: int, timeout_s: float, name: str) -> None:
    """Wait until so many words fit. Raises WaitTimeout."""
    def fits() -> bool: return self.has_room(count)
    if not fits() and not self._port.wait(fits, timeout_s):
      raise WaitTimeout(name, packet=f"host, for {count} free words of pushbuffer", address=self._doorbell,
                        wanted=count, seen=self.size - self.used, seconds=timeout_s,
                        hint="the GPU does not finish what was submitted: see the methods of the oldest submission")

  def push(self, words: array[int] | memoryview[int], timeout_s: float = 30.0, name: str = "ring") -> int:
    """Write words behind those already there, in one piece; returns where they start."""
    count, size = len(words), self.size
    if count >= size // 2:
      raise InvalidArgument(f"{count} words do not fit a pushbuffer of {size}", where=name, hint="submit it in parts")
    where = self.at & (size - 1)
    if where + count > size:
      self.publish()
      self.words[where:] = array("I", bytes(4 * (size - where)))  # no-operations, for who reads it back
      self.at += size - where
      self._told, where = self.at, 0
    if not self.has_room(count): self.wait_for_room(count, timeout_s, name)
    self.words[where:where + count] = memoryview(words)
    start, self.at = self.at, self.at + count
    return start

  def publish(self) -> None:
    """Make an entry of the words that none tells of yet."""
    count = self.at - self._told
    if not count: return
    self.tell(self._address + 4 * (self._told & (self.size - 1)), count)
    self._told = self.at

  def tell(self, address: int, count: int) -> None:
    """Make an entry of words that lie at a GPU address, which is a multiple of 4 and below gpfifo.END."""
    self._entries[self._entry & ENTRIES - 1] = self._one + address + (count - 1) * self._more
    self._entry += 1

  def ring_doorbell(self) -> None:
    """Publish the words, then tell the GPU."""
    if self.at != self._told: self.publish()
    port = self._port
    port.fence()
    self._userd.GPPut = self._entry & ENTRIES - 1
    port.fence()
    port.doorbell(self._doorbell, self._token, 4)

  def used_by(self, value: int) -> None:
    """What was pushed so far is read until the timeline reaches `value`."""
    self._pending.append((value, self.at, self._entry))


class PushQueue(HardwareQueue):
  """A channel's ring with its last submissions."""
  ring: PushRing

  def submit(self, stream: BoundStream, value: int, waits: Iterable[tuple[int, int]] = (),
             timeout_s: float = 30.0) -> None:
    """See HardwareQueue; the words are the ring's again once the timeline has reached `value`."""
    super().submit(stream, value, waits, timeout_s)
    self.ring.used_by(value)

  def submit_at(self, address: int, stream: BoundStream, value: int, waits: Iterable[tuple[int, int]] = (),
                timeout_s: float = 30.0) -> None:
    """The same with the stream's words, which lie at a GPU address already until the timeline has reached `value`."""
    ring = self.ring
    if waits:
      self.push_waits(waits, timeout_s)
      ring.publish()
    ring.tell(address, len(stream.words))
    ring.ring_doorbell()
    ring.used_by(value)
    self.remember(0, len(stream.words), value, stream.label, stream.words.tolist())
