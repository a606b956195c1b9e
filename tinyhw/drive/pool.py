"""Native threads that share the stretches of a large kernel: started once, asleep in the kernel while there is no work.

The pool is a page of memory and three small functions that LLVM compiles (`SOURCE`): `run`, which the launching thread
calls without Python's lock, `work`, which each thread of the pool is, and `stop`. None knows Python, so no lock of
Python's is taken and nothing is allocated. A kernel is `void kernel(ptr arguments, i32 first, i32 last, ptr scratch)`.

One launch has the threads at a time. Who finds them busy runs the kernel alone, so that several Python threads never
wait for each other. A forked child has none of its parent's threads: its first launch starts new ones. Before the
process ends they are told, and joined. Values do not depend on who computes which stretch.
"""
from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from tinyhw.core.ending import Step, at_end
from tinyhw.core.environment import count
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.locks import lock

VARIABLE: Final = "TINYHW_CORES"
_MOST: Final = 64
_PAGE: Final = 4096
_SHARES: Final = 8        # pieces of a launch for each thread: the fastest takes more of them
# By machine: the number of futex(2) (Linux's asm/unistd_64.h and asm-generic/unistd.h), and how LLVM calls a pause.
_MACHINES: Final = {"x86_64": (202, "llvm.x86.sse2.pause()", ""),
                    "aarch64": (98, "llvm.aarch64.hint(i32 1)", "i32")}

# The pool's words (i32) and pointers, by their byte in its memory. Words that different threads write are a cache line
# apart.
_GENERATION, _SLEEPERS, _BUSY, _NEXT, _MEMBERS, _SLOTS, _STOP = 0, 64, 128, 192, 256, 320, 384
_FUNCTION, _ARGUMENTS, _SCRATCH, _STRIDE, _TOTAL, _PIECE = 448, 456, 464, 472, 480, 484

