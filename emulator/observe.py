"""What can be seen of a dispatch while the reference interpreter runs it: instructions, accesses, barriers, ends.

An observer slows the run down by about one Python call an instruction and group; without one nothing is paid.

The hazard checks, the report and the debugger's records are observers. Dispatches run turn about,
so what is kept of one is kept by an observer of its own, which `Observer.dispatch` returns.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
  from tinyhw.core.memory import AddressSpace
  from tinyhw.emulator.simt import Cohort, Group, Stats


@dataclass(frozen=True, slots=True)
class Access:
  """What one instruction does to one kind of memory, about to happen.

  `segment` is "global", "lds", "scratch", "gds" or "scalar", `kind` "load", "store" or "atomic". `addresses` (u64) and
  `active` (bool) are [waves, lanes], of a scalar access [waves, 1]; only active elements touch memory. Addresses count
  bytes of the GPU's address space, of the workgroup's LDS, of the lane's own scratch, or of the global data share.
  `width` is in bytes.
  """
  segment: str
  kind: str
  addresses: Any
  width: int
  active: Any
  data: Any = None  # of some stores: bytes [waves, lanes, width], u8


@dataclass(frozen=True, slots=True)
class Copy:
  """What one thread has an instruction do to memory in bulk, about to happen: `width` bytes at each of `addresses`.

  `row` and `lane` are the thread's place in its group; `segment` is "global" or "lds", `kind` "load" or "store".
  Addresses are u64; of LDS `block` is the workgroup in the cohort whose memory it is, and addresses count from its
  start. `how` says when it is done: "" at once, "bulk_group" when the thread waits for its group, "mbarrier" when one
  is told, "wgmma" for reads of a product of matrices. `atomic`: of what is combined, element by element, with what
  others may combine there too. `data` are the bytes that are stored, one address' behind the other's, where they are
  known.
  """
  row: int
  lane: int
  segment: str
  kind: str
  addresses: Any
  width: int
  block: int = 0
  how: str = ""
  atomic: bool = False
  data: Any = None


OBSERVED: Final = 1_000_000  # instructions of a wave before a dispatch that is observed counts as endless: a minute


class Observer:
  """Override what you want to see. An exception that a method raises stops the dispatch and reaches its caller."""

  def proven(self, launch: Any, watchdog: int, always: bool) -> Stats | None:
    """Asked before a dispatch (an `emulator.amdgcn.launch.Workgroups` or `emulator.ptx.launch.grid.Grid`), where
    compiled code may run: what it did, if the observer has had it run to its end in a way that shows that there is
    nothing to see, else None. `always`: wherever that can be, not only where it pays."""
    return None

  def dispatch(self, space: AddressSpace, arch: Any, d: Any) -> Observer | None:
    """A dispatch begins; `d` is an `emulator.amdgcn.Dispatch` and `arch` an `Arch`, or they are an
    `emulator.ptx.launch.grid.Dispatch` and an `NvArch`. Returns who sees the rest of it, None: this observer.

    Other dispatches may run meanwhile, on other queues and cards, turn about: an observer that keeps something of one
    dispatch returns another observer for each.
    """
    return None

  def cohort(self, cohort: Cohort) -> None:
    """Workgroups that run together have their first registers; they run next, or after others have had turns."""

  def before(self, group: Group, pc: int, instruction: Any) -> None:
    """The waves of `group` execute the instruction at `pc` next; their registers are those that it reads."""

  def after(self, group: Group, pc: int, instruction: Any) -> None:
    """They have executed it; their registers hold its results. Where they go on is not known yet."""

  def access(self, group: Group, pc: int, instruction: Any, access: Access) -> None:
    """The instruction touches memory next, between its `before` and `after`; it may do so several times."""

  def outside(self, group: Group, pc: int, instruction: Any, access: Access) -> None:
    """Lanes of the instruction are beyond the workgroup's LDS: they load 0 and store nothing."""

  def copied(self, group: Group, pc: int, instruction: Any, copy: Copy) -> None:
    """One thread moves or reads bytes in bulk next; an instruction may do so for several threads."""

  def told(self, group: Group, rows: Any, token: Any, how: str = "") -> None:
    """What these waves of the group (indices, None: all) have done so far comes before what others do that have `heard`
    the token. `how` "copies" says it of their copies under way instead, "bulk" of the copy just `copied`, "relaxed" of
    what they had done when they came to their last fence."""

  def complete(self, cohort: Cohort, token: Any) -> None:
    """What the token has been told so far may be heard from now on: a phase of a barrier has ended."""

  def heard(self, group: Group, rows: Any, token: Any) -> None:
    """These waves go on behind what the token has been told in the phases that have ended."""

  def barrier(self, group: Group, pc: int) -> None:
    """The waves have executed the barrier at `pc` and wait there, or go on at once when they are the last ones."""

  def released(self, cohort: Cohort, workgroups: Any) -> None:
    """Every living wave of these workgroups (their numbers in the cohort) stands at a barrier; they go on."""

  def ended(self, group: Group) -> None:
    """The waves of the group have ended."""

  def end(self, stats: Stats) -> None:
    """The dispatch has run to its end without a fault."""


class Several(Observer):
  """Shows everything to several observers, one after the other."""

  def __init__(self, observers: Sequence[Observer]) -> None: self.observers = tuple(observers)

  def dispatch(self, space: AddressSpace, arch: Any, d: Any) -> Observer:
    return Several([o.dispatch(space, arch, d) or o for o in self.observers])

  def cohort(self, cohort: Cohort) -> None:
    for o in self.observers: o.cohort(cohort)

  def before(self, group: Group, pc: int, instruction: Any) -> None:
    for o in self.observers: o.before(group, pc, instruction)

  def after(self, group: Group, pc: int, instruction: Any) -> None:
    for o in self.observers: o.after(group, pc, instruction)

  def access(self, group: Group, pc: int, instruction: Any, access: Access) -> None:
    for o in self.observers: o.access(group, pc, instruction, access)

  def outside(self, group: Group, pc: int, instruction: Any, access: Access) -> None:
    for o in self.observers: o.outside(group, pc, instruction, access)

  def copied(self, group: Group, pc: int, instruction: Any, copy: Copy) -> None:
    for o in self.observers: o.copied(group, pc, instruction, copy)

  def told(self, group: Group, rows: Any, token: Any, how: str = "") -> None:
    for o in self.observers: o.told(group, rows, token, how)

  def complete(self, cohort: Cohort, token: Any) -> None:
    for o in self.observers: o.complete(cohort, token)

  def heard(self, group: Group, rows: Any, token: Any) -> None:
    for o in self.observers: o.heard(group, rows, token)

  def barrier(self, group: Group, pc: int) -> None:
    for o in self.observers: o.barrier(group, pc)

  def released(self, cohort: Cohort, workgroups: Any) -> None:
    for o in self.observers: o.released(cohort, workgroups)

  def ended(self, group: Group) -> None:
    for o in self.observers: o.ended(group)

  def end(self, stats: Stats) -> None:
    for o in self.observers: o.end(stats)
