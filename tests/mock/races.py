"""Small races between queues, engines, cards and the host, as data, and the machines that run them.

An actor's steps are words: `x=1` writes, `r=x` copies one word to another, `x==1` and `x>=1` wait until that holds. So
"x==1 x=2" waits for 1 and then writes 2. Words are zero at first. `compute` and `copy` are queues of the engines of
card 0, `compute1` and `copy1` those of card 1, a letter behind tells several apart. `shows` names the words that are
the outcome once nothing can go on any more.

Outcomes are those of a chip whose queues do one step after the other and wait for what a step has written (a packet
with its write confirmed), and whose memory has one order: everything else is for `MOCKGPU_MEMORY=weak`.
"""

from __future__ import annotations

import ctypes
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tests.mock.client import Client, Queue
from tests.mock.cuda import client as cuda
from tests.mock.cuda.client import HEAD, u32, u64
from tests.mock.nv.bench import COPY, release, semaphore
from tests.mock.nv.test_compute import Compute
from tests.mock.nv.test_copy import linear
from tests.mock.test_queues import GE, wait, write
from tinyhw.autogen import nv_c56f as host
from tinyhw.autogen import pm4_gfx11 as p4
from tinyhw.autogen import sdma_v6 as s6
from tinyhw.core.memory import Access
from tinyhw.mock.amd.machine import Machine
from tinyhw.mock.cuda.streams.streams import Stream
from tinyhw.mock.draws import Draws
from tinyhw.mock.nv.chip.channel import Channel
from tinyhw.mock.nv.machine import NvMachine
from tinyhw.wire import methods

EQUAL: Final = p4.WAIT_REG_MEM_function.equal_to_the_reference_value


class Step(NamedTuple):
  """`how` is "=" for a number, "copy" for a word, or the comparison of a wait."""

  word: str
  how: str
  value: int
  source: str = ""


def steps(text: str) -> list[Step]:
  """What an actor does."""
  out = []
  for word in text.split():
    found = re.fullmatch(r"([a-z])(=|==|>=)([a-z]|\d)", word)
    assert found, word
    name, how, operand = found.groups()
    out.append(Step(name, how, int(operand)) if operand.isdecimal() else Step(name, "copy", 0, operand))
  return out


@dataclass(frozen=True)
class Race:
  """`why` says what makes the outcomes, and where that is said."""

  name: str
  actors: dict[str, str]
  shows: str
  outcomes: frozenset[str]
  why: str


def race(name: str, shows: str, outcomes: str, why: str, **actors: str) -> Race:
  return Race(name, actors, shows, frozenset(outcomes.split()), why)


