"""Binds a decoded instruction to a step: operands resolved once, then called for each execution of a group.

The meaning computes values; everything else is here: modifiers (neg, abs, op_sel, clamp, omod), DPP, packed halves,
MODE's denormals, lane masks, and writing under EXEC.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, Final

import numpy as np

from tinyhw.core.errors import MachineFault
from tinyhw.emulator.amdgcn import dpp
from tinyhw.emulator.amdgcn.binders import binds, unsupported
from tinyhw.emulator.amdgcn.constants import constant_half
from tinyhw.emulator.amdgcn.gfx9 import sdwa
from tinyhw.emulator.amdgcn.meanings import integer
from tinyhw.emulator.amdgcn.meanings.quiet import meaning_of
from tinyhw.emulator.amdgcn.meanings.registry import Meaning
from tinyhw.emulator.amdgcn.modes import DX10_CLAMP, FP_ROUND, IEEE, denormals, has, named, round_of, rounds_of
from tinyhw.emulator.amdgcn.registers import (
  Reader,
  Writer,
  exec_changed,
  mask_reader,
  read_mask,
  reader,
  scalar64,
  set_exec,
  vector16,
  vector32,
  with_modifiers,
  write_mask,
  write_scalar32,
  write_scalar64,
  write_vector16,
  write_vector32,
  writer,
)
from tinyhw.emulator.simt import Group, Step
from tinyhw.emulator.values import rounding
from tinyhw.emulator.values.ops import DTYPES, F16, F32, I32, U16, U32
from tinyhw.emulator.values.ops import Array as Value
from tinyhw.isa.amdgcn import Instruction, Operand, table
from tinyhw.isa.amdgcn.codes import EXEC_LO, VCC_LO

_SOURCES: Final = ("src0", "src1", "src2")
SCALAR_FAMILIES: Final = frozenset(("SOP1", "SOP2", "SOPC", "SOPK"))
FLOAT = frozenset({"f16", "f32", "f64"})
OMOD: Final = {1: 2.0, 2: 4.0, 3: 0.5}
WIDE: Final = {"u16": "i64", "i16": "i64", "u32": "i64", "i32": "i64"}
# Instruction tables whose 16-bit results fill the register, with zeros above.
ZERO_FILLING: Final = frozenset({"gfx9"})
# Instructions that round nothing, and those that read no MODE: their float type only says how to look at bits.
_UNROUNDED: Final = ("v_cmp", "s_cmp", "v_div_scale", "v_div_fixup", "v_frexp", "v_trig_preop")
# clamp counts for sums, not for shifts and the low half of a product (section 7.2.3.1).
_BITWISE: Final = ("v_pk_lshl", "v_pk_lshr", "v_pk_ashr", "v_pk_mul_lo")
_MODELESS: Final = ("v_cmp", "s_cmp", "v_frexp", "v_ldexp")


def alu(i: Instruction, pc: int, mode: int) -> Step:
  """The step of a vector or scalar ALU instruction. Raises Unsupported where there is no meaning."""
  if i.family == "VOPD": return _dual(i, pc, mode)
  meaning = meaning_of(i.mnemonic, i.table, mode)
  if meaning is None: raise unsupported(i, pc)
  if rounds(i, meaning, mode): meaning = replace(meaning, function=rounding.directed(meaning.function, rounds_of(mode)))
  if i.family in SCALAR_FAMILIES: return _scalar(i, meaning, mode)
  if meaning.packed: return _packed(i, meaning, mode)
  return _vector(i, meaning, mode)


def rounds(i: Instruction, meaning: Meaning, mode: int) -> bool:
  """Whether MODE rounds a result other than to nearest even. What is not exact anyway is left as it is."""
  return meaning.exact and not i.mnemonic.startswith(_UNROUNDED) and any(
    t in FLOAT and round_of(mode, t) for t in meaning.results)


# ---- scalar

def _scalar(i: Instruction, meaning: Meaning, mode: int) -> Step:
  names = source_names(i)
  destination = i.operands.get("sdst")
  readers: list[Reader] = []
  position = 0
  for t in meaning.sources:
    if t == "scc": readers.append(lambda group: group.scc)
    elif t == "exec":
      wide = "64" in meaning.sources[0]
      readers.append(scalar64(EXEC_LO) if wide else lambda group: group.s[EXEC_LO])
    elif t in {"k", "ku"}:
      k = i.fields["simm16"]
      value = U32.type(k) if t == "ku" else I32.type(k - (k >> 15 << 16))
      readers.append(_always(value))
    elif t.startswith("d:"):
      assert destination is not None
      tied = reader(destination, t[2:])
      readers.append(_flushing(tied) if flushes(i, t[2:], mode, 0) else tied)
    else:
      read = reader(i.operands[names[position]], t)
      readers.append(_flushing(read) if flushes(i, t, mode, 0) else read)
      position += 1
  writers: list[Writer] = []
  for t in meaning.results:
    if t == "scc": writers.append(_write_scc)
    elif t == "exec": writers.append(write_scalar64(EXEC_LO) if "64" in meaning.sources[0] else write_scalar32(EXEC_LO))
    else:
      assert destination is not None
      writers.append(_float_result(i, t, writer(destination, t), mode) if t in FLOAT else writer(destination, t))
  return _step(meaning.function, readers, writers)


def _write_scc(group: Group, value: Value) -> None: group.scc = value


def _step(function: Callable[..., Any], readers: list[Reader], writers: list[Writer]) -> Step:
  """Read, compute, write; the common shapes are spelled out."""
  if len(writers) == 1:
    write = writers[0]
    if len(readers) == 1:
      read0, = readers
      return lambda group: write(group, function(group.o, read0(group)))
    if len(readers) == 2:
      first, second = readers
      return lambda group: write(group, function(group.o, first(group), second(group)))
    if len(readers) == 3:
      one, two, three = readers
      return lambda group: write(group, function(group.o, one(group), two(group), three(group)))
    return lambda group: write(group, function(group.o, *[r(group) for r in readers]))

  def several(group: Group) -> None:
    for w, value in zip(writers, function(group.o, *[r(group) for r in readers])): w(group, value)
  return several


# ---- vector

def flushes(i: Instruction, t: str, mode: int, bit: int) -> bool:
  """Whether MODE flushes denormals of this type; bit 0 allows them in sources, bit 1 in results."""
  if t not in FLOAT or i.mnemonic.startswith(_MODELESS): return False
  return not denormals(mode, t) >> bit & 1


def constant_source(i: Instruction, t: str, mode: int) -> int | None:
  """The value of a source that the instruction's fields or MODE give, `i:NAME` or `mode:NAME`; None for another."""
  if t.startswith("i:"): return i.get(t[2:])
  return named(mode, t[5:]) if t.startswith("mode:") else None


