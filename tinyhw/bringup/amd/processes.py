"""Several processes, more queues than the chip has places for, other cards, and what counts."""
from __future__ import annotations

import ctypes
from typing import Final

from tinyhw.autogen import amdgpu_drm, kfd
from tinyhw.bringup.amd.bench import COMPUTE, GTT, PAGE, VRAM, AmdBench, BenchQueue
from tinyhw.bringup.amd.copies import copying
from tinyhw.bringup.amd.faults import runs, told
from tinyhw.bringup.amd.ladder import AMD
from tinyhw.bringup.amd.queue import write_data
from tinyhw.bringup.bench import check, first_wrong, same
from tinyhw.bringup.rung import Absent, Broken

_HWS: Final = "the hardware scheduler (MES): runlists, and queues that wait for a place"
_MOST_QUEUES: Final = 40
_BYTES: Final = 64 << 20


def holds(b: AmdBench, size: int) -> int:
  """Take video memory, and keep it; what is available then."""
  b.take(size, VRAM, host=False)
  return b.available()


def writes(b: AmdBench, address: int) -> int:
  """Write to an address of another process; the page that a fault is told of, or 0."""
  b.watched  # noqa: B018
  b.compute.write(write_data(b.pm4(), address, 0xBAD))
  memory, _ = told(b)
  return int(memory.va)


@AMD.rung("processes.two", needs=("waves.store",), seconds=20,
          why="Two processes at a time, each with its address space and its queues.")
def two(b: AmdBench) -> str:
  other = b.beside()
  for _ in range(3):
    same(other.call(runs), 77, "what a wave of the other process stores", _HWS)
    same(runs(b), 77, "what a wave of this process stores meanwhile", _HWS)
  other.end()
  return "3 waves each, in turns"


@AMD.rung("processes.apart", needs=("processes.two", "faults.packet"), seconds=20, alone=True,
          why="A process cannot reach another one's memory: its access faults, and only it hears of that.")
def apart(b: AmdBench) -> str:
  page, other = b.take(PAGE), b.beside()
  page.fill(0x33)
  same(other.call(writes, page.address), page.address, "the page of the other process's fault", "VMIDs and page tables")
  same(page.words[0], 0x3333_3333, "the word that the other process wrote to", "VMIDs and page tables")
  check(b.wait_events(b.watched, 1) is None, "this process hears of the other's fault", "nothing",
         "kfd_events.c: pasid")
  same(runs(b), 77, "what a wave of this process stores afterwards", "the eviction of the faulting process alone")
  other.end()
  return "its write faults there; here nothing changes"


@AMD.rung("processes.ends", needs=("processes.two", "memory.available"), seconds=20,
          why="A process that ends gives back all that it had.")
def ends(b: AmdBench) -> str:
  before, other = b.available(), b.beside()
  during = other.call(holds, _BYTES)
  check(during <= before - _BYTES, f"AVAILABLE_MEMORY is {during:#x} with the other's {_BYTES:#x} bytes",
        f"at most {before - _BYTES:#x}", "vram_used of all processes")
  other.end()
  if not b.wait(lambda: b.available() == before, 2.0):
    same(b.available(), before, "AVAILABLE_MEMORY when the process is gone", "kfd_process_wq_release")
  return f"{_BYTES >> 20} MiB came back"


@AMD.rung("processes.queues", needs=("queue.second",), seconds=40,
          why="More queues than the chip has places for: the scheduler lets each have its turn.")
def queues(b: AmdBench) -> str:
  count = min(b.node.p.get("num_cp_queues", 24) + 4, _MOST_QUEUES)
  page, made = b.take(PAGE), []
  page.fill(0)
  for _ in range(count): made.append(BenchQueue(b, COMPUTE, PAGE))
  for turn in range(2):
    for i, queue in enumerate(made): queue.write(write_data(b.pm4(), page.address + 4 * i, 100 * turn + i + 1))
  words = page.words
  wanted = [100 + i + 1 for i in range(count)]
  if not b.wait(lambda: words[:count].tolist() == wanted):
    first_wrong(words[:count].tolist(), wanted, f"what {count} queues write{b.why_stopped()}", _HWS)
  words.release()
  for queue in made: queue.close()
  b.free(page)
  return f"{count} queues, 2 submissions each"


