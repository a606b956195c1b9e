"""Declared layouts: round trips, refusals, and declarations that must not import."""
from __future__ import annotations

import ctypes
import random
from enum import IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinyhw.core.errors import DecodeError, EncodeError, LayoutError
from tinyhw.core.layout import Packet, Register, Struct, bits, rest, u32, u64


class Func(IntEnum):
  ALWAYS = 0
  GE = 5


class Sample(Packet, dwords=6):
  func: int = bits(0, 2, 0, enum=Func)
  flag: int = bits(0, 5, 4, default=1)
  address: int = bits(1, 63, 2, shift=2)
  wide: int = u64(3)
  across: int = bits(5, 20, 10)


class Header(Packet, dwords=1):
  op: int = bits(0, 7, 0, default=3)
  sub_op: int = bits(0, 15, 8, default=0)


class Body(Header, dwords=2):
  count: int = u32(1)


class Control(Register, offset=0x2E12):
  enable: int = bits(0, 0, 0)
  waves: int = bits(0, 12, 4)


class Pair(Struct):
  _fields_ = (("a", ctypes.c_uint32), ("PADDING_0", ctypes.c_uint8 * 4), ("b", ctypes.c_uint64 * 2))


@given(st.randoms(use_true_random=False))
@pytest.mark.parametrize("cls", [Sample, Header, Body])
def test_encode_and_decode_are_inverse(cls: type[Packet], rng: random.Random) -> None:
  packet = cls.fuzz(rng)
  words = packet.encode()
  assert len(words) == cls.DWORDS and all(0 <= w < 1 << 32 for w in words)
  assert cls.decode(words) == packet and not packet.diff(cls.decode(words))


@given(st.lists(st.integers(0, 0xFFFFFFFF), min_size=6, max_size=6))
def test_decode_takes_exactly_the_declared_bits(words: list[int]) -> None:
  whole = sum(w << 32 * i for i, w in enumerate(words))
  declared = sum(f.mask for f in Sample.FIELDS)
  if whole & ~declared:
    with pytest.raises(DecodeError, match="undeclared bits"): Sample.decode(words)
  else: assert Sample.decode(words).encode() == words


@given(st.integers(-(1 << 70), 1 << 70))
def test_encode_never_truncates(value: int) -> None:
  for name in ("func", "flag", "address", "wide", "across"):
    given_values = {"func": 0, "address": 0, "wide": 0, "across": 0} | {name: value}
    field = next(f for f in Sample.FIELDS if f.name == name)
    if 0 <= value <= field.limit and not value & (1 << field.shift) - 1:
      assert getattr(Sample.decode(Sample(**given_values).encode()), name) == value
    else:
      with pytest.raises(EncodeError, match=f"Sample.{name}: "): Sample(**given_values).encode()


def test_text_names_enum_members() -> None:
  shown = repr(Sample(func=5, address=0x1000, wide=3, across=0))
  assert shown == "Sample(func=GE, flag=1, address=0x1000, wide=3, across=0)"
  assert Sample(func=5, address=0, wide=0, across=0).to_dict()["func"] == "GE"


def test_wrong_calls_are_named() -> None:
  with pytest.raises(TypeError, match="wide"): Sample(func=0, address=0, across=0)  # type: ignore[call-arg]  # wrong on purpose
  with pytest.raises(DecodeError, match="5 dwords, expected 6"): Sample.decode([0] * 5)
  with pytest.raises(EncodeError, match="is not an integer"): Sample(func=0, address=0, wide="x", across=0).encode()  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize(("fields", "message"), [
  ({"a": bits(0, 7, 0), "b": bits(0, 8, 7)}, "overlaps a"),
  ({"a": bits(1, 31, 0)}, "past the end"),
  ({"a": bits(0, 1, 0, enum=Func)}, "enum Func does not fit"),
  ({"a": bits(0, 3, 0, default=16)}, "default 0x10 does not fit"),
  ({"a": bits(0, 3, 0, default=1, shift=2)}, "default 0x1 does not fit"),
])
def test_a_contradictory_declaration_fails_at_import(fields: dict[str, object], message: str) -> None:
  with pytest.raises(LayoutError, match=message): type("Wrong", (Packet,), fields, dwords=1)  # type: ignore[call-overload]  # wrong on purpose


