"""nvJitLink, which links PTX and cubins in a process: results, inputs and signatures.

Generated; do not edit. Source:
  NVIDIA nvJitLink 13.5, PyPI's nvidia-nvjitlink 13.5.37, licence NVIDIA CUDA Toolkit EULA; names and numbers only
    include/nvJitLink.h sha256 3726aae592e0a91c53f826009da53a8bafb16dffc413884803e600630f347e72
Generator: tinyhw gen nvjitlink

FUNCTIONS has a function's parameters as ctypes has them; all return an nvJitLinkResult. The library exports each with
the version that a program was made for behind its name (__nvJitLinkCreate_13_5), but for nvJitLinkVersion. VERSION is
the header's own.
"""
from __future__ import annotations

from ctypes import c_int32, c_size_t, c_uint32, c_void_p

NVJITLINK_SUCCESS = 0
NVJITLINK_ERROR_UNRECOGNIZED_OPTION = 1
NVJITLINK_ERROR_MISSING_ARCH = 2
NVJITLINK_ERROR_INVALID_INPUT = 3
NVJITLINK_ERROR_PTX_COMPILE = 4
NVJITLINK_ERROR_NVVM_COMPILE = 5
NVJITLINK_ERROR_INTERNAL = 6
NVJITLINK_ERROR_THREADPOOL = 7
NVJITLINK_ERROR_UNRECOGNIZED_INPUT = 8
NVJITLINK_ERROR_FINALIZE = 9
NVJITLINK_ERROR_NULL_INPUT = 0xa
NVJITLINK_ERROR_INCOMPATIBLE_OPTIONS = 0xb
NVJITLINK_ERROR_INCORRECT_INPUT_TYPE = 0xc
NVJITLINK_ERROR_ARCH_MISMATCH = 0xd
NVJITLINK_ERROR_OUTDATED_LIBRARY = 0xe
NVJITLINK_ERROR_MISSING_FATBIN = 0xf
NVJITLINK_ERROR_UNRECOGNIZED_ARCH = 0x10
NVJITLINK_ERROR_UNSUPPORTED_ARCH = 0x11
NVJITLINK_ERROR_LTO_NOT_ENABLED = 0x12
NVJITLINK_INPUT_NONE = 0
NVJITLINK_INPUT_CUBIN = 1
NVJITLINK_INPUT_PTX = 2
NVJITLINK_INPUT_LTOIR = 3
NVJITLINK_INPUT_FATBIN = 4
NVJITLINK_INPUT_OBJECT = 5
NVJITLINK_INPUT_LIBRARY = 6
NVJITLINK_INPUT_INDEX = 7
NVJITLINK_INPUT_ANY = 0xa

VERSION = (13, 5)

RESULTS = {
  0: "NVJITLINK_SUCCESS",
  1: "NVJITLINK_ERROR_UNRECOGNIZED_OPTION",
  2: "NVJITLINK_ERROR_MISSING_ARCH",
  3: "NVJITLINK_ERROR_INVALID_INPUT",
  4: "NVJITLINK_ERROR_PTX_COMPILE",
  5: "NVJITLINK_ERROR_NVVM_COMPILE",
  6: "NVJITLINK_ERROR_INTERNAL",
  7: "NVJITLINK_ERROR_THREADPOOL",
  8: "NVJITLINK_ERROR_UNRECOGNIZED_INPUT",
  9: "NVJITLINK_ERROR_FINALIZE",
  10: "NVJITLINK_ERROR_NULL_INPUT",
  11: "NVJITLINK_ERROR_INCOMPATIBLE_OPTIONS",
  12: "NVJITLINK_ERROR_INCORRECT_INPUT_TYPE",
  13: "NVJITLINK_ERROR_ARCH_MISMATCH",
  14: "NVJITLINK_ERROR_OUTDATED_LIBRARY",
  15: "NVJITLINK_ERROR_MISSING_FATBIN",
  16: "NVJITLINK_ERROR_UNRECOGNIZED_ARCH",
  17: "NVJITLINK_ERROR_UNSUPPORTED_ARCH",
  18: "NVJITLINK_ERROR_LTO_NOT_ENABLED",
}

FUNCTIONS: dict[str, tuple[type, ...]] = {
  "nvJitLinkAddData": (c_void_p, c_int32, c_void_p, c_size_t, c_void_p,),
  "nvJitLinkAddFile": (c_void_p, c_int32, c_void_p,),
  "nvJitLinkComplete": (c_void_p,),
  "nvJitLinkCreate": (c_void_p, c_uint32, c_void_p,),
  "nvJitLinkDestroy": (c_void_p,),
  "nvJitLinkGetErrorLog": (c_void_p, c_void_p,),
  "nvJitLinkGetErrorLogSize": (c_void_p, c_void_p,),
  "nvJitLinkGetInfoLog": (c_void_p, c_void_p,),
  "nvJitLinkGetInfoLogSize": (c_void_p, c_void_p,),
  "nvJitLinkGetLinkedCubin": (c_void_p, c_void_p,),
  "nvJitLinkGetLinkedCubinSize": (c_void_p, c_void_p,),
  "nvJitLinkGetLinkedLTOIR": (c_void_p, c_void_p,),
  "nvJitLinkGetLinkedLTOIRSize": (c_void_p, c_void_p,),
  "nvJitLinkGetLinkedPtx": (c_void_p, c_void_p,),
  "nvJitLinkGetLinkedPtxSize": (c_void_p, c_void_p,),
  "nvJitLinkVersion": (c_void_p, c_void_p,),
}
