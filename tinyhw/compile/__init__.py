"""From a tensor graph to programs: schedule, kernels, lowering, linearizing, rendering.

`schedule(outputs)` gives the kernels and copies, `compile_kernel(ast, renderer)` the program of one kernel. The data
they hand on is in `program`, the renderers are in `render`. One kernel goes through, in this order:

- `lower`: shapes become ranges, views become indices and gates;
- `legalize`: types and functions that the target has not become those it has;
- `kernel`: options split the ranges into workgroups, work-items, unrolled steps (`heuristic` chooses them);
- `expand`: grouped reductions through local memory, copies for unrolled steps, loads and stores as vectors;
- `linearize`: the order of execution, with loops;
- `render`: text and binary.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tinyhw.compile.program import Opt, OptKind, ProgramSpec, Schedule, ScheduleItem
from tinyhw.compile.schedule import schedule

if TYPE_CHECKING:
  from tinyhw.compile.render.base import Renderer
  from tinyhw.ir.uop import UOp


def compile_kernel(ast: UOp, renderer: Renderer, opts: Sequence[Opt] | None = None) -> ProgramSpec:
  """`compiler.compile_kernel`. Who finds all kernels on disk never loads what would compile them."""
  from tinyhw.compile import compiler
  return compiler.compile_kernel(ast, renderer, opts)


__all__ = ["Opt", "OptKind", "ProgramSpec", "Schedule", "ScheduleItem", "compile_kernel", "schedule"]
