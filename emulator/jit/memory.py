"""The mappings of GPU memory as compiled code reads them, and how it finds one."""
from __future__ import annotations

from typing import Final

import numpy as np

from tinyhw.core.memory import AddressSpace

ROW: Final = 32  # bytes of a mapping in the table: start, size, distance to the host, access


class Memory:
  """The mappings of an address space as compiled code reads them: rows of start, size, distance to the host, access."""

  def __init__(self, space: AddressSpace) -> None:
    self._mappings = space.mappings()  # keeps the memory itself
    rows = [(m.start, m.end - m.start, m.u8.ctypes.data - m.start & (1 << 64) - 1, m.access) for m in self._mappings]
    self.table = np.array(rows, np.uint64).reshape(-1, 4)


def finder(count: str, table: int, parameters: str, good: str, test: str, kept: str, more: str = "",
           refused: str = "%none", linkage: str = "private") -> str:
  """The LLVM function `i1 @find(context, site, address, extent{parameters}, access)`: looks a mapping up for a site,
  whose row then says where it starts, `kept`, and its distance to the host. `count` loads %count, the number of
  mappings, `table` is where the context has their rows; `test` computes `good`, which has to hold beside
  %legal.inside, and `more` computes `kept`. `refused` is where it goes on from a mapping that does not serve."""
  return f"""
define {linkage} i1 @find(ptr %context, ptr %site, i64 %address, i64 %extent{parameters}, i64 %access) noinline {{
{count}
  %table.at = getelementptr i8, ptr %context, i64 {table}
  %table = load ptr, ptr %table.at
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %other ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %try, label %none
try:
  %row = getelementptr [{ROW} x i8], ptr %table, i64 %i
  %start = load i64, ptr %row
  %size.at = getelementptr i8, ptr %row, i64 8
  %size = load i64, ptr %size.at
  %relative = sub i64 %address, %start
  %here = icmp ult i64 %relative, %size
  %next = add i64 %i, 1
  br i1 %here, label %found, label %other
other:
  br label %loop
found:
  %allowed.at = getelementptr i8, ptr %row, i64 24
  %allowed = load i64, ptr %allowed.at
  %common = and i64 %allowed, %access
  %legal = icmp eq i64 %common, %access
  %end = add i64 %relative, %extent
  %inside = icmp ule i64 %end, %size
  %legal.inside = and i1 %legal, %inside
{test}
  br i1 {good}, label %take, label {refused}
take:
  %distance.at = getelementptr i8, ptr %row, i64 16
  %distance = load i64, ptr %distance.at
  store i64 %start, ptr %site
{more}
  %site.kept = getelementptr i8, ptr %site, i64 8
  store i64 {kept}, ptr %site.kept
  %site.distance = getelementptr i8, ptr %site, i64 16
  store i64 %distance, ptr %site.distance
  ret i1 true
none:
  ret i1 false
}}
"""
