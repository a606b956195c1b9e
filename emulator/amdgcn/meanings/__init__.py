"""What instructions compute: pure functions over the operations of `emulator.values`, and what MODE makes of them.

No registers, no memory and no waves: `bind` brings operands to a meaning and its results back.
"""
