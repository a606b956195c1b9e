"""Control flow and wave state: branches, calls, barriers, messages, MODE and hardware registers.

An instruction here either ends a block, by a function of a group that says where it goes on, or is a plain step.
"""
from __future__ import annotations

from typing import Final

import numpy as np

from tinyhw.core.errors import MachineFault
from tinyhw.core.table import Handlers
from tinyhw.emulator.amdgcn import hwreg
from tinyhw.emulator.amdgcn.binders import Ender, binds, ends, unsupported
from tinyhw.emulator.amdgcn.constants import constant
from tinyhw.emulator.amdgcn.fields import Field
from tinyhw.emulator.amdgcn.registers import by_wave, column, reader, write_scalar32, write_scalar64
from tinyhw.emulator.simt import Barrier, End, Group, Next, Split, Step, Wait, Yield
from tinyhw.emulator.values.ops import I64, U32, U64
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import EXEC_LO, M0, VCC_LO

CALLS: Final = frozenset({"s_swappc_b64", "s_call_b64"})

# Instructions that are accepted and change nothing that is modelled.
IGNORED: Final[Handlers[str]] = Handlers("instruction")
IGNORED.ignores("s_nop", "s_delay_alu", "s_clause", "s_set_inst_prefetch_distance", "v_nop", "v_pipeflush",
                "s_singleuse_vdst", "s_wait_idle", "s_wait_event", why="only timing")
IGNORED.ignores("s_waitcnt", "s_waitcnt_vmcnt", "s_waitcnt_vscnt", "s_waitcnt_expcnt", "s_waitcnt_lgkmcnt",
                "s_waitcnt_depctr", why="memory operations complete in order, before the next instruction")
IGNORED.ignores("s_wait_loadcnt", "s_wait_storecnt", "s_wait_samplecnt", "s_wait_bvhcnt", "s_wait_expcnt",
                "s_wait_dscnt", "s_wait_kmcnt", "s_wait_loadcnt_dscnt", "s_wait_storecnt_dscnt", "s_wait_alu",
                why="memory operations complete in order, before the next instruction")
IGNORED.ignores("s_prefetch_inst", "s_prefetch_inst_pc_rel", "s_prefetch_data", "s_prefetch_data_pc_rel",
                "s_buffer_prefetch_data", "global_inv", "global_wb", "global_wbinv", why="no caches are modelled")
IGNORED.ignores("s_setprio", "s_incperflevel", "s_decperflevel", "s_ttracedata", "s_ttracedata_imm", "s_wakeup",
                why="priorities, performance counters and traces are not modelled")
IGNORED.ignores("s_version", why="a marker")
IGNORED.ignores("v_clrexcp", why="floating-point exceptions are not modelled")
IGNORED.ignores("s_atc_probe", "s_atc_probe_buffer", why="asks for a translation ahead of time; the answer is no one's")

CONDITIONS: Final[dict[str, tuple[str, bool]]] = {
  "s_cbranch_scc0": ("scc", False), "s_cbranch_scc1": ("scc", True), "s_cbranch_vccz": ("vcc", False),
  "s_cbranch_vccnz": ("vcc", True), "s_cbranch_execz": ("exec", False), "s_cbranch_execnz": ("exec", True),
}
CONDITIONAL: Final = frozenset(CONDITIONS)
DIRECT: Final = CONDITIONAL | {"s_branch", "s_call_b64"}


def target(i: Instruction, pc: int) -> int:
  """Address that a direct branch goes to."""
  offset = i.fields["simm16"]
  return pc + 4 + 4 * (offset - (offset >> 15 << 16))


def ender(i: Instruction, pc: int) -> Ender | None:
  """The end of a block, or None for an instruction that goes on to the next."""
  made = ends.get(i.mnemonic, i.table)
  return None if made is None else made(i, pc)


@ends("s_endpgm", "s_endpgm_saved")
def _end(i: Instruction, pc: int) -> Ender: return lambda group: End()


@ends("s_branch")
def _jump(i: Instruction, pc: int) -> Ender:
  there = target(i, pc)
  return lambda group: there


@ends("s_call_b64")
def _call(i: Instruction, pc: int) -> Ender:
  link, there, after = write_scalar64(i.operands["sdst"].value), target(i, pc), pc + i.size

  def call(group: Group) -> Next:
    link(group, U64.type(after))
    return there
  return call


