"""Registers of the graphics core that a compute driver and the chip's model meet, from the kernel's register headers.

The offset header gives an offset inside a segment of the GC block; the segment's base comes from IP discovery on the
chip. The bases here are those of the kernel's table for the generation before (the same block layout), and are held
against PAL's absolute register numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tinyhw.core.errors import LayoutError
from tinyhw.tools.gen import emit
from tinyhw.tools.gen.emit import FieldRow
from tinyhw.tools.gen.family import Family, corrected
from tinyhw.tools.gen.linux import AMD, LINUX, PAL, PAL_2024, PAL_2024_FOLDER
from tinyhw.tools.gen.sources import Origin, Sources, head

BASES = f"{AMD}/include/sienna_cichlid_ip_offset.h"

USED = re.compile(
  r"COMPUTE_\w+|SH_MEM_(BASES|CONFIG)|GRBM_GFX_INDEX|GRBM_STATUS\w*|CP_HQD_\w+|CP_MQD_\w+|CP_COHER_\w+|CP_MEC_CNTL"
  r"|SQ_CONFIG|SQ_WATCH\w+|SQ_SHADER_T[BM]A_\w+|SQC_CACHES|SPI_CONFIG_CNTL|SPI_GDBG_\w+|TA_CS_BC_BASE_ADDR\w*"
  r"|RLC_GPU_CLOCK_COUNT\w+|RLC_CAPTURE_GPU_CLOCK_COUNT|GCVM_L2_PROTECTION_FAULT_\w+|CP_CPC_STATUS|SPI_SHADER_PGM_RSRC\w+_CS"
)


def segments(text: str) -> list[int]:
  """Bases of GC's segments, in dwords."""
  found = re.search(r"IP_BASE GC_BASE\s*=\s*{ { { { (.*?) }", text)
  if found is None:
    raise LayoutError("no GC_BASE", where=BASES)
  return [int(v, 0) for v in found[1].split(",")]


def offsets(text: str, bases: list[int]) -> dict[str, int]:
  """Absolute dword offset of each register used."""
  index = dict(re.findall(r"#define reg(\w+)_BASE_IDX\s+(\d+)", text))
  found = re.findall(r"#define reg(\w+)\s+(0x[0-9a-fA-F]+)\s*$", text, re.M)
  return {name: bases[int(index[name])] + int(value, 0) for name, value in found if USED.fullmatch(name)}


def fields(text: str) -> dict[str, list[FieldRow]]:
  """Bit fields of each register used."""
  shifts = {(r, f): int(s, 0) for r, f, s in re.findall(r"#define (\w+?)__(\w+)__SHIFT\s+(0x[0-9a-fA-F]+)", text)}
  rows: dict[str, list[FieldRow]] = {}
  for name, field, mask in re.findall(r"#define (\w+?)__(\w+)_MASK\s+(0x[0-9a-fA-F]+)L?", text):
    if not USED.fullmatch(name):
      continue
    lo, width = shifts[name, field], int(mask, 0).bit_count()
    if int(mask, 0) != ((1 << width) - 1) << lo:
      raise LayoutError(f"mask {mask} and shift {lo} differ", where=f"{name}.{field}")
    rows.setdefault(name, []).append(FieldRow(field, 0, lo + width - 1, lo))
  return rows


def witness(ours: dict[str, int], text: str, everybodys: bool) -> int:
  """How many registers PAL gives at the same place. Raises if PAL knows a COMPUTE or GRBM register elsewhere.
  `everybodys`: only those that PAL says all its chips share (in no namespace of some), as it does not know this one."""
  theirs: dict[str, set[int]] = {}
  for name, value in re.findall(rf"{'^constexpr unsigned int ' if everybodys else ''}mm(\w+)\s*=\s*(0x[0-9A-Fa-f]+);",
                                text, re.M):
    theirs.setdefault(name, set()).add(int(value, 0))
  common = [name for name in ours if name in theirs]
  for name in common:
    if ours[name] not in theirs[name]:
      raise LayoutError(f"{ours[name]:#x} here, {theirs[name]} in PAL", where=name)
  return len(common)


