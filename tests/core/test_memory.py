"""GPU memory against a model of single bytes: translation, permissions, faults, vectors that straddle mappings."""
from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw.core.errors import InvalidArgument, OutOfMemory, PageFault
from tinyhw.core.memory import GRANULE, PAGE, Access, AddressSpace, Allocator, HostRegion, Region

BASE = 0x7F00_0000_0000
Part = tuple[int, int, int]  # pages, the first one's number in the region or -1 for a hole, what is allowed


@pytest.fixture(scope="module")
def region() -> Region: return Region("test", 16 * PAGE)


def make_space(region: Region) -> AddressSpace:
  """Pages at BASE: [0,1] -> region 4..5, [2] -> region 9, a hole at 3, [4] read-only -> region 12."""
  space = AddressSpace()
  space.map(BASE, 2 * PAGE, region, 4 * PAGE)
  space.map(BASE + 2 * PAGE, PAGE, region, 9 * PAGE)
  space.map(BASE + 4 * PAGE, PAGE, region, 12 * PAGE, Access.READ)
  return space


class Layout:
  """Mappings at BASE, one after the other, and what they mean byte by byte."""

  def __init__(self, region: Region, parts: list[Part], unit: int) -> None:
    """Pages have `unit` bytes."""
    self.region, self.space, self.unit = region, AddressSpace(), unit
    self.pages: list[tuple[int, int]] = []
    for count, at, access in parts:
      if at >= 0: self.space.map(BASE + len(self.pages) * unit, count * unit, region, at * unit, access, unit)
      self.pages += [(at + k if at >= 0 else -1, access if at >= 0 else 0) for k in range(count)]

  def place(self, at: int, access: int) -> int | str:
    """Where a byte lies in the region, or why it cannot be accessed."""
    unit = self.unit
    page, allowed = self.pages[at // unit] if 0 <= at < len(self.pages) * unit else (-1, 0)
    if page < 0: return "not mapped"
    return page * unit + at % unit if allowed & access == access else "no permission"

  def places(self, at: int, width: int, access: int) -> list[int]:
    """Where the bytes of an access lie. Raises the fault of the first byte that is none."""
    found = []
    for k in range(width):
      place = self.place(at + k, access)
      if isinstance(place, str): raise PageFault(BASE + at + k, Access.name(access), width, reason=place)
      found.append(place)
    return found


page_counts = st.integers(1, 2)
parts = st.tuples(page_counts, st.one_of(st.just(-1), st.integers(0, 14)),
                  st.sampled_from([Access.ALL, Access.ALL, Access.READ, Access.READ | Access.WRITE, Access.WRITE]))
layouts = st.lists(parts, min_size=1, max_size=5)
units = st.sampled_from([PAGE, GRANULE])
offsets = st.one_of(st.integers(-64, 8 * PAGE), *(st.integers(p * PAGE - 20, p * PAGE + 20) for p in range(8)))
widths = st.sampled_from([1, 2, 4, 8, 12, 16])
kinds = st.sampled_from([Access.READ, Access.WRITE, Access.READ | Access.ATOMIC])
def near(at: int, unit: int) -> int:
  """The offset, or one that small units have."""
  return at if unit == PAGE else at % (12 * unit) - 20


TWO = [(1, 4, Access.ALL), (1, 9, Access.ALL)]  # adjacent, and apart in memory
TWICE = [(1, 4, Access.ALL), (1, 4, Access.ALL)]  # the same memory


def as_array(width: int, n: int, seed: int) -> npt.NDArray[Any]:
  dtype: Any = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}.get(width, np.uint32)
  shape = (n, width // 4) if width > 8 else (n,)
  return np.random.default_rng(seed).integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)


def same_fault(fault: PageFault, wanted: PageFault, lane: int | None = None) -> bool:
  return (fault.address, fault.access, fault.reason, fault.lane) == (wanted.address, wanted.access, wanted.reason, lane)


@given(layouts, units, st.lists(offsets, min_size=0, max_size=40), widths, st.sampled_from([1, 2, 4, 8, 16]), kinds,
       st.integers(0, 9))
