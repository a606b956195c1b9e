"""Steps that are done at once, over memory that changes hands: as their graph gives it, once for what stays."""
from __future__ import annotations

import numpy as np
import pytest

from tests.strength import seed
from tinyhw import Tensor, TinyJit
from tinyhw.engine.run import Step, listening

X = np.random.default_rng(seed(1)).normal(size=(2, 9, 6)).astype(np.float32)


@pytest.mark.parametrize("name", ["qr", "svd", "cholesky", "inverse"])
@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_at_once_and_as_a_graph(name: str, device: str) -> None:
  square = X[:, :6] @ X[:, :6].swapaxes(1, 2) + 3 * np.eye(6, dtype=np.float32)
  given = square if name in ("cholesky", "inverse") else X
  def decomposed(t: Tensor) -> list[Tensor]:
    found = getattr(t, name)()
    return list(found) if isinstance(found, tuple) else [found]
  at_once = [t.numpy() for t in decomposed(Tensor(given, device=device))]
  leaf = Tensor(given, device=device, requires_grad=True)
  for mine, other in zip(at_once, decomposed(leaf)): np.testing.assert_allclose(mine, other.numpy(), atol=2e-5)
  recorded = TinyJit(lambda t: [x.realize() for x in decomposed(t)])
  for scale in (1, 2, 4):
    wanted = [t.numpy() for t in decomposed(Tensor(given * scale, device=device))]
    for mine, other in zip(wanted, recorded(Tensor(given * scale, device=device).realize())):
      np.testing.assert_allclose(mine, other.numpy(), atol=2e-5)


def launches(t: Tensor, count: int) -> tuple[list[Tensor], int]:
  seen: list[Step] = []
  weight = (Tensor(X[0]) @ Tensor(X[1]).transpose(0, 1))          # computed alike in every step
  with listening(seen.append):
    found = t._repeated(count, [t, t + 1], lambda number, a, b: [b + weight.sum() * number, a * 2])
    Tensor.realize(*found)
  return found, len(seen)


def test_what_stays_is_computed_once() -> None:
  few, many = (launches(Tensor(X[0]), n)[1] for n in (4, 8))
  assert 0 < many - few <= 4 * 4
  (a, b), _ = launches(Tensor(X[0]), 3)
  x, y, w = X[0].astype(np.float64), X[0] + 1.0, (X[0].astype(np.float64) @ X[1].T).sum()
  for i in range(3): x, y = y + w * i, x * 2
  np.testing.assert_allclose(a.numpy(), x, rtol=1e-4)
  np.testing.assert_allclose(b.numpy(), y, rtol=1e-4)


def test_a_state_that_stays_or_changes_places() -> None:
  t = Tensor(X[0])
  for step, wanted in ((lambda number, a, b: [b, a], (X[0] + 1, X[0])), (lambda number, a, b: [a, a], (X[0], X[0])),
                       (lambda number, a, b: [a, b * 1.0], (X[0], X[0] + 1))):
    for mine, other in zip(t._repeated(5, [t, t + 1], step), wanted): np.testing.assert_allclose(mine.numpy(), other)
