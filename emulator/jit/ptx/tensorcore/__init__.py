"""Products of matrices as LLVM IR."""
