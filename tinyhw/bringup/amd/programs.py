"""Machine code of the rungs, and its launch by registers alone: no code object, no loader.

A program is text for the project's assembler, in the names of RDNA. What generations write in different ways stands as
a word in braces, and so do registers of a bit for each lane; other names are translated (`written`). In each program
s[0:1] is the buffer, s2 and s3 are two numbers, s4 to s6 the workgroup's ids, v0 the work-item's ids, packed in 10 bits
each (AMDGPUUsage, "Initial Kernel Execution State").
"""
from __future__ import annotations

import re
from typing import Any, Final

from tinyhw.bringup.amd.bench import PAGE, VRAM, AmdBench, BenchMemory
from tinyhw.bringup.rung import Absent
from tinyhw.drive.amd.commands import ComputeCommands, register
from tinyhw.isa.amdgcn import table
from tinyhw.isa.amdgcn.program import program

Size = tuple[int, int, int]
_USERS: Final = 4
_VGPRS: Final = 32
_SGPRS: Final = 48     # 32 of a program, and VCC, FLAT_SCRATCH and XNACK_MASK behind them, where waves allocate SGPRs
_FLOATS: Final = 0xC0  # FLOAT_MODE: denormals of 16 and 64 bits are kept (AMDGPUUsage, the default)
_BEHIND: Final = 512   # bytes behind a program that its fetches may touch
_WORDS: Final = {
  "gfx9": {"wait": "s_waitcnt vmcnt(0) lgkmcnt(0)", "barrier": "s_barrier", "groups": "", "returns": "sc0",
           "stored": "s_waitcnt vmcnt(0)", "fresh": "sc0 sc1"},
  "gfx11": {"wait": "s_waitcnt vmcnt(0) lgkmcnt(0)", "barrier": "s_barrier", "groups": "", "returns": "glc",
            "stored": "s_waitcnt_vscnt null, 0x0", "fresh": "glc dlc"},
  "gfx12": {"wait": "s_wait_loadcnt 0x0\ns_wait_dscnt 0x0\ns_wait_kmcnt 0x0",
            "barrier": "s_barrier_signal -1\ns_barrier_wait -1", "returns": "th:TH_ATOMIC_RETURN",
            "groups": "s_mov_b32 s4, ttmp9\ns_and_b32 s5, ttmp7, 0xffff\ns_lshr_b32 s6, ttmp7, 16",
            "stored": "s_wait_storecnt 0x0", "fresh": "scope:SCOPE_SYS"}}
# Of members of a generation that are spelled otherwise.
_WORDS_OF: Final = {"gfx90a": {"returns": "glc", "fresh": "glc"}}
# By wave size: registers that have a bit for each lane, SGPRs to keep one, and the kind of their instructions.
_MASKS: Final = {32: {"vcc": "vcc_lo", "exec": "exec_lo", "saved": "s10", "bits": "b32"},
                 64: {"vcc": "vcc", "exec": "exec", "saved": "s[10:11]", "bits": "b64"}}
# What a generation calls instructions whose names differ (CDNA3 and RDNA3 ISA manuals, chapters of the instructions).
_NAMES: Final[dict[str, dict[str, str]]] = {"gfx9": {
  "v_add_nc_u32_e32": "v_add_u32_e32", "v_sub_nc_u32_e32": "v_sub_u32_e32", "s_load_b32": "s_load_dword",
  "s_load_b64": "s_load_dwordx2", "global_load_b32": "global_load_dword", "global_store_b32": "global_store_dword",
  "global_atomic_add_u32": "global_atomic_add", "scratch_load_b32": "scratch_load_dword",
  "scratch_store_b32": "scratch_store_dword", "ds_load_b32": "ds_read_b32", "ds_store_b32": "ds_write_b32"}}


def own_wave(b: AmdBench) -> int:
  """Lanes of the card's waves; the fewest, where dispatches choose."""
  return b.arch.wave_sizes[0]


def written(b: AmdBench, text: str, wave: int | None = None) -> str:
  """A program as the card's generation writes it, for waves of that size. Raises Absent for a generation that nobody
  has written words for."""
  words = _WORDS.get(b.arch.isa)
  if words is None: raise Absent(f"the rungs' programs are not written for {b.arch.name} yet")
  words = words | _WORDS_OF.get(b.arch.table, {})
  for name, value in (words | _MASKS[wave or own_wave(b)]).items(): text = text.replace("{" + name + "}", value)
  names = _NAMES.get(b.arch.isa, {})
  return re.sub(r"(?a)\b[a-z]+_[a-z]\w*", lambda m: names.get(m[0], m[0]), text)


def assembled(b: AmdBench, text: str, wave: int | None = None) -> bytes:
  """Machine code of a program for the card and waves of that size."""
  return b"".join(i.code for i in program(written(b, text, wave), table(b.arch.table), "a rung"))


class RungCode:
  """A program in executable memory."""

  def __init__(self, b: AmdBench, text: str, wave: int | None = None) -> None:
    data = assembled(b, text, wave)
    self.memory = b.take(len(data) + _BEHIND, executable=True)
    self.put(data)

  def put(self, data: bytes) -> None:
    """Have other code there."""
    self.memory.fill(0)
    self.memory.bytes[:len(data)] = data


