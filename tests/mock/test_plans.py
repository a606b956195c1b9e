"""Submissions that come again: what is remembered of them changes nothing of what they do, and skips no check."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import settings as budget
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.emulator.checking import code_of
from tests.mock.client import VRAM, Client, Memory, Queue
from tests.mock.test_queues import release, wait, write
from tests.mock.test_waves import settings
from tests.strength import examples
from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import pm4_gfx11 as p4
from tinyhw.autogen import sdma_v6 as sdma
from tinyhw.core.kept import Kept
from tinyhw.core.timeout import Terms
from tinyhw.emulator.jit.amdgcn import repeat
from tinyhw.emulator.observe import Observer
from tinyhw.mock.amd.chip import planning
from tinyhw.mock.amd.chip.pm4 import ComputeQueue
from tinyhw.mock.amd.chip.registers import registers_of
from tinyhw.mock.amd.machine import Machine
from tinyhw.wire import pm4

# s[0:1]: where a number is, s[2:3]: where the result goes, s4: another number. The result is their sum times a factor.
# Who finds the number ASLEEP gives way first: compiled code alone does not come to the end. Waves are counted, 64 bytes
# behind the result: what is begun again is seen.
ASLEEP = 99
TEXT = """
  s_load_b32 s5, s[0:1], 0x0
  v_mov_b32 v1, 0
  v_mov_b32 v3, 1
  s_mov_b32 exec_lo, 1
  global_atomic_add_u32 v1, v3, s[2:3] offset:64
  s_waitcnt lgkmcnt(0)
  s_cmp_lg_u32 s5, 99
  s_cbranch_scc1 awake
  s_sleep 1
