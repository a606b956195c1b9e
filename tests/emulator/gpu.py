"""A bare GPU for tests of the interpreter: compiles LLVM IR for it and the host, loads objects, launches kernels.

It shares nothing with the project's loader, driver or mock: an error in one of them cannot hide one here.
"""
from __future__ import annotations

import ctypes
import io
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from elftools.elf.elffile import ELFFile

from tinyhw.arch import decoded
from tinyhw.core.host import choose
from tinyhw.core.memory import AddressSpace, Region
from tinyhw.emulator.amdgcn import Dispatch, DispatchStats
from tinyhw.emulator.engines.amdgcn import dispatch
from tinyhw.emulator.observe import Observer

TRIPLE = "amdgcn-amd-amdhsa"
ARCH = decoded("gfx1100")
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
llvm.initialize_native_asmparser()
# ELF relocations of the AMDGPU target (LLVM AMDGPUUsage, "Relocation Records")
ABS32_LO, ABS32_HI, REL32, REL32_LO, REL32_HI = 1, 2, 4, 10, 11


_CHOSEN = ["gfx1100"]


@contextmanager
def generation(cpu: str) -> Iterator[None]:
  """Within, what names no GPU means this one: tests written once run for every generation."""
  _CHOSEN.append(cpu)
  try: yield
  finally: _CHOSEN.pop()


def compile_gpu(ir: str, optimization: int = 3, features: str = "", cpu: str = "") -> bytes:
  """An ELF object for a GPU. The pass pipeline of the code generator runs at `optimization`."""
  cpu = cpu or _CHOSEN[-1]
  module = llvm.parse_assembly(f'target triple = "{TRIPLE}"\n{ir}')
  machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=cpu, opt=optimization, features=features)
  if optimization > 1:
    options = llvm.create_pipeline_tuning_options(speed_level=optimization)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
  return bytes(machine.emit_object(module))


class Host:
  """The same IR compiled for this machine."""

  def __init__(self, ir: str) -> None:
    host = choose(llvm.get_process_triple(), llvm.get_host_cpu_features())
    machine = llvm.Target.from_triple(host.triple).create_target_machine(cpu=host.cpu, opt=1)
    self._module = llvm.parse_assembly(ir + host.functions)
    self._engine = llvm.create_mcjit_compiler(self._module, machine)
    self._engine.finalize_object()

  def call(self, name: str, *pointers: np.ndarray, count: int) -> None:
    """Call `void name(ptr..., i64 count)`."""
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers), ctypes.c_int64)
    kind(self._engine.get_function_address(name))(*[p.ctypes.data for p in pointers], count)


@dataclass
class Kernel:
  """What a kernel descriptor says."""
  entry: int
  lds: int
  private: int
  rsrc1: int
  rsrc2: int
  rsrc3: int
  properties: int


class Gpu:
  """An address space with memory, loaded kernels and launches."""

  def __init__(self, size: int = 1 << 26, cpu: str = "") -> None:
    self.arch = decoded(cpu or _CHOSEN[-1])
    self.engine = os.environ.get("EMU", "ref")  # runs every kernel that the tests launch
    self.space = AddressSpace()
    self.region = Region("vram", size)
    self.base = 0x1_0000_0000
    self.space.map(self.base, size, self.region)
    self.top = self.base
    self.last: Dispatch | None = None

  def alloc(self, size: int) -> int:
    address = self.top
    self.top += -(-max(size, 1) // 4096) * 4096
    return address

  def put(self, array: np.ndarray) -> int:
    address = self.alloc(array.nbytes)
    self.space.write(address, array.tobytes())
    return address

  def get(self, address: int, dtype: Any, count: int) -> np.ndarray:
    return np.frombuffer(self.space.read(address, np.dtype(dtype).itemsize * count), dtype)

  def load(self, obj: bytes) -> dict[str, Kernel]:
    """Place the sections, apply the relocations, read the descriptors."""
    elf = ELFFile(io.BytesIO(obj))
    sections = list(elf.iter_sections())
    places = {}
    for section in sections:
      if section["sh_flags"] & 2 and section["sh_size"]:
        data = bytes(section["sh_size"]) if section["sh_type"] == "SHT_NOBITS" else section.data()
        places[section.name] = self.put(np.frombuffer(data, np.uint8))
    symbols = elf.get_section_by_name(".symtab")
    for section in sections:
      if section["sh_type"] != "SHT_RELA" or section.name == ".rela.rodata": continue
      target = sections[section["sh_info"]].name
      if target not in places: continue
      for r in section.iter_relocations():
        symbol = symbols.get_symbol(r["r_info_sym"])
        value = places[sections[symbol["st_shndx"]].name] + symbol["st_value"] + r["r_addend"]
        at = places[target] + r["r_offset"]
        kind = r["r_info_type"]
        if kind in (REL32, REL32_LO): value -= at
        elif kind == REL32_HI: value = value - at >> 32
        elif kind == ABS32_HI: value >>= 32
        self.space.store(at, 4, value & 0xFFFFFFFF)
    kernels, rodata = {}, elf.get_section_by_name(".rodata")
    by_name = {s.name: s for s in symbols.iter_symbols()}
    for name, symbol in by_name.items():
      if not name.endswith(".kd"): continue
      descriptor = rodata.data()[symbol["st_value"]:symbol["st_value"] + 64]
      lds, private = struct.unpack_from("<II", descriptor, 0)
      rsrc3, rsrc1, rsrc2, properties = struct.unpack_from("<IIIH", descriptor, 44)
      entry = places[".text"] + by_name[name[:-3]]["st_value"]
      kernels[name[:-3]] = Kernel(entry, lds, private, rsrc1, rsrc2, rsrc3, properties)
    return kernels

  def launch(self, kernel: Kernel, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Any], *,
             watchdog: int = 10_000_000,
             observer: Observer | None = None) -> DispatchStats:
    """Run a kernel; arguments are addresses (int) or NumPy scalars."""
    packed = b""
    for value in arguments:
      scalar = np.uint64(value) if isinstance(value, int) else value
      packed += bytes(-len(packed) % scalar.itemsize) + scalar.tobytes()
    # the implicit arguments of code object v5 that the tests' kernels read: block counts and group sizes
    implicit = -(-len(packed) // 8) * 8
    packed = packed.ljust(implicit, b"\0") + struct.pack("<3I3H", *grid, *block)
    kernarg = self.put(np.frombuffer(packed.ljust(512, b"\0"), np.uint8))
    users: list[int] = []
    for bit, values in ((1, [0] * 4), (2, [0] * 2), (4, [0] * 2), (8, [kernarg & 0xFFFFFFFF, kernarg >> 32]),
                        (16, [0] * 2), (32, [0] * 2), (64, [kernel.private])):
      if kernel.properties & bit: users += values
    users += [0] * ((kernel.rsrc2 >> 1 & 31) - len(users))
    scratch = {}
    if kernel.rsrc2 & 1:
      size = -(-max(kernel.private, 1024) // 256) * 256
      scratch = {"scratch_base": self.alloc(size * 64 * 64), "scratch_size": size, "scratch_waves": 64}
    self.last = Dispatch(kernel.entry, tuple(grid), tuple(block), kernel.rsrc1, kernel.rsrc2, kernel.rsrc3,
                         tuple(users), lds_size=kernel.lds, wave32=bool(kernel.properties >> 10 & 1), **scratch)
    return dispatch(self.space, self.arch, self.last, watchdog=watchdog, observer=observer, engine=self.engine)
