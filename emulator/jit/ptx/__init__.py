"""PTX kernels compiled for the host: a strand of some of a warp's threads is vectors, what they share is scalars.

`shapes` finds what threads share, `emit` writes a kernel as LLVM IR out of the same bound steps that the reference
runs, `memory` its accesses, `code` has it compiled and kept, `run` runs blocks with it. Where compiled code comes to
anything that it has no fast way for (a fault, an instruction that is not translated, threads that miss each other),
the reference takes the block's threads over where they stand.
"""
