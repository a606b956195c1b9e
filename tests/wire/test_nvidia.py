"""NVIDIA's command streams: GPFIFO entries, pushbuffers and QMDs go to words and back, exactly, or are refused."""
from __future__ import annotations

import ctypes
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strength import examples
from tinyhw.autogen import nv_c8b5 as copy
from tinyhw.autogen import nv_c56f as host
from tinyhw.autogen import nv_cbc0 as compute
from tinyhw.core.errors import DecodeError, EncodeError, Unsupported
from tinyhw.wire import gpfifo, methods, qmd

WORD = st.integers(0, 2**32 - 1)
SEGMENTS = st.builds(gpfifo.Segment, st.integers(0, (gpfifo.END >> 2) - 1).map(lambda n: n << 2),
                     st.integers(1, gpfifo.LONGEST), st.booleans(), st.booleans(), st.booleans())
CONTROLS = st.builds(gpfifo.Control, st.integers(0, 255), WORD, st.booleans())
ADDRESS = st.integers(0, 0xFFF).map(lambda n: n << 2)
SENDS = st.one_of(
  st.builds(methods.Send, st.sampled_from([methods.INCR, methods.NONINCR, methods.ONEINCR]), st.integers(0, 7), ADDRESS,
            st.lists(WORD, max_size=9).map(tuple)),
  st.builds(methods.Send, st.just(methods.IMMD), st.integers(0, 7), ADDRESS,
            st.integers(0, methods.IMMEDIATE).map(lambda v: (v,))))
ALL_QMDS = [(class_id, version) for class_id in qmd.CLASS_IDS for version in qmd.versions(class_id)]


# ---- GPFIFO

@given(SEGMENTS | CONTROLS)
@settings(max_examples=examples(100))
def test_gpfifo_entries_come_back(entry: gpfifo.Entry) -> None:
  value = entry.encode()
  assert 0 <= value < 2**64 and gpfifo.decode(value) == entry


@given(st.integers(0, 2**64 - 1))
@settings(max_examples=examples(100))
def test_what_a_gpfifo_entry_says_is_all_of_it(value: int) -> None:
  try: entry = gpfifo.decode(value)
  except DecodeError: return
  assert entry.encode() == value


@given(st.one_of(st.integers(0, 2**64 - 1), SEGMENTS.map(gpfifo.Segment.encode), CONTROLS.map(gpfifo.Control.encode)))
def test_a_plain_piece_of_a_pushbuffer_is_what_the_entry_says(value: int) -> None:
  """Others are left to `decode`, which refuses what is none."""
  try: entry: object = gpfifo.decode(value)
  except DecodeError: entry = None
  try: found = gpfifo.piece(value)
  except DecodeError: found = None
  plain = isinstance(entry, gpfifo.Segment) and entry == gpfifo.Segment(entry.address, entry.dwords)
  assert found == ((entry.address, entry.dwords) if isinstance(entry, gpfifo.Segment) and plain else None)


def test_gpfifo_entries_have_limits() -> None:
  assert gpfifo.Segment(0x12_3456_7890, 5, wait=True).encode() == 0x8000_1412_3456_7890  # by hand: dev_pbdma.ref
  for wrong in (gpfifo.Segment(2, 1), gpfifo.Segment(1 << 40, 1), gpfifo.Segment(0, 0), gpfifo.Segment(0, 1 << 21),
                gpfifo.Control(256), gpfifo.Control(0, 1 << 32)):
    with pytest.raises(EncodeError): wrong.encode()
  with pytest.raises(DecodeError): gpfifo.decode(1 << 40 | 1 << 42)  # bit 8 is nobody's
  assert str(gpfifo.Segment(0x1000, 2, wait=True)) == "GP_ENTRY(GET=0x1000, LENGTH=2, SYNC=WAIT)"
  assert str(gpfifo.Control(1)) == "GP_ENTRY(OPCODE=ILLEGAL, OPERAND=0x0)"
  assert "undeclared" in gpfifo.text([gpfifo.Segment(64, 1).encode(), 1 << 40 | 1 << 42], first=7)