# PM4: PAL's WRITE_DATA waits for its write with WR_CONFIRM, WAIT_REG_MEM polls with an interval (Linux 6.12,
# gfx_v11_0.c, gfx_v11_0_wait_reg_mem); SDMA polls alike (sdma_v6_0.c, sdma_v6_0_ring_emit_pipeline_sync). NVIDIA's host
# engine: an ACQUIRE that fails is tried again when the channel has its next time slice (GA100, dev_pbdma.ref,
# "SEM_EXECUTE"); so each of them may see, or miss, what is there for a short while.
RACES: Final = [
  race("two writers", "x", "1 2", "Nothing orders the queues.", compute="x=1", computeb="x=2"),
  race("a write behind a wake-up", "x", "1 2",
       "The second queue goes on after the first 1 or after the second: in one case its 2 is lost.",
       compute="x=1 x=1", computeb="x==1 x=2"),
  race("between a poll and the next step", "x", "2 3",
       "The 2 is the last where the poll has seen the 1, and the 3 came before the next step.",
       compute="x=1 x=3", computeb="x==1 x=2"),
  race("a value that does not stay", "xy", "20 21",
       "A poll looks now and then: it sees the 1 or misses it, and then waits for ever.",
       compute="x=1 x=2", computeb="x==1 y=1"),
  race("a message without a wait", "rs", "00 01 11",
       "Data are written before the flag: who reads the flag first may see neither, the data alone, or both.",
       compute="x=1 y=1", computeb="r=y s=x"),
  race("a store and a load each", "rs", "01 10 11", "One of the two stores is the first.",
       compute="x=1 r=y", computeb="y=1 s=x"),
  race("two that take one token", "yz", "01 10 11",
       "A wait and the write behind it are two steps: both may see the token before one takes it away.",
       compute="x=1", computeb="x==1 x=0 y=1", computec="x==1 x=0 z=1"),
  race("the host looks", "r", "1 2 3", "The queue goes on while the host polls (HSA: hsa_signal_wait_scacquire).",
       compute="x=1 x=2 x=3", host="x>=1 r=x"),
  race("the host answers", "r", "0 1", "The queue reads before the host's store or behind it.",
       compute="x=1 r=y", host="x==1 y=1"),
  race("a signal before the work", "sr", "10 11",
       "A program that signals first and works then: the host reads what was there, or what comes.",
       compute="s=1 y=1", host="s==1 r=y"),
  race("a copy engine and a queue", "z", "1 2", "The copy begins when x is there, and y changes under it.",
       compute="y=1 x=1 y=2", copy="x==1 z=y"),
  race("a copy engine's answer", "xr", "20 21", "The queue that waits and the engine write one word.",
       compute="x=1 x==2 r=z", copy="x==1 x=2 z=1"),
  race("two cards read in order", "rs", "00 01 02 11 12 22",
       "Another card may miss values, and never goes back to an older one.", compute="x=1 x=2", compute1="r=x s=x"),
  race("a word of two cards", "xr", "21 30 31",
       "Card 1 waits for card 0, which does not wait for it: what it writes is lost, or is the last.",
       compute="x=1 y=1 x=3", compute1="x==1 x=2 r=y"),
]


def possible(race: Race) -> set[str]:
  """The outcomes of all interleavings of an actor's steps with those of others, one step at a time."""
  actors = [steps(text) for text in race.actors.values()]
  found, seen = set(), set()
  queue = [(tuple([0] * len(actors)), tuple([0] * 26))]
  while queue:
    state = queue.pop()
    if state in seen: continue
    seen.add(state)
    at, memory = state
    moved = False
    for k, (place, program) in enumerate(zip(at, actors)):
      if place == len(program): continue
      step, after = program[place], list(memory)
      n = ord(step.word) - 97
      if step.how == "=": after[n] = step.value
      elif step.how == "copy": after[n] = memory[ord(step.source) - 97]
      elif not (memory[n] == step.value if step.how == "==" else memory[n] >= step.value): continue
      moved = True
      queue.append((tuple(p + (j == k) for j, p in enumerate(at)), tuple(after)))
    if not moved: found.add("".join(str(memory[ord(word) - 97]) for word in race.shows))
  return found


# ---- machines

WORD: Final = 64  # bytes from one word to the next: each has a line of its own
PAGE: Final = 4096


class Rig(ABC):
  """A machine whose actors are made when they are asked for, and stay for the next race unless they wait for ever."""

  def __init__(self) -> None:
    self.actors: dict[str, Any] = {}

  def outcome(self, race: Race) -> str:
    """What a race comes to."""
    for word in map(chr, range(97, 123)): self.store(word, 0)
    for actor, text in race.actors.items():
      if actor == "host": continue
      if actor not in self.actors: self.actors[actor] = self.make(actor)
      self.submit(self.actors[actor], steps(text))
    for step in steps(race.actors.get("host", "")):
      if step.how == "=": self.store(step.word, step.value)
      elif step.how == "copy": self.store(step.word, self.load(step.source))
      else: self.run(step)
    self.run(None)
    found = "".join(str(self.load(word)) for word in race.shows)
    for name, actor in [*self.actors.items()]:
      if not self.at_end(actor): self.drop(self.actors.pop(name))
    return found

  def run(self, until: Step | None) -> None:
    """Let the machine go on until a word is what the host waits for, or for as long as it can."""
    self.wait(lambda: until is not None and _holds(self.load(until.word), until))

  @abstractmethod
  def wait(self, done: Callable[[], bool]) -> None: ...
  @abstractmethod
  def make(self, actor: str) -> Any: ...
  @abstractmethod
  def submit(self, actor: Any, steps: list[Step]) -> None: ...
  @abstractmethod
  def at_end(self, actor: Any) -> bool: ...
  @abstractmethod
  def drop(self, actor: Any) -> None: ...
  @abstractmethod
  def load(self, word: str) -> int: ...
  @abstractmethod
  def store(self, word: str, value: int) -> None: ...
  @abstractmethod
  def close(self) -> None: ...


