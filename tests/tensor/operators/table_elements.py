"""Cases of functions of each element: arithmetic, comparison, choice, functions, activations, promotion."""
from __future__ import annotations

from tests.tensor.operators.cases import BFLOAT16, Case, In

A, B, C = In((3, 5)), In((3, 5)), In((3, 5))
SPECIAL = In((12,), values=(0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 0.5, -2.5, 3.0, 30.0,
                            -30.0))
FINITE = In((8,), values=(0.0, -0.0, 1.0, -1.0, float("nan"), 0.5, 30.0, -30.0))     # torch loses gelu of infinities
FLOATS, INTS = ("float16", BFLOAT16, "float32", "float64"), ("uint8", "int8", "int16", "int32", "int64")
KINDS = (*INTS, *FLOATS)
CASES: list[Case] = []


def add(name: str, ours: str, *inputs: In, **options: object) -> None:
  CASES.append(Case(name, ours, inputs, **options))  # type: ignore[arg-type]  # the fields' own types


def of(dtype: str, low: float = -5, high: float = 6, shape: tuple[int, ...] = (2, 3), **more: object) -> In:
  """Numbers of any type: small ones, which all of them hold."""
  return In(shape, dtype, max(low, 0) if dtype.startswith("u") else low, high, **more)  # type: ignore[arg-type]


# ---- functions of one: (name, low, high, distance from 0)
ONE = [("exp", -3, 3, 0), ("exp2", -3, 3, 0), ("expm1", -3, 3, 0), ("log", 0, 4, .1), ("log2", 0, 4, .1), ("log10",
                                                                                                           0, 4, .1),
       ("log1p", -.9, 3, 0), ("sin", -4, 4, 0), ("cos", -4, 4, 0), ("tan", -1.2, 1.2, 0), ("sqrt", 0, 4, .1),
       ("rsqrt", 0, 4, .1), ("reciprocal", -3, 3, .2), ("square", -3, 3, 0), ("sigmoid", -4, 4, 0), ("tanh", -3, 3, 0),
       ("sinh", -3, 3, 0), ("cosh", -3, 3, 0), ("asinh", -4, 4, 0), ("acosh", 1.1, 4, 0), ("atanh", -.9, .9, 0),
       ("asin", -.9, .9, 0), ("acos", -.9, .9, 0), ("atan", -4, 4, 0), ("erf", -3, 3, 0), ("erfc", -3, 3, 0),
       ("abs", -3, 3, .1), ("sign", -3, 3, .1), ("floor", -3, 3, 0), ("ceil", -3, 3, 0), ("trunc", -3, 3, 0),
       ("round", -3, 3, 0), ("frac", -3, 3, 0), ("neg", -3, 3, 0), ("deg2rad", -9, 9, 0), ("rad2deg", -3, 3, 0),
       ("sinc", -3, 3, .1), ("logit", .1, .9, 0), ("positive", -3, 3, 0), ("absolute", -3, 3, .1), ("negative", -3,
                                                                                                    3, 0),
       ("arcsin", -.9, .9, 0), ("arccos", -.9, .9, 0), ("arctan", -4, 4, 0), ("arcsinh", -4, 4, 0),
       ("arccosh", 1.1, 4, 0), ("arctanh", -.9, .9, 0), ("sgn", -3, 3, .1), ("fix", -3, 3, 0)]
for name, low, high, apart in ONE:
  add(name, f"a.{name}()", In((3, 5), low=low, high=high, without=apart))
for name in ("exp", "expm1", "log", "log1p", "sinh", "cosh", "asinh", "acosh", "atanh", "asin", "acos", "atan",
             "erf", "erfc", "sqrt", "rsqrt", "reciprocal", "round", "floor", "ceil", "trunc", "abs", "sin", "tan",
             "sinc", "logit", "isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit", "nan_to_num",
             "logical_not", "sigmoid", "tanh"):
  add(f"{name} of special values", f"a.{name}()", SPECIAL, backward=False)
for name in ("sinh", "atan", "erf", "exp", "sigmoid", "asin", "erfc", "acosh"):
  for kind in ("float16", BFLOAT16, "float64"):
    low, high = {"asin": (-.9, .9), "acosh": (1.1, 3)}.get(name, (-2, 2))
    add(f"{name} of {kind}", f"a.{name}()", In((7,), kind, low, high))
for name in ("exp", "sqrt", "sin", "atan", "erf", "reciprocal", "sigmoid"):
  for kind in ("int32", "bool", "uint8"): add(f"{name} of {kind}", f"a.{name}()", of(kind, 1, 5))
