"""Code objects of clang (linked and not) and of llvmlite: kernels, arguments, images. Damage gives an error."""
from __future__ import annotations

import io
import itertools
import re
import struct
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw.autogen import amdhsa
from tinyhw.autogen import elf_amdgpu as elf
from tinyhw.autogen.elf_amdgpu import R_AMDGPU
from tinyhw.core.errors import DecodeError, Error, InvalidArgument, Unsupported
from tinyhw.wire import codeobject
from tinyhw.wire.codeobject import metadata
from tinyhw.wire.ctype import named

OBJECTS = Path(__file__).parent / "objects"
LINKED = ("gfx1100_v4.co", "gfx1100_v5.co", "gfx1100_v6.co", "gfx90a_v5.co")
ALL = (*LINKED, "gfx1100_v5.o")
KERNELS = {"add", "count", "reverse", "spill", "sizes"}
BASE = 0x7F00_0000_0000


def symbol_table(data: bytes) -> Any:
  """The symbol table as pyelftools reads it."""
  return ELFFile(io.BytesIO(data)).get_section_by_name(".symtab")


@cache
def read(name: str) -> bytes: return (OBJECTS / name).read_bytes()


@pytest.mark.parametrize("name", ALL)
def test_what_an_object_says(name: str) -> None:
  loaded = codeobject.load(read(name))
  assert loaded.arch == name.split("_")[0] and loaded.version == int(name[-4] if name.endswith("co") else name[-3])
  assert loaded.target.startswith(f"amdgcn-amd-amdhsa--{loaded.arch}") and set(loaded.kernels) == KERNELS
  add, reverse, spill, sizes = (loaded.kernel(k) for k in ("add", "reverse", "spill", "sizes"))
  assert [(a.kind, a.offset, a.size, a.pointer) for a in add.arguments] == [
    ("global_buffer", 0, 8, True), ("global_buffer", 8, 8, True), ("global_buffer", 16, 8, True),
    ("by_value", 24, 4, False)]
  assert add.hidden == () and add.kernarg_size == 28 and add.max_workgroup_size == 1024
  assert add.wavefront_size == (64 if loaded.arch == "gfx90a" else 32)
  assert reverse.group_segment_size == 1024 and add.group_segment_size == 0
  assert spill.private_segment_size >= 256 and add.private_segment_size == 0
  hidden = {a.kind: (a.offset, a.size) for a in sizes.hidden}
  if loaded.version >= 5: assert hidden["hidden_block_count_x"] == (8, 4) and hidden["hidden_group_size_x"] == (20, 2)
  assert sizes.property(amdhsa.KERNEL_CODE_PROPERTY_ENABLE_SGPR_KERNARG_SEGMENT_PTR)
  assert sizes.property(amdhsa.KERNEL_CODE_PROPERTY_ENABLE_SGPR_DISPATCH_PTR)  # it asks for the grid size


@pytest.mark.parametrize("name", ALL)
def test_addresses_against_pyelftools(name: str) -> None:
  """Symbols, entry points and data of the image, read a second way."""
  loaded, file = codeobject.load(read(name)), ELFFile(io.BytesIO(read(name)))
  image = loaded.link(BASE)
  table = {s.name: s for s in symbol_table(read(name)).iter_symbols() if s.name}
  for kernel in loaded.kernels.values():
    text, code = file.get_section(table[kernel.name]["st_shndx"]), table[kernel.name]
    start = code["st_value"] - text["sh_addr"]
    assert image[kernel.entry_offset:kernel.entry_offset + 16] == text.data()[start:start + 16]
    assert loaded.symbols[kernel.name] == kernel.entry_offset and kernel.entry_offset % 256 == 0
    assert any(s.executable and s.offset <= kernel.entry_offset < s.offset + s.size for s in loaded.segments)
    field = kernel.descriptor_offset + amdhsa.KERNEL_CODE_ENTRY_BYTE_OFFSET_OFFSET
    relative = int.from_bytes(image[field:field + 8], "little", signed=True)
    assert kernel.descriptor_offset + relative == kernel.entry_offset
  counters, pointer, zeroed = (loaded.symbols[n] for n in ("counters", "pointer", "zeroed"))
  assert struct.unpack_from("<4I", image, counters) == (1, 2, 3, 4)
  assert struct.unpack_from("<Q", image, pointer)[0] == BASE + counters + 8
  assert not any(image[zeroed:zeroed + 4096])
  writable = [range(s.offset, s.offset + s.size) for s in loaded.segments if s.writable]
  for offset in (counters, pointer, zeroed): assert any(offset in place for place in writable)


