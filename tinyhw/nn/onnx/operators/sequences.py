"""Sequences and optional values: lists of tensors, and None."""
from __future__ import annotations

from typing import Any

import numpy as np

from tinyhw.nn.onnx.graph import Graph
from tinyhw.nn.onnx.run import Call
from tinyhw.nn.onnx.shapes import ints
from tinyhw.nn.onnx.table import Host, operator
from tinyhw.nn.onnx.values import Known, as_tensor
from tinyhw.tensor.tensor import Tensor

Type = Any  # a TypeProto


def _list(op: Call, value: Any) -> list[Any]:
  if not isinstance(value, list): raise op.wrong("a tensor where a sequence is needed")
  return value


def _at(op: Call, sequence: list[Any], position: Host | None, extra: int = 0) -> int:
  """A position of a sequence, counted from the end where it is negative; its end for none."""
  size = len(sequence) + extra
  at = size - 1 if position is None else ints(position)[0]
  if not -len(sequence) <= at < size: raise op.wrong(f"position {at} of a sequence of {len(sequence)}")
  return at + len(sequence) if at < 0 else at


@operator("SequenceEmpty", 11)
def sequence_empty(op: Call, *, dtype: int = 1) -> Any: return ([],)


@operator("SequenceConstruct", 11)
def sequence_construct(op: Call, *inputs: Any) -> Any: return (list(inputs),)


@operator("SequenceAt", 11)
def sequence_at(op: Call, sequence: Any, position: Host) -> Any:
  found = _list(op, sequence)
  return found[_at(op, found, position)]


@operator("SequenceInsert", 11)
def sequence_insert(op: Call, sequence: Any, tensor: Any, position: Host | None) -> Any:
  found = list(_list(op, sequence))
  found.insert(_at(op, found, position, 1), tensor)
  return (found,)


@operator("SequenceErase", 11)
def sequence_erase(op: Call, sequence: Any, position: Host | None) -> Any:
  found = list(_list(op, sequence))
  del found[_at(op, found, position)]
  return (found,)


@operator("SequenceLength", 11)
def sequence_length(op: Call, sequence: Any) -> Known: return Known(np.array(len(_list(op, sequence)), np.int64),
                                                                    shape=True)


@operator("SplitToSequence", 11, 24)
def split_to_sequence(op: Call, x: Tensor, split: Host | None, *, axis: int = 0, keepdims: int = 1) -> Any:
  """Pieces of a size, of sizes, or of 1, which then may lose the axis."""
  if split is None: return ([p if keepdims else p.squeeze(axis) for p in x.split(1, axis)],)
  return (list(x.split(ints(split)[0] if not split.shape else ints(split), axis)),)


@operator("ConcatFromSequence", 11)
def concat_from_sequence(op: Call, sequence: Any, *, axis: int, new_axis: int = 0) -> Tensor:
  parts = [as_tensor(v, op.device) for v in _list(op, sequence)]
  if not parts: raise op.wrong("an empty sequence")
  if new_axis: return parts[0].stack(*parts[1:], dim=axis) if len(parts) > 1 else parts[0].unsqueeze(axis)
  return parts[0].cat(*parts[1:], dim=axis) if len(parts) > 1 else +parts[0]


@operator("SequenceMap", 17)
def sequence_map(op: Call, sequence: Any, *others: Any, body: Graph) -> Any:
  """The body for each element; other sequences are gone through at the same time, tensors are there each time."""
  lines: list[list[Any]] = [[] for _ in body.outputs]
  for i, first in enumerate(_list(op, sequence)):
    given = [first, *(o[i] if isinstance(o, list) else o for o in others)]
    for line, value in zip(lines, op.run(body, given)): line.append(value)
  return tuple(lines)


@operator("Optional", 15, 28)
def optional(op: Call, value: Any | None = None, *, type: Type | None = None) -> Any: return (value,)


@operator("OptionalHasElement", 15, 18, 28)
def optional_has_element(op: Call, value: Any | None = None) -> Known:
  return Known(np.array(value is not None), shape=True)


@operator("OptionalGetElement", 15, 18, 28)
def optional_get_element(op: Call, value: Any) -> Any:
  if value is None: raise op.wrong("nothing is there")
  return (value,)
