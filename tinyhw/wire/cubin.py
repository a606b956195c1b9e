"""Cubins, the ELF files of NVIDIA's programs: what a launch has to know of a kernel, and an image for GPU memory.

The image is the whole file: its header at the first byte, each section at the address of the image plus `sh_offset`.
For that, sections that memory needs and the file has not (`.nv.global`), or has where no constant bank may begin, get
a place at its end. PTX may stand in a section of its own, `.tinyhw.ptx`; `write` makes an ELF of PTX alone.

NVIDIA publishes no description of the format. The numbers here are as `cuobjdump -elf` of CUDA 13.0 names them, and
tests hold them against what ptxas writes for each architecture. Relocations: R_CUDA_*, likewise.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from tinyhw.autogen import elf_amdgpu as elf
from tinyhw.autogen.elf_amdgpu import Elf64_Ehdr, Elf64_Shdr, Elf64_Sym
from tinyhw.core.environment import digits
from tinyhw.core.errors import DecodeError, InvalidArgument, Unsupported
from tinyhw.core.nearest import offered
from tinyhw.wire.elf import Elf, Relocation, Section, Symbol

MACHINE: Final = 190  # EM_CUDA of the ELF registry
PTX_SECTION: Final = ".tinyhw.ptx"
CODE_ALIGN: Final = 128
BANK_ALIGN: Final = 256  # of constant banks and of programs in memory
RESERVED_SHARED: Final = 1024  # bytes at the start of a block's shared memory that sm_90 and newer keep for themselves
_ABI: Final = (0x41, 8)  # EI_OSABI and EI_ABIVERSION of CUDA 13
_INFO: Final = 0x70000000  # SHT_CUDA_INFO
_NO_CODE: Final = b"\0NO MACHINE CODE: this ELF was made without ptxas; the program is the PTX in section .tinyhw.ptx"
_R_CUDA_32: Final = 1
_R_CUDA_64: Final = 2
_R_CUDA_G32: Final = 3  # the same of generic addresses, which those of global memory are
_R_CUDA_G64: Final = 4
_WORDS: Final = {_R_CUDA_32: 4, _R_CUDA_G32: 4, _R_CUDA_64: 8, _R_CUDA_G64: 8}
_R_CUDA_ABS32_LO_32: Final = 0x38
_R_CUDA_ABS32_HI_32: Final = 0x39
# Of calls: (bit of the instruction, bits) of the pieces of an address in units of four bytes, the lowest first.
_CALLS: Final = {0x3A: ((34, 47),),            # R_CUDA_ABS47_34
                 0x4B: ((16, 8), (34, 47)),    # R_CUDA_ABS55_16_34
                 0x72: ((16, 8), (34, 48))}    # R_CUDA_ABS56_16_34
_INSTRUCTION: Final = 16
_SVAL: Final = 4
_HVAL: Final = 3


class Attribute(IntEnum):
  """EIATTR_*: the attributes of `.nv.info` that a launch needs."""

  MAX_THREADS = 0x05
  PARAM_CBANK = 0x0A
  REQNTID = 0x10
  FRAME_SIZE = 0x11
  MIN_STACK_SIZE = 0x12
  KPARAM_INFO = 0x17
  CBANK_PARAM_SIZE = 0x19
  MAXREG_COUNT = 0x1B
  CRS_STACK_SIZE = 0x1E
  REGCOUNT = 0x2F
  CTA_PER_CLUSTER = 0x3D
  EXPLICIT_CLUSTER = 0x3E
  MAX_CLUSTER_RANK = 0x3F
  NUM_BARRIERS = 0x4C


@dataclass(frozen=True)
class Parameter:
  """A parameter's place behind the first one's, and its bytes."""

  offset: int
  size: int


@dataclass(frozen=True)
class Kernel:
  """A kernel of a cubin. Sizes are bytes; `shared` includes what sm_90 reserves, where the kernel has shared memory.

  `text` and `banks` are places in the image: banks by number, (offset, size), the module's and the kernel's own;
  bank 0 is the launch's to make, `bank0` bytes with the parameters from `params` on. `required` is the one block that
  it runs with, `limit` the most threads of a block (0: not said). `cluster` is the one cluster that it runs in,
  `cluster_limit` the most blocks of one (0: not said); `cluster_asked`: each launch has to say which.
  """

  name: str
  text: int
  text_size: int
  registers: int
  parameters: tuple[Parameter, ...]
  params: int
  params_size: int
  bank0: int
  banks: dict[int, tuple[int, int]] = field(default_factory=dict)
  shared: int = 0
  local: int = 0
  barriers: int = 0
  limit: int = 0
  required: tuple[int, int, int] | None = None
  call_stack: int = 0
  cluster: tuple[int, int, int] | None = None
  cluster_limit: int = 0
  cluster_asked: bool = False


class Cubin:
  """A parsed cubin. Raises DecodeError for what is none, Unsupported for relocations that are not known."""

  def __init__(self, data: bytes) -> None:
    first = Elf(data)
    if first.header.e_machine != MACHINE:
      raise DecodeError(f"an ELF of machine {first.header.e_machine}, a cubin has {MACHINE}", where="cubin")
    self.file = _placed(first)
    self.elf = Elf(self.file)
    self.sm = self.elf.header.e_flags >> 8 & 0xFF
    self._sections = {s.name: s for s in self.elf.sections}
    table = self._sections.get(".symtab")
    self.symbols: list[Symbol] = self.elf.symbols(table) if table is not None else []
    self.kernels: dict[str, Kernel] = {}
    registers, frames = self._of_symbols(Attribute.REGCOUNT), self._of_symbols(Attribute.MIN_STACK_SIZE)
    frames = {**self._of_symbols(Attribute.FRAME_SIZE), **frames}
    # Not every function is a kernel: the linker's own, which kernels call, are seen by their file alone.
    called = {s.name for s in self.symbols if s.type == elf.STT_FUNC and s.binding == elf.STB_LOCAL}
    for s in self.elf.sections:
      name = s.name.removeprefix(".text.")
      if name != s.name and f".nv.info.{name}" in self._sections and name not in called:
        self.kernels[name] = self._kernel(name, s, registers.get(name, 0), frames.get(name, 0))
    self._fixups = list(self._relocations())

  @property
  def arch(self) -> str:
    """`sm_90`."""
    return f"sm_{self.sm}"

  @property
  def ptx(self) -> bytes | None:
    """The PTX that came with it, without a zero at its end."""
    section = self._sections.get(PTX_SECTION)
    return None if section is None else self.elf.contents(section).rstrip(b"\0")

  def kernel(self, name: str) -> Kernel:
    """A kernel. Raises InvalidArgument that lists those there are."""
    found = self.kernels.get(name)
    if found is None:
      raise InvalidArgument(f"no kernel {name!r}", where=f"cubin for {self.arch}",
                            hint=offered(name, self.kernels, "it has"))
    return found

  def link(self, base: int) -> bytes:
    """The image for an address in GPU memory."""
    image = bytearray(self.file)
    for at, kind, value in self._fixups:
      address = base + value
      if (size := _WORDS.get(kind)) is not None:
        image[at : at + size] = (address & (1 << 8 * size) - 1).to_bytes(size, "little")
      elif kind in _CALLS:
        word, left = int.from_bytes(image[at : at + _INSTRUCTION], "little"), address >> 2
        for place, bits in _CALLS[kind]:
          word, left = word & ~((1 << bits) - 1 << place) | (left & (1 << bits) - 1) << place, left >> bits
        image[at : at + _INSTRUCTION] = word.to_bytes(_INSTRUCTION, "little")
      else:  # the immediate of an instruction, its second dword
        half = address & 0xFFFFFFFF if kind == _R_CUDA_ABS32_LO_32 else address >> 32
        struct.pack_into("<I", image, at + 4, half)
    return bytes(image)

  # ---- attributes

  def _attributes(self, section: str) -> list[tuple[int, bytes]]:
    found = self._sections.get(section)
    return [] if found is None else list(attributes(self.elf.contents(found), section))

  def _of_symbols(self, wanted: Attribute) -> dict[str, int]:
    """Function -> a number of `.nv.info`, which goes by symbols."""
    rows = [struct.unpack("<II", v) for a, v in self._attributes(".nv.info") if a == wanted and len(v) == 8]
    return {self.symbols[i].name: int(n) for i, n in rows if i < len(self.symbols)}

  def _kernel(self, name: str, text: Section, registers: int, frame: int) -> Kernel:
    values: dict[int, bytes] = {}
    parameters = []
    for attribute, value in self._attributes(f".nv.info.{name}"):
      if attribute == Attribute.KPARAM_INFO and len(value) == 12:
        _, ordinal, offset, packed = struct.unpack("<IHHI", value)
        parameters.append((ordinal, Parameter(offset, packed >> 18)))
      values[attribute] = value

    def number(wanted: Attribute) -> int:
      return int.from_bytes(values.get(wanted, b""), "little")

    def block(wanted: Attribute) -> tuple[int, int, int] | None:
      raw = values.get(wanted, b"")
      x, y, z = struct.unpack("<III", raw) if len(raw) == 12 else (0, 0, 0)
      return (x, y, z) if x else None

    cbank = values.get(Attribute.PARAM_CBANK, b"")
    _, params, size = struct.unpack("<IHH", cbank) if len(cbank) == 8 else (0, 0, number(Attribute.CBANK_PARAM_SIZE))
    banks, own = {}, f".{name}"
    for s in self.elf.sections:
      kind, _, rest = s.name.removeprefix(".nv.constant").partition(".")
      if s.name.startswith(".nv.constant") and digits(kind) and int(kind) and rest in ("", name):
        banks[int(kind)] = s.offset, s.size
    bank0, shared = self._sections.get(f".nv.constant0{own}"), self._sections.get(f".nv.shared{own}")
    limit = block(Attribute.MAX_THREADS)
    return Kernel(
      name, text.offset, text.size, registers or text.info >> 24, tuple(p for _, p in sorted(parameters)), params, size,
      max(params + size, bank0.size if bank0 else 0), banks, shared.size if shared else 0, frame,
      number(Attribute.NUM_BARRIERS), limit[0] * limit[1] * limit[2] if limit else 0, block(Attribute.REQNTID),
      number(Attribute.CRS_STACK_SIZE), block(Attribute.CTA_PER_CLUSTER), number(Attribute.MAX_CLUSTER_RANK),
      Attribute.EXPLICIT_CLUSTER in values)

  # ---- relocations

  def _relocations(self) -> list[tuple[int, int, int]]:
    """(place in the image, kind, place that it tells) of each relocation of what memory holds."""
    found = []
    for s in self.elf.sections:
      if not s.name.startswith((".rela.", ".rel.")) or s.type not in (elf.SHT_RELA, elf.SHT_REL):
        continue
      target = self.elf.sections[s.info] if s.info < len(self.elf.sections) else None
      if target is None or not target.flags & elf.SHF_ALLOC:
        continue
      raw = self.elf.contents(target)
      for row in self._rows(s, raw):
        found.append((target.offset + row.offset, row.type, self._value(row, target) + row.addend))
    return found

  def _rows(self, s: Section, raw: bytes) -> list[Relocation]:
    if s.type == elf.SHT_RELA:
      return self.elf.relocations(s)
    data, rows = self.elf.contents(s), []
    for at in range(0, len(data) - 15, 16):
      offset, info = struct.unpack_from("<QQ", data, at)
      addend = int.from_bytes(raw[offset : offset + _WORDS.get(info & 0xFFFFFFFF, 0)], "little", signed=True)
      rows.append(Relocation(offset, info & 0xFFFFFFFF, info >> 32, addend))
    return rows

  def _value(self, row: Relocation, target: Section) -> int:
    where = f"cubin, section {target.name}"
    if row.type not in (*_WORDS, *_CALLS, _R_CUDA_ABS32_LO_32, _R_CUDA_ABS32_HI_32):
      raise Unsupported("relocation", f"R_CUDA type {row.type:#x}", where=where)
    width = _WORDS.get(row.type, _INSTRUCTION if row.type in _CALLS else 8)
    if row.symbol >= len(self.symbols) or not 0 <= row.offset <= target.size - width:
      raise DecodeError(f"a relocation at {row.offset:#x} of {target.size:#x} bytes, symbol {row.symbol}", where=where)
    symbol = self.symbols[row.symbol]
    if not 0 < symbol.section < len(self.elf.sections):
      raise Unsupported("undefined symbol", symbol.name or "without a name", where=where)
    return self.elf.sections[symbol.section].offset + symbol.value


def attributes(raw: bytes, where: str = ".nv.info") -> list[tuple[int, bytes]]:
  """(attribute, its bytes) of a section of attributes. Raises DecodeError where it ends amid one."""
  rows, at = [], 0
  while at + 4 <= len(raw):
    form, attribute, size = struct.unpack_from("<BBH", raw, at)
    value = raw[at + 2 : at + 4] if form in (2, _HVAL) else b""
    if form == _SVAL:
      value = raw[at + 4 : at + 4 + size]
      if len(value) < size:
        raise DecodeError(f"attribute {attribute:#x} has {size} bytes, {len(value)} are left", where=where)
      at += size
    if form == 2: value = value[:1]
    rows.append((attribute, value))
    at += 4
  return rows


# ---- files


@dataclass
class _New:
  """A section that is to be added or moved: its row in the table, and its bytes."""

  row: Elf64_Shdr
  name: str
  data: bytes
  align: int


def _table(data: bytes, header: Elf64_Ehdr) -> list[Elf64_Shdr]:
  size = ctypes.sizeof(Elf64_Shdr)
  return [Elf64_Shdr.from_buffer_copy(data, header.e_shoff + i * size) for i in range(header.e_shnum)]


def _placed(first: Elf) -> bytes:
  """The file with a place for all that memory holds."""
  data, rows, size = bytearray(first.data), _table(first.data, first.header), ctypes.sizeof(Elf64_Shdr)
  changed = False
  for i, s in enumerate(first.sections):
    bank = s.name.startswith(".nv.constant") and not s.name.startswith(".nv.constant0.")
    missing = s.type == elf.SHT_NOBITS and s.name.startswith(".nv.global")
    if not s.flags & elf.SHF_ALLOC or not s.size or not (missing or bank and s.offset % BANK_ALIGN):
      continue
    align = BANK_ALIGN if bank else max(s.align, 16)
    data += bytes(-len(data) % align)
    rows[i].sh_offset, rows[i].sh_type = len(data), elf.SHT_PROGBITS
    data += bytes(s.size) if missing else first.contents(s)
    changed = True
  if changed:
    for i, row in enumerate(rows):
      at = first.header.e_shoff + i * size
      data[at : at + size] = bytes(row)
  return bytes(data)


def with_ptx(cubin: bytes, ptx: bytes) -> bytes:
  """The cubin with its PTX in a section; one that is there already is left."""
  found = Elf(cubin)
  if any(s.name == PTX_SECTION for s in found.sections):
    return cubin
  rows, header = _table(cubin, found.header), Elf64_Ehdr.from_buffer_copy(cubin)
  data = bytearray(cubin)
  strings = rows[header.e_shstrndx]
  names = bytearray(data[strings.sh_offset : strings.sh_offset + strings.sh_size])
  row = Elf64_Shdr(sh_name=len(names), sh_type=elf.SHT_PROGBITS, sh_addralign=1, sh_size=len(ptx))
  names += PTX_SECTION.encode() + b"\0"
  row.sh_offset = len(data)
  data += ptx
  strings.sh_offset, strings.sh_size = len(data), len(names)
  data += names
  data += bytes(-len(data) % 8)
  header.e_shoff, header.e_shnum = len(data), len(rows) + 1
  for r in (*rows, row): data += bytes(r)
  data[: ctypes.sizeof(header)] = bytes(header)
  return bytes(data)


@dataclass(frozen=True)
class CubinEntry:
  """A kernel of an ELF without machine code: parameters in order, bytes of static shared memory, the most threads,
  `local` bytes of a thread's own memory, the cluster that it runs in."""

  name: str
  parameters: tuple[Parameter, ...] = ()
  shared: int = 0
  limit: int = 0
  required: tuple[int, int, int] | None = None
  registers: int = 32
  local: int = 0
  cluster: tuple[int, int, int] | None = None


