"""wmma and mma.sp of PTX against products of NumPy."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.emulator.ptx.test_async import kernel, run
from tests.strength import seed
from tinyhw.core.errors import DecodeError, MachineFault

SIZES = {"f16": 2, "bf16": 2, "tf32": 4, "u8": 1, "s8": 1, "f64": 8, "f32": 4, "s32": 4}
PARAMS = ".param .u64 out, .param .u64 a, .param .u64 b, .param .u64 c"


def encoded(x: Any, t: str) -> Any:
  """Whole numbers as bytes of a type, packed along the last axis."""
  if t == "bf16": return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
  if t in {"u4", "s4", "b1"}:
    bits = 1 if t == "b1" else 4
    parts = (x.astype(np.int64) & (1 << bits) - 1).reshape(*x.shape[:-1], -1, 8 // bits)
    return (parts << np.arange(0, 8, bits)).sum(axis=-1).astype(np.uint8)
  return x.astype({"f16": "f2", "tf32": "f4", "u8": "u1", "s8": "i1", "f64": "f8", "f32": "f4", "s32": "i4"}[t])


def drawn(rng: Any, t: str, shape: Any) -> Any:
  low, high = {"u8": (0, 256), "s8": (-128, 128), "u4": (0, 16), "s4": (-8, 8), "b1": (0, 2)}.get(t, (-8, 9))
  return rng.integers(low, high, shape)


CASES = [(s, d, a, b, c) for s in ((16, 16, 16), (8, 32, 16), (32, 8, 16)) for d, a, b, c in (
  ("f32", "f16", "f16", "f32"), ("f16", "f16", "f16", "f16"), ("f32", "bf16", "bf16", "f32"),
  ("s32", "u8", "u8", "s32"), ("s32", "s8", "s8", "s32"))]
CASES += [((16, 16, 8), "f32", "tf32", "tf32", "f32"), ((8, 8, 4), "f64", "f64", "f64", "f64"),
          ((8, 8, 32), "s32", "s4", "s4", "s32"), ((8, 8, 128), "s32", "b1", "b1", "s32")]


def registers(which: str, t: str, size: int) -> tuple[str, str]:
  """(the vector, the letter) of a fragment."""
  bits = {"u4": 4, "s4": 4, "b1": 1}.get(t) or 8 * SIZES[t]
  word = 64 if t == "f64" else 32
  count = 8 if t == "f16" and which in "ab" else max(1, size * bits // word // 32)
  return "{" + ", ".join(f"%{which}{k}" for k in range(count)) + "}", {"f32": "f32", "f64": "f64"}.get(t, "b32")


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize(("shape", "d", "a", "b", "c"), CASES, ids=str)
def test_wmma(shape: tuple[int, int, int], d: str, a: str, b: str, c: str, space: str) -> None:
  rng = np.random.default_rng(seed(len(a) + shape[0] + shape[2]))
  m, n, k = shape
  small = a in {"s4", "u4", "b1"}
  rows = [True, False, True] if small else [bool(x) for x in rng.integers(0, 2, 3)]
  x, y, z = drawn(rng, a, (m, k)), drawn(rng, b, (k, n)), rng.integers(-100, 100, (m, n))
  pads = [0, 0] if small or space == "shared" else [16, 32]
  given = []
  for matrix, t, row, pad in ((x, a, rows[0], pads[0]), (y, b, rows[1], pads[1]), (z, c, rows[2], 0)):
    stored = matrix if row else matrix.T
    given.append(encoded(np.ascontiguousarray(np.pad(stored, ((0, 0), (0, pad)))), t))
  text, declared, copies = [], [], []
  size, name = ".".join(f"m{m}n{n}k{k}".split()), ["row" if r else "col" for r in rows]
  for which, t, count, row, array in zip("abc", (a, b, c), (m * k, k * n, m * n), name, given):
    vector, kind = registers(which, t, count)
    declared.append(f".reg .{kind} %{which}<8>; .shared .align 128 .b8 s{which}[{array.nbytes}];")
    lead = matrix_lead(array, t)
    if space == "shared":
      copies.append(f"""ld.param.u64 %l1, [{which}]; mov.u32 %r1, %t; mov.u32 %r2, s{which};
