"""What compiled code has the reference do is what it declares, and what docs/ptx.md says."""
from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tests.emulator.ptx.test_registers import NAMES
from tests.isa import ptx_samples as samples
from tests.strength import THOROUGH, seed
from tinyhw.emulator.jit.ptx import fallback
from tinyhw.emulator.jit.ptx.module import code
from tinyhw.emulator.ptx.module.link import link
from tinyhw.emulator.ptx.program import Program
from tinyhw.isa.ptx import parse

TOGETHER = re.compile(r"^(vote|match|redux|elect)\.")
# registers that differ from thread to thread
VECTORS = "mov.u32 %r0, %lanemask_lt;" + "".join(
  f"xor.b32 %r{k}, %r0, {k}; cvt.u16.u32 %h{k}, %r{k}; mov.b32 %f{k}, %r{k}; mov.b64 %l{k}, {{%r{k}, %r{k}}}; "
  f"mov.b64 %d{k}, %l{k}; setp.gt.u32 %p{k}, %r{k}, 7; mov.b128 %q{k}, {{%l{k}, %l{k}}};" for k in range(1, 9))


def chosen(count: int) -> list[str]:
  """Instructions of every form; the members of a warp are all."""
  texts = samples.samples(2 * count if THOROUGH else count, random.Random(seed(3)))
  lines = [line for of in texts.values() for line in of.values()]
  return [re.sub(r", %r\d;$", ", -1;", line) if TOGETHER.search(line) else line for line in lines]


def left(lines: list[str], clustered: bool = True, before: str = "") -> list[str]:
  """The names of those that compiled code has the reference do."""
  text = samples.HEAD.format(target="sm_120a") + before + "\n".join(lines) + "\n ret;\n}\n"
  header, _ = code.written(Program(link(parse(text)), "k", 0x40000), (64, 1, 1), clustered=clustered)
  assert {row[4] for row in header["helped"]} <= {line.partition(" ")[0] for line in lines}
  return list(header["seldom"])


@pytest.mark.parametrize("before, count", [("", 1), (VECTORS, 4)], ids=["shared", "vectors"])
def test_what_is_left_to_the_reference_is_declared(before: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
  """All else is compiled code's own: of operands that threads share, and of vectors."""
  monkeypatch.setattr("tinyhw.emulator.ptx.module.link._checked", lambda *_: None)  # no target has them all
  seen: set[str] = set()
  lines = chosen(count)
  for k in range(0, len(lines), 40):
    for name in left(lines[k:k + 40], before=before):
      rows = [pattern for pattern, _ in fallback.SELDOM if re.fullmatch(pattern, name)]
      assert rows, name
      seen.update(rows)
  if before: assert {pattern for pattern, _ in fallback.SELDOM[1:]} == seen  # samples call nothing


@pytest.mark.parametrize("clustered", [False, True])
def test_special_registers_are_compiled(clustered: bool) -> None:
  lines = [f"mov.u32 %r1, {name};" for name in NAMES] + ["mov.pred %p1, %is_explicit_cluster;"]
  lines += [f"mov.u64 %l1, {name};" for name in ("%clock64", "%globaltimer", "%gridid")]
  lines += [f"mov.u32 %r1, {name};" for name in ("%clock", "%globaltimer_lo", "%envreg1", "%envreg2")]
  assert not left(lines, clustered)


def test_the_manual_says_so() -> None:
  docs = Path(__file__).resolve().parents[4] / "docs/ptx.md"
  assert fallback.table() in docs.read_text()
