"""The tensors of a network by name, found by walking its attributes, lists and dictionaries."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tinyhw.core.errors import InvalidArgument
from tinyhw.tensor import Tensor


def _walk(thing: Any, name: str, seen: set[int]) -> Iterator[tuple[str, Tensor]]:
  if isinstance(thing, Tensor):
    yield name, thing
    return
  if isinstance(thing, (str, bytes, int, float, type)) or id(thing) in seen: return
  seen.add(id(thing))
  if isinstance(thing, (list, tuple)): parts = [(str(i), part) for i, part in enumerate(thing)]
  elif isinstance(thing, dict): parts = [(str(key), part) for key, part in thing.items()]
  else: parts = list(getattr(thing, "__dict__", {}).items())
  for key, part in parts: yield from _walk(part, f"{name}.{key}" if name else key, seen)


def get_state_dict(model: Any) -> dict[str, Tensor]:
  """Every tensor below `model`, by its path: `"layers.0.weight"`."""
  return dict(_walk(model, "", set()))


def get_parameters(model: Any) -> list[Tensor]:
  """Every tensor below `model` that requires a gradient."""
  return [t for t in get_state_dict(model).values() if t.requires_grad]


def load_state_dict(model: Any, state: dict[str, Tensor], strict: bool = True) -> None:
  """Give the tensors below `model` the values in `state`; with `strict` both must have the same names."""
  own = get_state_dict(model)
  missing, extra = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
  if strict and (missing or extra):
    raise InvalidArgument(f"the state lacks {missing or 'nothing'} and has {extra or 'nothing'} besides")
  for name, tensor in own.items():
    if name in state: tensor.assign(state[name].detach().to(tensor.device).cast(tensor.dtype))
