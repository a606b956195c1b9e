"""Linear programs on the host processor, held to `ir.semantics`: every op, every dtype, awkward operands."""
from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw import Tensor
from tinyhw.compile.render import objects
from tinyhw.compile.render.host import HostRenderer
from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.ir import semantics
from tinyhw.ir.dtype import AddressSpace, DType, dtypes
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.uop import Axis, UOp

Array = np.ndarray[Any, np.dtype[Any]]
HOST = HostRenderer(optimization=1)
SCALARS = [d for d in dtypes.all() if HOST.supports(d)]
INTS = [d for d in SCALARS if d.is_int]
FLOATS = [d for d in SCALARS if d.is_float]
COUNT = 64              # operands of one launch


@functools.cache
def jit() -> Any:
  llvm.initialize_native_target()
  llvm.initialize_native_asmprinter()
  return llvm.create_lljit_compiler(llvm.Target.from_default_triple().create_target_machine(opt=0), use_jit_link=True)


_loaded: list[Any] = []


def machine_code(source: str, renderer: HostRenderer) -> Any:
  """The loaded function `k` of a text."""
  builder = llvm.JITLibraryBuilder().add_object_img(renderer.compile(source, "k")).add_current_process()
  _loaded.append(builder.export_symbol("k").link(jit(), f"k{len(_loaded)}"))
  return ctypes.CFUNCTYPE(None)(_loaded[-1]["k"])


def same_bits(a: Array, b: Array) -> bool:
  """Whether two arrays hold the same; a NaN is any NaN."""
  numbers = (a == a) | (b == b) if a.dtype.kind == "f" else np.ones(a.shape, bool)
  return a[numbers].tobytes() == b[numbers].tobytes()


def load(uops: Sequence[UOp], renderer: HostRenderer = HOST) -> Any:
  """A function of the buffers' arrays and the values. Where code is made at once, better code has to do the same."""
  source = renderer.source("k", uops)
  codes = [machine_code(text, renderer) for text in dict.fromkeys((source, source.replace(objects.AT_ONCE, "")))]

  def run(*arguments: Array | int) -> None:
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    for code, given_ in zip(codes, (arguments, copies)):
      types = [ctypes.c_void_p if isinstance(a, np.ndarray) else ctypes.c_int32 for a in given_]
      function = ctypes.cast(code, ctypes.CFUNCTYPE(None, *types))
      function(*(a.ctypes.data if isinstance(a, np.ndarray) else a for a in given_))
    if len(codes) > 1:
      for a, b in zip(arguments, copies): assert not isinstance(a, np.ndarray) or same_bits(a, np.asarray(b))
  return run


def buffer(index: int, dtype: DType, size: int) -> UOp: return UOp(Ops.DEFINE_GLOBAL, dtype.ptr(size), (), index)


def linear(*parts: UOp, known: Sequence[UOp] = ()) -> list[UOp]:
  """The nodes of several graphs in order, without those that are there already."""
  return [u for u in UOp.sink(*parts).toposort() if u.op is not Ops.SINK and u not in known]


def elementwise(result: DType, operands: Sequence[DType], compute: Any) -> list[UOp]:
  """out[i] = compute(a[i], b[i], ...) over COUNT elements."""
  counter = UOp.range(COUNT, 0)
  loads = [buffer(1 + i, d, COUNT).index(counter).load() for i, d in enumerate(operands)]
  head = [buffer(0, result, COUNT), *linear(counter)]
  body = linear(head[0].index(counter).store(compute(*loads)), known=head)
  return [*head, *body, UOp(Ops.ENDRANGE, dtypes.void, (counter,))]


@functools.cache
def arithmetic(op: Ops, operands: tuple[DType, ...]) -> Any:
  if op in (Ops.CAST, Ops.BITCAST):
    return load(elementwise(operands[1], operands[:1], lambda x: UOp(op, operands[1], (x,))))
  result = dtypes.bool if op in GroupOp.COMPARE else operands[-1] if op is Ops.WHERE else operands[0]
  return load(elementwise(result, operands, lambda *x: x[0].alu(op, *x[1:])))


def specials(dtype: DType) -> list[Any]:
  """Canonical values at which arithmetic goes wrong."""
  if dtype.is_bool: return [False, True]
  if dtype.is_int:
    whole = (0, 1, -1, 2, 3, 7, 31, 32, 33, 63, 64, 100, -7, dtype.min, dtype.max)
    return [semantics.wrap(v, dtype) for v in whole]
  limits = np.finfo(dtype.numpy)
  numbers = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, 3.0, 1e4, 65504.0, 2.0**31, -2.0**31, 2.0**32, 2.0**63, 2.0**64,
             1e30, float(limits.max), -float(limits.max), float(limits.tiny), float(limits.smallest_subnormal),
             math.inf, -math.inf, math.nan]
  return [semantics.canonical(v, dtype) for v in numbers]


