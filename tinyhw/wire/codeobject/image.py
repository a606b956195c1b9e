"""The memory image of a file: as a linker has placed its parts, or an object's sections laid out."""
from __future__ import annotations

from dataclasses import replace

from tinyhw.autogen import elf_amdgpu as elf
from tinyhw.autogen.elf_amdgpu import R_AMDGPU
from tinyhw.core.errors import DecodeError, Unsupported
from tinyhw.wire.codeobject.identity import WHERE
from tinyhw.wire.codeobject.model import PAGE, Segment
from tinyhw.wire.codeobject.relocations import THROUGH_GOT, Fixup, relocate
from tinyhw.wire.elf import Elf, Relocation, Symbol

IMAGE_LIMIT = 1 << 28  # bytes; a header that asks for more is taken for damage

# image, symbols, segments, fixups, places of an object's sections
Loaded = tuple[bytearray, dict[str, int], tuple[Segment, ...], tuple[Fixup, ...], dict[int, int]]


def _new_image(size: int) -> bytearray:
  if size > IMAGE_LIMIT:
    raise DecodeError(f"an image of {size:#x} bytes", where=WHERE)
  return bytearray(size)


def linked(file: Elf) -> Loaded:
  """Image, symbols, segments and fixups of a shared object: the linker has placed everything."""
  loads = [p for p in file.segments if p.p_type == elf.PT_LOAD and p.p_memsz]
  image = _new_image(max((p.p_vaddr + p.p_memsz for p in loads), default=0))
  for p in loads:
    if p.p_filesz > p.p_memsz:
      raise DecodeError("a segment is larger in the file than in memory", where=WHERE)
    image[p.p_vaddr : p.p_vaddr + p.p_filesz] = file.bytes_at(p.p_offset, p.p_filesz, "a segment")
  segments = tuple(
    Segment(p.p_vaddr, p.p_memsz, bool(p.p_flags & elf.PF_W), bool(p.p_flags & elf.PF_X)) for p in loads
  )
  tables = [s for s in file.sections if s.type in (elf.SHT_DYNSYM, elf.SHT_SYMTAB)]
  symbols = {}
  for table in tables:
    for s in file.symbols(table):
      if s.name and s.section not in (elf.SHN_UNDEF, elf.SHN_ABS) and s.type in (elf.STT_OBJECT, elf.STT_FUNC):
        symbols[s.name] = s.value
  fixups: list[Fixup] = []
  for section in file.sections:
    if section.type == elf.SHT_REL:
      raise Unsupported("relocation section", section.name, where=WHERE)
    if section.type != elf.SHT_RELA:
      continue
    names = file.symbols(file.linked(section)) if section.link else []
    for row in file.relocations(section):
      value, absolute = (0, False) if not row.symbol else _dynamic_value(names, row)
      relocate(image, fixups, row, row.offset, value, absolute)
  return image, symbols, segments, tuple(fixups), {}


def _dynamic_value(names: list[Symbol], row: Relocation) -> tuple[int, bool]:
  """(value, whether it is an address of its own) of a dynamic relocation's symbol."""
  symbol = _symbol(names, row)
  if symbol.section == elf.SHN_UNDEF:
    return _undefined(symbol), True
  return symbol.value, symbol.section == elf.SHN_ABS


def _symbol(names: list[Symbol], row: Relocation) -> Symbol:
  if row.symbol >= len(names):
    raise DecodeError(f"a relocation refers to symbol {row.symbol} of {len(names)}", where=WHERE)
  return names[row.symbol]


def _undefined(symbol: Symbol) -> int:
  """A weak symbol that nobody defines is zero; any other is an error."""
  if symbol.binding == elf.STB_WEAK:
    return 0
  raise DecodeError(f"undefined symbol {symbol.name}", where=WHERE, hint="link the object with what defines it")


