"""ELF structs and the AMDGPU's ELF constants and relocations.

Generated; do not edit. Source:
  LLVM (Debian llvm-19-dev) 1:19.1.7-3~deb12u1, licence Apache-2.0 WITH LLVM-exception
    llvm/BinaryFormat/ELF.h sha256 d43112aa6aed0ff6e7baeaaa7f654382605adff09cadfc8396ca4f12408136a6
    llvm/BinaryFormat/ELFRelocs/AMDGPU.def sha256 3b7d257c6010dd62bff19013ac467b0f81f86281fe6c968b21e39746808bc00c
    llvm/BinaryFormat/DynamicTags.def sha256 02f7cc1fd7ae07e649f0be3fdb07da86d33fb96643602197d9fe488f8eebc6bb
Generator: tinyhw gen elf; corrections: autogen/errata/elf_amdgpu.toml
"""
from __future__ import annotations

import ctypes
from enum import IntEnum

from tinyhw.core.layout import Struct

EI_CLASS = 4
EI_DATA = 5
EI_OSABI = 7
EI_ABIVERSION = 8
EI_NIDENT = 0x10
ET_REL = 1
ET_EXEC = 2
ET_DYN = 3
EM_386 = 3
EM_PPC64 = 0x15
EM_ARM = 0x28
EM_X86_64 = 0x3e
EM_AARCH64 = 0xb7
EM_CUDA = 0xbe
EM_AMDGPU = 0xe0
EM_RISCV = 0xf3
EM_BPF = 0xf7
ELFCLASS64 = 2
ELFDATA2LSB = 1
ELFOSABI_AMDGPU_HSA = 0x40
ELFABIVERSION_AMDGPU_HSA_V2 = 0
ELFABIVERSION_AMDGPU_HSA_V3 = 1
ELFABIVERSION_AMDGPU_HSA_V4 = 2
ELFABIVERSION_AMDGPU_HSA_V5 = 3
ELFABIVERSION_AMDGPU_HSA_V6 = 4
EF_AMDGPU_MACH = 0xff
EF_AMDGPU_MACH_NONE = 0
EF_AMDGPU_MACH_R600_R600 = 1
EF_AMDGPU_MACH_R600_R630 = 2
EF_AMDGPU_MACH_R600_RS880 = 3
EF_AMDGPU_MACH_R600_RV670 = 4
EF_AMDGPU_MACH_R600_RV710 = 5
EF_AMDGPU_MACH_R600_RV730 = 6
EF_AMDGPU_MACH_R600_RV770 = 7
EF_AMDGPU_MACH_R600_CEDAR = 8
EF_AMDGPU_MACH_R600_CYPRESS = 9
EF_AMDGPU_MACH_R600_JUNIPER = 0xa
EF_AMDGPU_MACH_R600_REDWOOD = 0xb
EF_AMDGPU_MACH_R600_SUMO = 0xc
EF_AMDGPU_MACH_R600_BARTS = 0xd
EF_AMDGPU_MACH_R600_CAICOS = 0xe
EF_AMDGPU_MACH_R600_CAYMAN = 0xf
EF_AMDGPU_MACH_R600_TURKS = 0x10
EF_AMDGPU_MACH_R600_RESERVED_FIRST = 0x11
EF_AMDGPU_MACH_R600_RESERVED_LAST = 0x1f
EF_AMDGPU_MACH_AMDGCN_GFX600 = 0x20
EF_AMDGPU_MACH_AMDGCN_GFX601 = 0x21
EF_AMDGPU_MACH_AMDGCN_GFX700 = 0x22
EF_AMDGPU_MACH_AMDGCN_GFX701 = 0x23
EF_AMDGPU_MACH_AMDGCN_GFX702 = 0x24
EF_AMDGPU_MACH_AMDGCN_GFX703 = 0x25
EF_AMDGPU_MACH_AMDGCN_GFX704 = 0x26
EF_AMDGPU_MACH_AMDGCN_RESERVED_0X27 = 0x27
EF_AMDGPU_MACH_AMDGCN_GFX801 = 0x28
EF_AMDGPU_MACH_AMDGCN_GFX802 = 0x29
EF_AMDGPU_MACH_AMDGCN_GFX803 = 0x2a
EF_AMDGPU_MACH_AMDGCN_GFX810 = 0x2b
EF_AMDGPU_MACH_AMDGCN_GFX900 = 0x2c
EF_AMDGPU_MACH_AMDGCN_GFX902 = 0x2d
EF_AMDGPU_MACH_AMDGCN_GFX904 = 0x2e
EF_AMDGPU_MACH_AMDGCN_GFX906 = 0x2f
EF_AMDGPU_MACH_AMDGCN_GFX908 = 0x30
EF_AMDGPU_MACH_AMDGCN_GFX909 = 0x31
EF_AMDGPU_MACH_AMDGCN_GFX90C = 0x32
EF_AMDGPU_MACH_AMDGCN_GFX1010 = 0x33
EF_AMDGPU_MACH_AMDGCN_GFX1011 = 0x34
EF_AMDGPU_MACH_AMDGCN_GFX1012 = 0x35
EF_AMDGPU_MACH_AMDGCN_GFX1030 = 0x36
EF_AMDGPU_MACH_AMDGCN_GFX1031 = 0x37
EF_AMDGPU_MACH_AMDGCN_GFX1032 = 0x38
EF_AMDGPU_MACH_AMDGCN_GFX1033 = 0x39
EF_AMDGPU_MACH_AMDGCN_GFX602 = 0x3a
EF_AMDGPU_MACH_AMDGCN_GFX705 = 0x3b
EF_AMDGPU_MACH_AMDGCN_GFX805 = 0x3c
EF_AMDGPU_MACH_AMDGCN_GFX1035 = 0x3d
EF_AMDGPU_MACH_AMDGCN_GFX1034 = 0x3e
EF_AMDGPU_MACH_AMDGCN_GFX90A = 0x3f
EF_AMDGPU_MACH_AMDGCN_GFX940 = 0x40
EF_AMDGPU_MACH_AMDGCN_GFX1100 = 0x41
EF_AMDGPU_MACH_AMDGCN_GFX1013 = 0x42
EF_AMDGPU_MACH_AMDGCN_GFX1150 = 0x43
EF_AMDGPU_MACH_AMDGCN_GFX1103 = 0x44
EF_AMDGPU_MACH_AMDGCN_GFX1036 = 0x45
EF_AMDGPU_MACH_AMDGCN_GFX1101 = 0x46
EF_AMDGPU_MACH_AMDGCN_GFX1102 = 0x47
EF_AMDGPU_MACH_AMDGCN_GFX1200 = 0x48
EF_AMDGPU_MACH_AMDGCN_GFX1250 = 0x49
EF_AMDGPU_MACH_AMDGCN_GFX1151 = 0x4a
EF_AMDGPU_MACH_AMDGCN_GFX941 = 0x4b
EF_AMDGPU_MACH_AMDGCN_GFX942 = 0x4c
EF_AMDGPU_MACH_AMDGCN_RESERVED_0X4D = 0x4d
EF_AMDGPU_MACH_AMDGCN_GFX1201 = 0x4e
EF_AMDGPU_MACH_AMDGCN_GFX950 = 0x4f
EF_AMDGPU_MACH_AMDGCN_RESERVED_0X50 = 0x50
EF_AMDGPU_MACH_AMDGCN_GFX9_GENERIC = 0x51
EF_AMDGPU_MACH_AMDGCN_GFX10_1_GENERIC = 0x52
EF_AMDGPU_MACH_AMDGCN_GFX10_3_GENERIC = 0x53
EF_AMDGPU_MACH_AMDGCN_GFX11_GENERIC = 0x54
EF_AMDGPU_MACH_AMDGCN_GFX1152 = 0x55
EF_AMDGPU_MACH_AMDGCN_RESERVED_0X56 = 0x56
EF_AMDGPU_MACH_AMDGCN_RESERVED_0X57 = 0x57
EF_AMDGPU_MACH_AMDGCN_GFX1153 = 0x58
EF_AMDGPU_MACH_AMDGCN_GFX12_GENERIC = 0x59
EF_AMDGPU_MACH_AMDGCN_GFX1251 = 0x5a
EF_AMDGPU_MACH_AMDGCN_GFX9_4_GENERIC = 0x5f
EF_AMDGPU_FEATURE_XNACK_V2 = 1
EF_AMDGPU_FEATURE_TRAP_HANDLER_V2 = 2
EF_AMDGPU_FEATURE_XNACK_V3 = 0x100
EF_AMDGPU_FEATURE_SRAMECC_V3 = 0x200
EF_AMDGPU_FEATURE_XNACK_V4 = 0x300
EF_AMDGPU_FEATURE_XNACK_UNSUPPORTED_V4 = 0
EF_AMDGPU_FEATURE_XNACK_ANY_V4 = 0x100
EF_AMDGPU_FEATURE_XNACK_OFF_V4 = 0x200
EF_AMDGPU_FEATURE_XNACK_ON_V4 = 0x300
EF_AMDGPU_FEATURE_SRAMECC_V4 = 0xc00
EF_AMDGPU_FEATURE_SRAMECC_UNSUPPORTED_V4 = 0
EF_AMDGPU_FEATURE_SRAMECC_ANY_V4 = 0x400
EF_AMDGPU_FEATURE_SRAMECC_OFF_V4 = 0x800
EF_AMDGPU_FEATURE_SRAMECC_ON_V4 = 0xc00
EF_AMDGPU_GENERIC_VERSION = 0xff000000
EF_AMDGPU_GENERIC_VERSION_OFFSET = 0x18
EF_AMDGPU_GENERIC_VERSION_MIN = 1
EF_AMDGPU_GENERIC_VERSION_MAX = 0xff
SHN_UNDEF = 0
SHN_LORESERVE = 0xff00
SHN_ABS = 0xfff1
SHN_COMMON = 0xfff2
SHT_NULL = 0
SHT_PROGBITS = 1
SHT_SYMTAB = 2
SHT_STRTAB = 3
SHT_RELA = 4
SHT_HASH = 5
SHT_DYNAMIC = 6
SHT_NOTE = 7
SHT_NOBITS = 8
SHT_REL = 9
SHT_DYNSYM = 0xb
SHF_WRITE = 1
SHF_ALLOC = 2
SHF_EXECINSTR = 4
STB_LOCAL = 0
STB_GLOBAL = 1
STB_WEAK = 2
STT_NOTYPE = 0
STT_OBJECT = 1
STT_FUNC = 2
STT_SECTION = 3
STT_AMDGPU_HSA_KERNEL = 0xa
STV_PROTECTED = 3
PT_LOAD = 1
PT_DYNAMIC = 2
PT_NOTE = 4
PF_X = 1
PF_W = 2
PF_R = 4
SHN_AMDGPU_LDS = 0xff00
NT_AMDGPU_METADATA = 0x20
DT_NULL = 0
DT_HASH = 4
DT_STRTAB = 5
DT_SYMTAB = 6
DT_RELA = 7
DT_RELASZ = 8
DT_RELAENT = 9
DT_STRSZ = 0xa
DT_SYMENT = 0xb

