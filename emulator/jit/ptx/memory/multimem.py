"""Accesses to memory that is in several places (multimem), as LLVM IR."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinyhw.core.memory import Access
from tinyhw.emulator.jit.ptx.memory import access
from tinyhw.emulator.jit.ptx.memory.moves import place_name
from tinyhw.emulator.jit.ptx.memory.remote import address
from tinyhw.emulator.jit.ptx.module import layout
from tinyhw.emulator.jit.ptx.module.emit import Lanes
from tinyhw.emulator.jit.ptx.module.shapes import Info
from tinyhw.emulator.jit.ptx.routine import Routine, Variable
from tinyhw.emulator.jit.ptx.turns import COLUMN, each
from tinyhw.emulator.jit.values import Value, convert
from tinyhw.emulator.memory.atomics import ATOMICS
from tinyhw.emulator.ptx import operands
from tinyhw.emulator.ptx.memory import combine, spaces
from tinyhw.emulator.ptx.memory.move import operation
from tinyhw.emulator.ptx.module.scope import Line
from tinyhw.emulator.values.ops import U64
from tinyhw.isa.ptx.forms import SIZES, Form


class _Places:
  """The places that an address of a routine stands for, see `AddressSpace.multicast`."""

  def __init__(self, r: Routine, size: int, kind: int) -> None:
    self._r, self._size, self._kind = r, size, kind
    at, own = r["at"], r.room("own", 8)
    r.need((at & size - 1) == 0)
    r.store(own, at)
    self._list, self._apart, count = Variable(r, own), Variable(r, r.number(0)), Variable(r, r.number(1))
    rows = r.word("context", layout.MULTICAST + 8)
    with r.each(r.word("context", layout.MULTICAST)) as k:
      row = rows + k * 32
      apart = at - r.load(row)
      with r.when(apart < r.load(row + 8)):
        self._apart.set(apart)
        count.set(r.load(row + 16))
        self._list.set(r.load(row + 24))
    self.count = count.get()

  def host(self, n: Value) -> Value:
    """Where one of them is in this process."""
    r = self._r
    at = r.load(self._list.get() + n * 8) + self._apart.get()
    return r.ask(place_name(spaces.GENERIC), at, r.number(self._size), r.number(self._kind))

  def all(self, act: Callable[[Value], None]) -> None:
    """Act in each of them, after all were found to be there."""
    with self._r.each(self.count) as n: self.host(n)
    with self._r.each(self.count) as n: act(self.host(n))


def _written(form: Form, count: int) -> Routine:
  """multimem.st and multimem.red."""
  t, stores = form.type, "st" in form.modifiers
  names, name = [f"x{k}" for k in range(count)], combine.operation(form.modifiers)
  r = Routine(f"several.{'st' if stores else name}.{count}.{t}", ("at", *names))
  size, raw = SIZES[t], operands.unsigned(SIZES[t])
  places = _Places(r, size * count, Access.WRITE if stores else Access.READ | Access.WRITE)

  def act(host: Value) -> None:
    for k, x in enumerate(names):
      new, at = convert(r[x], raw), host + k * size
      if stores: pass
      elif t in combine.HALVES: new = combine.combined(r.o, t, name, r.load(at, raw), new)
      else:
        what: Any = ATOMICS[operation(form)]
        dtype = what.dtype(size)
        old, new = r.load(at, raw).view(dtype), new.view(dtype)
        new = what.function(r.o, old, new, new).view(raw)
      r.store(at, new)
  places.all(act)
  return r


def _reduced(form: Form, count: int) -> Routine:
  """multimem.ld_reduce: what is in all places, combined in their order."""
  t, name = form.type, combine.operation(form.modifiers)
  wide = bool(form.modifiers & {"acc::f16", "acc::f32"}) and t in combine.NARROW
  r = Routine(f"several.ld.{name}{'.wide' * wide}.{count}.{t}", ("at", "slot"))
  size, raw, o = SIZES[t], operands.unsigned(SIZES[t]), r.o
  places = _Places(r, size * count, Access.READ)
  first = places.host(r.number(0))
  values = [Variable(r, r.load(first + k * size, raw)) for k in range(count)]
  sums = [[Variable(r, x) for x in combine.numbers(o, t, v.get())] if wide else [] for v in values]
  with r.each(places.count - 1) as n:
    host = places.host(n + 1)
    for k, v in enumerate(values):
      found = r.load(host + k * size, raw)
      if not wide: v.set(combine.combined(o, t, name, v.get(), found))
      for s, x in zip(sums[k], combine.numbers(o, t, found) if wide else []): s.set(combine.added(o, t, s.get(), x))
  for k, v in enumerate(values):
    out = v.get()
    if wide: out = o.where(places.count == 1, out, combine.rounded(o, t, [s.get() for s in sums[k]]))
    r.store(r["slot"] + k * COLUMN, convert(out, U64))
  return r


@access.emits("multimem")
def multimem(g: Lanes, line: Line, form: Form, info: Info) -> None:
  """One of the three, of a value or a vector."""
  i, t = line.instruction, form.type
  loads = "ld_reduce" in form.modifiers
  given = operands.elements(line, i.operands[0 if loads else 1])
  at, raw = address(g, line, 1 if loads else 0, spaces.GENERIC), operands.unsigned(SIZES[t])
  if loads:
    found = each(g, line, _reduced(form, len(given)), [at], [raw] * len(given))
    for o, x in zip(given, found): operands.writer(g.code, line, o, t)(g, x.view(operands.dtype_of(t)))
    return
  values = [convert(operands.reader(g.code, line, o, t)(g).view(raw), U64) for o in given]
  each(g, line, _written(form, len(given)), [at, *values])
