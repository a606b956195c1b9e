"""tcgen05.mma against exact sums: every kind, shape, layout and place of operands."""
from __future__ import annotations

import random
import zlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import tinyhw
from tests.emulator.compiled import compiled_too
from tests.emulator.tensor_memory import COLUMNS, LANES, once, run, text
from tests.strength import THOROUGH, seed
from tinyhw.core.errors import DecodeError, MachineFault, Unsupported

pytestmark = pytest.mark.left("tcgen05")  # all of it is the reference's

CODES = {"f16": {"f16": 0, "bf16": 1}, "tf32": {"tf32": 2}, "i8": {"u8": 0, "s8": 1},
         "f8f6f4": {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}, "mxf4": {"e2m1": 1},
         "mxf4nvf4": {"e2m1": 1}}
CODES["mxf8f6f4"] = CODES["f8f6f4"]
FORMS = {"e4m3": (4, 3, 7), "e5m2": (5, 2, 15), "e2m3": (2, 3, 1), "e3m2": (3, 2, 3), "e2m1": (2, 1, 1)}
WIDTH = {"f16": 16, "bf16": 16, "tf32": 32, "u8": 8, "s8": 8, "e4m3": 8, "e5m2": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4}


@pytest.fixture(autouse=True)
def engines(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
  """Both engines, for each test or, in the quick run, for some."""
  if THOROUGH or not zlib.crc32(request.node.name.encode()) % 3: compiled_too(monkeypatch)


def small(code: int, t: str) -> float:
  """The value of a code of few bits."""
  e, m, bias = FORMS[t]
  exponent, fraction = code >> m & (1 << e) - 1, code & (1 << m) - 1
  x = (1 + fraction / 2 ** m) * 2.0 ** (exponent - bias) if exponent else fraction / 2 ** m * 2.0 ** (1 - bias)
  return -x if code >> e + m & 1 else x


def drawn(rng: Any, t: str, shape: tuple[int, ...]) -> tuple[Any, Any]:
  """(codes, values) of a matrix, of which sums of products are exact."""
  if t in FORMS:
    e, m, bias = FORMS[t]
    codes = rng.integers(0, 1 << 1 + e + m, shape)
    if WIDTH[t] == 8: codes = (codes & ~(((1 << e) - 1) << m)) | rng.integers(bias - 1, bias + 3, shape) << m
    return codes, np.vectorize(small, otypes=[float])(codes, t)
  if t == "u8": return (x := rng.integers(0, 256, shape)), x
  if t == "s8": return (x := rng.integers(-128, 128, shape)) & 0xFF, x
  x = rng.integers(-16, 17, shape) / 2
  if t == "f16": return x.astype(np.float16).view(np.uint16).astype(np.int64), x
  bits = x.astype(np.float32).view(np.uint32).astype(np.int64)
  return (bits >> 16 if t == "bf16" else bits), x


@dataclass(frozen=True)
class Case:
  """A product: `turned` are operands whose rows lie side by side, `modes` their swizzling, `tensor` has A in tensor
  memory."""
  kind: str
  a: str
  b: str
  d: str
  m: int
  n: int
  modes: tuple[int, int] = (2, 2)
  turned: tuple[bool, bool] = (False, False)
  signs: tuple[int, int] = (0, 0)
  tensor: bool = False
  pair: int = 1
  ws: bool = False
  adds: bool = True
  shift: int | None = None
  off: bool = False
  low: int = 0
  scale: tuple[str, int] | None = None
  ids: tuple[int, int] = (0, 0)
  saturates: bool = False
  sparse: bool = False
  selector: int = 0
  mask: tuple[tuple[int, ...], tuple[int, ...], int, int, int] | None = None  # starts, firsts, skip, use, shift
  shifted: bool = False
  ultra: int = -1  # K of 96, of sm_103: the chunk of 128 bytes that rows begin at, and go on elsewhere

  @property
  def half(self) -> bool:
    """Whether half of the lanes are used."""
    return self.m // self.pair == 64 and not self.ws and (self.pair == 1 or self.sparse)

  @property
  def dense(self) -> bool: return self.kind.startswith("mxf4")

  @property
  def k(self) -> int:
    if self.ultra >= 0: return 96
    return (64 if self.dense else 256 // max(WIDTH[self.a], 8)) << self.sparse


def chunks(codes: Any, t: str, dense: bool) -> Any:
  """Bytes [.., 16] of elements that lie side by side along the last axis."""
  bits = WIDTH[t]
  n = 32 if dense else 128 // max(bits, 8)
  parts = codes.reshape(*codes.shape[:-1], -1, n)
  out = np.zeros((*parts.shape[:-1], 16), np.uint8)
  for at in np.ndindex(*parts.shape[:-1]):
    whole = sum(int(c) << bits * k for k, c in enumerate(parts[at]))
    out[at] = np.frombuffer(whole.to_bytes(16, "little"), np.uint8)
  return out


def swizzled(at: int, mode: int) -> int:
  """CuTe's Swizzle<b, 4, 3>; of 32 bytes that stay together Swizzle<2, 5, 2>."""
  if mode == 1: return at ^ at >> 2 & 3 << 5
  return at ^ at >> 3 & (1 << {0: 0, 2: 3, 4: 2, 6: 1}[mode]) - 1 << 4


def stored(memory: Any, start: int, codes: Any, t: str, mode: int, turned: bool, dense: bool, ultra: int = -1) -> int:
  """Put a matrix [rows, k] into shared memory; its descriptor's bits but the address. `ultra`: it begins at a chunk of
  128 bytes, and goes on at another place."""
  width = {0: 16, 1: 128, 2: 128, 4: 64, 6: 32}[mode]
  raw = chunks(codes.T if turned else codes, t, dense)
  side, deep = width // 16, 4 if mode == 1 else 8
  if not turned:
    stride = 8 * width if mode else 16 * 8 * raw.shape[1]
    leading = 128
    def place(r: int, c: int) -> int: return r % 8 * width + r // 8 * stride + c * (16 if mode else leading)
  else:
    groups, k = raw.shape[1], raw.shape[0]
    raw = raw.transpose(1, 0, 2)
    if mode: stride, leading = deep * width * -(-groups // side), deep * width
    else: stride, leading = 128 * -(-k // 8), 128
    def place(r: int, c: int) -> int:
      if not mode: return r * stride + c % 8 * 16 + c // 8 * leading
      return r % side * 16 + r // side * leading + c % deep * width + c // deep * stride
  if ultra > 0:
    further = 65536 if start else 16384
    for r, c in np.ndindex(*raw.shape[:2]):
      place = ultra + c
      at = swizzled((further if place > 7 else start) + r * 128 + place % 8 * 16, mode)
      memory[at:at + 16] = raw[r, c]
    return ultra | further >> 4 << 16 | 1024 >> 4 << 32 | 1 << 46 | 1 << 52 | mode << 61
  for r, c in np.ndindex(*raw.shape[:2]):
    at = swizzled(start + place(r, c), mode)
    memory[at:at + 16] = raw[r, c]
  return leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | mode << 61


def places(case: Case) -> list[tuple[int, int, int, int]]:
  """(lane, column, row, first column of the sum) for each row of a block's part, once for each run of columns."""
  rows, n = case.m // case.pair, case.n
  if rows == 128: return [(r, n, r, 0) for r in range(128)]
  if rows == 64 and not case.half: return [(64 * h + r, n // 2, r, h * n // 2)
                                                        for h in range(2) for r in range(64)]
  if rows == 64: return [(r % 16 + 32 * (r // 16) + 16 * case.low, n, r, 0) for r in range(64)]
  return [(32 * q + r, n // 4, r, q * n // 4) for q in range(4) for r in range(32)]


def descriptor(case: Case) -> int:
  codes = CODES[case.kind]
  word = codes[case.a] << 7 | codes[case.b] << 10 | case.signs[0] << 13 | case.signs[1] << 14
  word |= case.sparse << 2 | case.selector | case.turned[0] << 15 | case.turned[1] << 16 | case.n // 8 << 17
  if case.scale is None:
    return word | {"f16": 0, "f32": 1, "s32": 2}[case.d] << 4 | case.m // 16 << 24 | case.saturates << 3
  word |= (case.ultra >= 0) << 31
  return word | case.ids[1] << 4 | (case.scale[0] == "ue8m0") << 23 | case.m // 128 << 27 | case.ids[0] << 29


def name(case: Case) -> str:
  scale = ""
  if case.scale is not None: scale = f".block_scale.scale_vec::{case.scale[1]}X"
  if case.ultra >= 0 and case.scale is not None: scale = f".block_scale.block{96 // case.scale[1]}"
  return (f"tcgen05.mma{'.ws' * case.ws}{'.sp' * case.sparse}.cta_group::{case.pair}.kind::{case.kind}{scale}"
          f"{'.ashift' * case.shifted}")


CODES_OF_CHUNKS = {2: (0b1110, 0b0100), 4: (0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b0110, 0b1110)}


def thinned(rng: Any, case: Case, a: Any, x: Any) -> tuple[Any, Any, Any]:
  """(codes of what is stored, the matrix with its zeros, four bits for each chunk) of half a matrix that is drawn; some
  chunks have zeros alone and metadata without a meaning, as CUTLASS's programs write them."""
  chunk = {"tf32": 2, "mxf4": 8, "mxf4nvf4": 8}.get(case.kind, 4)
  half, unit = chunk // 2, 2 if chunk == 8 else 1
  every = [*CODES_OF_CHUNKS[2 if chunk == 2 else 4]]
  marks, out = rng.choice(every, (case.m, case.k // chunk)), np.zeros((case.m, case.k), x.dtype)
  for row, j in np.ndindex(*marks.shape):
    if rng.random() < 0.05:
      a[row, half * j:half * j + half], marks[row, j] = 0, 0
      continue
    code = int(marks[row, j])
    at = [code >> 3] if chunk == 2 else [code & 3, code >> 2]
    for n, place in enumerate(at):
      out[row, chunk * j + unit * place:][:unit] = x[row, half * j + unit * n:][:unit]
  return a, out, marks


def stow(cells: Any, case: Case, marks: Any) -> None:
  """Metadata into tensor memory, bit by bit: of elements of 16 and 32 bits a row has 16 bits of the lane of itself or
  of the row eight further up, 16 more of the lane eight further down; of others 64 bits of its own lane."""
  rows = case.m // case.pair
  for block in range(case.pair):
    for lane, _, row, _ in places(case):
      bits = [int(m) >> b & 1 for m in marks[block * rows + row] for b in range(4)]
      for k, bit in enumerate(bits):
        if case.kind in {"f16", "tf32"}:
          high = row & 8
          there, column, place = lane - high + 8 * (k // 16), META_AT + case.selector, k % 16 + 2 * high
        else: there, column, place = lane, META_AT + k // 32, k % 32
        word = int(cells[block, there, column])
        cells[block, there, column] = word & ~(1 << place) | bit << place


def masked(case: Case) -> tuple[int, list[bool]]:
  """(the descriptor, which columns are zero) of a mask of columns."""
  assert case.mask is not None
  starts, firsts, skip, use, shift = case.mask
  word = sum(s << 8 * k for k, s in enumerate(starts)) | sum(f << 32 + k for k, f in enumerate(firsts))
  word |= 1 << 39 | skip << 40 | use << 48 | shift << 56
  parts, zero = 128 // case.m, list[bool]()
  for start, first in zip(starts[:parts], firsts):
    run: list[bool] = []
    while len(run) < start + case.n: run, first = run + [bool(first)] * (skip + 1 if first else use + 1), 1 - first
    zero += run[start:start + case.n // parts]
  return word, zero


A_AT, SA_AT, SB_AT, META_AT = 300, 320, 340, 360  # columns of A, of scale factors, of metadata
D_AT = 8


def check(case: Case, seeded: int) -> None:
  rng = np.random.default_rng(seed(seeded))
  pair, k = case.pair, case.k
  skipped = case.mask[4] if case.mask is not None else 0  # columns of B that are left out
  (a, x), (b, y) = drawn(rng, case.a, (case.m, k >> case.sparse)), drawn(rng, case.b, (case.n + skipped, k))
  cells = rng.integers(0, 1 << 32, (pair, LANES, COLUMNS), np.uint32)
  rows, columns = case.m // pair, case.n // pair
  if case.sparse:
    a, x, marks = thinned(rng, case, a, x)
    stow(cells, case, marks)
  shared = rng.integers(0, 256, (pair, 65536 if case.ultra < 1 else 98304), np.uint8)
  bits = [0, 0]
  old = np.zeros((case.m, case.n), np.float64 if case.d != "s32" else np.int64)
  for block in range(pair):
    mine = a[block * rows:(block + 1) * rows]
    bits[0] = stored(shared[block], 0, mine, case.a, case.modes[0], case.turned[0], case.dense, case.ultra)
    bits[1] = stored(shared[block], 32768, b[block * columns:(block + 1) * columns + skipped], case.b, case.modes[1],
                     case.turned[1], case.dense, case.ultra)
    if case.tensor:
      if WIDTH[case.a] < 8 and not case.dense: raw = (mine << (2 if case.a == "e2m1" else 0)).astype(np.uint8)
      else: raw = chunks(mine, case.a, case.dense).reshape(rows, -1)
      width = raw.shape[1] // 4
      for lane, _, row, _ in places(case): cells[block, lane, A_AT:A_AT + width] = raw[row].view(np.uint32)
    for lane, count, row, first in places(case):
      if case.d == "s32":  # sums leave 32 bits at either end
        values = rng.choice([-1 << 31, 0, (1 << 31) - (1 << 20)], count) + rng.integers(0, 1 << 20, count)
      else: values = rng.integers(-1000, 1000, count)
      old[block * rows + row, first:first + count] = values
      if case.d == "s32": words = values.astype(np.int32).view(np.uint32)
      elif case.d == "f32": words = values.astype(np.float32).view(np.uint32)
      else: words = values.astype(np.float16).view(np.uint16) | rng.integers(0, 1 << 16, count) << 16
      cells[block, lane, D_AT:D_AT + count] = words
  if case.shifted: x = x[[max(r - 1, r // rows * rows) for r in range(case.m)]]
  y, mask = y[skipped:], 0
  if case.mask is not None:
    mask, zero = masked(case)
    y[zero] = 0
  if case.signs[0]: x = -x
  if case.signs[1]: y = -y
  if case.scale is not None:
    t, count = case.scale
    factors = []
    for rows_of, at, first in ((case.m, SA_AT, case.ids[0]), (case.n, SB_AT, case.ids[1])):
      codes = rng.integers(122, 131, (rows_of, count)) if t == "ue8m0" else rng.integers(0x28, 0x48, (rows_of, count))
      values = 2.0 ** (codes - 127) if t == "ue8m0" else np.vectorize(small, otypes=[float])(codes, "e4m3")
      factors.append(np.repeat(values, k // count, axis=1))
      raw = cells.view(np.uint8).reshape(pair, LANES, 4 * COLUMNS)
      for block in range(pair):
        own = codes[block * rows:(block + 1) * rows] if at == SA_AT else codes
        for r in range(len(own)):
          further = 4 if len(own) <= 128 else 8  # columns from four bytes of a row to the next four
          for q, j in np.ndindex(4, count):
            byte = 4 * (at + r // 32 + (first + j) // 4 * further) + (first + j) % 4
            raw[block, 32 * q + r % 32, byte] = own[r, j]
    x, y = x * factors[0], y * factors[1]
  wanted = x @ y.T + (old * 0.5 ** (case.shift or 0) if case.adds else 0)
  low = case.low << 20
  left = "[%r11]" if case.tensor else "%l10"
  off = rng.integers(0, 1 << 32, 4 * pair, np.uint32) if case.off else None
  vector = "" if off is None else ", {" + ", ".join(f"%r{60 + j}" for j in range(4 * pair)) + "}"
  masks = "" if off is None else "".join(f"mov.u32 %r{60 + j}, {int(w)};" for j, w in enumerate(off))
  scales = ", [%r12], [%r13]" if case.scale is not None else ""
  out = run(once(f"""add.u32 %r10, %d, {low + D_AT}; add.u32 %r11, %d, {low + A_AT}; add.u32 %r12, %d, {SA_AT};
    add.u32 %r13, %d, {SB_AT}; add.u32 %r15, %d, {low + META_AT}; mov.u64 %l13, {mask}; cvt.u64.u32 %l10, %s;
    shr.u64 %l10, %l10, 4; add.u64 %l11, %l10, {bits[1] + 2048};
    add.u64 %l10, %l10, {bits[0]}; mov.u32 %r14, {descriptor(case)}; setp.eq.u32 %p5, %r14, {descriptor(case) + (
      not case.adds)}; {masks}
    {name(case)} [%r10], {left}, %l11{', [%r15]' * case.sparse}, %r14{scales}{vector}, %p5{
      f', {case.shift}' if case.shift is not None else ''}{', %l13' if mask else ''};""", pair,
    pair == 2), cells, shared, pair, pair=pair, target="sm_103a" if case.ultra >= 0 else "sm_100a")
  model = cells.copy()
  for block in range(pair):
    for lane, count, row, first in places(case):
      if off is not None and int(off[4 * block + lane // 32]) >> lane % 32 & 1: continue
      values = wanted[block * rows + row, first:first + count]
      if case.d == "s32":
        if case.saturates: values = np.clip(values, -2 ** 31, 2 ** 31 - 1)
        words = values.astype(np.int64).astype(np.uint32)
      elif case.d == "f32": words = values.astype(np.float32).view(np.uint32)
      else: words = values.astype(np.float16).view(np.uint16).astype(np.uint32)
      model[block, lane, D_AT:D_AT + count] = words
  assert (out == model).all()


F16 = Case("f16", "f16", "f16", "f32", 128, 64)
CASES = [F16, replace(F16, d="f16", m=64, n=24, adds=False), replace(F16, a="bf16", n=256, shift=3),
         replace(F16, b="bf16", n=8, modes=(0, 6)), replace(F16, modes=(4, 0), turned=(True, True), n=128),
         replace(F16, modes=(2, 2), turned=(True, True), n=128), replace(F16, modes=(6, 4), turned=(False, True)),
         replace(F16, tensor=True, signs=(1, 0)), replace(F16, m=64, low=1, tensor=True, n=40),
         replace(F16, m=64, n=32, off=True), replace(F16, off=True, signs=(0, 1)),
         replace(F16, pair=2, m=256, n=128), replace(F16, pair=2, m=128, n=64, tensor=True),
         replace(F16, pair=2, m=256, n=32, off=True, modes=(0, 4), turned=(True, False)),
         replace(F16, ws=True, m=64, n=128), replace(F16, ws=True, m=32, n=64, tensor=True),
         replace(F16, ws=True, m=128, n=64, adds=False)]
TF32 = Case("tf32", "tf32", "tf32", "f32", 128, 64)
CASES += [TF32, replace(TF32, modes=(1, 1), turned=(True, True)), replace(TF32, modes=(0, 2), tensor=True),
          replace(TF32, modes=(6, 4), shift=0, m=64, n=16)]
F8 = Case("f8f6f4", "e4m3", "e5m2", "f32", 128, 64)
CASES += [replace(F8, a=a, b=b) for a, b in (("e4m3", "e5m2"), ("e2m3", "e3m2"), ("e2m1", "e4m3"), ("e5m2", "e2m1"))]
CASES += [replace(F8, d="f16", turned=(True, True)), replace(F8, a="e2m1", tensor=True, m=64, n=16),
          replace(F8, a="e3m2", tensor=True, modes=(0, 0)), replace(F8, a="e2m1", b="e2m3", turned=(True, True), n=128),
          replace(F8, ws=True, m=32, n=128)]
I8 = Case("i8", "s8", "u8", "s32", 128, 64)
CASES += [I8, replace(I8, a="u8", m=64, n=24, tensor=True), replace(I8, pair=2, m=256, n=64),
          replace(I8, saturates=True)]
MX8 = Case("mxf8f6f4", "e4m3", "e5m2", "f32", 128, 64, scale=("ue8m0", 1))
CASES += [MX8, replace(MX8, a="e2m1", b="e3m2", ids=(3, 1), n=200), replace(MX8, pair=2, m=256, n=64, ids=(2, 0)),
          replace(MX8, tensor=True, a="e2m3", adds=False)]
MX4 = Case("mxf4", "e2m1", "e2m1", "f32", 128, 64, scale=("ue8m0", 2))
CASES += [MX4, replace(MX4, ids=(2, 0), n=256, signs=(1, 0)), replace(MX4, tensor=True, pair=2, m=256)]
NV4 = Case("mxf4nvf4", "e2m1", "e2m1", "f32", 128, 128, scale=("ue4m3", 4))
CASES += [NV4, replace(NV4, scale=("ue8m0", 4), modes=(0, 6)), replace(NV4, scale=("ue8m0", 2), ids=(0, 2)),
          replace(NV4, pair=2, m=256, n=256, adds=False)]

CASES += [replace(c, sparse=True) for c in (
  F16, replace(F16, selector=1, a="bf16", n=24, tensor=True), replace(F16, m=64, low=1, d="f16", n=16),
  replace(F16, pair=2, m=256, modes=(4, 2), off=True), replace(F16, pair=2, m=128, low=1, n=32, tensor=True),
  replace(F16, ws=True, m=64, modes=(0, 0)), replace(F16, ws=True, m=32, n=128, turned=(True, True), modes=(2, 2)),
  replace(F16, ws=True, m=128, tensor=True), TF32, replace(TF32, selector=1, tensor=True, modes=(0, 4), shift=15),
  replace(TF32, m=64, turned=(True, False), modes=(1, 2)), F8, replace(F8, a="e2m1", b="e3m2", modes=(6, 4)),
  replace(F8, a="e2m3", tensor=True, m=64), replace(F8, ws=True, m=32, d="f16"), I8, replace(I8, ws=True, m=64),
  replace(I8, a="u8", pair=2, m=128, n=32), MX8, replace(MX8, pair=2, m=256, a="e2m1", ids=(1, 2)), MX4,
  replace(MX4, tensor=True, n=200, ids=(0, 2)), NV4, replace(NV4, pair=2, m=256, modes=(6, 2)))]
CASES += [replace(F16, ws=True, mask=((0, 0, 0, 0), (0, 0, 0, 0), 2, 3, 0)),
          replace(F16, ws=True, m=64, mask=((0, 0, 0, 0), (1, 0, 0, 0), 2, 3, 32)),
          replace(I8, ws=True, m=32, n=128, mask=((0, 1, 2, 1), (1, 1, 0, 0), 2, 3, 2)),
          replace(F8, ws=True, m=32, sparse=True, mask=((9, 0, 40, 3), (1, 0, 0, 1), 6, 0, 16))]
CASES += [replace(NV4, scale=("ue4m3", 6), ultra=0, ids=(0, 2)), replace(MX4, scale=("ue8m0", 3), ultra=0, tensor=True),
          replace(NV4, scale=("ue8m0", 6), ultra=7, ids=(2, 0), n=200),
          replace(MX4, scale=("ue8m0", 3), ultra=6, pair=2, m=256, ids=(3, 2)),
          replace(NV4, scale=("ue8m0", 3), ultra=1, ids=(1, 3), n=256)]
CASES += [replace(F16, tensor=True, shifted=True), replace(I8, tensor=True, shifted=True, pair=2, m=256),
          replace(TF32, tensor=True, shifted=True, sparse=True)]


@pytest.mark.parametrize("case", CASES, ids=[f"{k}-{name(c)[12:]}-{c.m}x{c.n}" for k, c in enumerate(CASES)])
def test_a_product(case: Case) -> None: check(case, zlib.crc32(repr(case).encode()))


def random_case(rng: random.Random) -> Case:
  kind = rng.choice(["f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4"])
  a, b = (rng.choice([*CODES[kind]]) for _ in "ab")
  scaled, pair, flip = kind.startswith("mx"), rng.choice([1, 1, 2]), lambda: rng.random() < 0.5
  ws, sparse = not scaled and pair == 1 and rng.random() < 0.2, rng.random() < 0.3
  m = rng.choice([32, 64, 128]) if ws else 128 * pair if scaled or flip() else 64 * pair
  n = rng.choice([64, 128, *([] if sparse else [256])]) if ws else 32 * rng.randrange(1, 9)
  d = rng.choice(["f16", "f32"]) if kind in {"f16", "f8f6f4"} else "s32" if kind == "i8" else "f32"
  tensor = flip()
  turns = kind not in {"mxf4", "mxf4nvf4"} and n % 16 == 0
  turned = turns and not tensor and flip(), turns and flip() and n // pair % (128 if kind == "tf32" else 16) == 0
  modes = [1 if kind == "tf32" and t else rng.choice([0, 2, 4, 6]) for t in turned]
  turned = (turned[0], turned[1] and (n // pair) % {0: 8, 1: 32, 2: 64, 4: 32, 6: 16}[modes[1]] == 0)
  if kind == "tf32" and not turned[1] and modes[1] == 1: modes[1] = 2
  if sparse and not turned[1] and modes[1] == 6: modes[1] = 4
  signs = (0, 0) if kind == "i8" else (int(flip()), int(flip()))
  scale, ids = None, (0, 0)
  if kind == "mxf8f6f4": scale, ids = ("ue8m0", 1), (rng.randrange(4), rng.randrange(4))
  elif kind == "mxf4": scale, ids = ("ue8m0", 2), (2 * rng.randrange(2), 2 * rng.randrange(2))
  elif scaled: scale = rng.choice([("ue8m0", 4), ("ue4m3", 4)])
  half = m // pair == 64 and (pair == 1 or sparse) and not ws
  return Case(kind, a, b, d, m, n, (modes[0], modes[1]), turned, signs, tensor, pair, ws, flip(),
              rng.randrange(16) if kind in {"f16", "tf32"} and not ws else None, not scaled and not ws and flip(),
              int(half and flip()), scale, ids, sparse=sparse,
              selector=int(sparse and kind in {"f16", "tf32"} and flip()))


@pytest.mark.parametrize("number", range(200 if THOROUGH else 6))
def test_a_random_product(number: int) -> None:
  check(random_case(random.Random(seed(number))), number)


@pytest.mark.parametrize(("change", "message"), [
  (1 << 2, "a sparse matrix, for an instruction that is not"), (1 << 6, "bits that have no meaning"),
  (2 << 7, "elements of type 2 for f16"), (2 << 4, "sums of type 3 for f16"), (8 << 24, "256 rows and 64 columns"),
  (1 << 22, "128 rows and 320 columns, for f16 of 1 block")])
def test_descriptors_that_there_are_not(change: int, message: str) -> None:
  body = f"""mov.u32 %r14, {descriptor(F16) + change}; mov.u64 %l10, {1 << 46};
    @%p1 tcgen05.mma.cta_group::1.kind::f16 [%d], %l10, %l10, %r14, 1;"""
  with pytest.raises(MachineFault, match=message): refused(body)


def refused(body: str, columns: int = 64) -> None:
  tinyhw.launch(text(body, 32768, columns=columns), "k", 1, LANES,
                [*np.zeros((2, LANES, COLUMNS), np.uint32), np.zeros(32768, np.uint8)], "EMU")


@pytest.mark.parametrize(("line", "message"), [
  ("tcgen05.mma.cta_group::1.kind::f16 [%r1], %l10, %l10, %r14, 1;",
   "a sum in columns 32 to 95 of tensor memory, of which 64 is not allocated"),
  ("tcgen05.mma.cta_group::1.kind::f16 [%d], [%r2], %l10, %r14, 1;",
   "a matrix in columns 60 to 67 of tensor memory, of which 64 is not allocated"),
  ("tcgen05.mma.cta_group::1.kind::f16 [%r3], %l10, %l10, %r14, 1;", "a matrix of 128 rows at lane 16"),
  ("tcgen05.mma.cta_group::2.kind::f16 [%d], %l10, %l10, %r15, 1;", "behind others for cta_group::1"),
  ("tcgen05.mma.cta_group::1.kind::f16 [%d], %l12, %l10, %r14, 1;", "of shared memory, which has")])
def test_products_that_there_are_not(line: str, message: str) -> None:
  body = f"""mov.u32 %r14, {descriptor(F16)}; mov.u32 %r15, {descriptor(replace(F16, pair=2, m=256))};
    mov.u64 %l10, {1 << 46}; mov.u64 %l12, {1 << 46 | 0x3000}; add.u32 %r1, %d, 32; add.u32 %r2, %d, 60;
    add.u32 %r3, %d, {16 << 16}; @%p1 {line}"""
  with pytest.raises(MachineFault, match=message): refused(body)


THIN = replace(F16, sparse=True)
SPARSE = "tcgen05.mma.sp.cta_group::1.kind::f16"
SCALED = "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale"
WEIGHTS = "tcgen05.mma.ws.cta_group::1.kind::f16 [%d], %l10, %l10, %r14, 1, %l12;"


@pytest.mark.parametrize(("case", "number", "line", "message"), [
  (THIN, 0, f"{SPARSE} [%d], %l10, %l10, [%r1], %r14, 1;", "metadata in an odd column .1. of tensor memory"),
  (THIN, 0, f"{SPARSE} [%d], %l10, %l10, [%r2], %r14, 1;", "metadata in columns 64 to 64 .* 64 is not allocated"),
  (F16, 0, f"{SPARSE} [%d], %l10, %l10, [%d], %r14, 1;", "no sparse matrix, for an instruction that has one"),
  (replace(THIN, m=64), 0, f"{SPARSE} [%d], %l10, %l10, [%r3], %r14, 1;", "metadata at lane 16, of a sum at lane 0"),
  (replace(F8, sparse=True, selector=1), 0, "tcgen05.mma.sp.cta_group::1.kind::f8f6f4 [%d], %l10, %l10, [%d], %r14, 1;",
   "1 in bits 0 and 1"),
  (replace(F16, selector=1), 0, "tcgen05.mma.cta_group::1.kind::f16 [%d], %l10, %l10, %r14, 1;", "1 in bits 0 and 1"),
  (replace(MX8, sparse=True, pair=2, m=128), 0, "tcgen05.mma.sp.cta_group::2.kind::mxf8f6f4.block_scale [%d], %l10, "
   "%l10, [%d], %r14, [%d], [%d], 1;", "128 rows and 64 columns, for mxf8f6f4 of 2 blocks"),
  (replace(F16, m=64), 0, "tcgen05.mma.cta_group::1.kind::f16.ashift [%d], [%d], %l10, %r14, 1;", "64 rows .*shifted"),
  (replace(F16, ws=True), 33 << 56, WEIGHTS, "a shift of 33 columns, for 128 rows that have 32 at most"),
  (replace(F16, ws=True, m=32), 17 << 56, WEIGHTS, "a shift of 17 columns, for 32 rows"),
  (MX8, 0, f"{SCALED} [%d], %l10, %l10, %r14, [%r2], [%d], 1;", "scale factors in columns 64 to 67 .*64 is not alloc"),
  (MX8, 0, f"{SCALED} [%d], %l10, %l10, %r14, [%d], [%r4], 1;", "scale factors in columns 63 to 64 .*64 is not alloc"),
  (F16, 1 << 36, WEIGHTS, "a mask of columns .0x0000001000000000. with bits that have no meaning")])
def test_sparse_and_masked_products_that_there_are_not(case: Case, number: int, line: str, message: str) -> None:
  body = f"""mov.u32 %r14, {descriptor(case)}; mov.u64 %l10, {1 << 46}; mov.u64 %l12, {number}; add.u32 %r1, %d, 1;
    add.u32 %r2, %d, 64; add.u32 %r3, %d, {16 << 16}; add.u32 %r4, %d, 63; @%p1 {line}"""
  with pytest.raises(MachineFault, match=message): refused(body)


@pytest.mark.parametrize(("kind", "code"), [("f16", 0b0101), ("tf32", 0b0110), ("f8f6f4", 0b0010), ("i8", 0b1111)])
def test_metadata_that_have_no_meaning(kind: str, code: int) -> None:
  """Where anything else than zeros is stored; what all words have in tensor memory is the code."""
  case = replace({"f16": F16, "tf32": TF32, "f8f6f4": F8, "i8": I8}[kind], sparse=True)
  line = f"{name(case)} [%d], %l10, %l10, [%d], %r14, 0;"
  body = f"""mov.u32 %r14, {descriptor(case)}; mov.u64 %l10, {1 << 46}; @%p1 {line}"""
  cells = np.full((LANES, COLUMNS), code * 0x11111111, np.uint32)

  def launched(byte: int) -> None:
    given = [np.zeros_like(cells), cells, np.full(32768, byte, np.uint8)]
    tinyhw.launch(text(body, 32768, columns=64), "k", 1, LANES, given)
  launched(0)
  message = f"metadata {code:#06b} of chunk 0 of row 0: that has no meaning"
  with pytest.raises(MachineFault, match=message): launched(0x34)


@pytest.mark.parametrize("line", ["tcgen05.mma.cta_group::1.kind::f16 [%d], %l10, %l10, %r14, 1, 16;",
                                  "tcgen05.mma.cta_group::1.kind::f16.ashift [%d], %l10, %l10, %r14, 1;",
                                  "tcgen05.mma.cta_group::1.kind::f16 [%d], %l10, %l10, %r14, {%r1, %r2}, 1;",
                                  "tcgen05.mma.cta_group::1.kind::f16 [%d], %l10, %l10, %r14, 1, 1, 1;"])
def test_operands_that_there_are_not(line: str) -> None:
  with pytest.raises((Unsupported, DecodeError)): refused(f"@%p1 {line}")