def test_registers_default_to_zero_and_refuse_stray_bits() -> None:
  assert Control(waves=3).value() == 0x30 and Control.decode(0x31) == Control(enable=1, waves=3)
  with pytest.raises(DecodeError): Control.decode(2)
  with pytest.raises(EncodeError, match="Control.waves"): Control(waves=512).value()


@given(st.randoms(use_true_random=False))
def test_structs_show_and_compare_their_fields(rng: random.Random) -> None:
  value = Pair.fuzz(rng)
  copy = Pair.from_buffer_copy(bytes(value))
  assert value.to_dict() == copy.to_dict() and not value.diff(copy) and "PADDING" not in value.text()
  copy.a ^= 1
  assert len(value.diff(copy)) == 1 and value.diff(copy)[0].startswith("a: ")


class Data(Packet, dwords=1):
  op: int = bits(0, 7, 0)
  payload: tuple[int, ...] = rest()


def test_a_tail_is_shown_and_compared() -> None:
  one, two = Data(op=1, payload=(1, 2)), Data(op=1, payload=(1, 3))
  assert one.tail == (1, 2) and one.encode() == [1, 1, 2] and Data.decode([1, 1, 2]) == one != two
  assert one.diff(two) == ["payload: (0x1, 0x2) != (0x1, 0x3)"] and not one.diff(Data(op=1, payload=(1, 2)))
  assert one.to_dict() == {"op": 1, "payload": [1, 2]} and repr(one) == "Data(op=1, payload=(0x1, 0x2))"
  assert one.diff(Header(op=1)) == ["Data != Header"]  # type: ignore[arg-type]  # wrong on purpose


def test_a_packet_has_its_bases_dwords_and_one_tail() -> None:
  with pytest.raises(LayoutError, match="Short: 1 dwords are fewer than its base has"):
    type("Short", (Body,), {}, dwords=1)  # type: ignore[call-overload]  # wrong on purpose
  with pytest.raises(LayoutError, match="a second tail beside payload"):
    type("Twice", (Data,), {"more": rest()}, dwords=1)  # type: ignore[call-overload]  # wrong on purpose


def test_numbers_of_a_struct_are_hexadecimal_from_ten_on() -> None:
  assert Pair(a=9, b=(1, 10)).text() == "Pair(a=9, b=[1, 10])" and Pair(a=10).text() == "Pair(a=0xa, b=[0, 0])"


class Crossing(Packet, dwords=3):
  """Fields over the ends of dwords, by one bit on either side and by many."""
  first: int = bits(0, 32, 31)
  many: int = bits(1, 60, 1)
  last: int = bits(2, 31, 29)


@given(st.integers(0, 3), st.integers(0, (1 << 60) - 1), st.integers(0, 7))
def test_fields_over_the_end_of_a_dword(first: int, many: int, last: int) -> None:
  packet = Crossing(first=first, many=many, last=last)
  whole = first << 31 | many << 33 | last << 93
  assert packet.encode() == [whole >> 32 * k & 0xFFFFFFFF for k in range(3)]
  assert Crossing.decode(packet.encode()) == packet


def test_a_default_may_have_the_zeros_that_the_shift_wants() -> None:
  cls = type("Shifted", (Packet,), {"a": bits(0, 7, 0, default=8, shift=2), "b": bits(0, 15, 8, default=0, shift=3)},
             dwords=1)  # type: ignore[call-overload]  # a class made by hand
  assert cls().encode() == [2] and cls(a=0x3FC, b=0x7F8).encode() == [0xFFFF]


@pytest.mark.parametrize("word", [-1, 1 << 32])
def test_a_tail_holds_dwords(word: int) -> None:
  with pytest.raises(EncodeError): Data(op=1, payload=(0, word)).encode()
  assert Data(op=1, payload=()).encode() == [1]


def test_what_is_drawn_differs() -> None:
  rng = random.Random(1)
  for cls in (Sample, Data, Pair): assert len({str(cls.fuzz(rng)) for _ in range(20)}) > 10
  assert Control.DWORDS == 1 and Control.OFFSET == 0x2E12
