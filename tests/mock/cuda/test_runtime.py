"""The runtime's library: what the compiler's code of a program calls, and the functions that programs call."""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from tests.mock.cuda.client import HEAD, Client
from tests.wire.test_fatbin import packed
from tinyhw.autogen import cuda, cudart
from tinyhw.mock.cuda.calls import BY_VALUE
from tinyhw.mock.cuda.library.library import runtime
from tinyhw.mock.cuda.runtime.functions import NAMES, OWN, RUNS, SAME

TEXT = HEAD + """
.global .align 4 .u32 factor = 3;
.visible .entry scale(.param .u64 x, .param .u32 n) {
  .reg .u64 %rd<3>; .reg .u32 %r<6>; .reg .pred %p;
  ld.param.u64 %rd1, [x]; ld.param.u32 %r1, [n]; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.u32 %r2, %r2, %r3, %r4; setp.ge.u32 %p, %r2, %r1; @%p bra done;
  mul.wide.u32 %rd2, %r2, 4; add.u64 %rd1, %rd1, %rd2;
  ld.global.u32 %r5, [%rd1]; ld.global.u32 %r4, [factor]; mul.lo.u32 %r5, %r5, %r4; st.global.u32 [%rd1], %r5;
done: ret; }
"""
SCALE, FACTOR = 0x1234, 0x5678  # addresses of the host's, which stand for a kernel and a variable


