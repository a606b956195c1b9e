"""The AMDGPU kernel descriptor and its register fields, from LLVM's AMDHSAKernelDescriptor.h."""

from __future__ import annotations

import re

from tinyhw.core.errors import LayoutError
from tinyhw.tools.gen import emit
from tinyhw.tools.gen.emit import FieldRow
from tinyhw.tools.gen.family import Family, corrected
from tinyhw.tools.gen.sources import Origin, Sources, head

HEADER = "llvm/Support/AMDHSAKernelDescriptor.h"
LLVM = Origin("LLVM (Debian llvm-19-dev)", "1:19.1.7-3~deb12u1", "Apache-2.0 WITH LLVM-exception")
C_TYPES = {
  "uint8_t": "c_uint8",
  "uint16_t": "c_uint16",
  "uint32_t": "c_uint32",
  "int64_t": "c_int64",
  "uint64_t": "c_uint64",
}
# What LLVM's generation prefixes cover: first and last generation; None: and later.
SPANS = {"": (6, None), "GFX6_GFX8": (6, 8), "GFX6_GFX9": (6, 9), "GFX6_GFX11": (6, 11), "GFX9_PLUS": (9, None),
         "GFX10_PLUS": (10, None), "GFX12_PLUS": (12, None), "GFX10": (10, 10), "GFX10_GFX11": (10, 11),
         "GFX11_PLUS": (11, None), "GFX11": (11, 11)}  # fmt: skip
GENERATIONS = (11, 12)


def entries(text: str, macro: str) -> list[tuple[str, str, int, int]]:
  """(prefix, name, lowest bit, width) of each entry of a register's enum."""
  rows = re.findall(rf"^  {macro}(?:_(GFX\w+?))?\((\w+), (\d+), (\d+)\),", text, re.M)
  return [(prefix, name, int(lo), int(width)) for prefix, name, lo, width in rows]


def register(text: str, macro: str, generation: int) -> str:
  fields = []
  for prefix, name, lo, width in entries(text, macro):
    if prefix == "GFX90A":
      continue  # another register of that name, of the CDNA line
    if prefix not in SPANS:
      raise LayoutError(f"unknown prefix {prefix}", where=macro)
    first, last = SPANS[prefix]
    if name.startswith("RESERVED") or not first <= generation <= (last or generation):
      continue
    fields.append(FieldRow(name, 0, lo + width - 1, lo))
  body = emit.register(f"{macro}_GFX{generation}", 0, fields)
  return body.replace("offset=0x0", "offset=-1")


def generate(sources: Sources) -> str:
  (source,) = (sources.find(n) for n in FAMILY.needs)
  text = corrected(source.text, "amdhsa", "AMDHSAKernelDescriptor.h")
  struct = re.search(r"struct kernel_descriptor_t {(.*?)};", text, re.S)
  if struct is None:
    raise LayoutError("no kernel_descriptor_t", where=HEADER)
  members = re.findall(r"(\w+) (\w+)(?:\[(\d+)\])?;", struct[1])
  out = [
    head(
      "The AMDGPU kernel descriptor (amdhsa ABI): struct, code properties and program resource registers.",
      [(LLVM, source)],
      "tinyhw gen amdhsa",
      ["A class of a register has the fields that its generation has; reserved bits are not declared."],
    ),
    "import ctypes",
    "",
    "from tinyhw.core.layout import Register, Struct, bits",
    "",
    "",
  ]
  for name, value in re.findall(r"^  ((?:FLOAT|SYSTEM)_\w+) = (\d+),", text, re.M):
    out.append(f"{name} = {value}")
  out += [f"{n} = {v}" for n, v in re.findall(r"^  (\w+_OFFSET) = (\d+)", text, re.M)]
  for macro in ("KERNEL_CODE_PROPERTY", "KERNARG_PRELOAD_SPEC"):
    out += ["", f"# Masks of {macro} bits."]
    out += [f"{macro}_{n} = {((1 << w) - 1) << lo:#x}" for _, n, lo, w in entries(text, macro)]
    out += [f"{macro}_{n}_SHIFT = {lo}" for _, n, lo, w in entries(text, macro) if w > 1]
  for generation in GENERATIONS:
    out += ["\n" + register(text, f"COMPUTE_PGM_RSRC{i}", generation) for i in (1, 2, 3)]
  out += ["", "class kernel_descriptor_t(Struct):", '  """64 bytes; its symbol is the kernel\'s name with `.kd`."""']
  out += [f"  {n}: {'ctypes.Array[ctypes.' + C_TYPES[t] + ']' if size else 'int'}" for t, n, size in members]
  out.append("  _fields_ = [")
  out += [f'    ("{n}", ctypes.{C_TYPES[t]}{" * " + size if size else ""}),' for t, n, size in members]
  return "\n".join([*out, "  ]"]) + "\n"


FAMILY = Family("amdhsa", "amdhsa", "the AMDGPU kernel descriptor", (HEADER,), generate)
