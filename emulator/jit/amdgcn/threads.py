"""Cohorts over threads: compiled code runs without the interpreter's lock, so each processor can have one.

Only launches whose workgroups cannot wait for or count each other are spread (`alone` of a form, and no scratch memory,
whose slots would depend on who is first). What such a launch computes is the same in any order, unless workgroups store
different values to one place without an atomic: which of them stays is then as open as on a chip. `TINYHW_THREADS=1`
runs them one after the other.

So a program that runs in threads has no atomics on shared memory, sleeps, timers or computed jumps.
The first fault in the order of workgroups is the one told.
"""
from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from tinyhw.core.environment import count as number
from tinyhw.core.errors import InvalidArgument
from tinyhw.emulator.amdgcn import hwreg
from tinyhw.isa.amdgcn import Instruction

VARIABLE: Final = "TINYHW_THREADS"
WORTH = 2_000_000  # instructions of waves that are left to run; fewer are done before threads have woken up
_SPEAKS: Final = frozenset({
  "s_sleep", "s_sleep_var", "s_sethalt", "s_trap", "s_wakeup", "s_setpc_b64", "s_swappc_b64", "s_memtime",
  "s_memrealtime", "s_sendmsg", "s_sendmsghalt", "s_sendmsg_rtn_b32", "s_sendmsg_rtn_b64", "s_getreg_b32"})
_pool: ThreadPoolExecutor | None = None


def alone(instructions: Iterable[Instruction]) -> bool:
  """Whether workgroups that run these instructions can neither count nor wait for each other, but by plain accesses.

  Code behind an address that is computed is not seen here, so a program that jumps to one is not alone.
  """
  return not any(_speaks(i) for i in instructions)


def _speaks(i: Instruction) -> bool:
  if i.mnemonic == "s_sendmsg" and hwreg.message(i.isa, i.fields["simm16"]) == "MSG_DEALLOC_VGPRS": return False
  if i.mnemonic in _SPEAKS: return True
  if i.family == "DS": return bool(i.get("gds")) or i.mnemonic.startswith(("ds_gws", "ds_ordered"))
  return "atomic" in i.mnemonic


def count() -> int:
  """How many threads there may be: `TINYHW_THREADS`, or one for each processor; one when the interpreter ends."""
  if not threading.main_thread().is_alive(): return 1
  text = os.environ.get(VARIABLE, "")
  if not text: return len(os.sched_getaffinity(0))
  if not (wanted := number(text)):
    raise InvalidArgument(f"{VARIABLE} is a number of threads, 1 or more, not {text!r}")
  return wanted


def pool() -> ThreadPoolExecutor:
  """The threads, which wait for work when there is none."""
  global _pool
  if _pool is None: _pool = ThreadPoolExecutor(count(), "tinyhw waves")
  return _pool


def _forget() -> None:
  """A child process has none of its parent's threads."""
  global _pool
  _pool = None


os.register_at_fork(after_in_child=_forget)
