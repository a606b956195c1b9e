"""Faults: each is told with its address and kind, by the kernel driver; the device lives on for others.

A process that faults has lost the GPU, as KFD has it: so each rung has a process of its own, and has another process
run a wave afterwards, while this one still lives.
"""
from __future__ import annotations

from typing import Any, Final

from tinyhw.autogen import kfd
from tinyhw.bringup.amd.bench import COMPUTE, PAGE, AmdBench, BenchMemory, BenchQueue
from tinyhw.bringup.amd.copies import copying
from tinyhw.bringup.amd.ladder import AMD
from tinyhw.bringup.amd.programs import STORE, RungCode, launched, output
from tinyhw.bringup.amd.queue import write_data
from tinyhw.bringup.bench import check, same
from tinyhw.bringup.rung import Absent, Broken
from tinyhw.drive.amd.commands import ComputeCommands, CopyCommands

_LOOK: Final = "event_interrupt_wq (kfd_int_process_v11.c and its kin), gmc interrupts, and the kernel's log"
_LOAD: Final = "v_mov_b32_e32 v2, 0\nglobal_load_b32 v3, v2, s[0:1]\n{wait}\ns_endpgm"
_SPIN: Final = """v_mov_b32_e32 v2, 0
  v_mov_b32_e32 v3, 1
  global_store_b32 v2, v3, s[0:1] offset:8
  L0: s_sleep 1
  global_load_b32 v3, v2, s[0:1] {fresh}
  {wait}
  v_readfirstlane_b32 s7, v3
  s_cmp_eq_u32 s7, 0
  s_cbranch_scc1 L0
  global_store_b32 v2, v3, s[0:1] offset:4
  s_endpgm"""


def runs(b: AmdBench) -> int:
  """A wave that stores a word; what it stored."""
  code, out = RungCode(b, STORE), output(b, 1)
  b.compute.finish(launched(b, b.pm4(), code, out.address, block=(1, 1, 1), users=(77, 0)), _LOOK)
  found = int(out.words[0])
  for buffer in (code.memory, out): b.free(buffer)
  return found


def nowhere(b: AmdBench) -> int:
  """An address behind a buffer, of no memory, that is no page's first."""
  return b.take(PAGE).address + PAGE + 0x48


def told(b: AmdBench) -> tuple[Any, Any]:
  """What memory and hardware events tell. Raises Broken when nothing comes."""
  rows = b.wait_events(b.watched, int(1000 * min(b.left, 8.0)))
  if rows is None: raise Broken(f"nobody tells of it{b.why_stopped()}", "a memory or hardware event", _LOOK)
  return rows[0].memory_exception_data, rows[1].hw_exception_data


def faulted(b: AmdBench, address: int, *, missing: bool, write: bool, executes: bool = False) -> str:
  """A page fault is told, with its page and kind; then another process runs a wave."""
  memory, _ = told(b)
  same(int(memory.gpu_id), b.node.gpu_id, "gpu_id of the memory event", _LOOK)
  same(int(memory.va), address & -PAGE, "the page that the fault is told of", _LOOK + "; is the address shifted?")
  kind = int(memory.failure.NotPresent), int(memory.failure.ReadOnly)
  wanted = int(missing), int(write)
  check(kind == wanted, f"NotPresent {kind[0]}, ReadOnly {kind[1]}", f"{wanted[0]} and {wanted[1]}",
        _LOOK + "; GCVM_L2_PROTECTION_FAULT_STATUS: permission bits")
  what = "a fetch" if executes else "a write" if write else "a read"
  return f"{what} in page {address & -PAGE:#x} is told; {lives(b)}"


def lives(b: AmdBench) -> str:
  """Another process has the GPU."""
  try: other = b.beside()
  except Absent: return "no other process was tried"
  same(other.call(runs), 77, "what a wave of another process stores afterwards",
       "the reset or the eviction: does the GPU live on for others?")
  other.end()
  return "another process runs on"


def wave(b: AmdBench, text: str, address: int) -> None:
  """Launch a program over an address, without waiting."""
  b.watched  # noqa: B018 - made before anything goes wrong
  b.compute.write(launched(b, b.pm4(), RungCode(b, text), address, block=(1, 1, 1), users=(1, 0)))


@AMD.rung("faults.read", needs=("waves.store", "signals.event"), seconds=15, alone=True,
          why="A load where no memory is must be told with its page, not hang.")
def read(b: AmdBench) -> str:
  address = nowhere(b)
  wave(b, _LOAD, address)
  return faulted(b, address, missing=True, write=False)


@AMD.rung("faults.write", needs=("waves.store", "signals.event"), seconds=15, alone=True,
          why="A store where no memory is: the kind of access tells a lost pointer from a lost buffer.")
def write(b: AmdBench) -> str:
  address = nowhere(b)
  wave(b, STORE, address)
  return faulted(b, address, missing=True, write=True)


