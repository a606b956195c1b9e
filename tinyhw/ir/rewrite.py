"""Patterns over UOps, tables of rewrite rules, and the engine that applies them to a graph until nothing changes."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tinyhw.core.lazy import cached_property
from tinyhw.ir import stages
from tinyhw.ir.dtype import DType
from tinyhw.ir.uop import GroupOp, Ops, UOp

Rule = Callable[..., "UOp | None"]


class UPat:
  """A pattern for a UOp and its sources.

  `op`: one Ops, several, or None for any. `src`: patterns for all sources in order (both orders are tried where the
  operation commutes), or None for any. `dtype`: what the type must satisfy. `arg`: what the arg must equal. `name`: the
  keyword under which the node is handed to the rule; one name twice must be one node.
  """
  __slots__ = ("ops", "src", "dtype", "arg", "name")

  def __init__(self, op: Ops | Iterable[Ops] | None = None, name: str | None = None,
               src: tuple[UPat, ...] | None = None, dtype: Callable[[DType], bool] | None = None,
               arg: Any = None) -> None:
    self.ops = frozenset({op} if isinstance(op, Ops) else op) if op is not None else None
    self.name, self.src, self.dtype, self.arg = name, src, dtype, arg

  @staticmethod
  def var(name: str) -> UPat:
    """Any node, under a name."""
    return UPat(None, name)

  @staticmethod
  def const(name: str | None = None, value: Any = None) -> UPat:
    """A constant, of a given number or any."""
    return UPat(Ops.CONST, name, arg=value)


class _Source:
  """Python text of functions that try one rule each. A pattern becomes nested conditions, and a loop over both orders
  of the operands where the operation commutes: several times as fast as walking the pattern for each node."""

  def __init__(self) -> None:
    self.lines: list[str] = []
    self.known: dict[str, Any] = {"COMMUTATIVE": GroupOp.COMMUTATIVE}

  def line(self, depth: int, text: str) -> None: self.lines.append("  " * depth + text)

  def keep(self, value: Any) -> str:
    """A name for an object."""
    name = f"k{len(self.known)}"
    self.known[name] = value
    return name

  def function(self, number: int, pattern: UPat, rule: Rule) -> None:
    """`rule<number>(u, ctx)`: what the rule makes of the node, or None."""
    self.line(0, f"def rule{number}(u, ctx):")
    self.places = 0
    self.bound: dict[str, str] = {}
    wants_context = "ctx" in rule.__code__.co_varnames[:rule.__code__.co_argcount]
    def found(depth: int) -> None:
      arguments = [f"{name}={at}" for name, at in self.bound.items()] + ["ctx=ctx"] * wants_context
      self.line(depth, f"new = {self.keep(rule)}({', '.join(arguments)})")
      self.line(depth, "if new is not None and new is not u: return new")
    self.node(pattern, "u", 1, found, root=True)

  def node(self, pattern: UPat, at: str, depth: int, then: Callable[[int], None], root: bool = False) -> None:
    """The conditions of a pattern on the node called `at`, and what is done where they hold."""
    def when(condition: str) -> None:
      nonlocal depth
      self.line(depth, f"if {condition}:")
      depth += 1
    if pattern.ops is not None and not root:        # rules are found by the root's operation
      ops = tuple(pattern.ops)
      when(f"{at}.op is {self.keep(ops[0])}" if len(ops) == 1 else f"{at}.op in {self.keep(pattern.ops)}")
    if pattern.arg is not None: when(f"{self.keep(pattern.arg)} == {at}.arg")
    if pattern.dtype is not None: when(f"{self.keep(pattern.dtype)}({at}.dtype)")
    mine = pattern.name is not None and pattern.name not in self.bound
    if pattern.name is not None:
      if mine: self.bound[pattern.name] = at
      else: when(f"{at} is {self.bound[pattern.name]}")
    if pattern.src is None: then(depth)
    else: self.sources(pattern, at, depth, then)
    if mine and pattern.name is not None: del self.bound[pattern.name]

  def sources(self, pattern: UPat, at: str, depth: int, then: Callable[[int], None]) -> None:
    """The conditions on the sources, in each order."""
    assert pattern.src is not None
    names = [f"s{self.places + i}" for i in range(len(pattern.src))]
    self.places += len(names)
    self.line(depth, f"if len({at}.src) == {len(names)}:")
    depth += 1
    may_swap = len(names) == 2 and (pattern.ops is None or bool(pattern.ops & GroupOp.COMMUTATIVE))
    if may_swap:
      always = pattern.ops is not None and pattern.ops <= GroupOp.COMMUTATIVE
      test = f"{at}.src[0] is not {at}.src[1]" + ("" if always else f" and {at}.op in COMMUTATIVE")
      self.line(depth, f"for {names[0]}, {names[1]} in ({at}.src, {at}.src[::-1]) if {test} else ({at}.src,):")
      depth += 1
    elif names: self.line(depth, f"{', '.join(names)}, = {at}.src")
    def step(i: int, deep: int) -> None:
      if i == len(names): then(deep)
      else: self.node(pattern.src[i], names[i], deep, lambda d: step(i + 1, d))  # type: ignore[index]
    step(0, depth)


class PatternMatcher:
  """Rules in order, found by operation: `(UPat, rule)` where the rule takes the pattern's names (and `ctx` if it has a
  parameter of that name) and gives the new node, or None to decline."""

  def __init__(self, rules: list[tuple[UPat, Rule]]) -> None:
    self.rules = rules
    self._names: dict[Callable[..., Any], Rule] = {}

  def __add__(self, other: PatternMatcher) -> PatternMatcher: return PatternMatcher(self.rules + other.rules)

  @cached_property
  def by_op(self) -> dict[Ops, list[Callable[[UOp, Any], UOp | None]]]:
    """The rules as code, by operation. Made when first used."""
    text = _Source()
    for i, (pattern, rule) in enumerate(self.rules): text.function(i, pattern, rule)
    exec(compile("\n".join(text.lines), "<rewrite rules>", "exec"), text.known)
    by_op: dict[Ops, list[Callable[[UOp, Any], UOp | None]]] = {op: [] for op in Ops}
    for i, (pattern, _) in enumerate(self.rules):
      for op in pattern.ops if pattern.ops is not None else Ops: by_op[op].append(text.known[f"rule{i}"])
    self._names = {text.known[f"rule{i}"]: rule for i, (_, rule) in enumerate(self.rules)}
    return by_op

  def rewrite(self, u: UOp, ctx: Any = None) -> UOp | None:
    """The node that the first fitting rule makes of `u`; None when none applies."""
    for rule in self.by_op[u.op]:
      if (new := rule(u, ctx)) is not None: return new
    return None

  def name_of(self, u: UOp, ctx: Any = None) -> str:
    """The rule that `rewrite` applies to a node: its name and where it is."""
    for function in self.by_op[u.op]:
      if function(u, ctx) is not None:
        code = self._names[function].__code__
        return f"{code.co_name.strip('_<>')} ({code.co_filename.rpartition('/')[2]}:{code.co_firstlineno})"
    return ""


def graph_rewrite(root: UOp, matcher: PatternMatcher, ctx: Any = None, done: dict[UOp, UOp] | None = None) -> UOp:
  """`root` with the rules applied everywhere, sources first, until none applies.

  `done` holds finished nodes and may be shared between calls with the same matcher and ctx. Not recursive. Rules that
  undo each other are an error after a hundred rewrites of one place.
  """
  done = {} if done is None else done
  watcher, known, rules = stages.watching(), done.get, matcher.by_op
  steps: dict[UOp, int] = {}
  stack: list[tuple[UOp, UOp | None]] = [(root, None)]      # (node, what it was rewritten to: it is done when that is)
  while stack:
    u, became = stack.pop()
    if u in done: continue
    if became is not None:
      done[u] = done[became]
      continue
    rebuilt = u
    if u.src:
      found = [known(s) for s in u.src]
      if None in found:
        stack.append((u, None))
        stack += [(s, None) for s, finished in zip(u.src[::-1], found[::-1]) if finished is None]
        continue
      src: Any = tuple(found)
      if src != u.src: rebuilt = UOp(u.op, u.dtype, src, u.arg)
    new = None
    for rule in rules[rebuilt.op]:
      if (new := rule(rebuilt, ctx)) is not None: break
    if watcher is not None and new is not None: watcher.rewrote(matcher.name_of(rebuilt, ctx), rebuilt, new)
    if new is None:
      done[u] = rebuilt
      if rebuilt is not u: done[rebuilt] = rebuilt
    elif new in done:
      done[u] = done[new]
    else:
      steps[new] = steps.get(u, 0) + 1
      if steps[new] > 100: raise RuntimeError(f"rewriting does not end: {u} became {new}")
      stack.append((u, new))
      stack.append((new, None))
  return done[root]
