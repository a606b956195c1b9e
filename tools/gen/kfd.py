"""KFD ioctls and their structs, from the kernel's uapi header."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tinyhw.tools.gen import ctypes_types, gcc
from tinyhw.tools.gen.family import Family, corrected
from tinyhw.tools.gen.linux import LINUX
from tinyhw.tools.gen.sources import SourceFile, Sources, head

IOCTL = "include/uapi/linux/kfd_ioctl.h"
SYSFS = "include/uapi/linux/kfd_sysfs.h"
DRM = ("include/uapi/drm/drm.h", "include/uapi/drm/drm_mode.h", "include/uapi/drm/amdgpu_drm.h")


@contextmanager
def usable_headers(*files: SourceFile) -> Iterator[tuple[Path, list[str]]]:
  """A folder with these uapi headers, made fit for user programs as the kernel's install does, and its flags."""
  with tempfile.TemporaryDirectory(prefix="tinyhw-gen-") as folder:
    for f in files:
      path = Path(folder) / f.name.removeprefix("include/uapi/")
      path.parent.mkdir(parents=True, exist_ok=True)
      text = corrected(f.text, "kfd", f.name.rpartition("/")[2])
      path.write_text(re.sub(r"\b__user\b|^#include <linux/compiler_types\.h>$", "", text, flags=re.M))
    yield Path(folder), [f"-I{folder}"]


def ioctl_rows(text: str, prefix: str) -> list[tuple[str, str | None]]:
  """Name and argument struct of each request that a header defines through _IO* macros."""
  flat = text.replace("\\\n", " ")
  rows = re.findall(
    rf"^#define\s+({prefix}\w+)\s+\w+\(\s*[^(),]+(?:\+\s*\w+\s*)?(?:,\s*(?:struct|union)\s+(\w+)\s*)?\)", flat, re.M
  )
  return [(name, struct or None) for name, struct in rows]


def ioctl_table(rows: list[tuple[str, str | None]], values: dict[str, int]) -> list[str]:
  out = ["IOCTLS: dict[int, Ioctl] = {  # by request number"]
  out += [f'  {name}: Ioctl("{name}", {struct}),' for name, struct in rows if name in values]
  return [*out, "}"]


def value_lines(values: dict[str, int]) -> list[str]:
  return [f"{n} = {v}" if -10 < v < 10 else f"{n} = {v:#x}" for n, v in values.items()]


def generate(sources: Sources) -> str:
  files = [sources.find(n, wanted=FAMILY.needs) for n in FAMILY.needs]
  header = files[0]
  with usable_headers(*files) as (folder, flags):
    include = "#include <linux/kfd_ioctl.h>\n"
    types = ctypes_types.collect(ctypes_types.read([folder / "linux/kfd_ioctl.h"], flags), header.text)
    values = gcc.macro_values(gcc.macro_names(header.text), include, flags)
  rows = ioctl_rows(header.text, "AMDKFD_IOC_")
  version = f"{values['KFD_IOCTL_MAJOR_VERSION']}.{values['KFD_IOCTL_MINOR_VERSION']}"
  out = [
    head(f"KFD {version}: the ioctls of /dev/kfd and their structs.", [(LINUX, f) for f in files], "tinyhw gen kfd"),
    "import ctypes",
    "",
    "from tinyhw.core.ioctl import Ioctl",
    "from tinyhw.core.layout import Struct, Union",
    "",
  ]
  out += value_lines(values)
  out += ctypes_types.enum_lines(types.enums, values)
  out += ["", *ctypes_types.Writer(types).text(), "", *ioctl_table(rows, values)]
  return "\n".join(out) + "\n"


FAMILY = Family("kfd", "kfd", "ioctls and structs of /dev/kfd", (IOCTL, *DRM[:2]), generate)
