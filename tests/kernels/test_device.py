"""Memory of a device in use: what is held, the most that was, and what is given out again."""
from __future__ import annotations

from collections.abc import Iterator

import pytest

from tinyhw import Device
from tinyhw.core.errors import DeviceError, ValueLost
from tinyhw.devices.registry import OpenDevice


@pytest.fixture(params=["AMD", "EMU", "LLVM"])
def opened(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenDevice]:
  Device.close()
  monkeypatch.setenv("MOCKGPU", "1")
  yield Device[request.param]
  Device.close()


def test_what_is_freed_is_not_held_and_is_given_out_again(opened: OpenDevice) -> None:
  a, b = opened.alloc(4096), opened.alloc(8192)
  both = a.size + b.size
  assert opened.used == opened.peak == both and set(opened.held) == {a, b}
  opened.free(a)
  assert opened.used == b.size and opened.peak == both and set(opened.held) == {b}
  assert opened.alloc(4096) is a and opened.used == opened.peak == both
  other = opened.alloc(4096)
  assert other is not a and opened.used == opened.peak == both + a.size
  for allocation in (a, b, other): opened.free(allocation)
  assert opened.used == 0 and opened.peak == both + a.size
  opened.forget_peak()
  assert opened.peak == 0
  opened.trim()
  assert opened.alloc(8192) is not b


def test_a_closed_device_takes_and_gives_no_memory(opened: OpenDevice) -> None:
  a = opened.alloc(4096)
  opened.close()
  opened.free(a)  # what went with the device is nobody's
  assert opened.used == 0 and not opened.held
  with pytest.raises((DeviceError, ValueLost), match="was closed"): opened.alloc(4096)