@dataclass(frozen=True)
class Generation:
  """A generation's registers: the version of its graphics core, PAL's witness, and the generation before it, whose
  declarations it takes where they are the same letter for letter."""

  name: str
  version: str
  pal: str
  before: Generation | None = None
  bases: str = BASES
  publication: Origin = PAL

  @property
  def module(self) -> str: return f"gc_{self.version}"

  @property
  def needs(self) -> tuple[str, ...]:
    at = f"{AMD}/include/asic_reg/gc/gc_{self.version}"
    return (f"{at}_offset.h", f"{at}_sh_mask.h", self.bases, self.pal)

  def offsets(self, sources: Sources) -> dict[str, int]:
    places, _, bases, _ = self.needs
    text = corrected(sources.find(places, wanted=self.needs).text, self.module, places.rpartition("/")[2])
    return offsets(text, segments(sources.find(bases).text))

  def parts(self, sources: Sources) -> dict[str, str]:
    """The text of each register, by its name."""
    masks = self.needs[1]
    rows = fields(corrected(sources.find(masks, wanted=self.needs).text, self.module, masks.rpartition("/")[2]))
    return {name: emit.register(name, offset, rows.get(name) or [FieldRow("DATA", 0, 31, 0)])
            for name, offset in self.offsets(sources).items()}

  def generate(self, sources: Sources) -> str:
    places, masks, bases, pal = (sources.find(n, wanted=self.needs) for n in self.needs)
    where = self.offsets(sources)
    agreed = witness(where, pal.text, self.publication is not PAL)
    before = [] if self.before is None else [(self.before.module, self.before.parts(sources))]
    earlier, own = emit.shared(self.parts(sources), before)
    out = [
      head(f"Registers of the {self.name} graphics core (GC {self.version.replace('_', '.')}): one class a register, "
           "fields as the vendor names them.",
           [(LINUX, places), (LINUX, masks), (LINUX, bases), (self.publication, pal)],
           f"tinyhw gen {self.module if self.before else 'gc'}",
           [f"Offsets are in dwords, with the segment's base. {agreed} of {len(where)} stand at the same place in PAL;",
            "the others are in the kernel's headers only. All fields default to 0.",
            *([emit.IMPORTED] if earlier else [])]),
      *emit.imports(own, earlier), "",
      f"GC_BASE = ({', '.join(map(hex, segments(bases.text)))})  # bases of the block's segments, in dwords", "",
      *("\n" + p for p in own),
      "", "REGISTERS: tuple[type[Register], ...] = (", *emit.wrapped(list(where)), ")"]
    return "\n".join(out) + "\n"


CHIP = "src/core/hw/gfxip"
GFX11 = Generation("gfx11", "11_0_0", f"{CHIP}/gfx9/chip/gfx9_plus_merged_offset.h")
GFX115 = Generation("gfx11.5", "11_5_0", f"{CHIP}/gfx9/chip/gfx9_plus_merged_offset.h", GFX11)
GFX12 = Generation("gfx12", "12_0_0", f"{CHIP}/gfx12/chip/gfx12_merged_offset.h", GFX11)
# MI300 has no table of its own; its bases are those of the compute chip before it (Aldebaran).
GFX9 = Generation("gfx9.4.3", "9_4_3", f"{PAL_2024_FOLDER}/{CHIP}/gfx9/chip/gfx9_plus_merged_offset.h", GFX11,
                  f"{AMD}/include/aldebaran_ip_offset.h", PAL_2024)
GFX90A = Generation("gfx90a", "9_4_2", GFX9.pal, GFX9, GFX9.bases, PAL_2024)
FAMILIES = {
  GFX90A.module: Family(GFX90A.module, GFX90A.module, "registers of the gfx90a graphics core", GFX90A.needs,
                        GFX90A.generate),
  GFX9.module: Family(GFX9.module, GFX9.module, "registers of the gfx9.4.3 graphics core", GFX9.needs, GFX9.generate),
  "gc": Family("gc", GFX11.module, "registers of the gfx11 graphics core", GFX11.needs, GFX11.generate),
  GFX115.module: Family(GFX115.module, GFX115.module, "registers of the gfx11.5 graphics core", GFX115.needs,
                        GFX115.generate),
  GFX12.module: Family(GFX12.module, GFX12.module, "registers of the gfx12 graphics core", GFX12.needs, GFX12.generate)}
