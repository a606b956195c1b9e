"""A function's body without its blocks: instructions in order, each with the names that it sees."""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from tinyhw.core.environment import count
from tinyhw.core.errors import DecodeError
from tinyhw.isa.ptx.forms import SIZES
from tinyhw.isa.ptx.model import Block, Directive, Function, Instruction, Label, Prototype, Statement, Targets, Variable

_NUMBERED: Final = re.compile(r"(.*?)(\d+)", re.ASCII)
REGISTERS: Final = 1 << 20  # of a function
STACK_LIMIT: Final = 512 << 10  # bytes of a thread's own memory (CUDA C++ Programming Guide, Compute Capabilities)
PARAMS_LIMIT: Final = 32_764  # bytes of a kernel's parameters (PTX ISA, Kernel Function Parameters)


@dataclass(frozen=True)
class Register:
  """A register: its number in the function's frame, and its type. One of b128 has two numbers, each of b64."""
  number: int
  type: str


@lru_cache(maxsize=4096)
def numbered_register(number: int, type_: str) -> Register:
  """One for all functions that have it."""
  return Register(number, type_)


@dataclass(frozen=True)
class Range:
  """`%r<N>`: N registers from a number on."""
  first: int
  count: int
  type: str


@dataclass
class Place:
  """A variable in memory: its space, and where it is: in the thread's frame ("local", "param"), or by the linker."""
  variable: Variable
  offset: int = 0

  @property
  def space(self) -> str: return self.variable.space

  @property
  def size(self) -> int: return size_of(self.variable)


def size_of(v: Variable) -> int:
  """Bytes of a variable; 0 where an array is left open."""
  total = SIZES[v.type] * v.vector
  for n in v.dims: total *= n
  return total


def align_of(v: Variable) -> int:
  """The alignment that a variable has."""
  return v.align or SIZES[v.type] * v.vector


Entity = Register | Range | Place | Targets | Prototype | int
"""What a name stands for; an int is a label: the index of an instruction."""


class Scope:
  """Names of a block, and of those around it."""

  def __init__(self, outer: Scope | None = None) -> None:
    self.names: dict[str, Entity] = {}
    self.outer = outer
    self._found: dict[str, Entity] = {}  # what has been found: a name keeps its meaning

  def find(self, name: str) -> Entity | Register | None:
    """What a name means, the innermost first. Every name of the function must have been declared."""
    known = self._found.get(name)
    if known is not None: return known
    found = self._look(name)
    if found is not None: self._found[name] = found
    return found

  def _look(self, name: str) -> Entity | Register | None:
    numbered = _NUMBERED.fullmatch(name)
    scope: Scope | None = self
    while scope is not None:
      found = scope.names.get(name)
      if found is not None: return found
      if numbered is not None and (numbered[2] == "0" or numbered[2][0] != "0"):
        many = scope.names.get(numbered[1] + "<>")
        if isinstance(many, Range) and int(numbered[2]) < many.count:
          return numbered_register(many.first + int(numbered[2]) * (many.type == "b128") + int(numbered[2]), many.type)
      scope = scope.outer
    return None


@dataclass
class Line:
  """An instruction with the names that it sees, and the source line that a `.loc` before it names."""
  instruction: Instruction
  scope: Scope
  loc: tuple[int, int] | None = None


@dataclass
class Flat:
  """A function's instructions. `types` are its registers', by number; `frame` is the size of its variables on the
  thread's stack, `shared` are the shared variables that it declares."""
  function: Function
  lines: list[Line] = field(default_factory=list)
  types: list[str] = field(default_factory=list)
  frame: int = 0
  shared: list[Place] = field(default_factory=list)
  statics: list[Place] = field(default_factory=list)
  params: list[Place] = field(default_factory=list)
  results: list[Place] = field(default_factory=list)
  scope: Scope = field(default_factory=Scope)


