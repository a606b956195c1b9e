"""What tests of CUDA's mock share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.mock.cuda.client import Client


@pytest.fixture
def client() -> Iterator[Client]:
  """A program on two cards of different generations."""
  client = Client("sm_90,sm_80")
  yield client
  client.machine.close()
