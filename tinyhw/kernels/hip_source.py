"""HIP C++ for launches: a source that clang makes a code object of, and its kernels by their names in C++."""
from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tinyhw.compile.hip import clang
from tinyhw.core.errors import DecodeError, InvalidArgument, Unsupported
from tinyhw.devices.registry import mock_cards, stand_in
from tinyhw.kernels.cuda_source import CudaSource
from tinyhw.wire.codeobject import load
from tinyhw.wire.elf import Elf

EMULATED: Final = "gfx1100"  # what the emulator alone is, where nobody says another
SUFFIX: Final = ".hip"
_INCLUDED: Final = b"hip/hip_runtime.h"
_ARCH: Final = "--offload-arch="


@dataclass(frozen=True)
class HipSource:
  """A translation unit; `name` is what faults and errors call it, `folder` where its own headers are."""
  text: bytes
  name: str = "HIP"
  folder: str | None = None

  @classmethod
  def of(cls, binary: Any, device: str | None = None) -> HipSource | None:
    """The source that a launch was given: the path of a .hip file, or text with a kernel, which is HIP's where it
    includes HIP's header or the device is AMD's, and else CUDA's."""
    if isinstance(binary, (str, os.PathLike)) and Path(os.fspath(binary)).suffix == SUFFIX:
      path = Path(binary)
      try: return cls(path.read_bytes(), str(os.fspath(binary)), str(path.resolve().parent))
      except OSError as error:
        raise InvalidArgument(f"cannot be read: {error.strerror}", where=repr(os.fspath(binary))) from None
    source = CudaSource.of(binary)
    if source is None or source.name != CudaSource.name: return None
    return cls(source.text) if _INCLUDED in source.text or device is not None and is_amd(device) else None

  @property
  def kernels(self) -> list[str]:
    """The kernels that the text declares, templates too."""
    return CudaSource(self.text).kernels

  def compiled(self, kernel: str, processor: str, options: Sequence[str] = ()) -> tuple[bytes, str]:
    """The code object, and the name of `kernel` there: a function's, with a template's arguments, or the code object's
    own.

    Raises what `clang.compiled` does, InvalidArgument for a kernel that is not there.
    """
    told = [o.removeprefix(_ARCH) for o in options if o.startswith(_ARCH)]
    options = [o for o in options if not o.startswith(_ARCH)]
    what = self.text, told[-1] if told else processor, self.name, self.folder
    try: made = clang.compiled(*what, kernel, options)
    except DecodeError as refusal:
      made = clang.compiled(*what, "", options)  # what is wrong with the text itself
      if kernel in load(made).kernels: return made, kernel
      said = str(refusal).partition("clang refuses it: ")[2]
      raise InvalidArgument(f"no kernel is {kernel!r} ({said})", where=self.name,
                            hint=f"there are {', '.join(self.kernels)}; name a template's arguments") from None
    return made, self._asked(made, kernel)

  def _asked(self, made: bytes, kernel: str) -> str:
    """The name of the kernel at whose code the variable points."""
    file, code = Elf(made), load(made)
    tables = [file.symbols(section) for section in file.sections if section.name == ".symtab"]
    at = next(s.value for table in tables for s in table if s.name == clang.ASKED)
    entry = int.from_bytes(code.link(0)[at:at + 8], "little")
    for name, found in code.kernels.items():
      if found.start_offset == entry: return name
    raise InvalidArgument(f"{kernel!r} is no kernel", where=self.name, hint=f"there are {', '.join(self.kernels)}")


def is_amd(device: str) -> bool:
  """Whether a device is one of AMD's."""
  return device.upper().startswith(("AMD", "HSA"))


def default() -> str:
  """Where HIP C++ runs, if nobody says: on a card of AMD's, mocked or real, else on the emulator itself."""
  if mock_cards() is None: return "AMD" if os.path.exists("/dev/kfd") else "EMU"
  return "AMD" if mock_cards("AMD") and stand_in() is None else "EMU"


def emulated() -> str:
  """What the emulator compiles for: the card that MOCKGPU names first."""
  return (mock_cards("AMD") or (EMULATED,))[0].partition(":")[0]


def processor(runtime: Any, device: str) -> str:
  """The GPU that a device's runtime compiles for. Raises Unsupported for one that runs no code of AMD's."""
  if is_amd(device): return str(runtime.target)
  if device.startswith("EMU"): return emulated()
  raise Unsupported("HIP C++ on", device, hint="use device='EMU', 'AMD' or 'HSA'")
