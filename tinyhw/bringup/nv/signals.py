"""Interrupts that reach the process, and the order of what several channels and the host see."""
from __future__ import annotations

from typing import Final

from tinyhw.autogen import nv_c56f as host
from tinyhw.bringup.bench import check, same
from tinyhw.bringup.nv.bench import PAGE, Channel, NvBench
from tinyhw.bringup.nv.ladder import NV
from tinyhw.bringup.nv.queue import release
from tinyhw.bringup.rung import Broken
from tinyhw.drive.nv.commands import HostCommands

_EVENTS: Final = "NV_ESC_ALLOC_OS_EVENT, NV01_EVENT_OS_EVENT of the sub-device, and the interrupt's vector"
_ROUNDS: Final = 16
_BYTES: Final = 1 << 20


def _interrupted(b: NvBench, channel: Channel, commands: HostCommands) -> str:
  event = b.rm.open_event(b.gpu)
  try:
    check(not b.port.poll(event.fd, 0.01), "a new event has something to tell", "it waits", _EVENTS)
    b.finish(channel, commands.interrupt(), "NON_STALL_INTERRUPT")
    check(b.port.poll(event.fd, min(b.left, 2.0)), f"no interrupt comes{b.why_stopped(channel)}",
          "the event's file is readable", _EVENTS)
    check(not b.port.poll(event.fd, 0.01), "the event is told of twice", "once", _EVENTS)
  finally: b.rm.close_event(event)
  return "one interrupt, told once"


@NV.rung("signals.interrupt", needs=("queue.release",), seconds=5,
         why="A channel interrupts the host, which sleeps in poll until then.")
def interrupt(b: NvBench) -> str: return _interrupted(b, b.compute, b.commands().wait_for_idle())


@NV.rung("signals.copied", needs=("copies.queue", "signals.interrupt"), seconds=5,
         why="The copy engine's runlist has an interrupt of its own.")
def copied(b: NvBench) -> str: return _interrupted(b, b.copier, b.copies())


@NV.rung("signals.across", needs=("queue.wait", "copies.queue"), seconds=10,
         why="Compute waits for the copy engine and it for compute, in turns: each hears of the other's semaphore.")
def across(b: NvBench) -> str:
  page = b.take(PAGE)
  longs = page.bytes().cast("Q")
  longs[0] = 0
  for i in range(1, _ROUNDS + 1):
    c = b.commands().wait(page.address, 2 * i - 2).signal(page.address, 2 * i - 1)
    b.compute.queue.submit(c.bind(), b.next_value(), timeout_s=b.left)
    d = b.copies().wait(page.address, 2 * i - 1).signal(page.address, 2 * i)
    b.copier.queue.submit(d.bind(), b.next_value(), timeout_s=b.left)
  if not b.wait(lambda: longs[0] >= 2 * _ROUNDS):
    raise Broken(f"they stop at {longs[0]} of {2 * _ROUNDS}{b.why_stopped(b.compute)}", "each goes on from the other's",
                 "SEM_EXECUTE.OPERATION, and ACQUIRE_SWITCH_TSG")
  same(longs[0], 2 * _ROUNDS, "the last semaphore", "SEM_EXECUTE.OPERATION")
  longs.release()
  b.free(page)
  return f"{2 * _ROUNDS} semaphores, in turns"


@NV.rung("signals.order", needs=("signals.across", "copies.vram"), seconds=10,
         why="A semaphore must not be seen before the data that it stands for.")
def order(b: NvBench) -> str:
  source, target, page = b.take(_BYTES), b.take(_BYTES), b.take(PAGE)
  words, signal = target.bytes().cast("I"), page.bytes().cast("Q")
  last = len(words) - 1
  for i in range(1, _ROUNDS + 1):
    source.bytes()[:] = bytes([i]) * source.size
    signal[0] = 0
    c = b.copies().copy(target.address, source.address, _BYTES).signal(page.address, 1)
    b.copier.queue.submit(c.bind(), b.next_value(), timeout_s=b.left)
    if not b.wait(lambda: bool(signal[0])): raise Broken("the semaphore behind a copy is not written", "1",
         "SEM_EXECUTE")
    for at in (0, last // 2, last):
      same(words[at], 0x0101_0101 * i, f"word {at} of copy {i}, when its semaphore is seen",
           "SEM_EXECUTE.RELEASE_WFI, and LAUNCH_DMA.FLUSH_ENABLE")
  for held in (words, signal): held.release()
  b.free(source, target, page)
  return f"{_ROUNDS} copies of {_BYTES:,} bytes, each seen whole behind its semaphore"


@NV.rung("signals.holds", needs=("signals.across",), seconds=10,
         why="A channel that waits leaves its engine to others, and goes on when the host stores.")
def holds(b: NvBench) -> str:
  page = b.take(PAGE)
  words = page.bytes().cast("I")
  for i in range(8): words[i] = 0
  c = b.copies().send(host.NOP()).wait(page.address, 5)
  b.copier.queue.submit(release(c, page.address + 8, 1, wide=False).bind(), b.next_value(), timeout_s=b.left)
  b.finish(b.compute, release(b.commands(), page.address + 16, 1, wide=False), "runlists: one engine holds another")
  for value in (0, 4):
    words[0] = value
    b.wait(lambda: bool(words[2]), 0.02)
    check(words[2] == 0, f"an acquire of 5 lets {value} pass", "it waits", "SEM_EXECUTE.OPERATION")
  words[0] = 5
  if not b.wait(lambda: bool(words[2])):
    raise Broken("an acquire of 5 waits with 5 in memory", "it goes on", "ACQUIRE_SWITCH_TSG, and the acquire's timer")
  words.release()
  b.free(page)
  return "it held for 0 and 4, and let 5 pass"
