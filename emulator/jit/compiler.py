"""LLVM IR to object files, and the process that does it for another one.

LLVM may abort, or never end, over some input. So it works in a process of its own: it reads texts from its standard
input, compiles them in threads and writes object files to its standard output. It ends with its input.
"""
from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys
import threading
from functools import cache
from typing import Any, BinaryIO

import llvmlite.binding as llvm
from llvmlite.binding import ffi

QUICK, HOT = range(2)


def object_file(text: str, cpu: str, how: int) -> bytes:
  """An object file for a processor of this kind. HOT code is worth LLVM's time, QUICK code is wanted soon. Registers
  that are in memory come out of it in HOT code.

  Raises RuntimeError for what is no LLVM IR.
  """
  initialize()
  context = llvm.create_context()
  module = _parsed(text, context)
  module.triple = llvm.get_process_triple()
  target = machine(cpu, 0, "small") if how == QUICK else machine(cpu, 2, "jitdefault")
  if how != QUICK:
    builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=1))
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    for function in module.functions:
      if not function.is_declaration: _free("LLVMPY_RunNewFunctionPassManager")(passes, function, builder)
  return _emitted(target, module)


def machine(cpu: str, opt: int, model: str) -> Any:
  """A target machine for this processor. Of the code models, LLVM is quick with the small one alone."""
  target = llvm.Target.from_triple(llvm.get_process_triple())
  return target.create_target_machine(cpu=cpu, opt=opt, reloc="pic" if model == "small" else "default",
                                      codemodel=model, jit=True)


@cache
def initialize() -> None:
  """Make LLVM ready for this processor."""
  llvm.initialize_native_target()
  llvm.initialize_native_asmprinter()


# llvmlite lets one thread at a time into LLVM, whatever it does there. What takes long has a context of its own, so
# that LLVM needs no such lock.

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
      raise RuntimeError(str(error).strip())
  return module


def _emitted(target: Any, module: Any) -> bytes:
  with ffi.OutputString() as error:
    buffer = _free("LLVMPY_TargetMachineEmitToMemory")(target, module, 1, error)
    if not buffer: raise RuntimeError(str(error).strip())
  try: return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
  finally: ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


# ---- the process

def serve(requests: BinaryIO, answers: BinaryIO, threads: int, request: struct.Struct, reply: struct.Struct) -> None:
  """Answer requests until there are no more; they are compiled side by side, and answered as they are done.

  The structures are those of `servers`.
  """
  from concurrent.futures import ThreadPoolExecutor  # not at the top: a process that ends imports it no more
  lock = threading.Lock()

  def answer(number: int, how: int, cpu: str, text: bytes) -> None:
    try: good, data = True, object_file(text.decode(), cpu, how)
    except Exception as error: good, data = False, str(error).encode()  # the asker tells; others are compiled on
    with lock:
      answers.write(reply.pack(number, good, len(data)) + data)
      answers.flush()

  pool = ThreadPoolExecutor(threads)
  while len(head := requests.read(request.size)) == request.size:
    number, how, letters, size = request.unpack(head)
    cpu = requests.read(letters).decode()
    pool.submit(answer, number, how, cpu, requests.read(size))


def main(niceness: str, threads: str, request: str, reply: str) -> None:
  """The process: what it inherits as standard output is for answers alone."""
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  os.nice(int(niceness))
  answers = os.fdopen(os.dup(1), "wb")
  os.dup2(2, 1)
  initialize()
  serve(sys.stdin.buffer, answers, int(threads), struct.Struct(request), struct.Struct(reply))
  os._exit(0)  # whatever is still compiled is for nobody


if __name__ == "__main__": main(*sys.argv[1:])
