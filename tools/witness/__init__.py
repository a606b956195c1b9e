"""What each machine instruction means, a second time: scalar Python written from AMD's ISA manuals, one lane at a time.

It shares nothing with `emulator/`: integers are Python's, floats are rounded exactly here, transcendental functions are
mpmath's. `table.py` has the registry, `run.py` holds the emulator against it.

The witness is written twice on purpose: it says what an instruction does in Python integers,
fractions and mpmath. The mutation score (`tools/mutate`, docs/mutation.md) counts which changes it
notices. `tools/ledger` joins both with LLVM's and AMD's tables.
"""
from __future__ import annotations

import importlib
from typing import Final

MODULES: Final = ("integers", "scalars", "compares", "floats", "conversions", "memory", "lds", "waves", "control",
                  "buffers", "matrix", "scalar_memory", "sparse", "rdna4", "typed", "to_lds", "blocks", "pictures",
                  "gfx950")


def registers_all() -> None:
  """Import every module that registers witnesses."""
  for name in MODULES: importlib.import_module(f"tinyhw.tools.witness.{name}")