# `members` is the number of threads at work for a launch, and its highest bit says that more may join. A launch's data
# changes only while nobody can join and nobody is at work. `generation` counts launches: who finds nothing to do sleeps
# until it changes.
SOURCE: Final = f"""
declare i64 @syscall(i64, ...)

define internal void @pieces(ptr %pool, ptr %scratch) {{
  %pf = getelementptr i8, ptr %pool, i64 {_FUNCTION}
  %f = load ptr, ptr %pf
  %pa = getelementptr i8, ptr %pool, i64 {_ARGUMENTS}
  %arguments = load ptr, ptr %pa
  %pt = getelementptr i8, ptr %pool, i64 {_TOTAL}
  %total = load i32, ptr %pt
  %pp = getelementptr i8, ptr %pool, i64 {_PIECE}
  %piece = load i32, ptr %pp
  %next = getelementptr i8, ptr %pool, i64 {_NEXT}
  br label %loop
loop:
  %first = atomicrmw add ptr %next, i32 %piece monotonic
  %some = icmp slt i32 %first, %total
  br i1 %some, label %do, label %done
do:
  %end = add i32 %first, %piece
  %last = call i32 @llvm.smin.i32(i32 %end, i32 %total)
  call void %f(ptr %arguments, i32 %first, i32 %last, ptr %scratch)
  br label %loop
done:
  ret void
}}

define i32 @run(ptr %pool, ptr %f, ptr %arguments, i32 %total, i32 %piece, ptr %scratch, i64 %stride) {{
  %busy = getelementptr i8, ptr %pool, i64 {_BUSY}
  %pair = cmpxchg ptr %busy, i32 0, i32 1 acquire monotonic
  %mine = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %mine, label %post, label %alone
alone:
  ret i32 0
post:
  %pf = getelementptr i8, ptr %pool, i64 {_FUNCTION}
  store ptr %f, ptr %pf
  %pa = getelementptr i8, ptr %pool, i64 {_ARGUMENTS}
  store ptr %arguments, ptr %pa
  %ps = getelementptr i8, ptr %pool, i64 {_SCRATCH}
  store ptr %scratch, ptr %ps
  %pd = getelementptr i8, ptr %pool, i64 {_STRIDE}
  store i64 %stride, ptr %pd
  %pt = getelementptr i8, ptr %pool, i64 {_TOTAL}
  store i32 %total, ptr %pt
  %pp = getelementptr i8, ptr %pool, i64 {_PIECE}
  store i32 %piece, ptr %pp
  %next = getelementptr i8, ptr %pool, i64 {_NEXT}
  store i32 0, ptr %next
  %slots = getelementptr i8, ptr %pool, i64 {_SLOTS}
  store i32 1, ptr %slots
  %members = getelementptr i8, ptr %pool, i64 {_MEMBERS}
  store atomic i32 -2147483648, ptr %members release, align 4
  %generation = getelementptr i8, ptr %pool, i64 {_GENERATION}
  %g = atomicrmw add ptr %generation, i32 1 seq_cst
  %sleepers = getelementptr i8, ptr %pool, i64 {_SLEEPERS}
  %asleep = load atomic i32, ptr %sleepers seq_cst, align 4
  %any = icmp sgt i32 %asleep, 0
  br i1 %any, label %wake, label %work
wake:
  %w = call i64 (i64, ...) @syscall(i64 NUMBER, ptr %generation, i32 129, i32 2147483647, ptr null, ptr null, i32 0)
  br label %work
work:
  call void @pieces(ptr %pool, ptr %scratch)
  %before = atomicrmw and ptr %members, i32 2147483647 acq_rel
  br label %wait
wait:
  %spins = phi i32 [ 0, %work ], [ %more, %again ], [ 0, %slept ]
  %left = load atomic i32, ptr %members acquire, align 4
  %idle = icmp eq i32 %left, 0
  br i1 %idle, label %over, label %again
again:
  call void @PAUSE
  %more = add i32 %spins, 1
  %long = icmp sgt i32 %more, 1000
  br i1 %long, label %sleep, label %wait
sleep:
  %s = call i64 (i64, ...) @syscall(i64 NUMBER, ptr %members, i32 128, i32 %left, ptr null, ptr null, i32 0)
  br label %slept
slept:
  br label %wait
over:
  store atomic i32 0, ptr %busy release, align 4
  ret i32 1
}}

define ptr @work(ptr %pool) {{
  %generation = getelementptr i8, ptr %pool, i64 {_GENERATION}
  %members = getelementptr i8, ptr %pool, i64 {_MEMBERS}
  %sleepers = getelementptr i8, ptr %pool, i64 {_SLEEPERS}
  %slots = getelementptr i8, ptr %pool, i64 {_SLOTS}
  %stop = getelementptr i8, ptr %pool, i64 {_STOP}
  br label %look
look:
  %g = load atomic i32, ptr %generation seq_cst, align 4
  %ends = load atomic i32, ptr %stop acquire, align 4
  %end = icmp ne i32 %ends, 0
  br i1 %end, label %over, label %open
open:
  %m = load atomic i32, ptr %members acquire, align 4
  %may = icmp slt i32 %m, 0
  br i1 %may, label %join, label %spin
join:
  %n = add i32 %m, 1
  %pair = cmpxchg ptr %members, i32 %m, i32 %n acquire monotonic
  %joined = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %joined, label %do, label %open
do:
  %slot = atomicrmw add ptr %slots, i32 1 monotonic
  %wide = zext i32 %slot to i64
  %ps = getelementptr i8, ptr %pool, i64 {_SCRATCH}
  %base = load ptr, ptr %ps
  %pd = getelementptr i8, ptr %pool, i64 {_STRIDE}
  %stride = load i64, ptr %pd
  %offset = mul i64 %wide, %stride
  %scratch = getelementptr i8, ptr %base, i64 %offset
  call void @pieces(ptr %pool, ptr %scratch)
  br label %leave
leave:
  %old = atomicrmw sub ptr %members, i32 1 acq_rel
  %last = icmp eq i32 %old, 1
  br i1 %last, label %tell, label %spin
tell:
  %t = call i64 (i64, ...) @syscall(i64 NUMBER, ptr %members, i32 129, i32 1, ptr null, ptr null, i32 0)
  br label %spin
spin:
  %spins = phi i32 [ 0, %open ], [ 0, %leave ], [ 0, %tell ], [ %more, %still ]
  %now = load atomic i32, ptr %generation seq_cst, align 4
  %new = icmp ne i32 %now, %g
  br i1 %new, label %look, label %still
still:
  call void @PAUSE
  %more = add i32 %spins, 1
  %long = icmp sgt i32 %more, 200
  br i1 %long, label %sleep, label %spin
sleep:
  %in = atomicrmw add ptr %sleepers, i32 1 seq_cst
  %s = call i64 (i64, ...) @syscall(i64 NUMBER, ptr %generation, i32 128, i32 %g, ptr null, ptr null, i32 0)
  %out = atomicrmw sub ptr %sleepers, i32 1 seq_cst
  br label %look
over:
  ret ptr null
}}

define void @stop(ptr %pool) {{
  %stop = getelementptr i8, ptr %pool, i64 {_STOP}
  store atomic i32 1, ptr %stop release, align 4
  %generation = getelementptr i8, ptr %pool, i64 {_GENERATION}
  %g = atomicrmw add ptr %generation, i32 1 seq_cst
  %w = call i64 (i64, ...) @syscall(i64 NUMBER, ptr %generation, i32 129, i32 2147483647, ptr null, ptr null, i32 0)
  ret void
}}

declare i32 @llvm.smin.i32(i32, i32)
"""


