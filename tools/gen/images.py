"""Image resources of gfx11 and gfx12, as bit ranges by field, the types that they may have, and their formats."""

from __future__ import annotations

import re

from tinyhw.core.errors import LayoutError
from tinyhw.tools.gen.buffer_formats import PAL_GFX9, PAL_HEADER, codes
from tinyhw.tools.gen.family import Family
from tinyhw.tools.gen.linux import PAL
from tinyhw.tools.gen.sources import Sources, head
from tinyhw.tools.gen.sq import UNIONS, Ranges, union

KIND = "sq_img_rsrc_t"
BITS = {"gfx11": 256, "gfx12": 224}  # what the unions declare; the rest is reserved


def joined(fields: Ranges) -> Ranges:
  """Fields whose low and high part are declared one by one, as one."""
  out = dict(fields)
  for name in [n for n in fields if n.endswith("_lo")]:
    whole = name.removesuffix("_lo")
    (low, bits), (high, more) = out.pop(name), out.pop(f"{whole}_hi")
    if low + bits != high: raise LayoutError("its two parts do not meet", where=f"{KIND}.{whole}")
    out[whole] = low, bits + more
  return out


def formats(newer: str, older: str) -> dict[int, str]:
  """The codes that gfx11 and gfx12 share. The older header has gfx10's beside them, each with a suffix where they
  differ."""
  unified = codes(newer, "IMG_FMT", "IMG_FMT_")
  late = re.findall(r"IMG_FMT_(\w+)__GFX11\s*=\s*(0x[0-9a-fA-F]+)", older)
  gfx11 = {k: n for k, n in codes(older, "IMG_FMT", "IMG_FMT_").items() if "__" not in n}
  gfx11 |= {int(v, 0): n for n, v in late if not n.startswith("RESERVED")}
  if (apart := {k for k in unified.keys() & gfx11.keys() if unified[k] != gfx11[k]}):
    raise LayoutError(f"gfx11 and gfx12 do not share their image formats: {sorted(apart)}")
  return {k: n for k, n in unified.items() if k in gfx11}


def generate(sources: Sources) -> str:
  found = {isa: sources.find(path) for isa, (path, _) in UNIONS.items()}
  newer, older = sources.find(PAL_HEADER), sources.find(PAL_GFX9)
  types = codes(newer.text, "SQ_RSRC_IMG_TYPE", "SQ_RSRC_IMG_")
  if codes(older.text, "SQ_RSRC_IMG_TYPE", "SQ_RSRC_IMG_") != types:
    raise LayoutError("gfx11 and gfx12 do not share the types of images")
  out = [head("Image resources: where their fields stand, their types, and the formats of their texels.",
              [(PAL, f) for f in (*found.values(), newer, older)], "tinyhw gen images",
              ["A range is (lowest bit, number of bits) of 256. A format's name lists the bits of the components from",
               "the most significant one, then how they are read."]),
         "# instruction table -> field -> range", "RESOURCE = {"]
  for isa, (_, part) in UNIONS.items():
    rows = joined(union(found[isa].text, part, KIND, BITS[isa]))
    out.append(f'  "{isa}": {{')
    out += [f'    "{field}": {place},' for field, place in sorted(rows.items(), key=lambda r: r[1])]
    out.append("  },")
  out += ["}", ""]
  tables = (("TYPES", {k: n for k, n in types.items() if not n.startswith("RSVD")}, "SQ_RSRC_IMG_TYPE"),
            ("FORMATS", formats(newer.text, older.text), "IMG_FMT"))
  for name, table, what in tables:
    out += [f"# {what}", f"{name} = {{"]
    out += [f'  {code:#x}: "{text}",' for code, text in sorted(table.items())]
    out += ["}", ""]
  return "\n".join(out).rstrip() + "\n"


FAMILY = Family("images", "images", "image resources, their types and formats",
                (*(path for path, _ in UNIONS.values()), PAL_HEADER, PAL_GFX9), generate)
