"""Instructions of gfx9 that change MODE, which code is bound for, so that they end a block (CDNA3 manual, 3.5, 6.6).

GPR_IDX_EN: vector registers are numbered relative to M0. VSKIP: vector instructions are skipped. CSP: how deep the
stack of s_cbranch_*_fork is, which lies in SGPRs from s0 on, four for each entry: EXEC, then the PC (4.6).
"""
from __future__ import annotations

import numpy as np

from tinyhw.emulator.amdgcn.binders import Ender, ends
from tinyhw.emulator.amdgcn.modes import CSP, GPR_IDX_EN, VSKIP
from tinyhw.emulator.amdgcn.registers import by_wave, column, exec_changed, reader, scalar64
from tinyhw.emulator.simt import Group, Next, Split
from tinyhw.emulator.values.ops import U32, U64
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import EXEC_LO, M0


def index_from(old: Value, index: Value) -> Value:
  """M0 with a new register index."""
  return old & np.uint32(0xFFFFFF00) | index & np.uint32(0xFF)


def index_of(old: Value, operands: int) -> Value:
  """M0 with the operands that the index counts for: sources 0 to 2, the destination."""
  return old & np.uint32(0xFFFF0FFF) | np.uint32((operands & 15) << 12)


@ends("s_set_gpr_idx_on", isa="gfx9")
def _index_on(i: Instruction, pc: int) -> Ender:
  read, operands, after = reader(i.operands["src0"], "u32"), i.operands["src1"].value, pc + i.size

  def on(group: Group) -> Next:
    group.s[M0] = index_of(index_from(group.s[M0], read(group)), operands)
    group.mode |= GPR_IDX_EN.mask
    return after
  return on


@ends("s_set_gpr_idx_off", isa="gfx9")
def _index_off(i: Instruction, pc: int) -> Ender:
  after = pc + i.size

  def off(group: Group) -> Next:
    group.mode &= ~GPR_IDX_EN.mask
    return after
  return off


def _go(group: Group, pcs: Value, modes: Value) -> Next:
  """On at an address with a MODE for each wave."""
  if (modes == modes[0]).all() and (pcs == pcs[0]).all():
    group.mode = int(modes[0])
    return int(pcs[0])
  return Split(pcs, modes)


@ends("s_setvskip", isa="gfx9")
def _skip(i: Instruction, pc: int) -> Ender:
  """s_setvskip: a bit of source 0, by number."""
  value, bit, after = reader(i.operands["src0"], "u32"), reader(i.operands["src1"], "u32"), pc + i.size

  def skip(group: Group) -> Next:
    on = by_wave(group, value(group) >> (bit(group) & np.uint32(31)) & np.uint32(1)).astype(np.int64)
    return _go(group, np.full(group.size, after), VSKIP.put(group.mode, on))
  return skip


@ends("s_cbranch_g_fork", "s_cbranch_i_fork", isa="gfx9")
def _fork(i: Instruction, pc: int) -> Ender:
  """s_cbranch_g_fork, s_cbranch_i_fork: where lanes go both ways, the fewer go first and the others are kept."""
  after = pc + i.size
  if i.mnemonic == "s_cbranch_g_fork":
    mask, there = reader(i.operands["src0"], "u64"), reader(i.operands["src1"], "u64")
  else:
    offset = i.fields["simm16"]
    target: Value = U64.type(after + 4 * (offset - (offset >> 15 << 16)))
    mask, there = scalar64(i.operands["sdst"].value), lambda group: target
  exec_mask = scalar64(EXEC_LO)

  def fork(group: Group) -> Next:
    s, top = group.s, CSP.of(group.mode) * 4
    active, chosen, to = (by_wave(group, f(group)) for f in (exec_mask, mask, there))
    passing, failing = chosen & active, ~chosen & active
    both = (passing != 0) & (failing != 0)
    fail_first = both & (np.bitwise_count(failing) < np.bitwise_count(passing))
    jumps = np.where(both, ~fail_first, failing == 0)
    now = np.where(both, np.where(fail_first, failing, passing), active)
    kept = np.where(fail_first, passing, failing), np.where(fail_first, to, np.uint64(after))
    for k, word in enumerate(part for x in kept for part in (x.astype(U32), (x >> np.uint64(32)).astype(U32))):
      s[top + k] = column(np.where(both, word, by_wave(group, s[top + k])))
    s[EXEC_LO], s[EXEC_LO + 1] = column(now.astype(U32)), column((now >> np.uint64(32)).astype(U32))
    exec_changed(group)
    deeper = CSP.put(group.mode, CSP.of(group.mode) + 1)
    return _go(group, np.where(jumps, to, np.uint64(after)).astype(np.int64), np.where(both, deeper, group.mode))
  return fork


@ends("s_cbranch_join", isa="gfx9")
def _join(i: Instruction, pc: int) -> Ender:
  """s_cbranch_join: on where the stack is as deep as before the fork, else to the lanes that were kept."""
  saved, after = reader(i.operands["src0"], "u32"), pc + i.size

  def join(group: Group) -> Next:
    s, depth = group.s, CSP.of(group.mode)
    done = by_wave(group, saved(group)) == depth
    top = (depth - 1 & CSP.limit) * 4
    for k in (0, 1): s[EXEC_LO + k] = column(np.where(done, by_wave(group, s[EXEC_LO + k]), by_wave(group, s[top + k])))
    exec_changed(group)
    back = by_wave(group, s[top + 2]).astype(U64) | by_wave(group, s[top + 3]).astype(U64) << np.uint64(32)
    shallower = CSP.put(group.mode, depth - 1)
    return _go(group, np.where(done, np.uint64(after), back).astype(np.int64), np.where(done, group.mode, shallower))
  return join
