"""Which changes of the meanings the witness notices."""
from __future__ import annotations

import importlib
import random
import re
import signal
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FunctionType
from typing import Any, Final

from tinyhw.core.errors import InvalidArgument
from tinyhw.emulator.amdgcn import coverage
from tinyhw.emulator.amdgcn.binders import binds
from tinyhw.emulator.amdgcn.meanings import quiet
from tinyhw.emulator.amdgcn.meanings.registry import MEANINGS
from tinyhw.emulator.memory.atomics import ATOMICS
from tinyhw.emulator.values.ops import Ops
from tinyhw.tools.mutate import suite
from tinyhw.tools.mutate.equivalent import reason
from tinyhw.tools.mutate.mutants import Mutant, Source, planted
from tinyhw.tools.mutate.reach import GPUS, Check, Reach, checks
from tinyhw.tools.witness.run import bench
from tinyhw.tools.witness.table import WITNESSES

MODULES: Final = ("floats", "integer", "scalar", "gfx12", "gfx9", "small_floats", "quiet", "atomics")  # the meanings
# What is around the meanings: operands, masks, modifiers, memory, control. Which checks see a line of these is traced.
MACHINERY: Final = ("bind", "ops", "lanes", "relative", "registers", "dpp", "sdwa", "control", "ends", "hwreg",
                    "lds", "vector", "smem", "words", "access", "buffer", "formats", "resource", "image", "texture",
                    "gds", "transpose")
SHARED: Final = {"ops": "values.ops", "small_floats": "values.small_floats", "atomics": "memory.atomics",
                 "access": "memory.access"}  # with PTX
# Where a module lies, unless it is amdgcn/meanings/NAME.py.
PLACES: Final = {"gfx12": "gfx12.meanings", "gfx9": "gfx9.meanings", "sdwa": "gfx9.sdwa",
                 "smem": "memory.scalar", "transpose": "gfx12.transpose",
                 **{name: f"memory.{name}" for name in ("lds", "vector", "words", "buffer", "formats", "resource",
                                                        "image", "texture", "gds")},
                 **{name: name for name in ("bind", "lanes", "relative", "registers", "dpp", "control",
                                            "ends", "hwreg")}}
THOROUGH: Final = 6  # times as many checks are asked about a change around the meanings: many lines serve them all
KEPT: Final = 400  # mnemonics whose cases stay prepared
EXTREME: Final = re.compile(r"v_(pk_)?(min|max|min3|max3|med3|minmax|maxmin)_f(16|32|64)")
TIMEOUT: Final = 20  # seconds of processor time for one change


class Expired(Exception):
  """A changed meaning does not come to an end."""


@dataclass
class Score:
  """What became of the changes."""
  killed: int = 0
  survivors: list[tuple[Mutant, list[str]]] = field(default_factory=list)
  equivalent: list[Mutant] = field(default_factory=list)

  @property
  def counted(self) -> int: return self.killed + len(self.survivors)

  @property
  def percent(self) -> float: return 100 * self.killed / max(1, self.counted)


@cache
def _names(code: CodeType) -> set[str]:
  """Names that code refers to, nested code too."""
  out = set(code.co_names) | set(code.co_freevars)
  for c in code.co_consts:
    if isinstance(c, CodeType): out |= _names(c)
  return out


def _reach(f: Any, seen: set[int], out: list[FunctionType]) -> None:
  """The function and those of the emulator that it may call."""
  f = getattr(f, "__wrapped__", f)
  if not isinstance(f, FunctionType) or id(f) in seen or ".emulator." not in f"{f.__module__}.": return
  seen.add(id(f))
  out.append(f)
  for cell in f.__closure__ or ():
    with suppress(ValueError): _reach(cell.cell_contents, seen, out)
  for default in f.__defaults__ or (): _reach(default, seen, out)
  for name in _names(f.__code__):
    for holder in (f.__globals__, vars(Ops)):
      found = holder.get(name)
      _reach(getattr(found, "__func__", found), seen, out)


@cache
def users() -> dict[int, list[tuple[str, str]]]:
  """id of a function -> (table, mnemonic) of the instructions whose meaning may call it and that have a witness."""
  out: dict[int, list[tuple[str, str]]] = {}
  for isa, gpu in GPUS.items():
    generation = bench(gpu).table
    for mnemonic in generation.by_mnemonic:
      if WITNESSES.get(mnemonic, isa) is None or coverage.status(mnemonic, isa) == "missing": continue
      roots: list[Any] = []
      meaning, binder = MEANINGS.get(mnemonic, isa), binds.get(mnemonic, isa)
      if meaning is not None: roots.append(meaning.function)
      if binder is not None: roots.append(binder)
      if "atomic" in mnemonic or mnemonic.startswith("ds_"): roots += _atomic_roots(mnemonic)
      if EXTREME.fullmatch(mnemonic): roots += [f for f in vars(quiet).values() if isinstance(f, FunctionType)]
      reached: list[FunctionType] = []
      seen: set[int] = set()
      for root in roots: _reach(root, seen, reached)
      for f in reached: out.setdefault(id(f), []).append((isa, mnemonic))
  return out


