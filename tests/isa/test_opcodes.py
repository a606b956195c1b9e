"""Opcodes of the three tables against Mesa's: an independent source of the same facts.

Mesa has one name for an instruction in all generations, the first that it had; LLVM has each generation's own. The
rules below say how names changed. What only one source has is listed, with the reason where it is known.
"""
from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable

import pytest

from tinyhw.autogen.aco_opcodes import OPCODES
from tinyhw.isa.amdgcn import Table, table

COLUMN = {"gfx9": 0, "gfx11": 1, "gfx12": 2}
# Family -> (first bit, bits) of the opcode (manuals: Microcode Formats).
_COMMON = {"SOP2": (23, 7), "SOPK": (23, 5), "SOP1": (8, 8), "SOPC": (16, 7), "SOPP": (16, 7), "VOP2": (25, 6),
           "VOP1": (9, 8), "VOPC": (17, 8), "VOP3": (16, 10), "VOP3P": (16, 7), "MTBUF": (15, 4)}
_LATER = _COMMON | {"MIMG": (18, 8), "VIMAGE": (14, 8), "VSAMPLE": (14, 8), "DS": (18, 8), "VINTERP": (16, 7),
                    "LDSDIR": (20, 2)}
OPCODE = {
  "gfx9": _COMMON | {"SMEM": (18, 8), "DS": (17, 8), "FLAT": (18, 7), "MUBUF": (18, 7)},
  "gfx11": _LATER | {"SMEM": (18, 8), "FLAT": (18, 7), "MUBUF": (18, 8)},
  "gfx12": _LATER | {"SMEM": (13, 6), "FLAT": (14, 7), "MUBUF": (14, 8)},
}
FAMILY = {"VINTERP_INREG": "VINTERP", "GLOBAL": "FLAT", "SCRATCH": "FLAT"}
# Families that are not compared by name: exports have one opcode, dual instructions are pairs here (below), and VINTRP
# is gone on all three chips.
NOT_HERE = {"EXP", "VINTRP", "VOPD"}
# VOP3 opcodes of instructions that have a short form too: the short opcode and this (manuals: VOP3).
LONG = {"gfx9": {"VOPC": 0, "VOP2": 0x100, "VOP1": 0x140}, "gfx11": {"VOPC": 0, "VOP2": 0x100, "VOP1": 0x180},
        "gfx12": {"VOPC": 0, "VOP2": 0x100, "VOP1": 0x180}}


def mesa(generation: str) -> dict[str, dict[str, int]]:
  """Family -> name -> opcode."""
  out: dict[str, dict[str, int]] = {}
  for family, text in OPCODES.items():
    for line in text.split("\n"):
      if not line: continue
      name, *opcodes = line.split()
      if (found := opcodes[COLUMN[generation]]) != "-": out.setdefault(family, {})[name] = int(found, 16)
  return out


def ours(isa: Table) -> dict[str, dict[str, set[int]]]:
  """Family -> mnemonic -> opcodes of its rows."""
  out: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
  for row in isa.rows():
    if row.family not in OPCODE[isa.name]: continue
    at, width = OPCODE[isa.name][row.family]
    out[row.family][row.mnemonic].add(row.value >> at & (1 << width) - 1)
  return out


SIZES = {"dwordx16": "b512", "dwordx8": "b256", "dwordx4": "b128", "dwordx3": "b96", "dwordx2": "b64", "dword": "b32",
         "ubyte": "u8", "sbyte": "i8", "ushort": "u16", "sshort": "i16", "byte": "b8", "short": "b16"}
ATOMICS = {"swap": "swap_b", "cmpswap": "cmpswap_b", "add": "add_u", "sub": "sub_u", "smin": "min_i", "umin": "min_u",
           "smax": "max_i", "umax": "max_u", "and": "and_b", "or": "or_b", "xor": "xor_b", "inc": "inc_u",
           "dec": "dec_u", "fcmpswap": "cmpswap_f", "fmin": "min_f", "fmax": "max_f", "csub": "csub_u"}
