"""Running a graph: node after node, each an operator over Tensor that adds to the lazy graph of the results."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from tinyhw.core.errors import Error, InvalidArgument, Unsupported
from tinyhw.core.kept import Kept
from tinyhw.core.locks import lock
from tinyhw.nn.onnx import shapes
from tinyhw.nn.onnx.graph import Builder, Function, Graph, Node, Standard, expanded
from tinyhw.nn.onnx.table import Operator
from tinyhw.nn.onnx.values import ELEMENTS, NAMED, Element, Known, Value, Weights, as_host, as_tensor, shape_of
from tinyhw.tensor.tensor import Tensor

# Operators that convert small floats, or move them without a look at their values.
MOVES: Final = frozenset((
  "Cast", "CastLike", "Concat", "Constant", "DequantizeLinear", "Expand", "Flatten", "Gather", "Identity", "If", "Loop",
  "QuantizeLinear", "Reshape", "Scan", "Shape", "Size", "Slice", "Split", "Squeeze", "Tile",
  "Transpose", "Unsqueeze", "Where"))


BODIES: Final = 4096  # of operators that are defined by others, for each node and types of its inputs


class Frame:
  """The values of a graph that runs, by name; what is not there is looked for in the frame around it.

  `narrow` are the types of values whose elements are narrower than the dtype that holds them. `given` are the
  attributes of the function that runs.
  """

  def __init__(self, runner: Runner, around: Frame | None, given: Mapping[str, Any]):
    self.runner, self.around, self.given = runner, around, given
    self.values: dict[str, Value] = {}
    self.narrow: dict[str, Element] = {}

  def holder(self, name: str) -> Frame:
    """The frame that has a name."""
    frame: Frame | None = self
    while frame is not None:
      if name in frame.values: return frame
      frame = frame.around
    raise InvalidArgument(f"{name!r} has no value")  # graphs are checked: an input of the model without one

  def value(self, name: str) -> Value:
    """A value by its name; None for none."""
    return self.holder(name).values[name] if name else None

  def element(self, name: str) -> Element | None:
    """The type of a value that is narrower than its dtype."""
    return self.holder(name).narrow.get(name) if name else None


class Call:
  """A node that is being run, for operators that ask: the version in force, the device, how many outputs are wanted."""

  def __init__(self, node: Node, frame: Frame):
    self.node, self.frame = node, frame
    self.version, self.device = node.version, frame.runner.device
    self.outputs = len(node.outputs)
    self.made: dict[int, Element] = {}

  def wants(self, at: int) -> bool:
    """Whether somebody may read an output."""
    return at < len(self.node.outputs) and bool(self.node.outputs[at])

  def narrow(self, at: int) -> Element | None:
    """The type of an input that is narrower than the dtype that holds it."""
    return self.frame.element(self.node.inputs[at]) if at < len(self.node.inputs) else None

  def mark(self, element: Element | None, at: int = 0) -> None:
    """Say that an output's elements are of a narrower type."""
    if element is not None and element.narrow: self.made[at] = element

  def run(self, graph: Graph, inputs: Sequence[Value]) -> list[Value]:
    """The outputs of a subgraph of this node."""
    values, self.made = self.frame.runner.run(graph, inputs, self.frame, self.frame.given)
    return values

  def wrong(self, message: str, hint: str | None = None) -> InvalidArgument:
    """The error that says what is wrong with this node or its inputs."""
    return InvalidArgument(message, where=self.node.label, hint=hint)

  def unsupported(self, what: str) -> Unsupported:
    """The error that says what of this node is not done."""
    return Unsupported(f"ONNX {self.node.operator}", what, where=self.node.label)


