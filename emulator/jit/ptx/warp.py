"""Instructions by which the threads of a warp exchange values, as LLVM IR; a strand is a warp then."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tinyhw.emulator.jit.ptx.module.emit import Lanes
from tinyhw.emulator.jit.ptx.module.shapes import Info
from tinyhw.emulator.jit.values import BOOL, Untranslatable, Value, convert, gather, number, type_of
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.ptx.warp import fits
from tinyhw.emulator.values.ops import I32 as _I32
from tinyhw.emulator.values.ops import U32
from tinyhw.emulator.values.ops import U64 as _U64
from tinyhw.isa.ptx.forms import Form

Emit = Callable[[Lanes, Line, Form, Info], None]
EMITTERS: Final[dict[str, Emit]] = {}


def emits(opcode: str) -> Callable[[Emit], Emit]:
  """Decorator: the function emits this opcode."""
  def register(function: Emit) -> Emit:
    def checked(g: Lanes, line: Line, form: Form, info: Info) -> None:
      fits(line)
      function(g, line, form, info)
    EMITTERS[opcode] = checked
    return function
  return register


def _here(g: Lanes, line: Line) -> Value:
  """The lanes that take part: of threads that name different members the reference knows."""
  i = line.instruction
  if "sync" in i.modifiers and operands.reader(g.code, line, i.operands[-1], "b32")(g).wide:
    raise Untranslatable("with members that threads differ in")
  guard = None if "sync" in line.instruction.modifiers else operands.predicate(line)
  return g.active if guard is None else g.active & guard(g)


def _u32(g: Lanes, text: str) -> Value: return Value(g.e, text, U32, False)


def _write(g: Lanes, line: Line, o: Any, type_: str, value: Value) -> None:
  operands.writer(g.code, line, o, type_)(g, value)


@emits("activemask")
def activemask(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """The threads of the warp that are here together."""
  _write(g, line, line.instruction.operands[0], "b32", _u32(g, g.bits(_here(g, line))))


@emits("elect")
def elect(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """One thread of the members: the lowest."""
  first, second = operands.pair(line)
  leader = g.o.trailing_zeros(_u32(g, g.bits(_here(g, line))))
  _write(g, line, first, "b32", leader)
  if second is not None: _write(g, line, second, "pred", _lane(g) == leader)


def _lane(g: Lanes) -> Value: return g.e.vector(U32, range(g.width))


@emits("vote")
def vote(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """all, any, uni, ballot over the threads that are here."""
  i, e = line.instruction, g.e
  kind = next(m for m in ("all", "any", "uni", "ballot") if m in form.modifiers)
  p = operands.reader(g.code, line, i.operands[1], "pred")(g)
  here = g.bits(_here(g, line))
  bits = e.op(f"and i32 {g.bits(p)}, {here}")
  if kind == "ballot": return _write(g, line, i.operands[0], "b32", _u32(g, bits))
  every, some = e.op(f"icmp eq i32 {bits}, {here}"), e.op(f"icmp ne i32 {bits}, 0")
  found = every if kind == "all" else some if kind == "any" else e.op(f"or i1 {every}, {e.op(f'xor i1 {some}, true')}")
  _write(g, line, i.operands[0], "pred", Value(e, found, BOOL, False))


@emits("shfl")
def shfl(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """A value of another lane of the thread's segment (PTX ISA, section 9.7.9.6)."""
  i, e, o = line.instruction, g.e, g.o
  kind = next(m for m in ("up", "down", "bfly", "idx") if m in form.modifiers)
  first, second = operands.pair(line)
  a, b, c = (operands.reader(g.code, line, x, "b32")(g) for x in i.operands[1:4])
  if b.bits is not None and c.bits is not None:
    found, within = _fixed(kind, b.bits & 31, c.bits)
    x = a.in_lanes()
    order = ", ".join(f"i32 {k}" for k in found)
    value = Value(e, e.op(f"shufflevector <32 x i32> {x}, <32 x i32> poison, <32 x i32> <{order}>"), U32, True)
    _write(g, line, first, "b32", value)
    if second is not None: _write(g, line, second, "pred", e.vector(BOOL, within))
    return
  lane = _lane(g)
  value, clamp, segment = b & 31, c & 31, c >> 8 & 31
  most = lane & segment | clamp & ~segment
  least = lane & segment
  if kind == "up": j = lane - value
  elif kind == "down": j = lane + value
  elif kind == "bfly": j = lane ^ value
  else: j = least | value & ~segment
  signed, limit = j.view(_I32), most.view(_I32)
  inside = signed >= limit if kind == "up" else signed <= limit
  j = o.where(inside, j, lane) & 31
  e.stack["shuffled"] = "alloca [32 x i32], align 64"
  e.do(f"store <32 x i32> {a.in_lanes()}, ptr %shuffled, align 64")
  at = convert(j, _U64)
  pointers = e.op(f"getelementptr i32, ptr %shuffled, <32 x i64> {at.in_lanes()}")
  _write(g, line, first, "b32", Value(e, gather(e, "i32", pointers, "splat (i1 true)"), U32, True))
  if second is not None: _write(g, line, second, "pred", inside)


