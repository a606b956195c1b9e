"""Textures and surfaces in compiled code: functions that are compiled for the arrays that a launch has.

What a handle stands for is known when a kernel runs, not when it is compiled. So compiled code asks for the instruction
through a *block*, as it asks the helper. The helper has the reference make it, and after some times has a function
compiled for arrays of that form: type of elements, modes, filter. The same steps write it that the reference runs. The
block of an array has its numbers, and the next block, which gets the threads that this one is not for: they look at
another array, or are to fault. The last block is the helper's.
"""
from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.core.errors import Error
from tinyhw.core.locks import lock
from tinyhw.core.memory import Access
from tinyhw.core.store import sources_digest
from tinyhw.emulator.jit import servers
from tinyhw.emulator.jit.native import compiled_by, host, linked
from tinyhw.emulator.jit.ptx.module import layout
from tinyhw.emulator.jit.ptx.onebyone import turns
from tinyhw.emulator.jit.refusal import NotCompiled, tell, translating
from tinyhw.emulator.jit.store import store
from tinyhw.emulator.jit.values import BOOL, Emitter, LLVMOps, Untranslatable, Value, gather, type_of
from tinyhw.emulator.jit.vectors import scatter
from tinyhw.emulator.memory.atomics import ATOMICS
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.group import LANES
from tinyhw.emulator.ptx.module.kept import SOURCES
from tinyhw.emulator.ptx.texture import instructions as textures
from tinyhw.emulator.ptx.texture import sampling
from tinyhw.emulator.ptx.texture.objects import FORMATS, Header, Sampler
from tinyhw.emulator.values.ops import F64, U64
from tinyhw.isa.ptx import printer
from tinyhw.isa.ptx.model import Address

if TYPE_CHECKING:
  from tinyhw.emulator.jit.ptx.fallback import Bound
  from tinyhw.emulator.ptx.group import Warps
  from tinyhw.emulator.ptx.module.scope import Line
  from tinyhw.emulator.ptx.program import Code

SOON: Final = 24  # times that the reference makes an instruction of a launch before there is a function for it
CHAIN: Final = 8  # blocks of an instruction
# words of a block: its function, the next block, what the handles must be, host address, numbers, rows of levels
FUNCTION, NEXT, HANDLES, HOST, NUMBERS = 0, 8, 16, 32, 40
ROWS: Final = NUMBERS + 8 * len(sampling.NUMBERS)
ROW: Final = 40
OPCODES: Final = frozenset({"tex", "tld4", "suld", "sust", "sured"})


# ---- what the function is made of

class Constants:
  """The code of an instruction, bound to values that are LLVM's; variables and special registers are the helper's."""

  def __init__(self, code: Code) -> None: self._code = code

  def constant(self, value: Any) -> Any:
    dtype = np.dtype(value.dtype)
    bits = int(value.view(f"u{dtype.itemsize}"))
    return lambda cells: cells.e.const(dtype, bits)

  def special(self, name: str, dtype: Any) -> Any: return _elsewhere

  def based(self, line: Line, name: str, address: Any) -> Any: return _elsewhere

  def address(self, line: Line, name: str) -> int: return self._code.address(line, name)

  def knows(self, name: str) -> bool: return self._code.knows(name)


def _elsewhere(cells: Any) -> Any: raise Untranslatable("an operand that is no register")


