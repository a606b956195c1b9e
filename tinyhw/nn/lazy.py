"""Layers that learn their sizes from what they are first called with, and what else is seldom used: names, parameters
and values are PyTorch's."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from tinyhw.core.errors import InvalidArgument, InvalidShape
from tinyhw.nn import layers
from tinyhw.nn.module import Layer, Module, ModuleList, Sequential
from tinyhw.tensor.tensor import Tensor


class Lazy(Layer):
  """A layer without its first size: by its first call it becomes the `kind` that it stands for, with what it was made
  with. Until then it has no weights, and to ask for them is refused: an optimizer would miss them."""
  kind: type[Any] = Layer
  made_of: tuple[tuple[Any, ...], dict[str, Any]]
  axis = 1          # of the input, whose size is the one that is not known

  def __init__(self, *args: Any, **kwargs: Any):
    object.__setattr__(self, "made_of", (args, kwargs))

  def __repr__(self) -> str:
    args, kwargs = self.made_of
    return f"{type(self).__name__}({', '.join([*map(str, args), *(f'{k}={v}' for k, v in kwargs.items())])})"

  def named_children(self) -> Iterator[tuple[str, Module]]:
    """None."""
    return iter(())

  def named_modules(self, memo: set[Any] | None = None, prefix: str = "",
                    remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
    """This alone."""
    yield prefix, self

  def named_parts(self) -> Iterator[tuple[str, Any]]:
    """Refused: there are none yet."""
    raise InvalidArgument(f"{type(self).__name__} has no weights before its first call",
                          hint="call the network once with an input, then make the optimizer or load its state")

  def forward(self, x: Tensor, *more: Any) -> Any:
    (args, kwargs), kind, size = self.made_of, self.kind, x.shape[self.axis]
    del self.__dict__["made_of"]
    self.__class__ = kind                     # from here on it is one
    kind.__init__(self, size, *args, **kwargs)
    return self.forward(x, *more)


_KINDS: Final = {"LazyLinear": ("Linear", -1), **{
  f"Lazy{name}{n}d": (f"{name}{n}d", 1) for name in ("Conv", "ConvTranspose", "BatchNorm", "InstanceNorm")
  for n in (1, 2, 3)}}
LAZY: Final[dict[str, type[Lazy]]] = {
  name: type(name, (Lazy,), {"kind": getattr(layers, kind), "axis": axis, "__module__": __name__,
                             "__doc__": f"`nn.{kind}` whose first size is that of what it is first called with."})
  for name, (kind, axis) in _KINDS.items()}
"""The layers by their names."""
globals().update(LAZY)


class SyncBatchNorm(layers.BatchNorm):
  """Batch norm: of a batch on several devices the statistics are those of the whole batch, as they always are here."""

  @classmethod
  def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
    """The module itself."""
    return module


class Losses(NamedTuple):
  """The logarithm of the target's probability for each row, and the mean loss."""
  output: Tensor
  loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Layer):
  """Softmax over very many classes, of which the first are frequent (Grave et al., arXiv:1609.04309): the classes from
  each cutoff to the next are a cluster with a projection that is `div_value` times as small as the one before."""

  def __init__(self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0,
               head_bias: bool = False, device: str | None = None):
    cutoffs = list(cutoffs)
    if not cutoffs or cutoffs != sorted(set(cutoffs)) or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1:
      raise InvalidArgument(f"cutoffs {cutoffs} of {n_classes} classes", hint="numbers that grow, within the classes")
    self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*cutoffs, n_classes]
    self.div_value, self.head_bias, self.n_clusters = div_value, head_bias, len(cutoffs)
    self.head = layers.Linear(in_features, cutoffs[0] + self.n_clusters, head_bias, device)
    self.tail = ModuleList([Sequential(
      layers.Linear(in_features, int(in_features // div_value ** (i + 1)), False, device),
      layers.Linear(int(in_features // div_value ** (i + 1)), self.cutoffs[i + 1] - self.cutoffs[i], False, device))
      for i in range(self.n_clusters)])

  def log_prob(self, input: Tensor) -> Tensor:
    """The logarithms of the probabilities of all classes, (batch, classes)."""
    head = self.head(input).log_softmax(-1)
    first = self.cutoffs[0]
    parts: list[Tensor] = [head[:, :first]]
    parts += [tail(input).log_softmax(-1) + head[:, first + i].unsqueeze(1) for i, tail in enumerate(self.tail)]
    return parts[0].cat(*parts[1:], dim=1)

  def predict(self, input: Tensor) -> Tensor:
    """The most probable class of each row."""
    found: Tensor = self.log_prob(input).argmax(1)
    return found

  def forward(self, input: Tensor, target: Tensor) -> Losses:
    if (alone := input.ndim == 1): input, target = input.unsqueeze(0), target.reshape(1)
    if input.ndim != 2 or target.shape != input.shape[:1]:
      raise InvalidShape(f"inputs of shape {input.shape} and targets of {target.shape}",
                         hint="give (batch, features) and (batch,)")
    found = self.log_prob(input).gather(1, target.unsqueeze(1)).squeeze(1)
    return Losses(found.squeeze(0) if alone else found, -found.mean())
