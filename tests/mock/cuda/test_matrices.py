"""Every kind of memory by every call that takes an address, and each bit of every call's flags: what the driver API's
manual allows, and that what is refused changes nothing."""
from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.mock.cuda.client import HEAD, Client, u64
from tests.mock.cuda.test_pools import properties
from tests.mock.cuda.test_textures import array, of_array, sampled
from tests.mock.cuda.test_virtual import UNIT, granted, physical
from tinyhw.autogen import cuda

SIZE, COUNT = ctypes.c_size_t(4096), ctypes.c_size_t
ROOM = ctypes.create_string_buffer(256)
VARIABLES = HEAD + ".visible .global .align 4 .b8 v[4096];\n.visible .entry nothing() { ret; }\n"
MANAGED = HEAD + ".visible .global .attribute(.managed) .align 4 .b8 v[4096];\n.visible .entry nothing() { ret; }\n"


def variable(c: Client, text: str) -> int:
  module = c.handle("cuModuleLoadData", text.encode() + b"\0")
  return c.handle("cuModuleGetGlobal_v2", None, u64(module), b"v")


def of_a_graph(c: Client) -> int:
  """Memory that a launch of a graph has left."""
  graph, p = c.handle("cuGraphCreate", 0), cuda.CUDA_MEM_ALLOC_NODE_PARAMS_v1(bytesize=4096)
  p.poolProps = properties()
  c.handle("cuGraphAddMemAllocNode", u64(graph), None, COUNT(0), ctypes.byref(p))
  c.call("cuGraphLaunch", u64(c.handle("cuGraphInstantiateWithFlags", u64(graph), u64(0))), u64(0))
  c.call("cuCtxSynchronize")
  return int(p.dptr)


def mapped(c: Client) -> int:
  at = c.handle("cuMemAddressReserve", COUNT(UNIT), COUNT(0), u64(0), u64(0))
  handle = physical(c, UNIT)
  c.call("cuMemMap", u64(at), COUNT(UNIT), COUNT(0), u64(handle), u64(0))
  c.call("cuMemRelease", u64(handle))
  granted(c, at, UNIT)
  return at


def registered(c: Client) -> int:
  kept = mmap.mmap(-1, 4096)
  at = ctypes.addressof(ctypes.c_char.from_buffer(kept))
  c.machine.texts[hex(at)] = kept  # it stays as long as the machine
  c.call("cuMemHostRegister_v2", u64(at), SIZE, 0)
  return at


