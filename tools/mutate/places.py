"""The places of a file that a small change may be made at, for the rooms around the emulator's meanings.

Beyond what `mutants.py` changes: what runs at import (module and class bodies, defaults, decorators), statements that
are dropped, loops' conditions, filters, and strings that decide (they are compared or looked up). docs/mutation.md says
what is left alone.
"""
from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import CodeType
from typing import Any, Final

from tinyhw.tools.mutate.mutants import COMPARE, Mutant, Walker

TEXTS: Final = frozenset({"hint", "help", "epilog", "metavar", "message", "why", "short_help", "__all__", "__slots__"})
TYPES: Final = frozenset({"TypeVar", "NewType", "cast", "ParamSpec", "Literal", "Annotated"})


class RoomWalker(Walker):
  """Counts the places of a whole file; changes the one of number `wanted`. `scopes` has for each place the line and the
  name of the function around it, or None for what runs at import; `statements` the first and last line of the statement
  that it is in (of a compound one: of its head; of a default: the function's body)."""

  def __init__(self, lines: list[str], wanted: int = -1) -> None:
    super().__init__(lines, wanted)
    self.scopes: list[tuple[int, str] | None] = []
    self.statements: list[tuple[int, int]] = []
    self._scope: list[tuple[int, str] | None] = [None]
    self._statement = (0, 0)
    self._deciding: set[int] = set()

  def here(self, node: Any, change: str) -> bool:
    self.names.append("<module>") if not self.names else None
    wanted = super().here(node, change)
    if self.names == ["<module>"]: self.names.pop()
    self.scopes.append(self._scope[-1])
    self.statements.append(self._statement)
    return wanted

  def visit(self, node: ast.AST) -> Any:
    if not isinstance(node, (ast.stmt, ast.ExceptHandler)): return super().visit(node)
    before, body = self._statement, getattr(node, "body", None)
    last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno
    self._statement = node.lineno, last
    out = super().visit(node)
    self._statement = before
    return out

  # ---- scopes

  def _function(self, node: Any, name: str) -> Any:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    if not isinstance(node, ast.Lambda):
      if any(isinstance(d, ast.Name) and d.id == "overload" for d in node.decorator_list): return node
      node.decorator_list = [self.visit(d) for d in node.decorator_list]
    self._scope.append(self._scope[-1])  # defaults run with the definition
    self.names.append(name)
    before = self._statement  # who runs the body uses the defaults
    if not isinstance(node, ast.Lambda): self._statement = node.body[0].lineno, node.body[-1].end_lineno
    node.args.defaults = [self.visit(d) for d in node.args.defaults]
    node.args.kw_defaults = [d and self.visit(d) for d in node.args.kw_defaults]
    self._statement = before
    self.names.pop()
    self._scope[-1] = (first, name)
    out = super()._function(node, name)
    self._scope.pop()
    return out

  def visit_ClassDef(self, node: ast.ClassDef) -> Any:
    node.decorator_list = [self.visit(d) for d in node.decorator_list]
    self.names.append(node.name)
    node.keywords = [self.visit(k) for k in node.keywords]
    node.body = [self.visit(s) for s in node.body]
    self.names.pop()
    return node

  # ---- statements

  def _dropped(self, node: Any) -> bool:
    return self.here(node, "statement dropped")

  def visit_Expr(self, node: ast.Expr) -> Any:
    if isinstance(node.value, ast.Constant): return node
    if isinstance(node.value, ast.Call) and self._dropped(node): return ast.copy_location(ast.Pass(), node)
    return self.generic_visit(node)

  def visit_Raise(self, node: ast.Raise) -> Any:
    return ast.copy_location(ast.Pass(), node) if self._dropped(node) else node

  def visit_Continue(self, node: ast.Continue) -> Any:
    return ast.copy_location(ast.Pass(), node) if self._dropped(node) else node

  def visit_Break(self, node: ast.Break) -> Any:
    return ast.copy_location(ast.Pass(), node) if self._dropped(node) else node

  def visit_Delete(self, node: ast.Delete) -> Any:
    return ast.copy_location(ast.Pass(), node) if self._dropped(node) else node

  def visit_Assign(self, node: ast.Assign) -> Any:
    if isinstance(node.targets[0], ast.Name) and node.targets[0].id in TEXTS: return node
    if all(isinstance(t, (ast.Attribute, ast.Subscript)) for t in node.targets) and self._dropped(node):
      return ast.copy_location(ast.Pass(), node)
    return self.generic_visit(node)

  def visit_AugAssign(self, node: ast.AugAssign) -> Any:
    if self._dropped(node): return ast.copy_location(ast.Pass(), node)
    other = self.BINARY.get(type(node.op))
    if other and self.here(node, f"{type(node.op).__name__} becomes {other.__name__}"): node.op = other()
    return self.generic_visit(node)

  def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
    if node.value is not None: node.value = self.visit(node.value)
    return node

  def visit_If(self, node: ast.If) -> Any:
    if ast.unparse(node.test) in {"TYPE_CHECKING", "__name__ == '__main__'"}: return node
    return super().visit_If(node)

  def visit_While(self, node: ast.While) -> Any:
    if not isinstance(node.test, ast.Constant) and self.here(node, "condition negated"):
      node.test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
    return self.generic_visit(node)

  # ---- expressions

  def visit_comprehension(self, node: ast.comprehension) -> Any:
    for k, test in enumerate(node.ifs):
      if self.here(test, "filter negated"): node.ifs[k] = ast.copy_location(ast.UnaryOp(ast.Not(), test), test)
    return self.generic_visit(node)

  def visit_Compare(self, node: ast.Compare) -> Any:
    for x in (node.left, *node.comparators): self._decides(x)
    for k, operator in enumerate(node.ops):
      other = COMPARE[type(operator)]
      if self.here(node, f"{type(operator).__name__} becomes {other.__name__}"): node.ops[k] = other()
    return ast.NodeTransformer.generic_visit(self, node)

  def _decides(self, node: Any) -> None:
    if isinstance(node, ast.Constant): self._deciding.add(id(node))
    elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
      for x in node.elts: self._decides(x)

  def visit_Subscript(self, node: ast.Subscript) -> Any:
    if isinstance(node.value, ast.Name) and node.value.id in TYPES: return node
    self._decides(node.slice)
    return self.generic_visit(node)

  def visit_Dict(self, node: ast.Dict) -> Any:
    for x in node.keys: self._decides(x)
    return self.generic_visit(node)

  def visit_MatchValue(self, node: ast.MatchValue) -> Any:
    self._decides(node.value)
    return self.generic_visit(node)

  def visit_Constant(self, node: ast.Constant) -> Any:
    if isinstance(node.value, str):
      if id(node) in self._deciding and self.here(node, f"{node.value!r} becomes {node.value + '!'!r}"):
        return ast.copy_location(ast.Constant(node.value + "!"), node)
      return node
    return super().visit_Constant(node)

  def visit_BinOp(self, node: ast.BinOp) -> Any:
    if isinstance(node.op, ast.BitOr) and any(_a_type(x) for x in (node.left, node.right)): return node
    return super().visit_BinOp(node)

  def visit_keyword(self, node: ast.keyword) -> Any:
    return node if node.arg in TEXTS else self.generic_visit(node)

  def visit_Call(self, node: ast.Call) -> Any:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in TYPES: return node
    if name in {"isinstance", "issubclass"} and len(node.args) == 2:
      node.args[0] = self.visit(node.args[0])
      return node
    return super().visit_Call(node)


