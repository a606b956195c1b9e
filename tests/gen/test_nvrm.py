"""The facts of RM and UVM: how headers are read, on inputs of our own, and laws of what was made from the vendor's."""
from __future__ import annotations

import ctypes

import pytest

from tinyhw.autogen import nv_rm, nv_rm_alloc, nv_rm_chips, nv_rm_control, nv_rm_status, nv_uvm
from tinyhw.core.errors import LayoutError
from tinyhw.core.ioctl import split
from tinyhw.tools.gen import ctypes_types, nvrm

ENTRIES = """
RS_ENTRY(
    /* External Class */ ONE_CLASS,
    /* Internal Class */ Internal,
    /* Multi-Instance */ NV_TRUE,
    /* Parents        */ RS_LIST(classId(Device), classId(Subdevice)),
    /* Parameters     */ RS_REQUIRED(ONE_PARAMS),
    /* Priority       */ RS_FREE_PRIORITY_DEFAULT,
    /* Flags          */ RS_FLAGS_ALLOC_NON_PRIVILEGED | RS_FLAGS_OTHER,
    /* Rights         */ RS_ACCESS_NONE
)
RS_ENTRY(
    ROOT, Client, NV_FALSE, RS_ROOT_OBJECT, RS_OPTIONAL(NvHandle), P, RS_FLAGS_ALLOC_PRIVILEGED, RS_ACCESS_NONE
)
"""
LISTS = """
const NvU32 *
gpuGetNoEngClassList_GX100(OBJGPU *pGpu, NvU32 *pNum)
{
    static const NvU32 list[] = {
        PLAIN_CLASS,
    };
    return list;
}
const CLASSDESCRIPTOR *
gpuGetEngClassDescriptorList_GX100(OBJGPU *pGpu, NvU32 *pNum)
{
    static const CLASSDESCRIPTOR list[] = {
        { A_COPY, ENG_CE(0) },
        { A_COPY, ENG_CE(1) },
        { A_GPU, ENG_GPU },
    };
}
"""


def test_the_resource_list_is_read() -> None:
  one, root = nvrm.resources(ENTRIES)
  assert one == nvrm.Resource("ONE_CLASS", "Internal", True, ("Device", "Subdevice"), "ONE_PARAMS", True, False)
  assert (root.parents, root.parameters, root.required, root.privileged) == ((), "NvHandle", False, True)
  assert nvrm.arguments("a, f(b, c), d | e") == ["a", "f(b, c)", "d | e"]


def test_lists_of_chips_are_read() -> None:
  assert nvrm.chip_lists(LISTS) == {"GX100": [("PLAIN_CLASS", ""), ("A_COPY", "CE(0)"), ("A_COPY", "CE(1)"),
                                              ("A_GPU", "GPU")]}


def test_ranges_and_calls() -> None:
  text = "#define A_BITS 7:4\n#define A_CAP 0:0x10 // a capability\n#define B_BITS (31:31)\n#define A_VALUE 3\n"
  assert nvrm.ranges(text, ("A_", "B_")) == {"A_BITS": (7, 4), "A_CAP": (0, 16), "B_BITS": (31, 31)}
  calls = ("#define UVM_ONE UVM_IOCTL_BASE(1)\ntypedef struct {} UVM_ONE_PARAMS;\n#define UVM_TWO 0x30000002\n"
           "#define UVM_REGION_SET_BACKING UVM_IOCTL_BASE(21)\n")
  assert nvrm.uvm_calls(calls) == {"UVM_ONE": "UVM_ONE_PARAMS", "UVM_TWO": ""}
  commands = ('#define NV1234_CTRL_CMD_X (0x12340101) /* finn: Evaluated from "(FINN_A << 8) | NV1234_CTRL_X_PARAMS'
              '_MESSAGE_ID" */\n'
              '#define NV1234_CTRL_Y (0x12340102U) /* finn: Evaluated from "((FINN_A << 8) | 0x2)" */\n')
  assert [(r[0], r[3]) for r in nvrm.COMMAND.findall(commands)] == [
    ("NV1234_CTRL_CMD_X", "NV1234_CTRL_X_PARAMS"), ("NV1234_CTRL_Y", "")]


def test_only_what_is_asked_for_and_its_parts() -> None:
  inner = type("Inner", (ctypes.Structure,), {"_fields_": [("a", ctypes.c_uint32)]})
  outer = type("Outer", (ctypes.Structure,), {"_fields_": [("rows", inner * 3)]})
  types = ctypes_types.Types([("Inner", inner), ("Outer", outer), ("Other", type("O", (ctypes.Structure,), {
    "_fields_": []}))])
  assert [n for n, _ in nvrm.chosen(types, ["Outer"], "here").aggregates] == ["Inner", "Outer"]
  with pytest.raises(LayoutError, match="the headers declare no Missing"): nvrm.chosen(types, ["Missing"], "here")


def test_requests_hold_the_size_of_their_arguments() -> None:
  for number, call in nv_rm.IOCTLS.items():
    assert call.struct is not None
    parts, copies = split(number), 32 if call.name == "NV_ESC_CARD_INFO" else 1
    assert (parts.direction, chr(parts.group), parts.size) == (3, "F", copies * ctypes.sizeof(call.struct)), call.name
    assert parts.number == getattr(nv_rm, call.name)


def test_tables_agree_with_each_other() -> None:
  for class_id, struct in nv_rm_alloc.PARAMETERS.items():
    assert nv_rm_chips.RESOURCES[class_id].parameters == struct.__name__
  for chip, rows in nv_rm_chips.CHIPS.items():
    assert len(rows) > 90 and {0xA06C, 0x90F1, 0x9067} <= {c for c, _ in rows}, chip
  for command, call in nv_rm_control.CONTROLS.items():
    assert getattr(nv_rm_control, call.name) == command and command >> 16 in {
      0, 0x80, 0x2080, 0x906F, 0xA06F, 0xA06C, 0xC36F, 0x90F1, 0x41, 0x83DE}
  assert all(hasattr(call.struct, "rmStatus") for call in nv_uvm.IOCTLS.values() if call.struct is not None)
  assert nv_rm_status.STATUS[nv_rm_status.NV_OK] == ("NV_OK", "Success")
  assert nv_rm_status.ERRORS[31].endswith("MMU_ERR_FLT")
  assert not [n for n in nv_rm_control.CONTROLS.values() if "PERF" in n.name or "CLK" in n.name]
