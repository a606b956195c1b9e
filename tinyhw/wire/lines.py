"""Lines of source files, inlined calls and variables of a code object's instructions, from its DWARF 4 or 5.

Addresses are offsets in the code object's image. LLVM's AMDGPUUsage, "DWARF Debug Information", says what is particular
to AMD GPUs. Nothing is read before somebody asks; what is damaged reads as unknown.
"""
from __future__ import annotations

import os
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from tinyhw.core.source import Source, Spot, Variable
from tinyhw.wire import dwarf
from tinyhw.wire.locations import variable

T = TypeVar("T")
_INLINED: Final = "DW_TAG_inlined_subroutine"
_SCOPES: Final = frozenset({_INLINED, "DW_TAG_lexical_block"})
_NAMED: Final = frozenset({"DW_TAG_variable", "DW_TAG_formal_parameter"})


@dataclass(frozen=True, slots=True)
class _Row:
  """A row of the line table: from `address` on, code of a line."""
  address: int
  file: int
  line: int
  column: int
  stmt: bool
  prologue_end: bool
  end: bool


@dataclass(frozen=True)
class _Unit:
  """A compilation unit: its DIE, its files as (path, MD5)."""
  cu: Any
  files: tuple[tuple[str, bytes | None], ...]


def _undamaged(otherwise: T, read: Callable[..., T], *arguments: object) -> T:
  """What is read; `otherwise` where it is damaged, which may be in any way: the code runs without what describes it."""
  try: return read(*arguments)
  except Exception: return otherwise


class Lines(Source):
  """The debug information of one code object; `data` is its file, `places` where its sections are in the image."""

  def __init__(self, data: bytes, places: Mapping[int, int]) -> None:
    self._data, self._places = data, places
    self._lock = threading.RLock()  # pyelftools keeps one position for all readers
    self._read = False
    self._dwarf: Any = None
    self._units: list[_Unit] = []
    self._rows: list[_Row] = []
    self._of: list[int] = []  # the unit of each row
    self._starts: list[int] = []
    self._functions: list[tuple[int, int, _Unit, Any]] | None = None
    self._chains: dict[int, tuple[Spot, ...]] = {}
    self._variables: dict[int, tuple[Variable, ...]] = {}

  # ---- the line table

  def _load(self) -> None:
    if self._read: return
    self._read = True
    try:
      self._dwarf = dwarf.open_dwarf(self._data, self._places)
      if self._dwarf is None: return
      found: list[tuple[_Row, int]] = []
      for cu in self._dwarf.iter_CUs():
        program = self._dwarf.line_program_for_CU(cu)
        if program is None: continue
        self._units.append(_Unit(cu, _files(cu, program)))
        for sequence in _sequences(program):
          dropped = not sequence[0].address and not self._places  # by the linker: a linked image begins with its header
          if not dropped: found += [(row, len(self._units) - 1) for row in sequence]
      # where one sequence ends another may start: its rows come behind the end
      found.sort(key=lambda f: (f[0].address, not f[0].end))
      self._rows, self._of = [row for row, _ in found], [unit for _, unit in found]
      self._starts = [row.address for row in self._rows]
    except Exception:  # what describes the code may be damaged in any way; the code runs without it
      self._units, self._rows, self._of, self._starts = [], [], [], []

  def _row(self, pc: int) -> int | None:
    """The index of the row for an address."""
    at = bisect_right(self._starts, pc) - 1
    return None if at < 0 or self._rows[at].end else at

  def _spot(self, unit: _Unit, file: int, line: int, column: int) -> Spot:
    path, digest = unit.files[file] if 0 <= file < len(unit.files) else ("", None)
    return Spot(path, line, column, digest=digest)

  def chain(self, pc: int) -> tuple[Spot, ...]:
    with self._lock:
      found = self._chains.get(pc)
      if found is None:
        self._load()
        found = self._chains[pc] = _undamaged((), self._chain, pc)
      return found

  def _chain(self, pc: int) -> tuple[Spot, ...]:
    at = self._row(pc)
    if at is None: return ()
    row, unit = self._rows[at], self._units[self._of[at]]
    spot = self._spot(unit, row.file, row.line, row.column)
    spots = []
    for die in reversed([d for d in self._scopes(pc) if d.tag != "DW_TAG_lexical_block"]):
      name, inlined = dwarf.text_of(dwarf.attribute_of(die, "DW_AT_name")), die.tag == _INLINED
      spots.append(Spot(spot.file, spot.line, spot.column, name, inlined, spot.digest))
      if inlined: spot = self._spot(unit, *(_number(die, f"DW_AT_call_{n}") for n in ("file", "line", "column")))
    return tuple(spots) or (spot,)

  def starts(self, pc: int) -> bool:
    with self._lock:
      self._load()
      at = self._row(pc)
      return at is not None and self._rows[at].address == pc and self._rows[at].stmt and self._rows[at].line > 0

  def files(self) -> tuple[str, ...]:
    with self._lock:
      self._load()
      return tuple(dict.fromkeys(self._units[u].files[r.file][0] for r, u in zip(self._rows, self._of)
                                 if not r.end and 0 <= r.file < len(self._units[u].files)))

  def addresses(self, file: str, line: int) -> tuple[int, tuple[int, ...]]:
    with self._lock:
      self._load()
      nowhere: tuple[int, tuple[int, ...]] = 0, ()
      return _undamaged(nowhere, self._addresses, file, line)

  def _addresses(self, file: str, line: int) -> tuple[int, tuple[int, ...]]:
    rows = [r for r, u in zip(self._rows, self._of)
            if r.stmt and not r.end and r.line >= line and 0 <= r.file < len(self._units[u].files)
            and self._units[u].files[r.file][0] == file]
    if not rows: return 0, ()
    nearest = min(r.line for r in rows)
    first: dict[tuple[int, ...], int] = {}  # by the function, and the calls inlined there, that a row is in
    for row in rows:
      if row.line != nearest: continue
      scopes = [d for d in self._scopes(row.address) if d.tag != "DW_TAG_lexical_block"]
      at = row.address
      if len(scopes) == 1 and _low(scopes[0]) == at: at = self._behind_prologue(at)
      key = tuple(d.offset for d in scopes)
      first[key] = min(at, first.get(key, at))
    return nearest, tuple(sorted(set(first.values())))

  def _behind_prologue(self, at: int) -> int:
    """Where a function's own code begins: variables have their values there."""
    for row in self._rows[bisect_left(self._starts, at):]:
      if row.end and row.address > at: break
      if row.prologue_end: return row.address
    return at

  # ---- functions and scopes

  def _function(self, pc: int) -> tuple[_Unit, Any] | None:
    """The function whose code an address is in, as its DIE."""
    if self._functions is None:
      found = []
      for unit in self._units:
        for die in _functions(unit.cu.get_top_DIE()):
          found += [(lo, hi, unit, die) for lo, hi in self._ranges(unit, die)]
      self._functions = found
    return next(((unit, die) for lo, hi, unit, die in self._functions if lo <= pc < hi), None)

  def _ranges(self, unit: _Unit, die: Any) -> list[tuple[int, int]]:
    """[start, end) of the code of a DIE."""
    low = die.attributes.get("DW_AT_low_pc")
    high = die.attributes.get("DW_AT_high_pc")
    if low is not None and high is not None:
      return [(low.value, high.value if high.form == "DW_FORM_addr" else low.value + high.value)]
    ranges = die.attributes.get("DW_AT_ranges")
    if ranges is None: return []
    out = []
    base = _low(unit.cu.get_top_DIE()) or 0
    for entry in self._dwarf.range_lists().get_range_list_at_offset(ranges.value, unit.cu):
      if not hasattr(entry, "begin_offset"): base = entry.base_address
      elif entry.is_absolute: out.append((entry.begin_offset, entry.end_offset))
      else: out.append((base + entry.begin_offset, base + entry.end_offset))
    return out

  def _scopes(self, pc: int) -> list[Any]:
    """The function of an address, and the blocks and inlined functions around it there, the innermost last."""
    found = self._function(pc)
    if found is None: return []
    unit, die = found
    scopes = [die]
    while True:
      inner = next((c for c in die.iter_children() if c.tag in _SCOPES and
                    any(lo <= pc < hi for lo, hi in self._ranges(unit, c))), None)
      if inner is None: return scopes
      scopes.append(inner)
      die = inner

  # ---- variables

  def variables(self, pc: int) -> tuple[Variable, ...]:
    with self._lock:
      found = self._variables.get(pc)
      if found is None:
        self._load()
        found = self._variables[pc] = _undamaged((), self._visible, pc)
      return found

  def _visible(self, pc: int) -> tuple[Variable, ...]:
    scopes, out = self._scopes(pc), dict[str, Variable]()
    if not scopes: return ()
    for die in reversed(scopes):  # an outer function's variables end where an inlined one begins
      for child in die.iter_children():
        if child.tag in _NAMED:
          made = variable(self._dwarf, child, scopes[0], pc)
          if made.name: out.setdefault(made.name, made)
      if die.tag == _INLINED: break
    return tuple(out.values())