def source_names(i: Instruction) -> list[str]:
  """The names of the operands that a meaning takes, in its order."""
  names = [n for n in _SOURCES if n in i.operands]
  if "imm" in i.operands: names.insert(1 if "mk_" in i.mnemonic else len(names), "imm")
  return names


def _vector(i: Instruction, meaning: Meaning, mode: int) -> Step:
  readers, writers = _vector_parts(i, meaning, mode)
  function = _clamped_integer(i, meaning)
  if i.variant.endswith(dpp.VARIANTS): return _dpp_step(i, function, readers, writers)
  return _step(function, readers, writers)


def _vector_parts(i: Instruction, meaning: Meaning, mode: int) -> tuple[list[Reader], list[Writer]]:
  names = source_names(i)
  destination = i.operands.get("vdst")
  sdst = i.operands.get("sdst")
  neg, absolute = i.get("neg"), i.get("abs")
  readers: list[Reader] = []
  position = 0
  for t in meaning.sources:
    fixed = constant_source(i, t, mode)
    if fixed is not None: readers.append(_always(U32.type(fixed)))
    elif t == "vcc" or t == "mask" and position >= len(names): readers.append(_mask_reader(VCC_LO))
    elif t == "mask":
      readers.append(mask_reader(i.operands[names[position]]))
      position += 1
    elif t.startswith("d:"):
      assert destination is not None
      tied = reader(destination, t[2:])
      readers.append(_flushing(tied) if flushes(i, t[2:], mode, 0) else tied)
    else:
      o = i.operands[names[position]]
      read = _dpp_source(i, o, t) if position == 0 else None
      index = int(names[position][3]) if names[position] != "imm" else 3
      if read is None: read = _source(i, o, t, index)
      read = with_modifiers(read, t, bool(neg >> index & 1), bool(absolute >> index & 1))
      readers.append(_flushing(read) if flushes(i, t, mode, 0) else read)
      position += 1
  writers: list[Writer] = []
  for t in meaning.results:
    if t == "mask": writers.append(_mask_writer(sdst.value if sdst is not None else VCC_LO))
    elif t == "exec": writers.append(set_exec)
    elif t.startswith("s:"): writers.append(writer(i.operands["src0"], t[2:]))
    else:
      assert destination is not None
      write = _destination(i, destination, t)
      writers.append(_float_result(i, t, write, mode) if t in FLOAT else write)
  return readers, writers


