"""The operators over Tensor, by subject. Importing a module declares its rows in the table (`nn.onnx.table`)."""
from __future__ import annotations

from tinyhw.nn.onnx.operators import (  # noqa: F401  # each declares its operators
  control,
  elementwise,
  features,
  indexing,
  matrix,
  microsoft,
  movement,
  normalization,
  quantization,
  recurrent,
  reduction,
  resize,
  sequences,
  signal,
  window,
)