def numbers(dtype: DType) -> st.SearchStrategy[Any]:
  """Any canonical value, special ones often."""
  if dtype.is_bool: return st.booleans()
  anything = st.integers(0, (1 << dtype.bits) - 1).map(lambda bits: semantics.from_bits(bits, dtype))
  return st.one_of(st.sampled_from(specials(dtype)), anything)


def same(found: Any, wanted: Any, dtype: DType) -> bool:
  if dtype.is_float and math.isnan(wanted): return math.isnan(found)
  return bool(found == wanted)


def compare(op: Ops, operands: tuple[DType, ...], rows: Sequence[tuple[Any, ...]], meaning: Any, result: DType) -> None:
  run = arithmetic(op, operands)
  sources = operands[:1] if op in (Ops.CAST, Ops.BITCAST) else operands
  for start in range(0, len(rows), COUNT):
    part = rows[start:start + COUNT]
    columns = [np.array([r[i] for r in part] + [1] * (COUNT - len(part)), d.numpy) for i, d in enumerate(sources)]
    out = np.zeros(COUNT, result.numpy)
    run(out, *columns)
    for row, value in zip(part, out.tolist()):
      wanted = meaning(*row)
      assert same(value, wanted, result), f"{op.name} {operands} of {row}: {value!r}, not {wanted!r}"


def rows_of(data: st.DataObject, operands: Sequence[DType]) -> list[tuple[Any, ...]]:
  return data.draw(st.lists(st.tuples(*map(numbers, operands)), min_size=1, max_size=8))


def grid(operands: Sequence[DType]) -> list[tuple[Any, ...]]:
  """All pairs of special values; a third operand walks through its own."""
  first = [(a,) for a in specials(operands[0])]
  if len(operands) > 1: first = [(*r, b) for r in first for b in specials(operands[1])]
  if len(operands) > 2:
    third = specials(operands[2])
    first = [(*r, third[i % len(third)]) for i, r in enumerate(first)]
  return first


def cases() -> list[Any]:
  found = []
  for op in sorted(GroupOp.ALU - GroupOp.LIBRARY, key=lambda op: op.name):
    kinds = INTS if op in GroupOp.INT_ONLY else FLOATS if op in GroupOp.FLOAT_ONLY else SCALARS
    if op in GroupOp.BITWISE: kinds = [d for d in SCALARS if not d.is_float]
    for dtype in kinds:
      count = 1 if op in GroupOp.UNARY else 3 if op is Ops.MULACC else 2
      operands = (dtypes.bool, dtype, dtype) if op is Ops.WHERE else (dtype,) * count
      found.append(pytest.param(op, operands, id=f"{op.name}-{dtype.name}"))
  return found


@pytest.mark.parametrize(("op", "operands"), cases())
@settings(max_examples=examples(3))
@given(data=st.data())
def test_arithmetic_means_what_semantics_says(op: Ops, operands: tuple[DType, ...], data: st.DataObject) -> None:
  dtype = operands[-1]
  result = dtypes.bool if op in GroupOp.COMPARE else dtype
  def meaning(*row: Any) -> Any: return semantics.alu(op, dtype, *row)
  rows = rows_of(data, operands) + grid(operands)
  if op is Ops.MULACC and dtype.is_float: return check_mulacc(operands, rows)
  compare(op, operands, rows, meaning, result)


def check_mulacc(operands: tuple[DType, ...], rows: Sequence[tuple[Any, ...]]) -> None:
  """One rounding or two."""
  dtype = operands[0]
  run = arithmetic(Ops.MULACC, operands)
  for start in range(0, len(rows), COUNT):
    part = rows[start:start + COUNT]
    columns = [np.array([r[i] for r in part] + [1] * (COUNT - len(part)), dtype.numpy) for i in range(3)]
    out = np.zeros(COUNT, dtype.numpy)
    run(out, *columns)
    for (a, b, c), value in zip(part, out.tolist()):
      twice = semantics.alu(Ops.ADD, dtype, semantics.alu(Ops.MUL, dtype, a, b), c)
      once = fused(a, b, c, dtype)
      assert same(value, twice, dtype) or same(value, once, dtype), (a, b, c, value, twice, once)


