"""The ledger: what it says of instructions agrees with the emulator, and each of its forms can be read."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tinyhw.arch import decoded
from tinyhw.cli import tinyhw
from tinyhw.emulator.amdgcn import coverage
from tinyhw.isa.amdgcn import table
from tinyhw.tools.ledger import ledger


def run(*arguments: str) -> str:
  result = CliRunner().invoke(tinyhw, ["ledger", *arguments])
  assert result.exit_code == 0, result.output
  return result.output


@pytest.mark.parametrize("arch", ledger.ARCHES)
def test_every_instruction_of_the_table_has_an_entry(arch: str) -> None:
  found = {e.mnemonic: e for e in ledger.entries(arch)}
  isa = decoded(arch).isa
  assert set(found) == coverage.names(table(isa))
  missing = set(coverage.report(table(isa))["missing"]) & coverage.compute(table(isa))
  assert {n for n, e in found.items() if e.grade == "unsupported"} == missing
  assert sum(e.encodings for e in found.values()) >= sum(1 for _ in table(isa).rows())


@pytest.mark.parametrize("arch", ledger.ARCHES)
def test_almost_every_compute_instruction_has_a_meaning(arch: str) -> None:
  assert ledger.summary(arch).percent >= {"gfx1100": 100, "gfx1201": 99.8, "gfx942": 99.9}[arch]


def test_the_manuals_are_cited() -> None:
  found = {e.mnemonic: e for e in ledger.entries("gfx1100")}
  assert found["v_add_f32"].section == "16.7" and found["ds_gws_init"].section == "13.4.4"
  assert found["v_rcp_f32"].meaning == "within 1 ULP" and found["v_rcp_f64"].meaning == "within 2^29 ULP"
  assert found["exp"].grade == "not compute" and "export" in found["exp"].meaning
  assert {e.mnemonic: e for e in ledger.entries("gfx942")}["v_fma_mix_f32"].section == "12.10"


def test_json_has_the_numbers_and_the_instructions() -> None:
  document = json.loads(run("--arch", "gfx1100", "--match", "v_rcp", "--json"))
  assert list(document) == ["gfx1100"] and document["gfx1100"]["summary"]["compute"] > 1000
  assert {i["mnemonic"] for i in document["gfx1100"]["instructions"]} >= {"v_rcp_f32", "v_rcp_f64"}


def test_the_table_and_the_page(tmp_path: Path) -> None:
  assert "gfx942" in run() and "v_sin_f32" in run("--arch", "gfx1201", "--grade", "approximate")
  page = tmp_path / "ledger.html"
  run("--html", str(page))
  text = page.read_text()
  assert text.count("<section") == len(ledger.ARCHES) and "http" not in text
  assert text.count("<tr data-text") == sum(len(ledger.entries(a)) for a in ledger.ARCHES)


def test_what_is_wrong_is_said() -> None:
  result = CliRunner().invoke(tinyhw, ["ledger", "--grade", "perfect"])
  assert "no grade is called 'perfect'" in str(result.exception) and "exact" in str(result.exception)
  assert "unknown GPU" in str(CliRunner().invoke(tinyhw, ["ledger", "--arch", "gfx7"]).exception)


@pytest.mark.parametrize("arch", ledger.ARCHES)
def test_900_instructions_are_executed_beside_a_witness(arch: str) -> None:
  assert ledger.summary(arch).executed >= 900


def test_the_readme_has_the_ledgers_numbers() -> None:
  readme = (Path(__file__).parents[2] / "README.md").read_text()
  assert ledger.markdown(list(ledger.ARCHES)) in readme
