"""Sizes that launches decide, through lives of tensors: bound, read, assigned, bound anew, recorded and replayed."""
from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.strength import seeds
from tinyhw import Device, Tensor, TinyJit, Variable
from tinyhw.core.errors import InvalidArgument
from tinyhw.engine.run import Step, listening

MAX = 8
N, M = Variable("state_n", 1, MAX), Variable("state_m", 0, MAX - 2)
X = np.random.default_rng(3).integers(-9, 9, (MAX, 4)).astype(np.float32)


def test_a_replay_takes_the_sizes_of_the_day() -> None:
  x = Tensor(X)
  @TinyJit
  def f(rows: Tensor) -> tuple[Tensor, Tensor]: return (rows * 2 + N).realize(), rows.sum(0).realize()
  ran: list[Step] = []
  for n in (3, 5, 1, 8, 3):
    ran.clear()
    with listening(ran.append): twice, total = f(x[:N.bind(n)])
    assert twice.shape == (N, 4) and total.shape == (4,)
    np.testing.assert_array_equal(twice.numpy(), X[:n] * 2 + n)
    np.testing.assert_array_equal(total.numpy(), X[:n].sum(0))
    assert (twice.flatten() + 1).numpy().shape == (4 * n,)
  assert f.captured and ran and all(step.values == (3,) for step in ran)


def test_values_of_before_stay_what_they_were() -> None:
  x = Tensor(X)
  f = TinyJit(lambda rows: (rows + 1).realize())
  kept = [(n, f(x[:N.bind(n)])) for n in (2, 4, 6, 8, 1)]
  for n, t in kept: np.testing.assert_array_equal(t.numpy(), X[:n] + 1)
  for n, t in kept: np.testing.assert_array_equal((t * 2).numpy(), X[:n] * 2 + 2)


def test_what_others_computed_is_not_a_part_of_a_recording() -> None:
  def ones() -> Tensor: return (Tensor.ones(N, 2).contiguous() + 1).realize()
  N.bind(4)
  others = ones()
  f = TinyJit(ones)
  for n in (4, 4, 2, 7):
    N.bind(n)
    np.testing.assert_array_equal(f().numpy(), np.full((n, 2), 2))
  assert others.numpy().shape == (4, 2)


def test_a_call_means_one_value_of_a_variable() -> None:
  x = Tensor(X)
  f = TinyJit(lambda rows: (rows + N).realize())
  for n in (2, 3, 4): f(x[:N.bind(n)])
  old = x[:N]
  N.bind(5)
  with pytest.raises(InvalidArgument, match=r"rows was made with state_n = 4, and state_n is 5 now; bind"): f(old)
  np.testing.assert_array_equal(f(x[:N]).numpy(), X[:5] + 5)
  stale = x[:N].contiguous().realize()
  g = TinyJit(lambda: (stale.sum(0) + N).realize())
  g()
  N.bind(6)
  with pytest.raises(InvalidArgument, match=r"was made with state_n = 5, and state_n is 6 now"): g()
  for refused in (lambda: x * N.value, lambda: x * x[:N].shape[0].value, lambda: x * (N + 1).value,
                  lambda: x * N.unbind()[1]):
    h = TinyJit(refused)
    h()
    N.bind(3)
    with pytest.raises(InvalidArgument, match="state_n.* is (read into Python|unbound), which a replay"): h()


def test_a_size_may_be_an_argument() -> None:
  x = Tensor(X)
  f = TinyJit(lambda t, n, last: (t[:n].sum(0) + t[last]).realize())
  for n in (2, 3, 7, 1):
    size = Variable("state_n", 1, MAX).bind(n)
    np.testing.assert_array_equal(f(x, size, size - 1).numpy(), X[:n].sum(0) + X[n - 1])
    assert f(x, N + 0, x[:N].shape[0] - 1).shape == (4,)
  with pytest.raises(InvalidArgument, match="argument last: made for state_n - 1, called with 3"): f(x, N, 3)
  old = x[:N].shape[0]
  N.bind(5)
  with pytest.raises(InvalidArgument, match="a size state_n - 1 was made with state_n = 1, which it is not now"):
    f(x, N, old - 1)


