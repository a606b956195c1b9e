"""What the corpus's kernels are given and what they have to make of it, in NumPy. No compiler is needed for this.

A case is a function from a seeded generator to `Case`: named arguments, and the wanted contents of those that the
kernel writes, with a tolerance. All kernels of a case, whatever language and compiler they come from, take those
arguments.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Make = Callable[[np.random.Generator, "Formats"], "Case"]
F32, I32 = np.float32, np.int32


@dataclass(frozen=True)
class Formats:
  """The 8-bit floats of a kernel: (exponent bits, mantissa bits, bias, "ocp" or "fnuz")."""
  e4: tuple[int, int, int, str] = (4, 3, 7, "ocp")
  e5: tuple[int, int, int, str] = (5, 2, 15, "ocp")


@dataclass
class Want:
  """Contents of an argument after the run: |got - want| <= absolute + relative * |want|, zero for exact."""
  value: Array
  relative: float = 0.0
  absolute: float = 0.0


@dataclass
class Case:
  arguments: dict[str, Any]
  wanted: dict[str, Want] = field(default_factory=dict)

  def want(self, name: str, value: Any, relative: float = 0.0, absolute: float = 0.0) -> Case:
    like = self.arguments[name]
    self.wanted[name] = Want(np.asarray(value).astype(like.dtype).reshape(like.shape), relative, absolute)
    return self

  def wrong(self, got: dict[str, Array]) -> list[str]:
    """A line for each argument that is not as wanted."""
    out = []
    for name, w in self.wanted.items():
      a, b = np.asarray(got[name]), w.value
      if w.relative or w.absolute:
        x, y = a.astype(np.float64), b.astype(np.float64)
        with np.errstate(invalid="ignore"):
          good = (np.abs(x - y) <= w.absolute + w.relative * np.abs(y)) | (x == y) | np.isnan(x) & np.isnan(y)
      else: good = (a == b) | (a != a) & (b != b)
      if not good.all():
        k = int(np.flatnonzero(~good.reshape(-1))[0])
        out.append(f"{name}: {int((~good).sum())} of {good.size} differ, [{k}] is {a.reshape(-1)[k]}, not "
                   f"{b.reshape(-1)[k]}")
    return out


CASES: Final[dict[str, Make]] = {}


def case(make: Make) -> Make:
  CASES[make.__name__] = make
  return make


# ---- number formats that NumPy lacks

def brain(x: Array) -> Array:
  """float32 to bfloat16 bits, to nearest even."""
  bits = x.astype(F32).view(np.uint32)
  return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def of_brain(bits: Array) -> Array: return (bits.astype(np.uint32) << 16).view(F32)


def tiny_values(form: tuple[int, int, int, str]) -> Array:
  """The value of each of the 256 codes of an 8-bit float format, as float32."""
  exponent, mantissa, bias, kind = form
  codes = np.arange(256)
  e, m = codes >> mantissa & (1 << exponent) - 1, codes & (1 << mantissa) - 1
  value = np.where(e == 0, np.ldexp(m / (1 << mantissa), 1 - bias), np.ldexp(1 + m / (1 << mantissa), e - bias))
  value = np.where(codes & 128, -value, value)
  if kind == "fnuz": value[128] = np.nan
  elif exponent == 5: value = np.where(e == 31, np.where(m == 0, np.copysign(np.inf, value), np.nan), value)
  else: value = np.where(codes & 127 == 127, np.nan, value)
  return value.astype(F32)


def tiny(x: Array, form: tuple[int, int, int, str]) -> Array:
  """Codes of finite values inside a format's range, to nearest even."""
  values = tiny_values(form)
  codes = np.array([c for c in range(128) if np.isfinite(values[c])], np.uint8)
  levels = values[codes].astype(np.float64)
  size = np.abs(x.astype(np.float64)).reshape(-1)
  above = np.clip(np.searchsorted(levels, size), 1, len(levels) - 1)
  low, high = levels[above - 1], levels[above]
  up = (size - low > high - size) | (size - low == high - size) & (codes[above] % 2 == 0)
  out = codes[np.where(up, above, above - 1)]
  sign = np.signbit(x).reshape(-1) & ((out != 0) | (form[3] == "ocp"))
  return (out | np.where(sign, 128, 0).astype(np.uint8)).reshape(x.shape)


