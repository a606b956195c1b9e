"""One kernel graph to one program: lower, legalize, optimize, expand, linearize, render. Results are kept in memory."""
from __future__ import annotations

import math
import os
import re
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import cast

from tinyhw.compile.choose import heuristic
from tinyhw.compile.expand import expand, fuse_multiply_add, group_reductions, vectorize
from tinyhw.compile.images import with_images
from tinyhw.compile.kernel import Kernel
from tinyhw.compile.legalize import legalize
from tinyhw.compile.linearize import linearize
from tinyhw.compile.lower import lower
from tinyhw.compile.pairs import without_wide_integers
from tinyhw.compile.program import Dim3, Estimates, Opt, ProgramSpec
from tinyhw.compile.render.base import Renderer, dynamic_size
from tinyhw.compile.units import choice, unit_named
from tinyhw.compile.widen import widen
from tinyhw.core.kept import Kept
from tinyhw.core.locks import lock
from tinyhw.ir.dtype import PtrDType, dtypes
from tinyhw.ir.size import from_node, highest
from tinyhw.ir.spec import check_kernel, check_linear
from tinyhw.ir.stages import stage
from tinyhw.ir.uop import GroupOp, Ops, UOp

Known = tuple[UOp, str, tuple[Opt, ...] | None, str]
_programs: Kept[Known, ProgramSpec] = Kept(4096)


def optimize(ast: UOp, renderer: Renderer, opts: Sequence[Opt] | None = None) -> Kernel:
  """The lowered kernel with options applied: the given ones, or those of the heuristic (none when NOOPT is set)."""
  stage("kernel", ast)
  lowered = lower(ast)
  stage("lowered", lowered)
  kernel = Kernel(legalize(lowered, renderer), renderer)
  stage("legalized", kernel.sink)
  if opts is not None:
    for opt in opts: kernel.apply(opt)
  elif os.environ.get("NOOPT", "0") in ("", "0"): heuristic(kernel)
  return kernel


def linear_program(kernel: Kernel) -> tuple[tuple[UOp, ...], Dim3, Dim3]:
  """(linear program, grid, block) of an optimized kernel."""
  sink, grid, block = kernel.build()
  stage("axes split by the options", sink)
  steps: list[tuple[str, Callable[[UOp], UOp]]] = [
    ("reductions grouped", group_reductions), ("widened", widen), ("expanded", expand),
    ("vectors", lambda s: vectorize(s, kernel.renderer))]
  if kernel.renderer.fused: steps.append(("multiply-adds fused", fuse_multiply_add))
  if kernel.images and (limits := kernel.renderer.images) is not None:
    steps.append(("images", lambda s: with_images(s, kernel.images, limits)))
  if not kernel.renderer.supports(dtypes.uint64):
    steps.append(("64-bit integers as pairs", lambda s: without_wide_integers(s, kernel.renderer.target)))
  for name, step in steps:
    sink = step(sink)
    stage(name, sink)
  linear = linearize(sink)
  stage("linear program", linear)
  return linear, grid, block


def kernel_name(kernel: Kernel) -> str:
  """A name that tells reductions (r) from elementwise kernels (e), and the sizes of the axes; the digest tells kernels
  of one shape apart."""
  sizes = [re.sub(r"(?a)\W+", "", str(from_node(r.src[0]))) for r in (*kernel.outputs, *kernel.reductions)]
  return "_".join(["r" if kernel.reductions else "e", *sizes, kernel.sink.key.hex()[:6]])


