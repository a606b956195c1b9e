"""Calls of PyTorch's functions: `make.py` keeps what PyTorch gives for them, the tests make them."""
from __future__ import annotations

from typing import Any

import numpy as np

X = np.linspace(-2.5, 2.5, 24, dtype=np.float32).reshape(2, 3, 4)
IMAGE = np.random.default_rng(2).normal(size=(1, 2, 4, 5)).astype(np.float32)
KERNEL = np.random.default_rng(3).normal(size=(2, 1, 2, 2)).astype(np.float32)
BACK = np.random.default_rng(4).normal(size=(2, 1, 3, 3)).astype(np.float32)
LONG = np.array([1, 0], np.int64)
ROWS = np.random.default_rng(5).normal(size=(2, 3)).astype(np.float32)
PART = np.array([[0.2, 0.6, 0.1], [0.9, 0.5, 0.3]], np.float32)
SIGNS = np.array([1.0, -1.0], np.float32)

# Calls of one and the same form: (name, tensors and all else by place, by name).
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
  ("relu", (X,), {}), ("leaky_relu", (X, 0.25), {}), ("elu", (X, 0.5), {}), ("gelu", (X,), {}),
  ("softplus", (X, 2, 1), {}), ("hardtanh", (X, -1, 2), {}), ("threshold", (X, 0.5, 7), {}), ("glu", (X, -1), {}),
  ("hardsigmoid", (X,), {}), ("selu", (X,), {}), ("logsigmoid", (X,), {}), ("hardshrink", (X, 1.0), {}),
  ("normalize", (X, 1.0, 2), {}), ("pad", (X, (1, 2), "constant", 3.0), {}), ("softmax", (X,), {}),
  ("log_softmax", (X, -1), {}), ("softmin", (ROWS, 0), {}), ("one_hot", (LONG,), {"num_classes": 3}),
  ("linear", (X, np.ones((2, 4), np.float32), SIGNS), {}), ("linear", (X, np.ones(4, np.float32)), {}),
  ("bilinear", (ROWS, ROWS, np.ones((2, 3, 3), np.float32), SIGNS), {}),
  ("conv2d", (IMAGE, KERNEL, SIGNS, 1, 1, 2, 2), {}), ("conv_transpose2d", (IMAGE, BACK, None, 2, 1, 1, 2), {}),
  ("max_pool2d", (IMAGE, 2, 1, 1, 2, True), {}), ("max_pool2d", (IMAGE, 2), {"return_indices": True}),
  ("avg_pool2d", (IMAGE, 3, 2, 1, True, False, 5), {}), ("adaptive_avg_pool2d", (IMAGE, 2), {}),
  ("adaptive_max_pool2d", (IMAGE, (2, 2), True), {}), ("lp_pool2d", (abs(IMAGE), 2.0, 2), {}),
  ("unfold", (IMAGE, 2, 1, 1, 2), {}), ("unfold", (IMAGE[0], (2, 3)), {}),
  ("fold", (np.ones((1, 4, 6), np.float32), (3, 4), 2), {}),
  ("pixel_shuffle", (np.ones((1, 4, 2, 2), np.float32), 2), {}),
  ("interpolate", (IMAGE, None, 2.0, "bilinear", True), {}), ("upsample", (IMAGE, (3, 3)), {}),
  ("grid_sample", (IMAGE, np.zeros((1, 2, 2, 2), np.float32), "nearest", "border", True), {}),
  ("batch_norm", (X, np.zeros(3, np.float32), np.ones(3, np.float32), None, None, True), {}),
  ("instance_norm", (X,), {"eps": 0.5}), ("layer_norm", (X, (4,)), {"eps": 0.25}), ("group_norm", (IMAGE, 2), {}),
  ("rms_norm", (X, (3, 4), None, 1e-3), {}), ("local_response_norm", (IMAGE, 3, 0.5), {}),
  ("scaled_dot_product_attention", (X, X, X, None, 0.0, True), {}),
  ("embedding", (LONG, ROWS), {}), ("embedding_bag", (LONG[None], ROWS), {"mode": "sum"}),
  ("cosine_similarity", (ROWS, ROWS * 2 + 1), {}), ("pairwise_distance", (ROWS, -ROWS, 1.0), {}),
  ("cross_entropy", (ROWS, LONG), {"label_smoothing": 0.25}), ("nll_loss", (ROWS, LONG), {"reduction": "sum"}),
  ("mse_loss", (ROWS, -ROWS), {}), ("smooth_l1_loss", (ROWS, -ROWS, None, None, "sum", 0.5), {}),
  ("huber_loss", (ROWS, -ROWS, "mean", 0.5), {}), ("l1_loss", (ROWS, -ROWS), {"reduction": "none"}),
  ("binary_cross_entropy", (PART, (PART > 0.4).astype(np.float32)), {}),
  ("binary_cross_entropy_with_logits", (ROWS, PART), {}),
  ("kl_div", (ROWS, PART, None, None, "sum", True), {}), ("poisson_nll_loss", (ROWS, PART, False, True), {"eps": 1.0}),
  ("gaussian_nll_loss", (ROWS, -ROWS, PART), {}), ("hinge_embedding_loss", (ROWS[:, 0], SIGNS, 0.5), {}),
  ("cosine_embedding_loss", (ROWS, ROWS * 2 + 1, SIGNS), {"margin": 0.25}),
  ("margin_ranking_loss", (ROWS[:, 0], ROWS[:, 1], SIGNS, 0.5), {}),
  ("triplet_margin_loss", (ROWS, ROWS + 1, ROWS - 2, 0.5, 1.0), {}), ("multi_margin_loss", (ROWS, LONG, 2), {}),
  ("soft_margin_loss", (ROWS[:, 0], SIGNS), {}), ("multilabel_soft_margin_loss", (ROWS, PART), {}),
  ("triplet_margin_with_distance_loss", (ROWS, ROWS + 1, ROWS - 2), {"swap": True, "margin": 3.0}),
  ("affine_grid", (np.ones((1, 2, 3), np.float32), (1, 2, 2, 2), True), {}),
  ("dropout", (X, 0.5, False), {}), ("dropout2d", (X,), {"training": False}),
  ("mse_loss", (ROWS, -ROWS), {"weight": abs(ROWS)}), ("l1_loss", (ROWS, -ROWS, None, None, "sum", PART), {}),
  ("huber_loss", (ROWS, -ROWS, "mean", 0.5, PART), {}), ("rrelu", (X, 0.25, 0.75), {}),
  ("alpha_dropout", (X, 0.5), {}), ("feature_alpha_dropout", (X, 0.5), {}),
  ("max_pool2d_with_indices", (IMAGE, 2), {}), ("adaptive_max_pool2d_with_indices", (IMAGE, 2), {}),
  ("fractional_max_pool2d", (IMAGE, 2, (2, 3), None, True, PART[:1, None, :2].repeat(2, 1)), {}),
  ("upsample_nearest", (IMAGE, None, 2), {}), ("upsample_bilinear", (IMAGE, (3, 7)), {}),
  ("conv_tbc", (X, np.ones((2, 4, 2), np.float32), SIGNS, 1), {}),
  ("multi_head_attention_forward", (
    X, X, X + 1, 4, 2, np.tile(ROWS, (6, 2))[:, :4].copy(), np.arange(12, dtype=np.float32), X[:1, :1], X[1:, 1:2],
    True, 0.0, np.eye(4, dtype=np.float32) + 1, X[0, 0]), {}),
  ("multi_head_attention_forward", (
    X, X[:1], X[:1, :, :3].copy(), 4, 2, None, None, None, None, False, 0.0, np.eye(4, dtype=np.float32), None), {
      "use_separate_proj_weight": True, "q_proj_weight": np.eye(4, dtype=np.float32) + 1, "average_attn_weights": False,
      "k_proj_weight": np.eye(4, dtype=np.float32), "v_proj_weight": np.tile(ROWS, (2, 1)),
      "attn_mask": np.array([[0.5], [-1.0]], np.float32)}),
]
