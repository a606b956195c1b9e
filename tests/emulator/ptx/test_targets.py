"""Targets and versions of PTX: what runs where, what instructions need; ptxas' word on the table's bounds."""

from __future__ import annotations

import random
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.isa import ptx_samples as samples
from tests.strength import examples, seed
from tinyhw.core.errors import DecodeError, Error, Unsupported
from tinyhw.emulator.ptx.module import targets
from tinyhw.emulator.ptx.module.link import link
from tinyhw.isa.ptx import forms, parse

BEFORE = {80: "sm_75", 89: "sm_86", 90: "sm_89", 100: "sm_90a"}  # the target that lacks what a row's first one has


@pytest.mark.parametrize(("target", "sm", "right"), [
  ("sm_80", 80, True), ("sm_80", 86, True), ("sm_80", 120, True), ("sm_89", 86, False), ("sm_90a", 90, True),
  ("sm_90a", 100, False), ("sm_90", 100, True), ("sm_100f", 100, True), ("sm_120a", 100, False), ("sm_52", 80, True)])
def test_what_runs_where(target: str, sm: int, right: bool) -> None:
  assert targets.runs(target, sm) is right


@pytest.mark.parametrize(("head", "line", "message"), [
  ("8.5 sm_17", "", ".target sm_17: there is no such target"), ("8.5 sm_80a", "", ".target sm_80a: there is no such"),
  ("10.0 sm_90", "", "unsupported version of PTX .version 10.0"), ("8.0 sm_80", "elect.sync %r|%p, -1;",
   "PTX line 4, column 1: elect.sync needs .target sm_90, not sm_80"),
  ("7.8 sm_90", "elect.sync %r|%p, -1;", "elect.sync needs .version 8.0, not 7.8"),
  ("8.0 sm_90", "wgmma.fence.sync.aligned;", "wgmma.fence.sync.aligned needs .target sm_90a, not sm_90"),
  ("8.6 sm_100a", "wgmma.fence.sync.aligned;", "wgmma.fence.sync.aligned needs .target sm_90a, not sm_100a"),
  ("8.7 sm_120a", "tcgen05.wait::ld.sync.aligned;", "tcgen05.wait::ld.sync.aligned needs .target sm_100a, not sm_120a"),
  ("8.7 sm_110a", "tcgen05.wait::ld.sync.aligned;", ""),
  ("8.7 sm_110a", "cvt.rs.f16x2.f32 %r, 0f00000000, 0f00000000, %r;", "needs .target sm_100a, not sm_110a"),
  ("8.7 sm_103a", "cvt.rs.f16x2.f32 %r, 0f00000000, 0f00000000, %r;", ""),
  ("8.7 sm_100", "cvt.rn.f16x2.e2m3x2 %r, 0;", "needs .target sm_100a, not sm_100"),
  ("8.7 sm_100a", "cvt.rn.satfinite.e2m3x2.bf16x2 %r, %r;", "x2.bf16x2 needs .version 9.1, not 8.7"),
  ("8.6 sm_90", "max.u32 %r, %r, %r;", ""), ("8.8 sm_90", "max.f32 %f, %f, %f, %f;",
   "max.f32 needs .target sm_100, not sm_90"), ("8.6 sm_100", "max.f32 %f, %f, %f, %f;",
   "max.f32 needs .version 8.8, not 8.6"), ("8.8 sm_100", "max.f32 %f, %f, %f, %f;", ""),
  ("8.6 sm_90", "max.f32 %f, %f, %f;", ""), ("8.0 sm_90", "frobnicate.u32 %r, %r;",
   "PTX line 4, column 1: frobnicate.u32: no instruction has this name"),
  ("8.6 sm_100", "redux.sync.max.f32 %f, %f, -1;", "redux.sync.max.f32 needs .target sm_100a, not sm_100"),
  ("8.7 sm_120a", "redux.sync.max.f32 %f, %f, -1;", "needs .target sm_100a, not sm_120a"),
  ("8.3 sm_90", "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
   "[0], [0], 128;", ""), ("9.0 sm_110a", "redux.sync.max.f32 %f, %f, -1;", "needs .target sm_100a, not sm_110a"),
  ("8.6 sm_100a", "redux.sync.max.f32 %f, %f, -1;", ""), ("8.6 sm_100", "redux.sync.max.u32 %r, %r, -1;", ""),
  ("8.0 sm_90a", "wgmma.fence.sync.aligned; elect.sync %r|%p, -1;", ""), ("1.4 sm_13", "mov.u32 %r, 1;", "")])
def test_what_a_module_may_have(head: str, line: str, message: str) -> None:
  version, target = head.split()
  text = (f".version {version}\n.target {target}\n.visible .entry k () {{ .reg .b32 %r; .reg .f32 %f; .reg .pred %p;\n"
          f"{line} ret; }}")
  if message:
    with pytest.raises((DecodeError, Unsupported)) as caught: link(parse(text))
    assert message in str(caught.value)
  else: assert link(parse(text)).names == ("k",)


def accepted(source: str, target: str) -> bool:
  """Whether ptxas takes a module for a target."""
  with tempfile.TemporaryDirectory() as folder:
    (Path(folder) / "k.ptx").write_text(source)
    done = subprocess.run([str(samples.PTXAS), "-arch", target, "--compile-only", f"{folder}/k.ptx", "-o",
                           f"{folder}/k.o"], capture_output=True, text=True)
  return done.returncode == 0


@pytest.mark.skipif(samples.PTXAS is None, reason="needs ptxas")
def test_ptxas_and_link_agree_on_letters_and_families() -> None:
  """An instruction of the table's newest rows: by each target, with a letter and without."""
  rng = random.Random(seed(5))
  rows = [row for found in forms.rows().values() for row in found if row.sm >= 90]
  tried = 0
  for row in rng.sample(rows, examples(8)):
    name = samples.chosen(row, rng, 1)[0]
    form = forms.find(name)
    text = None if form is None or form.row != row else samples.sample(form)
    if text is None: continue
    for target in rng.sample(("sm_90", "sm_90a", "sm_100", "sm_100a", "sm_100f", "sm_103a", "sm_110f", "sm_120",
                              "sm_120a", "sm_121f"), 4):
      source = samples.HEAD.format(target=target) + text + "\nret;\n}\n"
      try: found = bool(link(parse(source)))
      except DecodeError: found = False
      assert accepted(source, target) == found, (target, text)
      tried += 1
  assert tried > 3


@pytest.mark.skipif(samples.PTXAS is None, reason="needs ptxas")
def test_ptxas_refuses_before_the_first_target() -> None:
  """An instruction that the table has from a target on ptxas refuses for the one before, and so does `link`."""
  rng = random.Random(seed(3))
  rows = [row for found in forms.rows().values() for row in found if row.sm in BEFORE]
  tried = 0
  for row in rng.sample(rows, examples(12)):
    name = samples.chosen(row, rng, 1)[0]
    form = forms.find(name)
    text = None if form is None or form.row != row else samples.sample(form)
    if text is None: continue
    source = samples.HEAD.format(target=BEFORE[row.sm]) + text + "\nret;\n}\n"
    assert not accepted(source, BEFORE[row.sm]), text
    with pytest.raises(Error, match=f"needs .target sm_{row.sm}"): link(parse(source))
    tried += 1
  assert tried > 3
