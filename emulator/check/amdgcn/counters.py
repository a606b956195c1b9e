"""The counters of outstanding work of each generation, as data: what counts up which, in what order, and what waits.

Sources: RDNA3 ISA manual, section 5.6 "Data Dependency Resolution" and S_WAITCNT; RDNA4, 5.7 "Data Dependency
Resolution" with table 26; CDNA3, 4.4 "Data Dependency Resolution".
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Final

Order = tuple[str, str]  # (counter, queue within it); work of one queue completes in order, of "" in any order


@dataclass(frozen=True)
class Counters:
  """`events`: kind of instruction (see `effects`) -> what it counts. `waits`: mnemonic -> counter -> (bit, width)
  pieces of SIMM16, low bits first. `wait_all` are instructions that wait for everything."""
  events: dict[str, tuple[Order, ...]]
  waits: dict[str, dict[str, tuple[tuple[int, int], ...]]]
  wait_all: frozenset[str]

  @property
  def orders(self) -> frozenset[Order]:
    """Every queue."""
    return frozenset(o for events in self.events.values() for o in events)


_LOAD, _SAMPLE, _BVH, _STORE = ("vmcnt", "load"), ("vmcnt", "sample"), ("vmcnt", "bvh"), ("vscnt", "store")
_LDS, _SMEM = ("lgkmcnt", "lds"), ("lgkmcnt", "")
GFX11: Final = Counters(
  events={
    "vmem_load": (_LOAD,), "vmem_store": (_STORE,), "vmem_lds": (_LOAD,), "sample": (_SAMPLE,), "bvh": (_BVH,),
    "flat_load": (_LOAD, _LDS), "flat_store": (_STORE, _LDS), "lds": (_LDS,), "gds": (("lgkmcnt", "gds"),),
    "smem": (_SMEM,), "message": (("lgkmcnt", "message"),), "message_rtn": (("lgkmcnt", "message_rtn"),),
    "export": (("expcnt", ""),), "lds_direct": (("expcnt", "lds"),)},
  waits={
    "s_waitcnt": {"expcnt": ((0, 3),), "lgkmcnt": ((4, 6),), "vmcnt": ((10, 6),)},
    **{f"s_waitcnt_{c}": {c: ((0, 6),)} for c in ("vmcnt", "vscnt", "lgkmcnt", "expcnt")}},
  wait_all=frozenset({"s_wait_idle"}))

_LOAD, _STORE, _LDS, _KM = ("loadcnt", "load"), ("storecnt", "store"), ("dscnt", "lds"), ("kmcnt", "")
GFX12: Final = Counters(
  events={
    "vmem_load": (_LOAD,), "vmem_store": (_STORE,), "vmem_lds": (_LOAD,), "sample": (("samplecnt", "sample"),),
    "bvh": (("bvhcnt", "bvh"),), "invalidate": (_LOAD,), "writeback": (_STORE,), "flat_load": (_LOAD, _LDS),
    "flat_store": (_STORE, _LDS), "lds": (_LDS,), "gds": (_LDS,), "smem": (_KM,), "message": (("kmcnt", "message"),),
    "message_rtn": (("kmcnt", "message_rtn"),), "export": (("expcnt", ""),), "lds_direct": (("expcnt", "lds"),)},
  waits={
    **{f"s_wait_{c}cnt": {f"{c}cnt": ((0, 6),)} for c in ("load", "store", "sample", "bvh", "exp", "ds", "km")},
    "s_wait_loadcnt_dscnt": {"dscnt": ((0, 6),), "loadcnt": ((8, 6),)},
    "s_wait_storecnt_dscnt": {"dscnt": ((0, 6),), "storecnt": ((8, 6),)}},
  wait_all=frozenset({"s_wait_idle"}))

_VMEM, _LDS = ("vmcnt", "vmem"), ("lgkmcnt", "lds")
GFX9: Final = Counters(
  events={
    "vmem_load": (_VMEM,), "vmem_store": (_VMEM,), "vmem_lds": (_VMEM,), "sample": (_VMEM,),
    # "the only sensible S_WAITCNT value to use after FLAT instructions is zero" (section 9.3)
    "flat_load": (("vmcnt", ""), ("lgkmcnt", "")), "flat_store": (("vmcnt", ""), ("lgkmcnt", "")),
    "lds": (_LDS,), "gds": (("lgkmcnt", "gds"),), "smem": (("lgkmcnt", ""),), "message": (("lgkmcnt", "message"),),
    "export": (("expcnt", ""),)},
  waits={"s_waitcnt": {"vmcnt": ((0, 4), (14, 2)), "expcnt": ((4, 3),), "lgkmcnt": ((8, 4),)}},
  wait_all=frozenset())

COUNTERS: Final[dict[str, Counters]] = {"gfx11": GFX11, "gfx12": GFX12, "gfx9": GFX9}
LDS_COUNTERS: Final = frozenset({"lgkmcnt", "dscnt"})  # what an access to LDS counts, of a flat instruction too
