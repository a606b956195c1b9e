"""Where NVIDIA's tools and libraries are: the system's, a CUDA toolkit's, or those of PyPI's packages."""
from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tinyhw.core.errors import DeviceError, MissingTool

MAJORS: Final = (13, 12)  # of CUDA, whose libraries have it in their names
_TOOLKITS: Final = ("CUDA_HOME", "CUDA_PATH")
_TOOLKIT: Final = "/usr/local/cuda"
_SYSTEM: Final = (f"/usr/lib/{platform.machine()}-linux-gnu", "/usr/lib64", "/usr/lib")


def packages(*names: str) -> Iterator[Path]:
  """The folders of PyPI's packages `nvidia.NAME`: `cu13` has all of CUDA 13, before that each had one of its own."""
  for name in ("cu13", *names):
    try: spec = importlib.util.find_spec(f"nvidia.{name}")
    except ModuleNotFoundError: continue
    if spec is not None: yield from map(Path, spec.submodule_search_locations or ())


def toolkits() -> Iterator[Path]:
  """CUDA toolkits of this machine."""
  for folder in (*(os.environ.get(v, "") for v in _TOOLKITS), _TOOLKIT):
    if folder and Path(folder).is_dir(): yield Path(folder)


@functools.cache
def program(name: str, package: str, searched: str) -> str | None:
  """A program of the folders `searched`, else of a package. None without one."""
  if (found := shutil.which(name, path=searched or None)) is not None: return found
  for folder in packages(package):
    if (found := shutil.which(name, path=str(folder / "bin"))) is not None: return found
  return None


def files(stem: str, package: str) -> Iterator[str]:
  """Where a shared library is: in the folders of LD_LIBRARY_PATH, packages, toolkits, the system."""
  listed = [Path(p) for p in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if p]
  folders = [*listed, *(p / "lib" for p in packages(package)), *(t / "lib64" for t in toolkits()), *map(Path, _SYSTEM)]
  for folder in folders:
    for major in MAJORS:
      if (file := folder / f"lib{stem}.so.{major}").is_file(): yield str(file)


@functools.cache
def library(stem: str, package: str) -> str | None:
  """The file of a shared library that loads. None without one."""
  for file in files(stem, package):
    try: ctypes.CDLL(file)
    except OSError: continue
    return file
  return None


class Library:
  """A library of functions that return a code, with the types that its header has. Threads may share it."""

  def __init__(self, file: str, title: str, functions: Mapping[str, tuple[type, ...]], results: Mapping[int, str]):
    self.title, self._functions, self._results = title, functions, results
    try: self._library = ctypes.CDLL(file)
    except OSError as error: raise MissingTool(f"{file} does not load: {error}", where=title) from None

  def symbol(self, name: str) -> str:
    """What the library calls a function of the header."""
    return name

  def code(self, name: str, *arguments: Any) -> int:
    """Call a function. Raises DeviceError where this version of the library does not have it."""
    try: function = self._library[self.symbol(name)]  # one of our own: its types are not for others
    except AttributeError: raise DeviceError(f"{self.title} has no {name}", where=self.title) from None
    function.restype, function.argtypes = ctypes.c_int32, self._functions[name]
    return int(function(*arguments))

  def call(self, name: str, *arguments: Any) -> None:
    """Call a function that must succeed."""
    if code := self.code(name, *arguments): raise DeviceError(f"{name}: {self.named(code)}", where=self.title)

  def named(self, code: int) -> str:
    """A code's name."""
    return self._results.get(code, f"error {code}")

  def bytes_of(self, name: str, handle: ctypes.c_void_p) -> bytes:
    """What a pair of functions tells: `NAMESize` how much, `NAME` the bytes."""
    size = ctypes.c_size_t()
    self.call(f"{name}Size", handle, ctypes.byref(size))
    room = ctypes.create_string_buffer(max(size.value, 1))
    self.call(name, handle, room)
    return room.raw[:size.value]

  def text_of(self, name: str, handle: ctypes.c_void_p) -> str:
    """The same of a text that ends in a zero."""
    return self.bytes_of(name, handle).split(b"\0", 1)[0].decode(errors="replace").strip()

  def version(self, name: str) -> tuple[int, int]:
    """The library's version, which a function tells."""
    major, minor = ctypes.c_uint32(), ctypes.c_uint32()
    self.call(name, ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value
