"""Variables: another value without another kernel."""
from __future__ import annotations

import pytest

from tinyhw import Device, Tensor, TinyJit, Variable
from tinyhw.core.errors import InvalidArgument


def test_values_change_without_new_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
  n, x = Variable("n", 1, 100), Tensor([1, 2, 3])
  with pytest.raises(InvalidArgument, match="has no value; give it one"): x + n
  found = [(x * n.bind(i) + n).tolist() for i in (2, 5)]
  loaded = Device[x.device].kernels
  kernels = len(loaded)
  lazy = x * n
  assert found == [[4, 6, 8], [10, 15, 20]] and (x * n.bind(7) + n).tolist() == [14, 21, 28]
  assert len(loaded) == kernels
  assert lazy.tolist() == [5, 10, 15] and len(loaded) == kernels + 1
  with pytest.raises(InvalidArgument, match=r"101 is outside of 1\.\.100"): n.bind(101)


def test_a_replay_uses_the_value_of_the_day() -> None:
  n = Variable("m", 0, 9)
  f = TinyJit(lambda x: (x + n).realize())
  found = []
  for i in range(4):
    n.bind(i)
    found.append(f(Tensor([10])).item())
  assert found == [10, 11, 12, 13]


@pytest.mark.parametrize("device", ["LLVM", "PYTHON", "AMD"])
def test_several_variables_keep_their_order(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("MOCKGPU", "1")
  x = Tensor([1, 2, 3], device=device)
  for a, b in ((3, 5), (4, 2)):
    late, early = Variable("z", 1, 10).bind(a), Variable("a", 1, 10).bind(b)
    assert (x * late * 100 + early).tolist() == [i * a * 100 + b for i in (1, 2, 3)]
    assert (x * early * 100 + late).tolist() == [i * b * 100 + a for i in (1, 2, 3)]


def test_a_graph_in_memory_is_of_its_value() -> None:
  n, x = Variable("k", 1, 9).bind(5), Tensor([1.0, 2.0], requires_grad=True)
  kept = x * n
  view = kept.flip(0)
  assert kept.tolist() == [5, 10]
  n.bind(6)
  assert ((x * n).tolist(), kept.tolist(), view.tolist()) == ([6, 12], [5, 10], [10, 5])


def test_what_a_launch_does_counts_its_own_values() -> None:
  """The estimate of a kernel with a size that launches decide is that of the launch, not of the most."""
  from tinyhw.engine.run import Step, listening
  found: list[int] = []
  def told(step: Step) -> None:
    if step.kernel is not None: found.append(step.operations)
  x = Tensor.arange(1000).float().realize()
  with listening(told):
    for k in (10, 900): (x[:Variable("n", 1, 1000).bind(k)] * 3).contiguous().realize()
  assert found == [10, 900]
