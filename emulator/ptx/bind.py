"""Instructions bound to steps: what they read, what they compute with which modifiers, where it goes."""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from tinyhw.core.environment import digits
from tinyhw.core.errors import DecodeError, Unsupported
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.group import Warps
from tinyhw.emulator.ptx.meanings import convert, directed
from tinyhw.emulator.ptx.meanings.registry import Meaning, find
from tinyhw.emulator.ptx.memory.spaces import RANK
from tinyhw.emulator.ptx.module.flow import where
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.ptx.operands import Holder, Reader, Writer
from tinyhw.emulator.simt import Group
from tinyhw.emulator.values.ops import B, Operations, Ops
from tinyhw.emulator.values.rounding import Directed, DirectedOps
from tinyhw.isa.ptx import forms
from tinyhw.isa.ptx.forms import SIZES, Form
from tinyhw.isa.ptx.model import Arguments, Minus, Name, Not, Operand, OperandPart, Pair, Vector

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code

Step = Callable[[Any], None]
Binder = Callable[["Code", Line, Form], "Step | None"]
O = type[Ops]


class Computation(Protocol):
  """Makes a result of sources, values of one kind."""
  def __call__(self, o: Operations[B], /, *values: B) -> B: ...


BINDERS: Final[dict[str, Binder]] = {}
PURE: Final[set[str]] = set()  # opcodes whose steps only compute: they run on any group
U16, U32 = np.dtype("u2"), np.dtype("u4")
PACKED: Final = {"f16x2": "f16", "bf16x2": "bf16", "u16x2": "u16", "s16x2": "s16", "f32x2": "f32"}
_NAN: Final[dict[str, Any]] = {"f32": np.uint32(0x7FFFFFFF).view(np.float32), "f16": np.uint16(0x7FFF).view(np.float16)}
_KEPT: Final = 1 << 10  # operations with their modifiers, which all kernels share
EVEN: Final = 1 << RANK
_RELAXED: Final = frozenset({"ld", "ldu", "st", "multimem", "suld", "sust", "sured", "isspacep", "prmt"})  # of any type
_ANY_COUNT: Final = frozenset({"call", "wgmma"})  # of operands, which their binders count
_TOLD: Final = frozenset({"pred", "b128"})  # who reads and writes them says what is wrong
_HELD: Final = frozenset({"f16", "f32", "f16x2", "bf16x2"})  # floats that cvt takes in wider registers
_BRAIN: Final = frozenset({"bf16", "bf16x2"})  # ptxas takes any register for these of set
_WHOLE: Final = re.compile(r"(?a)[bus]\d+")  # types of integers, and of bits
_MIXED: Final = frozenset({"add", "sub", "fma"})  # of two types
_ROUNDS: Final = frozenset({"add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt"})


def binds(*opcodes: str, pure: bool = False) -> Callable[[Binder], Binder]:
  """Decorator: the function binds these opcodes; an opcode twice is refused. `pure`: its steps compute and write, no
  more, so that compiled code can run them."""
  def register(function: Binder) -> Binder:
    for opcode in opcodes:
      assert opcode not in BINDERS, opcode
      BINDERS[opcode] = function
      if pure: PURE.add(opcode)
    return function
  return register


def unknown(line: Line) -> Unsupported:
  """The error for an instruction that the table, or the emulator, does not have."""
  i = line.instruction
  hint = None if forms.known(i.opcode) else "no instruction has this name" if not i.modifiers else None
  return Unsupported("PTX instruction", i.name, where=where(line), hint=hint)


def step(code: Code, line: Line) -> Step | None:
  """An instruction that ends no block, bound; None for one that does nothing. Raises Unsupported, DecodeError."""
  i = line.instruction
  form = forms.find(i.name, len(i.operands))
  if form is None: raise unknown(line)
  counted(line)
  if i.opcode not in _RELAXED: _agrees(line, form)
  binder = BINDERS.get(i.opcode)
  if binder is not None: return binder(code, line, form)
  meaning = find(form)
  if meaning is None: raise unknown(line)
  if i.opcode == "and" and form.type == "b32" and _evens(line) and code.program.pairs and _is_address(code, line):
    return _even(code, line)
  return _alu(code, line, form, meaning)


