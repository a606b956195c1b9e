"""The form of a case, and the inputs that it asks for: the same numbers wherever it runs."""
from __future__ import annotations

import dataclasses
import hashlib
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
BFLOAT16 = "bfloat16"       # NumPy has none: its arrays are float32 whose lower half is 0


@dataclass(frozen=True)
class In:
  """An input: its shape, its dtype, and which numbers. Floats are uniform in low..high, less `without` around 0 if
  told;
  integers are in low..high-1. `values` are taken as they are. A gradient is asked for floats unless `grad` is False."""
  shape: tuple[int, ...] = ()
  dtype: str = "float32"
  low: float = -2.0
  high: float = 2.0
  without: float = 0.0
  values: tuple[Any, ...] | None = None
  grad: bool = True

  def array(self, seed: int) -> Array:
    """The numbers."""
    kind = np.dtype(np.float32 if self.dtype == BFLOAT16 else self.dtype)
    if self.values is not None: found = np.array(self.values,
                                                 np.float64 if kind.kind == "f" else kind).reshape(self.shape)
    else:
      unit = np.random.Generator(np.random.PCG64(seed)).random(self.shape)
      if kind.kind == "b": found = unit < 0.5
      elif kind.kind in "iu": found = np.floor(unit * (self.high - self.low) + self.low)
      else:
        found = unit * (self.high - self.low) + self.low
        if self.without: found = np.where(found < 0, found - self.without, found + self.without)
    result: Array = found.astype(kind)
    if self.dtype != BFLOAT16: return result
    bits = np.atleast_1d(result).view(np.uint32).astype(np.uint64)
    cut = ((bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) & np.uint64(0xFFFF0000)).astype(np.uint32)
    return np.where(np.isnan(result), result, cut.view(np.float32).reshape(result.shape)).astype(np.float32)


@dataclass(frozen=True)
class Case:
  """A call that both sides understand, or one for each.

  `ours` is an expression of the inputs a, b, c, d, of `T` (Tensor) and `F` (Tensor too); `theirs` is the same with
  torch and torch.nn.functional unless it is given. `rtol`, `atol`: how far results may be apart, with the reason in
  `because` where they are wider than the dtype's own. `loose` names what may differ otherwise: "int" (their int64 is
  int32 here: sums, counts and positions), "dtype" (any type), "sign" (of zeros, which is compared else only by
  `exact`).
  """
  name: str
  ours: str
  inputs: tuple[In, ...] = ()
  theirs: str = ""
  backward: bool = True
  rtol: float | None = None
  atol: float | None = None
  because: str = ""
  loose: str = ""
  raises: str = ""

  def digest(self) -> str:
    """What of the case the expected values depend on."""
    parts = (self.theirs or self.ours, [dataclasses.astuple(i) for i in self.inputs], self.backward)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]

  def arrays(self) -> list[Array]:
    """The inputs' numbers, which the name decides."""
    return [i.array(zlib.crc32(f"{self.name} {n}".encode())) for n, i in enumerate(self.inputs)]

  def differentiable(self) -> list[int]:
    """Which inputs a gradient is asked for."""
    if not self.backward: return []
    return [n for n, i in enumerate(self.inputs) if i.grad and i.dtype in ("float16", BFLOAT16, "float32", "float64")]


def flat(results: Any) -> list[Any]:
  """The tensors of a result, one after another; anything else as it is."""
  if isinstance(results, (list, tuple)): return [x for r in results for x in flat(r)]
  return [results]


def seeds(shape: tuple[int, ...], number: int) -> Array:
  """What a gradient of that shape is multiplied with: simple numbers, none of them 0."""
  count = int(np.prod(shape)) if shape else 1
  return (((np.arange(count) * 7 + number * 3) % 11 - 5.5) / 4).reshape(shape)
