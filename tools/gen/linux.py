"""The publications that generators cite, and where files stand in them."""

from __future__ import annotations

from tinyhw.tools.gen.sources import Origin

LINUX = Origin("Linux (Debian linux-source-6.12)", "6.12.117-1~deb12u1", "MIT (AMD's notice in each file)")
PAL = Origin("GPUOpen-Drivers/pal", "commit c5e800072a32f68b6ccc4422936d96167c6e0728 (2025-04-29)", "MIT")
# The last version that has gfx9. A source root has it in a folder of this name, beside which the newer one may lie:
# git worktree add ROOT/pal-42e29f4d 42e29f4d, and --source ROOT.
PAL_2024_FOLDER = "pal-42e29f4d"
PAL_2024 = Origin("GPUOpen-Drivers/pal", "commit 42e29f4d3d528c6a59c2db77fb6d70127fb9ffab (2024-03-21)", "MIT")
AMD = "drivers/gpu/drm/amd"
