"""Operations that change nothing take no kernel, and give every bit back."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tinyhw import Tensor
from tinyhw.compile import schedule

INTS = np.array([0, 1, -1, 7, -2 ** 31, 2 ** 31 - 1], np.int32)
FLOATS = np.array([0.0, -0.0, 1.5, -np.inf, 1e-45, 3e38], np.float32)
BOOLS = np.array([True, False])

NOTHING: dict[str, tuple[np.ndarray, Callable[[Tensor], Tensor]]] = {
  "i + 0": (INTS, lambda i: i + 0), "0 + i": (INTS, lambda i: 0 + i), "i - 0": (INTS, lambda i: i - 0),
  "i * 1": (INTS, lambda i: i * 1), "1 * i": (INTS, lambda i: 1 * i), "i // 1": (INTS, lambda i: i // 1),
  "--i": (INTS, lambda i: i.neg().neg()), "i & -1": (INTS, lambda i: i & -1), "i | 0": (INTS, lambda i: i | 0),
  "i ^ 0": (INTS, lambda i: i ^ 0), "i << 0": (INTS, lambda i: i << 0), "x - 0": (FLOATS, lambda x: x - 0),
  "x * 1": (FLOATS, lambda x: x * 1), "x / 1": (FLOATS, lambda x: x / 1), "--x": (FLOATS, lambda x: x.neg().neg()),
  "x + -0.0": (FLOATS, lambda x: x + -0.0), "b & True": (BOOLS, lambda b: b & True),
  "b | False": (BOOLS, lambda b: b | False), "chosen": (FLOATS, lambda x: Tensor.ones(6).bool().where(x, x * 2))}
SOMETHING: dict[str, tuple[np.ndarray, Callable[[Tensor], Tensor], np.ndarray]] = {
  "x + 0": (FLOATS, lambda x: x + 0, FLOATS + np.float32(0)), "0 - x": (FLOATS, lambda x: 0 - x, 0 - FLOATS),
  "i * 0": (INTS, lambda i: i * 0, INTS * 0), "x * 0": (FLOATS[:3], lambda x: x * 0, FLOATS[:3] * np.float32(0)),
  "i % 1": (INTS, lambda i: i % 1, INTS * 0), "b & False": (BOOLS, lambda b: b & False, BOOLS & False)}


@pytest.mark.parametrize("name", NOTHING)
@pytest.mark.parametrize("moved", [False, True])
def test_what_changes_nothing_takes_no_kernel(name: str, moved: bool) -> None:
  values, change = NOTHING[name]
  x = Tensor(values, device="LLVM").realize()
  made = change(x.reshape(2, -1).permute(1, 0).reshape(-1) if moved and len(values) > 2 else x)
  wanted = values.reshape(2, -1).T.reshape(-1) if moved and len(values) > 2 else values
  if not moved: assert len(schedule([made.uop])) == 0
  assert made.numpy().tobytes() == wanted.tobytes()


@pytest.mark.parametrize("name", SOMETHING)
def test_what_changes_something_does(name: str) -> None:
  values, change, wanted = SOMETHING[name]
  assert change(Tensor(values, device="LLVM").realize()).numpy().tobytes() == wanted.astype(values.dtype).tobytes()


def test_gradients_are_those_of_the_operation() -> None:
  x = Tensor([1.0, 2.0], requires_grad=True, device="LLVM")
  ((x * 1 - 0) / 1).sum().backward()
  assert x.grad is not None and x.grad.tolist() == [1.0, 1.0]