def test_relocations_of_an_object() -> None:
  """Each patched place holds what the ABI's formula gives, with addresses read by pyelftools."""
  loaded, file = codeobject.load(read("gfx1100_v5.o")), ELFFile(io.BytesIO(read("gfx1100_v5.o")))
  image, table, seen = loaded.link(BASE), symbol_table(read("gfx1100_v5.o")), 0
  placed = [s for s in table.iter_symbols() if s.name in loaded.symbols]
  starts = {s["st_shndx"]: loaded.symbols[s.name] - s["st_value"] for s in placed}
  sections: list[Any] = list(file.iter_sections("SHT_RELA"))
  for section in sections:
    for row in section.iter_relocations():
      place = starts[section["sh_info"]] + row["r_offset"]
      value = loaded.symbols[table.get_symbol(row["r_info_sym"]).name] + row["r_addend"]
      kind = R_AMDGPU(row["r_info_type"])
      wanted = {R_AMDGPU.REL32_LO: value - place, R_AMDGPU.REL32_HI: value - place >> 32, R_AMDGPU.REL64: value - place,
                R_AMDGPU.ABS64: BASE + value}[kind]
      width = 8 if kind.name.endswith("64") else 4
      assert int.from_bytes(image[place:place + width], "little") == wanted & (1 << 8 * width) - 1
      seen += 1
  assert seen == 12


def with_symbol(data: bytes, name: str, value: int, table: str = ".symtab") -> bytes:
  """The object with another value of a symbol."""
  symbols: Any = ELFFile(io.BytesIO(data)).get_section_by_name(table)
  at = symbols["sh_offset"] + symbols["sh_entsize"] * next(
    i for i, s in enumerate(symbols.iter_symbols()) if s.name == name) + 8
  return data[:at] + value.to_bytes(8, "little") + data[at + 8:]


@pytest.mark.parametrize("base", [0, BASE])
def test_every_kind_of_symbol_and_relocation(base: int) -> None:
  """Weak, absolute and common symbols, in full, in halves, relative, and through the table of addresses."""
  data = with_symbol(read("relocations.o"), "second", 256)  # a common symbol's value is its alignment
  loaded, file = codeobject.load(data), ELFFile(io.BytesIO(data))
  image, table = loaded.link(base), symbol_table(data)
  assert loaded.symbols["second"] % 256 == 0 and loaded.symbols["second"] >= loaded.symbols["shared"] + 64
  slots = set()
  for section in file.iter_sections("SHT_RELA"):
    start = loaded.symbols["code" if section.name == ".rela.text" else "table"]
    for row in section.iter_relocations():
      symbol, kind, place = table.get_symbol(row["r_info_sym"]), R_AMDGPU(row["r_info_type"]), start + row["r_offset"]
      if symbol["st_shndx"] == "SHN_ABS": address = symbol["st_value"]
      elif symbol["st_shndx"] == "SHN_UNDEF": address = 0
      else: address = base + loaded.symbols[symbol.name]
      value, here = address + row["r_addend"], base + place
      found = int.from_bytes(image[place:place + 4], "little")
      if kind in (R_AMDGPU.ABS64, R_AMDGPU.REL64):
        wanted = value - (here if kind is R_AMDGPU.REL64 else 0)
        assert image[place:place + 8] == (wanted & (1 << 64) - 1).to_bytes(8, "little"), symbol.name
      elif kind is R_AMDGPU.REL16:
        # The branch is of `code`, whose next instruction is 4 bytes behind: SIMM16 counts dwords from there.
        assert found & 0xFFFF == (value - here - 4) // 4 and found >> 16 == 0xBFA0
      elif kind in (R_AMDGPU.GOTPCREL32_LO, R_AMDGPU.GOTPCREL32_HI):
        if kind is R_AMDGPU.GOTPCREL32_HI: assert found == 0
        else:
          slot = place + found
          assert slot % 8 == 0 and image[slot:slot + 8] == (value & (1 << 64) - 1).to_bytes(8, "little")
          slots.add(slot)
      else:
        if kind in (R_AMDGPU.REL32_LO, R_AMDGPU.REL32_HI): value -= here
        if kind in (R_AMDGPU.REL32_HI, R_AMDGPU.ABS32_HI): value >>= 32
        assert found == value & 0xFFFFFFFF, (symbol.name, kind)
  assert len(slots) == 2 and min(slots) >= loaded.symbols["second"] + 8
  assert any(s.writable and s.offset <= min(slots) and max(slots) + 8 == s.offset + s.size for s in loaded.segments)


