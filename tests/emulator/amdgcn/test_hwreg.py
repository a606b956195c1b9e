"""Hardware registers and messages: what waves read of the chip, which writes are dropped, and interrupts."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.emulator.gpu import Gpu
from tinyhw.core.errors import MachineFault, Unsupported
from tinyhw.emulator.amdgcn import Dispatch, DispatchStats, dispatch
from tinyhw.isa.amdgcn import table
from tinyhw.isa.amdgcn.asm import assemble

# the user SGPRs s[0:1] hold the address of the results
STORE = {"gfx1100": "v_lshlrev_b32 v1, 2, v0\nv_mov_b32 v2, s4\nglobal_store_b32 v1, v2, s[0:1]\ns_endpgm",
         "gfx1201": "v_lshlrev_b32 v1, 2, v0\nv_mov_b32 v2, s4\nglobal_store_b32 v1, v2, s[0:1]\ns_endpgm",
         "gfx942": "v_lshlrev_b32 v1, 2, v0\nv_mov_b32 v2, s4\nglobal_store_dword v1, v2, s[0:1]\ns_endpgm"}
MODE = 0xC0 << 12


class Bench(Gpu):
  def __init__(self, cpu: str) -> None:
    super().__init__(1 << 22, cpu)
    self.out = self.put(np.zeros(4096, np.uint32))

  def launch_lines(self, lines: Sequence[str], threads: int = 64, groups: int = 1, **fields: Any) -> DispatchStats:
    isa = table(self.arch.isa)
    text = [*lines, *STORE[self.arch.name].split("\n")]
    entry = self.put(np.frombuffer(b"".join(assemble(t, isa) for t in text), np.uint8))
    users = self.out & 0xFFFFFFFF, self.out >> 32
    d = Dispatch(entry, (groups, 1, 1), (threads, 1, 1), MODE | 3, 2 << 1, 0, users, wave32=self.arch.isa != "gfx9")
    return dispatch(self.space, self.arch, replace(d, **fields), watchdog=1000)

  def read(self, register: str, before: Sequence[str] = (), **more: Any) -> np.ndarray:
    self.stats = self.launch_lines([*before, f"s_getreg_b32 s4, hwreg({register})"], **more)
    return self.get(self.out, np.uint32, 64)


CPUS = pytest.mark.parametrize("cpu", ["gfx1100", "gfx1201", "gfx942"])


@CPUS
def test_mode_is_what_the_dispatch_says_and_what_was_written(cpu: str) -> None:
  bench = Bench(cpu)
  assert (bench.read("HW_REG_MODE") == 0xC0).all()
  assert (bench.read("HW_REG_MODE", ["s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3"]) == 0xF0).all()
  assert (bench.read("HW_REG_MODE, 6, 2") == 3).all()


@pytest.mark.parametrize("cpu", ["gfx1100", "gfx942"])
def test_status_has_scc_and_the_empty_masks(cpu: str) -> None:
  bench = Bench(cpu)
  got = bench.read("HW_REG_STATUS", ["s_mov_b64 vcc, 0", "s_cmp_eq_u32 s0, s0"])
  assert (got & 1 == 1).all() and (got >> 10 & 1 == 1).all() and (got >> 16 & 1 == 1).all()
  assert (got >> 11 & 1 == (bench.arch.name == "gfx1100")).all()  # 64 work-items: two waves of 32, or one of 64
  got = bench.read("HW_REG_STATUS", ["s_mov_b64 vcc, 1", "s_cmp_lg_u32 s0, s0"])
  assert (got & 1 == 0).all() and (got >> 10 & 1 == 0).all() and (got >> 9 & 1 == 0).all()


def test_gfx1201_keeps_scc_elsewhere() -> None:
  bench = Bench("gfx1201")
  assert (bench.read("HW_REG_STATE_PRIV, 9, 1", ["s_cmp_eq_u32 s0, s0"]) == 1).all()
  assert (bench.read("HW_REG_STATUS, 0, 1", ["s_cmp_eq_u32 s0, s0"]) == 0).all()


@CPUS
def test_time_goes_on_and_is_declared(cpu: str) -> None:
  bench = Bench(cpu)
  name = {"gfx1100": "HW_REG_SHADER_CYCLES", "gfx1201": "HW_REG_SHADER_CYCLES_LO"}.get(cpu)
  if name is None: lines = ["s_memtime s[6:7]", "s_nop 0", "s_memtime s[8:9]", "s_sub_u32 s4, s8, s6"]
  else:
    lines = [f"s_getreg_b32 s6, hwreg({name})", "s_nop 0", f"s_getreg_b32 s8, hwreg({name})", "s_sub_co_u32 s4, s8, s6"]
    if cpu == "gfx1100": lines[-1] = "s_sub_u32 s4, s8, s6"
  stats = bench.launch_lines(["s_branch 0", *lines])
  assert stats.modelled[name or "s_memtime"] == 2 * stats.waves


@pytest.mark.parametrize(("cpu", "register"), [("gfx1100", "HW_REG_HW_ID1"), ("gfx1201", "HW_REG_HW_ID1"),
                                               ("gfx942", "HW_REG_HW_ID")])
def test_waves_of_a_workgroup_share_a_cu_and_nothing_else(cpu: str, register: str) -> None:
  bench = Bench(cpu)
  lanes = 64 if cpu == "gfx942" else 32
  got = bench.read(register, threads=4 * lanes)
  waves = bench.get(bench.out, np.uint32, 4 * lanes).reshape(4, lanes)
  assert (waves == waves[:, :1]).all() and len(set(waves[:, 0])) == 4
  cu = waves[:, 0] >> 8 & 15 if cpu == "gfx942" else waves[:, 0] >> 10 & 15
  assert len(set(cu.tolist())) == 1 and bench.stats.modelled[register] == 4 and got.size


@CPUS
def test_writes_that_only_a_trap_handler_may_do_are_dropped(cpu: str) -> None:
  bench = Bench(cpu)
  register = "HW_REG_TRAPSTS" if cpu != "gfx1201" else "HW_REG_EXCP_FLAG_USER"
  assert (bench.read(register, [f"s_setreg_imm32_b32 hwreg({register}), 0xff"]) == 0).all()
  with pytest.raises(Unsupported, match="HW_REG_LDS_ALLOC"):
    bench.launch_lines(["s_setreg_imm32_b32 hwreg(HW_REG_LDS_ALLOC), 1"])


def test_allocations_and_bases() -> None:
  bench = Bench("gfx1100")
  assert (bench.read("HW_REG_SH_MEM_BASES") == 0x0001_0002).all()
  assert (bench.read("HW_REG_LDS_ALLOC, 12, 9", lds_size=1024) == 2).all()


@CPUS
def test_an_interrupt_carries_the_low_bits_of_m0(cpu: str) -> None:
  bench = Bench(cpu)
  seen: list[int] = []
  lines = ["s_mov_b32 m0, 0xab123456", "s_sendmsg sendmsg(MSG_INTERRUPT)", "s_mov_b32 s4, 1"]
  stats = bench.launch_lines(lines, interrupt=seen.append)
  assert seen == [0x123456] * stats.waves
  with pytest.raises(MachineFault, match="nobody takes"): bench.launch_lines(lines)


def test_messages_with_answers() -> None:
  bench = Bench("gfx1100")
  lines = ["s_sendmsg_rtn_b64 s[4:5], sendmsg(MSG_RTN_GET_REALTIME)",
           "s_sendmsg_rtn_b32 s6, sendmsg(MSG_RTN_GET_DOORBELL)"]
  stats = bench.launch_lines(lines)
  assert stats.modelled["MSG_RTN_GET_REALTIME"] == 2 and stats.modelled["MSG_RTN_GET_DOORBELL"] == 2
  with pytest.raises(Unsupported, match="MSG_RTN_SAVE_WAVE"):
    bench.launch_lines(["s_sendmsg_rtn_b64 s[4:5], sendmsg(MSG_RTN_SAVE_WAVE)"])
  with pytest.raises(Unsupported, match="MSG_HALT_WAVES"): bench.launch_lines(["s_sendmsg sendmsg(MSG_HALT_WAVES)"])
