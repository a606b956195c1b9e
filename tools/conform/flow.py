"""Control flow in a kernel that judges itself: pads of code around the instruction say where a wave has gone on.

The states are the witness's, and whether a wave jumps; where to is put into the instruction (or into the register that
it reads) here, before or behind it. Addresses of code that it leaves in registers count from where its code begins.
"""
from __future__ import annotations

import copy
from dataclasses import replace
from typing import Final

import numpy as np

from tinyhw.isa.amdgcn import table
from tinyhw.tools.conform.cases import Baked
from tinyhw.tools.conform.harness import Words, line
from tinyhw.tools.witness.run import Bench, Prepared

FELL, JUMPED = 1, 2  # what s87 says
DIRECT: Final = ("s_branch", "s_cbranch_", "s_call_b64")
INDIRECT: Final = ("s_setpc_b64", "s_swappc_b64")
GETS: Final = "s_getpc_b64"
FORKS: Final = ("s_cbranch_g_fork", "s_cbranch_i_fork", "s_cbranch_join")


def is_flow(mnemonic: str) -> bool:
  """Whether an instruction goes on elsewhere, or says where it is, and pads can tell."""
  return (mnemonic.startswith((*DIRECT, *INDIRECT)) or mnemonic == GETS) and mnemonic not in FORKS


def code(isa: str, instruction: bytes, backward: bool) -> tuple[bytes, int, int]:
  """(the instruction among its pads, where it ends, where the pad for jumps is); the end is behind all of it."""
  jumped, fell = line(isa, f"s_mov_b32 s87, {JUMPED}"), line(isa, f"s_mov_b32 s87, {FELL}")
  size = len(instruction)
  if backward:  # over the pad; the pad and the fall go to the end
    out = line(isa, "s_branch 2") + jumped + line(isa, f"s_branch {(size + 4) // 4}") + instruction + fell
    return out, 12 + size, 4
  return instruction + fell + line(isa, "s_branch 1") + jumped, size, size + 8


def bake(machine: Bench, ident: str, p: Prepared) -> Baked:
  """A case of control flow with its pads."""
  isa, i = machine.table.name, p.case.instruction
  backward = i.fields.get("simm16", 0) >> 15 == 1
  _, after, pad = code(isa, p.case.code, backward)
  words = p.case.code
  if i.mnemonic.startswith(DIRECT):
    words = machine.table.encode(p.case.row, {**i.fields, "simm16": (pad - after) // 4 & 0xFFFF}, i.literal)
  start, wanted = copy.copy(p.start), copy.copy(p.wanted)
  start.s, wanted.s = [r[:] for r in p.start.s], [r[:] for r in p.wanted.s]
  source, target = i.operands.get("src0"), i.operands.get("sdst")
  for wave in range(p.case.waves):
    if i.mnemonic in INDIRECT and source is not None:
      start.set_pair(source.value, wave, pad)
      wanted.set_pair(source.value, wave, pad)
    if target is not None: wanted.set_pair(target.value, wave, after)
  case = replace(p.case, code=words, instruction=table(isa).decode(words))
  made = Baked(ident, Prepared(case, start, wanted), np.array(wanted.v, np.uint32), np.array(wanted.s, np.uint32),
               np.array(wanted.scc, bool), wanted.mode.value)
  made.flow = tuple(FELL if j is None or i.mnemonic == GETS else JUMPED for j in p.wanted.jump)
  made.backward = backward
  return made


def stub(b: Baked) -> bytes:
  """The code of a case, as `harness.stub` has it."""
  isa, i = b.case.row.isa, b.case.instruction
  w, (around, _, _) = Words(isa), code(isa, b.case.code, b.backward)
  pairs = {o.value for n, o in i.operands.items() if n in {"src0", "sdst"} and o.kind == "s" and o.value < 106}
  moved = [i.operands["src0"].value] if i.mnemonic in INDIRECT else []
  before, after = list[str](), ["s_cselect_b32 s92, 1, 0", "s_getreg_b32 s93, hwreg(HW_REG_MODE)"]
  offset = sum(len(line(isa, t)) for t in _there(w, moved))
  if moved: before = _there(w, moved, offset)
  if i.mnemonic.startswith(("s_call", GETS, *INDIRECT)):
    for r in sorted(pairs):
      after += [f"{w.ssub} s{r}, s{r}, s100", f"{w.ssubc} s{r + 1}, s{r + 1}, s101"]
      if moved: after += [f"{w.ssub} s{r}, s{r}, {offset}", f"{w.ssubc} s{r + 1}, s{r + 1}, 0"]
  return (b"".join(line(isa, t) for t in before) + around
          + b"".join(line(isa, t) for t in [*after, "s_branch 0"]))


def _there(w: Words, pairs: list[int], offset: int = 1) -> list[str]:
  """Make addresses of what pairs say from where the code begins, `offset` bytes before the first pad."""
  out = []
  for r in pairs:
    out += w.pair(r, "s100", "s101") + w.pair(r, f"{offset}")
  return [*out, "s_cmp_lg_u32 s92, 0"] if out else []
