"""Functions of the host in streams and graphs: on a thread of the driver's, which may wait for the program's."""
from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest

from tests.mock.cuda.client import WAIT, Client, u32, u64
from tinyhw.autogen import cuda

Function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@pytest.mark.parametrize("way", ["function", "callback", "graph"])
def test_a_function_waits_for_a_thread_that_calls_the_driver(way: str) -> None:
  """It is not on the thread that waits; what is queued behind it comes after it."""
  client = Client()
  add, at = client.function(WAIT, "add"), client.alloc(4)
  client.call("cuMemsetD32_v2", at, 1, ctypes.c_size_t(1))
  client.call("cuCtxSynchronize")
  stream = client.handle("cuStreamCreate", cuda.CU_STREAM_NON_BLOCKING)
  made, seen = threading.Event(), list[int]()

  def other() -> None:
    client.call("cuCtxSetCurrent", client.context)
    for _ in range(3): client.alloc(64)
    made.set()

  def host(*_: object) -> None:
    seen.append(threading.get_ident())
    assert made.wait(60)
  thread = threading.Thread(target=other)
  kept = Function(host), ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p)(host)
  if way == "graph": client.call("cuStreamBeginCapture_v2", u64(stream), 0)
  assert client.launch(add, 1, 1, [u64(at), u32(2)], stream) == 0
  if way == "callback": client.call("cuStreamAddCallback", u64(stream), kept[1], None, 0)
  else: client.call("cuLaunchHostFunc", u64(stream), kept[0], None)
  assert client.launch(add, 1, 1, [u64(at), u32(7)], stream) == 0
  if way == "graph":
    graph = ctypes.c_uint64()
    client.call("cuStreamEndCapture", u64(stream), ctypes.byref(graph))
    client.call("cuGraphLaunch", u64(client.handle("cuGraphInstantiateWithFlags", graph, u64(0))), u64(stream))
  thread.start()
  client.call("cuStreamSynchronize", u64(stream))
  thread.join()
  assert client.get(at, np.zeros(1, np.uint32))[0] == (1 * 3 + 2) * 3 + 7
  assert seen and threading.get_ident() not in seen and client.machine.on_host == 0


def test_a_context_may_go_meanwhile() -> None:
  """Whoever waits no more is not counted."""
  client = Client()
  ended = threading.Event()
  kept = Function(lambda _: ended.wait(60))
  client.call("cuLaunchHostFunc", u64(0), kept, None)
  assert client.code("cuStreamQuery", u64(0)) == cuda.CUDA_ERROR_NOT_READY
  client.call("cuDevicePrimaryCtxReset_v2", 0)
  assert client.machine.on_host == 0
  ended.set()
