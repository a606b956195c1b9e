"""KFD events of one process: creation, signals from CPU and GPU, waits, memory and hardware exceptions.

Behaviour after Linux 6.12 `amdkfd/kfd_events.c`. A GPU signals by storing to the event's slot of the event page and
raising an interrupt; slots that nobody has written hold all ones.
"""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tinyhw.autogen import kfd
from tinyhw.core.memory import U64, Region
from tinyhw.mock.amd.driver.places import ProcessPlaces
from tinyhw.mock.memory import Refused

UNSIGNALED: Final = 0xFFFF_FFFF_FFFF_FFFF
FIRST_OTHER: Final = (0x7FFF_FFFF >> 1) + 1  # KFD_FIRST_NONSIGNAL_EVENT_ID
TIMEOUT_INFINITE: Final = 0xFFFF_FFFF  # KFD_EVENT_TIMEOUT_INFINITE
LIMIT: Final = kfd.KFD_SIGNAL_EVENT_LIMIT
PAGE_BYTES: Final = LIMIT * 8
_DATA_SIZE: Final = ctypes.sizeof(kfd.kfd_event_data)


@dataclass(eq=False)
class Waiter:
  """One event of one wait."""

  event: KfdEvent | None
  activated: bool
  age_enabled: bool = False


@dataclass(eq=False)
class KfdEvent:
  """An event. `data` is what a memory or hardware exception leaves for the waiters."""

  event_id: int
  kind: int
  auto_reset: bool
  signaled: bool = False
  age: int = 1
  data: bytes = b""
  waiters: list[Waiter] = field(default_factory=list)

  @property
  def in_page(self) -> bool:
    """Whether a GPU can signal it: it has a slot in the event page."""
    return self.kind in (kfd.KFD_IOC_EVENT_SIGNAL, kfd.KFD_IOC_EVENT_DEBUG_EVENT)

  def set(self) -> None:
    self.signaled = not self.auto_reset or not self.waiters
    self.age += 1
    for waiter in self.waiters:
      waiter.activated = True


@dataclass(eq=False)
class Waiting:
  """A wait for events (kfd_wait_on_events) that has begun."""

  events: Events
  pointer: int
  waiters: list[Waiter]
  wait_all: bool

  def state(self) -> int:
    """KFD_IOC_WAIT_RESULT_*: TIMEOUT while it goes on."""
    if any(w.event is None for w in self.waiters):
      return int(kfd.KFD_IOC_WAIT_RESULT_FAIL)
    hits = sum(w.activated for w in self.waiters)
    done = hits == len(self.waiters) or (hits > 0 and not self.wait_all)
    return int(kfd.KFD_IOC_WAIT_RESULT_COMPLETE if done else kfd.KFD_IOC_WAIT_RESULT_TIMEOUT)

  def result(self) -> int:
    """How it stands, with the events' data in the client's memory. Raises Refused where an event is gone."""
    result = self.state()
    if result == kfd.KFD_IOC_WAIT_RESULT_FAIL:
      raise Refused(errno.EIO, "an event was destroyed while it was waited for")
    if result == kfd.KFD_IOC_WAIT_RESULT_COMPLETE:
      self.events.answer(self.pointer, self.waiters)
    return result

  def end(self) -> None:
    """It is over."""
    for w in self.waiters:
      if w.event is not None and w in w.event.waiters:
        w.event.waiters.remove(w)


