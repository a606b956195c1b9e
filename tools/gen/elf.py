"""ELF structs and the AMDGPU's ELF constants, from LLVM's ELF.h."""

from __future__ import annotations

import re

from tinyhw.core.errors import LayoutError
from tinyhw.tools.gen import emit
from tinyhw.tools.gen.amdhsa import LLVM
from tinyhw.tools.gen.family import Family, corrected
from tinyhw.tools.gen.sources import Sources, head

HEADER = "llvm/BinaryFormat/ELF.h"
RELOCATIONS = "llvm/BinaryFormat/ELFRelocs/AMDGPU.def"
DYNAMIC = "llvm/BinaryFormat/DynamicTags.def"
TAGS = "NULL|HASH|STRTAB|SYMTAB|STRSZ|SYMENT|RELA|RELASZ|RELAENT"  # to find a loaded object's symbols, and to write one
STRUCTS = ("Elf64_Ehdr", "Elf64_Shdr", "Elf64_Phdr", "Elf64_Sym", "Elf64_Rela", "Elf64_Nhdr")
KINDS = {"Elf64_Half": "c_uint16", "Elf64_Word": "c_uint32", "Elf64_Xword": "c_uint64", "Elf64_Sxword": "c_int64",
         "Elf64_Addr": "c_uint64", "Elf64_Off": "c_uint64", "unsigned char": "c_uint8"}  # fmt: skip
CONSTANTS = re.compile(
  r"EI_(CLASS|DATA|OSABI|ABIVERSION|NIDENT)|ELFCLASS64|ELFDATA2LSB|ET_(REL|EXEC|DYN)"
  r"|EM_(AMDGPU|X86_64|386|AARCH64|ARM|RISCV|PPC64|CUDA|BPF)|ELFOSABI_AMDGPU_HSA"
  r"|ELFABIVERSION_AMDGPU_HSA_V\d|EF_AMDGPU_\w+|PT_(LOAD|NOTE|DYNAMIC)|PF_[XWR]|SHT_(NULL|PROGBITS|SYMTAB|STRTAB|RELA|NOTE"
  r"|NOBITS|REL|DYNSYM|HASH|DYNAMIC)|STV_PROTECTED|SHF_(WRITE|ALLOC|EXECINSTR)|SHN_(UNDEF|ABS|COMMON|LORESERVE|AMDGPU_LDS)|STB_(LOCAL|GLOBAL|WEAK)"
  r"|STT_(NOTYPE|OBJECT|FUNC|SECTION|AMDGPU_HSA_KERNEL)|NT_AMDGPU_METADATA"
)


def struct(text: str, name: str) -> str:
  body = re.search(rf"^struct {name} {{(.*?)^}};", text, re.S | re.M)
  if body is None:
    raise LayoutError(f"no {name}", where=HEADER)
  members = re.findall(r"^  (Elf64_\w+|unsigned char) (\w+)(\[EI_NIDENT\])?;", body[1], re.M)
  lines = [f"class {name}(Struct):"]
  lines += [f"  {n}: {'ctypes.Array[ctypes.c_uint8]' if array else 'int'}" for _, n, array in members]
  lines.append("  _fields_ = [")
  lines += [f'    ("{n}", ctypes.{KINDS[kind]}{" * EI_NIDENT" if array else ""}),' for kind, n, array in members]
  return "\n".join([*lines, "  ]"]) + "\n"


def generate(sources: Sources) -> str:
  header, relocations, dynamic = (sources.find(n) for n in FAMILY.needs)
  text = corrected(header.text, "elf_amdgpu", HEADER)
  rows = re.findall(r"^  ([A-Z]\w+)\s*=\s*(0x[0-9a-fA-F]+|\d+)\s*,?(?:\s*//.*)?$", text, re.M)
  constants = {name: int(value, 0) for name, value in rows if CONSTANTS.fullmatch(name)}
  constants |= {f"DT_{name}": int(value) for name, value in
                re.findall(rf"^DYNAMIC_TAG\(({TAGS}), (\d+)\)", dynamic.text, re.M)}
  kinds = re.findall(r"ELF_RELOC\((R_AMDGPU_\w+),\s*(\d+)\)", relocations.text)
  machines = {
    value: name.removeprefix("EF_AMDGPU_MACH_AMDGCN_").lower().replace("_", "-")
    for name, value in constants.items()
    if name.startswith("EF_AMDGPU_MACH_AMDGCN_GFX")
  }
  out = [
    head(
      "ELF structs and the AMDGPU's ELF constants and relocations.",
      [(LLVM, header), (LLVM, relocations), (LLVM, dynamic)],
      "tinyhw gen elf; corrections: autogen/errata/elf_amdgpu.toml",
    ),
    "import ctypes",
    "from enum import IntEnum",
    "",
    "from tinyhw.core.layout import Struct",
    "",
  ]
  out += [f"{n} = {v}" if v < 10 else f"{n} = {v:#x}" for n, v in constants.items()]
  out += ["", "MACHINES: dict[int, str] = {  # EF_AMDGPU_MACH -> the name of the processor"]
  out += [f'  {value:#04x}: "{name}",' for value, name in sorted(machines.items())]
  out += [
    "}",
    "",
    "",
    emit.enum("R_AMDGPU", {n.removeprefix("R_AMDGPU_"): int(v) for n, v in kinds}, "Relocation types."),
  ]
  out += ["\n" + struct(header.text, name) for name in STRUCTS]
  return "\n".join(out)


FAMILY = Family("elf", "elf_amdgpu", "ELF structs and the AMDGPU's ELF constants", (HEADER, RELOCATIONS, DYNAMIC),
                generate)
