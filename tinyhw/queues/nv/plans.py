"""Plans (`queues.plans`) of entries of a GPFIFO whose pushbuffers copy, wait and signal, and launch one kernel by its
QMD, or none. Holes are what its semaphores wait for and release, where the QMD is, and in it what it releases
and where its constant buffers, the arguments among them, are."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, Final

from tinyhw.autogen import nv_c56f as host
from tinyhw.core.errors import DecodeError, Unsupported
from tinyhw.queues.effects import Does, Effect
from tinyhw.queues.nv import effects
from tinyhw.queues.nv.qmds import BANKS, POINTER_SHIFT, Bits, Described, bits_of, described, longest, value_of
from tinyhw.queues.nv.stream import FORGETS, Asked, NvFollow, NvState, copies, decoded, forgets, meaning
from tinyhw.queues.plans import PLANS, KnownSubmission, Named, Plans, SubmissionPlan, holes
from tinyhw.queues.world import Item, Read, named
from tinyhw.wire import gpfifo, methods, qmd

_LAUNCHES: Final = "SEND_PCAS_A"
_LOW, _HIGH = ((-1, m.OFFSET) for m in (host.SEM_PAYLOAD_LO, host.SEM_PAYLOAD_HI))
_VALUED: Final = {Does.WAIT, Does.SIGNAL}

Method = tuple[int, int]
"""A subchannel, -1 for the host engine's own methods, and a byte address."""


@dataclass(slots=True, eq=False)
class Pushed:
  """Of a pushbuffer: the classes of its subchannels, values of other methods that it goes by, those that its methods
  leave, and where those are that differ. `signals` are (place among the effects, word, word of the high half or -1);
  `at` is the word of the QMD's address, which the class `launcher` is sent, and `before` and `behind` are around it."""
  classes: dict[int, int] = field(default_factory=dict)
  asked: dict[Method, int] = field(default_factory=dict)
  values: dict[Method, int] = field(default_factory=dict)
  sent: dict[Method, int] = field(default_factory=dict)
  signals: list[tuple[int, int, int]] = field(default_factory=list)
  hidden: set[int] = field(default_factory=set)
  at: int = -1
  launcher: int = 0
  before: list[Effect] = field(default_factory=list)
  behind: list[Effect] = field(default_factory=list)
  plan: SubmissionPlan | None = None

  def fits(self, state: NvState) -> bool:
    """Whether a channel's subchannels have these classes, and its methods these values."""
    values = state.values
    for channel, class_id in self.classes.items():
      if state.class_of(channel) != class_id: return False
    for method, value in self.asked.items():
      if values.get(method, 0) != value: return False
    return True


@dataclass(slots=True, eq=False)
class Qmd:
  """Of a QMD: what is known of one like it, and where the values lie that differ: of its effects and of its roots."""
  class_id: int
  known: Described
  signals: list[tuple[int, Bits]]
  buffers: list[tuple[int, Bits]]  # (bytes, where its address is)

  def hidden(self) -> int:
    """The bits that differ."""
    mask = 0
    for _, bits in (*self.signals, *self.buffers):
      for first, ones, _ in bits: mask |= ones << first
    return mask


def _pieces(ring: list[tuple[int, bytes]], read: Read) -> list[tuple[int, bytes]]:
  """The pushbuffers of a ring's entries; none where one is another entry or not known."""
  found = []
  for _, entries in ring:
    if len(entries) % gpfifo.SIZE: return []
    for value in memoryview(entries).cast("Q"):
      try: piece = gpfifo.piece(value)
      except DecodeError: return []
      if piece is None: return []
      raw = read(piece[0], 4 * piece[1])
      if raw is None or len(raw) < 4 * piece[1]: return []
      found.append((piece[0], raw))
  return found


def _joined(pieces: list[tuple[int, bytes]]) -> bytes:
  """The words of pushbuffers, and behind them where they part."""
  if len(pieces) == 1: return pieces[0][1]
  return b"".join([raw for _, raw in pieces] + [len(raw).to_bytes(4, "little") for _, raw in pieces])


