"""Graphs that a program makes node by node, libraries and their kernels, and what calls say of devices and limits."""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path
from typing import Any

import numpy as np

from tests.mock.cuda.client import SAXPY, WAIT, Client, u32, u64
from tests.mock.cuda.test_tensors import aligned, encode
from tinyhw.autogen import cuda
from tinyhw.emulator.ptx.memory.tensormap import SWIZZLES, TensorMap


def error(client: Client, name: str, *arguments: Any) -> str:
  return cuda.RESULTS[client.code(name, *arguments)].removeprefix("CUDA_ERROR_")


def node(client: Client, graph: int, kind: str, after: tuple[int, ...] = (), *more: Any) -> int:
  """A new node of a graph, behind others."""
  return client.handle(f"cuGraphAdd{kind}Node", u64(graph), (ctypes.c_uint64 * max(len(after), 1))(*after),
                       ctypes.c_size_t(len(after)), *more)


class Work:
  """Parameters of a node that makes v = 3 v + value of the dword at an address; by a CUfunction or a CUkernel."""

  def __init__(self, at: int, value: int, **which: int) -> None:
    self.given = u64(at), u32(value)
    self.places = (ctypes.c_void_p * 2)(*(ctypes.addressof(g) for g in self.given))
    self.params = cuda.CUDA_KERNEL_NODE_PARAMS_v2(
      gridDimX=1, gridDimY=1, gridDimZ=1, blockDimX=1, blockDimY=1, blockDimZ=1,
      kernelParams=ctypes.addressof(self.places), **which)

  @property
  def pointer(self) -> Any: return ctypes.byref(self.params)


# ---- graphs

def test_nodes_run_in_the_order_of_their_dependencies(client: Client) -> None:
  """Added in another order: the edges say it, some of them through a node that does nothing."""
  at, function = client.alloc(4), client.function(WAIT, "add")
  library = client.handle("cuLibraryLoadData", WAIT.encode() + b"\0", None, None, 0, None, None, 0)
  kernel = client.handle("cuLibraryGetKernel", u64(library), b"add")
  graph = client.handle("cuGraphCreate", 0)
  first, last = Work(at, 5, func=function), Work(at, 7, kern=kernel)  # 3 (3 v + 5) + 7
  b, a = (client.handle("cuGraphAddKernelNode_v2", u64(graph), None, ctypes.c_size_t(0), work.pointer)
          for work in (last, first))
  fill = cuda.CUDA_MEMSET_NODE_PARAMS_v1(dst=at, pitch=4, value=2, elementSize=4, width=1, height=1)
  c = node(client, graph, "Memset", (), ctypes.byref(fill), u64(client.context))
  empty = node(client, graph, "Empty", (a,))
  one = ctypes.c_uint64 * 1
  for before, behind in ((c, a), (empty, b)):
    client.call("cuGraphAddDependencies", u64(graph), one(before), one(behind), ctypes.c_size_t(1))
  kinds = []
  for n in (a, b, c, empty):
    out = ctypes.c_int()
    client.call("cuGraphNodeGetType", u64(n), ctypes.byref(out))
    kinds.append(out.value)
  assert kinds == [cuda.CU_GRAPH_NODE_TYPE_KERNEL] * 2 + [cuda.CU_GRAPH_NODE_TYPE_MEMSET,
                                                          cuda.CU_GRAPH_NODE_TYPE_EMPTY]
  ready = client.handle("cuGraphInstantiateWithFlags", u64(graph), ctypes.c_uint64(0))
  client.call("cuGraphUpload", u64(ready), u64(0))
  for _ in range(4):
    client.call("cuGraphLaunch", u64(ready), u64(0))
    assert client.get(at, np.zeros(1, np.uint32))[0] == 3 * (3 * 2 + 5) + 7


def test_what_graphs_refuse(client: Client) -> None:
  graph, other = (client.handle("cuGraphCreate", 0) for _ in range(2))
  out, count = ctypes.c_uint64(), ctypes.c_size_t(1)
  assert error(client, "cuGraphUpload", u64(graph), u64(0)) == "INVALID_HANDLE"  # it is not instantiated
  assert error(client, "cuGraphAddEmptyNode", ctypes.byref(out), u64(graph), None, count) == "INVALID_VALUE"
  assert "a pointer is null" in client.machine.logs[-1]
  stranger = (ctypes.c_uint64 * 1)(node(client, other, "Empty"))
  assert error(client, "cuGraphAddEmptyNode", ctypes.byref(out), u64(graph), stranger, count) == "INVALID_VALUE"


