"""Where DWARF says that a variable is: in registers, in a lane's scratch memory, or a constant.

Register numbers: LLVM's AMDGPUUsage, "Register Identifier". A variable that needs more than these is told to be not
simple, with the expression; nothing is guessed.
"""
from __future__ import annotations

from typing import Any, Final

from tinyhw.core.source import DATA_LIMIT, Part, Variable, lost
from tinyhw.wire import dwarf
from tinyhw.wire.ctype import CType

# first DWARF number, how many, kind, number of the first register; waves of 32 lanes and of 64 have other numbers
REGISTERS: Final = ((32, 64, "s", 0), (1088, 42, "s", 64), (1536, 256, "v", 0), (2048, 256, "a", 0),
                    (2560, 256, "v", 0), (3072, 256, "a", 0))
_DWORD: Final = 4
# What clang writes behind an address in private memory: "dereference in address space 1". It leaves it there also where
# it has put the variable in a register or knows its value (LLVM 20 and later).
_PRIVATE: Final = [("DW_OP_lit1",), ("DW_OP_swap",), ("DW_OP_xderef",)]
Operation = tuple[Any, ...]


class _NotSimple(Exception):
  """The location needs more than is known here."""


def variable(info: Any, die: Any, function: Any, pc: int) -> Variable:
  """The variable or parameter of a DIE, as it is at an address of `function`."""
  made = _typed(dwarf.text_of(dwarf.attribute_of(die, "DW_AT_name")), dwarf.ctype(dwarf.target_of(die, "DW_AT_type")),
                die.tag == "DW_TAG_formal_parameter")
  if not 0 < made.nbytes <= DATA_LIMIT: return lost(made, f"location not simple: {made.nbytes:,} bytes")
  constant = die.attributes.get("DW_AT_const_value")
  if constant is not None: return _with(made, (Part("const", made.nbytes, data=_constant(constant, made.nbytes)),))
  attribute = die.attributes.get("DW_AT_location")
  if attribute is None: return lost(made, "optimized out")
  expression = _expression(info, die, attribute, pc)
  if expression is None: return lost(made, "optimized out here")
  operations = _parsed(expression, die.cu.structs)
  try: parts = _parts(operations, made, _frame(function))
  except _NotSimple: return lost(made, f"location not simple: {_text(operations)}")
  if all(p.kind == "lost" for p in parts): return lost(made, "optimized out here")
  return _with(made, parts)


def _with(made: Variable, parts: tuple[Part, ...]) -> Variable:
  return Variable(made.name, made.type, made.kind, made.size, made.count, made.parameter, parts)


def _typed(name: str, kind: CType, parameter: bool) -> Variable:
  """A variable of a type; elements of vectors are those of the variable, the rest is bytes."""
  of = kind.of if kind.kind == "v" and kind.of is not None else kind
  if of.kind in "biuf*" and of.size in {1, 2, 4, 8} and not of.bfloat:
    return Variable(name, kind.name, of.kind, of.size, kind.count if of is not kind else 1, parameter)
  return Variable(name, kind.name, "s", 1, kind.size, parameter)


def _constant(attribute: Any, size: int) -> bytes:
  """DW_AT_const_value as bytes."""
  value = attribute.value
  if isinstance(value, int): return (value & (1 << 8 * size) - 1).to_bytes(size, "little")
  return bytes(value)[:size].ljust(size, b"\0")


def _expression(info: Any, die: Any, attribute: Any, pc: int) -> bytes | None:
  """The location's expression for an address; None where there is none."""
  from elftools.dwarf.locationlists import LocationParser
  version = die.cu.header["version"]
  if not LocationParser.attribute_has_location(attribute, version): return None
  found: Any = LocationParser(info.location_lists()).parse_from_attribute(attribute, version, die)
  if not isinstance(found, list): return bytes(found.loc_expr)
  low = die.cu.get_top_DIE().attributes.get("DW_AT_low_pc")
  base = 0 if low is None else low.value
  for entry in found:
    if not hasattr(entry, "begin_offset"): base = entry.base_address
    else:
      start = 0 if entry.is_absolute else base
      if start + entry.begin_offset <= pc < start + entry.end_offset: return bytes(entry.loc_expr)
  return None


def _parsed(expression: bytes, structs: Any) -> list[Operation]:
  from elftools.dwarf.dwarf_expr import DWARFExprParser
  return [(op.op_name, *op.args) for op in DWARFExprParser(structs).parse_expr(expression)]


def _frame(function: Any) -> int | None:
  """The SGPR that has the frame of a function."""
  attribute = function.attributes.get("DW_AT_frame_base")
  if attribute is None: return None
  operations = _parsed(bytes(attribute.value), function.cu.structs)
  if len(operations) != 1 or operations[0][0] != "DW_OP_regx": return None
  kind, number = register(operations[0][1])
  return number if kind == "s" else None


def register(number: int) -> tuple[str, int]:
  """("v", 5) of a DWARF register number; ("", 0) for one that is neither an SGPR nor a vector register."""
  for first, count, kind, start in REGISTERS:
    if first <= number < first + count: return kind, number - first + start
  return "", 0


def _parts(operations: list[Operation], made: Variable, frame: int | None) -> tuple[Part, ...]:
  """The pieces of a location; one of the variable's size where it is not in pieces."""
  if not any(o[0] == "DW_OP_piece" for o in operations): return tuple(_pieces(operations, made.nbytes, frame))
  out: list[Part] = []
  rest: list[Operation] = []
  for o in operations:
    if o[0] != "DW_OP_piece": rest.append(o)
    else:
      out += _pieces(rest, o[1], frame) if rest else [Part("lost", o[1])]
      rest = []
  if rest or sum(p.size for p in out) > made.nbytes: raise _NotSimple
  missing = made.nbytes - sum(p.size for p in out)
  return tuple(out) + ((Part("lost", missing),) if missing else ())


def _pieces(operations: list[Operation], size: int, frame: int | None) -> list[Part]:
  """Where some bytes are, by one simple location; what needs more raises _NotSimple."""
  private = operations[1:4] == _PRIVATE
  head, *rest = operations[:1] + operations[4:] if private else operations
  name, value = head[0], head[1:]
  if name in {"DW_OP_regx", "DW_OP_bregx"} or name.startswith(("DW_OP_reg", "DW_OP_breg")):
    if rest or name == "DW_OP_bregx" and (value[1] or not private): raise _NotSimple
    if name not in {"DW_OP_regx", "DW_OP_bregx"}: raise _NotSimple  # reg0 to reg31 are the PC and EXEC
    kind, number = register(value[0])
    if not kind: raise _NotSimple
    # with more than a dword LLVM says the pieces; a private address's dereference is no register's value
    if size > _DWORD: raise _NotSimple
    return [Part(kind, size, number)]
  if name == "DW_OP_fbreg" and frame is not None and not rest: return [Part("private", size, frame, value[0])]
  if name == "DW_OP_implicit_value" and not rest:
    return [Part("const", size, data=bytes(value[0])[:size].ljust(size, b"\0"))]
  if rest != [("DW_OP_stack_value",)]: raise _NotSimple
  if name in {"DW_OP_consts", "DW_OP_constu"} or name.startswith("DW_OP_const"): number = value[0]
  elif name.startswith("DW_OP_lit"): number = int(name.removeprefix("DW_OP_lit"))
  else: raise _NotSimple
  return [Part("const", size, data=(number & (1 << 8 * size) - 1).to_bytes(size, "little"))]


def _text(operations: list[Operation]) -> str:
  return ", ".join(" ".join(str(x) for x in o) for o in operations)
