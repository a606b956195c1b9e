"""Memory as PTX's instructions have it: state spaces, moves, asynchronous copies, barriers in memory.

What is asynchronous happens at once. Copies in bulk and of tensors' boxes are made by the
instruction, and their mbarrier is told then. A wait that fails gives way to other threads and,
where nobody can change it, is a deadlock. A product of `wgmma` is its warpgroup's: who waits for it
waits until the other warps have made theirs. A cohort holds whole clusters, so that an address of
`shared::cluster` is a rank and an offset.
"""
