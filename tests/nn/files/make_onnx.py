"""Makes tests/nn/files/onnx_*: models that PyTorch exports, with inputs and what PyTorch computes.

Run with a Python that has torch, onnx and onnxscript: `python tests/nn/files/make_onnx.py`. Made with PyTorch 2.13.
"""
from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch
from torch import nn

FILES = Path(__file__).parent


class Net(nn.Module):
  """Convolutions with batch normalization and pooling, and a head whose shape is computed."""

  def __init__(self) -> None:
    super().__init__()
    self.first, self.norm = nn.Conv2d(2, 6, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(6)
    self.second = nn.Conv2d(6, 8, 3, padding=1, groups=2)
    self.pool, self.head = nn.MaxPool2d(2, ceil_mode=True), nn.Linear(8 * 3 * 2, 5)

  def forward(self, x: torch.Tensor) -> torch.Tensor:
    x = torch.nn.functional.hardswish(self.norm(self.first(x)))
    x = self.pool(torch.nn.functional.gelu(self.second(x)))
    return torch.log_softmax(self.head(x.reshape(x.shape[0], -1)), dim=-1)


class Block(nn.Module):
  """A block of a transformer over tokens, with a causal mask made from the length."""

  def __init__(self) -> None:
    super().__init__()
    self.tokens, self.norm = nn.Embedding(11, 12), nn.LayerNorm(12)
    self.qkv, self.out = nn.Linear(12, 36), nn.Linear(12, 11)

  def forward(self, ids: torch.Tensor) -> torch.Tensor:
    x = self.tokens(ids)
    q, k, v = self.qkv(self.norm(x)).reshape(x.shape[0], x.shape[1], 3, 3, 4).permute(2, 0, 3, 1, 4)
    seen = torch.tril(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool))
    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
    return self.out(x + y.transpose(1, 2).reshape(x.shape))


class Recurrent(nn.Module):
  """A bidirectional LSTM before a GRU."""

  def __init__(self) -> None:
    super().__init__()
    self.lstm, self.gru = nn.LSTM(3, 4, bidirectional=True, batch_first=True), nn.GRU(8, 5, batch_first=True)

  def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y, (_, cells) = self.lstm(x)
    return self.gru(y)[0], cells


def plain(model: onnx.ModelProto) -> onnx.ModelProto:
  """Without what exporters note of the machine and the source: stack traces, documentation."""
  holders = [model, model.graph, *model.graph.node, *model.graph.input, *model.graph.output, *model.graph.value_info,
             *model.graph.initializer]
  for function in model.functions: holders += [function, *function.node, *function.value_info]
  for holder in holders:
    for field in ("metadata_props", "doc_string"): holder.ClearField(field)
  return model


def main() -> None:
  """Write the files."""
  torch.manual_seed(7)
  net = Net().train()
  for _ in range(3): net(torch.randn(8, 2, 11, 7))  # running statistics that are not 0 and 1
  batch, length = torch.export.Dim("batch"), torch.export.Dim("length", min=2, max=64)
  rows = {
    "net": (net, torch.randn(3, 2, 11, 7), {"x": {0: batch}}, False),
    "block": (Block(), torch.randint(0, 11, (2, 6)), {"ids": {0: batch, 1: length}}, False),
    "recurrent": (Recurrent(), torch.randn(2, 5, 3), {"x": {0: "batch", 1: "length"}}, True),
  }
  for name, (module, x, sizes, old) in rows.items():
    module = module.eval()
    path = FILES / f"onnx_{name}.onnx"
    more = {"dynamic_axes": sizes, "input_names": list(sizes), "dynamo": False} if old else \
      {"dynamic_shapes": sizes, "dynamo": True, "external_data": False}
    torch.onnx.export(module, (x,), str(path), opset_version=17 if old else 18, **more)
    onnx.save_model(plain(onnx.load(path)), str(path))
    with torch.no_grad(): outputs = module(x)
    arrays = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
    np.savez(FILES / f"onnx_{name}.npz", x=x.numpy(), **{f"y{i}": y.numpy() for i, y in enumerate(arrays)})
    print(path, path.stat().st_size)


if __name__ == "__main__": main()
