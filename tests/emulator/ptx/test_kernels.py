"""What nvcc -O3 makes of CUDA kernels (`ptx/kernels.cu`), on the emulator, against NumPy."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyhw
from tests.emulator.compiled import compiled_too
from tests.strength import THOROUGH

HERE = Path(__file__).resolve().parent
MODULES = {sm: (HERE / f"kernels_{sm}.ptx").read_bytes() for sm in ("sm80", "sm90")}
rng = np.random.default_rng(5)


def run(module: bytes, kernel: str, grid: Any, block: Any, *args: Any, shared: int = 0) -> list[Any]:
  return list(tinyhw.launch(module, kernel, grid, block, list(args), "EMU", shared))


@pytest.fixture(autouse=True)
def engines(monkeypatch: pytest.MonkeyPatch) -> None:
  """Both, in the thorough run."""
  if THOROUGH: compiled_too(monkeypatch)


@pytest.fixture(params=["sm80", "sm90"])
def module(request: pytest.FixtureRequest) -> bytes: return MODULES[request.param]


def floats(n: int, low: float = -4, high: float = 4) -> Any: return rng.uniform(low, high, n).astype(np.float32)


def whole(n: int, low: int = -100, high: int = 100) -> Any: return rng.integers(low, high, n).astype(np.int32)


def test_add(module: bytes) -> None:
  a, b = floats(1000), floats(1000)
  assert (run(module, "add", 4, 256, a, b, np.zeros_like(a), 1000)[2] == a + b).all()


def test_loops_of_different_lengths(module: bytes) -> None:
  def steps(x: int) -> int:
    n = 0
    while x > 1 and n <= 500: x, n = (3 * x + 1 if x & 1 else x >> 1), n + 1
    return n
  a = rng.integers(0, 1000, 300).astype(np.uint32)
  assert run(module, "collatz", 3, 128, a, np.zeros_like(a), 300)[1].tolist() == [steps(int(x)) for x in a]


def test_a_jump_table(module: bytes) -> None:
  def chosen(x: int) -> int:
    case = x & 7
    if case == 1: return int(x / 7)
    if case == 4: return x << 3
    other = {0: x * 3, 2: int(np.fmod(x, 5)) + 2, 3: -x, 5: x ^ 0x55, 6: (x & 0xFFFFFFFF).bit_count(),
             7: 32 - (x & 0xFFFFFFFF).bit_length()}
    return other[case] + 1
  a = whole(256)
  assert run(module, "choose", 2, 128, a, np.zeros_like(a))[1].tolist() == [chosen(int(x)) for x in a]


def test_reduction_in_shared_memory(module: bytes) -> None:
  a = rng.integers(0, 50, 5000).astype(np.float32)
  assert run(module, "reduce", 4, 256, a, np.zeros(1, np.float32), 5000)[1] == a.sum()


def test_shuffles(module: bytes) -> None:
  a = whole(128)
  out = run(module, "warp_sum", 2, 64, a, np.zeros(512, np.int32))[1].reshape(128, 4)
  lanes, warps = np.arange(32), a.reshape(4, 32)
  assert (out[:, 0].reshape(4, 32) == warps.sum(axis=1, keepdims=True)).all()
  down = np.where(lanes % 8 + 3 < 8, lanes + 3, lanes)
  up = np.where(lanes % 16 >= 2, lanes - 2, lanes)
  thread = np.arange(64).reshape(2, 32)
  assert (out[:, 1].reshape(4, 32) == warps[:, down]).all()
  assert (out[:, 2].reshape(4, 32) == warps[:, up]).all()
  for k in range(4):
    source = lanes // 16 * 16 + thread[k % 2] * 7 % 16
    assert (out[:, 3].reshape(4, 32)[k] == warps[k][source]).all()


def test_scan(module: bytes) -> None:
  a = whole(512)
  assert (run(module, "scan", 2, 256, a, np.zeros_like(a))[1].reshape(2, 256) == a.reshape(2, 256).cumsum(axis=1)).all()


def test_histogram(module: bytes) -> None:
  a = rng.integers(0, 256, 4000).astype(np.uint8)
  out = run(module, "histogram", 3, 128, a, np.zeros(64, np.uint32), 4000)[1]
  assert (out == np.bincount(a >> 2, minlength=64)).all()


def test_votes(module: bytes) -> None:
  a = whole(64)
  out = run(module, "votes", 1, 64, a, np.zeros(256, np.uint32))[1].reshape(2, 32, 4)
  for warp, x in zip(out, a.reshape(2, 32)):
    def bits(lanes: Any) -> int: return sum(1 << int(k) for k in np.flatnonzero(lanes))
    assert (warp[:, 0] == bits(x > 0)).all()
    assert warp[:, 1].tolist() == [bits(x & 3 == v & 3) for v in x]
    same = len(set((x & 64).tolist())) == 1
    assert (warp[:, 2] == (int((x > -100).all()) | int((x > 90).any()) << 1 | int(same) << 2)).all()
    assert (warp[:, 3] == np.where(x & 1, bits(x & 1), 0)).all()  # threads that branched together are together


def test_reductions_of_warps_and_blocks(module: bytes) -> None:
  a = whole(128)
  out = run(module, "reductions", 2, 64, a, np.zeros(512, np.int32))[1].reshape(2, 64, 4)
  for block, x in zip(out, a.reshape(2, 64)):
    for k in range(2):
      warp, values = block[32 * k:32 * k + 32], x[32 * k:32 * k + 32]
      assert (warp[:, :3] == [values.sum(), values.min(), np.bitwise_xor.reduce(values)]).all()
    assert (block[:, 3] == int((x > 0).sum()) | 1 << 16).all()


def test_matmul_in_tiles(module: bytes) -> None:
  n = 48
  a, b = (rng.integers(-5, 6, (n, n)).astype(np.float32) for _ in range(2))
  assert (run(module, "matmul", (3, 3), (16, 16), a, b, np.zeros_like(a), n)[2] == a @ b).all()


def test_math_functions(module: bytes) -> None:
  x = floats(128, 0.01, 20)
  out = run(module, "math", 1, 128, x, np.zeros(1024, np.float32))[1].reshape(128, 8)
  w = x.astype(np.float64)
  want = [np.sqrt(w), np.exp(-w), np.log(w), np.sin(w), 1 / w, w**1.5, 1 / np.sqrt(w), np.tanh(w)]
  assert (out[:, 0] == np.sqrt(x)).all()
  for k, exact in enumerate(want): np.testing.assert_allclose(out[:, k], exact, rtol=2e-6, atol=1e-7)


def test_math_functions_of_doubles(module: bytes) -> None:
  x = rng.uniform(0.01, 20, 64)
  out = run(module, "math64", 2, 32, x, np.zeros(384))[1].reshape(64, 6)
  want = [np.sqrt(x), np.exp(-x), np.log(x), np.sin(x * 1e6), 1 / x, np.cbrt(x)]
  for k in (0, 4): assert (out[:, k] == want[k]).all()
  for k, exact in enumerate(want): np.testing.assert_allclose(out[:, k], exact, rtol=4e-15, atol=1e-15)


def test_directed_roundings(module: bytes) -> None:
  from fractions import Fraction
  a, b = floats(64), floats(64)
  out = run(module, "directed", 2, 32, a, b, np.zeros(512, np.float32))[2].reshape(64, 8)

  def rounded(x: Fraction, mode: str) -> float:
    near = np.float32(float(x))
    exact = Fraction(float(near))
    if exact == x: return float(near)
    up = near if exact > x else np.nextafter(near, np.float32(np.inf))
    down = near if exact < x else np.nextafter(near, np.float32(-np.inf))
    return float(up if mode == "u" or mode == "z" and x < 0 else down)
  for (p, q), row in zip(zip(a, b), out):
    x, y = Fraction(float(p)), Fraction(float(q))
    assert row[0] == rounded(x + y, "z") and row[1] == rounded(x + y, "u") and row[2] == rounded(x * y, "d")
    assert row[3] == rounded(x * y + x, "z") and row[4] == rounded(x / y, "u") and row[6] == rounded(1 / y, "z")
    assert Fraction(float(row[5])) ** 2 <= abs(x) < Fraction(float(np.nextafter(row[5], np.float32(9)))) ** 2
    assert row[7] == min(max(p, 0), 1)


def test_halves(module: bytes) -> None:
  a, b = (rng.uniform(-4, 4, 128).astype(np.float16) for _ in range(2))
  out = run(module, "halves", 1, 64, a.view(np.uint32), b.view(np.uint32), np.zeros(256, np.uint32))[2]
  got = out.view(np.float16).reshape(64, 4, 2)
  x, y = a.reshape(64, 2), b.reshape(64, 2)
  fused = (x.astype(np.float64) * y + x).astype(np.float16)
  for k, want in enumerate((x + y, x * y, fused, np.maximum(x, y))): assert (got[:, k] == want).all(), k


def brain(x: Any) -> Any:
  """float32 to bfloat16 bits, to nearest even."""
  raw = np.asarray(x, np.float32).view(np.uint32)
  return (raw + 0x7FFF + (raw >> 16 & 1) >> 16).astype(np.uint16)


def unbrain(x: Any) -> Any: return (x.astype(np.uint32) << 16).view(np.float32)


def test_bfloat16(module: bytes) -> None:
  a, b = brain(floats(64)), brain(floats(64))
  _, _, out, wide = run(module, "brains", 1, 32, a.view(np.uint32), b.view(np.uint32), np.zeros(64, np.uint32),
                        np.zeros(32, np.float32))
  got = out.view(np.uint16).reshape(32, 2, 2)
  x, y = unbrain(a).reshape(32, 2), unbrain(b).reshape(32, 2)
  exact = x.astype(np.float64) * y + x
  assert (np.abs(unbrain(got[:, 0]) - exact) <= np.abs(exact) * 2.0**-8).all()
  low, high = x[:, 0] * np.float32(1.1), y[:, 1] / np.float32(3)
  assert (got[:, 1, 0] == brain(low)).all() and (got[:, 1, 1] == brain(high)).all()
  assert (wide == x[:, 0] + 1).all()


def signed(x: int, bits: int = 64) -> int: return (x & (1 << bits) - 1 ^ 1 << bits - 1) - (1 << bits - 1)


def test_integers(module: bytes) -> None:
  a, b = (rng.integers(-2**63, 2**63 - 1, 64, dtype=np.int64) for _ in range(2))
  b[:4] = (1, -1, 3, -7)
  out = run(module, "integers", 1, 64, a, b, np.zeros(512, np.int64))[2].reshape(64, 8)
  mask = (1 << 64) - 1
  for x, y, row in zip(a.tolist(), b.tolist(), out.tolist()):
    u, v = signed(x, 32), signed(y, 32)
    uu, vv = x & 0xFFFFFFFF, y & 0xFFFFFFFF
    assert row[0] == x * y >> 64 and row[1] & mask == (x & mask) * (y & mask) >> 64
    quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    assert row[2] == signed(quotient + x - quotient * y)
    first = (vv & -vv).bit_length()
    assert row[3] == int(f"{uu:032b}"[::-1], 2) ^ first
    both = (vv << 32 | uu).to_bytes(8, "little")
    permuted = int.from_bytes(bytes(both[k] for k in (5, 2, 7, 4)), "little")
    assert row[4] == permuted + ((vv << 32 | uu) << 13 >> 32 & 0xFFFFFFFF)
    low24 = signed(signed(u, 24) * signed(v, 24), 32)
    sums = (abs(u - v) + 7) + (abs(uu - vv) + 9) + (u * v >> 32) + low24
    assert (row[5] - sums) % (1 << 32) == 0
    bytes_of = [[signed(z >> 8 * k, 8) for k in range(4)] for z in (u, v)]
    dot = signed(5 + sum(p * q for p, q in zip(*bytes_of)), 32)
    reverse = int(f"{x & mask:064b}"[::-1], 2)
    small = dot + (x & mask).bit_count() + 64 - (y & mask).bit_length()
    assert (row[6] - small - reverse) % (1 << 32) == 0
    assert row[7] == signed(x * y >> 32)


def test_recursion_and_calls_through_pointers(module: bytes) -> None:
  a, b = whole(64, 1, 500), whole(64, 1, 500)
  assert (run(module, "recursive", 1, 64, a, b, np.zeros_like(a))[2] == np.gcd(a, b)).all()
  want = np.choose(a % 3, [2 * a, a * a, -a])
  assert (run(module, "indirect", 1, 64, a, np.zeros_like(a))[1] == want).all()


def test_an_array_on_the_stack(module: bytes) -> None:
  a, k = whole(64), 5
  x = np.outer(a, np.arange(16))
  for j in range(16): x[:, j * k & 15] += j
  assert (run(module, "stack", 1, 64, a, np.zeros_like(a), k)[1] == x[:, k & 15] + x[:, k + 3 & 15]).all()


def test_a_lock(module: bytes) -> None:
  zero = np.zeros(1, np.int32)
  assert run(module, "locks", 2, 64, zero, zero)[1] == 128


def test_atomics(module: bytes) -> None:
  n = 128
  i = np.arange(n)
  out, wide, total = run(module, "atomics", 2, 64, np.array([0, 0, -1, 0, 0, 0, 0], np.int32), np.zeros(1, np.uint64),
                         np.zeros(1))
  values = i * 7 % 101 - 50
  count, down = 0, 0
  for _ in range(n): count, down = (0 if count >= 10 else count + 1), (10 if down == 0 or down > 10 else down - 1)
  assert out.tolist() == [values.min(), values.max(), 0, -1, np.bitwise_xor.reduce(i), count, down]
  assert wide == sum(int(x) << 30 for x in i) and total == i.sum()


def test_dynamic_shared_memory_structures_vectors(module: bytes) -> None:
  a = floats(128)
  out = run(module, "reverse", 2, 64, a, np.zeros_like(a), shared=256)[1]
  assert (out.reshape(2, 64) == a.reshape(2, 64)[:, ::-1]).all()
  options = np.array((2.5, 3, 0.125), np.dtype("f4,i4,f8", align=True))
  out = run(module, "structure", 2, 64, a, np.zeros_like(a), options)[1]
  want = ((np.roll(a, -3) * np.float32(2.5)).astype(np.float64) + 0.125).astype(np.float32)
  assert (out == want).all()
  x, y = floats(128), rng.uniform(-1, 1, 64)
  out, wide = run(module, "vectors", 1, 32, x, y, np.zeros_like(x), np.zeros_like(y))[2:]
  assert (out.reshape(32, 4) == x.reshape(32, 4)[:, ::-1]).all()
  assert (wide.reshape(32, 2) == y.reshape(32, 2)[:, ::-1]).all()


def test_printf(module: bytes, capsys: pytest.CaptureFixture[str]) -> None:
  run(module, "hello", 1, 32, 3)
  assert capsys.readouterr().out == "".join(f"thread {k} of all: {k / 4:.2f}\n" for k in range(3))


def test_named_barriers(module: bytes) -> None:
  a = whole(128)
  assert (run(module, "producer", 1, 64, a, np.zeros_like(a))[1] == 2 * a + 1).all()
