"""gfx9's names of memory instructions (CDNA3 ISA manual, chapters 8 to 11), as data of `memory.tables`' form.

MI300 has ECC, with which a 16-bit load writes its whole register: the half that it does not load becomes 0 (9.1.6).
In the tables half 2 is the low one, 3 the high one, with zeros in the other; 0 and 1 would keep it.
"""
from __future__ import annotations

from typing import Final

# Suffix of a load -> (bytes, bits to extend the sign from or 0, half of the register for d16 or None)
LOADS: Final[dict[str, tuple[int, int, int | None]]] = {
  "dword": (4, 0, None), "dwordx2": (8, 0, None), "dwordx3": (12, 0, None), "dwordx4": (16, 0, None),
  "ubyte": (1, 0, None), "sbyte": (1, 8, None), "ushort": (2, 0, None), "sshort": (2, 16, None),
  "ubyte_d16": (1, 0, 2), "sbyte_d16": (1, 8, 2), "short_d16": (2, 0, 2), "ubyte_d16_hi": (1, 0, 3),
  "sbyte_d16_hi": (1, 8, 3), "short_d16_hi": (2, 0, 3)}
# Suffix of a store -> (bytes, first bit)
STORES: Final = {
  "dword": (4, 0), "dwordx2": (8, 0), "dwordx3": (12, 0), "dwordx4": (16, 0), "byte": (1, 0), "short": (2, 0),
  "byte_d16_hi": (1, 16), "short_d16_hi": (2, 16)}
ATOMICS: Final = {
  f"{name}{'_x2' if width == 8 else ''}": (name, width) for width in (4, 8) for name in (
    "swap", "cmpswap", "add", "sub", "smin", "umin", "smax", "umax", "and", "or", "xor", "inc", "dec")} | {
  "pk_add_f16": ("pk_add_f16", 4), "pk_add_bf16": ("pk_add_bf16", 4), "add_f64": ("fadd", 8), "min_f64": ("fmin", 8),
  "max_f64": ("fmax", 8)}
SCALAR_LOADS: Final = {f"{p}_dword{'' if n == 1 else f'x{n}'}": n for p in ("s_load", "s_buffer_load")
                       for n in (1, 2, 4, 8, 16)}
DS_LOADS: Final[dict[str, tuple[int, int, int | None]]] = {
  "ds_read_b32": (4, 0, None), "ds_read_b64": (8, 0, None), "ds_read_b96": (12, 0, None),
  "ds_read_b128": (16, 0, None), "ds_read_u8": (1, 0, None), "ds_read_i8": (1, 8, None), "ds_read_u16": (2, 0, None),
  "ds_read_i16": (2, 16, None), "ds_read_u8_d16": (1, 0, 2), "ds_read_i8_d16": (1, 8, 2), "ds_read_u16_d16": (2, 0, 2),
  "ds_read_u8_d16_hi": (1, 0, 3), "ds_read_i8_d16_hi": (1, 8, 3), "ds_read_u16_d16_hi": (2, 0, 3)}
DS_STORES: Final = {
  "ds_write_b8": (1, 0), "ds_write_b16": (2, 0), "ds_write_b32": (4, 0), "ds_write_b64": (8, 0),
  "ds_write_b96": (12, 0), "ds_write_b128": (16, 0), "ds_write_b8_d16_hi": (1, 16), "ds_write_b16_d16_hi": (2, 16)}
DS_PAIRS: Final = {  # bytes of an element, what an offset counts, whether it stores
  f"ds_{kind}2{stride}_b{width * 8}": (width, width * (64 if stride else 1), kind == "write")
  for kind in ("read", "write") for stride in ("", "st64") for width in (4, 8)}
DS_EXCHANGE_PAIRS: Final = {
  f"ds_wrxchg2{stride}_rtn_b{width * 8}": (width, width * (64 if stride else 1))
  for stride in ("", "st64") for width in (4, 8)}
DS_ATOMICS: Final = {  # operation, bytes, whether it returns
  f"ds_wrxchg_rtn_b{width * 8}": ("swap", width, True) for width in (4, 8)} | {
  f"ds_pk_add{rtn}_{t}": (operation, 4, bool(rtn)) for rtn in ("", "_rtn")
  for t, operation in (("f16", "pk_add_f16"), ("bf16", "pk_add_bf16"))} | {
  # data0 is what to compare with, data1 the new value: the other way round than in later generations
  f"ds_cmpst{rtn}_{t}{width * 8}": (operation, width, bool(rtn)) for rtn in ("", "_rtn") for width in (4, 8)
  for t, operation in (("b", "cmpst"), ("f", "fcmpst"))}
# Instructions whose caches and queues are not modelled.
NO_EFFECT: Final = frozenset({
  "buffer_inv", "buffer_invl2", "buffer_wbl2", "buffer_wbinvl1", "buffer_wbinvl1_vol", "s_dcache_wb",
  "s_dcache_inv_vol", "s_dcache_wb_vol", "s_dcache_discard", "s_dcache_discard_x2"})
