"""The score of the cases of packets, methods and calls: of small changes of the mock's handlers, how many do they find?

    python -m tinyhw.tools.conform.client.mutation                          every change of the handlers, both vendors
    python -m tinyhw.tools.conform.client.mutation --sample 100 --seed 3    some, by seed
    python -m tinyhw.tools.conform.client.mutation --module mock.amd.chip.sdma --json

Changes are those of `tools/mutate`. Which cases reach a line is traced once; a change is asked about by at most
`--most` of those that reach it, first those of the handler's own unit that go a way of their own through the file, on
a new machine in a process of its own. Counted apart are changes that no case reaches (no packet, method or call that
known clients use), and those of what no client can see (`UNSEEN`): reports, traces, schedules, what is remembered.
"""
from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tinyhw.arch.nv import NV_ARCHES
from tinyhw.bringup.rung import RungEnd
from tinyhw.cli.benches import another, bench
from tinyhw.core.errors import Error
from tinyhw.devices.mocked import mock_machine
from tinyhw.tools.conform.client import suite
from tinyhw.tools.conform.client.amd import AmdRoom
from tinyhw.tools.conform.client.asking import ask
from tinyhw.tools.conform.client.nv import NvRoom
from tinyhw.tools.conform.client.question import Question
from tinyhw.tools.conform.judge import BAD
from tinyhw.tools.mutate.equivalent import reason
from tinyhw.tools.mutate.mutants import Mutant, Source, planted
from tinyhw.tools.mutate.score import Score

CARDS: Final = {"AMD": ("gfx1100", "gfx942"), "NV": ("sm_90",)}
# The handlers: who executes packets and methods, and who answers calls.
MODULES: Final = {
  **{f"mock.amd.{n}": "AMD" for n in ("chip.sdma", "chip.pm4", "chip.aql", "chip.atomics", "chip.gfx9", "driver.kfd",
                                      "driver.memory", "driver.queues", "driver.events")},
  **{f"mock.nv.{n}": "NV" for n in ("chip.host", "chip.copy", "chip.compute", "chip.semaphores", "chip.plan",
                                  "chip.qmdfields", "driver.uvm", "driver.rm", "driver.controls")}}
MOST: Final = 64  # cases asked about one change
_LARGE: Final = "/41943"  # identifiers of copies of 4 MiB: the smaller ones go the same ways
SECONDS: Final = 1.0  # that a case may take with a change
LIMIT: Final = 5  # seconds of processor time for one change
# What no client can see, by patterns of the function and of the line, and why.
UNSEEN: Final = (
  (r".*", r"\.trace\b|trace\.add|ignored\.note|\.doubt\(|\.log\(|Wait\(|packet_text|\bwanted = f|where = f",
   "what reports and traces say"),
  (r".*", r"draws|clock\.advance|_LINES_A_TURN|_TURN\b|PIECES|LATE", "the order and the time of what a schedule draws"),
  (r".*", r"\bchip\b|caches\.|\bdetail\b|\.weak\b|\.space\.direct|space\.direct|_near\b",
   "weak memory, and findings: this machine has strong memory"),
  (r".*\._learn.*|.*\.settings_version|.*\._kept", r"", "what is remembered so that equal packets cost less"),
  (r".*", r"_kept\b|settings_version|_decoded\.keep|\._quick|self\.packets\b|_plans\b",
   "what is remembered so that equal packets cost less"),
  (r".*", r"\.debug\b|debugged|machine\.watched|injected|broken\.|traps_off|\.masked\b",
   "debuggers, and faults put in by tests"),
  (r"mock\.\w+\.chip\..*", r"_scratch|SCRATCH|scratch", "scratch memory, which kernels of `tinyhw conform` ask about"))
Line = tuple[str, int]


@dataclass
class Reached:
  """What became of the changes, and those that no case reaches."""
  score: Score = field(default_factory=Score)
  unreached: list[Mutant] = field(default_factory=list)
  unseen: list[Mutant] = field(default_factory=list)


