"""Textures and surfaces: headers, fetches, and what is asked about them."""
