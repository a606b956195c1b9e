"""nvrtc as a process finds it by its name: NVIDIA's own compiles, and what it is asked for as machine code is an ELF
that carries the PTX, which mock cards execute.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from tinyhw.autogen import nvrtc
from tinyhw.core.called import Plain
from tinyhw.core.lazy import cached_property
from tinyhw.core.locks import lock
from tinyhw.mock.cuda.library.shared import Loaded

NAMES: Final = ("libnvrtc.so.13", "libnvrtc.so.12")
ERROR_STRING: Final = "nvrtcGetErrorString"  # the one function of others that gives no nvrtcResult
_ARCH: Final = ("--gpu-architecture", "-arch")


def virtual(options: Sequence[bytes]) -> tuple[list[bytes], str | None]:
  """The options with a virtual architecture in place of a real one, of which nvrtc makes PTX alone; which that was."""
  found, real = list(options), None
  for i, option in enumerate(found):
    name, _, value = option.decode(errors="replace").partition("=")
    if name not in _ARCH: continue
    at = i if value else i + 1
    value = value or (found[at].decode(errors="replace") if at < len(found) else "")
    real = value if value.startswith("sm_") else None
    if real is not None: found[at] = found[at].replace(b"sm_", b"compute_")
  return found, real


class Rtc:
  """The library. `elf` makes an ELF of PTX for a GPU (`sm_90`); None where it cannot, and the PTX itself is told."""

  def __init__(self, file: str, elf: Callable[[bytes, str], bytes | None]) -> None:
    self._file, self._elf, self._lock = file, elf, lock()
    self._made: dict[int | None, str] = {}  # of programs for a real architecture: that
    name = Path(file).name  # is also what the vendor's symbols have for a version
    self.loaded = Loaded(name, (*sorted(nvrtc.FUNCTIONS), ERROR_STRING), name)
    ours: dict[str, Any] = dict(nvrtcCompileProgram=self._compile, nvrtcDestroyProgram=self._destroy,
                                nvrtcGetCUBINSize=self._size, nvrtcGetCUBIN=self._cubin)
    for name, types in nvrtc.FUNCTIONS.items():
      made = Plain(ours.get(name) or self._passed(name), *types, failed=nvrtc.NVRTC_ERROR_INTERNAL_ERROR)
      self.loaded.fill(name, made)
    self.loaded.fill(ERROR_STRING, Plain(self._error_string, ctypes.c_int32, failed=0))

  @cached_property
  def _real(self) -> Any:
    """NVIDIA's, which is loaded when it is first called: by its path, for its name is ours."""
    library = ctypes.CDLL(self._file)
    for name, types in nvrtc.FUNCTIONS.items():
      if (function := getattr(library, name, None)) is None: continue  # an older one
      function.restype, function.argtypes = ctypes.c_int32, types
    library.nvrtcGetErrorString.restype = ctypes.c_void_p
    return library

  def _passed(self, name: str) -> Callable[..., int]:
    def call(*arguments: Any) -> int:
      function = getattr(self._real, name, None)
      return nvrtc.NVRTC_ERROR_INVALID_INPUT if function is None else int(function(*arguments))
    return call

  def _error_string(self, code: int) -> int:
    return int(self._real.nvrtcGetErrorString(code) or 0)

  def _compile(self, program: int | None, count: int, options: int | None) -> int:
    table = (ctypes.c_char_p * count).from_address(options) if options and count > 0 else ()
    given, real = virtual([o or b"" for o in table])
    code = int(self._real.nvrtcCompileProgram(program, len(given), (ctypes.c_char_p * len(given))(*given)))
    with self._lock:
      if real is not None and not code: self._made[program] = real
      else: self._made.pop(program, None)
    return code

  def _destroy(self, program: int | None) -> int:
    """A pointer to the program."""
    if program:
      with self._lock: self._made.pop(ctypes.c_uint64.from_address(program).value, None)
    return int(self._real.nvrtcDestroyProgram(program))

  def _code(self, program: int | None) -> bytes | None:
    """What stands for the machine code of a program; None for one that was made for a virtual architecture."""
    with self._lock: arch = self._made.get(program)
    if arch is None: return None
    size = ctypes.c_size_t()
    if self._real.nvrtcGetPTXSize(program, ctypes.byref(size)): return None
    room = ctypes.create_string_buffer(size.value)
    if self._real.nvrtcGetPTX(program, room): return None
    return self._elf(room.raw.rstrip(b"\0"), arch) or room.raw

  def _size(self, program: int | None, size: int | None) -> int:
    if not size or (code := self._code(program)) is None: return int(self._real.nvrtcGetCUBINSize(program, size))
    ctypes.c_size_t.from_address(size).value = len(code)
    return nvrtc.NVRTC_SUCCESS

  def _cubin(self, program: int | None, room: int | None) -> int:
    if not room or (code := self._code(program)) is None: return int(self._real.nvrtcGetCUBIN(program, room))
    ctypes.memmove(room, code, len(code))
    return nvrtc.NVRTC_SUCCESS


_loaded: dict[str, Rtc] = {}


def compiles(file: str, elf: Callable[[bytes, str], bytes | None]) -> None:
  """Have who looks for nvrtc by its name find this one, in front of NVIDIA's at `file`. Once a process."""
  name = Path(file).name
  if name in NAMES and name not in _loaded: _loaded[name] = Rtc(file, elf)
