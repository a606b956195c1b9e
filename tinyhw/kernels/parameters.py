"""Types of a kernel's parameters: from the metadata, from debug information, from what the code does with them.

What an argument is, is known or said. The metadata is asked first, then DWARF (`wire/dwarf.py`),
then the code: `evidence_amdgcn` follows kernel arguments to typed operands, and counts only what
all paths agree upon. `arguments` packs what fits and refuses the rest.
"""
from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final

from tinyhw.arch import generation
from tinyhw.core.errors import Error
from tinyhw.core.store import sources_digest
from tinyhw.drive.nv.bare import PtxKernel
from tinyhw.emulator.jit import store
from tinyhw.kernels.inference import Uses
from tinyhw.wire import codeobject, dwarf
from tinyhw.wire.codeobject import Argument, Kernel
from tinyhw.wire.ctype import CType

_KEPT: Final = 64  # kernels whose types are remembered
# What decides what a kernel's code says, beside what decides its compiled code.
_SOURCES: Final = ("kernels/evidence_amdgcn.py", "kernels/inference.py", "kernels/parameters.py",
                   "emulator/check/amdgcn/*.py", "drive/amd/program.py", "wire/codeobject/*.py")
_USED: Final = {name: CType(text, kind, size) for name, text, kind, size in (
  ("f32", "float32", "f", 4), ("f64", "float64", "f", 8), ("i32", "int32", "n", 4), ("i64", "int64", "n", 8))}


@lru_cache(maxsize=_KEPT)
def declared(binary: bytes, kernel: Kernel | PtxKernel) -> tuple[tuple[str, CType | None], ...]:
  """Name ("" where nothing says it) and type of each explicit parameter, from the metadata and the debug information.
  """
  arguments = kernel.arguments
  if isinstance(kernel, PtxKernel): return tuple((a.name, a.type) for a in arguments)
  found: list[tuple[str, CType | None]] = [(a.name, a.type) for a in arguments]
  if any(not name or known is None for name, known in found):
    source = dwarf.parameters(binary, kernel.name) or []
    if len(source) == len(arguments) and all(_fits(a, t) for a, (_, t) in zip(arguments, source)):
      found = [(name or other, known or kind) for (name, known), (other, kind) in zip(found, source)]
  return tuple(found)


def _fits(a: Argument, t: CType) -> bool:
  """Whether a parameter of the source can be this argument: compilers may pass others than were written."""
  if a.kind == "by_value": return t.kind != "*" and t.size == a.size
  return t.kind == "*"


@lru_cache(maxsize=_KEPT)
def _used(binary: bytes, kernel: Kernel) -> Uses | None:
  """What the kernel's code says of its arguments; None for code that cannot be read. Kept on disk beside the compiled
  code of the same object: following it takes longer than loading that."""
  kept, ours = store.store(), sources_digest(_SOURCES) + store.sources_digest()
  key = "uses-" + hashlib.sha256(ours + hashlib.sha256(binary).digest() + kernel.name.encode()).hexdigest()
  if (entry := kept.load(key)) is not None: return Uses.of(entry[0])
  from tinyhw.kernels.evidence_amdgcn import uses
  try:
    code = codeobject.load(binary)
    found = uses(code, kernel, generation(code.arch))
  except Error: return None
  kept.save(key, found.plain(), b"")
  return found


@lru_cache(maxsize=_KEPT)
def asked_for(binary: bytes, kernel: Kernel | PtxKernel) -> frozenset[str]:
  """The hidden arguments that a kernel's code may read: compilers declare more than that."""
  if isinstance(kernel, PtxKernel): return frozenset()
  found = _used(binary, kernel)
  return frozenset(a.kind for a in kernel.hidden if found is None or found.asks_for(a.offset, a.size))


@lru_cache(maxsize=_KEPT)
def seen(binary: bytes, kernel: Kernel | PtxKernel) -> tuple[CType | None, ...]:
  """The type under which the code uses each explicit parameter, where that is sure: a number's, or a pointer's to
  floats."""
  if isinstance(kernel, PtxKernel): return kernel.used
  found = _used(binary, kernel)
  if found is None: return (None,) * len(kernel.arguments)
  out: list[CType | None] = []
  for a in kernel.arguments:
    if a.kind == "by_value":
      name = found.value(a.offset, a.size)
      out.append(None if name is None else _USED[name])
    else:
      name = found.element(a.offset) if a.kind == "global_buffer" else None
      out.append(None if name is None else CType(f"{_USED[name].name}*", "*", 8, _USED[name]))
  return tuple(out)
