"""mma, ldmatrix, stmatrix, movmatrix as LLVM IR; `emulator.ptx.tensorcore.matrix` tells how a warp holds a matrix.

A register of all lanes holds eight rows of `4 n` elements that lie side by side, n of them in each lane. So as one
vector of elements it is those rows, one behind the other. Products are made by a function for each kind of matrix:
for each row of the left operand, all eight columns at once, in f64 and in the reference's order, or in i32.
"""
from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from tinyhw.core.environment import digits
from tinyhw.core.memory import Access
from tinyhw.emulator.jit.ptx.memory import access, bulk, clocks, mbarrier, watched
from tinyhw.emulator.jit.ptx.module.emit import Lanes
from tinyhw.emulator.jit.ptx.module.shapes import Info
from tinyhw.emulator.jit.ptx.routine import defined
from tinyhw.emulator.jit.ptx.tensorcore import products, sparse
from tinyhw.emulator.jit.values import Emitter, Untranslatable, Value, convert, gather
from tinyhw.emulator.jit.vectors import ALIGNED, scatter
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.memory import addresses, spaces
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.ptx.tensorcore.matrix import BITS, Quarters
from tinyhw.emulator.values.ops import F16, F32, F64, U32, U64
from tinyhw.isa.ptx.forms import Form
from tinyhw.isa.ptx.model import Operand

# elements in a register; sums of products of numbers of 4 and 8 bits are exact, of bits a word is one element
ELEMENTS: Final = {"f16": 2, "bf16": 2, "tf32": 1, "s8": 4, "u8": 4, "s4": 8, "u4": 8, "e4m3": 4, "e5m2": 4, "b1": 1,
                   "f64": 1}
_FLOATS: Final = frozenset({"f16", "bf16", "tf32", "e4m3", "e5m2"})
COLUMNS: Final = 8



def one(g: Lanes, x: Value) -> Value:
  """What a warp's first thread has."""
  if not x.wide: return x
  return Value(g.e, g.e.op(f"extractelement {x.type} {x.text}, i64 0"), x.dtype, False)


def shuffled(e: Emitter, t: str, n: int, x: str, order: Sequence[int], y: str = "poison") -> str:
  """Elements of one or two vectors of n."""
  places = ", ".join(f"i32 {k}" for k in order)
  return e.op(f"shufflevector <{n} x {t}> {x}, <{n} x {t}> {y}, <{len(order)} x i32> <{places}>")


def doubles_of(e: Emitter, raw: str, size: int, type_: str) -> str:
  """The elements of a vector of bytes as doubles."""
  n = size * 8 // BITS[type_]
  if type_ == "tf32":
    words = e.op(f"bitcast <{size} x i8> {raw} to <{n} x i32>")
    cut = e.op(f"and <{n} x i32> {words}, splat (i32 {0xFFFFE000 - (1 << 32)})")
    floats = e.op(f"bitcast <{n} x i32> {cut} to <{n} x float>")
  elif type_ == "bf16":
    parts = e.op(f"bitcast <{size} x i8> {raw} to <{n} x i16>")
    wide = e.op(f"zext <{n} x i16> {parts} to <{n} x i32>")
    floats = e.op(f"bitcast <{n} x i32> {e.op(f'shl <{n} x i32> {wide}, splat (i32 16)')} to <{n} x float>")
  elif type_ == "f16":
    floats = e.op(f"fpext <{n} x half> {e.op(f'bitcast <{size} x i8> {raw} to <{n} x half>')} to <{n} x float>")
  else: floats = _eighths(e, raw, n, type_)
  return e.op(f"fpext <{n} x float> {floats} to <{n} x double>")


