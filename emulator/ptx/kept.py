"""Modules that some process has compiled a kernel of: what a launch asks of them is kept, so that nobody parses them.

A file lies beside compiled code (`jit.store`), named by a digest of the module's text and of the sources that decide
what is in it. The text is parsed where somebody asks for the code itself: the reference, the debugger, a fault.
"""
from __future__ import annotations

import hashlib
from typing import Any, Final

from tinyhw.core.locks import lock
from tinyhw.core.store import sources_digest
from tinyhw.emulator.jit.store import store
from tinyhw.emulator.ptx.link import Kernel, Linked, link
from tinyhw.isa.ptx import parse

SOURCES: Final = ("emulator/*.py", "emulator/jit/ptx/*.py", "emulator/jit/*.py", "emulator/ptx/**/*.py",
                  "emulator/check/*.py", "emulator/check/ptx/*.py", "emulator/values/*.py", "emulator/memory/*.py",
                  "isa/ptx/*.py", "arch/*.py", "core/host.py")
_PARSED: Final = frozenset({"module", "flats", "shared", "scope"})
_LOCK: Final = lock()


class Known(Linked):
  """A module as it was kept."""

  def __init__(self, text: bytes, row: dict[str, Any], image: bytes) -> None:
    self.text, self.image = text, bytearray(image)
    self.names, self.lines = tuple(row["names"]), row["lines"]
    self.version, self.target, self.sm = (row["version"][0], row["version"][1]), tuple(row["target"]), row["sm"]
    self.offsets, self.size = row["offsets"], len(image)
    self.fixups = [(offset, size, name, addend) for offset, size, name, addend in row["fixups"]]
    self.kernels = {name: Kernel.of(found) for name, found in row["kernels"].items()}
    self.notes = row["notes"]
    self._reachable, self._names = {}, {}
    self._kept = len(self.kernels), len(self.notes)
    self._full: list[Linked] = []  # copies share it: a place is known by its identity

  def __getattr__(self, name: str) -> Any:
    if name not in _PARSED: raise AttributeError(name)
    with _LOCK:
      if not self._full: self._full.append(link(parse(self.text)))
    return getattr(self._full[0], name)


def key(text: bytes) -> str:
  """The name of a module's file."""
  return hashlib.sha256(sources_digest(SOURCES) + text).hexdigest() + "m"


def known(text: bytes) -> Known | None:
  """A module that was kept."""
  entry = store().load(key(text))
  if entry is None: return None
  try: return Known(text, *entry)
  except (KeyError, TypeError, ValueError, IndexError): return None  # a file of another kind


def keep(linked: Linked) -> None:
  """Keep what is known of a module, where that is more than before. One whose functions have variables of their own,
  which are told apart by their identity, is not kept."""
  linked = linked.origin or linked  # where a loader puts variables is not the text's
  now = len(linked.kernels), len(linked.notes)
  if not linked.text or linked._kept == now or any("#" in name for name in linked.offsets): return
  linked._kept = now
  row = {"names": linked.names, "lines": linked.lines, "version": linked.version, "target": linked.target,
         "sm": linked.sm, "offsets": linked.offsets, "fixups": linked.fixups, "notes": linked.notes,
         "kernels": {name: found.row() for name, found in linked.kernels.items()}}
  store().save(key(linked.text), row, bytes(linked.image))
