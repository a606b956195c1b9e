"""The arguments of a recorded function by their places (`x`, `options.scale`, `batch[1]`): which are tensors, and what
the others were.

A replay takes the tensors as they are then, of the recorded shape, dtype and device. All else was worked into the
recorded kernels and must be the same. Numbers, text, NumPy arrays and bytes are compared by value, containers item by
item, other objects by identity, or by equality where they can be hashed.
"""
from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tinyhw.core.environment import raw
from tinyhw.core.errors import InvalidArgument
from tinyhw.devices.registry import Device
from tinyhw.engine.binding import known_value
from tinyhw.function.core import TensorBase, grad_enabled, threads_modes
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.size import Size, unbound, value_of
from tinyhw.tensor.tensor import Tensor

HINT = "use a Tensor or a Variable for what changes, a TinyJit of its own for each kind of call, or reset()"


class Missing(enum.Enum):
  """In the place of an argument that the other call does not have."""
  MISSING = "nothing"


class Kind(NamedTuple):
  """What a replay cannot change of a tensor; `learns`: it is a leaf that requires a gradient. The values of Variables
  in its shape are not part of it."""
  shape: tuple[int, ...]
  dtype: DType
  device: str | None
  learns: bool

  def __str__(self) -> str:
    return f"{self.shape} {self.dtype} on {self.device}{', requires_grad' if self.learns else ''}"


def kind_of(tensor: TensorBase) -> Kind:
  """The tensor's kind."""
  node = tensor._uop
  return Kind(unbound(node.shape), node.dtype, node.device, tensor.requires_grad and tensor.is_leaf)


class Fact(NamedTuple):
  """A value that does not change while it is kept here. `text` shows it; a key without one is its own text."""
  key: Any
  text: str = ""

  @property
  def show(self) -> str:
    """For an error."""
    return self.text or str(self.key)


class Same:
  """An object that is compared by identity, or by equality where it has a hash."""
  __slots__ = ("thing",)

  def __init__(self, thing: Any) -> None: self.thing = thing

  def __eq__(self, other: object) -> bool:
    if not isinstance(other, Same): return False
    x, y = self.thing, other.thing
    return x is y or type(x) is type(y) and isinstance(x, Hashable) and (x == y) is True

  __hash__ = None  # type: ignore[assignment]  # nothing is looked up by it

  @property
  def show(self) -> str:
    """For an error."""
    return repr(self.thing)


