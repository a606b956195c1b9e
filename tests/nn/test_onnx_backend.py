"""ONNX's own node tests: some of each operator on PYTHON, and a sample on the host's processor.

`python -m tests.nn.onnx_backend` runs all of them.
"""
from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.nn.onnx_backend import Verdict, expected_refusals, of_operator, operators, run
from tests.nn.onnx_models import onnx
from tests.strength import THOROUGH, seeds

MODULES = 60   # of operators, in a sample
CASES = 2      # of each at most
SLOW = ("attention", "flexattention", "gridsample", "gru", "linear_attention", "linearattention", "lstm", "rnn",
        "rotaryembedding", "roialign", "resize", "softmaxcrossentropy", "ai_onnx_ml", "causal_conv_with_state")
SOME = 4       # cases of each operator on PYTHON, spread evenly
LONG = ("test_gridsample_reflection_padding", "test_gridsample_bicubic", "test_gridsample_volumetric",
        "test_linear_attention_fp16", "test_pow_types_int64_int64")  # a third of a second and more, and like others


def sample(seed: int) -> Iterator[Any]:
  """Cases of some operators."""
  draw = random.Random(seed)
  for name in draw.sample([n for n in operators() if n not in SLOW], MODULES):
    found = of_operator(name)
    yield from draw.sample(found, min(CASES, len(found)))


def some(name: str) -> list[Any]:
  """Cases of an operator; what ONNX expands into other operators is theirs."""
  found = [c for c in of_operator(name) if "_expanded" not in c.name and not c.name.startswith(LONG)]
  return found if THOROUGH or len(found) <= SOME else [found[i * len(found) // SOME] for i in range(SOME)]


def wrong(verdict: Verdict) -> bool:
  """Whether a case ended otherwise than the file of refusals says."""
  version, refused = expected_refusals()
  wanted = "refused" if verdict.name in refused else "passed"
  # A newer package has newer operators: there a refusal is no mistake.
  return verdict.kind != wanted and (verdict.kind == "failed" or onnx.__version__ == version)


def told(verdicts: list[Verdict]) -> str: return "\n".join(f"{v.name}: {v.kind}: {v.why}" for v in verdicts)


@pytest.mark.parametrize("operator", operators())
def test_some_node_tests_of(operator: str) -> None:
  found = [v for v in (run(case, "PYTHON") for case in some(operator)) if wrong(v)]
  assert not found, told(found)


@pytest.mark.parametrize("seed", seeds([0]))
def test_node_tests_pass_or_are_refused_as_the_file_says(seed: int) -> None:
  cases = list(sample(seed))
  found = [v for v in map(run, cases) if wrong(v)]
  assert not found, told(found)
  assert len(cases) > MODULES
