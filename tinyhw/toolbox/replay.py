"""Machines that a capture is replayed on: the composition of `queues.replay` with mocks and devices."""
from __future__ import annotations

from typing import Any, Final

from tinyhw.core.errors import InvalidArgument
from tinyhw.devices.mocked import mock_machine, mock_options
from tinyhw.devices.registry import system_way
from tinyhw.queues.capture import Capture

KINDS: Final = {"amd": "AMD", "nv": "NV"}


def cards_of(capture: Capture, mockgpu: str | None) -> str:
  """The mock cards that are named, or that the capture names; empty for a card's. Raises InvalidArgument for a capture
  of CUDA's calls, which no queue of a driver stands behind."""
  if capture.head.get("cuda"):
    raise InvalidArgument("holds calls of CUDA, which are not made again", where=str(capture.reader.path),
                          hint="decode, diff, lint, doctor and timeline read it")
  named = mockgpu or str(capture.head.get("mockgpu") or "")
  return "" if named == "0" else named


def machine_for(capture: Capture, mockgpu: str | None, **options: Any
                ) -> tuple[dict[str, Any], dict[str, Any], list[Any]]:
  """(ports, looks, machines) for a capture's vendors: mock cards by their names, those of the capture's own mock, or
  the machine's. `options` are a mock's, over those of the environment."""
  named = cards_of(capture, mockgpu)
  vendors = {event.vendor for event in (s.event for s in capture) if event.vendor}
  ports: dict[str, Any] = {}
  looks: dict[str, Any] = {}
  machines: list[Any] = []
  for vendor in sorted(vendors):
    if vendor not in KINDS: continue
    if not named:
      ports[vendor] = system_way(KINDS[vendor]).to
      continue
    cards = ("gfx1100",) if named == "1" and vendor == "amd" else ("sm_90",) if named == "1" else tuple(
      c.strip() for c in named.split(",") if c.strip().startswith("sm_") == (vendor == "nv"))
    if not cards:
      raise InvalidArgument(f"holds calls of {KINDS[vendor]}'s driver, and {named} is no card of it",
                            where=str(capture.reader.path), hint="cards of AMD are gfx..., those of NVIDIA sm_...")
    machine, ports[vendor] = mock_machine(KINDS[vendor], cards, **{**mock_options(), **options})
    looks[vendor] = machine.look
    machines.append(machine)
  return ports, looks, machines
