"""Rings of programs that know nothing of tinyhw, looked at while they run (`standin` has the programs)."""
from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.queues import standin
from tinyhw.autogen import hsa, kfd
from tinyhw.autogen import pm4_gfx11 as pm4
from tinyhw.core.errors import Unsupported
from tinyhw.queues.amd.world import AmdWorld
from tinyhw.queues.capture import Capture, Step
from tinyhw.queues.doctor import UNKNOWN, examine
from tinyhw.queues.events import Doorbell, Ioctl, Note
from tinyhw.queues.record import Recorder
from tinyhw.queues.rings import Rings
from tinyhw.wire import gpfifo, methods

if sys.platform != "linux" or platform.machine() != "x86_64": pytest.skip("x86-64 Linux alone", allow_module_level=True)


BASE, SIZE = 0x7000_0000_0000, 4096


def sniffed(folder: Path, vendor: str) -> tuple[list[Step], list[str], Capture]:
  """The submissions of a program, and what its capture says that it lacks."""
  done = subprocess.run([sys.executable, "-m", "tests.queues.standin", str(folder / "run.thq"), vendor],
                        capture_output=True, text=True)
  assert done.returncode == 0, done.stderr
  capture = Capture(folder / "run.thq")
  steps = list(capture)
  notes = [s.event.text for s in steps if isinstance(s.event, Note)]
  found = [s for s in steps if s.follow is not None]
  assert done.stdout == f"{len(found)}\n"
  return found, notes, capture


@pytest.fixture(scope="module")
def amd(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Step], list[str], Capture]:
  return sniffed(tmp_path_factory.mktemp("amd"), "amd")


def of(amd: tuple[list[Step], list[str], Capture], queue: int) -> tuple[list[Step], list[str]]:
  """The submissions of a queue, and the notes about it."""
  found, notes, capture = amd
  name = capture.worlds["amd"].queues[queue].name
  return ([s for s in found if s.queue is not None and s.queue.key == queue],
          [text for who, _, text in (n.partition(": ") for n in notes) if who == name])


class Process:
  """A process of one AQL ring of four packets, in this one: what is at an address, and what happens at a read."""

  def __init__(self, recorder: Recorder) -> None:
    self.data, self.recorder = bytearray(SIZE), recorder
    self.at_read: Callable[[int], None] = lambda address: None
    made = kfd.kfd_ioctl_alloc_memory_of_gpu_args(va_addr=BASE, size=SIZE, handle=1, mmap_offset=BASE,
                                                  flags=kfd.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR)
    queue = kfd.kfd_ioctl_create_queue_args(ring_base_address=BASE, ring_size=256, write_pointer_address=BASE + 1024,
                                            read_pointer_address=BASE + 2048, queue_id=5,
                                            queue_type=kfd.KFD_IOC_QUEUE_TYPE_COMPUTE_AQL)
    recorder.world("amd")
    for request, given in ((kfd.AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, made), (kfd.AMDKFD_IOC_CREATE_QUEUE, queue)):
      recorder.tell("amd", Ioctl(fd=3, request=request, before=bytes(given), after=bytes(given)))

  def read(self, address: int, size: int) -> bytes | None:
    self.at_read(address)
    return bytes(self.data[address - BASE:address - BASE + size])

  def shows(self, address: int, names: tuple[str, ...] = ("",)) -> bool: return True
  def there(self) -> bool: return True

  def put(self, index: int, completion: int = 0, depends: int = 0) -> None:
    """A barrier packet, and the write index behind it."""
    packet = hsa.hsa_barrier_and_packet_t(header=hsa.HSA_PACKET_TYPE_BARRIER_AND)
    packet.dep_signal[0].handle = depends
    packet.completion_signal.handle = completion
    self.data[index % 4 * 64:index % 4 * 64 + 64] = bytes(packet)
    self.data[1024:1032] = (index + 1).to_bytes(8, "little")


def looked(path: Path, fill: Callable[[Process, Rings], None]) -> tuple[list[Step], list[str]]:
  recorder = Recorder(path, {"sniffed": True})
  process = Process(recorder)
  rings = Rings(recorder, 1, process)
  fill(process, rings)
  recorder.close()
  steps = list(Capture(path))
  return [s for s in steps if s.follow is not None], [s.event.text for s in steps if isinstance(s.event, Note)]


def test_what_is_overwritten_while_it_is_read_is_not_taken_for_what_was_there(tmp_path: Path) -> None:
  def fill(process: Process, rings: Rings) -> None:
    for n in range(4): process.put(n, n + 1)

    def on(address: int) -> None:
      if address == BASE + 128:  # amid the look: two more, over the first two
        process.at_read = lambda address: None
        for n in range(4, 6): process.put(n, n + 1)
    process.at_read = on
    assert rings.look(("amd",)) == 1 and rings.look(("amd",)) == 1
  found, notes = looked(tmp_path / "a.thq", fill)
  packets = [p for s in found for p in told(s)]
  handles = [p.completion_signal.handle for p in packets if isinstance(p, hsa.hsa_barrier_and_packet_t)]
  assert handles == [3, 4, 5, 6]
  assert notes == ["GPU0.AQL.5: 2 of 4 entries of the ring from 0 on were overwritten between two looks"]


