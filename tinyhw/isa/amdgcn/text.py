"""Text of AMD GPU instructions, in LLVM's form."""
from __future__ import annotations

import re
import struct
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final

from tinyhw.isa.amdgcn.codes import AGPR0, CODES, INLINE_FLOATS, NULL, TTMP0, VCC_LO
from tinyhw.isa.amdgcn.images import DIMENSIONS, IMAGES
from tinyhw.isa.amdgcn.names import (
  DATA_FORMATS,
  FORMATS,
  INDEXED,
  NAMES,
  NUMBER_FORMATS,
  SELECTIONS,
  TARGETS,
  UNUSED,
  VERSION_FLAGS,
  VERSIONS,
  Names,
)

if TYPE_CHECKING:
  from tinyhw.isa.amdgcn.model import Instruction, Operand, Row

INTEGER16: Final = frozenset({"i16", "b16"})
# 16-bit instructions that LLVM writes with the halves of their registers (v1.l) always; it has no other form of them.
HALVES: Final = frozenset({"v_mov_b16", "v_swap_b16"})
# Instructions whose op_sel has a bit of a third source that the text does not name.
THIRD_SOURCE: Final = frozenset({"v_fmac_f16", "v_cvt_sr_fp8_f32", "v_cvt_sr_bf8_f32"})
Printer = Callable[["Instruction", int], str]

# Of a template: the mnemonic with its own suffix, and whether operands follow; a key.
NAME: Final = re.compile(r"(?a)@(?:\{(\w+)\})?(?=(\$)?)")
KEY: Final = re.compile(r"(?a)\$(\w+)")
SPACES: Final = re.compile(r" {2,}")
DELAYS: Final = ("NO_DEP", "VALU_DEP_1", "VALU_DEP_2", "VALU_DEP_3", "VALU_DEP_4", "TRANS32_DEP_1", "TRANS32_DEP_2",
                 "TRANS32_DEP_3", "FMA_ACCUM_CYCLE_1", "SALU_CYCLE_1", "SALU_CYCLE_2", "SALU_CYCLE_3")
SKIPS: Final = ("SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4")


def _range(letter: str, first: int, dwords: int) -> str:
  return f"{letter}{first}" if dwords <= 1 else f"{letter}[{first}:{first + dwords - 1}]"


def scalar_name(code: int, dwords: int, isa: str = "gfx11") -> str:
  """A scalar register or special operand by its code. Groups start at a multiple of two or four, as LLVM shows them."""
  specials = CODES[isa].specials
  if code < VCC_LO and code in specials: return specials[code].removesuffix("_lo" if dwords == 2 else "")
  if code < VCC_LO or TTMP0 <= code < NULL: code &= -4 if dwords > 2 else -2 if dwords == 2 else -1
  if code < VCC_LO: return _range("s", code, dwords)
  if code == VCC_LO and dwords == 2: return "vcc"
  if code == 126 and dwords == 2: return "exec"
  if TTMP0 <= code < NULL: return _range("ttmp", code - TTMP0, dwords)
  return specials[code]


def constant(code: int, type_: str) -> str:
  """An inline constant as LLVM prints it."""
  if code <= 192: return str(code - 128)
  if code <= 208: return str(192 - code)
  if code == 248 and type_ in INTEGER16: return "0x3118"
  if code == 248: return "0.15915494309189532" if type_.endswith("64") else "0.15915494"
  if type_ in INTEGER16:
    return hex(struct.unpack("<H", struct.pack("<e", INLINE_FLOATS[code]))[0])
  return f"{INLINE_FLOATS[code]:.1f}"


def _signed(value: int, bits: int) -> int: return value - (1 << bits) if value >> bits - 1 else value


FLOATS32: Final = {struct.unpack("<I", struct.pack("<f", v))[0]: k for k, v in INLINE_FLOATS.items()}
FLOATS16: Final = {struct.unpack("<H", struct.pack("<e", v))[0]: k for k, v in INLINE_FLOATS.items()}


