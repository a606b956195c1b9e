"""Random numbers by a counter-based generator: Threefry-2x32 with 20 rounds, computed in the kernels that use them.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), section 4.1 and
table 2. A number is a function of (seed, how many were drawn before, its position), so every device gives
the same ones.
"""
from __future__ import annotations

import struct

from tinyhw.core.locks import TABLES, shared_lock
from tinyhw.devices import watch
from tinyhw.devices.buffer import buffer_of, from_host
from tinyhw.function.movement import iota
from tinyhw.ir.dtype import dtypes
from tinyhw.ir.uop import UOp

ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
PARITY = 0x1BD11BDA     # the key schedule's constant, for 32-bit words
ROUNDS = 20


class Generator:
  """The seed and how many draws were made. Each draw's key reaches its kernel as data, so the kernel can run again.

  Threads share it: each draw has a key of its own, and which thread gets which is open.
  """

  def __init__(self) -> None:
    self._lock = shared_lock(TABLES)
    self.seed(0)

  def seed(self, seed: int) -> None:
    """Start anew."""
    if (watcher := watch.watching()) is not None: watcher.outside("the random numbers get a seed")
    with self._lock: self.state, self.draws = seed & 0xFFFFFFFF, 0

  def next(self) -> bytes:
    """The key of the next draw, which no other has: two uint32."""
    with self._lock:
      self.draws += 1
      return struct.pack("<II", self.state, self.draws & 0xFFFFFFFF)

  def key(self, device: str) -> UOp:
    """Memory of the next draw's key."""
    node = from_host(self.next(), device, 2, dtypes.uint32)
    if (watcher := watch.watching()) is not None: watcher.drew(buffer_of(node))
    return node


generator = Generator()


def threefry(counter: tuple[UOp, UOp], key: tuple[UOp, UOp]) -> tuple[UOp, UOp]:
  """Both words of the generator; all four operands are uint32 of one shape."""
  def const(value: int) -> UOp: return UOp.const(dtypes.uint32, value, counter[0].device, counter[0].shape)
  keys = (*key, key[0] ^ key[1] ^ const(PARITY))
  x0, x1 = counter[0] + keys[0], counter[1] + keys[1]
  for r in range(ROUNDS):
    x0 = x0 + x1
    x1 = x0 ^ ((x1 << const(ROTATIONS[r % 8])) | (x1 >> const(32 - ROTATIONS[r % 8])))
    if r % 4 == 3:
      step = r // 4 + 1
      x0, x1 = x0 + keys[step % 3], x1 + keys[(step + 1) % 3] + const(step)
  return x0, x1


def bits(count: int, device: str) -> UOp:
  """`count` random uint32: the first word of Threefry of the counters (0, 0), (1, 0), ... under a new key.

  A thread that computes one number would compute the second word of its counter for nothing anyway.
  """
  memory = generator.key(device)
  key = memory.shrink(((0, 1),)).expand((count,)), memory.shrink(((1, 2),)).expand((count,))
  return threefry((iota(count, device).cast(dtypes.uint32), UOp.const(dtypes.uint32, 0, device, (count,))), key)[0]
