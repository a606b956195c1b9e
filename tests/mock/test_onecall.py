"""Submissions that are one call: what each of their conditions is for, beside a mock that remembers nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy

import pytest

from tests.mock.test_plans import ASLEEP, Side
from tests.mock.test_queues import release, wait, write
from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import pm4_gfx11 as p4
from tinyhw.autogen import sdma_v6 as sdma
from tinyhw.core.memory import AddressSpace
from tinyhw.core.timeout import Terms
from tinyhw.emulator.observe import Observer
from tinyhw.mock.amd.chip import planning
from tinyhw.wire import pm4

FENCE = 1536  # bytes from the results on


Made = Callable[[Side], list[p4.Pm4]]


def until(reached: int) -> Made:
  return lambda side: [wait(side.results.address + FENCE, reached)]


def reach(value: int) -> Made:
  return lambda side: [write(side.results.address + FENCE, value)]


class Pair:
  """A mock that remembers and one that does not: what is done is done to both, and both show the same."""

  def __init__(self) -> None:
    self.sides = Side(False), Side(True)
    self.value = 0

  def submit(self, *made: Made, runs: bool = True) -> None:
    for side in self.sides:
      side.queue.submit(*(packet for make in made for packet in make(side)))
    if runs:
      self.run()

  def run(self) -> None:
    for side in self.sides:
      side.client.run()
    a, b = (side.seen() for side in self.sides)
    assert a == b

  def launch(self, k: int = 0, number: int = 0, result: int = 0, more: int = 1, full: bool = False,
             whole: bool = False) -> Made:
    self.value += 1
    value = self.value
    return lambda side: side.launch(k, number, result, more, value, full, 1, whole)

  def warm(self, k: int = 0, times: int = 6, full: bool = False, whole: bool = False) -> None:
    """Launches until they are calls: the first, or all of them, with all registers."""
    for i in range(times):
      self.submit(self.launch(k, full=full or not i, whole=whole))


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
  monkeypatch.setattr(planning, "SOON", 1)
  made = Pair()
  for side in made.sides:
    side.numbers.u32[0], side.numbers.u32[1] = 7, ASLEEP
  yield made
  for side in made.sides:
    side.client.port.end()
    side.client.machine.close()


def test_a_launch_becomes_a_call_and_says_where_it_was(pair: Pair, called: list[int]) -> None:
  pair.warm()
  assert called[-2:] == [4, 4]
  for side in pair.sides:
    at = side.queue.ring.address + 4 * (side.queue.at - 8)
    assert side.held.packet_text().startswith(f"{at:#x}: RELEASE_MEM")


@pytest.mark.parametrize("how", ["trace", "observer", "terms", "executor"])
def test_who_watches_sees_it(how: str, pair: Pair, called: list[int]) -> None:
  seen = list[object]()

  class Watcher(Observer):
    def dispatch(self, space: AddressSpace, arch: object, d: object) -> None:
      seen.append(d)
  pair.warm()
  side = pair.sides[0]
  machine, before = side.client.machine, len(called)
  if how == "trace":
    machine.trace.enabled = True
  elif how == "observer":
    machine.observer = Watcher()
  elif how == "terms":
    machine.agreed[0] = Terms()
  else:
    machine.executor = lambda queue, program, size, users: seen.append(users) or 1
  side.queue.submit(*side.launch(0, 0, 0, 1, 9, False))
  side.client.run()
  assert not any(called[before:])
  assert how == "terms" or seen or len(machine.trace.where(lambda e: e.kind == "packet")) == 4


def test_the_same_words_for_another_program(pair: Pair, called: list[int]) -> None:
  """What follows registers that were written meanwhile is no launch of the program before."""
  pair.warm()
  pair.submit(pair.launch(1, full=True))
  before = len(called)
  pair.submit(pair.launch(1))
  assert called[before:] == [0] and pair.sides[0].results.u32[0] == 40


def test_no_more_packets_than_there_is_time_for(pair: Pair, called: list[int]) -> None:
  pair.warm()
  pair.submit(pair.launch(), runs=False)
  for side in pair.sides:
    before = side.held.packets
    side.held.run(3)
    assert side.held.packets - before == 3
  pair.run()


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("what", ["asleep", "code"])
def test_a_dispatch_that_does_not_end_has_its_own_registers(what: str, whole: bool, pair: Pair,
                                                            called: list[int]) -> None:
  """Two programs in turns; then the second one is left in the middle, or its code is another."""
  for _ in range(6):
    for k in (0, 1):
      pair.submit(pair.launch(k, full=True, whole=whole))
  assert min(called[-2:]) > 0
  pair.submit(pair.launch(0, full=True, whole=whole))
  if what == "code":
    for side in pair.sides:
      side.program(1, 3)
  pair.submit(pair.launch(1, number=int(what == "asleep"), full=True, whole=whole))
  assert called[-1] > 0
  pair.submit(pair.launch(1))


@pytest.mark.parametrize("last", [0, 1])
def test_registers_are_what_the_calls_wrote(last: int, pair: Pair, called: list[int]) -> None:
  """A dispatch of which one register alone is written has the others as the call before has left them."""
  for k in (0, 1) * 6 + (0, 1)[: last + 1]:
    pair.submit(pair.launch(k, full=True, whole=True))
  assert called[-1] > 0
  pair.submit(lambda side: [pm4.set_sh_reg(gc.COMPUTE_NUM_THREAD_X, 64)], pair.launch(last))


def test_registers_that_follow_the_last_dispatch_count(pair: Pair, called: list[int]) -> None:
  def after(side: Side) -> list[p4.Pm4]:
    return [pm4.set_sh_reg(gc.COMPUTE_PGM_LO, side.programs.address + 256 >> 8 & 0xFFFF_FFFF)]
  for _ in range(6):
    pair.submit(pair.launch(0, full=True, whole=True), after)
  assert called[-1] > 0
  pair.submit(pair.launch())
  assert pair.sides[0].results.u32[0] == 40


def test_a_wait_amid_a_submission_keeps_what_was_done(pair: Pair) -> None:
  """It is no part of a call: what comes before it would be done twice."""
  for reached in range(1, 9):
    late = reached in (6, 8)
    if not late:
      pair.submit(reach(reached))
    pair.submit(pair.launch(full=True), until(reached), pair.launch())
    if late:
      for side in pair.sides:
        side.results.u32[FENCE // 4] = reached
      pair.run()


def test_a_wait_before_a_launch_is_part_of_its_call(pair: Pair, called: list[int]) -> None:
  for reached in range(1, 9):
    pair.submit(reach(reached))
    pair.submit(until(reached), pair.launch(full=reached == 1))
  assert called[-1] == 5
  pair.submit(until(8), pair.launch())
  reached = 9
  pair.submit(until(reached), pair.launch())
  assert pair.sides[0].queue.state == "blocked"
  for side in pair.sides:
    side.results.u32[FENCE // 4] = reached
  pair.run()
  assert pair.sides[0].queue.state == "ready"


def test_the_ring_is_the_queues_own(pair: Pair, called: list[int]) -> None:
  """Words in the place where the ring has been are nobody's."""
  rings = [side.client.alloc(4096) for side in pair.sides]  # mapped before, so that mappings do not change
  pair.warm()
  for side, ring in zip(pair.sides, rings, strict=True):
    old = side.queue.ring
    side.move_ring(ring)
    words = pm4.stream(side.launch(0, 0, 0, 2, 1, False))
    for i, word in enumerate(words):
      old.u32[(side.queue.at + i) % 1024] = word
  pair.submit(pair.launch())
  assert pair.sides[0].results.u32[0] == 24 and pair.sides[0].results.u64[128] == pair.value


