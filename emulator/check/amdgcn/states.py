"""The wait states of gfx942 and gfx90a, as data: which instruction must stand how far behind which one it depends on.

Source of gfx942's: CDNA3 ISA manual, section 4.5 "Manually Inserted Wait States (NOPs)" (tables 11 and 12) and section
7.5 "Dependency Resolution: Required Independent Instructions" (table 37); "passes" are those of the instructions'
notes (12.10, VOP3P). Where the manual's table lost a number, it is what LLVM 22's code generator keeps.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from tinyhw.emulator.amdgcn.gfx9 import sdwa
from tinyhw.emulator.amdgcn.registers import EMPTY
from tinyhw.emulator.check.amdgcn.effects import REGISTERS, SCC, SGPR0, TRANSCENDENTAL, Effects, dwords
from tinyhw.isa.amdgcn import MEMBERS, Instruction
from tinyhw.isa.amdgcn.codes import EXEC_HI, EXEC_LO, M0, VCC_HI, VCC_LO

HWREG0: Final = REGISTERS  # hardware registers (s_setreg) follow the others
NUMBERS: Final = HWREG0 + 64
Registers = tuple[int, ...]
Select = Callable[[Instruction, Effects], Registers]

# The passes of 4 cycles of matrix instructions: (pattern, passes); the first match counts.
PASSES: Final = tuple((re.compile(pattern), passes) for pattern, passes in (
  (r"(?a)v_mfma_\w32_32x32x\d+[a-z]", 16), (r"(?a)v_mfma_\w32_16x16x\d+[a-z]", 8),  # gfx90a's names
  (r"v_mfma_f64_16x16", 8), (r"v_mfma_f64_4x4", 4), (r"v_mfma_\w\d+_4x4", 2),
  (r"v_mfma_\w\d+_32x32x\d+_2b_|v_mfma_f32_32x32x2_f32", 16), (r"v_(mfma|smfmac)_\w\d+_32x32", 8),
  (r"v_mfma_\w\d+_16x16x\d+_4b_|v_mfma_f32_16x16x4_f32", 8), (r"v_(mfma|smfmac)_\w\d+_16x16", 4)))


@dataclass(frozen=True)
class Rule:
  """After `first`, whose `of` registers are meant, `second` needs `states` wait states if it meets them in `by`.

  `same` and `forwards` name exceptions: a matrix accumulated in place (of an equal number of passes, or of
  `any_passes`), and the same opcode again.
  """
  first: str
  of: str
  second: str
  by: str
  states: int
  section: str = "4.5"
  same: int | None = None
  forwards: int | None = None
  any_passes: bool = False


def _only(registers: Registers, low: int, high: int) -> Registers:
  return tuple(r for r in registers if low <= r <= high)


def _operands(i: Instruction, *names: str) -> Registers:
  return tuple(r for n in names if n in i.operands for r in dwords(i.operands[n], 64))


def _constants(i: Instruction, does: Effects) -> Registers:
  """SGPRs that a vector instruction reads as a number, not as a mask of carries or conditions."""
  return tuple(r for n, o in i.operands.items() if o.role != "d" and o.kind == "s" and o.dwords
               for r in dwords(o, 64) if r < SCC)


def _empty_masks(i: Instruction, does: Effects) -> Registers:
  """The mask behind src_vccz or src_execz."""
  codes = {o.value for o in i.operands.values() if o.kind == "s"}
  return tuple(SGPR0 + EMPTY[code] + k for code in sorted(codes & EMPTY.keys()) for k in (0, 1))


def _data(i: Instruction, does: Effects) -> Registers: return _operands(i, "vdata")


_EXEC: Final = (SGPR0 + EXEC_LO, SGPR0 + EXEC_HI)
_VCC: Final = (SGPR0 + VCC_LO, SGPR0 + VCC_HI)
SELECT: Final[dict[str, Select]] = {
  "VGPRs written": lambda i, does: _only(does.writes, 0, SGPR0 - 1),
  "VGPRs read": lambda i, does: _only(does.reads, 0, SGPR0 - 1),
  "VGPRs": lambda i, does: _only((*does.reads, *does.writes), 0, SGPR0 - 1),
  "SGPRs written": lambda i, does: _only(does.writes, SGPR0, SGPR0 + VCC_HI),
  "SGPRs read": lambda i, does: _only(does.reads, SGPR0, SGPR0 + VCC_HI),
  "masks written": lambda i, does: tuple(r for r in does.writes if r in _EXEC or r in _VCC),
  "masks that are empty": _empty_masks, "SGPR constants": _constants,
  "VCC written": lambda i, does: tuple(r for r in does.writes if r in _VCC),
  "VCC": lambda i, does: tuple(r for r in (*does.reads, *does.writes) if r in _VCC),
  "EXEC written": lambda i, does: tuple(r for r in does.writes if r in _EXEC),
  "EXEC": lambda i, does: _EXEC,
  "M0": lambda i, does: (SGPR0 + M0,) if SGPR0 + M0 in (*does.reads, *does.writes) else (),
  "M0 used": lambda i, does: (SGPR0 + M0,),
  "lane select": lambda i, does: tuple(r for r in _operands(i, "src1") if r >= SGPR0),
  "source 0": lambda i, does: _only(_operands(i, "src0"), 0, SGPR0 - 1),
  "stored data": _data,
  "A and B": lambda i, does: _operands(i, "src0", "src1", "idx"),
  "C": lambda i, does: tuple(does.tied) or _only(_operands(i, "src2"), 0, SGPR0 - 1),
  "hardware register": lambda i, does: (HWREG0 + (i.fields["simm16"] & 63),),
}


def _matrix_rules() -> list[Rule]:
  """Table 37."""
  rules = [
    Rule("VALU but dot products", "VGPRs written", "matrix", "VGPRs read", 2, "7.5"),
    Rule("dot product", "VGPRs written", "VALU", "VGPRs", 3, "7.5", forwards=0),
    Rule("dot product", "VGPRs written", "memory", "VGPRs", 3, "7.5"),
    Rule("dot product", "VGPRs written", "matrix", "VGPRs", 3, "7.5"),
    Rule("VALU", "EXEC written", "matrix", "EXEC", 4, "7.5"),
  ]
  for passes in (2, 4, 8, 16):
    xdl, sgemm = f"XDL of {passes} passes", f"SGEMM of {passes} passes"
    rules += [
      Rule(xdl, "VGPRs written", "matrix", "C", passes + 1, "7.5", same=2 if passes == 2 else 0),
      Rule(xdl, "VGPRs written", "matrix", "A and B", passes + 3, "7.5"),
      Rule(xdl, "VGPRs written", "VALU", "VGPRs", passes + 3, "7.5"),
      Rule(xdl, "VGPRs written", "memory", "VGPRs read", passes + 3, "7.5"),
      Rule(sgemm, "VGPRs written", "matrix", "C", passes, "7.5", same=0),
      Rule(sgemm, "VGPRs written", "matrix", "A and B", passes + 2, "7.5"),
      Rule(sgemm, "VGPRs written", "VALU", "VGPRs", passes + 2, "7.5"),
      Rule(sgemm, "VGPRs written", "memory", "VGPRs read", passes + 2, "7.5"),
      Rule(xdl, "C", "VALU", "VGPRs written", passes - 1, "7.5"),
      Rule(sgemm, "C", "VALU", "VGPRs written", passes - 1, "7.5"),
    ]
  for size, c, same, a_b, memory in (("16x16", 9, 0, 11, 18), ("4x4", 4, 4, 6, 9)):
    first = f"DGEMM {size}"
    rules += [
      Rule(first, "VGPRs written", "DGEMM", "C", c, "7.5", same=same),
      Rule(first, "VGPRs written", "matrix", "A and B", a_b, "7.5"),
      Rule(first, "VGPRs written", "VALU", "VGPRs", a_b, "7.5"),
      Rule(first, "VGPRs written", "memory", "VGPRs read", memory, "7.5"),
    ]
  return rules


RULES: Final = (
  Rule("s_setreg", "hardware register", "s_getreg or s_setreg", "hardware register", 2),
  Rule("VALU", "masks written", "VALU", "masks that are empty", 5),
  Rule("VALU", "SGPRs written", "lane selection", "lane select", 4),
  Rule("VALU", "VCC written", "v_div_fmas", "VCC", 4),
  Rule("wide store", "stored data", "other than VALU", "VGPRs written", 1),
  Rule("wide store", "stored data", "VALU", "VGPRs written", 2),
  Rule("wide store", "stored data", "matrix", "VGPRs written", 2),
  Rule("VALU", "SGPRs written", "vector memory", "SGPRs read", 5),
  Rule("SALU", "M0", "M0 user", "M0 used", 1),
  Rule("VALU", "VGPRs written", "DPP", "source 0", 2),
  Rule("VALU", "EXEC written", "DPP", "EXEC", 5),
  Rule("VALU", "SGPRs written", "VALU", "SGPR constants", 2),
  Rule("VALU", "EXEC written", "VALU", "SGPR constants", 2),
  Rule("VALU", "EXEC written", "lane access", "EXEC", 4),
  Rule("VALU", "VGPRs written", "lane read", "source 0", 1),
  Rule("shifted result", "VGPRs written", "VALU", "VGPRs read", 1),
  Rule("transcendental", "VGPRs written", "VALU but transcendental", "VGPRs read", 1),
  *_matrix_rules(),
)
def _cdna2_matrix_rules() -> list[Rule]:
  """What CDNA2 has instead of CDNA3's table 37: its products of floats and of integers all wait alike."""
  rules = [r for r in _matrix_rules() if r.first.startswith(("VALU", "DGEMM")) or
           r.first == "dot product" and r.second != "matrix"]
  for passes in (2, 8, 16):
    first = f"XDL of {passes} passes"
    rules += [
      Rule(first, "VGPRs written", "matrix but DGEMM", "C", passes, "7.2", same=0, any_passes=True),
      Rule(first, "VGPRs written", "DGEMM", "C", passes + 1, "7.2", same=0, any_passes=True),
      Rule(first, "VGPRs written", "matrix", "A and B", passes + 3, "7.2"),
      Rule(first, "VGPRs written", "VALU", "VGPRs", passes + 3, "7.2"),
      Rule(first, "VGPRs written", "memory", "VGPRs read", passes + 3, "7.2"),
      Rule(first, "C", "VALU", "VGPRs written", passes - 1, "7.2"),
    ]
  return [replace(r, section="7.2") for r in rules]


