"""What a new generation has and what it lacks: the guide of `tinyhw gen new`.

It goes over the families of facts that the generation's record names, over what differs from the generation before it,
over instructions of compute code without a meaning, and over numbers that the record takes from that one. Nothing is
written: each line of it goes away when its work is done.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from tinyhw.arch import Arch, decoded
from tinyhw.core.errors import InvalidArgument
from tinyhw.emulator.amdgcn import coverage
from tinyhw.isa.amdgcn import table
from tinyhw.tools.gen import amdgcn, generations
from tinyhw.tools.gen.family import Family
from tinyhw.tools.gen.generations import Change
from tinyhw.tools.gen.sources import Sources


@dataclass(frozen=True)
class Filled:
  """A family of facts that the generation uses: its module, and how it stands: "the same", "differs", which source is
  not there, or that none were given."""

  family: str
  module: str
  stands: str


@dataclass
class Guide:
  """The guide's parts; names are sorted."""

  name: str
  before: str
  filled: list[Filled] = field(default_factory=list)
  changes: list[Change] = field(default_factory=list)
  rowless: list[str] = field(default_factory=list)
  meaningless: list[str] = field(default_factory=list)
  taken: list[str] = field(default_factory=list)
  card: bool = False
  compute: int = 0

  @property
  def done(self) -> bool:
    """Whether nothing is left for a person but to look over what was taken from the generation before."""
    return not (self.rowless or self.meaningless) and self.card and all(f.stands == "the same" for f in self.filled)


def modules(arch: Arch) -> list[str]:
  """The modules of autogen that the generation's record names."""
  packets = [f"{kind}_{given}" for kind, given in (("pm4", arch.pm4), ("sdma", arch.sdma)) if given]
  return [f"amdgcn_{arch.isa}", *packets, *([arch.registers] if arch.registers else []), "mqd", "elf_amdgpu"]


def stands(family: Family, sources: Sources, differs: Sequence[str]) -> str:
  """How a family's module stands to its sources."""
  if missing := [need for need in family.needs if not sources.has(need)]: return f"no source {missing[0]}"
  return "differs" if differs else "the same"


def rowless(arch: Arch, sources: Sources) -> list[str]:
  """Instructions that the generation's own dump has and no row can say."""
  name = amdgcn.DUMPS.get(arch.table, "")
  if not sources.given or not name or not sources.has(name): return []
  words = {amdgcn.mnemonic_of(record["asm"]) for record in amdgcn.dump(sources.find(name).path).values()}
  return sorted(words - table(arch.table).mnemonics)


def taken(arch: Arch, before: Arch) -> list[str]:
  """Numbers of the record that are those of the generation before: each needs a look at the new manual."""
  said = ((f.name, getattr(arch, f.name), getattr(before, f.name)) for f in fields(arch))
  return sorted(name for name, now, was in said if name not in generations.NAMES and now and now == was)


def cards() -> set[str]:
  """The cards of the mock."""
  from tinyhw.mock.amd.card import CARDS  # the mock, which no generator needs
  return set(CARDS)


def guide(name: str, before: str, filled: list[Filled], sources: Sources) -> Guide:
  """All of it. Raises InvalidArgument for a generation without a record, with how to write one."""
  try: arch = decoded(name)
  except InvalidArgument as e:
    raise InvalidArgument(f"{name} has no record", where="tinyhw gen new",
                          hint=f"begin with tinyhw/arch/{name}.py: replace() of {before}'s with its name, version and "
                               "ELF machine, and its name in tinyhw/arch/__init__.py") from e
  isa = table(arch.table)
  compute = coverage.compute(isa)
  found = Guide(name, before, filled, generations.changes(before, name), rowless(arch, sources),
                sorted(m for m in compute if coverage.status(m, arch.table) == "missing"),
                taken(arch, decoded(before)), name in cards(), len(compute))
  return found


def lines(g: Guide) -> Iterator[str]:
  """The guide for people: what generators filled in, what differs, what is left to write, which tests wait."""
  yield f"{g.name} from {g.before}"
  yield "1. what generators fill in"
  for f in g.filled: yield f"     autogen/{f.module}.py: {f.stands} (tinyhw gen {f.family})"
  yield f"2. what differs (tinyhw gen diff {g.before} {g.name})"
  yield from (f"     {line}" for line in generations.lines(g.changes) if not line.startswith(" "))
  yield "3. what a person writes"
  if g.rowless: yield f"     {len(g.rowless)} instructions that no row can say: {', '.join(g.rowless)}"
  yield f"     {len(g.meaningless)} of {g.compute} instructions of compute code have no meaning: refused by name"
  yield from (f"       {line}" for line in generations.wrapped(g.meaningless, 90))
  yield "     " + ("a card of the mock: there" if g.card else "a card of the mock: a row of mock/amd/card.py")
  yield f"     numbers taken from {g.before}, to be looked up in the new manual:"
  yield from (f"       {line}" for line in generations.wrapped(g.taken, 90))
  yield "4. which tests wait"
  waiting = len(g.meaningless) + len(g.rowless)
  yield (f"     tinyhw conform EMU --arch {g.name}: {g.compute - len(g.meaningless)} instructions are asked for, "
         f"{waiting} wait for their meanings" if waiting else f"     none: tinyhw conform {g.name}")


def document(g: Guide) -> dict[str, Any]:
  """The guide for programs."""
  return {"generation": g.name, "from": g.before, "done": g.done,
          "filled": [{"family": f.family, "module": f.module, "stands": f.stands} for f in g.filled],
          "changes": generations.document(g.before, g.name, g.changes)["changes"], "no_row": g.rowless,
          "no_meaning": g.meaningless, "taken": g.taken, "card": g.card, "compute": g.compute}
