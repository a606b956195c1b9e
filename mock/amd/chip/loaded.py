"""The name of a kernel whose code object a client has loaded, from what lies in the GPU's memory.

A loader copies a code object's segments to one place, and the first of them begins with the file's header. So its
dynamic symbols are there too, of which a kernel descriptor is one (LLVM's AMDGPUUsage, "Code Object").
"""
from __future__ import annotations

import ctypes
from typing import Final

from tinyhw.autogen import elf_amdgpu as elf
from tinyhw.core.errors import PageFault
from tinyhw.core.memory import PAGE, AddressSpace
from tinyhw.wire.elf import MAGIC

FAR: Final = 1 << 16  # pages in front of a kernel descriptor that are looked through for the header
_SYMBOL: Final = ctypes.sizeof(elf.Elf64_Sym)
_TAG: Final = 16  # bytes of Elf64_Dyn: a tag, and a value
_END: Final = ".kd"


def kernel_name(space: AddressSpace, descriptor: int) -> str | None:
  """The kernel of a descriptor at an address; None where memory does not say."""
  mapping = space.find(descriptor)
  if mapping is None: return None
  at = descriptor & ~(PAGE - 1)
  for base in range(at, max(mapping.start, at - FAR * PAGE) - 1, -PAGE):
    if space.read(base, len(MAGIC)) != MAGIC: continue
    try: return _symbol(space, base, descriptor - base)
    except PageFault: return None
  return None


def _symbol(space: AddressSpace, base: int, value: int) -> str | None:
  """The symbol of a loaded object whose value it is. Raises PageFault where a part is not there."""
  header = elf.Elf64_Ehdr.from_buffer_copy(space.read(base, ctypes.sizeof(elf.Elf64_Ehdr)))
  if header.e_machine != elf.EM_AMDGPU: return None
  size = ctypes.sizeof(elf.Elf64_Phdr)
  rows = (elf.Elf64_Phdr.from_buffer_copy(space.read(base + header.e_phoff + i * size, size))
          for i in range(header.e_phnum))
  found = next((row for row in rows if row.p_type == elf.PT_DYNAMIC), None)
  if found is None: return None
  tags: dict[int, int] = {}
  for at in range(base + found.p_vaddr, base + found.p_vaddr + found.p_memsz, _TAG):
    tag, place = space.load(at, 8), space.load(at + 8, 8)
    if tag == elf.DT_NULL: break
    tags[tag] = place
  if not {elf.DT_SYMTAB, elf.DT_STRTAB, elf.DT_HASH, elf.DT_STRSZ} <= tags.keys(): return None
  # A loader may have made addresses of the offsets.
  symbols, strings, hashes = (base + tags[tag] if tags[tag] < base else tags[tag]
                              for tag in (elf.DT_SYMTAB, elf.DT_STRTAB, elf.DT_HASH))
  names = space.read(strings, tags[elf.DT_STRSZ])
  for i in range(space.load(hashes + 4, 4)):  # nchain: as many as there are symbols
    symbol = elf.Elf64_Sym.from_buffer_copy(space.read(symbols + i * _SYMBOL, _SYMBOL))
    if symbol.st_value != value or not symbol.st_name: continue
    return names[symbol.st_name:names.index(b"\0", symbol.st_name)].decode("utf-8", "replace").removesuffix(_END)
  return None