def literal(value: int, type_: str) -> str:
  """A literal as LLVM prints it: a number that has an inline code looks like that, 16-bit types show 16 bits."""
  if type_ == "f64": return hex(value)  # the upper half of the double
  if type_[-2:] == "64": return str(value) if value <= 64 else hex(value)
  if type_ in INTEGER16 and value in FLOATS32: return constant(FLOATS32[value], "b32")
  half = type_[-2:] == "16" and not type_.startswith("v2")
  if type_ in INTEGER16:  # what is a small number only in its lower 16 bits would be read back as another code
    signed = _signed(value, 32)
    return str(signed) if -16 <= signed <= 64 else hex(value & 0xFFFF)
  bits = 16 if half else 32
  value &= (1 << bits) - 1
  signed = _signed(value, bits)
  if -16 <= signed <= 64: return str(signed)
  if type_ == "v2bf16": return hex(value)  # LLVM 19 has no inline form of these
  floats = FLOATS16 if half or type_ == "v2f16" else FLOATS32
  return constant(floats[value], type_) if value in floats else hex(value)


def operand(o: Operand, isa: str = "gfx11", halves: bool = True) -> str:
  """An operand without modifiers. `halves`: 16-bit operands are v1.l or v1.h, else v1."""
  if o.kind == "v":
    if o.half is not None and halves: return f"v{o.value}.{'lh'[o.half]}"
    return _range("a" if o.value >= AGPR0 else "v", o.value % AGPR0, o.dwords)
  if o.kind == "s": return scalar_name(o.value, o.dwords or CODES[isa].mask_dwords, isa)
  if o.kind == "const": return constant(o.value, o.type)
  return literal(o.value, o.type) if o.kind == "lit" else hex(o.value)


def _halves(i: Instruction, true16: bool) -> bool:
  """Whether registers are shown by their halves: where the text has nothing else to tell v1.h from v1.

  Long encodings say it with op_sel; the short ones have no other way, but need it for upper halves only.
  """
  if true16 or i.mnemonic in HALVES: return True
  return i.family != "VOP3" and any(o.half for o in i.operands.values())


def _source(i: Instruction, name: str, halves: bool) -> str:
  """A source with its neg and abs modifiers."""
  o = i.operands[name]
  k = int(name[3])
  text = operand(o, i.row.isa, halves)
  if i.get("sext") >> k & 1: return f"sext({text})"
  if name in i.row.extended: return f"sext({text})" if i.get("neg") >> k & 1 else text
  neg, absolute = i.get("neg", i.get("neg_lo")) >> k & 1, i.get("abs", i.get("neg_hi")) >> k & 1
  if absolute: text = f"|{text}|"
  if neg: text = f"-{text}" if o.kind in "vs" or absolute else f"neg({text})"
  return text


def op_sel_bits(row: Row) -> int:
  """How many sources op_sel and its kin have a bit for."""
  return sum(o[0].startswith("src") for o in row.operands) + (row.mnemonic in THIRD_SOURCE)


def _packed(i: Instruction, name: str, default: int, halves: bool) -> str:
  if name not in i.fields: return ""
  count = op_sel_bits(i.row)
  bits = [i.fields[name] >> k & 1 for k in range(count)]
  if name == "op_sel" and i.family == "VINTERP": bits += [i.fields[name] >> 3 & 1]
  if i.mnemonic.startswith("v_permlane"): bits = bits[:2]  # whether inactive lanes are read, and lanes beyond the row
  elif name == "op_sel" and i.family == "VOP3":
    bits += [i.fields[name] >> 3 & 1] if "vdst" in i.operands else []
    if halves and not any(b and i.operands[f"src{k}"].half is None for k, b in enumerate(bits[:count])):
      return ""  # registers are printed as v1.h
  if all(b == default for b in bits): return ""
  return f" {name}:[{','.join(map(str, bits))}]"


def _hwreg(i: Instruction, value: int) -> str:
  ident, offset, size = value & 63, value >> 6 & 31, (value >> 11 & 31) + 1
  name = NAMES[i.table].hwregs.get(ident, str(ident))
  return f"hwreg({name})" if (offset, size) == (0, 32) else f"hwreg({name}, {offset}, {size})"