def philox(seed: int, offset: Array) -> Array:
  """First word of Philox 4x32-10 with key (seed, seed >> 32) and counter (offset, 0, 0, 0) (Salmon et al., 2011)."""
  low32 = np.uint64(0xFFFFFFFF)
  c = [offset.astype(np.uint64), *(np.zeros(offset.shape, np.uint64) for _ in range(3))]
  k0, k1 = seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF
  for _ in range(10):
    p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
    c = [p1 >> np.uint64(32) ^ c[1] ^ np.uint64(k0), p1 & low32, p0 >> np.uint64(32) ^ c[3] ^ np.uint64(k1), p0 & low32]
    k0, k1 = k0 + 0x9E3779B9 & 0xFFFFFFFF, k1 + 0xBB67AE85 & 0xFFFFFFFF
  return c[0].astype(np.uint32)


def uniform(words: Array) -> Array:
  """Triton's mapping of random words to [0, 1): the absolute value (of -1 - x for negative x), scaled by 2**-31."""
  x = words.view(I32)
  return np.where(x < 0, -x - 1, x).astype(F32) * F32(4.6566127342e-10)


def normal(r: np.random.Generator, *shape: int) -> Array: return r.standard_normal(shape).astype(F32)


# ---- the cases

@case
def add(r: np.random.Generator, f: Formats) -> Case:
  x, y = normal(r, 301), normal(r, 301)
  return Case({"x": x, "y": y, "out": np.zeros_like(x), "n": I32(301)}).want("out", x + y)


@case
def softmax(r: np.random.Generator, f: Formats) -> Case:
  x = normal(r, 6, 100) * 4
  e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
  return Case({"x": x, "out": np.zeros_like(x), "rows": I32(6), "columns": I32(100)}).want(
    "out", e / e.sum(1, keepdims=True), 2e-6, 1e-9)


def normalized(x: Array, eps: float) -> tuple[Array, Array, Array]:
  y = x.astype(np.float64)
  mean, var = y.mean(1), y.var(1)
  rstd = 1 / np.sqrt(var + eps)
  return mean, rstd, (y - mean[:, None]) * rstd[:, None]


@case
def layer_norm(r: np.random.Generator, f: Formats) -> Case:
  x, w, b = normal(r, 5, 90).astype(np.float16), normal(r, 90), normal(r, 90)
  mean, rstd, hat = normalized(x, 1e-5)
  made = Case({"x": x, "weight": w, "bias": b, "out": np.zeros_like(x), "mean": np.zeros(5, F32),
               "rstd": np.zeros(5, F32), "columns": I32(90), "eps": F32(1e-5)})
  return made.want("out", hat * w + b, 1e-3, 1e-3).want("mean", mean, 1e-5, 1e-6).want("rstd", rstd, 1e-5)


@case
def layer_norm_backward(r: np.random.Generator, f: Formats) -> Case:
  g, x, w = normal(r, 6, 60), normal(r, 6, 60), normal(r, 60)
  mean, rstd, hat = normalized(x, 1e-5)
  wg = g.astype(np.float64) * w
  dx = (wg - hat * (hat * wg).mean(1)[:, None] - wg.mean(1)[:, None]) * rstd[:, None]
  made = Case({"grad": g, "x": x, "weight": w, "mean": mean.astype(F32), "rstd": rstd.astype(F32),
               "dx": np.zeros_like(x), "dweight": np.zeros(60, F32), "dbias": np.zeros(60, F32),
               "lock": np.zeros(1, I32), "columns": I32(60)})
  made.want("dx", dx, 1e-4, 1e-5).want("dweight", (g * hat).sum(0), 1e-4, 1e-5).want("dbias", g.sum(0), 1e-4, 1e-5)
  return made.want("lock", [0])


