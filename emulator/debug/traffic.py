"""What accesses cost in memory: cache sectors and lines of a wave's access, LDS bank conflicts, equal addresses.

Models, not timings: a wave's access needs each sector (64 bytes of AMD's, 32 of NVIDIA's) and each 128-byte line that
active lanes touch once.
LDS has 32 banks of 4 bytes and serves 128 bytes a cycle (32 lanes of 4 bytes, 16 of 8, 8 of 16). In a cycle a bank
gives one dword, to any number of lanes (RDNA3 ISA manual, chapter 12; CDNA3 ISA manual, chapter 11). So has NVIDIA's
shared memory (CUDA C++ Programming Guide, "Shared Memory" of compute capability 5.x and later).
"""
from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

SECTOR: Final = 64
LINE: Final = 128
BANKS: Final = 32

Rows = npt.NDArray[np.int64]


def distinct(addresses: Any, active: Any, width: int, unit: int) -> Rows:
  """How many units of `unit` bytes the active lanes of each wave touch: [waves] of u64 [waves, lanes]."""
  shift = np.uint64(unit.bit_length() - 1)
  first = addresses >> shift
  last = (addresses + np.uint64(width - 1)) >> shift
  both = first if (first == last).all() else np.concatenate([first, last], axis=1)
  on = active if both.shape == active.shape else np.concatenate([active, active], axis=1)
  some = on.any(axis=1)
  stand_in = both[np.arange(len(both)), on.argmax(axis=1)]
  ordered = np.sort(np.where(on, both, stand_in[:, None]), axis=1)
  return np.where(some, 1 + (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1), 0)


def units(addresses: Any, width: int, unit: int) -> int:
  """How many units of `unit` bytes runs of `width` bytes touch that one thread moves, each counted once."""
  first, last = addresses // unit, (addresses + np.uint64(width - 1)) // unit
  most = int((last - first).max()) + 1
  every = first[:, None] + np.arange(most, dtype=np.uint64)
  return len(np.unique(every[every <= last[:, None]]))


def lds_cycles(addresses: Any, active: Any, width: int, atomic: bool) -> tuple[Rows, Rows]:
  """(cycles, cycles without conflicts) of each wave's LDS access; lanes at one address of an atomic take turns."""
  waves, lanes = addresses.shape
  words = max(1, width // 4)
  a_pass = BANKS // (1 if words == 1 else 2 if words == 2 else 4)
  a_pass = min(a_pass, lanes)
  passes = lanes // a_pass
  dword = (addresses >> np.uint64(2)).astype(np.int64)[:, :, None] + np.arange(words)
  dword = dword.reshape(waves * passes, a_pass * words)
  on = np.broadcast_to(active[:, :, None], (waves, lanes, words)).reshape(waves * passes, a_pass * words)
  counted = on
  if not atomic:
    order = np.argsort(np.where(on, dword, -1), axis=1, kind="stable")
    sorted_ = np.take_along_axis(np.where(on, dword, -1), order, axis=1)
    fresh = np.ones(sorted_.shape, bool)
    fresh[:, 1:] = sorted_[:, 1:] != sorted_[:, :-1]
    dword, counted = sorted_, fresh & (sorted_ >= 0)
  key = np.arange(len(dword))[:, None] * BANKS + (dword & BANKS - 1)
  loads = np.bincount(key[counted], minlength=len(dword) * BANKS).reshape(waves, passes, BANKS)
  used = on.any(axis=1).reshape(waves, passes)
  return loads.max(axis=2).sum(axis=1), used.sum(axis=1)
