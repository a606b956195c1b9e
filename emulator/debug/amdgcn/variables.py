"""Variables of the source as a person sees them: their values for a wave, out of registers, scratch and constants."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tinyhw.core.errors import InvalidArgument
from tinyhw.core.source import Part, Variable
from tinyhw.isa.amdgcn.codes import AGPR0

if TYPE_CHECKING:
  from tinyhw.emulator.debug.amdgcn.wave import AmdWave

_KINDS = {"b": "u", "*": "u"}


def value(variable: Variable, wave: AmdWave) -> Any:
  """What a variable holds: a number where it is the same for the wave by its place, else an array [lanes].

  Those of several elements are arrays [lanes, elements], bytes (u8) of structures. Raises InvalidArgument where the
  variable has no place.
  """
  if variable.trouble: raise InvalidArgument(variable.trouble, where=variable.name)
  if any(p.kind == "lost" for p in variable.parts):
    raise InvalidArgument("a part of it is optimized out here", where=variable.name)
  pieces = [_bytes(part, wave) for part in variable.parts]
  lanes = max(len(p) for p in pieces)
  raw = np.concatenate([np.broadcast_to(p, (lanes, p.shape[1])) for p in pieces], axis=1)
  kind = _KINDS.get(variable.kind, variable.kind)
  dtype = np.dtype("u1" if kind == "s" else f"{kind}{variable.size}")
  out = np.ascontiguousarray(raw).view(dtype)
  if variable.count == 1 and variable.kind != "s": out = out[:, 0]
  if lanes > 1: return out
  return out[0].item() if out.ndim == 1 else out[0]


def _bytes(part: Part, wave: AmdWave) -> Any:
  """Bytes of a part: u8 [lanes, size], or [1, size] of what all lanes share."""
  if part.kind == "const": return np.frombuffer(part.data, np.uint8).reshape(1, -1)
  if part.kind == "memory":
    return np.frombuffer(wave.engine.space.read(part.offset, part.size), np.uint8).reshape(1, -1)
  if part.kind == "s": return np.array([[wave.s(part.number)]], np.uint32).view(np.uint8)[:, :part.size]
  if part.kind in {"v", "a"}:
    words = wave.v(part.number + (AGPR0 if part.kind == "a" else 0))
    return words.reshape(-1, 1).view(np.uint8)[:, :part.size]
  first = wave.s(part.number) + part.offset
  rows = [[_byte_run(wave, first, part.size, lane)] for lane in range(wave.engine.lanes)]
  return np.concatenate(rows)


def _byte_run(wave: AmdWave, offset: int, size: int, lane: int) -> Any:
  """Bytes of a lane's scratch, whose dwords lie apart in memory."""
  out, at = b"", offset
  while at < offset + size:
    take = min(4 - at % 4, offset + size - at)
    out += wave.engine.space.read(wave.scratch_address(at, lane), take)
    at += take
  return np.frombuffer(out, np.uint8)


def where(variable: Variable) -> str:
  """Where a variable is, in words: "v2", "s4, s5", "scratch s33+16", "constant"; or why it is nowhere."""
  if variable.trouble: return variable.trouble
  words = {"const": "constant", "lost": "optimized out", "memory": "kernarg (as it was passed)"}
  return ", ".join(dict.fromkeys(
    words.get(p.kind) or (f"scratch s{p.number}{p.offset:+d}" if p.kind == "private" else f"{p.kind}{p.number}")
    for p in variable.parts))
