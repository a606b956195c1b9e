"""Sizes, positions and numbers that nothing can have: the project's own error in one line, wherever they are given."""
from __future__ import annotations

import ast
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.strength import examples, seeds
from tests.tensor.operators.cases import flat
from tests.tensor.operators.run import NAMES
from tests.tensor.operators.table import CASES
from tinyhw import Tensor
from tinyhw.core.errors import Error, InvalidArgument

HUGE = 10**5000            # Python writes no text of it
WIDE = [2**70, -2**63 - 1, 2**64, 2**63]
CALLED = sorted(name for name in dir(Tensor) if not name.startswith("_") and callable(getattr(Tensor, name)))
OPERATORS = ["__getitem__", "__add__", "__radd__", "__mul__", "__pow__", "__rpow__", "__lshift__", "__lt__", "__eq__"]


def told(call: Callable[[], Any]) -> str:
  """What the refusal says, or nothing where there is none."""
  try: call()
  except Error as error:
    line, *_ = str(error).splitlines()
    return line
  return ""


@pytest.mark.parametrize("given", [HUGE, -HUGE, [HUGE], (1, (HUGE, 1)), slice(HUGE, None)],
                         ids=["huge", "below", "list", "nested", "slice"])
def test_every_function_refuses_an_integer_beyond_all_types(given: Any) -> None:
  x = Tensor([[1.0, 2.0], [3.0, 4.0]])
  asked = 0
  for name in [*CALLED, *OPERATORS]:
    for before in ((), (1,), (x,)):
      try: line = told(partial(getattr(x, name), *before, given))
      except TypeError as error:                      # so many arguments it has not, or another kind
        assert "argument" in str(error) or "Size" in str(error), (name, before, error)
        continue
      if not line: continue
      asked += 1
      assert len(line) < 200, (name, line)
  assert asked > 1000


@pytest.mark.parametrize("seed", seeds(range(1)))
def test_integers_beyond_64_bits_in_every_operator(seed: int) -> None:
  """In the place of any number of any case; what is refused is refused by an error of ours."""
  r = random.Random(seed)
  for case in r.sample(CASES, min(examples(100), len(CASES))):
    tree = ast.parse(case.ours, mode="eval")
    places = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and type(n.value) is int]
    if not places: continue
    place, wide = r.choice(places), r.choice(WIDE)
    place.value = wide
    inputs = [Tensor(a, dtype=i.dtype, device="LLVM") for a, i in zip(case.arrays(), case.inputs)]
    names = {**NAMES, "device": "LLVM", **dict(zip("abcdef", inputs))}
    what = ast.unparse(tree)
    try: flat(eval(compile(tree, "the case", "eval"), names))
    except Error as error: assert len(str(error).splitlines()[0]) < 400, what
    except (IndexError, OverflowError) as error:
      # A tuple of results is the case's own, and knows no such index.
      trace = error.__traceback__
      while trace is not None and trace.tb_next is not None: trace = trace.tb_next
      assert trace is not None and trace.tb_frame.f_code.co_filename == "the case", (what, error)


@pytest.mark.parametrize(("make", "message"), [
  (lambda: Tensor.empty(HUGE), "an integer of 16,610 bits; no size, position or element is so large"),
  (lambda: Tensor(HUGE), "an integer of 16,610 bits"), (lambda: Tensor([1.0, HUGE]), "an integer of 16,610 bits"),
  (lambda: Tensor([2**70]), "does not fit dtypes.int64"), (lambda: Tensor.full((2,), 2**70), "does not fit"),
  (lambda: Tensor.empty(2**62, 4), r"shape \(4611686018427387904, 4\) has more than 2\*\*63 - 1 elements"),
  (lambda: Tensor.zeros(0, 2**63), "has more than"), (lambda: Tensor([1]).expand(2**63), "has more than"),
  (lambda: Tensor([1]).pad(((2**63, 0),)), "has more than"), (lambda: Tensor([]).reshape(0, 2**70), "has more than"),
  (lambda: Tensor.from_blob(2**70, (2,)), "an address is 64 bits"),
  (lambda: Tensor.arange(float("inf")), "it counts finite numbers"),
  (lambda: Tensor([1]).tensor_split(2**31), "sections of 1 elements"),
  (lambda: Tensor([]).chunk(2**31), "chunks of 0 elements"),
  (lambda: Tensor([1.0]).polygamma(2**31), "a whole number up to 169"),
  (lambda: Tensor([1.0]).hermite_polynomial_h(2**31), "up to 1024"),
  (lambda: Tensor([1.0]).mvlgamma(2**31), "at most 1024"), (lambda: Tensor([1.0]).round(400), "308 at most")])
def test_each_says_what_is_too_large(make: Callable[[], Any], message: str) -> None:
  with pytest.raises(InvalidArgument, match=message): make()


def test_positions_are_numbers_of_32_bits() -> None:
  assert "they are int32" in told(lambda: Tensor.arange(2**40)) and "they are int32" in told(lambda: Tensor.eye(2**33))


def test_what_is_large_and_right_is_taken() -> None:
  assert Tensor.empty(2**40).shape == (2**40,) and "bytes asked" in repr(Tensor.empty(2**60))
  assert (Tensor([1.0]) + 2**70).item() == 2.0**70 == Tensor([2**70], dtype="float32").item()
  assert Tensor([1, 2, 3])[-2**70:2**70].tolist() == [1, 2, 3] and Tensor.arange(2**62, 2**62 + 2).tolist() == [
    2**62, 2**62 + 1]
  assert Tensor.arange(0, 1, 0.25).tolist() == [0, 0.25, 0.5, 0.75] and Tensor.arange(5, 0, -2).tolist() == [5, 3, 1]
