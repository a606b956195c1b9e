"""Rewrites a lowered kernel into operations and types that every renderer knows.

bfloat16 and the floats of 8 bits become unsigned integers in memory and float32 in registers, rounded after each
operation; what is only moved keeps its bits. So does a half where the target has none; integers of 8 and 16 bits are
then 32 bits in registers, wrapped after each operation, and bools bytes in memory. (64-bit integers: `compile.pairs`.)
Functions such as EXP become plain arithmetic where the target has no accurate instruction: no library is ever called.

These types are memory only (`DType.bits_type`), and no renderer knows them. What one target lacks
goes the same way (`Renderer.supports`, `holds`): 64-bit integers become pairs of words once the
graph is expanded, or an int32 where bounds prove that it fits.
"""
from __future__ import annotations

import math
import struct

from tinyhw.compile import transcendental
from tinyhw.compile.render.base import Renderer
from tinyhw.ir import semantics
from tinyhw.ir.dtype import DType, PtrDType, dtypes
from tinyhw.ir.rewrite import PatternMatcher, UPat, graph_rewrite
from tinyhw.ir.symbolic import simplify
from tinyhw.ir.uop import GroupOp, Ops, UOp

F32, I32, U32 = dtypes.float32, dtypes.int32, dtypes.uint32


def _library(u: UOp, ctx: Renderer) -> UOp | None:
  return None if ctx.native(u.op, u.dtype) else transcendental.lower(u, ctx.native)


_operations = PatternMatcher([(UPat(GroupOp.LIBRARY, "u"), _library)])


HALF = semantics.Small(10, 15, 0x7BFF, 0x7C00, 0x7E00, 16)
_EMULATED: dict[DType, tuple[DType, DType]] = {          # type -> in registers, in memory
  dtypes.float16: (F32, dtypes.uint16), dtypes.bool: (dtypes.bool, dtypes.uint8),
  dtypes.int8: (I32, dtypes.uint8), dtypes.int16: (I32, dtypes.uint16),
  dtypes.uint8: (U32, dtypes.uint8), dtypes.uint16: (U32, dtypes.uint16)}
_EXACT = GroupOp.COMPARE | {Ops.WHERE, Ops.MAX, Ops.AND, Ops.OR, Ops.XOR, Ops.MOD, Ops.SHR}  # of extended integers


def _format(dtype: DType) -> semantics.Small | None:
  """How a float of 8 or 16 bits is made; None for bfloat16, which is half of a float32."""
  return HALF if dtype is dtypes.float16 else semantics.SMALL.get(dtype)


def to_bits(x: UOp, dtype: DType) -> UOp:
  """The memory of a float32 rounded to the type, to nearest even."""
  bits = x.bitcast(U32)
  if (small := _format(dtype)) is None:
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return x.ne(x).where(bits.const_like(0x7FC0), rounded).cast(dtypes.uint16)
  magnitude, cut = bits & 0x7FFFFFFF, 23 - small.fraction
  odd = (magnitude >> cut) & 1
  normal = (magnitude + ((1 << cut - 1) - 1) + odd - (127 - small.bias << 23)) >> cut
  # The sum has the unit of the numbers below the normal ones: it is rounded as they are.
  unit = 2.0 ** (1 - small.bias + cut)
  sum_ = (magnitude.bitcast(F32) + unit).bitcast(U32)
  least = sum_ - int.from_bytes(struct.pack("<f", unit), "little")
  found = (magnitude < (128 - small.bias << 23)).where(least, normal)
  found = (magnitude > 0x7F800000).where(bits.const_like(small.nan),
                                         (found > small.top).where(bits.const_like(small.over), found))
  sign = (bits >> 32 - small.width) & small.sign
  if small.one_zero: sign = found.ne(0).where(sign, sign.const_like(0))
  return (found | sign).cast(dtypes.uint16 if small.width == 16 else dtypes.uint8)


def from_bits(bits: UOp, dtype: DType) -> UOp:
  """The float32 of a number in memory."""
  wide = bits.cast(U32)
  if (small := _format(dtype)) is None: return (wide << 16).bitcast(F32)
  magnitude = wide & small.sign - 1
  number = ((magnitude << 23 - small.fraction).bitcast(F32) * 2.0 ** (127 - small.bias)).bitcast(U32)
  beyond = 0x7FC00000 if small.over == small.nan else 0x7F800000
  number = (magnitude > small.top).where((magnitude > small.over).where(wide.const_like(0x7FC00000),
                                                                        wide.const_like(beyond)), number)
  found = (number | ((wide & small.sign) << 32 - small.width)).bitcast(F32)
  return wide.ne(small.nan).where(found, found.const_like(math.nan)) if small.one_zero else found


def wrapped(x: UOp, dtype: DType) -> UOp:
  """A number of 32 bits modulo those of a smaller integer type, its sign or zeros above."""
  if not dtype.is_signed: return x & int(dtype.max)
  return (x << 32 - dtype.bits) >> 32 - dtype.bits


