"""Operations that change nothing take no kernel, and give every bit back."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw import Tensor
from tinyhw.compile import schedule
from tinyhw.engine.realize import memory_of
from tinyhw.engine.run import Step, listening
from tinyhw.ir.dtype import dtypes

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
  "b | False": (BOOLS, lambda b: b | False), "~~i": (INTS, lambda i: ~~i), "~~b": (BOOLS, lambda b: ~~b),
  "i | i": (INTS, lambda i: i | i), "b & b": (BOOLS, lambda b: b & b), "b == True": (BOOLS, lambda b: b == True),  # noqa: E712
  "b != False": (BOOLS, lambda b: b != False), "max(i, i)": (INTS, lambda i: i.maximum(i)),  # noqa: E712
  "b ? True : False": (BOOLS, lambda b: b.where(True, False)), "x ? of one": (FLOATS, lambda x: (x > 0).where(x, x)),
  "bits and back": (FLOATS, lambda x: x.bitcast(dtypes.int32).bitcast(dtypes.float32)),
  "wider and back": (INTS, lambda i: i.cast(dtypes.int64).cast(dtypes.int32)),
  "chosen": (FLOATS, lambda x: Tensor.ones(6).bool().where(x, x * 2))}
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


def kernels(read: Callable[[], object]) -> list[str]:
  """The names of the kernels and copies that run meanwhile."""
  found: list[str] = []
  def heard(step: Step) -> None: found.append("copy" if step.kernel is None else step.kernel.spec.name)
  with listening(heard): read()
  return found


def grid() -> Tensor: return Tensor(np.arange(12, dtype=np.float32).reshape(3, 4), device="LLVM").realize()


READ: dict[str, Callable[[Tensor], Tensor]] = {
  "contiguous": lambda x: x.contiguous(), "twice": lambda x: x.contiguous().contiguous(),
  "in another shape": lambda x: x.reshape(2, 6).contiguous(), "transposed twice": lambda x: x.T.T,
  "flipped twice": lambda x: x.flip(0).flip(0), "all of it": lambda x: x.T.T.contiguous()[:]}


@pytest.mark.parametrize("name", READ)
def test_what_is_in_memory_in_order_is_read_there(name: str) -> None:
  x = grid()
  made = READ[name](x)
  assert kernels(made.numpy) == []
  assert made.numpy().reshape(3, 4).tolist() == x.numpy().tolist()


@pytest.mark.parametrize("move", [lambda x: x.T, lambda x: x.flip(0), lambda x: x[1:].contiguous(),
                                  lambda x: x.T.contiguous()])
def test_what_is_in_another_order_is_copied(move: Callable[[Tensor], Tensor]) -> None:
  assert len(kernels(move(grid()).numpy)) == 1


def test_a_copy_in_the_same_memory_keeps_its_value() -> None:
  x = grid()
  before, copy = x.numpy(), x.contiguous()
  x += 1
  copy[0] = 7
  assert x.numpy().tolist() == (before + 1).tolist()
  assert copy.numpy().tolist() == [[7.0] * 4, *before[1:].tolist()]


def test_borrowed_memory_is_copied() -> None:
  memory = np.arange(4, dtype=np.float32)
  x = Tensor.from_blob(memory.ctypes.data, (4,), dtype=dtypes.float32, device="LLVM")
  copy = x.contiguous().realize()
  memory[:] = 9
  assert copy.tolist() == [0, 1, 2, 3] and x.tolist() == [9] * 4


@pytest.mark.parametrize("make, wanted", [
  (lambda: Tensor.ones(3, 4, device="LLVM") + Tensor.ones(3, 4, device="LLVM"), 2.0),
  (lambda: Tensor.full((2, 2), 3, device="LLVM") * 4 - 1, 11), (lambda: Tensor.zeros(2, device="LLVM").bool(), False),
  (lambda: Tensor.full((2,), 1.5, device="LLVM", dtype=dtypes.float16).reshape(2, 1).expand(2, 3), 1.5)])
def test_constants_are_read_without_a_kernel(make: Callable[[], Tensor], wanted: float) -> None:
  made = make()
  assert kernels(made.numpy) == [] and (made.numpy() == wanted).all()


Change = Callable[[Tensor], Tensor]
IDENTITIES: dict[str, tuple[Change, ...]] = {
  "int": (lambda i: i + 0, lambda i: i * 1, lambda i: i // 1, lambda i: i.neg().neg(), lambda i: ~~i, lambda i: i | i,
          lambda i: i - 0, lambda i: i ^ 0, lambda i: i & -1, lambda i: i.cast(dtypes.int64).cast(dtypes.int32)),
  "float": (lambda x: x * 1, lambda x: x - 0, lambda x: x / 1, lambda x: x.neg().neg(), lambda x: x.T.T,
            lambda x: x.bitcast(dtypes.int32).bitcast(dtypes.float32), lambda x: (x > 0).where(x, x)),
}
WORK: dict[str, tuple[Change, ...]] = {
  "int": (lambda i: i * 3, lambda i: i + i, lambda i: i ^ 5, lambda i: i.sum(1, keepdim=True) + i),
  "float": (lambda x: x * 3, lambda x: x + x.T.T, lambda x: x.relu(), lambda x: x.max(1, keepdim=True) - x)}


@settings(max_examples=examples(40), deadline=None)
@given(st.sampled_from(sorted(WORK)), st.data())
def test_identities_change_neither_kernels_nor_bits(kind: str, data: st.DataObject) -> None:
  """An expression with identities strewn in takes the kernels that it takes without, and gives the same bits."""
  values = np.array([[0, 1, -1, 5], [7, -2 ** 20, 2 ** 20, 3]], {"int": np.int32, "float": np.float32}[kind])
  steps = data.draw(st.lists(st.sampled_from(WORK[kind]), min_size=0, max_size=4))
  strewn = [data.draw(st.lists(st.sampled_from(IDENTITIES[kind]), max_size=2)) for _ in range(len(steps) + 1)]
  plain = whole = Tensor(values, device="LLVM").realize()
  for step, more in zip((None, *steps), strewn):
    if step is not None: plain, whole = step(plain), step(whole)
    for identity in more: whole = identity(whole)
  assert len(schedule([whole.uop])) == len(schedule([plain.uop]))
  assert whole.numpy().tobytes() == plain.numpy().tobytes()


def test_a_clone_has_memory_of_its_own() -> None:
  x = Tensor([1.0, 2.0, 3.0]).realize()
  shared, own = x.contiguous().realize(), x.clone().realize()
  assert memory_of(shared) is memory_of(x) and memory_of(own) is not memory_of(x)
