"""Hardware registers (s_getreg, s_setreg) and messages (s_sendmsg): what a wave learns of the chip, and tells it.

Sources: RDNA3 ISA manual, sections 3.4 and 3.5; RDNA4, section 3.4; CDNA3, sections 3.6 to 3.13. State that only
hardware has is modelled: `MODELLED` says how, and a run counts in `Stats.modelled` what a program asked for.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from tinyhw.emulator.amdgcn.allocation import allocated
from tinyhw.emulator.amdgcn.fields import ACCUM_OFFSET, SGPRS, Field, composed, program_field
from tinyhw.emulator.amdgcn.modes import FP_DENORM, FP_ROUND
from tinyhw.emulator.amdgcn.registers import column
from tinyhw.emulator.simt import Group
from tinyhw.emulator.values.ops import U32
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import EXEC_LO, VCC_LO
from tinyhw.isa.amdgcn.names import NAMES

Reader = Callable[[Group], Value]
READERS: Final[dict[str, Reader]] = {}
MODE: Final = "HW_REG_MODE"
_SHORT: Final = {"s_round_mode": FP_ROUND, "s_denorm_mode": FP_DENORM}
NO_EXCEPTIONS: Final = "no exception is recorded: there is no trap handler"
PLACE: Final = "waves are dealt out in the order of their creation: a workgroup a CU, its waves over the SIMDs"
CLOCK: Final = "the clock counts the instructions that the dispatch has executed"
MODELLED: Final[dict[str, str]] = {
  "HW_REG_TRAPSTS": NO_EXCEPTIONS, "HW_REG_EXCP_FLAG_PRIV": NO_EXCEPTIONS, "HW_REG_EXCP_FLAG_USER": NO_EXCEPTIONS,
  "HW_REG_TRAP_CTRL": NO_EXCEPTIONS, "HW_REG_HW_ID": PLACE, "HW_REG_HW_ID1": PLACE, "HW_REG_HW_ID2": PLACE,
  "HW_REG_XCC_ID": "workgroups go to the XCCs in turn, from number 0 on", "HW_REG_SHADER_CYCLES": CLOCK,
  "HW_REG_SHADER_CYCLES_LO": CLOCK,
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


def operand(i: Instruction) -> tuple[str, Field]:
  """The register, and the field of it, that s_getreg, s_setreg or a short form of it names."""
  if i.mnemonic in _SHORT: return MODE, _SHORT[i.mnemonic]
  simm = i.fields["simm16"]
  low = simm >> 6 & 31
  return name(i.isa, simm & 63), Field(low, min((simm >> 11 & 31) + 1, 32 - low))


def note(group: Group, what: str) -> None:
  """Count a use of something that is modelled."""
  if what in MODELLED: group.cohort.stats.modelled[what] += group.size


def _reads(*names: str) -> Callable[[Reader], Reader]:
  def register(function: Reader) -> Reader:
    for n in names: READERS[n] = function
    return function
  return register


@_reads(MODE)
def _mode(group: Group) -> Value: return U32.type(group.mode)


def _is_zero(group: Group, register: int) -> Value:
  bits = group.s[register]
  if group.cohort.lanes == 64: bits = bits | group.s[register + 1]
  return np.asarray(bits == 0).astype(U32)


@_reads("HW_REG_STATUS")
def _status(group: Group) -> Value:
  cohort = group.cohort
  d = cohort.dispatch
  several = d.block[0] * d.block[1] * d.block[2] > cohort.lanes
  return composed(cohort.arch.isa, "STATUS", {
    "SCC": group.scc, "EXECZ": _is_zero(group, EXEC_LO), "VCCZ": _is_zero(group, VCC_LO), "IN_TG": several,
    "IN_WG": several, "VALID": 1, "SCRATCH_EN": group.scratch is not None, "WAVE64": cohort.lanes == 64,
    "PRIV": program_field(cohort.arch.isa, "RSRC1", "PRIV", d.rsrc1),
    "DVGPR_EN": program_field(cohort.arch.isa, "RSRC2", "DYNAMIC_VGPR", d.rsrc2)})


@_reads("HW_REG_STATE_PRIV")
def _state_priv(group: Group) -> Value:
  return composed(group.cohort.arch.isa, "STATE_PRIV", {"SCC": group.scc, "SCRATCH_EN": group.scratch is not None})


@_reads("HW_REG_TBA_LO", "HW_REG_TBA_HI", "HW_REG_TMA_LO", "HW_REG_TMA_HI", "HW_REG_TRAPSTS", "HW_REG_EXCP_FLAG_PRIV",
        "HW_REG_EXCP_FLAG_USER", "HW_REG_TRAP_CTRL")
def _zero(group: Group) -> Value: return U32.type(0)


@_reads("HW_REG_XCC_ID")
def _xcc_id(group: Group) -> Value:
  """The number of the XCC, in the low bits."""
  xccs = group.cohort.dispatch.xccs
  return U32.type(0) if xccs == 1 else column(_place(group)[3] % xccs).astype(np.uint32)


@_reads("HW_REG_SHADER_CYCLES")
def _cycles(group: Group) -> Value:
  return composed(group.cohort.arch.isa, "SHADER_CYCLES", {"CYCLES": clock(group)})


@_reads("HW_REG_SHADER_CYCLES_LO")
def _cycles_low(group: Group) -> Value: return U32.type(clock(group) & 0xFFFFFFFF)


@_reads("HW_REG_SHADER_CYCLES_HI")
def _cycles_high(group: Group) -> Value: return U32.type(clock(group) >> 32)


def clock(group: Group) -> int:
  """The chip's time as a wave can read it; it grows while the wave runs."""
  group.cohort.changes.count += 1  # a wave that waits for a time will go on
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
  return composed(arch.isa, "SH_MEM_BASES", {"PRIVATE_BASE": arch.private_aperture >> 48,
                                             "SHARED_BASE": arch.shared_aperture >> 48})


