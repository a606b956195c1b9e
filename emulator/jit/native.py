"""LLVM IR to code of the host, kept by the text it came from."""
from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, Final

import llvmlite.binding as llvm

from tinyhw.core.errors import Unsupported

Callback: Final = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_int32)
_Run: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
LIMIT: Final = 256  # programs that are kept


class NotCompiled(Unsupported):
  """LLVM refuses a program; `started` says that waves of the dispatch had run before."""

  def __init__(self, why: str) -> None:
    self.started = False
    super().__init__("program for the compiled engine", why)


class Native:
  """Compiled text; `run(context, states, stride in bytes, count)` runs waves that are ready. Keeps the code alive."""

  def __init__(self, text: str) -> None:
    try: module = llvm.parse_assembly(text)
    except RuntimeError as error: raise NotCompiled(str(error).strip()) from None
    module.triple = llvm.get_process_triple()
    machine = _machine()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
    passes = llvm.create_new_function_pass_manager()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    for function in module.functions:
      if not function.is_declaration: passes.run(function, builder)
    self._engine = llvm.create_mcjit_compiler(module, machine)
    self._engine.finalize_object()
    self.run: Any = _Run(self._engine.get_function_address("run"))


def _machine() -> Any:
  """A target machine for this processor (an execution engine takes it over)."""
  _initialize()
  target = llvm.Target.from_triple(llvm.get_process_triple())
  features = llvm.get_host_cpu_features().flatten()
  return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=2, reloc="default",
                                      codemodel="jitdefault", jit=True)


@cache
def _initialize() -> None:
  llvm.initialize_native_target()
  llvm.initialize_native_asmprinter()


class Cache:
  """Compiled programs by their text, which has no addresses in it: equal programs share code wherever they lie."""

  def __init__(self) -> None: self._kept: dict[str, Native] = {}

  def get(self, text: str) -> Native:
    """The code of a text, compiled when it is new."""
    native = self._kept.get(text)
    if native is None:
      if len(self._kept) >= LIMIT: del self._kept[next(iter(self._kept))]
      native = self._kept[text] = Native(text)
    return native