def test_the_users_page_of_a_channel() -> None:
  """Places of the words of Nvc56fControl (clc56f.h), which is of 512 bytes."""
  places = {"Put": 0x40, "Get": 0x44, "Reference": 0x48, "PutHi": 0x4C, "TopLevelGet": 0x58, "TopLevelGetHi": 0x5C,
            "GetHi": 0x60, "GPGet": 0x88, "GPPut": 0x8C}
  assert {name: getattr(gpfifo.Userd, name).offset for name in places} == places
  assert ctypes.sizeof(gpfifo.Userd) == 0x200


# ---- pushbuffers

@given(st.lists(SENDS, max_size=6))
@settings(max_examples=examples(100))
def test_pushbuffers_come_back(sends: list[methods.Send]) -> None:
  words = [w for s in sends for w in s.encode()]
  assert [found for _, found in methods.walk(words)] == sends


@given(st.lists(WORD, max_size=8))
@settings(max_examples=examples(100))
def test_what_a_pushbuffer_says_is_all_of_it(words: list[int]) -> None:
  again: list[int] = []
  try:
    for _, found in methods.walk(words):
      again += found.encode() if isinstance(found, methods.Send) else [found if isinstance(found, int) else
                                                                       found.value()]
  except DecodeError: pass
  assert again == words[:len(again)]


def test_headers_are_those_of_the_manual() -> None:
  """Written by hand from dev_ram.ref: opcode in 31:29, count in 28:16, subchannel in 15:13, dword address in 11:0."""
  assert methods.Send(methods.INCR, 1, 0x100, (7, 8)).encode() == [1 << 29 | 2 << 16 | 1 << 13 | 0x40, 7, 8]
  assert methods.Send(methods.NONINCR, 4, 0x1B4, (9,)).encode() == [3 << 29 | 1 << 16 | 4 << 13 | 0x6D, 9]
  assert methods.Send(methods.ONEINCR, 0, 8, (1, 2, 3)).encode() == [5 << 29 | 3 << 16 | 2, 1, 2, 3]
  assert methods.Send(methods.IMMD, 7, 0x3FFC, (0x1FFF,)).encode() == [4 << 29 | 0x1FFF << 16 | 7 << 13 | 0xFFF]
  assert [a for a, _ in methods.Send(methods.ONEINCR, 0, 8, (1, 2, 3)).writes()] == [8, 12, 12]
  assert [a for a, _ in methods.Send(methods.NONINCR, 0, 8, (1, 2, 3)).writes()] == [8, 8, 8]
  masks = [host.DMA_SET_SUBDEVICE_MASK(VALUE=5, OPCODE=1), host.DMA_STORE_SUBDEVICE_MASK(VALUE=0xFFF, OPCODE=2),
           host.DMA_USE_SUBDEVICE_MASK(OPCODE=3), host.DMA_ENDSEG(OPCODE=7)]
  assert [w.value() for w in masks] == [1 << 16 | 5 << 4, 2 << 16 | 0xFFF << 4, 3 << 16, 7 << 29]
  for word in masks: assert methods.decode([word.value()]) == (word, 1)
  assert methods.decode([0]) == (methods.NOP, 1)
  for wrong in (2 << 29, 6 << 29, 1 << 18, 1 << 29 | 1 << 12, 7 << 29 | 1, 1 << 29 | 2 << 16):
    with pytest.raises(DecodeError): methods.decode([wrong, 0])
  for send in (methods.Send(methods.INCR, 8, 0, ()), methods.Send(methods.INCR, 0, 0x4000, ()),
               methods.Send(methods.INCR, 0, 2, ()), methods.Send(methods.IMMD, 0, 0, (0x2000,)),
               methods.Send(methods.IMMD, 0, 0, ()), methods.Send(methods.INCR, 0, 0, (-1,)),
               methods.Send(methods.NONINCR, 0, 0, (0,) * 8192)):
    with pytest.raises(EncodeError): send.encode()


