"""From PTX to what a driver of NVIDIA's GPUs loads: a cubin with its PTX in a section, or an ELF of PTX alone.

A card needs the machine code: of nvJitLink, which is a library, or of ptxas; `TINYHW_PTXAS` names one, else they are
looked for (`compile.nvidia.installed`). A mock GPU executes the PTX, and needs neither: one is used where it is named.

PTX is what programs are; a cubin carries it along (`wire/cubin.py`).
"""
from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tinyhw.arch.nv import NvArch
from tinyhw.compile.nvidia import nvjitlink, ptxas
from tinyhw.compile.nvidia.installed import library, program
from tinyhw.core.errors import DecodeError, InvalidArgument, MissingTool, Unsupported
from tinyhw.wire import cubin
from tinyhw.wire.cubin import CubinEntry, Data, Parameter

VARIABLE: Final = "TINYHW_PTXAS"
_TARGET: Final = re.compile(rb"^\s*\.target\s+((sm_\d+)[af]?)\b", re.M)
_HINT: Final = ("install CUDA, or `pip install nvidia-nvjitlink` or `nvidia-cuda-nvcc`; "
                f"{VARIABLE} names a ptxas or libnvJitLink")


def find(named: str, searched: str) -> str | None:
  """What makes cubins: the ptxas or libnvJitLink that is named, else one that is installed. None without one."""
  if named: return named if is_library(named) and Path(named).exists() else shutil.which(named)
  return library("nvJitLink", "nvjitlink") or program("ptxas", "cuda_nvcc", searched)


def is_library(tool: str) -> bool:
  """Whether a tool is nvJitLink, and not a ptxas."""
  return ".so" in Path(tool).name


@dataclass(frozen=True)
class Assembler:
  """What makes PTX loadable on one generation. `needs_code`: a card's, which executes no PTX."""
  arch: NvArch
  needs_code: bool

  @property
  def tool(self) -> str | None:
    """The ptxas or libnvJitLink in use. Raises MissingTool where one is needed or named, and not there."""
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
    if tool is None: return "ptx"
    return nvjitlink.name(tool) if is_library(tool) else ptxas.name(tool)

  def __call__(self, ptx: bytes) -> bytes:
    """The ELF. Raises DecodeError for PTX that ptxas or the linker refuses."""
    tool = self.tool
    return bare(ptx, self.arch) if tool is None else assembled(ptx, self.arch, tool)


def assembled(ptx: bytes, arch: NvArch, tool: str) -> bytes:
  """The cubin of a ptxas or libnvJitLink, with the PTX in a section of its own."""
  make = nvjitlink.linked if is_library(tool) else ptxas.assembled
  return cubin.with_ptx(make(ptx, processor(ptx, arch), tool), ptx)


def processor(ptx: bytes, arch: NvArch) -> str:
  """The GPU as the tools are told it: with the letter of what only it has (sm_90a), where the module is for that."""
  target = _TARGET.search(ptx)
  return target[1].decode() if target is not None and target[2].decode() == arch.name else arch.name


def bare(ptx: bytes, arch: NvArch) -> bytes:
  """An ELF that carries the PTX and says of its kernels what ptxas would say, as far as the text tells."""
  from tinyhw.emulator.ptx.module.link import link_text
  from tinyhw.emulator.ptx.module.targets import runs
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
    entries.append(CubinEntry(name, tuple(Parameter(*p) for p in kernel.params), kernel.shared,
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
