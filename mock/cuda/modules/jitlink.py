"""nvJitLink as a process finds it by its name: NVIDIA's own judges what it is given and makes PTX of LTO-IR, and what
it is asked for as machine code is an ELF with the PTX, which mock cards execute.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from tinyhw.autogen import nvjitlink
from tinyhw.core.called import Plain
from tinyhw.core.environment import digits
from tinyhw.core.errors import Error
from tinyhw.core.lazy import cached_property
from tinyhw.core.locks import lock
from tinyhw.mock.cuda.calls import Failed
from tinyhw.mock.cuda.library.shared import Loaded
from tinyhw.mock.cuda.machine import CudaMachine
from tinyhw.mock.cuda.modules import devicelib
from tinyhw.mock.cuda.modules.images import ptx_of
from tinyhw.mock.cuda.modules.links import carrying

VERSION: Final = "nvJitLinkVersion"
_ARCH, _LTO, _PTX = b"-arch=", b"-lto", b"-ptx"  # options
_KINDS: Final = frozenset({nvjitlink.NVJITLINK_INPUT_PTX, nvjitlink.NVJITLINK_INPUT_CUBIN,
                           nvjitlink.NVJITLINK_INPUT_FATBIN, nvjitlink.NVJITLINK_INPUT_ANY})  # may have PTX


def versioned(name: str, file: str, minors: int) -> list[str]:
  """What the library calls a function for programs that were made for its versions."""
  return [f"__{name}_{file.rpartition('.')[2]}_{minor}" for minor in range(minors)]


@dataclasses.dataclass
class _Link:
  """A link that is to give machine code for an SM: the texts so far, and what has come of them."""

  sm: int
  lto: bool
  intermediate: bool = False  # whether NVIDIA's own has been given LTO-IR
  texts: list[tuple[str, str]] = dataclasses.field(default_factory=list)  # of a name and PTX
  made: bytes | None = None
  why: bytes = b""  # it failed here


class JitLink:
  """The library in front of NVIDIA's at `file`. Handles are NVIDIA's."""

  def __init__(self, file: str, minors: int, machine: Callable[[], CudaMachine | None]) -> None:
    self._file, self._machine, self._lock = file, machine, lock()
    self._links: dict[int, _Link] = {}
    name = Path(file).name
    self._ours: dict[str, Any] = dict(nvJitLinkCreate=self._create, nvJitLinkAddData=self._add,
                                      nvJitLinkAddFile=self._add_file, nvJitLinkComplete=self._complete,
                                      nvJitLinkGetLinkedCubinSize=self._cubin_size,
                                      nvJitLinkGetLinkedCubin=self._cubin,
                                      nvJitLinkGetLinkedPtxSize=self._not_asked("nvJitLinkGetLinkedPtxSize"),
                                      nvJitLinkGetLinkedPtx=self._not_asked("nvJitLinkGetLinkedPtx"),
                                      nvJitLinkGetErrorLogSize=self._log_size,
                                      nvJitLinkGetErrorLog=self._log)
    self._symbols = {f: (f,) if f == VERSION else (f, *versioned(f, name, minors)) for f in nvjitlink.FUNCTIONS}
    self.loaded = Loaded(name, sorted(s for symbols in self._symbols.values() for s in symbols), name)
    for function, types in nvjitlink.FUNCTIONS.items():
      ours = self._ours.get(function) or self._passed(function)
      made = Plain(ours, *types, failed=nvjitlink.NVJITLINK_ERROR_INTERNAL)
      for symbol in self._symbols[function]: self.loaded.fill(symbol, made)

  @cached_property
  def _real(self) -> Any:
    """NVIDIA's, which is loaded when it is first called: by its path, for its name is ours. What it does alone is its
    own from then on; so a link is destroyed without Python, which may be on its way out of a function by an error."""
    library = ctypes.CDLL(self._file)
    for name, types in nvjitlink.FUNCTIONS.items():
      if (function := getattr(library, name, None)) is None: continue  # an older one
      function.restype, function.argtypes = ctypes.c_int32, types
      if name in self._ours: continue
      for symbol in self._symbols[name]: self.loaded.hand_on(symbol, ctypes.cast(function, ctypes.c_void_p).value or 0)
    return library

  def _passed(self, name: str) -> Callable[..., int]:
    def call(*arguments: Any) -> int:
      function = getattr(self._real, name, None)
      return nvjitlink.NVJITLINK_ERROR_INTERNAL if function is None else int(function(*arguments))
    return call

  def _not_asked(self, name: str) -> Callable[..., int]:
    """PTX that the program has not asked for (-ptx)."""
    def call(handle: int | None, out: int | None) -> int:
      if self._link(handle) is not None: return nvjitlink.NVJITLINK_ERROR_INVALID_INPUT
      return int(getattr(self._real, name)(handle, out))
    return call

  def _link(self, handle: int | None) -> _Link | None:
    with self._lock: return self._links.get(handle or 0)

  def _create(self, out: int | None, count: int, options: int | None) -> int:
    table = (ctypes.c_char_p * count).from_address(options) if options and count > 0 else ()
    given = [o or b"" for o in table]
    sm, lto = None if _PTX in given else sm_of(given), _LTO in given
    asked = [*given, _PTX] if sm is not None and lto else given
    code = int(self._real.nvJitLinkCreate(out, len(asked), (ctypes.c_char_p * len(asked))(*asked)))
    if out and not code:
      handle = ctypes.c_uint64.from_address(out).value  # maybe of a link that was destroyed
      with self._lock:
        if sm is None: self._links.pop(handle, None)
        else: self._links[handle] = _Link(sm, lto)
    return code

  def _add(self, handle: int | None, kind: int, data: int | None, size: int, name: int | None) -> int:
    link = self._link(handle)
    if link is not None and link.lto and kind == nvjitlink.NVJITLINK_INPUT_LIBRARY:
      return nvjitlink.NVJITLINK_SUCCESS  # NVIDIA's makes no PTX of it; the device's runtime is what cards have here
    if link is None or kind not in _KINDS or not data or not size:
      code = int(self._real.nvJitLinkAddData(handle, kind, data, size, name))
      if link is not None and not code and kind == nvjitlink.NVJITLINK_INPUT_LTOIR: link.intermediate = True
      return code
    called = (ctypes.string_at(name) if name else b"<input>").decode(errors="replace")
    machine = self._machine()
    if machine is None: return nvjitlink.NVJITLINK_ERROR_INTERNAL
    copied = ctypes.create_string_buffer(ctypes.string_at(data, size) + b"\0")
    try:
      with machine.lock: text = ptx_of(machine, ctypes.addressof(copied))
    except Failed as failed:
      if link.lto and not (code := int(self._real.nvJitLinkAddData(handle, kind, data, size, name))):
        link.intermediate = True
        return code
      return self._failed(link, nvjitlink.NVJITLINK_ERROR_INVALID_INPUT, f"{called}: {failed.why}")
    if not link.lto:  # NVIDIA's says what is wrong with it
      whole = text.encode() + b"\0"
      if code := int(self._real.nvJitLinkAddData(handle, nvjitlink.NVJITLINK_INPUT_PTX, whole, len(whole), name)):
        return code
    link.texts.append((called, text))
    return nvjitlink.NVJITLINK_SUCCESS

  def _add_file(self, handle: int | None, kind: int, path: int | None) -> int:
    if path and kind in _KINDS and self._link(handle) is not None:
      try: data = Path(os.fsdecode(ctypes.string_at(path))).read_bytes()
      except OSError: pass  # which NVIDIA's says too
      else:
        kept = ctypes.create_string_buffer(data, len(data))
        return self._add(handle, kind, ctypes.addressof(kept), len(data), path)
    link = self._link(handle)
    if link is not None and link.lto and kind == nvjitlink.NVJITLINK_INPUT_LIBRARY:
      return nvjitlink.NVJITLINK_SUCCESS if path and Path(os.fsdecode(ctypes.string_at(path))).is_file() \
        else nvjitlink.NVJITLINK_ERROR_INVALID_INPUT
    code = int(self._real.nvJitLinkAddFile(handle, kind, path))
    if not code and link is not None and kind == nvjitlink.NVJITLINK_INPUT_LTOIR: link.intermediate = True
    return code

  def _complete(self, handle: int | None) -> int:
    from tinyhw.emulator.ptx.module.merge import linked
    link = self._link(handle)
    if link is None or not link.lto or link.intermediate or not link.texts:
      if (code := int(self._real.nvJitLinkComplete(handle))) or link is None: return code
    if link.intermediate: link.texts.insert(0, ("LTO-IR", self._ptx(handle)))
    if not link.texts: return nvjitlink.NVJITLINK_SUCCESS
    try: link.made = carrying(linked(link.texts, devicelib.NAMES), link.sm)
    except Error as error: return self._failed(link, nvjitlink.NVJITLINK_ERROR_FINALIZE, str(error))
    return nvjitlink.NVJITLINK_SUCCESS

  def _ptx(self, handle: int | None) -> str:
    """What NVIDIA's has made of LTO-IR."""
    size = ctypes.c_size_t()
    self._real.nvJitLinkGetLinkedPtxSize(handle, ctypes.byref(size))
    room = ctypes.create_string_buffer(size.value + 1)
    self._real.nvJitLinkGetLinkedPtx(handle, room)
    return room.value.decode()

  def _failed(self, link: _Link, code: int, why: str) -> int:
    link.why = f"ERROR {code} in nvJitLink: {why}".encode() + b"\0"
    return code

  def _cubin_size(self, handle: int | None, size: int | None) -> int:
    link = self._link(handle)
    if link is None or link.made is None or not size: return int(self._real.nvJitLinkGetLinkedCubinSize(handle, size))
    ctypes.c_size_t.from_address(size).value = len(link.made)
    return nvjitlink.NVJITLINK_SUCCESS

  def _cubin(self, handle: int | None, room: int | None) -> int:
    link = self._link(handle)
    if link is None or link.made is None or not room: return int(self._real.nvJitLinkGetLinkedCubin(handle, room))
    ctypes.memmove(room, link.made, len(link.made))
    return nvjitlink.NVJITLINK_SUCCESS

  def _log_size(self, handle: int | None, size: int | None) -> int:
    link = self._link(handle)
    if link is None or not link.why or not size: return int(self._real.nvJitLinkGetErrorLogSize(handle, size))
    ctypes.c_size_t.from_address(size).value = len(link.why)
    return nvjitlink.NVJITLINK_SUCCESS

  def _log(self, handle: int | None, room: int | None) -> int:
    link = self._link(handle)
    if link is None or not link.why or not room: return int(self._real.nvJitLinkGetErrorLog(handle, room))
    ctypes.memmove(room, link.why, len(link.why))
    return nvjitlink.NVJITLINK_SUCCESS


def sm_of(options: Sequence[bytes]) -> int | None:
  """The SM that options ask machine code for: 90 of `-arch=sm_90a`. None where they name none."""
  for option in options:
    if option.startswith(_ARCH + b"sm_") and digits(version := option[len(_ARCH) + 3:].rstrip(b"af")):
      return int(version)
  return None