class Events:
  """The events of a process. Ids below 4096 are slots of the event page; id 0 is never given out."""

  def __init__(self, places: ProcessPlaces) -> None:
    self.places, self.user = places, places.user
    self.events: dict[int, KfdEvent] = {}
    self.slots: U64 | None = None
    self.page: tuple[Region, int] | None = None
    self.page_handle = 0
    self.mapped_size = 0
    self.signal_count = 1

  # ---- the page

  def set_page(self, region: Region, offset: int, size: int, handle: int) -> None:
    """The client's buffer becomes the event page (kfd_event_page_set)."""
    if size < PAGE_BYTES:
      raise Refused(errno.EINVAL, f"event page of {size:#x} bytes, at least {PAGE_BYTES:#x} are needed")
    self._use_page(region, offset, size)
    self.page_handle = handle

  def _use_page(self, region: Region, offset: int, mapped: int) -> None:
    self.page = (region, offset)
    self.slots = region.u8[offset : offset + PAGE_BYTES].view("u8")
    self.slots[:] = UNSIGNALED
    self.mapped_size = mapped

  def close(self) -> None:
    """The process is gone, and a page of the driver's own with it."""
    if self.page is not None and not self.page_handle:
      self.page[0].close()

  # ---- calls

  def create(self, kind: int, auto_reset: bool) -> tuple[KfdEvent, int]:
    """A new event and the page offset that the call answers (0 for events without a slot)."""
    slot = kind in (kfd.KFD_IOC_EVENT_SIGNAL, kfd.KFD_IOC_EVENT_DEBUG_EVENT)
    if slot:
      if self.mapped_size and self.signal_count == self.mapped_size // 8:
        raise Refused(errno.ENOSPC, "all slots of the event page are taken")
      if self.slots is None:
        self._use_page(self.places.event_page(PAGE_BYTES), 0, 256 * 8)
      assert self.slots is not None
      free = next((i for i in range(1, min(self.mapped_size // 8, LIMIT)) if i not in self.events), None)
      if free is None:
        raise Refused(errno.ENOSPC, "all slots of the event page are taken")
      self.slots[free] = UNSIGNALED
      self.signal_count += 1
    else:
      free = next(i for i in range(FIRST_OTHER, FIRST_OTHER + len(self.events) + 1) if i not in self.events)
    event = self.events[free] = KfdEvent(free, kind, auto_reset)
    return event, self.places.event_offset() if slot else 0

  def _get(self, event_id: int) -> KfdEvent:
    event = self.events.get(event_id)
    if event is None:
      raise Refused(errno.EINVAL, f"no event {event_id:#x}")
    return event

  def destroy(self, event_id: int) -> None:
    event = self._get(event_id)
    for waiter in event.waiters:
      waiter.event = None
    if event.in_page:
      self.signal_count -= 1
    del self.events[event_id]

  def set(self, event_id: int) -> None:
    event = self._get(event_id)
    if event.kind != kfd.KFD_IOC_EVENT_SIGNAL:
      raise Refused(errno.EINVAL, f"event {event_id:#x} is not a signal event")
    event.set()

  def reset(self, event_id: int) -> None:
    event = self._get(event_id)
    if event.kind != kfd.KFD_IOC_EVENT_SIGNAL:
      raise Refused(errno.EINVAL, f"event {event_id:#x} is not a signal event")
    event.signaled = False

  # ---- from the GPU

  def interrupt(self, partial_id: int, valid_bits: int) -> bool:
    """kfd_signal_event_interrupt: the event that the interrupt names, or all whose slots were written. Whether there
    was one."""
    if self.slots is None:
      return False
    named = None
    if valid_bits and partial_id < LIMIT and int(self.slots[partial_id]) != UNSIGNALED:
      named = self.events.get(partial_id)
    hit = (
      [named]
      if named is not None
      else [e for i, e in self.events.items() if i < LIMIT and int(self.slots[i]) != UNSIGNALED]
    )
    for event in hit:
      if not event.in_page:
        continue
      self.slots[event.event_id] = UNSIGNALED
      event.set()
    return bool(hit)

  def exception(self, kind: int, data: Any) -> int:
    """Signal all events of a kind (memory or hardware exceptions) with their data; returns how many there were."""
    hit = [e for e in self.events.values() if e.kind == kind]
    for event in hit:
      event.data = bytes(data)
      event.set()
    return len(hit)

  # ---- waits

  def wait(
    self,
    pointer: int,
    count: int,
    wait_all: bool,
    timeout_ms: int,
    run: Callable[[Callable[[], bool], int | None], None],
  ) -> int:
    """kfd_wait_on_events. `run(done, ns)` lets the machine go on (ns None: without end). Returns
    KFD_IOC_WAIT_RESULT_*."""
    waiting = self.begin(pointer, count, wait_all)
    try:
      if waiting.state() == kfd.KFD_IOC_WAIT_RESULT_TIMEOUT and timeout_ms:
        run(
          lambda: waiting.state() != kfd.KFD_IOC_WAIT_RESULT_TIMEOUT,
          None if timeout_ms == TIMEOUT_INFINITE else timeout_ms * 1_000_000,
        )
      return waiting.result()
    finally:
      waiting.end()

  def begin(self, pointer: int, count: int, wait_all: bool) -> Waiting:
    """Begin to wait for events; who has begun calls `Waiting.end`. Raises Refused for what is no event."""
    wanted = [
      kfd.kfd_event_data.from_buffer_copy(self.user.read(pointer + i * _DATA_SIZE, _DATA_SIZE)) for i in range(count)
    ]
    waiters = [self._waiter(d) for d in wanted]
    for w in waiters:
      if w.event is not None and not w.activated:
        w.event.waiters.append(w)
    return Waiting(self, pointer, waiters, wait_all)

  def _waiter(self, wanted: Any) -> Waiter:
    """init_event_waiter: takes the signal of an auto-reset event; an age that moved on counts as a signal."""
    event = self._get(wanted.event_id)
    waiter = Waiter(event, event.signaled)
    event.signaled = event.signaled and not event.auto_reset
    age = wanted.signal_event_data.last_event_age
    if event.kind == kfd.KFD_IOC_EVENT_SIGNAL and age:
      waiter.age_enabled = True
      if age != event.age:
        waiter.activated = True
    return waiter

  def answer(self, pointer: int, waiters: list[Waiter]) -> None:
    for i, w in enumerate(waiters):
      if not w.activated or w.event is None:
        continue
      if w.event.data:
        self.user.write(pointer + i * _DATA_SIZE, w.event.data)
      elif w.age_enabled:
        self.user.write(pointer + i * _DATA_SIZE, w.event.age.to_bytes(8, "little"))
