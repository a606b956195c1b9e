"""Details of the compiler that whole programs rarely show: what is computed once, rounded, shared or left out."""
from __future__ import annotations

import random

import numpy as np
import pytest

from tests.compile import test_render_c
from tests.compile.test_choices import LOCALS, chosen, new
from tests.compile.test_kernels import CASES, HOST, ON, LocalRenderer, check, raw_memory
from tests.compile.witness import aligned, buffer, evaluate, matmul, realize
from tests.strength import seeds
from tinyhw.arch.gfx1100 import GFX1100
from tinyhw.compile import Opt, OptKind, compile_kernel, schedule
from tinyhw.compile.compiler import optimize
from tinyhw.compile.linearize import linearize
from tinyhw.compile.render import objects
from tinyhw.compile.render.amdgcn import AMDGCNRenderer
from tinyhw.core.errors import InvalidArgument
from tinyhw.emulator.uops import Executable
from tinyhw.ir.dtype import AddressSpace, DType, dtypes
from tinyhw.ir.spec import check_linear
from tinyhw.ir.uop import Axis, Ops, UOp

Memory = dict[UOp, np.ndarray]


def to_bits(x: np.ndarray) -> np.ndarray:
  """float32 as bfloat16, to nearest even."""
  bits = x.view(np.uint32).astype(np.uint64)
  return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def to_float(bits: np.ndarray) -> np.ndarray: return (bits.astype(np.uint32) << 16).view(np.float32)


@pytest.mark.parametrize("target", ["host", "local", "uops", "gfx1100 O2"])
@pytest.mark.parametrize("number", seeds(range(3)))
def test_every_step_in_bfloat16_is_rounded(number: int, target: str) -> None:
  """Random expressions, as if each result went to memory and back."""
  rng, draw = np.random.default_rng(number), random.Random(number)
  memory: Memory = {}
  pool = []
  for _ in range(3):
    bits = to_bits(rng.uniform(0.5, 4.0, 64).astype(np.float32) * rng.choice([-1, 1], 64).astype(np.float32))
    pool.append((buffer(bits, memory, dtypes.bfloat16), bits))
  for op in (Ops.ADD, Ops.MUL, Ops.SUB, Ops.MAX, Ops.NEG, Ops.WHERE, Ops.FDIV, Ops.ADD):
    (a, x), (b, y) = draw.sample(pool, 2) if op is not Ops.ADD else pool[-2:]
    f, g = to_float(x), to_float(y)
    with np.errstate(all="ignore"):
      if op is Ops.NEG: new = -a, to_bits(-f)
      elif op is Ops.WHERE: new = (a < b).where(b, a), np.where(f < g, y, x)
      else:
        wanted = {Ops.ADD: np.add, Ops.SUB: np.subtract, Ops.MUL: np.multiply, Ops.MAX: np.maximum,
                  Ops.FDIV: np.divide}[op](f, g)
        if not np.isfinite(wanted).all(): continue
        new = a.alu(op, b), to_bits(wanted)
    pool.append(new)
  (got,) = raw_memory([pool[-1][0]], memory, target)
  np.testing.assert_array_equal(got, pool[-1][1])


@pytest.mark.parametrize("target", ["local", "gfx1100 O2"])
@pytest.mark.parametrize("amount", [2, 4, 5, 16])
def test_one_of_two_reductions_is_shared_by_a_group(amount: int, target: str) -> None:
  """Each in turn: the other one is every work-item's own."""
  output, memory = CASES["two in one"]
  reductions = optimize(schedule([output]).items[0].ast, ON[target][0], []).reductions
  assert len(reductions) == 2
  for axis in reductions: check([output], memory, target, [Opt(OptKind.GROUP, axis.arg.axis, amount)])


def test_the_optimizer_of_llvm_is_asked_from_level_1_on() -> None:
  source = objects.header(HOST.processor) + "\n".join([
    "define i32 @k(i32 %x) {", "  %a = add i32 %x, 1", "  %b = add i32 %a, 2", "  ret i32 %b", "}"])
  for level in range(4):
    text = str(objects.optimised(source, "k", HOST.processor, level))
    assert ("add i32 %x, 3" in text) == (level > 0), level


