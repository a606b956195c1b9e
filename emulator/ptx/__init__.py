"""The PTX emulator: modules are linked, laid out and run in lockstep, warps of 32 lanes, many at once.

`link` gives variables their places, `flow` orders a function's blocks, `program` binds instructions to steps, `group`
holds warps at one PC, `launch` starts them and `engines` chooses what runs them; `meanings` says what instructions
compute, over `amdgcn.values.Ops`.
"""
from tinyhw.emulator.engines.ptx import dispatch
from tinyhw.emulator.ptx.launch.grid import Dispatch
from tinyhw.emulator.ptx.module.link import Linked

__all__ = ["Dispatch", "Linked", "dispatch"]
