"""Waves: the first instruction, stores, initial registers, EXEC, branches, LDS, scratch, calls."""
from __future__ import annotations

import struct
from typing import Final

from tinyhw.bringup.amd.bench import AmdBench
from tinyhw.bringup.amd.ladder import AMD
from tinyhw.bringup.amd.programs import (
  END,
  LANE,
  ONES,
  STORE,
  RungCode,
  Size,
  launched,
  output,
  own_wave,
  scratch_for,
  written,
)
from tinyhw.bringup.bench import first_wrong, same

_LOOK: Final = "COMPUTE_PGM_RSRC1 to 3, the shader's address, and the SQ's status (umr --waves)"
_REST: Final = 0xEEEE_EEEE
_LANE_BYTES: Final = 64


def stored(b: AmdBench, text: str, words: int, grid: Size = (1, 1, 1), block: Size = (32, 1, 1), *,
           users: tuple[int, int] = (0, 0), wave: int | None = None, lds: int = 0, scratch_bytes: int = 0,
           look: str = _LOOK) -> list[int]:
  """Run a program to its end; the words of its buffer."""
  code, out = RungCode(b, text, wave), output(b, words)
  scratch = scratch_for(b, scratch_bytes, wave) if scratch_bytes else None
  if scratch is not None and b.arch.scratch_in_sgprs: users = scratch.address & 0xFFFFFFFF, scratch.address >> 32
  c = launched(b, b.pm4(), code, out.address, grid, block, users=users, wave=wave, lds=lds, scratch=scratch,
               lane_bytes=scratch_bytes)
  b.compute.finish(c, look)
  found = out.words[:words].tolist()
  for buffer in (code.memory, out, *([scratch] if scratch is not None else [])): b.free(buffer)
  return found


@AMD.rung("waves.end", needs=("queue.release",), seconds=5,
          why="A wave of one instruction, s_endpgm, starts and ends: fetch, dispatch and the end of a wave work.")
def end(b: AmdBench) -> str:
  stored(b, END, 1, look=_LOOK + "; is the code executable, and fetched from where it lies?")
  return "s_endpgm"


@AMD.rung("waves.store", needs=("waves.end",), seconds=5, why="The first effect of a wave: a word in memory.")
def store(b: AmdBench) -> str:
  found = stored(b, STORE, 2, users=(0x600D_C0DE, 0), block=(1, 1, 1))
  first_wrong(found, [0x600D_C0DE, _REST], "what one work-item stores", _LOOK)
  return f"{found[0]:#x}, of SGPR 2"


@AMD.rung("waves.users", needs=("waves.store",), seconds=5, why="User SGPRs carry arguments: all, in order.")
def users(b: AmdBench) -> str:
  text = "v_mov_b32_e32 v2, 0\n" + "".join(
    f"v_mov_b32_e32 v3, s{n}\nglobal_store_b32 v2, v3, s[0:1] offset:{4 * n}\n" for n in range(4)) + END
  code, out = RungCode(b, text), output(b, 4)
  b.compute.finish(launched(b, b.pm4(), code, out.address, block=(1, 1, 1), users=(7, 9)), _LOOK)
  first_wrong(out.words[:4].tolist(), [out.address & 0xFFFFFFFF, out.address >> 32, 7, 9], "SGPRs 0 to 3",
              "COMPUTE_USER_DATA_0 to 3, and COMPUTE_PGM_RSRC2.USER_SGPR")
  for buffer in (code.memory, out): b.free(buffer)
  return "4 SGPRs"


@AMD.rung("waves.lanes", needs=("waves.store",), seconds=5, why="Each lane knows its work-item: v0 of a wave.")
def lanes(b: AmdBench) -> str:
  found = stored(b, LANE + "global_store_b32 v2, v0, s[0:1]\ns_endpgm", 128, block=(96, 1, 1))
  first_wrong(found, [*range(96), *[_REST] * 32], "v0 of 96 work-items", "SPI: initial VGPRs (TIDIG_COMP_CNT)")
  return f"96 work-items of {-(-96 // own_wave(b))} waves"


