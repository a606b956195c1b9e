"""Random work on two GPUs, whatever order the machine gives its queues: later work sees what earlier work wrote."""
from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw.drive.amd.device import AMDRuntime
from tinyhw.mock.amd.machine import Machine
from tinyhw.mock.amd.port import MockPort

SIZE = 64
buffer = st.integers(0, 2)
step = st.one_of(
  st.tuples(st.just("in"), st.integers(0, 1), buffer, st.integers(0, 100)),
  st.tuples(st.just("add"), st.integers(0, 1), buffer, buffer, buffer),
  st.tuples(st.just("copy"), st.integers(0, 1), buffer, buffer),
  st.tuples(st.just("peer"), st.integers(0, 1), buffer, buffer),
  st.tuples(st.just("out"), st.integers(0, 1), buffer),
)


@settings(max_examples=examples(80), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(step, max_size=25), st.integers(0, 1000))
def test_work_is_seen_in_the_order_it_was_queued(add_object: bytes, steps: list[Any], seed: int) -> None:
  run(Machine("gfx1100,gfx1100", seed=seed), add_object, steps)


@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(step, max_size=12), st.integers(0, 1000))
def test_also_through_caches(add_object: bytes, steps: list[Any], seed: int) -> None:
  machine = Machine("gfx1100,gfx1100", seed=seed, memory="weak")
  run(machine, add_object, steps)
  assert machine.findings == []


def run(machine: Machine, add_object: bytes, steps: list[Any]) -> None:
  """Do the steps on the two GPUs of a machine and hold what they leave against a model."""
  port = MockPort(machine)
  gpus = [AMDRuntime(port, i, timeout_s=20) for i in range(2)]
  adds = [gpu.load(add_object, "add") for gpu in gpus]
  memory = [[gpu.alloc(4 * SIZE) for _ in range(3)] for gpu in gpus]
  model = np.zeros((2, 3, SIZE), np.float32)
  for gpu, rows in zip(gpus, memory):
    for row in rows: gpu.copyin(row, memoryview(bytes(4 * SIZE)))

  def check(g: int, b: int) -> None:
    got = np.empty(SIZE, np.float32)
    gpus[g].copyout(memoryview(got).cast("B"), memory[g][b])
    assert np.array_equal(got, model[g, b]), (g, b)

  for kind, g, *rest in steps:
    match kind, *rest:
      case "in", b, value:
        model[g, b] = value + np.arange(SIZE)
        gpus[g].copyin(memory[g][b], memoryview(model[g, b].copy()).cast("B"))
      case "add", out, a, b:
        model[g, out] = model[g, a] + model[g, b]
        adds[g]([memory[g][out], memory[g][a], memory[g][b]], [], (1, 1, 1), (SIZE, 1, 1))
      case "copy", to, source:
        model[g, to] = model[g, source]
        gpus[g].copy(memory[g][to], memory[g][source], 4 * SIZE)
      case "peer", to, source:
        model[g, to] = model[1 - g, source]
        gpus[g].copy(memory[g][to], memory[1 - g][source], 4 * SIZE)
      case "out", b: check(g, b)
  for g in range(2):
    for b in range(3): check(g, b)
  port.end()
  port.machine.close()
