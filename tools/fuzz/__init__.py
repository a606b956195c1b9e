"""Programs for the emulator's independent witness: LLVM IR that is compiled for a GPU and for the host, then compared.

Nothing here knows what an instruction means. A case is IR text; LLVM compiles the same text for the GPU, whose machine
code runs on the emulator, and for the host CPU. Results must agree (`python -m tinyhw.tools.fuzz --help`).
"""
