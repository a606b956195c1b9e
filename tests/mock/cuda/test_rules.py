"""Rules of calls that few tests make: a library's memory, children of fork, who waits in its own way, ranges of several
mappings, the runtime's errors and cards, NVIDIA's compiler behind the stand-in."""
from __future__ import annotations

import ctypes
import gc
import itertools
import os
import struct
import subprocess
from typing import Any

import numpy as np
import pytest

from tests.mock.cuda.client import HEAD, SAXPY, WAIT, Client, u32, u64
from tests.mock.cuda.test_children import DECLARED
from tests.mock.cuda.test_nodes_and_libraries import Work, error
from tests.mock.cuda.test_programmatic import attribute, kernels, launch
from tests.mock.cuda.test_runtime import SCALE, TEXT, Program
from tests.mock.cuda.test_seldom import plane
from tests.mock.cuda.test_tensors import aligned
from tests.mock.cuda.test_textures import array, of_array, sampled
from tests.mock.cuda.test_virtual import UNIT, granted, physical
from tinyhw.autogen import cuda, cudart, nvrtc
from tinyhw.core.called import Plain
from tinyhw.core.errors import Error, InvalidArgument, OutOfMemory, PageFault, Unsupported
from tinyhw.emulator.ptx.memory.tensormap import TensorMap
from tinyhw.mock.cuda.calls import SERVED, Failed, answer, handler_of
from tinyhw.mock.cuda.library import library
from tinyhw.mock.cuda.library.shared import Loaded
from tinyhw.mock.cuda.modules.rtc import Rtc
from tinyhw.mock.cuda.streams.parameters import LIMIT
from tinyhw.mock.cuda.streams.streams import Event, code_of
from tinyhw.mock.memory import Refused

COUNT = ctypes.c_size_t


def free(c: Client) -> int: return c.machine.gpus[0].allocator.free_bytes


# ---- libraries, launches

def test_a_library_gives_back_what_its_modules_have(client: Client) -> None:
  """In each context; where that is gone by then, nothing is left to give."""
  c, text = client, (HEAD + ".global .b8 v[8192];\n" + SAXPY.removeprefix(HEAD)).encode() + b"\0"
  for ended in (False, True):
    before = free(c)
    own = c.handle("cuCtxCreate_v2", 0, 0)
    loaded = c.handle("cuLibraryLoadData", text, None, None, 0, None, None, 0)
    c.handle("cuLibraryGetModule", u64(loaded))
    assert free(c) == before - 8192
    if ended: c.call("cuCtxDestroy_v2", u64(own))
    c.call("cuLibraryUnload", u64(loaded))
    assert free(c) == before and error(c, "cuLibraryUnload", u64(loaded)) == "INVALID_HANDLE"
    if not ended: c.call("cuCtxDestroy_v2", u64(own))


