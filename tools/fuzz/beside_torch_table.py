"""What programs of `beside_torch` are made of: statements by kind, drawn for a variable as it is.

Those in EXACT_ONLY have steps, where a last bit decides: they follow values that both libraries have exactly. Keywords
are those that both take.
"""
from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Line:
  """A statement or expression; whether its value is exact, and a view."""
  text: str
  exact: bool
  view: bool = False


@dataclass(frozen=True)
class Draw:
  """The variable that a statement is about, and all that there are: (name, value, exact)."""
  rng: random.Random
  name: str
  x: Any
  exact: bool
  others: list[tuple[str, Any, bool]]

  def axis(self) -> int:
    """One of the axes, counted from either end."""
    n = self.x.ndim
    return self.rng.randrange(-n, n) if n else self.rng.choice((0, -1))

  def number(self) -> float | int:
    """A number of the kind of the variable."""
    floats = self.x.is_floating_point() or self.rng.random() < 0.15
    if floats: return self.rng.choice((0.5, -1.5, 2.0, 0.25))
    return self.rng.choice((1, 2, 3, -1)[:3 + self.x.dtype.is_signed])

  def other(self, same: bool = False, floats: bool = False) -> tuple[str, Any, bool] | None:
    """Another variable that broadcasts with this one (or has its shape)."""
    found = []
    for name, y, exact in self.others:
      if floats and not y.is_floating_point(): continue
      if same and y.shape != self.x.shape: continue
      try: torch.broadcast_shapes(self.x.shape, y.shape)
      except RuntimeError: continue
      found.append((name, y, exact))
    return self.rng.choice(found) if found else None

  def index(self) -> tuple[str, bool]:
    """What is written in brackets, and whether that gives a view."""
    parts, view = [], True
    for size in self.x.shape[:self.rng.randrange(0, self.x.ndim + 1)]:
      kind = self.rng.randrange(8)
      if kind == 0 and size: parts.append(str(self.rng.randrange(-size, size)))
      elif kind == 1: parts.append(f"{self.rng.randrange(0, size + 1)}:")
      elif kind == 2: parts.append(f":{self.rng.randrange(-size, size + 1)}")
      elif kind == 3: parts.append("::2")
      elif kind == 4: parts.append("None, :")
      elif kind == 5 and size and view:
        # Of values for one place PyTorch derives by all, ours by the one that stays.
        places = self.rng.sample(range(size), self.rng.randrange(1, size + 1))
        parts.append(f"T.tensor({[p - size * self.rng.randrange(2) for p in places]})")
        view = False
      else: parts.append(":")
    if self.rng.random() < 0.2: parts.append("...")
    return ", ".join(parts) or "...", view


Maker = Callable[[Draw], "Line | None"]

ONE_EXACT = (".abs()", ".neg()", ".relu()", ".square()", ".clamp(-1, 1)", ".clamp(min=0)", ".clip(max=1)", ".float()",
             ".half()", ".double()", ".int()", ".bool()", ".bfloat16()", ".clone()", ".positive()",
             ".hardtanh()" , ".relu6()", ".leaky_relu(0.25)", ".softshrink(0.5)", ".isnan()", ".isfinite()",
             ".nan_to_num()")
STEPS = (".floor()", ".ceil()", ".round()", ".trunc()", ".sign()", ".frac()", ".isinf()", ".signbit()", ".long()",
         ".round(decimals=1)", ".unique()", ".nonzero()", ".logical_not()", ".heaviside(T.tensor(0.5))",
         ".threshold(0.5, 2)", ".hardshrink(0.5)")
ONE = (".exp()", ".log()", ".sqrt()", ".rsqrt()", ".reciprocal()", ".sigmoid()", ".tanh()", ".sin()", ".cos()",
       ".erf()", ".exp2()", ".expm1()", ".log1p()", ".log2()", ".log10()", ".sinh()", ".cosh()", ".asinh()", ".atan()",
       ".silu()",
       ".gelu()", ".softplus()", ".mish()", ".elu()", ".selu()", ".celu(0.5)", ".logsigmoid()", ".softsign()",
       ".hardswish()", ".hardsigmoid()", ".tanhshrink()", ".erfc()", ".tan()", ".sinc()", ".lgamma()", ".digamma()")