@AMD.rung("faults.readonly", needs=("waves.store", "signals.event"), seconds=15, alone=True,
          why="Pages that the GPU may not write are not written, and it is told.")
def readonly(b: AmdBench) -> str:
  page = b.take(PAGE, writable=False)
  page.fill(0x11)
  wave(b, STORE, page.address)
  said = faulted(b, page.address, missing=False, write=True)
  same(page.words[0], 0x1111_1111, "the word in the page that is read-only", "permission bits of the page table entry")
  return said


@AMD.rung("faults.fetch", needs=("waves.store", "signals.event"), seconds=15, alone=True,
          why="Data is not code: a fetch from a page that is not executable is refused.")
def fetch(b: AmdBench) -> str:
  code = RungCode(b, STORE)
  plain = b.take(PAGE)
  plain.bytes[:] = code.memory.bytes[:PAGE]
  code.memory = plain
  b.watched  # noqa: B018
  b.compute.write(launched(b, b.pm4(), code, plain.address, block=(1, 1, 1)))
  return faulted(b, plain.address, missing=False, write=False, executes=True)


def _submitted(b: AmdBench, c: ComputeCommands | CopyCommands) -> None:
  b.watched  # noqa: B018
  (b.compute if isinstance(c, ComputeCommands) else b.copier).write(c)


@AMD.rung("faults.packet", needs=("queue.write", "waves.store", "signals.event"), seconds=15, alone=True,
          why="The command processor's own accesses go through the page tables too.")
def packet(b: AmdBench) -> str:
  address = nowhere(b) & -8
  _submitted(b, write_data(b.pm4(), address, 1))
  return faulted(b, address, missing=True, write=True)


@AMD.rung("faults.copy", needs=("copies.four", "waves.store", "signals.event"), seconds=15, alone=True,
          why="And those of the copy engine, which has another hub.")
def copy(b: AmdBench) -> str:
  page, address = b.take(PAGE), nowhere(b)
  _submitted(b, copying(b.sdma(), page.address, address, 64))
  return faulted(b, address, missing=True, write=False)


@AMD.rung("faults.packets", needs=("queue.nop", "waves.store", "signals.event"), seconds=20, alone=True,
          why="A word that is no packet stops the queue; the driver hears of it, and others go on.")
def packets(b: AmdBench) -> str:
  c = b.pm4()
  c.words += [1 << 30, 0xDEAD_BEEF]  # type 1, which no engine has
  _submitted(b, c)
  _, hardware = told(b)
  same(int(hardware.gpu_id), b.node.gpu_id, "gpu_id of the hardware event", "CP_BAD_OPCODE, and gfx_v11_0_priv_reg_irq")
  check(hardware.reset_cause == kfd.KFD_HW_EXCEPTION_GPU_HANG, f"reset_cause {hardware.reset_cause}", "a hang", _LOOK)
  return f"a hang is told; {lives(b)}"


def spinning(b: AmdBench) -> tuple[BenchQueue, BenchMemory]:
  """A queue whose wave polls the first word of a page; it has begun."""
  page, queue, code = output(b, 4, 0), BenchQueue(b, COMPUTE), RungCode(b, _SPIN)
  queue.write(launched(b, b.pm4(), code, page.address, block=(1, 1, 1)))
  if not b.wait(lambda: bool(page.words[2])):
    raise Broken(f"a wave on a second queue does not begin{b.why_stopped()}", "it stores a word", _LOOK)
  return queue, page


@AMD.rung("faults.endless", needs=("waves.branches", "queue.second"), seconds=20, alone=True,
          why="A wave that does not end is taken off with its queue (context save), and the next queue works.")
def endless(b: AmdBench) -> str:
  look = "DESTROY_QUEUE of a busy queue: unmap_queues, CWSR, and the save area's size"
  queue, page = spinning(b)
  b.wait(lambda: bool(page.words[1]), 0.05)
  same(page.words[1], 0, "the word behind the loop", "the program's branch")
  queue.close()
  same(runs(b), 77, "what a wave of another queue stores afterwards", look)
  return "its queue was destroyed; another runs"


@AMD.rung("faults.spins", needs=("waves.branches", "queue.second"), seconds=20,
          why="A wave that polls memory lets others run, and ends when the host stores.")
def spins(b: AmdBench) -> str:
  queue, page = spinning(b)
  same(runs(b), 77, "what a wave of another queue stores meanwhile", "queues of other pipes: HWS, and CU reservation")
  same(page.words[1], 0, "the word behind the loop, before the host's store", "the program's branch")
  page.words[0] = 9
  if not b.wait(lambda: bool(page.words[1] == 9)):
    raise Broken(f"the wave does not see the host's store{b.why_stopped()}", "9", "MTYPE of the page, and its loads")
  queue.close()
  b.free(page)
  return "another queue ran meanwhile"
