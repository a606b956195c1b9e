"""Mnemonics of memory instructions, and what they move; gfx9's own names are in its folder."""
from __future__ import annotations

from typing import Final

from tinyhw.emulator.amdgcn.gfx9 import names as names_gfx9

# Suffix of a load -> (bytes, bits to extend the sign from or 0, half of the register for d16 or None). Halves 0 and 1
# keep the other half, 2 (low) and 3 (high) make it 0.
_LOADS: Final = {
  "b32": (4, 0, None), "b64": (8, 0, None), "b96": (12, 0, None), "b128": (16, 0, None), "u8": (1, 0, None),
  "i8": (1, 8, None), "u16": (2, 0, None), "i16": (2, 16, None), "d16_u8": (1, 0, 0), "d16_i8": (1, 8, 0),
  "d16_b16": (2, 0, 0), "d16_hi_u8": (1, 0, 1), "d16_hi_i8": (1, 8, 1), "d16_hi_b16": (2, 0, 1),
}
_STORES: Final = {
  "b8": (1, 0), "b16": (2, 0), "b32": (4, 0), "b64": (8, 0), "b96": (12, 0), "b128": (16, 0), "d16_hi_b8": (1, 16),
  "d16_hi_b16": (2, 16),
}
_ATOMICS: Final = {
  f"{name}_{suffix}": (operation, width) for name, operation, suffixes in (
    ("swap", "swap", "b"), ("cmpswap", "cmpswap", "b"), ("add", "add", "u"), ("sub", "sub", "u"), ("min", "smin", "i"),
    ("min", "umin", "u"), ("max", "smax", "i"), ("max", "umax", "u"), ("and", "and", "b"), ("or", "or", "b"),
    ("xor", "xor", "b"), ("inc", "inc", "u"), ("dec", "dec", "u"))
  for width in (4, 8) for suffix in (suffixes + str(width * 8),)
} | {"add_f32": ("fadd", 4), "min_f32": ("fmin", 4), "max_f32": ("fmax", 4), "cmpswap_f32": ("fcmpswap", 4),
     "csub_u32": ("csub", 4), "sub_clamp_u32": ("csub", 4), "cond_sub_u32": ("condsub", 4),
     "min_num_f32": ("fmin", 4), "max_num_f32": ("fmax", 4), "pk_add_f16": ("pk_add_f16", 4),
     "pk_add_bf16": ("pk_add_bf16", 4), "ordered_add_b64": ("ordered_add", 8)}
LOADS: Final = {f"{p}_load_{s}": v for p in ("global", "flat", "scratch", "buffer")
                for s, v in (*_LOADS.items(), *names_gfx9.LOADS.items())}
STORES: Final = {f"{p}_store_{s}": v for p in ("global", "flat", "scratch", "buffer")
                 for s, v in (*_STORES.items(), *names_gfx9.STORES.items())}
VECTOR_ATOMICS: Final = {f"{p}_atomic_{s}": v for p in ("global", "flat", "buffer")
                         for s, v in (*_ATOMICS.items(), *names_gfx9.ATOMICS.items())}
SCALAR_LOADS: Final = {f"{p}_b{32 * n}": n for p in ("s_load", "s_buffer_load") for n in (1, 2, 3, 4, 8, 16)} | \
  names_gfx9.SCALAR_LOADS
SCALAR_SMALL: Final = {  # bytes, bits to extend the sign from or 0
  f"{p}_{s}": v for p in ("s_load", "s_buffer_load")
  for s, v in (("i8", (1, 8)), ("u8", (1, 0)), ("i16", (2, 16)), ("u16", (2, 0)))}

_DS_OPS: Final = (
  ("add", "add", "u"), ("sub", "sub", "u"), ("rsub", "rsub", "u"), ("inc", "inc", "u"), ("dec", "dec", "u"),
  ("min", "smin", "i"), ("max", "smax", "i"), ("min", "umin", "u"), ("max", "umax", "u"), ("and", "and", "b"),
  ("or", "or", "b"), ("xor", "xor", "b"), ("add", "fadd", "f"), ("min", "fmin", "f"), ("max", "fmax", "f"),
  ("min_num", "fmin", "f"), ("max_num", "fmax", "f"), ("cond_sub", "condsub", "u"), ("sub_clamp", "csub", "u"),
  ("cmpstore", "cmpswap", "b"), ("cmpstore", "fcmpswap", "f"))
DS_ATOMICS: Final = {
  f"ds_{name}{rtn}_{kind}{width * 8}": (operation, width, bool(rtn)) for name, operation, kind in _DS_OPS
  for width in (4, 8) for rtn in ("", "_rtn")} | {
  f"ds_storexchg_rtn_b{width * 8}": ("swap", width, True) for width in (4, 8)} | {
  f"ds_mskor{rtn}_b{width * 8}": ("mskor", width, bool(rtn)) for width in (4, 8) for rtn in ("", "_rtn")} | {
  f"ds_pk_add{rtn}_{kind}": (f"pk_add_{kind}", 4, bool(rtn)) for kind in ("f16", "bf16") for rtn in ("", "_rtn")} | {
  "ds_wrap_rtn_b32": ("wrap", 4, True), "ds_condxchg32_rtn_b64": ("condxchg", 8, True)} | names_gfx9.DS_ATOMICS
DS_LOADS: Final = {
  "ds_load_b32": (4, 0, None), "ds_load_b64": (8, 0, None), "ds_load_b96": (12, 0, None), "ds_load_b128": (16, 0, None),
  "ds_load_u8": (1, 0, None), "ds_load_i8": (1, 8, None), "ds_load_u16": (2, 0, None), "ds_load_i16": (2, 16, None),
  "ds_load_u8_d16": (1, 0, 0), "ds_load_i8_d16": (1, 8, 0), "ds_load_u16_d16": (2, 0, 0),
  "ds_load_u8_d16_hi": (1, 0, 1), "ds_load_i8_d16_hi": (1, 8, 1), "ds_load_u16_d16_hi": (2, 0, 1),
  **names_gfx9.DS_LOADS}
DS_STORES: Final = {
  "ds_store_b8": (1, 0), "ds_store_b16": (2, 0), "ds_store_b32": (4, 0), "ds_store_b64": (8, 0),
  "ds_store_b96": (12, 0), "ds_store_b128": (16, 0), "ds_store_b8_d16_hi": (1, 16), "ds_store_b16_d16_hi": (2, 16),
  **names_gfx9.DS_STORES}
DS_PAIRS: Final = {  # bytes of an element, what an offset counts, whether it stores
  f"ds_{kind}_2addr{stride}_b{width * 8}": (width, width * (64 if stride else 1), kind == "store")
  for kind in ("load", "store") for stride in ("", "_stride64") for width in (4, 8)} | names_gfx9.DS_PAIRS
DS_EXCHANGE_PAIRS: Final = {
  f"ds_storexchg_2addr{stride}_rtn_b{width * 8}": (width, width * (64 if stride else 1))
  for stride in ("", "_stride64") for width in (4, 8)} | names_gfx9.DS_EXCHANGE_PAIRS
GLOBAL_BY_LANE: Final = ("global_load_addtid_b32", "global_store_addtid_b32")
NO_EFFECT: Final = {"buffer_gl0_inv", "buffer_gl1_inv", "s_dcache_inv", "s_gl1_inv", "ds_nop"} | names_gfx9.NO_EFFECT