# gfx90a's: what both the CDNA2 ISA manual (4.5, table 9; 7.2, table 26, some of whose numbers are lost) and LLVM 20
# (GCNHazardRecognizer.cpp, llvm-project 00b3068edba9; SISchedule.td has the passes) say. It lacks what comes with
# FeatureGFX940Insts: constants in SGPRs, lanes accessed behind EXEC or their register (hasVDecCoExecHazard), shifted
# results (hasDstSelForwardingHazard), transcendental ones (hasTransForwardingHazard); a store's data is read in one.
# Not checked: a load into a wide store's data, a dot product's result as a matrix, V_FMA_F64 behind a DGEMM.
_CDNA3_ONLY: Final = frozenset({
  ("VALU", "SGPRs written", "SGPR constants"), ("VALU", "EXEC written", "SGPR constants"),
  ("VALU", "EXEC written", "EXEC"), ("VALU", "VGPRs written", "source 0"),
  ("shifted result", "VGPRs written", "VGPRs read"), ("transcendental", "VGPRs written", "VGPRs read")})
_CDNA2: Final = (
  *(replace(r, states=1) if r.first == "wide store" else r for r in RULES
    if r.section == "4.5" and r.second != "other than VALU"
    and ((r.first, r.of, r.by) not in _CDNA3_ONLY or r.second == "DPP")),
  *_cdna2_matrix_rules())
