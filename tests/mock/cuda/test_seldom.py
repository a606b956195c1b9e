"""What programs seldom ask of the driver or the runtime: pointers that are null, what is refused, and plain calls that
few make."""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from tests.mock.cuda.client import HEAD, WAIT, Client, u64
from tests.mock.cuda.test_pools import properties
from tests.mock.cuda.test_runtime import FACTOR, SCALE, Program
from tests.mock.cuda.test_textures import array, code_of, described, of_array, sampled
from tinyhw.autogen import cuda, cudart

INVALID, UNSUPPORTED = cuda.CUDA_ERROR_INVALID_VALUE, cuda.CUDA_ERROR_NOT_SUPPORTED


def test_results_have_a_place() -> None:
  """A null pointer for one is refused, and nothing is made."""
  c = Client()
  small = ctypes.byref(described(np.float32, (4, 0, 0)))
  at = array(c, np.float32, (4, 4, 0))
  for name, arguments in (
      ("cuArrayGetDescriptor_v2", (u64(at),)), ("cuArray3DGetDescriptor_v2", (u64(at),)),
      ("cuArray3DCreate_v2", (small,)), ("cuMipmappedArrayCreate", (small, 1)),
      ("cuTexObjectCreate", (ctypes.byref(of_array(at)), ctypes.byref(sampled()), None)),
      ("cuSurfObjectCreate", (ctypes.byref(of_array(at)),))):
    before = len(c.machine.handles)
    assert c.code(name, None, *arguments) == INVALID, name
    assert len(c.machine.handles) == before


def plane(c: Client, **changes: int) -> Any:
  """Linear memory as rows of 64 elements."""
  r = cuda.CUDA_RESOURCE_DESC_v1(resType=cuda.CU_RESOURCE_TYPE_PITCH2D)
  given = {"devPtr": c.alloc(1 << 16), "format": code_of(np.float32), "numChannels": 1, "width": 64, "height": 8,
           "pitchInBytes": 256} | changes
  for name, value in given.items(): setattr(r.res.pitch2D, name, value)
  return r


@pytest.mark.parametrize("changes", [
  {"width": 0}, {"height": 0}, {"width": 65}, {"width": 131073, "pitchInBytes": 131073 * 4}, {"height": 65001},
  {"pitchInBytes": 2097152}, {"pitchInBytes": 272}])
def test_rows_that_the_driver_refuses(changes: dict[str, int]) -> None:
  c, out = Client(), ctypes.c_uint64()
  def code(r: Any) -> int:
    return c.code("cuTexObjectCreate", ctypes.byref(out), ctypes.byref(r), ctypes.byref(sampled()), None)
  good = plane(c)
  assert code(good) == 0
  assert code(plane(c, **changes)) == INVALID
  good.res.pitch2D.devPtr += 256
  assert code(good) == INVALID
  view = cuda.CUDA_RESOURCE_VIEW_DESC_v1(width=64, height=8)
  good.res.pitch2D.devPtr -= 256
  assert c.code("cuTexObjectCreate", ctypes.byref(out), ctypes.byref(good), ctypes.byref(sampled()),
                ctypes.byref(view)) == INVALID  # a view is of an array


def test_views_of_layers_that_there_are_not() -> None:
  c, out = Client(), ctypes.c_uint64()
  def code(at: Any, sampling: Any, **fields: int) -> int:
    view = cuda.CUDA_RESOURCE_VIEW_DESC_v1(**fields)
    return c.code("cuTexObjectCreate", ctypes.byref(out), ctypes.byref(at), ctypes.byref(sampling),
                  ctypes.byref(view))
  one = of_array(array(c, np.float32, (8, 8, 0)))
  assert code(one, sampled(), width=8, height=8) == 0
  for more in ({"firstLayer": 1}, {"lastLayer": 1}): assert code(one, sampled(), width=8, height=8, **more) == INVALID


def test_pools_of_locations() -> None:
  c = Client("sm_90,sm_90")
  for device in (0, 1):
    where, pinned = ctypes.byref(properties(device).location), cuda.CU_MEM_ALLOCATION_TYPE_PINNED
    assert c.handle("cuMemGetDefaultMemPool", where, pinned) == c.handle("cuDeviceGetDefaultMemPool", device)
    pool = c.handle("cuMemPoolCreate", ctypes.byref(properties(device)))
    c.call("cuMemSetMemPool", where, pinned, u64(pool))
    assert c.handle("cuDeviceGetMemPool", device) == c.handle("cuMemGetMemPool", where, pinned) == pool
    out = ctypes.c_uint64()
    assert c.code("cuMemPoolGetAttribute", u64(pool), 99, ctypes.byref(out)) == UNSUPPORTED
  given = properties()
  given.reserved[3] = 1
  assert c.code("cuMemPoolCreate", ctypes.byref(ctypes.c_uint64()), ctypes.byref(given)) == INVALID
  assert c.code("cuMemRangeGetAttributes", None, None, None, ctypes.c_size_t(0), u64(0), ctypes.c_size_t(0)) == INVALID


