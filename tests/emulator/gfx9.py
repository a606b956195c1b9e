"""Runs gfx942 machine code, written as text, on one wave or more: registers in, registers out."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np

from tinyhw.arch import decoded
from tinyhw.core.memory import AddressSpace, Region
from tinyhw.emulator.amdgcn import Dispatch
from tinyhw.emulator.engines.amdgcn import dispatch
from tinyhw.isa.amdgcn import table
from tinyhw.isa.amdgcn.asm import assemble

LANES = 64
TABLE = table("gfx9")
CODE, DATA, OUT, EXTRA = 0x1000_0000, 0x2000_0000, 0x3000_0000, 0x4000_0000
ALLOW_DENORMALS = 0xF0


def code(text: str) -> bytes:
  """Machine code of the lines of a text; ".long" gives a word."""
  out = b""
  for line in filter(None, (x.strip() for x in text.splitlines())):
    out += int(line.split()[1], 0).to_bytes(4, "little") if line.startswith(".long") else assemble(line, TABLE)
  return out


def run(text: str, inputs: Mapping[int, np.ndarray], outputs: Sequence[int | str], *, waves: int = 1,
        extra: np.ndarray | None = None, lds: int = 0, mode: int = ALLOW_DENORMALS,
        engine: str = os.environ.get("EMU", "ref")) -> list[np.ndarray]:
  """Values (u32 of each lane of each wave) of registers after a program.

  `inputs` fills vector registers, u32 for each lane of each wave; `outputs` are numbers of vector registers, or scalar
  operands by name. s[0:1] and s[2:3] are the program's, s[4:5] is the address of `extra`, which is changed in place.
  s6 is the wave's number: each wave is a workgroup. v255 and s[98:101] are not the program's.
  """
  space = AddressSpace()
  lines = ["v_lshlrev_b32_e32 v255, 2, v0", "s_lshl_b32 s7, s6, 8", "v_add_u32_e32 v255, s7, v255",
           "s_mov_b64 s[98:99], s[0:1]", "s_mov_b64 s[100:101], s[2:3]"]
  data = np.zeros(max(1, len(inputs)) * LANES * waves, np.uint32)
  for k, (n, values) in enumerate(inputs.items()):
    data[k * LANES * waves:(k + 1) * LANES * waves] = np.broadcast_to(values, LANES * waves)
    lines += [f"global_load_dword v{n}, v255, s[98:99]", f"s_add_u32 s98, s98, {256 * waves:#x}"]
  lines += ["s_waitcnt vmcnt(0)", text, "s_mov_b64 exec, -1"]
  for o in outputs:
    value = f"v{o}" if isinstance(o, int) else "v254"
    if isinstance(o, str): lines.append(f"v_mov_b32_e32 v254, {o}")
    lines += [f"global_store_dword v255, {value}, s[100:101]", f"s_add_u32 s100, s100, {256 * waves:#x}"]
  program = code("\n".join([*lines, "s_endpgm"]))
  results = np.zeros(max(1, len(outputs)) * LANES * waves, np.uint32)
  regions = {CODE: np.frombuffer(program, np.uint8), DATA: data, OUT: results}
  if extra is not None: regions[EXTRA] = extra
  held = {}
  for at, array in regions.items():
    held[at] = Region("data", -(-array.nbytes // 4096) * 4096)
    held[at].u8[:array.nbytes] = array.reshape(-1).view(np.uint8)
    space.map(at, held[at].size, held[at])
  users = [w for a in (DATA, OUT, EXTRA) for w in (a, 0)]
  dispatch(space, decoded("gfx942"), Dispatch(
    CODE, (waves, 1, 1), (LANES, 1, 1), rsrc1=63 | mode << 12 | 1 << 21 | 1 << 23, rsrc2=6 << 1 | 1 << 7, rsrc3=63,
    user_data=tuple(users), lds_size=lds, wave32=False), engine=engine)
  if extra is not None: extra.reshape(-1).view(np.uint8)[:] = held[EXTRA].u8[:extra.nbytes]
  out = held[OUT].u8[:regions[OUT].nbytes].view(np.uint32)
  return [out[k * LANES * waves:(k + 1) * LANES * waves].copy() for k in range(len(outputs))]