def _waitcnt(i: Instruction, value: int) -> str:
  parts, top = [], []
  for name, pieces in NAMES[i.table].counters.items():
    count = sum((value >> at & (1 << w) - 1) << bit for at, bit, w in pieces)
    parts.append(f"{name}({count})")
    top.append(count == (1 << sum(w for _, _, w in pieces)) - 1)
  return " ".join(p for p, t in zip(parts, top, strict=True) if not t) or " ".join(parts)


def _delay(value: int) -> str:
  first, skip, second = value & 15, value >> 4 & 7, value >> 7 & 15
  if first >= len(DELAYS) or second >= len(DELAYS) or skip >= len(SKIPS): return hex(value)
  parts = [f"instid0({DELAYS[first]})"] if first else []
  if skip: parts.append(f"instskip({SKIPS[skip]})")
  if second: parts.append(f"instid1({DELAYS[second]})")
  return " | ".join(parts) or "0"


# Fields of s_waitcnt_depctr: (name, first bit, bits); all ones is the default (LLVM AMDGPUUsage, "depctr").
DEPCTR: Final = (("hold_cnt", 7, 1), ("sa_sdst", 0, 1), ("va_vdst", 12, 4), ("va_sdst", 9, 3), ("va_ssrc", 8, 1),
                 ("va_vcc", 1, 1), ("vm_vsrc", 2, 3))


def _depctr(value: int) -> str:
  if value & 0x60: return hex(value)  # bits that no counter has
  top = [(n, value >> at & (1 << w) - 1, (1 << w) - 1) for n, at, w in DEPCTR]
  parts = [f"depctr_{n}({v})" for n, v, default in top if v != default]
  return " ".join(parts) or "0xffff"


def _small(value: int) -> str:
  """Inline constants are shown in decimal, other numbers in hex."""
  return str(value) if value <= 64 else hex(value)


def _message(i: Instruction, value: int) -> str:
  names = NAMES[i.table]
  if names.operations: return _staged_message(names, value)
  name = names.messages.get(value & 0xFF)
  if name is None and value > 0xFF: return str(value)
  return f"sendmsg({name or f'{value}, 0, 0'})"


def _staged_message(names: Names, value: int) -> str:
  """A message of gfx9: an id in 4 bits, an operation in 3 and a stream in 2."""
  ident, operation, stream = value & 15, value >> 4 & 7, value >> 8 & 3
  name = names.messages.get(ident)
  known = names.operations.get(name, {}) if name else {}
  streamed = known and name != "MSG_SYSMSG" and operation > 0
  if name and (operation in known if known else not operation) and (streamed or not stream):
    rest = ([known[operation]] if known else []) + ([str(stream)] if streamed else [])
    return f"sendmsg({', '.join([name, *rest])})"
  return str(value) if value & ~0x37F else f"sendmsg({ident}, {operation}, {stream})"


def _version(value: int) -> str:
  """s_version's microcode version: a number in 8 bits and three flags."""
  if value & 0x1F00: return hex(value)
  text = VERSIONS.get(value & 0xFF, str(value & 0xFF))
  for k, flag in enumerate(n for bit, n in VERSION_FLAGS if value & bit):
    text = f"{f'({text})' if k else text}|{flag}"
  return text


def _target(value: int) -> str: return TARGETS.get(value, f"invalid_target_{value}")


def _simm16(i: Instruction, value: int) -> str:
  kind = i.operands["simm16"].type
  if kind == "SWaitCnt": return _waitcnt(i, value)
  if kind == "SDelayALU": return _delay(value)
  if kind == "hwreg": return _hwreg(i, value)
  if kind == "SendMsg": return _message(i, value)
  if kind == "Endpgm": return f" {value}" if value else ""
  if kind == "SOPPBrTarget": return str(value)
  if kind == "DepCtr": return _depctr(value)
  if kind == "GPRIdxMode": return _indexed(value)
  if kind == "Version": return _version(value)
  return _small(value) if kind in {"i16imm", "i32imm"} else hex(value)


