"""Programs that nvcc links (-rdc=true), kernels that launch kernels, and the heap that modules of a context share."""
from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.mock.cuda.client import HEAD, Client
from tests.mock.cuda.test_virtual import MALLOC
from tests.wire.test_fatbin import packed
from tinyhw.autogen import cuda, cudart
from tinyhw.mock.cuda.modules import devicelib

u32, u64 = ctypes.c_uint32, ctypes.c_uint64
DECLARED = HEAD + """
.extern .func (.param .b64 out) __cudaCDP2GetParameterBufferV2(.param .b64 of, .param .align 4 .b8 grid[12],
  .param .align 4 .b8 block[12], .param .b32 shared);
.extern .func (.param .b32 out) __cudaCDP2LaunchDeviceV2(.param .b64 at, .param .b64 stream);
"""
BODY = """
.visible .entry {name}(.param .u64 log, .param .u32 what, .param .u32 depth) {{
  .reg .b64 %l<9>; .reg .b32 %r<9>; .reg .pred %p<3>;
  ld.param.u64 %l1, [log]; ld.param.u32 %r1, [what]; ld.param.u32 %r2, [depth];
  atom.global.add.u32 %r3, [%l1], 1; mul.wide.u32 %l2, %r3, 4; add.u64 %l2, %l2, %l1; st.global.u32 [%l2+4], %r1;
  setp.eq.u32 %p1, %r2, 0; @%p1 bra DONE;
  sub.u32 %r2, %r2, 1; mul.lo.u32 %r1, %r1, 10;
  {calls}
DONE: ret; }}
"""
CALL = """
  add.u32 %r1, %r1, 1; mov.u64 %l3, {child};
  {{ .param .b64 f; .param .align 4 .b8 g[12]; .param .align 4 .b8 b[12]; .param .b32 s; .param .b64 out;
    st.param.b64 [f], %l3; mov.b32 %r4, 1; mov.b32 %r5, 0;
    st.param.b32 [g], %r4; st.param.b32 [g+4], %r4; st.param.b32 [g+8], %r4;
    st.param.b32 [b], %r4; st.param.b32 [b+4], %r4; st.param.b32 [b+8], %r4; st.param.b32 [s], %r5;
    call.uni (out), __cudaCDP2GetParameterBufferV2, (f, g, b, s); ld.param.b64 %l4, [out]; }}
  st.u64 [%l4], %l1; st.u32 [%l4+8], %r1; st.u32 [%l4+12], %r2;
  {{ .param .b64 at; .param .b64 stream; .param .b32 out; mov.b64 %l5, {stream};
    st.param.b64 [at], %l4; st.param.b64 [stream], %l5;
    call.uni (out), __cudaCDP2LaunchDeviceV2, (at, stream); ld.param.b32 %r6, [out]; }}
"""
# the parent launches three, the first of them for the end; the children, of another object, launch one each
PARENT = DECLARED + ".extern .entry child(.param .u64 log, .param .u32 what, .param .u32 depth);" + BODY.format(
  name="parent", calls="".join(CALL.format(child="child", stream=s) for s in (devicelib.TAIL, 0, 4)))
CHILD = DECLARED + BODY.format(name="child", calls=CALL.format(child="child", stream=0))


def linked(*texts: str) -> tuple[ctypes.Array[ctypes.c_uint64], object]:
  """A wrapper as nvcc's linker makes it: machine code, which there is none of, and what it was made of."""
  fats = [ctypes.create_string_buffer(packed(*([(1, 80, t.encode(), 0x11, 0)] if t else []))) for t in texts]
  objects = (u64 * (len(fats) + 1))(*map(ctypes.addressof, fats), 0)
  empty = ctypes.create_string_buffer(packed())
  wrapper = (u64 * 3)(cudart.FATBINC_MAGIC | 2 << 32, ctypes.addressof(empty), ctypes.addressof(objects))
  return wrapper, (fats, objects, empty)


