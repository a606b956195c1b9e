"""Floats (PTX ISA, 9.7.3 to 9.7.5) and conversions (9.7.9.21): exact, rounded once, or in the manual's bounds."""
from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import reduce
from typing import Any, Final

import mpmath

from tinyhw.isa.ptx.forms import SIZES, Form
from tinyhw.tools.witness import draw, softfloat
from tinyhw.tools.witness.ptx.formats import FORMATS
from tinyhw.tools.witness.ptx.integers import integers
from tinyhw.tools.witness.ptx.table import Case, plain, witness
from tinyhw.tools.witness.softfloat import BF8, BF16, F16, F32, F64, FP8, Format

Function = Callable[..., Any]
_NAN: Final = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}
_MODES: Final = {"rn": softfloat.RNE, "rz": softfloat.ZERO, "rm": softfloat.DOWN, "rp": softfloat.UP}
_SMALL: Final = {"e4m3x2": FP8, "e5m2x2": BF8}


def mode_of(form: Form) -> int:
  """The rounding of an instruction."""
  return next((_MODES[m] for m in _MODES if m in form.modifiers), softfloat.RNE)


def nan_of(t: str) -> Any:
  """What a NaN result may be: of f64 any."""
  return _NAN.get(t) or F64.is_nan


def finished(form: Form, t: str, x: int) -> Any:
  """A result with .ftz, .sat, .relu and the chip's NaN."""
  f, m = FORMATS[t], form.modifiers
  if f.is_nan(x): return 0 if "sat" in m else nan_of(t)
  if "sat" in m: x = 0 if f.order(x) <= 0 else min(x, f.bias << f.mantissa)
  if "relu" in m and f.negative(x): x = 0
  return f.flush(x) if "ftz" in m else x


def extreme(form: Form, f: Format, a: int, b: int, low: bool) -> int:
  """min and max: the number where one is NaN, and -0 less than +0."""
  m = form.modifiers
  sign = (a ^ b) & f.sign if "xorsign" in m else 0
  if "xorsign" in m or "abs" in m: a, b = a & ~f.sign, b & ~f.sign
  if "NaN" in m and (f.is_nan(a) or f.is_nan(b)): return f.nan
  if f.is_nan(a) or f.is_nan(b):
    if f.is_nan(a) and f.is_nan(b): return f.nan
    return (b if f.is_nan(a) else a) | sign
  x, y = (f.order(a), not f.negative(a)), (f.order(b), not f.negative(b))
  return (a if (x <= y) == low else b) | sign


def float_function(form: Form, t: str) -> Function | None:
  """f(bits...) -> bits of one float, before `finished`."""
  f, op, mode = FORMATS[t], form.row.opcode, mode_of(form)
  low = op == "min"
  table: dict[str, Function] = {
    "add": lambda a, b: f.add(a, b, mode), "sub": lambda a, b: f.sub(a, b, mode), "mul": lambda a, b: f.mul(a, b, mode),
    "fma": lambda a, b, c: f.fma(a, b, c, mode), "mad": lambda a, b, c: f.fma(a, b, c, mode),
    "div": lambda a, b: f.div(a, b, mode), "rcp": lambda a: f.div(f.bias << f.mantissa, a, mode),
    "sqrt": lambda a: f.sqrt(a, mode), "min": lambda *x: reduce(lambda a, b: extreme(form, f, a, b, low), x),
    "max": lambda *x: reduce(lambda a, b: extreme(form, f, a, b, low), x)}
  return table.get(op)


def lanes(form: Form, one: Function) -> Function:
  """The function on each half of packed operands."""
  t = form.type
  if not t.endswith("x2"): return one
  n = 32 if t == "f32x2" else 16

  def both(*words: int) -> Any:
    parts = [one(*[w >> k & (1 << n) - 1 for w in words]) for k in (0, n)]
    def right(bits: int) -> bool:
      return all(p(bits >> n * k & (1 << n) - 1) if callable(p) else p == bits >> n * k & (1 << n) - 1
                 for k, p in enumerate(parts))
    return right
  return both


