"""What LLVM's text calls registers, messages and cache policies, generation by generation.

Sources: LLVM 19 AMDGPUUsage and its disassembler's output for each code; RDNA3 and RDNA4 ISA manuals (s_getreg ids,
s_sendmsg ids, temporal hints and scopes).
"""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from tinyhw.autogen import buffer_formats

_RTN: Final = {128: "MSG_RTN_GET_DOORBELL", 129: "MSG_RTN_GET_DDID", 130: "MSG_RTN_GET_TMA",
               131: "MSG_RTN_GET_REALTIME", 132: "MSG_RTN_SAVE_WAVE", 133: "MSG_RTN_GET_TBA",
               134: "MSG_RTN_GET_TBA_TO_PC"}
# Buffer formats of tbuffer instructions, BUF_FMT_ and a name each; 0 is INVALID and 1, 8_UNORM, is not shown.
FORMATS: Final = [buffer_formats.UNIFIED[k] for k in range(len(buffer_formats.UNIFIED))]
# gfx9's formats are a data format (4 bits) and a number format above it; (1, 0) is not shown.
# LLVM's names for the two that are left over, which the vendor's list lacks or calls otherwise, are its own.
DATA_FORMATS: Final = [buffer_formats.DATA.get(k, f"RESERVED_{k}") for k in range(16)]
NUMBER_FORMATS: Final = ["RESERVED_6" if k == 6 else buffer_formats.NUMBER[k] for k in range(8)]
# SDWA's selections of bytes and words, and what becomes of the rest of the destination (CDNA3 manual, section 13.3.7).
SELECTIONS: Final = "BYTE_0 BYTE_1 BYTE_2 BYTE_3 WORD_0 WORD_1 DWORD".split()
UNUSED: Final = "UNUSED_PAD UNUSED_SEXT UNUSED_PRESERVE".split()
# Targets of exports (RDNA3 manual, section 12.1 and the export format's table).
TARGETS: Final = {**{k: f"mrt{k}" for k in range(8)}, 8: "mrtz", **{12 + k: f"pos{k}" for k in range(5)}, 20: "prim",
                  21: "dual_src_blend0", 22: "dual_src_blend1"}
# s_version's number, and its flags.
VERSIONS: Final = {0: "UC_VERSION_GFX7", 4: "UC_VERSION_GFX10", 6: "UC_VERSION_GFX11", 9: "UC_VERSION_GFX12"}
VERSION_FLAGS: Final = ((0x2000, "UC_VERSION_W64_BIT"), (0x4000, "UC_VERSION_W32_BIT"), (0x8000, "UC_VERSION_MDP_BIT"))
# Lane patterns of DPP with a count: row_shl:1 is 0x101 (RDNA3 ISA manual, DPP_CTRL).
_SHIFTS: Final = {0x100: "row_shl", 0x110: "row_shr", 0x120: "row_ror"}
# What s_set_gpr_idx_on indexes, a bit each.
INDEXED: Final = "SRC0 SRC1 SRC2 DST".split()


