"""Functions that a module may call without having them: what the CUDA driver provides."""
from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.core.errors import DecodeError, MachineFault
from tinyhw.core.printf import Argument, parse
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.group import LANES, Warps
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.ptx.module.flow import where
from tinyhw.emulator.ptx.module.scope import Line, Place
from tinyhw.emulator.values.ops import U64
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.ptx.model import Arguments, Name, Operand

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code

FUNCTIONS: Final = frozenset({"vprintf", "__assertfail"})
_LIMIT: Final = 1 << 16  # bytes of a string


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
      texts = [_text(group, int(w[0, lane]), 0, lane).decode("utf-8", "replace") for w in (words[0], words[1])]
      raise MachineFault(f"assertion failed: {texts[0]} ({texts[1]}:{int(words[2][0, lane])})",
                         wave=int(group.waves[0]), lane=lane)
    return fail

  def printf(group: Warps) -> Any:
    formats, lists = (operands.full(group, r(group)) for r in reads[:2])
    cohort, found = group.cohort, np.zeros((group.size, LANES), np.int32)
    for k, (w, lane) in enumerate(np.argwhere(group.lanes).tolist()):
      if k and cohort.tick is not None: cohort.tick()
      found[w, lane] = _printed(group, int(formats[w, lane]), int(lists[w, lane]), w, lane)
    if results.elements:
      own = line.scope.find(results.elements[0].text) if isinstance(results.elements[0], Name) else None
      if isinstance(own, Place): spaces.put_local(group, U64.type(group.base + own.offset), found)
      else: operands.writer(code, line, results.elements[0], "s32")(group, found)
    return after
  return printf


def _argument(code: Code, line: Line, o: Operand, size: int) -> Callable[[Warps], Value]:
  own = line.scope.find(o.text) if isinstance(o, Name) else None
  if isinstance(own, Place): return lambda group: spaces.get_local(group, U64.type(group.base + own.offset), size)
  if isinstance(o, Name): return operands.reader(code, line, o, "u64" if size == 8 else "u32")
  raise DecodeError("an argument that is none", where=where(line))


def _text(group: Warps, address: int, wave: int, lane: int) -> bytes:
  """A string at a generic address of a thread's, up to its zero, or _LIMIT bytes of it."""
  out = bytearray()
  while len(out) < _LIMIT:
    piece = spaces.read_some(group, address + len(out), wave, lane)
    end = piece.find(0)
    out += piece if end < 0 else piece[:end]
    if end >= 0: break
  return bytes(out[:_LIMIT])


def _printed(group: Warps, form: int, at: int, wave: int, lane: int) -> int:
  """Keep one thread's output, and how many arguments that has; -1 without a format, -2 for what fits no buffer. The
  arguments lie one behind the other, each aligned to its size."""
  if not form: return -1
  text, values, offset = _text(group, form, wave, lane), list[Argument](), 0
  for what in (what for spec in parse(text) for what in spec.takes):
    size = 4 if what[1:] == "4" else 8
    offset = -(-offset // size) * size
    raw = spaces.read_generic(group, at + offset, size, wave, lane)
    offset += size
    if what == "f8": values.append(struct.unpack("<d", raw)[0])
    else:
      number = int.from_bytes(raw, "little")
      values.append(number if what != "s" else _text(group, number, wave, lane) if number else None)
  return len(values) if group.cohort.shared.printed.add(text, values) else -2
