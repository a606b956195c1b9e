"""Small changes of Python functions: one operator, constant, comparison, argument order or call at a time.

A module is parsed, changed at one place and compiled; the code objects that differ replace those of the functions that
live in this process. Nothing is written, and the original code comes back.
"""
from __future__ import annotations

import ast
import copy
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

_BINARY: Final[dict[type[ast.operator], type[ast.operator]]] = {
  ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Add,
  ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift}
COMPARE: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
  ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
  ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is}
_DROPPED: Final = frozenset({"flush", "abs", "rint", "floor", "ceil", "trunc", "clip", "_flushed"})


@dataclass(frozen=True)
class Mutant:
  """One change: where it is, and what. `key` names it without line numbers; `range` is that of the changed expression:
  (line, column) of its start and of its end."""
  module: str
  function: str
  line: int
  source: str
  change: str
  number: int
  range: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0))

  @property
  def key(self) -> tuple[str, str, str, str]: return self.module, self.function, self.source, self.change

  def __str__(self) -> str: return f"{self.module}:{self.line} {self.function}: {self.change}: {self.source}"


class Walker(ast.NodeTransformer):
  """Counts the places to change inside functions; changes the one of number `wanted`."""
  BINARY = _BINARY

  def __init__(self, lines: list[str], wanted: int = -1) -> None:
    self.lines, self.wanted, self.count = lines, wanted, 0
    self.names: list[str] = []
    self.found: list[tuple[str, int, str, str, tuple[tuple[int, int], tuple[int, int]]]] = []

  def here(self, node: Any, change: str) -> bool:
    """Note a place; whether it is the wanted one."""
    if not self.names: return False
    self.count += 1
    place: Any = node.test if isinstance(node, ast.If) else node
    range_ = (place.lineno, place.col_offset), (place.end_lineno, place.end_col_offset)
    self.found.append((".".join(self.names), node.lineno, self.lines[node.lineno - 1].strip(), change, range_))
    return self.count - 1 == self.wanted

  def _function(self, node: Any, name: str) -> Any:
    self.names.append(name)
    if isinstance(node, ast.Lambda): node.body = self.visit(node.body)
    else: node.body = [self.visit(s) for s in node.body]
    self.names.pop()
    return node

  def visit_FunctionDef(self, node: ast.FunctionDef) -> Any: return self._function(node, node.name)

  def visit_Lambda(self, node: ast.Lambda) -> Any: return self._function(node, "<lambda>")

  def visit_Expr(self, node: ast.Expr) -> Any:
    return node if isinstance(node.value, ast.Constant) else self.generic_visit(node)

  def visit_Raise(self, node: ast.Raise) -> Any: return node

  def visit_Assert(self, node: ast.Assert) -> Any: return node

  def visit_BinOp(self, node: ast.BinOp) -> Any:
    other = _BINARY.get(type(node.op))
    if other and self.here(node, f"{type(node.op).__name__} becomes {other.__name__}"): node.op = other()
    if isinstance(node.op, (ast.Sub, ast.LShift, ast.RShift, ast.Div)) and self.here(node, "operands swapped"):
      node.left, node.right = node.right, node.left
    return self.generic_visit(node)

  def visit_Compare(self, node: ast.Compare) -> Any:
    other = COMPARE[type(node.ops[0])]
    if self.here(node, f"{type(node.ops[0]).__name__} becomes {other.__name__}"): node.ops[0] = other()
    return self.generic_visit(node)

  def visit_BoolOp(self, node: ast.BoolOp) -> Any:
    if self.here(node, "and and or swapped"): node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    return self.generic_visit(node)

  def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
    if not isinstance(node.op, ast.UAdd) and self.here(node, f"{type(node.op).__name__} dropped"):
      self.generic_visit(node)
      return node.operand
    return self.generic_visit(node)

  def visit_Constant(self, node: ast.Constant) -> Any:
    v = node.value
    if isinstance(v, bool):
      if self.here(node, f"{v} becomes {not v}"): return ast.copy_location(ast.Constant(not v), node)
    elif isinstance(v, (int, float)) and self.here(node, f"{v} becomes {v + 1}"):
      return ast.copy_location(ast.Constant(v + 1), node)
    return node

  def visit_IfExp(self, node: ast.IfExp) -> Any:
    if self.here(node, "arms swapped"): node.body, node.orelse = node.orelse, node.body
    return self.generic_visit(node)

  def visit_If(self, node: ast.If) -> Any:
    if self.here(node, "condition negated"): node.test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
    return self.generic_visit(node)

  def visit_JoinedStr(self, node: ast.JoinedStr) -> Any: return node

  def visit_Call(self, node: ast.Call) -> Any:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    first = 1 if node.args and isinstance(node.args[0], ast.Name) and node.args[0].id == "o" else 0
    values = [k for k in range(first, len(node.args)) if not isinstance(node.args[k], (ast.Constant, ast.Starred))]
    if name == "where" and len(node.args) == 3: pairs = [(1, 2)]
    else: pairs = list(zip(values, values[1:]))
    for x, y in pairs:
      if ast.dump(node.args[x]) != ast.dump(node.args[y]) and self.here(node, f"{name}: arguments {x} and {y} swapped"):
        node.args[x], node.args[y] = node.args[y], node.args[x]
    if name in _DROPPED and len(node.args) > first and self.here(node, f"{name} dropped"):
      self.generic_visit(node)
      return node.args[first]
    return self.generic_visit(node)


