"""Operands bound to readers and writers: `read(group) -> value` of one type, `write(group, value)`."""
from __future__ import annotations

import struct
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from tinyhw.core.environment import digits
from tinyhw.core.errors import DecodeError, Unsupported
from tinyhw.emulator.ptx import special
from tinyhw.emulator.ptx.group import LANES, Warps
from tinyhw.emulator.ptx.module.flow import where
from tinyhw.emulator.ptx.module.scope import Line, Place, Range, Register
from tinyhw.emulator.values.ops import BOOL, Array, B, Operations
from tinyhw.isa.ptx.forms import SIZES
from tinyhw.isa.ptx.model import Float, Function, Int, Name, Not, Operand, OperandPart, Pair, Sum, Vector

if TYPE_CHECKING:
  from tinyhw.emulator.ptx.program import Code



class Numbered(Protocol[B]):
  """Registers by their numbers."""
  def __getitem__(self, n: int, /) -> B: ...
  def __setitem__(self, n: int, value: B, /) -> None: ...


class Holder(Protocol[B]):
  """A group as far as operands see it: its registers, the operations on their values, where its function's variables
  are on the stack. `Warps` holds values, the compiler's group holds code."""
  base: int

  @property
  def v(self) -> Numbered[B]: ...

  @property
  def o(self) -> Operations[B]: ...


class Reader(Protocol):
  """Gives an operand of any group, a value of the group's kind."""
  def __call__(self, group: Holder[B], /) -> B: ...


class Writer(Protocol):
  """Takes a value of the group's kind."""
  def __call__(self, group: Holder[B], value: B, /) -> None: ...


U8, U16, U32, U64 = (np.dtype(f"u{n}") for n in (1, 2, 4, 8))
_RAW: Final = {1: U8, 2: U16, 4: U32, 8: U64}
_KEPT: Final = 1 << 13  # readers and writers of registers, which all kernels share: a register is a number and a type


@cache
def dtype_of(type_: str) -> Any:
  """NumPy's type for a type of PTX: integers and floats as they are, everything else as bits."""
  if type_ == "pred": return BOOL
  size = SIZES[type_]
  if type_[0] == "s" and digits(type_[1:]): return np.dtype(f"i{size}")
  if type_ in {"f16", "f32", "f64"}: return np.dtype(f"f{size}")
  if size == 16: return U64
  return _RAW[size]


def unsigned(size: int) -> Any:
  """NumPy's type for so many bytes."""
  return _RAW[size]


def zero(type_: str) -> Array:
  """The value of a register that nobody has written."""
  return dtype_of(type_).type(0)


def register(line: Line, operand: Operand) -> Register | None:
  """The register that an operand is, or a half of one of b128."""
  if isinstance(operand, OperandPart) and operand.part in {"lo", "hi"}:
    whole = register(line, operand.operand)
    if whole is None or whole.type != "b128":
      raise DecodeError(f"{line.instruction.name} needs a register of b128", where=where(line))
    return Register(whole.number + (operand.part == "hi"), "b64")
  if not isinstance(operand, Name): return None
  found = line.scope.find(operand.text)
  return found if isinstance(found, Register) else None


def immediate(line: Line, operand: Operand, type_: str) -> Array | None:
  """A constant operand as a value of a type; None for another operand."""
  dtype = dtype_of(type_)
  if isinstance(operand, Int):
    if type_ == "pred": return BOOL.type(operand.value != 0)
    if type_ in {"f32", "f64", "f16"}:
      raise DecodeError(f"{operand.value} is no floating-point constant", where=where(line))
    bits = dtype.itemsize * 8
    return _RAW[dtype.itemsize].type(operand.value & (1 << bits) - 1).view(dtype)
  if isinstance(operand, Float):
    double = struct.unpack("<d", struct.pack("<Q", operand.bits))[0] if operand.width == 64 else None
    size = SIZES[type_]
    if operand.width == 32:
      if size == 4: return np.uint32(operand.bits).view(dtype)
      return np.uint32(operand.bits).view(np.float32).astype(np.float64).view(dtype) if size == 8 else None
    if size == 8: return np.uint64(operand.bits).view(dtype)
    with np.errstate(over="ignore"):
      if size == 4: return np.float32(double).view(dtype)
      if size == 2: return np.float16(double).view(dtype)
    raise DecodeError(f"a floating-point constant for {type_}", where=where(line))
  return None


