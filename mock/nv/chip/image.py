"""A program in GPU memory: the ELF that the driver has uploaded, as the chip would find it from PROGRAM_ADDRESS.

The ELF lies in memory from its header on; a kernel's section `.text.NAME` holds the address. What runs is the PTX of
the section `.tinyhw.ptx`: machine code (SASS) is not executed, and an ELF without PTX is refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from tinyhw.core.errors import DecodeError, Error, Unsupported
from tinyhw.core.kept import Kept
from tinyhw.core.memory import Access, AddressSpace
from tinyhw.wire.cubin import PTX_SECTION, Cubin, Kernel
from tinyhw.wire.elf import MAGIC, Section
from tinyhw.wire.fatbin import ptx_text

_TEXT: Final = ".text."
LARGEST: Final = 1 << 26  # bytes of an ELF, as far as one is looked for
_HEADER: Final = 64  # bytes of an ELF's header
_PROGRAMS: Final = 64  # that are kept


@dataclass(eq=False)
class Image:
  """A kernel of an ELF at `base`: its code, its PTX and where its parameters are in constant bank 0."""

  base: int
  raw: bytes
  kernel: Kernel
  text_address: int
  ptx: str
  ptx_address: int
  program: Any

  @property
  def name(self) -> str:
    return self.kernel.name

  def place_of(self, line: int, column: int) -> int:
    """The address of a place in the PTX: the PC of code that has no other."""
    lines = self.ptx.split("\n")
    return self.ptx_address + sum(len(x.encode()) + 1 for x in lines[: line - 1]) + max(column - 1, 0)


class Images:
  """The programs that an address space's launches have found, kept as long as memory holds them."""

  def __init__(self, space: AddressSpace) -> None:
    self.space = space
    self._known: Kept[int, Image] = Kept(_PROGRAMS)

  def at(self, address: int) -> Image:
    """The kernel at a program's address. Raises PageFault, and Unsupported for a program without PTX."""
    known = self._known.get(address)
    space = self.space
    if known is not None:
      mapping = space.find(known.base)
      if mapping is not None and mapping.access & Access.EXECUTE:
        at = known.base - mapping.start
        if bytes(mapping.raw[at : at + len(known.raw)]) == known.raw:
          return known
    space.prove(address, 16, Access.EXECUTE)
    mapping = space.find(address)
    assert mapping is not None
    first = max(0, address - mapping.start - LARGEST)
    at = bytes(mapping.raw[first : address - mapping.start]).rfind(MAGIC) + first
    if at < first:
      raise Unsupported("program", f"at {address:#x}, where no ELF begins before it", where="mock",
                        hint="the mock reads name and PTX from the cubin, which the driver uploads as a whole")
    found = self._read(mapping.start + at, bytes(mapping.raw[at : at + LARGEST]), address)
    return self._known.keep(address, found)

  def _read(self, base: int, raw: bytes, address: int) -> Image:
    try:
      cubin = Cubin(raw)
      elf = cubin.elf
      end = max([_HEADER, elf.header.e_shoff + elf.header.e_shnum * elf.header.e_shentsize,
                 *(s.offset + len(elf.contents(s)) for s in elf.sections)])
    except DecodeError as error:
      raise Unsupported("program", f"at {address:#x}: the ELF at {base:#x} is damaged: {error}", where="mock") from None
    section = next((s for s in elf.sections if s.name.startswith(_TEXT)
                    and base + s.offset <= address < base + s.offset + max(s.size, 1)), None)
    if section is None:
      raise Unsupported("program", f"at {address:#x}: no .text section of the ELF at {base:#x} is there", where="mock")
    name = section.name.removeprefix(_TEXT)
    ptx = next((s for s in elf.sections if s.name == PTX_SECTION), None)
    if ptx is None:
      raise Unsupported("program", f"{name}: a cubin without PTX", where="mock",
                        hint=f"machine code is not executed; give the ELF its PTX in a section {PTX_SECTION}")
    text = elf.contents(ptx).rstrip(b"\0")
    if name not in cubin.kernels:
      raise Unsupported("program", f"{name}: no .nv.info.{name} says where its parameters are", where="mock")
    kernel = cubin.kernels[name]
    return Image(base, raw[:end], kernel, base + section.offset, ptx_text(text, name), base + ptx.offset,
                 _program(cubin, base, text, name))


def _program(cubin: Cubin, base: int, text: bytes, name: str) -> Any:
  """The kernel's code with variables where the ELF has them."""
  from tinyhw.emulator.ptx.module.link import link_text
  from tinyhw.emulator.ptx.program import Program
  try:
    linked = link_text(text)
    linked.kernel(name)
  except Error as error:
    raise Unsupported("program", f"{name}: {error}", where="mock") from None
  if linked.size:
    return Program(_relocated(linked, cubin, name), name, base)
  return Program(linked, name, base)


def _relocated(linked: Any, cubin: Cubin, kernel: str) -> Any:
  """The linked module with its variables at the offsets that the ELF's symbols give them."""
  offsets: dict[str, int] = {}
  symbols = {s.name: s for s in cubin.symbols}
  for name in linked.offsets:
    symbol = symbols.get(name.partition("#")[0].rpartition("::")[2])
    section: Section | None = None
    if symbol is not None and symbol.section < len(cubin.elf.sections):
      section = cubin.elf.sections[symbol.section]
    if symbol is None or section is None:
      raise Unsupported("program", f"{kernel}: its variable {name} has no symbol in the ELF", where="mock")
    offsets[name] = section.offset + symbol.value
  return linked.moved(offsets)
