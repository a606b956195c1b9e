"""Object files of the host to code that can be called."""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import Any, Final

import llvmlite.binding as llvm
from llvmlite import __version__ as llvmlite_version

from tinyhw.core.host import Host, choose
from tinyhw.core.locks import lock
from tinyhw.emulator.jit import compiler
from tinyhw.emulator.jit.refusal import NotCompiled

_Run: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_NUMBERS: Final = count()
_LOCK: Final = lock()


class Native:
  """Loaded objects of one program; `run(context, states, stride in bytes, count)` runs waves that are ready, and is
  at `address`.

  Keeps the code alive.
  """

  def __init__(self, objects: Sequence[bytes]) -> None:
    self._library = linked(objects, "run")
    self.address = int(self._library["run"])
    self.run: Any = _Run(self.address)


def linked(objects: Sequence[bytes], symbol: str) -> Any:
  """Objects, loaded: a mapping that has the address of one symbol. Raises NotCompiled."""
  with _LOCK:
    builder = llvm.JITLibraryBuilder().add_current_process().export_symbol(symbol)
    for code in objects: builder = builder.add_object_img(code)
    try: return builder.link(_linker(), f"waves.{next(_NUMBERS)}")
    except RuntimeError as error: raise NotCompiled(str(error).strip()) from None


def host() -> Host:
  """The processor that objects are made for, as far as code may use it."""
  return choose(llvm.get_process_triple(), _features())


def compiled_by() -> str:
  """The compiler that objects are made by."""
  return f"llvmlite {llvmlite_version} LLVM {'.'.join(map(str, llvm.llvm_version_info))}"


@cache
def _features() -> dict[str, bool]: return dict(llvm.get_host_cpu_features())


@cache
def _linker() -> Any:
  """JITLink puts the sections of an object side by side, so that they reach each other."""
  compiler.initialize()
  return llvm.create_lljit_compiler(compiler.machine("", 0, "jitdefault"), use_jit_link=True)
