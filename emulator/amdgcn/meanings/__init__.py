"""What instructions compute: pure functions over the operations of `values`, and what MODE makes of their results.

No registers, no memory and no waves: `bind` brings operands to a meaning and its results back.
"""
