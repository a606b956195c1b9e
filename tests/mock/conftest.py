"""What tests of the mock share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tinyhw.mock.amd.chip import onecall


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
  """Of each submission that was one call: how many packets it executed."""
  packets: list[int] = []
  run = onecall.OneCall.run
  def watched(self: onecall.OneCall, most: int) -> int:
    done = run(self, most)
    packets.append(done)
    return done
  monkeypatch.setattr(onecall.OneCall, "run", watched)
  yield packets
