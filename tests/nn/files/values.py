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