class Cells:
  """Registers in the state of a strand, as bound steps see them; what they write is kept."""
  base = 0

  def __init__(self, e: Emitter, bound: Bound) -> None:
    self.e, self.o, self.v = e, LLVMOps(e), self
    self._taken = {n: row for n, *row in bound.taken}
    self._given = {n: dtype for n, _, dtype, _ in bound.given}
    self.written: dict[int, Value] = {}

  def pointer(self, base: str, at: int) -> str: return self.e.op(f"getelementptr i8, ptr %{base}, i64 {at}")

  def word(self, base: str, at: int, dtype: Any = U64) -> Value:
    """A word of the block or the state."""
    return Value(self.e, self.e.op(f"load {type_of(dtype)}, ptr {self.pointer(base, at)}, align 4"), dtype, False)

  def __getitem__(self, n: int) -> Value:
    e, row = self.e, self._taken.get(n)
    if row is None: return e.const(self._given[n], 0) if n in self._given else _elsewhere(self)
    at, dtype, steps = row
    if steps is None and dtype == BOOL: return self.mask(e.op(f"load i32, ptr {self.pointer('state', at)}, align 4"))
    if steps is None:
      return Value(e, e.op(f"load <{LANES} x {type_of(dtype)}>, ptr {self.pointer('state', at)}, align 4"), dtype, True)
    base = self.word("state", at, dtype)
    if not any(steps): return base
    unsigned = np.dtype(f"u{dtype.itemsize}")
    top = (1 << 8 * dtype.itemsize) - 1
    return (base.view(unsigned) + e.vector(unsigned, [s & top for s in steps])).view(dtype)

  def __setitem__(self, n: int, value: Value) -> None: self.written[n] = value

  def mask(self, bits: str) -> Value:
    return Value(self.e, self.e.op(f"bitcast i32 {bits} to <{LANES} x i1>"), BOOL, True)

  def bits(self, mask: Value) -> str:
    """A mask as an integer."""
    return self.e.op(f"bitcast <{LANES} x i1> {mask.in_lanes()} to i32")


class Sizes:
  """The numbers of a block's array, see `sampling.Sizes`."""

  def __init__(self, cells: Cells) -> None:
    self._cells = cells
    self._known: dict[int, Value] = {}

  def _load(self, at: int) -> Value:
    if at not in self._known: self._known[at] = self._cells.word("block", at, F64)
    return self._known[at]

  def _of(self, column: int, level: Value | None) -> Value:
    if level is None: return self._load(ROWS + 8 * column)
    e = self._cells.e
    at = sampling.whole(self._cells.o, level) * ROW + (ROWS + 8 * column)
    pointers = e.op(f"getelementptr i8, ptr %block, <{LANES} x i64> {at.in_lanes()}")
    return Value(e, gather(e, "double", pointers, "splat (i1 true)"), F64, True)

  def extent(self, axis: int, level: Value | None) -> Value: return self._of(axis, level)
  def row(self, level: Value | None) -> Value: return self._of(3, level)
  def start(self, level: Value | None) -> Value: return self._of(4, level)
  def number(self, name: str) -> Value: return self._load(NUMBERS + 8 * sampling.NUMBERS.index(name))


