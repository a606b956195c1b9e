"""What is known of a QMD by its words: what it launches, does, and names.

A driver's QMDs differ in few bits: what they release, where their constant buffers are, which QMD they have run behind.
Where these lie is found once (`_Like`); one that differs from it in nothing else is read by these bits alone.
"""
from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final

from tinyhw.core.errors import DecodeError, Unsupported
from tinyhw.core.layout import Packet
from tinyhw.queues.effects import Does, Effect
from tinyhw.queues.nv import effects
from tinyhw.queues.plans import Plans
from tinyhw.wire import qmd

BANKS: Final = 8  # constant buffers of a QMD
DEPENDENTS: Final = 2  # QMDs that it can have run behind itself
POINTER_SHIFT: Final = 8  # of their addresses in it: QMDs are 256 bytes apart
KEPT: Final = 1 << 14  # that are known

Bits = tuple[tuple[int, int, int], ...]
"""Where a value of a QMD lies: first bits, masks behind these, and where they belong in it."""


@dataclass(frozen=True, slots=True)
class Described:
  """See `Launch`. `error`: what could not be read of its effects."""
  packet: Packet
  words: tuple[int, ...]
  effects: tuple[Effect, ...]
  error: str
  roots: tuple[tuple[int, int], ...]
  entry: int
  arguments: tuple[int, int]
  grid: tuple[int, int, int]
  block: tuple[int, int, int]
  behind: tuple[int, ...]  # QMDs that it has run behind itself


@dataclass(frozen=True, slots=True)
class _Like:
  """QMDs that differ in the values of effects at places, in the addresses of the last roots, which are constant
  buffers, and in the addresses of those behind them. `first` says which of the buffers is bank 0's, -1 for none."""
  known: Described
  signals: tuple[tuple[int, Bits], ...]
  buffers: tuple[Bits, ...]
  behind: tuple[Bits, ...]
  first: int

  def hidden(self) -> int:
    """The bits that differ."""
    mask = 0
    for bits in (*(bits for _, bits in self.signals), *self.buffers, *self.behind):
      for first, ones, _ in bits: mask |= ones << first
    return mask

  def described(self, packet: Packet, words: tuple[int, ...], number: int) -> Described:
    """What is known of another one; `number` is all of its bits."""
    known, does = self.known, list(self.known.effects)
    for place, bits in self.signals: does[place] = does[place]._replace(value=value_of(number, bits))
    at = len(known.roots) - len(self.buffers)
    buffers = tuple((value_of(number, bits), size) for bits, (_, size) in zip(self.buffers, known.roots[at:]))
    behind = tuple(value_of(number, bits) << POINTER_SHIFT for bits in self.behind)
    return Described(packet, words, tuple(does), "", known.roots[:at] + buffers, known.entry,
                     buffers[self.first] if self.first >= 0 else (0, 0), known.grid, known.block, behind)


_DESCRIBED: dict[tuple[int, bytes], Described] = {}
_LIKE: dict[int, Plans[_Like]] = {}  # of a class


def value_of(words: int, bits: Bits) -> int:
  """A value of a QMD."""
  found = 0
  for first, ones, at in bits: found |= (words >> first & ones) << at
  return found


def bits_of(kind: type[Any], name: str, index: int) -> Bits:
  """Where a value lies."""
  return tuple((lies.lo, (1 << width) - 1, at) for lies, at, width in qmd.pieces(kind, name, index))


@functools.cache
def longest(class_id: int) -> int:
  """Bytes of a compute class' longest QMD."""
  return 4 * max(int(d.DWORDS) for d in qmd.versions(class_id).values())