def estimate(uops: Sequence[UOp], grid: Dim3, block: Dim3) -> Estimates:
  """Arithmetic operations of a launch on values (not on indices), and the bytes of the buffers."""
  threads, trips, ops = math.prod(grid) * math.prod(block), [1], 0
  indexing: set[UOp] = set()
  for u in uops:
    if u.op is Ops.INDEX:
      for s in u.src[1:]: indexing.update(s.toposort(lambda v: v not in indexing))
  for u in uops:
    if u.op is Ops.RANGE: trips.append(trips[-1] * from_node(u.src[0]))
    elif u.op is Ops.ENDRANGE: trips.pop()
    elif u.op is Ops.WMMA:
      unit = unit_named(u.arg)
      ops += trips[-1] * (2 * unit.rows * unit.columns * unit.steps // unit.lanes)
    elif u.op is Ops.WGMMA: ops += trips[-1] * u.arg.operations
    elif u.op in GroupOp.ALU and u not in indexing:
      ops += trips[-1] * (u.dtype.count * (2 if u.op is Ops.MULACC else 1))
  touched = sum(u.dtype.size * u.dtype.base.itemsize for u in uops
                if u.op is Ops.DEFINE_GLOBAL and isinstance(u.dtype, PtrDType))
  return Estimates(ops * threads, touched)


def outputs(ast: UOp) -> int:
  """How many buffers a kernel writes: the first ones."""
  return 2 if ast.src[0].op is Ops.SCATTER and ast.src[0].arg.before else len(ast.src)


def forget(ast: UOp, renderer: Renderer, opts: Sequence[Opt] | None) -> None:
  """Have the next `compile_kernel` of these compile."""
  _programs.pop((ast, renderer.key, tuple(opts) if opts is not None else None, choice()), None)


@dataclass(eq=False)
class _Draft:
  """A kernel on its way to a program: all but its text and code."""
  known: Known
  ast: UOp
  renderer: Renderer
  kernel: Kernel
  uops: tuple[UOp, ...]
  extent: Dim3
  block: Dim3

  def finished(self) -> ProgramSpec:
    """The program."""
    grid = tuple(highest(size) for size in self.extent)
    name = kernel_name(self.kernel)
    source, binary = self.renderer.render(name, self.uops, cast(Dim3, grid), self.block)
    local = sum(u.dtype.size * u.dtype.base.itemsize for u in self.uops
                if u.op is Ops.DEFINE_LOCAL and isinstance(u.dtype, PtrDType))
    # A buffer whose loads were all simplified away is an argument still: numbers are places in the argument list.
    buffers = tuple(range(1 + max(int(u.arg) for u in self.uops if u.op is Ops.DEFINE_GLOBAL)))
    variables = tuple(u.arg for u in self.uops if u.op is Ops.DEFINE_VAR)
    return ProgramSpec(name, self.renderer.target, source, binary, self.uops, cast(Dim3, grid), self.block, buffers,
                       variables, estimate(self.uops, self.extent, self.block), local, tuple(self.kernel.opts),
                       None if self.extent == grid else self.extent, outputs(self.ast), dynamic_size(self.uops))


def _known(ast: UOp, renderer: Renderer, opts: Sequence[Opt] | None) -> Known:
  """What a program is kept by."""
  wanted = tuple(opts) if opts is not None else None
  if wanted is None and os.environ.get("NOOPT", "0") not in ("", "0"): wanted = ()
  return ast, renderer.key, wanted, choice()


def _draft(known: Known, renderer: Renderer) -> _Draft:
  check_kernel(known[0])
  kernel = optimize(known[0], renderer, known[2])
  uops, extent, block = linear_program(kernel)
  check_linear(uops)
  return _Draft(known, known[0], renderer, kernel, uops, extent, block)


def compile_kernel(ast: UOp, renderer: Renderer, opts: Sequence[Opt] | None = None) -> ProgramSpec:
  """The program of a kernel graph (a SINK of STOREs, from `schedule`) for a target.

  `opts` are applied in order instead of the heuristic's; one that does not fit is a ValueError. The result is kept by
  (ast, renderer.key, opts): `ast.key` is the same in every process, for caches on disk.
  """
  known = _known(ast, renderer, opts)
  return _programs.made(known, lambda: _draft(known, renderer).finished())


def compile_ahead(asts: Sequence[UOp], renderer: Renderer) -> None:
  """Have the next `compile_kernel` of these find their programs: a thread makes text and code of one, where Python is
  not needed, while this one brings the next one to that point. What one raises is left to `compile_kernel`."""
  wanted = [known for ast in dict.fromkeys(asts) if (known := _known(ast, renderer, None)) not in _programs]
  if len(wanted) < 2: return
  drafts: SimpleQueue[_Draft | None] = SimpleQueue()
  def finish() -> None:
    while (draft := drafts.get()) is not None:
      with suppress(Exception): _programs.keep(draft.known, draft.finished())
  helper = threading.Thread(target=finish, name="tinyhw.compile", daemon=True)
  with _handing_over:
    try:
      helper.start()
      for known in wanted:
        with suppress(Exception): drafts.put(_draft(known, renderer))
    except BaseException:
      with suppress(Empty):
        while True: drafts.get_nowait()
      raise
    finally:
      drafts.put(None)
      if helper.ident is not None: helper.join()


class _HandingOver:
  """A block in which threads hand Python over to each other at once: one that LLVM keeps busy needs it briefly and
  often. (The interval is the interpreter's; with several such blocks the last one sets it back.)"""
  _AT_ONCE_S = 1e-4

  def __init__(self) -> None: self._lock, self._blocks, self._before = lock(), 0, 0.0

  def __enter__(self) -> None:
    with self._lock:
      self._blocks += 1
      if self._blocks == 1:
        self._before = sys.getswitchinterval()
        sys.setswitchinterval(min(self._before, self._AT_ONCE_S))

  def __exit__(self, *_: object) -> None:
    with self._lock:
      self._blocks -= 1
      if not self._blocks: sys.setswitchinterval(self._before)


_handing_over = _HandingOver()
