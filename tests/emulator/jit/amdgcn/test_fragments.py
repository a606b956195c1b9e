"""What compiled code keeps of matrices between instructions, and loads that both halves of a wave make."""
from __future__ import annotations

import random

import numpy as np
import pytest

from tests.emulator.jit.amdgcn.test_jit import (
  CODE,
  OUT,
  TABLE,
  descriptor,
  differences,
  encode,
  inputs,
  load,
  outcome,
  prologue,
  store,
)
from tests.strength import seeds
from tinyhw.emulator.amdgcn import dispatch
from tinyhw.emulator.jit.amdgcn import matrix, run
from tinyhw.emulator.jit.amdgcn.launch import dispatch as compiled
from tinyhw.isa.amdgcn.program import program as lines

PLACES = (0, 1, 2, 3, 4, 5, 6, 16)  # first registers of C and D, that leave v14 and v15 alone


@pytest.fixture(params=[0, 50_000], ids=["hot", "quick"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
  """Code that is made well, where fragments stay at hand, and code that is made quickly."""
  monkeypatch.setattr(run, "HOT", request.param)


def assembled(text: str) -> bytes: return b"".join(item.code for item in lines(text, TABLE, "test"))


def chain(rng: random.Random, count: int) -> bytes:
  """Products of one another: results become factors, and overlap what comes before and after them."""
  out = b""
  for _ in range(count):
    a, b = rng.randrange(6), rng.choice((rng.randrange(6), 4))
    if rng.random() < 0.3: out += encode("v_mov_b32", "e32", src0=256 + rng.randrange(13), vdst=a + rng.randrange(8))
    mnemonic = rng.choice(("v_wmma_f32_16x16x16_f16",) * 4 + ("v_wmma_f32_16x16x16_bf16", "v_wmma_i32_16x16x16_iu8",
                                                             "v_wmma_f16_16x16x16_f16"))
    c = 128 if rng.random() < 0.2 else 256 + rng.choice(PLACES)
    d = rng.choice(PLACES) if c == 128 or rng.random() < 0.5 else c - 256
    out += encode(mnemonic, src0=256 + a, src1=256 + b, src2=c, vdst=d, neg_lo=rng.choice((0, 0, 0, 1, 4)))
    if rng.random() < 0.2: out += load(rng.randrange(13), 0)
  return out


@pytest.mark.parametrize("kept", [2, matrix.FRAGMENTS])
@pytest.mark.parametrize("lanes", [32, 64])
@pytest.mark.usefixtures("form")
def test_chains_of_products(lanes: int, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """Registers that change are other fragments, also where few are kept; C and D may share some registers."""
  monkeypatch.setattr(matrix, "FRAGMENTS", kept)
  for number in seeds(range(2)):
    rng = random.Random(f"{lanes} {number}")
    code = prologue(lanes) + chain(rng, 30) + b"".join(store(n) for n in (*range(14), *range(16, 24)))
    data = inputs(rng)
    words = np.frombuffer(data, np.uint32) & 0xBBFFBBFF  # no infinities: sums of them are NaNs, which hide the rest
    expected, found = (outcome(one, code, words.tobytes(), descriptor(lanes)) for one in (dispatch, compiled))
    assert not isinstance(expected[0], type) and not differences(expected[0], found[0], lanes).size
    assert found[1].engine == "jit" and not found[1].interpreted


# v18: the lane's place; v16: the offset there. What is in memory lies at s[0:1].
LOADS = """
  v_mbcnt_lo_u32_b32 v18, -1, 0
  v_and_b32_e32 v18, MASK, v18
  v_mul_u32_u24_e32 v16, STEP, v18
  v_add_nc_u32_e32 v16, FIRST, v16
  v_add_co_u32 v20, vcc_lo, s0, v16
  v_add_co_ci_u32_e64 v21, vcc_lo, s1, 0, vcc_lo
  LOAD v[8:11]NEAR
  s_waitcnt vmcnt(0)
"""
KINDS = {"u8": 1, "i8": 1, "d16_u8": 1, "u16": 2, "d16_b16": 2, "d16_hi_b16": 2, "b32": 4, "b64": 8, "b96": 12,
         "b128": 16}


def loads(rng: random.Random, first: int = -1) -> bytes:
  """Loads at all widths, of lanes whose places repeat, or do not; one or two address forms."""
  out = b""
  for kind, width in KINDS.items():
    far, mask = rng.random() < 0.5, rng.choice((15, 15, 15, 7, 31))
    registers = f"v[8:{7 + width // 4}]" if width > 4 else "v8"
    at = "v[20:21], off" if far else "v16, s[0:1]"
    text = (LOADS.replace("MASK", str(mask)).replace("STEP", hex(rng.choice((width, width, 36, 4))))
            .replace("FIRST", hex(rng.randrange(64) * 4 if first < 0 else first))
            .replace("LOAD v[8:11]NEAR", f"global_load_{kind} {registers}, {at}"))
    out += assembled(text) + b"".join(store(n) for n in range(8, 8 + max(1, width // 4)))
  return out + encode("v_wmma_f32_16x16x16_f16", src0=256, src1=256, src2=256 + 16, vdst=16)


@pytest.mark.usefixtures("form")
def test_loads_that_both_halves_make() -> None:
  for number in seeds(range(3)):
    rng = random.Random(number)
    code, data = prologue(32) + loads(rng), inputs(rng)
    expected, found = (outcome(one, code, data, descriptor(32)) for one in (dispatch, compiled))
    assert np.array_equal(expected[0], found[0]) and not found[1].interpreted and found[1].engine == "jit"


@pytest.mark.usefixtures("form")
def test_faults_of_loads_that_both_halves_make() -> None:
  """The first lane at fault is told, as the reference tells it."""
  room = (1 << 21) - (OUT - CODE)  # up to the end of memory
  rng, seen = random.Random(5), set()
  for first in (room - 36 * 8, room - 64, 1 << 30):
    code, data = prologue(32) + loads(rng, first), inputs(rng)
    expected, found = (outcome(one, code, data, descriptor(32)) for one in (dispatch, compiled))
    if isinstance(expected[0], type): assert expected == found
    else: assert np.array_equal(expected[0], found[0])
    seen.add(isinstance(expected[0], type))
  assert True in seen
