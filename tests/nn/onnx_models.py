"""Small ONNX models for the tests, made by the package `onnx`."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the package onnx is not installed")
helper = onnx.helper
FLOAT, INT64, BOOL = 1, 7, 9

Port = tuple[str, int, Sequence[Any] | None]


def node(kind: str, inputs: Sequence[str], outputs: Sequence[str], name: str = "", **attributes: Any) -> Any:
  """A node."""
  return helper.make_node(kind, list(inputs), list(outputs), name=name, **attributes)


def graph(nodes: Sequence[Any], inputs: Sequence[Port], outputs: Sequence[Port], weights: Mapping[str, Any]
          | None = None,
          name: str = "g") -> Any:
  """A graph; ports are (name, element type, shape)."""
  return helper.make_graph(list(nodes), name, [helper.make_tensor_value_info(*p) for p in inputs],
                           [helper.make_tensor_value_info(*p) for p in outputs],
                           [onnx.numpy_helper.from_array(np.asarray(w), n) for n, w in (weights or {}).items()])


def proto(nodes: Sequence[Any], inputs: Sequence[Port], outputs: Sequence[Port], weights: Mapping[str, Any]
          | None = None,
          opset: int = 18, functions: Sequence[Any] = (), domains: Mapping[str, int] | None = None) -> Any:
  """A ModelProto."""
  imports = [helper.make_opsetid(d, v) for d, v in {"": opset, **(domains or {})}.items()]
  return helper.make_model(graph(nodes, inputs, outputs, weights), opset_imports=imports, functions=list(functions),
                           ir_version=10 if opset < 24 else 11)


def model(*args: Any, **kwargs: Any) -> bytes:
  """The bytes of a model; see `proto`."""
  found: bytes = proto(*args, **kwargs).SerializeToString()
  return found


def matrix(*shape: int, seed: int = 0) -> Any:
  """Normal numbers."""
  return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