@AMD.rung("waves.groups", needs=("waves.lanes",), seconds=5,
          why="Each wave knows its workgroup, in three dimensions: SGPRs behind the user's, or trap registers.")
def groups(b: AmdBench) -> str:
  text = """{groups}
    s_mul_i32 s7, s6, s3
    s_add_u32 s7, s7, s5
    s_mul_i32 s7, s7, s2
    s_add_u32 s7, s7, s4
    s_lshl_b32 s8, s5, 8
    s_lshl_b32 s9, s6, 16
    s_or_b32 s8, s8, s9
    s_or_b32 s8, s8, s4
    s_lshl_b32 s7, s7, 2
    v_mov_b32_e32 v2, s7
    v_mov_b32_e32 v3, s8
    global_store_b32 v2, v3, s[0:1]
    s_endpgm"""
  found = stored(b, text, 64, grid=(3, 4, 5), block=(1, 1, 1), users=(3, 4))
  wanted = [x | y << 8 | z << 16 for z in range(5) for y in range(4) for x in range(3)]
  first_wrong(found, wanted + [_REST] * 4, "ids of 3 x 4 x 5 workgroups", "SPI: TGID_X_EN and its kin; TTMP9 and TTMP7")
  return "60 workgroups"


@AMD.rung("waves.exec", needs=("waves.lanes",), seconds=5,
          why="EXEC says which lanes live: in a wave that is not full, and where a program changes it.")
def exec_(b: AmdBench) -> str:
  lane = "v_mbcnt_lo_u32_b32 v1, -1, 0\nv_lshlrev_b32_e32 v2, 2, v1\n"
  found = stored(b, ONES.replace(LANE, lane), 32, block=(13, 1, 1))
  first_wrong(found, [1] * 13 + [_REST] * 19, "stores of the lanes of 13 work-items", "EXEC of a workgroup's last wave")
  masked = LANE + "v_mov_b32_e32 v3, 1\ns_mov_b32 exec_lo, s2\nglobal_store_b32 v2, v3, s[0:1]\ns_endpgm"
  found = stored(b, masked, 32, users=(0x8421_F00F, 0))
  first_wrong(found, [1 if 0x8421_F00F >> i & 1 else _REST for i in range(32)], "stores under EXEC 0x8421f00f", "EXEC")
  return "13 of 32, and a mask of its own"


@AMD.rung("waves.wide", needs=("waves.exec",), seconds=5,
          why="Waves of 64: the upper half of EXEC, lanes 32 to 63.")
def wide(b: AmdBench) -> str:
  text = LANE + """v_mbcnt_lo_u32_b32 v3, -1, 0
    v_mbcnt_hi_u32_b32 v3, -1, v3
    s_mov_b32 exec_lo, s2
    s_mov_b32 exec_hi, s3
    global_store_b32 v2, v3, s[0:1]
    s_endpgm"""
  masks = 0xFFFF_00FF, 0x0F0F_8001
  found = stored(b, text, 64, block=(64, 1, 1), users=masks, wave=64)
  whole = masks[1] << 32 | masks[0]
  first_wrong(found, [i if whole >> i & 1 else _REST for i in range(64)], "lanes of a wave of 64 under EXEC",
              "EXEC_HI, and COMPUTE_DISPATCH_INITIATOR.CS_W32_EN")
  return "64 lanes, under a mask of both halves"


@AMD.rung("waves.numbers", needs=("waves.lanes",), seconds=5,
          why="Integers and floats of the vector units: sums, products, shifts, a fused multiply-add.")
