"""Generate an AMD instruction table (`autogen/amdgcn_*.py`) from a dump of LLVM's AMDGPU target description.

The input is a JSON (optionally .xz) of LLVM's instruction records: fixed-bit mask and value, operand bit ranges,
assembly string, register classes, implicit uses and defs. The output is compact text that loads in milliseconds:
shared layouts, operand lists and texts, and for each encoding family a dict from opcode bits to candidate rows.

    python -m tinyhw.tools.gen.amdgcn SOURCE.json.xz gfx11 OUTPUT.py
"""
from __future__ import annotations

import hashlib
import json
import lzma
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tinyhw.autogen.amdgcn_ignored import IGNORED
from tinyhw.core.errors import LayoutError
from tinyhw.tools.gen.family import Erratum, errata

# Encoding families by the top bits of the first dword (RDNA3 ISA manual, section 15 "Microcode Formats").
_COMMON = (
  ("SOP2", "10"), ("SOPK", "1011"), ("SOP1", "101111101"), ("SOPC", "101111110"), ("SOPP", "101111111"),
  ("VOP2", "0"), ("VOPC", "0111110"), ("VOP1", "0111111"), ("VOP3", "110101"), ("VOP3P", "11001100"),
  ("VINTERP", "11001101"), ("LDSDIR", "11001110"), ("VOPD", "110010"), ("SMEM", "111101"), ("DS", "110110"),
)
FAMILIES: dict[str, tuple[tuple[str, str], ...]] = {
  "gfx11": (*_COMMON, ("FLAT", "110111"), ("MUBUF", "111000"), ("MTBUF", "111010"), ("EXP", "111110"),
            ("MIMG", "111100")),
  "gfx12": (*_COMMON, ("FLAT", "111011"), ("MUBUF", "110001"), ("EXP", "111110"),  # RDNA4: VFLAT, VBUFFER, VEXPORT
            ("VIMAGE", "110100"), ("VSAMPLE", "111001")),
  # CDNA3 manual, chapter 13 "Microcode Formats". VOP3P holds the matrix instructions (VOP3P-MAI) too.
  "gfx9": (*_COMMON[:8], ("VOP3", "110100"), ("VOP3P", "110100111"), ("SMEM", "110000"), ("DS", "110110"),
           ("FLAT", "110111"), ("MUBUF", "111000"), ("MTBUF", "111010")),
}
# LLVM's decoder namespaces of a generation, in the order in which its disassembler asks them.
NAMESPACES = {
  "gfx11": ("GFX11", "GFX11_FAKE16", "GFX11W64"), "gfx12": ("GFX12", "GFX12_FAKE16", "GFX12W64"),
  "gfx9": ("GFX9_DL", "GFX940", "GFX90A", "GFX8", "GFX9"),
}
# Generations whose 16-bit operands name halves of registers (v1.l); earlier ones choose halves by op_sel or SDWA.
HALVES = {"gfx11", "gfx12"}
# Row variants that may match a subset of the words of another row of the same instruction; anything else is refused.
MORE_SPECIFIC = {
  ("sdwa", "e32"), ("dpp", "e32"), ("dpp8", "e32"), ("e64_dpp", "e64"), ("e64_dpp8", "e64"),
  ("dpp8_fi", "e32"), ("e64_dpp8_fi", "e64"), ("dpp", ""), ("dpp8", ""), ("dpp8_fi", ""),
  ("", "saddr"), ("saddr", "svs"), ("st", "saddr"), ("st", "svs"), ("", "svs"),
  ("imm", "sgpr_imm"), ("sgpr", "sgpr_imm"), ("m0", "const"), ("", "w64"),
}
# DPP rows hold a marker in src0 that is no operand, so they need not fix every bit that the plain row fixes.
MARKED = {("e64_dpp", "e64"), ("e64_dpp8", "e64"), ("e64_dpp8_fi", "e64")}
# Rows that share some words, which the first one takes: s_load with soffset null and offset 0 is the immediate form.
FIRST = {("imm", "sgpr")}
# The DPP8 marker in the src0 field: it says whether inactive lanes are fetched (RDNA3 manual, section 15.3.8).
DPP8_MARKERS = ((0xE9, ""), (0xEA, "_fi"))
# Features that the table's own processors lack, whose rows it leaves out. Those of later members of the generation
# (gfx1150 and later) come back in LATER.
# For gfx9 the predicates that gfx942 lacks: rows of GFX8, of gfx90a alone, of earlier and of graphics members.
LEFT_OUT = {
  "gfx11": {"HasSALUFloatInsts", "HasVGPRSingleUseHintInsts"}, "gfx12": set[str](),
  "gfx9": {"isGFX8Only", "isGFX8GFX9NotGFX90A", "isGFX8GFX9NotGFX940", "isGFX90AOnly", "isNotGFX90APlus", "HasMovrel",
           "isGCN3ExcludingGFX90A", "HasMadMacF32Insts", "HasMadMixInsts", "HasDsSrc2Insts", "HasImageInsts",
           "HasSDWA", "isGFX6GFX7GFX8GFX9NotGFX90A", "has16BankLDS"},
}
# The first processor of each generation's later members, and what it has that the earlier ones lack.
LATER: dict[str, dict[str, set[str]]] = {
  "gfx11": {"gfx1150": {"HasSALUFloatInsts", "HasVGPRSingleUseHintInsts"}},
  # LLVM 21, FeatureISAVersion9_5_Common, and what FeatureGFX950Insts implies.
  "gfx9": {"gfx950": {
    "HasGFX950Insts", "HasPrngInst", "HasBF16ConversionInsts", "HasBitOp3Insts", "HasFP8ConversionScaleInsts",
    "HasBF8ConversionScaleInsts", "HasFP4ConversionScaleInsts", "HasFP6BF6ConversionScaleInsts", "HasDot12Insts",
    "HasDot13Insts", "HasF16BF16ToFP6BF6ConversionScaleInsts", "HasF32ToF16BF16ConversionSRInsts",
    "HasCvtPkF16F32Inst", "HasMinimum3Maximum3F32", "HasMinimum3Maximum3PKF16", "HasPermlane16Swap",
    "HasPermlane32Swap", "HasAshrPkInsts"},
  # LLVM 19, FeatureISAVersion9_0_A (CDNA2): before the table's first processor, so LACKING has what it has not.
    "gfx90a": {"isGFX90AOnly", "isGFX8GFX9NotGFX940", "HasMadMacF32Insts"}},
}
# What a member has not of what the table's first processors have. Its DecoderNamespaces are without GFX940 too.
LACKING = {"gfx90a": {"isGFX940Plus", "HasFmaakFmamkF32Insts", "HasFP8ConversionInsts", "HasFP8Insts",
                      "HasAtomicDsPkAdd16Insts", "HasAtomicFlatPkAdd16Insts", "HasAtomicGlobalPkAddBF16Inst",
                      "HasFlatAtomicFaddF32Inst"}}