@pytest.mark.parametrize(("make", "kernels"), [
  # A sum with two users that meet, and what they meet in is expanded: the sum needs no memory of its own.
  (lambda x: (lambda c: [c, x - c.expand((4, 8))])((lambda r: (r + 1.0) * (r - 1.0))(x.reduce(Ops.ADD, (1,)))), 2),
  # A value that is used twice at the same index is computed once there, so nothing need be kept.
  (lambda x: [(lambda u: [u := u * u + u for _ in range(9)][-1])(x * 0.125)], 1),
  (lambda x: [(lambda u: [u := u.maximum(u * 0.5).flip((True, False)) for _ in range(3)][-1])(x)], 1),
])
def test_cuts(make: object, kernels: int) -> None:
  memory: Memory = {}
  outputs = make(buffer(np.arange(32, dtype=np.float32).reshape(4, 8) % 3 / 4, memory))
  wanted = [evaluate(u, memory).copy() for u in outputs]
  assert len(schedule(outputs)) == kernels
  for got, want in zip(realize(outputs, memory, HOST), wanted): np.testing.assert_allclose(got, want, rtol=1e-5)


def test_what_is_chosen_for_a_gpu_of_large_workgroups() -> None:
  gpu = AMDGCNRenderer(GFX1100)
  assert chosen(LOCALS["prime"][0](), gpu) == "LOCAL0:64"
  assert chosen(new(1 << 16) + 1.0, gpu) == "UPCAST0:4 LOCAL0:256"


def test_a_long_product_without_squares_is_shared_by_a_group() -> None:
  assert "GROUP" in chosen(matmul(new(7, 4096), new(4096, 8)), LocalRenderer())


def test_an_axis_in_a_workgroup_takes_no_dimension_of_the_grid() -> None:
  (item,) = schedule([new(4, 8, 2).permute((2, 1, 0)).contiguous()])
  axes = [a.arg.axis for a in optimize(item.ast, LocalRenderer(), []).outputs]
  program = compile_kernel(item.ast, LocalRenderer(), [Opt(OptKind.LOCAL, axes[-1], 4)])
  assert (program.grid, program.block) == ((8, 2, 1), (4, 1, 1))


def test_a_grid_has_its_limit_and_a_workgroup_another() -> None:
  class Narrow(LocalRenderer):
    target, max_grid = "narrow", 8
  (item,) = schedule([new(512) * 2.0])
  assert compile_kernel(item.ast, Narrow(), [Opt(OptKind.LOCAL, 0, 64)]).grid == (8, 1, 1)
  with pytest.raises(InvalidArgument, match="16 workgroups, narrow has at most 8"):
    compile_kernel(item.ast, Narrow(), [Opt(OptKind.LOCAL, 0, 32)])


@pytest.mark.parametrize("make", [
  lambda a, b: (a, a.flip((True,))), lambda a, b: (a, a + b.flip((True,))), lambda a, b: (a, b + a.flip((True,))),
  lambda a, b: (a.shrink(((0, 600),)), a.shrink(((300, 900),))),
  lambda a, b: (a.shrink(((300, 900),)), a.shrink(((0, 600),)) + b.shrink(((0, 600),))),
  lambda a, b: (a.reshape((25, 40)).permute((1, 0)), a.reshape((40, 25))),
  lambda a, b: (a, a.reshape((25, 40)).reduce(Ops.ADD, (0,)).expand((25, 40)).reshape((1000,))),
])
@pytest.mark.parametrize("target", ["host", "uops"])
def test_memory_is_read_before_it_is_overwritten(make: object, target: str) -> None:
  """Long enough that no vector holds all of it."""
  memory: Memory = {}
  a, b = (buffer(np.arange(start, start + 1000, dtype=np.float32), memory) for start in (0, 5000))
  part, value = make(a, b)
  wanted, view = evaluate(value, memory).copy(), evaluate(part, memory)
  before = memory[a.base].copy()
  place = evaluate(part, {a.base: np.arange(1000)}).reshape(-1)
  renderer, launch = ON[target]
  (got,) = realize([part.assign(value)], memory, renderer, launch)
  np.testing.assert_array_equal(got, wanted)
  before[place] = wanted.reshape(-1)
  np.testing.assert_array_equal(memory[a.base], before)
  assert view.shape == wanted.shape