@pytest.mark.parametrize("whole", [False, True])
def test_calls_come_back_after_mappings_have_changed(whole: bool, pair: Pair, called: list[int]) -> None:
  pair.warm(full=whole, whole=whole)
  for side in pair.sides:
    side.client.alloc(4096)
  pair.warm(full=whole, whole=whole)
  assert called[-1] >= 4


@pytest.mark.parametrize("what", ["again", "form", "kept"])
def test_calls_come_back_after_a_dispatch_has_changed(what: str, pair: Pair, called: list[int]) -> None:
  """Made ready anew, compiled better, or with more of its program decoded: each alone."""
  pair.warm()
  for repeated in [r for side in pair.sides for r in side.held.repeated.values()]:
    if (again := repeated.again) is None: continue
    if what == "again": repeated.again = None
    elif what == "form": again.code.form = copy(again.form)
    else: again.program.kept += 1
  called.clear()
  pair.warm()
  assert called[-1] >= 4


@pytest.mark.parametrize("more", [
  {}, {"data": p4.RELEASE_MEM_data_sel.send_32_bit_low}, {"data": p4.RELEASE_MEM_data_sel.send_gpu_clock_counter},
  {"interrupt": p4.RELEASE_MEM_int_sel.send_interrupt_after_write_confirm}])
