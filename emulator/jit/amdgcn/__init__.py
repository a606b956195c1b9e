"""AMD GPU machine code, compiled: the same meanings as the reference, run over LLVM values for the host processor."""