# ---- libraries

def test_a_library_is_a_module_of_every_context(client: Client) -> None:
  library = client.handle("cuLibraryLoadData", SAXPY.encode() + b"\0", None, None, 0, None, None, 0)
  kernel = client.handle("cuLibraryGetKernel", u64(library), b"saxpy")
  assert client.handle("cuLibraryGetKernel", u64(library), b"saxpy") == kernel
  assert error(client, "cuLibraryGetKernel", ctypes.byref(ctypes.c_uint64()), u64(library), b"daxpy") == "NOT_FOUND"
  for card in (0, 1):
    client.call("cuCtxSetCurrent", u64(client.handle("cuDevicePrimaryCtxRetain", card)))
    x, y = client.alloc(16), client.alloc(16)
    client.put(x, np.arange(4, dtype=np.float32))
    client.put(y, np.ones(4, np.float32))
    for function in (kernel, client.handle("cuKernelGetFunction", u64(kernel))):
      assert client.launch(function, 1, 4, [u64(x), u64(y), ctypes.c_float(2), u32(4)]) == 0
    assert client.get(y, np.zeros(4, np.float32)).tolist() == [1, 5, 9, 13]
  client.call("cuLibraryUnload", u64(library))
  assert client.launch(kernel, 1, 4, [u64(x), u64(y), ctypes.c_float(2), u32(4)]) == cuda.CUDA_ERROR_INVALID_HANDLE
  assert error(client, "cuLibraryUnload", u64(library)) == "INVALID_HANDLE"


def test_a_library_that_is_no_ptx_is_refused_when_it_is_loaded(client: Client) -> None:
  text = SAXPY.replace("mov.u32 %r2, %ctaid.x;", "mov.u32 %r2 %ctaid.x;").encode() + b"\0"
  assert error(client, "cuLibraryLoadData", ctypes.byref(ctypes.c_uint64()), text, None, None, 0, None, None,
               0) == "INVALID_PTX"


# ---- kernels

def test_dynamic_shared_memory_is_asked_for_up_to_what_the_card_has(client: Client) -> None:
  function, which = client.function(WAIT, "put"), cuda.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
  at, most = client.alloc(4), 227 << 10  # sm_90
  arguments = [u64(at), u32(1)]
  assert client.launch(function, 1, 1, arguments, shared=most) == cuda.CUDA_ERROR_INVALID_VALUE
  for size in (-1, most + 1):
    assert error(client, "cuFuncSetAttribute", u64(function), which, size) == "INVALID_VALUE"
  client.call("cuFuncSetAttribute", u64(function), which, most)
  assert client.launch(function, 1, 1, arguments, shared=most) == 0


# ---- devices, limits, copies between them

def test_what_is_said_of_devices_and_limits(client: Client) -> None:
  count, size = ctypes.c_int(), ctypes.c_size_t()
  client.call("cuDeviceGetCount", ctypes.byref(count))
  assert count.value == 2
  found = []
  for limit in (cuda.CU_LIMIT_STACK_SIZE, cuda.CU_LIMIT_PRINTF_FIFO_SIZE, cuda.CU_LIMIT_MALLOC_HEAP_SIZE):
    client.call("cuCtxGetLimit", ctypes.byref(size), limit)
    found.append(size.value)
  assert found == [1 << 10, 1 << 20, 8 << 20]


def test_a_copy_between_cards_is_in_the_streams_order(client: Client) -> None:
  own, other = client.context, client.handle("cuDevicePrimaryCtxRetain", 1)
  data, at = np.arange(64, dtype=np.uint32), client.alloc(256)
  client.put(at, data)
  client.call("cuCtxSetCurrent", u64(other))
  there = client.alloc(256)
  client.call("cuMemcpyPeer", u64(there), u64(other), u64(at), u64(own), ctypes.c_size_t(256))
  assert (client.get(there, data) == data).all()
  assert error(client, "cuMemcpyPeer", u64(there), u64(other), u64(at), u64(5), ctypes.c_size_t(256)) \
      == "INVALID_CONTEXT"


