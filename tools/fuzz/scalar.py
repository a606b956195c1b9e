"""Cases of one operation on scalars and short vectors: integers, floats, conversions and what LLVM expands."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from tinyhw.tools.fuzz.case import Case
from tinyhw.tools.fuzz.fills import moderate, turns

INTS: Final = {"i8": 8, "i16": 16, "i32": 32, "i64": 64}
FLOATS: Final = ("half", "bfloat", "float", "double")
SUFFIX: Final = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64", "i1": "i1", "i8": "i8", "i16": "i16",
                 "i32": "i32", "i64": "i64"}


def mangled(kind: str) -> str:
  """The part of an intrinsic's name that says its type."""
  if not kind.startswith("<"): return SUFFIX[kind]
  n, _, scalar = kind[1:-1].split()
  return f"v{n}{SUFFIX[scalar]}"


def _name(*parts: str) -> str:
  return "_".join(p.replace("<", "v").replace(" x ", "").replace(">", "").replace(".", "_") for p in parts)


def call(function: str, kind: str, arguments: int, *, name: str = "", out: str = "", extra: str = "", ulp: float = 0,
         suffix: str | None = None, bits: bool = False, signless: bool = False, absolute: float = 0.0) -> Case:
  """A case that calls `llvm.function` on `arguments` values of one type."""
  out = out or kind
  full = f"@llvm.{function}.{mangled(kind) if suffix is None else suffix}"
  values = ", ".join(f"{kind} %{chr(97 + i)}" for i in range(arguments))
  kinds = ", ".join([kind] * arguments)
  tail = "".join(f", {e}" for e in extra.split(", ") if e)
  tail_kinds = "".join(f", {e.split()[0]}" for e in extra.split(", ") if e)
  return Case(name or _name(function, kind), (kind,) * arguments, (out,), f"%r = call {out} {full}({values}{tail})",
              f"declare {out} {full}({kinds}{tail_kinds})", ulp=ulp, bits=bits, signless=signless, absolute=absolute)


def nonzero(kind: str, signed: bool) -> str:
  """IR that makes %d of %b: a divisor without undefined results."""
  text = f"%z = icmp eq {kind} %b, 0\n  "
  if not signed: return text + f"%d = select i1 %z, {kind} 1, {kind} %b\n  "
  low = -(1 << INTS[kind] - 1)
  return text + (f"%am = icmp eq {kind} %a, {low}\n  %bm = icmp eq {kind} %b, -1\n  %both = and i1 %am, %bm\n  "
                 f"%bad = or i1 %z, %both\n  %d = select i1 %bad, {kind} 1, {kind} %b\n  ")


