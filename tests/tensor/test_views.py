"""A change in place of a view reaches what it is a view of, as NumPy's views and PyTorch's do."""
from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw import Tensor, TinyJit, Variable
from tinyhw.core.errors import InvalidArgument
from tinyhw.engine.realize import home
from tinyhw.function.views import Clock
from tinyhw.tools.fuzz.views import Seeded, World, pick

Array = np.ndarray[Any, np.dtype[Any]]
SHAPE = (2, 3, 4)
# of a tensor or an array
KINDS: dict[str, Callable[[Any], Any]] = {
  "T": lambda x: x.T, "last row": lambda x: x[-1:] if x.ndim else x[None], "tail": lambda x: x[..., 1:],
  "every other": lambda x: x[..., ::2], "[None]": lambda x: x[None], "[...]": lambda x: x[...],
  "lines": lambda x: x.reshape(-1, *x.shape[-1:]), "flat": lambda x: x.reshape(-1), "first": lambda x: x[0:1, ...],
  "turned": lambda x: x.transpose(*([(1, 0)] if isinstance(x, np.ndarray) else [1, 0])) if x.ndim == 2 else x.T,
}
CHANGES: dict[str, tuple[Callable[[Tensor], Any], Callable[[Array], Any]]] = {
  "+=": (lambda t: t.__iadd__(5), lambda a: np.add(a, 5, a)),
  "mul_": (lambda t: t.mul_(3), lambda a: np.multiply(a, 3, a)),
  "zero_": (lambda t: t.zero_(), lambda a: a.fill(0)), "fill_": (lambda t: t.fill_(7), lambda a: a.fill(7)),
  "assign": (lambda t: t.assign(t * 2 + 1), lambda a: a.__setitem__(..., a * 2 + 1)),
  "copy_": (lambda t: t.copy_(Tensor(9)), lambda a: a.fill(9)),
  "[0] =": (lambda t: t.__setitem__(0, 8), lambda a: a.__setitem__(0, 8)),
  "[..., 0] +=": (lambda t: _part(t), lambda a: a.__setitem__((..., 0), a[..., 0] + 4)),
}


def _part(t: Tensor) -> None: t[..., 0] += 4


def base() -> Array: return np.arange(24, dtype=np.int32).reshape(SHAPE)


def same(t: Tensor, a: Array) -> None: assert t.numpy().tolist() == a.tolist()


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.lists(st.sampled_from([*KINDS]), min_size=1, max_size=4), st.sampled_from([*CHANGES]),
                          st.booleans()), min_size=1, max_size=3))
