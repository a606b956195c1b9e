"""Reads PTX: a recursive descent over the tokens. Errors say line, column, and what was expected there."""
from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate
from typing import Final, NoReturn

from tinyhw.isa.ptx.lexer import PtxSyntaxError, Token, Tokens, float_bits, integer
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
  Pair,
  Part,
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
_ENDS: Final = {",", ";", "]", "}", ")"}  # behind a constant that is one number
_LINES: Final = {".file", ".loc"}  # directives that end with their line, not with a semicolon
_TUNING: Final = {".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm", ".maxnreg", ".noreturn", ".explicitcluster",
                  ".reqnctapercluster", ".maxclusterrank", ".blocksareclusters", ".abi_preserve",
                  ".abi_preserve_control", ".pragma", ".unified"}
_BINARY: Final[list[dict[str, Callable[[int, int], int]]]] = [
  {"||": lambda a, b: int(bool(a or b))}, {"&&": lambda a, b: int(bool(a and b))}, {"|": lambda a, b: a | b},
  {"^": lambda a, b: a ^ b}, {"&": lambda a, b: a & b},
  {"==": lambda a, b: int(a == b), "!=": lambda a, b: int(a != b)},
  {"<": lambda a, b: int(a < b), "<=": lambda a, b: int(a <= b), ">": lambda a, b: int(a > b),
   ">=": lambda a, b: int(a >= b)},
  {"<<": lambda a, b: a << (b & 63), ">>": lambda a, b: a >> (b & 63)},
  {"+": lambda a, b: a + b, "-": lambda a, b: a - b},
  {"*": lambda a, b: a * b, "/": lambda a, b: int(a / b) if b else 0, "%": lambda a, b: a - int(a / b) * b if b else 0}]


def parse(source: str | bytes) -> Module:
  """A PTX module out of its text. Raises PtxSyntaxError (a DecodeError)."""
  if isinstance(source, bytes):
    try: source = source.rstrip(b"\0").decode()
    except UnicodeDecodeError as error:
      raise PtxSyntaxError(f"byte {source[error.start]:#x}", "text in UTF-8", (1, error.start + 1)) from None
  parser = _Parser(source)
  try: return parser.module()
  except RecursionError: parser.fail("fewer nested braces and brackets")


