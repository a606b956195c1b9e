"""Instructions that autogen/errata adds to the tables, executed from assembled text."""
from __future__ import annotations

import numpy as np

from tests.emulator.gpu import Gpu
from tinyhw.arch import decoded
from tinyhw.emulator.amdgcn import Dispatch, dispatch
from tinyhw.isa.amdgcn import table
from tinyhw.isa.amdgcn.asm import assemble

RSRC1 = 31 | 0xC0 << 12  # 256 vector registers, denormals kept


def run(cpu: str, *lines: str) -> np.ndarray:
  """v1 of each of 32 lanes after the program; v0 is the lane, s[0:1] the address of the result."""
  gpu, arch = Gpu(1 << 20, cpu=cpu), decoded(cpu)
  code, result = gpu.alloc(4096), gpu.alloc(128)
  store = ("s_mov_b32 exec_lo, -1", "v_lshlrev_b32_e32 v9, 2, v0", "global_store_b32 v9, v1, s[0:1]", "s_endpgm")
  gpu.space.write(code, b"".join(assemble(line, table(arch.isa)) for line in (*lines, *store)))
  address = (result & 0xFFFFFFFF, result >> 32)
  dispatch(gpu.space, arch, Dispatch(code, (1, 1, 1), (32, 1, 1), RSRC1, len(address) << 1, 0, address))
  return gpu.get(result, np.uint32, 32)


def test_v_swap_b16() -> None:
  """The low half of v1 and the high half of v2 change places; the other halves stay."""
  for cpu in ("gfx1100", "gfx1201"):
    for half, want in (("v1.l", 0x11115555), ("v1.h", 0x55552222)):
      got = run(cpu, "v_mov_b32_e32 v1, 0x11112222", "v_mov_b32_e32 v2, 0x55556666", f"v_swap_b16 {half}, v2.h")
      assert (got == want).all()
      moved = 0x2222 if half == "v1.l" else 0x1111
      got = run(cpu, "v_mov_b32_e32 v1, 0x11112222", "v_mov_b32_e32 v2, 0x55556666", f"v_swap_b16 {half}, v2.h",
                "v_mov_b32_e32 v1, v2")
      assert (got == moved << 16 | 0x6666).all()


def test_ds_bpermute_fi_reads_lanes_that_are_off() -> None:
  """Eight lanes pull from those 16 further on, which are off: ds_bpermute_b32 gives 0, _fi their values."""
  lines = ("v_mov_b32_e32 v1, 7", "v_mul_u32_u24_e32 v2, 3, v0", "v_lshlrev_b32_e32 v3, 2, v0",
           "s_mov_b32 exec_lo, 0xff")
  lanes = np.arange(32)
  for name, pulled in (("ds_bpermute_fi_b32", 3 * (lanes + 16)), ("ds_bpermute_b32", lanes * 0)):
    got = run("gfx1201", *lines, f"{name} v1, v3, v2 offset:64", "s_wait_dscnt 0x0")
    assert np.array_equal(got, np.where(lanes < 8, pulled, 7))
