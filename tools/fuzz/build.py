"""LLVM at work: IR text to GPU objects and assembly at each optimization level, and to host functions."""
from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import llvmlite.binding as llvm

from tinyhw.core.host import choose
from tinyhw.tools.fuzz.case import Case, module

TRIPLE: Final = "amdgcn-amd-amdhsa"
# x86 has no instruction for these and libgcc has them only since release 13. From double they round to odd, then once
# more.
HOST_HELPERS: Final = """
define weak bfloat @__truncsfbf2(float %x) {
  %u = bitcast float %x to i32
  %nan = fcmp uno float %x, 0.0
  %hi = lshr i32 %u, 16
  %odd = and i32 %hi, 1
  %bias = add i32 %odd, 32767
  %rounded = add i32 %u, %bias
  %top = lshr i32 %rounded, 16
  %quiet = or i32 %hi, 64
  %pick = select i1 %nan, i32 %quiet, i32 %top
  %short = trunc i32 %pick to i16
  %r = bitcast i16 %short to bfloat
  ret bfloat %r
}

define weak bfloat @__truncdfbf2(double %x) {
  %f = call float @narrow_to_odd(double %x)
  %r = call bfloat @__truncsfbf2(float %f)
  ret bfloat %r
}

define weak half @__truncdfhf2(double %x) {
  %f = call float @narrow_to_odd(double %x)
  %r = fptrunc float %f to half
  ret half %r
}

define internal float @narrow_to_odd(double %x) {
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %inexact = fcmp one double %back, %x
  %a = call double @llvm.fabs.f64(double %back)
  %b = call double @llvm.fabs.f64(double %x)
  %outward = fcmp ogt double %a, %b
  %step = zext i1 %outward to i32
  %sticky = zext i1 %inexact to i32
  %bits = bitcast float %near to i32
  %inner = sub i32 %bits, %step
  %odd = or i32 %inner, %sticky
  %f = bitcast i32 %odd to float
  ret float %f
}

declare double @llvm.fabs.f64(double)
"""


@cache
def _start() -> None:
  llvm.initialize_all_targets()
  llvm.initialize_all_asmprinters()
  for library in ("libm.so.6", "libgcc_s.so.1"): llvm.load_library_permanently(library)


@cache
def _gpu(cpu: str, level: int, features: str) -> Any:
  _start()
  return llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=cpu, features=features, opt=level, reloc="pic")


def _optimized(text: str, machine: Any, level: int) -> Any:
  head = f'target triple = "{machine.triple}"\ntarget datalayout = "{machine.target_data}"\n'
  parsed = llvm.parse_assembly(head + text)
  parsed.verify()
  options = llvm.create_pipeline_tuning_options(speed_level=level)
  options.loop_vectorization = options.slp_vectorization = level > 1 and machine.triple == TRIPLE
  builder = llvm.create_pass_builder(machine, options)
  builder.getModulePassManager().run(parsed, builder)
  return parsed


def optimized_for(text: str, cpu: str) -> Any:
  """A module of a GPU's IR after LLVM's passes."""
  return _optimized(text, _gpu(cpu, 1, ""), 1)


def gpu_object(cases: Sequence[Case], level: int, *, cpu: str = "gfx1100", features: str = "") -> bytes:
  """A relocatable code object with a kernel for each case."""
  machine = _gpu(cpu, level, features)
  return bytes(machine.emit_object(_optimized(module(cases, gpu=True), machine, level)))


def gpu_assembly(cases: Sequence[Case], level: int, *, cpu: str = "gfx1100", features: str = "") -> str:
  """What `gpu_object` holds, as text."""
  machine = _gpu(cpu, level, features)
  return str(machine.emit_assembly(_optimized(module(cases, gpu=True), machine, level)))


def mnemonics(assembly: str) -> Counter[str]:
  """How often each mnemonic occurs; encoding suffixes are dropped, the halves of dual instructions count apart."""
  found: Counter[str] = Counter()
  for line in assembly.split("\n"):
    if not line.startswith("\t") or line.startswith("\t."): continue
    for half in line.split("::"):
      name = half.split()[0] if half.split() else ""
      if re.fullmatch(r"[a-z]+_\w+", name): found[re.sub(r"(_e32|_e64)?(_dpp|_dpp8)?$", "", name)] += 1
  return found


class Host:
  """Cases compiled for this CPU, or for one of its levels (`cpu`): `run(name, addresses, lanes)` calls one."""

  def __init__(self, cases: Sequence[Case], level: int = 2, cpu: str = "") -> None:
    _start()
    host = choose(llvm.get_process_triple(), llvm.get_host_cpu_features(), cpu)
    # Not shared: the engine owns its machine.
    machine = llvm.Target.from_triple(host.triple).create_target_machine(cpu=host.cpu, opt=level, jit=True)
    helpers = _optimized(HOST_HELPERS + host.functions, machine, level)
    self._engine = llvm.create_mcjit_compiler(helpers, machine)
    self._engine.add_module(_optimized(module(cases, gpu=False), machine, level))
    self._engine.finalize_object()

  def run(self, case: Case, addresses: Sequence[int], lanes: int) -> None:
    """Run all lanes; `addresses` are the arrays of the case's pointers."""
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(addresses), ctypes.c_uint32)
    kind(self._engine.get_function_address(case.name))(*addresses, lanes)
