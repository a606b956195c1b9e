"""The smallest stream that still shows it: delta debugging, cutting of captures, predicates, and the command."""
from __future__ import annotations

import json
import runpy
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.command import tinyhw
from tests.queues.conftest import MACHINES, record
from tests.queues.planted import Stream
from tests.queues.planted_aql import BUGS
from tests.queues.planted_bugs import argument_at
from tests.strength import examples
from tinyhw.autogen import hsa, kfd, pm4_gfx11
from tinyhw.cli.bisect import command
from tinyhw.cli.trials import MockBench, Script
from tinyhw.core.errors import Error, InvalidArgument
from tinyhw.queues import ddmin
from tinyhw.queues.capture import Capture
from tinyhw.queues.draft import Choice, Draft, saved
from tinyhw.queues.effects import Does
from tinyhw.queues.events import Doorbell, Event, Ioctl, Seen
from tinyhw.queues.reproduce import written
from tinyhw.queues.shown import Differs, Fault, Hang, Left, Place, Rule, Trial, by_itself, predicate
from tinyhw.queues.shrink import Shrinker
from tinyhw.wire import pm4

TINY = """
from tinyhw import Tensor
a = (Tensor([1.0, 2.0, 3.0]) + 1).realize()
assert (a * 2).tolist() == [4.0, 6.0, 8.0]
"""