def bytes_past(line: Line, operand: Sum) -> int:
  """How far behind its name an operand's address is: in bytes, or an element's place (`array[3]`)."""
  if operand.function != "element": return operand.offset
  found = line.scope.find(operand.name)
  if not isinstance(found, Place) or len(found.variable.dims) != 1:
    raise Unsupported("PTX operand", f"{operand.name}[{operand.offset}]", where=where(line))
  return operand.offset * SIZES[found.variable.type] * found.variable.vector


def wrong_source(line: Line, operand: Operand, own: str) -> DecodeError:
  """The error for a register that an instruction does not take."""
  name = operand.text if isinstance(operand, Name) else str(operand)
  return DecodeError(f"{name} of the type .{own} does not fit {line.instruction.name}", where=where(line))


def wrong_destination(line: Line, own: str) -> DecodeError:
  """The error for a register that does not take an instruction's result."""
  return DecodeError(f"{line.instruction.name} does not fit the type .{own} of its destination", where=where(line))


def not_taken(line: Line) -> DecodeError:
  """The error for operands of a form, or a number, that an instruction does not take."""
  return DecodeError(f"{line.instruction.name} does not take these operands", where=where(line))


def reader(code: Code, line: Line, operand: Operand, type_: str) -> Reader:
  """Reader of a source operand as a type. A wider register gives its low bits."""
  dtype = dtype_of(type_)
  value = immediate(line, operand, type_)
  if value is not None: return code.constant(value)
  if isinstance(operand, Not) and type_ == "pred":
    inner = reader(code, line, operand.operand, "pred")
    return lambda group: ~inner(group)
  if isinstance(operand, Sum):
    at = code.address(line, operand.name) + bytes_past(line, operand)
    return code.based(line, operand.name, _address(line, operand.name, at, dtype))
  if isinstance(operand, OperandPart):
    half = register(line, operand)
    if half is not None: return _register(half.number, half.type, type_)
  if not isinstance(operand, Name):
    raise DecodeError(f"{line.instruction.name} takes no such operand", where=where(line))
  name = operand.text
  found = line.scope.find(name)
  if isinstance(found, Register):
    own = dtype_of(found.type)
    if found.type == "b128" or (own == BOOL) != (type_ == "pred") or own.itemsize < dtype.itemsize:
      raise wrong_source(line, operand, found.type)
    return _register(found.number, found.type, type_)
  if isinstance(found, (Place, Function)) or code.knows(name):
    return code.based(line, name, _address(line, name, code.address(line, name), dtype))
  if name in special.REGISTERS: return code.special(name, dtype)
  if name.startswith("%") and name.partition(".")[0] in special.UNMODELLED:
    raise Unsupported("PTX special register", name, where=where(line))
  raise DecodeError(f"{name} is not declared", where=where(line))


def _address(line: Line, name: str, at: int, dtype: Any) -> Any:
  """An address as an operand's type. One below its space's start wraps, as additions of registers do."""
  bits = 8 * dtype.itemsize
  if dtype.kind not in "iu": raise not_taken(line)
  if at >> bits > 0:
    raise Unsupported(f"PTX address of {bits} bits", f"{name}, whose address has {at.bit_length()}", where=where(line))
  return np.array(at % (1 << bits), f"u{dtype.itemsize}").view(dtype)[()]


@lru_cache(maxsize=_KEPT)
def _register(n: int, own_type: str, type_: str) -> Reader:
  """Reader of a register that has one type as another of at most that size."""
  own, dtype = dtype_of(own_type), dtype_of(type_)
  size = dtype.itemsize
  if type_ == "pred" or own == BOOL: return lambda group: group.v[n]
  if own.itemsize == size:
    def read(group: Holder[B]) -> B:
      x = group.v[n]
      return x if x.dtype is dtype else x.view(dtype)
    return read
  wide, narrow = _RAW[own.itemsize], _RAW[size]
  return lambda group: group.v[n].view(wide).astype(narrow).view(dtype)


