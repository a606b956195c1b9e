"""Mappings of a port against a model of the process's pages: no view ever lies over a page that is not there."""
from __future__ import annotations

import ctypes
import gc
import mmap
import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw.core.errors import InvalidArgument
from tinyhw.core.mapped import PAGE, Mappings, mapped_file

PAGES = 6
STEPS = st.tuples(st.sampled_from(["map", "reserve", "unmap", "view", "drop", "cycle"]), st.integers(0, PAGES - 1),
                  st.integers(1, 3))


@settings(max_examples=examples(150))
@given(st.lists(STEPS, max_size=25))
def test_views_keep_their_pages(steps: list[tuple[str, int, int]]) -> None:
  # The addresses are those of a real mapping, so that views are real; the pages that the port has are a model.
  memory = mmap.mmap(-1, PAGES * PAGE)
  base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
  state = ["none"] * PAGES            # none, mapped, reserved, or zeros
  def pages(address: int, size: int) -> range: return range((address - base) // PAGE, (address - base + size) // PAGE)
  def unmap(address: int, size: int) -> None:
    for p in pages(address, size):
      assert not any(p in seen for seen, _ in views), "a page of a living view was unmapped"
      state[p] = "none"
  def blank(address: int, size: int) -> None:
    for p in pages(address, size): state[p] = "zeros"
  mappings = Mappings(unmap, blank)
  views: list[tuple[range, Any]] = []
  for kind, page, count in steps:
    count = min(count, PAGES - page)
    at, size = base + page * PAGE, count * PAGE
    if kind in ("map", "reserve"):
      mappings.add(at, size, usable=kind == "map")
      state[page:page + count] = ["mapped" if kind == "map" else "reserved"] * count
    elif kind == "unmap": mappings.unmap(at, size)
    elif kind == "drop" and views: del views[page % len(views)]
    elif kind == "cycle" and views:
      cycle: list[Any] = [views.pop(page % len(views))]
      cycle.append(cycle)
      del cycle
      gc.collect(0)
    elif kind == "view":
      if all(mappings.at(base + p * PAGE) is not None and state[p] == "mapped" for p in range(page, page + count)):
        views.append((range(page, page + count), mappings.view(at, size)[:8].cast("Q")))
      else:
        with pytest.raises(InvalidArgument, match="is not mapped in this process"): mappings.view(at, size)
    assert all(state[p] != "none" for seen in [seen for seen, _ in views] for p in seen)
  views.clear()
  gc.collect(0)
  assert not mappings._waiting and not mappings._views
  assert all(s in ("mapped", "reserved", "none") for s in state)


def test_pages_go_when_the_port_and_its_views_are_one_cycle() -> None:
  memory = mmap.mmap(-1, PAGE)
  at, gone = ctypes.addressof(ctypes.c_char.from_buffer(memory)), []
  mappings = Mappings(lambda address, size: gone.append(address), lambda address, size: None)
  mappings.add(at, PAGE)
  cycle: list[Any] = [mappings, mappings.view(at, 16)]
  cycle.append(cycle)
  mappings.unmap(at, PAGE)
  assert not gone
  del cycle, mappings
  gc.collect()
  assert gone == [at]


def pages(count: int) -> tuple[mmap.mmap, int]:
  """Real memory, and its address."""
  memory = mmap.mmap(-1, count * PAGE)
  return memory, ctypes.addressof(ctypes.c_char.from_buffer(memory))


def test_pages_that_nobody_sees_go_at_once() -> None:
  """Whole pages, and of a range that a view covers in part all wait; what the view sees reads as zeros."""
  memory, at = pages(4)
  gone: list[tuple[int, int]] = []
  blank: list[tuple[int, int]] = []
  mappings = Mappings(lambda *x: gone.append(x), lambda *x: blank.append(x))
  mappings.add(at, 4 * PAGE)
  view = mappings.view(at + 2 * PAGE + 8, 16)
  mappings.unmap(at, PAGE + 1)
  assert gone == [(at, 2 * PAGE)] and not blank
  mappings.unmap(at + 2 * PAGE, 2 * PAGE)
  assert gone == [(at, 2 * PAGE)] and blank == [(at + 2 * PAGE, PAGE)]
  del view
  assert gone == [(at, 2 * PAGE), (at + 2 * PAGE, 2 * PAGE)] and not list(mappings)


def test_a_view_that_goes_while_pages_are_unmapped_is_not_forgotten() -> None:
  memory, at = pages(2)
  gone, views = [], []

  def unmap(address: int, size: int) -> None:
    gone.append(address)
    views.clear()  # as a collection of garbage may do, at any place
  mappings = Mappings(unmap, lambda address, size: None)
  mappings.add(at, 2 * PAGE)
  views.append(mappings.view(at, 8))
  mappings.unmap(at, PAGE)
  assert not gone
  mappings.unmap(at + PAGE, PAGE)
  assert gone == [at + PAGE, at]


def test_a_file_is_mapped_whatever_its_descriptor() -> None:
  """A process that has closed its input gets number 0 for the next file."""
  made, own = os.memfd_create("mapped"), os.dup(0)
  os.ftruncate(made, PAGE)
  try:
    os.dup2(made, 0)
    for number in (0, made):
      one, other = mapped_file(number, PAGE), mapped_file(made, PAGE)
      one[number] = 77
      assert other[number] == 77 and os.pread(made, 1, number) == b"M"
  finally:
    os.dup2(own, 0)
    for fd in (made, own): os.close(fd)
