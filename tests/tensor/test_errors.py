"""Mistakes in the use of Tensor: each one clear error."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhw import Device, Tensor, dtypes
from tinyhw.core.errors import DeviceError, InvalidArgument, Unsupported
from tinyhw.devices.registry import _OPENERS, KINDS, Devices

MISTAKES: list[tuple[str, Callable[[], Any], str]] = [
  ("ragged", lambda: Tensor([[1, 2], [3]]), "lengths 1, 2 side by side"),
  ("mixed", lambda: Tensor([[1, 2], 3]), "a list beside a number"),
  ("string", lambda: Tensor("abc"), "cannot be made from a str"),
  ("object array", lambda: Tensor(np.array([None])), "an array of object"),
  ("overflow", lambda: Tensor([2**40], dtype="int32"), "does not fit dtypes.int32; give a wider dtype"),
  ("dtype name", lambda: Tensor([1], dtype="float33"), "no dtype is called 'float33'"),
  ("device", lambda: Tensor([1], device="ABACUS"), "no device kind is called 'ABACUS'; there are LLVM"),
  ("device number", lambda: Tensor([1], device="AMD:x"), "no number after the colon"),
  ("broadcast", lambda: Tensor([1, 2]) + Tensor([1, 2, 3]), r"shapes \(2,\), \(3,\) do not broadcast"),
  ("reshape", lambda: Tensor([1, 2]).reshape(3), "with 2 elements does not reshape"),
  ("expand", lambda: Tensor([1, 2]).expand(3), "does not expand to"),
  ("permute", lambda: Tensor([[1]]).permute(0, 0), "not an order of the 2 axes"),
  ("axis", lambda: Tensor([1]).sum(1), "axis 1 of a tensor of shape"),
  ("matmul", lambda: Tensor([[1, 2]]) @ Tensor([[1, 2]]), "2 columns meet 1 rows"),
  ("shrink", lambda: Tensor([1]).shrink([(0, 2)]), "do not fit shape"),
  ("pad", lambda: Tensor([1]).pad([(1, 1), (1, 1)]), "padding"),
  ("cat", lambda: Tensor([[1]]).cat(Tensor([[1, 2]])), "do not join along axis 0"),
  ("index", lambda: Tensor([1])[0, 0], "too many indices: 2 for shape"),
  ("mask", lambda: Tensor([1])[Tensor([True, False])], "a mask of shape"),
  ("index type", lambda: Tensor([1])[Tensor([1.0])], "use integers, or a mask"),
  ("float index", lambda: Tensor([1])[1.5], "float is not an index"),
  ("item", lambda: Tensor([1, 2]).item(), "it is for one element"),
  ("truth", lambda: bool(Tensor([1, 2])), "use any"),
  ("bits of floats", lambda: Tensor([1.0]) & 1, "it is for integers"),
  ("bitcast", lambda: Tensor([1, 2, 3], dtype="int8").bitcast(dtypes.int32), "their sizes differ"),
  ("assign shape", lambda: Tensor([1, 2]).assign(Tensor([1, 2, 3])), "to a tensor of shape"),
  ("assign type", lambda: Tensor([1, 2]).assign(Tensor([1.0, 2.0])), "cast the value first"),
  ("devices", lambda: Tensor([1]) + Tensor([1], device="PYTHON"), "operands on LLVM and PYTHON"),
  ("operand", lambda: Tensor([1]) + "x", "is not a number or a Tensor"),
  ("empty max", lambda: Tensor([]).max(), r"^max\(\): Expected reduction dim to be specified"),
  ("targets", lambda: Tensor([[1.0, 2]]).cross_entropy(Tensor([1, 2])), "need targets of shape"),
]


@pytest.mark.parametrize(("make", "message"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_a_mistake_is_one_clear_error(make: Callable[[], Any], message: str) -> None:
  with pytest.raises((InvalidArgument, TypeError), match=message): make()


def test_an_index_out_of_range() -> None:
  with pytest.raises(IndexError, match="index 3 of axis 0"): Tensor([1, 2, 3])[3]


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - _OPENERS.keys()))
def test_a_device_that_is_not_built_says_so(kind: str) -> None:
  with pytest.raises(Unsupported, match=f"unsupported device {kind}; it would be .*; built are LLVM"):
    Tensor([1], device=kind)


def test_amd_without_card_and_mock_says_both_ways_on(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.delenv("MOCKGPU", raising=False)
  monkeypatch.setattr("os.path.exists", lambda path: False)
  with pytest.raises(DeviceError, match="no /dev/kfd; use a machine with an AMD GPU .* or set MOCKGPU=1"):
    Devices()["AMD"]


def test_names_of_devices(monkeypatch: pytest.MonkeyPatch) -> None:
  assert [Device.canonicalize(n) for n in ("amd", "AMD:0", "amd:1", "llvm")] == ["AMD", "AMD", "AMD:1", "LLVM"]
  assert [Device.canonicalize(n) for n in ("CPU", "cpu:1", "Clang", "GPU")] == ["LLVM", "LLVM:1", "C", "CL"]
  monkeypatch.setenv("DEV", "python")
  assert Devices().DEFAULT == "PYTHON"
  monkeypatch.delenv("DEV")
  assert Devices().DEFAULT == "LLVM"
