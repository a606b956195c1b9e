"""Layers along sequences against their cells, and learning rates against PyTorch's numbers."""
from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinyhw import Tensor, nn
from tinyhw.core.errors import InvalidArgument, InvalidShape

FILES = Path(__file__).parent / "files"
sys.path.insert(0, str(FILES))
import values  # noqa: E402

RATES = json.loads((FILES / "learned.json").read_text())["rates"]


def cell(layer: nn.LSTM | nn.GRU, kind: type[nn.LSTMCell] | type[nn.GRUCell], suffix: str) -> nn.LSTMCell | nn.GRUCell:
  """The cell (held against PyTorch in test_layers) that has the weights of one layer and direction."""
  made = kind(layer.input_size, layer.hidden_size)
  for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"): setattr(made, name, getattr(layer, f"{name}{suffix}"))
  return made


def test_a_gru_in_both_directions_is_its_cells() -> None:
  gru, x = nn.GRU(2, 2, bidirectional=True, device="PYTHON"), Tensor.randn(2, 1, 2, device="PYTHON")
  y, h = gru(x)
  assert y.shape == (2, 1, 4) and h.shape == (2, 1, 2)
  for n, order in enumerate(((0, 1), (1, 0))):
    one, state = cell(gru, nn.GRUCell, ("_l0", "_l0_reverse")[n]), None
    for t in order: state = one(x[t], state)
    np.testing.assert_allclose(h[n].numpy(), state.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(y[order[-1], :, 2 * n:2 * n + 2].numpy(), state.numpy(), rtol=1e-5, atol=1e-6)


def test_shapes_and_names_of_an_lstm() -> None:
  lstm = nn.LSTM(2, 3, 2, batch_first=True, proj_size=1)
  assert repr(lstm).startswith("LSTM(2, 3, num_layers=2, batch_first=True")
  assert list(lstm.state_dict())[:6] == ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_hr_l0",
                                         "weight_ih_l1"]
  y, (h, c) = lstm(Tensor.zeros(4, 5, 2))
  assert (y.shape, h.shape, c.shape) == ((4, 5, 1), (2, 4, 1), (2, 4, 3))
  with pytest.raises(InvalidShape, match="of shape"): lstm(Tensor.zeros(4, 5, 3))
  with pytest.raises(InvalidShape, match="which is to be"): lstm(Tensor.zeros(4, 5, 2), (h, h))


def test_a_transformer_is_its_parts() -> None:
  """Its layers are held against PyTorch in test_layers."""
  net = nn.Transformer(4, 2, 1, 2, 8, dropout=0.0, device="PYTHON")
  x, y = (Tensor.randn(n, 1, 4, device="PYTHON") for n in (2, 3))
  mask = nn.Transformer.generate_square_subsequent_mask(3, device="PYTHON")
  memory = net.encoder.norm(net.encoder.layers[0](x))
  want = net.decoder.layers[1](net.decoder.layers[0](y, memory, mask), memory, mask)
  np.testing.assert_allclose(net(x, y, tgt_mask=mask).numpy(), net.decoder.norm(want).numpy(), rtol=1e-6)
  assert len(net.state_dict()) == len(list(net.parameters())) == 12 + 2 + 2 * 18 + 2
  assert net.decoder.layers[0].linear1.weight is not net.decoder.layers[1].linear1.weight


def test_what_attention_refuses() -> None:
  with pytest.raises(InvalidArgument, match="5 numbers in 2 heads"): nn.MultiheadAttention(5, 2)
  made, x = nn.MultiheadAttention(4, 2), Tensor.zeros(3, 2, 4)
  with pytest.raises(InvalidShape, match="a key of shape"): made(x, Tensor.zeros(3, 1, 4), x)
  with pytest.raises(InvalidShape, match="attn_mask of shape"): made(x, x, x, attn_mask=Tensor.zeros(2, 2))
  with pytest.raises(InvalidArgument, match="is_causal without attn_mask"): made(x, x, x, is_causal=True)
  with pytest.raises(InvalidArgument, match="nonlinearity 'sin'"): nn.RNN(1, 1, nonlinearity="sin")


