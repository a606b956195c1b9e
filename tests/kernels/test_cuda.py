"""`tinyhw.launch` through CUDA's driver API: what is done, asked and refused is as on NV, for PTX and for cubins."""
from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tinyhw
from tinyhw import Device
from tinyhw.arch.nv import NV_ARCHES
from tinyhw.autogen import cuda
from tinyhw.core.errors import DecodeError, DeviceError, HazardFound, InvalidArgument, Unsupported, WaitTimeout
from tinyhw.devices.assemble import bare
from tinyhw.drive.cuda import CudaRuntime
from tinyhw.drive.nv.bare import PARAMS_LIMIT
from tinyhw.kernels.textures import Texture

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
# out[x] = n * a[x] + o.v, and the block's dynamic shared memory turns it round
TEXT = HEAD + """
.extern .shared .align 4 .b8 turned[];
.visible .entry turn(.param .u64 .ptr .global out, .param .u64 .ptr .global a, .param .f32 n, .param .align 4 .b8 o[8],
                     .param .s32 count) {
  .reg .b64 %d<4>; .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .pred %p;
  ld.param.u64 %d0, [out]; ld.param.u64 %d1, [a]; ld.param.f32 %f0, [n]; ld.param.f32 %f1, [o+4];
  ld.param.s32 %r0, [count];
  mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2; add.u64 %d0, %d0, %d2;
  ld.global.f32 %f2, [%d1]; fma.rn.f32 %f2, %f2, %f0, %f1;
  mov.u32 %r2, turned; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3; st.shared.f32 [%r4], %f2;
  bar.sync 0;
  sub.u32 %r5, %r0, %r1; sub.u32 %r5, %r5, 1; shl.b32 %r5, %r5, 2; add.u32 %r5, %r2, %r5; ld.shared.f32 %f3, [%r5];
  st.global.f32 [%d0], %f3; ret;
}
.visible .entry ranks(.param .u64 .ptr .global out) {
  .reg .b64 %d<3>; .reg .b32 %r<4>;
  ld.param.u64 %d0, [out]; mov.u32 %r0, %cluster_ctarank; mov.u32 %r1, %cluster_nctarank; mad.lo.u32 %r0, %r1, 100, %r0;
  mov.u32 %r2, %ctaid.x; mul.wide.u32 %d1, %r2, 4; add.u64 %d0, %d0, %d1; st.global.u32 [%d0], %r0; ret;
}
.visible .entry four(.param .u64 .ptr .global out) .reqntid 4, 1, 1 { ret; }
.visible .entry count(.param .u64 .ptr .global p) {
  .reg .b64 %d; .reg .b32 %r;
  ld.param.u64 %d, [p]; mov.u32 %r, 0;
loop: add.u32 %r, %r, 1; st.volatile.global.u32 [%d], %r; bra loop;
}
.visible .entry races(.param .u64 .ptr .global p) {
  .reg .b64 %d; .reg .b32 %r;
  ld.param.u64 %d, [p]; mov.u32 %r, %tid.x; st.global.u32 [%d], %r; ret;
}
.visible .entry nothing() { ret; }
"""
ELF = bare(TEXT.encode(), NV_ARCHES["sm_90"])
A = np.arange(64, dtype=np.float32)
OUT, OPTIONS = np.zeros(64, np.float32), np.array((3, 0.5), "i4,f4")
WANTED = (2 * A + 0.5)[::-1]


@pytest.fixture(autouse=True)
def mock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
  Device.close()
  monkeypatch.setenv("MOCKGPU", "sm_90")
  monkeypatch.delenv("DEV", raising=False)
  yield
  Device.close()


def turn(device: str, *args: Any, grid: Any = 1, block: Any = 64, shared: int = 256, binary: bytes | str = TEXT,
         **more: Any) -> Any:
  return tinyhw.launch(binary, "turn", grid, block, args or [OUT, A, 2.0, OPTIONS, 64], device, shared, **more)


@pytest.mark.parametrize("device", ["CUDA", "NV"])
@pytest.mark.parametrize("binary", [TEXT, TEXT.encode(), ELF], ids=["text", "bytes", "cubin"])
def test_arguments_of_all_kinds(device: str, binary: bytes | str) -> None:
  out, a = turn(device, binary=binary)
  assert (out == WANTED).all() and (a == A).all() and not OUT.any()
  assert tinyhw.launch(binary, "nothing", 1, 1, [], device) == []


