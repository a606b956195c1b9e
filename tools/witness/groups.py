"""Groups of cases that are no single mnemonic's: dual issue, register numbers moved by M0, skipped instructions, all
lane patterns of DPP, all parts of registers of SDWA. `Bench.check("@dual")` runs one.
"""
from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any, Final

from tinyhw.isa.amdgcn import Instruction, Row, Table
from tinyhw.isa.amdgcn.codes import EXEC_LO, M0, VGPR0
from tinyhw.tools.witness import draw
from tinyhw.tools.witness.cases import PLAIN, Case, Encoder, _rng
from tinyhw.tools.witness.lanes import lane_witness
from tinyhw.tools.witness.state import MEMORY_SIZE, State
from tinyhw.tools.witness.subdword import PRESERVE, SIGN, ZEROS
from tinyhw.tools.witness.table import WITNESSES, WaveWitness, Witness

Cases = Iterator[tuple[Case, "Witness | WaveWitness"]]
GPR_IDX_EN, VSKIP = 1 << 27, 1 << 28  # MODE of gfx9 (CDNA3 ISA manual, section 3.5)


def lane_of(mnemonic: str, isa: str) -> Witness:
  x = WITNESSES.get(mnemonic, isa)
  assert isinstance(x, Witness), mnemonic
  return x


def row_of(generation: Table, mnemonic: str, variant: str) -> Row:
  return next(r for r in generation.by_mnemonic[mnemonic] if r.variant == variant)


# ---- dual issue (RDNA3 ISA manual, section 7.6)

def half(i: Instruction, suffix: str) -> Instruction:
  """One of the two operations as an instruction of its own."""
  name = i.mnemonic.split(" :: ")[suffix == "Y"].replace("v_dual_", "v_")
  operands = {new: replace(i.operands[old + suffix], name=new) for new, old in (
    ("vdst", "vdst"), ("src0", "src0"), ("src1", "vsrc1")) if old + suffix in i.operands}
  return replace(i, row=replace(i.row, mnemonic=name, family="VOP2", variant="e32"), operands=operands)


def dual(s: State, i: Instruction) -> None:
  """Both read before either writes; a wave of 64 skips the instruction."""
  if s.lanes == 64: return
  done = []
  for suffix in "XY":
    one, t = half(i, suffix), copy.copy(s)
    t.v, t.loose = [c[:] for c in s.v], {}
    lane_witness(t, one, lane_of(one.mnemonic, i.isa))
    done.append((one.operands["vdst"].value, t))
  for n, t in done:
    s.v[n] = t.v[n]
    s.loose.update({k: how for k, how in t.loose.items() if k[0] == n})


def numbers(s: State, i: Instruction, rng: Random) -> None:
  """Floats in all of the few registers."""
  s.v += [[rng.getrandbits(32)] * len(s.v[0]) for _ in range(12 - len(s.v))]
  for column in s.v:
    if rng.random() < 0.9: column[:] = [draw.value("f32", rng) for _ in column]


DUAL: Final = WaveWitness("dual", dual, "", prepare=numbers)


def duals(generation: Table, salt: str) -> Cases:
  """Every pair of operations: registers that differ in their banks, and that the other operation writes."""
  plain = PLAIN[generation.name]
  modes = (plain, plain | 15, plain & ~0xF0, plain & ~0x10, plain & ~0x20)
  rows = [r for name in generation.by_mnemonic if "::" in name for r in generation.by_mnemonic[name]]
  for number, row in enumerate(rows):
    e = Encoder(generation, row, _rng(row, "dual", generation.name, salt), salt)
    e.fields["vdstX"], e.fields["vdstY"] = e.rng.randrange(8), e.rng.randrange(4) * 2  # the last bit is the other's
    names = {o[0] for o in row.operands}
    for first, second, base in (("src0X", "src0Y", VGPR0), ("vsrc1X", "vsrc1Y", 0)):
      a, b = e.rng.sample(range(8), 2)
      if a % 4 == b % 4: b = (b + 1) % 8
      if first in names: e.fields[first] = base + a
      if second in names: e.fields[second] = base + b
    kind = number % 4
    if kind == 1: e.fields["src0X"] = e.rng.randrange(8, 16)
    if kind == 2: e.fields["src0Y"] = e.rng.choice((128 + e.rng.randrange(64), 240 + e.rng.randrange(8), 193))
    if kind == 3 and "imm" not in names and {"src0X", "src0Y"} & set(row.literal_operands):
      e.literal = draw.value("f32", e.rng)
      for name in row.literal_operands: e.fields[name] = 255
    mode = plain if "dot2acc" in row.mnemonic else modes[number % 5]
    yield e.done(mode, ("all", "some")[number % 2], 32, "dual", 1), DUAL
    if number % 40 == 0: yield e.done(plain, "some", 64, "dual 64", 1), DUAL


# ---- vector registers numbered by M0, and skipped instructions (CDNA3 ISA manual, sections 6.6 and 3.5)

MOVED: Final = {"src0": 12, "src1": 13, "src2": 14, "vdst": 15}


def indexed(s: State, i: Instruction) -> None:
  """M0[7:0] is added to the numbers of the vector registers that M0[15:12] names; waves may differ in M0."""
  masks = [s.pair(EXEC_LO, w) for w in range(s.waves)]
  for w in range(s.waves):
    m0, operands = s.m0(w), dict(i.operands)
    for name, bit in MOVED.items():
      o = operands.get(name)
      if "madmk" in i.mnemonic and name == "src1": bit = 14
      if o is not None and o.kind == "v" and m0 >> bit & 1: operands[name] = replace(o, value=o.value + (m0 & 255))
    for other in range(s.waves): s.set_pair(EXEC_LO, other, masks[other] if other == w else 0)
    lane_witness(s, replace(i, operands=operands), lane_of(i.mnemonic, i.isa))
  for w in range(s.waves): s.set_pair(EXEC_LO, w, masks[w])


