"""Layers against PyTorch's: values, gradients, state, and what they refuse."""
from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinyhw import Device, Tensor, TinyJit, ValueLost, dtypes, nn
from tinyhw.core.errors import InvalidArgument

FILES = Path(__file__).parent / "files"
sys.path.insert(0, str(FILES))
import values  # noqa: E402


def on_the_host(value: Any) -> Any:
  """Containers with arrays in the place of tensors, whose memory another test may close with its device."""
  if isinstance(value, dict): return {k: on_the_host(v) for k, v in value.items()}
  if isinstance(value, (list, tuple)): return type(value)(map(on_the_host, value))
  return value.numpy() if isinstance(value, Tensor) else value


KEPT = on_the_host(nn.torch_load(FILES / "layers.pt"))


def close(got: Any, want: Any) -> None:
  """Equal as far as sums in another order are."""
  if isinstance(want, tuple):
    for g, w in zip(got, want, strict=True): close(g, w)
    return
  assert got.shape == want.shape
  np.testing.assert_allclose(got.numpy(), want, rtol=2e-5, atol=2e-6)


def made(name: str) -> Any:
  _, kind, arguments, options, _ = values.LAYERS[name]
  layer = getattr(nn, kind)(*arguments, **options)
  nn.load_state_dict(layer, {path: Tensor(a) for path, a in KEPT[name]["state"].items()})
  return layer


@pytest.mark.parametrize("name", values.LAYERS)
def test_as_torch_has_it(name: str) -> None:
  layer, kept = made(name), KEPT[name]
  recurrent = values.LAYERS[name][0].endswith("Cell")
  given: list[Tensor] = []
  with Tensor.train():
    state = None
    for step in range(2):
      given = [Tensor(a, requires_grad=True) for a in values.inputs(name, step)]
      out = layer(*given, state) if recurrent else layer(*given)
      state = out
      close(out, kept["outputs"][step])
    first = out[0] if isinstance(out, tuple) else out
    (first * Tensor(np.cos(np.arange(first.numel())).astype(np.float32)).reshape(first.shape)).sum().backward()
  own = nn.get_state_dict(layer)
  Tensor.realize(*(t.grad for t in (*given, *(own[path] for path in kept["gradients"])) if t.grad is not None))
  for t, want in zip(given, kept["inputs"], strict=True): close(t.grad, want)
  for path, want in kept["gradients"].items(): close(own[path].grad, want)
  for path, want in kept["after"].items(): close(own[path], want)
  close(layer(*(Tensor(a) for a in values.inputs(name, 2))), kept["at rest"])


def test_statistics_are_computed_with_the_step() -> None:
  """While nobody reads them they must not grow into a formula of all batches."""
  layer = nn.BatchNorm(3)
  optimizer = nn.optim.SGD(nn.get_parameters(layer), lr=0.1)
  sizes = []
  with Tensor.train():
    for step in range(4):
      optimizer.zero_grad()
      optimizer.step(layer(Tensor(values.inputs("BatchNorm of vectors", step)[0])).square().sum().backward())
      sizes.append(len(layer.running_mean.uop.toposort()))
    for step in range(4):  # no step at all
      layer(Tensor(values.inputs("BatchNorm of vectors", step)[0]))
      sizes.append(len(layer.running_mean.uop.toposort()))
  assert sizes[1] == sizes[3] and sizes[5] == sizes[7] and layer.num_batches_tracked.item() == 8


def test_statistics_of_a_recorded_step() -> None:
  def learned(jit: bool) -> list[float]:
    layer = nn.BatchNorm(3)
    optimizer = nn.optim.SGD(nn.get_parameters(layer), lr=0.1)
    def step(x: Tensor) -> Tensor:
      optimizer.zero_grad()
      loss = layer(x).square().sum().backward()
      optimizer.step(loss)
      return loss
    run = TinyJit(step) if jit else step
    with Tensor.train():
      for i in range(5): run(Tensor(values.inputs("BatchNorm of vectors", i)[0]))
    return [*layer.running_mean.tolist(), *layer.running_var.tolist(), layer.num_batches_tracked.item()]
  assert learned(True) == learned(False)