SPACES_LACKING = {"gfx90a": {"GFX940"}}
# Instructions that a later member has not: the first processors' products of xf32 (LLVM 21: FeatureXF32Insts), and what
# LLVM calls an instruction and is the first half of v_mfma_scale_* (CDNA4 ISA manual 7.2.1).
GONE = {"gfx950": r"v_mfma_f32_\d+x\d+x\d+_?xf32|v_mfma_ld_scale_b32"}
# The dump in which records of later members are, where LLVM 19 has none.
DUMPS = {"gfx950": "amdgpu21_gfx950.json.xz"}
SOURCES = {"gfx950": "LLVM 21.1.8 by tools/gen/llvm_records.py"}
# The three high bits of a format that say how wide a matrix is, by LLVM's name of the width: (mask, value) of CBSZ and
# BLGP (CDNA4 ISA manual 7.1.5: two formats of 8 bits, two of 6, one of 4).
MATRIX_FORMATS = {"f8": (0b110, 0b000), "f6": (0b110, 0b010), "f4": (0b111, 0b100)}
# Whose DPP instructions take a scalar register or a constant as their second source (LLVM: FeatureDPPSrc1SGPR, which
# its disassembler does not look at and its assembler does).
DPP_SCALAR_SOURCE = {"gfx1150", "gfx12"}
# Other names of rows that have the same bits: an assembler's aliases.
ALIASES = {"gfx9": {"v_mul_lo_i32"}}
# Register operands that LLVM's records leave anonymous: (kind, dwords). Held by the assembler round trip in tests/isa.
ANONYMOUS = {
  "anonymous_15868": ("v", 1), "anonymous_15870": ("v", 4), "anonymous_15871": ("v", 2), "anonymous_15872": ("v", 1),
  "anonymous_15875": ("v", 2), "anonymous_15876": ("v", 1), "anonymous_21878": ("s", 1), "anonymous_23267": ("v", 1),
  "anonymous_22824": ("a", 1), "anonymous_24166": ("s", 1),
}
ACC = 9  # bit of a register operand that says accumulation register (gfx90a and later)
WIDTHS = {"32": 1, "64": 2, "96": 3, "128": 4, "160": 5, "192": 6, "256": 8, "288": 9, "352": 11, "384": 12,
          "512": 16, "1024": 32}


