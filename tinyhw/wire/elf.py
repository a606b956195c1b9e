"""64-bit little-endian ELF files, read strictly: whatever a header points at must be inside the file.

Only what code objects need: sections, segments, symbols, relocations with addend, notes. The structs are generated.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from tinyhw.autogen import elf_amdgpu as elf
from tinyhw.autogen.elf_amdgpu import Elf64_Ehdr, Elf64_Nhdr, Elf64_Phdr, Elf64_Rela, Elf64_Shdr, Elf64_Sym
from tinyhw.core.errors import DecodeError
from tinyhw.core.layout import Struct

MAGIC = b"\x7fELF"
S = TypeVar("S", bound=Struct)


@dataclass(frozen=True)
class Section:
  """A row of the section table, with its name."""

  name: str
  type: int
  flags: int
  address: int
  offset: int
  size: int
  link: int
  info: int
  align: int


@dataclass(frozen=True)
class Symbol:
  """A row of a symbol table. `section` is an index or one of SHN_*."""

  name: str
  type: int
  binding: int
  section: int
  value: int
  size: int


@dataclass(frozen=True)
class Relocation:
  """Patch `offset` (in the section `info`, or an address) with kind `type`, the symbol's value and `addend`."""

  offset: int
  type: int
  symbol: int
  addend: int


class Elf:
  """A parsed file. Raises DecodeError for what is no ELF, truncated, or points outside itself."""

  def __init__(self, data: bytes) -> None:
    self.data = bytes(data)
    if not self.data.startswith(MAGIC):
      shown = self.data[:16]
      raise DecodeError(
        f"not an ELF: it begins with {shown!r}" if shown else "not an ELF: it is empty", where="code object"
      )
    self.header = self.struct(Elf64_Ehdr, 0, "ELF header")
    ident = self.header.e_ident
    if ident[elf.EI_CLASS] != elf.ELFCLASS64 or ident[elf.EI_DATA] != elf.ELFDATA2LSB:
      raise DecodeError("an ELF of 32 bits or of big-endian order", where="code object")
    self.sections = list(self._sections())
    self.segments = list(
      self._table(Elf64_Phdr, self.header.e_phoff, self.header.e_phnum, self.header.e_phentsize, "segment")
    )

  def bytes_at(self, offset: int, size: int, what: str) -> bytes:
    if offset + size > len(self.data):
      raise DecodeError(
        f"truncated ELF: {what} ends at byte {offset + size:#x}, the file has {len(self.data):#x}",
        where="code object",
      )
    return self.data[offset : offset + size]

  def struct(self, cls: type[S], offset: int, what: str) -> S:
    return cls.from_buffer_copy(self.bytes_at(offset, ctypes.sizeof(cls), what))

  def _table(self, cls: type[S], offset: int, count: int, entry: int, what: str) -> Iterator[S]:
    if count and entry != ctypes.sizeof(cls):
      raise DecodeError(f"{what} entries of {entry} bytes, expected {ctypes.sizeof(cls)}", where="code object")
    raw = self.bytes_at(offset, count * entry, f"the {what} table") if count else b""
    for i in range(count):
      yield cls.from_buffer_copy(raw, i * entry)

  def _sections(self) -> Iterator[Section]:
    header = self.header
    rows = list(self._table(Elf64_Shdr, header.e_shoff, header.e_shnum, header.e_shentsize, "section"))
    if not rows:
      return
    if header.e_shstrndx >= len(rows):
      raise DecodeError("no section names", where="code object")
    names = self._raw(rows[header.e_shstrndx], "section names")
    for row in rows:
      yield Section(
        self._string(names, row.sh_name),
        row.sh_type,
        row.sh_flags,
        row.sh_addr,
        row.sh_offset,
        row.sh_size,
        row.sh_link,
        row.sh_info,
        row.sh_addralign,
      )

  def _raw(self, row: Elf64_Shdr, what: str) -> bytes:
    return b"" if row.sh_type == elf.SHT_NOBITS else self.bytes_at(row.sh_offset, row.sh_size, what)

  @staticmethod
  def _string(table: bytes, at: int) -> str:
    end = table.find(b"\0", at)
    if end < 0:
      raise DecodeError(f"a name at {at:#x} of a string table of {len(table):#x} bytes", where="code object")
    return table[at:end].decode("utf-8", "replace")

  def contents(self, section: Section) -> bytes:
    """The section's bytes in the file; empty for one that has none there."""
    if section.type == elf.SHT_NOBITS:
      return b""
    return self.bytes_at(section.offset, section.size, f"section {section.name}")

  def linked(self, section: Section) -> Section:
    """The section that another refers to (a symbol table's strings, a relocation's symbols)."""
    if section.link >= len(self.sections):
      raise DecodeError(f"section {section.name} refers to no section", where="code object")
    return self.sections[section.link]

  def symbols(self, section: Section) -> list[Symbol]:
    """All rows of a symbol table, the empty first one included."""
    names, raw, step = self.contents(self.linked(section)), self.contents(section), ctypes.sizeof(Elf64_Sym)
    rows = (Elf64_Sym.from_buffer_copy(raw, at) for at in range(0, len(raw) - step + 1, step))
    return [
      Symbol(self._string(names, r.st_name), r.st_info & 0xF, r.st_info >> 4, r.st_shndx, r.st_value, r.st_size)
      for r in rows
    ]

  def relocations(self, section: Section) -> list[Relocation]:
    raw, step = self.contents(section), ctypes.sizeof(Elf64_Rela)
    rows = (Elf64_Rela.from_buffer_copy(raw, at) for at in range(0, len(raw) - step + 1, step))
    return [Relocation(r.r_offset, r.r_info & 0xFFFFFFFF, r.r_info >> 32, r.r_addend) for r in rows]

  def notes(self) -> Iterator[tuple[str, int, bytes]]:
    """(owner, type, contents) of each note, from sections or, without a section table, from segments."""
    places = [(s.offset, s.size) for s in self.sections if s.type == elf.SHT_NOTE]
    places = places or [(p.p_offset, p.p_filesz) for p in self.segments if p.p_type == elf.PT_NOTE]
    for offset, size in places:
      raw, at = self.bytes_at(offset, size, "a note"), 0
      while at + ctypes.sizeof(Elf64_Nhdr) <= len(raw):
        row = Elf64_Nhdr.from_buffer_copy(raw, at)
        start = at + ctypes.sizeof(Elf64_Nhdr)
        body = start + (row.n_namesz + 3 & ~3)
        if body + row.n_descsz > len(raw):
          raise DecodeError("a note passes the end of its section", where="code object")
        yield (
          raw[start : start + row.n_namesz].rstrip(b"\0").decode("ascii", "replace"),
          row.n_type,
          raw[body : body + row.n_descsz],
        )
        at = body + (row.n_descsz + 3 & ~3)
