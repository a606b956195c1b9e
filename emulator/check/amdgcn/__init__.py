"""Hazard checks of AMD's machine code: its counters, wait states, registers."""
