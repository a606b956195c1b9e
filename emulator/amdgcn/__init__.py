"""AMD GPU machine code, executed: the reference interpreter in NumPy."""
from tinyhw.emulator.amdgcn.launch import Dispatch, DispatchStats, dispatch

__all__ = ["Dispatch", "DispatchStats", "dispatch"]