@case
def dropout(r: np.random.Generator, f: Formats) -> Case:
  x, p, seed = normal(r, 500), F32(0.3), 12345
  keep = uniform(philox(seed, np.arange(500, dtype=np.uint32))) > p
  return Case({"x": x, "out": np.zeros_like(x), "n": I32(500), "p": p, "seed": I32(seed)}).want(
    "out", np.where(keep, x / (F32(1) - p), 0), 1e-6)


def product(a: Array, b: Array, x: Array, y: Array, c: Array, relative: float, absolute: float) -> Case:
  """a @ b, which the kernel takes as x and y."""
  (m, k), n = a.shape, b.shape[1]
  made = Case({"a": x, "b": y, "c": c, "M": I32(m), "N": I32(n), "K": I32(k)})
  return made.want("c", a.astype(np.float64) @ b.astype(np.float64), relative, absolute)


@case
def matmul_half(r: np.random.Generator, f: Formats) -> Case:
  a, b = normal(r, 50, 70).astype(np.float16), normal(r, 70, 40).astype(np.float16)
  return product(a, b, a, b, np.zeros((50, 40), F32), 1e-4, 1e-3)


@case
def matmul_half_out(r: np.random.Generator, f: Formats) -> Case:
  a, b = normal(r, 64, 64).astype(np.float16), normal(r, 64, 64).astype(np.float16)
  return product(a, b, a, b, np.zeros((64, 64), np.float16), 2e-3, 2e-2)


@case
def matmul_brain(r: np.random.Generator, f: Formats) -> Case:
  a, b = brain(normal(r, 64, 64)), brain(normal(r, 64, 64))
  return product(of_brain(a), of_brain(b), a, b, np.zeros((64, 64), F32), 1e-4, 1e-3)


@case
def matmul_float(r: np.random.Generator, f: Formats) -> Case:
  a, b = normal(r, 32, 32), normal(r, 32, 32)
  return product(a, b, a, b, np.zeros((32, 32), F32), 1e-5, 1e-4)


@case
def matmul_tf32(r: np.random.Generator, f: Formats) -> Case:
  """With inputs that the matrix cores cut to 10 bits of mantissa."""
  a, b = normal(r, 32, 32), normal(r, 32, 32)
  return product(a, b, a, b, np.zeros((32, 32), F32), 1e-3, 2e-2)


@case
def matmul_double(r: np.random.Generator, f: Formats) -> Case:
  a, b = r.standard_normal((32, 32)), r.standard_normal((32, 32))
  return product(a, b, a, b, np.zeros((32, 32), np.float64), 1e-12, 1e-12)


@case
def matmul_int8(r: np.random.Generator, f: Formats) -> Case:
  a, b = r.integers(-128, 128, (64, 64), dtype=np.int8), r.integers(-128, 128, (64, 64), dtype=np.int8)
  return product(a, b, a, b, np.zeros((64, 64), I32), 0, 0)


@case
def matmul_e4(r: np.random.Generator, f: Formats) -> Case:
  a, b = tiny(normal(r, 64, 64), f.e4), tiny(normal(r, 64, 64), f.e4)
  values = tiny_values(f.e4)
  return product(values[a], values[b], a, b, np.zeros((64, 64), F32), 1e-3, 2e-2)


@case
def matmul_e5(r: np.random.Generator, f: Formats) -> Case:
  a, b = tiny(normal(r, 64, 64), f.e5), tiny(normal(r, 64, 64), f.e5)
  values = tiny_values(f.e5)
  return product(values[a], values[b], a, b, np.zeros((64, 64), F32), 1e-3, 2e-2)


@case
def persistent_matmul(r: np.random.Generator, f: Formats) -> Case:
  a, b = normal(r, 64, 32).astype(np.float16), normal(r, 32, 96).astype(np.float16)
  return product(a, b, a, b, np.zeros((64, 96), F32), 1e-4, 1e-3)


@case
def split_matmul(r: np.random.Generator, f: Formats) -> Case:
  a, b = normal(r, 32, 128).astype(np.float16), normal(r, 128, 32).astype(np.float16)
  return product(a, b, a, b, np.zeros((32, 32), F32), 1e-4, 1e-3)


