"""Numbers in the text of AMD GPU instructions: how they are written, and which of them have an inline constant.

Sources: RDNA3 ISA manual, section 4.5 (operands, inline constants); LLVM 19's assembler for each kind of operand
(tests/isa/test_spellings.py).
"""
from __future__ import annotations

import ast
import operator
import re
import struct
from collections.abc import Callable
from functools import cache
from typing import Final

from tinyhw.isa.amdgcn.codes import INLINE_FLOATS
from tinyhw.isa.amdgcn.text import FLOATS16, FLOATS32

INTEGER: Final = r"0[xX][0-9a-fA-F]+|0[bB][01]+|0|[1-9][0-9]*"
NUMBER: Final = rf"({INTEGER})(?!\w)"
FLOAT: Final = re.compile(r"-?[0-9]+(\.[0-9]*([eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)")
WHOLE: Final = re.compile(rf"-?({INTEGER})")
SUM: Final = re.compile(r"(?a)[\w\s()+\-*|&~<>^]+")
OPERATORS: Final[dict[type[ast.operator], Callable[[int, int], int]]] = {
  ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.BitOr: operator.or_,
  ast.BitAnd: operator.and_, ast.BitXor: operator.xor, ast.LShift: lambda a, b: a << (b & 63),
  ast.RShift: lambda a, b: a >> (b & 63)}
FLOATS64: Final = {struct.unpack("<Q", struct.pack("<d", v))[0]: k for k, v in INLINE_FLOATS.items()}


def number(text: str) -> int | None:
  """A whole number: decimal, 0x or 0b, or a sum, shift and the like of some."""
  if WHOLE.fullmatch(text): return int(text, 0)
  if not SUM.fullmatch(text) or not re.search(r"[0-9]", text) or len(text) > 200: return None
  try: return _value(ast.parse(text.strip(), mode="eval").body)
  except (SyntaxError, ValueError, RecursionError): return None


def _value(node: ast.expr) -> int:
  if isinstance(node, ast.Constant) and type(node.value) is int: return node.value
  if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub): return -_value(node.operand)
  if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert): return ~_value(node.operand)
  if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
    found = OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    if abs(found) < 1 << 128: return found
  raise ValueError("no sum of whole numbers")


def fraction(text: str) -> float | None:
  """A number with a point or an exponent."""
  return float(text) if FLOAT.fullmatch(text) else None


def _signed(value: int, bits: int) -> int:
  value &= (1 << bits) - 1
  return value - (1 << bits) if value >> bits - 1 else value


def _small(value: int) -> int | None:
  """The code of a whole number from -16 to 64."""
  return 128 + value if 0 <= value <= 64 else 192 - value if -16 <= value < 0 else None


@cache
def inline(value: int, type_: str) -> int | None:
  """The code of the inline constant that a whole number is to an operand of the type."""
  if type_.endswith("64"):
    if (code := _small(_signed(value, 64) if value >> 63 else value)) is not None: return code
    return FLOATS64.get(value & (1 << 64) - 1)
  if not -1 << 31 <= value < 1 << 32: return None
  if (code := _small(_signed(value, 32))) is not None: return code
  if type_ in {"f16", "v2f16"} and 0 <= value < 1 << 16:
    return FLOATS16.get(value, _small(_signed(value, 16)) if type_ == "f16" else None)
  return FLOATS32.get(value & 0xFFFFFFFF) if type_.endswith("32") and not type_.startswith("v2") else None


def float_bits(value: float, type_: str) -> int | None:
  """The 32 bits that a literal holds for a number with a point; None where the type has none.

  16-bit types have the half, 64-bit ones the upper half of the double, all others a float.
  """
  try:
    if type_ == "f64": return int(struct.unpack("<Q", struct.pack("<d", value))[0]) >> 32
    if type_ in {"f16", "b16", "i16", "v2f16"}: return int(struct.unpack("<H", struct.pack("<e", value))[0])
    if type_ in {"f32", "b32", "i32", ""}: return int(struct.unpack("<I", struct.pack("<f", value))[0])
  except OverflowError: return None
  return None


def float_code(value: float, type_: str) -> int | None:
  """The code of the inline constant that a number with a point is."""
  near = struct.unpack("<f", struct.pack("<f", value))[0] if abs(value) < 3e38 else value
  return next((code for code, v in INLINE_FLOATS.items()
               if v == value or code == 248 and near == struct.unpack("<f", struct.pack("<f", v))[0]), None)
