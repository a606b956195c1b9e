"""Machine code compiled for the host: the meanings of the reference, run over LLVM values instead of NumPy's.

`amdgcn` and `ptx` translate; they share values as LLVM IR (`values`), the mappings of memory as compiled code reads
them (`memory`), compiling in a process apart (`servers`, `compiler`, `native`) and what is kept on disk (`store`).
"""
