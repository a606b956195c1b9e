"""PTX instructions beside the witness: Python integers and exact floats, from the manual."""
from __future__ import annotations

import random

import pytest

from tests.strength import THOROUGH, examples, seed
from tinyhw.core.errors import DecodeError, Unsupported
from tinyhw.emulator.ptx import bind
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.isa.ptx import parse, printer
from tinyhw.tools.ledger.ptx_forms import form_of
from tinyhw.tools.witness.ptx import bench, table


def groups() -> dict[str, list[str]]:
  """Opcodes that one function of the witness makes cases of, by its name."""
  out: dict[str, list[str]] = {}
  for opcode, maker in table.MAKERS.items():
    out.setdefault(f"{maker.__module__.rpartition('.')[2]}.{maker.__name__}", []).append(opcode)
  return out


GROUPS = groups()
MORE = {"video.vmad": 6, "textures.query": 3, "textures.surfaces": 2, "warps.shuffles": 4}  # where a form says much
# cases of a group; of others 160
MOST = {"matrices.mma": 80, "textures.tex": 100, "memory.atomics": 70, "memory.multimem": 70}


@pytest.mark.parametrize("group", GROUPS)
def test_instructions_give_what_the_manual_says(group: str) -> None:
  """Each modifier with each choice of types."""
  wanted = list(bench.covering(GROUPS[group], seed(0)))
  wanted = random.Random(seed(3)).sample(wanted, min(len(wanted), examples(MOST.get(group, 160))))
  if group in MORE or THOROUGH:
    wanted += bench.of_table("", examples(MORE.get(group, 1)), seed(0), form_of, GROUPS[group])
  assert not [str(w) for w in bench.check(wanted, seed(2))]


@pytest.mark.left("")
def test_compiled_code_gives_it_too() -> None:
  wanted = list(bench.of_table("", 1, seed(1), form_of))
  wanted = random.Random(seed(1)).sample(wanted, min(len(wanted), examples(60)))
  assert not [str(w) for w in bench.check(wanted, seed(2), "jit")]


def step(text: str) -> None:
  """Bind one instruction."""
  head = ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k () {\n.reg .b32 %r<9>;\n"
  linked = link(parse(f"{head}{text}\n}}"))
  code = Program(linked, "k", 1 << 20).function("k")
  bind.step(code, code.flat.lines[0])


@pytest.mark.parametrize("text", [
  "vadd.u32.u32.u32.add %r1.h0, %r2, %r3, %r4;", "vadd.u32.u32.u32 %r1, %r2, %r3, %r4;",
  "vadd.u32.u32.u32 %r1, %r2.b4, %r3;", "vadd.u32.u32.u32 %r1, -%r2, %r3;", "vadd.u32.u32.u32.add %r1, %r2, %r3;",
  "vadd.u32.u32.u32.add %r1, %r2, %r3, %r4.h0;", "vmad.u32.u32.u32.po %r1, -%r2, %r3, %r4;",
  "vmad.u32.u32.u32 %r1, -%r2, %r3, -%r4;", "vmad.u32.u32.u32 %r1.h0, %r2, %r3, %r4;",
  "vadd2.u32.u32.u32 %r1.b0, %r2, %r3, %r4;", "vadd2.u32.u32.u32 %r1.h01, %r2, %r3, %r4;",
  "vadd4.u32.u32.u32 %r1, %r2.b3, %r3, %r4;", "vadd4.u32.u32.u32 %r1, %r2, %r3, %r4.b0;",
  "vadd4.u32.u32.u32 %r1, %r2, %r3, -%r4;"])
def test_parts_that_there_are_not(text: str) -> None:
  with pytest.raises((DecodeError, ValueError)): step(text)


def test_parts_are_written_as_they_are_read() -> None:
  text = "vmad.u32.u32.u32 %r1, -%r2.h1, %r3.b0, %r4;"
  step(text)
  module = parse(f".version 8.6\n.target sm_90a\n.address_size 64\n.func f () {{ .reg .b32 %r<9>; {text} }}")
  assert text in printer.text(module) and parse(printer.text(module)) == module


def test_what_saturates_has_no_sum() -> None:
  with pytest.raises(Unsupported): step("vadd2.u32.u32.u32.sat.add %r1, %r2, %r3, %r4;")
