"""wgmma as LLVM IR: descriptors of matrices in shared memory, and products of blocks.

A warp makes its 16 rows: operands become f64 (or i32) in memory, the right one with its columns side by side, and one
function multiplies blocks of four rows and eight columns, products one after the other in the reference's order.
Products of such elements are exact in f64, so that a multiply-add rounds as a product and a sum do.
"""
from __future__ import annotations

import re
from typing import Final

from tinyhw.emulator.jit.ptx.memory import access, watched
from tinyhw.emulator.jit.ptx.module import layout
from tinyhw.emulator.jit.ptx.module.emit import Lanes
from tinyhw.emulator.jit.ptx.module.shapes import Info
from tinyhw.emulator.jit.ptx.routine import defined
from tinyhw.emulator.jit.ptx.tensorcore import sparse, warpgroup
from tinyhw.emulator.jit.ptx.tensorcore.matrix import INTRINSICS, doubles, doubles_of, halves, integers, one, shuffled
from tinyhw.emulator.jit.values import Emitter, Untranslatable, Value
from tinyhw.emulator.jit.vectors import ALIGNED
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.ptx.tensorcore.matrix import BITS
from tinyhw.emulator.values.ops import F32, I32
from tinyhw.isa.ptx.forms import Form
from tinyhw.isa.ptx.model import Operand, Vector

ROWS: Final = 16
OUT: Final = {"f32": "float", "f16": "double", "s32": "i32"}  # of sums in memory
_BYTES: Final = 32  # of a row of the left operand: what one instruction takes


def fetch(t: str, across: bool, left: bool, size: int, noted: bool) -> tuple[str, str]:
  """(name, text) of what takes a matrix out of shared memory: %rows rows from %first on, of `size` bytes, row by row
  (left) or with rows side by side, %lead elements apart. `across`: rows lie side by side in shared memory; `noted`:
  what is read is noted (`spans`). Whether it is inside, and that may be."""
  bits = _bits(t)
  name, n, deep = f"fetch.{t}.{size}{'.across' * across}{'.left' * left}", 16 * 8 // bits, size * 8 // bits
  parts = size // 16  # of a row
  e = "i32" if t in {"s8", "u8", "b1"} else "double"
  inner = Emitter(n)
  if t == "b1": x = inner.op("bitcast <16 x i8> %raw to <4 x i32>")
  elif e == "double": x = doubles_of(inner, "%raw", 16, t)
  else: x = inner.op(f"{'sext' if t == 's8' else 'zext'} <16 x i8> %raw to <16 x i32>")
  if across:
    where = [f"  %group = lshr i64 %i, {deep.bit_length() - 1}", f"  %c = and i64 %i, {deep - 1}",
             f"  %from = mul i64 %group, {n}", "  %r = add i64 %first, %from",
             f"  %side = udiv i64 %width, {bits // 8}",
             "  %r.in = urem i64 %r, %side", f"  %r.bytes = mul i64 %r.in, {bits // 8}",
             "  %r.out = udiv i64 %r, %side", "  %apart = select i1 %plain, i64 %stride, i64 %leading",
             "  %r.far = mul i64 %r.out, %apart", "  %c.in = and i64 %c, 7", "  %c.bytes = mul i64 %c.in, %width",
             "  %c.out = lshr i64 %c, 3", "  %c.apart = select i1 %plain, i64 %leading, i64 %stride",
             "  %c.far = mul i64 %c.out, %c.apart", "  %s.1 = add i64 %r.bytes, %r.far",
             "  %s.2 = add i64 %c.bytes, %c.far"]
  else:
    where = [f"  %group = lshr i64 %i, {parts.bit_length() - 1}", f"  %part = and i64 %i, {parts - 1}",
             f"  %c = mul i64 %part, {n}",
             "  %from = add i64 %group, 0", "  %r = add i64 %first, %from", "  %r.in = and i64 %r, 7",
             "  %r.bytes = mul i64 %r.in, %width", "  %r.out = lshr i64 %r, 3", "  %r.far = mul i64 %r.out, %stride",
             "  %part.size = select i1 %plain, i64 %leading, i64 16", "  %c.far = mul i64 %part, %part.size",
             "  %s.1 = add i64 %r.bytes, %r.far", "  %s.2 = add i64 %c.far, 0"]
  note = ["  %noted = call i1 @note.product(ptr %context, ptr %state, i64 %host, i64 16)",
          "  br i1 %noted, label %fetch, label %fail, !prof !1", "fetch:"] if noted else []
  row, column = ("%from", "%c")
  if left: place = [f"  %line = mul i64 {row}, %lead", f"  %to = add i64 %line, {column}"]
  else: place = [f"  %line = mul i64 {column}, %lead", f"  %to = add i64 %line, {row}"]
  if across != left:  # what lies side by side stays so
    put = [f"  %out.at = getelementptr {e}, ptr %out, i64 %to", f"  store <{n} x {e}> {x}, ptr %out.at, align 8"]
  else:
    put = []
    for k in range(n):
      put += [f"  %e{k} = extractelement <{n} x {e}> {x}, i64 {k}", f"  %f{k} = mul i64 %lead, {k}",
              f"  %g{k} = add i64 %to, %f{k}", f"  %p{k} = getelementptr {e}, ptr %out, i64 %g{k}",
              f"  store {e} %e{k}, ptr %p{k}"]
  lines = [
    f"define private i1 @{name}(ptr noalias %out, i64 %rows, i64 %first, i64 %lead, i64 %descriptor, i64 %total, "
    "i64 %shared, ptr %context, ptr %state) noinline {", "entry:", "  %f.0 = and i64 %descriptor, 16383",
    "  %base = shl i64 %f.0, 4",
    "  %f.1 = lshr i64 %descriptor, 12", "  %leading = and i64 %f.1, 262128", "  %f.2 = lshr i64 %descriptor, 28",
    "  %stride = and i64 %f.2, 262128", "  %mode = lshr i64 %descriptor, 62", "  %plain = icmp eq i64 %mode, 0",
    "  %swizzled = lshr i64 256, %mode", "  %width = select i1 %plain, i64 16, i64 %swizzled",
    "  %pieces = lshr i64 %width, 4", "  %mask = sub i64 %pieces, 1", f"  %count = mul i64 %rows, {parts}",
    "  %most = sub i64 %total, 16", "  %room = icmp uge i64 %total, 16", "  br i1 %room, label %next, label %fail",
    "next:", f"  %i = phi i64 [ 0, %entry ], [ %i.next, %{'fetch' if noted else 'take'} ]", *where,
    "  %s.3 = add i64 %s.1, %s.2",
    "  %plain.at = add i64 %base, %s.3", "  %bits = lshr i64 %plain.at, 7", "  %bits.in = and i64 %bits, %mask",
    "  %exchange = shl i64 %bits.in, 4", "  %at = xor i64 %plain.at, %exchange", "  %inside = icmp ule i64 %at, %most",
    "  br i1 %inside, label %take, label %fail, !prof !1", "take:", "  %host = add i64 %shared, %at", *note,
    "  %pointer = inttoptr i64 %host to ptr", "  %raw = load <16 x i8>, ptr %pointer, align 16", *inner.lines,
    *place, *put, "  %i.next = add i64 %i, 1", "  %over = icmp eq i64 %i.next, %count",
    "  br i1 %over, label %good, label %next", "good:", "  ret i1 true", "fail:", "  ret i1 false", "}"]
  return name, "\n".join(lines)


