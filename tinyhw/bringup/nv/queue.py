"""A channel: made, rung, read; host methods that write memory, count time, wait and change memory atomically."""
from __future__ import annotations

from typing import Any, Final

from tinyhw.autogen import nv_c56f as host
from tinyhw.bringup.bench import check, first_wrong, same
from tinyhw.bringup.nv.bench import PAGE, Aperture, NvBench
from tinyhw.bringup.nv.ladder import NV
from tinyhw.bringup.rung import Broken
from tinyhw.drive.nv.channel import ENTRIES
from tinyhw.drive.nv.commands import ComputeCommands, HostCommands

_HOST: Final = "the host engine (PBDMA), the channel's USERD and its ring"
_ALL: Final = 0xFFFF_FFFF
_FIXED: Final = 0x1234_5678_9ABC_DEF0
_SHORT: Final = 0.05  # seconds in which something must not happen


def semaphore(c: HostCommands, address: int, payload: int, **fields: Any) -> HostCommands:
  """A semaphore method of the host engine, by its fields."""
  c.run(host.SEM_ADDR_LO, address & _ALL, address >> 32, payload & _ALL, payload >> 32,
        host.SEM_EXECUTE(**fields).value())
  return c


def release(c: HostCommands, address: int, payload: int, wide: bool = True, **fields: Any) -> HostCommands:
  """Write a payload of 8 bytes, or of 4."""
  size = host.SEM_EXECUTE_PAYLOAD_SIZE
  return semaphore(c, address, payload, OPERATION=host.SEM_EXECUTE_OPERATION.RELEASE,
                   RELEASE_WFI=host.SEM_EXECUTE_RELEASE_WFI.EN, PAYLOAD_SIZE=size._64BIT if wide else size._32BIT,
                   **fields)


def nops(c: ComputeCommands, count: int) -> ComputeCommands:
  """So many host methods that do nothing."""
  for _ in range(count): c.send(host.NOP())
  return c


@NV.rung("queue.create", needs=("memory.page", "memory.vram", "device.engines"), seconds=10,
         why="RM takes a ring, a USERD and a context share, and puts the channel on a runlist.")
def create(b: NvBench) -> str:
  channel = b.compute
  same(int(channel.notifier.status), 0, "the error notifier of a new channel", "NV_CHANNEL_ALLOC_PARAMS.hObjectError")
  return f"channel {channel.handle:#x}; {channel.queue.ring.pointers()}"


@NV.rung("queue.token", needs=("queue.create",), seconds=10,
         why="A doorbell names its channel by a token: two channels must not have one.")
def token(b: NvBench) -> str:
  other = b.compute_channel("second channel")
  first, second = b.compute.queue.ring._token, other.queue.ring._token
  b.drop(other)
  check(first != second, f"two channels have the token {first:#x}", "one each",
        "NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN")
  return f"{first:#x} and {second:#x}"


@NV.rung("queue.nop", needs=("queue.token",), seconds=5,
         why="The host engine hears the doorbell, fetches an entry and the words that it names.")
def nop(b: NvBench) -> str:
  channel = b.compute
  queue, userd, notifier = channel.queue, channel.userd, channel.notifier
  queue.submit(nops(b.commands(), 8).bind(), b.next_value(), timeout_s=b.left)
  if not b.wait(lambda: userd.GPGet == userd.GPPut or notifier.status != 0) or notifier.status:
    raise Broken(f"NOPs are not fetched; {queue.ring.pointers()}{b.why_stopped(channel)}",
                 "GP_GET comes to GP_PUT", _HOST + "; the doorbell's page and token")
  return f"8 NOPs; {queue.ring.pointers()}"


@NV.rung("queue.release", needs=("queue.nop",), seconds=5,
         why="The first effect: a semaphore's payload in memory, 64 bits at its address, and nowhere else.")
