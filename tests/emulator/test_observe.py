"""An observer sees every instruction that the waves execute, at its PC, and does not change the result."""
from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from tests.emulator.gpu import Gpu, compile_gpu
from tinyhw.emulator.observe import Observer
from tinyhw.emulator.simt import Group

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
