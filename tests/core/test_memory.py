"""GPU memory against a model of single bytes: translation, permissions, faults, vectors that straddle mappings."""
from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyhw.core.errors import InvalidArgument, OutOfMemory, PageFault
from tinyhw.core.memory import PAGE, Access, AddressSpace, Allocator, HostRegion, Region

BASE = 0x7F00_0000_0000


@pytest.fixture(scope="module")
def region() -> Region: return Region("test", 16 * PAGE)


def make_space(region: Region) -> AddressSpace:
  """Pages at BASE: [0,1] -> region 4..5, [2] -> region 9, a hole at 3, [4] read-only -> region 12."""
  space = AddressSpace()
  space.map(BASE, 2 * PAGE, region, 4 * PAGE)
  space.map(BASE + 2 * PAGE, PAGE, region, 9 * PAGE)
  space.map(BASE + 4 * PAGE, PAGE, region, 12 * PAGE, Access.READ)
  return space


def legal(offset: int, width: int, write: bool) -> bool:
  pages = {p for p in range(offset // PAGE, (offset + width - 1) // PAGE + 1)}
  return pages <= ({0, 1, 2} if write else {0, 1, 2, 4})


offsets = st.one_of(st.integers(-64, 6 * PAGE), *(st.integers(p * PAGE - 20, p * PAGE + 20) for p in range(6)))
widths = st.sampled_from([1, 2, 4, 8, 12, 16])


def as_array(region: Region, width: int, n: int, seed: int) -> npt.NDArray[Any]:
  dtype = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}.get(width, np.uint32)
  shape = (n, width // 4) if width > 8 else (n,)
  return np.random.default_rng(seed).integers(0, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)


@given(st.lists(offsets, min_size=0, max_size=40), widths, st.booleans(), st.integers(0, 9))
def test_vector_accesses_equal_scalar_ones(region: Region, at: list[int], width: int, aligned: bool, seed: int) -> None:
  space = make_space(region)
  region.u8[:] = np.random.default_rng(seed).integers(0, 256, region.size, dtype=np.uint8)
  if aligned: at = [a // width * width for a in at]
  addresses = np.array([BASE + a for a in at], np.uint64)
  bad = [i for i, a in enumerate(at) if not legal(a, width, write=False)]
  if bad:
    with pytest.raises(PageFault) as fault: space.gather(addresses, width)
    assert fault.value.lane == bad[0] and fault.value.access == "read"
  else:
    assert space.gather(addresses, width).tobytes() == b"".join(space.read(int(a), width) for a in addresses)
  values, before = as_array(region, width, len(at), seed), region.u8.copy()
  bad = [i for i, a in enumerate(at) if not legal(a, width, write=True)]
  if bad:
    with pytest.raises(PageFault) as fault: space.scatter(addresses, values)
    assert fault.value.lane == bad[0] and fault.value.access == "write"
    assert (region.u8 == before).all()  # nothing is stored by a vector with a lane at fault
  elif len({x for a in at for x in range(a, a + width)}) == width * len(at):  # lanes that do not meet
    space.scatter(addresses, values)
    after = region.u8.copy()
    region.u8[:] = before
    for a, v in zip(addresses, values, strict=True): space.write(int(a), v.tobytes())
    assert (region.u8 == after).all()


@given(offsets, st.sampled_from([1, 2, 4, 8]), st.integers(0, (1 << 64) - 1))
def test_load_returns_what_store_wrote(region: Region, at: int, width: int, value: int) -> None:
  space, value = make_space(region), value & (1 << 8 * width) - 1
  if legal(at, width, write=True):
    space.store(BASE + at, width, value)
    assert space.load(BASE + at, width) == value == int.from_bytes(space.read(BASE + at, width), "little")
  else:
    with pytest.raises(PageFault) as fault: space.store(BASE + at, width, value)
    assert fault.value.access == "write" and BASE + at <= (fault.value.address or 0) <= BASE + at + width


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
def test_the_allocator_never_overlaps_and_gives_all_back(steps: list[tuple[int, int, int]]) -> None:
  pool = Allocator(0x1000, 0x10000)
  live: dict[int, int] = {}
  for size, align, choice in steps:
    if choice < 3 and live:
      start = sorted(live)[choice % len(live)]
      assert pool.free(start) == live.pop(start)
      continue
    try: start = pool.alloc(size, align)
    except OutOfMemory as error:
      assert error.free == pool.free_bytes and error.asked == size
      continue
    assert start % align == 0 and 0x1000 <= start and start + size <= 0x11000
    assert all(start + size <= s or s + n <= start for s, n in live.items())
    live[start] = size
  assert pool.free_bytes == 0x10000 - sum(live.values())
  for start in live: pool.free(start)
  assert pool.alloc(0x10000, 1) == 0x1000
  with pytest.raises(InvalidArgument, match="is not allocated"): pool.free(0x5)
