"""gcc's opinion on the methods and queue meta data of `nvclass`: each bit range, offset and value, by name.

A range macro is `hi:lo`, which C reads in `condition ? hi:lo`; so each is asked twice. Arrays are asked for two copies.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from enum import IntEnum
from types import ModuleType
from typing import Any

from tinyhw.core.layout import Method, Packet, Register
from tinyhw.tools.gen import gcc, nvclass

PROBE = """#include <stdio.h>
#define MW(x) x
static void show(const char *n, long long a, long long b) {{ printf("%s %lld %lld\\n", n, a, b); }}
int main(void) {{
{lines}
}}
"""


def ask(text: str, names: Sequence[str], ranges: bool) -> dict[str, tuple[int, int]]:
  """Macro -> (hi, lo) of a range, or its value twice; a name may have an argument."""
  lines = [f'  show("{n}", (1 ? {n}), (0 ? {n}));' if ranges else f'  show("{n}", {n}, {n});' for n in names]
  body = "\n".join(line for line in text.splitlines() if line.lstrip().startswith("#define"))
  out = gcc.compile_and_run(body + "\n" + PROBE.format(lines="\n".join(lines)), ["-w"])
  return {name: (int(a), int(b)) for name, a, b in (line.split() for line in out.splitlines())}


def macros(text: str, prefix: str) -> tuple[list[str], list[str]]:
  """(range macros, value macros) of a class, arrays as NAME(0) and NAME(1); read more simply than in the generator."""
  ranges: list[str] = []
  values: list[str] = []
  for line in text.splitlines():
    words = line.split(None, 2)
    if len(words) < 3 or words[0] != "#define" or not words[1].startswith(prefix): continue
    name, _, argument = words[1].partition("(")
    body = words[2].split("//")[0]
    names = [f"{name}(0)", f"{name}(1)"] if argument else [name]
    if ":" in body: ranges += names
    elif body.strip().strip("()")[:1].isdigit() or argument: values += names
  return ranges, values


def claimed(cls: type[Register] | type[Packet], prefix: str) -> Iterator[tuple[str, tuple[int, int]]]:
  """(macro, (hi, lo)) of each field of a class, and of each further use of its bits."""
  for f in cls.FIELDS: yield prefix + f.name, (f.lo + f.width - 1, f.lo)
  for name, value in vars(cls).items():
    if isinstance(value, property) and value.__doc__ and value.__doc__.startswith("Another use of bits "):
      hi, _, lo = value.__doc__.removeprefix("Another use of bits ").rstrip(".").partition(":")
      yield prefix + name, (int(hi), int(lo))


def spellings(name: str) -> list[str]:
  """What a name of ours may be in C: Python wants no digit first, no keyword, and some names are taken."""
  return [name, name.removesuffix("_"), name.removeprefix("_")]


def enumerations(module: ModuleType) -> Iterator[tuple[list[str], int]]:
  """(possible macros, value) of each named value."""
  for kind, cls in vars(module).items():
    if not (isinstance(cls, type) and issubclass(cls, IntEnum) and cls is not IntEnum): continue
    for member, value in cls.__members__.items():
      yield [f"{kind.rstrip('_')}_{m}" for m in spellings(member)], int(value)


def problems_of(ours: dict[str, tuple[int, int]], theirs: dict[str, tuple[int, int]], prefix: str) -> list[str]:
  """What C has and we have not, or have elsewhere."""
  found = []
  for macro, place in theirs.items():
    name = macro.removeprefix(prefix)
    mine = next((ours[n] for n in (name, f"{name}_") if n in ours), None)
    if mine != place: found.append(f"{macro}: {mine} here, {place} in C")
  return found


def reports(header: nvclass.Header | nvclass.MetaData, text: str) -> Iterator[tuple[str, list[str]]]:
  """(what was compared, what did not agree) of one header."""
  module: Any = importlib.import_module(f"tinyhw.autogen.{header.module}")
  ranges, values = macros(text, header.prefix)
  ours: dict[str, tuple[int, int]] = {}
  if isinstance(header, nvclass.MetaData):
    ranges = [n for n in ranges if any(n.startswith(f"{header.prefix}QMD{v}_") for v in header.versions)]
    for cls in module.VERSIONS: ours.update(claimed(cls, f"{cls.__name__}_"))
    theirs = ask(text, ranges, True)
    arrays = {n: p for n, p in theirs.items() if n.endswith(")")}
    plain = {n: p for n, p in theirs.items() if n not in arrays}
    known = {(n[:len(header.prefix) + 10], p) for n, p in plain.items()}
    # An array whose copies stand at the places of fields has these for its names.
    asked = {n.replace("(", "_").rstrip(")"): p for n, p in arrays.items()
             if (n[:len(header.prefix) + 10], p) not in known}
    yield (f"{len(plain)} fields and {len(asked)} copies of arrays against gcc",
           problems_of(ours, plain | asked, header.prefix))
    return
  methods: tuple[type[Method], ...] = module.METHODS
  for cls in (*methods, *(vars(module)[f] for f in header.formats)): ours.update(claimed(cls, f"{cls.__name__}_"))
  wanted = [n for n in ranges if not header.formats or not n.removeprefix(header.prefix).startswith("DMA_")
            or any(n.removeprefix(header.prefix).startswith(f"{f}_") for f in header.formats)]
  theirs = ask(text, wanted, True)
  yield f"{len(theirs)} fields against gcc", problems_of(ours, theirs, header.prefix)
  told = {n: v for n, (v, _) in ask(text, values, False).items()}
  problems = []
  for method in methods:
    name = f"{header.prefix}{method.__name__}"
    places = [told.get(name), None] if not method.APART else [told.get(f"{name}(0)"), told.get(f"{name}(1)")]
    mine = [method.OFFSET, method.OFFSET + method.APART if method.APART else None]
    if places != mine: problems.append(f"{name}: {mine} here, {places} in C")
  yield f"{len(methods)} offsets against gcc", problems
  rows = list(enumerations(module))
  yield (f"{len(rows)} values against gcc",
         [f"{names[0]}: {value} here" for names, value in rows
          if value not in {told.get(header.prefix + n) for n in names}])
