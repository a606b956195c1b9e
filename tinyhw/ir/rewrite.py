"""Patterns over UOps, tables of rewrite rules, and the engine that applies them to a graph until nothing changes."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

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

  def match(self, u: UOp, bound: dict[str, UOp]) -> Iterator[dict[str, UOp]]:
    """Each way in which the pattern fits, as the bindings of its names."""
    if self.ops is not None and u.op not in self.ops: return
    if self.dtype is not None and not self.dtype(u.dtype): return
    if self.arg is not None and self.arg != u.arg: return
    if self.name is not None:
      if bound.get(self.name, u) is not u: return
      bound = {**bound, self.name: u}
    if self.src is None:
      yield bound
      return
    if len(self.src) != len(u.src): return
    orders = [u.src]
    if u.op in GroupOp.COMMUTATIVE and u.src[0] is not u.src[1]: orders.append(u.src[::-1])
    for order in orders:
      found = [bound]
      for pattern, s in zip(self.src, order):
        found = [b for f in found for b in pattern.match(s, f)]
        if not found: break
      yield from found


class PatternMatcher:
  """Rules in order, found by operation: `(UPat, rule)` where the rule takes the pattern's names (and `ctx` if it has a
  parameter of that name) and gives the new node, or None to decline."""

  def __init__(self, rules: list[tuple[UPat, Rule]]) -> None:
    self.rules = rules
    self._by_op: dict[Ops, list[tuple[UPat, Rule, bool]]] = {op: [] for op in Ops}
    for pattern, rule in rules:
      wants_context = "ctx" in rule.__code__.co_varnames[:rule.__code__.co_argcount]
      for op in pattern.ops if pattern.ops is not None else Ops: self._by_op[op].append((pattern, rule, wants_context))

  def __add__(self, other: PatternMatcher) -> PatternMatcher: return PatternMatcher(self.rules + other.rules)

  def rewrite(self, u: UOp, ctx: Any = None) -> UOp | None:
    """The node that the first fitting rule makes of `u`; None when none applies."""
    for pattern, rule, wants_context in self._by_op[u.op]:
      for bound in pattern.match(u, {}):
        new = rule(ctx=ctx, **bound) if wants_context else rule(**bound)
        if new is not None and new is not u: return new
    return None


def graph_rewrite(root: UOp, matcher: PatternMatcher, ctx: Any = None, done: dict[UOp, UOp] | None = None) -> UOp:
  """`root` with the rules applied everywhere, sources first, until none applies.

  `done` holds finished nodes and may be shared between calls with the same matcher and ctx. Not recursive. Rules that
  undo each other are an error after a hundred rewrites of one place.
  """
  done = {} if done is None else done
  steps: dict[UOp, int] = {}
  stack: list[tuple[UOp, UOp | None]] = [(root, None)]      # (node, what it was rewritten to: it is done when that is)
  while stack:
    u, became = stack.pop()
    if u in done: continue
    if became is not None:
      done[u] = done[became]
      continue
    missing = [s for s in u.src if s not in done]
    if missing:
      stack.append((u, None))
      stack.extend((s, None) for s in reversed(missing))
      continue
    src = tuple([done[s] for s in u.src])
    rebuilt = u if src == u.src else UOp(u.op, u.dtype, src, u.arg)
    new = matcher.rewrite(rebuilt, ctx)
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
