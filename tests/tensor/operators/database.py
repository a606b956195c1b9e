"""PyTorch's own database of operators (`torch.testing`) as witness: each of its operators that Tensor has too, with the
inputs that PyTorch's tests take, forward and backward: `python -m tests.tensor.operators.database`, where torch and
expecttest are. No part of the tests: it takes minutes.

A sample is right, wrong, or refused: by an error of tinyhw's own tree, or since the arguments are no ones of ours.
"""
from __future__ import annotations

import argparse
import collections
import inspect
import itertools
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import tinyhw
from tests.tensor.operators.cases import flat, seeds
from tinyhw import Tensor, dtypes

# What draws, gives memory as it is, or asks for something else than a value.
DRAWS = {"bernoulli", "multinomial", "normal", "rand_like", "randint", "randint_like", "randn", "randn_like", "uniform",
         "dropout", "dropout2d", "dropout3d", "gumbel_softmax", "empty", "empty_like", "new_empty", "item", "to",
         "cauchy", "exponential", "geometric", "log_normal", "rrelu", "alpha_dropout", "feature_alpha_dropout",
         "trunc_normal"}
# Where a name means something else here, and docs/tensor.md says so.
ELSEWHERE = {"nn.functional.linear": "weight is (in, out)", "svd": "torch.linalg.svd's", "nn.functional.gelu":
             "the tanh form unless told", "long": "", "expand_as": ""}
# Where torch has two functions of one name, of which Tensor has the other one.
NOT_THE_SAME = {"nn.functional.unfold", "linalg.vander", "where", "nn.functional.embedding", "gradient",
                "sparse.mm/reduce", "nn.functional.triplet_margin_with_distance_loss", "max/reduction_with_dim",
                "min/reduction_with_dim"}
TYPES = {torch.float32: dtypes.float32, torch.float64: dtypes.float64, torch.float16: dtypes.float16,
         torch.bfloat16: dtypes.bfloat16, torch.int8: dtypes.int8, torch.int16: dtypes.int16,
         torch.int32: dtypes.int32, torch.int64: dtypes.int64, torch.uint8: dtypes.uint8, torch.bool: dtypes.bool}
