"""printf of kernels: formats beside C's own snprintf, and the buffer that loses what is oldest."""
from __future__ import annotations

import ctypes
import io
import itertools
import random
import struct
import warnings
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw.core import printf
from tinyhw.core.printf import Argument, Printed, PrintfWarning, output, parse

LIBC = ctypes.CDLL(None)
of_glibc = pytest.mark.skipif(not hasattr(LIBC, "gnu_get_libc_version"), reason="of glibc, whose formats they are")
LIBC.snprintf.restype = ctypes.c_int


def ours(form: str, values: Sequence[Argument]) -> bytes: return b"".join(output(form.encode(), values))


def of_c(form: str, values: Sequence[Argument]) -> bytes:
  """What snprintf makes of a format. Integers are passed in 64 bits, of which it takes what the format says."""
  given_: list[Any] = [ctypes.c_double(v) if isinstance(v, float) else ctypes.c_char_p(v) if not isinstance(v, int)
                       else ctypes.c_uint64(v) for v in values]
  buffer = ctypes.create_string_buffer(1 << 13)
  n = LIBC.snprintf(buffer, ctypes.c_size_t(len(buffer)), form.encode(), *given_)
  assert 0 <= n < len(buffer)
  return buffer.raw[:n]


FLAGS = {"d": "-+ 0", "i": "-+ 0", "u": "-0", "o": "-#0", "x": "-#0", "X": "-#0", "c": "-", "s": "-", "p": "-",
         **{k: "-+ #0" for k in "eEfFgGaA"}}  # those that C gives a meaning
LENGTHS = ["", "hh", "h", "l", "ll", "z", "j", "t"]
WHOLE = st.one_of(st.sampled_from([0, 1, 2, 7, 8, 255, 256, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 63,
                                   (1 << 64) - 1]), st.integers(0, (1 << 64) - 1))
SOME = [0.0, -0.0, 0.5, 1.5, 2.5, 9.995, 99999.5, 5e-324, -2.2e-308, 1e22, 1e300]
FLOATS = st.one_of(st.floats(), st.sampled_from(SOME),
                   st.integers(0, (1 << 64) - 1).map(lambda n: struct.unpack("<d", struct.pack("<Q", n))[0]))
STAR = st.integers(-40, 40)


@st.composite
def conversions(draw: Any) -> tuple[str, list[Argument]]:
  """One conversion of the grammar with its arguments."""
  kind = draw(st.sampled_from("diouxXcspeEfFgGaA"))
  flags = "".join(draw(st.lists(st.sampled_from(FLAGS[kind]), max_size=4)))
  values: list[Argument] = []
  width = draw(st.sampled_from(["", "number", "*"]))
  if width == "number": width = str(draw(st.integers(1, 60)))
  elif width == "*":  # glibc 2.36 has `%0*g` with a width of -2 put zeros behind the number, against C
    values.append((draw(STAR) if "0" not in flags or kind not in "eEfFgGaA" else draw(st.integers(0, 40))) & 0xFFFFFFFF)
  precision = "" if kind in "cp" else draw(st.sampled_from(["", ".", "number", ".*"]))
  if precision == "number": precision = f".{draw(st.one_of(st.integers(0, 50), st.integers(0, 1300)))}"
  elif precision == ".*": values.append(draw(STAR) & 0xFFFFFFFF)
  length = draw(st.sampled_from(LENGTHS if kind in "diouxX" else ["", "l"] if kind in "eEfFgGaA" else [""]))
  if kind == "s": values.append(draw(st.none() | st.binary(max_size=30).map(lambda b: b.replace(b"\0", b""))))
  elif kind in "eEfFgGaA": values.append(draw(FLOATS))
  else: values.append(draw(WHOLE))
  return f"%{flags}{width}{precision}{length}{kind}", values


TEXT = st.text(st.characters(codec="ascii", exclude_characters="%\0"), max_size=8)


def beside(*parts: tuple[str, list[Argument]]) -> list[tuple[str, tuple[str, list[Argument]]]]:
  """Conversions one behind the other."""
  return [("|", part) for part in parts]


