"""The cells of LDS in watched code, as LLVM IR: one behind each dword says who touched it last, and what was written.

A cell is a dword: what runs between two barriers (EPOCH), the wave that wrote last and the one that has read since
then (each 6 bits, as its number in the workgroup and 1; MANY for several), and a bit for each byte that was written. A
cell of another epoch has been touched by nobody, but keeps what is known of its bytes. Epochs come again after 65536
barriers; a cell that is so old may be suspected, and nothing is missed for it.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tinyhw.emulator.jit.values import Emitter

COMPARES, ATOMICS, MANY = 61, 62, 63  # in the place of a wave
KNOWN: Final = 15  # all bytes of the dword
READER: Final = 1 << 4  # the first bits of the fields
WRITER: Final = 1 << 10
EPOCH: Final = 1 << 16
_WAVE: Final = 63
LOAD, STORE, COMPARE, ATOMIC = "load", "store", "compare", "atomic"


@dataclass
class Turned:
  """Cells after an access: where it may be a finding, and what they are then."""
  bad: str
  new: str


class Cells:
  """`n` cells that one access touches at once. `here` is what a wave that writes puts into them, without bytes."""

  def __init__(self, e: Emitter, n: int, here: str) -> None:
    self.e, self.n, self.t = e, n, f"<{n} x i32>"
    self.epoch = self.splat(e.op(f"and i32 {here}, {-EPOCH}"))
    writer = e.op(f"and i32 {here}, {_WAVE * WRITER}")
    self.mine = self.splat(writer)
    self.me = self.splat(e.op(f"lshr i32 {writer}, 6"))  # as the one that reads
    self.own = self.splat(e.op(f"or i32 {here}, {KNOWN}"))

  def splat(self, scalar: str) -> str:
    first = self.e.op(f"insertelement {self.t} poison, i32 {scalar}, i32 0")
    return self.e.op(f"shufflevector {self.t} {first}, {self.t} poison, {self.t} zeroinitializer")

  def op(self, what: str, a: str, b: str | int) -> str:
    return self.e.op(f"{what} {self.t} {a}, {f'splat (i32 {b})' if isinstance(b, int) else b}")

  def both(self, *parts: str) -> str: return self._all("and", parts)

  def either(self, *parts: str) -> str: return self._all("or", parts)

  def _all(self, what: str, parts: tuple[str, ...]) -> str:
    out = parts[0]
    for p in parts[1:]: out = self.e.op(f"{what} <{self.n} x i1> {out}, {p}")
    return out

  def select(self, condition: str, a: str | int, b: str | int) -> str:
    x, y = (f"splat (i32 {v})" if isinstance(v, int) else v for v in (a, b))
    return self.e.op(f"select <{self.n} x i1> {condition}, {self.t} {x}, {self.t} {y}")

  def some(self, lanes: str, mask: str | None) -> str:
    """Whether it holds in a lane that is there."""
    if mask is not None: lanes = self.both(lanes, mask)
    return self.e.op(f"icmp ne i{self.n} {self.e.op(f'bitcast <{self.n} x i1> {lanes} to i{self.n}')}, 0")

  def turned(self, old: str, kind: str, known: str | None = None) -> Turned:
    """`known` are the bytes that a store leaves written; None for all."""
    since = self.op("icmp ult", self.op("xor", old, self.epoch), EPOCH)
    written = self.op("and", old, _WAVE * WRITER)
    wrote = self.select(since, written, 0)
    read = self.select(since, self.op("and", old, _WAVE * READER), 0)
    by_others = self.both(self.op("icmp ne", wrote, 0), self.op("icmp ne", wrote, self.mine))
    read_by_others = self.both(self.op("icmp ne", read, 0), self.op("icmp ne", read, self.me))
    if kind == STORE:
      new = self.own if known is None else self.op("or", self.op("or", self.epoch, self.mine), known)
      return Turned(self.either(by_others, read_by_others), new)
    kept = self.op("or", self.epoch, self.op("and", old, KNOWN))
    if kind == LOAD:  # beside a comparison, which looks again at what it read
      reader = self.select(read_by_others, MANY * READER, self.me)
      return Turned(self.both(by_others, self.op("icmp ne", wrote, COMPARES * WRITER)),
                    self.op("or", self.op("or", kept, reader), wrote))
    own = self.op("icmp eq", wrote, self.mine)
    if kind == COMPARE:
      clash = self.both(by_others, self.op("icmp ult", wrote, COMPARES * WRITER))
      plain = self.op("icmp ult", wrote, COMPARES * WRITER)
      writer = self.select(own, MANY * WRITER, self.select(plain, COMPARES * WRITER, wrote))
    else:
      clash = self.either(self.both(by_others, self.op("icmp ne", wrote, ATOMICS * WRITER),
                                    self.op("icmp ne", wrote, COMPARES * WRITER)), read_by_others)
      writer = self.select(own, MANY * WRITER, ATOMICS * WRITER)
    unknown = self.op("icmp ne", self.op("and", old, KNOWN), KNOWN)
    return Turned(self.either(clash, unknown), self.op("or", self.op("or", kept, read), writer))


def block_load(e: Emitter, n: int, pointer: str, mask: str | None) -> str:
  """Dwords that follow one another, where a mask says so; 0 elsewhere."""
  t = f"<{n} x i32>"
  if mask is None: return e.op(f"load {t}, ptr {pointer}, align 4")
  return e.call(t, f"llvm.masked.load.v{n}i32.p0", ("ptr", f"align 4 {pointer}"), (f"<{n} x i1>", mask),
                (t, "zeroinitializer"))


def block_store(e: Emitter, n: int, data: str, pointer: str, mask: str | None) -> None:
  """Store dwords that follow one another, where a mask says so."""
  t = f"<{n} x i32>"
  if mask is None: return e.do(f"store {t} {data}, ptr {pointer}, align 4")
  name = f"llvm.masked.store.v{n}i32.p0"
  e.declared[name] = f"declare void @{name}({t}, ptr, <{n} x i1>)"
  e.do(f"call void @{name}({t} {data}, ptr align 4 {pointer}, <{n} x i1> {mask})")
