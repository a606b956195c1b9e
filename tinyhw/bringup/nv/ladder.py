"""The ladder of NVIDIA's GPUs: modules of this folder declare its rungs, in the order that `rungs` imports them in."""
from __future__ import annotations

from typing import Final

from tinyhw.bringup.nv.bench import NvBench
from tinyhw.bringup.rung import Ladder

NV: Final[Ladder[NvBench]] = Ladder("NV")
