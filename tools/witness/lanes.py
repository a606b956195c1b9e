"""Runs a lane's witness over the state: operands, modifiers, DPP, packed halves, EXEC, and where results go."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tinyhw.isa.amdgcn import Instruction, Operand
from tinyhw.isa.amdgcn.codes import EXEC_LO, VCC_LO
from tinyhw.tools.witness.softfloat import F16, F32, Format
from tinyhw.tools.witness.state import M32, Loose, State, typed
from tinyhw.tools.witness.subdword import PARTS, is_sdwa, placed, source
from tinyhw.tools.witness.table import Witness, format_of, width_of

Values = list[Any]
OMOD = {1: 1, 2: 2, 3: -1}  # exponents


def sources(i: Instruction) -> list[str]:
  """Names of the source operands in the order of the manual's S0, S1, S2."""
  names = [n for n in ("src0", "src1", "src2") if n in i.operands]
  if "mk_f" in i.mnemonic: names.insert(1, "imm")
  if "ak_f" in i.mnemonic: names.append("imm")
  return names


def lane_witness(s: State, i: Instruction, x: Witness) -> None:
  """Do to the state what the instruction does."""
  if i.family.startswith("SOP"): return scalar(s, i, x)
  if x.packed: return packed(s, i, x)
  vector(s, i, x)


# ---- scalar

def scalar(s: State, i: Instruction, x: Witness) -> None:
  """SOP1, SOP2, SOPC, SOPK."""
  names = sources(i)
  destination = i.operands.get("sdst")
  for wave in range(s.waves):
    values: Values = []
    free = iter(names)
    for t in x.sources:
      if t == "scc": values.append(int(s.scc[wave]))
      elif t.startswith("exec"): values.append(s.s[EXEC_LO][wave] if t == "exec32" else s.pair(EXEC_LO, wave))
      elif t == "k": values.append((i.fields["simm16"] ^ 0x8000) - 0x8000)
      elif t == "ku": values.append(i.fields["simm16"])
      elif t.startswith("d:"):
        assert destination is not None
        values.append(typed(_flushed(s, x, t[2:], s.bits(destination, width_of(t), wave, 0)), t))
      else: values.append(_scalar_value(s, i, x, next(free), t, wave))
    results = x.function(s.mode, *values) if x.mode else x.function(*values)
    for t, value in zip(x.results, results if len(x.results) > 1 else (results,)):
      if t == "scc": s.scc[wave] = bool(value)
      elif t == "exec32": s.s[EXEC_LO][wave] = value & M32
      elif t == "exec64": s.set_pair(EXEC_LO, wave, value)
      else:
        assert destination is not None
        f = format_of(t)
        if isinstance(value, list): value = value[0]
        if f and x.rounds and s.mode.flushes_out(f): value = f.flush(value)
        if f and destination.value != 124: s.loose.setdefault((-1 - destination.value, wave), []).append(Loose(f))
        if t == "v2f16": s.loose.setdefault((-1 - destination.value, wave), []).extend((Loose(F16), Loose(F16, 16)))
        if width_of(t) == 64: s.set_pair(destination.value, wave, value)
        elif destination.value != 124: s.s[destination.value][wave] = value & (1 << width_of(t)) - 1


def _scalar_value(s: State, i: Instruction, x: Witness, name: str, t: str, wave: int) -> Any:
  value = i.fields["imm"] if name == "imm" else s.bits(i.operands[name], width_of(t), wave, 0, t)
  return typed(_flushed(s, x, t, value), t)


# ---- DPP (RDNA3 ISA manual, sections 15.3.8, 15.3.9 and 7.7)

def dpp_source(i: Instruction, lane: int, lanes: int) -> int | None:
  """The lane that source 0 of this lane comes from; None where there is none."""
  if "dpp8" in i.fields: return lane // 8 * 8 + (i.fields["dpp8"] >> lane % 8 * 3 & 7)
  control = i.fields["dpp_ctrl"]
  row, at, n = lane // 16 * 16, lane % 16, control & 15
  if control <= 0xFF: return lane // 4 * 4 + (control >> lane % 4 * 2 & 3)
  if 0x101 <= control <= 0x10F: return row + at + n if at + n < 16 else None  # row_shl
  if 0x111 <= control <= 0x11F: return row + at - n if at >= n else None  # row_shr
  if 0x121 <= control <= 0x12F: return row + (at - n) % 16  # row_ror
  if control == 0x140: return row + 15 - at  # row_mirror
  if control == 0x141: return lane // 8 * 8 + 7 - lane % 8  # row_half_mirror
  if s_old := _older_dpp(control, lane, lanes): return s_old[0]
  if 0x150 <= control <= 0x15F: return row + n  # row_share, on gfx90a row_newbcast
  if 0x160 <= control <= 0x16F: return row + (at ^ n)  # row_xmask
  raise AssertionError(f"dpp_ctrl {control:#x}")


