"""The debugger by lines of the source: breakpoints, steps, listings, calls, variables; -O0 and -O2."""
from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import tinyhw
from tinyhw.cli.report import show
from tinyhw.core.errors import InvalidArgument
from tinyhw.emulator.debug.amdgcn.variables import where
from tinyhw.kernels.debug import Session
from tinyhw.terminal.amdgcn import AmdShell

pytestmark = pytest.mark.skipif(shutil.which("clang-19") is None, reason="clang-19 is not installed")
CODE = """\
#define GLOBAL __attribute__((address_space(1)))
struct pair { int n; float x; };
static inline __attribute__((always_inline)) float scaled(float v, float by) {
  float half = v * 0.5f;
  return half * by;
}
__attribute__((noinline)) static float far(GLOBAL const float *p, int i) {
  float got = p[i];
  return got + 1.0f;
}
__attribute__((amdgpu_kernel)) void bugs(GLOBAL float *out, GLOBAL const float *in, int n, float by) {
  int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (i >= n) return;
  float sum = 0;
  struct pair both = {i, 1.5f};
  for (int k = 0; k < 2; k++) {
    float v = in[i + k];
    sum += scaled(v, by);
  }
  sum += far(in, i) + both.x;
  out[i] = sum;
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
  """A folder with the source, its objects and an array."""
  folder = tmp_path_factory.mktemp("lines")
  (folder / "bugs.c").write_text(CODE)
  for mcpu in ("gfx1100", "gfx1201", "gfx942"):
    for level in ("O0", "O2"):
      subprocess.run(["clang-19", f"-{level}", "-g", "-x", "c", "--target=amdgcn-amd-amdhsa", f"-mcpu={mcpu}",
                      "-nogpulib", "-c", "bugs.c", "-o", f"{mcpu}{level}.o"], cwd=folder, check=True)
  return folder


def commands(folder: Path, file: str, text: str, fails: bool = False) -> str:
  """What the debugger prints for some commands; with the error's text where the last one fails."""
  out = io.StringIO()
  shell = AmdShell(lambda: session(folder, file), Console(file=out, width=200, highlight=False, markup=False), False)
  with contextlib.redirect_stderr(out), shell.session as d:
    shell.told(d.last)
    shell.read(text.splitlines())
  assert shell.failed == fails, out.getvalue()
  return out.getvalue()


def session(folder: Path, file: str) -> Session:
  arrays = [np.zeros(128, np.float32), np.arange(130, dtype=np.float32), 128, np.float32(2.5)]
  return tinyhw.debug(str(folder / file), "bugs", 2, 64, arrays)


def test_a_person_debugs_by_lines(built: Path) -> None:
  out = commands(built, "gfx1100O0.o", """\
break bugs.c:5
break 9 wave 1
info breaks
list
list
list far
continue
backtrace
info locals
info args
print half
print/x half
print half * 2 + lane
delete 1
next
next
next
info locals
print both
continue
step
print sum
x/2f in
info source
watch sum
continue
""")
  for line in (
    "breakpoint 1: at bugs.c:5", "1: at bugs.c:5, 0 hits", "   *    5    return half * by;",
    "=>     11  __attribute__((amdgpu_kernel)) void bugs(GLOBAL float *out, GLOBAL const float *in, int n, float by) {",
    "breakpoint 1, at bugs.c:5", "bugs.c:5:   return half * by;".replace("  ", ""),
    "(inlined)", "half  float  scratch", "0 0.5 1 1.5 ... (32 lanes)", "by  float  scratch", "2.5",
    "float half, in scratch", "half [ 0]    0  0.5    1  1.5    2  2.5    3  3.5",
    "half * 2 + lane [ 0]  0  2  4  6  8 10 12 14", "bugs.c:18: sum += scaled(v, by);", "bugs.c:19: }",
    "bugs.c:16: for (int k = 0; k < 2; k++) {", "0 1.25 2.5 3.75 ... (32 lanes)",
    "struct pair both, in scratch", "both = 00000000 0000c03f, and other lanes",
    "breakpoint 2, at bugs.c:9 wave 1", "bugs.c:9: return got + 1.0f;", "bugs.c:21: out[i] = sum;",
    "the dispatch has ended", str(built / "bugs.c")): assert line in out, line
  assert "#0 " in out and "scaled at bugs.c:5 (inlined)" in out and "bugs at bugs.c:18" in out
  assert "watch 3 is off" not in out.split("info source")[0]


def test_a_listing_goes_on_where_it_ended(built: Path) -> None:
  """Each line once; only breakpoints that are on have a mark."""
  out = commands(built, "gfx1100O0.o", "break bugs.c:5\nbreak bugs.c:8\ndisable 1\nlist 1\nlist\nlist\n")
  found = re.findall(r"^(?:=>|  ) ([* ]) +(\d+)  ", out, re.MULTILINE)
  assert [int(n) for _, n in found] == list(range(1, CODE.count("\n") + 1)), out
  assert [int(n) for mark, n in found if mark == "*"] == [8], out


