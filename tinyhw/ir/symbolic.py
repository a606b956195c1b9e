"""Simplification that keeps meaning: constants fold, index arithmetic becomes a sum of distinct terms, divisions and
remainders that the bounds decide disappear.

Rules that reorder integer arithmetic apply only where the bounds prove that nothing wraps (see `_exact`): so to index
arithmetic, not to numbers loaded from memory. Floats keep their bits: only rules that hold for every value, the signs
of zeros included, apply to them. Functions that are not exact are not folded: their values come from the device.

Products with Variables are multiplied out, so that equal sizes are one node; what intervals cannot decide of such
expressions, `ir.proof` may.
"""
from __future__ import annotations

import math
from collections.abc import Iterable
from operator import attrgetter

from tinyhw.ir import proof, semantics
from tinyhw.ir.dtype import DType, can_cast_losslessly, dtypes
from tinyhw.ir.rewrite import PatternMatcher, UPat, graph_rewrite
from tinyhw.ir.uop import GroupOp, Ops, UOp

_LIMIT = 1 << 31
Terms = dict[UOp, int]


def _exact(u: UOp) -> bool:
  """Whether the integer expression cannot have wrapped: its bounds lie strictly within the type's."""
  return u.op in (Ops.CONST, Ops.RANGE, Ops.SPECIAL, Ops.DEFINE_VAR) or u.vmin > u.dtype.min or u.vmax < u.dtype.max


def linear(u: UOp) -> tuple[Terms, int]:
  """An integer as (coefficients of its terms, constant): u == sum(term * coefficient) + constant. Terms are no sums and
  no products with a constant; they come in order of first appearance."""
  terms: Terms = {}
  constant = 0
  stack = [(u, 1)]
  while stack:
    v, factor = stack.pop()
    if v.op is Ops.CONST: constant += factor * int(v.arg)
    elif v.op is Ops.ADD and _exact(v): stack += [(v.src[1], factor), (v.src[0], factor)]
    elif v.op is Ops.SUB and _exact(v): stack += [(v.src[1], -factor), (v.src[0], factor)]
    elif v.op is Ops.NEG and _exact(v): stack.append((v.src[0], -factor))
    elif v.op is Ops.MUL and _exact(v) and (const := _constant_factor(v)) is not None:
      stack.append((v.src[1 - const], factor * int(v.src[const].arg)))
    elif v.op is Ops.MUL and v.variables and _exact(v) and (parts := _multiplied_out(v)) is not None:
      for t, c in parts[0].items(): terms[t] = terms.get(t, 0) + factor * c
      constant += factor * parts[1]
    else: terms[v] = terms.get(v, 0) + factor
  return {t: c for t, c in terms.items() if c != 0}, constant


def _multiplied_out(product: UOp) -> tuple[Terms, int] | None:
  """A product of sums as a sum of products, each with its factors in order; None when it is one of those."""
  parts = [linear(s) for s in product.src]
  total = proof.multiplied(*(_polynomial(*p) for p in parts))
  terms = {_product(m): c for m, c in total.items() if m}
  return None if terms == {product: 1} else (terms, total.get((), 0))


def _factors(u: UOp) -> proof.Monomial:
  """The factors of a term, in order."""
  found: list[UOp] = []
  stack = [u]
  while stack:
    v = stack.pop()
    if v.op is Ops.MUL and v.variables and _exact(v): stack += v.src
    else: found.append(v)
  return tuple(sorted(found, key=_order)) if len(found) > 1 else tuple(found)


def _product(factors: proof.Monomial) -> UOp:
  total = factors[0]
  for f in factors[1:]: total = total * f
  return total


def _polynomial(terms: Terms, constant: int) -> proof.Polynomial:
  total: proof.Polynomial = {_factors(t): c for t, c in terms.items()}
  return {**total, (): constant} if constant else total


class _Polynomialize(proof.Polynomialize):
  def __call__(self, u: UOp) -> proof.Polynomial: return _polynomial(*linear(u))


polynomial = _Polynomialize()


def _from_polynomial(p: proof.Polynomial, like: UOp) -> UOp:
  return from_linear({_product(m): c for m, c in p.items() if m}, p.get((), 0), like)


def least(u: UOp) -> int:
  """A number that the integer expression is never below, by interval and by proof."""
  if not u.variables or not _exact(u) or u.op is Ops.DEFINE_VAR: return int(u.vmin)
  return max(int(u.vmin), proof.bound(polynomial(u), False, polynomial))