def test_methods_are_packed() -> None:
  words = methods.send(4, copy.OFFSET_IN_UPPER(UPPER=1), copy.OFFSET_IN_LOWER(VALUE=2), copy.OFFSET_OUT_UPPER(UPPER=3),
                       copy.LINE_LENGTH_IN(VALUE=16), copy.PITCH_IN(VALUE=1 << 20))
  assert [found for _, found in methods.walk(words)] == [
    methods.Send(methods.INCR, 4, 0x400, (1, 2, 3)), methods.Send(methods.IMMD, 4, 0x418, (16,)),
    methods.Send(methods.INCR, 4, 0x410, (1 << 20,))]
  with pytest.raises(EncodeError, match="LAUNCH_DMA"): methods.send(4, copy.LAUNCH_DMA(DATA_TRANSFER_TYPE=4))
  data = methods.repeated(1, compute.LOAD_INLINE_DATA, list(range(9000)))
  assert [len(s.data) for _, s in methods.walk(data) if isinstance(s, methods.Send)] == [8191, 809]
  inline = methods.array(1, compute.LOAD_INLINE_QMD_DATA, [5, 6], first=118)
  assert methods.decode(inline) == (methods.Send(methods.INCR, 1, 0x320 + 118 * 4, (5, 6)), 3)
  with pytest.raises(EncodeError): methods.array(1, compute.LOAD_INLINE_QMD_DATA, [5, 6], first=119)


def test_text_says_class_and_fields() -> None:
  words = [*methods.send(1, compute.SET_OBJECT(CLASS_ID=0xCBC0)),
           *methods.send(1, compute.SEND_PCAS_A(QMD_ADDRESS_SHIFTED8=0x1234)),
           *methods.array(1, compute.LOAD_INLINE_QMD_DATA, [5], first=2), 0,
           *methods.send(0, host.SEM_EXECUTE(OPERATION=host.SEM_EXECUTE_OPERATION.RELEASE)),
           *methods.Send(methods.INCR, 3, 0x200, (1,)).encode(), 6 << 29]
  assert methods.text(words, where=0x1000).splitlines() == [
    "0x001000  1 AMPERE_CHANNEL_GPFIFO_A.SET_OBJECT(NVCLASS=0xcbc0, ENGINE=0)",
    "0x001008  1 HOPPER_COMPUTE_A.SEND_PCAS_A(QMD_ADDRESS_SHIFTED8=0x1234)",
    "0x00100c  1 HOPPER_COMPUTE_A.LOAD_INLINE_QMD_DATA[2](V=5)",
    "0x001010    NOP",
    "0x001014  0 AMPERE_CHANNEL_GPFIFO_A.SEM_EXECUTE(OPERATION=RELEASE, ACQUIRE_SWITCH_TSG=DIS, RELEASE_WFI=DIS, "
    "PAYLOAD_SIZE=_32BIT, RELEASE_TIMESTAMP=DIS, REDUCTION=IMIN, REDUCTION_FORMAT=SIGNED)",
    "0x001018  3 0x0200(0x1)",
    "        pushbuffer dword 8: is no header of a method and no control word [c0000000]"]
  assert methods.method_text(compute, 0x11C, 1 << 31) != methods.method_text(compute, 0x3FF8, 1)
  with pytest.raises(Unsupported): methods.declared(0xA0C0)


@pytest.mark.parametrize("class_id", methods.CLASS_IDS, ids=hex)
def test_each_method_has_its_place(class_id: int) -> None:
  module = methods.declared(class_id)
  table = methods.by_address(module)
  rng = random.Random(class_id)
  for method in module.METHODS:
    assert table[method.OFFSET][0].OFFSET <= method.OFFSET
    value = method.fuzz(rng)
    ((_, found),) = methods.walk(methods.send(1, value))
    assert isinstance(found, methods.Send) and list(found.writes()) == [(method.OFFSET, value.value())]
    assert method.__name__ in methods.method_text(module, method.OFFSET, value.value())


# ---- QMD

@pytest.mark.parametrize(("class_id", "version"), ALL_QMDS)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(5), deadline=None)
def test_queue_meta_data_comes_back(class_id: int, version: tuple[int, int], seed: int) -> None:
  value = qmd.declared(class_id, version).fuzz(random.Random(seed))
  qmd.write(value, "QMD_MAJOR_VERSION", version[0])
  qmd.write(value, "QMD_MINOR_VERSION", version[1])
  words = qmd.encode(value)
  assert len(words) == (64 if version < (4, 0) else 96) and qmd.decode(class_id, words) == value
  assert qmd.decode(class_id, words).encode() == words
  assert type(value).__name__ in qmd.text(value)


