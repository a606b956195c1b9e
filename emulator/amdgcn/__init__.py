"""AMD GPU machine code, executed: the reference interpreter in NumPy.

Reading order: `launch` starts waves, `program` decodes code into blocks of bound steps, `simt` (one folder up) runs
them in lockstep groups. A step is made by `bind`, from the meaning of an instruction; by the folder `memory`; or by a
binder of the instruction's own, in the tables of `binders` (`control`, `lanes` and others). What an
instruction computes is a pure function in the folder `meanings`, keyed by the vendor's mnemonic and written against the
operations of `emulator.values`. A new instruction: its row comes from the generated table, its meaning is one function
with a signature, and `coverage` stops listing it as missing. What only one generation has is in the folder of its name,
`gfx9`, `gfx11`, `gfx12`; `all_tables` imports all that registers something.

What differs between generations is a table. A meaning or a binder counts for every instruction
table unless it says `isa=`. Wait counters, hazard rules, matrix layouts and the first registers of
a wave are data of the generation. Fields of hardware registers, of MODE and of buffer resources go
by the vendor's names, and `autogen/sq.py` has their places: a field that a generation lacks is left
out, one that moved does not import. The decoder gives scalar registers one numbering
(`isa/amdgcn/codes.py`), so the emulator asks no generation where M0 is.
"""
from tinyhw.emulator.amdgcn.launch import Dispatch, DispatchStats, dispatch

__all__ = ["Dispatch", "DispatchStats", "dispatch"]
