"""Assembler of AMD GPU instructions: one line of LLVM's text to bytes, by the rows and texts that the decoder uses.

`assemble("v_add_f32_e32 v0, 1.0, v1")` walks the template of each row of the mnemonic over the line; the first row
whose own text is the line wins, so that text and bytes are inverse. A line in a looser spelling (no _e32, decimal
literals) takes the first row that fits. Branch targets are raw offsets, as the disassembler prints them.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from tinyhw.autogen.amdgcn_aliases import ALIASES
from tinyhw.core.errors import DecodeError, EncodeError, InvalidArgument
from tinyhw.isa.amdgcn import (
  CANONICAL,
  INLINE_FLOATS,
  LITERAL,
  REGISTERS_ONLY,
  SDWA_SELECTIONS,
  SPECIALS,
  VGPR0,
  Row,
  Table,
  table,
)
from tinyhw.isa.amdgcn_images import DIMENSIONS, IMAGES
from tinyhw.isa.amdgcn_names import (
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
)
from tinyhw.isa.amdgcn_text import (
  DELAYS,
  DEPCTR,
  DPP_PATTERNS,
  SKIPS,
  constant,
  dpp_rows,
  literal,
  op_sel_bits,
  scalar_name,
  signed_offset,
  suffix,
  template,
)
from tinyhw.isa.amdgcn_values import INTEGER, NUMBER, float_bits, float_code, fraction, inline, number

REGISTERS: Final = r"v(?:(\d+)|\[(\d+)(?::\d+)?\])"
VARIANTS: Final = ("_e64_dpp", "_e32_dpp", "_dpp", "_sdwa", "_e64", "_e32")
Operand = tuple[str, str, str, int, str, str]


class Reject(Exception):
  """A row does not fit the line: how far it did, and what stood there."""

  def __init__(self, at: int, what: str) -> None:
    self.at, self.what = at, what
    super().__init__(what)


compiled = cache(re.compile)


@cache
def pieces(wanted: str) -> tuple[str, ...]:
  """The words and signs of a fixed part of a template."""
  return tuple(re.findall(r"\w+|[^\w\s]", wanted))


@dataclass
class Line:
  """The walk over one line: position, and the fields found so far."""
  row: Row
  text: str
  isa: str
  at: int = 0
  fields: dict[str, int] = field(default_factory=dict)
  literal: int | None = None
  accumulation: bool | None = None

  def space(self) -> None:
    while self.text[self.at:self.at + 1] == " ": self.at += 1

  def word(self, wanted: str) -> None:
    """A fixed part of the template."""
    for piece in pieces(wanted):
      self.space()
      end = self.at + len(piece)
      if self.text[self.at:end] != piece or piece[-1].isalnum() and self.text[end:end + 1].isalnum():
        raise Reject(self.at, f"expected {piece!r}")
      self.at = end

  def take(self, pattern: str) -> re.Match[str] | None:
    """The pattern at this place, if it is there."""
    self.space()
    found = compiled(pattern).match(self.text, self.at)
    if found: self.at = found.end()
    return found

  def need(self, pattern: str, name: str) -> re.Match[str]:
    found = self.take(pattern)
    if found is None: raise Reject(self.at, f"operand {name}: {self.text[self.at:].split(',')[0]!r} is no {name}")
    return found

  def put(self, name: str, value: int) -> None: self.fields[name] = self.fields.get(name, 0) | value


@cache
def scalars(dwords: int, isa: str) -> dict[str, int]:
  """Name -> code of each scalar operand of a size."""
  out: dict[str, int] = {}
  own = {canonical: code for code, canonical in CANONICAL[isa].items()}
  for code in [*range(128), *(c for c in SPECIALS[isa] if c > 127)]:
    try: out.setdefault(scalar_name(code, dwords, isa), own.get(code, code))
    except KeyError: continue
  if dwords == 2: out.setdefault("vcc_lo", 106)
  return out


@cache
def constants(type_: str) -> dict[str, int]:
  """Text -> code of each inline constant for a type."""
  return {constant(c, type_): c for c in (*INLINE_FLOATS, *range(128, 209))}


def register(line: Line, token: str, spec: Operand) -> int | None:
  """Number of a vector register, its half put into op_sel where it belongs there; None for another kind of operand."""
  name, role, kind, dwords, _, half = spec
  half = half.rstrip("e")
  m = re.fullmatch(r"([av])(?:(\d+)|\[(\d+):(\d+)\])(?:\.([lh]))?", token)
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


def accumulation(line: Line, name: str, first: int, chosen: bool) -> int:
  """Which kind of register, said by a bit of the operand or of the row: then all data of the row are of one kind."""
  if any(bit == 9 for _, bit, _ in line.row.fields[name]): return first | chosen << 9
  if line.accumulation not in (None, chosen):
    raise Reject(line.at, f"operand {name}: data are vector registers or accumulation registers, not both")
  line.accumulation = chosen
  if chosen: line.fields["acc"] = 1
  return first


def operand(line: Line, token: str, spec: Operand) -> None:
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
    value = SIMM16[type_](token, line.isa) if type_ in SIMM16 else number(token)
    if value is None: value = number(token)
    if value is None: raise wrong
    return line.put(name, value)
  names = scalars(dwords or (2 if line.isa == "gfx9" else 1), line.isa)
  if kind == "c":
    if token == "vcc": return None
    if token not in names: raise wrong
    return line.put(name, names[token] | 0x80)
  if token in names: code = names[token]
  elif kind == "s" and type_ in REGISTERS_ONLY: raise wrong
  elif token in constants(type_): code = constants(type_)[token]
  else: code = written(line, token, name, type_, wrong)
  return line.put(name, code | (VGPR0 if kind == "w" else 0))


def written(line: Line, token: str, name: str, type_: str, wrong: Reject) -> int:
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


def source(line: Line, spec: Operand) -> None:
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


def flag(name: str, text: str) -> Callable[[Line], None]:
  """A modifier that is there or not."""
  def read(line: Line) -> None:
    if line.take(text + r"(?!\w)"): line.put(name, 1)
  return read


def numbered(name: str, text: str, *, needed: bool = False, default: int = 0) -> Callable[[Line], None]:
  """A modifier with a number, which is `default` when it is not there."""
  def read(line: Line) -> None:
    found = line.need(text, name) if needed else line.take(text)
    line.put(name, int(found[1], 0) if found else default)
  return read


def cpol(line: Line) -> None:
  """Cache policy. Atomics that return have glc in their opcode, so it must stand there and has no field."""
  names, returns = NAMES[line.isa], line.row.returns
  if names.scoped: return scoped(line)
  for word, bit in names.policy(line.row.family):
    found = line.take(word + r"\b") is not None
    if bit == 1 and returns and not found: raise Reject(line.at, f"operand cpol: an atomic that returns has {word}")
    if found and not (bit == 1 and returns): line.put("cpol", bit)


def scoped(line: Line) -> None:
  """RDNA4's cache policy: a temporal hint, then a scope."""
  names = NAMES[line.isa]
  hint, scope = line.take(r"th:(\w+)"), line.take(r"scope:(\w+)")
  level = names.scopes.index(scope[1]) if scope and scope[1] in names.scopes else 0
  if scope and not level: raise Reject(line.at, f"operand cpol: {scope[1]} is no scope")
  code = names.hint_code(hint[1], level, line.row.returns) if hint else 0
  if code is None and hint and not scope: code = names.hint_code(hint[1], 3, line.row.returns)  # as LLVM takes it
  if code is None: raise Reject(line.at, f"operand cpol: {hint and hint[1]} is no temporal hint")
  if line.row.returns:
    if not code & 1: raise Reject(line.at, "operand cpol: an atomic that returns has a hint that says so")
    code &= ~1
  line.put("cpol", code | level << 3)


