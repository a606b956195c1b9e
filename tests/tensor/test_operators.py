"""The table of operator cases against PyTorch's values: a twelfth of it on LLVM, less on PYTHON and on
AMD's mock. Which part that is changes with the table; `make sweep` and a thorough run take all of it."""
from __future__ import annotations

import importlib.util
import zlib

import pytest

from tests.strength import THOROUGH
from tests.tensor.operators.cases import Case
from tests.tensor.operators.expected import Expected
from tests.tensor.operators.run import differences, failure
from tests.tensor.operators.table import CASES

KNOWN = Expected()
HEAVY = ("max_pool", "avg_pool", "conv", "winograd", "svd", "qr", "interpolate", "cumsum of many", "T.hann_window",
         "T.tril_indices", "kl_div of log")  # work for a processor, not for Python
TURN = zlib.crc32("".join(sorted(c.digest() for c in CASES)).encode())


def part(of: int, *which: int) -> list[Case]:
  """Some of so many parts of the table; all of it in a thorough run."""
  return CASES if THOROUGH else [c for c in CASES if (zlib.crc32(c.name.encode()) + TURN) % of in which]


def test_the_file_has_the_values_of_the_table() -> None:
  wanted = {c.digest() for c in CASES}
  new, gone = [c.name for c in CASES if c.digest() not in KNOWN.digests()], len(KNOWN.digests() - wanted)
  assert not new and not gone, (f"no values of {new[:9]}, {gone} of cases that are no more: "
                                "run python -m tests.tensor.operators.generate where torch is")
  assert all(c.because for c in CASES if c.rtol is not None or c.atol is not None), "a wider tolerance has a reason"


ON_LLVM = CASES if THOROUGH else [*part(12, 0), *(c for c in part(12, 1, 2) if c.name.startswith(HEAVY))]
ON_PYTHON = CASES if THOROUGH else [c for c in part(16, 1) if not c.name.startswith(HEAVY)]


@pytest.mark.parametrize("case", ON_LLVM, ids=lambda c: c.name)
def test_a_case_on_llvm(case: Case) -> None:
  assert not failure(case, "LLVM", KNOWN.of(case))


@pytest.mark.parametrize("case", ON_PYTHON, ids=lambda c: c.name)
def test_a_case_on_python(case: Case) -> None:
  assert not failure(case, "PYTHON", KNOWN.of(case))


@pytest.mark.parametrize("case", part(48, 0), ids=lambda c: c.name)
def test_a_case_on_the_mock(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("MOCKGPU", "1")
  assert not failure(case, "AMD", KNOWN.of(case))


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_the_file_is_what_torch_says_now() -> None:
  from tests.tensor.operators.theirs import expected
  wrong = {c.name: why for c in CASES if (why := differences(c, expected(c), KNOWN.of(c)))}
  assert not wrong
