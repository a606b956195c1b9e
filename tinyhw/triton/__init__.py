"""Triton's kernels on tinyhw: a driver that Triton finds through its `triton.backends` entry point.

Triton compiles with its own AMD compiler; what is here takes the place of the HIP runtime: it loads the code objects,
brings arguments and the host's arrays into GPU memory and launches, on the emulator or on an AMD device of tinyhw.
Nothing of Triton is imported before Triton itself imports this. `array` lends NumPy arrays to kernels without torch.
"""
from __future__ import annotations

from tinyhw.triton.array import Array as Array
from tinyhw.triton.array import array as array
