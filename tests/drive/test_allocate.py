"""Kernel-argument ring, bounce buffer, free cache and timeline against plain models."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyhw.core.errors import InvalidArgument, OutOfMemory
from tinyhw.drive.allocate import BounceBuffer, FreeCache, KernargRing
from tinyhw.drive.signal import SIGNAL_BYTES, Dependencies, Signal, SignalPool, Timeline


@given(st.lists(st.integers(1, 256), max_size=200), st.integers(1, 12))
def test_arguments_in_flight_are_never_overwritten(sizes: list[int], lag: int) -> None:
  memory = bytearray(2048)
  done, live = 0, []  # what the device finished; (value, start, stop) of launches that it may still read

  def wait(value: int) -> None:
    nonlocal done
    assert value < len(live) + 1 + done or value <= done, "waits for work that was never queued"
    done = max(done, value)

  ring = KernargRing(memoryview(memory), 0x1000, wait, segments=4)
  for value, size in enumerate(sizes, 1):
    at = ring.take(size)
    assert at % KernargRing.ALIGN == 0 and at + size <= len(memory)
    live = [row for row in live if row[0] > done]
    assert all(at + size <= start or stop <= at for _, start, stop in live)
    live.append((value, at, at + size))
    ring.used_by(value)
    if len(live) > lag: done = max(done, live[0][0])


def test_arguments_larger_than_a_segment_are_refused() -> None:
  ring = KernargRing(memoryview(bytearray(2048)), 0, lambda value: None, segments=4)
  with pytest.raises(InvalidArgument, match="513"): ring.take(513)


def test_a_bounce_half_is_reused_only_after_its_copy() -> None:
  waited: list[int] = []
  bounce = BounceBuffer(memoryview(bytearray(64)), 0x8000, waited.append)
  first, second = bounce.take(), bounce.take()
  assert (first.address, second.address, len(first.memory)) == (0x8000, 0x8020, 32)
  first.busy_until = 7
  assert bounce.take() is first and waited == [0, 0, 7]


@given(st.lists(st.tuples(st.booleans(), st.sampled_from((16, 32, 48)))))
def test_the_free_cache_keeps_at_most_its_limit_and_each_buffer_once(steps: list[tuple[bool, int]]) -> None:
  released: list[int] = []
  cache: FreeCache[int] = FreeCache(96, released.append)
  held, number, given_back = {}, 0, set()
  for take, size in steps:
    if take:
      found = cache.take(size)
      if found is not None:
        assert held.pop(found) == size and found not in released
    else:
      number += 1
      held[number] = size
      given_back.add(number)
      cache.give(size, number)
    for gone in released: held.pop(gone, None)
    assert cache.nbytes == sum(held.values()) <= 96
  cache.clear()
  assert cache.nbytes == 0 and len(set(released)) == len(released)


def test_a_timeline_starts_a_new_epoch_when_the_low_dword_wraps() -> None:
  signal, idle = Signal(memoryview(bytearray(SIGNAL_BYTES)), 0x40), []
  line = Timeline(signal, idle.append, start=(1 << 32) - 3)
  assert [line.next() for _ in range(2)] == [(1 << 32) - 2, (1 << 32) - 1] and not idle
  signal.value = (1 << 32) - 1
  assert line.next() == (1 << 32) + 1 and idle == [(1 << 32) - 1]
  assert signal.value == 1 << 32 and line.done((1 << 32) - 1) and not line.done(line.last)


def test_signals_are_zero_when_taken_and_end() -> None:
  memory = bytearray(b"\xff" * 2 * SIGNAL_BYTES)
  pool = SignalPool(memoryview(memory), 0x1000)
  a, b = pool.take(), pool.take()
  assert (a.address, b.address, a.value, b.ticks) == (0x1000, 0x1000 + SIGNAL_BYTES, 0, 0)
  with pytest.raises(OutOfMemory): pool.take()
  b.words[1], b.words[2] = 10, 25
  assert b.ticks == 15 and (b.start_address, b.stop_address) == (b.address + 8, b.address + 16)
  pool.give(a)
  assert pool.take().address == 0x1000


def test_dependencies_keep_the_latest_value_and_forget_those_reached() -> None:
  a, b = (Signal(memoryview(bytearray(SIGNAL_BYTES)), n) for n in (1, 2))
  waits = Dependencies()
  waits.add(a, 3); waits.add(a, 5); waits.add(a, 4); waits.add(b, 2)
  b.value = 2
  assert waits and list(waits.drain()) == [(a, 5)] and not waits


def test_segments_are_entered_in_their_order() -> None:
  """All of the ring before any of it comes again; the wait is for the segment that is entered."""
  waited: list[int] = []
  ring = KernargRing(memoryview(bytearray(2048)), 0, waited.append, segments=4)
  seen = []
  for value in range(1, 10):
    seen.append(ring.take(512))
    ring.used_by(value)
  assert seen == [512 * (k % 4) for k in range(9)] and waited == [0, 0, 0, 1, 2, 3, 4, 5]
