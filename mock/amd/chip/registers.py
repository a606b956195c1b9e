"""Registers that a compute queue's packets write and read: which exist, which have an effect here, which have none.

A queue has its own copy of the persistent (SH) registers, as the chip keeps one for each hardware queue. The table
says of each register whether the mock models it (`MODELLED`), accepts it without effect (`ignores`, shown in the run's
report), or refuses it. Registers are known by their names: nearly all are at one place in all generations, and
`RegisterTable` has what differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Final

from tinyhw.arch import arch
from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import mqd
from tinyhw.core.errors import LayoutError, Unsupported
from tinyhw.core.layout import Register
from tinyhw.core.table import Handlers

USER_DATA: Final = gc.COMPUTE_USER_DATA_0.OFFSET
USER_DATA_COUNT: Final = 16



_OFFSETS: Final = {r.__name__: r.OFFSET for r in gc.REGISTERS}
_NAMES: Final = {r.OFFSET: r.__name__ for r in reversed(gc.REGISTERS)}


def name_of(offset: int) -> str:
  """The vendor's name, or the offset in hex."""
  return _NAMES.get(offset, f"register {offset:#x}")


MODELLED: Final[frozenset[int]] = frozenset(
  r.OFFSET
  for r in (
    gc.COMPUTE_START_X,
    gc.COMPUTE_START_Y,
    gc.COMPUTE_START_Z,
    gc.COMPUTE_NUM_THREAD_X,
    gc.COMPUTE_NUM_THREAD_Y,
    gc.COMPUTE_NUM_THREAD_Z,
    gc.COMPUTE_PGM_LO,
    gc.COMPUTE_PGM_HI,
    gc.COMPUTE_DISPATCH_SCRATCH_BASE_LO,
    gc.COMPUTE_DISPATCH_SCRATCH_BASE_HI,
    gc.COMPUTE_PGM_RSRC1,
    gc.COMPUTE_PGM_RSRC2,
    gc.COMPUTE_PGM_RSRC3,
    gc.COMPUTE_TMPRING_SIZE,
  )
) | frozenset(range(USER_DATA, USER_DATA + USER_DATA_COUNT))

ignored: Final[Handlers[int]] = Handlers("register", name=name_of)
ignored.ignores(
  gc.COMPUTE_STATIC_THREAD_MGMT_SE0.OFFSET,
  gc.COMPUTE_STATIC_THREAD_MGMT_SE1.OFFSET,
  gc.COMPUTE_STATIC_THREAD_MGMT_SE2.OFFSET,
  gc.COMPUTE_STATIC_THREAD_MGMT_SE3.OFFSET,
  gc.COMPUTE_STATIC_THREAD_MGMT_SE4.OFFSET,
  gc.COMPUTE_STATIC_THREAD_MGMT_SE5.OFFSET,
  gc.COMPUTE_STATIC_THREAD_MGMT_SE6.OFFSET,
  gc.COMPUTE_STATIC_THREAD_MGMT_SE7.OFFSET,
  gc.COMPUTE_RESOURCE_LIMITS.OFFSET,
  gc.COMPUTE_DISPATCH_INTERLEAVE.OFFSET,
  why="a dispatch has the whole chip to itself",
)
ignored.ignores(
  gc.COMPUTE_RESTART_X.OFFSET,
  gc.COMPUTE_RESTART_Y.OFFSET,
  gc.COMPUTE_RESTART_Z.OFFSET,
  why="dispatches are never preempted half-way",
)
ignored.ignores(
  gc.COMPUTE_PERFCOUNT_ENABLE.OFFSET,
  gc.COMPUTE_PIPELINESTAT_ENABLE.OFFSET,
  gc.COMPUTE_THREAD_TRACE_ENABLE.OFFSET,
  gc.COMPUTE_MISC_RESERVED.OFFSET,
  gc.COMPUTE_REQ_CTRL.OFFSET,
  gc.COMPUTE_SHADER_CHKSUM.OFFSET,
  gc.COMPUTE_USER_ACCUM_0.OFFSET,
  gc.COMPUTE_USER_ACCUM_1.OFFSET,
  gc.COMPUTE_USER_ACCUM_2.OFFSET,
  gc.COMPUTE_USER_ACCUM_3.OFFSET,
  gc.COMPUTE_DISPATCH_TUNNEL.OFFSET,
  why="no performance counters, thread traces or queue tunnels are modelled",
)
ignored.ignores(
  gc.COMPUTE_DISPATCH_PKT_ADDR_LO.OFFSET,
  gc.COMPUTE_DISPATCH_PKT_ADDR_HI.OFFSET,
  gc.COMPUTE_DISPATCH_ID.OFFSET,
  gc.COMPUTE_THREADGROUP_ID.OFFSET,
  why="only a debugger reads it",
)
ignored.ignores(
  gc.TA_CS_BC_BASE_ADDR.OFFSET, gc.TA_CS_BC_BASE_ADDR_HI.OFFSET, why="no sampler border colours are modelled"
)
ignored.ignores(gc.GRBM_GFX_INDEX.OFFSET, why="all shader engines are one")

