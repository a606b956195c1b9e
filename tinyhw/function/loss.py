"""Losses. `reduction` says what becomes of the single ones: "mean" (the default), "sum" or "none"."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from tinyhw.core.errors import InvalidArgument, InvalidShape
from tinyhw.function.core import broadcast_shape
from tinyhw.function.normalization import Normalization
from tinyhw.ir.dtype import dtypes

if TYPE_CHECKING:
  from typing import Self


class Loss(Normalization):
  """The losses: of this, what a network gave, and a target."""
  __slots__ = ()

  def _averaged(self, reduction: str, weight: Self | None = None) -> Self:
    if reduction == "none": return self
    if reduction == "sum": return self.sum()
    if reduction != "mean": raise InvalidArgument(f'reduction {reduction!r} is none of "mean", "sum", "none"')
    return self.mean() if weight is None else self.sum() / weight.sum()

  def sparse_categorical_crossentropy(self, target: Self, ignore_index: int | None = None, label_smoothing: float = 0.0,
                                      reduction: str = "mean") -> Self:
    """Cross entropy of logits (..., classes) and class numbers (...)."""
    if self.shape[:-1] != target.shape:
      raise InvalidShape(f"logits of shape {self.shape} need targets of shape {self.shape[:-1]}, not {target.shape}")
    scores = self.log_softmax(-1)
    chosen = target._is_class(self.shape[-1])
    loss = -chosen.where(scores, 0).sum(-1)
    if label_smoothing: loss = (1 - label_smoothing) * loss - label_smoothing * scores.mean(-1)
    if ignore_index is None: return loss._averaged(reduction)
    counted = target.ne(ignore_index)
    return counted.where(loss, 0)._averaged(reduction, counted.cast(loss.dtype))

  def cross_entropy(self, target: Self, reduction: str = "mean", label_smoothing: float = 0.0, *,
                    weight: Self | None = None, ignore_index: int = -100) -> Self:
    """Cross entropy of logits (batch, classes, ...) and class numbers (batch, ...) or probabilities of the logits'
    shape. Classes may have weights; a class number `ignore_index` does not count."""
    scores = self.log_softmax(1 if self.ndim > 1 else 0)
    if target.ndim < self.ndim and not target.dtype.is_float:
      return scores._of_classes(target, weight, ignore_index, reduction, label_smoothing)
    if target.shape != self.shape:
      raise InvalidShape(f"logits of shape {self.shape} do not fit targets of shape {target.shape}")
    axis = 1 if self.ndim > 1 else 0
    goal = target * (1 - label_smoothing) + label_smoothing / self.shape[axis]
    product = scores * goal if weight is None else scores * goal * weight._along_axis(axis, self.ndim)
    loss = -product.sum(axis)
    if reduction != "mean": return loss._averaged(reduction)
    return loss.sum() / max(loss.numel(), 1)

  def _of_classes(self, target: Self, weight: Self | None, ignore_index: int, reduction: str,
                  label_smoothing: float = 0.0) -> Self:
    """The loss of logarithms of probabilities (batch, classes, ...) by class numbers."""
    axis = 1 if self.ndim > 1 else 0
    last = self.movedim(axis, -1)
    if last.shape[:-1] != target.shape:
      raise InvalidShape(f"logits of shape {self.shape} need targets of shape {last.shape[:-1]}, not {target.shape}")
    chosen = target._is_class(last.shape[-1])
    counted = target.ne(ignore_index)
    shares = None if weight is None else counted.where(chosen.where(weight, 0).sum(-1), 0)
    score = last if weight is None else last * weight
    loss = counted.where(-chosen.where(score, 0).sum(-1), 0)
    if label_smoothing:
      smooth = -score.sum(-1)
      loss = (1 - label_smoothing) * loss + (label_smoothing / last.shape[-1]) * counted.where(smooth, 0)
    return loss._averaged(reduction, shares if shares is not None else counted.cast(loss.dtype))

  def nll_loss(self, target: Self, weight: Self | None = None, ignore_index: int = -100,
               reduction: str = "mean") -> Self:
    """The negative of the logarithms of probabilities (batch, classes, ...) of class numbers (batch, ...)."""
    return self._of_classes(target, weight, ignore_index, reduction)

  def binary_crossentropy(self, target: Self, reduction: str = "mean", *, weight: Self | None = None) -> Self:
    """Cross entropy of probabilities of one class; their logarithms count as -100 at least."""
    low = (1 - self).log().maximum(-100)
    loss = -(target * self.log().maximum(-100) + (1 - target) * low)
    return (loss if weight is None else loss * weight)._averaged(reduction)
  binary_cross_entropy = binary_crossentropy

  def binary_crossentropy_logits(self, target: Self, reduction: str = "mean", *, weight: Self | None = None,
                                 pos_weight: Self | None = None) -> Self:
    """Cross entropy of logits and probabilities of one class; `pos_weight` multiplies what counts for the class."""
    broadcast_shape(self.shape, target.shape)
    if pos_weight is None: loss = self.softplus() - self * target
    else: loss = (1 - target) * self + (1 + (pos_weight - 1) * target) * (-self).softplus()
    return (loss if weight is None else loss * weight)._averaged(reduction)
  binary_cross_entropy_with_logits = binary_crossentropy_logits

  def _by_weight(self, weight: Self | None, shape: tuple[int, ...]) -> Self:
    """Times the weights of elements of that shape."""
    if weight is None: return self
    if weight.shape != shape: raise InvalidShape(f"weights of shape {weight.shape} for elements of shape {shape}")
    return self * weight

  def mse_loss(self, target: Self, reduction: str = "mean", *, weight: Self | None = None) -> Self:
    """Squared difference; elements may have weights, whose sum the mean is divided by."""
    return (self - target).square()._by_weight(weight, self.shape)._averaged(reduction, weight)

  def l1_loss(self, target: Self, reduction: str = "mean", *, weight: Self | None = None) -> Self:
    """Magnitude of the difference; elements may have weights, whose sum the mean is divided by."""
    return (self - target).abs()._by_weight(weight, self.shape)._averaged(reduction, weight)

  def huber_loss(self, target: Self, reduction: str = "mean", delta: float = 1.0, *,
                 weight: Self | None = None) -> Self:
    """Half of the squared difference, linear beyond `delta`; elements may have weights, and the mean is divided by
    their number."""
    apart = (self - target).abs()
    loss = (apart < delta).where(apart.square() * 0.5, (apart - 0.5 * delta) * delta)
    return loss._by_weight(weight, self.shape)._averaged(reduction)

  def smooth_l1_loss(self, target: Self, reduction: str = "mean", beta: float = 1.0) -> Self:
    """Magnitude of the difference, squared below `beta`."""
    if beta == 0: return self.l1_loss(target, reduction)
    apart = (self - target).abs()
    return (apart < beta).where(apart.square() * (0.5 / beta), apart - 0.5 * beta)._averaged(reduction)

  def kl_div(self, target: Self, reduction: str = "mean", log_target: bool = False) -> Self:
    """Kullback and Leibler's divergence of logarithms of probabilities from a target; "batchmean" divides by the
    batch."""
    loss = target.exp() * (target - self) if log_target else target.xlogy(target) - target * self
    if reduction == "batchmean": return loss.sum() / max(self.shape[0], 1) if self.ndim else loss.sum()
    return loss._averaged(reduction)

  def poisson_nll_loss(self, target: Self, log_input: bool = True, full: bool = False, eps: float = 1e-8,
                       reduction: str = "mean") -> Self:
    """The negative logarithm of Poisson's probability of the target; `full` adds Stirling's term."""
    loss = self.exp() - target * self if log_input else self - target * (self + eps).log()
    if full:
      above = (target > 1).where(target, 1)
      loss = loss + (target > 1).where(above * above.log() - above + 0.5 * (2 * math.pi * above).log(), 0)
    return loss._averaged(reduction)

  def gaussian_nll_loss(self, target: Self, var: Self, full: bool = False, eps: float = 1e-6,
                        reduction: str = "mean") -> Self:
    """The negative logarithm of the normal density of the target around this."""
    if var.shape != self.shape and var.shape == self.shape[:-1]: var = var.unsqueeze(-1)
    spread = var.maximum(eps)
    loss = 0.5 * (spread.log() + (self - target).square() / spread)
    return (loss + 0.5 * math.log(2 * math.pi) if full else loss)._averaged(reduction)

  def hinge_embedding_loss(self, target: Self, margin: float = 1.0, reduction: str = "mean") -> Self:
    """x where the target is 1, max(0, margin - x) where it is -1."""
    near = target.eq(1).where(self, 0)
    return (near + target.eq(-1).where((margin - self).relu(), 0))._averaged(reduction)

  def soft_margin_loss(self, target: Self, reduction: str = "mean") -> Self:
    """log(1 + exp(-target * x))."""
    return (-target * self).softplus()._averaged(reduction)

  def margin_ranking_loss(self, other: Self, target: Self, margin: float = 0.0, reduction: str = "mean") -> Self:
    """max(0, -target * (self - other) + margin)."""
    return (-target * (self - other) + margin).relu()._averaged(reduction)

  def cosine_embedding_loss(self, other: Self, target: Self, margin: float = 0.0, reduction: str = "mean") -> Self:
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1; vectors along the last axis."""
    angle = self.cosine_similarity(other, -1)
    return target.eq(1).where(1 - angle, (angle - margin).relu())._averaged(reduction)

  def triplet_margin_loss(self, positive: Self, negative: Self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
                          swap: bool = False, reduction: str = "mean") -> Self:
    """max(0, distance to the positive - distance to the negative + margin)."""
    far = self.pairwise_distance(negative, p, eps)
    if swap: far = far.minimum(positive.pairwise_distance(negative, p, eps))
    return (self.pairwise_distance(positive, p, eps) - far + margin).relu()._averaged(reduction)

  def multilabel_soft_margin_loss(self, target: Self, weight: Self | None = None, reduction: str = "mean") -> Self:
    """The mean over classes (the last axis) of each one's cross entropy by logits."""
    loss = target * (-self).softplus() + (1 - target) * self.softplus()
    return (loss if weight is None else loss * weight).mean(-1)._averaged(reduction)

  def multi_margin_loss(self, target: Self, p: int = 1, margin: float = 1.0, weight: Self | None = None,
                        reduction: str = "mean") -> Self:
    """The mean over all other classes of max(0, margin - score of the class + the other's) ** p."""
    if self.ndim < 2:
      alone = self.reshape(1, -1).multi_margin_loss(target.reshape(1), p, margin, weight, "none")
      return alone.squeeze(0)._averaged(reduction)
    own = target.one_hot(self.shape[-1]).bool()
    score = own.where(self, 0).sum(-1, keepdim=True)
    part = (margin - score + self).relu()
    part = part if p == 1 else part.square() if p == 2 else part ** p
    if weight is not None: part = part * own.where(weight, 0).sum(-1, keepdim=True)
    return (own.where(0, part).sum(-1) / self.shape[-1])._averaged(reduction)

  def multilabel_margin_loss(self, target: Self, reduction: str = "mean") -> Self:
    """The mean over classes of max(0, 1 - score of a target + the other's) for all targets, which end at the first that
    is negative, and all classes that are none."""
    if self.shape != target.shape: raise InvalidShape(f"a loss of shape {self.shape} and a target of {target.shape}")
    if self.ndim < 2:
      alone = self.reshape(1, -1).multilabel_margin_loss(target.reshape(1, -1), "none")
      return alone.squeeze(0)._averaged(reduction)
    counted = (target < 0).cast(dtypes.int32).cumsum(-1).eq(0)
    place = counted.where(target.cast(dtypes.int32), -1)
    named = (place.unsqueeze(-1) == self._iota(self.shape[-1])).any(1)
    score = self.gather(-1, place.maximum(0))
    part = (1 - score.unsqueeze(-1) + self.unsqueeze(-2)).relu()
    there = counted.unsqueeze(-1) & named.logical_not().unsqueeze(-2)
    return (there.where(part, 0).sum((-2, -1)) / self.shape[-1])._averaged(reduction)

  def triplet_margin_with_distance_loss(self, positive: Self, negative: Self, *, margin: float = 1.0,
                                        distance_function: Callable[[Self, Self], Self] | None = None,
                                        swap: bool = False, reduction: str = "mean") -> Self:
    """max(0, distance to the positive - distance to the negative + margin), by any distance."""
    apart = distance_function or (lambda a, b: a.pairwise_distance(b))
    far = apart(self, negative)
    if swap: far = far.minimum(apart(positive, negative))
    return (apart(self, positive) - far + margin).relu()._averaged(reduction)
