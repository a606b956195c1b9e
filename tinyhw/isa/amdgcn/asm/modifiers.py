"""What follows the operands of a line: a reader for each modifier."""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from tinyhw.core.environment import digits
from tinyhw.isa.amdgcn.asm.immediates import SIMM16
from tinyhw.isa.amdgcn.asm.line import AsmLine, Reject
from tinyhw.isa.amdgcn.asm.operands import REGISTERS
from tinyhw.isa.amdgcn.codes import SDWA_SELECTIONS
from tinyhw.isa.amdgcn.images import DIMENSIONS
from tinyhw.isa.amdgcn.names import (
  DATA_FORMATS,
  FORMATS,
  NUMBER_FORMATS,
  SELECTIONS,
  TARGETS,
  UNUSED,
)
from tinyhw.isa.amdgcn.text import DPP_PATTERNS, op_sel_bits, signed_offset
from tinyhw.isa.amdgcn.values import INTEGER, NUMBER, float_bits, fraction, number


def flag(name: str, text: str) -> Callable[[AsmLine], None]:
  """A modifier that is there or not."""
  def read(line: AsmLine) -> None:
    if line.take(text + r"(?!\w)"): line.put(name, 1)
  return read


def numbered(name: str, text: str, *, needed: bool = False, default: int = 0) -> Callable[[AsmLine], None]:
  """A modifier with a number, which is `default` when it is not there."""
  def read(line: AsmLine) -> None:
    found = line.need(text, name) if needed else line.take(text)
    line.put(name, int(found[1], 0) if found else default)
  return read


def cpol(line: AsmLine) -> None:
  """Cache policy. Atomics that return have glc in their opcode, so it must stand there and has no field."""
  names, returns = line.names, line.row.returns
  if names.scoped: return scoped(line)
  for word, bit in names.policy(line.row.family):
    found = line.take(word + r"\b") is not None
    if bit == 1 and returns and not found: raise Reject(line.at, f"operand cpol: an atomic that returns has {word}")
    if found and not (bit == 1 and returns): line.put("cpol", bit)


def scoped(line: AsmLine) -> None:
  """RDNA4's cache policy: a temporal hint, then a scope."""
  names = line.names
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


def omod(line: AsmLine) -> None:
  if found := line.take(r"mul:2\b|mul:4\b|div:2\b"): line.put("omod", {"mul:2": 1, "mul:4": 2, "div:2": 3}[found[0]])


def offset(line: AsmLine) -> None:
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


def swizzle(line: AsmLine, text: str) -> int:
  """ds_swizzle's pattern."""
  kind, *rest = [t.strip().strip('"') for t in text.split(",")]
  if kind == "BITMASK_PERM" and len(rest) == 1 and re.fullmatch("[01pi]{5}", rest[0]):
    masks = {"0": (0, 0, 0), "1": (0, 1, 0), "p": (1, 0, 0), "i": (1, 0, 1)}
    return sum(masks[c][part] << 5 * part + 4 - k for k, c in enumerate(rest[0]) for part in range(3))
  values = [int(t) for t in rest if digits(t)]
  if len(values) == len(rest):
    if kind == "QUAD_PERM" and len(values) == 4 and max(values) < 4:
      return 0x8000 | sum(v << 2 * k for k, v in enumerate(values))
    if kind == "SWAP" and len(values) == 1: return 31 | values[0] << 10
    if kind == "REVERSE" and len(values) == 1: return 31 | values[0] - 1 << 10
    if kind == "BROADCAST" and len(values) == 2: return 32 - values[0] | values[1] << 5
  raise Reject(line.at, f"operand offset: swizzle({text}) is no pattern")


def dpp_ctrl(line: AsmLine) -> None:
  if found := line.take(r"quad_perm:\[([0-3]),([0-3]),([0-3]),([0-3])\]"):
    return line.put("dpp_ctrl", sum(int(v) << 2 * k for k, v in enumerate(found.groups())))
  found = line.need(rf"(\w+)(?::({INTEGER}))?", "dpp_ctrl")
  whole = next((c for c, n in DPP_PATTERNS.items() if n == found[0]), None)
  base = next((b for b, n in line.names.dpp_rows.items() if n == found[1]), None)
  if whole is not None: return line.put("dpp_ctrl", whole)
  if base is None or not found[2] or int(found[2], 0) > 15:
    raise Reject(line.at, f"operand dpp_ctrl: {found[0]!r} is no lane pattern")
  line.put("dpp_ctrl", base | int(found[2], 0))


def dpp8(line: AsmLine) -> None:
  lanes = line.need(r"dpp8:\[([0-7](?:,[0-7]){7})\]", "dpp8")[1].split(",")
  line.put("dpp8", sum(int(v) << 3 * k for k, v in enumerate(lanes)))


def packed(name: str) -> Callable[[AsmLine], None]:
  """op_sel:[...] and its kin: a bit a source; op_sel_hi is all ones unless it is given, but for choosing bytes."""
  def read(line: AsmLine) -> None:
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
    elif name == "op_sel_hi" and not any(kind in line.row.mnemonic for kind in ("_mix", "_mfma_scale_")):
      declared = sum((1 << w) - 1 << bit for _, bit, w in line.row.fields[name])
      line.put(name, (1 << count) - 1 & declared)
  return read


def simm16(line: AsmLine) -> None:
  """The 16-bit immediate of scalar instructions, in the form of its kind."""
  kind = next(o[4] for o in line.row.operands if o[0] == "simm16")
  whole = ".*" if kind in {"SWaitCnt", "DepCtr"} else r"(?:hwreg|sendmsg|gpr_idx)\([^)]*\)|[^,]*"
  rest = line.need(whole, "simm16")[0].strip()
  if not rest and kind == "Endpgm": return line.put("simm16", 0)
  value = number(rest)
  if value is None and kind in SIMM16: value = SIMM16[kind](rest, line.names)
  if value is None or not -0x8000 <= value <= 0xFFFF:
    raise Reject(line.at, f"operand simm16: {rest!r} is no {kind.replace('SOPPBrTarget', 'branch target')}")
  line.put("simm16", value & 0xFFFF)


