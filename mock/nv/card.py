"""The cards that the mock has: what RM says of a chip, by the name of its compute capability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tinyhw.autogen import nv_rm_chips as chips
from tinyhw.core.errors import InvalidArgument

_COMPUTE: Final = 0xC0
_COPY: Final = 0xB5
_CHANNEL: Final = 0x6F


@dataclass(frozen=True)
class Card:
  """A card: `chip` is RM's name of it, sizes are bytes. `qmd_versions` are those that its compute class takes."""

  name: str
  title: str
  chip: str
  device_id: int
  sms: int
  gpcs: int
  tpcs_a_gpc: int
  vram_size: int
  shared_limit: int
  clock_mhz: int
  qmd_versions: tuple[tuple[int, int], ...]
  compute_class: int
  copy_class: int
  channel_class: int

  @property
  def capability(self) -> tuple[int, int]:
    """(major, minor) of the compute capability."""
    digits = self.name.removeprefix("sm_")
    return int(digits[:-1]), int(digits[-1])

  @property
  def classes(self) -> tuple[int, ...]:
    """All classes of the chip, in RM's order, each once."""
    return tuple(dict.fromkeys([*chips.GENERIC, *(c for c, _ in chips.CHIPS[self.chip])]))

  def engines(self, class_id: int) -> tuple[str, ...]:
    """The engines of a class."""
    return tuple(engine for c, engine in chips.CHIPS[self.chip] if c == class_id)

  @staticmethod
  def bus(index: int) -> int:
    """The PCI bus of the card in a slot."""
    return 1 + index


CARDS: Final = {card.name: card for card in (
  Card("sm_80", "NVIDIA A100-SXM4-80GB", "GA100", 0x20B2, 108, 7, 8, 80 << 30, 164 << 10, 1410,
       ((2, 3), (2, 4), (3, 0)), 0xC6C0, 0xC6B5, 0xC56F),
  Card("sm_86", "NVIDIA GeForce RTX 3090", "GA102", 0x2204, 82, 7, 6, 24 << 30, 100 << 10, 1695,
       ((2, 3), (2, 4), (3, 0)), 0xC7C0, 0xC7B5, 0xC56F),
  Card("sm_89", "NVIDIA GeForce RTX 4090", "AD102", 0x2684, 128, 11, 6, 24 << 30, 100 << 10, 2520, ((2, 4), (3, 0)),
       0xC9C0, 0xC7B5, 0xC56F),
  Card("sm_90", "NVIDIA H200", "GH100", 0x2335, 132, 8, 9, 141 << 30, 228 << 10, 1980, ((3, 0), (4, 0)),
       0xCBC0, 0xC8B5, 0xC86F),
  Card("sm_100", "NVIDIA B200", "GB100", 0x2901, 148, 8, 10, 180 << 30, 228 << 10, 1965, ((4, 1), (5, 0)),
       0xCDC0, 0xC9B5, 0xC96F),
  Card("sm_120", "NVIDIA GeForce RTX 5090", "GB202", 0x2B85, 170, 12, 8, 32 << 30, 100 << 10, 2407, ((4, 1), (5, 0)),
       0xCEC0, 0xCAB5, 0xCA6F),
)}


def cards_named(cards: str | Sequence[str]) -> tuple[Card, ...]:
  """"sm_90,sm_90" or names: the cards. Raises InvalidArgument for one that the mock does not have."""
  names = cards.split(",") if isinstance(cards, str) else list(cards)
  found = []
  for name in (n.strip() for n in names):
    if name not in CARDS:
      raise InvalidArgument(f"no card is called {name!r}", where="MOCKGPU", hint=f"there are {', '.join(CARDS)}")
    found.append(CARDS[name])
  if not found:
    raise InvalidArgument("a machine without cards", where="MOCKGPU")
  return tuple(found)
