"""Loads and stores whose bytes lie in two mappings, in every generation and engine, against the bytes themselves."""
from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.emulator.gpu import Gpu, compile_gpu
from tests.strength import seed
from tinyhw.core.memory import PAGE, Region

EDGE = 0x5_0000_0000 + PAGE
TYPES = {"i16": (2, 1), "i32": (4, 1), "i64": (8, 1), "<2 x i32>": (8, 4), "<3 x i32>": (12, 4), "<4 x i32>": (16, 4)}
LANES = 32
KERNEL = """
define amdgpu_kernel void @{name}(ptr addrspace(1) %edge, ptr addrspace(1) %out, ptr addrspace(1) %in) #0 {{
  %id = call i32 @llvm.amdgcn.workitem.id.x()
  %at = mul i32 %id, {step}
  %from = sub i32 {middle}, %at
  %p = getelementptr i8, ptr addrspace(1) %edge, i32 %from
  %new = getelementptr [16 x i8], ptr addrspace(1) %in, i32 %id
  %old = getelementptr [16 x i8], ptr addrspace(1) %out, i32 %id
  %x = load {t}, ptr addrspace(1) {source}
  store {t} %x, ptr addrspace(1) {target}
  ret void
}}
"""
FOOT = """
declare i32 @llvm.amdgcn.workitem.id.x()
attributes #0 = { "amdgpu-flat-work-group-size"="1,32" }
"""


def places(width: int, align: int) -> list[int]:
  """Where each lane's bytes begin, from the edge: from above it downwards."""
  return [align * (LANES // 4 - k) for k in range(LANES)]


@cache
def kernels(cpu: str) -> bytes:
  text = ""
  for n, (t, (width, align)) in enumerate(TYPES.items()):
    far, near = f"%p, align {align}", ("%old, align 16", "%new, align 16")
    for what, source, target in (("load", far, near[0]), ("store", near[1], far)):
      text += KERNEL.format(name=f"{what}{n}", step=align, middle=places(width, align)[0], t=t, source=source,
                            target=target)
  return compile_gpu(text + FOOT, cpu=cpu)


@pytest.mark.parametrize("engine", ["ref", "jit"])
@pytest.mark.parametrize("cpu", ["gfx1100", "gfx1201", "gfx942"])
def test_bytes_of_two_mappings(cpu: str, engine: str) -> None:
  """Where bytes meet, the higher lane's win."""
  gpu = Gpu(1 << 20, cpu)
  gpu.engine = engine
  for k, at in enumerate((EDGE - PAGE, EDGE)): gpu.space.map(at, PAGE, Region(f"part {k}", PAGE))
  loaded = gpu.load(kernels(cpu))
  rng = np.random.default_rng(seed(1))
  given = rng.integers(0, 256, (LANES, 16), dtype=np.uint8)
  new = gpu.put(given)
  for n, (t, (width, align)) in enumerate(TYPES.items()):
    memory = rng.integers(0, 256, 2 * PAGE, dtype=np.uint8)
    gpu.space.write(EDGE - PAGE, memory.tobytes())
    out = gpu.put(np.zeros((LANES, 16), np.uint8))
    gpu.launch(loaded[f"load{n}"], (1, 1, 1), (LANES, 1, 1), [EDGE, out, new])
    found = gpu.get(out, np.uint8, 16 * LANES).reshape(LANES, 16)
    for lane, at in enumerate(PAGE + p for p in places(width, align)):
      assert found[lane, :width].tolist() == memory[at:at + width].tolist(), (t, lane)
    gpu.launch(loaded[f"store{n}"], (1, 1, 1), (LANES, 1, 1), [EDGE, out, new])
    for lane, at in enumerate(PAGE + p for p in places(width, align)): memory[at:at + width] = given[lane, :width]
    assert gpu.space.read(EDGE - PAGE, 2 * PAGE) == memory.tobytes(), t