def buffer_format(line: AsmLine) -> None:
  """format:[BUF_FMT_NAME] or format:NUMBER; 1 when there is none. gfx9's has a data and a number format, or one."""
  if line.names.two_formats:
    both = line.take(r"format:\[(?:BUF_DATA_FORMAT_(\w+))?,?(?:BUF_NUM_FORMAT_(\w+))?\]")
    data, kind = (both[1] or "8", both[2] or "UNORM") if both else ("8", "UNORM")
    if data not in DATA_FORMATS or kind not in NUMBER_FORMATS:
      raise Reject(line.at, f"operand format: {data}, {kind} is no format")
    return line.put("format", DATA_FORMATS.index(data) | NUMBER_FORMATS.index(kind) << 4)
  found = line.take(r"format:(?:\[BUF_FMT_(\w+)\]|(\d+))")
  if found and found[1] and found[1] not in FORMATS: raise Reject(line.at, f"operand format: {found[1]} is no format")
  line.put("format", 1 if not found else FORMATS.index(found[1]) if found[1] else int(found[2]))


def immediate(line: AsmLine) -> None:
  token = line.need(r"[^,\s]+", "imm")[0]
  value, real = number(token), fraction(token)
  if real is not None: value = float_bits(real, "f16" if line.row.mnemonic.endswith("_f16") else "f32")
  if value is not None and -1 << 31 <= value < 0: value &= 0xFFFFFFFF
  if value is None: raise Reject(line.at, f"operand imm: {token!r} is no number")
  if line.fields.get("imm", value) != value: raise Reject(line.at, "operand imm: two literals")
  line.fields["imm"] = value


def chosen(name: str, names: list[str], default: str) -> Callable[[AsmLine], None]:
  """A field with a name for each value."""
  def read(line: AsmLine) -> None:
    found = line.take(name + r":(\w+)")
    if found is None: return line.put(name, names.index(default))
    if found[1] not in names: raise Reject(line.at, f"operand {name}: {found[1]} is none of {', '.join(names)}")
    line.put(name, names.index(found[1]))
  return read


def target(line: AsmLine) -> None:
  """An export's target, by name or as invalid_target_NUMBER."""
  token = line.need(r"\w+", "tgt")[0]
  code = next((k for k, n in TARGETS.items() if n == token), number(token.removeprefix("invalid_target_")))
  if code is None or code > 63: raise Reject(line.at, f"operand tgt: {token} is no target")
  line.put("tgt", code)


def addresses(line: AsmLine) -> None:
  """Address registers of an image: a list, or one group; how many registers each has is checked on the whole text."""
  listed = line.take(r"\[([^\[\]]*(?:\[[^\]]*\][^\[\]]*)*)\]")
  parts = [p.strip() for p in re.split(r",(?![^\[]*\])", listed[1])] if listed else [line.need(REGISTERS, "vaddr0")[0]]
  names = [o[0] for o in line.row.operands if o[0].startswith("vaddr")]
  if len(parts) > len(names) or line.row.family == "MIMG" and (listed is None) == (line.row.variant == "nsa"):
    raise Reject(line.at, f"operand vaddr0: {len(parts)} addresses are not in this form's list")
  for name, part in zip(names, parts, strict=False): image_register(line, name, part)


def image_register(line: AsmLine, name: str, token: str) -> None:
  """The first of an image operand's registers."""
  m = re.fullmatch(REGISTERS, token)
  if m is None or int(m[1] or m[2]) > 255: raise Reject(line.at, f"operand {name}: {token!r} is no vector register")
  line.put(name, int(m[1] or m[2]))


def dimension(line: AsmLine) -> None:
  """dim:SQ_RSRC_IMG_2D, or without the prefix."""
  token = line.need(r"dim:(\w+)", "dim")[1]
  names = [d.name for d in DIMENSIONS]
  if (name := f"SQ_RSRC_IMG_{token.removeprefix('SQ_RSRC_IMG_')}") not in names:
    raise Reject(line.at, f"operand dim: {token} is none of {', '.join(names)}")
  line.put("dim", names.index(name))


def blgp(line: AsmLine) -> None:
  """blgp:N, or neg:[x,y,z] of f64 matrices, which is the same field."""
  if found := line.take(r"blgp:([0-7])\b"): line.put("blgp", int(found[1]))
  elif "_f64_" in line.row.mnemonic and (found := line.take(r"neg:\[([01]),([01]),([01])\]")):
    line.put("blgp", sum(int(b) << k for k, b in enumerate(found.groups())))


def bound_ctrl(line: AsmLine) -> None:
  """bound_ctrl:1; bound_ctrl:0, which once was its name, may mean the same."""
  if found := line.take(r"bound_ctrl:([01])\b"):
    line.put("bound_ctrl", int(found[1] == "1" or line.names.zero_bounds))


MODIFIERS: Final[dict[str, Callable[[AsmLine], None]]] = {
  "dmask": numbered("dmask", r"dmask:" + NUMBER), "dim": dimension, "addresses": addresses,
  **{name: flag(name, name) for name in ("unorm", "r128", "a16", "tfe", "lwe", "d16")},
  "cbsz": numbered("cbsz", r"cbsz:" + NUMBER), "abid": numbered("abid", r"abid:" + NUMBER), "blgp": blgp,
  "bitop3": numbered("bitop3", r"bitop3:" + NUMBER),
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