def _holds(seen: int, step: Step) -> bool: return seen == step.value if step.how == "==" else seen >= step.value


def _offset(word: str) -> int: return WORD * (ord(word) - 97)


class Amd(Rig):
  """Compute queues of PM4, and SDMA."""

  def __init__(self, seed: int, draws: Draws | None = None) -> None:
    super().__init__()
    self.client = Client(Machine("gfx1100,gfx1100", seed=seed, draws=draws))
    self.memory = self.client.alloc(PAGE, map_to=[0, 1])
    self.words = self.memory.u32

  def make(self, actor: str) -> Queue: return self.client.queue(int("1" in actor), copy=actor.startswith("copy"))

  def submit(self, actor: Queue, steps: list[Step]) -> None:
    if actor.copy: actor.submit(*map(self.sdma, steps))
    else: actor.submit(*map(self.pm4, steps))

  def at_end(self, actor: Queue) -> bool: return actor.read_pointer == actor.at

  def drop(self, actor: Queue) -> None: self.client.call("DESTROY_QUEUE", queue_id=actor.queue_id)

  def at(self, word: str) -> int: return self.memory.address + _offset(word)

  def sdma(self, s: Step) -> s6.Sdma:
    at = self.at(s.word)
    if s.how == "=": return s6.SDMA_PKT_FENCE(mtype=3, addr=at, data=s.value)
    if s.how == "copy": return s6.SDMA_PKT_COPY_LINEAR(count=3, src_addr=self.at(s.source), dst_addr=at)
    return s6.SDMA_PKT_POLL_REGMEM(func=3 if s.how == "==" else 5, mem_poll=1, addr=at, value=s.value,
                                   mask=0xFFFF_FFFF, retry_count=0xFFF)

  def pm4(self, s: Step) -> p4.Pm4:
    at = self.at(s.word)
    if s.how == "=": return write(at, s.value)
    if s.how == "copy":
      return p4.COPY_DATA(src_sel=p4.COPY_DATA_src_sel.tc_l2, dst_sel=p4.COPY_DATA_dst_sel.tc_l2,
                          src_addr=self.at(s.source), dst_addr=at)
    return wait(at, s.value, EQUAL if s.how == "==" else GE)

  def wait(self, done: Callable[[], bool]) -> None: self.client.port.wait(done, 0.0)

  def load(self, word: str) -> int: return self.words[_offset(word) // 4]

  def store(self, word: str, value: int) -> None: self.words[_offset(word) // 4] = value

  def close(self) -> None:
    self.client.port.end()
    self.client.machine.close()


class Nv(Rig):
  """Channels with semaphores of the host engine; what is copied, copy engines copy, and the channel waits for it."""

  def __init__(self, seed: int, draws: Draws | None = None) -> None:
    super().__init__()
    self.machine = NvMachine("sm_90,sm_90", vram=1 << 22, system_memory=1 << 22, seed=seed, draws=draws)
    self.cards = [Compute(machine=self.machine, gpu=gpu) for gpu in range(2)]
    self.memory = 0x30_0000_0000
    for card in self.cards: card.space.map(self.memory, PAGE, self.machine.system, 0, Access.ALL)
    self.words = self.cards[0].space

  def make(self, actor: str) -> tuple[Compute, Channel]:
    card = self.cards["1" in actor]
    return card, card.channel("copy" if actor.startswith("copy") else "compute")

  def submit(self, actor: tuple[Compute, Channel], steps: list[Step]) -> None:
    card, channel = actor
    card.submit(channel, [word for step in steps for word in self.words_of(step)])

  def words_of(self, s: Step) -> list[int]:
    at = self.at(s.word)
    if s.how == "=": return methods.send(0, *release(at, s.value))
    if s.how == "copy": return methods.send(COPY, *linear(self.at(s.source), at, 4)) + methods.send(0, host.WFI())
    operations = host.SEM_EXECUTE_OPERATION
    how = operations.ACQUIRE if s.how == "==" else operations.ACQ_STRICT_GEQ
    return methods.send(0, *semaphore(at, s.value), host.SEM_EXECUTE(OPERATION=how))

  def at_end(self, actor: tuple[Compute, Channel]) -> bool: return actor[1].wait is None

  def drop(self, actor: tuple[Compute, Channel]) -> None:
    actor[1].close()
    self.machine.channels.remove(actor[1])

  def at(self, word: str) -> int: return self.memory + _offset(word)

  def wait(self, done: Callable[[], bool]) -> None: self.machine.run(done, 0.0)

  def load(self, word: str) -> int: return self.words.load(self.at(word), 4)

  def store(self, word: str, value: int) -> None: self.words.store(self.at(word), 4, value)

  def close(self) -> None: self.machine.close()


POLLS: Final = HEAD + "".join(f"""
.visible .entry {name}(.param .u64 at, .param .u32 value) {{
  .reg .u64 %rd; .reg .u32 %r<3>; .reg .pred %p;
  ld.param.u64 %rd, [at]; ld.param.u32 %r1, [value];
again: ld.volatile.global.u32 %r2, [%rd]; setp.{compare}.u32 %p, %r2, %r1; @%p bra again;
  ret; }}""" for name, compare in (("equal", "ne"), ("least", "lt")))


class Cuda(Rig):
  """Streams: memsets, copies, and kernels that poll."""

  def __init__(self, seed: int, draws: Draws | None = None) -> None:
    super().__init__()
    self.c = c = cuda.Client("sm_90,sm_90", seed=seed, draws=draws)
    self.contexts = [c.context, c.handle("cuDevicePrimaryCtxRetain", 1)]
    self.memory = c.handle("cuMemAllocManaged", ctypes.c_size_t(PAGE), 1)
    self.polls = []
    for context in self.contexts:
      c.call("cuCtxSetCurrent", u64(context))
      self.polls.append({"==": c.function(POLLS, "equal"), ">=": c.function(POLLS, "least")})

  def make(self, actor: str) -> tuple[int, int]:
    card = int("1" in actor)
    self.c.call("cuCtxSetCurrent", u64(self.contexts[card]))
    return card, self.c.handle("cuStreamCreate", 1)

  def submit(self, actor: tuple[int, int], steps: list[Step]) -> None:
    (card, stream), c = actor, self.c
    c.call("cuCtxSetCurrent", u64(self.contexts[card]))
    for s in steps:
      at = self.at(s.word)
      if s.how == "=": c.call("cuMemsetD32Async", u64(at), s.value, ctypes.c_size_t(1), u64(stream))
      elif s.how == "copy":
        c.call("cuMemcpyDtoDAsync_v2", u64(at), u64(self.at(s.source)), ctypes.c_size_t(4), u64(stream))
      else: assert not c.launch(self.polls[card][s.how], 1, 1, [u64(at), u32(s.value)], stream)

  def at_end(self, actor: tuple[int, int]) -> bool: return not self.c.machine.find(actor[1], Stream).queue

  def drop(self, actor: tuple[int, int]) -> None: self.c.machine.find(actor[1], Stream).drop()

  def at(self, word: str) -> int: return self.memory + _offset(word)

  def wait(self, done: Callable[[], bool]) -> None: self.c.machine.run(done, 0.0)

  def load(self, word: str) -> int: return self.c.machine.space.load(self.at(word), 4)

  def store(self, word: str, value: int) -> None: self.c.machine.space.store(self.at(word), 4, value)

  def close(self) -> None: self.c.machine.close()


RIGS: Final[dict[str, Callable[..., Rig]]] = {"AMD": Amd, "NV": Nv, "CUDA": Cuda}