def test_sequential() -> None:
  net = nn.Sequential(nn.Linear(3, 4), Tensor.relu, nn.Linear(4, 2))
  assert list(nn.get_state_dict(net)) == ["0.weight", "0.bias", "2.weight", "2.bias"] and len(net) == 3
  x = Tensor(values.inputs("Linear", 0)[0])
  np.testing.assert_array_equal(net(x).numpy(), net[2](net[0](x).relu()).numpy())


@pytest.mark.parametrize("layer, fan_in", [
  (lambda: nn.Linear(50, 40), 50), (lambda: nn.Conv2d(4, 30, (2, 3)), 24), (lambda: nn.Conv1d(8, 30, 3, groups=2), 12),
  (lambda: nn.LSTMCell(10, 16), 16), (lambda: nn.GRUCell(10, 16), 16)])
def test_parameters_begin_uniform_about_0(layer: Callable[[], Any], fan_in: int) -> None:
  for p in nn.get_parameters(layer()):
    if p.numel() < 100: continue
    drawn, bound = p.numpy(), fan_in ** -0.5
    assert -bound <= drawn.min() < -0.9 * bound and 0.9 * bound < drawn.max() <= bound and p.requires_grad
    assert abs(drawn.mean()) < bound * 5 * (3 * drawn.size) ** -0.5


def test_dropout() -> None:
  x, layer = Tensor.ones(1000), nn.Dropout(0.25)
  assert layer(x).tolist() == x.tolist()
  with Tensor.train(): y = layer(x).numpy()
  assert set(np.unique(y)) == {0, np.float32(1 / 0.75)} and 200 < (y == 0).sum() < 300


def x() -> Tensor: return Tensor.ones(2, 3, 4)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
  "groups": (lambda: nn.Conv2d(3, 4, 3, groups=2), "3 channels to 4 in 2 groups; both numbers"),
  "kernel": (lambda: nn.Conv3d(3, 4, (3, 3)), r"a kernel of \(3, 3\) for 3 axes"),
  "padding": (lambda: nn.Conv2d(3, 4, 3, padding="some"), "Conv2d: padding 'some' is neither"),
  "same": (lambda: nn.Conv2d(3, 4, 3, stride=(1, 2), padding="same"), 'Conv2d: padding "same" needs a stride'),
  "rank": (lambda: nn.Conv2d(3, 4, 3)(x()), r"Conv2d of shape \(2, 3, 4\); give \(batch, channels, size, size\)"),
  "channels": (lambda: nn.BatchNorm(4)(x()), r"BatchNorm of 4 channels of a tensor of shape \(2, 3, 4\); the"),
  "one value": (lambda: _train(nn.BatchNorm(3), Tensor.ones(1, 3)), "learns from one value a channel"),
  "group norm": (lambda: nn.GroupNorm(2, 3), "3 channels in 2 groups"),
  "rms": (lambda: nn.RMSNorm(3)(x()), r"RMS norm over 3 of a tensor of shape \(2, 3, 4\)"),
  "dropout": (lambda: nn.Dropout(1.5), "a probability of 1.5"),
  "sequential": (lambda: nn.Sequential(nn.Linear(1, 1), 3),
                 "layer 1 is a int, and cannot be called"),  # type: ignore[arg-type]
}


def _train(layer: Any, x: Tensor) -> Any:
  with Tensor.train(): return layer(x)


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
  call, message = REFUSED[what]
  with pytest.raises(InvalidArgument, match=message): call()


