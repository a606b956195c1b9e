"""`tinyhw launch --report` and `--exactness`: to the screen, to files, as JSON, with the buffers where they belong."""
from __future__ import annotations

import io
import json
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from tests.conftest import build
from tinyhw.cli import report, tinyhw
from tinyhw.cli.report import bar
from tinyhw.core.errors import Error
from tinyhw.emulator.debug.report import Report

ROOT = """
define amdgpu_kernel void @root(ptr addrspace(1) %out, ptr addrspace(1) %a) #0 {
  %id = call i32 @llvm.amdgcn.workitem.id.x()
  %at = mul i32 %id, 8
  %pa = getelementptr float, ptr addrspace(1) %a, i32 %at
  %v = load float, ptr addrspace(1) %pa
  %s = call float @llvm.amdgcn.sqrt.f32(float %v)
  %po = getelementptr float, ptr addrspace(1) %out, i32 %id
  store float %s, ptr addrspace(1) %po
  ret void
}
declare float @llvm.amdgcn.sqrt.f32(float)
"""


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
  (tmp_path / "root.o").write_bytes(build(ROOT))
  np.save(tmp_path / "a.npy", np.arange(512, dtype=np.float32))
  return ["launch", str(tmp_path / "root.o"), "--kernel", "root", "--block", "64", "--arg", "out:f32:64", "--arg",
          str(tmp_path / "a.npy")]


def run(words: list[str]) -> Result:
  done = CliRunner().invoke(tinyhw, words)
  if done.exception is not None and not isinstance(done.exception, SystemExit): raise done.exception
  assert done.exit_code == 0, done.output
  return done


def test_text(words: list[str]) -> None:
  out = run([*words, "--report"]).stdout
  for part in ("buffer 0: float32[64]", "root on gfx1100", "2 waves of 32 lanes", "global load", "12.5 %", "VALU",
               "v_sqrt_f32", "approximate", "12.5 % of 32 sectors used", "reached memory: root+0x",
               "no such value reached a branch"):
    assert part in out, f"{part!r} is not in\n{out}"
  assert all(line == line.rstrip() for line in out.splitlines())


def test_what_is_remarkable_has_a_colour(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
  seen: list[Report] = []
  with monkeypatch.context() as patch:
    patch.setattr(report, "show", lambda r, *_, **__: seen.append(r))
    run([*words, "--report"])
  screen = Console(force_terminal=True, color_system="standard", width=200, file=io.StringIO(), _environ={})
  report.show(seen[0], screen)
  out = cast(io.StringIO, screen.file).getvalue()
  for color, note in ((31, "12.5 % of 32 sectors used"), (33, "approximate"), (2, "global load 256")):
    assert f"\x1b[{color}m{note}" in out, note


def test_json(tmp_path: Path, words: list[str]) -> None:
  found = json.loads(run([*words, "--report", "json", "--save", f"0={tmp_path / 'out.npy'}"]).stdout)
  assert found["kernel"] == "root" and [a["sink"] for a in found["arrivals"]] == ["memory"]
  assert np.load(tmp_path / "out.npy")[2] == 4
  both = json.loads(run([*words, "--report", "--json"]).stdout)
  assert both["report"]["executed"] == found["executed"] and both["buffers"][0]["data"][2] == 4


@pytest.mark.parametrize(("name", "more", "start"), [
  ("r.html", [], "<!doctype html>"), ("r.html", ["--report"], "<!doctype html>"), ("r.json", [], "{"),
  ("r.html", ["--report=text"], "root on gfx1100"), ("r.txt", [], "root on gfx1100")])
def test_files(tmp_path: Path, words: list[str], name: str, more: list[str], start: str) -> None:
  done = run([*words, *more, "--report-file", str(tmp_path / name)])
  assert (tmp_path / name).read_text().startswith(start) and "buffer 0:" in done.stdout and name in done.stderr


def test_html_on_standard_output(words: list[str]) -> None:
  out = run([*words, "--report", "html"]).stdout
  assert out.startswith("<!doctype html>") and out.rstrip().endswith("</html>") and "buffer 0" not in out


def test_exactness_alone(words: list[str]) -> None:
  lines = run([*words, "--exactness"]).stdout.splitlines()[2:]
  assert "v_sqrt_f32_e32" in lines[0] and len([n for n in lines if n.startswith("no such value reached")]) == 4
  assert [n for n in lines if n.startswith("reached memory: root+0x")]


@pytest.mark.parametrize(("extra", "message"), [
  (["--report", "--debug"], "--report: does not go with --debug"),
  (["--exactness", "--device", "AMD"], "--exactness: runs on the emulator itself, not on AMD"),
  (["--report-file", "/nonexistent/r.html"], "/nonexistent/r.html: cannot be written: No such file"),
  (["--report", "--save", "7=x.npy"], "there are 2 buffers")])
def test_errors(words: list[str], extra: list[str], message: str) -> None:
  with pytest.raises(Error, match=message): run([*words, *extra])


def test_bars_have_eighths() -> None:
  assert [bar(x, 4) for x in (0, 0.5, 1, 2, 0.28)] == ["", "██", "████", "████", "█▏"]


def test_generations_without_a_mock_card_run_on_the_emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  """MOCKGPU=gfx942 as well as --device EMU."""
  from tinyhw import Device
  (tmp_path / "root.o").write_bytes(build(ROOT, cpu="gfx942"))
  np.save(tmp_path / "a.npy", np.arange(512, dtype=np.float32))
  words = ["launch", str(tmp_path / "root.o"), "--kernel", "root", "--block", "64", "--arg", "out:f32:64", "--arg",
           str(tmp_path / "a.npy"), "--json"]
  expected = np.sqrt(np.arange(0, 512, 8, dtype=np.float32))
  for mock, extra in (("gfx942", []), ("", ["--device", "EMU"]), ("1", ["--device", "EMU"])):
    monkeypatch.setenv("MOCKGPU", mock)
    Device.close()
    found = json.loads(run([*words, *extra]).stdout)
    assert np.allclose(found["buffers"][0]["data"], expected)
  monkeypatch.setenv("MOCKGPU", "1")
  Device.close()
  with pytest.raises(Error, match="the code is for gfx942, the device is gfx1100"): run(words)
  Device.close()
