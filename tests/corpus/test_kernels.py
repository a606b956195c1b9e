"""Kernels of every compiler of the corpus, on every engine, against NumPy.

The quick run launches a quarter of the kernels of the newest Triton with one of the engines, and a smaller sample of
the rest; the thorough run everything. `python -m tests.corpus.corpus` prints the table.
"""
from __future__ import annotations

import hashlib
import zlib

import pytest

from tests.corpus.corpus import Entry, entries, objects, run
from tests.strength import THOROUGH

ENGINES = ("ref", "jit", "auto")
SLOW = {"attention", "matmul_int8", "matmul_half", "layer_norm_backward"}  # of clang's, a second or more each
ALL = entries()
NEWEST = max(e.compiler for e in ALL if e.language == "Triton")


def chosen() -> list[tuple[Entry, str]]:
  """What this run launches, with which engine."""
  if THOROUGH: return [(entry, engine) for entry in ALL for engine in ENGINES]
  out = []
  for k, entry in enumerate(ALL):
    dice = zlib.crc32(entry.id.encode())
    one_in = 4 if entry.compiler == NEWEST else 12 if entry.language == "Triton" else 20
    if dice // 7 % one_in or entry.language != "Triton" and entry.case in SLOW: continue
    out.append((entry, ENGINES[(dice + k) % 3]))
  return out


@pytest.mark.parametrize("entry, engine", [pytest.param(e, engine, id=f"{e.id}-{engine}") for e, engine in chosen()])
def test_a_kernel_does_what_numpy_does(entry: Entry, engine: str) -> None:
  assert not run(entry, engine)


def test_the_archive_is_what_the_manifest_says() -> None:
  files = {entry.file: entry.sha256 for entry in ALL}
  assert {name: hashlib.sha256(data).hexdigest() for name, data in objects().items()} == files


def test_every_generation_has_every_language() -> None:
  for target in ("gfx1100", "gfx1201", "gfx942"):
    assert {e.language.split(" -")[0] for e in ALL if e.target == target} >= {"C", "C++", "OpenCL C", "HIP", "Triton",
                                                                              "LLVM IR"}
