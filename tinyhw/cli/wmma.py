"""A matrix product by RDNA3's v_wmma_f32_16x16x16_f16 in LLVM IR: what `tinyhw bench` times on the mock."""
from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from tinyhw.compile.render.objects import Processor, emit

TRIPLE = "amdgcn-amd-amdhsa"
_WMMA = "@llvm.amdgcn.wmma.f32.16x16x16.f16(<16 x half>"


@cache
def code(n: int, cpu: str = "gfx1100") -> bytes:
  """An object with kernel `product`: C = A * transpose(B), f16 [n, n] to f32 [n, n], all row by row.

  A wave of 32 lanes makes 32x32 of C, four instructions a step of 16; a grid of (n / 32, n / 32) workgroups.
  """
  return emit("\n".join(_kernel(n)), "product", Processor(TRIPLE, cpu), 3)


def _kernel(n: int) -> Iterator[str]:
  pointers = ", ".join(f"ptr addrspace(1) noalias align 32 %{name}" for name in "abc")
  yield f"""target triple = "{TRIPLE}"
define amdgpu_kernel void @product({pointers}) "amdgpu-flat-work-group-size"="32,32" {{
entry:
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %x = call i32 @llvm.amdgcn.workgroup.id.x()
  %y = call i32 @llvm.amdgcn.workgroup.id.y()
  %within = and i32 %lane, 15
  %half = lshr i32 %lane, 4
  %row = shl i32 %y, 5
  %column = shl i32 %x, 5
  %row.a = add i32 %row, %within
  %row.b = add i32 %column, %within
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %k.next, %loop ]"""
  tiles = [(i, j) for i in (0, 1) for j in (0, 1)]
  for i, j in tiles:
    yield f"  %c{i}{j} = phi <8 x float> [ zeroinitializer, %entry ], [ %d{i}{j}, %loop ]"
  for m in "ab":
    for i in (0, 1):
      yield f"""  %{m}{i}.row = add i32 %row.{m}, {16 * i}
  %{m}{i}.start = mul i32 %{m}{i}.row, {n}
  %{m}{i}.index = add i32 %{m}{i}.start, %k
  %{m}{i}.at = getelementptr half, ptr addrspace(1) %{m}, i32 %{m}{i}.index
  %{m}{i} = load <16 x half>, ptr addrspace(1) %{m}{i}.at, align 32"""
  for i, j in tiles: yield f"  %d{i}{j} = call <8 x float> {_WMMA} %a{i}, <16 x half> %b{j}, <8 x float> %c{i}{j})"
  yield f"""  %k.next = add i32 %k, 16
  %more = icmp ult i32 %k.next, {n}
  br i1 %more, label %loop, label %done
done:"""
  for i, j in tiles:
    for r in range(8):  # register r holds rows 2r and 2r + 1, one in each half of the wave
      name = f"%o{i}{j}{r}"
      yield f"""  {name}.two = add i32 %row, {16 * i + 2 * r}
  {name}.row = add i32 {name}.two, %half
  {name}.start = mul i32 {name}.row, {n}
  {name}.column = add i32 %row.b, {16 * j}
  {name}.index = add i32 {name}.start, {name}.column
  {name}.at = getelementptr float, ptr addrspace(1) %c, i32 {name}.index
  {name} = extractelement <8 x float> %d{i}{j}, i32 {r}
  store float {name}, ptr addrspace(1) {name}.at"""
  yield f"""  ret void
}}
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workgroup.id.y()
declare <8 x float> {_WMMA}, <16 x half>, <8 x float>)"""
