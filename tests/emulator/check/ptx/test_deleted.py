"""Each barrier and wait of compilers' kernels, deleted: the checks must find what is left unordered.

What that is says a model that knows nothing of clocks: two warps touch one byte between the same barriers, and one of
them changes it. It serves kernels whose only order are barriers of whole blocks; of the others the waits are deleted
that each of them needs.
"""
from __future__ import annotations

import inspect
import re
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import tinyhw
from tests.corpus.test_ptx import ROWS, files, prepared
from tests.emulator.ptx import test_kernels as kernels
from tests.strength import THOROUGH
from tinyhw.emulator.check.checker import Checker
from tinyhw.emulator.observe import Access, Observer, Several

BARRIER = re.compile(r"^\s*bar\.sync[^;]*;", re.M)
WAITS = re.compile(r"^\s*(@!?%p\d+ )?(cp\.async\.wait_group|wgmma\.(wait_group|fence)|fence\.proxy\.async)[^;]*;", re.M)


class Model(Observer):
  """Which bytes of shared memory warps touch between barriers, and whether they change them."""

  def __init__(self) -> None: self.races = 0

  def dispatch(self, space: Any, arch: Any, d: Any) -> None: self.epoch: dict[int, int] = defaultdict(int)

  def cohort(self, cohort: Any) -> None:
    # byte -> {epoch: ({warps that read it}, {warp: value that it wrote}, atomic warps)}, and its value
    self.seen: dict[int, dict[int, tuple[set[int], dict[int, int], set[int]]]] = defaultdict(dict)
    self.value: dict[int, int] = {}
    self.racing: set[int] = set()

  def access(self, group: Any, pc: int, instruction: Any, access: Access) -> None:
    if access.segment != "lds": return
    for row, lane in np.argwhere(access.active).tolist():
      warp, first = int(group.waves[row]), int(access.addresses[row, lane])
      for k in range(access.width):
        byte = int(group.workgroups[row]) << 32 | first + k
        reads, writes, atomics = self.seen[byte].setdefault(self.epoch[warp], (set(), {}, set()))
        new = None if access.data is None else int(access.data[row, lane, k])
        if access.kind == "atomic": atomics.add(warp)
        elif access.kind == "load": reads.add(warp)
        elif new is None or new != self.value.get(byte): writes[warp] = -1 if new is None else new
        if access.kind == "store" and new is not None: self.value[byte] = new
        writers = writes.keys()
        if (writers or (reads and atomics)) and len(writers | reads | atomics) > 1: self.races += 1

  def barrier(self, group: Any, pc: int) -> None:
    for warp in group.waves.tolist(): self.epoch[warp] += 1


def launched(row: dict[str, Any], source: bytes, observer: Observer) -> None:
  with tinyhw.Device.observing(observer):
    tinyhw.launch(source, row["kernel"], row["grid"], row["block"], prepared(row).args, "EMU", row["shared"])


def row_of(name: str) -> dict[str, Any]: return next(r for r in ROWS if r["file"] == name + ".ptx")


PLAIN = ["softmax", "scan", "cross_entropy", "layer_norm", "reductions", "layer_norm_backward"]


@pytest.mark.parametrize("case", PLAIN if THOROUGH else PLAIN[:3])
def test_a_deleted_barrier_is_found_where_it_orders_something(case: str) -> None:
  row = row_of(f"triton3.9.0-sm_80-{case}")
  source = files()[row["file"]].decode()
  said = []
  for m in BARRIER.finditer(source):
    model, checker = Model(), Checker({"race"})
    launched(row, (source[:m.start()] + source[m.end():]).encode(), Several([model, checker]))
    assert (len(checker.report) > 0) == (model.races > 0), source.count("\n", 0, m.start()) + 1
    said.append(model.races > 0)
  assert any(said)


NEEDED = ["triton3.9.0-sm_90-matmul_half_out", "triton3.9.0-sm_80-attention", "triton3.4.0-sm_90-matmul_half_out"]


@pytest.mark.parametrize("name", NEEDED if THOROUGH else NEEDED[:1])
def test_a_deleted_wait_is_found(name: str) -> None:
  row = row_of(name)
  source = files()[row["file"]].decode()
  cuts = list(WAITS.finditer(source))
  assert len(cuts) >= 2
  for m in cuts:
    checker = Checker({"race", "wait"})
    launched(row, (source[:m.start()] + source[m.end():]).encode(), checker)
    assert len(checker.report) > 0, f"{source.count(chr(10), 0, m.start()) + 1}: {m[0]}"


NVCC = ("reduce", "scan", "histogram", "matmul", "reverse", "producer")


@pytest.mark.parametrize("name", NVCC if THOROUGH else ("scan", "histogram"))
def test_a_deleted_barrier_of_nvccs_code_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
  """Its kernels race in themselves only between warps: within one the model has nothing to say."""
  source = kernels.MODULES["sm80"].decode()
  calls: list[tuple[Any, ...]] = []
  real = tinyhw.launch
  with monkeypatch.context() as patch:
    patch.setattr(kernels.tinyhw, "launch", lambda *args: calls.append(args) or real(*args))
    for test, function in vars(kernels).items():
      if test.startswith("test_") and name in inspect.getsource(function): function(kernels.MODULES["sm80"])
  _, _, grid, block, args, device, shared = next(c for c in calls if c[1] == name)
  body = re.search(rf"\.visible \.entry {name}\(.*?\n}}\n", source, re.S)
  assert body is not None
  for cut in BARRIER.finditer(body[0]):
    left = body[0][:cut.start()] + body[0][cut.end():]
    model, checker = Model(), Checker({"race"})
    with tinyhw.Device.observing(Several([model, checker])):
      real((source[:body.start()] + left + source[body.end():]).encode(), name, grid, block, args, device, shared)
    found = [f for f in checker.report if "of its warp" not in f.message]
    assert bool(found) == (model.races > 0), cut.start()