@dataclass(frozen=True)
class Data:
  """Variables of a module: (name, offset, size) in bytes that begin as `image`, and addresses in it.

  `addresses` are (offset, offset that it tells) of 64 bits each.
  """

  image: bytes = b""
  variables: tuple[tuple[str, int, int], ...] = ()
  addresses: tuple[tuple[int, int], ...] = ()


def write(ptx: bytes, sm: int, params: int, entries: Sequence[CubinEntry], data: Data | None = None,
          reserved: int = 0) -> bytes:
  """An ELF that carries PTX and no machine code: each kernel's `.text` says so.

  `params`: where parameters begin in constant bank 0; `reserved`: shared memory that a block keeps for itself.
  """
  names, sections = bytearray(b"\0"), list[tuple[str, int, int, int, int, int, bytes, int]]()

  def add(name: str, kind: int, flags: int, raw: bytes, align: int = 4, link: int = 0, info: int = 0,
          size: int | None = None) -> int:
    sections.append((name, kind, flags, link, info, align, raw, len(raw) if size is None else size))
    return len(sections)

  strings = bytearray(b"\0")
  symbols = [Elf64_Sym()]

  def symbol(name: str, kind: int, section: int, value: int = 0, size: int = 0) -> int:
    row = Elf64_Sym(st_name=len(strings), st_info=1 << 4 | kind, st_shndx=section, st_value=value, st_size=size)
    symbols.append(row)
    strings.extend(name.encode() + b"\0")
    return len(symbols) - 1

  add(".shstrtab", elf.SHT_STRTAB, 0, b"", 1)
  add(".strtab", elf.SHT_STRTAB, 0, b"", 1)
  add(".symtab", elf.SHT_SYMTAB, 0, b"", 8, 2, 1)
  info = b""
  for e in entries:
    text = add(f".text.{e.name}", elf.SHT_PROGBITS, elf.SHF_ALLOC | elf.SHF_EXECINSTR, _NO_CODE.ljust(128, b"\0"),
               CODE_ALIGN, 3)
    me = symbol(e.name, 2, text, 0, 128)
    size = max((p.offset + p.size for p in e.parameters), default=0)
    if e.shared:
      add(f".nv.shared.{e.name}", elf.SHT_NOBITS, elf.SHF_ALLOC | elf.SHF_WRITE, b"", 16, 0, text, e.shared + reserved)
    bank = add(f".nv.constant0.{e.name}", elf.SHT_PROGBITS, elf.SHF_ALLOC, bytes(params + size), 4, 0, text)
    add(f".nv.info.{e.name}", _INFO, 0, _entry_info(e, params, size, symbol(f".nv.constant0.{e.name}", 3, bank)), 4, 3,
        text)
    info += _sval(Attribute.REGCOUNT, struct.pack("<II", me, e.registers))
    for attribute in (Attribute.FRAME_SIZE, Attribute.MIN_STACK_SIZE) if e.local else ():
      info += _sval(attribute, struct.pack("<II", me, e.local))
  add(".nv.info", _INFO, 0, info, 4, 3)
  if data is not None and data.image:
    place = add(".nv.global.init", elf.SHT_PROGBITS, elf.SHF_ALLOC | elf.SHF_WRITE, data.image, 256)
    whole = symbol(".nv.global.init", 3, place)
    for name, offset, size in data.variables: symbol(name, 1, place, offset, size)
    rows = b"".join(struct.pack("<QQq", at, whole << 32 | _R_CUDA_64, to) for at, to in data.addresses)
    if rows: add(".rela.nv.global.init", elf.SHT_RELA, 0, rows, 8, 3, place)
  add(PTX_SECTION, elf.SHT_PROGBITS, 0, ptx, 1)
  return _file(sm, names, sections, bytes(strings), symbols)