@witness("add", "sub", "mul", "fma", "mad", "div", "min", "max", "rcp", "sqrt", "abs", "neg")
def arithmetic(form: Form, rng: random.Random) -> Iterator[Case]:
  """Of floats; those on integers are elsewhere."""
  t = form.type.removesuffix("x2")
  if t not in FORMATS:
    yield from integers(form)
    return
  if "approx" in form.modifiers or "full" in form.modifiers:
    yield from near(form, rng)
    return
  if len(form.types) == 2:
    yield mixed(form)
    return
  f, m = FORMATS[t], form.modifiers
  if form.row.opcode in {"abs", "neg"}:
    def signs(a: int) -> Any:
      if "ftz" in m: a = f.flush(a)
      if f.is_nan(a): return f.is_nan
      return a & ~f.sign if form.row.opcode == "abs" else a ^ f.sign
    yield plain(form, lanes(form, signs))
    return
  made = float_function(form, t)
  if made is None or "oob" in m: return
  compute = made

  def one(*values: int) -> Any:
    if "ftz" in m: values = tuple(f.flush(v) for v in values)
    return finished(form, t, compute(*values))
  yield plain(form, lanes(form, one))


def mixed(form: Form) -> Case:
  """Sums and products of halves with f32 (9.7.5): in f32, once the halves have been made f32."""
  compute = float_function(form, "f32")
  assert compute is not None
  function, half, count = compute, FORMATS[form.type], form.sources.count(form.type)

  def run(*values: int) -> Any:
    wide = [F32.nan if half.is_nan(v) else softfloat.convert(v, half, F32) for v in values[:count]]
    return finished(form, "f32", function(*wide, *values[count:]))
  return plain(form, run)


@witness("copysign", "testp")
def classes(form: Form, rng: random.Random) -> Iterator[Case]:
  """Signs and kinds of numbers."""
  f, m = FORMATS[form.type], form.modifiers
  if form.row.opcode == "copysign":
    yield plain(form, lambda a, b: b & ~f.sign | a & f.sign)
    return
  tests: dict[str, Function] = {
    "finite": lambda a: not f.is_nan(a) and not f.is_inf(a), "infinite": f.is_inf, "number": lambda a: not f.is_nan(a),
    "notanumber": f.is_nan, "subnormal": f.denormal,
    "normal": lambda a: not (f.is_nan(a) or f.is_inf(a) or f.denormal(a))}
  test = next(tests[x] for x in tests if x in m)
  yield plain(form, lambda a: int(test(a)))


# ---- approximations: the manual's bounds; special values are exact

def real(x: int, f: Format) -> mpmath.mpf:
  """The number of a finite pattern."""
  m, e = f.value(x)
  return mpmath.ldexp(m, e)


def special(op: str, f: Format, a: int) -> Any:
  """Results of infinities, zeros and negative numbers; None for others."""
  inf, one, minus = f.inf(False), f.bias << f.mantissa, f.negative(a)
  if f.is_nan(a): return f.nan
  if op == "tanh": return (one | (f.sign if minus else 0)) if f.is_inf(a) else a if f.is_zero(a) else None
  if op == "ex2": return (0 if minus else inf) if f.is_inf(a) else one if f.is_zero(a) else None
  if op in {"sin", "cos"}:
    if f.is_inf(a): return f.nan
    return (a if op == "sin" else one) if f.is_zero(a) else None
  if op == "rcp": return f.zero(minus) if f.is_inf(a) else f.inf(minus) if f.is_zero(a) else None
  if op == "rsqrt" and f.is_zero(a): return f.inf(minus)
  if op == "lg2" and f.is_zero(a): return f.inf(True)
  if op == "sqrt" and f.is_zero(a): return a
  if minus: return f.nan
  if f.is_inf(a): return 0 if op == "rsqrt" else inf
  return None


# (relative error, absolute error) that the manual allows; what it says of f32 in ulp is 2**-23 each.
_BOUNDS: Final = {"rcp": (2.0**-22, 0.0), "sqrt": (2.0**-22, 0.0), "rsqrt": (2.0**-21, 0.0), "div": (2.0**-21, 0.0),
                  "ex2": (2.0**-21, 0.0), "lg2": (2.0**-21, 2.0**-21), "sin": (0.0, 2.0**-20), "cos": (0.0, 2.0**-20),
                  "tanh": (2.0**-10.5, 2.0**-126)}