def _source(i: Instruction, o: Operand, t: str, index: int) -> Reader:
  """Source `index`: the part that SDWA or, where registers have no named halves, op_sel selects."""
  if i.variant == "sdwa" and DTYPES[t].itemsize < 8:
    return sdwa.source(reader(o, "u32"), i.get(f"src{index}_sel", sdwa.DWORD), bool(i.get("sext") >> index & 1), t)
  return _half(o, 1, t) if high_half(i, o, t, index) else reader(o, t)


def high_half(i: Instruction, o: Operand, t: str, index: int) -> bool:
  """Whether op_sel selects the upper half of an operand that does not name its half itself."""
  return o.half is None and t.endswith("16") and bool(i.get("op_sel") >> index & 1)


def fills_register(i: Instruction, o: Operand, t: str) -> bool:
  """Whether a 16-bit result fills its register, zeros above, instead of keeping the other half.

  Those that can choose the half with op_sel keep the other one (LLVM: GCNSubtarget::zeroesHigh16BitsOfDest).
  """
  return i.isa in ZERO_FILLING and o.kind == "v" and t.endswith("16") and "op_sel" not in i.fields


def _destination(i: Instruction, o: Operand, t: str) -> Writer:
  """The writer of a result of type t."""
  if i.variant == "sdwa" and DTYPES[t].itemsize < 8:
    return sdwa.destination(o.value, i.get("dst_sel", sdwa.DWORD), i.get("dst_unused"))
  if fills_register(i, o, t):
    whole = write_vector32(o.value)
    return lambda group, value: whole(group, value.view(U16).astype(U32))
  if high_half(i, o, t, 3): return write_vector16(o.value, 1)
  return writer(o, t)


def _always(value: Value) -> Reader: return lambda group: value


def _flushing(read: Reader) -> Reader: return lambda group: group.o.flush(read(group))


def _mask_reader(register: int) -> Reader: return lambda group: read_mask(group, register)


def _mask_writer(register: int) -> Writer:
  return lambda group, value: write_mask(group, register, value[()])


def nan_clamps(i: Instruction, mode: int) -> bool:
  """Whether clamp makes NaN zero: by MODE.DX10_CLAMP, or always where MODE has no such bit (RDNA4 ISA, 7.2.3.1)."""
  return not has(i.isa, "DX10_CLAMP") or bool(DX10_CLAMP.of(mode))


def output_modifier(i: Instruction, t: str, mode: int) -> int:
  """omod, which counts only where output denormals are flushed and IEEE is off (RDNA3 ISA manual, section 7.2.3.1).

  Without MODE.IEEE it always counts, and then output denormals are flushed (RDNA4 ISA manual, section 7.2.3.1).
  """
  return i.get("omod") if not has(i.isa, "IEEE") or flushes(i, t, mode, 1) and not IEEE.of(mode) else 0


def _float_result(i: Instruction, t: str, write: Writer, mode: int) -> Writer:
  """omod, denormal flush and clamp of a float result."""
  omod, clamp = output_modifier(i, t, mode), i.get("clamp")
  flush = bool(omod) or flushes(i, t, mode, 1)
  if not (omod or clamp or flush): return write
  one, zero = DTYPES[t].type(1), DTYPES[t].type(0)
  factor = DTYPES[t].type(OMOD.get(omod, 1.0))
  dx10 = nan_clamps(i, mode)

  def finish(group: Group, value: Value) -> None:
    if omod: value = value * factor
    if flush: value = group.o.flush(value)
    if omod: value = np.where(value == zero, zero, value)  # -0 becomes +0
    if clamp:
      limited = np.where(value > zero, np.minimum(value, one), zero)  # -0 becomes +0
      value = np.where(np.isnan(value), zero if dx10 else value, limited)
    write(group, value)
  return finish


