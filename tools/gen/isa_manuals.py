"""What the fidelity ledger cites of AMD's ISA manuals: the section of each instruction and the accuracy it has.

The manuals are read as Markdown (the public repository kuhar/amdgpu-isa-manuals). Only names and numbers enter.
"""

from __future__ import annotations

import re

from tinyhw.core.errors import LayoutError
from tinyhw.tools.gen.family import Family
from tinyhw.tools.gen.sources import Origin, Sources, head

# instruction table -> (folder, title, chapter that describes every instruction)
MANUALS = {
  "gfx11": ("rdna3", "RDNA3 ISA (15-Aug-2023)", "16"),
  "gfx12": ("rdna4", "RDNA4 ISA (7-Apr-2025)", "16"),
  "gfx9": ("cdna3", "CDNA3 ISA (5-Aug-2025)", "12"),
}
ORIGIN = Origin("AMD's ISA manuals, in kuhar/amdgpu-isa-manuals", "commit 4ca6ba42c7d1e0ec0dcf2758399117be2b84dc04",
                "AMD's documents; only names and numbers are taken")
SECTION = re.compile(r"^#+ .*?\*\*(\d+(?:\.\d+)+)\.? ")
INSTRUCTION = re.compile(r"^#+ \**([A-Z][A-Z0-9_]+) (\d+)\**$")
ACCURACY = re.compile(r"([\d.]+)(?:\*\*(\d+)\))? ?ULP (?:accuracy|precision)")


def sections(text: str, chapter: str) -> dict[str, list[str]]:
  """Section number -> mnemonics, in the order of the manual."""
  out: dict[str, list[str]] = {}
  current = ""
  for line in text.replace("\\_", "_").splitlines():
    if not line.startswith("#"): continue
    if found := SECTION.match(line): current = found[1] if found[1].startswith(chapter + ".") else ""
    elif current and (found := INSTRUCTION.match(line)): out.setdefault(current, []).append(found[1].lower())
  if not out: raise LayoutError(f"no instruction in chapter {chapter}")
  return out


def accuracies(text: str) -> dict[str, float]:
  """Mnemonic -> error in ULP that the manual allows; of several encodings the largest."""
  out: dict[str, float] = {}
  current = ""
  for line in text.replace("\\_", "_").replace("\\*", "*").splitlines():
    if found := INSTRUCTION.match(line): current = found[1].lower()
    elif SECTION.match(line): current = ""
    elif current and (stated := ACCURACY.search(line)):
      ulp = float(stated[1]) ** int(stated[2] or 1)
      out[current] = max(ulp, out.get(current, 0.0))
  return out


def generate(sources: Sources) -> str:
  files = [sources.find(n) for n in FAMILY.needs]
  out = [head("Sections of AMD's ISA manuals by instruction.", [(ORIGIN, f) for f in files], "tinyhw gen isa_manuals",
              ["MANUALS: instruction table -> title; SECTIONS: table -> section -> mnemonics as the manual has them;",
               "ACCURACY: table -> mnemonic -> the error in ULP that the manual states."]),
         "MANUALS = {"]
  out += [f'  "{isa}": "{title}",' for isa, (_, title, _) in MANUALS.items()]
  out += ["}", "SECTIONS = {"]
  for file, (isa, (_, _, chapter)) in zip(files, MANUALS.items()):
    out.append(f'  "{isa}": {{')
    for section, names in sections(file.text, chapter).items():
      out.append(f'    "{section}": (')
      line = "      \""
      for name in names:
        if len(line) + len(name) > 116:
          out.append(line + '"')
          line = "      \""
        line += name + " "
      out.append(line.rstrip() + '"),')
    out.append("  },")
  out += ["}", "ACCURACY = {"]
  for file, isa in zip(files, MANUALS):
    stated = accuracies(file.text)
    out.append(f'  "{isa}": {{')
    for ulp in sorted(set(stated.values())):
      names = sorted(n for n, u in stated.items() if u == ulp)
      out += [f'    "{n}": {ulp:.12g},' for n in names]
    out.append("  },")
  return "\n".join([*out, "}"]) + "\n"


FAMILY = Family("isa_manuals", "isa_manuals", "sections of the ISA manuals",
                tuple(f"{folder}/README.md" for folder, _, _ in MANUALS.values()), generate)