def omod(line: Line) -> None:
  if found := line.take(r"mul:2\b|mul:4\b|div:2\b"): line.put("omod", {"mul:2": 1, "mul:4": 2, "div:2": 3}[found[0]])


def offset(line: Line) -> None:
  """An address offset: a bare one (scalar memory), a swizzle, or `offset:N`, signed where the encoding is."""
  kind = next(o[4] for o in line.row.operands if o[0] == "offset")
  bits = max(bit + w for _, bit, w in line.row.fields["offset"])
  found: re.Match[str] | None
  if kind == "SMEMOffset": found = line.need(r"([^,\s]+)", "offset")
  elif kind == "Swizzle" and line.take(r"offset:swizzle"):
    return line.put("offset", swizzle(line, line.need(r"\(([^)]*)\)", "swizzle")[1]))
  else: found = line.take(r"offset:([^,\s]+)")
  if not found: return
  value, scalar = number(found[1]), "SMEM" in kind  # a scalar one's bits may be written as they are
  signed = signed_offset(line.row, kind)
  if value is None or not (-1 << bits - 1 if signed else 0) <= value < 1 << bits - (signed and not scalar):
    raise Reject(line.at, f"operand offset: {found[1]} does not fit {bits} bits{' with a sign' * signed}")
  line.put("offset", value & (1 << bits) - 1)


