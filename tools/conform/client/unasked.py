"""What known clients use and no case asks, and why. Reports have these rows beside those that are asked."""
from __future__ import annotations

from typing import Final

_FRONT: Final = "a register or microcode of the graphics front end, which the header names and does not describe"
_CARD: Final = "tells what this one card is (capabilities, ECC, bus): no header fixes what it has to say"
_PARAMETERS: Final = "an object whose parameters no recording has"
UNNAMED: Final = "no public header declares this command or its parameters"

# By the name of a class and its method, of a control command, or of a class of RM's.
NV: Final[dict[str, str]] = {
  **{f"LOAD_MME_{n}": _FRONT for n in ("INSTRUCTION_RAM", "INSTRUCTION_RAM_POINTER", "START_ADDRESS_RAM",
                                       "START_ADDRESS_RAM_POINTER")},
  **{n: _FRONT for n in ("SET_CWD_REF_COUNTER", "SET_FALCON04", "SET_MME_SHADOW_SCRATCH", "SET_RESERVED_SW_METHOD07",
                         "SET_TEXTURE_HEADER_VERSION", "SET_VALID_SPAN_OVERFLOW_AREA_A",
                         "SET_VALID_SPAN_OVERFLOW_AREA_B", "SET_VALID_SPAN_OVERFLOW_AREA_C")},
  **{n: _CARD for n in (
    "NV0000_CTRL_CMD_GPU_GET_MEMOP_ENABLE", "NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION",
    "NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_MATRIX", "NV0080_CTRL_CMD_FB_GET_CAPS_V2", "NV0080_CTRL_CMD_HOST_GET_CAPS_V2",
    "NV0080_CTRL_CMD_GPU_GET_VIRTUALIZATION_MODE", "NV2080_CTRL_CMD_BUS_GET_INFO_V2",
    "NV2080_CTRL_CMD_BUS_GET_PCI_BAR_INFO", "NV2080_CTRL_CMD_CE_GET_ALL_CAPS",
    "NV2080_CTRL_CMD_GPU_GET_COMPUTE_POLICY_CONFIG", "NV2080_CTRL_CMD_GPU_QUERY_ECC_STATUS",
    "NV2080_CTRL_CMD_GR_GET_CAPS_V2", "NV2080_CTRL_CMD_GR_GET_CTX_BUFFER_SIZE")},
  "NV0000_CTRL_CMD_CLIENT_SET_INHERITED_SHARE_POLICY": "is about other clients of the same process",
  "NV0080_CTRL_CMD_FIFO_GET_CHANNELLIST": "numbers that the driver gives channels as it likes",
  "NV83DE_CTRL_CMD_DEBUG_SET_EXCEPTION_MASK": "of a debugger's session, which no case opens",
  **{n: _PARAMETERS for n in ("GF100_SUBDEVICE_MASTER", "GT200_DEBUGGER", "NV2081_BINAPI", "NV50_MEMORY_VIRTUAL",
                              "NV50_THIRD_PARTY_P2P", "NV_CONFIDENTIAL_COMPUTE", "RM_USER_SHARED_DATA")}}