FUNCTIONAL = {"hardtanh", "relu6", "leaky_relu", "threshold", "softshrink", "hardshrink", "silu", "gelu", "softplus",
              "mish", "elu", "selu", "celu", "logsigmoid", "softsign", "hardswish", "hardsigmoid", "tanhshrink"}
BINARY_EXACT = ("+", "-", "*", "<", ">", "==", "!=", "<=", ">=")
NAMED_EXACT = ("add", "sub", "mul", "maximum", "minimum", "fmax", "fmin", "rsub")
NAMED_INEXACT = ("pow", "atan2", "xlogy")
NAMED_STEPS = ("copysign", "eq", "lt", "ge", "fmod", "remainder", "floor_divide")
NAMED = ("div", "true_divide", "hypot", "logaddexp", "logaddexp2")
REDUCE_EXACT = ("sum", "amax", "amin", "any", "all", "count_nonzero", "nansum")
REDUCE = ("mean", "var", "std", "prod", "logsumexp", "norm", "softmax", "log_softmax", "cumsum", "cumprod",
          "logcumsumexp", "nanmean")
PICKS = ("max", "min", "argmax", "argmin", "sort", "argsort", "cummax", "cummin", "median", "topk", "kthvalue", "mode")
IN_PLACE = ("add_", "sub_", "mul_", "relu_", "neg_", "abs_", "zero_", "fill_", "clamp_", "copy_", "masked_fill_",
            "square_", "addcmul_", "lerp_", "exp_", "tanh_", "sigmoid_", "index_add_", "scatter_", "index_fill_",
            "tril_", "t_", "clamp_min_", "cumsum_", "index_copy_", "transpose_", "unsqueeze_")

MOVES = ("reshape", "view", "permute", "transpose", "flip", "roll", "squeeze", "unsqueeze", "expand", "repeat",
         "flatten", "unflatten", "pad", "pads", "narrow", "chunk", "split", "diagonal", "tril", "movedim",
         "repeat_interleave", "unfold", "rot90", "index", "index", "index", "select", "swapaxes", "tile",
         "diag_embed", "unbind", "T", "detach", "diff", "fliplr", "tensor_split")


def _function(text: str) -> tuple[str, str]:
  """A method's name and what is in its parentheses."""
  name, _, rest = text[1:].partition("(")
  return name, rest[:-1]


def _one(names: tuple[str, ...], keeps: bool, steps: bool) -> Maker:
  def make(d: Draw) -> Line | None:
    if steps and not d.exact: return None
    text = d.rng.choice(names)
    name, rest = _function(text)
    if name in FUNCTIONAL and not d.x.is_floating_point(): return None
    if name in FUNCTIONAL: return Line(f"F.{name}({d.name}{', ' * bool(rest)}{rest})", d.exact and keeps)
    same = {".float()": torch.float32, ".half()": torch.float16, ".double()": torch.float64, ".int()": torch.int32,
            ".bool()": torch.bool, ".bfloat16()": torch.bfloat16, ".long()": torch.int64}.get(text)
    if name in ("int", "long", "bool") and not d.exact or same is d.x.dtype: return None
    if name in ("int", "long") and not bool(torch.isfinite(d.x.detach()).all()): return None    # C does not say
    if name in ("lgamma", "digamma", "tan") and not d.exact: return None                        # there are poles
    if name in ("int", "long") and d.x.dtype in (torch.int32, torch.int64): return None    # ours are int32 all along
    if name in ("relu", "square", "positive") and d.x.dtype is torch.bool: return None
    if "-" in rest and d.x.dtype is torch.uint8: return None
    return Line(f"{d.name}{text}", d.exact and keeps)
  return make


