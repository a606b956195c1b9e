"""Assembler of AMD GPU instructions: one line of LLVM's text to bytes, by the rows and texts that the decoder uses.

`assemble("v_add_f32_e32 v0, 1.0, v1")` walks the template of each row of the mnemonic over the line; the first row
whose own text is the line wins, so that text and bytes are inverse. A line in a looser spelling (no _e32, decimal
literals) takes the first row that fits. Branch targets are raw offsets, as the disassembler prints them.
"""
from tinyhw.isa.amdgcn.asm.assembler import assemble, candidates, normal

__all__ = ["assemble", "candidates", "normal"]
