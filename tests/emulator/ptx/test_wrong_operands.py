"""Operands that an instruction does not take: DecodeError or Unsupported; no error of Python's own."""
from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pytest

import tinyhw
from tests.isa import ptx_samples as samples
from tests.strength import examples, seed
from tinyhw.core.errors import DecodeError, Error, Unsupported
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.isa.ptx import parse

TARGETS = ("sm_90a", "sm_100a", "sm_103a", "sm_110a", "sm_120a")
BASE = 0x1_0000_0000  # of variables, where 32 bits hold no address of them
MOST = 4  # instructions of a row of the table
OTHERS = ("%p1", "%b1", "%h1", "%r1", "%f1", "%l1", "%d1", "%q1", "0", "1", "-1", "3.5", "0f3F800000",
          "0d3FF0000000000000", "18446744073709551615", "cvar", "par", "k", "tex", "suf", "L", "%tid.x", "%tid", "_",
          "!%p1", "-%r1", "nobody", "[cvar]", "[%l1]", "[%l1+4]", "[%r1]", "[par]", "[tex, {%r1, %r2}]", "[%l1, {%r1}]",
          "[7]", "%r1|%p1", "_|%p1", "%p1|%p2", "{}", "{%r1}", "(%r1)", "()")
FOUND = ("tex.base.a2dms.v4.f16.s32 {%h1, %h2, %h3, %h4}|%p1, [%l1, {%r1}];", "mov.b64 {%r1, %r2, %r3}, %l1;",
         "mov.b16 %h1, {};", "mov.u32 %r1, cvar;", "mov.f32 %f1, cvar;")


def operands(text: str) -> tuple[str, list[str]]:
  """An instruction's name, and its operands as they stand in its text."""
  name, _, rest = text.strip().rstrip(";").partition(" ")
  return name, [o for o in re.findall(r"(?:[^,\[{(]|\[[^\]]*\]|\{[^}]*\}|\([^)]*\))+", rest) if o.strip()]


def wrong(rng: random.Random, text: str) -> str:
  """An instruction with an operand that is another, more, less, or in another place."""
  name, given = operands(text)
  for _ in range(rng.choice((1, 1, 1, 2))):
    at = rng.randrange(len(given) + 1)
    other = rng.choice(OTHERS) if rng.random() < 0.8 else \
      "{" + ", ".join(rng.choice(OTHERS[:9]) for _ in range(rng.randrange(9))) + "}"
    what = rng.randrange(8)
    if what < 6 and given: given[at % len(given)] = other
    elif what == 6: given.insert(at, other)
    elif given: given.pop(at % len(given))
  return f"{name} {', '.join(o.strip() for o in given)};"


def drawn(rng: random.Random, each: float) -> Iterator[tuple[str, str]]:
  """(target, instruction) with wrong operands: `each` for every form of the table."""
  for target, lines in samples.samples(MOST, random.Random(1)).items():
    if target not in TARGETS: continue
    for text in lines.values():
      for _ in range(int(each) + (rng.random() < each % 1)): yield target, wrong(rng, text)


def module(target: str, text: str) -> str:
  return f"{samples.HEAD.format(target=target)}{text}\nret;\n}}"


def test_no_error_is_pythons_own() -> None:
  """Of the reference: each instruction is bound, or refused by name."""
  bound = 0
  for target, text in [*(("sm_90a", text) for text in FOUND), *drawn(random.Random(seed(1)), examples(1) / 2)]:
    with suppress(DecodeError, Unsupported):
      code = Program(link(parse(module(target, text))), "k", BASE).function("k")
      for k in range(len(code.flat.lines)): code.bound(k)
      bound += 1
  assert bound > 50  # what may stand there is taken


@pytest.mark.parametrize("text, words", [
  ("mov.u32 %r1, cvar;", "PTX address of 32 bits cvar, whose address has 33"),
  ("mov.f32 %f1, cvar;", "mov.f32 does not take these operands"),
  ("mov.b16 %h1, cvar+2;", "PTX address of 16 bits cvar"),
])
def test_an_address_fits_its_register_or_is_refused(text: str, words: str) -> None:
  text = module("sm_90a", text).replace(".param .align 16 .b8 par[64]", ".param .u64 par")
  with pytest.raises((DecodeError, Unsupported), match=words):
    tinyhw.launch(text, "k", 1, 1, [np.zeros(16, np.uint32)], "EMU")


@pytest.mark.left(".*")
def test_nor_of_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
  """Kernels whose threads all go around the instruction."""
  monkeypatch.setenv("EMU", "jit")
  ran = 0
  for target, text in drawn(random.Random(seed(2)), examples(1) / 40):
    text = module(target, f"bra END;\n{text}\nEND:").replace(".param .align 16 .b8 par[64]", ".param .u64 par")
    with suppress(Error):
      tinyhw.launch(text, "k", 1, 1, [np.zeros(16, np.uint32)], "EMU")
      ran += 1
  assert ran > 5