@dataclass
class Row:
  """One encoding of one instruction, normalised."""
  name: str
  mnemonic: str
  variant: str
  family: str
  size: int
  mask: int
  value: int
  fields: dict[str, list[tuple[int, int, int]]]
  operands: list[str]
  text: str
  uses: list[str]
  defs: list[str]
  load: bool = False
  store: bool = False


def operands(text: str) -> list[tuple[str, str]]:
  """(class, name) of each operand of `(ins class:$name, ...)`."""
  body = text[text.index(" ") + 1:-1] if " " in text else ""
  return [(c, n) for c, n in (o.strip().split(":$") for o in body.split(",") if o.strip())]


def variant_of(name: str, generation: str) -> str:
  """e32, e64, dpp, dpp8, e64_dpp, e64_dpp8, or how a memory row addresses, from LLVM's record name."""
  stem = name.removesuffix("_" + generation)
  if name.startswith("IMAGE_"): return "nsa" if stem.endswith("_nsa") else ""
  if generation == "gfx9": stem = re.sub(r"(_(vi|gfx9|gfx90a|gfx940))*$", "", name)
  if m := re.search(r"_(e64_dpp8|e64_dpp|e32_dpp8|e32_dpp|dpp8|dpp|e64|e32|sdwa)(_w32|_w64)?$", stem):
    return m[1].removeprefix("e32_") if m[1] != "e32" else "e32"
  if m := re.search(r"_(SGPR_IMM|SGPR|IMM)(?:_RTN)?(_alt)?$", stem):
    return "const" if "BARRIER" in stem else m[1].lower() + (m[2] or "")
  if stem.endswith("_M0"): return "m0"
  if m := re.search(r"_(SADDR|SVS|ST)(_RTN)?$", stem): return m[1].lower()
  if m := re.search(r"_(BOTHEN|IDXEN|OFFEN|OFFSET)(_RTN)?$", stem): return m[1].lower()
  return ""


def family_of(word: int, generation: str) -> str:
  """The family with the longest matching prefix."""
  best = max((f for f in FAMILIES[generation] if format(word, "032b").startswith(f[1])), key=lambda f: len(f[1]))
  return best[0]


def sixteen_bit(mnemonic: str, role: str) -> bool:
  """Whether a register operand without a typed class holds 16 bits, from the types in the vendor's mnemonic."""
  types: list[str] = re.findall(r"_(bf16|[fiub](?:8|16|24|32|64))(?=_|$)", mnemonic)
  whole = ("v_pk_", "v_cvt_pk_", "v_dot2acc_f32", "v_dot4", "v_dot8", "v_fma_mix", "v_sad_", "v_wmma", "v_interp")
  if not types or mnemonic.startswith(whole): return False
  if role == "d":
    if mnemonic.startswith(("v_pack_", "v_cmp")): return False
    return types[0].endswith("16") or mnemonic == "v_sat_pk_u8_i16"
  return types[-1].endswith("16")


def normal_fields(raw: dict[str, Any], family: str, sext: set[str]) -> dict[str, list[tuple[int, int, int]]]:
  """LLVM's per-source modifier operands, regrouped as the vendor's fields neg, abs, op_sel (_hi/_lo when packed).

  Sources in `sext` are integers of SDWA, whose only modifier is sign extension. The bit that makes the data of a
  memory instruction accumulation registers is a field `acc`. Names that are expressions stand for ignored bits.
  """
  out: dict[str, list[tuple[int, int, int]]] = {}
  packed = ("neg_lo", "neg_hi", "op_sel", "op_sel_hi")
  for name, pieces in raw.items():
    if not name.isidentifier() or name in {"SOffsetEn", "Offset"}: continue
    m = re.match(r"src(\d)_modifiers$", name)
    if not m:
      memory = family in {"DS", "FLAT", "MUBUF", "MTBUF"}
      if name != "offset" and memory and (acc := [p for p in pieces if p[1] == ACC]): out["acc"] = [(acc[0][0], 0, 1)]
      else: acc = []
      out[name] = [tuple(p) for p in pieces if p not in acc]
      continue
    names = ("sext",) if name in sext else packed if family == "VOP3P" else ("neg", "abs", "op_sel", "op_sel")
    for position, bit, width in pieces:
      for k in range(width):
        target = names[bit + k]
        index = 3 if family != "VOP3P" and bit + k == 3 else int(m[1])
        out.setdefault(target, []).append((position + k, index, 1))
  return out


