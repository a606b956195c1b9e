"""Ladders on mock machines, in this process and up to a rung: what tests and the score share."""
from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from tests.bringup.defect import Defect, built_in
from tinyhw.bringup.climb import Climb
from tinyhw.bringup.result import BROKEN, Result
from tinyhw.cli.benches import another, bench, ladder_of
from tinyhw.devices.mocked import mock_machine

FIRST = {"AMD": "gfx1100", "NV": "sm_90"}


def climbed(vendor: str, card: str, until: str | None = None, only: tuple[str, ...] = (),
            defect: Defect | None = None, largest: int = 4 << 20,
            options: dict[str, Any] | None = None, **machine_options: Any) -> list[Result]:
  """The results of a ladder on a mock card, each life on a machine of its own; nothing is ended that hangs."""
  machines = []

  def make() -> Any:
    machine, port = mock_machine(vendor, tuple(card.split(",")), **machine_options)
    machines.append(machine)
    return bench(vendor, port, 0, largest, lambda: another(vendor, machine, 0), options or {}, mocked=True)
  with nullcontext() if defect is None else built_in(defect):
    try: return Climb(ladder_of(vendor).chosen(until, only), make, inside=True).run()
    finally:
      for machine in machines: machine.close()


def first_broken(vendor: str, defect: Defect) -> str:
  """The first broken rung with a defect, of all up to the one that it belongs to; nothing where all hold."""
  card = defect.cards[0] if defect.cards else FIRST[vendor]
  options = {"engine": "ref"}  # which has one place for what an instruction means
  if defect.memory != "strong": options["memory"] = defect.memory
  for result in climbed(vendor, card, defect.rung, defect=defect, **options):
    if result.state == BROKEN: return result.rung
  return ""
