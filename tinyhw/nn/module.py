"""`Module`, what PyTorch's users derive their networks from: parameters, buffers and modules by the names of the
attributes that hold them; and containers of modules.

A module is found by its attributes: a `Parameter` is a parameter, also what takes its place later; what
`register_buffer` was given is a buffer; a Module is a child. Other tensors are the module's own affair, as in PyTorch
(`nn.get_parameters` and `nn.get_state_dict` find those too).

Whether it trains: a class of yours trains until `eval()` is called, as in PyTorch; a layer of `tinyhw.nn` follows
`Tensor.training`, or the module that calls it, until `train()` or `eval()` is called. While a module is called its mode
is the one of Tensor's functions, `x.dropout()` too.
"""
from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from tinyhw.core.environment import digits
from tinyhw.core.errors import InvalidArgument, InvalidType
from tinyhw.engine.realize import realize
from tinyhw.ir.dtype import DType, dtypes
from tinyhw.ir.uop import UOp
from tinyhw.nn.state import attributes
from tinyhw.tensor.tensor import DTypeLike, Tensor


class Parameter(Tensor):
  """A tensor that a module learns by: it requires a gradient unless told. What is computed from it is a Tensor."""
  __slots__ = ()

  def __init__(self, data: Any = None, requires_grad: bool = True):
    super().__init__(data.detach() if isinstance(data, Tensor) else data, requires_grad=requires_grad)

  @classmethod
  def _wrap(cls, uop: UOp, *parents: Any) -> Any: return Tensor._wrap(uop, *parents)
  @classmethod
  def _holding(cls, held: Any) -> Any: return Tensor._holding(held)

  def __copy__(self) -> Parameter:
    copied = Parameter(self, self.requires_grad)
    copied.grad = None if self.grad is None else self.grad._same()
    return copied

  def __reduce__(self) -> tuple[Any, ...]:
    make, given = super().__reduce__()
    return _unpickled, (make, given, self.requires_grad)


def _unpickled(make: Callable[..., Tensor], given: tuple[Any, ...], requires_grad: bool) -> Parameter:
  return Parameter(make(*given), requires_grad)


class IncompatibleKeys(NamedTuple):
  """What `load_state_dict` has not found on either side."""
  missing_keys: list[str]
  unexpected_keys: list[str]


class Hook:
  """A function that was registered with a module; `remove()` takes it away."""
  _numbers = itertools.count()

  def __init__(self, hooks: dict[int, Any], function: Any, with_kwargs: bool):
    self._hooks, self._number = hooks, next(Hook._numbers)
    hooks[self._number] = function, with_kwargs

  def remove(self) -> None:
    """Call it no more."""
    self._hooks.pop(self._number, None)


