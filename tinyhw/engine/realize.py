"""From graph nodes to memory: schedule what they need, run it, remember which memory holds which node.

A realized node that a gradient may still be asked through stays in its tensor's history; `held` knows its
memory, and later schedules read that instead of computing it again.
"""
from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tinyhw.engine.buffer import Buffer, buffer_of
from tinyhw.engine.run import Step, kernel_for, run
from tinyhw.function.core import TensorBase
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp

if TYPE_CHECKING:
  from tinyhw.compile import Schedule

_held: weakref.WeakKeyDictionary[UOp, UOp] = weakref.WeakKeyDictionary()


def held(node: UOp) -> UOp | None:
  """The node in terms of memory: itself when it is a view of a buffer, its buffer when it was realized, else None."""
  if (found := _held.get(node)) is not None: return found
  return node if node.base.op is Ops.BUFFER else None


def with_held(roots: Iterable[UOp]) -> list[UOp]:
  """The nodes, where what was realized below them is read from memory."""
  sink = UOp.sink(*roots)
  if not len(_held): return list(sink.src)
  known: dict[UOp, UOp] = {}
  for u in sink.toposort(lambda u: u not in _held):
    for s in u.src:
      if s not in known and (found := _held.get(s)) is not None: known[s] = found
  return list(sink.substitute(known).src) if known else list(sink.src)


def realize_nodes(nodes: Iterable[UOp]) -> None:
  """Compute the nodes into new memory, and remember it as theirs."""
  from tinyhw.compile import schedule
  wanted = [n for n in dict.fromkeys(nodes) if held(n) is None and n.size]
  if not wanted: return
  values = with_held(wanted)
  plan = schedule(list(dict.fromkeys(values)))
  run(steps_of(plan))
  # Also what was realized on the way need not be computed again.
  for node, memory in plan.becomes.items(): _held[node] = memory
  for node, value in zip(wanted, values): _held[node] = plan.becomes.get(value, value)


def steps_of(plan: Schedule) -> list[Step]:
  """The schedule with its kernels compiled and its memory known."""
  steps = []
  for item in plan.items:
    buffers = tuple(buffer_of(b) for b in item.buffers)
    steps.append(Step.of(None if item.ast.op is Ops.COPY else kernel_for(item.ast, item.device), buffers))
  return steps


def realize(*tensors: TensorBase) -> None:
  """Put the values of the tensors into memory, all in one schedule."""
  realize_nodes([t.uop for t in tensors])
  for t in tensors:
    found = held(t.uop)
    if found is not None and t.is_leaf: t.uop = found


def memory_of(tensor: TensorBase) -> Buffer:
  """The buffer that holds exactly the tensor's elements in row-major order; computed first where there is none."""
  found = held(tensor.uop)
  if found is None or not _plain(found):
    node = tensor.uop if found is None else found.contiguous()
    realize_nodes([node])
    found = held(node)
    if tensor.is_leaf and node is tensor.uop and found is not None: tensor.uop = found
  assert found is not None
  return buffer_of(found.base)


def _plain(node: UOp) -> bool:
  """Whether the node is a whole buffer in order."""
  while node.op in (Ops.RESHAPE, Ops.DETACH): node = node.src[0]
  return node.op is Ops.BUFFER
