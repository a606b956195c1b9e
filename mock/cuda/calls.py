"""The driver API's functions: a handler for each that is served; all others answer CUDA_ERROR_NOT_SUPPORTED by name.

A handler takes the machine and the arguments as integers (pointers are addresses of the client) and raises `Failed`.
"""

from __future__ import annotations

import ctypes
import gc
import re
import threading
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tinyhw.autogen import cuda
from tinyhw.core.called import Called, Caller, reader
from tinyhw.core.errors import OutOfMemory, PageFault, Unsupported
from tinyhw.mock.memory import Refused

if TYPE_CHECKING:
  from tinyhw.mock.cuda.machine import CudaMachine

Handler = Callable[..., None]
PER_THREAD: Final = ("_ptsz", "_ptds")
SERVED: Final[dict[str, Handler]] = {}
_WITHOUT_INIT: Final = frozenset({"cuInit", "cuDriverGetVersion", "cuGetErrorString", "cuGetErrorName",
                                  "cuGetProcAddress", "cuGetProcAddress_v2", "cuLogsCurrent", "cuLogsDumpToMemory",
                                  "cuGetExportTable"})


class Failed(Exception):
  """A call fails with this CUresult; `why` is for the log. A `question` was asked, and this is its answer: the program
  may be right."""

  def __init__(self, code: int, why: str = "", *, question: bool = False) -> None:
    self.code, self.why, self.question = code, why, question
    super().__init__(f"{cuda.RESULTS[code]}: {why}")


class Forked(Exception):
  """The process was forked from one that had initialized the driver."""


def invalid(why: str) -> Failed:
  """The usual refusal of an argument."""
  return Failed(cuda.CUDA_ERROR_INVALID_VALUE, why)


def only(flags: int, known: int, what: str) -> None:
  """Raises Failed for flags that mean nothing."""
  if flags & ~known: raise invalid(f"flags of {what} {flags:#x}")


# Functions that take a struct by value: a handle of another process, or a CUmemLocation, eight bytes that travel in one
# register. Parameters as ctypes has them.
BY_VALUE: Final = {
  **dict.fromkeys(("cuIpcOpenMemHandle", "cuIpcOpenMemHandle_v2"), (
    ctypes.c_uint64, cuda.CUipcMemHandle, ctypes.c_uint32)),
  "cuIpcOpenEventHandle": (ctypes.c_uint64, cuda.CUipcEventHandle),
  "cuMemAdvise_v2": (ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int32, ctypes.c_uint64),
  **dict.fromkeys(("cuMemPrefetchAsync_v2", "cuMemPrefetchAsync_v2_ptsz"), (
    ctypes.c_uint64, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint64))}


EXPORT_TABLE: Final = "cuGetExportTable"
CALLER: Final = (ctypes.c_uint64, ctypes.c_uint64, Caller)  # what its handler gets


def serves(*symbols: str) -> Callable[[Handler], Handler]:
  """Register a handler for these symbols of the library."""

  def register(handler: Handler) -> Handler:
    for symbol in symbols:
      assert (symbol in cuda.FUNCTIONS or symbol in BY_VALUE) and symbol not in SERVED, symbol
      SERVED[symbol] = handler
    return handler

  return register


def handler_of(symbol: str) -> tuple[Handler | None, bool]:
  """(what serves a symbol, whether its stream 0 is the calling thread's): names in _ptsz and _ptds are the functions
  that they begin with."""
  plain = symbol[:-5] if symbol.endswith(PER_THREAD) else symbol
  if symbol in SERVED: return SERVED[symbol], plain != symbol
  return SERVED.get(plain), plain != symbol


def entry(machine: Callable[[], CudaMachine | None], symbol: str) -> Called:
  """A function of the library as C calls it. What a function has that is not served is not looked at."""
  told = () if handler_of(symbol)[0] is None else BY_VALUE.get(symbol) or cuda.FUNCTIONS[symbol]
  if symbol == EXPORT_TABLE: told = CALLER
  return uncollected(answer(machine, symbol), told, cuda.CUDA_ERROR_UNKNOWN, ended(symbol),
                     _ENDED if symbol in _TEXTS else 0)


def ended(symbol: str) -> int:
  """What a function answers when Python has ended, and the process has not: destructors of libraries come behind it.
  What they give back is gone with all memory, and nothing runs that they could wait for; libraries (Taichi) end the
  process where that fails."""
  return cuda.CUDA_SUCCESS if _ENDS.search(symbol) else cuda.CUDA_ERROR_DEINITIALIZED


