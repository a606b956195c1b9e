"""UMR's listings: a ring (`umr -R NAME`), the packets of a ring or an indirect buffer (`umr -RS NAME[.]`, `--dump-ib`).

Forms (UMR's documentation, "Ring and IB Decoding" and "User Queues"; src/app/ring_read.c):

    ASIC.NAME.rptr == 512
    ASIC.NAME.ring[ 512] == 0xc0032200    r..  ...       r, w, D: the read, the write, the driver's write pointer

    Decoding IB at 0@0x0 from 0@0x0 of 257 words (type 4)
    [0@0x00000000 + 0x0004] [0xc0032200]    Opcode 0x22 [PKT3_COND_EXEC] (4 words, type: 3, hdr: 0xc0032200)
    [0@0x00000000 + 0x0008] [0x00400080]    |---> GPU_ADDR_LO32=0x400080

    IB[0@0xf500447000 + 0x0   ] = 0xc0032200 ...

The second has a line a field: a word of a packet that has none is not in it. UMR's own decoding is not read: the words
are enough.
"""
from __future__ import annotations

import re
from typing import Final

from tinyhw.queues.foreign.dump import LONGEST, Dump, Ring, kind_of

_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_HEX: Final = r"0[xX]([0-9a-fA-F]{1,16})"
_POINTER: Final = re.compile(r"(?a)(\S+?)\.(\S+)\.(rptr|wptr|drv_wptr) == (\d{1,10})")
_WORD: Final = re.compile(r"(?a)(\S+?)\.(\S+)\.ring\[\s*(\d{1,8})\s*\] == 0x([0-9a-fA-F]{1,8})\b")
_START: Final = re.compile(rf"(?a)Decoding IB at (\w+)@{_HEX} from (\w+)@{_HEX} of (\d{{1,9}}) words")
_FIELD: Final = re.compile(rf"(?a)\[(\w+)@{_HEX} \+ {_HEX}\s*\]\s*\[\s*(0x[0-9a-fA-F]{{1,16}})\s*\]\s*(.*)")
_OLD: Final = re.compile(rf"(?a)IB\[(\w+)@{_HEX} \+ {_HEX}\s*\] = 0x([0-9a-fA-F]{{1,8}})\b(.*)")
_LLVM: Final = re.compile(r"(?a)gfx(\d{1,2})([0-9a-f])([0-9a-f])")
_ENDS: Final = frozenset({"", "Done decoding IB", "End of IB"})
_LEAST: Final = 64  # dwords; amdgpu has rings of 1024 and more
_FAR: Final = 1 << 17  # bytes between two lines of one listing: no packet has so many
_PACKET3: Final = re.compile(r"(?a)Opcode 0x[0-9a-f]+ \[\S+\] \(\d+ words, type: 3")


def is_one(text: str) -> bool:
  """Whether a text is one."""
  plain = _COLOUR.sub("", text[:65536])
  return any(p.search(plain) for p in (_WORD, _START, _OLD))


class _Reader:
  """Lines to a `Dump`. Bytes of a listing are gathered by offset: fields are of 2, 4 and 8 bytes."""

  def __init__(self) -> None:
    self.dump = Dump("umr")
    self._rings: dict[str, Ring] = {}
    self._bytes: dict[int, tuple[int, int]] = {}  # offset -> (size, value), of the listing that is open
    self._open: Ring | None = None
    self._at: tuple[str, int] = "", 0

  def line(self, number: int, text: str) -> None:
    if m := _POINTER.match(text):
      ring = self._ring(m[2], number)
      setattr(ring, {"rptr": "read", "wptr": "write", "drv_wptr": "driver_write"}[m[3]], int(m[4]))
      if not self.dump.facts: self._asic(m[1])
    elif m := _WORD.match(text): self._word(self._ring(m[2], number), int(m[3]), int(m[4], 16))
    elif m := _START.match(text): self._begin(m[1], int(m[2], 16), number)
    elif m := _FIELD.match(text): self._field(m[1], int(m[2], 16), int(m[3], 16), m[4], m[5], number)
    elif m := _OLD.match(text): self._field(m[1], int(m[2], 16), int(m[3], 16), "0x" + m[4].zfill(8), m[5], number)
    elif text: self.dump.rest.append(text)

  def _asic(self, name: str) -> None:
    """The card's name: for newer ones LLVM's, which says the version of its core."""
    self.dump.facts.append(("asic", name))
    if m := _LLVM.fullmatch(name): self.dump.versions["GC"] = int(m[1]), int(m[2], 16), int(m[3], 16)

  def _ring(self, name: str, number: int) -> Ring:
    if name not in self._rings:
      self._rings[name] = Ring(name, kind_of(name), [], line=number)
      self.dump.rings.append(self._rings[name])
    return self._rings[name]

  def _word(self, ring: Ring, index: int, value: int) -> None:
    if not ring.words: ring.first = index
    if index < ring.first + len(ring.words) and not ring.size: ring.size = ring.first + len(ring.words)  # it wraps
    ring.words.append(value)

  def _begin(self, vmid: str, address: int, number: int) -> None:
    self.close()
    self._at = vmid, address
    self._open = Ring(f"IB {vmid}@{address:#x}", "", [], address=address, line=number)
    self.dump.rings.append(self._open)

  def _field(self, vmid: str, address: int, offset: int, digits: str, text: str, number: int) -> None:
    if self._open is None or self._at != (vmid, address): self._begin(vmid, address, number)
    assert self._open is not None
    size = {4: 2, 8: 4, 16: 8}.get(len(digits) - 2, 4)
    if "[HSA_" in text: self._open.kind, size = "aql", 2  # printed with 8 digits, and 2 bytes of the packet
    elif not self._open.kind and "Sub-Opcode" in text: self._open.kind = "sdma"
    elif not self._open.kind and (_PACKET3.match(text) or "PKT3" in text): self._open.kind = "pm4"
    if offset > max(self._bytes, default=0) + _FAR or offset % 2: self.dump.rest.append(text)
    else: self._bytes[offset] = size, int(digits, 16)

  def close(self) -> None:
    """The words of the listing that is open: those of which each byte is known."""
    if self._open is not None and self._bytes:
      end = max(at + size for at, (size, _) in self._bytes.items()) + 3 & ~3
      raw, known = bytearray(end), bytearray(end)
      for at, (size, value) in self._bytes.items():
        raw[at:at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
        known[at:at + size] = b"\1" * size
      words = memoryview(raw[:end]).cast("I").tolist()
      self._open.words = [w if all(known[4 * i:4 * i + 4]) else None for i, w in enumerate(words)]
    self._open, self._bytes = None, {}


def read(text: str) -> Dump:
  """What a listing says."""
  reader = _Reader()
  for number, line in enumerate(_COLOUR.sub("", text).splitlines(), 1):
    if len(line) > LONGEST: reader.dump.rest.append(line)
    elif line.strip() not in _ENDS: reader.line(number, line.strip())
  reader.close()
  for ring in reader.dump.rings:
    # A ring is a power of two and no small one: a listing that begins at 0 and ends at one is all of it.
    n = len(ring.words)
    if ring.address < 0 and not ring.size and not ring.first and n >= _LEAST and not n & n - 1: ring.size = n
    if ring.size and max(ring.read, ring.write, ring.driver_write) >= ring.size: ring.size = 0
  return reader.dump
