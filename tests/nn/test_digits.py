"""The example network for digits learns, and learns the same on the mock."""
from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from tests.nn.test_gpt2 import device_as_it_was, example
from tests.strength import THOROUGH
from tinyhw import Device

pytestmark = pytest.mark.skipif(find_spec("sklearn") is None, reason="scikit-learn is not installed")
digits = example("digits")
as_it_was = device_as_it_was
STEPS = 20 if THOROUGH else 4


def test_it_learns() -> None:
  losses, right = digits.learn(digits.small_digits(), epochs=20 if THOROUGH else 4)
  assert losses[-1] < losses[0] / 4 and right > (0.97 if THOROUGH else 0.85)


def test_the_same_losses_on_the_mock() -> None:
  """Sums are in another order there, so the last bits differ, and grow."""
  found: dict[str, Any] = {}
  data = digits.small_digits()
  few = *data[:2], *(part[:2] for part in data[2:])  # what is recognised then is the other test's
  for device in ("LLVM", "AMD"):
    Device.DEFAULT = device
    found[device] = digits.learn(few, epochs=1, batch=32, steps=STEPS)[0]
  assert len(found["AMD"]) == STEPS and found["AMD"][-1] < found["AMD"][0]
  np.testing.assert_allclose(found["AMD"], found["LLVM"], rtol=1e-3)
