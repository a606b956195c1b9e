"""Shapes of instructions: registers that overlap in every way, and numbers that differ, against the reference."""
from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.emulator.jit.amdgcn import test_jit as base
from tests.emulator.jit.amdgcn.test_jit import TABLE, descriptor, encode, inputs, outcome, prologue, store
from tests.strength import seeds
from tinyhw.core.errors import DecodeError, EncodeError
from tinyhw.emulator.amdgcn import dispatch
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS
from tinyhw.emulator.jit.amdgcn.launch import dispatch as compiled
from tinyhw.emulator.jit.amdgcn.shapes import _slots
from tinyhw.emulator.jit.amdgcn.translate import Translator
from tinyhw.isa.amdgcn import Instruction, Row

MOST = 11  # registers that instructions read and write, all of them stored after each
FAMILIES = {"VOP1", "VOP2", "VOP3", "VOP3P", "VOPD"}


def integer(mnemonic: str) -> bool:
  """Whether the meaning knows no floats, of which several NaNs would not give the same one."""
  meaning = MEANINGS.get(mnemonic, "gfx11")
  return meaning is not None and not any(t.removeprefix("d:")[0] == "f" for t in (*meaning.sources, *meaning.results))


ROWS = [r for r in TABLE.rows() if r.family in FAMILIES and r.variant != "dpp8_fi"
        and all(integer(part.strip().replace("v_dual_", "v_")) for part in r.mnemonic.split("::"))]
WIDE = [r for r in ROWS if any(dwords == 2 for _, _, kind, dwords, _, _ in r.operands if kind in "vx")]


def vector(rng: random.Random, row: Row) -> bytes:
  """An instruction whose vector operands lie anywhere in the first registers; scalars in a few."""
  for _ in range(50):
    values = {}
    kinds = {name: (kind, dwords, half) for name, _, kind, dwords, _, half in row.operands}
    for name, pieces in row.fields.items():
      width = sum(w for _, _, w in pieces)
      kind, dwords, half = kinds.get(name, ("i", 0, ""))
      if kind == "v" or kind == "x" and rng.random() < 0.8:
        value = rng.randrange(MOST - max(dwords, 1)) | (256 if kind == "x" else 0)
        if half == "h": value |= rng.randrange(2) << 7
      elif kind in "sx": value = 8 + rng.randrange(4) if dwords == 1 else 8 + rng.randrange(2) * 2
      elif name == "dpp_ctrl": value = rng.choice((rng.randrange(256), 0x101, 0x112, 0x123, 0x140, 0x155, 0x167))
      else: value = rng.choice((0, rng.randrange(1 << width)))
      values[name] = value & (1 << width) - 1
    literal = rng.getrandbits(32) if rng.random() < 0.2 and row.literal_operands else None
    if literal is not None: values[row.literal_operands[0]] = 255
    try:
      code = TABLE.encode(row, values, literal)
      i = TABLE.decode(code)
    except (EncodeError, DecodeError): continue
    if i.mnemonic == row.mnemonic and i.size == len(code) and _inside(i): return code
  return b""


def _inside(i: Instruction) -> bool:
  return all(o.value + o.dwords <= MOST for o in i.operands.values() if o.kind == "v")


@pytest.mark.parametrize("lanes", [32, 64])
@pytest.mark.parametrize("seed", seeds(range(6)))
def test_registers_that_overlap(seed: int, lanes: int) -> None:
  rng = random.Random(seed * 2 + lanes)
  code = prologue(lanes)
  for row in (*rng.sample(ROWS, 20), *rng.sample(WIDE, 20)):
    if rng.random() < 0.5: code += encode("s_mov_b64", src0=8, sdst=base.EXEC)
    code += vector(rng, row)
    code += encode("s_mov_b64", src0=base.ONES, sdst=base.EXEC)
    code += b"".join(store(n) for n in range(MOST))
  data = inputs(rng)
  expected, found = (outcome(engine, code, data, descriptor(lanes)) for engine in (dispatch, compiled))
  assert len(expected) == 2 and np.array_equal(expected[0], found[0])


def test_groups_of_ranges() -> None:
  """What overlaps is one group, numbered by its first range; ranges that only touch are two."""
  assert _slots([(5, 6)]) == ([5], [1], [(0, 0)])
  assert _slots([(6, 8), (2, 4), (7, 9)]) == ([6, 2], [3, 2], [(0, 0), (1, 0), (0, 1)])
  assert _slots([(4, 6), (6, 8)]) == ([4, 6], [2, 2], [(0, 0), (1, 0)])
  assert _slots([(0, 4), (4, 8), (3, 5)]) == ([0], [8], [(0, 0), (0, 4), (0, 3)])


def test_one_function_serves_instructions_of_a_shape(monkeypatch: pytest.MonkeyPatch) -> None:
  """Registers, literals and offsets are arguments, so that their texts are one."""
  made: list[Translator] = []
  translate = Translator.translate

  def watched(self: Translator, *arguments: Any) -> object:
    made.append(self)
    return translate(self, *arguments)
  monkeypatch.setattr(Translator, "translate", watched)
  code = prologue(32)
  before = len(code)
  for n in range(10):
    code += encode("v_add_f32", "e32", src0=256 + n, src1=n + 1, vdst=n + 2)
    code += encode("v_xor_b32", "e32", src0=255, src1=n, vdst=n + 3, literal=n * 0x1234567)
    code += encode("s_addk_i32", simm16=n, sdst=36 + n) + encode("s_movk_i32", simm16=0xFFF0 + n, sdst=50 + n)
  code += b"".join(store(n) for n in range(13))
  data = inputs(random.Random(before))
  expected, found = (outcome(engine, code, data, descriptor()) for engine in (dispatch, compiled))
  assert np.array_equal(expected[0], found[0])
  shapes = [name for name in made[0].called if name.startswith("@shape")]
  assert len(shapes) < 20  # of more than 100 instructions: four here, the prologue's and the stores'
