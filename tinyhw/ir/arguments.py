"""What UOps have as their `arg` where one value does not do; `tinyhw.ir.uop` says which op has which."""
from __future__ import annotations

import enum
from typing import NamedTuple

from tinyhw.ir.group import Cut
from tinyhw.ir.ops import Ops


class BufferArg(NamedTuple):
  """Identity and place of a tensor graph's memory. A `size` that launches decide: there is memory for its maximum, and
  the elements come first in it, close together. `cut`: how the members of a group share it."""
  uid: int
  device: str
  size: int
  cut: Cut | None = None


class VariableArg(NamedTuple):
  """A launch-time integer and its inclusive bounds."""
  name: str
  min: int
  max: int


class SpecialArg(NamedTuple):
  """A hardware index: `gidxN` (workgroup) or `lidxN` (work-item), and how many there are."""
  name: str
  size: int


class ScatterArg(NamedTuple):
  """How values go to their places: `op` combines them with what is there (None: they take its place). `unique`: no two
  indices of a row are alike, so that any order will do; `whole`: and each place is named. `before`: the result is what
  was at each index's place before its value went there (nothing in particular where there is no such place)."""
  axis: int
  op: Ops | None = None
  unique: bool = False
  before: bool = False
  whole: bool = False


class Axis(enum.Enum):
  """What becomes of a range of the iteration space."""
  LOOP = "loop"          # a loop of each thread
  GLOBAL = "global"      # across workgroups
  LOCAL = "local"        # across the work-items of a workgroup
  UPCAST = "upcast"      # unrolled, one copy of the values for each step
  VECTOR = "vector"      # the lanes of vectors
  REDUCE = "reduce"      # a loop that accumulates
  UNROLL = "unroll"      # an accumulation that is unrolled
  GROUP = "group"        # an accumulation across work-items, through local memory
  ORDER = "order"        # a loop whose steps load what earlier ones have stored

  __hash__ = object.__hash__


class RangeArg(NamedTuple):
  """The number of an axis in its kernel, and what it became."""
  axis: int
  kind: Axis
