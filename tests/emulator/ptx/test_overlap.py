"""Launches that overlap, turn by turn: who says what when, who waits for whom, and where compiled code goes on."""
from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest

from tinyhw.core.errors import DecodeError
from tinyhw.core.memory import AddressSpace, Region
from tinyhw.emulator.engines import beside
from tinyhw.emulator.engines.ptx import dispatch
from tinyhw.emulator.jit.ptx.launch import run
from tinyhw.emulator.ptx.launch.grid import Dispatch, Grid
from tinyhw.emulator.ptx.launch.overlap import Overlap
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.emulator.schedule import Idle
from tinyhw.emulator.simt import Stats
from tinyhw.isa.ptx import parse

AT, PARAMS = 0x10000, 0x20000
BODY = """mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r1, %r3, %r2;
  mul.wide.u32 %rd2, %r4, 4; add.u64 %rd1, %rd1, %rd2;"""


def program(body: str) -> Program:
  text = f""".version 8.0\n.target sm_90\n.address_size 64
.visible .entry k(.param .u64 at) {{ .reg .u64 %rd<4>; .reg .u32 %r<9>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [at]; {BODY} {body} ret; }}"""
  return Program(link(parse(text)), "k", 0x40000)


class Run:
  """A launch in turns beside others."""

  def __init__(self, body: str, blocks: int = 1, threads: int = 32, engine: str = "ref", ended: bool = True) -> None:
    self.space = AddressSpace("overlap")
    self.space.map(AT, 1 << 12, Region("memory", 1 << 12), 0)
    self.space.map(PARAMS, 1 << 12, Region("parameters", 1 << 12), 0)
    self.space.write(PARAMS, AT.to_bytes(8, "little"))
    self.ended = ended
    self.overlap = Overlap(lambda: self.ended)
    self.grid = Grid(self.space, Dispatch(program(body), (blocks, 1, 1), (threads, 1, 1), PARAMS, 8,
                                          overlap=self.overlap), 1 << 20, Stats())
    self.turns: Iterator[Idle | None] = beside.turns(self.grid, engine)

  def words(self, n: int) -> list[int]: return [*struct.unpack(f"<{n}I", self.space.read(AT, 4 * n))]

  def until_open(self) -> bool:
    """Run until those behind it may begin; whether it has not ended by then."""
    for _ in self.turns:
      if self.overlap.open: return True
    return False


STORE = "mov.u32 %r5, 7; st.global.u32 [%rd1], %r5;"
SAY = "griddepcontrol.launch_dependents;"


def test_it_is_open_when_every_block_has_said_so_or_ended() -> None:
  all_say = Run(f"{SAY} {STORE}", 3, 64)
  assert all_say.until_open() and all_say.overlap.said == {0, 1, 2} and 0 in all_say.words(192)
  list(all_say.turns)
  assert all_say.words(192) == [7] * 192
  never = Run(STORE, 3)
  assert not never.until_open() or never.words(96) == [7] * 96
  some = Run(f"setp.eq.u32 %p1, %r1, 0; @%p1 exit; {SAY} {STORE}", 3)  # block 0 ends without a word
  assert some.until_open() and some.overlap.said == {1, 2} and some.words(96) == [0] * 96
  warp = Run(f"setp.lt.u32 %p1, %r2, 32; @!%p1 {SAY} {STORE}", 2, 64)  # the second warp speaks for its block
  assert warp.until_open() and warp.overlap.said == {0, 1} and 0 in warp.words(128)
  one = Run(f"setp.eq.u32 %p1, %r1, 1; @%p1 {SAY} {STORE}", 3)
  one.until_open()
  assert one.overlap.said == {1} and one.words(32) == [7] * 32


def test_blocks_that_have_not_begun_have_not_said_so() -> None:
  """More blocks than the chip holds: it is open when the last ones have said so, which begin behind others' ends."""
  many = Run(f"{SAY} st.global.u32 [%rd1], %r1;", 1, 1)
  many.grid.left = many.grid.total = 9
  many.grid.places = many.grid.usual = 4
  for _ in many.turns: assert many.overlap.open is (many.overlap.said == {*range(9)})
  assert many.words(1) == [0] and many.overlap.open


def test_who_waits_stands_until_those_before_have_ended() -> None:
  waits = Run(f"griddepcontrol.wait; {STORE}", 2, 64, ended=False)
  idle = next(turn for turn in waits.turns if turn is not None)
  assert idle.hopeless() and not idle.changed()  # no memory ends it
  assert next(turn for turn in waits.turns if turn is not None) and not any(waits.words(128))
  waits.ended = True
  assert not [turn for turn in waits.turns if turn is not None] and waits.words(128) == [7] * 128


@pytest.mark.parametrize("engine", ["ref", "jit", "auto"])
def test_compiled_code_goes_on_behind_what_has_cost_enough(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Not before those before it have ended: it does not wait for them."""
  monkeypatch.setattr(beside, "ENOUGH", 1.0)
  begun: list[str] = []
  real = run.CompiledLaunch.turns

  def seen(self: run.CompiledLaunch, *rest: Any) -> Iterator[Idle | None]:
    begun.append(self.grid.dispatch.program.entry_name)
    return real(self, *rest)
  monkeypatch.setattr(run.CompiledLaunch, "turns", seen)
  loop = "mov.u32 %r6, 0; L: add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 9; @%p1 bra L; st.global.u32 [%rd1], %r6;"
  waits = Run(f"{loop} griddepcontrol.wait; add.u32 %r6, %r6, 4; {loop.replace('L', 'M')}", 2, 32, engine, ended=False)
  assert next(turn for turn in waits.turns if turn is not None) and not begun and waits.words(64) == [9] * 64
  waits.space.write(AT, bytes(256))
  waits.ended = True
  list(waits.turns)
  assert waits.words(64) == [9] * 64 and bool(begun) is (engine != "ref")


@pytest.mark.left("griddepcontrol")
@pytest.mark.parametrize("engine", ["ref", "jit", "both"])
def test_alone_it_has_no_effect(engine: str) -> None:
  alone = Run(f"{SAY} griddepcontrol.wait; setp.lt.u32 %p1, %r2, 9; @%p1 {SAY} @%p1 griddepcontrol.wait; {STORE}", 2)
  d = Dispatch(alone.grid.dispatch.program, (2, 1, 1), (32, 1, 1), PARAMS, 8)
  assert dispatch(alone.space, d, engine=engine).waves == 2 and alone.words(64) == [7] * 64
  wrong = program("griddepcontrol.wait %r1;")
  with pytest.raises(DecodeError, match="operand"):
    dispatch(alone.space, Dispatch(wrong, (1, 1, 1), (32, 1, 1), PARAMS, 8), engine=engine)