def near(form: Form, rng: random.Random) -> Iterator[Case]:
  """A result in the bounds that the manual states."""
  t, op, m = form.type.removesuffix("x2"), form.row.opcode, form.modifiers
  f = FORMATS[t]
  relative, absolute = _BOUNDS[op]
  if t != "f32": relative = max(relative, 2.0 ** -(9.9 if t == "f16" else 7)) if t != "f64" else 2.0**-20
  ftz = "ftz" in m
  functions: dict[str, Function] = {
    "rcp": lambda x: 1 / x, "sqrt": mpmath.sqrt, "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "ex2": lambda x: mpmath.mpf(2) ** x, "lg2": lambda x: mpmath.log(x, 2), "sin": mpmath.sin,
    "cos": mpmath.cos, "tanh": mpmath.tanh}

  def close(right: Any) -> Function:
    least = mpmath.ldexp(1, f.least - f.mantissa)
    def good(bits: int) -> bool:
      if f.is_nan(bits): return False
      if f.is_inf(bits): return bool(abs(right) > real(f.largest, f) * (1 - relative - 2.0**-f.mantissa))
      got = real(bits, f)
      small = ftz and abs(right) < mpmath.ldexp(1, f.least) * (1 + 2.0**-10) and got == 0
      return bool(small or abs(got - right) <= abs(right) * relative + absolute + least)
    return good

  def one(a: int, b: int | None = None) -> Any:
    if t == "f64" and ftz: a &= ~0xFFFFFFFF  # its upper word alone counts (9.7.3.14)
    if ftz: a, b = f.flush(a), None if b is None else f.flush(b)
    if b is not None:
      if f.is_nan(a) or f.is_nan(b) or f.is_inf(a) or f.is_inf(b) or f.is_zero(a) or f.is_zero(b):
        x = f.div(a, b)
        return nan_of(t) if f.is_nan(x) else x
      if "approx" in m and abs(real(b, f)) > mpmath.ldexp(1, 126): return lambda bits: f.is_zero(bits)
      return close(real(a, f) / real(b, f))
    found = special(op, f, a)
    if found is not None: return nan_of(t) if f.is_nan(found) else found
    return close(functions[op](real(a, f)))
  draw = None
  if op in {"sin", "cos"}:  # the bound holds for quadrants around 0
    def draw(r: random.Random) -> tuple[int, ...]:
      return (struct.unpack("<I", struct.pack("<f", r.uniform(-math.pi, math.pi)))[0],)
  yield plain(form, lanes(form, one), draw=draw)


@witness("rsqrt", "sin", "cos", "lg2", "ex2", "tanh")
def approximate(form: Form, rng: random.Random) -> Iterator[Case]:
  """Functions that are approximations alone."""
  yield from near(form, rng)


# ---- conversions

_WHOLE: Final = {"rni": softfloat.RNE, "rzi": softfloat.ZERO, "rmi": softfloat.DOWN, "rpi": softfloat.UP}


def limits(t: str) -> tuple[int, int]:
  """The range of an integer type."""
  n = 8 * SIZES[t]
  return (-(1 << n - 1), (1 << n - 1) - 1) if t[0] == "s" else (0, (1 << n) - 1)


def narrowed(form: Form, target: Format, t: str, x: int, mode: int) -> int:
  """f32 to a smaller float, with .relu and .satfinite."""
  m = form.modifiers
  if F32.is_nan(x): return _NAN.get(t, target.nan)
  out = softfloat.convert(x, F32, target, mode)
  if "satfinite" in m and out & ~target.sign > target.largest: out = target.largest | out & target.sign
  return 0 if "relu" in m and target.negative(out) else out