def _a_type(node: ast.expr) -> bool:
  """Whether an operand of | is a type."""
  if isinstance(node, ast.Constant): return node.value is None
  if isinstance(node, ast.Subscript): return _a_type(node.value) and isinstance(node.value, ast.Name)
  return isinstance(node, ast.Name) and node.id in vars(builtins) and isinstance(getattr(builtins, node.id), type)


@dataclass(frozen=True)
class Place:
  """A change and where it stands: the (line, name) of the function around it, the lines of its statement; `order` tells
  changes apart that read the same."""
  file: File
  mutant: Mutant
  function: tuple[int, str] | None
  statement: tuple[int, int]
  order: int

  @property
  def name(self) -> str:
    """A name of the change that outlives changes elsewhere in the file."""
    return "|".join((*self.mutant.key, str(self.order)))

  @property
  def lines(self) -> range:
    (start, _), (end, _) = self.mutant.range
    return range(start, end + 1)


class File:
  """A source file that can be changed, under the name of its module."""

  def __init__(self, path: Path, module: str) -> None:
    self.path, self.module = path, module
    self.name = module.removeprefix("tinyhw.")
    self.text = path.read_text()
    self.lines = self.text.split("\n")

  @cached_property
  def places(self) -> list[Place]:
    """All changes, in order."""
    walker = RoomWalker(self.lines)
    walker.visit(ast.parse(self.text))
    seen: dict[tuple[str, str, str, str], int] = {}
    out = []
    for k, (found, scope, lines) in enumerate(zip(walker.found, walker.scopes, walker.statements, strict=True)):
      mutant = Mutant(self.name, *found[:4], k, found[4])
      seen[mutant.key] = seen.get(mutant.key, -1) + 1
      out.append(Place(self, mutant, scope, lines, seen[mutant.key]))
    return out

  def code(self, number: int = -1) -> CodeType:
    """The module's code with the change of a number, or as it is."""
    tree = ast.parse(self.text)
    if number >= 0: RoomWalker(self.lines, number).visit(tree)
    return compile(ast.fix_missing_locations(tree), str(self.path), "exec", dont_inherit=True)


Key = tuple[tuple[str, int, int], ...]


def functions(code: CodeType, path: Key = ()) -> Iterator[tuple[Key, CodeType]]:
  """The code objects inside a module's, by name and line and, where these are the same, order: a dropped statement
  renames nothing behind it."""
  seen: dict[tuple[str, int], int] = {}
  for inner in (c for c in code.co_consts if isinstance(c, CodeType)):
    name = inner.co_name, inner.co_firstlineno
    seen[name] = seen.get(name, -1) + 1
    here = (*path, (*name, seen[name]))
    yield here, inner
    yield from functions(inner, here)
