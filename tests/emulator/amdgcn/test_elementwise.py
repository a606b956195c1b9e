"""Every scalar operation of LLVM IR on every type, for gfx1100 and for the host, on random and special values."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.emulator.gpu import Gpu, Host, compile_gpu
from tests.strength import seed

INTEGERS, FLOATS = ("i8", "i16", "i32", "i64"), ("half", "float", "double")
NUMPY = {"i1": np.uint8, "i8": np.uint8, "i16": np.uint16, "i32": np.uint32, "i64": np.uint64, "half": np.float16,
         "float": np.float32, "double": np.float64, "bfloat": np.uint16}
SUFFIX = {"half": "f16", "float": "f32", "double": "f64"}
COUNT = 256
SPECIAL = {
  "half": [0, 0x8000, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00, 1, 0x8001, 0x3FF, 0x400, 0x7BFF, 0x3555],
  "float": [0, 0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x80000001, 0x7FFFFF,
            0x800000, 0x7F7FFFFF, 0x3EAAAAAB, 0x4B000000, 0x4B800001, 0x4F000000, 0xCF000000, 0x5F000000, 0x3F000000],
  "double": [0, 1 << 63, 0x3FF0000000000000, 0xBFF0000000000000, 0x7FF0000000000000, 0xFFF0000000000000,
             0x7FF8000000000000, 1, 0xFFFFFFFFFFFFF, 0x10000000000000, 0x7FEFFFFFFFFFFFFF, 0x41E0000000000000],
  "bfloat": [0, 0x8000, 0x3F80, 0xBF80, 0x7F80, 0xFF80, 0x7FC0, 1, 0x7F7F],
}
Change = Callable[[np.ndarray], np.ndarray]
Witness = Callable[["Case", list[np.ndarray]], np.ndarray]


@dataclass
class Case:
  """An operation: IR lines from %x0, %x1, ... to %r."""
  name: str
  lines: str
  sources: tuple[str, ...]
  result: str
  declare: str = ""
  tolerance: float = 0.0
  change: Change | None = field(default=None)


def stored(kind: str) -> str: return "i8" if kind == "i1" else kind


def body(case: Case, space: str, index: str) -> str:
  """Load the sources at an index, compute, store the result."""
  out = []
  for k, kind in enumerate(case.sources):
    out.append(f"  %g{k} = getelementptr {stored(kind)}, ptr{space} %p{k}, {index}")
    if kind == "i1": out.append(f"  %l{k} = load i8, ptr{space} %g{k}\n  %x{k} = trunc i8 %l{k} to i1")
    else: out.append(f"  %x{k} = load {kind}, ptr{space} %g{k}")
  out.append(case.lines)
  if case.result == "i1": out.append("  %rr = zext i1 %r to i8")
  value = "%rr" if case.result == "i1" else "%r"
  out.append(f"  %go = getelementptr {stored(case.result)}, ptr{space} %o, {index}")
  out.append(f"  store {stored(case.result)} {value}, ptr{space} %go")
  return "\n".join(out)


def gpu_module(cases: list[Case]) -> str:
  functions = []
  for n, case in enumerate(cases):
    parameters = ", ".join(f"ptr addrspace(1) %p{k}" for k in range(len(case.sources)))
    functions.append(f"""
define amdgpu_kernel void @k{n}({parameters}, ptr addrspace(1) %o) {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %w = call i32 @llvm.amdgcn.workgroup.id.x()
  %b = shl i32 %w, 6
  %n = or disjoint i32 %b, %i
{body(case, " addrspace(1)", "i32 %n")}
  ret void
}}""")
  declares = {"declare i32 @llvm.amdgcn.workitem.id.x()", "declare i32 @llvm.amdgcn.workgroup.id.x()"}
  return "\n".join([*functions, *sorted(declares | {c.declare for c in cases})])


def host_module(cases: list[Case]) -> str:
  functions = []
  for n, case in enumerate(cases):
    parameters = ", ".join(f"ptr %p{k}" for k in range(len(case.sources)))
    functions.append(f"""
define void @k{n}({parameters}, ptr %o, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i2, %loop]
{body(case, "", "i64 %i")}
  %i2 = add i64 %i, 1
  %c = icmp slt i64 %i2, %n
  br i1 %c, label %loop, label %end
