"""The ledger of PTX: its forms, which of them an instruction is, and that the record is of what tests execute."""
from __future__ import annotations

import json

from click.testing import CliRunner

from tinyhw.cli import tinyhw
from tinyhw.isa.ptx import forms
from tinyhw.tools.ledger import ptx, ptx_forms
from tinyhw.tools.witness.ptx import models, table


def test_an_instruction_is_of_the_form_with_its_types() -> None:
  for name, form in (("add.rn.ftz.sat.f32", "add.f32"), ("ld.global.nc.L1::no_allocate.v4.f32", "ld.global.nc.f32"),
                     ("vadd2.u32.s32.u32.sat", "vadd2.u32.s32.u32"), ("vadd2.u32.s32.u32.add", "vadd2.u32.s32.u32.add"),
                     ("tex.level.a2d.v4.f32.s32", "tex.level.v4.f32.s32"), ("cvt.rn.satfinite.e4m3x2.f32",
                                                                          "cvt.rn.satfinite.e4m3x2.f32")):
    assert ptx_forms.form_of(name) == form
  assert ptx_forms.form_of("add.f33") is None and ptx.form_of("frob.u32") is None
  assert ptx.of(["add.f32", "add.rn.f32", "frob"]) == {"add.f32"}


def test_nearly_all_forms_have_a_meaning_and_a_witness() -> None:
  found = ptx.entries()
  s = ptx.summary(found)
  assert s["forms"] == len(ptx_forms.all_forms()) > 1300
  assert s["meaning"] >= 0.98 * s["forms"] and s["witnessed"] >= 0.9 * s["effect"]
  for e in found:
    if e.meaning: assert forms.find(ptx_forms.all_forms()[e.form]) is not None
    else: assert not e.witnesses and not e.compiled


def test_the_record_names_forms_and_what_has_a_witness() -> None:
  assert models
  for form, kinds in ptx.record().items():
    assert form in ptx_forms.all_forms() and set(kinds) <= {ptx.MANUAL, ptx.HOST, ptx.NUMPY, ptx.CHIP, ptx.COMPILED}
    assert form.split(".")[0] in table.MAKERS or not {ptx.MANUAL, ptx.COMPILED} & set(kinds)


def test_the_command() -> None:
  def run(*arguments: str) -> str: return CliRunner().invoke(tinyhw, ["ledger", "--isa", "ptx", *arguments]).output
  assert "run beside an independent witness" in run()
  assert "manual" in next(line for line in run("--match", "vmad").splitlines() if line.startswith("vmad.u32.u32.u32 "))
  document = json.loads(run("--match", "bfind", "--json"))
  assert document["summary"]["forms"] == len(document["forms"]) == 8
  def failing(*arguments: str) -> str:
    return str(CliRunner().invoke(tinyhw, ["ledger", "--isa", "ptx", *arguments]).exception)
  assert "no form of PTX fits" in failing("--match", "nothing.at.all")
  assert "neither generations nor grades" in failing("--arch", "gfx1100")
