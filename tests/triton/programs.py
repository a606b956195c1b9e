"""Users' programs, which know nothing of tinyhw but `TINYHW_TRITON`; test_programs.py runs them for each GPU."""
from __future__ import annotations

# mypy: ignore-errors
import os
from pathlib import Path

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

import tinyhw
from tinyhw.core.errors import HazardFound, PageFault, Unsupported
from tinyhw.devices.registry import Device

GPU = os.environ.get("TINYHW_TRITON", "")
DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def double(x, n, B: tl.constexpr):
  at = tl.program_id(0) * B + tl.arange(0, B)
  tl.store(x + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


@triton.jit
def copy_rows(x, out, stride, columns, B: tl.constexpr):
  row, at = tl.program_id(0), tl.arange(0, B)
  tl.store(out + row * columns + at, tl.load(x + row * stride + at, mask=at < columns), mask=at < columns)


@triton.jit
def scaled(x, bias, out, factor, shift, flag, big, B: tl.constexpr):
  at = tl.arange(0, B)
  v = tl.load(x + at) * factor
  if bias is not None:
    v += tl.load(bias + at)
  if flag:
    v += shift
  tl.store(out + at, v + big * 1.0)


@triton.jit
def of_tuple(pair, more, out, B: tl.constexpr):
  at = tl.arange(0, B)
  tl.store(out + at, tl.load(pair[0] + at) + tl.load(pair[1] + at) * more[0] + more[1][0])


@triton.jit
def unmasked(x, out, B: tl.constexpr):
  at = tl.program_id(0) * B + tl.arange(0, B)
  tl.store(out + at, tl.load(x + at))


@triton.jit
def grouped(a, b, c, sizes, groups, D: tl.constexpr):
  i, j = tl.arange(0, D)[:, None], tl.arange(0, D)[None, :]
  for g in range(tl.program_id(0), groups, tl.num_programs(0)):
    x = tl.load(a + g).to(tl.pointer_type(tl.float16))
    y = tl.load(b + g).to(tl.pointer_type(tl.float16))
    z = tl.load(c + g).to(tl.pointer_type(tl.float32))
    k = tl.load(sizes + g)
    left = tl.load(x + i * k + j, mask=j < k, other=0.0)
    right = tl.load(y + i * D + j, mask=i < k, other=0.0)
    tl.store(z + i * D + j, tl.dot(left, right))


def test_a_tensor_is_changed_in_place() -> None:
  x = torch.arange(1000, dtype=torch.float32, device=DEVICE)
  double[lambda meta: (triton.cdiv(1000, meta["B"]),)](x, 1000, B=256)
  assert torch.equal(x, torch.arange(1000) * 2.0)


@pytest.mark.parametrize("offset", [0, 1, 3, 8])
def test_a_view_changes_its_base_and_nothing_else(offset: int) -> None:
  base = torch.ones(100)
  double[(1,)](base[offset:offset + 50], 50, B=64)
  expected = torch.ones(100)
  expected[offset:offset + 50] = 2
  assert torch.equal(base, expected)


def test_strides() -> None:
  x = torch.randn(8, 40)
  out = torch.empty(8, 20)
  copy_rows[(8,)](x[:, 10:30], out, x.stride(0), 20, B=32)
  assert torch.equal(out, x[:, 10:30])
  whole = torch.randn(6, 16)
  out = torch.empty(3, 16)
  copy_rows[(3,)](whole[::2], out, whole[::2].stride(0), 16, B=16)
  assert torch.equal(out, whole[::2])


def test_arguments_that_share_memory() -> None:
  x = torch.arange(64, dtype=torch.float32)
  copy_rows[(1,)](x[:16], x[32:48], 16, 16, B=16)
  assert torch.equal(x[32:48], torch.arange(16.0))
  n = np.arange(64, dtype=np.float32)
  copy_rows[(1,)](torch.from_numpy(n)[:16], torch.from_numpy(n[40:]), 16, 16, B=16)
  assert (n[40:56] == np.arange(16)).all()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("big", [1, 5, 1 << 40, -3])
def test_scalars_and_null_pointers(bias: bool, big: int) -> None:
  x, b, out = torch.randn(16), torch.randn(16), torch.empty(16)
  scaled[(1,)](x, b if bias else None, out, 2.5, 0.25, True, big, B=16)
  torch.testing.assert_close(out, x * 2.5 + (b if bias else 0) + 0.25 + float(big))


def test_tuples() -> None:
  x, y, out = torch.randn(16), torch.randn(16), torch.empty(16)
  of_tuple[(1,)]((x, y), (3.0, (7,)), out, B=16)
  torch.testing.assert_close(out, x + y * 3 + 7)


def test_numpy_arrays() -> None:
  data = np.arange(50, dtype=np.float32)
  from tinyhw.triton import array
  double[(1,)](array(data), 50, B=64)
  assert (data == np.arange(50) * 2).all()
  with pytest.raises(Exception, match="writ|permission"):
    data.flags.writeable = False
    double[(1,)](array(data), 50, B=64)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int64])