RULES_OF: Final[dict[str, tuple[Rule, ...]]] = {"gfx9": RULES, "gfx90a": _CDNA2}  # by the instruction table's name
_M0_USERS: Final = re.compile(r"(?a)s_sendmsg|s_movrel|ds_\w*addtid|ds_gws|\w+_load_lds_|buffer_store_lds|v_interp")
_DOT: Final = re.compile(r"(?a)v_dot\d+c?_")


def rules_of(table: str) -> tuple[Rule, ...] | None:
  """The rules of an instruction table: its own, or its generation's."""
  return RULES_OF.get(table, RULES_OF.get(MEMBERS.get(table, table)))


def passes_of(mnemonic: str) -> int:
  """Passes of a matrix instruction; of one with scales those of the same without."""
  name = mnemonic.replace("v_mfma_scale_", "v_mfma_")
  return next(passes for pattern, passes in PASSES if pattern.match(name))


def _vector_roles(i: Instruction) -> set[str]:
  name = i.mnemonic
  if re.match(r"v_s?mf?mac?_|v_mfma_|v_smfmac_", name):
    passes = passes_of(name)
    if "_f64" in name: return {"matrix", "DGEMM", f"DGEMM {'4x4' if '_4x4' in name else '16x16'}"}
    single = name.endswith("_f32") and not name.endswith("_xf32")
    return {"matrix", "matrix but DGEMM", f"{'SGEMM' if single else 'XDL'} of {passes} passes"}
  roles = {"VALU", "dot product" if _DOT.match(name) else "VALU but dot products"}
  roles.add("transcendental" if TRANSCENDENTAL.match(name) else "VALU but transcendental")
  if "dpp" in i.variant: roles.add("DPP")
  if name in {"v_readlane_b32", "v_writelane_b32"}: roles |= {"lane selection", "lane access"}
  if name in {"v_readlane_b32", "v_readfirstlane_b32"}: roles |= {"lane read", "lane access"}
  if name.startswith("v_div_fmas"): roles.add("v_div_fmas")
  destination = i.operands.get("vdst")
  upper = destination is not None and destination.half == 1
  if upper or "sdwa" in i.variant and i.get("dst_sel", sdwa.DWORD) != sdwa.DWORD: roles.add("shifted result")
  return roles


