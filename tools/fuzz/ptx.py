"""Cases as PTX: LLVM compiles their IR for NVIDIA and for the host, and both must agree.

    python -m tinyhw.tools.fuzz.ptx                    every case at O0 to O3
    python -m tinyhw.tools.fuzz.ptx --match fdiv --seeds 20 --programs 100
"""
from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import llvmlite.binding as llvm
import numpy as np

from tinyhw.core.errors import Error
from tinyhw.core.memory import AddressSpace, Region
from tinyhw.emulator.engines.ptx import dispatch
from tinyhw.emulator.observe import Observer
from tinyhw.emulator.ptx.launch.grid import Dispatch
from tinyhw.emulator.ptx.module.link import Linked, link
from tinyhw.emulator.ptx.program import Program
from tinyhw.isa.ptx import parse
from tinyhw.tools.fuzz.build import Host
from tinyhw.tools.fuzz.case import Array, Case, module
from tinyhw.tools.fuzz.control import all_control
from tinyhw.tools.fuzz.groups import all_groups
from tinyhw.tools.fuzz.program import programs
from tinyhw.tools.fuzz.run import Mismatch, describe, expected, inputs, outputs
from tinyhw.tools.fuzz.scalar import all_scalar

TRIPLE: Final = "nvptx64-nvidia-cuda"
PAGE: Final = 4096
FIRST: Final = 0x1_0000_0000
CHUNK: Final = 50
_WORDS: Final = {"amdgcn.workitem.id": "nvvm.read.ptx.sreg.tid", "amdgcn.workgroup.id": "nvvm.read.ptx.sreg.ctaid",
                 "amdgpu_kernel": "ptx_kernel", "amdgcn.s.barrier": "nvvm.barrier0"}


# The host rounds the first two twice, as it has no fused product of bf16; ldexp of half is expanded in two ways; of
# an i1 that is true LLVM 22 makes 1.0 for sm_90, where -1.0 is meant.
_ELSEWHERE: Final = frozenset({"fma_bfloat", "fma_v2bfloat", "ldexp_half", "sitofp_i1_bfloat"})
# What the target has no code for, where LLVM ends the process.
_LACKING: Final = re.compile(r"flat_or_private|cas_loop|atomic_\w+_(nand_i\d+|u(inc|dec)_wrap_i64|fsub_float"
                             r"|f(min|max)_(float|double)|add_i16|umax_i8|fadd_v2half)")
_LIBRARY: Final = re.compile(r"@llvm\.(log|log2|log10|exp|exp2|exp10|sin|cos|tan|pow|powi|a?sinh?|a?cosh?|a?tanh?)\.")


@cache
def _machine(cpu: str, level: int) -> Any:
  llvm.initialize_all_targets()
  llvm.initialize_all_asmprinters()
  return llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=cpu, opt=level)


def assembly(cases: Sequence[Case], level: int, cpu: str = "sm_80") -> str:
  """PTX with a kernel for each case."""
  text = module(cases, gpu=True)
  for ours, theirs in _WORDS.items(): text = text.replace(ours, theirs)
  text = re.sub(r'"amdgpu-[^"]*"="[^"]*"', "", text)
  text = re.sub(r",? addrspace\(5\)", "", text)  # the stack is in the generic space here
  machine = _machine(cpu, level)
  parsed = llvm.parse_assembly(f'target triple = "{TRIPLE}"\ntarget datalayout = "{machine.target_data}"\n{text}')
  parsed.verify()
  options = llvm.create_pipeline_tuning_options(speed_level=level)
  builder = llvm.create_pass_builder(machine, options)
  builder.getModulePassManager().run(parsed, builder)
  return str(machine.emit_assembly(parsed))