class FetchFunction:
  """Writes the function of an instruction for arrays of one form."""

  def __init__(self, bound: Bound, code: Code, line: Line, form: Header) -> None:
    self.e = Emitter(LANES)
    self.bound, self.form, self.cells = bound, form, Cells(self.e, bound)
    self.sizes, self.line = Sizes(self.cells), line
    self.code: Any = Constants(code)
    self.one = instruction(self.code, line)

  def text(self) -> str:
    """The module. Raises Untranslatable."""
    e, c = self.e, self.cells
    if any(steps is not None for *_, steps in self.bound.given): raise Untranslatable("one result for all")
    e.start("body")
    active = e.op(f"load i32, ptr {c.pointer('state', layout.ACTIVE)}")
    guard = operands.predicate(self.line)
    wanted = c.mask(active) if guard is None else c.mask(active) & guard(c)
    taken = {n: at for n, at, *_ in self.bound.taken}
    for n, at, dtype, _ in self.bound.given:  # for threads that are not here, and who looks at another array
      if n in taken: self._copy(taken[n], at, dtype)
    mine = wanted
    for k in range(len(handles(self.one))):
      mine = mine & (self._handle(k) == c.word("block", HANDLES + 8 * k))
    place: Value | None = None
    storing: list[Value] = []
    if not isinstance(self.one, textures.Fetch):
      place, mine = self._place(self.one, mine)
      if isinstance(self.one, textures.SurfaceAccess) and not self.one.loads: storing = self.one.parts(c, self.form)
    bits = c.bits(mine)
    rest = e.op(f"and i32 {c.bits(wanted)}, {e.op(f'xor i32 {bits}, -1')}")
    self._others(rest, active)
    here, over = e.new_label("here"), e.new_label("over")
    e.do(f"br i1 {e.op(f'icmp ne i32 {bits}, 0')}, label %{here}, label %{over}")
    e.start(here)
    if isinstance(self.one, textures.Fetch):
      fetch = self.one
      fetch.write(c, fetch.bound.fetched(c, self.form, self.form.sampler, self.sizes, self._read, fetch.component))
    elif place is not None:
      if isinstance(self.one, textures.SurfaceAccess): self._access(self.one, place, mine, storing)
      else: self._reduce(self.one, place, mine)
    for n, at, dtype, _ in self.bound.given: self._give(at, dtype, c.written[n], mine, bits)
    e.do(f"br label %{over}")
    e.start(over)
    e.do("ret i32 0")
    return "\n".join([*e.constants, "define i32 @run(i64 %at, i32 %number, ptr %block) {", "entry:",
                      *(f"  %{name} = {what}" for name, what in e.stack.items()), "  %state = inttoptr i64 %at to ptr",
                      "  br label %body", *e.lines, "}", *e.declared.values(), "!0 = !{}", ""])

  def _handle(self, k: int) -> Value:
    one = self.one
    if isinstance(one, textures.Fetch): found: Value = one.bound.handles(self.cells)[k]
    else: found = one.spot.surface(self.cells)
    assert isinstance(found, Value)
    return found

  def _copy(self, source: int, to: int, dtype: Any) -> None:
    t = "i32" if dtype == BOOL else f"<{LANES} x {type_of(dtype)}>"
    text = self.e.op(f"load {t}, ptr {self.cells.pointer('state', source)}, align 4")
    self.e.do(f"store {t} {text}, ptr {self.cells.pointer('state', to)}, align 4")

  def _others(self, rest: str, active: str) -> None:
    """Have the next block's function do it for the other threads; leave where that cannot."""
    e, c = self.e, self.cells
    some, none, bad = e.new_label("some"), e.new_label("none"), e.new_label("bad")
    at = c.pointer("state", layout.ACTIVE)
    e.do(f"br i1 {e.op(f'icmp ne i32 {rest}, 0')}, label %{some}, label %{none}")
    e.start(some)
    following = e.op(f"load ptr, ptr {c.pointer('block', NEXT)}")
    function = e.op(f"load ptr, ptr {following}")
    e.do(f"store i32 {rest}, ptr {at}")
    done = e.op(f"call i32 {function}(i64 %at, i32 %number, ptr {following})")
    e.do(f"store i32 {active}, ptr {at}")
    e.do(f"br i1 {e.op(f'icmp eq i32 {done}, 0')}, label %{none}, label %{bad}")
    e.start(bad)
    e.do(f"ret i32 {done}")
    e.start(none)

  def _addresses(self, place: Value) -> Value:
    return sampling.whole(self.cells.o, place) + self.cells.word("block", HOST)

  def _words(self, address: Value, size: int, count: int, mask: str) -> list[Value]:
    e = self.e
    out = []
    for k in range(count):
      pointers = e.op(f"inttoptr <{LANES} x i64> {(address + k * size).in_lanes()} to <{LANES} x ptr>")
      out.append(Value(e, gather(e, f"i{8 * size}", pointers, mask), np.dtype(f"u{size}"), True))
    return out

  def _read(self, place: Value) -> list[Value]:
    """Every place lies within the array, also those of threads that are not here."""
    h = self.form
    return self._words(self._addresses(place), FORMATS[h.kind], h.channels, "splat (i1 true)")

  # ---- surfaces

  def _place(self, one: textures.SurfaceAccess | textures.Reduction, mine: Value) -> tuple[Value, Value]:
    """(host addresses, the threads that access them without a fault); who is outside of a .zero is among them."""
    place, outside = one.spot.place(self.cells, self.form, self.sizes)
    self.outside = outside if one.spot.clamp == "zero" else None
    if one.spot.clamp == "trap": mine = mine & ~outside
    width = self.form.element if one.formatted else one.size * one.count
    address = self._addresses(place)
    even = (address & width - 1) == 0 if width > 1 else self.cells.o.const("bool", 1)
    if self.outside is not None: even = even | self.outside
    return address, mine & even

  def _access(self, one: textures.SurfaceAccess, address: Value, mine: Value, storing: list[Value]) -> None:
    e = self.e
    inside = mine if self.outside is None else mine & ~self.outside
    if one.loads:
      found = self._words(address, one.size, one.count, inside.in_lanes())
      for write, x in zip(one.writes, found): write(self.cells, x)
      return
    size = FORMATS[self.form.kind] if one.formatted else one.size
    for k, x in enumerate(storing):
      pointers = e.op(f"inttoptr <{LANES} x i64> {(address + k * size).in_lanes()} to <{LANES} x ptr>")
      scatter(e, f"i{8 * size}", LANES, x.in_lanes(), pointers, inside.in_lanes())

  def _reduce(self, one: textures.Reduction, address: Value, mine: Value) -> None:
    """Combine what lies there, thread by thread."""
    e, c = self.e, self.cells
    if not one.fits(self.form): raise Untranslatable("elements of another size")
    inside = mine if self.outside is None else mine & ~self.outside
    raw = operands.unsigned(one.size)
    what: Any = ATOMICS[one.operation(self.form)]
    t, dtype, data = type_of(raw), what.dtype(one.size), one.read(c).view(raw).in_lanes()
    with turns(e, c.bits(inside)) as turn:
      at = e.op(f"extractelement <{LANES} x i64> {address.in_lanes()}, i32 {turn.lane}")
      cell = e.op(f"inttoptr i64 {at} to ptr")
      old = Value(e, e.op(f"load {t}, ptr {cell}"), raw, False).view(dtype)
      new = Value(e, e.op(f"extractelement <{LANES} x {t}> {data}, i32 {turn.lane}"), raw, False).view(dtype)
      e.do(f"store {t} {what.function(c.o, old, new, new).view(raw).text}, ptr {cell}")

  # ---- results

  def _give(self, at: int, dtype: Any, value: Value, mine: Value, bits: str) -> None:
    e, pointer = self.e, self.cells.pointer("state", at)
    if dtype == BOOL:
      old = e.op(f"load i32, ptr {pointer}, align 4")
      kept = e.op(f"and i32 {old}, {e.op(f'xor i32 {bits}, -1')}")
      new = e.op(f"and i32 {self.cells.bits(value)}, {bits}")
      return e.do(f"store i32 {e.op(f'or i32 {kept}, {new}')}, ptr {pointer}, align 4")
    t = f"<{LANES} x {type_of(dtype)}>"
    before = Value(e, e.op(f"load {t}, ptr {pointer}, align 4"), dtype, True)
    chosen = self.cells.o.where(mine, value if value.dtype == dtype else value.view(dtype), before)
    return e.do(f"store {t} {chosen.in_lanes()}, ptr {pointer}, align 4")