WHOLE = ["PROGRAM_ADDRESS", "GRID_WIDTH", "GRID_HEIGHT", "GRID_DEPTH", "GRID_WIDTH_RESUME", "GRID_HEIGHT_RESUME",
         "GRID_DEPTH_RESUME", "QMD_MAJOR_VERSION", "QMD_MINOR_VERSION", "CTA_THREAD_DIMENSION0", "SHARED_MEMORY_SIZE",
         "REGISTER_COUNT", "BARRIER_COUNT", "SHADER_LOCAL_MEMORY_LOW_SIZE", "SHADER_LOCAL_MEMORY_HIGH_SIZE"]
INDEXED = ["RELEASE_SEMAPHORE_ADDR", "RELEASE_SEMAPHORE_PAYLOAD", "RELEASE_ENABLE", "RELEASE_STRUCTURE_SIZE",
           "RELEASE_MEMBAR_TYPE", "RELEASE_REDUCTION_ENABLE", "RELEASE_REDUCTION_OP", "RELEASE_REDUCTION_FORMAT",
           "RELEASE_TRAP_TYPE", "RELEASE_PAYLOAD64B", "CONSTANT_BUFFER_ADDR", "CONSTANT_BUFFER_SIZE",
           "CONSTANT_BUFFER_VALID", "CONSTANT_BUFFER_INVALIDATE", "DEPENDENT_QMD_POINTER", "DEPENDENT_QMD_ENABLE",
           "DEPENDENT_QMD_ACTION", "DEPENDENT_QMD_PREFETCH"]


@pytest.mark.parametrize(("class_id", "version"), ALL_QMDS)
def test_whole_values_by_one_name(class_id: int, version: tuple[int, int]) -> None:
  """What is written is read, by the same name in each version; each bit of it is a bit of the words, of its own."""
  names: list[tuple[str, int | None]] = [(n, None) for n in WHOLE] + [(n, i) for n in INDEXED for i in (0, 1)]
  used: dict[int, str] = {}
  for name, index in names:
    if not qmd.has(qmd.declared(class_id, version), name, index):
      if name.startswith("DEPENDENT"):
        assert version == (2, 3) or version < (4, 0) and (name, index) == ("DEPENDENT_QMD_POINTER", 1)
      else: assert version[0] == 2 and name in ("RELEASE_PAYLOAD64B", "RELEASE_TRAP_TYPE", "RELEASE_MEMBAR_TYPE")
      continue
    found = qmd.pieces(qmd.declared(class_id, version), name, index)
    low, top = found[0][1], found[-1][1] + found[-1][2]
    for bit in range(low, top):
      value: Any = qmd.declared(class_id, version)()
      qmd.write(value, name, 1 << bit, index)
      assert qmd.read(value, name, index) == 1 << bit
      at = next(i * 32 + w.bit_length() - 1 for i, w in enumerate(value.encode()) if w)
      assert used.setdefault(at, f"{name}{index}.{bit}") == f"{name}{index}.{bit}"
    for wrong in (1 << top, -1, *([1 << low - 1] if low else [])):
      with pytest.raises(EncodeError): qmd.write(qmd.declared(class_id, version)(), name, wrong, index)
  with pytest.raises(Unsupported, match="NO_SUCH"): qmd.pieces(qmd.declared(class_id, version), "NO_SUCH")


def test_versions_state_themselves() -> None:
  hopper = qmd.new(0xCBC0, (3, 0))
  assert qmd.version_of(type(qmd.decode(0xCBC0, qmd.encode(hopper)))) == (3, 0)
  qmd.write(hopper, "QMD_MAJOR_VERSION", 4)
  with pytest.raises(EncodeError, match=r"version 4\.0"): qmd.encode(hopper)
  with pytest.raises(DecodeError, match=r"no version of compute class 0xcbc0"): qmd.decode(0xCBC0, [0] * 96)
  with pytest.raises(DecodeError): qmd.decode(0xCBC0, qmd.encode(qmd.new(0xCBC0, (4, 0)))[:64])
  with pytest.raises(Unsupported, match=r"QMD version 5\.0"): qmd.declared(0xCBC0, (5, 0))
  with pytest.raises(Unsupported, match="compute class"): qmd.versions(0xA0C0)
  stray = qmd.encode(qmd.new(0xCBC0, (3, 0)))
  stray[14] |= 1 << 31
  with pytest.raises(DecodeError, match="undeclared"): qmd.decode(0xCBC0, stray)
