"""Locks that a fork leaves usable.

A forked child has only the thread that forked; locks that others held would stay held for ever. `lock()` makes one that
is free again in a child: for what belongs to the parent there (devices, queues, the mock's machine), which a child
closes and opens anew. `shared_lock(rank)` makes one for tables that a child goes on to use: a fork waits until nobody
changes them. A thread that holds one takes others of a higher rank only, and no two of one rank; docs/threads.md has
the whole order.
"""
from __future__ import annotations

import _frozen_importlib
import _imp
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

if TYPE_CHECKING:
  class _RLock:  # of which typeshed says that nobody may derive from it
    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...
    def release(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...
    def _release_save(self) -> Any: ...
    def _acquire_restore(self, held: Any) -> None: ...
else:
  from _thread import RLock as _RLock

REGISTRY, RECORDING, GRADIENTS, COMPILER, TABLES, NODES = range(6)  # ranks; finalizers of nodes may take the last
_own: Final[WeakSet[Any]] = WeakSet()
_shared: Final[list[tuple[int, Any]]] = []
_guard: Final = threading.Lock()
_WAY_S: Final = 50e-6
_IMPORT_S: Final = 5.0  # how long a fork waits for other threads' imports
_take: Final = _RLock.acquire


def lock() -> Any:
  """A reentrant lock that nobody holds in a forked child."""
  made = threading.RLock()
  with _guard: _own.add(made)
  return made


def shared_lock(rank: int) -> Any:
  """A reentrant lock that is held while the process forks, so that what it guards is whole in the child."""
  made = threading.RLock()
  with _guard:
    _shared.append((rank, made))
    _shared.sort(key=lambda row: row[0])
  return made


class FairLock(_RLock):
  """A reentrant lock whose holder can see that others want it, and let one of them in. A forked child finds it free.

  It is threading.RLock's own type, so that taking it where nobody else has it is one call.
  """

  def __init__(self) -> None:
    self._counting = threading.Lock()
    self.wanted = 0  # threads that wait for it
    with _guard: _own.add(self)

  def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
    """As RLock's."""
    if _take(self, False): return True
    if not blocking: return False
    self._count(1)
    try: return bool(_take(self, True, timeout))
    finally: self._count(-1)

  def _count(self, n: int) -> None:
    with self._counting: self.wanted += n

  def __enter__(self) -> bool:
    return True if _take(self, False) else self.acquire()

  def give_way(self) -> None:
    """Let go of the lock, however often it is held, for long enough that a thread that waits for it gets it."""
    held = self._release_save()
    try: time.sleep(_WAY_S)
    finally: self._acquire_restore(held)


def llvm_lock() -> Any:
  """llvmlite's lock, which each call of LLVM takes; a child could not call LLVM again where a thread is amid a call."""
  library = getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None)
  return getattr(getattr(library, "_lock", None), "_lock", None)


_held: Final[list[Any]] = []  # by the thread that forks


def _hold() -> None:
  end = time.monotonic() + _IMPORT_S
  while True:
    wanted = [(rank, made) for rank, made in _shared]
    if (llvm := llvm_lock()) is not None: wanted.append((COMPILER, llvm))
    for _, held in sorted(wanted, key=lambda row: row[0]):
      held.acquire()
      _held.append(held)
    _guard.acquire()
    _imp.acquire_lock()  # no thread gets a module's lock meanwhile; who has got one takes it now
    time.sleep(_WAY_S)
    if not _importing_elsewhere() or time.monotonic() > end: return
    _let_go()  # an import may need them
    time.sleep(_WAY_S)


def _importing_elsewhere() -> bool:
  """Whether another thread is amid an import: Python would leave that module locked in a child for ever."""
  me = threading.get_ident()
  locks = [made() for made in list(getattr(_frozen_importlib, "_module_locks", {}).values())]
  return any(made is not None and getattr(made, "owner", None) not in (None, me) for made in locks)


def _let_go() -> None:
  _imp.release_lock()
  _guard.release()
  while _held: _held.pop().release()


def _in_child() -> None:
  _let_go()
  for own in list(_own): own._at_fork_reinit()


os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_in_child)
