"""A folder of a moment is removed by who made it, and by no child that ends meanwhile."""
from __future__ import annotations

import os

import pytest

from tests import apart
from tinyhw.core import scratch

FORKED = """
import os, sys
from tinyhw.core import scratch
with scratch.folder("tinyhw-test-") as folder:
  if not (child := os.fork()): sys.exit()
  os.waitpid(child, 0)
  assert os.path.isdir(folder)
assert not os.path.exists(folder)
"""


def test_a_child_leaves_it() -> None: apart.well(apart.run(["-c", FORKED], {}))


def test_it_goes_with_its_block_however_that_ends() -> None:
  with pytest.raises(ValueError), scratch.folder("tinyhw-test-") as folder:
    open(os.path.join(folder, "file"), "w").close()
    raise ValueError
  assert not os.path.exists(folder)