def signed_offset(row: Row, kind: str) -> bool:
  """Whether an address offset of this kind has a sign."""
  names = NAMES[row.isa]
  return ("SMEM" in kind or row.family == "MUBUF" and names.scoped
          or kind == "flat_offset" and (names.flat_signed or not row.mnemonic.startswith("flat_")))


def _offset(i: Instruction, value: int) -> str:
  kind, names = i.operands["offset"].type, NAMES[i.table]
  if kind == "SMEMOffset": return hex(_signed(value, names.scalar_bits))
  if kind in {"SMEMOffsetMod", "OptSMEMOffsetMod"}:
    return f" offset:{hex(_signed(value, names.scalar_bits))}"
  if signed_offset(i.row, kind): value = _signed(value, names.flat_bits)
  if kind == "Swizzle": return f" offset:{_swizzle(value)}" if value else ""
  return f" offset:{value}" if value else ""


def _swizzle(value: int) -> str:
  if value >> 15:
    if value & 0x7F00: return str(value)
    return f"swizzle(QUAD_PERM,{','.join(str(value >> 2 * k & 3) for k in range(4))})"
  and_mask, or_mask, xor_mask = value & 31, value >> 5 & 31, value >> 10 & 31
  if and_mask == 31 and or_mask == 0 and xor_mask.bit_count() == 1: return f'swizzle(SWAP,{xor_mask})'
  if and_mask == 31 and or_mask == 0 and xor_mask and xor_mask & xor_mask + 1 == 0:
    return f"swizzle(REVERSE,{xor_mask + 1})"
  group = 32 - and_mask
  if group > 1 and group & group - 1 == 0 and or_mask < group and not xor_mask:
    return f"swizzle(BROADCAST,{group},{or_mask})"
  zero, one = or_mask ^ xor_mask, (and_mask | or_mask) ^ xor_mask  # what a lane bit of 0 and of 1 becomes
  letters = "".join("0pi1"[2 * (zero >> k & 1) + (one >> k & 1)] for k in range(4, -1, -1))
  return f'swizzle(BITMASK_PERM,"{letters}")'


# Lane patterns without one; those of waves and broadcasts are gfx9's.
DPP_PATTERNS: Final = {0x130: "wave_shl:1", 0x134: "wave_rol:1", 0x138: "wave_shr:1", 0x13C: "wave_ror:1",
                       0x140: "row_mirror", 0x141: "row_half_mirror", 0x142: "row_bcast:15", 0x143: "row_bcast:31"}


def _dpp_ctrl(i: Instruction, value: int) -> str:
  if value < 0x100: return f"quad_perm:[{','.join(str(value >> 2 * k & 3) for k in range(4))}]"
  base = value & 0x1F0
  rows = NAMES[i.table].dpp_rows
  if base in rows: return f"{rows[base]}:{value & 15}"
  return DPP_PATTERNS.get(value, hex(value))


def _dpp8(value: int) -> str: return f"dpp8:[{','.join(str(value >> 3 * k & 7) for k in range(8))}]"


def _cpol(i: Instruction, value: int) -> str:
  names = NAMES[i.table]
  if names.scoped:
    kind = "ATOMIC" if "_atomic_" in i.mnemonic else "STORE" if i.row.stores and not i.row.loads else "LOAD"
    hint, scope = value & 7, value >> 3
    return (f" th:{names.hint(kind, hint, scope)}" if hint else "") + (f" scope:{names.scopes[scope]}" if scope else "")
  value |= i.row.returns
  return "".join(f" {name}" for name, bit in names.policy(i.family) if value & bit)


def _format(i: Instruction, value: int) -> str:
  """The format of a tbuffer instruction."""
  if value == 1: return ""
  if NAMES[i.table].two_formats:
    data, number = value & 15, value >> 4
    parts = [f"BUF_DATA_FORMAT_{DATA_FORMATS[data]}"] if data != 1 else []
    return f" format:[{','.join(parts + ([f'BUF_NUM_FORMAT_{NUMBER_FORMATS[number]}'] if number else []))}]"
  return f" format:[BUF_FMT_{FORMATS[value]}]" if value < len(FORMATS) else f" format:{value}"