def test_errors_of_texts_are_told_as_far_as_there_is_room(client: Client) -> None:
  """Of modules and of libraries; an address without room, or room without an address, is none."""
  c, out, bad = client, u64(0), b".version 8.0\n.target sm_80\n.address_size 64\nnonsense\0"
  keys = (ctypes.c_int * 2)(cuda.CU_JIT_ERROR_LOG_BUFFER, cuda.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
  for room, there in itertools.product((0, 1, 2, 12, 256), (False, True)):
    buffer = ctypes.create_string_buffer(b"\xee" * 256, 256)
    values = (ctypes.c_uint64 * 2)(ctypes.addressof(buffer) if there else 0, room)
    for name, more in (("cuModuleLoadDataEx", (2, keys, values)),
                       ("cuLibraryLoadData", (keys, values, 2, None, None, 0))):
      ctypes.memset(buffer, 0xEE, 256)
      assert error(c, name, ctypes.byref(out), bad, *more) == "INVALID_PTX"
      told = buffer.raw.partition(b"\0")[0] if room and there else b""
      assert buffer.raw == (told + b"\0" if room and there else b"").ljust(256, b"\xee"), (name, room)
      assert len(told) <= max(room - 1, 0) and (room < 3 or not there or len(told) > 1)


def test_an_event_of_a_launch_has_no_flags(client: Client) -> None:
  c = client
  at, first, _ = kernels(c)
  stream, event = c.handle("cuStreamCreate", 1), c.handle("cuEventCreate", cuda.CU_EVENT_DISABLE_TIMING)
  for kind, field in (("PROGRAMMATIC_EVENT", "programmaticEvent"),
                      ("LAUNCH_COMPLETION_EVENT", "launchCompletionEvent")):
    for flags, wanted in ((0, 0), (1, cuda.CUDA_ERROR_NOT_SUPPORTED)):
      assert launch(c, first, at, 4, stream, attribute(kind, **{field: {"event": event, "flags": flags}})) == wanted


@pytest.mark.parametrize(("size", "right"), [(11, False), (12, True), (LIMIT, True), (LIMIT + 1, False)])
def test_parameters_in_one_piece_have_a_size(client: Client, size: int, right: bool) -> None:
  c, data = client, ctypes.create_string_buffer(LIMIT + 1)
  at, length = c.alloc(4), ctypes.c_size_t(size)
  c.call("cuMemsetD32_v2", u64(at), 5, COUNT(1))
  ctypes.memmove(data, bytes(u64(at)) + bytes(u32(7)), 12)
  extra = (ctypes.c_uint64 * 5)(cuda.CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT, ctypes.addressof(data),
                                cuda.CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT, ctypes.addressof(length), 0)
  said = error(c, "cuLaunchKernel", u64(c.function(WAIT, "add")), 1, 1, 1, 1, 1, 1, 0, u64(0), None, extra)
  assert (said == "CUDA_SUCCESS") == right
  assert c.get(at, np.zeros(1, np.uint32))[0] == (22 if right else 5)


SHAPED = DECLARED + """
.visible .entry child(.param .u64 at) {
  .reg .b64 %l<2>; .reg .b32 %r<7>;
  ld.param.u64 %l1, [at];
  mov.u32 %r1, %nctaid.x; mov.u32 %r2, %nctaid.y; mov.u32 %r3, %nctaid.z;
  mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y; mov.u32 %r6, %ntid.z;
  st.global.u32 [%l1], %r1; st.global.u32 [%l1+4], %r2; st.global.u32 [%l1+8], %r3;
  st.global.u32 [%l1+12], %r4; st.global.u32 [%l1+16], %r5; st.global.u32 [%l1+20], %r6; ret; }
.visible .entry parent(.param .u64 at) {
  .reg .b64 %l<6>; .reg .b32 %r<9>;
  ld.param.u64 %l1, [at]; mov.u64 %l3, child;
  { .param .b64 f; .param .align 4 .b8 g[12]; .param .align 4 .b8 b[12]; .param .b32 s; .param .b64 out;
    st.param.b64 [f], %l3; st.param.b32 [g], 2; st.param.b32 [g+4], 3; st.param.b32 [g+8], 4;
    st.param.b32 [b], 5; st.param.b32 [b+4], 6; st.param.b32 [b+8], 7; st.param.b32 [s], 0;
    call.uni (out), __cudaCDP2GetParameterBufferV2, (f, g, b, s); ld.param.b64 %l4, [out]; }
  st.u64 [%l4], %l1;
  { .param .b64 at; .param .b64 stream; .param .b32 out; st.param.b64 [at], %l4; st.param.b64 [stream], 0;
    call.uni (out), __cudaCDP2LaunchDeviceV2, (at, stream); ld.param.b32 %r6, [out]; }
  ret; }
"""


def test_a_child_has_its_own_grid_and_block(client: Client) -> None:
  at = client.alloc(24)
  assert client.launch(client.function(SHAPED, "parent"), 1, 1, [u64(at)]) == 0
  assert client.get(at, np.zeros(6, np.uint32)).tolist() == [2, 3, 4, 5, 6, 7]


def test_a_kernel_loses_what_it_was_allowed(client: Client) -> None:
  """A launch that ran is refused when the attribute that it needed is taken back."""
  c = client
  function, at = c.function(WAIT, "put"), c.alloc(4)
  most = cuda.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
  for allowed, said in ((100 << 10, 0), (0, cuda.CUDA_ERROR_INVALID_VALUE), (100 << 10, 0)):
    c.call("cuFuncSetAttribute", u64(function), most, allowed)
    assert c.launch(function, 1, 1, [u64(at), u32(1)], shared=100 << 10) == said
  c.call("cuCtxSynchronize")


def test_variables_may_hold_addresses_of_functions(client: Client) -> None:
  """And of other variables, in a module that has no code at all."""
  c, at = client, client.alloc(8)
  text = HEAD + """
    .func (.param .b32 out) one() { st.param.b32 [out], 11; ret; }
    .func (.param .b32 out) two() { st.param.b32 [out], 22; ret; }
    .global .u64 table[2] = {one, two};
    .visible .entry ask(.param .u64 at, .param .u32 which) {
      .reg .u64 %l<4>; .reg .u32 %r<3>;
      ld.param.u64 %l1, [at]; ld.param.u32 %r1, [which]; mul.wide.u32 %l2, %r1, 8; mov.u64 %l3, table;
      add.u64 %l3, %l3, %l2; ld.global.u64 %l2, [%l3];
      { .param .b32 out; p: .callprototype (.param .b32 _) _ (); call (out), %l2, (), p; ld.param.b32 %r2, [out]; }
      st.global.u32 [%l1], %r2; ret; }"""
  function = c.function(text, "ask")
  for which, wanted in ((0, 11), (1, 22)):
    assert c.launch(function, 1, 1, [u64(at), u32(which)]) == 0
    assert c.get(at, np.zeros(1, np.uint32))[0] == wanted
  data = HEAD + ".visible .global .u32 v = 5; .visible .global .u64 w = v;"
  plain = c.handle("cuModuleLoadData", data.encode() + b"\0")
  v, w = (c.handle("cuModuleGetGlobal_v2", None, u64(plain), name) for name in (b"v", b"w"))
  assert c.get(w, np.zeros(1, np.uint64))[0] == v and c.get(v, np.zeros(1, np.uint32))[0] == 5


def test_clusters_that_work_at_a_time_have_a_size(client: Client) -> None:
  c, function = client, client.function(WAIT, "put")
  p = cuda.CUlaunchConfig(gridDimX=8, gridDimY=1, gridDimZ=1, blockDimX=32, blockDimY=1, blockDimZ=1)
  out, size = ctypes.c_int(), attribute("CLUSTER_DIMENSION", clusterDim={"x": 4, "y": 1, "z": 1})
  assert error(c, "cuOccupancyMaxActiveClusters", ctypes.byref(out), u64(function), ctypes.byref(p)) == "INVALID_VALUE"
  p.attrs, p.numAttrs = ctypes.addressof(size), 1
  c.call("cuOccupancyMaxActiveClusters", ctypes.byref(out), u64(function), ctypes.byref(p))
  assert out.value == 32 * 132 // 4


# ---- memory

def test_a_range_of_several_mappings_ends_with_the_last(client: Client) -> None:
  c, count = client, 3
  at = c.handle("cuMemAddressReserve", COUNT((count + 1) * UNIT), COUNT(0), u64(0), u64(0))
  for i in range(count):
    c.call("cuMemMap", u64(at + i * UNIT), COUNT(UNIT), COUNT(0), u64(physical(c, UNIT, i % 2)), u64(0))
  granted(c, at, count * UNIT)
  for start in (0, 4096, UNIT - 4, UNIT, UNIT + 4096, 2 * UNIT + 4096):
    for end in (start + 8, UNIT, 2 * UNIT - 4, 2 * UNIT, 2 * UNIT + 4, count * UNIT, count * UNIT + 1):
      if end <= start: continue
      said = error(c, "cuMemsetD8_v2", u64(at + start), 7, COUNT(end - start))
      assert (said == "CUDA_SUCCESS") == (end <= count * UNIT), (start, end)


def test_an_array_of_two_dimensions_has_no_depth(client: Client) -> None:
  c = client
  d = cuda.CUDA_ARRAY_DESCRIPTOR_v2(Width=8, Height=4, Format=cuda.CU_AD_FORMAT_FLOAT, NumChannels=1)
  told = cuda.CUDA_ARRAY3D_DESCRIPTOR_v2(Depth=9, Flags=9)
  c.call("cuArray3DGetDescriptor_v2", ctypes.byref(told), u64(c.handle("cuArrayCreate_v2", ctypes.byref(d))))
  assert (told.Width, told.Height, told.Depth, told.Flags) == (8, 4, 0, 0)
  for name in ("cuArrayCreate_v2", "cuArray3DCreate_v2", "cuTexObjectCreate", "cuSurfObjectCreate"):
    assert error(c, name, ctypes.byref(u64(0)), None, None, None) == "INVALID_VALUE"
    assert c.machine.logs[-1].endswith("a pointer is null"), name


def test_copies_on_a_streams_name(client: Client) -> None:
  """Each asynchronous copy between cards' memory goes from its second address to its first."""
  c, stream = client, client.handle("cuStreamCreate", 0)
  x, y = c.alloc(8), c.alloc(8)
  for name, arguments in (("cuMemcpyDtoD_v2", (u64(y), u64(x))), ("cuMemcpyDtoDAsync_v2", (u64(y), u64(x))),
                          ("cuMemcpyAsync", (u64(y), u64(x))),
                          ("cuMemcpyPeerAsync", (u64(y), u64(c.context), u64(x), u64(c.context)))):
    c.put(x, np.array([1, 2], np.uint32))
    c.put(y, np.array([3, 4], np.uint32))
    c.call(name, *arguments, COUNT(8), *[u64(stream)] * name.endswith(("Async", "Async_v2")))
    c.call("cuCtxSynchronize")
    assert c.get(x, np.zeros(2, np.uint32)).tolist() == c.get(y, np.zeros(2, np.uint32)).tolist() == [1, 2], name


@pytest.mark.parametrize(("address", "size"), [(0, 4096), (4096, 0)])
def test_what_is_registered_has_a_place_and_a_size(client: Client, address: int, size: int) -> None:
  assert error(client, "cuMemHostRegister_v2", u64(address), COUNT(size), 0) == "INVALID_VALUE"
  assert "bytes at" in client.machine.logs[-1]


def test_memory_that_is_unregistered_is_used_to_the_end(client: Client) -> None:
  c, data = client, np.zeros(4096, np.uint8)
  at = data.ctypes.data
  c.call("cuMemHostRegister_v2", u64(at), COUNT(4096), 0)
  stream = c.handle("cuStreamCreate", 1)
  c.call("cuMemsetD8Async", u64(at), 9, COUNT(4096), u64(stream))
  c.call("cuMemHostUnregister", u64(at))
  assert (data == 9).all()


def test_a_fill_of_the_hosts_memory_waits_for_its_own_stream(client: Client) -> None:
  """Of the thread's default one, where the function is of that kind."""
  c = client
  at = c.handle("cuMemAllocHost_v2", COUNT(16))
  for name in ("cuMemsetD8_v2", "cuMemsetD8_v2_ptds"):
    ctypes.memset(at, 0, 16)
    c.call(name, u64(at), 3, COUNT(16))
    assert ctypes.string_at(at, 16) == b"\3" * 16, name
  assert handler_of("cuMemsetD8_v2_ptds")[1]


@pytest.mark.parametrize("text", ["a misaligned address", "0x5 is not aligned", "no multiple of 4"])
def test_errors_of_places_have_a_code(text: str) -> None:
  assert code_of(Error(text)) == cuda.CUDA_ERROR_MISALIGNED_ADDRESS
  assert code_of(Error("assertion failed")) == cuda.CUDA_ERROR_ASSERT
  assert code_of(Error("else")) == cuda.CUDA_ERROR_UNKNOWN


def test_a_callback_gets_its_stream_and_its_data(client: Client) -> None:
  seen: list[tuple[int, int, int]] = []
  call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(lambda *given: seen.append(given))
  client.machine._numbers = itertools.count(0x1_5500_0000, 16)  # handles are as wide as pointers
  stream = client.handle("cuStreamCreate", 0)
  client.call("cuStreamAddCallback", u64(stream), call, u64(0x1234_5678_9ABC), 0)
  client.call("cuStreamSynchronize", u64(stream))
  assert seen == [(stream, 0, 0x1234_5678_9ABC)]


def faulted(c: Client, stream: int) -> None:
  assert c.launch(c.function(WAIT, "put"), 1, 1, [u64(1 << 40), u32(1)], stream) == 0


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", ["cuEventQuery", "cuEventSynchronize"])
def test_an_event_behind_a_fault_tells_of_it(client: Client, name: str, shared: bool) -> None:
  c, stream = client, client.handle("cuStreamCreate", 0)
  event = c.handle("cuEventCreate", cuda.CU_EVENT_INTERPROCESS | cuda.CU_EVENT_DISABLE_TIMING)
  if shared: c.call("cuIpcGetEventHandle", ctypes.byref(cuda.CUipcEventHandle()), u64(event))
  faulted(c, stream)
  c.call("cuEventRecord", u64(event), u64(stream))
  while (code := c.code(name, u64(event))) == cuda.CUDA_ERROR_NOT_READY: pass
  assert code == cuda.CUDA_ERROR_ILLEGAL_ADDRESS


def test_who_asks_does_not_wait(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
  c, stream, waits = client, client.handle("cuStreamCreate", 0), list[Any]()
  events = [c.handle("cuEventCreate", cuda.CU_EVENT_INTERPROCESS | cuda.CU_EVENT_DISABLE_TIMING) for _ in range(2)]
  c.call("cuIpcGetEventHandle", ctypes.byref(cuda.CUipcEventHandle()), u64(events[1]))
  stop = c.alloc(4)
  c.call("cuMemsetD32_v2", u64(stop), 0, COUNT(1))
  c.call("cuCtxSynchronize")
  assert c.launch(c.function(WAIT, "wait"), 1, 1, [u64(stop), u32(7)], stream) == 0
  for event in events: c.call("cuEventRecord", u64(event), u64(stream))
  real = c.machine.run
  def run(done: Any, timeout: Any, *more: Any, most: int) -> bool:
    waits.append(timeout)
    return bool(real(done, timeout, *more, most=most))
  monkeypatch.setattr(c.machine, "run", run)
  for name, handle in (("cuStreamQuery", stream), *(("cuEventQuery", e) for e in events)):
    assert error(c, name, u64(handle)) == "NOT_READY"
  assert waits == [0.0] * 3
  monkeypatch.undo()
  c.call("cuMemsetD32Async", u64(stop), 7, COUNT(1), u64(c.handle("cuStreamCreate", 1)))
  c.call("cuStreamSynchronize", u64(stream))
  for event in events: c.call("cuEventQuery", u64(event))


def test_a_mistake_of_the_mocks_own_costs_the_context(client: Client, monkeypatch: pytest.MonkeyPatch,
                                                      capfd: pytest.CaptureFixture[str]) -> None:
  """What raised it is in the log, and the next call says that something unknown was wrong."""
  c, at = client, client.alloc(8)
  def wrong(*given: Any) -> None: raise ZeroDivisionError("of a test")
  monkeypatch.setattr("tinyhw.mock.cuda.memory.allocations.fill", wrong)
  c.call("cuMemsetD8Async", u64(at), 1, COUNT(8), u64(0))
  assert error(c, "cuCtxSynchronize") == "UNKNOWN"
  assert "ZeroDivisionError: of a test" in " ".join(c.machine.logs) and "a fill" in " ".join(c.machine.logs)
  assert error(c, "cuCtxSynchronize") == "UNKNOWN" == error(c, "cuMemsetD8_v2", u64(at), 1, COUNT(8))
  assert "ZeroDivisionError" in capfd.readouterr().err


# ---- the process

def test_what_stands_behind_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
  """A machine for a child that fork made is asked for once; without a library nobody can be asked."""
  c = Client()
  stand = library._stand
  assert stand is not None
  monkeypatch.setattr(stand, "another", None)
  made: list[Any] = []
  def another() -> Any:
    made.append(type(c.machine)("sm_80", vram=1 << 24))
    return made[-1]
  standing = library.forks(another)
  assert standing() is c.machine and stand.another is another
  own = os.getpid()
  monkeypatch.setattr(os, "getpid", lambda: own + 3)
  assert standing() is None
  monkeypatch.undo()
  assert standing() is c.machine and not made
  c.machine.close()
  assert standing() is None
  monkeypatch.setattr(library, "_stand", None)
  for ask in (lambda: library.forks(another), library.runtime):
    with pytest.raises(InvalidArgument, match="no machine stands behind"): ask()


def test_a_child_without_a_machine_of_its_own_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
  """The parent had closed its one: the child is told so, again and again, and no machine is made."""
  c = Client(context=False)
  c.machine.close()
  stand, own = library._stand, os.getpid()
  assert stand is not None
  monkeypatch.setattr(stand, "another", lambda: pytest.fail("a machine that nobody asked for"))
  monkeypatch.setattr(stand, "pid", own)
  monkeypatch.setattr(os, "getpid", lambda: own + 4)
  for _ in range(2): assert c.code("cuInit", 0) == cuda.CUDA_ERROR_DEINITIALIZED
  assert stand.pid == own + 4


def test_nvidias_linker_says_that_it_links_nothing() -> None:
  c = Client()
  library.links(())
  loaded = dict(library._linkers)
  assert {*loaded} == {*library.LINKERS}
  library.links(())
  assert library._linkers == loaded
  found = loaded["libnvJitLink.so.13"]
  for name in list(found.names)[:2]:
    assert getattr(found.library, name)() != 0 and name in c.machine.logs[-1]
  c.machine.close()


def test_functions_of_a_library_go_where_they_are_sent() -> None:
  """What they answer when Python has ended is in tests/core/test_called.py: it is the code in front of each."""
  made = Loaded("libending.so.1", ["first", "second", "third"])
  for n, name in enumerate(made.names): made.fill(name, Plain(lambda n=n: 20 + n, failed=-1))  # type: ignore[misc]
  assert [getattr(made.library, name)() for name in made.names] == [20, 21, 22]
  made.hand_on("first", made.address("third"))
  assert [getattr(made.library, name)() for name in made.names] == [22, 21, 22]


def test_who_waits_in_its_own_way_is_helped_after_a_silence(monkeypatch: pytest.MonkeyPatch) -> None:
  """The machine goes on where nobody has called for so long, and only then, and stops when nothing is queued."""
  c = Client()
  m, slept, went = c.machine, list[float](), list[tuple[bool, float]]()
  def sleep(seconds: float) -> None:
    slept.append(seconds)
    if len(slept) == 2: m.calls += 1  # somebody calls meanwhile
    if len(slept) == 4: m.closed = True
  def run(done: Any, timeout: float) -> bool:
    went.append((done(), timeout))
    return True
  monkeypatch.setattr("tinyhw.mock.cuda.machine.time.sleep", sleep)
  monkeypatch.setattr(m, "run", run)
  m._go_on(0.25)
  assert slept == [0.25] * 4 and went == [(True, 0.0)] * 3
  m.closed = False
  m.streams[0].add("a wait", iter(()))  # type: ignore[arg-type]
  assert not m._silent()
  m.closed = True
  assert m._silent()
  m.streams[0].queue.clear()


def test_time_between_events_is_in_milliseconds(client: Client) -> None:
  c, out = client, ctypes.c_float()
  first, second = (c.handle("cuEventCreate", 0) for _ in range(2))
  for event in (first, second): c.call("cuEventRecord", u64(event), u64(0))
  c.call("cuCtxSynchronize")
  for event, ns in ((first, 5), (second, 5 + 10**12)): c.machine.find(event, Event).job.ended_ns = ns
  c.call("cuEventElapsedTime", ctypes.byref(out), u64(first), u64(second))
  assert out.value == 10**6
  c.call("cuEventElapsedTime", ctypes.byref(out), u64(second), u64(first))
  assert out.value == -10**6


def test_fractions_are_not_read_as_integers(client: Client) -> None:
  c = client
  for sign, bits, n in itertools.product("US", (8, 16), (1, 2, 4)):
    d = cuda.CUDA_ARRAY3D_DESCRIPTOR_v2(Width=8, Height=4, NumChannels=n,
                                        Format=getattr(cuda, f"CU_AD_FORMAT_{sign}NORM_INT{bits}X{n}"))
    held, how = c.handle("cuArray3DCreate_v2", ctypes.byref(d)), sampled()
    for flags, said in ((0, "CUDA_SUCCESS"), (cuda.CU_TRSF_READ_AS_INTEGER, "NOT_SUPPORTED")):
      how.flags = flags
      assert error(c, "cuTexObjectCreate", ctypes.byref(u64(0)), ctypes.byref(of_array(held)), ctypes.byref(how),
                   None) == said


@pytest.mark.parametrize(("width", "height"), [(1, 1), (1, 8), (64, 1)])
def test_rows_of_one_element_are_rows(client: Client, width: int, height: int) -> None:
  given = plane(client, width=width, height=height)
  client.handle("cuTexObjectCreate", ctypes.byref(given), ctypes.byref(sampled()), None)


# ---- the runtime

def test_which_integers_are_filtered() -> None:
  """Those of 8 and 16 bits, read as fractions."""
  p, out = Program(), u64(0)
  for bits in (8, 16, 32):
    channel = cudart.cudaChannelFormatDesc(x=bits, f=cudart.cudaChannelFormatKindUnsigned)
    held = p.made("cudaMallocArray", ctypes.byref(channel), 8, 4, 0)
    what = cudart.cudaResourceDesc(resType=cudart.cudaResourceTypeArray)
    what.res.array.array = held
    for mode in (cudart.cudaReadModeElementType, cudart.cudaReadModeNormalizedFloat):
      how = cudart.cudaTextureDesc(filterMode=cudart.cudaFilterModeLinear, readMode=mode)
      good = mode == cudart.cudaReadModeNormalizedFloat and bits < 32
      assert p.code("cudaCreateTextureObject", ctypes.byref(out), ctypes.byref(what), ctypes.byref(how), None) == (
        0 if good else cudart.cudaErrorInvalidFilterSetting), (bits, mode)


def test_managed_variables_of_two_cards_lie_alike() -> None:
  """The second one of a module, and an address behind its beginning."""
  text = TEXT.replace(".global .align 4 .u32 factor = 3;", """.global .attribute(.managed) .align 4 .u32 other = 9;
    .global .attribute(.managed) .align 4 .u32 factor[4] = {2, 3, 4, 5};
    .global .u64 where = factor + 8;""").replace("ld.global.u32 %r4, [factor]", """
    ld.global.u64 %rd2, [where]; ld.global.u32 %r4, [%rd2]; red.global.add.u32 [%rd2], 1""")
  p = Program("sm_90,sm_80", text)
  cells = [ctypes.c_uint64(0) for _ in range(2)]
  for cell, name, size in zip(cells, (b"other", b"factor"), (4, 16), strict=True):
    p("__cudaRegisterManagedVar", p.handle, ctypes.addressof(cell), name, name, 0, size, 0, 0)
  assert p.code("__cudaInitModule", p.handle) == 1
  memory = p.made("cudaMallocManaged", 4, 1)
  found = ctypes.c_uint32.from_address(memory)
  for n, device in enumerate((0, 1, 0, 1)):
    p("cudaSetDevice", device)
    found.value = 1
    assert p.launch(memory, 1, block=1) == 0
    p("cudaDeviceSynchronize")
    assert found.value == 4 + n
  assert (ctypes.c_uint32 * 4).from_address(cells[1].value)[:] == [2, 3, 8, 5]
  assert ctypes.c_uint32.from_address(cells[0].value).value == 9


def test_cards_and_errors_of_a_thread() -> None:
  """The first card until another is chosen; errors are looked at, and taken."""
  p = Program("sm_90,sm_80")
  def device() -> int: return int(p.made("cudaGetDevice", kind=ctypes.c_int32))
  assert p.code("cudaPeekAtLastError") == p.code("cudaGetLastError") == 0 and device() == 0
  assert p.code("cudaSetDevice", 5) == cudart.cudaErrorInvalidDevice
  for name, wanted in (("cudaPeekAtLastError", 101), ("cudaPeekAtLastError", 101), ("cudaGetLastError", 101),
                       ("cudaGetLastError", 0), ("cudaPeekAtLastError", 0)): assert p.code(name) == wanted
  p("cudaSetDevice", 1)
  p("cudaDeviceEnablePeerAccess", 0, 0)
  assert device() == 1 and p.machine.gpus[0].primary is not None
  assert p.made("cudaDeviceGetCacheConfig", kind=ctypes.c_int32) == 0
  p("cudaMalloc", ctypes.byref(u64(0)), 4096)
  assert p.machine.gpus[1].allocator.free_bytes < p.machine.gpus[1].vram.size
  kernel = p.made("cudaGetFuncBySymbol", SCALE)
  p("cudaDeviceReset")
  assert device() == 1 and gc.isenabled()
  assert p.machine.gpus[1].primary is None and p.machine.gpus[0].primary is not None
  assert p.machine.gpus[1].allocator.free_bytes == p.machine.gpus[1].vram.size
  assert p.made("cudaGetFuncBySymbol", SCALE) != kernel  # its module is loaded anew
  out = ctypes.c_int32(-1)
  p("cudaDeviceGetCacheConfig", ctypes.byref(out))
  assert out.value == 0


def test_a_card_has_a_name_a_size_and_an_identity() -> None:
  p = Program("sm_90,sm_80")
  for card, title in ((0, b"NVIDIA H200"), (1, b"NVIDIA A100-SXM4-80GB")):
    out = cudart.cudaDeviceProp()
    ctypes.memset(ctypes.addressof(out), 0xEE, ctypes.sizeof(out))
    p("cudaGetDeviceProperties", ctypes.byref(out), card)
    raw, places = bytes(out), vars(cudart.cudaDeviceProp)
    def field(name: str, size: int, raw: bytes = raw, places: Any = places) -> bytes:
      return raw[places[name].offset:][:size]
    assert field("name", 256) == title.ljust(256, b"\0") and out.totalGlobalMem == 1 << 28
    assert field("uuid", 16) == b"tinyhw mock" + bytes(((9, 0), (8, 0))[card]) + bytes((0, 0, card))


@pytest.mark.parametrize(("grid", "block", "shared", "said"), [
  ((1, 1, 1), (2048, 1, 1), 0, cudart.cudaErrorInvalidConfiguration), ((2048, 1, 1), (1, 1, 1), 0, 0),
  ((0, 1, 1), (1, 1, 1), 0, cudart.cudaErrorInvalidConfiguration), ((1, 1, 1), (1, 1, 1), 48 << 10, 0),
  ((1, 1, 1), (1, 1, 1), 1 << 32, cudart.cudaErrorInvalidValue)])
def test_sizes_of_a_launch_by_its_configuration(grid: tuple[int, ...], block: tuple[int, ...], shared: int,
                                                said: int) -> None:
  p = Program()
  c = cudart.cudaLaunchConfig_t(gridDim=cudart.dim3(*grid), blockDim=cudart.dim3(*block), dynamicSmemBytes=shared)
  memory, n = ctypes.c_uint64(p.made("cudaMalloc", 1 << 16)), ctypes.c_uint32(1)
  places = (ctypes.c_uint64 * 2)(ctypes.addressof(memory), ctypes.addressof(n))
  assert p.code("cudaLaunchKernelExC", ctypes.byref(c), SCALE, places) == said
  p("cudaDeviceSynchronize")


def test_what_is_known_of_a_pointer() -> None:
  p = Program("sm_90,sm_80")
  def told(address: int) -> tuple[int, int, int, int]:
    out = cudart.cudaPointerAttributes()
    ctypes.memset(ctypes.addressof(out), 0xEE, ctypes.sizeof(out))
    p("cudaPointerGetAttributes", ctypes.byref(out), address)
    return out.type, out.device, out.devicePointer or 0, out.hostPointer or 0
  assert told(8) == (cudart.cudaMemoryTypeUnregistered, -2, 0, 8)
  for device in (0, 1):
    p("cudaSetDevice", device)
    at, host, managed = p.made("cudaMalloc", 64), p.made("cudaMallocHost", 64), p.made("cudaMallocManaged", 64, 1)
    assert told(at + 4) == (cudart.cudaMemoryTypeDevice, device, at + 4, 0)
    assert told(host + 4) == (cudart.cudaMemoryTypeHost, device, host + 4, host + 4)
    assert told(managed) == (cudart.cudaMemoryTypeManaged, device, managed, managed)


def test_boxes_of_the_runtime() -> None:
  """An allocation of three dimensions, and an end of a copy that is neither an array nor memory, or both."""
  p = Program()
  out = cudart.cudaPitchedPtr()
  p("cudaMalloc3D", ctypes.byref(out), cudart.cudaExtent(width=100, height=5, depth=7))
  assert (out.pitch, out.xsize, out.ysize) == (512, 100, 5)
  size = ctypes.c_uint64()
  assert p.machine.pieces[out.ptr].size == 512 * 5 * 7 and not size.value
  driver = Client.__new__(Client)
  driver.machine, driver.library = p.machine, library._stand.loaded.library  # type: ignore[union-attr]
  held = array(driver, np.float32, (8, 4, 0))
  given = cudart.cudaMemcpy3DParms(kind=cudart.cudaMemcpyDeviceToDevice, dstPtr=out,
                                   extent=cudart.cudaExtent(width=8, height=4, depth=1))
  copied = ctypes.byref(given)
  assert p.code("cudaMemcpy3D", copied) == cudart.cudaErrorInvalidValue
  given.srcArray = held
  assert p.code("cudaMemcpy3D", copied) == 0
  given.srcPtr = out
  assert p.code("cudaMemcpy3D", copied) == cudart.cudaErrorInvalidValue
  assert "an array and a pointer, or neither, for src" in p.machine.logs[-1]
  bad = cudart.cudaMemcpy3DParms(kind=cudart.cudaMemcpyDeviceToDevice, dstPtr=out, srcArray=12345)
  assert p.code("cudaMemcpy3D", ctypes.byref(bad)) == cudart.cudaErrorInvalidValue
  assert "0x3039 is no array" in p.machine.logs[-1]


def test_kernels_of_a_runtimes_graph_are_told() -> None:
  """By the host's function, with all of their sizes; a driver's kernel that no function stands for has none."""
  p = Program()
  memory, n = ctypes.c_uint64(p.made("cudaMalloc", 64)), ctypes.c_uint32(1)
  places = (ctypes.c_uint64 * 2)(ctypes.addressof(memory), ctypes.addressof(n))
  graph = p.made("cudaGraphCreate", 0)
  given = cudart.cudaKernelNodeParams(func=SCALE, gridDim=cudart.dim3(2, 3, 4), blockDim=cudart.dim3(5, 6, 7),
                                      sharedMemBytes=8, kernelParams=ctypes.addressof(places))
  node = p.made("cudaGraphAddKernelNode", graph, None, 0, ctypes.byref(given))
  def sizes(at: int) -> tuple[int, ...]:
    out = cudart.cudaKernelNodeParams()
    p("cudaGraphKernelNodeGetParams", at, ctypes.byref(out))
    return (out.func or 0, out.sharedMemBytes, *(getattr(d, a) for d in (out.gridDim, out.blockDim) for a in "xyz"))
  assert sizes(node) == (SCALE, 8, 2, 3, 4, 5, 6, 7)
  driver = Client.__new__(Client)
  driver.machine, driver.library = p.machine, library._stand.loaded.library  # type: ignore[union-attr]
  work = Work(memory.value, 1, func=driver.function(WAIT, "add"))
  other = driver.handle("cuGraphAddKernelNode_v2", u64(graph), None, COUNT(0), work.pointer)
  assert sizes(other) == (0, 0, 1, 1, 1, 1, 1, 1)
  unknown = cudart.cudaGraphNodeParams(type=cudart.cudaGraphNodeTypeExtSemaphoreSignal)
  assert p.code("cudaGraphAddNode", ctypes.byref(u64(0)), graph, None, None, 0, ctypes.byref(unknown)) \
      == cudart.cudaErrorNotSupported


def test_a_texture_of_nothing_is_no_texture() -> None:
  p, out = Program(), u64(0)
  what = cudart.cudaResourceDesc(resType=cudart.cudaResourceTypeArray)
  what.res.array.array = 12345
  how = cudart.cudaTextureDesc(filterMode=cudart.cudaFilterModeLinear, readMode=cudart.cudaReadModeElementType)
  assert p.code("cudaCreateTextureObject", ctypes.byref(out), ctypes.byref(what), ctypes.byref(how), None) \
      == cudart.cudaErrorInvalidValue


# ---- NVIDIA's compiler

class Compiler:
  """What nvrtc does of one program, with what it was asked."""

  def __init__(self) -> None:
    self.calls: list[tuple[Any, ...]] = []
    self.code, self.ptx = 0, b".version 8.0\0"

  def nvrtcCompileProgram(self, program: Any, count: int, options: Any) -> int:
    self.calls.append(("compile", program, *options[:count]))
    return self.code

  def nvrtcDestroyProgram(self, program: int) -> int:
    self.calls.append(("destroy", ctypes.c_uint64.from_address(program).value if program else None))
    return 0

  def nvrtcGetPTXSize(self, program: int, out: Any) -> int:
    out._obj.value = len(self.ptx)
    return 0

  def nvrtcGetPTX(self, program: int, room: Any) -> int:
    ctypes.memmove(room, self.ptx, len(self.ptx))
    return 0

  def nvrtcGetCUBINSize(self, program: Any, out: Any) -> int:
    self.calls.append(("cubin size", program, out))
    return 3

  def nvrtcGetCUBIN(self, program: Any, room: Any) -> int:
    self.calls.append(("cubin", program, room))
    return 4

  def nvrtcGetErrorString(self, code: int) -> int | None: return 1234 if code == 5 else None

  def nvrtcGetNumSupportedArchs(self, out: Any) -> int: return 6


def test_a_compiler_is_asked_for_ptx_and_gives_an_elf() -> None:
  """Machine code of a real architecture is what `elf` makes of the PTX; all else is NVIDIA's own answer."""
  elves: list[tuple[bytes, str]] = []
  def elf(ptx: bytes, arch: str) -> bytes | None:
    elves.append((ptx, arch))
    return b"ELF of " + arch.encode() if arch != "sm_80" else None
  r, real = Rtc("/nowhere/libnvrtc.so.tested", elf), Compiler()
  r.__dict__["_real"] = real
  lib, size = r.loaded.library, ctypes.c_size_t()
  lib.nvrtcGetErrorString.restype = ctypes.c_void_p
  def compiled(program: int, *options: bytes) -> int:
    table = (ctypes.c_char_p * len(options))(*options)
    return int(lib.nvrtcCompileProgram(u64(program), len(options), table))
  assert compiled(11, b"-DN=1", b"-arch=sm_90") == 0 and compiled(12, b"-arch=compute_90") == 0 == compiled(13)
  assert int(lib.nvrtcCompileProgram(u64(14), 1, None)) == 0 == int(lib.nvrtcCompileProgram(u64(14), -1, None))
  assert real.calls == [("compile", 11, b"-DN=1", b"-arch=compute_90"), ("compile", 12, b"-arch=compute_90"),
                        ("compile", 13), ("compile", 14), ("compile", 14)]
  room = ctypes.create_string_buffer(b"\xee" * 32, 32)
  assert lib.nvrtcGetCUBINSize(u64(11), ctypes.byref(size)) == 0 and size.value == 12
  assert lib.nvrtcGetCUBIN(u64(11), room) == 0 and room.raw == b"ELF of sm_90" + b"\xee" * 20
  assert {*elves} == {(b".version 8.0", "sm_90")}
  real.calls.clear()
  for program in (12, 13, 14):
    assert lib.nvrtcGetCUBINSize(u64(program), ctypes.byref(size)) == 3 and lib.nvrtcGetCUBIN(u64(program), room) == 4
  assert lib.nvrtcGetCUBINSize(u64(11), None) == 3 and lib.nvrtcGetCUBIN(u64(11), None) == 4
  assert [c[:2] for c in real.calls] == [(k, p) for p in (12, 13, 14, 11) for k in ("cubin size", "cubin")]
  assert [c[2] for c in real.calls[-2:]] == [0, 0]
  assert compiled(15, b"-arch=sm_80") == 0  # no ELF: the PTX itself
  assert lib.nvrtcGetCUBINSize(u64(15), ctypes.byref(size)) == 0 and size.value == len(real.ptx)
  real.code = 6
  assert compiled(15, b"-arch=sm_90") == 6 and lib.nvrtcGetCUBINSize(u64(15), ctypes.byref(size)) == 3
  real.calls.clear()
  assert lib.nvrtcDestroyProgram(ctypes.byref(u64(11))) == 0 == lib.nvrtcDestroyProgram(None)
  assert real.calls == [("destroy", 11), ("destroy", None)]
  assert lib.nvrtcGetCUBINSize(u64(11), ctypes.byref(size)) == 3
  assert lib.nvrtcGetErrorString(5) == 1234 and not lib.nvrtcGetErrorString(6)
  assert lib.nvrtcGetNumSupportedArchs(ctypes.byref(size)) == 6
  assert lib.nvrtcVersion(ctypes.byref(size), ctypes.byref(size)) == nvrtc.NVRTC_ERROR_INVALID_INPUT  # an older one


# ---- what a call raises, and what other processes hand over

@pytest.mark.parametrize(("raised", "code", "said"), [
  (lambda: Refused(14, "no such page"), cuda.CUDA_ERROR_INVALID_VALUE, "no such page"),
  (lambda: PageFault(0x1000, "read", 4), cuda.CUDA_ERROR_INVALID_VALUE, "read of 4 bytes at 0x1000"),
  (lambda: OutOfMemory("room", 9, 5), cuda.CUDA_ERROR_OUT_OF_MEMORY, "room"),
  (lambda: Unsupported("thing", "of a test"), cuda.CUDA_ERROR_NOT_SUPPORTED, "of a test"),
  (lambda: ZeroDivisionError("of a test"), cuda.CUDA_ERROR_UNKNOWN, "ZeroDivisionError: of a test"),
  (lambda: Failed(cuda.CUDA_ERROR_NOT_FOUND, "nowhere"), cuda.CUDA_ERROR_NOT_FOUND, "nowhere")])
def test_what_a_call_raises_is_its_result_and_in_the_log(client: Client, monkeypatch: pytest.MonkeyPatch, raised: Any,
                                                         code: int, said: str) -> None:
  def handler(m: Any, *arguments: Any) -> None: raise raised()
  monkeypatch.setitem(SERVED, "cuCtxSynchronize", handler)
  assert answer(lambda: client.machine, "cuCtxSynchronize")() == code
  assert client.machine.logs[-1].startswith(f"[CUDA][E] cuCtxSynchronize: {cuda.RESULTS[code]}: ")
  assert said in client.machine.logs[-1]
  doubted = any("of a test" in line for line in client.machine.report())
  assert doubted == (code == cuda.CUDA_ERROR_NOT_SUPPORTED)


HANDLE = struct.Struct("<8s2I5Q")  # a mark; process, file; its device and inode; offset, size, card


def test_each_part_of_a_handle_of_another_process(client: Client) -> None:
  """The process stands in for another one by a child that has its file."""
  c, size = client, 3 * 4096
  at, raw, event = c.alloc(size), cuda.CUipcMemHandle(), cuda.CUipcEventHandle()
  c.put(at, np.arange(size // 4, dtype=np.uint32))
  c.call("cuIpcGetMemHandle", ctypes.byref(raw), u64(at))
  own = c.handle("cuEventCreate", cuda.CU_EVENT_INTERPROCESS | cuda.CU_EVENT_DISABLE_TIMING)
  c.call("cuIpcGetEventHandle", ctypes.byref(event), u64(own))
  mark, pid, file, device, inode, offset, length, card = HANDLE.unpack_from(bytes(raw))
  assert (pid, length, card) == (os.getpid(), size, 0)
  whole = c.machine.gpus[0].vram.size
  child = subprocess.Popen(["sleep", "60"], pass_fds=[file])
  wrong, lost = cuda.CUDA_ERROR_INVALID_HANDLE, cuda.CUDA_ERROR_INVALID_CONTEXT
  rows: list[tuple[dict[int, Any], int]] = [
    ({}, 0), ({0: b"tinyhw\0\2"}, wrong), ({0: bytes(8)}, wrong), ({1: pid}, lost), ({2: 9999}, wrong),
    ({3: device + 1}, wrong), ({4: inode + 1}, wrong), ({5: whole - size}, 0), ({5: whole - size + 4096}, wrong),
    ({6: size - 1}, 0), ({5: whole - 2 * 4096, 6: 2 * 4096 + 1}, wrong), ({7: 1}, 0), ({7: 2}, 0)]
  try:
    for changes, code in rows:
      fields = [changes.get(i, v) for i, v in enumerate((mark, child.pid, file, device, inode, offset, length, card))]
      given, out = cuda.CUipcMemHandle.from_buffer_copy(HANDLE.pack(*fields).ljust(64, b"\0")), u64(0)
      assert c.code("cuIpcOpenMemHandle_v2", ctypes.byref(out), given, 1) == code, changes
      if code: continue
      piece = c.machine.pieces[out.value]
      assert piece.size == fields[6] and piece.device == (fields[7] if fields[7] < 2 else 0)
      if not changes:
        assert (c.get(out.value, np.zeros(size // 4, np.uint32)) == np.arange(size // 4)).all()
        again = c.handle("cuIpcOpenMemHandle_v2", given, 1)
        assert again == out.value
        c.call("cuIpcCloseMemHandle", out)
      c.call("cuIpcCloseMemHandle", out)
      assert error(c, "cuIpcCloseMemHandle", out) == "INVALID_VALUE"
    assert c.code("cuIpcOpenEventHandle", ctypes.byref(u64(0)), cuda.CUipcEventHandle.from_buffer_copy(bytes(raw))) \
        == wrong
    assert c.code("cuIpcOpenEventHandle", ctypes.byref(u64(0)), event) == lost
  finally:
    child.kill()
    child.wait()


@pytest.mark.parametrize("im2col", [False, True])
def test_each_argument_of_a_tensor_map_has_its_place(client: Client, im2col: bool) -> None:
  """What lies outside is zero or NaN; how lines come into the L2 is a hint of four values, and in no map."""
  out = aligned(128)
  rank = 3 if im2col else 2
  dims, strides = (ctypes.c_uint64 * 5)(32, 8, 4, 1, 1), (ctypes.c_uint64 * 4)(128, 1024, 4096, 0)
  steps = (ctypes.c_uint32 * 5)(1, 1, 1, 1, 1)
  box = (ctypes.c_uint32 * 2)(8, 4)
  corner = (ctypes.c_int32 * 3)(0, 0, 0)
  for promotion, fill, swizzle in itertools.product(range(6), range(3), (0, 1)):
    more = (corner, corner, 8, 4) if im2col else (box,)
    code = client.code(f"cuTensorMapEncode{'Im2col' if im2col else 'Tiled'}", u64(out.ctypes.data),
                       cuda.CU_TENSOR_MAP_DATA_TYPE_FLOAT32, rank, u64(0x10000), dims, strides, *more, steps, 0,
                       swizzle, promotion, fill)
    good = promotion <= cuda.CU_TENSOR_MAP_L2_PROMOTION_L2_256B and fill < 2
    assert (code == 0) == good, (promotion, fill, swizzle)
    if good:
      found = TensorMap.decode(out.tobytes())
      assert (found.fill, found.swizzle, found.interleave, found.rank) == (fill, swizzle, 0, rank)