def room(vendor: str, card: str) -> Any:
  """A room on a new mock machine."""
  machine, port = mock_machine(vendor, (card,), engine="ref")
  made: Any = bench(vendor, port, 0, suite.LARGEST, lambda: another(vendor, machine, 0), {}, mocked=True)
  return AmdRoom(made) if vendor == "AMD" else NvRoom(made)


Case = tuple[str, Question]  # with its card
Way = frozenset[int]  # the lines of a file that a case executes


def unseen(m: Mutant) -> bool:
  """Whether no client can see the change."""
  return any(re.fullmatch(function, f"{m.module}.{m.function}") and re.search(line, m.source)
             for function, line, _ in UNSEEN)


def traced(vendor: str, sources: Sequence[Source], among: Sequence[str] = ()) -> dict[Line, list[tuple[Case, Way]]]:
  """(file, line) -> the cases that execute it, and their ways. Raises AssertionError where a case fails."""
  files = {s.path: s.name for s in sources}
  out: dict[Line, list[tuple[Case, Way]]] = {}
  seen = set[Line]()

  def lines(frame: Any, event: str, argument: Any) -> Any:
    if event == "line": seen.add((files[frame.f_code.co_filename], frame.f_lineno))
    return lines

  def calls(frame: Any, event: str, argument: Any) -> Any:
    name = frame.f_code.co_filename
    if name not in files:
      real = os.path.realpath(name)
      if real not in files: return None
      files[name] = files[real]
    return lines
  for card in CARDS[vendor]:
    made = None
    for q in suite.chosen(card, among):
      seen.clear()
      sys.settrace(calls)
      try:
        if made is None: made = room(vendor, card)
        found = ask(q, made)
      finally: sys.settrace(None)
      assert found.verdict not in BAD, f"{q.id}: {found.detail}"
      ways: dict[str, set[int]] = {}
      for name, number in seen: ways.setdefault(name, set()).add(number)
      kept = {name: frozenset(numbers) for name, numbers in ways.items()}
      for line in seen: out.setdefault(line, []).append(((card, q), kept[line[0]]))
      if q.alone: made = None
  return out


def own(module: str, q: Question) -> bool:
  """Whether a case is of the unit whose handlers a module has."""
  last = module.rpartition(".")[2]
  if ".driver." in module: return q.kind in {"ioctls", "controls"}
  if last in {"sdma", "pm4", "aql"}: return q.unit == last
  if last in {"host", "copy", "compute"}: return {"host": "NVC56F"}.get(last, last) in (q.unit, _ENGINES.get(q.unit))
  return True


_ENGINES: Final = {f"NV{c.copy_class:04X}": "copy" for c in NV_ARCHES.values()} | {
  f"NV{c.compute_class:04X}": "compute" for c in NV_ARCHES.values()}


