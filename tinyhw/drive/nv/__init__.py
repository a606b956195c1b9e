"""NVIDIA kernels: so far PTX on the emulator alone (`bare`)."""
