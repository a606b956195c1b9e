"""Joins instruction tables, meanings, manuals and records to the ledger's entries."""
from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Final

from tinyhw.arch import DECODED, decoded
from tinyhw.autogen import isa_manuals
from tinyhw.emulator.amdgcn import coverage
from tinyhw.isa.amdgcn import table
from tinyhw.tools.ledger import evidence

# What the manuals call an instruction that LLVM names otherwise, and where they describe one outside their list.
RENAMED: Final = {"v_fma_mix_f32": "v_mad_mix_f32", "v_fma_mixlo_f16": "v_mad_mixlo_f16",
                  "v_fma_mixhi_f16": "v_mad_mixhi_f16", "v_accvgpr_read_b32": "v_accvgpr_read",
                  "v_accvgpr_write_b32": "v_accvgpr_write"}
ELSEWHERE: Final = {("gfx11", "ds_gws_"): "13.4.4", ("gfx12", "s_barrier_"): "4.3"}
# Instructions for which the manuals state no error, but the function of one for which they do: v_rcp_iflag_f32 raises
# other exceptions, which are not modelled, and v_s_sqrt_f32 writes a scalar register, with the notes of v_sqrt_f32.
ALIKE: Final = {"v_rcp_iflag_f32": "v_rcp_f32", "v_s_sqrt_f32": "v_sqrt_f32"}
GRADES: Final = ("exact", "ULP", "approximate", "no effect", "unsupported", "not compute")


@dataclass(frozen=True)
class Entry:
  """One instruction. `grade` is one of `GRADES`; `ulp` the error that the manual allows the chip, for grade "ULP",
  where ours is the exact result rounded once. `section` cites the manual; `witnesses` executed it in tests."""
  mnemonic: str
  families: tuple[str, ...]
  encodings: int
  grade: str
  ulp: float | None
  section: str
  why: str
  text: str
  witnesses: tuple[str, ...]

  @property
  def meaning(self) -> str:
    """The grade in words."""
    if self.ulp is None: return self.grade + (f": {self.why}" if self.why else "")
    return f"within {self.ulp:g} ULP" if self.ulp < 1000 else f"within 2^{math.log2(self.ulp):g} ULP"

  @property
  def known(self) -> bool: return self.grade not in {"unsupported", "not compute"}


@cache
def _sections(isa: str) -> dict[str, str]:
  out: dict[str, str] = {}
  for number, names in isa_manuals.SECTIONS[isa].items():
    for name in names.split(): out.setdefault(name, number)
  return out


def section(mnemonic: str, isa: str) -> str:
  """Section of the manual; empty where it does not mention the instruction."""
  found = _sections(isa)
  here = found.get(mnemonic) or found.get(RENAMED.get(mnemonic, "")) or ""
  return here or next((s for (g, start), s in ELSEWHERE.items() if g == isa and mnemonic.startswith(start)), "")


def _grade(mnemonic: str, isa: str, key: str) -> tuple[str, float | None, str]:
  """(grade, ULP, why) of an instruction."""
  status = coverage.status(mnemonic, key)
  if coverage.samples(mnemonic): return "not compute", None, "images with samplers or samples, and ray tracing"
  if mnemonic in coverage.NOT_COMPUTE: return "not compute", None, coverage.NOT_COMPUTE.why_ignored(mnemonic) or ""
  if status == "missing": return "unsupported", None, ""
  if status != "approximate": return status, None, ""
  stated = isa_manuals.ACCURACY[isa]
  ulp = stated.get(mnemonic, stated.get(ALIKE.get(mnemonic, "")))
  return ("approximate", None, "") if ulp is None else ("ULP", ulp, "")


def entries(arch: str) -> list[Entry]:
  """The ledger of a generation, by mnemonic."""
  isa = decoded(arch).isa
  rows = table(decoded(arch).table)
  families: dict[str, set[str]] = {}
  counts: Counter[str] = Counter()
  for row in rows.rows():
    for part in row.mnemonic.split("::"):
      name = part.strip().replace("v_dual_", "v_")
      families.setdefault(name, set()).add(row.family)
      counts[name] += 1
  seen, different = evidence.witnesses(isa), evidence.differences(isa)
  version = evidence.compared(isa)
  out = []
  for name in sorted(families):
    grade, ulp, why = _grade(name, isa, rows.key)
    text = different.get(name) or (f"as LLVM {version}" if version else "not compared")
    out.append(Entry(name, tuple(sorted(families[name])), counts[name], grade, ulp, section(name, isa), why, text,
                     tuple(seen.get(name, ()))))
  return out


@dataclass(frozen=True)
class Summary:
  """A generation in numbers. `compute` counts the instructions that compute code can use, `known` those of them with a
  meaning, `manual` those that the manual lists, `executed` those that tests executed beside a witness."""
  arch: str
  instructions: int
  encodings: int
  text_differs: int
  compute: int
  known: int
  exact: int
  ulp: int
  approximate: int
  no_effect: int
  manual: int
  executed: int

  @property
  def percent(self) -> float: return 100 * self.known / self.compute


def summary(arch: str, found: list[Entry] | None = None) -> Summary:
  """The numbers of a generation."""
  found = entries(arch) if found is None else found
  compute = [e for e in found if e.grade != "not compute"]
  grades = Counter(e.grade for e in compute)
  return Summary(arch, len(found), sum(e.encodings for e in found),
                 sum(not e.text.startswith("as LLVM") for e in found), len(compute), sum(e.known for e in compute),
                 grades["exact"], grades["ULP"], grades["approximate"], grades["no effect"],
                 sum(bool(e.section) for e in compute), sum(bool(e.witnesses) for e in compute))


def document(arches: list[str]) -> dict[str, Any]:
  """The ledger as JSON values."""
  out: dict[str, Any] = {}
  for arch in arches:
    found = entries(arch)
    isa = decoded(arch).isa
    out[arch] = {"manual": isa_manuals.MANUALS[isa], "summary": asdict(summary(arch, found)),
                 "instructions": [asdict(e) for e in found]}
  return out


def markdown(arches: list[str]) -> str:
  """The table of the README."""
  lines = ["| generation | compute instructions | with a meaning | exact | within the manual's ULP | approximate | "
           "executed beside an independent witness |", "|---|---|---|---|---|---|---|"]
  for arch in arches:
    s = summary(arch)
    lines.append(f"| {arch} | {s.compute:,} | {s.known:,} ({s.percent:.1f} %) | {s.exact + s.no_effect:,} | {s.ulp} | "
                 f"{s.approximate} | {s.executed:,} |")
  return "\n".join(lines) + "\n"


ARCHES: Final = tuple(dict.fromkeys(next(a.name for a in DECODED.values() if a.table == isa)
                                    for isa in isa_manuals.MANUALS))
