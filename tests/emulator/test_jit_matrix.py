"""Compiled matrix instructions: equal to the reference bit for bit, whatever the elements, signs and registers."""
from __future__ import annotations

import random

import numpy as np
import pytest

from tests.emulator.test_jit import TABLE, descriptor, differences, encode, inputs, outcome, prologue, store
from tinyhw.emulator.amdgcn import dispatch
from tinyhw.emulator.amdgcn.matrix import SHAPES
from tinyhw.emulator.jit.run import dispatch as compiled


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
  code = prologue(lanes) + b"".join(matrix(rng, mnemonic) for _ in range(20))
  data = inputs(rng)
  expected, found = (outcome(run, code, data, descriptor(lanes)) for run in (dispatch, compiled))
  assert not isinstance(expected[0], type) and not differences(expected[0], found[0], lanes).size
  assert not found[1].interpreted and found[1].engine == "jit"
  assert len(np.unique(found[0])) > 1000


@pytest.mark.parametrize("mnemonic", SHAPES)
def test_sums_that_cancel(mnemonic: str) -> None:
  """Small numbers: no NaN hides an error, and the order of additions shows where elements differ in size."""
  rng = random.Random(1)
  words = np.array([rng.randrange(0x3000, 0x4400) | rng.randrange(0x10000) & 0x8000 for _ in range(8192)], np.uint16)
  if "bf16" in mnemonic: words = np.array([rng.choice((0, 0x8000)) | rng.randrange(0x3800, 0x4600) for _ in words],
                                          np.uint16)
  code = prologue(32) + b"".join(matrix(rng, mnemonic) for _ in range(10))
  data = words.tobytes()
  expected, found = (outcome(run, code, data, descriptor(32)) for run in (dispatch, compiled))
  assert np.array_equal(expected[0], found[0]) and not found[1].interpreted