def test_layers_and_optimizers_take_the_spellings_of_both() -> None:
  assert nn.LayerNorm(normalized_shape=4, elementwise_affine=False).weight is None
  norm = nn.LayerNorm(4, bias=False)
  assert norm.weight is not None and norm.bias is None
  assert np.allclose(norm(Tensor([[1.0, 2, 3, 4]])).numpy(), [[-1.34164, -0.44721, 0.44721, 1.34164]], atol=1e-4)
  assert nn.BatchNorm(sz=3).num_features == 3 and nn.Embedding(vocab_size=5, embed_size=2).weight.shape == (5, 2)
  assert nn.RMSNorm(3, affine=False).weight is None
  p = Tensor.ones(2)
  optimizer = nn.optim.AdamW(params=[p], lr=0.1, b1=0.5, b2=0.75)
  assert optimizer.groups[0].options["betas"] == (0.5, 0.75)
  with pytest.raises(TypeError, match="same parameter"): nn.optim.SGD(params=[p], parameters=[p])


def test_a_state_is_loaded_in_tinygrads_ways(tmp_path: Path) -> None:
  layer, other = nn.Linear(2, 3), {"scale": Tensor.ones(())}
  assert sorted(nn.get_state_dict(layer, prefix="net.")) == ["net.bias", "net.weight"]
  state = {k: Tensor.full(t.shape, 2.0) for k, t in nn.get_state_dict(layer).items()} | {"more": Tensor([1.0])}
  loaded = nn.load_state_dict(layer, state_dict=state, strict=False, verbose=False, consume=True)
  assert loaded == [layer.weight, layer.bias] and list(state) == ["more"] and layer.weight.tolist() == [[2.0] * 2] * 3
  nn.load_state_dict(other, {"scale": Tensor([3.0])}, realize=False)      # one element is one element
  assert other["scale"].item() == 3.0
  nn.safe_save(tensors=other, fn=tmp_path / "one.safetensors")
  assert nn.safe_load(tmp_path / "one.safetensors")["scale"].item() == 3.0


def test_a_convolution_has_as_many_axes_as_its_kernel_has_sizes() -> None:
  x = Tensor.ones(1, 2, 4, 4, 4)
  assert nn.Conv2d(2, 3, (3, 3, 3), padding=1)(x).shape == (1, 3, 4, 4, 4)
  assert nn.ConvTranspose2d(2, 3, (2, 2, 2), stride=2)(x).shape == (1, 3, 8, 8, 8)
  assert nn.Conv2d(2, 3, (3,))(Tensor.ones(1, 2, 5)).shape == (1, 3, 3) and nn.Conv2d(2, 3, 3).weight.ndim == 4


def test_statistics_that_were_lost_are_no_part_of_another_step() -> None:
  norm = nn.BatchNorm(3, affine=False)
  statistics = norm.running_mean, norm.running_var, norm.num_batches_tracked
  for t in statistics: t.to_("PYTHON")
  with Tensor.train(): norm(Tensor(np.arange(12, dtype=np.float32).reshape(4, 3), device="PYTHON").realize())
  Device.close()
  p = Tensor([1.0, 2.0], device="LLVM", requires_grad=True)
  optimizer = nn.optim.SGD([p], lr=0.5)
  (p * p).sum().backward()
  optimizer.step()
  assert p.tolist() == [0, 0]
  with pytest.raises(ValueLost): norm.running_mean.tolist()


PADDED = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", PADDED)
@pytest.mark.parametrize("kind, sizes", [("Conv1d", (7,)), ("Conv2d", (6, 5)), ("Conv3d", (4, 5, 4))])
def test_a_convolution_of_what_is_padded(mode: str, kind: str, sizes: tuple[int, ...]) -> None:
  """As one without padding of what NumPy has padded."""
  x = np.random.default_rng(0).standard_normal((2, 2, *sizes)).astype(np.float32)
  layer = getattr(nn, kind)(2, 3, 3, padding=1, padding_mode=mode)
  plain = getattr(nn, kind)(2, 3, 3)
  nn.load_state_dict(plain, nn.get_state_dict(layer))
  around = np.pad(x, [(0, 0), (0, 0), *[(1, 1)] * len(sizes)], mode=PADDED[mode])
  np.testing.assert_allclose(layer(Tensor(x)).numpy(), plain(Tensor(around)).numpy(), rtol=1e-5, atol=1e-6)
  assert f"padding_mode={mode}" in repr(layer)


