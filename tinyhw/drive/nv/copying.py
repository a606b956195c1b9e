"""A kernel that copies within the GPU's memory: SMs have it faster than a copy engine, which is made for the bus.

Each block copies BLOCK_BYTES, each thread some vectors of 16 bytes, which it loads before it stores any.
"""
from __future__ import annotations

from typing import Final

NAME: Final = "copy"
THREADS: Final = 512
ALIGN: Final = 16   # of both addresses
_VECTORS: Final = 4  # of a thread
BLOCK_BYTES: Final = THREADS * _VECTORS * ALIGN
LEAST: Final = 32 << 20  # bytes from which a launch is worth its while


def _text() -> bytes:
  def registers(k: int) -> str: return ", ".join(f"%r{4 * k + n}" for n in range(4))
  step, vectors = THREADS * ALIGN, range(_VECTORS)
  loads = "\n".join(f"  ld.global.v4.u32 {{{registers(k)}}}, [%rd2+{k * step}];" for k in vectors)
  stores = "\n".join(f"  st.global.v4.u32 [%rd1+{k * step}], {{{registers(k)}}};" for k in vectors)
  return f""".version 8.0
.target sm_80
.address_size 64
.visible .entry {NAME}(.param .u64 to, .param .u64 from) .maxntid {THREADS}, 1, 1 {{
  .reg .b64 %rd<5>; .reg .b32 %r<{4 * _VECTORS}>; .reg .b32 %t<3>;
  ld.param.u64 %rd1, [to]; ld.param.u64 %rd2, [from];
  mov.u32 %t1, %ctaid.x; mul.wide.u32 %rd3, %t1, {BLOCK_BYTES};
  mov.u32 %t2, %tid.x; mul.wide.u32 %rd4, %t2, {ALIGN}; add.u64 %rd3, %rd3, %rd4;
  add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
{loads}
{stores}
  ret;
}}
""".encode()


TEXT: Final = _text()