def test_prelu() -> None:
  assert nn.PReLU(2)(Tensor([[-4.0, 2.0]])).tolist() == [[-1.0, 2.0]]


def optimizer() -> nn.optim.SGD:
  return nn.optim.SGD([Tensor.ones(1, requires_grad=True)], lr=0.1, momentum=0.9)


def test_learning_rates() -> None:
  made = optimizer()
  cycle = nn.lr_scheduler.OneCycleLR(made, max_lr=1.0, total_steps=10)
  seen = []
  for _ in range(4):
    seen.append((cycle.get_last_lr()[0], made.param_groups[0]["momentum"]))
    cycle.step()
  np.testing.assert_allclose(seen, [(0.04, 0.95), (0.52, 0.9), (1.0, 0.85), (0.9504846320134737, 0.854951556604879)])
  for kind, want in ((nn.lr_scheduler.StepLR(optimizer(), 2), [0.1, 0.1, 0.01]),
                     (nn.lr_scheduler.ExponentialLR(optimizer(), 0.5), [0.1, 0.05, 0.025]),
                     (nn.lr_scheduler.CosineAnnealingLR(optimizer(), 2), [0.1, 0.05, 0.0]),
                     (nn.lr_scheduler.LambdaLR(optimizer(), lambda e: 1 / (e + 1)), [0.1, 0.05, 0.1 / 3])):
    rates = []
    for _ in want:
      rates.append(kind.optimizer.param_groups[0]["lr"])
      kind.step()
    np.testing.assert_allclose(rates, want, rtol=1e-12, atol=1e-12)
  with pytest.raises(InvalidArgument, match="number of steps"): nn.lr_scheduler.OneCycleLR(made, max_lr=1.0)


def parameter() -> tuple[Tensor, nn.optim.AdamW]:
  p = Tensor(values.START[1], requires_grad=True)
  p.grad = Tensor(values.gradient(1, 0))
  return p, nn.optim.AdamW([p], lr=0.1)


@pytest.mark.parametrize("name", values.RATES)
def test_rates_and_betas_are_torchs(name: str) -> None:
  p, optimizer = parameter()
  want, learned = RATES[name]
  np.testing.assert_allclose(values.rates(nn.optim.lr_scheduler, optimizer, name), want, rtol=1e-6, atol=1e-9)
  np.testing.assert_allclose(p.numpy(), learned, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["SequentialLR", "CyclicLR", "ReduceLROnPlateau", "ChainedScheduler", "OneCycleLR"])
def test_a_schedule_goes_on_from_its_state(name: str) -> None:
  def steps(made: Any, optimizer: Any, measures: Any) -> list[tuple[float, float]]:
    found = []
    for measure in measures:
      made.step(*[measure] * name.startswith("Reduce"))
      group = optimizer.param_groups[0]
      found.append((group["lr"], group["betas"][0]))
    return found
  optimizer = parameter()[1]
  first = values.RATES[name](nn.lr_scheduler, optimizer)
  steps(first, optimizer, values.MEASURES[:4])
  other = parameter()[1]
  second = values.RATES[name](nn.lr_scheduler, other)
  second.load_state_dict(json.loads(json.dumps(first.state_dict())))
  assert second.get_last_lr() == first.get_last_lr()
  assert steps(second, other, values.MEASURES[4:8]) == steps(first, optimizer, values.MEASURES[4:8])


def test_what_schedules_refuse() -> None:
  made = optimizer()
  with pytest.raises(InvalidArgument, match="milestones for 1 schedulers"):
    nn.lr_scheduler.SequentialLR(made, [nn.lr_scheduler.ConstantLR(made)], [2])
  with pytest.raises(InvalidArgument, match="of several optimizers"):
    nn.lr_scheduler.ChainedScheduler([nn.lr_scheduler.ConstantLR(made), nn.lr_scheduler.ConstantLR(optimizer())])
  with pytest.raises(InvalidArgument, match="say what it looks at"): nn.lr_scheduler.ReduceLROnPlateau(made).step()
  with pytest.raises(InvalidArgument, match="factor 1.5"): nn.lr_scheduler.ReduceLROnPlateau(made, factor=1.5)
