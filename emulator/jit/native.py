"""LLVM IR to an object file of the host, and an object file to code that can be called."""
from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import count
from typing import Any, Final

import llvmlite.binding as llvm
from llvmlite.binding import ffi

from tinyhw.core.errors import Unsupported

Callback: Final = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_int32)
_Run: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_NUMBERS: Final = count()
_LOCK: Final = threading.Lock()


class NotCompiled(Unsupported):
  """LLVM refuses a program; `started` says that waves of the dispatch had run before."""

  def __init__(self, why: str) -> None:
    self.started = False
    super().__init__("program for the compiled engine", why)


class Native:
  """Loaded objects of one program; `run(context, states, stride in bytes, count)` runs waves that are ready.

  Keeps the code alive.
  """

  def __init__(self, objects: Sequence[bytes]) -> None:
    with _LOCK:
      builder = llvm.JITLibraryBuilder().add_current_process().export_symbol("run")
      for code in objects: builder = builder.add_object_img(code)
      try: self._library = builder.link(_linker(), f"waves.{next(_NUMBERS)}")
      except RuntimeError as error: raise NotCompiled(str(error).strip()) from None
    self.run: Any = _Run(self._library["run"])


def compiled(texts: Sequence[str], hot: bool) -> list[bytes]:
  """An object file for this processor from each text. Hot code is worth LLVM's time, other code is wanted soon.

  May run in any thread; others go on meanwhile.
  """
  _initialize()
  if len(texts) == 1: return [_object(texts[0], hot)]
  with ThreadPoolExecutor(len(texts) - 1, "tinyhw compiles") as others:
    more = [others.submit(_object, text, hot) for text in texts[1:]]
    return [_object(texts[0], hot), *(m.result() for m in more)]


def _object(text: str, hot: bool) -> bytes:
  context = llvm.create_context()
  module = _parsed(text, context)
  module.triple = llvm.get_process_triple()
  machine = _machine(2, "jitdefault") if hot else _machine(0, "small")
  if hot:
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
    passes = llvm.create_new_function_pass_manager()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    for function in module.functions:
      if not function.is_declaration: _free("LLVMPY_RunNewFunctionPassManager")(passes, function, builder)
  return _emitted(machine, module)


# llvmlite lets one thread at a time into LLVM, whatever it does there. What takes long has a context of its own, so
# that LLVM needs no such lock; and a compilation that never ends must not keep every other one from beginning.

def _free(name: str) -> Any:
  """A function of llvmlite's library that is called without its lock."""
  wrapped = getattr(ffi.lib, name)
  return getattr(wrapped, "_cfn", wrapped)


def _parsed(text: str, context: Any) -> Any:
  with ffi.OutputString() as error:
    made = _free("LLVMPY_ParseAssembly")(context, ctypes.c_char_p(text.encode()), error)
    module = llvm.ModuleRef(made, context)
    if error:
      module.close()
      raise NotCompiled(str(error).strip())
  return module


def _emitted(machine: Any, module: Any) -> bytes:
  """The object file of a module."""
  with ffi.OutputString() as error:
    buffer = _free("LLVMPY_TargetMachineEmitToMemory")(machine, module, 1, error)
    if not buffer: raise NotCompiled(str(error).strip())
  try: return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
  finally: ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


def host() -> str:
  """The processor and the compiler that objects are made for and by."""
  version = ".".join(map(str, llvm.llvm_version_info))
  return f"{llvm.get_process_triple()} {llvm.get_host_cpu_name()} {_features()} LLVM {version}"


def _machine(opt: int, model: str) -> Any:
  """A target machine for this processor. Of the code models, LLVM is quick with the small one alone."""
  target = llvm.Target.from_triple(llvm.get_process_triple())
  return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=_features(), opt=opt,
                                      reloc="pic" if model == "small" else "default", codemodel=model, jit=True)


@cache
def _features() -> str: return str(llvm.get_host_cpu_features().flatten())


@cache
def _linker() -> Any:
  """JITLink puts the sections of an object side by side, so that they reach each other."""
  _initialize()
  return llvm.create_lljit_compiler(_machine(0, "jitdefault"), use_jit_link=True)


@cache
def _initialize() -> None:
  llvm.initialize_native_target()
  llvm.initialize_native_asmprinter()
