"""The suite of PTX: kernels that judge themselves, on the emulator and on mock cards, and what the H200 said."""
from __future__ import annotations

import pytest
from click.testing import CliRunner

from tinyhw.cli import tinyhw
from tinyhw.tools.conform import ptx

INTEGERS = ("ptx/bfe", "ptx/prmt", "ptx/red.*global*")


def test_instructions_pass_on_the_emulator() -> None:
  """Integers, atomics in threads' order, an approximation that the kernel leaves to the host."""
  found = ptx.run(ptx.every("", (*INTEGERS, "ptx/sin")), "EMU", 60.0)
  assert len(found) > 12 and {r.verdict for r in found} == {"pass"}


def test_what_the_card_said() -> None:
  found = ptx.run(ptx.every("", ("ptx/sm_90-record/mma.sync.aligned.m16n8k16", "ptx/sm_90-record/vadd")), "EMU", 60.0)
  assert {r.verdict for r in found} == {"pass", "not asked"}
  assert any("saturates" in r.detail for r in found if r.mnemonic.startswith("vadd"))


def test_a_wrong_result_is_found_by_the_kernel_and_told() -> None:
  (case,) = ptx.every("", ("ptx/bfe.u32/0",))
  right = ptx.run_batch([case], "EMU", 60.0)
  assert next(right).verdict == "pass"
  wanted = list(case.wanted[0])
  wanted[5] ^= 1
  case.wanted = (tuple(wanted),)
  found, memory, told = ptx.launched([case], "EMU", 60.0)
  assert told.tolist() == [[63, 5]]  # 63 threads passed; the first that did not is thread 5, of result 0
  r = ptx.judged(case, found, memory[0].tobytes()[:0], told[0])
  assert r.verdict == "fail" and r.difference["lane"] == 5 and "source 0" in r.difference["operands"]


def test_a_card_is_asked_what_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("MOCKGPU", "sm_90")
  done = CliRunner().invoke(tinyhw, ["conform", "NV", "--only", "ptx/add.*f32x2/0", "--only", "ptx/bfe.u32"])
  assert done.exit_code == 0, done.output
  assert "1 of 3 cases pass, 2 not asked" in done.output
