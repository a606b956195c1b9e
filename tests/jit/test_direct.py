"""Replays in one native call: what they give is what the function gives, whatever changes between calls."""
from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.devices.test_closed import run_apart
from tests.strength import examples
from tinyhw import Device, Tensor, TinyJit, dtypes
from tinyhw.core.errors import InvalidArgument
from tinyhw.engine.run import Step, listening

HOST = np.arange(6, dtype=np.float32).reshape(2, 3)


def tensor(n: float = 0) -> Tensor: return Tensor(HOST + np.float32(n), device="LLVM").realize()


def recorded(function: Any, *args: Tensor) -> TinyJit[Any]:
  """A TinyJit whose next call replays directly."""
  step = TinyJit(function)
  for _ in range(3): step(*args)
  assert step._direct is not None
  return step


def test_results_are_tensors_like_any_other() -> None:
  step = recorded(lambda x: (x * 2).realize(), tensor())
  first, second = step(tensor(1)), step(tensor(2))
  assert first.held is not None
  assert first.shape == (2, 3) and first.dtype is dtypes.float32 and first.device == "LLVM" and first.is_leaf
  assert first.held is None, "it has a node now"
  assert (first.numpy() == (HOST + 1) * 2).all() and (second.numpy() == (HOST + 2) * 2).all()
  assert ((first + second).numpy() == (HOST + 1) * 2 + (HOST + 2) * 2).all()
  third = step(tensor(3))
  third.assign(third + 1)
  assert (third.numpy() == (HOST + 3) * 2 + 1).all()
  fourth = step(tensor(4))
  fourth.uop = tensor(5).uop
  assert (fourth.numpy() == HOST + 5).all()
  assert repr(step(tensor(6))).startswith("Tensor([[12.")
  leaf = step(tensor(7))
  leaf.requires_grad_()
  (leaf * leaf).sum().backward()
  assert leaf.grad is not None and (leaf.grad.numpy() == 4 * (HOST + 7)).all()


def test_results_go_back_in_and_older_ones_keep_their_values() -> None:
  step = recorded(lambda x: (x + 1).realize(), tensor())
  seen = [tensor()]
  for _ in range(20): seen.append(step(seen[-1]))
  for n, t in enumerate(seen): assert (t.numpy() == HOST + n).all()


def test_results_that_are_views_and_containers() -> None:
  def function(x: Tensor, y: Tensor) -> Any:
    a = (x + y).contiguous()
    return {"a": a.permute(1, 0), "b": [(x - y).contiguous()[1:], (x * y).contiguous().sum(1)]}
  step = recorded(function, tensor(), tensor(1))
  back = recorded(lambda x: (x + 1).contiguous(), Tensor(HOST.T.copy(), device="LLVM").realize())
  for n in range(3):
    found = step(tensor(n), tensor(1))
    x, y = HOST + n, HOST + 1
    assert (back(found["a"]).numpy() == (x + y).T + 1).all(), "a view goes in as its elements in order"
    assert (found["a"].numpy() == (x + y).T).all()
    assert (found["b"][0].numpy() == (x - y)[1:]).all() and (found["b"][1].numpy() == (x * y).sum(1)).all()


@given(st.lists(st.sampled_from(("read", "assign", "name", "replace", "share", "nothing")), min_size=4, max_size=12))
@settings(max_examples=examples(15), deadline=None)
def test_state_is_read_and_written_whatever_happens_between(acts: list[str]) -> None:
  state, value = tensor(), HOST.copy()
  @TinyJit
  def step(x: Tensor) -> Tensor:
    state.assign(state + x)
    return (state * 2).realize()
  one, kept = tensor(1), list[tuple[Tensor, Any]]()
  for act in ["nothing"] * 3 + acts:
    result = step(one)
    value = value + HOST + 1
    kept.append((result, value * 2))
    if act == "read": assert (state.numpy() == value).all()
    elif act == "assign":
      state.assign(state - 3)
      value = value - 3
    elif act == "name": assert state.uop.shape == (2, 3)
    elif act == "replace":
      state.replace(tensor(n := float(value[0, 0])))
      value = HOST + np.float32(n)
    elif act == "share":
      other = state + 0
      kept.append((other, value))
  for t, wanted in kept: assert (t.numpy() == wanted).all()


def test_a_training_step_learns_as_it_does_without() -> None:
  from tinyhw import nn
  def losses(jit: bool) -> list[float]:
    rng = np.random.default_rng(1)
    weights = [Tensor(rng.standard_normal(s, dtype=np.float32) * np.float32(0.3), device="LLVM", requires_grad=True)
               for s in ((6, 8), (8, 3))]
    optimizer = nn.optim.SGD(weights, lr=0.1, momentum=0.9)
    def step(x: Tensor, y: Tensor) -> Tensor:
      optimizer.zero_grad()
      loss = ((x @ weights[0]).relu() @ weights[1]).cross_entropy(y)
      loss.backward()
      optimizer.step()
      return loss.realize()
    run = TinyJit(step) if jit else step
    found = []
    with Tensor.train():
      for _ in range(12):
        x = Tensor(rng.standard_normal((4, 6), dtype=np.float32), device="LLVM").realize()
        y = Tensor(rng.integers(0, 3, 4).astype(np.int32), device="LLVM").realize()
        found.append(run(x, y).item())
        assert all(w.grad is not None for w in weights)
        found.append(float(weights[0].grad.numpy().sum()) if weights[0].grad is not None else 0.0)
    if jit:
      assert isinstance(run, TinyJit) and run._direct is not None and run.capture is not None
      # A parameter and the gradient that is left in it are of one kernel: products are not computed twice.
      several = [s for s in run.capture.plan._steps if s.kernel is not None and s.kernel.spec.outputs > 1]
      assert {s.buffers[0].size for s in several} >= {48, 24}
    return found
  assert losses(True) == losses(False)


