"""The example GPT-2: it learns a text by heart, and says the same on every device, token for token."""
from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinyhw import Device, Tensor, nn

ROOT = Path(__file__).parents[2]


def example(name: str) -> Any:
  """A program of examples/ as a module."""
  spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
  assert spec is not None and spec.loader is not None
  module = importlib.util.module_from_spec(spec)
  sys.modules[name] = module
  spec.loader.exec_module(module)
  return module


gpt2 = example("gpt2")
SMALL = gpt2.Config(layers=2, heads=2, width=16, vocabulary=32, context=8)
TEXT = [int(x) for x in np.random.default_rng(8).integers(0, 32, 14)]


@pytest.fixture(autouse=True)
def device_as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
  monkeypatch.setenv("MOCKGPU", "1")
  before = Device.default
  yield
  Device.default = before


def test_a_text_by_heart() -> None:
  Tensor.manual_seed(4)
  model = gpt2.GPT2(SMALL)
  losses = model.learn(TEXT, 60, lr=1e-2)
  assert losses[0] > 3 and losses[-1] < 0.1
  assert model.generate(TEXT[:6], 8) == TEXT


def test_the_same_tokens_on_every_device() -> None:
  said = {}
  for device in ("LLVM", "PYTHON", "AMD"):
    Device.DEFAULT = device
    Tensor.manual_seed(5)
    said[device] = gpt2.GPT2(SMALL).generate([1, 2, 3], 8)
  assert said["LLVM"] == said["PYTHON"] == said["AMD"] and len(set(said["LLVM"])) > 3


def reference(state: dict[str, Any], tokens: list[int], config: Any) -> Any:
  """The architecture in NumPy."""
  def linear(x: Any, name: str) -> Any: return x @ state[f"{name}.weight"].T + state[f"{name}.bias"]
  def norm(x: Any, name: str) -> Any:
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return y * state[f"{name}.weight"] + state[f"{name}.bias"]
  x = state["wte.weight"][tokens] + state["wpe.weight"][:len(tokens)]
  for i in range(config.layers):
    q, k, v = np.split(linear(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn"), 3, axis=-1)
    mixed = []
    for a, b, c in zip(*(np.split(t, config.heads, axis=-1) for t in (q, k, v))):
      scores = a @ b.T / np.sqrt(a.shape[-1])
      scores = np.where(np.tri(len(tokens)) > 0, scores, -np.inf)
      e = np.exp(scores - scores.max(-1, keepdims=True))
      mixed.append(e / e.sum(-1, keepdims=True) @ c)
    x = x + linear(np.concatenate(mixed, -1), f"h.{i}.attn.c_proj")
    h = linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.c_fc")
    h = 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
    x = x + linear(h, f"h.{i}.c_proj")
  return norm(x, "ln_f") @ state["wte.weight"].T


def test_the_architecture() -> None:
  """Against the same in NumPy, with weights as they are distributed."""
  Tensor.manual_seed(6)
  model = gpt2.GPT2(SMALL)
  state = {name: t.numpy().astype(np.float64) for name, t in nn.get_state_dict(model).items()}
  got, want = model(Tensor([TEXT[:8]])).numpy()[0], reference(state, TEXT[:8], SMALL)
  np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_weights_as_they_are_distributed(tmp_path: Path) -> None:
  """Matrices (in, out), a part called mlp, masks of attention among the parameters; heads of 64."""
  config = gpt2.Config(layers=1, heads=1, width=64, vocabulary=32, context=8)
  Tensor.manual_seed(7)
  model = gpt2.GPT2(config)
  theirs = {}
  for name, t in nn.get_state_dict(model).items():
    layer = name.replace(".c_fc", ".mlp.c_fc").replace("h.0.c_proj", "h.0.mlp.c_proj")
    theirs[f"transformer.{layer}"] = t.transpose() if ".c_" in name and name.endswith("weight") else t
  theirs["transformer.h.0.attn.bias"] = Tensor.ones(1, 1, 8, 8).tril()
  nn.safe_save(theirs, tmp_path / "model.safetensors")
  back = gpt2.loaded(str(tmp_path / "model.safetensors"))
  assert back.config == config
  given = Tensor([TEXT[:5]])
  np.testing.assert_array_equal(back(given).numpy(), model(given).numpy())
