"""Witnesses of instructions that look across lanes, choose registers by M0, or select parts of registers.

RDNA3 ISA manual, sections 7.7, 7.8, 16.8, 16.10, 16.12, 16.15; CDNA3 and RDNA4 where they differ.
"""
from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from tinyhw.isa.amdgcn import Instruction
from tinyhw.isa.amdgcn.codes import M0
from tinyhw.tools.witness import draw
from tinyhw.tools.witness.atomics import signed
from tinyhw.tools.witness.cases import PLAIN
from tinyhw.tools.witness.lanes import clamped, half_of, output
from tinyhw.tools.witness.softfloat import (
  BF8,
  BF8_FNUZ,
  F16,
  F32,
  FP8,
  FP8_FNUZ,
  Format,
  convert,
  to_integer,
)
from tinyhw.tools.witness.state import M32, Loose, State
from tinyhw.tools.witness.table import EXACT, WITNESSES

wave = WITNESSES.wave


def scalar_sources(*names: str) -> Callable[[Any, int], None]:
  """Fields: these sources are SGPRs, or now and then constants."""
  def fields(e: Any, k: int) -> None:
    for name in names: e.fields[name] = e.take_sgpr(1) if k % 2 == 0 else e.rng.randrange(128, 160)
  return fields


# ---- single lanes

