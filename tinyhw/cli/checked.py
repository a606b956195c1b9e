"""What the hazard checks cost beside the same run without them: cases of `tinyhw bench`."""
from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import llvmlite.binding as llvm
import numpy as np

from tinyhw.cli.measure import Seconds, repeat
from tinyhw.cli.pipelines import PIPELINES
from tinyhw.core.errors import Error

N: Final = 1 << 16
_HEAD: Final = """
@a = internal addrspace(3) global [256 x float] undef, align 16
@b = internal addrspace(3) global [256 x float] undef, align 16
declare i32 @{group}()
declare i32 @{item}()
declare void @{barrier}()
define {kernel} void @{name}(ptr addrspace(1) %out, ptr addrspace(1) %in) "amdgpu-flat-work-group-size"="256,256" {{
entry:
  %group = call i32 @{group}()
  %item = call i32 @{item}()
  %first = mul i32 %group, 256
  %i = add i32 %first, %item
  %at = zext i32 %i to i64
  %to = getelementptr float, ptr addrspace(1) %out, i64 %at
  %from = getelementptr float, ptr addrspace(1) %in, i64 %at
  %x = load float, ptr addrspace(1) %from
"""
BODIES: Final = {
  "plain": """  %y = fmul float %x, 3.0
  store float %y, ptr addrspace(1) %to
  ret void
}}
""",
  "lds": """  br label %round
round:
  %k = phi i32 [ 0, %entry ], [ %k.next, %rounded ]
  %s = phi float [ %x, %entry ], [ %t.next, %rounded ]
  %mine = getelementptr [256 x float], ptr addrspace(3) @a, i32 0, i32 %item
  store float %s, ptr addrspace(3) %mine
  {fence}
  call void @{barrier}()
  {fence}
  br label %sum
sum:
  %j = phi i32 [ 0, %round ], [ %j.next, %sum ]
  %t = phi float [ 0.0, %round ], [ %t.next, %sum ]
  %row = and i32 %item, 240
  %place = add i32 %row, %j
  %other = getelementptr [256 x float], ptr addrspace(3) @a, i32 0, i32 %place
  %v = load float, ptr addrspace(3) %other
  %t.half = fmul float %t, 0.5
  %t.next = fadd float %t.half, %v
  %j.next = add i32 %j, 1
  %more = icmp ult i32 %j.next, 16
  br i1 %more, label %sum, label %rounded
rounded:
  {fence}
  call void @{barrier}()
  {fence}
  %k.next = add i32 %k, 1
  %again = icmp ult i32 %k.next, 8
  br i1 %again, label %round, label %done
done:
  store float %t.next, ptr addrspace(1) %to
  ret void
}}
""",
  "matmul": """  %row = lshr i32 %item, 4
  %column = and i32 %item, 15
  %group.row = lshr i32 %group, 4
  %group.column = and i32 %group, 15
  %first.row = shl i32 %group.row, 4
  %first.column = shl i32 %group.column, 4
  %its.row = add i32 %first.row, %row
  %its.column = add i32 %first.column, %column
  %row.at = shl i32 %its.row, 8
  %a.mine = getelementptr [256 x float], ptr addrspace(3) @a, i32 0, i32 %item
  %b.mine = getelementptr [256 x float], ptr addrspace(3) @b, i32 0, i32 %item
  %row.first = shl i32 %row, 4
  br label %tile
tile:
  %k = phi i32 [ 0, %entry ], [ %k.next, %summed ]
  %s = phi float [ 0.0, %entry ], [ %t.next, %summed ]
  %k.first = shl i32 %k, 4
  %a.column = add i32 %k.first, %column
  %a.i = add i32 %row.at, %a.column
  %a.z = zext i32 %a.i to i64
  %a.from = getelementptr float, ptr addrspace(1) %in, i64 %a.z
  %a.x = load float, ptr addrspace(1) %a.from
  store float %a.x, ptr addrspace(3) %a.mine
  %b.row = add i32 %k.first, %row
  %b.at = shl i32 %b.row, 8
  %b.i = add i32 %b.at, %its.column
  %b.z = zext i32 %b.i to i64
  %b.from = getelementptr float, ptr addrspace(1) %in, i64 %b.z
  %b.x = load float, ptr addrspace(1) %b.from
  store float %b.x, ptr addrspace(3) %b.mine
  {fence}
  call void @{barrier}()
  {fence}
  br label %product
product:
  %j = phi i32 [ 0, %tile ], [ %j.next, %product ]
  %t = phi float [ %s, %tile ], [ %t.next, %product ]
  %a.place = add i32 %row.first, %j
  %j.row = shl i32 %j, 4
  %b.place = add i32 %j.row, %column
  %a.other = getelementptr [256 x float], ptr addrspace(3) @a, i32 0, i32 %a.place
  %b.other = getelementptr [256 x float], ptr addrspace(3) @b, i32 0, i32 %b.place
  %u = load float, ptr addrspace(3) %a.other
  %v = load float, ptr addrspace(3) %b.other
  %uv = fmul float %u, %v
  %t.next = fadd float %t, %uv
  %j.next = add i32 %j, 1
  %more = icmp ult i32 %j.next, 16
  br i1 %more, label %product, label %summed
summed:
  {fence}
  call void @{barrier}()
  {fence}
  %k.next = add i32 %k, 1
  %again = icmp ult i32 %k.next, 16
  br i1 %again, label %tile, label %done
done:
  %c.i = add i32 %row.at, %its.column
  %c.z = zext i32 %c.i to i64
  %c.to = getelementptr float, ptr addrspace(1) %out, i64 %c.z
  store float %t.next, ptr addrspace(1) %c.to
  ret void
}}
""",
  "reduce": """  %mine = getelementptr [256 x float], ptr addrspace(3) @a, i32 0, i32 %item
  store float %x, ptr addrspace(3) %mine
  {fence}
  call void @{barrier}()
  {fence}
  br label %round
round:
  %half = phi i32 [ 128, %entry ], [ %half.next, %over ]
  %here = icmp ult i32 %item, %half
  br i1 %here, label %add, label %over
add:
  %place = add i32 %item, %half
  %other = getelementptr [256 x float], ptr addrspace(3) @a, i32 0, i32 %place
  %u = load float, ptr addrspace(3) %mine
  %v = load float, ptr addrspace(3) %other
  %sum = fadd float %u, %v
  store float %sum, ptr addrspace(3) %mine
  br label %over
over:
  {fence}
  call void @{barrier}()
  {fence}
  %half.next = lshr i32 %half, 1
  %again = icmp ugt i32 %half.next, 0
  br i1 %again, label %round, label %done
done:
  %all = load float, ptr addrspace(3) @a
  %y = fmul float %x, %all
  store float %y, ptr addrspace(1) %to
  ret void
}}
""",
  "scratch": """  %own = alloca [16 x float], align 4{private}
  br label %fill
fill:
  %k = phi i32 [ 0, %entry ], [ %k.next, %fill ]
  %cell = getelementptr [16 x float], ptr{space} %own, i32 0, i32 %k
  store volatile float %x, ptr{space} %cell
  %k.next = add i32 %k, 1
  %more = icmp ult i32 %k.next, 16
  br i1 %more, label %fill, label %loop
loop:
  %j = phi i32 [ 0, %fill ], [ %j.next, %loop ]
  %s = phi float [ %x, %fill ], [ %s.next, %loop ]
  %which = and i32 %j, 15
  %place = getelementptr [16 x float], ptr{space} %own, i32 0, i32 %which
  %v = load volatile float, ptr{space} %place
  %half = fmul float %s, 0.5
  %s.next = fadd float %half, %v
  store volatile float %s.next, ptr{space} %place
  %j.next = add i32 %j, 1
  %again = icmp ult i32 %j.next, 64
  br i1 %again, label %loop, label %done
done:
  store float %s.next, ptr addrspace(1) %to
  ret void
}}
""",
  "copies": """  %first.to = getelementptr [256 x float], ptr addrspace(3) @a, i32 0, i32 %item
  call void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3) %first.to, ptr addrspace(1) %from)
  call void @llvm.nvvm.cp.async.commit.group()
  %row = and i32 %item, 240
  br label %tile
tile:
  %k = phi i32 [ 0, %entry ], [ %k.next, %summed ]
  %s = phi float [ 0.0, %entry ], [ %t.next, %summed ]
  call void @llvm.nvvm.cp.async.wait.group(i32 0)
  call void @{barrier}()
  %k.next = add i32 %k, 1
  %odd = trunc i32 %k to i1
  %here = select i1 %odd, ptr addrspace(3) @b, ptr addrspace(3) @a
  %there = select i1 %odd, ptr addrspace(3) @a, ptr addrspace(3) @b
  %k.first = shl i32 %k.next, 8
  %k.i = add i32 %i, %k.first
  %k.row = and i32 %k.i, 65535
  %k.z = zext i32 %k.row to i64
  %k.from = getelementptr float, ptr addrspace(1) %in, i64 %k.z
  %k.to = getelementptr [256 x float], ptr addrspace(3) %there, i32 0, i32 %item
  call void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3) %k.to, ptr addrspace(1) %k.from)
  call void @llvm.nvvm.cp.async.commit.group()
  br label %sum
sum:
  %j = phi i32 [ 0, %tile ], [ %j.next, %sum ]
  %t = phi float [ %s, %tile ], [ %t.next, %sum ]
  %place = add i32 %row, %j
  %other = getelementptr [256 x float], ptr addrspace(3) %here, i32 0, i32 %place
  %v = load float, ptr addrspace(3) %other
  %t.half = fmul float %t, 0.5
  %t.next = fadd float %t.half, %v
  %j.next = add i32 %j, 1
  %more = icmp ult i32 %j.next, 16
  br i1 %more, label %sum, label %summed
summed:
  %again = icmp ult i32 %k.next, 16
  br i1 %again, label %tile, label %done
done:
  store float %t.next, ptr addrspace(1) %to
  ret void
}}
declare void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3), ptr addrspace(1))
declare void @llvm.nvvm.cp.async.commit.group()
declare void @llvm.nvvm.cp.async.wait.group(i32)
""",
  "calls": """  %mine = getelementptr [256 x float], ptr addrspace(3) @a, i32 0, i32 %item
  store float %x, ptr addrspace(3) %mine
  call void @{barrier}()
  %row = and i32 %item, 240
  %first.in = getelementptr [256 x float], ptr addrspace(3) @a, i32 0, i32 %row
  %first.at = addrspacecast ptr addrspace(3) %first.in to ptr
  br label %round
round:
  %k = phi i32 [ 0, %entry ], [ %k.next, %round ]
  %s = phi float [ %x, %entry ], [ %s.next, %round ]
  %s.next = call float @sum(ptr %first.at, float %s)
  %k.next = add i32 %k, 1
  %again = icmp ult i32 %k.next, 8
  br i1 %again, label %round, label %done
done:
  store float %s.next, ptr addrspace(1) %to
  ret void
}}
define float @sum(ptr %at, float %first) noinline {{
entry:
  br label %sum
sum:
  %j = phi i32 [ 0, %entry ], [ %j.next, %sum ]
  %t = phi float [ %first, %entry ], [ %t.next, %sum ]
  %place = getelementptr float, ptr %at, i32 %j
  %v = load float, ptr %place
  %t.half = fmul float %t, 0.5
  %t.next = fadd float %t.half, %v
  %j.next = add i32 %j, 1
  %more = icmp ult i32 %j.next, 16
  br i1 %more, label %sum, label %done
done:
  ret float %t.next
}}
"""}
_WORDS: Final = {
  "amdgcn-amd-amdhsa": {
    "group": "llvm.amdgcn.workgroup.id.x", "item": "llvm.amdgcn.workitem.id.x", "barrier": "llvm.amdgcn.s.barrier",
    "kernel": "amdgpu_kernel", "fence": 'fence syncscope("workgroup") seq_cst', "private": ", addrspace(5)",
    "space": " addrspace(5)"},
  "nvptx64-nvidia-cuda": {
    "group": "llvm.nvvm.read.ptx.sreg.ctaid.x", "item": "llvm.nvvm.read.ptx.sreg.tid.x",
    "barrier": "llvm.nvvm.barrier0", "kernel": "ptx_kernel", "fence": "", "private": "", "space": ""}}


