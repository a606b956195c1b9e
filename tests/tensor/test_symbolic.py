"""Tensors of sizes that launches decide: NumPy's values for every value of their Variables, and one set of kernels."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw import Device, Tensor, TinyJit, Variable
from tinyhw.core.errors import InvalidArgument, InvalidShape, Unsupported
from tinyhw.ir.size import Size, Values, lowest, unbound, worth
from tinyhw.tensor.variable import Formula

Array = Any
N, Z, H = Variable("tensor_n", 1, 10), Variable("tensor_z", 0, 5), Variable("tensor_h", 1, 3)
POINTS = ((5, 2, 2), (1, 0, 1), (10, 5, 3))
RNG = np.random.default_rng(7)
X, W, Y = (RNG.standard_normal(s).astype(np.float32) for s in ((10, 6), (6, 4), (2, 10, 6)))
PLACES = np.array([0, 2, 1, 0], np.int32)


def bind(n: int, z: int, h: int) -> None:
  for variable, value in ((N, n), (Z, z), (H, h)): variable.bind(value)


def softmax(a: Array, axis: int) -> Array:
  e = np.exp(a - a.max(axis, keepdims=True))
  return e / e.sum(axis, keepdims=True)


def assigned(a: Any, at: tuple[slice, ...], value: Any) -> Any:
  a = a + 0
  a[at] = value
  return a


def attention(y: Tensor, n: Any) -> Tensor:
  x = y[:, :n].reshape(2, n, 2, 3).transpose(1, 2)
  return x.scaled_dot_product_attention(x, x, is_causal=True)


def attention_of(a: Array, n: int) -> Array:
  x = a[:, :n].reshape(2, n, 2, 3).transpose(0, 2, 1, 3)
  scores = np.where(np.tril(np.ones((n, n), bool)), x @ x.swapaxes(-1, -2) / np.sqrt(3), -np.inf)
  return softmax(scores, -1) @ x


Case = tuple[Callable[..., Tensor], Callable[..., Array]]
# (of tensors x, w, y and Variables n, z, h; of arrays and ints)
CASES: dict[str, Case] = {
  "cut": (lambda x, w, y, n, z, h: x[:n],) * 2,
  "rest": (lambda x, w, y, n, z, h: x[n:],) * 2,
  "one row": (lambda x, w, y, n, z, h: x[n - 1],) * 2,
  "middle": (lambda x, w, y, n, z, h: x[z:z + 3],) * 2,
  "from the end": (lambda x, w, y, n, z, h: x[:n + 0][-1] + x[:n][n - 1:].sum(0),) * 2,
  "but the last": (lambda x, w, y, n, z, h: x[:n][:-1],) * 2,
  "beyond the end": (lambda x, w, y, n, z, h: x[:n + z + 1] * 2,) * 2,
  "reversed": (lambda x, w, y, n, z, h: x[:n][::-1] - 1,) * 2,
  "perhaps one": (lambda x, w, y, n, z, h: x[:z // 3].sum(0) + x[:z // 3].prod(),) * 2,
  "elementwise": (lambda x, w, y, n, z, h: x[:n] * n + z,) * 2,
  "outer": (lambda x, w, y, n, z, h: x[:n, None] * x[None, :h],) * 2,
  "transposed": (lambda x, w, y, n, z, h: x[:n].T * 2,) * 2,
  "sum of the axis": (lambda x, w, y, n, z, h: x[:n].sum(0),) * 2,
  "sum beside it": (lambda x, w, y, n, z, h: x[:n].sum(1),) * 2,
  "sum of nothing": (lambda x, w, y, n, z, h: x[:z].sum(0),) * 2,
  "product of nothing": (lambda x, w, y, n, z, h: x[:z].prod(),) * 2,
  "nothing": (lambda x, w, y, n, z, h: x[:z] + 1,) * 2,
  "mean": (lambda x, w, y, n, z, h: x[:n].mean(0),) * 2,
  "max": (lambda x, w, y, n, z, h: y[:, :n].max(1),) * 2,
  "argmax": (lambda x, w, y, n, z, h: x[:n].argmax(0),) * 2,
  "variance": (lambda x, w, y, n, z, h: x[:n + 1].var(0), lambda x, w, y, n, z, h: x[:n + 1].var(0, ddof=1)),
  "deviation of few": (lambda x, w, y, n, z, h: x[:n].std(0).isnan().where(-1, x[:n].std(0, correction=0)),
                       lambda x, w, y, n, z, h: np.full(6, -1) if n == 1 else x[:n].std(0)),
  "einsum": (lambda x, w, y, n, z, h: Tensor.einsum("ik,jk->ij", x[:n], x[:h]),
             lambda x, w, y, n, z, h: np.einsum("ik,jk->ij", x[:n], x[:h])),
  "sorted": (lambda x, w, y, n, z, h: x[:n].sort(0)[0], lambda x, w, y, n, z, h: np.sort(x[:n], 0)),
  "rolled": (lambda x, w, y, n, z, h: x[:n + 1].roll(1, 0), lambda x, w, y, n, z, h: np.roll(x[:n + 1], 1, 0)),
  "each twice": (lambda x, w, y, n, z, h: x[:n].repeat_interleave(2, 0),
                 lambda x, w, y, n, z, h: np.repeat(x[:n], 2, 0)),
  "identity": (lambda x, w, y, n, z, h: Tensor.eye(n, device=x.device), lambda x, w, y, n, z, h: np.eye(n)),
  "running sum": (lambda x, w, y, n, z, h: x[:n].cumsum(0),) * 2,
  "softmax": (lambda x, w, y, n, z, h: x[:n].softmax(0), lambda x, w, y, n, z, h: softmax(x[:n], 0)),
  "softmax beside": (lambda x, w, y, n, z, h: x[:n].softmax(-1), lambda x, w, y, n, z, h: softmax(x[:n], -1)),
  "product": (lambda x, w, y, n, z, h: x[:n] @ w,) * 2,
  "batched product": (lambda x, w, y, n, z, h: y[:, :n] @ w,) * 2,
  "product over it": (lambda x, w, y, n, z, h: x[:n].T @ x[:n],) * 2,
  "product over nothing": (lambda x, w, y, n, z, h: x[:z].T @ x[:z],) * 2,
  "square product": (lambda x, w, y, n, z, h: x[:n] @ x[:n].T,) * 2,
  "attention": (lambda x, w, y, n, z, h: attention(y, n), lambda x, w, y, n, z, h: attention_of(y, n)),
  "heads": (lambda x, w, y, n, z, h: y[:, :n].reshape(2, n, 2, 3).transpose(1, 2) + 0,
            lambda x, w, y, n, z, h: y[:, :n].reshape(2, n, 2, 3).transpose(0, 2, 1, 3)),
  "joined axes": (lambda x, w, y, n, z, h: y[:, :n].reshape(-1, 3) * 2,) * 2,
  "flat": (lambda x, w, y, n, z, h: (y[:, :n] + 1).reshape(-1),) * 2,
  "expanded": (lambda x, w, y, n, z, h: w.reshape(1, 6, 4).expand(n, 6, 4) + 1,
               lambda x, w, y, n, z, h: np.broadcast_to(w, (n, 6, 4)) + 1),
  "repeated": (lambda x, w, y, n, z, h: w.repeat(n, 1), lambda x, w, y, n, z, h: np.tile(w, (n, 1))),
  "padded": (lambda x, w, y, n, z, h: w.pad(((z, 0), (0, n)), value=2),
             lambda x, w, y, n, z, h: np.pad(w, ((z, 0), (0, n)), constant_values=2)),
  "joined": (lambda x, w, y, n, z, h: y[:, :z].cat(y[:, z:z + 1], dim=1) * 1,
             lambda x, w, y, n, z, h: y[:, :z + 1]),
  "stacked": (lambda x, w, y, n, z, h: x[:n].stack(x[:n]), lambda x, w, y, n, z, h: np.stack([x[:n]] * 2)),
  "ones": (lambda x, w, y, n, z, h: Tensor.ones(n, 3, device=x.device) + 1,
           lambda x, w, y, n, z, h: np.full((n, 3), 2)),
  "counted": (lambda x, w, y, n, z, h: Tensor.arange(z, n + 5, 2, device=x.device),
              lambda x, w, y, n, z, h: np.arange(z, n + 5, 2)),
  "triangle": (lambda x, w, y, n, z, h: Tensor.ones(n, n, device=x.device).triu(1),
               lambda x, w, y, n, z, h: np.triu(np.ones((n, n)), 1)),
  "mask": (lambda x, w, y, n, z, h: (Tensor.arange(10, device=x.device) < n).where(1, 0),
           lambda x, w, y, n, z, h: (np.arange(10) < n) * 1),
  "by positions": (lambda x, w, y, n, z, h: x[:n + 2][Tensor(PLACES, device=x.device)],
                   lambda x, w, y, n, z, h: x[:n + 2][PLACES]),
  "assigned": (lambda x, w, y, n, z, h: assigned(y, (slice(None), slice(z, z + 2)), w[:2, :1].reshape(1, 2, 1)),) * 2,
  "half": (lambda x, w, y, n, z, h: (x[:n].half() + 1).float(),
           lambda x, w, y, n, z, h: (x[:n].astype(np.float16) + np.float16(1)).astype(np.float32)),
}
ON_AMD = ("middle", "sum of the axis", "sum of nothing", "product", "product over it", "attention", "joined", "padded")


def check(device: str, name: str) -> None:
  ours, theirs = CASES[name]
  tensors = [Tensor(a, device=device) for a in (X, W, Y)]
  counts = []
  for point in POINTS:
    bind(*point)
    got, expected = ours(*tensors, N, Z, H), theirs(X, W, Y, *point)
    found = got.numpy()
    assert found.shape == expected.shape and not all(type(s) is int for s in got.shape + (N,))
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)
    counts.append(len(Device[device].kernels))
  assert len(set(counts)) == 1, f"kernels after each value: {counts}"


@pytest.mark.parametrize("name", CASES)
def test_values_on_the_host(name: str) -> None: check("LLVM", name)


@pytest.mark.parametrize("name", CASES)
def test_values_of_the_oracle(name: str) -> None: check("PYTHON", name)


@pytest.mark.parametrize("name", ON_AMD)
def test_values_on_a_gpu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("MOCKGPU", "1")
  check("AMD", name)


# *** random programs ***

Ours, Theirs = Callable[[Tensor], Tensor], Callable[[Array, Callable[[Any], int]], Array]


def formula(size: Any) -> Any:
  """The size of the Variables, whatever they are bound to."""
  return Formula(unbound(size).node) if isinstance(size, Size) else size


@st.composite
def steps(draw: st.DrawFn, t: Tensor) -> tuple[Ours, Theirs]:
  """An operation that fits the tensor."""
  axis = draw(st.integers(0, t.ndim - 1))
  size = formula(t.shape[axis])
  def at(part: Any) -> tuple[Any, ...]: return (*(slice(None) for _ in range(axis)), part)
  def order(x: Any) -> tuple[int, ...]: return (*range(axis), *range(axis + 1, x.ndim), axis)
  kinds = ["add", "scale", "cut", "tail", "flip", "last", "one", "pad", "cat", "join", "cumsum", "relu"]
  if t.ndim > 1: kinds += ["sum", "max", "mean", "gram", "softmax"]
  match draw(st.sampled_from(kinds)):
    case "add": return lambda x: x + x * 0.5, lambda a, v: a + a * np.float32(0.5)
    case "scale": return lambda x: x * N, lambda a, v: a * np.float32(v(N))
    case "relu": return lambda x: x.relu(), lambda a, v: np.maximum(a, 0)
    case "cut":
      k = draw(st.sampled_from([1, 2, N, Z + 1, H]))
      return lambda x: x[at(slice(0, k))], lambda a, v: a[at(slice(0, v(k)))]
    case "tail":
      k = draw(st.sampled_from([0, 1, Z, -1]))
      return lambda x: x[at(slice(k, None))], lambda a, v: a[at(slice(v(k), None))]
    case "flip": return lambda x: x.flip(axis), lambda a, v: np.flip(a, axis)
    case "last": return lambda x: x.permute(order(x)), lambda a, v: a.transpose(order(a))
    case "one": return lambda x: x.unsqueeze(axis), lambda a, v: np.expand_dims(a, axis)
    case "pad":
      k = draw(st.sampled_from([1, Z, H]))
      def around(x: Any, k: Any) -> list[tuple[Any, Any]]:
        return [(k, 1) if i == axis else (0, 0) for i in range(x.ndim)]
      return lambda x: x.pad(around(x, k)), lambda a, v: np.pad(a, around(a, v(k)))
    case "cat": return lambda x: x.cat(x * 2, dim=axis), lambda a, v: np.concatenate([a, a * 2], axis)
    case "join":
      if axis + 1 < t.ndim:
        return lambda x: x.flatten(axis, axis + 1), lambda a, v: a.reshape(
          *a.shape[:axis], a.shape[axis] * a.shape[axis + 1], *a.shape[axis + 2:])
      return lambda x: x.reshape(*x.shape[:-1], 1, x.shape[-1]), lambda a, v: np.expand_dims(a, -2)
    case "cumsum": return lambda x: x.cumsum(axis), lambda a, v: a.cumsum(axis)
    case "sum": return lambda x: x.sum(axis), lambda a, v: a.sum(axis)
    case "gram": return lambda x: x @ x.transpose(-1, -2), lambda a, v: a @ a.swapaxes(-1, -2)
    case _ if lowest(size) < 1: return lambda x: x.sum(axis), lambda a, v: a.sum(axis)
    case "max": return lambda x: x.max(axis), lambda a, v: a.max(axis)
    case "mean": return lambda x: x.mean(axis), lambda a, v: a.mean(axis)
    case _: return lambda x: x.softmax(axis), lambda a, v: softmax(a, axis)


@settings(max_examples=examples(40), deadline=None)
@given(st.data())
def test_random_programs(data: st.DataObject) -> None:
  device = data.draw(st.sampled_from(["LLVM", "PYTHON"]))
  points = [tuple(data.draw(st.integers(v.node.arg.min, v.node.arg.max)) for v in (N, Z, H)) for _ in range(2)]
  bind(*points[0])
  t, program = Tensor(X, device=device)[:N], []
  for _ in range(data.draw(st.integers(1, 5))):
    step = data.draw(steps(t))
    after = step[0](t)
    if after.ndim > 4 or after.ndim == 0 or isinstance(after.numel(), Size) and after.numel().high > 4000: continue
    t = after
    program.append(step)
  kernels: set[int] = set()
  for point in points:
    bind(*point)
    values: Values = {v.node.arg: v.value for v in (N, Z, H)}
    def value(size: Any, values: Values = values) -> int: return worth(size, values)
    ours, theirs = Tensor(X, device=device)[:N], X[:N.value]
    for mine, numpys in program: ours, theirs = mine(ours), numpys(theirs, value)
    found = ours.contiguous().realize().numpy()          # a kernel also where it has no elements
    assert found.shape == theirs.shape
    scale = max(1.0, float(np.abs(theirs).max(initial=0)))
    np.testing.assert_allclose(found / scale, theirs / scale, rtol=1e-4, atol=1e-4)
    kernels.add(len(Device[device].kernels))
  assert len(kernels) == 1


def test_a_graph_keeps_the_values_that_it_was_made_with() -> None:
  """What is made of constants alone is one node for one size: another value of the Variable is another size."""
  made = []
  for n in (5, 1, 3):
    N.bind(n)
    made.append((n, Tensor.eye(N), Tensor(X)[:N].max(0), Tensor(X)[:N].argmax(0), Tensor(X)[:N].mean(1)[:2]))
  for n, unit, top, at, mean in made:
    assert np.array_equal(unit.numpy(), np.eye(n)) and np.array_equal(top.numpy(), X[:n].max(0))
    assert np.array_equal(at.numpy(), X[:n].argmax(0))
    if n > 1: np.testing.assert_allclose(mean.reshape(2, 1).numpy()[:, 0], X[:2].mean(1), rtol=1e-5)
    else:
      with pytest.raises(InvalidShape, match="does not reshape"): mean.reshape(2, 1)


def test_a_tensor_of_ints_takes_a_variable_for_a_size() -> None:
  """As prompts of many lengths come: one function, one set of kernels for all but the copy into the wider memory."""
  step, made = TinyJit(lambda a: ((a @ Tensor(W)).relu().sum(1, keepdim=True) * N).realize()), []
  for n in (1, 4, 2, 10, 7):
    rows = Tensor(X[:n]).reshape(N.bind(n), 6)
    got = step(rows)
    assert rows.shape == (N, 6) and got.shape == (N, 1)
    np.testing.assert_allclose(got.numpy(), np.maximum(X[:n] @ W, 0).sum(1, keepdims=True) * n, rtol=1e-5, atol=1e-6)
    made.append(len(Device[got.device].kernels))
  assert made[-1] - made[1] <= 3, made
  bind(4, 2, 2)
  x = Tensor(X[:4], requires_grad=True)
  (x.reshape(N, 6) ** 2).sum().backward()
  assert x.grad is not None and np.array_equal(x.grad.numpy(), 2 * X[:4])
  assert x.reshape(N, -1).shape == (N, 6) and x.reshape(-1, N).shape == (6, N) and x.reshape(2, N, 3).shape == (2, N, 3)
  assert np.array_equal(x.reshape(6, N).numpy(), X[:4].reshape(6, 4))


# *** what a tensor says, and what is refused ***

def test_shapes_are_numbers_to_compute_with() -> None:
  bind(5, 2, 2)
  t = Tensor(Y)[:, :N]
  assert t.shape == (2, N, 6) and str(t.shape) == "(2, tensor_n, 6)" and t.numel() == 12 * N
  assert t.shape[1] * 2 + 1 == 1 + N + N and t.shape[1].value == 5 and t.numpy().shape == (2, 5, 6)
  assert len(t.tolist()[0]) == 5 and t.sum().item() == pytest.approx(Y[:, :5].sum(), rel=1e-4)
  assert t[:, :1].shape == (2, 1, 6) and Tensor.zeros(N, 2).shape == (N, 2)
  assert bytes(t[0].data()) == Y[0, :5].tobytes()
  N.bind(1)
  assert t.shape[1] != N and t.shape[1].value == 5 and t.numpy().shape == (2, 5, 6)  # it keeps its own
  with pytest.raises(InvalidArgument, match="do not broadcast"): t + Tensor(Y)[:, :N]
  assert (t.sum(1) + Tensor(Y)[:, :N].sum(1)).numpy() == pytest.approx(Y[:, :5].sum(1) + Y[:, :1].sum(1), rel=1e-4)


def test_an_expression_has_the_values_of_its_use() -> None:
  after = N + 1
  for n in (2, 6):
    N.bind(n)
    assert Tensor(X)[:after].numpy().shape == (n + 1, 6) and after.value == n + 1


def test_without_a_value() -> None:
  free, x = Variable("tensor_free", 1, 4), Tensor(X)
  assert free.bind(3).unbind() == (free, 3)
  for use in (lambda: x[:free], lambda: Tensor.zeros(free), lambda: x.expand(free, 10, 6), lambda: x * (free + 1)):
    with pytest.raises(InvalidArgument, match=r"Variable tensor_free has no value; give it one with bind\(\)"): use()
  free.bind(2)
  assert x[:free].shape == (free, 6)


@pytest.mark.parametrize("use, words", [
  (lambda x: x[:N].max(0) + x[:Z].max(0), "which may be none, has no value then; give the Variable a greater minimum"),
  (lambda x: x[:N][::2], r"unsupported slice \[::2\] of an axis of size tensor_n, which launches decide"),
  (lambda x: x[N - 3:], r"whether tensor_n - 3 >= 0 depends on the value of tensor_n in 1\.\.10"),
  (lambda x: x[:N].reshape(-1, 5), "does not reshape"),
  (lambda x: x.reshape(N, 6), r"shape \(10, 6\) with 60 elements does not reshape to"),
  (lambda x: x[:N].reshape(H + 3, 6), "does not reshape"),
  (lambda x: x[:N] + x[:H], "do not broadcast together"),
  (lambda x: x[:N].expand(5, 6), "only axes of size 1 do"),
  (lambda x: x[:N].split(2), "an int is needed here; `.value` is what it is worth now"),
  (lambda x: list(x[:N]), "an int is needed here"),
  (lambda x: x[N], r"whether tensor_n < 10 depends on the value"),
  (lambda x: Tensor.rand(N, 3), r"random numbers of shape \(tensor_n, 3\), which launches decide; draw the most"),
  (lambda x: x.shrink(((N - 3, N), (0, 6))), r"whether tensor_n - 3 >= 0 depends on"),
  (lambda x: x[:N].chunk(2), "an int is needed here"),
  (lambda x: x[:N].diagonal(), r"whether tensor_n > 6 depends on the value of tensor_n"),
])
def test_what_is_refused(use: Callable[[Tensor], Any], words: str) -> None:
  bind(5, 2, 2)
  with pytest.raises((InvalidArgument, Unsupported), match=words): use(Tensor(X))


def test_gradients() -> None:
  w = Tensor(W, requires_grad=True)
  for n in (3, 8):
    N.bind(n)
    w.zero_grad()
    x = Tensor(X)[:N]
    ((x @ w).relu() * x.mean()).sum().backward()
    assert w.grad is not None
    expected = X[:n].T @ ((X[:n] @ W > 0) * X[:n].mean())
    np.testing.assert_allclose(w.grad.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_filled_with_a_variable() -> None:
  for n in (3, 8):
    filled = Tensor.full((2, 3), N.bind(n))
    assert filled.dtype is Tensor(3).dtype and filled.tolist() == [[n] * 3] * 2
    assert Tensor.full((2,), N * 2, dtype="float32").tolist() == [2.0 * n] * 2


def test_a_value_of_a_launchs_size_on_other_devices() -> None:
  rows = Variable("rows_elsewhere", 1, 4).bind(3)
  moved = (Tensor.ones(rows, 2).to("PYTHON") + 1).realize()
  assert moved[:3].tolist() == [[2, 2]] * 3
  both = (Tensor.ones(rows).to(("PYTHON", "PYTHON:1")) + 1).realize()
  assert both[:3].to("LLVM").tolist() == [2] * 3


def test_what_a_variable_decides_to_be_within_an_axis() -> None:
  rows, i, n = Tensor.arange(33.0).reshape(11, 3).realize(), Variable("i_of_rows", 1, 10), Variable("n_of_rows", 1, 10)
  for k in (1, 9): assert rows.shrink(((i.bind(k), i + 2), None)).numpy()[:, 0].tolist() == [3.0 * k, 3.0 * k + 3]
  with pytest.raises(InvalidShape, match="do not fit shape"): rows.shrink(((i.bind(10), i + 2), None))
  assert rows[:n.bind(4)].shrink(((0, 4), None)).sum(1).tolist() == [3.0, 12.0, 21.0, 30.0]
  with pytest.raises(InvalidShape, match="do not fit shape"): rows[:n.bind(3)].shrink(((0, 4), None))
  with pytest.raises(InvalidShape, match="do not fit shape"): rows[:n].shrink(((0, 11), None))

  @TinyJit
  def two(x: Tensor) -> Tensor: return x.shrink(((i, i + 2), None)).sum(1)

  for k, wanted in ((1, [12, 21]), (2, [21, 30]), (9, [84, 93]), (10, [93, 0])):   # beyond the end is 0 in a replay
    i.bind(k)
    assert two(rows).tolist() == wanted


def test_a_part_is_assigned_to_that_present_values_say_is_whole() -> None:
  start = Variable("start", 0, 8)
  cache, want = Tensor.zeros(2, 8, 3).contiguous().realize(), np.zeros((2, 8, 3), np.float32)

  @TinyJit
  def put(x: Tensor, at: Any) -> Tensor:
    cache[:, at:at + 2].assign(x).realize()
    return (cache * 1).realize()

  for i in (0, 3, 5, 6, 2, 7):        # the last one is cut
    x = np.full((2, 2, 3), i + 1, np.float32)
    want[:, i:i + 2] = x[:, :8 - i]
    np.testing.assert_array_equal(put(Tensor(x).realize(), start.bind(i)).numpy(), want)
  line = Tensor.zeros(2, 8).contiguous()
  at = start.bind(3)
  line[:, at:at + 2] = Tensor([1.0, 2.0])
  assert line.tolist() == [[0.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 0.0]] * 2
  at = start.bind(7)
  with pytest.raises(InvalidArgument, match="assign of a value of shape"): line[0, at:at + 2].assign(Tensor([1.0, 2]))
  with pytest.raises(InvalidArgument, match="does not expand"): line[:, at:at + 2] = Tensor([1.0, 2.0])
