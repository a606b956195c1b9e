"""From graph nodes to memory: schedule what they need, run it, and remember which memory holds which node.

What is realized belongs to a node of the graph. Its memory is always one BUFFER that holds exactly the node's
elements, in row-major order (`home`); views are nodes above it, which have no memory of their own and are read
through the one below (`placed`), unless they were computed themselves. So a view can never be taken for its base.

A realized node that a gradient may still be asked through stays in its tensor's history; later schedules read its
memory instead of computing it again (`planned.outline`).

Reading a view makes a copy in its order. All that no gradient may be asked through is forgotten
with the memory's last user. What requires no gradient lets none through, in memory or not.

`python -m tinyhw.tools.fuzz.views` holds random lives of tensors against NumPy, `python -m
tinyhw.tools.fuzz.histories` those of tensors that learn against dual numbers, `python -m
tinyhw.tools.fuzz.beside_torch` random programs of Tensor's functions beside PyTorch, where that is
installed.
"""
from __future__ import annotations

from collections.abc import Iterable

from tinyhw.core.errors import ValueLost
from tinyhw.devices import watch
from tinyhw.devices.buffer import BorrowedBuffer, Buffer, ByNode, buffer_of
from tinyhw.devices.registry import STORAGE, Device
from tinyhw.engine import arena
from tinyhw.engine.planned import Outline, Planned, outline, planned
from tinyhw.engine.run import run
from tinyhw.function.core import TensorBase, living
from tinyhw.ir import semantics
from tinyhw.ir.group import is_group
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.shape import ShapeTracker
from tinyhw.ir.size import value_of
from tinyhw.ir.uop import UOp

_homes: ByNode[UOp] = ByNode()
"""Realized node -> its BUFFER. The nodes are neither BUFFER, RESHAPE nor DETACH: those have the memory below them."""
_rows = _homes._rows
_forgotten: ByNode[bool] = ByNode()
"""BUFFERs of values that were computed, and whose history nobody has asked to keep."""


_OF_CONSTANTS = GroupOp.MOVEMENT | GroupOp.ELEMENTWISE | {Ops.CONST, Ops.DEVICE, Ops.DETACH, Ops.CONTIGUOUS}
_SMALL = 64               # nodes of a graph of constants that is looked at
_WORTH_SHARING = 1 << 20  # bytes that a schedule makes, from which on its results share memory


def _same_order(node: UOp) -> UOp:
  """The node below RESHAPE and DETACH: the same elements in the same order."""
  while node.op is Ops.RESHAPE or node.op is Ops.DETACH: node = node.src[0]
  return node


def _own_home(node: UOp) -> UOp | None:
  """The BUFFER of a node that is no RESHAPE and no DETACH. Memory that was lost is forgotten: the graph may still be
  able to give the value again."""
  if node.op is Ops.BUFFER: return node
  if (row := _rows.get(id(node))) is None: return None
  found = row[1]
  if not buffer_of(found).lost:
    if watch.active and (w := watch.watching()) is not None and w.hides(node, found): return None
    return found
  _homes.forget(node)
  return None


def in_order(node: UOp) -> Buffer | None:
  """The buffer of a node that is a BUFFER in another shape at most."""
  below = node.src[0] if node.op is Ops.RESHAPE else node
  return buffer_of(below) if below.op is Ops.BUFFER else None


def home(node: UOp) -> UOp | None:
  """The BUFFER that holds exactly the node's elements in row-major order, or None."""
  below = _same_order(node)
  found = _own_home(below)
  return _turned_back(below) if found is None and below.op in GroupOp.MOVEMENT else found


def _turned_back(node: UOp) -> UOp | None:
  """The BUFFER below movements that leave each of its elements where it was: a transpose of a transpose."""
  if (place := placed(node)) is None: return None
  moves = [u for u in place.toposort() if u.op in GroupOp.MOVEMENT]
  memory = place.base
  if any(type(n) is not int for u in (memory, *moves) for n in u.shape) or memory.arg.size != node.size: return None
  tracker = ShapeTracker.contiguous((memory.arg.size,))
  for u in moves: tracker = tracker.apply(u.op, u.arg)
  return memory if tracker.is_contiguous else None