class _Parser:
  def __init__(self, source: str) -> None:
    self.tokens = Tokens(source)
    self.i = 0
    self.now: Token = self.tokens[0]
    self.lines = [0, *accumulate(len(line) + 1 for line in source.split("\n"))]

  # ---- tokens

  def at(self, token: Token | None = None) -> At:
    start = (token or self.now).start
    line = bisect_right(self.lines, start)
    return line, start - self.lines[line - 1] + 1

  def fail(self, expected: str, token: Token | None = None, hint: str | None = None) -> NoReturn:
    t = token or self.now
    raise PtxSyntaxError("the end of the text" if t.kind == "end" else repr(t.text), expected, self.at(t), hint=hint)

  def step(self) -> Token:
    token = self.now
    self.i += 1
    self.now = self.tokens[min(self.i, len(self.tokens) - 1)]
    return token

  def skip(self, text: str) -> bool:
    """Take the token, if it is this one."""
    if self.now.text != text or self.now.kind == "string": return False
    self.step()
    return True

  def need(self, text: str, what: str = "") -> Token:
    if self.now.text != text or self.now.kind == "string": self.fail(what or repr(text))
    return self.step()

  def name(self, what: str) -> str:
    if self.now.kind != "name": self.fail(what)
    return self.step().text

  def peek(self, n: int = 1) -> Token: return self.tokens[min(self.i + n, len(self.tokens) - 1)]

  # ---- the module

  def module(self) -> Module:
    self.need(".version", ".version as the first directive")
    version = self.version()
    self.need(".target", ".target behind .version")
    target = [self.name("a target such as sm_80")]
    while self.skip(","): target.append(self.name("a target's option"))
    size = 32
    if self.skip(".address_size"): size = self.number("32 or 64")
    if size not in {32, 64}: self.fail("an address size of 32 or 64", self.tokens[self.i - 1])
    items: list[Item] = []
    while self.now.kind != "end": items.append(self.item())
    return Module(version, tuple(target), size, tuple(items))

  def version(self) -> tuple[int, int]:
    token = self.now
    major, _, minor = token.text.partition(".")
    if token.kind != "float" or not (major.isdigit() and minor.isdigit()): self.fail("a version such as 9.0")
    self.step()
    return int(major), int(minor)

  def number(self, what: str) -> int:
    if self.now.kind != "int": self.fail(what)
    return integer(self.step().text)

  def item(self) -> Item:
    text = self.now.text
    if text in {".file", ".pragma", ".alias"} or text == ".loc": return self.directive()
    if text == ".section": return self.section()
    start = self.now
    linkage, attributes = "", tuple[str, ...]()
    while self.now.text in LINKAGES or self.now.text == ".attribute":
      if self.now.text == ".attribute": attributes += self.attributes()
      else: linkage = self.step().text[1:]
    if self.now.text in {".entry", ".func"}: return self.function(linkage, start, attributes)
    if self.now.text in SPACES:
      variables = self.variables(linkage, attributes)
      self.need(";", "';' behind a variable")
      if len(variables) != 1: self.fail("one variable in a declaration", start)
      return variables[0]
    self.fail("a directive of a module (.entry, .func, .global, ...)")

  def attributes(self) -> tuple[str, ...]:
    self.need(".attribute")
    self.need("(")
    words = []
    depth = 1
    while depth:
      if self.now.kind == "end": self.fail("')'")
      token = self.step()
      depth += (token.text == "(") - (token.text == ")")
      if depth: words.append(token.text)
    return (" ".join(words),)

  def directive(self) -> Directive:
    start = self.step()
    words: list[str] = []
    if start.text in _LINES:
      line = self.at(start)[0]
      while self.now.kind != "end" and self.at()[0] == line: words.append(self.step().text)
    else:
      while not self.skip(";"):
        if self.now.kind == "end": self.fail(f"';' behind {start.text}")
        words.append(self.step().text)
    return Directive(start.text[1:], tuple(words), self.at(start))

  def section(self) -> Section:
    self.step()
    if self.now.kind not in {"dot", "name"}: self.fail("a section's name")
    name = self.step().text
    self.need("{")
    words = []
    while not self.skip("}"):
      if self.now.kind == "end": self.fail("'}' behind a section")
      words.append(self.step().text)
    return Section(name, tuple(words))

  # ---- functions

  def function(self, linkage: str, start: Token, attributes: tuple[str, ...]) -> Function:
    kind = self.step().text[1:]
    while self.now.text == ".attribute": attributes += self.attributes()
    results: tuple[Variable, ...] = ()
    if self.now.text == "(": results = self.parameters()
    at = self.at()
    name = self.name("the function's name")
    params = self.parameters() if self.now.text == "(" else ()
    directives: list[Directive] = []
    while self.now.text in _TUNING:
      token = self.step()
      words: list[str] = []
      while self.now.kind in {"int", "string"} or self.now.text == ",": words.append(self.step().text)
      if token.text == ".pragma": self.need(";")
      directives.append(Directive(token.text[1:], tuple(words), self.at(token)))
    if self.skip(";"): body = None
    elif self.now.text == "{": body = self.block()
    else: self.fail("'{', ';' or a directive of a function")
    return Function(kind, name, results, params, tuple(directives), body, linkage, attributes, at)

  def parameters(self) -> tuple[Variable, ...]:
    self.need("(")
    found: list[Variable] = []
    while not self.skip(")"):
      if self.now.text not in {".param", ".reg"}: self.fail(".param or .reg")
      found += self.variables("", ())
      if self.now.text != ")": self.need(",", "',' or ')'")
    return tuple(found)

  def block(self) -> tuple[Statement, ...]:
    self.need("{")
    out: list[Statement] = []
    while not self.skip("}"): self.statement(out)
    return tuple(out)

  # ---- variables

  def variables(self, linkage: str, attributes: tuple[str, ...]) -> list[Variable]:
    """One declaration, which may declare several registers."""
    space = self.step().text[1:]
    if space == "const" and self.now.text == "[":  # the banks of PTX 2
      self.step(); self.number("a bank's number"); self.need("]")
    align, vector, type_, pointer = 0, 1, "", None
    while self.now.kind == "dot":
      token = self.step()
      if token.text == ".align": align = self.number("an alignment in bytes")
      elif token.text in {".v2", ".v4", ".v8"}: vector = int(token.text[2:])
      elif token.text in TYPES: type_ = token.text[1:]
      elif token.text == ".ptr":
        of = self.step().text[1:] if self.now.text in {".global", ".shared", ".local", ".const"} else ""
        pointer = (of, self.number("an alignment") if self.skip(".align") else 0)
      elif token.text == ".attribute":
        self.i -= 1; self.now = token
        attributes += self.attributes()
      else: self.fail("a type, .align or .v2, .v4", token)
    if space == "tex": type_ = type_ or "u32"
    if not type_: self.fail("a type")
    out: list[Variable] = []
    while True:
      at = self.at()
      name = self.name("a variable's name")
      count, dims, initializer = 0, list[int](), None
      if self.skip("<"):
        count = self.number("how many registers")
        self.need(">")
      while self.skip("["):
        dims.append(0 if self.now.text == "]" else self.constant())
        self.need("]")
      if self.skip("="): initializer = self.initializer()
      out.append(Variable(space, type_, name, vector, align, tuple(dims), count, initializer, linkage, pointer,
                          attributes, at))
      if space == "param" or self.now.text != "," or self.peek().kind != "name": return out
      self.step()

  def initializer(self) -> Initializer:
    if self.skip("{"):
      out = []
      while not self.skip("}"):
        out.append(self.initializer())
        if self.now.text != "}": self.need(",", "',' or '}'")
      return tuple(out)
    if self.now.kind == "name":
      name = self.step().text
      if self.skip("="):  # of a .texref, .samplerref or .surfref
        if self.now.kind not in {"name", "int"}: self.fail("a value's name or a number")
        return Member(name, self.step().text)
      if name == "generic":
        self.need("(")
        name = self.name("a variable")
        self.need(")")
        return Sum(name, self.offset(), "generic")
      return Sum(name, self.offset())
    if self.now.kind == "int" and self.peek().text == "(":
      mask = self.step().text
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
    if self.now.kind == "float" or self.now.text == "-" and self.peek().kind == "float": return self.float_constant()
    return self.integer_constant()

  def float_constant(self) -> Float:
    minus = self.skip("-")
    bits, width = float_bits(self.step().text)
    return Float(bits ^ (minus << width - 1), width)

  def integer_constant(self) -> Int:
    unsigned = self.now.text.endswith("U")
    return Int(self.constant(), unsigned)

  def offset(self) -> int:
    """`+4`, `-4`, `+-4` behind an address; 0 for none."""
    if self.now.text not in {"+", "-"}: return 0
    sign = 1 if self.step().text == "+" else -1
    return sign * self.constant(8)

  def constant(self, level: int = 0) -> int:
    """The value of a constant expression of integers."""
    if self.now.kind == "int" and self.peek().text in _ENDS: return integer(self.step().text)
    if level == 0:
      value = self.binary(0)
      if self.skip("?"):
        yes = self.constant()
        self.need(":")
        no = self.constant()
        return yes if value else no
      return value
    return self.binary(level)

  def binary(self, level: int) -> int:
    if level == len(_BINARY): return self.unary()
    value = self.binary(level + 1)
    while self.now.kind == "op" and self.now.text in _BINARY[level]:
      value = _BINARY[level][self.step().text](value, self.binary(level + 1))
    return value

  def unary(self) -> int:
    if self.skip("-"): return -self.unary()
    if self.skip("+"): return self.unary()
    if self.skip("~"): return ~self.unary()
    if self.skip("!"): return int(not self.unary())
    if self.now.text == "(":
      self.step()
      if self.now.text in {".s64", ".u64"}:  # a cast
        unsigned = self.step().text == ".u64"
        self.need(")")
        value = self.unary()
        return value & (1 << 64) - 1 if unsigned else value
      value = self.constant()
      self.need(")")
      return value
    if self.now.text == "WARP_SZ":
      self.step()
      return 32
    return self.number("an integer")

  # ---- statements

  def statement(self, out: list[Statement]) -> None:
    token = self.now
    text = token.text
    if token.kind == "name":
      if self.peek().text == ":": return self.labelled(out)
      out.append(self.instruction(None))
    elif text == "@": out.append(self.instruction(self.predicate()))
    elif text == "{": out.append(Block(self.block()))
    elif token.kind == "dot":
      if text in SPACES or text in LINKAGES:
        linkage = self.step().text[1:] if text in LINKAGES else ""
        out += self.variables(linkage, ())
        self.need(";", "';' behind a variable")
      else: out.append(self.directive())
    elif not self.skip(";"): self.fail("an instruction, a declaration, a label or '}'")

  def labelled(self, out: list[Statement]) -> None:
    start = self.step()
    self.step()
    at, kind = self.at(start), self.now.text
    if kind in {".branchtargets", ".calltargets"}:
      self.step()
      names = [self.name("a label")]
      while self.skip(","): names.append(self.name("a label"))
      self.need(";")
      out.append(Targets(kind[1:], start.text, tuple(names), at))
    elif kind == ".callprototype":
      self.step()
      results = self.parameters() if self.now.text == "(" else ()
      self.need("_", "'_' for the function's name")
      params = self.parameters() if self.now.text == "(" else ()
      flags = []
      while self.now.text != ";":
        if self.now.kind == "end": self.fail("';'")
        flags.append(self.step().text)
      self.need(";")
      out.append(Prototype(start.text, results, params, tuple(flags), at))
    else: out.append(Label(start.text, at))

  def predicate(self) -> Predicate:
    self.need("@")
    negated = self.skip("!")
    return Predicate(self.name("a predicate register"), negated)

  def instruction(self, predicate: Predicate | None) -> Instruction:
    start = self.now
    opcode = self.name("an instruction")
    modifiers: list[str] = []
    while self.now.kind == "dot": modifiers.append(self.step().text[1:])
    operands: list[Operand] = []
    if self.now.text != ";":
      operands.append(self.operand())
      while self.now.text != ";":
        self.need(",", f"',' or ';' behind an operand of {'.'.join((opcode, *modifiers))}")
        operands.append(self.operand())
    self.need(";")
    return Instruction(opcode, tuple(modifiers), tuple(operands), predicate, self.at(start))

  def operand(self) -> Operand:
    first = self.simple()
    if self.skip("|"): return Pair(first, self.simple())
    return first

  def simple(self) -> Operand:
    token = self.now
    text = token.text
    if token.kind == "name":
      self.step()
      if text == "WARP_SZ": return Int(32)
      name = text
      while self.now.kind == "dot" and self.now.start == self.tokens[self.i - 1].end:
        if _PART.fullmatch(self.now.text): return Part(Name(name), self.step().text[1:])
        name += self.step().text
      if self.now.text in {"+", "-"}: return Sum(name, self.offset())
      if self.now.text == "[" and self.now.start == self.tokens[self.i - 1].end:  # an element of an array
        self.step()
        index = self.constant()
        self.need("]")
        return Sum(name, index, "element")
      return Name(name)
    if token.kind == "float" or text == "-" and self.peek().kind == "float": return self.float_constant()
    if token.kind == "int" or text in {"~", "("} and self.is_constant(): return self.integer_constant()
    if text == "-":
      if self.peek().kind == "name":
        self.step()
        return Minus(self.simple())
      return self.integer_constant()
    if text == "!":
      self.step()
      return Not(self.simple())
    if text == "{": return Vector(self.list("{", "}"))
    if text == "(": return Arguments(self.list("(", ")"))
    if text == "[": return self.address()
    self.fail("an operand")

  def is_constant(self) -> bool:
    """Whether '(' begins a constant expression, not a list of arguments."""
    if self.now.text == "~": return True
    return self.peek().kind == "int" and self.peek(2).text not in {",", ")"}

  def list(self, start: str, end: str) -> tuple[Operand, ...]:
    self.need(start)
    out = []
    while not self.skip(end):
      out.append(self.operand())
      if self.now.text != end: self.need(",", f"',' or {end!r}")
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
