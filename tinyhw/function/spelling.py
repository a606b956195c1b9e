"""The one place where keywords of several spellings meet: `dim=` and `axis=`, `keepdim=` and `keepdims=`, and so on.

A function declares each parameter once, under one name. Every class of functions is gone through when it is made, and
what takes a parameter of several spellings accepts all of them; giving two of them at once is a TypeError, as for any
parameter that is given twice.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from tinyhw.core.errors import InvalidArgument
from tinyhw.function.limits import MAY_HOLD, refuse_beyond

SPELLINGS: tuple[tuple[str, ...], ...] = (
  ("axis", "dim", "dims", "axes", "order", "dimension"),
  ("axis0", "dim0"),
  ("axis1", "dim1"),
  ("source_axis", "source"),
  ("target_axis", "destination"),
  ("keepdim", "keepdims"),
  ("stop", "end"),
  ("low", "min", "min_", "from_"),
  ("high", "max", "max_"),
  ("value", "fill_value"),
  ("shift", "shifts"),
  ("sizes", "split_size", "split_size_or_sections", "sizes_or_sections"),
  ("sections", "indices_or_sections"),
  ("other", "mat2", "vec", "vec2", "tensor2", "batch2", "input2", "x2", "divisor", "exponent"),
  ("padding", "pad"),
  ("count", "chunks"),
  ("index", "indices"),
  ("classes", "num_classes"),
  ("slope", "negative_slope", "neg_slope"),
  ("correction", "ddof"),
  ("shape", "size"),
  ("rows", "n"),
  ("dtype", "acc_dtype"),
  ("target", "Y"),
  ("sorted", "sorted_"),
  ("bounds", "arg"),
  ("num_features", "sz"),
  ("num_embeddings", "vocab_size"),
  ("embedding_dim", "embed_size"),
  ("affine", "elementwise_affine"),
  ("parameters", "params"),
  ("path", "fn"),
  ("state", "state_dict"),
  ("minimum", "min_val"),
  ("maximum", "max_val"),
)
"""Names of one parameter. A function that has several of a row as parameters of their own keeps them apart."""
_ROWS = {name: row for row in SPELLINGS for name in row}


IN_PLACE = frozenset({"relu", "relu6", "leaky_relu", "elu", "selu", "celu", "silu", "mish", "hardtanh", "hardswish",
                      "hardsigmoid", "threshold", "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout",
                      "feature_alpha_dropout", "rrelu"})
"""Functions that take PyTorch's `inplace=True`: the tensor itself gets the value, too."""


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")
OPERATORS = frozenset({"__getitem__", "__setitem__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__",
                       *(f"__{kind}{name}__" for name in _BINARY for kind in ("", "r", "i"))})
"""What Python calls with numbers of the user's."""


F = TypeVar("F", bound=Callable[..., Any])


def of_several(*after: str) -> Callable[[F], F]:
  """For a function of several tensors: `a.f(b)` and `Tensor.f(a, b)` may be written `Tensor.f([a, b])` too, and what
  follows the list in its place are the parameters `after`."""
  def mark(function: F) -> F:
    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
      if args and isinstance(args[0], (list, tuple)):
        first, *rest = args
        if not first: raise InvalidArgument(f"{function.__name__}() of no tensors")
        if len(rest) > len(after):
          raise TypeError(f"{function.__name__}() takes {len(after)} arguments behind the list of tensors")
        args = tuple(first)
        kwargs |= dict(zip(after, rest))
      return function(*args, **kwargs)
    return cast(F, called)
  return mark


def _other_names(function: Callable[..., Any]) -> dict[str, str]:
  """Other spelling -> the parameter's own, for the parameters of a function; "*own" for one that is a list."""
  code: Any = inspect.unwrap(function).__code__  # the signature of a function takes longer
  named, spreads = code.co_argcount + code.co_kwonlyargcount, bool(code.co_flags & inspect.CO_VARARGS)
  own = list(code.co_varnames[:named + spreads])
  found: dict[str, str] = {}
  for name in own:
    row = _ROWS.get(name, ())
    if sum(other in own for other in row) == 1: found |= {other: name for other in row if other != name}
  # `f(*axes)` has no keyword of its own: that one is another spelling too.
  spread = code.co_varnames[named] if spreads else None
  if spread in _ROWS: found[spread] = spread
  return {name: f"*{own}" if own == spread else own for name, own in found.items()}


def _accepting(function: Callable[..., Any], names: dict[str, str]) -> Callable[..., Any]:
  changes, called = function.__name__ in IN_PLACE, function.__name__.strip("_")

  @functools.wraps(function)
  def spelled(*args: Any, **kwargs: Any) -> Any:
    for value in args:
      if type(value) in MAY_HOLD:
        refuse_beyond(called, args)
        break
    if not kwargs: return function(*args)
    refuse_beyond(called, kwargs.values())
    if changes and kwargs.pop("inplace", False): return args[0]._in_place(function.__name__, args[1:], kwargs)
    for name in kwargs.keys() & names.keys():
      if names[name][0] == "*":
        if len(args) > 1: raise TypeError(f"{function.__name__}() got {name!r} twice")
        value = kwargs.pop(name)
        args = (*args, *(value if isinstance(value, (list, tuple)) else (value,)))
        continue
      if names[name] in kwargs:
        raise TypeError(f"{function.__name__}() got {name!r} and {names[name]!r}: they are the same parameter")
      kwargs[names[name]] = kwargs.pop(name)
    return function(*args, **kwargs)
  return spelled


def _operator(function: Callable[..., Any]) -> Callable[..., Any]:
  """An operator of one operand, which is called too often for `_accepting`."""
  called = function.__name__.strip("_")

  @functools.wraps(function)
  def bounded(self: Any, value: Any) -> Any:
    if type(value) in MAY_HOLD: refuse_beyond(called, (value,))
    return function(self, value)
  return bounded


C = TypeVar("C", bound=type[Any])


def made_by_any_spelling(cls: C) -> C:
  """Makes a class take every spelling of what it is made of."""
  made: Any = cls
  made.__init__ = _accepting(made.__init__, _other_names(made.__init__))
  return cls


def by_any_spelling(function: F) -> F:
  """Makes a function take every spelling of its parameters."""
  return cast(F, _accepting(function, _other_names(function)))


def accept_all_spellings(cls: type) -> None:
  """Makes the functions that a class adds take every spelling of their parameters, and no number beyond all types."""
  done: dict[Any, Any] = {}      # a function under two names stays one
  for name, member in list(vars(cls).items()):
    if name.startswith("_") and name not in OPERATORS: continue
    kind = type(member) if isinstance(member, (classmethod, staticmethod)) else None
    function = member.__func__ if kind else member
    if not inspect.isfunction(function): continue
    if function not in done:
      one = name in OPERATORS and function.__code__.co_argcount == 2
      done[function] = _operator(function) if one else _accepting(function, _other_names(function))
    setattr(cls, name, kind(done[function]) if kind else done[function])
