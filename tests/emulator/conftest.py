"""What tests of the emulator share."""
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tinyhw import Device, Error


@pytest.fixture
def sm_90(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
  """A mock GPU of this generation, new for the test."""
  monkeypatch.setenv("MOCKGPU", "sm_90")
  Device.close()
  yield
  Device.close()


FAR: Final = 1 << 30  # bytes around what is mapped, where a number that was made of a pointer may lie
_NUMBER: Final = re.compile(r"0x[0-9a-f]{9,16}\b|\b\d[\d,]{9,24}\d\b")


def of_this_process(texts: Iterable[str]) -> list[str]:
  """The texts that hold an address of this process."""
  found = [(text, int(n.replace(",", ""), 16 if n.startswith("0x") else 10))
           for text in texts for n in _NUMBER.findall(text)]
  found = [(text, n) for text, n in found if 1 << 33 <= n < 1 << 47]  # others may be anything, or are the kernel's
  if not found: return []
  lines = [line.split()[0].split("-") for line in Path("/proc/self/maps").read_text().splitlines()]
  ranges = [(int(a, 16) - FAR, int(b, 16) + FAR) for a, b in lines]
  return [text for text, n in found if any(a <= n < b for a, b in ranges)]


@pytest.fixture(autouse=True)
def no_address_of_the_host_is_told(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
  """Of all errors that a test makes, on either vendor's engines: their words and fields are the GPU's."""
  told: set[str] = set()
  init = Error.__init__

  def made(self: Error, message: str, **more: Any) -> None:
    init(self, message, **more)
    if Device.machine is not None: return  # KFD's client chooses GPU addresses, and chooses those of the process
    told.update(str(value) for value in (message, *vars(self).values()) if isinstance(value, (str, int)))
  monkeypatch.setattr(Error, "__init__", made)
  yield
  assert not of_this_process(told)


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
  """Of PTX: what compiled code leaves to the reference in launches that end well is what the mark `left` says, patterns
  of how its name begins, and nothing else. The reference does the same, so results would not tell."""
  if not request.path.name.startswith("test_ptx"): return (yield)
  from tinyhw.emulator.engines import ptx_compiled
  onward, found = ptx_compiled.onward, set[str]()

  def seen(grid: Any, running: Any) -> Iterator[Any]:
    yield from onward(grid, running)
    found.update(grid.stats.interpreted, grid.stats.helped)
  monkeypatch.setattr(ptx_compiled, "onward", seen)
  yield
  wanted = [pattern for mark in request.node.iter_markers("left") for pattern in mark.args]
  assert not [name for name in found if not any(re.match(pattern, name) for pattern in wanted)]
