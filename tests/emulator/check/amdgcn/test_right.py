"""No finding on right kernels of C (right_kernels.c), as the clang at hand compiles them for each generation.

The quick run takes a level of each generation and every other kernel.
"""
from __future__ import annotations

import functools
import re
import shutil
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest

from tests.strength import THOROUGH
from tinyhw.drive.amd.bare import BareRuntime
from tinyhw.emulator.amdgcn import Dispatch
from tinyhw.emulator.check.checker import Checker
from tinyhw.emulator.check.report import DEFAULT, Report
from tinyhw.emulator.engines.amdgcn import dispatch

SOURCE = Path(__file__).parents[2] / "right_kernels.c"
KERNELS = re.findall(r"^KERNEL (\w+) ARGS", SOURCE.read_text(), re.M)
CLANG = shutil.which("clang") or shutil.which("clang-19")
SIZE = 1024
LEVELS = {"gfx1100": "2", "gfx1150": "1", "gfx1201": "3", "gfx90a": "0", "gfx942": "2"}
BUILDS = [(cpu, level) for cpu in LEVELS for level in "0123"] if THOROUGH else list(LEVELS.items())


def version() -> int:
  """clang's major version."""
  assert CLANG is not None
  text = subprocess.run([CLANG, "--version"], capture_output=True, text=True, check=True).stdout
  found = re.search(r"version (\d+)", text)
  return int(found[1]) if found else 0


def run(code: bytes, name: str, kinds: frozenset[str]) -> tuple[Report, bytes]:
  """Launch a kernel; what the checks found, and the results."""
  checker = Checker(kinds)
  runtime = BareRuntime(Dispatch, functools.partial(dispatch, engine="ref", observer=checker))
  try:
    program = runtime.load_kernel(code, name)
    numbers = np.arange(SIZE, dtype=np.uint32)
    numbers[:256] += 1
    payload = bytearray(program.kernel.kernarg_size)
    for array, parameter in zip((numbers, numbers[::-1].copy(), numbers * 0), program.kernel.arguments):
      buffer = runtime.take("array", array.nbytes)
      runtime.copyin(buffer, array.view(np.uint8).data)
      assert buffer.address is not None
      payload[parameter.offset:parameter.offset + 8] = buffer.address.to_bytes(8, "little")
    items = 256 if name.endswith("_256") else 64
    program.launch(bytes(payload), (256 // items * (2 if items == 256 else 1), 1, 1), (items, 1, 1))
    assert buffer.address is not None
    return checker.report, bytes(runtime.space.read(buffer.address, 4 * SIZE))
  finally: runtime.close()


@pytest.mark.skipif(CLANG is None, reason="no clang is installed")
@pytest.mark.parametrize(("cpu", "level"), BUILDS)
def test_no_finding_on_right_kernels(cpu: str, level: str, tmp_path: Path) -> None:
  assert CLANG is not None
  out = tmp_path / "kernels.co"
  subprocess.run([CLANG, f"-O{level}", "-x", "c", "-target", "amdgcn-amd-amdhsa", f"-mcpu={cpu}", "-nogpulib",
                  "-fuse-ld=lld", str(SOURCE), "-o", str(out)], check=True)
  code = out.read_bytes()
  kinds = frozenset(DEFAULT) - ({"wait"} if cpu == "gfx1201" and version() < 21 else set())  # see docs/checks.md
  found = []
  for name in KERNELS:
    if not THOROUGH and (zlib.crc32(name.encode()) + len(cpu)) % 2: continue
    report, _ = run(code, name, kinds)
    if len(report): found.append(f"{name}: {report}")
  assert not found, "\n".join(found[:5])
