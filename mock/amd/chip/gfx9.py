"""What only gfx9's packets do, beside the handlers that all generations share (`pm4`): caches, and which XCC executes.

After Linux 6.12 `gfx_v9_4_3.c` (emit_mem_sync) and `soc15d.h`. A PM4 queue is one XCC's: packets behind a PRED_EXEC
that names other XCCs alone are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tinyhw.autogen import gc_9_4_3 as gc
from tinyhw.autogen import pm4_gfx9 as pm4
from tinyhw.core.errors import DecodeError, Unsupported
from tinyhw.core.layout import Packet
from tinyhw.mock.amd.chip.planning import ACQUIRED, Planning


def acquire_mem(queue: Planning, p: pm4.ACQUIRE_MEM) -> None:
  """At once. The bits are those of CP_COHER_CNTL; others there ask for nothing that compute has."""
  caches = gc.CP_COHER_CNTL.decode(p.coher_cntl)
  for name in ("CB_ACTION_ENA", "DB_ACTION_ENA"):
    if getattr(caches, name):
      raise Unsupported("PM4 field", f"ACQUIRE_MEM.coher_cntl {name}", arch=queue.gpu.card.name, where=queue.name)
  queue.machine.ignored.note(*ACQUIRED)


def pred_exec(queue: Planning, p: pm4.PRED_EXEC) -> None:
  """Execute the next `exec_count` dwords on the XCCs that `device_select` names."""
  frame = queue.frames[-1]
  if frame.at + p.exec_count > len(frame.words):
    raise DecodeError(f"PRED_EXEC of {p.exec_count} dwords, {len(frame.words) - frame.at} are left", where=queue.name)
  if not p.device_select >> queue.properties.target_xcc & 1:
    frame.at += p.exec_count


HANDLERS: Final[dict[type[Packet], Callable[[Any, Any], None]]] = {
  pm4.ACQUIRE_MEM: acquire_mem, pm4.PRED_EXEC: pred_exec}