def saturates(i: Instruction, meaning: Meaning) -> bool:
  """Whether clamp limits an integer result. Conversions from floats saturate anyway."""
  t = meaning.results[0] if meaning.results else ""
  if i.mnemonic.startswith(_BITWISE) or i.variant == "sdwa" and not _clampable(i.mnemonic, i.table): return False
  return bool(i.get("clamp")) and t in WIDE and not FLOAT.intersection(s.removeprefix("d:") for s in meaning.sources)


@cache
def _clampable(mnemonic: str, isa: str) -> bool:
  """Whether a form other than SDWA, which has a clamp bit for all, can clamp."""
  return any("clamp" in row.fields for row in table(isa).rows_of(mnemonic) if row.variant != "sdwa")


def saturated_carry(i: Instruction, meaning: Meaning) -> Callable[..., Any]:
  """Sums with a carry under clamp: where it is set the result is the largest number, for differences 0."""
  function, bound = meaning.function, 0 if "sub" in i.mnemonic else 0xFFFFFFFF

  def limited(o: Any, *values: Value) -> tuple[Value, Value]:
    value, carry = function(o, *values)
    return o.where(carry, o.const("u32", bound), value), carry
  return limited


def low24(i: Instruction) -> int:
  """How many sources are 24-bit numbers with sign."""
  return 2 if "_i24" in i.mnemonic else 0


def _clamped_integer(i: Instruction, meaning: Meaning) -> Callable[..., Any]:
  """With clamp, integer results saturate: the meaning is evaluated in i64 and limited to the type."""
  t = meaning.results[0] if meaning.results else ""
  function = meaning.function
  if not saturates(i, meaning): return function
  if "mask" in meaning.results: return saturated_carry(i, meaning)
  low, high = np.iinfo(DTYPES[t]).min, np.iinfo(DTYPES[t]).max
  kinds = [DTYPES[s.removeprefix("d:")] if s.removeprefix("d:") in DTYPES else None for s in meaning.sources]
  signed = i.mnemonic.endswith(("i32", "i16"))
  if t == "u32" and signed: low, high = -(1 << 31), (1 << 31) - 1

  def saturating(o: Any, *values: Value) -> Value:
    wide = [v.view(f"i{v.dtype.itemsize}").astype(np.int64) if signed and k is not None
            else v.astype(np.int64) if k is not None else v for v, k in zip(values, kinds)]
    wide[:low24(i)] = [v << np.int64(40) >> np.int64(40) for v in wide[:low24(i)]]
    result = function(o, *wide)
    if signed and t == "u32": return np.clip(result, low, high).astype(np.int32).view(U32)
    return np.clip(result, low, high).astype(DTYPES[t])
  return saturating


# ---- dual issue

def _dual(i: Instruction, pc: int, mode: int) -> Step:
  """VOPD: both halves read before either writes; a wave of 64 skips it (RDNA3 ISA manual, section 7.6).

  The Y half's destination has the other parity (it is decoded so).
  """
  parts = []
  x_name, y_name = i.mnemonic.split(" :: ")
  for name, suffix in ((x_name, "X"), (y_name, "Y")):
    meaning = meaning_of(name.replace("v_dual_", "v_"), i.table, mode)
    if meaning is None: raise unsupported(i, pc)
    if rounds(i, meaning, mode):
      meaning = replace(meaning, function=rounding.directed(meaning.function, rounds_of(mode)))
    destination = i.operands["vdst" + suffix]
    operands = [i.operands[n] for n in ("src0" + suffix, "vsrc1" + suffix) if n in i.operands]
    literal = Operand("imm", "s", "lit", i.get("imm"), 1, "f32")
    if "fmaak" in name: operands.append(literal)
    if "fmamk" in name: operands.insert(1, literal)
    readers: list[Reader] = []
    for k, t in enumerate(meaning.sources):
      if t in {"mask", "vcc"}: readers.append(_mask_reader(VCC_LO))
      else:
        plain = t.removeprefix("d:")
        read = reader(destination if t.startswith("d:") else operands[k], plain)
        readers.append(_flushing(read) if flushes(i, plain, mode, 0) else read)
    t = meaning.results[0]
    write = writer(destination, t)
    if flushes(i, t, mode, 1): write = _float_result(i, t, write, mode)
    parts.append((meaning.function, readers, write))
  (fx, rx, wx), (fy, ry, wy) = parts

  def step(group: Group) -> None:
    if group.cohort.lanes == 64: return
    x = fx(group.o, *[r(group) for r in rx])
    y = fy(group.o, *[r(group) for r in ry])
    wx(group, x)
    wy(group, y)
  return step