def shares(copy: UOp, node: UOp) -> None:
  """Have a copy in row-major order be where the node is, if it is so already: values do not change where they are.
  Memory that others write, and what a TinyJit records, is copied."""
  if watch.watching() is not None or not isinstance(node.device, str) or is_group(node.device) or _stored(node.device):
    return
  found = home(node)
  if found is not None and not isinstance(buffer_of(found), BorrowedBuffer): _remember(copy, found)


def placed(node: UOp) -> UOp | None:
  """The node as movements of a BUFFER, or None where something must be computed first."""
  moves: list[UOp] = []
  below = node
  while (found := _own_home(below)) is None:
    if below.op not in GroupOp.MOVEMENT and below.op is not Ops.DETACH: return None
    moves.append(below)
    below = below.src[0]
  if found is below and all(m.op is not Ops.DETACH for m in moves): return node
  result = found if found is below else found.reshape(below.shape)
  for move in reversed(moves):
    if move.op is not Ops.DETACH: result = move.replace(src=(result,))
  return result


def placed_among(nodes: Iterable[UOp]) -> list[tuple[UOp, UOp]]:
  """Those of the nodes that are in memory, with what they are there (`placed`). Sources come before their users."""
  found: list[tuple[UOp, UOp]] = []
  known: set[UOp] = set()
  may, moves = _rows, GroupOp.MOVEMENT
  for u in nodes:
    # What moves elements is where they are; most of all else is nowhere.
    if id(u) in may or u.op is Ops.BUFFER or (u.op in moves or u.op is Ops.DETACH) and u.src[0] in known:
      if (place := placed(u)) is None: continue
      known.add(u)
      found.append((u, place))
  return found


def realize_nodes(nodes: Iterable[UOp]) -> None:
  """Compute the nodes into memory, and remember it as theirs. Views of memory are left as they are."""
  wanted = [n for n in dict.fromkeys(nodes) if n.size and placed(n) is None]
  if wanted: _compute(wanted)


def _compute(wanted: list[UOp]) -> None:
  """Give each of the nodes a home."""
  graph = outline(wanted, _own_home, _rows)
  plan = planned(graph)
  values = [value_of(v) for v in graph.values]
  sharing = plan.room >= _WORTH_SHARING and not plan.grouped and arena.planning()
  kept = _kept(graph, plan) if sharing else None
  memory_now = graph.buffers()
  buffers = plan.run(memory_now, values, run, kept)
  moved: dict[UOp, UOp] = {}
  targets = set(graph.wanted)
  # Also what was realized on the way need not be computed again.
  named = graph.memory if len(memory_now) == len(graph.memory) else [None] * len(memory_now)
  for place, memory in plan.places(named, values, buffers, kept):
    node = graph.nodes[place]
    if not _remember(node, memory) and place in targets: moved[node] = memory.contiguous()
  # What turned out to be a view (a sum over an axis of one element of a view, say) gets memory of its own.
  if moved:
    _compute(list(moved.values()))
    for node, copy in moved.items(): _remember(node, home(copy) or copy)


def _kept(graph: Outline, plan: Planned) -> frozenset[int] | None:
  """Numbers of the memory that has to last: of what is wanted, and of what a tensor may yet ask for.

  A tensor asks for the nearest results below its graph. One that a gradient may go back from asks for all below it;
  after `backward` nothing is kept for a second time, which computes it again.
  """
  if len(plan.items) < 2: return None
  wanted = set(graph.wanted)
  kept = {number for place, (number, _) in plan.outputs if place in wanted}
  on_the_way = {_same_order(graph.nodes[place]): number for place, (number, _) in plan.outputs if place not in wanted}
  results = {_same_order(graph.nodes[place]) for place in wanted}
  seen: set[UOp] = set()
  tensors = [(t, _same_order(t._uop)) for t in living()]
  histories = [node for t, node in tensors if not t.is_leaf and not t.spent and node in results]
  for roots, through in ((histories, True), ([node for _, node in tensors if node not in results], False)):
    stack = list(roots)
    while stack:
      u = stack.pop()
      if u in seen: continue
      seen.add(u)
      if (number := on_the_way.get(_same_order(u))) is not None:
        kept.add(number)
        if not through: continue
      elif u in results:
        if not through: continue
      elif _own_home(u) is not None: continue
      stack.extend(u.src)
  return frozenset(kept)