@AMD.rung("processes.preempts", needs=("processes.queues", "queue.wait"), seconds=40,
          why="Queues that wait hold no place for ever: those behind them run, and they go on afterwards.")
def preempts(b: AmdBench) -> str:
  count = min(b.node.p.get("num_cp_queues", 24) + 4, _MOST_QUEUES)
  page = b.take(PAGE)
  page.fill(0)
  words, made = page.words, [BenchQueue(b, COMPUTE, PAGE) for _ in range(count)]
  for i, queue in enumerate(made):
    c = write_data(b.pm4(), page.address + 2048 + 4 * i, 1).wait("at", "wanted")
    write_data(c, page.address + 4 * (i + 1), i + 1)
    queue.submit(c.bind(at=page.address, wanted=1), 0, timeout_s=b.left)
  if not b.wait(lambda: all(words[512:512 + count])):
    raise Broken(f"{sum(words[512:512 + count])} of {count} queues have begun", "each gets to its wait", _HWS)
  same(runs(b), 77, f"what a wave stores while {count} queues wait", _HWS + "; time slices")
  check(not any(words[1:count + 1]), "a queue that waits went on", "none", "WAIT_REG_MEM and preemption")
  words[0] = 1
  wanted = [i + 1 for i in range(count)]
  if not b.wait(lambda: words[1:count + 1].tolist() == wanted):
    first_wrong(words[1:count + 1].tolist(), wanted, "what the queues write once they may", _HWS)
  words.release()
  for queue in made: queue.close()
  b.free(page)
  return f"a wave ran beside {count} queues that waited"


@AMD.rung("peers.copy", needs=("copies.vram",), seconds=20,
          why="Cards that are linked reach each other's memory.")
def peers(b: AmdBench) -> str:
  mine, look = b.node, "io_links and p2p_links of the topology, large BARs, IOMMU"
  pairs = {(link.node_from, link.node_to) for n in b.nodes for link in n.links if link.peer_dma}
  found = next((i for i, n in enumerate(b.nodes) if n is not mine
                and {(mine.node, n.node), (n.node, mine.node)} & pairs), None)
  if found is None: raise Absent(f"{len(b.nodes)} card(s), and none is linked to this one")
  peer = AmdBench(b.port, found)
  theirs = peer.take(PAGE, VRAM, host=False)
  ids = (ctypes.c_uint32 * 1)(mine.gpu_id)
  got = b.call("MAP_MEMORY_TO_GPU", kfd.AMDKFD_IOC_MAP_MEMORY_TO_GPU, kfd.kfd_ioctl_map_memory_to_gpu_args(
    handle=theirs.handle, device_ids_array_ptr=ctypes.addressof(ids), n_devices=1))
  same(int(got.n_success), 1, "n_success of a peer's mapping", look)
  page = b.take(PAGE, GTT)
  page.fill(0)
  page.words[0] = 0x0EE2
  b.copier.finish(
    copying(copying(b.sdma(), theirs.address, page.address, 4), page.address + 64, theirs.address, 4), look)
  same(page.words[16], 0x0EE2, "a word that went to the other card and back", look)
  return f"4 bytes to node {b.nodes[found].node} and back"


@AMD.rung("counters.memory", needs=("device.render", "memory.page"), seconds=5,
          why="Monitors read how much memory is in use: it follows what is allocated.")
def usage(b: AmdBench) -> str:
  def used() -> int:
    answer = ctypes.c_uint64()
    b.info(amdgpu_drm.AMDGPU_INFO_GTT_USAGE if b.shared else amdgpu_drm.AMDGPU_INFO_VRAM_USAGE, answer)
    return int(answer.value)
  before, size = used(), 8 << 20
  made = b.take(size, VRAM, host=False)
  during = used()
  b.free(made)
  name = "GTT_USAGE" if b.shared else "VRAM_USAGE"
  check(during >= before + size, f"{name} goes from {before:#x} to {during:#x} by {size:#x} bytes", "so much more",
        f"AMDGPU_INFO_{name}")
  if used() >= during: raise Broken(f"{name} stays {used():#x} when it is free again", f"{before:#x}", "the same")
  return f"{before >> 20:,} MiB, and {size >> 20} more"
