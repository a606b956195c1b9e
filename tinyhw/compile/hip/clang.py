"""HIP C++ to a code object: clang of the machine, without ROCm."""
from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tinyhw.compile.render.c import found
from tinyhw.core import scratch
from tinyhw.core.errors import DecodeError, InvalidArgument, MissingTool
from tinyhw.core.written import save

HINT: Final = "install clang and lld, 19 or newer (apt install clang-19 lld-19)"
# A device's code alone, linked, by nothing of ROCm's.
DEVICE: Final = ("-x", "hip", "--offload-device-only", "--no-gpu-bundle-output", "-nogpulib", "-nogpuinc",
                 "-fuse-ld=lld")
HEADER: Final = Path(__file__).with_name("runtime.h")
HEADERS: Final = ("hip/hip_runtime.h", "hip/hip_fp16.h")  # of ROCm's, in whose place that one is
ASKED: Final = "tinyhw_asked_for"  # a variable with the address of the kernel that was named
_ERROR: Final = re.compile(r"(?a)^(.*?):(\d+):\d+: (?:fatal )?error: (.*)$")
_OPTION: Final = re.compile(r"(?a)^\S*clang\S*: error: (.*)$")


def tools(named: str = "") -> tuple[str, str]:
  """clang, the one that is named or else the newest of PATH, and its own linker. Raises MissingTool without one."""
  clang = named or next(iter(found("clang")), "")
  if not clang: raise MissingTool("there is no clang", where="HIP", hint=HINT)
  return clang, re.sub("clang", "ld.lld", clang)


def compiled(source: bytes, processor: str, where: str, folder: str | None, kernel: str = "",
             options: Sequence[str] = ()) -> bytes:
  """A code object of a translation unit for a GPU (`gfx1100`). `kernel`, an expression of C++ (`scale<float>`), is
  made, and its address is in the variable ASKED. `where` is the source's own name; what it includes by quotes is looked
  for in `folder`; `options` are clang's (`-DN=4`).

  Raises MissingTool without clang or lld, DecodeError for what clang refuses, with the line, InvalidArgument for an
  option that it does not know.
  """
  clang, linker = tools()
  name = Path(where).name
  with scratch.folder("tinyhw-") as place:
    text, out = Path(place) / name, Path(place) / "tinyhw.co"
    end = f"\n#line 1 \"kernel\"\n__device__ __attribute__((used)) const void *{ASKED} = (const void *)&({kernel});\n"
    save(text, source + (end.encode() if kernel else b""))
    for header in HEADERS:
      (file := Path(place) / "include" / header).parent.mkdir(parents=True, exist_ok=True)
      save(file, "")
    given = [*DEVICE, "-std=c++17", "-O2", "-g", "-gembed-source", "-w", "-fno-math-errno", "-fdeclspec",
             f"--offload-arch={processor}", f"--ld-path={linker}", "-include", str(HEADER),
             "-isystem", str(Path(place) / "include"), *([f"-I{folder}"] if folder is not None else []), *options]
    made = subprocess.run([clang, *given, "-fno-color-diagnostics", "-o", str(out), str(text)], capture_output=True)
    if made.returncode == 0 and out.exists(): return out.read_bytes()
  raise _refusal(made.stderr.decode(errors="replace"), made.returncode, where, linker)


def _refusal(said: str, status: int, where: str, linker: str) -> DecodeError | InvalidArgument | MissingTool:
  """The first error that clang tells of, at its line."""
  lines = [line.strip() for line in said.splitlines() if line.strip()]
  for line in lines:
    if (match := _ERROR.match(line)) is not None:
      return DecodeError(f"clang refuses it: {match[3]}", where=f"{Path(match[1]).name}:{match[2]}")
    if (match := _OPTION.match(line)) is None: continue
    if linker in match[1]:
      return MissingTool(f"clang has no linker: {match[1]}", where="HIP", hint=HINT)
    return InvalidArgument(f"clang refuses an option: {match[1]}", where="HIP C++")
  return DecodeError(f"clang refuses it: {lines[0] if lines else f'exit status {status}'}", where=where)