def _bits(t: str) -> int:
  """Of what is multiplied as one: bits go as words."""
  return 32 if t == "b1" else BITS[t]


def product(k: int, d: str, saturates: bool, negative: bool, bits: bool = False) -> tuple[str, str]:
  """(name, text) of what multiplies: 16 rows of k elements with k rows of %n; of the sums, eight rows of eight columns
  lie together. Sums are added to what is there, or to 0. `bits`: elements are words of them."""
  whole, o = d == "s32", OUT[d]
  e = "i32" if whole else "double"
  name = f"block.{k}.{e}.{o}{'.sat' * saturates}{'.negative' * negative}{'.bits' * bits}"
  given = "ptr noalias %a, ptr noalias %b, ptr noalias %c, i64 %n, i1 %adds"
  lines = [f"define private void @{name}({given}) {ALIGNED} {{", "entry:", "  br label %block", "block:",
           "  %j = phi i64 [ 0, %entry ], [ %j.next, %column ]",
           f"  %b.at = getelementptr {e}, ptr %b, i64 %j", "  br label %rows", "rows:",
           "  %i = phi i64 [ 0, %block ], [ %i.next, %rows ]", f"  %i.first = mul i64 %i, {k}",
           f"  %a.at = getelementptr {e}, ptr %a, i64 %i.first", "  %half = lshr i64 %i, 3",
           "  %half.first = mul i64 %half, %n", "  %half.block = add i64 %half.first, %j",
           "  %in.half = and i64 %i, 7", "  %of.block = shl i64 %half.block, 3", "  %of.row = shl i64 %in.half, 3",
           "  %to = add i64 %of.block, %of.row", f"  %c.at = getelementptr {o}, ptr %c, i64 %to"]
  last = ["zeroinitializer"] * 4
  for at in range(k):
    lines += [f"  %row{at} = mul i64 %n, {at}", f"  %q{at} = getelementptr {e}, ptr %b.at, i64 %row{at}",
              f"  %{'z' if negative else 'y'}{at} = load <8 x {e}>, ptr %q{at}, align 8"]
    if negative: lines.append(f"  %y{at} = fneg <8 x {e}> %z{at}")
    for m in range(4):
      x = f"{at}.{m}"
      lines += [f"  %p{x} = getelementptr {e}, ptr %a.at, i64 {m * k + at}", f"  %x{x} = load {e}, ptr %p{x}",
                f"  %i{x} = insertelement <8 x {e}> poison, {e} %x{x}, i64 0",
                f"  %s{x} = shufflevector <8 x {e}> %i{x}, <8 x {e}> poison, <8 x i32> zeroinitializer"]
      if bits: lines += [f"  %z{x} = and <8 x i32> %s{x}, %y{at}",
                         f"  %m{x} = call <8 x i32> @llvm.ctpop.v8i32(<8 x i32> %z{x})",
                         f"  %t{x} = add <8 x i32> {last[m]}, %m{x}"]
      elif whole: lines += [f"  %m{x} = mul <8 x i32> %s{x}, %y{at}", f"  %t{x} = add <8 x i32> {last[m]}, %m{x}"]
      else:
        lines.append(f"  %t{x} = call <8 x double> @llvm.fmuladd.v8f64(<8 x double> %s{x}, <8 x double> %y{at}, "
                     f"<8 x double> {last[m]})")
      last[m] = f"%t{x}"
  for m in range(4):
    lines += [f"  %c.at{m} = getelementptr {o}, ptr %c.at, i64 {8 * m}",
              f"  %old{m} = load <8 x {o}>, ptr %c.at{m}, align 8",
              f"  %from{m} = select i1 %adds, <8 x {o}> %old{m}, <8 x {o}> zeroinitializer"]
    if whole:
      call = "call <8 x i32> @llvm.sadd.sat.v8i32(<8 x i32>" if saturates else "add <8 x i32>"
      lines.append(f"  %r{m} = {call} {last[m]}, {f'<8 x i32> %from{m})' if saturates else f'%from{m}'}")
    else:
      if o == "double": lines.append(f"  %r{m} = fadd <8 x double> {last[m]}, %from{m}")
      else: lines += [f"  %f{m} = fpext <8 x float> %from{m} to <8 x double>",
                      f"  %g{m} = fadd <8 x double> {last[m]}, %f{m}",
                      f"  %r{m} = fptrunc <8 x double> %g{m} to <8 x float>"]
    lines.append(f"  store <8 x {o}> %r{m}, ptr %c.at{m}, align 8")
  lines += ["  %i.next = add i64 %i, 4", f"  %i.over = icmp eq i64 %i.next, {ROWS}",
            "  br i1 %i.over, label %column, label %rows", "column:", "  %j.next = add i64 %j, 8",
            "  %j.over = icmp uge i64 %j.next, %n", "  br i1 %j.over, label %done, label %block", "done:",
            "  ret void", "}"]
  return name, "\n".join(lines)