class Source:
  """A module that can be mutated, under a short name."""

  def __init__(self, module: ModuleType, name: str) -> None:
    self.name = name
    self.path = str(module.__file__)
    text = Path(self.path).read_text()
    self.lines = text.split("\n")
    self.tree = ast.parse(text)
    self.original = dict(_paths(compile(self.tree, self.path, "exec")))

  @cached_property
  def live(self) -> dict[tuple[int, ...], list[FunctionType]]:
    """The functions of this process that the module's code objects belong to, by the code's place in the module."""
    shapes = {shape(code): path for path, code in self.original.items()}
    out: dict[tuple[int, ...], list[FunctionType]] = {}
    file = Path(self.path).name
    gc.unfreeze()  # what a host of this process may have frozen is found too
    for f in [o for o in gc.get_objects() if isinstance(o, FunctionType) and o.__code__.co_filename.endswith(file)]:
      if Path(f.__code__.co_filename).resolve() != Path(self.path).resolve(): continue
      path = shapes.get(shape(f.__code__))
      if path is not None: out.setdefault(path, []).append(f)
    return out

  def mutants(self) -> list[Mutant]:
    """All changes of the module's functions."""
    walker = Walker(self.lines)
    walker.visit(copy.deepcopy(self.tree))
    return [Mutant(self.name, *found[:4], k, found[4]) for k, found in enumerate(walker.found)]

  def changed(self, mutant: Mutant) -> list[tuple[FunctionType, CodeType]]:
    """The live functions that a change concerns, with their new code."""
    tree = copy.deepcopy(self.tree)
    Walker(self.lines, mutant.number).visit(tree)
    ast.fix_missing_locations(tree)
    out = []
    for path, code in _paths(compile(tree, self.path, "exec")):
      if path not in self.live or path not in self.original: continue
      if content(code) != content(self.original[path]): out += [(f, code) for f in self.live[path]]
    return out


def _paths(code: CodeType, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], CodeType]]:
  yield path, code
  for k, inner in enumerate(c for c in code.co_consts if isinstance(c, CodeType)): yield from _paths(inner, (*path, k))


def shape(code: CodeType) -> tuple[Any, ...]:
  return code.co_name, code.co_firstlineno, tuple(code.co_positions())


def content(code: CodeType) -> tuple[Any, ...]:
  """What a code object does, nested ones too."""
  constants = tuple(content(c) if isinstance(c, CodeType) else (type(c), repr(c)) for c in code.co_consts)
  return code.co_code, constants, code.co_names


@contextmanager
def planted(changes: list[tuple[FunctionType, CodeType]]) -> Iterator[None]:
  """The functions with other code, for a while."""
  before = [(f, f.__code__) for f, _ in changes]
  try:
    for f, code in changes: f.__code__ = code
    yield
  finally:
    for f, code in before: f.__code__ = code
