"""Machine code compiled for the host: the meanings of the reference, run over LLVM values instead of NumPy's.

`amdgcn` and `ptx` translate; they share values as LLVM IR (`values`), the mappings of memory as compiled code reads
them (`memory`), compiling in a process apart (`servers`, `compiler`, `native`) and what is kept on disk (`store`).

One meaning serves two engines. It is typed over any kind of value (`Value`, `Operations` in
`emulator/values/ops.py`), so mypy refuses an operation that is not there. What compiled code cannot
translate, and every access outside its checked mappings, goes back to the reference, so faults are
the same.

A program is compiled quickly at first (its instructions are calls, one function for all of a shape,
`amdgcn/shapes.py`) and well in a thread once it is hot. LLVM works in processes of its own, for it
may abort, or never end. Forms are kept by a digest of the code, in memory and on disk
(`amdgcn/forms.py`, `store`). `auto` (`emulator/engines`) interprets until a program has cost as
much as compiling it would; compiled code then takes the waves over where they stand, also amid a
launch.
"""