def laid_out(file: Elf) -> Loaded:
  """Image, symbols, segments and fixups of a relocatable object: place its sections as a linker would."""
  kept = [
    (i, s)
    for i, s in enumerate(file.sections)
    if s.flags & elf.SHF_ALLOC and s.type in (elf.SHT_PROGBITS, elf.SHT_NOBITS) and s.size
  ]
  places: dict[int, int] = {}
  segments: list[Segment] = []
  contents: list[tuple[int, bytes]] = []
  at = 0
  for mask in (0, elf.SHF_EXECINSTR, elf.SHF_WRITE):
    group = [(i, s) for i, s in kept if s.flags & (elf.SHF_EXECINSTR | elf.SHF_WRITE) == mask]
    start = at = -(-at // PAGE) * PAGE
    for i, s in sorted(group, key=lambda row: row[1].type == elf.SHT_NOBITS):
      align = s.align or 1
      if align & align - 1 or align > IMAGE_LIMIT:
        raise DecodeError(f"alignment {align}", where=f"{WHERE} section {s.name}")
      at = places[i] = -(-at // align) * align
      if s.type == elf.SHT_PROGBITS:
        contents.append((at, file.contents(s)))
      at += s.size
      if at > IMAGE_LIMIT:
        raise DecodeError(f"an image of {at:#x} bytes", where=WHERE)
    if group:
      segments.append(Segment(start, at - start, mask == elf.SHF_WRITE, mask == elf.SHF_EXECINSTR))
  if len(places) != len(kept):
    raise DecodeError("a section is writable and executable", where=WHERE)
  tables = {i: file.symbols(s) for i, s in enumerate(file.sections) if s.type == elf.SHT_SYMTAB}
  own = -(-at // PAGE) * PAGE if segments else 0  # what follows is ours: common symbols, then a table of addresses
  common, at = _place_common(tables, own)
  got: dict[tuple[int, bool], int] = {}
  rows = _object_relocations(file, places, tables, common)
  for row, _, value, absolute in rows:
    if row.type in THROUGH_GOT and (value, absolute) not in got:
      got[value, absolute] = -(-at // 8) * 8 + 8 * len(got)
  end = max(got.values(), default=at - 8) + 8
  if end > own:
    segments.append(Segment(own, end - own, True, False))
  image = _new_image(end)
  for offset, raw in contents:
    image[offset : offset + len(raw)] = raw
  fixups: list[Fixup] = []
  for (value, absolute), slot in got.items():
    relocate(image, fixups, Relocation(slot, R_AMDGPU.ABS64, 0, 0), slot, value, absolute)
  for row, offset, value, absolute in rows:
    if row.type in THROUGH_GOT:
      row, value, absolute = replace(row, type=THROUGH_GOT[R_AMDGPU(row.type)]), got[value, absolute], False
    relocate(image, fixups, row, offset, value, absolute)
  symbols = {
    s.name: places[s.section] + s.value for table in tables.values() for s in table if s.name and s.section in places
  }
  return image, symbols | common, tuple(segments), tuple(fixups), places


def _place_common(tables: dict[int, list[Symbol]], at: int) -> tuple[dict[str, int], int]:
  """Room after the image for the symbols that are in no section yet (their value is their alignment)."""
  common: dict[str, int] = {}
  for symbol in (s for table in tables.values() for s in table if s.section == elf.SHN_COMMON):
    align = symbol.value or 1
    at = common[symbol.name] = -(-at // align) * align
    at += symbol.size
  return common, at


def _object_relocations(
  file: Elf, places: dict[int, int], tables: dict[int, list[Symbol]], common: dict[str, int]
) -> list[tuple[Relocation, int, int, bool]]:
  """(relocation, place in the image, symbol value, whether that is absolute) of each relocation of a placed section."""
  found = []
  for section in file.sections:
    if section.type == elf.SHT_REL and section.info in places:
      raise Unsupported("relocation section", section.name, where=WHERE)
    if section.type != elf.SHT_RELA or section.info not in places:
      continue
    if section.link not in tables:
      raise DecodeError(f"{section.name} has no symbol table", where=WHERE)
    for row in file.relocations(section):
      symbol = _symbol(tables[section.link], row)
      if row.offset >= file.sections[section.info].size:
        raise DecodeError(f"{section.name} patches past its section", where=WHERE)
      value, absolute = _object_value(symbol, places, common)
      found.append((row, places[section.info] + row.offset, value, absolute))
  return found


def _object_value(symbol: Symbol, places: dict[int, int], common: dict[str, int]) -> tuple[int, bool]:
  if symbol.section == elf.SHN_UNDEF:
    return _undefined(symbol), True
  if symbol.section == elf.SHN_ABS:
    return symbol.value, True
  if symbol.section == elf.SHN_COMMON:
    return common[symbol.name], False
  if symbol.section == elf.SHN_AMDGPU_LDS:
    raise Unsupported("symbol", f"{symbol.name} (LDS of another object)", where=WHERE, hint="link the objects first")
  if symbol.section not in places:
    raise DecodeError(f"symbol {symbol.name} is in no loaded section", where=WHERE)
  return places[symbol.section] + symbol.value, False
