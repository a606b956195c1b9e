"""Registers of another type than an instruction's operand: what ptxas refuses is refused, and nothing else."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

import tinyhw
from tests.isa import ptx_samples as samples
from tests.strength import examples, seed
from tinyhw.core.errors import DecodeError, Error
from tinyhw.emulator.ptx import bind
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.isa.ptx import parse

REGISTERS = ".reg .b16 %h<9>; .reg .b32 %r<9>; .reg .u32 %u<9>; .reg .s64 %s<9>; .reg .f32 %f<9>; .reg .b64 %l<9>;"
CASES = [
  ("add.u32 %l1, %r2, %r3", "add.u32 does not fit the type .b64 of its destination"),
  ("add.u32 %r1, %r2, %l3", "%l3 of the type .b64 does not fit add.u32"),
  ("add.s64 %l1, %l2, %r3", "%r3 of the type .b32 does not fit add.s64"),
  ("add.f32 %f1, %u2, %f3", "%u2 of the type .u32 does not fit add.f32"),
  ("add.u32 %f1, %u2, %u3", "add.u32 does not fit the type .f32 of its destination"),
  ("fma.rn.f16x2 %u1, %r2, %r3, %r4", "fma.rn.f16x2 does not fit the type .u32 of its destination"),
  ("cvt.rn.f32.s32 %u1, %r2", "cvt.rn.f32.s32 does not fit the type .u32 of its destination"),
  ("cvt.u16.u32 %h1, %h2", "%h2 of the type .b16 does not fit cvt.u16.u32"),
  ("cvt.rn.f16.f32 %u1, %f2", "cvt.rn.f16.f32 does not fit the type .u32 of its destination"),
  ("mul.wide.u32 %r1, %r2, %r3", "mul.wide.u32 does not fit the type .b32 of its destination"),
  ("add.u32 %r1, %u2, %u3", ""), ("add.s32 %u1, %u2, %r3", ""), ("add.f32 %r1, %f2, %r3", ""),
  ("and.b32 %f1, %f2, %r3", ""), ("cvt.u8.u32 %l1, %s2", ""), ("cvt.rn.f16.f32 %r1, %f2", ""),
  ("cvt.u64.u32 %s1, %s2", ""), ("shl.b64 %s1, %l2, %u3", ""), ("mad.wide.s32 %s1, %u2, %r3, %l4", "")]

_APART = ("bar", "br", "ret", "exit", "trap", "isspacep")  # no steps, or no types of registers


def bound(instruction: str, head: str = ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k () {",
          registers: str = REGISTERS) -> None:
  """Bind an instruction as the reference does."""
  program = Program(link(parse(f"{head}{registers}\n{instruction}\n ret; }}")), "k", 0)
  code = program.function("k")
  bind.step(code, code.flat.lines[0])


@pytest.mark.parametrize(("instruction", "message"), CASES)
def test_types_of_registers(instruction: str, message: str) -> None:
  if not message: return bound(instruction + ";")
  with pytest.raises(DecodeError, match=rf"PTX line \d+, column 1: {re.escape(message)}"): bound(instruction + ";")


@pytest.mark.parametrize("engine", ["ref", "jit"])
def test_both_engines_refuse(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setenv("EMU", engine)
  text = f""".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k (.param .u64 out) {{ {REGISTERS}
    add.u32 %l1, %r2, %r3; ret; }}"""
  with pytest.raises(DecodeError, match="add.u32 does not fit the type .b64 of its destination"):
    tinyhw.launch(text, "k", 1, 1, [np.zeros(1, np.uint32)], "EMU")


@pytest.mark.skipif(samples.PTXAS is None, reason="needs ptxas")
def test_what_is_refused_ptxas_refuses() -> None:
  """Samples of the table with a register of another type: what is refused here for its type is refused there."""
  rng = random.Random(seed(5))
  wrong: list[str] = []
  for text in samples.samples(examples(1), rng)["sm_90a"].values():
    places = [m for m in re.finditer(r"%([hrfdl])(\d)", text)]
    if not places or "[" in text or "{" in text or text.startswith(_APART): continue
    m = rng.choice(places)
    changed = text[:m.start()] + f"%{rng.choice([k for k in 'hrfdl' if k != m[1]])}{m[2]}" + text[m.end():]
    head = samples.HEAD.format(target="sm_90a")
    try: bound(changed, head, "")
    except Error as error:
      if "does not fit" in str(error): wrong.append(changed)
  assert len(wrong) > 50
  refused = samples.refused(wrong, "sm_90a")
  assert not [text for k, text in enumerate(wrong) if k not in refused]
