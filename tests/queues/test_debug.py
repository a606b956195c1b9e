"""The debugger of queues: every packet once, in order, on both vendors; forward and back are one."""
from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.queues import aql
from tests.queues.conftest import MACHINES, record
from tinyhw.cli import tinyhw
from tinyhw.core.errors import DeviceError, InvalidArgument
from tinyhw.queues import breaks
from tinyhw.queues.capture import Capture
from tinyhw.queues.debug import Moment, Session
from tinyhw.toolbox.debug import debug_queues, launch_at

HANG = """
from tinyhw import Device, Tensor
from tinyhw.core.errors import WaitTimeout
x = (Tensor([1.0, 2.0]) + 1).realize()
runtime = Device[Device.DEFAULT].runtime
ready = runtime.new_signal()
runtime.wait_for(ready, 3)
ready.value = 2
try: (x * 2).tolist()
except WaitTimeout: pass
"""
FAULT = """
import tinyhw
from tinyhw.core.errors import Error
ptx = '''
.version 8.0
.target sm_90
.address_size 64
.visible .entry poke(.param .u64 p) {
  .reg .u64 %a;
  .reg .u32 %v;
  ld.param.u64 %a, [p];
  mov.u32 %v, 7;
  st.global.u32 [%a], %v;
  ret;
}'''
try: tinyhw.launch(ptx.encode(), "poke", 1, 1, [0x7000_0000_0000], device="NV")
except Error: pass
"""


def where(session: Session) -> tuple[int, int, str] | None:
  """(submission, packet, text) that is next."""
  place = session.place
  return None if place is None or place.row is None else (
    place.row.submission, place.row.index, breaks.listing.packet_text(place.row.item))


def walk(session: Session) -> list[tuple[Moment, tuple[int, int, str] | None]]:
  """All moments from here to the end."""
  found = [(session.moment, where(session))]
  while not session.ended:
    session.step()
    found.append((session.moment, where(session)))
  return found


def test_each_packet_is_stood_at_once_and_in_order(captured: Path) -> None:
  wanted = []
  for step in Capture(captured):
    if step.follow is not None:
      wanted += [(r.submission, r.index) for r in breaks.rows(step.submission, step.follow.items,
                                                              step.follow.launches, 0)]
  with debug_queues(captured) as session:
    moments = walk(session)
    assert session.last.reason == "end" and not session.waiting()
  seen = [place[:2] for _, place in moments if place is not None]
  assert Counter(seen) == Counter(wanted) and seen == sorted(seen)


def test_a_moment_is_the_same_from_both_sides(captured: Path) -> None:
  with debug_queues(captured) as session:
    session.add("kernel r_*")
    assert session.run().reason == "breakpoint"
    here, at = session.moment, where(session)
    values, steps = dict(session.values()), []
    for _ in range(3):
      session.step()
      steps.append((session.moment, where(session)))
    assert session.reverse_step(3).reason == "step"
    assert (session.moment, where(session), dict(session.values())) == (here, at, values)
    assert [(session.step() and session.moment, where(session)) for _ in range(3)] == steps
    assert session.reverse_run().reason == "breakpoint" and session.moment == here
    assert session.back().reason == "step" and session.moment == Moment(here.submission, 0)
    session.back()
    assert session.moment == Moment(here.submission - 1, 0)
    assert session.reverse_step(10_000).reason == "start" and session.moment == Moment(0, 0)


def test_breakpoints_by_packet_kernel_address_dispatch_and_submission(captured: Path) -> None:
  amd = captured.name == "AMD.thq"
  with debug_queues(captured) as session:
    session.add("dispatch 2")
    session.run()
    place = session.place
    assert place is not None and place.row is not None and [n for n, _ in place.row.launches] == [2]
    kernel = breaks.kernels(place.row, place.names)[0]
    assert kernel.startswith("r_64")
    launch = place.row.launches[0][1]
    moment = session.moment
    for text in (f"kernel {kernel}", "packet dispatch_direct" if amd else "packet SEND_PCAS_A"):
      session.delete(max(session.breaks))
      session.add(text)
      session.restart()
      for _ in range(4):
        session.run()
        if session.moment == moment: break
      assert session.moment == moment, text
    session.delete(max(session.breaks))
    signal = next(e for r in session.part(place) for i in r.items() for e in i.effects if e.does.name == "SIGNAL")
    session.add(f"address {signal.address:#x}")
    session.run()
    stood = session.place
    assert stood is not None and stood.row is not None
    assert any(e.address == signal.address for i in stood.row.items() for e in i.effects)
    session.delete(max(session.breaks))
    session.add("submission 3")
    session.restart()
    assert session.run().breakpoint == max(session.breaks) and session.moment == Moment(3, 0)
    assert launch.arguments


@pytest.mark.parametrize("text", ["", "packet", "colour red", "dispatch x", "address -1", "submission 1.5"])
def test_what_is_no_breakpoint(text: str) -> None:
  with pytest.raises(InvalidArgument, match="break"): breaks.point(1, text)


def test_memory_before_and_behind_the_packet_that_writes_it(captured: Path) -> None:
  with debug_queues(captured) as session:
    session.add("dispatch 0")
    session.run()
    place = session.place
    assert place is not None
    signal = next(e for r in session.part(place) for i in r.items() for e in i.effects if e.does.name == "SIGNAL")
    def seen() -> int: return int.from_bytes(session.memory(signal.address, signal.size), "little")
    assert seen() != signal.value
    session.next_submission()
    assert seen() == signal.value
    with pytest.raises(InvalidArgument, match="no memory of 8 bytes at 0x10"): session.memory(0x10, 8)


