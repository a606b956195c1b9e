"""What LLVM makes of target intrinsics with constant arguments: its own folding, a witness that runs no GPU code."""
from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tinyhw.tools.fuzz.build import optimized_for
from tinyhw.tools.fuzz.case import STORED, Array, Case, split, stored, width

ROWS = 128  # lanes of a case that are folded
_LANES = re.compile("permute|permlane|lane|dpp|swizzle|ballot|mbcnt|wave|quad")  # a constant is the same in all lanes


def _bits(kind: str) -> int:
  count, scalar = split(kind)
  return count * (1 if scalar == "i1" else 8 * np.dtype(STORED[scalar]).itemsize)


def constant(kind: str, value: Array) -> str:
  """A stored value as a constant expression of its type."""
  bits = _bits(kind)
  number = int.from_bytes(np.ascontiguousarray(value).tobytes(), "little") & (1 << bits) - 1
  return f"bitcast (i{bits} {number} to {kind})"


def _function(case: Case, row: int, arrays: Sequence[Array]) -> str:
  """A function without parameters that gives the case's result for one lane as an integer."""
  [kind] = case.outputs
  body = case.body
  for k, (source, array) in enumerate(zip(case.inputs, arrays)):
    body = re.sub(rf"%{chr(97 + k)}\b", constant(source, array[row]), body)
  bits = _bits(kind)
  return f"define i{bits} @f{row}() {{\n  {body}\n  %o = bitcast {kind} %r to i{bits}\n  ret i{bits} %o\n}}\n"


def folds(case: Case) -> bool:
  """Whether a case is one call without effects and without regard to the lane, which LLVM might fold."""
  return (len(case.outputs) == 1 and not case.inplace and "\n" not in case.body.strip() and "%i" not in case.body
          and "%p" not in case.body and case.gpu is None and not _LANES.search(case.body)
          and width(case.outputs[0]) == split(case.outputs[0])[0])


def folded(case: Case, arrays: Sequence[Array], cpu: str) -> dict[int, Array]:
  """The result by lane, as stored, of those of the first lanes for which LLVM knows it."""
  text = case.declarations + "\n" + "\n".join(_function(case, k, arrays) for k in range(min(ROWS, case.lanes)))
  [kind] = case.outputs
  out: dict[int, Array] = {}
  for found in re.finditer(r"define [^\n]*@f(\d+)\(\)[^\n]*\{\n(.*?)\n\}", str(optimized_for(text, cpu)), re.S):
    result = re.search(r"^\s*ret i\d+ (-?\d+|true|false)$", found[2])  # nothing but the constant
    if result is None: continue
    value = {"true": 1, "false": 0}.get(result[1])
    number = (int(result[1]) if value is None else value) & (1 << _bits(kind)) - 1
    size = -(-_bits(kind) // 8)
    out[int(found[1])] = np.frombuffer(number.to_bytes(size, "little"), stored(kind))
  return out