def _sval(attribute: Attribute, value: bytes) -> bytes:
  return struct.pack("<BBH", _SVAL, attribute, len(value)) + value


def _entry_info(e: CubinEntry, params: int, size: int, bank: int) -> bytes:
  out = b""
  for n, p in reversed(list(enumerate(e.parameters))):
    out += _sval(Attribute.KPARAM_INFO, struct.pack("<IHHI", 0, n, p.offset, p.size << 18 | 0x1F000))
  if e.required is not None: out += _sval(Attribute.REQNTID, struct.pack("<III", *e.required))
  elif e.limit: out += _sval(Attribute.MAX_THREADS, struct.pack("<III", e.limit, 1, 1))
  if e.cluster is not None: out += _sval(Attribute.CTA_PER_CLUSTER, struct.pack("<III", *e.cluster))
  out += struct.pack("<BBH", _HVAL, Attribute.MAXREG_COUNT, 255)
  out += struct.pack("<BBH", _HVAL, Attribute.CBANK_PARAM_SIZE, size)
  return out + _sval(Attribute.PARAM_CBANK, struct.pack("<IHH", bank, params, size))


def _file(sm: int, names: bytearray, sections: list[tuple[str, int, int, int, int, int, bytes, int]], strings: bytes,
          symbols: Sequence[Elf64_Sym]) -> bytes:
  for name, *_ in sections: names += name.encode() + b"\0"
  given = {".shstrtab": bytes(names), ".strtab": strings, ".symtab": b"".join(bytes(s) for s in symbols)}
  data, rows, at = bytearray(ctypes.sizeof(Elf64_Ehdr)), [Elf64_Shdr()], 1
  for name, kind, flags, link, info, align, raw, size in sections:
    raw = given.get(name, raw)
    data += bytes(-len(data) % max(align, 1))
    rows.append(Elf64_Shdr(sh_name=at, sh_type=kind, sh_flags=flags, sh_offset=len(data), sh_link=link, sh_info=info,
                           sh_size=size if kind == elf.SHT_NOBITS else len(raw), sh_addralign=align,
                           sh_entsize={".symtab": 24}.get(name, 24 if name.startswith(".rela") else 0)))
    data += raw
    at += len(name) + 1
  data += bytes(-len(data) % 8)
  header = Elf64_Ehdr(e_type=2, e_machine=MACHINE, e_version=1, e_shoff=len(data), e_flags=0x6000000 | sm << 8,
                      e_ehsize=ctypes.sizeof(Elf64_Ehdr), e_shentsize=ctypes.sizeof(Elf64_Shdr), e_shnum=len(rows),
                      e_shstrndx=1)
  ident = b"\x7fELF" + bytes((2, 1, 1, *_ABI))
  for i, value in enumerate(ident): header.e_ident[i] = value
  for row in rows: data += bytes(row)
  data[: ctypes.sizeof(header)] = bytes(header)
  return bytes(data)
