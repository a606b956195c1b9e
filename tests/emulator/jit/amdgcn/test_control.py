"""Compiled calls, jumps to addresses and split barriers against the reference, with nothing left to it."""
from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.gpu import Gpu, compile_gpu

CALLS = """
define internal i32 @twice(i32 %x) noinline { %y = mul i32 %x, 2 ret i32 %y }
define internal i32 @square(i32 %x) noinline { %y = mul i32 %x, %x ret i32 %y }
define internal i32 @deep(i32 %x) noinline {
  %a = call i32 @twice(i32 %x)
  %b = call i32 @square(i32 %a)
  %c = add i32 %b, %x
  ret i32 %c
}
define amdgpu_kernel void @k(ptr addrspace(1) %o, i32 %n) {
entry:
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %k.next, %loop ]
  %s = phi i32 [ %i, %entry ], [ %s.next, %loop ]
  %f = call i32 @deep(i32 %s)
  %g = call i32 @twice(i32 %f)
  %s.next = add i32 %g, %k
  %k.next = add i32 %k, 1
  %more = icmp ult i32 %k.next, %n
  br i1 %more, label %loop, label %done
done:
  %p = getelementptr i32, ptr addrspace(1) %o, i32 %i
  store i32 %s.next, ptr addrspace(1) %p
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()"""

POINTERS = """
define internal i32 @one(i32 %x) noinline { %y = add i32 %x, 100 ret i32 %y }
define internal i32 @two(i32 %x) noinline { %y = mul i32 %x, 7 ret i32 %y }
define amdgpu_kernel void @k(ptr addrspace(1) %o, i32 %n) {
entry:
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %odd = and i32 %i, 1
  %which = icmp eq i32 %odd, 0
  %f = select i1 %which, ptr @one, ptr @two
  %y = call i32 %f(i32 %i)
  %p = getelementptr i32, ptr addrspace(1) %o, i32 %i
  store i32 %y, ptr addrspace(1) %p
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()"""

BARRIERS = """
@l = internal addrspace(3) global [128 x i32] poison
define amdgpu_kernel void @k(ptr addrspace(1) %o, i32 %n) "amdgpu-flat-work-group-size"="128,128" {
entry:
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %here = getelementptr i32, ptr addrspace(3) @l, i32 %i
  %far = xor i32 %i, 65
  %there = getelementptr i32, ptr addrspace(3) @l, i32 %far
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %k.next, %loop ]
  %s = phi i32 [ %i, %entry ], [ %s.next, %loop ]
  store i32 %s, ptr addrspace(3) %here
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %x = load i32, ptr addrspace(3) %there
  %y = mul i32 %x, 3
  %s.next = add i32 %y, %k
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %k.next = add i32 %k, 1
  %more = icmp ult i32 %k.next, %n
  br i1 %more, label %loop, label %done
done:
  %p = getelementptr i32, ptr addrspace(1) %o, i32 %i
  store i32 %s.next, ptr addrspace(1) %p
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.barrier()"""


@pytest.mark.parametrize("cpu", ["gfx1100", "gfx1201", "gfx942"])
@pytest.mark.parametrize("name", ["calls", "pointers", "barriers"])
def test_control(name: str, cpu: str) -> None:
  ir = {"calls": CALLS, "pointers": POINTERS, "barriers": BARRIERS}[name]
  results = []
  for engine in ("ref", "jit", "jit"):
    gpu = Gpu(cpu=cpu)
    gpu.engine = engine
    kernel = gpu.load(compile_gpu(ir, 1, cpu=cpu))["k"]
    out = gpu.put(np.zeros(128, np.uint32))
    stats = gpu.launch(kernel, (1, 1, 1), (128, 1, 1), [out, np.uint32(6)])
    results.append((gpu.get(out, np.uint32, 128).tolist(), stats.instructions))
    assert stats.engine == engine and not stats.interpreted
  assert results[0] == results[1] == results[2] and len(set(results[0][0])) > 30
