"""The conformance suite: right devices pass it, wrong ones are told apart, and what it writes can be read again."""
from __future__ import annotations

import json
import shutil
import subprocess
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.strength import THOROUGH
from tinyhw.arch import decoded
from tinyhw.cli import tinyhw
from tinyhw.core.errors import DeviceError
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS
from tinyhw.isa.amdgcn.asm import assemble
from tinyhw.tools.conform import kernel, run
from tinyhw.tools.conform.judge import difference, wanted

GPUS = ("gfx1100", "gfx1201", "gfx942")
ONE = "gfx1100/v_not_b32/e32/plain"
READELF = shutil.which("llvm-readelf-19")


def command(*words: str) -> Result:
  return CliRunner().invoke(tinyhw, ["conform", *words])


@pytest.mark.parametrize("gpu", GPUS)
def test_instructions_of_all_kinds_pass(gpu: str) -> None:
  names = [n for n in run.names(gpu) if not n.startswith("@")][::7 if THOROUGH else 160]
  found = run.run(run.Options(gpu, "EMU"), names)
  assert not [r for r in found if r.verdict not in {"pass", "not asked"}]
  assert sum(r.verdict == "pass" for r in found) > 30


def test_a_wrong_meaning_is_found_with_its_operands(monkeypatch: pytest.MonkeyPatch) -> None:
  """The wanted results are made first: the device under test alone is wrong."""
  o = run.Options("gfx1100", "EMU", ("gfx1100/v_bfi_b32/e64/plain",))
  cases = list(run.baked(o, ["v_bfi_b32"]))
  row = MEANINGS.get("v_bfi_b32", "gfx11")
  assert row is not None and len(cases) == 1
  kept = row.function
  object.__setattr__(row, "function", lambda ops, a, b, c: kept(ops, a, b, c) ^ (a & 1))
  try: found = [r for p in kernel.packs(decoded("gfx1100"), cases) for r in run.run_pack(p, o)]
  finally: object.__setattr__(row, "function", kept)
  (r,) = found
  assert r.verdict == "fail" and r.section == "16.12"
  d = r.difference
  a, b, c = (int(d["operands"][n], 16) for n in ("src0", "src1", "src2"))
  assert int(d["wanted"], 16) == (a & b | ~a & c) & 0xFFFFFFFF and int(d["found"], 16) == int(d["wanted"], 16) ^ 1


def test_identifiers_are_stable_and_one_each() -> None:
  found = command("--list", "--only", "gfx1100/v_fma_f32/*").output.split()
  assert len(set(found)) == len(found)
  assert {"gfx1100/v_fma_f32/e64/plain", "gfx1100/v_fma_f32/e64/boundary-0"} < {*found}


def test_what_a_run_writes(tmp_path: Path) -> None:
  j, x, h, r = (tmp_path / n for n in ("a.json", "a.xml", "a.html", "a.json.xz"))
  done = command("EMU", "--only", "gfx1100/s_add_", "--json-file", str(j), "--junit", str(x), "--html", str(h),
                 "--record", str(r))
  assert done.exit_code == 0, done.output
  said = json.loads(j.read_text())
  assert said["good"] and said["cases"]["pass"] == len(said["results"]) > 10
  suites = ET.parse(x).getroot()
  assert int(suites.get("tests", "0")) == len(suites.findall("*/testcase")) == len(said["results"])
  assert "reviewed by" in h.read_text() and "16.1" in h.read_text()
  again = command("EMU", "--only", "gfx1100/s_add_", "--against", str(r))
  assert again.exit_code == 0 and "the record is of EMU" in again.output


def test_a_record_that_says_otherwise_is_told(tmp_path: Path) -> None:
  r = tmp_path / "a.json"
  assert command("EMU", "--only", "v_not_b32", "--record", str(r)).exit_code == 0
  said = json.loads(r.read_text())
  first = next(iter(said["answers"]))
  said["answers"][first][1] = "00"
  r.write_text(json.dumps(said))
  done = command("EMU", "--only", "v_not_b32", "--against", str(r))
  assert done.exit_code == 1 and f"{first}: left other registers than recorded" in done.output