def test_types(dtype: torch.dtype) -> None:
  x = torch.arange(33).to(dtype)
  double[(2,)](x, 33, B=32)
  assert torch.equal(x, (torch.arange(33) * 2).to(dtype))


def test_8_bit_floats() -> None:
  kind = torch.float8_e4m3fnuz if GPU == "gfx942" else torch.float8_e5m2
  x = torch.randn(64).to(kind)
  out = torch.empty(64)
  copy_rows[(1,)](x, out, 64, 64, B=64)
  assert torch.equal(out, x.float())


def test_a_store_past_the_end_is_a_page_fault_that_names_the_tensor() -> None:
  x, out = torch.zeros(256), torch.zeros(200)
  with pytest.raises(PageFault, match=r"past the end of out \(800 bytes\)") as fault:
    unmasked[(2,)](x, out, B=128)
  assert fault.value.access == "write"
  short = torch.zeros(1000)[:100].clone()
  with pytest.raises(PageFault, match="past the end of x"): unmasked[(1,)](short, x, B=128)
  assert not out.any()
  double[(1,)](x, 200, B=256)  # and everything goes on


@triton.jit
def beyond(x, out, B: tl.constexpr):
  at = tl.arange(0, B)
  tl.store(out + at, tl.load(x + at * 4096))


def test_a_fault_names_the_line_of_the_python_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
  pytest.importorskip("elftools")
  monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))  # another copy of this file may have been compiled before
  with pytest.raises(PageFault) as fault: beyond[(1,)](torch.zeros(256), torch.zeros(256), B=256)
  assert fault.value.source == "tl.store(out + at, tl.load(x + at * 4096))"
  assert "in kernel beyond at programs.py:" in str(fault.value).splitlines()[0]


def test_an_empty_tensor_and_an_empty_grid() -> None:
  double[(1,)](torch.empty(0), 0, B=16)
  double[(0,)](torch.empty(0), 0, B=16)


def test_tables_of_pointers() -> None:
  sizes = [16, 8, 12, 16, 4]
  a = [torch.randn(16, k).half() for k in sizes]
  b = [torch.randn(k, 16).half() for k in sizes]
  c = [torch.zeros(16, 16) for _ in sizes]
  tables = [torch.tensor([t.data_ptr() for t in ts], dtype=torch.int64) for ts in (a, b, c)]
  grouped[(2,)](*tables, torch.tensor(sizes, dtype=torch.int32), len(sizes), D=16)
  for x, y, z in zip(a, b, c): torch.testing.assert_close(z, x.float() @ y.float(), atol=1e-2, rtol=1e-2)


@triton.autotune([triton.Config({"B": 64}, num_warps=1), triton.Config({"B": 256}, num_warps=4)], key=["n"])
@triton.jit
def tuned(x, out, n, B: tl.constexpr):
  at = tl.program_id(0) * B + tl.arange(0, B)
  tl.store(out + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)


