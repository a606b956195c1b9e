"""The conformance suite: what instructions must do, as kernels that judge themselves, for anybody's chip or emulator.

`cases` makes cases out of an Arch's instruction table and the witness; `kernel` packs many of them into a code object
that compares what it found with what is baked in; `run` has a device run it and judges what is left open, `dut` asks
another program, case by case, in lines of JSON; `report` writes what came of it. A case has a stable identifier:
gfx1100/v_add_f32/e64/modifiers-0.

What is wanted comes from two sides: the witness (`tools/witness`, written from the manual alone) and the reference
emulator. Where the manual leaves results open, the witness says how far; the emulator's are then the ones baked in.
"""