class Program:
  """What nvcc's code of a program does before main."""

  def __init__(self, cards: str = "sm_90", *texts: str) -> None:
    self.machine = Client(cards, context=False).machine
    self.runtime = runtime()
    self.library = self.runtime.loaded.library
    self.fat = ctypes.create_string_buffer(packed(*((1, 80, t.encode(), 0x11, 0) for t in texts or (TEXT,))))
    self.wrapper = (ctypes.c_uint64 * 3)(cudart.FATBINC_MAGIC | 1 << 32, ctypes.addressof(self.fat), 0)
    register = self.library.__getattr__("__cudaRegisterFatBinary")
    register.restype = ctypes.c_uint64
    self.handle = register(self.wrapper)
    zero = ctypes.c_uint64(0)
    self("__cudaRegisterFunction", self.handle, SCALE, b"scale", b"scale", -1, zero, zero, zero, zero, zero)
    self("__cudaRegisterVar", self.handle, FACTOR, b"factor", b"factor", 0, 4, 0, 0)
    self("__cudaRegisterFatBinaryEnd", self.handle)

  def code(self, name: str, *arguments: Any) -> int:
    wide = (ctypes.c_uint64(a) if isinstance(a, int) and a >= 0 else a for a in arguments)
    return int(self.library.__getattr__(name)(*wide))

  def __call__(self, name: str, *arguments: Any) -> None:
    code = self.code(name, *arguments)
    assert code == 0, (name, cudart.ERRORS[code], self.machine.logs[-3:])

  def made(self, name: str, *arguments: Any, kind: Any = ctypes.c_uint64) -> Any:
    out = kind()
    self(name, ctypes.byref(out), *arguments)
    return out.value

  def text(self, name: str, code: int) -> str:
    function = self.library.__getattr__(name)
    function.restype = ctypes.c_char_p
    return str(function(code).decode())

  def launch(self, address: int, n: int, block: int = 64) -> int:
    places = (ctypes.c_void_p * 2)(*(ctypes.addressof(v) for v in (ctypes.c_uint64(address), ctypes.c_uint32(n))))
    self.kept = places, ctypes.c_uint64(address), ctypes.c_uint32(n)
    for i, value in enumerate(self.kept[1:]): places[i] = ctypes.addressof(value)
    grid = cudart.dim3(x=-(-n // 64), y=1, z=1)
    assert self.code("__cudaPushCallConfiguration", grid, cudart.dim3(x=block, y=1, z=1), 0, 0) == 0
    got = [cudart.dim3(), cudart.dim3(), ctypes.c_uint64(1), ctypes.c_uint64(1)]
    self("__cudaPopCallConfiguration", *map(ctypes.byref, got))
    kernel = self.made("__cudaGetKernel", SCALE)
    return self.code("__cudaLaunchKernel", kernel, got[0], got[1], places, got[2], got[3])


def test_a_program_of_nvcc_runs() -> None:
  p = Program()
  data = np.arange(100, dtype=np.uint32)
  memory = p.made("cudaMalloc", data.nbytes)
  p("cudaMemcpy", memory, data.ctypes.data, data.nbytes, cudart.cudaMemcpyHostToDevice)
  assert p.launch(memory, 100) == 0
  seven = ctypes.c_uint32(7)
  p("cudaMemcpyToSymbol", FACTOR, ctypes.byref(seven), 4, 0, cudart.cudaMemcpyHostToDevice)
  assert p.launch(memory, 100) == 0
  out = np.zeros_like(data)
  p("cudaMemcpy", out.ctypes.data, memory, out.nbytes, cudart.cudaMemcpyDefault)
  assert (out == data * 21).all()
  assert p.made("cudaGetSymbolSize", FACTOR) == 4
  place = p.made("cudaGetSymbolAddress", FACTOR)
  p("cudaMemset", place, 0x101, 4)
  p("cudaMemcpyFromSymbol", ctypes.byref(seven), FACTOR, 4, 0, cudart.cudaMemcpyDeviceToHost)
  assert seven.value == 0x01010101
  assert p.code("cudaMemcpyFromSymbol", ctypes.byref(seven), FACTOR, 4, 1, 2) == cudart.cudaErrorInvalidValue
  p("cudaFree", memory)
  p("cudaFree", 0)
  for name in ("cudaMalloc", "cudaMallocHost"):
    none = ctypes.c_uint64(77)
    p(name, ctypes.byref(none), 0)
    assert not none.value
  p("cudaMemcpy", 0, 0, 0, cudart.cudaMemcpyHostToDevice)
  p("__cudaUnregisterFatBinary", p.handle)
  assert p.code("cudaGetKernel", ctypes.byref(ctypes.c_uint64()), SCALE) == cudart.cudaErrorInvalidDeviceFunction


def test_errors_stay_until_the_thread_asks() -> None:
  p = Program()
  assert p.code("cudaGetLastError") == 0
  memory = p.made("cudaMalloc", 64)
  assert p.launch(memory, 16, block=2048) == cudart.cudaErrorInvalidConfiguration
  assert p.code("cudaPeekAtLastError") == p.code("cudaGetLastError") == cudart.cudaErrorInvalidConfiguration
  assert p.code("cudaGetLastError") == 0
  assert p.code("cudaLaunchKernel", 77, cudart.dim3(x=1, y=1, z=1), cudart.dim3(x=1, y=1, z=1), 0, 0, 0) == \
    cudart.cudaErrorInvalidDeviceFunction
  assert p.code("cudaMemcpy", memory, memory, 4, 9) == cudart.cudaErrorInvalidMemcpyDirection
  assert p.text("cudaGetErrorName", 2) == "cudaErrorMemoryAllocation"
  assert p.text("cudaGetErrorString", 9) == "invalid configuration"
  assert p.text("cudaGetErrorString", 12345) == p.text("cudaGetErrorName", 12345) == "unrecognized error code"
  assert p.launch(memory, 1 << 20) == 0  # past the end
  assert p.code("cudaDeviceSynchronize") == cudart.cudaErrorIllegalAddress
  assert p.code("cudaMemcpy", memory, memory, 4, 3) == cudart.cudaErrorIllegalAddress
  p("cudaDeviceReset")
  memory = p.made("cudaMalloc", 64)
  assert p.launch(memory, 16) == 0
  p("cudaDeviceSynchronize")


def test_each_thread_and_card_has_its_context() -> None:
  p = Program("sm_90,sm_80")
  assert p.made("cudaGetDeviceCount", kind=ctypes.c_int32) == 2
  assert p.made("cudaGetDevice", kind=ctypes.c_int32) == 0
  for device, name, capability in ((1, "A100", (8, 0)), (0, "H200", (9, 0))):
    p("cudaSetDevice", device)
    assert p.made("cudaGetDevice", kind=ctypes.c_int32) == device
    found = cudart.cudaDeviceProp()
    p("cudaGetDeviceProperties", ctypes.byref(found), device)
    assert name in bytes(found.name).rstrip(b"\0").decode() and (found.major, found.minor) == capability
    assert (found.warpSize, found.maxThreadsDim[0], found.clusterLaunch) == (32, 1024, int(capability[0] == 9))
    memory = p.made("cudaMalloc", 256)
    data = np.ones(64, np.uint32)
    p("cudaMemcpy", memory, data.ctypes.data, 256, cudart.cudaMemcpyHostToDevice)
    assert p.launch(memory, 64) == 0
    p("cudaMemcpyAsync", data.ctypes.data, memory, 256, cudart.cudaMemcpyDeviceToHost, 0)
    p("cudaStreamSynchronize", 0)
    assert (data == 3).all()
    where = cudart.cudaPointerAttributes()
    p("cudaPointerGetAttributes", ctypes.byref(where), memory + 8)
    assert (where.type, where.device) == (cudart.cudaMemoryTypeDevice, device)
    p("cudaPointerGetAttributes", ctypes.byref(where), data.ctypes.data)
    assert where.type == cudart.cudaMemoryTypeUnregistered
  p("cudaDeviceEnablePeerAccess", 1, 0)
  assert p.code("cudaDeviceEnablePeerAccess", 1, 0) == cudart.cudaErrorPeerAccessAlreadyEnabled
  assert p.made("cudaGetDevice", kind=ctypes.c_int32) == 0


def test_the_newest_code_that_the_card_runs_is_taken() -> None:
  text = TEXT.replace("factor = 3", "factor = 5").replace("sm_80", "sm_90a").replace("8.0", "8.3", 1)
  for card, factor in (("sm_90", 5), ("sm_80", 3), ("sm_120", 3)):
    p = Program(card, TEXT, text)
    memory = p.made("cudaMallocManaged", 4, cuda.CU_MEM_ATTACH_GLOBAL)
    p("cudaMemsetAsync", memory, 1, 4, 0)
    assert p.launch(memory, 1) == 0
    p("cudaDeviceSynchronize")
    assert ctypes.c_uint32.from_address(memory).value == 0x01010101 * factor
  p = Program("sm_86", text)
  memory = p.made("cudaMalloc", 4)
  assert p.launch(memory, 1) == cudart.cudaErrorNoKernelImageForDevice
  assert "a fat binary with PTX for sm_90a: no PTX that the device, sm_86, runs" in p.machine.logs[-1]


def test_launches_with_clusters() -> None:
  p = Program()
  memory = p.made("cudaMalloc", 4 * 640)
  data = np.ones(640, np.uint32)
  p("cudaMemcpy", memory, data.ctypes.data, data.nbytes, cudart.cudaMemcpyHostToDevice)
  address, n = ctypes.c_uint64(memory), ctypes.c_uint32(640)
  places = (ctypes.c_void_p * 2)(ctypes.addressof(address), ctypes.addressof(n))
  attribute = cuda.CUlaunchAttribute(id=cuda.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
  attribute.value.clusterDim.x, attribute.value.clusterDim.y, attribute.value.clusterDim.z = 10, 1, 1
  config = cudart.cudaLaunchConfig_t(gridDim=cudart.dim3(x=10, y=1, z=1), blockDim=cudart.dim3(x=64, y=1, z=1),
                                     attrs=ctypes.addressof(attribute), numAttrs=1)
  assert p.code("cudaLaunchKernelExC", ctypes.byref(config), SCALE, places) == cudart.cudaErrorInvalidClusterSize
  p("cudaFuncSetAttribute", SCALE, cudart.cudaFuncAttributeNonPortableClusterSizeAllowed, 1)
  assert p.made("cudaOccupancyMaxActiveClusters", SCALE, ctypes.byref(config), kind=ctypes.c_int32) > 1
  p("cudaLaunchKernelExC", ctypes.byref(config), SCALE, places)
  p("cudaMemcpy", data.ctypes.data, memory, data.nbytes, cudart.cudaMemcpyDeviceToHost)
  assert (data == 3).all()
  found = cudart.cudaFuncAttributes()
  p("cudaFuncGetAttributes", ctypes.byref(found), SCALE)
  assert found.maxThreadsPerBlock == 1024 and found.ptxVersion == 80
  config.dynamicSmemBytes = 1 << 33
  assert p.code("cudaLaunchKernelExC", ctypes.byref(config), SCALE, places) == cudart.cudaErrorInvalidValue


def test_streams_and_events() -> None:
  p = Program()
  stream = p.made("cudaStreamCreate")
  first, last = p.made("cudaEventCreate"), p.made("cudaEventCreate")
  memory = p.made("cudaMalloc", 4096)
  p("cudaEventRecord", first, stream)
  assert p.launch(memory, 1024) == 0
  p("cudaEventRecord", last, stream)
  p("cudaEventSynchronize", last)
  assert p.made("cudaEventElapsedTime", first, last, kind=ctypes.c_float) >= 0
  p("cudaStreamDestroy", stream)
  assert p.made("cudaOccupancyMaxActiveBlocksPerMultiprocessor", SCALE, 256, 0, kind=ctypes.c_int32) == 8
  found = ctypes.c_uint64(), ctypes.c_uint64()
  status, name = ctypes.byref(ctypes.c_int32()), b"cuTensorMapEncodeTiled"
  p("cudaGetDriverEntryPoint", name, ctypes.byref(found[0]), 0, status)
  p("cudaGetDriverEntryPointByVersion", name, ctypes.byref(found[1]), 12000, 0, status)
  assert found[0].value == found[1].value != 0


TOGETHER = HEAD + """
.visible .entry scale(.param .u64 out, .param .u32 n) {
  .reg .u64 %rd<5>; .reg .u32 %r<9>; .reg .pred %p;
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2; mov.b64 %rd2, {%r2, %r1};
  mov.u32 %r3, %nctaid.x; mov.u32 %r4, %ctaid.x; mul.wide.u32 %rd3, %r4, 4; add.u64 %rd3, %rd1, %rd3;
  ld.global.u32 %r8, [%rd2]; atom.global.add.u32 %r5, [%rd2+4], 1; st.global.u32 [%rd3], %r5;
wait: ld.volatile.global.u32 %r6, [%rd2+4]; setp.lt.u32 %p, %r6, %r3; @%p bra wait;
  mad.lo.u32 %r6, %r6, 100, %r8; add.u32 %r6, %r6, %r5; st.global.u32 [%rd3], %r6;
  ret; }
"""


GRID = HEAD + """
.extern .func (.param .b64 out) cudaCGGetIntrinsicHandle(.param .b32 scope);
.extern .func (.param .b32 out) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);
.visible .entry scale(.param .u64 out, .param .u32 scope) {
  .reg .u64 %rd<5>; .reg .u32 %r<12>; .reg .pred %p;
  ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [scope];
  { .param .b32 a; .param .b64 b; st.param.b32 [a], %r1; call (b), cudaCGGetIntrinsicHandle, (a);
    ld.param.b64 %rd2, [b]; }
  mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.x; mad.lo.u32 %r2, %r2, 3, %r3; mov.u32 %r3, %tid.x;
  mad.lo.u32 %r2, %r2, 40, %r3; mul.wide.u32 %rd3, %r2, 4; add.u64 %rd3, %rd1, %rd3;
  mov.u32 %r4, 1; mov.u32 %r9, 0;
round: st.global.u32 [%rd3], %r4;
  { .param .b64 a; .param .b32 b; .param .b32 c; st.param.b64 [a], %rd2; st.param.b32 [b], 0;
    call (c), cudaCGSynchronize, (a, b); ld.param.b32 %r5, [c]; }
  mov.u32 %r6, 0; mov.u32 %r7, 0; mov.u64 %rd4, %rd1;
sum: ld.global.u32 %r8, [%rd4]; add.u32 %r6, %r6, %r8; add.u64 %rd4, %rd4, 4; add.u32 %r7, %r7, 1;
  setp.lt.u32 %p, %r7, 240; @%p bra sum;
  { .param .b64 a; .param .b32 b; .param .b32 c; st.param.b64 [a], %rd2; st.param.b32 [b], 0;
    call (c), cudaCGSynchronize, (a, b); ld.param.b32 %r5, [c]; }
  mov.u32 %r4, %r6; add.u32 %r9, %r9, 1; setp.lt.u32 %p, %r9, 3; @%p bra round;
  mad.lo.u32 %r4, %r5, 1000, %r4; st.global.u32 [%rd3], %r4; ret; }
"""


@pytest.mark.parametrize("engine", ["ref", "jit"])
def test_all_threads_of_a_grid_meet_by_the_runtime_of_the_device(engine: str) -> None:
  """Whatever one has written before, all have read behind; other scopes have no handle, and nobody waits."""
  p = Program("sm_90", GRID)
  p.machine.engine = engine
  memory, out = p.made("cudaMalloc", 4 * 240), np.zeros(240, np.uint32)
  grid, block = cudart.dim3(x=3, y=2, z=1), cudart.dim3(x=40, y=1, z=1)
  address, scope = ctypes.c_uint64(memory), ctypes.c_uint32(1)
  places = (ctypes.c_void_p * 2)(ctypes.addressof(address), ctypes.addressof(scope))
  for _ in range(2):
    p("cudaLaunchCooperativeKernel", SCALE, grid, block, places, 0, 0)
    p("cudaMemcpy", out.ctypes.data, memory, out.nbytes, cudart.cudaMemcpyDeviceToHost)
    assert (out == 240**3).all()  # three rounds, each thread the sum of all
  scope.value = 2
  p("cudaMemset", memory, 0, out.nbytes)
  p("cudaLaunchCooperativeKernel", SCALE, cudart.dim3(x=1, y=1, z=1), cudart.dim3(x=1, y=1, z=1), places, 0, 0)
  p("cudaMemcpy", out.ctypes.data, memory, 4, cudart.cudaMemcpyDeviceToHost)
  assert out[0] == 1001  # cudaErrorInvalidValue


@pytest.mark.parametrize("engine", ["ref", "jit"])
@pytest.mark.parametrize("extended", [False, True])
def test_blocks_of_a_cooperative_launch_meet_in_its_workspace(engine: str, extended: bool) -> None:
  p = Program("sm_90", TOGETHER)
  p.machine.engine = engine
  memory = p.made("cudaMalloc", 4 * 20)
  address, n = ctypes.c_uint64(memory), ctypes.c_uint32(0)
  places = (ctypes.c_void_p * 2)(ctypes.addressof(address), ctypes.addressof(n))
  grid, block, out = cudart.dim3(x=20, y=1, z=1), cudart.dim3(x=1, y=1, z=1), np.zeros(20, np.uint32)
  for _ in range(2):
    if extended:
      attribute = cuda.CUlaunchAttribute(id=cuda.CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
      attribute.value.cooperative = 1
      config = cudart.cudaLaunchConfig_t(gridDim=grid, blockDim=block, attrs=ctypes.addressof(attribute), numAttrs=1)
      p("cudaLaunchKernelExC", ctypes.byref(config), SCALE, places)
    else: p("cudaLaunchCooperativeKernel", SCALE, grid, block, places, 0, 0)
    p("cudaMemcpy", out.ctypes.data, memory, out.nbytes, cudart.cudaMemcpyDeviceToHost)
    assert sorted(out.tolist()) == [2008 + k for k in range(20)]  # 20 blocks, and the 8 bytes of the workspace
  huge = cudart.dim3(x=1 << 20, y=1, z=1)
  code = p.code("cudaLaunchCooperativeKernel", SCALE, huge, block, places, 0, 0)
  assert code == cudart.cudaErrorCooperativeLaunchTooLarge


ASSERTS = HEAD + """
.extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 words[6] = {0x78, 0x20, 0x3c, 0x20, 0x31, 0};
.visible .entry scale(.param .u64 out, .param .u32 n) {
  .reg .u64 %rd<5>;
  mov.u64 %rd1, words; cvta.global.u64 %rd1, %rd1;
  { .param .b64 a, b; .param .b32 c; .param .b64 d, e;
  st.param.b64 [a], %rd1; st.param.b64 [b], %rd1; st.param.b32 [c], 7; st.param.b64 [d], %rd1; st.param.b64 [e], 1;
  call.uni __assertfail, (a, b, c, d, e); }
  ret; }
"""


def test_an_assertion_has_its_own_error() -> None:
  p = Program("sm_90", ASSERTS)
  assert p.launch(p.made("cudaMalloc", 64), 1) == 0
  assert p.code("cudaDeviceSynchronize") == cudart.cudaErrorAssert
  assert "assertion failed: x < 1 (x < 1:7)" in p.machine.logs[-1]


def test_what_is_a_hint_or_a_word() -> None:
  p = Program()
  p("cudaSetDeviceFlags", cuda.CU_CTX_MAP_HOST | cuda.CU_CTX_SCHED_BLOCKING_SYNC)
  assert p.made("cudaGetDeviceFlags", kind=ctypes.c_uint32) & cuda.CU_CTX_SCHED_BLOCKING_SYNC
  p("cudaProfilerStart")
  p("cudaProfilerStop")
  out = (ctypes.c_int32 * 5)()
  describe = p.library.cudaCreateChannelDesc
  describe.restype = ctypes.c_uint64
  assert describe(out, 32, 0, 0, 0, 2) == ctypes.addressof(out) and list(out) == [32, 0, 0, 0, 2]


def test_what_is_not_modelled_says_so() -> None:
  p = Program()
  left = sorted({*cudart.FUNCTIONS, *cudart.BY_VALUE} - {*RUNS, *SAME, *OWN.values()})
  for name in left:
    assert p.code(name) == cudart.cudaErrorNotSupported, name
  assert set(p.machine.report()) >= {f"{name}: {name} is not modelled" for name in left}


@pytest.mark.parametrize("name", sorted(SAME))
def test_what_the_driver_does_has_its_parameters(name: str) -> None:
  def plain(kinds: tuple[type, ...]) -> list[int]: return [ctypes.sizeof(k) for k in kinds]
  assert plain(cudart.FUNCTIONS[name]) == plain((cuda.FUNCTIONS | BY_VALUE)[SAME[name]])


def test_managed_variables_are_the_hosts_too() -> None:
  """The program has their addresses once it asks; they are symbols as others."""
  text = TEXT.replace(".global .align 4 .u32 factor", ".global .attribute(.managed) .align 4 .u32 factor")
  p = Program("sm_90,sm_90", text)
  cell = ctypes.c_uint64(0)
  p("__cudaRegisterManagedVar", p.handle, ctypes.addressof(cell), b"factor", b"factor", 0, 4, 0, 0)
  assert p.code("__cudaInitModule", p.handle) == 1
  factor = ctypes.c_uint32.from_address(cell.value)
  assert factor.value == 3 and p.made("cudaGetSymbolAddress", cell.value) == cell.value
  data = np.arange(100, dtype=np.uint32)
  memory = p.made("cudaMallocManaged", data.nbytes, 1)
  p("cudaMemcpy", memory, data.ctypes.data, data.nbytes, cudart.cudaMemcpyDefault)
  factor.value = 11
  assert p.launch(memory, 100) == 0
  p("cudaDeviceSynchronize")
  out = np.zeros_like(data)
  p("cudaMemcpy", out.ctypes.data, memory, out.nbytes, cudart.cudaMemcpyDefault)
  assert (out == data * 11).all()
  p("cudaSetDevice", 1)  # all cards have the same ones
  factor.value = 2
  assert p.launch(memory, 100) == 0 and p.made("cudaGetSymbolAddress", cell.value) == cell.value
  p("cudaDeviceSynchronize")
  p("cudaMemcpy", out.ctypes.data, memory, out.nbytes, cudart.cudaMemcpyDefault)
  assert (out == data * 22).all() and factor.value == 2


def test_addresses_of_managed_variables_are_one_on_all_cards() -> None:
  """Also those that another variable has from its initializer; variables of other kinds each card has for itself."""
  text = TEXT.replace(".global .align 4 .u32 factor = 3;", """.global .attribute(.managed) .align 4 .u32 factor = 3;
    .global .u64 where = factor; .global .u32 own = 5;""").replace("ld.global.u32 %r4, [factor]", """
    ld.global.u64 %rd2, [where]; ld.global.u32 %r4, [%rd2]; red.global.add.u32 [factor], 1; ld.global.u32 %r3, [own];
    add.u32 %r4, %r4, %r3; red.global.add.u32 [own], 1""")
  p = Program("sm_90,sm_80", text)
  cell = ctypes.c_uint64(0)
  p("__cudaRegisterManagedVar", p.handle, ctypes.addressof(cell), b"factor", b"factor", 0, 4, 0, 0)
  assert p.code("__cudaInitModule", p.handle) == 1
  memory = p.made("cudaMallocManaged", 4, 1)
  found = ctypes.c_uint32.from_address(memory)
  for device, factor in ((0, 3 + 5), (0, 4 + 6), (1, 5 + 5), (0, 6 + 7), (1, 7 + 6)):
    p("cudaSetDevice", device)
    found.value = 1
    assert p.launch(memory, 1, block=1) == 0
    p("cudaDeviceSynchronize")
    assert found.value == factor


def test_programs_with_a_default_stream_for_each_thread() -> None:
  """--default-stream per-thread calls functions under other names: stream 0 is the thread's, and what waits for that
  does not wait for the default stream of all."""
  p = Program()
  assert {*cudart.PER_THREAD} <= {*cudart.FUNCTIONS} and set(cudart.PER_THREAD.values()) <= {*NAMES}

  def number(name: str, stream: int) -> int:
    found = ctypes.c_uint64()
    p(name, stream, ctypes.byref(found))
    return found.value
  everyones, own = number("cudaStreamGetId", 0), number("cudaStreamGetId", cuda.CU_STREAM_PER_THREAD)
  assert number("cudaStreamGetId_ptsz", 0) == own != everyones == number("cudaStreamGetId_ptsz", cuda.CU_STREAM_LEGACY)
  data = np.arange(64, dtype=np.uint32)
  memory, out = p.made("cudaMalloc", data.nbytes), np.zeros_like(data)
  p("cudaMemcpy_ptds", memory, data.ctypes.data, data.nbytes, cudart.cudaMemcpyHostToDevice)
  kernel, one = p.made("__cudaGetKernel", SCALE), cudart.dim3(x=1, y=1, z=1)
  kept = ctypes.c_uint64(memory), ctypes.c_uint32(64)
  places = (ctypes.c_void_p * 2)(*map(ctypes.addressof, kept))
  p("__cudaLaunchKernel_ptsz", kernel, one, cudart.dim3(x=64, y=1, z=1), places, 0, 0)
  p("cudaMemcpyAsync_ptsz", out.ctypes.data, memory, out.nbytes, cudart.cudaMemcpyDeviceToHost, 0)
  p("cudaStreamSynchronize_ptsz", 0)
  assert (out == 3 * data).all() and number("cudaStreamGetId", 0) == everyones