@dataclass(frozen=True)
class Names:
  """Names of one generation: register ids of s_getreg, message ids of s_sendmsg, and the forms of address fields.

  `scoped` cache policies are a temporal hint and a scope, others are single bits. `flat_bits` and `scalar_bits` are
  the widths of signed offsets; `flat_signed` says whether flat_ instructions have signed ones too. `counters` are those
  of s_waitcnt: name -> (position in the immediate, position in the counter, width) of each piece. `policies` are the
  names of the cache policy's bits, in the order in which they are shown. `operations` are those of a message that has
  some: what bits 4 to 6 say; with them a message also has a stream. `vcc` is the mask that short encodings use,
  `dpp_rows` are lane patterns with a count. `two_formats`: buffers have a data and a number format. `gds`: whether data
  share instructions have that bit. `suffixed` are mnemonics that have _e32 without another encoding. `zero_bounds`:
  whether bound_ctrl:0, which once was its name, means bound_ctrl:1.
  """
  hwregs: dict[int, str]
  messages: dict[int, str]
  scoped: bool = False
  flat_bits: int = 13
  scalar_bits: int = 21
  flat_signed: bool = False
  scopes: tuple[str, ...] = ("", "SCOPE_SE", "SCOPE_DEV", "SCOPE_SYS")
  hints: dict[str, tuple[str, ...]] = field(default_factory=dict)
  counters: dict[str, tuple[tuple[int, int, int], ...]] = field(default_factory=lambda: {
    "vmcnt": ((10, 0, 6),), "expcnt": ((0, 0, 3),), "lgkmcnt": ((4, 0, 6),)})
  policies: tuple[tuple[str, int], ...] = (("glc", 1), ("slc", 2), ("dlc", 4))
  operations: dict[str, dict[int, str]] = field(default_factory=dict)
  vcc: str = "vcc_lo"
  dpp_rows: dict[int, str] = field(default_factory=lambda: _SHIFTS | {0x150: "row_share", 0x160: "row_xmask"})
  two_formats: bool = False
  gds: bool = True
  suffixed: frozenset[str] = frozenset()
  zero_bounds: bool = False
  negated: bool = True  # whether BLGP of f64 matrices is shown as the negations that it is

  def policy(self, family: str) -> tuple[tuple[str, int], ...]:
    """The cache policy's bits of a family: gfx942's scalar memory has kept the older name."""
    return (("glc", 1),) if family == "SMEM" and self.policies[0][0] == "sc0" else self.policies

  def hint(self, kind: str, hint: int, scope: int) -> str:
    """Name of a temporal hint of a load, store or atomic; the same code means something else at another scope."""
    if kind == "ATOMIC":
      return f"TH_ATOMIC_{hint:#x}" if hint >= 4 and scope < 2 else "TH_ATOMIC_" + self.hints[kind][hint]
    if hint == 3 and scope == 3: return f"TH_{kind}_BYPASS"
    name = self.hints[kind][hint]
    return f"TH_{kind}_{name}" if name else hex(hint)

  def hint_code(self, name: str, scope: int, returns: bool) -> int | None:
    """The temporal hint of that name; of two, the one that says whether an atomic returns."""
    kind = name.split("_")[1] if name.startswith("TH_") else "LOAD"
    if kind not in self.hints: return None
    found = [h for h in range(8) if self.hint(kind, h, scope) == name]
    return next((h for h in found if h & 1 == returns), found[0] if found else None)


