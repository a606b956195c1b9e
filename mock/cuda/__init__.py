"""A stand-in for libcuda: the driver API as a shared library of this process, on the PTX emulator."""
