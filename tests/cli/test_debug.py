"""`tinyhw launch --debug`: commands from a file, from a pipe and from a terminal."""
from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests import command

MAIN = [sys.executable, "-c", "from tinyhw.cli import main; main()"]


@pytest.fixture
def words(tmp_path: Path, add_kernel: bytes) -> list[str]:
  """A launch of `add` over two workgroups."""
  (tmp_path / "add.o").write_bytes(add_kernel)
  np.save(tmp_path / "a.npy", np.arange(128, dtype=np.float32))
  return ["launch", str(tmp_path / "add.o"), "--kernel", "add", "--grid", "2", "--block", "64", "--arg", "out:f32:128",
          "--arg", str(tmp_path / "a.npy"), "--arg", "0.5", "--debug"]


def run(words: list[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
  clean = {k: v for k, v in os.environ.items() if k not in ("DEV", "MOCKGPU")}
  return command.tinyhw(*words, stdin=stdin, env=clean, timeout=60)


SCRIPT = """
# the store of the second workgroup's second wave
break on global_store_b32 wave 3
info breaks
continue
info waves
info regs
info vregs v0 v2
print v2.f32
print/x s4
x/4f a+0x180
disas
snapshot before
stepi
diff 1
restore 1
set v2[0].f32 = 7.5
watch f32(out+0x180)
continue
backtrace
delete
continue
buffers
"""


def test_a_script_of_commands(tmp_path: Path, words: list[str]) -> None:
  (tmp_path / "script").write_text(SCRIPT)
  done = run([*words, "--command", str(tmp_path / "script"), "--save", f"0={tmp_path / 'out.npy'}"])
  assert done.returncode == 0, done.stderr
  for part in ("breakpoint 1: on global_store_b32 wave 3", "breakpoint 1, on global_store_b32 wave 3\nwave",
               "=>  0-3        4  running  add+0x70            32        18", "exec ffffffff (32 lanes)",
               "v2.f32 [ 0]  96.5  97.5", "s4 = 3f000000", "a+0x180          96 97 98 99", "=>   0x", "snapshot 1",
               "wave 3 pc: add+0x70 -> add+0x78", "watch 2, f32(out+0x180): 0.0 -> 7.5, by add+0x70", "#0  0x",
               "the dispatch has ended: 4 waves, "):
    assert part in done.stdout, f"{part!r} is not in\n{done.stdout}"
  out = np.load(tmp_path / "out.npy")
  assert out[96] == 7.5 and (np.delete(out, 96) == np.delete(np.arange(128) + 0.5, 96)).all()


def test_commands_from_a_pipe_end_with_the_first_error(words: list[str]) -> None:
  done = run(words, "stepi 2\nbreak nowhere\ncontinue\n")
  assert done.returncode == 1 and "(tinyhw) stepi 2" in done.stdout and "(tinyhw) continue" not in done.stdout
  assert done.stderr == "tinyhw: no symbol is called 'nowhere'; there are add\n"


@pytest.mark.parametrize(("command", "message"), [
  ("fly", "unknown command 'fly'; help lists them"), ("step x", "'x' is no whole number"),
  ("x/8f", "ADDRESS is missing"),
  ("print", "EXPRESSION is missing"), ("print/q v0", "no format /q"), ("info fish", "info fish is unknown"),
  ("set v0", "set REGISTER = EXPRESSION"), ("lds", "the kernel has no LDS"), ("scratch 0", "no scratch memory"),
  ("delete 3", "no breakpoint 3"), ("break add wave x", "wave: 'x' is no number"), ("???", "unknown command"),
  ("x/4x 0x10", "not mapped"), ("break add if v0 >", "'v0 >' is no expression"), ("info vregs s3", "s3 is no vector"),
  ("set v0.f64 = 1", "f64 does not fit one register"), ("wave 12", "no wave 12"), ("restore 1", "no snapshot 1")])
def test_wrong_commands_are_one_line(words: list[str], command: str, message: str,
                                     capsys: pytest.CaptureFixture[str]) -> None:
  from rich.console import Console

  import tinyhw
  from tinyhw.cli.launch import parse_argument
  from tinyhw.terminal.amdgcn import AmdShell
  args = [parse_argument(a) for a in ("out:f32:128", words[words.index("--arg", 10) + 1], "0.5")]
  binary = Path(words[1]).read_bytes()
  shell = AmdShell(lambda: tinyhw.debug(binary, "add", (2,), (64,), args), Console(width=110), interactive=False)
  shell.read([command])
  error = capsys.readouterr().err
  assert shell.failed and message in error and len(error.splitlines()) == 1
  shell.session.close()


WORDS = (
  "break", "tbreak", "watch", "awatch", "rwatch", "delete", "enable", "disable", "info", "waves", "regs", "vregs",
  "breaks", "x", "x/8f", "x/3q", "lds", "lds/4x", "scratch", "print", "print/f", "print/x", "set", "step", "stepi",
  "next", "until", "finish", "continue", "wave", "snapshot", "diff", "restore", "disas", "backtrace", "buffers",
  "help", "add", "add+0x10", "+0x14", ".L1", "on", "v_*", "s_load*", "if", "v3", "v3[5]", "v3.f32", "s[4:5]", "exec",
  "vcc", "s4", "=", "0", "1", "-1", "0x100", "99999999999999999999", "out", "a", "u32(out)", "lds.u32(0)", "(", ")",
  "[", "lane", "3", "wave", "workgroup", "ignore", ">", "<<", "/", "*", "~v0", "1.5", "'", "\"", "#", "\\", "\x00",
  "pc", "add+0", "u32(0)", "all", "each", "restart", "places", "symbols", "snapshots", "dispatch")


def test_whatever_is_typed_is_a_command_or_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
  """Random words: never another kind of error, never more than a line of it, and never an end of the session."""
  import io
  import random

  from rich.console import Console

  import tinyhw
  from tinyhw.terminal.amdgcn import AmdShell
  rng = random.Random(3)
  a = np.arange(128, dtype=np.float32)
  binary = Path(words[1]).read_bytes()
  shell = AmdShell(lambda: tinyhw.debug(binary, "add", (2,), (64,), [np.zeros_like(a), a, 0.5]),
                Console(width=110, file=io.StringIO()), interactive=False)
  good = 0
  for k in range(700):
    line = " ".join(rng.choice(WORDS) for _ in range(rng.randrange(1, 6)))
    if rng.random() < 0.5: line = f"{rng.choice(WORDS[:37])} {line}"
    shell.failed = False
    shell.read([line])
    error = capsys.readouterr().err
    assert len(error.splitlines()) == shell.failed, f"{line!r} gave {error!r}"
    assert not shell.done
    good += not shell.failed
    if k % 40 == 39: shell.onecmd("restart")
  assert good > 40
  shell.session.close()


def test_a_fault_stands_in_the_debugger(words: list[str]) -> None:
  words[words.index("out:f32:128")] = "0x7000000000"
  done = run(words, "continue\nprint v0\n")
  assert done.returncode == 0, done.stderr
  assert "PageFault: GPU page fault: write of 4 bytes at 0x7000000000" in done.stdout
  assert "=>   0x100001070 <add+0x70>         global_store_b32" in done.stdout


def test_options_that_do_not_go_together(tmp_path: Path, words: list[str]) -> None:
  done = run([*words, "--device", "AMD"])
  assert done.returncode == 1 and "--debug: runs on the emulator itself, not on AMD" in done.stderr
  done = run([*words, "--command", str(tmp_path / "none")])
  assert done.returncode == 1 and "none: cannot be read" in done.stderr and len(done.stderr.splitlines()) == 1
  done = run([*[w for w in words if w != "--debug"], "--command", "x"])
  assert done.returncode == 1 and "--command: needs --debug" in done.stderr


def test_a_terminal_with_interruption(tmp_path: Path) -> None:
  """A prompt; Ctrl-C stands the run; quit ends the process."""
  from tests.conftest import build
  spin = """define amdgpu_kernel void @spin(ptr addrspace(1) %p) #0 {
    br label %loop
  loop:
    %i = phi i32 [0, %0], [%next, %loop]
    %next = add i32 %i, 1
    store volatile i32 %next, ptr addrspace(1) %p
    br label %loop
  }"""
  (tmp_path / "spin.o").write_bytes(build(spin))
  main, side = pty.openpty()
  env = os.environ | {"XDG_STATE_HOME": str(tmp_path / "state"), "TERM": "dumb"}
  launch = [*MAIN, "launch", str(tmp_path / "spin.o"), "-k", "spin", "-a", "out:i32:1", "--debug"]
  process = subprocess.Popen(launch, stdin=side, stdout=side, stderr=side, env=env, start_new_session=True)
  os.close(side)
  seen = ""

  def wait_for(text: str) -> None:
    nonlocal seen
    end = time.monotonic() + 40
    while text not in seen:
      assert time.monotonic() < end, seen
      seen += os.read(main, 4096).decode(errors="replace")

  try:
    wait_for("(tinyhw) ")
    os.write(main, b"contin\t\n")
    wait_for("continue")
    time.sleep(0.3)
    process.send_signal(2)
    wait_for("interrupted")
    seen = seen[seen.index("interrupted"):]
    wait_for("(tinyhw) ")
    os.write(main, b"nonsense\nstepi\nquit\n")
    wait_for("unknown command 'nonsense'")
    seen = seen[seen.index("nonsense'"):]
    wait_for("wave 0 at spin+")
    while True:
      try:
        if not os.read(main, 4096): break
      except OSError: break  # Linux's end of a closed terminal
    assert process.wait(20) == 0
    assert "continue" in (tmp_path / "state/tinyhw/debug_history").read_text()
  finally:
    process.kill()
    process.wait()
    os.close(main)


KEEPS = """
import readline
from tinyhw.terminal.prompt import history
with history(lambda *_: []):
  print([readline.get_history_item(n + 1) for n in range(readline.get_current_history_length())])
  readline.add_history("print v1")
"""


@pytest.mark.parametrize("what", ["nothing", "file", "letters", "link", "fifo", "of others", "no home"])
def test_commands_are_kept_for_the_next_session_in_a_file_of_the_users_alone(tmp_path: Path, what: str) -> None:
  home = tmp_path / "home"
  state = home / ".local" / "state" / "tinyhw"
  aside = tmp_path / "aside"
  aside.write_text("aside\n")
  if what != "no home": home.mkdir()
  if what not in ("nothing", "no home"): state.mkdir(parents=True, mode=0o700)
  if what == "file": (state / "debug_history").write_text("stepi\n")
  if what == "letters": (state / "debug_history").write_bytes("stepi\nprint ä\n".encode() + b"\xff\n")
  if what == "link": (state / "debug_history").symlink_to(aside)
  if what == "fifo": os.mkfifo(state / "debug_history")
  if what == "of others": state.chmod(0o777)
  env = {k: v for k, v in os.environ.items() if k != "XDG_STATE_HOME"} | {"HOME": str(home)}
  if what == "letters": env |= {"LC_ALL": "C"}
  once, twice = (subprocess.run([sys.executable, "-c", KEEPS], env=env, capture_output=True, text=True, timeout=60)
                 for _ in range(2))
  kept = what not in ("of others", "no home")
  first = ["stepi"] if what == "file" else []
  if what == "letters": assert "'stepi'" in once.stdout and twice.stdout.endswith(", 'print v1']\n")
  else: assert [once.stdout.strip(), twice.stdout.strip()] == [str(first), str([*first, "print v1"] if kept else first)]
  assert aside.read_text() == "aside\n" and home.exists() == (what != "no home")
  assert once.stderr == {"of others": f"tinyhw: history not kept: {state}: others may write there\n",
                         "no home": f"tinyhw: history not kept: {home}: the home folder does not exist\n"}.get(what, "")
  if kept: assert (state / "debug_history").stat().st_mode & 0o777 == 0o600 and len(os.listdir(state)) == 1