def few(s: State, i: Instruction, rng: Random) -> None:
  numbers(s, i, rng)
  s.s[M0] = [rng.getrandbits(16) << 16 | rng.getrandbits(4) << 12 | rng.getrandbits(4) << 8 | rng.randrange(4)
             for _ in range(s.waves)]


INDEXED: Final = WaveWitness("indexed", indexed, "", prepare=few)


def indexings(generation: Table, salt: str) -> Cases:
  for name, variant in (("v_mov_b32", "e32"), ("v_add_f32", "e32"), ("v_sub_u32", "e64"), ("v_fma_f32", ""),
                        ("v_cndmask_b32", "e32"), ("v_madmk_f16", ""), ("v_min_f32", "e64"), ("v_add3_u32", "")):
    for k in range(4):
      row = row_of(generation, name, variant)
      e = Encoder(generation, row, _rng(row, f"indexed {k}", generation.name, salt), salt)
      e.operands(other=("", "", "src0", "")[k])
      yield e.done(PLAIN["gfx9"] | GPR_IDX_EN, ("all", "some")[k & 1], 64, f"indexed {k}", 3), INDEXED


def nothing(s: State, i: Instruction) -> None:
  """Skipped."""


def somewhere(s: State, i: Instruction, rng: Random) -> None:
  s.memory, s.lds = bytearray(rng.randbytes(MEMORY_SIZE)), bytearray(rng.randbytes(2048))


SKIPPED: Final = WaveWitness("skipped", nothing, "", prepare=somewhere)


def skips(generation: Table, salt: str) -> Cases:
  for name in ("v_mov_b32", "v_add_co_u32", "v_cmpx_lt_f32", "v_readfirstlane_b32", "ds_write_b32", "ds_add_u32",
               "global_store_dword", "global_load_dword", "buffer_store_dword", "v_mfma_f32_4x4x1_16b_f32",
               "v_mfma_f32_4x4x1f32"):
    rows = generation.by_mnemonic.get(name)
    if rows is None: continue  # the product has another name in CDNA2
    row = rows[0]
    e = Encoder(generation, row, _rng(row, "skipped", generation.name, salt), salt)
    e.operands()
    yield e.done(PLAIN["gfx9"] | VSKIP, "some", 64, "skipped", 2), SKIPPED


# ---- every lane pattern of DPP, every part of SDWA

def patterns(generation: Table, salt: str) -> Cases:
  """v_mov_b32 and a sum that keeps its destination, with each dpp_ctrl, in waves of both sizes."""
  isa = generation.name
  controls = [0, 0x1B, 0xE4, *range(0x101, 0x110), *range(0x111, 0x120), *range(0x121, 0x130), 0x140, 0x141,
              *range(0x150, 0x160)]
  controls += [0x130, 0x134, 0x138, 0x13C, 0x142, 0x143] if isa == "gfx9" else range(0x160, 0x170)
  for k, control in enumerate(controls):
    name = ("v_mov_b32", "v_sub_u32" if isa == "gfx9" else "v_sub_nc_u32")[k & 1]
    row = row_of(generation, name, "dpp")
    e = Encoder(generation, row, _rng(row, f"pattern {control}", isa, salt), salt)
    e.operands()
    e.fields |= {"dpp_ctrl": control, "row_mask": e.rng.choice([15, 15, 9, 6]), "bound_ctrl": e.rng.randrange(2),
                 "bank_mask": e.rng.choice([15, 15, 10, 5])}
    if "fi" in row.fields: e.fields["fi"] = e.rng.randrange(2)
    lanes = 64 if isa == "gfx9" or k % 3 == 0 else 32
    yield e.done(PLAIN[isa], "some", lanes, f"pattern {control:x}", 3), lane_of(name, isa)


def parts(generation: Table, salt: str) -> Cases:
  """Each selection of a source with each of the destination, extended or not."""
  for name, source, destination, unused in product(("v_mov_b32", "v_not_b32"), range(7), range(7),
                                                   (ZEROS, SIGN, PRESERVE)):
    row = row_of(generation, name, "sdwa")
    e = Encoder(generation, row, _rng(row, f"part {source} {destination}", "gfx9", salt), salt)
    e.fields |= {"src0_sel": source, "dst_sel": destination, "dst_unused": unused, "sext": int(name == "v_not_b32"),
                 "clamp": source & 1}
    e.operands()
    yield e.done(PLAIN["gfx9"], "some", 64, f"part {source} {destination} {unused}", 1), lane_of(name, "gfx9")


GROUPS: Final[dict[str, tuple[tuple[str, ...], Callable[[Table, str], Cases]]]] = {
  "@dual": (("gfx11", "gfx12"), duals), "@indexed": (("gfx9",), indexings), "@skipped": (("gfx9",), skips),
  "@dpp": (("gfx11", "gfx12", "gfx9"), patterns), "@sdwa": (("gfx9",), parts)}


def names(isa: str) -> list[str]:
  """The groups of a table of instructions."""
  return [name for name, (isas, _) in GROUPS.items() if isa in isas]


def group(generation: Table, name: str, salt: str = "") -> list[tuple[Case, Any]]:
  """The cases of a group, each with its witness."""
  return list(GROUPS[name][1](generation, salt))
