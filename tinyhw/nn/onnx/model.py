"""A loaded ONNX model: its inputs, outputs and weights, and the call."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tinyhw.nn.onnx.operators  # noqa: F401  # fills the table
from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.devices.registry import Device
from tinyhw.nn.formats.source import Data
from tinyhw.nn.onnx.graph import Builder, Graph
from tinyhw.nn.onnx.proto import Info, parse
from tinyhw.nn.onnx.run import Runner
from tinyhw.nn.onnx.values import NAMED, SMALL, Known, Value, Weights, as_tensor
from tinyhw.tensor.tensor import Tensor


class Model:
  """A network of an ONNX file: call it with a value for each input, by name or in order, and get tensors by the
  outputs' names. Results are lazy, as those of all functions of Tensor.

  `inputs` and `outputs` say names, element types and shapes; a size that a name stands for must be the same wherever
  the name is. `weights` are the tensors of the file, leaves by their names; they may be given other values, or require
  gradients. `operators` counts the nodes by operator.
  """

  def __init__(self, builder: Builder, device: str):
    graph = builder.graph
    self.device = device
    self.weights = {name: w.tensor(device) for name, w in graph.weights.items()}
    self.inputs = tuple(i for i in graph.inputs if i.name not in graph.weights)
    self.outputs = graph.outputs
    self.operators = counted(graph)
    large = _large_constants(graph)
    self.weights |= {name: w.tensor(device) for name, w in large.items()}
    runner = Runner(builder, device)
    # A function, and no attribute that holds the graph: `get_state_dict` finds each weight once, under its name.
    self._run: Callable[[dict[str, Value]], list[Value]] = lambda values: runner.run(
      graph, [values[i.name] for i in graph.inputs], None, {}, self.weights)[0]
    self._defaults: Callable[[str], Value] = lambda name: runner.constant(graph.weights[name], self.weights[name])
    self._initial = tuple(i.name for i in graph.inputs if i.name in graph.weights)

  def __call__(self, *values: Any, **named: Any) -> dict[str, Tensor]:
    """The outputs by name. Inputs are tensors, NumPy arrays, numbers or nested lists; sequences are lists of them.

    An output of narrow integers (int4, ...) is a tensor of the dtype that holds them; one that is a sequence or
    optional is a list or None.
    """
    given = self._named(values, named)
    sizes: dict[str, int] = {}
    inputs: dict[str, Value] = {i.name: self._input(i, given[i.name], sizes) for i in self.inputs}
    for name in self._initial: inputs[name] = self._value(given[name]) if name in given else self._defaults(name)
    results = self._run(inputs)
    return {o.name: self._output(value) for o, value in zip(self.outputs, results)}

  def _named(self, values: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    if len(values) > len(self.inputs):
      raise InvalidArgument(f"{len(values)} inputs, and the model takes {len(self.inputs)}", hint=self._takes())
    given = {i.name: v for i, v in zip(self.inputs, values)}
    known = {i.name for i in self.inputs}.union(self._initial)
    for name, value in named.items():
      if name not in known: raise InvalidArgument(f"the model has no input {name!r}", hint=self._takes())
      if name in given: raise InvalidArgument(f"input {name!r} is given twice")
      given[name] = value
    for i in self.inputs:
      if i.name not in given and i.kind != "optional":
        raise InvalidArgument(f"input {i.name!r} is not given", hint=self._takes())
      given.setdefault(i.name, None)
    return given

  def _takes(self) -> str:
    return f"it takes {'; '.join(map(str, self.inputs)) or 'none'}"

  def _value(self, value: Any) -> Value:
    """What a caller hands in, as a value of the run."""
    if isinstance(value, Tensor): return value.to(self.device)
    if value is None: return None
    array = np.asarray(value)
    return Known(array, given=True, tensor=Tensor(array, device=self.device))

  def _input(self, info: Info, value: Any, sizes: dict[str, int]) -> Value:
    """An input, held against what the model says of it."""
    where = f"input {info.name!r}"
    if value is None and info.kind == "optional": return None
    if info.kind in ("map", "sparse_tensor"): raise Unsupported("ONNX input", info.kind, where=where)
    if info.kind == "sequence" or info.kind == "optional" and isinstance(value, list):
      if not isinstance(value, (list, tuple)): raise InvalidArgument("it is a sequence: give a list", where=where)
      return [self._value(v) for v in value]
    dtype = None if info.dtype is None else NAMED[info.dtype].dtype
    if info.dtype is not None and dtype is None: raise Unsupported("ONNX element type", info.dtype, where=where)
    if not hasattr(value, "dtype") and dtype is not None and dtype.numpy is not None:
      value = np.array(value, dtype.numpy)
    found = self._value(value)
    have, shape = as_tensor(found, self.device).dtype, as_tensor(found, self.device).shape
    if dtype is not None and have is not dtype:
      raise InvalidArgument(f"it is of {have.name}, and the model takes {info.dtype}", where=where, hint="cast it")
    if info.shape is None: return found
    fits = len(shape) == len(info.shape)
    for size, wanted in zip(shape, info.shape):
      if isinstance(wanted, str): fits &= sizes.setdefault(wanted, size) == size
      elif wanted is not None: fits &= size == wanted
    if not fits:
      known = ", ".join(f"{n} is {s}" for n, s in sizes.items())
      raise InvalidArgument(f"it has the shape {shape}, and the model takes {info}{f' where {known}' if known else ''}",
                            where=where)
    return found

  def _output(self, value: Value) -> Any:
    if isinstance(value, list): return [self._output(v) for v in value]
    return None if value is None else as_tensor(value, self.device)


def _large_constants(graph: Graph) -> dict[str, Weights]:
  """Constants of the file that stand in nodes and are too large for shapes: they count as weights."""
  found = {}
  for node in graph.nodes:
    value = node.attributes.get("value")
    if node.operator == "Constant" and not node.domain and isinstance(value, Weights) and not value.element.narrow:
      if np.prod(value.shape, dtype=float) > SMALL: found[node.outputs[0]] = value
  if found:
    graph.nodes = tuple(n for n in graph.nodes if not n.outputs or n.outputs[0] not in found)
    graph.weights |= found
  return found


def counted(graph: Graph) -> dict[str, int]:
  """How many nodes of each operator there are, in subgraphs and functions too; the most frequent first."""
  return dict(Counter(n.kind for n in graph.every_node()).most_common())


@dataclass(frozen=True)
class Summary:
  """What is in a file: whether it can be run or not. `unsupported` says what is not done, and where."""
  inputs: tuple[Info, ...]
  outputs: tuple[Info, ...]
  opsets: dict[str, int]
  operators: dict[str, int]
  unsupported: tuple[str, ...]
  weights: int


def inspect(source: Data) -> Summary:
  """What a model takes, gives and does, without loading it to a device."""
  builder = Builder(*parse(source))
  graph = builder.graph
  return Summary(tuple(i for i in graph.inputs if i.name not in graph.weights), graph.outputs, builder.opsets,
                 counted(graph), tuple(dict.fromkeys(str(p) for p in builder.problems)), len(graph.weights))


def load(source: Data, device: str | None = None) -> Model:
  """The model of a file (or of its bytes), with its weights on a device.

  Raises DecodeError where it is damaged, InvalidArgument where its graph contradicts itself, Unsupported where
  something in it is not done; each names the node and its operator.
  """
  builder = Builder(*parse(source))
  if builder.problems:
    first, *others = builder.problems
    first.facts = tuple(dict.fromkeys(str(p) for p in others))
    raise first
  return Model(builder, Device.canonicalize(device))