@case
def grouped_matmul(r: np.random.Generator, f: Formats) -> Case:
  rows = np.array([20, 0, 33, 7], I32)
  starts = (np.cumsum(rows) - rows).astype(I32)
  a, b = normal(r, 60, 32).astype(np.float16), normal(r, 4, 32, 48).astype(np.float16)
  c = np.concatenate([a[s:s + m].astype(np.float64) @ b[e].astype(np.float64)
                      for e, (s, m) in enumerate(zip(starts, rows))])
  return Case({"a": a, "b": b, "c": np.zeros((60, 48), F32), "rows": rows, "starts": starts, "experts": I32(4),
               "N": I32(48), "K": I32(32)}).want("c", c, 1e-4, 1e-3)


def attended(q: Array, k: Array, v: Array, scale: float, causal: bool) -> tuple[Array, Array, Array]:
  """(output, log of the sum, probabilities) in double precision."""
  s = np.einsum("hid,hjd->hij", q.astype(np.float64), k.astype(np.float64)) * scale
  if causal: s = np.where(np.tril(np.ones(s.shape[1:], bool)), s, -np.inf)
  lse = np.log(np.exp(s).sum(2))
  p = np.exp(s - lse[:, :, None])
  return p @ v.astype(np.float64), lse, p


def attention_case(r: np.random.Generator, length: int, causal: bool) -> Case:
  q, k, v = (normal(r, 2, length, 32).astype(np.float16) for _ in range(3))
  out, lse, _ = attended(q, k, v, 0.17, causal)
  return Case({"q": q, "k": k, "v": v, "out": np.zeros(q.shape, F32), "lse": np.zeros((2, length), F32),
               "length": I32(length), "scale": F32(0.17)}).want("out", out, 2e-3, 2e-3).want("lse", lse, 1e-4, 1e-4)


@case
def attention(r: np.random.Generator, f: Formats) -> Case: return attention_case(r, 50, False)


@case
def attention_causal(r: np.random.Generator, f: Formats) -> Case: return attention_case(r, 64, True)


@case
def attention_backward(r: np.random.Generator, f: Formats) -> Case:
  q, k, v, g = (normal(r, 2, 64, 32).astype(np.float16) for _ in range(4))
  scale = 0.17
  out, lse, p = attended(q, k, v, scale, True)
  delta = (out * g).sum(2)
  ds = p * (g.astype(np.float64) @ v.astype(np.float64).transpose(0, 2, 1) - delta[:, :, None]) * scale
  made = Case({"q": q, "k": k, "v": v, "dout": g, "lse": lse.astype(F32), "delta": delta.astype(F32),
               **{n: np.zeros(q.shape, F32) for n in ("dq", "dk", "dv")}, "length": I32(64), "scale": F32(scale)})
  made.want("dq", ds @ k.astype(np.float64), 1e-2, 5e-3)
  made.want("dk", ds.transpose(0, 2, 1) @ q.astype(np.float64), 1e-2, 5e-3)
  return made.want("dv", p.transpose(0, 2, 1) @ g.astype(np.float64), 1e-2, 5e-3)


@case
def scan(r: np.random.Generator, f: Formats) -> Case:
  x, gate = normal(r, 4, 120), r.uniform(0.8, 1.1, (4, 120)).astype(F32)
  state, now = np.zeros((4, 120)), np.zeros(4)
  for k in range(120): now = state[:, k] = now * gate[:, k] + x[:, k]
  made = Case({"x": x, "gate": gate, **{n: np.zeros_like(x) for n in ("sums", "products", "states")},
               "columns": I32(120)})
  made.want("sums", np.cumsum(x.astype(np.float64), 1), 1e-4, 1e-4).want("states", state, 1e-4, 1e-4)
  return made.want("products", np.cumprod(gate[:, ::-1].astype(np.float64), 1)[:, ::-1], 1e-4, 1e-6)


@case
def sort(r: np.random.Generator, f: Formats) -> Case:
  x = r.integers(-1000, 1000, (3, 64), dtype=I32)
  up = np.sort(x, 1)
  return Case({"x": x, "up": np.zeros_like(x), "down": np.zeros_like(x)}).want("up", up).want("down", up[:, ::-1])


