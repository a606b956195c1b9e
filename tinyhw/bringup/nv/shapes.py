"""Shapes of blocks and grids, atomics, more blocks than the card holds, chains, QMDs that travel inline, clusters."""
from __future__ import annotations

from typing import Any, Final

import numpy as np

from tinyhw.bringup.bench import first_wrong, same
from tinyhw.bringup.nv.bench import NvBench
from tinyhw.bringup.nv.ladder import NV
from tinyhw.bringup.nv.programs import kernel, stored
from tinyhw.bringup.rung import Absent
from tinyhw.drive.base import Launch

_SHAPES: Final = ((1, 1, 1), (32, 1, 1), (33, 1, 1), (1, 32, 1), (1, 1, 32), (7, 5, 3), (16, 16, 4), (2, 256, 2),
                  (1024, 1, 1), (1, 1024, 1), (31, 33, 1), (17, 1, 60), (4, 4, 64))
_QMD: Final = "the QMD's dimensions of a block"


@NV.rung("shapes.blocks", needs=("waves.lanes", "waves.masks"), seconds=30,
         why="Every shape of a block, to the largest, and a last warp that is not full.")
def blocks(b: NvBench) -> str:
  for x, y, z in _SHAPES:
    count = x * y * z
    found = stored(b, "blocks", count + 32, block=(x, y, z), numbers=(x, y))
    wanted = [i % x | i // x % y << 10 | i // (x * y) << 20 for i in range(count)] + [0xEEEE_EEEE] * 32
    first_wrong(found, wanted, f"threads of a block of {x} x {y} x {z}", _QMD)
  return f"{len(_SHAPES)} shapes"


@NV.rung("shapes.counts", needs=("waves.groups",), seconds=10,
         why="Reductions of all threads meet at one word, and none is lost.")
def counts(b: NvBench) -> str:
  same(stored(b, "counts", 1, (12, 1, 1), (96, 1, 1), (3, 0), 0)[0], 12 * 96 * 3, "the sum of 1,152 threads",
       "red.global.add, and atomics of L2")
  return "1,152 threads"


@NV.rung("shapes.returns", needs=("shapes.counts",), seconds=10,
         why="An atomic that returns gives each thread another number: locks and queues are made of that.")
def returns(b: NvBench) -> str:
  count = 4 * 64
  found = stored(b, "returns", count + 16, (4, 1, 1), (64, 1, 1), fill=0)
  first_wrong(found[16:], [1] * count, "how often each number came back", "atom.global.add")
  return f"{count} threads, {count} numbers"


@NV.rung("shapes.many", needs=("shapes.counts",), seconds=30,
         why="More blocks than the card holds at a time: each starts once, when there is room.")
def many(b: NvBench) -> str:
  count = b.bare_gpu.sms * b.bare_gpu.warps_per_sm + 77
  first_wrong(stored(b, "many", count, (count, 1, 1), (32, 1, 1), fill=0), [1] * count, "how often each block ran",
              "the QMD's raster, and the work distributor")
  return f"{count:,} blocks"


def _chained(start: list[int], times: int) -> list[int]:
  for n in range(times): start = [(v * 3 + n) & 0xFFFFFFFF for v in start]
  return start


@NV.rung("shapes.behind", needs=("waves.lanes",), seconds=10,
         why="A launch sees what the launch before it stored: each waits for idle.")
def behind(b: NvBench) -> str:
  runtime, program = b.runtime, kernel(b, "chain")
  out: Any = np.arange(64, dtype=np.uint32)
  buffer = runtime.alloc(out.nbytes)
  runtime.copyin(buffer, memoryview(out.view(np.uint8)))
  for n in range(8): program([buffer], [3, n], (1, 1, 1), (64, 1, 1))
  other = runtime.alloc(out.nbytes)
  for n in range(8, 16):  # with a copy between: two channels, one order
    runtime.copy(other, buffer, out.nbytes)
    buffer, other = other, buffer
    program([buffer], [3, n], (1, 1, 1), (64, 1, 1))
  runtime.copyout(memoryview(out.view(np.uint8)), buffer)
  for used in (buffer, other): runtime.free(used)
  first_wrong(out.tolist(), _chained(list(range(64)), 16), "16 launches, each of which needs the one before",
              "WFI before SEND_PCAS, the invalidation of caches, and waits between channels")
  return "8 launches, and 8 with a copy before each"


@NV.rung("shapes.chain", needs=("shapes.behind",), seconds=15,
         why="Launches of which each schedules the next (DEPENDENT_QMD_POINTER), as a replay makes them.")
def chain(b: NvBench) -> str:
  runtime, program = b.runtime, kernel(b, "chain")
  out: Any = np.arange(64, dtype=np.uint32)
  buffer = runtime.alloc(out.nbytes)
  runtime.copyin(buffer, memoryview(out.view(np.uint8)))
  runner = runtime.runner([Launch(program, (0,), (1, 1, 1), (64, 1, 1))] * 4)
  for _ in range(2): runner([buffer], [[3, n] for n in range(4)])
  runtime.copyout(memoryview(out.view(np.uint8)), buffer)
  runtime.free(buffer)
  first_wrong(out.tolist(), _chained(_chained(list(range(64)), 4), 4), "a chain of 4 launches, twice",
              "the QMD's DEPENDENT_QMD_POINTER, and its release")
  return "4 launches, twice"


@NV.rung("shapes.inline", needs=("waves.lanes",), seconds=10,
         why="A QMD can travel in the pushbuffer (LOAD_INLINE_QMD_DATA), whose last word schedules it.")
def inline(b: NvBench) -> str:
  runtime = b.runtime
  runtime.inline_qmd = True
  try:
    made = kernel(b, "lanes")
    out: Any = np.full(64, 7, np.uint32)
    buffer = runtime.alloc(out.nbytes)
    runtime.copyin(buffer, memoryview(out.view(np.uint8)))
    made([buffer], [0, 0], (1, 1, 1), (64, 1, 1))
    runtime.copyout(memoryview(out.view(np.uint8)), buffer)
    count = len(runtime.last_submission())
  finally: runtime.inline_qmd = False
  runtime.free(buffer)
  first_wrong(out.tolist(), list(range(64)), "a launch by an inline QMD",
         "SET_INLINE_QMD_ADDRESS, LOAD_INLINE_QMD_DATA")
  return f"{count} methods"


@NV.rung("shapes.clusters", needs=("waves.shared",), seconds=10,
         why="Blocks of a cluster read each other's shared memory; the grid counts clusters.")
def clusters(b: NvBench) -> str:
  runtime = b.runtime
  if runtime.arch.bank0.clusters is None: raise Absent(f"{runtime.arch.name} has no clusters")
  out: Any = np.zeros(64, np.uint32)
  buffer = runtime.alloc(out.nbytes)
  assert buffer.address is not None
  runtime.copyin(buffer, memoryview(out.view(np.uint8)))
  kernel(b, "around").launch(buffer.address.to_bytes(8, "little"), (6, 1, 1), (1, 1, 1), cluster=(2, 1, 1))
  runtime.copyout(memoryview(out.view(np.uint8)), buffer)
  runtime.free(buffer)
  first_wrong(out.tolist(), [10000 * (n // 2) + 300 + (n ^ 1) for n in range(6)] + [0] * 58,
              "what 6 blocks in clusters of 2 find", "the QMD's cluster dimensions, GRID_WIDTH, and bank 0")
  return "3 clusters of 2 blocks"
