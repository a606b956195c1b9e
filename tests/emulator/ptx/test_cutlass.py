"""Products by CUTLASS, as whole programs of nvcc's, on both engines and under the checks. They need nvcc and CUTLASS's
sources:

  TINYHW_CUTLASS=/path/to/cutlass python -m pytest tests/emulator/ptx/test_cutlass.py
"""
from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.cli.test_cli import run
from tests.wire.test_fatbin import NVCC

CUTLASS = os.environ.get("TINYHW_CUTLASS")
SOURCE = Path(__file__).with_name("cutlass_gemm.cu")
pytestmark = [pytest.mark.skipif(NVCC is None, reason="needs nvcc"),
              pytest.mark.skipif(CUTLASS is None, reason="needs CUTLASS's sources (TINYHW_CUTLASS)")]
AMPERE = {
  "f16": ("cutlass::half_t", "float", {"DEPTH": 32, "INSTRUCTION": 16}),
  "bf16": ("cutlass::bfloat16_t", "float", {"DEPTH": 32, "INSTRUCTION": 16}),
  "tf32": ("cutlass::tfloat32_t", "float", {"DEPTH": 16, "INSTRUCTION": 8}),
  "s8": ("int8_t", "int32_t", {"DEPTH": 64, "INSTRUCTION": 32}),
}
_COOPERATIVE = {"SCHEDULE": "KernelTmaWarpSpecializedCooperative", "EPILOGUE": "TmaWarpSpecializedCooperative"}
_PINGPONG = {"SCHEDULE": "KernelTmaWarpSpecializedPingpong", "EPILOGUE": "TmaWarpSpecialized"}
_ONE, _TWO, _FOUR = ({"CLUSTER": m, "ACROSS": n} for m, n in ((1, 1), (2, 1), (2, 2)))
HOPPER = {
  "f16 cooperative, clusters of 2": ("cutlass::half_t", "float", {"DEPTH": 64, **_TWO, **_COOPERATIVE}),
  "f16 ping-pong, clusters of 4": ("cutlass::half_t", "float", {"DEPTH": 64, **_FOUR, **_PINGPONG}),
  "bf16 stream-k": ("cutlass::bfloat16_t", "float",
                    {"DEPTH": 64, **_ONE, "SCHEDULER": "StreamKScheduler", **_COOPERATIVE}),
  "e4m3 cooperative": ("cutlass::float_e4m3_t", "float", {"DEPTH": 128, **_TWO, **_COOPERATIVE}),
  "s8 ping-pong": ("int8_t", "int32_t", {"DEPTH": 128, **_TWO, **_PINGPONG}),
}


def check(folder: Path, target: str, element: str, result: str, options: dict[str, object]) -> None:
  """Compile the program, run it on the card and on both engines, and compare with NumPy: exactly, of small integers.
  The hazard checks have nothing to tell."""
  assert NVCC is not None
  flags = [f"-D{name}={value}" for name, value in {"ELEMENT": element, "RESULT": result, **options}.items()]
  subprocess.run([NVCC, "-std=c++17", "-O2", "-w", "--expt-relaxed-constexpr", f"-arch=compute_{target}",
                  f"-code=compute_{target}", "--compress-mode=none", "-cudart", "shared", "-shared", "-Xcompiler",
                  "-fPIC", f"-I{CUTLASS}/include", f"-I{CUTLASS}/tools/util/include", *flags, str(SOURCE), "-o",
                  "program"], cwd=folder, check=True)
  m, n, k = 256, 128, 256
  a = (np.arange(m * k) * 7 % 11 - 5).reshape(m, k)
  b = (np.arange(n * k) * 5 % 13 - 6).reshape(n, k)
  for engine, checks in (("ref", "report"), ("ref", "0"), ("jit", "0")):
    out = folder / f"{engine}.bin"
    done = run("run", "--mockgpu", f"sm_{target[:2]}", str(folder / "program"), str(m), str(n), str(k), str(out),
               EMU=engine, EMU_CHECK=checks)
    assert done.returncode == 0 and "tinyhw: " not in done.stderr, done.stderr  # LLVM's time is no failure
    found = np.frombuffer(out.read_bytes(), np.int32 if result == "int32_t" else np.float32)
    assert (found.reshape(m, n) == a @ b.T).all()


@pytest.mark.parametrize("name", AMPERE)
def test_for_sm_80(tmp_path: Path, name: str) -> None:
  check(tmp_path, "80", *AMPERE[name])


@pytest.mark.parametrize("name", HOPPER)
def test_for_sm_90a(tmp_path: Path, name: str) -> None:
  check(tmp_path, "90a", *HOPPER[name])
