"""One declared table of operator cases: tinyhw against PyTorch, forward and backward.

`cases`: the form of a case and how its inputs are made. `table_*`: the cases. `run`: both sides of one, compared.
`python -m tests.tensor.operators.generate` (where torch is) writes the expected values; `python -m
tests.tensor.operators.sweep --device AMD` runs all cases on a device.
"""
