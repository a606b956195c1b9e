"""How undefined bits travel through instructions: exactly where compilers rely on it, else as a whole.

Moves, shifts and permutations run as they are, on shadows in place of data. Logic keeps a bit defined that a defined
operand decides, sums and products keep the bits below the lowest undefined one. All else is undefined as a whole where
a bit that it looks at is.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tinyhw.emulator.amdgcn.bind import ZERO_FILLING
from tinyhw.emulator.amdgcn.gfx9 import sdwa
from tinyhw.emulator.amdgcn.modes import GPR_IDX_EN
from tinyhw.emulator.amdgcn.registers import reader
from tinyhw.emulator.check.amdgcn.effects import SCC, SGPR0, Effects, dwords
from tinyhw.emulator.simt import Group
from tinyhw.emulator.values.ops import U32, U64
from tinyhw.isa.amdgcn import Instruction, Operand
from tinyhw.isa.amdgcn.codes import EXEC_LO, VCC_HI, VCC_LO

if TYPE_CHECKING:
  from tinyhw.emulator.check.amdgcn.undefined import Undefined

Value = Any
ONES: Final = np.uint32(0xFFFFFFFF)
NONE: Final = np.uint32(0)
_ZERO: Final = Operand("", "s", "const", 128, 1, "")
# Instructions that write whatever EXEC says; of one that reads a single lane the result is scalar.
WITHOUT_EXEC: Final = frozenset({"v_writelane_b32", "v_readlane_b32", "v_readfirstlane_b32"})

# Instructions that only move bits: pattern -> operands that hold data; the others choose what moves.
_MOVES: Final = tuple((re.compile(f"({pattern})$"), names) for pattern, names in (
  (r"[sv]_mov_b\d+|v_readfirstlane_b32|v_readlane_b32|v_writelane_b32|v_permlane\w+|v_accvgpr_\w+", ("src0",)),
  (r"s_cselect_b\d+|v_cndmask_b\d+|v_swap_b\d+|v_perm_b32|v_align\w+|s_pack_\w+", ("src0", "src1")),
  (r"s_cmov_b\d+|s_(lshl|lshr|ashr)_\w+|[sv]_bfe_[ui]\d+|[sv]_brev_b\d+|v_bfrev_b32|s_sext_\w+", ("src0",)),
  (r"v_(lshl|lshr|ashr)rev_\w+|v_pk_(lshl|lshr|ashr)rev_\w+", ("src1",)),
  (r"v_bfi_b32", ("src1", "src2")), (r"v_lshl_or_b32", ("src0", "src2")),
  (r"ds_b?permute_b32", ("data0",)), (r"ds_swizzle_b32", ("addr",))))

Shadows = tuple[Value, Value]  # a value and its shadow


def _and(a: Shadows, b: Shadows) -> Shadows: return a[0] & b[0], a[1] & b[1] | a[1] & b[0] | a[0] & b[1]


def _or(a: Shadows, b: Shadows) -> Shadows: return a[0] | b[0], a[1] & b[1] | a[1] & ~b[0] | ~a[0] & b[1]


def _xor(a: Shadows, b: Shadows) -> Shadows: return a[0] ^ b[0], a[1] | b[1]


def _not(a: Shadows) -> Shadows: return ~a[0], a[1]


_LOGIC: Final[dict[str, Callable[..., Shadows]]] = {
  "and": _and, "or": _or, "xor": _xor, "nand": _and, "nor": _or, "xnor": _xor, "not": _not,
  "and_not1": lambda a, b: _and(a, _not(b)), "or_not1": lambda a, b: _or(a, _not(b)),
  "andn2": lambda a, b: _and(a, _not(b)), "orn2": lambda a, b: _or(a, _not(b)),
  "and_or": lambda a, b, c: _or(_and(a, b), c), "or3": lambda a, b, c: _or(_or(a, b), c),
  "xor3": lambda a, b, c: _xor(_xor(a, b), c)}
_LOGIC_NAME: Final = re.compile(rf"[sv]_({'|'.join(_LOGIC)})_b(32|64)$")
_SAVEEXEC: Final = re.compile(r"s_(\w+?)_(saveexec|wrexec)_b\d+$")
_CARRIES: Final = re.compile(r"v_((add|sub|subrev)(_nc)?|mul_lo|add3|lshl_add|add_lshl|mad|mul)_[ui]\w*$"
                             r"|s_(add|sub|mul|addk|mulk)_[iu](32|64)$")
_FLOAT: Final = re.compile(r"_(b?f|fp|bf)\d+|_pk_|_co_")
_24: Final = re.compile(r"_[ui]24$")


def below(shadow: Value) -> Value:
  """Undefined from the lowest undefined bit on."""
  lowest = shadow & (~shadow + shadow.dtype.type(1))
  return np.where(shadow == 0, shadow.dtype.type(0), ~(lowest - shadow.dtype.type(1)))


def written(i: Instruction, r: int, isa: str) -> int:
  """The bits of a register that the instruction writes."""
  if r >= SGPR0: return 0xFFFFFFFF
  if "d16" in i.mnemonic and i.row.loads:
    return 0xFFFFFFFF if isa in ZERO_FILLING else 0xFFFF0000 if "_hi" in i.mnemonic else 0xFFFF
  if i.variant == "sdwa" and i.get("dst_unused") == sdwa.PRESERVE:
    first, bits = sdwa.PARTS[i.get("dst_sel", sdwa.DWORD)]
    return (1 << bits) - 1 << first
  if "mixlo" in i.mnemonic: return 0xFFFF
  if "mixhi" in i.mnemonic: return 0xFFFF0000
  o = i.operands.get("vdst")
  if o is None or o.half is None or o.value != r: return 0xFFFFFFFF
  return 0xFFFF0000 if o.half else 0xFFFF


# ---- operands

def _shadow(u: Undefined, w: Value, o: Operand, count: int = 0) -> Value:
  """The shadow of an operand as u32, or u64 of two dwords."""
  registers = dwords(o, u.lanes)[:count or None]
  if not registers: return np.zeros((1, 1), np.uint32 if o.dwords < 2 else np.uint64)
  if len(registers) == 1: return u.of(w, registers[0])
  return u.of(w, registers[0]).astype(U64) | u.of(w, registers[1]).astype(U64) << np.uint64(32)


def _sources(i: Instruction) -> list[Operand]:
  return [o for n, o in i.operands.items() if o.role != "d" and n.startswith(("src", "vsrc", "vdst"))]


def _looked_at(i: Instruction, o: Operand, index: int) -> int:
  """The bits of each dword of a source that matter."""
  if o.half is not None: return 0xFFFF0000 if o.half else 0xFFFF
  if o.type in {"f16", "b16", "i16", "u16"}: return 0xFFFF
  if m := re.match(r"v_cvt_f32_ubyte(\d)", i.mnemonic): return 0xFF << 8 * int(m[1])
  if _24.search(i.mnemonic) and index < 2: return 0xFFFFFF
  if i.mnemonic.startswith("v_fma_mix") and i.get("op_sel_hi") >> index & 1:
    return 0xFFFF0000 if i.get("op_sel") >> index & 1 else 0xFFFF
  return 0xFFFFFFFF


def _touched(u: Undefined, group: Group, w: Value, i: Instruction, does: Effects, skip: tuple[str, ...] = ()) -> Value:
  """Where some bit that the instruction looks at is undefined: bool [waves, lanes], or [waves, 1] if all is scalar."""
  out: Value = np.zeros((1, 1), bool)
  seen: set[int] = set()
  names = [n for n, o in i.operands.items() if o.role != "d"]
  for index, name in enumerate(n for n in names if n.startswith(("src", "vsrc")) or n in {"addr", "data0", "data1"}):
    o = i.operands[name]
    registers = dwords(o, u.lanes)
    seen.update(registers)
    if name in skip: continue
    if o.kind == "s" and not o.dwords: out = out | _lanes(u, w, registers)
    else:
      bits = np.uint32(_looked_at(i, o, index))
      for r in registers: out = out | (u.of(w, r) & bits != 0)
  vector = i.family.startswith("V")
  for r in does.reads:  # implicit ones, and destinations that are read
    if r in seen or SGPR0 + EXEC_LO <= r <= SGPR0 + EXEC_LO + 1: continue
    if vector and r - SGPR0 in {VCC_LO, VCC_HI}:
      if r - SGPR0 == VCC_LO: out = out | _lanes(u, w, (r, r + 1)[:u.lanes // 32])
      continue
    out = out | (u.of(w, r) != 0)
  return out


def _lanes(u: Undefined, w: Value, registers: tuple[int, ...]) -> Value:
  """The bits of a mask's registers as bools of the lanes."""
  return _unpacked([u.of(w, r) for r in registers]) if registers else np.zeros((1, 1), bool)


