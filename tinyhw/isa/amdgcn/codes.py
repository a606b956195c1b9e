"""Codes of operands of AMD GPU machine code, in one numbering for all generations.

RDNA3 ISA manual, section 15 and tables of SSRC/SRC operands.
"""
from __future__ import annotations

from typing import Final

VCC_LO: Final = 106
VCC_HI: Final = 107
TTMP0: Final = 108
NULL: Final = 124
M0: Final = 125
EXEC_LO: Final = 126
EXEC_HI: Final = 127
LITERAL: Final = 255
VGPR0: Final = 256
# Scalar operands above the SGPRs (gfx11 numbering; gfx10 had M0 and NULL the other way round).
SPECIAL: Final = {VCC_LO: "vcc_lo", VCC_HI: "vcc_hi", NULL: "null", M0: "m0", EXEC_LO: "exec_lo", EXEC_HI: "exec_hi",
                  235: "src_shared_base", 236: "src_shared_limit", 237: "src_private_base", 238: "src_private_limit",
                  239: "src_pops_exiting_wave_id", 251: "src_vccz", 252: "src_execz", 253: "src_scc"}
# The same numbers hold for every generation. gfx9 has more registers, and M0 and NULL the other way round.
SPECIALS: Final = {
  "gfx11": SPECIAL, "gfx12": SPECIAL,
  "gfx9": SPECIAL | {102: "flat_scratch_lo", 103: "flat_scratch_hi", 104: "xnack_mask_lo", 105: "xnack_mask_hi",
                     254: "src_lds_direct"}}
CANONICAL: Final = {"gfx11": {}, "gfx12": {}, "gfx9": {124: M0, 125: NULL}}
LDS_DIRECT: Final = 254
REGISTERS_ONLY: Final = frozenset({"", "mask"})  # types of scalar operands that have no constants
SDWA_SELECTIONS: Final = ("dst_sel", "src0_sel", "src1_sel")
# Lane patterns of DPP beside quad_perm (below 0x100): rows moved by 1 to 15, mirrored, shared; on gfx9 whole waves too.
_ROWS: Final = frozenset(base + n for base in (0x100, 0x110, 0x120) for n in range(1, 16)) | {0x140, 0x141}
LANE_PATTERNS: Final = {
  "gfx9": _ROWS | {0x130, 0x134, 0x138, 0x13C, 0x142, 0x143, *range(0x150, 0x160)},
  "gfx11": _ROWS | frozenset(range(0x150, 0x170)), "gfx12": _ROWS | frozenset(range(0x150, 0x170))}
# Registers that no pair or longer group starts with.
SINGLE: Final = {"gfx11": frozenset({VCC_HI, M0, EXEC_HI}), "gfx12": frozenset({VCC_HI, M0, EXEC_HI}),
                 "gfx9": frozenset({103, 105, VCC_HI, M0, EXEC_HI})}
SGPRS: Final = {"gfx9": 104, "gfx11": 106, "gfx12": 106}  # where groups end; gfx9's may reach over flat_scratch
AGPR0: Final = 256  # number of the first accumulation register among the vector registers (gfx90a and later)
# Inline float constants: operand code -> value. 248 is 1/(2*pi), rounded to each type.
INLINE_FLOATS: Final = {240: 0.5, 241: -0.5, 242: 1.0, 243: -1.0, 244: 2.0, 245: -2.0, 246: 4.0, 247: -4.0,
                        248: 0.15915494309189535}
