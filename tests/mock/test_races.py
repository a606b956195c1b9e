"""Races are drawn: what a chip may show some seed shows, and nothing else any."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Final

import pytest

from tests.mock.client import Client
from tests.mock.races import RACES, RIGS, Race, possible
from tests.mock.test_aql import AqlClient, barrier
from tinyhw.autogen import hsa
from tinyhw.autogen import sdma_v6 as s6
from tinyhw.mock.amd.machine import Machine

SEEDS: Final = range(60)


def run(kind: str, seed: int) -> list[str]:
  """The outcomes of all races, one after the other on one machine."""
  rig = RIGS[kind](seed)
  try: return [rig.outcome(race) for race in RACES]
  finally: rig.close()


@cache
def drawn(kind: str) -> list[Counter[str]]:
  """How often each outcome of each race comes."""
  rows = [run(kind, seed) for seed in SEEDS]
  return [Counter(column) for column in zip(*rows)]


@pytest.mark.parametrize("race", RACES, ids=lambda race: race.name)
def test_the_table_has_what_interleavings_of_whole_steps_have(race: Race) -> None:
  assert race.outcomes == possible(race) and len(race.outcomes) > 1


@pytest.mark.parametrize("kind", RIGS)
@pytest.mark.parametrize("number", range(len(RACES)), ids=[race.name for race in RACES])
def test_every_outcome_is_drawn_and_no_other(number: int, kind: str) -> None:
  assert set(drawn(kind)[number]) == RACES[number].outcomes, drawn(kind)[number]


@pytest.mark.parametrize("kind", RIGS)
def test_a_seed_draws_the_same_again(kind: str) -> None:
  for seed in SEEDS[:4]: assert run(kind, seed) == run(kind, seed)


def handed_over(seed: int, waits: bool) -> tuple[int, int]:
  """A producer and a consumer with signals, as HSA has them: an AQL queue makes numbers in one buffer, a copy engine
  brings them to where the host reads. The numbers that it finds. One that forgets looks at the wrong signal."""
  client = Client(Machine(seed=seed))
  q, copy, out = AqlClient(client), client.queue(copy=True), client.alloc(4096)
  made, copied = [q.signal(k) for k in (0, 1)], [out.address + 64 * k for k in (1, 2)]
  for k, number in enumerate((10, 20)):
    q.put(q.launch(1, number, made[k], slot=k))
    if k == 0: q.put(barrier(made[0], done=q.signal(3)))
    seen = made[k if waits else 0] + hsa.amd_signal_t.value.offset
    copy.submit(s6.SDMA_PKT_POLL_REGMEM(func=3, mem_poll=1, addr=seen, value=0, mask=0xFFFF_FFFF, retry_count=0xFFF),
                s6.SDMA_PKT_COPY_LINEAR(count=3, src_addr=q.data.address, dst_addr=out.address + 4 * k),
                s6.SDMA_PKT_FENCE(mtype=3, addr=copied[k], data=1))
    if k == 0 and waits:  # the buffer is used again when it was copied
      assert client.port.wait(lambda: out.u32[16] == 1, 0.0)
  assert client.port.wait(lambda: out.u32[32] == 1, 0.0)
  found = out.u32[0], out.u32[1]
  client.run()
  assert [q.value(k) for k in (0, 1, 3)] == [0, 0, 0]
  client.port.end()
  client.machine.close()
  return found


def test_a_producer_and_a_consumer_with_signals() -> None:
  seeds = range(40)
  assert {handed_over(seed, waits=True) for seed in seeds} == {(10, 20)}
  wrong = {handed_over(seed, waits=False) for seed in seeds}
  assert wrong == {(10, 10), (20, 20), (10, 20)}