def _remember(node: UOp, memory: UOp) -> bool:
  """Make the memory the node's home. False when it is only a view of some memory."""
  node, memory = _same_order(node), _same_order(memory)
  if memory.op is not Ops.BUFFER or memory.arg.size != node.size: return False
  if node is not memory: _homes.set(node, memory)
  return True


def _stored(device: str | None) -> bool: return device is not None and device.partition(":")[0] in STORAGE


def copied(node: UOp, device: str) -> UOp:
  """The node on another device. What a device without kernels would have to compute, or to move, is computed with
  copies of the memory there."""
  if not _stored(node.device) or _stored(device): return node.copy_to(device)
  moved: dict[UOp, UOp] = {}
  def here(u: UOp) -> bool:
    """Whether it is memory there, which is not looked below."""
    if u.op in (Ops.BUFFER, Ops.COPY) and _stored(u.device): moved[u] = u.copy_to(device)
    elif u.op is Ops.DEVICE and _stored(u.arg): moved[u] = UOp(Ops.DEVICE, u.dtype, (), device)
    return u not in moved
  node.toposort(here)
  return node.substitute(moved)


def element_of_constant(node: UOp) -> bytes | None:
  """An element's memory, of a value that is one constant and nowhere: reading it takes no kernel."""
  if node.dtype.name not in semantics.FORMATS or home(node) is not None: return None
  seen: set[UOp] = set()
  stack = [node]
  while stack:
    u = stack.pop()
    if u in seen: continue
    seen.add(u)
    if u.op not in _OF_CONSTANTS or len(seen) > _SMALL: return None
    stack += u.src
  from tinyhw.compile.schedule import constant_of  # the compiler is loaded when something is computed
  number = constant_of(node)
  return None if number is None else semantics.to_bits(number, node.dtype).to_bytes(node.dtype.itemsize, "little")


def lost(found: UOp) -> bool:
  """Whether the memory below movements went with its device."""
  return buffer_of(found.base).lost


def lost_below(node: UOp) -> Buffer | None:
  """A buffer that the value needs and that went with its device, if there is one."""
  if not Device.losses(): return None
  seen: set[UOp] = set()
  stack = [node]
  while stack:
    u = stack.pop()
    if u in seen: continue
    seen.add(u)
    if u.op is Ops.BUFFER:
      if (found := buffer_of(u)).lost: return found
    elif _own_home(u) is None: stack.extend(u.src)
  return None


def forget(buffers: set[Buffer]) -> None:
  """No node is in this memory any more: something else will be written there."""
  for node, memory in _homes.items():
    if not buffers.isdisjoint(buffer_of(memory).parts): _homes.forget(node)


def realize(*tensors: TensorBase) -> None:
  """Put the values of the tensors into memory, all in one schedule. Raises ValueLost where a value was lost."""
  nodes = [t.uop for t in tensors]
  if watch.active and (watcher := watch.watching()) is not None: nodes += watcher.also()
  realize_nodes(nodes)
  for t in tensors:
    if (found := placed(t.uop)) is None: continue
    buffer_of(found.base).check()
    # A leaf needs no history: what it was computed from may go.
    if t.is_leaf:
      if (node := t._uop).op is Ops.DETACH and node.arg is not None: continue  # a constant that is known by this node
      if t._learns is None and node.base is not found.base: _forgotten.set(found.base, True)
      t.uop = found


def history_forgotten(nodes: Iterable[UOp]) -> bool:
  """Whether any of the nodes is memory of a value whose history nobody has asked to keep."""
  return any(u.op is Ops.BUFFER and _forgotten.get(u) for u in nodes)


def memory_of(tensor: TensorBase) -> Buffer:
  """The buffer that holds exactly the tensor's elements in row-major order; computed, or copied from the memory that
  the tensor is a view of, where there is none."""
  realize(tensor)
  node = tensor.uop
  if (found := home(node)) is None:
    copy = node.contiguous()
    _compute([copy])
    if (found := home(copy)) is None:  # another thread has closed the device meanwhile
      raise ValueLost(f"the value ({tensor.numel():,} x {tensor.dtype}) was lost when the device was closed",
                      where=str(copy.device), hint="make the tensor again, or read its value before Device.close()")
  return buffer_of(found)
