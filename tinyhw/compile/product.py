"""A product of matrices in a kernel, as the options TC and WARPGROUP have a matrix unit compute it."""
from __future__ import annotations

from dataclasses import dataclass

from tinyhw.compile.axes import AxisPart
from tinyhw.ir.matrix import Digits, MatrixUnit
from tinyhw.ir.uop import Axis, UOp


@dataclass(frozen=True)
class Product:
  """A reduction that a unit computes: axes, and factors in the unit's type, over the kernel's axes."""
  unit: MatrixUnit
  reduction: UOp
  rows: UOp
  columns: UOp
  steps: UOp
  a: UOp
  b: UOp
  columns_a_lane: int = 1  # neighbours that each lane has a column of, for as many blocks: a load serves all
  whole: bool = False      # the unit sums all steps, and reads memory by itself (`warpgroup`)


def parts_of(digits: Digits) -> list[AxisPart]:
  """The parts of an axis that a unit takes, outermost first."""
  return [AxisPart(d.size, Axis.LOCAL, d.divisor) if d.of_lane else AxisPart(d.size, Axis.UPCAST)
          for d in sorted(digits, key=lambda d: -d.step)]
