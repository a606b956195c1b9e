"""Bytes that one thread of a warp has moved in bulk, as LLVM IR: addresses of any space, and who is told.

A routine looks every address up and checks everything before it changes anything. Where it cannot do it (a fault, a
mapping of a rarer kind) nothing has happened, and the reference does the instruction.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tinyhw.core.memory import Access
from tinyhw.emulator.jit.ptx.module import layout
from tinyhw.emulator.jit.ptx.routine import Routine, Variable
from tinyhw.emulator.jit.values import Value
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.memory import copies
from tinyhw.emulator.ptx.memory import spaces as memory
from tinyhw.emulator.ptx.memory.mbarrier import EXPECTED, LIMIT, PHASE, TX, VALID
from tinyhw.emulator.values.ops import I64, U64
from tinyhw.isa.ptx.forms import SIZES

_BLOCKS: Final = 16  # that a mask of a multicast can name
_RANKS: Final = memory.RANK
# how watched code notes what a routine does: as work of a unit, also what is loaded, or as the thread's own
NOTED, TRACKED, OWN = "noted", "tracked", "own"


# ---- addresses

def place(space: str, clustered: bool) -> str:
  """Looks so many bytes up at an address of a space: where they are in this process, or 0 where not all are there."""
  r = Routine(place_name(space), ("address", "size", "access"), "i64")
  where = Variable(r, r.number(0))
  at, size = r["address"], r["size"]
  if space == memory.GENERIC:
    shared = at - memory.SHARED_WINDOW < memory.WINDOW
    with r.when(shared): where.set(r.ask(place_name("shared"), at - memory.SHARED_WINDOW, size, r["access"]))
    with r.when(~shared): where.set(r.ask(place_name("global"), at, size, r["access"]))
  elif space == "shared":
    low, rank = at & (1 << _RANKS) - 1, at >> _RANKS
    r.need(low + size <= r.word("context", layout.SHARED_SIZE))
    where.set(r.word("state", layout.SHARED) + low)
    if not clustered: r.need(rank == 0)
    else:
      with r.when(rank != 0):
        cluster = r.word("context", layout.CLUSTER)
        r.need(rank <= cluster)
        block = r.word("state", layout.BLOCK)
        away = rank - 1 - (block - block // cluster * cluster)
        r.ask("lives", away)
        where.set(where.get() + away * r.word("context", layout.APART))
  else:
    row = r.room("row", layout.ROW)
    r.ask("find", f"ptr {r.pointer(row)}", at, size, "i64 0", r["access"])
    where.set(at + r.load(row + 16))
  return r.text(where.get())


def place_name(space: str) -> str: return f"place.{space or 'generic'}"


def completed() -> str:
  """An mbarrier's word when so many bytes have come, or 0 where none is there, or it cannot count them."""
  r = Routine("completed", ("word", "count"), "i64")
  word, count, field = r["word"], r["count"], LIMIT - 1
  r.need(word >> VALID != 0)
  tx = ((word << 64 - TX - 21).view(I64) >> 43).view(U64) - count
  r.need(tx + (LIMIT - 1) < 2 * LIMIT - 1)
  pending, expected, phase = word & field, word >> EXPECTED & field, word >> PHASE & 3
  ends = (pending == 0) & (tx == 0)
  phase = r.o.where(ends, phase + 1 & 3, phase)
  pending = r.o.where(ends, expected, pending)
  return r.text(pending | expected << EXPECTED | (tx & (1 << 21) - 1) << TX | phase << PHASE | r.number(1 << VALID))


class Told:
  """The mbarrier that a routine tells of the bytes, at an address of shared memory; none where there is no address."""

  def __init__(self, r: Routine, address: Value | None, size: Value) -> None:
    self._r, self._size = r, size
    self.host = None if address is None else self._look(address)

  def _look(self, address: Value) -> Value:
    """Where it is; it can count the bytes."""
    r = self._r
    r.need((address & 7) == 0)
    host = r.ask(place_name("shared"), address, r.number(8), r.number(Access.READ | Access.WRITE))
    r.ask("completed", r.load(host), self._size)
    return host

  def tell(self, noted: bool = False) -> None:
    """The bytes have come; `noted`: warps have clocks, which it tells."""
    r = self._r
    if self.host is None: return
    old = r.load(self.host)
    new = r.ask("completed", old, self._size)
    if noted: r.ask("came", self.host, old, new)
    r.store(self.host, new)

  def apart(self, start: Value, size: Value) -> None:
    """It must not lie in what is written."""
    if self.host is not None: self._r.need((self.host + 8 <= start) | (self.host >= start + size))