def fp8(form: Form, f: Format, source: Format, x: int) -> int:
  """To eight bits: saturates; NaN is 0x7F."""
  if source.is_nan(x): return 0x7F
  minus = source.negative(x)
  if source.is_inf(x): out = f.largest
  else:
    m, e = source.value(x)
    out = min(f.round(abs(m), e) & ~f.sign, f.largest) if m else 0
    if f.is_nan(out) or f.is_inf(out): out = f.largest
  if minus and "relu" in form.modifiers: return 0
  return out | (f.sign if minus else 0)


@witness("cvt")
def cvt(form: Form, rng: random.Random) -> Iterator[Case]:
  """Between all types."""
  m = form.modifiers
  if "pack" in m:
    yield from packed(form)
    return
  target, source = form.types
  if "rs" in m or "s2f6x2" in {target, source}:
    yield from (random_rounding if "rs" in m else fixed)(form, target, source)
    return
  if {target, source} & {*NARROW, "ue8m0x2"}:
    yield from narrow(form, target, source)
    return
  mode = mode_of(form)
  whole = next((_WHOLE[x] for x in _WHOLE if x in m), None)
  if target in _SMALL:
    f = _SMALL[target]
    if source == "f32": yield plain(form, lambda a, b: fp8(form, f, F32, a) << 8 | fp8(form, f, F32, b))
    else:
      g16 = FORMATS[source[:-2]]
      yield plain(form, lambda a: fp8(form, f, g16, a >> 16) << 8 | fp8(form, f, g16, a & 0xFFFF))
    return
  if source in _SMALL:
    g = _SMALL[source]
    def half(x: int) -> int:
      if g.is_nan(x): return 0x7FFF
      out = softfloat.convert(x, g, F16)
      return 0 if "relu" in m and F16.negative(out) else out
    yield plain(form, lambda a: half(a >> 8) << 16 | half(a & 0xFF))
    return
  if target in {"f16x2", "bf16x2"}:
    one, t = FORMATS[target[:-2]], target[:-2]
    yield plain(form, lambda a, b: narrowed(form, one, t, a, mode) << 16 | narrowed(form, one, t, b, mode))
    return
  if target == "tf32":
    yield plain(form, lambda a: tf32(form, a, mode))
    return
  if source in FORMATS and target in FORMATS: yield plain(form, between(form, target, source, mode, whole))
  elif source in FORMATS: yield plain(form, to_integer(form, target, source, whole))
  elif target in FORMATS:
    f = FORMATS[target]
    def from_integer(x: int) -> Any:
      n = 8 * SIZES[source]
      v = x - (1 << n) if source[0] == "s" and x >> n - 1 else x
      return finished(form, target, f.round(v, 0, mode))
    yield plain(form, from_integer)
  else:
    def integers(x: int) -> int:
      n = 8 * SIZES[source]
      v = x - (1 << n) if source[0] == "s" and x >> n - 1 else x
      low, high = limits(target)
      return min(max(v, low), high) if "sat" in m else v
    yield plain(form, integers)


NARROW: Final = {"e2m1x2": (4, 1, 1), "e2m3x2": (6, 3, 1), "e3m2x2": (6, 2, 3)}  # bits, fraction, bias


