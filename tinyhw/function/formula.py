"""The formulas of `einsum` and `rearrange`: their parts, and what is wrong with them."""
from __future__ import annotations

import math
import re
from typing import Any

from tinyhw.core.errors import InvalidShape


def _groups(side: str, formula: str) -> list[list[str]]:
  """The axes of one side, each as the names that are joined in it; "(...)" joins what "..." leaves apart."""
  found: list[list[str]] = []
  inside: list[str] | None = None
  for word in re.findall(r"(?a)\.\.\.|[A-Za-z_]\w*|[()1]|\S", side):
    if word == "(" and inside is None: inside = []
    elif word == ")" and inside is not None:
      found.append(inside)
      inside = None
    elif word in ("...", "1") or word.isidentifier():
      if inside is not None: inside.append("(...)" if word == "..." else word)
      else: found.append([] if word == "1" else [word])
    else: raise InvalidShape(f"{word!r} in the formula {formula!r}")
  if inside is not None: raise InvalidShape(f"a parenthesis stays open in {formula!r}")
  return found


def rearranged(x: Any, formula: str, sizes: dict[str, int]) -> Any:
  """`x.rearrange(formula, **sizes)`."""
  if formula.count("->") != 1: raise InvalidShape(f"the formula {formula!r} needs one '->'")
  left, right = (_groups(side, formula) for side in formula.replace("\u2026", "...").split("->"))
  rest = x.ndim - sum(g != ["..."] for g in left)
  if ["..."] in left and rest >= 0:
    at = left.index(["..."])
    left[at:at + 1] = [[f"...{i}"] for i in range(rest)]
    def spread(group: list[str]) -> list[str]:
      return [n for name in group for n in ([f"...{i}" for i in range(rest)] if name == "(...)" else [name])]
    alone = [[f"...{i}"] for i in range(rest)]
    right = [g for group in right for g in (alone if group == ["..."] else [spread(group)])]
  if len(left) != x.ndim: raise InvalidShape(f"{len(left)} axes in {formula!r}, {x.ndim} in shape {x.shape}")
  names, ends = [n for g in left for n in g], [n for g in right for n in g]
  if sorted(names) != sorted(ends) or len(set(names)) != len(names):
    raise InvalidShape(f"both sides of {formula!r} need the same axes, each once")
  if unknown := sizes.keys() - set(names): raise InvalidShape(f"{', '.join(sorted(unknown))}: no axis of {formula!r}")
  known = dict(sizes)
  for group, size in zip(left, x.shape):
    open_ = [n for n in group if n not in known]
    product = math.prod(known[n] for n in group if n in known)
    if len(open_) == 1 and product and size % product == 0: known[open_[0]] = size // product
    elif open_ or product != size:
      raise InvalidShape(f"axis ({' '.join(group)}) of {formula!r} has {size} elements",
                         hint="give its sizes as keywords")
  parts = x.reshape([known[n] for n in names]).permute([names.index(n) for n in ends])
  return parts.reshape([math.prod(known[n] for n in g) for g in right])


def einsum_parts(formula: str, shapes: list[tuple[int, ...]]) -> tuple[list[list[str]], list[str]]:
  """The letters of each operand's axes and of the result's. `...` stands for axes that broadcast, named "0", "1",
  ..."""
  text = formula.replace(" ", "").replace("...", ".")
  inputs, arrow, output = text.partition("->")
  terms = inputs.split(",")
  if len(terms) != len(shapes):
    raise InvalidShape(f"einsum {formula!r} has {len(terms)} terms for {len(shapes)} tensors")
  rests = [len(s) - len(t.replace(".", "")) for t, s in zip(terms, shapes)]
  wide = max([r for t, r in zip(terms, rests) if "." in t], default=0)
  if any(r < 0 or r and "." not in t for t, r in zip(terms, rests)) or any(not c.isalpha() and c != "." for c in
                                                                          "".join(terms) + output):
    raise InvalidShape(f"einsum {formula!r} of shapes {', '.join(map(str, shapes))}")
  def letters(term: str, rest: int) -> list[str]:
    before, dots, after = term.partition(".")
    return [*before, *([str(i) for i in range(wide - rest, wide)] if dots else []), *after]
  found = [letters(t, r) for t, r in zip(terms, rests)]
  used = [c for t in found for c in t]
  if arrow: result = letters(output, wide)
  else: result = [str(i) for i in range(wide)] + sorted(c for c in set(used) if used.count(c) == 1 and c.isalpha())
  if len(set(result)) != len(result) or not set(result) <= set(used):
    raise InvalidShape(f"einsum {formula!r}: the result's axes must be axes of the terms, each once")
  return found, result
