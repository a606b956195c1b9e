"""Reads PTX: a recursive descent over the tokens. Errors say line, column, and what was expected there."""
from __future__ import annotations

import operator
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final, NoReturn

from tinyhw.core.environment import digits
from tinyhw.isa.ptx.lexer import PtxSyntaxError, Tokens, float_bits, integer
from tinyhw.isa.ptx.model import (
  Address,
  Arguments,
  At,
  Block,
  Directive,
  Float,
  Function,
  Initializer,
  Instruction,
  Int,
  Item,
  Label,
  Member,
  Minus,
  Module,
  Name,
  Not,
  Operand,
  OperandPart,
  Pair,
  Predicate,
  Prototype,
  Section,
  Statement,
  Sum,
  Targets,
  Variable,
  Vector,
)

__all__ = ["PtxSyntaxError", "parse"]
LINKAGES: Final = {".extern", ".visible", ".weak", ".common"}
SPACES: Final = {".reg", ".sreg", ".const", ".global", ".local", ".param", ".shared", ".tex"}
TYPES: Final = frozenset(f".{t}" for t in (
  "b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f16", "f16x2", "f32", "f64",
  "bf16", "bf16x2", "e4m3", "e5m2", "e4m3x2", "e5m2x2", "tf32", "pred", "texref", "samplerref", "surfref", "u16x2",
  "s16x2", "f32x2"))
_PART: Final = re.compile(r"\.[bh][0-7]+")
_LINES: Final = {".file", ".loc"}  # directives that end with their line, not with a semicolon
# directives of a function, with how many numbers they have at most
_TUNING: Final = {".maxntid": 3, ".reqntid": 3, ".minnctapersm": 1, ".maxnctapersm": 1, ".maxnreg": 1, ".noreturn": 0,
                  ".explicitcluster": 0, ".reqnctapercluster": 3, ".maxclusterrank": 1, ".blocksareclusters": 0,
                  ".abi_preserve": 1, ".abi_preserve_control": 1, ".pragma": 0, ".unified": 0}
_ZERO: Final = {".abi_preserve", ".abi_preserve_control"}  # whose number may be 0
_WORD: Final = (1 << 32) - 1  # the largest number of a directive, as ptxas has it
_MASK: Final = (1 << 64) - 1


# ---- constant expressions: numbers of 64 bits that wrap around, with a sign or without (PTX ISA, section 4.5; where it
# leaves a choice, as ptxas has it)

def _number(value: int, unsigned: bool) -> Int:
  value &= _MASK
  return Int(value if unsigned else value - (value >> 63 << 64), unsigned)


def _converted(a: Int, b: Int) -> tuple[int, int, bool]:
  """Both as numbers of one type: without a sign where one of them has none."""
  unsigned = a.unsigned or b.unsigned
  return _number(a.value, unsigned).value, _number(b.value, unsigned).value, unsigned


def _divided(a: int, b: int) -> int:
  """The quotient toward zero."""
  return a // b if (a < 0) == (b < 0) else -(-a // b)


def _made(function: Callable[[int, int], int]) -> Callable[[Int, Int], Int]:
  def made(a: Int, b: Int) -> Int:
    x, y, unsigned = _converted(a, b)
    return _number(function(x, y), unsigned)
  return made


def _held(function: Callable[[int, int], object]) -> Callable[[Int, Int], Int]:
  def held(a: Int, b: Int) -> Int:
    x, y, _ = _converted(a, b)
    return Int(int(bool(function(x, y))))
  return held


# how closely an operator binds, and what it makes
_BINARY: Final[dict[str, tuple[int, Callable[[Int, Int], Int]]]] = {
  "||": (0, _held(lambda a, b: a or b)), "&&": (1, _held(lambda a, b: a and b)), "|": (2, _made(operator.or_)),
  "^": (3, _made(operator.xor)), "&": (4, _made(operator.and_)),
  "==": (5, _held(operator.eq)), "!=": (5, _held(operator.ne)),
  "<": (6, _held(operator.lt)), "<=": (6, _held(operator.le)), ">": (6, _held(operator.gt)),
  ">=": (6, _held(operator.ge)),
  "<<": (7, lambda a, b: _number(a.value << (b.value & 63), a.unsigned)),
  ">>": (7, lambda a, b: _number(a.value >> (b.value & 63), a.unsigned)),
  "+": (8, _made(operator.add)), "-": (8, _made(operator.sub)),
  "*": (9, _made(operator.mul)), "/": (9, _made(_divided)),
  "%": (9, lambda a, b: _number((a.value & _MASK) % (b.value & _MASK), True))}