# Sources that LLVM 19 takes for 32 bits; LLVM 22 addresses their halves, as those of other 16-bit sources.
SIXTEEN_BIT_SOURCES = ((r"v_cmpx?_class_f16", {"src1", "vsrc1"}), (r"v_align(bit|byte)_b32", {"src2"}))


def operand_kind(cls: str, width: int) -> tuple[str, int, str]:
  """(kind, dwords, type) of an operand class; `width` is the field's.

  Kinds: v vector register, a accumulation register, g either, s scalar, x vector or scalar or constant by a 9-bit
  code, y and z an
  accumulation or vector register or a constant, p a vector register by such a code,
  w the reverse of SDWA (below 256 a vector register), c SDWA's compare
  destination, i a plain field.
  """
  if cls in ANONYMOUS: kind, dwords, kind_type = *ANONYMOUS[cls], ""
  elif cls == "SplitBarrier": kind, dwords, kind_type = "s", 1, "b32"
  elif cls in {"VOPDstS64orS32", "SSrc_i1"}: kind, dwords, kind_type = "s", 0, "mask"
  elif cls == "SDWAVopcDst": kind, dwords, kind_type = "c", 0, "mask"
  elif m := re.match(r"SDWASrc_(\w\d+)", cls): kind, dwords, kind_type = "w", 1, m[1]
  elif m := re.match(r"(SSrcOrLds|SSrc|SCSrc)_(\w\d+|f32)", cls):
    kind, kind_type = "s", m[2]
    dwords = 2 if m[2].endswith("64") else 1
  elif m := re.match(r"(?:SReg|SGPR)_(\d+)", cls): kind, dwords, kind_type = "s", WIDTHS[m[1]], ""
  elif m := re.match(r"(?:VSrcT|VSrcFake16|VSrc|VCSrc)_(v2\w+?(?:16|32)|\w+?\d+)(?:_|$)", cls):
    kind, kind_type = "v", m[1]
    dwords = 2 if m[1].endswith("64") or m[1].startswith("v2") and m[1].endswith("32") else 1
  elif m := re.match(r"AISrc_(\d+)_(\w+)$", cls): kind, dwords, kind_type = "y", WIDTHS[m[1]], m[2]
  elif m := re.match(r"VISrc_(\d+)_(f64)$", cls): kind, dwords, kind_type = "v", WIDTHS[m[1]], m[2]
  elif m := re.match(r"A(?:Dst|RegSrc)_(\d+)", cls): kind, dwords, kind_type = "a", WIDTHS[m[1]], ""
  elif m := re.match(r"(?:VRegSrc|VISrc|AVLdSt|AVSrc|AVDst|VReg|VDst|VRegOrLdsSrc|VGPR|VGPRSrc)_(\d+)", cls):
    kind, dwords, kind_type = "v", WIDTHS.get(m[1], 1), ""
  elif cls.startswith(("VOPDstOperand", "VOPDDst", "ExpSrc")): kind, dwords, kind_type = "v", 1, ""
  else: kind, dwords, kind_type = "i", 0, cls
  if kind == "v" and width == 9: kind = "p" if cls.startswith(("VReg", "VGPR")) else "x"
  return kind, dwords, kind_type


def _first_word(text: str) -> str:
  """The mnemonic that a text begins with. Raises LayoutError where there is none."""
  found = re.match(r"[a-z0-9_]+", text)
  if found is None: raise LayoutError("no mnemonic", where=repr(text))
  return found[0]


def mnemonic_of(text: str) -> str:
  """The mnemonic of an assembly text, without the name of an encoding."""
  return re.sub(r"_(e32|e64)$", "", _first_word(text))