Rule = tuple[str, str | Callable[[re.Match[str]], str]]
# How names changed with gfx10 and gfx11 (what: new name); the first rule that fits a whole name holds.
GFX11: tuple[Rule, ...] = (
  (r"(.*_(?:load|store))_([us]?byte|[us]?short)_(d16(?:_hi)?)", lambda m: f"{m[1]}_{m[3]}_{SIZES[m[2]]}"),
  (r"(.*_(?:load|store))_(dword(?:x\d+)?|[us]?byte|[us]?short)(_addtid)?",
   lambda m: f"{m[1]}_{'addtid_' if m[3] else ''}{SIZES[m[2]]}"),
  (r"(t?buffer_(?:load|store))_format_d16(_hi)?_(\w+)", lambda m: f"{m[1]}_d16{m[2] or ''}_format_{m[3]}"),
  (r"(flat|global|buffer)_atomic_(\w+?)(_x2)?", lambda m: f"{m[1]}_atomic_{ATOMICS[m[2]]}{64 if m[3] else 32}"
   if m[2] in ATOMICS else m[0]),
  (r"ds_(cmpst|wrxchg|read|write)(2(?:st64)?)?(_\w+)", lambda m:
   f"ds_{ {'cmpst': 'cmpstore', 'wrxchg': 'storexchg', 'read': 'load', 'write': 'store'}[m[1]]}"
   f"{ {None: '', '2': '_2addr', '2st64': '_2addr_stride64'}[m[2]]}{m[3]}"),
  (r"(s_(?:and|or))n([12])(_\w+)", lambda m: f"{m[1]}_not{int(m[2]) - 1}{m[3]}"),
  (r"s_ff1(_i32_b\d+)", r"s_ctz\1"), (r"s_flbit_i32_b(\d+)", r"s_clz_i32_u\1"), (r"s_flbit(_i32\w*)", r"s_cls\1"),
  (r"s_inst_prefetch", "s_set_inst_prefetch_distance"),
  (r"v_ffbh_u32", "v_clz_i32_u32"), (r"v_ffbh_i32", "v_cls_i32"), (r"v_ffbl_b32", "v_ctz_i32_b32"),
  (r"v_cvt_flr_(\w+)", r"v_cvt_floor_\1"), (r"v_cvt_rpi_(\w+)", r"v_cvt_nearest_\1"),
  (r"v_cvt_pk(rtz|norm)_(\w+)", r"v_cvt_pk_\1_\2"), (r"v_dot2c_(\w+)", r"v_dot2acc_\1"),
  (r"v_(mul|fma|fmac)_legacy_f32", r"v_\1_dx9_zero_f32"),
  (r"v_addc_co_u32", "v_add_co_ci_u32"), (r"v_subb(rev)?_co_u32", lambda m: f"v_sub{m[1] or ''}_co_ci_u32"),
  (r"v_(add|sub|subrev)_([iu](?:16|32))", r"v_\1_nc_\2"),
)
GFX12: tuple[Rule, ...] = (
  (r"image_atomic_(add|sub|inc|dec)", r"image_atomic_\1_uint"), (r"image_atomic_s(min|max)", r"image_atomic_\1_int"),
  (r"image_atomic_u(min|max)", r"image_atomic_\1_uint"), (r"image_atomic_f(min|max)", r"image_atomic_\1_flt"),
  (r"(\w+_atomic|ds)_(min|max)((?:_rtn)?_f\d+)", r"\1_\2_num\3"), (r"(\w+_atomic)_csub_u32", r"\1_sub_clamp_u32"),
  (r"ds_cond_sub_rtn", "ds_cond_sub_rtn_u32"), (r"lds_(direct|param)_load", r"ds_\1_load"),
  (r"([sv](?:_pk)?_(?:min|max|minmax|maxmin|med3|min3|max3))_(f\d+)", r"\1_num_\2"),
  (r"s_(add|sub)_([iu]32)", r"s_\1_co_\2"), (r"s_(add|sub)_u64", r"s_\1_nc_u64"), (r"s_addk_i32", "s_addk_co_i32"),
  (r"s_(add|sub)[cb]_u32", r"s_\1_co_ci_u32"), (r"s_waitcnt_depctr", "s_wait_alu"),
  (r"v_mad_([iu]64_[iu]32)", r"v_mad_co_\1"),
)
# Names that Mesa spells in its own way in every generation.
MESAS: tuple[Rule, ...] = (
  (r"(v_\w+)_e64", r"\1"), (r"(v_interp_\w+)_inreg", r"\1"), (r"(v_cmpx?)_lg(_[iu]\d+)", r"\1_ne\2"),
  (r"(v_cmpx?)_tru(_\w+)", r"\1_t\2"), (r"v_mul_lo_i32", "v_mul_lo_u32"),
)
# gfx942's v_mul_legacy_f32 has a long form alone, 673 (CDNA3 manual, section 13.3.4): v_fmac_f64 took its short number.
MOVED = {("gfx9", "v_mul_legacy_f32")}
# What Mesa has alone, as patterns: of gfx9's graphics chips (Vega), and of gfx1150 and later. On gfx12 it keeps five
# branches and barriers of gfx11, and comparisons that are always true: LLVM 19 and the RDNA4 manual do not have them.
MESA_ALONE = {
  "gfx9": r"image_\w+|ds_\w+_src2_\w+|ds_ordered_count|s_gl1_inv|v_interp_\w+"
          r"|v_(mac|mad|madak|madmk|mad_legacy|mul_legacy)_f32",
  "gfx11": r"s_(add|sub|mul|min|max|fmac|fmaak|fmamk|ceil|floor|trunc|rndne)_f(16|32)|s_cmp_\w+_f(16|32)|s_cvt_\w+"
           r"|s_singleuse_vdst",
  "gfx12": r"s_barrier|s_cbranch_cdbg\w+|s_inst_prefetch|v_cmpx?_tru_u(32|64)",
}
# What the tables have alone: what gfx908 to gfx942 added to gfx9; instructions that no shader compiler needs.
HERE_ALONE = {
  "gfx9": r"(buffer|flat|global)_atomic_((add|min|max)_f\d+|pk_add_\w+)|buffer_(inv|wbl2)|ds_add(_rtn)?_f64"
          r"|ds_pk_add_\w+|(global|scratch)_load_lds_\w+|v_accvgpr_\w+|v_cvt_\w*[bf](f|p)8\w*|v_dot(2c|8|8c)_i32_\w+|v_fmaak_f32"
          r"|v_fmamk_f32|v_fmac_f(32|64)|v_lshl_add_u64|v_s?mfmac?_\w+|v_mov_b64|v_mul_legacy_f32|v_xnor_b32"
          r"|v_pk_((add|fma|mul)_f32|fmac_f16|mov_b32)",
  "gfx11": r"ds_bvh_stack_rtn_b32|image_gather4h",
  "gfx12": r"image_gather4h|s_alloc_vgpr|ds_bpermute_fi_b32|ds_bvh_stack_push\w+|buffer_atomic_cond_sub_u32"
           r"|(global|scratch)_(load|store)_block",
}


