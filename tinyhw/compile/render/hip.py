"""HIP C++ for AMD GPUs, which clang compiles alone: the text needs no header and no library of ROCm's.

`compile` takes the newest clang of `PATH` that makes code for the GPU, with its own linker (lld), and gives a code
object as the LLVM renderer does. Halves are the GPU's own.
"""
from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tinyhw.arch import Arch
from tinyhw.arch.gfx1100 import GFX1100
from tinyhw.compile.hip.clang import DEVICE, tools
from tinyhw.compile.render.cfamily import C_TYPES, CFamilyRenderer, CWriter, Language
from tinyhw.compile.units import unit_named, units_of
from tinyhw.core import scratch
from tinyhw.core.errors import DeviceError
from tinyhw.core.written import save
from tinyhw.ir.dtype import AddressSpace, dtypes
from tinyhw.ir.uop import UOp

# As in `render.c`: nothing is contracted, and nobody looks at errno or at exceptions.
FLAGS = (*DEVICE, "-std=c++17", "-O2", "-w", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")


class HIP(Language):
  """HIP C++."""
  name = "HIP C++"
  types = {**C_TYPES, "bool": "bool"}
  function = "static inline __attribute__((device)) "
  space = {AddressSpace.GLOBAL: "", AddressSpace.LOCAL: "__attribute__((shared))"}
  restrict = "__restrict__"
  indices = {"g": "__builtin_amdgcn_workgroup_id_{axis}()", "l": "__builtin_amdgcn_workitem_id_{axis}()"}
  barrier = ('__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); '
             '__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");')
  counts = frozenset({2, 4, 8, 16})
  vector = "typedef {scalar} {name} __attribute__((ext_vector_type({count}), aligned({alignment}), may_alias));"
  make = "({name}){{{lanes}}}"

  def head(self, block: tuple[int, int, int]) -> str:
    threads = block[0] * block[1] * block[2]
    return f'extern "C" __attribute__((global, amdgpu_flat_work_group_size({threads}, {threads}))) void'

  def elements(self, pointer: str, index: str, word: str, space: AddressSpace, written: bool) -> str:
    return f"*({'' if written else 'const '}{word}*)({pointer} + {index})"


class HIPWriter(CWriter):
  """Matrix units, beside what is C's."""

  def matrix(self, u: UOp) -> None:
    """WMMA by clang's builtin, whose name and arguments are those of LLVM's intrinsic."""
    unit = unit_named(u.arg)
    parts = unit.name.split(".")
    wave = "" if parts[0] == "mfma" else "_w32_gfx12" if self.target.target.startswith("hip:gfx12") else "_w32"
    builtin = f"__builtin_amdgcn_{'_'.join(p for p in parts if not re.fullmatch(r'v[0-9]+[a-z]+[0-9]+', p))}{wave}"
    operands = []
    for s in u.src[:2]:
      kind = s.dtype.scalar
      held = self.vector_type("unsigned char" if kind.bits == 8 else "unsigned short", s.dtype.count)
      lanes = ", ".join(f"(unsigned char)({x})" if kind.bits == 8 else x for x in self.lanes[s])
      if unit.word == "i64": taken = "long"
      elif "bfloat" in unit.word: taken = self.vector_type("__bf16", s.dtype.count)
      elif unit.word == "i32": taken = "int"
      elif unit.word: taken = self.vector_type("int", s.dtype.itemsize // 4)
      else: taken = self.vector_type("_Float16" if kind is dtypes.float16 else "short", s.dtype.count)
      operands.append(f"{'true, ' if unit.signs else ''}__builtin_bit_cast({taken}, ({held}){{{lanes}}})")
    total = self.vector_type(self.language.word(u.dtype.scalar), u.dtype.count)
    rest = unit.rest.replace("i32 ", "").replace("i1 ", "")
    name = f"v{len(self.names)}"
    self.names[u] = name
    self.line(f"const {total} {name} = {builtin}({', '.join(operands)}, ({total}){{{', '.join(self.lanes[u.src[2]])}}}"
              f"{rest});")
    self.lanes[u] = [f"{name}[{i}]" for i in range(u.dtype.count)]

  def vector_type(self, word: str, count: int) -> str:
    """The name of a vector of registers."""
    name = f"{word.replace(' ', '_').strip('_')}_{count}"
    self.types[f"typedef {word} {name} __attribute__((ext_vector_type({count})));"] = None
    return name


class HIPRenderer(CFamilyRenderer):
  """For one GPU, by the clang that is named, or else the newest one."""
  threads = local = True
  vector_bytes = 16
  tile = 4
  language = HIP()
  writer = HIPWriter

  def __init__(self, arch: Arch = GFX1100, clang: str = "") -> None:
    self.arch, self.target, self.clang = arch, f"hip:{arch.name}", clang
    self.units = units_of(arch)
    self.max_block, self.max_local = arch.workgroup_limit, arch.lds_per_workgroup

  @property
  def key(self) -> str: return f"{self.target} {self.clang}"

  def compile(self, source: str, name: str) -> bytes:
    clang, linker = tools(self.clang)
    with scratch.folder("tinyhw-") as folder:
      text, out = Path(folder) / "kernel.hip", Path(folder) / "kernel.co"
      save(text, source)
      made = subprocess.run([clang, *FLAGS, f"--offload-arch={self.arch.name}", f"--ld-path={linker}", "-o", str(out),
                             str(text)], capture_output=True)
      if made.returncode == 0 and out.exists(): return out.read_bytes()
    said = " ".join(made.stderr.decode(errors="replace").split())[:2000] or f"exit status {made.returncode}"
    raise DeviceError(f"{clang} refuses the source: {said}", where=f"kernel {name}")