def test_a_submission_that_cannot_be_followed_is_told_and_the_program_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  def refuses(*given: object) -> None: raise Unsupported("packet", "of the test")
  def fill(process: Process, rings: Rings) -> None:
    process.put(0)
    with monkeypatch.context() as m:
      m.setattr(AmdWorld, "submits", refuses)
      assert rings.look(("amd",)) == 1
  found, notes = looked(tmp_path / "a.thq", fill)
  assert len(found) == 1 and len(told(found[0])) == 1
  assert notes == ["GPU0.AQL.5: a submission is not followed: unsupported packet of the test"]


def told(step: Step) -> list[object]:
  assert step.follow is not None
  return [i.packet for i in step.follow.items]


def test_submissions_are_found_between_calls_and_before_the_end(amd: tuple[list[Step], list[str], Capture]) -> None:
  found, notes = of(amd, 3)
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
  assert target is not None and amd[2].memories["amd"].versions(target), "the memory that it names is kept"


def test_what_was_overwritten_between_two_looks_is_told(amd: tuple[list[Step], list[str], Capture]) -> None:
  found, notes = of(amd, 0)
  (packet,), = map(told, found)
  assert isinstance(packet, pm4.WRITE_DATA) and packet.payload == (9,)
  assert notes == ["8 of 1032 entries of the ring from 0 on were overwritten between two looks; where the next packet "
                   "begins is not known, the rest of this look is left out"]


def test_aql_packets_are_taken_when_they_are_valid(amd: tuple[list[Step], list[str], Capture]) -> None:
  """A place is taken first; and the engine takes headers of what it has read."""
  found, notes = of(amd, 1)
  assert [type(p).__name__ for s in found for p in told(s)] == [
    "hsa_barrier_and_packet_t", "hsa_barrier_or_packet_t", "NoneType"]
  assert len(notes) == 2 and "the engine had taken the headers" in notes[1], notes


def test_a_write_pointer_that_is_not_mapped_is_told(amd: tuple[list[Step], list[str], Capture]) -> None:
  found, notes = of(amd, 2)
  assert not found and notes == ["its write pointer is not in memory that the program has mapped: submissions are not "
                                 "seen"]


def test_pushbuffers_are_followed_and_a_round_of_the_ring_is_noticed(tmp_path: Path) -> None:
  """GP_PUT counts within the ring: after a whole round it is the same."""
  found, notes, _ = sniffed(tmp_path, "nv")
  for n, step in enumerate(found[:3]):
    entry, sent = told(step)
    assert isinstance(entry, gpfifo.Segment) and isinstance(sent, methods.Send)
    assert [value for _, value in sent.writes()] == [0x100 + n]
  round_ = [p for p in told(found[3]) if isinstance(p, gpfifo.Segment)]
  assert len(found) == 4 and len(round_) == 7
  assert notes == ["GPU0.channel 0: 1 of 8 entries of the ring from 3 on were overwritten between two looks"]


def test_each_doorbell_is_a_submission(tmp_path: Path) -> None:
  """Of all threads, however fast they come; what has no doorbell is found by a look. More than the processor can watch
  are told."""
  found, notes, _ = sniffed(tmp_path, "amd_rung")
  if any("lets nobody watch stores" in n for n in notes): pytest.skip("no debug registers here")
  assert [p.payload for s in found for p in told(s) if isinstance(p, pm4.WRITE_DATA)] == [
    (n,) for n in range(standin.RUNG + 1)]
  events = [s.event for s in found if isinstance(s.event, Doorbell)]
  assert len(events) == standin.RUNG + 1 and len({e.address for e in events[:-1]}) == 1
  assert all(e.address and e.value == e.last for e in events[:-1]) and not events[-1].address
  assert [n for n in notes if "doorbells" in n] == [
    "there are more than 4 doorbells: the first are watched, others are not seen"]


def test_doorbells_of_channels_are_one_place(tmp_path: Path) -> None:
  found, notes, _ = sniffed(tmp_path, "nv_rung")
  if any("lets nobody watch stores" in n for n in notes): pytest.skip("no debug registers here")
  events = [s.event for s in found if isinstance(s.event, Doorbell)]
  assert len(events) == standin.RUNG and all(e.address and e.last == e.first + 1 for e in events) and not notes


@pytest.mark.parametrize(("depends", "value", "verdict"), [
  (BASE + 3072, 1, "GPU0.AQL.5 waits for a value that nobody writes"), (BASE + 3072, 0, "nothing stands"),
  (BASE + (1 << 20), 1, "nothing stands")], ids=["waits", "has come", "is not seen"])
def test_the_doctor_goes_by_what_signals_held(depends: int, value: int, verdict: str, tmp_path: Path) -> None:
  """Of one that the recorder does not see nobody says that a queue stands there."""
  def fill(process: Process, rings: Rings) -> None:
    process.data[3072 + 8] = 1
    process.put(0, depends=depends)
    assert rings.look(("amd",)) == 1
    process.data[3072 + 8] = value
    assert rings.look(("amd",)) == 0
  looked(tmp_path / "a.thq", fill)
  report = examine(Capture(tmp_path / "a.thq"))
  assert report.verdict == verdict and report.ill == (verdict != "nothing stands")
  assert any(head == UNKNOWN for head, _ in report.sections) == (depends >= BASE + SIZE)
