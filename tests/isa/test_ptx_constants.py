"""Constant expressions of PTX: against an evaluation in Python, and against what ptxas puts into memory."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.isa.ptx_samples import PTXAS
from tests.isa.test_ptx_grammar import HEAD, item
from tests.strength import examples
from tinyhw.isa.ptx import PtxSyntaxError, text
from tinyhw.isa.ptx.model import Int, Module

MASK = (1 << 64) - 1
LEVELS = [
  ["||"],
  ["&&"],
  ["|"],
  ["^"],
  ["&"],
  ["==", "!="],
  ["<", "<=", ">", ">="],
  ["<<", ">>"],
  ["+", "-"],
  ["*", "/", "%"],
]
NUMBERS = st.sampled_from(
  [0, 1, 2, 3, 7, 31, 63, 64, 100, (1 << 31) - 1, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, MASK]
)
Tree = Any  # (text of a number, ) or (operator, trees)
TREES = st.recursive(
  st.tuples(NUMBERS, st.sampled_from(["", "U"]), st.sampled_from(["d", "x", "o", "b"])),
  lambda inner: st.one_of(
    st.tuples(st.sampled_from([*"-+~!", "(.s64)", "(.u64)"]), inner),
    st.tuples(st.sampled_from([o for level in LEVELS for o in level]), inner, inner),
    st.tuples(st.just("?"), inner, inner, inner),
  ),
  max_leaves=8,
)


def written(tree: Tree, within: int = -1) -> str:
  """The text, with no more parentheses than it needs."""
  if isinstance(tree[0], int):
    prefix, form = {"d": ("", "d"), "x": ("0x", "x"), "o": ("0", "o"), "b": ("0b", "b")}[tree[2]]
    return f"{prefix}{tree[0]:{form}}{tree[1]}"
  if len(tree) == 2:
    return f"{tree[0]} {written(tree[1], 10)}"
  if len(tree) == 4:
    out = f"{written(tree[1], 0)} ? {written(tree[2], -1)} : {written(tree[3], -1)}"
    return f"({out})" if within >= 0 else out
  own = next(k for k, level in enumerate(LEVELS) if tree[0] in level)
  out = f"{written(tree[1], own)} {tree[0]} {written(tree[2], own + 1)}"
  return f"({out})" if own < within else out


def signed(x: int) -> int:
  return (x + (1 << 63) & MASK) - (1 << 63)


def worth(tree: Tree) -> tuple[int, bool]:
  """(64 bits, whether they have no sign). Raises ZeroDivisionError."""
  if isinstance(tree[0], int):
    return tree[0], tree[1] == "U" or tree[0] > MASK >> 1
  name = tree[0]
  a, u = worth(tree[1])
  if len(tree) == 2:
    return {
      "-": (-a & MASK, u),
      "+": (a, u),
      "~": (a ^ MASK, True),
      "!": (int(a == 0), False),
      "(.s64)": (a, False),
      "(.u64)": (a, True),
    }[name]
  b, v = worth(tree[2])
  if name == "?":
    other = worth(tree[3])
    return (b, v) if a else other
  if name in {"<<", ">>"}:
    n = b & 63
    return ((a << n if name == "<<" else (a if u else signed(a)) >> n) & MASK, u)
  if name in {"||", "&&"}:
    return int(bool(a) or bool(b) if name == "||" else bool(a) and bool(b)), False
  if name == "%":
    return a % b, True
  w = u or v
  x, y = (a, b) if w else (signed(a), signed(b))
  if name in {"==", "!=", "<", "<=", ">", ">="}:
    return int({"==": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[name]), False
  if name == "/":
    return (abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)) & MASK, w
  return {"|": x | y, "^": x ^ y, "&": x & y, "+": x + y, "-": x - y, "*": x * y}[name] & MASK, w


@settings(max_examples=examples(300), deadline=None)
@given(TREES)
def test_constant_expressions(tree: Tree) -> None:
  source = written(tree)
  try:
    bits, unsigned = worth(tree)
  except ZeroDivisionError:
    with pytest.raises(PtxSyntaxError, match="a divisor other than 0"):
      item(f".global .u64 x = {source};")
    return
  found = item(f".global .u64 x = {source};")
  assert found.initializer == Int(bits if unsigned else signed(bits), unsigned), source
  assert item(text(Module((8, 5), ("sm_90",), 64, (found,))).partition("64")[2]) == found or bits == 1 << 63


# expression, the 64 bits that ptxas of CUDA 13 puts into memory
PTXAS_SAYS = [
  ("-1 / 2U", 0x7FFFFFFFFFFFFFFF),
  ("(0-1) > 1U", 1),
  ("-8U >> 1", 0x7FFFFFFFFFFFFFFC),
  ("~0 / 2", 0x7FFFFFFFFFFFFFFF),
  ("-7 % 3", 0),
  ("(-7 % 3 - 3) / 2", 0x7FFFFFFFFFFFFFFE),
  ("1 << 65", 2),
  ("-7 / 2", -3),
  ("0x7fffffffffffffff / 3", 3074457345618258602),
  ("(.u64)-1 / 2", 0x7FFFFFFFFFFFFFFF),
  ("(.s64)0xffffffffffffffff / 2", 0),
  ("(-1 & -1) / 2", 0),
  ("-1 >> 64", -1),
  ("1<<63>>63", -1),
  ("(0 ? 2U : -1) / 2", 0),
  ("((1 < 2U) - 2) / 2", 0),
  ("(-1 << 1U) / 2", -1),
  ("9223372036854775807 + 1 > 0", 0),
  ("-9223372036854775808 / 2", 1 << 62),
  ("WARP_SZ * 2", 64),
  ("1 | 2 ^ 3 & 4", 3),
  ("3 - 2 - 1", 0),
  ("0 ? 2 : 0 ? 3 : 4", 4),
]


def test_constant_expressions_are_ptxas_ones(tmp_path: Path) -> None:
  for source, wanted in PTXAS_SAYS:
    assert item(f".global .u64 x = {source};").initializer.value & MASK == wanted & MASK, source
  if PTXAS is None:
    return
  lines = "".join(
    f".visible .const .u64 x{k} = ({source}) == {wanted} ? 77 : 55;\n" for k, (source, wanted) in enumerate(PTXAS_SAYS)
  )
  (tmp_path / "a.ptx").write_text(HEAD + lines)
  subprocess.run([PTXAS, "-arch=sm_90", str(tmp_path / "a.ptx"), "-o", str(tmp_path / "a.cubin")], check=True)
  data = (tmp_path / "a.cubin").read_bytes()
  assert data.count((77).to_bytes(8, "little")) >= len(PTXAS_SAYS) and not data.count((55).to_bytes(8, "little") * 2)
