"""multimem.ld_reduce, multimem.st, multimem.red: memory that is in several places at once (PTX ISA, section 9.7.9.14).

An address space says which places an address stands for (`AddressSpace.multicast`); one that stands for itself alone is
that of a multicast object to which one device is bound. Each place is loaded, stored or changed as other memory is.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.core.errors import DecodeError
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.bind import Step, binds, need
from tinyhw.emulator.ptx.group import Warps
from tinyhw.emulator.ptx.memory import combine, spaces
from tinyhw.emulator.ptx.memory.addresses import address, guarded
from tinyhw.emulator.ptx.memory.move import operation
from tinyhw.emulator.ptx.module.flow import where
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.ptx.forms import SIZES, Form

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code

_RAW: Final[dict[int, np.dtype[Any]]] = {1: np.dtype("u1"), 2: np.dtype("u2"), 4: np.dtype("u4"), 8: np.dtype("u8")}


def places(group: Warps, at: Value) -> list[Value]:
  """The addresses of all the places that addresses stand for: that of the first device, of the second..."""
  out = [at]
  for start, size, others in group.space.multicast:
    here = (at >= np.uint64(start)) & (at < np.uint64(start + size))
    if not np.any(here): continue
    while len(out) < len(others): out.append(out[-1])
    out = [np.where(here, at - np.uint64(start) + np.uint64(base), o) for o, base in zip(out, others)]
  return out


@binds("multimem")
def multimem(code: Code, line: Line, form: Form) -> Step:
  """One of the three, of a value or a vector."""
  i, m, t = line.instruction, form.modifiers, form.type
  need(line, 2)
  loads, stores = "ld_reduce" in m, "st" in m
  size, name, wide = SIZES[t], combine.operation(m), bool(m & {"acc::f16", "acc::f32"})
  count = next((int(x[1]) for x in ("v2", "v4", "v8") if x in m), 1)
  read = address(code, line, i.operands[1 if loads else 0], "")
  given = operands.elements(line, i.operands[0 if loads else 1])
  if len(given) != count: raise DecodeError(f"{i.name} has {count} values", where=where(line))
  writes = [operands.writer(code, line, o, t) for o in given] if loads else []
  reads = [] if loads else [operands.reader(code, line, o, t) for o in given]

  def change(group: Warps, at: Value, data: Value) -> None:
    if stores: spaces.store(group, "", at, data, size)
    elif t in combine.HALVES: combine.serial(group, "", at, t, name, data)
    else: spaces.atomic(group, "", at, size, operation(form), data, None, False)

  def run(group: Warps) -> None:
    first = np.asarray(read(group)).astype(np.uint64)
    spaces.check_alignment(group, first, size * count, "read" if loads else "write")
    spots = places(group, first)
    for k in range(count):
      at = [s + np.uint64(k * size) for s in spots]
      if loads:
        found = [np.asarray(spaces.load(group, "", a, size)) for a in at]
        writes[k](group, combine.total(t, name, found, wide).view(operands.dtype_of(t)))
      else:
        for a in at: change(group, a, reads[k](group).view(_RAW[size]))
  return guarded(line, run)