def _evens(line: Line) -> bool:
  """Whether it clears bit 24, and perhaps some of the lowest, where compilers know that they are 0."""
  found = [operands.immediate(line, o, "b32") for o in line.instruction.operands[1:]]
  if len(found) != 2 or found[0] is not None or found[1] is None: return False
  cleared = 0xFFFFFFFF ^ int(found[1])
  return bool(cleared & EVEN) and cleared - EVEN in {(1 << k) - 1 for k in range(12)}


def _is_address(code: Code, line: Line) -> bool:
  """Whether the result is used within brackets alone."""
  result = operands.register(line, line.instruction.operands[0])

  def bare(by: Line, o: Operand) -> bool:
    if isinstance(o, Name): return operands.register(by, o) == result
    if isinstance(o, Vector | Arguments): return any(bare(by, e) for e in o.elements)
    if isinstance(o, Pair): return bare(by, o.first) or bare(by, o.second)
    return isinstance(o, Not | Minus | OperandPart) and bare(by, o.operand)
  return not any(bare(by, o) for by in code.flat.lines if by is not line for o in by.instruction.operands)


def _even(code: Code, line: Line) -> Step:
  """An address in shared memory without its bit 24. On the chip an address has its block's rank from there on, so that
  programs for pairs of blocks name the even one's memory in this way; here an own address has no rank: it gets one."""
  i = line.instruction
  read, write = operands.reader(code, line, i.operands[1], "b32"), operands.writer(code, line, i.operands[0], "b32")
  mask = int(operands.immediate(line, i.operands[2], "b32") or 0)
  rank, size = (code.special(f"%cluster_{name}", U32) for name in ("ctarank", "nctarank"))

  def run(group: Holder[B]) -> None:
    at = read(group)
    given = at >> np.uint32(RANK)
    own = group.o.where(given == 0, rank(group), given - np.uint32(1))
    even = (own & np.uint32(0xFE)) + np.uint32(1) << np.uint32(RANK)
    write(group, group.o.where(size(group) > 1, at & np.uint32(mask & EVEN - 1) | even, at & np.uint32(mask)))
  return run


def _agrees(line: Line, form: Form) -> None:
  """Raises DecodeError for a register that is not of its operand's type: of another size, an integer for a float."""
  words = form.results + form.sources
  if len(words) != len(line.instruction.operands) or form.row.opcode == "set" and words[0] in _BRAIN: return
  for k, (operand, type_) in enumerate(zip(line.instruction.operands, words)):
    r = operands.register(line, operand) if type_ in SIZES and type_ not in _TOLD else None
    if r is None or _fits(r.type, type_, form.row.opcode == "cvt"): continue
    if k < len(form.results): raise operands.wrong_destination(line, r.type)
    raise operands.wrong_source(line, operand, r.type)


@cache
def _fits(own: str, type_: str, wider: bool) -> bool:
  """Whether a register of a type holds a value of another: bits hold all of their size, integers integers, floats
  their own. `wider`: also integers, f16 and f32 of fewer bits than the register has."""
  if own in _TOLD: return True
  whole = _WHOLE.fullmatch(type_) is not None
  if SIZES[own] < SIZES[type_] or SIZES[own] > SIZES[type_] and not (wider and (whole or type_ in _HELD)): return False
  if own == type_ or own[0] == "b" and digits(own[1:]): return True
  return whole and (_WHOLE.fullmatch(own) is not None or type_[0] == "b")


def counted(line: Line) -> None:
  """Raises DecodeError where the table has the instruction with other numbers of operands only."""
  i = line.instruction
  hint = "L2::cache_hint" in i.modifiers  # which is an operand more
  good = tuple(n + hint for n in forms.counts(i.name))
  if i.opcode not in _ANY_COUNT and len(i.operands) not in good:
    raise DecodeError(f"{i.name} takes {' or '.join(map(str, good))} operands, not {len(i.operands)}",
                      where=where(line))


def need(line: Line, count: int) -> None:
  """Raises DecodeError for another number of operands."""
  if len(line.instruction.operands) != count:
    raise DecodeError(f"{line.instruction.name} takes {count} operands, not {len(line.instruction.operands)}",
                      where=where(line))


# ---- results and sources as the modifiers have them

def canonical(o: Any, x: B, type_: str) -> B:
  """The value with NaN as the chip makes it."""
  if type_ not in _NAN: return x
  if o is not Ops: return o.canonical(x, type_)
  return _canonical(x, type_)


