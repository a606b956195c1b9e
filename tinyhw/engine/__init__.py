"""From tensor graphs to running kernels: realization, kept kernels, random numbers, BEAM, pages of VIZ. Any device.

What is done again is planned once. A schedule is kept by the structure of its graph, with the
memory that it reads numbered (`planned`). Compiled kernels are kept by what they were made from,
also on disk (`kept`, `CACHEDB`). Launches that a TinyJit replays are a `Runner` of their driver
(`drive/base.py`); on processors they are one call of native code (`drive/batch.py`), whose results
are memory until somebody asks for their node (`jit/direct.py`).
"""
