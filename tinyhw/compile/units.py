"""The matrix units of targets (`ir.matrix` says what one is): which lane holds what is as the ISA manuals have it
(RDNA3 7.9, RDNA4 7.12, CDNA3 7.4, PTX 9.7.14), in the order of LLVM's intrinsics.

`TC=0` in the environment uses none; `TC=2` lets targets without units compute blocks as if they had one.

`TC=2` gives `PYTHON` an emulated unit, and other targets blocks of a thread. On NVIDIA's GPUs a
product of at least 128 tiles of 128 x 128 goes through shared memory (`compile/stage.py`). On
Hopper it is one node, `WGMMA` (`compile/warpgroup.py`, `render/wgmma.py`).
"""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tinyhw.arch import Arch
from tinyhw.core.environment import variable
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.matrix import EMULATED, QUADS, QUADS_B, QUADS_C, Digits, MatrixUnit, lane, place

if TYPE_CHECKING:
  from tinyhw.compile.render.base import Renderer

VARIABLE = "TC"
Layout = tuple[Digits, Digits]
LINE = (lane(1, 16),)


def _by_lines(steps: Digits, rows: Digits) -> tuple[Layout, Layout, Layout]:
  """Lanes stand for rows of A and columns of B and of the result."""
  return (LINE, steps), (steps, LINE), (rows, LINE)


_GFX11 = _by_lines((place(1, 16),), (place(1, 8, 2), lane(16, 2)))
_GFX12 = _by_lines((lane(16, 2, 8), place(1, 8)), (lane(16, 2, 8), place(1, 8)))
_GFX9 = _by_lines((lane(16, 4, 4), place(1, 4)), (lane(16, 4, 4), place(1, 4)))
_GFX9_EIGHT = _by_lines((lane(16, 4, 8), place(1, 8)), (lane(16, 4, 4), place(1, 4)))
_GFX9_SIXTEEN = _by_lines((lane(16, 4, 16), place(1, 16)), (lane(16, 4, 4), place(1, 4)))
# m16n8k32: as m16n8k16, of four bytes where that has two halves.
_BYTES = (lane(4, 8), place(4, 2, 8)), (lane(1, 4, 4), place(1, 4), place(8, 2, 16))
_BYTES_B = (lane(1, 4, 4), place(1, 4), place(4, 2, 16)), (lane(4, 8),)
_BF16, _I8, _I32, _E4M3 = dtypes.bfloat16, dtypes.int8, dtypes.int32, dtypes.float8_e4m3fn
# By instruction table, and by processor where not all that have the table have the unit; of one type the deeper first.
_UNITS: dict[str, tuple[MatrixUnit, ...]] = {
  "gfx11": (MatrixUnit("wmma.f32.16x16x16.f16.v8f32.v16f16", 32, *_GFX11),
            MatrixUnit("wmma.f32.16x16x16.bf16.v8f32.v16i16", 32, *_GFX11, _BF16),
            MatrixUnit("wmma.i32.16x16x16.iu8.v8i32.v4i32", 32, *_GFX11, _I8, _I32, ", i1 false", "<4 x i32>", True)),
  "gfx12": (MatrixUnit("wmma.f32.16x16x16.f16.v8f32.v8f16", 32, *_GFX12),
            MatrixUnit("wmma.f32.16x16x16.bf16.v8f32.v8i16", 32, *_GFX12, _BF16),
            MatrixUnit("wmma.i32.16x16x16.iu8.v8i32.v2i32", 32, *_GFX12, _I8, _I32, ", i1 false", "<2 x i32>", True),
            MatrixUnit("wmma.f32.16x16x16.fp8.fp8.v8f32.v2i32", 32, *_GFX12, _E4M3, word="<2 x i32>")),
  "gfx942": (MatrixUnit("mfma.f32.16x16x16f16", 64, *_GFX9, rest=", i32 0, i32 0, i32 0"),
             MatrixUnit("mfma.f32.16x16x16bf16.1k", 64, *_GFX9, _BF16, rest=", i32 0, i32 0, i32 0"),
             # Its floats of 8 bits are not those of OCP: they have other biases.
             MatrixUnit("mfma.i32.16x16x32.i8", 64, *_GFX9_EIGHT, _I8, _I32, ", i32 0, i32 0, i32 0", "i64")),
  "sm_80": (MatrixUnit("mma.m16n8k16.row.col.f32.f32", 32, QUADS, QUADS_B, QUADS_C),
            MatrixUnit("mma.m16n8k16.row.col.bf16", 32, QUADS, QUADS_B, QUADS_C, _BF16),
            MatrixUnit("mma.m16n8k32.row.col.s8", 32, _BYTES, _BYTES_B, QUADS_C, _I8, _I32)),
  "sm_89": (MatrixUnit("mma.m16n8k32.row.col.e4m3", 32, _BYTES, _BYTES_B, QUADS_C, _E4M3),),
}
# CDNA4 has twice the depth, too, and OCP's floats of 8 bits (its ISA manual, 7.1.5 and 7.3).
_UNITS["gfx950"] = (
  MatrixUnit("mfma.f32.16x16x32.f16", 64, *_GFX9_EIGHT, rest=", i32 0, i32 0, i32 0"),
  MatrixUnit("mfma.f32.16x16x32.bf16", 64, *_GFX9_EIGHT, _BF16, rest=", i32 0, i32 0, i32 0", word="<8 x bfloat>"),
  MatrixUnit("mfma.i32.16x16x64.i8", 64, *_GFX9_SIXTEEN, _I8, _I32, ", i32 0, i32 0, i32 0", "<4 x i32>"),
  MatrixUnit("mfma.f32.16x16x32.fp8.fp8", 64, *_GFX9_EIGHT, _E4M3, rest=", i32 0, i32 0, i32 0", word="i64"),
  *_UNITS["gfx942"])