def fused(a: float, b: float, c: float, dtype: DType) -> float:
  """a*b + c with one rounding, in exact arithmetic."""
  if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)): return a * b + c
  exact = Fraction(a) * Fraction(b) + Fraction(c)
  if not exact: return 0.0
  try: return exact_rounding(exact, dtype)
  except OverflowError: return math.inf if exact > 0 else -math.inf


def exact_rounding(exact: Any, dtype: DType) -> float:
  """The nearest float of the type: `float(Fraction)` rounds correctly, a narrower one goes through a sticky bit."""
  if dtype is dtypes.float64: return float(exact)
  whole = abs(exact)
  scale = 60 - (whole.numerator.bit_length() - whole.denominator.bit_length())
  scaled = whole * (1 << scale) if scale >= 0 else whole / (1 << -scale)
  sticky = (int(scaled) >> 10 << 1) | (scaled != int(scaled) >> 10 << 10)
  return float(semantics.canonical((1 if exact > 0 else -1) * math.ldexp(float(sticky), 9 - scale), dtype))


@pytest.mark.parametrize("op", [Ops.SHL, Ops.SHR])
@pytest.mark.parametrize("count", INTS, ids=lambda d: d.name)
def test_a_shift_count_of_any_integer_type(op: Ops, count: DType) -> None:
  for dtype in (dtypes.int8, dtypes.uint16, dtypes.int32, dtypes.uint64):
    compare(op, (dtype, count), grid((dtype, count)), lambda a, b, d=dtype: semantics.alu(op, d, a, b), dtype)


@pytest.mark.parametrize("source", SCALARS, ids=lambda d: d.name)
@pytest.mark.parametrize("target", SCALARS, ids=lambda d: d.name)
@settings(max_examples=examples(2))
@given(data=st.data())
def test_casts(source: DType, target: DType, data: st.DataObject) -> None:
  rows = rows_of(data, (source,)) + grid((source,))
  compare(Ops.CAST, (source, target), rows, lambda a: semantics.cast(a, source, target), target)


