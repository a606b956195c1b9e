"""Memory that other processes have by a descriptor: of cuMemCreate, and of pools."""
from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import numpy as np

from tests.mock.cuda.client import Client, u64
from tests.mock.cuda.test_nodes_and_libraries import error
from tests.mock.cuda.test_runtime import Program
from tests.mock.cuda.test_virtual import UNIT, granted
from tinyhw.autogen import cuda, cudart

POSIX = cuda.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
WORDS = np.array([5, 6], np.uint32)
OTHER = """
import ctypes, sys
import numpy as np
from tests.mock.cuda.client import WAIT, Client, u32, u64
from tests.mock.cuda.test_exported import imported, mapped, of_pool, opened
from tests.mock.cuda.test_nodes_and_libraries import error
from tinyhw.autogen import cuda

c, data, out = Client("sm_90,sm_80"), bytes.fromhex(sys.argv[3]), ctypes.c_uint64()
memory, pool = imported(c, int(sys.argv[1])), opened(c, int(sys.argv[2]))
free = c.machine.gpus[0].allocator.free_bytes
for at in (mapped(c, memory), of_pool(c, pool, data)):
  assert c.get(at, np.zeros(2, np.uint32)).tolist() == [5, 6]
  assert c.launch(c.function(WAIT, "add"), 1, 1, [u64(at + 4), u32(3)]) == 0
  c.call("cuCtxSynchronize")
c.call("cuMemFreeAsync", u64(at), u64(0))
c.call("cuCtxSynchronize")
assert free == c.machine.gpus[0].allocator.free_bytes
for name, *rest in (("cuMemAllocFromPoolAsync", ctypes.byref(out), ctypes.c_size_t(8), u64(pool), u64(0)),
                    ("cuDeviceSetMemPool", 0, u64(pool)), ("cuMemPoolExportPointer", data, u64(at)),
                    ("cuMemPoolImportPointer", ctypes.byref(out), u64(pool), bytes(64)),
                    ("cuMemPoolImportPointer", ctypes.byref(out), u64(pool), data[:8] + b"\\xff" * 16 + bytes(40))):
  assert error(c, name, *rest) == "INVALID_VALUE", name
"""


def imported(c: Client, fd: int) -> int: return c.handle("cuMemImportFromShareableHandle", u64(fd), POSIX)


def opened(c: Client, fd: int) -> int: return c.handle("cuMemPoolImportFromShareableHandle", u64(fd), POSIX, u64(0))


def of_pool(c: Client, pool: int, data: bytes) -> int: return c.handle("cuMemPoolImportPointer", u64(pool), data)


def mapped(c: Client, memory: int) -> int:
  at = c.handle("cuMemAddressReserve", ctypes.c_size_t(UNIT), ctypes.c_size_t(0), u64(0), u64(0))
  c.call("cuMemMap", u64(at), ctypes.c_size_t(UNIT), ctypes.c_size_t(0), u64(memory), u64(0))
  granted(c, at, UNIT)
  return at


def created(c: Client, device: int = 0, kinds: int = POSIX) -> int:
  p = cuda.CUmemAllocationProp_v1(type=cuda.CU_MEM_ALLOCATION_TYPE_PINNED, requestedHandleTypes=kinds)
  p.location.type, p.location.id = cuda.CU_MEM_LOCATION_TYPE_DEVICE, device
  return c.handle("cuMemCreate", ctypes.c_size_t(UNIT), ctypes.byref(p), u64(0))


def pool(c: Client, kinds: int = POSIX) -> int:
  p = cuda.CUmemPoolProps(allocType=cuda.CU_MEM_ALLOCATION_TYPE_PINNED, handleTypes=kinds)
  p.location.type = cuda.CU_MEM_LOCATION_TYPE_DEVICE
  return c.handle("cuMemPoolCreate", ctypes.byref(p))


def descriptor(c: Client, what: str, handle: int) -> int:
  fd = ctypes.c_int(-1)
  c.call(f"cu{what}ExportToShareableHandle", ctypes.byref(fd), u64(handle), POSIX, u64(0))
  return fd.value


def place(c: Client, at: int) -> bytes:
  data = ctypes.create_string_buffer(64)
  c.call("cuMemPoolExportPointer", data, u64(at))
  return data.raw


def test_another_process_reads_and_writes_it(client: Client) -> None:
  c = client
  memory, one = created(c), pool(c)
  before = c.handle("cuMemAllocFromPoolAsync", ctypes.c_size_t(5000), u64(one), u64(0))
  ats = mapped(c, memory), c.handle("cuMemAllocFromPoolAsync", ctypes.c_size_t(8), u64(one), u64(0))
  for at in ats: c.put(at, WORDS)
  fds = descriptor(c, "Mem", memory), descriptor(c, "MemPool", one)
  done = subprocess.run([sys.executable, "-c", OTHER, *map(str, fds), place(c, ats[1]).hex()], pass_fds=fds,
                        capture_output=True, text=True)
  assert done.returncode == 0, done.stderr
  for at in ats: assert c.get(at, WORDS).tolist() == [5, 3 * 6 + 3]
  assert c.get(before, WORDS).tolist() == [0, 0]


