"""Signals: 64-bit values in memory that host and device both see, and the timeline that orders a device's work.

A signal's memory is 32 bytes: the value, then two timestamps of the device's clock.

    +0  value    u64
    +8  start    u64   timestamp before a command
    +16 stop     u64   timestamp after it
    +24 mailbox  u64   what a waiter that sleeps asks the device to write, with an interrupt
"""
from __future__ import annotations

from collections.abc import Callable, Iterator

from tinyhw.core.errors import OutOfMemory

SIGNAL_BYTES = 32
_LOW = 0xFFFFFFFF


class Signal:
  """One value in shared memory. `address` is the device's address of it, `memory` the host's view of its 32 bytes."""
  __slots__ = ("address", "words")

  def __init__(self, memory: memoryview, address: int) -> None:
    self.address, self.words = address, memory[:SIGNAL_BYTES].cast("Q")

  @property
  def value(self) -> int: return int(self.words[0])

  @value.setter
  def value(self, value: int) -> None: self.words[0] = value

  @property
  def start_address(self) -> int: return self.address + 8

  @property
  def stop_address(self) -> int: return self.address + 16

  @property
  def ticks(self) -> int:
    """Device clock ticks between the two timestamps."""
    return int(self.words[2]) - int(self.words[1])


class SignalPool:
  """Hands out the signals of one shared buffer."""

  def __init__(self, memory: memoryview, address: int) -> None:
    self._memory, self._address = memory, address
    self._free = list(range(0, len(memory) - SIGNAL_BYTES + 1, SIGNAL_BYTES))[::-1]

  def take(self) -> Signal:
    if not self._free: raise OutOfMemory("signals", SIGNAL_BYTES, 0)
    offset = self._free.pop()
    signal = Signal(self._memory[offset:offset + SIGNAL_BYTES], self._address + offset)
    for i in range(4): signal.words[i] = 0
    return signal

  def give(self, signal: Signal) -> None: self._free.append(signal.address - self._address)

  def holds(self, signal: Signal) -> bool:
    """Whether the signal lies in this pool's memory."""
    return 0 <= signal.address - self._address < len(self._memory)


class Timeline:
  """The order of all work of one device: each submission gets the next value and writes it when it is done.

  Queue engines compare 32 bits (SDMA's POLL_REGMEM has no wider form), so the low dwords of all values that can be
  waited for at one time must not wrap. At each wrap the timeline waits until the device is idle and starts the next
  epoch by hand.
  """

  def __init__(self, signal: Signal, idle: Callable[[int], None], start: int = 0) -> None:
    self.signal, self.last, self._idle = signal, start, idle
    signal.value = start

  def next(self) -> int:
    """The value of the next submission."""
    value = self.last + 1
    if not value & _LOW:
      self._idle(self.last)
      self.signal.value = value  # low dword 0: every later value of this epoch compares greater
      value += 1
    self.last = value
    return value

  def done(self, value: int) -> bool: return int(self.signal.words[0]) >= value


class Dependencies(dict[int, tuple[Signal, int]]):
  """Values of other devices' timelines that this device's next submission has to wait for (after a copy between
  peers), by the addresses of their signals."""

  def add(self, signal: Signal, value: int) -> None:
    known = self.get(signal.address)
    if known is None or known[1] < value: self[signal.address] = signal, value

  def drop(self, pool: SignalPool) -> None:
    """Forget the signals of a pool, whose memory goes."""
    for address in [a for a, (signal, _) in self.items() if pool.holds(signal)]: del self[address]

  def drain(self) -> Iterator[tuple[Signal, int]]:
    """Those not reached yet; forgets all."""
    pending = list(self.values())
    self.clear()
    for signal, value in pending:
      if signal.value < value: yield signal, value
