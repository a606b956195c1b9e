"""How much of the PTX manual's instructions the emulator has: `python -m tinyhw.tools.ptxcover FOLDER` (its Markdown).

The manual says each instruction's forms in blocks of syntax: names with sets of modifiers, of which braces may be left
out. Each form with every choice of what must be there, and no more, is one: a mnemonic with its types. It counts as
done where the table of instructions has it and the emulator binds it to a meaning.
"""
from __future__ import annotations

import argparse
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tinyhw.core.errors import Error, Unsupported
from tinyhw.emulator.ptx import bind, control, launch
from tinyhw.emulator.ptx.program import Program
from tinyhw.emulator.ptx.link import link
from tinyhw.isa.ptx import forms, parse

LIMIT: Final = 4096  # combinations of one line of syntax
_LATER: Final = re.compile(r"tcgen05|clusterlaunchcontrol|cp_mask|cta_group|kind::|scale_vec|ue8m0|e2m1|e3m2|e2m3|b4x16"
                           r"|b6x16|b6p2x16|gather4|scatter4|f32x2|s2f6|rs\b|m8n16|m16n16\.|b8x16|im2col::w")
