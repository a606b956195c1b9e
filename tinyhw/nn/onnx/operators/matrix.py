"""Products of matrices, and what is done with one."""
from __future__ import annotations

from tinyhw.nn.onnx.run import Call
from tinyhw.nn.onnx.table import operator
from tinyhw.tensor.tensor import Tensor


@operator("MatMul", 1, 9, 13)
def matmul(a: Tensor, b: Tensor) -> Tensor: return a.matmul(b).cast(a.dtype)


@operator("Gemm", 7, 9, 11, 13)
def gemm(op: Call, a: Tensor, b: Tensor, c: Tensor | None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
         transB: int = 0) -> Tensor:
  """alpha * a @ b + beta * c."""
  if a.ndim != 2 or b.ndim != 2: raise op.wrong(f"shapes {a.shape} and {b.shape} are not matrices'")
  product = (a.transpose(0, 1) if transA else a).matmul(b.transpose(0, 1) if transB else b)
  if alpha != 1: product = product * alpha
  if c is not None and beta != 0: product = product + (c if beta == 1 else c * beta)
  return product.cast(a.dtype)


@operator("Einsum", 12, 28)
def einsum(op: Call, *inputs: Tensor, equation: str) -> Tensor:
  if not inputs: raise op.wrong("it has no inputs")
  return Tensor.einsum(equation.replace(" ", ""), *inputs).cast(inputs[0].dtype)


@operator("Det", 11, 22)
def det(op: Call, x: Tensor) -> Tensor:
  """The determinant by elimination, each step with the greatest pivot."""
  if x.ndim < 2 or x.shape[-1] != x.shape[-2]: raise op.wrong(f"shape {x.shape} is no square matrix's")
  n = x.shape[-1]
  rows = x.reshape(-1, n, n)
  found = Tensor.ones(rows.shape[0], device=x.device, dtype=x.dtype)
  for _ in range(n):
    size = rows.shape[-1]
    places = Tensor.arange(size, device=x.device)
    chosen = places.eq(rows[:, :, 0].abs().argmax(1, keepdim=True)).unsqueeze(-1)          # (batch, rows, 1)
    pivot = chosen.where(rows, 0).sum(1)                                                  # (batch, columns)
    # The pivot's row changes places with the first one, which changes the sign.
    swapped = chosen.where(rows[:, :1], rows)
    found = found * pivot[:, 0] * chosen[:, 0, 0].where(1, -1).cast(x.dtype)
    if size == 1: break
    safe = pivot[:, :1].eq(0).where(1, pivot[:, :1])
    factor = swapped[:, 1:, :1] / safe.unsqueeze(1)
    rows = (swapped[:, 1:, 1:] - factor * pivot[:, 1:].unsqueeze(1)).contiguous()
  return found.reshape(x.shape[:-2])
