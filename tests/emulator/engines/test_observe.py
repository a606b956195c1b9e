"""An observer sees every instruction that the waves execute, at its PC, and does not change the result."""
from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from tests.emulator.gpu import Gpu, compile_gpu
from tinyhw.emulator.observe import Access, Observer
from tinyhw.emulator.simt import Cohort, Group

IR = """
define amdgpu_kernel void @k(ptr addrspace(1) %a, i32 %n) {
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  br label %loop
loop:
  %i = phi i32 [ 0, %0 ], [ %next, %loop ]
  %s = phi i32 [ %x, %0 ], [ %t, %loop ]
  %t = mul i32 %s, 3
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %done
done:
  %p = getelementptr i32, ptr addrspace(1) %a, i32 %x
  store i32 %t, ptr addrspace(1) %p
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
"""


class Seen(Observer):
  def __init__(self) -> None:
    self.before_, self.after_ = Counter[int](), Counter[int]()
    self.names: Counter[str] = Counter()

  def before(self, group: Group, pc: int, instruction: Any) -> None:
    assert group.pc == pc and group.cohort.program.describe(pc) == str(instruction)
    self.before_[pc] += group.size
    self.names[instruction.mnemonic] += group.size

  def after(self, group: Group, pc: int, instruction: Any) -> None: self.after_[pc] += group.size


def test_every_instruction_is_seen_once_a_wave() -> None:
  gpu = Gpu(1 << 22)
  kernel = gpu.load(compile_gpu(IR))["k"]
  out = gpu.alloc(4 * 96)
  seen = Seen()
  stats = gpu.launch(kernel, (1, 1, 1), (96, 1, 1), [out, np.int32(5)], observer=seen)
  assert sum(seen.before_.values()) == stats.instructions and seen.before_ == seen.after_
  assert seen.names == stats.mnemonics
  assert (gpu.get(out, np.uint32, 96) == np.arange(96, dtype=np.uint32) * 3 ** 5).all()


MEMORY = """
@l = internal addrspace(3) global [64 x i32] undef
define amdgpu_kernel void @k(ptr addrspace(1) %a) {
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr i32, ptr addrspace(1) %a, i32 %x
  %v = load i32, ptr addrspace(1) %p
  %s = getelementptr [64 x i32], ptr addrspace(3) @l, i32 0, i32 %x
  store i32 %v, ptr addrspace(3) %s
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %y = sub i32 63, %x
  %r = getelementptr [64 x i32], ptr addrspace(3) @l, i32 0, i32 %y
  %w = load i32, ptr addrspace(3) %r
  %big = icmp ult i32 %x, 7
  br i1 %big, label %few, label %done
few:
  %old = atomicrmw add ptr addrspace(1) %p, i32 %w syncscope("agent") monotonic
  br label %done
done:
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.barrier()
"""


class Accesses(Observer):
  def __init__(self) -> None: self.seen: list[tuple[Any, ...]] = []

  def access(self, group: Group, pc: int, instruction: Any, access: Access) -> None:
    columns = 1 if access.segment == "scalar" else group.cohort.lanes
    assert access.addresses.shape == access.active.shape == (group.size, columns)
    assert access.addresses.dtype == np.uint64
    assert group.pc == pc and group.cohort.program.describe(pc) == str(instruction)
    self.seen.append((access.segment, access.kind, access.width, access.addresses[access.active].tolist()))

  def barrier(self, group: Group, pc: int) -> None:
    assert group.cohort.program.describe(pc) == "s_barrier"
    self.seen.append(("barrier", group.size))

  def released(self, cohort: Cohort, workgroups: Any) -> None: self.seen.append(("released", list(workgroups)))

  def ended(self, group: Group) -> None: self.seen.append(("ended", group.size))


def test_accesses_barriers_and_ends_are_seen() -> None:
  gpu = Gpu(1 << 22)
  kernel = gpu.load(compile_gpu(MEMORY))["k"]
  a = gpu.put(np.arange(64, dtype=np.uint32))
  seen = Accesses()
  gpu.launch(kernel, (2, 1, 1), (32, 1, 1), [a], observer=seen)
  assert seen.seen[0][:3] == ("scalar", "load", 8)
  lanes = [4 * k for k in range(32)]
  assert seen.seen[1:] == [
    ("global", "load", 4, [a + k for k in lanes] * 2), ("lds", "store", 4, lanes * 2),
    ("barrier", 2), ("released", [0, 1]), ("lds", "load", 4, [252 - k for k in lanes[:7]] * 2),
    ("global", "atomic", 4, [a + 4 * k for k in range(7)] * 2), ("ended", 2)]
