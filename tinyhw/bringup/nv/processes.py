"""Several processes, many channels, channels that wait, and other cards."""
from __future__ import annotations

from typing import Final

from tinyhw.autogen import nv_rm_status
from tinyhw.bringup.bench import check, first_wrong, same
from tinyhw.bringup.nv.bench import PAGE, Aperture, NvBench
from tinyhw.bringup.nv.faults import died, runs
from tinyhw.bringup.nv.ladder import NV
from tinyhw.bringup.nv.queue import release
from tinyhw.bringup.rung import Absent, Broken

_LISTS: Final = "runlists and time slices (NVA06C_CTRL_CMD_GPFIFO_SCHEDULE)"
_CHANNELS: Final = 40
_BYTES: Final = 64 << 20


def holds(b: NvBench, size: int) -> int:
  """Take video memory, and keep it; what is free then."""
  b.take(size, Aperture.VRAM)
  return b.free_vram()


def reaches(b: NvBench, address: int) -> str:
  """Write to an address of another process; what the channel died of."""
  channel = b.compute_channel("a channel to lose")
  c = release(b.commands(), address, 0xBAD)
  return died(b, channel, lambda: channel.queue.submit(c.bind(), b.next_value(), timeout_s=b.left),
              nv_rm_status.ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT)


@NV.rung("processes.two", needs=("queue.second",), seconds=20,
         why="Two processes at a time, each with its address space and its channels.")
def two(b: NvBench) -> str:
  other = b.beside()
  for _ in range(3):
    same(other.call(runs), 77, "what a channel of the other process writes", _LISTS)
    same(runs(b), 77, "what a channel of this process writes meanwhile", _LISTS)
  other.end()
  return "3 channels each, in turns"


@NV.rung("processes.apart", needs=("processes.two", "faults.semaphore"), seconds=20,
         why="A process cannot reach another one's memory: its access faults there.")
def apart(b: NvBench) -> str:
  made = [b.take(PAGE) for _ in range(64)]  # the other process has none so far up
  page = made[-1]
  longs = page.bytes().cast("Q")
  longs[0] = 0x3333
  other = b.beside()
  said = other.call(reaches, page.address)
  same(longs[0], 0x3333, "the word at the address that the other process wrote to", "address spaces of RM")
  same(runs(b), 77, "what a channel of this process writes afterwards", "RC of the other process' channel alone")
  other.end()
  longs.release()
  b.free(*made)
  return f"{said} there; here nothing changes"


@NV.rung("processes.ends", needs=("processes.two", "device.memory"), seconds=20,
         why="A process that ends gives back all that it had.")
def ends(b: NvBench) -> str:
  before, other = b.free_vram(), b.beside()
  during = other.call(holds, _BYTES)
  check(during <= before - _BYTES, f"HEAP_FREE is {during:#x} with the other's {_BYTES:#x} bytes",
        f"at most {before - _BYTES:#x}", "NV2080_CTRL_FB_INFO_INDEX_HEAP_FREE")
  other.end()
  if not b.wait(lambda: b.free_vram() >= before - (2 << 20), 2.0):
    raise Broken(f"HEAP_FREE is {b.free_vram():#x} when the process is gone", f"{before:#x}", "rm_cleanup_file_private")
  return f"{_BYTES >> 20} MiB came back"


@NV.rung("processes.channels", needs=("queue.second",), seconds=60,
         why="Many channels on one runlist: each has its turn.")
def channels(b: NvBench) -> str:
  page, made = b.take(PAGE), [b.compute_channel(f"channel {i}") for i in range(_CHANNELS)]
  longs = page.bytes().cast("Q")
  for i in range(_CHANNELS): longs[i] = 0
  for turn in range(2):
    for i, channel in enumerate(made):
      channel.queue.submit(release(b.commands(), page.address + 8 * i, 100 * turn + i + 1).bind(), b.next_value(),
                           timeout_s=b.left)
  wanted = [100 + i + 1 for i in range(_CHANNELS)]
  if not b.wait(lambda: longs[:_CHANNELS].tolist() == wanted):
    first_wrong(longs[:_CHANNELS].tolist(), wanted, f"what {_CHANNELS} channels write", _LISTS)
  for channel in made: b.drop(channel)
  longs.release()
  b.free(page)
  return f"{_CHANNELS} channels, 2 submissions each"


@NV.rung("processes.preempts", needs=("processes.channels", "queue.wait"), seconds=60,
         why="Channels that wait hold no engine for ever: others run, and they go on afterwards.")
def preempts(b: NvBench) -> str:
  page, made = b.take(PAGE), [b.compute_channel(f"channel {i}") for i in range(_CHANNELS)]
  longs = page.bytes().cast("Q")
  for i in range(3 * _CHANNELS): longs[i] = 0
  for i, channel in enumerate(made):
    c = release(b.commands(), page.address + 8 * (2 * _CHANNELS + i), 1).wait(page.address, 1)
    channel.queue.submit(release(c, page.address + 8 * (i + 1), i + 1).bind(), b.next_value(), timeout_s=b.left)
  if not b.wait(lambda: all(longs[2 * _CHANNELS:3 * _CHANNELS])):
    raise Broken(f"{sum(longs[2 * _CHANNELS:3 * _CHANNELS])} of {_CHANNELS} have begun", "each gets to its wait",
         _LISTS)
  same(runs(b), 77, f"what a channel writes while {_CHANNELS} wait", _LISTS + "; ACQUIRE_SWITCH_TSG")
  check(not any(longs[1:_CHANNELS + 1]), "a channel that waits went on", "none", "SEM_EXECUTE and preemption")
  longs[0] = 1
  wanted = [i + 1 for i in range(_CHANNELS)]
  if not b.wait(lambda: longs[1:_CHANNELS + 1].tolist() == wanted):
    first_wrong(longs[1:_CHANNELS + 1].tolist(), wanted, "what the channels write once they may", _LISTS)
  for channel in made: b.drop(channel)
  longs.release()
  b.free(page)
  return f"a channel ran beside {_CHANNELS} that waited"


@NV.rung("peers.copy", needs=("copies.vram",), seconds=20, why="Cards that are linked reach each other's memory.")
def peers(b: NvBench) -> str:
  found = next((i for i in range(len(b.rm.cards)) if i != b.index and b.rm.reaches(b.gpu, b.rm.open_gpu(i))), None)
  if found is None: raise Absent(f"{len(b.rm.cards)} card(s), and none is linked to this one")
  gpu, look = b.rm.open_gpu(found), "UVM_ENABLE_PEER_ACCESS, and NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_V2"
  b.rm.connect(b.gpu, gpu)
  theirs = b.rm.take(gpu, PAGE, Aperture.VRAM, low=True)
  b.rm.map_to(theirs, b.gpu)
  page = b.take(PAGE)
  words = page.bytes().cast("I")
  words[0], words[16] = 0x0EE2, 0
  b.finish(b.copier, b.copies().copy(theirs.address, page.address, 4).copy(page.address + 64, theirs.address, 4), look)
  same(words[16], 0x0EE2, "a word that went to the other card and back", look)
  words.release()
  b.free(page, theirs)
  return f"4 bytes to card {found} and back"
