"""What a decoded instruction reads and writes, dword by dword, and which kind of instruction it is for the counters.

Registers have one numbering here: vector registers as in `Group.v`, scalar ones from `SGPR0` on, then SCC.
"""
from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from tinyhw.emulator.amdgcn.gfx9.bind import index_bits
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS
from tinyhw.emulator.amdgcn.modes import GPR_IDX_EN
from tinyhw.emulator.amdgcn.registers import SCC as SRC_SCC
from tinyhw.emulator.simt import Group
from tinyhw.isa.amdgcn import Instruction, Operand
from tinyhw.isa.amdgcn.codes import EXEC_LO, M0, NULL, SPECIAL, VCC_LO

VGPRS: Final = 512  # gfx942's accumulation registers are those from 256 on
SGPR0: Final = VGPRS
SCC: Final = SGPR0 + 128
REGISTERS: Final = SCC + 1
_IMPLICIT: Final = {"SCC": (SCC, 0), "VCC": (SGPR0 + VCC_LO, 1), "EXEC": (SGPR0 + EXEC_LO, 1), "M0": (SGPR0 + M0, 0)}

# Kinds of instructions that a counter of outstanding work counts: (family, pattern of the mnemonic, kind); the first
# match counts. "load" and "store" end in what the row says: an atomic that returns nothing is a store.
_ROWS: Final = (
  ("SMEM", r"s_(load|buffer_load|scratch_load|memtime|memrealtime|atc_probe)", "smem"),
  ("SMEM", r"s_(store|buffer_store|scratch_store|.*atomic)", "smem"),
  ("DS", r"ds_(gws|ordered_count|add_gs|sub_gs)", "gds"), ("DS", r"ds_nop", ""), ("DS", r"ds_", "lds"),
  ("FLAT", r"global_inv$", "invalidate"), ("FLAT", r"global_wb", "writeback"),
  ("FLAT", r"(global|scratch)_load_lds", "vmem_lds"), ("FLAT", r"(global|scratch)_", "vmem"),
  ("FLAT", r"flat_", "flat"),
  ("MUBUF", r"buffer_(gl|wb|inv)", ""), ("MUBUF", r"buffer_load_lds|buffer_load_.*_lds", "vmem_lds"),
  ("MUBUF", r"t?buffer_", "vmem"), ("MTBUF", r"", "vmem"),
  ("MIMG", r"image_bvh", "bvh"), ("MIMG", r"image_(sample|gather|get_lod|msaa)", "sample"), ("MIMG", r"", "vmem"),
  ("VIMAGE", r"image_bvh", "bvh"), ("VIMAGE", r"", "vmem"), ("VSAMPLE", r"", "sample"),
  ("EXP", r"", "export"), ("LDSDIR", r"", "lds_direct"),
  ("SOPP", r"s_sendmsg", "message"), ("SOP1", r"s_sendmsg_rtn|s_get_barrier_state", "message_rtn"))
_KINDS: Final = {family: tuple((re.compile(pattern), kind) for f, pattern, kind in _ROWS if f == family)
                 for family, _, _ in _ROWS}

# Instructions whose vector sources are read in other lanes than EXEC's.
_CROSS_LANE: Final = re.compile(r"v_(readlane|readfirstlane|permlane|wmma|swmmac|mfma|smfmac)|ds_(b?permute|swizzle)")
TRANSCENDENTAL: Final = re.compile(r"v_(exp|log|rcp|rcp_iflag|rsq|sqrt|sin|cos)(_legacy)?_f(16|32|64)$")


@dataclass(frozen=True)
class Effects:
  """Dword registers that an instruction reads and writes, and its kind for the counters ("" for none).

  `kind` is of `_ROWS`, with "_load" or "_store" behind "vmem" and "flat". `cross_lane` says that lanes read others'
  registers. `tied` are the registers of a destination that is a source too, as an accumulator is.
  """
  reads: tuple[int, ...]
  writes: tuple[int, ...]
  kind: str
  cross_lane: bool
  tied: tuple[int, ...] = ()


def name_of(register: int) -> str:
  """The vendor's name of a register of this module's numbering."""
  if register == SCC: return "scc"
  if register >= SGPR0:
    code = register - SGPR0
    return SPECIAL.get(code, f"s{code}")
  return f"v{register}" if register < 256 else f"a{register - 256}"


def dwords(o: Operand, lanes: int) -> tuple[int, ...]:
  """The registers of an operand; none for constants, NULL and apertures."""
  count = o.dwords or lanes // 32
  if o.kind == "v": return tuple(range(o.value, min(o.value + count, VGPRS)))
  if o.kind != "s" or o.value == NULL: return ()
  if o.value == SRC_SCC: return (SCC,)
  if o.value > EXEC_LO + 1: return ()
  return tuple(range(SGPR0 + o.value, SGPR0 + min(o.value + count, 128)))


