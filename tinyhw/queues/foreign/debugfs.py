"""A ring of debugfs: /sys/kernel/debug/dri/0/amdgpu_ring_NAME, copied as it is.

The file is three dwords and the ring: its read pointer, its write pointer, and the driver's copy of the write pointer,
each an index of a dword (amdgpu_debugfs_ring_read in Linux's amdgpu_ring.c). Nothing in it says whose it is, so the
file's name is asked: it holds `amdgpu_ring_NAME`.
"""
from __future__ import annotations

import re
from typing import Final

from tinyhw.core.errors import DecodeError
from tinyhw.queues.foreign.dump import Dump, Ring, kind_of

_NAME: Final = re.compile(r"(?a)amdgpu_ring_([A-Za-z][\w.]*?)(?:\.(?:bin|raw|dump|dat|txt))?")
HEAD: Final = 12  # bytes of pointers


def ring_of(path: str) -> str:
  """The ring's name in a file's, empty where it has none."""
  m = _NAME.search(path.rpartition("/")[2])
  return (_NAME.fullmatch(path.rpartition("/")[2][m.start():]) or m)[1] if m else ""


def read(data: bytes, path: str) -> Dump:
  """The ring of a file. Raises DecodeError for what cannot be one."""
  if len(data) % 4 or len(data) <= HEAD:
    raise DecodeError(f"{len(data)} bytes are no ring of debugfs: three dwords of pointers, then the ring", where=path)
  head, words = data[:HEAD], list(memoryview(data[HEAD:]).cast("I"))
  pointers = memoryview(head).cast("I")
  name, size = ring_of(path), len(words)
  # Older kernels do not mask the read pointer.
  return Dump("debugfs", rings=[Ring(name, kind_of(name), list(words), 0, size, *(p % size for p in pointers))])