end:
  ret void
}}""")
  return "\n".join([*functions, *sorted({c.declare for c in cases})])


def values(rng: np.random.Generator, kind: str) -> np.ndarray:
  """Random bits, ordinary numbers and special values."""
  if kind == "i1": return rng.integers(0, 2, COUNT).astype(np.uint8)
  dtype = np.dtype(NUMPY[kind])
  bits = np.dtype(f"u{dtype.itemsize}")
  raw = rng.integers(0, 1 << 8 * dtype.itemsize, COUNT, dtype=np.uint64) if dtype.itemsize < 8 else \
    rng.integers(0, (1 << 64) - 1, COUNT, dtype=np.uint64, endpoint=True)
  raw = raw.astype(bits)
  top = (1 << 8 * dtype.itemsize) - 1
  special = np.array(SPECIAL.get(kind, [0, 1, 2, 3, top, top // 2, top // 2 + 1, 7, 10]), np.uint64).astype(bits)
  if kind in SPECIAL:
    ordinary = rng.normal(0, 10, COUNT)
    near = (ordinary.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) if kind == "bfloat" else \
      ordinary.astype(dtype).view(bits)
    raw = np.where(rng.random(COUNT) < 0.5, near, raw)
  return np.where(rng.random(COUNT) < 0.3, rng.choice(special, COUNT), raw).view(dtype)


def differs(got: np.ndarray, want: np.ndarray, kind: str, tolerance: float) -> np.ndarray:
  """Lanes that differ; NaNs are alike, and so are zeros where a tolerance is given."""
  if kind == "bfloat":
    nan = [np.isnan((a.astype(np.uint32) << 16).view(np.float32)) for a in (got, want)]
    return ~((got == want) | nan[0] & nan[1])
  if kind not in FLOATS: return got != want
  bits = f"u{got.itemsize}"
  same = (got.view(bits) == want.view(bits)) | np.isnan(got) & np.isnan(want)
  if tolerance:
    same |= np.isclose(got.astype(np.float64), want.astype(np.float64), rtol=tolerance, atol=tolerance * 0.01)
  return ~same


def run(cases: list[Case], optimization: int, witness: Witness | None = None, features: str = "") -> None:
  """Run every case on both and report all that differ."""
  rng = np.random.default_rng(len(cases))
  gpu = Gpu()
  kernels = gpu.load(compile_gpu(gpu_module(cases), optimization, features))
  host = Host(host_module(cases)) if witness is None else None
  wrong = []
  for n, case in enumerate(cases):
    sources = [values(rng, kind) for kind in case.sources]
    if case.change is not None: sources = [case.change(s) for s in sources]
    want = np.zeros(COUNT, NUMPY[case.result])
    if host is not None: host.call(f"k{n}", *sources, want, count=COUNT)
    elif witness is not None: want = witness(case, sources)
    o = gpu.put(np.zeros_like(want))
    gpu.launch(kernels[f"k{n}"], (COUNT // 64, 1, 1), (64, 1, 1), [*map(gpu.put, sources), o])
    got = gpu.get(o, want.dtype, COUNT)
    bad = differs(got, want, case.result, case.tolerance)
    if bad.any():
      k = int(np.flatnonzero(bad)[0])
      wrong.append(f"{case.name}: {bad.sum()} lanes, {[s[k] for s in sources]} gives {got[k]}, not {want[k]}")
  assert not wrong, "\n".join(wrong)


def call(function: str, kind: str, suffix: str, count: int, extra: str = "", name: str = "", **options: Any) -> Case:
  """A call of an LLVM intrinsic with all operands of one type."""
  arguments = ", ".join(f"{kind} %x{k}" for k in range(count))
  types = ", ".join([kind] * count) + (", i1" if extra else "")
  return Case(name or f"{function} {kind}", f"  %r = call {kind} @llvm.{function}.{suffix}({arguments}{extra})",
              (kind,) * count, kind, f"declare {kind} @llvm.{function}.{suffix}({types})", **options)


def integer_cases(t: str) -> list[Case]:
  plain = ("add", "sub", "mul", "and", "or", "xor")
  cases = [Case(f"{op} {t}", f"  %r = {op} {t} %x0, %x1", (t, t), t) for op in plain]
  for op in ("shl", "lshr", "ashr"):
    cases.append(Case(f"{op} {t}", f"  %m = and {t} %x1, {int(t[1:]) - 1}\n  %r = {op} {t} %x0, %m", (t, t), t))
  for op in ("udiv", "urem", "sdiv", "srem"):
    safe = (f"  %z = icmp eq {t} %x1, 0\n  %d0 = select i1 %z, {t} 3, {t} %x1\n  %n1 = icmp eq {t} %d0, -1\n"
            f"  %d = select i1 %n1, {t} 5, {t} %d0\n")
    cases.append(Case(f"{op} {t}", f"{safe}  %r = {op} {t} %x0, %d", (t, t), t))
  for c in ("eq", "ne", "ult", "ule", "ugt", "uge", "slt", "sle", "sgt", "sge"):
    cases.append(Case(f"icmp {c} {t}", f"  %r = icmp {c} {t} %x0, %x1", (t, t), "i1"))
  cases.append(Case(f"select {t}", f"  %r = select i1 %x0, {t} %x1, {t} %x2", ("i1", t, t), t))
  for f in ("umin", "umax", "smin", "smax", "uadd.sat", "usub.sat", "sadd.sat", "ssub.sat"):
    cases.append(call(f, t, t, 2))
  cases += [call(f, t, t, 3) for f in ("fshl", "fshr")]
  cases += [call(f, t, t, 1) for f in ("ctpop", "bitreverse")]
  return cases + [call(f, t, t, 1, ", i1 false") for f in ("ctlz", "cttz", "abs")]


def float_cases(t: str) -> list[Case]:
  cases = [Case(f"{op} {t}", f"  %r = {op} {t} %x0, %x1", (t, t), t) for op in ("fadd", "fsub", "fmul", "fdiv")]
  cases.append(Case(f"fneg {t}", f"  %r = fneg {t} %x0", (t,), t))
  for c in ("oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno"):
    cases.append(Case(f"fcmp {c} {t}", f"  %r = fcmp {c} {t} %x0, %x1", (t, t), "i1"))
  s = SUFFIX[t]
  if t != "half": cases.append(call("fma", t, s, 3))
  cases += [call(f, t, s, 1) for f in ("floor", "ceil", "trunc", "rint", "roundeven", "fabs", "sqrt", "round")]
  # the sign of a zero result is left open by these two
  no_zero: Change = lambda x: np.where(x == 0, x.dtype.type(1), x)
  return cases + [call("copysign", t, s, 2), *(call(f, t, s, 2, change=no_zero) for f in ("minnum", "maxnum"))]


def cast_cases(a: str) -> list[Case]:
  cases = []
  if a in (*INTEGERS, "i1"):
    for b in (*INTEGERS, "i1"):
      if a == b: continue
      operations = ("trunc",) if int(a[1:]) > int(b[1:]) else ("zext", "sext")
      cases += [Case(f"{op} {a} {b}", f"  %r = {op} {a} %x0 to {b}", (a,), b) for op in operations]
    for b in FLOATS:
      cases += [Case(f"{op} {a} {b}", f"  %r = {op} {a} %x0 to {b}", (a,), b) for op in ("uitofp", "sitofp")]
    return cases
  for b in FLOATS:
    order = FLOATS.index(a) - FLOATS.index(b)
    if order < 0: cases.append(Case(f"fpext {a} {b}", f"  %r = fpext {a} %x0 to {b}", (a,), b))
    if order > 0 and (a, b) != ("double", "half"):
      cases.append(Case(f"fptrunc {a} {b}", f"  %r = fptrunc {a} %x0 to {b}", (a,), b))
  for b in INTEGERS:
    for op in ("fptosi", "fptoui"):
      name = f"llvm.{op}.sat.{b}.{SUFFIX[a]}"
      cases.append(Case(f"{op} {a} {b}", f"  %r = call {b} @{name}({a} %x0)", (a,), b, f"declare {b} @{name}({a})"))
  return cases


@pytest.mark.parametrize("optimization", [0, 3])
@pytest.mark.parametrize("kind", INTEGERS)
def test_integers(kind: str, optimization: int) -> None: run(integer_cases(kind), optimization)


@pytest.mark.parametrize("optimization", [0, 3])
@pytest.mark.parametrize("kind", FLOATS)
def test_floats(kind: str, optimization: int) -> None: run(float_cases(kind), optimization)


@pytest.mark.parametrize("optimization", [1, 2])
@pytest.mark.parametrize("kind", [*INTEGERS, "i1", *FLOATS])
def test_casts(kind: str, optimization: int) -> None: run(cast_cases(kind), optimization)


@pytest.mark.parametrize("kind", ["float", "double", "i64"])
def test_wave64(kind: str) -> None:
  cases = integer_cases(kind) if kind == "i64" else float_cases(kind)
  run(cases, 2, features="+wavefrontsize64,-wavefrontsize32")


@pytest.mark.parametrize("kind", ["half", "float"])
def test_transcendentals_within_their_error(kind: str) -> None:
  s = SUFFIX[kind]
  tolerance = 2e-3 if kind == "half" else 3e-6
  cases = [call(f, kind, s, 1, tolerance=tolerance) for f in ("exp2", "log2", "exp", "log", "log10", "exp10")]
  small: Change = lambda x: np.clip(np.nan_to_num(x, nan=0.5), -3, 3).astype(x.dtype)
  cases += [call(f, kind, s, 1, tolerance=tolerance * 10, change=small) for f in ("sin", "cos")]
  run(cases, 3)


def _exact_f16(x: Fraction) -> np.float16:
  """A rational number rounded once to f16, ties to even."""
  if x == 0: return np.float16(0)
  magnitude = abs(x)
  e = max(magnitude.numerator.bit_length() - magnitude.denominator.bit_length() - 1, -14)
  while magnitude >= Fraction(2) ** (e + 1): e += 1
  while e > -14 and magnitude < Fraction(2) ** e: e -= 1
  scaled = magnitude / Fraction(2) ** (e - 10)
  rounded = round(scaled) * 2.0 ** (e - 10)
  return np.float16(np.copysign(np.inf if rounded >= 65520 else rounded, float(x)))


def test_f16_fma_is_rounded_once() -> None:
  def witness(case: Case, sources: list[np.ndarray]) -> np.ndarray:
    out = []
    with np.errstate(all="ignore"):
      for a, b, c in zip(*sources):
        plain = np.float64(a) * np.float64(b) + np.float64(c)
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)) if np.isfinite([a, b, c]).all() else None
        out.append(np.float16(plain) if exact is None or exact == 0 else _exact_f16(exact))
    return np.array(out, np.float16)
  run([call("fma", "half", "f16", 3)], 2, witness)


def test_f64_to_f16_is_rounded_once() -> None:
  def witness(case: Case, sources: list[np.ndarray]) -> np.ndarray:
    with np.errstate(all="ignore"): return sources[0].astype(np.float16)
  run([Case("fptrunc double half", "  %r = fptrunc double %x0 to half", ("double",), "half")], 2, witness)


def _bf16(x: np.ndarray) -> np.ndarray:
  """f32 to bf16 bits, ties to even; NaN stays NaN."""
  raw = x.astype(np.float32).view(np.uint32)
  rounded = (raw + 0x7FFF + (raw >> 16 & 1) >> 16).astype(np.uint16)
  return np.where(np.isnan(x), np.uint16(0x7FC0), rounded)


@pytest.mark.parametrize("optimization", [0, 3])
def test_bfloat(optimization: int) -> None:
  """bf16 arithmetic is done in f32 and rounded; NumPy is the witness."""
  functions = {"fadd": np.add, "fsub": np.subtract, "fmul": np.multiply, "fdiv": np.divide}

  def witness(case: Case, sources: list[np.ndarray]) -> np.ndarray:
    wide = [(s.astype(np.uint32) << 16).view(np.float32) for s in sources]
    with np.errstate(all="ignore"): return _bf16(functions[case.name](*wide))
  cases = [Case(op, f"  %r = {op} bfloat %x0, %x1", ("bfloat", "bfloat"), "bfloat") for op in functions]
  run(cases, optimization, witness)


def test_f32_fma_where_two_roundings_differ() -> None:
  """a * b + c halfway between two f32 but for a part below f64's precision: the trap of a sum in f64."""
  a = np.float32(1 + 2.0**-12)
  b = np.float32(1 + 2.0**-12)
  rng = np.random.default_rng(seed(5))

  def witness(case: Case, sources: list[np.ndarray]) -> np.ndarray:
    out = []
    for x, y, z in zip(*sources):
      exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
      near = np.float32(float(exact))
      low, high = np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))
      out.append(min((near, low, high), key=lambda v: (abs(Fraction(float(v)) - exact), v.view(np.uint32) & 1)))
    return np.array(out, np.float32)
  tiny = np.ldexp(rng.choice([-1.0, 1.0], COUNT), rng.integers(-80, -40, COUNT)).astype(np.float32)
  case = call("fma", "float", "f32", 3)
  parts = iter([np.full(COUNT, a), np.full(COUNT, b), tiny])
  case.change = lambda x: next(parts)
  run([case], 2, witness)
