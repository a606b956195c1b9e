"""What is kept of work that comes again, beside a model: a list of what was kept, the newest last."""
from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.strength import examples
from tinyhw.core.kept import Kept


@dataclass(eq=False)
class Thing:
  """Made of what may change."""
  stale: bool = False

  def stands(self) -> bool: return not self.stale


KEYS = st.integers(0, 6)


class Laws(RuleBasedStateMachine):
  """Each rule does the same to the store and to the model."""

  @initialize(limit=st.integers(1, 5))
  def begin(self, limit: int) -> None:
    self.kept, self.limit = Kept[int, Thing](limit), limit
    self.model: list[tuple[int, Thing]] = []

  def _put(self, key: int, thing: Thing) -> None:
    self.model = [*(row for row in self.model if row[0] != key), (key, thing)][-self.limit:]

  @rule(key=KEYS)
  def keep(self, key: int) -> None:
    thing = Thing()
    assert self.kept.keep(key, thing) is thing
    self._put(key, thing)

  @rule(key=KEYS)
  def made(self, key: int) -> None:
    fresh, known = Thing(), dict(self.model).get(key)
    assert self.kept.made(key, lambda: fresh) is (known or fresh)
    if known is None: self._put(key, fresh)

  @rule(key=KEYS)
  def cannot_be_made(self, key: int) -> None:
    def make() -> Thing: raise LookupError("no memory is there")
    if dict(self.model).get(key) is not None: self.kept.made(key, make)  # nothing is to be made
    else:
      with pytest.raises(LookupError): self.kept.made(key, make)

  @rule(key=KEYS, stale=st.booleans())
  def changes(self, key: int, stale: bool) -> None:
    if (thing := dict(self.model).get(key)) is not None: thing.stale = stale

  @rule(limit=st.integers(1, 5))
  def other_limit(self, limit: int) -> None:
    """It counts when the next thing is kept."""
    self.kept.limit = self.limit = limit

  @rule()
  def forget(self) -> None:
    self.kept.clear()
    self.model.clear()

  @invariant()
  def same(self) -> None:
    assert list(self.kept.items()) == self.model
    for key in range(7):
      thing = dict(self.model).get(key)
      assert self.kept.get(key) is thing
      assert self.kept.standing(key) is (None if thing is None or thing.stale else thing)


def test_laws() -> None:
  run_state_machine_as_test(Laws, settings=settings(max_examples=examples(20), stateful_step_count=25))  # type: ignore[no-untyped-call]


def test_of_the_old_the_first_goes() -> None:
  kept = Kept[str, int](2)
  for n, key in enumerate(("a", "b", "a", "c")): kept.keep(key, n)
  assert kept == {"a": 2, "c": 3}


def test_what_asks_whether_it_stands_may_raise() -> None:
  """A thing's `stands` may find that memory is gone: who asks hears of it, and it is kept."""
  class Gone:
    def stands(self) -> bool: raise LookupError("no memory is there")

  kept = Kept[int, Gone](1)
  kept.keep(0, Gone())
  with pytest.raises(LookupError, match="no memory"): kept.standing(0)
  assert len(kept) == 1


def test_threads_share_one() -> None:
  """Whatever threads do meanwhile: no error, no more than each thread's own beyond the limit, and what is found is what
  was kept."""
  kept, errors = Kept[int, int](3), list[BaseException]()

  def work(first: int) -> None:
    try:
      for n in range(3000):
        key = (first + n) % 11
        kept.keep(key, key)
        found = kept.get(key)
        assert found is None or found == key
    except BaseException as error: errors.append(error)

  threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
  for thread in threads: thread.start()
  for thread in threads: thread.join()
  assert not errors and len(kept) <= 3 + len(threads)