def _canonical(x: Any, type_: str) -> Any:
  """The same of NumPy's."""
  if x.ndim and type_ == "f32" and x.flags.c_contiguous:
    flat = x.reshape(-1)
    if not np.isnan(np.dot(flat, flat)): return x
  elif not np.any(x != x): return x
  return np.where(x != x, _NAN[type_], x)


def rounded(function: Computation, mode: int) -> Computation:
  """A meaning that rounds otherwise than to nearest even."""
  modes = {"f16": mode, "f32": mode, "f64": mode}
  ops: Any = DirectedOps(modes)
  return lambda o, *values: function(ops, *[Directed(v, modes) for v in values]).x


@lru_cache(maxsize=_KEPT)
def computed(form: Form, meaning: Meaning) -> Computation:
  """`f(o, *sources) -> result` with rounding, .ftz, .sat and NaN, of a type that is not packed."""
  function, m, t = meaning.function, form.modifiers, PACKED.get(form.type, form.type)
  mode = next((convert.MODES[r] for r in ("rz", "rm", "rp") if r in m), 0)
  if mode and meaning.opcode in _ROUNDS: function = _directed(meaning.opcode, function, mode)
  ftz, sat = "ftz" in m and t in {"f32", "f16"}, "sat" in m and t in {"f16", "f32", "f64"}
  floats = t in {"f16", "f32", "f64"}
  signs = meaning.opcode in {"abs", "neg"} and not ftz and t != "f16"  # bits alone; else the chip (sm_90) adds a zero
  keeps = signs or meaning.opcode in {"copysign", "testp", "set", "setp", "selp", "slct"}
  compares = meaning.opcode in {"set", "setp", "testp", "slct"}
  if t == "bf16": return _brain(meaning, function, "ftz" in m)
  if not floats or not (ftz or sat or not keeps): return function
  if not ftz and not sat:
    return lambda o, *values: canonical(o, function(o, *values), t)

  def run(o: Operations[B], *values: B) -> B:
    if meaning.opcode == "slct": values = (*values[:2], o.flush(values[2]))  # what is chosen stays as it is
    elif ftz: values = tuple(o.flush(v) if v.dtype.kind == "f" else v for v in values)
    r = function(o, *values)
    if compares: return r
    if sat: r = convert.saturated(o, r, t)
    if ftz: r = o.flush(r)
    return r if keeps else canonical(o, r, t)
  return run


def _directed(opcode: str, function: Computation, mode: int) -> Computation:
  """Quotients and roots step to the neighbour on the wanted side; the others are evaluated on values that round."""
  exact = directed.FUNCTIONS.get(opcode)
  plain = rounded(function, mode)

  def run(o: Any, *values: B) -> B:
    if o is not Ops: return o.directed(opcode, mode, *values)
    numbers: tuple[Any, ...] = values
    found: Any = plain(o, *numbers) if exact is None else exact(mode, *numbers)
    return found
  return run


def _brain(meaning: Meaning, function: Computation, ftz: bool) -> Computation:
  """bf16 by way of f32 or f64, which hold results that round correctly."""
  compares = meaning.opcode in {"set", "setp"}
  bitwise: Any = {"neg": lambda x: x ^ 0x8000, "abs": lambda x: x & 0x7FFF}.get(meaning.opcode)
  if bitwise is not None:
    return lambda o, *x: o.where((x[0] & 0x7FFF) > 0x7F80, o.const("u16", 0x7FFF), bitwise(x[0]))

  def run(o: Operations[B], *values: B) -> B:
    numbers = [convert.f32_of_bf16(o, v) for v in values]
    if meaning.opcode == "fma":
      wide = o.fma_f16_of_f32(*(o.to(v, "f64") for v in numbers))
      if "relu" in meaning.modifiers: wide = o.where(o.isnan(wide), wide, o.fmax(wide, o.const("f64", 0)))
      return convert.bf16_of(o, wide)
    r = function(o, *numbers)
    if ftz: r = o.flush(r)
    return r if compares else convert.bf16_of(o, r)
  return run


def mixed(form: Form) -> Computation:
  """A sum or product of f16 or bf16 with f32: as f32, once they have been made f32."""
  plain = forms.find(".".join(word for word in form.name.split(".") if word != form.type))
  assert plain is not None and (meaning := find(plain)) is not None
  one, halves_first = computed(plain, meaning), form.sources.count(form.type)

  def run(o: Operations[B], *values: B) -> B:
    wide = [convert.f32_of_bf16(o, v) if form.type == "bf16" else o.to(v, "f32") for v in values[:halves_first]]
    return one(o, *wide, *values[halves_first:])
  return run


