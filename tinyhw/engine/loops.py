"""The same step many times, at once: a schedule is made of one, and goes round over memory that changes hands."""
from __future__ import annotations

from collections.abc import Sequence

from tinyhw.devices.buffer import Buffer, buffer_of, new_node
from tinyhw.engine.planned import outline, planned
from tinyhw.engine.realize import home, realize_nodes
from tinyhw.engine.run import run
from tinyhw.ir.group import is_group
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.uop import UOp


def repeated(count: int, made: Sequence[UOp], inside: Sequence[UOp], state: Sequence[UOp]) -> list[UOp] | None:
  """What becomes of a state by `count` steps, in memory. `made` are a step's results, each computed from what stands
  `inside` for the state (reshaped BUFFERs that nobody else has). None where a result is not memory of its own, or where
  launches decide a size, or on a group of devices.
  """
  if any(is_group(u.device) for u in made): return None
  realize_nodes([*state, *_alike(made, inside)])
  places = [home(s) for s in state]
  graph = outline(list(made), home)
  if graph.values or len(set(graph.wanted)) < len(made) or any(p is None for p in places): return None
  plan, changing = planned(graph), [u.base for u in inside]
  ends = {place: number for place, (number, _) in plan.outputs}
  if any(ends.get(at, -1) < len(graph.memory) for at in graph.wanted): return None
  now: list[Buffer] = [buffer_of(p) for p in places if p is not None]
  # Where each number's memory comes from: the state, or what stays.
  known = {n: buffer_of(b) for n, b in enumerate(graph.memory) if b not in changing}
  taken = {n: changing.index(b) for n, b in enumerate(graph.memory) if b in changing}
  for _ in range(count):
    memory = [now[taken[n]] if n in taken else known[n] for n in range(len(graph.memory))]
    buffers = plan.run(memory, [], run)
    now = [buffers[ends[at]] for at in graph.wanted]
  return [new_node(b).reshape(u.shape) for b, u in zip(now, made)]


def _alike(made: Sequence[UOp], inside: Sequence[UOp]) -> list[UOp]:
  """What is computed alike in every step: the nodes that nothing of the state is in, below those that it is in."""
  changing, bases = set[UOp](), {u.base for u in inside}
  found: dict[UOp, None] = {}
  for u in UOp.sink(*made).toposort():
    if u in bases or any(s in changing for s in u.src): changing.add(u)
  for u in changing:
    for s in u.src:
      if s in changing: continue
      while s.op in GroupOp.MOVEMENT or s.op is Ops.DETACH: s = s.src[0]
      if s.op is not Ops.BUFFER and any(v.op is Ops.BUFFER for v in s.toposort()): found[s] = None
  return list(found)
