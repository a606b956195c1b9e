"""Renderers by name: `llvm`, `c`, `opencl`, `amd:gfx1201`, `ptx:sm_90` ... For who wants programs and no device."""
from __future__ import annotations

import os
from collections.abc import Callable

from tinyhw.arch import decoded
from tinyhw.compile.render.base import Renderer
from tinyhw.compile.render.nvidia import Assembler
from tinyhw.core.errors import InvalidArgument


def _llvm(processor: str) -> Renderer:
  from tinyhw.compile.render.host import HostRenderer
  return HostRenderer()


def _c(processor: str) -> Renderer:
  from tinyhw.compile.render.c import CRenderer, compiler
  return CRenderer(compiler())


def _uops(processor: str) -> Renderer:
  from tinyhw.compile.render.uops import UOpRenderer
  return UOpRenderer()


def _opencl(processor: str) -> Renderer:
  from tinyhw.compile.render.opencl import OpenCLRenderer
  return OpenCLRenderer()


def _amd(processor: str) -> Renderer:
  from tinyhw.compile.render.amdgcn import AMDGCNRenderer
  return AMDGCNRenderer(decoded(processor or "gfx1100"))


def _hip(processor: str) -> Renderer:
  from tinyhw.compile.render.hip import HIPRenderer
  return HIPRenderer(decoded(processor or "gfx1100"))


def _cuda(processor: str) -> Renderer:
  from tinyhw.compile.render.cuda import CUDARenderer
  return CUDARenderer(processor or "sm_80")


def _metal(processor: str) -> Renderer:
  from tinyhw.compile.render.metal import MetalRenderer
  return MetalRenderer()


def _wgsl(processor: str) -> Renderer:
  from tinyhw.compile.render.wgsl import WGSLRenderer
  return WGSLRenderer()


def _nvptx(processor: str) -> Renderer:
  from tinyhw.compile.render.nvptx import NVPTXRenderer
  return NVPTXRenderer(processor or "sm_80")


def _ptx(processor: str) -> Renderer:
  from tinyhw.compile.render.ptx import PTXRenderer
  return PTXRenderer(processor or "sm_80")


TARGETS: dict[str, Callable[[str], Renderer]] = {"llvm": _llvm, "c": _c, "uops": _uops, "opencl": _opencl, "amd": _amd,
                                                 "hip": _hip, "cuda": _cuda, "ptx": _ptx, "nvptx": _nvptx,
                                                 "metal": _metal, "wgsl": _wgsl}
GPUS = frozenset({"amd", "hip", "cuda", "ptx", "nvptx"})       # kinds with processors


def named(text: str, where: str | None = None) -> Renderer:
  """The renderer of a name; GPUs' processors stand behind a colon. Raises InvalidArgument that lists the names."""
  kind, _, processor = text.partition(":")
  if (make := TARGETS.get(kind)) is None or processor and kind not in GPUS:
    raise InvalidArgument(f"no target is called {text!r}", where=where, hint=f"there are {', '.join(TARGETS)}")
  return make(processor)


def for_nvidia(capability: str, assembler: Assembler | None = None) -> Renderer:
  """The renderer of a device of NVIDIA's, as TINYHW_PTX says."""
  said = os.environ.get("TINYHW_PTX") or "own"
  if said == "own":
    from tinyhw.compile.render.ptx import PTXRenderer
    return PTXRenderer(capability, assembler)
  if said == "llvm":
    from tinyhw.compile.render.nvptx import NVPTXRenderer
    return NVPTXRenderer(capability, assembler)
  if said == "cuda":
    from tinyhw.compile.render.cuda import CUDARenderer
    return CUDARenderer(capability, assembler)
  raise InvalidArgument(f"{said!r} writes no PTX", where="TINYHW_PTX", hint="own, llvm or cuda")
