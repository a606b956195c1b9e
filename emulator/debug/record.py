"""An observer that counts what a run does, by PC: executions, lanes, memory traffic, conflicts, branches."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.emulator.amdgcn import coverage
from tinyhw.emulator.amdgcn.allocation import allocated
from tinyhw.emulator.amdgcn.control import CONDITIONS
from tinyhw.emulator.amdgcn.fields import SGPRS
from tinyhw.emulator.debug import traffic
from tinyhw.emulator.debug.code import BARRIERS, CALLS
from tinyhw.emulator.debug.exactness import Exactness
from tinyhw.emulator.observe import Access, Observer
from tinyhw.isa.amdgcn import EXEC_LO, VCC_LO, Instruction

if TYPE_CHECKING:
  from tinyhw.arch import Arch
  from tinyhw.core.memory import AddressSpace
  from tinyhw.emulator.simt import Cohort, Group, Stats

BRANCHES: Final = frozenset(CONDITIONS)
JUMPS: Final = BRANCHES | CALLS | {"s_branch", "s_setpc_b64", "s_endpgm", "s_cbranch_i_fork", "s_rfe_b64"}
WAITS: Final = ("s_wait", "s_sleep")
TRANSCENDENTAL: Final = ("v_exp_", "v_log_", "v_rcp_", "v_rsq_", "v_sqrt_", "v_sin_", "v_cos_", "v_s_exp", "v_s_log",
                         "v_s_rcp", "v_s_rsq", "v_s_sqrt")
MATRIX: Final = ("wmma", "mfma", "smfmac")
SCALAR: Final = frozenset({"SALU", "SMEM", "branch", "wait", "barrier"})  # units that no lane takes part in
_FAMILIES: Final = {"SMEM": "SMEM", "DS": "LDS", "FLAT": "VMEM", "MUBUF": "VMEM", "MTBUF": "VMEM", "MIMG": "VMEM",
                    "EXP": "export"}


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


@dataclass
class Traffic:
  """Accesses of one kind by one instruction. Counts are summed over waves; bytes are those of active lanes."""
  segment: str
  kind: str
  waves: int = 0
  lanes: int = 0
  bytes: int = 0
  sectors: int = 0  # 64 bytes, of memory
  lines: int = 0  # 128 bytes
  useful: int = 0  # bytes of sectors that lanes asked for, at most the sectors' own
  cycles: int = 0  # of LDS
  ideal: int = 0
  repeats: int = 0  # lanes of an atomic at an address that another lane of the wave has too

  @property
  def efficiency(self) -> float | None:
    """Part of the moved sectors' bytes that lanes asked for, 0 to 1; None where there are no sectors."""
    return self.useful / (self.sectors * traffic.SECTOR) if self.sectors else None


@dataclass
class Counts:
  """What happened at one PC. `waves` counts executions by waves, `lanes` their active lanes."""
  instruction: Instruction
  waves: int = 0
  steps: int = 0
  lanes: int = 0
  idle: int = 0  # executions with EXEC 0
  taken: int = 0  # of a conditional branch
  splits: int = 0  # executions that left some, and not all, of the active lanes active
  traffic: dict[tuple[str, str], Traffic] = field(default_factory=dict)
  status: str = "exact"


class Recorder(Observer):
  """Give it to a dispatch as the observer; afterwards `emulator.debug.report.Report.of` reads it."""

  def __init__(self, exactness: bool = True) -> None:
    self.counts: dict[int, Counts] = {}
    self.exactness = Exactness() if exactness else None
    self.space: AddressSpace | None = None
    self.arch: Arch | None = None
    self.dispatched: Any = None
    self.stats: Stats | None = None
    self.sgprs = self.vgprs = self.agprs = 0
    self._exec: Any = None
    self._barriers: list[Callable[..., Any]] = []
    self.releases = 0  # how often all waves of a workgroup met at a barrier

  def dispatch(self, space: AddressSpace, arch: Arch, d: Any) -> None:
    self.space, self.arch, self.dispatched = space, arch, d

  def cohort(self, cohort: Cohort) -> None:
    self.vgprs, self.agprs = allocated(cohort.dispatch, len(cohort.runnable[0].v))
    # in pairs of 8 before gfx10, where every wave has all of them (LLVM AMDGPUUsage)
    granulated = SGPRS.of(cohort.dispatch.rsrc1)
    self.sgprs = 16 * (granulated // 2 + 1) if cohort.arch.accumulation else cohort.arch.sgprs
    if self.exactness is not None: self.exactness.cohort(cohort)

  def before(self, group: Group, pc: int, instruction: Any) -> None:
    c = self.counts.get(pc)
    if c is None: c = self.counts[pc] = self._first(instruction)
    size = group.size
    c.waves += size
    c.steps += 1
    mask = group.mask
    if mask is None: c.lanes += size * group.cohort.lanes
    else:
      active = mask.sum(axis=1)
      factor = size // len(active)
      c.lanes += int(active.sum()) * factor
      if not active.all(): c.idle += int((active == 0).sum()) * factor
    if instruction.mnemonic in BRANCHES: c.taken += _taken(group, instruction.mnemonic)
    self._exec = mask
    if self.exactness is not None: self.exactness.before(group, pc, instruction)

  def _first(self, i: Instruction) -> Counts:
    names = [p.strip().replace("v_dual_", "v_") for p in i.mnemonic.split("::")]
    found = {coverage.status(n, i.isa) for n in names}
    return Counts(i, status=next((s for s in ("missing", "approximate", "exact") if s in found), "no effect"))

  def after(self, group: Group, pc: int, instruction: Any) -> None:
    if group.mask is not self._exec: self.counts[pc].splits += _splits(group, self._exec)
    if self.exactness is not None: self.exactness.after(group, pc, instruction)

  def access(self, group: Group, pc: int, instruction: Any, access: Access) -> None:
    c = self.counts[pc]
    key = access.segment, access.kind
    t = c.traffic.get(key)
    if t is None: t = c.traffic[key] = Traffic(*key)
    active, addresses, width = access.active, access.addresses, access.width
    lanes = active.sum(axis=1)
    on = int(lanes.sum())
    t.waves += int((lanes > 0).sum())
    t.lanes += on
    t.bytes += on * width
    if on and access.segment == "lds":
      cycles, ideal = traffic.lds_cycles(addresses, active, width, access.kind == "atomic")
      t.cycles += int(cycles.sum())
      t.ideal += int(ideal.sum())
    elif on and access.segment not in {"scratch", "gds"}:
      sectors = traffic.distinct(addresses, active, width, traffic.SECTOR)
      t.sectors += int(sectors.sum())
      t.lines += int(traffic.distinct(addresses, active, width, traffic.LINE).sum())
      t.useful += int(np.minimum(lanes * width, sectors * traffic.SECTOR).sum())
    if on and access.kind == "atomic": t.repeats += on - int(traffic.distinct(addresses, active, 1, width).sum())
    if self.exactness is not None: self.exactness.access(group, pc, instruction, access)

  def released(self, cohort: Cohort, workgroups: Any) -> None: self.releases += len(workgroups)

  def end(self, stats: Stats) -> None: self.stats = stats


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


def _splits(group: Group, before: Any) -> int:
  """Waves that lost some of their active lanes and kept some."""
  if group.mask is None: return 0
  now = np.broadcast_to(group.mask, (group.size, group.cohort.lanes))
  old = np.ones_like(now) if before is None else np.broadcast_to(before, now.shape)
  lost = (old & ~now).any(axis=1)
  return int((lost & now.any(axis=1)).sum())
