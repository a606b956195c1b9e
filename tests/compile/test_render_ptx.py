"""PTX that is written from the linear program, and LLVM's: what they compute, on the emulator of PTX, which knows no
UOps; that they agree on a program; that NVIDIA's assembler takes ours."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import tinyhw
from tests.compile.families import (
  buffer,
  check_arithmetic,
  check_casts,
  check_constants,
  check_large_integers,
  check_rounded_products,
)
from tests.compile.gpu import run, runner
from tests.compile.test_matrix_texts import KINDS, Memory, factors, has_unit, launch, names, product
from tests.compile.test_render_amdgcn import linear
from tests.compile.test_render_cuda import SCALARS, all_of, assembled, check, types, workgroups
from tests.compile.test_render_differential import COUNT, OUTPUTS, Program, on_emulator
from tests.compile.test_render_generations import turn
from tests.compile.witness import realize
from tests.strength import seeds
from tinyhw import Device, Tensor
from tinyhw.compile import compile_kernel, schedule
from tinyhw.compile.nvidia import nvrtc
from tinyhw.compile.render.nvidia import NVIDIARenderer
from tinyhw.compile.render.nvptx import NVPTXRenderer
from tinyhw.compile.render.ptx import VERSIONS, PTXRenderer
from tinyhw.compile.render.uops import UOpRenderer
from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.emulator.uops import load_program
from tinyhw.ir.dtype import AddressSpace, DType, dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import Axis, UOp

PTX, LLVM = PTXRenderer("sm_80"), NVPTXRenderer("sm_80")
makers = pytest.mark.parametrize("made", [PTX, LLVM], ids=["ptx", "nvptx"])


@types
@makers
def test_arithmetic(made: NVIDIARenderer, dtype: DType) -> None: check_arithmetic(dtype, runner(made), threads=True)


@types
@makers
def test_conversions(made: NVIDIARenderer, dtype: DType) -> None: check_casts(dtype, runner(made), threads=True)


@types
def test_constants(dtype: DType) -> None: check_constants(dtype, runner(PTX), threads=True)


def test_rounded_products_and_large_integers() -> None:
  check_rounded_products(runner(PTX), threads=True)
  check_large_integers(runner(PTX), threads=True)


@types
def test_the_assembler_takes_all_arithmetic(dtype: DType, tmp_path: Path) -> None:
  check(PTX, all_of(dtype), "sm_80", tmp_path)


def test_the_assembler_takes_workgroups_and_random_programs(tmp_path: Path) -> None:
  workgroups(PTX, "sm_80", tmp_path)
  for seed in seeds(range(420, 424)): check(PTXRenderer("sm_90"), Program(seed).for_threads(), "sm_90", tmp_path)


@pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 8, 16])
def test_vectors_turned_in_shared_memory(dtype: DType, count: int) -> None:
  if count * dtype.itemsize > 16 and count != 16: pytest.skip("no such access is made")
  given = np.random.default_rng(1).integers(0, 2, (2, 64, count)).astype(dtype.numpy)
  out = np.zeros_like(given)
  run(PTX, turn(dtype, count), [out, given])
  assert (out == given[:, ::-1]).all()


@pytest.mark.parametrize("seed", seeds(range(30)))
def test_random_programs_agree_with_the_uop_emulator_and_llvm(seed: int) -> None:
  uops, data, found = Program(seed).for_threads(), Program(seed).data(), []
  for how in (on_emulator, runner(PTX), runner(LLVM)):
    found.append([np.zeros(COUNT, d.numpy) for d in OUTPUTS])
    how(uops, [*found[-1], *(d.copy() for d in data)])
  for other in found[1:]:
    for a, b in zip(found[0], other): np.testing.assert_array_equal(a, b)


def looped(*inside: UOp, loop: UOp, before: Sequence[UOp], after: Sequence[UOp]) -> list[UOp]:
  """A program of what stands before a loop, in it, and behind it."""
  uops: list[UOp] = []
  def put(*nodes: UOp) -> None:
    uops.extend(u for u in UOp.sink(*nodes).toposort() if u.op is not Ops.SINK and u not in uops)
  put(*before, loop)
  put(*inside)
  uops.append(UOp(Ops.ENDRANGE, dtypes.void, (loop,)))
  put(*after)
  return uops


def fibonacci(end: UOp) -> list[UOp]:
  """The pair of numbers after `end` steps and `lidx0` more: each is the sum of the two before it."""
  item = UOp.special("lidx0", 32)
  a, b = (UOp(Ops.DEFINE_ACC, dtypes.int32, (item + i,), i) for i in range(2))
  before = a.bitcast(dtypes.uint32)
  first = UOp(Ops.ASSIGN, dtypes.int32, (a, a + b))
  second = UOp(Ops.ASSIGN, dtypes.int32, (b, before.bitcast(dtypes.int32)))
  out = buffer(0, dtypes.int32, 64)
  stores = [out.index(item * 2 + i).store(value) for i, value in enumerate((first, second))]
  return looped(before, first, second, loop=UOp.range(end, 0), before=[out, item, a, b], after=stores)


@pytest.mark.parametrize("steps", [1, 9])
def test_what_was_read_before_an_accumulator_changed_stays(steps: int) -> None:
  found, emulated = np.zeros((32, 2), np.int32), np.zeros((32, 2), np.int32)
  uops = fibonacci(UOp.const(dtypes.int32, steps))
  run(PTX, uops, [found])
  load_program(UOpRenderer().compile(UOpRenderer().source("k", uops), "k"), "k")(
    [emulated.reshape(-1).view(np.uint8)], (), (1, 1, 1), (32, 1, 1))
  for item, pair in enumerate(found):
    a, b = item, item + 1
    for _ in range(steps): a, b = a + b, a
    assert tuple(pair) == (a, b)
  np.testing.assert_array_equal(found, emulated)


@pytest.mark.parametrize("steps", [0, 3])
def test_a_loop_that_may_not_run(steps: int) -> None:
  found, end = np.zeros((32, 2), np.int32), UOp.variable("n", 0, 9)
  text = PTX.source("k", fibonacci(end))
  (out,) = tinyhw.launch(text, "k", 1, 32, [found.reshape(-1), np.uint32(steps)], "EMU")
  for item, pair in enumerate(out.reshape(32, 2).tolist()):
    a, b = item, item + 1
    for _ in range(steps): a, b = a + b, a
    assert tuple(pair) == (a, b)


def test_a_place_that_is_a_value() -> None:
  place, found = UOp.special("lidx0", 32) + 5, np.zeros(64, np.int32)
  run(PTX, linear(buffer(0, dtypes.int32, 64).index(place).store(place)), [found])
  np.testing.assert_array_equal(found, np.pad(np.arange(5, 37), (5, 27)))


@pytest.mark.parametrize("steps", [0, 3])
def test_running_sums(steps: int) -> None:
  """A value that an ASSIGN takes and a STORE, too; a place in a loop and behind it; memory that is read and written."""
  item, end = UOp.special("lidx0", 32), UOp.variable("n", 0, 9)
  out, a, loop = buffer(0, dtypes.int32, 512), buffer(1, dtypes.int32, 64), UOp.range(end, 0)
  total = UOp(Ops.DEFINE_ACC, dtypes.int32, (item,), 0)
  value = total + a.index(item * 2).load()
  sum_ = UOp(Ops.ASSIGN, dtypes.int32, (total, value))
  last = out.index(item * 16 + 15)
  uops = looped(sum_, out.index(item * 16 + loop).store(value), loop=loop, before=[out, a, item * 16, item * 2, total],
                after=[last.store(last.load() + sum_ + a.index(item * 2 + 1).load())])
  text = PTX.source("k", uops)
  assert text.count("ld.global.nc.s32") == 2 and text.count("ld.global.s32") == 1
  given = np.arange(64, dtype=np.int32) ** 2
  found, _ = tinyhw.launch(text, "k", 1, 32, [np.full(512, -7, np.int32), given, np.uint32(steps)], "EMU")
  wanted = np.full((32, 16), -7)
  for k in range(steps): wanted[:, k] = np.arange(32) + (k + 1) * given[::2]
  wanted[:, 15] += np.arange(32) + steps * given[::2] + given[1::2]
  np.testing.assert_array_equal(found.reshape(32, 16), wanted)


@types
def test_gates(dtype: DType) -> None:
  """A gated vector load with another value, a gated store, a pointer too large for offsets of 32 bits."""
  item = UOp.special("lidx0", 32)
  out, a = buffer(0, dtype, 1 << 31), buffer(1, dtype, 64)
  count = min(16 // dtype.itemsize, 8)
  other = UOp(Ops.VECTORIZE, dtype.vec(count), tuple(UOp.const(dtype, i % 2) for i in range(count)))
  loaded = a.index(item * count, item < 64 // count).load(other, dtype=dtype.vec(count))
  values, found = (np.arange(64) % 3).astype(dtype.numpy), np.full(32 * count, 1, dtype.numpy)
  run(PTX, linear(out.index(item * count, item.ne(5)).store(loaded)), [found, values])
  others = np.resize(np.array([0, 1], dtype.numpy), 32 * count - 64)
  wanted = np.concatenate([values, others]).reshape(32, count)
  wanted[5] = 1
  np.testing.assert_array_equal(found.reshape(32, count), wanted)


def test_lanes_that_are_less_aligned_than_they_are_wide() -> None:
  item = UOp.special("lidx0", 32)
  loaded = buffer(1, dtypes.float32, 256).index(item * 6 + 2).load(dtype=dtypes.float32.vec(4))
  uops = linear(buffer(0, dtypes.float32, 128).index(item * 4).store(loaded))
  text = PTX.source("k", uops)
  assert text.count("ld.global.nc.v2.f32") == 2 and "+8]" in text and "+16]" in text and "st.global.v4.f32" in text
  values, found = np.arange(256, dtype=np.float32), np.zeros((32, 4), np.float32)
  run(PTX, uops, [found, values])
  np.testing.assert_array_equal(found, values[np.arange(32)[:, None] * 6 + 2 + np.arange(4)])


@pytest.mark.parametrize(("kind", "cpu"), [(k, "sm_90") for k in KINDS] + [(dtypes.float8_e4m3fn, "sm_80")], **names)
def test_matrix_units(kind: DType, cpu: str, tmp_path: Path) -> None:
  memory: Memory = {}
  a, b, wanted = factors(kind, memory)
  renderer = PTXRenderer(cpu)
  program = compile_kernel(schedule([product(a, b)]).items[0].ast, renderer)
  assert (b"mma.sync.aligned.m16n8k" in program.binary) is has_unit(renderer, kind)
  np.testing.assert_array_equal(realize([product(a, b)], memory, renderer, launch)[0], wanted)
  assembled(program.binary, cpu, tmp_path)


@pytest.mark.parametrize("number", VERSIONS)
def test_the_version_has_the_target(number: int, tmp_path: Path) -> None:
  for target in (f"sm_{number}", *([f"sm_{number}a"] if number in (90, 100, 103, 120, 121) else [])):
    check(PTXRenderer(target), turn(dtypes.float32, 4), target, tmp_path)


def test_the_text() -> None:
  """What a reader of DEBUG=4 sees: a row a thread, summed."""
  item, loop = UOp.special("lidx0", 32), UOp.range(16, 1, Axis.REDUCE)
  out, a = buffer(0, dtypes.float32, 32), buffer(1, dtypes.float32, 512)
  total = UOp(Ops.DEFINE_ACC, dtypes.float32, (UOp.const(dtypes.float32, 0.0),), 0)
  sum_ = UOp(Ops.ASSIGN, dtypes.float32, (total, total + a.index(item * 16 + loop).load()))
  uops = looped(sum_, loop=loop, before=[out, a, item * 16, total], after=[out.index(item).store(sum_)])
  assert PTX.source("sums", uops) == """\
