"""NaNs: what instructions make of them, bit for bit, in both engines; what `both` compares of them.

Which of several NaNs comes out is open (`emulator.amdgcn.nans`); everything else is not.
"""
from __future__ import annotations

import random
import zlib
from copy import copy
from typing import Any

import numpy as np
import pytest

from tests.emulator.amdgcn.test_turns import CPUS, ENGINES, U32, run
from tests.emulator.jit.amdgcn.test_single import by_code, by_reference, names
from tests.strength import THOROUGH
from tinyhw.core.kept import Kept
from tinyhw.emulator.amdgcn import nans
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS
from tinyhw.emulator.engines.both import EnginesDiffer
from tinyhw.emulator.jit.amdgcn import alu
from tinyhw.emulator.jit.amdgcn import run as jit_run
from tinyhw.tools.witness.lanes import sources
from tinyhw.tools.witness.run import Prepared, bench
from tinyhw.tools.witness.table import WITNESSES, Witness, format_of, width_of

GPUS = ("gfx1100", "gfx1201", "gfx942")
PARTS = 1 if THOROUGH else 16  # one mnemonic in so many is tried here
NANS = {"f16": [0x7E01, 0x7D01, 0xFE35, 0xFC01], "f32": [0x7FC00123, 0x7F800001, 0xFFC45678, 0xFFA00000],
        "f64": [0x7FF8000000000123, 0x7FF0000000000001, 0xFFF8123456789ABC, 0xFFF4000000000000],
        "bf16": [0x7FC1, 0x7F81, 0xFFC3, 0xFFA0]}
NUMBERS = {"f16": [0x3C00, 0, 0x8000, 0x7C00, 0xFC00, 1, 0xC500, 0x3800],
           "f32": [0x3F800000, 0, 0x80000000, 0x7F800000, 0xFF800000, 1, 0xC0A00000, 0x3F000000],
           "f64": [0x3FF << 52, 0, 1 << 63, 0x7FF << 52, 0xFFF << 52, 1, 0xC014 << 48, 0x3FE << 52],
           "bf16": [0x3F80, 0, 0x8000, 0x7F80, 0xFF80, 1, 0xC0A0, 0x3F00]}
# What the manuals (RDNA3, RDNA4, CDNA3) give as examples, beside those of V_SIN and V_COS.
EXAMPLES = {
  "v_log_f32": {0: 0xFF800000, 0x3F800000: 0, 0x7F800000: 0x7F800000, 0x80000000: 0xFF800000, 0xBF800000: 0xFFC00000,
                0xFF800000: 0xFFC00000},
  "v_log_f16": {0: 0xFC00, 0x3C00: 0, 0x7C00: 0x7C00, 0x8000: 0xFC00, 0xBC00: 0xFE00, 0xFC00: 0xFE00},
  "v_exp_f32": {0x7F800000: 0x7F800000, 0x80000000: 0x3F800000, 0xFF800000: 0},
  "v_exp_f16": {0x7C00: 0x7C00, 0x8000: 0x3C00, 0xFC00: 0},
  "v_rcp_f32": {0: 0x7F800000, 0x7F800000: 0, 0x80000000: 0xFF800000, 0xC0000000: 0xBF000000, 0xFF800000: 0x80000000},
  "v_rcp_f16": {0: 0x7C00, 0x7C00: 0, 0x8000: 0xFC00, 0xC000: 0xB800, 0xFC00: 0x8000},
  "v_rsq_f32": {0: 0x7F800000, 0x40800000: 0x3F000000, 0x7F800000: 0, 0x80000000: 0xFF800000, 0xFF800000: 0xFFC00000},
  "v_rsq_f16": {0: 0x7C00, 0x4400: 0x3800, 0x7C00: 0, 0x8000: 0xFC00, 0xFC00: 0xFE00},
  "v_sqrt_f32": {0: 0, 0x40800000: 0x40000000, 0x7F800000: 0x7F800000, 0x80000000: 0x80000000, 0xFF800000: 0xFFC00000},
  "v_sqrt_f16": {0: 0, 0x4400: 0x4000, 0x7C00: 0x7C00, 0x8000: 0x8000, 0xFC00: 0xFE00}}
# Instructions that give an operand as it is, signalling or not (their manuals' text): parts of frexp, V_DIV_SCALE where
# it scales nothing, sums whose product counts as 0, coordinates of cubes.
COPIES = ("v_frexp_mant", "v_div_scale", "v_fma_dx9_zero", "v_fmac_dx9_zero", "v_cube", "v_mov", "v_cndmask")