@case
def histogram(r: np.random.Generator, f: Formats) -> Case:
  x = r.integers(0, 32, 700, dtype=I32)
  return Case({"x": x, "out": np.zeros(32, I32), "n": I32(700)}).want("out", np.bincount(x, minlength=32))


@case
def atomics(r: np.random.Generator, f: Formats) -> Case:
  n, programs = 300, 3
  x = r.integers(-(1 << 20), 1 << 20, n, dtype=I32)
  slots = [x[np.arange(n) % 7 == k] for k in range(7)]
  made = Case({"x": x, "floats": np.zeros(7, F32), "largest": np.full(7, -(1 << 31), I32),
               "smallest": np.full(7, (1 << 31) - 1, I32), "ands": np.full(7, -1, I32), "ors": np.zeros(7, I32),
               "xors": np.zeros(7, I32), "old": np.zeros(1 + programs, I32), "n": I32(n)})
  made.want("floats", [s.astype(np.float64).sum() for s in slots], 1e-5, 4.0)
  made.want("largest", [s.max() for s in slots]).want("smallest", [s.min() for s in slots])
  for name, f_ in (("ands", np.bitwise_and), ("ors", np.bitwise_or), ("xors", np.bitwise_xor)):
    made.want(name, [f_.reduce(s) for s in slots])
  return made


@case
def lookback(r: np.random.Generator, f: Formats) -> Case:
  x = r.integers(-100, 100, 500, dtype=I32)
  return Case({"x": x, "out": np.zeros_like(x), "flags": np.zeros(16, I32), "sums": np.zeros(16, I32),
               "n": I32(500)}).want("out", np.cumsum(x))


@case
def reductions(r: np.random.Generator, f: Formats) -> Case:
  x = r.integers(-500, 500, (8, 50), dtype=I32)
  made = Case({"x": x, **{n: np.zeros(8, I32) for n in ("total", "largest", "where", "least", "odd")},
               "columns": I32(50)})
  made.want("total", x.sum(1)).want("largest", x.max(1)).want("where", x.argmax(1)).want("least", x.argmin(1))
  return made.want("odd", np.bitwise_xor.reduce(x, 1))


@case
def shapes(r: np.random.Generator, f: Formats) -> Case:
  rows, columns = 16, 32
  x = normal(r, rows, columns)
  flat = x.reshape(-1, 2)
  index = (np.arange(rows)[:, None] * 5 + np.arange(columns) * 3) % rows
  made = Case({"x": x, "turned": np.zeros((columns, rows), F32), "pairs": np.zeros(512, F32),
               "evens": np.zeros(256, F32), "gathered": np.zeros_like(x)})
  made.want("turned", x.T).want("pairs", flat[:, ::-1]).want("evens", flat[:, 0])
  return made.want("gathered", np.take_along_axis(x, index, 0))


@case
def mathematics(r: np.random.Generator, f: Formats) -> Case:
  from math import erf
  n = 120
  x = r.uniform(-6, 6, n).astype(F32)
  v, p = x.astype(np.float64), (np.abs(x) + F32(0.5)).astype(np.float64)
  rows = [np.exp(v), np.log(p), np.sin(v), np.cos(v), np.sqrt(p), 1 / np.sqrt(p), np.array([erf(e) for e in v]),
          np.exp2(v), np.log2(p), np.floor(v) + np.ceil(v * 0.5), v / p, v * p + v]
  return Case({"x": x, "out": np.zeros(len(rows) * n, F32), "n": I32(n)}).want("out", np.stack(rows), 2e-6, 1e-6)


