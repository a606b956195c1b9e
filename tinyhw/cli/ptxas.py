"""A ptxas for programs on the mock: compilers that call one (Triton) get an ELF that carries their PTX.

It takes ptxas's arguments: those that say how to compile are of no account. `tinyhw run` names it to Triton.
"""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from tinyhw.autogen import cuda
from tinyhw.core.errors import Error, InvalidArgument
from tinyhw.core.written import save

VARIABLES: Final = ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")
_BEGIN: Final = "import sys; from tinyhw.cli.ptxas import main; sys.exit(main(sys.argv[1:]))"


def script() -> str:
  """An executable's text that does so, by this Python. It needs no machine of its own."""
  return f"""#!/bin/sh
TINYHW_RUN_CARDS= exec '{sys.executable}' -c '{_BEGIN}' "$@"
"""


def _wanted(words: list[str]) -> tuple[str, Path, Path]:
  """The architecture, where the PTX is and where the ELF goes. Raises InvalidArgument."""
  said = {"--gpu-name": "sm_75", "--output-file": "elf.o"}
  short = {"-arch": "--gpu-name", "-o": "--output-file"}
  inputs, rest = [], iter(words)
  for word in rest:
    name, equals, value = word.partition("=")
    name = short.get(name, name)
    if name in said: said[name] = value if equals else next(rest, "")
    elif word.endswith(".ptx") and not word.startswith("-"): inputs.append(word)
  if len(inputs) != 1: raise InvalidArgument(f"{len(inputs)} files of PTX: one is expected", where="ptxas")
  return said["--gpu-name"], Path(inputs[0]), Path(said["--output-file"])


def main(words: list[str]) -> int:
  """What ptxas does with these arguments. Returns the exit status."""
  from tinyhw.arch.nv import nv_arch
  from tinyhw.devices.assemble import bare
  if "--version" in words or "-V" in words:
    major, minor = cuda.CUDA_VERSION // 1000, cuda.CUDA_VERSION % 1000 // 10
    print(f"tinyhw: PTX as it is\nCuda compilation tools, release {major}.{minor}, V{major}.{minor}.0")
    return 0
  try:
    name, source, out = _wanted(words)
    arch = nv_arch(name.rstrip("af"))
    save(out, bare(source.read_bytes(), arch))
  except (Error, OSError) as error:
    print(f"ptxas fatal   : {error}", file=sys.stderr)
    return 255
  return 0
