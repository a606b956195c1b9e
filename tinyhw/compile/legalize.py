"""Rewrites a lowered kernel into operations and types that every renderer knows.

bfloat16 and the floats of 8 bits become unsigned integers in memory and float32 in registers, rounded after each
operation; what is only moved keeps its bits. Functions such as EXP become plain arithmetic where the target has no
accurate instruction, so no library is ever called.
"""
from __future__ import annotations

import struct

from tinyhw.compile import transcendental
from tinyhw.compile.render.base import Renderer
from tinyhw.ir import semantics
from tinyhw.ir.dtype import DType, PtrDType, dtypes
from tinyhw.ir.rewrite import PatternMatcher, UPat, graph_rewrite
from tinyhw.ir.symbolic import simplify
from tinyhw.ir.uop import GroupOp, Ops, UOp

F32 = dtypes.float32


def _library(u: UOp, ctx: Renderer) -> UOp | None:
  return None if ctx.native(u.op, u.dtype) else transcendental.lower(u, ctx.native)


_operations = PatternMatcher([(UPat(GroupOp.LIBRARY, "u"), _library)])


def _to_bits(x: UOp, dtype: DType) -> UOp:
  """The memory of a float32 rounded to the type, to nearest even."""
  bits = x.bitcast(dtypes.uint32)
  if (small := semantics.SMALL.get(dtype)) is None:
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return x.ne(x).where(bits.const_like(0x7FC0), rounded).cast(dtypes.uint16)
  magnitude, cut = bits & 0x7FFFFFFF, 23 - small.fraction
  odd = (magnitude >> cut) & 1
  normal = (magnitude + ((1 << cut - 1) - 1) + odd - (127 - small.bias << 23)) >> cut
  # The sum has the unit of the numbers below the normal ones: it is rounded as they are.
  unit = 2.0 ** (1 - small.bias + cut)
  sum_ = (magnitude.bitcast(F32) + unit).bitcast(dtypes.uint32)
  least = sum_ - int.from_bytes(struct.pack("<f", unit), "little")
  found = (magnitude < (128 - small.bias << 23)).where(least, normal)
  found = (magnitude > 0x7F800000).where(bits.const_like(small.nan),
                                         (found > small.top).where(bits.const_like(small.over), found))
  return (found | ((bits >> 24) & 0x80)).cast(dtypes.uint8)


def _from_bits(bits: UOp, dtype: DType) -> UOp:
  """The float32 of a number in memory."""
  wide = bits.cast(dtypes.uint32)
  if (small := semantics.SMALL.get(dtype)) is None: return (wide << 16).bitcast(F32)
  magnitude = wide & 0x7F
  number = ((magnitude << 23 - small.fraction).bitcast(F32) * 2.0 ** (127 - small.bias)).bitcast(dtypes.uint32)
  beyond = 0x7FC00000 if small.over == small.nan else 0x7F800000
  number = (magnitude > small.top).where((magnitude > small.over).where(wide.const_like(0x7FC00000),
                                                                        wide.const_like(beyond)), number)
  return (number | ((wide & 0x80) << 24)).bitcast(F32)


def _stored(dtype: DType) -> DType | None:
  """The type of the memory of what is memory only."""
  return (dtype.base if isinstance(dtype, PtrDType) else dtype).bits_type


def without_memory_types(sink: UOp, renderer: Renderer) -> UOp:
  """The graph with types of memory only as unsigned integers there and float32 in registers."""
  nodes = sink.toposort()
  def memory_only(dtype: DType) -> bool: return _stored(dtype) is not None and not renderer.supports(dtype)
  if not any(memory_only(u.dtype.base if isinstance(u.dtype, PtrDType) else u.dtype) for u in nodes): return sink
  done: dict[UOp, UOp] = {}
  moved: dict[UOp, UOp] = {}              # the bits of values that only moved: as a float a NaN would lose some
  def bits_of(x: UOp) -> UOp: return moved[x] if x in moved else _to_bits(done[x], x.dtype)
  def rounded(x: UOp, dtype: DType) -> UOp: return _from_bits(_to_bits(x, dtype), dtype)
  for u in nodes:
    src = tuple(done[s] for s in u.src)
    new = u if src == u.src else UOp(u.op, u.dtype, src, u.arg)
    dtype, stored = u.dtype, _stored(u.dtype)
    if isinstance(dtype, PtrDType):
      if stored is not None: new = UOp(u.op, stored.ptr(dtype.size, dtype.space), src, u.arg)
    elif u.op is Ops.STORE and _stored(u.src[1].dtype) is not None:
      new = u.replace(src=(src[0], bits_of(u.src[1]), *src[2:]))
    elif u.op is Ops.BITCAST and _stored(u.src[0].dtype) is not None and stored is None:
      new = bits_of(u.src[0]).bitcast(dtype)
    elif stored is not None:
      if u.op is Ops.LOAD: moved[u] = src[0].load(*(bits_of(s) for s in u.src[1:]))
      elif u.op is Ops.BITCAST:
        moved[u] = bits_of(u.src[0]) if _stored(u.src[0].dtype) is not None else src[0].bitcast(stored)
      elif u.op is Ops.WHERE and any(s in moved for s in u.src[1:]): moved[u] = src[0].where(*map(bits_of, u.src[1:]))
      if u in moved: new = _from_bits(moved[u], dtype)
      elif u.op is Ops.CAST: new = rounded(src[0].cast(F32), dtype)
      else:
        new = UOp(u.op, F32, src, u.arg)
        if u.op in GroupOp.ALU - {Ops.WHERE, Ops.MAX, Ops.NEG}: new = rounded(new, dtype)
    done[u] = new
  return done[sink]


def legalize(sink: UOp, renderer: Renderer) -> UOp:
  """The kernel in the target's operations and types."""
  sink = without_memory_types(sink, renderer)
  return simplify(graph_rewrite(sink, _operations, renderer))