def of_a_pool(c: Client) -> int:
  given = properties(handleTypes=cuda.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
  return c.handle("cuMemAllocFromPoolAsync", SIZE, u64(c.handle("cuMemPoolCreate", ctypes.byref(given))), u64(0))


def texture(c: Client) -> int:
  at = array(c, np.float32, (4, 4, 0))
  return c.handle("cuTexObjectCreate", ctypes.byref(of_array(at)), ctypes.byref(sampled()), None)


def condition(c: Client) -> int:
  return c.handle("cuGraphConditionalHandleCreate", u64(c.handle("cuGraphCreate", 0)), u64(c.context), 0, 0)


KINDS: dict[str, Callable[[Client], int]] = {
  "device": lambda c: c.alloc(4096),
  "pitch": lambda c: c.handle("cuMemAllocPitch_v2", ctypes.byref(ROOM), COUNT(512), COUNT(8), 4),
  "ordered": lambda c: c.handle("cuMemAllocAsync", SIZE, u64(0)), "pool": of_a_pool,
  "pinned": lambda c: c.handle("cuMemHostAlloc", SIZE, 1), "registered": registered,
  "managed": lambda c: c.handle("cuMemAllocManaged", SIZE, 1), "graph": of_a_graph, "mapped": mapped,
  "variable": lambda c: variable(c, VARIABLES), "managed variable": lambda c: variable(c, MANAGED),
  "texture": texture, "condition": condition}
PLAIN = {*KINDS} - {"texture", "condition"}  # the others are no addresses to a program
MIGRATE = {"managed", "managed variable"}
HOST = {"pinned", "registered"} | MIGRATE
INVALID = cuda.CUDA_ERROR_INVALID_VALUE
# Of a call: its arguments, where None is the address; the kinds of memory that it is for; what it says of others.
KEEP: dict[str, tuple[tuple[Any, ...], set[str], int]] = {
  "cuMemGetAddressRange_v2": ((ROOM, ROOM, None), PLAIN, cuda.CUDA_ERROR_NOT_FOUND),
  "cuPointerGetAttribute": ((ROOM, cuda.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, None), PLAIN, INVALID),
  "cuMemsetD8_v2": ((None, 5, SIZE), PLAIN, INVALID),
  "cuMemcpyDtoD_v2": ((None, None, COUNT(16)), PLAIN, INVALID),
  "cuMemHostGetDevicePointer_v2": ((ROOM, None, 0), HOST, INVALID),
  "cuMemHostGetFlags": ((ROOM, None), {"pinned"}, INVALID),
  "cuMemAdvise": ((None, SIZE, cuda.CU_MEM_ADVISE_SET_READ_MOSTLY, 0), MIGRATE, INVALID),
  "cuMemPrefetchAsync": ((None, SIZE, 0, u64(0)), MIGRATE, INVALID),
  "cuStreamAttachMemAsync": ((u64(0), None, COUNT(0), cuda.CU_MEM_ATTACH_GLOBAL), MIGRATE, INVALID),
  "cuMemRangeGetAttribute": ((ROOM, COUNT(4), cuda.CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, None, SIZE), MIGRATE, INVALID),
  "cuIpcGetMemHandle": ((ROOM, None), {"device", "pitch"}, INVALID),
  "cuMemPoolExportPointer": ((ROOM, None), {"pool"}, INVALID),
  "cuMemRetainAllocationHandle": ((ROOM, None), {"mapped"}, INVALID),
  "cuMemGetAccess": ((ROOM, ctypes.byref(properties().location), None), {"mapped"}, INVALID),
  "cuMemAddressFree": ((None, COUNT(UNIT)), set(), INVALID), "cuIpcCloseMemHandle": ((None,), set(), INVALID),
  "cuArrayDestroy": ((None,), set(), cuda.CUDA_ERROR_INVALID_HANDLE)}
END: dict[str, tuple[tuple[Any, ...], set[str], int]] = {
  "cuMemFree_v2": ((None,), {"device", "pitch", "ordered", "pool", "managed", "graph"}, INVALID),
  "cuMemFreeAsync": ((None, u64(0)), {"device", "pitch", "ordered", "pool", "graph"}, INVALID),
  "cuMemFreeHost": ((None,), {"pinned"}, INVALID),
  "cuMemHostUnregister": ((None,), {"registered"}, cuda.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED),
  "cuMemUnmap": ((None, COUNT(UNIT)), {"mapped"}, INVALID),
  "cuTexObjectDestroy": ((None,), {"texture"}, INVALID)}


def test_every_memory_by_every_call() -> None:
  c = Client()
  m = c.machine
  c.call("cuMemFree_v2", u64(c.handle("cuMemAllocAsync", SIZE, u64(0))))  # the default pool is there from now on

  def said(name: str, arguments: tuple[Any, ...], at: int) -> int:
    return c.code(name, *(u64(at) if a is None else a for a in arguments))
  for kind, make in KINDS.items():
    before, at = {*m.pieces}, make(c)
    there = {*m.pieces}
    for name, (arguments, right, code) in (KEEP | END).items():
      if kind in right and name in END: continue
      assert said(name, arguments, at) == (0 if kind in right else code), (kind, name)
      c.call("cuCtxSynchronize")
      assert {*m.pieces} == there, (kind, name)
    for name, (arguments, right, code) in END.items():
      if kind not in right: continue
      free = m.gpus[0].allocator.free_bytes
      assert said(name, arguments, at) == 0, (kind, name)
      c.call("cuCtxSynchronize")
      assert at not in m.pieces and m.gpus[0].allocator.free_bytes >= free, (kind, name)
      if kind != "graph": assert said(name, arguments, at) == code, (kind, name)  # a graph's may come again by then
      at = make(c)
    assert before < there
  m.close()


def test_each_bit_of_flags() -> None:
  """The bits that cuda.h names for a call are taken, any other one is refused, with one that is named too."""
  c = Client("sm_90,sm_80")
  other, size, log = c.handle("cuDevicePrimaryCtxRetain", 1), ctypes.c_size_t(256), ctypes.create_string_buffer(256)
  event, stream, host = c.handle("cuEventCreate", 0), c.handle("cuStreamCreate", 0), KINDS["pinned"](c)
  graph, at = c.handle("cuGraphCreate", 0), registered(c)
  called = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: None)
  thing = c.handle("cuUserObjectCreate", None, called, 1, cuda.CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
  c.call("cuMemHostUnregister", u64(at))
  callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(lambda s, code, data: None)
  out = ctypes.byref(ROOM)
  calls: dict[str, tuple[tuple[Any, ...], int]] = {  # arguments, where None are the flags; which bits there are
    "cuInit": ((None,), 0), "cuStreamCreate": ((out, None), 1), "cuStreamCreateWithPriority": ((out, None, 0), 1),
    "cuEventCreate": ((out, None), 3), "cuEventRecordWithFlags": ((u64(event), u64(stream), None), 1),
    "cuStreamWaitEvent": ((u64(stream), u64(event), None), 1),
    "cuStreamAddCallback": ((u64(stream), callback, u64(0), None), 0),
    "cuCtxEnablePeerAccess": ((u64(other), None), 0), "cuCtxCreate_v2": ((out, None, 0), 0xFF),
    "cuCtxCreate_v4": ((out, u64(0), None, 0), 0xFF), "cuDevicePrimaryCtxSetFlags_v2": ((1, None), 0xFF),
    "cuMemHostAlloc": ((out, SIZE, None), 7), "cuMemHostRegister_v2": ((u64(at), SIZE, None), 15),
    "cuMemHostGetDevicePointer_v2": ((out, u64(host), None), 0), "cuGraphCreate": ((out, None), 0),
    "cuGraphConditionalHandleCreate": ((out, u64(graph), u64(0), 0, None), 1),
    "cuGraphInstantiateWithFlags": ((out, u64(graph), None), 0b1011),
    "cuGraphRetainUserObject": ((u64(graph), u64(thing), 1, None), 1), "cuLogsCurrent": ((out, None), 0),
    "cuLogsDumpToMemory": ((u64(0), log, ctypes.byref(size), None), 0),
    "cuGetProcAddress_v2": ((b"cuInit", out, 13000, None, u64(0)), 3)}
  for name, (arguments, known) in calls.items():
    def code(flags: int, name: str = name, arguments: tuple[Any, ...] = arguments) -> int:
      found = c.code(name, *(flags if a is None else a for a in arguments))
      if name == "cuMemHostRegister_v2" and not found: c.call("cuMemHostUnregister", u64(at))
      if name.startswith("cuCtxCreate") and not found: c.call("cuCtxDestroy_v2", u64(c.handle("cuCtxGetCurrent")))
      if name == "cuCtxEnablePeerAccess" and not found: c.call("cuCtxDisablePeerAccess", u64(other))
      size.value = 256
      return found
    for bit in range(31):
      wanted = 0 if known >> bit & 1 else INVALID
      if name == "cuGraphInstantiateWithFlags" and bit == 2: wanted = cuda.CUDA_ERROR_NOT_SUPPORTED  # kernels launch it
      assert code(1 << bit) == wanted, (name, bit)
    assert code(0) == code(known) == 0, name
    assert code(1 << 30 | known & -known) == INVALID, name
  c.call("cuCtxSynchronize")
  c.machine.close()


def test_modes_of_a_capture() -> None:
  c, ended = Client(), ctypes.c_uint64()
  stream, graph = (c.handle(name, 0) for name in ("cuStreamCreate", "cuGraphCreate"))
  for mode in range(-1, 5):
    for name, more in (("cuStreamBeginCapture_v2", ()),
                       ("cuStreamBeginCaptureToGraph", (u64(graph), None, None, COUNT(0)))):
      assert c.code(name, u64(stream), *more, mode) == (0 if 0 <= mode < 3 else INVALID)
      if 0 <= mode < 3: c.call("cuStreamEndCapture", u64(stream), ctypes.byref(ended))
  given = ctypes.c_int(1)
  told = []
  for mode in (2, 0, 1, 0):
    given.value = mode
    c.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(given))
    told.append(given.value)
  assert told == [0, 2, 0, 1]
  given.value = 3
  assert c.code("cuThreadExchangeStreamCaptureMode", ctypes.byref(given)) == INVALID
  c.machine.close()