def build(name: str, record: dict[str, Any], generation: str, loose: int = -1) -> Row:
  """One LLVM record as a row. Fixed bits that are not in `loose` are ignored in decoding and set in encoding."""
  mask, value = int(record["mask"], 16), int(record["val"], 16)
  # Rows without soffset leave the bit that announces it open; a row with soffset and the bit is the other meaning.
  if "SOffsetEn" in record["fields"] and {"offset", "soffset"} & set(record["fields"]):
    mask |= 1 << record["fields"]["SOffsetEn"][0][0]
  mask &= loose
  family = family_of(value & 0xFFFFFFFF, generation)
  text = record["asm"]
  size = record["size"]
  mnemonic = " :: ".join(_first_word(part) for part in text.split(" :: "))
  template = " :: ".join(re.sub(r"^[a-z0-9_]+", "@", part) for part in text.split(" :: "))
  if "BVH" in name: template = template.replace("$a16", " a16" if "_a16" in name else "")
  mnemonic = re.sub(r"_(e32|e64)$", "", mnemonic)
  if m := re.search(r"_(e32|e64)$", _first_word(text)):
    template = template.replace("@", "@{_" + m[1] + "}", 1)
  given = [(role, c, n) for role, io in (("d", "outs"), ("s", "ins")) for c, n in operands(record[io])]
  variant = variant_of(name, generation)
  if variant == "nsa":  # the addresses after the first are in a dword of their own, which LLVM's records leave out
    more = [n for _, _, n in given if re.fullmatch(r"vaddr[1-4]", n)]
    record = record | {"fields": record["fields"] | {n: [[64 + 8 * k, 0, 8]] for k, n in enumerate(more)}}
    size = 12
  if size == 16: template = template.replace("$src0_modifiers$src1_modifiers", "$op_sel$op_sel_hi")  # of the scales
  sext = {n for _, c, n in given if variant == "sdwa" and c.startswith(("Int", "Bin"))}
  fields = normal_fields(record["fields"], family, sext)
  # Integer sources in encodings whose modifiers are those of floats: LLVM shows neg as sext() and abs not at all.
  extended = {n for _, c, n in given if c.startswith("Int") and n not in sext and "$" + n in text}
  specs = []
  halves = family in {"VOP1", "VOP2", "VOPC", "VOP3"} and generation in HALVES
  opsel = family == "VOP3" and "sdst" not in fields or "v_cmp" in mnemonic and family == "VOP3"
  any16 = False
  for role, cls, operand in given:
    if operand.endswith("_modifiers") or operand == "old": continue
    pieces = fields.get(operand)
    if pieces is None: continue  # tied to another operand, or a modifier that has fields of its own
    kind, dwords, kind_type = operand_kind(cls, sum(w for _, _, w in pieces))
    if cls.startswith("VISrc"):  # gfx11's have types that are not those of their matrices, and may be scalars
      kind, kind_type = ("z", kind_type) if "_mfma_" in mnemonic else (kind, "")
    if cls.startswith("AV") and ("acc" in fields or pieces[-1][1] == ACC): kind = "g"
    if generation in HALVES and any(operand in names and re.fullmatch(m, mnemonic) for m, names in SIXTEEN_BIT_SOURCES):
      kind_type = "b16"
    half = ""
    if kind in "vxp" and halves and dwords == 1:
      typed16 = kind_type[-2:] == "16" and not kind_type.startswith("v2")
      is16 = typed16 if kind_type else sixteen_bit(mnemonic, role)
      if is16:
        any16 = True
        half = "o" if family == "VOP3" else "h"
        if not kind_type: kind_type = "b16"
    if operand + "_modifiers" in extended: half += "e"
    if mnemonic == "s_version" and kind == "i": kind_type = "Version"
    specs.append(f"{operand}:{role}:{kind}:{dwords}:{kind_type}:{half}")
  if any16 and opsel and "op_sel" not in "".join(fields):  # LLVM 19 knows no halves for this one; the hardware does
    free = [(11 + k, k, 1) for k in range(4)]
    mask &= ~(15 << 11)
    fields["op_sel"] = free
  return Row(name, mnemonic, variant, family, size, mask, value, fields, specs, template,
             record["uses"], record["defs"], record["mayLoad"] == 1, record["mayStore"] == 1)


def filled(row: Row) -> Row:
  """Bits that the decoder ignores and that LLVM's assembler sets all the same, in `value` outside of `mask`.

  The unused destination of RDNA's v_cmpx says EXEC, which it writes; op_sel_hi of sources that a packed instruction
  does not have, or whose halves it does not choose, has its default of one.
  """
  free = ~row.mask & ~sum((1 << w) - 1 << at for pieces in row.fields.values() for at, _, w in pieces)
  fill = 0
  if row.family == "VOP3" and row.mnemonic.startswith("v_cmpx_") and "sdst" not in row.fields: fill = 126
  if row.family == "VOP3P" and row.size == 8: fill = 1 << 14 | 3 << 59
  return replace(row, value=row.value | fill & free & (1 << row.size * 8) - 1)


