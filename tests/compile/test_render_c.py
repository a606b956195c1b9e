"""C for the host, by clang and by gcc: every operation and conversion; compilers that are missing, wrong or odd."""
from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.compile.families import (
  Array,
  buffer,
  check_arithmetic,
  check_casts,
  check_constants,
  check_large_integers,
  check_rounded_products,
)
from tests.compile.test_render_amdgcn import linear
from tinyhw.compile.render import c, objects
from tinyhw.compile.render.c import CRenderer
from tinyhw.core import host
from tinyhw.core.errors import DeviceError, MissingTool, Unsupported
from tinyhw.drive.c import CRuntime
from tinyhw.ir.dtype import AddressSpace, DType, dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp, VariableArg

COMPILERS = [name for pattern in ("clang", "gcc") for name in c.found(pattern)[:1]]
SCALARS = [d for d in dtypes.all() if d.bits_type is None]
compilers = pytest.mark.parametrize("name", [pytest.param(n, id=n) for n in COMPILERS] or
                                    [pytest.param("", marks=pytest.mark.skip(reason="there is no C compiler"))])
types = pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)


def renderer(name: str, level: str = "") -> CRenderer:
  found = objects.host()
  return CRenderer(c.described((name,)), host.Host(found.triple, level) if level else None)


def runner(name: str, level: str = "") -> Any: return functools.partial(run, renderer(name, level))


def run(made: CRenderer, uops: Sequence[UOp], arrays: Sequence[Array]) -> None:
  device = CRuntime(made.compiler.version)
  program = device.load(made.compile(made.source("k", uops), "k"), "k")
  memory = [device.alloc(a.nbytes) for a in arrays]
  for m, a in zip(memory, arrays): device.copyin(m, memoryview(a.view(np.uint8)))
  program(memory, (), (1, 1, 1), (1, 1, 1))
  for m, a in zip(memory, arrays): device.copyout(memoryview(a.view(np.uint8)), m)


@compilers
@types
def test_arithmetic(name: str, dtype: DType) -> None: check_arithmetic(dtype, runner(name), threads=False)


@compilers
@types
def test_conversions(name: str, dtype: DType) -> None: check_casts(dtype, runner(name), threads=False)


@compilers
@types
def test_constants(name: str, dtype: DType) -> None: check_constants(dtype, runner(name), threads=False)


@compilers
def test_rounded_products(name: str) -> None: check_rounded_products(runner(name), threads=False)


@compilers
def test_large_integers(name: str) -> None: check_large_integers(runner(name), threads=False)


@pytest.mark.parametrize("level", host.LEVELS)
@compilers
def test_halves_and_fused_sums_are_the_same_on_every_level(name: str, level: str) -> None:
  have = host.levels(objects.host().triple, objects.llvm.get_host_cpu_features())
  if level not in have: pytest.skip(f"this processor is no {level}")
  for dtype in (dtypes.float16, dtypes.float32): check_arithmetic(dtype, runner(name, level), threads=False)
  check_casts(dtypes.float64, runner(name, level), threads=False)
  check_casts(dtypes.float16, runner(name, level), threads=False)


@compilers
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.bool, dtypes.float16, dtypes.int8], ids=lambda d: d.name)
def test_vectors_and_gates(name: str, dtype: DType) -> None:
  """Vectors of all widths, and of three; what a gate leaves alone."""
  rng = np.random.default_rng(1)
  for count in (*(n for n in renderer(name).vector_widths(dtype) if n > 1), 3):
    row = UOp.range(8, 0)
    data, gate = buffer(1, dtype, 8 * count), row.alu(Ops.CMPLT, row.const_like(5))
    other = UOp(Ops.VECTORIZE, dtype.vec(count), (UOp.const(dtype, 1),) * count)
    at = row * count
    value = UOp(Ops.LOAD, dtype.vec(count), (data.index(at, gate), other))
    lanes = [UOp(Ops.GEP, dtype, (value,), (i,)) for i in range(count)]
    turned = UOp(Ops.VECTORIZE, dtype.vec(count), tuple(reversed(lanes)))
    middle = UOp(Ops.GEP, dtype.vec(2), (value,), (1, 0))
    stores = [buffer(0, dtype, 8 * count).index(at, row.ne(2)).store(turned),
              buffer(2, dtype, 16).index(row * 2).store(middle)]
    uops = [*linear(*stores), UOp(Ops.ENDRANGE, dtypes.void, (row,))]
    given = rng.integers(0, 2, (8, count)).astype(dtype.numpy)
    out, pairs = np.full((8, count), 0, dtype.numpy), np.zeros((8, 2), dtype.numpy)
    run(renderer(name), uops, [out, given, pairs])
    wanted = np.where(np.arange(8)[:, None] < 5, given, np.array(1, dtype.numpy))
    assert (pairs == wanted[:, 1::-1]).all()
    expected = wanted[:, ::-1].copy()
    expected[2] = 0
    assert (out == expected).all()


