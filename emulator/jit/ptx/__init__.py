"""PTX kernels compiled for the host: a strand of some of a warp's threads is vectors, what they share is scalars.

`shapes` finds what threads share, `blocks` writes a kernel as LLVM IR: out of the same bound steps that the reference
runs, which run on the group of `emit`, or by what emits an instruction (`access` its accesses, `control` the ends of
blocks). `code` has it compiled and kept, `run` runs blocks with it. Where compiled code comes to anything that it has
no fast way for (a fault, an instruction that is not translated, threads that miss each other), the reference takes the
block's threads over where they stand.
"""