def split_return(row: Row) -> Row:
  """The bit by which an atomic returns the old value belongs to the opcode; some rows of LLVM have it in cpol."""
  if "_atomic_" not in row.mnemonic or "cpol" not in row.fields or row.mnemonic.startswith("image_"): return row
  fixed, value, pieces = 0, 0, []
  for position, bit, width in row.fields["cpol"]:
    if bit == 0:
      fixed, value = 1 << position, int(any(o.split(":")[1] == "d" for o in row.operands)) << position
      position, bit, width = position + 1, 1, width - 1
    if width: pieces.append((position, bit, width))
  fields = {**row.fields, "cpol": pieces}
  kept = row.operands if pieces else [o for o in row.operands if not o.startswith("cpol:")]
  if not pieces: del fields["cpol"]
  return replace(row, mask=row.mask | fixed, value=row.value | value, fields=fields, operands=kept)


def of_formats(row: Row) -> Row:
  """How wide A and B are goes by their formats, which are fields: the bits that say it are fixed, too."""
  found = re.search("_F8F6F4_(f[864])_(f[864])_", row.name)
  for field, width in zip(("cbsz", "blgp"), found.groups() if found else ()):
    (at, _, _), = row.fields[field]
    mask, value = MATRIX_FORMATS[width]
    row = replace(row, mask=row.mask | mask << at, value=row.value | value << at)
  return row


def split_dpp8(row: Row) -> list[Row]:
  """LLVM keeps the DPP8 marker as a 9-bit `fi` field; here each marker is a row of its own."""
  if "dpp8" not in row.fields: return [row]
  fields = dict(row.fields)
  (position, _, width), = fields.pop("fi")
  fixed = ((1 << width) - 1) << position
  kept = [o for o in row.operands if not o.startswith("fi:")]
  return [replace(row, variant=row.variant + suffix, mask=row.mask | fixed, value=row.value | marker << position,
                  fields=fields, operands=kept, text=row.text.replace("$fi", " fi:1" if suffix else ""))
          for marker, suffix in DPP8_MARKERS]


def check(row: Row) -> None:
  """Fields must not overlap, pass the end or touch fixed bits; every bit must be fixed or declared."""
  seen = row.mask
  for name, pieces in row.fields.items():
    for position, _, width in pieces:
      bits = ((1 << width) - 1) << position
      if seen & bits: raise LayoutError(f"{row.name}.{name} overlaps at bit {position}")
      seen |= bits
  if seen >> (row.size * 8): raise LayoutError(f"{row.name}: a field passes the end")


def added(records: dict[str, Any], row: Erratum) -> dict[str, Any]:
  """The record of an instruction that the dump lacks: one that it is like, with what differs. Raises LayoutError."""
  if row.what in records: raise LayoutError(f"{row.what} is in the dump now", hint="review its erratum")
  given = json.loads(row.now)
  return dict(records[given.pop("like")] | given)


def ignoring(generation: str) -> dict[str, int]:
  """Bits that LLVM's records of a generation fix and that the chip ignores (autogen/amdgcn_ignored.py)."""
  return {name: mask for mask, names in IGNORED[generation].items() for name in names.split()}


def ignored_too(rows: list[Row], generation: str) -> list[Row]:
  """The rows with the bits that chips are recorded to ignore and LLVM refuses (autogen/errata/ignored_*.toml) taken out
  of their masks. Raises LayoutError for an erratum that is of no row, or of bits that a row has not as zeros."""
  for erratum in errata(f"ignored_{generation}"):
    mask, found = int(erratum.now, 0), False
    for k, row in enumerate(rows):
      if not re.fullmatch(erratum.what, row.name): continue
      if row.mask & mask != mask or row.value & mask:
        raise LayoutError(f"{row.name} has other bits than zeros in {mask:#x}", hint="review its erratum")
      rows[k], found = replace(row, mask=row.mask & ~mask), True
    if not found: raise LayoutError(f"no row is called {erratum.what}", hint="review its erratum")
  return rows


def scalars_refused(row: Row) -> Row:
  """The row of a DPP instruction whose second source is a vector register alone."""
  if not re.fullmatch("(e64_)?dpp8?(_fi)?", row.variant): return row
  return replace(row, operands=[re.sub(r"^(src1:s):x:", r"\1:p:", spec) for spec in row.operands])


