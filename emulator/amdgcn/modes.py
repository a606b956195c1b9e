"""MODE: what of it changes what instructions compute, by the vendor's names (ISA manuals: RDNA3, 3.3.4; CDNA3, 3.5).

FP_ROUND and FP_DENORM have two bits for f32 and two for f16 and f64 together.
"""
from __future__ import annotations

from functools import cache
from typing import Final

from tinyhw.autogen import sq
from tinyhw.emulator.amdgcn.fields import FLOAT_MODE, Field, everywhere, program_field


@cache
def _field(name: str) -> Field: return everywhere(sq.WAVE, "MODE", name)


FP_ROUND: Final = _field("FP_ROUND")
FP_DENORM: Final = _field("FP_DENORM")
DX10_CLAMP: Final = _field("DX10_CLAMP")
IEEE: Final = _field("IEEE")
FP16_OVFL: Final = _field("FP16_OVFL")
GPR_IDX_EN: Final = _field("GPR_IDX_EN")
VSKIP: Final = _field("VSKIP")
CSP: Final = _field("CSP")
# Fields of MODE that COMPUTE_PGM_RSRC1 sets, with their names there, besides FLOAT_MODE.
_INITIAL: Final = {"DX10_CLAMP": "DX10_CLAMP", "IEEE": "IEEE_MODE", "FP16_OVFL": "FP16_OVFL"}
_HIGHER: Final = {"f32": 0, "f16": 2, "f64": 2}  # the bits of a float type in FP_ROUND and FP_DENORM start here


def has(isa: str, field: str) -> bool:
  """Whether the generation's MODE has a field."""
  return field in sq.WAVE[isa]["MODE"]


def named(mode: int, field: str) -> int:
  """The value of a field by its name."""
  return _field(field).of(mode)


def initial(isa: str, rsrc1: int) -> int:
  """MODE of a wave that starts, from COMPUTE_PGM_RSRC1."""
  mode = FLOAT_MODE.of(rsrc1)  # FP_ROUND and FP_DENORM in one
  for name, there in _INITIAL.items():
    if has(isa, name): mode |= program_field(isa, "RSRC1", there, rsrc1) << _field(name).low
  return mode


def round_of(mode: int, t: str) -> int:
  """How results of a float type are rounded, a number of `values.rounding`."""
  return FP_ROUND.of(mode) >> _HIGHER[t] & 3


def rounds_of(mode: int) -> dict[str, int]:
  """The same of every float type, by its name."""
  return {t: round_of(mode, t) for t in _HIGHER}


def denormals(mode: int, t: str) -> int:
  """Which denormals of a float type are kept: bit 0 says so of sources, bit 1 of results."""
  return FP_DENORM.of(mode) >> _HIGHER[t] & 3
