"""printf of kernels: C's formats, and the buffer from which the host prints them when the kernel has ended.

The formats are those of C17 7.21.6.1 as glibc has them in the C locale. What CUDA's printf does in its own way is from
the CUDA C++ Programming Guide, "Formatted Output": 32 arguments, a circular buffer of 1 MiB that loses what is oldest.
"""
from __future__ import annotations

import codecs
import re
import struct
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, TextIO

FIFO: Final = 1 << 20  # bytes of the buffer (cudaLimitPrintfFifoSize)
ARGUMENTS: Final = 32  # behind the format
# What an output takes of the buffer beside its arguments and strings: an assumption, NVIDIA does not say what its
# "internal metadata" is.
HEADER: Final = 16
WIDEST: Final = 64  # times the buffer that all fields together may be wide: what a format fills in is no argument
PIECE: Final = 1 << 16  # characters that are written at once
_MOST: Final = (1 << 31) - 1  # of a width or precision
_SPEC: Final = re.compile(rb"%([-+ #0]*)(\*|[0-9]+)?(?:\.(\*|[0-9]*))?(hh|h|ll|l|z|j|t|L)?([diouxXeEfFgGaAcsp%])")
_BITS: Final = {"hh": 8, "h": 16, "": 32, "l": 64, "ll": 64, "z": 64, "j": 64, "t": 64, "L": 64}
_DIGITS: Final = 1100  # behind the point, which no double has more of, nor as many that are not 0
Argument = int | float | bytes | None


class PrintfWarning(UserWarning):
  """Kernels printed more than the buffer holds: the chip loses what is oldest, and says nothing."""


@dataclass(frozen=True)
class Spec:
  """One `%` of a format, or text between two (`kind` ""). `width` and `precision` may be "*": arguments."""
  text: bytes
  kind: str = ""
  flags: str = ""
  width: int | str = 0
  precision: int | str | None = None
  length: str = ""

  @property
  def takes(self) -> list[str]:
    """Its arguments: "i4" for widths, then "u4", "u8", "f8" or "s"."""
    stars = ["i4"] * ((self.width == "*") + (self.precision == "*"))
    if self.kind in {"", "%"}: return stars if self.kind else []
    if self.kind in "eEfFgGaA": return [*stars, "f8"]
    if self.kind == "s": return [*stars, "s"]
    return [*stars, "u8" if self.kind == "p" or self.kind != "c" and _BITS[self.length] == 64 else "u4"]


@lru_cache(maxsize=256)
def parse(form: bytes) -> Sequence[Spec]:
  """The parts of a format. What is no conversion stands for itself, and so does one behind ARGUMENTS arguments."""
  out, at, taken = list[Spec](), 0, 0
  for m in _SPEC.finditer(form):
    flags, width, precision, length, kind = (None if g is None else g.decode() for g in m.groups())
    assert flags is not None and kind is not None
    wide = 0 if width is None else "*" if width == "*" else int(width)
    exact = None if precision is None else "*" if precision == "*" else int(precision or 0)
    spec = Spec(m[0], kind, flags, wide, exact, length or "")
    if any(n is not None and n != "*" and int(n) > _MOST for n in (wide, exact)): continue
    if spec.takes:
      taken += len(spec.takes)
      if taken > ARGUMENTS: continue
    if m.start() > at: out.append(Spec(form[at:m.start()]))
    out.append(spec)
    at = m.end()
  if at < len(form): out.append(Spec(form[at:]))
  return tuple(out)


def output(form: bytes, values: Sequence[Argument]) -> Iterator[bytes]:
  """What is printed of a format and its arguments: integers unsigned, floats, strings (None: a null pointer)."""
  given = iter(values)
  for spec in parse(form):
    if spec.kind == "": yield spec.text
    elif spec.kind == "%": yield b"%"
    else: yield from _converted(spec, given)


def wide(form: bytes, values: Sequence[Argument]) -> int:
  """How many characters widths and precisions ask for."""
  total, given = 0, iter(values)
  for spec in parse(form):
    sizes = [abs(_signed(next(given), 32)) if n == "*" else n for n in (spec.width, spec.precision)]
    if spec.kind in {"c", "s", "%", ""}: sizes[1] = 0  # a string's precision cuts it
    for _ in spec.takes[(spec.width == "*") + (spec.precision == "*"):]: next(given)
    total += max(n for n in sizes if isinstance(n, int))
  return total


