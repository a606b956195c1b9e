"""The oracle: what a UOp program or machine code means. Never imports the compiler, the drivers or the mock.

`amdgcn` and `ptx` are the two machine codes, `uops` the linear program. They share `values` and `memory` of lanes,
`simt` (groups in lockstep) and `schedule` (who runs when). `jit` compiles the same meanings, `engines` chooses who
runs a launch. `observe` says what can be seen of a run; `check` finds hazards by it, `debug` has the debugger and the
report. Each of these has a folder for what is one vendor's alone.
"""
if __name__ != "tinyhw.emulator":
  raise ImportError(f"{__name__!r} is a folder of tinyhw: import it as tinyhw.emulator")
