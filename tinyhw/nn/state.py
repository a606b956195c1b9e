"""The tensors of a network by name, found by walking its attributes, lists and dictionaries; and files of tensors.

`load` reads safetensors, GGUF and PyTorch's checkpoints; each format has a module in `nn.formats`.
"""
from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping, Set
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument
from tinyhw.engine.realize import realize as realize_all
from tinyhw.function.spelling import by_any_spelling
from tinyhw.tensor.tensor import Tensor

if TYPE_CHECKING:
  from tinyhw.nn.formats.archives import TensorIO, tar_extract, zip_extract
  from tinyhw.nn.formats.detect import read as load
  from tinyhw.nn.formats.gguf import read as gguf_load
  from tinyhw.nn.formats.pytorch import read as torch_load
  from tinyhw.nn.formats.safetensors import metadata as safe_metadata
  from tinyhw.nn.formats.safetensors import read as safe_load
  from tinyhw.nn.formats.safetensors import write as safe_save

__all__ = ["get_parameters", "get_state_dict", "gguf_load", "load", "load_state_dict", "safe_load", "safe_metadata",
           "TensorIO", "safe_save", "tar_extract", "torch_load", "zip_extract"]
_FILES = {"load": ("detect", "read"), "gguf_load": ("gguf", "read"), "torch_load": ("pytorch", "read"),
          "safe_metadata": ("safetensors", "metadata"), "safe_load": ("safetensors", "read"),
          "safe_save": ("safetensors", "write"), "tar_extract": ("archives", "tar_extract"),
          "zip_extract": ("archives", "zip_extract"), "TensorIO": ("archives", "TensorIO")}


def __getattr__(name: str) -> Any:
  # A format loads with the first file of it.
  if name not in _FILES: raise AttributeError(f"module 'tinyhw.nn.state' has no attribute {name!r}")
  room, function = _FILES[name]
  value = globals()[name] = getattr(importlib.import_module(f"tinyhw.nn.formats.{room}"), function)
  return value


def attributes(thing: Any) -> Iterator[tuple[str, Any]]:
  """What an object holds: in its dictionary, and in the slots of its classes. A TinyJit or a graph holds no layers."""
  module = type(thing).__module__
  if module.startswith("tinyhw.") and not module.startswith("tinyhw.nn"): return
  yield from getattr(thing, "__dict__", {}).items()
  for cls in reversed(type(thing).__mro__):
    slots = cls.__dict__.get("__slots__", ())
    for name in (slots,) if isinstance(slots, str) else slots:
      if name not in ("__dict__", "__weakref__") and hasattr(thing, name): yield name, getattr(thing, name)


def _walk(thing: Any, name: str, above: tuple[int, ...], seen: set[int] | None = None) -> Iterator[tuple[str, Tensor]]:
  """Tensors with their paths, also those that are reached by several; `above` are the ids on the way down. With `seen`
  each thing is entered once."""
  if isinstance(thing, Tensor):
    yield name, thing
    return
  if isinstance(thing, (str, bytes, int, float, type, ModuleType)) or id(thing) in above: return
  if seen is not None:
    if id(thing) in seen: return
    seen.add(id(thing))
  if hasattr(type(thing), "named_parts"): parts = list(thing.named_parts())       # a Module
  elif isinstance(thing, (list, tuple)): parts = [(str(i), part) for i, part in enumerate(thing)]
  elif isinstance(thing, Mapping): parts = [(str(key), part) for key, part in thing.items()]
  elif isinstance(thing, Set):
    if any(True for part in thing for _ in _walk(part, "", above)):
      raise InvalidArgument("tensors in a set have no order and no names", where=name or type(thing).__name__,
                            hint="keep them in a list or a dict")
    return
  else: parts = list(attributes(thing))
  for key, part in parts: yield from _walk(part, f"{name}.{key}" if name else key, (*above, id(thing)), seen)


def get_state_dict(model: Any, prefix: str = "", tensor_type: type[Tensor] = Tensor) -> dict[str, Tensor]:
  """Every tensor below `model`, by its path: `"layers.0.weight"`, behind `prefix` and a dot if there is one; those of
  `tensor_type` alone, if it is said. One that several layers share is under each path.

  Raises InvalidArgument where two tensors would have one path.
  """
  state: dict[str, Tensor] = {}
  for name, tensor in _walk(model, prefix.strip("."), ()):
    if not isinstance(tensor, tensor_type): continue
    if state.setdefault(name, tensor) is not tensor:
      raise InvalidArgument(f"two tensors are called {name!r}", hint="keys 1 and '1', or 'a.b' and 'a': {'b': ...}")
  return state


def may_learn(t: Tensor) -> bool:
  """Whether it learns, or nobody has said that it does not: then it does for whoever is given it to optimize."""
  return t.is_leaf and t.dtype.is_float and t._learns is not False


def get_parameters(model: Any) -> list[Tensor]:
  """The tensors below `model` that may learn, each once, however many layers share it.

  What requires no gradient (a frozen weight, a running mean: `requires_grad=False`) is part of the state, and no
  parameter; neither are integers, nor what was computed from parameters and is kept.
  """
  return list(dict.fromkeys(t for _, t in _walk(model, "", (), set()) if may_learn(t)))


@by_any_spelling
def load_state_dict(model: Any, state: dict[str, Tensor], strict: bool = True, verbose: bool = False,
                    consume: bool = False, realize: bool = True) -> list[Tensor]:
  """Give the tensors below `model` the values in `state`, and return them; with `strict` both must have the same names.

  `verbose` says how many there are and which have no counterpart; `consume` takes from `state` what was loaded;
  without `realize` values stay where they are until they are used.
  Raises InvalidArgument, and changes nothing, where names or shapes differ.
  """
  own = get_state_dict(model)
  missing, extra = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
  if strict and (missing or extra):
    raise InvalidArgument(f"the state lacks {missing or 'nothing'} and has {extra or 'nothing'} besides")
  for name, tensor in own.items():
    if name in state and state[name].shape != tensor.shape and state[name].numel() * tensor.numel() != 1:
      raise InvalidArgument(f"the state has {name!r} of shape {state[name].shape}, the model of shape {tensor.shape}")
  loaded = [name for name in own if name in state]
  for name in loaded:
    tensor, value = own[name], state[name].detach()
    tensor.assign(value.reshape(tensor.shape).to(tensor.device).cast(tensor.dtype))
    if consume: del state[name]
  tensors = [own[name] for name in loaded]
  if realize and tensors: realize_all(*tensors)
  if verbose: print(f"loaded {len(loaded)} of {len(own)} tensors; the state lacks {missing or 'none'}, "
                    f"and has {extra or 'none'} besides", file=sys.stderr)
  return tensors
