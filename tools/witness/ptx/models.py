"""All witnesses of PTX: importing this registers them."""
from __future__ import annotations

from tinyhw.tools.witness.ptx import textures, video

__all__ = ["textures", "video"]