def test_down_into_the_waves_of_a_launch(captured: Path) -> None:
  with debug_queues(captured) as session:
    with pytest.raises(InvalidArgument, match="no packet that launches"): launch_at(session, captured)
    session.add("kernel r_64*")
    session.run()
    moment = session.moment
    launch = launch_at(session, captured)
    assert launch.kernel.startswith("r_64") and session.moment == moment
    with launch.debug() as d:
      assert d.stepi(2).reason == "step"
      assert d.run().reason == "end"


@pytest.mark.parametrize("device", MACHINES)
def test_a_hang_is_stood_at_its_packet(device: str, tmp_path: Path) -> None:
  path = tmp_path / "hang.thq"
  assert record(path, device, HANG, TINYHW_TIMEOUT_S="1").returncode == 0
  with debug_queues(path) as session:
    stop = session.run()
    assert stop.reason == "end" and "0x3, found 0x2" in stop.text
    place = session.focus()
    assert place is not None and place.row is not None and place.standing.why
    assert any(e.does.name == "WAIT" for e in place.row.item.effects)
    assert session.run().reason == "end"


def test_a_fault_is_stood_at(tmp_path: Path) -> None:
  path = tmp_path / "fault.thq"
  done = record(path, "NV", FAULT)
  assert done.returncode == 0, done.stderr
  with debug_queues(path) as session:
    stop = session.run()
    assert stop.reason == "fault" and "0x700000000000" in stop.text, stop
    before = session.moment
    session.reverse_step(2)  # SEND_SIGNALING_PCAS2_B starts what SEND_PCAS_A has named
    place = session.place
    assert place is not None and place.row is not None
    assert breaks.kernels(place.row, place.names) == ["poke"] and session.moment < before


def test_a_capture_of_a_card_wants_mock_cards(captured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
  original = Capture.__init__
  def of_a_card(self: Capture, path: Any) -> None:
    original(self, path)
    self.head = {**self.head, "mockgpu": ""}
  monkeypatch.setattr(Capture, "__init__", of_a_card)
  with pytest.raises(DeviceError, match="cannot be stepped"), debug_queues(captured): pass


# ---- the command

def told(path: Path, *commands: str, code: int = 0) -> list[dict[str, Any]]:
  """What commands answer."""
  given = [word for c in commands for word in ("-e", c)]
  done = CliRunner().invoke(tinyhw, ["debug", "--json", *given, str(path)])
  assert done.exit_code == code, done.output
  return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_command_answers_programs(captured: Path) -> None:
  start, made, stood, queues, registers, listed, arguments, code, back = told(
    captured, "break kernel r_64*", "continue", "info queues", "info registers", "list", "info arguments",
    "disassemble", "reverse-step")
  assert start["stop"] == "start" and made["breakpoint"] == 1
  assert stood["stop"] == "breakpoint" and stood["kernels"][0].startswith("r_64") and len(stood["dispatches"]) == 1
  assert [q["next"] for q in queues["queues"]].count(True) == 1
  assert registers["registers"] and any(p["next"] for p in listed["packets"])
  assert any("buffer" in a["name"] for a in arguments["arguments"]) and code["code"]
  assert (back["submission"], back["executed"]) == (stood["submission"], stood["executed"] - 1)


def test_the_command_shows_memory(captured: Path) -> None:
  memory = told(captured, "info memory")[-1]["memory"]
  assert memory and all(row["size"] > 0 for row in memory)


@pytest.mark.parametrize(("given", "text"), [
  ("x/4xw 0x10", "no memory of 16 bytes at 0x10"), ("info colours", "info queues, registers"),
  ("delete 7", "there is no breakpoint 7"), ("break colour", "is no place to stand"), ("fly", "unknown command 'fly'"),
  ("wave", "no packet that launches"), ("x/4fb 0x1000", "a float of one byte")])
def test_a_mistake_is_one_clear_line(captured: Path, given: str, text: str) -> None:
  *_, last = told(captured, given, code=1)
  assert text in last["error"] and "\n" not in last["error"]


def test_the_command_goes_down_into_the_waves(captured: Path) -> None:
  script = "break kernel r_64*\ncontinue\nwave\nstepi 2\nquit\ninfo breakpoints\n"
  done = CliRunner().invoke(tinyhw, ["debug", str(captured)], input=script)
  assert done.exit_code == 0, done.output
  assert "(tinyhw) stepi 2" in done.output and done.output.endswith("breakpoint 1: kernel r_64*, 1 times\n")


def test_aql_queues_are_debugged(tmp_path: Path) -> None:
  """Packets of AQL are one each; what waits on a signal stands until another queue's kernel has ended."""
  path = aql.capture(tmp_path / "aql.thq")
  with debug_queues(path, "gfx1100,gfx1100") as session:
    session.add("kernel store")
    stops = []
    while session.run().reason == "breakpoint": stops.append(where(session))
    assert [row[0] for row in stops if row is not None] == [1, 2, 4]  # it stands at the first from the beginning
    assert session.reverse_run().reason == "breakpoint" and where(session) == stops[-1]
    assert launch_at(session, path, "gfx1100,gfx1100") is not None
    session.add("packet hsa_barrier_and_packet_t")
    assert session.reverse_run().reason == "breakpoint"
    place = where(session)
    assert place is not None and place[0] == 3 and "hsa_barrier_and" in place[2]