@pytest.fixture
def hot(monkeypatch: pytest.MonkeyPatch) -> None:
  """Programs are compiled as hot ones are: what the compiler knows of constants it uses."""
  monkeypatch.setattr(jit_run, "HOT", 0)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("cpu", CPUS)
def test_the_manuals_examples(cpu: str, engine: str) -> None:
  for name, rows in EXAMPLES.items():
    x = np.resize(np.array(list(rows), U32), 64)
    got = run(cpu, engine, f"v_mov_b32_e32 v9, 0\n {name}_e32 v9, v1", x)
    for a, b in zip(x.tolist(), got.tolist()): assert b == rows[a], (name, hex(a), hex(b))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("cpu", CPUS)
def test_conversions_quiet_and_keep_the_upper_bits(cpu: str, engine: str) -> None:
  """Every NaN of f16, and as many of f32: sign and upper bits of the fraction stay, the quiet bit is set."""
  halves = np.array([s | 0x7C00 | f for s in (0, 0x8000) for f in range(1, 1024)] + [0x7C00] * 2, U32)
  got = run(cpu, engine, "v_cvt_f32_f16_e32 v9, v1", halves)
  nan = halves & 0x3FF != 0
  want = (halves & 0x8000) << 16 | 0x7F800000 | np.where(nan, 0x400000, 0).astype(U32) | (halves & 0x3FF) << 13
  assert (got == want).all()
  rng = np.random.default_rng(3)
  singles = (rng.integers(1, 1 << 23, 2048).astype(U32) >> rng.integers(0, 23, 2048).astype(U32) | U32(1)) | U32(
    0x7F800000) | rng.integers(0, 2, 2048).astype(U32) << U32(31)
  got = run(cpu, engine, "v_mov_b32_e32 v9, 0\n v_cvt_f16_f32_e32 v9, v1", singles)
  assert (got == (singles >> 16 & 0x8000 | 0x7E00 | singles >> 13 & 0x3FF)).all()
  got = run(cpu, engine, "v_cvt_f64_f32_e32 v[10:11], v1\n v_mov_b32_e32 v9, v11", singles)
  assert (got == (singles & 0x80000000 | 0x7FF80000 | (singles & 0x7FFFFF) >> 3)).all()