@example(TWO, PAGE, [PAGE - 7], 8, 1, Access.READ, 0)
@example(TWO, PAGE, [PAGE - 1], 2, 1, Access.READ, 0)
@example(TWO, PAGE, [PAGE - 2], 4, 2, Access.READ, 0)
@example(TWO, PAGE, [PAGE - 4, PAGE], 16, 4, Access.READ, 0)
def test_gather_reads_what_the_bytes_are(region: Region, layout: list[Part], unit: int, at: list[int], width: int,
                                         alignment: int, access: int, seed: int) -> None:
  model, at = Layout(region, layout, unit), [near(a, unit) // alignment * alignment for a in at]
  region.u8[:] = np.random.default_rng(seed).integers(0, 256, region.size, dtype=np.uint8)
  addresses = np.array([BASE + a for a in at], np.uint64)
  places, lane = [], 0
  try:
    for a in at:
      places += model.places(a, width, access)
      lane += 1
  except PageFault as wanted:
    with pytest.raises(PageFault) as fault: model.space.gather(addresses, width, access)
    assert same_fault(fault.value, wanted, lane)
  else:
    found = model.space.gather(addresses, width, access)
    assert found.shape == as_array(width, len(at), 0).shape
    assert found.tobytes() == region.u8[np.array(places, np.intp)].tobytes()


@given(layouts, units, st.lists(offsets, min_size=0, max_size=40), widths, st.sampled_from([1, 2, 4, 8, 16]),
       st.sampled_from([Access.WRITE, Access.READ | Access.WRITE | Access.ATOMIC]), st.integers(0, 9))
@example(TWO, PAGE, [PAGE - 7], 8, 1, Access.WRITE, 0)
@example(TWO, PAGE, [PAGE - 4, PAGE], 8, 4, Access.WRITE, 0)  # lanes that meet where the first one straddles
@example(TWO, PAGE, [PAGE - 8, PAGE - 4, PAGE], 16, 4, Access.WRITE, 0)
@example(TWICE, PAGE, [PAGE, 0], 4, 4, Access.WRITE, 0)  # lanes that meet in memory and not in address
def test_scatter_stores_lane_after_lane(region: Region, layout: list[Part], unit: int, at: list[int], width: int,
                                        alignment: int, access: int, seed: int) -> None:
  """Where lanes meet the highest one wins; a lane at fault is named, and then nothing is stored."""
  model, at = Layout(region, layout, unit), [near(a, unit) // alignment * alignment for a in at]
  region.u8[:] = np.random.default_rng(seed).integers(0, 256, region.size, dtype=np.uint8)
  addresses, values = np.array([BASE + a for a in at], np.uint64), as_array(width, len(at), seed)
  before, lane = region.u8.copy(), 0
  wanted = before.copy()
  try:
    for a in at:
      wanted[model.places(a, width, access)] = np.frombuffer(values[lane].tobytes(), np.uint8)
      lane += 1
  except PageFault as error:
    with pytest.raises(PageFault) as fault: model.space.scatter(addresses, values, access)
    assert same_fault(fault.value, error, lane)
    after = before
  else:
    model.space.scatter(addresses, values, access)
    after = wanted
  assert (region.u8 == after).all()


@given(layouts, units, st.lists(st.tuples(offsets, st.integers(1, 3 * PAGE), st.booleans()), max_size=5))
@example(TWO, PAGE, [(PAGE - 7, 8, True), (0, 2 * PAGE, False)])
def test_bytes_are_read_and_written_across_mappings(region: Region, layout: list[Part], unit: int,
                                                    steps: list[tuple[int, int, bool]]) -> None:
  model = Layout(region, layout, unit)
  region.u8[:] = np.random.default_rng(1).integers(0, 256, region.size, dtype=np.uint8)
  for at, size, write in ((near(a, unit), n if unit == PAGE else n % 100 + 1, w) for a, n, w in steps):
    data, before = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8), region.u8.copy()
    access = Access.WRITE if write else Access.READ

    def run(at: int = at, size: int = size, write: bool = write, data: npt.NDArray[np.uint8] = data) -> bytes:
      if not write: return model.space.read(BASE + at, size)
      model.space.write(BASE + at, data.tobytes())
      return b""
    try: places = model.places(at, size, access)
    except PageFault as wanted:
      with pytest.raises(PageFault) as fault: run()
      assert same_fault(fault.value, wanted)
    else:
      if not write: assert run() == region.u8[places].tobytes()
      else:
        run()
        for place, value in zip(places, data): before[place] = value
    assert (region.u8 == before).all()


@given(layouts, units, offsets, st.sampled_from([1, 2, 4, 8]), st.integers(0, (1 << 64) - 1))
def test_load_returns_what_store_wrote(region: Region, layout: list[Part], unit: int, at: int, width: int,
                                       value: int) -> None:
  model, at, value = Layout(region, layout, unit), near(at, unit), value & (1 << 8 * width) - 1
  data = np.frombuffer(value.to_bytes(width, "little"), np.uint8)
  before = region.u8.copy()
  try: before[model.places(at, width, Access.WRITE)] = data
  except PageFault as wanted:
    with pytest.raises(PageFault) as fault: model.space.store(BASE + at, width, value)
    assert same_fault(fault.value, wanted)
  else: model.space.store(BASE + at, width, value)
  assert (region.u8 == before).all()
  try: places = model.places(at, width, Access.READ)
  except PageFault as wanted:
    with pytest.raises(PageFault) as fault: model.space.load(BASE + at, width)
    assert same_fault(fault.value, wanted)
  else: assert model.space.load(BASE + at, width) == int.from_bytes(region.u8[places].tobytes(), "little")


def test_bytes_of_thousands_of_mappings(region: Region) -> None:
  space = AddressSpace()
  for k in range(3000): space.map(BASE + k * GRANULE, GRANULE, region, k * GRANULE, unit=GRANULE)
  data = np.random.default_rng(0).integers(0, 256, 3000 * GRANULE, dtype=np.uint8).tobytes()
  space.write(BASE, data)
  assert space.read(BASE, len(data)) == region.u8[:len(data)].tobytes() == data


def test_a_region_is_shared_through_its_file(region: Region) -> None:
  make_space(region).write(BASE, b"shared")
  assert os.pread(region.fd, 6, 4 * PAGE) == b"shared"


def test_user_memory_can_be_mapped() -> None:
  store = ctypes.create_string_buffer(3 * PAGE)
  at = -(-ctypes.addressof(store) // PAGE) * PAGE
  space = AddressSpace()
  space.map(BASE, PAGE, HostRegion(at, PAGE))
  space.store(BASE + 8, 8, 0x1122334455667788)
  assert ctypes.c_uint64.from_address(at + 8).value == 0x1122334455667788


def test_mapping_mistakes_are_refused(region: Region) -> None:
  space = make_space(region)
  wrong = ((BASE + 1, PAGE, 0), (BASE, PAGE, 0), (BASE - PAGE, 2 * PAGE, 0), (0, 17 * PAGE, 0), (0, 0, 0))
  for address, size, offset in wrong:
    with pytest.raises(InvalidArgument): space.map(address, size, region, offset)
  with pytest.raises(InvalidArgument): space.unmap(BASE, PAGE)
  version = space.version
  space.unmap(BASE, 3 * PAGE)
  assert space.version > version and space.find(BASE) is None
  with pytest.raises(PageFault, match="read of 4 bytes at 0x7f0000000000"): space.load(BASE, 4)


@given(st.lists(st.tuples(st.integers(1, 5000), st.sampled_from([1, 16, 256, 4096]), st.integers(0, 9)), max_size=40))
def test_the_allocator_never_overlaps_and_gives_all_back(steps: list[Part]) -> None:
  pool = Allocator(0x1000, 0x10000)
  live: dict[int, int] = {}
  for size, align, choice in steps:
    if choice < 3 and live:
      start = sorted(live)[choice % len(live)]
      assert pool.free(start) == live.pop(start)
      continue
    used = sorted((s, s + n) for s, n in live.items())
    gaps = zip([0x1000, *(hi for _, hi in used)], [*(lo for lo, _ in used), 0x11000])
    first = next((at for lo, hi in gaps if (at := -(-lo // align) * align) + size <= hi), None)
    try: start = pool.alloc(size, align)
    except OutOfMemory as error:
      assert first is None and error.free == pool.free_bytes and error.asked == size
      continue
    assert start == first
    assert start % align == 0 and 0x1000 <= start and start + size <= 0x11000
    assert all(start + size <= s or s + n <= start for s, n in live.items())
    live[start] = size
  assert pool.free_bytes == 0x10000 - sum(live.values())
  for start in live: pool.free(start)
  assert pool.alloc(0x10000, 1) == 0x1000
  with pytest.raises(InvalidArgument, match="is not allocated"): pool.free(0x5)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 12, 16])
def test_every_width_at_every_offset(region: Region, width: int) -> None:
  """One mapping: aligned lanes take other ways than odd ones, and a single odd lane is enough."""
  space = make_space(region)
  for offset in range(17):
    for odd in (0, 1, 2, 4):
      at = [offset + 16 * k for k in range(4)] + [offset + 64 + odd]
      addresses, values = np.array([BASE + a for a in at], np.uint64), as_array(width, len(at), offset)
      region.u8[:] = np.random.default_rng(offset).integers(0, 256, region.size, dtype=np.uint8)
      wanted = region.u8.copy()
      places = [slice(4 * PAGE + a, 4 * PAGE + a + width) for a in at]
      assert space.gather(addresses, width).tobytes() == b"".join(wanted[p].tobytes() for p in places)
      for p, value in zip(places, values): wanted[p] = np.frombuffer(value.tobytes(), np.uint8)
      space.scatter(addresses, values)
      assert (region.u8 == wanted).all()


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_an_integer_at_every_offset(region: Region, width: int) -> None:
  """Also across the end of a mapping into the next one, which lies elsewhere in memory."""
  space, ends = make_space(region), [*range(4 * PAGE, 6 * PAGE), *range(9 * PAGE, 10 * PAGE)]
  for at in (*range(9), *range(2 * PAGE - 9, 2 * PAGE + 3)):
    region.u8[:] = np.random.default_rng(at).integers(0, 256, region.size, dtype=np.uint8)
    wanted, places = region.u8.copy(), [ends[at + k] for k in range(width)]
    for _ in range(2):  # the second time the mapping is known
      assert space.load(BASE + at, width) == int.from_bytes(wanted[places].tobytes(), "little")
    value = int(as_array(width, 1, at)[0])
    space.store(BASE + at, width, value)
    wanted[places] = np.frombuffer(value.to_bytes(width, "little"), np.uint8)
    assert (region.u8 == wanted).all()


def test_a_mapping_without_permission_stays_closed(region: Region) -> None:
  """Also when the access before has found the mapping already."""
  space = AddressSpace()
  space.map(BASE, PAGE, region, 0, access=0)
  for _ in range(2):
    with pytest.raises(PageFault, match="no permission"): space.load(BASE, 4)
    with pytest.raises(PageFault, match="no permission"): space.store(BASE, 4, 1)
    with pytest.raises(PageFault, match="no permission"): space.view(BASE, 4)


def test_an_access_does_not_wrap_around_the_address_space(region: Region) -> None:
  space, last = AddressSpace(), (1 << 64) - 2 * PAGE
  for address in (last + PAGE, 1 << 64, -PAGE):
    with pytest.raises(InvalidArgument, match="passes the end of the addresses"): space.map(address, PAGE, region)
  space.map(last, PAGE, region)
  space.map(0, PAGE, region, PAGE)
  assert space.gather(np.array([last, 0, last + PAGE - 16], np.uint64), 16).shape == (3, 4)
  for wrong in (last + PAGE - 8, (1 << 64) - 8):
    with pytest.raises(PageFault) as fault: space.gather(np.array([last, wrong, 0], np.uint64), 16)
    assert fault.value.lane == 1 and fault.value.address == max(wrong, last + PAGE)


def test_an_empty_space_faults(region: Region) -> None:
  for address in (0, BASE):
    with pytest.raises(PageFault) as fault: AddressSpace().gather(np.array([address], np.uint64), 4)
    assert fault.value.lane == 0 and fault.value.address == address


def test_a_view_is_the_memory_itself_and_stays_in_one_mapping(region: Region) -> None:
  space = make_space(region)
  view = space.view(BASE + 2 * PAGE - 16, 16, Access.WRITE)
  view[:] = range(16)
  assert region.u8[6 * PAGE - 16:6 * PAGE].tolist() == list(range(16))
  with pytest.raises(PageFault, match="past the end of its mapping") as fault: space.view(BASE + 2 * PAGE - 16, 17)
  assert fault.value.address == BASE + 2 * PAGE


def test_an_allocation_has_a_byte_at_least() -> None:
  pool = Allocator(0, PAGE, name="pool")
  for size in (0, -1):
    with pytest.raises(InvalidArgument, match=f"pool: an allocation has at least one byte, not {size}"):
      pool.alloc(size)
  assert pool.alloc(1) == 0 and pool.free_bytes == PAGE - 1


class CountedEnds(dict[int, int]):
  """Counts how often an extent is looked at."""
  looked = 0

  def __getitem__(self, lo: int) -> int:
    self.looked += 1
    return super().__getitem__(lo)


def test_extents_that_are_too_small_are_not_looked_at() -> None:
  """Aligned allocations leave a gap each, which those of the same size must not go through."""
  pool = Allocator(0, 1 << 40)
  starts = [pool.alloc(3 << 20, 2 << 20) for _ in range(1000)]
  pool._ends = ends = CountedEnds(pool._ends)
  assert pool.alloc(3 << 20, 2 << 20) > starts[-1] and ends.looked <= 2


@pytest.mark.parametrize(("access", "works"), [
  (Access.READ, {"load"}), (Access.WRITE, {"store"}), (Access.READ | Access.WRITE, {"load", "store"}),
  (Access.EXECUTE, set())])
def test_permissions_are_apart(region: Region, access: int, works: set[str]) -> None:
  space = AddressSpace()
  space.map(BASE, PAGE, region, 0, access)
  for name, use in (("load", lambda: space.load(BASE, 4)), ("store", lambda: space.store(BASE, 4, 1))):
    if name in works: use()
    else:
      with pytest.raises(PageFault, match="no permission"): use()


def test_lookups_need_no_lock_while_another_thread_maps() -> None:
  """Each finds the mapping that is there all the time, and none that is gone."""
  space, region = AddressSpace(), Region("r", 64 * PAGE)
  space.map(40 * PAGE, PAGE, region)
  errors: list[BaseException] = []
  stop = threading.Event()

  def look() -> None:
    try:
      while not stop.is_set():
        found = space.find(40 * PAGE + 8)
        assert found is not None and found.start == 40 * PAGE
        assert space.gather(np.array([40 * PAGE, 40 * PAGE + 64], np.uint64), 4).tolist() == [0, 0]
        space.find(3 * PAGE)
    except BaseException as error: errors.append(error)
  before = sys.getswitchinterval()
  sys.setswitchinterval(1e-6)
  try:
    threads = [threading.Thread(target=look) for _ in range(3)]
    for t in threads: t.start()
    for _ in range(examples(300)):
      for k in range(6): space.map(k * PAGE, PAGE, region, k * PAGE)
      for k in range(6): space.unmap(k * PAGE, PAGE)
      assert space.find(3 * PAGE) is None
    stop.set()
    for t in threads: t.join()
  finally:
    stop.set()
    sys.setswitchinterval(before)
  assert not errors, errors


def test_a_child_has_a_copy_of_a_region() -> None:
  """What it stores and gives back is its own, and its child's is again its own."""
  region = Region("data", 1 << 40)  # far more than the machine has
  region.u8[:4 * PAGE] = 7

  def child() -> None:
    assert region.u8[:4 * PAGE].tolist() == [7] * 4 * PAGE
    region.u8[0] = 1
    region.discard(PAGE, (1 << 40) - PAGE)
    assert region.u8[0] == 1 and not region.u8[PAGE:8 * PAGE].any()
    region.u8[PAGE] = 2

  def forked(work: Callable[[], None]) -> None:
    if not (pid := os.fork()):
      status = 1
      try:
        work()
        status = 0
      finally: os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

  def both() -> None:
    child()
    forked(lambda: region.u8[:2 * PAGE].fill(9))
    assert region.u8[[0, 1, PAGE]].tolist() == [1, 7, 2]
    region.close()
  forked(both)
  assert region.u8[:4 * PAGE].tolist() == [7] * 4 * PAGE
