"""Textures and surfaces in compiled code."""
