"""CUDA C++ for launches: a source that nvrtc makes a PTX module of, and its kernels by their names in C++."""
from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tinyhw.compile.nvidia import nvrtc
from tinyhw.core.errors import DecodeError, InvalidArgument, Unsupported
from tinyhw.drive.nv.bare import is_ptx

EMULATED: Final = "sm_90"  # what the emulator alone is, where nobody says another
_GLOBAL: Final = b"__global__"
_KERNEL: Final = re.compile(r"(?a)\b__global__\b(?:\s*__launch_bounds__\s*\([^()]*\))?\s+void"
                            r"(?:\s+__launch_bounds__\s*\([^()]*\))?\s+(\w+)\s*\(")
_ENTRY: Final = re.compile(rb"^\.(?:visible|weak)\s+\.entry\s+([\w$]+)", re.M)


@dataclass(frozen=True)
class CudaSource:
  """A translation unit; `name` is what faults and errors call it."""
  text: bytes
  name: str = "CUDA"

  @classmethod
  def of(cls, binary: Any) -> CudaSource | None:
    """The source that a launch was given: text or bytes with a kernel in CUDA C++, or the path of a .cu file."""
    if isinstance(binary, (bytes, bytearray, memoryview)): text, name = bytes(binary), cls.name
    elif isinstance(binary, str) and ("\n" in binary or _GLOBAL.decode() in binary and not os.path.exists(binary)):
      text, name = binary.encode(), cls.name
    elif isinstance(binary, (str, os.PathLike)) and Path(os.fspath(binary)).suffix == ".cu":
      try: return cls(Path(binary).read_bytes(), str(os.fspath(binary)))
      except OSError as error:
        raise InvalidArgument(f"cannot be read: {error.strerror}", where=repr(os.fspath(binary))) from None
    else: return None
    return cls(text, name) if _GLOBAL in text and b"\0" not in text and not is_ptx(text) else None

  @property
  def kernels(self) -> list[str]:
    """The kernels that the text declares, templates too."""
    return list(dict.fromkeys(_KERNEL.findall(self.text.decode(errors="replace"))))

  def compiled(self, kernel: str, processor: str, options: Sequence[str] = ()) -> tuple[bytes, str]:
    """The PTX, and the name of `kernel` there: a function's, with a template's arguments, or the PTX's own.

    Raises what `nvrtc.compiled` does, InvalidArgument for a kernel that is not there.
    """
    more = ["-lineinfo", *options]
    try: ptx, (found,) = nvrtc.compiled(self.text, processor, self.name, [kernel], more)
    except DecodeError as refusal:
      ptx, _ = nvrtc.compiled(self.text, processor, self.name, [], more)  # what is wrong with the text itself
      if kernel.encode() in _ENTRY.findall(ptx): return ptx, kernel
      said = str(refusal).partition("nvrtc refuses it: ")[2]
      raise InvalidArgument(f"no kernel is {kernel!r} ({said})", where=self.name,
                            hint=f"there are {', '.join(self.kernels)}; name a template's arguments") from None
    return ptx, found


def processor(runtime: Any, device: str) -> str:
  """The GPU that a device's runtime compiles for. Raises Unsupported for one that runs no PTX."""
  if (named := getattr(runtime, "processor", None)) is not None: return str(named)
  if device.startswith("EMU"): return EMULATED
  if device.startswith("NV"): return str(runtime.arch.name)
  raise Unsupported("CUDA C++ on", device, hint="use device='EMU', 'NV' or 'CUDA'")