def launched(b: AmdBench, c: ComputeCommands, code: RungCode, buffer: int, grid: Size = (1, 1, 1),
             block: Size = (32, 1, 1), *, users: tuple[int, int] = (0, 0), wave: int | None = None, lds: int = 0,
             scratch: BenchMemory | None = None, lane_bytes: int = 0, barrier: bool = True) -> ComputeCommands:
  """Append a launch: the barrier in front of it, its registers, and the dispatch. Waves have `wave` lanes, or as
  many as the card's have."""
  gc, arch, wave = b.arch.gc, b.arch, wave or own_wave(b)
  if barrier: c.memory_barrier()
  entry = code.memory.address
  unit = arch.vgpr_unit[wave]
  sgprs = 2 * (_SGPRS // arch.sgpr_granule - 1) if arch.simd_sgprs else 0  # in eights, of which waves take two
  rsrc1 = register(gc.COMPUTE_PGM_RSRC1, VGPRS=_VGPRS // unit - 1, SGPRS=sgprs, FLOAT_MODE=_FLOATS,
                   PRIV=int(arch.saved_privileged), **_of(gc.COMPUTE_PGM_RSRC1, MEM_ORDERED=1))
  rsrc2 = register(gc.COMPUTE_PGM_RSRC2, SCRATCH_EN=int(scratch is not None), USER_SGPR=_USERS, TGID_X_EN=1,
                   TGID_Y_EN=1, TGID_Z_EN=1, TIDIG_COMP_CNT=2, LDS_SIZE=-(-lds // arch.lds_granule))
  base = 0 if scratch is None else scratch.address
  c.registers(register(gc.COMPUTE_PGM_LO, DATA=entry >> 8 & 0xFFFFFFFF), register(gc.COMPUTE_PGM_HI, DATA=entry >> 40))
  c.registers(register(gc.COMPUTE_DISPATCH_SCRATCH_BASE_LO, DATA=base >> 8 & 0xFFFFFFFF),
              register(gc.COMPUTE_DISPATCH_SCRATCH_BASE_HI, DATA=base >> 40), rsrc1, rsrc2)
  c.registers(register(gc.COMPUTE_PGM_RSRC3, **_of(gc.COMPUTE_PGM_RSRC3, ACCUM_OFFSET=_VGPRS // 4 - 1)))
  c.registers(register(gc.COMPUTE_RESOURCE_LIMITS))
  ring = register(gc.COMPUTE_TMPRING_SIZE) if scratch is None else register(
    gc.COMPUTE_TMPRING_SIZE, WAVES=scratch_waves(b), WAVESIZE=-(-lane_bytes * wave // arch.scratch_granule))
  c.registers(ring)
  c.registers(register(gc.COMPUTE_RESTART_X), register(gc.COMPUTE_RESTART_Y), register(gc.COMPUTE_RESTART_Z))
  c.registers(register(gc.COMPUTE_START_X), register(gc.COMPUTE_START_Y), register(gc.COMPUTE_START_Z),
              register(gc.COMPUTE_NUM_THREAD_X, NUM_THREAD_FULL=block[0]),
              register(gc.COMPUTE_NUM_THREAD_Y, NUM_THREAD_FULL=block[1]),
              register(gc.COMPUTE_NUM_THREAD_Z, NUM_THREAD_FULL=block[2]))
  c.user_data((buffer & 0xFFFFFFFF, buffer >> 32, *users), {})
  start = register(gc.COMPUTE_DISPATCH_INITIATOR, COMPUTE_SHADER_EN=1, FORCE_START_AT_000=1,
                   **_of(gc.COMPUTE_DISPATCH_INITIATOR, CS_W32_EN=int(wave == 32)))
  p = arch.packets
  return c._put(p.DISPATCH_DIRECT(dim_x=grid[0], dim_y=grid[1], dim_z=grid[2], dispatch_initiator=start.value()))


def _of(kind: Any, **fields: int) -> dict[str, int]:
  """Those of the fields that a register of the card's generation has."""
  return {f.name: fields[f.name] for f in kind.FIELDS if f.name in fields}


def core_waves(b: AmdBench) -> int:
  """Waves that run at one time on a graphics core; a PM4 queue is one core's (XCC), whatever the card has."""
  return b.node.max_waves // b.node.xccs


def _scratch_parts(b: AmdBench) -> int:
  """Among how many parts of a graphics core scratch is shared out."""
  return b.node.shader_engines // b.node.xccs if b.arch.scratch_by_engine else 1


def scratch_waves(b: AmdBench) -> int:
  """Waves of such a part that may have scratch at one time."""
  field = next(f for f in b.arch.gc.COMPUTE_TMPRING_SIZE.FIELDS if f.name == "WAVES")
  return min(core_waves(b) // _scratch_parts(b), int(field.limit))


def scratch_for(b: AmdBench, lane_bytes: int, wave: int | None = None) -> BenchMemory:
  """Memory for the scratch of as many waves as a graphics core has room for."""
  a_wave = -(-lane_bytes * (wave or own_wave(b)) // b.arch.scratch_granule) * b.arch.scratch_granule
  return b.take(a_wave * scratch_waves(b) * _scratch_parts(b), VRAM, host=False)


def output(b: AmdBench, words: int, fill: int = 0xEE) -> BenchMemory:
  """Memory that a program stores to, filled with a byte."""
  made = b.take(max(4 * words, PAGE))
  made.fill(fill)
  return made


LANE: Final = "v_and_b32_e32 v1, 0x3ff, v0\nv_lshlrev_b32_e32 v2, 2, v1\n"  # v1: x of the work-item, v2: 4 times that
END: Final = "s_endpgm"
STORE: Final = "v_mov_b32_e32 v2, 0\nv_mov_b32_e32 v3, s2\nglobal_store_b32 v2, v3, s[0:1]\ns_endpgm"
ONES: Final = LANE + "v_mov_b32_e32 v3, 1\nglobal_store_b32 v2, v3, s[0:1]\ns_endpgm"
