"""Building blocks of networks: layers (`nn.layers`), optimizers (`nn.optim`), state and files (`nn.state`),
ONNX models (`nn.onnx`)."""
from __future__ import annotations

from tinyhw.nn import datasets as datasets
from tinyhw.nn import onnx as onnx
from tinyhw.nn import optim as optim
from tinyhw.nn.layers import (
  BatchNorm,
  BatchNorm1d,
  BatchNorm2d,
  BatchNorm3d,
  Bilinear,
  Conv1d,
  Conv2d,
  Conv3d,
  ConvTranspose1d,
  ConvTranspose2d,
  ConvTranspose3d,
  Dropout,
  Embedding,
  GroupNorm,
  GRUCell,
  InstanceNorm,
  LayerNorm,
  LayerNorm2d,
  Linear,
  LSTMCell,
  RMSNorm,
  Sequential,
)
from tinyhw.nn.state import (
  get_parameters,
  get_state_dict,
  gguf_load,
  load,
  load_state_dict,
  safe_load,
  safe_metadata,
  safe_save,
  torch_load,
)

__all__ = [
  "BatchNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Bilinear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d",
  "ConvTranspose2d", "ConvTranspose3d", "Dropout", "Embedding", "GRUCell", "GroupNorm", "InstanceNorm", "LSTMCell",
  "LayerNorm", "LayerNorm2d", "Linear", "RMSNorm", "Sequential", "datasets", "get_parameters", "get_state_dict",
  "gguf_load", "load", "load_state_dict", "onnx", "optim", "safe_load", "safe_metadata", "safe_save", "torch_load"]