def test_a_double_becomes_a_half_in_one_rounding() -> None:
  halves = np.arange(0, 0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
  middles = (halves[1:] + halves[:-1]) / 2
  values = np.concatenate([middles, np.nextafter(middles, np.inf), np.nextafter(middles, 0),
                           [65520.0, 65519.99999, 1e300, 1e-300]])
  run = arithmetic(Ops.CAST, (dtypes.float64, dtypes.float16))
  for start in range(0, values.size, COUNT):
    part = np.resize(values[start:start + COUNT], COUNT)
    out = np.zeros(COUNT, np.float16)
    run(out, part)
    with np.errstate(all="ignore"): wanted = part.astype(np.float16)
    assert (out == wanted).all(), part[out != wanted]


@pytest.mark.parametrize(("source", "target"), [(a, b) for a in SCALARS for b in SCALARS if a.itemsize == b.itemsize],
                         ids=lambda d: d.name)
def test_bitcasts(source: DType, target: DType) -> None:
  rows = [r for r in grid((source,)) if not (source.is_float and math.isnan(r[0]))]
  if target.is_bool: rows = [(semantics.wrap(int(v), source),) for (v,) in rows]
  compare(Ops.BITCAST, (source, target), rows, lambda a: semantics.bitcast(a, source, target), target)


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_nested_loops_with_accumulators(level: int) -> None:
  """out[i] = sum over j and k of a[j] * b[k] + i, and the greatest a[j]."""
  out, a, b = buffer(0, dtypes.float32, 8), buffer(1, dtypes.float32, 4), buffer(2, dtypes.float32, 3)
  n = UOp.variable("n", 1, 3)
  i, j, k = UOp.range(4, 0), UOp.range(4, 1, Axis.REDUCE), UOp.range(n, 2, Axis.REDUCE)
  total = UOp(Ops.DEFINE_ACC, dtypes.float32, (i.cast(dtypes.float32),), 0)
  largest = UOp(Ops.DEFINE_ACC, dtypes.float32, (UOp.const(dtypes.float32, -math.inf),), 1)
  x = a.index(j).load()
  added = UOp(Ops.ASSIGN, dtypes.float32, (total, total + x * b.index(k).load()))
  greatest = UOp(Ops.ASSIGN, dtypes.float32, (largest, largest.maximum(x)))
  program: list[UOp] = []
  def put(*parts: UOp) -> None: program.extend(linear(*parts, known=program))
  def end(r: UOp) -> None: program.append(UOp(Ops.ENDRANGE, dtypes.void, (r,)))
  put(out, a, b, n, i, total, largest, j, x, k, added)
  end(k)
  put(greatest)
  end(j)
  put(out.index(i).store(added), out.index(i + 4).store(largest))
  end(i)
  run = load(program, HostRenderer(optimization=level))
  left, right, found = np.arange(4, dtype=np.float32) - 5, np.arange(3, dtype=np.float32) + 1, np.zeros(8, np.float32)
  run(found, left, right, 2)
  assert found.tolist() == [left.sum() * 3 + i for i in range(4)] + [-2.0] * 4


@pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
def test_vectors_and_gates(dtype: DType) -> None:
  """A gated vector load with another value, lanes turned round, a gated store."""
  out, a, counter = buffer(0, dtype, 32), buffer(1, dtype, 16), UOp.range(8, 0)
  gate = counter < 4
  other = UOp(Ops.VECTORIZE, dtype.vec(4), tuple(UOp.const(dtype, v) for v in (1, 0, 1, 1)))
  vector = a.index(counter * 4, gate).load(other, dtype=dtype.vec(4))
  lanes = vector.gep((3, 2, 1, 0))
  turned = UOp(Ops.VECTORIZE, dtype.vec(4), tuple(lanes.gep(i) for i in range(4)))
  head = [out, a, *linear(counter)]
  body = linear(out.index(counter * 4, counter.ne(5)).store(turned), known=head)
  run = load([*head, *body, UOp(Ops.ENDRANGE, dtypes.void, (counter,))])
  values = (np.arange(16) % 3).astype(dtype.numpy)
  found = np.full(32, 1, dtype.numpy)
  found[20:24] = 0
  run(found, values)
  wanted = np.concatenate([values.reshape(4, 4)[:, ::-1].reshape(-1), np.tile(np.array([1, 1, 0, 1], dtype.numpy), 4)])
  wanted[20:24] = 0
  assert (found == wanted).all()


def test_what_the_host_does_not_do_is_refused() -> None:
  out = buffer(0, dtypes.float32, 8)
  x = out.index(UOp.const(dtypes.int32, 0)).load()
  first, group = out.index(UOp.const(dtypes.int32, 0)), out.index(UOp.special("lidx0", 8))
  with pytest.raises(Unsupported, match="EXP2 on float32 on host"): HOST.source("k", linear(first.store(x.exp2())))
  with pytest.raises(Unsupported, match="SPECIAL"): HOST.source("k", linear(group.store(x)))
  local = UOp(Ops.DEFINE_LOCAL, dtypes.float32.ptr(1 << 20, AddressSpace.LOCAL), (), "shared")
  with pytest.raises(InvalidArgument, match="4,194,304 bytes of local memory, host has 1,048,576"):
    HOST.source("k", [local])
  with pytest.raises(Unsupported, match="bfloat16"): HOST.source("k", [buffer(0, dtypes.bfloat16, 8)])
  with pytest.raises(InvalidArgument, match="kernel name"): HOST.source("a b", [out])
  with pytest.raises(InvalidArgument, match="LLVM refuses the source"): HOST.compile("define void @k( {", "k")


def test_constants_are_exact() -> None:
  for dtype in SCALARS:
    values = specials(dtype)
    out = buffer(0, dtype, len(values))
    stores = [out.index(UOp.const(dtypes.int32, i)).store(UOp.const(dtype, v)) for i, v in enumerate(values)]
    found = np.zeros(len(values), dtype.numpy)
    load(linear(*stores))(found)
    for value, wanted in zip(found.tolist(), values):
      assert same(value, wanted, dtype)
      if dtype.is_float and wanted == wanted: assert math.copysign(1, value) == math.copysign(1, wanted)


@pytest.mark.parametrize("first", range(1, 8))
def test_vectors_begin_at_any_element(first: int) -> None:
  """An access of lanes is no more aligned than its first element."""
  x = np.arange(64, dtype=np.float32)
  found = Tensor(x)[first:first + 4] + Tensor(x)[first + 7:first + 11]
  np.testing.assert_array_equal(found.numpy(), x[first:first + 4] + x[first + 7:first + 11])


def test_code_that_runs_briefly_is_made_at_once() -> None:
  def source(count: int) -> str:
    counter = UOp.range(count, 0)
    head = [buffer(0, dtypes.float32, count), *linear(counter)]
    body = linear(head[0].index(counter).store(UOp.const(dtypes.float32, 1.0)), known=head)
    return HOST.source("k", [*head, *body, UOp(Ops.ENDRANGE, dtypes.void, (counter,))])
  assert objects.AT_ONCE in source(64) and objects.AT_ONCE not in source(1 << 20)
  code = HOST.compile(source(64), "k")
  assert code != HOST.compile(source(64).replace(objects.AT_ONCE, ""), "k")
