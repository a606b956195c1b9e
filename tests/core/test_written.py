"""Files that cannot be written: one line that names them."""
from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path

import pytest

import tinyhw
from tests import command
from tests.cli.test_absurd import COMMAND
from tests.queues.conftest import MACHINES, PROGRAM, record
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.written import save, writing
from tinyhw.queues.container import Reader

ROOT = Path(tinyhw.__file__).parent
WRITES = {"write_text", "write_bytes", "save"}
KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k (.param .u64 out) { ret; }"""


# The system has no room for a capture of more than 8 KiB.
FULL = """import errno, os
real = os.write
def write(fd, data):
  if os.readlink(f"/proc/self/fd/{fd}").endswith(".thq") and os.fstat(fd).st_size + len(data) > 8192:
    real(fd, bytes(data[:7]))
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
  return real(fd, data)
os.write = write
"""


def test_a_file_is_named(tmp_path: Path) -> None:
  save(tmp_path / "a", "ä")
  save(str(tmp_path / "b"), b"\xff")
  assert (tmp_path / "a").read_bytes() == "ä".encode() and (tmp_path / "b").read_bytes() == b"\xff"
  with pytest.raises(InvalidArgument, match="^/nowhere/x: cannot be written: No such file"): save("/nowhere/x", "")
  with pytest.raises(InvalidArgument, match="^/dev/full: cannot be written: No space left on device$"):
    save("/dev/full", "x" * 100)
  with pytest.raises(InvalidArgument, match="^f: cannot be written: 3 requested$"), writing("f"):
    raise OSError("3 requested")  # as NumPy says it


LAUNCH = ("launch", "k.ptx", "--kernel", "k", "--block", "1", "--device", "EMU", "--arg", "out:f32:9999")


@pytest.mark.parametrize("words", [
  (*LAUNCH, "--save", "0=full.npy"), (*LAUNCH, "--report-file", "full.html"), ("asm", "long.s", "-o", "full.npy"),
  ("conform", "EMU", "--only", "gfx1100/v_add_f32/", "--json-file", "full.npy")],
  ids=lambda w: " ".join(w[:1] + w[-2:]))
def test_commands_say_which_file_has_no_room(words: tuple[str, ...], tmp_path: Path) -> None:
  (tmp_path / "k.ptx").write_text(KERNEL)
  (tmp_path / "long.s").write_text("s_nop 0\n" * 99)
  for name in ("full.npy", "full.html"): (tmp_path / name).symlink_to("/dev/full")
  done = subprocess.run([*COMMAND, *words], cwd=tmp_path, capture_output=True, text=True, timeout=120)
  name = words[-1].removeprefix("0=")
  assert done.returncode == 1 and "Traceback" not in done.stderr
  assert done.stderr.splitlines()[-1] == f"tinyhw: {name}: cannot be written: No space left on device"


@pytest.mark.parametrize("device", MACHINES)
def test_a_program_goes_on_without_its_capture(device: str, tmp_path: Path) -> None:
  """One line; what was written up to there can be read."""
  done = record(path := tmp_path / "c.thq", device, f"{FULL}{PROGRAM}print('done')")
  assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
  line, = done.stderr.splitlines()
  assert line.startswith(f"tinyhw: {path}: cannot be written: No space left on device; the capture ends here, after ")
  assert 0 < len([*Reader(path).events()]) <= int(line.split()[-2]) and path.stat().st_size <= 8192


@pytest.mark.parametrize("name", ["PROFILE", "VIZ"])
def test_what_is_written_at_the_end(name: str) -> None:
  done = command.python(PROGRAM, env=os.environ | {"DEV": "AMD", "MOCKGPU": "gfx1100", name: "/dev/full"})
  assert done.returncode == 0
  assert done.stderr.splitlines() == [f"tinyhw: {name}: /dev/full: cannot be written: No space left on device"]


def test_every_file_is_written_so() -> None:
  """By `save`, or in a block of `writing`: the system's error of a write has no name."""
  wrong = []
  for path in sorted(ROOT.rglob("*.py")):
    if path.name == "written.py" or path.is_relative_to(ROOT / "tools"): continue
    tree = ast.parse(path.read_text())
    inside = {id(n) for w in ast.walk(tree) if isinstance(w, ast.With) and any(
      isinstance(i.context_expr, ast.Call) and getattr(i.context_expr.func, "id", "") == "writing" for i in w.items)
      for n in ast.walk(w)}
    for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)):
      assert isinstance(call.func, ast.Attribute)
      of = getattr(call.func.value, "id", "")
      if call.func.attr in WRITES and (call.func.attr != "save" or of == "np") and id(call) not in inside:
        wrong.append(f"{path.relative_to(ROOT)}:{call.lineno}")
  assert not wrong
