"""Programs of ROCm, unmodified, on mock cards: rocminfo, HSA's and HIP's runtime, rocm-smi.

They are those that are installed, or those in a folder that packages were unpacked to, which the variable TINYHW_ROCM
names; these run with their own loader. Tests are skipped where there are none.
"""
from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.mock.clients.rocm import LIBRARIES, Rocm, kernels_of
from tests.mock.clients.running import run


def test_rocminfo_tells_what_the_card_is(rocm: Rocm) -> None:
  rocm.need("usr/bin/rocminfo")
  done = run(*rocm.words(rocm.root / "usr/bin/rocminfo"), cards="gfx1100,gfx1102")
  assert not done.returncode, done.stderr
  for line in ("Name: gfx1100", "Name: gfx1102", "Compute Unit: 96", "Compute Unit: 32", "Chip ID: 29772(0x744c)",
               "Wavefront Size: 32(0x20)", "Size: 25165824(0x1800000) KB", "Name: amdgcn-amd-amdhsa--gfx1100"):
    assert line in re.sub(r"(?m): +", ": ", re.sub(r" +$", "", done.stdout, flags=re.M)), line


def test_a_program_of_hsa(rocm: Rocm, kernels: str, tmp_path: Path) -> None:
  """Two at once: copies, barriers, dispatches, signals; and one whose kernel asks for scratch memory."""
  rocm.need("usr/include/hsa/hsa.h")
  program = " ".join(rocm.words(rocm.compiled("hsa.c", "libhsa-runtime64.so.1", tmp_path)))
  done = run("sh", "-c", f"{program} {kernels} add & {program} {kernels} deep; wait $!")
  assert done.stdout == "0 wrong\n0 wrong\n" and not done.returncode, done.stderr
  assert "hung" not in done.stderr and "faulted" not in done.stderr


def test_a_program_of_hsa_on_a_card_of_several_xccs(rocm: Rocm, tmp_path: Path) -> None:
  """ROCr gives its queues no EOP buffer there, and workgroups go to the XCCs in turn."""
  rocm.need("usr/include/hsa/hsa.h")
  program = rocm.words(rocm.compiled("hsa.c", "libhsa-runtime64.so.1", tmp_path))
  kernels = kernels_of("gfx942", tmp_path)
  for what in ("add", "deep"):
    done = run(*program, kernels, what, cards="gfx942")
    assert done.stdout == "0 wrong\n" and not done.returncode, done.stderr


def test_a_page_fault_is_told_by_both_sides(rocm: Rocm, kernels: str, tmp_path: Path) -> None:
  rocm.need("usr/include/hsa/hsa.h")
  program = rocm.words(rocm.compiled("hsa.c", "libhsa-runtime64.so.1", tmp_path))
  done = run("sh", "-c", f"ulimit -c 0; exec {' '.join(program)} {kernels} bad")
  assert done.returncode == 134  # SIGABRT, by the runtime
  assert "Memory access fault by GPU node-1" in done.stderr and "on address 0x123456789000" in done.stderr
  assert re.search(r"GPU page fault: write of 4 bytes at 0x123456789000 .* at PC 0x\w+ in 'flat_store_b32.* of kernel "
                   "bad", done.stderr)


def test_a_program_of_hip(rocm: Rocm, kernels: str, tmp_path: Path) -> None:
  """Large copies go through memory of the process that GPUs are given for a while."""
  rocm.need(f"{LIBRARIES}/libamdhip64.so.5", "usr/include/hip/hip_runtime_api.h")
  program = rocm.words(rocm.compiled("hip.c", "libamdhip64.so.5", tmp_path))
  done = run(*program, kernels, "1000000")
  assert done.stdout == "1 devices, gfx1100, 24576 MiB\n0 wrong\n", done.stderr


def test_products_of_rocblas(rocm: Rocm, tmp_path: Path) -> None:
  """Its own kernels, which Tensile has written for gfx1100."""
  rocm.need(f"{LIBRARIES}/librocblas.so.0", f"{LIBRARIES}/libamdhip64.so.5", "usr/include/rocblas/rocblas.h")
  program = rocm.words(rocm.compiled("blas.c", "librocblas.so.0", tmp_path, "libamdhip64.so.5"))
  done = run(*program, "32", "64", "100", "256")
  assert done.stdout == "32: 0 wrong\n64: 0 wrong\n100: 0 wrong\n256: 0 wrong\n", done.stdout + done.stderr


def test_operations_of_llama_cpp(rocm: Rocm, tmp_path: Path) -> None:
  """ggml's HIP backend beside its CPU backend: its own kernels, quantized products by WMMA among them."""
  backends = f"{LIBRARIES}/ggml/backends0"
  rocm.need(f"{backends}/libggml-hip.so", f"{backends}/libggml-cpu-x64.so", "usr/include/ggml-backend.h")
  program = rocm.words(rocm.compiled("ggml.c", "libggml.so.0", tmp_path, "libggml-base.so.0", "libm.so.6"))
  done = run(*program, *(str(rocm.root / backends / f"libggml-{name}.so") for name in ("hip", "cpu-x64")))
  lines = done.stdout.splitlines()
  assert len(lines) == 24 and all(line.endswith(": right") for line in lines), done.stdout + done.stderr


def test_rocm_smi_shows_the_cards() -> None:
  """The system's own, or the one that the variable TINYHW_ROCM_SMI names, with the library beside it."""
  program = os.environ.get("TINYHW_ROCM_SMI") or shutil.which("rocm-smi")
  if program is None: pytest.skip("there is no rocm-smi (TINYHW_ROCM_SMI names another)")
  libraries = Path(program).parents[2] / LIBRARIES
  done = run("env", f"LD_LIBRARY_PATH={libraries}", "python3", program, "--showid", "--showmeminfo", "vram")
  assert "0x744c" in done.stdout and "25769803776" in done.stdout, done.stdout + done.stderr
