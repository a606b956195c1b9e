"""The ledger of PTX: which forms of the manual have a meaning, and what that was held against.

    python -m tinyhw.tools.ledger.ptx            what the records say
    python -m tinyhw.tools.ledger.ptx --record   runs all witnesses anew, some minutes: writes ptx_executed.json

A form is a mnemonic with its types (`tools/ptxcover`, which writes ptx_forms.json from the manual's pages). "manual":
`tools/witness/ptx`, Python integers and exact floats from the manual alone (tests/emulator/ptx/test_witness.py); "LLVM
host": programs that LLVM compiles for NVIDIA and for the host (`tools/fuzz/ptx`); "NumPy": kernels of nvcc, Triton and
our own in TESTS, whose results NumPy, or a model beside them, says; "chip": what an NVIDIA H200 made of the same
kernels (`tools/ledger/chip`, tests/recordings/ptx_sm90.xz).
"""
from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from tinyhw.tools.ledger.ptx_forms import all_forms, form_of

RECORD: Final = Path(__file__).with_name("ptx_executed.json")
MANUAL, HOST, NUMPY, CHIP, COMPILED = "manual", "LLVM host", "NumPy", "chip", "compiled"
TESTS: Final = ("test_ptx_async", "test_ptx_forms", "test_ptx_kernels", "test_ptx_matrix", "test_ptx_tensor",
                "test_ptx_textures", "test_ptx_triton", "test_ptx_narrow", "test_ptx_tcgen05", "test_ptx_tcgen05_mma")
# Caches, hints and fences: where threads see each other's stores in order there is nothing that a witness could see.
NO_EFFECT: Final = frozenset({"prefetch", "prefetchu", "membar", "fence", "discard", "applypriority", "pmevent",
                              "griddepcontrol", "setmaxnreg", "createpolicy", "nanosleep"})


@dataclass(frozen=True)
class Entry:
  """A form: whether targets after sm_90 alone have it, whether it has a meaning here, which witnesses executed it,
  whether compiled code does."""
  form: str
  later: bool
  meaning: bool
  effect: bool
  witnesses: tuple[str, ...]
  compiled: bool


@cache
def record() -> dict[str, list[str]]:
  """Form -> what it was held against, and COMPILED."""
  found: dict[str, list[str]] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
  return found


def of(names: Iterable[str]) -> set[str]:
  """The forms of instructions."""
  return {form for form in map(form_of, names) if form is not None}


def entries() -> list[Entry]:
  """The ledger, by form."""
  from tinyhw.tools.ptxcover import has, is_later
  seen = record()
  out = []
  for form, name in sorted(all_forms().items()):
    meaning = has(name)
    known = seen.get(form, []) if meaning else []  # an instruction of another form may be of this one's words
    out.append(Entry(form, is_later(form), meaning, form.split(".")[0] not in NO_EFFECT,
                     tuple(w for w in known if w != COMPILED), COMPILED in known))
  return out


def summary(found: list[Entry]) -> dict[str, int]:
  """The numbers: `effect` are the forms of which there is something to see, `later` those of targets after sm_90."""
  newer = [e for e in found if e.later]
  return {"forms": len(found), "later": len(newer), "later_meaning": sum(e.meaning for e in newer),
          "later_effect": sum(e.effect for e in newer),
          "later_witnessed": sum(bool(e.witnesses) for e in newer if e.effect),
          "meaning": sum(e.meaning for e in found), "effect": sum(e.effect for e in found),
          "witnessed": sum(bool(e.witnesses) for e in found if e.effect), "compiled": sum(e.compiled for e in found),
          **{kind: sum(kind in e.witnesses for e in found) for kind in (MANUAL, HOST, NUMPY, CHIP)}}


