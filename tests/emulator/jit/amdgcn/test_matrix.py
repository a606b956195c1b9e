"""Compiled matrix instructions: equal to the reference bit for bit, whatever the elements, signs and registers."""
from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.emulator.amdgcn.test_hwreg import Bench
from tests.emulator.jit.amdgcn.test_jit import TABLE, descriptor, differences, encode, inputs, outcome, prologue, store
from tests.emulator.jit.amdgcn.test_single import by_code, difference
from tests.strength import THOROUGH, seed
from tinyhw.core.errors import EncodeError
from tinyhw.emulator.amdgcn import dispatch
from tinyhw.emulator.amdgcn.gfx9.matrix import MFMA, SMFMAC, shape
from tinyhw.emulator.amdgcn.gfx11.matrix import SHAPES
from tinyhw.emulator.amdgcn.gfx12.matrix import SHAPES as GFX12
from tinyhw.emulator.jit.amdgcn.launch import dispatch as compiled
from tinyhw.tools.witness.run import bench


def matrix(rng: random.Random, mnemonic: str) -> bytes:
  """One instruction on v0..v12, its result in v16..v23, which begin as copies of inputs; C may be a constant."""
  out = b"".join(encode("v_mov_b32", "e32", src0=256 + rng.randrange(12), vdst=16 + n) for n in range(8))
  fields = TABLE.by_mnemonic[mnemonic][0].fields
  values = {"src0": 256 + rng.randrange(5), "src1": 256 + rng.randrange(5), "vdst": 16,
            "src2": rng.choice((256 + rng.randrange(5), 256 + 16, 128, 129, 242, 246))}
  for name in ("neg_lo", "neg_hi", "clamp", "op_sel"):
    if name in fields: values[name] = rng.randrange(1 << sum(width for _, _, width in fields[name]))
  return out + encode(mnemonic, **values) + b"".join(store(n) for n in range(16, 24))


@pytest.mark.parametrize("lanes", [32, 64])
@pytest.mark.parametrize("mnemonic", SHAPES)
def test_products_of_any_bits(mnemonic: str, lanes: int) -> None:
  """Random operands and modifiers; a third of the inputs are special values. Nothing is left to the reference."""
  rng = random.Random(mnemonic)
  code = prologue(lanes) + b"".join(matrix(rng, mnemonic) for _ in range(40 if THOROUGH else 12))
  data = inputs(rng)
  expected, found = (outcome(run, code, data, descriptor(lanes)) for run in (dispatch, compiled))
  assert not isinstance(expected[0], type) and not differences(expected[0], found[0], lanes).size
  assert not found[1].interpreted and found[1].engine == "jit"
  assert len(np.unique(found[0])) > 1000


@pytest.mark.parametrize("mnemonic", SHAPES)
def test_sums_that_cancel(mnemonic: str) -> None:
  """Small numbers: no NaN hides an error, and the order of additions shows where elements differ in size."""
  rng = random.Random(seed(1))
  words = np.array([rng.randrange(0x3000, 0x4400) | rng.randrange(0x10000) & 0x8000 for _ in range(8192)], np.uint16)
  if "bf16" in mnemonic: words = np.array([rng.choice((0, 0x8000)) | rng.randrange(0x3800, 0x4600) for _ in words],
                                          np.uint16)
  code = prologue(32) + b"".join(matrix(rng, mnemonic) for _ in range(10))
  data = words.tobytes()
  expected, found = (outcome(run, code, data, descriptor(32)) for run in (dispatch, compiled))
  assert np.array_equal(expected[0], found[0]) and not found[1].interpreted


@pytest.mark.parametrize(("c", "want"), [("1.0", 0x3F81), ("0.15915494", 0x3E26), ("5", 0x3B80)])
def test_bf16_is_rounded_once(c: str, want: int) -> None:
  """1 + 2**-8 + 2**-30 lies above the middle of two bf16, which f32 cannot tell; integer constants are bits."""
  lines = [f"v_mov_b32 v{n}, 0" for n in range(8, 24)]
  lines += ["v_mov_b32 v8, 0x38003f80", "v_mov_b32 v16, 0x38003b80",  # A: 1 and 2**-15; B: 2**-8 and 2**-15
            f"v_wmma_bf16_16x16x16_bf16 v[24:31], v[8:15], v[16:23], {c}", "v_readfirstlane_b32 s4, v24"]
  bench = Bench("gfx1100")
  bench.launch_lines(lines)
  assert (bench.get(bench.out, np.uint32, 32) & 0xFFFF == want).all()


