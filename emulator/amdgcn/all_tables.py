# ruff: noqa: F401  (each of these registers meanings or binders; none is used by its name)
"""The tables of meanings and binders, whole: every module that registers some is imported here, a new one too."""
from tinyhw.emulator.amdgcn import bind, control, lanes, relative, sync
from tinyhw.emulator.amdgcn import ends as rare_ends
from tinyhw.emulator.amdgcn.binders import binds, ends
from tinyhw.emulator.amdgcn.gfx9 import bind as gfx9_bind
from tinyhw.emulator.amdgcn.gfx9 import ends as gfx9_ends
from tinyhw.emulator.amdgcn.gfx9 import lds_store as gfx9_lds_store
from tinyhw.emulator.amdgcn.gfx9 import matrix as gfx9_matrix
from tinyhw.emulator.amdgcn.gfx9 import meanings as gfx9_meanings
from tinyhw.emulator.amdgcn.gfx9 import memory as gfx9_memory
from tinyhw.emulator.amdgcn.gfx11 import matrix as gfx11_matrix
from tinyhw.emulator.amdgcn.gfx11 import meanings as gfx11_meanings
from tinyhw.emulator.amdgcn.gfx12 import bind as gfx12_bind
from tinyhw.emulator.amdgcn.gfx12 import matrix as gfx12_matrix
from tinyhw.emulator.amdgcn.gfx12 import meanings as gfx12_meanings
from tinyhw.emulator.amdgcn.gfx12 import registers as gfx12_registers
from tinyhw.emulator.amdgcn.gfx12 import transpose as gfx12_transpose
from tinyhw.emulator.amdgcn.gfx90a import meanings as gfx90a_meanings
from tinyhw.emulator.amdgcn.gfx950 import conversions as gfx950_conversions
from tinyhw.emulator.amdgcn.gfx950 import lanes as gfx950_lanes
from tinyhw.emulator.amdgcn.gfx950 import matrix as gfx950_matrix
from tinyhw.emulator.amdgcn.gfx950 import meanings as gfx950_meanings
from tinyhw.emulator.amdgcn.gfx950 import sixes as gfx950_sixes
from tinyhw.emulator.amdgcn.gfx950 import transpose as gfx950_transpose
from tinyhw.emulator.amdgcn.meanings import floats, integer, scalar
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS
from tinyhw.emulator.amdgcn.memory import image

__all__ = ["MEANINGS", "binds", "ends"]