def _fixed(kind: str, value: int, control: int) -> tuple[list[int], list[bool]]:
  """The lanes that a shuffle by constants reads, and whether each is in its segment."""
  clamp, segment = control & 31, control >> 8 & 31
  found, within = [], []
  for lane in range(32):
    most, least = lane & segment | clamp & ~segment, lane & segment
    j = {"up": lane - value, "down": lane + value, "bfly": lane ^ value}.get(kind, least | value & ~segment)
    inside = j >= most if kind == "up" else j <= most
    found.append(j if inside else lane)
    within.append(inside)
  return found, within


@emits("match")
def match(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """The threads that have the same value; all: whether every one has."""
  i, e, o = line.instruction, g.e, g.o
  first, second = operands.pair(line)
  x = operands.reader(g.code, line, i.operands[1], form.type)(g)
  members = operands.reader(g.code, line, i.operands[2], "b32")(g)
  if members.wide: raise Untranslatable("with members that threads differ in")
  here = e.op(f"and i32 {g.bits(_here(g, line))}, {members.text}")
  t = type_of(x.dtype)
  vector = Value(e, x.in_lanes(), x.dtype, True)

  def same(text: str) -> str:
    equal = vector == Value(e, text, x.dtype, False)
    return e.op(f"and i32 {g.bits(equal)}, {here}")
  if "all" in form.modifiers:
    leader = e.call("i32", "llvm.cttz.i32", ("i32", here), ("i1", "false"))
    bits = same(e.op(f"extractelement <32 x {t}> {vector.text}, i32 {e.op(f'and i32 {leader}, 31')}"))
    one = Value(e, e.op(f"icmp eq i32 {bits}, {here}"), BOOL, False)
    _write(g, line, first, "b32", o.where(one, _u32(g, here), o.const("u32", 0)))
    if second is not None: _write(g, line, second, "pred", one)
    return
  out = "poison"
  for k in range(32):
    bits = same(e.op(f"extractelement <32 x {t}> {vector.text}, i32 {k}"))
    out = e.op(f"insertelement <32 x i32> {out}, i32 {bits}, i32 {k}")
  _write(g, line, first, "b32", Value(e, out, U32, True))


_NEUTRAL: Final = {"add": 0, "and": -1, "or": 0, "xor": 0}


@emits("redux")
def redux(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """A reduction over the members that are here."""
  i, t, e = line.instruction, form.type, g.e
  kind = next(m for m in ("add", "min", "max", "and", "or", "xor") if m in form.modifiers)
  x = operands.reader(g.code, line, i.operands[1], t)(g)
  if x.dtype.kind == "f": raise Untranslatable("of floats")
  sign = x.dtype.kind == "i"
  bits = x.dtype.itemsize * 8
  neutral = _NEUTRAL.get(kind)
  if neutral is None:
    low, high = (1 << bits - 1, (1 << bits - 1) - 1) if sign else (0, (1 << bits) - 1)
    neutral = high if kind == "min" else low
  name = kind if kind in _NEUTRAL else ("s" if sign else "u") + kind
  values = g.o.where(_here(g, line), x, number(e, x.dtype, neutral))
  plain = type_of(x.dtype)
  text = e.call(plain, f"llvm.vector.reduce.{name}.v32{plain}", (f"<32 x {plain}>", values.in_lanes()))
  _write(g, line, i.operands[0], t, Value(e, text, x.dtype, False))


