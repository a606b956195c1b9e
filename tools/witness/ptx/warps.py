"""Instructions of a warp: votes, matches, reductions, shuffles (PTX ISA, 9.7.9.6, 9.7.13), thread by thread."""
from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

from tinyhw.isa.ptx.forms import Form
from tinyhw.tools.witness.ptx.integers import value
from tinyhw.tools.witness.ptx.table import Case, witness
from tinyhw.tools.witness.softfloat import F32

ALL: Final = 0xFFFFFFFF
Rows = list[tuple[int, ...]]


def _bits(rows: Rows) -> int: return sum(bool(r[0]) << k for k, r in enumerate(rows))


@witness("vote")
def votes(form: Form, rng: random.Random) -> Iterator[Case]:
  """Of all threads."""
  m = form.modifiers
  tail = f", {ALL}" if "sync" in m else ""
  result = "b32" if "ballot" in m else "pred"

  def run(rows: Rows) -> list[Any]:
    found = _bits(rows)
    if "ballot" in m: return [found] * 32
    return [int(found == ALL if "all" in m else found > 0 if "any" in m else found in {0, ALL})] * 32
  for draw in (None, lambda r: (1,), lambda r: (0,)):
    yield Case(form.name, f"{form.name} {{0}}, {{1}}{tail};", (result,), ("pred",), run, draw, warp=True)


@witness("activemask")
def active(form: Form, rng: random.Random) -> Iterator[Case]:
  """All threads are here."""
  yield Case(form.name, f"{form.name} {{0}};", ("b32",), (), lambda: ALL)


@witness("match")
def matches(form: Form, rng: random.Random) -> Iterator[Case]:
  """Who has the same value."""
  m, t = form.modifiers, form.type

  def run(rows: Rows) -> list[Any]:
    values = [r[0] for r in rows]
    if "all" in m:
      same = len(set(values)) == 1
      return [(ALL if same else 0, int(same))] * 32
    return [sum((v == w) << k for k, w in enumerate(values)) for v in values]
  few, one = (lambda r: (r.randrange(4) << 30,)), (lambda r: (7,))
  both = "{0}|{1}, {2}" if "all" in m else "{0}, {1}"
  for draw in (few, one):
    yield Case(form.name, f"{form.name} {both}, {ALL};", ("b32", "pred") if "all" in m else ("b32",), (t,), run, draw,
               warp=True)


@witness("redux")
def reductions(form: Form, rng: random.Random) -> Iterator[Case]:
  """One result of all."""
  m, t = form.modifiers, form.type
  if t == "f32":
    yield Case(form.name, f"{form.name} {{0}}, {{1}}, {ALL};", ("f32",), ("f32",), lambda rows: _floats(form, rows),
               warp=True)
    return

  def run(rows: Rows) -> list[Any]:
    values = [value(r[0], t) for r in rows]
    name = next(x for x in ("add", "min", "max", "and", "or", "xor") if x in m)
    out = values[0]
    for v in values[1:]:
      out = {"add": out + v, "min": min(out, v), "max": max(out, v), "and": out & v, "or": out | v,
             "xor": out ^ v}[name]
    return [out] * 32
  yield Case(form.name, f"{form.name} {{0}}, {{1}}, {ALL};", ("b32",), ("b32",), run, warp=True)


def _floats(form: Form, rows: Rows) -> list[Any]:
  """The least or the greatest float: -0 is less than +0."""
  m = form.modifiers
  values = [r[0] & 0x7FFFFFFF if "abs" in m else r[0] for r in rows]
  real = [v for v in values if not F32.is_nan(v)]
  if not real or "NaN" in m and len(real) < len(rows): return [0x7FFFFFFF] * 32
  def place(v: int) -> tuple[Any, bool]: return F32.order(v), not F32.negative(v)
  return [(min if "min" in m else max)(real, key=place)] * 32


@witness("shfl")
def shuffles(form: Form, rng: random.Random) -> Iterator[Case]:
  """The manual's pseudocode; a source lane that is not in the segment is the thread itself."""
  m = form.modifiers
  mode = next(x for x in ("up", "down", "bfly", "idx") if x in m)
  tail = f", {ALL}" if "sync" in m else ""

  def run(rows: Rows) -> list[Any]:
    out = []
    for lane, (_, b, c) in enumerate(rows):
      b, clamp, segment = b & 31, c & 31, c >> 8 & 31
      most = lane & segment | clamp & ~segment
      least = lane & segment
      if mode == "up": j, good = lane - b, lane - b >= most
      elif mode == "down": j, good = lane + b, lane + b <= most
      elif mode == "bfly": j, good = lane ^ b, (lane ^ b) <= most
      else:
        j = least | b & ~segment
        good = j <= most
      out.append((rows[j if good else lane][0], int(good)))
    return out
  for width in (32, 8):
    c = (32 - width) << 8 | (0 if mode == "up" else 31)
    def draw(r: random.Random, c: int = c) -> tuple[int, ...]: return r.getrandbits(32), r.randrange(32), c
    text = f"{form.name} {{0}}|{{1}}, {{2}}, {{3}}, {{4}}{tail};"
    yield Case(form.name, text, ("b32", "pred"), ("b32",) * 3, run, draw, warp=True)


@witness("elect")
def elected(form: Form, rng: random.Random) -> Iterator[Case]:
  """One thread is, and all know which: the manual leaves open which one."""
  def run(rows: Rows) -> list[Any]:
    return [(lambda lane: lane < 32, (lambda p: p in {0, 1}))] * 32
  yield Case(form.name, f"{form.name} {{0}}|{{1}}, {ALL};", ("b32", "pred"), (), run, warp=True)
