"""LLVM IR text to object bytes, through llvmlite: one place that knows its interface.

Each compilation has an LLVM context of its own, so that nothing piles up in a long process. What LLVM refuses comes
back as one Error; renderers check the limits that LLVM would end the process for.
"""
from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm

from tinyhw.core.errors import InvalidArgument
from tinyhw.core.host import Host, choose
from tinyhw.core.locks import COMPILER, shared_lock

# LLVM's passes that take addresses apart and undo what a renderer does about them: how to leave them out, and
# how things were. Options belong to the process, so they are set for one compilation at a time.
ADDRESS_PASSES = {"-disable-lsr": ("true", "false"), "-amdgpu-scalar-ir-passes": ("false", "true")}
# A line of a text that needs little: its arithmetic is on vectors, its loops stand as they shall, nothing is computed
# twice. Most of LLVM's passes would find nothing, in ten times the time.
AS_WRITTEN = "; as written"
# A line of a text that runs so briefly that machine code is to come soon rather than be good: a quarter of the time.
AT_ONCE = "; at once"
_lock = shared_lock(COMPILER)


@dataclass(frozen=True)
class Processor:
  """What code is made for: LLVM's target triple, processor and features.

  With `as_written` loops and addresses stay as the program has them. LLVM would make 64-bit pointers of addresses,
  moved on in loops: good where an address is one register, bad where instructions add a scalar base, a 32-bit offset
  and a constant by themselves. And the optimizer has unrolled what it wants unrolled: more of it takes time, on the
  emulator too.
  """
  triple: str
  cpu: str
  features: str = ""
  as_written: bool = False


def host() -> Host:
  """The processor of this process, as far as code may use it."""
  return choose(llvm.get_process_triple(), llvm.get_host_cpu_features())


@functools.cache
def generator(processor: Processor, level: int) -> Any:
  """LLVM's code generator at a level, 0..3."""
  llvm.initialize_all_targets()         # there is no call for one of them; all are a few milliseconds
  llvm.initialize_all_asmprinters()
  try: target = llvm.Target.from_triple(processor.triple)
  except RuntimeError as error:
    raise InvalidArgument(f"this llvmlite cannot make code for {processor.triple}: {error}",
                          hint="install llvmlite from PyPI, which has every target") from None
  return target.create_target_machine(cpu=processor.cpu, features=processor.features, opt=level, reloc="pic",
                                      codemodel="default")


@functools.cache
def header(processor: Processor) -> str:
  """The first lines of a module for the processor."""
  return f'target datalayout = "{generator(processor, 2).target_data}"\ntarget triple = "{processor.triple}"\n'


def optimised(source: str, name: str, processor: Processor, level: int) -> Any:
  """The module of a text, verified and put through LLVM's own pipeline. Raises InvalidArgument that quotes LLVM."""
  try:
    module = llvm.parse_assembly(source, llvm.create_context())
    module.verify()
  except RuntimeError as error:
    raise InvalidArgument(f"LLVM refuses the source: {' '.join(str(error).split())}", where=f"kernel {name}") from None
  if level == 0: return module
  if AS_WRITTEN in source:
    passes = llvm.create_new_module_pass_manager()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.run(module, llvm.create_pass_builder(generator(processor, level), llvm.create_pipeline_tuning_options()))
    return module
  tuning = llvm.create_pipeline_tuning_options(speed_level=level)
  tuning.loop_unrolling = not processor.as_written
  tuning.loop_vectorization = tuning.loop_interleaving = level >= 2 and tuning.loop_unrolling
  # LLVM 22 narrows the operand of uitofp to its significant bits where it makes vectors of straight code (SLP), and
  # their sign is lost: int8 -1 as uint64 as float32 was 2**32.
  tuning.slp_vectorization = tuning.loop_vectorization and "uitofp" not in source
  builder = llvm.create_pass_builder(generator(processor, level), tuning)
  builder.getModulePassManager().run(module, builder)
  return module


def emit(source: str, name: str, processor: Processor, level: int, text: bool = False) -> bytes:
  """The object file of a module's text; or, for people, its assembly text."""
  module = optimised(source, name, processor, level)
  machine = generator(processor, 0 if AT_ONCE in source else level)
  with _lock:
    if processor.as_written: _set_options(0)
    try: return machine.emit_assembly(module).encode() if text else bytes(machine.emit_object(module))
    finally:
      if processor.as_written: _set_options(1)


def _set_options(which: int) -> None:
  for option, values in ADDRESS_PASSES.items(): llvm.set_option("tinyhw", f"{option}={values[which]}")
