"""All written cases."""
from __future__ import annotations

from tinyhw.tools.fuzz.case import Case
from tinyhw.tools.fuzz.control import all_control
from tinyhw.tools.fuzz.groups import all_groups
from tinyhw.tools.fuzz.intrinsics import all_intrinsics
from tinyhw.tools.fuzz.scalar import all_scalar


def all_cases() -> list[Case]:
  """Operations, memory and control flow, intrinsics, groups of work-items."""
  return [*all_scalar(), *all_control(), *all_intrinsics(), *all_groups()]
