"""What the toolbox says that a copy of a window reads and writes: the bytes that a slice of a NumPy array has."""
from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tinyhw.autogen import sdma_v4, sdma_v6
from tinyhw.queues.amd.effects import effects
from tinyhw.queues.effects import Does, Effect

BASE = {"src": 0x10_0000, "dst": 0x20_0000}


def covered(found: list[Effect], does: Does, base: int) -> set[int]:
  return {e.address - base + i for e in found if e.does is does for i in range(e.size)}


@given(packets=st.sampled_from([sdma_v4, sdma_v6]), log=st.integers(0, 4), data=st.data())
def test_a_window_is_the_bytes_of_a_slice(packets: Any, log: int, data: st.DataObject) -> None:
  rect = [data.draw(st.integers(1, 4)) for _ in range(3)]
  fields: dict[str, int] = {f"rect_{axis}": size - 1 for axis, size in zip("xyz", rect, strict=True)}
  wanted = {}
  for side, base in BASE.items():
    begin = [data.draw(st.integers(0, 3)) for _ in range(3)]
    extent = [data.draw(st.integers(a + n, a + n + 3)) for a, n in zip(begin, rect, strict=True)]
    x, y, z = (slice(a, a + n) for a, n in zip(begin, rect, strict=True))
    places = np.arange(np.prod(extent) << log).reshape(extent[2], extent[1], extent[0], 1 << log)
    wanted[side] = {int(i) for i in places[z, y, x].ravel()}
    fields |= {f"{side}_{axis}": a for axis, a in zip("xyz", begin, strict=True)}
    fields |= {f"{side}_addr": base, f"{side}_pitch": extent[0] - 1, f"{side}_slice_pitch": extent[0] * extent[1] - 1}
  found = effects(packets.SDMA_PKT_COPY_LINEAR_SUBWIN(elementsize=log, **fields))
  assert covered(found, Does.READ, BASE["src"]) == wanted["src"]
  assert covered(found, Does.WRITE, BASE["dst"]) == wanted["dst"]


def test_a_window_of_very_many_lines_is_one_range() -> None:
  found = effects(sdma_v6.SDMA_PKT_COPY_LINEAR_SUBWIN(
    elementsize=2, src_addr=BASE["src"], src_pitch=15, src_slice_pitch=16 * 64 - 1, dst_addr=BASE["dst"], dst_pitch=7,
    dst_slice_pitch=8 * 64 - 1, rect_x=3, rect_y=63, rect_z=63))
  assert [(e.does, e.address, e.size) for e in found] == [
    (Does.READ, BASE["src"], (64 * 64 * 16 - 12) * 4), (Does.WRITE, BASE["dst"], (64 * 64 * 8 - 4) * 4)]
