"""Meanings of scalar float instructions by the names that RDNA3.5 has for them (gfx1150 and later).

RDNA4 renamed these; the others have one name in both generations (`gfx12/meanings.py`).
"""
from __future__ import annotations

from tinyhw.emulator.amdgcn.meanings import floats
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS as M

for _t in ("f16", "f32"):
  M(f"s_min_{_t}", f"{_t}({_t}, {_t})")(floats.min_)
  M(f"s_max_{_t}", f"{_t}({_t}, {_t})")(floats.max_)
