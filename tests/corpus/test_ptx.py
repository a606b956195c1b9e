"""Triton's kernels as PTX for sm_80 and sm_90, on the emulator, against NumPy: the cases of AMD's corpus."""
from __future__ import annotations

import json
import lzma
import tarfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyhw
from tests.corpus.cases import CASES, Formats
from tests.emulator.compiled import compiled_too
from tests.strength import THOROUGH
from tinyhw.isa.ptx import parse, text

HERE = Path(__file__).resolve().parent
ROWS: list[dict[str, Any]] = json.loads((HERE / "ptx.json").read_text())
# The quick run takes one of the four that there are of each case, and what has wgmma, or tensor maps.
CHOSEN = [r for k, r in enumerate(ROWS) if THOROUGH or zlib.crc32(r["case"].encode()) % 4 == k * 4 // len(ROWS)
          or (r["case"], r["target"]) in {("matmul_half_out", "sm_90"), ("descriptors", "sm_90")}]


@cache
def files() -> dict[str, bytes]:
  with tarfile.open(fileobj=BytesIO(lzma.decompress((HERE / "ptx.tar.xz").read_bytes()))) as tar:
    return {m.name: tar.extractfile(m).read() for m in tar}  # type: ignore[union-attr]


@dataclass
class Prepared:
  """A row of the corpus ready to launch: its case, its text and the arguments, with memory that Triton asks for."""
  case: Any
  source: bytes
  args: list[Any]
  _arrays: list[str]

  def wrong(self, out: Sequence[Any]) -> Any:
    """What of the arrays behind the launch is not as the case wants it."""
    given, arrays = self.case.arguments, self._arrays
    return self.case.wrong({n: out[arrays.index(n)].view(given[n].dtype) for n in self.case.wanted})


def prepared(row: dict[str, Any]) -> Prepared:
  """The case of a row, with numbers of its own."""
  case = CASES[row["case"]](np.random.default_rng((0, zlib.crc32(row["case"].encode()))), Formats())
  source, args = files()[row["file"]], list[Any]()
  for name in row["arguments"]:
    value = case.arguments[name]
    args.append(value.view(f"V{value.itemsize}") if isinstance(value, np.ndarray) else value)
  scratch = np.zeros(row["extra"] * int(np.prod(row["grid"])), np.uint8) if row["extra"] else None
  args += [scratch] * (len(parse(source).entries[row["kernel"]].params) - len(args))
  return Prepared(case, source, args, [n for n in row["arguments"] if isinstance(case.arguments[n], np.ndarray)])


@pytest.mark.parametrize("row", CHOSEN, ids=lambda r: r["file"].removesuffix(".ptx"))
def test_kernel(row: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
  if THOROUGH: compiled_too(monkeypatch)
  made = prepared(row)
  module = parse(made.source)
  assert parse(text(module)) == module
  out = tinyhw.launch(made.source, row["kernel"], row["grid"], row["block"], made.args, "EMU", row["shared"])
  assert not made.wrong(out)
