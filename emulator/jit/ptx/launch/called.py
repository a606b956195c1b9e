"""Functions that compiled code calls: the reference runs them, for the threads of one warp, until all are back.

What threads of several warps have to do together is for the reference alone: a call that comes to it is left half done,
and so is a warp that never comes back together.
"""
from __future__ import annotations

from typing import Any, Final

from tinyhw.core.errors import Error
from tinyhw.emulator.ptx.group import Blocks, Diverge, Meet, Warps

MANY: Final = 256  # calls of a launch, from which on the reference is quicker, which runs many warps at once
# What ends a block and is done within a warp.
_WITHIN: Final = frozenset({"bra", "brx", "ret", "call", "trap", "shfl", "vote", "match", "redux", "elect", "mma",
                            "ldmatrix", "stmatrix", "movmatrix", "wmma"})
_TICK: Final = 256  # blocks between two looks whether the launch is to end


class Call:
  """Threads of a warp in a function. `groups` are where they stand; all are `back`, or the reference is to go on."""

  def __init__(self, cohort: Blocks, group: Warps, end: Any) -> None:
    self._cohort, self._waiting = cohort, list[Warps]()
    self._running, self._done = [group], list[Warps]()
    self.instructions = 0
    self._follow(group, self._do(group, end))

  @property
  def groups(self) -> list[Warps]: return [*self._running, *self._waiting, *self._done]

  @property
  def back(self) -> bool: return not self._running and not self._waiting

  def run(self) -> None:
    """Go on until all are back, or nobody can go on here. Raises what the reference would."""
    program, count = self._cohort.program, 0
    while self._running:
      group = max(self._running, key=lambda g: (len(g.frames), -g.pc))
      block = program.block(group.pc, group.mode)
      if block.end is not None and any(i.line.instruction.opcode not in _WITHIN for i in block.instructions): return
      for step, pc in zip(block.steps, block.pcs): self._do(group, step, pc)
      after = block.next if block.end is None else self._do(group, block.end)
      group.count += block.count
      self.instructions += block.count
      if group.count > self._cohort.watchdog: self._cohort.expired(group)
      count += 1
      if self._cohort.tick is not None and not count % _TICK: self._cohort.ticks(group)
      self._follow(group, after)

  def _do(self, group: Warps, what: Any, pc: int | None = None) -> Any:
    try: return what(group)
    except (Error, IndexError) as error:
      raise self._cohort.located(error, group.pc if pc is None else pc, group) from None

  def _follow(self, group: Warps, after: Any) -> None:
    """A group goes on at a PC, parts, or waits for others of its warp."""
    self._running.remove(group)
    if isinstance(after, Diverge):
      for part in after.parts(group): self._put(self._running, part)
    elif isinstance(after, Meet):
      group.pc = after.pc
      self._waiting.append(group)
    else:
      group.pc = after
      self._put(self._running if group.frames else self._done, group)

  def _put(self, groups: list[Warps], group: Warps) -> None:
    """Add a group, to one that stands there where there is one; who waits for it there looks again."""
    for other in [*groups, *self._waiting]:
      if other.pc == group.pc and other.alike(group):
        other.join(group)
        if other in self._waiting:
          self._waiting.remove(other)
          groups.append(other)
        return
    groups.append(group)
