"""Steps, buffers and what `DEBUG` prints of them; what a TinyJit does with tensors and arguments in single cases."""
from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from tinyhw import Tensor, TinyJit, dtypes
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.kept import Kept
from tinyhw.devices.buffer import Buffer
from tinyhw.engine import run as engine
from tinyhw.engine.run import Step, listening
from tinyhw.function.random import Generator
from tinyhw.jit.arguments import Arguments

X = np.arange(6, dtype=np.float32)


def t(x: Any = X, device: str = "PYTHON") -> Tensor: return Tensor(x, device=device)


def lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, level: int, size: int) -> list[str]:
  """What one new kernel prints."""
  monkeypatch.setattr(engine, "counters", engine.Counters())
  data = t(np.arange(size, dtype=np.float32)).realize()
  capsys.readouterr()
  monkeypatch.setenv("DEBUG", str(level))
  (data * 3 + float(size)).realize()
  monkeypatch.setenv("DEBUG", "0")
  return capsys.readouterr().err.splitlines()


def test_what_each_debug_level_adds(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
  two = lines(capsys, monkeypatch, 2, 1001)
  assert len(two) == 1 and two[0].startswith("PYTHON       1  e_") and " ms in all" in two[0] and "GB/s" in two[0]
  assert two[0].endswith(" MB held")
  three = lines(capsys, monkeypatch, 3, 1002)
  assert len(three) == 4 and three[0].startswith("-- e_") and three[0].endswith("; no options")
  assert [line.split() for line in three[2:]] == [
    [f"{k}:", "1002", "x", "dtypes.float32,", "4,008", "bytes"] for k in (0, 1)]
  four, five, six, seven = (lines(capsys, monkeypatch, level, 999 + level) for level in (4, 5, 6, 7))
  assert four[0].startswith("-- e_") and " uops, " in four[0] and ": compiled in" in four[0]
  assert five[0].startswith("-- e_") and five[1].split()[0] == "0" and "DEFINE_GLOBAL" in five[1]
  # The graph has views and one SINK, the linear program indices.
  for level, graph, linear in ((four, 0, 0), (five, 1, 0), (six, 1, 1), (seven, 1, 1)):
    assert sum(" SINK " in line for line in level) == graph
    assert any(" INDEX " in line and "[" in line.split("INDEX")[1] and not line.startswith("[")
               for line in level) == bool(linear)
  assert len(four) < len(five) < len(six) < len(seven)


def test_machine_code_is_printed_at_the_last_level(capsys: pytest.CaptureFixture[str],
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
  data = t(X, "LLVM").realize()
  for level, there in (("6", False), ("7", True)):
    monkeypatch.setenv("DEBUG", level)
    capsys.readouterr()
    (data * float(level) - 77.0).realize()
    text = capsys.readouterr().err.splitlines()
    assert any(line.strip() in ("ret", "retq") for line in text) == there


def test_copies_are_told_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
  data = t().realize()
  t(X, "LLVM").realize()  # devices tell when they open
  monkeypatch.setattr(engine, "counters", engine.Counters())
  monkeypatch.setenv("DEBUG", "2")
  assert (data.to("LLVM").realize().numpy() == X).all()
  first, *_ = capsys.readouterr().err.splitlines()
  assert first.startswith("LLVM         1  copy from PYTHON") and engine.counters.steps == 1


def test_nothing_has_run_when_a_process_begins() -> None: assert vars(engine.Counters()) == {"steps": 0, "seconds": 0.0}


def test_kernels_are_kept_and_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
  from tinyhw import Device
  kernels = Device["PYTHON"].kernels
  monkeypatch.setattr(Device["PYTHON"], "kernels", Kept(3))
  seen: list[Step] = []
  with listening(seen.append):
    for k in (1, 2, 3, 1, 4, 1): (t().realize() + float(100 + k)).realize()
  made = [s.kernel for s in seen]
  assert made[0] is made[3] and made[5] is not made[0] and len(Device["PYTHON"].kernels) == 3
  assert Device["PYTHON"].kernels is not kernels


def test_memory_goes_back_with_its_last_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
  from tinyhw import Device
  freed: list[Any] = []
  free = type(Device["PYTHON"]).free
  monkeypatch.setattr(type(Device["PYTHON"]), "free", lambda self, a: freed.append(a) or free(self, a))
  buffer = Buffer("PYTHON", 4, dtypes.float32).copyin(memoryview(bytes(16)))
  allocation, other = buffer.allocation, buffer.alias()
  assert other.allocation is allocation
  del other
  gc.collect()
  assert allocation not in freed
  del buffer
  gc.collect()
  assert freed.count(allocation) == 1


def test_a_copy_between_cards_waits_for_both(monkeypatch: pytest.MonkeyPatch) -> None:
  """The source's work is done before, the copy after; within one device neither is waited for."""
  told: list[str] = []

  class Card:
    def __init__(self, name: str) -> None: self.name = name
    def is_peer(self, other: Any) -> bool: return True
    def synchronize(self) -> None: told.append(f"{self.name} waits")
    def copy(self, target: Any, origin: Any, nbytes: int) -> None: told.append(f"{self.name} copies {nbytes}")
  near, far = Card("near"), Card("far")
  made = [Buffer("PYTHON", 4, dtypes.float32) for _ in range(3)]
  for b in made: assert b.allocation is not None
  cards = {id(b): card for b, card in zip(made, (near, far, near))}
  monkeypatch.setattr(Buffer, "_runtime", lambda self: (cards[id(self)], None))
  made[0].copy_from(made[1])
  assert told == ["far waits", "near copies 16", "near waits"]
  told.clear()
  made[0].copy_from(made[2])
  assert told == ["near copies 16"]
  with pytest.raises(InvalidArgument, match="a copy from 20 to 16 bytes"):
    made[0].copy_from(Buffer("PYTHON", 5, dtypes.float32))


def test_draws_have_keys_of_their_own() -> None:
  generator = Generator()
  generator.seed(0x1_2345_6789)
  keys = [generator.next() for _ in range(3)]
  assert keys == [bytes.fromhex("89674523") + n.to_bytes(4, "little") for n in (1, 2, 3)]


def test_arguments_by_name_place_and_rest() -> None:
  def function(a: Any, b: Any = 5, *rest: Any, key: Any = None) -> None: ...
  facts = Arguments(function).call((1, 2, 3, 4), {"key": 7}).facts
  assert {name: f.text for name, f in facts.items() if "mode" not in name} == {
    "a": "1", "b": "2", "args[2]": "3", "args[3]": "4", "key": "7"}
  assert Arguments(function).call((1,), {}).facts["b"].text == "5"
  assert "a" not in Arguments(function).call((1, 2), {}, skip=1).facts


@pytest.mark.parametrize(("one", "same", "other"), [
  (b"ab", b"ab", b"ac"), (bytearray(b"ab"), bytearray(b"ab"), bytearray(b"ac")), (1, 1, True), (0.0, 0.0, -0.0),
  (float("nan"), float("nan"), 1.0), (np.int32(3), np.int32(3), np.int64(3)), ("a", "a", "b"), (None, None, 0),
  (memoryview(b"ab"), memoryview(b"ab"), memoryview(b"ad")), (np.arange(3), np.arange(3), np.arange(4))])
def test_a_jit_notices_another_value(one: Any, same: Any, other: Any) -> None:
  def function(x: Tensor, value: Any) -> Tensor: return x + 1
  jitted = TinyJit(function)
  for _ in range(2): jitted(t(), one)
  assert (jitted(t(), same).numpy() == X + 1).all()
  with pytest.raises(InvalidArgument, match="value"): jitted(t(), other)


def test_a_call_that_assigns_its_argument_shows_it_each_time() -> None:
  @TinyJit
  def step(x: Tensor) -> Tensor:
    x.assign(x * 2)
    return x + 0
  data = t().realize()
  for k in range(1, 5):
    assert (step(data).numpy() == X * 2 ** k).all()
    assert (data.numpy() == X * 2 ** k).all()
  history = (t() + 1)
  for k in range(1, 3):
    assert (step(history).numpy() == (X + 1) * 2 ** k).all() and (history.numpy() == (X + 1) * 2 ** k).all()


def test_a_jit_that_makes_gradients_of_its_argument() -> None:
  @TinyJit
  def step(x: Tensor) -> Tensor: return (x * x).sum().backward()
  data = Tensor(X, device="PYTHON", requires_grad=True)
  for k in range(1, 5):
    step(data)
    assert data.grad is not None and (data.grad.numpy() == 2 * X * k).all(), "gradients add up"


def test_a_value_that_turns_out_to_be_a_view_gets_memory_of_its_own() -> None:
  base = t(np.arange(12, dtype=np.float32).reshape(3, 4)).realize()
  part = base[1:2].sum(0)
  assert (part.realize().numpy() == np.arange(4, 8)).all()
  base.assign(base * 0).realize()
  assert (part.numpy() == np.arange(4, 8)).all()


def test_modes_are_arguments_too() -> None:
  arguments = Arguments(lambda x: x)
  facts = arguments.call((1,), {}).facts
  assert {n: f.text for n, f in facts.items() if n in {"Tensor.training (a mode)", "Tensor.no_grad (a mode)"}} == {
    "Tensor.training (a mode)": str(Tensor.training), "Tensor.no_grad (a mode)": "False"}
  with Tensor.no_grad(): assert arguments.call((1,), {}).facts["Tensor.no_grad (a mode)"].text == "True"
  jitted = TinyJit(lambda x: x + 1)
  for _ in range(2): jitted(t())
  with Tensor.no_grad(), pytest.raises(InvalidArgument, match="no_grad"): jitted(t())
  assert (jitted(t()).numpy() == X + 1).all()


def test_a_first_call_assigns_to_a_value_with_a_history() -> None:
  """Calls that only run, that record, and that replay leave the argument alike."""
  @TinyJit
  def step(x: Tensor) -> Tensor:
    x.assign(x * 2)
    return x + 0
  for k in range(4):
    history = t() + 1
    assert (step(history).numpy() == (X + 1) * 2).all() and (history.numpy() == (X + 1) * 2).all(), k


def test_a_result_that_is_a_leaf_brings_its_gradient() -> None:
  @TinyJit
  def step(x: Tensor) -> Tensor:
    leaf = (x * 1).detach().contiguous().requires_grad_()
    (leaf * leaf).sum().backward()
    return leaf
  for k in range(4):
    leaf = step(t(X + k))
    assert (leaf.numpy() == X + k).all()
    assert leaf.grad is not None and (leaf.grad.numpy() == 2 * (X + k)).all()


def test_arguments_of_the_recorded_call_may_go() -> None:
  jitted = TinyJit(lambda x: x + 1)
  kept = [t(), t()]
  references = [weakref.ref(x) for x in kept]
  for x in kept: jitted(x)
  del x, kept
  gc.collect()
  assert [r() for r in references] == [None, None]


def test_a_tensor_that_became_another_kind_is_told() -> None:
  weight = t().realize()
  jitted = TinyJit(lambda x: x * weight)
  for _ in range(3): assert (jitted(t()).numpy() == X * X).all()
  weight.requires_grad_()
  with pytest.raises(InvalidArgument, match="when a TinyJit recorded, and is"): jitted(t())


def test_what_is_printed_of_time_is_a_time(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
  first = lines(capsys, monkeypatch, 4, 1201)[0]
  assert 0 <= float(first.split("compiled in ")[1].split(" ms")[0]) < 600_000
  one = lines(capsys, monkeypatch, 2, 1202)[0]
  assert 0 <= float(one.split(" ms")[0].split()[-1]) < 600_000