# ---- packed 16-bit and mixed precision

def _packed(i: Instruction, meaning: Meaning, mode: int) -> Step:
  """Each half of the result from the halves that op_sel and op_sel_hi choose."""
  if DTYPES[meaning.results[0]].itemsize == 4: return _pairs(i, meaning, mode)
  names = source_names(i)
  op_sel, op_sel_hi = i.get("op_sel"), i.get("op_sel_hi", 7)
  neg_lo, neg_hi = i.get("neg_lo"), i.get("neg_hi")
  destination = i.operands["vdst"]
  halves: list[list[Reader]] = []
  for high in (0, 1):
    select, negate = (op_sel_hi, neg_hi) if high else (op_sel, neg_lo)
    readers = []
    for k, t in enumerate(meaning.sources):
      if t.startswith("d:"):
        readers.append(vector16(destination.value, high, DTYPES[t[2:]]))
        continue
      o = i.operands[names[k]]
      read = _half(o, select >> k & 1, t)
      if DTYPES[t].kind == "f": read = with_modifiers(read, t, bool(negate >> k & 1), False)
      readers.append(_flushing(read) if flushes(i, t, mode, 0) else read)
    halves.append(readers)
  function = _clamped_integer(i, meaning)
  t = meaning.results[0]
  flush, clamp = flushes(i, t, mode, 1), i.get("clamp") and t == "f16"
  dx10 = nan_clamps(i, mode)
  write = writer(destination, "u32")
  low, high_readers = halves

  def finish(group: Group, value: Value) -> Value:
    if flush: value = group.o.flush(value)
    if clamp:
      limited = np.where(value > F16.type(0), np.minimum(value, F16.type(1)), F16.type(0))
      value = limited if dx10 else np.where(np.isnan(value), value, limited)
    return value.view(U16).astype(U32)

  def step(group: Group) -> None:
    a = finish(group, function(group.o, *[r(group) for r in low]))
    b = finish(group, function(group.o, *[r(group) for r in high_readers]))
    write(group, a | b << np.uint32(16))
  return step


def _half(o: Operand, high: int, t: str) -> Reader:
  """One 16-bit half of a source."""
  dtype = DTYPES[t]
  if o.kind == "v": return vector16(o.value, high, dtype)
  if o.kind in {"const", "lit"}: return _always(constant_half(o, high, t))
  read = reader(o, "u32")
  if high: return lambda group: (read(group) >> np.uint32(16)).astype(U16).view(dtype)
  return lambda group: read(group).astype(U16).view(dtype)


def dword(o: Operand, high: int) -> Operand:
  """One dword of a source of two; a constant counts for both."""
  return replace(o, value=o.value + high, dwords=1) if o.kind in {"v", "s"} else o


def _pairs(i: Instruction, meaning: Meaning, mode: int) -> Step:
  """v_pk_*_f32: each of two registers from the dwords that op_sel and op_sel_hi choose."""
  names, first, t = source_names(i), i.operands["vdst"].value, meaning.results[0]
  parts: list[list[Reader]] = []
  for select, negate in ((i.get("op_sel"), i.get("neg_lo")), (i.get("op_sel_hi"), i.get("neg_hi"))):
    readers = []
    for k, kind in enumerate(meaning.sources):
      read = reader(dword(i.operands[names[k]], select >> k & 1), kind)
      read = with_modifiers(read, kind, bool(negate >> k & 1), False)
      readers.append(_flushing(read) if flushes(i, kind, mode, 0) else read)
    parts.append(readers)
  low, high = parts
  writers = [_float_result(i, t, write_vector32(first + k), mode) for k in (0, 1)]
  function = meaning.function

  def step(group: Group) -> None:
    values = function(group.o, *[r(group) for r in low]), function(group.o, *[r(group) for r in high])
    for write, value in zip(writers, values): write(group, value)
  return step