def test_autotuning_counts_instructions() -> None:
  x, out = torch.randn(2000), torch.empty(2000)
  for _ in range(2):
    tuned[lambda m: (triton.cdiv(2000, m["B"]),)](x, out, 2000)
    assert torch.equal(out, x + 1)
  assert tuned.best_config.kwargs["B"] in (64, 256)


def test_do_bench() -> None:
  x = torch.ones(16)
  assert triton.testing.do_bench(lambda: double[(1,)](x, 16, B=16), warmup=1, rep=1) > 0


@triton.heuristics({"B": lambda a: triton.next_power_of_2(a["n"])})
@triton.jit
def rounded(x, n, B: tl.constexpr):
  at = tl.arange(0, B)
  tl.store(x + at, at.to(tl.float32), mask=at < n)


def test_heuristics() -> None:
  x = torch.zeros(20)
  rounded[(1,)](x, 20)
  assert torch.equal(x, torch.arange(20.0))


@triton.jit
def tiles(source, out, N: tl.constexpr, D: tl.constexpr):
  tile = source.load([tl.program_id(0) * D, 0])
  tl.store(out + tl.program_id(0) * D * N + tl.arange(0, D)[:, None] * N + tl.arange(0, N)[None, :], tile)


def test_host_tensor_descriptors() -> None:
  x, out = torch.randn(20, 16), torch.full((32, 16), -1.0)
  tiles[(2,)](TensorDescriptor.from_tensor(x, [16, 16]), out, N=16, D=16)
  assert torch.equal(out[:20], x) and not out[20:].any()


def test_launch_hooks() -> None:
  seen = []
  knobs = getattr(triton, "knobs", None)
  x = torch.ones(16)
  if knobs is not None:
    before = knobs.runtime.launch_enter_hook
    enter = lambda metadata: seen.append(metadata.get()["name"])
    if hasattr(before, "add"): before.add(enter)
    else: knobs.runtime.launch_enter_hook = enter
    try: double[(1,)](x, 16, B=16)
    finally:
      if hasattr(before, "remove"): before.remove(enter)
      else: knobs.runtime.launch_enter_hook = before
    assert seen == ["double"]


def test_a_compiled_kernel_is_launched_by_hand() -> None:
  x = torch.ones(16)
  kernel = double.warmup(x, 16, B=16, grid=(1,))
  kernel._init_handles()
  assert kernel.n_regs > 0
  kernel[(1, 1, 1)](x, 16, 16)
  assert torch.equal(x, torch.full((16,), 2.0))


@triton.jit
def printing(x):
  tl.device_print("value", tl.load(x))


def test_printing_is_refused_by_name() -> None:
  with pytest.raises(Unsupported, match="hidden_hostcall_buffer"): printing[(1,)](torch.ones(1))


def test_properties() -> None:
  properties = triton.runtime.driver.active.utils.get_device_properties(0)
  assert properties["max_shared_mem"] == 65536 and properties["multiprocessor_count"] > 0
  assert GPU in ("AMD", properties["arch"]) and properties["warpSize"] == (64 if properties["arch"] == "gfx942" else 32)


@triton.jit
def racing(out):
  tl.store(out, tl.load(out) + tl.program_id(0))


@pytest.mark.skipif(GPU == "AMD", reason="a mock card has other words for it")
def test_checks() -> None:
  Device.close()
  Device.check = "workgroup-race"
  try:
    out = torch.zeros(1)
    with pytest.raises(HazardFound, match="race"): racing[(8,)](out)
  finally:
    Device.check = ""
    Device.close()
    double[(1,)](torch.ones(16), 16, B=16)


def test_reports() -> None:
  x = torch.ones(64)
  double[(1,)](x, 64, B=64)
  with tinyhw.reports() as seen: double[(2,)](x, 64, B=32)
  assert len(seen) == 1 and seen[0].kernel == "double"
  assert torch.equal(x, torch.full((64,), 4.0))


def test_cuda_tensors_are_told_apart() -> None:
  with pytest.raises(Exception, match="device|meta|data_ptr"): double[(1,)](torch.ones(4, device="meta"), 4, B=16)