MACHINES: dict[int, str] = {  # EF_AMDGPU_MACH -> the name of the processor
  0x20: "gfx600",
  0x21: "gfx601",
  0x22: "gfx700",
  0x23: "gfx701",
  0x24: "gfx702",
  0x25: "gfx703",
  0x26: "gfx704",
  0x28: "gfx801",
  0x29: "gfx802",
  0x2a: "gfx803",
  0x2b: "gfx810",
  0x2c: "gfx900",
  0x2d: "gfx902",
  0x2e: "gfx904",
  0x2f: "gfx906",
  0x30: "gfx908",
  0x31: "gfx909",
  0x32: "gfx90c",
  0x33: "gfx1010",
  0x34: "gfx1011",
  0x35: "gfx1012",
  0x36: "gfx1030",
  0x37: "gfx1031",
  0x38: "gfx1032",
  0x39: "gfx1033",
  0x3a: "gfx602",
  0x3b: "gfx705",
  0x3c: "gfx805",
  0x3d: "gfx1035",
  0x3e: "gfx1034",
  0x3f: "gfx90a",
  0x40: "gfx940",
  0x41: "gfx1100",
  0x42: "gfx1013",
  0x43: "gfx1150",
  0x44: "gfx1103",
  0x45: "gfx1036",
  0x46: "gfx1101",
  0x47: "gfx1102",
  0x48: "gfx1200",
  0x49: "gfx1250",
  0x4a: "gfx1151",
  0x4b: "gfx941",
  0x4c: "gfx942",
  0x4e: "gfx1201",
  0x4f: "gfx950",
  0x51: "gfx9-generic",
  0x52: "gfx10-1-generic",
  0x53: "gfx10-3-generic",
  0x54: "gfx11-generic",
  0x55: "gfx1152",
  0x58: "gfx1153",
  0x59: "gfx12-generic",
  0x5a: "gfx1251",
  0x5f: "gfx9-4-generic",
}