def select(records: dict[str, Any], generation: str, ignored: Mapping[str, int] | None = None,
           member: str = "") -> list[Row]:
  """The rows of a generation: real 16-bit rows win over LLVM's 'fake' ones, wave32 over wave64.

  A wave64 row that has more in its fields (the index keys of sparse products) stays as the variant "w64", for the words
  that the wave32 row leaves.
  Left out: gfx12's `_format` rows, which decode a field that the named rows hold fixed. Added: those of the errata.
  Bits that the chip ignores (`ignored`, by record; those of autogen unless given) are taken out of the rows' masks.
  With a later `member` of the generation, the rows are those of that one.
  """
  recorded = ignored is None
  if ignored is None: ignored = ignoring(generation)
  if member in GONE: records = {n: r for n, r in records.items() if not re.match(GONE[member], r["asm"])}
  records = records | {row.what: added(records, row) for row in errata(f"amdgcn_{generation}")}
  rows: dict[tuple[str, str, int, int], Row] = {}
  order = [space for space in NAMESPACES[generation] if space not in SPACES_LACKING.get(member, ())]
  left_out = LEFT_OUT[generation] - (LATER[generation][member] if member else set()) | LACKING.get(member, set())
  wanted = {n: r for n, r in records.items() if r["ns"] in order and not left_out & set(r["pred"])}
  for name, record in sorted(wanted.items(), key=lambda r: (
      "fake16" in r[0], "w64" in r[0].lower(), generation not in HALVES and order.index(r[1]["ns"]), r[0])):
    # RDNA4's images have one address form here, the list; LLVM has another for one address in the same words
    if name.endswith("_format") or name.startswith("IMAGE_") and generation == "gfx12" and "[" not in record["asm"]:
      continue
    loose = int(records[name + "_format"]["mask"], 16) if name + "_format" in records else -1
    for row in map(filled, map(split_return, split_dpp8(build(name, record, generation, loose)))):
      if row.mnemonic in ALIASES.get(generation, ()): continue
      check(row)
      row = of_formats(row)
      kept = rows.setdefault((row.mnemonic, row.variant, row.size, row.value), row)
      if "w64" in name and kept.mask & row.mask == row.mask != kept.mask:
        rows[row.mnemonic, "w64", row.size, row.value] = replace(row, variant="w64")
      elif kept is not row and kept.mask != row.mask and "fake16" not in name and "w64" not in name:
        raise LayoutError(f"{name} and {kept.name} differ and share a key")
  found = [replace(row, mask=row.mask & ~ignored.get(row.name, 0)) for row in rows.values()]
  if recorded: found = ignored_too(found, generation)
  return found if (member or generation) in DPP_SCALAR_SOURCE else [scalars_refused(row) for row in found]


def overlap(a: Row, b: Row) -> bool:
  """Whether one instruction word can match both rows."""
  both = a.mask & b.mask
  return a.value & both == b.value & both


def arrange(rows: list[Row]) -> dict[str, tuple[int, dict[int, list[Row]]]]:
  """family -> (opcode mask of the first dword, opcode bits -> rows, the most specific first)."""
  out: dict[str, tuple[int, dict[int, list[Row]]]] = {}
  first = {a for a, _ in FIRST}
  for family in dict.fromkeys(r.family for r in rows):
    mine = [r for r in rows if r.family == family]
    opmask = 0xFFFFFFFF
    for r in mine: opmask &= r.mask
    table: dict[int, list[Row]] = {}
    for r in mine: table.setdefault(r.value & opmask, []).append(r)
    for candidates in table.values():
      candidates.sort(key=lambda r: (r.variant not in first, -r.mask.bit_count()))
      for i, a in enumerate(candidates):
        for b in candidates[i + 1:]:
          if not overlap(a, b): continue
          if (a.variant, b.variant) in MORE_SPECIFIC and a.mask & b.mask == b.mask & (1 << a.size * 8) - 1: continue
          if (a.variant, b.variant) in FIRST | MARKED: continue
          raise LayoutError(f"{a.name} and {b.name} match the same word")
    out[family] = (opmask, table)
  return out


