"""One value on several devices: `Tensor.shard(devices, axis)` cuts a tensor along an axis, or copies it whole.

A `Sharded` has the functions of a Tensor. Elementwise functions, products and movements work on each device by itself;
what must be known of the others travels by `all_reduce`. Each part is a Tensor of its own, so gradients go back through
cuts, copies and sums to the tensor that was cut. What cannot be done in parts says so.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from tinyhw.core.errors import InvalidArgument, Unsupported
from tinyhw.device import Device
from tinyhw.function.activation import Activation
from tinyhw.function.core import broadcast_shape
from tinyhw.function.elementwise import Elementwise
from tinyhw.function.mathematics import Mathematics
from tinyhw.function.special import Special
from tinyhw.ir.dtype import DType
from tinyhw.tensor import Tensor

RING_FROM: Final = 1 << 16  # elements from which an all-reduce of more than two devices goes round in a ring
_ELEMENTWISE: Final = {
  name for cls in (Elementwise, Mathematics, Special, Activation) for name, f in vars(cls).items()
  if inspect.isfunction(f) and (not name.startswith("_") or name.startswith("__") and name.endswith("__"))
} - {"prelu", "__init__"}
_OPERATORS: Final = sorted(n for n in _ELEMENTWISE if n.startswith("__"))
_REDUCTIONS: Final = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum"}


def all_reduce(parts: Sequence[Tensor], operation: str = "add", ring: bool | None = None) -> list[Tensor]:
  """All parts, of one shape on different devices, taken together (`add`, `mul`, `maximum`, `minimum`): the same value
  on each device.

  Naive: each device gets all parts and adds them up, in their order. In a ring each device sums one piece, to which its
  neighbour before has added, and pieces that are done go round: each device sends and receives 2 (n - 1) / n of a part,
  however many there are. None chooses by size. The two may round floats differently.
  """
  first, devices = parts[0], [p.device for p in parts]
  if any(p.shape != first.shape or p.dtype is not first.dtype for p in parts):
    raise InvalidArgument(f"all_reduce of {', '.join(f'{p.shape} {p.dtype}' for p in parts)}",
                          hint="parts have one shape and dtype")
  if len(parts) == 1: return list(parts)
  def together(a: Tensor, b: Tensor) -> Tensor: return cast(Tensor, getattr(a, operation)(b).cast(first.dtype))
  if ring is None: ring = len(parts) > 2 and first.numel() >= RING_FROM
  if not ring:
    results = []
    for device in devices:
      total = parts[0].to(device)
      for part in parts[1:]: total = together(total, part.to(device))
      results.append(total)
    return results
  n, flat = len(parts), [p.reshape(-1) for p in parts]
  cuts = _cuts(first.numel(), n)
  pieces: list[list[Tensor]] = [[] for _ in parts]  # by device, then by piece
  for k, (start, stop) in enumerate(cuts):
    total = flat[k].shrink(((start, stop),))
    for step in range(1, n):  # the device after the last one has the whole piece
      at = (k + step) % n
      total = together(total.to(devices[at]), flat[at].shrink(((start, stop),)))
    total = total.contiguous()
    done: dict[int, Tensor] = {(k + n - 1) % n: total}
    for step in range(n - 1):
      at = (k + step) % n
      done[at] = total = total.to(devices[at])
    for at in range(n): pieces[at].append(done[at])
  return [p[0].cat(*p[1:]).reshape(first.shape) for p in pieces]


def _cuts(size: int, n: int) -> list[tuple[int, int]]:
  """An axis in n parts, of which the first ones are longer by one where it does not come out even."""
  each, more = divmod(size, n)
  starts = [k * each + min(k, more) for k in range(n + 1)]
  return list(zip(starts, starts[1:]))


def shard(tensor: Tensor, devices: Sequence[str], axis: int | None = None) -> Sharded:
  """The tensor cut along an axis, a part on each device; without an axis a copy on each."""
  names = [Device.canonicalize(d) for d in devices]
  if not names: raise InvalidArgument("shard on no devices")
  if len(set(names)) != len(names): raise InvalidArgument(f"shard on {', '.join(names)}: each device once")
  if axis is None: return Sharded([tensor.to(d) for d in names], None)
  axis = tensor._axis(axis)
  if tensor.shape[axis] < len(names):
    raise InvalidArgument(f"axis {axis} of {tensor.shape} in {len(names)} parts", hint="it needs an element for each")
  parts = [_cut(tensor, axis, *cut).to(d) for cut, d in zip(_cuts(tensor.shape[axis], len(names)), names)]
  return Sharded(parts, axis)


def _cut(tensor: Tensor, axis: int, start: int, stop: int) -> Tensor:
  return tensor.shrink([(start, stop) if k == axis else (0, n) for k, n in enumerate(tensor.shape)]).contiguous()


class Sharded:
  """See the module. `parts` are Tensors, one a device; `axis` is where they follow each other, None for copies."""

  def __init__(self, parts: Sequence[Tensor], axis: int | None) -> None:
    self.parts, self.axis = list(parts), axis

  # *** facts ***

  @property
  def devices(self) -> tuple[str, ...]:
    """Where the parts are."""
    return tuple(p.device for p in self.parts)

  device = devices

  @property
  def shape(self) -> tuple[int, ...]:
    """Of the whole."""
    shape = list(self.parts[0].shape)
    if self.axis is not None: shape[self.axis] = sum(p.shape[self.axis] for p in self.parts)
    return tuple(shape)

  @property
  def ndim(self) -> int:
    """Number of axes."""
    return self.parts[0].ndim

  @property
  def dtype(self) -> DType:
    """Type of the elements."""
    return self.parts[0].dtype

  @property
  def requires_grad(self) -> bool:
    """Whether a leaf that requires a gradient was used."""
    return any(p.requires_grad for p in self.parts)

  def numel(self) -> int:
    """Number of elements of the whole."""
    n = 1
    for s in self.shape: n *= s
    return n

  def __len__(self) -> int: return self.shape[0]
  def __repr__(self) -> str: return f"Sharded({self.shape} {self.dtype} on {', '.join(self.devices)}, axis={self.axis})"

  # *** place ***

  def to(self, device: str | None = None) -> Tensor:
    """The whole on one device: the first one of its own unless another is named."""
    name = self.devices[0] if device is None else Device.canonicalize(device)
    if self.axis is None: return next((p for p in self.parts if p.device == name), self.parts[0].to(name))
    first, *others = [p.to(name) for p in self.parts]
    return first.cat(*others, dim=self.axis)

  def shard(self, devices: Sequence[str], axis: int | None = None) -> Sharded:
    """The same value cut along another axis (None: not at all), or on other devices."""
    names = tuple(Device.canonicalize(d) for d in devices)
    if axis is not None: axis = self.parts[0]._axis(axis)
    if names == self.devices:
      if axis == self.axis: return self
      if self.axis is None and axis is not None:
        return Sharded([_cut(p, axis, *c) for p, c in zip(self.parts, _cuts(self.shape[axis], len(names)))], axis)
    return shard(self.to(), names, axis)

  def shard_(self, devices: Sequence[str], axis: int | None = None) -> Sharded:
    """Become the same value cut otherwise, or on other devices. Returns this."""
    other = self.shard(devices, axis)
    self.parts, self.axis = other.parts, other.axis
    return self

  def realize(self) -> Sharded:
    """Compute all parts."""
    self.parts[0].realize(*self.parts[1:])
    return self

  def numpy(self) -> Any: return self.to().numpy()
  def tolist(self) -> Any: return self.to().tolist()
  def item(self) -> Any: return self.to().item()

  def backward(self, gradient: Tensor | None = None) -> Sharded:
    """As a Tensor's: of the whole, on the first device."""
    self.to().backward(gradient)
    return self

  # *** parts by themselves ***

  def _each(self, f: Callable[[Tensor], Tensor], axis: int | None) -> Sharded:
    return Sharded([f(p) for p in self.parts], axis)

  def _aligned(self, operands: Sequence[Any]) -> tuple[list[list[Any]], int | None]:
    """Operands of an elementwise function for each device, and where the result is cut (counted from the last axis)."""
    things: list[Any] = [self, *operands]
    for k, x in enumerate(things):
      if isinstance(x, Tensor): things[k] = shard(x, self.devices)
      elif isinstance(x, Sharded) and x.devices != self.devices:
        raise InvalidArgument(f"operands on {', '.join(self.devices)} and on {', '.join(x.devices)}")
    tensors = [x for x in things if isinstance(x, Sharded)]
    shape = broadcast_shape(*(x.shape for x in tensors))
    cut = next((x.axis - x.ndim for x in tensors if x.axis is not None), None)
    for k, x in enumerate(things):
      if not isinstance(x, Sharded): continue
      here = None if cut is None or x.ndim < -cut or x.shape[cut] == 1 and shape[cut] != 1 else x.ndim + cut
      things[k] = x.shard(self.devices, here)
    rows = [[x.parts[d] if isinstance(x, Sharded) else x for x in things] for d in range(len(self.parts))]
    return rows, cut

  def _elementwise(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Sharded:
    names = list(options)
    rows, cut = self._aligned([*args, *options.values()])
    parts = []
    for row in rows:
      own, given, named = row[0], row[1:1 + len(args)], dict(zip(names, row[1 + len(args):]))
      parts.append(getattr(Tensor, name)(own, *given, **named))
    return Sharded(parts, None if cut is None else parts[0].ndim + cut)

  def _reduction(self, name: str, axis: Any = None, keepdim: bool = False, **more: Any) -> Sharded:
    axes = self.parts[0]._axes(axis)
    parts = [getattr(p, name)(axes, keepdim, **more) for p in self.parts]
    if self.axis is None: return Sharded(parts, None)
    if self.axis in axes: return Sharded(all_reduce(parts, _REDUCTIONS[name]), None)
    return Sharded(parts, self.axis if keepdim else self.axis - sum(a < self.axis for a in axes))

  def mean(self, axis: Any = None, keepdim: bool = False) -> Sharded:
    """As a Tensor's."""
    n = 1
    for a in self.parts[0]._axes(axis): n *= self.shape[a]
    floats = self if self.dtype.is_float else self.float()
    result: Sharded = floats.sum(axis, keepdim) / n
    return result

  def matmul(self, other: Sharded | Tensor) -> Sharded:
    """As a Tensor's, of operands with two axes or more. Cut along what is summed over, each device has a part of each
    sum, and the sums travel."""
    b = shard(other, self.devices) if isinstance(other, Tensor) else other
    if not isinstance(b, Sharded) or b.devices != self.devices:
      raise InvalidArgument("matmul of tensors on different devices")
    if self.ndim < 2 or b.ndim < 2: raise Unsupported("sharded matmul", "of a vector", hint="unsqueeze() it")
    mine, theirs = (None if x.axis is None else x.axis - x.ndim for x in (self, b))
    a, sums = self, mine == -1 or theirs == -2
    if sums: a, b, cut = a.shard(self.devices, -1), b.shard(self.devices, -2), None
    elif mine is not None: b, cut = b.shard(self.devices, mine if mine < -2 and b.ndim >= -mine else None), mine
    elif theirs is not None and theirs < -2 and a.ndim >= -theirs: a, cut = a.shard(self.devices, theirs), theirs
    else: cut = theirs
    parts = [x.matmul(y) for x, y in zip(a.parts, b.parts)]
    if sums: return Sharded(all_reduce(parts), None)
    return Sharded(parts, None if cut is None else parts[0].ndim + cut)

  dot = __matmul__ = matmul
  def __rmatmul__(self, other: Tensor) -> Sharded: return shard(other, self.devices).matmul(self)

  # *** movement ***

  def reshape(self, *shape: Any) -> Sharded:
    """As a Tensor's. The axis of the cut has to stay an axis."""
    new = list(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else list(shape)
    if -1 in new:
      known = 1
      for s in new: known *= s if s != -1 else 1
      new[new.index(-1)] = self.numel() // max(known, 1)
    if self.axis is None: return self._each(lambda p: p.reshape(new), None)
    before, old = 1, self.shape
    for s in old[:self.axis]: before *= s
    at, product = 0, 1
    while at < len(new) and product < before: product, at = product * new[at], at + 1
    while at < len(new) and new[at] == 1 and old[self.axis] != 1: at += 1
    if at == len(new) or product != before or new[at] != old[self.axis]:
      raise Unsupported("sharded reshape", f"of {old}, cut along axis {self.axis}, to {tuple(new)}",
                        hint="shard() it along an axis that stays, or along none")
    return self._each(lambda p: p.reshape([p.shape[self.axis or 0] if k == at else s for k, s in enumerate(new)]), at)

  view = reshape

  def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Sharded:
    """As a Tensor's."""
    first, last = self.parts[0]._axis(start_dim), self.parts[0]._axis(end_dim)
    n = 1
    for s in self.shape[first:last + 1]: n *= s
    return self.reshape(*self.shape[:first], n, *self.shape[last + 1:])

  def unsqueeze(self, axis: int) -> Sharded:
    """As a Tensor's."""
    at = self.parts[0]._axis(axis, 1)
    return self._each(lambda p: p.unsqueeze(at), None if self.axis is None else self.axis + (at <= self.axis))

  def squeeze(self, axis: int) -> Sharded:
    """As a Tensor's, of one axis."""
    at = self.parts[0]._axis(axis)
    if self.shape[at] != 1: return self
    if at == self.axis: return self.shard(self.devices).squeeze(at)
    return self._each(lambda p: p.squeeze(at), None if self.axis is None else self.axis - (at < self.axis))

  def permute(self, *order: Any) -> Sharded:
    """As a Tensor's."""
    given = order[0] if len(order) == 1 and isinstance(order[0], (tuple, list)) else order
    axes = [self.parts[0]._axis(a) for a in given]
    return self._each(lambda p: p.permute(*axes), None if self.axis is None else axes.index(self.axis))

  def transpose(self, axis0: int = 1, axis1: int = 0) -> Sharded:
    """As a Tensor's."""
    order = list(range(self.ndim))
    a, b = self.parts[0]._axis(axis0), self.parts[0]._axis(axis1)
    order[a], order[b] = order[b], order[a]
    return self.permute(*order)

  @property
  def T(self) -> Sharded:
    """The axes in reverse."""
    return self.permute(*reversed(range(self.ndim)))

  def expand(self, *shape: Any) -> Sharded:
    """As a Tensor's, to no other size of the axis of the cut."""
    new = list(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else list(shape)
    if self.axis is None: return self._each(lambda p: p.expand(new), None)
    at = self.axis + len(new) - self.ndim
    if new[at] not in (-1, self.shape[self.axis]):
      raise InvalidArgument(f"expand of {self.shape}, cut along axis {self.axis}, to {tuple(new)}")
    return self._each(lambda p: p.expand([p.shape[self.axis or 0] if k == at else s for k, s in enumerate(new)]), at)

  def contiguous(self) -> Sharded: return self._each(lambda p: p.contiguous(), self.axis)
  def detach(self) -> Sharded: return self._each(lambda p: p.detach(), self.axis)

  # *** all else ***

  def __getattr__(self, name: str) -> Any:
    if name in _ELEMENTWISE: return lambda *args, **options: self._elementwise(name, args, options)
    if name in _REDUCTIONS: return lambda *args, **options: self._reduction(name, *args, **options)
    made = None if name.startswith("_") else getattr(Tensor, name, None)
    if made is None: raise AttributeError(f"a sharded tensor has no attribute {name!r}")
    if not inspect.isfunction(made): raise self._refused(name)
    return lambda *args, **options: self._apart(name, made, args, options)

  def _apart(self, name: str, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A function of each part by itself: of copies, along an axis that is not cut, or a loss of each sample."""
    bound = inspect.signature(function).bind(self, *args, **options)
    bound.apply_defaults()
    names, kind = list(bound.arguments), bound.arguments
    if "reduction" in names and self.axis is not None: return self._loss(name, kind)
    if self.axis is not None:
      axis = kind.get("axis", kind.get("dim"))
      if not isinstance(axis, int) or self.parts[0]._axis(axis) == self.axis: raise self._refused(name)
    given = {k: v for k, v in kind.items() if k != names[0]}
    if any(isinstance(v, Sharded) and v.axis != self.axis for v in given.values()): raise self._refused(name)
    found = [self._call(name, d, given) for d in range(len(self.parts))]
    if self.axis is None: return Sharded(found, None)
    lost = self.ndim - found[0].ndim
    if lost not in (0, 1): raise self._refused(name)
    return Sharded(found, self.axis - (lost and self.parts[0]._axis(int(axis or 0)) < self.axis))

  def _call(self, name: str, device: int, given: dict[str, Any]) -> Tensor:
    own = {k: v.parts[device] if isinstance(v, Sharded) else v for k, v in given.items()}
    result = getattr(self.parts[device], name)(**own)
    if not isinstance(result, Tensor): raise self._refused(name)
    return result

  def _loss(self, name: str, given: dict[str, Any]) -> Sharded:
    """A loss of all samples, from those of each device. Weighted means are of what one device cannot know."""
    first, *names = given
    options = {k: given[k] for k in names}
    how, plain = options["reduction"], inspect.signature(getattr(Tensor, name)).parameters
    if self.axis != 0 or how == "mean" and any(k in options and options[k] != plain[k].default
                                               for k in ("weight", "ignore_index")): raise self._refused(name)
    rows = {k: v.shard(self.devices, 0) if isinstance(v, Sharded) else shard(v, self.devices, 0)
            if isinstance(v, Tensor) else v for k, v in options.items()}
    each = Sharded([self._call(name, d, rows | {"reduction": "none"}) for d in range(len(self.parts))], 0)
    return each if how == "none" else each.sum() if how == "sum" else each.mean()

  def softmax(self, axis: int = -1) -> Sharded:
    """As a Tensor's."""
    if self.parts[0]._axis(axis) != self.axis: return self._each(lambda p: p.softmax(axis), self.axis)
    powers = (self - self.max(axis, True).detach()).exp()
    result: Sharded = powers / powers.sum(axis, True)
    return result

  def log_softmax(self, axis: int = -1) -> Sharded:
    """As a Tensor's."""
    if self.parts[0]._axis(axis) != self.axis: return self._each(lambda p: p.log_softmax(axis), self.axis)
    moved = self - self.max(axis, True).detach()
    result: Sharded = moved - moved.exp().sum(axis, True).log()
    return result

  def _refused(self, name: str) -> Unsupported:
    return Unsupported("function of a sharded tensor", name, hint="put it together first: x.to(device)")


def _operator(name: str) -> Callable[..., Any]:
  def operator(self: Sharded, *args: Any) -> Any: return self._elementwise(name, args, {})
  operator.__name__ = name
  return operator


for _name in _OPERATORS: setattr(Sharded, _name, _operator(_name))
Sharded.__hash__ = object.__hash__  # type: ignore[method-assign]
