"""Kernels: the first instruction, stores, arguments, threads and blocks, masks,
         branches, memory of each kind, calls."""
from __future__ import annotations

import random
import struct
from typing import Final

from tinyhw.bringup.bench import check, first_wrong, same
from tinyhw.bringup.nv.bench import NvBench
from tinyhw.bringup.nv.ladder import NV
from tinyhw.bringup.nv.programs import NUMBERS, binary, kernel, stored
from tinyhw.bringup.rung import Absent, Broken
from tinyhw.core.errors import DeviceError, MissingTool
from tinyhw.wire import qmd

_REST: Final = 0xEEEE_EEEE
_LARGE: Final = 33 << 20  # bytes that the driver moves by threads
_QMD: Final = "the QMD (--qmd tries another version of the class), bank 0, and the kernel's log for Xid lines"


@NV.rung("waves.driver", needs=("queue.object", "copies.vram", "signals.across"), seconds=15,
         why="The driver over all this opens: its channels, its timeline, copies there and back, large ones too.")
def driver(b: NvBench) -> str:
  runtime = b.runtime
  runtime.synchronize()
  for size in (12, min(b.largest, _LARGE) + 5):
    data = random.Random(size).randbytes(size)
    first, second, out = runtime.alloc(size), runtime.alloc(size), bytearray(size)
    runtime.copyin(first, memoryview(data))
    runtime.copy(second, first, size)
    runtime.copyout(memoryview(out), second)
    for buffer in (first, second): runtime.free(buffer)
    check(out == data, f"of {size:,} bytes some come back wrong", "the bytes that were copied in",
         "the driver's copies")
  return (f"QMD version {'.'.join(map(str, runtime.qmd_version))}; timeline at {runtime.timeline.signal.value}; "
          f"{size:,} bytes, {runtime.movers.threads} threads")


@NV.rung("waves.assembled", needs=("waves.driver",), seconds=60,
         why="A card runs machine code: PTX needs ptxas or nvJitLink. Without one the rungs above are absent.")
def assembled(b: NvBench) -> str:
  try: return f"{len(binary(b)):,} bytes of ELF"
  except MissingTool as error: raise Absent(error.headline()) from None


@NV.rung("waves.end", needs=("waves.assembled",), seconds=15,
         why="A kernel of one instruction starts and ends: a QMD is scheduled, and its release comes.")
def end(b: NvBench) -> str:
  others = [".".join(map(str, v)) for v in qmd.versions(b.arch.compute_class) if v != b.runtime.qmd_version]
  nothing, buffer = kernel(b, "nothing"), b.runtime.alloc(4)
  try:
    spent = nothing([buffer], [0, 0], (1, 1, 1), (32, 1, 1), wait=True)
    nothing([buffer], [0, 0], (1, 1, 1), (32, 1, 1))
    b.runtime.synchronize()  # this time by what the QMD itself writes
  except DeviceError as error:
    raise Broken(error.headline(), "a launch that ends",
         f"{_QMD}; versions of the class: {', '.join(others)}") from None
  check(spent is not None and spent >= 0, f"a launch took {spent} s", "a time", _QMD)
  more = f"; the class has {', '.join(others)} too" if others else ""
  return f"{(spent or 0) * 1e6:.1f} us on the card's clock{more}"


@NV.rung("waves.store", needs=("waves.end",), seconds=10, why="The first effect of a thread: a word in memory.")
def store(b: NvBench) -> str:
  first_wrong(stored(b, "store", 2, block=(1, 1, 1), numbers=(0x600D_C0DE, 0)), [0x600D_C0DE, _REST],
              "what one thread stores", _QMD)
  return "0x600dc0de, of an argument"


@NV.rung("waves.arguments", needs=("waves.store",), seconds=10,
         why="Arguments lie in constant bank 0, each at its offset.")
def arguments(b: NvBench) -> str:
  found = stored(b, "arguments", 4, block=(1, 1, 1), numbers=(7, 9))
  first_wrong(found[2:], [7, 9], "two numbers behind the pointer", "bank 0: where parameters begin (arch/nv.py, Bank0)")
  check(found[0] | found[1] << 32 != 0, "the pointer is 0", "the buffer's address", "bank 0")
  return "a pointer of 64 bits and two numbers"


@NV.rung("waves.lanes", needs=("waves.store",), seconds=10, why="Each thread knows its number, over several warps.")
def lanes(b: NvBench) -> str:
  first_wrong(stored(b, "lanes", 128, block=(96, 1, 1)), [*range(96), *[_REST] * 32], "%tid.x of 96 threads",
              "the QMD's CTA_THREAD_DIMENSION")
  return "96 threads of 3 warps"


@NV.rung("waves.groups", needs=("waves.lanes",), seconds=10, why="Each block knows its place in three dimensions.")
def groups(b: NvBench) -> str:
  found = stored(b, "groups", 64, (3, 4, 5), (1, 1, 1), (3, 4))
  wanted = [x | y << 8 | z << 16 for z in range(5) for y in range(4) for x in range(3)]
  first_wrong(found, wanted + [_REST] * 4, "%ctaid of 3 x 4 x 5 blocks", "the QMD's CTA_RASTER or GRID_ dimensions")
  return "60 blocks"