def halves(form: Form, one: Computation) -> Computation:
  """A packed operation: `one` on the lower and on the upper half of each operand."""
  t = PACKED[form.type]
  dtype = operands.dtype_of(t)
  raw, shift = (np.dtype("u4"), np.uint64(32)) if t == "f32" else (np.dtype("u2"), np.uint32(16))
  wide = np.dtype("u8") if t == "f32" else np.dtype("u4")

  def both(o: Operations[B], *values: B) -> B:
    low = one(o, *[v.astype(raw).view(dtype) for v in values])
    high = one(o, *[(v >> shift).astype(raw).view(dtype) for v in values])
    return low.view(raw).astype(wide) | high.view(raw).astype(wide) << shift
  return both


def _alu(code: Code, line: Line, form: Form, meaning: Meaning) -> Step:
  i = line.instruction
  types, results = form.sources, form.results
  need(line, len(types) + len(results))
  write = operands.writer(code, line, i.operands[0], "pred" if results[0] == "p" else results[0])
  reads = [operands.reader(code, line, o, "pred" if t == "q" else t) for o, t in zip(i.operands[1:], types)]
  if meaning.carries: return _carrying(line, meaning, write, reads)
  run = computed(form, meaning) if len(form.types) < 2 or i.opcode not in _MIXED else mixed(form)
  if form.type in PACKED: run = halves(form, run)
  return computing(write, run, reads)


# Steps by the number of their sources. With what they are called with they are two objects, for the collector too; a
# closure of their own would be seven.
def _of_one(write: Writer, run: Computation, x: Reader, group: Holder[B]) -> None: write(group, run(group.o, x(group)))
def _of_two(write: Writer, run: Computation, x: Reader, y: Reader, group: Holder[B]) -> None:
  write(group, run(group.o, x(group), y(group)))
def _of_three(write: Writer, run: Computation, x: Reader, y: Reader, z: Reader, group: Holder[B]) -> None:
  write(group, run(group.o, x(group), y(group), z(group)))
def _of_many(write: Writer, run: Computation, *reads_and_group: Any) -> None:
  *reads, group = reads_and_group
  write(group, run(group.o, *[r(group) for r in reads]))
_OF: Final[tuple[Callable[..., None], ...]] = _of_many, _of_one, _of_two, _of_three


def computing(write: Writer, run: Computation, reads: Sequence[Reader]) -> Step:
  """The step that writes what a function makes of its sources."""
  return partial(_OF[len(reads)] if len(reads) < len(_OF) else _of_many, write, run, *reads)


def _carrying(line: Line, meaning: Meaning, write: Writer, reads: list[Reader]) -> Step:
  """add.cc and its like: the carry stays with the thread, where no guard is false."""
  function, takes, gives = meaning.function, "in" in meaning.carries, "out" in meaning.carries
  guard = operands.predicate(line)

  def run(group: Warps) -> None:
    values = [r(group) for r in reads]
    if takes: values.append(group.carry)
    found = function(group.o, *values)
    if not gives: return write(group, found)
    value, carry = found
    write(group, value)
    group.carry = carry if guard is None else group.o.where(guard(group), carry, group.carry)
  return run


# ---- comparisons

