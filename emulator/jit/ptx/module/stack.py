"""The stacks of all threads as LLVM IR, at one place that is known: nothing needs a check."""
from __future__ import annotations

from collections.abc import Iterator

from tinyhw.emulator.jit.ptx.module.emit import Lanes
from tinyhw.emulator.jit.values import Value, gather
from tinyhw.emulator.jit.vectors import scatter
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.memory.spaces import Local
from tinyhw.emulator.values.ops import U64


def holds(g: Lanes, offset: int, size: int) -> bool:
  """Whether so many bytes, of an aligned access, are in each stack."""
  return 0 <= offset <= g.plan.whole.stack - size and not offset % size


def get(g: Lanes, offset: int, size: int) -> Value:
  """What lies there, unsigned."""
  text = gather(g.e, f"i{8 * size}", _pointers(g, offset), "splat (i1 true)")
  return Value(g.e, text, operands.unsigned(size), True)


def put(g: Lanes, offset: int, value: Value, mask: Value | None) -> None:
  """Store a value of the threads of a mask."""
  size = value.dtype.itemsize
  data, bits = value.view(operands.unsigned(size)).in_lanes(), "splat (i1 true)" if mask is None else mask.in_lanes()
  scatter(g.e, f"i{8 * size}", g.width, data, _pointers(g, offset), bits, size)


def copy(g: Lanes, source: int, target: int, size: int, mask: Value) -> None:
  """Copy bytes of the threads of a mask."""
  for at, width in pieces(source, target, size): put(g, target + at, get(g, source + at, width), mask)


def places(g: Lanes, offset: int) -> Value:
  """The host address of a place in the stack of each thread."""
  apart = Local.aligned(g.plan.whole.stack)
  return g.e.vector(U64, [k * apart + offset for k in range(g.width)]) + Value(g.e, "%local", U64, False)


def _pointers(g: Lanes, offset: int) -> str:
  return g.e.op(f"inttoptr <{g.width} x i64> {places(g, offset).text} to <{g.width} x ptr>")


def pieces(source: int, target: int, size: int) -> Iterator[tuple[int, int]]:
  """(offset, bytes) of aligned pieces in which so many bytes are copied."""
  at = 0
  while at < size:
    width = next(w for w in (8, 4, 2, 1) if not (source + at | target + at) % w and at + w <= size)
    yield at, width
    at += width
