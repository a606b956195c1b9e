"""The order of a function's instructions: threads that part meet again at the lowest place that they all come to.

Among groups of one warp the one at the lowest PC runs first. So PCs are given to blocks such that control only goes up,
but from the end of a loop to its head, and everything in a loop lies together, before what follows it: then groups meet
at the immediate post-dominator of the branch at which they parted, or before it.
"""
from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinyhw.core.errors import DecodeError
from tinyhw.emulator.ptx.module.scope import Flat, Line
from tinyhw.isa.ptx.model import Name, Targets

Graph = dict[int, list[int]]
LEAVES = frozenset({"ret", "exit", "trap"})


def where(line: Line) -> str:
  """"PTX line 3, column 5"."""
  row, column = line.instruction.at
  return f"PTX line {row}, column {column}"


def targets(line: Line) -> tuple[int, ...]:
  """The instructions that a branch may go to. Raises DecodeError for a label that there is not."""
  i = line.instruction
  label = i.operands[-1] if i.operands else None
  if not isinstance(label, Name): raise DecodeError(f"{i.name} has no label", where=where(line))
  found = line.scope.find(label.text)
  if i.opcode == "brx" and isinstance(found, Targets): return tuple(_label(line, name) for name in found.names)
  return (_label(line, label.text),)


def _label(line: Line, name: str) -> int:
  found = line.scope.find(name)
  if not isinstance(found, int): raise DecodeError(f"there is no label {name}", where=where(line))
  return found


@dataclass
class Cut:
  """A function cut into blocks. `starts` are the first instructions of those that control may come to, in order of PCs;
  behind them come the others, of which no more is known than their ends and successors. `position` gives each
  instruction's place in that order; the place behind the last one is falling off the end."""
  starts: list[int]
  ends: dict[int, int]
  successors: Graph
  position: list[int]
  order: list[int]


def cut(flat: Flat, stops: Sequence[bool]) -> Cut:
  """Cut a function into blocks and order them. `stops` says of each instruction whether a block ends behind it; an
  instruction with a predicate that stops has a place of its own for the branch around it."""
  lines, n = flat.lines, len(flat.lines)
  leaders = {0} if n else set()
  for k, line in enumerate(lines):
    if line.instruction.opcode in {"bra", "brx"}: leaders.update(targets(line))
    if stops[k]: leaders.update({k, k + 1})
  starts = sorted(leader for leader in leaders if leader < n)
  ends = dict(zip(starts, [*starts[1:], n]))
  successors: Graph = {s: _after(lines[e - 1], e, n) for s, e in ends.items()}
  found = reached(starts[0], successors) if starts else set()
  ordered = arranged([s for s in starts if s in found], successors)
  order = [k for s in (*ordered, *(s for s in starts if s not in found)) for k in range(s, ends[s])]
  position = [0] * n
  for at, k in enumerate(order): position[k] = at
  return Cut(ordered, ends, successors, position, order)


def _after(line: Line, following: int, n: int) -> list[int]:
  i = line.instruction
  out = [t for t in targets(line) if t < n] if i.opcode in {"bra", "brx"} else []
  if (i.opcode not in LEAVES and i.opcode not in {"bra", "brx"} or i.predicate is not None) and following < n:
    out.append(following)
  return list(dict.fromkeys(out))


def reached(first: int, successors: Graph) -> set[int]:
  """The blocks that control may come to from one of them, itself among them."""
  out, work = {first}, [first]
  while work:
    for t in successors[work.pop()]:
      if t in out: continue
      out.add(t)
      work.append(t)
  return out


def arranged(nodes: Sequence[int], successors: Graph) -> list[int]:
  """Blocks in an order in which edges go up but for those to the head of a loop, and loops lie together."""
  out: list[int] = []
  before: Graph = {s: [] for s in nodes}
  for s in nodes:
    for t in successors[s]: before[t].append(s)

  def go(inside: set[int], heads: frozenset[int]) -> None:
    for part in _topological(inside, successors, heads):
      if len(part) == 1: out.extend(part)
      else:
        head = min((n for n in part if any(p not in part for p in before[n])), default=min(part))
        out.append(head)
        go(part - {head}, heads | {head})
  go(set(nodes), frozenset())
  return out


def _topological(inside: set[int], successors: Graph, cutoff: frozenset[int]) -> list[set[int]]:
  """The strongly connected parts, in an order in which edges go up; of those that could come next, the first."""
  parts = _components(inside, successors, cutoff)
  part_of = {n: k for k, part in enumerate(parts) for n in part}
  waiting = [0] * len(parts)
  edges: list[set[int]] = [set() for _ in parts]
  for s in inside:
    for t in successors[s]:
      if t in inside and t not in cutoff and part_of[t] != part_of[s] and part_of[t] not in edges[part_of[s]]:
        edges[part_of[s]].add(part_of[t])
        waiting[part_of[t]] += 1
  ready = [(min(part), k) for k, part in enumerate(parts) if not waiting[k]]
  heapq.heapify(ready)
  out = []
  while ready:
    _, k = heapq.heappop(ready)
    out.append(parts[k])
    for t in edges[k]:
      waiting[t] -= 1
      if not waiting[t]: heapq.heappush(ready, (min(parts[t]), t))
  return out


def _components(inside: set[int], successors: Graph, cutoff: frozenset[int]) -> list[set[int]]:
  """Strongly connected components (Tarjan), without recursion."""
  index: dict[int, int] = {}
  low: dict[int, int] = {}
  stack: list[int] = []
  held: set[int] = set()
  out: list[set[int]] = []
  for root in sorted(inside):
    if root in index: continue
    work = [(root, iter(successors[root]))]
    index[root] = low[root] = len(index)
    stack.append(root)
    held.add(root)
    while work:
      node, following = work[-1]
      for t in following:
        if t not in inside or t in cutoff: continue
        if t not in index:
          index[t] = low[t] = len(index)
          stack.append(t)
          held.add(t)
          work.append((t, iter(successors[t])))
          break
        if t in held: low[node] = min(low[node], index[t])
      else:
        work.pop()
        if work: low[work[-1][0]] = min(low[work[-1][0]], low[node])
        if low[node] == index[node]:
          part = set()
          while True:
            t = stack.pop()
            held.discard(t)
            part.add(t)
            if t == node: break
          out.append(part)
  return out


def liveness(starts: Sequence[int], successors: Graph, uses: dict[int, int], kills: dict[int, int]) -> dict[int, int]:
  """The registers, as bits of an int, whose values blocks may still read when they begin."""
  live = dict.fromkeys(starts, 0)
  before: Graph = {s: [] for s in starts}
  for s in starts:
    for t in successors[s]: before[t].append(s)
  work = [*starts]
  while work:
    s = work.pop()
    out = 0
    for t in successors[s]: out |= live[t]
    new = uses[s] | out & ~kills[s]
    if new != live[s]:
      live[s] = new
      work += before[s]
  return live


def members(bits: int) -> list[int]:
  """The places of an integer's bits, in order."""
  if bits.bit_length() > _LONG:
    raw = np.frombuffer(bits.to_bytes(bits.bit_length() + 7 >> 3, "little"), np.uint8)
    found: list[int] = np.flatnonzero(np.unpackbits(raw, bitorder="little")).tolist()
    return found
  out = []
  while bits:
    low = bits & -bits
    out.append(low.bit_length() - 1)
    bits ^= low
  return out


_LONG = 512  # bits, from which on one after the other takes longer
