"""AMDGPU code objects (versions 4 to 6): kernels, their arguments, and the memory image for the address of loading.

Takes what a linker makes (ET_DYN: clang with lld, comgr) and what a compiler makes (ET_REL: llvmlite's objects), whose
sections it lays out and whose relocations it applies itself. The metadata's keys are those of LLVM's AMDGPUUsage, "Code
Object Metadata".
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tinyhw.autogen import amdhsa
from tinyhw.autogen import elf_amdgpu as elf
from tinyhw.autogen.amdhsa import kernel_descriptor_t
from tinyhw.autogen.elf_amdgpu import R_AMDGPU
from tinyhw.core.errors import DecodeError, InvalidArgument, Unsupported
from tinyhw.core.lazy import cached_property
from tinyhw.wire.ctype import CType, named, of_value_type
from tinyhw.wire.elf import Elf, Relocation, Symbol

if TYPE_CHECKING:
  from tinyhw.core.source import Source

PAGE = 4096
PRELOAD_PROLOGUE = 256  # bytes at a kernel's entry that run where nothing preloads arguments (see Kernel.start_offset)
IMAGE_LIMIT = 1 << 28  # bytes; a header that asks for more is taken for damage
WHERE = "code object"
VERSIONS = {
  elf.ELFABIVERSION_AMDGPU_HSA_V4: 4,
  elf.ELFABIVERSION_AMDGPU_HSA_V5: 5,
  elf.ELFABIVERSION_AMDGPU_HSA_V6: 6,
  elf.ELFABIVERSION_AMDGPU_HSA_V2: 2,
  elf.ELFABIVERSION_AMDGPU_HSA_V3: 3,
}
# A generic processor's code runs on these (LLVM's AMDGPUUsage, "AMDGPU Generic Processors"), each of which was there
# from the first version of its generic processor on.
GENERIC = {
  "gfx9-generic": ("gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"),
  "gfx9-4-generic": ("gfx940", "gfx941", "gfx942", "gfx950"),
  "gfx10-1-generic": ("gfx1010", "gfx1011", "gfx1012", "gfx1013"),
  "gfx10-3-generic": ("gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"),
  "gfx11-generic": ("gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"),
  "gfx12-generic": ("gfx1200", "gfx1201"),
}
# What code may be compiled for: a feature's mask in the ELF's flags, and what its values say. Code for "any" setting
# runs with both, other code only where the card is set so (AMDGPUUsage, "Target ID").
FEATURES: dict[str, tuple[int, dict[int, str]]] = {
  "sramecc": (elf.EF_AMDGPU_FEATURE_SRAMECC_V4, {
    elf.EF_AMDGPU_FEATURE_SRAMECC_ANY_V4: "", elf.EF_AMDGPU_FEATURE_SRAMECC_OFF_V4: "-",
    elf.EF_AMDGPU_FEATURE_SRAMECC_ON_V4: "+"}),
  "xnack": (elf.EF_AMDGPU_FEATURE_XNACK_V4, {
    elf.EF_AMDGPU_FEATURE_XNACK_ANY_V4: "", elf.EF_AMDGPU_FEATURE_XNACK_OFF_V4: "-",
    elf.EF_AMDGPU_FEATURE_XNACK_ON_V4: "+"}),
}
BUNDLE, COMPRESSED = b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"  # how files of several code objects begin
BUNDLED_LIMIT = 256  # code objects in one; a header that claims more is taken for damage
OTHER_MACHINES = {
  elf.EM_X86_64: "x86-64",
  elf.EM_386: "x86",
  elf.EM_AARCH64: "AArch64",
  elf.EM_ARM: "ARM",
  elf.EM_CUDA: "an NVIDIA GPU",
  elf.EM_RISCV: "RISC-V",
  elf.EM_PPC64: "PowerPC",
  elf.EM_BPF: "BPF",
}
RELATIVE = frozenset({R_AMDGPU.REL32, R_AMDGPU.REL64, R_AMDGPU.REL32_LO, R_AMDGPU.REL32_HI, R_AMDGPU.REL16})
ABSOLUTE = frozenset({R_AMDGPU.ABS32, R_AMDGPU.ABS64, R_AMDGPU.ABS32_LO, R_AMDGPU.ABS32_HI})
THROUGH_GOT = {
  R_AMDGPU.GOTPCREL: R_AMDGPU.REL32,
  R_AMDGPU.GOTPCREL32_LO: R_AMDGPU.REL32_LO,
  R_AMDGPU.GOTPCREL32_HI: R_AMDGPU.REL32_HI,
}
WIDTHS = {R_AMDGPU.REL64: 8, R_AMDGPU.ABS64: 8, R_AMDGPU.RELATIVE64: 8, R_AMDGPU.REL16: 2}  # bytes; 4 for the others
T = TypeVar("T")


@dataclass(frozen=True)
class Argument:
  """A kernel argument: `kind` is the metadata's value kind (by_value, global_buffer, hidden_block_count_x, ...).

  `type` is what the metadata says of the parameter's type in the source, None where it says nothing that is known;
  `pointee_align` is the alignment that a dynamic_shared_pointer's memory needs.
  """

  name: str
  kind: str
  offset: int
  size: int
  type_name: str | None = None
  address_space: str | None = None
  pointee_align: int = 1
  type: CType | None = None

  @property
  def hidden(self) -> bool:
    return self.kind.startswith("hidden_")

  @property
  def pointer(self) -> bool:
    return self.kind in ("global_buffer", "dynamic_shared_pointer")


@dataclass(frozen=True)
class Kernel:
  """A kernel of a code object. Offsets count from the image's start; sizes are bytes.

  The group segment is LDS of a workgroup, the private segment scratch of a work-item.
  """

  name: str
  descriptor: kernel_descriptor_t = field(repr=False, compare=False)
  descriptor_offset: int
  entry_offset: int
  kernarg_size: int
  kernarg_align: int
  group_segment_size: int
  private_segment_size: int
  wavefront_size: int
  max_workgroup_size: int
  required_workgroup_size: tuple[int, int, int] | None
  dynamic_stack: bool
  arguments: tuple[Argument, ...]  # as the source declares them
  hidden: tuple[Argument, ...]  # what the runtime fills

  @property
  def preload(self) -> tuple[int, int]:
    """(first, count) of the dwords of its arguments that SGPRs hold when a wave starts (KERNARG_PRELOAD_SPEC)."""
    spec = self.descriptor.kernarg_preload
    offset = (spec & amdhsa.KERNARG_PRELOAD_SPEC_OFFSET) >> amdhsa.KERNARG_PRELOAD_SPEC_OFFSET_SHIFT
    return offset, (spec & amdhsa.KERNARG_PRELOAD_SPEC_LENGTH) >> amdhsa.KERNARG_PRELOAD_SPEC_LENGTH_SHIFT

  @property
  def start_offset(self) -> int:
    """Where waves start: behind the prologue that loads the arguments, where the command processor preloads them.

    LLVM's AMDGPUUsage, "Preloaded Kernel Arguments": firmware that preloads adds 256 to the entry point.
    """
    return self.entry_offset + (PRELOAD_PROLOGUE if self.preload[1] else 0)

  def property(self, mask: int) -> bool:
    """Whether one of amdhsa.KERNEL_CODE_PROPERTY_* is set."""
    return bool(self.descriptor.kernel_code_properties & mask)


@dataclass(frozen=True)
class Segment:
  """A part of the image with one kind of access."""

  offset: int
  size: int
  writable: bool
  executable: bool


@dataclass(frozen=True)
class Fixup:
  """A place in the image that depends on where the image is loaded: kind, and the value that the base is added to."""

  offset: int
  kind: R_AMDGPU
  value: int
  sign: int  # 1: base + value (an address), -1: value - base (an absolute symbol, relative to the place)


@dataclass(frozen=True)
class CodeObject:
  """A code object. `image` is position-independent but for `fixups`; `link` gives the bytes for a base address."""

  arch: str
  version: int
  target: str  # the metadata's target id, features included
  kernels: dict[str, Kernel]
  symbols: dict[str, int]
  segments: tuple[Segment, ...]
  image: bytes = field(repr=False)
  fixups: tuple[Fixup, ...] = field(repr=False)
  features: Mapping[str, bool] = field(default_factory=dict)  # those that the code wants on (xnack+) or off
  generic_version: int = 0  # of a generic processor's code, from 1 on
  file: bytes = field(default=b"", repr=False)
  places: Mapping[int, int] = field(default_factory=dict, repr=False)  # of an object's sections in the image

  @cached_property
  def source(self) -> Source:
    """What debug information says of the instructions, by their offset in the image; nothing where there is none."""
    from tinyhw.wire.lines import Lines
    return Lines(self.file, self.places)

  @property
  def target_id(self) -> str:
    """What the code is for: `gfx942:sramecc+:xnack-`."""
    return target_id(self.arch, self.features)

  def kernel(self, name: str) -> Kernel:
    """Raises InvalidArgument, listing the kernels there are."""
    found = self.kernels.get(name.removesuffix(".kd"))
    if found is None:
      raise InvalidArgument(f"no kernel {name!r}", where=WHERE, hint=f"it has {', '.join(self.kernels) or 'none'}")
    return found

  def check(self, arch: str, features: Mapping[str, bool] | None = None) -> None:
    """Raises InvalidArgument when a card with that processor and those features on or off would not load the code.

    The rules of ROCm's loader: the processor itself, or a generic one that covers it in a code object that says so; and
    each feature that the code wants on or off has to be so on the card.
    """
    has = features or {}
    covered = arch in GENERIC.get(self.arch, ()) and self.generic_version >= elf.EF_AMDGPU_GENERIC_VERSION_MIN
    if (self.arch == arch or covered) and all(has.get(name) is on for name, on in self.features.items()):
      return
    hint = f"compile it with -mcpu={target_id(arch, has)}"
    if arch in GENERIC.get(self.arch, ()) and not covered:
      hint = "code for a generic processor says its version: compile it with -mcode-object-version=6"
    raise InvalidArgument(
      f"the code is for {self.target_id}, the device is {target_id(arch, has)}", where=WHERE, hint=hint
    )

  def link(self, base: int) -> bytes:
    """The image for the address `base` (a multiple of 4096)."""
    if base % PAGE or not 0 <= base < 1 << 57:
      raise InvalidArgument(f"{base:#x} is no page address", where=WHERE)
    if not self.fixups:
      return self.image
    image = bytearray(self.image)
    for f in self.fixups:
      _patch(image, f.offset, f.kind, f.value + f.sign * base)
    return bytes(image)


def target_id(processor: str, features: Mapping[str, bool]) -> str:
  """A processor and its features as LLVM writes them: `gfx942:sramecc+:xnack-`."""
  return ":".join([processor, *(f"{name}{'+' if on else '-'}" for name, on in sorted(features.items()))])


def place(loaded: Iterable[tuple[int, CodeObject]], address: int) -> str | None:
  """`symbol+0x10` of an address in the code of one of the objects, which lie at the addresses before them."""
  for base, code in loaded:
    at = address - base
    part = next((s for s in code.segments if s.executable and s.offset <= at < s.offset + s.size), None)
    if part is None: continue
    found = max(((a, n) for n, a in code.symbols.items() if part.offset <= a <= at), default=None)
    return f"{found[1]}+{at - found[0]:#x}" if found else None
  return None


def with_places(loaded: Iterable[tuple[int, CodeObject]], text: str) -> str:
  """The text with the place behind each `PC 0x...` that lies in one of the objects."""
  images = list(loaded)

  def named(m: re.Match[str]) -> str:
    found = place(images, int(m[1], 16))
    return f"{m[0]} ({found})" if found else m[0]
  return re.sub(r"PC 0x([0-9a-f]+)", named, text)


def unbundled(data: bytes, arch: str | None = None) -> bytes:
  """The code object in a bundle (of `clang -x hip`, `hipcc --genco`) that is for `arch`, or the only one; other bytes
  stay. Format: LLVM's ClangOffloadBundler, "Bundled Binary File Layout".

  Raises DecodeError for a broken bundle, Unsupported for a compressed one, InvalidArgument where none or several fit.
  """
  if data.startswith(COMPRESSED):
    raise Unsupported("file", "a compressed offload bundle", where=WHERE, hint="compile with --no-offload-compress")
  if not data.startswith(BUNDLE): return data

  def number(at: int) -> int:
    if at + 8 > len(data): raise DecodeError("truncated offload bundle", where=WHERE)
    return int.from_bytes(data[at:at + 8], "little")
  found: dict[str, bytes] = {}
  at = len(BUNDLE) + 8
  for _ in range(min(number(len(BUNDLE)), BUNDLED_LIMIT)):
    start, size, length = (number(at + 8 * k) for k in range(3))
    at += 24 + length
    if start + size > len(data) or at > len(data): raise DecodeError("truncated offload bundle", where=WHERE)
    kind, _, target = data[at - length:at].decode("ascii", "replace").partition("-amdgcn-amd-amdhsa-")
    if target and size: found[target.lstrip("-")] = data[start:start + size]
  names = {t: t.split(":")[0] for t in found}
  fitting = [t for t in found if arch is None or names[t] == arch]
  fitting = fitting or [t for t in found if arch in GENERIC.get(names[t], ())]
  if len(fitting) == 1: return found[fitting[0]]
  has = f"an offload bundle for {', '.join(found) or 'no AMD GPU'}"
  raise InvalidArgument(has if arch is None else f"{has}; the device is {arch}", where=WHERE,
                        hint="compile for one GPU with --offload-arch, or take one out with clang-offload-bundler")


def load(data: bytes, *, arch: str | None = None, features: Mapping[str, bool] | None = None) -> CodeObject:
  """Read a code object, or the one for `arch` in an offload bundle; with `arch`, refuse one for another GPU, or for
  other `features` than it has.

  Raises DecodeError for what is no code object, Unsupported for versions before 4, InvalidArgument for another GPU.
  """
  file = Elf(unbundled(data, arch))
  processor, version, features_of_code, generic = _identify(file)
  if file.header.e_type == elf.ET_DYN:
    image, symbols, segments, fixups, places = _linked(file)
  elif file.header.e_type == elf.ET_REL:
    image, symbols, segments, fixups, places = _lay_out(file)
  else:
    raise DecodeError(f"ELF type {file.header.e_type} is neither relocatable nor shared", where=WHERE)
  metadata = _metadata(file)
  target = _get(metadata, "amdhsa.target", str, "")
  rows = {_get(row, ".symbol", str): row for row in _list(_get(metadata, "amdhsa.kernels", list, []), dict)}
  missing = [name for name in rows if name not in symbols]
  if missing:
    raise DecodeError(f"the metadata has {', '.join(missing)}, which is no symbol", where=WHERE)
  kernels = [
    _kernel(name, offset, image, segments, rows.get(name)) for name, offset in symbols.items() if name.endswith(".kd")
  ]
  result = CodeObject(
    processor, version, target, {k.name: k for k in kernels}, symbols, segments, bytes(image), fixups,
    features_of_code, generic, file.data, places,
  )
  if arch is not None:
    result.check(arch, features)
  return result


def _identify(file: Elf) -> tuple[str, int, dict[str, bool], int]:
  """Processor, code object version, the features that the code wants on or off, version of a generic processor."""
  header = file.header
  if header.e_machine != elf.EM_AMDGPU:
    machine = OTHER_MACHINES.get(header.e_machine, f"machine {header.e_machine}")
    raise DecodeError(f"an ELF for {machine}, not for an AMD GPU", where=WHERE)
  if header.e_ident[elf.EI_OSABI] != elf.ELFOSABI_AMDGPU_HSA:
    raise DecodeError(
      f"OS ABI {header.e_ident[elf.EI_OSABI]} is not amdhsa", where=WHERE, hint="compile for amdgcn-amd-amdhsa"
    )
  version = VERSIONS.get(header.e_ident[elf.EI_ABIVERSION])
  if version is None:
    raise DecodeError(f"unknown ABI version {header.e_ident[elf.EI_ABIVERSION]}", where=WHERE)
  if version < 4:
    raise Unsupported("code object version", str(version), where=WHERE, hint="compile with -mcode-object-version=5")
  mach = header.e_flags & elf.EF_AMDGPU_MACH
  if mach not in elf.MACHINES:
    raise DecodeError(f"unknown processor {mach:#x}", where=WHERE)
  chosen = {name: values.get(header.e_flags & mask, "") for name, (mask, values) in FEATURES.items()}
  generic = (header.e_flags & elf.EF_AMDGPU_GENERIC_VERSION) >> elf.EF_AMDGPU_GENERIC_VERSION_OFFSET
  wanted = {name: sign == "+" for name, sign in chosen.items() if sign}
  return elf.MACHINES[mach], version, wanted, generic if version >= 6 else 0


# image, symbols, segments, fixups, places of an object's sections
Loaded = tuple[bytearray, dict[str, int], tuple[Segment, ...], tuple[Fixup, ...], dict[int, int]]


def _new_image(size: int) -> bytearray:
  if size > IMAGE_LIMIT:
    raise DecodeError(f"an image of {size:#x} bytes", where=WHERE)
  return bytearray(size)


def _linked(file: Elf) -> Loaded:
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
      _relocate(image, fixups, row, row.offset, value, absolute)
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


def _lay_out(file: Elf) -> Loaded:
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
    _relocate(image, fixups, Relocation(slot, R_AMDGPU.ABS64, 0, 0), slot, value, absolute)
  for row, offset, value, absolute in rows:
    if row.type in THROUGH_GOT:
      row, value, absolute = replace(row, type=THROUGH_GOT[R_AMDGPU(row.type)]), got[value, absolute], False
    _relocate(image, fixups, row, offset, value, absolute)
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


def _relocate(image: bytearray, fixups: list[Fixup], row: Relocation, place: int, value: int, absolute: bool) -> None:
  """Apply what does not depend on the base; note down the rest. Meanings: LLVM's AMDGPUUsage, "Relocation Records"."""
  try:
    kind = R_AMDGPU(row.type)
  except ValueError:
    raise DecodeError(f"unknown relocation type {row.type}", where=WHERE) from None
  value += row.addend
  if place + WIDTHS.get(kind, 4) > len(image):
    raise DecodeError(f"a relocation at {place:#x} is outside the image", where=WHERE)
  if kind in RELATIVE:
    if absolute:
      fixups.append(Fixup(place, kind, value - place, -1))
    else:
      _patch(image, place, kind, value - place)
  elif kind in ABSOLUTE:
    if absolute:
      _patch(image, place, kind, value)
    else:
      fixups.append(Fixup(place, kind, value, 1))
  elif kind is R_AMDGPU.RELATIVE64:
    fixups.append(Fixup(place, kind, row.addend, 1))
  elif kind is not R_AMDGPU.NONE:
    raise Unsupported("relocation", kind.name, where=WHERE)


