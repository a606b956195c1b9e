"""Instructions by which the threads of a warp exchange values: shfl, vote, match, redux, activemask, elect."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.bind import Step, binds, need
from tinyhw.emulator.ptx.group import LANES, Warps, lanes_of
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.ptx.forms import Form

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code

_LANE: Final = np.arange(LANES, dtype=np.int64)[None, :]
_OPERANDS: Final = {"activemask": 1, "elect": 1, "vote": 2, "shfl": 4, "match": 2, "redux": 2}  # beside .sync's members


def active(code: Code, line: Line) -> Callable[[Warps], Value]:
  """Reader of the lanes that take part [waves, lanes]: those in the group whose guard is true (old forms without .sync
  may have one: with .sync the guard is asked before)."""
  guard = None if "sync" in line.instruction.modifiers else operands.predicate(line)
  if guard is None: return lambda group: group.lanes
  return lambda group: group.lanes & guard(group)


def bits_of(lanes: Value) -> Value:
  """Bools [waves, 32] as u32 [waves, 1]."""
  return np.ascontiguousarray(np.packbits(lanes, axis=1, bitorder="little")).view(np.uint32)


def fellows(code: Code, line: Line) -> Callable[[Warps], Value | None]:
  """Reader of who takes part with each thread [waves, lanes, lanes], where threads of a warp name different members (as
  match.any gives them); None where a warp's name the same, so that all who are here do."""
  if "sync" not in line.instruction.modifiers: return lambda group: None
  read = operands.reader(code, line, line.instruction.operands[-1], "b32")

  def found(group: Warps) -> Value | None:
    members = np.asarray(read(group))
    if members.ndim < 2 or members.shape[1] == 1: return None
    lanes = group.lanes
    first = np.take_along_axis(members, lanes.argmax(axis=1)[:, None], axis=1)
    if (members == first)[lanes].all(): return None
    return (members[:, :, None] == members[:, None, :]) & lanes[:, None, :]
  return found


def fits(line: Line) -> None:
  """Raises DecodeError for another number of operands than these instructions take."""
  need(line, _OPERANDS[line.instruction.opcode] + ("sync" in line.instruction.modifiers))


@binds("activemask")
def activemask(code: Code, line: Line, form: Form) -> Step:
  """The threads of the warp that are here together, and whose guard is true."""
  fits(line)
  write, lanes = operands.writer(code, line, line.instruction.operands[0], "b32"), active(code, line)
  return lambda group: write(group, bits_of(lanes(group)))


@binds("elect")
def elect(code: Code, line: Line, form: Form) -> Step:
  """One thread of the members: the lowest."""
  fits(line)
  first, second = operands.pair(line)
  write = operands.writer(code, line, first, "b32")
  other = None if second is None else operands.writer(code, line, second, "pred")
  apart = fellows(code, line)

  def run(group: Warps) -> None:
    groups = apart(group)
    leader = group.lanes.argmax(axis=1)[:, None] if groups is None else groups.argmax(axis=2)
    write(group, leader.astype(np.uint32))
    if other is not None: other(group, _LANE == leader)
  return run


@binds("vote")
def vote(code: Code, line: Line, form: Form) -> Step:
  """all, any, uni, ballot over the threads that are here."""
  i = line.instruction
  fits(line)
  kind = next(m for m in ("all", "any", "uni", "ballot") if m in form.modifiers)
  read = operands.reader(code, line, i.operands[1], "pred")
  write = operands.writer(code, line, i.operands[0], "b32" if kind == "ballot" else "pred")
  here, apart = active(code, line), fellows(code, line)

  def run(group: Warps) -> None:
    every: Any
    some: Any  # of each warp, or thread
    lanes, p = here(group), np.broadcast_to(read(group), (group.size, LANES))
    groups = apart(group)
    if groups is not None:
      with_ = groups & p[:, None, :]
      if kind == "ballot": return write(group, bits_of(with_.reshape(-1, LANES)).reshape(group.size, LANES))
      every, some = (with_ == groups).all(axis=2), with_.any(axis=2)
      return write(group, every if kind == "all" else some if kind == "any" else every | ~some)
    yes = p & lanes
    if kind == "ballot": return write(group, bits_of(yes))
    every, some = (p | ~lanes).all(axis=1, keepdims=True), yes.any(axis=1, keepdims=True)
    write(group, every if kind == "all" else some if kind == "any" else every | ~some)
  return run


def _sources(kind: str, b: Value, c: Value) -> tuple[Value, Value]:
  """(the lane that each one reads, whether that is another one's than its own for being outside of its segment)."""
  value, control = b.astype(np.int64) & 31, c.astype(np.int64)
  clamp, segment = control & 31, control >> 8 & 31
  most = _LANE & segment | clamp & ~segment
  least = _LANE & segment
  if kind == "up": j = _LANE - value
  elif kind == "down": j = _LANE + value
  elif kind == "bfly": j = _LANE ^ value
  else: j = least | value & ~segment
  inside = j >= most if kind == "up" else j <= most
  return np.where(inside, j, _LANE), inside


def source_lanes(code: Code, line: Line) -> Callable[[Warps], Value]:
  """Reader of the lanes that a shfl reads [waves, lanes]."""
  i = line.instruction
  kind = next(m for m in ("up", "down", "bfly", "idx") if m in i.modifiers)
  b, c = (operands.reader(code, line, o, "b32") for o in i.operands[2:4])
  return lambda group: np.broadcast_to(_sources(kind, b(group), c(group))[0], (group.size, LANES))


