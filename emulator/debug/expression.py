"""Expressions over a wave's state, for conditions, watches and print: "v3.f32 > 1.5 and s4 == 0x10".

Names: registers (s4, v3, a3, vcc, exec, m0, scc, mode, pc), wave, workgroup (its number), lane (the numbers of the
lanes), symbols of the code and names of buffers (their addresses), variables of the source where debug information says
simply where they are, memory as u32(address), f32(address) and so on,
lds.u32(offset). A vector register is an array over the lanes; v3[5] is lane 5. `.f32`, `.i32`, `.f16` (the low half)
and `.u64` (the pair) say how to read it.
"""
from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from keyword import kwlist
from typing import Any, Final

import numpy as np

from tinyhw.core.errors import InvalidArgument
from tinyhw.core.memory import Access, AddressSpace
from tinyhw.core.source import Variable
from tinyhw.emulator.debug.code import Code
from tinyhw.emulator.debug.wave import TYPES, Wave
from tinyhw.emulator.values.ops import Array

BINARY: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
  ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
  ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
  ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift}
COMPARE: Final[dict[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
  ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
  ast.GtE: operator.ge}

_NAME: Final = "_name_"
_KEYWORDS: Final = re.compile(rf"\b({'|'.join(k for k in kwlist if k not in {'and', 'or', 'not', 'True', 'False'})})\b")
Value = int | float | Array  # a number, or one of each lane


@dataclass
class Register:
  """A register that has not been read as a type yet."""
  name: str
  words: Any  # u32 [lanes], or [1] of a scalar one
  high: Any  # the register after it, or None

  def typed(self, kind: str) -> Value:
    """The values as a type: float64 and int64 arrays, or a number of a scalar register."""
    dtype = np.dtype(TYPES[kind])
    if dtype.itemsize == 8:
      if self.high is None: raise InvalidArgument(f"{self.name} starts no pair of registers")
      raw = self.words.astype(np.uint64) | self.high.astype(np.uint64) << np.uint64(32)
      x = raw.view(dtype)
    else: x = self.words.astype(np.dtype(f"u{dtype.itemsize}")).view(dtype)
    if len(x) == 1: return x[0].item()
    if dtype.kind == "f": return x.astype(np.float64)
    return x if dtype == np.uint64 else x.astype(np.int64)

  def plain(self) -> Value:
    """The value where nothing says how to read it."""
    return self.typed("u32")


_PERCENT: Final = re.compile(r"(?a)(?<![\w)\]])(?<![\w)\]] )%([A-Za-z_$][\w$]*(?:\.[xyzw]\b)?)")
MARK: Final = "_p_"  # how expressions write the % of a register's name of PTX


def marked(text: str) -> str:
  """An expression with registers of PTX as Python has names: "%r1 > 3" is "_p_r1 > 3"."""
  return _PERCENT.sub(lambda m: MARK + m[1].replace(".", "__"), text)


class Expression:
  """A parsed expression. Raises InvalidArgument for what it cannot mean, when parsed or when evaluated."""

  def __init__(self, text: str) -> None:
    self.text = text.strip()
    text = _KEYWORDS.sub(rf"{_NAME}\g<0>", marked(self.text))  # names in other languages
    try: self._tree = ast.parse(text.replace("&&", " and ").replace("||", " or "), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
      raise InvalidArgument(f"{text!r} is no expression", hint='for example "v3.f32 > 1.5 and s4 == 0x10"') from None
    names = {n.func.id if isinstance(n.func, ast.Name) else "lds" for n in ast.walk(self._tree)
             if isinstance(n, ast.Call)}
    self.reads_memory = bool(names)  # other waves can change its value
    self.names = {n.id.removeprefix(_NAME) for n in ast.walk(self._tree) if isinstance(n, ast.Name)}

  def value(self, wave: Wave, code: Code) -> Value:
    """A number, or an array over the lanes."""
    try:
      with np.errstate(all="ignore"): return plain(_Evaluation(wave, code).visit(self._tree))
    except (ZeroDivisionError, OverflowError, TypeError, ValueError, RecursionError) as error:
      if isinstance(error, InvalidArgument): raise
      raise InvalidArgument(f"cannot be computed: {error}", where=self.text) from None

  def true(self, wave: Wave, code: Code, lane: int | None = None) -> bool:
    """Whether it holds; of an array over the lanes, whether it holds in an active lane (of PTX in the one given)."""
    value = self.value(wave, code)
    if isinstance(value, np.ndarray) and lane is not None and wave.by_lane: return bool(value[lane])
    if isinstance(value, np.ndarray): return bool((value.astype(bool) & wave.active()).any())
    return bool(value)


def plain(value: Value | Register) -> Value:
  """A register as its value, everything else as it is."""
  return value.plain() if isinstance(value, Register) else value


class _Evaluation:
  def __init__(self, wave: Wave, code: Code) -> None:
    self.wave, self.code = wave, code

  def visit(self, node: ast.expr) -> Value | Register:
    method = getattr(self, f"visit_{type(node).__name__}", None)
    if method is None: raise InvalidArgument(f"{ast.unparse(node)!r} is not part of the language of expressions")
    return method(node)

  def number(self, node: ast.expr) -> Value: return plain(self.visit(node))

  def visit_Constant(self, node: ast.Constant) -> Value:
    if not isinstance(node.value, (int, float)): raise InvalidArgument(f"{node.value!r} is no number")
    return node.value

  def visit_Name(self, node: ast.Name) -> Value | Register:
    node = ast.Name(node.id.removeprefix(_NAME))
    found = self.wave.named(node.id)
    return self.other(node.id) if found is None else found

  def other(self, name: str) -> Value | Register:
    """A name that no register has: a symbol, a buffer, a variable."""
    wave = self.wave
    named = {**self.code.symbols, **self.code.data}
    if name in named: return named[name]
    variables = {v.name: v for v in self.code.variables(wave.pc)}
    if name in variables: return self.variable(variables[name])
    known = ", ".join(dict.fromkeys(n for n in (*named, *variables) if n.isidentifier()))
    shown = name.replace(MARK, "%", 1).replace("__", ".") if name.startswith(MARK) else name
    raise InvalidArgument(f"nothing is called {shown!r}",
                          hint=f"there are registers ({wave.examples}) and {known}") from None

  def variable(self, v: Variable) -> Value:
    """A variable's value, in the types that are computed with."""
    x = self.wave.value(v)
    if not isinstance(x, np.ndarray) or x.dtype == np.uint64: return x
    return x.astype(np.float64 if x.dtype.kind == "f" else np.int64)

  def visit_Attribute(self, node: ast.Attribute) -> Value:
    if node.attr not in TYPES: raise InvalidArgument(f"no type is called {node.attr!r}", hint=", ".join(TYPES))
    x = self.visit(node.value)
    if not isinstance(x, Register): raise InvalidArgument(f"{ast.unparse(node.value)} is no register")
    return x.typed(node.attr)

  def visit_Subscript(self, node: ast.Subscript) -> Value | Register:
    if isinstance(node.slice, ast.Slice):  # s[4:5]
      first = node.slice.lower
      if not isinstance(node.value, ast.Name) or not isinstance(first, ast.Constant):
        raise InvalidArgument(f"{ast.unparse(node)!r} is no group of registers")
      return self.visit(ast.Attribute(ast.Name(f"{node.value.id}{first.value!r}"), "u64"))
    if isinstance(node.value, ast.Name) and node.value.id in {"s", "v", "a"} and isinstance(node.slice, ast.Constant):
      return self.visit(ast.Name(f"{node.value.id}{node.slice.value!r}"))
    x, lane = self.visit(node.value), self.number(node.slice)
    if not isinstance(lane, int) or not 0 <= lane < self.wave.engine.lanes: raise InvalidArgument(f"no lane {lane}")
    if isinstance(x, Register):
      if len(x.words) == 1: raise InvalidArgument(f"{x.name} has no lanes")
      return replace(x, words=x.words[lane:lane + 1], high=None if x.high is None else x.high[lane:lane + 1])
    if not isinstance(x, np.ndarray): raise InvalidArgument(f"{ast.unparse(node.value)} has no lanes")
    return x[lane].item()

  def visit_Call(self, node: ast.Call) -> Value:
    if len(node.args) != 1 or node.keywords: raise InvalidArgument(f"{ast.unparse(node)!r}: one address is needed")
    at = self.number(node.args[0])
    if isinstance(at, np.ndarray) and at.ndim == 1 and (on := at[self.wave.active()]).size and (on == on[0]).all():
      at = on[0].item()  # the same in every active lane: a pointer that is a parameter, say
    if not isinstance(at, int): raise InvalidArgument(f"{ast.unparse(node.args[0])} is no address")
    f = node.func
    if isinstance(f, ast.Name) and f.id in TYPES: return read(self.wave.engine.space, at, f.id)
    memory = f.value.id if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name) else ""
    if isinstance(f, ast.Attribute) and memory in {"lds", "shared"} and f.attr in TYPES:
      size, lds = np.dtype(TYPES[f.attr]).itemsize, self.wave.lds()
      if not 0 <= at <= len(lds) - size: raise InvalidArgument(f"LDS has {len(lds)} bytes, not {at:#x}")
      return np.frombuffer(lds[at:at + size].tobytes(), TYPES[f.attr])[0].item()
    raise InvalidArgument(f"{ast.unparse(f)!r} reads nothing", hint=f"there are {', '.join(TYPES)} and lds.u32")

  def visit_UnaryOp(self, node: ast.UnaryOp) -> Value:
    x: Any = self.number(node.operand)
    if isinstance(node.op, ast.Not): return np.logical_not(x) if isinstance(x, np.ndarray) else not x
    return -x if isinstance(node.op, ast.USub) else ~x if isinstance(node.op, ast.Invert) else x

  def visit_BinOp(self, node: ast.BinOp) -> Value:
    function = BINARY.get(type(node.op))
    if function is None: raise InvalidArgument(f"{ast.unparse(node)!r} is not part of the language of expressions")
    a, b = self.number(node.left), self.number(node.right)
    if function is operator.lshift and not 0 <= np.max(b) < 64: raise InvalidArgument(f"a shift by {b}")
    return function(a, b)

  def visit_Compare(self, node: ast.Compare) -> Value:
    out: Any = True
    left = self.number(node.left)
    for op, right_node in zip(node.ops, node.comparators):
      if type(op) not in COMPARE: raise InvalidArgument(f"{ast.unparse(node)!r} compares in no known way")
      right = self.number(right_node)
      one = COMPARE[type(op)](left, right)
      out = np.logical_and(out, one) if isinstance(one, np.ndarray) or isinstance(out, np.ndarray) else out and one
      left = right
    return out

  def visit_BoolOp(self, node: ast.BoolOp) -> Value:
    both = isinstance(node.op, ast.And)
    values = [self.number(v) for v in node.values]
    if any(isinstance(v, np.ndarray) for v in values):
      return (np.logical_and if both else np.logical_or).reduce(np.broadcast_arrays(*values))
    return all(values) if both else any(values)


def read(space: AddressSpace, address: int, kind: str) -> int | float:
  """A value of a type out of memory. Raises PageFault where nothing is mapped."""
  dtype = np.dtype(TYPES[kind])
  value: int | float = np.frombuffer(space.read(address, dtype.itemsize, Access.READ), dtype)[0].item()
  return value
