"""amdgpu's device coredump: the text of /sys/class/drm/card0/device/devcoredump/data.

The form is what Linux prints (drivers/gpu/drm/amd/amdgpu/amdgpu_dev_coredump.c, and the print_ip_state of gfx_v11_0.c,
sdma_v6_0.c and their like: a register's name, a tab, its value). Ring pointers are in dwords and may count on
beyond the ring: "RB mask" is their mask. The page fault's lines are always there; without a fault they are 0.
"""
from __future__ import annotations

import re
from typing import Final

from tinyhw.queues.foreign.dump import LONGEST, Dump, DumpedRegisters, Fault, Ring, kind_of

HEAD: Final = "**** AMDGPU Device Coredump ****"
_HUB: Final = re.compile(r"(?a)\[(\w+)\] Page fault observed")
_ADDRESS: Final = re.compile(r"Faulty page starting at address:? ?0x([0-9a-fA-F]{1,16})")
_STATUS: Final = re.compile(r"Protection fault status register: ?0x([0-9a-fA-F]{1,8})")
_TIMED_OUT: Final = re.compile(r"(?a)IP Type: (\d+) Ring Name: (\S+)")
_VERSION: Final = re.compile(r"(?a)HWIP: (\S+?)\[\d+\]\[(\d+)\]: v(\d{1,5}(?:\.\d{1,5})+)")
_NAME: Final = re.compile(r"ring name: (\S+)")
_POINTERS: Final = re.compile(r"Rptr: 0x([0-9a-fA-F]{1,16}) Wptr: 0x([0-9a-fA-F]{1,16})"
                              r"(?: RB mask: ([0-9a-fA-F]{1,8}))?")
_SIZE: Final = re.compile(r"(?a)Ring size in dwords: (\d{1,9})")
_WORD: Final = re.compile(r"0x([0-9a-fA-F]{1,8})\s+0x([0-9a-fA-F]{1,8})")
_REGISTER: Final = re.compile(r"(?a)([A-Za-z]\w*)\s+0x([0-9a-fA-F]{1,16})")
_DUMPED: Final = re.compile(r"(0x[0-9a-fA-F]{8}): 0x([0-9a-fA-F]{1,8})")
_FACT: Final = re.compile(r"(?a)([A-Za-z][\w /.\[\]-]*?)\s*: ?(.*)")
_HEADS: Final = frozenset({"Ring contents", "IP Dump", "Ring buffer information", "Ring timed out details",
                           "HW IP Version Information", "AMDGPU register dumps:", "SOC Information",
                           "SOC Memory Information", "GDS Config", "IP Firmwares", "VBIOS Information"})


def is_one(text: str) -> bool:
  """Whether a text is one: its first lines, behind what a copy may have put before them."""
  return HEAD in text[:4096]


class _Reader:
  """Lines to a `Dump`. A ring's size and mask stand before its words; a word's line is its byte offset and value."""

  def __init__(self) -> None:
    self.dump = Dump("devcoredump")
    self._ring: Ring | None = None
    self._mask = 0
    self._hub, self._at = "", 0
    self._block = ""
    self._registers: DumpedRegisters | None = None

  def line(self, number: int, text: str) -> None:
    """One line, stripped."""
    if self._ring is not None and (m := _WORD.fullmatch(text)): self._word(int(m[1], 16), int(m[2], 16))
    elif m := _NAME.fullmatch(text):
      self._ring, self._mask = Ring(m[1], kind_of(m[1]), [], line=number), 0
      self.dump.rings.append(self._ring)
    elif self._ring is not None and (m := _POINTERS.match(text)):
      self._ring.read, self._ring.write = int(m[1], 16), int(m[2], 16)
      self._mask = int(m[3], 16) if m[3] else 0
    elif self._ring is not None and (m := _SIZE.fullmatch(text)): self._sized(self._ring, int(m[1]))
    elif m := _HUB.match(text): self._hub = m[1]
    elif m := _ADDRESS.match(text): self._at = int(m[1], 16)
    elif m := _STATUS.match(text):
      if self._at or int(m[1], 16): self.dump.faults.append(Fault(self._hub, self._at, int(m[1], 16)))
    elif m := _TIMED_OUT.match(text): self.dump.timed_out = m[2]
    elif m := _VERSION.match(text):
      name = m[1] if m[2] == "0" else f"{m[1]}[{m[2]}]"
      self.dump.versions[name] = tuple(map(int, m[3].split(".")))
    else: self._other(text)

  def _word(self, offset: int, value: int) -> None:
    ring = self._ring
    assert ring is not None
    # A line that is lost leaves a gap; an offset that leads far ahead is no word of this ring.
    index = offset // 4
    if offset % 4 or index < len(ring.words) or (ring.size and index >= ring.size) or index > len(ring.words) + 4096:
      self.dump.rest.append(f"{offset:#x} {value:#x}")
      return
    ring.words += [None] * (index - len(ring.words))
    ring.words.append(value)

  def _sized(self, ring: Ring, size: int) -> None:
    ring.size = size
    if not size: return
    mask = self._mask
    # The mask is one below a power of two: with anything else the pointers wrap at the ring's end.
    ring.read = ring.read & mask if mask and mask < size else ring.read % size
    ring.write = ring.write & mask if mask and mask < size else ring.write % size

  def _other(self, text: str) -> None:
    if text.startswith("IP: "):
      self._block, self._ring = text[4:], None
      self._registers = self._begin(self._block)
    elif self._block and (m := _REGISTER.fullmatch(text)) and self._registers is not None:
      self._registers.values.append((m[1], int(m[2], 16)))
    elif m := _DUMPED.fullmatch(text):
      if not self.dump.registers or self.dump.registers[-1].where != "at reset": self._begin("at reset")
      self.dump.registers[-1].values.append((m[1], int(m[2], 16)))
    elif self._block and re.match(r"(?a)(?:xcc:?\d+ )?(?:mec|me|xcc|Instance|Active Instance)\b", text):
      self._registers = self._begin(f"{self._block}, {text}")
    elif text in _HEADS or text.replace("\t", " ").startswith("Offset"):
      if text == "Ring buffer information": self._block, self._registers = "", None
    elif m := _FACT.fullmatch(text): self.dump.facts.append((m[1], m[2]))
    elif text: self.dump.rest.append(text)

  def _begin(self, where: str) -> DumpedRegisters:
    made = DumpedRegisters(where)
    self.dump.registers.append(made)
    return made


def read(text: str) -> Dump:
  """What a coredump says."""
  reader = _Reader()
  for number, line in enumerate(text.splitlines(), 1):
    line = line.strip()
    if len(line) > LONGEST: reader.dump.rest.append(line)
    elif line and line != HEAD: reader.line(number, line)
  for ring in reader.dump.rings:
    if not ring.size: ring.read = ring.write = -1  # its pointers point into nothing that is here
  return reader.dump