class _Emulation:
  """Goes through a graph once: what the target's registers hold of each node."""

  def __init__(self, renderer: Renderer) -> None:
    self.renderer = renderer
    self.kinds: dict[DType, tuple[DType, DType] | None] = {}
    self.done: dict[UOp, UOp] = {}
    self.moved: dict[UOp, UOp] = {}         # the bits of values that only moved: as a float a NaN would lose some

  def kind(self, dtype: DType) -> tuple[DType, DType] | None:
    """(type in registers, type in memory) of what the target lacks."""
    if isinstance(dtype, PtrDType): return self.kind(dtype.base)
    if dtype not in self.kinds: self.kinds[dtype] = self._kind(dtype)
    return self.kinds[dtype]

  def _kind(self, dtype: DType) -> tuple[DType, DType] | None:
    if dtype.bits_type is not None: return None if self.renderer.supports(dtype) else (F32, dtype.bits_type)
    if (found := _EMULATED.get(dtype)) is None or not self.renderer.holds(found[1]): return None
    return None if self.renderer.holds(dtype) and self.renderer.supports(dtype) else found

  def bits_of(self, x: UOp) -> UOp:
    """A value as memory holds it."""
    kind, value = self.kind(x.dtype), self.done[x]
    if x in self.moved: return self.moved[x]
    if kind is None: return value
    if x.dtype.is_float: return to_bits(value, x.dtype)
    return value.cast(U32).cast(kind[1])

  def value_of(self, bits: UOp, dtype: DType) -> UOp:
    """What registers hold of a value in memory."""
    if dtype.is_float: return from_bits(bits, dtype)
    if dtype.is_bool: return bits.cast(U32).ne(0)
    wide = bits.cast(U32)
    return wrapped(wide.bitcast(I32), dtype) if dtype.is_signed else wide

  def rounded(self, x: UOp, dtype: DType) -> UOp:
    """A result in registers as a number of the type."""
    return from_bits(to_bits(x, dtype), dtype) if dtype.is_float else wrapped(x, dtype)

  def cast(self, x: UOp, source: DType, dtype: DType) -> UOp:
    """CAST of what registers hold, to what registers hold of the type."""
    if dtype.is_float: return self.rounded(x.cast(F32), dtype)
    if not source.is_float: return wrapped(x.cast(I32 if dtype.is_signed else U32), dtype)
    found = x.cast(I32)                           # saturates, as does what follows
    least, most = found.const_like(int(dtype.min)), found.const_like(int(dtype.max))
    found = (found < least).where(least, (found > most).where(most, found))
    return found if dtype.is_signed else found.cast(U32)

  def one(self, u: UOp) -> None:
    """Notes what a node becomes."""
    src = tuple(self.done[s] for s in u.src)
    new = u if src == u.src else UOp(u.op, u.dtype, src, u.arg)
    dtype, kind = u.dtype, self.kind(u.dtype)
    if isinstance(dtype, PtrDType):
      if kind is not None: new = UOp(u.op, kind[1].ptr(dtype.size, dtype.space), src, u.arg)
    elif u.op is Ops.STORE:
      if self.kind(u.src[1].dtype) is not None: new = u.replace(src=(src[0], self.bits_of(u.src[1]), *src[2:]))
    elif u.op is Ops.BITCAST and (kind is not None or self.kind(u.src[0].dtype) is not None):
      bits = self.bits_of(u.src[0])
      if kind is None: new = bits.bitcast(dtype)
      else:
        bits = bits if bits.dtype is kind[1] else bits.bitcast(kind[1])
        new = self.moving(u, bits)
    elif kind is not None and u.op is Ops.LOAD:
      new = self.moving(u, src[0].load(*(self.bits_of(s) for s in u.src[1:])))
    elif kind is not None and not dtype.is_bool: new = self.computed(u, src)
    self.done[u] = new

  def moving(self, u: UOp, bits: UOp) -> UOp:
    """A value whose bits are known."""
    if u.dtype.is_float: self.moved[u] = bits
    return self.value_of(bits, u.dtype)

  def computed(self, u: UOp, src: tuple[UOp, ...]) -> UOp:
    """A value that registers hold in another type."""
    dtype, kind = u.dtype, self.kind(u.dtype)
    assert kind is not None, "of a type that is emulated"
    if u.op is Ops.WHERE and any(s in self.moved for s in u.src[1:]):
      return self.moving(u, src[0].where(*map(self.bits_of, u.src[1:])))
    if u.op is Ops.CAST: return self.cast(src[0], u.src[0].dtype, dtype)
    if u.op in (Ops.SHL, Ops.SHR): src = (src[0], src[1] & dtype.bits - 1)
    new = UOp(u.op, kind[0], src, u.arg)
    if dtype.is_float:
      small = _format(dtype)
      kept = (Ops.WHERE, Ops.MAX) if small is not None and small.one_zero else (Ops.WHERE, Ops.MAX, Ops.NEG)
      exact = u.op not in GroupOp.ALU or u.op in kept
    else: exact = u.op in _EXACT or u.op not in GroupOp.ALU and u.op is not Ops.REDUCE
    return new if exact else self.rounded(new, dtype)


def without_missing_types(sink: UOp, renderer: Renderer) -> UOp:
  """The graph with types that the target lacks as those that its memory and registers have."""
  emulation = _Emulation(renderer)
  nodes = sink.toposort()
  if all(emulation.kind(u.dtype) is None for u in nodes): return sink
  for u in nodes: emulation.one(u)
  return emulation.done[sink]


def legalize(sink: UOp, renderer: Renderer) -> UOp:
  """The kernel in the target's operations and types."""
  sink = without_missing_types(sink, renderer)
  return simplify(graph_rewrite(sink, _operations, renderer))
