"""What a kernel's code says of its arguments is kept on disk, and found there again as it was."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyhw.core.errors import InvalidArgument
from tinyhw.kernels import evidence_amdgcn, parameters
from tinyhw.kernels.inference import Uses
from tinyhw.kernels.launch import launch

PLAIN = Path(__file__).parent / "objects" / "typed_O2.co"  # no types in the metadata
PLACES = st.integers(0, 4096).map(lambda n: 4 * n)
TYPES = st.dictionaries(PLACES, st.sets(st.sampled_from(["f16", "f32", "f64", "i32", "i64", "carry", "other"])))


@given(TYPES, TYPES, st.sets(PLACES), st.booleans())
def test_what_is_kept_comes_back(values: dict[int, set[str]], elements: dict[int, set[str]], loaded: set[int],
                                 complete: bool) -> None:
  found = Uses(values, elements, loaded, complete)
  assert Uses.of(found.plain()) == found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
  monkeypatch.setenv("TINYHW_CACHE", str(tmp_path))
  forget()
  return tmp_path / "emulator"


def forget() -> None:
  """As a new process is."""
  for known in (parameters._used, parameters.seen, parameters.asked_for): known.cache_clear()


def refused() -> str:
  """What a launch with an array of another type than the code's own says."""
  with pytest.raises(InvalidArgument) as error:
    launch(PLAIN, "axpn", 1, 64, [np.zeros(64, np.float32), 2, 1.0], device="EMU")
  return str(error.value)


def test_the_second_process_asks_the_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  first = refused()
  (file,) = folder.glob("uses-*")
  forget()
  with monkeypatch.context() as m:
    m.setattr(evidence_amdgcn, "uses", None)  # nobody follows the code again
    assert refused() == first
  file.write_bytes(file.read_bytes()[:-3] + b"}}}")
  forget()
  assert refused() == first  # a damaged file is none
