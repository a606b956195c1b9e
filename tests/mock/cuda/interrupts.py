"""`python -m tests.mock.cuda.interrupts SEED COUNT`: a program that is interrupted at drawn times of its calls of CUDA.

After each interrupt it looks at memory from before, makes all its calls again, and tells of each that went wrong. A
third word is the handler: `default`, or `calls` for one that calls CUDA itself and raises then.
"""
from __future__ import annotations

import ctypes
import os
import random
import signal
import sys
import threading
import time
from typing import Any

import numpy as np

from tests.mock.cuda.client import GARBAGE, SAXPY, Client, u32, u64

N = 4096


class Bell(Exception):
  """Raised by a handler."""


def main(seed: int, count: int, kind: str = "default") -> int:
  """How many went wrong."""
  client, rng, wrong, raised = Client("sm_90"), random.Random(seed), 0, 0
  x, y = np.arange(N, dtype=np.float32), np.full(N, 3, np.float32)
  dx, dy, kept = (client.alloc(4 * N) for _ in range(3))
  client.put(kept, x)
  saxpy = client.function(SAXPY, "saxpy")

  def calls(number: int, frame: Any) -> None:
    out = np.empty_like(x)
    code = client.code("cuMemcpyDtoH_v2", ctypes.c_void_p(out.ctypes.data), u64(kept), ctypes.c_size_t(out.nbytes))
    raise Bell(code or int((out != x).sum()))
  signal.signal(signal.SIGINT, calls if kind == "calls" else signal.default_int_handler)

  def made(name: str, *arguments: Any) -> int:
    handle = client.handle(name, *arguments)
    assert handle not in (0, GARBAGE), name
    return handle

  def work() -> None:
    client.put(dx, x)
    client.put(dy, y)
    assert not client.launch(saxpy, N // 128, 128, [u64(dx), u64(dy), ctypes.c_float(2), u32(N)])
    stream, more = made("cuStreamCreate", 0), made("cuMemAlloc_v2", ctypes.c_size_t(128))
    client.call("cuCtxSynchronize")
    client.call("cuMemFree_v2", u64(more))
    client.call("cuStreamDestroy_v2", u64(stream))
    assert (client.get(dy, y) == 2 * x + 3).all()

  work()
  start = time.perf_counter()
  work()
  span = time.perf_counter() - start
  for turn in range(count):
    delay = rng.random() * span

    def ring(delay: float = delay) -> None:
      time.sleep(delay)
      os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=ring)
    try:
      thread.start()
      while True: work()
    except (KeyboardInterrupt, Bell) as error:
      raised += 1
      if isinstance(error, Bell) and error.args != (0,): print(turn, "in the handler:", error)
    except AssertionError as error:
      wrong += 1
      print(turn, "amid a call:", error)
      try: time.sleep(60)
      except (KeyboardInterrupt, Bell): raised += 1
    thread.join()
    try:
      assert (client.get(kept, x) == x).all(), "memory"
      work()
    except AssertionError as error:
      wrong += 1
      print(turn, "afterwards:", error)
  print(f"{raised} of {count} heard, {wrong} wrong")
  return wrong + (raised != count)


if __name__ == "__main__": sys.exit(bool(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])))