def _older_dpp(control: int, lane: int, lanes: int) -> tuple[int | None] | None:
  """wave_shl, wave_rol, wave_shr, wave_ror, row_bcast15, row_bcast31 of gfx9 (CDNA3 ISA manual, table of DPP_CTRL)."""
  last = lanes - 1
  if control == 0x130: return (lane + 1 if lane < last else None,)
  if control == 0x134: return ((lane + 1) % lanes,)
  if control == 0x138: return (lane - 1 if lane else None,)
  if control == 0x13C: return ((lane - 1) % lanes,)
  if control == 0x142: return (lane // 16 * 16 - 1 if lane >= 16 else None,)
  if control == 0x143: return (31 if lane >= 32 else None,)
  return None


def _is_dpp(i: Instruction) -> bool: return "dpp8" in i.fields or "dpp_ctrl" in i.fields


def dpp_lane(s: State, i: Instruction, wave: int, lane: int) -> tuple[bool, int | None]:
  """(whether the lane's result is written, lane that source 0 comes from or None for a zero)."""
  source = dpp_source(i, lane, s.lanes)
  fetches = bool(i.get("fi")) or i.variant.endswith("_fi")
  if source is not None and not fetches and not s.exec(wave) >> source & 1: source = None
  if "dpp8" in i.fields: return True, source
  if not i.fields["row_mask"] >> lane // 16 & 1 or not i.fields["bank_mask"] >> lane % 16 // 4 & 1: return False, None
  return source is not None or bool(i.get("bound_ctrl")), source


# ---- vector

def _modified(value: int, t: str, negate: int, absolute: int) -> int:
  sign = 1 << width_of(t) - 1
  if absolute: value &= ~sign
  return value ^ sign if negate else value


def _flushed(s: State, x: Witness, t: str, value: int) -> int:
  f = format_of(t)
  return f.flush(value) if f and x.rounds and s.mode.flushes_in(f) else value


Read = Callable[[int, int, int, "int | None"], Any]


def _readers(s: State, i: Instruction, x: Witness) -> Iterator[Read]:
  """For each source of the witness its value by wave, lane, place in a register, and the place that DPP takes."""
  names = sources(i)
  neg, absolute = i.get("neg"), i.get("abs")
  k = 0
  for t in x.sources:
    if t == "vcc" or t == "mask" and k >= len(names):
      yield lambda wave, lane, at, origin: s.vcc(wave) >> lane & 1
    elif t == "mask":
      yield _mask_operand(s, i.operands[names[k]])
      k += 1
    elif t.startswith("d:"): yield _operand(s, x, i.operands["vdst"], t[2:], neg >> 2 & 1, absolute >> 2 & 1, False)
    elif i.mnemonic.startswith("v_dot4_f32"):  # neg_hi is abs, and both are for source 2 alone
      yield _operand(s, x, i.operands[names[k]], t, i.get("neg_lo") >> k & 1, i.get("neg_hi") >> k & 1, k == 0)
      k += 1
    elif names[k] == "imm":
      yield _fixed(typed(_flushed(s, x, t, i.fields["imm"] & (1 << width_of(t)) - 1), t))
      k += 1
    else:
      n = int(names[k][3])
      part = partial(source, i, n) if is_sdwa(i) else None
      yield _operand(s, x, i.operands[names[k]], t, neg >> n & 1, absolute >> n & 1, k == 0, selected_half(i, k), part)
      k += 1


def _fixed(value: int) -> Read: return lambda wave, lane, at, origin: value


def _mask_operand(s: State, o: Operand) -> Read:
  return lambda wave, lane, at, origin: s.mask(o.value, wave) >> lane & 1


def selected_half(i: Instruction, k: int) -> int:
  """The half that op_sel chooses for source k (3: the result) where registers have no halves of their own."""
  return i.get("op_sel") >> k & 1 if i.isa == "gfx9" and i.family == "VOP3" else 0


def _operand(s: State, x: Witness, o: Operand, t: str, negate: int, absolute: int, first: bool,
             selected: int = 0, part: Callable[[int], int] | None = None) -> Read:
  """An operand with its modifiers; `first`: DPP chooses its lane; `selected`: the half of 16 bits; `part`: SDWA's."""
  bits, f = width_of(t), format_of(t)
  sign = 1 << bits - 1
  modifies = (negate or absolute) and (f is not None or t[0] == "m")
  flushes = f if f and x.rounds and s.mode.flushes_in(f) else None
  signed = t[0] == "i"
  half = o.half or selected if bits == 16 else 0
  simple = o.kind == "v" and bits <= 32
  shift, mask = 16 * (half or 0), (1 << bits) - 1

  def read(wave: int, lane: int, at: int, origin: int | None) -> Any:
    if first and origin is None: value = 0
    elif part is not None: value = part(s.bits(o, 32, wave, at)) & mask
    elif simple: value = s.v[o.value][origin if first and origin is not None else at] >> shift & mask
    else: value = s.bits(o, bits, wave, origin if first and origin is not None else at, t, selected)
    if modifies: value = _modified(value, t, negate, absolute)
    if flushes: value = flushes.flush(value)
    return value - (1 << bits) if signed and value & sign else value
  return read


def vector(s: State, i: Instruction, x: Witness) -> None:
  """VOP1, VOP2, VOP3, VOPC of whole registers or one 16-bit half."""
  readers = list(_readers(s, i, x))
  vdst, sdst = i.operands.get("vdst"), i.operands.get("sdst")
  masks: dict[tuple[str, int], int] = {(t, w): 0 for t in x.results if t in {"mask", "exec"} for w in range(s.waves)}
  writes: list[Callable[[], None]] = []
  scalar_destination = vdst is not None and vdst.kind == "s"  # v_s_*: one value for the wave
  for wave, lane, at in [(w, 0, w * s.lanes) for w in range(s.waves)] if scalar_destination else s.active():
    origin: int | None = at
    if _is_dpp(i):
      enabled, lane_from = dpp_lane(s, i, wave, lane)
      if not enabled: continue
      origin = None if lane_from is None else wave * s.lanes + lane_from
    values = [read(wave, lane, at, origin) for read in readers]
    results = x.function(s.mode, *values) if x.mode else x.function(*values)
    for t, value in zip(x.results, results if len(x.results) > 1 else (results,)):
      if t in {"mask", "exec"}: masks[t, wave] |= int(value) << lane
      elif t.startswith("s:"):  # v_swap's other register
        _write_later(s, x, i, i.operands["src0"], t[2:], value, at, writes)
      else:
        assert vdst is not None
        if scalar_destination:
          s.s[vdst.value][wave] = _finished(s, x, i, t, value) & (1 << width_of(t)) - 1
          f = format_of(t)
          if f: s.loose.setdefault((-1 - vdst.value, wave), []).append(Loose(f, 0, x.ulp, x.absolute))
        else: _write_later(s, x, i, vdst, t, value, at, writes)
  for (t, wave), value in masks.items():
    if t == "exec": s.set_mask(EXEC_LO, wave, value)
    if t == "mask" or s.isa == "gfx9":  # v_cmpx of gfx9 writes its destination too (CDNA3 ISA manual, V_CMPX)
      s.set_mask(sdst.value if sdst is not None else VCC_LO, wave, value)
  for write in writes: write()


def _write_later(s: State, x: Witness, i: Instruction, o: Operand, t: str, value: int, at: int,
                 writes: list[Callable[[], None]]) -> None:
  others = tuple(_finished(s, x, i, t, v) for v in value) if isinstance(value, list) else ()
  value, bits, f = others[0] if others else _finished(s, x, i, t, value), width_of(t), format_of(t)

  # gfx9 fills the register with zeros above 16 bits, but for the instructions that have op_sel (LLVM: they preserve)
  half = selected_half(i, 3) if i.isa == "gfx9" and i.family == "VOP3" and "op_sel" in i.fields else o.half

  def write() -> None:
    if is_sdwa(i): s.v[o.value][at] = placed(i, s.v[o.value][at], value)
    elif bits == 16 and half is not None:
      s.v[o.value][at] = s.v[o.value][at] & ~(0xFFFF << 16 * half) & M32 | (value & 0xFFFF) << 16 * half
    else:
      for k in range(-(-bits // 32)): s.v[o.value + k][at] = value >> 32 * k & M32
    if f:
      first = PARTS[i.get("dst_sel")][0] if is_sdwa(i) else 16 * (half or 0) if bits == 16 else 0
      how = Loose(f, first, x.ulp, x.absolute, others)
      for k in range(-(-bits // 32)): s.loose.setdefault((o.value + k, at), []).append(how)
    elif t == "v2f16": s.loose.setdefault((o.value, at), []).extend((Loose(F16), Loose(F16, 16)))
  writes.append(write)


def _finished(s: State, x: Witness, i: Instruction, t: str, value: int) -> int:
  """The result after omod, denormal flush and clamp, or wrapped or saturated."""
  f, bits = format_of(t), width_of(t)
  clamp = i.get("clamp") and x.clamps
  if f is None:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if t[0] == "i" else (0, (1 << bits) - 1)
    if clamp and t[0] in "iu": value = max(low, min(high, value))
    return value & (1 << bits) - 1
  return clamped(s, f, output(s, f, value, i.get("omod"), x.rounds), bool(clamp))


def output(s: State, f: Format, value: int, omod: int, rounds: bool) -> int:
  """omod, which counts only where output denormals are flushed and IEEE is off, and the flush (section 7.2.3.1).

  On RDNA4 it always counts, and denormals are then flushed whatever MODE says (RDNA4 ISA manual, section 7.2.3.1).
  """
  flushes = rounds and s.mode.flushes_out(f)
  if omod and (s.isa == "gfx12" or flushes and not s.mode.ieee):
    value = f.flush(f.scaled(value, OMOD[omod], s.mode.rounding(f)))
    return 0 if f.is_zero(value) else value  # -0 becomes +0
  return f.flush(value) if flushes else value


def clamped(s: State, f: Format, value: int, clamp: bool) -> int:
  """Clamp to [0, 1]; -0 becomes +0, and NaN becomes 0 where DX10_CLAMP is set."""
  if not clamp: return value
  if f.is_nan(value): return 0 if s.mode.dx10 or s.isa == "gfx12" else value  # RDNA4 ISA manual, section 7.2.3.1
  one = f.bias << f.mantissa
  return 0 if f.negative(value) else min(value, one)


# ---- packed 16-bit halves (RDNA3 ISA manual, section 7.6)

def packed(s: State, i: Instruction, x: Witness) -> None:
  """VOP3P with the halves that op_sel and op_sel_hi choose; VOP2's packed ones take the halves in place."""
  names = sources(i)
  o = i.operands["vdst"]
  vop3p = i.family == "VOP3P"
  op_sel, op_sel_hi = (i.get("op_sel"), i.get("op_sel_hi", 7)) if vop3p else (0, 7)
  neg = i.get("neg_lo"), i.get("neg_hi")
  wide = max(width_of(t) for t in x.results)
  writes: list[Callable[[], None]] = []
  for wave, _, at in s.active():
    out = []
    for high in (0, 1):
      values: Values = []
      k = 0
      for t in x.sources:
        if t.startswith("d:"):
          values.append(typed(s.v[o.value][at] >> 16 * high & 0xFFFF, t))
          continue
        select = (op_sel_hi if high else op_sel) >> k & 1
        value = half_of(s, i.operands[names[k]], select, t, wave, at)
        if format_of(t): value = _modified(value, t, neg[high] >> k & 1, 0)
        values.append(typed(_flushed(s, x, t, value), t))
        k += 1
      out.append(_finished(s, x, i, x.results[0], x.function(s.mode, *values) if x.mode else x.function(*values)))
    f = format_of(x.results[0])

    def write(at: int = at, out: list[int] = out, f: Format | None = f) -> None:
      if wide == 32:
        for k in (0, 1): s.v[o.value + k][at] = out[k]
      else: s.v[o.value][at] = out[0] | out[1] << 16
      if f is F32:
        for k in (0, 1): s.loose.setdefault((o.value + k, at), []).append(Loose(f))
      elif f: s.loose.setdefault((o.value, at), []).extend((Loose(f), Loose(f, 16)))
    writes.append(write)
  for w in writes: w()


def half_of(s: State, o: Operand, high: int, t: str, wave: int, at: int) -> int:
  """A 16- or 32-bit part of a packed source; inline constants are 32 bits wide."""
  bits = width_of(t)
  if bits == 32:
    if o.kind in "vs": return s.bits(o, 64, wave, at) >> 32 * high & M32
    return s.bits(o, 32, wave, at)
  return s.bits(o, 32, wave, at) >> 16 * high & 0xFFFF