def predicate(line: Line) -> Reader | None:
  """Reader of an instruction's guard; None for one without."""
  p = line.instruction.predicate
  if p is None: return None
  found = line.scope.find(p.register)
  if not isinstance(found, Register) or found.type != "pred":
    raise DecodeError(f"{p.register} is no predicate register", where=where(line))
  return _guard(found.number, p.negated)


@lru_cache(maxsize=_KEPT)
def _guard(n: int, negated: bool) -> Reader:
  return (lambda group: ~group.v[n]) if negated else (lambda group: group.v[n])


def writer(code: Code, line: Line, operand: Operand, type_: str) -> Writer:
  """Writer of a destination, under the instruction's guard. A wider register takes the value extended by its sign."""
  guard = predicate(line)
  if isinstance(operand, Name) and operand.text == "_": return lambda group, value: None
  r = register(line, operand)
  if r is None:
    text = operand.text if isinstance(operand, Name) else type(operand).__name__.lower()
    raise DecodeError(f"{text} is no register that {line.instruction.name} could write", where=where(line))
  n, own, dtype = r.number, dtype_of(r.type), dtype_of(type_)
  if (own == BOOL) != (dtype == BOOL) or r.type == "b128":
    raise wrong_destination(line, r.type)
  extend = None
  if own.itemsize > dtype.itemsize: extend = np.dtype(f"i{own.itemsize}") if dtype.kind == "i" else _RAW[own.itemsize]
  elif own.itemsize < dtype.itemsize:
    raise wrong_destination(line, r.type)
  if guard is None and extend is None: return _stored(n)
  raw = _RAW[dtype.itemsize] if dtype.kind == "f" else dtype

  def write(group: Holder[B], value: B) -> None:
    if extend is not None: value = value.view(raw).astype(extend)
    group.v[n] = value

  def guarded(group: Holder[B], value: B) -> None:
    assert guard is not None
    if extend is not None: value = value.view(raw).astype(extend)
    old = group.v[n]
    group.v[n] = group.o.where(guard(group), value, old if old.dtype == value.dtype else old.view(value.dtype))

  return write if guard is None else guarded


@lru_cache(maxsize=_KEPT)
def _stored(n: int) -> Writer:
  """Writer of values that a register holds as they are."""
  def write(group: Holder[B], value: B) -> None: group.v[n] = value
  return write


def halves(operand: Operand) -> tuple[Operand, Operand]:
  """The two registers of 64 bits that one of b128 is; of a vector of two they are its elements."""
  if isinstance(operand, Vector) and len(operand.elements) == 2: return operand.elements[0], operand.elements[1]
  return OperandPart(operand, "lo"), OperandPart(operand, "hi")


def pair(line: Line) -> tuple[Operand, Operand | None]:
  """The first operand: a destination, or the two of `p|q`."""
  first = line.instruction.operands[0]
  return (first.first, first.second) if isinstance(first, Pair) else (first, None)


def elements(line: Line, operand: Operand) -> tuple[Operand, ...]:
  """The elements of a vector operand; another operand is its own."""
  if isinstance(operand, Vector): return operand.elements
  if isinstance(operand, Name):
    found = line.scope.find(operand.text)
    if isinstance(found, Range): return tuple(Name(f"{operand.text}.{part}") for part in "xyzw"[:found.count])
  return (operand,)


def only(line: Line, operand: Operand) -> Operand:
  """The element of a vector of one; another operand is its own. Raises DecodeError for a vector of none or more."""
  found = elements(line, operand)
  if len(found) != 1: raise not_taken(line)
  return found[0]


def full(group: Warps, x: Array) -> Array:
  """A value as [waves, lanes]."""
  return np.broadcast_to(x, (group.size, LANES))