class R_AMDGPU(IntEnum):
  """Relocation types."""
  NONE = 0
  ABS32_LO = 1
  ABS32_HI = 2
  ABS64 = 3
  REL32 = 4
  REL64 = 5
  ABS32 = 6
  GOTPCREL = 7
  GOTPCREL32_LO = 8
  GOTPCREL32_HI = 9
  REL32_LO = 0xa
  REL32_HI = 0xb
  RELATIVE64 = 0xd
  REL16 = 0xe


class Elf64_Ehdr(Struct):
  e_ident: ctypes.Array[ctypes.c_uint8]
  e_type: int
  e_machine: int
  e_version: int
  e_entry: int
  e_phoff: int
  e_shoff: int
  e_flags: int
  e_ehsize: int
  e_phentsize: int
  e_phnum: int
  e_shentsize: int
  e_shnum: int
  e_shstrndx: int
  _fields_ = [
    ("e_ident", ctypes.c_uint8 * EI_NIDENT),
    ("e_type", ctypes.c_uint16),
    ("e_machine", ctypes.c_uint16),
    ("e_version", ctypes.c_uint32),
    ("e_entry", ctypes.c_uint64),
    ("e_phoff", ctypes.c_uint64),
    ("e_shoff", ctypes.c_uint64),
    ("e_flags", ctypes.c_uint32),
    ("e_ehsize", ctypes.c_uint16),
    ("e_phentsize", ctypes.c_uint16),
    ("e_phnum", ctypes.c_uint16),
    ("e_shentsize", ctypes.c_uint16),
    ("e_shnum", ctypes.c_uint16),
    ("e_shstrndx", ctypes.c_uint16),
  ]


