"""The generators on small inputs of our own: what they make, and the contradictions that they refuse."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from tinyhw.core import layout
from tinyhw.core.errors import LayoutError
from tinyhw.tools.gen import amdhsa, ctypes_types, emit, gc, kfd, kfd_sysfs, pm4, sdma, sq
from tinyhw.tools.gen.emit import FieldRow

PAL = """
typedef struct PM4_MEC_SAMPLE
{
    union { PM4_MEC_TYPE_3_HEADER header; uint32_t u32All; } ordinal1;
    union { union { struct { uint32_t mode : 4; uint32_t reserved1 : 28; };
                    struct { uint32_t reserved2 : 8; uint32_t extra : 2; uint32_t reserved3 : 22; } gfx11;
                    struct { uint32_t reserved4 : 30; uint32_t gone : 2; } gfx10; } bitfields;
            uint32_t u32All; } ordinal2;
    union { union { struct { uint32_t reserved1 : 2; uint32_t addr_lo : 30; }; } bitfields; uint32_t u32All; } ordinal3;
    union { uint32_t addr_hi; uint32_t u32All; } ordinal4;
} PM4_MEC_SAMPLE;
"""


def made(text: str) -> dict[str, Any]:
  """The namespace of generated lines."""
  space: dict[str, Any] = {
    "ctypes": ctypes,
    **{n: getattr(layout, n) for n in ("Packet", "Register", "Struct", "Union")},
    **{n: getattr(layout, n) for n in ("bits", "rest", "u32", "u64")},
  }
  exec("from __future__ import annotations\nfrom typing import ClassVar\n" + text, space)
  return space


def test_pm4_packet() -> None:
  (row,) = pm4.packet_rows(pm4.GFX11, PAL, {"SAMPLE": 0x99}, [])
  row.base = "Packet"
  sample = made(emit.packet(row))["SAMPLE"]
  assert [(f.name, f.lo, f.width, f.shift) for f in sample.FIELDS] == [
    ("mode", 0, 4, 0),
    ("extra", 8, 2, 0),
    ("addr", 34, 62, 2),
  ]
  assert sample(mode=3, extra=1, addr=0x1_0000_0010).encode() == [0x103, 0x10, 1] and sample.OP == 0x99


def test_pm4_contradictions() -> None:
  with pytest.raises(LayoutError, match="31 bits"):
    pm4.packet_rows(pm4.GFX11, PAL.replace("reserved1 : 28", "reserved1 : 27"), {"SAMPLE": 1}, [])
  two = PAL.replace("union { uint32_t addr_hi;", "union { uint32_t addr_hi; uint32_t other;")
  with pytest.raises(LayoutError, match="several readings"):
    pm4.packet_rows(pm4.GFX11, two, {"SAMPLE": 1}, [])
  with pytest.raises(LayoutError, match="0x99 in PAL, 0x98 in the kernel"):
    pm4.check_against_kernel({"SAMPLE": 0x99}, "#define\tPACKET3_SAMPLE\t\t0x98\n", {"SAMPLE"})
  rows = pm4.packet_rows(pm4.GFX11, PAL, {"SAMPLE": 1}, [])
  assert pm4.fields_against_kernel(rows, "#define SAMPLE_MODE(x) ((x) << 0)\n") == 1
  with pytest.raises(LayoutError, match="bit 0 in PAL, 4 in the kernel"):
    pm4.fields_against_kernel(rows, "#define SAMPLE_MODE(x) ((x) << 4)\n")


def test_opcodes_of_other_generations_are_left_out() -> None:
  text = "IT_A = 0x10,\nIT_B__GFX11 = 0x11,\nIT_C__GFX101 = 0x12,\nIT_D__GFX103PLUS = 0x13,\n"
  assert pm4.opcodes(text, pm4.GFX11.suffixes) == {"A": 0x10, "B": 0x11, "D": 0x13}


def test_sdma_parts_join() -> None:
  rows = [
    FieldRow("op", 0, 7, 0),
    FieldRow("base_va_31_7", 1, 31, 7),
    FieldRow("base_va_47_32", 2, 15, 0),
    FieldRow("control_15_0", 2, 31, 16),
    FieldRow("control_18_16", 3, 2, 0),
    FieldRow("addr_31_0", 4, 31, 0),
    FieldRow("addr_63_32", 6, 31, 0),
  ]
  joined = {r.name: (r.dword, r.hi, r.lo, r.shift) for r in sdma.join(rows)}
  assert joined["base_va"] == (1, 47, 7, 7) and joined["control"] == (2, 34, 16, 0)
  assert "addr_31_0" in joined and "addr_63_32" in joined  # their dwords do not follow each other


def test_register_masks_must_be_whole() -> None:
  good = "#define CP_HQD_X__A__SHIFT 0x4\n#define CP_HQD_X__A_MASK 0x000000F0L\n"
  assert gc.fields(good) == {"CP_HQD_X": [FieldRow("A", 0, 7, 4)]}
  with pytest.raises(LayoutError, match="differ"):
    gc.fields(good.replace("F0L", "50L"))
  with pytest.raises(LayoutError, match="in PAL"):
    gc.witness({"CP_HQD_X": 5}, "constexpr unsigned int mmCP_HQD_X = 0x6;", False)


def test_llvm_fields_by_generation() -> None:
  rows = ("(A, 0, 6)", "_GFX6_GFX11(B, 6, 1)", "_GFX12_PLUS(C, 6, 1)")
  text = "".join(f"  COMPUTE_PGM_RSRC1{row},\n" for row in rows)
  names = [
    [f.name for f in made(amdhsa.register(text, "COMPUTE_PGM_RSRC1", g))[f"COMPUTE_PGM_RSRC1_GFX{g}"].FIELDS]
    for g in (11, 12)
  ]
  assert names == [["A", "B"], ["A", "C"]]


def test_registers_of_a_wave() -> None:
  text = ("#define SQ_WAVE_X__A__SHIFT 0x4\n#define SQ_WAVE_X__A_B_MASK   0x000000F0L\n"
          "#define COMPUTE_PGM_RSRC1__C_MASK 0x80000000L\n#define SQ_OTHER__D_MASK 0x1L\n")
  assert sq.masks(text) == {"SQ_WAVE_X": {"A_B": (4, 4)}, "COMPUTE_PGM_RSRC1": {"C": (31, 1)}}
  with pytest.raises(LayoutError, match=r"SQ_WAVE_X\.A_B: mask 0x00000050 has a hole"):
    sq.masks(text.replace("F0L", "50L"))


def test_buffer_resources() -> None:
  dwords = {"SQ_BUF_RSRC_WORD0": {"BASE": (0, 32)}, "SQ_BUF_RSRC_WORD1": {"BASE_HI": (0, 16), "STRIDE": (16, 14)}}
  assert sq.words(dwords) == {"base": (0, 48), "stride": (48, 14)}
  with pytest.raises(LayoutError, match="do not meet"):
    sq.words({**dwords, "SQ_BUF_RSRC_WORD1": {"BASE_HI": (1, 16)}})
  text = ("union sq_buf_rsrc_t {\n struct { uint64_t base : 48; uint64_t : 16; uint64_t records : 64; };\n"
          " struct { uint64_t : 62; uint64_t swizzle : 2; uint64_t : 64; } later;\n"
          " struct { uint64_t : 63; uint64_t swizzle : 1; uint64_t : 64; } earlier;\n};\n")
  assert sq.union(text, "later") == {"base": (0, 48), "records": (64, 64), "swizzle": (62, 2)}
  with pytest.raises(LayoutError, match="127 bits instead of 128"):
    sq.union(text.replace(": 62", ": 61"), "later")


def test_ioctl_rows() -> None:
  text = "#define AMDKFD_IOC_A \\\n\tAMDKFD_IOWR(0x01, struct a_args)\n#define AMDKFD_IOC_B AMDKFD_IO(0x02)\n"
  assert kfd.ioctl_rows(text, "AMDKFD_IOC_") == [("AMDKFD_IOC_A", "a_args"), ("AMDKFD_IOC_B", None)]
  drm = "#define DRM_IOCTL_AMDGPU_X DRM_IOWR(DRM_COMMAND_BASE + DRM_AMDGPU_X, union x)\n"
  assert kfd.ioctl_rows(drm, "DRM_IOCTL_AMDGPU_") == [("DRM_IOCTL_AMDGPU_X", "x")]


def test_topology_functions() -> None:
  text = ('static ssize_t mem_show(struct kobject *k)\n{\n\tsysfs_show_32bit_prop(buffer, offs, "a", x);\n'
          '\tsysfs_show_64bit_prop(buffer, offs,\n\t\t"b", y);\n}\n')
  assert kfd_sysfs.properties(text, "mem_show") == [("a", 32), ("b", 64)]
  with pytest.raises(LayoutError):
    kfd_sysfs.properties(text, "node_show")


class Inner(ctypes.Union):
  _fields_ = [("x", ctypes.c_uint32), ("y", ctypes.c_uint64)]


class Natural(ctypes.Structure):
  _pack_ = 1
  _anonymous_ = ("_0",)
  _fields_ = [
    ("a", ctypes.c_uint8),
    ("PADDING_0", ctypes.c_uint8 * 7),
    ("_0", Inner),
    ("in", ctypes.c_uint32 * 2),
    ("pointer", ctypes.POINTER(ctypes.c_int)),
  ]


class Packed(ctypes.Structure):
  _pack_ = 1
  _fields_ = [("a", ctypes.c_uint8), ("b", ctypes.c_uint32), ("c", ctypes.c_char * 3)]


def test_structs_keep_their_layout() -> None:
  """Padding goes where natural alignment gives it; a packed struct stays packed."""
  types = ctypes_types.Types([("Inner", Inner), ("Natural", Natural), ("Packed", Packed)])
  text = "\n".join(ctypes_types.Writer(types).text())
  assert text.count("_pack_") == 1 and "PADDING" not in text
  space = made(text)
  for cls in (Inner, Natural, Packed):
    again = space[cls.__name__]
    assert ctypes.sizeof(again) == ctypes.sizeof(cls)
    for row in cls._fields_:
      name = {"in": "in_"}.get(row[0], row[0])
      if not row[0].startswith("PADDING"):
        assert getattr(again, name).offset == getattr(cls, row[0]).offset
  value = space["Natural"](y=5, pointer=1 << 40)
  assert value.x == 5 and value.pointer == 1 << 40