@of_glibc
@settings(max_examples=examples(300))
@given(parts=st.lists(st.tuples(TEXT, conversions()), min_size=1, max_size=5), percent=st.booleans())
@example(parts=beside(("%.0a", [1.5]), ("%.0a", [0.5]), ("%.12a", [1.9999999999999998])), percent=True)
@example(parts=beside(("%a", [5e-324]), ("%.3a", [5e-324]), ("%#.0a", [1.0]), ("%020A", [-3.25])), percent=True)
@example(parts=beside(("%#.3g", [100.0]), ("%#g", [0.0]), ("%#.0f", [2.5]), ("%.0e", [5e-324])), percent=True)
@example(parts=beside(("%.0d", [0]), ("%#.0o", [0]), ("%#.0x", [0]), ("%+.0d", [0])), percent=True)
@example(parts=beside(("%08.3d", [5]), ("%-08d|", [5]), ("%#08x", [5]), ("%hhd", [200])), percent=True)
@example(parts=beside(("%10s", [None]), ("%.5s", [None]), ("%.6s", [None]), ("%10p", [0])), percent=True)
@example(parts=beside(("%*.*f", [0xFFFFFFF6, 0xFFFFFFFF, 2.0]), ("%010f", [float("-inf")])), percent=True)
@example(parts=beside(("%+F", [float("nan")]), ("%e", [-float("nan")])), percent=True)
def test_formats_are_those_of_c(parts: list[tuple[str, tuple[str, list[Argument]]]], percent: bool) -> None:
  """Over the grammar: flags, widths, precisions, sizes and conversions, where C gives them a meaning."""
  form = "".join(text + conversion for text, (conversion, _) in parts) + "%%" * percent
  values = [v for _, (_, given_) in parts for v in given_]
  assert ours(form, values) == of_c(form, values), form


@of_glibc
@pytest.mark.parametrize("kind", "diouxXcspeEfFgGaA")
def test_each_conversion_with_all_flags(kind: str) -> None:
  """Every subset of flags, with and without width and precision."""
  rng = random.Random(kind)
  for n in range(len(FLAGS[kind]) + 1):
    for flags in itertools.combinations(FLAGS[kind], n):
      exact = ("", ".0", ".3", ".22") if kind not in "cp" else ("",)
      for width, precision in itertools.product(("", "1", "25"), exact):
        form = f"%{''.join(flags)}{width}{precision}{kind}"
        values: list[Argument] = [rng.choice([0.0, -1.25, 1e10, 123456.789])] if kind in "eEfFgGaA" else [
          rng.choice([b"", b"word"])] if kind == "s" else [rng.choice([0, 65, 1 << 31, (1 << 64) - 9])]
        assert ours(form, values) == of_c(form, values), (form, values)


@pytest.mark.parametrize(("form", "values", "wanted"), [
  ("%y%", [], "%y%"), ("100%", [], "100%"), ("%n%d", [5], "%n5"), ("%99999999999d%d", [7], "%99999999999d7"),
  ("%Lf", [1.5], "1.500000"), ("% %", [], "%"), ("", [], ""), ("%.-3d|%d", [4], "%.-3d|4"), ("%٣d", [], "%٣d")])
def test_what_is_no_conversion_stands_for_itself(form: str, values: list[Argument], wanted: str) -> None:
  """Also %n, which CUDA does not have, and widths that C has not; %L is a double, as on the device."""
  assert ours(form, values).decode() == wanted


def test_at_most_32_arguments() -> None:
  """The others are ignored, and their conversions stand as they are; a * is an argument."""
  assert ours("%d," * 34 + "%%", [*range(32)]) == b"".join(b"%d," % k for k in range(32)) + b"%d,%d,%"
  assert ours("%d," * 31 + "%*d|%d", [*range(31)]) == b"".join(b"%d," % k for k in range(31)) + b"%*d|%d"
  assert sum(len(s.takes) for s in parse(b"%*.*f" * 20)) == 30


# ---- the buffer

