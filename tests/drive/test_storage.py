"""Devices that hold data (DISK, NPY) and the one that is nothing (NULL): copies to and from all others, refusals."""
from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.opencl import need_driver
from tests.strength import seed
from tinyhw import Device, Tensor, dtypes
from tinyhw.core.errors import DeviceError, InvalidArgument
from tinyhw.drive.null import NullRuntime
from tinyhw.drive.storage import ArrayRuntime, DiskRuntime

OTHERS = ("LLVM", "PYTHON", "AMD", "C", "CL", "NPY")


@pytest.fixture(params=OTHERS)
def other(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
  monkeypatch.setenv("MOCKGPU", "1")
  if request.param == "CL": need_driver()
  if request.param == "C" and shutil.which("gcc") is shutil.which("clang") is None:
    pytest.skip("there is no C compiler")
  return str(request.param)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "float64", "bfloat16"])
def test_values_go_to_a_file_and_back(tmp_path: Path, other: str, dtype: str) -> None:
  disk = f"DISK:{tmp_path}/values"
  data = np.random.default_rng(seed(3)).integers(0, 2, (4, 6))
  there = Tensor(data.tolist(), device=other, dtype=dtype).to(disk).realize()
  assert os.path.getsize(tmp_path / "values") == there.nbytes()
  again = Tensor.empty(4, 6, dtype=dtype, device=disk)
  assert again.to(other).to("LLVM").tolist() == there.to("LLVM").tolist() == Tensor(data.tolist(), dtype=dtype).tolist()


def test_views_of_a_file(tmp_path: Path) -> None:
  data = np.arange(60, dtype=np.int16).reshape(3, 4, 5)
  (tmp_path / "Data").write_bytes(data.tobytes())
  file = Tensor.empty(3, 4, 5, dtype=dtypes.int16, device=f"disk:{tmp_path}/Data")
  assert file.device == f"DISK:{tmp_path}/Data"
  for view, wanted in ((file[1:, ::2], data[1:, ::2]), (file.permute(2, 0, 1), data.transpose(2, 0, 1)),
                       (file.flip(1).reshape(60), data[:, ::-1].reshape(60)), (file[2, 3, 4], data[2, 3, 4])):
    np.testing.assert_array_equal(view.to("LLVM").numpy(), wanted)
  assert (file.to("LLVM") + 1).sum().item() == int((data + 1).sum())
  with pytest.raises(InvalidArgument, match=r"it holds data and runs no kernels; move the tensor .*\.to\('LLVM'\)"):
    (file + 1).realize()


def test_what_is_wrong_with_a_file_is_told(tmp_path: Path) -> None:
  path = tmp_path / "short"
  path.write_bytes(b"12345678")
  with pytest.raises(DeviceError, match="16 bytes are wanted, but the file has 8; the shape or the dtype"):
    Tensor.empty(4, device=f"DISK:{path}").numpy()
  with pytest.raises(DeviceError, match="Is a directory; DISK:PATH"): Tensor.empty(4, device=f"DISK:{tmp_path}").numpy()
  with pytest.raises(DeviceError, match="cannot be written: No such file"):
    Tensor([1.0]).to(f"DISK:{tmp_path}/no/where").realize()
  with pytest.raises(InvalidArgument, match="DISK: no file is named; write DISK:PATH"):
    Tensor([1.0]).to("DISK").realize()


def test_a_file_that_may_only_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  """Root may write anything: so the system says no itself here."""
  path = tmp_path / "kept"
  path.write_bytes(b"abcd")
  opened = os.open
  def refuse(name: object, flags: int, *mode: int, **more: int) -> int:
    if str(name) == str(path) and flags & os.O_RDWR: raise PermissionError(13, "Permission denied")
    return opened(str(name), flags, *mode, **more)
  monkeypatch.setattr(os, "open", refuse)
  disk = DiskRuntime(str(path), "DISK:kept")
  memory, back = disk.alloc(4), bytearray(4)
  disk.copyout(memoryview(back), memory)
  with pytest.raises(DeviceError, match="DISK:kept: cannot be written: Permission denied"):
    disk.copyin(memory, memoryview(b"wxyz"))
  assert back == b"abcd" == path.read_bytes()
  disk.close()
  disk.close()


def test_a_file_is_written_in_place_and_grows(tmp_path: Path) -> None:
  path = tmp_path / "file"
  path.write_bytes(b"abcdefgh")
  disk = DiskRuntime(str(path))
  small, large, back = disk.alloc(4), disk.alloc(12), bytearray(12)
  assert "8 bytes" in disk.describe()
  disk.copyin(small, memoryview(b"WXYZ"))
  assert path.read_bytes() == b"WXYZefgh"
  disk.copyin(large, memoryview(b"0123456789ab"))
  disk.copyout(memoryview(back), large)
  assert back == path.read_bytes() == b"0123456789ab"
  disk.copy(small, large, 4)
  with pytest.raises(InvalidArgument, match="a copy of 5 bytes, but the allocation has 4"): disk.copy(small, large, 5)
  disk.free(small)
  with pytest.raises(InvalidArgument, match="was freed"): disk.copyin(small, memoryview(b"a"))
  with pytest.raises(InvalidArgument, match="cannot allocate 0 bytes"): disk.alloc(0)
  path.write_bytes(b"cut")                # by somebody else, meanwhile
  with pytest.raises(DeviceError, match="12 bytes are wanted, but the file has 3"):
    disk.copyout(memoryview(back), large)
  with pytest.raises(InvalidArgument, match="runs no kernels"): disk.load(b"", "k")
  disk.synchronize()
  assert "not there yet" in DiskRuntime(str(tmp_path / "new")).describe()
  assert "DISK:PATH" in DiskRuntime("").describe()


