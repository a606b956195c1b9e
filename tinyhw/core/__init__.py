"""Bits, declared layouts, dispatch tables, errors, GPU memory, the port to the system, trace. Imports nothing of tinyhw."""
