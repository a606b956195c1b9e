"""Tensors through everything that changes their state, against NumPy, on every device: the same steps as
`python -m tinyhw.tools.fuzz.views`, drawn by hypothesis so that what goes wrong comes out short."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from tinyhw import Device
from tinyhw.engine import realize
from tinyhw.ir.ops import Ops
from tinyhw.tools.fuzz.views import DEVICES, STEPS, Seeded, World, Wrong, chain

SETS = {"LLVM": ("LLVM",), "PYTHON": ("PYTHON",), "AMD": ("AMD", "AMD:1"), "all": DEVICES}


@pytest.fixture(scope="module", autouse=True)
def two_cards() -> Iterator[None]:
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv("MOCKGPU", "gfx1100,gfx1100")
    Device.close()
    yield
    Device.close()


class Drawn:
  """Decisions of hypothesis."""

  def __init__(self, data: Any) -> None: self.data = data
  def below(self, count: int) -> int: return int(self.data.draw(st.integers(0, count - 1)))


def life(devices: tuple[str, ...]) -> type[RuleBasedStateMachine]:
  """The machine of some devices. Some of its lives read everything after each step, others only at the end."""
  class Life(RuleBasedStateMachine):
    @initialize(data=st.data(), looking=st.booleans())
    def start(self, data: Any, looking: bool) -> None:
      self.world, self.looking = World(devices), looking
      self.world.make(Drawn(data))

    @rule(data=st.data(), step=st.sampled_from([*dict.fromkeys(STEPS), "move", "realize", "differentiate", "jit"]))
    def step(self, data: Any, step: str) -> None:
      getattr(self.world, step)(Drawn(data))
      if self.looking: self.world.check(Seeded("in order"))

    def teardown(self) -> None:
      if hasattr(self, "world"): self.world.check(Seeded("in order"))
  return Life


@pytest.mark.parametrize("name", SETS)
def test_a_life_equals_numpy(name: str) -> None:
  run_state_machine_as_test(life(SETS[name]), settings=settings(max_examples=8, stateful_step_count=10))


@pytest.mark.parametrize("name", SETS)
def test_chains_of_the_campaign(name: str) -> None:
  for number in range(25): chain(SETS[name], Seeded(f"ci.{number}"))


def test_the_campaign_finds_a_view_that_is_taken_for_its_base(monkeypatch: pytest.MonkeyPatch) -> None:
  def base(node: Any) -> Any:
    while node.op in (Ops.RESHAPE, Ops.DETACH, Ops.PERMUTE, Ops.FLIP): node = node.src[0]
    return node
  monkeypatch.setattr(realize, "_same_order", base)
  with pytest.raises(Wrong, match="NumPy has"):
    for number in range(100): chain(("PYTHON",), Seeded(f"ci.{number}"))