_NONE: Final = -1, _made(operator.add)  # what is no operator


def parse(source: str | bytes) -> Module:
  """A PTX module out of its text. Raises PtxSyntaxError (a DecodeError)."""
  if isinstance(source, bytes):
    data = source
    try: source = data.rstrip(b"\0").decode()
    except UnicodeDecodeError as error:
      at = data.count(b"\n", 0, error.start) + 1, error.start - data.rfind(b"\n", 0, error.start)
      raise PtxSyntaxError(f"byte {data[error.start]:#x}", "text in UTF-8", at) from None
  parser = _Parser(source)
  try: return parser.module()
  except RecursionError: parser.fail("fewer nested braces and brackets")


class _Parser:
  def __init__(self, source: str) -> None:
    self.tokens = tokens = Tokens(source)
    self.texts, self.kinds = tokens.texts, tokens.kinds
    self.names: dict[str, Name] = {}  # one for all places where it stands
    self.i = 0  # of the next token, whose text and kind these are
    self.text, self.kind = self.texts[0], self.kinds[0]
    self.lines = [0, *accumulate(len(line) + 1 for line in source.split("\n"))]

  # ---- tokens

  def at(self, token: int | None = None) -> At:
    """Where a token stands, the next one unless told."""
    start = self.tokens.starts[self.i if token is None else token]
    line = bisect_right(self.lines, start)
    return line, start - self.lines[line - 1] + 1

  def fail(self, expected: str, token: int | None = None, hint: str | None = None) -> NoReturn:
    i = self.i if token is None else token
    found = "the end of the text" if self.kinds[i] == "end" else repr(self.texts[i])
    raise PtxSyntaxError(found, expected, self.at(i), hint=hint)

  def step(self) -> str:
    """Take the next token; its text."""
    text = self.text
    if text: self.go(self.i + 1)
    return text

  def go(self, i: int) -> None:
    """Go on from a token."""
    self.i, self.text, self.kind = i, self.texts[i], self.kinds[i]

  def adjoins(self) -> bool:
    """Whether nothing stands between the next token and the one before it."""
    return self.tokens.starts[self.i] == self.tokens.ends[self.i - 1]

  def skip(self, text: str) -> bool:
    """Take the token, if it is this one."""
    if self.text != text: return False
    self.step()
    return True

  def need(self, text: str, what: str = "") -> str:
    if self.text != text: self.fail(what or repr(text))
    return self.step()

  def name(self, what: str) -> str:
    if self.kind != "name": self.fail(what)
    return self.step()

  def peek(self, n: int = 1) -> str:
    """The text of a token further on, up to two."""
    return self.texts[self.i + n]

  def peek_kind(self) -> str: return self.kinds[self.i + 1]

  # ---- the module

  def module(self) -> Module:
    self.need(".version", ".version as the first directive")
    version = self.version()
    self.need(".target", ".target behind .version")
    target = [self.name("a target such as sm_80")]
    while self.skip(","): target.append(self.name("a target's option"))
    size = 0
    if self.skip(".address_size"):
      size = self.number("32 or 64")
      if size not in {32, 64}: self.fail("an address size of 32 or 64", self.i - 1)
    items: list[Item] = []
    while self.kind != "end": items += self.items()
    return Module(version, tuple(target), size, tuple(items))

  def version(self) -> tuple[int, int]:
    major, _, minor = self.text.partition(".")
    if self.kind != "float" or not (digits(major) and digits(minor)): self.fail("a version such as 9.0")
    self.step()
    return int(major), int(minor)

  def number(self, what: str) -> int: return self.literal(what).value

  def between(self, least: int, most: int, what: str) -> int:
    """A number of such a size."""
    at, value = self.i, self.number(what)
    if not least <= value <= most: self.fail(what, at)
    return value

  def alignment(self) -> int:
    """What stands behind `.align`."""
    what = "a power of two of at most 32 bits, an alignment in bytes,"
    at, value = self.i, self.between(1, _WORD, what)
    if value & value - 1: self.fail(what, at)
    return value

  def literal(self, what: str) -> Int:
    """A number as it is written: without a sign where it says so, or has no room for one."""
    if self.kind != "int": self.fail(what)
    value = integer(self.text)
    if value > _MASK: self.fail("an integer of at most 64 bits")
    return Int(value, self.step().endswith("U") or value > _MASK >> 1)

  def items(self) -> Sequence[Item]:
    """What is next in a module; a declaration may have several variables."""
    text = self.text
    if text in {".file", ".loc", ".pragma", ".alias"}: return (self.directive(),)
    if text == ".section": return (self.section(),)
    linkage, attributes = "", tuple[str, ...]()
    while self.text in LINKAGES or self.text == ".attribute":
      if self.text == ".attribute": attributes += self.attributes()
      else: linkage = self.step()[1:]
    if self.text in {".entry", ".func"}: return (self.function(linkage, attributes),)
    if self.text in SPACES:
      variables = self.variables(linkage, attributes)
      self.need(";", "';' behind a variable")
      return variables
    self.fail("a directive of a module (.entry, .func, .global, ...)")

  def attributes(self) -> tuple[str, ...]:
    self.need(".attribute")
    self.need("(")
    words = []
    depth = 1
    while depth:
      if self.kind == "end": self.fail("')'")
      text = self.step()
      depth += (text == "(") - (text == ")")
      if depth: words.append(text)
    return (" ".join(words),)

  def directive(self) -> Directive:
    at, name = self.at(), self.step()
    words: list[str] = []
    if name in _LINES:
      line = at[0]
      while self.kind != "end" and self.at()[0] == line: words.append(self.step())
    else:
      while not self.skip(";"):
        if self.kind == "end": self.fail(f"';' behind {name}")
        words.append(self.step())
    return Directive(name[1:], tuple(words), at)

  def section(self) -> Section:
    self.step()
    if self.kind not in {"dot", "name"}: self.fail("a section's name")
    name = self.step()
    self.need("{")
    words = []
    while not self.skip("}"):
      if self.kind == "end": self.fail("'}' behind a section")
      words.append(self.step())
    return Section(name, tuple(words))

  # ---- functions

  def function(self, linkage: str, attributes: tuple[str, ...]) -> Function:
    kind = self.step()[1:]
    while self.text == ".attribute": attributes += self.attributes()
    results: tuple[Variable, ...] = ()
    if self.text == "(": results = self.parameters()
    at = self.at()
    name = self.name("the function's name")
    params = self.parameters() if self.text == "(" else ()
    directives: list[Directive] = []
    while self.text in _TUNING:
      where, tuning = self.at(), self.step()
      if tuning == ".pragma": words = self.strings()
      else: words = self.tuned(tuning)
      directives.append(Directive(tuning[1:], tuple(words), where))
    if self.skip(";"): body = None
    elif self.text == "{": body = self.block()
    else: self.fail("'{', ';' or a directive of a function")
    return Function(kind, name, results, params, tuple(directives), body, linkage, attributes, at)

  def strings(self) -> list[str]:
    """What `.pragma` has, to its semicolon."""
    words = list[str]()
    while self.kind == "string" or self.text == ",": words.append(self.step())
    self.need(";")
    return words

  def tuned(self, name: str) -> list[str]:
    """The numbers of a function's directive, in decimals, with their commas."""
    words = list[str]()
    for k in range(_TUNING[name]):
      if k and not self.skip(","): break
      if k: words.append(",")
      least = 0 if name in _ZERO else 1
      words.append(str(self.between(least, _WORD, f"a number from {least} to {_WORD} for {name}")))
    return words

  def parameters(self) -> tuple[Variable, ...]:
    self.need("(")
    found: list[Variable] = []
    while not self.skip(")"):
      if self.text not in {".param", ".reg"}: self.fail(".param or .reg")
      found += self.variables("", (), several=False)
      if self.text != ")": self.need(",", "',' or ')'")
    return tuple(found)

  def block(self) -> tuple[Statement, ...]:
    self.need("{")
    out: list[Statement] = []
    while not self.skip("}"): self.statement(out)
    return tuple(out)

  # ---- variables

  def variables(self, linkage: str, attributes: tuple[str, ...], several: bool = True) -> list[Variable]:
    """One declaration, which may declare several variables, but not in a list of parameters."""
    space = self.step()[1:]
    if space == "const" and self.text == "[":  # the banks of PTX 2
      self.step(); self.number("a bank's number"); self.need("]")
    align, vector, type_, pointer = 0, 1, "", None
    while self.kind == "dot":
      text = self.step()
      if text == ".align": align = self.alignment()
      elif text in {".v2", ".v4", ".v8"}: vector = int(text[2:])
      elif text in TYPES: type_ = text[1:]
      elif text == ".ptr":
        of = self.step()[1:] if self.text in {".global", ".shared", ".local", ".const"} else ""
        pointer = (of, self.alignment() if self.skip(".align") else 0)
      elif text == ".attribute":
        self.go(self.i - 1)
        attributes += self.attributes()
      else: self.fail("a type, .align or .v2, .v4", self.i - 1)
    if space == "tex": type_ = type_ or "u32"
    if not type_: self.fail("a type")
    out: list[Variable] = []
    while True:
      at = self.at()
      name = self.name("a variable's name")
      count, initializer = 0, None
      dims: list[int] = []
      if self.skip("<"):
        count = self.number("how many registers")
        self.need(">")
      while self.skip("["):
        dims.append(0 if self.text == "]" else self.constant().value)
        self.need("]")
      if self.skip("="): initializer = self.initializer()
      out.append(Variable(space, type_, name, vector, align, tuple(dims), count, initializer, linkage, pointer,
                          attributes, at))
      if not several or self.text != ",": return out
      self.step()

  def initializer(self) -> Initializer:
    if self.skip("{"):
      out = []
      while not self.skip("}"):
        out.append(self.initializer())
        if self.text != "}": self.need(",", "',' or '}'")
      return tuple(out)
    if self.kind == "name" and self.text != "WARP_SZ":
      name = self.step()
      if self.skip("="):  # of a .texref, .samplerref or .surfref
        if self.kind not in {"name", "int"}: self.fail("a value's name or a number")
        return Member(name, self.step())
      if name == "generic":
        self.need("(")
        name = self.name("a variable")
        self.need(")")
        return Sum(name, self.offset(), "generic")
      return Sum(name, self.offset())
    if self.kind == "int" and self.peek() == "(":
      mask = self.step()
      self.need("(")
      function = mask
      name = self.name("a variable")
      if name == "generic":
        self.need("(")
        name = self.name("a variable")
        self.need(")")
        function += " generic"
      offset = self.offset()
      self.need(")")
      return Sum(name, offset, function)
    if self.kind == "float" or self.text == "-" and self.peek_kind() == "float": return self.float_constant()
    return self.constant()

  def float_constant(self) -> Float:
    minus = self.skip("-")
    bits, width = float_bits(self.step())
    return Float(bits ^ (minus << width - 1), width)

  def offset(self) -> int:
    """`+4`, `-4`, `+-4` behind an address: an expression with a sign in front; 0 for none."""
    return _number(self.constant().value, False).value if self.text in {"+", "-"} else 0

  def constant(self) -> Int:
    """The value of a constant expression of integers."""
    value = self.binary(0)
    if not self.skip("?"): return value
    yes = self.constant()
    self.need(":")
    no = self.constant()
    return yes if value.value else no

  def binary(self, least: int) -> Int:
    """An expression of operators that bind at least so closely."""
    value = self.unary()
    while (found := _BINARY.get(self.text, _NONE))[0] >= least:
      name, at = self.step(), self.i
      right = self.binary(found[0] + 1)
      if name in {"/", "%"} and not right.value: self.fail("a divisor other than 0", at)
      value = found[1](value, right)
    return value

  def unary(self) -> Int:
    if self.skip("-"):
      value = self.unary()
      return _number(-value.value, value.unsigned)
    if self.skip("+"): return self.unary()
    if self.skip("~"): return _number(~self.unary().value, True)
    if self.skip("!"): return Int(int(not self.unary().value))
    if self.skip("("):
      if self.text in {".s64", ".u64"}:  # a cast
        unsigned = self.step() == ".u64"
        self.need(")")
        return _number(self.unary().value, unsigned)
      value = self.constant()
      self.need(")")
      return value
    if self.skip("WARP_SZ"): return Int(32)
    return self.literal("an integer")

  # ---- statements

  def statement(self, out: list[Statement]) -> None:
    text, kind = self.text, self.kind
    if kind == "name":
      if self.peek() == ":": return self.labelled(out)
      out.append(self.instruction(None))
    elif text == "@": out.append(self.instruction(self.predicate()))
    elif text == "{": out.append(Block(self.block()))
    elif kind == "dot":
      if text in SPACES or text in LINKAGES:
        linkage = self.step()[1:] if text in LINKAGES else ""
        out += self.variables(linkage, ())
        self.need(";", "';' behind a variable")
      else: out.append(self.directive())
    elif not self.skip(";"): self.fail("an instruction, a declaration, a label or '}'")

  def labelled(self, out: list[Statement]) -> None:
    at, label = self.at(), self.step()
    self.step()
    kind = self.text
    if kind in {".branchtargets", ".calltargets"}:
      self.step()
      names = [self.name("a label")]
      while self.skip(","): names.append(self.name("a label"))
      self.need(";")
      out.append(Targets(kind[1:], label, tuple(names), at))
    elif kind == ".callprototype":
      self.step()
      results = self.parameters() if self.text == "(" else ()
      self.need("_", "'_' for the function's name")
      params = self.parameters() if self.text == "(" else ()
      flags = []
      while self.text != ";":
        if self.kind == "end": self.fail("';'")
        flags.append(self.step())
      self.need(";")
      out.append(Prototype(label, results, params, tuple(flags), at))
    else: out.append(Label(label, at))

  def predicate(self) -> Predicate:
    self.need("@")
    negated = self.skip("!")
    return Predicate(self.name("a predicate register"), negated)

  def instruction(self, predicate: Predicate | None) -> Instruction:
    start = self.i
    opcode = self.name("an instruction")
    modifiers: list[str] = []
    while self.kind == "dot": modifiers.append(self.step()[1:])
    operands: list[Operand] = []
    if self.text != ";":
      operands.append(self.operand())
      while self.text != ";":
        self.need(",", f"',' or ';' behind an operand of {'.'.join((opcode, *modifiers))}")
        operands.append(self.operand())
    self.need(";")
    return Instruction(opcode, tuple(modifiers), tuple(operands), predicate, self.at(start))

  def operand(self) -> Operand:
    first = self.simple()
    if self.skip("|"): return Pair(first, self.simple())
    return first

  def simple(self) -> Operand:
    text, kind = self.text, self.kind
    if kind == "name":
      if text == "WARP_SZ": return self.constant()
      name = self.step()
      while self.kind == "dot" and self.adjoins():
        if _PART.fullmatch(self.text): return OperandPart(Name(name), self.step()[1:])
        name += self.step()
      if self.text in {"+", "-"}: return Sum(name, self.offset())
      if self.text == "[" and self.adjoins():  # an element of an array
        self.step()
        index = self.constant().value
        self.need("]")
        return Sum(name, index, "element")
      known = self.names.get(name)
      if known is None: known = self.names[name] = Name(name)
      return known
    if kind == "float" or text == "-" and self.peek_kind() == "float": return self.float_constant()
    if kind == "int" or text in {"~", "("} and self.is_constant(): return self.constant()
    if text == "-":
      if self.peek_kind() == "name":
        self.step()
        return Minus(self.simple())
      return self.constant()
    if text == "!":
      self.step()
      return Not(self.simple())
    if text == "{": return Vector(self.list("{", "}"))
    if text == "(": return Arguments(self.list("(", ")"))
    if text == "[": return self.address()
    self.fail("an operand")

  def is_constant(self) -> bool:
    """Whether '(' begins a constant expression, not a list of arguments."""
    if self.text == "~": return True
    return self.peek_kind() == "int" and self.peek(2) not in {",", ")"}

  def list(self, start: str, end: str) -> tuple[Operand, ...]:
    self.need(start)
    out = []
    while not self.skip(end):
      out.append(self.operand())
      if self.text != end: self.need(",", f"',' or {end!r}")
    return tuple(out)

  def address(self) -> Address:
    self.need("[")
    base, offset = self.simple(), 0
    if isinstance(base, Sum) and base.function == "element":  # ptxas: a syntax error
      self.fail("']': an element's address is written without brackets, or as array+bytes")
    if isinstance(base, Sum) and not base.function: offset, base = base.offset, Name(base.name)
    more = []
    while self.skip(","): more.append(self.operand())
    self.need("]", "']' or ','")
    return Address(base, offset, tuple(more))
