"""Arrays of the process in an emulated GPU's memory: every byte of them, and not one more."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyhw.core.errors import PageFault
from tinyhw.core.memory import AddressSpace
from tinyhw.drive.amd.host import Span, mapped, merged

pieces = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 60), st.booleans()), min_size=1, max_size=6)


@given(pieces)
def test_every_byte_of_an_array_and_no_other_reaches_the_host(rows: list[tuple[int, int, bool]]) -> None:
  store = np.arange(272, dtype=np.uint8)
  base = store.ctypes.data
  spans = merged(Span(base + at, base + at + size, f"a{k}", w) for k, (at, size, w) in enumerate(rows))
  inside = {x for s in spans for x in range(s.start - base, s.end - base)}
  writable = {x for s in spans if s.writable for x in range(s.start - base, s.end - base)}
  assert inside == {x for at, size, _ in rows for x in range(at, at + size)}
  space, expected = AddressSpace(), store.copy()
  with mapped(space, spans):
    for x in range(260):
      if x in inside: assert space.load(base + x, 1) == store[x]
      try: space.store(base + x, 1, 255 - x & 255)
      except PageFault: assert x not in writable
      else:
        if x in writable: expected[x] = 255 - x & 255
  assert (store == expected).all() and not space.mappings() and not space.used


def test_what_is_far_from_an_array_is_a_page_fault() -> None:
  store = np.zeros(256, np.uint8)
  base = store.ctypes.data
  space = AddressSpace()
  with mapped(space, merged([Span(base + 64, base + 128, "x")])):
    space.store(base + 124, 4, 1)
    for at in (base + 128, base + 60):
      with pytest.raises(PageFault): space.store(at, 4, 1)
    with pytest.raises(PageFault): space.gather(np.array([base + 120, base + 126], np.uint64), 4)


def test_arrays_that_share_memory_are_one() -> None:
  whole = merged([Span(0, 64, "a"), Span(32, 96, "b"), Span(96, 128, "c", False), Span(8, 16, "a", False)])
  assert [(s.start, s.end, s.name, s.writable) for s in whole] == [(0, 96, "a, b", True), (96, 128, "c", False)]
