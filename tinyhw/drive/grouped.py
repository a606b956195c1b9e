"""Launches that are replayed in groups, each as one submission whose words are made once."""
from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from tinyhw.core.errors import InvalidArgument
from tinyhw.drive.base import Allocation, Dim3, Launch, Runner

LAUNCHES = 64  # of one submission; words of so many fit a ring several times


class Submission(Protocol):
  """Launches of one submission, from the launch `first` on."""
  @property
  def launches(self) -> tuple[Launch, ...]: ...
  @property
  def first(self) -> int: ...
  @property
  def generation(self) -> int:
    """Of the private memory of threads that the words name; they are made anew when there is another one."""


G = TypeVar("G", bound=Submission)


class GroupedRunner(Runner, Generic[G]):
  """A runner whose driver makes the words of groups, and submits each."""

  def __init__(self, launches: Sequence[Launch]) -> None:
    super().__init__(launches)
    self._groups: list[G] = []
    self._varied = False  # whether groups have other grids than their launches
    first = 0
    while first < len(self.launches):
      self._groups.append(self.group(first))
      first += len(self._groups[-1].launches)

  @abstractmethod
  def group(self, first: int) -> G:
    """As many of the launches from `first` on as one submission takes, at most LAUNCHES."""

  @abstractmethod
  def generation(self) -> int:
    """Of the private memory of threads that the device has now."""

  @abstractmethod
  def submit(self, group: G, memory: Sequence[Allocation], values: Sequence[Sequence[int]] | None,
             grids: Sequence[Dim3] | None) -> None:
    """Queue a group; see `Runner.__call__`. Without `grids` it is as it was made, or as the last ones were."""

  def __call__(self, memory: Sequence[Allocation], values: Sequence[Sequence[int]] | None,
               grids: Sequence[Dim3] | None = None) -> None:
    given = grids is not None
    if self._varied and grids is None: grids = [launch.grid for launch in self.launches]
    self._varied = self._varied or given  # also where a group is refused
    for n, group in enumerate(self._groups):
      if group.generation != self.generation(): group = self._groups[n] = self.group(group.first)
      self.submit(group, memory, values, grids)
    self._varied = given


def pack(packer: struct.Struct, into: memoryview | bytearray, at: int, launch: Launch, memory: Sequence[Allocation],
         values: Sequence[int]) -> None:
  """Write a launch's arguments at a byte of memory: its buffers' addresses, then the values.

  Raises InvalidArgument for a value that does not fit.
  """
  try: packer.pack_into(into, at, *[memory[b].address for b in launch.buffers], *values)
  except struct.error as e: raise InvalidArgument(f"an argument does not fit: {e}", where=launch.program.name) from None
