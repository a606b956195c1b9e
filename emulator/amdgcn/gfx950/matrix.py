"""gfx950's products of matrices of 8-, 6- and 4-bit floats, with a scale for each 32 of k or without (CDNA4 ISA manual,
7.1.5 and 7.2).

CBSZ and BLGP say the formats of A and B, each on its own. A lane has 32 elements of a row of A or a column of B: in a
row of k for 6 and 4 bits, twice sixteen in a row for 8 (the layouts that Composable Kernel's tests hold against the
chip). The scale of block b of row i is a byte of lane i + rows * b, which OP_SEL and OP_SEL_HI choose.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np

from tinyhw.emulator.amdgcn.binders import binds
from tinyhw.emulator.amdgcn.gfx9.matrix import LANES, accumulator, finish, outputs, values_of, write_matrix
from tinyhw.emulator.amdgcn.gfx9.matrix import shape as shape_of
from tinyhw.emulator.amdgcn.matrix import product
from tinyhw.emulator.amdgcn.registers import reader
from tinyhw.emulator.simt import Group, Step, full
from tinyhw.emulator.values.ops import F64, U32, U64
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.emulator.values.small_floats import BF8, E2M1, E2M3, E3M2, FP8, SmallFloat
from tinyhw.isa.amdgcn import Instruction, Operand

FORMATS: Final[tuple[SmallFloat, ...]] = (FP8, BF8, E2M3, E3M2, E2M1)
BLOCK: Final = 32  # k that share a scale, and elements that a lane has
NAMES: Final = tuple(f"v_mfma_{scale}f32_{size}_f8f6f4"
                     for scale in ("", "scale_") for size in ("16x16x128", "32x32x64"))


@cache
def places(size: int, depth: int, bits: int) -> tuple[Value, Value]:
  """(lane, item) of each element of A [k, row] or of B [k, column]."""
  k, i = np.indices((depth, size))
  chunk = 16 if bits == 8 else BLOCK
  across = LANES // size
  return i + size * (k // chunk % across), k // (chunk * across) * chunk + k % chunk


def codes(group: Group, first: int, bits: int) -> Value:
  """The elements of each lane [waves, item, lane] of registers from `first` on."""
  words = [full(group, group.v[first + r].view(U32)) for r in range(bits * BLOCK // 32)]
  out = []
  for k in range(BLOCK):
    r, at = divmod(bits * k, 32)
    word = words[r] >> np.uint32(at)
    if at + bits > 32: word = word | words[r + 1] << np.uint32(32 - at)
    out.append(word & np.uint32((1 << bits) - 1))
  return np.stack(out, axis=1)


def factors(scale: Value, size: int, depth: int, part: int) -> Value:
  """Two to the exponent of each element's scale [waves, k, row]; 255 is NaN (7.2)."""
  lane = np.arange(size) + size * (np.arange(depth) // BLOCK)[:, None]
  exponent = (scale >> np.uint32(8 * part) & np.uint32(0xFF))[:, lane]
  power = (exponent.astype(U64) + np.uint64(1023 - 127) << np.uint64(52)).view(F64)
  return np.where(exponent == 255, np.nan, power)


def scales(o: Operand, part: int) -> tuple[Callable[[Group], Value], int]:
  """The scales of all lanes as u32, and which byte counts: of a constant the exponent of the float."""
  read = reader(o, "u32")
  if o.kind == "v": return (lambda group: full(group, read(group))), part
  return (lambda group: full(group, read(group) >> np.uint32(23))), 0


@binds(*NAMES, isa="gfx950")
def mfma_small(i: Instruction, pc: int, mode: int) -> Step:
  """D = A * B + C; sums as `gfx9.matrix` has them."""
  s = shape_of(i.mnemonic)
  formats = [FORMATS[i.get("cbsz")], FORMATS[i.get("blgp")]]
  sources = [i.operands["src0"], i.operands["src1"]]
  where = [places(s.rows, s.depth, t.bits) for t in formats]  # as many rows as columns
  part = [i.get("op_sel") >> k & 1 | (i.get("op_sel_hi") >> k & 1) << 1 for k in (0, 1)]
  scale = [scales(i.operands[name], part[k]) for k, name in enumerate(("scale_src0", "scale_src1"))
           if name in i.operands]
  c, d = i.operands["src2"], i.operands["vdst"]
  block, row, column = outputs(s)

  def step(group: Group) -> None:
    matrices = []
    for o, t, (lane, item) in zip(sources, formats, where):
      matrices.append(values_of(t)[codes(group, o.value, t.bits)[:, item, lane]])
    for k, (read, byte) in enumerate(scale):
      matrices[k] = matrices[k] * factors(read(group), s.rows, s.depth, byte)
    total = product(*matrices)[:, row, column] + accumulator(group, c, s.c, len(block))
    write_matrix(group, d.value, finish(total, s.c, mode))
  return step
