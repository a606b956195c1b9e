"""Races: two threads touch the same byte, at least one writes, and nothing orders them.

Every warp has a vector of clocks. It says of each warp of its cluster how much of its work is known to be done,
apart for each kind of work: what it does itself (OWN), copies by cp.async (COPY), copies in bulk that tell an mbarrier
(BULK) or end with their group (STORE), what wgmma reads (MATRIX), what tcgen05 does (TENSOR); and how much of the
others' own work a fence.proxy.async has made visible to the asynchronous ones (PROXY); and up to where it is known
that mbarriers are initialized (INIT). Barriers are tokens: who arrives tells what he knows, a .relaxed arrival what he
knew at his last fence, and who goes on has heard it once the phase is complete. Threads of one warp are ordered by
what they do together (bar.warp.sync and other instructions with .sync).

An atomic tells of its warp, one that returns a value also listens, as do loads and stores that are strong (volatile,
relaxed, acquire, release); for one address that is more order than a program may rely on, so that a lock or a counter
makes no false finding.

Order between PTX's threads is told to observers by tokens: who comes to a barrier or mbarrier has
`told` it, a phase is `complete`, who goes on has `heard`. The asynchronous kinds have clocks of
their own because here they happen at once.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tinyhw.emulator.check import races
from tinyhw.emulator.values.ops import Array as Value

OWN, COPY, BULK, STORE, MATRIX, TENSOR, PROXY, INIT = range(8)
KINDS: Final = 8
PLAIN, ATOMIC, COMPARE = races.PLAIN, races.ATOMIC, races.COMPARE
MAKES: Final = COMPARE + 1  # mbarrier.init and .inval; whether uses of the mbarrier come behind them is asked apart
PROXIES: Final = frozenset({BULK, STORE, MATRIX, TENSOR})
_TOLD: Final = {"copies": COPY, "bulk": BULK, "tcgen05": TENSOR}
_BUCKETS: Final = 64  # of addresses, by which atomics tell and listen


class Shadow(races.Shadow):
  """The latest accesses to each byte, with their lane, kind of work and whether they were atomic."""

  TABLES = {**races.Shadow.TABLES, "lane": (np.int8, 0), "kind": (np.uint8, 0), "how": (np.uint8, 0)}
  lane: dict[str, Value]
  kind: dict[str, Value]
  how: dict[str, Value]


@dataclass(frozen=True)
class Race:
  """The access at hand meets one of kind `other_kind` at `other_pc`; warps count from the launch's first."""
  other_pc: int
  wave: int
  lane: int
  other_wave: int
  other_lane: int
  address: int
  write: bool
  other_write: bool
  other_kind: int


@dataclass
class Touch:
  """Bytes that threads touch: where their shadow is, whose (index in the cohort) and at which address each is."""
  shadow: Shadow
  index: Value
  wave: Value
  lane: Value
  byte: Value
  writes: bool
  how: int = PLAIN
  kind: int = OWN
  data: Value | None = None  # the bytes that are stored, where they are known
  tensor: bool = False  # words of tensor memory: no proxy is between, and tensor cores do one thing after the other


