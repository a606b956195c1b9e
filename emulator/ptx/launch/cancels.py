"""clusterlaunchcontrol: a cluster takes over the work of one that has not begun (PTX ISA, sections 9.7.13.17 and 18).

The response of 16 bytes is opaque to programs. Here it is the index of the cancelled cluster's first block, three
words, and a word that is 1 where there was such a cluster.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.bind import Step, binds, need
from tinyhw.emulator.ptx.group import Warps
from tinyhw.emulator.ptx.memory import spaces
from tinyhw.emulator.ptx.memory.addresses import address, guarded
from tinyhw.emulator.ptx.memory.copies import told
from tinyhw.emulator.ptx.memory.ranges import threads
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.ptx.forms import Form

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code

SIZE: Final = 16


@binds("clusterlaunchcontrol")
def clusterlaunchcontrol(code: Code, line: Line, form: Form) -> Step:
  """Requests, and what their responses say."""
  need(line, 2)
  return _request(code, line, form) if "try_cancel" in form.modifiers else _query(code, line, form)


def _request(code: Code, line: Line, form: Form) -> Step:
  i, m = line.instruction, form.modifiers
  space = spaces.space_of(m - {"multicast::cluster::all"})
  to, barrier = (address(code, line, o, space) for o in i.operands)

  def run(group: Warps) -> None:
    ats, barriers = operands.full(group, to(group)), operands.full(group, barrier(group))
    for t in threads(group):
      at, told_at = int(ats[t.row, t.lane]), int(barriers[t.row, t.lane])
      if at % SIZE: raise t.fault(f"{i.name} to {at:#x}, no multiple of {SIZE}", at)
      slot, offset = t.shared(space, at)
      size = t.cohort.shared.clustered
      blocks = [t.block(k) for k in range(size)] if "multicast::cluster::all" in m else None
      found = t.cohort.cancel()
      words = np.array([0, 0, 0, 0] if found is None else [*found, 1], np.uint32).view(np.uint8)
      t.how = "mbarrier"
      for block in [slot] if blocks is None else blocks:
        t.show("lds", "store", offset, SIZE, block)
        t.span(block, offset, SIZE, "write")[:] = words
      group.cohort.changes.count += 1
      told(t, told_at, space, SIZE, blocks)
  return guarded(line, run)


def _query(code: Code, line: Line, form: Form) -> Step:
  i, m = line.instruction, form.modifiers
  low, high = (operands.reader(code, line, o, "b64") for o in operands.halves(i.operands[1]))

  def words(group: Any) -> list[Value]:
    return [(half >> np.uint64(32 * k)).astype(np.uint32) for half in (low(group), high(group)) for k in (0, 1)]
  if "is_canceled" in m:
    write = operands.writer(code, line, i.operands[0], "pred")
    return lambda group: write(group, words(group)[3] != 0)
  axis = next(("xyz".index(x[-1]) for x in m if x.startswith("get_first_ctaid::")), None)
  parts = operands.elements(line, i.operands[0]) if axis is None else (i.operands[0],)
  writes = [operands.writer(code, line, o, "b32") for o in parts]

  def run(group: Any) -> None:
    found = words(group)
    for write, word in zip(writes, found if axis is None else [found[axis]]): write(group, word)
  return run