def _signed(x: Any, bits: int) -> int:
  x &= (1 << bits) - 1
  return int(x - (1 << bits) if x >> bits - 1 else x)


def _converted(spec: Spec, given: Iterator[Argument]) -> Iterator[bytes]:
  flags, width, precision = spec.flags, spec.width, spec.precision
  if width == "*":
    width = _signed(next(given), 32)
    if width < 0: flags, width = flags + "-", -width
  if precision == "*":
    precision = _signed(next(given), 32)
    if precision < 0: precision = None
  assert isinstance(width, int) and not isinstance(precision, str)
  value = next(given)
  kind = spec.kind
  if kind == "c": return _padded(flags, width, "", bytes([int(value or 0) & 0xFF]), 0, "", zeros=False)
  if kind == "s": return _string(flags, width, precision, value)
  if kind in "eEfFgGaA":
    assert isinstance(value, float)
    return _float(flags, width, precision, kind, value)
  assert isinstance(value, int)
  if kind == "p" and not value: return _padded(flags, width, "", b"(nil)", 0, "", zeros=False)
  return _integer(flags, width, precision, kind, value, 64 if kind == "p" else _BITS[spec.length])


def _padded(flags: str, width: int, sign: str, digits: bytes, behind: int, tail: str, *,
            zeros: bool) -> Iterator[bytes]:
  """`sign`, `digits`, so many zeros behind them and `tail` in a field; with `zeros` the flag 0 fills it."""
  room = width - len(sign) - len(digits) - behind - len(tail)
  left, filled = "-" in flags, zeros and "0" in flags and "-" not in flags
  if not left and not filled: yield from _many(b" ", room)
  if sign: yield sign.encode()
  if filled: yield from _many(b"0", room)
  yield digits
  yield from _many(b"0", behind)
  if tail: yield tail.encode()
  if left: yield from _many(b" ", room)


def _many(what: bytes, n: int) -> Iterator[bytes]:
  while n > 0:
    yield what * min(n, PIECE)
    n -= PIECE


def _string(flags: str, width: int, precision: int | None, value: Argument) -> Iterator[bytes]:
  if value is None: value = b"(null)" if precision is None or precision >= 6 else b""
  assert isinstance(value, bytes)
  return _padded(flags, width, "", value[:precision], 0, "", zeros=False)


def _sign(flags: str, negative: bool) -> str:
  return "-" if negative else "+" if "+" in flags else " " if " " in flags else ""


def _integer(flags: str, width: int, precision: int | None, kind: str, value: int, bits: int) -> Iterator[bytes]:
  sign = ""
  if kind in "di":
    value = _signed(value, bits)
    sign = _sign(flags, value < 0)
  else: value &= (1 << bits) - 1
  base = {"o": "o", "x": "x", "X": "X", "p": "x"}.get(kind, "d")
  digits = format(abs(value), base) if value or precision != 0 else ""
  if kind == "o" and "#" in flags and digits[:1] != "0" and (precision is None or precision <= len(digits)):
    digits = "0" + digits
  if kind == "p": sign = _sign(flags, False) + "0x"
  if kind in "xX" and "#" in flags and value: sign = f"0{kind}"
  zeros = max((precision or 0) - len(digits), 0)
  return _digits(flags, width, sign, zeros, digits, precision is None)


def _digits(flags: str, width: int, sign: str, zeros: int, digits: str, filled: bool) -> Iterator[bytes]:
  """As `_padded`, of a number with zeros before its digits."""
  room = width - len(sign) - zeros - len(digits)
  left, filled = "-" in flags, filled and "0" in flags and "-" not in flags
  if not left and not filled: yield from _many(b" ", room)
  if sign: yield sign.encode()
  if filled: yield from _many(b"0", room)
  yield from _many(b"0", zeros)
  if digits: yield digits.encode()
  if left: yield from _many(b" ", room)