class Races:
  """The accesses of one cohort's warps: `a_cluster` of them know of each other."""

  def __init__(self, waves: int, a_cluster: int, first: int) -> None:
    self.a_cluster, self.first = a_cluster, first
    self.known = np.zeros((waves, KINDS * a_cluster), np.int32)
    self.own = np.arange(waves) % a_cluster  # the column of each warp's own work
    self.known[np.arange(waves), self.own] = 1
    self._fenced = np.zeros_like(self.known)  # what each warp knew when it came to a fence
    self.issued = np.zeros((KINDS, waves), np.int32)
    self.groups: dict[tuple[int, int], list[int]] = {}  # (kind, warp) -> what was issued at each commit
    self._pending: dict[Any, Value] = {}
    self._done: dict[Any, Value] = {}
    self._spoken = np.zeros((waves // a_cluster, _BUCKETS, KINDS * a_cluster), np.int32)

  # ---- order

  def told(self, rows: Value, token: Any, how: str) -> None:
    """Warps tell a token what they know, or of their copies."""
    v = self._pending.get(token)
    if v is None: v = self._pending[token] = np.zeros(self.known.shape[1], np.int32)
    if how == "relaxed": np.maximum(v, self._fenced[rows].max(axis=0), out=v)
    elif how:
      kind, n = _TOLD[how], self.a_cluster
      np.maximum.at(v, kind * n + self.own[rows], self.issued[kind][rows])
      if kind == TENSOR:  # what its warp has waited for came before what it had tensor cores do
        known = self.known[rows]
        for own in (self.own[rows], PROXY * n + self.own[rows]): known[np.arange(len(known)), own] = 0
        np.maximum(v, known.max(axis=0), out=v)
    else:
      np.maximum(v, self.known[rows].max(axis=0), out=v)
      self.synced(rows)

  def complete(self, token: Any) -> None:
    """A phase of a token has ended."""
    v = self._pending.pop(token, None)
    if v is None: return
    done = self._done.get(token)
    self._done[token] = v if done is None else np.maximum(v, done)

  def heard(self, rows: Value, token: Any) -> None:
    """Warps go on behind a token's phase."""
    v = self._done.get(token)
    if v is not None: self.known[rows] = np.maximum(self.known[rows], v)

  def synced(self, rows: Value) -> None:
    """What warps do from now on is later than what they have done."""
    self.known[rows, self.own[rows]] += 1

  def fenced(self, rows: Value) -> None:
    """A fence.proxy.async: what is known of others' own work is visible to asynchronous work."""
    n = self.a_cluster
    view = self.known[rows]
    seen = view[:, PROXY * n:(PROXY + 1) * n]
    np.maximum(seen, view[:, :n], out=seen)
    self.known[rows] = view
    self.synced(rows)

  def released(self, rows: Value, inits: bool) -> None:
    """A fence before what is .relaxed; of `inits` alone, the mbarriers that they have initialized."""
    own = INIT * self.a_cluster + self.own[rows]
    if inits: self._fenced[rows, own] = self.known[rows, self.own[rows]]
    else: self._fenced[rows] = self.known[rows]
    self.synced(rows)

  def initialized(self, wave: int, other: int) -> int:
    """Up to which clock of another warp a warp knows of the mbarriers that it has initialized."""
    own = int(self.own[other])
    return int(max(self.known[wave, own], self.known[wave, INIT * self.a_cluster + own]))

  def issue(self, kind: int, rows: Value) -> None:
    """Warps begin asynchronous work: its clock is `issued`."""
    self.issued[kind][rows] += 1

  def commit(self, kind: int, rows: Value) -> None:
    """What warps have issued so far is a group."""
    for w in np.asarray(rows).tolist(): self.groups.setdefault((kind, w), []).append(int(self.issued[kind][w]))

  def wait(self, kind: int, rows: Value, left: int | None) -> None:
    """All but the latest `left` groups of warps are done; None: all work of the kind."""
    for w in np.asarray(rows).tolist():
      groups = self.groups.get((kind, w), [])
      if left is None: done = int(self.issued[kind][w])
      elif len(groups) > left: done = groups[len(groups) - 1 - left]
      else: continue
      at = kind * self.a_cluster + int(self.own[w])
      self.known[w, at] = max(int(self.known[w, at]), done)

  def together(self, rows: Value, four: Value, left: int) -> None:
    """As `wait`, of products: those of each warpgroup's warps `four` [warps, 4] are one."""
    for w, others in zip(np.asarray(rows).tolist(), np.asarray(four).tolist()):
      number = len(self.groups.get((MATRIX, w), ())) - left
      for o in others if number > 0 else ():
        groups = self.groups.get((MATRIX, o), ())
        if len(groups) < number: continue  # it has ended, or they wait still
        at = MATRIX * self.a_cluster + int(self.own[o])
        self.known[w, at] = max(int(self.known[w, at]), groups[number - 1])

  def done(self, kind: int, rows: Value) -> Value:
    """How much of their own work of a kind warps know to be done."""
    return self.known[rows, kind * self.a_cluster + self.own[rows]]

  def speak(self, wave: Value, address: Value, listens: bool, tells: bool = True) -> None:
    """Warps do something atomic at addresses, one after the other."""
    bucket = (address >> np.uint64(2)).astype(np.int64) % _BUCKETS
    pairs = np.unique(wave.astype(np.int64) * _BUCKETS + bucket)
    whose, buckets = pairs // _BUCKETS, pairs % _BUCKETS
    for w in np.unique(whose):
      told = self._spoken[w // self.a_cluster]
      b = buckets[whose == w]
      if listens: np.maximum(self.known[w], told[b].max(axis=0), out=self.known[w])
      if tells:
        told[b] = np.maximum(told[b], self.known[w])
        self.known[w, self.own[w]] += 1

  # ---- accesses

  def touch(self, t: Touch, pc: int, across: bool) -> Iterator[Race]:
    """Note an access and give the races that it makes; `across` asks for those between clusters too."""
    if not t.index.size: return
    number = t.wave + self.first
    for k in ("write", "read", "read2") if t.writes and t.how != COMPARE else ("write",):
      yield from self._conflicts(t, k, number, across)
    if t.writes and t.how in {PLAIN, MAKES}: yield from self._together(t, number, pc, across)
    self._note(t, number, pc)

  def _conflicts(self, t: Touch, k: str, number: Value, across: bool) -> Iterator[Race]:
    s, index, n = t.shadow, t.index, self.a_cluster
    other = s.wave[k][index]
    there = other >= 0
    if not there.any(): return
    kinds, clock, how = s.kind[k][index].astype(np.int64), s.clock[k][index], s.how[k][index]
    own = kinds == OWN
    column = kinds
    proxy = k == "write" and t.kind in PROXIES and not t.writes and not t.tensor
    if proxy: column = np.where(own, PROXY, kinds)
    ordered = self.known[t.wave, column * n + other % n] >= clock
    mine = other == number
    if not proxy: ordered |= mine & own & (t.kind != OWN)
    if t.tensor and t.kind == TENSOR: ordered |= kinds == TENSOR
    if t.kind == OWN:  # the warp's own order; between its threads, what they do together
      apart = (s.lane[k][index] != t.lane) & (clock == self.known[t.wave, self.own[t.wave]])
      ordered = np.where(mine & own, ~apart, ordered)
    same = other // n == number // n
    clash = there & np.where(same, ~ordered, across)
    clash &= s.changes(index, t.data)
    if t.how in {ATOMIC, COMPARE}: clash &= how == PLAIN
    elif not t.writes and k == "write": clash &= how != COMPARE
    if not clash.any(): return
    pcs = s.pc[k][index]
    for other_pc in np.unique(pcs[clash]):
      for here in (clash & same & (pcs == other_pc), clash & ~same & (pcs == other_pc)):
        if not here.any(): continue
        at = int(here.argmax())
        yield Race(int(other_pc), int(number[at]), int(t.lane[at]), int(other[at]), int(s.lane[k][index[at]]),
                   int(t.byte[at]), t.writes, k == "write", int(kinds[at]))

  def _together(self, t: Touch, number: Value, pc: int, across: bool) -> Iterator[Race]:
    """Warps that store to the same byte by one instruction, side by side."""
    if (t.wave == t.wave[0]).all(): return
    order = np.argsort(t.index, kind="stable")
    a, b = order[:-1], order[1:]
    clash = (t.index[a] == t.index[b]) & (t.wave[a] != t.wave[b])
    clash &= races.apart(t.data, a, b)
    same = t.wave[a] // self.a_cluster == t.wave[b] // self.a_cluster
    for here in (clash & same, clash & ~same & across):
      if not here.any(): continue
      at = int(here.argmax())
      x, y = int(a[at]), int(b[at])
      yield Race(pc, int(number[y]), int(t.lane[y]), int(number[x]), int(t.lane[x]), int(t.byte[y]), True, True, t.kind)

  def _note(self, t: Touch, number: Value, pc: int) -> None:
    s, index = t.shadow, t.index
    clock = self.known[t.wave, self.own[t.wave]] if t.kind == OWN else self.issued[t.kind][t.wave]
    if not t.writes:
      moved = s.wave["read"][index] != number
      at = index[moved]
      for table in (s.wave, s.clock, s.pc, s.lane, s.kind, s.how): table["read2"][at] = table["read"][at]
    for k in ("write",) if t.writes else ("read", "read2"):
      # of warps that read side by side the last and the first are kept
      way = slice(None, None, -1) if k == "read2" else slice(None)
      if k == "read2" and (t.wave == t.wave[0]).all(): continue
      at = index[way]
      s.wave[k][at], s.clock[k][at], s.lane[k][at] = number[way], clock[way], t.lane[way]
      s.pc[k][at], s.kind[k][at], s.how[k][at] = pc, t.kind, t.how
    if t.writes: s.stored(index, t.data)
