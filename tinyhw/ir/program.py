"""Linear programs as text and back: one JSON array a line, `[op, dtype, [sources by line], arg]`.

Safe to read from anywhere: it names ops, types and numbers and nothing that runs.
"""
from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from tinyhw.core.errors import DecodeError
from tinyhw.ir.dtype import AddressSpace, DType, PtrDType, dtypes
from tinyhw.ir.ops import Ops
from tinyhw.ir.uop import Axis, RangeArg, SpecialArg, UOp, VariableArg

_TYPE = re.compile(r"(?a)(\w+?)(?:x(\d+))?(?:\*(\w+):(-?\d+))?")


def dump(uops: Sequence[UOp]) -> str:
  """The text of a program whose sources all stand before their users."""
  number = {u: i for i, u in enumerate(uops)}
  rows = ([u.op.name, _type_text(u.dtype), [number[s] for s in u.src], _plain(u)] for u in uops)
  return "".join(json.dumps(row) + "\n" for row in rows)


def load(text: str) -> tuple[UOp, ...]:
  """The program of a text. Raises DecodeError that names the line."""
  found: list[UOp] = []
  for i, line in enumerate(text.splitlines()):
    try:
      op, dtype, sources, arg = json.loads(line)
      if not all(0 <= s < i for s in sources): raise ValueError("a source does not stand before its user")
      kind = _type(dtype)
      found.append(UOp(Ops[op], kind, tuple(found[s] for s in sources), _restored(Ops[op], kind, arg)))
    except (ValueError, KeyError, TypeError) as error:
      raise DecodeError(f"not a UOp: {error}", where=f"line {i + 1} of the program") from None
  return tuple(found)


def _type_text(dtype: DType) -> str:
  if isinstance(dtype, PtrDType): return f"{_type_text(dtype.base)}*{dtype.space.value}:{dtype.size}"
  return dtype.name if dtype.count == 1 else f"{dtype.name}x{dtype.count}"


def _type(text: str) -> DType:
  if (match := _TYPE.fullmatch(text)) is None: raise ValueError(f"{text!r} is not a type")
  name, count, space, size = match.groups()
  dtype = dtypes.named(name).vec(int(count or 1))
  return dtype if space is None else dtype.ptr(int(size), AddressSpace(space))


def _plain(u: UOp) -> Any:
  """The argument as JSON knows it. Floats are hexadecimal, which is exact."""
  if u.op is Ops.CONST and u.dtype.is_float: return float(u.arg).hex()
  if isinstance(u.arg, RangeArg): return [u.arg.axis, u.arg.kind.value]
  return list(u.arg) if isinstance(u.arg, tuple) else u.arg


def _restored(op: Ops, dtype: DType, arg: Any) -> Any:
  if op is Ops.CONST: return float.fromhex(arg) if dtype.is_float else bool(arg) if dtype.is_bool else int(arg)
  if op is Ops.RANGE: return RangeArg(int(arg[0]), Axis(arg[1]))
  if op is Ops.SPECIAL: return SpecialArg(str(arg[0]), int(arg[1]))
  if op is Ops.DEFINE_VAR: return VariableArg(str(arg[0]), int(arg[1]), int(arg[2]))
  if op is Ops.GEP: return tuple(int(lane) for lane in arg)
  if arg is not None and not isinstance(arg, (int, str)): raise ValueError(f"{op.name} has no argument {arg!r}")
  return arg