def test_a_maps_swizzle_is_the_one_that_was_asked_for(client: Client) -> None:
  for swizzle, width in ((cuda.CU_TENSOR_MAP_SWIZZLE_NONE, 0), (cuda.CU_TENSOR_MAP_SWIZZLE_32B, 32),
                         (cuda.CU_TENSOR_MAP_SWIZZLE_64B, 64), (cuda.CU_TENSOR_MAP_SWIZZLE_128B, 128)):
    out = aligned(128)
    assert encode(client, out, 0x10000, swizzle=swizzle, box=[(width or 32) // 4, 4], dims=[32, 6], strides=[128]) == 0
    assert SWIZZLES[TensorMap.decode(out.tobytes()).swizzle] == width
  for swizzle in (cuda.CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B, 7):
    assert encode(client, aligned(128), 0x10000, swizzle=swizzle) == cuda.CUDA_ERROR_NOT_SUPPORTED


def test_what_a_section_without_contents_says_of_the_file(client: Client) -> None:
  """Nothing: a cubin's shared memory is such a section, as long as it likes."""
  text = SAXPY.encode() + b"\0"
  names = b"\0.tinyhw.ptx\0.nv.shared.k\0.shstrtab\0"

  def row(name: bytes, kind: int, at: int, size: int) -> bytes:
    return struct.pack("<2I4Q2I2Q", names.index(name), kind, 0, 0, at, size, 0, 0, 1, 0)
  table = 64 + len(text) + len(names)
  rows = [bytes(64), row(b".tinyhw.ptx", 1, 64, len(text)), row(b".nv.shared.k", 8, table, 1 << 40),
          row(b".shstrtab", 3, 64 + len(text), len(names))]
  head = struct.pack("<16s2HI3QI6H", b"\x7fELF\x02\x01\x01", 2, 190, 1, 0, 0, table, 0, 64, 0, 0, 64, len(rows), 3)
  module = client.handle("cuModuleLoadData", head + text + names + b"".join(rows))
  client.handle("cuModuleGetFunction", u64(module), b"saxpy")


# ---- what programs of cuda.core and cuda.bindings ask

def test_names_of_functions_and_kernels(client: Client) -> None:
  function = client.function(SAXPY, "saxpy")
  library = client.handle("cuLibraryLoadData", SAXPY.encode() + b"\0", None, None, 0, None, None, 0)
  kernel = client.handle("cuLibraryGetKernel", u64(library), b"saxpy")
  for name, handle in (("cuFuncGetName", function), ("cuKernelGetName", kernel)):
    assert ctypes.string_at(client.handle(name, u64(handle))) == b"saxpy"
    assert error(client, name, ctypes.byref(ctypes.c_uint64()), None) == "INVALID_VALUE"
  out = ctypes.c_char_p()
  for code, text in ((cuda.CUDA_SUCCESS, b"no error"), (cuda.CUDA_ERROR_INVALID_DEVICE, b"invalid device ordinal")):
    client.call("cuGetErrorString", code, ctypes.byref(out))
    assert out.value == text


def test_a_library_of_a_file(client: Client, tmp_path: Path) -> None:
  file = tmp_path / "saxpy.ptx"
  file.write_text(SAXPY)
  library = client.handle("cuLibraryLoadFromFile", str(file).encode(), None, None, 0, None, None, 0)
  assert client.handle("cuLibraryGetKernel", u64(library), b"saxpy")
  assert error(client, "cuLibraryLoadFromFile", ctypes.byref(ctypes.c_uint64()), str(tmp_path / "none").encode(), None,
               None, 0, None, None, 0) == "FILE_NOT_FOUND"


def test_clusters_that_kernels_require(client: Client) -> None:
  required = (cuda.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, cuda.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
              cuda.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)
  head = ".version 8.0\n.target sm_90\n.address_size 64\n"
  out = ctypes.c_int32()
  for directive, wanted in (("", [0, 0, 0]), (".reqnctapercluster 4, 2", [4, 2, 1])):
    function, found = client.function(head + f".visible .entry k() {directive} {{ ret; }}", "k"), []
    for attribute in required:
      client.call("cuFuncGetAttribute", ctypes.byref(out), attribute, u64(function))
      found.append(out.value)
    assert found == wanted


def test_priorities_of_streams_are_kept_within_their_range(client: Client) -> None:
  least, greatest, out = (ctypes.c_int32() for _ in range(3))
  client.call("cuCtxGetStreamPriorityRange", ctypes.byref(least), ctypes.byref(greatest))
  assert (least.value, greatest.value) == (0, -5)
  for given, wanted in ((0, 0), (-1, -1), (-5, -5), (-6, -5), (3, 0)):
    stream = client.handle("cuStreamCreateWithPriority", 0, given)
    client.call("cuStreamGetPriority", u64(stream), ctypes.byref(out))
    assert out.value == wanted