def narrow(form: Form, target: str, source: str) -> Iterator[Case]:
  """Floats of 4 and 6 bits, which have neither infinity nor NaN, and powers of two."""
  relu, up, satfinite = ("relu" in form.modifiers, "rp" in form.modifiers, "satfinite" in form.modifiers)
  if target in NARROW and source != "f32":
    room, g = 4 if target == "e2m1x2" else 8, FORMATS[source[:-2]]
    def pair(a: int) -> int:
      wide = (F32.nan if g.is_nan(x) else softfloat.convert(x, g, F32) for x in (a >> 16, a & 0xFFFF))
      high, low = (_code(target, x, relu) for x in wide)
      return high << room | low
    if room == 8: yield plain(form, pair)
    else:
      text = f"{{{{ .reg .b8 n; {form.name} n, {{1}}; cvt.u16.u8 {{0}}, n; }}}}"
      yield Case(form.name, text, ("u16",), (source,), pair)
  elif target in NARROW:
    room = 4 if target == "e2m1x2" else 8
    def two(a: int, b: int) -> int: return _code(target, a, relu) << room | _code(target, b, relu)
    if room == 8: yield plain(form, two)
    else: yield Case(form.name, f"{{{{ .reg .b8 n; {form.name} n, {{1}}, {{2}}; cvt.u16.u8 {{0}}, n; }}}}", ("u16",),
                     ("f32", "f32"), two)
  elif source in NARROW:
    room = 4 if source == "e2m1x2" else 8
    f = BF16 if target == "bf16x2" else F16
    def one(code: int) -> int: return _half(source, code, relu, f)
    def halves(a: int) -> int: return one(a >> room) << 16 | one(a & (1 << room) - 1)
    if room == 8: yield plain(form, lambda a: halves(a & 0x3F3F), draw=lambda r: (r.getrandbits(16) & 0x3F3F,))
    else: yield Case(form.name, f"{{{{ .reg .b8 n; cvt.u8.u16 n, {{1}}; {form.name} {{0}}, n; }}}}", ("b32",), ("u16",),
                     lambda a: halves(a & 0xFF))
  elif source == "ue8m0x2":
    def brain(c: int) -> int: return 0x7FFF if c == 255 else c << 7 if c else 0x40
    yield plain(form, lambda a: brain(a >> 8) << 16 | brain(a & 0xFF))
  elif source == "bf16x2":
    yield plain(form, lambda a: _power(a >> 16 << 16, up, satfinite) << 8 | _power((a & 0xFFFF) << 16, up, satfinite))
  else: yield plain(form, lambda a, b: _power(a, up, satfinite) << 8 | _power(b, up, satfinite))


_FRACTIONS: Final = {"f16": (10, 15), "bf16": (7, 127), "e4m3": (3, 7), "e5m2": (2, 15), "e2m3": (3, 1), "e3m2": (2, 3),
                    "e2m1": (1, 1)}  # bits, and the exponents' bias


def at_random(x: int, seed: int, bits: int, t: str) -> tuple[int, int]:
  """(m, e), the size of a float that random bits have rounded: up where they and what is cut off have a carry."""
  fraction, bias = _FRACTIONS[t]
  size = abs(_real(x))
  e = max(x >> 23 & 0xFF, 1) - 127
  ulp = max(e, 1 - bias) - fraction
  steps = size / Fraction(2) ** ulp
  return int(steps + Fraction(seed, 1 << bits)), ulp


def random_rounding(form: Form, target: str, source: str) -> Iterator[Case]:
  """cvt.rs: of two halves each has 16 of the bits, or the lower 13 of them; of four numbers of 8 or 6 bits two share
  16, of four of 4 bits each has a byte: the first two the upper one of each half."""
  m, t = form.modifiers, target[:-2]
  if t in FORMATS:
    f, bits = FORMATS[t], 23 - _FRACTIONS[t][0]
    def half(x: int, seed: int) -> int:
      if F32.is_nan(x): return _NAN[t]
      out = f.inf(False) if F32.is_inf(x) else f.round(*at_random(x, seed & (1 << bits) - 1, bits, t))
      if "satfinite" in m: out = min(out, f.largest)
      return 0 if "relu" in m and F32.negative(x) else out | f.sign * F32.negative(x)
    yield plain(form, lambda a, b, r: half(a, r >> 16) << 16 | half(b, r & 0xFFFF))
    return
  room = 4 if t == "e2m1" else 8
  sign = {"e4m3": 0x80, "e5m2": 0x80, "e2m1": 8}.get(t, 0x20)
  values = {_value(t, c): c for c in range(sign - 1, -1, -1)}  # of numbers alone: no NaN, no infinity
  top = {"e4m3": 0x7E, "e5m2": 0x7B}.get(t, sign - 1)

  def code(x: int, seed: int) -> int:
    if F32.is_nan(x): return 0x7F if sign == 0x80 else top
    out = top
    if not F32.is_inf(x):
      n, e = at_random(x, seed, 8 if room == 4 else 16, t)
      if Fraction(n) * Fraction(2) ** e <= _value(t, top): out = values[Fraction(n) * Fraction(2) ** e]
    return 0 if "relu" in m and F32.negative(x) else out | sign * F32.negative(x)

  def four(a: int, b: int, e: int, f: int, r: int) -> int:
    high, low = r >> 16, r & 0xFFFF
    seeds = (high >> 8, low >> 8, high & 0xFF, low & 0xFF) if room == 4 else (high, high, low, low)
    out = 0
    for x, seed in zip((a, b, e, f), seeds): out = out << room | code(x, seed)
    return out
  text = f"{form.name} {{0}}, {{{{{{1}}, {{2}}, {{3}}, {{4}}}}}}, {{5}};"
  yield Case(form.name, text, ("b16" if room == 4 else "b32",), (*["f32"] * 4, "b32"), four,
             lambda r: (*[moderate(r) for _ in range(4)], r.getrandbits(32)))


