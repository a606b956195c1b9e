"""Graphs on groups of devices as graphs on each of their members.

A node whose device is a group (`ir.group`) becomes `Parts`: a node for each member, which follow each other along an
axis, or which are all the same. Most operations are done on each part by itself. A reduction along the cut axis sums on
each device first, and what comes of it goes round (`all_reduce`). Where the parts of two operands do not fit, or an
operation needs elements of several of them, each member gets the whole: everything that one device computes a group
computes too, with the same values but for the order of sums.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tinyhw.ir.dtype import dtypes
from tinyhw.ir.group import cuts, is_group, members
from tinyhw.ir.ops import GroupOp, Ops
from tinyhw.ir.uop import UOp, sources

RING_FROM = 1 << 16  # elements from which an all-reduce of more than two devices goes round in a ring


class Parts(NamedTuple):
  """A value in parts: a node on each device, along an axis, or (None) alike."""
  nodes: tuple[UOp, ...]
  devices: tuple[str, ...]
  axis: int | None

  @property
  def sizes(self) -> tuple[int, ...]:
    """The parts' elements along the axis."""
    assert self.axis is not None
    return tuple(p.shape[self.axis] for p in self.nodes)

  @property
  def shape(self) -> tuple[int, ...]:
    """Of the whole."""
    shape = self.nodes[0].shape
    return shape if self.axis is None else (*shape[:self.axis], sum(self.sizes), *shape[self.axis + 1:])

  def each(self, f: Callable[[UOp], UOp], axis: int | None) -> Parts:
    """The same done to each part."""
    return Parts(tuple(map(f, self.nodes)), self.devices, axis)


Spread = UOp | Parts
"""What a node of a graph becomes: itself over other sources, or parts."""


def spread(outputs: Sequence[UOp], memory: Mapping[UOp, Sequence[UOp]]) -> dict[UOp, Spread]:
  """What each node below the outputs becomes. `memory`: the members' BUFFERs of each BUFFER of a group."""
  done: dict[UOp, Spread] = {}
  for u in sources(list(outputs)):
    src = [done[s] for s in u.src]
    if is_group(u.device): done[u] = _of_memory(u, memory[u]) if u.op is Ops.BUFFER else _parts(u, src)
    elif u.op in (Ops.COPY, Ops.SHARD): done[u] = _to_one(u, src[0])
    else:
      plain = tuple(s for s in src if isinstance(s, UOp))
      assert len(plain) == len(src), f"{u.op.name} on {u.device} of a value on several devices"
      done[u] = u if plain == u.src else u.replace(src=plain)
  return done


def _of_memory(u: UOp, parts: Sequence[UOp]) -> Parts:
  """Memory in the shape that it was cut in: stretches, the axis, what lies below it."""
  devices, cut = members(u.arg.device), u.arg.cut
  if cut is None: return Parts(tuple(parts), devices, None)
  outer, sizes = cut
  inner = u.arg.size // (outer * sum(sizes))
  return Parts(tuple(p.reshape((outer, s, inner)) for p, s in zip(parts, sizes)), devices, 1)


def _to_one(u: UOp, value: Spread) -> UOp:
  """COPY to a device of its own."""
  device = str(u.device)
  if isinstance(value, UOp): return value if value.device == device else value.copy_to(device)
  return whole(value, device)


def whole(value: Parts, device: str) -> UOp:
  """All of a value on one device."""
  if value.axis is None:
    return next((p for p, d in zip(value.nodes, value.devices) if d == device), None) or value.nodes[0].copy_to(device)
  return joined([p if d == device else p.copy_to(device) for p, d in zip(value.nodes, value.devices)], value.axis,
                device)


def joined(parts: Sequence[UOp], axis: int, device: str) -> UOp:
  """Values of one device one after the other. They are chosen, not added: no bit of an element changes."""
  total, start, result = sum(p.shape[axis] for p in parts), 0, None
  for p in parts:
    end = start + p.shape[axis]
    padding = tuple((start, total - end) if i == axis else (0, 0) for i in range(len(p.shape)))
    piece, start = p.pad(padding), end
    if result is None: result = piece
    else: result = UOp.const(dtypes.bool, True, device, p.shape).pad(padding).where(piece, result)
  assert result is not None
  return result