class NvPlans:
  """Those of a process."""

  def __init__(self) -> None:
    self._pushed = Plans[Pushed]()
    self._qmds = Plans[Qmd]()
    self._both: dict[tuple[Pushed, Qmd], SubmissionPlan] = {}

  def known(self, state: NvState, ring: list[tuple[int, bytes]], read: Read) -> KnownSubmission | None:
    """What entries name; the channel's state goes on. None, and it does not, where no plan is known."""
    pieces = _pieces(ring, read)
    if not pieces: return None
    raw = _joined(pieces)
    pushed = self._pushed.find(raw, lambda plan: plan.fits(state))
    if pushed is None: return None
    words = memoryview(raw).cast("I")
    values = [words[low] | words[high] << 32 if high >= 0 else words[low] for _, low, high in pushed.signals]
    if pushed.plan is not None:
      self._goes_on(state, pushed, words)
      return KnownSubmission(pushed.plan, pieces, values, [], [])
    address = words[pushed.at] << POINTER_SHIFT
    described_by = read(address, longest(pushed.launcher)) or read(address, 1 << POINTER_SHIFT) or b""
    found = self._qmds.find(described_by, lambda plan: plan.class_id == pushed.launcher)
    if found is None: return None
    self._goes_on(state, pushed, words)
    made = int.from_bytes(described_by, "little")
    for _, bits in found.signals: values.append(value_of(made, bits))
    return KnownSubmission(self._of(pushed, found), [*pieces, (address, described_by)], values,
                 [(value_of(made, bits), size) for size, bits in found.buffers], [])

  def _goes_on(self, state: NvState, pushed: Pushed, words: memoryview) -> None:
    state.values.update(pushed.values)
    for method, at in pushed.sent.items(): state.values[method] = words[at]

  def _of(self, pushed: Pushed, found: Qmd) -> SubmissionPlan:
    """The plan of both."""
    plan = self._both.get((pushed, found))
    if plan is None:
      if len(self._both) >= PLANS: self._both.clear()
      plan = self._both[pushed, found] = _both(pushed, found)
    return plan

  def learn(self, state: NvState, ring: list[tuple[int, bytes]], read: Read, follow: NvFollow) -> Named:
    """What a submission names, by the long way; its plan is kept where it is one that gives the same."""
    whole = named(follow)
    if len(follow.launches) > 1 or len(follow.pieces) <= len(follow.launches): return whole
    pushed, raw = _pushed(follow), _joined(follow.pieces[:len(follow.pieces) - len(follow.launches)])
    if pushed is None: return whole
    words = b"" if pushed.plan is not None else follow.pieces[-1][1]
    found = _qmd(pushed.launcher, words) if words else None
    if words and found is None: return whole
    trial, after = NvPlans(), replace(state, values=dict(state.values))
    trial._keep(raw, pushed, words, found)
    again = trial.known(after, ring, read)
    if again is not None and again.named() == whole and after == state: self._keep(raw, pushed, words, found)
    return whole

  def _keep(self, raw: bytes, pushed: Pushed, words: bytes, found: Qmd | None) -> None:
    self._pushed.keep(raw, holes([*pushed.hidden]), pushed)
    if found is not None: self._qmds.keep(words, found.hidden(), found)


def _both(pushed: Pushed, found: Qmd) -> SubmissionPlan:
  """The plan of a pushbuffer that launches by a QMD."""
  known, first = found.known, len(pushed.before)
  does = [*pushed.before, *known.effects, *pushed.behind]
  valued = [place + (place >= first) * len(known.effects) for place, _, _ in pushed.signals]
  before, behind = (_roots(part) for part in (pushed.before, pushed.behind))
  own = list(known.roots[:len(known.roots) - len(found.buffers)])
  places = [*valued, *(first + place for place, _ in found.signals)]
  return SubmissionPlan(does, places, [(known.entry, known.arguments[1])], [*before, *own, *behind], [],
                        len(before) + len(own))


def _roots(does: Iterable[Effect]) -> list[tuple[int, int]]: return [(e.address, 0) for e in does if e.address]


# ---- by the long way