def swizzle(line: Line, text: str) -> int:
  """ds_swizzle's pattern."""
  kind, *rest = [t.strip().strip('"') for t in text.split(",")]
  if kind == "BITMASK_PERM" and len(rest) == 1 and re.fullmatch("[01pi]{5}", rest[0]):
    masks = {"0": (0, 0, 0), "1": (0, 1, 0), "p": (1, 0, 0), "i": (1, 0, 1)}
    return sum(masks[c][part] << 5 * part + 4 - k for k, c in enumerate(rest[0]) for part in range(3))
  values = [int(t) for t in rest if t.isdecimal()]
  if len(values) == len(rest):
    if kind == "QUAD_PERM" and len(values) == 4 and max(values) < 4:
      return 0x8000 | sum(v << 2 * k for k, v in enumerate(values))
    if kind == "SWAP" and len(values) == 1: return 31 | values[0] << 10
    if kind == "REVERSE" and len(values) == 1: return 31 | values[0] - 1 << 10
    if kind == "BROADCAST" and len(values) == 2: return 32 - values[0] | values[1] << 5
  raise Reject(line.at, f"operand offset: swizzle({text}) is no pattern")


def dpp_ctrl(line: Line) -> None:
  if found := line.take(r"quad_perm:\[([0-3]),([0-3]),([0-3]),([0-3])\]"):
    return line.put("dpp_ctrl", sum(int(v) << 2 * k for k, v in enumerate(found.groups())))
  found = line.need(rf"(\w+)(?::({INTEGER}))?", "dpp_ctrl")
  whole = next((c for c, n in DPP_PATTERNS.items() if n == found[0]), None)
  base = next((b for b, n in dpp_rows(line.isa).items() if n == found[1]), None)
  if whole is not None: return line.put("dpp_ctrl", whole)
  if base is None or not found[2] or int(found[2], 0) > 15:
    raise Reject(line.at, f"operand dpp_ctrl: {found[0]!r} is no lane pattern")
  line.put("dpp_ctrl", base | int(found[2], 0))


def dpp8(line: Line) -> None:
  lanes = line.need(r"dpp8:\[([0-7](?:,[0-7]){7})\]", "dpp8")[1].split(",")
  line.put("dpp8", sum(int(v) << 3 * k for k, v in enumerate(lanes)))


def packed(name: str) -> Callable[[Line], None]:
  """op_sel:[...] and its kin: a bit a source; op_sel_hi is all ones unless it is given."""
  def read(line: Line) -> None:
    if name not in line.row.fields: return
    found = line.take(name + r":\[([01](?:,[01])*)\]")
    count = op_sel_bits(line.row)
    if line.row.mnemonic.startswith("v_permlane"): count = 2
    if found:
      bits = [int(b) for b in found[1].split(",")]
      last = name == "op_sel" and line.row.family in {"VOP3", "VINTERP"} and len(bits) == count + 1
      if last: line.put(name, bits.pop() << 3)
      if len(bits) != count: raise Reject(line.at, f"operand {name}: {found[0]!r} has not {count} bits")
      line.put(name, sum(b << k for k, b in enumerate(bits)))
    elif name == "op_sel_hi" and "_mix" not in line.row.mnemonic:
      declared = sum((1 << w) - 1 << bit for _, bit, w in line.row.fields[name])
      line.put(name, (1 << count) - 1 & declared)
  return read


Pieces = tuple[tuple[int, int, int], ...]


def counters(text: str, fields: dict[str, Pieces], start: int) -> int | None:
  """`name(value) name(value)` into a word that starts with all counters at their defaults."""
  value = start
  for part in re.split(r"[\s&,]+", re.sub(r"\s*([()])\s*", r"\1 ", text).replace("( ", "(").strip()):
    m = re.fullmatch(r"(\w+?)(_sat)?\((\w+)\)", part)
    count = number(m[3]) if m else None
    if m is None or count is None or m[1] not in fields: return None
    top = (1 << sum(w for _, _, w in fields[m[1]])) - 1
    if m[2]: count = min(count, top)
    if count > top: return None
    for at, bit, width in fields[m[1]]:
      part_top = (1 << width) - 1
      value = value & ~(part_top << at) | (count >> bit & part_top) << at
  return value


