"""Debug information (DWARF 4 and 5, as `clang -g` writes it): reading it, and what it says of a kernel's parameters.

`lines.py` has the line table and scopes, `locations.py` where variables are.
"""
from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, Final

from tinyhw.autogen import elf_amdgpu as elf
from tinyhw.autogen.elf_amdgpu import R_AMDGPU
from tinyhw.wire.ctype import CType
from tinyhw.wire.elf import Elf

_ABSOLUTE: Final = {R_AMDGPU.ABS32: 4, R_AMDGPU.ABS64: 8}
_ALIASES: Final = frozenset({
  "DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type", "DW_TAG_restrict_type", "DW_TAG_atomic_type"})
_POINTERS: Final = frozenset({
  "DW_TAG_pointer_type", "DW_TAG_reference_type", "DW_TAG_rvalue_reference_type"})
_AGGREGATES: Final = frozenset({"DW_TAG_structure_type", "DW_TAG_class_type", "DW_TAG_union_type"})
DEEPEST: Final = 16
# Encodings of base types (DWARF 5, section 5.1.1): the kinds that NumPy has
_ENCODINGS: Final = {0x02: "b", 0x03: "c", 0x04: "f", 0x05: "i", 0x06: "i", 0x07: "u", 0x08: "u", 0x10: "u"}


def parameters(data: bytes, function: str) -> list[tuple[str, CType]] | None:
  """(name, type) of each parameter of a function, by its symbol; None where there is no debug information of it."""
  try:
    info = open_dwarf(data, {})
    if info is None: return None
    for unit in info.iter_CUs():
      for die in unit.iter_DIEs():
        if die.tag == "DW_TAG_subprogram" and _is_called(die, function):
          return [(text_of(attribute_of(p, "DW_AT_name")), ctype(target_of(p, "DW_AT_type")))
                  for p in die.iter_children() if p.tag == "DW_TAG_formal_parameter"]
  except Exception:  # what describes the code may be damaged in any way; the code runs without it
    return None
  return None


def open_dwarf(data: bytes, places: Mapping[int, int]) -> Any:
  """pyelftools' DWARFInfo of a code object; None without debug information.

  `places` are where the sections of an object file are put, by their indices; without them all are at 0.
  """
  file = Elf(data)
  if not any(s.name in {".debug_info", ".zdebug_info"} for s in file.sections): return None
  from elftools.elf.elffile import ELFFile  # slow to import: only for a file that it can read
  info = ELFFile(io.BytesIO(file.data)).get_dwarf_info(relocate_dwarf_sections=False)
  if file.header.e_type == elf.ET_REL: _relocate(file, info, places)
  return info


def _relocate(file: Elf, info: Any, places: Mapping[int, int]) -> None:
  """Apply the relocations of the debug sections, as pyelftools has them in memory (decompressed)."""
  from elftools.dwarf.dwarfinfo import DebugSectionDescriptor as DebugSection
  streams: dict[str, Any] = {part.name: part.stream for part in vars(info).values() if isinstance(part, DebugSection)}
  for section in file.sections:
    if section.type != elf.SHT_RELA: continue
    name = file.sections[section.info].name
    stream = streams.get(name.replace(".zdebug_", ".debug_"))
    if stream is None: continue
    data, symbols = bytearray(stream.getvalue()), file.symbols(file.linked(section))
    for row in file.relocations(section):
      width = _ABSOLUTE.get(R_AMDGPU(row.type))
      if width is None or row.offset + width > len(data): continue
      symbol = symbols[row.symbol]
      value = places.get(symbol.section, 0) + symbol.value + row.addend & (1 << 8 * width) - 1
      data[row.offset:row.offset + width] = value.to_bytes(width, "little")
    stream.seek(0)
    stream.write(data)
    stream.seek(0)


def _is_called(die: Any, function: str) -> bool:
  """Whether a subprogram is a definition with this symbol."""
  if "DW_AT_declaration" in die.attributes: return False
  for name in ("DW_AT_linkage_name", "DW_AT_name"):
    found = attribute_of(die, name)
    if found is not None: return text_of(found) == function
  return False


def attribute_of(die: Any, name: str) -> Any:
  """An attribute of a DIE, or of the one that it completes."""
  if name in die.attributes: return die.attributes[name]
  for other in ("DW_AT_specification", "DW_AT_abstract_origin"):
    if other in die.attributes: return attribute_of(die.get_DIE_from_attribute(other), name)
  return None


def target_of(die: Any, name: str) -> Any:
  """The DIE that an attribute refers to; None without the attribute."""
  if name in die.attributes: return die.get_DIE_from_attribute(name)
  for other in ("DW_AT_specification", "DW_AT_abstract_origin"):
    if other in die.attributes: return target_of(die.get_DIE_from_attribute(other), name)
  return None


def text_of(attribute: Any) -> str:
  return attribute.value.decode("utf-8", "replace") if attribute is not None else ""


def _size(die: Any) -> int:
  found = die.attributes.get("DW_AT_byte_size")
  return found.value if found is not None and isinstance(found.value, int) else 0


def ctype(die: Any, pointers: int = 0) -> CType:
  """A type DIE; targets of pointers are followed DEEPEST times at most, for damaged ones may point to themselves."""
  if die is None: return CType("void", "s", 0)
  if die.tag in _ALIASES:
    inner = ctype(target_of(die, "DW_AT_type"), pointers)
    name = text_of(attribute_of(die, "DW_AT_name"))
    return CType(name, inner.kind, inner.size, inner.of, inner.count) if name else inner
  if die.tag == "DW_TAG_enumeration_type":
    inner = ctype(target_of(die, "DW_AT_type"), pointers)
    name = text_of(attribute_of(die, "DW_AT_name")) or inner.name
    return CType(name, inner.kind if inner.kind in "iub" else "u", _size(die) or inner.size)
  if die.tag in _POINTERS:
    to = target_of(die, "DW_AT_type")
    of = None if to is None or pointers == DEEPEST else ctype(to, pointers + 1)
    return CType(f"{'void' if of is None else of.name}*", "*", 8, of)
  if die.tag == "DW_TAG_base_type":
    encoding = die.attributes["DW_AT_encoding"].value
    return CType(text_of(attribute_of(die, "DW_AT_name")), _ENCODINGS.get(encoding, "s"), _size(die))
  if die.tag == "DW_TAG_array_type" and "DW_AT_GNU_vector" in die.attributes:
    element = ctype(target_of(die, "DW_AT_type"), pointers)
    count = next((c.attributes["DW_AT_count"].value for c in die.iter_children() if "DW_AT_count" in c.attributes), 0)
    padded = 4 if count == 3 else count  # a vector of three has the size of one of four
    return CType(f"{element.name}{count}", "v", _size(die) or element.size * padded, element, count)
  name = text_of(attribute_of(die, "DW_AT_name")) or "structure"  # an unnamed one
  return CType(f"struct {name}" if die.tag in _AGGREGATES else name, "s", _size(die))