_COMBINED: Final[dict[str, Callable[[Any, Any], Any]]] = {
  "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b}


@binds("setp", "set")
def compare(code: Code, line: Line, form: Form) -> Step:
  """setp and set, with a predicate to combine with; a packed setp has a predicate for each half."""
  i = line.instruction
  meaning = find(form)
  if meaning is None: raise unknown(line)
  combine = next((_COMBINED[m] for m in i.modifiers[1:] if m in _COMBINED), None)
  need(line, 3 + (combine is not None))
  t = form.type
  a, b = (operands.reader(code, line, o, t) for o in i.operands[1:3])
  c = operands.reader(code, line, i.operands[3], "pred") if combine is not None else None
  run = computed(form, meaning)
  if i.opcode == "set": return _set(code, line, form, run, a, b, c, combine)
  first, second = operands.pair(line)
  write = operands.writer(code, line, first, "pred")
  other = None if second is None else operands.writer(code, line, second, "pred")
  if combine is None and other is None and t not in PACKED: return computing(write, run, (a, b))
  if t in PACKED:
    half = operands.dtype_of(PACKED[t])

    def packed(group: Holder[B]) -> None:
      x, y = a(group), b(group)
      for k, put in enumerate((write, other)):
        if put is None: continue
        n = np.uint32(16 * k)
        p = run(group.o, (x >> n).astype(U16).view(half), (y >> n).astype(U16).view(half))
        put(group, p if combine is None or c is None else combine(p, c(group)))
    return packed

  def compared(group: Holder[B]) -> None:
    p = run(group.o, a(group), b(group))
    for put, x in ((write, p), *(() if other is None else ((other, ~p),))):
      put(group, x if combine is None or c is None else combine(x, c(group)))
  return compared


def _set(code: Code, line: Line, form: Form, run: Computation, a: Reader, b: Reader, c: Reader | None,
         combine: Callable[[Any, Any], Any] | None) -> Step:
  """1.0 or all ones where the comparison holds."""
  target = form.types[0]
  write = operands.writer(code, line, line.instruction.operands[0], target)
  if form.type in PACKED and target not in PACKED: target = "u16"  # each half has its own
  ones: dict[str, Any] = {"f32": np.float32(1), "f16": np.float16(1), "bf16": np.uint16(0x3F80)}
  dtype = operands.dtype_of(PACKED.get(target, target))
  one: Any = ones.get(PACKED.get(target, target), dtype.type(-1) if dtype.kind == "i" else
                      dtype.type(np.iinfo(dtype).max) if dtype.kind == "u" else None)
  zero = dtype.type(0)

  whole, nothing = code.constant(one), code.constant(zero)

  def value(group: Holder[B], x: B, y: B, q: B | None) -> B:
    p = run(group.o, x, y)
    return group.o.where(p if combine is None else combine(p, q), whole(group), nothing(group))
  if form.type in PACKED:
    half = operands.dtype_of(PACKED[form.type])

    def packed(group: Holder[B]) -> None:
      x, y, q = a(group), b(group), None if c is None else c(group)
      out: Any = np.uint32(0)
      for k in (0, 1):
        n = np.uint32(16 * k)
        part = value(group, (x >> n).astype(U16).view(half), (y >> n).astype(U16).view(half), q)
        out = out | part.view(U16).astype(U32) << n
      write(group, out)
    return packed
  return lambda group: write(group, value(group, a(group), b(group), None if c is None else c(group)))


@binds("cvt")
def cvt(code: Code, line: Line, form: Form) -> Step:
  """Conversions."""
  i = line.instruction
  need(line, 1 + len(form.sources))
  run = convert.function(form)
  write = operands.writer(code, line, i.operands[0], form.results[0])
  given = [(e, "f32") for o in i.operands[1:2] for e in operands.elements(line, o)] if "v" in form.sources else []
  if given and len(given) != 4: raise DecodeError(f"{i.name} takes four numbers, not {len(given)}", where=where(line))
  given += [(o, t) for o, t in zip(i.operands[1:], form.sources) if t != "v"]
  return computing(write, run, [operands.reader(code, line, o, t) for o, t in given])


@binds("lop3")
def lop3(code: Code, line: Line, form: Form) -> Step:
  """Any function of three bits, by its table; with .and or .or also whether the result is not 0."""
  i = line.instruction
  table = operands.immediate(line, i.operands[4], "u32") if len(i.operands) > 4 else None
  if table is None: raise DecodeError("lop3 needs a constant table", where=where(line))
  lut = int(table)
  if lut > 0xFF: raise DecodeError(f"a table of lop3 has 8 bits, not {lut:#x}", where=where(line))
  combine = next((_COMBINED[m] for m in i.modifiers if m in _COMBINED), None)
  first, second = operands.pair(line)
  write = operands.writer(code, line, first, "b32")
  other = None if second is None else operands.writer(code, line, second, "pred")
  a, b, c = (operands.reader(code, line, o, "b32") for o in i.operands[1:4])
  q = operands.reader(code, line, i.operands[5], "pred") if combine is not None else None
  terms = [k for k in range(8) if lut >> k & 1]

  def run(group: Holder[B]) -> None:
    x, y, z = a(group), b(group), c(group)
    out: Any = np.uint32(0)
    for k in terms: out = out | (x if k & 4 else ~x) & (y if k & 2 else ~y) & (z if k & 1 else ~z)
    write(group, out)
    if other is not None and combine is not None and q is not None: other(group, combine(out != 0, q(group)))
  return run


def nothing(group: Group) -> None:
  """A step that changes nothing."""

