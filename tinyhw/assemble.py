"""From PTX to what a driver of NVIDIA's GPUs loads: a cubin of ptxas with its PTX in a section, or an ELF of PTX alone.

A card needs the machine code, so ptxas: `TINYHW_PTXAS`, else the one of `PATH`, else that of PyPI's
`nvidia-cuda-nvcc`. A mock GPU executes the PTX; there ptxas runs only where `TINYHW_PTXAS` names it.
"""
from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tinyhw.arch.nv import NvArch
from tinyhw.core.errors import DecodeError, InvalidArgument, MissingTool, Unsupported
from tinyhw.wire import cubin
from tinyhw.wire.cubin import Data, Entry, Parameter

VARIABLE: Final = "TINYHW_PTXAS"
_TIMEOUT_S: Final = 300
_HINT: Final = f"install CUDA's ptxas, or `pip install nvidia-cuda-nvcc`; {VARIABLE} names one"


@functools.cache
def find(path: str, searched: str) -> str | None:
  """ptxas: the one that is named, else of the folders `searched`, else of PyPI's packages. None without one."""
  if path: return shutil.which(path)
  if (found := shutil.which("ptxas", path=searched or None)) is not None: return found
  for package in ("nvidia.cu13", "nvidia.cuda_nvcc"):
    try: spec = importlib.util.find_spec(package)
    except ModuleNotFoundError: continue
    for folder in spec.submodule_search_locations or () if spec is not None else ():
      if (found := shutil.which("ptxas", path=str(Path(folder) / "bin"))) is not None: return found
  return None


@functools.cache
def _version(tool: str) -> str:
  done = subprocess.run([tool, "--version"], capture_output=True, text=True, timeout=_TIMEOUT_S)
  return done.stdout.strip().splitlines()[-1] if done.returncode == 0 and done.stdout.strip() else "?"


@dataclass(frozen=True)
class Assembler:
  """What makes PTX loadable on one generation. `needs_code`: a card's, which executes no PTX."""
  arch: NvArch
  needs_code: bool

  @property
  def tool(self) -> str | None:
    """The ptxas in use. Raises MissingTool where one is needed or named, and not there."""
    named = os.environ.get(VARIABLE, "")
    if not named and not self.needs_code: return None
    found = find(named, os.environ.get("PATH", ""))
    if found is None:
      raise MissingTool(f"{named or 'ptxas'} is not there", where=f"PTX for {self.arch.name}", hint=_HINT)
    return found

  @property
  def key(self) -> str:
    """What tells its programs from another's, for caches."""
    tool = self.tool
    return "ptx" if tool is None else f"ptxas {_version(tool)}"

  def __call__(self, ptx: bytes) -> bytes:
    """The ELF. Raises DecodeError for PTX that ptxas or the linker refuses."""
    tool = self.tool
    return bare(ptx, self.arch) if tool is None else assembled(ptx, self.arch, tool)


def assembled(ptx: bytes, arch: NvArch, tool: str) -> bytes:
  """ptxas' cubin, with the PTX in a section of its own."""
  with tempfile.TemporaryDirectory(prefix="tinyhw-ptx-") as folder:
    source, out = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
    source.write_bytes(ptx)
    try:
      done = subprocess.run([tool, f"-arch={arch.name}", str(source), "-o", str(out)], capture_output=True, text=True,
                            timeout=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as e:
      raise MissingTool(f"{tool} does not run: {e}", where=f"PTX for {arch.name}", hint=_HINT) from None
    if done.returncode:
      lines = [line.replace(str(source), "PTX") for line in (done.stderr + done.stdout).splitlines() if line.strip()]
      raise DecodeError(f"ptxas refuses it: {lines[0] if lines else f'exit status {done.returncode}'}",
                        where=f"PTX for {arch.name}")
    return cubin.with_ptx(out.read_bytes(), ptx)


def bare(ptx: bytes, arch: NvArch) -> bytes:
  """An ELF that carries the PTX and says of its kernels what ptxas would say, as far as the text tells."""
  from tinyhw.emulator.ptx.link import link_text
  from tinyhw.emulator.ptx.targets import runs
  linked = link_text(ptx)
  if not runs(linked.target[0], arch.sm):
    raise DecodeError(f"PTX for {linked.target[0]} does not run on {arch.name}", where="PTX")
  if not linked.names: raise InvalidArgument("no kernel", where="PTX")
  entries = []
  for name in linked.names:
    kernel = linked.kernel(name)
    most, exact, together = kernel.maxntid, kernel.reqntid, kernel.reqnctapercluster
    x, y, z = (*(exact or most or ()), 1, 1, 1)[:3]
    a, b, c = (*(together or ()), 1, 1, 1)[:3]
    entries.append(Entry(name, tuple(Parameter(*p) for p in kernel.params), kernel.shared,
                         x * y * z if exact or most else 0, (x, y, z) if exact else None, local=kernel.frame,
                         cluster=None if together is None else (a, b, c)))
  variables, addresses = [], []
  for name, offset in linked.offsets.items():
    variables.append((name.partition("#")[0].rpartition("::")[2], offset, 0))
  for offset, size, name, addend in linked.fixups:
    if name not in linked.offsets or size != 8:
      raise Unsupported("address in PTX of", f"{name} in {size} bytes", where="without ptxas")
    addresses.append((offset, linked.offsets[name] + addend))
  data = Data(bytes(linked.image), tuple(variables), tuple(addresses))
  reserved = arch.shared_reserved if arch.shared_symbols_reserved else 0
  return cubin.write(ptx, arch.sm, arch.bank0.params, entries, data, reserved)