# CDNA2's integers are half as deep; denormals of its halves are zeros there.
_UNITS["gfx90a"] = (
  *_UNITS["gfx942"][:2],
  MatrixUnit("mfma.i32.16x16x16i8", 64, *_GFX9, _I8, _I32, ", i32 0, i32 0, i32 0", "i32"))
# Blocks that a thread multiplies by itself: the option TC on any target.
_ALONE = (place(4, 4),), (place(1, 4),)
_PLAIN = tuple(MatrixUnit(f"alone.4x4x4.{kind.name}", 1, _ALONE, _ALONE, _ALONE, kind)
               for kind in (dtypes.float32, dtypes.float16, dtypes.bfloat16))
EMULATION = {"uops": (EMULATED,)}
_named = {u.name: u for units in (*_UNITS.values(), _PLAIN, (EMULATED,)) for u in units}


def units_of(arch: Arch) -> tuple[MatrixUnit, ...]:
  """The units of an AMD GPU that the compiler uses."""
  return _UNITS.get(arch.name) or _UNITS.get(arch.isa, ())


def units_of_nvidia(processor: str = "sm_80") -> tuple[MatrixUnit, ...]:
  """The units of a GPU from sm_80 on."""
  later = _UNITS["sm_89"] if int(re.sub(r"(?a)\D", "", processor)) >= 89 else ()
  return _UNITS["sm_80"] + later


def choice() -> str:
  """What the environment says of matrix units."""
  return variable(VARIABLE, b"TC")


def available(renderer: Renderer) -> tuple[MatrixUnit, ...]:
  """The units that kernels of a target may use now."""
  said = choice()
  if said == "0": return ()
  if said == "2" and not renderer.units: return EMULATION.get(renderer.target, _PLAIN)
  return renderer.units


def unit_named(name: str) -> MatrixUnit:
  """The unit that a WMMA of the linear program names."""
  return _named[name]
