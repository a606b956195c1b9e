"""How good the single-instruction tests are: meanings are changed in small ways, and the witness must notice.

`mutants.py` makes the changes, `score.py` counts, `equivalent.py` says which changes nothing can notice, and why.
"""
