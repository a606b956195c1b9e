"""Plans (`queues.plans`) of one entry of a GPFIFO whose pushbuffer launches one kernel by its QMD. Holes are where the
QMD is, and in it what it releases and where its constant buffers, the arguments among them, are."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from tinyhw.core.errors import DecodeError
from tinyhw.queues.effects import Does, Effect
from tinyhw.queues.nv.effects import RELEASES
from tinyhw.queues.nv.stream import (
  BANKS,
  FORGETS,
  POINTER_SHIFT,
  Described,
  NvFollow,
  NvState,
  described,
  longest,
  meaning,
)
from tinyhw.queues.plans import Plans, holes, signalling
from tinyhw.queues.world import Named, Read, named
from tinyhw.wire import gpfifo, methods, qmd

_LAUNCHES: Final = "SEND_PCAS_A"
_STEPS: Final = {"WFI", _LAUNCHES, *FORGETS}  # methods whose effects are in their own words

Pieces = tuple[tuple[Any, int, int], ...]
"""Where a value of a QMD lies; see `qmd.pieces`."""


@dataclass(slots=True, eq=False)
class Pushed:
  """Of a pushbuffer: the classes of its subchannels, the values that its methods leave, which of them is the QMD's
  address (and the position of its word), and what it does before the launch and behind."""
  classes: dict[int, int]
  values: dict[tuple[int, int], int]
  launch: tuple[int, int]
  at: int
  before: list[Effect]
  behind: list[Effect]

  def fits(self, state: NvState) -> bool:
    """Whether a channel's subchannels have these classes."""
    return all(state.class_of(channel) == class_id for channel, class_id in self.classes.items())


@dataclass(slots=True, eq=False)
class Qmd:
  """Of a QMD: what is known of one like it, and where the values lie that differ: of its effects and of its roots."""
  class_id: int
  known: Described
  signals: list[tuple[int, Pieces]]
  buffers: list[tuple[int, Pieces]]

  def effects(self, words: int) -> list[Effect]:
    """What words do."""
    found = list(self.known.effects)
    for place, pieces in self.signals: found[place] = signalling(found[place], _value(words, pieces))
    return found

  def hidden(self) -> int:
    """The bits that differ."""
    mask = 0
    for _, pieces in (*self.signals, *self.buffers):
      for lies, _, width in pieces: mask |= (1 << width) - 1 << lies.lo
    return mask

  def roots(self, words: int) -> list[tuple[int, int]]:
    """What words name."""
    found = list(self.known.roots)
    for place, pieces in self.buffers: found[place] = _value(words, pieces), found[place][1]
    return found


def _value(words: int, pieces: Pieces) -> int:
  value = 0
  for lies, at, width in pieces: value |= (words >> lies.lo & (1 << width) - 1) << at
  return value


class NvPlans:
  """Those of a process."""

  def __init__(self) -> None:
    self._pushed = Plans[Pushed]()
    self._qmds = Plans[Qmd]()

  def named(self, state: NvState, ring: list[tuple[int, bytes]], read: Read) -> Named | None:
    """What an entry names; the channel's state goes on. None, and it does not, where no plan is known."""
    if len(ring) != 1 or len(ring[0][1]) != gpfifo.SIZE: return None
    try: entry = gpfifo.decode(int.from_bytes(ring[0][1], "little"))
    except DecodeError: return None
    if not isinstance(entry, gpfifo.Segment): return None
    raw = read(entry.address, 4 * entry.dwords)
    if raw is None or len(raw) < 4 * entry.dwords: return None
    pushed = self._pushed.find(raw, lambda plan: plan.fits(state))
    if pushed is None: return None
    word = int.from_bytes(raw[4 * pushed.at:4 * pushed.at + 4], "little")
    class_id, address = pushed.classes[pushed.launch[0]], word << POINTER_SHIFT
    described_by = read(address, longest(class_id)) or read(address, 1 << POINTER_SHIFT) or b""
    found = self._qmds.find(described_by, lambda plan: plan.class_id == class_id)
    if found is None: return None
    state.values.update(pushed.values)
    state.values[pushed.launch] = word
    words = int.from_bytes(described_by, "little")
    does = [*pushed.before, *found.effects(words), *pushed.behind]
    return Named([(entry.address, raw), (address, described_by)], does,
                 [(found.known.entry, found.known.arguments[1])], found.roots(words), (pushed, found))

  def learn(self, state: NvState, ring: list[tuple[int, bytes]], read: Read, follow: NvFollow) -> Named:
    """What a submission names, by the long way; its plan is kept where it is one that gives the same."""
    whole = named(follow)
    if len(follow.launches) != 1 or len(follow.pieces) != 2 or any(i.error for i in follow.items): return whole
    (_, raw), (_, words) = follow.pieces
    pushed = _pushed(follow)
    found = None if pushed is None else _qmd(pushed.classes[pushed.launch[0]], words)
    if pushed is None or found is None: return whole
    trial, after = NvPlans(), replace(state, values=dict(state.values))
    trial._keep(raw, pushed, words, found)
    again = trial.named(after, ring, read)
    if again is not None and replace(again, plan=None) == whole and after == state:
      self._keep(raw, pushed, words, found)
    return whole

  def _keep(self, raw: bytes, pushed: Pushed, words: bytes, found: Qmd) -> None:
    self._pushed.keep(raw, holes([pushed.at]), pushed)
    self._qmds.keep(words, found.hidden(), found)


def _pushed(follow: NvFollow) -> Pushed | None:
  """The plan of a submission's methods; None where it has others than those of a plan."""
  found, at, inner, behind = Pushed({}, {}, (0, 0), -1, [], []), 0, follow.launches[0].item, False
  for item in follow.items:
    if item is inner: behind = True
    if item.depth != 1: continue
    (found.behind if behind else found.before).extend(item.effects)
    sent: Any = item.packet
    if isinstance(sent, methods.Send):
      known = meaning(item.class_id, item.words, sent)
      if known is None or not {name for _, _, name, _ in known.steps} <= _STEPS: return None
      found.classes[sent.subchannel] = item.class_id
      for values, module, name, _ in known.steps:
        found.values |= values
        if name != _LAUNCHES: continue
        offset = getattr(module, name).OFFSET
        found.launch = sent.subchannel, offset
        found.at = at + 1 + [method for method, _ in sent.writes()].index(offset)
      found.values |= known.leaves
    at += len(item.words)
  if found.at < 0 or found.at >= at: return None
  return found


def _qmd(class_id: int, raw: bytes) -> Qmd | None:
  """The plan of a QMD; None for one that has others run behind itself, or whose effects are not all known."""
  known = described(class_id, raw)
  made: Any = known.packet
  kind = type(made)
  def has(name: str, index: int) -> bool: return qmd.has(kind, name, index) and bool(qmd.read(made, name, index))
  releases = [n for n in range(RELEASES) if has("RELEASE_ENABLE", n)]
  banks = [b for b in range(BANKS) if has("CONSTANT_BUFFER_VALID", b)]
  signals = [place for place, effect in enumerate(known.effects) if effect.does is Does.SIGNAL]
  first = len(known.roots) - len(banks)
  if known.behind or len(signals) != len(releases) or any(not size for _, size in known.roots[first:]): return None
  return Qmd(class_id, known,
             [(place, qmd.pieces(kind, "RELEASE_SEMAPHORE_PAYLOAD", n)) for place, n in zip(signals, releases)],
             [(first + i, qmd.pieces(kind, "CONSTANT_BUFFER_ADDR", b)) for i, b in enumerate(banks)])