def integers(kind: str) -> Iterator[Case]:
  """Every integer operation of one width."""
  n, two = INTS[kind], (kind, kind)
  for op in ("add", "sub", "mul", "and", "or", "xor"):
    yield Case(_name(op, kind), two, (kind,), f"%r = {op} {kind} %a, %b")
  for op in ("shl", "lshr", "ashr"):
    yield Case(_name(op, kind), two, (kind,), f"%m = and {kind} %b, {n - 1}\n  %r = {op} {kind} %a, %m")
    for amount in (1, n // 2, n - 1):
      yield Case(_name(op, kind, str(amount)), (kind,), (kind,), f"%r = {op} {kind} %a, {amount}")
  for op in ("udiv", "urem", "sdiv", "srem"):
    yield Case(_name(op, kind), two, (kind,), f"{nonzero(kind, op[0] == 's')}%r = {op} {kind} %a, %d")
    for divisor in (3, 7, 10, 64, 100):
      yield Case(_name(op, kind, str(divisor)), (kind,), (kind,), f"%r = {op} {kind} %a, {divisor}")
  for predicate in ("eq", "ne", "ugt", "uge", "ult", "ule", "sgt", "sge", "slt", "sle"):
    yield Case(_name("icmp", predicate, kind), two, ("i1",), f"%r = icmp {predicate} {kind} %a, %b")
  yield Case(_name("select", kind), ("i1", kind, kind), (kind,), f"%r = select i1 %a, {kind} %b, {kind} %c")
  for op in ("smin", "smax", "umin", "umax", "uadd.sat", "sadd.sat", "usub.sat", "ssub.sat"): yield call(op, kind, 2)
  for op in ("uadd", "sadd", "usub", "ssub", "umul", "smul"):
    pair = f"{{{kind}, i1}}"
    yield Case(_name(op, "overflow", kind), two, (kind, "i1"),
               f"%o = call {pair} @llvm.{op}.with.overflow.{kind}({kind} %a, {kind} %b)\n  "
               f"%r = extractvalue {pair} %o, 0\n  %s = extractvalue {pair} %o, 1",
               f"declare {pair} @llvm.{op}.with.overflow.{kind}({kind}, {kind})")
  yield call("abs", kind, 1, extra="i1 false")
  for op in ("ctpop", "bitreverse"): yield call(op, kind, 1)
  for op in ("ctlz", "cttz"): yield call(op, kind, 1, extra="i1 false")
  # LLVM 22.1 copies only the low half of each dword for this one at O0 (v_mov_b16 before v_perm_b32).
  if n > 8: yield replace(call("bswap", kind, 1), levels=(1, 2, 3) if n == 64 else (0, 1, 2, 3))
  for op in ("fshl", "fshr"):
    yield call(op, kind, 3)
    yield Case(_name(op, kind, "rotate"), (kind,), (kind,), f"%r = call {kind} @llvm.{op}.{kind}({kind} %a, {kind} %a, "
               f"{kind} 5)", f"declare {kind} @llvm.{op}.{kind}({kind}, {kind}, {kind})")
  wide = f"i{2 * n}"
  for sign in ("zext", "sext"):
    yield Case(_name("mulhi", sign, kind), two, (kind,), f"%x = {sign} {kind} %a to {wide}\n  %y = {sign} {kind} %b to "
               f"{wide}\n  %m = mul {wide} %x, %y\n  %h = lshr {wide} %m, {n}\n  %r = trunc {wide} %h to {kind}")
  # Patterns that instruction selection fuses.
  for name, text in {
    "add3": "%x = add T %a, %b\n  %r = add T %x, %c", "lshl_add": "%x = shl T %a, 3\n  %r = add T %x, %b",
    "add_lshl": "%x = add T %a, %b\n  %r = shl T %x, 2", "lshl_or": "%x = shl T %a, 5\n  %r = or T %x, %b",
    "and_or": "%x = and T %a, %b\n  %r = or T %x, %c", "or3": "%x = or T %a, %b\n  %r = or T %x, %c",
    "xor3": "%x = xor T %a, %b\n  %r = xor T %x, %c", "xad": "%x = xor T %a, %b\n  %r = add T %x, %c",
    "mad": "%x = mul T %a, %b\n  %r = add T %x, %c", "not": "%r = xor T %a, -1", "neg": "%r = sub T 0, %a",
    "andn": "%x = xor T %b, -1\n  %r = and T %a, %x", "xnor": "%x = xor T %a, %b\n  %r = xor T %x, -1",
    "bfe_u": "%x = lshr T %a, 3\n  %r = and T %x, 31",
    "bfe_s": f"%x = shl T %a, {n - 7}\n  %r = ashr T %x, {n - 4}",
    "bfi": "%x = xor T %b, %c\n  %y = and T %x, %a\n  %r = xor T %y, %c",
    "bfm": f"%m = and T %a, {n - 1}\n  %x = shl T 1, %m\n  %r = sub T %x, 1",
    "sub_rev": "%r = sub T 100, %a", "mul_const": "%r = mul T %a, 37",
  }.items():
    count = 1 + ("%b" in text) + ("%c" in text)
    yield Case(_name(name, kind), (kind,) * count, (kind,), text.replace("T", kind))
  for op in ("umin", "umax", "smin", "smax"):
    f = f"{kind} @llvm.{op}.{kind}"
    other = op[0] + ("max" if op.endswith("min") else "min")
    yield Case(_name(op + "3", kind), (kind,) * 3, (kind,), f"%x = call {f}({kind} %a, {kind} %b)\n  "
               f"%r = call {f}({kind} %x, {kind} %c)", f"declare {f}({kind}, {kind})")
    yield Case(_name("clamp", op, kind), (kind,), (kind,), f"%x = call {f}({kind} %a, {kind} 17)\n  %r = call {kind} "
               f"@llvm.{other}.{kind}({kind} %x, {kind} {5 if op.endswith('min') else 99})",
               f"declare {f}({kind}, {kind})\ndeclare {kind} @llvm.{other}.{kind}({kind}, {kind})")
  for other, bits in INTS.items():
    if bits > n:
      for op in ("zext", "sext"):
        yield Case(_name(op, kind, other), (kind,), (other,), f"%r = {op} {kind} %a to {other}")
    elif bits < n: yield Case(_name("trunc", kind, other), (kind,), (other,), f"%r = trunc {kind} %a to {other}")
  for op in ("zext", "sext"): yield Case(_name(op, "i1", kind), ("i1",), (kind,), f"%r = {op} i1 %a to {kind}")
  yield Case(_name("trunc", kind, "i1"), (kind,), ("i1",), f"%r = trunc {kind} %a to i1")


def wide_integers() -> Iterator[Case]:
  """24-bit and 128-bit arithmetic, carries, mixed widths."""
  m = "%x = and i32 %a, 16777215\n  %y = and i32 %b, 16777215\n  "
  s = "%p = shl i32 %a, 8\n  %x = ashr i32 %p, 8\n  %q = shl i32 %b, 8\n  %y = ashr i32 %q, 8\n  "
  for name, head, ext in (("u24", m, "zext"), ("i24", s, "sext")):
    yield Case(f"mul_{name}", ("i32", "i32"), ("i32",), head + "%r = mul i32 %x, %y")
    yield Case(f"mad_{name}", ("i32",) * 3, ("i32",), head + "%t = mul i32 %x, %y\n  %r = add i32 %t, %c")
    yield Case(f"mulhi_{name}", ("i32", "i32"), ("i32",), head + f"%u = {ext} i32 %x to i64\n  %v = {ext} i32 %y to "
               f"i64\n"
               "  %t = mul i64 %u, %v\n  %h = lshr i64 %t, 32\n  %r = trunc i64 %h to i32")
  for ext in ("zext", "sext"):
    yield Case(f"mad64_{ext}", ("i32", "i32", "i64"), ("i64",), f"%x = {ext} i32 %a to i64\n  %y = {ext} i32 %b to "
               f"i64\n"
               "  %t = mul i64 %x, %y\n  %r = add i64 %t, %c")
    yield Case(f"mad32_16_{ext}", ("i16", "i16", "i32"), ("i32",), f"%x = {ext} i16 %a to i32\n  %y = {ext} i16 %b to "
               f"i32"
               "\n  %t = mul i32 %x, %y\n  %r = add i32 %t, %c")
  for op in ("add", "sub", "mul", "and", "xor"):
    yield Case(f"{op}_i128", ("i64", "i64", "i64"), ("i64", "i64"),
               "%x = zext i64 %a to i128\n  %h = zext i64 %b to i128\n  %hh = shl i128 %h, 64\n  %y = or i128 %x, "
               "%hh\n  "
               f"%z = sext i64 %c to i128\n  %t = {op} i128 %y, %z\n  %r = trunc i128 %t to i64\n  "
               "%u = lshr i128 %t, 64\n  %s = trunc i128 %u to i64")
  for op in ("shl", "lshr", "ashr"):
    yield Case(f"{op}_i128", ("i64", "i64", "i8"), ("i64", "i64"),
               "%x = zext i64 %a to i128\n  %h = zext i64 %b to i128\n  %hh = shl i128 %h, 64\n  %y = or i128 %x, "
               "%hh\n  "
               f"%m = and i8 %c, 127\n  %z = zext i8 %m to i128\n  %t = {op} i128 %y, %z\n  %r = trunc i128 %t to "
               f"i64\n  "
               "%u = lshr i128 %t, 64\n  %s = trunc i128 %u to i64")
  for op in ("and", "or", "xor"): yield Case(f"{op}_i1", ("i1", "i1"), ("i1",), f"%r = {op} i1 %a, %b")
  yield Case("select_i1", ("i1",) * 3, ("i1",), "%r = select i1 %a, i1 %b, i1 %c")
  yield Case("uaddo_chain", ("i32",) * 3, ("i32", "i1"), "%o = call {i32, i1} @llvm.uadd.with.overflow.i32(i32 %a, "
             "i32 %b)"
             "\n  %t = extractvalue {i32, i1} %o, 0\n  %k = extractvalue {i32, i1} %o, 1\n  %z = zext i1 %k to i32\n  "
             "%q = call {i32, i1} @llvm.uadd.with.overflow.i32(i32 %t, i32 %z)\n  %w = extractvalue {i32, i1} %q, 0\n  "
             "%s = extractvalue {i32, i1} %q, 1\n  %r = add i32 %w, %c",
             "declare {i32, i1} @llvm.uadd.with.overflow.i32(i32, i32)")


FCMP: Final = ("oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno")


def floats(kind: str) -> Iterator[Case]:
  """Every float operation of one width; those that the chip rounds correctly must match bit for bit."""
  two = (kind, kind)
  for op in ("fadd", "fsub", "fmul", "fdiv"): yield Case(_name(op, kind), two, (kind,), f"%r = {op} {kind} %a, %b")
  for constant in ("0.5", "2.0", "-1.0", "3.0", "10.0"):
    for op in ("fadd", "fmul", "fdiv"):
      yield Case(_name(op, kind, constant.replace("-", "m")), (kind,), (kind,), f"%r = {op} {kind} %a, {constant}")
  yield Case(_name("frcp", kind), (kind,), (kind,), f"%r = fdiv {kind} 1.0, %a")
  yield Case(_name("fsub_mod", kind), two, (kind,), f"%x = fneg {kind} %a\n  %y = call {kind} "
             f"@llvm.fabs.{mangled(kind)}"
             f"({kind} %b)\n  %z = fneg {kind} %y\n  %r = fmul {kind} %x, %z",
             f"declare {kind} @llvm.fabs.{mangled(kind)}({kind})")
  yield Case(_name("fneg", kind), (kind,), (kind,), f"%r = fneg {kind} %a", bits=True)
  yield call("fabs", kind, 1, bits=True)
  yield call("copysign", kind, 2, bits=True)
  yield call("fma", kind, 3)
  for op in ("minnum", "maxnum"): yield call(op, kind, 2, signless=True)
  for op in ("minimum", "maximum", "minimumnum", "maximumnum"): yield call(op, kind, 2)
  for op in ("floor", "ceil", "trunc", "rint", "nearbyint", "roundeven", "round", "sqrt"):
    yield call(op, kind, 1)
  yield replace(call("canonicalize", kind, 1), body=f"%r = fadd {kind} %a, -0.0", gpu=call("canonicalize", kind,
    1).body)
  for predicate in FCMP:
    yield Case(_name("fcmp", predicate, kind), two, ("i1",), f"%r = fcmp {predicate} {kind} %a, %b")
  yield Case(_name("fselect", kind), (kind,) * 3, (kind,),
             f"%x = fcmp olt {kind} %a, %b\n  %r = select i1 %x, {kind} %b, {kind} %c", bits=True)
  for mask in (3, 4 + 512, 8 + 256, 16 + 128, 32 + 64, 1023, 0x1F8):
    yield Case(_name("class", kind, str(mask)), (kind,), ("i1",), f"%r = call i1 @llvm.is.fpclass.{mangled(kind)}"
               f"({kind} %a, i32 {mask})", f"declare i1 @llvm.is.fpclass.{mangled(kind)}({kind}, i32 immarg)")
  m = mangled(kind)
  if kind != "bfloat":
    yield Case(_name("ldexp", kind), (kind, "i16"), (kind,), f"%e = sext i16 %b to i32\n  %m = srem i32 %e, 300\n  "
               f"%r = call {kind} @llvm.ldexp.{m}.i32({kind} %a, i32 %m)", f"declare {kind} "
               f"@llvm.ldexp.{m}.i32({kind}, i32)")
    yield Case(_name("frexp", kind), (kind,), (kind, "i32"), f"%f = call {kind} @llvm.fabs.{m}({kind} %a)\n  "
               f"%fin = fcmp one {kind} %f, 0x7FF0000000000000\n  ".replace("0x7FF0000000000000", _inf(kind)) +
               f"%v = select i1 %fin, {kind} %a, {kind} 1.0\n  "
               f"%p = call {{{kind}, i32}} @llvm.frexp.{m}.i32({kind} %v)\n  %r = extractvalue {{{kind}, i32}} %p, "
               f"0\n  "
               f"%s = extractvalue {{{kind}, i32}} %p, 1",
               f"declare {{{kind}, i32}} @llvm.frexp.{m}.i32({kind})\ndeclare {kind} @llvm.fabs.{m}({kind})")
  for to in INTS:
    for op in ("fptosi", "fptoui"):
      full = f"{to} @llvm.{op}.sat.{to}.{m}"
      yield Case(_name(op, "sat", kind, to), (kind,), (to,), f"%r = call {full}({kind} %a)", f"declare {full}({kind})")
    for op in ("sitofp", "uitofp"): yield Case(_name(op, to, kind), (to,), (kind,), f"%r = {op} {to} %a to {kind}")
  for op in ("sitofp", "uitofp"): yield Case(_name(op, "i1", kind), ("i1",), (kind,), f"%r = {op} i1 %a to {kind}")
  sizes = {"half": 16, "bfloat": 16, "float": 32, "double": 64}
  for other in FLOATS:
    if sizes[other] > sizes[kind]:
      yield Case(_name("fpext", kind, other), (kind,), (other,), f"%r = fpext {kind} %a to {other}")
    if sizes[other] < sizes[kind]:
      yield Case(_name("fptrunc", kind, other), (kind,), (other,), f"%r = fptrunc {kind} %a to {other}")
  integer = f"i{sizes[kind]}"
  yield Case(_name("bitcast", kind), (kind, integer), (integer, kind), f"%r = bitcast {kind} %a to {integer}\n  "
             f"%s = bitcast {integer} %b to {kind}", bits=True)
  yield Case(_name("fract", kind), (kind,), (kind,), f"%f = call {kind} @llvm.floor.{m}({kind} %a)\n  "
             f"%r = fsub {kind} %a, %f", f"declare {kind} @llvm.floor.{m}({kind})")
  yield Case(_name("mad", kind), (kind,) * 3, (kind,), f"%x = fmul {kind} %a, %b\n  %r = fadd {kind} %x, %c")
  yield Case(_name("clamp01", kind), (kind,), (kind,), f"%x = call {kind} @llvm.maxnum.{m}({kind} %a, {kind} 0.0)\n  "
             f"%r = call {kind} @llvm.minnum.{m}({kind} %x, {kind} 1.0)",
             f"declare {kind} @llvm.maxnum.{m}({kind}, {kind})\ndeclare {kind} @llvm.minnum.{m}({kind}, {kind})",
             signless=True)
  for op in ("minnum", "maxnum"):
    f = f"{kind} @llvm.{op}.{m}"
    yield Case(_name(op + "3", kind), (kind,) * 3, (kind,), f"%x = call {f}({kind} %a, {kind} %b)\n  %r = call {f}"
               f"({kind} %x, {kind} %c)", f"declare {f}({kind}, {kind})", signless=True)
  yield Case(_name("med3", kind), (kind,), (kind,), f"%x = call {kind} @llvm.maxnum.{m}({kind} %a, {kind} 2.0)\n  "
             f"%r = call {kind} @llvm.minnum.{m}({kind} %x, {kind} 4.0)",
             f"declare {kind} @llvm.maxnum.{m}({kind}, {kind})\ndeclare {kind} @llvm.minnum.{m}({kind}, {kind})")


def _inf(kind: str) -> str:
  return {"half": "0xH7C00", "bfloat": "0xR7F80", "float": "0x7FF0000000000000", "double": "0x7FF0000000000000"}[kind]


def approximations() -> Iterator[Case]:
  """Functions that the chip approximates; the bounds are those of the RDNA3 manual and OpenCL's of the expansions."""
  for kind, ulp in (("float", 4.0), ("half", 2.0)):
    for op in ("exp2", "log2", "exp", "log", "log10", "exp10"):
      yield call(op, kind, 1, ulp=ulp, absolute=1e-7 if op.startswith("log") else 0.0)
    for op in ("sin", "cos"): yield replace(call(op, kind, 1), absolute=8e-3 if kind == "half" else 1e-3, fill=turns)
    for flag in ("afn", "arcp"):
      yield Case(_name("fdiv", flag, kind), (kind, kind), (kind,), f"%r = fdiv {flag} {kind} %a, %b", ulp=4,
                 fill=moderate)


def packed() -> Iterator[Case]:
  """Vectors of 16-bit and 32-bit elements; gfx11 has packed forms of the first."""
  for kind in ("<2 x i16>", "<4 x i16>", "<2 x i32>", "<4 x i8>"):
    n = {"i16": 16, "i32": 32, "i8": 8}[kind.split()[2][:-1]]
    for op in ("add", "sub", "mul", "and", "or", "xor"):
      yield Case(_name(op, kind), (kind, kind), (kind,), f"%r = {op} {kind} %a, %b")
    for op in ("shl", "lshr", "ashr"):
      mask = f"<{', '.join([f'{kind.split()[2][:-1]} {n - 1}'] * int(kind[1]))}>"
      yield Case(_name(op, kind), (kind, kind), (kind,), f"%m = and {kind} %b, {mask}\n  %r = {op} {kind} %a, %m")
    for op in ("smin", "smax", "umin", "umax", "uadd.sat", "sadd.sat", "usub.sat", "ssub.sat"): yield call(op, kind, 2)
    yield Case(_name("mad", kind), (kind,) * 3, (kind,), f"%x = mul {kind} %a, %b\n  %r = add {kind} %x, %c")
    yield Case(_name("reverse", kind), (kind, kind), (kind,), f"%r = shufflevector {kind} %a, {kind} %b, <{kind[1]} x "
               f"i32> "
               f"<{', '.join(f'i32 {2 * int(kind[1]) - 1 - i}' for i in range(int(kind[1])))}>")
  for kind in ("<2 x half>", "<4 x half>", "<2 x bfloat>", "<2 x float>", "<2 x double>"):
    for op in ("fadd", "fsub", "fmul"): yield Case(_name(op, kind), (kind, kind), (kind,), f"%r = {op} {kind} %a, %b")
    yield Case(_name("fneg", kind), (kind, kind), (kind,), f"%n = fneg {kind} %a\n  %r = fadd {kind} %n, %b")
    yield Case(_name("fneg_hi", kind), (kind, kind), (kind,), f"%e = extractelement {kind} %a, i32 1\n  %n = fneg "
               f"{kind.split()[2][:-1]} %e\n  %v = insertelement {kind} %a, {kind.split()[2][:-1]} %n, i32 0\n  "
               f"%r = fmul {kind} %v, %b")
    yield call("fma", kind, 3)
    for op in ("minnum", "maxnum"): yield call(op, kind, 2, signless=True)
    for op in ("floor", "trunc", "rint"): yield call(op, kind, 1)
    scalar = kind.split()[2][:-1]
    yield Case(_name("swap", kind), (kind, kind), (kind,), f"%s2 = shufflevector {kind} %b, {kind} %b, <{kind[1]} x "
               f"i32> <"
               + ", ".join(f"i32 {int(kind[1]) - 1 - i}" for i in range(int(kind[1]))) + f">\n  %r = fadd {kind} %a, "
               f"%s2")
    yield Case(_name("pick", kind), (kind, "i32"), (scalar,), f"%m = and i32 %b, {int(kind[1]) - 1}\n  "
               f"%r = extractelement {kind} %a, i32 %m", bits=True)
  # One f16 factor of a 32-bit fma: the mixed-precision instructions.
  yield Case("fma_mix", ("half", "half", "float"), ("float",), "%x = fpext half %a to float\n  %y = fpext half %b to "
             "float\n"
             "  %r = call float @llvm.fma.f32(float %x, float %y, float %c)", "declare float @llvm.fma.f32(float, "
             "float, float)")
  yield Case("fma_mixlo", ("half", "half", "float"), ("half",), "%x = fpext half %a to float\n  %y = fpext half %b to "
             "float\n"
             "  %z = fneg float %y\n  %f = call float @llvm.fma.f32(float %x, float %z, float %c)\n  "
             "%r = fptrunc float %f to half", "declare float @llvm.fma.f32(float, float, float)")
  yield Case("fma_mixhi", ("<2 x half>", "<2 x half>", "<2 x float>"), ("<2 x half>",),
             "%x = fpext <2 x half> %a to <2 x float>\n  %y = fpext <2 x half> %b to <2 x float>\n  "
             "%f = call <2 x float> @llvm.fma.v2f32(<2 x float> %x, <2 x float> %y, <2 x float> %c)\n  "
             "%r = fptrunc <2 x float> %f to <2 x half>",
             "declare <2 x float> @llvm.fma.v2f32(<2 x float>, <2 x float>, <2 x float>)")


def all_scalar() -> list[Case]:
  """All cases of this module."""
  return [*(c for k in INTS for c in integers(k)), *wide_integers(), *(c for k in FLOATS for c in floats(k)),
          *approximations(), *packed()]
