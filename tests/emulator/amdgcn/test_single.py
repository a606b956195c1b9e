"""Every instruction with a witness, one at a time, in all its forms: the emulator against `tools/witness`."""
from __future__ import annotations

import pytest

from tests.strength import THOROUGH, some
from tinyhw.emulator.amdgcn import coverage
from tinyhw.emulator.amdgcn.meanings.quiet import meaning_of
from tinyhw.isa.amdgcn import table
from tinyhw.tools.witness import groups as more
from tinyhw.tools.witness.run import bench
from tinyhw.tools.witness.table import WITNESSES

GPUS = ("gfx1100", "gfx1201", "gfx942", "gfx950")


def judged(gpu: str) -> list[str]:
  """Mnemonics of a GPU that have a meaning and a witness."""
  isa = bench(gpu).table
  known = {m for generation, m in WITNESSES.names() if m in isa.by_mnemonic and generation in ("", isa.name)}
  if isa.member:  # what it has beside, or otherwise than, its generation's first processors
    before = table(isa.name)
    known = {m for m in known if before.by_mnemonic.get(m) is None or
             [r.value for r in isa.by_mnemonic[m]] != [r.value for r in before.by_mnemonic[m]] or
             meaning_of(m, isa.key, 0) is not meaning_of(m, isa.name, 0) or "fp8" in m or "bf8" in m}
  return sorted(m for m in known if coverage.status(m, isa.key) != "missing")


def groups(gpu: str, size: int = 20) -> list[list[str]]:
  """Those that are checked here, a few for each test. The other generations have a fifth of what they share with the
  first: its meaning and its witness, if not its words; a thorough run has all.
  """
  names = judged(gpu)
  if gpu != GPUS[0]:
    isa, first = bench(gpu).table.key, bench(GPUS[0]).table.key
    there = set(judged(GPUS[0]))
    shared = [m for m in names if m in there and meaning_of(m, isa, 0) is meaning_of(m, first, 0)
              and WITNESSES.get(m, isa) is WITNESSES.get(m, first)]
    chosen = set(some(shared, 5))
    names = [m for m in names if m in chosen or m not in set(shared)]
  return [names[k:k + size] for k in range(0, len(names), size)]


@pytest.mark.parametrize(("gpu", "names"), [(gpu, names) for gpu in GPUS for names in groups(gpu)],
                         ids=lambda x: x if isinstance(x, str) else x[0])
def test_instructions(gpu: str, names: list[str]) -> None:
  machine = bench(gpu)
  wrong = [d for name in names for d in machine.check(name, of=1 if THOROUGH else 5)]
  assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize(("gpu", "name"), [
  (gpu, name) for gpu in GPUS if not bench(gpu).table.member for name in more.names(bench(gpu).table.name)])
def test_groups(gpu: str, name: str) -> None:
  """Dual issue, registers numbered by M0, skipped instructions, all patterns of DPP and parts of SDWA."""
  wrong = bench(gpu).check(name)
  assert not wrong, "\n".join(map(str, wrong))