class Module:
  """A part of a network: `forward` says what it computes, its attributes are its parameters and parts."""
  _mode: bool | None = True                           # whether it trains; None: as Tensor does
  _parameter_names: Mapping[str, None] = {}
  _buffer_names: Mapping[str, bool] = {}              # and whether each is part of the state
  _before: Mapping[int, Any] = {}
  _after: Mapping[int, Any] = {}

  def __init__(self) -> None: pass

  def forward(self, *args: Any, **kwargs: Any) -> Any:
    """What it computes."""
    raise NotImplementedError(f"{type(self).__name__} has no forward()")

  def __call__(self, *args: Any, **kwargs: Any) -> Any:
    mode = self._mode
    if mode is None or mode is Tensor.training: return self._called(args, kwargs)
    with Tensor.train(mode): return self._called(args, kwargs)

  def _called(self, args: Any, kwargs: Any) -> Any:
    for hook, both in list(self._before.values()):
      found = hook(self, args, kwargs) if both else hook(self, args)
      if found is not None:
        if both: args, kwargs = found
        else: args = found if isinstance(found, tuple) else (found,)
    result = self.forward(*args, **kwargs)
    for hook, both in list(self._after.values()):
      found = hook(self, args, kwargs, result) if both else hook(self, args, result)
      if found is not None: result = found
    return result

  def register_forward_hook(self, hook: Callable[..., Any], *, with_kwargs: bool = False) -> Hook:
    """Call `hook(module, args, result)` after each call; what it gives, unless None, is the result."""
    return Hook(self.__dict__.setdefault("_after", {}), hook, with_kwargs)

  def register_forward_pre_hook(self, hook: Callable[..., Any], *, with_kwargs: bool = False) -> Hook:
    """Call `hook(module, args)` before each call; what it gives, unless None, are the arguments."""
    return Hook(self.__dict__.setdefault("_before", {}), hook, with_kwargs)

  # *** what it has ***

  def __setattr__(self, name: str, value: Any) -> None:
    if isinstance(value, Parameter): self._declare("_parameter_names", name, None)
    object.__setattr__(self, name, value)

  def __setstate__(self, state: dict[str, Any]) -> None: self.__dict__.update(state)

  def _declare(self, kind: str, name: str, fact: bool | None) -> None:
    if not isinstance(name, str): raise InvalidType(f"a {type(name).__name__} is no name of a part: {name!r}")
    if "." in name or not name: raise KeyError(f"a part is called {name!r}: a name without dots")
    for other in ("_parameter_names", "_buffer_names"): self.__dict__.get(other, {}).pop(name, None)
    self.__dict__.setdefault(kind, {})[name] = fact

  def register_parameter(self, name: str, param: Parameter | None) -> None:
    """Have a parameter of that name, or none yet."""
    if param is not None and not isinstance(param, Parameter):
      raise InvalidType(f"parameter {name!r} is a {type(param).__name__}", hint="make it a nn.Parameter")
    self._declare("_parameter_names", name, None)
    setattr(self, name, param)

  def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
    """Have a tensor of that name which does not learn; part of the state unless it is not `persistent`."""
    if tensor is not None and not isinstance(tensor, Tensor):
      raise InvalidType(f"buffer {name!r} is a {type(tensor).__name__}, no Tensor")
    self._declare("_buffer_names", name, persistent)
    setattr(self, name, tensor)

  def register_module(self, name: str, module: Module | None) -> None:
    """Have a part of that name."""
    if module is not None and not isinstance(module, Module):
      raise InvalidType(f"module {name!r} is a {type(module).__name__}")
    setattr(self, name, module)
  add_module = register_module

  def named_parts(self) -> Iterator[tuple[str, Any]]:
    """All that it holds, by name."""
    return ((name, value) for name, value in attributes(self) if name not in ("_before", "_after"))

  def _take(self, name: str, part: Any) -> None:
    """Have another part in the place of the one of that name."""
    setattr(self, name, part)

  def _own(self, buffers: bool, kept: bool = False) -> Iterator[tuple[str, Tensor]]:
    """Its own parameters, or buffers; of these with `kept` those that are part of the state."""
    for name, value in self.named_parts():
      if not isinstance(value, Tensor): continue
      if not buffers and (isinstance(value, Parameter) or name in self._parameter_names): yield name, value
      if buffers and name in self._buffer_names and (self._buffer_names[name] or not kept): yield name, value

  def named_children(self) -> Iterator[tuple[str, Module]]:
    """The modules that it holds itself, by name, each once."""
    seen: set[int] = set()
    for name, value in self.named_parts():
      if isinstance(value, Module) and id(value) not in seen:
        seen.add(id(value))
        yield name, value

  def children(self) -> Iterator[Module]:
    """The modules that it holds itself."""
    return (module for _, module in self.named_children())

  def named_modules(self, memo: set[Any] | None = None, prefix: str = "",
                    remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
    """This and all modules below it, by path, each once unless told."""
    memo = set() if memo is None else memo
    if remove_duplicate and self in memo: return
    memo.add(self)
    yield prefix, self
    for name, value in self.named_parts():
      if isinstance(value, Module):
        yield from value.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

  def modules(self) -> Iterator[Module]:
    """This and all modules below it."""
    return (module for _, module in self.named_modules())

  def _tensors(self, buffers: bool, prefix: str, recurse: bool, once: bool) -> Iterator[tuple[str, Tensor]]:
    seen: set[int] = set()
    for path, module in self.named_modules(None, prefix, once) if recurse else [(prefix, self)]:
      for name, value in module._own(buffers):
        if once and id(value) in seen: continue
        seen.add(id(value))
        yield f"{path}.{name}" if path else name, value

  def named_parameters(self, prefix: str = "", recurse: bool = True,
                       remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
    """The parameters by path, each once unless told."""
    return self._tensors(False, prefix, recurse, remove_duplicate)

  def parameters(self, recurse: bool = True) -> Iterator[Tensor]:
    """The parameters, each once."""
    return (value for _, value in self.named_parameters("", recurse))

  def named_buffers(self, prefix: str = "", recurse: bool = True,
                    remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
    """The buffers by path, each once unless told."""
    return self._tensors(True, prefix, recurse, remove_duplicate)

  def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
    """The buffers, each once."""
    return (value for _, value in self.named_buffers("", recurse))

  def _found(self, target: str, kind: type[Any], what: str) -> Any:
    found: Any = self
    for name in target.split(".") if target else ():
      found = dict(found.named_parts()).get(name) if isinstance(found, Module) else None
    if not isinstance(found, kind): raise AttributeError(f"{type(self).__name__} has no {what} {target!r}")
    return found

  def get_submodule(self, target: str) -> Module:
    """The module of a path."""
    return cast(Module, self._found(target, Module, "module"))

  def get_parameter(self, target: str) -> Tensor:
    """The parameter of a path."""
    found: Any = dict(self.named_parameters(remove_duplicate=False)).get(target)
    if found is None: raise AttributeError(f"{type(self).__name__} has no parameter {target!r}")
    return cast(Tensor, found)

  def get_buffer(self, target: str) -> Tensor:
    """The buffer of a path."""
    found: Any = dict(self.named_buffers(remove_duplicate=False)).get(target)
    if found is None: raise AttributeError(f"{type(self).__name__} has no buffer {target!r}")
    return cast(Tensor, found)

  # *** modes ***

  @property
  def training(self) -> bool:
    """Whether it trains."""
    return Tensor.training if self._mode is None else self._mode

  @training.setter
  def training(self, mode: bool) -> None: self._mode = mode

  def train(self, mode: bool = True) -> Any:
    """Have this and all below it train, or not. Returns this."""
    if not isinstance(mode, bool): raise InvalidArgument(f"train({mode!r})", hint="it is True or False")
    for module in self.modules(): module._mode = mode
    return self

  def eval(self) -> Any:
    """`train(False)`."""
    return self.train(False)

  def requires_grad_(self, requires_grad: bool = True) -> Any:
    """Have its parameters learn, or not. Returns this."""
    for p in self.parameters(): p.requires_grad_(requires_grad)
    return self

  def zero_grad(self, set_to_none: bool = True) -> None:
    """Forget the gradients, or make them 0."""
    for p in self.parameters(): p.grad = None if set_to_none or p.grad is None else p.grad.zeros_like().contiguous()

  def apply(self, fn: Callable[[Module], Any]) -> Any:
    """Call a function with each module below, then with this. Returns this."""
    for child in self.children(): child.apply(fn)
    fn(self)
    return self

  # *** state ***

  def _state(self, prefix: str = "") -> Iterator[tuple[str, Module, str, Tensor]]:
    """(path, module, name in it, tensor) of all that is part of the state."""
    for path, module in self.named_modules(None, prefix, False):
      for buffers in (False, True):
        for name, value in module._own(buffers, True): yield f"{path}.{name}" if path else name, module, name, value

  def state_dict(self, destination: dict[str, Tensor] | None = None, prefix: str = "",
                 keep_vars: bool = False) -> dict[str, Tensor]:
    """Parameters and persistent buffers by path, as they are now, without a history: to change one in place changes the
    module's. With `keep_vars` the very tensors."""
    found = {} if destination is None else destination
    for path, _, _, value in self._state(prefix.rstrip(".")): found[path] = value if keep_vars else value.detach()
    return found

  def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True,
                      assign: bool = False) -> IncompatibleKeys:
    """Give parameters and buffers the values of a state, all or none; with `strict` both have the same names. With
    `assign` they become the state's tensors, of their types and on their devices."""
    own = {path: (module, name, value) for path, module, name, value in self._state()}
    missing = [path for path in own if path not in state_dict]
    extra = [path for path in state_dict if path not in own]
    given = {path: v if isinstance(v, Tensor) else Tensor(v) for path, v in state_dict.items() if path in own}
    wrong = [f"{path!r} of shape {v.shape} for shape {own[path][2].shape}" for path, v in given.items()
             if v.shape != own[path][2].shape]
    if wrong or strict and (missing or extra):
      said = [f"{what}: {', '.join(names)}" for what, names in (("missing", missing), ("unexpected", extra)) if names]
      raise InvalidArgument(f"the state does not fit {type(self).__name__}: {'; '.join([*said, *wrong])}",
                            hint="load_state_dict(state, strict=False) takes what is there" if not wrong else "")
    for path, value in given.items():
      module, name, old = own[path]
      if not assign: old.assign(value.detach().to(old.device).cast(old.dtype))
      elif name in module._buffer_names: setattr(module, name, value)
      else: module._take(name, Parameter(value, old.requires_grad))
    if given and not assign: realize(*(own[path][2] for path in given))
    return IncompatibleKeys(missing, extra)

  # *** place and type ***

  def to(self, *args: Any, device: Any = None, dtype: DTypeLike = None, **options: Any) -> Any:
    """Move parameters and buffers to a device, or give floats a type: `to("AMD")`, `to(dtypes.half)`, `to(tensor)`.
    Returns this; its parameters stay the same tensors."""
    for given in args:
      if isinstance(given, Tensor): device, dtype = given.device, given.dtype
      elif isinstance(given, DType): dtype = given
      elif not isinstance(given, bool): device = given
    kind = dtypes.named(dtype) if isinstance(dtype, str) else dtype
    if kind is not None and not kind.is_float:
      raise InvalidType(f"a module of {kind}", hint="parameters are floats")
    for value in dict.fromkeys((*self.parameters(), *self.buffers())):
      if device is not None: value.to_(device)
      if kind is not None and value.dtype.is_float and value.dtype is not kind: _cast(value, kind)
    return self

  def float(self) -> Any:
    """Floats as float32."""
    return self.to(dtypes.float32)
  def half(self) -> Any:
    """Floats as float16."""
    return self.to(dtypes.float16)
  def bfloat16(self) -> Any:
    """Floats as bfloat16."""
    return self.to(dtypes.bfloat16)
  def double(self) -> Any:
    """Floats as float64."""
    return self.to(dtypes.float64)
  def cpu(self) -> Any:
    """On the host's processor (`LLVM`)."""
    return self.to("LLVM")
  def cuda(self, device: Any = None) -> Any:
    """On the first GPU of CUDA, or that one."""
    return self.to("CUDA" if device is None else f"CUDA:{device}" if isinstance(device, int) else device)

  # *** text ***

  def extra_repr(self) -> str:
    """What stands between the brackets of its text."""
    return ""

  def __repr__(self) -> str:
    lines = [f"({name}): " + repr(part).replace("\n", "\n  ") for name, part in self.named_parts()
             if isinstance(part, Module)]
    extra = self.extra_repr()
    if not lines: return f"{type(self).__name__}({extra})"
    return "\n  ".join([f"{type(self).__name__}({extra}", *lines]) + "\n)"


def _cast(value: Tensor, kind: DType) -> None:
  """Give a leaf another type."""
  learned, grad = value.requires_grad, value.grad
  value.requires_grad = False
  value.replace(value.detach().cast(kind).contiguous())
  value.requires_grad_(learned)
  if grad is not None: value.grad = grad.cast(kind)


class Layer(Module):
  """A module of `tinyhw.nn`: it follows `Tensor.training` until somebody says otherwise. Those that are made on a
  `device` take a `dtype` too, which their floats get."""
  _mode = None

  def __init_subclass__(cls, **options: Any) -> None:
    super().__init_subclass__(**options)
    made = vars(cls).get("__init__")
    if made is None or "device" not in made.__code__.co_varnames: return
    cls.__init__ = _of_any_type(made)  # type: ignore[method-assign]  # as a decorator of each would


def _of_any_type(made: Callable[..., None]) -> Callable[..., None]:
  """The `__init__` with a `dtype`."""
  @functools.wraps(made)
  def typed(self: Layer, *args: Any, dtype: DTypeLike = None, **options: Any) -> None:
    made(self, *args, **options)
    if dtype is not None: self.to(dtype=dtype)
  return typed


class _Listed(Layer, list[Any]):
  """Modules by number."""
  __hash__ = object.__hash__  # type: ignore[assignment]  # a module is itself, a list is what is in it
  def __eq__(self, other: object) -> bool: return self is other
  def __ne__(self, other: object) -> bool: return self is not other

  def named_parts(self) -> Iterator[tuple[str, Any]]:
    """What it lists by number, then its attributes."""
    yield from ((str(i), part) for i, part in enumerate(self))
    yield from super().named_parts()

  def _take(self, name: str, part: Any) -> None:
    if digits(name): self[int(name)] = part
    else: super()._take(name, part)

  def _checked(self, part: Any) -> Any:
    """What may be in it."""
    return part

  def append(self, part: Any) -> Any:
    """One more at the end. Returns this."""
    super().append(self._checked(part))
    return self

  def extend(self, parts: Iterable[Any]) -> Any:
    """More at the end. Returns this."""
    for part in parts: self.append(part)
    return self

  def insert(self, index: Any, module: Any) -> None:
    """One more, before another."""
    super().insert(index, self._checked(module))

  def __setitem__(self, index: Any, part: Any) -> None: super().__setitem__(index, self._checked(part))
  def __iadd__(self, parts: Iterable[Any]) -> Any: return self.extend(parts)  # type: ignore[misc]  # to any list


class ModuleList(_Listed):
  """A list of modules, which are parts of the module that has it."""

  def __init__(self, modules: Iterable[Module] | None = None):
    super().__init__()
    self.extend(modules or ())

  def _checked(self, part: Any) -> Any:
    if not isinstance(part, Module): raise InvalidType(f"a {type(part).__name__} is no Module")
    return part

  def __getitem__(self, index: Any) -> Any:
    found = super().__getitem__(index)
    return type(self)(found) if isinstance(index, slice) else found

  def __add__(self, other: Any) -> Any: return type(self)([*self, *other])


class ParameterList(_Listed):
  """A list of parameters; tensors in it become parameters."""

  def __init__(self, values: Iterable[Any] | None = None):
    super().__init__()
    self.extend(values or ())

  def _checked(self, part: Any) -> Any:
    return Parameter(part) if isinstance(part, Tensor) and not isinstance(part, Parameter) else part


class _Named(Layer, dict[str, Any]):
  """Parts by name."""
  __hash__ = object.__hash__  # type: ignore[assignment]  # a module is itself
  def __eq__(self, other: object) -> bool: return self is other
  def __ne__(self, other: object) -> bool: return self is not other

  def __init__(self, parts: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None):
    super().__init__()
    self.update(parts or {})

  def named_parts(self) -> Iterator[tuple[str, Any]]:
    """What it holds by name, then its attributes."""
    yield from self.items()
    yield from super().named_parts()

  def _take(self, name: str, part: Any) -> None:
    if name in self: self[name] = part
    else: super()._take(name, part)

  def _checked(self, name: str, part: Any) -> Any:
    """What may be in it."""
    raise NotImplementedError

  def __setitem__(self, name: str, part: Any) -> None: super().__setitem__(name, self._checked(name, part))

  def update(self, *given: Any, **named: Any) -> None:
    """Take parts by name."""
    for name, part in dict(*given, **named).items(): self[name] = part


class ModuleDict(_Named):
  """Modules by name, which are parts of the module that has them."""

  def _checked(self, name: str, part: Any) -> Any:
    if not isinstance(name, str): raise InvalidType(f"a {type(name).__name__} is no name: {name!r}")
    if not isinstance(part, Module): raise InvalidType(f"{name!r} is a {type(part).__name__}, no Module")
    return part


class ParameterDict(_Named):
  """Parameters by name; tensors in it become parameters."""

  def _checked(self, name: str, part: Any) -> Any:
    return Parameter(part) if isinstance(part, Tensor) and not isinstance(part, Parameter) else part


class Sequential(_Listed):
  """Layers and functions, one after the other: a list that can be called. Its state has PyTorch's names, "0.weight", or
  those of a dictionary that it was given."""

  def __init__(self, *layers: Any):
    super().__init__()
    if len(layers) == 1 and isinstance(layers[0], dict):
      self._names = list(layers[0])
      layers = tuple(layers[0].values())
    self.extend(layers)

  def _checked(self, part: Any) -> Any:
    if not callable(part): raise InvalidType(f"layer {len(self)} is a {type(part).__name__}, and cannot be called")
    return part

  def named_parts(self) -> Iterator[tuple[str, Any]]:
    """Its layers by number, or by the names that they were given; then its attributes."""
    names = self.__dict__.get("_names", [])
    yield from ((names[i] if i < len(names) else str(i), part) for i, part in enumerate(self))
    yield from ((name, part) for name, part in Module.named_parts(self) if name != "_names")

  def __getattr__(self, name: str) -> Any:
    if name in (names := self.__dict__.get("_names", [])): return self[names.index(name)]
    raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

  def __getitem__(self, index: Any) -> Any:
    found = super().__getitem__(index)
    if not isinstance(index, slice): return found
    names = [name for name, _ in self.named_parts()][:len(self)][index]
    return Sequential(dict(zip(names, found))) if "_names" in self.__dict__ else Sequential(*found)

  def forward(self, x: Any) -> Any:
    """Each layer on what the one before gave."""
    for layer in self: x = layer(x)
    return x
