"""Operands of a line: registers, numbers and what is written around them."""
from __future__ import annotations

import re
from functools import cache
from typing import Final

from tinyhw.isa.amdgcn.asm.immediates import SIMM16
from tinyhw.isa.amdgcn.asm.line import AsmLine, Reject
from tinyhw.isa.amdgcn.codes import CODES, INLINE_FLOATS, LITERAL, REGISTERS_ONLY, VGPR0
from tinyhw.isa.amdgcn.text import constant, literal, scalar_name
from tinyhw.isa.amdgcn.values import float_bits, float_code, fraction, inline, number

REGISTERS: Final = r"v(?:(\d+)|\[(\d+)(?::\d+)?\])"
Operand = tuple[str, str, str, int, str, str]


@cache
def scalars(dwords: int, isa: str) -> dict[str, int]:
  """Name -> code of each scalar operand of a size."""
  out: dict[str, int] = {}
  own = {canonical: code for code, canonical in CODES[isa].canonical.items()}
  for code in [*range(128), *(c for c in CODES[isa].specials if c > 127)]:
    try: out.setdefault(scalar_name(code, dwords, isa), own.get(code, code))
    except KeyError: continue
  if dwords == 2: out.setdefault("vcc_lo", 106)
  return out


@cache
def constants(type_: str) -> dict[str, int]:
  """Text -> code of each inline constant for a type."""
  return {constant(c, type_): c for c in (*INLINE_FLOATS, *range(128, 209))}


def register(line: AsmLine, token: str, spec: Operand) -> int | None:
  """Number of a vector register, its half put into op_sel where it belongs there; None for another kind of operand."""
  name, role, kind, dwords, _, half = spec
  half = half.rstrip("e")
  m = re.fullmatch(r"(?a)([av])(?:(\d+)|\[(\d+):(\d+)\])(?:\.([lh]))?", token)
  if m is None: return None
  first = int(m[2] or m[3])
  if (int(m[4]) - first + 1 if m[4] else 1) != max(dwords, 1):
    raise Reject(line.at, f"operand {name}: {token} is not {max(dwords, 1)} registers")
  if kind != "g" and (m[1] == "a") != (kind in "ay"):
    raise Reject(line.at, f"operand {name}: {token} is {'an' if m[1] == 'a' else 'no'} accumulation register")
  if first > (127 if half == "h" else 255): raise Reject(line.at, f"operand {name}: there is no {token}")
  which = int(m[5] == "h")
  if which and not half: raise Reject(line.at, f"operand {name}: {token} names a half, which it does not take")
  if half == "h": first |= which << 7
  if half == "o": line.put("op_sel", which << (3 if role == "d" else int(name[-1])))
  if kind == "g": first = accumulation(line, name, first, m[1] == "a")
  return first


def accumulation(line: AsmLine, name: str, first: int, chosen: bool) -> int:
  """Which kind of register, said by a bit of the operand or of the row: then all data of the row are of one kind."""
  if any(bit == 9 for _, bit, _ in line.row.fields[name]): return first | chosen << 9
  if line.accumulation not in (None, chosen):
    raise Reject(line.at, f"operand {name}: data are vector registers or accumulation registers, not both")
  line.accumulation = chosen
  if chosen: line.fields["acc"] = 1
  return first


def operand(line: AsmLine, token: str, spec: Operand) -> None:
  """One register, constant or literal."""
  name, _, kind, dwords, type_, _ = spec
  what = "vector register" if kind in "vap" else "operand"
  wrong = Reject(line.at - len(token), f"operand {name}: {token!r} is no {what}")
  if line.row.family == "EXP":
    if token == "off": return None
    line.put("en", 1 << int(name[3]))
  if kind not in "sci" and (found := register(line, token, spec)) is not None:
    if name == "vdstY":
      if found & 1 == line.fields["vdstX"] & 1: raise Reject(line.at, f"operand vdstY: {token} has vdstX's parity")
      found &= ~1
    wide = kind in "xyzp" or kind in "ag" and name.startswith("src")
    return line.put(name, found | (VGPR0 if wide else 0))
  if kind in "vagp": raise wrong
  if kind == "i":
    value = SIMM16[type_](token, line.names) if type_ in SIMM16 else number(token)
    if value is None: value = number(token)
    if value is None: raise wrong
    return line.put(name, value)
  names = scalars(dwords or CODES[line.isa].mask_dwords, line.isa)
  if kind == "c":
    if token == "vcc": return None
    if token not in names: raise wrong
    return line.put(name, names[token] | 0x80)
  if token in names: code = names[token]
  elif kind == "s" and type_ in REGISTERS_ONLY: raise wrong
  elif token in constants(type_): code = constants(type_)[token]
  else: code = written(line, token, name, type_, wrong)
  return line.put(name, code | (VGPR0 if kind == "w" else 0))


def written(line: AsmLine, token: str, name: str, type_: str, wrong: Reject) -> int:
  """The code of a number: an inline constant where there is one, else that of a literal, which the line then has.

  A number that is a literal's own text stays a literal, so that the disassembler's text gives its bytes.
  """
  value, real = number(token), fraction(token)
  if value is None and real is None: raise wrong
  if real is not None and (code := float_code(real, type_)) is not None: return code
  if value is not None:
    own = name in line.row.literal_operands and 0 <= value < 1 << 32 and literal(value, type_) == token
    if not own and (code := inline(value, type_)) is not None: return code
  elif real is not None: value = float_bits(real, type_)
  if name not in line.row.literal_operands or value is None: raise wrong
  if not -1 << 31 <= value < 1 << 32: raise Reject(line.at, f"operand {name}: {token} does not fit 32 bits")
  if line.literal not in (None, value & 0xFFFFFFFF): raise Reject(line.at, f"operand {name}: a second literal")
  line.literal = value & 0xFFFFFFFF
  return LITERAL


def source(line: AsmLine, spec: Operand) -> None:
  """A source with its neg and abs modifiers."""
  name = spec[0]
  token = re.sub(r"abs\(([^()]*)\)", r"|\1|", line.need(r"(?:neg|sext)\([^,\s]+\)|[^,\s]+", name)[0])
  k = int(name[3])
  inner = token
  field_ = "sext" if "sext" in line.row.fields else "neg" if name in line.row.extended else None
  if field_ and (m := re.fullmatch(r"sext\((.+)\)", token)):
    line.put(field_, 1 << k)
    return operand(line, m[1], spec)
  negative, absolute = "neg" if "neg" in line.row.fields else "neg_lo", "abs" if "abs" in line.row.fields else "neg_hi"
  if m := re.fullmatch(r"neg\((.+)\)|-(?=[|svtefxmna])(.+)", inner):
    inner = m[1] or m[2]
    line.put(negative, 1 << k)
  if m := re.fullmatch(r"\|(.+)\|", inner):
    inner = m[1]
    line.put(absolute, 1 << k)
  operand(line, inner, spec)
