"""Keccak's functions of bytes: SHA-3 and SHAKE (FIPS 202)."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tinyhw.core.errors import InvalidArgument, InvalidType
from tinyhw.function.facts import Facts
from tinyhw.ir.dtype import dtypes

if TYPE_CHECKING:
  from typing import Self

_FUNCTIONS: Final[dict[str, tuple[int, int, int]]] = {     # bytes of a block, of a digest, and what ends a message
  "sha3_224": (144, 28, 0x06), "sha3_256": (136, 32, 0x06), "sha3_384": (104, 48, 0x06), "sha3_512": (72, 64, 0x06),
  "shake_128": (168, 16, 0x1F), "shake_256": (136, 32, 0x1F)}
_ROUNDS: Final = 24


def _offsets() -> list[int]:
  """By how many bits each lane x + 5 * y is turned (section 3.2.2)."""
  found, x, y = [0] * 25, 1, 0
  for t in range(24):
    found[x + 5 * y] = (t + 1) * (t + 2) // 2 % 64
    x, y = y, (2 * x + 3 * y) % 5
  return found


def _constants() -> list[int]:
  """What each round adds to lane 0: bits of a shift register (section 3.2.5)."""
  found, register = [], 1
  for _ in range(_ROUNDS):
    word = 0
    for j in range(7):
      word |= (register & 1) << (1 << j) - 1
      register = register << 1 ^ (0x171 if register & 0x80 else 0)
    found.append(word)
  return found


# Lane x + 5 * y of a round's third step comes from lane _FROM[x + 5 * y] (section 3.2.3), turned by as many bits.
_FROM: Final = [(x + 3 * y) % 5 + 5 * x for y in range(5) for x in range(5)]
_TURNS: Final = [_offsets()[lane] for lane in _FROM]


class Hashing(Facts):
  """The functions that make digests."""
  __slots__ = ()

  def keccak(self, cfg: str = "sha3_256") -> Self:
    """The digests of messages of bytes along the last axis, as bytes: "sha3_224", "sha3_256", "sha3_384", "sha3_512",
    "shake_128" (of 16 bytes) or "shake_256" (of 32)."""
    if cfg not in _FUNCTIONS: raise InvalidArgument(f"keccak {cfg!r} is none of {', '.join(_FUNCTIONS)}")
    if self.dtype is not dtypes.uint8 or not self.ndim:
      raise InvalidType(f"keccak of shape {self.shape}, {self.dtype}", hint="a message is a row of uint8")
    made: Any = type(self)
    block, size, suffix = _FUNCTIONS[cfg]
    lead, length = self.shape[:-1], self.shape[-1]
    tail = bytearray(block - length % block)
    tail[0] |= suffix
    tail[-1] |= 0x80
    ends: Self = made(bytes(tail), device=self.device).expand((*lead, len(tail)))
    words = self.cat(ends, dim=-1).bitcast(dtypes.uint64).reshape((-1, (length + len(tail)) // block, block // 8))
    blocks: Self = words._grown([(0, 0), (0, 0), (0, 25 - block // 8)]).contiguous()
    order, turns, adds = (made(values, device=self.device, dtype=dtype) for values, dtype in (
      (_FROM, dtypes.int32), (_TURNS, dtypes.uint64), (_constants(), dtypes.uint64)))
    def around(x: Self, bits: Self | int) -> Self:
      return (x << bits) | (x >> 1 >> (63 - bits))
    def turned(number: Self, lanes: Self) -> list[Self]:
      taken = blocks.index_select(1, number // _ROUNDS).squeeze(1)
      lanes = lanes ^ (number % _ROUNDS).eq(0).where(taken, 0)
      columns = lanes.reshape((-1, 5, 5))
      parity = columns[:, 0]
      for row in range(1, 5): parity = parity ^ columns[:, row]
      mixed = (columns ^ (parity.roll(1, -1) ^ around(parity.roll(-1, -1), 1)).unsqueeze(1)).reshape((-1, 25))
      moved = around(mixed.index_select(1, order), turns).reshape((-1, 5, 5))
      found = (moved ^ (moved.roll(-1, -1).bitwise_not() & moved.roll(-2, -1))).reshape((-1, 25))
      first = self._iota(25).eq(0)
      return [found ^ first.where(adds.index_select(0, number % _ROUNDS), 0)]
    start: Self = made.zeros(blocks.shape[0], 25, device=self.device, dtype=dtypes.uint64)
    lanes = self._repeated(blocks.shape[1] * _ROUNDS, [start.contiguous()], turned)[0]
    return lanes.bitcast(dtypes.uint8).shrink((None, (0, size))).reshape((*lead, size))