def test_a_list_of_what_may_fail_is_strict(tmp_path: Path) -> None:
  listed = tmp_path / "may.json"
  assert command("EMU", "--only", "v_not_b32", "--write-may-fail", str(listed)).exit_code == 0
  assert command("EMU", "--only", "v_not_b32", "--may-fail", str(listed)).exit_code == 0
  said = json.loads(listed.read_text())
  said["may fail"]["gfx1100/v_not_b32/e32/plain"] = {"detail": "as it was"}
  listed.write_text(json.dumps(said))
  done = command("EMU", "--only", "v_not_b32", "--may-fail", str(listed))
  assert done.exit_code == 1 and "may fail by the list, and does not" in done.output


@pytest.mark.skipif(READELF is None, reason="llvm-readelf-19 is not installed")
@pytest.mark.parametrize("gpu", GPUS)
def test_a_code_object_is_one_for_llvm(gpu: str, tmp_path: Path) -> None:
  o = run.Options(gpu, "EMU", (f"{gpu}/v_not_b32/e32/plain",))
  (p,) = kernel.packs(decoded(gpu), list(run.baked(o, ["v_not_b32"])))
  file = tmp_path / "k.co"
  file.write_bytes(p.binary)
  done = subprocess.run([READELF or "", "--all", str(file)], capture_output=True, text=True, check=True)
  assert not done.stderr and f"amdgcn-amd-amdhsa--{gpu}" in done.stdout and "conform.kd" in done.stdout


def test_a_case_that_faults_is_taken_out_of_its_kernel() -> None:
  """The others of the kernel are judged all the same."""
  o = run.Options("gfx1100", "EMU", ("gfx1100/v_bfi_b32/e64/plain", "gfx1100/v_bfm_b32/e64/plain"))
  cases = list(run.baked(o, ["v_bfi_b32", "v_bfm_b32"]))
  cases[0].prepared.case = replace(cases[0].case, code=assemble("global_load_b32 v2, v[3:4], off"))
  (p,) = kernel.packs(decoded("gfx1100"), cases)
  found = {r.mnemonic: r for r in run.run_pack(p, o)}
  assert found["v_bfi_b32"].verdict == "error" and "PageFault" in found["v_bfi_b32"].detail
  assert found["v_bfm_b32"].verdict == "pass"


def test_devices_that_cannot_be_asked_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
  assert "runs no" not in command("EMU", "--only", ONE).output
  for words, said in ((("LLVM",), "launch of ready code objects on LLVM"),
                      (("EMU", "--only", "v_nothing"), "no case fits"),
                      (("EMU", "--show", "gfx1100/v_nothing"), "no case is called"),
                      (("EMU", "--arch", "gfx1"), "gfx1")):
    done = command(*words)
    assert done.exit_code == 1 and said in str(done.exception), done.output
  monkeypatch.setenv("MOCKGPU", "1")
  done = command("AMD", "--arch", "gfx942", "--only", ONE)
  assert done.exit_code == 1 and "AMD is a gfx1100" in str(done.exception)


def test_a_device_that_runs_nothing_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
  def broken(*_: object) -> object: raise DeviceError("lost")
  monkeypatch.setattr(run, "launched", broken)
  with pytest.raises(DeviceError, match="no kernel of the suite runs"):
    run.run_all(run.Options("gfx1100", "EMU", (ONE,)))


def test_a_mask_is_told_by_the_lane_that_differs() -> None:
  o = run.Options("gfx1100", "EMU", ("gfx1100/v_cmp_lt_u32/e64/plain",))
  (b,) = run.baked(o, ["v_cmp_lt_u32"])
  found = wanted(b, 1)
  register = b.case.instruction.operands["sdst"].value
  found.s = found.s.copy()
  found.s[register] ^= 1 << 13
  _, told = difference(b, 1, found, 32)
  assert told["lane"] == 13 and told["wave"] == 1
  a, c = (int(told["operands"][n], 16) for n in ("src0", "src1"))
  assert (a < c) == bool(int(told["wanted"], 16) >> 13 & 1)


def test_programs_whose_results_chips_have_said() -> None:
  found = run.run_all(run.Options("gfx1100", "EMU", ("gfx1100/silicon/*div_scale*",)))
  assert len(found) > 5 and {r.verdict for r in found} <= {"pass", "not asked"}
  assert "silicon" in command("--list", "--only", "gfx1100/silicon/*div_scale*").output
