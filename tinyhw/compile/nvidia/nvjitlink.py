"""nvJitLink: PTX to a cubin, in this process."""
from __future__ import annotations

import ctypes
import functools
from typing import Final

from tinyhw.autogen import nvjitlink
from tinyhw.compile.nvidia.installed import Library, library
from tinyhw.core.errors import DecodeError

_VERSION: Final = "nvJitLinkVersion"


def find() -> str | None:
  """The library of this machine. None without one."""
  return library("nvJitLink", "nvjitlink")


class _NvJitLink(Library):
  """Functions are exported with the library's version behind their names, but for that which tells it."""

  def __init__(self, file: str) -> None:
    super().__init__(file, "nvJitLink", nvjitlink.FUNCTIONS, nvjitlink.RESULTS)
    self.number = self.version(_VERSION)

  def symbol(self, name: str) -> str:
    return name if name == _VERSION else f"__{name}_{'_'.join(map(str, self.number))}"


@functools.cache
def opened(file: str) -> _NvJitLink:
  """The library of a file. Raises MissingTool for one that does not load."""
  return _NvJitLink(file)


def name(file: str) -> str:
  """The library and its version."""
  return f"nvJitLink {'.'.join(map(str, opened(file).number))}"


def linked(ptx: bytes, processor: str, file: str) -> bytes:
  """The cubin of a PTX module. Raises DecodeError for what the library refuses, DeviceError for another failure."""
  lib, handle = opened(file), ctypes.c_void_p()
  options = (ctypes.c_char_p * 1)(f"-arch={processor}".encode())
  lib.call("nvJitLinkCreate", ctypes.byref(handle), len(options), options)
  try:
    text = ptx if ptx.endswith(b"\0") else ptx + b"\0"
    code = lib.code("nvJitLinkAddData", handle, nvjitlink.NVJITLINK_INPUT_PTX, text, len(text), b"PTX")
    code = code or lib.code("nvJitLinkComplete", handle)
    if code:
      said = lib.text_of("nvJitLinkGetErrorLog", handle).splitlines()
      where = f"PTX for {processor}"
      raise DecodeError(f"nvJitLink refuses it: {said[0].strip() if said else lib.named(code)}", where=where)
    return lib.bytes_of("nvJitLinkGetLinkedCubin", handle)
  finally: lib.call("nvJitLinkDestroy", ctypes.byref(handle))
