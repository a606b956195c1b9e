"""A sample of ONNX's own node tests; `python -m tests.nn.onnx_backend` runs all of them."""
from __future__ import annotations

import importlib
import pkgutil
import random
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from tests.nn.onnx_backend import expected_refusals, run
from tests.nn.onnx_models import onnx
from tests.strength import seeds

MODULES = 60   # of operators, in a sample
CASES = 2      # of each at most
SLOW = ("attention", "flexattention", "gridsample", "gru", "linear_attention", "linearattention", "lstm", "rnn",
        "rotaryembedding", "roialign", "resize", "softmaxcrossentropy", "ai_onnx_ml", "causal_conv_with_state")


def sample(seed: int) -> Iterator[Any]:
  """Cases of some operators, whose modules alone are imported: all of them take seconds to make."""
  import onnx.backend.test.case.node as package
  draw = random.Random(seed)
  names = sorted(m.name for m in pkgutil.iter_modules(package.__path__) if m.name not in SLOW)
  for name in draw.sample(names, MODULES):
    before = len(package._NodeTestCases)
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")
      module = importlib.import_module(f"{package.__name__}.{name}")
    if len(package._NodeTestCases) > before: _made[module.__name__] = package._NodeTestCases[before:]
    found = _made.get(module.__name__, [])
    yield from draw.sample(found, min(CASES, len(found)))


_made: dict[str, list[Any]] = {}


@pytest.mark.parametrize("seed", seeds([0]))
def test_node_tests_pass_or_are_refused_as_the_file_says(seed: int) -> None:
  (version, refused), wrong, count = expected_refusals(), [], 0
  for case in sample(seed):
    verdict = run(case)
    count += 1
    wanted = "refused" if verdict.name in refused else "passed"
    # A newer package has newer operators: there a refusal is no mistake.
    if verdict.kind != wanted and (verdict.kind == "failed" or onnx.__version__ == version): wrong.append(verdict)
  assert not wrong, "\n".join(f"{v.name}: {v.kind}: {v.why}" for v in wrong)
  assert count >= MODULES
