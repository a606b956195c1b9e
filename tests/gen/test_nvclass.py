"""The declarations of NVIDIA's classes: how a header is read, and laws of what was made from the vendor's."""
from __future__ import annotations

import importlib
import random
import re
from typing import Any

import pytest

from tests.strength import examples
from tinyhw.core.errors import DecodeError, EncodeError
from tinyhw.core.layout import Method, Packet
from tinyhw.tools.gen import emit, nvclass
from tinyhw.tools.gen.family import AUTOGEN

HEADER = """
#define SOME_ENGINE_A    0xAB12
#define NVAB12_START                                  0x0100
#define NVAB12_START_MODE                                1:0
#define NVAB12_START_MODE_OFF                     0x00000000
#define NVAB12_START_MODE_SLOW                    0x00000001
#define NVAB12_START_MODE__16                     0x00000002  // a comment
#define NVAB12_START_ENABLE                            31:31
#define NVAB12_START_ENABLE_FALSE                 0x00000000
#define NVAB12_START_ENABLE_TRUE                  0x00000001
#define NVAB12_START_AGAIN                               3:1
#define NVAB12_STOP                             (0x00000104)
#define NVAB12_DATA(i)                      (0x0200+(i)*8)
#define NVAB12_DATA_V                                   31:0
#define NVAB12_MORE(i)                      (0x0204+(i)*8)
#define NVAB12_MORE_V                                   31:0
#define NVAB12_AFTER                                  0x0220
#define NVAB12_WORD_LOW                                 15:0
"""


def made(text: str) -> dict[str, Any]:
  namespace: dict[str, Any] = {}
  exec(compile(text, "made", "exec"), namespace)
  return namespace


def test_a_header_is_read() -> None:
  rows = {b.name: b for b in nvclass.bodies(HEADER, "NVAB12_", ("WORD",))}
  assert {n: b.offset for n, b in rows.items()} == {"WORD": None, "START": 0x100, "STOP": 0x104, "DATA": 0x200,
                                                     "MORE": 0x204, "AFTER": 0x220}
  assert [(f.name, f.hi, f.lo) for f in rows["START"].fields] == [("MODE", 1, 0), ("ENABLE", 31, 31), ("AGAIN", 3, 1)]
  assert rows["START"].fields[0].values == {"OFF": 0, "SLOW": 1, "_16": 2}
  assert [nvclass.count(rows[n], list(rows.values())) for n in ("DATA", "MORE")] == [4, 4]
  text = "".join(nvclass.declared(b, nvclass.Names(list(rows)), "Method, offset=0x100" if b.offset else "Word")
                 for b in rows.values())
  names = made("from enum import IntEnum\nfrom tinyhw.core.layout import Method, Word, bits\n" + text)
  start = names["START"](MODE=names["START_MODE"].SLOW, ENABLE=1)
  assert start.value() == 0x80000001 and start.AGAIN == 0 and names["START"].decode(2).AGAIN == 1
  assert "MODE=SLOW" in repr(start) and "START_ENABLE" not in names and names["WORD"](LOW=7).value() == 7
  with pytest.raises(EncodeError, match="MODE"): names["START"](MODE=4).value()
  with pytest.raises(DecodeError, match="START"): names["START"].decode(1 << 16)


def test_fields_of_queue_meta_data_are_unrolled() -> None:
  rows = nvclass.queue_meta_data("""
#define NVAB12_QMDV09_00_FIRST                        MW(31:0)
#define NVAB12_QMDV09_00_VALID(i)             MW((40+(i)*4):(40+(i)*4))
#define NVAB12_QMDV09_00_KIND(i)              MW((42+(i)*4):(41+(i)*4))
#define NVAB12_QMDV09_00_KIND_NONE                  0x00000000
#define NVAB12_QMDV09_00_KIND_SOME                  0x00000001
#define NVAB12_QMDV09_00_LAST                        MW(53:52)
#define NVAB12_QMDV09_00_SAME(i)              MW((53+(i)*8):(52+(i)*8))
""", "NVAB12_")["V09_00"]
  names = made("from enum import IntEnum\nfrom tinyhw.core.layout import Packet, bits\n" +
               nvclass.meta_data_class("V09_00", rows, nvclass.Names(())))
  assert [(f.name, f.lo, f.width) for f in names["QMDV09_00"].FIELDS] == [
    ("FIRST", 0, 32), ("VALID_0", 40, 1), ("KIND_0", 41, 2), ("VALID_1", 44, 1), ("KIND_1", 45, 2), ("VALID_2", 48, 1),
    ("KIND_2", 49, 2), ("LAST", 52, 2)]
  assert "KIND_1=SOME" in repr(names["QMDV09_00"](KIND_1=1))


