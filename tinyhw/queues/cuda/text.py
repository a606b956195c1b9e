"""Calls of CUDA by their declarations: which of their pointers lead where, and each as text.

    cuMemAlloc_v2(dptr=0x7ffd10 -> 0x700000000, bytesize=0x100) = CUDA_SUCCESS
"""
from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from tinyhw.autogen import cuda, cuda_calls, cudart
from tinyhw.core.layout import Struct
from tinyhw.queues.events import Call

_PARAMETER: Final = re.compile(r"(?a)(const )?(?:struct |enum )?([\w ]+?) (\**)(\w*)$")
_SUFFIX: Final = re.compile(r"_pt[sd][sz]$")
_SUCCESS: Final = 0
LONGEST: Final = 256  # bytes of a string that are kept
_ENUM: Final = "CUresult"
# What is no struct to the header but takes its first bytes: `const char *` is a text.


@dataclass(frozen=True)
class Parameter:
  """A parameter as declared. `to` is what it points to, as ctypes has it; `text` where that is a string."""
  name: str
  kind: str
  const: bool
  stars: int
  to: Any = None

  @property
  def text(self) -> bool: return self.const and self.stars == 1 and self.kind == "char"


@cache
def parameters(symbol: str) -> tuple[Parameter, ...]:
  """Of a function of libcuda or libcudart; none where there is no declaration."""
  runtime = symbol.startswith(("cuda", "__cuda"))
  declared = (cuda_calls.RUNTIME if runtime else cuda_calls.DRIVER).get(_SUFFIX.sub("", symbol), "")
  return tuple(_parameter(p, cudart if runtime else cuda) for p in declared.split(", ") if p)


def _parameter(text: str, module: Any) -> Parameter:
  found = _PARAMETER.match(text)
  if found is None: return Parameter(text, text, False, 0)
  const, kind, stars, name = bool(found[1]), found[2], len(found[3]), found[4]
  to: Any = None
  if stars == 1:
    scalar = cuda_calls.SCALARS.get(kind)
    to = getattr(ctypes, scalar) if scalar is not None else getattr(module, kind, None)
    if not (isinstance(to, type) and issubclass(to, ctypes.Structure | ctypes.Union | ctypes._SimpleCData)): to = None
    if const and scalar is not None: to = None  # an array, of which nobody says how long it is
  return Parameter(name, kind, const, stars, to)


def inner(symbol: str, arguments: list[int], before: bool, read: Callable[[int, int], bytes | None]
          ) -> list[list[Any]]:
  """What a call's pointers lead to, before it (what is const) or behind it (what it gives)."""
  out: list[list[Any]] = []
  for n, (p, value) in enumerate(zip(parameters(symbol), arguments)):
    if not value or p.const != before: continue
    if p.text: data = _string(read, value)
    elif p.to is not None: data = read(value, ctypes.sizeof(p.to))
    else: continue
    if data is not None: out.append([n, data])
  return out


def _string(read: Callable[[int, int], bytes | None], address: int) -> bytes | None:
  found = b""
  while len(found) < LONGEST and b"\0" not in found:
    part = read(address + len(found), min(64, 4096 - (address + len(found)) % 4096))
    if part is None: return None
    found += part
  return found.partition(b"\0")[0][:LONGEST]


def result(symbol: str, code: int) -> str:
  """`CUDA_SUCCESS`; of the runtime `cudaSuccess`."""
  names = cudart.ERRORS if symbol.startswith(("cuda", "__cuda")) else cuda.RESULTS
  return names.get(code, hex(code))


def text(call: Call) -> str:
  """One line, indented by the calls that it is within."""
  known = parameters(call.symbol)
  found = {n: data for n, data in call.inner}
  shown = []
  for n, value in enumerate(call.arguments):
    p = known[n] if n < len(known) else None
    shown.append((f"{p.name}=" if p is not None and p.name else "") + _value(p, value, found.get(n)))
  return f"{'  ' * call.depth}{call.symbol}({', '.join(shown)}) = {result(call.symbol, call.result)}"


def _value(p: Parameter | None, value: int, data: bytes | None) -> str:
  shown = str(value) if p is not None and not p.stars and -10 < value < 10 else hex(value)
  if p is None or data is None: return shown
  if p.text: return repr(data.decode("utf-8", "replace"))
  if p.to is None or len(data) != ctypes.sizeof(p.to): return shown
  made = p.to.from_buffer_copy(data)
  if isinstance(made, Struct): return made.text() if p.const else f"{shown} -> {made.text()}"
  if isinstance(made, ctypes._SimpleCData):
    inside = made.value
    return f"{shown} -> {hex(inside or 0) if not isinstance(inside, float) else inside}"
  return shown
