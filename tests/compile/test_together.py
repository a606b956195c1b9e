"""Kernels with several results: what joins one and what may not, and the values, whatever the options."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compile.test_kernels import ON, Memory, check, programs, whole
from tests.compile.witness import buffer, matmul
from tests.strength import examples, seed
from tinyhw import Tensor, nn
from tinyhw.compile import Opt, OptKind, Schedule, compile_kernel, schedule
from tinyhw.compile.compiler import optimize
from tinyhw.core.errors import InvalidArgument
from tinyhw.engine.run import Step, listening
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.spec import check_kernel
from tinyhw.ir.uop import Ops, UOp

F32 = dtypes.float32


def new(*shape: int) -> UOp: return UOp.new_buffer("X", int(np.prod(shape)), F32).reshape(shape)


def results(s: Schedule) -> list[int]:
  """How many results each kernel has."""
  return [len(i.ast.src) for i in s]


def moments(g: UOp, m: UOp, v: UOp, p: UOp) -> list[UOp]:
  m, v = m * 0.5 + g, v * 0.5 + g * g
  return [m, v, p - (m + v) * 2.0]


def test_what_is_computed_together() -> None:
  x, y, z = new(4, 8), new(4, 8), new(4, 8)
  assert results(schedule(moments(x, y, z, new(4, 8)))) == [3]
  assert results(schedule([x.reduce(Ops.ADD, (1,)), x.reduce(Ops.MAX, (1,))])) == [2]
  h = matmul(new(4, 5), new(5, 8))
  assert results(schedule([h, h.maximum(0.0), h * 2.0])) == [3]
  assert results(schedule([x + 1.0, (x + 1.0).contiguous() * 2.0])) == [3]     # CONTIGUOUS is memory of its own
  assert results(schedule([x + y, x * z])) == [2]
  row = new(8)
  assert results(schedule([h.maximum(0.0), h.reduce(Ops.ADD, (0,)).reshape((8,)) + row, row * 2.0])) == [2, 1, 1]


@pytest.mark.parametrize("make", [
  lambda: [new(4, 8) + 1.0, new(4, 8) * 2.0],                                               # nothing in common
  lambda: (lambda s: [new(4, 8) * s.expand((4, 8)), new(4, 8) + s.expand((4, 8))])(new(1, 1)),    # but a scalar
  lambda: (lambda x: [x.reduce(Ops.ADD, (0,)), x.reduce(Ops.ADD, (1,))])(new(8, 8)),       # other axes
  lambda: (lambda a: [matmul(a, new(5, 8)), matmul(a, new(5, 8))])(new(4, 5)),               # two products
  lambda: (lambda h: [h, h.permute((1, 0)) + new(8, 8)])(matmul(new(8, 5), new(5, 8))),      # other elements
  lambda: (lambda x: [x + 1.0, x.copy_to("Y") * 2.0])(new(4)),                               # another device
  lambda: (lambda x: [x * 2.0, x.shrink(((0, 2),)) + 1.0])(new(4)),                          # another shape
])
def test_what_stays_apart(make: object) -> None:
  assert set(results(schedule(make()))) == {1} or any(i.ast.op is Ops.COPY for i in schedule(make()))
  assert all(len(i.ast.src) == 1 for i in schedule(make()))


def test_nothing_waits_for_itself() -> None:
  """The second use of x needs a sum of the first: they cannot be one kernel."""
  x = new(4, 8)
  first = x * 2.0
  s = schedule([first, x + first.reduce(Ops.ADD, (0, 1)).expand((4, 8))])
  made = {b: n for n, i in enumerate(s) for b in i.buffers[:len(i.ast.src)]}
  assert all(made.get(b, -1) < n for n, i in enumerate(s) for b in i.buffers[len(i.ast.src):])


def test_limits() -> None:
  x = new(64)
  many = [x + float(n) for n in range(20)]
  assert results(schedule(many)) == [8, 8, 4]
  wide = [x + new(64) for _ in range(20)]
  assert all(len(i.buffers) <= 17 for i in schedule(wide))


def with_more() -> dict[str, tuple[list[UOp], Memory]]:
  """Kernels of several results."""
  made: dict[str, tuple[list[UOp], Memory]] = {}
  rng = np.random.default_rng(seed(5))
  memory: Memory = {}
  made["optimizer"] = moments(*(buffer(np.abs(whole(rng, 12, 8)), memory) for _ in range(4))), memory
  memory = {}
  h = matmul(buffer(whole(rng, 8, 12), memory), buffer(whole(rng, 12, 16), memory))
  made["product"] = [h, h.maximum(0.0) - 1.0, h + buffer(whole(rng, 8, 16), memory)], memory
  memory = {}
  x = buffer(whole(rng, 12, 24), memory)
  made["sums"] = [x.reduce(Ops.ADD, (1,)), x.reduce(Ops.MAX, (1,)) * 2.0, (x * x).reduce(Ops.ADD, (1,))], memory
  memory = {}
  x = buffer(whole(rng, 24, 12), memory)
  made["columns"] = [x.reduce(Ops.ADD, (0,)), x.reduce(Ops.MAX, (0,)) * 2.0], memory
  memory = {}
  x = buffer(whole(rng, 6, 20), memory)
  made["types"] = [x < 1.0, x.cast(dtypes.int8), x.cast(dtypes.float16), x.cast(dtypes.bfloat16).cast(F32)], memory
  return made


CASES = with_more()


@pytest.mark.parametrize("target", sorted(ON))
@pytest.mark.parametrize("name", sorted(CASES))
def test_values(name: str, target: str) -> None:
  outputs, memory = CASES[name]
  s = schedule(outputs)
  assert results(s) == [len(outputs)]
  check_kernel(s.items[0].ast)
  assert compile_kernel(s.items[0].ast, ON[target][0]).outputs == len(outputs)
  check(outputs, memory, target)
  check(outputs, memory, target, [])


@settings(max_examples=examples(40))
@given(st.data(), st.sampled_from(sorted(CASES)), st.sampled_from(["host", "local", "gfx1100 O2"]))
def test_any_options_keep_the_results(data: st.DataObject, name: str, target: str) -> None:
  outputs, memory = CASES[name]
  kernel = optimize(schedule(outputs).items[0].ast, ON[target][0], [])
  for _ in range(data.draw(st.integers(1, 4))):
    axis = data.draw(st.sampled_from(list(kernel.parts)))
    opt = Opt(data.draw(st.sampled_from(list(OptKind))), axis.arg.axis, data.draw(st.sampled_from([2, 3, 4, 5, 8, 12])))
    try: kernel.apply(opt)
    except InvalidArgument: continue
  check(outputs, memory, target, kernel.opts)


@settings(max_examples=examples(40), deadline=None)
@given(programs(), st.sampled_from(sorted(ON)))
def test_random_programs(case: tuple[list[UOp], Memory], target: str) -> None:
  """All nodes of random programs as results at once."""
  outputs, memory = case
  plain = (Ops.BUFFER, Ops.CONST, Ops.DEVICE)
  nodes = [u for o in outputs for u in o.toposort() if u.op not in plain and u.shape and u.device][-8:]
  check(list(dict.fromkeys([*outputs, *nodes])), memory, target)


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
@pytest.mark.parametrize(("optimizer", "kernels"), [
  (lambda p: nn.optim.SGD(p, lr=0.1), 1), (lambda p: nn.optim.SGD(p, lr=0.1, momentum=0.9), 1),
  (lambda p: nn.optim.Adam(p, lr=0.1), 2), (lambda p: nn.optim.AdamW(p, lr=0.1), 2)])
def test_an_optimizers_step_is_a_kernel_a_parameter(optimizer: object, kernels: int, device: str) -> None:
  """Adam's two powers of the betas are a kernel of their own."""
  rng = np.random.default_rng(seed(0))
  p = Tensor(rng.standard_normal((6, 8)).astype(np.float32), device=device, requires_grad=True).realize()
  o = optimizer([p])
  steps: list[Step] = []
  for _ in range(3):
    p.grad = Tensor(rng.standard_normal((6, 8)).astype(np.float32), device=device).realize()
    steps.clear()
    with listening(steps.append): o.step()
  assert len(steps) == kernels and steps[-1].written[0].size == 48
