"""What compiled code has the reference do is what it declares, and what docs/ptx.md says."""
from __future__ import annotations

import random
import re
from pathlib import Path

from tests.isa import ptx_samples as samples
from tests.strength import THOROUGH, seed
from tinyhw.emulator.jit.ptx import code, helped
from tinyhw.emulator.ptx.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.isa.ptx import parse

FEW = 1  # of each opcode, in the quick run


def chosen() -> list[str]:
  """Instructions of every opcode."""
  found: dict[str, list[str]] = {}
  for of in samples.samples(4 if THOROUGH else 1, random.Random(seed(3))).values():
    for line in of.values(): found.setdefault(line.partition(".")[0], []).append(line)
  return [line for lines in found.values() for line in (lines if THOROUGH else lines[:FEW])]


def test_what_is_left_to_the_reference_is_declared() -> None:
  seen: set[str] = set()
  for line in chosen():
    text = samples.HEAD.format(target="sm_90a") + line + "\n ret;\n}\n"
    try: header, _ = code.written(Program(link(parse(text)), "k", 0x40000), (64, 1, 1), clustered=True)
    except code.Refused: continue
    for name in header["seldom"]:
      rows = [pattern for pattern, _ in helped.SELDOM if re.fullmatch(pattern, name)]
      assert rows, name
      seen.update(rows)
  if THOROUGH: assert {pattern for pattern, _ in helped.SELDOM[1:]} == seen  # samples call nothing


def test_the_manual_says_so() -> None:
  docs = Path(__file__).resolve().parents[2] / "docs/ptx.md"
  assert helped.table() in docs.read_text()
