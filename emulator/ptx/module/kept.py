"""Modules that some process has compiled a kernel of: what a launch asks of them is kept, so that nobody parses them.

A file lies beside compiled code (`jit.store`), named by a digest of the module's text and of the sources that decide
what is in it. The text is parsed where somebody asks for the code itself: the reference, the debugger, a fault.

What a launch asks of a module is `link.Kernel`.
"""
from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from tinyhw.core.store import Entry, sources_digest
from tinyhw.emulator.jit.store import store

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.module.link import Linked

SOURCES: Final = ("emulator/*.py", "emulator/jit/ptx/**/*.py", "emulator/jit/*.py", "emulator/ptx/**/*.py",
                  "emulator/check/*.py", "emulator/check/ptx/*.py", "emulator/values/*.py", "emulator/memory/*.py",
                  "isa/ptx/*.py", "arch/*.py", "core/host.py")


def key(text: bytes) -> str:
  """The name of a module's file."""
  return hashlib.sha256(sources_digest(SOURCES) + text).hexdigest() + "m"


def known(text: bytes) -> Entry | None:
  """(row, image) of a module that was kept."""
  return store().load(key(text))


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
