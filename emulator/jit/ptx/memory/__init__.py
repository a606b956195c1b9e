"""Accesses, atomics, copies and barriers in memory as LLVM IR, and those of watched code."""