def waitcnt(text: str, isa: str) -> int | None:
  """s_waitcnt's counters; those that are not named do not wait."""
  fields = NAMES[isa].counters
  return counters(text, fields, sum((1 << w) - 1 << at for pieces in fields.values() for at, _, w in pieces))


def delay(text: str) -> int | None:
  """s_delay_alu's three fields."""
  value = 0
  places = {"instid0": (0, DELAYS), "instskip": (4, SKIPS), "instid1": (7, DELAYS)}
  for part in text.split("|"):
    m = re.fullmatch(r"\s*(\w+)\((\w+)\)\s*", part)
    if m is None or m[1] not in places or m[2] not in places[m[1]][1]: return None
    at, names = places[m[1]]
    value |= names.index(m[2]) << at
  return value


def hwreg(text: str, isa: str) -> int | None:
  """hwreg(NAME) or hwreg(NAME, first bit, bits)."""
  m = re.fullmatch(r"hwreg\((\w+)(?:, *(\d+), *(\d+))?\)", text)
  if m is None: return None
  ident = next((k for k, n in NAMES[isa].hwregs.items() if n == m[1]), int(m[1]) if m[1].isdecimal() else 64)
  at, size = int(m[2] or 0), int(m[3] or 32)
  return ident | at << 6 | size - 1 << 11 if ident < 64 and at < 32 and 1 <= size <= 32 else None


def message(text: str, isa: str) -> int | None:
  """sendmsg(NAME) or sendmsg(NUMBER, 0, 0); on gfx9 sendmsg(NAME, OPERATION, STREAM), each a name or a number."""
  if isa == "gfx9": return staged_message(text)
  m = re.fullmatch(r"sendmsg\((\w+)(?:, *0, *0)?\)", text)
  if m is None: return None
  return next((k for k, n in NAMES[isa].messages.items() if n == m[1]), int(m[1]) if m[1].isdecimal() else None)


def staged_message(text: str) -> int | None:
  """gfx9's message: an id, an operation and a stream."""
  m = re.fullmatch(r"sendmsg\((\w+)(?:, *(\w+))?(?:, *(\d+))?\)", text)
  if m is None: return None
  names = NAMES["gfx9"]
  ident = next((k for k, n in names.messages.items() if n == m[1]), number(m[1]))
  operations = names.operations.get(m[1], {})
  operation = next((k for k, n in operations.items() if n == m[2]), number(m[2] or "0"))
  stream = int(m[3] or 0)
  if ident is None or operation is None or ident > 15 or operation > 7 or stream > 3: return None
  return ident | operation << 4 | stream << 8


def indexed(text: str, _: str) -> int | None:
  """gpr_idx(SRC0,DST) and the like."""
  m = re.fullmatch(r"gpr_idx\(([A-Z0-9, ]*)\)", text)
  parts = [p.strip() for p in m[1].split(",") if p.strip()] if m else []
  return sum(1 << INDEXED.index(p) for p in set(parts)) if m and set(parts) <= set(INDEXED) else None


def version(text: str, _: str) -> int | None:
  """s_version's number or name, with flags behind bars."""
  value = 0
  for part in text.replace("(", "").replace(")", "").split("|"):
    names = {n: k for k, n in VERSIONS.items()} | {n: bit for bit, n in VERSION_FLAGS}
    found = names.get(part.strip(), number(part.strip()))
    if found is None: return None
    value |= found
  return value


SIMM16: Final[dict[str, Callable[[str, str], int | None]]] = {
  "SWaitCnt": waitcnt, "GPRIdxMode": indexed, "Version": version,
  "DepCtr": lambda t, _: counters(t, {f"depctr_{n}": ((at, 0, w),) for n, at, w in DEPCTR}, 0xFF9F),
  "SDelayALU": lambda t, _: delay(t), "hwreg": hwreg, "SendMsg": message,
}


