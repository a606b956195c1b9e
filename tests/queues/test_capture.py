"""What a recorded program submitted is on file, decodes to named packets, and its words are all there."""
from __future__ import annotations

import random
import signal
import subprocess
import sys
from copy import deepcopy
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests import command
from tests.queues.conftest import MACHINES, record
from tinyhw.core.errors import DecodeError, Error
from tinyhw.drive.amd.device import AMDRuntime
from tinyhw.drive.amd.kfd import Domain
from tinyhw.drive.base import Allocation
from tinyhw.mock.amd.machine import Machine
from tinyhw.mock.amd.port import MockPort
from tinyhw.queues import submitted
from tinyhw.queues.amd.world import AmdWorld
from tinyhw.queues.capture import Capture, Step
from tinyhw.queues.container import MAGIC, Reader, Writer, content_hash
from tinyhw.queues.effects import Does
from tinyhw.queues.events import KINDS, Doorbell, parsed
from tinyhw.queues.lint import lint
from tinyhw.queues.looked import Looks
from tinyhw.queues.plans import KnownSubmission, sets, stamped, watched
from tinyhw.queues.record import Recorder
from tinyhw.queues.world import PAGE, World


def submissions(path: Path) -> list[Step]:
  return [step for step in Capture(path) if step.follow is not None]


def test_each_word_of_a_ring_is_some_packets(captured: Path) -> None:
  found = submissions(captured)
  assert len(found) >= 5
  for step in found:
    assert isinstance(step.event, Doorbell) and step.follow is not None
    assert not [i.error for i in step.follow.items if i.packet is None]
    ring = b"".join(data for _, data in step.event.ring)
    inside = b"".join(w.to_bytes(4, "little") for i in step.follow.items if i.depth == 0 for w in i.words)
    assert ring == inside and ring


def test_launches_have_their_kernels_names_and_sizes(captured: Path) -> None:
  capture = Capture(captured)
  launches = [(step.event.vendor, l) for step in capture if step.follow is not None for l in step.follow.launches]
  assert len(launches) >= 3
  for vendor, launch in launches:
    assert (vendor, launch.entry) in capture.kernels
    assert min(*launch.grid, *launch.block) >= 1 and launch.arguments


def test_every_wait_of_a_queue_has_its_signal(captured: Path) -> None:
  """The drivers' timeline, seen from outside: each value that is waited for was signalled by an earlier submission."""
  signalled: dict[int, int] = {}
  for step in submissions(captured):
    assert step.follow is not None
    for effect in (e for i in step.follow.items for e in i.effects):
      if effect.does is Does.WAIT: assert effect.met(signalled.get(effect.address, 0))
      elif effect.does is Does.SIGNAL: signalled[effect.address] = effect.value
  assert signalled


def test_memory_that_arguments_name_is_kept(captured: Path) -> None:
  """What a launch's arguments hold can be read, and the buffers that they name were looked at."""
  capture, read = Capture(captured), 0
  for step in capture:
    if step.follow is None or step.world is None: continue
    for launch in step.follow.launches:
      words = capture.memories[step.event.vendor].read(step.world, launch.arguments, 8)
      assert words is not None and len(words) == 8
      assert isinstance(step.event, Doorbell) and len(step.event.touched) >= 3
      read += 1
  assert read >= 3


@pytest.mark.parametrize("device", MACHINES)
def test_a_killed_program_leaves_all_up_to_its_last_doorbell(device: str, tmp_path: Path) -> None:
  path = tmp_path / "killed.thq"
  program = """
import os, signal
from tinyhw import Device, Tensor
ports = {"AMD": Device.amd_port, "NV": Device.nv_port}
(Tensor([1.0, 2.0]) + 1).tolist()
port = ports[os.environ["DEV"]]()
rung, inner = 0, port.inner.doorbell
def doorbell(*given):
  global rung
  rung += 1
  if rung == 3: os.kill(os.getpid(), signal.SIGKILL)
  inner(*given)
port.inner.doorbell = doorbell
for _ in range(9): (Tensor([1.0, 2.0]) + 1).tolist()
"""
  done = record(path, device, program)
  assert done.returncode == -signal.SIGKILL, done.stderr
  found = submissions(path)
  assert len(found) >= 4
  assert all(i.packet is not None for s in found if s.follow is not None for i in s.follow.items)


