"""What the checkpoints in this folder hold, in NumPy: `make.py` writes them with PyTorch, the tests read them."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

BASE = np.arange(24, dtype=np.float32).reshape(4, 6) / 7

PLAIN: dict[str, np.ndarray[Any, Any]] = {
  "float64": np.array([1.5, -2.25, np.inf]), "float32": BASE, "float16": BASE.astype(np.float16),
  "int64": np.array([-2**62, 3]), "int32": np.array([[1], [-2]], np.int32), "int16": np.array([7, -7], np.int16),
  "int8": np.array([-128, 127], np.int8), "uint8": np.array([0, 255], np.uint8), "bool": np.array([True, False, True]),
  "scalar": np.array(2.5, np.float32), "empty": np.zeros((0, 3), np.float32)}

VIEWS: dict[str, np.ndarray[Any, Any]] = {
  "transposed": BASE.T, "every_second": BASE[:, 1::2], "row": BASE[2], "expanded": np.broadcast_to(BASE[0], (3, 6))}

BFLOAT16 = np.array([1.0, -0.5, 3.140625], np.float32)  # exact in bfloat16

START = (np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), np.linspace(0.5, 2, 5, dtype=np.float32))
STEPS = 6

OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
  "SGD": ("SGD", {"lr": 0.1}),
  "SGD of momentum": ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.25, "weight_decay": 0.01}),
  "SGD of Nesterov": ("SGD", {"lr": 0.1, "momentum": 0.5, "nesterov": True}),
  "Adam": ("Adam", {"lr": 0.05, "betas": (0.8, 0.95), "weight_decay": 0.1}),
  "AdamW": ("AdamW", {"lr": 0.05, "weight_decay": 0.1}),
  "Muon": ("Muon", {"lr": 0.05}),
  "Adamax": ("Adamax", {"lr": 0.05, "weight_decay": 0.1}),
  "NAdam": ("NAdam", {"lr": 0.05, "betas": (0.8, 0.95), "weight_decay": 0.1}),
  "RAdam": ("RAdam", {"lr": 0.05, "betas": (0.8, 0.99), "weight_decay": 0.1, "decoupled_weight_decay": True}),
  "RMSprop": ("RMSprop", {"lr": 0.05, "weight_decay": 0.1}),
  "RMSprop of momentum": ("RMSprop", {"lr": 0.05, "alpha": 0.8, "momentum": 0.9, "centered": True}),
  "Adagrad": ("Adagrad", {"lr": 0.1}),
  "Adagrad of decay": ("Adagrad", {"lr": 0.1, "lr_decay": 0.3, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
  "Adadelta": ("Adadelta", {"weight_decay": 0.1}),
  "Rprop": ("Rprop", {"lr": 0.1}),
  "ASGD": ("ASGD", {"lr": 0.1, "lambd": 0.01, "t0": 2.0, "weight_decay": 0.1}),
  "Adafactor": ("Adafactor", {"lr": 0.1, "weight_decay": 0.1}),
  "Adafactor of a least size": ("Adafactor", {"lr": 0.5, "eps": (1e-3, 1e-2), "d": 1.5}),
}


def gradient(of: int, step: int) -> np.ndarray[Any, Any]:
  """The gradient of a parameter at a step."""
  shape = START[of].shape
  # Squares: sin(i + j) would be a matrix of rank 2, whose third direction is nothing but rounding.
  return np.sin(np.arange(1, START[of].size + 1, dtype=np.float32) ** 2 + step).reshape(shape)


# A layer by PyTorch's name and by ours, its arguments, its inputs' shapes.
Layer = tuple[str, str, tuple[Any, ...], dict[str, Any], tuple[tuple[int, ...], ...]]
LAYERS: dict[str, Layer] = {
  "Linear": ("Linear", "Linear", (3, 4), {}, ((2, 5, 3),)),
  "Linear without bias": ("Linear", "Linear", (3, 4), {"bias": False}, ((3,),)),
  "Bilinear": ("Bilinear", "Bilinear", (3, 4, 2), {}, ((5, 3), (5, 4))),
  "Conv1d": ("Conv1d", "Conv1d", (3, 4, 3), {"stride": 2, "padding": 1}, ((2, 3, 8),)),
  "Conv2d": ("Conv2d", "Conv2d", (4, 6, (3, 2)), {"groups": 2, "dilation": (2, 1), "padding": (1, 0)}, ((2, 4, 7, 5),)),
  "Conv2d same": ("Conv2d", "Conv2d", (2, 3, 3), {"padding": "same", "bias": False}, ((1, 2, 5, 4),)),
  "Conv3d": ("Conv3d", "Conv3d", (2, 3, 2), {}, ((1, 2, 3, 4, 3),)),
  "ConvTranspose1d": ("ConvTranspose1d", "ConvTranspose1d", (3, 4, 3), {"stride": 2, "output_padding": 1},
                      ((2, 3, 4),)),
  "ConvTranspose2d": ("ConvTranspose2d", "ConvTranspose2d", (4, 6, 3), {"groups": 2, "stride": 2, "padding": 1},
                      ((2, 4, 3, 4),)),
  "ConvTranspose3d": ("ConvTranspose3d", "ConvTranspose3d", (2, 3, 2), {"dilation": 2}, ((1, 2, 2, 3, 2),)),
  "LayerNorm": ("LayerNorm", "LayerNorm", ((3, 4),), {}, ((2, 3, 4),)),
  "RMSNorm": ("RMSNorm", "RMSNorm", (4,), {"eps": 1e-6}, ((2, 3, 4),)),
  "GroupNorm": ("GroupNorm", "GroupNorm", (2, 6), {}, ((3, 6, 2, 3),)),
  "InstanceNorm": ("InstanceNorm2d", "InstanceNorm", (3,), {"affine": True}, ((2, 3, 4, 2),)),
  "BatchNorm of vectors": ("BatchNorm1d", "BatchNorm", (3,), {}, ((5, 3),)),
  "BatchNorm of images": ("BatchNorm2d", "BatchNorm", (3,), {"momentum": None}, ((2, 3, 4, 2),)),
  "BatchNorm of none": ("BatchNorm3d", "BatchNorm", (3,), {"affine": False, "track_running_stats": False},
                        ((2, 3, 2, 2, 2),)),
  "LSTMCell": ("LSTMCell", "LSTMCell", (3, 4), {}, ((2, 3),)),
  "GRUCell": ("GRUCell", "GRUCell", (3, 4), {}, ((2, 3),)),
  "RNNCell": ("RNNCell", "RNNCell", (3, 4), {"nonlinearity": "relu"}, ((2, 3),)),
  "RNN": ("RNN", "RNN", (3, 2, 2), {"bidirectional": True}, ((3, 2, 3),)),
  "Attention": ("MultiheadAttention", "MultiheadAttention", (6, 2), {"add_bias_kv": True, "add_zero_attn": True},
                ((3, 2, 6), (4, 2, 6), (4, 2, 6), (2, 4))),
  "Attention to other sizes": ("MultiheadAttention", "MultiheadAttention", (4, 2),
                               {"kdim": 3, "vdim": 5, "batch_first": True, "bias": False},
                               ((2, 3, 4), (2, 4, 3), (2, 4, 5))),
  "Encoder layer": ("TransformerEncoderLayer", "TransformerEncoderLayer", (4, 2, 6),
                    {"dropout": 0.0, "activation": "gelu"}, ((3, 2, 4), (3, 3), (2, 3))),
  "Decoder layer": ("TransformerDecoderLayer", "TransformerDecoderLayer", (4, 2, 6),
                    {"dropout": 0.0, "norm_first": True, "batch_first": True}, ((2, 3, 4), (2, 2, 4))),
}

# Schedules of rates: makes one of what has their names, for an optimizer.
RATES: dict[str, Any] = {
  "ConstantLR": lambda of, o: of.ConstantLR(o, 0.5, 3),
  "LinearLR": lambda of, o: of.LinearLR(o, 0.25, 0.75, 4),
  "PolynomialLR": lambda of, o: of.PolynomialLR(o, 5, 2.0),
  "CosineAnnealingWarmRestarts": lambda of, o: of.CosineAnnealingWarmRestarts(o, 2, 2, 0.01),
  "MultiplicativeLR": lambda of, o: of.MultiplicativeLR(o, lambda e: 0.5 + e / 20),
  "CyclicLR": lambda of, o: of.CyclicLR(o, 0.01, 0.2, 2, 3, mode="triangular2"),
  "CyclicLR of iterations": lambda of, o: of.CyclicLR(o, 0.01, 0.2, 3, scale_fn=lambda x: 1 / (1 + x),
                                                      scale_mode="iterations"),
  "OneCycleLR": lambda of, o: of.OneCycleLR(o, 0.3, total_steps=10),
  "OneCycleLR in three phases": lambda of, o: of.OneCycleLR(o, 0.3, total_steps=10, three_phase=True,
                                                            anneal_strategy="linear"),
  "ChainedScheduler": lambda of, o: of.ChainedScheduler([of.ConstantLR(o, 0.5, 3), of.ExponentialLR(o, 0.9)]),
  "SequentialLR": lambda of, o: of.SequentialLR(
    o, [of.LinearLR(o, 0.25, 1.0, 3), of.CosineAnnealingLR(o, 4), of.StepLR(o, 2)], [2, 5]),
  "SequentialLR of factors": lambda of, o: of.SequentialLR(
    o, [of.ConstantLR(o, 0.5, 2), of.MultiplicativeLR(o, lambda e: 0.5 + e / 20)], [3]),
  "SequentialLR to a cycle": lambda of, o: of.SequentialLR(
    o, [of.LinearLR(o, 0.25, 1.0, 3), of.OneCycleLR(o, 0.3, total_steps=10)], [3]),
  "SequentialLR to cycles": lambda of, o: of.SequentialLR(
    o, [of.LinearLR(o, 0.25, 1.0, 3), of.CyclicLR(o, 0.01, 0.2, 2)], [3]),
  "ReduceLROnPlateau": lambda of, o: of.ReduceLROnPlateau(o, "min", 0.5, 1, cooldown=1, min_lr=0.02),
  "ReduceLROnPlateau of max": lambda of, o: of.ReduceLROnPlateau(o, "max", 0.5, 0, threshold=0.1,
                                                                 threshold_mode="abs"),
}
MEASURES = (1.0, 0.9, 0.95, 0.93, 0.92, 0.91, 0.89, 0.95, 0.96, 0.97)


def rates(of: Any, optimizer: Any, name: str) -> list[tuple[float, float]]:
  """The rate and the first beta at each step of a schedule."""
  made, found = RATES[name](of, optimizer), []
  for measure in MEASURES:
    group = optimizer.param_groups[0]
    found.append((group["lr"], group["betas"][0]))
    optimizer.step()
    made.step(*[measure] * name.startswith("Reduce"))
  return found


def inputs(name: str, step: int) -> list[np.ndarray[Any, Any]]:
  """What the layer is called with at a step."""
  return [np.sin(np.arange(1, math.prod(s) + 1, dtype=np.float32) ** 2 + step + 3 * i).reshape(s)
          for i, s in enumerate(LAYERS[name][4])]
