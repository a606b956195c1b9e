"""Blocks of sums of products as LLVM IR: so many rows and columns at a time stay in the processor's registers.

Each sum is made in the order of k, and what was there before is added last, as the reference does. `how` is "" for
products that are exact, "apart" for others, "sat" for sums that saturate, "xor" and "and" for bits.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tinyhw.emulator.jit.native import host

_BLOCKS: Final = {True: (8, 16), False: (4, 8)}  # rows and columns, with AVX-512 and without



def block(columns: int) -> tuple[int, int]:
  """Rows and columns of sums at a time, of a matrix of so many columns."""
  rows, most = _BLOCKS[host().cpu == "x86-64-v4"]
  return rows, min(columns, most)


def depth(t: str, how: str, rows: int, columns: int, k: int, before: str, apart: int, left: Sequence[str],
          stride: int) -> Iterator[str]:
  """Blocks from %depth to %end: the sums %t0, %t1 ... of k products each, behind the block `before`. Of the right
  matrix, whose rows are `apart` elements from each other, they read from %b.at on; of the left one the element that
  `left` puts into %x.at for depth %d, and those `stride` elements further for each row."""
  f, wide = "f" * (t == "double"), f"<{columns} x {t}>"
  yield from ("  br label %depth", "depth:", f"  %d = phi i64 [ 0, %{before} ], [ %d.next, %depth ]")
  yield from (f"  %s{r} = phi {wide} [ zeroinitializer, %{before} ], [ %t{r}, %depth ]" for r in range(rows))
  yield from (f"  %y.line = mul i64 %d, {apart}", f"  %y.at = getelementptr {t}, ptr %b.at, i64 %y.line",
              f"  %y = load {wide}, ptr %y.at, align 8", *left)
  for r in range(rows):
    yield from (f"  %x{r}.at = getelementptr {t}, ptr %x.at, i64 {r * stride}", f"  %x{r} = load {t}, ptr %x{r}.at",
                f"  %x{r}.one = insertelement {wide} poison, {t} %x{r}, i64 0",
                f"  %x{r}.all = shufflevector {wide} %x{r}.one, {wide} poison, <{columns} x i32> zeroinitializer")
    if t == "double" and not how:
      yield f"  %t{r} = call {wide} @llvm.fmuladd.v{columns}f64({wide} %x{r}.all, {wide} %y, {wide} %s{r})"
      continue
    if how in {"xor", "and"}:
      yield f"  %m{r}.bits = {how} {wide} %x{r}.all, %y"
      yield f"  %m{r} = call {wide} @llvm.ctpop.v{columns}i32({wide} %m{r}.bits)"
    else: yield f"  %m{r} = {f}mul {wide} %x{r}.all, %y"
    yield f"  %t{r} = {f}add {wide} %s{r}, %m{r}"
  yield from ("  %d.next = add i64 %d, 1", f"  %d.over = icmp eq i64 %d.next, {k}",
              "  br i1 %d.over, label %end, label %depth", "end:")


def added(t: str, how: str, rows: int, columns: int, apart: int) -> Iterator[str]:
  """The sums are added to what is at %c.at, whose rows are `apart` elements from each other. A sum of products is far
  from the end of i32, so that one more addition saturates as the whole would."""
  f, wide = "f" * (t == "double"), f"<{columns} x {t}>"
  for r in range(rows):
    add = f"{f}add {wide} %t{r}, %old{r}"
    if how == "sat": add = f"call {wide} @llvm.sadd.sat.v{columns}i32({wide} %t{r}, {wide} %old{r})"
    yield from (f"  %c{r}.at = getelementptr {t}, ptr %c.at, i64 {r * apart}",
                f"  %old{r} = load {wide}, ptr %c{r}.at, align 8", f"  %sum{r} = {add}",
                f"  store {wide} %sum{r}, ptr %c{r}.at, align 8")