def _pushed(follow: NvFollow) -> Pushed | None:
  """The plan of a submission's methods; None where it has others than those of a plan."""
  found, values, places, at = Pushed(), Asked(follow.state.values), dict[Method, int](), 0
  if any(item.error or item.depth > 1 and item.packet is None for item in follow.items): return None
  for item in follow.items:
    if item.depth != 1: continue
    if isinstance(item.packet, methods.Send) and not _add(found, item, at, values, places): return None
    at += len(item.words)
  if values.asked & values.keys(): return None  # it is sent behind where it is asked for
  if not found.sent.keys() <= places.keys(): return None  # a header has the last value in itself
  found.sent = {method: places[method] for method in found.sent}
  found.asked = {method: follow.state.values.get(method, 0) for method in values.asked}
  found.values = {method: value for method, value in values.items() if method not in found.sent}
  if found.at < 0:
    signals = [n for n, _, _ in found.signals]
    found.plan = SubmissionPlan(found.before, signals, [], _roots(found.before), [], 0)
  return found


def _add(found: Pushed, item: Item, at: int, values: Asked, places: dict[Method, int]) -> bool:
  """Note a header's methods at a word; `places` are words of values. False where they are none for a plan."""
  sent: Any = item.packet
  known = meaning(item.class_id, decoded(item.words, 0))
  if known is None: return False
  found.classes[sent.subchannel] = item.class_id
  for n, (method, _) in enumerate(sent.writes(), at + 1):
    where = -1 if method < methods.HOST_END else sent.subchannel, method
    if sent.header is methods.IMMD: places.pop(where, None)
    else: places[where] = n
  for before, module, name, value in known.steps:
    values.update(before)
    try:
      if not _does(found, module, name, sent.subchannel, value, values, places): return False
    except (DecodeError, Unsupported): return False
  values.update(known.leaves)
  return True


def _does(found: Pushed, module: ModuleType | None, name: str, channel: int, value: int, values: Asked,
          places: dict[Method, int]) -> bool:
  """Note what a method does."""
  does = found.before if found.at < 0 else found.behind
  if name == "SEM_EXECUTE":
    new = effects.semaphore(values, value)
    if _LOW not in places or _HIGH not in places: return False
    place = next(n for n, e in enumerate(new, len(found.before) + len(found.behind)) if e.does in _VALUED)
    wide = new[place - len(found.before) - len(found.behind)].size == 8
    found.signals.append((place, places[_LOW], places[_HIGH] if wide else -1))
    found.sent |= {_LOW: places[_LOW], _HIGH: places[_HIGH]}
    found.hidden |= {places[_LOW], places[_HIGH]}
    does += new
  elif module is None: does.append(effects.IDLE)  # WFI
  elif name in FORGETS: does += forgets(module, name, value)
  elif name == "LAUNCH_DMA" and copies(module): does += effects.copied(module, values, channel, value)
  elif name == _LAUNCHES and found.at < 0:
    method = channel, getattr(module, name).OFFSET
    if method not in places: return False
    found.at, found.launcher = places[method], module.CLASS
    found.sent[method] = found.at
    found.hidden.add(found.at)
  else: return False
  return True


def _qmd(class_id: int, raw: bytes) -> Qmd | None:
  """The plan of a QMD; None for one that has others run behind itself, or whose effects are not all known."""
  known = described(class_id, raw)
  made: Any = known.packet
  kind = type(made)
  def has(name: str, index: int) -> bool: return qmd.has(kind, name, index) and bool(qmd.read(made, name, index))
  releases = [n for n in range(effects.RELEASES) if has("RELEASE_ENABLE", n)]
  banks = [b for b in range(BANKS) if has("CONSTANT_BUFFER_VALID", b)]
  signals = [place for place, effect in enumerate(known.effects) if effect.does is Does.SIGNAL]
  sizes = [size for _, size in known.roots[len(known.roots) - len(banks):]]
  if known.behind or known.error or len(signals) != len(releases) or not all(sizes): return None
  return Qmd(class_id, known,
             [(place, bits_of(kind, "RELEASE_SEMAPHORE_PAYLOAD", n)) for place, n in zip(signals, releases)],
             [(size, bits_of(kind, "CONSTANT_BUFFER_ADDR", b)) for size, b in zip(sizes, banks)])
