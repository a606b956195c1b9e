"""Special registers in compiled code."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tinyhw.emulator.jit.ptx.module import layout
from tinyhw.emulator.jit.values import BOOL, Untranslatable, Value, convert
from tinyhw.emulator.ptx.launch.grid import SMS
from tinyhw.emulator.ptx.special import RESERVED
from tinyhw.emulator.values.ops import U32, U64

if TYPE_CHECKING:
  from tinyhw.emulator.jit.ptx.module.emit import Lanes


def read(g: Lanes, name: str, dtype: Any) -> Value:
  """A special register in the width of an instruction."""
  value = _value(g, name)
  if value.dtype.kind == "b": return value if dtype.kind == "b" else convert(value, np.dtype(f"u{dtype.itemsize}"))
  return convert(value, np.dtype(f"u{dtype.itemsize}")).view(dtype)


def _value(g: Lanes, name: str) -> Value:
  base, _, part = name.partition(".")
  axis = "xyz".index(part) if part in {"x", "y", "z"} and part else 0
  o, e, plan = g.o, g.e, g.plan
  if base == "%tid": return _tid(g, axis)
  if base == "%ntid": return o.const("u32", plan.block[axis])
  if base in {"%ctaid", "%nctaid"}: return _word(g, f"{base}.{axis}")
  if not plan.clustered:
    if base in {"%clusterid", "%nclusterid"}: return _word(g, f"%{'n' * (base[1] == 'n')}ctaid.{axis}")
    if base == "%cluster_ctaid" or name == "%cluster_ctarank": return o.const("u32", 0)
    if base == "%cluster_nctaid" or name == "%cluster_nctarank": return o.const("u32", 1)
  elif base in {"%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid"}: return _word(g, f"{base}.{axis}")
  elif name in {"%cluster_ctarank", "%cluster_nctarank"}: return _word(g, name)
  if name == "%is_explicit_cluster": return e.const(BOOL, plan.clustered)
  if name == "%laneid": return _in_strand(g, _first(g) & 31, plan.special(name).steps)
  if name == "%warpid": return _first(g) >> 5
  if name == "%nwarpid": return o.const("u32", -(-plan.threads // 32))
  if base.startswith("%lanemask"): return _lane_mask(g, base)
  if name == "%gridid": return o.const("u64", 1)
  if name == "%nsmid": return o.const("u32", SMS)
  if name == "%smid":
    return Value(e, e.op(f"trunc i64 {e.op(f'urem i64 %block, {SMS}')} to i32"), U32, False)
  if name == "%envreg1": return convert(g.context(layout.WORKSPACE) >> 32, U32)
  if name == "%envreg2": return g.context(layout.WORKSPACE, U32)
  if name == "%dynamic_smem_size": return g.context(layout.DYNAMIC, U32)
  if name == "%total_smem_size": return g.context(layout.USED, U32)
  if name == "%aggr_smem_size": return g.context(layout.AGGREGATE, U32)
  if name in RESERVED: return g.context(layout.SYSTEM, U32) + RESERVED[name]
  if name == "%reserved_smem_offset_end": return g.context(layout.SHARED_SIZE, U32)
  if name == "%reserved_smem_offset_cap":
    return g.context(layout.SHARED_SIZE, U32) - g.context(layout.SYSTEM, U32)
  if name in {"%clock64", "%globaltimer"}: return _clock(g)
  if name in {"%clock", "%globaltimer_lo"}: return convert(_clock(g), U32)
  if name in {"%clock_hi", "%globaltimer_hi"}: return convert(_clock(g) >> 32, U32)
  raise Untranslatable(name)


def _word(g: Lanes, text: str) -> Value: return Value(g.e, text, U32, False)


def _clock(g: Lanes) -> Value:
  """What has been executed: before this turn of the launch, and in it, of this strand."""
  e = g.e
  at = e.op(f"load i64, ptr {g.pointer('%context', layout.CLOCK)}")
  return Value(e, e.op(f"sub i64 {at}, {e.op('load i64, ptr %left')}"), U64, False)


def _first(g: Lanes) -> Value:
  """The index in the block of the strand's first thread."""
  return Value(g.e, "%first", U32, False)


def _in_strand(g: Lanes, base: Value, steps: tuple[int, ...] | None) -> Value:
  assert steps is not None
  if g.stepped or not any(steps): return base
  return g.materialized(base, steps)


def _quotient(g: Lanes, what: str, x: Value, n: int) -> Value:
  if n == 1: return x if what == "udiv" else g.o.const("u32", 0)
  return x.like(g.e.op(f"{what} {x.type} {x.text}, {g.e.const(U32, n).at(x.wide)}"))


def _tid(g: Lanes, axis: int) -> Value:
  plan = g.plan
  if plan.block[axis] == 1: return g.o.const("u32", 0)
  shape, below = plan.tid(axis), 1
  for k in range(axis): below *= plan.block[k]
  x = _first(g) if shape.steps is not None else g.materialized(_first(g), tuple(range(g.width)))
  x = _quotient(g, "udiv", x, below)
  if below * plan.block[axis] < plan.threads: x = _quotient(g, "urem", x, plan.block[axis])
  return x if shape.steps is None else _in_strand(g, x, shape.steps)


def _lane_mask(g: Lanes, name: str) -> Value:
  o = g.o
  lane = g.materialized(_first(g) & 31, tuple(range(g.width)))
  bit, ones = o.const("u32", 1) << lane, o.const("u32", 0xFFFFFFFF)
  kind = name.removeprefix("%lanemask_")
  if kind == "eq": return bit
  if kind == "lt": return bit - 1
  if kind == "le": return bit | bit - 1
  if kind == "gt": return ~(bit | bit - 1)
  if kind == "ge": return ones ^ (bit - 1)
  raise Untranslatable(name)
