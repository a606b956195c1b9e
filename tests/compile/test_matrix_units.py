"""Products by matrix units: each generation's emulator, which has its own idea of which lane holds what, gives NumPy's
values. The numbers are small and whole, so no order of sums changes a result."""
from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compile.test_kernels import HOST, LOCAL
from tests.compile.witness import buffer, evaluate, matmul, realize
from tests.emulator.gpu import Gpu
from tests.strength import examples
from tinyhw.arch import decoded
from tinyhw.compile import Opt, OptKind, ProgramSpec, compile_kernel, schedule, units
from tinyhw.compile.compiler import optimize
from tinyhw.compile.render.amdgcn import FARTHEST, AMDGCNRenderer
from tinyhw.core.errors import InvalidArgument
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.matrix import total
from tinyhw.ir.uop import Ops, UOp

GPUS = {cpu: AMDGCNRenderer(decoded(cpu)) for cpu in ("gfx1100", "gfx1201", "gfx90a", "gfx942", "gfx950")}
Memory = dict[UOp, np.ndarray]
TC = Opt(OptKind.TC, 2)


def launch_on(cpu: str):
  def launch(program: ProgramSpec, arrays: list[np.ndarray]) -> None:
    gpu = Gpu(1 << 22, cpu=cpu)
    kernel = gpu.load(program.binary)[program.name]
    addresses = [gpu.put(a) for a in arrays]
    gpu.launch(kernel, program.grid, program.block, addresses)
    for a, address in zip(arrays, addresses): a[:] = gpu.get(address, a.dtype, a.size)
  return launch


def product(a: UOp, b: UOp) -> UOp: return matmul(a.cast(dtypes.float32), b.cast(dtypes.float32))


def whole(rng: np.random.Generator, *shape: int) -> np.ndarray: return rng.integers(-3, 4, shape).astype(np.float16)


def check(output: UOp, memory: Memory, cpu: str, opts: list[Opt] | None = None) -> None:
  wanted = evaluate(output, memory).copy()
  (found,) = realize([output], memory, GPUS[cpu], launch_on(cpu), opts)
  np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("cpu", GPUS)
@pytest.mark.parametrize("form", ["plain", "transposed", "both", "with more", "batch"])
def test_products(cpu: str, form: str) -> None:
  memory: Memory = {}
  rng = np.random.default_rng(len(form))
  a, b = buffer(whole(rng, 32, 48), memory), buffer(whole(rng, 48, 64), memory)
  if form in ("transposed", "both"): b = buffer(whole(rng, 64, 48), memory).permute((1, 0))
  if form == "both": a = buffer(whole(rng, 48, 32), memory).permute((1, 0))
  u = product(a, b)
  # What comes before a factor and after the product is in the same kernel.
  if form == "with more": u = (product(a.maximum(0.0), b + 1.0) * 2.0).maximum(1.0).cast(dtypes.float16)
  if form == "batch":
    left, right = (buffer(whole(rng, 2, 16, 32), memory).cast(dtypes.float32) for _ in range(2))
    shape = (2, 16, 16, 32)
    u = (left.reshape((2, 16, 1, 32)).expand(shape) * right.reshape((2, 1, 16, 32)).expand(shape)).reduce(Ops.ADD, (3,))
  (item,) = schedule([u])
  program = compile_kernel(item.ast, GPUS[cpu])
  assert program.opts[0].kind is OptKind.TC and any(v.op is Ops.WMMA for v in program.uops)
  deepest = next(v for v in GPUS[cpu].units if (32 if form == "batch" else 48) % v.steps == 0)
  assert deepest.name in program.source and program.estimates.ops >= 2 * 16 * 16 * 32
  check(u, memory, cpu)


def test_a_lane_has_several_columns_where_they_are_neighbours() -> None:
  a, b, across = (UOp.new_buffer("X", 64 * 64, dtypes.float16).reshape((64, 64)) for _ in range(3))
  for second, blocks in ((b, 4), (across.permute((1, 0)), 1)):
    program = compile_kernel(schedule([product(a, second)]).items[0].ast, GPUS["gfx1100"], [TC])
    assert (program.block, sum(u.op is Ops.WMMA for u in program.uops)) == ((32, 1, 1), blocks)


@pytest.mark.parametrize("cpu", ["gfx1100", "gfx1201"])
def test_far_rows_have_bases_of_their_own(cpu: str) -> None:
  """The rows of large matrices are scalar bases with an offset: LLVM's own way are sums of 64 bits in each lane."""
  a, b = (UOp.new_buffer("X", 1024 * 1024, dtypes.float16).reshape((1024, 1024)) for _ in "ab")
  renderer = GPUS[cpu]
  program = compile_kernel(schedule([product(a, b)]).items[0].ast, renderer)
  text = renderer.assembly(program.source, program.name)
  loads = [line for line in text.splitlines() if "global_load" in line]
  assert loads and not [line for line in loads if ", off" in line]
  assert 0 < program.source.count("launder.invariant.group") - 1 <= FARTHEST


