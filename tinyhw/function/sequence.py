"""Losses of sequences."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument, InvalidShape
from tinyhw.function.solve import Solve
from tinyhw.ir.dtype import dtypes

if TYPE_CHECKING:
  from typing import Self


class Sequences(Solve):
  """The functions of sequences."""
  __slots__ = ()

  def _lengths(self, lengths: Any, count: int) -> Self:
    """Numbers as a vector of int32 on this device."""
    made: Any = type(self)
    if not isinstance(lengths, Sequences):
      lengths = made(list(lengths) if isinstance(lengths, Sequence) else [lengths], device=self.device)
    found: Self = lengths.cast(dtypes.int32).reshape(-1).expand(count)
    return found

  def ctc_loss(self, targets: Self, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
               zero_infinity: bool = False) -> Self:
    """Graves' loss of logarithms of probabilities (time, batch, classes), or (time, classes), for sequences of class
    numbers: rows of `targets`, or one behind the other in a vector, of which the lengths are read then.

    The mean is of the losses divided by the targets' lengths. `zero_infinity`: targets that do not fit count nothing.
    The gradient is that of the scores below a `log_softmax`, as PyTorch's is."""
    if self.ndim == 2:
      loss = self.unsqueeze(1).ctc_loss(targets.reshape(1, -1), input_lengths, target_lengths, blank, "none",
                                        zero_infinity).squeeze(0)
      size = self._lengths(target_lengths, 1).squeeze(0)
      return loss / size.maximum(1).cast(loss.dtype) if reduction == "mean" else loss._averaged(reduction)
    if self.ndim != 3 or not targets.dtype.is_int or not 0 <= blank < self.shape[2]:
      raise InvalidShape(f"ctc_loss of shape {self.shape} and targets of {targets.dtype}, blank {blank}",
                         hint="it takes (time, batch, classes), and integers")
    time, batch, _ = self.shape
    steps, sizes = self._lengths(input_lengths, batch), self._lengths(target_lengths, batch)
    if targets.ndim == 1: targets = targets._in_rows(sizes)
    if targets.ndim != 2 or targets.shape[0] != batch:
      raise InvalidShape(f"ctc_loss of shape {self.shape} and targets of shape {targets.shape}")
    if reduction not in ("none", "mean", "sum"): raise InvalidArgument(f"reduction {reduction!r}")
    wide, dtype = self._in_wide()
    # Labels with a blank before, between and behind them.
    length = 2 * targets.shape[1] + 1
    labels = targets.cast(dtypes.int32).unsqueeze(2)
    between = labels._wrap(labels._const(blank))
    last = between.cat(labels, dim=2).reshape(batch, length - 1)
    row = last.cat(last._wrap(last._const(blank, shape=(batch, 1))), dim=1)
    places = self._iota(length)
    scores = wide.gather(2, row.unsqueeze(0).expand(time, batch, length)).contiguous()
    before = row._grown([(0, 0), (2, 0)]).shrink([None, (0, length)])
    skips = (places >= 2) & row.ne(blank) & row.ne(before)
    none = scores._wrap(scores._const(-math.inf, shape=(batch, length)))
    first = (places < (sizes > 0).unsqueeze(1).where(2, 1)).where(scores[0], none) if time else none
    def step(number: Self, *state: Self) -> list[Self]:
      (a,) = state
      moment = number + 1
      now = scores._chosen_by((self._iota(time) == moment).reshape(-1, 1, 1), 0)
      one = a._padded([(0, 0), (1, 0)], -math.inf).shrink([None, (0, length)])
      two = a._padded([(0, 0), (2, 0)], -math.inf).shrink([None, (0, length)])
      total = a.logaddexp(one).logaddexp(skips.where(two, -math.inf)) + now
      return [(moment < steps.unsqueeze(1)).where(total, a)]
    (found,) = self._repeated(max(time - 1, 0), [first.contiguous()], step)
    ends = [found._chosen_by(places == at.unsqueeze(1), 1) for at in (2 * sizes, 2 * sizes - 1)]
    loss = -ends[0].logaddexp((sizes > 0).where(ends[1], -math.inf))
    # Below a log_softmax a constant slope of the scores' own probabilities changes nothing.
    there = (self._iota(time).unsqueeze(1) < steps).unsqueeze(2)
    own = there.where(wide._still().exp() * wide, 0).sum((0, 2))
    far = loss._still().eq(math.inf)
    linear = loss + own
    if zero_infinity: linear, result = far.where(0, linear), far.where(0, loss._still())
    else: result = loss._still()
    loss = result._with_derivative((linear, lambda: linear.const_like(1)))
    if reduction == "mean": loss = loss / sizes.maximum(1).cast(loss.dtype)
    return loss._averaged(reduction).cast(dtype)

  def _in_rows(self, sizes: Self) -> Self:
    """Sequences one behind the other as rows, of which the longest one is read."""
    longest: Any = sizes.max()
    most: int = longest.item()
    ends = sizes.cumsum(0)
    places = self._iota(most)
    at = (ends - sizes).unsqueeze(1) + places
    return self._picked_by(0, (places < sizes.unsqueeze(1)).where(at, -1).reshape(-1)).reshape(sizes.shape[0], -1)
