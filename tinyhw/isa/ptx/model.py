"""What a PTX module is made of. Positions (`at`) are (line, column), from 1; they take no part in equality."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Union

from tinyhw.core.environment import digits

At = tuple[int, int]
NOWHERE: At = (0, 0)


# ---- operands

@dataclass(frozen=True)
class Name:
  """A register, variable, function, label or special register (`%tid.x`); `_` is the sink."""
  text: str


@dataclass(frozen=True)
class Int:
  """An integer constant, signed 64-bit unless it has the suffix U."""
  value: int
  unsigned: bool = False


@dataclass(frozen=True)
class Float:
  """A floating-point constant by its bits: 32 (`0f...`) or 64 (`0d...`, and decimals)."""
  bits: int
  width: int


@dataclass(frozen=True)
class Sum:
  """The address of a name, and a number of bytes: `array+4`; in initializers also `generic(array)+4`, `mask(array)`.

  `function` is "", "generic", or "0xFF" and the like for a mask of the address's bytes.
  """
  name: str
  offset: int = 0
  function: str = ""


@dataclass(frozen=True)
class Not:
  """`!p`."""
  operand: Operand


@dataclass(frozen=True)
class Minus:
  """`-%r1`: only old vector and video forms have it."""
  operand: Operand


@dataclass(frozen=True)
class OperandPart:
  """`%r1.h0`: a part of a register, for video instructions."""
  operand: Operand
  part: str


@dataclass(frozen=True)
class Vector:
  """`{a, b}`."""
  elements: tuple[Operand, ...]


@dataclass(frozen=True)
class Pair:
  """`p|q`: two destinations."""
  first: Operand
  second: Operand


@dataclass(frozen=True)
class Address:
  """`[base+offset]`; `more` holds what else is in the brackets (coordinates of a tensor, a sampler, a mbarrier)."""
  base: Operand
  offset: int = 0
  more: tuple[Operand, ...] = ()


@dataclass(frozen=True)
class Arguments:
  """`(a, b)` of a call: its results or its arguments."""
  elements: tuple[Operand, ...]


Operand = Name | Int | Float | Sum | Not | Minus | OperandPart | Vector | Pair | Address | Arguments


def leaves(operand: Operand) -> tuple[Name | Int | Float | Sum, ...]:
  """The names and numbers that an operand is made of, in order."""
  if isinstance(operand, (Name, Int, Float, Sum)): return (operand,)
  if isinstance(operand, (Not, Minus, OperandPart)): return leaves(operand.operand)
  if isinstance(operand, Pair): inner: tuple[Operand, ...] = operand.first, operand.second
  elif isinstance(operand, Address): inner = operand.base, *operand.more
  else: inner = operand.elements
  return tuple(leaf for part in inner for leaf in leaves(part))


# ---- statements of a function's body

@dataclass(frozen=True)
class Predicate:
  """`@p` or `@!p`."""
  register: str
  negated: bool = False


@dataclass(frozen=True)
class Instruction:
  """`opcode` is the mnemonic, `modifiers` what follows its dots, in order: ("lo", "s32")."""
  opcode: str
  modifiers: tuple[str, ...]
  operands: tuple[Operand, ...]
  predicate: Predicate | None = None
  at: At = field(default=NOWHERE, compare=False)

  @property
  def name(self) -> str:
    """`mul.lo.s32`."""
    return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True)
class Label:
  """`name:`."""
  name: str
  at: At = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Member:
  """`addr_mode_0 = wrap`: a member of an opaque variable's initializer."""
  name: str
  value: str


@dataclass(frozen=True)
class Variable:
  """A declaration. `type` is "b32" and the like, `vector` 1, 2 or 4 elements, `dims` the sizes of an array (0: left
  open), `count` the N of `%r<N>`. `pointer` is what `.ptr` says of a kernel's parameter: (space or "", alignment).
  """
  space: str
  type: str
  name: str
  vector: int = 1
  align: int = 0
  dims: tuple[int, ...] = ()
  count: int = 0
  initializer: Initializer | None = None
  linkage: str = ""
  pointer: tuple[str, int] | None = None
  attributes: tuple[str, ...] = ()
  at: At = field(default=NOWHERE, compare=False)


Initializer = Union[Int, Float, Sum, Member, tuple["Initializer", ...]]  # noqa: UP007 - it names itself


@dataclass(frozen=True)
class Directive:
  """A directive that is kept as it is written: `.loc 1 5 3`, `.pragma "nounroll"`, `.file`, `.maxntid 256`.

  `words` are its tokens behind the name; the numbers of a function's are in decimals.
  """
  name: str
  words: tuple[str, ...] = ()
  at: At = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Targets:
  """`label: .branchtargets a, b;` or `.calltargets`."""
  kind: str
  label: str
  names: tuple[str, ...]
  at: At = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Prototype:
  """`label: .callprototype (results) _ (params);`."""
  label: str
  results: tuple[Variable, ...]
  params: tuple[Variable, ...]
  flags: tuple[str, ...] = ()
  at: At = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Block:
  """`{ ... }`: a scope of its own."""
  statements: tuple[Statement, ...]


Statement = Instruction | Label | Variable | Directive | Targets | Prototype | Block


# ---- a module

@dataclass(frozen=True)
class Function:
  """`kind` is "entry" or "func"; `body` is None for a declaration."""
  kind: str
  name: str
  results: tuple[Variable, ...] = ()
  params: tuple[Variable, ...] = ()
  directives: tuple[Directive, ...] = ()
  body: tuple[Statement, ...] | None = None
  linkage: str = ""
  attributes: tuple[str, ...] = ()
  at: At = field(default=NOWHERE, compare=False)

  def directive(self, name: str) -> tuple[int, ...] | None:
    """The numbers of a directive such as "maxntid"; None where it is not there."""
    for d in self.directives:
      if d.name == name: return tuple(int(w) for w in d.words if w != ",")
    return None


@dataclass(frozen=True)
class Section:
  """`.section name { ... }`, its tokens as they are written: debug information."""
  name: str
  words: tuple[str, ...]


Item = Function | Variable | Directive | Section


@dataclass(frozen=True)
class Module:
  """A PTX module. `target` is its list: ("sm_80",). `address_size` is 0 where it does not say: the manual takes 32 for
  that, ptxas what the module's addresses are."""
  version: tuple[int, int]
  target: tuple[str, ...]
  address_size: int
  items: tuple[Item, ...]

  @property
  def functions(self) -> dict[str, Function]:
    """Functions by name, those with a body before their declarations."""
    found: dict[str, Function] = {}
    for item in self.items:
      if isinstance(item, Function) and (item.body is not None or item.name not in found): found[item.name] = item
    return found

  @property
  def entries(self) -> dict[str, Function]:
    """Kernels by name."""
    return {n: f for n, f in self.functions.items() if f.kind == "entry" and f.body is not None}

  @property
  def sm(self) -> int:
    """The number of the target: 80 for sm_80, 90 for sm_90a."""
    return int("".join(c for c in self.target[0].partition("_")[2] if digits(c)) or 0)
