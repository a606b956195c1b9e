"""Command streams and rings against plain models: patching equals encoding, and a ring never loses, splits or repeats
a word."""
from __future__ import annotations

from array import array
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyhw.core.errors import EncodeError, InvalidArgument, OutOfMemory, WaitTimeout
from tinyhw.core.layout import Packet, bits, u32, u64
from tinyhw.drive.queue import CommandStream, HardwareQueue, Low, PointerUnit, Ring
from tinyhw.drive.signal import SIGNAL_BYTES, SignalPool


class Sample(Packet, dwords=5):
  """A packet with fields of every kind of place: inside a word, over two words, shifted, whole."""
  flag: int = bits(0, 3, 0, default=0)
  kind: int = bits(0, 7, 4, default=0)
  size: int = bits(0, 31, 8, default=0)
  address: int = bits(1, 63, 3, shift=3)
  wide: int = bits(3, 39, 20, default=0)
  data: int = bits(4, 31, 8, default=0)


class Plain(Packet, dwords=4):
  address: int = u64(0)
  low: int = u32(2)
  high: int = u32(3)


class FakePort:
  """A port whose `wait` runs a step of the device each time the condition is false."""

  def __init__(self, step: Callable[[], bool] | None = None) -> None:
    self.step, self.rung = step, []

  def doorbell(self, address: int, value: int, nbytes: int = 8) -> None: self.rung.append((address, value))

  def wait(self, done: Callable[[], bool], timeout_s: float) -> bool:
    while not done():
      if self.step is None or not self.step(): return False
    return True


@given(
  st.integers(0, 15),
  st.integers(0, (1 << 24) - 1),
  st.integers(0, (1 << 61) - 1),
  st.integers(0, (1 << 20) - 1),
  st.integers(0, (1 << 24) - 1),
)
def test_patching_a_bound_stream_equals_encoding_the_packet(
  flag: int, size: int, address: int, wide: int, data: int
) -> None:
  stream = CommandStream()
  stream.emit(
    [7, *Sample(address=0).encode()],
    Sample(address=0),
    {"flag": "f", "size": "s", "address": "a", "wide": "w", "data": "d"},
    header=1,
  )
  bound = stream.bind(f=15, s=(1 << 24) - 1, a=(1 << 64) - 8, w=(1 << 20) - 1, d=(1 << 24) - 1)
  for name, value in {"f": flag, "s": size, "a": address << 3, "w": wide, "d": data}.items(): bound.set(name, value)
  assert list(bound.words) == [7, *Sample(flag=flag, size=size, address=address << 3, wide=wide, data=data).encode()]


@given(st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 64) - 1))
def test_one_name_in_several_places_and_halves(address: int, value: int) -> None:
  stream = CommandStream()
  stream.emit(
    Plain(address=0, low=0, high=0).encode(), Plain(address=0, low=0, high=0), {"address": "a", "low": Low("v")}
  )
  stream.emit(Plain(address=0, low=0, high=0).encode(), Plain(address=0, low=0, high=0), {"address": "a"})
  stream.mark_words("b", 6, 7)
  bound = stream.bind(a=address, v=value, b=value)
  low, high = address & 0xFFFFFFFF, address >> 32
  assert list(bound.words) == [low, high, value & 0xFFFFFFFF, 0, low, high, value & 0xFFFFFFFF, value >> 32]


@pytest.mark.parametrize("name", ["flag", "kind", "size", "address", "wide", "data"])
def test_a_field_leaves_its_neighbours_alone(name: str) -> None:
  """Set and cleared among fields of ones, whatever was set before."""
  ones = {f.name: f.limit for f in Sample.FIELDS}
  stream = CommandStream()
  stream.emit(Sample(**ones).encode(), Sample(**ones), {name: "x"})
  bound = stream.bind(x=ones[name])
  for value in (0, 1 << 3, ones[name], 0):
    bound.set("x", value)
    assert list(bound.words) == Sample(**(ones | {name: value})).encode()


def test_a_value_that_does_not_fit_is_refused() -> None:
  stream = CommandStream()
  stream.emit(Sample(address=0).encode(), Sample(address=0), {"address": "a", "flag": "f"})
  bound = stream.bind()
  with pytest.raises(EncodeError, match="flag"): bound.set("f", 16)
  with pytest.raises(EncodeError, match="address"): bound.set("a", 4)
  with pytest.raises(EncodeError): bound.set("a", -8)
  with pytest.raises(EncodeError, match="no such field"): stream.emit([0] * 5, Sample(address=0), {"adress": "a"})
  with pytest.raises(EncodeError, match="whole dword"): stream.emit([0] * 5, Sample(address=0), {"flag": Low("v")})