def poked(p: Prepared, x: Witness) -> bool:
  """Give a case operands of which at most one is NaN, in each lane; whether it has float operands in registers."""
  i, n, k = p.case.instruction, p.case.waves * p.case.lanes, 0
  given, slots = sources(i), []
  for t in x.sources:
    if t in {"scc", "vcc", "k", "ku"} or t.startswith("exec"): continue
    if t == "mask":
      k += k < len(given)
      continue
    o: Any = i.operands.get("vdst") if t.startswith("d:") else i.operands[given[k]]
    k += not t.startswith("d:")
    if o is not None and o.kind == "v" and t.removeprefix("d:") in NANS: slots.append((o, t.removeprefix("d:")))
  for lane in range(n):
    which = lane % (len(slots) + 1)
    for j, (o, t) in enumerate(slots):
      some = NANS[t][lane // (len(slots) + 1) % 4] if j == which else random.Random(lane * 7 + j).choice(NUMBERS[t])
      width = width_of(t)
      word = some if width >= 32 else some | some << 16
      p.start.v[o.value][lane] = word & 0xFFFFFFFF
      if width == 64 or o.dwords == 2: p.start.v[o.value + 1][lane] = word >> 32 if width == 64 else word
  return bool(slots)


def cases(gpu: str) -> list[tuple[str, Prepared, Witness]]:
  """One case of each plain encoding of every instruction with float operands, of a part of them."""
  machine, out = bench(gpu), []
  for name in names(gpu):
    x = WITNESSES.get(name, machine.table.name)
    if zlib.crc32(f"{name} nan".encode()) % PARTS or not isinstance(x, Witness): continue
    if not any(map(format_of, x.sources)): continue
    seen = set()
    for p in machine.cases(name):
      c = p.case
      plain = not any(c.instruction.get(f) for f in ("neg", "abs", "omod", "clamp", "neg_lo", "neg_hi", "op_sel"))
      if c.mask != "all" or c.row.variant not in {"e32", "e64", ""} or c.row.variant in seen or not plain: continue
      if c.mode & 0x1FF & ~0x100 != 0xF0: continue
      start = copy(p.start)
      start.v = [r[:] for r in p.start.v]  # the bench keeps its cases for others
      one = Prepared(c, start, start)
      if poked(one, x):
        seen.add(c.row.variant)
        out.append((name, one, x))
  return out


def signalling(bits: np.ndarray, t: str) -> np.ndarray:
  fraction, top = {"f16": (10, 0x7C00), "f32": (23, 0x7F800000)}[t]
  magnitude = bits & (top << 1 | (1 << fraction) - 1) & ((1 << (16 if t == "f16" else 32) - 1) - 1)
  quiet: np.ndarray = (magnitude > top) & (bits >> fraction - 1 & 1 == 0)
  return quiet


@pytest.mark.parametrize("gpu", GPUS)
def test_one_nan_comes_out_alike(gpu: str) -> None:
  """Engines agree on it bit for bit, and arithmetic makes it quiet. THOROUGH takes every instruction."""
  machine, tried = bench(gpu), 0
  for name, p, x in cases(gpu):
    expected, (found, _) = by_reference(machine, p), by_code(machine, p)
    if isinstance(expected, Exception) or isinstance(found, Exception): continue
    tried += 1
    lanes, i = p.case.lanes, p.case.instruction
    start = np.array(p.start.v, U32).reshape(-1, p.case.waves, lanes)
    for w in range(p.case.waves):
      free = nans.open_choice(i, np.array([r[w] for r in p.start.s], U32), start[:, w].__getitem__, lanes)
      wrong = np.argwhere((expected[0][w] != found[0][w]) & ~free[None, :])
      assert not wrong.size, (name, str(i), [hex(e[0][w][tuple(wrong[0])]) for e in (expected, found)], wrong[0])
    o, t = i.operands.get("vdst"), x.results[0]
    if o is None or o.kind != "v" or t not in {"f16", "f32"} or x.packed or name.startswith(COPIES): continue
    result = expected[0][:, o.value] >> (16 * (o.half or 0) if t == "f16" else 0)
    assert not signalling(result, t).any(), (name, hex(result[signalling(result, t)][0]))
  assert tried >= 150 // PARTS


KNOWN = {  # what a compiler may compute by itself: inf - inf, inf * 0, sqrt(-1), fma(inf, 0, 1); a neutral operand
  "v_mov_b32_e32 v2, 0x7f800000\n v_mov_b32_e32 v3, 0xff800000\n v_add_f32_e32 v9, v2, v3": 0xFFC00000,
  "v_mov_b32_e32 v2, 0x7f800000\n v_sub_f32_e32 v9, v2, v2": 0xFFC00000,
  "v_mov_b32_e32 v2, 0x7f800000\n v_mov_b32_e32 v3, 0\n v_mul_f32_e32 v9, v2, v3": 0xFFC00000,
  "v_mov_b32_e32 v2, 0xbf800000\n v_sqrt_f32_e32 v9, v2": 0xFFC00000,
  "v_mov_b32_e32 v2, 0x7f800000\n v_mov_b32_e32 v3, 0\n v_fma_f32 v9, v2, v3, 1.0": 0xFFC00000,
  "v_mul_f32_e32 v9, 1.0, v1": 0x7FE00001, "v_mul_f32_e32 v9, -1.0, v1": 0x7FE00001,
  "v_subrev_f32_e32 v9, 0, v1": 0x7FE00001, "v_add_f32_e32 v9, 0x80000000, v1": 0x7FE00001,
  "v_sub_f32_e32 v9, 0x80000000, v1": 0x7FE00001, "v_fma_f32 v9, v1, 1.0, 0": 0x7FE00001,
  # what it may make part of an operation, in which a NaN then keeps its sign
  **{f"v_cvt_f32_i32_e32 v2, v0\n{code}": bits for code, bits in {
    "v_add_f32_e64 v9, v2, -v1": 0xFFE00001, "v_sub_f32_e64 v9, v2, -v1": 0xFFE00001,
    "v_fma_f32 v9, -v1, v2, v2": 0xFFE00001, "v_fma_f32 v9, v2, v2, -v1": 0xFFE00001,
    "v_mul_f32_e64 v9, -v1, -v2": 0xFFE00001, "v_mul_f32_e64 v9, -|v1|, v2": 0xFFE00001,
    "v_xor_b32_e32 v3, 0x80000000, v1\n v_add_f32_e32 v9, v2, v3": 0xFFE00001,
    "v_xor_b32_e32 v3, 0x80000000, v1\n v_mul_f32_e64 v9, |v3|, |v3|": 0x7FE00001}.items()}}


@pytest.mark.parametrize("cpu", ["gfx1100", "gfx942"])
@pytest.mark.parametrize("engine", ENGINES)
def test_what_the_compiler_knows(cpu: str, engine: str, hot: None) -> None:
  for text, want in KNOWN.items():
    got = int(run(cpu, engine, text, np.full(64, 0x7FA00001, U32))[0])
    assert got == want, (text, hex(got))


# ---- both

SEVERAL = "v_add_f32_e32 v9, v1, v2\n v_mul_f32_e32 v9, v9, v9"  # NaNs in both operands, and what comes of it


@pytest.mark.parametrize("cpu", CPUS)
def test_both_let_pass_what_is_open(cpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Compiled code that takes the other one of two NaNs does nothing wrong. (LLVM may change the operands' order, too.)
  """
  swap(monkeypatch, "v_add_f32", lambda o, a, b: b + a)
  x, y = np.full(64, 0x7FC00001, U32), np.full(64, 0x7FC00002, U32)
  assert set(run(cpu, "both", SEVERAL, x, y).tolist()) in ({0x7FC00001}, {0x7FC00002})


@pytest.mark.parametrize("cpu", CPUS)
def test_both_find_a_wrong_nan(cpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """One NaN, which compiled code gives another fraction: the instruction is named."""
  swap(monkeypatch, "v_add_f32", lambda o, a, b: o.bits(o.bits(a + b, "u32") | 4, "f32"))
  x, y = np.full(64, 0x7FC00001, U32), np.full(64, 0x40000000, U32)
  with pytest.raises(EnginesDiffer, match=r"first after instruction \d+ of the wave, 'v_add_f32.*0x7fc00001, compiled"):
    run(cpu, "both", SEVERAL, x, y)


def swap(monkeypatch: pytest.MonkeyPatch, name: str, function: Any) -> None:
  """Give compiled code another meaning of an instruction, in forms of this test's own."""
  from dataclasses import replace

  from tinyhw.emulator.amdgcn.meanings.quiet import meaning_of
  from tinyhw.emulator.jit.amdgcn import forms

  def changed(mnemonic: str, isa: str, mode: int) -> Any:
    found = meaning_of(mnemonic, isa, mode)
    return replace(found, function=function) if mnemonic == name and found is not None else found
  assert MEANINGS.get(name) is not None
  monkeypatch.setenv("TINYHW_CACHE", "0")
  monkeypatch.setattr(forms, "_MEMORY", Kept(256))
  monkeypatch.setattr(alu, "meaning_of", changed)


def test_choices_follow_what_is_made_of_them() -> None:
  """A cell that was chosen stays one until it is written with something else."""
  from tinyhw.isa.amdgcn import table
  from tinyhw.isa.amdgcn.asm import assemble
  decode = table("gfx11").decode
  s, v = np.zeros(128, U32), np.zeros((16, 32), U32)
  s[126] = 0xFFFF
  v[1], v[2], v[3] = 0x7FC00001, 0x7FC00002, 0x3F800000
  choices = nans.Choices(128, 16, 32)
  for text in ("v_add_f32 v4, v1, v2", "v_mul_f32 v5, v4, v3", "v_add_f32 v6, v1, v3", "v_readfirstlane_b32 s7, v5"):
    choices.follow(decode(assemble(text, table("gfx11"))), s, v)
  assert choices.v[4].tolist() == [True] * 16 + [False] * 16 == choices.v[5].tolist()
  assert not choices.v[6].any() and choices.s[7] and not choices.s[8]
  choices.follow(decode(assemble("v_mov_b32 v5, v3", table("gfx11"))), s, v)
  assert not choices.v[5].any() and choices.v[4].any()
  assert choices.follow(decode(assemble("global_store_b32 v0, v4, s[0:1]", table("gfx11"))), s, v)


def test_fused_operations_choose_where_they_make_a_nan() -> None:
  from tinyhw.isa.amdgcn import table
  from tinyhw.isa.amdgcn.asm import assemble
  i = table("gfx11").decode(assemble("v_fma_f32 v4, v1, v2, v3", table("gfx11")))
  v = np.zeros((8, 4), U32)
  v[1], v[2] = [0x3F800000, 0, 0x3F800000, 0x7FC00001], [0x3F800000, 0x7F800000, 0x7FC00003, 0x3F800000]
  v[3] = 0x7FC00002, 0x7FC00002, 0x7FC00002, 0x3F800000
  assert nans.open_choice(i, np.zeros(128, U32), lambda n: v[n], 4).tolist() == [False, True, True, False]
