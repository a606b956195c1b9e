"""Vector and scalar ALU instructions as LLVM IR: operands, modifiers, DPP and write-back around the same meanings.

The counterpart of `emulator.amdgcn.bind`, from the same decoded operands, signatures and tables.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tinyhw.core.errors import Unsupported
from tinyhw.emulator.amdgcn import bind, dpp, lanes
from tinyhw.emulator.amdgcn.binders import Binder, binds
from tinyhw.emulator.amdgcn.constants import constant
from tinyhw.emulator.amdgcn.gfx9 import sdwa
from tinyhw.emulator.amdgcn.gfx11 import matrix as reference
from tinyhw.emulator.amdgcn.meanings.quiet import meaning_of
from tinyhw.emulator.amdgcn.meanings.registry import Meaning
from tinyhw.emulator.amdgcn.modes import FP_ROUND, denormals
from tinyhw.emulator.jit.amdgcn import matrix
from tinyhw.emulator.jit.amdgcn.state import Registers
from tinyhw.emulator.jit.values import BOOL, Untranslatable, Value, convert, gather, name_of, number
from tinyhw.emulator.values.ops import DTYPES, F16, F32, I32, I64, U16, U32
from tinyhw.isa.amdgcn import Instruction, Operand
from tinyhw.isa.amdgcn.codes import EXEC_LO, VCC_LO

Emit = Callable[[Registers, Instruction, int], None]


def translate(r: Registers, i: Instruction, mode: int) -> None:
  """Emit an ALU instruction. Raises Untranslatable, with nothing written, for one that is left to the reference."""
  binder = binds.get(i.mnemonic, i.table)
  if binder is not None:
    special = SPECIAL.get(binder)
    if special is None: raise Untranslatable(i.mnemonic)
    return special(r, i, mode)
  if i.family == "VOPD": return _dual(r, i, mode)
  meaning = meaning_of(i.mnemonic, i.table, mode)
  if meaning is None: raise Untranslatable(i.mnemonic)
  _check(i, meaning, mode)
  if i.family in bind.SCALAR_FAMILIES: return _scalar(r, i, meaning, mode)
  if meaning.packed: return _packed(r, i, meaning, mode)
  _vector(r, i, meaning, mode)


def _check(i: Instruction, meaning: Meaning, mode: int) -> None:
  if bind.rounds(i, meaning, mode): raise Untranslatable("a directed rounding mode")


# ---- operands

def read(r: Registers, o: Operand, type_: str) -> Value:
  """A source operand as a type."""
  dtype = DTYPES[type_]
  if o.kind in {"const", "lit"}:
    return r.e.const(dtype, int(constant(o, type_).view(DTYPES[f"u{dtype.itemsize * 8}"])))
  size = dtype.itemsize
  if o.kind == "imm": return r.e.const(dtype, o.value)
  if o.kind == "given": return r.given((o.name, type_), dtype)
  if o.kind == "v":
    if size == 8: return r.vector64(o.value, dtype)
    if size == 2: return r.vector16(o.value, o.half or 0, dtype)
    return r.vector(o.value, dtype)
  if size == 8: return r.scalar64(o.value).view(dtype)
  if size == 2: return convert(r.scalar(o.value), U16).view(dtype)
  return r.scalar(o.value).view(dtype)


def write(r: Registers, o: Operand, value: Value) -> None:
  """Write a destination operand by the size of the value."""
  size = value.dtype.itemsize
  if o.kind == "v":
    if size == 8: r.set_vector64(o.value, value)
    elif size == 2: r.set_vector16(o.value, o.half or 0, value)
    else: r.set_vector(o.value, value)
  elif size == 8: r.set_scalar64(o.value, value)
  elif size == 2: r.set_scalar(o.value, convert(value.view(U16), U32))
  else: r.set_scalar(o.value, value)


def modified(x: Value, negative: int, absolute: int) -> Value:
  """abs and neg act on the sign bit, whatever the type."""
  if not (negative or absolute): return x
  raw = x.view(DTYPES[f"u{x.dtype.itemsize * 8}"])
  sign = x.e.const(raw.dtype, x.top) if raw.bits is not None else x.e.sign(raw.dtype)
  raw = raw | sign if negative and absolute else raw & ~sign if absolute else raw ^ sign
  return raw.view(x.dtype)


def _typed(value: Value, type_: str) -> Value:
  """A result in its declared type: the same width is a view, as a register write of the reference is."""
  dtype = DTYPES[type_]
  if value.dtype == dtype: return value
  if value.dtype.kind == "b" or value.dtype.itemsize != dtype.itemsize:
    raise Untranslatable(f"{name_of(value.dtype)} for {type_}")
  return value.view(dtype)


def _results(values: Any, count: int) -> tuple[Value, ...]: return (values,) if count == 1 else tuple(values)


# ---- scalar

def _scalar(r: Registers, i: Instruction, meaning: Meaning, mode: int) -> None:
  names = bind.source_names(i)
  destination = i.operands.get("sdst")
  wide = "64" in meaning.sources[0]
  sources: list[Value] = []
  position = 0
  for t in meaning.sources:
    if t == "scc": sources.append(r.scc())
    elif t == "exec": sources.append(r.scalar64(EXEC_LO) if wide else r.scalar(EXEC_LO))
    elif t in {"k", "ku"}:
      sources.append(r.number(i, "constant", U32) if t == "ku" else r.number(i, "signed constant", I32))
    elif t.startswith("d:"):
      assert destination is not None
      tied = read(r, destination, t[2:])
      sources.append(r.o.flush(tied) if bind.flushes(i, t[2:], mode, 0) else tied)
    else:
      x = read(r, i.operands[names[position]], t)
      sources.append(r.o.flush(x) if bind.flushes(i, t, mode, 0) else x)
      position += 1
  results = _results(meaning.function(r.o, *sources), len(meaning.results))
  if any(v.wide for v in results): raise Untranslatable("a scalar from lanes")
  typed = [v if t in {"scc", "exec"} else _finished(r, i, t, _typed(v, t), mode)
           for v, t in zip(results, meaning.results)]
  for t, value in zip(meaning.results, typed):
    if t == "scc": r.set_scc(value)
    elif t == "exec":
      if wide: r.set_scalar64(EXEC_LO, value)
      else: r.set_scalar(EXEC_LO, value)
    else:
      assert destination is not None
      write(r, destination, value)


# ---- vector

def _mask_operand(r: Registers, o: Operand) -> Value:
  return r.mask(o.value) if o.kind == "s" else r.to_lanes(read(r, o, f"u{r.lanes}"))


def _vector(r: Registers, i: Instruction, meaning: Meaning, mode: int) -> None:
  moves = i.variant.endswith(dpp.VARIANTS)
  sources = _vector_sources(r, i, meaning, mode, moves)
  function = _of_halves if i.mnemonic == "v_perm_b32" and _halves(sources[2]) else _saturating(i, meaning)
  results = _results(function(r.o, *sources), len(meaning.results))
  typed = [v if t in {"mask", "exec"} else _finished(r, i, t, _typed(v, t.removeprefix("s:")), mode)
           for v, t in zip(results, meaning.results)]
  kept = _limit_by_dpp(r, i) if moves else None
  sdst = i.operands.get("sdst")
  for t, value in zip(meaning.results, typed):
    if t == "mask": r.set_mask(sdst.value if sdst is not None else VCC_LO, value)
    elif t == "exec": r.set_mask(EXEC_LO, value)
    elif t.startswith("s:"): write(r, i.operands["src0"], value)
    elif i.variant == "sdwa" and value.dtype.itemsize < 8: _sdwa_result(r, i, value)
    elif bind.fills_register(i, i.operands["vdst"], t): write(r, i.operands["vdst"], convert(value.view(U16), U32))
    elif bind.high_half(i, i.operands["vdst"], t, 3): r.set_vector16(i.operands["vdst"].value, 1, value)
    else: write(r, i.operands["vdst"], value)
  if kept is not None and "exec" not in meaning.results: r.restore(kept)


def _vector_sources(r: Registers, i: Instruction, meaning: Meaning, mode: int, moves: bool) -> list[Value]:
  names = bind.source_names(i)
  neg, absolute = i.get("neg"), i.get("abs")
  sources: list[Value] = []
  position = 0
  for t in meaning.sources:
    fixed = bind.constant_source(i, t, mode)
    if fixed is not None: sources.append(r.e.const(U32, fixed))
    elif t == "vcc" or t == "mask" and position >= len(names): sources.append(r.mask(VCC_LO))
    elif t == "mask":
      sources.append(_mask_operand(r, i.operands[names[position]]))
      position += 1
    elif t.startswith("d:"):
      tied = read(r, i.operands["vdst"], t[2:])
      sources.append(r.o.flush(tied) if bind.flushes(i, t[2:], mode, 0) else tied)
    else:
      index, o = int(names[position][3]) if names[position] != "imm" else 3, i.operands[names[position]]
      if i.variant == "sdwa" and DTYPES[t].itemsize < 8: x = _sdwa_source(r, i, o, t, index)
      else: x = _half(r, o, 1, t) if bind.high_half(i, o, t, index) else read(r, o, t)
      if position == 0 and moves: x = _through_dpp(r, i, x)
      x = modified(x, neg >> index & 1, absolute >> index & 1)
      sources.append(r.o.flush(x) if bind.flushes(i, t, mode, 0) else x)
      position += 1
  return sources


def _halves(selector: Value) -> list[int]:
  """Which halves of the pair src0:src1 v_perm_b32 puts together, low one first; empty where it does not pick halves."""
  chosen = [] if selector.bits is None else [selector.bits >> 16 * k & 0xFFFF for k in range(2)]
  return [x % 256 // 2 for x in chosen] if all(x in {0x100, 0x302, 0x504, 0x706} for x in chosen) else []


def _of_halves(o: Any, a: Value, b: Value, selector: Value) -> Value:
  """v_perm_b32 where it puts together halves, as code with packed halves has it: LLVM sees through shifts and masks."""
  low, high = ((a if n > 1 else b, n & 1) for n in _halves(selector))
  return (low[0] >> 16 if low[1] else low[0] & 0xFFFF) | (high[0] & 0xFFFF0000 if high[1] else high[0] << 16)


# ---- sub-dword addressing, as gfx9.sdwa has it

def _sdwa_source(r: Registers, i: Instruction, o: Operand, t: str, index: int) -> Value:
  """The selected part of a source, extended."""
  first, bits = sdwa.PARTS[i.get(f"src{index}_sel", sdwa.DWORD)]
  x = read(r, o, "u32")
  if bits < 32:
    x = x << 32 - first - bits
    x = (x.view(I32) >> 32 - bits).view(U32) if i.get("sext") >> index & 1 else x >> 32 - bits
  return (convert(x, U16) if t.endswith("16") else x).view(DTYPES[t])


def _sdwa_result(r: Registers, i: Instruction, value: Value) -> None:
  """A result into the selected part of the destination."""
  n, unused = i.operands["vdst"].value, i.get("dst_unused")
  first, bits = sdwa.PARTS[i.get("dst_sel", sdwa.DWORD)]
  word = convert(value.view(U16), U32) if value.dtype.itemsize == 2 else value.view(U32)
  if bits < 32:
    word = (word & (1 << bits) - 1) << first
    if unused == sdwa.PRESERVE: word = word | r.vector(n, U32) & (~((1 << bits) - 1 << first) & 0xFFFFFFFF)
    elif unused == sdwa.SEXT: word = ((word << 32 - first - bits).view(I32) >> 32 - first - bits).view(U32)
  r.set_vector(n, word)


def _finished(r: Registers, i: Instruction, t: str, value: Value, mode: int) -> Value:
  """omod, denormal flush and clamp of a float result."""
  if t not in bind.FLOAT: return value
  omod, clamp = bind.output_modifier(i, t, mode), i.get("clamp")
  if omod: value = value * bind.OMOD.get(omod, 1.0)
  if omod or bind.flushes(i, t, mode, 1): value = r.o.flush(value)
  if omod: value = r.o.where(value == 0, number(r.e, value.dtype, 0), value)  # -0 becomes +0
  return _clamped(r, value, bind.nan_clamps(i, mode)) if clamp else value


def _clamped(r: Registers, value: Value, dx10: bool) -> Value:
  o = r.o
  limited = o.where(value > 0, o.where(value < 1, value, 1.0), number(r.e, value.dtype, 0))
  return limited if dx10 else o.where(o.isnan(value), value, limited)


def _saturating(i: Instruction, meaning: Meaning) -> Callable[..., Any]:
  """With clamp, integer results saturate: the meaning is evaluated in i64 and limited to the type."""
  t = meaning.results[0] if meaning.results else ""
  if not bind.saturates(i, meaning): return meaning.function
  if "mask" in meaning.results: return bind.saturated_carry(i, meaning)
  signed = i.mnemonic.endswith(("i32", "i16"))
  bits = int(t[1:])
  low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if t[0] == "i" or signed else (0, (1 << bits) - 1)
  kinds = [s.removeprefix("d:") in DTYPES for s in meaning.sources]

  def wide(x: Value) -> Value: return convert(x.view(DTYPES[f"i{x.dtype.itemsize * 8}"]) if signed else x, I64)

  def function(o: Any, *values: Value) -> Any:
    operands = [wide(v) if k else v for v, k in zip(values, kinds)]
    operands[:bind.low24(i)] = [v << 40 >> 40 for v in operands[:bind.low24(i)]]
    return convert(o.clip(meaning.function(o, *operands), low, high), DTYPES[t])
  return function


# ---- DPP

def _valid_lanes(r: Registers, i: Instruction, index: Any, exists: Any) -> Value | None:
  """Lanes whose source lane exists and may be fetched; None for all."""
  fetch_inactive = i.get("fi") or i.variant.endswith("_fi")
  fixed = None if exists.all() else r.e.vector(BOOL, exists)
  if r.full or fetch_inactive: return fixed
  active = _shuffled(r, r.active(), index)
  return active if fixed is None else active & fixed


def _shuffled(r: Registers, x: Value, index: Any) -> Value:
  n, t = r.lanes, r.e.type(x.dtype, True)
  order = ", ".join(f"i32 {int(k)}" for k in index)
  return Value(r.e, r.e.op(f"shufflevector {t} {x.in_lanes()}, {t} poison, <{n} x i32> <{order}>"), x.dtype, True)


def _through_dpp(r: Registers, i: Instruction, x: Value) -> Value:
  """Source 0 through DPP: lanes without a source give 0."""
  try: index, exists = dpp.source_lanes(i, r.lanes)
  except Unsupported as error: raise Untranslatable(str(error)) from None
  moved = _shuffled(r, x, index)
  valid = _valid_lanes(r, i, index, exists)
  return moved if valid is None else r.o.where(valid, moved, number(r.e, x.dtype, 0))


def _limit_by_dpp(r: Registers, i: Instruction) -> tuple[bool, Any] | None:
  """Narrow the active lanes to those that DPP leaves enabled; returns what `Registers.restore` takes, or None."""
  index, exists = dpp.source_lanes(i, r.lanes)
  enabled = dpp.enabled(i, r.lanes)
  valid = None if i.get("bound_ctrl") or "dpp8" in i.fields else _valid_lanes(r, i, index, exists)
  if valid is None and enabled.all(): return None
  keep = r.e.vector(BOOL, enabled)
  return r.limit(keep if valid is None else keep & valid)


# ---- dual issue

def _dual(r: Registers, i: Instruction, mode: int) -> None:
  """VOPD: both halves read before either writes; a wave of 64 skips it."""
  if r.lanes == 64: return
  done: list[tuple[Operand, Value]] = []
  x_name, y_name = i.mnemonic.split(" :: ")
  for name, suffix in ((x_name, "X"), (y_name, "Y")):
    meaning = meaning_of(name.replace("v_dual_", "v_"), i.table, mode)
    if meaning is None: raise Untranslatable(name)
    _check(i, meaning, mode)
    destination = i.operands["vdst" + suffix]
    operands = [i.operands[n] for n in ("src0" + suffix, "vsrc1" + suffix) if n in i.operands]
    if "fmaak" in name: operands.append(i.operands["imm"])
    if "fmamk" in name: operands.insert(1, i.operands["imm"])
    sources: list[Value] = []
    for k, t in enumerate(meaning.sources):
      if t in {"mask", "vcc"}: sources.append(r.mask(VCC_LO))
      else:
        plain = t.removeprefix("d:")
        x = read(r, destination if t.startswith("d:") else operands[k], plain)
        sources.append(r.o.flush(x) if bind.flushes(i, plain, mode, 0) else x)
    t = meaning.results[0]
    value = _typed(meaning.function(r.o, *sources), t)
    done.append((destination, r.o.flush(value) if bind.flushes(i, t, mode, 1) else value))
  for destination, value in done: write(r, destination, value)


# ---- packed 16-bit and mixed precision

def _half(r: Registers, o: Operand, high: int, t: str) -> Value:
  """One 16-bit half of a source."""
  dtype = DTYPES[t]
  if o.kind == "v": return r.vector16(o.value, high, dtype)
  x = read(r, o, "u32")
  return convert(x >> 16 if high else x, U16).view(dtype)


def _packed(r: Registers, i: Instruction, meaning: Meaning, mode: int) -> None:
  """Each half of the result from the halves that op_sel and op_sel_hi choose."""
  if DTYPES[meaning.results[0]].itemsize == 4: return _pairs(r, i, meaning, mode)
  names = bind.source_names(i)
  op_sel, op_sel_hi = i.get("op_sel"), i.get("op_sel_hi", 7)
  neg_lo, neg_hi = i.get("neg_lo"), i.get("neg_hi")
  destination = i.operands["vdst"]
  function = _saturating(i, meaning)
  t = meaning.results[0]
  halves: list[Value] = []
  for high in (0, 1):
    select, negate = (op_sel_hi, neg_hi) if high else (op_sel, neg_lo)
    sources = []
    for k, source in enumerate(meaning.sources):
      if source.startswith("d:"):
        sources.append(r.vector16(destination.value, high, DTYPES[source[2:]]))
        continue
      x = _half(r, i.operands[names[k]], select >> k & 1, source)
      if x.dtype.kind == "f": x = modified(x, negate >> k & 1, 0)
      sources.append(r.o.flush(x) if bind.flushes(i, source, mode, 0) else x)
    value = _typed(function(r.o, *sources), t)
    if bind.flushes(i, t, mode, 1): value = r.o.flush(value)
    if i.get("clamp") and t == "f16": value = _clamped(r, value, bind.nan_clamps(i, mode))
    halves.append(convert(value.view(U16), U32))
  write(r, destination, halves[0] | halves[1] << 16)


def _pairs(r: Registers, i: Instruction, meaning: Meaning, mode: int) -> None:
  """v_pk_*_f32: each of two registers from the dwords that op_sel and op_sel_hi choose."""
  names, first, t = bind.source_names(i), i.operands["vdst"].value, meaning.results[0]
  results: list[Value] = []
  for select, negate in ((i.get("op_sel"), i.get("neg_lo")), (i.get("op_sel_hi"), i.get("neg_hi"))):
    sources = []
    for k, kind in enumerate(meaning.sources):
      x = modified(read(r, bind.dword(i.operands[names[k]], select >> k & 1), kind), negate >> k & 1, 0)
      sources.append(r.o.flush(x) if bind.flushes(i, kind, mode, 0) else x)
    results.append(_finished(r, i, t, _typed(meaning.function(r.o, *sources), t), mode))
  for k, value in enumerate(results): r.set_vector(first + k, value)


def _fma_mix(r: Registers, i: Instruction, mode: int) -> None:
  """v_fma_mix*: each source is f32, or one half as f16."""
  if FP_ROUND.of(mode): raise Untranslatable("a directed rounding mode")
  op_sel, op_sel_hi = i.get("op_sel"), i.get("op_sel_hi")
  neg, absolute = i.get("neg_lo"), i.get("neg_hi")
  sources = []
  for k, name in enumerate(("src0", "src1", "src2")):
    o = i.operands[name]
    x = convert(_half(r, o, op_sel >> k & 1, "f16"), F32) if op_sel_hi >> k & 1 else read(r, o, "f32")
    x = modified(x, neg >> k & 1, absolute >> k & 1)
    sources.append(x if denormals(mode, "f32") & 1 else r.o.flush(x))
  destination = i.operands["vdst"]
  if i.mnemonic == "v_fma_mix_f32":
    return write(r, destination, _finished(r, i, "f32", r.o.fma(*sources), mode))
  value = convert(r.o.fma(*sources), F16)  # rounded twice, as the manual says
  if i.get("clamp"):
    value = _clamped(r, value, bind.nan_clamps(i, mode))
  r.set_vector16(destination.value, 1 if i.mnemonic == "v_fma_mixhi_f16" else 0, value)


# ---- single lanes and permutations

def _first_lane(r: Registers) -> Value:
  """Index of the lowest active lane as u32; lane 0 where none is."""
  if r.full: return r.e.const(U32, 0)
  bits = r.mask_bits(EXEC_LO)
  return r.o.where(bits == 0, r.e.const(U32, 0), r.o.trailing_zeros(bits))


def _pick(r: Registers, x: Value, lane: Value) -> Value:
  if not x.wide: return x
  return Value(r.e, r.e.op(f"extractelement {x.type} {x.text}, i32 {lane.text}"), x.dtype, False)


def _readfirstlane(r: Registers, i: Instruction, mode: int) -> None:
  r.set_scalar(i.operands["vdst"].value, _pick(r, read(r, i.operands["src0"], "u32"), _first_lane(r)))


def _readlane(r: Registers, i: Instruction, mode: int) -> None:
  lane = read(r, i.operands["src1"], "u32") & r.lanes - 1
  r.set_scalar(i.operands["vdst"].value, _pick(r, read(r, i.operands["src0"], "u32"), lane))


def _writelane(r: Registers, i: Instruction, mode: int) -> None:
  lane, value = read(r, i.operands["src1"], "u32") & r.lanes - 1, read(r, i.operands["src0"], "u32")
  old = r.vector(i.operands["vdst"].value, U32)
  if value.wide: raise Untranslatable("a lane from lanes")
  text = r.e.op(f"insertelement {r.e.type(U32, True)} {old.in_lanes()}, i32 {value.text}, i32 {lane.text}")
  r.set_vector(i.operands["vdst"].value, Value(r.e, text, U32, True), everywhere=True)


def lane_numbers(r: Registers) -> Value: return r.e.vector(U32, range(r.lanes))


def permuted(r: Registers, x: Value, index: Value) -> Value:
  """x[index] in each lane; the index must be below the number of lanes."""
  e, n = r.e, r.lanes
  e.do(f"store {e.type(U32, True)} {x.in_lanes()}, ptr %lanes, align 64")
  text = e.op(f"getelementptr i32, ptr %lanes, <{n} x i32> {index.in_lanes()}")
  return Value(e, gather(e, "i32", text, "splat (i1 true)"), U32, True)


def _permlane(r: Registers, i: Instruction, mode: int) -> None:
  """v_permlane16 and v_permlanex16: any lane of the same row, or of the other row of the pair."""
  x, low, high = (read(r, i.operands[n], "u32") for n in ("src0", "src1", "src2"))
  other = 16 if i.mnemonic == "v_permlanex16_b32" else 0
  lane = np.arange(r.lanes)
  column = lane & 15
  choose = r.e.vector(BOOL, column < 8)
  shift = r.e.vector(U32, 4 * (column & 7))
  fetch(r, i, x, (r.o.where(choose, low, high) >> shift & 15) + r.e.vector(U32, lane & ~15 ^ other))


def fetch(r: Registers, i: Instruction, x: Value, index: Value) -> None:
  """Write x[index] of each lane; op_sel says what comes from a lane that is not active."""
  moved = permuted(r, x, index)
  if not r.full and not i.get("op_sel") & 1:
    on = permuted(r, convert(r.active(), U32), index) != 0
    old = r.e.const(U32, 0) if i.get("op_sel") >> 1 & 1 else r.vector(i.operands["vdst"].value, U32)
    moved = r.o.where(on, moved, old)
  write(r, i.operands["vdst"], moved)


def _permlane64(r: Registers, i: Instruction, mode: int) -> None:
  if r.lanes == 64: write(r, i.operands["vdst"], _shuffled(r, read(r, i.operands["src0"], "u32"), np.arange(64) ^ 32))


def _mbcnt(r: Registers, i: Instruction, mode: int) -> None:
  """Count mask bits of the lanes below this one: the low or the high 32 lanes."""
  lane = np.arange(r.lanes) - (32 if i.mnemonic.startswith("v_mbcnt_hi") else 0)
  below = r.e.vector(U32, (1 << np.clip(lane, 0, 32).astype(object)) - 1)
  value = r.o.popcount(read(r, i.operands["src0"], "u32") & below) + read(r, i.operands["src1"], "u32")
  write(r, i.operands["vdst"], value)


# By the reference's binder, so that an instruction that a generation binds otherwise is not taken for this one.
SPECIAL: Final[dict[Binder, Emit]] = {
  lanes.readfirstlane: _readfirstlane, lanes.readlane: _readlane, lanes.writelane: _writelane,
  lanes.permlane: _permlane, lanes.permlane64: _permlane64, lanes.mbcnt: _mbcnt, bind.fma_mix: _fma_mix,
  reference.wmma: matrix.wmma,
}
