"""Types of a kernel's parameters as its source has them: what metadata, debug information or the code say of them."""
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class CType:
  """A type of the source.

  `kind` is "b", "i", "u", "f", "c" (bool, signed, unsigned, float, complex), "*" for a pointer, "v" for a vector of
  `count` elements of type `of`, "s" for a structure or anything else. "n" is an integer whose sign is not known.
  `size` is in bytes; `of` is a pointer's target, None where that is void or not known.
  """
  name: str
  kind: str
  size: int
  of: CType | None = None
  count: int = 1

  @property
  def number(self) -> bool:
    """Whether NumPy has numbers of this type."""
    return self.kind in "biufcn" and not self.bfloat

  @property
  def bfloat(self) -> bool:
    """Whether it is a bfloat16, which NumPy has not: its bits travel as uint16."""
    return self.kind == "f" and self.size == 2 and "bf" in self.name.lower()


_OPENCL: Final = {
  "bool": ("b", 1), "char": ("i", 1), "short": ("i", 2), "int": ("i", 4), "long": ("i", 8), "uchar": ("u", 1),
  "ushort": ("u", 2), "uint": ("u", 4), "ulong": ("u", 8), "size_t": ("u", 8), "ptrdiff_t": ("i", 8),
  "unsigned char": ("u", 1), "unsigned short": ("u", 2), "unsigned int": ("u", 4), "unsigned long": ("u", 8),
  "half": ("f", 2), "float": ("f", 4), "double": ("f", 8), "_Float16": ("f", 2), "__half": ("f", 2),
  "__bf16": ("f", 2)}
_VALUE_TYPE: Final = re.compile(r"([iuf])(8|16|32|64)")


def named(name: str) -> CType | None:
  """The type that an OpenCL name means; None for a name that is the program's own. Other sources use the same names.

  Sizes: OpenCL C 3.0, sections 6.3.1 and 6.3.2.
  """
  name = re.sub(r"\b(const|volatile|restrict|__global|__constant|__local)\b", "", name).strip()
  if name.endswith("*"):
    target = name[:-1].strip()
    return CType(name, "*", 8, None if target == "void" else named(target))
  if name in _OPENCL: return CType(name, *_OPENCL[name])
  vector = re.fullmatch(r"([a-z]+)(2|3|4|8|16)", name)
  if vector is None or vector[1] not in _OPENCL: return None
  of, count = CType(vector[1], *_OPENCL[vector[1]]), int(vector[2])
  return CType(name, "v", of.size * (4 if count == 3 else count), of, count)


def of_value_type(name: str) -> CType | None:
  """A `.value_type` of older metadata ("i32", "f16"); None for "struct" and the like."""
  m = _VALUE_TYPE.fullmatch(name)
  return None if m is None else CType(f"{ {'i': 'int', 'u': 'uint', 'f': 'float'}[m[1]] }{m[2]}", m[1], int(m[2]) // 8)
