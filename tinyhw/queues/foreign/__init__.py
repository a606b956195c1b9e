"""Dumps of queues that other programs made: the kernel driver's, a debugger's.

    dump         what such a file holds: rings with their pointers, registers, faults, versions
    devcoredump  amdgpu's device coredump
    debugfs      amdgpu_ring_NAME of debugfs
    umr          UMR's listings of rings and indirect buffers
    rocgdb       ROCgdb's `info queues` and `info dispatches`
    forms        which of them a file is
    packets      a ring's words as packets, around its read pointer
    show         a dump as text, as rows, and what it says of queues that stand

A reader knows a form from public sources alone, which it names. What a file does not say is not guessed.
"""
