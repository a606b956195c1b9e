"""Calls of programs that know nothing of tinyhw, shown by ptrace: no card is here, so other files stand for device
files.

The kernel answers ENOTTY to a driver's calls there, and that is what must be recorded. The tracer runs in a process of
its own: it waits for all children of its process.
"""
from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tinyhw.autogen import kfd
from tinyhw.queues import calls
from tinyhw.queues.capture import Capture

if sys.platform != "linux" or platform.machine() != "x86_64": pytest.skip("x86-64 Linux alone", allow_module_level=True)

VERSION = next(number for number, call in kfd.IOCTLS.items() if call.name == "AMDKFD_IOC_GET_VERSION")
SNIFF = """
import sys
from pathlib import Path
from tinyhw.core.errors import Error
from tinyhw.toolbox.sniff import sniff
try: code, found = sniff(Path(sys.argv[1]), sys.argv[2:], {"/dev/null": "amd", "/dev/zero": "nv"})
except Error as error: sys.exit(str(error))
print(*found.paths)
sys.exit(code)
"""
PROGRAM = f"""
import fcntl, mmap, os, sys, threading
def ask(fd):
  try: fcntl.ioctl(fd, {VERSION}, bytearray([7, 0, 0, 0, 0, 0, 0, 0]))
  except OSError as error: assert error.errno == 25
if sys.argv[1:] == ["again"]: ask(int(os.environ["FD"])); sys.exit(3)
fd = os.open("/dev/null", os.O_RDWR)
ask(fd)
thread = threading.Thread(target=ask, args=(fd,)); thread.start(); thread.join()
zeros = os.open("/dev/zero", os.O_RDWR)
memory = mmap.mmap(zeros, 8192); memory.close()
try: os.open("/dev/null/none", os.O_RDONLY)
except OSError: pass
os.close(zeros)
if (child := os.fork()) == 0:
  ask(fd)
  os._exit(0)
os.waitpid(child, 0)
os.set_inheritable(fd, True)
os.execve(sys.executable, [sys.executable, "-I", "-S", __file__, "again"], {{"FD": str(fd)}})
"""


def _sniffing(path: Path, *words: str) -> list[str]: return [sys.executable, "-c", SNIFF, str(path), *words]


def _told(path: Path) -> list[tuple[int, str]]:
  """(thread, text) of a capture's calls, but those that ask whether standard streams are a terminal."""
  return [(s.event.thread, text) for s in Capture(path) if (text := calls.text(s)) and "_IO('T'" not in text]


def test_threads_forks_and_execs_are_followed(tmp_path: Path) -> None:
  (tmp_path / "program.py").write_text(PROGRAM)
  done = subprocess.run(_sniffing(tmp_path / "run.thq", sys.executable, "-I", "-S", str(tmp_path / "program.py")),
                        capture_output=True, text=True, stdin=subprocess.PIPE)
  assert done.returncode == 3, done.stderr
  asked = "AMDKFD_IOC_GET_VERSION(kfd_ioctl_get_version_args(major_version=7, minor_version=0)) = -1 ENOTTY"
  told = _told(tmp_path / "run.thq")
  assert [thread for thread, text in told if text.startswith(asked)] == [0, 1, 0]  # a thread's, and what exec has begun
  texts = [text for _, text in told]
  assert any(t.startswith("mmap(fd=") and "0x2000 bytes" in t for t in texts), texts
  assert any(t.startswith("munmap(") and t.endswith("0x2000)") for t in texts), texts
  assert any(t.startswith("open('/dev/null/none') = -1 ENOTDIR") for t in texts), texts
  other, = {*tmp_path.glob("run.*.thq")}
  assert [text.startswith(asked) for _, text in _told(other) if "GET_VERSION" in text] == [True]
  assert set(done.stdout.split()) == {str(tmp_path / "run.thq"), str(other)}


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_behind(how: signal.Signals, tmp_path: Path) -> None:
  """The tracer is killed, or Ctrl-C is typed: the program ends, and what it did until then is on file."""
  (tmp_path / "program.py").write_text("import os, signal\nos.close(os.open('/dev/null', os.O_RDWR))\n"
                                       "os.write(1, b'here')\nwhile True: signal.pause()\n")
  tracer = subprocess.Popen(_sniffing(tmp_path / "run.thq", sys.executable, "-I", "-S", str(tmp_path / "program.py")),
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
  assert tracer.stdout is not None and tracer.stdout.read(4) == b"here"
  if how is signal.SIGKILL: tracer.kill()
  else: os.killpg(tracer.pid, how)
  tracer.stdout.read()  # ends when nobody has the other end any more
  assert tracer.wait() == (-how if how is signal.SIGKILL else 128 + how)
  assert "open('/dev/null') = 3" in [text for _, text in _told(tmp_path / "run.thq")]


def test_what_cannot_be_traced_says_so(tmp_path: Path) -> None:
  """A program that is traced cannot be traced by another."""
  inner = _sniffing(tmp_path / "inner.thq", "/bin/true")
  done = subprocess.run(_sniffing(tmp_path / "outer.thq", *inner), capture_output=True, text=True)
  first = done.stderr.splitlines()[0]
  assert done.returncode == 1, done.stderr
  assert "lets nobody look" in first and "ptrace: Operation not permitted" in first, done.stderr
  missing = subprocess.run(_sniffing(tmp_path / "none.thq", "/no/program"), capture_output=True, text=True)
  assert missing.stderr.startswith("/no/program: cannot be run: No such file"), missing.stderr
