"""What the threads of a strand have in common, register by register, and which of them wait where.

A register's value is *uniform* (one scalar), *in steps* (a scalar base plus a constant for each thread: indices and
addresses), or a vector. Control follows the order of PCs, the lowest place where threads wait first: so for each block
it is known at which later blocks others may wait meanwhile, and a write must leave those registers of theirs alone
that are still read there.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tinyhw.emulator.ptx import bind, operands, special
from tinyhw.emulator.ptx.group import LANES
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.ptx.memory.addresses import real_space
from tinyhw.emulator.ptx.module.scope import Line, Place, Register
from tinyhw.isa.ptx import forms
from tinyhw.isa.ptx.forms import SIZES, Form
from tinyhw.isa.ptx.model import Address, Arguments, Float, Instruction, Int, Name, Not, Operand, Sum

if TYPE_CHECKING:
  from tinyhw.emulator.jit.ptx.module.inline import JitCode

Steps = tuple[int, ...]


@dataclass(frozen=True)
class Shape:
  """`steps` of each thread from a scalar base, all 0 for what is uniform; None for a vector. `const` is the value of
  a uniform integer where it is known."""
  steps: Steps | None
  const: int | None = None

  @property
  def uniform(self) -> bool: return self.steps is not None and not any(self.steps)

  @property
  def stepped(self) -> bool: return self.steps is not None and any(self.steps)


VARYING: Final = Shape(None)


def signed(x: int, bits: int) -> int:
  """The number modulo 2**bits, as a signed one."""
  x &= (1 << bits) - 1
  return x - (1 << bits) if x >> bits - 1 else x


def joined(a: Shape | None, b: Shape | None) -> Shape | None:
  """What is true of both; None knows of no value yet."""
  if a is None or b is None: return b if a is None else a
  if a.steps != b.steps: return VARYING
  return a if a.const == b.const else Shape(a.steps)


@dataclass
class Info:
  """What the emitter has to know of an instruction: whether it works on bases alone (`stepped`), whose widening must
  be held against the width of `checks` (operand, type), and the shape of an address."""
  shape: Shape | None = None
  stepped: bool = False
  checks: tuple[tuple[int, str], ...] = ()


@dataclass
class Block:
  """Instructions [start, end) of the text, in the order of PCs `number`; `live` are the registers that it may read
  when it begins, `waiting` the blocks at which other threads of the strand may wait meanwhile."""
  number: int
  start: int
  end: int
  pc: int
  live: frozenset[int]
  successors: tuple[int, ...]
  instance: int = 0  # of the function
  waiting: set[int] = field(default_factory=set)
  looped: bool = False  # control may come from behind
  left: bool = False  # threads may have ended before


_LINEAR: Final = frozenset({"mov", "cvta", "add", "sub", "mul", "mad", "shl", "cvt"})
_FLOATS: Final = frozenset({"f16", "f32", "f64", "bf16", "f16x2", "bf16x2", "f32x2"})
_SHARED_RESULT: Final = frozenset({"vote", "redux", "activemask"})
_OWN_RESULT: Final = frozenset({"addc", "subc", "madc", "call"})
# Instructions with a binder of their own that is written against values of any engine.
SHARED_BINDERS: Final = frozenset({"mov", "cvta", "setp", "set", "cvt", "lop3", "prefetch", "prefetchu", "membar",
                                   "fence", "discard", "applypriority", "pmevent", "setmaxnreg", "createpolicy",
                                   "isspacep", "istypep"})
# where all threads give the same
_SAME_RESULT: Final = SHARED_BINDERS | {"mapa", "getctarank", "txq", "suq"}


class Plan:
  """The shapes of a kernel's registers and the blocks of its control flow, for blocks of `block` threads, whose warps
  are strands. `exact` are instructions (by their place in the text) whose steps did not widen exactly; `clustered`:
  blocks are in clusters."""

  def __init__(self, code: JitCode, block: tuple[int, int, int], exact: frozenset[int] = frozenset(),
               clustered: bool = False) -> None:
    self.clustered = clustered
    self.code, self.lines, self.block, self.exact = code, code.flat.lines, block, exact
    self.shapes: list[Shape | None] = [None] * len(code.flat.types)
    self.forms = [forms.find(i.name, len(i.operands)) for i in (line.instruction for line in self.lines)]
    whole = self.whole = code.whole
    self.touched = whole.touched
    self.moved = [whole.moved(k) for k in range(len(self.lines))]
    self.written = [moved if moved is not None else written(line, form) if form is not None else []
                    for line, form, moved in zip(self.lines, self.forms, self.moved)]
    self.infos = [Info() for _ in self.lines]
    self.threads = block[0] * block[1] * block[2]
    self._make_blocks()
    self._at = {b.start: b for b in self.blocks}
    for n in self.blocks[0].live if self.blocks else (): self.shapes[n] = self.uniform(0)
    while self._look() | self._wait(): pass
    self._find_left()

  # ---- blocks

  def _make_blocks(self) -> None:
    code, cut = self.code, self.code.cut
    number = {s: k for k, s in enumerate(cut.starts)}
    self.blocks = [Block(number[s], s, cut.ends[s], code.pc(s), frozenset(code.live_from(s)),
                         tuple(number[t] for t in cut.successors[s]), self.whole.owner[s].number) for s in cut.starts]
    for b in self.blocks:
      for t in b.successors:
        if t <= b.number: self.blocks[t].looped = True

  def block_of(self, index: int) -> Block:
    """The block that begins with an instruction of the text."""
    return self._at[index]

  def reached(self, index: int) -> Block | None:
    """As `block_of`; None where there is none."""
    return self._at.get(index)

  def divergent(self, b: Block) -> bool:
    """Whether threads may leave a block by different ways."""
    line = self.lines[b.end - 1]
    i = line.instruction
    calls = self.whole.calls(b.end - 1)
    chosen = i.operands[0] if i.opcode == "brx" else calls[0].calling.target if len(calls) > 1 else None
    if chosen is not None:
      shape = self.operand(line, chosen, "u64")
      if shape is not None and not shape.uniform: return True
    if i.predicate is None or i.opcode == "brx": return False
    shape = self.guard(line)
    return (i.opcode in {"bra", "ret", "exit"} or bool(calls)) and shape is not None and not shape.uniform

  def _wait(self) -> bool:
    """Follow which blocks may have threads waiting while others run; whether anything is new."""
    any_change = changed = False
    while True:
      changed = False
      for b in self.blocks:
        ways = [set(b.successors)] if self.divergent(b) else [{t} for t in b.successors] or [set()]
        for way in ways:
          after = b.waiting | way
          for n in after:
            later = {q for q in after if q > n}
            if not later <= self.blocks[n].waiting:
              self.blocks[n].waiting |= later
              changed = any_change = True
      if not changed: return any_change

  def kept(self, b: Block) -> frozenset[int]:
    """The registers that threads that wait elsewhere still read."""
    out: set[int] = set()
    for q in b.waiting: out |= self.blocks[q].live
    return frozenset(out)

  def _find_left(self) -> None:
    """Where threads of a strand may have ended while others go on."""
    work = []
    for b in self.blocks:
      i = self.lines[b.end - 1].instruction
      ends = i.opcode == "exit" or i.opcode == "ret" and self.whole.owner[b.end - 1].caller is None
      if ends and (self.divergent(b) or b.waiting): work += [*b.successors, *b.waiting]
    while work:
      b = self.blocks[work.pop()]
      if b.left: continue
      b.left = True
      work += [*b.successors, *b.waiting]

  # ---- shapes

  def uniform(self, const: int | None = None) -> Shape: return Shape((0,) * LANES, const)

  def guard(self, line: Line) -> Shape | None:
    """The shape of an instruction's guard."""
    p = line.instruction.predicate
    return self.uniform() if p is None else self.operand(line, Name(p.register), "pred")

  def operand(self, line: Line, o: Operand, type_: str) -> Shape | None:
    """The shape of a source operand as a type."""
    bits = 8 * SIZES[type_] if type_ in SIZES else 32
    if isinstance(o, Int): return self.uniform(o.value & (1 << bits) - 1)
    if isinstance(o, (Float, Sum)): return self.uniform()
    if isinstance(o, Not): return self.operand(line, o.operand, type_)
    if isinstance(o, Address): return self.operand(line, o.base, "u64")
    if isinstance(o, Name):
      found = line.scope.find(o.text)
      if isinstance(found, Register):
        shape = self.shapes[found.number]
        if shape is None or shape.steps is None or not any(shape.steps): return shape
        return Shape(tuple(signed(s, bits) for s in shape.steps))
      if isinstance(found, Place): return self.uniform()
      if o.text in special.REGISTERS: return self.special(o.text)
      return self.uniform()
    parts = getattr(o, "elements", None)
    if parts is None: return VARYING
    shapes = [self.operand(line, x, type_) for x in parts]
    if None in shapes: return None
    return self.uniform() if all(s is not None and s.uniform for s in shapes) else VARYING

  def special(self, name: str) -> Shape:
    """The shape of a special register."""
    base, _, part = name.partition(".")
    if base == "%tid": return self.tid("xyz".index(part))
    if base == "%ntid": return self.uniform(self.block["xyz".index(part)])
    if base == "%laneid": return Shape(tuple(range(LANES)))
    if base.startswith("%lanemask"): return VARYING
    return self.uniform()

  def tid(self, axis: int) -> Shape:
    """The shape of a thread's index in its block."""
    if self.block[axis] == 1: return self.uniform(0)
    below = 1
    for k in range(axis): below *= self.block[k]
    width, extent = LANES, self.block[axis]
    if below % width == 0: return self.uniform()
    period = below * extent
    if width % below and below != 1: return VARYING
    if width % period and period % width and period < self.threads: return VARYING
    steps = tuple(k // below % extent for k in range(width))
    if period < self.threads and width % period == 0: return Shape(steps)  # the same in each strand
    return Shape(tuple(k // below for k in range(width))) if period % width == 0 or period >= self.threads else VARYING

  def _look(self) -> bool:
    """Find the shapes of results anew; whether any register has become less."""
    before = [*self.shapes]
    for b in self.blocks:
      kept = self.kept(b)
      for k in range(b.start, b.end): self._instruction(k, kept)
    return before != self.shapes

  def _instruction(self, k: int, kept: frozenset[int]) -> None:
    line, form = self.lines[k], self.forms[k]
    if form is None: return
    info = self.infos[k]
    guard = self.guard(line)
    info.shape, info.stepped, info.checks = self._result(k, line, form)
    shape = info.shape
    if shape is None or guard is None: return
    if not guard.uniform: shape = VARYING
    for n in self.written[k]:
      new = VARYING if n in kept else shape
      if self.code.flat.types[n] == "pred" and new.stepped: new = VARYING
      self.shapes[n] = joined(self.shapes[n], new)

  def _result(self, k: int, line: Line, form: Form) -> tuple[Shape | None, bool, tuple[tuple[int, str], ...]]:
    i = line.instruction
    sources = i.operands[len(form.results):] if form.results else i.operands
    types = [*form.sources, *[form.type if form.types else "b32"] * (len(sources) - len(form.sources))]
    if i.opcode in {"ld", "ldu"}: return self._load(line), False, ()
    if i.opcode == "redux" and form.type == "f32": return VARYING, False, ()  # the reference's
    if i.opcode in _SHARED_RESULT:
      named = self.operand(line, i.operands[-1], "b32") if "sync" in i.modifiers else None
      apart = named is not None and not named.uniform  # threads may name different members
      return VARYING if apart else self.uniform(), False, ()
    if i.opcode in _OWN_RESULT or self.moved[k] is not None: return VARYING, False, ()
    if i.opcode in bind.BINDERS.keys() - _SAME_RESULT - bind.PURE and not tests(i): return VARYING, False, ()
    shapes = [self.operand(line, o, t if t in SIZES else "b32") for o, t in zip(sources, types)]
    if any(s is None for s in shapes): return None, False, ()
    if all(s is not None and s.uniform for s in shapes):
      const = shapes[0].const if i.opcode == "mov" and len(shapes) == 1 and shapes[0] is not None else None
      return self.uniform(const), False, ()
    if i.opcode in _LINEAR and len(form.results) == 1 and k not in self.exact:
      found = self._linear(line, form, [s for s in shapes if s is not None])
      if found is not None: return found
    return VARYING, False, ()

  def _load(self, line: Line) -> Shape | None:
    address = line.instruction.operands[1]
    space = spaces.space_of(frozenset(line.instruction.modifiers))
    if isinstance(address, Address):
      found = line.scope.find(address.base.text) if isinstance(address.base, Name) else None
      if isinstance(found, Place) and found.space in {"local", "param"} and self.code.on_stack(found): return VARYING
    if real_space(self.code, line, address, space) == "local": return VARYING
    shape = self.operand(line, address, "u64")
    return None if shape is None else self.uniform() if shape.uniform else VARYING

  def _linear(self, line: Line, form: Form, shapes: Sequence[Shape]) \
      -> tuple[Shape, bool, tuple[tuple[int, str], ...]] | None:
    """Steps of what is computed of steps; None where they are none."""
    if any(s.steps is None for s in shapes): return None
    m, t, op = form.modifiers, form.type, form.row.opcode
    if t in _FLOATS or t == "pred" or m & {"sat", "cc", "hi"} or "x2" in t: return None
    source = SIZES[t] * 8
    steps = [s.steps for s in shapes if s.steps is not None]
    checks: tuple[tuple[int, str], ...] = ()
    if op == "cvt":
      target = form.types[0]
      if target in _FLOATS or target not in SIZES or "pack" in m: return None
      out, bits = [signed(s, source) for s in steps[0]], SIZES[target] * 8
      if bits > source: checks = ((0, t),)
    elif op in {"mov", "cvta"}:
      if len(steps) != 1 or not isinstance(line.instruction.operands[1], Name): return None
      out, bits = list(steps[0]), source
    elif op in {"add", "sub"}:
      sign = 1 if op == "add" else -1
      out, bits = [a + sign * b for a, b in zip(*steps)], source
    elif op == "shl":
      count = shapes[1].const
      if count is None or not shapes[1].uniform or count >= source: return None
      out, bits = [s << count for s in steps[0]], source
    else:
      if m & {"24", "hi"}: return None
      a, b = (0, 1) if shapes[1].const is not None else (1, 0)
      factor = shapes[b].const
      if factor is None or not shapes[b].uniform: return None
      wide = "wide" in m
      if wide: factor = signed(factor, source) if t[0] == "s" else factor
      bits = source * 2 if wide else source
      out = [s * factor for s in steps[a]]
      if wide and any(steps[a]): checks = ((a, t),)
      if op == "mad": out = [x + y for x, y in zip(out, steps[2])]
    shape = Shape(tuple(signed(x, bits) for x in out))
    return shape, True, checks


def tests(i: Instruction) -> bool:
  """Whether an instruction asks for the phase of an mbarrier."""
  return i.opcode == "mbarrier" and i.modifiers[0] in {"test_wait", "try_wait"}


def written(line: Line, form: Form) -> list[int]:
  """The registers that an instruction writes."""
  out: list[int] = []

  def walk(o: Operand) -> None:
    r = operands.register(line, o)
    if r is not None: out.extend((r.number, r.number + 1)[:1 + (r.type == "b128")])
    elif isinstance(o, Name):
      for e in operands.elements(line, o):
        if e is not o: walk(e)
    else:
      for name in ("elements", "first", "second"):
        found = getattr(o, name, None)
        if isinstance(found, tuple):
          for e in found: walk(e)
        elif found is not None: walk(found)
  i = line.instruction
  results = len(form.results)
  if i.opcode == "call": results = int(len(i.operands) > 1 and isinstance(i.operands[0], Arguments))
  for o in i.operands[:results]: walk(o)
  return out


__all__ = ["VARYING", "Block", "Info", "Plan", "Shape", "tests", "written"]
