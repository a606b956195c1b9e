"""The UOp emulator's "machine code": the linear program itself, as the text of `tinyhw.ir.program`."""
from __future__ import annotations

from collections.abc import Sequence

from tinyhw.compile.render.base import Renderer
from tinyhw.ir import program
from tinyhw.ir.uop import UOp


class UOpRenderer(Renderer):
  """For the device PYTHON, which runs all threads of a grid in lockstep: every element of an output is one.

  Programs made for a GPU run there too, so what a GPU has in workgroups is not refused. Functions such as EXP are
  written in plain arithmetic as for the other devices: NumPy's own differ between processors.
  """
  target = "uops"
  threads = True
  max_block = 1024
  max_local = 64 * 1024

  def source(self, name: str, uops: Sequence[UOp]) -> str:
    self.check(name, uops)
    return program.dump(uops)

  def compile(self, source: str, name: str) -> bytes:
    return source.encode()
