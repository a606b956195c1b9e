"""A model's graph as plain data, checked: every name has one maker, nodes stand in an order that can be run, every node
means an operator that is known, and its attributes are those of that operator."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tinyhw.core.errors import DecodeError, Error, InvalidArgument, Unsupported
from tinyhw.nn.onnx import table
from tinyhw.nn.onnx.proto import Info, Origin, attribute, info, package, weights
from tinyhw.nn.onnx.table import NEWEST, OLDEST, REQUIRED, STANDARD, Operator
from tinyhw.nn.onnx.values import Weights

NEWEST_OF: Final = {table.MICROSOFT: 1, "ai.onnx.ml": 5, "ai.onnx.preview": 1, "ai.onnx.preview.training": 1,
                    "ai.onnx.training": 1}
LARGEST: Final = 1_000_000  # nodes of a model


@dataclass(frozen=True)
class Standard:
  """An operator that ONNX defines by others: its body is asked of the package when the inputs' types are known."""
  domain: str
  name: str
  version: int
  opsets: dict[str, int]


@dataclass(frozen=True)
class Function:
  """A function of the model: names of its inputs, outputs and attributes, the latter with defaults, and its body."""
  name: str
  attributes: frozenset[str]
  defaults: dict[str, Any]
  body: Graph


@dataclass
class Node:
  """A step: what it does, the names it reads ("": nothing) and writes, and its attributes.

  `references` are attributes that the function it stands in was given: by their names there.
  """
  name: str
  domain: str
  operator: str
  inputs: tuple[str, ...]
  outputs: tuple[str, ...]
  attributes: dict[str, Any]
  references: dict[str, str]
  does: Operator | Function | Standard | None
  version: int
  proto: Any = field(repr=False, default=None)

  @property
  def kind(self) -> str:
    """The operator's whole name."""
    return f"{self.domain}.{self.operator}" if self.domain else self.operator

  @property
  def label(self) -> str:
    """The node in errors."""
    return f"node {self.name!r} ({self.kind})"

  def graphs(self) -> Iterator[Graph]:
    """The subgraphs that it holds."""
    for value in self.attributes.values():
      if isinstance(value, Graph): yield value

  def reads(self) -> set[str]:
    """The names that must be there before it: its inputs, and what its subgraphs take from around."""
    return {n for n in self.inputs if n}.union(*(g.taken for g in self.graphs()))


@dataclass
class Graph:
  """Nodes in an order that can be run; `taken` are the names of the graphs around that are used."""
  name: str
  inputs: tuple[Info, ...]
  outputs: tuple[Info, ...]
  weights: dict[str, Weights]
  nodes: tuple[Node, ...]
  taken: frozenset[str] = frozenset()

  def every_node(self) -> Iterator[Node]:
    """The nodes, those of subgraphs and of the functions that are called too."""
    seen: set[int] = set()
    todo = [self]
    while todo:
      graph = todo.pop()
      if id(graph) in seen: continue
      seen.add(id(graph))
      for node in graph.nodes:
        yield node
        todo += node.graphs()
        if isinstance(node.does, Function): todo.append(node.does.body)


