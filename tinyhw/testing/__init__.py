"""Tests of GPU programs without a GPU: pytest's plugin (`--mockgpu`, the marker and the fixture `mockgpu`)."""