def modules(kind: type) -> list[Any]:
  return [importlib.import_module(f"tinyhw.autogen.{h.module}") for h in nvclass.HEADERS if isinstance(h, kind)]


def test_each_dword_is_one_method() -> None:
  for module in modules(nvclass.Header):
    places = [m.OFFSET + i * m.APART for m in module.METHODS for i in range(m.COPIES)]
    assert len(places) == len(set(places)) and all(p % 4 == 0 and p < nvclass.METHODS_END for p in places)
    assert f"{module.CLASS:x}" == module.__name__.rpartition("_")[2]


def test_methods_come_back() -> None:
  rng = random.Random(5)
  for module in modules(nvclass.Header):
    for method in module.METHODS:
      for _ in range(examples(1)):
        one: Method = method.fuzz(rng)
        assert method.decode(one.value()) == one


def test_queue_meta_data_comes_back() -> None:
  rng = random.Random(6)
  for module in modules(nvclass.MetaData):
    for version in module.VERSIONS:
      for _ in range(examples(3)):
        one: Packet = version.fuzz(rng)
        words = one.encode()
        assert len(words) == version.DWORDS in (64, 96) and version.decode(words) == one


def test_what_every_driver_knows() -> None:
  """Places that public drivers and documents agree upon."""
  from tinyhw.autogen import nv_c8b5, nv_c56f, nv_cbc0, nv_cbc0_qmd
  assert (nv_cbc0.NAME, nv_cbc0.CLASS) == ("HOPPER_COMPUTE_A", 0xCBC0) and nv_cbc0.SEND_PCAS_A.OFFSET == 0x2B4
  assert nv_c8b5.NAME == "HOPPER_DMA_COPY_A" and nv_c8b5.LAUNCH_DMA.OFFSET == 0x300
  launch = nv_c8b5.LAUNCH_DMA(DATA_TRANSFER_TYPE=2, SRC_MEMORY_LAYOUT=1, DST_MEMORY_LAYOUT=1, FLUSH_ENABLE=1)
  assert launch.value() == 0x186 and "DATA_TRANSFER_TYPE=NON_PIPELINED" in repr(launch)
  assert nv_c56f.DMA_INCR(OPCODE=1, COUNT=2, SUBCHANNEL=1, ADDRESS=0x2B4 >> 2).value() == 0x200220AD
  places = {f.name: f.lo for f in nv_cbc0_qmd.QMDV03_00.FIELDS}
  assert places["CTA_RASTER_WIDTH"] == 384 and places["CONSTANT_BUFFER_ADDR_LOWER_7"] == 1024 + 7 * 64


def test_what_an_earlier_class_says_is_imported_from_it() -> None:
  """No text of a class of NVIDIA's stands twice, and each module still has all of its methods."""
  found: dict[str, str] = {}
  for header in nvclass.HEADERS:
    text = (AUTOGEN / f"{header.module}.py").read_text()
    if "_qmd" in header.module or header.module == "nv_c56f": continue
    kind = "copy" if header.module.endswith("b5") else "compute"
    for part in re.findall(r"^(?:class \w+\(IntEnum\).*?)*class \w+\(Method.*?(?=^\S|\Z)", text, re.M | re.S):
      assert found.setdefault(kind + part, header.module) == header.module, part
    module = importlib.import_module(f"tinyhw.autogen.{header.module}")
    assert all(getattr(module, m.__name__) is m for m in module.METHODS)


def test_only_letter_for_letter_is_the_same() -> None:
  parts = {"A": "class A(Method, offset=0x0100):\n  V: int\n", "B": "class B_V(IntEnum):\n\n\nclass B(Method):\n"}
  old = ("nv_old", {"A": parts["A"], "B": "class B(Method): other"})
  lines, own = emit.shared(parts, [old, ("nv_later", parts)])
  assert lines == ["from tinyhw.autogen.nv_old import (", "  A,", ")",
                   "from tinyhw.autogen.nv_later import (", "  B, B_V,", ")"] and own == []
  assert emit.shared(parts, [("nv_old", {"A": parts["A"] + " "})]) == ([], list(parts.values()))
