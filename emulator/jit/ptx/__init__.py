"""PTX kernels compiled for the host: a strand of some of a warp's threads is vectors, what they share is scalars.

`shapes` finds what threads share, `blocks` writes a kernel as LLVM IR: out of the same bound steps that the reference
runs, which run on the group of `emit`, or by what emits an instruction (`access` its accesses, `control` the ends of
blocks). `code` has it compiled and kept, `run` runs blocks with it. Where compiled code comes to anything that it has
no fast way for (a fault, an instruction that is not translated, threads that miss each other), the reference takes the
block's threads over where they stand.

`emulator/ptx` binds an instruction once for each engine, by the same functions: a step asks its
group for operations and registers. `module/shapes.py` finds by a fixed point what threads share and
who waits where. Where nobody waits at a later block there are no masks; elsewhere only what waiting
threads still read is written under a mask. A NaN is made the chip's only where its bits are seen.

The functions that a kernel calls stand in its text, once a call (`module/inline.py`); their frames
are made where the reference takes over. What one thread does for many (boxes of tensors) is a
routine in the module (`routine`, `memory/moves.py`, `memory/boxes.py`). For what is seldom,
compiled code calls the reference's bound step on one warp (`fallback`; `helped` declares what that
is). For all else a strand leaves with its live registers, and the reference goes on from there
(`Cohort.back` in `launch/run.py`). The other way round (`take`) is possible at heads of loops and
at barriers. Strands that wait for an mbarrier are run again in rounds, as long as any of their
cluster gets on (`launch/runner.py`).
"""
