"""Atomics as LLVM IR: one thread after the other, the lowest first."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tinyhw.core.memory import Access
from tinyhw.emulator.jit.ptx.memory import access, clocks, remote, watched
from tinyhw.emulator.jit.ptx.module import layout
from tinyhw.emulator.jit.ptx.module.emit import Lanes
from tinyhw.emulator.jit.ptx.module.shapes import Info
from tinyhw.emulator.jit.ptx.onebyone import turns
from tinyhw.emulator.jit.values import Untranslatable, Value
from tinyhw.emulator.memory.atomics import ATOMICS
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.memory import combine, move
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.values.ops import U64
from tinyhw.isa.ptx.forms import SIZES, Form
from tinyhw.isa.ptx.model import Name, Operand

Change = Callable[[list[Value], list[Value]], list[Value]]
"""What becomes of a thread's cells: (old values, its operands), unsigned."""


@access.emits("atom", "red")
def atom(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """Read-modify-writes of 2 to 16 bytes, and of vectors."""
  i, m, t = line.instruction, form.modifiers, form.type
  if "async" in m:
    return remote.sent(g, line, form)
  rest = [*i.operands]
  destination = rest.pop(0) if i.opcode == "atom" else None
  address = rest.pop(0)
  if t == "b128":
    t, sources = "b64", [half for o in rest for half in operands.halves(o)]
    sink = isinstance(destination, Name) and destination.text == "_"
    targets: Sequence[Operand] = () if destination is None or sink else operands.halves(destination)
    count, change = 2, _exchanged("cas" in m, g.o)
  else:
    sources = [x for o in rest for x in operands.elements(line, o)]
    targets = () if destination is None else operands.elements(line, destination)
    count, change = next((int(x[1]) for x in ("v2", "v4", "v8") if x in m), 1), _changing(form, g.o)
  size = SIZES[t]
  values = [operands.reader(g.code, line, o, t)(g) for o in sources]
  site = access.site_of(g, line, form, address, size, count, Access.READ | Access.WRITE)
  if site.mode == access.LOCAL: raise Untranslatable("on the stack")
  speaks = watched.speaking(g)
  old = _serial(g, site, values, change, bool(targets), speaks)
  if speaks: watched.speaks(g, site, g.e.op("load i32, ptr %changed"))
  watched.touched(g, site, clocks.ATOMIC)
  _write(g, line, targets, t, old)


def _write(g: Lanes, line: Line, targets: Sequence[Operand], t: str, values: Sequence[Value]) -> None:
  for o, value in zip(targets, values): operands.writer(g.code, line, o, t)(g, value.view(operands.dtype_of(t)))


def _changing(form: Form, o: Any) -> Change:
  """What an atomic makes of each element."""
  t = form.type
  if SIZES[t] == 2 and "cas" in form.modifiers:
    return lambda old, given: [o.where(old[0] == given[0], given[1], old[0])]
  if t in combine.HALVES and (SIZES[t] == 2 or form.modifiers & {"v2", "v4", "v8", "min", "max"}):
    name = combine.operation(form.modifiers)
    return lambda old, given: [combine.combined(o, t, name, a, b) for a, b in zip(old, given)]
  what = ATOMICS[move.operation(form)]
  dtype, raw = what.dtype(SIZES[t]), operands.unsigned(SIZES[t])

  def change(old: list[Value], given: list[Value]) -> list[Value]:
    data, compare = given[-len(old):], given[:len(old)]
    return [what.function(o, *(x.view(dtype) for x in xs)).view(raw) for xs in zip(old, data, compare)]
  return change


def _exchanged(compares: bool, o: Any) -> Change:
  """Exchanges of 16 bytes."""
  def change(old: list[Value], given: list[Value]) -> list[Value]:
    if not compares: return given
    same = (old[0] == given[0]) & (old[1] == given[1])
    return [o.where(same, new, was) for was, new in zip(old, given[2:])]
  return change


def _serial(g: Lanes, site: access.Site, values: Sequence[Value], change: Change, wanted: bool,
            noted: bool) -> list[Value]:
  """Change the cells of each thread in turn; the old values, where they are wanted. `noted`: the bits of those that
  have made other ones are in %changed."""
  e, w, size = g.e, g.width, site.size
  raw, t = operands.unsigned(size), f"i{8 * site.size}"
  away = g.deopt()
  at = site.base if site.steps is None else g.materialized(site.base, site.steps)
  e.do(f"store <{w} x i64> {at.in_lanes()}, ptr {g.pointer('%context', layout.ADDRESSES)}, align 8")
  columns = [g.pointer("%context", layout.DATA + size * w * k) for k in range(len(values) + site.count * wanted)]
  for value, place in zip(values, columns):
    e.do(f"store <{w} x {t}> {value.view(raw).in_lanes()}, ptr {place}, align {size}")
  mask = g.bits(site.mask) if site.mask is not None else "-1"
  good = e.op(f"call i1 @look(ptr %context, ptr %state, i32 {mask}, i64 {site.width}, i64 {site.access}, "
              f"i64 {site.mode})")
  fine = e.new_label("fine")
  e.do(f"br i1 {good}, label %{fine}, label %{away}, !prof !1")
  e.start(fine)
  if noted:
    e.stack["changed"] = "alloca i32"
    e.do("store i32 0, ptr %changed")
  with turns(e, mask) as turn:
    hosts = g.pointer("%context", layout.HOSTS)
    host = Value(e, e.op(f"load i64, ptr {e.op(f'getelementptr i64, ptr {hosts}, i32 {turn.lane}')}"), U64, False)
    cells = [e.op(f"inttoptr i64 {(host + k * size).text} to ptr") for k in range(site.count)]
    places = [e.op(f"getelementptr {t}, ptr {column}, i32 {turn.lane}") for column in columns]
    old = [Value(e, e.op(f"load {t}, ptr {cell}"), raw, False) for cell in cells]
    given = [Value(e, e.op(f"load {t}, ptr {place}"), raw, False) for place in places[:len(values)]]
    for cell, was, new in zip(cells, old, change(old, given)):
      e.do(f"store {t} {new.text}, ptr {cell}")
      if not noted: continue
      bit = e.op(f"shl i32 {e.op(f'zext i1 {(was != new).text} to i32')}, {turn.lane}")
      e.do(f"store i32 {e.op(f'or i32 {bit}, ' + e.op('load i32, ptr %changed'))}, ptr %changed")
    for place, was in zip(places[len(values):], old): e.do(f"store {t} {was.text}, ptr {place}")
  texts = [e.op(f"load <{w} x {t}>, ptr {column}, align {size}") for column in columns[len(values):]]
  return [Value(e, text, raw, True) for text in texts]
