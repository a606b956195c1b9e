"""Loads, stores, atomics and moves (PTX ISA, 9.7.9 and 9.7.13): bytes of memory, one thread after the other."""
from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

from tinyhw.isa.ptx.forms import SIZES, Form
from tinyhw.tools.witness.ptx.draw import value as drawn
from tinyhw.tools.witness.ptx.formats import FORMATS
from tinyhw.tools.witness.ptx.integers import value
from tinyhw.tools.witness.ptx.table import Case, plain, witness

BYTES: Final = 512
_AT: Final = "cvt.u64.u32 %l77, {X}; add.u64 %l77, %l77, {M};"


def _count(form: Form) -> int: return next((int(m[1]) for m in ("v2", "v4", "v8") if m in form.modifiers), 1)


def _elsewhere(form: Form) -> bool:
  """Whether an instruction is of another space than global memory, or needs more operands."""
  return any(m.partition("::")[0] in {"const", "param", "local", "shared", "tensormap"} for m in form.modifiers) \
    or bool(form.modifiers & {"L2::cache_hint", "bulk"}) or {"async", "release"} & form.modifiers == {"async"}


def _address(place: int) -> str: return _AT.replace("{X}", f"{{{place}}}")


def _vector(words: list[str]) -> str: return words[0] if len(words) == 1 else "{{" + ", ".join(words) + "}}"


def _register(t: str) -> str: return "b16" if SIZES[t] == 1 else t