def test_a_plan_names_what_the_long_way_finds(captured: Path) -> None:
  """Submissions, and those with a word of theirs changed: what a known plan says of them is what their packets say, and
  two of one plan differ in no more than it allows."""
  rng, capture, known, copies = random.Random(1), Capture(captured), dict[Any, Any](), False
  for step in capture:
    if step.follow is None: continue
    event, world, queue, memory = step.event, step.world, step.queue, capture.memories[step.event.vendor]
    assert isinstance(event, Doorbell) and world is not None and queue is not None
    behind = queue.state
    for n in range(24):
      words = {at: bytearray(data) for at, data in (*event.ring, *event.pieces)}
      changed = words[rng.choice(list(words))]
      at = 4 * rng.randrange(len(changed) // 4)
      if n > 1: changed[at:at + 4] = rng.choice((rng.randbytes(4), changed[at:at + 2] + rng.randbytes(2)))
      def read(address: int, size: int, words: Any = words, memory: Any = memory, world: Any = world) -> bytes | None:
        found = words.get(address)
        return memory.read(world, address, size) if found is None or len(found) < size else bytes(found[:size])
      ring, found = [(at, bytes(words[at])) for at, _ in event.ring], []
      for way in (world.submits, partial(World.submits, world)):
        queue.state = deepcopy(behind)
        found.append((way(queue, ring, read), queue.state))
      (quick, after), whole = found
      assert (quick.named() if isinstance(quick, KnownSubmission) else quick, after) == whole
      if not isinstance(quick, KnownSubmission): continue
      names, plan = quick.named(), quick.plan
      told = ([(e.does, e.address, e.size) for e in names.effects], names.launches,
              [a for a, size in names.roots if not size and a not in quick.loose], watched(names.effects))
      assert known.setdefault(plan, told) == told and plan.watched == told[-1]
      assert plan.stamped == stamped(names.effects)
      assert [(e.address, e.value) for e in names.effects if sets(e)] == [
        (address, quick.values[n] if n >= 0 else value) for address, value, n in plan.told]
      copies |= any(e.does is Does.READ for e in names.effects)
    queue.state = behind
  assert known and copies


@pytest.mark.parametrize("device", MACHINES)
def test_the_quick_way_records_what_the_long_way_does(device: str, tmp_path: Path) -> None:
  """Two recorders of the same calls, one of which knows no plan and looks at all memory each time."""
  program = f"""
from functools import partial
from tinyhw import Device, Tensor
from tinyhw.queues.record import Recorder
from tinyhw.queues.world import PAGE, World
from tinyhw.devices.captured import RECORDING, VENDORS
whole = Recorder({str(tmp_path / "whole.thq")!r}, codes=lambda vendor: RECORDING.recorder._codes(vendor))
wrap = RECORDING.wrap
def twice(kind, port, machine, runtimes):
  port, vendor = wrap(kind, port, machine, runtimes), VENDORS[kind]
  world = whole.world(vendor)
  world.submits = partial(World.submits, world)
  return whole.port(port, vendor, machine.look)
RECORDING.wrap = twice
a, b = Tensor.rand(64, 300), Tensor.rand(300, 40)
written = 0
for _ in range(6):
  a = ((a @ b).relu().sum(0, keepdim=True) + a[:, :40]).sum(1, keepdim=True).expand(64, 300).realize()
  for made in whole.world("{device.lower()}").living():  # the host writes behind what kernels use of their buffers
    looked = RECORDING.recorder._of["{device.lower()}"].looks.known.get(made.key)
    if not made.host or looked is None or len(looked.known) * looked.step < made.size or looked.view[-1]: continue
    looked.view[-1], written = 7, written + 1
assert written
assert a.sum().item() > 0
assert RECORDING.recorder._of["{device.lower()}"].reaches and not whole._of["{device.lower()}"].reaches
RECORDING.end()
whole.close()
"""
  done = record(tmp_path / "quick.thq", device, program)
  assert done.returncode == 0, done.stderr
  quick, whole = ([(row[0], *(row[2:-1] if row[0] == "waited" else row[2:]))  # all but times
                   for row in Reader(tmp_path / name).events()] for name in ("quick.thq", "whole.thq"))
  assert quick == whole and len(quick) > 40


def test_events_survive_the_file(tmp_path: Path) -> None:
  """Every kind of event, with every field other than its default."""
  values = {"int": 7, "str": "x", "bytes": b"y", "bool": True, "Chunks": [[1, 2, 3, b"h"]], "Pieces": [[4, b"z"]],
            "list[int]": [5], "Words": [[6, 8, 9]], "Names": [["k", 1, 2]], "Pairs": [[3, 4]]}
  made = []
  for cls in KINDS.values():
    names = {f.name: str(f.type) for f in cls.__dataclass_fields__.values() if f.name != "TAG"}
    made.append(cls(**{name: values[kind] for name, kind in names.items() if kind in values}))
  writer = Writer(tmp_path / "x.thq", {"program": []})
  for event in made: writer.event(event.row())
  writer.close()
  assert list(parsed(Reader(tmp_path / "x.thq").events())) == made


def test_a_content_is_stored_once(tmp_path: Path) -> None:
  writer = Writer(tmp_path / "x.thq", {})
  content = random.Random(1).randbytes(9000)
  for _ in range(3): writer.blob(content, content_hash(content))
  writer.close()
  assert writer.bytes_stored < 9500
  assert Reader(tmp_path / "x.thq").blob(content_hash(content)) == content


def test_a_page_is_stored_by_its_changes(tmp_path: Path) -> None:
  """What is written further and further into a page, and over it again, as often as it likes."""
  rng, page = np.random.default_rng(2), np.zeros(PAGE, np.uint8)
  world, writer = AmdWorld(), Writer(tmp_path / "x.thq", {})
  made, looks, told = world._add(0x10000, 4 * PAGE, "GTT", 0, 1, 0), Looks(world, writer), dict[bytes, bytes]()
  made.host, memory = 0x20000, memoryview(bytearray(4 * PAGE))
  looks.port = SimpleNamespace(memory=lambda address, size: memory)  # type: ignore[assignment]
  for n in range(90):
    at = 96 * n % (PAGE - 96)
    page[at:at + 96] = rng.integers(0, 256, 96)
    if n % 30 == 29: page[(at + 200) % PAGE] ^= 1  # by somebody else
    memory[PAGE:2 * PAGE] = page.data
    written = PAGE + at, PAGE + at + 96
    (_, first, size, name), = looks.part(made, looks.at(made), *written, None, True, written)
    told[name] = bytes(memory[first:first + size])
    assert not looks.part(made, looks.at(made), PAGE, 2 * PAGE, None, True)
  writer.close()
  reader = Reader(tmp_path / "x.thq")
  assert all(reader.blob(name) == content for name, content in random.Random(1).sample([*told.items()], len(told)))
  assert len(told) == 90 and writer.bytes_stored < 6 * PAGE + 90 * 200


@pytest.mark.parametrize("base, at, refused", [(b"none", 0, "change of nothing"), (b"same", 0, "change of nothing"),
                                               (b"page", 4090, "behind the end")])
def test_a_change_of_what_is_not_there_is_told(base: bytes, at: int, refused: str, tmp_path: Path) -> None:
  writer = Writer(tmp_path / "x.thq", {})
  writer.blob(bytes(PAGE), b"page" * 4)
  writer.change(b"same" * 4, base * 4, at, b"changed")
  writer.close()
  with pytest.raises(DecodeError, match=refused): Reader(tmp_path / "x.thq").blob(b"same" * 4)


def test_cut_anywhere_it_reads_or_says_so(captured: Path, tmp_path: Path) -> None:
  whole, rng = captured.read_bytes(), random.Random(3)
  for size in [0, 1, len(MAGIC), len(MAGIC) + 5, *(rng.randrange(len(whole)) for _ in range(40))]:
    path = tmp_path / "cut.thq"
    path.write_bytes(whole[:size])
    try: list(Capture(path))
    except Error as error: assert str(path) in str(error) or "capture" in str(error)


def test_damaged_anywhere_it_reads_or_says_so(captured: Path, tmp_path: Path) -> None:
  whole, rng = captured.read_bytes(), random.Random(4)
  for _ in range(60):
    data = bytearray(whole)
    for _ in range(rng.randrange(1, 4)): data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path = tmp_path / "bad.thq"
    path.write_bytes(data)
    try: list(Capture(path))
    except Error: pass


def test_a_newer_capture_says_what_reads_it(tmp_path: Path) -> None:
  Writer(tmp_path / "new.thq", {"format": 99}).close()
  with pytest.raises(DecodeError, match="format 99.*newer tinyhw"): Capture(tmp_path / "new.thq")


@pytest.mark.parametrize("vendor, submissions, launched", [("amd", 2, "r_3"), ("nv", 7, "r_3")])
def test_captures_of_an_older_format_open(vendor: str, submissions: int, launched: str) -> None:
  """Format 1: `(Tensor([1.0, 2.0, 3.0]) + 1).sum().item()` on a mock card, as tinyhw recorded it then."""
  capture = Capture(Path(__file__).parents[1] / "recordings" / f"queues_format1_{vendor}.thq")
  assert capture.head["format"] == 1
  steps = [s for s in capture if s.follow is not None]
  assert len(steps) == submissions and all(i.packet is not None for s in steps if s.follow for i in s.follow.items)
  assert [k.name.startswith(launched) for k in capture.kernels.values()] == [True]
  assert not lint(capture)


def test_the_command_records_and_decodes(tmp_path: Path) -> None:
  path = tmp_path / "run.thq"
  def tinyhw(*arguments: str) -> subprocess.CompletedProcess[str]:
    return command.tinyhw(*arguments, cwd=tmp_path)
  program = "from tinyhw import Tensor; (Tensor([1.0]) + 1).tolist()"
  done = tinyhw("record", "-o", str(path), "--mockgpu", "gfx1100", "--", sys.executable, "-c", program)
  assert done.returncode == 0 and "1 launches" in done.stderr, done.stderr
  shown = tinyhw("decode", str(path), "--dispatch", "0")
  assert shown.returncode == 0 and "DISPATCH_DIRECT" in shown.stdout and "COMPUTE_PGM_LO" in shown.stdout
  none = tinyhw("record", "-o", str(path), "--mockgpu", "gfx1100", "--", sys.executable, "-c", "pass")
  assert none.returncode == 1 and "opened no device" in none.stderr and not path.exists()


def test_a_recorder_stays_as_large_as_it_was(tmp_path: Path) -> None:
  """What it knows of memory goes with the memory, of signals with those behind them, whatever has lived."""
  machine = Machine("gfx1100", seed=1)
  recorder = Recorder(tmp_path / "run.thq")
  runtime = AMDRuntime(recorder.port(MockPort(machine), "amd", machine.look, machine.still), 0, timeout_s=5)
  world, data = recorder.world("amd"), np.arange(1 << 18, dtype=np.uint32)
  def kept() -> tuple[int, ...]:
    of = recorder._of["amd"]
    return len(of.looks.known), sum(map(len, of.values.values())), len(of.pending), len(world._hosts)
  def rounds(count: int) -> tuple[int, ...]:
    for _ in range(count):
      buffer = runtime.kfd.alloc(runtime.gpu, data.nbytes, Domain.VRAM)
      runtime.copyin(Allocation(buffer.address, buffer.size), memoryview(data).cast("B"))
      runtime.synchronize()
      runtime.kfd.free(buffer)
    return kept()
  before, lived = rounds(4), len(world.allocations)
  assert rounds(40) == before and len(world.allocations) >= lived + 40
  runtime.close()
  recorder.close()
  machine.close()


def test_a_recorder_keeps_no_more_where_nobody_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  """Submissions that have ended are forgotten, what they left behind is looked at when the program waits at last; those
  whose signals nobody sees are forgotten too."""
  monkeypatch.setattr(submitted, "PENDING", 16)
  machine = Machine("gfx1100", seed=1)
  recorder = Recorder(tmp_path / "run.thq")
  runtime = AMDRuntime(recorder.port(MockPort(machine), "amd", machine.look, machine.still), 0, timeout_s=5)
  data = np.arange(1 << 10, dtype=np.uint32)
  buffer = runtime.kfd.alloc(runtime.gpu, data.nbytes, Domain.VRAM)
  target = Allocation(buffer.address, buffer.size)
  of = recorder._of["amd"]
  monkeypatch.setattr(recorder, "seen", lambda vendor: None)  # a program that polls tells nobody
  for hidden in (False, True):
    if hidden: monkeypatch.setattr(of.looks, "number", lambda place: None)
    first = recorder.submissions
    for n in range(40): runtime.copyin(target, memoryview(data + n).cast("B"))
    assert recorder.submissions >= first + 40
    assert len(of.pending) <= 16 and sum(map(len, of.values.values())) <= 2 * 16
    assert hidden or len(of.ended.whole) + len(of.ended.ranges) > 0
  monkeypatch.undo()
  runtime.synchronize()
  recorder.seen("amd")
  assert not of.ended.whole and not of.ended.ranges
  runtime.close()
  recorder.close()
  machine.close()
