"""The check of bounds: LDS beyond the workgroup's, and the bytes behind an array that its last page still has."""
from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

import tinyhw
from tests.emulator.checking import check
from tests.emulator.gpu import compile_gpu
from tinyhw import Device
from tinyhw.drive.amd.kfd import Domain

STORE = """
define amdgpu_kernel void @k(ptr addrspace(1) %a, i32 %n) {
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %i = add i32 %x, %n
  %p = getelementptr i32, ptr addrspace(1) %a, i32 %i
  store i32 7, ptr addrspace(1) %p
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
"""
WAITS = {"gfx1100": "s_waitcnt lgkmcnt(0)", "gfx1201": "s_wait_dscnt 0x0", "gfx942": "s_waitcnt lgkmcnt(0)"}


@pytest.mark.parametrize("cpu", WAITS)
@pytest.mark.parametrize(("offset", "found"), [(0, 0), (60, 1), (64, 1), (1020, 1), (1 << 20, 1)])
def test_lds_past_its_end(cpu: str, offset: int, found: int) -> None:
  """A wave stores and loads 4 bytes a lane at 4 * lane + offset; the workgroup has 4 bytes a lane."""
  lanes = 64 if cpu == "gfx942" else 32
  mnemonics = ("ds_write_b32", "ds_read_b32") if cpu == "gfx942" else ("ds_store_b32", "ds_load_b32")
  report = check(f"""
    s_mov_b32 m0, -1
    v_mbcnt_lo_u32_b32 v1, -1, 0
    v_mbcnt_hi_u32_b32 v1, -1, v1
    v_lshlrev_b32_e32 v1, 2, v1
    v_add{'_nc' * (cpu != 'gfx942')}_u32_e32 v1, {offset}, v1
    {mnemonics[0]} v1, v1
    {WAITS[cpu]}
    {mnemonics[1]} v2, v1
    {WAITS[cpu]}
    s_endpgm
  """, cpu=cpu, lds=4 * lanes, lanes=lanes, kinds={"bounds"})
  findings = list(report)
  assert [f.kind for f in findings] == ["bounds"] * 2 * found
  if not found: return
  first = max(0, lanes - offset // 4)
  assert findings[0].lane == first and findings[0].address == 4 * first + offset
  more = lanes - first - 1
  assert f"writes LDS at {4 * first + offset:#x}, of {4 * lanes:#x} bytes" in findings[0].message
  assert (f"{more} more lanes" in findings[0].message) == bool(more) and "reads LDS" in findings[1].message


@pytest.mark.parametrize("cpu", WAITS)
@pytest.mark.parametrize("n", [0, 1, 960])
def test_memory_behind_an_array(cpu: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """64 work-items store behind n numbers of an array of 64; its page has 1,024."""
  monkeypatch.setattr(Device, "check", "report,bounds")
  try:
    out, = tinyhw.launch(compile_gpu(STORE, cpu=cpu), "k", (1,), (64,), [np.zeros(64, np.int32), n], device="EMU")
    findings = list(Device.findings())
  finally: Device.close()
  assert (out[n:] == 7).all() and not out[:n].any()
  assert len(findings) == bool(n)
  if n:
    lane = max(64 - n, 0)
    assert findings[0].message.startswith("writes 0x") and findings[0].lane == lane % (64 if cpu == "gfx942" else 32)
    past = 4 * (n + lane - 63)
    assert f"up to {past:,} bytes past the end of a (256 bytes)" in findings[0].message


@pytest.fixture
def mock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
  """A machine of a mock GPU of the test's own."""
  Device.close()
  monkeypatch.setenv("MOCKGPU", "1")
  yield
  Device.close()


@pytest.mark.parametrize("n", [0, 1])
def test_one_element_past_an_array_is_found_on_the_mock_as_on_the_emulator(mock: None, n: int) -> None:
  """By what the driver was asked for: the mock's page tables know pages alone."""
  binary, arguments = compile_gpu(STORE, cpu="gfx1100"), [np.zeros(64, np.int32), n]
  found = [tinyhw.launch(binary, "k", 1, 64, arguments, device, check="report").findings for device in ("EMU", "AMD")]
  texts = [[re.sub("0x[0-9a-f]+", "ADDRESS", str(f)) for f in report or ()] for report in found]
  assert texts[0] == texts[1] and len(texts[0]) == n
  if n: assert "up to 4 bytes past the end of a (256 bytes)" in texts[0][0]
  assert not any(report and report.unseen for report in found)
  if n:
    with pytest.raises(tinyhw.HazardFound, match="up to 4 bytes past the end of a "):
      tinyhw.launch(binary, "k", 1, 64, arguments, "AMD", check=True)


def test_tensors_on_the_mock_stay_inside(mock: None, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(Device, "check", "report,bounds")
  tinyhw.Tensor.rand(33, 5, device="AMD").sum(axis=0).numpy()
  assert not Device.findings() and not Device.findings().unseen


def test_what_the_check_of_bounds_could_not_see_is_said(mock: None) -> None:
  """A raw address: nobody says where its memory ends."""
  binary = compile_gpu(STORE, cpu="gfx1100")
  runtime = Device["AMD"].runtime
  memory = runtime.alloc(256)
  known = tinyhw.launch(binary, "k", 1, 64, [memory.address, 0], "AMD", check="report").findings
  assert known is not None and not known and not known.unseen  # the driver has allocated it
  buffer = runtime.kfd.alloc(runtime.gpu, 4096, Domain.VRAM)  # type: ignore[attr-defined]
  found = tinyhw.launch(binary, "k", 1, 64, [buffer.address, 1], "AMD", check="report").findings
  assert found is not None and not found and "raw addresses" in next(iter(found.unseen))