def numbers(b: AmdBench) -> str:
  steps = ("v_add_nc_u32_e32 v3, s2, v1", "v_sub_nc_u32_e32 v3, s2, v1", "v_mul_lo_u32 v3, v1, s2",
           "v_mul_hi_u32 v3, v1, s2", "v_xor_b32_e32 v3, s2, v1", "v_lshlrev_b32_e32 v3, v1, v4",
           "v_fma_f32 v3, v5, v5, v5", "v_bfe_u32 v3, v4, v1, 7")
  text = LANE + "v_mov_b32_e32 v4, s2\nv_cvt_f32_u32_e32 v5, v1\n" + "".join(
    f"{step}\nglobal_store_b32 v2, v3, s[0:1] offset:{128 * i}\n" for i, step in enumerate(steps)) + END
  a = 0xDEAD_BEEF
  found = stored(b, text, 32 * len(steps), users=(a, 0))
  def bits(x: float) -> int: return int(struct.unpack("<I", struct.pack("<f", x))[0])
  wanted = [f(i) & 0xFFFFFFFF for f in (
    lambda i: a + i, lambda i: a - i, lambda i: a * i, lambda i: a * i >> 32, lambda i: a ^ i, lambda i: a << i,
    lambda i: bits(float(i * i + i)), lambda i: a >> i & 0x7F) for i in range(32)]
  for n, step in enumerate(steps):
    first_wrong(found[32 * n:32 * n + 32], wanted[32 * n:32 * n + 32], written(b, step),
                "the instruction, by its name")
  return f"{len(steps)} instructions in 32 lanes"


@AMD.rung("waves.branches", needs=("waves.store",), seconds=5,
          why="Loops and conditions: SCC, VCC and the program counter.")
def branches(b: AmdBench) -> str:
  text = LANE + """s_mov_b32 s7, 0
    s_mov_b32 s8, 0
    L0: s_add_u32 s7, s7, s8
    s_add_u32 s8, s8, 1
    s_cmp_lt_u32 s8, s2
    s_cbranch_scc1 L0
    v_mov_b32_e32 v3, s7
    v_cmp_gt_u32_e32 {vcc}, s3, v1
    s_and_saveexec_{bits} {saved}, {vcc}
    s_cbranch_execz L1
    v_add_nc_u32_e32 v3, 1, v3
    L1: s_mov_{bits} {exec}, {saved}
    global_store_b32 v2, v3, s[0:1]
    s_endpgm"""
  found = stored(b, text, 32, users=(10, 5))
  first_wrong(found, [46] * 5 + [45] * 27, "a loop's sum, and one more in 5 lanes", "SCC, VCC, and branch targets")
  return "a loop of 10, a branch over 5 lanes"


@AMD.rung("waves.scalar", needs=("waves.store",), seconds=5,
          why="Scalar loads go through another cache than the vector units' stores.")
def scalar(b: AmdBench) -> str:
  text = """s_load_b64 s[8:9], s[0:1], 0x8
    {wait}
    s_add_u32 s8, s8, s9
    v_mov_b32_e32 v2, 0
    v_mov_b32_e32 v3, s8
    global_store_b32 v2, v3, s[0:1]
    s_endpgm"""
  code, out = RungCode(b, text), output(b, 4)
  out.words[2], out.words[3] = 1000, 234
  b.compute.finish(launched(b, b.pm4(), code, out.address, block=(1, 1, 1)), _LOOK)
  same(out.words[0], 1234, "the sum of two words of " + written(b, "s_load_b64"), "the scalar cache (K$)")
  for buffer in (code.memory, out): b.free(buffer)
  return written(b, "s_load_b64 of two words")


@AMD.rung("waves.lds", needs=("waves.lanes",), seconds=5,
          why="LDS joins the waves of a workgroup, behind a barrier.")