def renamed(name: str, rules: tuple[Rule, ...]) -> str:
  """The name by the first rule that fits it whole."""
  for pattern, new in rules:
    if m := re.fullmatch(pattern, name): return m.expand(new) if isinstance(new, str) else new(m)
  return name


def current(name: str, family: str, generation: str) -> str:
  """Mesa's name as the generation has it."""
  name = renamed(name, MESAS)
  if generation == "gfx9": return name if family != "VOPC" else name.replace("_t_f", "_tru_f")
  name = renamed(name, GFX11)
  return renamed(name, GFX12) if generation == "gfx12" else name


@pytest.mark.parametrize("generation, least", [("gfx9", 1300), ("gfx11", 1350), ("gfx12", 1440)])
def test_opcodes_are_mesas(generation: str, least: int) -> None:
  """Every instruction that both sources know has one number in both, in each encoding; the others are listed."""
  here = ours(table(generation))
  shared, differ, alone = set(), [], set()
  for family, names in mesa(generation).items():
    if family in NOT_HERE: continue
    # RDNA4 has typed and untyped buffer instructions in one encoding, the typed ones from 0x80 on
    typed = (generation, family) == ("gfx12", "MTBUF")
    own_family, base = ("MUBUF", 0x80) if typed else (FAMILY.get(family, family), 0)
    images = (generation, family) == ("gfx12", "MIMG")
    for name, opcode in names.items():
      own = current(name, family, generation)
      if images: own_family = "VSAMPLE" if own in here["VSAMPLE"] else "VIMAGE"
      if (generation, own) in MOVED: alone.add(name)
      elif own not in here[own_family]: alone.add(name)
      else:
        shared.add((own_family, own))
        if here[own_family][own] != {opcode + base}: differ.append((family, name, opcode, here[own_family][own]))
        if (long := LONG[generation].get(family)) is not None and own in here["VOP3"]:
          shared.add(("VOP3", own))
          if here["VOP3"][own] != {opcode + long}: differ.append((family, name, opcode + long, here["VOP3"][own]))
  rest = {name for family, names in here.items() for name in names if (family, name) not in shared}
  assert not differ
  assert {name for name in alone if not re.fullmatch(MESA_ALONE[generation], name)} == set()
  assert {name for name in rest if not re.fullmatch(HERE_ALONE[generation], name)} == set()
  assert len(shared) >= least, len(shared)


@pytest.mark.parametrize("generation", ["gfx11", "gfx12"])
def test_halves_of_dual_instructions_are_mesas(generation: str) -> None:
  """Both halves number the same operations; the names are those of the single instructions, after v_dual_."""
  numbers = {renamed(n.replace("v_dual_", "v_"), GFX12 if generation == "gfx12" else ()).replace("v_", "v_dual_", 1): o
             for n, o in mesa(generation)["VOPD"].items()}
  pairs = 0
  for row in table(generation).rows():
    if row.family != "VOPD": continue
    x, y = row.mnemonic.split(" :: ")
    assert (row.value >> 22 & 15, row.value >> 17 & 31) == (numbers[x], numbers[y]), row.mnemonic
    pairs += 1
  assert pairs > 150
