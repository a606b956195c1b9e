"""Every declared packet goes to dwords and to text and back; what is no packet is refused, with one kind of error."""
from __future__ import annotations

import itertools
import random
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples, seed
from tinyhw.autogen import gc_11_0_0 as gc
from tinyhw.autogen import kfd
from tinyhw.autogen import pm4_gfx11 as pm4
from tinyhw.autogen import sdma_v6 as sdma
from tinyhw.core.errors import DecodeError, EncodeError
from tinyhw.core.layout import Packet
from tinyhw.wire import aql
from tinyhw.wire import kfd as kfd_wire
from tinyhw.wire import pm4 as pm4_wire
from tinyhw.wire import sdma as sdma_wire


def sdma_fuzz(cls: type[sdma.Sdma], rng: random.Random) -> sdma.Sdma:
  """A random packet of its own opcode, with a count that fits its payload."""
  values: dict[str, object] = {f.name: getattr(packet, f.name) for packet in (cls.fuzz(rng),) for f in cls.FIELDS}
  values |= {f.name: f.default for f in cls.FIELDS if f.name in ("op", "sub_op", "broadcast")}
  if cls.REST:
    dwords = rng.randrange(1, 6)
    values |= {"count": dwords - cls.PAYLOAD_BIAS, "payload": tuple(rng.getrandbits(32) for _ in range(dwords))}
  return cls(**values)


@pytest.mark.parametrize("cls", pm4.PACKETS, ids=lambda c: c.__name__)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(25))
def test_pm4_round_trip(cls: type[pm4.Pm4], seed: int) -> None:
  packet = cls.fuzz(random.Random(seed))
  words = pm4_wire.encode(packet)
  assert all(0 <= w < 2**32 for w in words)
  assert pm4_wire.decode(words) == (packet, len(words))
  assert pm4_wire.decode([0, *words, 0], 1) == (packet, len(words))
  assert pm4_wire.parse(repr(packet)) == packet


@pytest.mark.parametrize("cls", sdma.PACKETS, ids=lambda c: c.__name__)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(25))
def test_sdma_round_trip(cls: type[sdma.Sdma], seed: int) -> None:
  packet = sdma_fuzz(cls, random.Random(seed))
  words = sdma_wire.encode(packet)
  assert sdma_wire.decode(words) == (packet, len(words))
  assert sdma_wire.parse(repr(packet)) == packet