def changed(data: bytes, section: str, row: int, *, offset: int | None = None, symbol: int | None = None,
            kind: int | None = None, addend: int | None = None) -> bytes:
  """The object with one relocation changed."""
  found: Any = ELFFile(io.BytesIO(data)).get_section_by_name(section)
  at = found["sh_offset"] + 24 * row
  old_offset, info, old_addend = struct.unpack_from("<QQq", data, at)
  info = (info >> 32 if symbol is None else symbol) << 32 | (info & 0xFFFFFFFF if kind is None else kind)
  new = struct.pack("<QQq", old_offset if offset is None else offset, info, old_addend if addend is None else addend)
  return data[:at] + new + data[at + 24:]


@pytest.mark.parametrize(("section", "row", "change", "message"), [
  (".rela.text", 0, {"addend": 2}, "a branch at 0x0 to no instruction"),
  (".rela.text", 0, {"addend": 4 << 15}, "REL16 at 0x0: 0x8001 does not fit"),
  (".rela.text", 0, {"symbol": 99}, "a relocation refers to symbol 99 of "),
  (".rela.text", 0, {"offset": 8}, ".rela.text patches past its section"),
  (".rela.text", 0, {"kind": 77}, "unknown relocation type 77"),
  (".rela.data", 1, {"kind": R_AMDGPU.REL32, "addend": 1 << 40}, "REL32 at 0x1008: -0x7e0000001008 does not fit"),
  (".rela.data", 8, {"kind": R_AMDGPU.ABS32}, "ABS32 at 0x1040: 0x123456789 does not fit"),
])
def test_relocations_that_cannot_be(section: str, row: int, change: dict[str, int], message: str) -> None:
  with pytest.raises(DecodeError, match=re.escape(message)):
    codeobject.load(changed(read("relocations.o"), section, row, **change)).link(BASE)


def test_relocations_that_just_fit() -> None:
  data = read("relocations.o")
  for addend, wanted in ((0x7FFC * 4, 0x7FFD), (-0x8000 * 4 - 4, -0x8000)):
    image = codeobject.load(changed(data, ".rela.text", 0, addend=addend)).link(BASE)
    assert int.from_bytes(image[:2], "little", signed=True) == wanted
  for value, kind in ((0xFFFFFFFF, R_AMDGPU.ABS32), (-1 << 31, R_AMDGPU.ABS32), (0, R_AMDGPU.NONE)):
    loaded = codeobject.load(changed(data, ".rela.data", 8, kind=kind, addend=value - 0x123456789))
    at = loaded.symbols["table"] + 0x40
    wanted_ = value if kind is not R_AMDGPU.NONE else 0
    assert loaded.link(BASE)[at:at + 4] == (wanted_ & 0xFFFFFFFF).to_bytes(4, "little")


def test_relocations_of_a_linked_object_may_name_a_symbol() -> None:
  """What a linker leaves for a symbol that another object may define instead: here our own definition counts."""
  data = read("gfx1100_v5.co")
  file: Any = ELFFile(io.BytesIO(data))
  section = next(s for s in file.iter_sections("SHT_RELA"))
  names = [s.name for s in file.get_section(section["sh_link"]).iter_symbols()]
  loaded = codeobject.load(data)
  addend = loaded.symbols["counters"] + 8 - loaded.symbols["add"]
  named = changed(data, section.name, 0, symbol=names.index("add"), kind=R_AMDGPU.ABS64, addend=addend)
  at = loaded.symbols["pointer"]
  assert codeobject.load(named).link(BASE)[at:at + 8] == (BASE + loaded.symbols["counters"] + 8).to_bytes(8, "little")
  with pytest.raises(DecodeError, match=f"a relocation refers to symbol {len(names)} of {len(names)}"):
    codeobject.load(changed(data, section.name, 0, symbol=len(names), kind=R_AMDGPU.ABS64))


