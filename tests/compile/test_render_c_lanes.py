"""Vectors in C, by clang and by gcc: every operation and conversion on lanes, and kernels under any options."""
from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compile import families
from tests.compile.families import check_arithmetic, check_casts
from tests.compile.test_kernels import CASES, HOST, graphs
from tests.compile.test_render_amdgcn import linear
from tests.compile.test_render_c import COMPILERS, SCALARS, compilers, renderer, run
from tests.compile.witness import buffer, evaluate, launch_host, matmul, realize
from tests.strength import THOROUGH, examples
from tinyhw.compile import Opt, OptKind, compile_kernel, schedule
from tinyhw.compile.compiler import optimize
from tinyhw.compile.render import c
from tinyhw.compile.render.c import CRenderer
from tinyhw.compile.render.clanes import MASKED
from tinyhw.compile.widen import widen
from tinyhw.core.errors import InvalidArgument
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.uop import Axis, Ops, UOp

Memory = dict[UOp, np.ndarray]


@functools.cache
def bare(name: str) -> CRenderer:
  """A compiler that is told to have no functions of vectors, for the lowest processor."""
  from tinyhw.compile.render import objects
  from tinyhw.core import host
  found = c.described((name,))
  return CRenderer(c.Compiler(found.command, f"{found.version} alone"), host.Host(objects.host().triple, "x86-64"))


@compilers
@pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
def test_arithmetic_of_lanes(name: str, dtype: DType) -> None:
  lanes = 8 if dtype.itemsize > 2 else 32
  for n in (2, 4, 64) if THOROUGH else (): check_arithmetic(dtype, functools.partial(run, bare(name)), False, lanes=n)
  check_arithmetic(dtype, functools.partial(run, renderer(name)), False, lanes=lanes)


@compilers
@pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
def test_conversions_of_lanes(name: str, dtype: DType) -> None:
  for n in (2, 32) if THOROUGH else (): check_casts(dtype, functools.partial(run, bare(name)), False, lanes=n)
  check_casts(dtype, functools.partial(run, renderer(name)), False, lanes=8)


def check(outputs: list[UOp], memory: Memory, made: CRenderer, opts: object = None) -> None:
  wanted = [evaluate(u, memory).copy() for u in outputs]
  found = realize(outputs, memory, made, launch_host, opts)
  for got, want in zip(found, wanted): np.testing.assert_array_equal(got, want)


@settings(max_examples=examples(25), deadline=None)
@given(graphs(), st.sampled_from(COMPILERS or [""]), st.booleans())
def test_random_graphs(case: tuple[UOp, Memory], name: str, plain: bool) -> None:
  if not name: pytest.skip("there is no C compiler")
  check([case[0]], case[1], bare(name) if plain else renderer(name))


@settings(max_examples=examples(30), deadline=None)
@given(st.data(), st.sampled_from(sorted(CASES)), st.sampled_from(COMPILERS or [""]), st.booleans())
def test_any_options_keep_the_result(data: st.DataObject, case: str, name: str, plain: bool) -> None:
  if not name: pytest.skip("there is no C compiler")
  output, memory = CASES[case]
  made = bare(name) if plain else renderer(name)
  kernel = optimize(schedule([output]).items[0].ast, made, [])
  for kind in data.draw(st.lists(st.sampled_from([OptKind.VECTOR, *OptKind]), min_size=1, max_size=4)):
    axis = data.draw(st.sampled_from(list(kernel.parts)))
    try: kernel.apply(Opt(kind, axis.arg.axis, data.draw(st.sampled_from([2, 3, 4, 5, 8, 16]))))
    except InvalidArgument: continue
  check([output], memory, made, kernel.opts)


def of_columns(columns: int) -> tuple[list[UOp], Memory]:
  """Vectors whose last lanes are beyond the end, of each width, and a padded image."""
  memory: Memory = {}
  rng = np.random.default_rng(columns)
  x = rng.integers(-9, 9, (5, columns))
  outputs = [buffer(x.astype(kind), memory) + 1 for kind in (np.float32, np.int32, np.float64, np.int64, np.int16)]
  outputs.append(buffer(x.astype(np.float32), memory) < 1.0)
  image = buffer(x.astype(np.float32), memory)
  outputs.append(image.pad(((0, 0), (2, 1))).shrink(((0, 5), (0, columns))).maximum(0.0) + image)
  return outputs, memory


@compilers
@pytest.mark.parametrize("columns", [31, 48])
def test_lanes_beyond_the_end(name: str, columns: int) -> None:
  outputs, memory = of_columns(columns)
  for made in (renderer(name), bare(name)):
    for u in outputs:
      wanted = evaluate(u, memory).copy()
      axis = max(int(r.arg.axis) for r in optimize(schedule([u]).items[0].ast, made, []).parts)
      opts = [Opt(OptKind.PADTO, axis, 16)] if columns % 16 and axis else []
      found, = realize([u], memory, made, launch_host, [*opts, Opt(OptKind.VECTOR, axis, 16)] if axis else None)
      np.testing.assert_array_equal(found, wanted)