One = textures.Fetch | textures.SurfaceAccess | textures.Reduction


def instruction(code: Any, line: Line) -> One:
  """What looks at an array, bound to values of any kind."""
  from tinyhw.isa.ptx import forms
  form = forms.find(line.instruction.name)
  assert form is not None
  if line.instruction.opcode == "sured": return textures.Reduction(code, line, form)
  if line.instruction.opcode in {"suld", "sust"}: return textures.SurfaceAccess(code, line, form)
  return textures.Fetch(code, line, form)


def handles(one: One) -> list[Any]:
  """The operands that name an array, and a sampler where one is."""
  found = [one.bound.where, *one.bound.samplers] if isinstance(one, textures.Fetch) else [one.spot.where]
  return [o.base if isinstance(o, Address) else o for o in found]


# ---- functions and blocks

def form_of(h: Header, sampler: Sampler) -> Header:
  """What of a header a function is made for."""
  border = not h.linear and any(m in {"clamp_to_border", "clamp_ogl"} for m in sampler.modes)
  size = h.size[0] and 1, h.size[1] and 1, h.size[2] and 1
  return replace(h, address=0, size=size, layers=min(h.layers, 1), levels=min(h.levels, 2), pitch=0, mipmapped=False,
                 samples=min(h.samples, 1), sampler=sampler, border=h.border if border else (0.0,) * 4,
                 lod=(0.0, 0.0, 0.0))


@dataclass(frozen=True)
class Seen:
  """What a thread looks at: the values of handles, the header, the sampler."""
  handles: tuple[int, ...]
  header: Header
  sampler: Sampler