add("exp of nothing", "a.exp()", In((0, 3)))
add("erf of a scalar", "a.erf()", In(()))
add("round to decimals", "a.round(decimals=2)", A, backward=False)
add("sinh of large ones", "a.sinh()", In((5,), values=(60.0, -70.0, 88.0, 1e-3, -1e-6)))
add("asinh of large ones", "a.asinh()", In((5,), values=(1e10, -1e20, 3e8, 1e-3, -1e-6)))
add("acosh of large ones", "a.acosh()", In((4,), values=(1e10, 1e20, 1.0001, 2.0)), rtol=5e-5,
    because="torch's derivative next to 1 subtracts 1 from the square in float32")
add("erfc of large ones", "a.erfc()", In((6,), values=(5.0, 9.0, -4.0, 0.4, 0.6, 3.0)))
add("nan_to_num with numbers", "a.nan_to_num(nan=1.5, posinf=7.0, neginf=-7.0)", SPECIAL)
add("logit with eps", "a.logit(eps=0.2)", In((9,), low=0, high=1))
add("float_power", "T.float_power(a, 3)", In((4,), low=.5))

# ---- arithmetic of two
TWO = [("add", "a + b"), ("sub", "a - b"), ("mul", "a * b"), ("div", "a / b")]
PAIRS = [((3, 4), (4,)), ((3, 1), (1, 4)), ((), (3,)), ((0, 3), (3,)), ((2, 1, 3), (4, 1)), ((1,), ()), ((), ())]
for name, text in TWO:
  for one, other in PAIRS:
    add(f"{name} {one} {other}", text, In(one), In(other, without=.3))
for kind in KINDS:
  for name, text in TWO: add(f"{name} of {kind}", text, of(kind), of(kind, 1, 6))
  add(f"floor_divide of {kind}", "a // b", of(kind), of(kind, 1, 6), backward=False, loose="sign")
  add(f"remainder of {kind}", "a % b", of(kind), of(kind, 1, 6), backward=False,
      **({"rtol": 2e-2, "atol": 1e-2, "because": "torch rounds at each step"} if kind in ("float16", BFLOAT16) else {}))
  add(f"fmod of {kind}", "a.fmod(b)", of(kind), of(kind, 1, 6), backward=False,
      **({"rtol": 2e-2, "atol": 1e-2, "because": "torch rounds at each step"} if kind in ("float16", BFLOAT16) else {}))
  add(f"comparisons of {kind}", "a < b, a <= b, a > b, a >= b, a == b, a != b", of(kind), of(kind), backward=False)
  add(f"numbers and {kind}", "a + 1, 2 - a, a * 3, 7 / (a + 9)", of(kind), backward=False)
  add(f"maximum of {kind}", "T.maximum(a, b), T.minimum(a, b)", of(kind), of(kind))
  add(f"clamp of {kind}", "a.clamp(1, 3), a.clip(min=2), a.clamp(max=2)", of(kind))
for kind in ("bool", *INTS):
  add(f"bits of {kind}", "a & b, a | b, a ^ b, ~a", of(kind), of(kind))
  add(f"bits by name of {kind}", "a.bitwise_and(b), a.bitwise_or(b), a.bitwise_xor(b), a.bitwise_not()", of(kind),
      of(kind))
for kind in INTS: add(f"shifts of {kind}", "a << b, a >> b, a.bitwise_left_shift(1)", of(kind), of(kind, 0, 3))
add("logic", "a.logical_and(b), a.logical_or(b), a.logical_xor(b), a.logical_not()", of("bool"), of("int32", -1, 2))
add("logic of floats", "T.logical_and(a, b), T.logical_xor(a, b)", In((4,), values=(0.0, 1.5, -0.0, 2.0)),
    In((4,), values=(0.0, 0.0, 1.0, 2.0)), backward=False)
for one, other in [("uint8", "int8"), ("int32", "int64"), ("int8", "int16"), ("bool", "int32"), ("int64", "float16"),
                   ("float16", BFLOAT16), ("float32", "float64"), ("bool", "float16"), ("int32", "float32")]:
  add(f"{one} and {other}", "a + b, a * b", of(one, shape=(3,)), of(other, shape=(3,)), backward=False)
for kind in ("bool", "int32", "float16", "float32"):
  for other in ("bool", "int64", "float32", "float64"):
    add(f"{kind} and one {other}", "a + b, b * a, T.where(a > 0, a, b), a == b", of(kind, 0, 3, (3,)),
        of(other, 1, 3, ()),
        backward=False)
add("divide with modes", "T.div(a, b, rounding_mode='trunc'), T.div(a, b, rounding_mode='floor'), T.div(a, b)",
    In((9,), low=-9, high=9), In((9,), low=-3, high=3, without=.4))
