"""What the checkpoints in this folder hold, in NumPy: `make.py` writes them with PyTorch, the tests read them."""
from __future__ import annotations

from typing import Any

import numpy as np

BASE = np.arange(24, dtype=np.float32).reshape(4, 6) / 7

PLAIN: dict[str, np.ndarray[Any, Any]] = {
  "float64": np.array([1.5, -2.25, np.inf]), "float32": BASE, "float16": BASE.astype(np.float16),
  "int64": np.array([-2**62, 3]), "int32": np.array([[1], [-2]], np.int32), "int16": np.array([7, -7], np.int16),
  "int8": np.array([-128, 127], np.int8), "uint8": np.array([0, 255], np.uint8), "bool": np.array([True, False, True]),
  "scalar": np.array(2.5, np.float32), "empty": np.zeros((0, 3), np.float32)}

VIEWS: dict[str, np.ndarray[Any, Any]] = {
  "transposed": BASE.T, "every_second": BASE[:, 1::2], "row": BASE[2], "expanded": np.broadcast_to(BASE[0], (3, 6))}

BFLOAT16 = np.array([1.0, -0.5, 3.140625], np.float32)  # exact in bfloat16

START = (np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), np.linspace(0.5, 2, 5, dtype=np.float32))
STEPS = 4

OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
  "SGD": ("SGD", {"lr": 0.1}),
  "SGD of momentum": ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.25, "weight_decay": 0.01}),
  "SGD of Nesterov": ("SGD", {"lr": 0.1, "momentum": 0.5, "nesterov": True}),
  "Adam": ("Adam", {"lr": 0.05, "betas": (0.8, 0.95), "weight_decay": 0.1}),
  "AdamW": ("AdamW", {"lr": 0.05, "weight_decay": 0.1}),
  "Muon": ("Muon", {"lr": 0.05}),
}


def gradient(of: int, step: int) -> np.ndarray[Any, Any]:
  """The gradient of a parameter at a step."""
  shape = START[of].shape
  # Squares: sin(i + j) would be a matrix of rank 2, whose third direction is nothing but rounding.
  return np.sin(np.arange(1, START[of].size + 1, dtype=np.float32) ** 2 + step).reshape(shape)