@pytest.fixture(scope="session", params=MACHINES)
def tiny(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
  """A capture of two kernels on one vendor's mock."""
  path = tmp_path_factory.mktemp("tiny") / f"{request.param}.thq"
  done = record(path, request.param, TINY)
  assert done.returncode == 0, done.stderr
  return path


# ---- delta debugging itself

@given(count=st.integers(1, 200), needed=st.sets(st.integers(0, 199), min_size=1, max_size=6))
@settings(max_examples=examples(60), deadline=None)
def test_what_is_needed_is_all_that_remains(count: int, needed: set[int]) -> None:
  wanted, asked = {n % count for n in needed}, list[list[int]]()
  def shows(part: list[int]) -> bool:
    asked.append(part)
    return wanted <= set(part)
  assert ddmin.minimal(range(count), shows) == sorted(wanted)
  assert len(asked) <= 6 * len(wanted) * (count.bit_length() + 2) + 2


@given(count=st.integers(1, 24), salt=st.integers(0, 2**32), one_in=st.integers(2, 6))
@settings(max_examples=examples(100), deadline=None)
def test_any_predicate_gives_what_has_nothing_to_spare(count: int, salt: int, one_in: int) -> None:
  """Predicates that are not monotone: the result shows, and without any one of its elements it does not."""
  whole = list(range(count))
  def shows(part: list[int]) -> bool: return part == whole or hash((salt, *part)) % one_in == 0
  found = ddmin.minimal(whole, shows)
  assert shows(found) and sorted(set(found)) == found
  if found == [] or len(found) == 1: return
  assert not any(shows(found[:i] + found[i + 1:]) for i in range(len(found)))


@given(count=st.integers(1, 5000), at=st.integers(0, 4999))
def test_bisection_finds_the_first(count: int, at: int) -> None:
  asked = list[int]()
  def shows(k: int) -> bool:
    asked.append(k)
    return k >= at % count
  assert ddmin.first(count, shows) == at % count and len(asked) <= 13


# ---- cutting

def test_nothing_left_out_is_the_same_capture(tiny: Path) -> None:
  capture = Capture(tiny)
  draft = Draft(capture)
  assert list(draft.capture(Choice()).reader.events()) == list(capture.reader.events())


def test_cut_packets_leave_streams_of_packets(tiny: Path, tmp_path: Path) -> None:
  """Each packet by itself, then every second: what remains decodes, in the same order, and numbers go on."""
  draft = Draft(Capture(tiny))
  packets = draft.packets()
  kinds = {p: type(i.packet) for p, i in draft.items()}
  for gone in ({packets[0]}, {packets[len(packets) // 2]}, set(packets[::2])):
    capture = draft.capture(Choice(packets=frozenset(gone)))
    at: dict[int, int] = {}
    for step in capture:
      if step.follow is None: continue
      assert isinstance(step.event, Doorbell) and not [i for i in step.follow.items if i.error]
      assert step.event.first == at.get(step.event.queue, 0)
      at[step.event.queue] = step.event.last
    left = [type(i.packet) for s in capture if s.follow is not None for i in s.follow.items]
    assert len(left) < len(kinds)
    if vendor_of(tiny) == "AMD": assert left == [kinds[p] for p in packets if p not in gone]
    saved(capture, tmp_path / "cut.thq")
    assert list(Capture(tmp_path / "cut.thq").reader.events()) == list(capture.reader.events())


def test_calls_that_are_left_out_are_not_counted(tiny: Path) -> None:
  """Numbers of memory and queues follow what is left of the calls that make them."""
  capture = Capture(tiny)
  draft = Draft(capture)
  makes = [n for n, (_, memory, _) in draft._makes.items() if memory]
  named = {row[0] for e in draft.events if isinstance(e, Doorbell | Seen) for row in e.memory}
  last = makes[-1]
  smaller = draft.capture(Choice(events=frozenset({makes[0]})))
  list(smaller)
  (world,) = smaller.worlds.values()
  assert len(world.allocations) == sum(m for _, m, _ in draft._makes.values()) - draft._makes[makes[0]][1]
  rows = [row for e in smaller.reader.events() if e[0] == "doorbell" for row in Doorbell.from_row(e[1:]).memory]
  assert last and named and all(row[0] < len(world.allocations) for row in rows)


def prefix(path: Path, queue_type: int | None = None) -> list[Event]:
  """The calls of an AMD capture before its first doorbell, whose first queue is of another kind if one is given."""
  events: list[Event] = []
  for event in Draft(Capture(path)).events:
    if isinstance(event, Doorbell): break
    if queue_type is not None and isinstance(event, Ioctl) and event.request == kfd.AMDKFD_IOC_CREATE_QUEUE:
      for name in ("before", "after"):
        a: Any = kfd.kfd_ioctl_create_queue_args.from_buffer_copy(getattr(event, name))
        if a.queue_type == kfd.KFD_IOC_QUEUE_TYPE_COMPUTE: a.queue_type = queue_type
        setattr(event, name, bytes(a))
    events.append(event)
  return events


def stream_of(events: list[Event], bell: Doorbell, path: Path, base: Path) -> Path:
  """A capture of calls and one doorbell."""
  draft = Draft(Capture(base))
  draft.events, draft.submissions, draft._makes = [*events, bell], {}, {}
  made = draft.capture(Choice())
  saved(made, path)
  return path


@pytest.fixture
def amd(unbroken: dict[str, Path]) -> Path: return unbroken["AMD"]


def first_bell(path: Path) -> tuple[Doorbell, Any]:
  """The first doorbell of an AMD capture's compute queue, and the world then."""
  for step in Capture(path):
    if step.queue is not None and step.queue.key == 0 and isinstance(step.event, Doorbell): return step.event, step
  raise AssertionError("no doorbell")


def words_of(words: list[int]) -> bytes: return b"".join(w.to_bytes(4, "little") for w in words)


def test_an_indirect_buffer_becomes_shorter(amd: Path, tmp_path: Path) -> None:
  """200 packets in an indirect buffer, one of which waits at an address that nobody has."""
  bell, step = first_bell(amd)
  made = next(a for a in step.world.living() if a.kind == "GTT" and a.size >= 1 << 16 and a.host and not a.label)
  wait = pm4_gfx11.WAIT_REG_MEM(function=3, mem_space=1, mem_poll_addr=0x5000_0000_0000, reference=1, mask=1)
  inner = [pm4_gfx11.NOP(payload=(n, n)) for n in range(200)]
  words = pm4.stream([*inner[:120], wait, *inner[120:]])
  ring = pm4.encode(pm4_gfx11.INDIRECT_BUFFER(ib_base=made.address, ib_size=len(words), valid=1))
  event = replace(bell, first=0, last=len(ring), value=len(ring), ring=[[step.queue.ring, words_of(ring)]],
                  pieces=[[made.address, words_of(words)]], memory=[], pointers=[0, len(ring)])
  path = stream_of(prefix(amd), event, tmp_path / "ib.thq", amd)
  shrinker = shrink(path, Fault())
  assert shrinker.before.packets == 202 and shrinker.size().packets == 2 and shrinker.trials < 400
  (follow,) = [s.follow for s in shrinker.result() if s.follow is not None]
  call, inside = follow.items
  assert call.packet.ib_size == len(pm4.encode(wait)) and isinstance(inside.packet, pm4_gfx11.WAIT_REG_MEM)


def test_aql_packets_are_cut(amd: Path, tmp_path: Path) -> None:
  """Barriers, and one dispatch whose kernel object is at an address that nobody has."""
  bell, step = first_bell(amd)
  kinds = hsa.HSA_PACKET_TYPE_BARRIER_AND, hsa.HSA_PACKET_TYPE_KERNEL_DISPATCH
  barrier, dispatch = hsa.hsa_barrier_and_packet_t(), hsa.hsa_kernel_dispatch_packet_t()
  barrier.header, dispatch.header = (k << hsa.HSA_PACKET_HEADER_TYPE for k in kinds)
  dispatch.setup, dispatch.kernel_object = 3, 0x5000_0000_0000
  for n in "xyz":
    setattr(dispatch, f"workgroup_size_{n}", 1)
    setattr(dispatch, f"grid_size_{n}", 40)
  ring = bytes(barrier) * 20 + bytes(dispatch) + bytes(barrier) * 11
  event = replace(bell, first=0, last=32, value=31, ring=[[step.queue.ring, ring]], pieces=[], memory=[],
                  pointers=[0, 32])
  path = stream_of(prefix(amd, kfd.KFD_IOC_QUEUE_TYPE_COMPUTE_AQL), event, tmp_path / "aql.thq", amd)
  shrinker = shrink(path, Fault())
  assert shrinker.before.packets == 32 and shrinker.size().packets == 1
  (last,) = [s for s in shrinker.result() if s.follow is not None]
  assert isinstance(last.event, Doorbell) and (last.event.last, last.event.value) == (1, 0)
  assert last.follow is not None
  packet = last.follow.items[0].packet
  assert packet.kernel_object == 0x5000_0000_0000 and packet.grid_size_x <= 1


# ---- bugs that were put in, in the small program of conftest

def shrink(path: Path, wanted: Any = None, **more: Any) -> Shrinker:
  capture = Capture(path)
  bench = MockBench(capture, None)
  wanted = wanted or by_itself(Trial(capture, bench))
  assert wanted is not None and not isinstance(wanted, Differs)
  shrinker = Shrinker(capture, wanted, bench, **more)
  shrinker.check()
  shrinker.bisect()
  shrinker.shrink()
  return shrinker


def minimal_over_packets(shrinker: Shrinker) -> bool:
  """Without any one of its packets it no longer shows: each is tried."""
  draft = Draft(shrinker.result())
  bench = MockBench(draft.base, None)
  def shows(choice: Choice) -> bool:
    trial = Trial(draft.capture(choice), bench, shrinker.predicate.places)
    return shrinker.predicate.shown(trial, shrinker.wanted) is not None
  return shows(Choice()) and not any(shows(Choice(packets=frozenset({p}))) for p in draft.packets())


def vendor_of(path: Path) -> str: return path.stem


def null_output(tiny: Path, tmp_path: Path) -> Path:
  stream = Stream(tiny)
  stream.argument(stream.launch(0), argument_at(vendor_of(tiny)), bytes(8))
  return stream.save(tmp_path / f"null-{tiny.stem}.thq")


def test_a_fault_keeps_what_makes_it(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
  """The kernel's code is copied, its registers or its QMD set, it is launched: no more, and no less."""
  path = null_output(tiny, tmp_path)
  shrinker = shrink(path, trials=80)
  assert isinstance(shrinker.predicate, Fault) and minimal_over_packets(shrinker)
  after = shrinker.size()
  assert after.submissions <= 3 and after.packets <= 10 and after.calls < shrinker.before.calls
  assert len([l for s in shrinker.result() if s.follow is not None for l in s.follow.launches]) == 1
  reproducer = tmp_path / "reproducer.py"
  reproducer.write_text(written(shrinker.result(), "a null output", "fault", shrinker.wanted))
  runpy.run_path(str(reproducer))
  told = capsys.readouterr().out
  assert told.startswith("fault: ") and "0x0" in told
  text = reproducer.read_text()
  assert (".kind pm4" in text or ".kind qmd" in text) and "content_0" in text
  gone = text.replace("'PageFault'", "'OtherFault'")
  reproducer.write_text(gone)
  with pytest.raises(SystemExit) as status: runpy.run_path(str(reproducer))
  assert status.value.code == 1 and capsys.readouterr().err == "does not show it any more: fault\n"


@pytest.mark.parametrize(("vendor", "name"), [
  ("AMD", "two queues wait for each other"), ("NV", "memory is given back while a kernel uses it"),
  ("AMD", "a copy does not wait for the kernel that makes its source")])
def test_a_planted_bug_shrinks(vendor: str, name: str, unbroken: dict[str, Path], tmp_path: Path) -> None:
  """A circle keeps its two queues; a race its two accesses; memory in use its launch and the call that frees it."""
  stream = Stream(unbroken[vendor])
  bug = next(b for b in BUGS if (b.vendor, b.name) == (vendor, name))
  bug.edit(stream)
  path = stream.save(tmp_path / "bug.thq")
  static = "circle" if "each other" in name else bug.rules[0]
  if static == "circle":
    shrinker = Shrinker(Capture(path), Hang(), MockBench(Capture(path), None), trials=60)
    assert shrinker.check().signature[0] == "circle"
    shrinker.bisect()
    shrinker.shrink()
    assert shrinker.size().submissions == 2
    return
  shrinker = shrink(path, Rule(static))
  after = shrinker.size()
  assert after.submissions <= 3 and after.packets <= 10 and minimal_over_packets(shrinker)


def test_a_ring_that_goes_round_is_kept_as_it_is(unbroken: dict[str, Path], tmp_path: Path) -> None:
  """What no doorbell tells of lies between two submissions, in what is cut too."""
  stream = Stream(unbroken["AMD"])
  next(b for b in BUGS if b.name == "a doorbell goes round the ring").edit(stream)
  capture = Capture(stream.save(tmp_path / "bug.thq"))
  shrinker = Shrinker(capture, Rule("ring-overrun"), MockBench(capture, None), trials=4)
  assert shrinker.check().signature


def test_words_that_are_not_all_known_stay_as_they_are(unbroken: dict[str, Path], tmp_path: Path) -> None:
  """An entry tells of a dword more than was recorded: the piece is kept, and the entry's length."""
  stream = Stream(unbroken["NV"])
  found = next(b for b in BUGS if b.name == "a GPFIFO entry is one dword too long").edit(stream)
  capture = Capture(stream.save(tmp_path / "bug.thq"))
  shrinker = Shrinker(capture, Fault(), MockBench(capture, None), trials=4)
  assert shrinker.check().signature
  entry, = [e for s in shrinker.result() if s.submission == found.step.submission and isinstance(s.event, Doorbell)
            for e in [s.event]]
  assert len(entry.pieces) == 1 and entry.ring == stream.bell(found.event).ring


def test_wrong_memory_leads_to_what_writes_it(tiny: Path, tmp_path: Path) -> None:
  """A kernel takes its output for its input: the first buffer that differs from what was seen."""
  stream, first = Stream(tiny), argument_at(vendor_of(tiny))
  launch = stream.launch(0)
  key, at, _ = stream.uses[id(launch.launch)]
  stream.argument(launch, first + 8, stream.capture_bytes(launch, key, at + first, 8))
  path = stream.save(tmp_path / "other.thq")
  capture = Capture(path)
  bench = MockBench(capture, None)
  trial = Trial(capture, bench)
  left = Differs().found(trial)
  assert left is not None and left.submission >= 0 and "differ" in left.text
  assert Differs(left.place.address).found(trial) is not None and Differs(0x1000).found(trial) is None


def test_bytes_lead_to_what_leaves_them(tiny: Path) -> None:
  """Where a result comes from: 2, 3, 4 as floats are left by one kernel of its inputs."""
  capture = Capture(tiny)
  bench = MockBench(capture, None)
  stream = Stream(tiny)
  address = stream.pointers[id(stream.launch(0).launch)][0]
  vendor = stream.launch(0).step.event.vendor
  wanted = Left(Place(vendor, address, 4))
  shrinker = Shrinker(capture, wanted, bench, trials=80)
  assert shrinker.check().signature == (b"\0\0\0\x40".hex(),)  # 2.0
  found = shrinker.bisect()
  assert found.submission == stream.launch(0).step.submission


# ---- the command

def bisect(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
  return tinyhw("bisect", *arguments, cwd=cwd)


def test_the_command_writes_three_files(tiny: Path, tmp_path: Path) -> None:
  path = null_output(tiny, tmp_path)
  done = CliRunner().invoke(command, [str(path), "--json", "-o", str(tmp_path / "small"), "--trials", "40"])
  assert done.exit_code == 0, done.exception
  row = json.loads(done.output)
  assert row["until"] == "fault" and row["trials"] <= 40 and not row["whole"]
  assert row["after"]["submissions"] < row["before"]["submissions"]
  assert [Path(f).name for f in row["files"]] == ["small.thq", "small.txt", "small.py"]
  text = (tmp_path / "small.txt").read_text()
  assert "not the smallest: the search has cost what it may" in text and "what remains:" in text
  assert "calls that it needs:" in text and f"first shown by submission {row['first']['submission']}" in text
  capture = Capture(tmp_path / "small.thq")
  assert Fault().shown(Trial(capture, MockBench(capture, None))) is not None


def test_a_script_is_asked(unbroken: dict[str, Path], tmp_path: Path) -> None:
  """0 says yes, 125 that it cannot be told, above 127 ends it."""
  tiny = unbroken["AMD"]
  (tmp_path / "ask.sh").write_text('grep -q "tinyhw queue capture" "$1" && exit $STATUS')
  for status, told in (("125", "does not show script"), ("130", "ended with status 130"), ("0", "")):
    done = CliRunner().invoke(command, [str(tiny), "--script", f"STATUS={status} sh {tmp_path}/ask.sh", "--first"])
    assert told in str(done.exception or "") and (done.exception is not None) == bool(told)
    if not told: assert "first shown by submission 0" in done.output
  assert Script("true").shown(Trial(Capture(tiny), MockBench(Capture(tiny), None))) is not None


def test_bad_input_gets_a_clear_line(unbroken: dict[str, Path], tmp_path: Path) -> None:
  tiny = unbroken["AMD"]
  cases: Iterator[tuple[list[str], str]] = iter((
    ([str(tiny)], "shows no fault, no hang, no finding"), ([str(tiny), "--until", "fault"], "does not show fault"),
    ([str(tiny), "--until", "finding:nonsense"], "no rule is called"),
    ([str(tiny), "--until", "left:here"], "is no number and no address"),
    ([str(tiny), "--until", "noise"], "is nothing to look for"),
    ([str(tiny), "--until", "difference"], "leaves behind what the capture saw"),
    ([str(tiny), "--until", "hang", "--script", "true"], "either a script"),
    ([str(tiny), "-o", str(tiny)], "would be written over itself"),
    ([str(tiny), "-o", str(tmp_path / "no" / "x")], "there is no such folder")))
  for arguments, told in cases:
    with pytest.raises(Error) as error: command.main(arguments, standalone_mode=False)
    assert told in str(error.value).splitlines()[0], arguments
  done = bisect(str(tiny), "--until", "noise", cwd=tmp_path)
  assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and "is nothing to look for" in done.stderr


def test_who_shows_it_once_is_told(tiny: Path) -> None:
  class Once(Fault):
    turn = [0]
    def shown(self, trial: Trial, wanted: Any = None) -> Any:
      self.turn[0] += 1
      return Rule().shown(trial) if self.turn[0] % 2 else None
  capture = Capture(tiny)
  shrinker = Shrinker(capture, Once(), MockBench(capture, None))
  with pytest.raises(InvalidArgument): shrinker.check()


def test_a_search_may_cost_too_much_at_once(tiny: Path, tmp_path: Path) -> None:
  done = CliRunner().invoke(command, [str(null_output(tiny, tmp_path)), "--until", "fault", "--trials", "3", "--first"])
  assert done.exit_code == 0 and "or an earlier one: the search has cost what it may" in done.output, done.exception


def test_interrupting_keeps_the_best(tiny: Path, tmp_path: Path) -> None:
  told = [0]
  def tell(stage: str, left: int, trials: int) -> None:
    told[0] += 1
    if stage == "packets" and told[0] > 3: raise KeyboardInterrupt
  shrinker = shrink(null_output(tiny, tmp_path), Fault(), tell=tell)
  assert shrinker.stopped == "the search was interrupted" and shrinker.size().submissions < shrinker.before.submissions
  trial = Trial(shrinker.result(), MockBench(shrinker.result(), None))
  assert shrinker.predicate.shown(trial, shrinker.wanted) is not None


def test_what_is_looked_for_is_read() -> None:
  assert predicate("hang", "amd") == Hang() and predicate("finding race", "amd") == Rule("race")
  assert predicate("wrong:0x1000", "nv") == Differs(0x1000)
  assert predicate("left:0x1000:8", "nv") == Left(Place("nv", 0x1000, 8))
  assert Does.LAUNCH.value == "launches"