# Positional parameters behind those that Tensor takes in torch's order.
POSITIONS = {"conv1d": ("weight", "bias", "stride", "padding", "dilation", "groups"),
             "conv_transpose1d": ("weight", "bias", "stride", "padding", "output_padding", "groups", "dilation"),
             "max_pool1d": ("kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices"),
             "avg_pool1d": ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")}
POSITIONS |= {f"{name[:-2]}{n}d": row for name, row in list(POSITIONS.items()) for n in (2, 3)}


def ours(x: Any, made: list[tuple[Any, Tensor]]) -> Any:
  """An argument as Tensor takes it; `made` gets each tensor with its twin."""
  if isinstance(x, torch.Tensor):
    twin = Tensor(np.array(x.detach().numpy(force=True)), requires_grad=False)
    if x.requires_grad: twin.requires_grad_()
    made.append((x, twin))
    return twin
  if isinstance(x, (list, tuple)) and not isinstance(x, torch.Size): return type(x)(ours(y, made) for y in x)
  if isinstance(x, torch.Size): return tuple(x)
  if isinstance(x, dict): return {k: ours(v, made) for k, v in x.items()}
  if isinstance(x, torch.dtype): return TYPES[x]
  return x


def results(found: Any) -> list[Any]:
  """The tensors of a result."""
  if isinstance(found, torch.Size): return [torch.tensor(list(found))]
  return [r for r in flat(found) if r is not None]


def _close(name: str, mine: Any, other: Any, kind: str) -> str:
  if mine.shape != other.shape: return f"{name} of shape {mine.shape}, torch {other.shape}"
  a, b = mine.astype(np.float64), other.astype(np.float64)
  with np.errstate(all="ignore"):
    good = (a == b) | np.isnan(a) & np.isnan(b) | (np.abs(a - b) <= 2e-5 + 1e-4 * np.abs(b))
  if good.all(): return ""
  at = tuple(int(i) for i in np.argwhere(~np.atleast_1d(good))[0]) if other.ndim else ()
  return f"{name} at {at} is {mine[at]!r}, torch {other[at]!r} ({int((~good).sum())} of {good.size} differ){kind}"


def compare(function: Callable[..., Any], op: Any, sample: Any, backward: bool) -> str:
  """Why ours is wrong, or nothing."""
  made: list[tuple[Any, Tensor]] = []
  args, kwargs = (sample.input, *sample.args), dict(sample.kwargs)
  theirs = results(op(*args, **kwargs))
  if kwargs.get("dropout_p"): raise NotImplementedError("drawn")
  if any(isinstance(r, torch.Tensor) and (r.is_complex() or r.layout is not torch.strided) for r in theirs):
    raise NotImplementedError("complex")
  mine_args, mine_kwargs = ours(args, made), ours(kwargs, made)
  for key in ("device", "layout", "pin_memory", "memory_format", "out"): mine_kwargs.pop(key, None)
  names = POSITIONS.get(op.name.rpartition(".")[2])
  if names:
    mine_kwargs |= dict(zip(names, mine_args[1:]))
    mine_args = mine_args[:1]
  if op.name == "einsum": mine_args = (mine_args[1], *mine_args[0])       # torch's test takes them the other way
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    found = results(function(*mine_args, **mine_kwargs))
  if len(found) != len(theirs): return f"{len(found)} results, torch {len(theirs)}"
  pairs = [(f if isinstance(f, Tensor) else Tensor(f), t if isinstance(t, torch.Tensor) else torch.tensor(t))
           for f, t in zip(found, theirs)]
  for n, (f, t) in enumerate(pairs):
    if f.dtype.is_float != t.dtype.is_floating_point: return f"result {n} is {f.dtype}, torch {t.dtype}"
    if (why := _close(f"result {n}", f.numpy(), t.detach().numpy(force=True), "")): return why
  if not backward: return ""
  total, goal = None, None
  for n, (f, t) in enumerate(pairs):
    if not t.requires_grad: continue
    seed = seeds(tuple(t.shape), n).astype(np.float32)
    part, theirs_part = (f * Tensor(seed)).sum(), (t * torch.from_numpy(seed)).sum()     # of constants they are 0
    total, goal = (part, theirs_part) if total is None else (total + part, goal + theirs_part)
  wanted = [(x, twin) for x, twin in made if x.requires_grad]
  if total is None or not wanted: return ""
  slopes = torch.autograd.grad(goal, [x for x, _ in wanted], allow_unused=True)
  for n, (g, t, (x, _)) in enumerate(zip(total.gradient(*(twin for _, twin in wanted)), slopes, wanted)):
    t = torch.zeros_like(x) if t is None else t
    if (why := _close(f"gradient {n}", g.numpy(), t.detach().numpy(force=True), "")): return why
  return ""


def operators(pattern: str) -> Iterator[tuple[str, Any, Callable[..., Any]]]:
  """(name, torch's entry, our function) of the operators that both have."""
  for op in op_db:
    name = op.name.rpartition(".")[2]
    label = op.name + ("/" + op.variant_test_name if op.variant_test_name else "")
    function = inspect.getattr_static(Tensor, name, None)
    if function is None or name in DRAWS or op.name in ELSEWHERE or not fnmatch(label, pattern): continue
    if torch.float32 not in op.dtypes and torch.bool not in op.dtypes and torch.int64 not in op.dtypes: continue
    if name.endswith("_") or label in NOT_THE_SAME: continue
    yield label, op, function.fget if isinstance(function, property) else getattr(Tensor, name)


def main() -> int:
  """Counts for each operator, and what is wrong."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--only", default="*", metavar="PATTERN", help="operators whose name fits")
  parser.add_argument("--samples", type=int, default=10, metavar="N", help="samples of one at most (default 10)")
  parser.add_argument("--part", default="0/1", metavar="I/N", help="every N-th operator, from the I-th on")
  parser.add_argument("--verbose", action="store_true", help="each sample that is wrong or refused")
  options = parser.parse_args()
  torch.set_num_threads(1)
  first, step = map(int, options.part.split("/"))
  began, total, clean = time.perf_counter(), collections.Counter(), 0
  for label, op, function in itertools.islice(operators(options.only), first, None, step):
    kind = next(k for k in (torch.float32, torch.int64, torch.bool) if k in op.dtypes)
    grad = kind is torch.float32 and op.supports_autograd
    torch.manual_seed(0)
    np.random.seed(0)
    samples = list(op.sample_inputs("cpu", kind, requires_grad=grad))
    # Spread over all of them.
    chosen = [samples[i * len(samples) // min(len(samples), options.samples)]
              for i in range(min(len(samples), options.samples))]
    count: collections.Counter[str] = collections.Counter()
    reasons: dict[str, list[str]] = {"wrong": [], "refused": []}
    for sample in chosen:
      try: why, what = compare(function, op, sample, grad), "wrong"
      except NotImplementedError: continue
      except (tinyhw.Error, TypeError) as error: why, what = f"{type(error).__name__}: {error}", "refused"
      except Exception as error: why, what = f"{type(error).__name__}: {error}", "wrong"
      count[what if why else "right"] += 1
      if why:
        shapes = str([tuple(x.shape) if isinstance(x, torch.Tensor) else x for x in (sample.input, *sample.args)])
        reasons[what].append(f"{shapes[:120]} {str(sample.kwargs)[:120]}: {why.splitlines()[0][:200]}")
    total += count
    clean += not count["wrong"] and not count["refused"] and bool(count)
    print(f"{label}: {count['right']} right, {count['wrong']} wrong, {count['refused']} refused", flush=True)
    for what in ("wrong", "refused"):
      shown = reasons[what] if options.verbose else list(dict.fromkeys(reasons[what]))[:2]
      for line in shown: print(f"  {what} {line}")
  print(f"{sum(total.values())} samples: {total['right']} right, {total['wrong']} wrong, {total['refused']} refused; "
        f"{clean} operators without a wrong or refused one; torch {torch.__version__}, "
        f"{time.perf_counter() - began:.0f} s")
  return 0


if __name__ == "__main__": sys.exit(main())