def lines(found: list[Entry]) -> list[str]:
  """The numbers in words."""
  s = summary(found)
  def share(n: int, of: int) -> str: return f"{n:,} ({100 * n / of:.1f} %)"
  return [f"forms (a mnemonic with its types)               {s['forms']:,}",
          f"  with a meaning                                {share(s['meaning'], s['forms'])}",
          f"  with an effect to see                         {s['effect']:,}",
          f"  run beside an independent witness             {share(s['witnessed'], s['effect'])}",
          f"    integers and exact floats from the manual   {s[MANUAL]:,}",
          f"    LLVM's code for the host                    {s[HOST]:,}",
          f"    NumPy, or a model of a test's own           {s[NUMPY]:,}",
          f"    kernels of a chip, an NVIDIA H200           {s[CHIP]:,}",
          f"  run by compiled code beside the manual's      {share(s['compiled'], s['forms'])}",
          *([f"  of targets after sm_90 alone                  {s['later']:,}",
             f"    with a meaning                              {share(s['later_meaning'], s['later'])}",
             f"    run beside an independent witness           {share(s['later_witnessed'], s['later_effect'])}"]
            if s["later_effect"] else [])]


# ---- records

def by_manual(engine: str = "ref") -> set[str]:
  """What the witness executes, and agrees with."""
  from tinyhw.tools.witness.ptx import bench
  wanted = [c for c in bench.of_table("", 1, key=form_of) if form_of(c.form) is not None]
  wrong = {w.case.form for w in bench.check(wanted, 0, engine)}
  left: set[str] = bench.interpreted if engine == "jit" else set()
  return of({c.form for c in wanted} - wrong - left)


def by_host() -> set[str]:
  """What LLVM's programs execute; all must agree."""
  from collections import Counter

  from tinyhw.tools.fuzz import ptx
  seen: Counter[str] = Counter()
  wanted = ptx.cases()
  for cpu, levels in (("sm_80", [0, 2]), ("sm_90", [2])):
    for k in range(0, len(wanted), ptx.CHUNK):
      wrong = ptx.check(wanted[k:k + ptx.CHUNK], levels, cpu=cpu, executed=seen)
      assert not wrong, wrong
  return of(seen)


def by_numpy() -> set[str]:
  """What the tests' kernels execute, in the reference."""
  import pytest

  from tinyhw.emulator.simt import Stats
  made: list[Stats] = []
  plain = Stats.__init__

  def watched(self: Stats, *arguments: Any, **more: Any) -> None:
    plain(self, *arguments, **more)
    made.append(self)
  Stats.__init__ = watched  # type: ignore[method-assign]
  os.environ["EMU"] = "ref"
  root = Path(__file__).resolve().parents[2]
  try: failed = pytest.main(["-q", "-p", "no:cacheprovider", *(str(root / f"tests/emulator/{t}.py") for t in TESTS)])
  finally: Stats.__init__ = plain  # type: ignore[method-assign]
  assert not failed
  return of({name for stats in made for name in stats.mnemonics})


def by_chip() -> set[str]:
  """What the emulator makes as the chip does wherever it was tried."""
  from tinyhw.tools.ledger import chip
  return of(chip.agreed(chip.beside(chip.record()[1]))[0])


def by_compiled() -> set[str]:
  """What the witness executes in compiled code, and agrees with."""
  return by_manual("jit")


KINDS: Final[dict[str, Callable[[], set[str]]]] = {
  MANUAL: by_manual, HOST: by_host, NUMPY: by_numpy, CHIP: by_chip,
                                                   COMPILED: by_compiled}


def write(kinds: Iterable[str]) -> None:
  """Run witnesses, and write what they executed; of the others the record stays."""
  kept = {kind: {form for form, known in record().items() if kind in known} for kind in KINDS}
  for kind in kinds:
    kept[kind] = KINDS[kind]()
    print(f"{kind}: {len(kept[kind])} forms", file=sys.stderr, flush=True)
  found: dict[str, list[str]] = {}
  for kind, seen in kept.items():
    for form in sorted(seen): found.setdefault(form, []).append(kind)
  rows = [f"  {json.dumps(form)}: {json.dumps(of_form)}" for form, of_form in sorted(found.items())]
  RECORD.write_text("{\n" + ",\n".join(rows) + "\n}\n")


def main() -> None:
  """Print the numbers, or write the record."""
  parser = argparse.ArgumentParser(prog="python -m tinyhw.tools.ledger.ptx")
  parser.add_argument("--record", nargs="*", choices=[*KINDS], help="run these witnesses anew, all where none is named")
  given = parser.parse_args().record
  if given is not None: write(given or KINDS)
  record.cache_clear()
  print("\n".join(lines(entries())))


if __name__ == "__main__": main()
