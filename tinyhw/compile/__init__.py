"""From a tensor graph to programs: schedule, kernels, lowering, linearizing, rendering.

`schedule(outputs)` gives the kernels and copies, `compile_kernel(ast, renderer)` the program of one kernel. The data
they hand on is in `tinyhw.compile.program`, the renderers are in `tinyhw.compile.render`.
"""
from __future__ import annotations

from tinyhw.compile.compiler import compile_kernel
from tinyhw.compile.program import Opt, OptKind, ProgramSpec, Schedule, ScheduleItem
from tinyhw.compile.schedule import schedule

__all__ = ["Opt", "OptKind", "ProgramSpec", "Schedule", "ScheduleItem", "compile_kernel", "schedule"]
