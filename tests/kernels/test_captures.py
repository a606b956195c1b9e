"""Launches of ready code objects that are kept as they were, to be debugged afterwards."""
from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import tinyhw
from tinyhw import Device

Build = Callable[..., bytes]
X = np.arange(64, dtype=np.float32)
# %0[i] = 3 where %1 is null, no names for the parameters; and a kernel without any
UNNAMED = """
define amdgpu_kernel void @unnamed(ptr addrspace(1) %0, ptr addrspace(1) %1, float %2) #0 {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %null = icmp eq ptr addrspace(1) %1, null
  %x = select i1 %null, float %2, float 0.0
  %p = getelementptr float, ptr addrspace(1) %0, i32 %i
  store float %x, ptr addrspace(1) %p
  ret void
}
define amdgpu_kernel void @nothing() #0 {
  ret void
}
"""


@pytest.fixture(autouse=True, params=["AMD", "EMU"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
  monkeypatch.setenv("MOCKGPU", "1")
  monkeypatch.delenv("DEV", raising=False)
  yield request.param
  Device.close()


def test_launches_that_fit_are_kept_up_to_the_limit(code_object: Build, add_source: str, device: str) -> None:
  binary, other = code_object(add_source), code_object(UNNAMED)
  with tinyhw.captures("ad*", limit=2) as kept:
    tinyhw.launch(other, "nothing", 1, 64, [], device)
    results = [tinyhw.launch(binary, "add", 1, 64, [X, X, k], device)[0] for k in (1.0, 2.0, 3.0)]
  assert [c.kernel for c in kept] == ["add", "add"]
  for captured, result in zip(kept, results):
    assert [name for name, _, _ in captured.buffers] == ["out", "a"]
    (_, out, size), (_, a, _) = captured.buffers
    assert size >= X.nbytes
    for _ in range(2):  # each debugger has the memory from before the launch
      with captured.debug() as d:
        assert (d.read(a, "f32", 64) == X).all() and (d.read(out, "f32", 64) == X).all()
        d.break_at("add")
        assert d.run().reason == "breakpoint" and d.code.where(d.wave.pc) == "add"
        d.delete(1)
        assert d.run().reason == "end" and (d.read(out, "f32", 64) == result).all()


def test_parameters_without_a_name_have_a_number_and_null_is_no_buffer(code_object: Build, device: str) -> None:
  binary = code_object(UNNAMED)
  with tinyhw.captures() as kept:
    filled = tinyhw.launch(binary, "unnamed", 1, 64, [X, None, np.float32(3)], device)[0]
    tinyhw.launch(binary, "unnamed", 1, 64, [X, X, np.float32(3)], device)
    tinyhw.launch(binary, "nothing", 1, 64, [], device)
  assert (filled == 3).all() and [c.kernel for c in kept] == ["unnamed", "unnamed", "nothing"]
  assert [[name for name, _, _ in c.buffers] for c in kept] == [["arg0"], ["arg0", "arg1"], []]
  with kept[2].debug() as d: assert d.run().reason == "end"
