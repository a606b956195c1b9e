"""What a code object is: kernels, their arguments, and the memory image for an address of loading."""
from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tinyhw.autogen import amdhsa
from tinyhw.autogen import elf_amdgpu as elf
from tinyhw.autogen.amdhsa import kernel_descriptor_t
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.lazy import cached_property
from tinyhw.core.nearest import offered
from tinyhw.core.source import Source, Sources
from tinyhw.wire.codeobject.identity import GENERIC, WHERE
from tinyhw.wire.codeobject.relocations import Fixup, patch
from tinyhw.wire.ctype import CType

PAGE = 4096
PRELOAD_PROLOGUE = 256  # bytes at a kernel's entry that run where nothing preloads arguments (see Kernel.start_offset)


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
  counts: Mapping[str, int] = field(default_factory=dict, compare=False)  # registers and spills, as the metadata says

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
    from tinyhw.wire.lines import Lines  # few launches ask
    return Lines(self.file, self.places)

  @property
  def target_id(self) -> str:
    """What the code is for: `gfx942:sramecc+:xnack-`."""
    return target_id(self.arch, self.features)

  def kernel(self, name: str) -> Kernel:
    """Raises InvalidArgument, listing the kernels there are."""
    found = self.kernels.get(name.removesuffix(".kd"))
    if found is None:
      raise InvalidArgument(f"no kernel {name!r}", where=WHERE, hint=offered(name, self.kernels, "it has"))
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
      patch(image, f.offset, f.kind, f.value + f.sign * base)
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


def sources(loaded: Iterable[tuple[int, CodeObject]]) -> Source:
  """What debug information says of the code objects at these addresses, by PC."""
  return Sources((base, base + len(code.image), code.source) for base, code in loaded)


def with_places(loaded: Iterable[tuple[int, CodeObject]], text: str) -> str:
  """The text with the place behind each `PC 0x...` that lies in one of the objects."""
  images = list(loaded)

  def named(m: re.Match[str]) -> str:
    found = place(images, int(m[1], 16))
    return f"{m[0]} ({found})" if found else m[0]
  return re.sub(r"PC 0x([0-9a-f]+)", named, text)
