"""What shaders see of the chip, as bit ranges by field: registers of a wave (s_getreg), those that describe a program,
and buffer resources.

Registers and gfx9's resource come from the kernel's register headers; the resources of gfx11 and gfx12 stand only
in PAL, as bit fields of a union. Values differ in shape wherever they are used (ints, a value a wave, compiled code),
so positions are what is written, not register classes.
"""

from __future__ import annotations

import re

from tinyhw.core.errors import LayoutError
from tinyhw.tools.gen.family import Family
from tinyhw.tools.gen.linux import AMD, LINUX, PAL
from tinyhw.tools.gen.sources import Sources, head

Ranges = dict[str, tuple[int, int]]  # field -> (lowest bit, bits)
MASKS = {isa: f"{AMD}/include/asic_reg/gc/{name}_sh_mask.h"
         for isa, name in (("gfx9", "gc_9_4_3"), ("gfx11", "gc_11_0_0"), ("gfx12", "gc_12_0_0"))}
# table -> (PAL's header, the named part of the union that adds what belongs to this generation)
UNIONS = {"gfx11": ("src/core/hw/gfxip/gfx9/chip/gfx10_sq_ko_reg.h", "rtIp2Plus"),
          "gfx12": ("src/core/hw/gfxip/gfx12/chip/gfx12_sq_ko_reg.h", "")}
# Registers by the names that s_getreg has for them, and those that describe a program; not every generation has each.
WAVE = {name: f"SQ_WAVE_{name}" for name in ("MODE", "STATUS", "STATE_PRIV", "HW_ID", "HW_ID1", "HW_ID2", "GPR_ALLOC",
                                             "LDS_ALLOC", "SHADER_CYCLES")} | {"SH_MEM_BASES": "SH_MEM_BASES"}
PROGRAM = {f"RSRC{k}": f"COMPUTE_PGM_RSRC{k}" for k in (1, 2, 3)} | {"TMPRING_SIZE": "COMPUTE_TMPRING_SIZE"}
MASK = re.compile(r"#define (SQ_WAVE_\w+?|SQ_BUF_RSRC_\w+?|SH_MEM_BASES|COMPUTE_PGM_RSRC\d|COMPUTE_TMPRING_SIZE)__(\w+)"
                  r"_MASK\s+(0x[0-9a-fA-F]+)L?")
RESOURCE = re.compile(r"SQ_BUF_RSRC_WORD(\d)")


def masks(text: str) -> dict[str, Ranges]:
  """Register -> ranges of its fields, of the registers that `MASK` names."""
  out: dict[str, Ranges] = {}
  for name, field, mask in MASK.findall(text):
    value = int(mask, 0)
    low, bits = (value & -value).bit_length() - 1, value.bit_count()
    if value != ((1 << bits) - 1) << low: raise LayoutError(f"mask {mask} has a hole", where=f"{name}.{field}")
    out.setdefault(name, {})[field] = low, bits
  return out


def words(registers: dict[str, Ranges]) -> Ranges:
  """A resource whose dwords are declared one by one; a field and its _HI are one."""
  out: Ranges = {}
  for name, fields in registers.items():
    if not (word := RESOURCE.fullmatch(name)): continue
    for field, (low, bits) in fields.items(): out[field.lower()] = 32 * int(word[1]) + low, bits
  for name in [n for n in out if n.endswith("_hi")]:
    (low, bits), (high, more) = out[name.removesuffix("_hi")], out.pop(name)
    if low + bits != high: raise LayoutError("its two parts do not meet", where=name)
    out[name.removesuffix("_hi")] = low, bits + more
  return out


def union(text: str, part: str, kind: str = "sq_buf_rsrc_t", size: int = 128) -> Ranges:
  """A union that describes a resource: the fields that all have, and those of the named part."""
  body = re.search(rf"union {kind} \{{(.*?)\n\}};", text, re.S)
  if body is None: raise LayoutError(f"no {kind}")
  found: dict[str, Ranges] = {}
  for fields, name in re.findall(r"struct \{(.*?)\}\s*(\w*);", body[1], re.S):
    at, ranges = 0, found.setdefault(name, {})
    for field, bits in re.findall(r"uint64_t\s+(\w*)\s*:\s*(\d+);", fields):
      if field: ranges[field] = at, int(bits)
      at += int(bits)
    if at != size and name in ("", part):
      raise LayoutError(f"{at} bits instead of {size}", where=f"{kind}.{name}")
  return {**found[""], **(found[part] if part else {})}


def _table(name: str, about: str, rows: dict[str, Ranges]) -> list[str]:
  out = [f"# {about}", f"{name}: Registers = {{"]
  for key, ranges in rows.items():
    out.append(f'  "{key}": {{')
    out += [f'    "{field}": {place},' for field, place in sorted(ranges.items(), key=lambda r: r[1])]
    out.append("  },")
  return [*out, "}", ""]


def generate(sources: Sources) -> str:
  linux = {isa: sources.find(path) for isa, path in MASKS.items()}
  pal = {isa: sources.find(path) for isa, (path, _) in UNIONS.items()}
  registers = {isa: masks(file.text) for isa, file in linux.items()}
  resources = {"gfx9": words(registers["gfx9"])}
  resources |= {isa: union(pal[isa].text, part) for isa, (_, part) in UNIONS.items()}
  out = [head("What shaders see of the chip: registers of a wave and of a program, and buffer resources.",
              [*((LINUX, f) for f in linux.values()), *((PAL, f) for f in pal.values())], "tinyhw gen sq",
              ["A range is (lowest bit, number of bits). A buffer resource has 128 bits."]),
         "Registers = dict[str, dict[str, tuple[int, int]]]  # register (or instruction table) -> field -> range", ""]
  for group, wanted, about in (("WAVE", WAVE, "registers that s_getreg reads"),
                               ("PROGRAM", PROGRAM, "registers of a program")):
    for isa, found in registers.items():
      rows = {name: found[vendors] for name, vendors in wanted.items() if vendors in found}
      out += _table(f"{group}_{isa.upper()}", f"{isa}: {about}", rows)
    out += [f"{group} = {{{', '.join(f'{isa!r}: {group}_{isa.upper()}' for isa in MASKS)}}}".replace("'", '"'), ""]
  out += _table("BUFFER_RESOURCE", "instruction table -> fields of a buffer resource", resources)
  return "\n".join(out).rstrip("\n") + "\n"


FAMILY = Family("sq", "sq", "registers of a wave and of a program, and buffer resources",
                (*MASKS.values(), *(path for path, _ in UNIONS.values())), generate)