def _patch(image: bytearray, place: int, kind: R_AMDGPU, value: int) -> None:
  """Store a relocation's value in its width. Raises DecodeError when it does not fit."""
  width = WIDTHS.get(kind, 4)
  if kind in (R_AMDGPU.REL32_HI, R_AMDGPU.ABS32_HI):
    value >>= 32
  elif kind is R_AMDGPU.REL16:
    if value % 4:
      raise DecodeError(f"a branch at {place:#x} to no instruction", where=WHERE)
    value = value // 4 - 1
  low, high = (-1 << 8 * width - 1, 1 << 8 * width - (0 if kind is R_AMDGPU.ABS32 else 1))
  if kind in (R_AMDGPU.REL32, R_AMDGPU.REL16, R_AMDGPU.ABS32) and not low <= value < high:
    raise DecodeError(f"{kind.name} at {place:#x}: {value:#x} does not fit", where=WHERE)
  image[place : place + width] = (value & (1 << 8 * width) - 1).to_bytes(width, "little")


def _metadata(file: Elf) -> dict[Any, Any]:
  """The map of the AMDGPU metadata note; empty when there is none."""
  for owner, kind, raw in file.notes():
    if owner != "AMDGPU" or kind != elf.NT_AMDGPU_METADATA:
      continue
    import msgpack  # only needed when code is loaded

    try:
      found = msgpack.unpackb(raw, strict_map_key=False)
    except Exception as error:  # msgpack has no common base for what bad bytes make it raise
      raise DecodeError(f"metadata is not MessagePack: {error!r}", where=WHERE) from None
    if not isinstance(found, dict):
      raise DecodeError("metadata is no map", where=WHERE)
    return found
  return {}