def moderate(rng: random.Random) -> int:
  """An f32 that narrow floats may have, or any."""
  if not rng.randrange(4): return draw.value("f32", rng)
  return int(struct.unpack("<I", struct.pack("<f", rng.uniform(-8, 8) * 2.0 ** rng.randrange(-6, 5)))[0])


def _value(t: str, code: int) -> Fraction:
  fraction, bias = _FRACTIONS[t]
  exponent, rest = code >> fraction, code & (1 << fraction) - 1
  return (Fraction(rest, 1 << fraction) + bool(exponent)) * Fraction(2) ** (max(exponent, 1) - bias)


def fixed(form: Form, target: str, source: str) -> Iterator[Case]:
  """To and from s2f6: an integer of eight bits and two's complement, times 2 ** -6 (5.2.4)."""
  relu, finite = "relu" in form.modifiers, "satfinite" in form.modifiers
  def to(x: int, scale: int, f: Format) -> int:
    if f.is_nan(x) or scale == 255: return 127
    if f.is_inf(x): n = -128 if f.negative(x) else 127
    else: n = min(max(round(_real(x, f) / Fraction(2) ** (scale - 127 - 6)), -128), 127)
    return (max(n, 0) if relu else n) & 0xFF

  def back(code: int, scale: int) -> int:
    if scale == 255: return 0x7FFF
    n = code - 256 if code >> 7 else code
    out = BF16.round(n, scale - 127 - 6) if n else 0
    if finite and BF16.is_inf(out): out = BF16.largest | out & BF16.sign
    return 0 if relu and n < 0 else out
  one, scaled = 0x7F7F, "scaled::n2::ue8m0" in form.modifiers

  def near_one(r: random.Random) -> tuple[int, ...]:
    if not scaled: return ()
    return (r.getrandbits(16) if not r.randrange(4) else r.randrange(120, 135) << 8 | r.randrange(120, 135),)
  if source == "f32":
    def two(a: int, b: int, s: int = one) -> int: return to(a, s >> 8, F32) << 8 | to(b, s & 0xFF, F32)
    yield plain(form, two, draw=lambda r: (moderate(r), moderate(r), *near_one(r)))
  elif source == "bf16x2":
    def pair(a: int, s: int = one) -> int: return to(a >> 16, s >> 8, BF16) << 8 | to(a & 0xFFFF, s & 0xFF, BF16)
    yield plain(form, pair, draw=lambda r: (moderate(r) >> 16 << 16 | moderate(r) >> 16, *near_one(r)))
  else: yield plain(form, lambda a, s=one: back(a >> 8, s >> 8) << 16 | back(a & 0xFF, s & 0xFF))


def _real(x: int, f: Format = F32) -> Fraction:
  m, e = f.value(x)
  return Fraction(m) * Fraction(2) ** e


def _small(t: str, code: int) -> Fraction:
  """The size of a code."""
  bits, fraction, bias = NARROW[t]
  exponent, rest = code >> fraction & (1 << bits - 1 - fraction) - 1, code & (1 << fraction) - 1
  return (Fraction(rest, 1 << fraction) + bool(exponent)) * Fraction(2) ** (max(exponent, 1) - bias)