@NV.rung("waves.masks", needs=("waves.lanes",), seconds=10,
         why="Which lanes live: in a warp that is not full, and under a branch.")
def masks(b: NvBench) -> str:
  found = stored(b, "ones", 32, block=(13, 1, 1))
  first_wrong(found, [1] * 13 + [_REST] * 19, "stores of the lanes of 13 threads", "a block's last warp")
  mask = 0x8421_F00F
  found = stored(b, "masked", 32, numbers=(mask, 0))
  for i in range(32):
    if not mask >> i & 1: same(found[i], _REST, f"the word of lane {i}, which is branched over", "divergence")
    else: check(bool(found[i] >> i & 1) and not found[i] & ~mask, f"the active mask of lane {i} is {found[i]:#x}",
                f"a part of {mask:#x} with its own bit", "divergence, and %activemask")
  return "13 of 32, and a mask of its own"


@NV.rung("waves.numbers", needs=("waves.lanes",), seconds=10,
         why="Integers and floats: sums, products, shifts, a fused multiply-add.")
def numbers(b: NvBench) -> str:
  a = 0xDEAD_BEEF
  found = stored(b, "numbers", 32 * len(NUMBERS), numbers=(a, 0))
  def bits(x: float) -> int: return int(struct.unpack("<I", struct.pack("<f", x))[0])
  wanted = [f(i) & 0xFFFFFFFF for f in (
    lambda i: a + i, lambda i: a - i, lambda i: a * i, lambda i: a * i >> 32, lambda i: a ^ i, lambda i: a << i,
    lambda i: bits(float(i * i + i)), lambda i: a >> i & 0x7F) for i in range(32)]
  for n, step in enumerate(NUMBERS):
    first_wrong(found[32 * n:32 * n + 32], wanted[32 * n:32 * n + 32], step, "the instruction, by its name")
  return f"{len(NUMBERS)} instructions in 32 lanes"


@NV.rung("waves.branches", needs=("waves.store",), seconds=10, why="Loops, conditions and predicates.")
def branches(b: NvBench) -> str:
  first_wrong(stored(b, "branches", 32, numbers=(10, 5)), [46] * 5 + [45] * 27,
              "a loop's sum, and one more in 5 lanes", "predicates, and branch targets")
  return "a loop of 10, a branch over 27 lanes"


@NV.rung("waves.constants", needs=("waves.lanes",), seconds=10,
         why="Tables of a module lie in a constant bank of their own, which lanes index apart.")
def constants(b: NvBench) -> str:
  first_wrong(stored(b, "constants", 32), [(i % 8) ** 2 for i in range(32)], "a table of 8 words by 32 lanes",
              "the QMD's constant buffers: address, size, valid")
  return "32 lanes of a table of 8"


@NV.rung("waves.shared", needs=("waves.lanes",), seconds=10,
         why="Shared memory joins the warps of a block, behind a barrier.")
def shared(b: NvBench) -> str:
  first_wrong(stored(b, "shared", 256, block=(256, 1, 1), numbers=(255, 0)), list(range(255, -1, -1)),
              "what 256 threads find in shared memory, in reverse", "the QMD's SHARED_MEMORY_SIZE, and bar.sync")
  return "256 words, in reverse, over 8 warps"


@NV.rung("waves.apart", needs=("waves.shared", "waves.groups"), seconds=10,
         why="Blocks that run together have shared memory of their own.")
def apart(b: NvBench) -> str:
  first_wrong(stored(b, "apart", 32 * 16, (16, 1, 1)), [i // 32 for i in range(32 * 16)],
              "what each block finds in its shared memory", "the QMD's SM_CONFIG_SHARED_MEM_SIZE")
  return "16 blocks"


@NV.rung("waves.local", needs=("waves.lanes",), seconds=20,
         why="Each thread has memory of its own, for spills and stacks; more threads than the card holds at once.")
def local(b: NvBench) -> str:
  found = stored(b, "local", 64 * 256, (64, 1, 1), (256, 1, 1))
  first_wrong(found, [i + i % 256 for i in range(64 * 256)], "what threads find in their local memory",
              "SET_SHADER_LOCAL_MEMORY_A, its size a TPC, and SHADER_LOCAL_MEMORY_HIGH_SIZE of the QMD")
  return "16,384 threads, 1,024 bytes each"


@NV.rung("waves.calls", needs=("waves.store",), seconds=10, why="A call saves where it came from, and returns there.")
def calls(b: NvBench) -> str:
  same(stored(b, "calls", 1, block=(1, 1, 1))[0], (1 * 3 + 100) * 3, "what two calls make of 1", "call and ret")
  return "2 calls of one function"


@NV.rung("waves.shuffles", needs=("waves.lanes",), seconds=10,
         why="Lanes of a warp read each other's registers, and vote.")
def shuffles(b: NvBench) -> str:
  first_wrong(stored(b, "shuffles", 32), [(i ^ 5) | 0x1FF << 8 for i in range(32)], "shfl.sync.bfly and a ballot",
              "shfl.sync, vote.sync")
  return "a butterfly and a ballot"