@pytest.mark.parametrize("engine", ["ref", "jit"])
def test_kernels_of_several_objects_launch_each_other(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Each child with its own children, in order; those of the tail last. An object without PTX, and one with a runtime
  of its own, count for nothing."""
  monkeypatch.setenv("EMU", engine)
  client = Client()
  own = HEAD + ".visible .func (.param .b32 out) __cudaCDP2StreamDestroy(.param .b64 s) { trap; ret; }"
  wrapper, kept = linked(PARENT, "", CHILD, own)
  module = client.handle("cuModuleLoadFatBinary", ctypes.addressof(wrapper))
  function = client.handle("cuModuleGetFunction", module, b"parent")
  log = client.alloc(256)
  client.call("cuMemsetD8_v2", log, 0, ctypes.c_size_t(256))
  for _ in range(2): assert client.launch(function, 1, 1, [u64(log), u32(1), u32(2)]) == 0
  order = [1, 12, 121, 13, 131, 11, 111]
  assert client.get(log, np.zeros(15, np.uint32)).tolist() == [14, *order, *order]
  assert kept and client.machine.report() == []


def test_what_a_kernel_launches_may_be_wrong() -> None:
  client = Client()
  wrapper, kept = linked(PARENT.replace("mov.u64 %l3, child;", "mov.u64 %l3, 77;", 1), CHILD)
  module = client.handle("cuModuleLoadFatBinary", ctypes.addressof(wrapper))
  log = client.alloc(256)
  client.launch(client.handle("cuModuleGetFunction", module, b"parent"), 1, 1, [u64(log), u32(1), u32(1)])
  assert client.code("cuCtxSynchronize") == cuda.CUDA_ERROR_LAUNCH_FAILED
  assert any("0x4d, which is no kernel" in line for line in client.machine.logs) and kept


def test_programs_without_ptx_are_refused() -> None:
  client = Client()
  wrapper, kept = linked("", "")
  assert client.code("cuModuleLoadFatBinary", ctypes.byref(u64()), ctypes.addressof(wrapper)) == \
    cuda.CUDA_ERROR_NO_BINARY_FOR_GPU and kept


SERVICES = DECLARED + """
.extern .func (.param .b32 out) __cudaCDP2Malloc(.param .b64 at, .param .b64 size);
.extern .func (.param .b32 out) __cudaCDP2Free(.param .b64 at);
.extern .func (.param .b32 out) __cudaCDP2StreamCreateWithFlags(.param .b64 at, .param .b32 flags);
.extern .func (.param .b32 out) __cudaCDP2StreamDestroy(.param .b64 stream);
.extern .func (.param .b32 out) __cudaCDP2GetLastError();
.extern .func (.param .b64 out) __cudaCDP2GetErrorString(.param .b32 code);
.extern .func (.param .b32 out) __cudaCDP2MemcpyAsync(.param .b64 to, .param .b64 what, .param .b64 count,
  .param .b32 kind, .param .b64 stream);
.extern .func (.param .b32 out) __cudaCDP2MemsetAsync(.param .b64 to, .param .b32 what, .param .b64 count,
  .param .b64 stream);
.visible .entry k(.param .u64 out) {
  .reg .b64 %l<9>; .reg .b32 %r<9>;
  ld.param.u64 %l1, [out]; mov.b64 %l2, 64; mov.b32 %r1, 0xA7; mov.b64 %l3, 0; mov.b32 %r3, 3;
  { .param .b64 a; .param .b64 s; .param .b32 o; st.param.b64 [a], %l1; st.param.b64 [s], %l2;
    call (o), __cudaCDP2Malloc, (a, s); ld.param.b32 %r2, [o]; }
  ld.global.u64 %l4, [%l1]; st.u32 [%l4], %r1; st.global.u32 [%l1+8], %r2;
  { .param .b64 a; .param .b32 o; st.param.b64 [a], %l4; call (o), __cudaCDP2Free, (a); ld.param.b32 %r2, [o]; }
  st.global.u32 [%l1+12], %r2; add.u64 %l5, %l1, 16;
  { .param .b64 a; .param .b32 f; .param .b32 o; st.param.b64 [a], %l5; st.param.b32 [f], %r2;
    call (o), __cudaCDP2StreamCreateWithFlags, (a, f); ld.param.b32 %r2, [o]; }
  { .param .b32 o; call (o), __cudaCDP2GetLastError; ld.param.b32 %r4, [o]; } st.global.v2.u32 [%l1+24], {%r2, %r4};
  { .param .b32 c; .param .b64 o; st.param.b32 [c], %r2;
    call (o), __cudaCDP2GetErrorString, (c); ld.param.b64 %l6, [o]; }
  ld.u8 %r5, [%l6]; st.global.u32 [%l1+32], %r5; add.u64 %l6, %l1, 40; mov.b64 %l7, 4; add.u64 %l8, %l1, 44;
  { .param .b64 t; .param .b32 w; .param .b64 n; .param .b64 s; .param .b32 o; st.param.b64 [t], %l6;
    st.param.b32 [w], %r1; st.param.b64 [n], %l7; st.param.b64 [s], %l3;
    call (o), __cudaCDP2MemsetAsync, (t, w, n, s); ld.param.b32 %r2, [o]; }
  { .param .b64 t; .param .b64 w; .param .b64 n; .param .b32 k; .param .b64 s; .param .b32 o; st.param.b64 [t], %l8;
    st.param.b64 [w], %l6; st.param.b64 [n], %l7; st.param.b32 [k], %r3; st.param.b64 [s], %l3;
    call (o), __cudaCDP2MemcpyAsync, (t, w, n, k, s); ld.param.b32 %r2, [o]; }
  { .param .b64 s; .param .b32 o; st.param.b64 [s], %l3;
    call (o), __cudaCDP2StreamDestroy, (s); ld.param.b32 %r2, [o]; }
  ret; }
"""


def test_the_runtime_for_the_device() -> None:
  client = Client()
  function, out = client.function(SERVICES, "k"), client.alloc(64)
  client.call("cuMemsetD8_v2", out, 0xFF, ctypes.c_size_t(64))
  assert client.launch(function, 1, 1, [u64(out)]) == 0
  found = client.get(out, np.zeros(12, np.uint32)).tolist()
  assert found[2:4] == [0, 0] and found[4:8] == [16, 0, 0, 0]
  assert found[8] == ord("n") and found[10:] == [0xA7A7A7A7] * 2


def test_modules_share_the_heap() -> None:
  """What a kernel of one module allocates one of another frees."""
  free = MALLOC.replace(".visible .entry kept", ".visible .entry unused") + """
.visible .entry gone(.param .u64 at) { .reg .b64 %x; ld.param.u64 %x, [at];
  { .param .b64 a; st.param.b64 [a], %x; call.uni free, (a); } ret; }
"""
  client = Client()
  make, drop, out = client.function(MALLOC, "kept"), client.function(free, "gone"), client.alloc(8)
  found = []
  for _ in range(3):
    assert client.launch(make, 1, 1, [u64(out), u32(1)]) == 0
    found.append(int(client.get(out, np.zeros(1, np.uint64))[0]))
    if len(found) == 2: assert client.launch(drop, 1, 1, [u64(found[1])]) == 0
  assert found[0] != found[1] and found[2] == found[1] and all(found)
