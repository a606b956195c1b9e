"""Bugs of AQL queues, put into the capture of `tests/queues/aql.py`; with those of `planted_bugs`, all of them.

Submissions 0 to 4 are a packet each, 5 and 7 are the copy engine's, 6 another card's; 8 and 9 are alike.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.mock.test_waves import binary
from tests.queues.planted import Found, Stream
from tests.queues.planted_bugs import BUGS, bug, swapped
from tinyhw.autogen import hsa
from tinyhw.queues.effects import Does
from tinyhw.queues.events import Waited
from tinyhw.wire import codeobject

__all__ = ["BUGS"]

SCOPES = (1 << hsa.HSA_PACKET_HEADER_WIDTH_SCACQUIRE_FENCE_SCOPE) - 1


def _aql(s: Stream, submission: int, change: Callable[[Any], None]) -> Found:
  """A packet with other fields."""
  found = next(f for f in s.items("AQL") if f.step.submission == submission)
  made = type(found.item.packet).from_buffer_copy(bytes(found.item.packet))
  change(made)
  raw = bytes(made)
  s.write(found, found.item.address, [int.from_bytes(raw[at:at + 4], "little") for at in range(0, len(raw), 4)])
  return found


def _without(s: Stream, submission: int, bits: int) -> Found:
  """A packet whose header lacks bits."""
  def change(p: Any) -> None: p.header &= ~bits
  return _aql(s, submission, change)


def _aql_value(s: Stream, submission: int, name: str, value: int) -> Found:
  def change(p: Any) -> None:
    if hasattr(getattr(p, name), "handle"): getattr(p, name).handle = value
    else: setattr(p, name, value)
  return _aql(s, submission, change)


@bug("a kernel has no release scope, and another engine reads what it wrote", "AQL", "release")
def _(s: Stream) -> Found:
  """rocm-systems issue 5640."""
  return _without(s, 4, SCOPES << hsa.HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE)


@bug("a dispatch that became PM4 has lost its barrier bit", "AQL", "race")
def _(s: Stream) -> Found:
  """librocdxg issue 68."""
  return _without(s, 2, 1 << hsa.HSA_PACKET_HEADER_BARRIER)


@bug("a barrier packet waits for no signal", "AQL", "race")
def _(s: Stream) -> Found:
  def change(p: Any) -> None: p.dep_signal[0].handle = 0
  _aql(s, 3, change)
  return s.launch(3)


@bug("a doorbell of AQL beyond what was written", "AQL", "no-packet", "write-pointer")
def _(s: Stream) -> Found:
  """rocm-systems issue 7796: the engine finds packets of type INVALID."""
  found = next(f for f in s.items("AQL") if f.step.submission == 2)
  s.bell(found.event).value += 4
  return found


@bug("a packet is read when its first half alone is written", "AQL", "unmapped", "program", "signal-lost")
def _(s: Stream) -> Found:
  """rocm-systems issue 10377: the header is valid before the 32 bytes behind are."""
  found = next(f for f in s.items("AQL") if f.step.submission == 4)
  s.write(found, found.item.address + 32, [0] * 8)
  return found


@bug("a copy is ordered behind an AQL queue by no signal", "AQL", "race")
def _(s: Stream) -> Found:
  """rocm-systems issue 11403."""
  wait = s.doing(Does.WAIT, 0, "SDMA")
  s.drop(wait)
  return wait


@bug("a copy does not wait for the card that makes its source", "AQL", "race")
def _(s: Stream) -> Found:
  wait = s.doing(Does.WAIT, 1, "SDMA")
  s.drop(wait)
  return wait


@bug("a copy does not wait for the dword that another card stores", "AQL", "race")
def _(s: Stream) -> Found:
  wait = s.doing(Does.WAIT, 2, "SDMA")
  s.drop(wait)
  return wait


@bug("a copy waits for a signal that no packet completes", "AQL", "wait", "signal-lost")
def _(s: Stream) -> Found:
  found = _aql_value(s, 4, "completion_signal", 0)
  wait = s.doing(Does.WAIT, 0, "SDMA")
  s.events[wait.event + 1:] = [Waited(vendor="amd", met=False, ns=10 ** 9)]
  assert found is not None
  return wait


@bug("a kernel object is its code's entry, not its descriptor", "AQL", "program")
def _(s: Stream) -> Found:
  found = next(f for f in s.items("AQL") if f.step.submission == 4)
  kernel = codeobject.load(binary()).kernel("store")
  at = int(found.item.packet.kernel_object) - kernel.descriptor_offset + kernel.entry_offset
  return _aql_value(s, 4, "kernel_object", at)


@bug("an AQL packet of no work-items", "AQL", "empty")
def _(s: Stream) -> Found: return _aql_value(s, 4, "grid_size_x", 0)


@bug("the halves of kernarg_address are swapped", "AQL", "unmapped")
def _(s: Stream) -> Found:
  found = next(f for f in s.items("AQL") if f.step.submission == 4)
  return _aql_value(s, 4, "kernarg_address", swapped(int(found.item.packet.kernarg_address)))


@bug("more AQL packets than the ring has", "AQL", "ring-overrun")
def _(s: Stream) -> Found:
  found = next(f for f in s.items("AQL") if f.step.submission == 2)
  event = s.bell(found.event)
  event.first, event.last, event.value = 65, 66, 65
  event.pointers = [0, 66]
  return found
