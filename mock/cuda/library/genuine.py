"""What no stand-in answers: NVIDIA's runtime asks the driver to prove that it is NVIDIA's (`cuGetExportTable`).

It does so by tables that are documented nowhere. Nothing of that is imitated here: the mock says no, which library has
asked, and what runs in its place.
"""
from __future__ import annotations

from typing import Final

from tinyhw.autogen import cuda
from tinyhw.mock.cuda.calls import EXPORT_TABLE, Failed, serves
from tinyhw.mock.cuda.machine import CudaMachine

# What to take in place of a library, by a part of its path.
INSTEAD: Final = {
  "cupy": "CuPy has no build with a shared runtime; NumPy has its functions",
  "warp": "build Warp with a shared runtime, or take its CPU device (device=\"cpu\")",
  "cutlass": "CuTe's DSL has no build with a shared runtime; CuTe's C++ runs (nvcc -cudart shared)",
  "cuda/bindings": "take cuda.bindings.driver, or cuda.core, which do not need it",
  "numba": "Numba itself does not need it",
}
SHARED: Final = "link with -cudart shared (nvcc), or take a build that does"


def library_at(address: int) -> str:
  """The file whose code lies at an address of this process; empty where there is none."""
  with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as ranges:
    for line in ranges:
      words = line.split(maxsplit=5)
      low, high = (int(word, 16) for word in words[0].split("-"))
      if low <= address < high: return words[5].rstrip("\n") if len(words) == 6 else ""
  return ""


def why(path: str) -> str:
  """What is said of a library that asks."""
  instead = next((words for part, words in INSTEAD.items() if part in path), SHARED)
  return (f"{path or 'a library'} has NVIDIA's runtime linked into it, which asks the driver to prove that it is "
          f"NVIDIA's; the mock does not: {instead}")


@serves(EXPORT_TABLE)
def get_export_table(m: CudaMachine, out: int, which: int, caller: int) -> None:
  raise Failed(cuda.CUDA_ERROR_NOT_SUPPORTED, why(library_at(caller)))
