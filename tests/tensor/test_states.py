"""Tensors through everything that changes their state, against NumPy, on every device: the same steps as
`python -m tinyhw.tools.fuzz.views`, drawn by hypothesis so that what goes wrong comes out short."""
from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from tests.strength import examples, seed
from tinyhw import Tensor
from tinyhw.engine import realize
from tinyhw.ir.ops import Ops
from tinyhw.tools.fuzz.views import DEVICES, STEPS, Seeded, World, WrongValue, chain

pytestmark = pytest.mark.usefixtures("two_cards")
SETS = {"LLVM": ("LLVM",), "PYTHON": ("PYTHON",), "AMD": ("AMD", "AMD:1"), "all": DEVICES}


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
  run_state_machine_as_test(life(SETS[name]), settings=settings(max_examples=examples(6), stateful_step_count=10))


@pytest.mark.parametrize("name", SETS)
def test_chains_of_the_campaign(name: str) -> None:
  for number in range(examples(12)): chain(SETS[name], Seeded(f"{seed(0)}.{number}"))


def test_the_campaign_finds_a_view_that_is_taken_for_its_base(monkeypatch: pytest.MonkeyPatch) -> None:
  def base(node: Any) -> Any:
    while node.op in (Ops.RESHAPE, Ops.DETACH, Ops.PERMUTE, Ops.FLIP): node = node.src[0]
    return node
  monkeypatch.setattr(realize, "_same_order", base)
  with pytest.raises(WrongValue):
    for number in range(100): chain(("PYTHON",), Seeded(f"ci.{number}"))


NOTHING: dict[str, Any] = {
  "+x": lambda x: +x, "abs": Tensor.abs, "trunc": Tensor.trunc, "floor": Tensor.floor, "round": Tensor.round,
  "clip": lambda x: x.clip(0, 256), "maximum": lambda x: x.maximum(-1), "minimum": lambda x: x.minimum(256),
  "squeeze": lambda x: x.squeeze(0), "roll": lambda x: x.roll(3), "dropout": Tensor.dropout,
  "reshape": lambda x: x.reshape(3), "permute": lambda x: x.permute(0), "T": lambda x: x.T, "[...]": lambda x: x[...],
  "[:]": lambda x: x[:], "expand": lambda x: x.expand(3), "pad": lambda x: x.pad([(0, 0)]),
  "shrink": lambda x: x.shrink([None]), "repeat": lambda x: x.repeat(1), "cat": Tensor.cat,
  "split": lambda x: x.split(3)[0], "contiguous": Tensor.contiguous, "clone": Tensor.clone, "detach": Tensor.detach,
  "flip": lambda x: x.flip(()), "flatten": Tensor.flatten, "** 1": lambda x: x ** 1, "** 1.0": lambda x: x ** 1.0,
  "+ 0": lambda x: x + 0, "* 1": lambda x: x * 1, "sum": lambda x: x.reshape(3, 1).sum(1), "relu": Tensor.relu}


VIEWS = {"squeeze", "reshape", "permute", "T", "[...]", "[:]", "shrink", "split", "detach", "flatten"}


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("name", NOTHING)
def test_a_function_gives_a_tensor_of_its_own(name: str, dtype: str) -> None:
  x = Tensor([1, 2, 3], dtype=dtype)
  y = NOTHING[name](x)
  x.assign(Tensor([7, 8, 9], dtype=dtype))
  assert y.tolist() == ([7, 8, 9] if name in VIEWS | {"expand"} else [1, 2, 3]) and x.tolist() == [7, 8, 9]
  y.assign(Tensor([4, 5, 6], dtype=y.dtype))
  assert y.tolist() == [4, 5, 6] and x.tolist() == ([4, 5, 6] if name in VIEWS else [7, 8, 9])