def image(rng: random.Random, t: str, size: int = BYTES) -> bytes:
  """Bytes of values of a type; no NaN, of which which one comes out is no question here."""
  if t.removesuffix("x2") not in FORMATS: return rng.randbytes(size)
  return b"".join(number(rng, t).to_bytes(SIZES[t], "little") for _ in range(size // SIZES[t]))


def number(rng: random.Random, t: str) -> int:
  """A finite float of moderate size, or any bits of another type."""
  one = t.removesuffix("x2")
  if one not in FORMATS: return drawn(t if SIZES[t] < 16 else "b64", rng)
  f = FORMATS[one]
  def small() -> int:
    return rng.randrange(f.bias - 4, f.bias + 4) << f.mantissa | rng.getrandbits(f.mantissa) | rng.choice([0, f.sign])
  return small() | small() << 16 if t.endswith("x2") else small()


@witness("ld", "ldu")
def loads(form: Form, rng: random.Random) -> Iterator[Case]:
  """Of bytes of the case's memory: extended as their type says."""
  if _elsewhere(form): return
  t, count = form.type, _count(form)
  size = SIZES[t]
  content = image(rng, "b64")
  if t == "b128":
    if count > 1: return
    def wide(at: int) -> tuple[int, ...]:
      return int.from_bytes(content[at:at + 8], "little"), int.from_bytes(content[at + 8:at + 16], "little")
    text = f"{form.name} %q1, [%l77]; mov.b128 {{{{{{0}}, {{1}}}}}}, %q1;"
    yield Case(form.name, text, ("b64", "b64"), ("b32",), wide,
               lambda r: (16 * r.randrange(BYTES // 16),), lambda base: content, setup=_address(2))
    return
  if size * count > 32: return
  def load(at: int) -> Any:
    got = tuple(value(int.from_bytes(content[at + k * size:at + (k + 1) * size], "little"), t) for k in range(count))
    return got if count > 1 else got[0]
  step = size * count
  text = f"{form.name} {_vector([f'{{{k}}}' for k in range(count)])}, [%l77];"
  yield Case(form.name, text, (_register(t),) * count, ("b32",), load,
             lambda r: (step * r.randrange(BYTES // step),), lambda base: content, setup=_address(count))


@witness("st")
def stores(form: Form, rng: random.Random) -> Iterator[Case]:
  """The highest thread's bytes stay."""
  if _elsewhere(form): return
  yield from _stored(form, rng)


def _stored(form: Form, rng: random.Random) -> Iterator[Case]:
  t, count = form.type, _count(form)
  size = SIZES[t]
  sources: tuple[str, ...]
  if size * count > 32 or t == "b128" and count > 1: return
  if t == "b128":
    parts, text, sources = 2, f"mov.b128 %q1, {{{{{{1}}, {{2}}}}}}; {form.name} [%l77], %q1;", ("b32", "b64", "b64")
    size = 8
  else:
    parts, text = count, f"{form.name} [%l77], {_vector([f'{{{k + 1}}}' for k in range(count)])};"
    sources = ("b32", *[t] * count)
  step = size * parts
  content = image(rng, "b64")

  def put(before: bytes, rows: list[tuple[int, ...]]) -> bytes:
    out = bytearray(before)
    for at, *values in rows:
      for k, v in enumerate(values): out[at + k * size:at + (k + 1) * size] = v.to_bytes(size, "little")
    return bytes(out)

  def draw(r: random.Random) -> tuple[int, ...]:
    return (step * r.randrange(BYTES // step), *(r.getrandbits(8 * size) for _ in range(parts)))
  yield Case(form.name, text, (), sources, lambda *_: (), draw, lambda base: content, put, setup=_address(0))


# ---- read, modify, write

def combined(form: Form, t: str, old: int, data: int, compare: int = 0) -> int:
  """What an atomic makes of what is there."""
  m, n = form.modifiers, 8 * SIZES[t]
  one = t.removesuffix("x2")
  if t.endswith("x2"):
    return sum(combined_one(form, one, old >> k & 0xFFFF, data >> k & 0xFFFF) << k for k in (0, 16))
  if "exch" in m: return data
  if "cas" in m: return data if old == compare else old
  if "inc" in m: return 0 if old >= data else old + 1
  if "dec" in m: return data if old == 0 or old > data else old - 1
  return combined_one(form, t, old, data) & (1 << n) - 1


def combined_one(form: Form, t: str, old: int, data: int) -> int:
  """Of one number."""
  m = form.modifiers
  name = next(x for x in ("add", "min", "max", "and", "or", "xor") if x in m)
  if t in FORMATS:
    f = FORMATS[t]
    if name == "add": return f.add(old, data)
    return min(old, data, key=f.order) if name == "min" else max(old, data, key=f.order)
  a, b = value(old, t), value(data, t)
  return {"add": a + b, "min": min(a, b), "max": max(a, b), "and": a & b, "or": a | b, "xor": a ^ b}[name]


@witness("atom", "red")
def atomics(form: Form, rng: random.Random) -> Iterator[Case]:
  """In the order of the threads."""
  if _elsewhere(form): return
  yield from _changed(form, rng, form.row.opcode == "atom")


def _changed(form: Form, rng: random.Random, wanted: bool) -> Iterator[Case]:
  t, count, cas = form.type, _count(form), "cas" in form.modifiers
  size = SIZES[t]
  if size * count > 16: return
  step = size * count
  content = image(rng, t if t != "b128" else "b64", 8 * step)
  olds: list[Any] = []

  def change(before: bytes, rows: list[tuple[int, ...]]) -> bytes:
    out = bytearray(before)
    olds.clear()
    for at, *values in rows:
      if t == "b128": values = [values[2 * k] | values[2 * k + 1] << 64 for k in range(len(values) // 2)]
      got = []
      for k in range(count):
        place = slice(at + k * size, at + (k + 1) * size)
        old = int.from_bytes(out[place], "little")
        new = combined(form, t, old, values[-1], values[0]) if cas else combined(form, t, old, values[k])
        out[place] = new.to_bytes(size, "little")
        got.append(old)
      if t == "b128": got = [got[0] & (1 << 64) - 1, got[0] >> 64]
      olds.append(tuple(got))
    olds.reverse()
    return bytes(out)

  def draw(r: random.Random) -> tuple[int, ...]:
    at = step * r.randrange(8)
    if t == "b128":
      here = int.from_bytes(content[at:at + 16], "little")
      first = here if r.random() < 0.6 else r.getrandbits(128)
      words = [first, r.getrandbits(128)] if cas else [r.getrandbits(128)]
      return (at, *(x for w in words for x in (w & (1 << 64) - 1, w >> 64)))
    here = int.from_bytes(content[at:at + size], "little")
    if cas: return at, here if r.random() < 0.6 else number(r, t), number(r, t)
    return (at, *(number(r, t) for _ in range(count)))
  parts = 2 if t == "b128" else count
  own = "b64" if t == "b128" else t
  n = parts if wanted else 0
  sources = ("b32", *[own] * (2 * parts if t == "b128" and cas else 1 + cas if cas else parts))
  words = [f"{{{n + 1 + k}}}" for k in range(len(sources) - 1)]
  before = after = ""
  if t == "b128":
    before = "".join(f"mov.b128 %q{k + 1}, {{{{{words[2 * k]}, {words[2 * k + 1]}}}}};" for k in range(1 + cas))
    given, to = ", ".join(f"%q{k + 1}" for k in range(1 + cas)), "%q3"
    after = " mov.b128 {{{0}, {1}}}, %q3;" if wanted else ""
  else:
    given = ", ".join(words) if cas else _vector(words)
    to = _vector([f"{{{k}}}" for k in range(n)]) if wanted else ""
  text = f"{form.name} {to + ', ' if wanted else ''}[%l77], {given};{after}"
  def function(*_: int) -> Any:
    got = olds.pop()
    return got if len(got) > 1 else got[0]
  yield Case(form.name, text, (own,) * n, sources, function if wanted else lambda *_: (), draw, lambda base: content,
             change, setup=_address(n) + before)


@witness("multimem")
def multimem(form: Form, rng: random.Random) -> Iterator[Case]:
  """On memory of one device: a load, a store, a reduction."""
  m = form.modifiers
  if _count(form) * SIZES[form.type] not in {4, 8, 16}: return
  if "st" in m: yield from _stored(form, rng)
  elif "red" in m: yield from _changed(form, rng, False)
  else: yield from loads(form, rng)


# ---- moves

@witness("mov")
def moves(form: Form, rng: random.Random) -> Iterator[Case]:
  """Of registers, and of parts of them."""
  t = form.type
  if t == "b128":
    yield Case(form.name, "mov.b128 %q1, {{{2}, {3}}}; mov.b128 %q2, %q1; mov.b128 {{{0}, {1}}}, %q2;", ("b64",) * 2,
               ("b64",) * 2, lambda a, b: (a, b))
    return
  yield plain(form, lambda a: a)
  for whole, part in (("b32", "b16"), ("b64", "b32"), ("b64", "b16")):
    if t != whole: continue
    n = SIZES[whole] // SIZES[part]
    bits = 8 * SIZES[part]
    words = [f"{{{k + 1}}}" for k in range(n)]
    yield Case(form.name, f"{form.name} {{0}}, {_vector(words)};", (whole,), (part,) * n,
               lambda *v, bits=bits: sum(x << bits * k for k, x in enumerate(v)))
    words = [f"{{{k}}}" for k in range(n)]
    yield Case(form.name, f"{form.name} {_vector(words)}, {{{n}}};", (part,) * n, (whole,),
               lambda v, bits=bits, n=n: tuple(v >> bits * k & (1 << bits) - 1 for k in range(n)))


@witness("cvta")
def addresses(form: Form, rng: random.Random) -> Iterator[Case]:
  """Global addresses are generic addresses."""
  if form.modifiers & {"global", "const", "param"}: yield plain(form, lambda a: a)


@witness("isspacep")
def spaces(form: Form, rng: random.Random) -> Iterator[Case]:
  """An address of global memory, and one of shared memory."""
  m = form.modifiers
  for name, mine in (("global", "{M}"), ("shared", "")):
    setup = f"mov.u64 %l77, {mine};" if mine else "mov.u64 %l76, sh; cvta.shared.u64 %l77, %l76;"
    right = int(name in m or name == "shared" and "shared::cta" in m or name == "shared" and "shared::cluster" in m)
    yield Case(form.name, f"{form.name} {{0}}, %l77;", ("pred",), (), lambda right=right: right,
               memory=lambda base: bytes(64), setup=setup)