class Emulated:
  """A PTX module on the emulator."""

  def __init__(self, text: str) -> None:
    self.linked: Linked = link(parse(text))
    self.executed: Counter[str] = Counter()

  def run(self, case: Case, arrays: Sequence[Array], observer: Observer | None = None) -> None:
    """Run a case's kernel on arrays (inputs, then outputs), which it changes; an observer has it run on the reference.
    Raises what the emulator raises."""
    space, at, addresses = AddressSpace(case.name), FIRST, []

    def put(data: bytes) -> int:
      nonlocal at
      region = Region("data", -(-max(len(data), 1) // PAGE) * PAGE)
      space.map(at, region.size, region)
      space.write(at, data)
      address, at = at, at + region.size + PAGE
      return address
    variables = put(bytes(max(self.linked.size, 1)))
    program = Program(self.linked, case.name, variables)
    if self.linked.size: space.write(variables, self.linked.bytes_at(variables, program.functions))
    for array in arrays: addresses.append(put(array.tobytes()))
    params = self.linked.flats[case.name].params
    data = bytearray(params[-1].offset + params[-1].size)
    for place, value in zip(params, [*addresses, case.lanes]):
      data[place.offset:place.offset + place.size] = value.to_bytes(place.size, "little")
    grid, block = case.launch
    stats = dispatch(space, Dispatch(program, grid, block, put(bytes(data)), len(data)), watchdog=100_000,
                     observer=observer)
    self.executed += stats.mnemonics
    for array, address in zip(arrays, addresses):
      array.reshape(-1).view(np.uint8)[:] = space.view(address, array.nbytes)


def cases() -> list[Case]:
  """The cases that are not AMD's own."""
  def plain(c: Case) -> bool:
    text = c.body + c.declarations
    for ours in _WORDS: text = text.replace(ours, "")
    if c.name in _ELSEWHERE or _LACKING.fullmatch(c.name) or _LIBRARY.search(c.declarations): return False
    return c.gpu is None and "amdgcn" not in text and "addrspace(3)" not in text and "amdgpu" not in c.attributes
  return [c for c in [*all_scalar(), *all_control(), *all_groups()] if plain(c)]


def check(wanted: Sequence[Case], levels: Sequence[int], *, seed: int = 0, cpu: str = "sm_80",
          executed: Counter[str] | None = None) -> list[Mismatch]:
  """Compile the cases at each level, run them on the emulator and the host, and say where they disagree."""
  compiled = [c for c in wanted if c.witness is None]
  host = Host(compiled) if compiled else None
  results = {c.name: expected(c, host, seed) for c in wanted}
  found = []
  for level in levels:
    right = [c for c in wanted if level in c.levels]
    if not right: continue
    machine = Emulated(assembly(right, level, cpu))
    for case in right:
      kinds = [*(case.inputs[k] for k in case.inplace), *case.outputs]
      arrays, out = inputs(case, seed), outputs(case)
      try:
        machine.run(case, [*arrays, *out])
        text = describe(case, seed, kinds, [*(arrays[k] for k in case.inplace), *out], results[case.name])
      except Error as error: found.append(Mismatch(case.name, level, f"{type(error).__name__}: {error}", error))
      else:
        if text is not None: found.append(Mismatch(case.name, level, text))
    if executed is not None: executed.update(machine.executed)
  return found


def main() -> int:
  """Run what the command line asks for; the exit status is 1 where witnesses disagree."""
  parser = argparse.ArgumentParser(prog="python -m tinyhw.tools.fuzz.ptx")
  parser.add_argument("--match", default="")
  parser.add_argument("--levels", default="0123")
  parser.add_argument("--seeds", type=int, default=1)
  parser.add_argument("--programs", type=int, default=0)
  parser.add_argument("--cpu", default="sm_80")
  options = parser.parse_args()
  chosen = [c for c in [*cases(), *programs(range(options.programs))] if re.search(options.match, c.name)]
  wrong, executed = 0, Counter[str]()
  for seed in range(options.seeds):
    for k in range(0, len(chosen), CHUNK):
      for mismatch in check(chosen[k:k + CHUNK], [int(n) for n in options.levels], seed=seed, cpu=options.cpu,
                            executed=executed):
        wrong += 1
        print(f"seed {seed}: {mismatch}", flush=True)
  print(f"{len(chosen)} cases, {wrong} disagree; {len(executed)} instructions executed")
  return 1 if wrong else 0


if __name__ == "__main__": sys.exit(main())