@case
def integers(r: np.random.Generator, f: Formats) -> Case:
  n = 200
  x, y = r.integers(-(1 << 31), 1 << 31, n, dtype=I32), r.integers(1, 1 << 16, n, dtype=I32)
  y[::2] *= -1
  a, b = x.astype(np.int64), y.astype(np.int64)
  quotient = np.trunc(x / y.astype(np.float64)).astype(np.int64)
  long = a * 1000003 * b
  divisor = b * 7 + 1

  def truncated(u: Array, w: Array) -> Array: return np.sign(u) * np.sign(w) * (np.abs(u) // np.abs(w))

  rest = long - truncated(long, np.full(n, 11)) * 11
  high = x.view(np.uint32).astype(np.uint64) * y.view(np.uint32).astype(np.uint64) >> np.uint64(32)
  made = Case({"x": x, "y": y, "quotient": np.zeros(n, I32), "remainder": np.zeros(n, I32),
               "high": np.zeros(n, np.uint32), "wide": np.zeros(n, np.int64), "n": I32(n)})
  made.want("quotient", quotient).want("remainder", a - quotient * b).want("high", high)
  return made.want("wide", truncated(long, divisor) + (long >> 3 ^ rest))


@case
def conversions(r: np.random.Generator, f: Formats) -> Case:
  x = normal(r, 250) * r.choice([1, 1e-2, 10], 250).astype(F32)
  e4, e5 = tiny(x, f.e4), tiny(x, f.e5)
  made = Case({"x": x, "half": np.zeros(250, np.float16), "brain": np.zeros(250, np.uint16),
               "e4": np.zeros(250, np.uint8), "e5": np.zeros(250, np.uint8), "back": np.zeros(250, F32),
               "n": I32(250)})
  made.want("half", x.astype(np.float16)).want("brain", brain(x)).want("e4", e4).want("e5", e5)
  return made.want("back", tiny_values(f.e4)[e4] + tiny_values(f.e5)[e5])


@case
def collatz(r: np.random.Generator, f: Formats) -> Case:
  x = r.integers(1, 400, 100, dtype=I32)
  steps = []
  for v in x.tolist():
    count = 0
    while v > 1: v, count = (v // 2 if v % 2 == 0 else 3 * v + 1), count + 1
    steps.append(count)
  return Case({"x": x, "steps": np.zeros_like(x), "n": I32(100)}).want("steps", steps)


@case
def cross_entropy(r: np.random.Generator, f: Formats) -> Case:
  x, target = (normal(r, 5, 70) * 3).astype(np.float16), r.integers(0, 70, 5)
  v = x.astype(np.float64)
  log_sum = np.log(np.exp(v).sum(1))
  hot = np.eye(70)[target]
  made = Case({"logits": x, "target": target, "loss": np.zeros(5, F32), "grad": np.zeros_like(x), "columns": I32(70)})
  made.want("loss", log_sum - (v * hot).sum(1), 1e-4, 1e-4)
  return made.want("grad", np.exp(v - log_sum[:, None]) - hot, 1e-3, 1e-4)


@case
def calls(r: np.random.Generator, f: Formats) -> Case:
  x, y, t = normal(r, 200), normal(r, 200), 0.25
  once = t + (1 - t) * t
  w = np.where(np.arange(200) < 128, once, once + (1 - once) * once)
  return Case({"x": x, "y": y, "out": np.zeros_like(x), "n": I32(200), "t": F32(t)}).want(
    "out", x + (y - x) * w, 1e-5, 1e-6)


@case
def descriptors(r: np.random.Generator, f: Formats) -> Case:
  x = normal(r, 20, 36)
  out = np.zeros((20, 36), np.float64)
  for i in range(0, 20, 16):
    for j in range(0, 36, 32):
      tile = x[i:i + 16, j:j + 32].astype(np.float64)
      out[i:i + 16, j:j + 32] = tile * 2 + tile.sum()
  return Case({"x": x, "out": np.zeros_like(x), "rows": I32(20), "columns": I32(36)}).want("out", out, 1e-4, 1e-4)


@case
def block_pointers(r: np.random.Generator, f: Formats) -> Case:
  x = normal(r, 20, 50).astype(np.float16)
  return Case({"x": x, "out": np.zeros(20, F32), "rows": I32(20), "columns": I32(50)}).want(
    "out", x.astype(np.float64).sum(1), 1e-4, 1e-4)


@case
def batched_matmul(r: np.random.Generator, f: Formats) -> Case:
  a, b = normal(r, 4, 16, 16).astype(np.float16), normal(r, 4, 16, 16).astype(np.float16)
  return Case({"a": a, "b": b, "c": np.zeros((4, 16, 16), F32)}).want(
    "c", a.astype(np.float64) @ b.astype(np.float64), 1e-4, 1e-3)