def _widened(half: Reader) -> Reader: return lambda group: half(group).astype(F32)


@binds("v_fma_mix_f32", "v_fma_mixlo_f16", "v_fma_mixhi_f16")
def fma_mix(i: Instruction, pc: int, mode: int) -> Step:
  """v_fma_mix*: each source is f32, or one half as f16 (op_sel_hi says that, op_sel which half)."""
  op_sel, op_sel_hi = i.get("op_sel"), i.get("op_sel_hi")
  neg, absolute = i.get("neg_lo"), i.get("neg_hi")
  readers: list[Reader] = []
  for k, name in enumerate(_SOURCES):
    o = i.operands[name]
    if op_sel_hi >> k & 1:
      read = _widened(_half(o, op_sel >> k & 1, "f16"))
    else: read = reader(o, "f32")
    read = with_modifiers(read, "f32", bool(neg >> k & 1), bool(absolute >> k & 1))
    readers.append(_flushing(read) if not denormals(mode, "f32") & 1 else read)
  destination, clamp, dx10 = i.operands["vdst"], i.get("clamp"), nan_clamps(i, mode)
  one, two, three = readers
  fused: Callable[..., Any] = lambda o, x, y, z: o.fma(x, y, z)
  if i.mnemonic == "v_fma_mix_f32":
    if round_of(mode, "f32"): fused = rounding.directed(fused, rounds_of(mode))
    write = _float_result(i, "f32", writer(destination, "f32"), mode)
    return lambda group: write(group, fused(group.o, one(group), two(group), three(group)))
  half_of: Callable[..., Any] = lambda o, x, y, z: o.to(o.fma(x, y, z), "f16")  # rounded twice, as the manual says
  if FP_ROUND.of(mode): half_of = rounding.directed(half_of, rounds_of(mode))
  which = 1 if i.mnemonic == "v_fma_mixhi_f16" else 0
  write16 = write_vector16(destination.value, which)

  def step(group: Group) -> None:
    value = half_of(group.o, one(group), two(group), three(group))
    if clamp:
      limited = np.where(value > F16.type(0), np.minimum(value, F16.type(1)), F16.type(0))
      value = limited if dx10 else np.where(np.isnan(value), value, limited)
    write16(group, value)
  return step


# ---- DPP

def _dpp_valid(i: Instruction, group: Group, index: Value, exists: Value) -> Value:
  """Lanes whose source lane exists and may be fetched."""
  fetch_inactive = i.get("fi") or i.variant.endswith("_fi")
  if group.mask is None or fetch_inactive: return exists[None, :]
  return exists & np.broadcast_to(group.mask, (group.mask.shape[0], len(index)))[:, index]


def _dpp_source(i: Instruction, o: Operand, t: str) -> Reader | None:
  """Source 0 through DPP: lanes without a source give 0."""
  if not i.variant.endswith(dpp.VARIANTS): return None
  plain = _source(i, o, t, 0)
  tables: dict[int, tuple[Value, Value]] = {}

  def read(group: Group) -> Value:
    lanes = group.cohort.lanes
    if lanes not in tables: tables[lanes] = dpp.source_lanes(i, lanes)
    index, exists = tables[lanes]
    x = plain(group)
    x = np.broadcast_to(x, (x.shape[0] if x.ndim else 1, lanes)).take(index, axis=1)
    return np.where(_dpp_valid(i, group, index, exists), x, x.dtype.type(0))
  return read


