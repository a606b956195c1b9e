"""What commands print, line by line: transcripts that were read and found right. Addresses are shown as ADDRESS.

`TRANSCRIPTS=write` in the environment writes them anew; what changed is then to be read.
"""
from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tinyhw.cli import tinyhw

FOLDER = Path(__file__).parent / "transcripts"
OUT, A = "out:f32:128", "a.npy"
LAUNCHES: dict[str, list[str]] = {
  "add": ["--kernel", "add", "--grid", "2", "--block", "64", "--arg", OUT, "--arg", A, "--arg", "0.5"],
  "turn": ["--kernel", "turn", "--block", "64", "--arg", "out:i32:64"],
  "spill": ["--kernel", "spill", "--block", "32", "--arg", "out:i32:32"],
  "roots": ["--kernel", "roots", "--block", "64", "--arg", "out:f32:64", "--arg", A],
}
SCRIPTS: dict[str, tuple[str, str]] = {
  "debug_looking": ("add", """
    info dispatch
    info waves
    info waves each
    info breakpoints
    info snapshots
    step 3
    info regs
    info regs s0 s4-s6 v0
    info registers s2-3
    wave 3
    wave
    info vregs v0
    info vregs /u v0-v1
    step
    info waves
    stepi 2
    print v0
    print/x v0
    print/u v0[3]
    print/f 1065353216
    print/h 15360
    print/d -3
    print 3
    print 2048
    print 1.5
    p exec
    print s4
    print/f s4
    x a
    x/3 a+8
    x/4f a+0x100
    x/2d a
    x/2u a
    x/2g a
    x/4h a
    x/6g a
    x/6f64 a
    x/20b a
    x/9f32 a
    x/3u8 a
    x/2f64 a
    backtrace
    disas
    disas all
    disas add+0x14
    info symbols
    i pl
  """),
  "debug_stopping": ("add", """
    break add+0xc
    b on global_store_b32 wave 2 ignore 0
    tbreak on global_store_b32 workgroup 1
    break on v_add_f32 lane 5 if s4 > 1
    info breaks
    disable 1 4
    enable 4
    info break
    continue
    delete 2
    info breaks
    cont
    delete
    info breaks
    watch f32(out+0x180)
    awatch out+0x1c0:4 wave 3
    rwatch a+0x100:8
    wwatch out+0x100
    info breaks
    c
    c
    buffers
  """),
  "debug_changing": ("add", """
    snapshot first
    snapshot
    info snapshots
    step 2
    set s20 = 7
    set v1[3] = 9
    set v1[4].f32 = 2
    set v2 = 1.5
    set v3 = 0 - 2000
    set v4 = 0 - 1
    set v5 = 1024
    print v3
    print v3.i32
    print v4.i32
    print v5
    watch v1[3] wave 1 if s20 > 5
    watch v1[3] if s20 > 5
    info breaks
    delete
    set u32(out) = 77
    set f32(out+4) = 0.25
    print v1
    print v2
    x/2 out
    diff 1
    diff 1 2
    diff 1 wave 0
    restore 1
    print s20
    diff 1
    break add+0x14
    continue
    restart
    info breaks
    n
    next 2
    until add+0x38
    finish
    info waves
  """),
  "debug_lds": ("turn", """
    info dispatch
    wwatch lds 0:4
    rwatch lds 8
    c
    c
    info breaks
    step
    lds
    lds/4
    lds/6d
    lds/3u 12
    lds/2f32 0x10
    lds/4u8 4
    lds/9 0xf0
    lds/100 0xe0
    print lds.u32(12)
    finish
    buffers
  """),
  "debug_scratch": ("spill", """
    info dispatch
    break on scratch_load_b32
    break on scratch_load_*
    c
    step
    scratch 3
    scratch 3 12
    scratch 3 12 2
    scratch 31 0 100
    c
    buffers
  """),
  "debug_branches": ("roots", """
    break on v_sqrt_f32
    c
    info regs
    info vregs /f v1
    next
    info waves
    disas all
    delete
    c
    buffers
  """),
}  # fmt: skip


def check(name: str, text: str) -> None:
  """Hold a text against its transcript."""
  text = re.sub(r"0x[0-9a-f]{9,}", "ADDRESS", text)
  text = "".join(line.rstrip() + "\n" for line in re.sub(r" +ADDRESS", " ADDRESS", text).splitlines())
  file = FOLDER / f"{name}.txt"
  if os.environ.get("TRANSCRIPTS") == "write": file.write_text(text)
  assert text == file.read_text()


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
  """The beginning of a launch, in a folder with its files."""
  monkeypatch.chdir(tmp_path)
  for name in ("DEV", "MOCKGPU", "EMU", "EMU_CHECK"): monkeypatch.delenv(name, raising=False)
  shutil.copy(FOLDER / "kernels.o", ".")  # tests.conftest.build of kernels.ll made it: other LLVMs make other code
  np.save(A, np.arange(128, dtype=np.float32))
  return ["launch", "kernels.o"]


def run(words: list[str], status: int = 0) -> str:
  done = CliRunner().invoke(tinyhw, words)
  if done.exception is not None and not isinstance(done.exception, SystemExit): raise done.exception
  assert done.exit_code == status, done.output
  return done.output


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_session_of_the_debugger(words: list[str], name: str) -> None:
  launch, script = SCRIPTS[name]
  Path("script").write_text("\n".join(line.strip() for line in script.strip().splitlines()))
  check(name, run([*words, *LAUNCHES[launch], "--debug", "--command", "script"]))


@pytest.mark.parametrize("name", LAUNCHES)
def test_a_report(words: list[str], name: str) -> None:
  check(f"report_{name}", run([*words, *LAUNCHES[name], "--report"]))


def test_an_object_as_text(words: list[str]) -> None: check("disasm", run(["disasm", "kernels.o"]))


def test_the_help_of_the_debugger(words: list[str]) -> None:
  Path("script").write_text("help\nhelp step\nh bt\nhelp fini")
  check("debug_help", run([*words, *LAUNCHES["add"], "--debug", "--command", "script"]))
