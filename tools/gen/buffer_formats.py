"""The codes of typed buffers: one unified code on gfx11 and gfx12, a data and a number format on gfx9."""

from __future__ import annotations

import re

from tinyhw.core.errors import LayoutError
from tinyhw.tools.gen.family import Family
from tinyhw.tools.gen.linux import LINUX, PAL
from tinyhw.tools.gen.sources import Sources, head

PAL_HEADER = "src/core/hw/gfxip/gfx12/chip/gfx12_merged_enum.h"
PAL_GFX9 = "src/core/hw/gfxip/gfx9/chip/gfx9_plus_merged_enum.h"
LINUX_HEADER = "drivers/gpu/drm/amd/include/vega10_enum.h"


def codes(text: str, enum: str, prefix: str) -> dict[int, str]:
  """Code -> name without the prefix, of an enum's entries; reserved ones are left out."""
  body = re.search(rf"typedef enum {enum}\s*{{(.*?)}}", text, re.S)
  if body is None: raise LayoutError(f"no enum {enum}")
  found = re.findall(rf"{prefix}(\w+)\s*=\s*(0x[0-9a-fA-F]+|\d+)", body[1])
  return {int(value, 0): name for name, value in found if not name.startswith("RESERVED")}


def generate(sources: Sources) -> str:
  pal, older, linux = (sources.find(n) for n in FAMILY.needs)
  unified = codes(pal.text, "BUF_FMT", "BUF_FMT_")
  # gfx11's names stand beside gfx10's in the older header, where they differ with a suffix
  gfx11 = {k: n.removesuffix("__GFX11") for k, n in codes(older.text, "BUF_FMT", "BUF_FMT_").items()}
  late = re.findall(r"BUF_FMT_(\w+)__GFX11\s*=\s*(0x[0-9a-fA-F]+)", older.text)
  gfx11 = {k: n for k, n in gfx11.items() if "__" not in n} | {int(v, 0): n for n, v in late
                                                              if not n.startswith("RESERVED")}
  if gfx11 != unified: raise LayoutError("gfx11 and gfx12 do not share their buffer formats")
  tables = (("UNIFIED", unified, "gfx11 and gfx12: BUF_FMT"),
            ("DATA", codes(linux.text, "BUF_DATA_FORMAT", "BUF_DATA_FORMAT_"), "gfx9: BUF_DATA_FORMAT"),
            ("NUMBER", codes(linux.text, "BUF_NUM_FORMAT", "BUF_NUM_FORMAT_"), "gfx9: BUF_NUM_FORMAT"))
  out = [head("The formats of typed buffers.", [(PAL, pal), (PAL, older), (LINUX, linux)], "tinyhw gen buffer_formats",
              ["A name lists the bits of the components from the most significant one, then how they are read."])]
  for name, table, what in tables:
    out += [f"# {what}", f"{name} = {{"]
    out += [f"  {code:#x}: {text!r}," for code, text in sorted(table.items())]
    out += ["}", ""]
  return "\n".join(out).rstrip() + "\n"


FAMILY = Family("buffer_formats", "buffer_formats", "the formats of typed buffers",
                (PAL_HEADER, PAL_GFX9, LINUX_HEADER), generate)
