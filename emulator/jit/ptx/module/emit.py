"""The group that bound steps run on once to be LLVM IR: registers and values that are code, ways out of it and back."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tinyhw.emulator.jit.ptx import fallback, specials
from tinyhw.emulator.jit.ptx.lane_ops import LaneOps
from tinyhw.emulator.jit.ptx.module import layout
from tinyhw.emulator.jit.ptx.module.nans import ANY_NAN, MOVES, loose_registers
from tinyhw.emulator.jit.ptx.module.shapes import Block, Plan
from tinyhw.emulator.jit.values import BOOL, Emitter, Value, type_of
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.group import LANES
from tinyhw.emulator.ptx.module.flow import members
from tinyhw.emulator.values.ops import DTYPES, U64

if TYPE_CHECKING:
  from tinyhw.emulator.jit.ptx.memory.watched import Watch


class Refused(Exception):
  """A kernel that is better left to the reference as a whole; says for what instruction."""


class Registers:
  """What bound steps see as `group.v`."""

  def __init__(self, lanes: Lanes) -> None: self._lanes = lanes

  def __getitem__(self, n: int) -> Value: return self._lanes.read(n)

  def __setitem__(self, n: int, value: Value) -> None: self._lanes.write(n, value)


@dataclass
class Exit:
  """A place where a strand leaves compiled code: status, PC, the register and offset of what it keeps, and of the
  masks of blocks where threads wait; `left` says whether others may have ended, `instance` in which function it is."""
  status: int
  pc: int
  registers: list[tuple[int, int]]
  masks: list[tuple[int, int]]
  carry: int
  size: int
  left: bool
  instance: int

  def row(self) -> list[Any]:
    """As it is kept: its fields in order."""
    return [*vars(self).values()]


@dataclass
class Way:
  """How registers get into a strand's state, for exits of one block that keep the same values: `found` are those that
  are not in their variables. Not `key`ed, it is of one exit alone."""
  key: Any
  status: int
  label: str
  keep: list[int]
  found: dict[int, str]
  lines: list[str] = field(default_factory=list)
  rows: list[tuple[int, int]] = field(default_factory=list)
  waits: list[tuple[int, int]] = field(default_factory=list)
  comes: list[tuple[str, int]] = field(default_factory=list)  # labels of exits, with their numbers
  carry: int = 0
  size: int = 0

  def serves(self, key: Any, keep: list[int], found: dict[int, str]) -> bool:
    """Whether an exit keeps nothing else than this does."""
    return self.key is not None and self.key == key and {*keep} <= {*self.keep} and all(
      self.found.get(n) == found.get(n) for n in keep)

  def text(self) -> list[str]:
    """The code, which begins with the number of the exit."""
    return [f"{self.label}:", f"  %{self.label}.n = phi i32 " + ", ".join(f"[ {n}, %{at} ]" for at, n in self.comes),
            *self.lines, f"  br label %leave.{self.status}"]


class Lanes:
  """The group that bound steps run on: what emits the code of one kernel writes to it (`blocks`)."""

  base = 0
  mask = None
  width: Final = LANES
  mask_type: Final = f"i{LANES}"

  def __init__(self, plan: Plan, watch: Watch | None = None) -> None:
    self.plan, self.code, self.watch = plan, plan.code, watch
    self.e = Emitter(LANES)
    self.o = LaneOps(self.e, self)
    self.v = Registers(self)
    self.types = [operands.dtype_of(t) for t in plan.code.flat.types]
    self.loose = False  # the result of this instruction need not have the chip's NaN
    self.tolerant = False  # this instruction takes any NaN
    self.stepped = False  # it works on bases
    self.current: dict[int, Value] = {}
    self.bases: dict[int, Value] = {}
    self.dirty: set[int] = set()
    self.exits: list[Exit] = []
    self.tail: list[str] = []  # code of exits
    self.block: Block = plan.blocks[0]
    self.used: set[int] = set()
    self.sites = 0
    self._kept: frozenset[int] = frozenset()
    self._carry: Value | None = None
    self.uses_carry = any(f is not None and ("cc" in f.modifiers or f.row.opcode in {"addc", "subc", "madc"})
                          for f in plan.forms)
    self.full = plan.threads % LANES == 0
    self._loose = loose_registers(plan)
    self._active: Value | None = None
    # place in its function's text, PC, what it reads, gives, name, function's instance
    self.helped: list[tuple[int, int, fallback.Places, fallback.Places, str, int]] = []
    self.seldom: set[str] = set()  # names of instructions that only the helper does
    self.named = False  # whether it has barriers that are not of the whole block
    self.phases = False  # whether it has barriers of its cluster
    self.homes = self._homes()  # registers that have a place of their own in the state: its offset
    # bytes of a state: up to where exits keep the others, and what helped instructions take
    self.kept_at = self.room = max((at + self.size_of(n) for n, at in self.homes.items()), default=layout.HEADER)
    self._sets: dict[int, tuple[set[int], set[int]]] = {}
    self._ways: list[Way] = []
    self.live_out = [frozenset().union(*(plan.blocks[t].live for t in b.successors)) if b.successors else frozenset()
                     for b in plan.blocks]
    self.assigned = frozenset(n for of in plan.written for n in of) | plan.blocks[0].live
    self.lived = self._live_before()
    self._resumable: list[tuple[int, str]] = []
    self._again = 0
    self.places: set[int] = set()  # offsets in the state that exits store at

  # ---- small pieces

  def shape(self, n: int) -> Any:
    found = self.plan.shapes[n]
    return self.plan.uniform() if found is None else found

  def slot(self, n: int) -> str:
    """LLVM's type of a register's variable."""
    t = type_of(self.types[n])
    return t if self.shape(n).steps is not None else f"<{self.width} x {t}>"

  def _homes(self) -> dict[int, int]:
    """Places in the strand's state of registers that live from block to block, in a kernel with so many of them that
    LLVM could not keep them in its own: there they stay, and no exit has to save them nor any way back to load them."""
    if sum(len(b.live) * (b.end - b.start) for b in self.plan.blocks) < CROWDED: return {}
    out, at = dict[int, int](), layout.HEADER
    for n in sorted(frozenset().union(*(b.live for b in self.plan.blocks)), key=lambda n: (-self.size_of(n), n)):
      out[n] = at
      at += self.size_of(n)
    return out

  def fetch(self, n: int) -> str:
    """A register's variable, loaded. Of a register with a home it is volatile: LLVM holds each load of a block that it
    may move against all others there, and of thousands that takes minutes."""
    how = "load volatile" if n in self.homes else "load"
    if not self.packed(n): return self.e.op(f"{how} {self.slot(n)}, ptr %r{n}, align 4")
    bits = self.e.op(f"load {self.mask_type}, ptr %r{n}, align 4")
    return self.e.op(f"bitcast {self.mask_type} {bits} to {self.slot(n)}")

  def packed(self, n: int) -> bool:
    """Whether a register's variable is a word of bits."""
    return n in self.homes and self.types[n] == BOOL and self.shape(n).steps is None

  def store(self, n: int, text: str) -> None:
    """Give a register's variable a value."""
    t = self.slot(n)
    if self.packed(n): t, text = self.mask_type, self.e.op(f"bitcast {t} {text} to {self.mask_type}")
    self.e.do(f"store {t} {text}, ptr %r{n}, align 4")

  def context(self, at: int, dtype: Any = U64) -> Value:
    """A word of the context."""
    text = f"%context.{at}" if dtype == U64 else self.e.op(f"trunc i64 %context.{at} to i32")
    return Value(self.e, text, dtype, False)

  def pointer(self, base: str, at: int) -> str: return self.e.op(f"getelementptr i8, ptr {base}, i64 {at}")

  def bits(self, mask: Value) -> str:
    """A mask as an integer."""
    if mask.bits is not None: return str(-1 if mask.bits else 0)
    if not mask.wide: return self.e.op(f"select i1 {mask.text}, {self.mask_type} -1, {self.mask_type} 0")
    return self.e.op(f"bitcast {mask.type} {mask.text} to {self.mask_type}")

  def as_mask(self, bits: str) -> Value:
    text = self.e.op(f"bitcast {self.mask_type} {bits} to <{self.width} x i1>")
    return Value(self.e, text, BOOL, True)

  @property
  def everyone(self) -> bool:
    """Whether all threads of the strand are surely here."""
    return self.full and not self.block.waiting and not self.block.left

  @property
  def active_bits(self) -> str: return "-1" if self.everyone else self.e.op(f"load {self.mask_type}, ptr %active")

  @property
  def active(self) -> Value:
    """The threads that are here."""
    if self._active is None:
      self._active = Value(self.e, "splat (i1 true)", BOOL, True) if self.everyone else self.as_mask(self.active_bits)
    return self._active

  # ---- registers

  def base_of(self, n: int) -> Value:
    """A register's base, or its uniform value."""
    known = self.bases.get(n)
    if known is None:
      known = Value(self.e, self.fetch(n), self.types[n], False)
      self.used.add(n)
      if not self.e.side: self.bases[n] = known
    return known

  def read(self, n: int) -> Value:
    """A register's value, as the instruction wants it."""
    shape = self.shape(n)
    if shape.uniform or self.stepped and shape.stepped: value = self.base_of(n)
    else:
      known = self.current.get(n)
      if known is None:
        if shape.stepped: known = self.materialized(self.base_of(n), shape.steps)
        else:
          self.used.add(n)
          known = Value(self.e, self.fetch(n), self.types[n], True)
        if not self.e.side: self.current[n] = known
      value = known
    kind = self._loose.get(n)
    if kind is None or self.tolerant: return value
    return self.o.chip(value.view(DTYPES[kind]), kind).view(value.dtype)

  def materialized(self, base: Value, steps: tuple[int, ...]) -> Value:
    bits = base.dtype.itemsize * 8
    return base + self.e.vector(base.dtype, [s & (1 << bits) - 1 for s in steps])

  def write(self, n: int, value: Value) -> None:
    """Give a register a value, for the threads that are here."""
    own, shape = self.types[n], self.shape(n)
    if value.dtype != own: value = value.view(own)
    self.used.add(n)
    self.dirty.add(n)
    if shape.steps is not None:
      if value.wide: raise AssertionError(f"register {n} is no vector")
      self.bases[n] = value
      self.current.pop(n, None)
      return
    if self.stepped: value = self.materialized(value, self._steps)
    if not value.wide: value = Value(self.e, value.in_lanes(), own, True)
    if n in self._kept:
      old = self.current.get(n)
      if old is None: old = Value(self.e, self.fetch(n), own, True)
      value = self.o.where(self.active, value, old)
    self.current[n] = value

  _steps: tuple[int, ...] = ()

  @property
  def carry(self) -> Value:
    if self._carry is None:
      self._carry = Value(self.e, self.e.op(f"load <{self.width} x i1>, ptr %carry"), BOOL, True)
    return self._carry

  @carry.setter
  def carry(self, value: Value) -> None:
    value = Value(self.e, value.in_lanes(), BOOL, True)
    if self.block.waiting: value = self.o.where(self.active, value, self.carry)
    self._carry = value

  def special(self, name: str, dtype: Any) -> Value:
    """A special register in the width of an instruction."""
    return specials.read(self, name, dtype)

  # ---- leaving compiled code

  def exit(self, status: int, pc: int, live: frozenset[int], flushed: bool = False, at: Block | None = None,
           masks: bool = True) -> str:
    """A label to branch to that leaves compiled code at a PC, where registers `live` are wanted. With `flushed` all
    are in their variables."""
    number, b = len(self.exits), at or self.block
    keep = sorted((live | (self.plan.kept(b) if masks else frozenset())) & self.assigned)
    found: dict[int, str] = {}  # registers that are not in their variables
    for n in () if flushed else keep:
      known = (self.bases if self.shape(n).steps is not None else self.current).get(n)
      if known is not None and n in self.dirty: found[n] = known.at(self.shape(n).steps is None)
    key = status, flushed, b.number, masks, None if flushed or self._carry is None else self._carry.text
    way = self._ways[-1] if self._ways else None
    if way is None or not way.serves(key, keep, found):
      way = self._way(key, keep, found, b)
      if self.e.side or len(keep) < MANY: way.key = None
      self._ways.append(way)
    label = f"exit.{number}"
    self.tail += [f"{label}:", f"  br label %{way.label}"]
    way.comes.append((label, number))
    self.exits.append(Exit(status, pc, way.rows, way.waits, way.carry, way.size, b.left, b.instance))
    return label

  def _way(self, key: Any, keep: list[int], found: dict[int, str], b: Block) -> Way:
    """How registers get into the strand's state."""
    status, flushed, _, masks, carried = key
    number, offset = len(self._ways), self.kept_at
    way = Way(key, status, f"save.{number}", keep, found)

    def put(t: str, text: str, at: int) -> None:
      way.lines.append(f"  store {t} {text}, ptr {self.keep(at)}, align 4")
    for n in keep:
      t, text, home = self.slot(n), found.get(n), self.homes.get(n)
      if home is not None and text is None:
        way.rows.append((n, home))
        continue
      if text is None:
        way.lines.append(f"  %x{number}.r{n} = load {t}, ptr %r{n}")
        text = f"%x{number}.r{n}"
      if self.types[n] == BOOL and self.shape(n).steps is None:
        way.lines.append(f"  %x{number}.b{n} = bitcast {t} {text} to {self.mask_type}")
        t, text = self.mask_type, f"%x{number}.b{n}"
      put(t, text, offset if home is None else home)
      way.rows.append((n, offset if home is None else home))
      if home is None: offset += self.size_of(n)
    for q in sorted(b.waiting) if masks else ():
      way.lines.append(f"  %x{number}.m{q} = load {self.mask_type}, ptr %waiting.{q}")
      put(self.mask_type, f"%x{number}.m{q}", offset)
      way.waits.append((q, offset))
      offset += SLOT
    if self.uses_carry:
      way.carry, source = offset, carried
      if source is None:
        source = f"%x{number}.c"
        way.lines.append(f"  {source} = load <{self.width} x i1>, ptr %carry")
      way.lines.append(f"  %x{number}.cb = bitcast <{self.width} x i1> {source} to {self.mask_type}")
      put(self.mask_type, f"%x{number}.cb", offset)
      offset += SLOT
    way.size = offset
    return way

  def keep(self, at: int) -> str:
    """A place in the strand's state."""
    self.places.add(at)
    return f"%keep.{at}"

  def size_of(self, n: int) -> int:
    """Bytes of a register in a state."""
    small = self.shape(n).steps is not None or self.types[n] == BOOL
    return SLOT if small else self.types[n].itemsize * self.width

  def deopt(self) -> str:
    """A label to branch to where the reference has to execute this instruction."""
    return self.exit(layout.LEAVE, self.pc, self.lived[self.index])

  def touched_sets(self, k: int) -> tuple[set[int], set[int]]:
    known = self._sets.get(k)
    if known is None:
      reads, writes = self.plan.touched[k]
      known = self._sets[k] = {*members(reads)}, {*members(writes)}
    return known

  # ---- blocks and instructions

  def _live_before(self) -> list[frozenset[int]]:
    """The registers that may be read from each instruction on."""
    out: list[frozenset[int]] = [frozenset()] * len(self.plan.lines)
    for b in self.plan.blocks:
      live = self.live_out[b.number]
      for k in range(b.end - 1, b.start - 1, -1):
        reads, writes = self.touched_sets(k)
        live = (live - writes) | reads
        out[k] = live
    return out

  def successor(self, index: int) -> Block | None:
    """The block that begins with an instruction; None behind the kernel's last one, and where nothing comes."""
    return self.plan.reached(index) if index != self.plan.whole.instances[0].landing else None

  def begin(self, b: Block) -> None:
    """What comes is a block's."""
    self.block, self._kept = b, self.plan.kept(b)
    self.flush_nothing()
    self.e.start(f"block.{b.number}")

  def at(self, k: int) -> None:
    """What comes is an instruction's, which reads and writes in its own way."""
    self.index, self.pc = k, self.code.pc(k)
    form, info = self.plan.forms[k], self.plan.infos[k]
    self.stepped, self._steps = info.stepped, info.shape.steps or () if info.shape is not None else ()
    self.loose = self.tolerant = False
    if form is None or not form.types: return
    floats = form.type in {"f16", "f32"}
    destinations = self.plan.written[k]
    loose = bool(destinations) and all(n in self._loose for n in destinations)
    self.loose = loose and floats
    self.tolerant = floats and form.row.opcode in ANY_NAN or loose and form.row.opcode in MOVES
    if form.row.opcode == "cvt" and form.type in {"f16", "f32"} and "relu" not in form.modifiers: self.tolerant = True

  def mark(self) -> tuple[Any, ...]:
    """Where the text is, for `undo`."""
    e = self.e
    return (len(e.lines), len(self.tail), len(self.exits), len(self._ways), len(self._resumable), e.label, e.side,
            self._carry, self.sites, {**e.stack}, len(e.constants))

  def undo(self, mark: tuple[Any, ...]) -> None:
    """Forget what has been written of an instruction since."""
    e = self.e
    lines, tail, exits, ways, resumable, e.label, e.side, self._carry, self.sites, e.stack, constants = mark
    for of, n in ((e.lines, lines), (self.tail, tail), (self.exits, exits), (self._ways, ways),
                  (self._resumable, resumable), (e.constants, constants)):
      del of[n:]
    for way in self._ways[-1:]: way.comes = [c for c in way.comes if c[1] < exits]
    self.current = {n: v for n, v in self.current.items() if n in self.dirty}
    self.bases = {n: v for n, v in self.bases.items() if n in self.dirty}
    self._active = None
    e.forget()

  # ---- control

  def flush(self) -> None:
    """Bring what this block has computed into the registers' variables."""
    wanted = self.live_out[self.block.number] | self._kept
    for n in sorted(self.dirty & wanted):
      self.store(n, self.bases[n].text if self.shape(n).steps is not None else self.current[n].in_lanes())
    if self._carry is not None: self.e.do(f"store <{self.width} x i1> {self._carry.text}, ptr %carry")

  def go(self, target: Block | None, active: str | None = None) -> None:
    """All threads that are here go on at a block. Registers are flushed."""
    e, b = self.e, self.block
    if target is None: return self.done()
    before = [q for q in b.waiting if q < target.number]
    if not before:
      self.merge(target)
      e.do(f"br label %{self.entry(target)}")
      return
    here = e.op(f"load {self.mask_type}, ptr %active")
    self.send(target, here)
    self.dispatch({*b.waiting, target.number})

  def send(self, target: Block, bits: str) -> None:
    """Threads come to a block, which waits for its turn."""
    e = self.e
    there = e.op(f"load {self.mask_type}, ptr %waiting.{target.number}")
    e.do(f"store {self.mask_type} {e.op(f'or {self.mask_type} {there}, {bits}')}, ptr %waiting.{target.number}")

  def dispatch(self, candidates: set[int]) -> None:
    """Go on at the lowest of these blocks where threads are; where there is none, the strand has ended."""
    e = self.e
    for q in sorted(candidates):
      there = e.op(f"load {self.mask_type}, ptr %waiting.{q}")
      some = e.op(f"icmp ne {self.mask_type} {there}, 0")
      enter, following = e.new_label("enter"), e.new_label("other")
      e.do(f"br i1 {some}, label %{enter}, label %{following}")
      e.start(enter)
      e.do(f"store {self.mask_type} {there}, ptr %active")
      e.do(f"store {self.mask_type} 0, ptr %waiting.{q}")
      e.do(f"br label %{self.entry(self.plan.blocks[q])}")
      e.start(following)
    e.do("br label %ended")

  def done(self) -> None:
    """All threads that are here have ended."""
    e = self.e
    alive = e.op(f"load {self.mask_type}, ptr %alive")
    here = e.op(f"load {self.mask_type}, ptr %active")
    gone = e.op(f"xor {self.mask_type} {here}, -1")
    e.do(f"store {self.mask_type} {e.op(f'and {self.mask_type} {alive}, {gone}')}, ptr %alive")
    self.dispatch(set(self.block.waiting))

  def entry(self, target: Block) -> str:
    """The label at which control comes to a block: back at a loop it may have to let others run."""
    if target.number > self.block.number: return f"block.{target.number}"
    self._again += 1
    n, label = self._again, f"again.{self._again}"
    away = self.resumable(layout.YIELD, target.pc, target.live, target)
    self.tail += [f"{label}:", f"  %spent.{n}.l = load i64, ptr %left", f"  %spent.{n} = icmp slt i64 %spent.{n}.l, 0",
                  f"  br i1 %spent.{n}, label %{away}, label %block.{target.number}, !prof !2"]
    return label

  def merge(self, target: Block) -> None:
    """Those that wait at a block go on with the threads that are here."""
    if target.number not in self.block.waiting: return
    e, m = self.e, self.mask_type
    here, there = e.op(f"load {m}, ptr %active"), e.op(f"load {m}, ptr %waiting.{target.number}")
    e.do(f"store {m} {e.op(f'or {m} {here}, {there}')}, ptr %active")
    e.do(f"store {m} 0, ptr %waiting.{target.number}")

  def resumable(self, status: int, pc: int, live: frozenset[int], target: Block) -> str:
    """As `exit`, of a strand that goes on at a block. Registers are flushed."""
    label = self.exit(status, pc, live, flushed=True, at=target if status in RESUMING else None)
    self.resume(target)
    return label

  def resume(self, target: Block, label: str = "") -> None:
    """A strand that left by the last exit goes on at a block, or at a label before it."""
    self._resumable.append((len(self.exits) - 1, label or f"block.{target.number}"))

  def flush_nothing(self) -> None:
    """What has been computed is in the registers' variables, and is not at hand any more."""
    self.current, self.bases, self.dirty, self._carry, self._active = {}, {}, set(), None, None
    self.e.forget()


CROWDED: Final = 40_000  # registers that live from block to block, counted at each instruction
SLOT: Final = 8  # bytes of a scalar, or of threads as bits, in a state
MANY: Final = 16  # registers, from which on exits share the code that keeps them
RESUMING: Final = frozenset({layout.YIELD, layout.POLL})


__all__ = ["Exit", "Lanes", "Refused"]