def most(u: UOp) -> int:
  """A number that the integer expression is never above, by interval and by proof."""
  if not u.variables or not _exact(u) or u.op is Ops.DEFINE_VAR: return int(u.vmax)
  return min(int(u.vmax), proof.bound(polynomial(u), True, polynomial))


def _constant_factor(product: UOp) -> int | None:
  if product.src[1].op is Ops.CONST: return 1
  return 0 if product.src[0].op is Ops.CONST else None


def from_linear(terms: Terms, constant: int, like: UOp) -> UOp:
  """The sum as a UOp: terms in the order of their keys, then the constant."""
  total: UOp | None = None
  for term, coefficient in sorted(terms.items(), key=lambda t: t[0].order) if len(terms) > 1 else terms.items():
    part = term if coefficient == 1 else term * coefficient
    total = part if total is None else total + part
  if total is None: return UOp.const(like.dtype, constant)
  return total if constant == 0 else total + constant


_order = attrgetter("order")


def _rejoin(terms: Terms) -> Terms:
  """(x // d) * (c*d) + (x % d) * c is x * c."""
  for term, coefficient in list(terms.items()):
    if term.op is not Ops.MOD or term.src[1].op is not Ops.CONST: continue
    wanted = coefficient * term.src[1].arg
    if not any(c == wanted and t.ranges <= term.ranges for t, c in terms.items()): continue  # before what takes long
    quotient = _idiv(term.src[0], term.src[1])
    if terms.get(quotient) == wanted and quotient is not term and term in terms:
      del terms[quotient], terms[term]
      part, extra = linear(term.src[0])
      if extra: part, extra = {term.src[0]: 1}, 0
      for t, c in part.items(): terms[t] = terms.get(t, 0) + c * coefficient
  return {t: c for t, c in terms.items() if c != 0}


def _paired(terms: Terms) -> tuple[Terms, int]:
  """max(x, y) + min(x, y) is x + y; min(x, y) is -max(-x, -y) here. Terms, and what is added to the constant."""
  constant = 0
  for term, coefficient in list(terms.items()):
    if term not in terms or term.op is not Ops.MAX or not all(map(_exact, term.src)): continue
    x, y = term.src
    both = (graph_rewrite((-a).maximum(-b), symbolic) for a, b in ((x, y), (y, x)))
    opposite = next((o for o in both if o is not term and terms.get(o) == -coefficient), None)
    if opposite is None: continue
    del terms[opposite], terms[term]
    for x in term.src:
      part, extra = linear(x)
      for t, c in part.items(): terms[t] = terms.get(t, 0) + c * coefficient
      constant += extra * coefficient
  return {t: c for t, c in terms.items() if c != 0}, constant


