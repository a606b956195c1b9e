"""What strangers bring: offload bundles, kernels that ask for a runtime's services, files that are cut off."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyhw
from tests.strength import examples
from tinyhw import Device
from tinyhw.core.errors import DecodeError, DeviceError, Error, InvalidArgument, PageFault, Unsupported
from tinyhw.wire import codeobject

Build = Callable[..., bytes]
OBJECTS = Path(__file__).parent / "objects"
X = np.arange(64, dtype=np.float32)


@pytest.fixture(autouse=True)
def mock(monkeypatch: pytest.MonkeyPatch) -> Any:
  monkeypatch.setenv("MOCKGPU", "1")
  monkeypatch.delenv("DEV", raising=False)
  yield
  Device.close()


def bundle(**parts: bytes) -> bytes:
  """An offload bundle as clang writes it: the host's empty part, then these, aligned to pages."""
  names = ["host-x86_64-unknown-linux-gnu-", *(f"hipv4-amdgcn-amd-amdhsa--{t.replace('_', '-')}" for t in parts)]
  head, at, body = b"__CLANG_OFFLOAD_BUNDLE__" + len(names).to_bytes(8, "little"), 4096, b""
  for name, data in zip(names, [b"", *parts.values()]):
    head += b"".join(n.to_bytes(8, "little") for n in (at + len(body), len(data), len(name))) + name.encode()
    body += data.ljust(-(-len(data) // 4096) * 4096, b"\0")
  return head.ljust(at, b"\0") + body


@pytest.mark.parametrize("device", ["EMU", "AMD"])
def test_offload_bundles(code_object: Build, add_source: str, device: str, tmp_path: Path) -> None:
  one, other = code_object(add_source), code_object(add_source, cpu="gfx942")
  args: list[Any] = [X * 0, X, np.float32(1)]
  (tmp_path / "add.hsaco").write_bytes(bundle(gfx1100=one))
  for binary in (bundle(gfx1100=one), tmp_path / "add.hsaco"):
    assert (tinyhw.launch(binary, "add", 1, 64, args, device)[0] == X + 1).all()
  both = bundle(gfx942=other, gfx1100=one)
  if device == "AMD": assert (tinyhw.launch(both, "add", 1, 64, args, device)[0] == X + 1).all()
  else:
    with pytest.raises(InvalidArgument, match="an offload bundle for gfx942, gfx1100; compile for one GPU"):
      tinyhw.launch(both, "add", 1, 64, args, device)
    assert (tinyhw.launch(bundle(gfx942=other), "add", 1, 64, args, device)[0] == X + 1).all()
  with pytest.raises(InvalidArgument, match="bundle for no AMD GPU"): tinyhw.launch(bundle(), "add", 1, 64, [], device)
  with pytest.raises(Unsupported, match="a compressed offload bundle"):
    tinyhw.launch(b"CCOB" + bytes(60), "add", 1, 64, [], device)
  for size in range(24, 200, 7):
    with pytest.raises(Error): tinyhw.launch(bundle(gfx1100=one)[:size], "add", 1, 64, args, device)


def test_a_bundle_for_another_gpu_names_both(code_object: Build, add_source: str) -> None:
  with pytest.raises(InvalidArgument, match="bundle for gfx942; the device is gfx1100"):
    tinyhw.launch(bundle(gfx942=code_object(add_source, cpu="gfx942")), "add", 1, 64, [], "AMD")
  generic = codeobject.unbundled(bundle(**{"gfx11-generic": b"x", "gfx942": b"y"}), "gfx1102")
  assert generic == b"x", "a generic processor's code runs on each of its family"


HOSTCALL = """
define amdgpu_kernel void @call(ptr addrspace(1) %p) #0 {
  %i = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %at = getelementptr i8, ptr addrspace(4) %i, i64 80
  %buffer = load ptr addrspace(1), ptr addrspace(4) %at
  store i32 1, ptr addrspace(1) %buffer
  ret void
}
"""


def test_services_of_a_runtime_that_nobody_runs_are_named(code_object: Build) -> None:
  binary = code_object(HOSTCALL)
  with pytest.raises(PageFault, match="the kernel asks for hidden_hostcall_buffer, null here"):
    tinyhw.launch(binary, "call", 1, 1, [X], "EMU")
  with pytest.raises(DeviceError, match="the kernel asks for hidden_hostcall_buffer, null here"):
    tinyhw.launch(binary, "call", 1, 1, [X], "AMD")


IMAGES = """
define amdgpu_kernel void @kinds(ptr addrspace(1) %image, ptr addrspace(1) %p)
    #0 !kernel_arg_type !10 !kernel_arg_base_type !10 !kernel_arg_type_qual !11 !kernel_arg_access_qual !12 { ret void }
!10 = !{!"image2d_t", !"int*"}
!11 = !{!"", !""}
!12 = !{!"read_only", !"none"}
"""


def test_kinds_of_arguments_that_nobody_makes_are_named(code_object: Build) -> None:
  with pytest.raises(Unsupported, match="kinds, argument 0.*: unsupported kernel argument kind image"):
    tinyhw.launch(code_object(IMAGES), "kinds", 1, 1, [X, X], "EMU")


@settings(max_examples=examples(40))
@given(st.sampled_from(["typed_O2_g.co", "typed_O0_g.o", "typed_cl.co"]), st.data())
def test_damaged_files_run_or_are_refused(name: str, data: st.DataObject) -> None:
  """Cut off, or with bytes changed, in code, metadata or debug information: an error of the tree, or a launch."""
  whole = bytearray((OBJECTS / name).read_bytes())
  if data.draw(st.booleans()): whole = whole[:data.draw(st.integers(0, len(whole) - 1))]
  else:
    for at in data.draw(st.lists(st.integers(0, len(whole) - 1), min_size=1, max_size=8)):
      whole[at] = data.draw(st.integers(0, 255))
  args: list[Any] = [X, np.float32(2), np.int32(3), *([X, 256] if "cl" in name else [])]
  try: tinyhw.launch(bytes(whole), "axpn", 1, 64, args, "EMU", timeout=20)
  except Error: pass
  finally: Device.close()


def test_wrong_names_list_what_there_is() -> None:
  with pytest.raises(InvalidArgument, match="no kernel 'axpm'.*axpn"):
    tinyhw.launch(OBJECTS / "typed_O2.co", "axpm", 1, 64, [], "EMU")
  with pytest.raises(DecodeError, match="not an ELF"): tinyhw.launch(b"__CLANG", "k", 1, 1, [], "EMU")
