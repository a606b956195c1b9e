"""Matrix units as data: what one instruction of a wave multiplies, and which lane holds what.

A unit computes D = A * B + C of `size` x `size` results with `size` steps. Lane l stands for row l % size of A and for
column l % size of B and of C; l // size is its group. The layouts are those of the ISA manuals (RDNA3 7.9, RDNA4 7.12,
CDNA3 7.4) as LLVM's intrinsics take them.
"""
from __future__ import annotations

from dataclasses import dataclass

from tinyhw.arch import Arch
from tinyhw.ir.dtype import DType, dtypes


@dataclass(frozen=True)
class MatrixUnit:
  """One instruction.

  A lane holds `held` numbers of A's row and of B's column: steps `group * spread`, and on. It holds `results` of C's
  column: number i is row `i * step + group * apart`. `name` is LLVM's intrinsic, `rest` its further arguments.
  """
  name: str
  lanes: int
  held: int
  spread: int
  results: int
  step: int
  apart: int
  rest: str = ""
  size: int = 16
  inputs: DType = dtypes.float16
  output: DType = dtypes.float32

  @property
  def groups(self) -> int:
    """Groups of `size` lanes."""
    return self.lanes // self.size


# By instruction table, and by processor where not all that have the table have the unit.
_UNITS: dict[str, tuple[MatrixUnit, ...]] = {
  "gfx11": (MatrixUnit("wmma.f32.16x16x16.f16.v8f32.v16f16", 32, 16, 0, 8, 2, 1),),
  "gfx12": (MatrixUnit("wmma.f32.16x16x16.f16.v8f32.v8f16", 32, 8, 8, 8, 1, 8),),
  "gfx942": (MatrixUnit("mfma.f32.16x16x16f16", 64, 4, 4, 4, 1, 4, ", i32 0, i32 0, i32 0"),),
}


def units_of(arch: Arch) -> tuple[MatrixUnit, ...]:
  """The units of a GPU that the compiler uses."""
  return _UNITS.get(arch.name) or _UNITS.get(arch.isa, ())


def unit_named(name: str) -> MatrixUnit:
  """The unit that a WMMA of the linear program names."""
  return next(u for units in _UNITS.values() for u in units if u.name == name)