def test_what_a_kernel_does_not_ask_for() -> None:
  kernel = codeobject.load(read("gfx1100_v5.co")).kernel("add")
  assert not kernel.property(amdhsa.KERNEL_CODE_PROPERTY_ENABLE_SGPR_DISPATCH_PTR)
  assert not kernel.dynamic_stack and kernel.preload == (0, 0) and kernel.start_offset == kernel.entry_offset


def test_only_addresses_depend_on_the_base() -> None:
  loaded = codeobject.load(read("gfx1100_v5.o"))
  one, two = loaded.link(BASE), loaded.link(BASE + 0x1000)
  assert {i & ~7 for i in range(len(one)) if one[i] != two[i]} == {loaded.symbols["pointer"]}
  with pytest.raises(InvalidArgument, match="page"): loaded.link(BASE + 8)


@pytest.mark.parametrize(("row", "told"), [
  ({".value_type": "i32"}, "int32 i 4"), ({".value_type": "u64", ".size": 8}, "uint64 u 8"),
  ({".value_type": "f16", ".size": 2}, "float16 f 2"), ({".value_type": "struct"}, None),
  ({".value_type": "f32", ".size": 8}, None), ({".type_name": "float"}, "float f 4"), ({}, None),
  ({".type_name": "mine", ".value_type": "i32"}, "int32 i 4"), ({".type_name": "float*"}, None),
  ({".value_kind": "global_buffer", ".size": 8, ".value_type": "f32"}, "float32* * 8 of float32 f 4"),
  ({".value_kind": "global_buffer", ".size": 8, ".type_name": "int*", ".value_type": "f32"}, "int* * 8 of int i 4"),
  ({".value_kind": "global_buffer", ".size": 8, ".type_name": "float", ".value_type": "f32"}, None)])
def test_types_that_the_metadata_names(row: dict[str, Any], told: str | None) -> None:
  """By their name, else by the kind of value of older metadata, which of a pointer is its target's."""
  found = metadata._argument({".value_kind": "by_value", ".offset": 0, ".size": 4, **row}).type
  def shown(t: Any) -> str: return f"{t.name} {t.kind} {t.size}" + (f" of {shown(t.of)}" if t.of else "")
  assert (None if found is None else shown(found)) == told


# C's names of what NumPy has; OpenCL C 3.0, sections 6.3.1 and 6.3.2
SCALARS = {"bool": "?", "char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4",
           "long": "i8", "ulong": "u8", "size_t": "u8", "ptrdiff_t": "i8", "half": "f2", "float": "f4", "double": "f8",
           "unsigned char": "u1", "unsigned short": "u2", "unsigned int": "u4", "unsigned long": "u8",
           "_Float16": "f2", "__half": "f2"}


@pytest.mark.parametrize("name", SCALARS)
def test_names_of_types_in_opencl(name: str) -> None:
  scalar, wanted = named(name), np.dtype(SCALARS[name])
  assert scalar is not None and (scalar.name, scalar.kind, scalar.size) == (name, wanted.kind, wanted.itemsize)
  assert scalar.number and named(f"const {name}") == scalar and named(f"{name}s") is None
  for spelled in (f"{name}*", f"__global const {name} *restrict"):
    pointer = named(spelled)
    assert pointer is not None and (pointer.kind, pointer.size, pointer.of) == ("*", 8, scalar)
  for count in (2, 3, 4, 8, 16) if name.isalpha() else ():
    vector = named(f"{name}{count}")
    assert vector is not None and (vector.kind, vector.of, vector.count) == ("v", scalar, count)
    assert vector.size == wanted.itemsize * (4 if count == 3 else count)
  assert named(f"{name}5") is None