def _dpp_step(i: Instruction, function: Callable[..., Any], readers: list[Reader], writers: list[Writer]) -> Step:
  """Compute under EXEC, write the lanes that DPP leaves enabled."""
  tables: dict[int, tuple[Value, Value, Value]] = {}
  bound_ctrl = i.get("bound_ctrl") or "dpp8" in i.fields

  def run(group: Group) -> None:
    lanes = group.cohort.lanes
    if lanes not in tables: tables[lanes] = (*dpp.source_lanes(i, lanes), dpp.enabled(i, lanes))
    index, exists, enabled = tables[lanes]
    keep = np.broadcast_to(enabled[None, :], (1, lanes))
    if not bound_ctrl: keep = keep & _dpp_valid(i, group, index, exists)
    results = function(group.o, *[r(group) for r in readers])
    if len(writers) == 1: results = (results,)
    mask = group.mask
    if not keep.all(): group.mask = keep if mask is None else mask & keep
    try:
      for write, value in zip(writers, results): write(group, value)
    finally: group.mask = mask
    if set_exec in writers: exec_changed(group)
  return run


# ---- dot products of integers

@binds("v_dot4_i32_iu8", "v_dot8_i32_iu4")
def dot_iu(i: Instruction, pc: int, mode: int) -> Step:
  """v_dot4_i32_iu8, v_dot8_i32_iu4: neg_lo says which source is signed."""
  bits = 8 if i.mnemonic == "v_dot4_i32_iu8" else 4
  signed = i.get("neg_lo")
  a, b, c = (reader(i.operands[n], "u32") for n in _SOURCES)
  write, clamp = writer(i.operands["vdst"], "i32"), i.get("clamp")

  def elements(x: Value, is_signed: int) -> list[Value]:
    out = []
    for k in range(32 // bits):
      e = (x >> np.uint32(k * bits) & np.uint32((1 << bits) - 1)).astype(np.int64)
      out.append(np.where(e >> bits - 1, e - (1 << bits), e) if is_signed else e)
    return out

  def step(group: Group) -> None:
    total = c(group).view(np.int32).astype(np.int64)
    for x, y in zip(elements(a(group), signed & 1), elements(b(group), signed >> 1 & 1)): total = total + x * y
    if clamp: total = np.clip(total, -(1 << 31), (1 << 31) - 1)
    write(group, total.astype(np.int32))
  return step


# ---- sums of absolute differences of four bytes at four offsets

@binds("v_qsad_pk_u16_u8", "v_mqsad_pk_u16_u8", "v_mqsad_u32_u8")
def quad_sad(i: Instruction, pc: int, mode: int) -> Step:
  """v_qsad_pk_u16_u8, v_mqsad_pk_u16_u8, v_mqsad_u32_u8: source 0 has 8 bytes, the accumulators 16 or 32 bits."""
  one = integer.msad_u8 if "mqsad" in i.mnemonic else integer.sad_u8
  a, b, n = reader(i.operands["src0"], "u64"), reader(i.operands["src1"], "u32"), i.operands["vdst"].value
  c = i.operands["src2"]
  wide = i.mnemonic == "v_mqsad_u32_u8"
  sums = reader(c, "u64") if not wide else None

  def step(group: Group) -> None:
    x, y = a(group), b(group)
    parts = [group.o.to(x >> np.uint64(8 * k), "u32") for k in range(4)]
    if sums is None:
      old = [vector32(c.value + k, U32)(group) if c.kind == "v" else U32.type(0) for k in range(4)]
      words = [one(group.o, parts[k], y, old[k]) for k in range(4)]
    else:
      packed = sums(group)
      low = [group.o.to(packed >> np.uint64(16 * k), "u32") & np.uint32(0xFFFF) for k in range(4)]
      halves = [one(group.o, parts[k], y, low[k]) & np.uint32(0xFFFF) for k in range(4)]
      words = [halves[0] | halves[1] << np.uint32(16), halves[2] | halves[3] << np.uint32(16)]
    for k, w in enumerate(words): write_vector32(n + k)(group, w)
  return step


@binds("s_trap", "s_code_end")
def stop(i: Instruction, pc: int, mode: int) -> Step:
  """s_trap, and padding that control ran into: the wave stops and the queue reports an error."""
  what = f"s_trap {i.fields['simm16']}" if i.mnemonic == "s_trap" else i.mnemonic

  def step(group: Group) -> None: raise MachineFault(f"the program stopped itself ({what})", wave=int(group.waves[0]))
  return step