@pytest.mark.parametrize("device", ["CUDA", "NV", "EMU"])
@pytest.mark.parametrize(("args", "more", "words"), [
  ([OUT, A, 2.0, OPTIONS], {}, "4 arguments given, the kernel takes 5"),
  ([OUT, A, np.float64(2), OPTIONS, 64], {}, r"argument 2 \(n\): .*float64"),
  ([OUT, A, 2.0, OPTIONS, 2.5], {}, r"argument 4 \(count\): 2.5"),
  ([OUT, A, 2.0, b"1234567", 64], {}, r"argument 3 \(o\)"), ([OUT, 1 << 64, 2.0, OPTIONS, 64], {}, "64-bit address"),
  ([OUT, "a", 2.0, OPTIONS, 64], {}, "str given"), ((), {"shared": -1}, "no number of bytes"),
  ((), {"shared": 228 << 10}, "shared memory"), ((), {"block": (64, 32)}, "threads"), ((), {"block": (1, 1, 65)}, "65"),
  ((), {"grid": (1, 65536)}, "65536"), ((), {"grid": 1 << 31}, str(1 << 31)),
  ((), {"grid": (1 << 32) + 1}, str((1 << 32) + 1)),
  ((), {"grid": 0}, "positive counts"), ((), {"block": (1, 1, 1, 1)}, "positive counts"),
  ((), {"grid": 3, "cluster": 2}, "cluster"), ((), {"grid": 16, "cluster": 16}, "cluster"),
  ((), {"timeout": 0}, "no positive number of seconds")])
def test_what_a_launch_cannot_have(device: str, args: Any, more: dict[str, Any], words: str) -> None:
  if device == "EMU" and more.get("cluster") == 16: pytest.skip("EMU has the largest clusters that a card may have")
  with pytest.raises(InvalidArgument, match=words): turn(device, *args, **more)
  assert (turn(device)[0] == WANTED).all()  # the device goes on


@pytest.mark.parametrize("device", ["CUDA", "NV"])
def test_what_a_kernel_was_compiled_for(device: str) -> None:
  with pytest.raises(InvalidArgument, match="four"): tinyhw.launch(TEXT, "four", 1, 5, [OUT], device)
  tinyhw.launch(TEXT, "four", 1, 4, [OUT], device)
  with pytest.raises(InvalidArgument, match="turn.*ranks"): tinyhw.launch(TEXT, "there is none", 1, 1, [], device)


@pytest.mark.parametrize("device", ["CUDA", "NV", "EMU"])
def test_a_module_is_refused_for_what_no_launch_reaches(device: str) -> None:
  text = TEXT + ".visible .entry other() {\n  ret;\n  frobnicate.u32 0;\n}\n"
  line = text[:text.index("frob")].count("\n") + 1
  with pytest.raises((DecodeError, DeviceError), match=f"line {line}, column 3: frobnicate.u32: no instruction has"):
    tinyhw.launch(text, "nothing", 1, 1, [], device)


@pytest.mark.parametrize("device", ["CUDA", "NV"])
def test_much_shared_memory(device: str) -> None:
  for shared in (48 << 10, (48 << 10) + 4, 200 << 10, 256): assert (turn(device, shared=shared)[0] == WANTED).all()


@pytest.mark.parametrize("device", ["CUDA", "NV"])
@pytest.mark.parametrize(("cluster", "wanted"), [(None, [100] * 4), (2, [200, 201] * 2),
                                                 ((4, 1), [400, 401, 402, 403])])
def test_clusters(device: str, cluster: Any, wanted: list[int]) -> None:
  out, = tinyhw.launch(TEXT, "ranks", 4, 1, [np.zeros(4, np.uint32)], device, cluster=cluster)
  assert out.tolist() == wanted


def test_cards_before_have_no_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("MOCKGPU", "sm_80")
  text = HEAD.replace("sm_90", "sm_80") + ".visible .entry k() { ret; }"
  assert tinyhw.launch(text, "k", 2, 1, [], "CUDA") == []
  with pytest.raises(Unsupported, match="clusters of blocks on"): tinyhw.launch(text, "k", 2, 1, [], "CUDA", cluster=2)
  program = Device["CUDA"].runtime.load_kernel(text.encode(), "k")  # type: ignore[attr-defined]
  with pytest.raises(Unsupported, match="clusters of blocks on sm_80"):
    program.launch(b"", (2, 1, 1), (1, 1, 1), cluster=(2, 1, 1))
  with pytest.raises(DeviceError, match="does not load"): tinyhw.launch(TEXT, "nothing", 1, 1, [], "CUDA")


