"""Devices that hold one value together: a group has a name, "(AMD, AMD:1)", that stands where a device's would.

A group of devices is a device. A tensor on it is a graph like any other, until its schedule is
made; then `compile/spread.py` makes a graph on each member of it, with copies between them where
parts do not fit. A group's memory is a buffer on each (`GroupBuffer`). So every function, gradient,
optimizer and TinyJit works on several devices, and none knows of them.
"""
from __future__ import annotations

import math
from collections.abc import Sequence

Cut = tuple[int, tuple[int, ...]]
"""How the flat memory of a group is cut: in each of so many stretches the members' parts follow each other, with sizes
in this ratio. None in its place: each member has all of it."""


def named(members: Sequence[str]) -> str:
  """The name of some devices together; one alone has its own."""
  return members[0] if len(members) == 1 else f"({', '.join(members)})"


def is_group(device: str | None) -> bool:
  """Whether a device's name is a group's."""
  return device is not None and device[:1] == "("


def members(device: str) -> tuple[str, ...]:
  """The devices that a name stands for."""
  return tuple(device[1:-1].split(", ")) if is_group(device) else (device,)


def cut_axis(shape: tuple[int, ...], cut: Cut | None) -> int | None:
  """The axis of a shape that memory cut so is cut along, if it is one."""
  if cut is None: return None
  outer, sizes = cut
  return next((k for k, n in enumerate(shape) if n == sum(sizes) and math.prod(shape[:k]) == outer), None)


def cuts(size: int, n: int) -> tuple[int, ...]:
  """The sizes of an axis in n parts, of which the first ones are longer by one where it does not come out even."""
  each, more = divmod(size, n)
  return tuple(each + (k < more) for k in range(n))
