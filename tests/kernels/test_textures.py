"""Textures and surfaces as arguments: what is no array, no name or no size is refused as such."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tinyhw import Surface, Texture
from tinyhw.core.errors import Error

FOUR = np.zeros((2, 2), np.float32)


def endless(*shape: int) -> Any:
  """An array of that shape, of one element in memory."""
  return np.broadcast_to(np.float32(1), shape)


@pytest.mark.parametrize("kind", [Texture, Surface])
@pytest.mark.parametrize(("data", "more", "what"), [
  ([1, 2], {}, "a texture of"), (None, {}, "a texture of"), ("text", {}, "a texture of"),
  (np.zeros((2, 2), "c8"), {}, "a texture of"), (np.float32(1), {}, "an array of the shape"),
  (endless(1 << 31), {"geometry": "1d"}, "2,147,483,648 elements on an axis"),
  (endless(1 << 40), {"geometry": "1d"}, "elements on an axis"), (np.zeros((0, 2), "f4"), {}, "an array of the shape"),
  *((FOUR, more, what) for more, what in (
    ({"channels": 10**5000}, "1, 2 or 4"), ({"channels": 1.5}, "1, 2 or 4"), ({"channels": None}, "1, 2 or 4"),
    ({"address": 5}, "a name, or three"), ({"address": ([], [], [])}, "a name, or three"),
    ({"address": ("wrap",)}, "no address mode"), ({"filter": []}, "filter is a list"),
    ({"filter": "cubic"}, "filters"),
    ({"geometry": None}, "geometry is a NoneType"), ({"mip_filter": 1}, "mip_filter is a int"),
    ({"levels": None}, "levels are arrays"), ({"levels": (1,)}, "level 1 has the shape"),
    ({"border": None}, "a border is four numbers"), ({"border": (1.0,)}, "a border is four"),
    ({"border": ("a",) * 4}, "a border is four"), ({"unit": True}, "no fraction")))])
def test_what_is_no_texture(kind: Any, data: Any, more: dict[str, Any], what: str) -> None:
  with pytest.raises(Error, match=what): kind(data, **more)


def test_lists_are_arrays() -> None:
  level = np.ones((1, 1), np.float32)
  made = Texture(FOUR, levels=[level], border=[0, 0, 0, 1], address=["wrap"] * 3)  # type: ignore[arg-type]
  assert made.packed() == FOUR.tobytes() + level.tobytes()
