"""`tinyhw run` with AMD's cards: what programs see, and how they end."""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.mock.clients.running import TINYHW, run, script
from tinyhw.autogen import linux_trace as linux
from tinyhw.mock.clients.filter import NAMES, program


def test_the_filter_tells_of_what_it_should() -> None:
  """The filter's instructions, run here over calls."""
  rows = program(NAMES, (0x4B, 0x64))
  def runs(number: int, request: int = 0, arch: int = linux.AUDIT_ARCH_X86_64) -> int:
    data = {0: number, 4: arch, 24: request}
    at = value = 0
    while True:
      code, yes, no, operand = rows[at]
      kind = code & 7
      if kind == linux.BPF_RET: return operand
      at += 1
      if kind == linux.BPF_LD: value = data[operand]
      elif kind == linux.BPF_ALU: value &= operand
      else: at += yes if value == operand else no
  told = {n for n in range(500) if runs(n) == linux.SECCOMP_RET_USER_NOTIF}
  assert told == set(NAMES)
  assert runs(linux.NR_ioctl, 0xC0084B01) == runs(linux.NR_ioctl, 0xC0406400) == linux.SECCOMP_RET_USER_NOTIF
  assert runs(linux.NR_ioctl, 0x5401) == runs(linux.NR_openat, arch=0x40000003) == linux.SECCOMP_RET_ALLOW


def test_a_program_sees_devices_and_sysfs() -> None:
  assert script("""
import os, stat
for path in "/dev/kfd", "/dev/dri/renderD128", "/dev/dri/card0":
  found = os.stat(path)
  print(stat.S_ISCHR(found.st_mode), os.major(found.st_rdev), os.minor(found.st_rdev))
print(sorted(os.listdir("/dev/dri")), os.access("/dev/kfd", os.R_OK), os.path.exists("/dev/dri/renderD130"))
print(os.readlink("/sys/dev/char/226:128").split("/")[-3:], os.path.realpath("/sys/class/drm/card0/device"))
print(open("/sys/class/kfd/kfd/topology/nodes/1/name").read().strip(), os.stat("/etc/passwd").st_size > 0)
fd = os.open("/dev/dri/renderD128", os.O_RDWR)
print(stat.S_ISCHR(os.fstat(os.dup(fd)).st_mode), os.minor(os.fstat(fd).st_rdev))
try: open("/sys/class/kfd/kfd/topology/nodes/1/name", "w")
except PermissionError as error: print(error.strerror)
""", cards="gfx1100,gfx1200") == [
    "True 510 0", "True 226 128", "True 226 0",
    "['card0', 'card1', 'renderD128', 'renderD129'] True False",
    "['0000:03:00.0', 'drm', 'renderD128'] /sys/devices/pci0000:00/0000:03:00.0", "ip discovery True",
    "True 128", "Permission denied"]


def test_the_exit_status_is_the_program_s() -> None:
  assert run("sh", "-c", "exit 7").returncode == 7
  assert run("sh", "-c", "kill -9 $$").returncode == 137
  none = run("true")
  assert none.returncode == 0 and "true has looked for no GPU" in none.stderr


@pytest.mark.parametrize(("cards", "words", "text"), (
  ("gfx1100", ("no-such-program",), "no-such-program: cannot be run: No such file or directory"),
  ("gfx9999", ("true",), "unknown card 'gfx9999'"),
  ("gfx1100,sm_90", ("true",), "cards of two vendors"),
))
def test_what_cannot_be_run(cards: str, words: tuple[str, ...], text: str) -> None:
  done = run(*words, cards=cards)
  assert done.returncode and text in done.stderr and "Traceback" not in done.stderr


def test_nothing_is_left_behind() -> None:
  def left() -> set[str]: return {p.name for p in Path("/dev/shm").glob("tinyhw-*")}
  before = left()
  run("sh", "-c", "sleep 100 & kill -9 $PPID")  # the guard
  assert left() <= before


def test_a_static_program_is_served(tmp_path: Path) -> None:
  if shutil.which("gcc") is None: pytest.skip("there is no gcc")
  (tmp_path / "version.c").write_text(r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
int main(void) {
  unsigned version[2] = {0};
  int failed = ioctl(open("/dev/kfd", O_RDWR), 0x80084b01, version);
  printf("%d %u\n", failed, version[0]);
}
""")
  done = subprocess.run(["gcc", "-static", "version.c", "-o", "version"], cwd=tmp_path, capture_output=True, text=True)
  if done.returncode: pytest.skip(f"gcc links nothing statically: {done.stderr}")
  assert run(str(tmp_path / "version")).stdout == "0 1\n"


def test_who_is_served_already_is_told_so() -> None:
  """There is one listener for a program and all below it."""
  done = run(*TINYHW, "run", "--mockgpu", "gfx1100", "--", "true")
  assert done.returncode == 1
  assert "does not let a program's calls come to a host (Device or resource busy)" in done.stderr