def _eighths(e: Emitter, raw: str, n: int, type_: str) -> str:
  """Floats of 8 bits by way of f16: e5m2 is its upper half, e4m3 has the bits of a number that is 256 times less."""
  wide = e.op(f"zext <{n} x i8> {raw} to <{n} x i16>")
  up = e.op(f"shl <{n} x i16> {wide}, splat (i16 8)")
  if type_ == "e5m2": return e.op(f"fpext <{n} x half> {e.op(f'bitcast <{n} x i16> {up} to <{n} x half>')} "
                                  f"to <{n} x float>")
  sign = e.op(f"and <{n} x i16> {up}, splat (i16 -32768)")
  size = e.op(f"and <{n} x i16> {wide}, splat (i16 127)")
  bits = e.op(f"or <{n} x i16> {sign}, {e.op(f'shl <{n} x i16> {size}, splat (i16 7)')}")
  small = e.op(f"fpext <{n} x half> {e.op(f'bitcast <{n} x i16> {bits} to <{n} x half>')} to <{n} x float>")
  value = e.op(f"fmul <{n} x float> {small}, splat (float 2.560000e+02)")
  none = e.op(f"icmp eq <{n} x i16> {size}, splat (i16 127)")
  return e.op(f"select <{n} x i1> {none}, <{n} x float> splat (float 0x7FF8000000000000), <{n} x float> {value}")


def doubles(e: Emitter, words: Value, type_: str) -> str:
  """The elements of a register of all lanes as doubles."""
  if type_ == "f64": return words.view(F64).in_lanes()
  raw = e.op(f"bitcast <32 x i32> {words.view(U32).in_lanes()} to <128 x i8>")
  return doubles_of(e, raw, 128, type_)


