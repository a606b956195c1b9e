"""`tinyhw gen diff`: what it says of two generations, against what the vendors say."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.emulator.amdgcn import coverage
from tinyhw.tools.gen import generations, main
from tinyhw.tools.gen.generations import Change, changes, compared


def named(found: list[Change], section: str, what: str) -> set[str]: return {
  c.name for c in found if c.section == section and c.what == what}


def test_sets_are_compared_by_name() -> None:
  assert compared("s", {"a": "1", "b": "2", "c": "3"}, {"b": "2", "c": "4", "d": "5"}) == [
    Change("s", "gone", "a", was="1"), Change("s", "new", "d", now="5"), Change("s", "changed", "c", "3", "4")]


def test_cdna4_against_cdna3() -> None:
  """CDNA4 ISA manual, "Differences Between CDNA3 and CDNA4"; LLVM: FeatureGFX950Insts, FeatureXF32Insts."""
  found = changes("gfx942", "gfx950")
  new = named(found, "instructions", "new")
  assert {"v_prng_b32", "v_bitop3_b32", "v_permlane32_swap_b32", "ds_read_b96_tr_b6", "v_mfma_f32_32x32x16_bf16"} <= new
  assert named(found, "instructions", "gone") == {"v_mfma_f32_16x16x8_xf32", "v_mfma_f32_32x32x4_xf32"}
  assert named(found, "instructions", "changed") == {"buffer_load_dwordx3", "buffer_load_dwordx4"}  # to LDS too
  lds = next(c for c in found if c.name == "lds_per_workgroup")
  assert (lds.section, lds.was, lds.now) == ("limits", str(64 << 10), str(160 << 10))
  assert not named(found, "registers", "changed") and not named(found, "packets", "changed")
  assert not changes("gfx950", "gfx950")


def test_both_ways_are_mirrors() -> None:
  one, other = changes("gfx1100", "gfx1201"), changes("gfx1201", "gfx1100")
  for section in ("instructions", "registers", "packets", "copy packets", "limits"):
    assert named(one, section, "new") == named(other, section, "gone")
    assert named(one, section, "changed") == named(other, section, "changed")
  assert "COMPUTE_PRESCALED_DIM_X" in named(one, "registers", "new")


def test_hopper_against_ampere() -> None:
  found = changes("sm_80", "sm_90")
  assert any(name.startswith("wgmma ") for name in named(found, "PTX", "new"))  # PTX ISA 9.7.15: of sm_90a alone
  assert any("mbarrier try_wait" in name for name in named(found, "PTX", "new"))  # PTX ISA 9.7.13.15.16: sm_90
  assert "SHARED_MEMORY_SIZE" in named(found, "QMD", "changed") and "compute_class" in named(found, "limits", "changed")


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
  assert main(["diff", "gfx942", "gfx950", "--only", "limits"]) == 0
  assert "lds_granule: 512 -> 1280" in capsys.readouterr().out
  assert main(["diff", "gfx942", "gfx950", "--json"]) == 0
  said = json.loads(capsys.readouterr().out)
  assert said["changes"]["limits"]["changed"]["cu_count"] == {"was": "304", "now": "256"}
  assert main(["diff", "gfx942", "sm_90"]) == 1
  assert "two vendors" in capsys.readouterr().err
  assert main(["diff", "gfx942", "gfx950", "--only", "PTX"]) == 1
  assert "there are instructions, limits" in capsys.readouterr().err
  assert main(["diff", "gfx1100", "gfx1100"]) == 0
  assert "nothing that the tables know differs" in capsys.readouterr().out


@pytest.mark.parametrize("name, kind", [
  ("gfx951", InvalidArgument), ("gfx908", Unsupported), ("sm_81", InvalidArgument)])
def test_a_generation_that_is_not_there(name: str, kind: type[Exception]) -> None:
  with pytest.raises(kind): generations.of(name)


def test_the_guide_names_what_is_left(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
  """Without sources nothing is called the same; what the emulator executes is in no list."""
  assert main(["new", "gfx950", "--from", "gfx942", "--sources", str(tmp_path), "--json"]) == 0
  said = json.loads(capsys.readouterr().out)
  assert {f["module"] for f in said["filled"]} >= {"amdgcn_gfx9", "pm4_gfx9", "sdma_v4", "gc_9_4_3"}
  left = set(said["no_meaning"])
  assert said["card"] and not left & {"v_add_f32", "v_mfma_f32_16x16x16_f16"} and left <= {
    c for c in said["changes"]["instructions"]["new"]}
  for name in left: assert coverage.status(name, "gfx950") == "missing"
  assert "lds_per_workgroup" not in said["taken"] and "wave_sizes" in said["taken"]
  assert main(["new", "gfx951", "--from", "gfx942"]) == 1
  assert "begin with tinyhw/arch/gfx951.py" in capsys.readouterr().err
