"""The option WARPGROUP: values beside NumPy's on the emulator of PTX and through devices, what the assembler makes of
it, and what does not fit."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyhw
from tests.strength import examples
from tinyhw import Device, Tensor, TinyJit, dtypes
from tinyhw.arch.nv import NV_ARCHES
from tinyhw.compile import ProgramSpec, compile_kernel, schedule
from tinyhw.compile.compiler import optimize
from tinyhw.compile.nvidia import nvjitlink
from tinyhw.compile.program import Opt, OptKind
from tinyhw.compile.render.ptx import PTXRenderer
from tinyhw.core.errors import InvalidArgument
from tinyhw.devices.assemble import assembled
from tinyhw.ir.dtype import DType
from tinyhw.ir.matrix import TileProduct
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp
from tinyhw.wire.cubin import Cubin

HOPPER = PTXRenderer("sm_90")
NUMPY = {dtypes.float16: np.float16, dtypes.bfloat16: ml_dtypes.bfloat16, dtypes.int8: np.int8,
         dtypes.float8_e4m3fn: ml_dtypes.float8_e4m3fn}
TC, LOCAL, WARPGROUP = OptKind.TC, OptKind.LOCAL, OptKind.WARPGROUP
Array = np.ndarray[Any, Any]


def kernel(value: Tensor) -> UOp:
  """The kernel of a value whose inputs have memory."""
  (found,) = [item.ast for item in schedule([value.uop]) if item.ast.op is not Ops.COPY]
  return found


def run(program: ProgramSpec, arrays: list[Array], check: str | bool = False) -> Array:
  given_ = [a.view(np.uint8 if a.itemsize == 1 else np.uint16) if a.dtype.kind == "V" else a for a in arrays]
  return tinyhw.launch(program.binary, program.name, program.grid, program.block, given_, "EMU",
                       program.dynamic_bytes, check=check)[0]


def whole(kind: DType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
  """Numbers whose sums of products are exact in every order."""
  return rng.integers(-3, 4, shape).astype(NUMPY[kind])


def product(kind: DType, m: int, n: int, k: int, a_across: bool = False, b_across: bool = True) -> UOp:
  """Of factors that memory has along the steps, or across them."""
  a = Tensor.empty(k, m, dtype=kind).T if a_across else Tensor.empty(m, k, dtype=kind)
  b = Tensor.empty(k, n, dtype=kind) if b_across else Tensor.empty(n, k, dtype=kind).T
  return kernel(a.matmul(b, dtype=dtypes.int32 if kind is dtypes.int8 else dtypes.float32))


def plan(program: ProgramSpec) -> TileProduct:
  (found,) = [u.arg for u in program.uops if u.op is Ops.WGMMA]
  assert isinstance(found, TileProduct)
  return found


@settings(max_examples=examples(8), deadline=None)
@given(st.sampled_from(sorted(NUMPY, key=lambda d: d.name)), st.sampled_from([1, 2, 3, 4, 8]),
       st.sampled_from([64, 128, 192, 256]), st.integers(1, 2), st.integers(1, 10), st.booleans(), st.booleans(),
       st.integers(0, 99))
def test_products_of_any_form(kind: DType, tall: int, columns: int, broad: int, loops: int, a_across: bool,
                              b_across: bool, seed: int) -> None:
  """Tiles in both directions, fewer loops than stages and more, memory along the steps and across them."""
  rng = np.random.default_rng(seed)
  if kind.itemsize == 1: a_across = b_across = False
  m, n, k = 64 * tall, columns * broad, loops * 128 // kind.itemsize
  program = compile_kernel(product(kind, m, n, k, a_across, b_across), HOPPER, [Opt(WARPGROUP, 2, columns)])
  assert program.dynamic_bytes == plan(program).local_bytes > 48 << 10 and program.local_bytes == program.dynamic_bytes
  a, b = whole(kind, (m, k), rng), whole(kind, (k, n), rng)
  stored = [np.ascontiguousarray(a.T) if a_across else a, b if b_across else np.ascontiguousarray(b.T)]
  out = run(program, [np.full((m, n), -1, np.int32 if kind is dtypes.int8 else np.float32), *stored])
  assert np.array_equal(out, a.astype(np.float32) @ b.astype(np.float32))


def test_no_hazards_and_what_it_moves() -> None:
  """Neither races between tiles that take turns, nor words that nobody has written; numbers are copied once a tile."""
  program = compile_kernel(product(dtypes.float16, 128, 64, 640), HOPPER, [Opt(WARPGROUP, 2, 64)])
  rng = np.random.default_rng(1)
  a, b = whole(dtypes.float16, (128, 640), rng), whole(dtypes.float16, (640, 64), rng)
  assert (run(program, [np.zeros((128, 64), np.float32), a, b], check=True) == a.astype(np.float32) @ b).all()
  made, text = plan(program), program.binary.decode()
  copies = text.count("cp.async.cg.shared.global") * made.threads * 16
  assert copies == (made.stages - 2 + 1) * made.stage_bytes and text.count("bar.sync") == 1


@pytest.mark.parametrize("name, a, b, by", [
  ("a batch", (2, 64, 64), (2, 64, 64), lambda mm, a, b: mm(a, b)),
  ("a factor of all of a batch", (3, 64, 64), (64, 128), lambda mm, a, b: mm(a, b)),
  ("what follows, element by element", (64, 64), (64, 64), lambda mm, a, b: abs(mm(a, b)) + 1),
  ("a part of memory", (192, 128), (64, 64), lambda mm, a, b: mm(a[64:, 64:], b)),
  ("rows given to the columns' factor", (64, 64), (128, 64), lambda mm, a, b: mm(a, b.T)),
])
def test_around_a_product(name: str, a: tuple[int, ...], b: tuple[int, ...], by: Callable[..., Any]) -> None:
  def ours(x: Tensor, y: Tensor) -> Tensor: return x.matmul(y, dtype=dtypes.float32)
  ast = kernel(by(ours, Tensor.empty(*a, dtype=dtypes.float16), Tensor.empty(*b, dtype=dtypes.float16)))
  steps = max(int(r.arg.axis) for r in optimize(ast, HOPPER, ()).parts)
  rng = np.random.default_rng(3)
  x, y = whole(dtypes.float16, a, rng), whole(dtypes.float16, b, rng)
  wanted = by(np.matmul, x.astype(np.float32), y.astype(np.float32))
  program = compile_kernel(ast, HOPPER, [Opt(WARPGROUP, steps, 64)])
  assert np.array_equal(run(program, [np.zeros(wanted.shape, np.float32), x, y]), wanted)


def test_the_heuristic_takes_it_for_what_fills_a_gpu() -> None:
  def chosen(m: int, n: int, k: int, renderer: PTXRenderer = HOPPER) -> list[tuple[OptKind, int]]:
    return [(o.kind, o.amount) for o in optimize(product(dtypes.bfloat16, m, n, k), renderer).opts]
  assert chosen(8192, 8192, 8192) == [(WARPGROUP, 256)] and chosen(8192, 1344, 64) == [(WARPGROUP, 192)]
  assert chosen(128 * 128, 64, 64) == [(WARPGROUP, 64)] and chosen(127 * 128, 64, 64)[0][0] is TC
  assert chosen(8192, 8192, 8192 + 16)[0][0] is TC
  for other in ("sm_89", "sm_100", "sm_120"): assert chosen(8192, 8192, 8192, PTXRenderer(other))[0][0] is TC


SQUARE = (512, 512, 512)


def halves(*shape: int) -> Tensor: return Tensor.empty(*shape, dtype=dtypes.float16)


def times(a: Tensor, b: Tensor) -> UOp: return kernel(a.matmul(b, dtype=dtypes.float32))


@pytest.mark.parametrize("value, opts, why", [
  (lambda: product(dtypes.float16, *SQUARE), (Opt(WARPGROUP, 2, 100),), "no tiles of 100 columns"),
  (lambda: product(dtypes.float16, *SQUARE), (Opt(WARPGROUP, 2, 192),), "an axis of 512 is no multiple of 192"),
  (lambda: product(dtypes.float16, 32, 64, 64), (Opt(WARPGROUP, 2, 64),), "an axis of 32 is no multiple of 64"),
  (lambda: product(dtypes.float16, *SQUARE), (Opt(WARPGROUP, 2, 64), Opt(LOCAL, 0, 2)), "operands are packed already"),
  (lambda: product(dtypes.float16, *SQUARE), (Opt(WARPGROUP, 2, 64), Opt(TC, 2)), "a matrix unit is used already"),
  (lambda: product(dtypes.float16, *SQUARE), (Opt(LOCAL, 0, 2), Opt(WARPGROUP, 2, 64)), "a unit's blocks come first"),
  (lambda: product(dtypes.int8, *SQUARE), (Opt(WARPGROUP, 2, 64),), "a factor has no lines of neighbours"),
  (lambda: times(halves(64, 64) + 1, halves(64, 64)), (Opt(WARPGROUP, 2, 64),), "a factor is not plain memory"),
  (lambda: times(halves(64, 68)[:, 4:], halves(64, 64)), (Opt(WARPGROUP, 2, 64),), "lines of a factor are not aligned"),
  (lambda: times(halves(64, 64).flip(0), halves(64, 64)), (Opt(WARPGROUP, 2, 64),), "a factor is read backwards"),
  (lambda: kernel(Tensor.empty(3, 64, 64).sum(0)), (Opt(WARPGROUP, 2, 64),), "the sum is not of products"),
])
def test_what_does_not_fit(value: Callable[[], UOp], opts: tuple[Opt, ...], why: str) -> None:
  with pytest.raises(InvalidArgument, match=why): optimize(value(), HOPPER, opts)


def test_targets_without_it() -> None:
  for other in ("sm_80", "sm_89", "sm_100"):
    with pytest.raises(InvalidArgument, match="no matrix units of warpgroups"):
      optimize(product(dtypes.float16, *SQUARE), PTXRenderer(other), [Opt(WARPGROUP, 2, 64)])


@pytest.mark.parametrize("kind, columns", [(dtypes.bfloat16, 256), (dtypes.int8, 128), (dtypes.float8_e4m3fn, 64)])
def test_the_assembler_makes_code_of_it(kind: DType, columns: int) -> None:
  """As one that is not ours reads the text: sums and all else have registers of their own."""
  if (linker := nvjitlink.find()) is None: pytest.skip("there is no nvJitLink")
  program = compile_kernel(product(kind, 256, 256, 1024, b_across=kind.itemsize > 1), HOPPER,
                           [Opt(WARPGROUP, 2, columns)])
  made = Cubin(assembled(program.binary, NV_ARCHES["sm_90"], linker)).kernel(program.name)
  assert columns // 2 < made.registers <= columns // 2 + 64 and made.local == 0 and made.barriers == 1


@pytest.mark.parametrize("device", ["NV", "CUDA"])
def test_through_a_device(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """A launch, and a replay, give the kernel its shared memory."""
  monkeypatch.setenv("MOCKGPU", "sm_90")
  Device.close()
  try:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((128 * 128, 64), (64, 64)))
    x, y = (Tensor(v, device=device).cast(dtypes.bfloat16).realize() for v in (a, b))
    assert np.array_equal(x.matmul(y, dtype=dtypes.float32).numpy(), a @ b)
    twice = TinyJit(lambda x, y: (x.matmul(y, dtype=dtypes.float32) * 2).realize())
    for _ in range(4): assert np.array_equal(twice(x, y).numpy(), 2 * (a @ b))
    assert sum(k.spec.dynamic_bytes > 0 for k in Device[device].kernels.values()) == 2
  finally: Device.close()
