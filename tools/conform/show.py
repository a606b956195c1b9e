"""One case in full, for a reader with the manual open: the instruction, what it reads, what it must leave."""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tinyhw.isa.amdgcn.codes import EXEC_LO, M0, VCC_LO
from tinyhw.tools.conform.cases import Baked, manual_section

SPECIAL = {VCC_LO: "VCC_LO", VCC_LO + 1: "VCC_HI", EXEC_LO: "EXEC_LO", EXEC_LO + 1: "EXEC_HI", M0: "M0"}


def show(b: Baked, arch: str) -> str:
  """The case in words and numbers."""
  section = manual_section(b.mnemonic, arch)
  start = b.prepared.start
  cited = f"    manual: section {section}" if section else ""
  lines = [b.id, f"  {b.case.instruction}    {b.case.code.hex()}{cited}",
           f"  {b.case.waves} waves of {b.case.lanes}, MODE {b.case.mode:#x}, EXEC "
           + " ".join(f"{start.exec(w):#x}" for w in range(b.case.waves))
           + f", SCC {' '.join(str(int(x)) for x in start.scc)}"]
  if b.barred: lines.append(f"  no kernel asks it: {b.barred}")
  if b.differs: lines.append(f"  the reference emulator differs: {b.differs}")
  for name, o in b.case.instruction.operands.items():
    if o.kind == "v" and o.role == "s": lines += _vector(b, name, o.value, max(1, o.dwords))
    elif o.kind == "s" and o.role == "s" and o.value < 128:
      rows = [b.start_s[o.value + k] for k in range(max(1, o.dwords)) if o.value + k < 128]
      lines.append(f"  {name} (s{o.value}): " + " ".join(_joined(int(r[w]) for r in rows) for w in range(b.case.waves)))
  lines += _changes(b)
  return "\n".join(lines)


def _joined(words: Iterator[int]) -> str: return "0x" + "_".join(f"{w:08x}" for w in reversed(list(words)))


def _vector(b: Baked, name: str, first: int, count: int) -> list[str]:
  rows = b.start_v[first:first + count]
  words = [_joined(int(r[at]) for r in rows) for at in range(rows.shape[1])]
  return [f"  {name} (v{first}):", *(f"    {' '.join(words[k:k + 8])}" for k in range(0, len(words), 8))]


def _changes(b: Baked) -> list[str]:
  """The registers that it must leave changed."""
  lines = []
  for k in np.flatnonzero((b.v != b.start_v).any(axis=1)).tolist():
    words = [f"{int(w):#010x}" for w in b.v[k]]
    lines += [f"  v{k} wanted:", *(f"    {' '.join(words[j:j + 8])}" for j in range(0, len(words), 8))]
  for k in np.flatnonzero((b.s != b.start_s).any(axis=1)).tolist():
    lines.append(f"  {SPECIAL.get(k, f's{k}')} wanted: " + " ".join(f"{int(w):#010x}" for w in b.s[k]))
  before = [bool(x) for x in b.prepared.start.scc]
  if before != [bool(x) for x in b.scc]: lines.append(f"  SCC wanted: {' '.join(str(int(x)) for x in b.scc)}")
  if b.mode != b.case.mode: lines.append(f"  MODE wanted: {b.mode:#x}")
  if not lines: lines.append("  nothing changes")
  return lines