def released(b: NvBench) -> str:
  page = b.take(PAGE)
  longs = page.bytes().cast("Q")
  for i in range(len(longs)): longs[i] = _FIXED >> 3
  c = release(b.commands(), page.address + 64, _FIXED)
  release(c, page.address + 128, 7, wide=False)
  b.finish(b.compute, c, _HOST)
  wanted = [_FIXED >> 3] * len(longs)
  wanted[8], wanted[16] = _FIXED, _FIXED >> 3 & ~_ALL | 7
  first_wrong(longs.tolist(), wanted, "the page behind two semaphores", "SEM_EXECUTE.PAYLOAD_SIZE")
  longs.release()
  b.free(page)
  return f"{_FIXED:#x}, and 32 bits"


@NV.rung("queue.object", needs=("queue.release",), seconds=5,
         why="The compute class on its subchannel takes methods: bytes of the pushbuffer go to memory.")
def inline(b: NvBench) -> str:
  page, data = b.take(PAGE), bytes(range(61))
  page.bytes()[:] = bytes(page.size)
  c = b.commands().begin().inline(page.address + 4, data)
  b.finish(b.compute, c, "SET_OBJECT, and LOAD_INLINE_DATA of the compute class")
  found = bytes(page.bytes()[:128])
  check(found == bytes(4) + data + bytes(63), f"{found[:16].hex()}... came", "61 bytes, 4 bytes into the page",
        "LINE_LENGTH_IN of the compute class: bytes, not words")
  b.free(page)
  return f"{len(data)} bytes through the pushbuffer"


@NV.rung("queue.wrap", needs=("queue.release",), seconds=20,
         why="Ring and pushbuffer are used again and again: entry 0 comes behind the last one.")
def wrap(b: NvBench) -> str:
  page, rounds, channel = b.take(PAGE), 0, b.compute
  words = page.bytes().cast("Q")
  for i in range(len(words)): words[i] = 0
  while rounds <= ENTRIES + 64:
    for _ in range(256):  # entries that are told of by one doorbell
      rounds += 1
      channel.queue.ring.push(release(nops(b.commands(), rounds % 3), page.address + 8 * (rounds % 64), rounds)
                              .bind().words, b.left)
      channel.queue.ring.publish()
    b.finish(channel, b.commands(), _HOST + "; gpFifoEntries")
    for i in range(rounds - 63, rounds + 1):
      if i > 0: same(words[i % 64], i, f"what entry {i} writes", _HOST + "; gpFifoEntries")
  words.release()
  b.free(page)
  return f"{rounds:,} entries in a ring of {ENTRIES:,}"


@NV.rung("queue.timestamp", needs=("queue.release", "device.clock"), seconds=5,
         why="The GPU's clock behind a semaphore: it moves forward, and is the one that RM reads.")
def timestamp(b: NvBench) -> str:
  page = b.take(PAGE)
  longs = page.bytes().cast("Q")
  for i in range(8): longs[i] = 0
  look = "SEM_EXECUTE.RELEASE_TIMESTAMP, and PTIMER"
  first = b.time_ns()
  b.finish(b.compute, b.commands().signal(page.address, 1, timestamp=True), look)
  middle = b.time_ns()
  b.wait_a_little(0.005)
  b.finish(b.compute, b.commands().signal(page.address + 16, 1, timestamp=True), look)
  last = b.time_ns()
  check(first <= longs[1] <= middle <= longs[3] <= last, f"timestamps {longs[1]:#x} and {longs[3]:#x}",
        f"between {first:#x}, {middle:#x} and {last:#x} of RM", look)
  spent = longs[3] - longs[1]
  longs.release()
  b.free(page)
  return f"{spent:,} ns apart"


@NV.rung("queue.wait", needs=("queue.release",), seconds=10,
         why="Acquires are how channels wait for each other: each must hold, and let go.")
def wait(b: NvBench) -> str:
  page, o = b.take(PAGE), host.SEM_EXECUTE_OPERATION
  words = page.bytes().cast("I")
  rows = ((o.ACQUIRE, 4, 5), (o.ACQ_STRICT_GEQ, 4, 6), (o.ACQ_CIRC_GEQ, 4, 5), (o.ACQ_CIRC_GEQ, 0x8000_0006, 6),
          (o.ACQ_AND, 8 + 2, 4))
  look = _HOST + "; SEM_EXECUTE.OPERATION"
  for operation, no, yes in rows:
    words[0], words[2] = no, 0
    c = semaphore(b.commands(), page.address, 5, OPERATION=operation,
                  ACQUIRE_SWITCH_TSG=host.SEM_EXECUTE_ACQUIRE_SWITCH_TSG.EN)
    value = b.write(b.compute, release(c, page.address + 8, 1, wide=False))
    b.wait(lambda: bool(words[2]), _SHORT)
    check(words[2] == 0, f"{operation.name} of 5 lets {no:#x} pass", "it waits", look)
    words[0] = yes
    b.reached(b.compute, value, look, f"{operation.name} of 5 lets {yes:#x} pass")
  words.release()
  b.free(page)
  return f"{len(rows)} acquires hold and let go"


