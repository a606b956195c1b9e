"""amdgpu's DRM ioctls and info structs, from the kernel's uapi header."""

from __future__ import annotations

from tinyhw.tools.gen import ctypes_types, gcc
from tinyhw.tools.gen.family import Family
from tinyhw.tools.gen.kfd import DRM, ioctl_rows, ioctl_table, usable_headers, value_lines
from tinyhw.tools.gen.linux import LINUX
from tinyhw.tools.gen.sources import Sources, head

INCLUDE = "#include <drm/amdgpu_drm.h>\n"


def generate(sources: Sources) -> str:
  files = [sources.find(n, wanted=DRM) for n in DRM]
  header = files[-1]
  with usable_headers(*files) as (folder, flags):
    types = ctypes_types.collect(ctypes_types.read([folder / "drm/amdgpu_drm.h"], flags), header.text)
    values = gcc.macro_values(gcc.macro_names(header.text), INCLUDE, flags)
  out = [
    head("The ioctls of amdgpu's DRM nodes and their structs.", [(LINUX, f) for f in files], "tinyhw gen amdgpu_drm"),
    "import ctypes",
    "",
    "from tinyhw.core.ioctl import Ioctl",
    "from tinyhw.core.layout import Struct, Union",
    "",
  ]
  out += value_lines(values)
  out += ctypes_types.enum_lines(types.enums, values)
  out += [
    "",
    *ctypes_types.Writer(types).text(),
    "",
    *ioctl_table(ioctl_rows(header.text, "DRM_IOCTL_AMDGPU_"), values),
  ]
  return "\n".join(out) + "\n"


FAMILY = Family("amdgpu_drm", "amdgpu_drm", "ioctls and structs of amdgpu's DRM nodes", DRM, generate)
