"""What all rooms share: declared layouts, dispatch tables, errors, GPU memory, the system port, trace, locks, the end.

Also what compiled code uses of the host's processor (`host`), and the form of source lines (`source`). Imports nothing
of tinyhw.
"""
