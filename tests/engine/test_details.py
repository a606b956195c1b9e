"""Details of memory, steps and TinyJit that programs which go well pass by."""
from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from tests.devices.test_closed import run_apart
from tinyhw import Device, Tensor, TinyJit, dtypes
from tinyhw.core.errors import InvalidArgument, ValueLost
from tinyhw.devices.buffer import Buffer, buffer_of
from tinyhw.engine.realize import home, realize_nodes
from tinyhw.engine.run import Step, listening
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp
from tinyhw.jit.arguments import Arguments

X = np.arange(6, dtype=np.float32)


def t(x: Any = X, **more: Any) -> Tensor: return Tensor(x, device="PYTHON", **more)


@pytest.mark.parametrize("debug", ["0", "2"])
def test_memory_of_dropped_work_is_lost_until_it_is_written_again(debug: str, monkeypatch: pytest.MonkeyPatch) -> None:
  device, clock = Device["PYTHON"], [5]
  steps: list[Step] = []
  with listening(steps.append): (t().realize() + 1234.0).realize()
  kernel = steps[-1].kernel
  assert kernel is not None
  monkeypatch.setattr(type(device), "stamp", lambda self: clock[0])
  monkeypatch.setenv("DEBUG", debug)
  made = [Buffer("PYTHON", 6, dtypes.float32) for _ in range(4)]
  gone, copied, stepped = (b.copyin(memoryview(X).cast("B")) for b in made[:3])
  other, unwritten = gone.alias(), made[3]
  assert unwritten.allocation is not None
  clock[0] = 8
  kept = Buffer("PYTHON", 6, dtypes.float32).copyin(memoryview(X).cast("B"))
  for b in (gone, other, kept, unwritten): assert not b.lost and b.allocation is not None
  monkeypatch.setattr(device.runtime, "dropped", ((1, 1), (3, 5)), raising=False)
  for b in (gone, other):
    assert b.lost and repr(b).endswith("lost)")
    for use in (b.check, lambda b=b: b.allocation, lambda b=b: b.copyout(memoryview(bytearray(24)))):
      with pytest.raises(ValueLost, match=r"6 x .*float.* was never computed: its kernel was stopped"): use()
  for b in (kept, unwritten):
    b.check()
    assert not b.lost and b.allocation is not None
  copied.copyin(memoryview(X).cast("B"))
  Step.of(kernel, (stepped, kept)).run()
  for b, wanted in ((copied, X), (stepped, X + 1234)):
    assert not b.lost and np.frombuffer(b.copyout(memoryview(bytearray(24))), np.float32).tolist() == wanted.tolist()
  Step.of(None, (gone, kept)).run()
  assert not gone.lost and not other.lost


def test_who_listens_hears_no_more_afterwards() -> None:
  heard: list[Step] = []
  with listening(heard.append): (t() + 77.0).realize()
  count = len(heard)
  (t() + 77.0).realize()
  assert count == len(heard) > 0


def test_what_an_argument_is_called() -> None:
  def function(*values: Any) -> None: ...
  values = bytearray(b"ab"), memoryview(b"abc"), b"a", np.zeros((2, 3), np.int8), np.int8(3), 0.5
  texts = [f.text for name, f in Arguments(function).call(values, {}).facts.items() if "mode" not in name]
  assert texts[:2] == ["2 bytes", "3 bytes"] and texts[2:4] == ["b'a'", "an array (2, 3) of int8"]
  assert "3" in texts[4] and texts[5] == "0.5"


def test_a_first_call_leaves_histories_and_takes_assignments() -> None:
  """Whether it only runs, records or replays."""
  @TinyJit
  def doubled(x: Tensor) -> Tensor:
    x.assign(x * 2)
    return x + 0

  @TinyJit
  def plain(x: Tensor) -> Tensor: return x * 3
  for k in range(4):
    leaf = t(requires_grad=True)
    history = leaf + 1
    assert (plain(history).numpy() == (X + 1) * 3).all(), k
    history.sum().backward()
    assert leaf.grad is not None and leaf.grad.tolist() == [1.0] * 6, k
    assert (doubled(history).numpy() == (X + 1) * 2).all() and (history.numpy() == (X + 1) * 2).all(), k


def test_what_only_a_cycle_keeps_is_not_kept() -> None:
  @TinyJit
  def function(x: Tensor) -> Tensor:
    circle: list[Any] = [x + 1]
    circle.append(circle)
    return circle[0] * 2
  gc.disable()
  try:
    for k in range(4): assert (function(t(X + k)).numpy() == (X + k + 1) * 2).all()
  finally: gc.enable()
  kept: list[Tensor] = []

  @TinyJit
  def keeps(x: Tensor) -> Tensor:
    kept.append(x + 1)
    return kept[-1] * 2
  keeps(t())
  with pytest.raises(InvalidArgument, match="keeps a tensor that it made"): keeps(t())


@pytest.mark.parametrize("write", [Tensor.assign, Tensor.replace])
def test_state_that_is_only_written(write: Any) -> None:
  state = t(X * 0).realize()

  @TinyJit
  def function(x: Tensor) -> Tensor:
    write(state, x * 2)
    return x + 1
  for k in range(5):
    assert (function(t(X + k)).numpy() == X + k + 1).all() and (state.numpy() == (X + k) * 2).all(), k


def test_parameters_are_found_again_in_each_replay() -> None:
  """As they were, with other values, and of another kind."""
  weight = t(X + 1).realize()
  function = TinyJit(lambda x: x * weight)
  for k in range(6):
    if k == 4: weight.assign(t(X + 9)).realize()
    assert (function(t(X + k)).numpy() == (X + k) * (X + (9 if k >= 4 else 1))).all(), k
  weight.replace(t(X.reshape(2, 3)))
  with pytest.raises(InvalidArgument, match=r"when a TinyJit recorded, and is"): function(t())


CLOSED = """
f = TinyJit(lambda x: x + 1)
for k in range(4): assert f(Tensor([1.0, k], device=NAME)).tolist() == [2, k + 1]
Device.close()
text = refused(f, Tensor([1.0, 2.0], device=NAME), by=ValueLost)
assert "recorded went when the device was closed" in text, text
f.reset()
for k in range(4): assert f(Tensor([1.0, k], device=NAME)).tolist() == [2, k + 1]
"""


def test_a_recording_goes_with_its_device() -> None: run_apart(CLOSED, "PYTHON")


def test_what_turns_out_to_be_a_view_gets_memory_of_its_own() -> None:
  """A sum over an axis of one element, of a part of some memory."""
  base = t(X.reshape(2, 3)).realize()
  memory = home(base.uop)
  node = UOp(Ops.REDUCE_AXIS, dtypes.float32, (base.uop.shrink(((1, 2), (0, 3))),), (Ops.ADD, (0,)))
  whole = UOp(Ops.REDUCE_AXIS, dtypes.float32, (base.uop.reshape((1, 6)),), (Ops.ADD, (0,)))
  realize_nodes([node, whole])
  found, same = home(node), home(whole)
  assert found is not None and found.op is Ops.BUFFER and found is not memory and same is memory
  assert np.frombuffer(buffer_of(found).copyout(memoryview(bytearray(12))), np.float32).tolist() == [3, 4, 5]
  realize_nodes([node])
  assert home(node) is found
