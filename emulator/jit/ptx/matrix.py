"""mma, ldmatrix, stmatrix, movmatrix as LLVM IR; how a matrix is spread over a warp is told in `emulator.ptx.matrix`.

A register of all lanes holds eight rows of `4 n` elements that lie side by side, n of them in each lane. So as one
vector of elements it is those rows, one behind the other. Products are made by a function for each kind of matrix:
for each row of the left operand, all eight columns at once, in f64 and in the reference's order, or in i32.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from tinyhw.core.memory import Access
from tinyhw.emulator.jit.ptx import access
from tinyhw.emulator.jit.ptx.emit import Lanes
from tinyhw.emulator.jit.ptx.shapes import Info
from tinyhw.emulator.jit.values import Emitter, Untranslatable, Value, convert, gather
from tinyhw.emulator.ptx import addresses, memory, operands
from tinyhw.emulator.ptx.matrix import BITS
from tinyhw.emulator.ptx.scope import Line
from tinyhw.emulator.values.ops import F16, F32, F64, I32, U32, U64
from tinyhw.isa.ptx.forms import Form

ELEMENTS: Final = {"f16": 2, "bf16": 2, "tf32": 1, "s8": 4, "u8": 4}  # in a register; sums of products are exact
COLUMNS: Final = 8


def _shuffled(e: Emitter, t: str, n: int, x: str, order: Sequence[int], y: str = "poison") -> str:
  places = ", ".join(f"i32 {k}" for k in order)
  return e.op(f"shufflevector <{n} x {t}> {x}, <{n} x {t}> {y}, <{len(order)} x i32> <{places}>")


def _doubles(e: Emitter, words: Value, type_: str) -> str:
  """The elements of a register of all lanes as <32 n x double>."""
  text = words.view(U32).in_lanes()
  if type_ == "tf32":
    cut = e.op(f"and <32 x i32> {text}, splat (i32 {0xFFFFE000 - (1 << 32)})")
    return e.op(f"fpext <32 x float> {e.op(f'bitcast <32 x i32> {cut} to <32 x float>')} to <32 x double>")
  halves = e.op(f"bitcast <32 x i32> {text} to <64 x i16>")
  if type_ == "f16":
    floats = e.op(f"fpext <64 x half> {e.op(f'bitcast <64 x i16> {halves} to <64 x half>')} to <64 x float>")
  else:
    wide = e.op(f"zext <64 x i16> {halves} to <64 x i32>")
    floats = e.op(f"bitcast <64 x i32> {e.op(f'shl <64 x i32> {wide}, splat (i32 16)')} to <64 x float>")
  return e.op(f"fpext <64 x float> {floats} to <64 x double>")


def _integers(e: Emitter, words: Value, type_: str) -> str:
  """The elements of 8 bits of a register of all lanes as <128 x i32>."""
  parts = e.op(f"bitcast <32 x i32> {words.view(U32).in_lanes()} to <128 x i8>")
  return e.op(f"{'sext' if type_ == 's8' else 'zext'} <128 x i8> {parts} to <128 x i32>")


def _function(n: int, k: int, t: str, saturates: bool) -> tuple[str, str]:
  """(name, text) of what multiplies: rows of the left operand lie in registers of eight rows of 4 n columns."""
  name, width, f = f"product.{n}.{k}{'.sat' * saturates}", 4 * n, "f" * (t == "double")
  lines = [f"define private void @{name}(ptr noalias %a, ptr noalias %b, ptr noalias %c) noinline {{", "entry:",
           "  br label %row", "row:", "  %i = phi i64 [ 0, %entry ], [ %next, %row ]",
           "  %half = lshr i64 %i, 3", "  %g = and i64 %i, 7",
           f"  %block = mul i64 %half, {8 * width}", f"  %line = mul i64 %g, {width}",
           "  %first = add i64 %block, %line",
           f"  %start = getelementptr {t}, ptr %a, i64 %first"]
  total = "zeroinitializer"
  for at in range(k):
    place = at // width * 2 * 8 * width + at % width
    lines += [f"  %p{at} = getelementptr {t}, ptr %start, i64 {place}", f"  %x{at} = load {t}, ptr %p{at}",
              f"  %i{at} = insertelement <8 x {t}> poison, {t} %x{at}, i64 0",
              f"  %s{at} = shufflevector <8 x {t}> %i{at}, <8 x {t}> poison, <8 x i32> zeroinitializer",
              f"  %q{at} = getelementptr {t}, ptr %b, i64 {8 * at}", f"  %y{at} = load <8 x {t}>, ptr %q{at}",
              f"  %m{at} = {f}mul <8 x {t}> %s{at}, %y{at}", f"  %t{at} = {f}add <8 x {t}> {total}, %m{at}"]
    total = f"%t{at}"
  lines += ["  %to = shl i64 %i, 3", f"  %place = getelementptr {t}, ptr %c, i64 %to",
            f"  %old = load <8 x {t}>, ptr %place"]
  # a sum of products is far from the end of i32, so that one more addition saturates as the whole would
  if saturates: lines.append(f"  %sum = call <8 x i32> @llvm.sadd.sat.v8i32(<8 x i32> {total}, <8 x i32> %old)")
  else: lines.append(f"  %sum = {f}add <8 x {t}> {total}, %old")
  lines += [f"  store <8 x {t}> %sum, ptr %place", "  %next = add i64 %i, 1", "  %over = icmp eq i64 %next, 16",
            "  br i1 %over, label %done, label %row", "done:", "  ret void", "}"]
  return name, "\n".join(lines)


@access.emits("mma")
def mma(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """A product of matrices of f16, bf16, tf32, or integers of 8 bits."""
  i, e = line.instruction, g.e
  shape = next(re.fullmatch(r"m(\d+)n8k(\d+)", m) for m in i.modifiers if m[0] == "m" and m[1].isdigit())
  kinds = [m for m in i.modifiers if m in BITS]
  if i.modifiers[0].startswith("sp"): raise Untranslatable("no compiled form")
  if shape is None or len(kinds) != 4 or shape[1] != "16" or kinds[0] != kinds[3] \
      or not {*kinds[1:3]} <= ({"s8", "u8"} if kinds[0] == "s32" else {"f16", "bf16", "tf32"}) or kinds[0] == "f64":
    raise Untranslatable("of such matrices")
  k, d, type_ = int(shape[2]), kinds[0], kinds[1]
  n, whole = ELEMENTS[type_], d == "s32"
  word = "b32" if d == "f16" else d
  t = "i32" if whole else "double"
  each = 4 if whole else 8
  elements = _integers if whole else _doubles
  parts = [operands.elements(line, o) for o in i.operands]
  left, right = ([operands.reader(g.code, line, o, "b32")(g) for o in p] for p in parts[1:3])  # type: ignore[arg-type]
  added = [operands.reader(g.code, line, o, word)(g) for o in parts[3]]  # type: ignore[arg-type]
  writes = [operands.writer(g.code, line, o, word) for o in parts[0]]
  size = 32 * n
  for name, count in (("left", len(left) * size), ("right", k * COLUMNS), ("sums", 16 * COLUMNS)):
    e.stack[f"{name}.{t}.{count}"] = f"alloca [{count} x {t}], align 64"
  a, b, c = f"%left.{t}.{len(left) * size}", f"%right.{t}.{k * COLUMNS}", f"%sums.{t}.{16 * COLUMNS}"
  for r, words in enumerate(left):
    e.do(f"store <{size} x {t}> {elements(e, words, type_)}, ptr {g.pointer(a, each * r * size)}, align 64")
  for r, words in enumerate(right):  # columns lie side by side in registers, rows in memory
    order = [column * 4 * n + at for at in range(4 * n) for column in range(COLUMNS)]
    text = _shuffled(e, t, size, elements(e, words, kinds[2]), order)
    e.do(f"store <{size} x {t}> {text}, ptr {g.pointer(b, each * r * size)}, align 64")
  for h in range(2):
    if d == "f16": rows = _doubles(e, added[h], "f16")
    else:
      x, y = (v.in_lanes() for v in added[2 * h:2 * h + 2])
      rows = _shuffled(e, "i32" if whole else "float", 32, x, [at // 2 + 32 * (at & 1) for at in range(64)], y)
      if not whole: rows = e.op(f"fpext <64 x float> {rows} to <64 x double>")
    e.do(f"store <64 x {t}> {rows}, ptr {g.pointer(c, 64 * each * h)}, align 64")
  saturates = "satfinite" in form.modifiers
  name, text = _function(n, k, t, saturates)
  if saturates: e.declared["llvm.sadd.sat.v8i32"] = "declare <8 x i32> @llvm.sadd.sat.v8i32(<8 x i32>, <8 x i32>)"
  if text not in e.constants: e.constants.append(text)
  e.do(f"call void @{name}(ptr {a}, ptr {b}, ptr {c})")
  for h in range(2):
    rows = e.op(f"load <64 x {t}>, ptr {g.pointer(c, 64 * each * h)}, align 64")
    if d == "f16":
      odd = convert(Value(_Wide(e, 64), rows, F64, True), F16)
      raw = e.op(f"bitcast <64 x half> {odd.text} to <32 x i32>")
      writes[h](g, Value(e, raw, U32, True))  # type: ignore[arg-type]
      continue
    if not whole: rows = e.op(f"fptrunc <64 x double> {rows} to <64 x float>")
    for at in range(2):
      part = _shuffled(e, "i32" if whole else "float", 64, rows, range(at, 64, 2))
      writes[2 * h + at](g, Value(e, part, I32 if whole else F32, True))  # type: ignore[arg-type]


class _Wide(Emitter):
  """The same text with wider vectors."""

  def __init__(self, e: Emitter, lanes: int) -> None:
    self.__dict__ = dict(e.__dict__)
    self._of = e
    self.lanes, self._splats = lanes, {}

  def op(self, text: str) -> str: return self._of.op(text)

  def do(self, text: str) -> None: self._of.do(text)


@access.emits("ldmatrix")
def ldmatrix(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """Rows of 16 bytes of shared memory, at the addresses of eight lanes a matrix."""
  i, e = line.instruction, g.e
  if memory.space_of(form.modifiers) != "shared" or "b16" not in form.modifiers:
    raise Untranslatable("of such memory or elements")
  count = next(int(m[1]) for m in ("x1", "x2", "x4") if m in form.modifiers)
  writes = [operands.writer(g.code, line, o, "b32") for o in operands.elements(line, i.operands[0])]
  at = addresses.address(g.code, line, i.operands[1], "shared")(g)  # type: ignore[arg-type]
  at = convert(at.view(U32) if at.dtype.itemsize == 4 else at.view(U64), U64)
  rows = _shuffled(e, "i64", 32, at.in_lanes(), [lane % (8 * count) for lane in range(32)])
  site = access.Site(access.SHARED, Value(e, rows, U64, True), None, 4, 4, Access.READ, None)

  def fast(host: Value) -> list[Value]:
    out = []
    for k in range(count):
      lanes = _shuffled(e, "i64", 32, host.text, [8 * k + lane // 4 for lane in range(32)])
      places = Value(e, lanes, U64, True) + e.vector(U64, [4 * (lane % 4) for lane in range(32)])
      pointers = e.op(f"inttoptr <32 x i64> {places.text} to <32 x ptr>")
      words = gather(e, "i32", pointers, "splat (i1 true)")
      out.append(Value(e, transposed(e, words) if "trans" in form.modifiers else words, U32, True))
    return out
  for write, value in zip(writes, access.near(g, site).run(fast, list)): write(g, value)  # type: ignore[arg-type]


@access.emits("stmatrix")
def stmatrix(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """The other way: what lanes hold of a matrix goes to the addresses of its rows."""
  i, e = line.instruction, g.e
  if memory.space_of(form.modifiers) != "shared": raise Untranslatable("of such memory")
  count = next(int(m[1]) for m in ("x1", "x2", "x4") if m in form.modifiers)
  sources = operands.elements(line, i.operands[1])
  words = [operands.reader(g.code, line, o, "b32")(g).in_lanes() for o in sources]  # type: ignore[arg-type]
  if "trans" in form.modifiers: words = [transposed(e, w) for w in words]
  at = addresses.address(g.code, line, i.operands[0], "shared")(g)  # type: ignore[arg-type]
  at = convert(at.view(U32) if at.dtype.itemsize == 4 else at.view(U64), U64)
  rows = _shuffled(e, "i64", 32, at.in_lanes(), [lane % (8 * count) for lane in range(32)])
  site = access.Site(access.SHARED, Value(e, rows, U64, True), None, 4, 4, Access.WRITE, None)
  name = "llvm.masked.scatter.v32i32.v32p0"
  e.declared[name] = f"declare void @{name}(<32 x i32>, <32 x ptr>, <32 x i1>)"

  def fast(host: Value) -> list[Value]:
    for k, word in enumerate(words):
      lanes = _shuffled(e, "i64", 32, host.text, [8 * k + lane // 4 for lane in range(32)])
      places = Value(e, lanes, U64, True) + e.vector(U64, [4 * (lane % 4) for lane in range(32)])
      pointers = e.op(f"inttoptr <32 x i64> {places.text} to <32 x ptr>")
      e.do(f"call void @{name}(<32 x i32> {word}, <32 x ptr> align 4 {pointers}, <32 x i1> splat (i1 true))")
    return []
  access.near(g, site).run(fast, list)


def transposed(e: Emitter, words: str) -> str:
  """The transpose of a matrix of 8 x 8 elements of 16 bits."""
  halves = e.op(f"bitcast <32 x i32> {words} to <64 x i16>")
  turned = _shuffled(e, "i16", 64, halves, [at % 8 * 8 + at // 8 for at in range(64)])
  return e.op(f"bitcast <64 x i16> {turned} to <32 x i32>")


@access.emits("movmatrix")
def movmatrix(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """The transpose of a matrix in registers."""
  i = line.instruction
  words = operands.reader(g.code, line, i.operands[1], "b32")(g)  # type: ignore[arg-type]
  turned = Value(g.e, transposed(g.e, words.in_lanes()), U32, True)
  operands.writer(g.code, line, i.operands[0], "b32")(g, turned)  # type: ignore[arg-type]


@access.emits("cp")
def cp(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """cp.async of 4, 8 or 16 bytes; where none are read, zeros follow."""
  i, e, o, m = line.instruction, g.e, g.o, form.modifiers
  if "bulk" in m or any(x.startswith("mbarrier") for x in m): raise Untranslatable("no compiled form")
  if not m & {"ca", "cg"}: return
  size = operands.immediate(line, i.operands[2], "u32")
  width = 0 if size is None else int(size)
  if width not in {4, 8, 16}: raise Untranslatable("of such a size")
  source = access.site_of(g, line, _in(form, "global"), i.operands[1], 4, width // 4, Access.READ)
  target = access.site_of(g, line, _in(form, "shared"), i.operands[0], 4, width // 4, Access.WRITE)
  given = None
  if len(i.operands) - ("L2::cache_hint" in m) > 3:
    r = operands.register(line, i.operands[3])
    if r is not None and r.type == "pred": raise Untranslatable("with a source to ignore")
    given = operands.reader(g.code, line, i.operands[3], "u32")(g)  # type: ignore[arg-type]
    if given.bits is not None and given.bits >= width: given = None
  if given is not None:
    part = (given > 0) & (given < width)
    here = part if target.mask is None else part & target.mask
    fine = e.new_label("whole")
    e.do(f"br i1 {e.op(f'icmp eq {g.mask_type} {g.bits(here)}, 0')}, label %{fine}, label %{g.deopt()}, !prof !1")
    e.start(fine)
    all_of = given >= width
    if not all_of.wide: all_of = Value(e, all_of.in_lanes(), all_of.dtype, True)
    source.mask = all_of if source.mask is None else all_of & source.mask
  if source.one and source.mask is not None:  # nobody may be there
    source.base, source.steps = Value(e, source.base.in_lanes(), U64, True), None
  values = access.load(g, source)
  if given is not None:
    assert source.mask is not None
    values = [o.where(source.mask, v, o.const("u32", 0)) for v in values]
  access.store(g, target, values)


def _in(form: Form, space: str) -> Form:
  """The form with one state space."""
  kept = frozenset(x for x in form.modifiers if x.partition("::")[0] not in {"shared", "global"})
  return Form(form.name, form.row, kept | {space}, form.types, form.results, form.sources)
