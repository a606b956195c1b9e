"""Calls of CUDA one by one: streams, events, graphs, modules, kernels, launches."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.mock.cuda.client import HEAD, SAXPY, WAIT, Client, u32, u64
from tests.mock.cuda.test_every_call import told, words
from tests.mock.nv.bench import cubin
from tinyhw.autogen import cuda
from tinyhw.mock.cuda.calls import PER_THREAD, SERVED, handler_of

INVALID, HANDLE, UNSUPPORTED = (
  cuda.CUDA_ERROR_INVALID_VALUE,
  cuda.CUDA_ERROR_INVALID_HANDLE,
  cuda.CUDA_ERROR_NOT_SUPPORTED,
)
CONTEXT, NOT_FOUND, NOT_READY = cuda.CUDA_ERROR_INVALID_CONTEXT, cuda.CUDA_ERROR_NOT_FOUND, cuda.CUDA_ERROR_NOT_READY
NON_BLOCKING = cuda.CU_STREAM_NON_BLOCKING


@pytest.fixture
def client() -> Iterator[Client]:
  client = Client("sm_90,sm_86")
  yield client
  client.machine.close()


# ---- streams and events


def blocked(c: Client, flags: int = NON_BLOCKING) -> tuple[int, int]:
  """(a stream whose first job waits for a word to be 7, the word's address)."""
  at = c.alloc(4)
  c.call("cuMemsetD32_v2", u64(at), 0, ctypes.c_size_t(1))
  stream = c.handle("cuStreamCreate", flags)
  assert c.launch(c.function(WAIT, "wait"), 1, 1, [u64(at), u32(7)], stream) == 0
  return stream, at


def free(c: Client, at: int) -> None:
  other = c.handle("cuStreamCreate", NON_BLOCKING)
  c.call("cuMemsetD32Async", u64(at), 7, ctypes.c_size_t(1), u64(other))


def test_what_a_stream_says(client: Client) -> None:
  c, out = client, ctypes.c_uint64()
  two = c.handle("cuCtxCreate_v2", 0, 1)
  for flags in (0, NON_BLOCKING):
    plain = c.handle("cuStreamCreate", flags)
    first = c.handle("cuStreamCreateWithPriority", flags, -5)
    for stream in (plain, first):
      got, priority = ctypes.c_uint(9), ctypes.c_int(9)
      c.call("cuStreamGetFlags", u64(stream), ctypes.byref(got))
      c.call("cuStreamGetPriority", u64(stream), ctypes.byref(priority))
      c.call("cuStreamGetCtx", u64(stream), ctypes.byref(out))
      assert (got.value, priority.value, out.value) == (flags, 0 if stream == plain else -5, two)
    ids = []
    for stream in (plain, first, 0):
      c.call("cuStreamGetId", u64(stream), ctypes.byref(out))
      ids.append(out.value)
    assert len(set(ids)) == 3
  for flags in (2, 4, 3):
    assert c.code("cuStreamCreate", ctypes.byref(out), flags) == INVALID
  for name in ("cuStreamGetFlags", "cuStreamGetPriority", "cuStreamGetId", "cuStreamGetCtx"):
    assert c.code(name, u64(5), ctypes.byref(out)) == HANDLE


def test_streams_are_asked_and_waited_for(client: Client) -> None:
  c = client
  stream, at = blocked(c)
  event = c.handle("cuEventCreate", 0)
  assert c.code("cuEventQuery", u64(event)) == 0
  c.call("cuEventRecord", u64(event), u64(stream))
  assert c.code("cuStreamQuery", u64(stream)) == c.code("cuEventQuery", u64(event)) == NOT_READY
  free(c, at)
  c.call("cuStreamSynchronize", u64(stream))
  assert c.code("cuStreamQuery", u64(stream)) == c.code("cuEventQuery", u64(event)) == 0
  stream, at = blocked(c)
  assert c.code("cuStreamSynchronize", u64(stream)) == cuda.CUDA_ERROR_LAUNCH_TIMEOUT
  assert "never ends" in words(c) or "CUDA_ERROR_LAUNCH_TIMEOUT" in words(c)


def test_who_asks_again_and_again_need_not_wait(client: Client) -> None:
  """A program may poll an event or a stream, and call nothing else."""
  c = client
  function, at = c.function(WAIT, "put"), c.alloc(4)
  stream, event = c.handle("cuStreamCreate", 1), c.handle("cuEventCreate", 0)
  for name, asked in (("cuEventQuery", event), ("cuStreamQuery", stream)):
    assert c.launch(function, 1, 32, [u64(at), u32(7)], stream) == 0
    c.call("cuEventRecord", u64(event), u64(stream))
    assert any(c.code(name, u64(asked)) == 0 for _ in range(100))


def test_a_stream_that_is_destroyed_does_what_was_queued(client: Client) -> None:
  c = client
  at, stream = c.alloc(4), c.handle("cuStreamCreate", NON_BLOCKING)
  count = len(c.machine.streams)
  c.call("cuMemsetD32Async", u64(at), 5, ctypes.c_size_t(1), u64(stream))
  c.call("cuStreamDestroy_v2", u64(stream))
  assert c.code("cuStreamQuery", u64(stream)) == c.code("cuStreamDestroy_v2", u64(stream)) == HANDLE
  c.call("cuCtxSynchronize")
  assert c.get(at, np.zeros(1, np.uint32)) == 5 and len(c.machine.streams) == count - 1


def test_each_thread_may_have_a_stream_of_its_own(client: Client) -> None:
  c = client
  own, at = u64(cuda.CU_STREAM_PER_THREAD), client.alloc(8)
  ids: list[int] = []

  def use(place: int, value: int) -> None:
    c.call("cuCtxSetCurrent", u64(client.context))
    c.call("cuMemsetD32Async", u64(place), value, ctypes.c_size_t(1), own)
    out = ctypes.c_uint64()
    for _ in range(2):
      c.call("cuStreamGetId", own, ctypes.byref(out))
      ids.append(out.value)
    c.call("cuStreamSynchronize", own)

  use(at, 3)
  thread = threading.Thread(target=use, args=(at + 4, 4))
  thread.start()
  thread.join()
  assert ids[0] == ids[1] != ids[2] == ids[3] and c.get(at, np.zeros(2, np.uint32)).tolist() == [3, 4]


def test_functions_of_the_threads_own_default_stream(client: Client) -> None:
  """Names in _ptsz and _ptds are the functions that they begin with, and their stream 0 is the thread's."""
  c, out = client, ctypes.c_uint64()
  named = [n for n in cuda.FUNCTIONS if n.endswith(PER_THREAD)]
  assert len(named) > 90 and all(handler_of(n)[0] is SERVED.get(n, SERVED.get(n[:-5])) for n in named)
  ids = []
  for name, stream in (
    ("cuStreamGetId_ptsz", 0),
    ("cuStreamGetId", cuda.CU_STREAM_PER_THREAD),
    ("cuStreamGetId", 0),
    ("cuStreamGetId_ptsz", cuda.CU_STREAM_LEGACY),
  ):
    c.call(name, u64(stream), ctypes.byref(out))
    ids.append(out.value)
  assert ids[0] == ids[1] != ids[2] == ids[3]
  at, data = c.alloc(16), np.arange(4, dtype=np.uint32)
  c.call("cuMemcpyHtoD_v2_ptds", u64(at), data.ctypes.data, ctypes.c_size_t(16))
  c.call("cuMemsetD32Async_ptsz", u64(at), 9, ctypes.c_size_t(1), u64(0))
  c.call("cuStreamSynchronize_ptsz", u64(0))
  assert c.get(at, data).tolist() == [9, 1, 2, 3]


def test_events_are_of_their_context(client: Client) -> None:
  c, out = client, ctypes.c_float()
  known = cuda.CU_EVENT_BLOCKING_SYNC | cuda.CU_EVENT_DISABLE_TIMING | cuda.CU_EVENT_INTERPROCESS
  assert known == 7 and c.code("cuEventCreate", ctypes.byref(u64(0)), 8) == INVALID
  plain, untimed, fresh = (
    c.handle("cuEventCreate", f) for f in (0, cuda.CU_EVENT_DISABLE_TIMING, cuda.CU_EVENT_BLOCKING_SYNC)
  )
  for event in (plain, untimed):
    c.call("cuEventRecord", u64(event), u64(0))
  c.call("cuEventSynchronize", u64(plain))
  for name in ("cuEventElapsedTime", "cuEventElapsedTime_v2"):
    for a, b in ((plain, untimed), (untimed, plain), (plain, fresh), (fresh, plain)):
      assert c.code(name, ctypes.byref(out), u64(a), u64(b)) == HANDLE
    assert c.code(name, ctypes.byref(out), u64(plain), u64(plain)) == 0 and out.value == 0
  stream, at = blocked(c)
  c.call("cuEventRecordWithFlags", u64(fresh), u64(stream), 0)
  assert c.code("cuEventElapsedTime", ctypes.byref(out), u64(plain), u64(fresh)) == NOT_READY
  free(c, at)
  c.call("cuEventSynchronize", u64(fresh))
  c.call("cuEventDestroy_v2", u64(fresh))
  for name in ("cuEventDestroy_v2", "cuEventQuery", "cuEventSynchronize"):
    assert c.code(name, u64(fresh)) == HANDLE
  c.handle("cuCtxCreate_v2", 0, 1)
  assert c.code("cuEventRecord", u64(plain), u64(0)) == HANDLE


# ---- graphs


def test_captures_that_there_are_not(client: Client) -> None:
  c, out = client, ctypes.c_uint64()
  one, two = (c.handle("cuStreamCreate", NON_BLOCKING) for _ in range(2))
  active = ctypes.c_int(9)
  c.call("cuStreamIsCapturing", u64(one), ctypes.byref(active))
  assert active.value == cuda.CU_STREAM_CAPTURE_STATUS_NONE
  assert c.code("cuStreamBeginCapture_v2", u64(0), 0) == cuda.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
  assert c.code("cuStreamEndCapture", u64(one), ctypes.byref(out)) == cuda.CUDA_ERROR_ILLEGAL_STATE
  c.call("cuStreamBeginCapture_v2", u64(one), 0)
  c.call("cuStreamIsCapturing", u64(one), ctypes.byref(active))
  assert active.value == cuda.CU_STREAM_CAPTURE_STATUS_ACTIVE
  assert c.code("cuStreamBeginCapture_v2", u64(one), 0) == cuda.CUDA_ERROR_ILLEGAL_STATE
  assert c.code("cuStreamSynchronize", u64(one)) == cuda.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
  outside, inside = (c.handle("cuEventCreate", 0) for _ in range(2))
  c.call("cuEventRecord", u64(outside), u64(two))
  assert c.code("cuStreamWaitEvent", u64(one), u64(outside), 0) == cuda.CUDA_ERROR_STREAM_CAPTURE_ISOLATION
  c.call("cuStreamBeginCapture_v2", u64(two), 0)
  c.call("cuEventRecord", u64(inside), u64(one))
  assert c.code("cuStreamWaitEvent", u64(two), u64(inside), 0) == cuda.CUDA_ERROR_STREAM_CAPTURE_MERGE
  for stream in (one, two):
    c.call("cuStreamEndCapture", u64(stream), ctypes.byref(out))


def test_a_joined_capture_has_all_the_work(client: Client) -> None:
  """A fork of three jobs in a second stream, joined again: the graph has each, and runs them in order."""
  c, out = client, ctypes.c_uint64()
  at = c.alloc(4)
  one, two = (c.handle("cuStreamCreate", NON_BLOCKING) for _ in range(2))
  add, first, last = c.function(WAIT, "add"), c.handle("cuEventCreate", 0), c.handle("cuEventCreate", 0)
  c.call("cuStreamBeginCapture_v2", u64(one), 0)
  c.call("cuMemsetD32Async", u64(at), 1, ctypes.c_size_t(1), u64(one))
  c.call("cuEventRecord", u64(first), u64(one))
  c.call("cuStreamWaitEvent", u64(two), u64(first), 0)
  for n in (1, 2, 3):
    assert c.launch(add, 1, 1, [u64(at), u32(n)], two) == 0
  assert c.code("cuStreamEndCapture", u64(two), ctypes.byref(out)) == cuda.CUDA_ERROR_ILLEGAL_STATE
  c.call("cuEventRecord", u64(last), u64(two))
  c.call("cuStreamWaitEvent", u64(one), u64(last), 0)
  c.call("cuStreamEndCapture", u64(one), ctypes.byref(out))
  graph, count = out.value, ctypes.c_size_t()
  c.call("cuGraphGetNodes", u64(graph), None, ctypes.byref(count))
  assert count.value == 4
  ready = c.handle("cuGraphInstantiateWithFlags", u64(graph), u64(0))
  c.call("cuGraphUpload", u64(ready), u64(one))
  c.call("cuGraphLaunch", u64(ready), u64(one))
  c.call("cuStreamSynchronize", u64(one))
  assert c.get(at, np.zeros(1, np.uint32)) == ((1 * 3 + 1) * 3 + 2) * 3 + 3
  c.call("cuStreamBeginCapture_v2", u64(one), 0)
  assert c.code("cuGraphLaunch", u64(ready), u64(one)) == cuda.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
  c.call("cuGraphExecDestroy", u64(ready))
  for name in ("cuGraphLaunch", "cuGraphUpload"):
    assert c.code(name, u64(ready), u64(two)) == HANDLE
  assert c.code("cuGraphExecDestroy", u64(ready)) == HANDLE


def kernel_node(function: int, at: int, value: int) -> tuple[Any, list[Any]]:
  """(the parameters of a node that runs `add`, what they point to)."""
  given = [u64(at), u32(value)]
  places = (ctypes.c_void_p * 2)(*(ctypes.addressof(g) for g in given))
  p = cuda.CUDA_KERNEL_NODE_PARAMS_v2(
    func=function,
    gridDimX=1,
    gridDimY=1,
    gridDimZ=1,
    blockDimX=1,
    blockDimY=1,
    blockDimZ=1,
    kernelParams=ctypes.addressof(places),
  )
  return p, [given, places]


@pytest.mark.parametrize("pitch", [0, 16])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_fills_of_a_graph_have_lines(client: Client, pitch: int, size: int) -> None:
  """Without a pitch one lies behind the other."""
  c = client
  at, graph = c.alloc(48), c.handle("cuGraphCreate", 0)
  c.put(at, np.zeros(48, np.uint8))
  fill = cuda.CUDA_MEMSET_NODE_PARAMS_v1(dst=at, pitch=pitch, value=0xA1, elementSize=size, width=3, height=3)
  c.handle("cuGraphAddMemsetNode", u64(graph), None, ctypes.c_size_t(0), ctypes.byref(fill), u64(c.context))
  c.call("cuGraphLaunch", u64(c.handle("cuGraphInstantiateWithFlags", u64(graph), u64(0))), u64(0))
  c.call("cuCtxSynchronize")
  wanted = np.zeros(48, np.uint8)
  for line in range(3):
    first = line * (pitch or 3 * size)
    wanted[first : first + 3 * size : size] = 0xA1
  assert (c.get(at, np.zeros(48, np.uint8)) == wanted).all()


def test_graphs_by_hand(client: Client) -> None:
  c, out = client, ctypes.c_uint64()
  at, add = c.alloc(4), c.function(WAIT, "add")
  assert c.code("cuGraphCreate", ctypes.byref(out), 1) == INVALID
  graph, other = c.handle("cuGraphCreate", 0), c.handle("cuGraphCreate", 0)
  fill = cuda.CUDA_MEMSET_NODE_PARAMS_v1(dst=at, value=2, elementSize=4, width=1, height=1)
  first = c.handle("cuGraphAddMemsetNode", u64(graph), None, ctypes.c_size_t(0), ctypes.byref(fill), u64(c.context))
  fill.elementSize = 3
  assert (
    c.code("cuGraphAddMemsetNode", ctypes.byref(out), u64(graph), None, ctypes.c_size_t(0), ctypes.byref(fill), u64(0))
    == INVALID
  )
  p, kept = kernel_node(add, at, 1)
  second = c.handle(
    "cuGraphAddKernelNode_v2", u64(graph), ctypes.byref(u64(first)), ctypes.c_size_t(1), ctypes.byref(p)
  )
  empty = c.handle("cuGraphAddEmptyNode", u64(graph), None, ctypes.c_size_t(0))
  c.call("cuGraphAddDependencies", u64(graph), ctypes.byref(u64(second)), ctypes.byref(u64(empty)), ctypes.c_size_t(1))
  foreign = c.handle("cuGraphAddEmptyNode", u64(other), None, ctypes.c_size_t(0))
  assert (
    c.code("cuGraphAddEmptyNode", ctypes.byref(out), u64(graph), ctypes.byref(u64(foreign)), ctypes.c_size_t(1))
    == INVALID
  )
  kinds = {
    first: cuda.CU_GRAPH_NODE_TYPE_MEMSET,
    second: cuda.CU_GRAPH_NODE_TYPE_KERNEL,
    empty: cuda.CU_GRAPH_NODE_TYPE_EMPTY,
  }
  kind = ctypes.c_int()
  for node, wanted in kinds.items():
    c.call("cuGraphNodeGetType", u64(node), ctypes.byref(kind))
    assert kind.value == wanted
  for room in (1, 2, 3, 5):
    nodes, count = (ctypes.c_uint64 * 5)(), ctypes.c_size_t(room)
    c.call("cuGraphGetNodes", u64(graph), nodes, ctypes.byref(count))
    assert count.value == min(room, 3) and [*nodes] == [first, second, empty][:room] + [0] * (5 - min(room, 3))

  def launched(ready: int) -> int:
    c.call("cuGraphLaunch", u64(ready), u64(0))
    c.call("cuCtxSynchronize")
    return int(c.get(at, np.zeros(1, np.uint32))[0])

  ready = c.handle("cuGraphInstantiateWithFlags", u64(graph), u64(0))
  assert launched(ready) == 7
  p, kept = kernel_node(add, at, 10)
  c.call("cuGraphKernelNodeSetParams_v2", u64(second), ctypes.byref(p))
  assert launched(ready) == 7  # an instance keeps what it was made of
  assert launched(c.handle("cuGraphInstantiateWithFlags", u64(graph), u64(0))) == 16
  p, kept = kernel_node(add, at, 20)
  c.call("cuGraphExecKernelNodeSetParams_v2", u64(ready), u64(second), ctypes.byref(p))
  assert launched(ready) == 26 and kept
  for node in (first, foreign):
    assert c.code("cuGraphExecKernelNodeSetParams_v2", u64(ready), u64(node), ctypes.byref(p)) == INVALID
  c.call("cuGraphAddDependencies", u64(graph), ctypes.byref(u64(empty)), ctypes.byref(u64(first)), ctypes.c_size_t(1))
  assert c.code("cuGraphInstantiateWithFlags", ctypes.byref(out), u64(graph), u64(0)) == INVALID and "a cycle" in words(
    c
  )
  own = c.handle("cuCtxCreate_v2", 0, 1)
  p, kept = kernel_node(c.function(WAIT, "add"), at, 1)
  assert c.code("cuGraphExecKernelNodeSetParams_v2", u64(ready), u64(second), ctypes.byref(p)) == INVALID
  assert "another context" in words(c)
  c.call("cuCtxDestroy_v2", u64(own))
  c.call("cuGraphDestroy", u64(graph))
  for name, handle in (("cuGraphDestroy", graph), ("cuGraphNodeGetType", first)):
    assert c.code(name, u64(handle), *([ctypes.byref(kind)] if handle == first else [])) == HANDLE


# ---- modules

WRONG = HEAD + ".visible .entry k() { add.u32 %r1 %r2; }"


def options(*pairs: tuple[int, int]) -> tuple[int, Any, Any]:
  kinds, values = (
    (ctypes.c_int * len(pairs))(*(a for a, _ in pairs)),
    (ctypes.c_uint64 * len(pairs))(*(b for _, b in pairs)),
  )
  return len(pairs), kinds, values


def test_errors_of_a_module_are_told_where_they_are_wanted(client: Client) -> None:
  c, out = client, ctypes.c_uint64()
  for room in (0, 1, 10, 400):
    buffer = ctypes.create_string_buffer(b"\xee" * 400, 400)
    count, kinds, values = options(
      (cuda.CU_JIT_ERROR_LOG_BUFFER, ctypes.addressof(buffer)), (cuda.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, room)
    )
    empty = (None, None, 0)
    for name, arguments in (
      ("cuModuleLoadDataEx", (count, kinds, values)),
      ("cuLibraryLoadData", (kinds, values, count, *empty)),
    ):
      buffer.raw = b"\xee" * 400
      assert c.code(name, ctypes.byref(out), WRONG.encode(), *arguments) == cuda.CUDA_ERROR_INVALID_PTX
      text = b"PTX line 4, column 35: ',' or ';' behind an operand of add.u32 expected, found '%r2'"
      part = text[: room - 1] + b"\0" if room else b""
      assert buffer.raw == part.ljust(400, b"\xee"), (name, room)
  for pairs in (
    (),
    ((cuda.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 100),),
    ((cuda.CU_JIT_ERROR_LOG_BUFFER, ctypes.addressof(buffer)),),
  ):
    assert (
      c.code("cuModuleLoadDataEx", ctypes.byref(out), WRONG.encode(), *options(*pairs)) == cuda.CUDA_ERROR_INVALID_PTX
    )
  good = options(
    (cuda.CU_JIT_ERROR_LOG_BUFFER, ctypes.addressof(buffer)), (cuda.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 400)
  )
  c.call("cuModuleLoadDataEx", ctypes.byref(out), SAXPY.encode(), *good)
  narrow = b".version 8.0 .target sm_80 .address_size 32"
  assert c.code("cuModuleLoadData", ctypes.byref(out), narrow) == cuda.CUDA_ERROR_INVALID_PTX


def test_modules_of_every_form(client: Client, tmp_path: Path) -> None:
  """PTX as text and in a file, an ELF that carries it; machine code is refused, and a fat binary of nothing."""
  c, out = client, ctypes.c_uint64()
  image = cubin(SAXPY, "saxpy", size=24)
  (tmp_path / "a.ptx").write_text(SAXPY)
  (tmp_path / "a.cubin").write_bytes(image)
  x = c.alloc(8)
  for load, source in (
    ("cuModuleLoadData", SAXPY.encode()),
    ("cuModuleLoadFatBinary", SAXPY.encode()),
    ("cuModuleLoadData", image),
    ("cuModuleLoad", str(tmp_path / "a.ptx").encode()),
    ("cuModuleLoad", str(tmp_path / "a.cubin").encode()),
  ):
    module = c.handle(load, source)
    function = c.handle("cuModuleGetFunction", u64(module), b"saxpy")
    c.put(x, np.array([2, 1], np.float32))
    assert c.launch(function, 1, 1, [u64(x), u64(x + 4), ctypes.c_float(3), u32(1)]) == 0
    assert c.get(x, np.zeros(2, np.float32)).tolist() == [2, 7]
    assert told(c, ctypes.c_uint, "cuModuleGetFunctionCount", u64(module)) == 1
    c.call("cuModuleUnload", u64(module))
    for name, more in (("cuModuleUnload", ()), ("cuModuleGetFunctionCount", None)):
      assert c.code(name, *((u64(module),) if more is not None else (ctypes.byref(out), u64(module)))) == HANDLE
    assert c.launch(function, 1, 1, [u64(x), u64(x + 4), ctypes.c_float(3), u32(1)]) == HANDLE
  assert c.code("cuModuleLoad", ctypes.byref(out), str(tmp_path / "none").encode()) == cuda.CUDA_ERROR_FILE_NOT_FOUND
  assert (
    c.code("cuModuleLoadData", ctypes.byref(out), image.replace(b".tinyhw.ptx", b".tinyhw.pty"))
    == cuda.CUDA_ERROR_NO_BINARY_FOR_GPU
  )
  for magic, code in ((0x466243B1, INVALID), (0xBA55ED50, cuda.CUDA_ERROR_INVALID_IMAGE)):
    assert c.code("cuModuleLoadData", ctypes.byref(out), magic.to_bytes(4, "little") + bytes(64)) == code
  assert c.code("cuModuleLoadData", ctypes.byref(out), b"\x7fELF" + bytes(60)) == cuda.CUDA_ERROR_INVALID_IMAGE
  assert told(c, ctypes.c_int, "cuModuleGetLoadingMode") == 1


@pytest.mark.parametrize(
  ("target", "first", "second"),
  [
    ("sm_90", 0, 209),
    ("sm_90a", 0, 209),
    ("sm_86", 0, 0),
    ("sm_86a", 218, 218),
    ("sm_80", 0, 0),
    ("sm_100", 209, 209),
    ("sm_100a", 209, 209),
  ],
)
def test_which_cards_run_which_targets(client: Client, target: str, first: int, second: int) -> None:
  out, text = (
    ctypes.c_uint64(),
    f".version 8.6\n.target {target}\n.address_size 64\n.visible .entry k() {{ ret; }}".encode(),
  )
  assert (cuda.CUDA_ERROR_NO_BINARY_FOR_GPU, cuda.CUDA_ERROR_INVALID_PTX) == (209, 218)
  assert client.code("cuModuleLoadData", ctypes.byref(out), text) == first
  client.handle("cuCtxCreate_v2", 0, 1)
  assert client.code("cuModuleLoadData", ctypes.byref(out), text) == second


KERNELS = (
  HEAD.replace("sm_80", "sm_75")
  + """
.visible .global .align 4 .b8 table[12];
.visible .entry plain() { .local .b8 a[20]; .shared .b8 s[3000]; .reg .b32 %r; mov.u32 %r, s; mov.u32 %r, a; ret; }
.visible .entry most() .maxntid 4, 5, 6 { ret; }
.visible .entry exact() .reqntid 64 { ret; }
"""
)


def test_what_is_known_of_a_kernel(client: Client) -> None:
  c, out = client, ctypes.c_int()
  module = c.handle("cuModuleLoadData", KERNELS.encode())
  plain, most, exact = (c.handle("cuModuleGetFunction", u64(module), n) for n in (b"plain", b"most", b"exact"))

  def asked(function: int, name: str) -> int:
    return int(told(c, ctypes.c_int, "cuFuncGetAttribute", getattr(cuda, f"CU_FUNC_ATTRIBUTE_{name}"), u64(function)))

  assert [asked(f, "MAX_THREADS_PER_BLOCK") for f in (plain, most, exact)] == [1024, 120, 64]
  wanted = {
    "SHARED_SIZE_BYTES": 3000,
    "CONST_SIZE_BYTES": 0,
    "LOCAL_SIZE_BYTES": 32,
    "NUM_REGS": 32,
    "PTX_VERSION": 75,
    "BINARY_VERSION": 90,
    "CACHE_MODE_CA": 0,
    "MAX_DYNAMIC_SHARED_SIZE_BYTES": 49152 - 3000,
    "PREFERRED_SHARED_MEMORY_CARVEOUT": -1,
    "CLUSTER_SIZE_MUST_BE_SET": 0,
  }
  assert {n: asked(plain, n) for n in wanted} == wanted
  assert c.code("cuFuncGetAttribute", ctypes.byref(out), 99, u64(plain)) == UNSUPPORTED
  dynamic, carve = (
    cuda.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
    cuda.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
  )
  for value in (0, 60000, (227 << 10) - 3000):
    assert c.launch(plain, 1, 1, [], 0, value) == (0 if value == 0 else INVALID)
    c.call("cuFuncSetAttribute", u64(plain), dynamic, value)
    assert asked(plain, "MAX_DYNAMIC_SHARED_SIZE_BYTES") == max(value, 49152 - 3000)
    assert (
      c.launch(plain, 1, 1, [], 0, max(value, 49152 - 3000)) == 0
      and c.launch(plain, 1, 1, [], 0, max(value, 49152 - 3000) + 1) == INVALID
    )
  for value in (-1, (227 << 10) - 2999):
    assert c.code("cuFuncSetAttribute", u64(plain), dynamic, value) == INVALID
  c.call("cuFuncSetAttribute", u64(plain), carve, 50)
  assert (
    asked(plain, "PREFERRED_SHARED_MEMORY_CARVEOUT") == 50 and asked(most, "PREFERRED_SHARED_MEMORY_CARVEOUT") == -1
  )
  policy = "CLUSTER_SCHEDULING_POLICY_PREFERENCE"
  c.call("cuFuncSetAttribute", u64(plain), getattr(cuda, f"CU_FUNC_ATTRIBUTE_{policy}"), 2)
  assert asked(plain, policy) == 2 and asked(most, policy) == 0
  assert c.code("cuFuncSetAttribute", u64(plain), cuda.CU_FUNC_ATTRIBUTE_NUM_REGS, 1) == UNSUPPORTED
  for name in ("cuFuncSetCacheConfig", "cuFuncSetSharedMemConfig"):
    c.call(name, u64(plain), 1)
    assert c.code(name, u64(5), 1) == HANDLE
  assert c.handle("cuFuncGetModule", u64(plain)) == module
  assert c.code("cuModuleGetFunction", ctypes.byref(u64(0)), u64(module), b"none") == NOT_FOUND
  assert (
    c.code("cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(out), u64(plain), 0, ctypes.c_size_t(0))
    == INVALID
  )
  at, size = ctypes.c_uint64(), ctypes.c_size_t()
  c.call("cuModuleGetGlobal_v2", ctypes.byref(at), ctypes.byref(size), u64(module), b"table")
  assert size.value == 12 and at.value and c.get(at.value, np.zeros(3, np.uint32)).tolist() == [0, 0, 0]
  c.call("cuModuleGetGlobal_v2", None, None, u64(module), b"table")
  assert c.code("cuModuleGetGlobal_v2", ctypes.byref(at), None, u64(module), b"none") == NOT_FOUND


def test_kernels_of_a_library(client: Client) -> None:
  c, out = client, ctypes.c_uint64()
  library = c.handle("cuLibraryLoadData", KERNELS.encode(), None, None, 0, None, None, 0)
  kernel = c.handle("cuLibraryGetKernel", u64(library), b"plain")
  assert c.handle("cuLibraryGetKernel", u64(library), b"plain") == kernel
  assert c.code("cuLibraryGetKernel", ctypes.byref(out), u64(library), b"none") == NOT_FOUND
  module = c.handle("cuLibraryGetModule", u64(library))
  assert c.handle("cuLibraryGetGlobal", None, u64(library), b"table") == c.handle(
    "cuModuleGetGlobal_v2", None, u64(module), b"table")
  assert c.code("cuLibraryGetGlobal", ctypes.byref(out), None, u64(library), b"none") == NOT_FOUND
  kernels, inside = ctypes.c_uint(), ctypes.c_uint()
  c.call("cuLibraryGetKernelCount", ctypes.byref(kernels), u64(library))
  c.call("cuModuleGetFunctionCount", ctypes.byref(inside), u64(module))
  assert kernels.value == inside.value > 0
  c.call("cuKernelSetCacheConfig", u64(kernel), cuda.CU_FUNC_CACHE_PREFER_L1, 0)
  function = c.handle("cuKernelGetFunction", u64(kernel))
  assert (
    function == c.handle("cuModuleGetFunction", u64(module), b"plain")
    and c.handle("cuFuncGetModule", u64(kernel)) == module
  )
  shared, value = cuda.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, ctypes.c_int()
  c.call("cuKernelSetAttribute", shared, 50000, u64(kernel), 0)
  c.call("cuKernelGetAttribute", ctypes.byref(value), shared, u64(kernel), 0)
  assert value.value == 50000 and c.launch(kernel, 1, 1, []) == 0
  c.handle("cuCtxCreate_v2", 0, 1)
  assert (
    c.handle("cuLibraryGetModule", u64(library)) != module and c.handle("cuKernelGetFunction", u64(kernel)) != function
  )
  assert c.launch(function, 1, 1, []) == HANDLE
  c.call("cuLibraryUnload", u64(library))
  for name, handle in (("cuLibraryGetModule", library), ("cuKernelGetFunction", kernel)):
    assert c.code(name, ctypes.byref(out), u64(handle)) == HANDLE
  assert c.code("cuLibraryUnload", u64(library)) == HANDLE


def test_parameters_of_a_launch_in_one_piece(client: Client) -> None:
  """`extra`: the bytes of all parameters, with their size, and an end."""
  c = client
  at, put = c.alloc(4), c.function(WAIT, "put")
  data = (ctypes.c_uint8 * 16)(*at.to_bytes(8, "little"), *(77).to_bytes(4, "little"))
  pointer, size = cuda.CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT, cuda.CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT

  def launch(length: int, *given: int) -> int:
    count = ctypes.c_size_t(length)
    words_ = given or (pointer, ctypes.addressof(data), size, ctypes.addressof(count), 0)
    extra = (ctypes.c_uint64 * 5)(*words_)
    return c.code("cuLaunchKernel", u64(put), 1, 1, 1, 1, 1, 1, 0, u64(0), None, extra)

  for length, code in ((12, 0), (16, 0), (11, INVALID), (1 << 20, INVALID)):
    c.call("cuMemsetD32_v2", u64(at), 0, ctypes.c_size_t(1))
    assert launch(length) == code
    assert c.get(at, np.zeros(1, np.uint32)) == (77 if not code else 0)
  assert launch(12, pointer, ctypes.addressof(data), pointer, ctypes.addressof(data), 0) == INVALID


def test_attributes_of_a_launch(client: Client) -> None:
  c = client
  at, put = c.alloc(4), c.function(WAIT, "put")
  given = [u64(at), u32(5)]
  places = (ctypes.c_void_p * 2)(*(ctypes.addressof(g) for g in given))

  def launch(function: int, kind: int, value: tuple[int, int, int] = (0, 0, 0), grid: int = 4) -> int:
    attribute = cuda.CUlaunchAttribute(id=kind)
    attribute.value.clusterDim.x, attribute.value.clusterDim.y, attribute.value.clusterDim.z = value
    config = cuda.CUlaunchConfig(
      gridDimX=grid,
      gridDimY=1,
      gridDimZ=1,
      blockDimX=1,
      blockDimY=1,
      blockDimZ=1,
      attrs=ctypes.addressof(attribute),
      numAttrs=1,
    )
    return c.code("cuLaunchKernelEx", ctypes.byref(config), u64(function), places, None)

  cluster = cuda.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
  for size, code in (((1, 1, 1), 0), ((4, 1, 1), 0), ((3, 1, 1), INVALID)):
    assert launch(put, cluster, size) == code
  assert (
    launch(put, cluster, (8, 1, 1), 16) == 0
    and launch(put, cluster, (16, 1, 1), 16) == cuda.CUDA_ERROR_INVALID_CLUSTER_SIZE
  )
  for name in (
    "IGNORE",
    "PRIORITY",
    "ACCESS_POLICY_WINDOW",
    "SYNCHRONIZATION_POLICY",
    "PREFERRED_SHARED_MEMORY_CARVEOUT",
    "PROGRAMMATIC_STREAM_SERIALIZATION",
    "MEM_SYNC_DOMAIN",
    "COOPERATIVE",
    "PREFERRED_CLUSTER_DIMENSION",
    "CLUSTER_SCHEDULING_POLICY_PREFERENCE",
  ):
    assert launch(put, getattr(cuda, f"CU_LAUNCH_ATTRIBUTE_{name}")) == 0, name
  assert launch(put, cuda.CU_LAUNCH_ATTRIBUTE_COOPERATIVE, (1, 0, 0)) == 0
  assert launch(put, cuda.CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING) == UNSUPPORTED
  c.handle("cuCtxCreate_v2", 0, 1)
  old = c.function(WAIT, "put")
  assert launch(old, cluster, (2, 1, 1)) == UNSUPPORTED and launch(old, cluster, (1, 1, 1)) == 0