L{which}: cvt.u64.u32 %l2, %r1; add.u64 %l3, %l1, %l2; ld.global.u8 %h1, [%l3]; add.u32 %r3, %r2, %r1;
    st.shared.u8 [%r3], %h1; add.u32 %r1, %r1, 32; setp.lt.u32 %p2, %r1, {array.nbytes}; @%p2 bra L{which};""")
      where = f"[s{which}]"
    else:
      copies.append(f"ld.param.u64 %l1{'abc'.index(which)}, [{which}];")
      where = f"[%l1{'abc'.index(which)}]"
    text.append(f"wmma.load.{which}.sync.aligned.{row}.{size}.{space}.{t} {vector}, {where}, {lead};")
  vector, kind = registers("d", d, m * n)
  declared.append(f".reg .{kind} %d<8>;")
  types = f"{d}.{c}" if a == "f16" else f"{d}.{a}.{b}.{c}"
  operation = ".and.popc" if a == "b1" else ""
  inputs = ", ".join(registers(w, t, s)[0] for w, t, s in zip("abc", (a, b, c), (m * k, k * n, m * n)))
  text.append(f"wmma.mma{operation}.sync.aligned.{name[0]}.{name[1]}.{size}.{types} {vector}, {inputs};")
  text.append(f"wmma.store.d.sync.aligned.col.{size}.global.{d} [%o], {vector}, {m};")
  source = kernel("\n".join([*copies, "bar.warp.sync -1;", *text]), " ".join(declared), PARAMS)
  out = np.zeros((n, m), encoded(z, d).dtype)
  found = run(source, out, *given)[0].T
  product = ((x & 1)[:, :, None] & y[None]).sum(axis=1) if a == "b1" else x @ y
  assert (found == (product + z).astype(found.dtype)).all()


def matrix_lead(array: Any, t: str) -> int:
  """The stride of an array in elements."""
  return int(array.shape[1] * {"u4": 2, "s4": 2, "b1": 8}.get(t, 1))


SPARSE = [("f16", 16, "f32"), ("f16", 32, "f16"), ("bf16", 32, "f32"), ("tf32", 8, "f32"), ("tf32", 16, "f32"),
          ("s8", 32, "s32"), ("s8", 64, "s32"), ("u4", 64, "s32"), ("u4", 128, "s32")]


def fragments(matrix: Any, t: str, left: bool) -> Any:
  """Registers [lanes, n] of a dense operand (section 9.7.14.5), by loops: rows of A, columns of B."""
  bits = {"u4": 4, "s8": 8, "f16": 16, "bf16": 16, "tf32": 32}[t]
  n = 32 // bits
  rows = matrix if left else matrix.T
  count = rows.shape[1] // (4 * n) * (2 if left else 1)
  out = np.zeros((32, count), np.uint32)
  for lane in range(32):
    for r in range(count):
      row, block = (lane // 4 + 8 * (r % 2), r // 2) if left else (lane // 4, r)
      part = rows[row, (block * 4 + lane % 4) * n:][:n]
      out[lane, r] = encoded(np.ascontiguousarray(part), t).view(np.uint32)[0]
  return out


@pytest.mark.parametrize("engine", ["ref", "jit"])
@pytest.mark.parametrize(("t", "k", "d", "selector"), [
  (*s, n) for s in SPARSE for n in range(1 + ((s[0], s[1]) not in {("s8", 64), ("u4", 128)}))])
def test_sparse_products(t: str, k: int, d: str, selector: int, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("EMU", engine)
  rng = np.random.default_rng(seed(k + selector))
  chunk = {"tf32": 2, "u4": 8}.get(t, 4)
  unit = 2 if chunk == 8 else 1
  x, stored, rows = np.zeros((16, k), np.int64), np.zeros((16, k // 2), np.int64), np.zeros(16, object)
  for i in range(16):
    for j in range(k // chunk):
      at = sorted(rng.permutation(4 if chunk != 2 else 2)[:2 if chunk != 2 else 1].tolist())
      codes = at if chunk != 2 else ([0, 1] if at == [0] else [2, 3])
      rows[i] |= (codes[0] | codes[1] << 2) << 4 * j
      for place, p in enumerate(at):
        values = drawn(rng, t, unit)
        x[i, j * chunk + p * unit:][:unit] = values
        stored[i, (j * len(at) + place) * unit:][:unit] = values
  words = np.zeros(32, np.uint32)
  width = 4 * k // chunk  # bits of a row
  for g, h, at in np.ndindex(8, 2, width):  # CUTLASS's programs have them there
    bit = int(rows[g + 8 * h]) >> at & 1
    if t in {"s8", "u4"}: lane, place = 2 * selector + at // 32 * 2 + h, at % 32
    else: lane, place = width // 16 * selector + at // 16, at % 16 + 16 * h
    words[4 * g + lane] |= np.uint32(bit << place)
  y, z = drawn(rng, t, (k, 8)), rng.integers(-50, 50, (16, 8))
  a, b = fragments(stored, t, True), fragments(y, t, False)
  names = ["{" + ", ".join(f"%{w}{i}" for i in range(n)) + "}" for w, n in (("a", a.shape[1]), ("b", b.shape[1]))]
  loads = [f"ld.global.u32 %{w}{i}, [%l{j}+{128 * i}];" for w, v, j in (("a", a, 11), ("b", b, 12))
           for i in range(v.shape[1])]
  packed = d == "f16"
  c_letter = "x" if packed or d == "s32" else "f"
  count = 2 if packed else 4
  result = "{" + ", ".join(f"%{c_letter}{i}" for i in range(count)) + "}"
  text = kernel(f"""ld.param.u64 %l1, [a]; ld.param.u64 %l2, [b]; ld.param.u64 %l3, [c]; mul.wide.u32 %l4, %t, 4;
    add.u64 %l11, %l1, %l4; add.u64 %l12, %l2, %l4; add.u64 %l13, %l3, %l4; {' '.join(loads)} ld.global.u32 %r1, [%l13];
    add.u64 %l14, %o, %l4; {' '.join(f'ld.global.b32 %{c_letter}{i}, [%l14+{128 * i}];' for i in range(count))}
    mma.sp.sync.aligned.m16n8k{k}.row.col.{d}.{t}.{t}.{d} {result}, {names[0]}, {names[1]}, {result}, %r1, {selector};
    {' '.join(f'st.global.b32 [%l14+{128 * i}], %{c_letter}{i};' for i in range(count))}""",
                ".reg .b32 %a<9>, %b<9>, %x<5>; .reg .f32 %f<5>;", PARAMS)
  out = np.zeros((count, 32), np.uint32)
  kind: Any = {"f32": np.float32, "s32": np.int32, "f16": np.float16}[d]
  for lane in range(32):
    for e in range(4):
      place = lane // 4 + 8 * (e >> 1), lane % 4 * 2 + (e & 1)
      if packed: out[e >> 1, lane] |= np.uint32(int(z[place].astype(kind).view(np.uint16)) << 16 * (e & 1))
      else: out[e, lane] = z[place].astype(kind).view(np.uint32)
  found = run(text, out, np.ascontiguousarray(a.T), np.ascontiguousarray(b.T), words)[0]
  values = found.view(kind)
  want = (x @ y + z).astype(kind)
  for lane in range(32):
    for e in range(4):
      got = values.reshape(2, 32, 2)[e >> 1, lane, e & 1] if packed else values[e, lane]
      assert got == want[lane // 4 + 8 * (e >> 1), lane % 4 * 2 + (e & 1)]


def test_what_mma_sp_refuses() -> None:
  four, name = "{%f0, %f1, %f2, %f3}", "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
  text = f"{name} {four}, {{%r1, %r2}}, {{%r3, %r4}}, {four}, %r5, ".__add__
  declared = ".reg .f32 %f<5>;"
  twice = kernel("mov.u32 %r5, 0; " + text("0;"), declared)
  with pytest.raises(MachineFault, match="twice"): run(twice, np.zeros(1))
  with pytest.raises(DecodeError, match="selector"): run(kernel(text("4;"), declared), np.zeros(1))
  whole = "{%r1, %r2, %r3, %r4}"
  small = f"mma.sp.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {whole}, {{%r5, %r6}}, {{%r7, %r8}}, {whole}, %r9, "
  with pytest.raises(DecodeError, match="is 0 to 1"): run(kernel(small + "2;"), np.zeros(1))


def test_what_sparse_products_of_narrow_floats_refuse() -> None:
  four, whole = "{%f1, %f2, %f3, %f4}", "{%r4, %r5, %r6, %r7}"
  name = f"mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32 {four}, {whole}"
  ones = "".join(f"mov.u32 %r{k}, {0x38383838};" for k in range(4, 8))
  for line, error, message in (
      (f"{name}, {whole}, {four}, %r8, 1;", DecodeError, "the sparsity selector of .* is 0"),
      (f"{name}, {{%r4, %r5}}, {four}, %r8, 0;", DecodeError, "takes 4, 4, 4 and 4 registers"),
      (f"{ones} mov.u32 %r8, 0; {name}, {whole}, {four}, %r8, 0;", MachineFault, "names a place of a chunk twice")):
    text = kernel(line, ".reg .f32 %f<5>;").replace(".version 8.6\n.target sm_90a", ".version 8.7\n.target sm_120a")
    with pytest.raises(error, match=message): run(text, np.zeros(1))
