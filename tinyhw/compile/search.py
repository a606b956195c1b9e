"""The search for options: lists of steps that are measured, best first, until none of their neighbours is faster.

`search` begins with what the heuristic chose and with nothing, keeps the `width` fastest lists, and tries what differs
from them by one step: one more, one less, one with another amount. Who calls says how a program is measured and that
its values are right; times differ from run to run, so what is chosen may too, and with it how sums are rounded.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator

from tinyhw.compile.compiler import compile_kernel, linear_program, optimize
from tinyhw.compile.images import wanted
from tinyhw.compile.kernel import Kernel
from tinyhw.compile.program import Opt, OptKind, ProgramSpec
from tinyhw.compile.render.base import Renderer
from tinyhw.core.errors import Error
from tinyhw.ir.uop import UOp

Opts = tuple[Opt, ...]
Measure = Callable[[ProgramSpec], "float | None"]
"""Seconds that a program takes, or None where it is none that may be used."""

_AMOUNTS = {OptKind.UPCAST: (2, 3, 4, 6, 8), OptKind.UNROLL: (2, 4, 8), OptKind.LOCAL: (2, 4, 8, 16, 32, 64),
            OptKind.GROUP: (8, 16, 32, 64), OptKind.GROUPTOP: (8, 16, 32, 64), OptKind.VECTOR: (4, 8, 16, 32, 64),
            OptKind.THREAD: (2, 4, 8, 16, 32, 64), OptKind.PADTO: (4, 8, 16, 32)}
_BETTER = 0.98            # of a time: what is no better than noise is not followed
_ROUNDS = 12              # times that the fastest lists are varied
_MOST_UOPS = 2000         # of a program that is worth its compilation


def search(ast: UOp, renderer: Renderer, width: int, measure: Measure) -> ProgramSpec:
  """The fastest program found for a kernel graph; that of the heuristic where nothing is faster."""
  known: dict[Opts, float | None] = {}
  programs: dict[tuple[UOp, ...], float | None] = {}
  def time(opts: Opts) -> float | None:
    """Seconds of a list; programs that different lists make alike are measured once."""
    if opts not in known:
      try:
        uops, *_ = linear_program(optimize(ast, renderer, opts))
        if len(uops) > _MOST_UOPS: known[opts] = None
        else:
          if uops not in programs: programs[uops] = measure(compile_kernel(ast, renderer, opts))
          known[opts] = programs[uops]
      except Error: known[opts] = None         # steps that do not fit, or more than the target has of something
    return known[opts]
  chosen = compile_kernel(ast, renderer)
  lists = [opts for opts in dict.fromkeys((chosen.opts, ())) if time(opts) is not None]
  if not lists: return chosen
  def seconds(opts: Opts) -> float: return found if (found := time(opts)) is not None else float("inf")
  beam = sorted(lists, key=seconds)[:width]
  for _ in range(_ROUNDS):
    before = seconds(beam[0])
    tried = dict.fromkeys(n for opts in beam for n in neighbours(opts, optimize(ast, renderer, opts)))
    beam = sorted(dict.fromkeys([*beam, *(n for n in tried if time(n) is not None)]), key=seconds)[:width]
    if seconds(beam[0]) > before * _BETTER: break
  return compile_kernel(ast, renderer, beam[0])


def neighbours(opts: Opts, kernel: Kernel) -> Iterator[Opts]:
  """Lists that differ by one step; some of them do not fit."""
  for i, opt in enumerate(opts):
    yield opts[:i] + opts[i + 1:]
    for amount in _AMOUNTS.get(opt.kind, ()):
      if amount != opt.amount: yield (*opts[:i], Opt(opt.kind, opt.axis, amount), *opts[i + 1:])
  for more in steps(kernel):
    yield (*opts, more)
    # What has to come first (lanes, a unit's blocks, padding), and what ends a list (copies of operands).
    if more.kind in (OptKind.VECTOR, OptKind.TC, OptKind.PADTO): yield (more, *opts)
    elif opts and opts[-1].kind is OptKind.PACK: yield (*opts[:-1], more, opts[-1])


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
  if renderer.images is not None and wanted(): yield from (Opt(OptKind.IMAGE, i) for i in kernel.buffers())
  if renderer.local: yield Opt(OptKind.NOLOCALS)