def supported() -> bool:
  """Whether this system has what the pool is made of."""
  return sys.platform == "linux" and platform.machine() in _MACHINES


def source() -> str:
  """The functions' text for this machine."""
  number, pause, types = _MACHINES[platform.machine()]
  text = SOURCE.replace("NUMBER", str(number)).replace("PAUSE", pause)
  return f"{text}\ndeclare void @{pause.partition('(')[0]}({types})\n"


def cores() -> int:
  """Threads that a large kernel gets, the launching one among them: `TINYHW_CORES`, or what this process may use."""
  if not (text := os.environ.get(VARIABLE)): return min(len(os.sched_getaffinity(0)) if supported() else 1, _MOST)
  if not 1 <= (wanted := count(text) or 0) <= _MOST:
    raise InvalidArgument(f"{text!r} is no number of threads from 1 to {_MOST}", where=VARIABLE)
  return wanted


@functools.cache
def _pthreads() -> Any:
  return ctypes.CDLL(None, use_errno=True)


Functions = Mapping[str, int]
"""Addresses of `run`, `work` and `stop`."""


class Pool:
  """The threads of this process; `size` of them with the one that launches."""

  def __init__(self, functions: Functions, size: int) -> None:
    self.size = size
    self._process = os.getpid()
    self._memory = ctypes.create_string_buffer(2 * _PAGE)
    self._at = ctypes.addressof(self._memory) + -ctypes.addressof(self._memory) % _PAGE
    self._threads: list[ctypes.c_ulong] = []
    self.size = 1
    self.entry: tuple[int, int] | None = None  # where `run` is, and the memory that it is called with
    if not functions: return
    self.entry = functions["run"], self._at
    self._run = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3, *[ctypes.c_int32] * 2, ctypes.c_void_p,
                                 ctypes.c_int64)(functions["run"])
    self._stop = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(functions["stop"])
    # Signals are for Python's threads.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
      for _ in range(size - 1):
        thread = ctypes.c_ulong()
        if _pthreads().pthread_create(ctypes.byref(thread), None, ctypes.c_void_p(functions["work"]),
                                      ctypes.c_void_p(self._at)): break  # fewer do as well
        self._threads.append(thread)
    finally: signal.pthread_sigmask(signal.SIG_SETMASK, before)
    self.size = 1 + len(self._threads)

  def run(self, function: int, arguments: int, total: int, scratch: int, stride: int) -> bool:
    """Have the stretches 0..total-1 of a kernel computed; False, and nothing done, where others have the threads.
    `scratch` is memory of `stride` bytes for each thread."""
    return bool(self._run(self._at, function, arguments, total, self.piece(total), scratch, stride))

  def piece(self, total: int) -> int:
    """How many stretches a thread takes at a time."""
    return max(total // (self.size * _SHARES), 1)

  @property
  def alive(self) -> bool:
    """Whether its threads are of this process, which a forked child's are not."""
    return self._process == os.getpid()

  def stop(self) -> None:
    """Let the threads end, and wait for them."""
    if not self.alive or not self._threads: return
    self._stop(self._at)
    for thread in self._threads: _pthreads().pthread_join(thread, None)
    self._threads, self.size = [], 1


_lock = lock()
_pool: Pool | None = None


def pool(compiled: Callable[[str], Functions]) -> Pool:
  """The process's pool, started now if it is not. `compiled` gives the functions' addresses for their text."""
  global _pool
  if (found := _pool) is not None and found.alive: return found
  with _lock:
    if _pool is None or not _pool.alive:
      _pool = Pool(compiled(source()) if supported() else {}, cores())
      at_end(Step.THREADS, functools.partial(_stopped, _pool))
    return _pool


def _stopped(which: Pool) -> None:
  with contextlib.suppress(OSError): which.stop()
