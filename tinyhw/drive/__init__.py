"""Drivers of devices: direct ones through a Port, and those of this host. No branch for the mock.

`amd` and `nv` are direct drivers over one layer of queues (`queue`, `queued`, `signal`); `cuda` and
`cl` call a vendor's library; `cpu`, `c` and `python` compute on this host; `storage` (DISK, NPY)
and `null` run no kernels. `traced` has the system calls of other programs.
"""
