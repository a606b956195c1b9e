"""Control flow: conditions are computed and read, loops run on the host and their bodies are kernels."""
from __future__ import annotations

from typing import Any

import numpy as np

from tinyhw.nn.onnx.graph import Graph
from tinyhw.nn.onnx.run import Call
from tinyhw.nn.onnx.table import Host, operator
from tinyhw.nn.onnx.values import NAMED, Known, Value, as_host, as_tensor
from tinyhw.tensor.tensor import Tensor

Ints = tuple[int, ...]


@operator("If", 1, 11, 13, 16, 19, 21, 23, 24, 25)
def if_(op: Call, cond: Host, *, then_branch: Graph, else_branch: Graph) -> Any:
  if cond.size != 1: raise op.wrong(f"a condition of shape {cond.shape}")
  return tuple(op.run(then_branch if cond.reshape(-1)[0] else else_branch, []))


@operator("Loop", 1, 11, 13, 16, 19, 21, 23, 24, 25)
def loop(op: Call, m: Host | None, cond: Host | None, *initial: Any, body: Graph) -> Any:
  """As many rounds as told, and as long as the condition holds; it is computed and read each time."""
  limit = None if m is None else int(m.reshape(-1)[0])
  holds = cond is None or bool(cond.reshape(-1)[0])
  carried = list(initial)
  if len(body.inputs) != 2 + len(carried):
    raise op.wrong(f"the body has {len(body.inputs)} inputs for {len(carried)} values")
  stacked: list[list[Value]] = [[] for _ in body.outputs[1 + len(carried):]]
  at = 0
  while holds and (limit is None or at < limit):
    again, *results = op.run(body, [Known(np.array(at, np.int64)), Known(np.array(True)), *carried])
    carried = results[:len(carried)]
    # A round's kernels are those of the round before: the graph does not grow with the rounds.
    tensors = [v for v in results if isinstance(v, Tensor)]
    if tensors: tensors[0].realize(*tensors[1:])
    for line, value in zip(stacked, results[len(carried):]): line.append(value)
    holds = bool(as_host(again).reshape(-1)[0])
    at += 1
  return *carried, *(_stacked(op, line, body, 1 + len(carried) + i, 0) for i, line in enumerate(stacked))


def _stacked(op: Call, values: list[Value], body: Graph, at: int, axis: int) -> Tensor:
  """What each round gave, along a new axis. The shape of nothing is that which the body declares."""
  tensors = [as_tensor(v, op.device) for v in values]
  if tensors:
    return tensors[0].stack(*tensors[1:], dim=axis) if len(tensors) > 1 else tensors[0].unsqueeze(axis)
  info = body.outputs[at]
  dtype = NAMED[info.dtype].dtype if info.dtype else None
  if dtype is None or info.shape is None or not all(isinstance(s, int) for s in info.shape):
    raise op.wrong(f"no rounds, and the body does not declare the shape of {info.name!r}")
  return Tensor.full((0, *(int(s or 0) for s in info.shape)), 0, op.device, dtype)


@operator("Scan", 9, 11, 16, 19, 21, 23, 24, 25)
def scan(op: Call, *values: Any, body: Graph, num_scan_inputs: int, scan_input_axes: Ints | None = None,
         scan_input_directions: Ints | None = None, scan_output_axes: Ints | None = None,
         scan_output_directions: Ints | None = None) -> Any:
  """A round for each position along the axes of the scanned inputs."""
  count = len(values) - num_scan_inputs
  if count < 0 or num_scan_inputs < 1: raise op.wrong(f"{num_scan_inputs} of {len(values)} inputs are to be scanned")
  states, scanned = list(values[:count]), [as_tensor(v, op.device) for v in values[count:]]
  axes = [x._axis(a) for x, a in zip(scanned, scan_input_axes or (0,) * num_scan_inputs)]
  sizes = {x.shape[a] for x, a in zip(scanned, axes)}
  if len(sizes) != 1: raise op.wrong(f"inputs of {', '.join(map(str, sorted(sizes)))} positions side by side")
  backward = scan_input_directions or (0,) * num_scan_inputs
  lines: list[list[Value]] = [[] for _ in body.outputs[count:]]
  size = sizes.pop()
  for t in range(size):
    now = [x.select(a, size - 1 - t if back else t) for x, a, back in zip(scanned, axes, backward)]
    results = op.run(body, [*states, *now])
    states = results[:count]
    for line, value in zip(lines, results[count:]): line.append(value)
  out_axes, turned = scan_output_axes or (0,) * len(lines), scan_output_directions or (0,) * len(lines)
  found = []
  for i, line in enumerate(lines):
    ordered = line[::-1] if turned[i] else line
    rank = len(as_tensor(line[0], op.device).shape) + 1 if line else 1
    found.append(_stacked(op, ordered, body, count + i, out_axes[i] % rank))
  return *states, *found


@operator("Scan", 8)
def scan_of_batches(op: Call, lengths: Host | None, *values: Any, body: Graph, num_scan_inputs: int,
                    directions: Ints | None = None) -> Any:
  """The first form: axis 0 is the batch, axis 1 is scanned."""
  if lengths is not None: raise op.unsupported("sequence_lens")
  tensors = [as_tensor(v, op.device) for v in values]
  lines = [scan(op, *(x[b] for x in tensors), body=body, num_scan_inputs=num_scan_inputs,
                scan_input_directions=directions)
           for b in range(tensors[0].shape[0])]
  each = [[as_tensor(v, op.device) for v in line] for line in lines]
  return tuple(column[0].stack(*column[1:]) if len(column) > 1 else column[0].unsqueeze(0) for column in zip(*each))
