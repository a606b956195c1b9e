"""What PyTorch makes of a case."""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch

from tests.tensor.operators.cases import BFLOAT16, Array, Case, flat, seeds

NAMES = {"T": torch, "F": torch.nn.functional, "inf": float("inf"), "nan": float("nan"), "torch": torch}


def _tensor(array: Array, dtype: str) -> Any:
  found = torch.from_numpy(np.array(array))
  return found.to(torch.bfloat16) if dtype == BFLOAT16 else found


def _array(x: Any) -> tuple[str, Array]:
  x = x.detach().resolve_conj()
  if x.dtype is torch.bfloat16: return BFLOAT16, np.array(x.float().numpy())
  return str(x.dtype).removeprefix("torch."), x.numpy(force=True).copy()


def expected(case: Case) -> list[tuple[str, Array]]:
  """(dtype, values) of each result, then of each gradient."""
  inputs = [_tensor(a, i.dtype) for a, i in zip(case.arrays(), case.inputs)]
  wanted = case.differentiable()
  for n in wanted: inputs[n].requires_grad_()
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    results = flat(eval(case.theirs or case.ours, {**NAMES, **dict(zip("abcdef", inputs))}))
    results = [r if isinstance(r, torch.Tensor) else torch.tensor(r) for r in results]
    total = sum((r * torch.from_numpy(seeds(tuple(r.shape), n)).to(r.dtype)).sum().double()
                for n, r in enumerate(results) if r.requires_grad)
    if wanted and isinstance(total, torch.Tensor): total.backward()
  gradients = [x.grad if (x := inputs[n]).grad is not None else torch.zeros_like(x) for n in wanted]
  return [_array(x) for x in (*results, *gradients)]
