"""Signals amid calls: they are told after the call, and memory and context stay. Raised by hundreds where THOROUGH."""
from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.mock.cuda import interrupts
from tests.mock.cuda.client import HEAD, WAIT, Client, u32, u64
from tests.strength import examples, seeds
from tinyhw.autogen import cuda

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("engine", ["auto", "ref"])
@pytest.mark.parametrize("handler", ["default", "calls"])
@pytest.mark.parametrize("seed", seeds(range(1)))
def test_an_interrupt_costs_nothing(seed: int, handler: str, engine: str) -> None:
  command = [sys.executable, "-m", interrupts.__name__, str(seed), str(examples(25)), handler]
  done = subprocess.run(command, cwd=ROOT, env={**os.environ, "EMU": engine}, capture_output=True, text=True)
  assert done.returncode == 0, done.stdout + done.stderr
  assert not done.stderr


SPIN = HEAD + """
.visible .entry spin(.param .u64 at, .param .u32 value) {
  .reg .u32 %r; .reg .pred %p;
  mov.u32 %r, 0;
again: add.u32 %r, %r, 1; setp.ne.u32 %p, %r, 0; @%p bra again;
  ret; }
"""


class Bell(Exception):
  """Raised by a handler."""


def test_an_interrupt_takes_a_kernel_off_that_never_ends(client: Client) -> None:
  """Memory stays, and what comes behind the wait goes on."""
  kept, word = client.alloc(64), client.alloc(4)
  client.put(kept, np.arange(16, dtype=np.uint32))
  client.put(word, np.zeros(1, np.uint32))
  wait = client.function(WAIT, "wait")

  def ring() -> None:
    client.call("cuCtxSetCurrent", u64(client.context))  # one who could end the wait
    current.set()
    launched.wait()
    time.sleep(0.3)  # most likely the host waits by then; an interrupt that comes before is told, too
    os.kill(os.getpid(), signal.SIGINT)
    done.wait()
  current, launched, done = (threading.Event() for _ in range(3))
  thread = threading.Thread(target=ring)
  thread.start()
  current.wait()  # before it nobody could end the wait: a deadlock
  try:
    with pytest.raises(KeyboardInterrupt):
      assert client.launch(wait, 1, 32, [u64(word), u32(7)]) == 0
      launched.set()
      client.code("cuCtxSynchronize")
      time.sleep(60)
  finally:
    launched.set()
    done.set()
    thread.join()
  assert (client.get(kept, np.empty(16, np.uint32)) == np.arange(16)).all()
  put = client.function(WAIT, "put")
  assert client.launch(put, 1, 1, [u64(word), u32(9)]) == 0
  client.call("cuCtxSynchronize")
  assert client.get(word, np.empty(1, np.uint32))[0] == 9


@pytest.mark.parametrize("what", ["wait", "destroy", "query"])
def test_a_handler_that_calls_amid_a_kernel_gets_an_answer(client: Client, what: str) -> None:
  """The kernel that runs just then cannot go on inside of the handler: a wait for it fails, all else works."""
  word, codes = client.alloc(4), dict[str, int]()
  client.put(word, np.zeros(1, np.uint32))
  client.machine.engine = "ref"  # whose watchdog comes late
  stream, spin = client.handle("cuStreamCreate", 0), client.function(SPIN, "spin")

  def bell(number: int, frame: Any) -> None:
    if what == "wait": codes["wait"] = client.code("cuStreamSynchronize", u64(stream))
    if what == "destroy": codes["destroy"] = client.code("cuStreamDestroy_v2", u64(stream))
    if what == "query": codes["query"] = client.code("cuStreamQuery", u64(stream))
    codes["memory"] = client.code("cuMemAlloc_v2", ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(64))
    raise Bell
  before = signal.signal(signal.SIGALRM, bell)
  signal.setitimer(signal.ITIMER_REAL, 0.3)
  try:
    with pytest.raises(Bell):
      assert client.launch(spin, 1, 32, [u64(word), u32(7)], stream) == 0
      client.code("cuStreamSynchronize", u64(stream))
      time.sleep(60)
  finally:
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
  expected = {"wait": cuda.CUDA_ERROR_LAUNCH_TIMEOUT, "destroy": 0, "query": cuda.CUDA_ERROR_NOT_READY}
  assert codes == {what: expected[what], "memory": 0}
  client.put(word, np.full(1, 5, np.uint32))
  assert client.get(word, np.empty(1, np.uint32))[0] == 5


NATIVE = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
typedef unsigned long long u64;
extern int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
extern int cuMemAlloc_v2(u64 *, size_t);
extern int cuMemcpyHtoD_v2(u64, const void *, size_t), cuMemcpyDtoH_v2(void *, u64, size_t), cuMemFree_v2(u64);
extern int cuMemsetD32_v2(u64, unsigned, size_t), cuCtxSynchronize(void);
static volatile int rung;
static void ring(int number) { rung++; }
int main(int count, char **words) {
  struct sigaction act = { .sa_handler = ring };
  unsigned in[256], out[256];
  void *context; u64 kept, at; int wanted = atoi(words[1]), wrong = 0, turns = 0;
  sigaction(SIGALRM, &act, 0); sigaction(SIGINT, &act, 0);
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 9;
  for (unsigned i = 0; i < 256; i++) in[i] = i * 3;
  if (cuMemAlloc_v2(&kept, sizeof in) || cuMemcpyHtoD_v2(kept, in, sizeof in)) return 8;
  struct itimerval every = { { 0, 1700 }, { 0, 1700 } };
  setitimer(ITIMER_REAL, &every, 0);
  for (; rung < wanted; turns++) {
    if (turns % 5 == 0) raise(SIGINT);
    at = 0;
    if (cuMemAlloc_v2(&at, 4096) || !at || cuMemsetD32_v2(at, turns, 256)) wrong++;
    if (cuMemcpyDtoH_v2(out, at, sizeof out)) wrong++;
    for (int i = 0; i < 256; i++) wrong += out[i] != (unsigned)turns;
    if (cuCtxSynchronize() || cuMemFree_v2(at) || cuMemcpyDtoH_v2(out, kept, sizeof out)) wrong++;
    for (int i = 0; i < 256; i++) wrong += out[i] != in[i];
  }
  printf("%d wrong\\n", wrong);
  return wrong != 0;
}
"""


def test_signals_of_a_native_program_cost_nothing(tmp_path: Path) -> None:
  compiler = shutil.which("gcc") or shutil.which("cc")
  if compiler is None: pytest.skip("needs a C compiler")
  (tmp_path / "p.c").write_text(NATIVE)
  subprocess.run([compiler, "-O1", "-w", "-shared", "-fPIC", "p.c", "-o", "p"], cwd=tmp_path, check=True)
  command = [sys.executable, "-c", "from tinyhw.cli import main; main()", "run", str(tmp_path / "p")]
  command.append(str(examples(200)))
  done = subprocess.run(command, capture_output=True, text=True)
  assert (done.returncode, done.stdout, done.stderr) == (0, "0 wrong\n", "")