def test_textures_are_not_taken() -> None:
  with pytest.raises(Unsupported, match="textures on.*CUDA"):
    turn("CUDA", Texture(np.zeros((2, 2), np.float32)), A, 2.0, OPTIONS, 64)


def test_a_launch_that_takes_too_long_is_taken_off() -> None:
  for _ in range(2):
    with pytest.raises(WaitTimeout, match="no progress after 0.05 s: kernel count.*goes on"):
      tinyhw.launch(TEXT, "count", 1, 1, [OUT], "CUDA", timeout=0.05)
    assert (turn("CUDA", timeout=600)[0] == WANTED).all()


def test_a_card_that_goes_on_is_lost_with_its_context(monkeypatch: pytest.MonkeyPatch) -> None:
  """Nothing takes a launch off a card: the stream never ends."""
  turn("CUDA")
  runtime: Any = Device["CUDA"].runtime
  library, function = runtime.library, runtime.library.function
  with monkeypatch.context() as patch:
    def never(name: str) -> Any:
      return (lambda stream: cuda.CUDA_ERROR_NOT_READY) if name == "cuStreamQuery" else function(name)
    patch.setattr(library, "function", never)
    with pytest.raises(WaitTimeout, match="no progress after 0.02 s: a stream") as caught: turn("CUDA", timeout=0.02)
  assert caught.value.hint == "the device still runs it; Device.reset('CUDA') makes a new context"
  with pytest.raises(DeviceError, match="work still ran after 0.02 s"): turn("CUDA")
  Device.reset("CUDA")
  assert (turn("CUDA")[0] == WANTED).all()


def test_a_fault_costs_the_context() -> None:
  with pytest.raises(DeviceError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
    turn("CUDA", OUT, 1 << 40, 2.0, OPTIONS, 64, timeout=600)
  with pytest.raises(DeviceError, match="the context is lost"): turn("CUDA")
  Device.reset("CUDA")
  assert (turn("CUDA")[0] == WANTED).all()


def test_checks_and_reports() -> None:
  with pytest.raises(HazardFound): tinyhw.launch(TEXT, "races", 1, 64, [OUT], "CUDA", check=True)
  found = tinyhw.launch(TEXT, "races", 1, 64, [OUT], "CUDA", check="report", report=True)
  assert found.findings and found.report is not None and found.report.kernel == "races"


def test_what_the_driver_says_of_parameters() -> None:
  """Where no PTX is read, the driver tells where parameters lie, and NumPy's types say what is meant."""
  runtime = Device["CUDA"].runtime
  assert isinstance(runtime, CudaRuntime)
  program = runtime.load_kernel(TEXT.encode(), "turn")
  said = runtime.parameters(program.function, "turn")
  assert [(a.offset, a.size, a.kind) for a in said.arguments] == [
    (0, 8, "pointer_or_value"), (8, 8, "pointer_or_value"), (16, 4, "by_value"), (20, 8, "pointer_or_value"),
    (28, 4, "by_value")]
  assert said.kernarg_size == 32 <= PARAMS_LIMIT and said.group_segment_size == 0 and said.name == "turn"
  runtime.signature = None
  out, _ = turn("CUDA", OUT, A, np.float32(2), OPTIONS, np.int32(64))
  assert (out == WANTED).all()
  with pytest.raises(InvalidArgument, match="argument 2"): turn("CUDA")  # a Python number has no size
  with pytest.raises(DeviceError, match="'none' does not load"): runtime.load_kernel(TEXT.encode(), "none")
  offset = ctypes.c_size_t()
  runtime.call("cuFuncGetParamInfo", program.function, 4, ctypes.byref(offset), None)  # the size may be left out
  assert offset.value == 28
  for index, place in ((5, ctypes.byref(offset)), (0, None)):
    with pytest.raises(DeviceError, match="CUDA_ERROR_INVALID_VALUE"):
      runtime.call("cuFuncGetParamInfo", program.function, index, place, None)
