"""What operations leave in memory: functions of plain numbers and bytes, written from their names and the manuals.

AMD's TC_OP by the RDNA3 and CDNA3 ISA manuals' pages of the atomics of the same names, NVIDIA's reductions by
dev_pbdma.ref, "SEM_EXECUTE". Values are unsigned numbers of a width in bits.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

_UNSIGNED: Final = {32: np.uint32, 64: np.uint64}
_SIGNED: Final = {32: np.int32, 64: np.int64}


def atomic(name: str, bits: int, before: int, source: int, compare: int = 0) -> int:
  """What an atomic of this name leaves where `before` was."""
  kind = _SIGNED[bits] if name in {"SMIN", "SMAX"} else _UNSIGNED[bits]
  raw = np.array([before, source, compare], _UNSIGNED[bits])
  a, b, c = raw.view(kind)
  with np.errstate(over="ignore"):
    match name:
      case "SWAP": found = b
      case "CMPSWAP": found = b if a == c else a
      case "ADD": found = a + b
      case "SUB": found = a - b
      case "SMIN" | "UMIN": found = np.minimum(a, b)
      case "SMAX" | "UMAX": found = np.maximum(a, b)
      case "AND": found = np.bitwise_and(a, b)
      case "OR": found = np.bitwise_or(a, b)
      case "XOR": found = np.bitwise_xor(a, b)
      case "INC": found = kind(0) if a >= b else a + kind(1)  # tmp >= DATA ? 0 : tmp + 1
      case "DEC": found = b if a == 0 or a > b else a - kind(1)  # (tmp == 0 || tmp > DATA) ? DATA : tmp - 1
      case _: raise KeyError(name)
  return int(np.array([found], kind).view(_UNSIGNED[bits])[0])


ATOMICS: Final = ("SWAP", "CMPSWAP", "ADD", "SUB", "SMIN", "UMIN", "SMAX", "UMAX", "AND", "OR", "XOR", "INC", "DEC")


def operands(name: str, bits: int) -> list[tuple[int, int, int]]:
  """(before, source, compare): the values at which the operation changes."""
  top, ones = 1 << bits - 1, (1 << bits) - 1
  values = [0, 1, 7, top - 1, top, ones]
  if bits == 64: values += [0xFFFF_FFFF, 0x1_0000_0000]
  pairs = [(a, b, 0) for a in values for b in values]
  if name == "CMPSWAP":
    return [(a, 0x5A5A & ones, c) for a in values for c in (a, a ^ 1, a ^ top, a ^ 1 << 8)]
  if name in {"INC", "DEC"}: pairs += [(6, 7, 0), (7, 7, 0), (8, 7, 0), (ones, ones, 0), (ones - 1, ones, 0)]
  return list(dict.fromkeys(pairs))


Comparison = Callable[[int, int], bool]
COMPARISONS: Final[Sequence[tuple[str, Comparison]]] = (  # in the order of the vendors' fields
  ("always", lambda seen, reference: True), ("less", lambda seen, reference: seen < reference),
  ("less-equal", lambda seen, reference: seen <= reference), ("equal", lambda seen, reference: seen == reference),
  ("not-equal", lambda seen, reference: seen != reference),
  ("greater-equal", lambda seen, reference: seen >= reference), ("greater", lambda seen, reference: seen > reference))


def copied(before: bytes, source: bytes, at: int, to: int, size: int) -> bytes:
  """Memory after a copy of so many bytes of a source from one place to another."""
  out = np.frombuffer(before, np.uint8).copy()
  out[to:to + size] = np.frombuffer(source, np.uint8)[at:at + size]
  return out.tobytes()


def window(before: bytes, source: bytes, element: int, origin: tuple[int, int, int], to: tuple[int, int, int],
           pitches: tuple[int, int], to_pitches: tuple[int, int], size: tuple[int, int, int]) -> bytes:
  """Memory after a copy of a box of elements: `pitches` are elements of a row and of a slice."""
  out, given = (np.frombuffer(x, np.uint8).copy() for x in (before, source))
  for z in range(size[2]):
    for y in range(size[1]):
      a = element * ((origin[2] + z) * pitches[1] + (origin[1] + y) * pitches[0] + origin[0])
      b = element * ((to[2] + z) * to_pitches[1] + (to[1] + y) * to_pitches[0] + to[0])
      out[b:b + element * size[0]] = given[a:a + element * size[0]]
  return out.tobytes()


def written(before: bytes, at: int, data: bytes) -> bytes:
  """Memory after bytes were stored at a place."""
  return before[:at] + data + before[at + len(data):]


def words(*values: int, bits: int = 32) -> bytes:
  """Numbers of a width as bytes."""
  return b"".join(v.to_bytes(bits // 8, "little") for v in values)


def noise(seed: int, size: int) -> bytes:
  """Bytes of which none repeats its neighbourhood."""
  return np.random.Generator(np.random.PCG64(seed)).bytes(size)
