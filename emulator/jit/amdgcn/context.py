"""The context of a thread in memory, in bytes: what compiled code shares with the caller."""
from __future__ import annotations

from typing import Final

CALLBACK: Final = 0
HANDLE: Final = 8
MAPPINGS: Final = 16  # how many
TABLE: Final = 24  # address of rows: start, size, host address - start, access
SITES: Final = 32  # address of rows: start, size, host address - start, unused
ENTRY: Final = 40  # the program's entry PC
LDS_SIZE: Final = 48
SCRATCH_SIZE: Final = 56
WAVE: Final = 64  # index of the wave that runs
ADDRESSES: Final = 128  # u64 of each lane
MASK: Final = ADDRESSES + 64 * 8
DATA: Final = MASK + 64  # dwords: lanes of the first, lanes of the second...
SHADOWS_IN: Final = DATA + 16 * 64 * 4  # watched code: of each dword that is stored, two masks of lanes in u64
SHADOWS_OUT: Final = SHADOWS_IN + 16 * 16  # the same of what is loaded
LDS_CELLS: Final = SHADOWS_OUT + 16 * 16  # how far behind LDS lie its cells
KNOWN_OUT: Final = LDS_CELLS + 64  # what of the dwords of scratch that are loaded was written, as DATA
CONTEXT_SIZE: Final = KNOWN_OUT + 16 * 64 * 4
ROW: Final = 32
# The row of a site that reaches LDS: what it touched beyond the workgroup's, as two's complement of the lowest address
# less one, as the highest end, and in how many lanes.
OUTSIDE_START: Final = 0
OUTSIDE_END: Final = 8
OUTSIDE_LANES: Final = 16
