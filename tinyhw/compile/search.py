"""The search for options: lists of steps that are measured, best first, until none of their neighbours is faster.

`search` begins with what the heuristic chose and with nothing, keeps the `width` fastest lists, and tries what differs
from them by one step: one more, one less, one with another amount. The fastest few then run against the heuristic's in
turns, which is given up only for one that is faster in that race too. A `Judge` says how programs are measured and that
their values are right; times differ from run to run, so what is chosen may too, and with it how sums are rounded.
"""
from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from tinyhw.compile import warpgroup
from tinyhw.compile.compiler import compile_kernel, linear_program, optimize
from tinyhw.compile.images import wanted
from tinyhw.compile.kernel import Kernel
from tinyhw.compile.program import Opt, OptKind, ProgramSpec
from tinyhw.compile.render.base import Renderer
from tinyhw.core.errors import Error
from tinyhw.ir.uop import UOp

Opts = tuple[Opt, ...]


class Judge(ABC):
  """Who runs programs of one kernel."""

  @abstractmethod
  def seconds(self, program: ProgramSpec, limit: float) -> float | None:
    """What a program takes; None where its values are wrong, or it takes longer than `limit`."""

  @abstractmethod
  def fastest(self, programs: Sequence[ProgramSpec]) -> ProgramSpec:
    """The best of programs whose values are right, in a race: the first one where none is faster beyond doubt."""


_AMOUNTS = {OptKind.UPCAST: (2, 3, 4, 6, 8), OptKind.UNROLL: (2, 4, 8), OptKind.LOCAL: (2, 4, 8, 16, 32, 64),
            OptKind.GROUP: (8, 16, 32, 64), OptKind.GROUPTOP: (8, 16, 32, 64), OptKind.VECTOR: (4, 8, 16, 32, 64),
            OptKind.THREAD: (2, 4, 8, 16, 32, 64), OptKind.PADTO: (4, 8, 16, 32)}
_BETTER = 0.98            # of a time: what is no better than noise is not followed
_ROUNDS = 12              # times that the fastest lists are varied
_MOST_UOPS = 2000         # of a program that is worth its compilation
_SLOW = 2.0               # times the best so far: such a program is not measured any better, and not followed
_FINALISTS = 4


def search(ast: UOp, renderer: Renderer, width: int, judge: Judge) -> ProgramSpec:
  """The fastest program found for a kernel graph; that of the heuristic where nothing is faster."""
  known: dict[Opts, float] = {}
  programs: dict[tuple[UOp, ...], float] = {}
  best = math.inf
  def seconds(opts: Opts) -> float:
    """What a list takes, infinity where it is of no use; programs that different lists make alike are measured once."""
    nonlocal best
    if opts not in known:
      known[opts] = math.inf
      try:
        uops, *_ = linear_program(optimize(ast, renderer, opts))
        if len(uops) > _MOST_UOPS: return math.inf
        if uops not in programs:
          found = judge.seconds(compile_kernel(ast, renderer, opts), best * _SLOW)
          programs[uops] = math.inf if found is None else found
        known[opts] = programs[uops]
      except Error: pass                       # steps that do not fit, or more than the target has of something
      best = min(best, known[opts])
    return known[opts]
  chosen = compile_kernel(ast, renderer)
  beam = sorted((opts for opts in dict.fromkeys((chosen.opts, ())) if seconds(opts) < math.inf), key=seconds)[:width]
  if not beam: return chosen
  for _ in range(_ROUNDS):
    before = seconds(beam[0])
    tried = dict.fromkeys(n for opts in beam for n in neighbours(opts, optimize(ast, renderer, opts)))
    beam = sorted(dict.fromkeys([*beam, *(n for n in tried if seconds(n) < math.inf)]), key=seconds)[:width]
    if seconds(beam[0]) > before * _BETTER: break
  finalists = sorted((opts for opts, found in known.items() if found < math.inf), key=seconds)[:_FINALISTS]
  if seconds(chosen.opts) < math.inf: finalists = list(dict.fromkeys((chosen.opts, *finalists)))
  return judge.fastest([compile_kernel(ast, renderer, opts) for opts in finalists])


def neighbours(opts: Opts, kernel: Kernel) -> Iterator[Opts]:
  """Lists that differ by one step; some of them do not fit."""
  for i, opt in enumerate(opts):
    yield opts[:i] + opts[i + 1:]
    for amount in _AMOUNTS.get(opt.kind, ()):
      if amount != opt.amount: yield (*opts[:i], Opt(opt.kind, opt.axis, amount), *opts[i + 1:])
  for more in steps(kernel):
    yield (*opts, more)
    # What has to come first (lanes, a unit's blocks, padding), and what ends a list (copies of operands).
    if more.kind in (OptKind.VECTOR, OptKind.TC, OptKind.WARPGROUP, OptKind.PADTO): yield (more, *opts)
    elif opts and opts[-1].kind in (OptKind.PACK, OptKind.STAGE): yield (*opts[:-1], more, opts[-1])


def steps(kernel: Kernel) -> Iterator[Opt]:
  """Single steps that the target may take."""
  renderer, axes = kernel.renderer, [int(r.arg.axis) for r in kernel.parts]
  for kind, amounts in _AMOUNTS.items():
    if kind is OptKind.VECTOR and not renderer.lanes or kind is OptKind.THREAD and not renderer.pool: continue
    if kind in (OptKind.LOCAL, OptKind.GROUP, OptKind.GROUPTOP) and not renderer.local: continue
    yield from (Opt(kind, axis, amount) for axis in axes for amount in amounts)
  outputs = [int(r.arg.axis) for r in kernel.outputs]
  yield from (Opt(OptKind.SWAP, x, y) for i, x in enumerate(outputs) for y in outputs[i + 1:])
  if renderer.pool: yield from (Opt(OptKind.PACK, axis) for axis in outputs)
  if renderer.units: yield from (Opt(OptKind.TC, int(r.arg.axis)) for r in kernel.reductions)
  if renderer.stages: yield from (Opt(OptKind.STAGE, int(r.arg.axis)) for r in kernel.reductions)
  if renderer.warpgroups:
    yield from (Opt(OptKind.WARPGROUP, int(r.arg.axis), n) for r in kernel.reductions for n in warpgroup.COLUMNS)
  if renderer.images is not None and wanted(): yield from (Opt(OptKind.IMAGE, i) for i in kernel.buffers())
  if renderer.local: yield Opt(OptKind.NOLOCALS)