@pytest.mark.parametrize("seed", seeds(range(4)))
def test_random_lives(seed: int) -> None:
  """Against NumPy: everything that was ever made keeps its value, whatever is bound, assigned and replayed after it."""
  draw = random.Random(seed)
  device = draw.choice(["LLVM", "PYTHON"])
  state, mirror = Tensor(X, device=device), X.copy()
  fixed = Tensor(X[::-1].copy(), device=device)
  made: list[tuple[Tensor, Any]] = []
  n, m = 3, 1
  N.bind(n), M.bind(m)

  def step(rows: Tensor) -> Tensor:
    state[M:M + 2] = rows.sum(0) + M
    return (rows @ fixed.T).sum(1).realize()
  jit = TinyJit(step)
  for _ in range(40):
    match draw.choice(["bind", "bind", "cut", "derive", "assign", "jit", "jit", "read", "rows"]):
      case "bind":
        n, m = draw.randint(1, MAX), draw.randint(0, MAX - 2)
        N.bind(n), M.bind(m)
      case "cut": made.append((state[:N].contiguous(), mirror[:n].copy()))
      case "rows": made.append((fixed[M:M + N // N].contiguous(), X[::-1][m:m + 1].copy()))
      case "derive" if made:
        t, a = draw.choice(made)
        way = draw.choice(["sum", "flip", "scale"])
        if way == "sum" and t.ndim > 1: made.append((t.sum(0), a.sum(0)))
        elif way == "flip": made.append((t.flip(0), a[::-1]))
        else: made.append((t * N, a * n))
      case "assign":
        state[:N] = fixed[:N] + 1
        mirror[:n] = X[::-1][:n] + 1
      case "jit":
        rows, theirs = state[:N].contiguous(), mirror[:n].copy()
        got = jit(rows)
        mirror[m:m + 2] = theirs.sum(0) + m
        made.append((got, (theirs @ X[::-1].T).sum(1)))
      case "read" if made:
        t, a = draw.choice(made)
        np.testing.assert_allclose(t.numpy(), a, rtol=1e-5)
    if draw.random() < 0.2: np.testing.assert_allclose(state.numpy(), mirror, rtol=1e-5)
  for t, a in made: np.testing.assert_allclose(t.numpy(), a, rtol=1e-5)


# *** a small transformer's attention with a cache of keys and values ***

HEADS, DIM, LONGEST, WORDS = 2, 8, 16, 11
WIDE = HEADS * DIM
START = Variable("state_start", 0, LONGEST - 1)


class Attention:
  """Words in, words out, one at a time."""

  def __init__(self, device: str) -> None:
    rng = np.random.default_rng(1)
    self.arrays = [rng.standard_normal(s).astype(np.float32) / 2
                   for s in ((WORDS, WIDE), (WIDE, WIDE), (WIDE, WIDE), (WIDE, WIDE), (WIDE, WORDS))]
    self.words, self.query, self.key, self.value, self.out = (Tensor(a, device=device) for a in self.arrays)
    self.keys = Tensor.zeros(HEADS, LONGEST, DIM, device=device).contiguous().realize()
    self.values = Tensor.zeros(HEADS, LONGEST, DIM, device=device).contiguous().realize()

  def step(self, word: Tensor, start: Variable) -> Tensor:
    """The word that follows; `start` words were before."""
    x = self.words[word].reshape(1, WIDE)
    q, k, v = ((x @ w).reshape(1, HEADS, DIM).transpose(0, 1) for w in (self.query, self.key, self.value))
    keys, values = self.keys[:, :start].cat(k, dim=1), self.values[:, :start].cat(v, dim=1)
    self.keys[:, start:start + 1] = k
    self.values[:, start:start + 1] = v
    mixed = q.scaled_dot_product_attention(keys, values)
    return (mixed.transpose(0, 1).reshape(1, WIDE) @ self.out).argmax(-1).realize()

  def whole(self, words: list[int]) -> int:
    """The same of all words at once, by NumPy, without a cache."""
    table, *weights, out = self.arrays
    count = len(words)
    q, k, v = ((table[words] @ w).reshape(count, HEADS, DIM).transpose(1, 0, 2) for w in weights)
    scores = np.where(np.tril(np.ones((count, count), bool)), q @ k.transpose(0, 2, 1) / np.sqrt(DIM), -np.inf)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return int((((e / e.sum(-1, keepdims=True)) @ v).transpose(1, 0, 2).reshape(count, WIDE) @ out)[-1].argmax())


@pytest.mark.parametrize("device, recorded, length", [
  ("LLVM", False, LONGEST), ("LLVM", True, LONGEST), ("PYTHON", True, LONGEST), ("AMD", True, 6)])
def test_words_with_a_cache(device: str, recorded: bool, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("MOCKGPU", "1")
  model = Attention(device)
  step = TinyJit(model.step) if recorded else model.step
  word, words, kernels = Tensor([3], device=device), [3], []
  for at in range(length):
    word = step(word, START.bind(at))
    assert word.tolist() == [model.whole(words)]
    words.append(int(word.item()))
    kernels.append(len(Device[device].kernels))
  assert len(set(words)) > 2 and kernels[1] == kernels[-1]
  np.testing.assert_allclose(model.keys.numpy()[:, length:], 0)


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_results_of_a_replay_have_the_shape_of_the_day(device: str) -> None:
  """Also those that are views of what was computed."""
  x, kept = Tensor(X, device=device), []
  f = TinyJit(lambda rows: ((rows * 2).realize().flip(0), (rows * 3).permute(1, 0).contiguous().permute(1, 0)))
  for n in (3, 5, 2, 8, 4):
    turned, same = f(x[:N.bind(n)])
    np.testing.assert_array_equal((turned + N).numpy(), X[:n][::-1] * 2 + n)
    np.testing.assert_array_equal(same.sum(0).numpy(), X[:n].sum(0) * 3)
    kept.append((n, turned, same))
  for n, turned, same in kept:
    np.testing.assert_array_equal(turned.numpy(), X[:n][::-1] * 2)
    np.testing.assert_array_equal((same * 2).numpy(), X[:n] * 6)
