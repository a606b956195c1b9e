"""The observer that runs the checks of whichever vendor's machine code, and keeps what they find."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tinyhw.core.errors import HazardFound, InvalidArgument
from tinyhw.core.memory import AddressSpace
from tinyhw.core.source import Spot
from tinyhw.emulator.check.part import Part
from tinyhw.emulator.check.report import DEFAULT, KINDS, Finding, Report
from tinyhw.emulator.check.vendor import hazards_of, proven
from tinyhw.emulator.observe import Observer
from tinyhw.emulator.simt import Stats


class Checker(Observer):
  """Checks every dispatch that it observes; `report` collects the findings of all of them.

  `kinds` are names of `KINDS`; those of `DEFAULT` when left out. With `fails` a dispatch that has findings raises
  HazardFound at its end. `last` is the report of the dispatch alone that began last.

  Whoever has the checker may set `spot`, which says the source line of a PC, and `used`, which says of addresses how
  many bytes from there on are in use, and by what, where the address space itself does not know it.
  """

  def __init__(self, kinds: Iterable[str] = DEFAULT, *, fails: bool = False) -> None:
    self.spot: Callable[[int], Spot | None] = lambda pc: None
    self.used: Callable[[], Mapping[int, tuple[int, str]]] = dict
    self.kinds, self.fails = frozenset(kinds), fails
    if unknown := self.kinds - KINDS.keys():
      raise InvalidArgument(f"no check is called {', '.join(sorted(unknown))}", hint=f"there are {', '.join(KINDS)}")
    self.report, self.last = Report(), Report()
    self.untold = Report()  # what no error has told yet

  def forget(self) -> None:
    """Begin with no findings."""
    self.report, self.last, self.untold = Report(), Report(), Report()

  # ---- what the parts tell

  def add(self, finding: Finding) -> None:
    """Keep a finding."""
    for report in (self.report, self.untold): report.add(finding)

  def unseen(self, text: str) -> None:
    """Say what the checks do not see of a dispatch."""
    for report in (self.report, self.untold): report.unseen.add(text)

  def failed(self, found: Report) -> HazardFound:
    """What tells of a dispatch with these findings."""
    self.untold.leave_out(found)
    return found.error("EMU_CHECK=report goes on and reports")

  def line(self, pc: int | None) -> str | None:
    """The source line of an instruction, in words, where it is known."""
    spot = None if pc is None else self.spot(pc)
    return None if spot is None else spot.told()

  # ---- what the interpreter shows

  def proven(self, launch: Any, watchdog: int, always: bool) -> Stats | None:
    if not self.kinds <= DEFAULT: return None
    self.last = Report()
    return proven(launch, watchdog, always, self)

  def dispatch(self, space: AddressSpace, arch: Any, d: Any) -> Part:
    part = hazards_of(arch, self)
    part.dispatch(space, arch, d)
    self.last = part.found
    return part


def checker(text: str) -> Checker | None:
  """What EMU_CHECK asks for: "" or "0" nothing; "1" fails a dispatch with findings, "report" only collects them.

  Names of checks after commas choose those alone: "report,race,workgroup-race". Raises InvalidArgument for others.
  """
  policy, *names = (word.strip() for word in text.split(","))
  if policy in {"", "0"} and not names: return None
  if policy not in {"1", "report"}: names.insert(0, policy)
  try: return Checker(names or DEFAULT, fails=policy != "report")
  except InvalidArgument as error: raise InvalidArgument(error.message, where=f"EMU_CHECK={text}",
                                                         hint=f"1, report, or names: {', '.join(KINDS)}") from None
