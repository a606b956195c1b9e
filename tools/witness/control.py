"""Witnesses of control flow, MODE, and of what does nothing visible (RDNA3 ISA manual, sections 5 and 16.5)."""
from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from tinyhw.isa.amdgcn import Instruction
from tinyhw.tools.witness.state import State
from tinyhw.tools.witness.table import WITNESSES, Mode

wave = WITNESSES.wave
CODE: Final = 0x7F00_0000_0000
TARGETS: Final = (0, 1, 7, 100, 0xFFFF, 0x8000, 0x7FFF)


def simm(*values: int) -> Any:
  """The immediate of the k-th case."""
  return lambda e, k: e.fields.update(simm16=values[k % len(values)])


def target(i: Instruction) -> int:
  """Where a direct branch goes: dwords from the next instruction, with a sign."""
  offset = i.fields["simm16"]
  return CODE + 4 + 4 * (offset - 0x10000 if offset >> 15 else offset)


CONDITIONS: Final[dict[str, Callable[[State, int], bool]]] = {
  "s_cbranch_scc0": lambda s, w: not s.scc[w], "s_cbranch_scc1": lambda s, w: s.scc[w],
  "s_cbranch_vccz": lambda s, w: s.vcc(w) == 0, "s_cbranch_vccnz": lambda s, w: s.vcc(w) != 0,
  "s_cbranch_execz": lambda s, w: s.exec(w) == 0, "s_cbranch_execnz": lambda s, w: s.exec(w) != 0}


def flags(s: State, i: Instruction, rng: Random) -> None:
  """VCC and EXEC of zero in some waves, in one half of others."""
  for w in range(s.waves):
    for register in (106, 126):
      kind = rng.randrange(4)
      s.s[register][w] = 0 if kind in {0, 1} else 1 << rng.randrange(32)
      s.s[register + 1][w] = 0 if kind in {0, 2} or s.lanes == 32 else 1 << rng.randrange(32)


@wave(" ".join(CONDITIONS), prepare=flags, fields=simm(*TARGETS), forms=6, lanes=(32, 64), waves=6)
def conditional(s: State, i: Instruction) -> None:
  for w in range(s.waves):
    if CONDITIONS[i.mnemonic](s, w): s.jump[w] = target(i)


@wave("s_branch", fields=simm(*TARGETS), forms=6)
def branch(s: State, i: Instruction) -> None: s.jump = [target(i)] * s.waves


def after(i: Instruction) -> int: return CODE + i.size


@wave("s_call_b64", fields=simm(*TARGETS), forms=4)
def call(s: State, i: Instruction) -> None:
  for w in range(s.waves): s.set_pair(i.operands["sdst"].value, w, after(i))
  s.jump = [target(i)] * s.waves


@wave("s_getpc_b64")
def getpc(s: State, i: Instruction) -> None:
  for w in range(s.waves): s.set_pair(i.operands["sdst"].value, w, after(i))


def addresses(s: State, i: Instruction, rng: Random) -> None:
  for w in range(s.waves): s.set_pair(i.operands["src0"].value, w, CODE + 4 * rng.randrange(4096))


@wave("s_setpc_b64 s_swappc_b64", prepare=addresses, waves=3)
def setpc(s: State, i: Instruction) -> None:
  for w in range(s.waves):
    s.jump[w] = s.pair(i.operands["src0"].value, w)
    if "swap" in i.mnemonic: s.set_pair(i.operands["sdst"].value, w, after(i))


@wave("s_endpgm", fields=simm(0), forms=1)
def endpgm(s: State, i: Instruction) -> None: s.jump = [-1] * s.waves


# ---- MODE: hardware register 1

FIELDS: Final = ((0, 4), (4, 4), (0, 2), (2, 2), (8, 1), (0, 32))


def mode_fields(e: Any, k: int) -> None:
  at, bits = FIELDS[k % len(FIELDS)]
  if e.row.mnemonic in {"s_setreg_b32", "s_setreg_imm32_b32"} and bits == 32: at, bits = 0, 8
  e.fields["simm16"] = 1 | at << 6 | bits - 1 << 11
  if "imm" in e.row.fields: e.fields["imm"] = e.rng.getrandbits(32)


def with_bits(value: int, at: int, bits: int, new: int) -> int:
  mask = (1 << bits) - 1
  return value & ~(mask << at) | (new & mask) << at


@wave("s_setreg_b32 s_setreg_imm32_b32", fields=mode_fields, forms=6, waves=1)
def setreg(s: State, i: Instruction) -> None:
  code = i.fields["simm16"]
  new = i.fields["imm"] if "imm" in i.fields else s.s[i.operands["sdst"].value][0]
  s.mode = Mode(with_bits(s.mode.value, code >> 6 & 31, (code >> 11 & 31) + 1, new))


@wave("s_round_mode s_denorm_mode", fields=simm(0, 5, 10, 15), waves=1)
def short_forms(s: State, i: Instruction) -> None:
  s.mode = Mode(with_bits(s.mode.value, 0 if "round" in i.mnemonic else 4, 4, i.fields["simm16"]))


@wave("s_getreg_b32", fields=mode_fields, forms=6)
def getreg(s: State, i: Instruction) -> None:
  code = i.fields["simm16"]
  for w in range(s.waves):
    s.s[i.operands["sdst"].value][w] = s.mode.value >> (code >> 6 & 31) & (1 << (code >> 11 & 31) + 1) - 1


# ---- nothing that a program can see

NOTHING: Final = """s_nop s_waitcnt s_waitcnt_vmcnt s_waitcnt_vscnt s_waitcnt_expcnt s_waitcnt_lgkmcnt s_waitcnt_depctr
s_clause s_delay_alu s_set_inst_prefetch_distance s_setprio s_incperflevel s_decperflevel s_ttracedata s_ttracedata_imm
s_wakeup s_icache_inv s_version s_wait_idle s_wait_event s_dcache_inv s_gl1_inv buffer_gl0_inv buffer_gl1_inv v_nop
v_pipeflush ds_nop s_singleuse_vdst s_wait_alu s_wait_bvhcnt s_wait_dscnt s_wait_expcnt s_wait_kmcnt s_wait_loadcnt
s_wait_loadcnt_dscnt s_wait_samplecnt s_wait_storecnt s_wait_storecnt_dscnt global_inv global_wb global_wbinv
s_dcache_wb s_dcache_inv_vol s_dcache_wb_vol buffer_wbinvl1 buffer_wbinvl1_vol buffer_wbl2 buffer_inv s_sleep
s_barrier"""
wave("s_barrier_wait", "no effect", fields=simm(0xFFFF), forms=1, waves=1)(lambda s, i: None)


@wave(" ".join(NOTHING.split()), "no effect", forms=2, waves=1)
def nothing(s: State, i: Instruction) -> None: pass
