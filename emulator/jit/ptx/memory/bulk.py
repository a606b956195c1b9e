"""Copies in bulk and of tensors' boxes as LLVM IR, by one thread of a warp; and changes of tensor maps.

Where several threads execute one, and where a routine has not done it, the reference does the instruction.
"""
from __future__ import annotations

from collections.abc import Sequence

from tinyhw.core.memory import Access
from tinyhw.emulator.jit.ptx import fallback
from tinyhw.emulator.jit.ptx.memory import access, clocks, order, watched
from tinyhw.emulator.jit.ptx.memory.boxes import column_load, column_store, tensor_load, tensor_store
from tinyhw.emulator.jit.ptx.memory.moves import NOTED, OWN, TRACKED, changed, linear, place_name
from tinyhw.emulator.jit.ptx.module.emit import Lanes
from tinyhw.emulator.jit.ptx.routine import Routine
from tinyhw.emulator.jit.ptx.turns import taken
from tinyhw.emulator.jit.values import Untranslatable, Value, convert
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.memory import addresses, copies, spaces, tensor
from tinyhw.emulator.ptx.memory.tensormap import ALIGN, FIELDS, ORDINALS, SIZE, USED, place_of
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.values.ops import DTYPES, I32, I64, U32, U64
from tinyhw.isa.ptx.forms import Form
from tinyhw.isa.ptx.model import Operand


def replaced(space: str, noted: str) -> Routine:
  """Changes a field of a tensor map; what lies between its fields becomes 0. `noted`: in cells (`spans`)."""
  r = Routine(f"replaced.{space or 'generic'}", ("map", "offset", "width", "value", *["lane"] * bool(noted)))
  r.need((r["map"] & ALIGN - 1) == 0)
  at = r.ask(place_name(space), r["map"], r.number(SIZE), r.number(Access.READ | Access.WRITE))
  if noted: r.ask("own.near.write", at, r.number(SIZE), r["lane"])
  for width, dtype in ((1, DTYPES["u8"]), (4, U32), (8, U64)):
    with r.when(r["width"] == width):
      if width == 1: r.need(r["value"] < 1 << 8)
      r.store(at + r["offset"], convert(r["value"], dtype))
  between, size = place_of("")
  r.store(at + between, r.const(U32, 0))
  for k in range(USED, SIZE): r.store(at + k, r.const(DTYPES["u8"], 0))
  changed(r)
  return r


# ---- instructions

def _one(g: Lanes, line: Line, k: int, routine: Routine, given: Sequence[Value], together: bool = False,
         again: bool = False) -> None:
  """Have a routine act for the one thread that executes an instruction, or the first one where they do it `together`,
  or where all give the same and it may as well be done `again`; where it does not, the reference does."""
  e = g.e
  taken(g, routine)
  guard = operands.predicate(line)
  here = g.active_bits
  if guard is not None: here = e.op(f"and i32 {g.bits(guard(g))}, {here}")
  before, e.side = e.side, True
  some, alone, other, done = (e.new_label(name) for name in ("some", "alone", "other", "done"))
  e.do(f"br i1 {e.op(f'icmp eq i32 {here}, 0')}, label %{done}, label %{some}")
  e.start(some)
  lane = e.op(f"call i32 @llvm.cttz.i32(i32 {here}, i1 true)")
  texts = [x.text if not x.wide else e.op(f"extractelement {x.type} {x.text}, i32 {lane}") for x in given]
  rest = "0" if together else e.op(f"and i32 {here}, {e.op(f'sub i32 {here}, 1')}")
  if again:
    differ = "0"
    for x, text in zip(given, texts):
      if x.wide: differ = e.op(f"or i32 {differ}, {g.bits(x != Value(e, text, x.dtype, False))}")
    rest = e.op(f"and i32 {rest}, {differ}")
  e.do(f"br i1 {e.op(f'icmp eq i32 {rest}, 0')}, label %{alone}, label %{other}")
  e.start(alone)
  passed = "".join(f", i64 {text}" for text in texts)
  good = e.op(f"call i1 @{routine.name}(ptr %context, ptr %state{passed})")
  e.do(f"br i1 {good}, label %{done}, label %{other}, !prof !1")
  e.start(other)
  if g.watch is not None: e.do(f"br label %{g.deopt()}")
  else:
    fallback.emit(g, k)
    e.do(f"br label %{done}")
  e.start(done)
  e.side = before


def _address(g: Lanes, line: Line, operand: Operand, space: str) -> Value:
  found: Value = addresses.address(g.code, line, operand, space)(g)
  return convert(found.view(U32 if found.dtype.itemsize == 4 else U64), U64)


def _signed(g: Lanes, line: Line, operand: Operand) -> Value:
  found: Value = operands.reader(g.code, line, operand, "s32")(g)
  return convert(convert(found.view(I32), I64), U64)


