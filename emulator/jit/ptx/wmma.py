"""wmma as LLVM IR: where the elements of a fragment are is told in `emulator.ptx.wmma`.

The registers of a fragment, one behind the other, are its matrix in a row, so products are made in memory: of the
elements as f64 or i32, one product after the other in the reference's order.
"""
from __future__ import annotations

from typing import Final

from tinyhw.core.memory import Access
from tinyhw.emulator.jit.ptx import access
from tinyhw.emulator.jit.ptx.emit import Lanes
from tinyhw.emulator.jit.ptx.matrix import INTRINSICS, doubles, halves, integers, one
from tinyhw.emulator.jit.ptx.routine import defined
from tinyhw.emulator.jit.ptx.shapes import Info
from tinyhw.emulator.jit.values import Untranslatable, Value, convert
from tinyhw.emulator.ptx import addresses, memory, operands
from tinyhw.emulator.ptx.matrix import BITS
from tinyhw.emulator.ptx.scope import Line
from tinyhw.emulator.ptx.wmma import Fragment
from tinyhw.emulator.values.ops import F32, F64, I32, U32, U64
from tinyhw.isa.ptx.forms import Form

_WHOLE: Final = frozenset({"s8", "u8", "s4", "u4"})
_TYPES: Final = _WHOLE | {"f16", "bf16", "tf32", "f64"}


