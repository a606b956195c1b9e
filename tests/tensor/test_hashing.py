"""Digests against Python's hashlib."""
from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw import Tensor, TinyJit
from tinyhw.core.errors import InvalidArgument, InvalidType
from tinyhw.function.hashing import _FUNCTIONS


def digest(name: str, message: bytes) -> bytes:
  if name.startswith("shake"): return hashlib.new(name, message).digest(_FUNCTIONS[name][1])  # type: ignore[call-arg]
  return hashlib.new(name, message).digest()


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_messages_around_the_size_of_a_block(name: str) -> None:
  size = _FUNCTIONS[name][0]
  for length in (0, 1, size - 1, size, size + 1):
    message = bytes((7 * i + length) % 256 for i in range(length))
    assert bytes(Tensor(message).keccak(name).data()) == digest(name, message)


@pytest.mark.parametrize("device", ["PYTHON", "AMD"])
def test_devices(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("MOCKGPU", "1")
  assert bytes(Tensor(b"abc", device=device).keccak().data()) == digest("sha3_256", b"abc")


@settings(max_examples=examples(10), deadline=None)
@given(st.lists(st.integers(0, 3), max_size=2), st.integers(0, 20), st.sampled_from(sorted(_FUNCTIONS)))
def test_rows_of_messages(lead: list[int], length: int, name: str) -> None:
  rows = np.arange(int(np.prod(lead)) * length, dtype=np.uint8).reshape(*lead, length)
  found = Tensor(rows).keccak(name).numpy()
  assert found.shape == (*lead, _FUNCTIONS[name][1])
  flat = found.reshape(-1, found.shape[-1])
  wanted = [digest(name, row.tobytes()) for row in rows.reshape(-1, length)] if rows.size else None
  if wanted is None: wanted = [digest(name, b"")] * len(flat)
  assert [row.tobytes() for row in flat] == wanted


def test_in_a_recording() -> None:
  function = TinyJit(lambda x: x.keccak("sha3_224"))
  for k in range(4): assert bytes(function(Tensor(bytes([k] * 5))).data()) == digest("sha3_224", bytes([k] * 5))


def test_refused() -> None:
  with pytest.raises(InvalidArgument, match="keccak 'md5' is none of sha3_224"): Tensor(b"a").keccak("md5")
  with pytest.raises(InvalidType, match="a message is a row of uint8"): Tensor([1]).keccak()
