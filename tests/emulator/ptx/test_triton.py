"""Triton's kernels with tensor descriptors for sm_90 and sm_100 (`ptx/kernels_tma.py`), against NumPy."""
from __future__ import annotations

import json
import lzma
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyhw
from tests.emulator.compiled import compiled_too
from tests.strength import THOROUGH
from tinyhw.emulator.values.small_floats import BF8, FP8
from tinyhw.isa.ptx import parse


def files() -> dict[str, bytes]:
  packed = (Path(__file__).resolve().parent / "triton.tar.xz").read_bytes()
  with tarfile.open(fileobj=BytesIO(lzma.decompress(packed))) as tar:
    return {m.name: tar.extractfile(m).read() for m in tar}  # type: ignore[union-attr]


FILES = files()
NAMES = sorted(n.removesuffix(".ptx") for n in FILES if n.endswith(".ptx"))
CHOSEN = [n for n in NAMES if THOROUGH or n in {"3.9.0-special", "3.9.0-cluster", "3.9.0-sums", "3.4.0-fp8",
                                                "3.4.0-bf16", "3.4.0-attention", "3.9.0-sm_100-special",
                                                "3.9.0-sm_100-tf32", "3.9.0-sm_100-rows", "3.9.0-sm_100-attention",
                                                "3.9.0-sm_100-scaled-fp4", "3.9.0-sm_120-scaled-fp8"}]
BOTH = {"3.9.0-special", "3.9.0-cluster", "3.9.0-sums", "3.9.0-sm_100-special", "3.9.0-sm_100-rows"}  # of the quick run


def launch(name: str, row: dict[str, Any], grid: tuple[int, ...], args: list[Any]) -> list[Any]:
  """The arguments behind a launch with whatever scratch memory the kernel asks for."""
  source = FILES[name + ".ptx"]
  grid = (grid[0] * row["ctas"], *grid[1:])
  scratch = np.zeros(row["scratch"] * int(np.prod(grid)) + 128, np.uint8)
  missing = len(parse(source).entries[row["kernel"]].params) - len(args)
  raw = [a.view(f"V{a.itemsize}") if isinstance(a, np.ndarray) else a for a in args] + [scratch] * missing
  out = tinyhw.launch(source, row["kernel"], grid, row["threads"], raw, "EMU", row["shared"])
  return [o.view(a.dtype) for o, a in zip(out, (a for a in args if isinstance(a, np.ndarray)))]


def drawn(rng: Any, name: str, shape: tuple[int, int]) -> tuple[Any, Any]:
  """(bits, numbers) of a matrix."""
  if name == "fp8":
    bits = rng.integers(0, 104, shape).astype(np.uint8) | rng.integers(0, 2, shape).astype(np.uint8) << 7
    return bits, np.array(FP8.values, np.uint32).view(np.float32)[bits].astype(np.float64)
  x = rng.standard_normal(shape).astype(np.float32)
  if name == "bf16":
    top = (x.view(np.uint32) >> 16).astype(np.uint16)
    return top, (top.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
  if name == "tf32": return x, x.astype(np.float64)
  half = x.astype(np.float16)
  return half, half.astype(np.float64)


def narrow(rng: Any, t: str, shape: tuple[int, int]) -> tuple[Any, Any]:
  """(bytes, numbers) of a matrix of e4m3, e5m2 or, two in a byte, e2m1."""
  if t == "e2m1":
    codes = rng.integers(0, 16, shape)
    sizes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    return (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8), np.concatenate([sizes, -sizes])[codes]
  kind = {"e4m3": FP8, "e5m2": BF8}[t]
  bits = rng.integers(0, 104, shape).astype(np.uint8) | rng.integers(0, 2, shape).astype(np.uint8) << 7
  return bits, np.array(kind.values, np.uint32).view(np.float32)[bits].astype(np.float64)


@pytest.mark.left("tcgen05")
@pytest.mark.parametrize("name", CHOSEN)
def test_a_kernel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Sizes that no tile divides, so that parts of boxes are outside; on both engines."""
  if THOROUGH or name in BOTH: compiled_too(monkeypatch)
  row, rng = json.loads(FILES[name + ".json"]), np.random.default_rng(5)
  what, constants = row["name"], row["constants"]
  if what == "sums":
    x = rng.standard_normal(8000).astype(np.float32)
    found = launch(name, row, (4,), [x, np.zeros(4, np.float32), 8000])[1]
    wanted = np.add.reduceat(x.astype(np.float64), np.arange(0, 8000, 2048))
  elif what.startswith("scaled"):
    m, n, k, left, right = (constants[c] for c in ("M", "N", "K", "LEFT", "RIGHT"))
    (a, x), (b, y) = narrow(rng, left, (m, k)), narrow(rng, right, (n, k))
    p, q = (rng.integers(123, 132, (rows, k // 32), np.uint8) for rows in (m, n))
    found = launch(name, row, (1,), [a, b, p, q, np.zeros((m, n), np.float32)])[4]
    wanted = (x * np.repeat(2.0 ** (p - 127.0), 32, 1)) @ (y * np.repeat(2.0 ** (q - 127.0), 32, 1)).T
  elif what == "attention":
    n = 2 * constants["BM"]
    q, k, v = (rng.standard_normal((n, 64)).astype(np.float16) for _ in range(3))
    found = launch(name, row, (2,), [q, k, v, np.zeros_like(q), n, 0.18])[3]
    scores = np.exp2(q.astype(np.float64) @ k.astype(np.float64).T * 0.18)
    wanted = scores @ v / scores.sum(1, keepdims=True)
  else:
    m, n, k = 2 * constants["BM"] - 8, 2 * constants["BN"] - 16, constants["BK"] + 32
    (a, x), (b, y) = drawn(rng, what, (m, k)), drawn(rng, what, (k, n))
    out = np.zeros((m, n), np.float32 if what in {"fp8", "bf16", "rows", "tf32"} else np.float16)
    found, wanted = launch(name, row, (2, 2), [a, b, out, m, n, k])[2], x @ y
  assert np.abs(found - wanted).max() <= 2e-3 * np.abs(wanted).max()