def integers(e: Emitter, words: Value, type_: str) -> str:
  """The elements of 4 or 8 bits of a register of all lanes as i32; of bits, the words."""
  text = words.view(U32).in_lanes()
  if type_ == "b1": return text
  extend = "sext" if type_[0] == "s" else "zext"
  parts = e.op(f"bitcast <32 x i32> {text} to <128 x i8>")
  if type_ in {"s8", "u8"}: return e.op(f"{extend} <128 x i8> {parts} to <128 x i32>")
  shift = "ashr" if extend == "sext" else "lshr"
  low = e.op(f"{shift} <128 x i8> {e.op(f'shl <128 x i8> {parts}, splat (i8 4)')}, splat (i8 4)")
  high = e.op(f"{shift} <128 x i8> {parts}, splat (i8 4)")
  both = shuffled(e, "i8", 128, low, [at // 2 + 128 * (at & 1) for at in range(256)], high)
  return e.op(f"{extend} <256 x i8> {both} to <256 x i32>")


def _function(m: int, n: int, k: int, t: str, how: str) -> tuple[str, str]:
  """(name, text) of what multiplies: rows of the left operand lie in registers of eight rows of 4 n columns. `how`: ""
  for products that are exact, "apart" for others, "sat" for sums that saturate, "xor" and "and" for bits."""
  name, width, rows = f"product.{m}.{n}.{k}.{t}.{how}", 4 * n, products.block(COLUMNS)[0]
  left = [f"  %of = udiv i64 %d, {width}", f"  %within = urem i64 %d, {width}",
          f"  %of.first = mul i64 %of, {m * width}", "  %x.place = add i64 %of.first, %within",
          f"  %x.at = getelementptr {t}, ptr %a.at, i64 %x.place"]
  return name, "\n".join([
    f"define private void @{name}(ptr noalias %a, ptr noalias %b.at, ptr noalias %c) {ALIGNED} {{",
    "  br label %row", "row:", "  %i = phi i64 [ 0, %0 ], [ %next, %end ]", f"  %first = mul i64 %i, {width}",
    f"  %a.at = getelementptr {t}, ptr %a, i64 %first", "  %to = shl i64 %i, 3",
    f"  %c.at = getelementptr {t}, ptr %c, i64 %to",
    *products.depth(t, how, rows, COLUMNS, k, "row", COLUMNS, left, width),
    *products.added(t, how, rows, COLUMNS, COLUMNS), f"  %next = add i64 %i, {rows}",
    f"  %over = icmp eq i64 %next, {m}",
    "  br i1 %over, label %done, label %row", "done:", "  ret void", "}"])


INTRINSICS: Final = {
  name: f"declare {vector} @{name}({', '.join([vector] * count)})"
  for n in (8, 16) for name, vector, count in (
    (f"llvm.sadd.sat.v{n}i32", f"<{n} x i32>", 2), (f"llvm.ctpop.v{n}i32", f"<{n} x i32>", 1),
    (f"llvm.fmuladd.v{n}f64", f"<{n} x double>", 3))}
_KINDS: Final = {"s32": frozenset({"s8", "u8", "s4", "u4", "b1"}), "f64": frozenset({"f64"}), "f32": _FLOATS,
                 "f16": _FLOATS}


@access.emits("mma")
def mma(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """A product of matrices, of which the left one may be sparse."""
  i, e = line.instruction, g.e
  if any(m.startswith("kind::") for m in i.modifiers): raise Untranslatable("of such matrices")
  shape = next((re.fullmatch(r"(?a)m(\d+)n8k(\d+)", m) for m in i.modifiers if m[0] == "m" and digits(m[1])), None)
  if "m8n8k4" in i.modifiers and "f64" not in i.modifiers: return _quarters(g, line)
  kinds = [m for m in i.modifiers if m in BITS]
  if shape is None or len(kinds) != 4 or kinds[0] != kinds[3] \
      or not {*kinds[1:3]} <= _KINDS[kinds[0]]:
    raise Untranslatable("of such matrices")
  m, k, d, type_ = int(shape[1]), int(shape[2]), kinds[0], kinds[1]
  n, whole = ELEMENTS[type_], d == "s32"
  if type_ == "b1": k //= 32
  word, own = ("b32" if d == "f16" else d), ("b64" if d == "f64" else "b32")
  t = "i32" if whole else "double"
  each = 4 if whole else 8
  elements = integers if whole else doubles
  parts = [operands.elements(line, o) for o in i.operands[:4]]
  left, right = ([operands.reader(g.code, line, o, own)(g) for o in p] for p in parts[1:3])
  added = [operands.reader(g.code, line, o, word)(g) for o in parts[3]]
  writes = [operands.writer(g.code, line, o, word) for o in parts[0]]
  size = 32 * n
  for name, count in (("left", len(left) * size), ("right", k * COLUMNS), ("sums", m * COLUMNS)):
    e.stack[f"{name}.{t}.{count}"] = f"alloca [{count} x {t}], align 64"
  a, b, c = f"%left.{t}.{len(left) * size}", f"%right.{t}.{k * COLUMNS}", f"%sums.{t}.{m * COLUMNS}"
  for r, words in enumerate(left):
    e.do(f"store <{size} x {t}> {elements(e, words, type_)}, ptr {g.pointer(a, each * r * size)}, align 64")
  if i.modifiers[0].startswith("sp"):
    metadata = operands.reader(g.code, line, i.operands[4], "b32")(g)
    selector = int(operands.immediate(line, i.operands[5], "u32") or 0)
    a = sparse.expand(g, type_, k, (4 * n, 4 * n), t, a, metadata, selector)
  for r, words in enumerate(right):  # columns lie side by side in registers, rows in memory
    order = [column * 4 * n + at for at in range(4 * n) for column in range(COLUMNS)]
    text = shuffled(e, t, size, elements(e, words, kinds[2]), order)
    e.do(f"store <{size} x {t}> {text}, ptr {g.pointer(b, each * r * size)}, align 64")
  memory_type = {"s32": "i32", "f32": "float", "f64": "double"}.get(d, "")
  for h in range(m // 8):
    if d == "f16": rows = doubles(e, added[h], "f16")
    else:
      x, y = (v.in_lanes() for v in added[2 * h:2 * h + 2])
      rows = shuffled(e, memory_type, 32, x, [at // 2 + 32 * (at & 1) for at in range(64)], y)
      if d == "f32": rows = e.op(f"fpext <64 x float> {rows} to <64 x double>")
    e.do(f"store <64 x {t}> {rows}, ptr {g.pointer(c, 64 * each * h)}, align 64")
  how = "sat" if "satfinite" in form.modifiers else "apart" if d == "f64" else ""
  if type_ == "b1": how = "xor" if "xor" in form.modifiers else "and"
  name, text = _function(m, n, k, t, how)
  e.declared.update(INTRINSICS)
  if text not in e.constants: e.constants.append(text)
  e.do(f"call void @{name}(ptr {a}, ptr {b}, ptr {c})")
  for h in range(m // 8):
    rows = e.op(f"load <64 x {t}>, ptr {g.pointer(c, 64 * each * h)}, align 64")
    if d == "f16":
      writes[h](g, halves(e, rows))
      continue
    if d == "f32": rows = e.op(f"fptrunc <64 x double> {rows} to <64 x float>")
    for at in range(2):
      part = shuffled(e, memory_type, 64, rows, range(at, 64, 2))
      writes[2 * h + at](g, Value(e, part, operands.dtype_of(d), True))


_TAKEN: Final = """define private void @taken(ptr noalias %from, ptr %table, ptr noalias %to, i64 %count) noinline {
  br label %next
next:
  %i = phi i64 [ 0, %0 ], [ %i.next, %next ]
  %i.at = getelementptr i16, ptr %table, i64 %i
  %k = load i16, ptr %i.at
  %k.wide = zext i16 %k to i64
  %from.at = getelementptr double, ptr %from, i64 %k.wide
  %x = load double, ptr %from.at
  %to.at = getelementptr double, ptr %to, i64 %i
  store double %x, ptr %to.at
  %i.next = add i64 %i, 1
  %over = icmp eq i64 %i.next, %count
  br i1 %over, label %done, label %next
done:
  ret void
}"""


def _quarters(g: Lanes, line: Line) -> None:
  """Four products of 8 x 8 x 4: elements go to their places, and come from them, by tables."""
  e, q = g.e, Quarters(g.code, line)
  name, text = _function(8, 1, 4, "double", "")
  e.declared.update(INTRINSICS)
  defined(e, _TAKEN, text)
  rooms = {}
  for what, count in (("registers", 256), ("left", 128), ("right", 128), ("sums", 256)):
    rooms[what] = f"%quarters.{what}"
    e.stack[f"quarters.{what}"] = f"alloca [{count} x double], align 64"

  def moved(source: str, order: Any, to: str) -> None:
    numbers = ", ".join(f"i16 {k}" for k in order.tolist())
    table = f"@quarters.{hashlib.sha256(numbers.encode()).hexdigest()[:16]}"
    defined(e, f"{table} = private constant [{order.size} x i16] [{numbers}]")
    e.do(f"call void @taken(ptr {source}, ptr {table}, ptr {to}, i64 {order.size})")
  registers = rooms["registers"]
  for reads, places, columns, t, to in zip(q.reads, q.places[1:], (4, 8, 8), ("f16", "f16", q.types[1]),
                                           ("left", "right", "sums")):
    for r, read in enumerate(reads):
      n = 2 if t == "f16" else 1
      words = read(g)
      elements = doubles(e, words, t) if n == 2 else convert(words, F64).in_lanes()
      e.do(f"store <{32 * n} x double> {elements}, ptr {g.pointer(registers, 8 * 32 * n * r)}, align 64")
    moved(registers, np.argsort(_flat(places, columns, len(reads))), rooms[to])
  for k in range(4):
    a, b, c = (g.pointer(rooms[what], 8 * size * k) for what, size in (("left", 32), ("right", 32), ("sums", 64)))
    e.do(f"call void @{name}(ptr {a}, ptr {b}, ptr {c})")
  moved(rooms["sums"], _flat(q.places[0], 8, len(q.writes)), registers)
  for r, write in enumerate(q.writes):
    if q.types[0] == "f16":
      write(g, halves(e, e.op(f"load <64 x double>, ptr {g.pointer(registers, 8 * 64 * r)}, align 64")))
    else:
      rows = e.op(f"load <32 x double>, ptr {g.pointer(registers, 8 * 32 * r)}, align 64")
      write(g, convert(Value(e, rows, F64, True), F32))


def _flat(places: tuple[Any, Any], columns: int, registers: int) -> Any:
  """Where in four matrices, one behind the other, the elements of registers are, one register behind the other."""
  rows, at = places
  size = rows.size // 4
  flat = (np.arange(32)[:, None] >> 2 & 3) * size + rows * columns + at
  return flat.reshape(32, registers, -1).transpose(1, 0, 2).ravel()


def halves(e: Emitter, rows: str) -> Value:
  """A register of all lanes with two f16 in each, of <64 x double>."""
  narrow = convert(Value(_Wide(e, 64), rows, F64, True), F16)
  return Value(e, e.op(f"bitcast <64 x half> {narrow.text} to <32 x i32>"), U32, True)


class _Wide(Emitter):
  """The same text with wider vectors."""

  def __init__(self, e: Emitter, lanes: int) -> None:
    self.__dict__ = dict(e.__dict__)
    self._of = e
    self.lanes, self._splats = lanes, {}

  def op(self, text: str) -> str: return self._of.op(text)

  def do(self, text: str) -> None: self._of.do(text)


def _rows(g: Lanes, line: Line, form: Form, operand: Operand, count: int, kind: int) -> access.Site:
  """Rows of 16 bytes of shared memory, at the addresses of eight lanes a matrix, again and again."""
  space = spaces.space_of(form.modifiers)
  at = addresses.address(g.code, line, operand, space)(g)
  at = convert(at.view(U32) if at.dtype.itemsize == 4 else at.view(U64), U64)
  if space == spaces.GENERIC: at = at - spaces.SHARED_WINDOW
  rows = shuffled(g.e, "i64", 32, at.in_lanes(), [lane % (8 * count) for lane in range(32)])
  return access.Site(access.SHARED, Value(g.e, rows, U64, True), None, 4, 4, kind, None)


@access.emits("ldmatrix")
def ldmatrix(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """Rows of 16 bytes of shared memory, at the addresses of eight lanes a matrix."""
  i, e = line.instruction, g.e
  if "b16" not in form.modifiers: raise Untranslatable("of such elements")
  count = next(int(m[1]) for m in ("x1", "x2", "x4") if m in form.modifiers)
  writes = [operands.writer(g.code, line, o, "b32") for o in operands.elements(line, i.operands[0])]
  site = _rows(g, line, form, i.operands[1], count, Access.READ)

  def fast(host: Value) -> list[Value]:
    out = []
    for k in range(count):
      lanes = shuffled(e, "i64", 32, host.text, [8 * k + lane // 4 for lane in range(32)])
      places = Value(e, lanes, U64, True) + e.vector(U64, [4 * (lane % 4) for lane in range(32)])
      pointers = e.op(f"inttoptr <32 x i64> {places.text} to <32 x ptr>")
      words = gather(e, "i32", pointers, "splat (i1 true)")
      out.append(Value(e, transposed(e, words) if "trans" in form.modifiers else words, U32, True))
    return out
  values = access.near(g, site).run(fast, list)
  watched.touched(g, site, clocks.LOAD)
  for write, value in zip(writes, values): write(g, value)


@access.emits("stmatrix")
def stmatrix(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """The other way: what lanes hold of a matrix goes to the addresses of its rows."""
  i, e = line.instruction, g.e
  if "b16" not in form.modifiers: raise Untranslatable("of such elements")
  count = next(int(m[1]) for m in ("x1", "x2", "x4") if m in form.modifiers)
  sources = operands.elements(line, i.operands[1])
  words = [operands.reader(g.code, line, o, "b32")(g).in_lanes() for o in sources]
  if "trans" in form.modifiers: words = [transposed(e, w) for w in words]
  site = _rows(g, line, form, i.operands[0], count, Access.WRITE)

  def fast(host: Value) -> list[Value]:
    for k, word in enumerate(words):
      lanes = shuffled(e, "i64", 32, host.text, [8 * k + lane // 4 for lane in range(32)])
      places = Value(e, lanes, U64, True) + e.vector(U64, [4 * (lane % 4) for lane in range(32)])
      pointers = e.op(f"inttoptr <32 x i64> {places.text} to <32 x ptr>")
      scatter(e, "i32", 32, word, pointers, "splat (i1 true)", 4)
    return []
  access.near(g, site).run(fast, list)
  watched.touched(g, site, clocks.STORE)


def transposed(e: Emitter, words: str) -> str:
  """The transpose of a matrix of 8 x 8 elements of 16 bits."""
  halves = e.op(f"bitcast <32 x i32> {words} to <64 x i16>")
  turned = shuffled(e, "i16", 64, halves, [at % 8 * 8 + at // 8 for at in range(64)])
  return e.op(f"bitcast <64 x i16> {turned} to <32 x i32>")


@access.emits("movmatrix")
def movmatrix(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """The transpose of a matrix in registers."""
  i = line.instruction
  words = operands.reader(g.code, line, i.operands[1], "b32")(g)
  turned = Value(g.e, transposed(g.e, words.in_lanes()), U32, True)
  operands.writer(g.code, line, i.operands[0], "b32")(g, turned)


@access.emits("cp")
def cp(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """cp.async: of 4, 8 or 16 bytes, of which where none are read, zeros follow; in bulk; of an mbarrier."""
  i, e, o, m = line.instruction, g.e, g.o, form.modifiers
  if "bulk" in m: return bulk.cp(g, line, form)
  if "mbarrier" in m: return mbarrier.copied(g, line, form)
  if not m & {"ca", "cg"}: return _ordered(g, line, form)
  size = operands.immediate(line, i.operands[2], "u32")
  if size is None or size not in {4, 8, 16}: raise Untranslatable("of such a size")
  width = int(size)
  source = access.site_of(g, line, _in(form, "global"), i.operands[1], 4, width // 4, Access.READ)
  target = access.site_of(g, line, _in(form, "shared"), i.operands[0], 4, width // 4, Access.WRITE)
  given = None
  if len(i.operands) - ("L2::cache_hint" in m) > 3:
    r = operands.register(line, i.operands[3])
    if r is not None and r.type == "pred": raise Untranslatable("with a source to ignore")
    given = operands.reader(g.code, line, i.operands[3], "u32")(g)
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
  access.store(g, target, values, clocks.COPY)


def _ordered(g: Lanes, line: Line, form: Form) -> None:
  """commit_group, wait_group, wait_all: copies are made at once, watched code counts them."""
  i, m = line.instruction, form.modifiers
  if g.watch is None or not g.watch.copies or "prefetch" in m: return
  if i.predicate is not None: raise Untranslatable("under a guard in watched code")
  if "commit_group" in m: return watched.commit(g)
  left = None if "wait_all" in m else operands.immediate(line, i.operands[0], "u32")
  if left is None and "wait_all" not in m: raise Untranslatable("of such groups")
  watched.wait(g, None if left is None else int(left))


def _in(form: Form, space: str) -> Form:
  """The form with one state space."""
  kept = frozenset(x for x in form.modifiers if x.partition("::")[0] not in {"shared", "global"})
  return replace(form, modifiers=kept | {space})