def sometimes_alike(s: State, i: Instruction, rng: Random) -> None:
  """A register with one value in all lanes, or one in each wave."""
  o, kind = i.operands["src0"], rng.randrange(3)
  if o.kind != "v" or not kind: return
  column = s.v[o.value]
  column[:] = [column[0 if kind == 1 else at // s.lanes * s.lanes] for at in range(len(column))]


@wave("v_readlane_b32", prepare=sometimes_alike, fields=scalar_sources("src1"), lanes=(32, 64), forms=6)
def readlane(s: State, i: Instruction) -> None:
  """EXEC does not count; the lane number wraps."""
  for w in range(s.waves):
    lane = s.bits(i.operands["src1"], 32, w, 0) % s.lanes
    s.s[i.operands["vdst"].value][w] = s.v[i.operands["src0"].value][w * s.lanes + lane]


@wave("v_writelane_b32", fields=scalar_sources("src0", "src1"), lanes=(32, 64), forms=6)
def writelane(s: State, i: Instruction) -> None:
  for w in range(s.waves):
    lane = s.bits(i.operands["src1"], 32, w, 0) % s.lanes
    s.v[i.operands["vdst"].value][w * s.lanes + lane] = s.bits(i.operands["src0"], 32, w, 0)


@wave("v_readfirstlane_b32", prepare=sometimes_alike, lanes=(32, 64), forms=8)
def readfirstlane(s: State, i: Instruction) -> None:
  """The lowest active lane, or lane 0."""
  for w in range(s.waves):
    active = s.exec(w)
    lane = (active & -active).bit_length() - 1 if active else 0
    s.s[i.operands["vdst"].value][w] = s.v[i.operands["src0"].value][w * s.lanes + lane]


@wave("v_permlane64_b32", lanes=(32, 64), forms=4)
def permlane64(s: State, i: Instruction) -> None:
  """The halves of a wave of 64 change places; nothing happens in a wave of 32."""
  if s.lanes == 32: return
  old = s.v[i.operands["src0"].value][:]
  for _, _, at in s.active(): s.v[i.operands["vdst"].value][at] = old[at ^ 32]


def permlane_fields(e: Any, k: int) -> None:
  scalar_sources(*(("src1", "src2") if any(o[0] == "src2" for o in e.row.operands) else ()))(e, 0)
  e.fields["op_sel"] = {1: 0, 2: 1, 5: 2, 6: 3}.get(k, k & 3)  # each with some lanes active


@wave("v_permlane16_b32 v_permlanex16_b32", fields=permlane_fields, lanes=(32, 64, 32), forms=8)
def permlane16(s: State, i: Instruction) -> None:
  """Any lane of the row, or of the other row of a pair. op_sel[0] fetches inactive lanes, op_sel[1]: zeros instead."""
  old = s.v[i.operands["src0"].value][:]
  for w, lane, at in s.active():
    select = s.bits(i.operands["src1"], 32, w, at) | s.bits(i.operands["src2"], 32, w, at) << 32
    gather(s, i, old, w, lane, at, select >> lane % 16 * 4 & 15, "x16" in i.mnemonic)


@wave("v_permlane16_var_b32 v_permlanex16_var_b32", fields=permlane_fields, lanes=(32, 64, 32), forms=8)
def permlane16_var(s: State, i: Instruction) -> None:
  """Each lane says where its value comes from."""
  old, select = s.v[i.operands["src0"].value][:], s.v[i.operands["src1"].value][:]
  for w, lane, at in s.active(): gather(s, i, old, w, lane, at, select[at] & 15, "x16" in i.mnemonic)


def gather(s: State, i: Instruction, old: list[int], w: int, lane: int, at: int, chosen: int, cross: bool) -> None:
  """One lane's value from a column of its row, or of the neighbouring row."""
  source = (lane // 16 * 16 ^ (16 if cross else 0)) + chosen
  fetches, bound = i.get("op_sel") & 1, i.get("op_sel") >> 1 & 1
  if fetches or s.exec(w) >> source & 1: s.v[i.operands["vdst"].value][at] = old[w * s.lanes + source]
  elif bound: s.v[i.operands["vdst"].value][at] = 0


def count_below(i: Instruction, mask: int, lane: int) -> int:
  """How many bits of a mask belong to lanes below this one, of the low or the high 32."""
  below = (1 << lane) - 1
  return (mask & (below >> 32 if "hi" in i.mnemonic else below & M32)).bit_count()


@wave("v_mbcnt_lo_u32_b32 v_mbcnt_hi_u32_b32", lanes=(32, 64, 32),
      fields=lambda e, k: False if "dpp" in e.row.variant else None, forms=5)
def mbcnt(s: State, i: Instruction) -> None:
  for w, lane, at in s.active():
    a, b = (s.bits(i.operands[n], 32, w, at) for n in ("src0", "src1"))
    s.write(i.operands["vdst"].value, at, count_below(i, a, lane) + b)


# ---- LDS hardware as a crossbar

def lane_addresses(s: State, i: Instruction, rng: Random) -> None:
  """Addresses that name lanes, with something above them and below."""
  for at in range(s.waves * s.lanes):
    s.write(i.operands["addr"].value, at, rng.randrange(256) * 4 + rng.randrange(4))


@wave("ds_bpermute_b32 ds_bpermute_fi_b32", prepare=lane_addresses, fields=lambda e, k: e.fields.update(offset=4 * k))
def bpermute(s: State, i: Instruction) -> None:
  """Pull: lanes without EXEC give zeros, but for the form that fetches them (RDNA4 ISA manual, DS_BPERMUTE_FI_B32)."""
  data = s.v[i.operands["data0"].value][:]
  address, fetches = s.v[i.operands["addr"].value][:], "_fi_" in i.mnemonic
  for w, _, at in s.active():
    source = (address[at] + i.fields["offset"]) // 4 % s.lanes
    s.write(i.operands["vdst"].value, at, data[w * s.lanes + source] if fetches or s.exec(w) >> source & 1 else 0)


@wave("ds_permute_b32", prepare=lane_addresses, fields=lambda e, k: e.fields.update(offset=4 * k))
def permute(s: State, i: Instruction) -> None:
  """Push: the highest lane that names another one wins."""
  out = [0] * (s.waves * s.lanes)
  for w, _, at in s.active():
    target = (s.v[i.operands["addr"].value][at] + i.fields["offset"]) // 4 % s.lanes
    out[w * s.lanes + target] = s.v[i.operands["data0"].value][at]
  for _, _, at in s.active(): s.v[i.operands["vdst"].value][at] = out[at]


SWIZZLES: Final = (0xE000, 0xE010, 0xE01F, 0xE003, 0xC020, 0xC421, 0xC3E1, 0x801B, 0x80E4, 0x041F, 0x7C1F, 0x0155,
                   0x2A0F)


@wave("ds_swizzle_b32", fields=lambda e, k: e.fields.update(offset=SWIZZLES[k]), forms=len(SWIZZLES))
def swizzle(s: State, i: Instruction) -> None:
  """FFT, rotation, any of four, and masks, in groups of 32 lanes."""
  code, old = i.fields["offset"], s.v[i.operands["addr"].value][:]
  for w, lane, at in s.active():
    group, l = lane & 32, lane & 31
    if code >= 0xE000:
      reversed_ = int(f"{l:05b}"[::-1], 2) >> (code & 31).bit_count()
      source = reversed_ | l & code & 31
    elif code >= 0xC000:
      turn = code >> 5 & 31
      source = (l & code & 31) | (l + (-turn if code >> 10 & 1 else turn)) & ~code & 31
    elif code >> 15: source = l & ~3 | code >> 2 * (l & 3) & 3
    else: source = (l & code & 31 | code >> 5 & 31) ^ code >> 10 & 31
    source |= group
    s.v[i.operands["vdst"].value][at] = old[w * s.lanes + source] if s.exec(w) >> source & 1 else 0


# ---- registers by M0

def small_m0(s: State, i: Instruction, rng: Random) -> None:
  """Register offsets that stay inside what the case has; waves may differ."""
  step = 2 if "b64" in i.mnemonic else 1
  halves, alike = "_2_" in i.mnemonic or "swaprel" in i.mnemonic, rng.random() < 0.3
  found = [rng.randrange(1, 4) // step * step | (rng.randrange(4) << 16 if halves else 0) for _ in range(s.waves)]
  s.s[M0] = found[:1] * s.waves if alike else found


def register_offsets(s: State, i: Instruction, w: int) -> tuple[int, int]:
  """How far M0 moves the source and the destination."""
  m0 = s.m0(w)
  if "_2_" in i.mnemonic or "swaprel" in i.mnemonic: return m0 & 0x3FF, m0 >> 16 & 0x3FF
  return (m0 if "movrels" in i.mnemonic else 0), (m0 if "movreld" in i.mnemonic or "movrelsd" in i.mnemonic else 0)


@wave("v_movrels_b32 v_movreld_b32 v_movrelsd_b32 v_movrelsd_2_b32 v_swaprel_b32", prepare=small_m0,
      fields=lambda e, k: False if "dpp" in e.row.variant else None)
def movrel(s: State, i: Instruction) -> None:
  for w, _, at in s.active():
    x, y = register_offsets(s, i, w)
    source, target = i.operands["src0"].value + x, i.operands["vdst"].value + y
    old = s.v[target][at]
    s.v[target][at] = s.v[source][at]
    if "swap" in i.mnemonic: s.v[source][at] = old


@wave("s_movrels_b32 s_movrels_b64 s_movreld_b32 s_movreld_b64 s_movrelsd_2_b32", prepare=small_m0, waves=3)
def scalar_movrel(s: State, i: Instruction) -> None:
  for w in range(s.waves):
    x, y = register_offsets(s, i, w)
    words = [s.s[i.operands["src0"].value + x + k][w] for k in range(2 if "b64" in i.mnemonic else 1)]
    for k, word in enumerate(words): s.s[i.operands["sdst"].value + y + k][w] = word


# ---- mixed precision, dot products with signs

def mix_fields(e: Any, k: int) -> Any:
  if "dpp" in e.row.variant: return False
  e.fields |= {n: e.rng.randrange(8) for n in ("op_sel", "op_sel_hi", "neg_lo", "neg_hi")}
  e.fields["clamp"] = int(k > 2)
  if k > 5 and e.table.name != "gfx12": e.mode = 0x2F0 | k  # without DX10_CLAMP, other ways of rounding
  if k == 8: e.mode = PLAIN[e.table.name] & ~0x30  # without f32's denormals


def mix_values(s: State, i: Instruction, rng: Random) -> None:
  """f32, or two f16, whichever the fields look at."""
  for name in ("src0", "src1", "src2"):
    o = i.operands[name]
    if o.kind == "v":
      s.v[o.value] = [draw.value("f32", rng) if rng.random() < 0.5 else draw.value("f16", rng) | draw.value(
        "f16", rng) << 16 for _ in s.v[o.value]]


@wave("v_fma_mix_f32 v_fma_mixlo_f16 v_fma_mixhi_f16", EXACT, prepare=mix_values, fields=mix_fields, forms=9)
def fma_mix(s: State, i: Instruction) -> None:
  """op_sel_hi: a half, which op_sel chooses, else f32. neg_hi is abs. Rounded to f32, then to f16."""
  for w, _, at in s.active():
    values = []
    for k, name in enumerate(("src0", "src1", "src2")):
      o = i.operands[name]
      if i.get("op_sel_hi") >> k & 1: x = convert(half_of(s, o, i.get("op_sel") >> k & 1, "f16", w, at), F16, F32)
      else: x = s.bits(o, 32, w, at)
      if i.get("neg_hi") >> k & 1: x &= ~F32.sign
      if i.get("neg_lo") >> k & 1: x ^= F32.sign
      values.append(F32.flush(x) if s.mode.flushes_in(F32) else x)
    a, b, c = values
    r = F32.fma(a, b, c, s.mode.rounding(F32))
    n = i.operands["vdst"].value
    if i.mnemonic == "v_fma_mix_f32":
      s.write(n, at, clamped(s, F32, output(s, F32, r, 0, True), bool(i.get("clamp"))))
      s.loose[n, at] = [Loose(F32)]
    else:
      small, high = convert(r, F32, F16, s.mode.rounding(F16)), "hi" in i.mnemonic
      half = clamped(s, F16, small, bool(i.get("clamp")))
      s.v[n][at] = s.v[n][at] & 0xFFFF | half << 16 if high else s.v[n][at] & 0xFFFF0000 | half
      s.loose[n, at] = [Loose(F16, 16 * high)]


def signed_fields(e: Any, k: int) -> Any:
  if "dpp" in e.row.variant: return False
  e.fields |= {"neg_lo": k & 3, "clamp": int(k > 3)}


def near_the_ends(s: State, i: Instruction, rng: Random) -> None:
  """Sums near the ends of their range, and products of the largest numbers."""
  for name in ("src0", "src1", "src2"):
    o = i.operands[name]
    if o.kind != "v": continue
    for at in range(len(s.v[o.value])):
      if name == "src2" and rng.random() < 0.5: s.v[o.value][at] = (1 << 31) + rng.randrange(-40, 40) & M32
      elif rng.random() < 0.3: s.v[o.value][at] = rng.choice((0x7F7F7F7F, 0x80808080, 0x77777777, 0x88888888))


@wave("v_dot4_i32_iu8 v_dot8_i32_iu4", prepare=near_the_ends, fields=signed_fields, forms=8)
def dot_iu(s: State, i: Instruction) -> None:
  """neg_lo says which source has signs; clamp saturates."""
  bits = 8 if "iu8" in i.mnemonic else 4
  for w, _, at in s.active():
    a, b, c = (s.bits(i.operands[n], 32, w, at) for n in ("src0", "src1", "src2"))
    total = signed(c, 32)
    for k in range(0, 32, bits):
      x, y = (v >> k & (1 << bits) - 1 for v in (a, b))
      total += (signed(x, bits) if i.get("neg_lo") & 1 else x) * (signed(y, bits) if i.get("neg_lo") & 2 else y)
    if i.get("clamp"): total = max(-(1 << 31), min((1 << 31) - 1, total))
    s.write(i.operands["vdst"].value, at, total)


@wave("v_pk_mov_b32", fields=lambda e, k: e.fields.update(op_sel=k & 3))
def pk_mov(s: State, i: Instruction) -> None:
  """op_sel[0] chooses a dword of source 0, op_sel[1] one of source 1 (CDNA3 ISA manual, V_PK_MOV_B32)."""
  for _, _, at in s.active():
    got = [s.v[i.operands[f"src{k}"].value + (i.get("op_sel") >> k & 1)][at] for k in (0, 1)]
    for k in (0, 1): s.v[i.operands["vdst"].value + k][at] = got[k]


@wave("v_accvgpr_read_b32 v_accvgpr_write_b32 v_accvgpr_mov_b32")
def accumulation(s: State, i: Instruction) -> None:
  """Accumulation registers are those from 256 on."""
  for w, _, at in s.active(): s.v[i.operands["vdst"].value][at] = s.bits(i.operands["src0"], 32, w, at)


# ---- 8-bit floats: OCP's formats on RDNA4, the FNUZ ones on CDNA3

def small(s: State, name: str) -> Format:
  """The format that "fp8" or "bf8" means."""
  fnuz = s.table == "gfx9"
  return (FP8_FNUZ if fnuz else FP8) if name == "fp8" else BF8_FNUZ if fnuz else BF8


def byte_of(s: State, i: Instruction) -> int:
  """The byte that a conversion takes: byte_sel, whose two bits stand the other way round for sources."""
  return i.get("byte_sel")


def byte_fields(e: Any, k: int) -> Any:
  if "dpp" in e.row.variant or e.row.variant == "sdwa": return False
  if "byte_sel" in e.row.fields: e.fields["byte_sel"] = k & 3
  if "op_sel" in e.row.fields:
    half = (k & 1) << (0 if "f32_" in e.row.mnemonic else 3)
    e.fields["op_sel"] = (k & 3) << 2 if "_sr_" in e.row.mnemonic else half


def expanded(s: State, t: Format, x: int) -> int: return convert(x, t, F32)


@wave("v_cvt_f32_fp8 v_cvt_f32_bf8", EXACT, fields=byte_fields, forms=5)
def from_small(s: State, i: Instruction) -> None:
  t = small(s, i.mnemonic[-3:])
  for w, _, at in s.active():
    x = s.bits(i.operands["src0"], 32, w, at) >> 8 * byte_of(s, i) & 0xFF
    s.write(i.operands["vdst"].value, at, expanded(s, t, x))
    s.loose[i.operands["vdst"].value, at] = [Loose(F32)]


@wave("v_cvt_pk_f32_fp8 v_cvt_pk_f32_bf8", EXACT, fields=byte_fields, forms=4)
def pair_from_small(s: State, i: Instruction) -> None:
  t, half = small(s, i.mnemonic[-3:]), i.operands["src0"].half or i.get("op_sel") & 1
  for w, _, at in s.active():
    word = s.bits(i.operands["src0"], 32, w, at) >> 16 * half
    for k in (0, 1):
      s.write(i.operands["vdst"].value + k, at, expanded(s, t, word >> 8 * k & 0xFF))
      s.loose[i.operands["vdst"].value + k, at] = [Loose(F32)]


def floats(*types: str) -> Callable[[State, Instruction, Random], None]:
  """Sources of these types; numbers of 8-bit size among the f32."""
  def prepare(s: State, i: Instruction, rng: Random) -> None:
    for name, t in zip(("src0", "src1", "src2"), types):
      o = i.operands[name]
      if o.kind != "v": continue
      for at in range(len(s.v[o.value])):
        x = draw.value(t, rng)
        if t == "f32" and rng.random() < 0.6: x = F32.round(rng.randrange(-4096, 4096), rng.randrange(-22, 8))
        s.v[o.value][at] = x
  return prepare


def modified(i: Instruction, k: int, x: int) -> int:
  """abs and neg of an f32 source."""
  if i.get("abs") >> k & 1: x &= ~F32.sign
  return x ^ F32.sign if i.get("neg") >> k & 1 else x


def narrowed(t: Format, x: int) -> int:
  """f32 to nearest even. Infinity and what is too large have no place in the formats without infinity: NaN."""
  return convert(x, F32, t)


@wave("v_cvt_pk_fp8_f32 v_cvt_pk_bf8_f32", EXACT, prepare=floats("f32", "f32"), fields=byte_fields, forms=4)
def pair_to_small(s: State, i: Instruction) -> None:
  """Two bytes into the half that op_sel[3] chooses."""
  t, n = small(s, i.mnemonic.split("_")[3]), i.operands["vdst"].value
  high = i.operands["vdst"].half if i.operands["vdst"].half is not None else i.get("op_sel") >> 3 & 1
  for w, _, at in s.active():
    a, b = (narrowed(t, modified(i, k, s.bits(i.operands[f"src{k}"], 32, w, at))) for k in (0, 1))
    s.v[n][at] = s.v[n][at] & ~(0xFFFF << 16 * high) & M32 | (a | b << 8) << 16 * high
    s.loose[n, at] = [Loose(t, 16 * high + 8 * k) for k in (0, 1)]


@wave("v_cvt_sr_fp8_f32 v_cvt_sr_bf8_f32", EXACT, prepare=floats("f32", "b32"), fields=byte_fields, forms=4)
def rounded_by_chance(s: State, i: Instruction) -> None:
  """The number and 20 (fp8) or 21 (bf8) random bits below its mantissa, cut off (RDNA4 ISA manual, V_CVT_SR_*)."""
  t, n = small(s, i.mnemonic.split("_")[3]), i.operands["vdst"].value
  byte = i.get("byte_sel") if "byte_sel" in i.fields else i.get("op_sel") >> 2 & 3
  for w, _, at in s.active():
    a, b = modified(i, 0, s.bits(i.operands["src0"], 32, w, at)), s.bits(i.operands["src1"], 32, w, at)
    s.v[n][at] = s.v[n][at] & ~(0xFF << 8 * byte) & M32 | stochastic(t, a, b) << 8 * byte
    s.loose[n, at] = [Loose(t, 8 * byte)]


def stochastic(t: Format, a: int, chance: int) -> int:
  """a rounded toward zero after the chance bits were added below the last bit that stays."""
  if F32.is_nan(a) or F32.is_inf(a): return narrowed(t, a)
  m, e = F32.value(a)
  minus, m = F32.negative(a), abs(m)
  added = m + (chance >> 12 if t.mantissa == 3 else chance >> 11)
  if not m: return t.zero(minus)
  largest, quantum = t.value(t.largest)
  if added * 2.0 ** e >= (largest + 1) * 2.0 ** quantum: return t.overflow(minus, 0)
  return t.round(-added if minus else added, e, 3, negative=minus)


@wave("v_cvt_pkaccum_u8_f32", EXACT, prepare=floats("f32", "b32"))
def accumulate_byte(s: State, i: Instruction) -> None:
  """A byte of the destination (CDNA3 ISA manual, V_CVT_PKACCUM_U8_F32)."""
  n = i.operands["vdst"].value
  for w, _, at in s.active():
    shift = 8 * (s.bits(i.operands["src1"], 32, w, at) & 3)
    byte = to_integer(s.bits(i.operands["src0"], 32, w, at), F32, 0, 255)
    s.v[n][at] = s.v[n][at] & ~(0xFF << shift) & M32 | byte << shift