@compilers
def test_the_text_is_of_vectors(name: str) -> None:
  a, b = (UOp.new_buffer("X", 64 * 64, dtypes.float32).reshape((64, 64)) for _ in range(2))
  made = renderer(name)
  product = schedule([matmul(a, b)]).items[0].ast
  program = compile_kernel(product, made)
  assert "float32x16" in program.source and program.opts == compile_kernel(product, HOST).opts
  shifted = a.pad(((0, 0), (1, 0))).shrink(((0, 64), (0, 64))) + 1.0
  padded = compile_kernel(schedule([shifted]).items[0].ast, made)
  assert ("maskload" in padded.source) == (MASKED <= made.compiler.functions and made.host.cpu in c.AVX)
  assert "maskload" not in compile_kernel(schedule([shifted]).items[0].ast, bare(name)).source


@compilers
def test_lanes_are_powers_of_two(name: str) -> None:
  ast = schedule([UOp.new_buffer("X", 24, dtypes.float32) + 1.0]).items[0].ast
  with pytest.raises(InvalidArgument, match="have 2, 4, 8 ... lanes"):
    compile_kernel(ast, renderer(name), [Opt(OptKind.VECTOR, 0, 6)])


@compilers
def test_values_are_those_of_llvm(name: str) -> None:
  """Sums are made in the same order, and functions are the same products and sums."""
  memory: Memory = {}
  rng = np.random.default_rng(0)
  x = buffer(rng.standard_normal((24, 160)).astype(np.float32), memory)
  e = (x - x.reduce(Ops.MAX, (1,)).expand(x.shape)).exp2()
  outputs = [e / e.reduce(Ops.ADD, (1,)).expand(x.shape), matmul(x, x.permute((1, 0))), x.sin(),
             x.cast(dtypes.float16) * 3.0, (x.cast(dtypes.bfloat16) * 3.0).cast(dtypes.float32)]
  for u in outputs:
    first, = realize([u], memory, HOST)
    second, = realize([u], memory, renderer(name))
    np.testing.assert_array_equal(first.copy(), second)


@compilers
@pytest.mark.parametrize("wide", [(), ("index",), ("gate",), ("index", "gate")])
def test_accesses_here_and_there(name: str, wide: tuple[str, ...]) -> None:
  """Indices and gates that are scalars or vectors, in all combinations."""
  step, lane_ = UOp.range(4, 0), UOp.range(8, 1, Axis.VECTOR)
  place, data = step * 8 + lane_, families.buffer(1, dtypes.float32, 32)
  at = UOp.const(dtypes.index, 31) - place if "index" in wide else place
  gate = (place % 3 < 2) if "gate" in wide else step < 3
  value = data.index(at, gate).load(UOp.const(dtypes.float32, 7.0)) * 2.0
  stores = [families.buffer(0, dtypes.float32, 32).index(at, gate).store(value + 1.0)]
  uops = [*linear(*widen(UOp.sink(*stores)).src), UOp(Ops.ENDRANGE, dtypes.void, (step,))]
  x, rows = np.arange(32, dtype=np.float32), np.arange(32)
  inside = rows % 3 < 2 if "gate" in wide else rows < 24
  wanted, order = np.zeros(32, np.float32), rows[::-1] if "index" in wide else rows
  wanted[order[inside]] = x[order[inside]] * 2 + 1
  for made in (renderer(name), bare(name)):
    found = np.zeros(32, np.float32)
    run(made, uops, [found, x])
    np.testing.assert_array_equal(found, wanted)


@compilers
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
def test_masked_moves_are_c_for_processors_that_have_them(name: str, dtype: DType) -> None:
  """Text that the compiler takes, whether or not this processor could run it."""
  made = renderer(name, "x86-64-v3")
  if not made.host.triple.startswith("x86_64"): pytest.skip("AVX is x86-64's")
  assert made.compiler.functions >= MASKED
  x = UOp.new_buffer("X", 5 * 31, dtype).reshape((5, 31))
  ast = schedule([x.pad(((0, 0), (1, 1))).shrink(((0, 5), (0, 31))) + x]).items[0].ast
  axis = max(int(r.arg.axis) for r in optimize(ast, made, []).parts)
  text = compile_kernel(ast, made, [Opt(OptKind.PADTO, axis, 16), Opt(OptKind.VECTOR, axis, 16)]).source
  pieces, letter = 16 * dtype.itemsize // 32, "s" if dtype is dtypes.float32 else "d"
  assert text.count(f"maskloadp{letter}256") == 2 * pieces and text.count(f"maskstorep{letter}256") == pieces
