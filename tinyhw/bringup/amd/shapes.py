"""All shapes of workgroups and grids, atomics of waves, more waves than the chip holds, launches behind each other."""
from __future__ import annotations

from typing import Final

from tinyhw.bringup.amd.bench import VRAM, AmdBench, BenchMemory
from tinyhw.bringup.amd.copies import fetch, put
from tinyhw.bringup.amd.ladder import AMD
from tinyhw.bringup.amd.programs import LANE, RungCode, core_waves, launched, output
from tinyhw.bringup.amd.waves import stored
from tinyhw.bringup.bench import first_wrong, same

_SHAPES: Final = ((1, 1, 1), (32, 1, 1), (33, 1, 1), (1, 32, 1), (1, 1, 32), (7, 5, 3), (16, 16, 4), (2, 256, 2),
                  (1024, 1, 1), (1, 1024, 1), (31, 33, 1), (3, 3, 113))
_PACKED: Final = """v_and_b32_e32 v1, 0x3ff, v0
  v_bfe_u32 v2, v0, 10, 10
  v_bfe_u32 v3, v0, 20, 10
  v_mul_lo_u32 v4, v3, s3
  v_add_nc_u32_e32 v4, v4, v2
  v_mul_lo_u32 v4, v4, s2
  v_add_nc_u32_e32 v4, v4, v1
  v_lshlrev_b32_e32 v4, 2, v4
  global_store_b32 v4, v0, s[0:1]
  s_endpgm"""


def _zeros(b: AmdBench, words: int) -> BenchMemory:
  """Zeros in the card's own memory, where atomics are GL2's: of the system's, a bus need not carry them."""
  near = b.take(4 * words, VRAM, host=False)
  put(b, near, bytes(4 * words))
  return near


def _words(b: AmdBench, near: BenchMemory, count: int) -> list[int]:
  return list(memoryview(fetch(b, near, 4 * count)).cast("I"))


@AMD.rung("shapes.blocks", needs=("waves.lanes", "waves.exec"), seconds=20,
          why="Every shape of a workgroup, to the largest: packed ids, and a last wave that is not full.")
def blocks(b: AmdBench) -> str:
  for wave in b.arch.wave_sizes:
    for x, y, z in _SHAPES:
      count = x * y * z
      found = stored(b, _PACKED, count + 64, block=(x, y, z), users=(x, y), wave=wave)
      wanted = [i % x | i // x % y << 10 | i // (x * y) << 20 for i in range(count)] + [0xEEEE_EEEE] * 64
      first_wrong(found, wanted, f"work-items of a workgroup of {x} x {y} x {z}, waves of {wave}",
                  "COMPUTE_NUM_THREAD_X to Z, and the SPI's packed ids")
  return f"{len(_SHAPES)} shapes, waves of {' and '.join(map(str, b.arch.wave_sizes))}"


@AMD.rung("shapes.counts", needs=("waves.lanes", "copies.vram"), seconds=10,
          why="Atomics of all lanes meet at one word, and none is lost.")
def counts(b: AmdBench) -> str:
  text = """v_mov_b32_e32 v2, 0
    v_mov_b32_e32 v3, s2
    global_atomic_add_u32 v2, v3, s[0:1]
    s_endpgm"""
  code, out = RungCode(b, text), _zeros(b, 2)
  b.compute.finish(launched(b, b.pm4(), code, out.address, (12, 1, 1), (96, 1, 1), users=(3, 0)), "atomics of GL2")
  same(_words(b, out, 1)[0], 12 * 96 * 3, "the sum of 1,152 lanes", "global_atomic_add_u32, and atomics of GL2")
  for buffer in (code.memory, out): b.free(buffer)
  return "1,152 lanes"


@AMD.rung("shapes.returns", needs=("shapes.counts",), seconds=10,
          why="An atomic that returns gives each lane another number: locks and queues are made of that.")
def returns(b: AmdBench) -> str:
  text = """v_mov_b32_e32 v2, 0
    v_mov_b32_e32 v3, 1
    global_atomic_add_u32 v4, v2, v3, s[0:1] {returns}
    {wait}
    v_lshlrev_b32_e32 v4, 2, v4
    v_mov_b32_e32 v5, 1
    global_atomic_add_u32 v4, v5, s[0:1] offset:64
    s_endpgm"""
  count = 4 * 64
  code, out = RungCode(b, text), _zeros(b, count + 64)
  b.compute.finish(launched(b, b.pm4(), code, out.address, (4, 1, 1), (64, 1, 1)), "atomics of GL2")
  first_wrong(_words(b, out, 16 + count)[16:], [1] * count, "how often each number came back", "the returned value")
  for buffer in (code.memory, out): b.free(buffer)
  return f"{count} lanes, {count} numbers"


@AMD.rung("shapes.many", needs=("shapes.counts", "waves.groups"), seconds=30,
          why="More workgroups than the chip holds at a time: each starts once, when there is room.")
def many(b: AmdBench) -> str:
  text = LANE + """{groups}
    s_lshl_b32 s7, s4, 2
    v_mov_b32_e32 v2, s7
    v_mov_b32_e32 v3, 1
    v_cmp_eq_u32_e32 {vcc}, 0, v1
    s_and_saveexec_{bits} {saved}, {vcc}
    global_atomic_add_u32 v2, v3, s[0:1]
    s_endpgm"""
  held = core_waves(b)
  count = held + 77
  code, out = RungCode(b, text), _zeros(b, count)
  b.compute.finish(launched(b, b.pm4(), code, out.address, (count, 1, 1), (32, 1, 1)), "the workgroup dispatcher (SPI)")
  first_wrong(_words(b, out, count), [1] * count, "how often each workgroup ran", "the workgroup dispatcher (SPI)")
  for buffer in (code.memory, out): b.free(buffer)
  return f"{count:,} workgroups, {held:,} waves at a time"


@AMD.rung("shapes.chain", needs=("waves.lanes",), seconds=10,
          why="A launch behind a barrier sees what the launch before it stored (CS_PARTIAL_FLUSH, ACQUIRE_MEM).")
def chain(b: AmdBench) -> str:
  text = LANE + """global_load_b32 v3, v2, s[0:1]
    {wait}
    v_mul_lo_u32 v3, v3, s2
    v_add_nc_u32_e32 v3, s3, v3
    global_store_b32 v2, v3, s[0:1]
    s_endpgm"""
  code, out = RungCode(b, text), output(b, 64, 0)
  words = out.words
  for i in range(64): words[i] = i
  c, times = b.pm4(), 8
  for n in range(times): launched(b, c, code, out.address, block=(64, 1, 1), users=(3, n))
  b.compute.finish(c, "EVENT_WRITE CS_PARTIAL_FLUSH and ACQUIRE_MEM between dispatches")
  wanted = list(range(64))
  for n in range(times): wanted = [(v * 3 + n) & 0xFFFFFFFF for v in wanted]
  first_wrong(words[:64].tolist(), wanted, f"{times} launches, each of which needs the one before",
              "EVENT_WRITE CS_PARTIAL_FLUSH and ACQUIRE_MEM between dispatches")
  words.release()
  for buffer in (code.memory, out): b.free(buffer)
  return f"{times} launches in one submission"
