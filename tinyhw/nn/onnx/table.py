"""The table of operators: each is declared once, by a function whose signature says its inputs and attributes.

`@operator("Conv", 1, 11, 22)` names the operator and the opset versions that changed it and that the function knows
(the latest before opset 7, which is the first that is read, and those after it). Its parameters are

- `op: Call` first, where the function asks for the version, the outputs or another graph;
- the inputs, in order: `Tensor`, or `Host` for what shapes and axes are computed from, a NumPy array on the host;
  `| None` where one may be left out; `Any` takes a value as it is (sequences, narrow types); `*xs` takes all others;
- keyword-only, the attributes with their defaults; one without a default must be there.

It gives the output, or a tuple of them.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np

from tinyhw.core.errors import LayoutError

Host = np.ndarray[Any, np.dtype[Any]]

STANDARD: Final = ""
MICROSOFT: Final = "com.microsoft"
OLDEST: Final = 7     # of the opsets that are read
NEWEST: Final = 28
REQUIRED: Final = inspect.Parameter.empty
KINDS: Final = {"int", "float", "str", "Ints", "Floats", "Strings", "Graph", "Weights", "Type"}
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Input:
  """A parameter of an operator: what it takes ("Tensor", "Host", "Any"), and whether it may be absent."""
  name: str
  takes: str
  optional: bool
  variadic: bool


@dataclass(frozen=True)
class Attribute:
  """A named constant of a node: what it is (of KINDS), and its default (REQUIRED: none)."""
  name: str
  kind: str
  default: Any


@dataclass(frozen=True)
class Operator:
  """An operator as one function knows it, for the versions `since`."""
  domain: str
  name: str
  since: tuple[int, ...]
  function: Callable[..., Any]
  called: bool                        # whether the function takes the Call
  inputs: tuple[Input, ...]
  attributes: dict[str, Attribute]

  @property
  def least(self) -> int:
    """How many inputs there must be."""
    return sum(1 for i in self.inputs if not i.optional and not i.variadic)

  @property
  def most(self) -> int | None:
    """How many inputs there may be; None where any number."""
    return None if any(i.variadic for i in self.inputs) else len(self.inputs)


_rows: dict[tuple[str, str], list[Operator]] = {}


def operator(name: str, *since: int, domain: str = STANDARD) -> Callable[[F], F]:
  """Declare the function of an operator; see the module."""
  def declare(function: F) -> F:
    rows = _rows.setdefault((domain, name), [])
    if not since or list(since) != sorted(set(since)): raise LayoutError(f"{name}: versions {since} are no list")
    if set(since) & {v for row in rows for v in row.since}: raise LayoutError(f"{name}: a version of {since} twice")
    rows.append(_declared(domain, name, since, function))
    return function
  return declare


def _declared(domain: str, name: str, since: tuple[int, ...], function: Callable[..., Any]) -> Operator:
  inputs, attributes, called = [], {}, False
  for i, p in enumerate(inspect.signature(function).parameters.values()):
    kind = str(p.annotation).removesuffix(" | None")
    if i == 0 and kind == "Call": called = True
    elif p.kind is p.KEYWORD_ONLY:
      if kind not in KINDS: raise LayoutError(f"{name}.{p.name} is a {kind}: no attribute is")
      attributes[p.name] = Attribute(p.name, kind, p.default)
    else:
      if kind not in ("Tensor", "Host", "Any"): raise LayoutError(f"{name}.{p.name} is a {kind}: no input is")
      optional = str(p.annotation).endswith("| None") or p.default is not p.empty
      inputs.append(Input(p.name, kind, optional, p.kind is p.VAR_POSITIONAL))
  return Operator(domain, name, since, function, called, tuple(inputs), attributes)


def find(domain: str, name: str, opset: int) -> tuple[Operator, int] | None:
  """The operator that a name means in an opset, and the version that is in force there."""
  versions = {v: row for row in _rows.get((domain, name), ()) for v in row.since if v <= opset}
  return (versions[max(versions)], max(versions)) if versions else None


def first(domain: str, name: str) -> int | None:
  """The first version of an operator that is in the table."""
  return min((v for row in _rows.get((domain, name), ()) for v in row.since), default=None)


def declared() -> Iterator[Operator]:
  """Every row of the table."""
  for rows in _rows.values(): yield from rows