def _atomic_roots(mnemonic: str) -> list[Any]:
  """The functions of the operations that an atomic's name may mean."""
  found = []
  for name, operation in ATOMICS.items():
    letter = name[0] if name[1:] in {"min", "max", "add"} or name == "fcmpswap" else ""
    if not re.search(rf"(atomic|ds)_{letter}?{name.removeprefix(letter)}(_|$)", mnemonic): continue
    if (letter == "f") == bool(re.search(r"f(32|64)$", mnemonic)): found += list(_functions(operation))
  return found


def _functions(x: Any) -> Iterable[Any]:
  if isinstance(x, FunctionType): yield x
  elif isinstance(x, (tuple, list)):
    for y in x: yield from _functions(y)
  elif hasattr(x, "__dict__"):
    for y in vars(x).values(): yield from _functions(y)


def noticed(mnemonics: list[tuple[str, str]], names: tuple[str, ...] = ()) -> bool:
  """Whether the witness disagrees about one of these instructions, or one of these tests fails."""
  def expire(*_: Any) -> None: raise Expired
  old = signal.signal(signal.SIGPROF, expire)
  signal.setitimer(signal.ITIMER_PROF, TIMEOUT)
  try:
    for isa, mnemonic in mnemonics:
      if bench(GPUS[isa]).check(mnemonic, limit=1, keep=True): return True
    return suite.fails(names)
  except Exception: return True  # whatever a test would have failed with
  finally:
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, old)


def place(name: str) -> str:
  """The full name of a module."""
  if name in SHARED: return f"tinyhw.emulator.{SHARED[name]}"
  return f"tinyhw.emulator.amdgcn.{PLACES.get(name, f'meanings.{name}')}"


def mutants(modules: Iterable[str] = MODULES) -> list[tuple[Source, Mutant]]:
  """All changes of the modules, in order."""
  out = []
  for name in modules:
    source = Source(importlib.import_module(place(name)), name)
    out += [(source, m) for m in source.mutants()]
  return out


def forget(module: str) -> None:
  """Drop what a module's functions remember, and the oldest prepared cases."""
  for f in vars(importlib.import_module(place(module))).values():
    if hasattr(f, "cache_clear"): f.cache_clear()
  for gpu in GPUS.values():
    prepared = bench(gpu).prepared
    for name in list(prepared)[:-KEPT]: del prepared[name]


def measure(chosen: Iterable[tuple[Source, Mutant]], match: str = "", most: int = 12, seed: int = 0,
            tests: bool = False, among: list[Check] | None = None) -> Score:
  """Make each change and ask the witness. `most` instructions are asked about one change, drawn by `seed`; `tests`: the
  emulator's tests are asked too about what is around the meanings.

  A change around the meanings that no check reaches counts as one that none noticed; `among`: only these are asked.
  """
  chosen = list(chosen)
  score = Score()
  around = {m.module for _, m in chosen if m.module in MACHINERY}
  known = users() if any(m.module not in MACHINERY for _, m in chosen) else {}
  reach = Reach([place(m) for m in around], (among or checks(seed)) if around else [])
  for name in sorted({n for m in around for n in suite.TESTS.get(m, ())}) if tests else ():
    if suite.fails([name]): raise InvalidArgument(f"{name} fails without a change")
  for source, mutant in chosen:
    changes = source.changed(mutant)
    if mutant.module in MACHINERY: affected = reach.of(place(mutant.module), mutant.range)
    else: affected = sorted({pair for f, _ in changes for pair in known.get(id(f), ())})
    affected = [a for a in affected if match in a[1]]
    if not affected and (mutant.module not in MACHINERY or match): continue
    if reason(*mutant.key) is not None:
      score.equivalent.append(mutant)
      continue
    random.Random(f"{seed} {mutant.key}").shuffle(affected)  # whoever else is asked
    affected.sort(key=lambda a: a[1][0] != "@")  # groups of cases have what is special
    most_here = most if mutant.module not in MACHINERY else THOROUGH * most
    forget(mutant.module)
    with planted(changes): caught = noticed(affected[:most_here], suite.TESTS.get(mutant.module, ()) if tests else ())
    forget(mutant.module)
    if caught: score.killed += 1
    else: score.survivors.append((mutant, [m for _, m in affected]))
  return score
