"""A memory instruction in compiled code: what its slow path has to know, and how another mapping is found for it."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tinyhw.emulator.jit.amdgcn.context import MAPPINGS, ROW, TABLE
from tinyhw.isa.amdgcn import Instruction


@dataclass(frozen=True)
class Site:
  """What the slow path needs to know about a memory instruction; `kind`: load, store, atomic or scalar."""
  offset: int
  kind: str
  segment: str
  width: int
  instruction: Instruction
  shift: int = 0
  operation: str = ""  # of an atomic


FIND: Final = f"""
define private i1 @find(ptr %context, ptr %site, i64 %address, i64 %extent, i64 %access) noinline {{
  %count.at = getelementptr i8, ptr %context, i64 {MAPPINGS}
  %count = load i64, ptr %count.at
  %table.at = getelementptr i8, ptr %context, i64 {TABLE}
  %table = load ptr, ptr %table.at
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %other ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %try, label %none
try:
  %bytes = mul i64 %i, {ROW}
  %row = getelementptr i8, ptr %table, i64 %bytes
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
  %good = and i1 %legal, %inside
  br i1 %good, label %take, label %none
take:
  %distance.at = getelementptr i8, ptr %row, i64 16
  %distance = load i64, ptr %distance.at
  store i64 %start, ptr %site
  %site.size = getelementptr i8, ptr %site, i64 8
  store i64 %size, ptr %site.size
  %site.distance = getelementptr i8, ptr %site, i64 16
  store i64 %distance, ptr %site.distance
  ret i1 true
none:
  ret i1 false
}}
"""