def test_random_numbers_differ_and_follow_the_seed() -> None:
  def values() -> list[Any]:
    Tensor.manual_seed(3)
    step = TinyJit(lambda x: (x + Tensor.rand(2, 3, device="LLVM")).realize())
    found = [step(tensor()).tolist() for _ in range(6)]
    assert step._direct is not None
    return found
  first = values()
  assert first == values() and len({str(v) for v in first}) == 6


def test_modes_and_switches_between_calls(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
  step = recorded(lambda x: (x + 1).realize(), tensor())
  monkeypatch.setenv("DEBUG", "2")
  assert (step(tensor(1)).numpy() == HOST + 2).all()
  assert "LLVM" in capsys.readouterr().err, "DEBUG shows the launch"
  monkeypatch.delenv("DEBUG")
  seen: list[Step] = []
  with listening(seen.append): assert (step(tensor(2)).numpy() == HOST + 3).all()
  assert len(seen) == 1
  with Tensor.train(), pytest.raises(InvalidArgument, match=r"Tensor\.training"): step(tensor())
  with Tensor.no_grad(), pytest.raises(InvalidArgument, match="no_grad"): step(tensor())
  monkeypatch.setenv("JIT", "0")
  assert (step(tensor(3)).numpy() == HOST + 4).all()
  monkeypatch.delenv("JIT")
  assert (step(tensor(4)).numpy() == HOST + 5).all()


def test_calls_that_are_not_alike_are_told_as_ever() -> None:
  step = recorded(lambda x, y: (x + y).realize(), tensor(), tensor(1))
  x = tensor()
  for wrong in ((tensor(), Tensor(HOST[:1], device="LLVM").realize()), (tensor(), tensor().int().realize()),
                (tensor(), 3), (tensor(),), (x, x), (tensor(), Tensor(HOST, device="PYTHON").realize())):
    with pytest.raises(InvalidArgument): step(*wrong)
  leaf = tensor(1).requires_grad_()
  with pytest.raises(InvalidArgument, match="requires_grad"): step(tensor(), leaf)
  lazy = tensor(4) + 1
  assert (step(lazy, tensor(1)).numpy() == HOST * 2 + 6).all()
  assert (step(tensor(), y=tensor(1)).numpy() == HOST * 2 + 1).all()


def test_methods_and_modules() -> None:
  class Model:
    def __init__(self, n: float) -> None: self.weight = tensor(n)
    @TinyJit
    def forward(self, x: Tensor) -> Tensor: return (x * self.weight).realize()
  models = [Model(n) for n in (1, 2)]
  for _ in range(5):
    for n, m in enumerate(models, 1): assert (m.forward(tensor()).numpy() == HOST * (HOST + n)).all()
  models[0].weight.assign(tensor(5))
  assert (models[0].forward(tensor()).numpy() == HOST * (HOST + 5)).all()


def test_threads_share_one_and_name_its_results() -> None:
  state = tensor()
  @TinyJit
  def step(x: Tensor) -> Tensor:
    state.assign(state + 1)
    return (x * 2).realize()
  for _ in range(3): step(tensor())
  wrong: list[Any] = []
  def look(result: Tensor) -> None: wrong.extend([1] if result.shape != (2, 3) else [])
  def one(n: int) -> None:
    for k in range(30):
      result = step(tensor(n + k))
      shapes = [threading.Thread(target=look, args=(result,)) for _ in range(2)]
      for t in shapes: t.start()
      state.numpy()
      if (result.numpy() != (HOST + n + k) * 2).any(): wrong.append((n, k))
      for t in shapes: t.join()
  threads = [threading.Thread(target=one, args=(100 * n,)) for n in range(4)]
  for t in threads: t.start()
  for t in threads: t.join()
  assert not wrong and (state.numpy() == HOST + 3 + 120).all()


def test_a_closed_device_and_a_forked_child() -> None:
  run_apart("""
import numpy as np
from tinyhw import TinyJit
rng = np.random.default_rng(0)
a, b = (Tensor(rng.random((192, 192), dtype=np.float32), device="LLVM").realize() for _ in range(2))
step = TinyJit(lambda a, b: (a @ b + 1).realize())
first = [step(a, b).numpy().tobytes() for _ in range(4)]
assert len(set(first)) == 1 and step._direct is not None
for _ in range(2):
  if not (child := os.fork()):
    for _ in range(3): assert step(a, b).numpy().tobytes() == first[0]
    os._exit(0)
  assert not os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert step(a, b).numpy().tobytes() == first[0]
Device.close()
try: step(a, b)
except ValueLost: pass
else: raise SystemExit("it ran")
""", device="LLVM")


@pytest.mark.skipif("DEV" in os.environ, reason="DEV is set")
def test_the_default_device_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(Device, "default", None)  # a program that has named one does not ask DEV
  step = recorded(lambda x: (x + 1).realize(), tensor())
  monkeypatch.setenv("DEV", "PYTHON")
  with pytest.raises(InvalidArgument, match=r"Device\.DEFAULT"): step(tensor())
  monkeypatch.delenv("DEV")
  assert (step(tensor()).numpy() == HOST + 1).all()