def simm16(line: Line) -> None:
  """The 16-bit immediate of scalar instructions, in the form of its kind."""
  kind = next(o[4] for o in line.row.operands if o[0] == "simm16")
  whole = ".*" if kind in {"SWaitCnt", "DepCtr"} else r"(?:hwreg|sendmsg|gpr_idx)\([^)]*\)|[^,]*"
  rest = line.need(whole, "simm16")[0].strip()
  if not rest and kind == "Endpgm": return line.put("simm16", 0)
  value = number(rest)
  if value is None and kind in SIMM16: value = SIMM16[kind](rest, line.isa)
  if value is None or not -0x8000 <= value <= 0xFFFF:
    raise Reject(line.at, f"operand simm16: {rest!r} is no {kind.replace('SOPPBrTarget', 'branch target')}")
  line.put("simm16", value & 0xFFFF)


def buffer_format(line: Line) -> None:
  """format:[BUF_FMT_NAME] or format:NUMBER; 1 when there is none. gfx9's has a data and a number format, or one."""
  if line.isa == "gfx9":
    both = line.take(r"format:\[(?:BUF_DATA_FORMAT_(\w+))?,?(?:BUF_NUM_FORMAT_(\w+))?\]")
    data, kind = (both[1] or "8", both[2] or "UNORM") if both else ("8", "UNORM")
    if data not in DATA_FORMATS or kind not in NUMBER_FORMATS:
      raise Reject(line.at, f"operand format: {data}, {kind} is no format")
    return line.put("format", DATA_FORMATS.index(data) | NUMBER_FORMATS.index(kind) << 4)
  found = line.take(r"format:(?:\[BUF_FMT_(\w+)\]|(\d+))")
  if found and found[1] and found[1] not in FORMATS: raise Reject(line.at, f"operand format: {found[1]} is no format")
  line.put("format", 1 if not found else FORMATS.index(found[1]) if found[1] else int(found[2]))


def immediate(line: Line) -> None:
  token = line.need(r"[^,\s]+", "imm")[0]
  value, real = number(token), fraction(token)
  if real is not None: value = float_bits(real, "f16" if line.row.mnemonic.endswith("_f16") else "f32")
  if value is not None and -1 << 31 <= value < 0: value &= 0xFFFFFFFF
  if value is None: raise Reject(line.at, f"operand imm: {token!r} is no number")
  if line.fields.get("imm", value) != value: raise Reject(line.at, "operand imm: two literals")
  line.fields["imm"] = value


def chosen(name: str, names: list[str], default: str) -> Callable[[Line], None]:
  """A field with a name for each value."""
  def read(line: Line) -> None:
    found = line.take(name + r":(\w+)")
    if found is None: return line.put(name, names.index(default))
    if found[1] not in names: raise Reject(line.at, f"operand {name}: {found[1]} is none of {', '.join(names)}")
    line.put(name, names.index(found[1]))
  return read


def target(line: Line) -> None:
  """An export's target, by name or as invalid_target_NUMBER."""
  token = line.need(r"\w+", "tgt")[0]
  code = next((k for k, n in TARGETS.items() if n == token), number(token.removeprefix("invalid_target_")))
  if code is None or code > 63: raise Reject(line.at, f"operand tgt: {token} is no target")
  line.put("tgt", code)


def addresses(line: Line) -> None:
  """Address registers of an image: a list, or one group; how many registers each has is checked on the whole text."""
  listed = line.take(r"\[([^\[\]]*(?:\[[^\]]*\][^\[\]]*)*)\]")
  parts = [p.strip() for p in re.split(r",(?![^\[]*\])", listed[1])] if listed else [line.need(REGISTERS, "vaddr0")[0]]
  names = [o[0] for o in line.row.operands if o[0].startswith("vaddr")]
  if len(parts) > len(names) or line.row.family == "MIMG" and (listed is None) == (line.row.variant == "nsa"):
    raise Reject(line.at, f"operand vaddr0: {len(parts)} addresses are not in this form's list")
  for name, part in zip(names, parts, strict=False): image_register(line, name, part)


def image_register(line: Line, name: str, token: str) -> None:
  """The first of an image operand's registers."""
  m = re.fullmatch(REGISTERS, token)
  if m is None or int(m[1] or m[2]) > 255: raise Reject(line.at, f"operand {name}: {token!r} is no vector register")
  line.put(name, int(m[1] or m[2]))


