"""Codes of operands of AMD GPU machine code, in one numbering for all generations.

RDNA3 ISA manual, section 15 and tables of SSRC/SRC operands.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
LDS_DIRECT: Final = 254
REGISTERS_ONLY: Final = frozenset({"", "mask"})  # types of scalar operands that have no constants
SDWA_SELECTIONS: Final = ("dst_sel", "src0_sel", "src1_sel")
AGPR0: Final = 256  # number of the first accumulation register among the vector registers (gfx90a and later)
# Inline float constants: operand code -> value. 248 is 1/(2*pi), rounded to each type.
INLINE_FLOATS: Final = {240: 0.5, 241: -0.5, 242: 1.0, 243: -1.0, 244: 2.0, 245: -2.0, 246: 4.0, 247: -4.0,
                        248: 0.15915494309189535}
# Lane patterns of DPP beside quad_perm (below 0x100): rows moved by 1 to 15, mirrored, shared; on gfx9 whole waves too.
_ROWS: Final = frozenset(base + n for base in (0x100, 0x110, 0x120) for n in range(1, 16)) | {0x140, 0x141}


@dataclass(frozen=True)
class Codes:
  """What differs between the generations. The same numbers hold for all: `canonical` has those that another means here.

  `specials` are scalar operands above the SGPRs, `sgprs` is where groups of these end. No pair or longer group starts
  with a register of `single`, no group of more than two with one of `pairs`. A lane mask has `mask_dwords` SGPRs where
  its operand does not say how many. `lane_patterns` are those of DPP beside quad_perm, `long_patterns` the only ones of
  instructions on 64 bits, where there are fewer. `long_literals`: whether VOP3 and its kin may have literals.
  """
  specials: Mapping[int, str] = field(default_factory=lambda: SPECIAL)
  canonical: Mapping[int, int] = field(default_factory=dict)
  single: frozenset[int] = frozenset({VCC_HI, M0, EXEC_HI})
  pairs: frozenset[int] = frozenset()
  sgprs: int = 106
  mask_dwords: int = 1
  lane_patterns: frozenset[int] = _ROWS | frozenset(range(0x150, 0x170))
  long_patterns: frozenset[int] | None = None
  long_literals: bool = True


CODES: Final = {
  "gfx9": Codes(
    specials=SPECIAL | {102: "flat_scratch_lo", 103: "flat_scratch_hi", 104: "xnack_mask_lo", 105: "xnack_mask_hi",
                        254: "src_lds_direct"},
    canonical={124: M0, 125: NULL},  # M0 and NULL the other way round
    single=frozenset({103, 105, VCC_HI, M0, EXEC_HI}), pairs=frozenset({102, 103}),
    sgprs=104,  # they may reach over flat_scratch
    mask_dwords=2,  # its waves have 64 lanes
    lane_patterns=_ROWS | {0x130, 0x134, 0x138, 0x13C, 0x142, 0x143, *range(0x150, 0x160)},
    long_patterns=frozenset(range(0x150, 0x160)),  # row_newbcast alone (manuals, DPP_CTRL)
    long_literals=False),
  "gfx11": Codes(), "gfx12": Codes()}