@access.emits("wmma")
def wmma(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """wmma.load, wmma.store and wmma.mma."""
  if "mma" in line.instruction.modifiers: return _multiplied(g, line)
  _moved(g, line, form)


# ---- between registers and memory

def _moved(g: Lanes, line: Line, form: Form) -> None:
  i, e, o = line.instruction, g.e, g.o
  loads = "load" in i.modifiers
  which = next(x for x in i.modifiers if x in {"a", "b", "c", "d"})
  f = Fragment(line, which, next(x for x in i.modifiers if x in BITS))
  if f.bits < 8: raise Untranslatable("of such elements")
  row_major, size = "row" in form.modifiers, f.bits // 8
  registers = operands.elements(line, i.operands[0 if loads else 1])
  f.need(line, len(registers))
  space = memory.space_of(form.modifiers)
  at: Value = addresses.address(g.code, line, i.operands[1 if loads else 0], space)(g)
  base = convert(one(g, at.view(U32 if at.dtype.itemsize == 4 else U64)), U64)
  stride = o.const("u64", f.columns if row_major else f.rows)
  if len(i.operands) > 2: stride = convert(one(g, operands.reader(g.code, line, i.operands[2], "u32")(g)), U64)
  together = f.each if row_major != (which == "b") else 1  # elements of a register that lie side by side
  mode, mask = access.MODES[space], None if g.everyone else g.active

  def site(r: int, k: int) -> access.Site:
    rows, columns = f.places(r)
    lead, inner = (rows, columns) if row_major else (columns, rows)
    places = e.vector(U64, (inner[:, k] * size).tolist()) + e.vector(U64, (lead[:, k] * size).tolist()) * stride + base
    return access.Site(mode, places, None, size, together, Access.READ if loads else Access.WRITE, mask)
  parts = range(0, f.each, together)
  raw = operands.unsigned(f.word // 8)
  if loads:
    found = [[v for k in parts for v in access.load(g, site(r, k))] for r in range(len(registers))]
    for register, values in zip(registers, found):
      word = convert(values[0], raw)
      for k, value in enumerate(values[1:], 1): word = word | convert(value, raw) << k * f.bits
      operands.writer(g.code, line, register, f.register)(g, word.view(operands.dtype_of(f.register)))
    return
  for r, register in enumerate(registers):
    word = operands.reader(g.code, line, register, f.register)(g).view(raw)
    values = [convert(word >> k * f.bits if k else word, operands.unsigned(size)) for k in range(f.each)]
    for k in parts: access.store(g, site(r, k), values[k:k + together])


# ---- products

def product(m: int, n: int, k: int, t: str, how: str) -> tuple[str, str]:
  """(name, text) of what multiplies m rows of k elements with n columns of k, and adds that to m rows of n. `how`: ""
  for products that are exact, "apart" for others, "sat" for sums that saturate."""
  name, f = f"wmma.{m}.{n}.{k}.{t}{'.' * bool(how)}{how}", "f" * (t == "double")
  if f and not how: sums = (f"  %sum.next = call <8 x {t}> @llvm.fmuladd.v8f64(<8 x {t}> %xs, <8 x {t}> %y, "
                            f"<8 x {t}> %sum)")
  else: sums = f"  %product = {f}mul <8 x {t}> %xs, %y\n  %sum.next = {f}add <8 x {t}> %sum, %product"
  total = f"{f}add <8 x {t}> %sum.next, %old"
  if how == "sat": total = f"call <8 x {t}> @llvm.sadd.sat.v8i32(<8 x {t}> %sum.next, <8 x {t}> %old)"
  return name, f"""
define private void @{name}(ptr noalias %a, ptr noalias %b, ptr noalias %turned, ptr noalias %c) noinline {{
  br label %turn
turn:
  %p = phi i64 [ 0, %0 ], [ %p.next, %turn ]
  %p.column = udiv i64 %p, {k}
  %p.row = urem i64 %p, {k}
  %p.line = mul i64 %p.row, {n}
  %p.place = add i64 %p.line, %p.column
  %p.from = getelementptr {t}, ptr %b, i64 %p
  %p.to = getelementptr {t}, ptr %turned, i64 %p.place
  %p.element = load {t}, ptr %p.from
  store {t} %p.element, ptr %p.to
  %p.next = add i64 %p, 1
  %p.over = icmp eq i64 %p.next, {n * k}
  br i1 %p.over, label %row, label %turn
row:
  %i = phi i64 [ 0, %turn ], [ %i.next, %row.end ]
  %a.line = mul i64 %i, {k}
  %c.line = mul i64 %i, {n}
  br label %column
column:
  %j = phi i64 [ 0, %row ], [ %j.next, %column.end ]
  %c.place = add i64 %c.line, %j
  %c.at = getelementptr {t}, ptr %c, i64 %c.place
  br label %depth
depth:
  %d = phi i64 [ 0, %column ], [ %d.next, %depth ]
  %sum = phi <8 x {t}> [ zeroinitializer, %column ], [ %sum.next, %depth ]
  %a.place = add i64 %a.line, %d
  %a.at = getelementptr {t}, ptr %a, i64 %a.place
  %x = load {t}, ptr %a.at
  %x.first = insertelement <8 x {t}> poison, {t} %x, i64 0
  %xs = shufflevector <8 x {t}> %x.first, <8 x {t}> poison, <8 x i32> zeroinitializer
  %b.line = mul i64 %d, {n}
  %b.place = add i64 %b.line, %j
  %b.at = getelementptr {t}, ptr %turned, i64 %b.place
  %y = load <8 x {t}>, ptr %b.at, align 8
{sums}
  %d.next = add i64 %d, 1
  %d.over = icmp eq i64 %d.next, {k}
  br i1 %d.over, label %column.end, label %depth
column.end:
  %old = load <8 x {t}>, ptr %c.at, align 8
  %total = {total}
  store <8 x {t}> %total, ptr %c.at, align 8
  %j.next = add i64 %j, 8
  %j.over = icmp eq i64 %j.next, {n}
  br i1 %j.over, label %row.end, label %column
row.end:
  %i.next = add i64 %i, 1
  %i.over = icmp eq i64 %i.next, {m}
  br i1 %i.over, label %done, label %row
done:
  ret void
}}"""


def _multiplied(g: Lanes, line: Line) -> None:
  i, e = line.instruction, g.e
  kinds = [m for m in i.modifiers if m in BITS]
  types = kinds if len(kinds) == 4 else [kinds[0], "f16", "f16", kinds[1]]
  d, a, b, c = (Fragment(line, which, t) for which, t in zip("dabc", types))
  if not {a.type, b.type} <= _TYPES: raise Untranslatable("of such matrices")
  parts = [operands.elements(line, o) for o in i.operands]
  for fragment, part in zip((d, a, b, c), parts): fragment.need(line, len(part))
  whole = d.type == "s32"
  t, size = ("i32", 4) if whole else ("double", 8)
  m, k, n = a.rows, a.columns, b.columns
  places = []
  for name, count in (("a", m * k), ("b", k * n), ("turned", k * n), ("c", m * n)):
    e.stack[f"wmma.{name}.{t}.{count}"] = f"alloca [{count} x {t}], align 64"
    places.append(f"%wmma.{name}.{t}.{count}")
  for fragment, part, to in zip((a, b, c), parts[1:], (places[0], places[1], places[3])):
    for r, o in enumerate(part):
      if r * 32 * fragment.each >= fragment.size: break  # elements repeat
      words = operands.reader(g.code, line, o, fragment.register)(g)
      e.do(f"store <{32 * fragment.each} x {t}> {_elements(g, words, fragment.type)}, "
           f"ptr {g.pointer(to, r * 32 * fragment.each * size)}, align 8")
  how = "sat" if "satfinite" in i.modifiers and whole else "apart" if a.type == "f64" else ""
  name, text = product(m, n, k, t, how)
  defined(e, text)
  e.declared.update(INTRINSICS)
  e.do(f"call void @{name}(ptr {places[0]}, ptr {places[1]}, ptr {places[2]}, ptr {places[3]})")
  for r, o in enumerate(parts[0]):
    at = r * 32 * d.each % d.size
    rows = e.op(f"load <{32 * d.each} x {t}>, ptr {g.pointer(places[3], at * size)}, align 8")
    if d.type == "f16": value = halves(e, rows)
    elif whole: value = Value(e, rows, I32, True)
    else: value = convert(Value(e, rows, F64, True), F32 if d.type == "f32" else F64)
    operands.writer(g.code, line, o, d.register)(g, value)


def _elements(g: Lanes, words: Value, t: str) -> str:
  """The elements of a register of all lanes, one behind the other, as doubles or i32."""
  if t in _WHOLE: return integers(g.e, words, t)
  if t == "s32": return words.in_lanes()
  if t == "f32": return convert(words, F64).in_lanes()
  return doubles(g.e, words, t)