def roles_of(i: Instruction) -> frozenset[str]:
  """The names that the rules have for an instruction."""
  roles: set[str] = set()
  if i.family.startswith("V"): roles = _vector_roles(i)
  elif i.family in {"FLAT", "MUBUF", "MTBUF"}:
    roles = {"vector memory", "memory"}
    data = i.operands.get("vdata")
    by_sgpr = i.family != "FLAT" and i.operands["soffset"].kind == "s" if "soffset" in i.operands else False
    stores = "_store_" in i.mnemonic or "cmpswap_x2" in i.mnemonic
    if stores and data is not None and data.dwords > 2 and not by_sgpr: roles.add("wide store")
  elif i.family == "DS": roles = {"memory"}
  elif i.family.startswith("SOP"):
    roles = {"SALU"}
    if i.mnemonic.startswith("s_setreg"): roles |= {"s_setreg", "s_getreg or s_setreg"}
    if i.mnemonic.startswith("s_getreg"): roles.add("s_getreg or s_setreg")
  if _M0_USERS.match(i.mnemonic) or i.get("gds"): roles.add("M0 user")
  if not i.family.startswith("V"): roles.add("other than VALU")
  return frozenset(roles)


@cache
def first_rules(rules: tuple[Rule, ...], roles: frozenset[str]) -> tuple[tuple[str, str], ...]:
  """(role, registers) of the rules that an instruction of these roles comes first in."""
  return tuple(dict.fromkeys((r.first, r.of) for r in rules if r.first in roles))


@cache
def second_rules(rules: tuple[Rule, ...], roles: frozenset[str]) -> tuple[Rule, ...]:
  """The rules that an instruction of these roles comes second in."""
  return tuple(r for r in rules if r.second in roles)


def states_of(i: Instruction) -> int:
  """The wait states that an instruction is for those behind it."""
  return (i.fields["simm16"] & 15) + 1 if i.mnemonic == "s_nop" else 1