def described(class_id: int, raw: bytes) -> Described:
  """Of a QMD. Raises DecodeError."""
  key = class_id, raw
  if (found := _DESCRIBED.get(key)) is not None: return found
  if (plans := _LIKE.get(class_id)) is None: plans = _LIKE[class_id] = Plans[_Like]()
  words = tuple(memoryview(raw[:len(raw) & ~3]).cast("I").tolist())
  like = plans.find(raw)
  if like is not None:
    kind: Any = type(like.known.packet)
    words = words[:kind.DWORDS]
    found = like.described(kind.decode(words), words, int.from_bytes(raw, "little"))
  else:
    found = whole(class_id, words)
    if (like := _like(found)) is not None: plans.keep(raw, like.hidden(), like)
  if len(_DESCRIBED) >= KEPT: _DESCRIBED.clear()
  _DESCRIBED[key] = found
  return found


def leads(class_id: int, raw: bytes) -> tuple[str, int, tuple[int, ...]]:
  """Of a QMD its version's name, its program's address, and the QMDs that it has run behind itself. Raises
  DecodeError."""
  like = plans.find(raw) if (plans := _LIKE.get(class_id)) is not None else None
  if like is None:
    found = described(class_id, raw)
    return type(found.packet).__name__, found.entry, found.behind
  known, number = like.known, int.from_bytes(raw, "little") if like.behind else 0
  return type(known.packet).__name__, known.entry, tuple(value_of(number, b) << POINTER_SHIFT for b in like.behind)


def whole(class_id: int, words: tuple[int, ...]) -> Described:
  """The same by all fields. Raises DecodeError."""
  made = qmd.decode(class_id, words)
  noted, error = list[Effect](), ""
  try: noted += effects.launch(made)
  except (DecodeError, Unsupported) as wrong: error = str(wrong)
  banks = [b for b in range(BANKS) if _flag(made, "CONSTANT_BUFFER_VALID", b)]
  buffers = {b: (qmd.read(made, "CONSTANT_BUFFER_ADDR", b), qmd.read(made, "CONSTANT_BUFFER_SIZE", b)) for b in banks}
  entry = qmd.read(made, "PROGRAM_ADDRESS")
  width, height, depth = (qmd.read(made, f"GRID_{n}") for n in ("WIDTH", "HEIGHT", "DEPTH"))
  x, y, z = (qmd.read(made, f"CTA_THREAD_DIMENSION{n}") for n in range(3))
  behind = tuple(qmd.read(made, "DEPENDENT_QMD_POINTER", n) << POINTER_SHIFT for n in _dependents(made))
  roots = (*((e.address, 0) for e in noted if e.address), (entry, 0), *buffers.values())
  return Described(made, words[:made.DWORDS], tuple(noted), error, roots, entry, buffers.get(0, (0, 0)),
                   (width, height, depth), (x, y, z), behind)


def _like(known: Described) -> _Like | None:
  """What one QMD says of others; None where its effects are not all known."""
  made: Any = known.packet
  kind = type(made)
  releases = [n for n in range(effects.RELEASES) if qmd.has(kind, "RELEASE_ENABLE", n) and
              qmd.read(made, "RELEASE_ENABLE", n)]
  places = [n for n, e in enumerate(known.effects) if e.does is Does.SIGNAL]
  if known.error or len(places) != len(releases): return None
  banks = [b for b in range(BANKS) if _flag(made, "CONSTANT_BUFFER_VALID", b)]
  return _Like(known, tuple((at, bits_of(kind, "RELEASE_SEMAPHORE_PAYLOAD", n)) for at, n in zip(places, releases)),
               tuple(bits_of(kind, "CONSTANT_BUFFER_ADDR", b) for b in banks),
               tuple(bits_of(kind, "DEPENDENT_QMD_POINTER", n) for n in _dependents(made)),
               banks.index(0) if 0 in banks else -1)


def _dependents(made: Packet) -> list[int]:
  """Which of those behind a QMD it has run."""
  return [n for n in range(DEPENDENTS) if qmd.has(type(made), "DEPENDENT_QMD_ENABLE", n)
          and qmd.read(made, "DEPENDENT_QMD_ENABLE", n)]


def _flag(made: Packet, name: str, index: int) -> bool:
  try: return bool(qmd.read(made, name, index))
  except Unsupported: return False
