"""Witnesses of control flow, MODE, and of what does nothing visible (RDNA3 ISA manual, sections 5 and 16.5)."""
from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import EXEC_LO, M0
from tinyhw.tools.witness.state import CODE, State
from tinyhw.tools.witness.table import WITNESSES, Mode

wave = WITNESSES.wave
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


# ---- gfx9: registers numbered by M0, skipped vector instructions (CDNA3 ISA manual, sections 6.6 and 12.4)

GPR_IDX_EN: Final = 27  # bits of MODE (section 3.5)
VSKIP: Final = 28
CSP: Final = 29


def both_ways(bit: int) -> Any:
  """MODE's bit clear, then set."""
  def fields(e: Any, k: int) -> None:
    e.mode = 0x3F0 | (k & 1) << bit
    if "src1" in e.row.fields and "idx_on" in e.row.mnemonic: e.fields["src1"] = e.rng.randrange(16)
    if "simm16" in e.row.fields: e.fields["simm16"] = e.rng.randrange(16)
  return fields


def indices(s: State, i: Instruction, rng: Random) -> None:
  """Random M0."""
  s.s[M0] = [rng.getrandbits(32) for _ in range(s.waves)]


@wave("s_set_gpr_idx_on s_set_gpr_idx_off s_set_gpr_idx_mode s_set_gpr_idx_idx", prepare=indices,
      fields=both_ways(GPR_IDX_EN), waves=3, isa="gfx9")
def gpr_index(s: State, i: Instruction) -> None:
  """M0[7:0] is the index, M0[15:12] the operands; MODE says whether both count."""
  how = i.mnemonic.rsplit("_", 1)[-1]
  for w in range(s.waves):
    m0 = s.m0(w)
    if how in {"on", "idx"}: m0 = m0 & ~0xFF | s.bits(i.operands["src0"], 32, w, 0) & 0xFF
    if how == "on": m0 = m0 & ~0xF000 | (i.fields["src1"] & 15) << 12
    if how == "mode": m0 = m0 & ~0xF000 | (i.fields["simm16"] & 15) << 12
    s.s[M0][w] = m0
  if how in {"on", "off"}: s.mode = Mode(with_bits(s.mode.value, GPR_IDX_EN, 1, int(how == "on")))


@wave("s_setvskip", fields=both_ways(VSKIP), waves=1, isa="gfx9", forms=8)
def setvskip(s: State, i: Instruction) -> None:
  chosen = s.bits(i.operands["src1"], 32, 0, 0) & 31
  s.mode = Mode(with_bits(s.mode.value, VSKIP, 1, s.bits(i.operands["src0"], 32, 0, 0) >> chosen & 1))


# ---- gfx9: forks (CDNA3 ISA manual, S_CBRANCH_G_FORK, S_CBRANCH_I_FORK, S_CBRANCH_JOIN)

def stack(e: Any, k: int) -> None:
  """A conditional branch stack of some depth; its SGPRs are the first ones, operands stand above."""
  e.mode = 0x3F0 | k % 6 << CSP
  e.sgpr = 40
  if "simm16" in e.row.fields: e.fields["simm16"] = TARGETS[k % len(TARGETS)]


def masks(s: State, i: Instruction, rng: Random) -> None:
  """Masks that pass all, none, few or most of EXEC; addresses of code; saved depths that are the present one or not."""
  o = i.operands.get("src0") or i.operands["sdst"]
  for w in range(s.waves):
    active, some = s.exec(w), rng.getrandbits(64)
    if "join" in i.mnemonic: s.s[o.value][w] = s.mode.value >> CSP & 7 if rng.random() < 0.4 else rng.randrange(6)
    else: s.set_pair(o.value, w, rng.choice((active, ~active, some & rng.getrandbits(64), some | rng.getrandbits(64))))
    if "src1" in i.operands: s.set_pair(i.operands["src1"].value, w, CODE + 4 * rng.randrange(1000))
    for k in range(8): s.set_pair(4 * k + 2, w, CODE + 4 * rng.randrange(1000))


@wave("s_cbranch_g_fork s_cbranch_i_fork", prepare=masks, fields=stack, waves=1, forms=24, isa="gfx9")
def fork(s: State, i: Instruction) -> None:
  """The side with fewer lanes goes first; the other one's EXEC and PC are pushed, EXEC below."""
  condition = s.pair((i.operands.get("src0") or i.operands["sdst"]).value, 0)
  there = s.pair(i.operands["src1"].value, 0) if "src1" in i.operands else target(i)
  active = s.exec(0)
  yes, no = condition & active, ~condition & active
  if yes == active: s.jump[0] = there
  elif no != active:
    first = no.bit_count() >= yes.bit_count()  # the taken side is done first
    depth = s.mode.value >> CSP
    s.set_pair(4 * depth, 0, no if first else yes)
    s.set_pair(4 * depth + 2, 0, after(i) if first else there)
    s.set_pair(EXEC_LO, 0, yes if first else no)
    s.mode = Mode(with_bits(s.mode.value, CSP, 3, depth + 1))
    if first: s.jump[0] = there


@wave("s_cbranch_join", prepare=masks, fields=stack, waves=1, forms=12, isa="gfx9")
def join(s: State, i: Instruction) -> None:
  """The other side of the fork, unless the depth is the saved one."""
  depth = s.mode.value >> CSP & 7
  if depth == s.s[i.operands["src0"].value][0]: return
  s.mode = Mode(with_bits(s.mode.value, CSP, 3, depth - 1))
  s.jump[0] = s.pair(4 * (depth - 1 & 7) + 2, 0)
  s.set_pair(EXEC_LO, 0, s.pair(4 * (depth - 1 & 7), 0))


# ---- nothing that a program can see

NOTHING: Final = """s_nop s_waitcnt s_waitcnt_vmcnt s_waitcnt_vscnt s_waitcnt_expcnt s_waitcnt_lgkmcnt s_waitcnt_depctr
s_clause s_delay_alu s_set_inst_prefetch_distance s_setprio s_incperflevel s_decperflevel s_ttracedata s_ttracedata_imm
s_wakeup s_icache_inv s_version s_wait_idle s_wait_event s_dcache_inv s_gl1_inv buffer_gl0_inv buffer_gl1_inv v_nop
v_pipeflush ds_nop s_singleuse_vdst s_wait_alu s_wait_bvhcnt s_wait_dscnt s_wait_expcnt s_wait_kmcnt s_wait_loadcnt
s_wait_loadcnt_dscnt s_wait_samplecnt s_wait_storecnt s_wait_storecnt_dscnt global_inv global_wb global_wbinv
s_dcache_wb s_dcache_inv_vol s_dcache_wb_vol buffer_wbinvl1 buffer_wbinvl1_vol buffer_wbl2 buffer_inv s_sleep
s_barrier s_dcache_discard s_dcache_discard_x2 s_prefetch_data s_prefetch_data_pc_rel s_prefetch_inst
s_prefetch_inst_pc_rel s_buffer_prefetch_data v_clrexcp s_sleep_var"""
wave("s_barrier_wait", "no effect", fields=simm(0xFFFF), forms=1, waves=1)(lambda s, i: None)


@wave(" ".join(NOTHING.split()), "no effect", forms=2, waves=1)
def nothing(s: State, i: Instruction) -> None: pass