_REQUIRED: Any = object()


def _get(row: dict[Any, Any], key: str, kind: type[T], default: T = _REQUIRED) -> T:
  """A value of the metadata, of the right type. Raises DecodeError."""
  value = row.get(key, default)
  if value is _REQUIRED:
    raise DecodeError(f"metadata has no {key}", where=WHERE)
  if not isinstance(value, kind) or kind is int and (isinstance(value, bool) or not 0 <= cast(int, value) < 1 << 64):
    raise DecodeError(f"metadata {key} is {value!r:.40}, expected {kind.__name__}", where=WHERE)
  return value


def _list(values: list[Any], kind: type[T]) -> list[T]:
  if not all(isinstance(v, kind) for v in values):
    raise DecodeError(f"metadata list holds other than {kind.__name__}", where=WHERE)
  return values


def _argument(row: dict[Any, Any]) -> Argument:
  kind, size, name = _get(row, ".value_kind", str), _get(row, ".size", int), _get(row, ".type_name", str, "")
  found, declared = named(name), of_value_type(_get(row, ".value_type", str, ""))
  if found is None and declared is not None:  # of a pointer it is the target's
    found = declared if kind == "by_value" else CType(f"{declared.name}*", "*", 8, declared)
  if found is not None and (found.kind == "*") == (kind == "by_value"):
    found = None  # a name that the program has given a meaning of its own
  if found is not None and kind == "by_value" and found.size != size:
    found = None
  return Argument(
    _get(row, ".name", str, ""),
    kind,
    _get(row, ".offset", int),
    size,
    name or None,
    _get(row, ".address_space", str, "") or None,
    _alignment(_get(row, ".pointee_align", int, 1)),
    found,
  )


