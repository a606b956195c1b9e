"""NVIDIA's own compilers, where they are installed: ptxas, nvJitLink and nvrtc. Nothing here needs one to be there."""