@binds("shfl")
def shfl(code: Code, line: Line, form: Form) -> Step:
  """A value of another lane of the thread's segment (PTX ISA, section 9.7.9.6)."""
  i = line.instruction
  fits(line)
  kind = next(m for m in ("up", "down", "bfly", "idx") if m in form.modifiers)
  first, second = operands.pair(line)
  write = operands.writer(code, line, first, "b32")
  other = None if second is None else operands.writer(code, line, second, "pred")
  a, b, c = (operands.reader(code, line, o, "b32") for o in i.operands[1:4])

  def run(group: Warps) -> None:
    x = np.broadcast_to(a(group), (group.size, LANES))
    j, inside = _sources(kind, b(group), c(group))
    write(group, np.take_along_axis(x, np.broadcast_to(j, (group.size, LANES)), axis=1))
    if other is not None: other(group, np.broadcast_to(inside, (group.size, LANES)))
  return run


@binds("match")
def match(code: Code, line: Line, form: Form) -> Step:
  """The threads that have the same value; all: whether every one has."""
  i = line.instruction
  fits(line)
  first, second = operands.pair(line)
  write = operands.writer(code, line, first, "b32")
  other = None if second is None else operands.writer(code, line, second, "pred")
  read = operands.reader(code, line, i.operands[1], form.type)
  members = operands.reader(code, line, i.operands[2], "b32")
  every = "all" in form.modifiers
  apart = fellows(code, line)

  def run(group: Warps) -> None:
    x = np.broadcast_to(read(group), (group.size, LANES))
    lanes = group.lanes & lanes_of(operands.full(group, members(group)))
    groups = apart(group)
    among = lanes[:, None, :] if groups is None else groups
    same = (x[:, :, None] == x[:, None, :]) & among
    if not every:
      packed = np.packbits(same.reshape(-1, LANES), axis=1, bitorder="little").view(np.uint32)
      return write(group, np.ascontiguousarray(packed).reshape(group.size, LANES))
    one = (same == among).all(axis=2)
    all_of = bits_of(lanes) if groups is None else bits_of(groups.reshape(-1, LANES)).reshape(group.size, LANES)
    write(group, np.where(one, all_of, np.uint32(0)))
    if other is not None: other(group, one)
  return run


_REDUCE: Final[dict[str, tuple[Any, int]]] = {
  "add": (np.add, 0), "and": (np.bitwise_and, -1), "or": (np.bitwise_or, 0), "xor": (np.bitwise_xor, 0)}


@binds("redux")
def redux(code: Code, line: Line, form: Form) -> Step:
  """A reduction over the members that are here."""
  i, t = line.instruction, form.type
  fits(line)
  kind = next(m for m in ("add", "min", "max", "and", "or", "xor") if m in form.modifiers)
  read, write = operands.reader(code, line, i.operands[1], t), operands.writer(code, line, i.operands[0], t)
  if t == "f32": return _extreme(code, line, form, read, write)
  dtype = operands.dtype_of(t)
  if kind in _REDUCE:
    ufunc, start = _REDUCE[kind]
    neutral = np.array(start).astype(dtype)[()]
  else:
    ufunc = np.minimum if kind == "min" else np.maximum
    neutral = dtype.type(np.iinfo(dtype).max if kind == "min" else np.iinfo(dtype).min)

  apart = fellows(code, line)

  def run(group: Warps) -> None:
    groups = apart(group)
    if groups is not None:
      each = np.where(groups, np.broadcast_to(read(group), (group.size, LANES))[:, None, :], neutral)
      return write(group, ufunc.reduce(each, axis=2, dtype=dtype))
    x = np.where(group.lanes, read(group), neutral)
    write(group, ufunc.reduce(x, axis=1, keepdims=True, dtype=dtype))
  return run


def _extreme(code: Code, line: Line, form: Form, read: operands.Reader, write: operands.Writer) -> Step:
  """redux.sync of floats: -0 is less than +0; NaN counts for nothing, or with .NaN for all."""
  m = form.modifiers
  most, apart = "max" in m, fellows(code, line)
  worst, nan = np.int32(-1 << 31 if most else (1 << 31) - 1), np.uint32(0x7FFFFFFF)

  def ordered(raw: Value) -> Value:
    """Bits of a float as an integer of the same order; and back."""
    signed = raw.view(np.int32)
    return np.where(signed < 0, signed ^ np.int32(0x7FFFFFFF), signed)

  def run(group: Warps) -> None:
    raw = np.ascontiguousarray(operands.full(group, read(group))).view(np.uint32)
    bad = (raw & nan) > np.uint32(0x7F800000)
    if "abs" in m: raw = raw & nan
    groups = apart(group)
    here = np.broadcast_to(group.lanes[:, None, :], (group.size, 1, LANES)) if groups is None else groups
    keys = np.where(here & ~bad[:, None, :], ordered(raw)[:, None, :], worst)
    found = ordered((keys.max(axis=2) if most else keys.min(axis=2)).astype(np.int32)).astype(np.int32).view(np.uint32)
    some = here & bad[:, None, :]
    lost = some.any(axis=2) if "NaN" in m else (some == here).all(axis=2)
    write(group, np.ascontiguousarray(np.where(lost, nan, found)).view(np.float32))
  return run
