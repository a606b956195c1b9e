"""What is fused, what is realized, in which order, and what becomes of the outputs."""
from __future__ import annotations

import numpy as np
import pytest

from tests.compile.witness import buffer, evaluate, matmul, realize
from tests.strength import seed
from tinyhw.compile import Schedule, schedule
from tinyhw.compile.render.host import HostRenderer
from tinyhw.core.errors import InvalidArgument
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.spec import check_kernel
from tinyhw.ir.uop import Ops, UOp

F32 = dtypes.float32
HOST = HostRenderer()
Memory = dict[UOp, np.ndarray]


def new(*shape: int, device: str = "X") -> UOp:
  return UOp.new_buffer(device, int(np.prod(shape)), F32).reshape(shape)


def softmax(x: UOp) -> UOp:
  e = (x - x.reduce(Ops.MAX, (1,)).expand(x.shape)).exp2()
  return e / e.reduce(Ops.ADD, (1,)).expand(x.shape)


def reductions(s: Schedule) -> list[int]:
  """How many reductions each item has."""
  return [sum(u.op is Ops.REDUCE_AXIS for u in item.ast.toposort()) for item in s]


@pytest.mark.parametrize("make, kernels", [
  (lambda: [new(4, 4) + 1.0], 1),
  (lambda: [((new(4, 4) + 1.0) * 2.0).permute((1, 0)).exp2().reshape((16,))], 1),
  (lambda: [matmul(new(4, 5), new(5, 6)).maximum(0.0) + new(4, 6)], 1),
  (lambda: [matmul(matmul(new(4, 5), new(5, 6)), new(6, 3))], 2),
  (lambda: [softmax(new(4, 8))], 3),
  (lambda: [new(4, 8).reduce(Ops.ADD, (1,)).reduce(Ops.MAX, (0,))], 2),
  (lambda: [new(4, 8).reduce(Ops.ADD, (0,)) + new(8, 1).reshape((1, 8)).reduce(Ops.ADD, (0,))], 1),
  (lambda: [(new(4, 8).reduce(Ops.ADD, (1,)) * 0.125).expand((4, 8)) + new(4, 8)], 2),
  (lambda: [(lambda r: r * (r * -1.0).exp2())(new(4, 8).reduce(Ops.ADD, (1,)))], 1),
  (lambda: [new(4, 8).reduce(Ops.ADD, (1,)) + new(4, 3).reduce(Ops.ADD, (1,))], 2),
  (lambda: [(new(4, 1).exp2()).expand((4, 8)) + new(4, 8)], 2),
  (lambda: [(new(4, 1) + 1.0).expand((4, 8)) + new(4, 8)], 1),
  (lambda: [(new(4) + 1.0).contiguous() * 2.0], 1),
  (lambda: [(new(4) + 1.0).contiguous().flip((True,)) * 2.0], 2),
  (lambda: [new(4)], 0),
  (lambda: [new(4, 2).permute((1, 0))], 0),
  (lambda: [new(4, 0)], 0),
  (lambda: [(new(0) + 1.0)], 0),
  (lambda: [new(4).copy_to("Y") + UOp.new_buffer("Y", 4, F32)], 2),
  (lambda: [(new(4) + 1.0).copy_to("Y")], 2),
  (lambda: [new(4, 2).shrink(((1, 3), (0, 1))).copy_to("Y")], 2),
])
def test_number_of_items(make: object, kernels: int) -> None:
  outputs = make()
  s = schedule(outputs)
  assert len(s) == kernels
  assert all(count <= 1 for count in reductions(s))
  for item in s:
    check_kernel(item.ast)
    assert all(b.op is Ops.BUFFER for b in item.buffers)
    assert item.device == item.buffers[0].arg.device


def test_shared_nodes_are_computed_once() -> None:
  x = new(8, 8)
  h = matmul(x, new(8, 8))
  s = schedule([h + 1.0, h * 2.0, h])
  assert len(s) == 1 and sum(reductions(s)) == 1
  assert {s.becomes[u].base for u in (h + 1.0, h * 2.0, h)} == set(s.items[0].buffers[:3])


def test_same_graph_same_kernel() -> None:
  first, second = schedule([softmax(new(4, 8))]), schedule([softmax(new(4, 8))])
  assert [i.ast for i in first] == [i.ast for i in second]
  assert first.items[0].buffers != second.items[0].buffers