@compilers
def test_a_kernel_takes_buffers_that_it_does_not_use_and_values(name: str) -> None:
  n = UOp(Ops.DEFINE_VAR, dtypes.int32, (), VariableArg("n", -5, 5))
  uops = linear(buffer(2, dtypes.int32, 1).index(UOp.const(dtypes.int32, 0)).store(n * n + n))
  made, device = renderer(name), CRuntime("")
  assert made.compile(made.source("k", uops), "k") is made.compile(made.source("k", uops), "k"), "kept by its content"
  program = device.load(made.compile(made.source("k", uops), "k"), "k")
  out = [device.alloc(4) for _ in range(3)]
  program(out, [-5], (1, 1, 1), (1, 1, 1))
  assert ctypes.c_int32.from_address(out[2].address or 0).value == 20


@compilers
def test_stretches_share_a_launch_and_have_memory_of_their_own(name: str) -> None:
  stretch, n = UOp.special("gidx0", 8), UOp(Ops.DEFINE_VAR, dtypes.int32, (), VariableArg("n", 0, 9))
  wide = UOp(Ops.DEFINE_LOCAL, dtypes.float64.ptr(3, AddressSpace.LOCAL), (), "wide")
  small = UOp(Ops.DEFINE_LOCAL, dtypes.int32.ptr(8, AddressSpace.LOCAL), (), "small")
  barrier = UOp(Ops.BARRIER, dtypes.void, (small.index(stretch).store(stretch * n),
                                           wide.index(UOp.const(dtypes.int32, 2)).store(stretch.cast(dtypes.float64))))
  first = UOp(Ops.LOAD, dtypes.int32, (small.index(stretch), barrier))
  second = UOp(Ops.LOAD, dtypes.float64, (wide.index(UOp.const(dtypes.int32, 2)), barrier))
  uops = linear(buffer(0, dtypes.float64, 8).index(stretch).store(first.cast(dtypes.float64) + second))
  made, device = renderer(name), CRuntime("")
  out, back = device.alloc(64), np.zeros(8)
  program = device.load(made.compile(made.source("k", uops), "k"), "k")
  assert (program([out], [3], (8, 1, 1), (1, 1, 1), wait=True) or 0) >= 0
  device.copyout(memoryview(back), out)
  assert back.tolist() == [4.0 * i for i in range(8)]


@compilers
def test_a_compiler_is_told_what_is_refused(name: str) -> None:
  with pytest.raises(DeviceError, match="kernel k: .* refuses the source: .*error"):
    renderer(name).compile("nonsense!", "k")
  with pytest.raises(Unsupported, match="SPECIAL lidx0"): renderer(name).source("k", [UOp.special("lidx0", 4)])


def executable(path: Path, text: str) -> None:
  path.write_text("#!/bin/sh\n" + text)
  path.chmod(0o755)


def test_which_compiler_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  for compiler in ("clang", "clang-9", "clang-21", "gcc-99", "clang-format-30"):
    executable(tmp_path / compiler, f"echo this is {compiler}")
  executable(tmp_path / "broken", "echo no >&2; exit 3")
  executable(tmp_path / "wrong", "case $1 in --version) echo wrong 1;; *) exit 4;; esac")
  monkeypatch.setenv("PATH", str(tmp_path))
  monkeypatch.delenv("CC", raising=False)
  assert c.compiler().version == "this is clang-21"
  monkeypatch.setenv("CC", f"{tmp_path}/gcc-99 -m64")
  assert c.compiler() == c.Compiler((f"{tmp_path}/gcc-99", "-m64"), "this is gcc-99")
  for command, message in ((f"{tmp_path}/broken", "--version fails: no"), (f"{tmp_path}/none", "does not run: .*none")):
    monkeypatch.setenv("CC", command)
    with pytest.raises(MissingTool, match=message): c.compiler()
  monkeypatch.setenv("CC", f"{tmp_path}/wrong")
  with pytest.raises(DeviceError, match="wrong 1 refuses the source: exit status 4"):
    CRenderer(c.compiler()).compile("", "k")
  monkeypatch.delenv("CC")
  monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
  with pytest.raises(MissingTool, match="there is no C compiler.*install clang or gcc, or name one in CC"): c.compiler()


def test_numbers_are_spelled_exactly() -> None:
  spelled = {(0.1, dtypes.float32): "0x1.99999a0000000p-4f", (-0.0, dtypes.float64): "(-0x0.0p+0)",
             (-2**31, dtypes.int32): "(-2147483647 - 1)", (2**64 - 1, dtypes.uint64): "18446744073709551615ull",
             (-3, dtypes.int8): "(-3)", (1.0, dtypes.float16): "0x3c00", (True, dtypes.bool): "1",
             (math.inf, dtypes.float32): "bits_uint32_float32(0x7f800000u)"}
  from tinyhw.ir.semantics import canonical
  for (value, dtype), text in spelled.items(): assert CRenderer.language.literal(canonical(value, dtype), dtype) == text
