"""`python -m tests.mock.cuda.forks COUNT`: a program that forks while another thread of it is amid launches.

Children do nothing, end in one way or another, or call CUDA. Told are children that end otherwise than they should, or
not at all, and what their parent has lost.
"""
from __future__ import annotations

import ctypes
import os
import sys
import threading
import time

import numpy as np

from tests.mock.cuda.client import SAXPY, Client, u32, u64
from tinyhw.autogen import cuda

N = 1 << 14
PATIENCE_S = 60.0


def child(client: Client, kept: int, way: int) -> None:
  """What one of them does."""
  if way == 0: os._exit(0)
  if way == 1: sys.exit(0)
  if way == 2:
    client.machine.close()
    sys.exit(0)
  room = ctypes.create_string_buffer(16)
  codes = {client.code("cuMemcpyDtoH_v2", room, u64(kept), ctypes.c_size_t(16)), client.code("cuInit", 0),
           client.code("cuCtxSynchronize"), client.code("cuMemFree_v2", u64(kept))}
  os._exit(0 if codes == {cuda.CUDA_ERROR_NOT_INITIALIZED} else 1)


def main(count: int) -> int:
  """How many went wrong."""
  client, wrong, stop = Client("sm_90"), 0, threading.Event()
  client.machine.engine = "ref"  # slow: most of the time there is a launch under way
  x = np.arange(N, dtype=np.float32)
  dx, dy, kept = (client.alloc(4 * N) for _ in range(3))
  client.put(kept, x)
  saxpy = client.function(SAXPY, "saxpy")

  def work() -> None:
    client.call("cuCtxSetCurrent", u64(client.context))
    while not stop.is_set():
      client.put(dx, x)
      client.put(dy, x)
      assert not client.launch(saxpy, N // 128, 128, [u64(dx), u64(dy), ctypes.c_float(2), u32(N)])
      client.call("cuCtxSynchronize")
      assert (client.get(dy, x) == 3 * x).all()
  thread = threading.Thread(target=work)
  thread.start()
  for turn in range(count):
    time.sleep(0.005 * (turn * 3 % 7))
    pid = os.fork()
    if not pid: child(client, kept, turn % 4)
    end, status = time.monotonic() + PATIENCE_S, -1
    while status < 0 and time.monotonic() < end:
      time.sleep(0.002)
      found, status = os.waitpid(pid, os.WNOHANG)
      if not found: status = -1
    if status < 0:
      os.kill(pid, 9)
      os.waitpid(pid, 0)
    if status or not (client.get(kept, x) == x).all():
      wrong += 1
      print(f"child {turn}: status {status}")
  stop.set()
  thread.join()
  print(f"{wrong} of {count} wrong")
  return wrong


if __name__ == "__main__": sys.exit(bool(main(int(sys.argv[1]))))
