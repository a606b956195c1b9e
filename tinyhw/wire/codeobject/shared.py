"""A code object as a linker writes it, of one as a compiler does: for loaders that take shared objects alone (ROCr's).

The image keeps its pages, one page or more behind the file's own tables: what lies at `a` of the image has the address
`shift + a` in the file. Sources: LLVM's AMDGPUUsage, "ELF Code Object"; System V ABI, chapters 4 and 5.
"""
from __future__ import annotations

import ctypes
from collections.abc import Sequence

from tinyhw.autogen import elf_amdgpu as elf
from tinyhw.autogen.amdhsa import kernel_descriptor_t
from tinyhw.autogen.elf_amdgpu import R_AMDGPU
from tinyhw.core.errors import Unsupported
from tinyhw.wire.codeobject.identity import WHERE
from tinyhw.wire.codeobject.model import PAGE, CodeObject
from tinyhw.wire.elf import Elf

_HEADER, _SEGMENT, _SECTION = (ctypes.sizeof(t) for t in (elf.Elf64_Ehdr, elf.Elf64_Phdr, elf.Elf64_Shdr))
_SYMBOL, _RELA = ctypes.sizeof(elf.Elf64_Sym), ctypes.sizeof(elf.Elf64_Rela)
_DESCRIPTOR_BYTES = ctypes.sizeof(kernel_descriptor_t)
_ADDRESSES = frozenset({R_AMDGPU.ABS64, R_AMDGPU.RELATIVE64})


