"""ONNX models: `load` reads one, checks it, and gives a `Model` that is called with tensors by name.

A model's nodes are operators over Tensor (`nn.onnx.operators`, one declared table), so its results come from compiled
kernels on any device. Only what shapes are computed from (Shape, and small integers of the file) is arithmetic of the
host (`nn.onnx.shapes`). The PyPI package `onnx` reads the file and gives the bodies of operators that ONNX defines by
others; nothing else of it is used.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  from tinyhw.nn.onnx.model import Model as Model
  from tinyhw.nn.onnx.model import inspect as inspect
  from tinyhw.nn.onnx.model import load as load

__all__ = ["Model", "inspect", "load"]


def __getattr__(name: str) -> Any:
  # `import tinyhw.nn` stays quick: the operators load with the first model.
  if name not in __all__: raise AttributeError(f"module 'tinyhw.nn.onnx' has no attribute {name!r}")
  from tinyhw.nn.onnx import model
  return getattr(model, name)
