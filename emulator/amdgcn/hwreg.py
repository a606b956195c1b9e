"""Hardware registers (s_getreg, s_setreg) and messages (s_sendmsg): what a wave learns of the chip, and tells it.

Sources: RDNA3 ISA manual, sections 3.4 and 3.5; RDNA4, section 3.4; CDNA3, sections 3.6 to 3.13. State that only
hardware has is modelled: `MODELLED` says how, and a run counts in `Stats.modelled` what a program asked for.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tinyhw.emulator.amdgcn.values import U32
from tinyhw.emulator.simt import Group
from tinyhw.isa.amdgcn import EXEC_LO, VCC_LO
from tinyhw.isa.amdgcn_names import NAMES

Value = Any
Reader = Callable[[Group], Value]
READERS: Final[dict[str, Reader]] = {}
NO_EXCEPTIONS: Final = "no exception is recorded: there is no trap handler"
PLACE: Final = "waves are dealt out in the order of their creation: a workgroup a CU, its waves over the SIMDs"
CLOCK: Final = "the clock counts the instructions that the dispatch has executed"
MODELLED: Final[dict[str, str]] = {
  "HW_REG_TRAPSTS": NO_EXCEPTIONS, "HW_REG_EXCP_FLAG_PRIV": NO_EXCEPTIONS, "HW_REG_EXCP_FLAG_USER": NO_EXCEPTIONS,
  "HW_REG_TRAP_CTRL": NO_EXCEPTIONS, "HW_REG_HW_ID": PLACE, "HW_REG_HW_ID1": PLACE, "HW_REG_HW_ID2": PLACE,
  "HW_REG_XCC_ID": "a GPU is one XCC, number 0", "HW_REG_SHADER_CYCLES": CLOCK, "HW_REG_SHADER_CYCLES_LO": CLOCK,
  "HW_REG_SHADER_CYCLES_HI": CLOCK, "MSG_RTN_GET_REALTIME": CLOCK, "s_memtime": CLOCK, "s_memrealtime": CLOCK,
  "MSG_RTN_GET_DOORBELL": "the queue's doorbell is number 0", "MSG_RTN_GET_DDID": "draws have no number",
  "MSG_RTN_GET_TMA": "there is no trap handler", "MSG_RTN_GET_TBA": "there is no trap handler",
  "MSG_RTN_GET_SE_AID_ID": "all shader engines are one", "MSG_DEALLOC_VGPRS": "registers stay until a wave ends",
  "s_alloc_vgpr": "there always are enough vector registers",
}
# Registers that user code may not write: the chip drops the value. Those that it may hold nothing here.
DROPPED: Final = frozenset((
  "HW_REG_STATUS", "HW_REG_STATE_PRIV", "HW_REG_EXCP_FLAG_PRIV", "HW_REG_TRAP_CTRL", "HW_REG_FLAT_SCR_LO",
  "HW_REG_FLAT_SCR_HI", "HW_REG_SCRATCH_BASE_LO", "HW_REG_SCRATCH_BASE_HI", "HW_REG_TRAPSTS", "HW_REG_EXCP_FLAG_USER"))


def name(isa: str, ident: int) -> str:
  """The register's name, or its number where the generation has none of that number."""
  return NAMES[isa].hwregs.get(ident, str(ident))


def note(group: Group, what: str) -> None:
  """Count a use of something that is modelled."""
  if what in MODELLED: group.cohort.stats.modelled[what] += group.size


def _reads(*names: str) -> Callable[[Reader], Reader]:
  def register(function: Reader) -> Reader:
    for n in names: READERS[n] = function
    return function
  return register


def column(group: Group, values: Value) -> Value:
  """A value for each wave as a register."""
  x = np.asarray(values, np.int64).reshape(-1).astype(U32)
  return x[0] if group.size == 1 or (x == x[0]).all() else x[:, None]


@_reads("HW_REG_MODE")
def _mode(group: Group) -> Value: return np.uint32(group.mode)


def _is_zero(group: Group, register: int) -> Value:
  bits = group.s[register]
  if group.cohort.lanes == 64: bits = bits | group.s[register + 1]
  return np.asarray(bits == 0).astype(U32)


@_reads("HW_REG_STATUS")
def _status(group: Group) -> Value:
  """SCC (bit 0, not on gfx12), EXECZ, VCCZ, IN_WG, VALID, and SCRATCH_EN (gfx12: WAVE64)."""
  cohort = group.cohort
  d, isa = cohort.dispatch, cohort.arch.isa
  several = d.block[0] * d.block[1] * d.block[2] > cohort.lanes
  top = (cohort.lanes == 64) << 29 if isa == "gfx12" else (group.scratch is not None) << (28 if isa == "gfx9" else 29)
  bits = _is_zero(group, EXEC_LO) << np.uint32(9) | _is_zero(group, VCC_LO) << np.uint32(10)
  if isa != "gfx12": bits = bits | np.asarray(group.scc).astype(U32)
  return bits | np.uint32(several << 11 | 1 << 16 | top)


@_reads("HW_REG_STATE_PRIV")
def _state_priv(group: Group) -> Value:
  return np.asarray(group.scc).astype(U32) << np.uint32(9) | np.uint32((group.scratch is not None) << 18)