def test_views_of_views_are_numpys(changes: list[tuple[list[str], str, bool]]) -> None:
  """Each change is of a view that is taken for it; what is between may live or not, and be read or not."""
  x, a = Tensor(base()), base()
  for kinds, change, keeps in changes:
    views: list[tuple[Tensor, Array]] = [(x, a)]
    for kind in kinds:
      t, v = views[-1]
      w = KINDS[kind](v)
      if np.shares_memory(w, a): views.append((KINDS[kind](t), w))
    t, v = views[-1]
    if not keeps: del views[1:]
    else: views[len(views) // 2][0].realize()
    CHANGES[change][0](t)
    CHANGES[change][1](v)
    same(t, v)
    for seen, wanted in views: same(seen, wanted)
  same(x, a)


def test_parts_side_by_side_change_one_after_the_other() -> None:
  """Each has the value of the whole when it changes, also where that has changed since."""
  x, a = Tensor(base()), base()
  parts, wanted = x.chunk(3, 1), np.split(a, 3, 1)
  for k in (1, 0, 2, 1):
    parts[k].mul_(k + 2)
    wanted[k] *= k + 2
  first, last = x[0], x[-1]
  x += 100
  a += 100
  first *= 2
  last[1:] = 0
  a[0] *= 2
  a[-1, 1:] = 0
  same(x, a)
  same(first, a[0])
  same(last, a[-1])


def test_views_follow_and_what_was_computed_does_not() -> None:
  x, a = Tensor(base()), base()
  row, sums, copied, turned, twice = x[0], x + 0, x[1].contiguous(), x.flip(0), x.T.reshape(-1)
  wide, column = x[:1].expand(2, -1, -1), x.reshape(-1)[::4]
  x[0].fill_(1)
  a[0] = 1
  copied.zero_()
  turned.zero_()
  same(row, a[0])
  same(wide, np.broadcast_to(a[:1], a.shape))
  same(column, a.reshape(-1)[::4])
  same(sums, base())
  same(twice, base().T.reshape(-1))                # a copy, as there
  same(x, a)


def test_a_value_that_was_replaced_has_no_views() -> None:
  x = Tensor(base())
  row, other = x[0], Tensor([1, 2])
  x.replace(Tensor(base() + 1))
  same(row, base()[0])
  row.zero_()
  same(x, base() + 1)
  row = x[1]
  row.replace(other)
  row.zero_()
  same(x, base() + 1)
  assert other.tolist() == [1, 2]


def test_rows_are_exchanged_as_numpys() -> None:
  """The row that was taken is no copy."""
  x, a = Tensor(base()), base()
  first, b = x[0], a[0]
  x[0] = x[1]
  x[1] = first
  a[0] = a[1]
  a[1] = b
  same(x, a)


def test_what_goes_is_seen_before() -> None:
  """The whole goes between its change and the use of a view of it, or of one between."""
  x = Tensor(base())
  row, part = x[0], x[1][1:]
  x += 5
  del x
  gc.collect()
  same(row, base()[0] + 5)
  same(part, base()[1, 1:] + 5)


def test_what_is_written_to_a_repetition_is_its_own() -> None:
  x = Tensor([1, 2])
  wide = x.expand(3, 2)
  row = wide[0]
  x += 1
  row *= 10
  assert wide.tolist() == [[20, 30], [2, 3], [2, 3]] and x.tolist() == [2, 3]
  x.zero_()
  assert wide.tolist() == [[20, 30], [2, 3], [2, 3]] and row.tolist() == [20, 30]


def test_a_part_of_variables_keeps_its_bounds() -> None:
  x, n = Tensor(base()).reshape(24).contiguous().realize(), Variable("n", 1, 24)
  part = x[:n.bind(3)]
  x += 1
  n.bind(7)
  assert part.tolist() == [1, 2, 3]


def test_views_follow_with_their_history() -> None:
  """By hand: y = w with y[0] = 3 w[1], of which the second is read where no history is kept."""
  w = Tensor([2.0, 5.0], requires_grad=True)
  y = w * 1
  first, all_of_it = y[:1], y.reshape(2, 1)
  y[0] = w[1] * 3
  with Tensor.no_grad(): assert all_of_it.tolist() == [[15], [5]] and first.tolist() == [15]
  (all_of_it.sum() * 2 + first.sum()).backward()
  assert w.grad is not None and w.grad.tolist() == [0, 2 * 4 + 3]


def test_views_of_parameters_follow_an_optimizer() -> None:
  w = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
  turned, loose = w.T, w.detach()[0]
  def step() -> Tensor:
    loss = (w * w).sum()
    loss.backward()
    with Tensor.no_grad(): w.sub_(w.grad * 0.25)
    w.grad = None
    return loss.detach()
  function = TinyJit(step)
  for k in range(1, 5):
    function()
    assert turned.tolist() == [[0.5 ** k, 3 * 0.5 ** k], [2 * 0.5 ** k, 4 * 0.5 ** k]]
    assert loose.tolist() == [0.5 ** k, 2 * 0.5 ** k]


@pytest.mark.parametrize("outside", ["part", "whole", "both"])
def test_views_and_a_recording(outside: str) -> None:
  """Who is changed within, and who is read there and after."""
  x = Tensor(np.zeros((2, 3), np.float32)).realize()
  row = x[0]
  @TinyJit
  def step(y: Tensor) -> Tensor:
    if outside != "whole": row.add_(y)
    if outside != "part": x.add_(y)
    return row.sum() + x.sum()
  for k in range(1, 6):
    up = k * (2 if outside == "both" else 1)
    rest = 0 if outside == "part" else k
    assert step(Tensor([1.0, 1.0, 1.0])).item() == 6 * up + 3 * rest
    assert row.tolist() == [up] * 3 and x.tolist() == [[up] * 3, [rest] * 3]
  x += 10
  assert step(Tensor([0.0, 0.0, 0.0])).item() == 2 * 3 * (up + 10) + 3 * (rest + 10)


def test_views_that_are_arguments() -> None:
  """A change of one goes up, in replays too; who is given two ways to one memory is told so."""
  x = Tensor(np.zeros((2, 3), np.float32)).realize()
  rows = [x[0], x[1]]
  @TinyJit
  def step(a: Tensor, b: Tensor) -> Tensor: return a.add_(1).sum() + b.sum()
  for k in range(1, 5):
    assert step(*rows).item() == 3 * k and x.tolist() == [[k] * 3, [0] * 3]
  for other in (x, x[0, 1:], x.T[0]):
    step.reset()
    step(rows[0], other)
    with pytest.raises(InvalidArgument, match="a view of the same, is used"): step(rows[0], other)
  @TinyJit
  def before(a: Tensor, b: Tensor) -> Tensor:
    total = b.sum().contiguous()
    a.add_(1)
    return total
  start = x[0].sum().item()
  assert [before(rows[0], x).item() for _ in range(4)] == [start + 3 * k for k in range(4)]


def test_results_of_a_recording_are_views_of_nothing() -> None:
  state = Tensor([0, 0]).realize()
  @TinyJit
  def step() -> Tensor: return state.add_(1).reshape(2, 1)
  seen = [step() for _ in range(4)]
  assert [s.tolist() for s in seen] == [[[k], [k]] for k in range(1, 5)]


def test_a_row_in_a_loop() -> None:
  x, a = Tensor(base()), base()
  for row in x: row += 1
  for k, row in enumerate(x): row[k] *= 3
  a += 1
  for k in range(2): a[k, k] *= 3
  same(x, a)


def test_diagonals() -> None:
  x = Tensor(np.zeros((3, 4), np.int32))
  x.diagonal().fill_(5)
  x.diagonal(1).assign(Tensor([1, 2, 3]))
  x.T.diagonal(-2).add_(7)
  a = np.zeros((3, 4), np.int32)
  a[range(3), range(3)], a[range(3), range(1, 4)] = 5, [1, 2, 3]
  a[0, 2] += 7
  a[1, 3] += 7
  same(x, a)


def test_a_leaf_that_learns_is_not_changed_by_a_view() -> None:
  w = Tensor(np.ones((2, 2), np.float32), requires_grad=True)
  for change in (lambda: w[0].add_(1), lambda: w.T.assign(Tensor.zeros(2, 2)), lambda: w.reshape(4)[1:].zero_()):
    with pytest.raises(InvalidArgument, match="view of a leaf that requires a gradient"): change()
  assert w.tolist() == [[1, 1], [1, 1]]
  with Tensor.no_grad(): w[0].fill_(3)
  w.detach()[1].fill_(4)
  assert w.tolist() == [[3, 3], [4, 4]] and w.is_leaf and w.requires_grad
  (w * w).sum().backward()
  assert w.grad is not None and w.grad.tolist() == [[6, 6], [8, 8]]


@pytest.mark.parametrize("jit", [False, True])
def test_histories_go_up(jit: bool) -> None:
  """By hand: z = [[2w0, w0 w1], [2w0 w0 w1, ..]] and so on."""
  w = Tensor([2.0, 3.0], requires_grad=True)
  def slope(scale: Tensor) -> Tensor:
    z = Tensor.zeros(2, 2)
    row = z[0]
    row += w * scale           # [[w0 s, w1 s], [0, 0]]
    z.T[0].mul_(w[1])          # [[w0 w1 s, w1 s], [0, 0]]
    z.reshape(4)[3:].assign(z[0, :1].detach())
    z[1][0] = w[0]
    return z.sum().gradient(w)[0]
  function = TinyJit(slope) if jit else slope
  for scale in (1.0, 2.0, 5.0, 4.0): assert function(Tensor(scale)).tolist() == [3 * scale + 1, 3 * scale]


@pytest.mark.parametrize("jit", [False, True])
def test_a_cache_of_keys(jit: bool) -> None:
  """A part whose place is a Variable, assigned to and realized step by step."""
  cache, wanted = Tensor.zeros(2, 8, 3).contiguous().realize(), np.zeros((2, 8, 3), np.float32)
  def step(x: Tensor, at: Any) -> Tensor:
    cache[:, at:at + 1].assign(x).realize()
    return cache[0][:at + 1].sum(0)
  function = TinyJit(step) if jit else step
  for k in range(8):
    x = np.full((2, 1, 3), k + 1, np.float32)
    place = Variable("at", 0, 7).bind(k)
    found = function(Tensor(x), place)
    wanted[:, k:k + 1] = x
    assert found.tolist() == wanted[0, :k + 1].sum(0).tolist()
    assert home(cache.uop) is not None or jit
  same(cache, wanted)


# places of one shape
PLACES: list[list[Any]] = [
  [0, -1, (0,), (1,), (0, ...)], [(0, 1), (1, 0), (0, 1, ...)], [slice(0, 1), slice(1, 2), slice(None, 1)],
  [(..., 0), (..., 3)],
  [(0, slice(None, 2)), (0, slice(1, None)), (0, slice(None, None, 2)), (1, slice(None, 2), None)]]


def another(index: Any) -> Any:
  """An equal index that is another object."""
  if isinstance(index, tuple): return tuple([*map(another, index)])
  return slice(index.start, index.stop, index.step) if isinstance(index, slice) else index


def test_a_part_that_was_changed_is_put_somewhere() -> None:
  """Where it is already, as `x[i] += v` does, which changes nothing more; or elsewhere."""
  for i, j in [(i, j) for group in PLACES for i in group for j in group]:
    x, a = Tensor(base()), base()
    t, v = x[i], a[i]
    t += 5
    v += 5
    changes = x.changes
    if np.shape(a[j]) != v.shape: continue
    x[another(j)], a[j] = t, v.copy()
    assert (x.changes == changes) is (i == j), (i, j)
    same(x, a)


def test_reading_a_view_computes_it_alone() -> None:
  x = Tensor(base()).realize() * 3
  x[0].realize()
  assert home(x.uop) is None


def test_what_a_view_has_changed_is_realized_with_it() -> None:
  x = Tensor(base()).realize()
  y = x[1]
  y += 1
  assert home(x.uop) is None
  y.realize()
  assert home(x.uop) is not None and (x.numpy()[1] == base()[1] + 1).all()


def test_a_view_does_not_keep_its_whole() -> None:
  x = Tensor(base()).realize()
  gone, y = weakref.ref(x), x[0].T
  del x
  gc.collect()
  assert gone() is None
  y += 1
  assert y.tolist() == (base()[0].T + 1).tolist()


def test_lives_of_views() -> None:
  """Many tensors, of which any is a view of any other, against a model on NumPy's views."""
  kinds = ("move", "move", "move", "assign", "assign", "assign", "drop", "read")
  for number in range(examples(60)):
    world, choose = World(("PYTHON",)), Seeded(f"views.{number}")
    world.make(choose)
    for _ in range(14): getattr(world, pick(choose, kinds))(choose)
    world.check(choose)


@pytest.mark.parametrize("function", [
  lambda x: x.adaptive_avg_pool2d(4), lambda x: x.adaptive_max_pool2d((4, 4)), lambda x: x.pixel_shuffle(1),
  lambda x: x.pixel_unshuffle(2), lambda x: x.channel_shuffle(2), lambda x: x[0, 0].diag(), lambda x: x.pad((0, 0)),
  lambda x: x.pad((0, -1)), lambda x: x.pad((0, 0), mode="circular"), lambda x: x.pad((1, -1), mode="reflect"),
  lambda x: x.roll(0, 1), lambda x: x.repeat(1, 1, 1, 1), lambda x: x.dropout(0.5, training=False)])
def test_what_is_no_view_in_pytorch_is_none(function: Any) -> None:
  x = Tensor(np.arange(1, 33, dtype=np.float32).reshape(1, 2, 4, 4))
  function(x).mul_(0)
  assert np.array_equal(x.numpy().reshape(-1), np.arange(1, 33))


def test_a_view_in_another_shape_stays_one() -> None:
  x = Tensor([[1.0, 2.0], [3.0, 4.0]])
  diagonal = x.diagonal().squeeze()
  diagonal.unsqueeze_(0)
  diagonal.clamp_(0, 2)
  assert x.tolist() == [[1, 2], [3, 2]] and diagonal.tolist() == [[1, 2]]
  row, whole = x[0], x.split(2)[0]
  row.unsqueeze_(1)
  row *= 5
  whole.transpose_(0, 1)
  whole.tril_()
  assert x.tolist() == [[5, 10], [0, 2]] and row.tolist() == [[5], [10]] and whole.tolist() == [[5, 0], [10, 2]]


def test_changes_of_several_threads_have_numbers_of_their_own() -> None:
  """Who sees a number sees the change, and no number comes back: else a view that looked in between would keep an old
  value."""
  seen: list[list[int]] = [[] for _ in range(4)]
  lost: list[int] = []

  class Changed:
    """What knows its last change."""
    changes = 0

  def change(numbers: list[int]) -> None:
    mine = Changed()
    for _ in range(5000):
      Clock.tick(mine)
      if Clock.now < mine.changes: lost.append(mine.changes)
      numbers.append(mine.changes)
  start, pace = Clock.now, sys.getswitchinterval()
  sys.setswitchinterval(1e-7)
  try:
    threads = [threading.Thread(target=change, args=(numbers,)) for numbers in seen]
    for t in threads: t.start()
    for t in threads: t.join()
  finally: sys.setswitchinterval(pace)
  assert not lost and Clock.now == start + 20_000
  assert sorted(n for numbers in seen for n in numbers) == list(range(start + 1, Clock.now + 1))


def test_views_follow_what_another_thread_has_assigned() -> None:
  x = Tensor([[1.0, 2.0], [3.0, 4.0]])
  row, turned = x[0], x.T
  assert row.tolist() == [1, 2] and turned.tolist() == [[1, 3], [2, 4]]
  thread = threading.Thread(target=lambda: x.assign(Tensor([[5.0, 6.0], [7.0, 8.0]])))
  thread.start()
  thread.join()
  assert row.tolist() == [5, 6] and turned.tolist() == [[5, 7], [6, 8]]
