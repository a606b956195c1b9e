"""Special registers: where a thread is, what its launch is like."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tinyhw.emulator.ptx.group import LANES, Warps
from tinyhw.emulator.values.ops import BOOL, U32, U64, Array

_LANE: Final = np.arange(LANES, dtype=np.uint32)[None, :]
_BIT: Final = np.uint32(1) << _LANE
_MASKS: Final = {"%lanemask_eq": _BIT, "%lanemask_lt": _BIT - U32.type(1), "%lanemask_le": (_BIT << 1) - U32.type(1),
                 "%lanemask_gt": ~((_BIT << 1) - U32.type(1)), "%lanemask_ge": ~(_BIT - U32.type(1))}
UNMODELLED: Final = frozenset({
  *(f"%pm{n}" for n in range(8)), "%current_graph_exec", *(f"%envreg{n}" for n in range(32) if n not in {1, 2})})

# Names of places in the shared memory that the system keeps, in bytes from its beginning; libraries use two of them.
RESERVED: Final = {"%reserved_smem_offset_begin": 0, "%reserved_smem_offset_0": 0, "%reserved_smem_offset_1": 512}
SYSTEM: Final = frozenset({*RESERVED, "%reserved_smem_offset_end", "%reserved_smem_offset_cap"})  # what asks for it


def _axis(name: str, axis: int) -> Callable[[Warps], Array]:
  """A component of %tid, %ntid, %ctaid, %nctaid, or of their like for clusters."""
  if name == "%tid": return lambda group: _tid(group, axis)
  if name == "%ntid": return lambda group: U32.type(group.cohort.dispatch.block[axis])
  if name == "%nctaid": return lambda group: U32.type(group.cohort.dispatch.grid[axis])
  if name == "%ctaid": return lambda group: group.cohort.shared.ctaid(group, axis)
  if name == "%clusterid": return lambda group: group.cohort.shared.clusterid(group, axis)
  if name == "%nclusterid": return lambda group: U32.type(group.cohort.shared.nclusterid[axis])
  if name == "%cluster_ctaid": return lambda group: group.cohort.shared.cluster_ctaid(group, axis)
  return lambda group: U32.type(group.cohort.shared.cluster[axis])


def _tid(group: Warps, axis: int) -> Array:
  """The thread's index: rows of the block's warps."""
  table = group.cohort.shared.tid[axis]
  if table.ndim == 0 or table.shape[0] == 1: return table
  return table[group.waves % table.shape[0]]


def _warp(group: Warps) -> Array:
  count = group.cohort.shared.warps
  return U32.type(0) if count == 1 else (group.waves % count).astype(np.uint32)[:, None]


def _clock(group: Warps) -> Array: return U64.type(group.cohort.stats.steps)


def _fixed(value: Array) -> Callable[[Warps], Array]: return lambda group: value


def _reserved(offset: int) -> Callable[[Warps], Array]:
  """An address in the shared memory that the system keeps."""
  return lambda group: U32.type(group.cohort.shared.system.start + offset)


def _sm(group: Warps) -> Array:
  shared = group.cohort.shared
  return (group.waves // shared.warps % shared.sms).astype(np.uint32)[:, None]


REGISTERS: Final[dict[str, Callable[[Warps], Array]]] = {
  **{f"{name}.{part}": _axis(name, k) for k, part in enumerate("xyz")
     for name in ("%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%cluster_ctaid",
                  "%cluster_nctaid")},
  **{name: _fixed(value) for name, value in _MASKS.items()},
  "%laneid": lambda group: _LANE,
  "%warpid": _warp,
  "%nwarpid": lambda group: U32.type(group.cohort.shared.warps),
  "%smid": _sm,
  "%nsmid": lambda group: U32.type(group.cohort.shared.sms),
  "%gridid": lambda group: U64.type(1),
  "%cluster_ctarank": lambda group: group.cohort.shared.rank(group),
  "%cluster_nctarank": lambda group: U32.type(group.cohort.shared.clustered),
  "%is_explicit_cluster": lambda group: BOOL.type(group.cohort.shared.explicit),
  "%clock": lambda group: _clock(group).astype(np.uint32),
  "%clock_hi": lambda group: (_clock(group) >> U64.type(32)).astype(np.uint32),
  "%clock64": _clock,
  "%globaltimer": _clock,  # time is what has been executed, so that runs are alike
  "%globaltimer_lo": lambda group: _clock(group).astype(np.uint32),
  "%globaltimer_hi": lambda group: (_clock(group) >> U64.type(32)).astype(np.uint32),
  "%envreg1": lambda group: U32.type(group.cohort.dispatch.workspace >> 32),
  "%envreg2": lambda group: U32.type(group.cohort.dispatch.workspace & 0xFFFFFFFF),
  "%dynamic_smem_size": lambda group: U32.type(group.cohort.shared.dynamic),
  "%total_smem_size": lambda group: U32.type(group.cohort.shared.used),
  **{name: _reserved(offset) for name, offset in RESERVED.items()},
  "%reserved_smem_offset_end": lambda group: U32.type(group.cohort.shared.total),
  "%reserved_smem_offset_cap": lambda group: U32.type(len(group.cohort.shared.system)),
  "%aggr_smem_size": lambda group: U32.type(group.cohort.shared.aggregate),
}


def reader(name: str, dtype: Any) -> Callable[[Warps], Array]:
  """Reader of a special register in the width of an instruction."""
  read = REGISTERS[name]
  kind = np.dtype(f"u{dtype.itemsize}")

  def narrowed(group: Warps) -> Array:
    x = read(group)
    if x.dtype.kind == "b": return x if dtype.kind == "b" else x.astype(kind)
    return x if x.dtype is dtype else x.astype(kind).view(dtype)
  return narrowed
