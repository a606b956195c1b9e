"""The functions of NVIDIA's linker by the names that a program's linker sees.

Generated; do not edit. Source:
  NVIDIA nvJitLink 13.0 13.0.88, licence NVIDIA CUDA Toolkit EULA; names and numbers only
    include/nvJitLink.h sha256 97d833dbfb3b17b1fbd76bbed72caf1eb4a638b40c39720fe2bfa5f5238bab98
Generator: tinyhw gen nvjitlink

The header's functions call these, which have the version in their names.
"""
from __future__ import annotations

NVJITLINK_ERROR_INTERNAL = 6

FUNCTIONS: tuple[str, ...] = (
  "__nvJitLinkAddData_13_0",
  "__nvJitLinkAddFile_13_0",
  "__nvJitLinkComplete_13_0",
  "__nvJitLinkCreate_13_0",
  "__nvJitLinkDestroy_13_0",
  "__nvJitLinkGetErrorLogSize_13_0",
  "__nvJitLinkGetErrorLog_13_0",
  "__nvJitLinkGetInfoLogSize_13_0",
  "__nvJitLinkGetInfoLog_13_0",
  "__nvJitLinkGetLinkedCubinSize_13_0",
  "__nvJitLinkGetLinkedCubin_13_0",
  "__nvJitLinkGetLinkedPtxSize_13_0",
  "__nvJitLinkGetLinkedPtx_13_0",
)