awake:
  s_add_u32 s5, s5, s4
  s_mul_i32 s5, s5, {factor}
  v_mov_b32 v2, s5
  global_store_b32 v1, v2, s[2:3]
  s_endpgm"""
FACTORS = 3, 5
REST = ((gc.COMPUTE_DISPATCH_SCRATCH_BASE_LO, 2), (gc.COMPUTE_PGM_RSRC3, 1), (gc.COMPUTE_TMPRING_SIZE, 1),
        (gc.COMPUTE_START_X, 3))
ACQUIRE = p4.ACQUIRE_MEM(coher_size=(1 << 40) - 1, coher_base=0)
WORDS = 8  # of numbers, and of results


@cache
def code(factor: int) -> bytes:
  return code_of(TEXT.format(factor=factor), "gfx11")


class Forgetful(Kept[Any, Any]):
  """Keeps nothing."""

  def keep(self, key: Any, value: Any) -> Any:
    return value


class Side:
  """A process with a queue, two programs, numbers, results and a semaphore. One that `forgets` decodes every packet
  anew and interprets."""

  def __init__(self, forgets: bool, seed: int = 0) -> None:
    self.client = client = Client(Machine(engine="ref" if forgets else "jit", seed=seed))
    self.queue, self.numbers, self.programs = client.queue(), client.alloc(4096), client.alloc(4096, VRAM)
    self.results, self.indirect = client.alloc(4096), client.alloc(4096)
    self.other, self.copier = client.queue(), client.queue(copy=True)
    for k in (0, 1):
      self.program(k, FACTORS[k])
    self.held, other = self.of(self.queue), self.of(self.other)
    if forgets:
      for held in (self.held, other):
        held._plans = held._steps = held._shapes = Forgetful(0)

  def of(self, queue: Queue) -> ComputeQueue:
    held = self.client.machine.kfd.processes[self.client.port.pid()].queues[queue.queue_id]
    assert isinstance(held, ComputeQueue)
    return held

  def program(self, k: int, factor: int) -> None:
    data = code(factor)
    self.programs.view[256 * k : 256 * k + len(data)] = data

  def users(self, number: int, result: int, more: int) -> p4.SET_SH_REG:
    at, to = self.numbers.address + 4 * number, self.results.address + 4 * result
    return pm4.set_sh_reg(gc.COMPUTE_USER_DATA_0, at & 0xFFFF_FFFF, at >> 32, to & 0xFFFF_FFFF, to >> 32, more)

  def launch(self, k: int, number: int, result: int, more: int, value: int, full: bool = True, groups: int = 1,
             whole: bool = False) -> list[p4.Pm4]:
    """A launch with all registers or with user data alone, and its semaphore. `whole` leaves no register that a
    dispatch goes by as it was."""
    *registers, _ = settings(self.programs.address + 256 * k, user=5)
    if whole:
      registers += [pm4.set_sh_reg(register, *[0] * n) for register, n in REST]
    dispatch = p4.DISPATCH_DIRECT(dim_x=groups, dim_y=1, dim_z=1, dispatch_initiator=0x8005)
    semaphore = release(self.results.address + 1024, value)
    return [ACQUIRE, *(registers if full else ()), self.users(number, result, more), dispatch, semaphore]

  def move_ring(self, ring: Memory | None = None) -> None:
    """UPDATE_QUEUE with another ring, which begins where the pointers stand."""
    ring = self.queue.ring = ring or self.client.alloc(4096)
    self.client.call("UPDATE_QUEUE", queue_id=self.queue.queue_id, ring_base_address=ring.address, ring_size=4096,
                     queue_percentage=100, queue_priority=7)

  def replace(self) -> None:
    """Other memory where the results were."""
    at = self.results.address
    self.client.unmap(self.results.handle, [0])
    self.client.port.munmap(at, 4096)
    self.client.call("FREE_MEMORY_OF_GPU", handle=self.results.handle)
    self.results = self.client.alloc(4096, address=at)

  def seen(self) -> dict[str, Any]:
    """All that there is to see, without addresses."""
    machine, held = self.client.machine, self.held
    lines = [re.sub(r"0x[0-9a-f]{5,}", "ADDRESS", line) for line in machine.report()]
    known = registers_of("gfx1100").kept - {gc.COMPUTE_PGM_LO.OFFSET}
    kept = {k: v for k, v in held.registers.items() if k in known}
    return {"results": bytes(self.results.view[:2048]), "state": self.queue.state, "read": self.queue.read_pointer,
            "packets": held.packets, "executed": machine.executed, "clock": machine.clock._virtual, "lines": lines,
            "last": re.sub(r"0x[0-9a-f]{5,}", "ADDRESS", held.packet_text()),
            "registers": kept | {"user": held.user_data[4:]}}


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
  """Of each dispatch that was kept ready, whether it ended at once."""
  ended: list[bool] = []
  run = repeat.Again.run
  def watched(self: repeat.Again, users: tuple[int, ...]) -> int:
    how = run(self, users)
    if how != repeat.STALE:
      ended.append(how == repeat.ENDED)
    return how
  monkeypatch.setattr(repeat.Again, "run", watched)
  yield ended


@pytest.mark.parametrize("calls", [False, True])
@pytest.mark.parametrize("what", ["number", "user data", "code", "mapping", "memory", "value", "place", "registers",
                                  "no mapping", "no code", "cut in two", "asleep", "nowhere"])
def test_a_repeated_submission_skips_no_check(what: str, calls: bool, at_once: list[bool], called: list[int],
                                              monkeypatch: pytest.MonkeyPatch) -> None:
  """After launches that were fine: whatever has changed before the next one of the same words is seen. `calls`: they
  had become one call."""
  if calls:
    monkeypatch.setattr(planning, "SOON", 1)
  side = Side(False)
  queue, client = side.queue, side.client
  side.numbers.u32[0] = 7
  for value in range(1, 7 if calls else 6):
    queue.submit(*side.launch(0, 0, 0, 1, value, full=value == 1))
    client.run()
    assert side.results.u32[0] == 24 and side.results.u64[128] == value
    side.results.u32[0] = 0
  assert called[-1:] == [4] if calls else at_once[-2:] == [True, True] and not called, "this does not reach it"
  again, expected, value = side.launch(0, 0, 0, 1, 6, full=False), 24, 6
  if what == "number":
    side.numbers.u32[0], expected = 9, 30
  elif what == "user data":
    again, expected = side.launch(0, 0, 0, 3, 6, full=False), 30
  elif what == "code":
    side.program(0, 5)
    expected = 40
  elif what == "mapping":
    client.unmap(side.results.handle, [0])
    client.map(side.results.handle, [0])
  elif what == "memory":
    side.replace()
  elif what == "value":
    again, value = side.launch(0, 0, 0, 1, 1 << 40, full=False), 1 << 40
  elif what == "place":
    again = [*again[:-1], release(side.results.address + 1032, 6)]
  elif what == "registers":  # as another launch has left them
    queue.submit(pm4.set_sh_reg(gc.COMPUTE_PGM_LO, side.programs.address + 256 >> 8 & 0xFFFF_FFFF))
    expected = 40
  elif what == "no mapping":
    client.unmap(side.results.handle, [0])
  elif what == "no code":
    client.unmap(side.programs.handle, [0])
  elif what == "asleep":
    side.numbers.u32[0], expected = ASLEEP, 300
  elif what == "nowhere":
    again[1] = pm4.set_sh_reg(gc.COMPUTE_USER_DATA_0, side.numbers.address & 0xFFFF_FFFF, side.numbers.address >> 32,
                              0x1000, 0, 1)
  elif what == "cut in two":
    words = pm4.stream(again)
    queue.push(words[:-3])
    client.run()
    assert side.results.u64[128] == (6 if calls else 5)
    side.results.u64[128] = 0
    again = []
    queue.push(words[-3:])
  if again:
    queue.submit(*again)
  client.run()
  if what in ("no mapping", "no code", "nowhere"):
    assert queue.state == "faulted" and ("execute" if what == "no code" else "atomic") in str(side.held.error)
    assert "DISPATCH_DIRECT" in side.held.packet_text()
    return
  assert queue.state == "ready" and side.results.u32[0] == expected
  assert side.results.u64[129 if what == "place" else 128] == value


class Submissions(RuleBasedStateMachine):
  """Launches among everything that changes what they mean: with all that is remembered, and with nothing."""

  def __init__(self) -> None:
    super().__init__()
    self._soon, planning.SOON = planning.SOON, 1
    self.sides = Side(False), Side(True)
    self.value, self.alive = 0, True
    self.set = False  # registers of a program

  def both(self, *packets: Any) -> None:
    """Submit to both: packets, or functions of a side that make them."""
    for side in self.sides:
      made = [q for p in packets for q in (p(side) if callable(p) else [p])]
      side.queue.submit(*made)

  @precondition(lambda self: self.alive)
  @rule(k=st.integers(0, 1), number=st.integers(0, 1), result=st.integers(0, WORDS - 1), more=st.integers(0, 2),
        full=st.booleans(), times=st.integers(1, 6), indirect=st.integers(0, 5), groups=st.integers(1, 2),
        always=st.booleans(), runs=st.booleans())
  def launch(self, k: int, number: int, result: int, more: int, full: bool, times: int, indirect: int, groups: int = 1,
             always: bool = False, runs: bool = False) -> None:
    """A launch some times: the first one, or all, with all registers; waited for one by one, or together."""
    full = full or not self.set
    self.set = True
    for _ in range(times):
      self.value += 1
      if runs:
        self.run()
      for side in self.sides:
        made = side.launch(k, number, result, more, self.value, full, groups, whole=always)
        if indirect:
          side.queue.submit(*made)
          continue
        words = pm4.stream(made)
        side.client.run()
        for i, word in enumerate(words):
          side.indirect.u32[i] = word
        side.queue.submit(p4.INDIRECT_BUFFER(ib_base=side.indirect.address, ib_size=len(words), valid=1))
      full = always

  @precondition(lambda self: self.alive)
  @rule(cut=st.integers(1, 20), runs=st.booleans())
  def piecewise(self, cut: int, runs: bool) -> None:
    """A launch of which two doorbells tell."""
    self.set, self.value = True, self.value + 1
    for side in self.sides:
      words = pm4.stream(side.launch(0, 0, 1, 1, self.value))
      side.queue.push(words[:cut])
      if runs:
        side.client.run()
      side.queue.push(words[cut:])

  @precondition(lambda self: self.alive and self.set)
  @rule(many=st.integers(2, 3), between=st.sampled_from(["", "number", "code", "registers"]), times=st.integers(1, 4))
  def batch(self, many: int, between: str, times: int) -> None:
    """Launches of both programs in one submission, and what lies between them; some times."""
    self.run()
    for _ in range(times):
      self.value += many
      for side in self.sides:
        made: list[p4.Pm4] = []
        for i in range(many):
          made += side.launch(i % 2, 0, i, i, self.value - many + 1 + i, full=i != 1 or between != "registers")
          if between == "number":
            made.append(write(side.numbers.address, 7 + i))
          elif between == "code" and i == 0:
            data = memoryview(code(FACTORS[self.value % 2])).cast("I")
            made.append(write(side.programs.address + 256, *data))
        side.queue.submit(*made)
      self.run()

  @precondition(lambda self: self.alive)
  @rule(k=st.integers(0, 1), times=st.integers(1, 3), value=st.integers(0, 9))
  def elsewhere(self, k: int, times: int, value: int) -> None:
    """Another queue launches, whose registers are its own, and whose semaphore is the same."""
    self.run()
    for _ in range(times):
      for side in self.sides:
        side.other.submit(*side.launch(k, 1, 7, value, value))
      self.run()

  @precondition(lambda self: self.alive)
  @rule(k=st.integers(0, 1), factor=st.sampled_from(FACTORS), value=st.integers(0, 9))
  def copy(self, k: int, factor: int, value: int) -> None:
    """The copy engine brings other code, and another number."""
    self.run()
    for side in self.sides:
      data = code(factor)
      side.indirect.view[:len(data)] = data
      side.indirect.u32[1000] = value
      copies = ((side.programs.address + 256 * k, 0, len(data)), (side.numbers.address, 4000, 4))
      side.copier.submit(*(sdma.SDMA_PKT_COPY_LINEAR(count=size - 1, src_addr=side.indirect.address + at, dst_addr=to)
                           for to, at, size in copies))

  @precondition(lambda self: self.alive)
  @rule(times=st.integers(1, 4), late=st.booleans(), number=st.integers(0, 9), k=st.integers(0, 1))
  def ordered(self, times: int, late: bool, number: int, k: int) -> None:
    """Launches that wait for the copy engine, which has done its work before them, or does it late."""
    self.run()
    for _ in range(times):
      self.value += 1
      for side in self.sides:
        fence, data = side.results.address + 1536, side.indirect.address + 4008
        side.indirect.u32[1002] = number
        copies = (sdma.SDMA_PKT_COPY_LINEAR(count=3, src_addr=data, dst_addr=side.numbers.address),
                  sdma.SDMA_PKT_FENCE(mtype=3, addr=fence, data=self.value))
        waits = (wait(fence, self.value), *side.launch(k, 0, 3, 1, self.value))
        for queue, packets in ((side.queue, waits), (side.copier, copies))[:: 1 if late else -1]:
          queue.submit(*packets)
          if late:
            side.client.run()
      self.run()
      number += 1

  @precondition(lambda self: self.alive)
  @rule(how=st.sampled_from(["trace", "observer", "terms"]), times=st.integers(1, 2))
  def watched(self, how: str, times: int) -> None:
    """Somebody looks on for a while."""
    self.run()
    for side in self.sides:
      machine = side.client.machine
      if how == "trace":
        machine.trace.enabled = True
      elif how == "observer":
        machine.observer = Observer()
      else:
        machine.agreed[0] = Terms()
    self.launch(0, 0, 2, 1, True, times, 1)
    self.run()
    for side in self.sides:
      machine, clock = side.client.machine, side.client.machine.clock
      machine.trace.enabled, machine.observer = False, None
      machine.agreed.clear()
      if how == "trace":  # which reads it whenever a queue is mapped again, and that depends on turns
        clock._virtual = -(-clock._virtual // 100_000_000) * 100_000_000

  @precondition(lambda self: self.alive)
  @rule()
  def ring(self) -> None:
    self.run()
    for side in self.sides:
      side.move_ring()

  @precondition(lambda self: self.alive)
  @rule(word=st.integers(0, 1), value=st.integers(0, 100))
  def number(self, word: int, value: int) -> None:
    self.run()
    for side in self.sides:
      side.numbers.u32[word] = value

  @precondition(lambda self: self.alive)
  @rule(k=st.integers(0, 1), factor=st.sampled_from(FACTORS))
  def rewrite(self, k: int, factor: int) -> None:
    self.run()
    for side in self.sides:
      side.program(k, factor)

  @precondition(lambda self: self.alive)
  @rule(how=st.sampled_from(["again", "elsewhere", "more"]))
  def remap(self, how: str) -> None:
    self.run()
    for side in self.sides:
      if how == "elsewhere":
        side.replace()
      elif how == "more":
        side.client.alloc(4096)
      else:
        side.client.unmap(side.results.handle, [0])
        side.client.map(side.results.handle, [0])

  @precondition(lambda self: self.alive)
  @rule(block=st.sampled_from([1, 32, 64]), how=st.integers(0, 1))
  def registers(self, block: int, how: int) -> None:
    data = p4.WRITE_DATA(dst_sel=p4.WRITE_DATA_dst_sel.mem_mapped_register,
                         dst_mem_addr=gc.COMPUTE_NUM_THREAD_X.OFFSET, payload=(block,))
    self.both(pm4.set_sh_reg(gc.COMPUTE_NUM_THREAD_X, block) if how else data)

  @precondition(lambda self: self.alive)
  @rule(count=st.integers(1, 3), at=st.integers(0, WORDS - 1), value=st.integers(0, 9))
  def others(self, count: int, at: int, value: int) -> None:
    def made(side: Side) -> list[p4.Pm4]:
      return [p4.NOP(payload=(0,) * count), write(side.results.address + 512 + 4 * at, value), ACQUIRE]

    self.both(made)

  @precondition(lambda self: self.alive and self.value > 3)
  @rule(what=st.sampled_from(["results", "programs", "numbers", "nowhere"]))
  def vanish(self, what: str) -> None:
    """What the next launch needs is not there any more, or never was."""
    self.run()
    for side in self.sides:
      if what != "nowhere":
        side.client.unmap(getattr(side, what).handle, [0])
    self.launch(0, 0, 0 if what != "nowhere" else 1 << 29, 1, False, 1, 1)
    self.run()
    assert [side.queue.state for side in self.sides] == ["faulted"] * 2
    self.alive = False

  @rule()
  def run(self) -> None:
    for side in self.sides:
      side.client.run()

  @invariant()
  def both_are_the_same(self) -> None:
    self.run()
    a, b = (side.seen() for side in self.sides)
    assert a == b

  def teardown(self) -> None:
    planning.SOON = self._soon
    for side in self.sides:
      side.client.port.end()
      side.client.machine.close()


TestSubmissions = Submissions.TestCase
TestSubmissions.settings = budget(max_examples=examples(25), stateful_step_count=25, deadline=None)


def test_the_machine_comes_to_calls(called: list[int]) -> None:
  """What it is to try it does try: launches of one dispatch and of several become calls."""
  state: Any = Submissions()
  state.launch(0, 0, 0, 1, True, 6, 1, runs=True)
  state.launch(1, 0, 0, 1, True, 6, 1, groups=2, always=True, runs=True)
  assert called.count(4) >= 2 and max(called) > 6
  before = len(called)
  state.batch(3, "registers", 6)
  assert max(called[before:]) > 12
  before = len(called)
  state.ordered(24, False, 3, 0)  # in some the copy engine comes first
  assert max(called[before:]) == 8
  state.both_are_the_same()
  state.teardown()
