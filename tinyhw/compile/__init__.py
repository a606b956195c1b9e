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

from tinyhw.compile.compiler import compile_kernel
from tinyhw.compile.program import Opt, OptKind, ProgramSpec, Schedule, ScheduleItem
from tinyhw.compile.schedule import schedule

__all__ = ["Opt", "OptKind", "ProgramSpec", "Schedule", "ScheduleItem", "compile_kernel", "schedule"]