def binary(name: str, cpu: str) -> bytes:
  """A kernel for gfx1100 or sm_80: a code object, or PTX."""
  if name in PIPELINES: return PIPELINES[name]
  triple = "amdgcn-amd-amdhsa" if cpu.startswith("gfx") else "nvptx64-nvidia-cuda"
  llvm.initialize_all_targets()
  llvm.initialize_all_asmprinters()
  text = (_HEAD + BODIES[name]).format(name=name, **_WORDS[triple])
  module = llvm.parse_assembly(f'target triple = "{triple}"\n{text}')
  machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=2)
  return bytes(machine.emit_object(module)) if cpu.startswith("gfx") else machine.emit_assembly(module).encode()


@contextmanager
def _compiled() -> Iterator[None]:
  before = os.environ.get("EMU")
  os.environ["EMU"] = "jit"
  try: yield
  finally:
    if before is None: del os.environ["EMU"]
    else: os.environ["EMU"] = before


def launches(name: str, cpu: str, check: bool) -> Seconds:
  """Warm launches on device EMU with compiled code, under all checks or none."""
  from tinyhw import Device, launch
  code, x = binary(name, cpu), np.random.default_rng(0).random(N, np.float32)
  more: dict[str, Any] = {"check": "report"} if check else {}
  Device.close()
  with _compiled():
    def run() -> None:
      result = launch(code, name, N // 256, 256, [np.zeros(N, np.float32), x], "EMU", **more)
      if result.findings: raise Error(f"the checks found {result.findings}", where=name)
    try: return repeat(run, runs=5)
    finally: Device.close()
