"""Debugger and report on every generation that the emulator executes: wave32 and wave64, split barriers, AGPRs."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tinyhw
from tests.emulator.debug.test_debug import REVERSE
from tinyhw.core.errors import InvalidArgument
from tinyhw.emulator.amdgcn import dispatch
from tinyhw.kernels.debug import Session

Build = Callable[..., bytes]
CPUS = ("gfx1100", "gfx1201", "gfx942")
WIDE = REVERSE.replace("64 x float", "128 x float").replace("%group, 64", "%group, 128").replace("i32 63", "i32 127")
A = (np.arange(256) % 7).astype(np.float32)
EXPECTED = np.where(A > 4, 2 * A, A).reshape(2, 128)[:, ::-1].reshape(-1)
WAVES = {"gfx1100": 8, "gfx1201": 8, "gfx942": 4}


def start(build: Build, cpu: str) -> Session:
  return tinyhw.debug(build(WIDE, cpu=cpu), "reverse", (2,), (128,), [np.zeros_like(A), A])


def place_of(d: Session, *starts: str) -> str:
  """The kernel's first instruction whose text begins in one of these ways."""
  return next(d.code.where(n.address) for n in d.code.function("reverse") if n.text.startswith(starts))


@pytest.mark.parametrize("cpu", CPUS)
def test_break_look_change_and_go_on(code_object: Build, cpu: str) -> None:
  with start(code_object, cpu) as d:
    assert d.engine.wave_count == WAVES[cpu] and d.arch.name == cpu
    d.break_at("twice")
    assert d.run().reason == "breakpoint" and [f.where.partition("+")[0] for f in d.backtrace()] == ["twice", "reverse"]
    assert d.finish().reason == "step" and len(d.backtrace()) == 1
    store = place_of(d, "ds_store_b32", "ds_write_b32")
    d.until(store)
    line = d.code.at(d.wave.pc)
    assert line is not None and line.instruction is not None
    data = f"v{line.instruction.operands['data0'].value}"
    expected = np.where(A > 4, 2 * A, A)[:d.engine.lanes]
    assert (d.wave.values(data).view(np.float32) == expected).all() and d.wave.active().all()
    s = d.snapshot()
    d.wave.write(data, 0x42280000, lane=5)
    assert d.run().reason == "end" and d.buffers()[0][127 - 5] == 42
    d.restore(s)
    assert d.run().reason == "end" and (d.buffers()[0] == EXPECTED).all()


@pytest.mark.parametrize("cpu", CPUS)
def test_waves_in_any_order(code_object: Build, cpu: str) -> None:
  """Waves stepped alone, one after the other, compute what the interpreter computes."""
  with start(code_object, cpu) as d: expected = dispatch(d.space, d.arch, d.dispatch).instructions
  with start(code_object, cpu) as d:
    steps, waited = 0, False
    while not d.ended:
      waves = d.waves()
      d.look_at(waves[steps * 5 % len(waves)].wave)
      if d.stepi(1 + steps % 4).reason == "barrier":
        waited = True
        d.next()
      steps += 1
    assert waited and (d.buffers()[0] == EXPECTED).all() and d.engine.stats.instructions == expected


@pytest.mark.parametrize("cpu", CPUS)
def test_a_snapshot_inside_the_barrier(code_object: Build, cpu: str) -> None:
  """Wave 0 waits, the others have not come: that state comes back as often as one likes."""
  with start(code_object, cpu) as d:
    d.until(place_of(d, "s_barrier"))
    while d.wave.state == "running": d.stepi()
    s = d.snapshot()
    for _ in range(2):
      assert d.run().reason == "end" and (d.buffers()[0] == EXPECTED).all()
      d.restore(s)
      assert d.wave.state == "at barrier"


@pytest.mark.parametrize("cpu", CPUS)
def test_the_report(code_object: Build, cpu: str) -> None:
  r = tinyhw.report(code_object(WIDE, cpu=cpu), "reverse", (2,), (128,), [np.zeros_like(A), A])
  assert (r.buffers[0] == EXPECTED).all() and r.arch == cpu and r.waves == WAVES[cpu]
  assert r.barriers == WAVES[cpu] and r.meetings == 2 and r.approximate == []
  kinds = {(a.segment, a.kind): a for a in r.accesses}
  for kind in ("load", "store"):
    assert kinds["global", kind].bytes == 1024 and kinds["global", kind].efficiency == 1
    assert kinds["lds", kind].bytes == 1024 and kinds["lds", kind].slowdown == 1
  called = [i for i in r.instructions if i.place == "twice"]
  assert called and called[0].waves == WAVES[cpu] and 0 < called[0].lanes < r.wave_lanes and "twice" in r.html()


MATRIX = """
declare <4 x float> @llvm.amdgcn.mfma.f32.16x16x4f32(float, float, <4 x float>, i32, i32, i32)
define amdgpu_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %a) #0 {
  %id = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr float, ptr addrspace(1) %a, i32 %id
  %x = load float, ptr addrspace(1) %p
  %m = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x4f32(float %x, float %x, <4 x float> zeroinitializer, i32 0, i32 0,
                                                         i32 0)
  %q = getelementptr <4 x float>, ptr addrspace(1) %out, i32 %id
  store <4 x float> %m, ptr addrspace(1) %q
  ret void
}
"""


def test_accumulation_registers_and_matrices_of_gfx942(code_object: Build) -> None:
  a = np.arange(64, dtype=np.float32)
  args = [np.zeros(256, np.float32), a]
  binary = code_object(MATRIX, cpu="gfx942")
  with tinyhw.debug(binary, "k", (1,), (64,), args) as d:
    d.break_on("global_store*")
    d.run()
    assert d.wave.vgprs() == [*range(4), *range(256, 260)]
    assert d.disassemble(0, 0)[0].text.startswith("global_store_dwordx4 v0, a[0:3]")
    x = a.reshape(4, 16)  # [k, row] of both matrices: lane = 16 * k + row
    product = x.T @ x
    assert d.evaluate("a1.f32").tolist() == [product[4 * (n // 16) + 1, n % 16] for n in range(64)]
    d.wave.write("a1", 7)
    assert d.wave.values("a1")[3] == 7
    with pytest.raises(InvalidArgument, match="no register a4; the wave has v0 to v3 and a0 to a3"): d.evaluate("a4")
  r = tinyhw.report(binary, "k", (1,), (64,), args)
  assert r.units["matrix"] == 1 and (r.registers["VGPRs"], r.registers["AGPRs"]) == (4, 4)
  assert "4 VGPRs and 4 AGPRs" in r.html()
