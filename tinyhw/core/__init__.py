"""Bits, declared layouts, dispatch tables, errors, GPU memory, the system port, trace. Imports nothing of tinyhw."""