def spread(module: str, rows: Sequence[tuple[Case, Way]], most: int) -> list[Case]:
  """So many cases, of each way one before another comes: those of the module's own unit, and of rare ways, first."""
  rows = [r for r in rows if _LARGE not in r[0][1].id] or list(rows)
  rows = [r for r in rows if own(module, r[0][1])] or rows
  groups: dict[Way, list[Case]] = {}
  for case, way in rows: groups.setdefault(way, []).append(case)
  queues = sorted(groups.values(), key=len)
  out: list[Case] = []
  while queues and len(out) < most:
    for queue in queues: out.append(queue.pop(len(queue) // 2))
    queues = [q for q in queues if q]
  return out[:most]


def finds(vendor: str, rows: Sequence[Case]) -> bool:
  """Whether a case says that something is wrong, in a process of its own; one that never ends, or dies, has."""
  child = os.fork()
  if child == 0: _child(vendor, rows)
  until = time.monotonic() + 4 * LIMIT
  while True:
    done, status = os.waitpid(child, os.WNOHANG)
    if done: return os.waitstatus_to_exitcode(status) != 0
    if time.monotonic() > until: os.kill(child, signal.SIGKILL)
    time.sleep(0.002)


def _child(vendor: str, rows: Sequence[Case]) -> None:
  """Ends with 1 where a case finds something: also where the changed code raises what the tree does not know."""
  code = 1
  try:
    signal.setitimer(signal.ITIMER_PROF, LIMIT)  # its signal ends the process
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    cards = dict.fromkeys(card for card, _ in rows)
    code = int(any(_wrong(vendor, card, [q for c, q in rows if c == card]) for card in cards))
  finally: os._exit(code)


def _wrong(vendor: str, card: str, questions: Iterable[Question]) -> bool:
  made = None
  for q in questions:
    try:
      if made is None: made = room(vendor, card)
      if ask(q, made, SECONDS).verdict in BAD: return True
    except (Error, RungEnd, OSError): return True
    if q.alone: made = None
  return False


def measure(modules: Iterable[str], sample: int = 0, seed: int = 0, most: int = MOST,
            only: Callable[[Mutant], bool] = lambda m: True, among: Sequence[str] = ()) -> Reached:
  """Make each change, or so many that a seed draws, and ask the cases that reach it; `among`: patterns of cases."""
  out = Reached()
  chosen = list(modules)
  for vendor in CARDS:
    sources = [Source(importlib.import_module(f"tinyhw.{m}"), m) for m in chosen if MODULES[m] == vendor]
    pairs = [(s, m) for s in sources for m in s.mutants() if only(m)]
    if sample: pairs = random.Random(seed).sample(pairs, min(len(pairs), sample))
    if not pairs: continue
    cases = traced(vendor, sources, among)
    for source, mutant in pairs:
      (first, _), (last, _) = mutant.range
      rows = list(dict.fromkeys(row for line in range(first, last + 1) for row in cases.get((source.name, line), ())))
      if not rows:
        out.unreached.append(mutant)
        continue
      if unseen(mutant):
        out.unseen.append(mutant)
        continue
      if reason(*mutant.key) is not None:
        out.score.equivalent.append(mutant)
        continue
      asked = spread(mutant.module, rows, most)
      with planted(source.changed(mutant)): caught = finds(vendor, asked)
      if caught: out.score.killed += 1
      else: out.score.survivors.append((mutant, [q.id for _, q in asked[:4]]))
  return out


def main() -> int:
  """Print the score and what survived."""
  head, _, examples = (__doc__ or "").partition("\n\n")
  parser = argparse.ArgumentParser(prog="python -m tinyhw.tools.conform.client.mutation", description=head,
                                   epilog=examples, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--module", action="append", choices=tuple(MODULES), help="only this module (may be repeated)")
  parser.add_argument("--sample", type=int, default=0, help="this many changes of a vendor's, drawn by --seed")
  parser.add_argument("--seed", type=int, default=0)
  parser.add_argument("--most", type=int, default=MOST, help=f"cases asked about one change (default: {MOST})")
  parser.add_argument("--json", action="store_true")
  options = parser.parse_args()
  began = time.monotonic()
  found = measure(options.module or MODULES, options.sample, options.seed, options.most)
  score = found.score
  if options.json:
    print(json.dumps({"found": score.killed, "survived": len(score.survivors), "equivalent": len(score.equivalent),
                      "unreached": len(found.unreached), "unseen": len(found.unseen),
                      "percent": round(score.percent, 2),
                      "survivors": [{"mutant": str(m), "cases": names} for m, names in score.survivors]}, indent=1))
    return 0
  for mutant, names in score.survivors: print(f"{mutant}  ({', '.join(names[:2])})")
  print(f"{score.killed} of {score.counted} changes found, {score.percent:.1f} %; {len(score.equivalent)} more are "
        f"declared to change nothing, {len(found.unseen)} no client can see, {len(found.unreached)} no case reaches; "
        f"{time.monotonic() - began:.0f} s")
  return 0


if __name__ == "__main__": sys.exit(main())
