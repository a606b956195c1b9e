"""`python -m tests.mock.cuda.wild SEED ROUNDS`: every function of the driver and the runtime, with wild arguments.

Pointers are null, nowhere, of the host, of the device, handles of every kind, and of things that are gone; sizes and
counts are what fits their type. Structs that pointers lead to are made of the same. Each call is to answer in time, by
a code. Functions that the caller gives are not called, for they would be wild too: those have a list. Told are calls
that print an error of Python's, and where the process ends or stands, the last one.
"""
from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import io
import random
import struct
import sys
from typing import Any

from tests.mock.cuda.client import SAXPY, Client, u64
from tinyhw.autogen import cuda, cudart
from tinyhw.mock.cuda.library.library import runtime

LIMIT_S = 20.0  # of one call, on a machine that does other work too
ROOM = 1 << 20
CALLS_BACK = ("HostFunc", "AddCallback", "UserObject", "HostNode", "OccupancyMaxPotential", "AddNode", "NodeSetParams",
              "LogsRegister", "AsyncNotification", "LogsUnregister")
LAST_ONES = ("cuCtxDestroy", "cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxRelease", "cudaDeviceReset")  # last
WORDS = (0, 1, 2, 3, 4, 7, 8, 16, 255, 4096, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 47, 1 << 63,
         (1 << 64) - 1, (1 << 64) - 4096, 0xDEAD_BEEF, 0x7FFF_FFFF_FFFF_FFFF)


class Wild:
  """A program whose arguments are drawn."""

  def __init__(self, seed: int) -> None:
    self.rng, self.client = random.Random(seed), Client("sm_90,sm_80")
    self.runtime = runtime().loaded.library
    self.room = ctypes.create_string_buffer(3 * ROOM)
    self.host = ctypes.addressof(self.room) + ROOM
    self.things = self.made()
    gone = self.made()
    for name, handle in gone.items():
      with contextlib.suppress(KeyError): self.client.code(ENDS[name], u64(handle))
    self.things |= {f"gone {name}": handle for name, handle in gone.items()}
    self.last: list[Any] = []

  def made(self) -> dict[str, int]:
    """One of each kind of thing."""
    c = self.client
    module = c.handle("cuModuleLoadData", SAXPY.encode() + b"\0")
    graph = c.handle("cuGraphCreate", 0)
    node = c.handle("cuGraphAddEmptyNode", u64(graph), None, ctypes.c_size_t(0))
    descriptor = cuda.CUDA_ARRAY_DESCRIPTOR_v2(Width=16, Height=16, Format=cuda.CU_AD_FORMAT_FLOAT, NumChannels=1)
    pool = cuda.CUmemPoolProps_v1(allocType=cuda.CU_MEM_ALLOCATION_TYPE_PINNED)
    pool.location.type = cuda.CU_MEM_LOCATION_TYPE_DEVICE
    return {
      "memory": c.alloc(4096), "pinned": c.handle("cuMemAllocHost_v2", ctypes.c_size_t(4096)), "module": module,
      "function": c.handle("cuModuleGetFunction", u64(module), b"saxpy"), "graph": graph, "node": node,
      "stream": c.handle("cuStreamCreate", 0), "event": c.handle("cuEventCreate", 0),
      "exec": c.handle("cuGraphInstantiateWithFlags", u64(graph), u64(0)),
      "array": c.handle("cuArrayCreate_v2", ctypes.byref(descriptor)), "context": c.context,
      "pool": c.handle("cuMemPoolCreate", ctypes.byref(pool)),
      "library": c.handle("cuLibraryLoadData", SAXPY.encode() + b"\0", None, None, 0, None, None, 0)}

  def word(self) -> int:
    """A number, a pointer or a handle."""
    kind = self.rng.random()
    if kind < 0.3: return self.rng.choice([*self.things.values()])
    if kind < 0.5: return self.host + 8 * self.rng.randrange(64)
    if kind < 0.6: return self.rng.getrandbits(self.rng.choice((8, 16, 32, 48, 64)))
    return self.rng.choice(WORDS)

  def fill(self) -> None:
    """What pointers to the host lead to."""
    kind = self.rng.random()
    if kind < 0.15: data = self.rng.randbytes(1024)  # texts that are no UTF-8
    elif kind < 0.25:
      data = SAXPY.encode()[:self.rng.randrange(len(SAXPY))] + self.rng.choice((b"", b"\xff\xfe")) + b"\0"
    elif kind < 0.5: data = struct.pack("<256I", *(self.word() & 0xFFFF_FFFF for _ in range(256)))
    else: data = struct.pack("<128Q", *(self.word() for _ in range(128)))
    ctypes.memmove(self.host, data, len(data))

  def argument(self, kind: Any) -> Any:
    """One of a type."""
    if issubclass(kind, ctypes.Structure):
      return kind.from_buffer_copy((struct.pack("<8Q", *(self.word() for _ in range(8))) * 2)[:ctypes.sizeof(kind)])
    if kind is ctypes.c_float: return kind(self.rng.random())
    if kind is not ctypes.c_void_p and self.rng.random() < 0.4: return kind(self.rng.randrange(4))
    return kind(self.word())

  def call(self, library: Any, name: str, kinds: tuple[Any, ...]) -> str:
    """Call a function; what is wrong with it."""
    self.fill()
    arguments = [self.argument(kind) for kind in kinds]
    function, said = getattr(library, name), io.StringIO()
    function.restype = ctypes.c_uint64 if name.startswith("__") or "Error" in name else ctypes.c_int32
    shown = [bytes(a).hex() if isinstance(a, ctypes.Structure) else a.value for a in arguments]
    if sys.stderr.seekable():  # only the last one is wanted
      sys.stderr.seek(0)
      sys.stderr.truncate()
    print(name, shown, file=sys.stderr, flush=True)
    faulthandler.dump_traceback_later(LIMIT_S, exit=True)
    with contextlib.redirect_stderr(said): function(*arguments)
    faulthandler.cancel_dump_traceback_later()
    return said.getvalue()

  def round(self) -> list[str]:
    """Call all of them, in a drawn order."""
    rows = [(self.client.library, name, kinds) for name, kinds in cuda.FUNCTIONS.items()]
    rows += [(self.runtime, name, kinds) for name, kinds in cudart.FUNCTIONS.items() if not name.startswith("__")]
    rows = [row for row in rows if not any(part in row[1] for part in CALLS_BACK)]
    self.rng.shuffle(rows)
    rows.sort(key=lambda row: row[1].startswith(LAST_ONES))
    return [f"{row[1]}: {said}" for row in rows if (said := self.call(*row))]


ENDS = {"memory": "cuMemFree_v2", "pinned": "cuMemFreeHost", "module": "cuModuleUnload", "graph": "cuGraphDestroy",
        "stream": "cuStreamDestroy_v2", "event": "cuEventDestroy_v2", "exec": "cuGraphExecDestroy",
        "array": "cuArrayDestroy", "pool": "cuMemPoolDestroy", "library": "cuLibraryUnload"}


def main(seed: int, rounds: int) -> int:
  """How many calls went wrong."""
  wrong = [line for n in range(rounds) for line in Wild(seed + 1000 * n).round()]
  print("\n".join(wrong))
  return len(wrong)


if __name__ == "__main__": sys.exit(bool(main(int(sys.argv[1]), int(sys.argv[2]))))
