"""What the interpreter knows of each mnemonic of a table: a meaning, an approximate one, no effect, or none."""
from __future__ import annotations

from typing import Final

from tinyhw.core.table import Handlers
from tinyhw.emulator.amdgcn import control
from tinyhw.emulator.amdgcn.all_tables import MEANINGS, binds, ends
from tinyhw.emulator.amdgcn.memory import buffer, image
from tinyhw.emulator.amdgcn.memory.tables import (
  DS_ATOMICS,
  DS_EXCHANGE_PAIRS,
  DS_LOADS,
  DS_PAIRS,
  DS_STORES,
  GLOBAL_BY_LANE,
  LOADS,
  NO_EFFECT,
  SCALAR_LOADS,
  SCALAR_SMALL,
  STORES,
  VECTOR_ATOMICS,
)
from tinyhw.isa.amdgcn import Table

# Mnemonics that the folder memory binds by name or by table.
MEMORY = frozenset((
  *LOADS, *STORES, *VECTOR_ATOMICS, *SCALAR_LOADS, *SCALAR_SMALL,
  *DS_ATOMICS, *DS_LOADS, *DS_STORES, *DS_PAIRS, *DS_EXCHANGE_PAIRS,
  *NO_EFFECT, "ds_bpermute_b32", "ds_bpermute_fi_b32", "ds_permute_b32", "ds_swizzle_b32", "ds_append",
  "ds_consume", "ds_load_addtid_b32", "ds_store_addtid_b32", "ds_read_addtid_b32", "ds_write_addtid_b32",
  *GLOBAL_BY_LANE))
# What compute code cannot use, and why; these count in no coverage figure of compute opcodes.
NOT_COMPUTE: Final[Handlers[str]] = Handlers("instruction")
NOT_COMPUTE.ignores("exp", "export", why="exports to the pixel and vertex stages")
NOT_COMPUTE.ignores(
  "v_interp_p10_f32", "v_interp_p2_f32", "v_interp_p10_f16_f32", "v_interp_p2_f16_f32", "v_interp_p10_rtz_f16_f32",
  "v_interp_p2_rtz_f16_f32", "v_interp_p1_f32", "v_interp_p1ll_f16", "v_interp_p1lv_f16", "v_interp_p2_f16",
  "v_interp_p2_legacy_f16", "v_interp_mov_f32", "lds_direct_load", "lds_param_load", "ds_direct_load",
  "ds_param_load", why="attributes of pixel shaders")
NOT_COMPUTE.ignores("ds_add_gs_reg_rtn", "ds_sub_gs_reg_rtn", why="stream-out registers of geometry shaders")
NOT_COMPUTE.ignores("ds_bvh_stack_rtn_b32", "ds_bvh_stack_push4_pop1_rtn_b32", "ds_bvh_stack_push8_pop1_rtn_b32",
                    "ds_bvh_stack_push8_pop2_rtn_b64", why="the traversal stack of ray tracing")
NOT_COMPUTE.ignores("s_rfe_b64", "s_rfe_restore_b64", "s_cbranch_cdbgsys", "s_cbranch_cdbguser",
                    "s_cbranch_cdbgsys_or_user", "s_cbranch_cdbgsys_and_user", why="trap handlers and debuggers")
NOT_COMPUTE.ignores("s_barrier_init", "s_barrier_join", "s_barrier_leave", "s_wakeup_barrier",
                    why="barriers with names: not in the RDNA4 manual, for other chips")
NOT_COMPUTE.ignores("s_atc_probe", "s_atc_probe_buffer", why="address translation probes: not in the manuals")
NOT_COMPUTE.ignores("s_endpgm_ordered_ps_done", "v_screen_partition_4se_b32", why="pixel shaders")


def compute(table: Table) -> set[str]:
  """The mnemonics that compute code can use: all but `NOT_COMPUTE` and what only a sampler or ray tracing serves."""
  return {n for n in names(table) if n not in NOT_COMPUTE and not samples(n)}


def samples(mnemonic: str) -> bool:
  """Whether it is an image instruction of graphics: with a sampler, for several samples, or of ray tracing."""
  return mnemonic.startswith("image_") and binds.get(mnemonic, "") is None


def names(table: Table) -> set[str]:
  """Every mnemonic; the halves of dual instructions count as the instruction that they stand for."""
  return {part.strip().replace("v_dual_", "v_") for name in table.mnemonics for part in name.split("::")}


# Matrix products of floats: the chips' order of additions is not specified.
_FLOAT_MATRICES: Final = tuple(
  f"v_{stem}_{t}" for stem in ("wmma", "swmmac", "mfma", "smfmac") for t in ("f", "b"))


def status(mnemonic: str, isa: str) -> str:
  """"exact", "approximate", "no effect" or "missing"."""
  meaning = MEANINGS.get(mnemonic, isa)
  if meaning is not None: return "exact" if meaning.exact else "approximate"
  if mnemonic in control.IGNORED or mnemonic in NO_EFFECT: return "no effect"
  # how typed stores round, and what D16 makes of integers, no manual says
  if buffer.FORMATTED.fullmatch(mnemonic) or mnemonic in image.CONVERTING: return "approximate"
  if mnemonic.startswith("buffer_load_lds_"): return "exact"
  if mnemonic.startswith(_FLOAT_MATRICES): return "approximate" if binds.get(mnemonic, isa) else "missing"
  bound = binds.get(mnemonic, isa) or ends.get(mnemonic, isa) or mnemonic in MEMORY
  return "exact" if bound else "missing"


def report(table: Table) -> dict[str, list[str]]:
  """Status -> mnemonics, sorted."""
  out: dict[str, list[str]] = {}
  for name in sorted(names(table)): out.setdefault(status(name, table.key), []).append(name)
  return out
