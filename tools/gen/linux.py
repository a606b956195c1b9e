"""The publications that generators cite, and where files stand in them."""

from __future__ import annotations

from tinyhw.tools.gen.sources import Origin

LINUX = Origin("Linux (Debian linux-source-6.12)", "6.12.117-1~deb12u1", "MIT (AMD's notice in each file)")
PAL = Origin("GPUOpen-Drivers/pal", "commit c5e800072a32f68b6ccc4422936d96167c6e0728 (2025-04-29)", "MIT")
AMD = "drivers/gpu/drm/amd"