def test_llvmlite_objects() -> None:
  """What tinyhw's own compiler emits: a relocatable object with a constant table, LDS and a kernel."""
  llvm = pytest.importorskip("llvmlite.binding")
  llvm.initialize_all_targets()
  llvm.initialize_all_asmprinters()
  module = llvm.parse_assembly("""
    target triple = "amdgcn-amd-amdhsa"
    @table = internal addrspace(4) constant [4 x i32] [i32 5, i32 6, i32 7, i32 8]
    @state = addrspace(1) global i32 9
    @tile = internal addrspace(3) global [64 x i32] poison
    declare i32 @llvm.amdgcn.workitem.id.x()
    define protected amdgpu_kernel void @look(ptr addrspace(1) %out, float %x) #0 {
      %i = call i32 @llvm.amdgcn.workitem.id.x()
      %p = getelementptr [4 x i32], ptr addrspace(4) @table, i32 0, i32 %i
      %v = load i32, ptr addrspace(4) %p
      %s = load i32, ptr addrspace(1) @state
      %q = getelementptr [64 x i32], ptr addrspace(3) @tile, i32 0, i32 %i
      store volatile i32 %s, ptr addrspace(3) %q
      %w = add i32 %v, %s
      store i32 %w, ptr addrspace(1) %out
      ret void
    }
    attributes #0 = { "amdgpu-flat-work-group-size"="1,64" "uniform-work-group-size"="true" }
  """)
  machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu="gfx1100", reloc="pic", opt=2)
  loaded = codeobject.load(machine.emit_object(module), arch="gfx1100")
  kernel = loaded.kernel("look")
  assert kernel.group_segment_size == 256 and kernel.max_workgroup_size == 64 and kernel.wavefront_size == 32
  assert [(a.kind, a.offset, a.size) for a in kernel.arguments] == [("global_buffer", 0, 8), ("by_value", 8, 4)]
  image = loaded.link(BASE)
  assert struct.pack("<4I", 5, 6, 7, 8) in image
  # The kernel reaches `state` through a table of addresses, which we make: it holds the symbol's address.
  assert struct.pack("<Q", BASE + loaded.symbols["state"]) in image
  assert image[loaded.symbols["state"]] == 9


def test_refusals() -> None:
  good = read("gfx1100_v5.co")
  for data, message in (
    (b"", "not an ELF: it is empty"), (b"#!/bin/sh\n", "not an ELF: it begins with b'#!/bin/sh"),
    (good[:40], "truncated ELF: ELF header"), (good[:3000], "truncated ELF: the section table ends at byte"),
    (good[:4] + b"\1" + good[5:], "32 bits"),
    (good[:18] + b"\x3e\0" + good[20:], "an ELF for x86-64, not for an AMD GPU"),
    (good[:18] + b"\xbe\0" + good[20:], "an NVIDIA GPU"), (good[:7] + b"\0" + good[8:], "OS ABI 0 is not amdhsa"),
    (good[:8] + b"\x09" + good[9:], "unknown ABI version 9"),
    (good[:16] + b"\2\0" + good[18:], "neither relocatable nor shared"),
  ):  # fmt: skip
    with pytest.raises(DecodeError, match=message): codeobject.load(data)
  with pytest.raises(Unsupported, match="code object version 3"): codeobject.load(good[:8] + b"\1" + good[9:])
  with pytest.raises(InvalidArgument, match="the code is for gfx90a, the device is gfx1100"):
    codeobject.load(read("gfx90a_v5.co"), arch="gfx1100")
  with pytest.raises(InvalidArgument, match="no kernel 'sub'; it has .*add"): codeobject.load(good).kernel("sub")
  with pytest.raises(DecodeError, match="undefined symbol counters"):
    codeobject.load(undefine(read("gfx1100_v5.o"), "counters"))


def undefine(data: bytes, name: str) -> bytes:
  """The object with a symbol's section set to none."""
  table = symbol_table(data)
  index = next(i for i, s in enumerate(table.iter_symbols()) if s.name == name)
  at = table["sh_offset"] + index * table["sh_entsize"] + 6
  return data[:at] + b"\0\0" + data[at + 2:]


