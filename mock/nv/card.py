"""The cards that the mock has: what RM says of a chip, by the name of its compute capability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tinyhw.arch.nv import NvArch, nv_arch
from tinyhw.autogen import nv_rm_chips as chips
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.lazy import cached_property
from tinyhw.core.nearest import offered
from tinyhw.wire import qmd

VENDOR: Final = 0x10DE  # NVIDIA among makers of PCI devices (PCI_VENDOR_ID_NVIDIA of Linux)


@dataclass(frozen=True)
class Card:
  """A card of a generation: its name, PCI device, SMs and how they are grouped, memory in bytes. Bandwidth, bus and L2
  are what drivers told of such cards: of the B200 in pytorch/ao#4002, of the RTX 5090 in NVIDIA/nccl#1637, of the H200
  in torch's properties and nvidia-smi (3,201 MHz); of the others NVIDIA's white papers have them."""

  arch: NvArch
  title: str
  device_id: int
  sms: int
  gpcs: int
  tpcs_a_gpc: int
  vram_size: int
  clock_mhz: int
  bandwidth: int  # GB/s
  bus_bits: int
  l2_size: int
  lacks: frozenset[int] = frozenset()  # classes that the chip's table has and RM does not tell of
  copies: int | None = None  # copy engines that RM tells of, where these are not the table's

  @property
  def name(self) -> str:
    return self.arch.name

  @property
  def pci_id(self) -> int:
    """The dword at the beginning of the device's configuration space: vendor, and device above it."""
    return self.device_id << 16 | VENDOR

  @property
  def memory_khz(self) -> int:
    """The clock of the memory, of which each edge moves a word of the bus."""
    return self.bandwidth * 1_000_000 * 8 // (2 * self.bus_bits)

  @property
  def chip(self) -> str:
    return self.arch.chip

  @property
  def compute_class(self) -> int:
    return self.arch.compute_class

  @property
  def copy_class(self) -> int:
    return self.arch.copy_class

  @property
  def channel_class(self) -> int:
    return self.arch.channel_class

  @property
  def shared_limit(self) -> int:
    """Bytes of shared memory that a block may have, with those that the system keeps."""
    return self.arch.shared_per_block + self.arch.shared_reserved

  @property
  def qmd_versions(self) -> tuple[tuple[int, int], ...]:
    """The QMD versions that the card executes: those that its compute class has, where no card has shown which."""
    return (self.arch.qmd,) if self.arch.qmd_alone else tuple(qmd.versions(self.compute_class))

  @property
  def capability(self) -> tuple[int, int]:
    """(major, minor) of the compute capability."""
    return self.arch.version

  @cached_property
  def classes(self) -> tuple[int, ...]:
    """All classes of the chip, in RM's order, each once."""
    every = dict.fromkeys([*chips.GENERIC, *(c for c, _ in chips.CHIPS[self.chip])])
    return tuple(c for c in every if c not in self.lacks)

  def engines(self, class_id: int) -> tuple[str, ...]:
    """The engines of a class."""
    found = tuple(engine for c, engine in chips.CHIPS[self.chip] if c == class_id)
    return found[:self.copies] if class_id == self.copy_class else found

  @staticmethod
  def bus(index: int) -> int:
    """The PCI bus of the card in a slot."""
    return 1 + index


CARDS: Final = {card.name: card for card in (
  Card(nv_arch("sm_80"), "NVIDIA A100-SXM4-80GB", 0x20B2, 108, 7, 8, 80 << 30, 1410, 2039, 5120, 40 << 20),
  Card(nv_arch("sm_86"), "NVIDIA GeForce RTX 3090", 0x2204, 82, 7, 6, 24 << 30, 1695, 936, 384, 6 << 20),
  Card(nv_arch("sm_89"), "NVIDIA GeForce RTX 4090", 0x2684, 128, 11, 6, 24 << 30, 2520, 1008, 384, 72 << 20),
  Card(nv_arch("sm_90"), "NVIDIA H200", 0x2335, 132, 8, 9, 150_754_820_096, 1980, 4917, 6144, 60 << 20,
       frozenset({0xF2, 0xFC, 0x506F, 0xB0CC}), 5),  # tests/recordings/rm_sm90.json
  Card(nv_arch("sm_100"), "NVIDIA B200", 0x2901, 148, 8, 10, 180 << 30, 1965, 7672, 7680, 253 << 19),
  Card(nv_arch("sm_120"), "NVIDIA GeForce RTX 5090", 0x2B85, 170, 12, 8, 32 << 30, 2407, 1792, 512, 96 << 20),
)}


def cards_named(cards: str | Sequence[str]) -> tuple[Card, ...]:
  """"sm_90,sm_90" or names: the cards. Raises InvalidArgument for one that the mock does not have."""
  names = cards.split(",") if isinstance(cards, str) else list(cards)
  found = []
  for name in (n.strip() for n in names):
    if name not in CARDS:
      raise InvalidArgument(f"no card is called {name!r}", where="MOCKGPU", hint=offered(name, CARDS))
    found.append(CARDS[name])
  if not found:
    raise InvalidArgument("a machine without cards", where="MOCKGPU")
  return tuple(found)
