"""Bounds of integer expressions whose parts belong together, and division with a proof.

Intervals alone do not know that `j*8 + k < 8*n` for j in 0..n-1 and k in 0..7: they forget that both sides name n. Here
an expression is a polynomial of its atoms (loop counters, Variables, quotients ...). Each of these, the counters first,
is replaced by the end of its interval at which the polynomial is greatest or least, where the polynomial is proven to
grow or to fall along it all the way. The end of a counter's interval is a polynomial itself. What is left when nothing
can be replaced any more is bounded as an interval.

Everything holds for all values that the Variables may take, and where loops run: within a loop its end is above 0.

Congruence is proven by the coefficients.
"""
from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from tinyhw.ir.uop import Ops, UOp

Monomial = tuple[UOp, ...]           # factors in their order; () for the constant
Polynomial = dict[Monomial, int]

_MOST_TERMS = 64                     # beyond that an interval has to do
_MOST_STEPS = 32
_order = attrgetter("order")
_COUNTERS = frozenset({Ops.RANGE, Ops.SPECIAL})


def added(a: Polynomial, b: Polynomial, factor: int = 1) -> Polynomial:
  """a + b * factor."""
  total = dict(a)
  for m, c in b.items(): total[m] = total.get(m, 0) + c * factor
  return {m: c for m, c in total.items() if c}


def multiplied(a: Polynomial, b: Polynomial) -> Polynomial:
  """a * b."""
  total: Polynomial = {}
  for m, c in a.items():
    for n, d in b.items():
      product = tuple(sorted(m + n, key=_order)) if m and n else m or n
      total[product] = total.get(product, 0) + c * d
  return {m: c for m, c in total.items() if c}


def replaced(p: Polynomial, atom: UOp, by: Polynomial) -> Polynomial:
  """p with `by` for an atom."""
  total: Polynomial = {}
  for m, c in p.items():
    part: Polynomial = {tuple(f for f in m if f is not atom): c}
    for f in m:
      if f is atom: part = multiplied(part, by)
    total = added(total, part)
  return total


def _growth(p: Polynomial, atom: UOp) -> Polynomial:
  """p at atom + 1, less p."""
  return added(replaced(p, atom, {(atom,): 1, (): 1}), p, -1)


def _ends(atom: UOp, polynomial: Polynomialize) -> tuple[Polynomial, Polynomial]:
  """The least and the greatest value of an atom."""
  low: Polynomial = {(): int(atom.vmin)}
  if atom.op in _COUNTERS and atom.src: return {}, added(polynomial(atom.src[0]), {(): -1})
  if atom.op is Ops.MOD and atom.src[0].vmin >= 0 and atom.src[1].vmin > 0 and atom.src[1].variables:
    return low, added(polynomial(atom.src[1]), {(): -1})
  return low, {(): int(atom.vmax)}


class Polynomialize:
  """What turns an expression into a polynomial: `symbolic.polynomial` (which needs this module)."""
  def __call__(self, u: UOp) -> Polynomial: raise NotImplementedError


def _atoms(p: Polynomial) -> Iterable[UOp]:
  """Counters first, the last axis first of all; then what is made of Variables, the largest first, for others may be
  inside of it; Variables last."""
  def rank(a: UOp) -> tuple[int, int, tuple[int, str, bytes]]:
    if a.op is Ops.RANGE: return 0, -int(a.arg.axis), a.order
    if a.op is Ops.SPECIAL or a.op is Ops.DEFINE_VAR: return (1 if a.op is Ops.SPECIAL else 3), 0, a.order
    return 2, -len(a.toposort()), a.order
  return sorted({f for m in p for f in m}, key=rank)


def _interval(p: Polynomial, upper: bool) -> int:
  total = 0
  for m, c in p.items():
    low, high = c, c
    for f in m:
      corners = [x * int(y) for x in (low, high) for y in (f.vmin, f.vmax)]
      low, high = min(corners), max(corners)
    total += high if upper else low
  return total


def bound(p: Polynomial, upper: bool, polynomial: Polynomialize, steps: int = _MOST_STEPS) -> int:
  """A number that the polynomial is never above (or, not `upper`, never below)."""
  again = True
  while again and steps > 0 and len(p) <= _MOST_TERMS:
    again = False
    for atom in _atoms(p):
      alone = [m for m in p if atom in m]
      if len(alone) == 1 and alone[0] == (atom,) and not (atom.src and atom.variables):
        continue             # on its own, its interval is exact
      steps -= 1
      growth = _growth(p, atom)
      grows = bound(growth, False, polynomial, steps // 2) >= 0
      if not grows and bound(growth, True, polynomial, steps // 2) > 0: continue
      if atom.op is Ops.MAX:
        # What grows is greatest, and least, where the greater of the two is; what falls is so where the lesser one is.
        ways = [bound(replaced(p, atom, polynomial(s)), upper, polynomial, steps // 2) for s in atom.src]
        return max(ways) if grows else min(ways)
      low, high = _ends(atom, polynomial)
      p = replaced(p, atom, high if grows is upper else low)
      again = True
      break
  return _interval(p, upper)


def divided(x: Polynomial, d: Polynomial) -> tuple[Polynomial, Polynomial]:
  """(quotient, rest) with x == quotient * d + rest: as much as the leading term of d goes into x."""
  lead = max(d, key=lambda m: (len(m), [f.order for f in m]))
  quotient: Polynomial = {}
  for _ in range(_MOST_STEPS):
    step: Polynomial = {}
    for m, c in sorted(x.items(), key=lambda t: (-len(t[0]), [f.order for f in t[0]])):
      rest = list(m)
      for f in lead:
        if f not in rest: break
        rest.remove(f)
      else:
        if times := c // d[lead]:
          step = {tuple(rest): times}
          break
    if not step: break
    quotient, x = added(quotient, step), added(x, multiplied(step, d), -1)
  return quotient, x