def flatten(function: Function, outer: Scope) -> Flat:
  """The body of a function, with everything in it named. Raises DecodeError for a name declared twice."""
  flat = Flat(function, scope=Scope(outer))
  loc: list[tuple[int, int] | None] = [None]
  for v in function.results: flat.results.append(_formal(flat, v))
  for v in function.params: flat.params.append(_formal(flat, v))

  def walk(statements: tuple[Statement, ...], scope: Scope) -> None:
    index = len(flat.lines)
    for a in _ahead(statements):
      if isinstance(a, int): index += a
      elif isinstance(a, Label): _name(scope, a.name, index, a.at)
      else: _name(scope, a.label, a, a.at)
    for s in statements:
      if isinstance(s, Instruction): flat.lines.append(Line(s, scope, loc[0]))
      elif isinstance(s, Block): walk(s.statements, Scope(scope))
      elif isinstance(s, Variable): _declare(flat, scope, s)
      elif isinstance(s, Directive) and s.name == "loc":
        file, line = map(count, (*s.words, "", "")[:2])  # debug information decides nothing: what is no place is none
        if file is not None and line is not None: loc[0] = file, line
  assert function.body is not None
  walk(function.body, flat.scope)
  flat.frame = -(-flat.frame // 16) * 16
  return flat


def _ahead(statements: tuple[Statement, ...]) -> Iterator[Label | Targets | Prototype | int]:
  """Labels of a block itself, and how many instructions stand before, between and behind them."""
  for s in statements:
    if isinstance(s, Instruction): yield 1
    elif isinstance(s, Block): yield _count(s.statements)
    elif isinstance(s, (Label, Targets, Prototype)): yield s


def _count(statements: tuple[Statement, ...]) -> int:
  return sum(1 if isinstance(s, Instruction) else _count(s.statements) if isinstance(s, Block) else 0
             for s in statements)


def _name(scope: Scope, name: str, entity: Entity, at: tuple[int, int]) -> None:
  if name in scope.names:
    raise DecodeError(f"{name.removesuffix('<>')} is declared twice", where=f"PTX line {at[0]}, column {at[1]}")
  scope.names[name] = entity


def _formal(flat: Flat, v: Variable) -> Place:
  """A parameter or result of the function. A kernel's parameters lie in memory, one after the other."""
  if v.space == "reg":
    _declare(flat, flat.scope, v)
    return Place(v, -1)
  place = Place(v)
  if flat.function.kind == "entry":
    before = flat.params[-1] if flat.params else None
    place.offset = _aligned(before.offset + before.size if before else 0, align_of(v))
    if place.offset + place.size > PARAMS_LIMIT:
      raise DecodeError(f"parameters of a kernel of more than {PARAMS_LIMIT:,} bytes", where=f"PTX line {v.at[0]}")
  else: _on_stack(flat, place)
  _name(flat.scope, v.name, place, v.at)
  return place


def _aligned(offset: int, align: int) -> int: return -(-offset // align) * align


def _on_stack(flat: Flat, place: Place) -> None:
  place.offset = _aligned(flat.frame, max(align_of(place.variable), 4))
  flat.frame = place.offset + place.size
  if flat.frame > STACK_LIMIT:
    raise DecodeError(f"variables of a thread's own of more than {STACK_LIMIT:,} bytes",
                      where=f"PTX line {place.variable.at[0]}")


def _declare(flat: Flat, scope: Scope, v: Variable) -> None:
  if v.space == "reg":
    if v.type not in SIZES: raise DecodeError(f"no register has the type {v.type}", where=f"PTX line {v.at[0]}")
    first = len(flat.types)
    if first + max(v.count or 1, v.vector) > REGISTERS:
      raise DecodeError(f"more than {REGISTERS:,} registers in a function", where=f"PTX line {v.at[0]}")
    if v.type == "b128":
      if v.vector > 1: raise DecodeError("no vector has elements of b128", where=f"PTX line {v.at[0]}")
      _name(scope, v.name + "<>" * bool(v.count), Range(first, v.count, v.type) if v.count else
            Register(first, v.type), v.at)
      flat.types += ["b64"] * 2 * (v.count or 1)
    elif v.count:
      _name(scope, v.name + "<>", Range(first, v.count, v.type), v.at)
      flat.types += [v.type] * v.count
    elif v.vector > 1:
      for k, part in enumerate("xyzw"[:v.vector]): _name(scope, f"{v.name}.{part}", Register(first + k, v.type), v.at)
      _name(scope, v.name, Range(first, v.vector, v.type), v.at)
      flat.types += [v.type] * v.vector
    else:
      _name(scope, v.name, Register(first, v.type), v.at)
      flat.types.append(v.type)
    return
  place = Place(v)
  if v.space in {"local", "param"}: _on_stack(flat, place)
  elif v.space == "shared": flat.shared.append(place)
  else: flat.statics.append(place)
  _name(scope, v.name, place, v.at)