def test_a_file_that_nobody_has_written_grows_when_it_is_read(tmp_path: Path) -> None:
  empty, missing = tmp_path / "empty", tmp_path / "missing"
  empty.write_bytes(b"")
  for path in (empty, missing):
    x = Tensor.empty(2, 4, dtype="int32", device=f"DISK:{path}")
    assert x[1, 2].item() == 0 and path.read_bytes() == bytes(32)
    x[1].assign(Tensor([1, 2, 3, 4]))
    assert x.tolist() == [[0] * 4, [1, 2, 3, 4]] and path.stat().st_size == 32
    assert Tensor.empty(9, dtype="int32", device=f"DISK:{path}").tolist() == [0] * 4 + [1, 2, 3, 4, 0]
  with pytest.raises(DeviceError, match="cannot be written: No such file"):
    Tensor.empty(4, device=f"DISK:{tmp_path}/no/where").tolist()


def test_memory_of_the_host() -> None:
  t = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3), device="NPY")
  assert t.numpy().tolist() == [[0, 1, 2], [3, 4, 5]] and t.T.to("LLVM").tolist() == [[0, 3], [1, 4], [2, 5]]
  with pytest.raises(InvalidArgument, match="NPY: it holds data and runs no kernels"): (t + 1).realize()
  with pytest.raises(InvalidArgument, match="NPY: it holds data"): ArrayRuntime().load(b"", "k")
  assert "no kernels" in ArrayRuntime().describe()


def test_nothing_runs_on_null(monkeypatch: pytest.MonkeyPatch) -> None:
  x = Tensor([1.0, 2.0], device="NULL", requires_grad=True)
  (x * 2).sum().backward()
  assert x.grad is not None
  x.grad.realize()
  for read in (x.grad.numpy, lambda: x.to("LLVM").numpy(), lambda: x.sum().item()):
    with pytest.raises(DeviceError, match="NULL: nothing runs here, so there is no value to read"): read()
  device = NullRuntime("llvm")
  a = device.alloc(4)
  assert device.load(b"", "k")([a], [], (1, 1, 1), (1, 1, 1), wait=True) == 0.0
  device.copyin(a, memoryview(b"abcd"))
  device.copy(a, a, 4)
  device.free(a)
  with pytest.raises(InvalidArgument, match="was freed"): device.copyin(a, memoryview(b"abcd"))
  with pytest.raises(InvalidArgument, match="cannot allocate 0 bytes"): device.alloc(0)


@pytest.mark.parametrize(("index", "target", "text"), [
  (11, "llvm", "define void"), (12, "amd:gfx1201", "amdgpu_kernel"), (13, "uops", "FDIV"), (14, "opencl", "__kernel"),
  (15, "nvptx:sm_90", "ptx_kernel"), (16, "ptx:sm_90", ".visible .entry")])
def test_null_compiles_for_what_is_named(index: int, target: str, text: str, monkeypatch: pytest.MonkeyPatch,
                                         capsys: pytest.CaptureFixture[str]) -> None:
  monkeypatch.setenv("TINYHW_NULL", target)
  monkeypatch.setenv("DEBUG", "4")
  name = f"NULL:{index}"
  (1 / Tensor.empty(5, device=name)).realize()
  assert text in capsys.readouterr().err and target in Device[name].runtime.describe()
  Device[name].close()


def test_targets_that_there_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
  for target in ("fortran", "llvm:x"):
    monkeypatch.setenv("TINYHW_NULL", target)
    with pytest.raises(InvalidArgument, match=f"TINYHW_NULL: no target is called '{target}'; there are llvm, c"):
      Device["NULL:7"]
  monkeypatch.setenv("TINYHW_NULL", "amd:gfx1")
  with pytest.raises(InvalidArgument, match="gfx1"): Device["NULL:7"]


def test_a_file_is_assigned_to(tmp_path: Path) -> None:
  place = tmp_path / "numbers"
  x = Tensor.empty(5, device=f"DISK:{place}").assign(Tensor.ones(5))
  x[1:3].assign(Tensor([7.0, 8.0]))
  x[-1] = 3
  assert x.tolist() == np.fromfile(place, np.float32).tolist() == [1, 7, 8, 1, 3]
  assert x[1:3].numpy().tolist() == [7, 8] and x[::-1].tolist() == [3, 1, 8, 7, 1] and x[2].item() == 8
  with pytest.raises(InvalidArgument, match="cast and expand"): x.assign(Tensor([1, 2, 3, 4, 5]))


def test_a_file_is_read_as_any_type(tmp_path: Path) -> None:
  np.arange(4, dtype=np.float32).tofile(place := tmp_path / "numbers")
  x = Tensor.empty(16, device=f"DISK:{place}", dtype="uint8")
  assert x[4:8].bitcast("float32").tolist() == [1] and x.bitcast("float32").numpy().tolist() == [0, 1, 2, 3]
  assert x[8:].bitcast("float32").to("LLVM").tolist() == [2, 3]
  written = Tensor([3.0, 4.0, 5.0]).to(f"DISK:{tmp_path / 'more'}")
  assert written[1:].tolist() == (written[1:] + 0).to("PYTHON").tolist() == [4, 5]


def test_a_part_of_a_file_that_is_not_there_yet(tmp_path: Path) -> None:
  whole = Tensor.empty(16, dtype=dtypes.uint8, device=f"disk:{tmp_path}/new")
  whole[0:8].bitcast(dtypes.int64).assign([5])
  whole[8:10].assign([1, 2])
  assert (tmp_path / "new").read_bytes() == bytes([5, *[0] * 7, 1, 2, *[0] * 6])
