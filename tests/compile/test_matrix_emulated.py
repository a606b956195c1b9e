"""Matrix units without a GPU: the one of the UOp emulator, blocks that threads multiply by themselves, NVIDIA's mma on
the emulator of PTX, and layouts, which are data."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyhw
from tests.compile.test_kernels import HOST, Memory, launch
from tests.compile.test_matrix_units import GPUS, launch_on
from tests.compile.test_render_c import COMPILERS, renderer
from tests.compile.witness import buffer, launch_host, matmul, realize
from tests.strength import examples
from tinyhw import Tensor
from tinyhw.compile import Opt, OptKind, ProgramSpec, compile_kernel, schedule
from tinyhw.compile.compiler import optimize
from tinyhw.compile.render.base import Renderer
from tinyhw.compile.render.nvptx import NVPTXRenderer
from tinyhw.compile.render.uops import UOpRenderer
from tinyhw.compile.units import _UNITS, EMULATION, available
from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.emulator.uops import Executable
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.matrix import EMULATED, MatrixUnit, total
from tinyhw.ir.uop import Ops, UOp

ALL = [u for units in (*_UNITS.values(), *EMULATION.values()) for u in units]
TC = Opt(OptKind.TC, 2)


@pytest.mark.parametrize("unit", ALL, ids=lambda u: u.name)
def test_each_number_is_held(unit: MatrixUnit) -> None:
  """All numbers of A, B and C are somewhere, results at one place only."""
  for layout, sizes in ((unit.a, (unit.rows, unit.steps)), (unit.b, (unit.steps, unit.columns)),
                        (unit.c, (unit.rows, unit.columns))):
    places = [(total(layout[0], at, j), total(layout[1], at, j)) for at in range(unit.lanes)
              for j in range(unit.held(layout))]
    assert set(places) == set(np.ndindex(*sizes))
    if layout is unit.c: assert len(places) == len(set(places))


def whole(rng: np.random.Generator, memory: Memory, dtype: DType, *shape: int) -> UOp:
  """A BUFFER of small whole numbers."""
  values = rng.integers(-3, 4, shape)
  if dtype is dtypes.bfloat16:
    bits = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return buffer(bits, memory, dtype)
  return buffer(values.astype(dtype.numpy), memory)


def product(memory: Memory, dtype: DType, m: int, n: int, k: int, more: bool = False) -> tuple[UOp, np.ndarray]:
  """A product in float32, and its value."""
  rng = np.random.default_rng(m + n + k)
  a, b = whole(rng, memory, dtype, m, k), whole(rng, memory, dtype, k, n)
  def numbers(u: UOp) -> np.ndarray:
    found = memory[u.base].reshape(u.shape)
    return (found.astype(np.uint32) << 16).view(np.float32) if dtype is dtypes.bfloat16 else found.astype(np.float32)
  u, value = matmul(a.cast(dtypes.float32), b.cast(dtypes.float32)), numbers(a) @ numbers(b)
  return ((u * 2.0).maximum(1.0), np.maximum(value * 2, 1)) if more else (u, value)


def launch_ptx(program: ProgramSpec, arrays: list[np.ndarray]) -> None:
  """Runs PTX on its emulator."""
  found = tinyhw.launch(program.binary, program.name, program.grid, program.block, arrays, "EMU")
  for a, f in zip(arrays, found): a[:] = f


NVIDIA = NVPTXRenderer("sm_80")


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=str)
@pytest.mark.parametrize("target", [*GPUS, "sm_80"])
@pytest.mark.parametrize("more", [False, True])
def test_products(target: str, dtype: DType, more: bool) -> None:
  made, how = (NVIDIA, launch_ptx) if target == "sm_80" else (GPUS[target], launch_on(target))
  memory: Memory = {}
  u, wanted = product(memory, dtype, 32, 48, 32, more)
  program = compile_kernel(schedule([u]).items[0].ast, made)
  assert program.opts[0].kind is OptKind.TC and any(v.op is Ops.WMMA for v in program.uops)
  assert program.estimates.ops >= 2 * 32 * 48 * 32
  if target == "sm_80": assert "mma.sync.aligned.m16n8k16.row.col.f32" in program.source + program.binary.decode()
  found, = realize([u], memory, made, how)
  np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)


class Emulating(UOpRenderer):
  """PYTHON with the unit of tests, and workgroups."""
  units = (EMULATED,)
  target = "emulating"
  local = True
  max_block = 128


@settings(max_examples=examples(15), deadline=None)
@given(st.data())
def test_any_options_after_it_keep_the_result(data: st.DataObject) -> None:
  memory: Memory = {}
  u, wanted = product(memory, dtypes.float16, 64, 32, 48)
  kernel = optimize(schedule([u]).items[0].ast, Emulating(), [TC])
  for _ in range(data.draw(st.integers(1, 3))):
    kind = data.draw(st.sampled_from([OptKind.UPCAST, OptKind.LOCAL, OptKind.UNROLL, OptKind.SWAP]))
    opt = Opt(kind, data.draw(st.integers(0, 2)), data.draw(st.sampled_from([1, 2, 3, 4])))
    try: kernel.apply(opt)
    except InvalidArgument: continue
  found, = realize([u], memory, Emulating(), launch, kernel.opts)
  np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)


ALONE: dict[str, tuple[Renderer, Callable[..., None]]] = {
  "host": (HOST, launch_host), "uops": (UOpRenderer(), launch),
  **{n: (renderer(n), launch_host) for n in COMPILERS[:1]}}


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float16, dtypes.bfloat16], ids=str)
@pytest.mark.parametrize("target", sorted(ALONE))
def test_the_step_on_every_device(dtype: DType, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
  made, how = ALONE[target]
  memory: Memory = {}
  u, wanted = product(memory, dtype, 32, 16, 48, True)
  ast = schedule([u]).items[0].ast
  with pytest.raises(InvalidArgument, match="has no matrix units"): compile_kernel(ast, made, [TC])
  monkeypatch.setenv("TC", "2")
  if target == "uops" and dtype is not dtypes.float16:
    with pytest.raises(InvalidArgument, match="no unit multiplies|not of products"): compile_kernel(ast, made, [TC])
    return
  program = compile_kernel(ast, made)
  assert program.opts[0].kind is OptKind.TC
  assert any(v.op is Ops.WMMA for v in program.uops) is (target == "uops")
  found, = realize([u], memory, made, how)
  np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)


def test_none_where_the_environment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
  gpu = GPUS["gfx1100"]
  assert available(gpu) and not available(HOST)
  u, _ = product({}, dtypes.float16, 32, 32, 32)
  ast = schedule([u]).items[0].ast
  assert compile_kernel(ast, gpu).opts[0].kind is OptKind.TC
  monkeypatch.setenv("TC", "0")
  assert not available(gpu) and all(o.kind is not OptKind.TC for o in compile_kernel(ast, gpu).opts)
  with pytest.raises(InvalidArgument, match="has no matrix units"): compile_kernel(ast, gpu, [TC])


def test_what_the_emulator_does_not_multiply() -> None:
  u, _ = product({}, dtypes.float16, 16, 16, 16)
  program = compile_kernel(schedule([u]).items[0].ast, GPUS["gfx1100"])
  with pytest.raises(Unsupported, match="wmma"): Executable(program.uops, program.name)


def test_a_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("TC", "2")
  rng = np.random.default_rng(0)
  a, b = (rng.integers(-3, 4, (32, 32)).astype(np.float16) for _ in range(2))
  x, y = Tensor(a, device="PYTHON"), Tensor(b, device="PYTHON")
  np.testing.assert_array_equal((x @ y).numpy(), a @ b)