add("divide integers with modes", "a.div(b, rounding_mode='trunc'), a.div(b, rounding_mode='floor')",
    of("int32", -9, 10), of("int32", 1, 4))
add("add and subtract with alpha", "T.add(a, b, alpha=2), T.sub(a, b, alpha=0.5)", A, B)
add("rsub", "T.rsub(a, b)", A, B)
add("names of arithmetic", "T.subtract(a, b), T.multiply(a, b), T.divide(a, b), T.true_divide(a, b)", A, In((3, 5),
                                                                                                            without=.3))
add("names of comparison",
    "a.lt(b), a.le(b), a.gt(b), a.ge(b), a.eq(b), a.ne(b), T.less(a, b), T.greater_equal(a, b)", A, B,
    backward=False)
add("fmod", "T.fmod(a, b)", In((9,), low=-9, high=9), In((9,), low=-3, high=3, without=.4))
add("remainder", "T.remainder(a, b)", In((9,), low=-9, high=9), In((9,), low=-3, high=3, without=.4))
for text in ("2 ** a", "a ** 2", "a ** 3", "a ** 0.5", "a ** -1", "a ** 1.7", "a ** 0", "1.5 ** a", "a.pow(3)"):
  add(f"{text}", text, In((3, 5), low=.2, high=3))
add("a ** b", "a ** b", In((3, 5), low=.2, high=3), B)
add("integer powers", "a ** 2, a ** 3, a ** b", of("int32"), of("int32", 0, 4))
add("0 ** 0", "a ** b", In((4,), values=(0.0, 0.0, 2.0, 1.0)), In((4,), values=(0.0, 2.0, 0.0, 5.0)), backward=False)
for name, text in [("atan2", "T.atan2(a, b)"), ("hypot", "T.hypot(a, b)"), ("logaddexp", "T.logaddexp(a, b)"),
                   ("logaddexp2", "T.logaddexp2(a, b)"), ("copysign", "T.copysign(a, b)"), ("fmax", "T.fmax(a, b)"),
                   ("fmin", "T.fmin(a, b)")]:
  add(name, text, A, B)
  add(f"{name} broadcast", text, In((3, 1)), In((4,)))
  values = (0.0, -0.0, 1.0, float("inf"), float("-inf"), float("nan"), -2.0)
  grid = tuple(x for x in values for _ in values), tuple(y for _ in values for y in values)
  add(f"{name} of special values", text, In((49,), values=grid[0]), In((49,), values=grid[1]), backward=False)
add("atan2 of doubles", "a.atan2(b)", In((5,), "float64"), In((5,), "float64"))
add("arctan2", "a.arctan2(b)", In((5,)), In((5,)))
add("copysign of integers", "a.copysign(b)", of("int32"), of("int32"))
add("copysign of a number", "T.copysign(a, -2.0)", A)
add("lerp", "T.lerp(a, b, 0.3), T.lerp(a, b, c)", A, B, In((3, 5), low=0, high=1))
add("addcmul", "T.addcmul(a, b, c, value=0.5)", A, B, C)
add("addcdiv", "T.addcdiv(a, b, c, value=2)", A, B, In((3, 5), without=.4))
add("xlogy", "T.xlogy(a, b)", In((4,), values=(0.0, 1.0, 2.0, 0.5)), In((4,), values=(0.5, 1.0, 3.0, 2.0)))
add("heaviside", "T.heaviside(a, b)", In((4,), values=(0.0, -1.0, 2.0, float("nan"))), In((4,)), backward=False)
add("ldexp", "T.ldexp(a, b)", A, of("int32", -3, 4, (3, 5)), backward=False)

# ---- choice and closeness
add("where", "T.where(a, b, c)", In((3, 5), "bool"), B, C)
add("where with numbers", "T.where(a > 0, a, 0.5), T.where(a > 0, 1.5, a)", A)
add("where broadcast", "T.where(a, b, c)", In((3, 1), "bool"), In((4,)), In((2, 1, 1)))
add("where of types", "T.where(a, b, c)", In((3,), "bool"), of("int32", shape=(3,)), In((3,), "float16"),
    backward=False)
add("masked_fill", "a.masked_fill(b, -1.5)", A, In((3, 5), "bool"))
add("masked_fill broadcast", "a.masked_fill(b, inf)", A, In((5,), "bool"))
add("clamp by tensors", "T.clamp(a, b, b + 1)", A, In((5,)), backward=False)
add("clamp_min, clamp_max", "T.clamp_min(a, 0.3), T.clamp_max(a, 0.2)", A)
for equal in (True, False):
  add(f"isclose equal_nan={equal}", f"T.isclose(a, b, rtol=0.1, atol=0.01, equal_nan={equal})",
      In((6,), values=(1.0, float("nan"), float("inf"), 2.0, 0.0, float("inf"))),
      In((6,), values=(1.05, float("nan"), float("inf"), 3.0, 0.005, float("-inf"))), backward=False)