def test_calls_of_the_runtime_that_few_make() -> None:
  p = Program("sm_90,sm_90")
  stream, five = p.made("cudaStreamCreate"), ctypes.c_uint32(5)
  p("cudaMemcpyToSymbolAsync", FACTOR, ctypes.byref(five), 4, 0, cudart.cudaMemcpyHostToDevice, stream)
  back = ctypes.c_uint32()
  p("cudaMemcpyFromSymbolAsync", ctypes.byref(back), FACTOR, 2, 0, cudart.cudaMemcpyDeviceToHost, stream)
  p("cudaStreamSynchronize", stream)
  assert back.value == 5
  assert p.code("cudaGetSymbolSize", ctypes.byref(ctypes.c_uint64()), 0x9999) == cudart.cudaErrorInvalidSymbol
  p("cudaFuncSetCacheConfig", SCALE, 1)
  assert p.code("cudaFuncSetCacheConfig", 0x9999, 1) == cudart.cudaErrorInvalidDeviceFunction
  assert p.made("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", SCALE, 256, 0, 0, kind=ctypes.c_int32) == 8
  assert p.made("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", SCALE, 512, 0, 0, kind=ctypes.c_int32) == 4
  data, out = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
  one = p.made("cudaMalloc", 256)
  p("cudaSetDevice", 1)
  two = p.made("cudaMalloc", 256)
  p("cudaMemcpy", one, data.ctypes.data, 256, cudart.cudaMemcpyDefault)
  p("cudaMemcpyPeer", two, 1, one, 0, 252)
  p("cudaMemcpy", out.ctypes.data, two, 252, cudart.cudaMemcpyDeviceToHost)
  assert out.tolist() == [*range(63), 0]


def test_pointers_at_each_end_of_what_they_point_to() -> None:
  p = Program()
  at, found = p.made("cudaMalloc", 4096), cudart.cudaPointerAttributes()
  for offset, known in ((-1, False), (0, True), (4095, True), (4096, False)):
    p("cudaPointerGetAttributes", ctypes.byref(found), at + offset)
    assert (found.type == cudart.cudaMemoryTypeDevice) is known


def test_entry_points_have_a_status() -> None:
  p = Program()
  for name, wanted in ((b"cuMemAlloc", cuda.CU_GET_PROC_ADDRESS_SUCCESS),
                       (b"cuNothing", cuda.CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND)):
    out, status = ctypes.c_uint64(), ctypes.c_int32(99)
    p("cudaGetDriverEntryPoint", name, ctypes.byref(out), 0, ctypes.byref(status))
    assert status.value == wanted and bool(out.value) is (wanted == cuda.CU_GET_PROC_ADDRESS_SUCCESS)


def test_an_event_of_a_dead_context_is_lost_with_it() -> None:
  """Also one that was never recorded, and one that had passed before."""
  c = Client()
  never, passed = (c.handle("cuEventCreate", 0) for _ in range(2))
  c.call("cuEventRecord", u64(passed), u64(0))
  c.call("cuEventSynchronize", u64(passed))
  for event in (never, passed): c.call("cuEventQuery", u64(event))
  assert c.launch(c.function(WAIT, "put"), 1, 1, [u64(8), ctypes.c_uint32(1)]) == 0
  lost = cuda.CUDA_ERROR_ILLEGAL_ADDRESS
  assert c.code("cuCtxSynchronize") == lost
  for event in (never, passed): assert c.code("cuEventQuery", u64(event)) == lost


LATCH = HEAD + """
.visible .entry latch(.param .u64 at, .param .u64 out) {
  .reg .u64 %rd<5>; .reg .u32 %r; .reg .pred %p;
  ld.param.u64 %rd1, [at]; ld.param.u64 %rd4, [out]; mov.u64 %rd2, %clock64;
again: nanosleep.u32 100; mov.u64 %rd3, %clock64; xor.b64 %rd2, %rd2, %rd3;
  ld.volatile.global.u32 %r, [%rd1]; setp.eq.u32 %p, %r, 0; @%p bra again;
  st.global.u64 [%rd4], %rd2; ret; }
"""


@pytest.mark.parametrize("engine", ["ref", "jit"])
def test_who_only_asks_is_answered_while_a_kernel_waits_for_the_program(engine: str,
                                                                        monkeypatch: pytest.MonkeyPatch) -> None:
  """It looks at a clock each time round, so that it never stands still."""
  monkeypatch.setenv("EMU", engine)
  client = Client()
  flag = client.handle("cuMemAllocHost_v2", ctypes.c_size_t(4096))
  word = ctypes.c_uint32.from_address(flag)
  word.value = 0
  event, at = client.handle("cuEventCreate", 0), client.alloc(8)
  client.launch(client.function(LATCH, "latch"), 1, 1, (u64(flag), u64(at)))
  client.call("cuEventRecord", u64(event), u64(0))
  for _ in range(3):
    assert client.code("cuEventQuery", u64(event)) == cuda.CUDA_ERROR_NOT_READY
    assert client.code("cuStreamQuery", u64(0)) == cuda.CUDA_ERROR_NOT_READY
  word.value = 1
  while code := client.code("cuEventQuery", u64(event)): assert code == cuda.CUDA_ERROR_NOT_READY
  assert client.code("cuStreamQuery", u64(0)) == 0 and client.get(at, np.zeros(1, np.uint64))[0]