def dimension(line: Line) -> None:
  """dim:SQ_RSRC_IMG_2D, or without the prefix."""
  token = line.need(r"dim:(\w+)", "dim")[1]
  names = [d.name for d in DIMENSIONS]
  if (name := f"SQ_RSRC_IMG_{token.removeprefix('SQ_RSRC_IMG_')}") not in names:
    raise Reject(line.at, f"operand dim: {token} is none of {', '.join(names)}")
  line.put("dim", names.index(name))


def blgp(line: Line) -> None:
  """blgp:N, or neg:[x,y,z] of f64 matrices, which is the same field."""
  if found := line.take(r"blgp:([0-7])\b"): line.put("blgp", int(found[1]))
  elif "_f64_" in line.row.mnemonic and (found := line.take(r"neg:\[([01]),([01]),([01])\]")):
    line.put("blgp", sum(int(b) << k for k, b in enumerate(found.groups())))


def bound_ctrl(line: Line) -> None:
  """bound_ctrl:1; bound_ctrl:0, which once was its name, means the same on gfx9."""
  if found := line.take(r"bound_ctrl:([01])\b"): line.put("bound_ctrl", int(found[1] == "1" or line.isa == "gfx9"))


MODIFIERS: Final[dict[str, Callable[[Line], None]]] = {
  "dmask": numbered("dmask", r"dmask:" + NUMBER), "dim": dimension, "addresses": addresses,
  **{name: flag(name, name) for name in ("unorm", "r128", "a16", "tfe", "lwe", "d16")},
  "cbsz": numbered("cbsz", r"cbsz:" + NUMBER), "abid": numbered("abid", r"abid:" + NUMBER), "blgp": blgp,
  **{name: chosen(name, SELECTIONS, "DWORD") for name in SDWA_SELECTIONS},
  "dst_unused": chosen("dst_unused", UNUSED, "UNUSED_PRESERVE"),
  "clamp": flag("clamp", "clamp"), "gds": flag("gds", "gds"), "bound_ctrl": bound_ctrl,
  "fi": flag("fi", "fi:1"), "omod": omod, "cpol": cpol, "offset": offset,
  "offset0": numbered("offset0", r"offset0:" + NUMBER), "offset1": numbered("offset1", r"offset1:" + NUMBER),
  "simm16": simm16, "imm": immediate, "immDeferred": immediate, "dpp_ctrl": dpp_ctrl, "dpp8": dpp8,
  "row_mask": numbered("row_mask", r"row_mask:" + NUMBER, default=15),
  "bank_mask": numbered("bank_mask", r"bank_mask:" + NUMBER, default=15),
  "format": buffer_format,
  "waitexp": numbered("waitexp", r"wait_exp:(\d+)"),
  "waitvdst": numbered("waitvdst", r"wait_(?:va_)?vdst:(\d+)"),
  "attr": numbered("attr", r"attr(\d+)", needed=True),
  "attrchan": lambda line: line.put("attrchan", "xyzw".index(line.need(r"\.([xyzw])", "attrchan")[1])),
  "tgt": target,
  "sdata": numbered("sdata", NUMBER, needed=True),
  "byte_sel": numbered("byte_sel", r"byte_sel:" + NUMBER), "waitvsrc": numbered("waitvsrc", r"wait_vm_vsrc:(\d+)"),
  "index_key_8bit": numbered("index_key_8bit", r"index_key:" + NUMBER),
  "index_key_16bit": numbered("index_key_16bit", r"index_key:" + NUMBER),
  "op_sel": packed("op_sel"), "op_sel_hi": packed("op_sel_hi"), "neg_lo": packed("neg_lo"), "neg_hi": packed("neg_hi"),
}


Step = tuple[str, str, str]  # a fixed part; a key of an operand or modifier; or the mnemonic and its encoding's suffix


@cache
def steps(row: Row) -> tuple[Step, ...]:
  """The parts of a row's template in their order."""
  names, out = iter(row.mnemonic.split(" :: ")), []
  for fixed, own, _, key in re.findall(r"([^@$]+)|@(?:\{(\w+)\})?(?=(\$)?)|\$(\w+)", template(row)):
    if key == "vdst" and not any(o[0] == key for o in row.operands): key = "vdata"
    if fixed or key: out.append((fixed, key, ""))
    else:
      name = next(names)
      out.append(("", name, name + (own or suffix(row))))
  return tuple(out)