add("allclose, equal", "T.allclose(a, a + 1e-9), T.equal(a, b), T.equal(a, a)", A, B, backward=False)
add("maximum with NaN", "T.maximum(a, b), T.minimum(a, b)", SPECIAL, In((12,)), backward=False)

# ---- activations
for name, text in [
    ("relu", "F.relu(a)"), ("relu6", "F.relu6(a * 4)"), ("leaky_relu", "F.leaky_relu(a)"),
    ("leaky_relu by keyword", "F.leaky_relu(a, negative_slope=0.3)"), ("elu", "F.elu(a)"), ("elu alpha",
                                                                                            "F.elu(a, alpha=0.3)"),
    ("celu", "F.celu(a)"), ("celu alpha", "F.celu(a, alpha=0.5)"), ("selu", "F.selu(a)"), ("silu", "F.silu(a)"),
    ("mish", "F.mish(a)"), ("gelu none", "F.gelu(a, approximate='none')"), ("gelu tanh",
                                                                            "F.gelu(a, approximate='tanh')"),
    ("softplus", "F.softplus(a)"), ("softplus beta", "F.softplus(a, beta=3)"),
    ("softplus threshold", "F.softplus(a, beta=2, threshold=1)"), ("softsign", "F.softsign(a)"),
    ("logsigmoid", "F.logsigmoid(a)"), ("hardtanh", "F.hardtanh(a)"), ("hardtanh limits",
                                                                       "F.hardtanh(a, min_val=-0.5, max_val=0.7)"),
    ("hardsigmoid", "F.hardsigmoid(a * 3)"), ("hardswish", "F.hardswish(a * 3)"), ("hardshrink", "F.hardshrink(a)"),
    ("hardshrink lambd", "F.hardshrink(a, lambd=1.0)"), ("softshrink", "F.softshrink(a)"),
    ("softshrink lambd", "F.softshrink(a, lambd=1.0)"), ("tanhshrink", "F.tanhshrink(a)"),
    ("threshold", "F.threshold(a, 0.3, -7.0)"), ("glu", "F.glu(a, dim=0)"), ("softmin", "F.softmin(a, dim=1)")]:
  add(name, text, In((4, 5)))
for name in ("relu", "silu", "mish", "selu", "softplus", "hardswish", "gelu", "elu", "logsigmoid", "softsign"):
  extra = ", approximate='none'" if name == "gelu" else ""
  add(f"{name} of special values", f"F.{name}(a{extra})", FINITE if name == "gelu" else SPECIAL, backward=False)
  add(f"{name} of float16", f"F.{name}(a{extra})", In((7,), "float16"))
  add(f"{name} of far ones", f"F.{name}(a{extra})", In((6,), values=(-100.0, 100.0, -30.0, 30.0, -9.0, 12.0)))
add("prelu", "F.prelu(a, b)", In((2, 3, 4)), In((3,)))
add("prelu of one weight", "F.prelu(a, b)", In((2, 3)), In((1,)))


# ---- floats of 8 bits, which torch only stores: its float32 results rounded are what is expected
def small(kind: str, name: str, ours: str, theirs: str) -> None:
  mine = ours.replace("A", f"a.cast(dtypes.{kind})").replace("B", f"b.cast(dtypes.{kind})")
  other = theirs.replace("A", f"a.to(torch.{kind}).float()").replace("B", f"b.to(torch.{kind}).float()")
  add(f"{name} of {kind}", f"({mine}).float()", In((3, 4)), In((3, 4), without=.3),
      theirs=f"({other}).to(torch.{kind}).float()",
      backward=False)


for kind in ("float8_e4m3fn", "float8_e5m2"):
  for text in ("A + B", "A * B", "A / B", "A - 1", "A.exp()", "A.tanh()", "A.erf()", "A.sigmoid()", "A.atan()",
               "A.relu()", "A.maximum(B)", "A.softmax(1)", "A.sum(1)", "A.mean()", "A.amax(0)", "A.cumsum(1)",
               "A @ B.T", "A.sort(1)[0]", "A.abs().sqrt()", "A.flip(0)", "A[:, [2, 0]]", "A.floor()",
               "A.logsumexp(0)", "A.var(1)"):
    small(kind, text, text, text)
