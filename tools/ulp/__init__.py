"""How far elementwise functions are from the exact values, in units in the last place, on each device.

`python -m tinyhw.tools.ulp` measures and prints the table that docs/accuracy.md keeps; a test holds its bounds.
"""
