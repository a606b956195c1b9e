"""LLVM IR text to object bytes, through llvmlite: one place that knows its interface.

Each compilation has an LLVM context of its own, so that nothing piles up in a long process. What LLVM refuses comes
back as one TinyhwError; renderers check the limits that LLVM would end the process for.
"""
from __future__ import annotations

import functools
from typing import Any

import llvmlite.binding as llvm

from tinyhw.core.errors import InvalidArgument

HOST = "host"


@functools.cache
def machine(triple: str, cpu: str, features: str, level: int) -> Any:
  """The code generator for a processor; `HOST` stands for the processor of this process."""
  llvm.initialize_all_targets()
  llvm.initialize_all_asmprinters()
  if triple == HOST:
    triple, cpu, features = llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
  try: target = llvm.Target.from_triple(triple)
  except RuntimeError as error:
    raise InvalidArgument(f"this llvmlite cannot make code for {triple}: {error}",
                          hint="install llvmlite from PyPI, which has every target") from None
  return target.create_target_machine(cpu=cpu, features=features, opt=level, reloc="pic", codemodel="default")


def parse(source: str, name: str) -> Any:
  """The verified module of a text. Raises InvalidArgument that quotes LLVM."""
  try:
    module = llvm.parse_assembly(source, llvm.create_context())
    module.verify()
  except RuntimeError as error:
    raise InvalidArgument(f"LLVM refuses the source: {' '.join(str(error).split())}", where=f"kernel {name}") from None
  return module


def optimise(module: Any, generator: Any, level: int) -> Any:
  """Run LLVM's own pipeline of that level on the module, in place."""
  if level == 0: return module
  tuning = llvm.create_pipeline_tuning_options(speed_level=level)
  tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_interleaving = level >= 2
  builder = llvm.create_pass_builder(generator, tuning)
  builder.getModulePassManager().run(module, builder)
  return module


def emit(source: str, name: str, triple: str, cpu: str, features: str, level: int) -> bytes:
  """The object file of a module's text, optimised at `level` 0..3."""
  generator = machine(triple, cpu, features, level)
  module = optimise(parse(source, name), generator, level)
  return bytes(generator.emit_object(module))


def assembly(source: str, name: str, triple: str, cpu: str, features: str, level: int) -> str:
  """The machine code of a module's text as LLVM's assembly, for people."""
  generator = machine(triple, cpu, features, level)
  return str(generator.emit_assembly(optimise(parse(source, name), generator, level)))