def emit(rows: list[Row], generation: str, source: Path, later: Mapping[str, list[Row]] | None = None,
         dumps: Mapping[str, Path] | None = None) -> str:
  """The module's text; `later` are all rows of later members, of which those that differ are written, `dumps` where
  their own records come from."""
  shared: dict[str, dict[str, int]] = {k: {} for k in ("fields", "operands", "texts", "effects")}

  def number(kind: str, text: str) -> int: return shared[kind].setdefault(text, len(shared[kind]))

  def cells(candidates: list[Row]) -> str:
    out = []
    for r in candidates:
      layout = " ".join(n + "=" + ",".join(":".join(map(str, p)) for p in ps) for n, ps in r.fields.items())
      effects = f"{' '.join(r.uses)}|{' '.join(r.defs)}|{'L' * r.load}{'S' * r.store}"
      numbers = (number("fields", layout), number("operands", " ".join(r.operands)), number("texts", r.text),
                 number("effects", effects))
      out.append(f"{r.mnemonic};{r.variant};{r.size};{r.mask:x};{r.value:x};{';'.join(map(str, numbers))}")
    return "\n".join(out)

  own = {family: (opmask, {opcode: cells(found) for opcode, found in sorted(table.items())})
         for family, (opmask, table) in sorted(arrange(rows).items())}
  lines: list[str] = []
  for family, (opmask, texts) in own.items():
    lines.append(f"  {family!r}: ({opmask:#010x}, {{")
    lines += [f"    {opcode:#x}: {text!r}," for opcode, text in texts.items()]
    lines.append("  }),")
  more = ["# Rows that later members of the generation have instead, or beside."] if later else []
  more.append("LATER: dict[str, dict[str, dict[int, str]]] = {")
  for member, its_rows in (later or {}).items():
    more.append(f"  {member!r}: {{")
    for family, (opmask, table) in sorted(arrange(its_rows).items()):
      if opmask != own[family][0]: raise LayoutError(f"opcodes of {family} have other bits", where=member)
      members = {opcode: cells(found) for opcode, found in sorted(table.items())}
      differ = {opcode: text for opcode, text in members.items() if own[family][1].get(opcode) != text}
      differ |= {opcode: "" for opcode in own[family][1] if opcode not in members}
      if differ: more += [f"    {family!r}: {{", *(f"      {k:#x}: {text!r}," for k, text in differ.items()), "    },"]
    more.append("  },")
  more.append("}")
  digest = hashlib.sha256(source.read_bytes()).hexdigest()
  prefixes = ", ".join(f"({n!r}, {p!r})" for n, p in FAMILIES[generation])
  head = [
    f'"""{generation} instruction table. Generated, do not edit.',
    "",
    "Source: LLVM 19 lib/Target/AMDGPU (llvm-tblgen --dump-json of AMDGPU.td, Debian llvm-toolchain-19), compacted.",
    "Licence: Apache-2.0 WITH LLVM-exception.",
    f"Input sha256: {digest} ({source.name}).",
    *(f"Rows of {member} alone: {SOURCES[member]} ({path.name}), "
      f"sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}." for member, path in (dumps or {}).items()),
    "Bits of unused sources are ignored: autogen/amdgcn_ignored.py has them, and their source.",
    "Generator: tools/gen/amdgcn.py",
    *([f"Corrections: autogen/errata/amdgcn_{generation}.toml"] if errata(f"amdgcn_{generation}") else []),
    '"""',
    "from __future__ import annotations",
    "",
    f"FAMILIES = ({prefixes})",
    "# A row: mnemonic;variant;bytes;mask;value;layout;operands;text;effects (numbers index the tuples below).",
    "# Bits of a value outside of its mask are ignored in decoding and set in encoding.",
    "ROWS = {", *lines, "}", *more,
  ]
  for kind, known in shared.items(): head += [f"{kind.upper()} = (", *(f"  {t!r}," for t in known), ")"]
  return "\n".join(head) + "\n"


def dump(path: Path) -> dict[str, Any]:
  """The records of a file, .xz or plain."""
  with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as file:
    found: dict[str, Any] = json.loads(file.read())
  return found


def module(records: dict[str, Any], generation: str, source: Path, later: Mapping[str, Path] | None = None) -> str:
  """The text of a generation's module, later members included; `later` are the dumps of those that DUMPS names."""
  more = {member: path for member, path in (later or {}).items() if member in LATER.get(generation, ())}
  members = {member: select(records | (dump(more[member]) if member in more else {}), generation, member=member)
             for member in LATER.get(generation, ()) if member not in DUMPS or member in more}
  return emit(select(records, generation), generation, source, members, more)


def main(arguments: list[str]) -> int:
  """SOURCE GENERATION OUTPUT."""
  source, generation, output = Path(arguments[0]), arguments[1], Path(arguments[2])
  records = dump(source)
  rows = select(records, generation)
  beside = {member: source.with_name(name) for member, name in DUMPS.items() if source.with_name(name).exists()}
  output.write_text(module(records, generation, source, beside))
  print(f"{output}: {len(rows)} rows, {len({r.mnemonic for r in rows})} mnemonics")
  return 0


if __name__ == "__main__": raise SystemExit(main(sys.argv[1:]))
