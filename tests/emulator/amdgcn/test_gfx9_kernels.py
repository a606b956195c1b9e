"""The whole kernels of the other tests, compiled for gfx942."""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.emulator.amdgcn.test_kernels import (  # noqa: F401  (collected here, and run under `gfx942`)
  module,
  test_a_read_outside_names_pc_instruction_and_lane,
  test_a_trap_stops_the_program,
  test_a_write_to_read_only_memory_stores_nothing,
  test_an_endless_loop_meets_the_watchdog,
  test_atomics_with_return_are_serial,
  test_compare_and_swap_takes_a_lock,
  test_dpp_folds_into_arithmetic,
  test_loop_with_another_count_in_each_lane,
  test_private_arrays_calls_and_switches,
  test_sum_through_lds_and_barriers,
  test_work_item_and_workgroup_ids,
  test_workgroups_that_wait_for_each_other_make_progress,
)
from tests.emulator.gpu import Gpu, compile_gpu, generation


@pytest.fixture(autouse=True)
def gfx942() -> Iterator[None]:
  """What names no GPU means gfx942."""
  with generation("gfx942"): yield


@pytest.mark.parametrize(("count", "attributes"), [
  (120, ""), (330, ""), (330, '"amdgpu-waves-per-eu"="8,8"')])
def test_more_values_than_registers(count: int, attributes: str) -> None:
  """Values alive together fill vector registers, then accumulation registers, then scratch memory."""
  loads = "\n".join(f"  %g{k} = getelementptr i32, ptr addrspace(1) %q, i32 {64 * k}\n"
                    f"  %v{k} = load volatile i32, ptr addrspace(1) %g{k}" for k in range(count))
  sums, last = [], "0"
  for k in reversed(range(count)):  # in the opposite order, so that each value lives until its turn
    sums.append(f"  %m{k} = mul i32 {last}, 33\n  %s{k} = xor i32 %m{k}, %v{k}")
    last = f"%s{k}"
  ir = module(f"""
define amdgpu_kernel void @k(ptr addrspace(1) %p, ptr addrspace(1) %o) #0 {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %q = getelementptr i32, ptr addrspace(1) %p, i32 %i
{loads}
  call void @llvm.amdgcn.s.barrier()
{chr(10).join(sums)}
  %go = getelementptr i32, ptr addrspace(1) %o, i32 %i
  store i32 {last}, ptr addrspace(1) %go
  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="64,128" {attributes} }}""")
  gpu = Gpu()
  kernel = gpu.load(compile_gpu(ir))["k"]
  x = np.random.default_rng(count).integers(0, 1 << 32, (count + 1) * 64, dtype=np.uint32)
  o = gpu.put(np.zeros(128, np.uint32))
  gpu.launch(kernel, (1, 1, 1), (128, 1, 1), [gpu.put(x), o])
  want = np.zeros(128, np.uint32)
  for k in reversed(range(count)): want = want * np.uint32(33) ^ x[64 * k:64 * k + 128]
  assert np.array_equal(gpu.get(o, np.uint32, 128), want)
  registers, first = 8 * ((kernel.rsrc1 & 63) + 1), 4 * (kernel.rsrc3 & 63) + 4
  if count == 120: assert not kernel.private
  elif attributes: assert kernel.private
  else: assert registers > first  # accumulation registers hold some


@pytest.mark.parametrize("waves", [1, 2, 5, 16])
def test_reduction_in_lds_over_waves_of_64(waves: int) -> None:
  """A tree over the work-items of a group, in LDS, with a barrier at each level."""
  size = 64 * waves
  ir = module("""
@lds = internal addrspace(3) global [2048 x i32] poison
define amdgpu_kernel void @k(ptr addrspace(1) %p, ptr addrspace(1) %o, i32 %n) #0 {
entry:
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %w = call i32 @llvm.amdgcn.workgroup.id.x()
  %first = mul i32 %w, %n
  %at = add i32 %first, %i
  %g = getelementptr i32, ptr addrspace(1) %p, i32 %at
  %x = load i32, ptr addrspace(1) %g
  %l = getelementptr i32, ptr addrspace(3) @lds, i32 %i
  store i32 %x, ptr addrspace(3) %l
  br label %loop
loop:
  %s = phi i32 [ 1024, %entry ], [ %half, %next ]
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %j = add i32 %i, %s
  %low = icmp ult i32 %i, %s
  %inside = icmp ult i32 %j, %n
  %both = and i1 %low, %inside
  br i1 %both, label %add, label %next
add:
  %m = getelementptr i32, ptr addrspace(3) @lds, i32 %j
  %y = load i32, ptr addrspace(3) %m
  %z = load i32, ptr addrspace(3) %l
  %t = add i32 %y, %z
  store i32 %t, ptr addrspace(3) %l
  br label %next
next:
  %half = lshr i32 %s, 1
  %more = icmp ugt i32 %half, 0
  br i1 %more, label %loop, label %done
done:
  %zero = icmp eq i32 %i, 0
  br i1 %zero, label %write, label %end
write:
  %r = load i32, ptr addrspace(3) %l
  %go = getelementptr i32, ptr addrspace(1) %o, i32 %w
  store i32 %r, ptr addrspace(1) %go
  br label %end
end:
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="1,1024" }""")
  gpu = Gpu()
  kernel = gpu.load(compile_gpu(ir))["k"]
  x = np.random.default_rng(waves).integers(0, 1 << 20, 3 * size, dtype=np.uint32)
  o = gpu.put(np.zeros(3, np.uint32))
  gpu.launch(kernel, (3, 1, 1), (size, 1, 1), [gpu.put(x), o, np.uint32(size)])
  assert np.array_equal(gpu.get(o, np.uint32, 3), x.reshape(3, size).sum(axis=1))
