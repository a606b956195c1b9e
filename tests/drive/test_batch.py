"""Launches of host kernels as one native call: arguments find their places, wrong calls are refused."""
from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw.drive import cpu
from tinyhw.drive.base import Allocation, Launch, Program
from tinyhw.drive.batch import MOST, LaunchRow, batch
from tinyhw.drive.cpu import HostRunner, HostRuntime

Seen = list[tuple[int, ...]]


def noting(seen: Seen, n: int) -> Any:
  """A kernel of n arguments that notes them."""
  def kernel(*words: int) -> None: seen.append(words)
  return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * n)(kernel)


@given(st.data())
@settings(max_examples=examples(30), deadline=None)
def test_each_launch_gets_its_words(data: st.DataObject) -> None:
  word = st.integers(-2**63, 2**63 - 1)
  words = data.draw(st.lists(word, min_size=1, max_size=40))
  place = st.integers(0, len(words) - 1)
  launches = data.draw(st.lists(st.lists(place, min_size=1, max_size=MOST), max_size=6))
  changing = data.draw(st.lists(place, max_size=10, unique=True))
  seen: Seen = []
  kernels = [noting(seen, len(places)) for places in launches]
  rows = [LaunchRow(int(ctypes.cast(k, ctypes.c_void_p).value or 0), tuple(p)) for k, p in zip(kernels, launches)]
  call = batch(cpu._batch_code(), rows, words, changing)
  for _ in range(3):
    given_ = data.draw(st.lists(word, min_size=len(changing), max_size=len(changing)))
    for k, w in zip(changing, given_): words[k] = w
    seen.clear()
    call(*given_)
    assert seen == [tuple(words[k] for k in places) for places in launches]


def test_what_is_no_call_of_it_is_refused_and_launches_nothing() -> None:
  seen: Seen = []
  kernel = noting(seen, 2)
  address = int(ctypes.cast(kernel, ctypes.c_void_p).value or 0)
  call = batch(cpu._batch_code(), [LaunchRow(address, (0, 1))], [1, 2], [1])
  for wrong in ((), (1, 2), (None,), ("1",), (1.5,), (1 << 64,)):
    with pytest.raises((TypeError, OverflowError)): call(*wrong)
  assert not seen
  call(-1)
  assert seen == [(1, -1)]
  with pytest.raises(ValueError, match="no word"): batch(cpu._batch_code(), [LaunchRow(0, (2,))], [1, 2], [])
  with pytest.raises(ValueError, match="no word"): batch(cpu._batch_code(), [], [1, 2], [2])
  with pytest.raises(ValueError, match="17|more than"):
    batch(cpu._batch_code(), [LaunchRow(0, (0,) * (MOST + 1))], [1], [])


def test_the_function_keeps_what_it_launches_with() -> None:
  seen: Seen = []
  kernel = noting(seen, 1)
  def made() -> Any:
    row = LaunchRow(int(ctypes.cast(kernel, ctypes.c_void_p).value or 0), (0,))
    return batch(cpu._batch_code(), [row] * 50, [0], [0])
  calls = [made() for _ in range(20)]
  gc.collect()
  junk = [bytearray(b"\xff" * 600) for _ in range(200)]
  for n, call in enumerate(calls): call(n)
  assert len(junk) == 200 and seen == [(n,) for n in range(20) for _ in range(50)]


def test_a_runner_without_native_code_asks_each_program() -> None:
  """Of a driver's own programs, and where memory was freed."""
  calls: list[Any] = []

  class Other(Program):
    name = "other"
    def __call__(self, buffers: Any, values: Any, grid: Any, block: Any, wait: bool = False) -> None:
      calls.append(([b.address for b in buffers], tuple(values)))

  runner = HostRunner([Launch(Other(), (1, 0), (1, 1, 1), (1, 1, 1))])
  memory = [Allocation(64, 8), Allocation(128, 8)]
  for n in range(2): runner(memory, [(n,)])
  assert calls == [([128, 64], (0,)), ([128, 64], (1,))]
  assert runner.prepared(memory, []) is None


def test_many_buffers_of_one_kernel() -> None:
  from tinyhw import Tensor, TinyJit
  rng = np.random.default_rng(0)
  host = [rng.integers(-9, 9, 5).astype(np.int32) for _ in range(MOST + 4)]
  tensors = [Tensor(h, device="LLVM").realize() for h in host]
  step = TinyJit(lambda *ts: sum(ts[1:], ts[0]).contiguous())
  for n in range(4):
    tensors[n] = Tensor(host[n] + n, device="LLVM").realize()
    host[n] = host[n] + n
    assert (step(*tensors).numpy() == sum(host[1:], host[0])).all()


def test_runtimes_of_the_host_have_it() -> None:
  assert isinstance(HostRuntime().runner([]), HostRunner)
