"""The conformance suite: right devices pass it, wrong ones are told apart, and what it writes can be read again."""
from __future__ import annotations

import json
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.strength import THOROUGH
from tinyhw.arch import decoded
from tinyhw.cli import tinyhw
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS
from tinyhw.tools.conform import kernel, run

GPUS = ("gfx1100", "gfx1201", "gfx942")
READELF = shutil.which("llvm-readelf-19")


def command(*words: str) -> Result:
  return CliRunner().invoke(tinyhw, ["conform", *words])


@pytest.fixture(autouse=True)
def reference(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("EMU", "ref")


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
