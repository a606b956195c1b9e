"""Rewrites a lowered kernel into operations and types that every renderer knows.

bfloat16 becomes uint16 in memory and float32 in registers, rounded after each operation; what is only moved keeps its
bits. Functions such as EXP become plain arithmetic where the target has no accurate instruction, so no library is ever
called.
"""
from __future__ import annotations

from tinyhw.compile import transcendental
from tinyhw.compile.render.base import Renderer
from tinyhw.ir.dtype import PtrDType, dtypes
from tinyhw.ir.rewrite import PatternMatcher, UPat, graph_rewrite
from tinyhw.ir.symbolic import simplify
from tinyhw.ir.uop import GroupOp, Ops, UOp

BF16, F32 = dtypes.bfloat16, dtypes.float32


def _library(u: UOp, ctx: Renderer) -> UOp | None:
  return None if ctx.native(u.op, u.dtype) else transcendental.lower(u, ctx.native)


_operations = PatternMatcher([(UPat(GroupOp.LIBRARY, "u"), _library)])


def _to_bits(x: UOp) -> UOp:
  """The uint16 of a float32 rounded to bfloat16, to nearest even."""
  bits = x.bitcast(dtypes.uint32)
  rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
  return x.ne(x).where(bits.const_like(0x7FC0), rounded).cast(dtypes.uint16)


def _from_bits(bits: UOp) -> UOp: return (bits.cast(dtypes.uint32) << 16).bitcast(F32)


def without_bfloat16(sink: UOp) -> UOp:
  """The graph with bfloat16 as uint16 in memory and float32 in registers."""
  nodes = sink.toposort()
  if not any((u.dtype.base if isinstance(u.dtype, PtrDType) else u.dtype) is BF16 for u in nodes): return sink
  done: dict[UOp, UOp] = {}
  moved: dict[UOp, UOp] = {}              # the bits of values that only moved: as a float a NaN would lose some
  def bits_of(x: UOp) -> UOp: return moved[x] if x in moved else _to_bits(done[x])
  for u in nodes:
    src = tuple(done[s] for s in u.src)
    new = u if src == u.src else UOp(u.op, u.dtype, src, u.arg)
    if isinstance(u.dtype, PtrDType) and u.dtype.base is BF16:
      new = UOp(u.op, dtypes.uint16.ptr(u.dtype.size, u.dtype.space), src, u.arg)
    elif u.op is Ops.STORE and u.src[1].dtype is BF16: new = src[0].store(bits_of(u.src[1]))
    elif u.op is Ops.BITCAST and u.src[0].dtype is BF16: new = bits_of(u.src[0]).bitcast(u.dtype)
    elif u.dtype is BF16:
      if u.op is Ops.LOAD: moved[u] = src[0].load(*(bits_of(s) for s in u.src[1:]))
      elif u.op is Ops.BITCAST: moved[u] = src[0].bitcast(dtypes.uint16)
      elif u.op is Ops.WHERE and any(s in moved for s in u.src[1:]): moved[u] = src[0].where(*map(bits_of, u.src[1:]))
      if u in moved: new = _from_bits(moved[u])
      elif u.op is Ops.CAST: new = _from_bits(_to_bits(src[0].cast(F32)))
      else:
        new = UOp(u.op, F32, src, u.arg)
        if u.op in GroupOp.ALU - {Ops.WHERE, Ops.MAX, Ops.NEG}: new = _from_bits(_to_bits(new))
    done[u] = new
  return done[sink]


def legalize(sink: UOp, renderer: Renderer) -> UOp:
  """The kernel in the target's operations and types."""
  if not renderer.supports(BF16): sink = without_bfloat16(sink)
  return simplify(graph_rewrite(sink, _operations, renderer))
