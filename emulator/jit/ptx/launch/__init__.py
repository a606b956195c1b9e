"""Launches of compiled PTX: who runs the blocks, and what the reference takes over."""