@ends("s_setpc_b64", "s_swappc_b64")
def _jump_to(i: Instruction, pc: int) -> Ender:
  where, after = reader(i.operands["src0"], "u64"), pc + i.size
  keep = write_scalar64(i.operands["sdst"].value) if i.mnemonic == "s_swappc_b64" else None

  def jump(group: Group) -> Next:
    pcs = where(group)
    if keep is not None: keep(group, U64.type(after))
    return _go(group, pcs)
  return jump


@ends("s_sleep", "s_sleep_var")
def _sleep(i: Instruction, pc: int) -> Ender:
  after = pc + i.size
  return lambda group: Yield(after)


@ends("s_icache_inv")
def _invalidate(i: Instruction, pc: int) -> Ender:
  """Only now do waves see code that the program has changed: until here it was in the instruction cache."""
  after = pc + i.size

  def invalidate(group: Group) -> Next:
    if group.cohort.view is not None: group.cohort.view.invalidate(group, i.mnemonic)
    group.cohort.program.refresh()
    return after
  return invalidate


# ---- barriers

@ends("s_barrier")
def _barrier(i: Instruction, pc: int) -> Ender:
  after = pc + i.size
  return lambda group: Barrier(after)


def barrier_id(i: Instruction, pc: int) -> int:
  """Number of a barrier: -1 the workgroup's, -2 the trap handler's, 0 none; the chip has no others."""
  if "simm16" in i.fields: number = i.fields["simm16"] - (i.fields["simm16"] >> 15 << 16)
  elif "src0" in i.operands and i.operands["src0"].kind in {"const", "lit"}:
    number = int(constant(i.operands["src0"], "i32"))
  else: raise unsupported(i, pc, "a barrier named by a register belongs to other chips")
  if number not in {0, -1, -2}: raise unsupported(i, pc, f"barrier {number} belongs to other chips")
  return number


@ends("s_barrier_wait")
def _barrier_wait(i: Instruction, pc: int) -> Ender:
  """Only the workgroup's barrier makes a wave wait; the trap handler's is not its business."""
  after = pc + i.size
  if barrier_id(i, pc) != -1: return lambda group: after

  def wait(group: Group) -> Next:
    cohort = group.cohort
    if cohort.passed is not None and cohort.passed[group.waves - cohort.first].all():
      cohort.take_passed(group.waves)
      return after
    return after if cohort.waves_a_group == 1 else Wait(after)
  return wait


@binds("s_barrier_signal", "s_barrier_signal_isfirst")
def _barrier_signal(i: Instruction, pc: int, mode: int) -> Step:
  """s_barrier_signal; s_barrier_signal_isfirst says in SCC which wave of a workgroup is the first (RDNA4 ISA, 5.6)."""
  counts, asks = barrier_id(i, pc) == -1, i.mnemonic.endswith("isfirst")

  def signal(group: Group) -> None:
    first = group.cohort.signal(group) if counts else np.zeros(group.size, bool)
    if asks: group.scc = column(first)
  return signal


@binds("s_get_barrier_state")
def _barrier_state(i: Instruction, pc: int, mode: int) -> Step:
  """{signals, waves that must signal, valid} of the workgroup's barrier; others are not valid."""
  write, known = write_scalar32(i.operands["sdst"].value), barrier_id(i, pc) == -1

  def state(group: Group) -> None:
    cohort = group.cohort
    value = cohort.arrived[group.workgroups] << 16 | cohort.live[group.workgroups] << 4 | 1
    if not known: value = value * 0
    write(group, column(value.astype(np.uint32)))
  return state


# ---- branches

def _go(group: Group, pcs: Value) -> Next:
  if pcs.ndim == 0: return int(pcs)
  flat = pcs.reshape(-1).astype(np.int64)
  return int(flat[0]) if (flat == flat[0]).all() else Split(flat)


@ends(*CONDITIONS)
def _branch(i: Instruction, pc: int) -> Ender:
  what, wanted = CONDITIONS[i.mnemonic]
  there, after = target(i, pc), pc + i.size
  if what == "scc":
    def by_scc(group: Group) -> Next:
      scc = group.scc
      if scc.ndim == 0: return there if bool(scc) is wanted else after
      return _either(group, np.asarray(scc) == wanted, there, after)
    return by_scc
  register = VCC_LO if what == "vcc" else EXEC_LO

  def by_mask(group: Group) -> Next:
    value = group.s[register]
    if group.cohort.lanes == 64: value = value | group.s[register + 1]
    if value.ndim == 0: return there if bool(value) is wanted else after
    return _either(group, (value != 0) == wanted, there, after)
  return by_mask


