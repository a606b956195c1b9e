"""The fidelity ledger: for each instruction of each generation, how its meaning is known and what proves it.

`tinyhw ledger` prints it; `evidence` holds what the tests and tools recorded, `ledger` joins it with the tables.
"""
