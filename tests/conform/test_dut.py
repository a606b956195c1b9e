"""Other programs under test: the line protocol, and what becomes of one that errs, ends, hangs or says nonsense."""
from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tinyhw.cli import tinyhw
from tinyhw.core.errors import InvalidArgument
from tinyhw.tools.conform import dut, run

ROOT = Path(__file__).parents[2]
TINYGRAD = os.environ.get("TINYGRAD", "")
SERVER = f"{sys.executable} -m tinyhw.tools.conform.dut"
ONLY = "gfx1100/v_not_b32/e32/plain"


def command(*words: str) -> Result:
  return CliRunner().invoke(tinyhw, ["conform", *words])


def test_the_reference_emulator_answers_as_it_should() -> None:
  """Vector and scalar instructions, memory, LDS and scratch, two waves after each other."""
  names = ["v_add_f32", "s_add_u32", "flat_atomic_add_u32", "ds_add_u32", "scratch_store_b32", "flat_load_b32"]
  o = run.Options("gfx1100", "", dut=SERVER)
  found = run.run(o, names)
  assert [r.id for r in found if r.verdict not in {"pass", "not asked"}] == []
  assert sum(r.verdict == "pass" for r in found) > 60


def _program(tmp_path: Path, answer: str) -> str:
  file = tmp_path / "program.py"
  file.write_text(f"""
import json, sys, time
for line in sys.stdin:
  asked = json.loads(line)
  if asked["op"] == "hello": said = {{"protocol": 1, "name": "a program"}}
  else:
    {answer}
  print(json.dumps(said), flush=True)
""")
  return f"{sys.executable} {file}"


COPY = ('said = {k: asked[k] for k in ("v", "s", "scc", "mode", "vcc", "exec", "m0")}')


@pytest.mark.parametrize(("answer", "verdict", "words"), [
  (COPY, "fail", "v2 of lane 0: wanted"),
  ('said = {"unsupported": "never heard of it"}', "unsupported", "never heard of it"),
  ('said = {"error": "a bus error"}', "error", "a bus error"),
  ('sys.exit(7)', "error", "has ended (status 7)"),
  ('print("nonsense", flush=True)', "error", "said no JSON"),
  ('said = {"v": []}', "error", "not as the protocol says"),
])
def test_what_a_program_does_wrong_is_said_of_the_case(tmp_path: Path, answer: str, verdict: str, words: str) -> None:
  (found,) = run.run(run.Options("gfx1100", "", (ONLY,), dut=_program(tmp_path, answer)), ["v_not_b32"])
  assert found.verdict == verdict and words in found.detail


@pytest.mark.skipif(not TINYGRAD, reason="TINYGRAD names no source tree of tinygrad")
def test_tinygrads_emulator_answers() -> None:
  """An instruction that it knows well, and memory; clang has to be there."""
  server = f"{sys.executable} {ROOT / 'examples/conform_tinygrad.py'} {TINYGRAD}"
  found = run.run(run.Options("gfx1100", "", dut=server), ["s_add_u32", "global_load_b32"])
  assert sum(r.verdict == "pass" for r in found) > 10 and not [r for r in found if r.verdict == "error"]


def test_one_that_hangs_is_ended(tmp_path: Path) -> None:
  program = dut.Tested(_program(tmp_path, "time.sleep(60)"))
  program.start()
  program.timeout = 0.3
  with pytest.raises(dut.Gone, match=r"said nothing in 0\.3 s"): program.ask({"op": "run"})
  assert program.process is None


def test_a_program_that_is_none_is_told() -> None:
  with pytest.raises(InvalidArgument, match="cannot be run"): dut.Tested("/no/such/program").start()
  with pytest.raises(InvalidArgument, match="has ended"): dut.Tested("true").start()


def test_the_report_names_the_program(tmp_path: Path) -> None:
  done = command("--dut", _program(tmp_path, 'said = {"unsupported": "no"}'), "--only", ONLY)
  assert done.exit_code == 1 and "gfx1100 on a program: 0 of 1 cases pass, 1 unsupported" in done.output