def test_outputs_that_share_memory() -> None:
  memory: Memory = {}
  a = buffer(np.arange(6, dtype=np.float32).reshape(2, 3), memory)
  b = a + 1.0
  results = realize([b, b.reshape((6,)), b.permute((1, 0)), a.flip((True, False))], memory, HOST)
  np.testing.assert_array_equal(results[0], np.arange(6).reshape(2, 3) + 1)
  np.testing.assert_array_equal(results[1], np.arange(6) + 1)
  np.testing.assert_array_equal(results[2], (np.arange(6).reshape(2, 3) + 1).T)
  np.testing.assert_array_equal(results[3], np.arange(6).reshape(2, 3)[::-1])


def test_a_graph_of_constants_needs_a_device() -> None:
  with pytest.raises(InvalidArgument, match="none names a device"): schedule([UOp.const(F32, 1.0, None, (3,)) + 1.0])
  s = schedule([UOp.const(F32, 1.0, "X", (3,)) + 1.0])
  assert len(s) == 1 and s.items[0].device == "X" and len(s.items[0].buffers) == 1


def test_empty_reductions() -> None:
  memory: Memory = {}
  empty = UOp.const(F32, 7.0, "X", (0, 2))
  for op, value in ((Ops.ADD, 0.0), (Ops.MUL, 1.0), (Ops.MAX, -np.inf)):
    result, = realize([empty.reduce(op, (0,)) + 0.0], memory, HOST)
    np.testing.assert_array_equal(result, np.full((1, 2), value))


def test_assign_in_place() -> None:
  memory: Memory = {}
  a = buffer(np.arange(4, dtype=np.float32), memory)
  s = schedule([a.assign(a + 1.0)])
  assert len(s) == 1 and s.items[0].buffers == (a,)
  result, = realize([a.assign(a + 1.0)], memory, HOST)
  np.testing.assert_array_equal(result, [1, 2, 3, 4])
  np.testing.assert_array_equal(memory[a], [1, 2, 3, 4])


@pytest.mark.parametrize("value", [
  lambda a: a.flip((True,)), lambda a: a + a.flip((True,)), lambda a: a.reduce(Ops.ADD, (0,)).expand((4,)),
  lambda a: a.reshape((2, 2)).permute((1, 0)).reshape((4,)) * 2.0])
def test_assign_of_what_it_overwrites(value: object) -> None:
  memory: Memory = {}
  a = buffer(np.array([1, 2, 3, 5], np.float32), memory)
  expected = evaluate(value(a), memory).copy()
  result, = realize([a.assign(value(a))], memory, HOST)
  np.testing.assert_array_equal(result, expected)
  np.testing.assert_array_equal(memory[a], expected)


def test_assign_to_a_part_and_twice() -> None:
  memory: Memory = {}
  base = buffer(np.zeros(6, np.float32), memory)
  part = base.reshape((2, 3)).shrink(((0, 2), (1, 3))).flip((False, True))
  realize([part.assign(UOp.const(F32, 3.0, None, (2, 2)) + buffer(np.eye(2, dtype=np.float32), memory))], memory, HOST)
  np.testing.assert_array_equal(memory[base], [0, 3, 4, 0, 4, 3])
  once = base.assign(base + 1.0)
  result, = realize([once.assign(once * 2.0)], memory, HOST)
  np.testing.assert_array_equal(result, [2, 8, 10, 2, 10, 8])


def test_readers_of_the_old_value_come_first() -> None:
  memory: Memory = {}
  a = buffer(np.arange(4, dtype=np.float32), memory)
  old, new_ = a * 10.0, a.assign(a + 1.0)
  after = new_ + 0.5
  for outputs in ([old, new_, after], [after, new_, old]):
    memory[a][:] = np.arange(4)
    results = dict(zip(outputs, realize(outputs, memory, HOST)))
    np.testing.assert_array_equal(results[old], np.arange(4) * 10)
    np.testing.assert_array_equal(results[new_], np.arange(4) + 1)
    np.testing.assert_array_equal(results[after], np.arange(4) + 1.5)


def test_a_kernel_cannot_read_before_and_after() -> None:
  a = new(4)
  with pytest.raises(InvalidArgument, match="before and after an ASSIGN"): schedule([a.assign(a + 1.0) * a])


def test_shifted_sums_do_not_explode() -> None:
  memory: Memory = {}
  values = np.random.default_rng(seed(0)).integers(0, 5, 256).astype(np.float32)
  x = buffer(values, memory)
  for shift in (1, 2, 4, 8, 16, 32, 64, 128): x = x + x.shrink(((0, 256 - shift),)).pad(((shift, 0),))
  s = schedule([x])
  assert 1 < len(s) <= 3
  np.testing.assert_array_equal(realize([x], memory, HOST)[0], np.cumsum(values))