def test_memory_stays_until_the_last_one_lets_it_go(client: Client) -> None:
  """What was exported, of the second card; the descriptor may be closed."""
  c = client
  gpu = c.machine.gpus[1]
  free = gpu.allocator.free_bytes
  memory = created(c, 1)
  fd, at = descriptor(c, "Mem", memory), mapped(c, memory)
  again = imported(c, fd)
  os.close(fd)
  other = mapped(c, again)
  p = cuda.CUmemAllocationProp_v1()
  c.call("cuMemGetAllocationPropertiesFromHandle", ctypes.byref(p), u64(again))
  assert (p.location.id, p.requestedHandleTypes) == (1, POSIX) and gpu.allocator.free_bytes == free - UNIT
  c.put(at, WORDS)
  for handle in (memory, again): c.call("cuMemRelease", u64(handle))
  c.call("cuMemUnmap", u64(at), ctypes.c_size_t(UNIT))
  assert gpu.allocator.free_bytes == free and c.get(other, WORDS).tolist() == [5, 6]
  c.call("cuMemUnmap", u64(other), ctypes.c_size_t(UNIT))
  c.call("cuMemRelease", u64(created(c, 1, 0)))
  assert gpu.allocator.free_bytes == free and error(client, "cuMemRelease", u64(again)) == "INVALID_VALUE"


def test_what_no_process_may_have(client: Client) -> None:
  c, fd = client, ctypes.byref(ctypes.c_int())
  plain, bare, one, memory = created(c, kinds=0), pool(c, 0), pool(c), created(c)
  at = c.handle("cuMemAllocFromPoolAsync", ctypes.c_size_t(8), u64(bare), u64(0))
  calls: list[tuple[str, tuple[object, ...]]] = [
    ("cuMemExportToShareableHandle", (fd, u64(plain), POSIX, u64(0))),
    ("cuMemExportToShareableHandle", (fd, u64(memory), cuda.CU_MEM_HANDLE_TYPE_WIN32, u64(0))),
    ("cuMemExportToShareableHandle", (fd, u64(memory), POSIX, u64(1))),
    ("cuMemExportToShareableHandle", (None, u64(memory), POSIX, u64(0))),
    ("cuMemPoolExportToShareableHandle", (fd, u64(bare), POSIX, u64(0))),
    ("cuMemPoolExportPointer", (ctypes.create_string_buffer(64), u64(at))),
    ("cuMemPoolExportPointer", (None, u64(c.handle("cuMemAllocFromPoolAsync", ctypes.c_size_t(8), u64(one), u64(0))))),
    ("cuMemImportFromShareableHandle", (ctypes.byref(u64(0)), u64(descriptor(c, "MemPool", one)), POSIX)),
    ("cuMemPoolImportFromShareableHandle", (ctypes.byref(u64(0)), u64(descriptor(c, "Mem", memory)), POSIX, u64(0))),
    ("cuMemPoolImportFromShareableHandle", (ctypes.byref(u64(0)), u64(descriptor(c, "MemPool", one)), POSIX, u64(1))),
    ("cuMemImportFromShareableHandle", (ctypes.byref(u64(0)), u64(0x7FFF), POSIX)),
    ("cuMemPoolImportPointer", (ctypes.byref(u64(0)), u64(one), ctypes.create_string_buffer(64))),
  ]
  for k, (name, given) in enumerate(calls): assert error(c, name, *given) == "INVALID_VALUE", k
  assert error(c, "cuMemImportFromShareableHandle", ctypes.byref(u64(0)), u64(descriptor(c, "Mem", memory)),
               cuda.CU_MEM_HANDLE_TYPE_WIN32) == "NOT_SUPPORTED"


def test_the_runtimes_pools() -> None:
  p, fd = Program(), ctypes.c_int(-1)
  given = cuda.CUmemPoolProps(allocType=cuda.CU_MEM_ALLOCATION_TYPE_PINNED, handleTypes=POSIX)
  given.location.type = cuda.CU_MEM_LOCATION_TYPE_DEVICE
  one = p.made("cudaMemPoolCreate", ctypes.byref(given))
  p("cudaMemPoolExportToShareableHandle", ctypes.byref(fd), ctypes.c_uint64(one), POSIX, 0)
  again = p.made("cudaMemPoolImportFromShareableHandle", ctypes.c_uint64(fd.value), POSIX, 0)
  at, data = p.made("cudaMallocFromPoolAsync", ctypes.c_size_t(8), ctypes.c_uint64(one), None), bytes(64)
  p("cudaMemcpy", ctypes.c_uint64(at), WORDS.ctypes.data, ctypes.c_size_t(8), cudart.cudaMemcpyDefault)
  p("cudaMemPoolExportPointer", data, ctypes.c_uint64(at))
  other, out = p.made("cudaMemPoolImportPointer", ctypes.c_uint64(again), data), np.zeros(2, np.uint32)
  p("cudaMemcpy", out.ctypes.data, ctypes.c_uint64(other), ctypes.c_size_t(8), cudart.cudaMemcpyDefault)
  assert out.tolist() == [5, 6] and other != at