_GS: Final = {1: "GS_OP_CUT", 2: "GS_OP_EMIT", 3: "GS_OP_EMIT_CUT"}
_OF_GENERATIONS: Final = {
  "gfx9": Names(
    hwregs={1: "HW_REG_MODE", 2: "HW_REG_STATUS", 3: "HW_REG_TRAPSTS", 4: "HW_REG_HW_ID", 5: "HW_REG_GPR_ALLOC",
            6: "HW_REG_LDS_ALLOC", 7: "HW_REG_IB_STS", 15: "HW_REG_SH_MEM_BASES", 16: "HW_REG_TBA_LO",
            17: "HW_REG_TBA_HI", 18: "HW_REG_TMA_LO", 19: "HW_REG_TMA_HI", 20: "HW_REG_XCC_ID",
            21: "HW_REG_SQ_PERF_SNAPSHOT_DATA", 22: "HW_REG_SQ_PERF_SNAPSHOT_DATA1",
            23: "HW_REG_SQ_PERF_SNAPSHOT_PC_LO", 24: "HW_REG_SQ_PERF_SNAPSHOT_PC_HI"},
    messages={1: "MSG_INTERRUPT", 2: "MSG_GS", 3: "MSG_GS_DONE", 4: "MSG_SAVEWAVE", 5: "MSG_STALL_WAVE_GEN",
              6: "MSG_HALT_WAVES", 7: "MSG_ORDERED_PS_DONE", 8: "MSG_EARLY_PRIM_DEALLOC", 9: "MSG_GS_ALLOC_REQ",
              10: "MSG_GET_DOORBELL", 15: "MSG_SYSMSG"},
    operations={"MSG_GS": _GS, "MSG_GS_DONE": {0: "GS_OP_NOP", **_GS},
                "MSG_SYSMSG": {1: "SYSMSG_OP_ECC_ERR_INTERRUPT", 2: "SYSMSG_OP_REG_RD", 4: "SYSMSG_OP_TTRACE_PC"}},
    counters={"vmcnt": ((0, 0, 4), (14, 4, 2)), "expcnt": ((4, 0, 3),), "lgkmcnt": ((8, 0, 4),)},
    policies=(("sc0", 1), ("nt", 2), ("sc1", 16)), vcc="vcc", dpp_rows=_SHIFTS | {0x150: "row_newbcast"},
    two_formats=True, gds=False, suffixed=frozenset({"v_pk_fmac_f16"}), zero_bounds=True),
  "gfx11": Names(
    hwregs={1: "HW_REG_MODE", 2: "HW_REG_STATUS", 3: "HW_REG_TRAPSTS", 5: "HW_REG_GPR_ALLOC", 6: "HW_REG_LDS_ALLOC",
            7: "HW_REG_IB_STS", 15: "HW_REG_SH_MEM_BASES", 18: "HW_REG_PERF_SNAPSHOT_PC_LO",
            19: "HW_REG_PERF_SNAPSHOT_PC_HI", 20: "HW_REG_FLAT_SCR_LO", 21: "HW_REG_FLAT_SCR_HI", 23: "HW_REG_HW_ID1",
            24: "HW_REG_HW_ID2", 27: "HW_REG_PERF_SNAPSHOT_DATA", 29: "HW_REG_SHADER_CYCLES"},
    messages={1: "MSG_INTERRUPT", 2: "MSG_HS_TESSFACTOR", 3: "MSG_DEALLOC_VGPRS", 5: "MSG_STALL_WAVE_GEN",
              6: "MSG_HALT_WAVES", 9: "MSG_GS_ALLOC_REQ", **_RTN}),
  "gfx12": Names(
    hwregs={1: "HW_REG_MODE", 2: "HW_REG_STATUS", 4: "HW_REG_STATE_PRIV", 5: "HW_REG_GPR_ALLOC", 6: "HW_REG_LDS_ALLOC",
            7: "HW_REG_IB_STS", 10: "HW_REG_PERF_SNAPSHOT_DATA", 11: "HW_REG_PERF_SNAPSHOT_PC_LO",
            12: "HW_REG_PERF_SNAPSHOT_PC_HI", 15: "HW_REG_PERF_SNAPSHOT_DATA1", 16: "HW_REG_PERF_SNAPSHOT_DATA2",
            17: "HW_REG_EXCP_FLAG_PRIV", 18: "HW_REG_EXCP_FLAG_USER", 19: "HW_REG_TRAP_CTRL",
            20: "HW_REG_SCRATCH_BASE_LO", 21: "HW_REG_SCRATCH_BASE_HI", 23: "HW_REG_HW_ID1", 24: "HW_REG_HW_ID2",
            29: "HW_REG_SHADER_CYCLES_LO", 30: "HW_REG_SHADER_CYCLES_HI", 31: "HW_REG_DVGPR_ALLOC_LO",
            32: "HW_REG_DVGPR_ALLOC_HI"},
    messages={1: "MSG_INTERRUPT", 2: "MSG_HS_TESSFACTOR", 3: "MSG_DEALLOC_VGPRS", 9: "MSG_GS_ALLOC_REQ", **_RTN,
              135: "MSG_RTN_GET_SE_AID_ID"},
    scoped=True, flat_bits=24, scalar_bits=24, flat_signed=True,
    hints={"LOAD": ("RT", "NT", "HT", "LU", "NT_RT", "RT_NT", "NT_HT", ""),
           "STORE": ("RT", "NT", "HT", "RT_WB", "NT_RT", "RT_NT", "NT_HT", "NT_WB"),
           "ATOMIC": ("RT", "RETURN", "NT", "NT_RETURN", "CASCADE_RT", "CASCADE_RT", "CASCADE_NT", "CASCADE_NT")}),
}
_CDNA3: Final = _OF_GENERATIONS["gfx9"]
# By instruction table.
NAMES: Final = _OF_GENERATIONS | {"gfx950": _CDNA3, "gfx1150": _OF_GENERATIONS["gfx11"], "gfx90a": replace(
  _CDNA3, policies=(("glc", 1), ("slc", 2), ("scc", 16)), negated=False,
  hwregs={k: name for k, name in _CDNA3.hwregs.items() if k < 20})}
