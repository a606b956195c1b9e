"""The emulator beside a chip: what an NVIDIA H200 made of kernels (tests/recordings/ptx_sm90.xz), bit for bit."""
from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from tests.strength import THOROUGH, examples, seed
from tinyhw.tools.ledger import chip
from tinyhw.tools.ledger.chip import Kept, Made
from tinyhw.tools.witness.ptx.probes import Probe


def test_reference_makes_what_the_chip_made() -> None:
  said, kept = chip.record()
  assert {"card", "driver", "date", "command", "ptxas"} <= set(said) and len(kept) > 3000
  found = list(chip.beside(kept))
  right, off = chip.agreed(found)
  assert not [b.kept.probe.text for b in off]
  assert sum(b.agrees for b in found) >= 2973 and len(right) >= 2107


@pytest.mark.left("mma", "wgmma", "wmma")
@pytest.mark.parametrize("kind", ["wgmma", "mma", ""])
def test_compiled_code_makes_it_too(kind: str) -> None:
  wanted = [k for k in chip.record()[1] if k.probe.form.startswith(kind)]
  if not THOROUGH: wanted = random.Random(seed(1)).sample(wanted, min(len(wanted), examples(15 if kind else 50)))
  assert not [b.kept.probe.text for b in chip.agreed(chip.beside(wanted, "jit"))[1]]


def test_each_reason_is_of_something() -> None:
  """A reason that nothing needs any more is to go."""
  found = list(chip.beside(k for k in chip.record()[1] if chip.reason(k.probe.form)))
  for pattern, why in chip.DIFFER:
    assert any(not b.agrees and re.match(pattern, b.kept.probe.form) for b in found), why


def test_a_bit_is_seen() -> None:
  kept = next(k for k in chip.record()[1] if k.probe.form == "lop3.b32" or k.probe.form.startswith("xor.b32"))
  (first, *others), *more = kept.made.results
  wrong = replace(kept, made=Made(((first ^ 1, *others), *more), kept.made.memory))
  assert chip.agreed(chip.beside([wrong]))[1] and not chip.agreed(chip.beside([kept]))[1]


def test_distance() -> None:
  def of(form: str, a: int, b: int, given: int = 0) -> int:
    probe = Probe(form, "", ("f32",), ("f32",), ((given,),), threads=1)
    return chip.distance(Kept(probe, Made(((a,),), b"")), Made(((b,),), b""))
  assert of("rcp.approx.f32", 0x3F800000, 0x3F800002) == 2 and of("rcp.approx.f32", 0x80000001, 1) == 2
  assert of("rcp.approx.f32", 0x7FFFFFFF, 0x7FC00000) == 0 and of("rcp.approx.f32", 0x7FFFFFFF, 1) == -1
  assert of("sin.approx.f32", 0x3F800000, 0x3F800004) == 0 and of("sin.approx.f32", 0x3F800000, 0x3F801000) > 0
  assert of("sin.approx.f32", 0x3F800000, 0x3F000000, 0x42C80000) == 0  # beyond a turn