_SETTINGS: Final = tuple(r.OFFSET for r in (
  gc.COMPUTE_PGM_LO, gc.COMPUTE_PGM_HI, gc.COMPUTE_PGM_RSRC1, gc.COMPUTE_PGM_RSRC2, gc.COMPUTE_PGM_RSRC3,
  gc.COMPUTE_TMPRING_SIZE, gc.COMPUTE_DISPATCH_SCRATCH_BASE_LO, gc.COMPUTE_DISPATCH_SCRATCH_BASE_HI,
  gc.COMPUTE_NUM_THREAD_X, gc.COMPUTE_NUM_THREAD_Y, gc.COMPUTE_NUM_THREAD_Z, gc.COMPUTE_START_X, gc.COMPUTE_START_Y,
  gc.COMPUTE_START_Z))

# What init_mqd of the kernel's managers sets (kfd_mqd_manager_v9.c, v11.c, v12.c); gfx12's SE8 stays zero.
_UNITS: Final = frozenset(f"COMPUTE_STATIC_THREAD_MGMT_SE{n}" for n in range(8))


@dataclass(frozen=True, eq=False)
class RegisterTable:
  """A generation's registers: `known` are those at each offset (a few have two names), `kept` what comes back with a
  queue that was off its engine (the descriptor's preloaded dwords), `initial` what descriptors start with: every
  compute unit enabled, all else zero."""
  declared: ModuleType
  version: str
  known: Mapping[int, list[type[Register]]]
  kept: frozenset[int]
  initial: Mapping[int, int]
  modelled: frozenset[int]
  rsrc3: int
  settings: tuple[int, ...]  # what decides a dispatch, apart from its grid and user data

  def name_of(self, offset: int) -> str:
    """The vendor's name, or the offset in hex."""
    known = self.known.get(offset)
    return known[0].__name__ if known else f"register {offset:#x}"

  def bits_of(self, offset: int) -> int:
    """The bits that a register has."""
    return sum((1 << f.width) - 1 << f.lo for f in self.known[offset][0].FIELDS)

  def check_write(self, offset: int, value: int) -> str | None:
    """Whether a write is legal: None, or why it has no effect. Raises Unsupported, or DecodeError for undeclared bits.
    """
    known = self.known.get(offset)
    if known is None: raise Unsupported("register", f"{offset:#x}", where=self.version)
    if offset in self.modelled:
      if len(known) == 1: known[0].decode(value)
      return None
    why = ignored.why_ignored(_OFFSETS.get(known[0].__name__, -1))
    if why is None: raise Unsupported("register", known[0].__name__, where="write by a packet")
    return why


@cache
def registers_of(card: str) -> RegisterTable:
  """The registers of a card's generation."""
  known = arch(card)
  declared, found = known.gc, dict[int, list[type[Register]]]()
  for register in declared.REGISTERS: found.setdefault(register.OFFSET, []).append(register)
  rsrc3: int = declared.COMPUTE_PGM_RSRC3.OFFSET
  moved = {gc.COMPUTE_PGM_RSRC3.OFFSET: rsrc3}
  for offset in MODELLED:
    at = moved.get(offset, offset)
    if found[at][0].__name__ != name_of(offset): raise LayoutError(f"is not at {at:#x}", where=name_of(offset))
  preload = getattr(mqd, f"PRELOAD_{known.pm4.upper()}")
  return RegisterTable(
    declared, f"GC {known.registers.removeprefix('gc_').replace('_', '.')}", found,
    frozenset(r.OFFSET for r in declared.REGISTERS if r.__name__ in preload),
    {r.OFFSET: 0xFFFF_FFFF for r in declared.REGISTERS if r.__name__ in _UNITS},
    frozenset(moved.get(offset, offset) for offset in MODELLED), rsrc3, tuple(moved.get(s, s) for s in _SETTINGS))