def _float(flags: str, width: int, precision: int | None, kind: str, value: float) -> Iterator[bytes]:
  negative = bool(struct.unpack("<Q", struct.pack("<d", value))[0] >> 63)
  sign, value = _sign(flags, negative), abs(value)
  if value != value or value == float("inf"):
    word = "nan" if value != value else "inf"
    return _padded(flags, width, sign, (word.upper() if kind.isupper() else word).encode(), 0, "", zeros=False)
  sharp = "#" if "#" in flags else ""
  if kind in "aA":
    sign, digits, behind, tail = sign + "0x", *_hexadecimal(value, precision, bool(sharp))
    if kind == "A": sign, digits, tail = sign.upper(), digits.upper(), tail.upper()
    return _padded(flags, width, sign, digits.encode(), behind, tail, zeros=True)
  exact = 6 if precision is None else precision
  text = f"%{sharp}.{min(exact, _DIGITS)}{kind}" % value
  behind = max(exact - _DIGITS, 0) if sharp or kind not in "gG" else 0
  mark = "E" if kind.isupper() else "e"
  digits, found, exponent = text.partition(mark) if kind not in "fF" else (text, "", "")
  return _padded(flags, width, sign, digits.encode(), behind, found + exponent, zeros=True)


def _hexadecimal(value: float, precision: int | None, sharp: bool) -> tuple[str, int, str]:
  """(digits, zeros behind them, exponent) of %a: before the point is 1, or 0 of subnormal numbers and 0."""
  bits = struct.unpack("<Q", struct.pack("<d", value))[0]
  exponent, fraction = bits >> 52, bits & (1 << 52) - 1
  power = 0 if not bits else exponent - 1023 if exponent else -1022
  whole = (1 << 52 if exponent else 0) | fraction
  if precision is not None and precision < 13:
    unit = 1 << 52 - 4 * precision
    whole = round(Fraction(whole, unit)) * unit  # to even where it is between two
  places = f"{whole & (1 << 52) - 1:013x}"
  places = places.rstrip("0") if precision is None else places[:precision]
  return (f"{whole >> 52}{'.' if places or precision or sharp else ''}{places}",
          max((precision or 0) - 13, 0), f"p{power:+d}")


class Printed:
  """What a kernel's threads print, until it is written: a buffer of `size` bytes that loses what is oldest.

  What widths and precisions fill in takes no room there. It is bounded all the same: an output whose fields are wider
  than the whole buffer does not fit, nor do fields of more than `WIDEST` buffers together.
  """

  def __init__(self, size: int = FIFO) -> None:
    self.size = size
    self.entries: deque[tuple[bytes, tuple[Argument, ...]]] = deque()
    self.lost = 0  # outputs
    self._sizes: deque[tuple[int, int]] = deque()
    self._used = self._wide = 0

  def add(self, form: bytes, values: Sequence[Argument]) -> bool:
    """One output; False where it is larger than the whole buffer."""
    size = HEADER + sum(8 if not isinstance(v, bytes) else 8 + (len(v) + 8 & ~7) for v in values)
    filled = wide(form, values)
    if max(size, filled) > self.size:
      self.lost += 1
      return False
    while self._used + size > self.size or self._wide + filled > WIDEST * self.size:
      self.entries.popleft()
      oldest, its = self._sizes.popleft()
      self._used, self._wide = self._used - oldest, self._wide - its
      self.lost += 1
    self.entries.append((form, tuple(values)))
    self._sizes.append((size, filled))
    self._used, self._wide = self._used + size, self._wide + filled
    return True

  def pieces(self) -> Iterator[str]:
    """All that is there as text, in pieces of about PIECE characters."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    out, size = list[bytes](), 0
    for form, values in self.entries:
      for piece in output(form, values):
        out.append(piece)
        size += len(piece)
        if size >= PIECE:
          yield decoder.decode(b"".join(out))
          out, size = [], 0
    text = decoder.decode(b"".join(out), final=True)
    if text: yield text

  def write(self, tick: Callable[[], None] | None = None, to: TextIO | None = None) -> None:
    """Write it to the standard output; `tick` is called between pieces, and what it raises ends it."""
    file = sys.stdout if to is None else to
    if self.entries:
      for k, piece in enumerate(self.pieces()):
        if k and tick is not None: tick()
        file.write(piece)
    if self.lost:
      warnings.warn(f"a kernel printed more than its buffer of {self.size:,} bytes holds: {self.lost:,} outputs are "
                    "lost, the oldest, as on the chip; cudaDeviceSetLimit(cudaLimitPrintfFifoSize, ...) makes it "
                    "larger", PrintfWarning, stacklevel=2)


__all__ = ["FIFO", "Argument", "Printed", "PrintfWarning", "Spec", "output", "parse"]
