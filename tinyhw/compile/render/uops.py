"""Programs for the UOp emulator: the linear program itself, serialized."""
from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from tinyhw.compile.program import Dim3
from tinyhw.compile.render.base import Renderer
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp


class UOpRenderer(Renderer):
  """The NumPy emulator: every output element is a thread of one huge grid, all in lockstep; reductions are loops."""
  target = "uops"
  threads = True

  def native(self, op: Ops, dtype: DType) -> bool: return dtype is not dtypes.bfloat16

  def render(self, name: str, uops: Sequence[UOp], grid: Dim3, block: Dim3) -> tuple[str, bytes]:
    number = {u: i for i, u in enumerate(uops)}
    lines = [f"{i:4d} {u.op.name:13s} {u.dtype!r:28s} {[number[s] for s in u.src]!s:20s} "
             f"{'' if u.arg is None else u.arg}".rstrip() for i, u in enumerate(uops)]
    return "\n".join([f"# {name}, grid {grid}", *lines, ""]), pickle.dumps(_Flat(uops))


class _Flat:
  """Pickles as the tuple of UOps, by numbers of sources: a graph of any depth is no recursion."""

  def __init__(self, uops: Sequence[UOp]) -> None:
    number = {u: i for i, u in enumerate(uops)}
    self.rows = [(u.op.name, u.dtype, tuple(number[s] for s in u.src), u.arg) for u in uops]

  def __reduce__(self) -> tuple[Any, ...]: return (unflatten, (self.rows,))


def unflatten(rows: Sequence[tuple[str, DType, tuple[int, ...], Any]]) -> tuple[UOp, ...]:
  """The UOps of numbered rows."""
  made: list[UOp] = []
  for name, dtype, src, arg in rows: made.append(UOp(Ops[name], dtype, tuple(made[s] for s in src), arg))
  return tuple(made)