def changed(r: Routine) -> None:
  """Who polls looks again."""
  at = r.of("ptrtoint ptr %context to i64") + layout.CHANGES
  r.store(at, r.load(at) + 1)


def deliver(r: Routine, space: str, barrier: bool, to: Value, size: Value, room: Value, several: bool,
        write: Callable[[Value], None], access: int = Access.WRITE, noted: str = "") -> None:
  """Have `write(host)` write bytes to an address, or at its place in each block of a mask, and their mbarriers told.
  `room` are the bytes there that must be there, `access` what it does to them; `noted` as for `linear`."""
  def target(at: Value, where: Value | None) -> tuple[Value, Told]:
    host = r.ask(place_name(space), at, room, r.number(access))
    told = Told(r, where, size)
    told.apart(host, room)
    return host, told
  host, told = target(to, r["barrier"] if barrier else None)
  if not several:
    if noted == OWN: r.ask("own.far.write", to, size, r["lane"])
    elif noted:
      if access & Access.READ: r.ask("looks.near", host, size) if barrier else r.ask("looks.far", to, size)
      r.ask("note.bulk", host, size) if barrier else r.ask("note.far", to, size)
    write(host)
    told.tell(bool(noted))
    return
  low = (1 << _RANKS) - 1
  r.need(r["blocks"] != 0)
  for act in (False, True):  # first everything is looked at
    with r.each(r.number(_BLOCKS)) as k, r.when((r["blocks"] >> k & 1) != 0):
      rank = k + 1 << _RANKS
      host, told = target(to & low | rank, r["barrier"] & low | rank)
      if act:
        if noted: r.ask("note.bulk", host, size)
        write(host)
        told.tell(bool(noted))


# ---- bytes that lie together

def combine(r: Routine, operation: str, t: str, to: Value, source: Value) -> None:
  """An element becomes what it and another one are together."""
  raw, dtype = operands.unsigned(SIZES[t]), operands.dtype_of(t)
  old, new = r.load(to, raw).view(dtype), r.load(source, raw).view(dtype)
  r.store(to, copies.combined(r.o, operation, t, old, new).view(raw))


def linear(target: str, source: str, barrier: bool, several: bool, align: int, operation: str, t: str,
           noted: str = "") -> Routine:
  """Copies, or combines elements of a type, between two state spaces. `noted`: in cells (`spans`)."""
  name = ".".join(["copied", target or "generic", source or "generic", *["told"] * barrier, *["cast"] * several,
                   str(align), *([operation, t] if operation else [])])
  r = Routine(name, ("to", "source", "size", *["barrier"] * barrier, *["blocks"] * several, *["lane"] * (noted == OWN)))
  to, of, size = r["to"], r["source"], r["size"]
  r.need(((to | of | size) & align - 1) == 0)
  r.need(size != 0)
  host_of = r.ask(place_name(source), of, size, r.number(Access.READ))
  if noted and barrier and source == "shared": r.ask("note.sourced", host_of, size)
  elif noted == TRACKED and barrier: r.ask("note.fetched", of, size)
  if noted == OWN: r.ask("own.near.read", host_of, size, r["lane"])
  elif noted and not barrier: r.ask("note.read", host_of, size)

  def fill(host: Value) -> None:
    if not operation: return r.move(host, host_of, size)
    r.need((host - host_of >= size) & (host_of - host >= size))
    with r.each(size // SIZES[t]) as k: combine(r, operation, t, host + k * SIZES[t], host_of + k * SIZES[t])
  deliver(r, target, barrier, to, size, size, several, fill,
          Access.READ | Access.WRITE if operation else Access.WRITE, noted)
  changed(r)
  return r