_ENDS: Final = re.compile(r"Free|Destroy|Unload|Release|Unregister|Synchronize$|^cuCtxSetCurrent$")
_TEXTS: Final = frozenset({"cuGetErrorName", "cuGetErrorString"})  # told when Python has ended, too
_KEPT: Final = ctypes.create_string_buffer(cuda.RESULTS[cuda.CUDA_ERROR_DEINITIALIZED].encode())
_ENDED: Final = ctypes.addressof(_KEPT)
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_KEPT))


def uncollected(function: Callable[..., int], parameters: tuple[Any, ...], failed: int, ended: int,
                text: int = 0) -> Called:
  """A function that C calls, during which Python collects nothing. With a `text` it is one that gives texts."""
  read = reader(parameters)

  def enter(block: int) -> int:
    UNCOLLECTED.enter()
    try: return function(*read(block))
    finally: UNCOLLECTED.leave()
  return Called(enter, failed, 0 if text else ended, text)


class Uncollected:
  """Have Python collect no cycles during a function that C calls. A driver is not Python: its caller may hold a lock
  that finalizers of its own objects would wait for. None of theirs may run in the middle of its call."""

  def __init__(self) -> None:
    self.lock, self.inside, self.collecting = threading.RLock(), 0, False
    self.here = threading.local()

  def forked(self) -> None:
    """A child begins: what other threads of its parent did here does not go on. The one that is left may be inside."""
    self.lock, self.inside = threading.RLock(), getattr(self.here, "inside", 0)
    if self.inside or not self.collecting: return
    self.collecting = False
    gc.enable()

  def enter(self) -> None:
    """A call begins. What comes first allocates nothing, for that is when Python collects."""
    collecting = gc.isenabled()
    gc.disable()
    self.here.inside = getattr(self.here, "inside", 0) + 1
    with self.lock:
      self.inside += 1
      self.collecting |= collecting

  def leave(self) -> None:
    """It ends; after the last one of all threads Python collects as it did before."""
    self.here.inside -= 1
    with self.lock:
      self.inside -= 1
      if not self.inside and self.collecting:
        self.collecting = False
        gc.enable()


UNCOLLECTED: Final = Uncollected()


def answer(machine: Callable[[], CudaMachine | None], symbol: str) -> Callable[..., int]:
  """What a call of the symbol does; errors become CUresults."""
  (handler, own), over = handler_of(symbol), ended(symbol)

  def call(*arguments: Any) -> int:
    try: m = machine()
    except Forked: return cuda.CUDA_ERROR_NOT_INITIALIZED
    if m is None: return over
    if m.watch is None: return served(m, arguments)
    m.watch.entered(symbol, arguments)
    code = served(m, arguments)
    m.watch.called(symbol, arguments, code)
    return code

  def served(m: CudaMachine, arguments: tuple[Any, ...]) -> int:
    try:
      with m.lock:
        m.note_thread()
        m.trace_call(symbol, arguments)
        if handler is None:
          raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, f"{symbol} is not modelled")
        if not m.ready and symbol not in _WITHOUT_INIT:
          raise Failed(cuda.CUDA_ERROR_NOT_INITIALIZED, "cuInit was not called")
        if m.watched and (fault := m.injected.function(symbol)) is not None:
          raise Failed(fault.result or cuda.CUDA_ERROR_UNKNOWN, "a fault that is declared")
        if own:
          with m.own_default(): handler(m, *arguments)
        else: handler(m, *arguments)
        if m.draws is not None: m.rung()
      return cuda.CUDA_SUCCESS
    except Failed as failed:
      m.told(symbol, failed.code, failed.why, failed.question)
      return failed.code
    except Refused as refused:
      m.told(symbol, cuda.CUDA_ERROR_INVALID_VALUE, refused.why)
      return cuda.CUDA_ERROR_INVALID_VALUE
    except PageFault as fault:  # an address that the call itself was given
      m.told(symbol, cuda.CUDA_ERROR_INVALID_VALUE, str(fault))
      return cuda.CUDA_ERROR_INVALID_VALUE
    except (OutOfMemory, MemoryError, OverflowError) as error:  # of a size that the program has said
      m.told(symbol, cuda.CUDA_ERROR_OUT_OF_MEMORY, str(error))
      return cuda.CUDA_ERROR_OUT_OF_MEMORY
    except Unsupported as error:
      m.told(symbol, cuda.CUDA_ERROR_NOT_SUPPORTED, str(error))
      return cuda.CUDA_ERROR_NOT_SUPPORTED
    except Exception as error:  # a mistake of the mock's own
      m.told(symbol, cuda.CUDA_ERROR_UNKNOWN, f"{type(error).__name__}: {error}")
      traceback.print_exc()
      return cuda.CUDA_ERROR_UNKNOWN

  return call
