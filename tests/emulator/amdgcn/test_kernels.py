"""Whole kernels in LLVM IR, compiled for gfx1100, against NumPy or the same IR compiled for the host."""
from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.emulator.gpu import ARCH, Gpu, Host, compile_gpu
from tests.strength import seed
from tinyhw.core.errors import DecodeError, InvalidArgument, MachineFault, PageFault, Unsupported, WatchdogExpired
from tinyhw.core.memory import Access, Region
from tinyhw.emulator.amdgcn import dispatch
from tinyhw.isa.amdgcn.asm import assemble

INTRINSICS = {
  "workitem.id.x": "i32 @llvm.amdgcn.workitem.id.x()", "workitem.id.y": "i32 @llvm.amdgcn.workitem.id.y()",
  "workitem.id.z": "i32 @llvm.amdgcn.workitem.id.z()", "workgroup.id.x": "i32 @llvm.amdgcn.workgroup.id.x()",
  "workgroup.id.y": "i32 @llvm.amdgcn.workgroup.id.y()", "workgroup.id.z": "i32 @llvm.amdgcn.workgroup.id.z()",
  "s.barrier": "void @llvm.amdgcn.s.barrier()", "s.sleep": "void @llvm.amdgcn.s.sleep(i32)",
  "readfirstlane": "i32 @llvm.amdgcn.readfirstlane.i32(i32)", "readlane": "i32 @llvm.amdgcn.readlane.i32(i32, i32)",
  "writelane": "i32 @llvm.amdgcn.writelane.i32(i32, i32, i32)", "ds.bpermute": "i32 @llvm.amdgcn.ds.bpermute(i32, i32)",
  "ds.permute": "i32 @llvm.amdgcn.ds.permute(i32, i32)", "ds.swizzle": "i32 @llvm.amdgcn.ds.swizzle(i32, i32)",
  "update.dpp": "i32 @llvm.amdgcn.update.dpp.i32(i32, i32, i32, i32, i32, i1)",
  "mov.dpp8": "i32 @llvm.amdgcn.mov.dpp8.i32(i32, i32)",
  "permlane16": "i32 @llvm.amdgcn.permlane16.i32(i32, i32, i32, i32, i1, i1)",
  "permlanex16": "i32 @llvm.amdgcn.permlanex16.i32(i32, i32, i32, i32, i1, i1)",
  "permlane64": "i32 @llvm.amdgcn.permlane64.i32(i32)",
  "ballot": "i32 @llvm.amdgcn.ballot.i32(i1)", "mbcnt.lo": "i32 @llvm.amdgcn.mbcnt.lo(i32, i32)",
}


def module(body: str, extra: str = "") -> str:
  """IR of a kernel with declarations of the AMDGPU intrinsics that it uses."""
  used = [d for n, d in INTRINSICS.items() if re.search(rf"@llvm\.amdgcn\.{re.escape(n)}\b", body)]
  return extra + "\n" + body + "\n" + "\n".join(f"declare {d}" for d in used)


def linear(lines: str, parameters: str = "ptr addrspace(1) %p, ptr addrspace(1) %o") -> str:
  """A kernel k whose work-item %i loads i32 %x from %p and stores i32 %r to %o."""
  return module(f"""
define amdgpu_kernel void @k({parameters}) #0 {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %g = getelementptr i32, ptr addrspace(1) %p, i32 %i
  %x = load i32, ptr addrspace(1) %g
{lines}
  %h = getelementptr i32, ptr addrspace(1) %o, i32 %i
  store i32 %r, ptr addrspace(1) %h
  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="1,1024" }}""")


def run_linear(ir: str, x: np.ndarray, block: int = 32, optimization: int = 3, features: str = "") -> np.ndarray:
  gpu = Gpu()
  kernel = gpu.load(compile_gpu(ir, optimization, features))["k"]
  p, o = gpu.put(x), gpu.put(x * 0)
  gpu.launch(kernel, (1, 1, 1), (block, 1, 1), [p, o])
  return gpu.get(o, x.dtype, x.size)


LANES = np.arange(100, 132, dtype=np.uint32)


