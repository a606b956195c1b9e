"""Debug information (.loc) that names no place: it decides nothing, and the module runs."""
from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.jit.ptx.test_jit import both, kernel


@pytest.mark.parametrize("words", ["q 3 0", "- 3 0", "1 x 0", "1", "99999999999999999999 3 0", "1 " + "9" * 5000])
def test_what_is_no_place_is_none(words: str) -> None:
  found, _ = both(kernel(f"mad.wide.u32 %l1, %t, 4, %out;\n.loc {words}\nst.global.u32 [%l1], 7;"), b"", block=32)
  assert found[:128].view(np.uint32).tolist() == [7] * 32