def _either(group: Group, taken: Value, there: int, after: int) -> Next:
  flat = taken.reshape(-1)
  if flat.all(): return there
  if not flat.any(): return after
  return Split(np.where(flat, np.int64(there), np.int64(after)))


# ---- MODE and hardware registers

def mode_change(i: Instruction) -> tuple[Field, int] | None:
  """(field, value) of a change of MODE that is known from the instruction alone, else None."""
  register, field = hwreg.operand(i)
  if register != hwreg.MODE or i.mnemonic == "s_setreg_b32": return None
  return field, i.fields["imm"] if "imm" in i.fields else i.fields["simm16"]


@ends("s_setreg_b32", "s_setreg_imm32_b32", "s_round_mode", "s_denorm_mode")
def _set_mode(i: Instruction, pc: int) -> Ender:
  """s_setreg and its short forms; MODE is part of what code is bound with, so that this ends a block."""
  after = pc + i.size
  register, field = hwreg.operand(i)
  if register != hwreg.MODE:
    if register not in hwreg.DROPPED: raise unsupported(i, pc, f"a write to hardware register {register}")

    def dropped(group: Group) -> Next:
      hwreg.note(group, register)
      return after
    return dropped
  known = mode_change(i)
  if known is not None:
    value = known[1]

    def fixed(group: Group) -> Next:
      group.mode = field.put(group.mode, value)
      return after
    return fixed
  read = reader(i.operands["sdst"], "u32")

  def from_register(group: Group) -> Next:
    values = np.asarray(read(group)).reshape(-1)
    if (values == values[0]).all():
      group.mode = field.put(group.mode, int(values[0]))
      return after
    return Split(np.full(group.size, after, np.int64), field.put(group.mode, values.astype(I64)))
  return from_register


@binds("s_getpc_b64")
def _getpc(i: Instruction, pc: int, mode: int) -> Step:
  write = write_scalar64(i.operands["sdst"].value)
  return lambda group: write(group, U64.type(pc + i.size))


@binds("s_getreg_b32")
def _getreg(i: Instruction, pc: int, mode: int) -> Step:
  register, field = hwreg.operand(i)
  read, write = hwreg.READERS.get(register), write_scalar32(i.operands["sdst"].value)
  if read is None: raise unsupported(i, pc, f"hardware register {register}")

  def get(group: Group) -> None:
    hwreg.note(group, register)
    write(group, field.of(read(group)))
  return get


# ---- messages

@binds("s_sendmsg")
def _send(i: Instruction, pc: int, mode: int) -> Step:
  """s_sendmsg: an interrupt with what M0 holds, or a message that changes nothing."""
  what = hwreg.message(i.isa, i.fields["simm16"])
  if what == "MSG_INTERRUPT":
    def interrupt(group: Group) -> None:
      raised = group.cohort.dispatch.interrupt
      if raised is None: raise MachineFault("an interrupt that nobody takes (s_sendmsg MSG_INTERRUPT)")
      for m0 in by_wave(group, group.s[M0]): raised(int(m0) & 0xFFFFFF)
    return interrupt
  if what not in hwreg.MODELLED: raise unsupported(i, pc, f"message {what}")
  return lambda group: hwreg.note(group, what)


@binds("s_sendmsg_rtn_b32", "s_sendmsg_rtn_b64")
def _ask(i: Instruction, pc: int, mode: int) -> Step:
  """s_sendmsg_rtn: the message that src0 names, and its answer."""
  what = hwreg.message(i.isa, i.fields["src0"])
  answer = hwreg.returned(what)
  if answer is None: raise unsupported(i, pc, f"message {what}")
  wide = i.mnemonic.endswith("b64")
  write = (write_scalar64 if wide else write_scalar32)(i.operands["sdst"].value)
  kind = (U64 if wide else U32).type

  def ask(group: Group) -> None:
    hwreg.note(group, what)
    write(group, kind(answer(group) & ((1 << 64) - 1 if wide else 0xFFFFFFFF)))
  return ask
