"""Building blocks of networks: layers (`nn.layers`, without weights `nn.functions`),
what networks are derived from (`nn.module`), optimizers (`nn.optim`) with learning
rates that change (`nn.lr_scheduler`), PyTorch's functions (`nn.functional`) and
first values (`nn.init`), state and files (`nn.state`), ONNX models (`nn.onnx`). Each
loads on first use."""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  from tinyhw.nn import datasets as datasets
  from tinyhw.nn import functional as functional
  from tinyhw.nn import init as init
  from tinyhw.nn import lr_scheduler as lr_scheduler
  from tinyhw.nn import onnx as onnx
  from tinyhw.nn import optim as optim
  from tinyhw.nn.attention import MultiheadAttention as MultiheadAttention
  from tinyhw.nn.attention import Transformer as Transformer
  from tinyhw.nn.attention import TransformerDecoder as TransformerDecoder
  from tinyhw.nn.attention import TransformerDecoderLayer as TransformerDecoderLayer
  from tinyhw.nn.attention import TransformerEncoder as TransformerEncoder
  from tinyhw.nn.attention import TransformerEncoderLayer as TransformerEncoderLayer
  from tinyhw.nn.layers import BatchNorm as BatchNorm
  from tinyhw.nn.layers import BatchNorm1d as BatchNorm1d
  from tinyhw.nn.layers import BatchNorm2d as BatchNorm2d
  from tinyhw.nn.layers import BatchNorm3d as BatchNorm3d
  from tinyhw.nn.layers import Bilinear as Bilinear
  from tinyhw.nn.layers import Conv1d as Conv1d
  from tinyhw.nn.layers import Conv2d as Conv2d
  from tinyhw.nn.layers import Conv3d as Conv3d
  from tinyhw.nn.layers import ConvTranspose1d as ConvTranspose1d
  from tinyhw.nn.layers import ConvTranspose2d as ConvTranspose2d
  from tinyhw.nn.layers import ConvTranspose3d as ConvTranspose3d
  from tinyhw.nn.layers import Dropout as Dropout
  from tinyhw.nn.layers import Embedding as Embedding
  from tinyhw.nn.layers import EmbeddingBag as EmbeddingBag
  from tinyhw.nn.layers import GroupNorm as GroupNorm
  from tinyhw.nn.layers import GRUCell as GRUCell
  from tinyhw.nn.layers import InstanceNorm as InstanceNorm
  from tinyhw.nn.layers import InstanceNorm1d as InstanceNorm1d
  from tinyhw.nn.layers import InstanceNorm2d as InstanceNorm2d
  from tinyhw.nn.layers import InstanceNorm3d as InstanceNorm3d
  from tinyhw.nn.layers import LayerNorm as LayerNorm
  from tinyhw.nn.layers import LayerNorm2d as LayerNorm2d
  from tinyhw.nn.layers import Linear as Linear
  from tinyhw.nn.layers import LSTMCell as LSTMCell
  from tinyhw.nn.layers import PReLU as PReLU
  from tinyhw.nn.layers import RMSNorm as RMSNorm
  from tinyhw.nn.layers import RNNCell as RNNCell
  from tinyhw.nn.lazy import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
  from tinyhw.nn.lazy import SyncBatchNorm as SyncBatchNorm
  from tinyhw.nn.module import Module as Module
  from tinyhw.nn.module import ModuleDict as ModuleDict
  from tinyhw.nn.module import ModuleList as ModuleList
  from tinyhw.nn.module import Parameter as Parameter
  from tinyhw.nn.module import ParameterDict as ParameterDict
  from tinyhw.nn.module import ParameterList as ParameterList
  from tinyhw.nn.module import Sequential as Sequential
  from tinyhw.nn.recurrent import GRU as GRU
  from tinyhw.nn.recurrent import LSTM as LSTM
  from tinyhw.nn.recurrent import RNN as RNN
  from tinyhw.nn.state import get_parameters as get_parameters
  from tinyhw.nn.state import get_state_dict as get_state_dict
  from tinyhw.nn.state import gguf_load as gguf_load
  from tinyhw.nn.state import load as load
  from tinyhw.nn.state import load_state_dict as load_state_dict
  from tinyhw.nn.state import safe_load as safe_load
  from tinyhw.nn.state import safe_metadata as safe_metadata
  from tinyhw.nn.state import safe_save as safe_save
  from tinyhw.nn.state import torch_load as torch_load

_LAYERS = (
  "BatchNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Bilinear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d",
  "ConvTranspose2d", "ConvTranspose3d", "Dropout", "Embedding", "EmbeddingBag", "GRUCell", "GroupNorm",
  "InstanceNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LSTMCell",
  "LayerNorm", "LayerNorm2d", "Linear", "PReLU", "RMSNorm", "RNNCell")
_SELDOM = ("AdaptiveLogSoftmaxWithLoss", "SyncBatchNorm")
_RECURRENT = ("GRU", "LSTM", "RNN")
_ATTENTION = ("MultiheadAttention", "Transformer", "TransformerDecoder", "TransformerDecoderLayer",
              "TransformerEncoder", "TransformerEncoderLayer")
_MODULES = ("Module", "ModuleDict", "ModuleList", "Parameter", "ParameterDict", "ParameterList", "Sequential")
_STATE = ("get_parameters", "get_state_dict", "gguf_load", "load", "load_state_dict", "safe_load", "safe_metadata",
          "safe_save", "torch_load")
_ROOMS = ("datasets", "functional", "functions", "init", "layers", "lr_scheduler", "module", "onnx", "optim", "state")
__all__ = [*_LAYERS, *_SELDOM, *_RECURRENT, *_ATTENTION, *_MODULES, *_STATE, "datasets", "functional", "init",
           "lr_scheduler", "onnx", "optim"]


def __getattr__(name: str) -> Any:
  if name in _ROOMS: value: Any = importlib.import_module(f"tinyhw.nn.{name}")
  elif name in _LAYERS: value = getattr(importlib.import_module("tinyhw.nn.layers"), name)
  elif name in _ATTENTION: value = getattr(importlib.import_module("tinyhw.nn.attention"), name)
  elif name in _RECURRENT: value = getattr(importlib.import_module("tinyhw.nn.recurrent"), name)
  elif name in _SELDOM: value = getattr(importlib.import_module("tinyhw.nn.lazy"), name)
  elif name.startswith("Lazy") and name in importlib.import_module("tinyhw.nn.lazy").LAZY:
    value = importlib.import_module("tinyhw.nn.lazy").LAZY[name]
  elif name in _MODULES: value = getattr(importlib.import_module("tinyhw.nn.module"), name)
  elif name[:1].isupper() and name in importlib.import_module("tinyhw.nn.functions").LAYERS:
    value = importlib.import_module("tinyhw.nn.functions").LAYERS[name]
  elif name in _STATE: value = getattr(importlib.import_module("tinyhw.nn.state"), name)
  else: raise AttributeError(f"module 'tinyhw.nn' has no attribute {name!r}")
  globals()[name] = value
  return value


def __dir__() -> list[str]: return sorted({*globals(), *__all__})
