"""What numbers are and mean, for any vendor's machine code: operations on lanes, and the floats that NumPy lacks.

`ops` is what meanings are written against; `rounding` gives them the directed modes, `elementary` the functions that a
library would compute otherwise on another host, `small_floats` the formats of 8 bits.
"""