def _idiv(x: UOp, d: UOp) -> UOp: return graph_rewrite(x // d, symbolic)


def _sum(u: UOp) -> UOp | None:
  if not _exact(u): return None
  terms, constant = linear(u)
  if any(t.op is Ops.MOD for t in terms) and any(t.op is not Ops.MOD for t in terms): terms = _rejoin(terms)
  if sum(t.op is Ops.MAX for t in terms) > 1:
    terms, more = _paired(terms)
    constant += more
  if not _held((*terms.values(), constant), u): return None
  new = from_linear(terms, constant, u)
  return new if new is not u and _exact(new) else None


def _held(numbers: Iterable[int], like: UOp) -> bool:
  """Whether the type holds them: a coefficient or constant that it does not would wrap where the sum does not."""
  return all(like.dtype.min <= n <= like.dtype.max for n in numbers)


def _positive(u: UOp) -> bool: return u.op is Ops.CONST and u.arg > 0


def _divide(u: UOp) -> UOp | None:
  x, d = u.src[0], u.src[1]
  if d.op is not Ops.CONST: return _proven_division(u) if d.variables else None
  if not _positive(d) or x.vmin < 0 and (not x.variables or least(x) < 0) or not _exact(x): return None
  divisor = int(d.arg)
  if x.vmax < divisor: return UOp.const(u.dtype, 0)
  if x.op is Ops.IDIV and x.src[0].vmin >= 0 and _positive(x.src[1]):
    product = divisor * int(x.src[1].arg)
    return x.src[0] // product if product < _LIMIT else UOp.const(u.dtype, 0)
  if x.op is Ops.MOD and x.src[0].vmin >= 0 and _positive(x.src[1]) and x.src[1].arg % divisor == 0:
    return (x.src[0] // divisor) % (int(x.src[1].arg) // divisor)
  terms, constant = linear(x)
  if not _representable(terms, u): return None
  whole = {t: c // divisor for t, c in terms.items() if c % divisor == 0}
  rest = {t: c for t, c in terms.items() if c % divisor}
  # floor(constant / divisor) may leave the quotient, the remainder of it stays and is not negative
  remainder = from_linear(rest, constant % divisor, u)
  if (whole or constant // divisor) and _exact(remainder) and remainder.vmin >= 0:
    quotient = from_linear(whole, constant // divisor, u)
    if remainder.vmax < divisor: return quotient
    return quotient + remainder // divisor
  common = math.gcd(divisor, *terms.values())
  if common > 1:
    numerator = from_linear({t: c // common for t, c in terms.items()}, constant // common, u)
    return numerator // (divisor // common)
  return None


def _proven_division(u: UOp) -> UOp | None:
  """The quotient or the remainder by something that a launch decides, as far as both are proven."""
  x, d = u.src
  if not _exact(x) or not _exact(d): return None
  above, below = polynomial(x), polynomial(d)
  if not below or proof.bound(above, False, polynomial) < 0: return None
  quotient, rest = proof.divided(above, below)
  if proof.bound(rest, False, polynomial) < 0:
    # 8*n - 1 is 7*n + (n - 1)
    quotient, rest = proof.added(quotient, {(): -1}), proof.added(rest, below)
    if proof.bound(rest, False, polynomial) < 0: return None
  decided = proof.bound(proof.added(below, rest, -1), False, polynomial) > 0
  if not decided and (not quotient or proof.bound(below, False, polynomial) < 1): return None
  if not _held((*quotient.values(), *rest.values()), u): return None
  left = _from_polynomial(rest, u)
  if not _exact(left): return None
  if u.op is Ops.MOD: return left if decided else left % d if left is not x else None
  whole = _from_polynomial(quotient, u)
  if not _exact(whole): return None
  return whole if decided else whole + left // d


def _remainder(u: UOp) -> UOp | None:
  x, d = u.src[0], u.src[1]
  if d.op is not Ops.CONST: return _proven_division(u) if d.variables else None
  if not _positive(d) or x.vmin < 0 and (not x.variables or least(x) < 0) or not _exact(x): return None
  divisor = int(d.arg)
  if divisor == 1: return UOp.const(u.dtype, 0)
  if x.vmax < divisor: return x
  if x.op is Ops.MOD and x.src[0].vmin >= 0 and _positive(x.src[1]) and x.src[1].arg % divisor == 0:
    return x.src[0] % divisor
  terms, constant = linear(x)
  if not _representable(terms, u): return None
  rest = from_linear({t: c % divisor for t, c in terms.items() if c % divisor}, constant % divisor, u)
  if rest is not x and _exact(rest) and rest.vmin >= 0:
    return rest if rest.vmax < divisor else rest % divisor
  common = math.gcd(divisor, *terms.values())
  if common > 1:
    inner = from_linear({t: c // common for t, c in terms.items()}, constant // common, u)
    if inner.vmin >= 0: return inner % (divisor // common) * common + constant % common
  return None


def _representable(terms: Terms, like: UOp) -> bool:
  """Whether the coefficients are numbers of the type: none is negative in an unsigned one."""
  return like.dtype.is_signed or all(c >= 0 for c in terms.values())


def _less(u: UOp) -> UOp | None:
  """a < b of integers as (terms) < constant, divided by what all coefficients share."""
  a, b = u.src
  if not a.dtype.is_int or not _exact(a) or not _exact(b): return None
  left, c0 = linear(a)
  right, c1 = linear(b)
  terms = dict(left)
  for t, c in right.items(): terms[t] = terms.get(t, 0) - c
  terms = {t: c for t, c in terms.items() if c != 0}
  bound = c1 - c0
  if not terms: return UOp.const(dtypes.bool, bound > 0)
  if not _representable(terms, a): return None
  common = math.gcd(*terms.values())
  if common > 1: terms, bound = {t: c // common for t, c in terms.items()}, -(-bound // common)
  if not a.dtype.min < bound < a.dtype.max or any(abs(c) >= a.dtype.max for c in terms.values()): return None
  total = from_linear(terms, 0, a)
  if not _exact(total): return None
  if total.variables:
    if most(total) < bound: return UOp.const(dtypes.bool, True)
    if least(total) >= bound: return UOp.const(dtypes.bool, False)
  new = total < bound
  return new if new is not u else None


def _greater(u: UOp) -> UOp | None:
  """MAX of two, one of which is never less than the other."""
  a, b = u.src
  if not u.variables or not _exact(a) or not _exact(b): return None
  apart = proof.added(polynomial(a), polynomial(b), -1)
  if proof.bound(apart, False, polynomial) >= 0: return a
  return b if proof.bound(apart, True, polynomial) <= 0 else None


def _equal(u: UOp) -> UOp | None:
  """Whether two are equal, where they never are."""
  a, b = u.src
  if not u.variables or not a.dtype.is_int or not _exact(a) or not _exact(b): return None
  apart = proof.added(polynomial(a), polynomial(b), -1)
  if apart and proof.bound(apart, False, polynomial) <= 0 <= proof.bound(apart, True, polynomial): return None
  return UOp.const(dtypes.bool, (not apart) is (u.op is Ops.CMPEQ))


def _fold(u: UOp) -> UOp | None:
  if u.dtype.count > 1 or u.op in GroupOp.LIBRARY or any(s.op is not Ops.CONST for s in u.src): return None
  operand = u.src[1 if u.op is Ops.WHERE else 0].dtype
  return UOp.const(u.dtype, semantics.alu(u.op, operand, *(s.arg for s in u.src)))


def _fold_cast(u: UOp, x: UOp) -> UOp:
  convert = semantics.cast if u.op is Ops.CAST else semantics.bitcast
  return UOp.const(u.dtype, convert(x.arg, x.dtype, u.dtype))


def _bounded(u: UOp) -> UOp | None:
  if u.op is Ops.RANGE and u.src[0].vmin < 1: return None       # a loop that may not run at all stays one
  return UOp.const(u.dtype, u.vmin) if u.dtype.count == 1 and u.vmin == u.vmax else None


def _same_cast(u: UOp, inner: UOp, x: UOp) -> UOp | None:
  if not can_cast_losslessly(x.dtype, inner.dtype): return None
  # An integer wraps where a float saturates: the way through a float is the direct one only where neither happens.
  through_float = x.dtype.is_int and inner.dtype.is_float and u.dtype.is_int
  return x.cast(u.dtype) if not through_float or can_cast_losslessly(x.dtype, u.dtype) else None


def _plus_nothing(u: UOp, x: UOp, c: UOp) -> UOp | None:
  """x + -0.0 and x - 0.0 are x; x + 0.0 is not, where x is -0.0."""
  if not u.dtype.is_float: return x
  return x if (math.copysign(1.0, c.arg) < 0) is (u.op is Ops.ADD) else None


def _constant_last(u: UOp) -> UOp | None:
  return u.replace(src=u.src[::-1]) if u.src[0].op is Ops.CONST and u.src[1].op is not Ops.CONST else None


def _conjunction(u: UOp) -> UOp | None:
  """AND of bools without repetition, in the order of first appearance."""
  found: dict[UOp, None] = {}
  stack = [u]
  while stack:
    v = stack.pop()
    if v.op is Ops.AND: stack += [v.src[1], v.src[0]]
    else: found[v] = None
  if any(v.op is Ops.CONST and not v.arg for v in found): return UOp.const(dtypes.bool, False)
  parts = [v for v in found if v.op is not Ops.CONST]
  if not parts: return UOp.const(dtypes.bool, True)
  total = parts[0]
  for v in parts[1:]: total = total & v
  return total if total is not u else None


def _bit(u: UOp, x: UOp, c: UOp) -> UOp | None:
  """c where x is 1, else 0, of an x that is 0 or 1: the product."""
  return x * c if x.dtype is u.dtype and c.op is Ops.CONST and x.vmin >= 0 and x.vmax <= 1 else None


def _int(d: DType) -> bool: return d.is_int and d.count == 1
def _bool(d: DType) -> bool: return d.is_bool and d.count == 1
def _number(d: DType) -> bool: return not d.is_bool


_x, _y, _c = UPat.var("x"), UPat.var("y"), UPat.var("c")
_integral = GroupOp.ALU - GroupOp.FLOAT_ONLY

symbolic = PatternMatcher([
  (UPat(GroupOp.ALU, "u"), _fold),
  (UPat((Ops.CAST, Ops.BITCAST), "u", (UPat.const("x"),)), _fold_cast),
  (UPat(_integral | {Ops.RANGE, Ops.SPECIAL, Ops.CAST}, "u", dtype=lambda d: _int(d) or _bool(d)), _bounded),
  (UPat(GroupOp.COMMUTATIVE, "u"), _constant_last),
  # bool
  (UPat(Ops.AND, "u", dtype=_bool), _conjunction),
  (UPat(Ops.OR, None, (_x, UPat.const("c")), _bool), lambda x, c: c if c.arg else x),
  (UPat((Ops.OR, Ops.AND), None, (_x, _x)), lambda x: x),
  (UPat((Ops.MAX, Ops.ADD), None, (_x, _y), _bool), lambda x, y: x | y),
  (UPat(Ops.MUL, None, (_x, _y), _bool), lambda x, y: x & y),
  (UPat(Ops.XOR, None, (_x, UPat.const("c")), _bool), lambda x, c: x.logical_not() if c.arg else x),
  (UPat(Ops.CMPNE, None, (UPat(Ops.CMPNE, None, (UPat(None, "x", dtype=_bool), UPat.const(None, True))),
                          UPat(Ops.CONST, dtype=_bool, arg=True))), lambda x: x),
  (UPat(Ops.CMPNE, None, (UPat(None, "x", dtype=_bool), UPat(Ops.CONST, "c", dtype=_bool))),
   lambda x, c: None if c.arg else x),
  (UPat(Ops.CMPEQ, None, (UPat(None, "x", dtype=_bool), UPat(Ops.CONST, "c", dtype=_bool))),
   lambda x, c: x if c.arg else x.logical_not()),
  # where
  (UPat(Ops.WHERE, None, (UPat(), _x, _x)), lambda x: x),
  (UPat(Ops.WHERE, None, (UPat.const("c"), _x, _y)), lambda c, x, y: x if c.arg else y),
  (UPat(Ops.WHERE, None, (_c, UPat(Ops.CONST, dtype=_bool, arg=True), UPat(Ops.CONST, "y", dtype=_bool))),
   lambda c, y: None if y.arg else c),
  (UPat(Ops.WHERE, "u", (UPat(Ops.CMPNE, None, (UPat(Ops.CMPLT, None, (_x, UPat.const(None, 1)), _bool),
                                                UPat.const(None, True))), _c, UPat.const(None, 0)), _int), _bit),
  # identities of every number
  (UPat((Ops.ADD, Ops.SUB), "u", (_x, UPat.const("c", 0)), _number), _plus_nothing),
  (UPat((Ops.MUL, Ops.FDIV, Ops.IDIV), None, (_x, UPat.const(None, 1)), _number), lambda x: x),
  (UPat(Ops.NEG, None, (UPat(Ops.NEG, None, (_x,)),)), lambda x: x),
  (UPat(Ops.MAX, None, (_x, _x)), lambda x: x),
  (UPat(Ops.CAST, "u", (UPat(Ops.CAST, "inner", (_x,)),)), _same_cast),
  (UPat((Ops.CAST, Ops.BITCAST), "u", (_x,)), lambda u, x: x if u.dtype is x.dtype else None),
  # integers
  (UPat((Ops.MUL, Ops.AND), None, (UPat(), UPat.const("c", 0)), _int), lambda c: c),
  (UPat((Ops.OR, Ops.XOR, Ops.SHL, Ops.SHR), None, (_x, UPat.const(None, 0)), _int), lambda x: x),
  (UPat((Ops.ADD, Ops.SUB, Ops.MUL, Ops.NEG), "u", dtype=lambda d: _int(d) and d.is_signed), _sum),
  (UPat(Ops.IDIV, "u", dtype=_int), _divide),
  (UPat(Ops.MOD, "u", dtype=_int), _remainder),
  (UPat(Ops.CMPLT, "u"), _less),
  (UPat(Ops.MAX, "u", dtype=lambda d: _int(d) and d.is_signed), _greater),
  (UPat((Ops.CMPEQ, Ops.CMPNE), "u"), _equal),
])


def simplify(u: UOp, done: dict[UOp, UOp] | None = None) -> UOp:
  """The graph simplified. `done` may carry what earlier calls finished."""
  return graph_rewrite(u, symbolic, None, done)