@access.emits("wgmma")
def wgmma(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """wgmma.mma_async, made at once; wgmma.commit_group counts, and wgmma.fence does nothing."""
  i, e = line.instruction, g.e
  if "commit_group" in form.modifiers: return warpgroup.commit(g)
  if "mma_async" not in form.modifiers: return
  shape = next((re.fullmatch(r"(?a)m64n(\d+)k(\d+)", m) for m in i.modifiers if m.startswith("m64")), None)
  kinds = [m for m in i.modifiers if m in BITS]
  if shape is None or len(kinds) != 3 or not {*kinds[1:]} <= _TYPES:
    raise Untranslatable("of such matrices")
  d, a, b = kinds
  n, k = int(shape[1]), int(shape[2]) * BITS[a] // _bits(a)
  thin = "sp" in form.modifiers
  stored = k // 2 if thin else k  # of a row of the left operand
  if d not in OUT or stored * _bits(a) != 8 * _BYTES: raise Untranslatable("of such matrices")
  whole, packed = d == "s32", d == "f16"
  t, own, each = ("i32" if whole else "double"), ("b32" if packed else d), OUT[d]
  registers = operands.elements(line, i.operands[0])
  scale = None
  more = i.operands[5 if thin else 3:]
  if more: scale = operands.reader(g.code, line, more[0], "pred")(g)
  rest = [int(operands.immediate(line, o, "s32") or 0) for o in more[1:]]
  negative = len(rest) >= 2 and (rest[0] or 1) * (rest[1] or 1) < 0
  turned = rest[2:] if a in {"f16", "bf16"} else []
  left = not isinstance(i.operands[1], Vector)
  for name, count, of in (("a", ROWS * stored, t), ("b", k * n, t), ("c", ROWS * n, each)):
    e.stack[f"wgmma.{name}.{of}.{count}"] = f"alloca [{count} x {of}], align 64"
  x, y, c = f"%wgmma.a.{t}.{ROWS * stored}", f"%wgmma.b.{t}.{k * n}", f"%wgmma.c.{each}.{ROWS * n}"
  away = g.deopt()
  watched.multiplies(g)
  if left:
    quarter = e.op("and i32 %strand, 3")
    first = e.op(f"zext i32 {e.op(f'mul i32 {quarter}, {ROWS}')} to i64")
    _fetched(g, line, i.operands[1], a, bool(turned and turned[0]), True, (x, ROWS, first, stored), away)
  else: _placed(g, line, operands.elements(line, i.operands[1]), a, x, stored, t)
  if thin:
    metadata = operands.reader(g.code, line, i.operands[3], "b32")(g)
    selector = int(operands.immediate(line, i.operands[4], "u32") or 0)
    x = sparse.expand(g, a, k, (stored, k), t, x, metadata, selector)
  _fetched(g, line, i.operands[2], b, bool(turned and turned[-1]), False, (y, n, "0", n), away,
           2 * _BYTES if thin else _BYTES)
  old = [operands.reader(g.code, line, o, own)(g) for o in registers]
  size = 4 if each != "double" else 8
  for j in range(n // 8):
    for h in range(2):
      to = g.pointer(c, 64 * size * (h * (n // 8) + j))
      if packed: rows = doubles(e, old[2 * j + h], "f16")
      else: rows = shuffled(e, each, 32, old[4 * j + 2 * h].in_lanes(), _INTERLEAVED, old[4 * j + 2 * h + 1].in_lanes())
      e.do(f"store <64 x {each}> {rows}, ptr {to}, align 64")
  saturates = "satfinite" in form.modifiers
  name, text = product(k, d, saturates, negative, a == "b1")
  defined(e, text)
  e.declared.update(INTRINSICS)
  adds = "true" if scale is None else one(g, scale).text
  e.do(f"call void @{name}(ptr {x}, ptr {y}, ptr {c}, i64 {n}, i1 {adds})")
  writes = [operands.writer(g.code, line, o, own) for o in registers]
  for j in range(n // 8):
    for h in range(2):
      rows = e.op(f"load <64 x {each}>, ptr {g.pointer(c, 64 * size * (h * (n // 8) + j))}, align 64")
      if packed:
        writes[2 * j + h](g, halves(e, rows))
        continue
      for at in range(2):
        part = shuffled(e, each, 64, rows, range(at, 64, 2))
        value = Value(e, part, I32 if whole else F32, True)
        writes[4 * j + 2 * h + at](g, value)


_TYPES: Final = frozenset({"f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8", "b1"})
_INTERLEAVED: Final = [at // 2 + 32 * (at & 1) for at in range(64)]


def _fetched(g: Lanes, line: Line, operand: Operand, t: str, across: bool, left: bool,
             where: tuple[str, int, str, int], away: str, size: int = _BYTES) -> None:
  """Take a matrix of shared memory to (memory, rows, the first one, how far they are apart)."""
  e = g.e
  descriptor = one(g, operands.reader(g.code, line, operand, "b64")(g)).text
  name, text = fetch(t, across, left, size, g.watch is not None)
  defined(e, text)
  out, rows, first, apart = where
  good = e.op(f"call i1 @{name}(ptr {out}, i64 {rows}, i64 {first}, i64 {apart}, i64 {descriptor}, "
              f"i64 %context.{layout.SHARED_SIZE}, i64 %shared, ptr %context, ptr %state)")
  fine = e.new_label("fetched")
  e.do(f"br i1 {good}, label %{fine}, label %{away}, !prof !1")
  e.start(fine)


def _placed(g: Lanes, line: Line, parts: tuple[Operand, ...], a: str, out: str, k: int, t: str) -> None:
  """Put a left operand out of registers into memory, row by row."""
  e = g.e
  each, n = (4 if t == "i32" else 8), 32 // _bits(a)
  for r, o in enumerate(parts):
    words = operands.reader(g.code, line, o, "b32")(g)
    corner = 8 * (r & 1) * k + (r >> 1) * 4 * n
    whole = (integers if t == "i32" else doubles)(e, words, a)
    for row in range(8):
      part = shuffled(e, t, 32 * n, whole, range(row * 4 * n, row * 4 * n + 4 * n))
      e.do(f"store <{4 * n} x {t}> {part}, ptr {g.pointer(out, each * (corner + row * k))}, align 8")