def flagged(name: str, machine: int, features: int = 0, generic: int = 0) -> codeobject.CodeObject:
  """An object with other flags in its header (EF_AMDGPU_MACH, EF_AMDGPU_FEATURE_*, EF_AMDGPU_GENERIC_VERSION)."""
  data = bytearray(read(name))
  data[48:52] = (machine | features | generic << elf.EF_AMDGPU_GENERIC_VERSION_OFFSET).to_bytes(4, "little")
  return codeobject.load(bytes(data))


def test_generic_processors() -> None:
  """Code of a generic processor says its version, in version 6 of the format, and runs on the listed processors."""
  loaded = flagged("gfx1100_v6.co", elf.EF_AMDGPU_MACH_AMDGCN_GFX11_GENERIC, generic=1)
  assert loaded.arch == "gfx11-generic" and loaded.generic_version == 1
  for name in ("gfx1100", "gfx1103", "gfx1151"): loaded.check(name)
  for name in ("gfx1030", "gfx1201", "gfx942"):
    with pytest.raises(InvalidArgument, match=f"for gfx11-generic, the device is {name}"): loaded.check(name)
  for name, generic in (("gfx1100_v6.co", 0), ("gfx1100_v5.co", 1)):
    with pytest.raises(InvalidArgument, match="compile it with -mcode-object-version=6"):
      flagged(name, elf.EF_AMDGPU_MACH_AMDGCN_GFX11_GENERIC, generic=generic).check("gfx1100")
  flagged("gfx1100_v6.co", elf.EF_AMDGPU_MACH_AMDGCN_GFX9_4_GENERIC, generic=3).check("gfx942")
  with pytest.raises(InvalidArgument, match="gfx1250"):
    flagged("gfx1100_v6.co", elf.EF_AMDGPU_MACH_AMDGCN_GFX12_GENERIC, generic=1).check("gfx1250")


@pytest.mark.parametrize("sramecc", ["any", "off", "on"])
@pytest.mark.parametrize("xnack", ["any", "off", "on"])
def test_features_are_as_the_card_has_them(sramecc: str, xnack: str) -> None:
  """Code for any setting runs on every card; other code where the card is set so."""
  flags = (getattr(elf, f"EF_AMDGPU_FEATURE_SRAMECC_{sramecc.upper()}_V4")
           | getattr(elf, f"EF_AMDGPU_FEATURE_XNACK_{xnack.upper()}_V4"))
  code = flagged("gfx1100_v6.co", elf.EF_AMDGPU_MACH_AMDGCN_GFX942, flags)
  words = {"off": "-", "on": "+"}
  assert code.target_id == "gfx942" + (f":sramecc{words[sramecc]}" if sramecc in words else "") + (
    f":xnack{words[xnack]}" if xnack in words else "")
  for ecc, retry in itertools.product((False, True), repeat=2):
    fits = sramecc in {"any", "on" if ecc else "off"} and xnack in {"any", "on" if retry else "off"}
    if fits: code.check("gfx942", {"sramecc": ecc, "xnack": retry})
    else:
      device = f"the device is gfx942:sramecc{'-+'[ecc]}:xnack{'-+'[retry]}"
      with pytest.raises(InvalidArgument, match=re.escape(f"for {code.target_id}, {device}")):
        code.check("gfx942", {"sramecc": ecc, "xnack": retry})
  if "any" != sramecc or "any" != xnack:
    with pytest.raises(InvalidArgument): code.check("gfx942")


CHANGES = st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=12)


@given(st.sampled_from(ALL), CHANGES, st.booleans())
@settings(max_examples=examples(400))
def test_damage_gives_an_error_or_a_code_object(name: str, changes: list[tuple[int, int]], in_headers: bool) -> None:
  data = bytearray(read(name))
  for where, value in changes: data[where % (0x240 if in_headers else len(data))] = value
  try: codeobject.load(bytes(data)).link(BASE)
  except Error as error: assert str(error)


@given(st.sampled_from(ALL), st.integers(0, 1 << 16))
@settings(max_examples=examples(100))
def test_truncation_is_an_error(name: str, size: int) -> None:
  data = read(name)
  with pytest.raises(Error): codeobject.load(data[:size % len(data)])


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
  for candidate in (data, b"\x7fELF\2\1\1\x40\3" + data):
    with pytest.raises(Error): codeobject.load(candidate)
