"""What only gfx90a (CDNA2) has beside gfx9's, or has otherwise."""
