"""ONNX's own node tests (those of the package `onnx`), run by the importer.

`python -m tests.nn.onnx_backend [--device DEV] [--share I/N] [FILTER]` runs those whose name has FILTER in it and
prints what passed, what was refused (Unsupported) and what failed, by name, with counts. `--write` renews the file of
refusals.
"""
from __future__ import annotations

import argparse
import functools
import importlib
import pkgutil
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tinyhw import Tensor, dtypes
from tinyhw.core.errors import Unsupported
from tinyhw.nn import onnx as importer

REFUSALS = Path(__file__).parent / "files" / "onnx_refused.txt"
# Their values are random, and no two makers agree on the generator: kept is that they run, with the right shape.
RANDOM = ("test_bernoulli", "test_training_dropout")


NARROW = ("int4", "uint4", "int2", "uint2")
WIDE = ("bfloat16", "float8_e4m3fn", "float8_e5m2")  # dtypes that NumPy lacks: read as float32
CODED = ("float8_e4m3fnuz", "float8_e5m2fnuz", "float4_e2m1fn", "float8_e8m0fnu")  # by their bits


@dataclass(frozen=True)
class Verdict:
  """How a case ended: "passed", "refused" or "failed", and why."""
  name: str
  kind: str
  why: str = ""


@functools.cache
def cases() -> dict[str, Any]:
  """Every node test of the package, by name."""
  from onnx.backend.test.case.node import collect_testcases
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    return {c.name: c for c in sorted(collect_testcases(None), key=lambda c: str(c.name))}


def operators() -> list[str]:
  """The package's modules of node tests, one an operator or two."""
  import onnx.backend.test.case.node as package
  return sorted(m.name for m in pkgutil.iter_modules(package.__path__))


@functools.cache
def of_operator(name: str) -> tuple[Any, ...]:
  """The node tests of a module, which alone is imported: all of them take seconds to make."""
  import onnx.backend.test.case.node as package
  before = len(package._NodeTestCases)
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    importlib.import_module(f"{package.__name__}.{name}")
  return tuple(package._NodeTestCases[before:])


def plain(value: Any) -> Any:
  """A test's value as an array: types that NumPy lacks stand in protos."""
  from onnx import numpy_helper
  return numpy_helper.to_array(value) if hasattr(value, "raw_data") else np.asarray(value)


def ours(value: Any, device: str | None) -> Any:
  """A test's input as the model takes it."""
  if value is None: return None
  if isinstance(value, (list, tuple)): return [ours(v, device) for v in value]
  array = plain(value)
  name = array.dtype.name
  if name in NARROW: return array.astype(name.rstrip("42") + "8")
  if name in CODED: return array.view(np.uint8)
  if name in {d.name for d in dtypes.all() if d.numpy is not None}: return array
  if name in WIDE: return Tensor(array.tobytes(), dtype=dtypes.named(name), device=device).reshape(array.shape)
  raise Unsupported("ONNX element type", array.dtype.name)


def same(case: str, name: str, got: Any, want: Any, rtol: float, atol: float) -> None:
  """Hold an output against what the test expects: its type, shape and values."""
  if isinstance(want, (list, tuple)):
    assert isinstance(got, list) and len(got) == len(want), f"{name}: a sequence of {len(want)}, got {got}"
    for i, (g, w) in enumerate(zip(got, want)): same(case, f"{name}[{i}]", g, w, rtol, atol)
    return
  if want is None:
    assert got is None, f"{name}: {got} where there should be nothing"
    return
  want = plain(want)
  kind = want.dtype.name
  if kind in NARROW: want = want.astype(kind.rstrip("42") + "8")
  if kind in CODED: want = want.view(np.uint8)
  if want.dtype.name not in {d.name for d in dtypes.all()}: raise Unsupported("ONNX element type", kind)
  kind = want.dtype.name
  assert got.dtype.name == kind, f"{name}: {got.dtype.name}, not {kind}"
  assert got.shape == want.shape, f"{name}: shape {got.shape}, not {want.shape}"
  exact = want.astype(np.float32) if kind in WIDE else want
  # 16-bit floats: intermediate results may be wider, so the last bit or two may differ.
  rtol = max(rtol, {"bfloat16": 2**-6, "float16": 2**-9}.get(kind, 0))
  # A transform's sums cancel: what should be 0 is as exact as the other elements are.
  if case.startswith(("test_dft", "test_stft")): atol = max(atol, 1e-6 * float(np.abs(exact).max()))
  np.testing.assert_allclose(got.numpy(), exact, rtol=rtol, atol=atol, err_msg=name)


def run(case: Any, device: str | None = None) -> Verdict:
  """Run one case."""
  try:
    model = importer.load(case.model.SerializeToString(), device)
    for inputs, outputs in case.data_sets or [([], [])]:
      names = [i.name for i in case.model.graph.input]
      got = model(**{n: ours(v, device) for n, v in zip(names, inputs)})
      for (name, value), want in zip(got.items(), outputs):
        if case.name.startswith(RANDOM): assert value.shape == plain(want).shape
        else: same(case.name, name, value, want, case.rtol, case.atol)
  except Unsupported as error: return Verdict(case.name, "refused", str(error).splitlines()[0])
  except Exception as error:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return Verdict(case.name, "failed", f"{type(error).__name__}: {' '.join(lines[:6])}"[:300])
  return Verdict(case.name, "passed")


def chosen(text: str = "", share: str = "0/1") -> Iterator[Any]:
  """The cases with a text in their name; of those, every N-th from I on."""
  part, of = map(int, share.split("/"))
  for i, (name, case) in enumerate(cases().items()):
    if text in name and i % of == part: yield case


def expected_refusals() -> tuple[str, dict[str, str]]:
  """The version of the package that the file is for; the cases that are refused, and why."""
  head, *rows = REFUSALS.read_text().splitlines()
  return head.split()[3].rstrip(","), {name: why for name, why in (row.split(": ", 1) for row in rows)}


def main() -> int:
  """The command."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("filter", nargs="?", default="")
  parser.add_argument("--device")
  parser.add_argument("--share", default="0/1")
  parser.add_argument("--write", action="store_true")
  parser.add_argument("--quiet", action="store_true", help="print failures and counts only")
  told = parser.parse_args()
  counts: Counter[str] = Counter()
  refused = []
  for case in chosen(told.filter, told.share):
    start = time.perf_counter()
    verdict = run(case, told.device)
    counts[verdict.kind] += 1
    if verdict.kind == "refused": refused.append(verdict)
    if verdict.kind == "failed" or not told.quiet:
      print(f"{verdict.kind:8} {verdict.name} {time.perf_counter() - start:.2f} s {verdict.why}", flush=True)
  print(", ".join(f"{n} {kind}" for kind, n in counts.items()))
  if told.write:
    import onnx
    head = f"# Refused: onnx {onnx.__version__}, by `python -m tests.nn.onnx_backend --write`"
    REFUSALS.write_text("\n".join([head, *(f"{v.name}: {v.why}" for v in refused)]) + "\n")
  return 1 if counts["failed"] else 0


if __name__ == "__main__": sys.exit(main())