def _files(cu: Any, program: Any) -> tuple[tuple[str, bytes | None], ...]:
  """(path, MD5) of each file of a unit, by the number that rows of its line table use."""
  top = cu.get_top_DIE()
  home = dwarf.text_of(dwarf.attribute_of(top, "DW_AT_comp_dir"))
  version = program.header["version"]
  folders = [f.decode("utf-8", "replace") for f in program.header["include_directory"]]
  if version < 5: folders.insert(0, home)
  out: list[tuple[str, bytes | None]] = [] if version >= 5 else [("", None)]
  raw = program.header["file_names"] if version >= 5 else []
  for k, entry in enumerate(program.header["file_entry"]):
    number = entry.dir_index
    folder = folders[number] if 0 <= number < len(folders) else ""
    digest = raw[k].get("DW_LNCT_MD5") if k < len(raw) else None
    path = os.path.normpath(os.path.join(home, folder, entry.name.decode("utf-8", "replace")))
    out.append((path, bytes(digest) if digest else None))
  return tuple(out)


def _sequences(program: Any) -> Iterator[list[_Row]]:
  """The rows of a line table, those of one stretch of code together."""
  rows: list[_Row] = []
  for entry in program.get_entries():
    s = entry.state
    if s is None: continue
    rows.append(_Row(s.address, s.file, s.line, s.column, s.is_stmt, s.prologue_end, s.end_sequence))
    if s.end_sequence:
      yield rows
      rows = []


def _functions(die: Any) -> Iterator[Any]:
  """The functions with code under a DIE; those of namespaces and classes too."""
  for child in die.iter_children():
    if child.tag == "DW_TAG_subprogram":
      if "DW_AT_low_pc" in child.attributes or "DW_AT_ranges" in child.attributes: yield child
    elif child.tag in {"DW_TAG_namespace", "DW_TAG_module", "DW_TAG_class_type", "DW_TAG_structure_type"}:
      yield from _functions(child)


def _low(die: Any) -> int | None:
  found = die.attributes.get("DW_AT_low_pc")
  return None if found is None else int(found.value)


def _number(die: Any, name: str) -> int:
  found = die.attributes.get(name)
  return 0 if found is None else int(found.value)