.version 7.0
.target sm_80
.address_size 64

.visible .entry sums(
  .param .u64 .ptr .global .align 16 data0,
  .param .u64 .ptr .global .align 16 data1
)
.reqntid 32, 1, 1
{
  .reg .pred %p<2>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<5>;
  .reg .f32 %f<3>;
  ld.param.u64 %rd1, [data0];  // 32 x float32
  ld.param.u64 %rd2, [data1];  // 512 x float32
  mov.u32 %r1, %tid.x;  // lidx0 of 32
  mul.lo.s32 %r2, %r1, 16;
  mov.f32 %f1, 0f00000000;
  mov.b32 %r3, 0;  // axis 1, reduce, 16 times
$loop1:
    add.s32 %r4, %r2, %r3;
    mad.wide.s32 %rd3, %r4, 4, %rd2;
    ld.global.nc.f32 %f2, [%rd3];
    add.rn.f32 %f1, %f1, %f2;
    add.s32 %r3, %r3, 1;
    setp.lt.s32 %p1, %r3, 16;
    @%p1 bra $loop1;
  mad.wide.s32 %rd4, %r1, 4, %rd1;
  st.global.f32 [%rd4], %f1;
  ret;
}
"""


def test_what_is_refused() -> None:
  for name in ("sm_70", "gfx1100", "sm_"):
    with pytest.raises(InvalidArgument, match=f"no GPU is called '{name}' here; sm_80 or newer"): PTXRenderer(name)
  item, out = UOp.special("lidx0", 32), buffer(0, dtypes.float32, 32)
  sine = linear(out.index(item).store(buffer(1, dtypes.float32, 32).index(item).load().sin()))
  with pytest.raises(Unsupported, match="kernel k: ptx:sm_80 .* arithmetic SIN on float32|SIN on float32"):
    PTX.source("k", sine)
  big = UOp(Ops.DEFINE_LOCAL, dtypes.float32.ptr(1 << 14, AddressSpace.LOCAL), (), "big")
  with pytest.raises(InvalidArgument, match="65,536 bytes of local memory, ptx:sm_80 has 49,152"):
    PTX.source("k", [big])
  with pytest.raises(InvalidArgument, match="work-items; ptx:sm_80 has at most 1024"):
    PTX.source("k", [UOp.special("lidx0", 2048)])


@pytest.mark.mockgpu("sm_90")
@pytest.mark.parametrize("device", ["NV", "CUDA"])
def test_the_variable_that_chooses(device: str, monkeypatch: pytest.MonkeyPatch,
                                   capsys: pytest.CaptureFixture[str]) -> None:
  monkeypatch.setenv("DEBUG", "7")
  for index, (who, text) in enumerate((("own", ".visible .entry"), ("llvm", "ptx_kernel"), ("", ".visible .entry"))):
    monkeypatch.setenv("TINYHW_PTX", who)
    Device.close()
    assert (Tensor([1.0, 2.0], device=device) * (index + 3)).tolist() == [index + 3.0, 2 * index + 6]
    said = capsys.readouterr().err
    assert said.count(".visible .entry") == (1 if who == "llvm" else 2)
    assert text in said and ("define ptx_kernel" in said) is (who == "llvm")
    assert ("nvptx" if who == "llvm" else "ptx") == Device[device].renderer.key.partition(":")[0]
  if nvrtc.find() is not None:
    monkeypatch.setenv("TINYHW_PTX", "cuda")
    Device.close()
    assert (Tensor([1.0, 2.0], device=device) * 9).tolist() == [9, 18] and "__global__" in capsys.readouterr().err
  monkeypatch.setenv("TINYHW_PTX", "gcc")
  Device.close()
  with pytest.raises(InvalidArgument, match="TINYHW_PTX: 'gcc' writes no PTX; own, llvm or cuda"):
    (Tensor([1.0, 2.0], device=device) + 1).tolist()


def test_a_signed_byte_is_made_an_unsigned_word_past_ptxas() -> None:
  """ptxas takes both conversions of `(float)(unsigned)byte` for one of a signed byte, unless the first is none."""
  for wide in (dtypes.float32, dtypes.float64):
    (item,) = schedule([Tensor.empty(16, dtype=dtypes.int8).cast(dtypes.uint32).cast(wide).uop])
    text = compile_kernel(item.ast, PTXRenderer("sm_90")).source
    assert text.count("prmt.b32") == (4 if wide is dtypes.float32 else 2) and "cvt.u32.s" not in text
  (item,) = schedule([Tensor.empty(16, dtype=dtypes.int8).cast(dtypes.int32).uop])
  assert "prmt" not in compile_kernel(item.ast, PTXRenderer("sm_90")).source
