"""Calls that older or newer programs make: launches as CUDA 3 had them, lists of kernels, attributes of streams, places
of cards, counted contexts, and questions whose answer is no mistake."""
from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest

from tests.mock.cuda.client import SAXPY, WAIT, Client, u64
from tinyhw.autogen import cuda

INVALID, NO_CONTEXT = cuda.CUDA_ERROR_INVALID_VALUE, cuda.CUDA_ERROR_INVALID_CONTEXT


def saxpy(c: Client, n: int = 70) -> tuple[int, int, int]:
  """(the kernel, x, y) with what it needs said but for the block's shape."""
  kernel, x, y = c.function(SAXPY, "saxpy"), c.alloc(4 * n), c.alloc(4 * n)
  c.put(x, np.arange(n, dtype=np.float32))
  c.put(y, np.ones(n, np.float32))
  data = struct.pack("<2Qf", x, y, 3.0)
  c.call("cuParamSetv", u64(kernel), 0, data, len(data))
  c.call("cuParamSeti", u64(kernel), 20, n)
  return kernel, x, y


@pytest.mark.parametrize("how", ["cuLaunch", "cuLaunchGrid", "cuLaunchGridAsync"])
def test_a_launch_in_steps(how: str) -> None:
  c = Client()
  kernel, _, y = saxpy(c)
  arguments = {"cuLaunch": (), "cuLaunchGrid": (3, 1), "cuLaunchGridAsync": (3, 1, u64(0))}[how]
  assert c.code(how, u64(kernel), *arguments) == INVALID  # no block
  c.call("cuFuncSetBlockShape", u64(kernel), 32, 1, 1)
  assert c.code(how, u64(kernel), *arguments) == INVALID  # no size of the parameters
  c.call("cuParamSetSize", u64(kernel), 24)
  c.call("cuFuncSetSharedSize", u64(kernel), 64)
  done = min(70, 32 if how == "cuLaunch" else 96)
  want = np.ones(70, np.float32)
  for times in range(1, 3):  # what was said stays
    c.call(how, u64(kernel), *arguments)
    want[:done] = 1 + 3 * times * np.arange(done, dtype=np.float32)
    assert np.array_equal(c.get(y, want), want)


@pytest.mark.parametrize("name, arguments", [
  ("cuFuncSetBlockShape", (0, 1, 1)), ("cuFuncSetBlockShape", (-1, 1, 1)), ("cuFuncSetSharedSize", (1 << 20,)),
  ("cuParamSetSize", (1 << 20,)), ("cuParamSeti", (-4, 0)), ("cuParamSeti", (32761, 0)),
  ("cuParamSetv", (0, bytes(8), 1 << 20))])
def test_what_a_step_refuses(name: str, arguments: tuple[object, ...]) -> None:
  c = Client()
  kernel, *_ = saxpy(c)
  assert c.code(name, u64(kernel), *arguments) == INVALID


def test_kernels_of_modules_and_libraries_are_listed() -> None:
  c, image = Client(), WAIT.encode() + b"\0"
  module = c.handle("cuModuleLoadData", image)
  library = c.handle("cuLibraryLoadData", image, None, None, 0, None, None, 0)
  name = ctypes.c_char_p()
  for list_, name_of, of in (("cuModuleEnumerateFunctions", "cuFuncGetName", module),
                             ("cuLibraryEnumerateKernels", "cuKernelGetName", library)):
    found = (ctypes.c_uint64 * 5)(*[7] * 5)
    c.call(list_, found, 5, u64(of))
    names = []
    for handle in found[:3]:
      c.call(name_of, ctypes.byref(name), u64(handle))
      names.append(name.value)
    assert sorted(filter(None, names)) == [b"add", b"put", b"wait"] and [*found[3:]] == [7, 7]
    few = (ctypes.c_uint64 * 2)(7, 7)
    c.call(list_, few, 1, u64(of))
    assert [*few] == [found[0], 7]
  assert c.handle("cuKernelGetLibrary", u64(found[0])) == library
  assert c.handle("cuLibraryGetKernel", u64(library), b"add") in [*found]


def test_attributes_of_streams() -> None:
  c = Client()
  first, second = c.handle("cuStreamCreate", 0), c.handle("cuStreamCreateWithPriority", 0, -3)
  value = cuda.CUstreamAttrValue()
  policy = cuda.CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY
  def got(stream: int, kind: int) -> cuda.CUstreamAttrValue:
    c.call("cuStreamGetAttribute", u64(stream), kind, ctypes.byref(value))
    return value
  assert got(second, cuda.CU_STREAM_ATTRIBUTE_PRIORITY).priority == -3 and got(first, policy).syncPolicy == 1
  assert got(first, cuda.CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP).memSyncDomainMap.remote == 1
  c.call("cuStreamSetAttribute", u64(first), policy, ctypes.byref(cuda.CUstreamAttrValue(syncPolicy=3)))
  assert (got(first, policy).syncPolicy, got(second, policy).syncPolicy) == (3, 1)
  c.call("cuStreamCopyAttributes", u64(second), u64(first))
  assert got(second, policy).syncPolicy == 3
  for name in ("cuStreamSetAttribute", "cuStreamGetAttribute"):
    assert c.code(name, u64(first), 99, ctypes.byref(value)) == INVALID
  out, green = ctypes.c_uint64(9), ctypes.c_uint64(9)
  c.call("cuStreamGetCtx_v2", u64(first), ctypes.byref(out), ctypes.byref(green))
  assert (out.value, green.value) == (c.context, 0)