@pytest.mark.parametrize(("c", "products", "want"), [
  (2.0**24, (1.0, 1.0), 2.0**24), (0.0, (1.0, 1.0, 2.0**24), 2.0**24 + 2), (0.0, (2.0**24, 1.0, 1.0), 2.0**24),
  (-2.0**24, (1.0, 2.0**24, 2.0**-11), 1 + 2.0**-11), (2.0**-30, (1.0, -1.0), 0.0)])
def test_floats_are_added_to_c_in_order(c: float, products: tuple[float, ...], want: float) -> None:
  """Each sum of f32 is rounded: what is added to 2**24 one by one is lost, what is added before is not."""
  halves = [(np.float16(np.sign(p) * 2.0 ** (np.log2(abs(p)) // 2)), np.float16(2.0 ** -(-np.log2(abs(p)) // 2)))
            for p in products]
  assert [float(x) * float(y) for x, y in halves] == list(products)
  halves += [(np.float16(0), np.float16(0))] * (16 - len(halves))
  words = np.array(halves, np.float16).T.copy().view(np.uint32)  # all rows are alike, and all columns
  lines = [f"v_mov_b32 v{first + k}, {int(w):#x}" for first, side in ((8, words[0]), (16, words[1]))
           for k, w in enumerate(side)]
  lines += [f"v_mov_b32 v{24 + k}, {int(np.float32(c).view(np.uint32)):#x}" for k in range(8)]
  lines += ["v_wmma_f32_16x16x16_f16 v[24:31], v[8:15], v[16:23], v[24:31]", "v_readfirstlane_b32 s4, v24"]
  bench = Bench("gfx1100")
  bench.launch_lines(lines)
  assert set(bench.get(bench.out, np.float32, 32).tolist()) == {want}


# ---- CDNA3 and RDNA4: elements lie as tables say

def case(gpu: str, mnemonic: str, lanes: int, rng: random.Random) -> Any:
  """One instruction with random operands and modifiers, and registers of numbers and special values."""
  isa = bench(gpu).table
  row = rng.choice(isa.by_mnemonic[mnemonic])
  narrow = 8 if "iu" in mnemonic or "8" in mnemonic.rsplit("_", 1)[-1] or "i8" in mnemonic else 16
  values = {"vdst": 0, "src0": 256 + 64, "src1": 256 + 96, "idx": 256 + 128}
  sparse = "smf" in mnemonic or "swm" in mnemonic
  values["src2"] = 256 + 128 if sparse else rng.choice((256, 256 + 32, 128, 129, 242))
  for name in ("neg_lo", "neg_hi", "clamp", "cbsz", "abid", "blgp", "index_key_16bit", "index_key_8bit"):
    if name in row.fields: values[name] = rng.randrange(1 << sum(width for _, _, width in row.fields[name]))
  if "iu" in mnemonic: values |= {name: values[name] & 3 for name in ("neg_lo", "neg_hi") if name in values}
  if "cbsz" in values: values["cbsz"] %= 3
  if mnemonic in MFMA:  # a block that there is
    values["cbsz"] %= shape(mnemonic).blocks.bit_length()
    values["abid"] %= 1 << values["cbsz"]
  try: code = isa.encode(row, {k: v for k, v in values.items() if k in row.fields})
  except EncodeError: return case(gpu, mnemonic, lanes, rng)  # a modifier that this one does not have
  words = np.array([rng.getrandbits(32) for _ in range(144 * lanes)], np.uint32)
  tame = (words & 0x83FF83FF | 0x38003800) if narrow == 16 and "f64" not in mnemonic else words & 0xBFFFFFFF
  if narrow == 16: words = np.where(np.array([rng.random() < 0.02 for _ in words]), words, tame)
  v = list(words.reshape(144, 1, lanes))
  start = SimpleNamespace(memory=b"", lds=b"", gds=b"", scc=[False], v=v)
  instruction = isa.decode(code)
  one = SimpleNamespace(code=code, lanes=lanes, waves=1, mode=0x3F0, instruction=instruction, text=str(instruction))
  return SimpleNamespace(case=one, start=start, v=v,
                         s=[np.uint32(0)] * 124 + [np.uint32(0)] * 2 + [np.uint32(0xFFFFFFFF)] * 2)


@pytest.mark.parametrize(("gpu", "mnemonic", "lanes"), [
  *(("gfx942", m, 64) for m in (*MFMA, *SMFMAC)), *(("gfx1201", m, lanes) for m in GFX12 for lanes in (32, 64))])
def test_tables(gpu: str, mnemonic: str, lanes: int) -> None:
  rng = random.Random(mnemonic)
  for _ in range(2):
    p = case(gpu, mnemonic, lanes, rng)
    assert difference(bench(gpu), p) == "", p.case.text
    assert not by_code(bench(gpu), p)[1]
