"""Losses of sequences, and bags of embeddings."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tinyhw.core.errors import InvalidArgument, InvalidShape, InvalidType
from tinyhw.function.spectrum import Spectrum
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.ops import Ops

if TYPE_CHECKING:
  from typing import Self


class Sequences(Spectrum):
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

  # *** bags ***

  def embedding_bag(self, weight: Self, offsets: Self | None = None, max_norm: float | None = None,
                    norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                    per_sample_weights: Self | None = None, include_last_offset: bool = False,
                    padding_idx: int | None = None) -> Self:
    """The "sum", "mean" or "max" of the rows of a table that each bag names; zeros for an empty one. Bags are the rows
    of a matrix, or in a vector begin at `offsets`, of which the last one may be where the last bag ends. A row
    `padding_idx` counts nothing. With `max_norm` rows that are longer are shortened in the table itself. Gradients are
    whole tables, also where `sparse` ones are wanted."""
    if mode not in ("sum", "mean", "max"):
      raise InvalidArgument(f'embedding_bag {mode!r} is none of "sum", "mean", "max"')
    if not self.dtype.is_int: raise InvalidType(f"embedding_bag of {self.dtype}", hint="positions are integers")
    if weight.ndim != 2 or self.ndim not in (1, 2):
      raise InvalidShape(f"embedding_bag of shape {self.shape} in a table of shape {weight.shape}",
                         hint="give a vector or a matrix of positions, and a matrix")
    if (offsets is None) is (self.ndim == 1):
      raise InvalidArgument(f"embedding_bag of shape {self.shape} {'without' if offsets is None else 'with'} offsets",
                            hint="a vector needs them, in a matrix each row is a bag")
    if per_sample_weights is not None and (mode != "sum" or per_sample_weights.shape != self.shape):
      raise InvalidArgument(f"embedding_bag {mode!r} of shape {self.shape} with per_sample_weights of shape "
                            f"{per_sample_weights.shape}", hint='there is one for each position, and mode is "sum"')
    if scale_grad_by_freq and mode == "max": raise InvalidArgument('embedding_bag "max" with scale_grad_by_freq')
    table, places = weight, self.cast(dtypes.int32)
    if max_norm is not None: table._shorten(places, max_norm, norm_type)
    size = table.shape[1]
    flat = places.reshape(-1)
    rows = table[flat]
    if scale_grad_by_freq:
      total = flat.unsqueeze(1).eq(flat).sum(1).cast(rows.dtype).unsqueeze(1).expand(rows.shape)
      rows = rows._still()._with_derivative((rows, lambda: 1 / total))
    if offsets is None:
      count = self.shape[0]
      bags = self._iota(count).unsqueeze(1).expand(self.shape).reshape(-1)
    else:
      if offsets.ndim != 1 or include_last_offset and not offsets.shape[0]:
        raise InvalidShape(f"embedding_bag with offsets of shape {offsets.shape}", hint="they are a vector")
      count = offsets.shape[0] - include_last_offset
      begun = self._iota(flat.shape[0]).unsqueeze(1) >= offsets.cast(dtypes.int32)
      bags = begun.cast(dtypes.int32).sum(1).cast(dtypes.int32) - 1
      if include_last_offset: bags = (bags < count).where(bags, -1)
    if padding_idx is not None: bags = flat.eq(padding_idx % table.shape[0]).where(-1, bags)
    if per_sample_weights is not None: rows = rows * per_sample_weights.reshape(-1, 1)
    none = rows._wrap(rows._const(0, shape=(count, size)))
    at = bags.unsqueeze(1)
    if mode == "max":
      # Those that are in no bag go to one that is cut off.
      more = none._wrap(none._const(0, shape=(count + 1, size)))
      at = (at < 0).where(count, at).expand(rows.shape)
      return more.scatter_reduce(0, at, rows, "amax", include_self=False).narrow(0, 0, count)
    found = none._scattered(0, at.expand(rows.shape), rows, Ops.ADD)
    if mode == "sum": return found
    members = bags.unsqueeze(0).eq(self._iota(count).unsqueeze(1)).cast(dtypes.int32).sum(1)
    return found / members.maximum(1).cast(found.dtype).unsqueeze(1)

  def _shorten(self, places: Self, most: float, kind: float) -> None:
    """Rows that are named, and longer, get that length."""
    table: Any = self
    with self.no_grad():
      used = places.reshape(1, -1).eq(self._iota(self.shape[0]).unsqueeze(1)).any(1)
      size = self._still().norm(kind, 1)
      change = (used & (size > most)).where(most / (size + 1e-7), 1).unsqueeze(1)
      table.assign((self._still() * change).cast(self.dtype))