class Device:
  """Reads a ring as hardware does: behind the doorbell, at its own pace, reporting its pointer with or without the
  wraps."""

  def __init__(self, words: int, unit: int, wraps: bool, keep_whole: bool, start: int = 0) -> None:
    self.memory = bytearray(words * 4)
    self.pointers = bytearray(16)
    self.port = FakePort(self.step)
    self.size, self.unit, self.wraps, self.at, self.taken = words, unit, wraps, start, []
    self.read = memoryview(self.pointers)[:8].cast("Q")
    self.read[0] = (start % words if wraps else start) * unit
    self.ring = Ring(
      self.port,
      memory=memoryview(self.memory),
      read_pointer=memoryview(self.pointers)[:8],
      write_pointer=memoryview(self.pointers)[8:],
      doorbell=0x1000,
      unit=unit,
      pad=lambda n: [0] * n,
      keep_whole=keep_whole,
      start=start,
    )

  def step(self, most: int = 3) -> bool:
    end = self.port.rung[-1][1] // self.unit if self.port.rung else self.at
    count = min(most, end - self.at)
    words = memoryview(self.memory).cast("I")
    self.taken += [words[(self.at + i) % self.size] for i in range(count)]
    self.at += count
    self.read[0] = (self.at % self.size if self.wraps else self.at) * self.unit
    return count > 0


@given(
  st.lists(st.integers(1, 15), max_size=60),
  st.sampled_from((PointerUnit.DWORDS, PointerUnit.BYTES)),
  st.booleans(),
  st.booleans(),
  st.sampled_from((0, 5, 16 * 1000 + 11, (1 << 32) - 7)),
)
def test_the_device_reads_every_word_once_in_order(
  sizes: list[int], unit: int, wraps: bool, keep_whole: bool, start: int
) -> None:
  device = Device(16, unit, wraps, keep_whole, start)
  sent, number = [], 1
  for size in sizes:
    words = array("I", range(number, number + size))
    number += size
    before = device.ring.at
    begin = device.ring.push(words)
    if keep_whole:
      assert begin % 16 + size <= 16 or begin % 16 == 0, "a submission was split by the ring's end"
      sent += [0] * (begin - before)
    sent += list(words)
    device.ring.ring_doorbell()
    assert device.ring.read_back(begin, size) == list(words)
  while device.step(): pass
  assert device.taken == sent
  assert device.ring.used == 0


def test_a_full_ring_of_a_dead_device_times_out_with_a_report() -> None:
  device = Device(16, PointerUnit.DWORDS, False, False)
  device.port.step = None
  device.ring.push(array("I", range(10)))
  with pytest.raises(WaitTimeout, match=r"compute 0.*free words") as error:
    device.ring.push(array("I", range(6)), 0.01, "compute 0")
  assert (error.value.wanted, error.value.seen) == (6, 5)


def test_more_than_a_ring_is_refused() -> None:
  with pytest.raises(InvalidArgument, match="indirect buffer"):
    Device(16, 1, False, False).ring.push(array("I", range(16)))


def test_a_queue_remembers_its_last_submissions() -> None:
  device = Device(16, PointerUnit.DWORDS, False, False)
  queue = HardwareQueue("compute", device.ring, lambda words: [f"word {w}" for w in words], keep=3)
  for value in range(1, 6):
    stream = CommandStream(f"kernel {value}")
    stream.emit([value] * 5, Plain(address=0, low=0, high=0))
    queue.submit(stream.bind(), value)
    device.step(100)
  assert [s.label for s in queue.history] == ["kernel 3", "kernel 4", "kernel 5"]
  assert [s.value for s in queue.unfinished(3)] == [4, 5]
  assert queue.text_of(queue.history[-1]) == ["word 5"] * 5
  assert queue.text_of(queue.history[0].__class__(0, 5, 1, "old")) == ["(overwritten in the ring)"]


def test_a_pool_holds_its_own_signals() -> None:
  first, second = (SignalPool(memoryview(bytearray(4 * SIGNAL_BYTES)), 0x1000 + k * 4 * SIGNAL_BYTES) for k in (0, 1))
  signals = [[pool.take() for _ in range(4)] for pool in (first, second)]
  assert [[pool.holds(s) for s in of] for of in signals for pool in (first, second)] == [
    [True] * 4, [False] * 4, [False] * 4, [True] * 4]
  with pytest.raises(OutOfMemory, match="signals"): first.take()
