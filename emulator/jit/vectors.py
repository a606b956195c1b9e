"""Vectors whose elements go to memory, as LLVM IR."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tinyhw.emulator.jit.values import Emitter

# How functions are defined that have more vectors than registers: LLVM aligns the stack where it knows before it
# allocates registers; else each vector that goes there lies in two cache lines.
ALIGNED: Final = "noinline alignstack(64)"


def scatter(e: Emitter, t: str, n: int, data: str, pointers: str, mask: str, align: int = 1) -> None:
  """Store n elements of a type at pointers of their own, where a mask says so; the last one wins at one place."""
  name = f"llvm.masked.scatter.v{n}{t}.v{n}p0"
  e.declared[name] = f"declare void @{name}(<{n} x {t}>, <{n} x ptr>, <{n} x i1>)"
  e.do(f"call void @{name}(<{n} x {t}> {data}, <{n} x ptr> align {align} {pointers}, <{n} x i1> {mask})")


def interleaved(e: Emitter, words: Sequence[str], t: str) -> str:
  """Element k of lane l at l * count + k, of vectors of an element a lane."""
  n, count = e.lanes, len(words)
  joined, have = words[0], 1
  for text in words[1:]:
    grown, total = text, n * have
    if have > 1:
      order = ", ".join(f"i32 {k}" if k < n else "i32 poison" for k in range(total))
      grown = e.op(f"shufflevector <{n} x {t}> {text}, <{n} x {t}> poison, <{total} x i32> <{order}>")
    order = ", ".join(f"i32 {k}" for k in range(n * (have + 1)))
    have += 1
    joined = e.op(f"shufflevector <{total} x {t}> {joined}, <{total} x {t}> {grown}, <{n * have} x i32> <{order}>")
  if count == 1: return joined
  order = ", ".join(f"i32 {k % count * n + k // count}" for k in range(n * count))
  return e.op(f"shufflevector <{n * count} x {t}> {joined}, <{n * count} x {t}> poison, <{n * count} x i32> <{order}>")


def chained(e: Emitter, parts: Sequence[str], size: int) -> str:
  """One vector of i32 of as many of `size` elements, a power of two."""
  while len(parts) > 1:
    order = ", ".join(f"i32 {k}" for k in range(2 * size))
    t = f"<{size} x i32>"
    parts = [e.op(f"shufflevector {t} {a}, {t} {b}, <{2 * size} x i32> <{order}>")
             for a, b in zip(parts[::2], parts[1::2])]
    size *= 2
  return parts[0]
