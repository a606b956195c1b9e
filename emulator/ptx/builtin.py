"""Functions that a module may call without having them: what the CUDA driver provides."""
from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.core.errors import DecodeError, MachineFault
from tinyhw.emulator.ptx import memory, operands
from tinyhw.emulator.ptx.flow import where
from tinyhw.emulator.ptx.group import Warps
from tinyhw.emulator.ptx.scope import Line, Place
from tinyhw.isa.ptx.model import Arguments, Name, Operand

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code

Value = Any
FUNCTIONS: Final = frozenset({"vprintf", "__assertfail"})
_LIMIT: Final = 1 << 16
_SPEC: Final = re.compile(r"%[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|z|j|t|L)?([diouxXeEfFgGaAcsp%])")


def called(line: Line) -> bool:
  """Whether a call is one of FUNCTIONS."""
  names = [o.text for o in line.instruction.operands if isinstance(o, Name)]
  return bool(names) and names[0] in FUNCTIONS


def caller(code: Code, line: Line, name: str, results: Arguments, passed: Arguments,
           after: int) -> Callable[[Warps], Any]:
  """A call of one of FUNCTIONS."""
  reads = [_argument(code, line, o, 4 if name == "__assertfail" and k == 2 else 8)
           for k, o in enumerate(passed.elements)]
  if name == "__assertfail":
    def fail(group: Warps) -> Any:
      lane = int(group.lanes[0].argmax())
      words = [operands.full(group, r(group)) for r in reads]
      texts = [_text(group, int(w[0, lane]), 0, lane) for w in (words[0], words[1])]
      raise MachineFault(f"assertion failed: {texts[0]} ({texts[1]}:{int(words[2][0, lane])})",
                         wave=int(group.waves[0]), lane=lane)
    return fail

  def printf(group: Warps) -> Any:
    formats, lists = (operands.full(group, r(group)) for r in reads[:2])
    for w, lane in np.argwhere(group.lanes).tolist():
      text = _text(group, int(formats[w, lane]), w, lane)
      group.cohort.shared.printed.append(_formatted(group, text, int(lists[w, lane]), w, lane))
    if results.elements:
      own = line.scope.find(results.elements[0].text) if isinstance(results.elements[0], Name) else None
      if isinstance(own, Place): memory.put_local(group, np.uint64(group.base + own.offset), np.uint32(0))
    return after
  return printf


def _argument(code: Code, line: Line, o: Operand, size: int) -> Callable[[Warps], Value]:
  own = line.scope.find(o.text) if isinstance(o, Name) else None
  if isinstance(own, Place): return lambda group: memory.get_local(group, np.uint64(group.base + own.offset), size)
  if isinstance(o, Name): return operands.reader(code, line, o, "u64" if size == 8 else "u32")
  raise DecodeError("an argument that is none", where=where(line))


def _text(group: Warps, address: int, wave: int, lane: int) -> str:
  """A string at a generic address of a thread's, up to its zero."""
  out = bytearray()
  while len(out) < _LIMIT:
    byte = memory.read_generic(group, address + len(out), 1, wave, lane)
    if byte == b"\0": break
    out += byte
  return out.decode("utf-8", "replace")


def _formatted(group: Warps, text: str, at: int, wave: int, lane: int) -> str:
  """What printf makes of arguments that lie one behind the other, each aligned to its size."""
  offset = 0

  def take(size: int) -> bytes:
    nonlocal offset
    offset = -(-offset // size) * size
    found = memory.read_generic(group, at + offset, size, wave, lane)
    offset += size
    return found

  def one(m: re.Match[str]) -> str:
    kind, spec = m[1], m[0]
    if kind == "%": return "%"
    stars = [int.from_bytes(take(4), "little", signed=True) for _ in range(spec.count("*"))]
    for n in stars: spec = spec.replace("*", str(n), 1)
    long = any(x in spec for x in ("l", "z", "j", "t")) or kind == "p"
    plain = re.sub(r"hh|h|ll|l|z|j|t|L", "", spec[:-1])
    if kind in "eEfFgGaA":
      value = struct.unpack("<d", take(8))[0]
      return str(float(value).hex()) if kind in "aA" else f"{plain}{kind}" % value
    if kind == "s":
      address = int.from_bytes(take(8), "little")
      return f"{plain}s" % (_text(group, address, wave, lane) if address else "(null)")
    if kind == "c": return f"{plain}c" % chr(take(4)[0])
    if kind == "p": return f"{int.from_bytes(take(8), 'little'):#x}"
    raw = take(8 if long else 4)
    number = int.from_bytes(raw, "little", signed=kind in "di")
    if kind == "o" and "#" in plain:  # Python would write 0o10
      return f"{plain.replace('#', '')}s" % f"0{number:o}"
    return f"{plain}{kind if kind not in 'iu' else 'd'}" % number
  return _SPEC.sub(one, text)