class Learner:
  """The blocks of a launch's instructions. `mappings` are rows of `jit.memory.Memory`."""

  def __init__(self, helper: int, count: int) -> None:
    self._last = np.array([helper, 0], np.uint64)  # the helper's block
    self._blocks: list[Any] = []
    self.table = np.full(max(count, 1), self._last.ctypes.data, np.uint64)
    self._done: Counter[int] = Counter()
    self._seen: dict[tuple[int, tuple[int, ...]], None] = {}

  def wants(self, number: int) -> bool:
    """Whether what an instruction looks at is to be told, once more."""
    self._done[number] += 1
    return self._done[number] <= SOON + 4 * CHAIN

  @staticmethod
  def look(one: One, group: Warps) -> Seen | None:
    """What the first of the threads looks at."""
    given = one.bound.handles(group) if isinstance(one, textures.Fetch) else [one.spot.surface(group)]
    at = int(group.lanes[0].argmax())
    values = tuple(int(operands.full(group, v)[0, at]) for v in given)
    try:
      header = textures.header_of(group, values[0])
      sampler = textures.sampler_of(group, values[1:]) or header.sampler
    except Error: return None
    return Seen(values, header, sampler)

  def learn(self, number: int, bound: Bound, code: Code, line: Line, seen: Seen, mappings: Any) -> None:
    """Have a block for what was seen, if it may be."""
    if (number, seen.handles) in self._seen: return
    place = _host(seen.header, mappings, line.instruction.opcode == "sust")
    if place is None: return
    function = _function(bound, code, line, form_of(seen.header, seen.sampler), self._done[number] >= SOON)
    if function is None: return
    self._seen[number, seen.handles] = None
    if sum(n == number for n, _ in self._seen) > CHAIN: return
    known = sampling.Known(seen.header)
    block = np.zeros((ROWS + ROW * len(known.rows)) // 8, np.uint64)
    block[:2] = function, int(self.table[number])
    block[HANDLES // 8:HANDLES // 8 + len(seen.handles)] = seen.handles
    block[HOST // 8] = place
    numbers = block[NUMBERS // 8:].view(np.float64)
    numbers[:len(sampling.NUMBERS)] = [known.numbers[name] for name in sampling.NUMBERS]
    numbers[len(sampling.NUMBERS):] = known.rows.reshape(-1)
    self._blocks.append(block)
    self.table[number] = block.ctypes.data


def _host(h: Header, mappings: Any, writes: bool) -> int | None:
  """Where an array lies in the host's memory; None where it is not in one mapping that may be accessed."""
  size = h.bytes
  if h.levels == 1 and h.pitch: size -= h.pitch - h.extent(0)[0] * h.element
  access = Access.READ | Access.WRITE if writes else Access.READ
  for start, length, distance, allowed in mappings.tolist():
    if not start <= h.address < start + length: continue
    if h.address + size > start + length or allowed & access != access: return None
    found: int = h.address + distance & (1 << 64) - 1
    return found
  return None


_FUNCTIONS: Final[dict[str, Any]] = {}  # by their keys: what holds the code, or None
_LOCK: Final = lock()


def _function(bound: Bound, code: Code, line: Line, form: Header, wanted: bool) -> int | None:
  """The address of a function; None where there is none, or it is not worth compiling yet."""
  what = [printer.instruction(line.instruction), [(n, at, str(t), steps) for n, at, t, steps in bound.taken],
          [(n, at, str(t)) for n, at, t, _ in bound.given], form.encode().hex(), code.flat.types, str(host()),
          compiled_by()]
  key = hashlib.sha256(sources_digest(SOURCES) + json.dumps(what).encode()).hexdigest() + "t"
  if key not in _FUNCTIONS:
    entry = store().load(key)
    if entry is None and not wanted: return None
    made = _made(key, entry, bound, code, line, form)
    with _LOCK: _FUNCTIONS[key] = made
  library = _FUNCTIONS[key]
  if library is None: return None
  found: int = library["run"]
  return found


def _made(key: str, entry: Any, bound: Bound, code: Code, line: Line, form: Header) -> Any:
  try:
    if entry is not None: return linked([entry[1]], "run")
    with translating(Untranslatable): text = FetchFunction(bound, code, line, form).text()
    with servers.job(True, host(), soon=True) as job:
      job.send(text)
      data, = job.objects()
    store().save(key, {}, data)
    return linked([data], "run")
  except Untranslatable: return None
  except NotCompiled as refused:
    tell(line.instruction.name, refused)
    return None