class Elf64_Shdr(Struct):
  sh_name: int
  sh_type: int
  sh_flags: int
  sh_addr: int
  sh_offset: int
  sh_size: int
  sh_link: int
  sh_info: int
  sh_addralign: int
  sh_entsize: int
  _fields_ = [
    ("sh_name", ctypes.c_uint32),
    ("sh_type", ctypes.c_uint32),
    ("sh_flags", ctypes.c_uint64),
    ("sh_addr", ctypes.c_uint64),
    ("sh_offset", ctypes.c_uint64),
    ("sh_size", ctypes.c_uint64),
    ("sh_link", ctypes.c_uint32),
    ("sh_info", ctypes.c_uint32),
    ("sh_addralign", ctypes.c_uint64),
    ("sh_entsize", ctypes.c_uint64),
  ]


class Elf64_Phdr(Struct):
  p_type: int
  p_flags: int
  p_offset: int
  p_vaddr: int
  p_paddr: int
  p_filesz: int
  p_memsz: int
  p_align: int
  _fields_ = [
    ("p_type", ctypes.c_uint32),
    ("p_flags", ctypes.c_uint32),
    ("p_offset", ctypes.c_uint64),
    ("p_vaddr", ctypes.c_uint64),
    ("p_paddr", ctypes.c_uint64),
    ("p_filesz", ctypes.c_uint64),
    ("p_memsz", ctypes.c_uint64),
    ("p_align", ctypes.c_uint64),
  ]


class Elf64_Sym(Struct):
  st_name: int
  st_info: int
  st_other: int
  st_shndx: int
  st_value: int
  st_size: int
  _fields_ = [
    ("st_name", ctypes.c_uint32),
    ("st_info", ctypes.c_uint8),
    ("st_other", ctypes.c_uint8),
    ("st_shndx", ctypes.c_uint16),
    ("st_value", ctypes.c_uint64),
    ("st_size", ctypes.c_uint64),
  ]


class Elf64_Rela(Struct):
  r_offset: int
  r_info: int
  r_addend: int
  _fields_ = [
    ("r_offset", ctypes.c_uint64),
    ("r_info", ctypes.c_uint64),
    ("r_addend", ctypes.c_int64),
  ]


class Elf64_Nhdr(Struct):
  n_namesz: int
  n_descsz: int
  n_type: int
  _fields_ = [
    ("n_namesz", ctypes.c_uint32),
    ("n_descsz", ctypes.c_uint32),
    ("n_type", ctypes.c_uint32),
  ]
