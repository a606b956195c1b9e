"""Features of sequences of numbers, and the operators of ai.onnx.ml that are arithmetic."""
from __future__ import annotations

import numpy as np

from tinyhw.ir.dtype import dtypes
from tinyhw.nn.onnx.operators.indexing import wrapped
from tinyhw.nn.onnx.run import Call
from tinyhw.nn.onnx.table import operator
from tinyhw.tensor.tensor import Tensor

Ints = tuple[int, ...]
Floats = tuple[float, ...]
Strings = tuple[str, ...]


@operator("TfIdfVectorizer", 9)
def tf_idf_vectorizer(op: Call, x: Tensor, *, max_gram_length: int, max_skip_count: int, min_gram_length: int,
                      mode: str,
                      ngram_counts: Ints, ngram_indexes: Ints, pool_int64s: Ints | None = None,
                      pool_strings: Strings | None = None, weights: Floats | None = None) -> Tensor:
  """How often each group of neighbours of a pool is in each row, also with elements left out at equal distances."""
  if pool_strings or pool_int64s is None: raise op.unsupported("of strings")
  if mode not in ("TF", "IDF", "TFIDF"): raise op.wrong(f"mode {mode!r} is none of TF, IDF, TFIDF")
  rows = x.reshape(1, -1) if x.ndim == 1 else x
  found: list[Tensor] = []
  ends = [*ngram_counts, len(pool_int64s)]
  for n, (start, end) in enumerate(zip(ends, ends[1:]), 1):
    if not start <= end <= len(pool_int64s) or (end - start) % n:
      raise op.wrong(f"groups of {n} at {start} to {end} of the pool")
    count = (end - start) // n
    if not count: continue
    groups = Tensor(np.array(pool_int64s[start:end], np.int64).reshape(count, n), device=x.device)
    total = Tensor.zeros(rows.shape[0], count, device=x.device)
    if min_gram_length <= n <= max_gram_length:
      for step in range(1, (max_skip_count if n > 1 else 0) + 2):
        places = rows.shape[1] - (n - 1) * step
        if places < 1: break
        match: Tensor | None = None
        for j in range(n):
          part = rows[:, j * step:j * step + places].unsqueeze(1).eq(groups[:, j].reshape(1, -1, 1))
          match = part if match is None else match & part
        assert match is not None
        total = total + match.sum(2).float()
    found.append(total)
  if not found: raise op.wrong("an empty pool")
  counts = found[0].cat(*found[1:], dim=1) if len(found) > 1 else found[0]
  if len(ngram_indexes) != counts.shape[1]: raise op.wrong(f"{len(ngram_indexes)} places for {counts.shape[1]} groups")
  factors = Tensor(np.array(weights if weights is not None else [1.0] * counts.shape[1], np.float32), device=x.device)
  if factors.shape[0] != counts.shape[1]: raise op.wrong(f"{factors.shape[0]} weights for {counts.shape[1]} groups")
  if mode == "IDF": counts = (counts > 0).where(factors, 0)
  elif mode == "TFIDF": counts = counts * factors
  at = Tensor(np.array(ngram_indexes, np.int32), device=x.device).reshape(-1, 1)
  width = max(ngram_indexes) + 1
  result = at.eq(Tensor.arange(width, device=x.device)).where(counts.unsqueeze(2), 0).sum(1)
  return result.reshape(-1) if x.ndim == 1 else result


@operator("ArrayFeatureExtractor", 1, domain="ai.onnx.ml")
def array_feature_extractor(x: Tensor, places: Tensor) -> Tensor:
  """The chosen positions of the last axis."""
  wide = x.reshape(1, -1) if x.ndim == 1 else x
  return wide[..., wrapped(places.flatten(), wide.shape[-1])]


@operator("Binarizer", 1, domain="ai.onnx.ml")
def binarizer(x: Tensor, *, threshold: float = 0.0) -> Tensor: return (x > threshold).cast(x.dtype)


@operator("Multinomial", 7, 22)
def multinomial(op: Call, x: Tensor, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Tensor:
  """Classes drawn by logarithms of their shares, by tinyhw's own random numbers."""
  if dtype not in (6, 7): raise op.wrong("its results are int32 or int64")
  return x.softmax(-1).multinomial(sample_size, replacement=True).cast(dtypes.int32 if dtype == 6 else dtypes.int64)