def _operator(d: Draw) -> Line | None:
  op = d.rng.choice(BINARY_EXACT)
  if d.rng.random() < 0.4:
    n = d.number()
    left = d.rng.random() < 0.5
    if op not in "+-*" and not d.exact: return None
    return Line(f"{n} {op} {d.name}" if left else f"{d.name} {op} {n}", d.exact)
  if (o := d.other()) is None or op not in "+-*" and not (d.exact and o[2]): return None
  return Line(f"{d.name} {op} {o[0]}", d.exact and o[2])


def _named(names: tuple[str, ...], keeps: bool, steps: bool) -> Maker:
  def make(d: Draw) -> Line | None:
    if (o := d.other()) is None: return None
    if steps and not (d.exact and o[2]): return None
    name, more = d.rng.choice(names), ""
    if name in ("add", "sub") and d.rng.random() < 0.4: more = f", alpha={d.rng.choice((2, -1))}"
    if name == "div" and d.exact and o[2] and d.rng.random() < 0.5:
      more = f", rounding_mode={d.rng.choice(('floor', 'trunc'))!r}"
    if name == "rsub": return Line(f"T.rsub({d.name}, {o[0]})", d.exact and o[2] and keeps)
    if name in ("fmod", "remainder", "floor_divide") and bool((o[1] == 0).any()): return None
    return Line(f"{d.name}.{name}({o[0]}{more})", d.exact and o[2] and keeps)
  return make


def _reduced(d: Draw) -> Line | None:
  if d.x.dtype in (torch.uint8, torch.int8): return None
  exact = d.rng.random() < 0.5
  name = d.rng.choice(REDUCE_EXACT if exact else REDUCE)
  if name in ("any", "all", "count_nonzero") and not d.exact: return None
  if name in ("softmax", "log_softmax") and not d.x.is_floating_point(): return None
  ends = d.exact and exact and name != "nansum" or name in ("any", "all", "count_nonzero")
  if name in ("softmax", "log_softmax", "cumsum", "cumprod", "logcumsumexp", "logsumexp"):
    return Line(f"{d.name}.{name}(dim={d.axis()})", name == "cumsum" and d.exact)
  kind = d.rng.randrange(4)
  if kind == 0: return Line(f"{d.name}.{name}()", ends) if name not in ("logsumexp",) else None
  axis: Any = d.axis()
  if kind == 1 and d.x.ndim > 1 and name not in ("prod", "any", "all"): axis = tuple(d.rng.sample(range(d.x.ndim), 2))
  more = "" if name == "count_nonzero" else d.rng.choice(("", ", keepdim=True"))
  if name in ("var", "std") and d.rng.random() < 0.5: more += ", correction=0"
  if name == "norm": more += d.rng.choice((", p=1", ", p=2", ", p=float('inf')".replace("float('inf')", "inf")))
  return Line(f"{d.name}.{name}(dim={axis}{more})", ends)


def _picked(d: Draw) -> Line | None:
  if not d.exact or d.x.dtype is torch.bool: return None
  name, axis = d.rng.choice(PICKS), d.axis()
  if name in ("argmax", "argmin"): return Line(f"{d.name}.{name}(dim={axis}, keepdim={d.rng.random() < 0.5})", True)
  if name in ("max", "min"):
    if d.rng.random() < 0.4: return Line(f"{d.name}.{name}()", True)
    # Tensor's have the value alone; both have it under this name.
    return Line(f"T.a{name}({d.name}, {axis})", True)
  if name == "sort":
    order = f"dim={axis}, descending={d.rng.random() < 0.5}, stable=True"
    return Line(f"{d.name}.sort({order})[{d.rng.randrange(2)}]", True)
  if name == "argsort": return Line(f"{d.name}.argsort(dim={axis}, stable=True)", True)
  if name in ("cummax", "cummin"): return Line(f"{d.name}.{name}(dim={axis})[0]", True)
  size = d.x.shape[axis] if d.x.ndim else 1
  if name == "topk": return Line(f"{d.name}.topk({d.rng.randrange(0, size + 1)}, dim={axis})[0].detach()", True)
  if name == "kthvalue" and size:
    return Line(f"{d.name}.kthvalue({d.rng.randrange(1, size + 1)}, dim={axis})[0].detach()", True)
  # Of equal ones PyTorch takes any as the middle one.
  return Line(f"{d.name}.{name}(dim={axis})[0].detach()", True) if d.rng.random() < 0.5 else \
    Line(f"{d.name}.{'median' if name == 'mode' else name}()", True) if name != "kthvalue" else None