class Builder:
  """Makes graphs of protos. What is unsupported is collected in `problems`, so that all of it can be told at once."""

  def __init__(self, model: Any, origin: Origin):
    self.origin = origin
    self.problems: list[Unsupported] = []
    self.functions = {(f.domain, f.name, getattr(f, "overload", "")): f for f in model.functions}
    if len(self.functions) != len(model.functions): raise DecodeError("two functions have one name", where=origin.name)
    self.made: dict[tuple[str, str, str], Function] = {}
    self.opsets = self._opsets(model.opset_import, origin.name)
    self._making: list[tuple[str, str, str]] = []  # functions
    try: self.graph = self.build(model.graph, self.opsets, frozenset())
    except RecursionError:
      raise Unsupported("ONNX feature", "functions or graphs nested as deep as here", where=origin.name) from None
    if (count := size(self.graph)) > LARGEST:
      raise Unsupported("ONNX feature", f"functions that expand to {count:,} nodes", where=origin.name,
                        hint=f"{LARGEST:,} are the most")

  def _opsets(self, imports: Iterable[Any], where: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in imports:
      domain = STANDARD if row.domain == "ai.onnx" else row.domain
      if domain in found and found[domain] != row.version:
        raise InvalidArgument(f"opsets {found[domain]} and {row.version} of domain {domain!r}", where=where)
      found[domain] = row.version
    version = found.get(STANDARD)
    if version is not None and not OLDEST <= version <= NEWEST:
      raise Unsupported("ONNX opset", str(version), where=where, hint=f"{OLDEST} to {NEWEST} are read")
    return found

  def build(self, proto: Any, opsets: dict[str, int], around: frozenset[str]) -> Graph:
    """The graph of a GraphProto, which may read the names around it."""
    where = f"graph {proto.name!r}"
    if proto.sparse_initializer: raise Unsupported("ONNX feature", "sparse initializers", where=where)
    constants: dict[str, Weights] = {}
    for w in proto.initializer:
      if not w.name or w.name in constants: raise InvalidArgument(f"initializer {w.name!r} has no name of its own",
                                                                  where=where)
      constants[w.name] = weights(w, self.origin, where)
    inputs, outputs = tuple(map(info, proto.input)), tuple(map(info, proto.output))
    names = [i.name for i in inputs]
    for text in (*names, *(o.name for o in outputs), *constants):
      if not isinstance(text, str): raise DecodeError(f"{text!r} is no text", where=where)
    if len(set(names)) != len(names) or "" in names: raise InvalidArgument("two inputs have one name", where=where)
    return self.ordered(proto.name, inputs, outputs, constants, proto.node, opsets, around)

  def ordered(self, name: str, inputs: tuple[Info, ...], outputs: tuple[Info, ...], constants: dict[str, Weights],
              protos: Sequence[Any], opsets: dict[str, int], around: frozenset[str]) -> Graph:
    """A graph of nodes, put in an order that can be run."""
    where = f"graph {name!r}"
    makers: dict[str, int] = {}
    own = {i.name for i in inputs} | constants.keys()
    for at, p in enumerate(protos):
      for out in p.output:
        if out and (out in makers or out in own): raise InvalidArgument(
          f"{out!r} has two makers, the second is {_label(p, at)}", where=where)
        if out: makers[out] = at
    inside = own | makers.keys()
    nodes = [self.node(p, at, opsets, around | inside) for at, p in enumerate(protos)]
    taken: set[str] = set()
    waits: list[set[int]] = []
    for node in nodes:
      reads = node.reads()
      for n in reads - inside:
        if n not in around: raise InvalidArgument(f"input {n!r} is made by no node, and is no input of the graph",
                                                  where=node.label)
        taken.add(n)
      waits.append({makers[n] for n in reads if n in makers})
    for out in outputs:
      if out.name in inside or not out.name: continue
      if out.name not in around: raise InvalidArgument(f"output {out.name!r} is made by no node", where=where)
      taken.add(out.name)
    return Graph(name, inputs, outputs, constants, tuple(nodes[i] for i in _order(nodes, waits)), frozenset(taken))

  def node(self, proto: Any, at: int, opsets: dict[str, int], names: frozenset[str]) -> Node:
    """A node whose operator is looked up and whose attributes are checked."""
    label = _label(proto, at)
    for text in (proto.op_type, proto.domain, proto.name, *proto.input, *proto.output):
      if not isinstance(text, str): raise DecodeError(f"{text!r} is no text", where=label)
    domain = STANDARD if proto.domain == "ai.onnx" else proto.domain
    attributes: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    references: dict[str, str] = {}
    does, version = None, 0
    try: does, version = self.meaning(proto, domain, opsets, label)
    except Unsupported as error: self.problems.append(error)
    for a in proto.attribute:
      if a.name in kinds: raise InvalidArgument(f"attribute {a.name!r} twice", where=label)
      if a.ref_attr_name:
        references[a.name], kinds[a.name] = a.ref_attr_name, ""
        continue
      try: kinds[a.name], value = attribute(a, self.origin, label)
      except Unsupported as error:
        kinds[a.name] = ""
        self.problems.append(error)
        continue
      attributes[a.name] = self.build(value, opsets, names) if kinds[a.name] == "Graph" else value
    node = Node(proto.name or f"#{at}", domain, proto.op_type, tuple(proto.input), tuple(proto.output), attributes,
                references, does, version, proto)
    if isinstance(does, Operator): _check(node, does, kinds)
    return node

  def meaning(self, proto: Any, domain: str, opsets: dict[str, int], label: str) -> tuple[Operator | Function
                                                                                          | Standard, int]:
    """What a node does, and the version that is in force: a function of the model, an operator of the table, or one
    that ONNX defines by others."""
    key = (proto.domain, proto.op_type, getattr(proto, "overload", ""))
    if key in self.functions: return self.function(key, label), 0
    if domain not in opsets:
      raise InvalidArgument(f"the model imports no opset of domain {domain or 'ai.onnx'!r}", where=label)
    opset = opsets[domain]
    whole = f"{domain}.{proto.op_type}" if domain else proto.op_type
    if domain and opset > NEWEST_OF.get(domain, opset):
      raise Unsupported("ONNX opset", f"{domain} {opset}", where=label)
    if (found := table.find(domain, proto.op_type, opset)) is not None: return found
    if (begins := table.first(domain, proto.op_type)) is not None:
      raise InvalidArgument(f"{whole} begins with opset {begins}, and the model imports {opset}", where=label)
    if (standard := _standard(domain, proto.op_type, opsets)) is not None: return standard, standard.version
    raise Unsupported("ONNX operator", whole, where=label)

  def function(self, key: tuple[str, str, str], label: str) -> Function:
    """A function of the model, made once. It may not call itself."""
    if key in self.made: return self.made[key]
    if key in self._making: raise InvalidArgument(f"function {key[1]!r} calls itself", where=label)
    proto = self.functions[key]
    self._making.append(key)
    try:
      where = f"function {proto.name!r}"
      opsets = self._opsets(proto.opset_import, where)
      inputs, outputs = (tuple(Info(n, None, None) for n in names) for names in (proto.input, proto.output))
      body = self.ordered(proto.name, inputs, outputs, {}, proto.node, opsets, frozenset())
      defaults = {a.name: attribute(a, self.origin, where)[1] for a in proto.attribute_proto}
      self.made[key] = Function(proto.name, frozenset(proto.attribute) | defaults.keys(), defaults, body)
    finally: self._making.pop()
    return self.made[key]


def size(graph: Graph, known: dict[int, int] | None = None) -> int:
  """How many nodes a graph has once its functions are expanded; subgraphs count once."""
  known = {} if known is None else known
  if id(graph) not in known:
    bodies = [n.does.body for n in graph.nodes if isinstance(n.does, Function)]
    inner = [g for n in graph.nodes for g in n.graphs()]
    known[id(graph)] = len(graph.nodes) + sum(size(g, known) for g in (*bodies, *inner))
  return known[id(graph)]


def _label(proto: Any, at: int) -> str:
  domain = "" if proto.domain in ("", "ai.onnx") else f"{proto.domain}."
  return f"node {proto.name or f'#{at}'!r} ({domain}{proto.op_type})"


def _order(nodes: list[Node], waits: list[set[int]]) -> list[int]:
  """An order in which each node comes after those it waits for: that of the file where it is one."""
  if all(w < at for at, wanted in enumerate(waits) for w in wanted): return list(range(len(nodes)))
  left = [len(w) for w in waits]
  after: list[list[int]] = [[] for _ in nodes]
  for at, wanted in enumerate(waits):
    for w in wanted: after[w].append(at)
  ready = [at for at, n in enumerate(left) if not n]
  found = []
  for at in ready:  # grows while it is gone through
    found.append(at)
    for later in after[at]:
      left[later] -= 1
      if not left[later]: ready.append(later)
  if len(found) != len(nodes):
    stuck = [nodes[at] for at, n in enumerate(left) if n]
    raise InvalidArgument(f"the graph has a cycle: it cannot be run past {stuck[0].label}", where="graph",
                          hint="nodes wait for each other")
  return found


def _check(node: Node, does: Operator, kinds: dict[str, str]) -> None:
  """Whether a node's inputs and attributes are those of its operator."""
  count = len(node.inputs)
  if count < does.least or does.most is not None and count > does.most:
    wanted = str(does.least) if does.most == does.least else f"{does.least} to {does.most or 'any number'}"
    raise InvalidArgument(f"{count} inputs, and {node.kind} takes {wanted}", where=node.label)
  for i, given in zip(does.inputs, node.inputs):
    if not given and not i.optional and not i.variadic:
      raise InvalidArgument(f"input {i.name!r} is left out", where=node.label)
  for name, kind in kinds.items():
    if name not in does.attributes: raise InvalidArgument(f"{node.kind} has no attribute {name!r}", where=node.label)
    wanted = does.attributes[name].kind
    if kind and kind != wanted: raise InvalidArgument(f"attribute {name!r} is of {kind}, not of {wanted}",
                                                      where=node.label)
  for name, a in does.attributes.items():
    if a.default is REQUIRED and name not in kinds: raise InvalidArgument(f"attribute {name!r} is missing",
                                                                          where=node.label)


def _standard(domain: str, name: str, opsets: dict[str, int]) -> Standard | None:
  """The definition of an operator by others, where the package has one."""
  onnx = package()
  try: schema = onnx.defs.get_schema(name, opsets[domain], domain)
  except onnx.defs.SchemaError: return None
  if schema.deprecated or not (schema.has_function or schema.has_context_dependent_function): return None
  return Standard(domain, name, schema.since_version, opsets)


def expanded(node: Node, standard: Standard, types: Sequence[tuple[int, tuple[int, ...]] | None],
             builder: Builder) -> Function:
  """The function that a node of a Standard operator stands for, its inputs being of those (element type, shape)."""
  onnx = package()
  opset = standard.opsets[standard.domain]
  schema = onnx.defs.get_schema(standard.name, opset, standard.domain)
  protos = [onnx.TypeProto() if t is None else onnx.helper.make_tensor_type_proto(*t) for t in types]
  try:
    if schema.has_context_dependent_function:
      version = max((v for v in schema.context_dependent_function_opset_versions if v <= opset),
                    default=standard.version)
      raw = schema.get_context_dependent_function_with_opset_version(
        version, node.proto.SerializeToString(), [p.SerializeToString() for p in protos])
    else:
      version = max((v for v in schema.function_opset_versions if v <= opset), default=standard.version)
      raw = schema.get_function_with_opset_version(version)
    body = onnx.FunctionProto()
    body.ParseFromString(raw)
  except Error: raise
  except Exception as error:  # the package's C++ raises what it likes
    raise Unsupported("ONNX operator", node.kind, where=node.label,
                      hint=f"its definition cannot be had: {error}") from None
  opsets = standard.opsets | {i.domain: i.version for i in body.opset_import if i.domain or not standard.domain}
  made = {out for n in body.node for out in n.output} | set(body.input)
  # Outputs that the node does not ask for may have no maker.
  infos = [tuple(Info(n, None, None) for n in names)
           for names in (body.input, [n if n in made else "" for n in body.output])]
  before = len(builder.problems)
  graph = builder.ordered(f"{node.kind} of {node.label}", infos[0], infos[1], {}, body.node, opsets, frozenset())
  if len(builder.problems) > before: raise builder.problems.pop()
  defaults = {a.name: attribute(a, builder.origin, node.label)[1] for a in body.attribute_proto}
  defaults |= {k: onnx.helper.get_attribute_value(a.default_value) for k, a in schema.attributes.items()
               if a.default_value.name and k not in defaults}
  defaults = {k: v.decode() if isinstance(v, bytes) else v for k, v in defaults.items()}
  return Function(node.kind, frozenset(schema.attributes), defaults, graph)
