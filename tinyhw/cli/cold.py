"""Kernels of about 1,000 instructions that no cache has seen: what `tinyhw bench` times the first launch of."""
from __future__ import annotations

import random
import time
from collections.abc import Iterator
from functools import cache

import numpy as np

from tinyhw.compile.render.objects import Processor, emit

TRIPLE = "amdgcn-amd-amdhsa"
STEPS = 100  # about ten instructions each


@cache
def code(seed: int, cpu: str = "gfx1100") -> bytes:
  """An object with kernel `mixed`: loads, float and integer arithmetic, branches that split waves, and stores.

  Parameters: 1024 floats in, and 1024 out; a workgroup of 256. Seeds differ in constants and in the order of steps.
  """
  return emit("\n".join(_kernel(random.Random(seed))), "mixed", Processor(TRIPLE, cpu), 2)


def _kernel(rng: random.Random) -> Iterator[str]:
  yield f"""target triple = "{TRIPLE}"
define amdgpu_kernel void @mixed(ptr addrspace(1) noalias %in, ptr addrspace(1) noalias %out) {{
start:
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %b0 = add i32 %lane, 0
  %x0 = uitofp i32 %lane to float"""
  last = "start"
  for k in range(STEPS):
    kind = ("load", "arithmetic", "integer", "branch")[rng.choices(range(4), (3, 5, 4, 1))[0]]
    x, b = f"%x{k}", f"%b{k}"
    if kind == "load":
      yield f"""  %i{k}.far = add i32 {b}, {rng.randrange(1024)}
  %i{k} = and i32 %i{k}.far, 1023
  %p{k} = getelementptr float, ptr addrspace(1) %in, i32 %i{k}
  %v{k} = load float, ptr addrspace(1) %p{k}
  %x{k + 1} = call float @llvm.fma.f32(float {x}, float {_float(rng)}, float %v{k})
  %b{k + 1} = xor i32 {b}, {rng.getrandbits(16)}"""
    elif kind == "arithmetic":
      yield f"""  %m{k} = fmul float {x}, {_float(rng)}
  %a{k} = fadd float %m{k}, {_float(rng)}
  %c{k} = fcmp olt float %a{k}, {x}
  %s{k} = select i1 %c{k}, float %m{k}, float {x}
  %f{k} = call float @llvm.floor.f32(float %s{k})
  %q{k} = fsub float %s{k}, %f{k}
  %x{k + 1} = call float @llvm.maxnum.f32(float %q{k}, float %a{k})
  %b{k + 1} = add i32 {b}, {rng.getrandbits(12)}"""
    elif kind == "integer":
      yield f"""  %m{k} = mul i32 {b}, {rng.getrandbits(20) | 1}
  %h{k} = lshr i32 %m{k}, {rng.randrange(3, 20)}
  %y{k} = xor i32 %h{k}, %m{k}
  %l{k} = shl i32 %y{k}, {rng.randrange(1, 9)}
  %o{k} = or i32 %l{k}, {rng.getrandbits(10)}
  %b{k + 1} = add i32 %o{k}, %h{k}
  %g{k} = sitofp i32 %y{k} to float
  %x{k + 1} = fadd float {x}, %g{k}"""
    else:
      yield f"""  %t{k} = and i32 {b}, {1 << rng.randrange(5)}
  %z{k} = icmp eq i32 %t{k}, 0
  br i1 %z{k}, label %then{k}, label %join{k}
then{k}:
  %w{k} = add i32 %lane, {rng.randrange(1, 4) * 256}
  %d{k} = getelementptr float, ptr addrspace(1) %out, i32 %w{k}
  store float {x}, ptr addrspace(1) %d{k}
  %r{k} = fmul float {x}, {_float(rng)}
  %j{k} = add i32 {b}, {rng.getrandbits(12)}
  br label %join{k}
join{k}:
  %x{k + 1} = phi float [ {x}, %{last} ], [ %r{k}, %then{k} ]
  %b{k + 1} = phi i32 [ {b}, %{last} ], [ %j{k}, %then{k} ]"""
      last = f"join{k}"
  yield f"""  %end = getelementptr float, ptr addrspace(1) %out, i32 %lane
  %low = and i32 %b{STEPS}, 255
  %number = uitofp i32 %low to float
  %sum = fadd float %x{STEPS}, %number
  store float %sum, ptr addrspace(1) %end
  ret void
}}
declare i32 @llvm.amdgcn.workitem.id.x()
declare float @llvm.fma.f32(float, float, float)
declare float @llvm.floor.f32(float)
declare float @llvm.maxnum.f32(float, float)"""


def _float(rng: random.Random) -> str: return f"{rng.randrange(1, 512) / 256:.10e}"


def first_launch(seed: int) -> float:
  """Seconds of the first launch of this seed's kernel in a process that has launched another, very small one."""
  from tinyhw import Tensor, launch
  (Tensor([1, 2, 3], device="AMD") + 1).tolist()
  x, out, kernel = np.ones(1024, np.float32), np.zeros(1024, np.float32), code(seed)
  start = time.perf_counter()
  launch(kernel, "mixed", (1,), (256,), [x, out], device="AMD")
  return time.perf_counter() - start