def _container(thing: Any) -> tuple[str, list[tuple[str, Any]]] | None:
  """What a list, tuple or dict is and what is in it; None for anything else."""
  if isinstance(thing, (list, tuple)):
    return f"a {type(thing).__name__} of {len(thing)}", [(f"[{i}]", x) for i, x in enumerate(thing)]
  if isinstance(thing, dict):
    return f"a {type(thing).__name__} of {', '.join(map(repr, thing)) or 'nothing'}", [
      (f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{key!r}]", x) for key, x in thing.items()]
  return None


def places(thing: Any, name: str) -> Iterator[tuple[str, Any]]:
  """Everything in nested containers with its place; a container itself by a Fact of its kind."""
  found = _container(thing)
  if found is None: yield name, thing
  else:
    yield name, Fact(found[0])
    for part, inside in found[1]: yield from places(inside, name + part)


def rebuilt(thing: Any, made: Callable[[Any], Any], kinds: tuple[type, ...] = (TensorBase,)) -> Any:
  """The same containers with other tensors (or other things of these kinds)."""
  if isinstance(thing, kinds): return made(thing)
  if isinstance(thing, dict):
    changed = {key: rebuilt(x, made, kinds) for key, x in thing.items()}
    if type(thing) is dict: return changed
    copy = thing.copy()  # an OrderedDict, a defaultdict
    copy.update(changed)
    return copy
  if isinstance(thing, (list, tuple)):
    items = [rebuilt(x, made, kinds) for x in thing]
    return type(thing)(*items) if hasattr(thing, "_fields") else type(thing)(items)
  return thing


def tensors(thing: Any) -> list[TensorBase]:
  """The tensors in nested containers, each object once."""
  found = {id(t): t for _, t in places(thing, "") if isinstance(t, TensorBase)}
  return list(found.values())


def _fact(value: Any) -> Fact | Same:
  """A value as it is now."""
  if isinstance(value, Fact): return value
  if isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
    return Fact((type(value), repr(value)), repr(value))  # by repr: nan is nan, and 0.0 is not -0.0
  if isinstance(value, (bytearray, memoryview)): return Fact((type(value), bytes(value)), f"{len(value)} bytes")
  if hasattr(value, "dtype") and hasattr(value, "tobytes"):  # NumPy's arrays and scalars
    key = (type(value), str(value.dtype), value.shape, value.tobytes())
    return Fact(key, f"an array {value.shape} of {value.dtype}" if value.shape else repr(value))
  if isinstance(value, Size):
    for v in value.node.variables:
      if v.src and value_of(v) != known_value(v.arg):
        raise InvalidArgument(f"a size {value} was made with {v.arg.name} = {value_of(v)}, which it is not now",
                              hint="bind the Variable first, then make the arguments of that call")
    return Fact((Size, unbound(Size(value.node))), str(value))
  return Same(value)


@dataclass(eq=False)
class Call:
  """The arguments of one call: each distinct tensor with its first place, and everything else."""
  tensors: list[tuple[str, TensorBase]]
  facts: dict[str, Fact | Same]

  def forget_tensors(self) -> None:
    """Keep no argument alive: what remains to be compared are facts."""
    self.tensors = []

  def check(self, other: Call, where: str) -> None:
    """Raise InvalidArgument unless the other call differs in the values of tensors alone."""
    if self.facts == other.facts: return
    for place in [*self.facts, *other.facts]:
      old, new = self.facts.get(place), other.facts.get(place)
      if old == new: continue
      shown = [Missing.MISSING.value if v is None else v.show for v in (old, new)]
      raise InvalidArgument(f"argument {place}: made for {shown[0]}, called with {shown[1]}", where=where, hint=HINT)


Modes = tuple[bool, bool, str, DType, DType]


def modes() -> Modes:
  """What decides, beside a call's arguments, what a function computes."""
  return Tensor.training, grad_enabled(), Device.DEFAULT, dtypes.default_float, dtypes.default_int


def state() -> tuple[object, ...]:
  """All that `modes` depends on, and the variables that say how a call is done: to be compared with what it was."""
  return (raw(b"JIT"), raw(b"DEBUG"), raw(b"PROFILE"), raw(b"VIZ"), raw(b"DEV"), Device.default, threads_modes(),
          dtypes.default_float, dtypes.default_int)


class Quick:
  """A call of tensors alone, each another one: what it takes for the next one to be the same but for their values.
  `skip`: how many arguments come first that belong to the TinyJit itself."""
  __slots__ = ("state", "skip", "_kinds")

  def __init__(self, args: tuple[Any, ...], skip: int) -> None:
    self.state, self.skip, self._kinds = state(), skip, [kind_of(t) for t in args[skip:]]

  @staticmethod
  def of(args: tuple[Any, ...], kwargs: dict[str, Any], call: Call, skip: int) -> Quick | None:
    """For a call of this kind."""
    given = args[skip:]
    same = len(given) == len(call.tensors) and all(t is x for (_, t), x in zip(call.tensors, given))
    return Quick(args, skip) if same and not kwargs and len(call.facts) == len(given) + len(MODES) else None

  def serves(self, args: tuple[Any, ...]) -> bool:
    """Whether a call with these arguments is such a one. (One that is not may be right all the same.)"""
    given = args[self.skip:]
    if len(given) != len(self._kinds) or state() != self.state: return False
    for t, kind in zip(given, self._kinds):
      if not isinstance(t, TensorBase): return False
      node = t._uop
      if node.dtype is not kind.dtype or node.device != kind.device: return False
      if node.shape != kind.shape and unbound(node.shape) != kind.shape: return False
      if (t.requires_grad and t.is_leaf) != kind.learns: return False
    return len(given) < 2 or len({id(t) for t in given}) == len(given)


MODES: Final = ("Tensor.training (a mode)", "Tensor.no_grad (a mode)", "Device.DEFAULT (a mode)",
                "dtypes.default_float (a mode)", "dtypes.default_int (a mode)")


class Arguments:
  """The parameters of a function, and how a call fills them."""

  def __init__(self, function: Callable[..., Any]) -> None:
    self._names: list[str] = []
    self._defaults: dict[str, Any] = {}
    try: parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError): parameters = []
    for p in parameters:
      if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD): self._names.append(p.name)
      if p.default is not p.empty: self._defaults[p.name] = p.default

  def call(self, args: tuple[Any, ...], kwargs: dict[str, Any], skip: int = 0) -> Call:
    """A call's arguments; the first `skip` (the instance of a method) are left out."""
    named = {**self._defaults, **{self._names[i] if i < len(self._names) else f"args[{i}]": x
                                  for i, x in enumerate(args) if i >= skip}, **dict(sorted(kwargs.items()))}
    if kwargs or self._defaults:              # in one order, whatever theirs is: a replay takes tensors by it
      named = {name: named[name] for name in dict.fromkeys((*self._names, *named)) if name in named}
    training, records, device, default_float, default_int = modes()
    facts: dict[str, Fact | Same] = dict(zip(MODES, (
      _fact(training), _fact(not records), _fact(device), Same(default_float), Same(default_int)), strict=True))
    found: dict[int, tuple[str, TensorBase]] = {}
    for name, value in named.items():
      for place, thing in places(value, name):
        if not isinstance(thing, TensorBase):
          facts[place] = _fact(thing)
          continue
        first = found.setdefault(id(thing), (place, thing))[0]
        facts[place] = Fact(kind_of(thing) if first == place else f"the tensor of {first}")
    return Call(list(found.values()), facts)