_ATOMICS: Final = (  # reduction, before, payload, after: of 32 bits
  ("IMIN", 5, 3, 3), ("IMAX", 5, 9, 9), ("IXOR", 12, 10, 6), ("IAND", 12, 10, 8), ("IOR", 12, 10, 14),
  ("IADD", _ALL, 3, 2), ("INC", 7, 7, 0), ("INC", 6, 7, 7), ("DEC", 0, 7, 7), ("DEC", 3, 7, 2))


@NV.rung("queue.atomics", needs=("queue.release",), seconds=10,
         why="Counters between engines are reductions of semaphores: each one, and the sign.")
def atomics(b: NvBench) -> str:
  page, c = b.take(PAGE, Aperture.VRAM, host=True), b.commands()  # a bus need not carry those of the system's memory
  words, e = page.bytes().cast("I"), host.SEM_EXECUTE_REDUCTION_FORMAT
  rows = [(n, e.UNSIGNED, a, p, z) for n, a, p, z in _ATOMICS]
  rows += [("IMIN", e.SIGNED, 1, _ALL, _ALL), ("IMAX", e.SIGNED, 1, _ALL, 1), ("IMAX", e.UNSIGNED, 1, _ALL, _ALL)]
  for i, (name, form, before, payload, _) in enumerate(rows):
    words[i] = before
    semaphore(c, page.address + 4 * i, payload, OPERATION=host.SEM_EXECUTE_OPERATION.REDUCTION,
              REDUCTION=host.SEM_EXECUTE_REDUCTION[name], REDUCTION_FORMAT=form)
  b.finish(b.compute, c, _HOST)
  for i, (name, form, before, payload, after) in enumerate(rows):
    same(words[i], after, f"{name} {form.name} of {before:#x} by {payload:#x}", "SEM_EXECUTE.REDUCTION")
  words.release()
  b.free(page)
  return f"{len(rows)} reductions"


@NV.rung("queue.second", needs=("queue.release",), seconds=10,
         why="Two channels of a process are apart: rings, USERDs and tokens of their own.")
def second(b: NvBench) -> str:
  page, other = b.take(PAGE), b.compute_channel("second channel")
  longs = page.bytes().cast("Q")
  for i in range(16): longs[i] = 0
  for i in range(4):
    for n, channel in enumerate((b.compute, other)):
      channel.queue.submit(release(nops(b.commands(), 3 * n), page.address + 8 * (2 * i + n),
                                   100 * (n + 1) + i).bind(), b.next_value(), timeout_s=b.left)
  wanted = [100 * (n + 1) + i for i in range(4) for n in range(2)]
  if not b.wait(lambda: longs[:8].tolist() == wanted):
    first_wrong(longs[:8].tolist(), wanted, f"what two channels write{b.why_stopped(other)}",
                "runlists, and the tokens of doorbells")
  b.drop(other)
  longs.release()
  b.free(page)
  return "8 submissions, in turns"


@NV.rung("queue.destroy", needs=("queue.second",), seconds=20,
         why="A channel that is freed leaves its runlist; the next one works, and memory does not run out.")
def destroy(b: NvBench) -> str:
  free = []
  for _ in range(4):
    channel = b.compute_channel("a channel for a moment")
    b.finish(channel, b.commands(), _HOST)
    b.drop(channel)
    free.append(b.free_vram())
  check(free[-1] >= free[0] - (1 << 20), f"HEAP_FREE behind each of 4 channels: {free}", "the same",
        "NV_ESC_RM_FREE of a channel group: what stays allocated?")
  return "4 channels, one after the other"
