"""Which forms of an instruction are executed: encodings, modifiers, kinds of operands, MODE, EXEC; all from its rows.

A case is one instruction with its bytes, a MODE and a seed; `state_of` draws the registers it starts from.
"""
from __future__ import annotations

import random
import zlib
from dataclasses import dataclass
from typing import Final

from tinyhw.isa.amdgcn import Instruction, Row, Table
from tinyhw.isa.amdgcn.codes import EXEC_LO, INLINE_FLOATS, NULL, VCC_LO, VGPR0
from tinyhw.tools.witness import draw
from tinyhw.tools.witness.lanes import sources
from tinyhw.tools.witness.softfloat import F16, F32
from tinyhw.tools.witness.state import CODE, M32, State
from tinyhw.tools.witness.subdword import DWORD, PRESERVE, SIGN, ZEROS
from tinyhw.tools.witness.table import Mode, WaveWitness, Witness, format_of, width_of

SGPRS: Final = 128
DENORMALS, DX10, IEEE = 0xF0, 0x100, 0x200
# RDNA4 has neither DX10_CLAMP nor IEEE (RDNA4 ISA manual, MODE): what other tables do with both set.
PLAIN: Final = {"gfx11": DENORMALS | DX10 | IEEE, "gfx12": DENORMALS, "gfx9": DENORMALS | DX10 | IEEE}
WAVES: Final = 2
UNCLAMPED: Final = ("v_mad_u64", "v_mad_i64", "v_mad_co", "v_div_scale")


@dataclass(frozen=True)
class Case:
  """One instruction to execute. `mask` is the kind of EXEC: "all", "some" or "none"; `lanes` the wave size."""
  row: Row
  code: bytes
  instruction: Instruction
  mode: int
  mask: str
  lanes: int
  waves: int
  seed: int
  note: str

  def __str__(self) -> str: return f"{self.instruction} [{self.note}, MODE {self.mode:#x}, EXEC {self.mask}]"


def wave_size(generation: str) -> int: return 64 if generation == "gfx9" else 32


