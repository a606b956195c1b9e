"""wmma: matrices whose fragments are opaque to programs (PTX ISA, section 9.7.14.4).

Which element a thread holds where is not said by the manual, and is ours here: register r of lane l holds, of a matrix
in a row, elements from (32 * r + l) * n on, n as many as fit; where a fragment has more room, elements repeat. The row
is row after row of A, C and D, and column after column of B, so that what is packed lies side by side in memory.
"""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from tinyhw.core.errors import DecodeError
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.bind import Step, binds, unknown
from tinyhw.emulator.ptx.group import LANES, Warps
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.ptx.memory.addresses import address
from tinyhw.emulator.ptx.module.flow import where
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.ptx.tensorcore.matrix import BITS, decoded, product, unit_for
from tinyhw.emulator.values.ops import U32
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.ptx.forms import Form

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code

_LANE: Final = np.arange(LANES)
_SHAPE: Final = re.compile(r"(?a)m(\d+)n(\d+)k(\d+)")


class Fragment:
  """A matrix of a type as registers: `a`, `b`, `c` or `d` of a shape."""

  def __init__(self, line: Line, which: str, t: str) -> None:
    shape = next((s for s in map(_SHAPE.fullmatch, line.instruction.modifiers) if s is not None), None)
    if shape is None: raise unknown(line)
    m, n, k = map(int, shape.groups())
    self.which, self.type, self.bits = which, t, BITS[t]
    self.rows, self.columns = {"a": (m, k), "b": (k, n)}.get(which, (m, n))
    self.size = self.rows * self.columns
    self.word = 64 if t == "f64" else 32
    self.each = self.word // self.bits  # elements of a register
    least = self.size // self.each // LANES
    self.count = 8 if t == "f16" and which in "ab" else max(1, least)
    self.register = {"f32": "f32", "s32": "s32", "f64": "f64"}.get(t, "b32")

  def need(self, line: Line, registers: int) -> None:
    """Raises DecodeError for another number of registers."""
    if registers != self.count:
      raise DecodeError(f"{line.instruction.name} has {self.count} registers of {self.which}, not {registers}",
                        where=where(line))

  def places(self, r: int) -> tuple[Value, Value]:
    """(rows, columns) of the elements of a register [lanes, each]."""
    at = ((LANES * r + _LANE)[:, None] * self.each + np.arange(self.each)) % self.size
    if self.which == "b": return at % self.rows, at // self.rows
    return at // self.columns, at % self.columns

  def matrix(self, registers: list[Value]) -> Value:
    """The matrix [warps, rows, columns] as f64 or int64."""
    out: Value | None = None
    for r, words in reversed([*enumerate(registers)]):
      values = decoded(np.ascontiguousarray(words).view(np.uint32), self.type)
      if out is None: out = np.zeros((values.shape[0], self.rows, self.columns), values.dtype)
      rows, columns = self.places(r)
      out[:, rows, columns] = values
    assert out is not None
    return out

  def registers(self, matrix: Value) -> list[Value]:
    """The matrix as registers; it has the element's own type."""
    out = []
    for r in range(self.count):
      values = np.ascontiguousarray(matrix[(slice(None), *self.places(r))])
      out.append(np.ascontiguousarray(values[..., 0] if self.each == 1 else values.view(np.uint32)[..., 0]))
    return out

  def offsets(self, r: int, stride: Value, row_major: bool) -> Value:
    """Byte offsets [warps, lanes, elements] in memory of what a register holds; of less than bytes those of words."""
    rows, columns = self.places(r)
    if self.bits < 8: rows, columns = rows[:, :1], columns[:, :1]
    lead, inner = (rows, columns) if row_major else (columns, rows)
    return (lead[None] * stride[:, None, None] + inner[None]) * self.bits // 8


@binds("wmma")
def wmma(code: Code, line: Line, form: Form) -> Step:
  """wmma.load, wmma.store and wmma.mma."""
  m = line.instruction.modifiers
  return _multiplied(code, line) if "mma" in m else _moved(code, line, form)


def _moved(code: Code, line: Line, form: Form) -> Step:
  i, loads = line.instruction, "load" in line.instruction.modifiers
  which = next(x for x in i.modifiers if x in {"a", "b", "c", "d"})
  f = Fragment(line, which, next(x for x in i.modifiers if x in BITS))
  space, row_major = spaces.space_of(form.modifiers), "row" in form.modifiers
  registers = operands.elements(line, i.operands[0 if loads else 1])
  f.need(line, len(registers))
  at = address(code, line, i.operands[1 if loads else 0], space)
  stride = operands.reader(code, line, i.operands[2], "u32") if len(i.operands) > 2 else code.constant(
    U32.type(f.columns if row_major else f.rows))
  width = max(4 if f.bits < 8 else 1, f.bits // 8)
  many = 1 if f.bits < 8 else f.each
  raw = np.dtype(f"u{width}")

  def addresses(group: Warps, r: int) -> Value:
    base = operands.full(group, at(group))
    steps = operands.full(group, stride(group))[:, 0].astype(np.int64)
    return base[:, :1, None] + f.offsets(r, steps, row_major).astype(base.dtype)
  if loads:
    writes = [operands.writer(code, line, o, f.register) for o in registers]
    kind = np.dtype(f"u{f.word // 8}")

    def load(group: Warps) -> None:
      for r, write in enumerate(writes):
        ats = addresses(group, r)
        parts = [operands.full(group, spaces.load(group, space, np.ascontiguousarray(ats[..., j]), width))
                 for j in range(many)]
        word = parts[0].astype(kind)
        for j in range(1, many): word = word | parts[j].astype(kind) << kind.type(j * f.bits)
        write(group, np.ascontiguousarray(word).view(operands.dtype_of(f.register)))
    return load
  reads = [operands.reader(code, line, o, f.register) for o in registers]

  def store(group: Warps) -> None:
    for r, read in enumerate(reads):
      ats, word = addresses(group, r), np.ascontiguousarray(operands.full(group, read(group)))
      word = word.view(np.dtype(f"u{f.word // 8}"))
      for j in range(many):
        part = (word >> word.dtype.type(j * f.bits)).astype(raw)
        spaces.store(group, space, np.ascontiguousarray(ats[..., j]), part, width)
  return store


def _multiplied(code: Code, line: Line) -> Step:
  i = line.instruction
  kinds = [m for m in i.modifiers if m in BITS]
  types = kinds if len(kinds) == 4 else [kinds[0], "f16", "f16", kinds[1]]
  d, a, b, c = (Fragment(line, which, t) for which, t in zip("dabc", types))
  parts = [operands.elements(line, o) for o in i.operands]
  for fragment, part in zip((d, a, b, c), parts): fragment.need(line, len(part))
  writes = [operands.writer(code, line, o, d.register) for o in parts[0]]
  reads = [[operands.reader(code, line, o, f.register) for o in p] for f, p in zip((a, b, c), parts[1:])]
  modifiers = frozenset(i.modifiers)

  def run(group: Warps) -> None:
    x, y, z = (f.matrix([operands.full(group, r(group)) for r in rs]) for f, rs in zip((a, b, c), reads))
    total = product(x, y, z, d.type, modifiers, (a.type, b.type), unit_for(code, group, line, a.type))
    for write, value in zip(writes, d.registers(total)): write(group, value)
  return run
