"""The text of a kernel as LLVM IR: its blocks, calls, registers and frame."""
