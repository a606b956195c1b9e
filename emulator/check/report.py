"""Findings of the checks: what, where, and how often; as one line each and as JSON."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from tinyhw.core.errors import HazardFound

LIMIT: Final = 200  # distinct findings that a report keeps
SHOWN: Final = 5  # findings that an error's text holds

KINDS: Final[dict[str, str]] = {
  "wait": "a register that an outstanding load, message or scalar load has yet to write is used or overwritten "
          "(missing s_waitcnt, s_wait_*); PTX: what cp.async or wgmma has under way (missing wait_group, wgmma.fence)",
  "wait-states": "two instructions of gfx942 or gfx90a stand closer together than its tables of wait states allow "
                 "(missing s_nop)",
  "race": "two waves of a workgroup touch the same bytes of LDS or global memory, at least one changes them, and no "
          "barrier or atomic orders them",
  "workgroup-race": "two workgroups of a dispatch touch the same bytes of global memory, at least one writes, and not "
                    "both do it atomically (only when asked for by name: much that orders workgroups is not seen)",
  "undefined": "an address, a branch, EXEC or a value stored to global memory depends on a register, LDS, scratch or "
               "device memory that nobody has written",
  "bounds": "an access to LDS beyond the workgroup's, or behind the end of an array, in the rest of its last page "
            "(past that it is a page fault, or another array)",
  "barrier": "waves of a workgroup stand at different barriers, or some have ended while others wait at one; PTX: "
             "threads of a warp come to an aligned barrier apart",
  "occupancy": "the kernel asks for more registers or scratch than a wave has, or a workgroup of its waves fits no "
               "compute unit: no chip begins it; PTX: more shared memory than ptxas takes, or than a block has, more "
               "local memory than a thread has",
  "mask": "PTX: a thread executes a .sync instruction whose mask leaves it out, or threads name different masks",
  "bank": "PTX: an access to shared memory takes more cycles than it would without bank conflicts (only when asked for "
          "by name)",
}
DEFAULT: Final = frozenset(KINDS) - {"workgroup-race", "bank"}


@dataclass(frozen=True)
class Finding:
  """One finding, of the first time that it occurred.

  `pc` is the instruction at which it shows, `other_pc` the one that it is about (the load, the other access, the other
  barrier), if there is one; `entry` is the kernel's first PC. `workgroup` counts x fastest, `wave` within it, `lane`
  within that. `register` is the vendor's name, `address` bytes of the segment. `count` is how often it occurred. `line`
  and `other_line` are the instructions' lines of the source, as "bugs.c:5: out[i] = x;", where they are known. `hint`
  says what to do, where that is not plain. `place` and `other_place` say where they are
  where a PC means nothing: "PTX:21".
  """
  kind: str
  message: str
  pc: int
  instruction: str
  entry: int
  other_pc: int | None = None
  other_instruction: str | None = None
  workgroup: int | None = None
  wave: int | None = None
  lane: int | None = None
  register: str | None = None
  address: int | None = None
  count: int = 1
  line: str | None = None
  other_line: str | None = None
  hint: str | None = None
  place: str | None = None
  other_place: str | None = None

  @property
  def at(self) -> str:
    """"+0x0040" from the kernel's entry, or "PTX:21"."""
    return self.place or f"+{self.pc - self.entry:#06x}"

  @property
  def other_at(self) -> str:
    """The same of the other instruction."""
    return self.other_place or f"+{(self.other_pc or self.entry) - self.entry:#06x}"

  def __str__(self) -> str:
    text = f"{self.kind}: {self.message}: '{self.instruction}' at {self.place or f'+{self.pc - self.entry:#x}'}"
    if self.line: text += f" ({self.line})"
    if self.other_pc is not None:
      text += f", '{self.other_instruction}' at {self.other_place or f'+{self.other_pc - self.entry:#x}'}"
    if self.other_line: text += f" ({self.other_line})"
    where = [f"{name} {value}" for name in ("workgroup", "wave", "lane") if (value := getattr(self, name)) is not None]
    if where: text += f"; {' '.join(where)}"
    return f"{text} ({self.count:,} times)" if self.count > 1 else text

  def row(self) -> dict[str, Any]:
    """The finding as plain values, for JSON."""
    return asdict(self)


@dataclass
class Report:
  """Findings, one for each kind and pair of PCs, in the order of their first occurrence; `more` were not kept."""
  more: int = 0
  unseen: set[str] = field(default_factory=set)  # what the checks could not see in these dispatches
  _found: dict[tuple[Any, ...], Finding] = field(default_factory=dict)

  def add(self, finding: Finding) -> None:
    """Keep a finding, or count one more of the same."""
    key = finding.kind, finding.pc, finding.other_pc, finding.entry
    known = self._found.get(key)
    if known is not None: self._found[key] = replace(known, count=known.count + finding.count)
    elif len(self._found) < LIMIT: self._found[key] = finding
    else: self.more += finding.count

  def leave_out(self, other: Report) -> None:
    """Forget what another report has."""
    for key in other._found: self._found.pop(key, None)
    self.unseen -= other.unseen

  def __iter__(self) -> Iterator[Finding]: return iter(self._found.values())

  def __len__(self) -> int: return len(self._found)

  def __str__(self) -> str:
    lines = [str(f) for f in self]
    return "\n".join(lines + ([f"and {self.more:,} more"] if self.more else []))

  def hints(self) -> list[str]:
    """What to do about the findings, each hint once."""
    return list(dict.fromkeys(f.hint for f in self if f.hint))

  def error(self, hint: str) -> HazardFound:
    """The findings as an error: the first one in its first line, the others, and hints, each in a line of its own."""
    shown = [str(f) for f in self][:SHOWN]
    left = len(self) - len(shown) + self.more
    facts = [*shown[1:], *([f"and {left:,} more"] if left else []), *self.hints()]
    count = f"{len(self)} hazard{'s' if len(self) > 1 else ''}"
    return HazardFound(f"the checks found {count}: {shown[0]}", self.rows(), hint=hint, facts=facts)

  def rows(self) -> list[dict[str, Any]]:
    """The findings as plain values, for JSON."""
    return [f.row() for f in self]