def test_two_reductions_in_one_loop_stand_where_both_can() -> None:
  """One of them needs an output's loop, so the loop is in there, and the other one's too."""
  i, k = UOp.range(4, 0, Axis.LOOP), UOp.range(5, 1, Axis.REDUCE)
  out, a, b = (UOp(Ops.DEFINE_GLOBAL, dtypes.int32.ptr(size), (), n) for n, size in enumerate((8, 5, 20)))

  def total(number: int, value: UOp) -> UOp:
    register = UOp(Ops.DEFINE_ACC, dtypes.int32, (UOp.const(dtypes.int32, 0), k), number)
    return UOp(Ops.REDUCE, dtypes.int32, (UOp(Ops.ASSIGN, dtypes.int32, (register, register + value)), k), Ops.ADD)
  first, second = total(0, a.index(k).load()), total(1, b.index(i * 5 + k).load())
  program = linearize(UOp.sink(out.index(i).store(first), out.index(i + 4).store(first * 100 + second)))
  check_linear(program)
  values = [np.arange(1, 6, dtype=np.int32), np.arange(20, dtype=np.int32)]
  arrays = [aligned(x) for x in (np.zeros(8, np.int32), *values)]
  Executable(program, "k")([x.view(np.uint8) for x in arrays], [], (1, 1, 1), (1, 1, 1))
  np.testing.assert_array_equal(arrays[0], [15] * 4 + [1500 + row.sum() for row in values[1].reshape(4, 5)])


def test_a_barrier_waits_for_what_was_written() -> None:
  """For local memory alone where nothing else was."""
  item = UOp.special("lidx0", 64)
  shared = UOp(Ops.DEFINE_LOCAL, dtypes.float32.ptr(64, AddressSpace.LOCAL), (), "shared")
  out, a = (UOp(Ops.DEFINE_GLOBAL, dtypes.float32.ptr(64), (), n) for n in range(2))
  own, other = shared.index(item).store(a.index(item).load()), out.index(item).store(a.index(item).load())
  for before, local in (((own,), True), ((own, other), False), ((other,), False)):
    value = shared.index(item ^ 1).load(UOp(Ops.BARRIER, dtypes.void, before))
    source = AMDGCNRenderer(GFX1100).source("k", linearize(UOp.sink(out.index(item ^ 1).store(value))))
    for order in ("release", "acquire"):
      fence = f'fence syncscope("workgroup") {order}'
      assert fence in source and (f"{fence}, !mmra !0" in source) == local


def test_axes_are_not_merged_beyond_what_an_index_counts() -> None:
  one = new(1).reshape((1, 1)).expand((1 << 16, 1 << 16)).maximum(0.0)
  (item,) = schedule([one.reduce(Ops.ADD, (0, 1))])
  sizes = [int(r.src[0].arg) for r in optimize(item.ast, HOST, []).reductions]
  assert sizes == [1 << 16, 1 << 16]
  few = new(1).reshape((1, 1)).expand((1 << 5, 1 << 4)).maximum(0.0)
  (item,) = schedule([few.reduce(Ops.ADD, (0, 1))])
  assert [int(r.src[0].arg) for r in optimize(item.ast, HOST, []).reductions] == [1 << 9]


def test_a_target_that_llvm_lacks_is_named() -> None:
  with pytest.raises(InvalidArgument, match="cannot make code for nonsense-none-none"):
    objects.generator(objects.Processor("nonsense-none-none", "generic"), 2)


def test_what_is_packed_does_not_move_along_the_axis() -> None:
  rows = schedule([new(64, 32).reduce(Ops.ADD, (1,))]).items[0].ast
  with pytest.raises(InvalidArgument, match="every operand moves along the axis"):
    optimize(rows, HOST, [Opt(OptKind.PACK, 0, 2)])
  product = schedule([matmul(new(64, 32), new(32, 48))]).items[0].ast
  row, column = optimize(product, HOST, []).outputs
  for axis, other in ((row, column), (column, row)):
    packed = optimize(product, HOST, [Opt(OptKind.PACK, axis.arg.axis, 2)]).packed
    assert [(axis in i.ranges, other in i.ranges) for i in packed] == [(False, True)]


@test_render_c.compilers
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.float32, dtypes.float64], ids=str)
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1.5])
def test_a_constant_alone(name: str, dtype: DType, value: float) -> None:
  """What its text needs is there, also where nothing else needs it."""
  out = UOp(Ops.DEFINE_GLOBAL, dtype.ptr(1), (), 0)
  program = linearize(UOp.sink(out.index(UOp.const(dtypes.index, 0)).store(UOp.const(dtype, value))))
  found = np.zeros(1, dtype.numpy)
  test_render_c.run(test_render_c.renderer(name), program, [found])
  np.testing.assert_array_equal(found, [value])
