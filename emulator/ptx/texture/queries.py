"""Questions about textures, samplers and surfaces: txq, suq, istypep.

What is answered is written against operations on values, so that compiled code answers by the same meaning.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from tinyhw.core.errors import MachineFault
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.bind import Step, binds
from tinyhw.emulator.ptx.group import Warps
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.ptx.module.scope import Line, Place
from tinyhw.emulator.ptx.texture.instructions import alike, header_of, operand, sampler_of, unmasked
from tinyhw.emulator.ptx.texture.objects import FORMATS, field_of
from tinyhw.emulator.values.ops import U32, U64, Array, B, Operations, Ops
from tinyhw.isa.ptx.forms import Form
from tinyhw.isa.ptx.model import Address, Name

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code

_SIZES: Final = ("width", "height", "depth")
# The enumerations of OpenCL (PTX ISA, tables 12 and 13): the one source language that defines these.
_ORDERS: Final = {1: 0x10B0, 2: 0x10B2, 4: 0x10B5}
_KINDS: Final = {"s8": 0x10D7, "s16": 0x10D8, "s32": 0x10D9, "u8": 0x10DA, "u16": 0x10DB, "u32": 0x10DC, "f16": 0x10DD,
                 "f32": 0x10DE}
_UNITS: Final = {"s8": 0x10D0, "s16": 0x10D1, "u8": 0x10D2, "u16": 0x10D3}


class Query:
  """A txq or suq: what it asks for, of what."""

  def __init__(self, code: Code, line: Line, form: Form) -> None:
    i = line.instruction
    self.name = next(n for n in i.modifiers if n not in {"b32", "level"})
    self.sampler = field_of(self.name) is not None  # it asks for a sampler's field
    base = i.operands[1].base if isinstance(i.operands[1], Address) else i.operands[1]
    declared = line.scope.find(base.text) if isinstance(base, Name) else None
    self.own = isinstance(declared, Place) and declared.variable.type == "samplerref"  # a sampler, and no texture
    self.handle = operand(code, line, i.operands[1])
    self.level = operands.reader(code, line, i.operands[2], "u32") if "level" in form.modifiers else None
    self.write = operands.writer(code, line, i.operands[0], "b32")


def answer(o: Operations[B], name: str, number: Callable[[str], B], level: B | None) -> B:
  """What a header says, u32: `number` gives one of its first numbers, u64. `level` is None without one."""
  field = field_of(name)
  if field is not None: found = number("sampler") >> field[0] & (1 << field[1]) - 1
  elif name in _SIZES:
    found = number(name)
    if level is not None: found = o.max(found >> o.to(o.min(level, 31), "u64"), 1)
  elif name == "channel_order": found = _picked(o, number("channels"), _ORDERS)
  elif name == "channel_data_type":
    plain, unit = ({k: t.get(kind, 0) for k, kind in enumerate(FORMATS)} for t in (_KINDS, _UNITS))
    found = o.where(number("unit") != 0, _picked(o, number("kind"), unit), _picked(o, number("kind"), plain))
  elif name == "array_size":
    layers = number("layers")
    found = o.where(number("cube") == 0, layers, o.where(layers > 6, layers // o.const("u64", 6), layers & 0))
  elif name == "num_mipmap_levels": found = o.where(number("mipmapped") != 0, number("levels"), number("levels") & 0)
  else: found = number({"num_samples": "samples", "memory_layout": "linear"}[name])
  return o.to(found, "u32")


def _picked(o: Operations[B], x: B, table: Mapping[int, int]) -> B:
  found = x & 0
  for key, value in table.items(): found = o.where(x == key, o.const("u64", value), found)
  return found


@binds("txq", "suq")
def query(code: Code, line: Line, form: Form) -> Step:
  """What a texture, sampler or surface is like."""
  one = Query(code, line, form)

  def run(group: Warps) -> None:
    out: Array = U32.type(0)
    given = [one.handle(group), *([one.level(group)] if one.level is not None else [])]
    for values in alike(group, given):
      if one.own:
        sampler = sampler_of(group, values[:1])
        if not one.sampler or sampler is None:
          raise MachineFault(f"a sampler has no {one.name}", address=values[0], lane=spaces.lane_of(group))
        numbers = {"sampler": sampler.bits}
      else: numbers = header_of(group, values[0]).numbers
      level = U32.type(values[1]) if one.level is not None else None
      found = answer(Ops, one.name, lambda name, numbers=numbers: U64.type(numbers[name]), level)  # type: ignore[misc]
      out = np.where(group.lanes, found, out)
    one.write(group, out)
  return unmasked(line, run)


@binds("istypep")
def istypep(code: Code, line: Line, form: Form) -> Step:
  """Whether an address is that of an opaque variable of the module."""
  i, linked = line.instruction, code.program.linked
  read, write = operands.reader(code, line, i.operands[1], "u64"), operands.writer(code, line, i.operands[0], "pred")
  kind = next(t for t in ("texref", "samplerref", "surfref") if t in form.modifiers)
  places = [(linked.scope.names.get(name), offset) for name, offset in linked.offsets.items()]
  own = [code.within("global", offset) for p, offset in places if isinstance(p, Place) and p.variable.type == kind]

  def run(group: Warps) -> None:
    at = read(group)
    found = at != at
    for place in own: found = found | (at == place(group))
    write(group, found)
  return run