def all_reduce(parts: Sequence[UOp], devices: Sequence[str], together: Callable[[UOp, UOp], UOp],
               ring: bool | None = None) -> tuple[UOp, ...]:
  """All parts, one a device, taken together: the result on each device.

  Naive: each device gets all parts, and takes them in their order. In a ring each device sums one piece, to which its
  neighbour before has added, and pieces that are done go round: each device sends and receives 2 (n - 1) / n of a part,
  however many there are. None chooses by size. The two may round floats differently.
  """
  n, shape = len(parts), parts[0].shape
  if ring is None: ring = n > 2 and parts[0].size >= RING_FROM
  if n == 1: return tuple(parts)
  if not ring or parts[0].size < n:
    results = []
    for device in devices:
      total, *others = (p if d == device else p.copy_to(device) for p, d in zip(parts, devices))
      for other in others: total = together(total, other)
      results.append(total)
    return tuple(results)
  flat = [p.reshape((p.size,)) for p in parts]
  pieces: list[list[UOp]] = [[] for _ in parts]  # by device, then by piece
  start = 0
  for k, size in enumerate(cuts(parts[0].size, n)):
    bounds, start = ((start, start + size),), start + size
    total = flat[k].shrink(bounds)
    for step in range(1, n):  # the device after the last one has the whole piece
      at = (k + step) % n
      total = together(total.copy_to(devices[at]), flat[at].shrink(bounds))
    total = total.contiguous()
    done = {(k + n - 1) % n: total}
    for step in range(n - 1):
      at = (k + step) % n
      done[at] = total = total.copy_to(devices[at])
    for at in range(n): pieces[at].append(done[at])
  return tuple(joined(p, 0, d).reshape(shape) for p, d in zip(pieces, devices))


# ---- operands side by side

def _recut(value: Spread, devices: tuple[str, ...], axis: int | None, sizes: Sequence[int]) -> Parts:
  """The value cut along an axis in parts of these sizes; whole on each device for None. What is on no device (numbers)
  is as good as on all."""
  if isinstance(value, UOp): value = Parts((value,) * len(devices), devices, None)
  if value.axis == axis and (axis is None or value.sizes == tuple(sizes)): return value
  if value.axis is not None: value = Parts(tuple(whole(value, d) for d in devices), devices, None)
  if axis is None: return value
  nodes, start = [], 0
  for p, size in zip(value.nodes, sizes):
    nodes.append(p.shrink(tuple((start, start + size) if i == axis else (0, n) for i, n in enumerate(p.shape))))
    start += size
  return Parts(tuple(nodes), devices, axis)


def _fitting(u: UOp, value: Spread) -> Spread:
  """A source in its node's shape: memory is in the one that it was cut in."""
  return value if isinstance(value, UOp) or value.shape == u.shape else _reshaped(value, u.shape)


def _side_by_side(u: UOp, src: Sequence[Spread], devices: tuple[str, ...], axis: int | None,
                  sizes: Sequence[int]) -> Parts:
  """The node for each part of its sources."""
  rows = [_recut(s, devices, axis, sizes) for s in src]
  return Parts(tuple(u.replace(src=nodes) for nodes in zip(*(r.nodes for r in rows))), devices, axis)


# ---- operations

def _parts(u: UOp, given: Sequence[Spread]) -> Parts:
  """A node on a group of devices."""
  devices = members(str(u.device))
  if not all(type(n) is int for n in u.shape):  # launches decide a size: no axis is cut
    given = [s if isinstance(s, UOp) else _recut(_fitting(v, s), devices, None, ()) for v, s in zip(u.src, given)]
  if u.op is Ops.DEVICE: return Parts(tuple(u.replace(arg=d) for d in devices), devices, None)
  if u.op is Ops.RESHAPE and isinstance(given[0], Parts): return _reshaped(given[0], u.arg)
  src = [_fitting(s, v) for s, v in zip(u.src, given)]
  if u.op is Ops.SHARD or u.op is Ops.COPY: return _placed(u, src[0], devices)
  if u.op is Ops.DETACH or u.op is Ops.GATHER: return _recut(src[0], devices, *_cut_of(src[:1]))  # no gradients now
  if u.op in GroupOp.MOVEMENT:
    assert isinstance(src[0], Parts)
    return _moved(u, src[0])
  if u.op is Ops.REDUCE_AXIS:
    value = src[0]
    assert isinstance(value, Parts)
    op, axes = u.arg
    if value.axis not in axes: return value.each(lambda p: p.reduce(op, axes), value.axis)
    sums = [p.reduce(op, axes) for p in value.nodes]
    return Parts(all_reduce(sums, devices, lambda a, b: a.alu(op, b)), devices, None)
  axis, sizes = _cut_of(src[:1] if u.op is Ops.ASSIGN else src)
  if u.op is Ops.SCATTER and (axis is None or axis == u.arg.axis or len({s.shape[axis] for s in u.src}) > 1):
    axis = None  # an order of all values is asked for, and each device does it for itself
  return _side_by_side(u, src, devices, axis, sizes)


