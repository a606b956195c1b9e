"""The UOp oracle: runs a linear UOp program (see `tinyhw.ir.uop`) in NumPy, the whole grid at once.

All threads go in lockstep. Each SPECIAL is an axis of its own, so a value is an array with one axis for
each SPECIAL, of size 1 where it does not depend on it: index arithmetic of one axis costs one axis, and
arithmetic broadcasts only where it must. Integers that depend on no SPECIAL (loop counters, constants,
launch values) are plain Python numbers. Gates are masks; a BARRIER needs nothing. A loop that only
accumulates runs in slabs of iterations, as one more axis in front, and each slab is summed before it is
added. Big grids run in slabs of workgroups.

The program is translated to Python source once (`Executable.source` shows it) and runs any number of times.
An access outside of a buffer raises MachineFault. Values not written yet in local memory are garbage on
purpose.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyhw.core.errors import DecodeError, InvalidArgument, MachineFault, Unsupported
from tinyhw.ir import matrix, program, semantics
from tinyhw.ir.dtype import DType, PtrDType, dtypes
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.size import evaluated
from tinyhw.ir.uop import UOp

Array = np.ndarray[Any, np.dtype[Any]]
Dim3 = tuple[int, int, int]

SLAB = 1 << 17          # elements of one array that still fit a core's cache
GARBAGE = 0xA5          # what local memory holds before it is written
UFUNCS = {Ops.ADD: "np.add", Ops.MUL: "np.multiply", Ops.MAX: "np.maximum"}
FLOAT_UFUNCS = {Ops.ADD: "SUM", Ops.MUL: "np.multiply", Ops.MAX: "MAXIMUM"}
BOOL_UFUNCS = {Ops.ADD: "np.logical_or", Ops.MUL: "np.logical_and", Ops.MAX: "np.logical_or"}
DECLARED = frozenset({Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL, Ops.DEFINE_VAR, Ops.SPECIAL})
# EXP2 and LOG2 occur in programs made for targets that have them.
FUNCTIONS = {Ops.EXP2: "np.exp2", Ops.LOG2: "np.log2", Ops.SQRT: "np.sqrt", Ops.TRUNC: "np.trunc"}
OPERATORS = {Ops.ADD: "+", Ops.SUB: "-", Ops.MUL: "*", Ops.FDIV: "/", Ops.CMPLT: "<", Ops.CMPNE: "!=", Ops.CMPEQ: "==",
             Ops.AND: "&", Ops.OR: "|", Ops.XOR: "^"}
LOGICAL = {Ops.ADD: "|", Ops.MUL: "&", Ops.SUB: "^"}         # on bools


# *** what the translated program calls ***

def load(memory: Array, index: Any, where: str) -> Any:
  """Elements of `memory`; `index` is not negative."""
  try: return memory.take(index)
  except IndexError: raise fault("load", memory, index, where) from None


def load_checked(memory: Array, index: Any, where: str) -> Any:
  """Elements of `memory` at indices of any value."""
  if np.any(np.less(index, 0)): raise fault("load", memory, index, where)
  return load(memory, index, where)


def load_gated(memory: Array, index: Any, gate: Any, alternative: Any, where: str) -> Any:
  """Elements of `memory` where the gate is True, else the alternative."""
  values = load_checked(memory, np.where(gate, index, 0), where)
  return np.where(gate, values, alternative)


def store(memory: Array, index: Any, value: Any, gate: Any, where: str) -> None:
  """Elements into `memory`; where several threads store to one place the last one wins."""
  index = np.asarray(index)
  if gate is not None:
    index, value, gate = np.broadcast_arrays(index, value, gate)
    index, value = index[gate], value[gate]
  elif index.shape != np.shape(value): index, value = np.broadcast_arrays(index, value)
  if index.size and index.min() < 0: raise fault("store", memory, index, where)
  try: memory[index] = value
  except IndexError: raise fault("store", memory, index, where) from None


def fault(access: str, memory: Array, index: Any, where: str) -> MachineFault:
  """The error of an access outside of a buffer, naming the first element that is outside."""
  flat = np.asarray(index).reshape(-1)
  outside = flat[(flat < 0) | (flat >= memory.size)]
  return MachineFault(f"{where}: {access} of element {outside[0]}, there are {memory.size}", address=int(outside[0]))


def idiv(a: Any, b: Any) -> Any:
  """Quotient toward zero; 0 where the divisor is 0."""
  quotient = np.floor_divide(a, b)
  remainder = a - quotient * b
  up = (remainder != 0) & ((a < 0) != (b < 0))
  return np.where(np.equal(b, 0), np.zeros_like(quotient), quotient + up.astype(quotient.dtype))


def mod(a: Any, b: Any) -> Any:
  """Remainder with the sign of the dividend; 0 where the divisor is 0."""
  return np.where(np.equal(b, 0), np.zeros_like(np.add(a, b)), np.fmod(a, b))


def to_integer(x: Any, target: np.dtype[Any]) -> Any:
  """Float to integer: toward zero, saturating, 0 for NaN."""
  limits = np.iinfo(target)
  whole = np.trunc(np.asarray(x, np.float64))
  # The greatest float64 below 2^63 is exact, 2^63 - 1 itself is not a float64.
  inside = (whole >= float(limits.min)) & (whole < float(limits.max) + (1.0 if limits.bits < 64 else 0.0))
  result = np.where(inside, whole, 0.0).astype(target)
  result = np.where(whole >= float(limits.max), np.array(limits.max, target), result)
  return np.where(whole < float(limits.min), np.array(limits.min, target), result)


def total(values: Array) -> Any:
  """The sum of floats along the first axis. NumPy starts from +0.0, which -0.0 does not survive."""
  return np.add.reduce(values, axis=0, dtype=values.dtype, initial=values.dtype.type(-0.0))


def maximum(a: Any, b: Any) -> Any:
  """The greater float of two. NumPy takes either zero of two."""
  greater = np.maximum(a, b)
  zero = greater == 0
  # The sum of two zeros is -0.0 where both are.
  return np.where(zero & np.equal(a, b), np.add(a, b), greater) if np.any(zero) else greater


def greatest(values: Array) -> Any:
  """The greatest float along the first axis."""
  found = np.maximum.reduce(values, axis=0)
  zero = found == 0
  if not np.any(zero): return found
  positive = np.any((values == 0) & ~np.signbit(values), axis=0)
  return np.where(zero, np.where(positive, values.dtype.type(0.0), values.dtype.type(-0.0)), found)


SUM, MAXIMUM = (np.add, total), (maximum, greatest)       # how to combine two, how to combine many


def multiply(unit: matrix.MatrixUnit, axes: int, axis: int, a: Any, b: Any, c: Any) -> tuple[Any, ...]:
  """A matrix unit's a * b + c, each a tuple of a lane's numbers; of the `axes` of threads one is the lanes. A step is
  added after another, and rounded each time."""
  def gathered(values: Any, layout: Any, rows: int, columns: int) -> Array:
    numbers = np.stack(np.broadcast_arrays(np.zeros((1,) * axes, np.bool_), *values)[1:], -1)
    numbers = np.moveaxis(numbers, axis, -2)
    numbers = np.broadcast_to(numbers, (*numbers.shape[:-2], unit.lanes, numbers.shape[-1]))
    found = np.zeros((*numbers.shape[:-2], rows, columns), numbers.dtype)
    for at in range(unit.lanes):
      for j in range(numbers.shape[-1]):
        found[..., matrix.total(layout[0], at, j), matrix.total(layout[1], at, j)] = numbers[..., at, j]
    return found
  left, right = gathered(a, unit.a, unit.rows, unit.steps), gathered(b, unit.b, unit.steps, unit.columns)
  total_, kind = gathered(c, unit.c, unit.rows, unit.columns), numpy_type(unit.output)
  for s in range(unit.steps):
    total_ = total_ + left[..., :, s, None].astype(kind) * right[..., s, None, :].astype(kind)
  results = []
  for j in range(unit.results):
    lanes = [total_[..., matrix.total(unit.c[0], at, j), matrix.total(unit.c[1], at, j)] for at in range(unit.lanes)]
    results.append(np.stack(lanes, axis))
  return tuple(results)


def fold(how: Any, accumulator: Any, values: Any, count: int, varies: bool) -> Any:
  """`accumulator` combined with the values of `count` iterations: an axis in front, when the value `varies`."""
  if not varies: values = np.broadcast_to(values, (count, *np.shape(values)))
  if isinstance(how, np.ufunc): return how(accumulator, how.reduce(values, axis=0, dtype=values.dtype))
  combine, along = how
  return combine(accumulator, along(values))


# *** translation ***

class Translator:
  """Writes the Python source of one linear program."""

  def __init__(self, uops: Sequence[UOp], name: str):
    self.uops, self.name = tuple(uops), name
    self.number = {u: i for i, u in enumerate(self.uops)}
    self.lines: list[str] = []
    self.constants: dict[str, Any] = {}
    self.depth = 1
    self.uniform: dict[UOp, bool] = {}
    self.specials = [u for u in self.uops if u.op is Ops.SPECIAL]
    self.globals = {u.arg: u for u in self.uops if u.op is Ops.DEFINE_GLOBAL}
    self.locals = [u for u in self.uops if u.op is Ops.DEFINE_LOCAL]
    self.variables = [u for u in self.uops if u.op is Ops.DEFINE_VAR]
    self.assigns: list[list[UOp]] = []
    self.vector: UOp | None = None        # the RANGE whose iterations are an axis now

  def emit(self, line: str) -> None:
    """One line more, at the depth of the loops that are open."""
    self.lines.append("  " * self.depth + line)

  def constant(self, value: Any) -> str:
    """The name of a value that the program needs as it is."""
    name = f"k{len(self.constants)}"
    self.constants[name] = value
    return name

  def var(self, u: UOp) -> str:
    """The name of the variable that holds the value of `u`."""
    return f"v{self.number[u]}"

  def typed(self, u: UOp) -> str:
    """An expression of `u` with its NumPy type, also where it is a Python number."""
    if u.op is Ops.CONST: return self.constant(scalar_type(u.dtype)(u.arg))
    return f"{self.constant(scalar_type(u.dtype))}({self.var(u)})" if self.uniform[u] else self.var(u)

  def operand(self, u: UOp) -> str:
    """An expression of `u` beside one that is typed."""
    return self.typed(u) if u.op is Ops.CONST else self.var(u)

  def source(self) -> str:
    """The whole function."""
    for u in self.uops:
      if u.op in DECLARED: self.uniform[u] = u.op is Ops.DEFINE_VAR
    for u in self.globals.values(): self.emit(f"{self.var(u)} = memories[{u.arg}]")
    for i, u in enumerate(self.variables): self.emit(f"{self.var(u)} = values[{i}]")
    for u in self.specials: self.emit(f"{self.var(u)} = axes[{u.arg.name!r}]")
    for u in self.locals:
      assert isinstance(u.dtype, PtrDType)
      kind, nbytes = self.constant(memory_type(u.dtype.base)), u.dtype.size * u.dtype.base.itemsize
      self.emit(f"{self.var(u)} = np.full(groups * {nbytes}, {GARBAGE}, np.uint8).view({kind})")
    self.block(self.uops)
    return "\n".join(["def run(memories, values, axes, groups, group, width):", *self.lines])

  def block(self, uops: Sequence[UOp]) -> None:
    """A run of UOps whose loops are closed within it."""
    i = 0
    while i < len(uops):
      u = uops[i]
      if u.op is Ops.RANGE:
        end = next(j for j in range(i, len(uops)) if uops[j].op is Ops.ENDRANGE and uops[j].src[0] is u)
        self.loop(u, uops[i + 1:end])
        i = end
      else: self.one(u)
      i += 1

  def loop(self, counter: UOp, body: Sequence[UOp]) -> None:
    """A loop, one iteration after another; and in slabs of iterations where it only accumulates."""
    bound = counter.src[0]
    if not self.uniform[bound]: raise Unsupported("loop bound", "that differs between threads", where=self.name)
    end = repr(bound.arg) if bound.op is Ops.CONST else self.var(bound)
    if bound.vmin < 1:
      # What an accumulator is worth after a loop that did not run.
      own = {u for u in body if u.op is Ops.DEFINE_ACC}
      for u in body:
        if u.op is Ops.ASSIGN and u.src[0] not in own: self.emit(f"{self.var(u)} = {self.var(u.src[0])}")
    self.assigns.append([])
    folds = self.vector is None and accumulations(body)
    if folds:
      self.emit(f"step = min({end}, {SLAB} // width)")
      self.emit("if step >= 4:")
      self.depth += 1
      self.slabs(counter, body, end, folds)
      self.depth -= 1
      self.emit("else:")
      self.depth += 1
    self.uniform[counter] = True
    self.emit(f"for {self.var(counter)} in range({end}):")
    self.depth += 1
    self.block(body)
    for assign in self.assigns.pop(): self.emit(f"{self.var(assign.src[0])} = {self.var(assign)}")
    if not self.lines[-1].startswith("  " * self.depth): self.emit("pass")
    self.depth -= 1
    if folds: self.depth -= 1

  def slabs(self, counter: UOp, body: Sequence[UOp], end: str, folds: dict[UOp, Accumulation]) -> None:
    """The loop with an axis of iterations in front of the others."""
    name = self.var(counter)
    self.emit(f"for start in range(0, {end}, step):")
    self.depth += 1
    shape = (-1,) + (1,) * len(self.specials)
    self.emit(f"{name} = np.arange(start, min(start + step, {end}), dtype=np.int32).reshape({shape})")
    self.uniform[counter], self.vector = False, counter
    skipped = {u for a in folds.values() for u in a.steps} | set(folds)
    for u in body:
      if u not in skipped: self.one(u)
    for assign, found in folds.items():
      accumulator = assign.src[0]
      kinds = BOOL_UFUNCS if accumulator.dtype.is_bool else FLOAT_UFUNCS if accumulator.dtype.is_float else UFUNCS
      for term in found.terms:
        parts = term.src[:2] if term.op is Ops.MULACC else (term,)
        text, varies = " * ".join(self.typed(p) for p in parts), any(counter in p.ranges for p in parts)
        how, old = kinds[found.op], self.var(accumulator)
        self.emit(f"{old} = fold({how}, {old}, {text}, len({name}), {varies})")
    self.vector = None
    self.depth -= 1
    for assign in folds: self.emit(f"{self.var(assign)} = {self.var(assign.src[0])}")

  def one(self, u: UOp) -> None:
    """One UOp that is not a loop."""
    op = u.op
    if op in DECLARED: return
    self.uniform[u] = False
    if op is Ops.CONST:
      self.uniform[u] = not u.dtype.is_float
      self.emit(f"{self.var(u)} = {repr(u.arg) if self.uniform[u] else self.typed(u)}")
    elif op in GroupOp.ALU or op in (Ops.CAST, Ops.BITCAST):
      self.uniform[u] = all(self.uniform[s] for s in u.src) and not u.dtype.is_float
      self.emit(f"{self.var(u)} = {self.uniform_alu(u) if self.uniform[u] else self.alu(u)}")
    elif op is Ops.DEFINE_ACC: self.emit(f"{self.var(u)} = {self.typed(u.src[0])}")
    elif op is Ops.ASSIGN:
      self.emit(f"{self.var(u)} = {self.typed(u.src[1])}")
      if self.assigns: self.assigns[-1].append(u)
      else: self.emit(f"{self.var(u.src[0])} = {self.var(u)}")
    elif op is Ops.LOAD: self.load(u)
    elif op is Ops.STORE: self.store(u)
    elif op is Ops.WMMA: self.matrix(u)
    elif op is Ops.VECTORIZE: self.emit(f"{self.var(u)} = ({''.join(self.typed(s) + ', ' for s in u.src)})")
    elif op is Ops.GEP:
      lanes = [f"{self.var(u.src[0])}[{i}]" for i in u.arg]
      self.emit(f"{self.var(u)} = {lanes[0] if len(lanes) == 1 else '(' + ', '.join(lanes) + ')'}")
    elif op not in (Ops.INDEX, Ops.BARRIER, Ops.SINK): raise Unsupported("uop", op.name, where=self.name)

  def matrix(self, u: UOp) -> None:
    """WMMA: the lanes of a wave are those of `lidx0`."""
    unit = matrix.UNITS.get(u.arg)
    if unit is None: raise Unsupported("matrix unit", u.arg, where=self.name)
    axis = next((i for i, s in enumerate(self.specials) if s.arg.name == "lidx0"), None)
    if axis is None or self.specials[axis].arg.size != unit.lanes:
      raise InvalidArgument(f"{unit.name} is of {unit.lanes} lanes, lidx0", where=self.name)
    sources, axes = ", ".join(self.var(s) for s in u.src), len(self.specials)
    self.emit(f"{self.var(u)} = multiply({self.constant(unit)}, {axes}, {axis}, {sources})")

  def place(self, index: UOp, lane: int) -> tuple[str, str, str | None, str]:
    """(memory, element, gate, how a fault calls it) of an INDEX, `lane` elements on."""
    pointer, element = index.src[:2]
    text = repr(element.arg) if element.op is Ops.CONST else self.var(element)
    if lane: text = f"({text} + {lane})"
    gate = self.var(index.src[2]) if len(index.src) > 2 else None
    where = repr(f"kernel {self.name}, {'local memory' if pointer.op is Ops.DEFINE_LOCAL else 'buffer'} {pointer.arg}")
    if pointer.op is Ops.DEFINE_LOCAL:
      assert isinstance(pointer.dtype, PtrDType)
      size = pointer.dtype.size
      text = f"inside({text if gate is None else f'np.where({gate}, {text}, 0)'}, {size}, {where}) + group * {size}"
    return self.var(pointer), text, gate, where

  def load(self, u: UOp) -> None:
    """LOAD of one element or of several in a row."""
    index = u.src[0]
    alternative = next((s for s in u.src[1:] if s.op is not Ops.BARRIER), None)
    lanes = []
    for lane in range(u.dtype.count):
      memory, element, gate, where = self.place(index, lane)
      if gate is None: lanes.append(f"load{'' if index.src[1].vmin >= 0 else '_checked'}({memory}, {element}, {where})")
      else:
        other = "0" if alternative is None else self.typed(alternative)
        if alternative is not None and u.dtype.count > 1: other += f"[{lane}]"
        lanes.append(f"load_gated({memory}, {element}, {gate}, {other}, {where})")
    self.emit(f"{self.var(u)} = {lanes[0] if len(lanes) == 1 else '(' + ', '.join(lanes) + ')'}")

  def store(self, u: UOp) -> None:
    """STORE of a scalar or of a vector."""
    count = u.src[1].dtype.count
    for lane in range(count):
      memory, element, gate, where = self.place(u.src[0], lane)
      value = self.typed(u.src[1]) + (f"[{lane}]" if count > 1 else "")
      self.emit(f"store({memory}, {element}, {value}, {gate}, {where})")

  def uniform_alu(self, u: UOp) -> str:
    """An integer or bool operation on Python numbers."""
    names = [repr(s.arg) if s.op is Ops.CONST else self.var(s) for s in u.src]
    op, dtype = u.op, u.dtype
    if op is Ops.WHERE: return f"{names[1]} if {names[0]} else {names[2]}"
    if op is Ops.CAST and dtype.is_bool: return f"{names[0]} != 0"
    if op is Ops.CAST or op is Ops.BITCAST: return f"wrap({names[0]}, {self.constant(dtype)})"
    if op in (Ops.IDIV, Ops.MOD) and u.src[0].vmin >= 0 and u.src[1].vmin > 0:
      return f"{names[0]} {'//' if op is Ops.IDIV else '%'} {names[1]}"
    # Bounds that touch the type's ends may mean that the result wraps.
    safe = dtype.is_int and u.vmin > dtype.min and u.vmax < dtype.max
    if op in GroupOp.COMPARE or op in GroupOp.BITWISE or (op in OPERATORS and safe):
      return f"{names[0]} {OPERATORS[op]} {names[1]}"
    operand = u.src[0 if op in (Ops.SHL, Ops.SHR) else -1].dtype
    return f"scalar_alu({self.constant(op)}, {self.constant(operand)}, {', '.join(names)})"

  def alu(self, u: UOp) -> str:
    """An operation on arrays."""
    op, dtype, src = u.op, u.dtype, u.src
    if op is Ops.CAST: return self.cast(u)
    if op is Ops.BITCAST: return f"{self.typed(src[0])}.view({self.constant(numpy_type(dtype))})"
    if op in FUNCTIONS: return f"{FUNCTIONS[op]}({self.typed(src[0])})"
    if op is Ops.NEG: return self.typed(src[0]) if dtype.is_bool else f"-{self.typed(src[0])}"
    if op is Ops.RECIP: return f"{self.constant(scalar_type(dtype)(1))} / {self.typed(src[0])}"
    if op is Ops.WHERE: return f"np.where({self.var(src[0])}, {self.typed(src[1])}, {self.typed(src[2])})"
    # One typed operand is enough: NumPy lets Python numbers follow it.
    all_uniform = all(self.uniform[s] for s in src)
    names = [self.typed(s) if all_uniform else self.operand(s) for s in src]
    if op is Ops.MULACC: return f"{names[0]} * {names[1]} + {names[2]}"
    if op is Ops.MAX: return f"{'maximum' if dtype.is_float else 'np.maximum'}({names[0]}, {names[1]})"
    if dtype.is_bool and op in LOGICAL: return f"{names[0]} {LOGICAL[op]} {names[1]}"
    if op in OPERATORS: return f"{names[0]} {OPERATORS[op]} {names[1]}"
    if op in (Ops.SHL, Ops.SHR):
      sign, bits = ("<<" if op is Ops.SHL else ">>"), dtype.bits
      if src[1].op is Ops.CONST: count = self.constant(scalar_type(dtype)(int(src[1].arg) % bits))
      else: count = f"({self.typed(src[1])} & {bits - 1}).astype({self.constant(numpy_type(dtype))})"
      return f"{self.typed(src[0])} {sign} {count}"
    if op in (Ops.IDIV, Ops.MOD):
      if src[0].vmin >= 0 and src[1].op is Ops.CONST and (n := int(src[1].arg)) > 0:
        if n & (n - 1): return f"{names[0]} {'//' if op is Ops.IDIV else '%'} {names[1]}"
        return f"{names[0]} >> {n.bit_length() - 1}" if op is Ops.IDIV else f"{names[0]} & {n - 1}"
      return f"{'idiv' if op is Ops.IDIV else 'mod'}({self.typed(src[0])}, {self.typed(src[1])})"
    raise Unsupported("uop", op.name, where=self.name)

  def cast(self, u: UOp) -> str:
    """CAST of an array."""
    value, source, target = self.typed(u.src[0]), u.src[0].dtype, u.dtype
    if target.is_bool: return f"{value} != 0"
    kind = self.constant(numpy_type(target))
    return f"to_integer({value}, {kind})" if source.is_float and target.is_int else f"{value}.astype({kind})"


def inside(index: Any, size: int, where: str) -> Any:
  """An index of local memory, which must be in it."""
  if np.any(np.less(index, 0)) or np.any(np.greater_equal(index, size)):
    flat = np.asarray(index).reshape(-1)
    outside = flat[(flat < 0) | (flat >= size)]
    raise MachineFault(f"{where}: access to element {outside[0]}, there are {size}", address=int(outside[0]))
  return index


@dataclass(frozen=True)
class Accumulation:
  """A loop's ASSIGN of the form `accumulator = accumulator op term op term ...`; `steps` are the operations that
  combine."""
  op: Ops
  terms: tuple[UOp, ...]
  steps: tuple[UOp, ...]


def accumulations(body: Sequence[UOp]) -> dict[UOp, Accumulation]:
  """The ASSIGNs of a loop that does nothing but combine terms into accumulators; {} for any other loop."""
  if any(u.op in (Ops.RANGE, Ops.STORE, Ops.BARRIER, Ops.DEFINE_ACC) or u.dtype.count > 1 for u in body): return {}
  assigns = [u for u in body if u.op is Ops.ASSIGN]
  depends = {u.src[0] for u in assigns}
  for u in body:
    if any(s in depends for s in u.src): depends.add(u)
  found: dict[UOp, Accumulation] = {}
  for assign in assigns:
    accumulator, u = assign.src
    op = Ops.ADD if u.op is Ops.MULACC else u.op
    terms: list[UOp] = []
    steps: list[UOp] = []
    while u is not accumulator:
      if op not in UFUNCS: return {}
      if u.op is Ops.MULACC and op is Ops.ADD: following, others = u.src[2], u.src[:2]
      elif u.op is op: following, others = (u.src[0], u.src[1:]) if u.src[0] in depends else (u.src[1], u.src[:1])
      else: return {}
      if following not in depends or any(s in depends for s in others): return {}
      terms.append(u if u.op is Ops.MULACC else others[0])
      steps.append(u)
      u = following
    found[assign] = Accumulation(op, tuple(terms), tuple(steps))
  combining = {u for a in found.values() for u in a.steps} | set(found) | {a.src[0] for a in found}
  return found if depends <= combining else {}


def numpy_type(dtype: DType) -> np.dtype[Any]:
  """The NumPy type of a scalar."""
  if dtype.numpy is None: raise Unsupported("dtype in a linear program", dtype.name)
  return dtype.numpy


def memory_type(dtype: DType) -> np.dtype[Any]:
  """The NumPy type that memory of `dtype` is read as."""
  return np.dtype(np.uint16) if dtype.scalar is dtypes.bfloat16 else numpy_type(dtype.scalar)


def scalar_type(dtype: DType) -> Any:
  """The NumPy scalar class."""
  return numpy_type(dtype).type


NAMES = {"np": np, "load": load, "load_checked": load_checked, "load_gated": load_gated, "store": store, "idiv": idiv,
         "mod": mod, "multiply": multiply, "to_integer": to_integer, "fold": fold, "SUM": SUM, "MAXIMUM": MAXIMUM,
         "maximum": maximum, "inside": inside, "wrap": semantics.wrap, "scalar_alu": semantics.alu}


class Executable:
  """A linear program made ready to run. Call it with the buffers' bytes, the launch values, the grid and the block."""

  def __init__(self, uops: Sequence[UOp], name: str):
    self.name = name
    translator = Translator(uops, name)
    self.source = translator.source()
    self.types = {i: memory_type(u.dtype.base) for i, u in translator.globals.items() if isinstance(u.dtype, PtrDType)}
    self.specials = [(u.arg.name, u.arg.size) for u in translator.specials]
    self.ends = {u.arg.name: u.src[0] for u in translator.specials if u.src}   # of those that launches decide
    self.variables = [u.arg for u in translator.variables]
    scope = {**NAMES, **translator.constants}
    exec(compile(self.source, f"<uops of {name}>", "exec"), scope)
    self._run: Any = scope["run"]

  def __call__(self, buffers: Sequence[Array], values: Sequence[int | float], grid: Dim3, block: Dim3) -> None:
    sizes, where = dict(self.specials), f"kernel {self.name}"
    if self.ends and len(values) == len(self.variables):
      given = dict(zip(self.variables, map(int, values)))
      sizes.update({name: evaluated(end, given) for name, end in self.ends.items()})
    wanted = tuple(tuple(sizes.get(f"{kind}idx{i}", 1) for i in range(3)) for kind in "gl")
    if (tuple(grid), tuple(block)) != wanted:
      raise InvalidArgument(f"grid {tuple(grid)} and block {tuple(block)}; it is made for {wanted[0]} and {wanted[1]}",
                            where=where)
    if len(values) != len(self.variables) or any(not v.min <= x <= v.max for x, v in zip(values, self.variables)):
      raise InvalidArgument(f"launch values {tuple(values)} for {self.variables}", where=where)
    if any(i >= len(buffers) for i in self.types):
      raise InvalidArgument(f"{len(buffers)} buffers given, the program uses number {max(self.types)}", where=where)
    memories = {i: buffers[i][:buffers[i].size // t.itemsize * t.itemsize].view(t) for i, t in self.types.items()}
    with np.errstate(all="ignore"):
      if 0 in sizes.values(): return
      for axes, groups, group, width in self._slabs(sizes): self._run(memories, values, axes, groups, group, width)

  def _slabs(self, sizes: dict[str, int]) -> Iterator[tuple[dict[str, Array], int, Any, int]]:
    """The grid in slabs of workgroups: (the SPECIALs as arrays, workgroups, number of each within the slab,
    threads)."""
    names = [name for name, _ in self.specials]
    groups: list[str] = [name for name in ("gidx2", "gidx1", "gidx0") if name in sizes]
    threads = math.prod(size for name, size in self.specials if name.startswith("l"))
    steps: dict[str, int] = {}
    for name in reversed(groups):     # gidx0 is the fastest: it is cut last
      steps[name] = max(1, min(sizes[name], SLAB // threads))
      threads *= steps[name]
    def axis(name: str, low: int, high: int) -> Array:
      shape = [1] * len(names)
      shape[names.index(name)] = -1
      return np.arange(low, high, dtype=np.int32).reshape(shape)
    fixed = {name: axis(name, 0, size) for name, size in self.specials if name.startswith("l")}
    def cut(rest: list[str], axes: dict[str, Array]) -> Iterator[dict[str, Array]]:
      if not rest: yield axes
      else:
        for low in range(0, sizes[rest[0]], steps[rest[0]]):
          high = min(low + steps[rest[0]], sizes[rest[0]])
          yield from cut(rest[1:], {**axes, rest[0]: axis(rest[0], low, high)})
    for axes in cut(groups, fixed):
      count, number = 1, np.zeros((1,) * len(names), np.int32)
      for name in groups:
        number = number * axes[name].size + (axes[name] - axes[name].reshape(-1)[0])
        count *= axes[name].size
      yield axes, count, number, math.prod(a.size for a in axes.values())


def load_program(binary: bytes, kernel: str) -> Executable:
  """The program that the `uops` renderer serialised."""
  try: text = binary.decode()
  except UnicodeDecodeError as error:
    raise DecodeError(f"not a UOp program: {error}", where=f"kernel {kernel}") from None
  return Executable(program.load(text), kernel)