def test_paddings_of_several_sizes() -> None:
  x = np.random.default_rng(0).standard_normal((1, 1, 6, 7)).astype(np.float32)
  for padding, dilation, before in ((((2, 1)), 1, [(2, 2), (1, 1)]), ("same", (1, 2), [(0, 1), (2, 2)]),
                                    ("valid", 1, [(0, 0), (0, 0)])):
    layer = nn.Conv2d(1, 1, (2, 3), padding=padding, dilation=dilation, padding_mode="reflect")
    plain = nn.Conv2d(1, 1, (2, 3), dilation=dilation)
    nn.load_state_dict(plain, nn.get_state_dict(layer))
    around = np.pad(x, [(0, 0), (0, 0), *before], mode="reflect")
    np.testing.assert_allclose(layer(Tensor(x)).numpy(), plain(Tensor(around)).numpy(), rtol=1e-5, atol=1e-6)
  with pytest.raises(InvalidArgument, match="padding_mode 'mirror' is none of zeros, reflect"):
    nn.Conv1d(1, 1, 3, padding_mode="mirror")
  with pytest.raises(InvalidArgument, match="is none of zeros"): nn.ConvTranspose1d(1, 1, 3, padding_mode="reflect")


@pytest.mark.parametrize("make", [
  lambda **k: nn.Linear(2, 3, **k), lambda **k: nn.Conv2d(2, 3, 3, **k), lambda **k: nn.LayerNorm(3, **k),
  lambda **k: nn.BatchNorm2d(3, **k), lambda **k: nn.Embedding(4, 3, **k), lambda **k: nn.LSTM(2, 3, **k),
  lambda **k: nn.MultiheadAttention(4, 2, **k), lambda **k: nn.RMSNorm(3, **k), lambda **k: nn.PReLU(**k)])
def test_layers_of_another_type(make: Any) -> None:
  kinds = {t.dtype for t in nn.get_state_dict(make(dtype=dtypes.float16)).values() if t.dtype.is_float}
  assert kinds == {dtypes.float16}
  assert {t.dtype for t in nn.get_parameters(make(dtype="float64", device="PYTHON"))} == {dtypes.float64}
  assert {t.device for t in nn.get_parameters(make(dtype="float64", device="PYTHON"))} == {"PYTHON"}
  with pytest.raises(TypeError, match="floats"): make(dtype=dtypes.int32)


def test_a_row_that_does_not_learn() -> None:
  table = nn.Embedding(4, 3, padding_idx=-3)
  assert table.padding_idx == 1 and table.weight[1].tolist() == [0, 0, 0] and "padding_idx=1" in repr(table)
  table(Tensor([[1, 2], [2, 0]])).sum().backward()
  assert table.weight.grad is not None
  assert table.weight.grad.tolist() == [[1] * 3, [0] * 3, [2] * 3, [0] * 3]
  with pytest.raises(InvalidArgument, match="padding_idx 4 of a table of 4 rows"): nn.Embedding(4, 3, padding_idx=4)


def test_rows_that_are_too_long() -> None:
  table = nn.Embedding.from_pretrained(Tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]]), freeze=False, max_norm=1.0)
  np.testing.assert_allclose(table(Tensor([0, 1])).numpy(), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-5)
  np.testing.assert_allclose(table.weight.numpy(), [[0.6, 0.8], [0.3, 0.4], [6.0, 8.0]], rtol=1e-5)
  assert table.weight.requires_grad and not nn.Embedding.from_pretrained(Tensor.ones(2, 3)).weight.requires_grad
  with pytest.raises(InvalidArgument, match=r"a table of shape \(3,\)"): nn.Embedding.from_pretrained(Tensor.ones(3))