def _cut_of(src: Sequence[Spread]) -> tuple[int | None, tuple[int, ...]]:
  """The axis along which some source is cut, and the sizes."""
  found = next((s for s in src if isinstance(s, Parts) and s.axis is not None), None)
  return (None, ()) if found is None else (found.axis, found.sizes)


def _placed(u: UOp, value: Spread, devices: tuple[str, ...]) -> Parts:
  """COPY or SHARD to a group."""
  axis: int | None = u.arg[1] if u.op is Ops.SHARD else value.axis if isinstance(value, Parts) else None
  assert axis is None or all(type(n) is int for n in u.shape), "a size that launches decide is not cut"
  sizes = () if axis is None else cuts(u.shape[axis], len(devices))
  if isinstance(value, Parts):
    if value.devices == devices: return value if u.op is Ops.COPY else _recut(value, devices, axis, sizes)
    if value.axis == axis and len(value.devices) == len(devices):
      return Parts(tuple(p if p.device == d else p.copy_to(d) for p, d in zip(value.nodes, devices)), devices, axis)
    value = whole(value, value.devices[0])
  cut = _recut(value, devices, axis, sizes)
  return Parts(tuple(p if p.device == d else p.copy_to(d) for p, d in zip(cut.nodes, devices)), devices, axis)


def _reshaped(value: Parts, new: tuple[int, ...]) -> Parts:
  """Each part reshaped where they follow each other along an axis of the new shape too."""
  if value.axis is None: return value.each(lambda p: p.reshape(new), None)
  old, axis = value.shape, value.axis
  outer, inner = math.prod(old[:axis]), math.prod(old[axis + 1:])
  for at in range(len(new)):
    below = math.prod(new[at + 1:])
    if math.prod(new[:at]) != outer or not below or any(s * inner % below for s in value.sizes): continue
    return Parts(tuple(p.reshape((*new[:at], s * inner // below, *new[at + 1:]))
                       for p, s in zip(value.nodes, value.sizes)), value.devices, at)
  return _recut(value, value.devices, None, ()).each(lambda p: p.reshape(new), None)


def _moved(u: UOp, value: Parts) -> Parts:
  """A movement other than RESHAPE."""
  axis, arg, op = value.axis, u.arg, u.op
  if axis is None: return value.each(lambda p: u.replace(src=(p,)), None)
  if op is Ops.PERMUTE: return value.each(lambda p: p.permute(arg), arg.index(axis))
  if op is Ops.EXPAND: return value.each(lambda p: p.expand((*arg[:axis], p.shape[axis], *arg[axis + 1:])), axis)
  def along(row: tuple[tuple[int, int], ...], own: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    return (*row[:axis], own, *row[axis + 1:])
  if op is Ops.PAD:
    before, after = arg[axis]
    last = len(value.nodes) - 1
    return Parts(tuple(p.pad(along(arg, (before * (k == 0), after * (k == last)))) for k, p in enumerate(value.nodes)),
                 value.devices, axis)
  if op is Ops.SHRINK:
    nodes, start = [], 0
    for p, size in zip(value.nodes, value.sizes):
      own = min(max(arg[axis][0] - start, 0), size), min(max(arg[axis][1] - start, 0), size)
      start += size
      if own[0] == own[1]: break
      nodes.append(p.shrink(along(arg, own)))
    else: return Parts(tuple(nodes), value.devices, axis)
  if op is Ops.FLIP and not arg[axis]: return value.each(lambda p: p.flip(arg), axis)
  return _recut(value, value.devices, None, ()).each(lambda p: u.replace(src=(p,)), None)
