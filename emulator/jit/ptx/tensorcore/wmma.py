"""wmma as LLVM IR: where the elements of a fragment are is told in `emulator.ptx.tensorcore.wmma`.

The registers of a fragment, one behind the other, are its matrix in a row, so products are made in memory: of the
elements as f64 or i32, one product after the other in the reference's order.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from tinyhw.core.memory import Access
from tinyhw.emulator.jit.ptx.memory import access, clocks
from tinyhw.emulator.jit.ptx.memory.clocks import MANY
from tinyhw.emulator.jit.ptx.memory.moves import place_name
from tinyhw.emulator.jit.ptx.memory.spans import NOBODY
from tinyhw.emulator.jit.ptx.module import layout
from tinyhw.emulator.jit.ptx.module.emit import Lanes
from tinyhw.emulator.jit.ptx.module.shapes import Info
from tinyhw.emulator.jit.ptx.routine import Routine, Variable, defined
from tinyhw.emulator.jit.ptx.tensorcore import products
from tinyhw.emulator.jit.ptx.tensorcore.matrix import INTRINSICS, doubles, halves, integers, one
from tinyhw.emulator.jit.ptx.turns import taken
from tinyhw.emulator.jit.values import Emitter, Untranslatable, Value, convert, type_of
from tinyhw.emulator.jit.vectors import ALIGNED
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.memory import addresses, spaces
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.ptx.tensorcore.matrix import BITS
from tinyhw.emulator.ptx.tensorcore.wmma import Fragment
from tinyhw.emulator.values.ops import F32, F64, I32, U32, U64
from tinyhw.isa.ptx.forms import Form
from tinyhw.isa.ptx.model import Operand

_WHOLE: Final = frozenset({"s8", "u8", "s4", "u4", "b1"})


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
  row_major, bits = "row" in form.modifiers, max(f.bits, 32 if f.bits < 8 else 0)
  size, each = bits // 8, f.word // bits  # of what is moved: less than bytes go as words
  registers = operands.elements(line, i.operands[0 if loads else 1])
  f.need(line, len(registers))
  space = spaces.space_of(form.modifiers)
  at: Value = addresses.address(g.code, line, i.operands[1 if loads else 0], space)(g)
  base = convert(one(g, at.view(U32 if at.dtype.itemsize == 4 else U64)), U64)
  stride = o.const("u64", f.columns if row_major else f.rows)
  if len(i.operands) > 2: stride = convert(one(g, operands.reader(g.code, line, i.operands[2], "u32")(g)), U64)
  together = each if row_major != (which == "b") else 1  # elements of a register that lie side by side
  mode, mask = access.MODES[space], None if g.everyone else g.active

  def site(r: int, k: int) -> access.Site:
    rows, columns = f.places(r)
    lead, inner = (rows, columns) if row_major else (columns, rows)
    at = e.vector(U64, inner[:, k].tolist()) + e.vector(U64, lead[:, k].tolist()) * stride
    places, kind = (at * f.bits >> 3) + base, Access.READ if loads else Access.WRITE
    return access.Site(mode, places, None, size, together, kind, mask)
  if mode != access.LOCAL: _noted(g, f, loads, space, base, stride * f.bits >> 3, row_major)
  elif g.watch is not None: raise Untranslatable("on the stack in watched code")
  if loads and g.everyone and row_major != (which == "b") and 8 <= f.bits and f.size >= 32 * each and not (
      g.plan.clustered and mode != access.GLOBAL) and mode != access.LOCAL:
    return _lines(g, line, f, registers, mode, base, stride * size)
  parts = range(0, each, together)
  raw = operands.unsigned(f.word // 8)
  if loads:
    found = [[v for k in parts for v in access.unseen(g, site(r, k))] for r in range(len(registers))]
    for register, values in zip(registers, found):
      word = convert(values[0], raw)
      for k, value in enumerate(values[1:], 1): word = word | convert(value, raw) << k * f.bits
      operands.writer(g.code, line, register, f.register)(g, word.view(operands.dtype_of(f.register)))
    return
  for r, register in enumerate(registers):
    word = operands.reader(g.code, line, register, f.register)(g).view(raw)
    values = [convert(word >> k * bits if k else word, operands.unsigned(size)) for k in range(each)]
    for k in parts: access.store(g, site(r, k), values[k:k + together], clocks.UNSEEN)


def _lines(g: Lanes, line: Line, f: Fragment, registers: Sequence[Operand], mode: int, base: Value,
           pitch: Value) -> None:
  """A load of lines that are in the registers' order, one behind the other, by a function for all such loads."""
  e, size = g.e, f.bits // 8
  count, width = (f.columns, f.rows) if f.which == "b" else (f.rows, f.columns)
  name = f"wmma.lines.{mode}.{count}.{width}.{size}"
  defined(e, _loader(name, mode, count, width * size, size))
  place = _room(g, f.size * size)
  done = e.op(f"call i1 @{name}(ptr %context, ptr %state, i64 {base.text}, i64 {pitch.text}, "
              f"i64 {e.op(f'ptrtoint ptr {_place(g, place)} to i64')})")
  fine = e.new_label("loaded")
  e.do(f"br i1 {done}, label %{fine}, label %{g.deopt()}, !prof !1")
  e.start(fine)
  raw = operands.unsigned(f.word // 8)
  found = [_vector(g, place + 4 * f.word * r, raw) for r in range(_own(f))]
  for r, register in enumerate(registers):
    operands.writer(g.code, line, register, f.register)(g, found[r % len(found)].view(operands.dtype_of(f.register)))


def _noted(g: Lanes, f: Fragment, loads: bool, space: str, base: Value, pitch: Value, row_major: bool) -> None:
  """Watched code notes the lines of a matrix, a pitch apart, as accesses of all the warp."""
  e, w = g.e, g.watch
  if w is None: return
  whole, away = e.new_label("whole"), g.deopt()
  e.do(f"br i1 {e.op(f'icmp eq {g.mask_type} {g.active_bits}, -1')}, label %{whole}, label %{away}, !prof !1")
  e.start(whole)
  lines, elements = (f.rows, f.columns) if row_major else (f.columns, f.rows)
  routine = _note(space, loads, lines, elements * f.bits // 8, w.tracks)
  taken(g, routine)
  fine = e.new_label("noted")
  done = e.op(f"call i1 @{routine.name}(ptr %context, ptr %state, i64 {base.text}, i64 {pitch.text})")
  e.do(f"br i1 {done}, label %{fine}, label %{away}, !prof !1")
  e.start(fine)


def _note(space: str, loads: bool, count: int, width: int, tracks: bool) -> Routine:
  """Notes lines of so many bytes; those of global memory that are loaded where it `tracks`."""
  r = Routine(f"wmma.noted.{space or 'generic'}.{'read' if loads else 'write'}.{count}.{width}", ("base", "pitch"))
  how, lane = ("read", MANY) if loads else ("write", NOBODY)
  with r.each(r.number(count)) as k:
    at = r["base"] + k * r["pitch"]

    def near(at: Value) -> None:
      host = r.ask(place_name("shared"), at, r.number(width), r.number(Access.READ if loads else Access.WRITE))
      r.ask(f"own.near.{how}", host, r.number(width), r.number(lane))

    def far(at: Value) -> None:
      if not loads or tracks: r.ask(f"own.far.{how}", at, r.number(width), r.number(lane))
    if space == "shared": near(at)
    elif space != spaces.GENERIC: far(at)
    else:
      inside = at - spaces.SHARED_WINDOW < spaces.WINDOW
      with r.when(inside): near(at - spaces.SHARED_WINDOW)
      with r.when(~inside): far(at)
  return r


def _room(g: Lanes, size: int) -> int:
  """Where the strand's state has so many bytes. Of memory on the stack LLVM looks through all uses, again and again."""
  g.room = max(g.room, g.kept_at + size)
  return g.kept_at


def _place(g: Lanes, at: int) -> str: return g.pointer("%state", at)


def _vector(g: Lanes, at: int, dtype: Any) -> Value:
  return Value(g.e, g.e.op(f"load <32 x {type_of(dtype)}>, ptr {_place(g, at)}, align 4"), dtype, True)


def _loader(name: str, mode: int, count: int, width: int, size: int) -> str:
  """Copies lines of so many bytes, a pitch apart, to an address of the host."""
  r = Routine(name, ("base", "pitch", "to"))
  base, pitch = r["base"], r["pitch"]
  span = pitch * (count - 1) + width
  r.need(((base | pitch) & (size - 1)) == 0)
  host = Variable(r, base)

  def shared(offset: Value) -> None:
    total = r.word("context", layout.SHARED_SIZE)
    r.need((offset <= total) & (span <= total))
    r.need(offset + span <= total)
    host.set(r.word("state", layout.SHARED) + offset)

  def mapped() -> None:
    row = r.room("row", layout.ROW)
    r.ask("find", f"ptr {r.pointer(row)}", base, span, r.number(0), r.number(Access.READ))
    host.set(base + r.load(row + 16))
  window = base - spaces.SHARED_WINDOW
  if mode == access.SHARED: shared(base)
  elif mode == access.GLOBAL: mapped()
  else:
    inside = window < spaces.WINDOW
    with r.when(inside): shared(window)
    with r.when(~inside): mapped()
  with r.each(r.number(count)) as k:
    text = r.op(f"load <{width} x i8>, ptr {r.pointer(host.get() + k * pitch)}, align 1")
    r.do(f"store <{width} x i8> {text}, ptr {r.pointer(r['to'] + k * width)}, align 1")
  return r.text()


# ---- products

def product(m: int, n: int, k: int, t: str, how: str) -> tuple[str, str]:
  """(name, text) of what multiplies m rows of k elements with n columns of k, and adds that to m rows of n. `how`: ""
  for products that are exact, "apart" for others, "sat" for sums that saturate, "xor" and "and" for bits.

  The columns are turned into rows, four by four. Then a block of sums at a time is made in the processor's registers,
  each in the order of k."""
  rows, columns = products.block(n)
  name = f"wmma.{m}.{n}.{k}.{t}{'.' * bool(how)}{how}"
  places = ", ".join(f"ptr noalias %{x}" for x in ("a", "b", "turned", "c"))
  return name, "\n".join([
    f"define private void @{name}({places}) {ALIGNED} {{", "  br label %turn", "turn:",
    "  %p = phi i64 [ 0, %0 ], [ %p.next, %turn ]", *_turned(n, k, t), "  %p.next = add i64 %p, 1",
    f"  %p.over = icmp eq i64 %p.next, {n * k // 16}", "  br i1 %p.over, label %block, label %turn", "block:",
    "  %q = phi i64 [ 0, %turn ], [ %q.next, %end ]", f"  %q.row = udiv i64 %q, {n // columns}",
    f"  %q.column = urem i64 %q, {n // columns}", f"  %i = mul i64 %q.row, {rows}",
    f"  %j = mul i64 %q.column, {columns}", f"  %a.first = mul i64 %i, {k}",
    f"  %a.at = getelementptr {t}, ptr %a, i64 %a.first", f"  %b.at = getelementptr {t}, ptr %turned, i64 %j",
    f"  %c.line = mul i64 %i, {n}", "  %c.first = add i64 %c.line, %j",
    f"  %c.at = getelementptr {t}, ptr %c, i64 %c.first",
    *products.depth(t, how, rows, columns, k, "block", n, [f"  %x.at = getelementptr {t}, ptr %a.at, i64 %d"], k),
    *products.added(t, how, rows, columns, n), "  %q.next = add i64 %q, 1",
    f"  %q.over = icmp eq i64 %q.next, {m // rows * (n // columns)}", "  br i1 %q.over, label %done, label %block",
    "done:", "  ret void", "}"])


def _turned(n: int, k: int, t: str) -> Iterator[str]:
  """Block %p of n lines of k elements, four by four, from %b to k lines of n elements in %turned."""
  wide = f"<4 x {t}>"

  def shuffled(to: str, x: str, y: str, *order: int) -> str:
    places = ", ".join(f"i32 {at}" for at in order)
    return f"  %{to} = shufflevector {wide} %{x}, {wide} %{y}, <4 x i32> <{places}>"
  yield from (f"  %p.line = udiv i64 %p, {k // 4}", f"  %p.place = urem i64 %p, {k // 4}",
              f"  %p.from.line = mul i64 %p.line, {4 * k}", "  %p.column = mul i64 %p.place, 4",
              "  %p.from = add i64 %p.from.line, %p.column", f"  %p.to.line = mul i64 %p.place, {4 * n}",
              "  %p.row = mul i64 %p.line, 4", "  %p.to = add i64 %p.to.line, %p.row")
  for r in range(4):
    yield f"  %p.from{r}.n = add i64 %p.from, {r * k}"
    yield f"  %p.from{r} = getelementptr {t}, ptr %b, i64 %p.from{r}.n"
    yield f"  %v{r} = load {wide}, ptr %p.from{r}, align 8"
  for x, y in ((0, 1), (2, 3)):
    yield shuffled(f"even{x}", f"v{x}", f"v{y}", 0, 4, 2, 6)
    yield shuffled(f"odd{x}", f"v{x}", f"v{y}", 1, 5, 3, 7)
  for r, (half, order) in enumerate((h, o) for o in ((0, 1, 4, 5), (2, 3, 6, 7)) for h in ("even", "odd")):
    yield shuffled(f"w{r}", f"{half}0", f"{half}2", *order)
    yield f"  %p.to{r}.n = add i64 %p.to, {r * n}"
    yield f"  %p.to{r} = getelementptr {t}, ptr %turned, i64 %p.to{r}.n"
    yield f"  store {wide} %w{r}, ptr %p.to{r}, align 8"


def _multiplied(g: Lanes, line: Line) -> None:
  """The registers are put into memory as they are: what becomes of them there is one function for all such products,
  as kernels have thousands."""
  i, e = line.instruction, g.e
  kinds = [m for m in i.modifiers if m in BITS]
  types = kinds if len(kinds) == 4 else [kinds[0], "f16", "f16", kinds[1]]
  d, a, b, c = fragments = [Fragment(line, which, t) for which, t in zip("dabc", types)]
  parts = [operands.elements(line, o) for o in i.operands]
  for fragment, part in zip(fragments, parts): fragment.need(line, len(part))
  how = "sat" if "satfinite" in i.modifiers and d.type == "s32" else "apart" if a.type == "f64" else ""
  if a.type == "b1": how = "xor" if "xor" in i.modifiers else "and"
  name = ".".join(["wmma", f"m{a.rows}n{b.columns}k{a.columns}", d.type, a.type, b.type, c.type, how])
  defined(e, *_product_of(e, name, d, (a, b, c), how))
  at = source = _room(g, sum(_own(f) * 4 * f.word for f in fragments))
  for fragment, part in zip((a, b, c), parts[1:]):
    for o in part[:_own(fragment)]:
      words = operands.reader(g.code, line, o, fragment.register)(g)
      e.do(f"store <32 x {type_of(words.dtype)}> {words.in_lanes()}, ptr {_place(g, at)}, align 4")
      at += 4 * fragment.word
  e.do(f"call void @{name}(ptr {_place(g, source)}, ptr {_place(g, at)})")
  dtype = operands.dtype_of(d.register)
  found = [_vector(g, at + 4 * d.word * r, dtype) for r in range(_own(d))]
  for r, o in enumerate(parts[0]): operands.writer(g.code, line, o, d.register)(g, found[r % len(found)])


def _own(f: Fragment) -> int:
  """How many registers of a fragment do not repeat others."""
  return min(f.count, f.size // (32 * f.each))


def _packed(f: Fragment) -> int:
  """How many elements are multiplied as one."""
  return 32 if f.type == "b1" else 1


def _product_of(e: Emitter, name: str, d: Fragment, sources: Sequence[Fragment], how: str) -> list[str]:
  """The functions that multiply fragments whose registers lie one behind the other."""
  whole = d.type == "s32"
  t, size = ("i32", 4) if whole else ("double", 8)
  a, b, _ = sources
  m, k, n = a.rows, a.columns // _packed(a), b.columns
  f, at = Emitter(e.lanes), 0
  places = ["%a", "%b", "%turned", "%c"]

  def place(base: str, offset: int) -> str: return f.op(f"getelementptr i8, ptr {base}, i64 {offset}")
  for fragment, to in zip(sources, ("%a", "%b", "%c")):
    dtype = operands.dtype_of(fragment.register)
    for r in range(_own(fragment)):
      words = Value(f, f.op(f"load <32 x {type_of(dtype)}>, ptr {place('%from', at)}, align 4"), dtype, True)
      count = 32 * fragment.each // _packed(fragment)
      f.do(f"store <{count} x {t}> {_elements(f, words, fragment.type)}, ptr {place(to, r * count * size)}, align 8")
      at += 4 * fragment.word
  inner, text = product(m, n, k, t, how)
  f.do(f"call void @{inner}({', '.join(f'ptr {p}' for p in places)})")
  for r in range(_own(d)):
    rows = f.op(f"load <{32 * d.each} x {t}>, ptr {place('%c', r * 32 * d.each * size)}, align 8")
    if d.type == "f16": value = halves(f, rows)
    elif whole: value = Value(f, rows, I32, True)
    else: value = convert(Value(f, rows, F64, True), F32 if d.type == "f32" else F64)
    f.do(f"store <32 x {type_of(value.dtype)}> {value.text}, ptr {place('%to', 4 * d.word * r)}, align 4")
  e.declared.update(INTRINSICS)
  e.declared.update(f.declared)
  rooms = [f"  {p} = alloca [{count} x {t}], align 64" for p, count in zip(places, (m * k, k * n, k * n, m * n))]
  body = [f"define private void @{name}(ptr noalias %from, ptr noalias %to) {ALIGNED} {{", *rooms, *f.lines,
          "  ret void", "}"]
  return [text, *f.constants, "\n".join(body)]


def _elements(e: Emitter, words: Value, t: str) -> str:
  """The elements of a register of all lanes, one behind the other, as doubles or i32."""
  if t in _WHOLE: return integers(e, words, t)
  if t == "s32": return words.in_lanes()
  if t == "f32": return convert(words, F64).in_lanes()
  return doubles(e, words, t)
