"""The promises of docs/accuracy.md: every elementwise function is measured, and within its bound on every device."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.strength import THOROUGH, seed
from tinyhw.function.activation import Activation
from tinyhw.function.elementwise import Elementwise
from tinyhw.function.mathematics import Mathematics
from tinyhw.function.special import Special
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.tools.ulp import measure as ulp
from tinyhw.tools.ulp.functions import MEASURED, NOT_MEASURED, mp
from tinyhw.tools.ulp.table import DEVICES, bounds

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"
PROMISED = bounds(PAGE)
EXACT = [name for name in MEASURED if all(PROMISED.get((name, t.name)) in (0.0, 0.5) for t in ulp.TYPES)]


def test_every_function_has_a_bound() -> None:
  """A new public function of elements is measured, or said not to be; the page has a row for each measured one."""
  classes = (Elementwise, Mathematics, Special, Activation)
  public = {name for cls in classes for name in vars(cls) if not name.startswith("_")}
  assert public == set(MEASURED) | NOT_MEASURED
  assert not set(MEASURED) & NOT_MEASURED
  assert set(PROMISED) == {(name, t.name) for name in MEASURED for t in ulp.TYPES}


def test_the_bounds_are_what_is_aimed_at() -> None:
  basic = ("exp", "exp2", "log", "log2", "log10", "sin", "cos", "tan", "tanh", "pow", "expm1", "log1p", "rsqrt")
  for (name, dtype), bound in PROMISED.items():
    aim = 0.75 if dtype in ("float16", "bfloat16") else 4 if dtype == "float64" else 2 if name in basic else 5
    assert bound <= aim, (name, dtype)
    if name in ("add", "sub", "mul", "div", "sqrt", "reciprocal", "square"): assert bound == 0.5


def within(name: str, dtype: DType, devices: tuple[str, ...], size: int) -> None:
  for device, (worst, at) in ulp.measure(MEASURED[name], dtype, devices, size, seed(5)).items():
    assert worst <= PROMISED[name, dtype.name], f"{name} of {dtype.name} on {device}: {worst} units at {at}"


@pytest.mark.parametrize("name", MEASURED)
def test_functions_are_within_their_bounds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Quick: float32 on each device, few arguments. Thorough: all types, many arguments."""
  monkeypatch.setenv("MOCKGPU", "1")
  if THOROUGH:
    for dtype in ulp.TYPES: within(name, dtype, DEVICES, 1 << 13 if dtype is dtypes.float64 else 1 << 17)
  elif name not in EXACT: within(name, dtypes.float32, DEVICES, 1 << 11)


@pytest.mark.parametrize("name", [n for n in MEASURED if n not in EXACT])
def test_doubles_and_halves_are_within_their_bounds(name: str) -> None:
  """Where the devices do the same arithmetic one of them stands for all, and NumPy's needs no compiler."""
  within(name, dtypes.float64, ("PYTHON",), 400)
  within(name, dtypes.float16, ("PYTHON",), 1 << 11)


@pytest.mark.parametrize("name", MEASURED)
def test_the_two_oracles_agree(name: str) -> None:
  """NumPy's float64 and mpmath, on arguments that both can take."""
  function = MEASURED[name]
  x = ulp.arguments(function, dtypes.float32, 300, 2)
  with np.errstate(all="ignore"): double = function.double(*x)
  for i in range(0, double.size, 3):
    values = [float(a[i]) for a in x]
    if not np.isfinite(double[i]) or double[i] == 0 or not all(np.isfinite(v) and v for v in values): continue
    exact = function.exact(*map(mp.mpf, values))
    assert abs(exact - mp.mpf(float(double[i]))) <= abs(exact) * 2.0**-40 + mp.ldexp(1, -1074), (name, values)


def test_what_is_wrong_is_noticed() -> None:
  """A wrong sign of zero, NaN, infinity or last place is an error of the measure."""
  function = MEASURED["exp"]
  x = [np.array([0.0, -np.inf, np.nan, 100.0, 1.0])]
  exact = ulp.oracle(function, dtypes.float32, x)
  right = np.array([1.0, 0.0, np.nan, np.inf, np.float64(np.float32(np.e))])
  assert ulp.errors(right, x, exact, function, dtypes.float32).max() < 0.5
  largest = float(np.finfo(np.float32).max)
  for at, value, least in ((1, -0.0, np.inf), (2, 1.0, np.inf), (0, np.nan, np.inf), (3, largest, 1.0),
                           (0, 1 + 2.0**-23, 1.0)):
    wrong = right.copy()
    wrong[at] = value
    assert ulp.errors(wrong, x, exact, function, dtypes.float32)[at] >= least
