"""Values on several devices, as they lie there, and the sums of what each device has."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from tinyhw.compile.spread import Parts, spread
from tinyhw.compile.spread import all_reduce as reduced
from tinyhw.core.errors import InvalidArgument
from tinyhw.devices.buffer import buffer_of, new_node
from tinyhw.engine.realize import placed, realize
from tinyhw.function.core import TensorBase
from tinyhw.ir.group import is_group, members
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import UOp

T = TypeVar("T", bound=TensorBase)
_OPERATIONS: Final = ("add", "mul", "maximum", "minimum")


def parts(tensor: TensorBase) -> tuple[tuple[UOp, ...], int | None]:
  """The memory of a tensor on a group of devices, a graph over each one's, and the axis that it is cut along."""
  realize(tensor)
  found = placed(tensor.uop)
  if found is None:  # no elements
    return tuple(UOp.const(tensor.dtype, 0, d, tensor.shape) for d in members(tensor._device)), None
  memory = {u: [new_node(b) for b in buffer_of(u).parts] for u in found.toposort() if u.op is Ops.BUFFER}
  result = spread([found], {u: nodes for u, nodes in memory.items() if is_group(u.device)})[found]
  assert isinstance(result, Parts)
  if found.op is Ops.BUFFER and result.axis is not None:     # memory as it is: in the shape that it was cut in
    result = result.each(lambda p: p.reshape((p.size,)), 0)
  return result.nodes, result.axis


def all_reduce(parts: Sequence[T], operation: str = "add", ring: bool | None = None) -> list[T]:
  """All parts, of one shape on different devices, taken together (`add`, `mul`, `maximum`, `minimum`): the same
  value on each device; see `compile.spread.all_reduce`."""
  first, devices = parts[0], [p._device for p in parts]
  if any(p.shape != first.shape or p.dtype is not first.dtype for p in parts):
    raise InvalidArgument(f"all_reduce of {', '.join(f'{p.shape} {p.dtype}' for p in parts)}",
                          hint="parts have one shape and dtype")
  if operation not in _OPERATIONS:
    raise InvalidArgument(f"all_reduce by {operation!r}", hint=f"there are {', '.join(_OPERATIONS)}")
  def together(a: UOp, b: UOp) -> UOp:
    found: Any = getattr(first._wrap(a), operation)(first._wrap(b))
    node: UOp = found.uop
    return node
  return [first._wrap(u, *parts) for u in reduced([p.uop for p in parts], devices, together, ring)]
