"""A code object with one kernel, written as a linker would: ELF, descriptor, metadata, code and data behind it.

Sources: LLVM's AMDGPUUsage, "ELF Code Object", "Kernel Descriptor", "Code Object V5 Metadata"; System V ABI for the
dynamic section, which ROCr's loader wants. All numbers come from `autogen`.
"""
from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Final

import msgpack

from tinyhw.arch import Arch
from tinyhw.autogen import amdhsa, sq
from tinyhw.autogen import elf_amdgpu as elf

NAME: Final = "conform"
_PAGE: Final = 4096
_SEGMENTS: Final = 5


@dataclass(frozen=True)
class KernelShape:
  """What the kernel asks for: lanes of a wave, vector and accumulation registers, bytes of LDS and of scratch a lane,
  and the MODE that its waves start with."""
  lanes: int
  vgprs: int
  accumulators: int = 0
  lds: int = 0
  scratch: int = 0
  mode: int = 0


def _put(isa: str, register: str, values: dict[str, int]) -> int:
  """A COMPUTE_PGM register from its fields; those that the generation lacks must be 0."""
  out = 0
  for name, value in values.items():
    place = sq.PROGRAM[isa][register].get(name)
    if place is None:
      assert not value, (isa, register, name)
      continue
    low, width = place
    assert value >> width == 0, (register, name, value)
    out |= value << low
  return out