def _moved(d: Draw) -> Line | None:
  rng, n, shape = d.rng, d.x.ndim, list(d.x.shape)
  def line(text: str, view: bool = False) -> Line: return Line(f"{d.name}{text}", d.exact, view)
  kind = rng.choice(MOVES)
  if kind in ("reshape", "view"):
    size = d.x.numel()
    new = rng.choice([[size], [-1] if size else [0], [1, size], [*shape, 1], shape[::-1],
                      [2, size // 2] if size % 2 == 0 else [size, 1]])
    return line(f".{kind}({', '.join(map(str, new))})", True)
  if kind == "permute": return line(f".permute({rng.sample(range(n), n)})", True)
  if kind in ("transpose", "swapaxes"): return line(f".{kind}({d.axis()}, {d.axis()})", True)
  if kind == "flip": return line(f".flip({rng.sample(range(n), rng.randrange(0, n + 1))})")
  if kind == "roll": return line(f".roll({rng.randrange(-3, 4)}, {d.axis()})") if n else None
  if kind == "squeeze": return line(rng.choice((".squeeze()", f".squeeze({d.axis()})")), True)
  if kind == "unsqueeze": return line(f".unsqueeze({rng.randrange(-n - 1, n + 1)})", True)
  if kind == "expand": return line(f".expand(2, {', '.join(['-1'] * n)})" if n else ".expand(3)")
  if kind in ("repeat", "tile"):
    return line(f".{kind}({', '.join(str(rng.randrange(1, 3)) for _ in range(max(n, 1)))})")
  if kind == "flatten":
    a = rng.randrange(0, max(n, 1))
    return line(f".flatten({a}, {rng.randrange(a, max(n, 1))})", True)
  if kind == "unflatten": return line(f".unflatten({d.axis()}, (-1, 1))", True)
  if kind == "pad":
    both = [rng.randrange(-1, 3) for _ in range(2 * rng.randrange(0, n + 1))]
    return Line(f"F.pad({d.name}, {both}, value={rng.choice((0, 1, 2))})", d.exact)
  if kind == "pads":
    if not d.x.is_floating_point() or n < 2: return None
    return Line(f"F.pad({d.name}, {[rng.randrange(0, 2) for _ in range(2)]}, mode="
                f"{rng.choice(('reflect', 'replicate', 'circular'))!r})", d.exact)
  if kind == "narrow":
    axis = d.axis()
    size = shape[axis] if n else 1
    start = rng.randrange(0, size + 1)
    return line(f".narrow({axis}, {start}, {rng.randrange(0, size - start + 1)})", True)
  if kind == "chunk": return line(f".chunk({rng.randrange(1, 4)}, dim={d.axis()})[-1]", True)
  if kind == "tensor_split": return line(f".tensor_split({rng.randrange(1, 4)}, dim={d.axis()})[-1]", True)
  if kind == "split": return line(f".split({rng.randrange(1, 4)}, dim={d.axis()})[0]", True)
  if kind == "diagonal": return line(f".diagonal({rng.randrange(-1, 2)})", True)
  if kind == "tril": return line(f".{rng.choice(('tril', 'triu'))}({rng.randrange(-1, 2)})")
  if kind == "movedim": return line(f".movedim({d.axis()}, {d.axis()})", True)
  if kind == "repeat_interleave": return line(f".repeat_interleave({rng.randrange(1, 3)}, dim={d.axis()})")
  if kind == "unfold": return line(f".unfold({d.axis()}, {rng.randrange(1, 3)}, {rng.randrange(1, 3)})")
  if kind == "rot90": return line(f".rot90({rng.randrange(-2, 4)}, [0, 1])")
  if kind == "index":
    text, view = d.index()
    return line(f"[{text}]", view)
  if kind == "select" and n and 0 not in shape: return line(f".select({d.axis()}, 0)", True)
  if kind == "diag_embed": return line(f".diag_embed({rng.randrange(-1, 2)})")
  if kind == "unbind": return line(f".unbind({d.axis()})[-1]", True)
  if kind == "T": return line(".mT", True) if n >= 2 else None
  if kind == "detach": return line(".detach()", True)
  if kind == "diff": return line(f".diff(dim={d.axis()})")
  if kind == "fliplr": return line(rng.choice((".fliplr()", ".flipud()")))
  return None


def _together(d: Draw) -> Line | None:
  rng, kind = d.rng, d.rng.randrange(9)
  if kind == 0:
    if (o := d.other(same=True)) is None: return None
    return Line(f"T.{rng.choice(('cat', 'stack'))}([{d.name}, {o[0]}], dim={d.axis()})", d.exact and o[2])
  if kind == 1:
    if (o := d.other()) is None or not (d.exact and o[2]): return None
    return Line(f"where({d.name} > {o[0]}, {d.name}, {rng.choice((o[0], '0', '1.5'))})", True)
  if kind == 2:
    if (o := d.other()) is None or not d.exact: return None
    return Line(f"{d.name}.masked_fill({d.name} > 0, {rng.choice((0, 1))})", True)
  if kind == 3 and d.x.is_floating_point():
    fits = [(n, y, e) for n, y, e in d.others if y.dtype is d.x.dtype]
    o = rng.choice(fits)
    return Line(f"{d.name} @ {o[0]}" if rng.random() < 0.5 else f"{d.name}.matmul({o[0]}.mT)", False)
  if kind == 4:
    if d.x.ndim != 2 or not d.x.is_floating_point(): return None
    return Line(rng.choice((f"T.einsum('ij,kj->ik', {d.name}, {d.name})", f"T.einsum('ij->j', {d.name})",
                            f"T.einsum('ij,ij->i', {d.name}, {d.name})", f"T.outer({d.name}[0], {d.name}[-1])")), False)
  if kind == 5:
    if not d.x.ndim or 0 in d.x.shape: return None
    axis = rng.randrange(d.x.ndim)
    size = d.x.shape[axis]
    at = [rng.randrange(0, size) for _ in range(rng.randrange(1, 4))]
    index = f"T.tensor({at}).long()"
    return Line(rng.choice((f"{d.name}.index_select({axis}, {index})", f"{d.name}.take({index} % {d.x.numel()})",
                            f"{d.name}.gather({axis}, ({d.name} * 0).long())",
                            f"{d.name}.index_add({axis}, {index}, {d.name}.index_select({axis}, {index}))",
                            f"{d.name}.scatter_add({axis}, ({d.name} * 0).long(), {d.name})",
                            f"{d.name}.index_fill({axis}, {index}, 1)",
                            f"{d.name}.scatter_reduce({axis}, ({d.name} * 0).long(), {d.name}, "
                            f"reduce={rng.choice(('sum', 'amax', 'mean'))!r})")),
                d.exact and d.x.dtype is not torch.bool)
  if kind == 6 and d.x.is_floating_point():
    if (o := d.other(same=True, floats=True)) is None: return None
    how = rng.choice(("mean", "sum", "none"))
    return Line(f"F.{rng.choice(('mse_loss', 'l1_loss', 'smooth_l1_loss', 'huber_loss'))}({d.name}, {o[0]}, "
                f"reduction={how!r})", False)
  if kind == 7 and d.x.is_floating_point() and d.x.ndim in (3, 4) and 0 not in d.x.shape:
    n = d.x.ndim - 2
    return Line(rng.choice((f"F.max_pool{n}d({d.name}, 2, stride=1, padding=1)",
                            f"F.avg_pool{n}d({d.name}, 2, padding=1, count_include_pad=False)",
                            f"F.interpolate({d.name}, scale_factor=2, mode='nearest')",
                            f"F.adaptive_avg_pool{n}d({d.name}, 2)")), False)
  if kind == 8 and d.x.is_floating_point() and d.x.ndim and d.x.shape[-1]:
    return Line(rng.choice((f"F.layer_norm({d.name}, ({d.x.shape[-1]},))", f"F.normalize({d.name}, dim=-1)",
                            f"F.glu(T.cat([{d.name}, {d.name}], dim=-1))", f"{d.name}.lerp({d.name} * 2, 0.25)",
                            f"{d.name}.addcmul({d.name}, {d.name}, value=0.5)",
                            f"{d.name}.cumsum(-1).flip(-1)")), False)
  return None


def _changed(d: Draw) -> Line | None:
  if d.x.dtype in (torch.uint8, torch.int8): return None
  rng, name = d.rng, d.name
  kind = rng.randrange(6)
  if kind == 0:                         # x op= y
    op, o = rng.choice(("+=", "-=", "*=")), d.other()
    if o is None or rng.random() < 0.4: return Line(f"{name} {op} {rng.choice((1, 2))}", d.exact)
    return Line(f"{name} {op} {o[0]}", d.exact and o[2])
  if kind in (1, 2):                    # x[...] = y
    index, _ = d.index()
    if rng.random() < 0.3 and d.exact: index = f"{name} > 0"
    op = rng.choice(("=", "=", "+=", "*="))
    if rng.random() < 0.5: return Line(f"{name}[{index}] {op} {rng.choice((0, 1, 2))}", d.exact)
    o = rng.choice(d.others)
    return Line(f"{name}[{index}] {op} {o[0]}", d.exact and o[2])
  method = rng.choice(IN_PLACE)
  o = d.other()
  axis = d.axis()
  size = d.x.shape[axis] if d.x.ndim else 1
  at = [rng.randrange(size) for _ in range(1)] if size else []
  arguments = {
    "add_": [o[0] if o else "1"], "sub_": ["1"], "mul_": [o[0] if o else "2"], "fill_": ["2"], "clamp_": ["-1", "1"],
    "copy_": [o[0] if o else "1"], "masked_fill_": [f"{name} > 0", "1"],
    "addcmul_": [name, name], "lerp_": [f"{name} * 2", "0.5"], "clamp_min_": ["0"], "cumsum_": [str(axis)],
    "index_add_": [str(axis), f"T.tensor({at}).long()", f"{name}.narrow({axis}, 0, 1)"],
    "index_copy_": [str(axis), f"T.tensor({at}).long()", f"{name}.narrow({axis}, 0, 1) + 0"],
    "scatter_": [str(axis), f"({name} * 0).long()", "1"], "index_fill_": [str(axis), f"T.tensor({at}).long()", "1"],
    "transpose_": [str(axis), "0"], "unsqueeze_": ["0"]}.get(method, [])
  if method == "masked_fill_" and not d.exact: return None
  if method == "index_add_" and at: arguments[2] += " * 2"
  if method in ("scatter_", "index_add_", "index_copy_", "index_fill_") and not (d.x.ndim and d.x.numel()): return None
  exact = d.exact and method not in ("exp_", "tanh_", "sigmoid_") and (o is None or o[2])
  text = f"{name}.{method}({', '.join(arguments)})"
  within = rng.random()
  if within < 0.15: text = f"{name}.detach().{method}({', '.join(arguments)})"
  elif within < 0.3: text = f"with no_grad(): {text}"
  if method in ("t_", "transpose_", "unsqueeze_") and within < 0.3: return None
  return Line(text, exact)


_NEW: list[Maker] = [_one(ONE_EXACT, True, False), _one(STEPS, True, True), _one(ONE, False, False), _operator,
                     _named(NAMED_EXACT, True, False), _named(NAMED_STEPS, True, True), _named(NAMED, False, False),
                     _named(NAMED_INEXACT, False, True),
                     _reduced, _reduced, _picked, _moved, _moved, _moved, _together, _together]


def lines(kind: str) -> list[Maker]:
  """What makes statements of a kind."""
  return _NEW if kind == "new" else [_changed]