@settings(max_examples=examples(20))
@given(st.data(), st.sampled_from(sorted(GPUS)))
def test_any_options_after_it_keep_the_result(data: st.DataObject, cpu: str) -> None:
  memory: Memory = {}
  columns = data.draw(st.sampled_from([48, 64]))  # odd and even numbers of blocks
  u = product(buffer(whole(np.random.default_rng(1), 64, 32), memory),
              buffer(whole(np.random.default_rng(2), 32, columns), memory))
  kernel = optimize(schedule([u]).items[0].ast, GPUS[cpu], [TC])
  for _ in range(data.draw(st.integers(1, 3))):
    kind = data.draw(st.sampled_from([OptKind.UPCAST, OptKind.LOCAL, OptKind.UNROLL, OptKind.SWAP]))
    opt = Opt(kind, data.draw(st.integers(0, 2)), data.draw(st.sampled_from([1, 2, 3, 4])))
    try: kernel.apply(opt)
    except InvalidArgument: continue
  check(u, memory, cpu, kernel.opts)


def test_a_padded_axis() -> None:
  """Rows and steps beyond the end are zeros, whatever comes before the product makes of zeros."""
  memory: Memory = {}
  rng = np.random.default_rng(3)
  u = product(buffer(whole(rng, 20, 24), memory) + 1.0, buffer(whole(rng, 24, 32), memory) + 1.0)
  check(u, memory, "gfx1100", [Opt(OptKind.PADTO, 0, 16), Opt(OptKind.PADTO, 2, 16), TC])


@pytest.mark.parametrize(("shape", "dtype", "before", "reason"), [
  ((32, 32, 32), dtypes.float32, [], "the sum is not of products|no unit multiplies"),
  ((32, 32, 20), dtypes.float16, [], "no axis of the reduction is a multiple of 16"),
  ((20, 32, 32), dtypes.float16, [], "no two output axes are multiples of 16"),
  ((32, 32, 32), dtypes.float16, [Opt(OptKind.NOLOCALS)], "NOLOCALS came before"),
  ((32, 32, 32), dtypes.float16, [TC], "a matrix unit is used already"),
  ((64, 32, 32), dtypes.float16, [Opt(OptKind.UPCAST, 0, 2)], "a unit's blocks come first"),
])
def test_what_no_unit_computes(shape: tuple[int, int, int], dtype: object, before: list[Opt], reason: str) -> None:
  m, n, k = shape
  a, b = UOp.new_buffer("X", m * k, dtype).reshape((m, k)), UOp.new_buffer("X", k * n, dtype).reshape((k, n))
  ast = schedule([matmul(a.cast(dtypes.float32), b.cast(dtypes.float32))]).items[0].ast
  with pytest.raises(InvalidArgument, match=reason): compile_kernel(ast, GPUS["gfx1100"], [*before, TC])


def test_targets_without_units() -> None:
  a, b = (UOp.new_buffer("X", 1024, dtypes.float16).reshape((32, 32)) for _ in range(2))
  ast = schedule([product(a, b)]).items[0].ast
  for renderer in (HOST, LOCAL):
    with pytest.raises(InvalidArgument, match="has no matrix units"): compile_kernel(ast, renderer, [TC])


@pytest.mark.parametrize("cpu", GPUS)
def test_a_wave_has_some_blocks(cpu: str) -> None:
  """So that a load serves several: four of the rows, where four divide them."""
  def first(m: int) -> list[Opt]:
    a, b = (UOp.new_buffer("X", n * 64, dtypes.float16) for n in (m, 64))
    opts = compile_kernel(schedule([product(a.reshape((m, 64)), b.reshape((64, 64)))]).items[0].ast, GPUS[cpu]).opts
    return [o for o in opts if o.kind is OptKind.UPCAST and o.axis == 0]
  assert first(320) == [Opt(OptKind.UPCAST, 0, 4)] and first(16 * 7) == []


def test_lanes_of_each_unit_hold_each_number_alike() -> None:
  """All numbers of A, B and the result, each in as many lanes as every other."""
  for unit in units._named.values():
    sizes = (unit.rows, unit.steps), (unit.steps, unit.columns), (unit.rows, unit.columns)
    for (down, across), (height, width) in zip((unit.a, unit.b, unit.c), sizes, strict=True):
      places = math.prod(d.size for d in (*down, *across) if not d.of_lane)
      held = Counter((total(down, lane, at), total(across, lane, at))
                     for lane in range(unit.lanes) for at in range(places))
      assert sorted(held) == [(i, j) for i in range(height) for j in range(width)], unit.name
      assert len(set(held.values())) == 1, unit.name