def _blgp(i: Instruction, value: int) -> str:
  """B's lane pattern of a matrix instruction; those of f64 have negations there."""
  if not value: return ""
  if "_f64_" not in i.mnemonic or not NAMES[i.table].negated: return f" blgp:{value}"
  return f" neg:[{','.join(str(value >> k & 1) for k in range(3))}]"


def _indexed(value: int) -> str:
  """Which operands of vector instructions M0 indexes."""
  return hex(value) if value > 15 else f"gpr_idx({','.join(n for k, n in enumerate(INDEXED) if value >> k & 1)})"


MODIFIERS: Final[dict[str, Printer]] = {
  "clamp": lambda i, v: " clamp" * v,
  "omod": lambda i, v: ("", " mul:2", " mul:4", " div:2")[v],
  "cpol": _cpol,
  "gds": lambda i, v: " gds" * (v and NAMES[i.table].gds),  # gfx942 has no GDS: the bit means nothing
  "offset": _offset,
  "offset0": lambda i, v: f" offset0:{v}" if v else "",
  "offset1": lambda i, v: f" offset1:{v}" if v else "",
  "simm16": _simm16,
  "imm": lambda i, v: literal(v, "i32") if i.family == "SOPK" else hex(v),
  "immDeferred": lambda i, v: hex(v),
  "dpp_ctrl": _dpp_ctrl,
  "dpp8": lambda i, v: _dpp8(v),
  "row_mask": lambda i, v: f" row_mask:{v:#x}",
  "bank_mask": lambda i, v: f" bank_mask:{v:#x}",
  "bound_ctrl": lambda i, v: " bound_ctrl:1" * v,
  "fi": lambda i, v: " fi:1" * v,
  "format": _format,
  "cbsz": lambda i, v: f" cbsz:{v}" if v else "",
  "abid": lambda i, v: f" abid:{v}" if v else "",
  "blgp": _blgp,
  "bitop3": lambda i, v: f" bitop3:{v:#x}" if v else "",
  "dst_sel": lambda i, v: f"dst_sel:{SELECTIONS[v]}",
  "src0_sel": lambda i, v: f"src0_sel:{SELECTIONS[v]}",
  "src1_sel": lambda i, v: f"src1_sel:{SELECTIONS[v]}",
  "dst_unused": lambda i, v: f"dst_unused:{UNUSED[v]}",
  "waitexp": lambda i, v: f" wait_exp:{v}",
  "waitvdst": lambda i, v: f" wait_va_vdst:{v}" if "waitvsrc" in i.fields else f" wait_vdst:{v}",
  "attr": lambda i, v: f"attr{v}",
  "attrchan": lambda i, v: f".{'xyzw'[v]}",
  "tgt": lambda i, v: " " + _target(v),
  "sdata": lambda i, v: _small(v),
  "dmask": lambda i, v: f" dmask:{v:#x}" if v else "",
  "dim": lambda i, v: f" dim:{DIMENSIONS[v].name}",
  "unorm": lambda i, v: " unorm" * v,
  "r128": lambda i, v: " r128" * v,
  "a16": lambda i, v: " a16" * v,
  "tfe": lambda i, v: " tfe" * v,
  "lwe": lambda i, v: " lwe" * v,
  "d16": lambda i, v: " d16" * v,
  "byte_sel": lambda i, v: f" byte_sel:{v}" if v else "",
  "index_key_8bit": lambda i, v: f" index_key:{v}" if v else "",
  "index_key_16bit": lambda i, v: f" index_key:{v}" if v else "",
  "waitvsrc": lambda i, v: f" wait_vm_vsrc:{v}",
}


def _addresses(i: Instruction) -> str:
  """The address registers of an image: a list, unless there is one."""
  parts = [operand(o) for n, o in i.operands.items() if n.startswith("vaddr")]
  return parts[0] if len(parts) == 1 else f"[{', '.join(parts)}]"