class Runner:
  """What the runs of a model share: its device, and the tensors of its large constants."""

  def __init__(self, builder: Builder, device: str):
    self.builder, self.device = builder, device
    self._constants: dict[int, tuple[Weights, Tensor]] = {}
    self._bodies: Kept[Any, Function] = Kept(BODIES)
    self._lock = lock()  # of the bodies and the builder; nothing else is locked while it is held

  def constant(self, weights: Weights, known: Tensor | None = None) -> Value:
    """A constant of the file; a large one is on the device once."""
    if known is not None: return weights.value(self.device, known)
    if id(weights) in self._constants: return self._constants[id(weights)][1]
    made = weights.value(self.device)
    if isinstance(made, Tensor): self._constants[id(weights)] = (weights, made)
    return made

  def run(self, graph: Graph, inputs: Sequence[Value], around: Frame | None, given: Mapping[str, Any],
          tensors: Mapping[str, Tensor] | None = None,
          narrow: Mapping[str, Element] | None = None) -> tuple[list[Value], dict[int, Element]]:
    """The outputs of a graph whose inputs have these values, and the narrow types among them, by place.

    `tensors` are its weights where they are there already, `narrow` the narrow types of inputs that do not declare one.
    """
    frame = Frame(self, around, given)
    frame.narrow |= narrow or {}
    if len(inputs) > len(graph.inputs):
      raise InvalidArgument(f"{len(inputs)} values for {len(graph.inputs)} inputs of graph {graph.name!r}")
    for name, w in graph.weights.items():
      frame.values[name] = self.constant(w, (tensors or {}).get(name))
      if w.element.narrow: frame.narrow[name] = w.element
    for i, value in zip(graph.inputs, inputs):
      frame.values[i.name] = value
      if i.dtype is not None and NAMED[i.dtype].narrow: frame.narrow[i.name] = NAMED[i.dtype]
    for node in graph.nodes: self.step(node, frame)
    found = {at: e for at, o in enumerate(graph.outputs) if (e := frame.element(o.name)) is not None}
    return [frame.value(o.name) for o in graph.outputs], found

  def step(self, node: Node, frame: Frame) -> None:
    """Run one node: its outputs get their values."""
    try: results, narrow = self.outputs(node, frame)
    except Error as error:
      if error.where is None: error.where = node.label
      raise
    except (ValueError, IndexError, TypeError, OverflowError, ZeroDivisionError) as error:
      raise InvalidArgument(str(error), where=node.label) from error
    for at, (name, value) in enumerate(zip(node.outputs, results)):
      if not name: continue
      frame.values[name] = value
      if at in narrow: frame.narrow[name] = narrow[at]
    for name in node.outputs[len(results):]:
      if name: raise Unsupported(f"ONNX {node.operator}", f"output {name!r}", where=node.label)

  def outputs(self, node: Node, frame: Frame) -> tuple[Sequence[Value], dict[int, Element]]:
    """What a node gives, and the narrow types among it."""
    does = node.does
    values = [frame.value(n) for n in node.inputs]
    attributes = dict(node.attributes)
    for name, theirs in node.references.items():
      if theirs in frame.given: attributes[name] = frame.given[theirs]
    if isinstance(does, Standard): does = self.body(node, does, frame, values)
    if isinstance(does, Function):
      values += [None] * (len(does.body.inputs) - len(values))
      narrow = {i.name: e for i, n in zip(does.body.inputs, node.inputs) if (e := frame.element(n)) is not None}
      return self.run(does.body, values, None, {**does.defaults, **attributes}, narrow=narrow)
    assert does is not None, "what has no meaning was refused when the model was loaded"
    call = Call(node, frame)
    narrow_inputs = [e for i in range(len(node.inputs)) if (e := call.narrow(i)) is not None]
    for e in narrow_inputs:
      if e.coded and node.operator not in MOVES: raise Unsupported(f"ONNX {node.operator}", f"of {e.name}",
                                                                   where=node.label)
    if not narrow_inputs:
      if (folded := shapes.folded(call, values, attributes)) is not None: return [folded], {}
    result = does.function(*([call] if does.called else []), *self.arguments(does, values),
                           **{k: v for k, v in attributes.items() if k in does.attributes})
    return result if isinstance(result, tuple) else (result,), call.made

  def arguments(self, does: Operator, values: list[Value]) -> list[Any]:
    """The inputs as the operator's function takes them."""
    found: list[Any] = []
    for at, value in enumerate(values):
      takes = does.inputs[min(at, len(does.inputs) - 1)].takes
      if value is None or takes == "Any": found.append(value)
      elif takes == "Host": found.append(as_host(value))
      else: found.append(as_tensor(value, self.device))
    fixed = [i for i in does.inputs if not i.variadic]
    return found + [None] * (len(fixed) - len(found))

  def body(self, node: Node, standard: Standard, frame: Frame, values: list[Value]) -> Function:
    """The function of an operator that ONNX defines by others, for inputs of these types; made once for each."""
    types: list[tuple[int, tuple[int, ...]] | None] = []
    for n, value in zip(node.inputs, values):
      if value is None or isinstance(value, list): types.append(None)
      else: types.append((code_of(value, frame.element(n)), shape_of(value)))
    key = (id(node), tuple(types))
    with self._lock: return self._bodies.made(key, lambda: expanded(node, standard, types, self.builder))


_CODES = {e.holder: e.code for e in ELEMENTS.values() if not e.narrow and e.holder}


def code_of(value: Tensor | Known, narrow: Element | None = None) -> int:
  """The number that files give the type of a value."""
  if narrow is not None: return narrow.code
  return _CODES[value.dtype.name if isinstance(value, Tensor) else np.dtype(value.array.dtype).name]
