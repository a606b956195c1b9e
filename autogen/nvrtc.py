"""nvrtc, which compiles CUDA C++ in a process: results and the signatures of its functions.

Generated; do not edit. Source:
  NVIDIA nvrtc 13.5, PyPI's nvidia-cuda-nvrtc 13.5.37, licence NVIDIA CUDA Toolkit EULA; names and numbers only
    include/nvrtc.h sha256 d70ac3bc5a2e07adbf7ce8ab64d4b5217c5818d600502a703b03b1858e339b72
Generator: tinyhw gen nvrtc

FUNCTIONS has a function's parameters as ctypes has them; all return an nvrtcResult.
"""
from __future__ import annotations

from ctypes import c_int32, c_size_t, c_uint32, c_void_p

NVRTC_SUCCESS = 0
NVRTC_ERROR_OUT_OF_MEMORY = 1
NVRTC_ERROR_PROGRAM_CREATION_FAILURE = 2
NVRTC_ERROR_INVALID_INPUT = 3
NVRTC_ERROR_INVALID_PROGRAM = 4
NVRTC_ERROR_INVALID_OPTION = 5
NVRTC_ERROR_COMPILATION = 6
NVRTC_ERROR_BUILTIN_OPERATION_FAILURE = 7
NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION = 8
NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION = 9
NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID = 0xa
NVRTC_ERROR_INTERNAL_ERROR = 0xb
NVRTC_ERROR_TIME_FILE_WRITE_FAILED = 0xc
NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED = 0xd
NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED = 0xe
NVRTC_ERROR_PCH_CREATE = 0xf
NVRTC_ERROR_CANCELLED = 0x10
NVRTC_ERROR_TIME_TRACE_FILE_WRITE_FAILED = 0x11
NVRTC_ERROR_BUSY = 0x12


RESULTS = {
  0: "NVRTC_SUCCESS",
  1: "NVRTC_ERROR_OUT_OF_MEMORY",
  2: "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
  3: "NVRTC_ERROR_INVALID_INPUT",
  4: "NVRTC_ERROR_INVALID_PROGRAM",
  5: "NVRTC_ERROR_INVALID_OPTION",
  6: "NVRTC_ERROR_COMPILATION",
  7: "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
  8: "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
  9: "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
  10: "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
  11: "NVRTC_ERROR_INTERNAL_ERROR",
  12: "NVRTC_ERROR_TIME_FILE_WRITE_FAILED",
  13: "NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED",
  14: "NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED",
  15: "NVRTC_ERROR_PCH_CREATE",
  16: "NVRTC_ERROR_CANCELLED",
  17: "NVRTC_ERROR_TIME_TRACE_FILE_WRITE_FAILED",
  18: "NVRTC_ERROR_BUSY",
}

FUNCTIONS: dict[str, tuple[type, ...]] = {
  "nvrtcAddNameExpression": (c_void_p, c_void_p,),
  "nvrtcCompileProgram": (c_void_p, c_int32, c_void_p,),
  "nvrtcCreateProgram": (c_void_p, c_void_p, c_void_p, c_int32, c_void_p, c_void_p,),
  "nvrtcDestroyProgram": (c_void_p,),
  "nvrtcGetBundledHeadersInfo": (c_void_p, c_void_p,),
  "nvrtcGetCUBIN": (c_void_p, c_void_p,),
  "nvrtcGetCUBINSize": (c_void_p, c_void_p,),
  "nvrtcGetLTOIR": (c_void_p, c_void_p,),
  "nvrtcGetLTOIRSize": (c_void_p, c_void_p,),
  "nvrtcGetLoweredName": (c_void_p, c_void_p, c_void_p,),
  "nvrtcGetNumSupportedArchs": (c_void_p,),
  "nvrtcGetOptiXIR": (c_void_p, c_void_p,),
  "nvrtcGetOptiXIRSize": (c_void_p, c_void_p,),
  "nvrtcGetPCHCreateStatus": (c_void_p,),
  "nvrtcGetPCHHeapSize": (c_void_p,),
  "nvrtcGetPCHHeapSizeRequired": (c_void_p, c_void_p,),
  "nvrtcGetPTX": (c_void_p, c_void_p,),
  "nvrtcGetPTXSize": (c_void_p, c_void_p,),
  "nvrtcGetProgramLog": (c_void_p, c_void_p,),
  "nvrtcGetProgramLogSize": (c_void_p, c_void_p,),
  "nvrtcGetSupportedArchs": (c_void_p,),
  "nvrtcGetTileIR": (c_void_p, c_void_p,),
  "nvrtcGetTileIRSize": (c_void_p, c_void_p,),
  "nvrtcInstallBundledHeaders": (c_void_p, c_uint32, c_void_p,),
  "nvrtcRemoveBundledHeaders": (c_void_p, c_void_p,),
  "nvrtcSetFlowCallback": (c_void_p, c_void_p, c_void_p,),
  "nvrtcSetPCHHeapSize": (c_size_t,),
  "nvrtcVersion": (c_void_p, c_void_p,),
}
