"""Registers numbered by M0: the last one that there is, and the first one past it."""
from __future__ import annotations

import copy

import pytest

from tinyhw.core.errors import MachineFault
from tinyhw.isa.amdgcn.codes import M0, VCC_LO
from tinyhw.tools.witness.run import Prepared, bench

VGPRS = 512  # of the bench
SGPRS = VCC_LO + 2  # VCC may be written by its number, and stands last
LIMITS = [
  ("v_movrels_b32", "src0", VGPRS, 1), ("v_movreld_b32", "vdst", VGPRS, 1), ("v_movrelsd_b32", "src0", VGPRS, 1),
  ("s_movrels_b32", "src0", VCC_LO, 1), ("s_movrels_b64", "src0", VCC_LO, 2), ("s_movreld_b32", "sdst", SGPRS, 1),
  ("s_movreld_b64", "sdst", SGPRS, 2)]


def with_m0(mnemonic: str, value: int) -> Prepared:
  """A case of an instruction with another M0."""
  p = copy.copy(next(p for p in bench("gfx1100").cases(mnemonic) if p.case.instruction.family != "VOP3"))
  p.__dict__.pop("s", None)
  p.start = copy.copy(p.start)
  p.start.s = [r[:] for r in p.start.s]
  p.start.s[M0] = [value] * p.case.waves
  return p


@pytest.mark.parametrize(("mnemonic", "operand", "limit", "dwords"), LIMITS)
def test_the_last_register_and_the_one_past_it(mnemonic: str, operand: str, limit: int, dwords: int) -> None:
  machine = bench("gfx1100")
  first = with_m0(mnemonic, 0).case.instruction.operands[operand].value
  machine.execute(with_m0(mnemonic, limit - dwords - first))
  with pytest.raises(MachineFault, match="past the wave's"):
    machine.execute(with_m0(mnemonic, limit - dwords - first + 1))


@pytest.mark.parametrize("mnemonic", ["v_swaprel_b32", "v_movrelsd_2_b32"])
def test_two_numbers_in_one_m0(mnemonic: str) -> None:
  machine = bench("gfx1100")
  operands = with_m0(mnemonic, 0).case.instruction.operands
  source, target = (VGPRS - 1 - operands[name].value for name in ("src0", "vdst"))
  machine.execute(with_m0(mnemonic, source | target << 16))
  for past in (source + 1 | target << 16, source | target + 1 << 16):
    with pytest.raises(MachineFault, match="past the wave's"): machine.execute(with_m0(mnemonic, past))
