"""Kernels over sizes that launches decide: one program for every value, whatever the optimizer does to their axes."""
from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from tests.compile.test_kernels import HOST, LOCAL
from tests.strength import seeds
from tinyhw.compile import compile_kernel, schedule
from tinyhw.compile.compiler import optimize
from tinyhw.compile.program import Opt, OptKind
from tinyhw.core.errors import InvalidArgument
from tinyhw.emulator.uops import Executable
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.size import Size, from_node, highest, worth
from tinyhw.ir.uop import UOp

N, Z = UOp.variable("n", 1, 20), UOp.variable("z", 0, 3)
n, z = Size(N), Size(Z)
KINDS = [OptKind.UPCAST, OptKind.UNROLL, OptKind.LOCAL, OptKind.GROUP, OptKind.GROUPTOP, OptKind.PADTO, OptKind.SWAP]


def memory(*shape: Any) -> UOp:
  size: Any = 1
  for s in shape: size = size * s
  return UOp.new_buffer("X", size, dtypes.float32).reshape(shape)


def rows() -> UOp: return memory(n, 8) * memory(n, 8)
def total() -> UOp: return memory(n * 4, 8).reduce(Ops.ADD, (0,))
def everything() -> UOp: return memory(n, 3).reduce(Ops.ADD, (0, 1))
def nothing() -> UOp: return memory(z, 5).reduce(Ops.ADD, (0,))
def product() -> UOp:
  a, b = memory(n, 1, 8).expand((n, 12, 8)), memory(1, 12, 8).expand((n, 12, 8))
  return (a * b).reduce(Ops.ADD, (2,))
def joined() -> UOp:
  before, after = memory(z, 4), memory(n, 4)
  return before.pad(((0, n), (0, 0))) + after.pad(((z, 0), (0, 0)))


MEANINGS = {
  rows: lambda a, b: a * b, total: lambda a: a.sum(0, keepdims=True), everything: lambda a: a.sum(keepdims=True),
  nothing: lambda a: a.sum(0, keepdims=True), product: lambda a, b: (a * b).sum(2, keepdims=True),
  joined: lambda a, b: np.concatenate([a, b])}


def run(program: Any, buffers: tuple[UOp, ...], given: dict[UOp, np.ndarray], values: dict[Any, int]) -> np.ndarray:
  """What a launch leaves in the first buffer."""
  full = [np.full(highest(b.arg.size), np.nan, np.float32) for b in buffers]
  for place, b in zip(full[1:], buffers[1:]): place[:given[b].size] = given[b].reshape(-1)
  launch = [values[v] for v in program.variables]
  Executable(program.uops, program.name)([a.view(np.uint8) for a in full], launch,
                                         program.launch_grid(values), program.block)
  return full[0]


@pytest.mark.parametrize("graph, seed", list(itertools.product(MEANINGS, seeds(range(3)))),
                         ids=lambda x: getattr(x, "__name__", x))
def test_any_steps_of_the_optimizer(graph: Any, seed: int) -> None:
  draw, root = random.Random(seed), graph()
  [item] = schedule([root.contiguous()]).items
  shapes = {u.src[0]: u.shape for u in root.toposort() if u.op is Ops.RESHAPE and u.src[0].op is Ops.BUFFER}
  rng = np.random.default_rng(seed)
  opts: list[Opt] = []
  for _ in range(12):
    more = [*opts, Opt(draw.choice(KINDS), draw.randrange(4), draw.choice([2, 3, 4, 8]))]
    try: compile_kernel(item.ast, LOCAL, more)
    except InvalidArgument: continue
    opts = more
  program = compile_kernel(item.ast, LOCAL, opts)
  for values in ({N.arg: 1, Z.arg: 0}, {N.arg: 20, Z.arg: 3}, {N.arg: 7, Z.arg: 1}, {N.arg: 16, Z.arg: 2}):
    given = {b: rng.integers(-9, 9, [worth(s, values) for s in shape]).astype(np.float32)
             for b, shape in shapes.items()}
    found, expected = run(program, item.buffers, given, values), MEANINGS[graph](*given.values()).reshape(-1)
    np.testing.assert_array_equal(found[:expected.size], expected, str(opts))
    if expected.size < found.size: assert np.isnan(found[expected.size:]).all(), "it stored beyond the end"


def test_steps_need_a_proof() -> None:
  [item] = schedule([rows().contiguous()]).items
  for kind, amount in ((OptKind.UPCAST, 2), (OptKind.UPCAST, 8)):       # axes n and 8 are one of 8 n
    assert compile_kernel(item.ast, LOCAL, [Opt(kind, 1, amount)]).opts
  [item] = schedule([memory(n, 1).expand((n, 3)).contiguous()]).items
  with pytest.raises(InvalidArgument, match="2 does not divide n"):
    compile_kernel(item.ast, LOCAL, [Opt(OptKind.UPCAST, 0, 2)])
  program = compile_kernel(item.ast, LOCAL, [Opt(OptKind.LOCAL, 0, 4)])
  assert program.extent is not None and (n + 3) // 4 in program.extent and program.grid[0] * program.grid[1] == 15
  assert program.launch_grid({N.arg: 6})[0] * program.launch_grid({N.arg: 6})[1] == 6


def test_the_key_knows_the_bounds() -> None:
  """Equal in every word but in what a Variable may be: other kernels."""
  keys = set()
  for high in (20, 21):
    m = Size(UOp.variable("n", 1, high))
    [item] = schedule([(UOp.new_buffer("X", 30, dtypes.float32).shrink(((0, m),)) + 1.0).contiguous()]).items
    keys.add(item.ast.key)
    assert from_node(m.node) == m
  assert len(keys) == 2


def test_long_reductions_are_shared() -> None:
  m = Size(UOp.variable("long", 0, 1000))
  [item] = schedule([memory(m, 3).reduce(Ops.ADD, (0,)).contiguous()]).items
  program = compile_kernel(item.ast, LOCAL)
  assert any(o.kind is OptKind.GROUP for o in program.opts)
  for size in (0, 1, 63, 64, 65, 1000):
    given = np.random.default_rng(size).integers(-9, 9, (size, 3)).astype(np.float32)
    found = run(program, item.buffers, {item.buffers[1]: given}, {v: size for v in program.variables})
    np.testing.assert_array_equal(found, given.sum(0))


def test_what_is_packed_has_a_size_that_is_known() -> None:
  """Of the loops that copy it; what launches decide of the other outputs is no matter."""
  def of(columns: Any, steps: Any) -> UOp:
    a, b = memory(6, 1, steps).expand((6, columns, steps)), memory(1, columns, steps).expand((6, columns, steps))
    return schedule([(a * b).reduce(Ops.ADD, (2,)).contiguous()]).items[0].ast
  ast = of(n * 4, 8)
  rows = optimize(ast, HOST, []).outputs[0]
  assert len(optimize(ast, HOST, [Opt(OptKind.PACK, rows.arg.axis)]).packed) == 1
  with pytest.raises(InvalidArgument, match="launches decide the size of an operand"):
    optimize(of(12, n * 4), HOST, [Opt(OptKind.PACK, rows.arg.axis)])