@pytest.mark.parametrize("mcpu", ["gfx1100", "gfx1201", "gfx942"])
@pytest.mark.parametrize("level", ["O0", "O2"])
def test_lines_calls_and_values_of_every_generation(built: Path, mcpu: str, level: str) -> None:
  with session(built, f"{mcpu}{level}.o") as d:
    d.break_at("bugs.c:9")
    assert d.run().reason == "breakpoint"
    frames = d.backtrace()
    assert [(f.spot.function, f.spot.line) for f in frames if f.spot] == [("far", 9), ("bugs", 20)]
    assert str(frames[1]).endswith("bugs at bugs.c:20")
    got = d.value("got")
    assert (got == np.arange(d.engine.lanes)).all() and (d.evaluate("got + 1") == got + 1).all()
    spot = d.code.source.spot
    d.delete(1)
    stop = d.next_line()
    while stop.reason == "step" and (s := spot(d.wave.pc)) and s.line != 21: stop = d.next_line()
    s = spot(d.wave.pc)  # optimized code may come by other lines first
    assert s is not None and s.line == 21 and s.text == "out[i] = sum;" and len(d.backtrace()) == 1
    assert d.run().reason == "end"
    i = np.arange(128)
    want = (i * 1.25 + (i + 1) * 1.25) + i + 1 + 1.5
    assert (d.buffers()[0] == want).all()


def test_next_goes_over_what_is_inlined_and_step_into_it(built: Path) -> None:
  def lines(step: str) -> Iterator[int]:
    with session(built, "gfx1100O0.o") as d:
      d.break_at("bugs.c:18")
      d.run()
      d.delete(1)
      for _ in range(3):
        assert getattr(d, step)().reason == "step"
        spot = d.code.source.spot(d.wave.pc)
        yield 0 if spot is None else spot.line
  assert list(lines("next_line")) == [19, 16, 17]
  assert list(lines("step_line")) == [4, 5, 18]


def test_what_is_not_to_be_had_is_said(built: Path, tmp_path: Path) -> None:
  with session(built, "gfx1100O2.o") as d:
    d.break_at("bugs.c:12")
    assert d.run().reason == "breakpoint"
    n = next(v for v in d.variables() if v.name == "n")
    assert not n.trouble and where(n) == "kernarg (as it was passed)" and d.value("n") == 128  # no register has it
    assert d.evaluate("n + 1") == 129 and d.value("by") == 2.5
    d.break_at("bugs.c:17")
    assert d.run().reason == "breakpoint"
    assert "optimized out" in {v.name: v.trouble for v in d.variables()}["v"]
    with pytest.raises(InvalidArgument, match="v: optimized out"): d.evaluate("v + 1")
    with pytest.raises(InvalidArgument, match="no code comes from nofile.c; there is bugs.c"): d.break_at("nofile.c:3")
    with pytest.raises(InvalidArgument, match="no code comes from line 99 of bugs.c"): d.break_at("99")
    with pytest.raises(InvalidArgument, match="no variable is called 'zzz'"): d.value("zzz")
    assert str(d.break_at("bugs.c:1")) == "at bugs.c:4", "the next line that has code"
  shutil.copy(built / "gfx1100O0.o", tmp_path)
  (tmp_path / "bugs.c").write_text(CODE)
  out = commands(tmp_path, "gfx1100O0.o", "list 5\n")
  assert "return half * by;" in out, "the source may have moved with the object"
  (tmp_path / "bugs.c").write_text("// changed\n" + CODE)
  moved = built / "bugs.c"
  kept = moved.read_text()
  moved.write_text("// changed\n" + kept)
  try: assert "was changed since it was compiled" in commands(tmp_path, "gfx1100O0.o", "list 5\n", fails=True)
  finally: moved.write_text(kept)


def test_without_debug_information_all_goes_by_instructions(built: Path) -> None:
  subprocess.run(["clang-19", "-O2", "-x", "c", "--target=amdgcn-amd-amdhsa", "-mcpu=gfx1100", "-nogpulib", "-c",
                  "bugs.c", "-o", "plain.o"], cwd=built, check=True)
  out = commands(built, "plain.o", "step\nnext 2\nnexti\nbacktrace\ninfo locals\ninfo source\n")
  assert "bugs.c" not in out and "no variables are known here" in out and "compile with -g" in out
  assert "compile with -g" in commands(built, "plain.o", "list\n", fails=True)
  assert "compile with -g" in commands(built, "plain.o", "break bugs.c:5\n", fails=True)


@pytest.mark.parametrize("mcpu", ["gfx1100", "gfx1201", "gfx942"])
def test_the_report_counts_lines(built: Path, mcpu: str) -> None:
  arrays = [np.zeros(128, np.float32), np.arange(130, dtype=np.float32), 128, np.float32(2.5)]
  r = tinyhw.report(str(built / f"{mcpu}O2.o"), "bugs", 2, 64, arrays, exactness=False)
  assert r.lines == sorted(r.lines, key=lambda s: (-s.waves, s.file, s.line))
  lines = {s.line: s for s in r.lines}
  assert lines[8].text == "float got = p[i];" and lines[8].function == "far" and lines[8].bytes == 128 * 4
  assert sum(s.bytes for s in r.lines if s.line in {17, 8}) == 128 * 4 * 3 and lines[21].bytes == 128 * 4
  assert sum(s.waves for s in r.lines) == sum(i.waves for i in r.instructions if i.line) <= r.executed
  assert {i.line for i in r.instructions if i.waves and i.line} == {s.place for s in r.lines}
  out = io.StringIO()
  show(r, Console(file=out, width=200, highlight=False, markup=False))
  assert any(row.startswith("bugs.c:8 ") and row.rstrip().endswith("float got = p[i];")
             for row in out.getvalue().splitlines())
  assert "<h2>Source lines</h2>" in r.html() and "float got = p[i];" in r.html()
  assert {s["line"] for s in json.loads(r.json())["lines"]} == lines.keys()