# What a unit of VGPR_SIZE (registers) and of LDS_SIZE (bytes) stands for where it is no granule (CDNA3 ISA, table 22).
_UNITS: Final = {"gfx9": (4, 256)}


@_reads("HW_REG_GPR_ALLOC")
def _registers(group: Group) -> Value:
  """Sizes in units less one; registers start at 0."""
  arch, d, lanes = group.cohort.arch, group.cohort.dispatch, group.cohort.lanes
  count = sum(allocated(d, len(group.v)))
  unit = _UNITS[arch.isa][0] if arch.isa in _UNITS else arch.vgpr_granule[lanes]
  return composed(arch.isa, "GPR_ALLOC", {"VGPR_SIZE": -(-count // unit) - 1, "SGPR_SIZE": SGPRS.of(d.rsrc1),
                                          "ACCV_OFFSET": ACCUM_OFFSET.of(d.rsrc3) + 1})


@_reads("HW_REG_LDS_ALLOC")
def _lds(group: Group) -> Value:
  arch = group.cohort.arch
  unit = _UNITS[arch.isa][1] if arch.isa in _UNITS else arch.lds_granule
  return composed(arch.isa, "LDS_ALLOC", {"LDS_SIZE": group.cohort.lds_size // unit})


@_reads("HW_REG_IB_STS")
def _counters(group: Group) -> Value:
  """Outstanding operations: none, since memory operations complete before the next instruction."""
  return U32.type(0)


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
  return _identity(group, "HW_ID", WAVE_ID=slot, SIMD_ID=simd, CU_ID=cu, SE_ID=cu >> 4, TG_ID=workgroup)


@_reads("HW_REG_HW_ID1")
def _hw_id1(group: Group) -> Value:
  slot, simd, cu, _ = _place(group)
  wgp = cu >> 1
  return _identity(group, "HW_ID1", WAVE_ID=slot, SIMD_ID=simd << 1 | cu & 1, WGP_ID=wgp % 8, SA_ID=wgp // 8,
                   SE_ID=wgp // 16)


@_reads("HW_REG_HW_ID2")
def _hw_id2(group: Group) -> Value: return _identity(group, "HW_ID2", ME_ID=np.ones(1, int), WG_ID=_place(group)[3])


def _identity(group: Group, register: str, **values: Value) -> Value:
  """A register from values of the waves [waves]."""
  return composed(group.cohort.arch.isa, register, {n: column(v) for n, v in values.items()})


def message(isa: str, code: int) -> str:
  """The message's name without its operation, or its number."""
  names = NAMES[isa].messages
  return names.get(code & 0xFF) or names.get(code & 0xF) or str(code)


def returned(what: str) -> Callable[[Group], int] | None:
  """What the chip answers to a message that wants an answer; None for one that is not modelled."""
  if what == "MSG_RTN_GET_REALTIME": return clock
  return (lambda group: 0) if what in MODELLED and what.startswith("MSG_RTN_") else None
