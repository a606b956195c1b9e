"""Rings of programs that know nothing of tinyhw, looked at while they run (`standin` has the programs)."""
from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tests.queues import standin
from tinyhw.autogen import pm4_gfx11 as pm4
from tinyhw.queues.capture import Capture, Step
from tinyhw.queues.events import Doorbell, Note
from tinyhw.wire import gpfifo, methods

if sys.platform != "linux" or platform.machine() != "x86_64": pytest.skip("x86-64 Linux alone", allow_module_level=True)


def sniffed(folder: Path, part: str) -> tuple[list[Step], list[str], Capture]:
  """The submissions of a program, and what its capture says that it lacks."""
  done = subprocess.run([sys.executable, "-m", "tests.queues.standin", str(folder / "run.thq"), part],
                        capture_output=True, text=True)
  assert done.returncode == 0, done.stderr
  capture = Capture(folder / "run.thq")
  steps = list(capture)
  notes = [s.event.text.partition(": ")[2] for s in steps if isinstance(s.event, Note)]
  found = [s for s in steps if s.follow is not None]
  assert done.stdout == f"{len(found)}\n"
  return found, notes, capture


def told(step: Step) -> list[object]:
  assert step.follow is not None
  return [i.packet for i in step.follow.items]


def test_submissions_are_found_between_calls_and_before_the_end(tmp_path: Path) -> None:
  found, notes, capture = sniffed(tmp_path, "looked_at")
  call, inner = told(found[0])
  assert isinstance(call, pm4.INDIRECT_BUFFER) and isinstance(inner, pm4.WRITE_DATA) and inner.payload == (1,)
  (second,), (third,) = told(found[1]), told(found[2])
  assert isinstance(second, pm4.WRITE_DATA) and second.payload == (2,)
  assert isinstance(third, pm4.WRITE_DATA) and third.payload == (3,)
  events = [s.event for s in found if isinstance(s.event, Doorbell)]
  size = len(standin.write(0, 0))
  assert [(e.first, e.last) for e in events] == [(0, 4), (4, 4 + size), (4 + size, 4 + 2 * size)]
  assert events[2].pointers == [0, 4 + 2 * size] and not notes
  target = found[2].world.find(second.dst_mem_addr) if found[2].world is not None else None
  assert target is not None and capture.memories["amd"].versions(target), "the memory that it names is kept"


def test_what_was_overwritten_between_two_looks_is_told(tmp_path: Path) -> None:
  found, notes, _ = sniffed(tmp_path, "gone_round")
  (packet,), = map(told, found)
  assert isinstance(packet, pm4.WRITE_DATA) and packet.payload == (9,)
  assert notes == ["8 of 1032 entries of the ring from 0 on were overwritten between two looks; where the next packet "
                   "begins is not known, the rest of this look is left out"]


def test_aql_packets_are_taken_when_they_are_valid(tmp_path: Path) -> None:
  """A place is taken first; and the engine takes headers of what it has read."""
  found, notes, _ = sniffed(tmp_path, "half_written")
  assert [type(p).__name__ for s in found for p in told(s)] == [
    "hsa_barrier_and_packet_t", "hsa_barrier_or_packet_t", "NoneType"]
  assert len(notes) == 2 and "the engine had taken the headers" in notes[1], notes


def test_a_write_pointer_that_is_not_mapped_is_told(tmp_path: Path) -> None:
  found, notes, _ = sniffed(tmp_path, "unseen")
  assert not found and notes == ["its write pointer is not in memory that the program has mapped: submissions are not "
                                 "seen"]


def test_pushbuffers_are_followed_and_a_round_of_the_ring_is_noticed(tmp_path: Path) -> None:
  """GP_PUT counts within the ring: after a whole round it is the same."""
  found, notes, _ = sniffed(tmp_path, "pushed")
  for n, step in enumerate(found[:3]):
    entry, sent = told(step)
    assert isinstance(entry, gpfifo.Segment) and isinstance(sent, methods.Send)
    assert [value for _, value in sent.writes()] == [0x100 + n]
  round_ = [p for p in told(found[3]) if isinstance(p, gpfifo.Segment)]
  assert len(found) == 4 and len(round_) == 7
  assert notes == ["1 of 8 entries of the ring from 3 on were overwritten between two looks"]
