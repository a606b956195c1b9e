"""All written cases."""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from tinyhw.arch import decoded
from tinyhw.tools.fuzz.case import Case
from tinyhw.tools.fuzz.control import all_control
from tinyhw.tools.fuzz.gfx12 import all_gfx12
from tinyhw.tools.fuzz.groups import all_groups
from tinyhw.tools.fuzz.intrinsics import all_intrinsics
from tinyhw.tools.fuzz.scalar import all_scalar


def all_cases() -> list[Case]:
  """Operations, memory and control flow, intrinsics, groups of work-items."""
  return [*all_scalar(), *all_control(), *all_intrinsics(), *all_groups()]


# Cases whose instructions a generation does not have, so that LLVM refuses them.
LACKING: Final = {
  "gfx942": r"amdgcn_(sudot[48]_.*|fma_legacy|fdot2_f16_f16|dpp_(\w+_)?xmask|dpp_masks|mov_dpp8_i32|permlane\w+"
            r"|ballot_32)",
}
# Cases of instructions that only one generation has.
OWN: Final[dict[str, Callable[[], list[Case]]]] = {"gfx1201": all_gfx12}
# Cases whose witnesses are written for waves of 32 lanes.
WAVE32: Final = r"amdgcn_(mbcnt_lo|ds_bpermute|readlane_i32|readfirstlane_\w+|writelane|wave_reduce_\w+)"


def cases_of(cpu: str) -> list[Case]:
  """All cases but those that a GPU has no instructions or no waves for, and those of its own."""
  absent = "|".join(filter(None, (LACKING.get(cpu), WAVE32 if 32 not in decoded(cpu).wave_sizes else None)))
  own = OWN[cpu]() if cpu in OWN else []
  return [*(c for c in all_cases() if not re.fullmatch(absent, c.name)), *own]