def cp(g: Lanes, line: Line, form: Form) -> None:
  """cp.async.bulk, cp.reduce.async.bulk and their .tensor."""
  i, m = line.instruction, form.modifiers
  if m & {"commit_group", "wait_group"} and g.watch is not None: return _grouped(g, line, m)
  if "prefetch" in m and g.watch is not None: return None
  if m & {"commit_group", "wait_group", "wait_all", "prefetch", "cp_mask"}: raise Untranslatable("no compiled form")
  noted = _noted(g)
  operation = copies.reduction(m)
  several = "multicast::cluster" in m
  if several and not g.plan.clustered: raise Untranslatable("outside of clusters")
  target, source = copies.ends(line)
  if "tensor" in m: return _tensor(g, line, form, target == "shared", several, operation)
  told = "bulk_group" not in m
  routine = linear(target, source, told, several, 16, operation, form.type if operation else "", noted)
  given = [_address(g, line, i.operands[0], target), _address(g, line, i.operands[1], source),
           convert(operands.reader(g.code, line, i.operands[2], "u32")(g), U64)]
  if told: given.append(_address(g, line, i.operands[3], "shared"))
  if several: given.append(convert(operands.reader(g.code, line, i.operands[4], "u16")(g), U64))
  return _one(g, line, g.index, routine, given, again=not told and not operation)


def _noted(g: Lanes) -> str:
  """How watched code notes a copy."""
  if g.watch is None: return ""
  return TRACKED if g.watch.tracks else NOTED


def _lanes(g: Lanes, noted: str) -> list[Value]:
  """The number of the thread, where a routine is to have it."""
  return [g.e.vector(U64, range(g.width))] if noted in {TRACKED, OWN} else []


def _grouped(g: Lanes, line: Line, m: frozenset[str]) -> None:
  """cp.async.bulk.commit_group and wait_group in watched code: copies are made at once, their groups are counted."""
  guard, e = operands.predicate(line), g.e
  some, over = e.new_label("some"), e.new_label("over")
  here = g.active_bits if guard is None else e.op(f"and i32 {g.active_bits}, {g.bits(guard(g))}")
  e.do(f"br i1 {e.op(f'icmp ne i32 {here}, 0')}, label %{some}, label %{over}")
  before, e.side = e.side, True
  e.start(some)
  if "commit_group" in m: clocks.commit(g, order.STORE)
  else:
    left = operands.immediate(line, line.instruction.operands[0], "u32")
    if left is None: raise Untranslatable("of such groups")
    clocks.wait(g, order.STORE, int(left))
  e.do(f"br label %{over}")
  e.start(over)
  e.side = before


def _tensor(g: Lanes, line: Line, form: Form, loads: bool, several: bool, operation: str) -> None:
  i, m = line.instruction, form.modifiers
  columns, noted = bool(m & tensor.COLUMNS), _noted(g)
  if m & tensor.OTHERS: raise Untranslatable("no compiled form")
  rank = next(int(x[0]) for x in m if x in {"1d", "2d", "3d", "4d", "5d"})
  box, plain = (1, 0) if loads else (0, 1)
  base, parts = tensor.parts(line, i.operands[box], rank)
  given = [_address(g, line, base, spaces.GENERIC), _address(g, line, i.operands[plain], "shared")]
  at = [_signed(g, line, p) for p in parts]
  if loads:
    given.append(_address(g, line, i.operands[2], "shared"))
    rest = [*i.operands[3:]]
    if columns:
      at += [convert(operands.reader(g.code, line, o, "u16")(g), U64) for o in operands.elements(line, rest.pop(0))]
    if several: given.append(convert(operands.reader(g.code, line, rest[0], "u16")(g), U64))
    routine = column_load(rank, several, noted) if columns else tensor_load(rank, several, noted)
    return _one(g, line, g.index, routine, [*given, *at, *_lanes(g, noted)])
  routine = column_store(rank, operation, noted) if columns else tensor_store(rank, operation, noted)
  return _one(g, line, g.index, routine, [*given, *at, *_lanes(g, noted)], again=not operation)


@access.emits("fence")
def fence(g: Lanes, line: Line, form: Form, info: object) -> None:
  """Memory is one: a fence counts in watched code alone, where what units read comes behind it."""
  if g.watch is None or "async" not in form.modifiers: return
  if line.instruction.predicate is not None: raise Untranslatable("under a guard in watched code")
  watched.fenced(g)


@access.emits("tensormap")
def tensormap(g: Lanes, line: Line, form: Form, info: object) -> None:
  """tensormap.replace and tensormap.cp_fenceproxy."""
  i, m = line.instruction, form.modifiers
  if "cp_fenceproxy" in m:
    noted = OWN if g.watch is not None else ""
    routine = linear("global", "shared", False, False, 1, "", "", noted)
    given = [_address(g, line, i.operands[0], "global"), _address(g, line, i.operands[1], "shared")]
    return _one(g, line, g.index, routine, [*given, g.o.const("u64", SIZE), *_lanes(g, noted)], together=True)
  name, rest = i.modifiers[2], [*i.operands]
  space = spaces.space_of(m)
  at = _address(g, line, rest.pop(0), space)
  ordinal = operands.immediate(line, rest.pop(0), "u32") if len(rest) > 1 else 0
  field = ORDINALS.get(name) or FIELDS.get(name, name)
  count = {"dims": 5, "strides": 4, "box": 5, "steps": 5}.get(field, 1)
  if ordinal is None or int(ordinal) >= count: raise Untranslatable("of such a field")
  offset, width = place_of(field, int(ordinal))
  value = operands.reader(g.code, line, rest[0], form.type)(g)
  const = g.o.const
  noted = OWN if g.watch is not None else ""
  if noted and space != "shared": raise Untranslatable("outside of shared memory in watched code")
  given = [at, const("u64", offset), const("u64", width), convert(value, U64), *_lanes(g, noted)]
  _one(g, line, g.index, replaced(space, noted), given)
