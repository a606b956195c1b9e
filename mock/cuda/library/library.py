"""libcuda.so.1 as a library of this process, on a machine of mock cards.

It is loaded under the name that programs look for, so that they find it in this process by `dlopen("libcuda.so.1")`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from tinyhw.autogen import cuda, nvjitlink
from tinyhw.core.called import Called
from tinyhw.core.ending import Step, at_end
from tinyhw.core.errors import InvalidArgument
from tinyhw.mock.cuda.calls import UNCOLLECTED, Forked, entry
from tinyhw.mock.cuda.handlers import runs, served, tells
from tinyhw.mock.cuda.library.shared import Loaded
from tinyhw.mock.cuda.machine import CudaMachine
from tinyhw.mock.cuda.nvml.library import Management
from tinyhw.mock.cuda.runtime.functions import Runtime
from tinyhw.mock.cuda.watching import Watch

SONAME: Final = "libcuda.so.1"
DEVELOPMENT: Final = "libcuda.so"  # the development files' name, by which some look for the driver (Taichi, Halide)
# Of each, how many minor versions of CUDA have names of their own.
LINKERS: Final = {"libnvJitLink.so.12": 10, "libnvJitLink.so.13": nvjitlink.VERSION[1] + 1}


class Stand:
  """The library and the machine behind it: one library a process, for it cannot be unloaded."""

  def __init__(self) -> None:
    self.machine: CudaMachine | None = None
    served()
    symbols = (*cuda.FUNCTIONS, *cuda.BY_VALUE)
    self.loaded = Loaded(SONAME, sorted(symbols))
    self.other = Loaded(DEVELOPMENT, sorted(symbols))  # the linker knows a library by one name of its own
    for symbol in symbols:
      function = entry(self._behind, symbol)
      for loaded in (self.loaded, self.other): loaded.fill(symbol, function)
    self.pid = os.getpid()
    self.runtime: Runtime | None = None
    self.management: Management | None = None
    at_end(Step.LIBRARIES, self._over)
    self.another: Callable[[], CudaMachine] | None = None  # a machine for a child that fork made

  def _behind(self) -> CudaMachine | None:
    if os.getpid() != self.pid: self._forked()
    return self.machine

  def _forked(self) -> None:
    """The process is a child. CUDA does not pass through fork: where the parent had initialized it, it answers
    CUDA_ERROR_NOT_INITIALIZED for good, or else the child begins on its own.

    Raises Forked.
    """
    if self.machine is not None and (self.machine.ready or self.another is None): raise Forked
    self.pid = os.getpid()
    UNCOLLECTED.forked()
    if self.machine is not None and self.another is not None: self.put(self.another())

  def _over(self) -> None:
    """The process ends: so do all functions."""
    self.machine = None

  def _ended(self, machine: CudaMachine) -> None:
    """The machine ends: the library's functions answer CUDA_ERROR_DEINITIALIZED."""
    if self.machine is machine:
      self.machine = None

  def put(self, machine: CudaMachine) -> Any:
    """Have this machine behind the library; returns the library, as ctypes loads it."""
    if self.runtime is not None and self.machine is not machine: self.runtime.forget()
    self.machine, self.pid = machine, os.getpid()
    machine.when_closed = self._ended
    machine.address_of = self.loaded.address
    return self.loaded.library

  def runtime_too(self) -> Runtime:
    """Have the runtime's library beside it."""
    if self.runtime is None:
      self.runtime = Runtime(self._behind, runs())
      self.runtime.watch = self._watch
    return self.runtime

  def management_too(self) -> Management:
    """Have NVML beside it."""
    if self.management is None: self.management = Management(self._cards, tells())
    return self.management

  def _cards(self) -> CudaMachine | None:
    """The machine of which NVML tells: in a child that fork made of a process that uses CUDA, the parent's, as it
    was. NVML passes through fork."""
    try: return self._behind()
    except Forked: return self.machine

  def _watch(self) -> Watch | None:
    machine = self.standing()
    return None if machine is None else machine.watch


  def standing(self) -> CudaMachine | None:
    """The machine of this process, if there is one."""
    return self.machine if os.getpid() == self.pid else None


_stand: Stand | None = None


def stand_in(machine: CudaMachine) -> Any:
  """The library, with this machine behind it."""
  global _stand
  if _stand is None:
    _stand = Stand()
  return _stand.put(machine)


def runtime() -> Runtime:
  """The runtime's library, libcudart.so.13, in front of the driver's. A machine stands behind that already."""
  if _stand is None: raise InvalidArgument("no machine stands behind libcuda.so.1", hint="stand_in(machine) first")
  return _stand.runtime_too()


def management() -> Management:
  """NVML, libnvidia-ml.so.1, which tells of the driver's cards. A machine stands behind the driver's already."""
  if _stand is None: raise InvalidArgument("no machine stands behind libcuda.so.1", hint="stand_in(machine) first")
  return _stand.management_too()


def forks(another: Callable[[], CudaMachine]) -> Callable[[], CudaMachine | None]:
  """Have children that fork makes get a machine of their own. What gives the machine of the process, later."""
  if _stand is None: raise InvalidArgument("no machine stands behind libcuda.so.1", hint="stand_in(machine) first")
  _stand.another = another
  return _stand.standing


def links(found: Iterable[str]) -> None:
  """Have who looks for NVIDIA's linker, libnvJitLink, by its name find one that makes what mock cards run, in front of
  NVIDIA's own in one of the files `found`. Once a process.

  Where there is no file of a name, the functions fail here that libraries call which were linked with it (cuSPARSE,
  cuFFT), so that these load; they have a version in their names. Others find none, and take the driver's (`links`).
  """
  from tinyhw.mock.cuda.modules.jitlink import JitLink, versioned
  files = {Path(file).name: file for file in reversed([*found])}  # the first of a name counts
  for name, minors in LINKERS.items():
    if name in _linkers: continue
    if name in files:
      _linkers[name] = JitLink(files[name], minors, lambda: None if _stand is None else _stand.standing()).loaded
      continue
    linked = [symbol for f in nvjitlink.FUNCTIONS for symbol in versioned(f, name, minors)]
    loaded = _linkers[name] = Loaded(name, linked, name)
    for symbol in linked: loaded.fill(symbol, Called(_links_nothing(symbol), nvjitlink.NVJITLINK_ERROR_INTERNAL))


def _links_nothing(symbol: str) -> Callable[[int], int]:
  def call(block: int) -> int:
    machine = None if _stand is None else _stand.standing()
    if machine is not None:
      why = f"{symbol} makes machine code, which is not executed"
      with machine.lock: machine.told(symbol, cuda.CUDA_ERROR_NOT_SUPPORTED, why)
    return nvjitlink.NVJITLINK_ERROR_INTERNAL

  return call


_linkers: dict[str, Loaded] = {}