def descriptor(arch: Arch, shape: KernelShape, entry: int) -> bytes:
  """The kernel descriptor; `entry` is where the code starts, from the descriptor on."""
  isa, unit = arch.isa, arch.vgpr_unit[shape.lanes]
  first = -(-shape.vgprs // 4) * 4
  total = -(-(first + shape.accumulators if arch.accumulation else shape.vgprs) // unit)
  d = amdhsa.kernel_descriptor_t()
  d.group_segment_fixed_size, d.private_segment_fixed_size = shape.lds, shape.scratch
  d.kernarg_size = 8
  d.kernel_code_entry_byte_offset = entry
  newer = {"DX10_CLAMP": shape.mode >> 8 & 1, "IEEE_MODE": shape.mode >> 9 & 1} if isa != "gfx12" else {}
  d.compute_pgm_rsrc1 = _put(isa, "RSRC1", {"VGPRS": total - 1, "FLOAT_MODE": shape.mode & 0xFF, **newer,
                                            **({"SGPRS": 2 * (-(-(arch.sgprs + 6) // 16)) - 2 if isa == "gfx9" else 0}),
                                            "MEM_ORDERED": int(isa != "gfx9")})
  d.compute_pgm_rsrc2 = _put(isa, "RSRC2", {"USER_SGPR": 2, "TGID_X_EN": 1, "SCRATCH_EN": int(shape.scratch > 0)})
  d.compute_pgm_rsrc3 = _put(isa, "RSRC3", {"ACCUM_OFFSET": first // 4 - 1 if arch.accumulation else 0})
  d.kernel_code_properties = amdhsa.KERNEL_CODE_PROPERTY_ENABLE_SGPR_KERNARG_SEGMENT_PTR | (
    amdhsa.KERNEL_CODE_PROPERTY_ENABLE_WAVEFRONT_SIZE32 if shape.lanes == 32 else 0)
  return bytes(d)


def _note(arch: Arch, shape: KernelShape) -> bytes:
  """The metadata note."""
  kernel = {
    ".name": NAME, ".symbol": f"{NAME}.kd", ".kernarg_segment_size": 8, ".kernarg_segment_align": 8,
    ".group_segment_fixed_size": shape.lds, ".private_segment_fixed_size": shape.scratch,
    ".wavefront_size": shape.lanes, ".sgpr_count": arch.sgprs, ".vgpr_count": shape.vgprs + shape.accumulators,
    ".agpr_count": shape.accumulators, ".max_flat_workgroup_size": shape.lanes,
    ".args": [{".name": "out", ".size": 8, ".offset": 0, ".value_kind": "global_buffer", ".address_space": "global"}]}
  said: bytes = msgpack.packb({"amdhsa.version": [1, 2], "amdhsa.target": f"amdgcn-amd-amdhsa--{arch.name}",
                        "amdhsa.kernels": [kernel]})
  owner = b"AMDGPU\0\0"
  head: bytes = bytes(elf.Elf64_Nhdr(7, len(said), elf.NT_AMDGPU_METADATA))
  return head + owner + said + bytes(-len(said) % 4)


def code_object(arch: Arch, shape: KernelShape, code: bytes) -> bytes:
  """The file. `code` is the kernel's, with its data behind it: it finds that by its own address."""
  names = ["", NAME, f"{NAME}.kd"]
  strings = b"\0" + b"".join(n.encode() + b"\0" for n in names[1:])
  where = {n: strings.index(n.encode() + b"\0") if n else 0 for n in names}
  note = _note(arch, shape)
  heads = ctypes.sizeof(elf.Elf64_Ehdr) + _SEGMENTS * ctypes.sizeof(elf.Elf64_Phdr)
  at = {"note": heads}
  at["dynsym"] = -(-(at["note"] + len(note)) // 8) * 8
  at["hash"] = at["dynsym"] + 3 * ctypes.sizeof(elf.Elf64_Sym)
  table = b"".join(x.to_bytes(4, "little") for x in (1, 3, 1, 0, 2, 0))  # one chain: 1, then 2
  at["dynstr"] = at["hash"] + len(table)
  at["rodata"] = -(-(at["dynstr"] + len(strings)) // 64) * 64
  at["text"] = -(-(at["rodata"] + 64) // _PAGE) * _PAGE
  at["dynamic"] = -(-(at["text"] + len(code)) // _PAGE) * _PAGE

  def symbol(name: str, kind: int, section: int, value: int, size: int) -> bytes:
    return bytes(elf.Elf64_Sym(where[name], 1 << 4 | kind, 3, section, value, size))  # global, protected
  symbols = bytes(elf.Elf64_Sym()) + symbol(NAME, elf.STT_FUNC, 6, at["text"], len(code)) + symbol(
    f"{NAME}.kd", elf.STT_OBJECT, 5, at["rodata"], 64)
  dynamic = b"".join(a.to_bytes(8, "little") + b.to_bytes(8, "little") for a, b in (
    (elf.DT_HASH, at["hash"]), (elf.DT_STRTAB, at["dynstr"]), (elf.DT_SYMTAB, at["dynsym"]),
    (elf.DT_STRSZ, len(strings)), (elf.DT_SYMENT, ctypes.sizeof(elf.Elf64_Sym)), (elf.DT_NULL, 0)))
  flags_read, flags_run, flags_write = elf.PF_R, elf.PF_R | elf.PF_X, elf.PF_R | elf.PF_W

  def segment(kind: int, flags: int, first: int, size: int, align: int) -> bytes:
    return bytes(elf.Elf64_Phdr(kind, flags, first, first, first, size, size, align))
  segments = (segment(elf.PT_LOAD, flags_read, 0, at["rodata"] + 64, _PAGE)
              + segment(elf.PT_LOAD, flags_run, at["text"], len(code), _PAGE)
              + segment(elf.PT_LOAD, flags_write, at["dynamic"], len(dynamic), _PAGE)
              + segment(elf.PT_DYNAMIC, flags_write, at["dynamic"], len(dynamic), 8)
              + segment(elf.PT_NOTE, flags_read, at["note"], len(note), 4))
  section_names = ["", ".note", ".dynsym", ".hash", ".dynstr", ".rodata", ".text", ".dynamic", ".shstrtab"]
  shstr = b"\0" + b"".join(n.encode() + b"\0" for n in section_names[1:])
  at["shstrtab"] = at["dynamic"] + len(dynamic)
  at["sections"] = -(-(at["shstrtab"] + len(shstr)) // 8) * 8
  alloc, run = elf.SHF_ALLOC, elf.SHF_ALLOC | elf.SHF_EXECINSTR

  def section(name: str, kind: int, flags: int, size: int, link: int = 0, info: int = 0, align: int = 4,
              entry: int = 0) -> bytes:
    first = at[name[1:]]
    return bytes(elf.Elf64_Shdr(shstr.index(name.encode() + b"\0"), kind, flags, first if flags else 0, first, size,
                                link, info, align, entry))
  sections = bytes(elf.Elf64_Shdr()) + b"".join((
    section(".note", elf.SHT_NOTE, alloc, len(note)),
    section(".dynsym", elf.SHT_DYNSYM, alloc, len(symbols), 4, 1, 8, ctypes.sizeof(elf.Elf64_Sym)),
    section(".hash", elf.SHT_HASH, alloc, len(table), 2, 0, 4, 4),
    section(".dynstr", elf.SHT_STRTAB, alloc, len(strings), align=1),
    section(".rodata", elf.SHT_PROGBITS, alloc, 64, align=64),
    section(".text", elf.SHT_PROGBITS, run, len(code), align=256),
    section(".dynamic", elf.SHT_DYNAMIC, alloc | elf.SHF_WRITE, len(dynamic), 4, 0, 8, 16),
    section(".shstrtab", elf.SHT_STRTAB, 0, len(shstr), align=1)))
  ident = bytearray(elf.EI_NIDENT)
  ident[:4] = b"\x7fELF"
  ident[elf.EI_CLASS], ident[elf.EI_DATA], ident[6] = elf.ELFCLASS64, elf.ELFDATA2LSB, 1
  ident[elf.EI_OSABI], ident[elf.EI_ABIVERSION] = elf.ELFOSABI_AMDGPU_HSA, elf.ELFABIVERSION_AMDGPU_HSA_V5
  head = elf.Elf64_Ehdr()
  head.e_ident[:] = list(ident)
  head.e_type, head.e_machine, head.e_version = elf.ET_DYN, elf.EM_AMDGPU, 1
  head.e_phoff, head.e_shoff = ctypes.sizeof(elf.Elf64_Ehdr), at["sections"]
  head.e_flags = arch.elf_machine | _any_features(arch)
  head.e_ehsize, head.e_phentsize = ctypes.sizeof(elf.Elf64_Ehdr), ctypes.sizeof(elf.Elf64_Phdr)
  head.e_phnum = _SEGMENTS
  head.e_shentsize, head.e_shnum, head.e_shstrndx = ctypes.sizeof(elf.Elf64_Shdr), len(section_names), 8
  file = bytearray(at["sections"] + len(sections))
  kernel = descriptor(arch, shape, at["text"] - at["rodata"])
  for first, part in ((0, bytes(head) + segments), (at["note"], note), (at["dynsym"], symbols), (at["hash"], table),
                      (at["dynstr"], strings), (at["rodata"], kernel), (at["text"], code), (at["dynamic"], dynamic),
                      (at["shstrtab"], shstr), (at["sections"], sections)):
    file[first:first + len(part)] = part
  return bytes(file)


def _any_features(arch: Arch) -> int:
  """The flags that say: with whatever setting of the features that the processor has."""
  masks = {"xnack": elf.EF_AMDGPU_FEATURE_XNACK_ANY_V4, "sramecc": elf.EF_AMDGPU_FEATURE_SRAMECC_ANY_V4}
  return sum(masks[name] for name in arch.features)
