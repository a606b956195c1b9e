"""AMDGPU code objects (versions 4 to 6): kernels, their arguments, and the memory image for the address of loading.

Takes what a linker makes (ET_DYN: clang with lld, comgr) and what a compiler makes (ET_REL: llvmlite's objects), whose
sections it lays out and whose relocations it applies itself. The metadata's keys are those of LLVM's AMDGPUUsage, "Code
Object Metadata".
"""
from tinyhw.wire.codeobject.identity import BUNDLE, COMPRESSED, GENERIC, bundled, unbundled
from tinyhw.wire.codeobject.model import PRELOAD_PROLOGUE, Argument, CodeObject, Kernel, place, sources, with_places
from tinyhw.wire.codeobject.reader import load
from tinyhw.wire.codeobject.shared import shared

__all__ = ["BUNDLE", "COMPRESSED", "GENERIC", "PRELOAD_PROLOGUE", "Argument", "CodeObject", "Kernel", "bundled", "load",
           "place", "shared", "sources", "unbundled", "with_places"]
