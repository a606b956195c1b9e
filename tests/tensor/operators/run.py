"""What tinyhw makes of a case, and whether that is what is expected."""
from __future__ import annotations

from typing import Any

import numpy as np

from tests.tensor.operators.cases import BFLOAT16, Array, Case, flat, seeds
from tinyhw import Tensor, dtypes

NAMES = {"T": Tensor, "F": Tensor, "inf": float("inf"), "nan": float("nan"), "dtypes": dtypes}
TOLERANCE = {"float16": (2e-3, 2e-3), BFLOAT16: (1.6e-2, 1.6e-2), "float32": (1e-5, 2e-6), "float64": (1e-11, 1e-13)}


def found(case: Case, device: str, said: bool = True) -> list[tuple[str, Array]]:
  """(dtype, values) of each result, then of each gradient, from one schedule. `said`: the inputs are said to learn."""
  inputs = [Tensor(a, device=device, dtype=i.dtype) for a, i in zip(case.arrays(), case.inputs)]
  wanted = case.differentiable()
  if said:
    for n in wanted: inputs[n].requires_grad_()
  Tensor.manual_seed(0)
  results = flat(eval(case.ours, {**NAMES, "device": device, **dict(zip("abcdef", inputs))}))
  results = [r if isinstance(r, Tensor) else Tensor(r, device=device) for r in results]
  total: Any = None
  for n, r in enumerate(results):
    if not (r.requires_grad if said else r.dtype.is_float): continue
    part = (r * Tensor(seeds(r.shape, n).astype(np.float32), device=device).cast(r.dtype)).sum()
    total = part if total is None else total.cast(dtypes.float64) + part.cast(dtypes.float64)
  targets = [inputs[n] for n in wanted]
  gradients = total.gradient(*targets) if total is not None and targets else [x.zeros_like() for x in targets]
  tensors = [*results, *gradients]
  Tensor.realize(*tensors)
  return [(t.dtype.name, t.numpy()) for t in tensors]


def differences(case: Case, ours: list[tuple[str, Array]], theirs: list[tuple[str, Array]]) -> str:
  """Why the results are not what is expected, or nothing."""
  if len(ours) != len(theirs): return f"{len(ours)} results, {len(theirs)} expected"
  count = len(ours) - len(case.differentiable())
  for n, ((kind, mine), (wanted, other)) in enumerate(zip(ours, theirs)):
    what = f"result {n}" if n < count else f"gradient {n - count}"
    if mine.shape != other.shape: return f"{what} of shape {mine.shape}, expected {other.shape}"
    same = kind == wanted or "dtype" in case.loose or "int" in case.loose and (wanted, kind) == ("int64", "int32")
    if not same: return f"{what} is {kind}, expected {wanted}"
    rtol, atol = TOLERANCE.get(wanted, (0, 0))
    if case.rtol is not None: rtol = case.rtol
    if case.atol is not None: atol = case.atol
    if wanted in TOLERANCE or kind in TOLERANCE:
      a, b = mine.astype(np.float64), other.astype(np.float64)
      with np.errstate(all="ignore"):
        good = (a == b) | np.isnan(a) & np.isnan(b) | (np.abs(a - b) <= atol + rtol * np.abs(b))
    else: good = np.asarray(mine == other)
    if not good.all():
      at = tuple(int(i) for i in np.argwhere(~np.atleast_1d(good))[0]) if other.ndim else ()
      bad = int((~good).sum())
      return f"{what} at {at} is {mine[at]!r}, expected {other[at]!r} ({bad} of {good.size} differ)"
  return ""


def failure(case: Case, device: str, theirs: list[tuple[str, Array]]) -> str:
  """Runs a case on a device; why it fails, or nothing."""
  return differences(case, found(case, device), theirs)
