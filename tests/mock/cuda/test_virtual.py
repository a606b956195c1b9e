"""Virtual memory management, and the device's own malloc."""
from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest

from tests.mock.cuda.client import HEAD, WAIT, Client, u32, u64
from tests.mock.cuda.test_nodes_and_libraries import error
from tinyhw.autogen import cuda

UNIT = 2 << 20


@pytest.fixture
def client() -> Iterator[Client]:
  client = Client("sm_90,sm_90")
  yield client
  client.machine.close()


def physical(client: Client, size: int, device: int = 0) -> int:
  p = cuda.CUmemAllocationProp_v1(type=cuda.CU_MEM_ALLOCATION_TYPE_PINNED)
  p.location.type, p.location.id = cuda.CU_MEM_LOCATION_TYPE_DEVICE, device
  return client.handle("cuMemCreate", ctypes.c_size_t(size), ctypes.byref(p), u64(0))


def granted(client: Client, address: int, size: int, flags: int = cuda.CU_MEM_ACCESS_FLAGS_PROT_READWRITE) -> None:
  d = cuda.CUmemAccessDesc_v1(flags=flags)
  d.location.type = cuda.CU_MEM_LOCATION_TYPE_DEVICE
  client.call("cuMemSetAccess", u64(address), ctypes.c_size_t(size), ctypes.byref(d), ctypes.c_size_t(1))


def test_memory_of_two_cards_is_one_range(client: Client) -> None:
  free = client.machine.gpus[1].allocator.free_bytes
  at = client.handle("cuMemAddressReserve", ctypes.c_size_t(2 * UNIT), ctypes.c_size_t(0), u64(0), u64(0))
  handles = [physical(client, UNIT, device) for device in (0, 1)]
  for i, handle in enumerate(handles):
    client.call("cuMemMap", u64(at + i * UNIT), ctypes.c_size_t(UNIT), ctypes.c_size_t(0), u64(handle), u64(0))
  data = np.arange(4096, dtype=np.uint32)
  middle = at + UNIT - data.nbytes // 2
  put = "cuMemcpyHtoD_v2", u64(middle), ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.nbytes)
  assert error(client, *put) == "INVALID_VALUE"  # nobody may reach it yet
  granted(client, at, 2 * UNIT)
  client.call(*put)
  assert (client.get(middle, data) == data).all()
  function = client.function(WAIT, "add")
  assert client.launch(function, 1, 1, [u64(at + UNIT), u32(1)]) == 0
  assert client.get(at + UNIT, data[:1])[0] == 3 * 2048 + 1
  kept = client.handle("cuMemRetainAllocationHandle", u64(at + 2 * UNIT - 1))
  assert kept == handles[1]
  for handle in (*handles, kept): client.call("cuMemRelease", u64(handle))
  assert error(client, "cuMemUnmap", u64(at), ctypes.c_size_t(UNIT // 2)) == "INVALID_VALUE"
  assert error(client, "cuMemFree_v2", u64(at)) == "INVALID_VALUE"
  assert error(client, "cuMemAddressFree", u64(at), ctypes.c_size_t(2 * UNIT)) == "INVALID_VALUE"
  assert client.machine.gpus[1].allocator.free_bytes == free - UNIT
  client.call("cuMemUnmap", u64(at), ctypes.c_size_t(2 * UNIT))
  assert client.machine.gpus[1].allocator.free_bytes == free
  client.call("cuMemAddressFree", u64(at), ctypes.c_size_t(2 * UNIT))
  assert error(client, *put) == "INVALID_VALUE"


def test_access_that_goes_is_a_fault(client: Client) -> None:
  at = client.handle("cuMemAddressReserve", ctypes.c_size_t(UNIT), ctypes.c_size_t(0), u64(0), u64(0))
  client.call("cuMemMap", u64(at), ctypes.c_size_t(UNIT), ctypes.c_size_t(0), u64(physical(client, UNIT)), u64(0))
  granted(client, at, UNIT)
  granted(client, at, UNIT, cuda.CU_MEM_ACCESS_FLAGS_PROT_NONE)
  where, flags = cuda.CUmemLocation(type=cuda.CU_MEM_LOCATION_TYPE_DEVICE), u64(7)
  client.call("cuMemGetAccess", ctypes.byref(flags), ctypes.byref(where), u64(at))
  assert flags.value == cuda.CU_MEM_ACCESS_FLAGS_PROT_NONE
  assert client.launch(client.function(WAIT, "add"), 1, 1, [u64(at), u32(1)]) == 0
  assert error(client, "cuCtxSynchronize") == "ILLEGAL_ADDRESS"


def test_handles_of_other_systems_are_refused_by_name(client: Client) -> None:
  p = cuda.CUmemAllocationProp_v1(type=cuda.CU_MEM_ALLOCATION_TYPE_PINNED,
                                  requestedHandleTypes=cuda.CU_MEM_HANDLE_TYPE_WIN32)
  p.location.type = cuda.CU_MEM_LOCATION_TYPE_DEVICE
  assert error(client, "cuMemCreate", ctypes.byref(u64(0)), ctypes.c_size_t(UNIT), ctypes.byref(p),
               u64(0)) == "NOT_SUPPORTED"
  assert client.machine.report() == ["cuMemCreate: memory with handles of kinds 0x2"]


MALLOC = HEAD + """
.extern .func (.param .b64 out) malloc(.param .b64 size);
.extern .func free(.param .b64 at);
.visible .entry kept(.param .u64 out, .param .u32 rounds) {
  .reg .b64 %rd<5>; .reg .b32 %r<6>; .reg .pred %p;
  ld.param.u64 %rd0, [out]; ld.param.u32 %r0, [rounds]; mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd1, %r1, 8; add.u64 %rd0, %rd0, %rd1;
again:
  mul.wide.u32 %rd2, %r1, 8; add.u64 %rd2, %rd2, 8;
  { .param .b64 a; st.param.b64 [a], %rd2; .param .b64 b; call.uni (b), malloc, (a); ld.param.b64 %rd3, [b]; }
  setp.eq.u64 %p, %rd3, 0; @%p bra done;
  st.u32 [%rd3], %r1;
  sub.u32 %r0, %r0, 1; setp.eq.u32 %p, %r0, 0; @%p bra done;
  { .param .b64 a; st.param.b64 [a], %rd3; call.uni free, (a); }
  bra again;
done:
  st.global.u64 [%rd0], %rd3; ret; }
"""


def test_kernels_allocate(client: Client) -> None:
  """Each thread has memory of its own; what goes comes back, so that many rounds fit; what does not fit is null."""
  client.call("cuCtxSetLimit", cuda.CU_LIMIT_MALLOC_HEAP_SIZE, ctypes.c_size_t(16 << 10))
  function, out = client.function(MALLOC, "kept"), client.alloc(8 * 32)
  assert client.launch(function, 1, 32, [u64(out), u32(6)]) == 0
  found = client.get(out, np.zeros(32, np.uint64))
  assert len({*found.tolist()}) == 32 and (found % 16 == 0).all() and found.all()
  words = [int.from_bytes(client.machine.space.read(int(at), 4), "little") for at in found]
  assert words == list(range(32))
  for _ in range(9): assert client.launch(function, 1, 32, [u64(out), u32(1)]) == 0
  found = client.get(out, np.zeros(32, np.uint64))
  assert not found.all() and client.machine.report() == []