@pytest.mark.parametrize("cls", [*pm4.PACKETS, *sdma.PACKETS], ids=lambda c: c.__name__)
def test_undeclared_bits_are_refused(cls: type[Packet]) -> None:
  """Each bit of the body is either a field's or refused."""
  zero = [0] * cls.DWORDS
  declared = sum(f.mask for f in cls.FIELDS)
  for bit in range(32 * cls.DWORDS):
    words = list(zero)
    words[bit // 32] = 1 << bit % 32
    if declared >> bit & 1: assert cls.decode(words).encode() == words
    else:
      with pytest.raises(DecodeError, match="undeclared bits"): cls.decode(words)


@pytest.mark.parametrize("cls", [*pm4.PACKETS, *sdma.PACKETS], ids=lambda c: c.__name__)
def test_what_does_not_fit_is_refused(cls: type[Packet]) -> None:
  good = cls.fuzz(random.Random(seed(1)))
  for field in cls.FIELDS:
    for value in (field.limit + 1, -1, *([1] if field.shift else [])):
      changed = cls.decode(good.encode())
      setattr(changed, field.name, value)
      with pytest.raises(EncodeError, match=field.name): changed.encode()


@given(st.lists(st.integers(0, 2**32 - 1), max_size=40))
@settings(max_examples=examples(300))
def test_walks_of_any_dwords_end(words: list[int]) -> None:
  for wire in (pm4_wire, sdma_wire):
    seen = 0
    try:
      for at, packet in wire.walk(words):
        assert at == seen
        seen = at + len(wire.encode(packet))
    except DecodeError as error: assert str(error)
    assert wire.text(words) or not words


@given(st.sampled_from(pm4.PACKETS), st.integers(0, 2**32), st.integers(0, 2**32 - 1), st.integers(0, 12))
@settings(max_examples=examples(300))
def test_a_changed_packet_decodes_to_itself_or_is_refused(cls: type[pm4.Pm4], seed: int, flip: int, where: int) -> None:
  words = pm4_wire.encode(cls.fuzz(random.Random(seed)))
  words[where % len(words)] ^= flip
  try: packet, size = pm4_wire.decode(words)
  except DecodeError: return
  # Only the shader type, which the encoder chooses, may differ.
  again = pm4_wire.encode(packet)
  assert size == len(again) and again[1:] == words[1:size]
  assert again[0] | pm4_wire.COMPUTE == words[0] | pm4_wire.COMPUTE


@given(st.text(max_size=60))
def test_any_text_parses_or_is_refused(line: str) -> None:
  for candidate in (line, f"RELEASE_MEM({line})", f"SET_SH_REG(payload=({line}))"):
    try: pm4_wire.parse(candidate)
    except DecodeError: pass


def test_headers_as_the_kernel_makes_them() -> None:
  """Against constants of the kernel's nvd.h: PACKET3(op, n), PACKET3_COMPUTE, CP_PACKET2, and the NOP of one dword."""
  flush = pm4.EVENT_WRITE(event_type=pm4.VGT_EVENT_TYPE.CS_PARTIAL_FLUSH, event_index=4)
  assert pm4_wire.encode(flush) == [0xC0004600, 7 | 4 << 8]
  assert pm4_wire.encode(pm4_wire.set_sh_reg(gc.COMPUTE_PGM_LO, 0x1234, 0)) == [0xC0027602, 0x20C, 0x1234, 0]
  assert pm4_wire.encode(pm4.NOP()) == [0xFFFF1000]
  assert pm4_wire.encode(pm4.NOP(payload=(1, 2))) == [0xC0011000, 1, 2]
  assert pm4_wire.encode(pm4_wire.PACKET2()) == [0x80000000]
  seen = [type(p).__name__ for _, p in pm4_wire.walk([0x80000000, 0xFFFF1000, 0xC0001000, 5])]
  assert seen == ["PACKET2", "NOP", "NOP"]


def test_pm4_refusals_name_what_is_wrong() -> None:
  for words, message in (
    ([0x00000000], "type-0"), ([0x40000000], "type-1"), ([0x80000001], "type-2"), ([], "no dword"),
    ([0xC0012D00, 0, 0], "DRAW_INDEX_AUTO is no packet of a compute queue"), ([0xC000EE00, 0], "opcode 0xee"),
    ([0xC0004601, 7], "predicated"), ([0xC0004604, 7], "reserved header bits"),
    ([0xC0044900] + [0] * 5, "5 dwords after"), ([0xC0064900, 0], "needs 8 dwords"),
  ):  # fmt: skip
    with pytest.raises(DecodeError, match=message): pm4_wire.decode(words)
  with pytest.raises(EncodeError): pm4_wire.encode(pm4.NOP(payload=(0,) * 0x4000))
  with pytest.raises(EncodeError, match="not a PM4 packet"): pm4_wire.encode(sdma.SDMA_PKT_NOP())


def test_indirect_buffers_differ_by_length() -> None:
  jump = pm4.INDIRECT_BUFFER(ib_base=0x1000, ib_size=64, valid=1)
  choice = pm4.COND_INDIRECT_BUFFER(mode=1, function=3, compare_addr=8, mask=1, reference=1, ib_base1=0, ib_size1=1,
                                    ib_base2=0, ib_size2=1)
  for packet in (jump, choice): assert pm4_wire.decode(pm4_wire.encode(packet))[0] == packet


def test_register_names_in_the_text() -> None:
  packet = pm4_wire.set_sh_reg(gc.COMPUTE_PGM_RSRC1, gc.COMPUTE_PGM_RSRC1(VGPRS=3), 0)
  shown = pm4_wire.text(pm4_wire.encode(packet))
  assert "COMPUTE_PGM_RSRC1 = 0x00000003 (VGPRS=3)" in shown and "COMPUTE_PGM_RSRC2" in shown
  assert pm4_wire.registers(packet) == [(gc.COMPUTE_PGM_RSRC1.OFFSET, 3), (gc.COMPUTE_PGM_RSRC2.OFFSET, 0)]


def test_sdma_refusals_and_payloads() -> None:
  write = sdma.SDMA_PKT_WRITE_UNTILED(dst_addr=0x1000, count=1, payload=(5, 6))
  assert sdma_wire.encode(write) == [2, 0x1000, 0, 1, 5, 6]
  with pytest.raises(EncodeError, match="count says 2"):
    sdma_wire.encode(sdma.SDMA_PKT_WRITE_UNTILED(dst_addr=0x1000, count=1, payload=(5,)))
  with pytest.raises(EncodeError, match="another packet"): sdma_wire.encode(sdma.SDMA_PKT_TRAP(op=0, int_context=0))
  with pytest.raises(DecodeError, match="needs 7 dwords"): sdma_wire.decode([1, 0, 0])
  with pytest.raises(DecodeError, match="no packet of SDMA v6"): sdma_wire.decode([0xEE])
  with pytest.raises(DecodeError, match="undeclared bits"): sdma_wire.decode([1 | 1 << 30, 0, 0, 0, 0, 0, 0])
  assert type(sdma_wire.decode([1 | 1 << 27, *[0] * 8])[0]) is sdma.SDMA_PKT_COPY_BROADCAST_LINEAR


def test_streams_may_be_arrays() -> None:
  """What a queue holds is NumPy's or a memoryview's; fields come out as Python's integers."""
  words = pm4_wire.stream([pm4.NOP(payload=(1, 2)), pm4.EVENT_WRITE(event_type=7)])
  array = np.array(words, dtype=np.uint32)
  for stream in (array, memoryview(array.tobytes()).cast("I")):
    packets = [packet for _, packet in pm4_wire.walk(stream)]  # type: ignore[arg-type]  # an array is no Sequence
    assert pm4_wire.stream(packets) == words and all(type(v) is int for p in packets for _, v in p.items())
  copies = sdma_wire.stream([sdma.SDMA_PKT_WRITE_UNTILED(dst_addr=4, count=0, payload=(7,)), sdma.SDMA_PKT_NOP()])
  found = [packet for _, packet in sdma_wire.walk(np.array(copies, dtype=np.uint32))]  # type: ignore[arg-type]  # an array is no Sequence
  assert sdma_wire.stream(found) == copies


def test_the_longest_body_fits_the_count() -> None:
  """14 bits count the body's dwords minus one; a longer body is refused, and so is what NOP's own count means."""
  longest = pm4.SET_SH_REG(reg_offset=0, payload=(1,) * 0x3FFF)
  words = pm4_wire.encode(longest)
  assert len(words) == 0x4001 and words[0] >> 16 == 0xFFFF and pm4_wire.decode(words) == (longest, 0x4001)
  with pytest.raises(EncodeError, match="16385 dwords do not fit"):
    pm4_wire.encode(pm4.SET_SH_REG(reg_offset=0, payload=(1,) * 0x4000))
  assert len(pm4_wire.encode(pm4.NOP(payload=(0,) * 0x3FFF))) == 0x4000


@pytest.mark.parametrize(("wire", "make"), [
  (pm4_wire, lambda k: pm4.NOP(payload=(k, k))),
  (sdma_wire, lambda k: sdma.SDMA_PKT_WRITE_UNTILED(dst_addr=4 * k, count=0, payload=(7,)))], ids=["pm4", "sdma"])
def test_what_comes_again_is_decoded_once(wire: Any, make: Any) -> None:
  """And what is remembered has an end."""
  streams = [wire.encode(make(k)) for k in range(wire.CACHE_LIMIT + 100)]
  first = [wire.decode(words)[0] for words in streams[:3]]
  assert [wire.decode(words)[0] for words in streams[:3]] == first
  assert all(wire.decode(words)[0] is packet for words, packet in zip(streams, first))
  for words in streams: wire.decode(words)
  assert len((pm4_wire.GFX11 if wire is pm4_wire else sdma_wire.V6).known) <= wire.CACHE_LIMIT
  assert wire.decode(streams[0])[0] == first[0]


@pytest.mark.parametrize("line", [
  "NOP(payload=(1, 2)) x", "PACKET2(", "EVENT_WRITE(event_type=7,, event_index=0)",
  "EVENT_WRITE(event_type=7 event_index=0)", "EVENT_WRITE(event_type=7, event_index=0 x)"])
def test_text_with_something_left_over(line: str) -> None:
  with pytest.raises(DecodeError, match="cannot read|is not of the form"): pm4_wire.parse(line)


@pytest.mark.parametrize(("grid", "block", "dimensions"), [
  ((5, 1, 1), (64, 1, 1), 1), ((1, 1, 1), (1, 1, 1), 1), ((5, 1, 1), (8, 2, 1), 2), ((5, 2, 1), (64, 1, 1), 2),
  ((5, 1, 1), (8, 1, 2), 3), ((5, 1, 3), (64, 1, 1), 3), ((1, 2, 3), (4, 5, 6), 3)])
def test_a_dispatch_in_aql(grid: tuple[int, int, int], block: tuple[int, int, int], dimensions: int) -> None:
  """Its words as HSA lays them out: header, setup, sizes in work-items, and the rest."""
  packet = aql.dispatch(grid, block, kernel_object=0x1122334455667788, kernarg_address=0x7000, private_bytes=12,
                        group_bytes=34, completion_signal=0x99)
  header, setup, *sizes = struct.unpack_from("<HHHHHxxIII", bytes(packet))
  assert header == 2 | 1 << 8 | 2 << 9 | 2 << 11  # a kernel dispatch, with a barrier, both fences of the system
  assert setup == dimensions and sizes == [*block, *(g * b for g, b in zip(grid, block))]
  assert struct.unpack_from("<IIQQxxxxxxxxQ", bytes(packet), 24) == (12, 34, 0x1122334455667788, 0x7000, 0x99)
  assert bytes(aql.decode(bytes(packet))) == bytes(packet)


def test_an_aql_header_says_what_it_was_told_alone() -> None:
  for kind, barrier, acquire, release in itertools.product(range(6), (0, 1), range(3), range(3)):
    word = aql.header(kind, barrier=bool(barrier), acquire=acquire, release=release)
    assert word == kind | barrier << 8 | acquire << 9 | release << 11
    if not barrier: assert aql.header(kind, acquire=acquire, release=release) == word
    if not acquire | release: assert aql.header(kind, barrier=bool(barrier)) == word


def test_aql_refusals() -> None:
  for kind, message in ((0, "HSA_PACKET_TYPE_VENDOR_SPECIFIC"), (1, "HSA_PACKET_TYPE_INVALID"), (200, "200")):
    with pytest.raises(DecodeError, match=f"packet type {message} is not declared"):
      aql.decode(bytes([kind]) + bytes(63))
  with pytest.raises(DecodeError, match="63 bytes, an AQL packet has 64"): aql.decode(bytes(63))


def test_calls_as_text() -> None:
  request, argument = kfd.AMDKFD_IOC_GET_VERSION, kfd.kfd_ioctl_get_version_args(major_version=1, minor_version=17)
  assert kfd_wire.text(request, argument, 0) == (
    "AMDKFD_IOC_GET_VERSION(kfd_ioctl_get_version_args(major_version=1, minor_version=0x11)) = 0")
  assert kfd_wire.text(request) == "AMDKFD_IOC_GET_VERSION()"
  assert kfd_wire.text(request, b"x", -1) == "AMDKFD_IOC_GET_VERSION(b'x') = -1"
  assert kfd_wire.name(0xC0044B99) == "_IOWR('K', 0x99, 4 bytes)" and kfd_wire.find(0xC0044B99) is None


def test_text_says_where_each_packet_is() -> None:
  """From the address of the first dword, which is 0 where nothing else is said."""
  words = [*pm4_wire.encode(pm4.NOP(payload=(1, 2))), *pm4_wire.encode(pm4.NOP(payload=(3,)))]
  for told, first in (({}, 0), ({"where": 0x1000}, 0x1000)):
    lines = pm4_wire.text(words, **told).splitlines()
    assert [int(line.split()[0], 16) for line in lines] == [first, first + 12]


def test_text_of_a_field_that_is_none() -> None:
  with pytest.raises(DecodeError, match=r"EVENT_WRITE\.colour: no such field"):
    pm4_wire.parse("EVENT_WRITE(event_type=7, colour=3)")