def _up(value: int, unit: int) -> int: return -(-value // unit) * unit


class _Strings:
  """A string table."""

  def __init__(self) -> None: self.data = b"\0"

  def add(self, text: str) -> int:
    at = len(self.data)
    self.data += text.encode() + b"\0"
    return at


def _hash_table(count: int) -> bytes:
  """DT_HASH with one bucket, in which each symbol leads to the next."""
  chain = [0, *range(2, count), 0][:count]
  return b"".join(n.to_bytes(4, "little") for n in (1, count, min(1, count - 1), *chain))


def shared(code: CodeObject) -> bytes:
  """The file of a shared object with the kernels of a code object: its own where it is one.

  Raises Unsupported for relocations that only a linker could settle.
  """
  file = Elf(code.file)
  if file.header.e_type == elf.ET_DYN: return code.file
  for fixup in code.fixups:
    if fixup.kind not in _ADDRESSES or fixup.sign != 1:
      raise Unsupported("relocation that waits for an address", fixup.kind.name, where=WHERE,
                        hint="link the object with ld.lld -shared")
  notes = b"".join(file.contents(s) for s in file.sections if s.type == elf.SHT_NOTE)
  strings, names = _Strings(), _Strings()
  named = [(kernel, strings.add(kernel.name), strings.add(f"{kernel.name}.kd")) for kernel in code.kernels.values()]
  parts = [(s.offset, s.size, s.writable, s.executable) for s in code.segments]
  segments = 4 + len(parts)
  at = {"note": _up(_HEADER + segments * _SEGMENT, 8)}
  at["dynsym"] = _up(at["note"] + len(notes), 8)
  at["hash"] = at["dynsym"] + (1 + 2 * len(named)) * _SYMBOL
  table = _hash_table(1 + 2 * len(named))
  at["dynstr"] = at["hash"] + len(table)
  at["rela.dyn"] = _up(at["dynstr"] + len(strings.data), 8)
  tables_end = at["rela.dyn"] + len(code.fixups) * _RELA
  shift = _up(tables_end, PAGE)
  at["dynamic"] = _up(shift + len(code.image), PAGE)

  def part_of(place: int) -> int:
    """The section, of those that are written below, that has a place of the image."""
    return 6 + next(i for i, (start, size, _, _) in enumerate(parts) if start <= place < start + size)
  symbols = bytes(_SYMBOL)
  for kernel, name, described in named:
    kind = elf.STB_GLOBAL << 4
    symbols += bytes(elf.Elf64_Sym(name, kind | elf.STT_FUNC, elf.STV_PROTECTED, part_of(kernel.entry_offset),
                                   shift + kernel.entry_offset, 0))
    symbols += bytes(elf.Elf64_Sym(described, kind | elf.STT_OBJECT, elf.STV_PROTECTED,
                                   part_of(kernel.descriptor_offset), shift + kernel.descriptor_offset,
                                   _DESCRIPTOR_BYTES))
  relocations = b"".join(bytes(elf.Elf64_Rela(shift + f.offset, R_AMDGPU.RELATIVE64, shift + f.value))
                         for f in code.fixups)
  rows = [(elf.DT_HASH, at["hash"]), (elf.DT_STRTAB, at["dynstr"]), (elf.DT_SYMTAB, at["dynsym"]),
          (elf.DT_STRSZ, len(strings.data)), (elf.DT_SYMENT, _SYMBOL)]
  if relocations: rows += [(elf.DT_RELA, at["rela.dyn"]), (elf.DT_RELASZ, len(relocations)), (elf.DT_RELAENT, _RELA)]
  dynamic = b"".join(a.to_bytes(8, "little") + b.to_bytes(8, "little") for a, b in (*rows, (elf.DT_NULL, 0)))
  at["shstrtab"] = at["dynamic"] + len(dynamic)
  read, write, run = elf.PF_R, elf.PF_R | elf.PF_W, elf.PF_R | elf.PF_X
  program = _segment(elf.PT_LOAD, read, 0, tables_end, PAGE)
  for start, size, writable, executable in parts:
    program += _segment(elf.PT_LOAD, run if executable else write if writable else read, shift + start, size, PAGE)
  program += _segment(elf.PT_LOAD, write, at["dynamic"], len(dynamic), PAGE)
  program += _segment(elf.PT_DYNAMIC, write, at["dynamic"], len(dynamic), 8)
  program += _segment(elf.PT_NOTE, read, at["note"], len(notes), 4)
  alloc = elf.SHF_ALLOC
  table_rows: list[tuple[str, int, int, int, int, int, int, int]] = [  # flags, address, size, link, info, entry
    (".note", elf.SHT_NOTE, alloc, at["note"], len(notes), 0, 0, 0),
    (".dynsym", elf.SHT_DYNSYM, alloc, at["dynsym"], len(symbols), 4, 1, _SYMBOL),
    (".hash", elf.SHT_HASH, alloc, at["hash"], len(table), 2, 0, 4),
    (".dynstr", elf.SHT_STRTAB, alloc, at["dynstr"], len(strings.data), 0, 0, 0),
    (".rela.dyn", elf.SHT_RELA, alloc, at["rela.dyn"], len(relocations), 2, 0, _RELA)]
  for i, (start, size, writable, executable) in enumerate(parts):
    flags = alloc | elf.SHF_WRITE * writable | elf.SHF_EXECINSTR * executable
    table_rows.append((f".part{i}", elf.SHT_PROGBITS, flags, shift + start, size, 0, 0, 0))
  table_rows.append((".dynamic", elf.SHT_DYNAMIC, alloc | elf.SHF_WRITE, at["dynamic"], len(dynamic), 4, 0, 16))
  # ROCr 6.1 looks for kernels in .symtab: of an object that was stripped of it, it finds none.
  table_rows.append((".symtab", elf.SHT_SYMTAB, 0, at["dynsym"], len(symbols), 4, 1, _SYMBOL))
  places = [(names.add(name), *row) for name, *row in table_rows]
  last = names.add(".shstrtab")
  places.append((last, elf.SHT_STRTAB, 0, at["shstrtab"], len(names.data), 0, 0, 0))
  sections = bytes(_SECTION) + b"".join(_section(*place) for place in places)
  at["sections"] = _up(at["shstrtab"] + len(names.data), 8)
  head = elf.Elf64_Ehdr.from_buffer_copy(bytes(file.header))
  head.e_type, head.e_phoff, head.e_shoff, head.e_phentsize, head.e_phnum = (elf.ET_DYN, _HEADER, at["sections"],
                                                                             _SEGMENT, segments)
  head.e_shentsize, head.e_shnum, head.e_shstrndx = _SECTION, len(places) + 1, len(places)
  return _written(at["sections"] + len(sections), (
    (0, bytes(head) + program), (at["note"], notes), (at["dynsym"], symbols), (at["hash"], table),
    (at["dynstr"], strings.data), (at["rela.dyn"], relocations), (shift, code.image), (at["dynamic"], dynamic),
    (at["shstrtab"], names.data), (at["sections"], sections)))


def _segment(kind: int, flags: int, first: int, size: int, align: int) -> bytes:
  return bytes(elf.Elf64_Phdr(kind, flags, first, first, first, size, size, align))


def _section(name: int, kind: int, flags: int, first: int, size: int, link: int, info: int, entry: int) -> bytes:
  align = 1 if kind == elf.SHT_STRTAB else PAGE if kind == elf.SHT_PROGBITS else 4 if kind == elf.SHT_NOTE else 8
  return bytes(elf.Elf64_Shdr(name, kind, flags, first if flags else 0, first, size, link, info, align, entry))


def _written(size: int, parts: Sequence[tuple[int, bytes]]) -> bytes:
  file = bytearray(size)
  for first, part in parts: file[first:first + len(part)] = part
  return bytes(file)
