"""The parts that a kernel's axes are split into, and its graph with the axes split."""
from __future__ import annotations

from dataclasses import dataclass

from tinyhw.compile.schedule import identity_element
from tinyhw.ir.symbolic import simplify
from tinyhw.ir.uop import Axis, Ops, UOp


@dataclass
class AxisPart:
  """Some steps of an axis and how they are done. `lane` > 0: work-item i of a wave does step i // lane % size."""
  size: int
  kind: Axis
  lane: int = 0


@dataclass(frozen=True)
class IndexAccess:
  """One INDEX: how many elements each axis moves it by. An axis that it uses in another way is in `other`, and also in
  `twisted` where that is not in its gate alone."""
  index: UOp
  steps: dict[UOp, int]
  other: frozenset[UOp]
  is_store: bool
  twisted: frozenset[UOp] = frozenset()


def _at(u: UOp, whole: dict[UOp, UOp], clamped: dict[UOp, UOp], known: dict[UOp, UOp]) -> UOp:
  """An index or a gate at clamped axes."""
  if u not in known: known[u] = u.substitute({**whole, **clamped})
  return known[u]


def substituted(sink: UOp, whole: dict[UOp, UOp], made: dict[UOp, list[UOp]], gates: dict[UOp, UOp],
                 clamped: dict[UOp, UOp]) -> dict[UOp, UOp]:
  """Each node, with its axes split. Loads at `clamped` axes need no gate for these."""
  stored = {u.src[0] for u in sink.src if u.op is Ops.STORE}
  inside: dict[UOp, UOp] = {}
  done: dict[UOp, UOp] = {}
  simplified: dict[UOp, UOp] = {}
  for u in sink.toposort():
    if u in whole:
      done[u] = whole[u]
      continue
    src = tuple(done[s] for s in u.src)
    if u.op is Ops.REDUCE:
      value = src[0]
      for r in u.src[1:]:       # what is beyond the end of an axis adds nothing
        if r in gates: value = gates[r].where(value, identity_element(u.arg, u))
      src = (value, *(p for r in u.src[1:] for p in made[r] if p.op is Ops.RANGE))
      done[u] = src[0] if len(src) == 1 else UOp(u.op, u.dtype, src, u.arg)
      continue
    if u.op is Ops.INDEX:
      if clamped and u not in stored and u.ranges & clamped.keys():
        src = (src[0], *(_at(s, whole, clamped, inside) for s in u.src[1:]))
      gate = src[2] if len(src) > 2 else None
      for r, g in gates.items():
        if r in u.ranges and (u in stored or r not in clamped): gate = g if gate is None else gate & g
      done[u] = src[0].index(simplify(src[1], simplified), simplify(gate, simplified) if gate is not None else None)
      continue
    if u.op is Ops.LOAD and len(src) == 1 and len(src[0].src) > 2: src = (*src, UOp.const(u.dtype, 0))
    done[u] = u if src == u.src else UOp(u.op, u.dtype, src, u.arg)
  done[sink] = simplify(done[sink], simplified)
  return done
