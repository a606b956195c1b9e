"""Memory that processes share by handles: another process opens, reads and writes it; what is refused."""
from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from tests.mock.cuda.client import WAIT, Client, u32, u64
from tinyhw.autogen import cuda

INVALID = cuda.CUDA_ERROR_INVALID_VALUE
OTHER = """
import ctypes, sys
import numpy as np
from tests.mock.cuda.client import WAIT, Client, u32, u64
from tinyhw.autogen import cuda

c, out = Client(), ctypes.c_uint64()
handle, unknown = cuda.CUipcMemHandle.from_buffer_copy(bytes.fromhex(sys.argv[1])), cuda.CUipcMemHandle()
stale = cuda.CUipcMemHandle.from_buffer_copy(bytes.fromhex(sys.argv[1])[:8] + bytes([255] * 4) + bytes(52))
assert c.code("cuIpcOpenMemHandle_v2", ctypes.byref(out), handle, 0) == cuda.CUDA_ERROR_INVALID_VALUE
for wrong in (unknown, stale):
  assert c.code("cuIpcOpenMemHandle_v2", ctypes.byref(out), wrong, 1) == cuda.CUDA_ERROR_INVALID_HANDLE
at = c.handle("cuIpcOpenMemHandle_v2", handle, 1)
assert c.handle("cuIpcOpenMemHandle_v2", handle, 1) == at
assert c.get(at, np.zeros(2, np.uint32)).tolist() == [5, 6]
assert c.launch(c.function(WAIT, "add"), 1, 1, [u64(at + 4), u32(3)]) == 0
assert c.code("cuMemFree_v2", u64(at)) == cuda.CUDA_ERROR_INVALID_VALUE
assert c.code("cuIpcGetMemHandle", ctypes.byref(handle), u64(at)) == cuda.CUDA_ERROR_INVALID_VALUE
codes = [c.code("cuIpcCloseMemHandle", u64(at)) for _ in range(3)]
assert codes == [0, 0, cuda.CUDA_ERROR_INVALID_VALUE], codes
assert c.code("cuMemcpyDtoH_v2", ctypes.byref(out), u64(at), ctypes.c_size_t(4)) == cuda.CUDA_ERROR_INVALID_VALUE
"""
WAITS = """
import ctypes, sys
from tests.mock.cuda.client import WAIT, Client, u32, u64
from tinyhw.autogen import cuda

c = Client()
memory, event = (kind.from_buffer_copy(bytes.fromhex(text)) for kind, text in
                 zip((cuda.CUipcMemHandle, cuda.CUipcEventHandle), sys.argv[1:]))
at, event = c.handle("cuIpcOpenMemHandle_v2", memory, 1), c.handle("cuIpcOpenEventHandle", event)
c.call("cuStreamWaitEvent", u64(0), u64(event), 0)
assert c.launch(c.function(WAIT, "add"), 1, 1, [u64(at), u32(7)]) == 0
c.call("cuEventRecord", u64(event), u64(0))
assert c.code("cuEventQuery", u64(event)) == cuda.CUDA_ERROR_NOT_READY
print("queued", flush=True)
c.call("cuCtxSynchronize")
c.call("cuEventQuery", u64(event))
"""


@pytest.fixture
def client() -> Iterator[Client]:
  client = Client()
  yield client
  client.machine.close()


def handle_of(c: Client, at: int) -> cuda.CUipcMemHandle:
  handle = cuda.CUipcMemHandle()
  c.call("cuIpcGetMemHandle", ctypes.byref(handle), u64(at))
  return handle


def test_another_process_reads_and_writes_memory(client: Client) -> None:
  c = client
  c.alloc(1 << 16)
  at = c.alloc(8)
  c.put(at, np.array([5, 6], np.uint32))
  done = subprocess.run([sys.executable, "-c", OTHER, bytes(handle_of(c, at)).hex()], capture_output=True, text=True)
  assert done.returncode == 0, done.stderr
  assert c.get(at, np.zeros(2, np.uint32)).tolist() == [5, 3 * 6 + 3]


def test_another_process_waits_for_an_event_and_records_it(client: Client) -> None:
  c = client
  at, event = c.alloc(4), cuda.CUipcEventHandle()
  c.put(at, np.array([2], np.uint32))
  shared = c.handle("cuEventCreate", cuda.CU_EVENT_INTERPROCESS | cuda.CU_EVENT_DISABLE_TIMING)
  assert c.launch(c.function(WAIT, "add"), 1, 1, [u64(at), u32(5)]) == 0
  c.call("cuEventRecord", u64(shared), u64(0))  # before anybody asks for a handle
  c.call("cuIpcGetEventHandle", ctypes.byref(event), u64(shared))
  command = [sys.executable, "-c", WAITS, bytes(handle_of(c, at)).hex(), bytes(event).hex()]
  with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
    assert other.stdout is not None and other.stdout.readline() == "queued\n"
    c.call("cuEventSynchronize", u64(shared))  # the other process's record, which waits for ours
    assert other.wait() == 0
  assert c.get(at, np.zeros(1, np.uint32)).tolist() == [3 * (3 * 2 + 5) + 7]


def test_what_is_refused(client: Client) -> None:
  c, out = client, ctypes.c_uint64()
  at = c.alloc(64)
  handle = handle_of(c, at)
  for name in ("cuIpcOpenMemHandle_v2", "cuIpcOpenMemHandle"):  # the process that made it
    assert c.code(name, ctypes.byref(out), handle, 1) == cuda.CUDA_ERROR_INVALID_CONTEXT
  managed = c.handle("cuMemAllocManaged", ctypes.c_size_t(64), 1)
  for wrong in (at + 4, managed, 64):
    assert c.code("cuIpcGetMemHandle", ctypes.byref(handle), u64(wrong)) == INVALID
  assert c.code("cuIpcGetMemHandle", None, u64(at)) == INVALID
  assert c.code("cuIpcCloseMemHandle", u64(at)) == INVALID
  event, made = cuda.CUipcEventHandle(), ctypes.c_uint64()
  timed, shared = cuda.CU_EVENT_INTERPROCESS, cuda.CU_EVENT_INTERPROCESS | cuda.CU_EVENT_DISABLE_TIMING
  assert c.code("cuEventCreate", ctypes.byref(made), timed) == INVALID
  plain, one = c.handle("cuEventCreate", 0), c.handle("cuEventCreate", shared)
  assert c.code("cuIpcGetEventHandle", ctypes.byref(event), u64(plain)) == cuda.CUDA_ERROR_INVALID_HANDLE
  assert c.code("cuIpcOpenEventHandle", ctypes.byref(out), event) == cuda.CUDA_ERROR_INVALID_HANDLE
  assert c.code("cuIpcGetEventHandle", None, u64(one)) == INVALID
  c.call("cuIpcGetEventHandle", ctypes.byref(event), u64(one))
  assert c.code("cuIpcOpenEventHandle", ctypes.byref(out), event) == cuda.CUDA_ERROR_INVALID_CONTEXT
  graph = c.handle("cuGraphCreate", 0)
  assert c.code("cuGraphAddEventRecordNode", ctypes.byref(out), u64(graph), None, ctypes.c_size_t(0),
                u64(one)) == cuda.CUDA_ERROR_NOT_SUPPORTED
