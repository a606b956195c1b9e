"""Small functions of ours beside compiled programs: what is done again and again with a program is one call.

A routine is LLVM IR, `i64 @NAME(ptr %r)`, and gets all that it needs from one record of 64-bit words that have names.
"""
from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Sequence
from typing import Any, Final

from tinyhw.emulator.jit import servers
from tinyhw.emulator.jit.native import compiled_by, host, linked
from tinyhw.emulator.jit.refusal import NotCompiled
from tinyhw.emulator.jit.store import store

_FUNCTION: Final = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)


class Routine:
  """`call` runs it without Python's lock, `address` is where other routines call it. Compiled once, and kept on disk.

  Raises NotCompiled.
  """

  def __init__(self, name: str, text: str) -> None:
    key = hashlib.sha256("\n".join((text, str(host()), compiled_by())).encode()).hexdigest() + "r"
    self._library: Any = _found(key, name) or _made(key, name, text)
    self.address = int(self._library[name])
    self.call: Any = _FUNCTION(self.address)


def _found(key: str, name: str) -> Any:
  entry = store().load(key)
  try: return entry and linked([entry[1]], name)
  except NotCompiled: return None  # a file of another kind


def _made(key: str, name: str, text: str) -> Any:
  with servers.job(True, host(), soon=True) as job:
    job.send(text)
    objects = job.objects()
  library = linked(objects, name)
  store().save(key, {}, objects[0])
  return library


class Record:
  """Words of 64 bits, by name. `argument` is what `Routine.call` takes; `words` are by their place in `names`."""

  def __init__(self, names: Sequence[str], **values: int) -> None:
    memory = (ctypes.c_int64 * len(names))(*(_signed(values[name]) for name in names))
    self.words = memoryview(memory).cast("B").cast("q")
    self.address = ctypes.addressof(memory)
    self.argument = ctypes.c_void_p(self.address)  # made once: of Python's integers each call would make it anew


def _signed(value: int) -> int: return value - (1 << 64) if value >> 63 else value


def loaded(names: Sequence[str], **wanted: str) -> str:
  """LLVM IR that loads words of the record %r, each by its name as a type."""
  return "".join(f"  %{name}.at = getelementptr i64, ptr %r, i64 {names.index(name)}\n"
                 f"  %{name} = load {kind}, ptr %{name}.at\n" for name, kind in wanted.items())