@cache
def suffix(i: Row) -> str:
  """LLVM names the encoding of instructions that have several."""
  variant = i.variant.removesuffix("_fi")
  if variant == "sdwa": return "_sdwa"
  if variant in {"dpp8", "dpp"}: return "_e64_dpp" if i.family == "VOP3P" else "_dpp"
  if variant.startswith("e64_dpp"): return "_e64_dpp"
  if i.family not in {"VOP1", "VOP2", "VOPC", "VOP3"}: return ""
  forms = {r.variant for r in i.siblings}
  if i.family == "VOP3": return "_e64" if "e32" in forms else ""
  return "_e32" if "e64" in forms or i.mnemonic in NAMES[i.table].suffixed else ""


@cache
def template(i: Row) -> str:
  """The row's text with the VCC that short encodings use or write without an operand."""
  line = i.text.replace(",$format $soffset", ", $soffset$format")
  if i.family in IMAGES: return re.sub(r"\[\$vaddr0[^\]]*\]", "$addresses", line)
  if i.family == "VOP3" and "$op_sel" not in line and any(o[5][:1] == "o" for o in i.operands):
    line = re.sub(r"(?a)(.*\$src\d(?:_modifiers)?)", r"\1$op_sel", line)  # halves that LLVM's own text does not show
  if i.family not in {"VOP2", "VOPC"} or "vcc" in line: return line
  vcc = NAMES[i.table].vcc
  if i.family == "VOPC" and "VCC" in i.defs and "$sdst" not in line:
    return re.sub(r"(?a)@(\{\w+\})? ?", rf"@\1 {vcc}, ", line)
  if "VCC" in i.defs: line = line.replace("$vdst", f"$vdst, {vcc}")
  if "VCC" in i.uses: line = re.sub(r"(\$src1(_modifiers)?)", rf"\1, {vcc}", line)
  return line


@cache
def reads_as_register(row: Row) -> bool:
  """Whether this scalar load without an offset is one with the register `null` as well, and that row fixes more bits.

  LLVM's disassembler then shows the register (gfx11), though its assembler takes either.
  """
  if row.variant != "imm": return False
  return any(r.variant == "sgpr" and not (row.value ^ r.value) & row.mask & r.mask
             and r.mask.bit_count() > row.mask.bit_count() for r in row.siblings)


def text(i: Instruction, *, true16: bool = False) -> str:
  """The instruction as LLVM's disassembler prints it (branch targets as raw offsets).

  With `true16`, 16-bit operands are always called by their halves (v1.l), and loads without an offset show 0x0, as
  LLVM's listing of compiled code for gfx1100 has them.
  """
  names = iter(i.mnemonic.split(" :: "))
  halves = _halves(i, true16)

  def name(match: re.Match[str]) -> str:
    own = next(names)
    if match[1]: return own + match[1]
    return own + (suffix(i.row) if match[2] else "") + (" " if match[2] else "")

  def item(match: re.Match[str]) -> str:
    key = match[1]
    if key in {"op_sel", "neg_lo", "neg_hi"}: return _packed(i, key, 0, halves)
    if key == "op_sel_hi": return _packed(i, key, 0 if "_mix" in i.mnemonic else 1, halves)
    if key == "addresses": return _addresses(i)
    if key.endswith("_modifiers"): return _source(i, key.removesuffix("_modifiers"), halves)
    if key == "vdst" and key not in i.operands: key = "vdata"
    o = i.operands.get(key)
    if key in MODIFIERS and (o is None or o.kind == "imm"):
      return MODIFIERS[key](i, i.get(key if key != "immDeferred" else "imm"))
    assert o is not None, key
    if o.type == "SendMsg": return _message(i, o.value)
    if o.type == "GPRIdxMode": return _indexed(o.value)
    if i.family == "EXP" and not i.get("en") >> int(key[3]) & 1: return "off"
    return operand(o, i.row.isa, halves)

  line = NAME.sub(name, template(i.row))
  if not true16 and not i.get("offset") and reads_as_register(i.row): line = line.replace("$offset", "null")
  return SPACES.sub(" ", KEY.sub(item, line)).rstrip()