@pytest.mark.parametrize("optimization", [0, 1, 2, 3])
def test_sum_through_lds_and_barriers(optimization: int) -> None:
  ir = module("""
@lds = internal addrspace(3) global [256 x float] poison
define amdgpu_kernel void @k(ptr addrspace(1) %p, ptr addrspace(1) %o) #0 {
entry:
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %w = call i32 @llvm.amdgcn.workgroup.id.x()
  %b = shl i32 %w, 8
  %n = add i32 %b, %i
  %g = getelementptr float, ptr addrspace(1) %p, i32 %n
  %x = load float, ptr addrspace(1) %g
  %l = getelementptr float, ptr addrspace(3) @lds, i32 %i
  store float %x, ptr addrspace(3) %l
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  br label %loop
loop:
  %s = phi i32 [128, %entry], [%s2, %next]
  %c = icmp ult i32 %i, %s
  br i1 %c, label %add, label %next
add:
  %j = add i32 %i, %s
  %m = getelementptr float, ptr addrspace(3) @lds, i32 %j
  %y = load float, ptr addrspace(3) %m
  %z = load float, ptr addrspace(3) %l
  %t = fadd float %y, %z
  store float %t, ptr addrspace(3) %l
  br label %next
next:
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %s2 = lshr i32 %s, 1
  %e = icmp eq i32 %s2, 0
  br i1 %e, label %end, label %loop
end:
  %first = icmp eq i32 %i, 0
  br i1 %first, label %write, label %out
write:
  %v = load float, ptr addrspace(3) @lds
  %h = getelementptr float, ptr addrspace(1) %o, i32 %w
  store float %v, ptr addrspace(1) %h
  br label %out
out:
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="256,256" }""")
  x = np.random.default_rng(seed(0)).standard_normal(256 * 70).astype(np.float32)
  gpu = Gpu()
  kernel = gpu.load(compile_gpu(ir, optimization))["k"]
  p, o = gpu.put(x), gpu.put(np.zeros(70, np.float32))
  gpu.launch(kernel, (70, 1, 1), (256, 1, 1), [p, o])
  want = x.reshape(70, 256)
  while want.shape[1] > 1: want = want[:, :want.shape[1] // 2] + want[:, want.shape[1] // 2:]
  assert np.array_equal(gpu.get(o, np.float32, 70), want[:, 0])


LOOP = """
  br label %loop
loop:
  %n = phi i32 [%x, %entry], [%n2, %step]
  %count = phi i32 [0, %entry], [%count2, %step]
  %done = icmp ule i32 %n, 1
  br i1 %done, label %end, label %step
step:
  %odd = and i32 %n, 1
  %isodd = icmp eq i32 %odd, 1
  %three = mul i32 %n, 3
  %up = add i32 %three, 1
  %down = lshr i32 %n, 1
  %n2 = select i1 %isodd, i32 %up, i32 %down
  %count2 = add i32 %count, 1
  br label %loop
end:"""


@pytest.mark.parametrize("optimization", [0, 2])
@pytest.mark.parametrize("features", ["", "+wavefrontsize64,-wavefrontsize32"])
def test_loop_with_another_count_in_each_lane(optimization: int, features: str) -> None:
  body = f"""
define amdgpu_kernel void @k(ptr addrspace(1) %p, ptr addrspace(1) %o) {{
entry:
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %w = call i32 @llvm.amdgcn.workgroup.id.x()
  %b = mul i32 %w, 96
  %at = add i32 %b, %i
  %g = getelementptr i32, ptr addrspace(1) %p, i32 %at
  %x = load i32, ptr addrspace(1) %g
{LOOP}
  %h = getelementptr i32, ptr addrspace(1) %o, i32 %at
  store i32 %count, ptr addrspace(1) %h
  ret void
}}"""
  x = np.random.default_rng(seed(1)).integers(1, 1000, 96 * 20).astype(np.uint32)
  gpu = Gpu()
  kernel = gpu.load(compile_gpu(module(body), optimization, features))["k"]
  p, o = gpu.put(x), gpu.put(x * 0)
  gpu.launch(kernel, (20, 1, 1), (96, 1, 1), [p, o])

  def steps(n: int) -> int:
    count = 0
    while n > 1: n, count = (3 * n + 1 if n & 1 else n // 2), count + 1
    return count
  assert np.array_equal(gpu.get(o, np.uint32, x.size), [steps(int(n)) for n in x])


@pytest.mark.parametrize("optimization", [0, 3])
def test_private_arrays_calls_and_switches(optimization: int) -> None:
  """Scratch memory with dynamic indices, calls through SGPR pairs, a jump by value; against the host's code."""
  function = """
define hidden i32 @pick(i32 %k, i32 %x) noinline {
  switch i32 %k, label %other [ i32 0, label %a
    i32 1, label %b
    i32 2, label %c
    i32 3, label %d
    i32 4, label %e ]
a:
  %ra = add i32 %x, 17
  ret i32 %ra
b:
  %rb = mul i32 %x, 3
  ret i32 %rb
c:
  %rc = xor i32 %x, 12345
  ret i32 %rc
d:
  %rd = shl i32 %x, 3
  ret i32 %rd
e:
  %re = call i32 @pick(i32 1, i32 %x)
  ret i32 %re
other:
  %ro = sub i32 0, %x
  ret i32 %ro
}
"""
  def work(space: str) -> str:
    return f"""
  %array = alloca [16 x i32]{space}
  br label %fill
fill:
  %f = phi i32 [0, %entry], [%f2, %fill]
  %q = getelementptr [16 x i32], ptr{space.replace(", ", " ")} %array, i32 0, i32 %f
  %k = urem i32 %f, 6
  %y = add i32 %x, %f
  %v = call i32 @pick(i32 %k, i32 %y)
  store i32 %v, ptr{space.replace(", ", " ")} %q
  %f2 = add i32 %f, 1
  %full = icmp eq i32 %f2, 16
  br i1 %full, label %read, label %fill
read:
  %at = and i32 %x, 15
  %s = getelementptr [16 x i32], ptr{space.replace(", ", " ")} %array, i32 0, i32 %at
  %r = load i32, ptr{space.replace(", ", " ")} %s
"""
  gpu_ir = module(f"""{function}
define amdgpu_kernel void @k(ptr addrspace(1) %p, ptr addrspace(1) %o) {{
entry:
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %w = call i32 @llvm.amdgcn.workgroup.id.x()
  %b = mul i32 %w, 64
  %n = add i32 %b, %i
  %g = getelementptr i32, ptr addrspace(1) %p, i32 %n
  %x = load i32, ptr addrspace(1) %g
{work(", addrspace(5)")}
  %h = getelementptr i32, ptr addrspace(1) %o, i32 %n
  store i32 %r, ptr addrspace(1) %h
  ret void
}}""", 'target datalayout = "A5"')
  host_ir = f"""{function}
define void @one(ptr %p, ptr %o) {{
entry:
  %x = load i32, ptr %p
{work("")}
  store i32 %r, ptr %o
  ret void
}}
define void @k(ptr %p, ptr %o, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i2, %loop]
  %g = getelementptr i32, ptr %p, i64 %i
  %h = getelementptr i32, ptr %o, i64 %i
  call void @one(ptr %g, ptr %h)
  %i2 = add i64 %i, 1
  %c = icmp slt i64 %i2, %n
  br i1 %c, label %loop, label %end
end:
  ret void
}}"""
  x = np.random.default_rng(seed(2)).integers(0, 1 << 32, 640, dtype=np.uint32)
  want = np.zeros_like(x)
  Host(host_ir).call("k", x, want, count=x.size)
  gpu = Gpu()
  kernel = gpu.load(compile_gpu(gpu_ir, optimization))["k"]
  p, o = gpu.put(x), gpu.put(x * 0)
  gpu.launch(kernel, (10, 1, 1), (64, 1, 1), [p, o])
  assert np.array_equal(gpu.get(o, np.uint32, x.size), want)


ATOMICS = [("add", "i32", np.add), ("sub", "i32", np.subtract), ("and", "i32", np.bitwise_and),
           ("or", "i32", np.bitwise_or), ("xor", "i32", np.bitwise_xor), ("umax", "i32", np.maximum),
           ("umin", "i32", np.minimum), ("add", "i64", np.add), ("umax", "i64", np.maximum),
           ("xor", "i64", np.bitwise_xor), ("fadd", "float", np.add)]


@pytest.mark.parametrize("space", [1, 3])
@pytest.mark.parametrize(("operation", "kind", "ufunc"), ATOMICS, ids=lambda v: v if isinstance(v, str) else "")
def test_atomics_with_return_are_serial(operation: str, kind: str, ufunc: np.ufunc, space: int) -> None:
  """Four cells, 64 lanes: each lane must see the value that the lanes before it left."""
  cells = "@lds" if space == 3 else "%c"
  lds = f"@lds = internal addrspace(3) global [4 x {kind}] poison" if space == 3 else ""
  body = f"""{lds}
define amdgpu_kernel void @k(ptr addrspace(1) %p, ptr addrspace(1) %o, ptr addrspace(1) %c) #0 {{
entry:
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %g = getelementptr {kind}, ptr addrspace(1) %p, i32 %i
  %x = load {kind}, ptr addrspace(1) %g
  %j = and i32 %i, 3
  %m = getelementptr {kind}, ptr addrspace({space}) {cells}, i32 %j
  %s = getelementptr {kind}, ptr addrspace(1) %c, i32 %j
  %first = icmp ult i32 %i, 4
  br i1 %first, label %init, label %go
init:
  %v0 = load {kind}, ptr addrspace(1) %s
  store {kind} %v0, ptr addrspace({space}) %m
  br label %go
go:
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  %r = atomicrmw {operation} ptr addrspace({space}) %m, {kind} %x syncscope("agent-one-as") monotonic
  %h = getelementptr {kind}, ptr addrspace(1) %o, i32 %i
  store {kind} %r, ptr addrspace(1) %h
  call void @llvm.amdgcn.s.barrier()
  br i1 %first, label %copy, label %end
copy:
  %v1 = load {kind}, ptr addrspace({space}) %m
  store {kind} %v1, ptr addrspace(1) %s
  br label %end
end:
  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="64,64"
  "amdgpu-unsafe-fp-atomics"="true" }}"""
  dtype = {"i32": np.uint32, "i64": np.uint64, "float": np.float32}[kind]
  rng = np.random.default_rng(seed(3))
  x = (rng.standard_normal(64) if kind == "float" else rng.integers(0, 1 << 31, 64)).astype(dtype)
  start = (rng.standard_normal(4) if kind == "float" else rng.integers(0, 1 << 31, 4)).astype(dtype)
  gpu = Gpu()
  kernel = gpu.load(compile_gpu(module(body)))["k"]
  p, o, c = gpu.put(x), gpu.put(x * 0), gpu.put(start)
  gpu.launch(kernel, (1, 1, 1), (64, 1, 1), [p, o, c])
  state, want = start.copy(), np.zeros_like(x)
  for i in range(64):
    want[i] = state[i & 3]
    state[i & 3] = ufunc(state[i & 3], x[i])
  assert np.array_equal(gpu.get(c, dtype, 4), state)
  assert np.array_equal(gpu.get(o, dtype, 64), want)


def test_compare_and_swap_takes_a_lock() -> None:
  """Every lane takes a lock in turn and adds to a plain variable; right only when they exclude each other."""
  body = """
define amdgpu_kernel void @k(ptr addrspace(1) %lock, ptr addrspace(1) %sum) {
entry:
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  br label %try
try:
  %done = phi i1 [false, %entry], [%got, %next]
  %pair = cmpxchg ptr addrspace(1) %lock, i32 0, i32 1 syncscope("agent") acquire monotonic
  %got = extractvalue {i32, i1} %pair, 1
  br i1 %got, label %inside, label %next
inside:
  %v = load volatile i32, ptr addrspace(1) %sum
  %v2 = add i32 %v, %i
  store volatile i32 %v2, ptr addrspace(1) %sum
  store atomic i32 0, ptr addrspace(1) %lock syncscope("agent") release, align 4
  br label %next
next:
  br i1 %got, label %end, label %try
end:
  ret void
}"""
  gpu = Gpu()
  kernel = gpu.load(compile_gpu(module(body), 1))["k"]
  lock, total = gpu.put(np.zeros(1, np.uint32)), gpu.put(np.zeros(1, np.uint32))
  gpu.launch(kernel, (3, 1, 1), (40, 1, 1), [lock, total])
  assert gpu.get(total, np.uint32, 1)[0] == 3 * sum(range(40))


def test_workgroups_that_wait_for_each_other_make_progress() -> None:
  """A barrier of the whole grid: the first workgroup waits for the last, which starts much later."""
  body = """
define amdgpu_kernel void @k(ptr addrspace(1) %count, ptr addrspace(1) %o, i32 %total) {
entry:
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %w = call i32 @llvm.amdgcn.workgroup.id.x()
  %first = icmp eq i32 %i, 0
  br i1 %first, label %arrive, label %done
arrive:
  %old = atomicrmw add ptr addrspace(1) %count, i32 1 syncscope("agent") monotonic
  br label %wait
wait:
  %n = load atomic i32, ptr addrspace(1) %count syncscope("agent") monotonic, align 4
  %all = icmp eq i32 %n, %total
  br i1 %all, label %write, label %wait
write:
  %h = getelementptr i32, ptr addrspace(1) %o, i32 %w
  store i32 %n, ptr addrspace(1) %h
  br label %done
done:
  ret void
}"""
  gpu = Gpu()
  kernel = gpu.load(compile_gpu(module(body), 2))["k"]
  groups = 600
  count, o = gpu.put(np.zeros(1, np.uint32)), gpu.put(np.zeros(groups, np.uint32))
  gpu.launch(kernel, (groups, 1, 1), (64, 1, 1), [count, o, np.uint32(groups)])
  assert (gpu.get(o, np.uint32, groups) == groups).all()


CROSS_LANE = [
  ("  %r = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %x)", LANES * 0 + LANES[0]),
  ("  %r = call i32 @llvm.amdgcn.readlane.i32(i32 %x, i32 7)", LANES * 0 + LANES[7]),
  ("  %r = call i32 @llvm.amdgcn.writelane.i32(i32 5, i32 9, i32 %x)", np.where(np.arange(32) == 9, 5, LANES)),
  ("  %a = shl i32 %i, 3\n  %r = call i32 @llvm.amdgcn.ds.bpermute(i32 %a, i32 %x)", LANES[np.arange(32) * 2 % 32]),
  ("  %n = sub i32 31, %i\n  %a = shl i32 %n, 2\n  %r = call i32 @llvm.amdgcn.ds.permute(i32 %a, i32 %x)", LANES[::-1]),
  ("  %r = call i32 @llvm.amdgcn.ds.swizzle(i32 %x, i32 1055)", LANES[np.arange(32) ^ 1]),
  ("  %r = call i32 @llvm.amdgcn.ds.swizzle(i32 %x, i32 32795)",
   LANES[np.arange(32) // 4 * 4 + (27 >> 2 * (np.arange(32) % 4) & 3)]),
  # DPP: row_shr:1 keeps the old value where there is no source; with bound_ctrl 0 comes in
  ("  %r = call i32 @llvm.amdgcn.update.dpp.i32(i32 %i, i32 %x, i32 273, i32 15, i32 15, i1 false)",
   np.where(np.arange(32) % 16 == 0, np.arange(32), LANES - 1)),
  ("  %r = call i32 @llvm.amdgcn.update.dpp.i32(i32 %i, i32 %x, i32 273, i32 15, i32 15, i1 true)",
   np.where(np.arange(32) % 16 == 0, 0, LANES - 1)),
  ("  %r = call i32 @llvm.amdgcn.update.dpp.i32(i32 %i, i32 %x, i32 257, i32 1, i32 3, i1 true)",
   np.where(np.arange(32) < 8, LANES + 1, np.arange(32))),
  ("  %r = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %x, i32 289, i32 15, i32 15, i1 false)",
   LANES[np.arange(32) // 16 * 16 + (np.arange(32) % 16 - 1) % 16]),
  ("  %r = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %x, i32 320, i32 15, i32 15, i1 false)",
   LANES[np.arange(32) ^ 15]),
  ("  %r = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %x, i32 321, i32 15, i32 15, i1 false)",
   LANES[np.arange(32) ^ 7]),
  ("  %r = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %x, i32 339, i32 15, i32 15, i1 false)",
   LANES[np.arange(32) // 16 * 16 + 3]),
  ("  %r = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %x, i32 357, i32 15, i32 15, i1 false)",
   LANES[np.arange(32) ^ 5]),
  ("  %r = call i32 @llvm.amdgcn.mov.dpp8.i32(i32 %x, i32 342391)",
   LANES[np.arange(32) // 8 * 8 + (342391 >> 3 * (np.arange(32) % 8) & 7)]),
  ("  %r = call i32 @llvm.amdgcn.permlane16.i32(i32 %x, i32 %x, i32 1985229328, i32 -19088744, i1 false, i1 false)",
   LANES[np.arange(32) // 16 * 16 + (0xFEDCBA9876543210 >> 4 * (np.arange(32) % 16).astype(object) & 15).astype(int)]),
  ("  %r = call i32 @llvm.amdgcn.permlanex16.i32(i32 %x, i32 %x, i32 0, i32 0, i1 false, i1 false)",
   LANES[(np.arange(32) // 16 ^ 1) * 16]),
  ("  %c = icmp ugt i32 %i, 20\n  %r = call i32 @llvm.amdgcn.ballot.i32(i1 %c)", LANES * 0 + 0xFFE00000),
  ("  %r = call i32 @llvm.amdgcn.mbcnt.lo(i32 -252645136, i32 3)",
   3 + np.array([bin(0xF0F0F0F0 & (1 << k) - 1).count("1") for k in range(32)])),
]


@pytest.mark.parametrize(("lines", "want"), CROSS_LANE,
                         ids=lambda v: v.split("amdgcn.")[-1][:24] if isinstance(v, str) else "")
def test_lanes_exchange_values(lines: str, want: np.ndarray) -> None:
  assert np.array_equal(run_linear(linear(lines), LANES), want.astype(np.uint32))


def test_dpp_folds_into_arithmetic() -> None:
  """A sum over the rows of 16 lanes, as reductions do it: the additions carry the DPP control."""
  steps, last = [], "%x"
  for k, control in enumerate((0xB1, 0x4E, 0x141, 0x140)):
    call = f"call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 {last}, i32 {control}, i32 15, i32 15, i1 true)"
    steps.append(f"  %d{k} = {call}\n  %s{k} = add i32 {last}, %d{k}")
    last = f"%s{k}"
  ir = linear("\n".join(steps) + f"\n  %r = add i32 {last}, 0")
  assert np.array_equal(run_linear(ir, LANES), LANES.reshape(2, 16).sum(1).repeat(16))


def test_work_item_and_workgroup_ids() -> None:
  body = """
define amdgpu_kernel void @k(ptr addrspace(1) %o) #0 {
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %y = call i32 @llvm.amdgcn.workitem.id.y()
  %z = call i32 @llvm.amdgcn.workitem.id.z()
  %a = call i32 @llvm.amdgcn.workgroup.id.x()
  %b = call i32 @llvm.amdgcn.workgroup.id.y()
  %c = call i32 @llvm.amdgcn.workgroup.id.z()
  %n1 = mul i32 %c, 3
  %n2 = add i32 %n1, %b
  %n3 = mul i32 %n2, 2
  %n4 = add i32 %n3, %a
  %n5 = mul i32 %n4, 3
  %n6 = add i32 %n5, %z
  %n7 = mul i32 %n6, 4
  %n8 = add i32 %n7, %y
  %n9 = mul i32 %n8, 5
  %n = add i32 %n9, %x
  %g = getelementptr i32, ptr addrspace(1) %o, i32 %n
  store i32 %n, ptr addrspace(1) %g
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="60,60" }"""
  gpu = Gpu()
  kernel = gpu.load(compile_gpu(module(body)))["k"]
  o = gpu.put(np.full(24 * 60, 0xFFFFFFFF, np.uint32))
  gpu.launch(kernel, (2, 3, 4), (5, 4, 3), [o])
  assert np.array_equal(gpu.get(o, np.uint32, 24 * 60), np.arange(24 * 60))


# ---- faults

def store_kernel() -> str: return linear("  %r = add i32 %x, 1")


def test_a_read_outside_names_pc_instruction_and_lane() -> None:
  gpu = Gpu()
  kernel = gpu.load(compile_gpu(store_kernel()))["k"]
  region = Region("end", 4096)
  gpu.space.map(0x2_0000_0000, 4096, region)
  o = gpu.put(np.zeros(64, np.uint32))
  with pytest.raises(PageFault) as caught:
    gpu.launch(kernel, (1, 1, 1), (64, 1, 1), [0x2_0000_0000 + 4096 - 4 * 40, o])
  fault = caught.value
  lanes = 32 if kernel.properties >> 10 & 1 else 64
  assert (fault.address, fault.access, fault.lane, fault.wave) == (0x2_0000_1000, "read", 40 % lanes, 40 // lanes)
  assert fault.instruction is not None and fault.instruction.startswith(("global_load_b32", "global_load_dword "))
  assert fault.pc is not None and kernel.entry < fault.pc < kernel.entry + 64


def test_a_write_to_read_only_memory_stores_nothing() -> None:
  gpu = Gpu()
  kernel = gpu.load(compile_gpu(store_kernel()))["k"]
  region = Region("constants", 4096)
  gpu.space.map(0x2_0000_0000, 4096, region, access=Access.READ)
  p = gpu.put(np.ones(32, np.uint32))
  with pytest.raises(PageFault, match="no permission") as caught:
    gpu.launch(kernel, (1, 1, 1), (32, 1, 1), [p, 0x2_0000_0000])
  assert caught.value.access == "write" and caught.value.lane == 0
  assert not region.u8.any()


def test_an_endless_loop_meets_the_watchdog() -> None:
  body = "define amdgpu_kernel void @k(ptr addrspace(1) %p) {\nentry:\n  br label %l\nl:\n" \
         "  store volatile i32 1, ptr addrspace(1) %p\n  br label %l\n}"
  gpu = Gpu()
  kernel = gpu.load(compile_gpu(body))["k"]
  p = gpu.put(np.zeros(1, np.uint32))
  with pytest.raises(WatchdogExpired) as caught: gpu.launch(kernel, (1, 1, 1), (32, 1, 1), [p], watchdog=10_000)
  assert caught.value.pc is not None and caught.value.instruction


def test_code_that_is_no_code() -> None:
  gpu = Gpu()
  kernel = gpu.load(compile_gpu(store_kernel()))["k"]
  p = gpu.put(np.zeros(32, np.uint32))
  gpu.space.write(kernel.entry, b"\xff" * 16)
  with pytest.raises(DecodeError, match="no gfx11 instruction"): gpu.launch(kernel, (1, 1, 1), (32, 1, 1), [p, p])


def test_an_instruction_without_meaning_is_named() -> None:
  gpu = Gpu()
  kernel = gpu.load(compile_gpu(store_kernel()))["k"]
  p = gpu.put(np.zeros(32, np.uint32))
  gpu.space.write(kernel.entry, bytes.fromhex("024a80be"))
  with pytest.raises(Unsupported, match="s_rfe_b64") as caught:
    gpu.launch(kernel, (1, 1, 1), (32, 1, 1), [p, p])
  assert hex(kernel.entry) in str(caught.value) and "024a80be" in str(caught.value)


def test_empty_masks_as_operands() -> None:
  """src_vccz and src_execz are 1 where VCC and EXEC are 0; what belongs to pixel shaders is refused."""
  gpu = Gpu()
  kernel = gpu.load(compile_gpu(store_kernel()))["k"]
  p = gpu.put(np.full(64, 7, np.uint32))
  program = f"""
    s_mov_b32 vcc_lo, 0
    v_mov_b32_e32 v0, {p & 0xFFFFFFFF:#x}
    v_mov_b32_e32 v1, {p >> 32:#x}
    v_mov_b32_e32 v2, src_vccz
    v_mov_b32_e32 v3, src_execz
    s_mov_b32 vcc_lo, 4
    v_mov_b32_e32 v4, src_vccz
    global_store_b96 v[0:1], v[2:4], off
    s_endpgm"""
  gpu.space.write(kernel.entry, b"".join(assemble(line) for line in program.strip().splitlines()))
  gpu.launch(kernel, (1, 1, 1), (32, 1, 1), [p, p])
  assert gpu.get(p, np.uint32, 4).tolist() == [1, 0, 0, 7]
  gpu = Gpu()
  kernel = gpu.load(compile_gpu(store_kernel()))["k"]
  gpu.space.write(kernel.entry, assemble("s_mov_b32 s0, src_pops_exiting_wave_id"))
  with pytest.raises(Unsupported, match="src_pops_exiting_wave_id"):
    gpu.launch(kernel, (1, 1, 1), (32, 1, 1), [p, p])


def test_a_trap_stops_the_program() -> None:
  gpu = Gpu()
  body = "define amdgpu_kernel void @k(ptr addrspace(1) %p) {\n  store volatile i32 1, ptr addrspace(1) %p\n" \
         "  call void @llvm.trap()\n  ret void\n}\ndeclare void @llvm.trap()"
  kernel = gpu.load(compile_gpu(body, 0))["k"]
  with pytest.raises(MachineFault, match="stopped itself") as caught:
    gpu.launch(kernel, (1, 1, 1), (32, 1, 1), [gpu.alloc(64)])
  assert caught.value.pc is not None


def test_changed_code_is_decoded_again() -> None:
  gpu = Gpu()
  x = np.arange(32, dtype=np.uint32)
  p, o = gpu.put(x), gpu.put(x * 0)
  one = gpu.load(compile_gpu(linear("  %r = add i32 %x, 1")))["k"]
  two = gpu.load(compile_gpu(linear("  %r = add i32 %x, 2")))["k"]
  gpu.launch(one, (1, 1, 1), (32, 1, 1), [p, o])
  gpu.space.write(one.entry, gpu.space.read(two.entry, 256))
  gpu.launch(one, (1, 1, 1), (32, 1, 1), [p, o])
  assert np.array_equal(gpu.get(o, np.uint32, 32), x + 2)


def test_pc_outside_code_and_limits() -> None:
  gpu = Gpu()
  kernel = gpu.load(compile_gpu(store_kernel()))["k"]
  p = gpu.put(np.zeros(32, np.uint32))
  gpu.launch(kernel, (1, 1, 1), (32, 1, 1), [p, p])
  assert gpu.last is not None
  with pytest.raises(PageFault, match="execute"):
    dispatch(gpu.space, ARCH, replace(gpu.last, entry_pc=0x9000_0000_0000))
  with pytest.raises(InvalidArgument, match="work-items"):
    dispatch(gpu.space, ARCH, replace(gpu.last, block=(1025, 1, 1)))
  with pytest.raises(InvalidArgument, match="LDS"): dispatch(gpu.space, ARCH, replace(gpu.last, lds_size=70000))
  assert dispatch(gpu.space, ARCH, replace(gpu.last, grid=(0, 1, 1))).waves == 0


def test_scratch_without_memory_is_refused() -> None:
  ir = module("""
define amdgpu_kernel void @k(ptr addrspace(1) %o, i32 %n) {
  %a = alloca [4096 x i32], addrspace(5)
  %q = getelementptr i32, ptr addrspace(5) %a, i32 %n
  store volatile i32 1, ptr addrspace(5) %q
  ret void
}""", 'target datalayout = "A5"')
  gpu = Gpu()
  kernel = gpu.load(compile_gpu(ir))["k"]
  with pytest.raises(MachineFault, match="past the"):
    gpu.launch(kernel, (1, 1, 1), (32, 1, 1), [gpu.alloc(64), np.uint32(1 << 20)])