_MOVREL: Final = {  # operands that M0 moves: (name, first bit of M0, bits)
  "v_movrels_b32": (("src0", 0, 32),), "v_movreld_b32": (("vdst", 0, 32),),
  "v_movrelsd_b32": (("src0", 0, 32), ("vdst", 0, 32)), "v_movrelsd_2_b32": (("src0", 0, 10), ("vdst", 16, 10)),
  **{f"s_movrels_b{n}": (("src0", 0, 32),) for n in (32, 64)},
  **{f"s_movreld_b{n}": (("sdst", 0, 32),) for n in (32, 64)}}


def indices(group: Group, i: Instruction) -> tuple[int, ...] | None:
  """The values of M0, of all waves, where it moves the numbers of the instruction's registers; else None."""
  if i.mnemonic in _MOVREL: pass
  elif not (GPR_IDX_EN.of(group.mode) and i.family.startswith("V")): return None
  return tuple(int(m0) for m0 in np.unique(group.s[M0]))


def moved(i: Instruction, m0s: tuple[int, ...]) -> Instruction:
  """The instruction with the registers that it uses. Where M0 differs between waves, it is all that some wave uses."""
  offsets: dict[str, list[int]] = {}
  for m0 in m0s:
    if i.mnemonic in _MOVREL:
      for name, first, bits in _MOVREL[i.mnemonic]: offsets.setdefault(name, []).append(m0 >> first & (1 << bits) - 1)
    else:
      for name, bit in index_bits(i).items():
        if m0 >> bit & 1: offsets.setdefault(name, []).append(m0 & 0xFF)
  operands = dict(i.operands)
  for name, by in offsets.items():
    o = operands.get(name)
    if o is None or o.kind not in "vs": continue
    low, high = min(by), min(max(by), VGPRS)
    role = "d" if name in {"vdst", "sdst"} else o.role
    operands[name] = replace(o, value=o.value + low, dwords=max(o.dwords, 1) + high - low, role=role)
  return replace(i, operands=operands)


def _implicit(names: tuple[str, ...], lanes: int) -> list[int]:
  out: list[int] = []
  for name in names:
    if name not in _IMPLICIT: continue
    first, mask = _IMPLICIT[name]
    out += range(first, first + (lanes // 32 if mask else 1))
  return out


def gives(i: Instruction) -> bool:
  """Whether a memory instruction gives registers values; an image atomic says so in its cache policy alone."""
  return any(o.role == "d" for o in i.operands.values()) or \
    i.mnemonic.startswith("image_atomic_") and bool(i.get("cpol") & 1)


def kind_of(i: Instruction) -> str:
  """The kind of an instruction for the counters."""
  for pattern, kind in _KINDS.get(i.family, ()):
    if pattern.match(i.mnemonic):
      if kind == "lds" and i.get("gds"): return "gds"
      if kind not in {"vmem", "flat"}: return kind
      if "_load" in i.mnemonic and not any(n in i.operands for n in ("vdst", "vdata")): return "vmem_lds"
      return f"{kind}_load" if gives(i) else f"{kind}_store"
  return ""


def effects(i: Instruction, lanes: int) -> Effects:
  """The effects of an instruction in waves of 32 or 64 lanes."""
  reads: list[int] = []
  writes: list[int] = []
  tied: list[int] = []
  for o in i.operands.values():
    (writes if o.role == "d" else reads).extend(dwords(o, lanes))
  destination = i.operands.get("vdst", i.operands.get("sdst"))
  for half, suffix in zip(i.mnemonic.split(" :: "), ("X", "Y") if " :: " in i.mnemonic else ("",)):
    meaning = MEANINGS.get(half.replace("v_dual_", "v_"), i.table)
    target = i.operands.get("vdst" + suffix, destination)
    if meaning is None or target is None: continue
    if any(s.startswith("d:") for s in meaning.sources): tied.extend(dwords(target, lanes))
    if any(r.startswith("s:") for r in meaning.results): writes.extend(dwords(i.operands["src0"], lanes))
  kind = kind_of(i)
  memory = kind in {"vmem_load", "vmem_store", "flat_load", "flat_store", "lds"}
  if memory and i.row.returns and "vdst" not in i.operands and "vdata" in i.operands:  # buffer atomics: data and result
    o = i.operands["vdata"]
    reads.extend(dwords(o, lanes))
    if "cmpswap" in i.mnemonic: reads.extend(range(o.value, o.value + max(2, o.dwords)))
  if i.mnemonic.startswith("image_atomic_") and gives(i):  # the old value, which is half of what a comparison takes
    data = dwords(i.operands["vdata"], lanes)
    writes.extend(data[:len(data) // 2] if "cmpswap" in i.mnemonic else data)
  if "smfmac" in i.mnemonic or "swmmac" in i.mnemonic: tied.extend(dwords(i.operands["vdst"], lanes))
  if "_load_tr_" in i.mnemonic and lanes == 64: writes = writes[:len(writes) // 2]  # the data of 32 lanes
  reads += tied
  uses = tuple(u for u in i.row.uses if not (memory and u == "M0"))
  reads += _implicit(uses, lanes)
  writes += _implicit(i.row.defs, lanes)
  cross = bool(_CROSS_LANE.match(i.mnemonic)) or "dpp" in i.variant
  return Effects(tuple(dict.fromkeys(reads)), tuple(dict.fromkeys(writes)), kind, cross, tuple(tied))
