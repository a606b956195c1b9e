"""Models that PyTorch exported (tests/nn/files/make_onnx.py), against what PyTorch computed; the command line on
them."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tests.nn.onnx_models  # noqa: F401  # skips where onnx is missing
from tinyhw import nn
from tinyhw.cli import tinyhw
from tinyhw.core.errors import Error, InvalidArgument

FILES = Path(__file__).parent / "files"


@pytest.mark.parametrize("name, device", [("net", "LLVM"), ("block", "LLVM"), ("recurrent", "LLVM"), ("net", "PYTHON")])
def test_values_are_those_of_the_exporter(name: str, device: str) -> None:
  kept = np.load(FILES / f"onnx_{name}.npz")
  model = nn.onnx.load(FILES / f"onnx_{name}.onnx", device)
  found = list(model(kept["x"]).values())
  for i, value in enumerate(found):
    np.testing.assert_allclose(value.numpy(), kept[f"y{i}"], rtol=2e-5, atol=2e-6)
  assert f"y{len(found)}" not in kept


def test_sizes_that_have_names_may_be_others() -> None:
  """A row of a batch, and the beginning of a sequence, give what they give in the whole."""
  kept = np.load(FILES / "onnx_block.npz")
  model = nn.onnx.load(FILES / "onnx_block.onnx")
  (part,) = model(kept["x"][1:, :4]).values()
  np.testing.assert_allclose(part.numpy(), kept["y0"][1:, :4], rtol=2e-5, atol=2e-6)


def command(*words: Any) -> Any:
  return CliRunner().invoke(tinyhw, ["onnx", *map(str, words)])


def test_the_command_shows_a_model() -> None:
  done = command(FILES / "onnx_block.onnx", "--show")
  assert done.exit_code == 0 and "input    ids: int64[" in done.output and "MatMul 4" in done.output, done.output
  shown = json.loads(command(FILES / "onnx_net.onnx", "--show", "--json").output)
  assert shown["operators"]["Conv"] == 2 and shown["inputs"][0]["dtype"] == "float32" and not shown["unsupported"]


def test_the_command_runs_a_model(tmp_path: Path) -> None:
  kept = np.load(FILES / "onnx_net.npz")
  np.save(tmp_path / "x.npy", kept["x"])
  model = nn.onnx.inspect(FILES / "onnx_net.onnx")
  name = model.outputs[0].name
  done = command(FILES / "onnx_net.onnx", "--input", f"x={tmp_path}/x.npy", "--output", f"{name}={tmp_path}/y.npy")
  assert done.exit_code == 0 and f"{name}: float32[3, 5] in" in done.output, done.output
  np.testing.assert_allclose(np.load(tmp_path / "y.npy"), kept["y0"], rtol=2e-5, atol=2e-6)
  done = json.loads(command(FILES / "onnx_net.onnx", "-i", f"x={tmp_path}/x.npy", "--json").output)
  np.testing.assert_allclose(done[name]["values"], kept["y0"], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("words, told", [
  (("--input", "x"), "--input 'x' is no NAME=FILE"), (("--input", "x=nothing.npy"), "nothing.npy: cannot be read"),
  (("--output", "z=z.npy"), "the model has no output 'z'"), ((), "input 'x' is not given"),
  (("--input", f"x={FILES}/onnx_net.onnx"), "is no .npy file")])
def test_wrong_words_are_told(words: tuple[str, ...], told: str) -> None:
  done = command(FILES / "onnx_net.onnx", *words)
  assert isinstance(done.exception, Error) and told in str(done.exception)
  with pytest.raises(InvalidArgument): raise done.exception