def _unpacked(masks: list[Value]) -> Value:
  """Dwords of a mask, each () or [waves, 1], as bools of the lanes [waves, lanes]."""
  parts = [np.ascontiguousarray(m).view(np.uint8).reshape(-1, 4) for m in masks]
  rows = max(len(p) for p in parts)
  unpacked = [np.unpackbits(np.broadcast_to(p, (rows, 4)), axis=1, bitorder="little").view(bool) for p in parts]
  return np.concatenate(unpacked, axis=1)


def _packed(group: Group, lanes: Value) -> list[Value]:
  """Bools of the active lanes as the dwords of a mask, each [waves, 1]."""
  count = group.cohort.lanes
  lanes = np.broadcast_to(lanes, (group.size, count))
  if group.mask is not None: lanes = lanes & group.mask
  raw = np.ascontiguousarray(np.packbits(lanes, axis=1, bitorder="little")).view(np.uint32)
  return [raw[:, k:k + 1] for k in range(count // 32)]


# ---- results

def results(u: Undefined, group: Group, w: Value, pc: int, i: Instruction, does: Effects) -> dict[int, Value]:
  """The shadows of the registers that the instruction writes; those left out are defined."""
  if " :: " in i.mnemonic: return _dual(u, group, w, i)
  name = i.mnemonic
  for pattern, data in _MOVES:
    if pattern.match(name): return _moved(u, group, w, pc, i, does, data)
  if (m := _LOGIC_NAME.match(name)) and "dpp" not in i.variant and "sdwa" not in i.variant:
    return _logic(u, group, w, i, does, _LOGIC[m[1]])
  if (m := _SAVEEXEC.match(name)): return _saveexec(u, group, w, i, m[1])
  if _CARRIES.match(name) and not _FLOAT.search(name) and not i.get("clamp") and "dpp" not in i.variant:
    return _carried(u, group, w, i, does)
  if i.family == "VOP3P" and "op_sel_hi" in i.fields and re.match(r"v_pk_\w+16$", name): return _halves(u, w, i, does)
  return _whole(group, does, i, _touched(u, group, w, i, does))


def _whole(group: Group, does: Effects, i: Instruction, bad: Value) -> dict[int, Value]:
  """Everything that is written is undefined where `bad`."""
  out: dict[int, Value] = {}
  if not bad.any(): return out
  if i.mnemonic.startswith(("v_mfma", "v_wmma", "v_smfmac", "v_swmmac")): bad = bad.any(axis=1, keepdims=True)
  vector = i.family.startswith("V") or i.family == "DS"
  masks = [r for r in does.writes if SGPR0 <= r < SCC] if vector else []
  for r, bits in zip(masks, _packed(group, bad)): out[r] = bits
  for r in does.writes:
    if r not in masks: out[r] = np.where(bad, ONES, NONE)
  return out


def _logic(u: Undefined, group: Group, w: Value, i: Instruction, does: Effects,
           rule: Callable[..., Shadows]) -> dict[int, Value]:
  wide = i.mnemonic.endswith("b64")
  kind, dtype = ("u64", U64) if wide else ("u32", U32)
  pairs = []
  for o in _sources(i):
    shadow = _shadow(u, w, o).astype(dtype)
    pairs.append((reader(o, kind)(group), shadow))
  value, shadow = rule(*pairs)
  return _placed(does, shadow, value)


def _placed(does: Effects, shadow: Value, value: Value | None = None) -> dict[int, Value]:
  """A shadow of one or two dwords at the destination; SCC (whether the result is not 0) unless a defined 1 decides."""
  shadow = np.asarray(shadow)
  parts = [shadow] if shadow.dtype == U32 else [shadow.astype(U32), (shadow >> np.uint64(32)).astype(U32)]
  out = dict(zip((r for r in does.writes if r != SCC), parts))
  if SCC in does.writes:
    unsure = shadow != 0 if value is None else (shadow != 0) & (value & ~shadow == 0)
    out[SCC] = np.where(unsure, ONES, NONE)
  return out


def _saveexec(u: Undefined, group: Group, w: Value, i: Instruction, how: str) -> dict[int, Value]:
  """The destination gets EXEC, which is defined; EXEC gets a logic function of the source and itself."""
  low = SGPR0 + EXEC_LO
  parts = dwords(i.operands["src0"], u.lanes)
  out: dict[int, Value] = {}
  for k, r in enumerate(parts):
    exec_ = np.asarray(group.s[EXEC_LO + k])
    shadow = u.of(w, r)
    if how.startswith("and"): out[low + k] = shadow & (~exec_ if how in {"and_not0"} else exec_)
    elif how.startswith("or"): out[low + k] = shadow & (exec_ if how in {"or_not0"} else ~exec_)
    else: out[low + k] = shadow
  return out


def _carried(u: Undefined, group: Group, w: Value, i: Instruction, does: Effects) -> dict[int, Value]:
  """Sums and products: what is undefined reaches upward only."""
  wide = any(len(dwords(o, u.lanes)) == 2 for o in i.operands.values() if o.role == "d")
  dtype = U64 if wide else U32
  total: Value = np.zeros((1, 1), dtype)
  for index, o in enumerate(_sources(i)):
    bits = dtype.type(_looked_at(i, o, index) | (0xFFFFFFFF << 32 if wide else 0))
    total = total | _shadow(u, w, o).astype(dtype) & bits
  if does.tied: total = total | u.of(w, does.tied[0]).astype(dtype)
  return _placed(does, below(total))


def _halves(u: Undefined, w: Value, i: Instruction, does: Effects) -> dict[int, Value]:
  """Packed 16-bit operations: each half of the result from the halves that are chosen for it."""
  out: Value = np.zeros((1, 1), np.uint32)
  for select, target in ((i.get("op_sel"), 0xFFFF), (i.get("op_sel_hi", 7), 0xFFFF0000)):
    bad: Value = np.zeros((1, 1), bool)
    for index, o in enumerate(_sources(i)):
      bits = np.uint32(0xFFFF0000 if select >> index & 1 else 0xFFFF)
      for r in dwords(o, u.lanes): bad = bad | (u.of(w, r) & bits != 0)
    if does.tied: bad = bad | (u.of(w, does.tied[0]) & np.uint32(target) != 0)
    out = out | np.where(bad, np.uint32(target), NONE)
  return {r: out for r in does.writes}


def _moved(u: Undefined, group: Group, w: Value, pc: int, i: Instruction, does: Effects,
           data: tuple[str, ...]) -> dict[int, Value]:
  """Run the instruction on shadows. Where what chooses is undefined itself, so is the result."""
  operands = {n: replace(_ZERO, name=n, type=o.type, dwords=o.dwords) if n in data and o.kind in {"const", "lit", "imm"}
              else o for n, o in i.operands.items()}
  chooses = {r for n, o in i.operands.items() if o.role != "d" and n not in data for r in dwords(o, u.lanes)}
  shadowed = [r for n in data if n in i.operands for r in dwords(i.operands[n], u.lanes)]
  if not chooses.isdisjoint(shadowed): return _whole(group, does, i, _touched(u, group, w, i, does))
  shadowed += [r for r in does.writes if r != SCC and r not in shadowed]
  plain = replace(i, operands=operands)
  clone = group.take(np.arange(group.size))
  for r in shadowed:
    if r in chooses: continue  # of a destination only what is not written counts
    shadow = np.broadcast_to(u.of(w, r), (group.size, u.lanes if r < SGPR0 else 1))
    if r < SGPR0: clone.v[r] = shadow
    else: clone.s[r - SGPR0] = shadow if group.size > 1 else shadow[0, 0]
  program: Any = group.cohort.program
  step = program.step(plain, pc, group.mode & ~GPR_IDX_EN.mask)
  if step is not None: step(clone)
  out: dict[int, Value] = {}
  bad = _touched(u, group, w, i, does, data)
  for r in does.writes:
    if r == SCC:
      source = [k for k in shadowed if k < SCC]
      out[r] = np.where(np.any([u.of(w, k).any() for k in source]), ONES, NONE).reshape(1, 1)
      continue
    raw = np.asarray(clone.v[r] if r < SGPR0 else clone.s[r - SGPR0]).view(U32)
    got = np.broadcast_to(raw, (group.size, u.lanes if r < SGPR0 else 1))
    if bad.any(): got = got | np.where(bad if r < SGPR0 else bad.any(axis=1, keepdims=True), ONES, NONE)
    out[r] = got
  return out


def _dual(u: Undefined, group: Group, w: Value, i: Instruction) -> dict[int, Value]:
  """Dual instructions: each half from its own operands; moves and selects exactly."""
  out: dict[int, Value] = {}
  for name, suffix in zip(i.mnemonic.split(" :: "), "XY"):
    sources = [i.operands[n + suffix] for n in ("src0", "vsrc1") if n + suffix in i.operands]
    target = dwords(i.operands["vdst" + suffix], u.lanes)[0]
    shadows = [_shadow(u, w, o) for o in sources]
    if name == "v_dual_mov_b32": out[target] = shadows[0]
    elif name == "v_dual_lshlrev_b32" and not shadows[0].any():
      out[target] = shadows[1] << (reader(sources[0], "u32")(group) & np.uint32(31))
    elif name == "v_dual_and_b32":
      out[target] = _and(*[(reader(o, "u32")(group), s) for o, s in zip(sources, shadows)])[1]
    elif name == "v_dual_add_nc_u32": out[target] = below(shadows[0] | shadows[1])
    elif name == "v_dual_cndmask_b32":
      mask = _vcc(group)
      out[target] = np.where(mask, shadows[1], shadows[0]) | np.where(
        _lanes(u, w, tuple(range(SGPR0 + VCC_LO, SGPR0 + VCC_LO + u.lanes // 32))), ONES, NONE)
    else:
      bad = np.zeros((1, 1), bool)
      for s in shadows: bad = bad | (s != 0)
      if "fmac" in name or "acc" in name: bad = bad | (u.of(w, target) != 0)
      out[target] = np.where(bad, ONES, NONE)
  return out


def _vcc(group: Group) -> Value:
  """VCC as bools of the lanes."""
  return _unpacked([np.asarray(group.s[VCC_LO + k]) for k in range(group.cohort.lanes // 32)])


def loaded(u: Undefined, i: Instruction, words: list[Value]) -> dict[int, Value]:
  """The shadows of a load's registers from those of the bytes that it found."""
  o = next((i.operands[n] for n in ("vdst", "sdst", "vdata") if n in i.operands and i.operands[n].role == "d"), None)
  if o is None: return {}
  registers = dwords(o, u.lanes)
  if "d16" in i.mnemonic and len(registers) == 1:
    half = np.where(words[0] != 0, np.uint32(0xFFFF), NONE)
    words = [half << np.uint32(16) if "_hi" in i.mnemonic else half]
  elif re.search(r"_(load|read)_(i|s)(8|16|byte|short)|_sbyte|_sshort|load_i8|load_i16", i.mnemonic):
    words = [np.where(words[0] != 0, ONES, NONE)]
  return dict(zip(registers, words))
