"""Inline constants: what each type of operand reads, by hand and as LLVM selects them.

`python -m tinyhw.tools.fuzz.constants` tries every operand of the corpus with every constant.
"""
from __future__ import annotations

import random

import numpy as np
import pytest

from tests.emulator.amdgcn.test_turns import CPUS, ENGINES, run
from tests.strength import seed
from tinyhw.isa.amdgcn import table
from tinyhw.tools.fuzz import constants

U32 = np.uint32
NAMES = {"0.5": 0x3800, "-1.0": 0xBC00, "2.0": 0x4000, "0.15915494": 0x3118}  # as f16
SINGLE = {"0.5": 0x3F000000, "-1.0": 0xBF800000, "2.0": 0x40000000, "0.15915494": 0x3E22F983}
BRAIN = {name: bits >> 16 for name, bits in SINGLE.items()}  # as bf16
OLD = np.array([0x00010002, 0xFFFF7FFF, 0x12345678, 0], U32)


def pair(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]: return x & U32(0xFFFF), x >> U32(16)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("cpu", CPUS)
def test_pairs_of_integers_get_a_number_as_f32(cpu: str, engine: str) -> None:
  """2.0 is <0, 0x4000>: op_sel and op_sel_hi choose from there, and integers are extended by their sign."""
  x = np.resize(OLD, 64)
  for name, bits in {**SINGLE, "5": 5, "-3": 0xFFFFFFFD}.items():
    for low, high in ((0, 1), (1, 0), (0, 0), (1, 1)):
      select = f"op_sel:[0,{low}] op_sel_hi:[1,{high}]"
      got = run(cpu, engine, f"v_pk_add_u16 v9, v1, {name} {select}", x)
      want = [(h + (bits >> 16 * s & 0xFFFF)) & U32(0xFFFF) for h, s in zip(pair(x), (low, high))]
      assert (got == want[0] | want[1] << U32(16)).all(), (name, select, hex(got[0]))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("cpu", CPUS)
def test_pairs_of_f16_get_a_number_in_the_low_half(cpu: str, engine: str) -> None:
  ones = np.full(64, 0x3C003C00, U32)
  for name, bits in NAMES.items():
    for low, high in ((0, 1), (1, 0), (0, 0), (1, 1)):
      got = run(cpu, engine, f"v_pk_mul_f16 v9, v1, {name} op_sel:[0,{low}] op_sel_hi:[1,{high}]", ones)
      assert (got == (0 if low else bits) | (0 if high else bits) << 16).all(), (name, low, high, hex(got[0]))


def first(cpu: str, engine: str, text: str, *inputs: int) -> int:
  return int(run(cpu, engine, text, *(np.full(64, x, U32) for x in inputs))[0])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("cpu", CPUS)
def test_products_of_pairs_read_the_low_half(cpu: str, engine: str) -> None:
  """<1, 1> times the constant, and twice that constant from memory's place: only the low product counts."""
  halves, brains = 0x3C003C00, 0x3F803F80
  for name in NAMES:
    value = np.uint16(NAMES[name]).view(np.float16).astype(np.float32).view(U32)
    assert first(cpu, engine, f"v_dot2_f32_f16 v9, v1, {name}, 0", halves) == value, name
    if cpu == "gfx942":
      assert first(cpu, engine, f"v_mov_b32_e32 v9, 0\n v_dot2c_f32_f16_e32 v9, {name}, v1", halves) == value
      assert first(cpu, engine, f"v_dot2_u32_u16 v9, v1, {name}, 0", 0x00010001) == sum(
        int(h) for h in pair(U32(SINGLE[name])))
      continue
    assert first(cpu, engine, f"v_dot2_f32_bf16 v9, v1, {name}, 0", brains) == BRAIN[name] << 16, name
    out = "v9.l" if cpu == "gfx1100" else "v9"
    assert first(cpu, engine, f"v_mov_b32_e32 v9, 0\n v_dot2_f16_f16 {out}, v1, {name}, 0", halves) == NAMES[name]
    assert first(cpu, engine, f"v_mov_b32_e32 v9, 0\n v_dot2_bf16_bf16 {out}, v1, {name}, 0", brains) == BRAIN[name]
    assert first(cpu, engine, f"v_mov_b32_e32 v9, 0\n v_dot2_bf16_bf16 {out}, v1, v2, {name}", 0, 0) == BRAIN[name]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("cpu", CPUS)
def test_mixed_precision_reads_an_f16_with_zeros_above(cpu: str, engine: str) -> None:
  for name, bits in NAMES.items():
    half = np.uint16(bits).view(np.float16).astype(np.float32).view(U32)
    assert first(cpu, engine, f"v_fma_mix_f32 v9, v1, 0, {name} op_sel_hi:[0,0,1]", 0) == half, name
    assert first(cpu, engine, f"v_fma_mix_f32 v9, v1, 0, {name} op_sel_hi:[0,0,0]", 0) == bits, name


@pytest.mark.parametrize("cpu", CPUS)
def test_every_type_of_an_operand_has_a_float(cpu: str) -> None:
  """A type that the generated tables gain must say what a number is to it."""
  from tinyhw.arch import decoded
  from tinyhw.emulator.amdgcn.constants import FORMATS
  types = {o[4] for row in table(decoded(cpu).isa).rows() for o in row.operands if o[2] in "sxwyz" and o[1] == "s"}
  assert {t for t in types - FORMATS.keys() if t.endswith("16")} == set()
  assert types - FORMATS.keys() <= {"", "mask", "b64", "f64", "i64", "v2f32", "v2b32", "v2i32"}


@pytest.mark.parametrize("cpu", CPUS)
def test_what_llvm_selects(cpu: str) -> None:
  """Some operands, with some constants each, from the whole corpus; the reference and compiled code in turns."""
  found = constants.trials(cpu, seed=7, limit=6)
  special = [t for t in found if constants.SPECIAL.search(t.case.name)]
  rng = random.Random(seed(7))
  chosen = [*rng.sample(special, 14), *rng.sample([t for t in found if t not in special], 14)]
  for k, engine in enumerate(ENGINES):
    wrong = [str(d) for d in constants.run(cpu, chosen[k::2], engine=engine)]
    assert not wrong, "\n".join(wrong)