def test_releases_of_every_kind_give_their_data_anew(more: dict[str, int], pair: Pair) -> None:
  """Half of it, a time, with an interrupt: those are no part of a call."""
  for n in range(1, 9):
    pair.submit(pair.launch(full=n == 1), lambda side, n=n: [
      release(side.results.address + FENCE + 64, n << 36 | n, event=1 if "interrupt" in more else 0, **more)])
  values = [side.results.u64[(FENCE + 64) // 8] for side in pair.sides]
  assert values[0] == values[1] and (values[0] == 8 << 36 | 8) is ("data" not in more)


def test_submissions_are_remembered_within_a_bound(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(planning, "PLANS", 3)
  for n in range(12):
    for _ in range(2):
      pair.submit(pair.launch(k=n % 2, number=n % 3, full=True))
      pair.submit(lambda side, n=n: [write(side.results.address + FENCE + 8 * n, n), p4.NOP(payload=(n,))])
  held = [plans for side in pair.sides for known in side.held._plans.values() for _, plans in known.values()]
  assert held and all(len(plans) <= 3 for plans in held)


def test_a_program_that_is_kept_no_more_is_no_calls_beginning(pair: Pair) -> None:
  """A submission that begins with the registers of another one's program, of which a queue keeps few."""
  for side in pair.sides:
    side.held.programs.limit = 1
  for n in range(16):
    pair.submit(pair.launch(n & 1, full=True, whole=True))
    pair.submit(pair.launch(n & 1), pair.launch(1 - (n & 1), full=True, whole=True))


def test_across_the_end_of_the_ring(pair: Pair, called: list[int]) -> None:
  pair.warm(times=80)
  assert called.count(4) > 60


@pytest.mark.parametrize("many", [2, 7, 30])
def test_launches_that_are_queued_are_calls(many: int, pair: Pair, called: list[int]) -> None:
  pair.warm()
  before = len(called)
  for _ in range(many):
    pair.submit(pair.launch(), runs=False)
  pair.run()
  assert called[before:].count(4) == many


@pytest.mark.parametrize("cut", [1, 5, 20])
@pytest.mark.parametrize("what", ["", "asleep", "code"])
def test_what_two_doorbells_told_of(what: str, cut: int, pair: Pair, called: list[int]) -> None:
  """One call, or what is left of it: with the words that the second doorbell told of."""
  pair.warm()
  make = pair.launch(number=int(what == "asleep"))
  for side in pair.sides:
    if what == "code":
      side.program(0, 5)
    words = pm4.stream(make(side))
    side.queue.push(words[:cut])
    side.queue.push(words[cut:])
  pair.run()
  assert called[-1] > 0
  pair.submit(pair.launch())


def test_launches_that_nobody_waits_for_become_calls(pair: Pair, called: list[int]) -> None:
  """Each is known by itself, however many doorbells were rung before the queue had a turn."""
  for _ in range(5):
    for k in (0, 1) * 8:
      pair.submit(pair.launch(k, full=True), runs=False)
    pair.run()
  assert sum(done > 0 for done in called) > 16


def test_a_poll_of_the_copy_engine_has_its_own_mask(pair: Pair) -> None:
  for mask, reference in ((0xFFFF_FFFF, 0x1FF), (0xFFFF_FFFF, 0x100), (0xFF, 0x1FF)):
    for side in pair.sides:
      side.numbers.u32[9] = 0x1FF
      side.copier.submit(sdma.SDMA_PKT_POLL_REGMEM(func=5, mem_poll=1, addr=side.numbers.address + 36, value=reference,
                                                   mask=mask, interval=4, retry_count=0xFFF))
    pair.run()
  assert [side.copier.state for side in pair.sides] == ["blocked", "blocked"]
