"""Dispatch tables refuse duplicates and list gaps; traces keep order and bound their memory."""
from __future__ import annotations

import re

import pytest

from tinyhw.core.errors import DecodeError, Error, Interrupted, LayoutError, PageFault, Unsupported, WaitTimeout
from tinyhw.core.table import Handlers, Ignored
from tinyhw.core.timeout import Deadline
from tinyhw.core.trace import Clock, Trace


def test_handlers() -> None:
  table: Handlers[int] = Handlers("test ioctl")

  @table.handles(1, 2)
  def serve() -> str: return "served"

  table.ignores(3, why="has no effect here")
  assert table[1] is serve and table.get(3) is None and table.why_ignored(3) == "has no effect here"
  with pytest.raises(LayoutError, match="registered twice"): table.ignores(2, why="again")
  with pytest.raises(LayoutError, match="registered twice"): table.handles(3)(serve)
  with pytest.raises(Unsupported, match="unsupported test ioctl 0x4"): table[4]
  assert table.gaps([1, 2, 3, 4]) == ["0x4"] and ("0x3", "ignored: has no effect here") in table.report()


def test_ignored_things_are_counted() -> None:
  ledger = Ignored()
  for _ in range(3): ledger.note("PM4 packet", "ACQUIRE_MEM", "no caches are modelled")
  assert ledger.lines() == ["PM4 packet ACQUIRE_MEM x3: no caches are modelled"]


def test_trace_is_ordered_and_bounded() -> None:
  trace = Trace(Clock(step_ns=10), keep=8)
  for i in range(100): trace.add("GPU0", "packet", "NOP", index=i)
  times = [e.time_ns for e in trace]
  assert times == sorted(times) and len(trace) <= 10 and trace.dropped + len(trace) == 100
  assert "NOP index=0x63" in str(trace.where(lambda e: e.fields["index"] == 99)[0])


@pytest.mark.parametrize(("clock", "whose"), [(Clock(step_ns=10), "mock's clock"), (Clock(), "host's clock")])
def test_an_event_says_whose_its_time_is(clock: Clock, whose: str) -> None:
  trace = Trace(clock)
  trace.add("GPU0", "packet", "NOP")
  assert re.match(rf" *[\d.]+ ms \({whose}\)  GPU0 ", str(*trace))


def test_errors_say_what_where_and_what_to_do() -> None:
  error = DecodeError("unknown opcode 0x99", where="compute ring at dword 7", words=[0xC0990000],
                      hint="record the queue")
  assert str(error) == "compute ring at dword 7: unknown opcode 0x99; record the queue [c0990000]"
  timeout = WaitTimeout("AMD compute", packet="WAIT_REG_MEM", address=0x1000, wanted=2, seen=1, seconds=0.5)
  assert "AMD compute: no progress after 0.5 s: WAIT_REG_MEM waits on 0x1000 for 0x2, found 0x1" == str(timeout)
  assert isinstance(error, Error) and isinstance(timeout, Error)


def test_patience_ends() -> None:
  Deadline(3600)()
  with pytest.raises(Interrupted, match=r"ran for more than 0\.125 s"):
    impatient = Deadline(0.125)
    impatient._end -= 1  # a second later
    impatient()


def test_a_fault_of_a_machine_says_what_is_known() -> None:
  assert "wave" not in str(PageFault(0x1000, "read", 4))
  fault = PageFault(0x1000, "read", 4)
  fault.wave, fault.lane = 3, 5
  assert "wave 3" in str(fault) and "lane 5" in str(fault)
  fault.wave = 0
  assert "wave 0" in str(fault)