def lds(b: AmdBench) -> str:
  text = LANE + """ds_store_b32 v2, v1
    {wait}
    {barrier}
    v_sub_nc_u32_e32 v3, s2, v1
    v_lshlrev_b32_e32 v3, 2, v3
    ds_load_b32 v4, v3
    {wait}
    global_store_b32 v2, v4, s[0:1]
    s_endpgm"""
  found = stored(b, text, 256, block=(256, 1, 1), users=(255, 0), lds=1024)
  first_wrong(found, list(range(255, -1, -1)), "what 256 work-items find in LDS, in reverse",
              "COMPUTE_PGM_RSRC2.LDS_SIZE, LDS banks, and the barrier")
  return f"256 words, in reverse, over {256 // own_wave(b)} waves"


@AMD.rung("waves.apart", needs=("waves.lds", "waves.groups"), seconds=5,
          why="Workgroups that run together have LDS of their own.")
def apart(b: AmdBench) -> str:
  text = LANE + """{groups}
    v_mov_b32_e32 v3, s4
    ds_store_b32 v2, v3
    {wait}
    {barrier}
    s_mov_b32 s7, 0
    L0: s_add_u32 s7, s7, 1
    s_cmp_lt_u32 s7, 20
    s_cbranch_scc1 L0
    ds_load_b32 v4, v2
    {wait}
    s_lshl_b32 s7, s4, 7
    v_add_nc_u32_e32 v2, s7, v2
    global_store_b32 v2, v4, s[0:1]
    s_endpgm"""
  count = 16
  found = stored(b, text, 32 * count, grid=(count, 1, 1), lds=512)
  first_wrong(found, [i // 32 for i in range(32 * count)], "what each workgroup finds in its LDS", "SPI: LDS_BASE")
  return f"{count} workgroups"


@AMD.rung("waves.scratch", needs=("waves.lanes", "waves.groups"), seconds=10,
          why="Each lane has memory of its own, for spills and stacks.")
def scratch(b: AmdBench) -> str:
  older = b.arch.scratch_in_sgprs  # the address as user data, a wave's offset behind the workgroup's ids
  address = "s_add_u32 flat_scratch_lo, s2, s7\ns_addc_u32 flat_scratch_hi, s3, 0\n" if older else ""
  text = LANE + address + """{groups}
    s_lshl_b32 s7, s4, 8
    v_add_nc_u32_e32 v3, s7, v1
    v_mov_b32_e32 v5, 0
    scratch_store_b32 {lane}, v3, off offset:16
    scratch_store_b32 {lane}, v5, off offset:20
    {stored}
    scratch_load_b32 v4, {lane}, off offset:16
    {wait}
    s_lshl_b32 s7, s4, 8
    v_add_nc_u32_e32 v2, s7, v2
    global_store_b32 v2, v4, s[0:1]
    s_endpgm"""
  text = text.replace("{lane}", "v5" if older else "off")
  found = stored(b, text, 64 * 8, grid=(8, 1, 1), block=(64, 1, 1), scratch_bytes=_LANE_BYTES)
  first_wrong(found, [(i // 64 << 8) + i % 64 for i in range(64 * 8)], "what 512 lanes find in their scratch",
              "COMPUTE_DISPATCH_SCRATCH_BASE, COMPUTE_TMPRING_SIZE (WAVES and WAVESIZE)")
  return f"512 lanes, {_LANE_BYTES} bytes each"


@AMD.rung("waves.calls", needs=("waves.store",), seconds=5, why="A call saves where it came from, and returns there.")
def calls(b: AmdBench) -> str:
  text = """v_mov_b32_e32 v2, 0
    s_mov_b32 s7, 1
    s_call_b64 s[30:31], L0
    s_add_u32 s7, s7, 100
    s_call_b64 s[30:31], L0
    v_mov_b32_e32 v3, s7
    global_store_b32 v2, v3, s[0:1]
    s_endpgm
    L0: s_mul_i32 s7, s7, 3
    s_setpc_b64 s[30:31]"""
  found = stored(b, text, 1, block=(1, 1, 1))
  same(found[0], (1 * 3 + 100) * 3, "what two calls make of 1", "s_call_b64, s_setpc_b64")
  return "2 calls of one function"


