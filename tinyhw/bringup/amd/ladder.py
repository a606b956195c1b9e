"""The ladder of AMD's GPUs: modules of this folder declare its rungs, in the order that `rungs` imports them in."""
from __future__ import annotations

from typing import Final

from tinyhw.bringup.amd.bench import AmdBench
from tinyhw.bringup.rung import Ladder

AMD: Final[Ladder[AmdBench]] = Ladder("AMD")