def test_the_buffer_loses_what_is_oldest() -> None:
  """So many outputs as fit, whatever their formats make of them; strings count."""
  each = printf.HEADER + 8
  printed = Printed(each * 100)
  for k in range(250): assert printed.add(b"%90d\n", [k])
  out = io.StringIO()
  with pytest.warns(PrintfWarning, match=r"buffer of 2,400 bytes holds: 150 outputs are lost, the oldest"):
    printed.write(to=out)
  assert out.getvalue() == "".join(f"{k:90}\n" for k in range(150, 250))
  printed = Printed(1 << 10)
  assert printed.add(b"%s", [b"x" * 900]) and not printed.add(b"%s", [b"x" * 1000]) and printed.lost == 1
  assert printed.add(b"%s", [b"y" * 100]) and printed.lost == 2 and len(printed.entries) == 1
  assert printed.add(b"%s", [None]) and printed.add(b"plain", []) and printed.lost == 2


def test_all_of_what_fits_is_printed_and_nothing_said() -> None:
  """Bytes of a character may come one by one."""
  printed, out = Printed(), io.StringIO()
  for byte in "né€".encode(): printed.add(b"%c", [byte])
  printed.add(b"%.1s|", ["é".encode()])
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    printed.write(to=out)
  assert out.getvalue() == "né€\N{REPLACEMENT CHARACTER}|"


@given(st.lists(st.tuples(st.sampled_from(["d", "x", "f", "a", "s", "c", "%"]), st.integers(0, 3000),
                          st.none() | st.integers(-3000, 3000), st.sampled_from(["", "-", "0", "+"]), st.booleans()),
                max_size=12))
def test_fields_are_bounded(parts: list[tuple[str, int, int | None, str, bool]]) -> None:
  """All that is printed of what fits is no more than its text and arguments take, beside `WIDEST` buffers; an output
  that asks for more than the whole buffer is lost, however it says so."""
  printed = Printed(256)
  for kind, width, precision, flags, star in parts:
    form, values = f"%{flags}{'*' if star else width or ''}", list[Argument]([width] if star else [])
    if precision is not None:
      form += ".*" if star else f".{max(precision, 0)}"
      if star: values.append(precision)
    if kind != "%" or not star: form += kind
    else: form += "d"
    values += [1.5] if kind in "fa" else [b"ab"] if kind == "s" else [] if kind == "%" and not star else [65]
    fits = max(width, abs(precision or 0) * (kind not in "sc%" or star and kind == "%")) <= 256
    assert printed.add(form.encode(), values) == fits
  out = io.StringIO()
  with warnings.catch_warnings():
    warnings.simplefilter("ignore", PrintfWarning)
    printed.write(to=out)
  assert len(out.getvalue()) <= printf.WIDEST * 256 + 64 * len(parts)


@pytest.mark.parametrize(("form", "values"), [
  ("%2147483647d", [1]), ("%-2147483647s", [b"a"]), ("%.2147483647f", [1.0]), ("%*d", [0x80000001, 1]),
  ("%.*x", [1 << 30, 1]), ("%2147483647c", [65]), ("%1048577p", [5]), ("%.1048577a", [1.0])])
def test_no_output_is_wider_than_the_buffer(form: str, values: list[Argument]) -> None:
  printed = Printed()
  assert not printed.add(form.encode(), values) and printed.add(b"%1048576d%.3s", [7, b"abcd"])
  for k in range(printf.WIDEST): assert printed.add(b"%1048576d", [k])
  assert printed.lost == 2 and sum(map(len, printed.pieces())) == printf.WIDEST << 20


def test_endless_widths_take_no_memory_and_end_in_time() -> None:
  """32 threads with a width of 99,999,999, where there is room for it: pieces, between which the launch may end."""
  printed = Printed(1 << 30)
  for k in range(32): printed.add(b"%99999999d", [k])
  printed.add(b"%.99999999f%#.99999999g%.99999999a%099999999x", [1.5, 1.5, 1.5, 3])
  assert max(map(len, itertools.islice(printed.pieces(), 3000))) <= 2 * printf.PIECE
  class Enough(Exception): pass
  pieces = itertools.count(1)

  def tick() -> None:
    if next(pieces) == 100: raise Enough
  out = io.StringIO()
  with pytest.raises(Enough): printed.write(tick, out)
  assert len(out.getvalue()) <= 101 * 2 * printf.PIECE
