"""Kernels whose workgroups wait for one another (progress/kernels.c), with arguments and what must come out."""
from __future__ import annotations

import lzma
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinyhw import Device

HERE = Path(__file__).parent / "progress"
Array = np.ndarray[Any, np.dtype[Any]]


@cache
def binary(cpu: str) -> bytes:
  """The code object that progress/make.sh made."""
  return lzma.decompress((HERE / f"{cpu}.co.xz").read_bytes())


def words(n: int) -> Array: return np.zeros(n, np.uint32)
def u32(value: int) -> np.uint32: return np.uint32(value)


@dataclass(frozen=True)
class Case:
  """A launch. `right` says of the arrays that come back whether they are what they must be."""
  kernel: str
  grid: int
  block: int
  args: Callable[[], list[Any]]
  right: Callable[[list[Array]], bool]


def _counted(kernel: str, groups: int, block: int, rounds: int, size: int = 1, times: int = 1) -> Case:
  total = times * rounds * groups * (groups + 1) // 2
  return Case(kernel, groups, block, lambda: [words(size), words(1), u32(rounds)], lambda out: int(out[1][0]) == total)


def _chain(groups: int, back: int) -> Case:
  values, value = [0] * groups, 1
  for g in reversed(range(groups)) if back else range(groups):
    value = values[g] = (value * 3 + g) & 0xFFFFFFFF
  return Case("chain", groups, 32, lambda: [words(groups), words(groups), u32(groups), u32(back)],
              lambda out: out[1].tolist() == values)


def _grid_barrier(groups: int, rounds: int) -> Case:
  state = np.arange(2 * groups, dtype=np.uint32).reshape(2, groups)
  start = state.reshape(-1).copy()
  for k in range(rounds):
    state[~k & 1] = np.roll(state[k & 1], -1) * np.uint32(5) + np.arange(groups, dtype=np.uint32)
  return Case("grid_barrier", groups, 64, lambda: [words(1), start, u32(groups), u32(rounds)],
              lambda out: bool((out[1] == state.reshape(-1)).all()))


def _look_back(groups: int) -> Case:
  data = (np.arange(groups * 128) * 7 % 11).astype(np.uint32)
  return Case("look_back", groups, 128, lambda: [words(1), words(groups), data],
              lambda out: bool((out[2] == np.cumsum(data)).all()))


def _stream_k(groups: int, steps: int, tiles: int) -> Case:
  data = (np.arange(tiles * steps) * 5 % 13).astype(np.uint32)
  sums = data.reshape(tiles, steps).sum(axis=1, dtype=np.uint32)[:, None] * np.arange(1, 65, dtype=np.uint32)
  return Case("stream_k", groups, 64,
              lambda: [words(groups + 1), words(64 * groups), words(64 * tiles), data, u32(groups), u32(steps),
                       u32(tiles)], lambda out: bool((out[2].reshape(tiles, 64) == sums).all()))


CASES = {
  "spin_lock": _counted("spin_lock", 12, 32, 3),
  "sleep_lock": _counted("sleep_lock", 12, 32, 3),
  "ticket_lock": _counted("ticket_lock", 6, 256, 2, 2, 4),
  "lane_lock": Case("lane_lock", 2, 64, lambda: [words(1), words(1), u32(1)], lambda out: int(out[1][0]) == 64 * 65),
  "chain": _chain(12, 0),
  "chain_back": _chain(12, 1),
  "grid_barrier": _grid_barrier(9, 3),
  "look_back": _look_back(6),
  "stream_k": _stream_k(5, 23, 3),
  "counted": Case("counted", 3, 32, lambda: [words(1), words(1), u32(500)],
                  lambda out: int(out[1][0]) == 0xFFFFFFFF),
}
# more workgroups than begin together: they wait for others that have not had a turn
LARGE = {"chain_back": _chain(300, 1), "grid_barrier": _grid_barrier(400, 2), "stream_k": _stream_k(300, 900, 3),
         "sleep_lock": _counted("sleep_lock", 300, 32, 1), "look_back": _look_back(150)}


@contextmanager
def device(patch: pytest.MonkeyPatch, name: str, engine: str) -> Iterator[None]:
  """A device that is opened anew with an engine, and closed at the end."""
  patch.setenv("EMU", engine)
  if name == "AMD": patch.setenv("MOCKGPU", "1")
  Device.close()
  try: yield
  finally: Device.close()