class Encoder:
  """Chooses registers and fields for one row. `rng` decides between what the row allows."""

  def __init__(self, generation: Table, row: Row, rng: random.Random, salt: str = "") -> None:
    self.table, self.row, self.rng, self.salt = generation, row, rng, salt
    self.fields: dict[str, int] = {}
    self.literal: int | None = None
    self.vgpr, self.sgpr = 2, 8
    self.mode: int | None = None  # MODE, where the form chooses it

  def width(self, name: str) -> int:
    """Bits of a field that the row has."""
    return max((bit + w for _, bit, w in self.row.fields[name]), default=0)

  def take_vgpr(self, dwords: int, half: str) -> int:
    if dwords > 1: self.vgpr += self.vgpr & 1
    first, self.vgpr = self.vgpr, self.vgpr + max(1, dwords)
    if half == "h": first |= self.rng.randrange(2) << 7
    return first

  def take_sgpr(self, dwords: int) -> int:
    step = 4 if dwords > 2 else 2
    self.sgpr = -(-self.sgpr // step) * step
    first, self.sgpr = self.sgpr, self.sgpr + max(2, dwords)
    return first

  def operands(self, other: str = "") -> None:
    """Give every operand a register; `other` names a source that gets an SGPR, a constant or a literal."""
    for name, _, kind, dwords, type_, half in self.row.operands:
      if kind == "i" or name in self.fields: continue
      if name == "vdstY": self.fields[name] = self.take_vgpr(dwords, half) & ~1
      elif kind == "v": self.fields[name] = self.take_vgpr(dwords, half)
      elif kind == "s": self.fields[name] = self.take_sgpr(dwords or 2)
      elif kind == "w" and name == other: self.fields[name] = VGPR0 + self.take_sgpr(dwords)
      elif kind == "w": self.fields[name] = self.take_vgpr(dwords, "")
      elif kind == "c": self.fields[name] = self.rng.choice([0, 0x80 | self.take_sgpr(2)])
      elif kind == "a" or kind == "g": self.fields[name] = self.take_vgpr(dwords, half) | (
        VGPR0 if name.startswith("src") else 0)
      elif name == other: self.fields[name] = self.other(name, dwords, type_)
      else: self.fields[name] = VGPR0 + self.take_vgpr(dwords, half)

  def other(self, name: str, dwords: int, type_: str) -> int:
    """Something else than a vector register."""
    kinds = ["s", "s", "int"]
    floats = type_ in {"f16", "f32", "f64", "v2f16"} or type_ == "b32"
    if floats or type_.startswith("v2") or type_ == "bf16": kinds.append("float")
    if name in self.row.literal_operands and self.literal is None: kinds.append("lit")
    kind = self.rng.choice(kinds)
    if kind == "s": return self.take_sgpr(dwords)
    if kind == "int": return self.rng.randrange(128, 209)
    if kind == "float": return self.rng.choice(list(INLINE_FLOATS))
    self.literal = draw.value("f32" if floats else "b32", self.rng)
    return 255

  def done(self, mode: int, mask: str, lanes: int, note: str, waves: int = WAVES) -> Case:
    """The case with these fields."""
    for name, o in ((o[0], o) for o in self.row.operands):
      if o[2] == "i" and name not in self.fields: self.fields[name] = self.default(name, o[4])
    if "op_sel_hi" in self.row.fields: self.fields.setdefault("op_sel_hi", self.all_ones("op_sel_hi"))
    code = self.table.encode(self.row, self.fields, self.literal)
    i = self.table.decode(code)
    seed = zlib.crc32(f"{self.row.mnemonic} {note} {mode} {mask}{self.salt}".encode())
    return Case(self.row, code, i, mode, mask, lanes, waves, seed, note)

  def default(self, name: str, type_: str) -> int:
    if name in {"imm", "immDeferred"}: return draw.value("f32", self.rng)
    if name == "simm16": return self.rng.choice([0, 1, 2, 0x7FFF, 0x8000, 0xFFFF, self.rng.getrandbits(16)])
    if name in {"row_mask", "bank_mask"}: return 15
    return 0

  def all_ones(self, name: str) -> int: return sum((1 << w) - 1 << bit for _, bit, w in self.row.fields[name])

  def random_bits(self, *names: str) -> None:
    """Set modifier bits at random where the row has them; op_sel's only for operands that are halves."""
    for name in names:
      if name not in self.row.fields: continue
      self.fields[name] = self.rng.getrandbits(16) & self.all_ones(name)
      if name == "op_sel" and self.row.family == "VOP3" and self.table.name != "gfx9":
        halves = [o for o in self.row.operands if o[5][:1] == "o"]
        self.fields[name] &= sum(1 << (3 if o[1] == "d" else int(o[0][-1])) for o in halves)


  def parts(self, x: Witness) -> None:
    """SDWA's selections. The bytes of a float result, or its sign, would tell one NaN from another."""
    whole = [t for t in x.results if format_of(t)]
    names = [n for n in ("src0_sel", "src1_sel") if n in self.row.fields]
    self.fields |= {n: self.rng.randrange(7) for n in names}
    if "dst_sel" in self.row.fields:
      choices = range(7) if not whole else (DWORD,) if width_of(whole[0]) == 32 else (4, 5, DWORD)
      self.fields |= {"dst_sel": self.rng.choice(choices),
                      "dst_unused": self.rng.choice((ZEROS, PRESERVE) if whole else (ZEROS, SIGN, PRESERVE))}
    if "sext" in self.row.fields:
      bits = sum(1 << k for k, t in enumerate(x.sources[:len(names)]) if t[0] in "uib")
      self.fields["sext"] = self.rng.getrandbits(2) & bits & self.all_ones("sext")

  def source_modifiers(self, x: Witness) -> None:
    """neg and abs at random on the sources that are floats."""
    plain = [t for t in x.sources if t not in {"vcc", "scc"}]
    bits = sum(1 << k for k, t in enumerate(plain) if format_of(t) or t[0] == "m" and t != "mask")
    for name in ("neg", "abs"):
      if name in self.row.fields: self.fields[name] = self.rng.getrandbits(3) & bits & self.all_ones(name)


def _rng(row: Row, note: str, isa: str, salt: str = "") -> random.Random:
  return random.Random(f"{isa} {row.mnemonic} {row.variant} {note}{salt}")


def rows_of(generation: Table, mnemonic: str) -> list[Row]:
  """The rows of a mnemonic."""
  return list(generation.by_mnemonic.get(mnemonic, ()))


def dpp_control(row: Row, rng: random.Random) -> int:
  """A lane pattern that the generation has for the row: gfx9's operands of 64 bits have one kind alone."""
  isa, n = row.isa, rng.randrange(1, 16)
  kinds = [rng.randrange(256), 0x100 | n, 0x110 | n, 0x120 | n, 0x140, 0x141, 0x150 | n]
  kinds += [0x130, 0x134, 0x138, 0x13C, 0x142, 0x143] if isa == "gfx9" else [0x160 | n]
  return 0x150 | n if isa == "gfx9" and any(o[3] == 2 for o in row.operands) else rng.choice(kinds)


def lane_cases(generation: Table, mnemonic: str, x: Witness, salt: str = "") -> list[Case]:
  """Forms of an instruction that works lane by lane, or of a scalar one."""
  isa = generation.name
  plain, lanes = PLAIN[isa], wave_size(isa)
  rows = rows_of(generation, mnemonic)
  out: list[Case] = []
  floats = any(format_of(t) for t in (*x.sources, *x.results))

  def encoder(row: Row, note: str) -> Encoder: return Encoder(generation, row, _rng(row, note, isa, salt), salt)

  for row in rows:
    variant = row.variant
    if variant in {"", "e32", "e64"}:
      e = encoder(row, "plain")
      e.operands()
      out.append(e.done(plain, "all", lanes, f"{variant} plain", 1 if row.family.startswith("SOP") else WAVES))
      if row.family.startswith("SOP"):
        out += _scalar_cases(generation, row, x, salt)
        continue
      # a swapped or moved register stays one, and V_DIV_SCALE's sources belong together
      lone = any(t.startswith("s:") for t in x.results) or mnemonic.startswith("v_div_scale")
      names = [] if lone else [o[0] for o in row.operands if o[2] == "x" and o[3] <= 2]
      for name in names:
        e = encoder(row, f"other {name}")
        e.operands(other=name)
        out.append(e.done(plain, "some", lanes, f"{variant} {name}"))
    if variant in {"", "e64"}:
      modifiers = [m for m in ("neg", "abs", "op_sel", "op_sel_hi", "neg_lo", "neg_hi") if m in row.fields]
      if not floats and not any(t[0] == "m" for t in x.sources):
        modifiers = [m for m in modifiers if m.startswith("op_sel")]
      for k in range(3 if modifiers else 0):
        e = encoder(row, f"modifiers {k}")
        e.operands()
        e.random_bits(*(m for m in modifiers if m not in {"neg", "abs"}))
        e.source_modifiers(x)
        out.append(e.done(plain, "some" if k else "all", lanes, f"{variant} modifiers {k}"))
      if row.family == "VOP3P" and x.packed:  # which halves of a constant or a scalar register count
        for k, name in enumerate(o[0] for o in row.operands if o[2] == "x" for _ in range(2)):
          e = encoder(row, f"constant {k}")
          first, count = e.rng.choice(((193, 16), (128, 65), (240, 9)))
          e.fields[name] = first + e.rng.randrange(count)
          e.operands()
          e.random_bits(*(m for m in modifiers if m not in {"neg", "abs"}))
          if k % 2: e.fields["op_sel"] = e.fields.get("op_sel", 0) ^ 7 & e.all_ones("op_sel")
          out.append(e.done(plain, "all", lanes, f"{variant} constant {k}", 1))
      # whether V_MAD_U64_U32 and V_MAD_I64_I32 saturate, and V_DIV_SCALE clamps, the manuals leave open
      if "clamp" in row.fields and x.clamps and not mnemonic.startswith(UNCLAMPED):
        for k, mode in enumerate((plain, plain & ~DX10)):
          e = encoder(row, "clamp")
          e.operands()
          e.fields["clamp"] = 1
          out.append(e.done(mode, "all", lanes, f"{variant} clamp {k}"))
      if "omod" in row.fields and floats and x.rounds and format_of(x.results[0]):
        for k, mode in ((1, 0), (2, 0), (3, 0), (1, IEEE), (2, DENORMALS)):
          e = encoder(row, "omod")
          e.operands()
          e.fields["omod"] = k
          out.append(e.done(mode & ~(IEEE if isa == "gfx12" else 0), "all", lanes, f"{variant} omod {k} {mode:x}"))
    if floats and variant in {"", "e64"}:
      e = encoder(row, "zeros")
      e.operands()
      out.append(e.done(plain, "all", lanes, f"{variant} zeros", 1))
    longer = any(r.variant == "e64" for r in rows)
    if x.rounds and floats and variant in ({"", "e64"} if longer else {"", "e32"}):
      flushing = [plain & ~0xF0, plain & ~0xF0 | 0x50, plain & ~0xA0]
      for mode in (plain | 5, plain | 10, plain | 15, plain & ~IEEE, *flushing):
        e = encoder(row, "modes")
        e.operands()
        out.append(e.done(mode, "all", lanes, f"{variant} mode {mode:x}"))
    if variant == "sdwa":
      for k in (0, 1 + len(mnemonic) % 2):
        e = encoder(row, f"sdwa {k}")
        e.parts(x)
        e.operands(other=("", "src0", "src1")[k])
        if floats or any(t[0] == "m" for t in x.sources): e.source_modifiers(x)
        if "clamp" in row.fields and k and x.clamps: e.fields["clamp"] = e.rng.randrange(2)
        out.append(e.done(plain, "some" if k else "all", lanes, f"sdwa {k}", 1))
    if "dpp" in variant and isa in {"gfx9", "gfx11", "gfx12"}:
      for k in range(2 if variant in {"dpp", "e64_dpp", "dpp8"} else 1):
        e = encoder(row, f"dpp {k}")
        e.operands()
        if "dpp8" in row.fields: e.fields["dpp8"] = e.rng.getrandbits(24)
        else:
          e.fields |= {"dpp_ctrl": dpp_control(row, e.rng), "row_mask": e.rng.choice([15, 15, 5]),
                       "bank_mask": e.rng.choice([15, 15, 9]), "bound_ctrl": e.rng.randrange(2)}
          if "fi" in row.fields: e.fields["fi"] = e.rng.randrange(2)
        if variant.startswith("e64"): e.random_bits("op_sel")
        if floats: e.source_modifiers(x)
        out.append(e.done(plain, "some" if k else "all", lanes, f"{variant} {k}"))
  return out


def _scalar_cases(generation: Table, row: Row, x: Witness, salt: str = "") -> list[Case]:
  """Scalar instructions: many states, then each kind of source."""
  isa, out = generation.name, []
  names = [o[0] for o in row.operands if o[1] == "s" and o[2] == "s"]
  count = {"k": 6, "ku": 6}.get(x.sources[-1], 1) if x.sources else 1
  if "simm16" in row.fields: count = 8
  for k in range(count):
    e = Encoder(generation, row, _rng(row, f"scalar {k}", isa, salt), salt)
    e.operands()
    out.append(e.done(PLAIN[isa], "some", wave_size(isa), f"scalar {k}", 48 if count == 1 else 12))
  for name in names:
    for k in range(3):
      e = Encoder(generation, row, _rng(row, f"{name} {k}", isa, salt), salt)
      spec = next(o for o in row.operands if o[0] == name)
      if e.width(name) < 8: continue
      e.fields[name] = e.other(name, spec[3], spec[4]) if k else e.rng.choice([251, 252, 253, VCC_LO])
      e.operands()
      out.append(e.done(PLAIN[isa], "some", wave_size(isa), f"{name} other {k}", 4))
  if x.rounds:
    flushing = [PLAIN[isa] & ~bits for bits in (0xF0, 0x50, 0xA0)]
    for mode in (PLAIN[isa] | 5, PLAIN[isa] | 10, PLAIN[isa] | 15, *flushing):
      e = Encoder(generation, row, _rng(row, "modes", isa, salt), salt)
      e.operands()
      out.append(e.done(mode, "all", wave_size(isa), f"mode {mode:x}", 16))
  return out


def wave_cases(generation: Table, mnemonic: str, x: WaveWitness, salt: str = "") -> list[Case]:
  """Forms of an instruction of whole waves; the witness's `forms` chooses the fields of each."""
  isa, out = generation.name, []
  for number, row in enumerate(rows_of(generation, mnemonic)):
    for k in range(x.forms_of(row)):
      e = Encoder(generation, row, _rng(row, f"wave {number} {k}", isa, salt), salt)
      if x.fields is not None and x.fields(e, k) is False: continue
      e.operands()
      lanes = x.lanes[k % len(x.lanes)] if x.lanes else wave_size(isa)
      if isa == "gfx9": lanes = 64
      mask = ("all", "some", "some", "none")[k % 4]
      mode = PLAIN[isa] if e.mode is None else e.mode
      out.append(e.done(mode, mask, lanes, f"{row.variant} {number} {k}", x.waves))
  return out


def cases(generation: Table, mnemonic: str, x: Witness | WaveWitness, salt: str = "") -> list[Case]:
  """All cases of an instruction; another `salt` draws others."""
  if isinstance(x, Witness): return lane_cases(generation, mnemonic, x, salt)
  return wave_cases(generation, mnemonic, x, salt)


def state_of(case: Case, x: Witness | WaveWitness) -> State:
  """The registers that a case starts from."""
  rng = random.Random(case.seed)
  n = case.waves * case.lanes
  i = case.instruction
  used = max((o.value + max(1, o.dwords) for o in i.operands.values() if o.kind == "v"), default=0)
  v = [[rng.getrandbits(32)] * n for _ in range(used + 4)]
  s = [[rng.getrandbits(32) for _ in range(case.waves)] for _ in range(SGPRS)]
  s[NULL] = [0] * case.waves
  for register, bits in ((EXEC_LO, case.mask), (VCC_LO, "some")):
    for k in (0, 1):
      s[register + k] = [{"all": M32, "none": 0}.get(bits, rng.getrandbits(32)) for _ in range(case.waves)]
  if case.lanes == 32: s[EXEC_LO + 1] = [rng.getrandbits(32)] * case.waves
  if rng.random() < 0.2: s[VCC_LO], s[VCC_LO + 1] = [0] * case.waves, [0] * case.waves
  state = State(case.lanes, case.waves, v, s, [rng.random() < 0.5 for _ in range(case.waves)], Mode(case.mode),
                isa=case.row.isa, table=case.row.table, pc=CODE, jump=[None] * case.waves)
  for o in i.operands.values():
    if isinstance(x, Witness) and o.role == "s": continue  # drawn by their types below
    if o.kind == "v": _fill(state, o.value, o.dwords, "b32", rng)
    elif o.kind == "s" and o.value < 106: _fill_scalar(state, o.value, o.dwords, "b32", rng)
  if isinstance(x, Witness): _typed_operands(state, i, x, rng)
  elif x.prepare is not None: x.prepare(state, i, rng)
  if case.note.endswith("zeros"): _zeros(state, i, x, rng)
  return state


def _typed_operands(state: State, i: Instruction, x: Witness, rng: random.Random) -> None:
  names = sources(i)
  k = 0
  for t in x.sources:
    if t in {"scc", "vcc", "k", "ku"} or t.startswith("exec"): continue
    if t == "mask":
      if k < len(names): k += 1
      continue
    plain = t.removeprefix("d:")
    if t.startswith("d:"): o = i.operands.get("vdst") or i.operands["sdst"]
    else:
      name = names[k]
      k += 1
      if name == "imm": continue
      o = i.operands[name]
    if o.kind == "v": _fill(state, o.value, max(1, o.dwords), plain, rng, x.packed)
    elif o.kind == "s" and o.value < 106: _fill_scalar(state, o.value, max(1, o.dwords), plain, rng)
  _related(state, i, x, names, rng)
  if i.family in {"SOP2", "SOPC"}: _related_scalars(state, i, rng)
  if i.mnemonic.startswith(("s_bfe", "v_bfe")): _edges(state, i, rng)
  if i.mnemonic.startswith("v_div_") and "f16" not in i.mnemonic: _exponents(state, i, names, rng)
  if i.mnemonic.startswith("v_div_scale"):  # source 0 is one of the others
    a, b, c = (i.operands[n] for n in names)
    if {a.kind, b.kind, c.kind} == {"v"}:
      for at in range(state.waves * state.lanes):
        from_ = rng.choice([b, c])
        for d in range(a.dwords): state.v[a.value + d][at] = state.v[from_.value + d][at]


def _zeros(state: State, i: Instruction, x: Witness | WaveWitness, rng: random.Random) -> None:
  """Zeros of both signs in all lanes of f32 and f16 sources, some registers the same in all lanes."""
  assert isinstance(x, Witness)
  sign = 1 << width_of(x.sources[0]) - 1 if format_of(x.sources[0]) in {F16, F32} else 0
  for o in i.operands.values():
    if o.kind == "v" and o.role == "s" and o.dwords < 2:
      column = state.v[o.value]
      if sign: column[:] = [rng.choice((0, sign)) for _ in column]
      if rng.random() < 0.5: column[:] = [column[at // state.lanes * state.lanes] for at in range(len(column))]


def _related(state: State, i: Instruction, x: Witness, names: list[str], rng: random.Random) -> None:
  """Now and then two sources are alike, or the third one takes the product of the first two away."""
  plain = [t for t in x.sources if t[:2] != "d:" and t not in {"mask", "vcc", "scc"}]
  spots = [i.operands.get(n) for n in names]
  if len(plain) < 2 or plain[0] != plain[1] or x.packed or any(o is None or o.kind != "v" for o in spots): return
  a, b = (o for o in spots[:2] if o is not None)
  for at in range(state.waves * state.lanes):
    if rng.random() < 0.08:
      for k in range(max(1, a.dwords)): state.v[b.value + k][at] = state.v[a.value + k][at]
    if len(plain) == 3 and len(spots) == 3 and rng.random() < 0.06 and (c := spots[2]) is not None:
      f, n = format_of(plain[2]), width_of(plain[2])
      one, two = (state.bits(o, width_of(plain[0]), 0, at) for o in (a, b))
      if f is not None: value = f.mul(one, two) ^ f.sign
      else: value = -_whole(one, plain[0]) * _whole(two, plain[1])
      if n >= 32:
        for k in range(n // 32): state.v[c.value + k][at] = value >> 32 * k & M32
      else: state.v[c.value][at] = (value & 0xFFFF) * 0x10001


def _related_scalars(state: State, i: Instruction, rng: random.Random) -> None:
  """Second operands that make a sum, a difference or a bitwise result 0, 1 or all ones."""
  a, b = i.operands["src0"], i.operands["src1"]
  if (a.kind, b.kind) != ("s", "s") or max(a.value, b.value) > 105: return
  for w in range(state.waves):
    x, kind = state.pair(a.value, w), rng.randrange(14)
    if kind > 8: continue
    y = (x, ~x, -x, x + 1, x - 1, -(x << rng.randrange(1, 5)), rng.choice((0, 1)), 0, x ^ 1)[kind]
    if kind == 6: x = rng.choice((0, 1))
    for o, value in ((a, x), (b, y)):
      for k in range(max(1, o.dwords)): state.s[o.value + k][w] = value >> 32 * k & M32


def _edges(state: State, i: Instruction, rng: random.Random) -> None:
  """Widths and offsets of fields around those of the register."""
  o = i.operands["src1"]
  if o.kind == "s" and o.value < 106:
    widths = (0, 1, 31, 32, 33, 63, 64, 65, 127)
    for w in range(state.waves):
      if rng.random() < 0.8: state.s[o.value][w] = rng.choice(widths) << 16 | rng.choice((0, 1, 31, 32, 63, 17, 40))


def _exponents(state: State, i: Instruction, names: list[str], rng: random.Random) -> None:
  """Denominators and numerators whose exponents stand where division is scaled or overflows."""
  b, c = (i.operands[n] for n in names[1:3])
  if (b.kind, c.kind) != ("v", "v"): return
  top, at_bit = (b.dwords - 1, 20) if b.dwords == 2 else (0, 23)
  limit = (1 << 31 - at_bit) - 1
  spread, tiny = ((96, 23) if at_bit == 23 else (768, 53))
  for at in range(state.waves * state.lanes):
    if rng.random() > 0.5: continue
    numerator = rng.choice((tiny - 1, tiny, tiny + 1, spread + 1, limit - 1, rng.randrange(1, limit)))
    gap = rng.choice((spread - 1, spread, spread + 1, -149, -150, -151, -1074, -1075, -1076, -limit // 2, 0,
                      1 - limit // 2))
    for o, e in ((c, numerator), (b, numerator - gap)):
      word = state.v[o.value + top][at] & ~(limit << at_bit)
      state.v[o.value + top][at] = word | max(0, min(limit - 1, e)) << at_bit


def _whole(value: int, type_: str) -> int:
  n = width_of(type_)
  return value - (1 << n) if type_[0] == "i" and value >> n - 1 else value


def _drawn(type_: str, dwords: int, rng: random.Random, packed: bool) -> list[int]:
  """Dwords that hold a value of a type; two of them where it has 16 bits."""
  bits = width_of(type_)
  if bits >= 64:
    value = draw.value(type_ if bits == 64 else "b64", rng) | draw.value("b64", rng) << 64
    return [value >> 32 * k & M32 for k in range(dwords)]
  if bits == 16: return [draw.value(type_, rng) | draw.value(type_, rng) << 16 for _ in range(dwords)]
  return [draw.value(type_, rng) for _ in range(dwords)]


def _fill(state: State, register: int, dwords: int, type_: str, rng: random.Random, packed: bool = False) -> None:
  type_ = "b" + type_[1:] if type_[0] == "m" else type_
  columns = [_drawn(type_, dwords, rng, packed) for _ in range(state.waves * state.lanes)]
  for k in range(dwords): state.v[register + k] = [c[k] for c in columns]


def _fill_scalar(state: State, register: int, dwords: int, type_: str, rng: random.Random) -> None:
  type_ = "b" + type_[1:] if type_[0] == "m" else type_
  columns = [_drawn(type_, max(1, dwords), rng, False) for _ in range(state.waves)]
  for k in range(max(1, dwords)): state.s[register + k] = [c[k] for c in columns]

