"""The mutation tool: what it changes and what it leaves alone, and a handful of changes a room that must be noticed.

`python -m tinyhw.tools.mutate --room ROOM` counts all; docs/mutation.md has the scores.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.strength import THOROUGH
from tinyhw.tools.mutate import rooms
from tinyhw.tools.mutate.equivalent import ROOMS as RULES
from tinyhw.tools.mutate.equivalent import Rule
from tinyhw.tools.mutate.measure import Chooser, places, sample, unreached
from tinyhw.tools.mutate.mutants import content
from tinyhw.tools.mutate.places import File, Place
from tinyhw.tools.mutate.trace import Map
from tinyhw.tools.mutate.trace import Test as Traced
from tinyhw.tools.mutate.worker import Job, Server, computing

# (room, function, change, a part of the line, who notices). Those of `QUICK` were not noticed once, or run at import;
# their tests are soon collected.
QUICK = {
  "LaunchShape.dimensions",
  "Kfd._create_event_page",
  "AMDRuntime.is_peer",
  "_load",
  "Access",
  "dispatch",
  "_sum",
  "Buffer.copy_from",
  "Adam._change",
}
ALL = (
  ("drive", "LaunchShape.dimensions", "2 becomes 3", "self.grid[2]",
   "drive/test_what_is_asked.py::test_the_dimensions_of_a_launch"),
  ("drive", "Kfd._create_event_page", "8 becomes 9", "KFD_SIGNAL_EVENT_LIMIT",
   "drive/test_what_is_asked.py::test_the_event_page_has_a_slot_for_every_event"),
  ("drive", "AMDRuntime.is_peer", "and and or swapped", "link.peer_dma",
   "drive/test_what_is_asked.py::test_peers_are_linked_cards_whose_link_carries_dma"),
  ("drive", "Link.peer_dma", "Not dropped", "NO_PEER_TO_PEER_DMA",
   "drive/test_what_is_asked.py::test_peers_are_linked_cards_whose_link_carries_dma"),
  ("mock", "Kfd.get_dmabuf_info", "BitAnd becomes BitOr", "FLAGS_PUBLIC",
   "mock/test_kfd.py::test_what_a_dmabuf_says_of_its_memory"),
  ("mock", "_signed", "63 becomes 64", "value >> 63",
   "mock/test_single_packets.py::test_a_barrier_compares_signed_values"),
  ("mock", "capability", "LShift becomes RShift", "WATCH_POINTS",
   "mock/test_single_packets.py::test_what_a_node_says_it_can_do"),
  ("compile", "compile_kernel", "1 becomes 2", "buffers = tuple",
   "compile/test_program.py::test_buffers_are_passed_by_their_numbers"),
  ("compile", "_tile", "True becomes False", "return True",
   "compile/test_choices.py::test_what_is_chosen_for_workgroups"),
  ("core", "_load", "Not dropped", "width == 16", "core/test_memory.py::test_every_width_at_every_offset"),
  ("core", "_collect", "operands swapped", "f.default",
   "core/test_layout_classes.py::test_a_default_may_have_the_zeros_that_the_shift_wants"),
  ("core", "Access", "2 becomes 3", "WRITE", "core/test_memory.py::test_permissions_are_apart"),
  ("wire", "dispatch", "3 becomes 4", "dimensions = 3", "wire/test_packets.py::test_a_dispatch_in_aql"),
  ("wire", "patch", "operands swapped", "value // 4 - 1",
   "wire/test_codeobject.py::test_every_kind_of_symbol_and_relocation"),
  ("ir", "_sum", "condition negated", "terms = _rejoin", "ir/test_symbolic.py::test_simplest_form"),
  ("ir", "interval", "0 becomes 1", "Ops.AND or op is Ops.MUL", "ir/test_dtype_uop.py::test_bounds_of_conditions"),
  ("devices", "Buffer.copy_from", "statement dropped", "there.synchronize()",
   "engine/test_run.py::test_a_copy_between_cards_waits_for_both"),
  ("nn", "Adam._change", "Mult becomes Add", "not decoupled",
   "tensor/test_defaults.py::test_an_optimizer_is_pytorchs_formula"),
  ("function", "Reduction.any", "False becomes True", "keepdim: bool", "tensor/test_defaults.py::test_a_case"),
  ("cli", "Shell.dump", "16 becomes 17", "a_row", "cli/test_transcripts.py::test_a_session_of_the_debugger"),
)  # fmt: skip

FIXED = ALL if THOROUGH else tuple(row for row in ALL if row[1] in QUICK)


def place_of(room: str, function: str, change: str, part: str) -> Place:
  """The first place in a room that fits."""
  found = (p for f in rooms.files(room) if part in f.text for p in f.places)
  return next(
    p for p in found if p.mutant.function == function and p.mutant.change == change and part in p.mutant.source
  )


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Server, Server]]:
  """One that has collected who notices, and one for what runs at import."""
  files = dict.fromkeys(["tests/core/test_mapped.py", *(f"tests/{row[-1].split('::')[0]}" for row in FIXED)])
  both = Server("loaded", ",".join(dict.fromkeys(row[0] for row in FIXED)), *files), Server("bare")
  yield both
  for server in both:
    server.close()


@pytest.mark.parametrize("row", FIXED, ids=lambda row: f"{row[0]}-{row[1]}-{row[2]}".replace(" ", "_"))
def test_a_change_is_noticed(servers: tuple[Server, Server], row: tuple[str, ...]) -> None:
  place, test = place_of(*row[:4]), f"tests/{row[-1]}"
  server = servers[place.function is None]
  job = Job(0, str(place.file.path), place.file.module, place.mutant.number, [(test, 1.0)])
  server.give(job)
  if (verdict := server.take())["verdict"] == "unplanted":  # a module that loads as a test runs
    servers[1].give(job)
    verdict = servers[1].take()
  assert verdict["verdict"] == "failed" and verdict["by"].startswith(test), (verdict, str(place.mutant))


def test_without_a_change_nothing_is_noticed(servers: tuple[Server, Server]) -> None:
  tests = [f"tests/{row[-1]}" for row in FIXED if row[0] in {"core", "wire", "drive"}]
  servers[0].give(Job(0, "", "", -1, [(t, 1.0) for t in dict.fromkeys(tests)]))
  assert servers[0].take()["verdict"] == "passed"
  servers[1].give(Job(0, "", "", -1, [("tests/core/test_memory.py::test_permissions_are_apart", 1.0)]))
  assert servers[1].take()["verdict"] == "passed"


def test_what_never_ends_or_dies_is_noticed(servers: tuple[Server, Server], tmp_path: Path) -> None:
  """A job's process has limits of its own, and its end is not the server's."""
  place = place_of("core", "Mappings._remove", "statement dropped", "i += 1")
  test = "tests/core/test_mapped.py::test_views_keep_their_pages"
  servers[0].give(Job(0, str(place.file.path), place.file.module, place.mutant.number, [(test, 0.01)], 0.1))
  assert (found := servers[0].take())["verdict"] == "died" and found["by"].startswith(test), found
  servers[0].give(Job(1, "", "", -1, [(test, 1.0)]))
  assert servers[0].take()["verdict"] == "passed"


def test_what_waits_for_the_processor_alone_has_time() -> None:
  """A busy machine is no reason to say that a change hangs."""
  for text, wanted in (("import time; time.sleep(60)", False), ("while True: pass", True)):
    child = subprocess.Popen([sys.executable, "-c", f"print(flush=True)\n{text}"], stdout=subprocess.PIPE,
                             start_new_session=True)
    try:
      assert child.stdout is not None
      assert child.stdout.readline()
      while computing(child.pid) is not wanted: time.sleep(0.01)
    finally:
      child.kill()
      child.communicate()
  assert not computing(child.pid)


SOURCE = '''"""A docstring with 7."""
from typing import Final, Literal
LIMIT: Final = 7
KIND = Literal["a", 3]


class Thing:
  """And 8."""
  size: int = 3

  def method(self, x: "int" = 4, *, hint: str = "none") -> bool:
    if x > LIMIT: raise ValueError(f"{x} is above {LIMIT + 1}")
    self.size = x + 1
    print("text", "more")
    for k in range(x):
      if k == 2: continue
    return x in (1, 2) and not [y for y in (x,) if y != "name"]
'''


def test_what_is_changed(tmp_path: Path) -> None:
  (tmp_path / "thing.py").write_text(SOURCE)
  found = [
    (p.mutant.line, p.mutant.function, p.mutant.change) for p in File(tmp_path / "thing.py", "tinyhw.thing").places
  ]
  assert found == [
    (3, "<module>", "7 becomes 8"),
    (9, "Thing", "3 becomes 4"),
    (11, "Thing.method", "4 becomes 5"),
    (12, "Thing.method", "condition negated"),
    (12, "Thing.method", "Gt becomes GtE"),
    (12, "Thing.method", "statement dropped"),
    (13, "Thing.method", "statement dropped"),
    (13, "Thing.method", "Add becomes Sub"),
    (13, "Thing.method", "1 becomes 2"),
    (14, "Thing.method", "statement dropped"),
    (16, "Thing.method", "condition negated"),
    (16, "Thing.method", "Eq becomes NotEq"),
    (16, "Thing.method", "2 becomes 3"),
    (16, "Thing.method", "statement dropped"),
    (17, "Thing.method", "and and or swapped"),
    (17, "Thing.method", "In becomes NotIn"),
    (17, "Thing.method", "1 becomes 2"),
    (17, "Thing.method", "2 becomes 3"),
    (17, "Thing.method", "Not dropped"),
    (17, "Thing.method", "filter negated"),
    (17, "Thing.method", "NotEq becomes Eq"),
    (17, "Thing.method", "'name' becomes 'name!'"),
  ]


def test_each_change_compiles_and_is_one(tmp_path: Path) -> None:
  (tmp_path / "thing.py").write_text(SOURCE)
  file = File(tmp_path / "thing.py", "tinyhw.thing")
  codes = [content(file.code(p.mutant.number)) for p in file.places]
  assert len(set(codes)) == len(codes) and content(file.code()) not in codes


def test_a_sample_outlives_edits(tmp_path: Path) -> None:
  """Lines put in elsewhere draw no other changes."""
  (tmp_path / "thing.py").write_text(SOURCE)
  before = [p.name for p in sample(File(tmp_path / "thing.py", "tinyhw.thing").places, 8, 3)]
  (tmp_path / "thing.py").write_text("\n\n" + SOURCE.replace("print", "value = 1\n    print"))
  after = [p.name for p in sample(File(tmp_path / "thing.py", "tinyhw.thing").places, 8, 3)]
  assert len(set(before) & set(after)) >= 7
  assert before != [p.name for p in sample(File(tmp_path / "thing.py", "tinyhw.thing").places, 8, 4)]


def test_lines_that_no_test_executes() -> None:
  """Those of functions, once each; a line that one test reaches is none of them."""
  known, found = Map(), [p for p in places("core") if p.mutant.module == "core.locks"]
  lines = [p.mutant.line for p in unreached("core", found, known)]
  assert lines == sorted({*lines}) and len(lines) > 2
  known.tests["test"] = Traced(0.1, True, {"tinyhw/core/locks.py": {lines[1]}})
  left = [p.mutant.line for p in unreached("core", found, known)]
  assert lines[1] not in left and left[0] == lines[0] and {*left} < {*lines}


def test_who_names_a_table_is_asked_first() -> None:
  """Of all tests that load it: also who names what is made of it, however long it takes."""
  known, file = Map(), "tests/emulator/ptx/test_limits.py::"
  for name, seconds in (("answers_are_opencls", 0.01), ("tables_of_matrices", 4.0), ("targets_that_there_are", 5.0)):
    known.tests[f"{file}test_{name}"] = Traced(seconds, True)
  quoting = "tests/emulator/ptx/test_registers.py::test_values"
  known.tests[quoting] = Traced(3.0, True)
  chooser = Chooser("ptx", known, 9.5)
  row = next(p for p in places("ptx") if p.mutant.source.startswith('"%lanemask_gt"'))
  assert quoting in [t for t, _ in chooser.of(row)[0][:2]]  # its file has the row's texts
  for module, line, first in (("tensorcore.sparse", "CHUNK: Final", "tables_of_matrices"),
                              ("module.targets", "_PLAIN: Final", "targets_that_there_are")):
    place = next(p for p in places("ptx") if p.mutant.module == f"emulator.ptx.{module}"
                 and p.mutant.source.startswith(line))
    assert chooser.of(place)[0][0][0] == f"{file}test_{first}"


def test_rooms_have_files_and_tests_and_every_rule_of_what_changes_nothing_fits_something() -> None:
  found: dict[tuple[str, str], set[tuple[str, str]]] = {}  # module and function -> source lines and changes
  for room in rooms.ROOMS:
    there = places(room)
    assert there and rooms.test_files(room), room
    assert all((rooms.ROOT / t).exists() for t in rooms.test_files(room))
    assert len({p.name for p in there}) == len(there), "each change has a name of its own"
    for module, function, *change in (p.mutant.key for p in there):
      found.setdefault((module, function), set()).add((change[0], change[1]))

  names = {".".join(f): f for f in found}

  def used(rule: Rule) -> bool:
    fits = re.compile(rule.function).fullmatch
    where = [f for name, f in names.items() if fits(name)]
    return any(rule.fits(*f, *change) for f in where for change in found[f])
  assert [r for r in RULES if not used(r)] == []
