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
HELPER: Final = 96  # address of blocks, one for each instruction that is helped: a function that makes it (`fetches`)
CLOCK: Final = 104  # what has been executed before this turn, and all that a strand may execute in it
CHANGES: Final = 112  # of what strands poll: how often one has changed it
CLUSTER: Final = 120  # blocks of a cluster
CLUSTERED: Final = 128  # the same each way, three i32
APART: Final = 144  # bytes from one block's shared memory to the next one's
STRIDE: Final = 152  # of states
WORKSPACE: Final = 160  # of the launch, on the GPU
MULTICAST: Final = 168  # how many ranges stand for several places, and the address of rows: start, size, places, where
# of watched code (`watched`)
CELLS: Final = 184  # host address of the cells of the block's shared memory
CELLS_SIZE: Final = 192  # in bytes
CELLS_FAR: Final = 200  # from GPU addresses, as many times as cells are larger, to cells
EPOCHS: Final = 208  # of the block that runs, and the latest that was given, two i32
WRITTEN: Final = 216  # from a thread's stack to which bytes of it were written
SEEN: Final = 224  # address of i64: what each mapping was accessed for
COPIES: Final = 232  # host address of the second cells of the block's shared memory, see `async_copies`
ORDER: Final = 240  # address of what warps know of each other's work, see `order`
TEAM: Final = 248  # strands of a cluster
USED: Final = 256  # bytes of shared memory without what the system keeps, with what it keeps of every block's, and
AGGREGATE: Final = 264  # where the system's begin
SYSTEM: Final = 272
ADDRESSES: Final = 320  # i64 of each thread
DATA: Final = ADDRESSES + 8 * 32  # elements: threads of the first, threads of the second...
HOSTS: Final = DATA + 8 * 8 * 32  # host addresses, i64 of each thread
TOLD: Final = HOSTS + 8 * 32  # what the warps of the block that runs have told of their copies: two rows of i32
WARPS: Final = 32  # that a block has at most
CONTEXT_SIZE: Final = TOLD + 2 * 4 * WARPS
ROW: Final = 32
SPAN: Final = 24  # in a row: bytes that an access takes from the address that is checked, if they are not a thread's

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
EXPECTED: Final = 56  # how many threads its barrier waits for, 0 for all, with SLOW where it is not that alone
VOTES: Final = 60  # threads' votes at the barrier, as bits; after it how many there were
EVERY: Final = 64  # after the barrier: whether all have voted for it
ARRIVED: Final = 68  # at the barrier of its cluster, in this phase: 0 or 1
TICKET: Final = 72  # the phase in which it arrived last, or -1
PHASE: Final = 76  # of the cluster's barrier
COUNTS: Final = 80  # host address of the block's named barriers: threads that came and did not wait, and expected ones
COMMITTED: Final = 88  # groups of wgmma that it has committed
AGAIN: Final = 92  # in watched code: how often it was granted a turn behind its first one
EPOCH: Final = 96  # in watched code
GROUPS: Final = 100  # in watched code: groups of cp.async that it has committed
ISSUED: Final = 104  # of its latest copy the group, from 1
WAITED: Final = 108  # the latest group that it has waited for
WARP: Final = 112  # its number in its cluster
IN_CLUSTER: Final = 116  # its block's number in the cluster
TEAM_SHARED: Final = 120  # host address of the shared memory of the cluster's first block
HEADER: Final = 128
BARRIERS: Final = 16
SLOW: Final = 1 << 30
WHOLE: Final = 1 << 29  # with EXPECTED: as many as the block has, those that have ended too

# POLL: an mbarrier's phase has not ended; CLUSTER_BARRIER: waits for the other blocks; LEAVE: the reference goes on
RUN, END, BARRIER, YIELD, LEAVE, POLL, CLUSTER_BARRIER = range(7)
