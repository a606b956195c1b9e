"""gcc's opinion on RM's and UVM's facts: sizes and offsets of every struct, values, ranges of bits, request numbers."""

from __future__ import annotations

import ctypes
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from tinyhw.tools.gen import gcc, nvrm
from tinyhw.tools.gen.sources import Sources

MADE_HERE = {"VERSION"}  # no macros of the headers


def named(name: str, text: str) -> bool:
  """Whether C knows a type by this name."""
  return re.search(rf"\}}[^;{{}}]*\b{name}\s*;|typedef\s+\w+\s+{name}\s*;", text) is not None


def paths(cls: Any, text: str, inner: str = "") -> Iterator[tuple[str, int, int]]:
  """(designator, offset, size) of each field, and of those within members whose type has no name."""
  anonymous = getattr(cls, "_anonymous_", ())
  for row in cls._fields_:
    if row[0].startswith("PADDING_") or len(row) > 2: continue
    place, name = getattr(cls, row[0]), row[0][:-1] if row[0] in ("from_", "class_") else row[0]
    element, at = row[1], f"{inner}{name}"
    if row[0] not in anonymous:
      yield at + ("" if place.size else "[]"), place.offset, place.size
    while hasattr(element, "_length_"): element, at = element._type_, f"{at}[0]"
    if isinstance(element, type) and issubclass(element, (ctypes.Structure, ctypes.Union)) and place.size:
      if not named(element.__name__, text) or row[0] in anonymous:
        prefix = inner if row[0] in anonymous else f"{at}."
        for designator, offset, size in paths(element, text, prefix): yield designator, place.offset + offset, size


def layouts(module: ModuleType, headers: tuple[str, ...], sources: Sources) -> tuple[str, list[str]]:
  files = [sources.find(n) for n in headers]
  flags = nvrm.flags_of(files[0])
  root = Path(nvrm.folder_of(files[0]))
  everything = "\n".join(p.read_text(errors="replace") for folder in nvrm.INCLUDES[:-1]
                         for p in sorted((root / folder).rglob("*.h")))
  ours = {n: c for n, c in vars(module).items() if isinstance(c, type) and c.__module__ == module.__name__
          and issubclass(c, (ctypes.Structure, ctypes.Union))}
  names = {n: c for n, c in ours.items() if named(n, everything)}
  wanted = {n: list(paths(c, everything)) for n, c in names.items()}
  theirs = gcc.layouts({n: [f for f, _, _ in rows] for n, rows in wanted.items()}, nvrm.include(headers), flags)
  problems = [f"{n}: {ctypes.sizeof(c)} bytes here, {theirs[n][0]} in C" for n, c in names.items()
              if ctypes.sizeof(c) != theirs[n][0]]
  problems += [f"{n}.{f}: {(o, s)} here, {theirs[n][1][f]} in C" for n, rows in wanted.items() for f, o, s in rows
               if theirs[n][1][f] != (o, s)]
  count = sum(len(r) for r in wanted.values())
  told = f"{len(names)} of {len(ours)} structs ({count} fields) against gcc; the others are members without a name"
  return told, problems


def values(module: ModuleType, headers: tuple[str, ...], sources: Sources) -> Iterator[tuple[str, list[str]]]:
  files = [sources.find(n) for n in headers]
  includes, flags = nvrm.include(headers), nvrm.flags_of(files[0])
  ours = {n: v for n, v in vars(module).items() if type(v) is int and not n.startswith("_") and n not in MADE_HERE}
  theirs = gcc.macro_values(list(ours), includes, flags)
  yield (f"{len(ours)} constants against gcc",
         [f"{n}: {v:#x} here, {theirs.get(n, 'nothing')} in C" for n, v in ours.items() if theirs.get(n) != v])
  pairs = {n: v for n, v in vars(module).items() if type(v) is tuple and len(v) == 2 and type(v[0]) is int}
  if pairs:
    lines = "\n".join(f'  printf("{n} %d %d\\n", (1 ? {n}), (0 ? {n}));' for n in pairs)
    text = f"#include <stdio.h>\n#undef DRF_DEF\n{includes}int main(void) {{\n{lines}\n}}\n"
    out = [line.split() for line in gcc.compile_and_run(text, flags).splitlines()]
    rows = {n: (int(a), int(b)) for n, a, b in out}
    yield (f"{len(pairs)} ranges of bits against gcc",
           [f"{n}: {v} here, {rows[n]} in C" for n, v in pairs.items() if rows[n] != v])


def reports(name: str, sources: Sources) -> Iterator[tuple[str, list[str]]]:
  """(what was compared, what differs) of a family of `nvrm`."""
  module = importlib.import_module(f"tinyhw.autogen.{name}")
  if name == "nv_rm_chips":
    ours: dict[str, int] = {r.name: n for n, r in module.RESOURCES.items()}
    theirs = nvrm.class_numbers(sources)
    yield f"{len(ours)} classes against gcc", [n for n, v in ours.items() if theirs[n] != v]
    return
  headers = {"nv_rm": nvrm.RM_HEADERS, "nv_rm_alloc": (*nvrm.ALLOC_HEADERS, nvrm.CLASSES),
             "nv_rm_control": nvrm.CONTROL_HEADERS, "nv_rm_status": (f"{nvrm.SDK}/nvstatus.h", *nvrm.STATUS_HEADERS),
             "nv_uvm": nvrm.UVM_HEADERS}[name]
  yield from values(module, headers, sources)
  if name != "nv_rm_status": yield layouts(module, headers, sources)
  if name == "nv_rm":
    numbers = nvrm.requests(sources)
    made = {f"{call.name}:{call.struct.__name__}": n for n, call in module.IOCTLS.items()}
    yield f"{len(made)} request numbers against gcc", [n for n, v in numbers.items() if made.get(n) != v]