def _alignment(value: int) -> int:
  if value & value - 1 or not value:
    raise DecodeError(f"metadata .pointee_align is {value}, no power of two", where=WHERE)
  return value


def _kernel(
  symbol: str, offset: int, image: bytearray, segments: tuple[Segment, ...], row: dict[Any, Any] | None
) -> Kernel:
  """A kernel from its descriptor and its metadata (None for hand-written code without)."""
  where, row = f"{WHERE} kernel {symbol.removesuffix('.kd')}", row or {}
  if offset + ctypes.sizeof(kernel_descriptor_t) > len(image):
    raise DecodeError("descriptor outside the image", where=where)
  descriptor = kernel_descriptor_t.from_buffer_copy(image, offset)
  entry = offset + descriptor.kernel_code_entry_byte_offset
  if not any(s.executable and s.offset <= entry < s.offset + s.size for s in segments):
    raise DecodeError(f"entry point {entry:#x} is not in executable code", where=where)
  arguments = [_argument(a) for a in _list(_get(row, ".args", list, []), dict)]
  size = max(descriptor.kernarg_size, _get(row, ".kernarg_segment_size", int, 0))
  for a in arguments:
    if a.offset + a.size > size:
      raise DecodeError(f"argument {a.name or a.kind} ends past the {size} bytes of arguments", where=where)
  required = _list(_get(row, ".reqd_workgroup_size", list, []), int)
  if len(required) not in (0, 3):
    raise DecodeError("a required workgroup size has three numbers", where=where)
  wave32 = descriptor.kernel_code_properties & amdhsa.KERNEL_CODE_PROPERTY_ENABLE_WAVEFRONT_SIZE32
  kernel = Kernel(
    name=symbol.removesuffix(".kd"),
    descriptor=descriptor,
    descriptor_offset=offset,
    entry_offset=entry,
    kernarg_size=size,
    kernarg_align=max(_get(row, ".kernarg_segment_align", int, 16), 1),
    group_segment_size=descriptor.group_segment_fixed_size,
    private_segment_size=descriptor.private_segment_fixed_size,
    wavefront_size=32 if wave32 else 64,
    max_workgroup_size=_get(row, ".max_flat_workgroup_size", int, 1024),
    required_workgroup_size=(required[0], required[1], required[2]) if required else None,
    dynamic_stack=bool(descriptor.kernel_code_properties & amdhsa.KERNEL_CODE_PROPERTY_USES_DYNAMIC_STACK),
    arguments=tuple(a for a in arguments if not a.hidden),
    hidden=tuple(a for a in arguments if a.hidden),
  )
  if not any(s.executable and s.offset <= kernel.start_offset < s.offset + s.size for s in segments):
    raise DecodeError(f"nothing follows the {PRELOAD_PROLOGUE} bytes that load preloaded arguments", where=where)
  return kernel
