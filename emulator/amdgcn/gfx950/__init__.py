"""What only gfx950 (CDNA4) has beside gfx9's: instructions of its own, and OCP's 8-bit floats under gfx9's names."""