def _code(t: str, x: int, relu: bool) -> int:
  """The nearest code, of two the even one; NaN is the largest."""
  top = (1 << NARROW[t][0] - 1) - 1
  if F32.is_nan(x): return top
  if relu and F32.negative(x): return 0
  size = _small(t, top) if F32.is_inf(x) else abs(_real(x))
  best = min(range(top + 1), key=lambda c: (abs(_small(t, c) - size), c & 1))
  return best | (top + 1) * F32.negative(x)


def _half(t: str, code: int, relu: bool, f: Format) -> int:
  negative = code >> NARROW[t][0] - 1 & 1
  if relu and negative: return 0
  size = _small(t, code)
  return f.round(size.numerator, 1 - size.denominator.bit_length(), softfloat.RNE) & 0x7FFF | negative << 15


def _power(x: int, up: bool, satfinite: bool) -> int:
  """The exponent of the power of two next to the size of a float."""
  if F32.is_nan(x): return 255
  if F32.is_inf(x): return 254 if satfinite else 255
  size = abs(_real(x))
  if up: code = next((c for c in range(255) if Fraction(2) ** (c - 127) >= size), 255)
  else: code = next((c for c in range(254, -1, -1) if Fraction(2) ** (c - 127) <= size), 0)
  return min(code, 254) if satfinite else code


def tf32(form: Form, x: int, mode: int) -> int:
  """Ten bits of fraction."""
  f = Format("tf32", 19, 10, 127)
  if F32.is_nan(x) and "satfinite" in form.modifiers: return 0x7FFFFFFF  # what .satfinite makes of NaN in 32 bits
  if F32.is_nan(x): return x & 0xFFFFE000 if "rna" in form.modifiers else 0x7FFFE000
  if F32.is_inf(x): out = f.inf(F32.negative(x))
  elif "rna" in form.modifiers: out = ((x & 0x7FFFFFFF) + 0x1000 >> 13) | (f.sign if F32.negative(x) else 0)
  else: out = softfloat.convert(x, F32, f, mode)
  if "satfinite" in form.modifiers and f.is_inf(out): out = f.largest | out & f.sign
  if "relu" in form.modifiers and f.negative(out): out = 0
  return out << 13


def between(form: Form, target: str, source: str, mode: int, whole: int | None) -> Function:
  """Floats to floats."""
  f, g, m = FORMATS[source], FORMATS[target], form.modifiers
  def run(x: int) -> Any:
    if "ftz" in m and source == "f32": x = f.flush(x)
    if source == "f32" and target in {"f16", "bf16"} and m & {"relu", "satfinite"}:
      return narrowed(form, g, target, x, mode)
    if f.is_nan(x): return g.is_nan if "sat" not in m else 0
    if whole is not None: x = f.whole(x, whole)
    out = x if source == target else softfloat.convert(x, f, g, mode)
    if "sat" in m: out = 0 if g.order(out) <= 0 else min(out, g.bias << g.mantissa)
    return g.flush(out) if "ftz" in m and target == "f32" else out
  return run


def to_integer(form: Form, target: str, source: str, whole: int | None) -> Function:
  """Floats to integers: they saturate; NaN is 0, or of and to 64 bits the highest bit alone."""
  f = FORMATS[source]
  low, high = limits(target)
  wide = source == "f64" or SIZES[target] == 8
  def run(x: int) -> int:
    if "ftz" in form.modifiers: x = f.flush(x)
    if f.is_nan(x): return 1 << 8 * SIZES[target] - 1 if wide else 0
    return softfloat.to_integer(x, f, low, high, softfloat.ZERO if whole is None else whole)
  return run


def packed(form: Form) -> Iterator[Case]:
  """cvt.pack."""
  t = form.types[0] if form.types[0] != "s32" else next(x for x in ("s2", "u2", "s4", "u4") if x in form.modifiers)
  t = next((x for x in ("s2", "u2", "s4", "u4", "s8", "u8", "s16", "u16") if x in form.modifiers), t)
  bits = int(t[1:])
  low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if t[0] == "s" else (0, (1 << bits) - 1)
  def run(a: int, b: int, c: int = 0) -> int:
    x, y = (min(max(v - (1 << 32) if v >> 31 else v, low), high) & (1 << bits) - 1 for v in (a, b))
    return x << bits | y | c << 2 * bits
  yield plain(form, run)