def test_a_card_is_found_by_its_place() -> None:
  c, text = Client("sm_90,sm_90"), ctypes.create_string_buffer(32)
  number = ctypes.c_int()
  for device in (1, 0):
    c.call("cuDeviceGetPCIBusId", text, 32, device)
    for place in (text.value, text.value.lower(), text.value.partition(b":")[2], text.value.partition(b".")[0]):
      c.call("cuDeviceGetByPCIBusId", ctypes.byref(number), place)
      assert number.value == device, place
  assert c.code("cuDeviceGetByPCIBusId", ctypes.byref(number), b"0000:fe:00.0") == cuda.CUDA_ERROR_INVALID_DEVICE
  assert c.code("cuDeviceGetByPCIBusId", ctypes.byref(number), b"somewhere") == INVALID


def test_device_attributes_have_answers_but_for_the_boards_number() -> None:
  c, value = Client(), ctypes.c_int()
  for attribute in range(1, cuda.CU_DEVICE_ATTRIBUTE_MAX):
    known = attribute != cuda.CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID
    code = c.code("cuDeviceGetAttribute", ctypes.byref(value), attribute, 0)
    assert code == (0 if known else cuda.CUDA_ERROR_NOT_SUPPORTED), attribute
    if attribute == cuda.CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID: assert value.value == 0x2335_10DE


def test_kernels_are_loaded_with_their_module() -> None:
  c, state = Client(), ctypes.c_int(7)
  kernel = c.function(SAXPY, "saxpy")
  c.call("cuFuncLoad", u64(kernel))
  c.call("cuFuncIsLoaded", ctypes.byref(state), u64(kernel))
  assert state.value == cuda.CU_FUNCTION_LOADING_STATE_LOADED


def test_a_context_goes_with_its_last_detach() -> None:
  c = Client()
  context = c.handle("cuCtxCreate_v2", 0, 0)
  assert c.handle("cuCtxAttach", 0) == context
  c.call("cuCtxDetach", u64(context))
  assert c.alloc(4)
  assert c.code("cuCtxDetach", u64(c.context)) == NO_CONTEXT  # another one is current
  c.call("cuCtxDetach", u64(context))
  assert c.code("cuCtxPushCurrent_v2", u64(context)) == NO_CONTEXT


def test_the_largest_cluster() -> None:
  c, size = Client(), ctypes.c_int()
  kernel = c.function(SAXPY, "saxpy")
  config = cuda.CUlaunchConfig(gridDimX=64, gridDimY=1, gridDimZ=1, blockDimX=128, blockDimY=1, blockDimZ=1)
  for allowed, most in ((0, 8), (1, 16)):
    c.call("cuFuncSetAttribute", u64(kernel), cuda.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, allowed)
    c.call("cuOccupancyMaxPotentialClusterSize", ctypes.byref(size), u64(kernel), ctypes.byref(config))
    assert size.value == most
  older = Client("sm_80")
  kernel = older.function(SAXPY, "saxpy")
  assert older.code("cuOccupancyMaxPotentialClusterSize", ctypes.byref(size), u64(kernel),
                    ctypes.byref(config)) == cuda.CUDA_ERROR_NOT_SUPPORTED


def test_a_question_is_no_mistake() -> None:
  c, out = Client(), ctypes.c_uint64()
  own = np.zeros(4)
  assert c.code("cuPointerGetAttribute", ctypes.byref(out), cuda.CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                u64(own.ctypes.data)) == INVALID
  assert c.code("cuMemGetAddressRange_v2", ctypes.byref(out), None, u64(own.ctypes.data)) == cuda.CUDA_ERROR_NOT_FOUND
  assert c.code("cuGetProcAddress_v2", b"cuNone", ctypes.byref(out), 13000, 0, None) == cuda.CUDA_ERROR_NOT_FOUND
  assert len(c.machine.logs) == 3 and not c.machine.refused  # the driver's log has them
  assert c.code("cuMemFree_v2", u64(own.ctypes.data)) == INVALID
  assert len(c.machine.refused) == 1


def test_a_tensor_map_lies_where_bindings_have_it() -> None:
  """In memory of malloc's alignment."""
  c = Client()
  room = (ctypes.c_uint8 * 512)()
  at = -(-ctypes.addressof(room) // 128) * 128
  numbers = ctypes.c_uint64 * 2, ctypes.c_uint32 * 2
  tensor = c.alloc(1 << 12)
  def encode(place: int) -> int:
    return c.code("cuTensorMapEncodeTiled", u64(place), cuda.CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, u64(tensor),
                  numbers[0](16, 16), (ctypes.c_uint64 * 1)(64), numbers[1](8, 8), numbers[1](1, 1), 0, 0, 0, 0)
  assert encode(at) == 0
  made = ctypes.string_at(at, 64)
  assert any(made) and encode(at + 80) == 0 and ctypes.string_at(at + 80, 64) == made
  assert encode(at + 8) == INVALID


@pytest.mark.parametrize("count", [1, (1 << 18) - 1, (1 << 18) + 5, 3 << 18])
def test_fills_of_any_length(count: int) -> None:
  """They are done a piece at a time."""
  c = Client()
  y = c.alloc(4 * count + 8)
  c.call("cuMemsetD8_v2", u64(y), 0x11, u64(4 * count + 8))
  c.call("cuMemsetD32_v2", u64(y + 4), 0x01020304, u64(count))
  found = c.get(y, np.empty(count + 2, np.uint32))
  assert found[0] == found[-1] == 0x11111111 and (found[1:-1] == 0x01020304).all()