@_reads("HW_REG_TBA_LO", "HW_REG_TBA_HI", "HW_REG_TMA_LO", "HW_REG_TMA_HI", "HW_REG_TRAPSTS", "HW_REG_EXCP_FLAG_PRIV",
        "HW_REG_EXCP_FLAG_USER", "HW_REG_TRAP_CTRL", "HW_REG_XCC_ID")
def _zero(group: Group) -> Value: return np.uint32(0)


@_reads("HW_REG_SHADER_CYCLES", "HW_REG_SHADER_CYCLES_LO")
def _cycles(group: Group) -> Value:
  return np.uint32(clock(group) & (0xFFFFF if group.cohort.arch.isa == "gfx11" else 0xFFFFFFFF))


@_reads("HW_REG_SHADER_CYCLES_HI")
def _cycles_high(group: Group) -> Value: return np.uint32(clock(group) >> 32)


def clock(group: Group) -> int:
  """The chip's time as a wave can read it; it grows while the wave runs."""
  return int(group.cohort.stats.steps + group.count)


@_reads("HW_REG_FLAT_SCR_LO", "HW_REG_SCRATCH_BASE_LO")
def _scratch_low(group: Group) -> Value: return _scratch(group, 0)


@_reads("HW_REG_FLAT_SCR_HI", "HW_REG_SCRATCH_BASE_HI")
def _scratch_high(group: Group) -> Value: return _scratch(group, 32)


def _scratch(group: Group, shift: int) -> Value:
  base = np.uint64(0) if group.scratch is None else group.scratch
  return (base >> np.uint64(shift)).astype(U32)


@_reads("HW_REG_SH_MEM_BASES")
def _bases(group: Group) -> Value:
  arch = group.cohort.arch
  return np.uint32(arch.private_aperture >> 48 | arch.shared_aperture >> 48 << 16)


@_reads("HW_REG_GPR_ALLOC")
def _registers(group: Group) -> Value:
  """VGPR_SIZE in granules less one (gfx9 also has the AGPRs' offset and SGPR_SIZE); registers start at 0."""
  arch, d = group.cohort.arch, group.cohort.dispatch
  if arch.isa == "gfx9":
    return np.uint32((((d.rsrc1 & 63) + 1) * 2 - 1) << 6 | ((d.rsrc3 & 63) + 1) << 12 | (d.rsrc1 >> 6 & 15) << 24)
  return np.uint32(-(-len(group.v) // arch.vgpr_granule[group.cohort.lanes]) - 1 << 12)


@_reads("HW_REG_LDS_ALLOC")
def _lds(group: Group) -> Value:
  """LDS_SIZE in granules, or on gfx9 in units of 64 dwords (CDNA3 ISA, table 22), in bits 12 to 20; the base is 0."""
  arch = group.cohort.arch
  return np.uint32(group.cohort.lds_size // (256 if arch.isa == "gfx9" else arch.lds_granule) << 12)


@_reads("HW_REG_IB_STS")
def _counters(group: Group) -> Value:
  """Outstanding operations: none, since memory operations complete before the next instruction."""
  return np.uint32(0)


def _place(group: Group) -> tuple[Value, Value, Value, Value]:
  """(slot on the SIMD, SIMD, CU, workgroup) of each wave."""
  arch, d = group.cohort.arch, group.cohort.dispatch
  a_group = -(-d.block[0] * d.block[1] * d.block[2] // group.cohort.lanes)
  waves = np.asarray(group.waves, np.int64)
  workgroup, wave = waves // a_group, waves % a_group
  simds = arch.simd_per_cu
  slot = wave // simds + workgroup // arch.cu_count * -(-a_group // simds)
  return slot % arch.waves_per_simd, wave % simds, workgroup % arch.cu_count, workgroup


@_reads("HW_REG_HW_ID")
def _hw_id(group: Group) -> Value:
  slot, simd, cu, workgroup = _place(group)
  return column(group, slot & 15 | (simd & 3) << 4 | (cu & 15) << 8 | (cu >> 4 & 7) << 13 | (workgroup & 15) << 16)


@_reads("HW_REG_HW_ID1")
def _hw_id1(group: Group) -> Value:
  slot, simd, cu, _ = _place(group)
  wgp = cu >> 1
  return column(group, slot & 31 | (simd << 1 | cu & 1) % 4 << 8 | wgp % 8 << 10 | (wgp // 8 & 1) << 16
                | (wgp // 16 & 7) << 18)


@_reads("HW_REG_HW_ID2")
def _hw_id2(group: Group) -> Value: return column(group, 1 << 8 | (_place(group)[3] & 31) << 16)


def message(isa: str, code: int) -> str:
  """The message's name without its operation, or its number."""
  names = NAMES[isa].messages
  return names.get(code & 0xFF) or names.get(code & 0xF) or str(code)


def returned(what: str) -> Callable[[Group], int] | None:
  """What the chip answers to a message that wants an answer; None for one that is not modelled."""
  if what == "MSG_RTN_GET_REALTIME": return clock
  return (lambda group: 0) if what in MODELLED and what.startswith("MSG_RTN_") else None
