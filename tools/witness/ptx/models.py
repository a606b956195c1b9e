"""All witnesses of PTX: importing this registers them."""
from __future__ import annotations

from tinyhw.tools.witness.ptx import floats, integers, matrices, memory, textures, video, warps

__all__ = ["floats", "integers", "matrices", "memory", "textures", "video", "warps"]