def walk(row: Row, text: str, generation: Table) -> Line:
  """Fields of the row that the line gives. Raises Reject where the line leaves the template."""
  line = Line(row, text, generation.name)
  operands = {o[0]: o for o in row.operands}
  for fixed, key, full in steps(row):
    if fixed: line.word(fixed)
    elif full:
      word = line.need(r"\S+", "mnemonic")[0]
      if word not in (full, key) and renamed(word, line.isa) not in (full, key):
        raise Reject(0, f"{word} is not {full}")
    elif key.endswith("_modifiers"): source(line, operands[key.removesuffix("_modifiers")])
    elif row.family in IMAGES and key == "vdata": image_register(line, key, line.need(REGISTERS, key)[0])
    elif row.family in IMAGES and key == "vaddr0": addresses(line)
    elif key in MODIFIERS and (key not in operands or operands[key][2] == "i"): MODIFIERS[key](line)
    else: operand(line, line.need(r"(?:sendmsg|gpr_idx)\([^)]*\)|[^,\s]+", key)[0], operands[key])
  line.space()
  if line.at != len(text): raise Reject(line.at, f"{text[line.at:]!r} is left over")
  return line


REGISTER: Final = re.compile(r"\b(v|s|a|ttmp)\[\s*(\w+)\s*(?::\s*(\w+)\s*)?\]")


def _group(match: re.Match[str]) -> str:
  """v[1] is v1, v[0x4:7] is v[4:7]."""
  first, last = number(match[2]), number(match[3] or match[2])
  if first is None or last is None: return match[0]
  return f"{match[1]}{first}" if first == last else f"{match[1]}[{first}:{last}]"


def normal(text: str) -> str:
  """A line in the spelling of the templates.

  One space between words, none at the ends; a mnemonic in small letters; a group of one register without brackets; a
  dimension with its prefix.
  """
  text = re.sub(r"\s+", " ", text).strip()
  head, gap, rest = text.partition(" ")
  if head != head.lower(): text = head.lower() + gap + rest
  if "[" in text: text = REGISTER.sub(_group, text)
  return re.sub(r"\bdim:(?!SQ_RSRC)(\w+)", r"dim:SQ_RSRC_IMG_\1", text) if "dim:" in text else text


def candidates(text: str, generation: Table) -> tuple[Row, ...]:
  """Rows whose mnemonic the line starts with. Raises InvalidArgument for an unknown one."""
  heads = tuple(part.split(None, 1)[0] if part.split() else "" for part in text.split(" :: "))
  rows = named(heads, generation.key)
  if not rows: raise InvalidArgument(f"{' :: '.join(heads)!r} is no instruction of {generation.key}", where=repr(text))
  return rows


@cache
def renamed(word: str, isa: str) -> str:
  """The mnemonic of today of an older one that LLVM's assembler still takes, with the suffix that it has."""
  bare = next((word.removesuffix(v) for v in VARIANTS if word.endswith(v)), word)
  return ALIASES[isa].get(bare, bare) + word[len(bare):]


@cache
def named(heads: tuple[str, ...], key: str) -> tuple[Row, ...]:
  """Rows of a mnemonic with or without its encoding's suffix; of two with one text, first the one that LLVM chooses."""
  for names in (heads, *([h.removesuffix(v) for h in heads] for v in VARIANTS)):
    names = [ALIASES[table(key).name].get(n, n) for n in names]
    if rows := table(key).rows_of(" :: ".join(names)):
      return tuple(sorted(rows, key=lambda r: (r.variant == "sdwa", r.size, r.returns, r.variant.endswith("_alt"))))
  return ()


def assemble(text: str, generation: Table | None = None) -> bytes:
  """Bytes of one instruction. Raises InvalidArgument, with the line and the operand at fault."""
  generation = generation or table("gfx11")
  text = normal(text)
  furthest = Reject(-1, "no encoding takes it")
  loose: bytes | None = None
  for row in candidates(text, generation):
    try:
      line = walk(row, text, generation)
      code = generation.encode(row, line.fields, line.literal)
      back = generation.decode(code)
    except Reject as error:
      if error.at > furthest.at: furthest = error
      continue
    except (EncodeError, DecodeError) as error:
      furthest = Reject(len(text), error.message)
      continue
    if str(back) == text: return code
    if row.family in IMAGES:
      furthest = Reject(len(text), f"its fields make it {back}")  # whose registers are as many as dmask, dim ... say
      continue
    if loose is None and back.mnemonic == row.mnemonic: loose = code
  if loose is not None: return loose
  raise InvalidArgument(furthest.what, where=repr(text))
