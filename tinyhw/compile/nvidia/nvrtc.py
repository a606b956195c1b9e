"""nvrtc: CUDA C++ to PTX, in this process."""
from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tinyhw.autogen import nvrtc
from tinyhw.compile.nvidia.installed import Library, library, packages, toolkits
from tinyhw.core.errors import DecodeError, InvalidArgument, MissingTool

HINT: Final = "install CUDA, or `pip install nvidia-cuda-nvrtc`"
_ERROR: Final = re.compile(r"(?a)^(.*)\((\d+)\): (?:catastrophic )?error: (.*)$")


def find() -> str | None:
  """The library of this machine. None without one."""
  return library("nvrtc", "cuda_nvrtc")


@functools.cache
def opened(file: str) -> Library:
  """The library of a file. Raises MissingTool for one that does not load."""
  return Library(file, "nvrtc", nvrtc.FUNCTIONS, nvrtc.RESULTS)


def includes() -> list[str]:
  """Folders of CUDA's own headers (cuda_fp16.h, cuda/std/...), where they are installed."""
  folders = [*(p / "include" for p in packages("cuda_runtime", "cuda_cccl")), *(t / "include" for t in toolkits())]
  return [str(f) for folder in folders for f in (folder, folder / "cccl") if f.is_dir()]


def compiled(source: bytes, processor: str, where: str = "CUDA", names: Sequence[str] = (),
             options: Sequence[str] = ()) -> tuple[bytes, list[str]]:
  """PTX of a translation unit for a GPU (`sm_90`), and what `names` of its kernels, as C++ expressions
  (`scale<float>`), are called there. `where` is the source's own name; `options` are nvrtc's (`-DN=4`).

  Raises MissingTool without an nvrtc, DecodeError for what it refuses, names too, with the line, InvalidArgument for an
  option that it does not know.
  """
  if (file := find()) is None: raise MissingTool("there is no nvrtc", where="CUDA C++", hint=HINT)
  lib, program = opened(file), ctypes.c_void_p()
  given = list(options)
  if not any(o.startswith(("-arch", "--gpu-architecture")) for o in given):
    given.insert(0, f"-arch={processor.replace('sm_', 'compute_')}")
  given += [f"-I{folder}" for folder in includes()]
  words = (ctypes.c_char_p * len(given))(*(o.encode() for o in given))
  lib.call("nvrtcCreateProgram", ctypes.byref(program), source + b"\0", where.encode(), 0, None, None)
  try:
    for name in names: lib.call("nvrtcAddNameExpression", program, name.encode())
    code = lib.code("nvrtcCompileProgram", program, len(given), words)
    if code: raise _refusal(code, lib.text_of("nvrtcGetProgramLog", program), lib.named(code), where)
    found = []
    for name in names:
      lowered = ctypes.c_char_p()
      lib.call("nvrtcGetLoweredName", program, name.encode(), ctypes.byref(lowered))
      found.append((lowered.value or b"").decode())
    return lib.bytes_of("nvrtcGetPTX", program).rstrip(b"\0"), found
  finally: lib.call("nvrtcDestroyProgram", ctypes.byref(program))


def _refusal(code: int, log: str, name: str, where: str) -> DecodeError | InvalidArgument:
  """The first error of nvrtc's log, at its line."""
  lines = [line.strip() for line in log.splitlines() if line.strip()]
  if code == nvrtc.NVRTC_ERROR_INVALID_OPTION:
    return InvalidArgument(f"nvrtc refuses an option: {lines[0] if lines else name}", where="CUDA C++")
  for line in lines:
    if (match := _ERROR.match(line)) is not None:
      return DecodeError(f"nvrtc refuses it: {match[3]}", where=f"{Path(match[1]).name}:{match[2]}")
  return DecodeError(f"nvrtc refuses it: {lines[0] if lines else name}", where=where)
