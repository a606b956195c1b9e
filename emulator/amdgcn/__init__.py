"""AMD GPU machine code, executed: the reference interpreter in NumPy.

Reading order: `launch` starts waves, `program` decodes code into blocks of bound steps, `simt` (one folder up) runs
them in lockstep groups. A step is made by `bind`, from the meaning of an instruction; by the folder `memory`; or by a
binder of the instruction's own, in the tables of `binders` (`control`, `lanes` and others). What an
instruction computes is a pure function in the folder `meanings`, keyed by the vendor's mnemonic and written against the
operations of `emulator.values`. A new instruction: its row comes from the generated table, its meaning is one function
with a signature, and `coverage` stops listing it as missing. What only one generation has is in the folder of its name,
`gfx9`, `gfx11`, `gfx12`; `all_tables` imports all that registers something.
"""
from tinyhw.emulator.amdgcn.launch import Dispatch, DispatchStats, dispatch

__all__ = ["Dispatch", "DispatchStats", "dispatch"]
