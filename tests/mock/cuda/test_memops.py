"""Values that streams write to memory and wait for there."""
from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.mock.cuda.client import WAIT, Client, u32, u64
from tests.strength import seeds
from tinyhw.autogen import cuda
from tinyhw.mock.cuda.streams.memops import met

GEQ, EQ, AND, NOR = (cuda.CU_STREAM_WAIT_VALUE_GEQ, cuda.CU_STREAM_WAIT_VALUE_EQ, cuda.CU_STREAM_WAIT_VALUE_AND,
                     cuda.CU_STREAM_WAIT_VALUE_NOR)


@pytest.mark.parametrize(("how", "seen", "value", "size", "over"), [
  (GEQ, 5, 5, 4, True), (GEQ, 4, 5, 4, False), (GEQ, 1, 0xFFFFFFFF, 4, True), (GEQ, 1, 0xFFFFFFFF, 8, False),
  (GEQ, 0x80000000, 0, 4, False), (EQ, 5, 5, 4, True), (EQ, 6, 5, 4, False), (AND, 6, 4, 4, True),
  (AND, 2, 4, 4, False), (NOR, 0xFFFF0000, 0x0000FFFF, 4, False), (NOR, 0xFFFF0000, 0x0000FFFF, 8, True),
  (NOR, 0, 1, 4, True)])
def test_comparisons_are_those_of_the_header(how: int, seen: int, value: int, size: int, over: bool) -> None:
  """CUstreamWaitValue_flags: (int)(*addr - value) >= 0, ==, & != 0, ~( | ) != 0, in so many bits."""
  assert met(how, seen, value, size) is over


@pytest.mark.parametrize("seed", seeds(range(2)))
@pytest.mark.parametrize("who", ["a stream", "a kernel", "the host"])
def test_a_stream_goes_on_when_the_value_is_there(who: str, seed: int) -> None:
  c = Client(seed=seed)
  first, second = (c.handle("cuStreamCreate", cuda.CU_STREAM_NON_BLOCKING) for _ in "ab")
  out = c.alloc(64)
  flag = c.handle("cuMemHostAlloc", ctypes.c_size_t(64), 0) if who == "the host" else c.alloc(64)
  c.call("cuMemsetD32_v2", flag, 0, ctypes.c_size_t(16))
  c.call("cuMemsetD32_v2", out, 0, ctypes.c_size_t(16))
  c.call("cuCtxSynchronize")
  c.call("cuStreamWaitValue32_v2", u64(second), u64(flag), 7, GEQ)
  c.call("cuMemcpyDtoDAsync_v2", u64(out + 4), u64(out), ctypes.c_size_t(4), u64(second))
  c.call("cuMemsetD32Async", u64(out), 3, ctypes.c_size_t(1), u64(first))
  assert c.code("cuStreamQuery", u64(second)) == cuda.CUDA_ERROR_NOT_READY
  if who == "a stream": c.call("cuStreamWriteValue32_v2", u64(first), u64(flag), 7, 0)
  elif who == "a kernel": assert c.launch(c.function(WAIT, "put"), 1, 1, [u64(flag), u32(9)], first) == 0
  else:
    c.call("cuStreamSynchronize", u64(first))
    ctypes.c_uint32.from_address(flag).value = 8
  c.call("cuStreamSynchronize", u64(second))
  assert c.get(out, np.zeros(2, np.uint32)).tolist() == [3, 3]


def test_a_batch_is_checked_as_a_whole_and_done_in_order() -> None:
  c = Client()
  stream, flag = c.handle("cuStreamCreate", cuda.CU_STREAM_NON_BLOCKING), c.alloc(64)
  c.call("cuMemsetD32_v2", flag, 0, ctypes.c_size_t(16))
  c.call("cuCtxSynchronize")
  rows = (cuda.CUstreamBatchMemOpParams * 4)()
  rows[0].writeValue = cuda.CUstreamMemOpWriteValueParams_st(operation=cuda.CU_STREAM_MEM_OP_WRITE_VALUE_32,
                                                             address=flag, value=1)
  rows[1].waitValue = cuda.CUstreamMemOpWaitValueParams_st(operation=cuda.CU_STREAM_MEM_OP_WAIT_VALUE_32, address=flag,
                                                           value=1, flags=EQ)
  rows[2].memoryBarrier = cuda.CUstreamMemOpMemoryBarrierParams_st(operation=cuda.CU_STREAM_MEM_OP_BARRIER)
  rows[3].writeValue = cuda.CUstreamMemOpWriteValueParams_st(operation=cuda.CU_STREAM_MEM_OP_WRITE_VALUE_64,
                                                             address=flag + 4, value64=2)
  assert c.code("cuStreamBatchMemOp_v2", u64(stream), 4, rows, 0) == cuda.CUDA_ERROR_INVALID_VALUE  # not aligned
  c.call("cuStreamSynchronize", u64(stream))
  assert not c.get(flag, np.zeros(4, np.uint32)).any()
  rows[3].writeValue.address = flag + 8
  c.call("cuStreamBatchMemOp_v2", u64(stream), 4, rows, 0)
  c.call("cuStreamSynchronize", u64(stream))
  assert c.get(flag, np.zeros(4, np.uint32)).tolist() == [1, 0, 2, 0]


def test_what_is_refused() -> None:
  c, flush = Client(), cuda.CU_STREAM_WAIT_VALUE_FLUSH
  flag = c.alloc(64)
  for name, address, flags, code in (
      ("cuStreamWaitValue32_v2", flag, flush, cuda.CUDA_ERROR_NOT_SUPPORTED),
      ("cuStreamWaitValue32_v2", flag, 8, cuda.CUDA_ERROR_INVALID_VALUE),
      ("cuStreamWriteValue32_v2", flag + 2, 0, cuda.CUDA_ERROR_INVALID_VALUE),
      ("cuStreamWriteValue32_v2", 0x1000, 0, cuda.CUDA_ERROR_INVALID_VALUE)):
    assert c.code(name, u64(0), u64(address), 1, flags) == code, name


def test_a_graph_waits_and_writes_each_time_that_it_runs() -> None:
  c = Client()
  stream, other = (c.handle("cuStreamCreate", cuda.CU_STREAM_NON_BLOCKING) for _ in "ab")
  flag = c.alloc(64)
  c.call("cuMemsetD32_v2", flag, 0, ctypes.c_size_t(16))
  c.call("cuCtxSynchronize")
  c.call("cuStreamBeginCapture_v2", u64(stream), 0)
  c.call("cuStreamWaitValue32_v2", u64(stream), u64(flag), 1, EQ)
  c.call("cuStreamWriteValue32_v2", u64(stream), u64(flag + 4), 5, 0)
  c.call("cuStreamWriteValue32_v2", u64(stream), u64(flag), 0, 0)
  graph = ctypes.c_uint64()
  c.call("cuStreamEndCapture", u64(stream), ctypes.byref(graph))
  ready = c.handle("cuGraphInstantiateWithFlags", graph, u64(0))
  for _ in range(2):
    c.call("cuMemsetD32_v2", flag + 4, 0, ctypes.c_size_t(1))
    c.call("cuCtxSynchronize")
    c.call("cuGraphLaunch", u64(ready), u64(stream))
    assert c.code("cuStreamQuery", u64(stream)) == cuda.CUDA_ERROR_NOT_READY
    c.call("cuStreamWriteValue32_v2", u64(other), u64(flag), 1, 0)
    c.call("cuStreamSynchronize", u64(stream))
    assert c.get(flag, np.zeros(2, np.uint32)).tolist() == [0, 5]
