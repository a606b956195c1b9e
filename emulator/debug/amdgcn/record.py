"""AMD's machine code in a report: units, branches, registers."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.emulator.amdgcn import coverage
from tinyhw.emulator.amdgcn.allocation import allocated
from tinyhw.emulator.amdgcn.control import CONDITIONS
from tinyhw.emulator.amdgcn.fields import SGPRS
from tinyhw.emulator.amdgcn.occupancy import occupancy
from tinyhw.emulator.debug.amdgcn.code import BARRIERS, CALLS
from tinyhw.emulator.debug.amdgcn.exactness import SINKS, Exactness
from tinyhw.emulator.debug.parts import Facts, Vendor, Words
from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import EXEC_LO, VCC_LO

if TYPE_CHECKING:
  from tinyhw.arch import Arch
  from tinyhw.emulator.simt import Cohort, Group

BRANCHES: Final = frozenset(CONDITIONS)
JUMPS: Final = BRANCHES | CALLS | {"s_branch", "s_setpc_b64", "s_endpgm", "s_cbranch_i_fork", "s_rfe_b64"}
WAITS: Final = ("s_wait", "s_sleep")
TRANSCENDENTAL: Final = ("v_exp_", "v_log_", "v_rcp_", "v_rsq_", "v_sqrt_", "v_sin_", "v_cos_", "v_s_exp", "v_s_log",
                         "v_s_rcp", "v_s_rsq", "v_s_sqrt")
MATRIX: Final = ("wmma", "mfma", "smfmac")
_FAMILIES: Final = {"SMEM": "SMEM", "DS": "LDS", "FLAT": "VMEM", "MUBUF": "VMEM", "MTBUF": "VMEM", "MIMG": "VMEM",
                    "EXP": "export"}
UNITS: Final = ("VALU", "transcendental", "matrix", "SALU", "SMEM", "VMEM", "LDS", "branch", "barrier", "wait",
                "export")
WORDS: Final = Words("wave", "workgroup", "work-item", "LDS", "scratch", "LDS", 64, 128, {u: u for u in UNITS},
                     frozenset({"SALU", "SMEM", "branch", "wait", "barrier"}), SINKS)


def unit(i: Instruction) -> str:
  """The part of the chip that executes an instruction: "VALU", "transcendental", "matrix", "SALU", "branch", "wait",
  "barrier", "SMEM", "VMEM", "LDS" or "export"."""
  name = i.mnemonic
  if i.family in _FAMILIES: return _FAMILIES[i.family]
  if name in JUMPS: return "branch"
  if name in BARRIERS: return "barrier"
  if name.startswith(WAITS) or name in {"s_nop", "s_delay_alu", "s_clause"}: return "wait"
  if name.startswith("s_"): return "SALU"
  if any(m in name for m in MATRIX): return "matrix"
  return "transcendental" if any(h.strip().startswith(TRANSCENDENTAL) for h in name.split("::")) else "VALU"


class Amd(Vendor):
  """A dispatch of AMD's machine code."""

  words = WORDS
  barriers = frozenset({"s_barrier", "s_barrier_wait"})

  def __init__(self, arch: Arch, d: Any) -> None:
    self.arch, self.dispatched = arch, d
    self.sgprs = self.vgprs = self.agprs = 0

  def follower(self) -> Exactness: return Exactness()

  def unit(self, i: Instruction) -> str: return unit(i)

  def status(self, i: Instruction) -> str:
    names = [p.strip().replace("v_dual_", "v_") for p in i.mnemonic.split("::")]
    found = {coverage.status(n, i.isa) for n in names}
    return next((s for s in ("missing", "approximate", "exact") if s in found), "no effect")

  def branches(self, i: Instruction) -> bool: return i.mnemonic in BRANCHES

  def taken(self, group: Group, i: Instruction) -> tuple[int, int]: return _taken(group, i.mnemonic), 0

  def cohort(self, cohort: Cohort) -> None:
    self.vgprs, self.agprs = allocated(cohort.dispatch, len(cohort.runnable[0].v))
    # in pairs of 8 before gfx10, where every wave has all of them (LLVM AMDGPUUsage)
    granulated = SGPRS.of(cohort.dispatch.rsrc1)
    self.sgprs = 16 * (granulated // 2 + 1) if cohort.arch.accumulation else cohort.arch.sgprs

  def facts(self) -> Facts:
    d = self.dispatched
    registers = {"SGPRs": self.sgprs, "VGPRs": self.vgprs} | ({"AGPRs": self.agprs} if self.agprs else {})
    return Facts(self.arch.name, 32 if d.wave32 else 64, registers, d.lds_size, d.scratch_size,
                 str(occupancy(self.arch, d)))


def _taken(group: Group, mnemonic: str) -> int:
  """How many waves of a group a conditional branch takes along."""
  what, wanted = CONDITIONS[mnemonic]
  if what == "scc": value = np.asarray(group.scc)
  else:
    register = VCC_LO if what == "vcc" else EXEC_LO
    bits = group.s[register]
    value = np.asarray((bits | group.s[register + 1] if group.cohort.lanes == 64 else bits) != 0)
  if value.ndim == 0: return group.size if bool(value) is wanted else 0
  return int((value.reshape(-1) == wanted).sum()) * (group.size // value.size)
