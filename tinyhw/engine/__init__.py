"""From tensor graphs to running kernels: buffers, realization, the kernel cache, TinyJit. Works on any device."""
