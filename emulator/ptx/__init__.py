"""The PTX emulator: modules are linked, laid out and run in lockstep, warps of 32 lanes, many at once.

`module` gives variables their places and orders a function's blocks, `program` binds instructions to steps, `group`
holds warps at one PC, `launch` starts them, and `emulator.engines` chooses what runs them. `meanings` says what
instructions compute, over `emulator.values.ops`; `memory`, `tensorcore` and `texture` have what is more than that.
"""
