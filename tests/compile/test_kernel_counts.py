"""How many kernels common programs become: a change of the scheduler shows here, for better or for worse."""
from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compile import deep
from tests.compile.test_kernels import check, graphs
from tests.compile.witness import buffer
from tests.strength import examples
from tinyhw import Tensor
from tinyhw.compile import schedule
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.uop import GroupOp, Ops, UOp


def new(*shape: int, dtype: object = dtypes.float32) -> Callable[[str], Tensor]:
  return lambda device: Tensor.empty(*shape, device=device, dtype=dtype)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor: return (q @ k.transpose(-1, -2) * 0.125).softmax(-1) @ v


ROWS, HEADS = new(64, 128), new(2, 4, 32, 16)
IMAGE, FILTER, CHANNELS = new(2, 8, 16, 16), new(16, 8, 3, 3), new(1, 16, 1, 1)
# program: (operands, what is computed, kernels where a kernel goes through rows, kernels on a GPU)
PROGRAMS: dict[str, tuple[tuple[Callable[[str], Tensor], ...], Callable[..., Tensor], int, int]] = {
  "chain": ((ROWS, ROWS), lambda x, y: ((x * 2 + y).exp() - x).relu(), 1, 1),
  "broadcast": ((ROWS, new(128)), lambda x, y: x * y + y, 1, 1),
  "sum and more": ((ROWS,), lambda x: x.sum(1) * 2 + 1, 1, 1),
  "mean of squares": ((ROWS,), lambda x: (x * x).mean(), 1, 1),
  "long sum": ((new(1 << 20),), lambda x: x.sum(), 2, 2),
  "softmax": ((ROWS,), lambda x: x.softmax(-1), 1, 3),
  "softmax over columns": ((ROWS,), lambda x: x.softmax(0), 1, 3),
  "log softmax": ((ROWS,), lambda x: x.log_softmax(-1), 1, 3),
  "layer normalization": ((ROWS, new(128)), lambda x, w: x.layernorm() * w, 1, 3),
  "one long row": ((new(1, 1 << 16),), lambda x: x.softmax(-1), 3, 3),
  "attention": ((HEADS, HEADS, HEADS), attention, 3, 5),
  "product, bias, relu": ((ROWS, new(128, 32), new(32)), lambda x, w, b: (x @ w + b).relu(), 1, 1),
  "convolution, scale, relu": ((IMAGE, FILTER, CHANNELS, CHANNELS),
                               lambda x, w, s, b: (x.conv2d(w, padding=1) * s + b).relu(), 1, 1),
  "convolution, normalization, relu": (
    (IMAGE, FILTER, *[new(16)] * 4), lambda x, w, m, v, s, b: x.conv2d(w, padding=1).batchnorm(
      s, b, m, (v + 1e-5).rsqrt()).relu(), 1, 1),
  "rows by index": ((ROWS, new(10, dtype=dtypes.int32)), lambda x, i: x[i] * 2, 1, 1),
  "cross entropy": ((ROWS, new(64, dtype=dtypes.int32)), lambda x, t: x.cross_entropy(t), 3, 5),
  "padding": ((ROWS,), lambda x: (x.pad(((1, 1), (0, 0))) * 2).relu(), 1, 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
  operands, program, rows, gpu = PROGRAMS[name]
  found = tuple(len(schedule([program(*(o(device) for o in operands)).uop])) for device in ("LLVM", "AMD"))
  assert found == (rows, gpu)


def test_work_grows_with_layers_and_different_kernels_do_not() -> None:
  plans = [deep.plan(deep.graph(layers, "LLVM")) for layers in (2, 3, 4)]
  first, second, third = (len(p) for p in plans)
  assert third - second == second - first
  assert len({i.ast for i in plans[1]}) == len({i.ast for i in plans[2]})


def recurrent(steps: int) -> list[Tensor]:
  """Loss and gradients of an LSTM of a few units over so many steps."""
  inner, outer, bias = (Tensor.empty(*s, device="LLVM", requires_grad=True) for s in ((16, 64), (16, 64), (64,)))
  h = c = Tensor.zeros(4, 16, device="LLVM")
  for _ in range(steps):
    gates = Tensor.empty(4, 16, device="LLVM") @ inner + h @ outer + bias
    i, f, g, o = (gates[:, 16 * k:16 * k + 16] for k in range(4))
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
  loss = (h * h).sum()
  loss.backward()
  return [loss, *(t.grad for t in (inner, outer, bias) if t.grad is not None)]


def test_kernels_of_a_recurrent_network_do_not_grow_with_its_steps() -> None:
  """What several kernels need of a step is computed once, and what a concatenation takes is computed piece by piece."""
  def functions(steps: int) -> tuple[int, int]:
    items = schedule([t.uop for t in recurrent(steps)])
    counts = [sum(u.op in GroupOp.LIBRARY for u in i.ast.toposort()) for i in items]
    return sum(counts), max(counts)
  few, many = functions(6), functions(12)
  assert max(few[1], many[1]) <= 8          # functions in the largest kernel: those of a step
  assert many[0] <= 2.4 * few[0]


# program: (operands, what is computed, kernels where a kernel goes through rows, kernels on a GPU)
SEVERAL: dict[str, tuple[tuple[Callable[[str], Tensor], ...], Callable[..., tuple[Tensor, ...]], int, int]] = {
  "sum and maximum": ((ROWS,), lambda x: (x.sum(1), x.max(1)), 1, 1),
  "std and mean": ((ROWS,), lambda x: x.std_mean(-1), 1, 2),
  "product that is wanted itself": ((ROWS, new(128, 32)), lambda x, w: (x @ w, (x @ w).relu(), (x @ w) * 2), 1, 1),
  "moments and parameter": ((ROWS, ROWS, ROWS, ROWS),
                            lambda p, m, v, g: (m + g, v + g * g, p - (m + g) / ((v + g * g).sqrt() + 1e-8)), 1, 1),
  "halves of a gate": ((ROWS, ROWS), lambda x, y: (x.sigmoid() * y, x.sigmoid() * (1 - x.sigmoid()) * y), 1, 1),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several_results(name: str) -> None:
  operands, program, rows, gpu = SEVERAL[name]
  plans = [schedule([t.uop for t in program(*(o(device) for o in operands))]) for device in ("LLVM", "AMD")]
  assert tuple(map(len, plans)) == (rows, gpu)


@contextmanager
def rows_everywhere() -> Iterator[None]:
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(importlib.import_module("tinyhw.compile.together"), "_ROW_DEVICES", frozenset({"TEST"}))
    yield


def centred(x: UOp, op: Ops, axes: tuple[int, ...]) -> UOp:
  return x.alu(Ops.SUB, x.reduce(op, axes).expand(x.shape))


@settings(max_examples=examples(40), deadline=None)
@given(graphs(), st.data())
def test_rows_in_one_kernel_give_what_several_give(case: tuple[UOp, dict[UOp, np.ndarray]],
                                                   data: st.DataObject) -> None:
  """Random graphs, with steps like those of normalizations on top."""
  u, memory = case
  for _ in range(data.draw(st.integers(0, 3))):
    axes = tuple(sorted(data.draw(st.sets(st.integers(0, len(u.shape) - 1), min_size=1))))
    u = centred(u, data.draw(st.sampled_from([Ops.ADD, Ops.MAX])), axes) if u.size <= 1000 else u
  with rows_everywhere(): check([u], memory, data.draw(st.sampled_from(["host", "local", "uops", "gfx1100 O2"])))


@pytest.mark.parametrize("shape", [(6, 16), (3, 100), (40, 64), (2, 5, 32)])
@pytest.mark.parametrize("target", ["host", "local", "uops", "gfx1100 O2"])
def test_rows_of_two_reductions(shape: tuple[int, ...], target: str) -> None:
  memory: dict[UOp, np.ndarray] = {}
  x = buffer(np.random.default_rng(0).integers(-3, 4, shape).astype(np.float32), memory)
  axes = (len(shape) - 1,)
  u = centred(centred(x, Ops.MAX, axes), Ops.ADD, axes)
  with rows_everywhere():
    assert len(schedule([u])) == 1
    check([u], memory, target)
