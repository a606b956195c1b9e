"""Memory that compiled code and `run` share: the context of a launch, and the states of strands. Offsets in bytes."""
from __future__ import annotations

from typing import Final

# the context
MAPPINGS: Final = 0  # how many
TABLE: Final = 8  # address of rows: start, size, host address - start, access
SITES: Final = 16  # address of rows: start, how many multiples of the width lie in it, host address - start, unused
PARAMS: Final = 24  # host address of the kernel's parameters
PARAMS_AT: Final = 32  # their address on the GPU
MODULE: Final = 40  # address of the module's variables on the GPU
SHARED_SIZE: Final = 48
LOCAL_SIZE: Final = 56
GRID: Final = 64  # three i32
DYNAMIC: Final = 80
STRANDS: Final = 88  # of a block
ADDRESSES: Final = 128  # i64 of each thread
DATA: Final = ADDRESSES + 8 * 32  # elements: threads of the first, threads of the second...
HOSTS: Final = DATA + 8 * 8 * 32  # host addresses, i64 of each thread
CONTEXT_SIZE: Final = HOSTS + 8 * 32
ROW: Final = 32

# the state of a strand
STATUS: Final = 0
EXIT: Final = 4  # where it left compiled code
ACTIVE: Final = 8  # threads that are there, as bits
ALIVE: Final = 12  # those that have not ended
LEFT: Final = 16  # instructions that it may run before others do, i64
BLOCK: Final = 24  # number of its block in the grid, i64
STRAND: Final = 32  # its number in the block
NUMBER: Final = 36  # of the barrier that it waits at
SHARED: Final = 40  # host address of the block's shared memory
LOCAL: Final = 48  # host address of its threads' stacks
HEADER: Final = 64

RUN, END, BARRIER, YIELD, LEAVE = range(5)  # LEAVE: the reference goes on
