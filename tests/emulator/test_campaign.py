"""A bounded part of the random campaign: always the same programs, each kind of them."""
from __future__ import annotations

import pytest

from tinyhw.tools.fuzz.campaign import run

PROGRAMS = {"instructions": 6, "programs": 6, "bytes": 1200}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_random_machine_code(kind: str) -> None:
  assert run(300, PROGRAMS[kind], 1_000_000, kind)[kind][0] == PROGRAMS[kind]
