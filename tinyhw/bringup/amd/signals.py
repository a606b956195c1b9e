"""Events, interrupts, and the order of what several queues and the host see."""
from __future__ import annotations

from typing import Final

from tinyhw.autogen import kfd
from tinyhw.bringup.amd.bench import PAGE, AmdBench
from tinyhw.bringup.amd.copies import copying
from tinyhw.bringup.amd.ladder import AMD
from tinyhw.bringup.amd.queue import write_data
from tinyhw.bringup.bench import check, same
from tinyhw.bringup.rung import Broken
from tinyhw.core.errors import DriverError

_EVENTS: Final = "kfd_events.c"
_ROUNDS: Final = 16
_MS: Final = 200
_BYTES: Final = 1 << 20


@AMD.rung("signals.event", needs=("memory.page",), seconds=5,
          why="Waits sleep on events; one that the process sets itself needs no GPU.")
def event(b: AmdBench) -> str:
  made = b.event()
  check(b.wait_events([made.event_id], 1) is None, "a new event is set", "it waits", _EVENTS)
  b.call("SET_EVENT", kfd.AMDKFD_IOC_SET_EVENT, kfd.kfd_ioctl_set_event_args(event_id=made.event_id))
  check(b.wait_events([made.event_id], _MS) is not None, "SET_EVENT does not end the wait", "it ends", _EVENTS)
  check(b.wait_events([made.event_id], 1) is None, "an event that resets itself is still set", "it waits again",
         _EVENTS)
  b.call("DESTROY_EVENT", kfd.AMDKFD_IOC_DESTROY_EVENT, kfd.kfd_ioctl_destroy_event_args(event_id=made.event_id))
  try: b.wait_events([made.event_id], 1)
  except DriverError: return f"event {made.event_id}, slot {made.event_slot_index}"
  raise Broken("an event that is gone can be waited for", "EINVAL", _EVENTS)


@AMD.rung("signals.interrupt", needs=("signals.event", "queue.release"), seconds=5,
          why="The end of the pipe interrupts the host, which finds the event by its slot.")
def interrupt(b: AmdBench) -> str:
  look = "RELEASE_MEM.int_sel, the interrupt ring (IH) and kfd_signal_event_interrupt"
  made, other = b.event(), b.event()
  mailbox = b.event_page.address + 8 * made.event_slot_index
  b.compute.write(b.pm4().interrupt(mailbox, made.event_id, made.event_trigger_data))
  rows = b.wait_events([made.event_id], int(1000 * min(b.left, 2.0)))
  check(rows is not None, f"no interrupt of RELEASE_MEM ends the wait{b.why_stopped()}", "the event is set", look)
  check(b.wait_events([other.event_id], 1) is None, "another event is set too", "its own alone", look)
  return f"event {made.event_id}"


@AMD.rung("signals.copied", needs=("signals.event", "copies.queue"), seconds=5,
          why="The copy engine interrupts by a packet of its own (TRAP).")
def copied(b: AmdBench) -> str:
  made = b.event()
  mailbox = b.event_page.address + 8 * made.event_slot_index
  b.copier.write(b.sdma().interrupt(mailbox, made.event_id, made.event_trigger_data))
  rows = b.wait_events([made.event_id], int(1000 * min(b.left, 2.0)))
  check(rows is not None, f"no interrupt of SDMA_PKT_TRAP ends the wait{b.why_stopped()}", "the event is set",
        "SDMA_PKT_TRAP.int_context, SDMA_CNTL.TRAP_ENABLE, and the interrupt ring's client id")
  return f"event {made.event_id}"


@AMD.rung("signals.across", needs=("queue.wait", "copies.queue"), seconds=10,
          why="Compute waits for the copy engine and it for compute, in turns: each hears of the other's signal.")
def across(b: AmdBench) -> str:
  page = b.take(PAGE)
  page.fill(0)
  longs = page.longs
  for i in range(1, _ROUNDS + 1):
    # compute, from value 2i-2 to 2i-1; the copy engine, from there to 2i
    c = b.pm4().wait("at", "wanted").signal(page.address, "value")
    b.compute.submit(c.bind(at=page.address, wanted=2 * i - 2, value=2 * i - 1), 0, timeout_s=b.left)
    d = b.sdma().wait("at", "wanted").signal(page.address, "value")
    b.copier.submit(d.bind(at=page.address, wanted=2 * i - 1, value=2 * i), 0, timeout_s=b.left)
  if not b.wait(lambda: longs[0] >= 2 * _ROUNDS):
    raise Broken(f"they stop at {longs[0]} of {2 * _ROUNDS}{b.why_stopped()}", "each goes on from the other's signal",
                 "POLL_REGMEM and WAIT_REG_MEM: function, and whether the other's store reaches what is polled")
  same(longs[0], 2 * _ROUNDS, "the last signal", "POLL_REGMEM: function")
  longs.release()
  b.free(page)
  return f"{2 * _ROUNDS} signals, in turns"


@AMD.rung("signals.order", needs=("signals.across", "copies.vram"), seconds=10,
          why="A signal must not be seen before the data that it stands for.")
def order(b: AmdBench) -> str:
  source, target, page = b.take(_BYTES), b.take(_BYTES), b.take(PAGE)
  words, signal = target.words, page.longs
  last = len(words) - 1
  for i in range(1, _ROUNDS + 1):
    source.bytes[:] = bytes([i]) * source.size
    signal[0] = 0
    b.copier.submit(copying(b.sdma(), target.address, source.address, _BYTES).signal(page.address, "value")
                    .bind(value=1), 0, timeout_s=b.left)
    if not b.wait(lambda: bool(signal[0])): raise Broken("the fence behind a copy is not written", "1",
         "SDMA_PKT_FENCE")
    for at in (0, last // 2, last):
      same(words[at], 0x0101_0101 * i, f"word {at} of copy {i}, when its fence is seen",
           "SDMA_PKT_FENCE behind SDMA_PKT_COPY_LINEAR: does it wait for write confirms?")
  for held in (words, signal): held.release()
  for buffer in (source, target, page): b.free(buffer)
  return f"{_ROUNDS} copies of {_BYTES:,} bytes, each seen whole behind its fence"


@AMD.rung("signals.polls", needs=("signals.across",), seconds=10,
          why="A copy queue that waits leaves its engine to others, and goes on when the host stores.")
def polls(b: AmdBench) -> str:
  page = b.take(PAGE)
  page.fill(0)
  words = page.words
  b.copier.submit(b.sdma().wait("at", "wanted").fence(page.address + 8, 1)
                  .bind(at=page.address, wanted=5), 0, timeout_s=b.left)
  b.compute.write(write_data(b.pm4(), page.address + 16, 1))
  if not b.wait(lambda: bool(words[4])): raise Broken("compute stands while the copy queue polls", "it goes on", "HWS")
  b.wait(lambda: bool(words[2]), 0.02)
  check(words[2] == 0, "POLL_REGMEM of 5 lets 0 pass", "it waits", "SDMA_PKT_POLL_REGMEM.func")
  words[0] = 4
  b.wait(lambda: bool(words[2]), 0.02)
  check(words[2] == 0, "POLL_REGMEM of 5 lets 4 pass", "it waits", "SDMA_PKT_POLL_REGMEM.func")
  words[0] = 5
  if not b.wait(lambda: bool(words[2])):
    raise Broken("POLL_REGMEM of 5 waits with 5 in memory", "it goes on", "SDMA_PKT_POLL_REGMEM.retry_count")
  words.release()
  b.free(page)
  return "it held for 0 and 4, and let 5 pass"
