"""AMD opcodes from Mesa's shader compiler: a second source, independent of LLVM, that tests hold the tables against.

Only facts are taken: for each hardware instruction its name, its encoding and its opcode on gfx9, gfx11 and gfx12.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tinyhw.tools.gen.family import Family
from tinyhw.tools.gen.sources import Origin, Sources, head

NAME = "src/amd/compiler/aco_opcodes.py"
MESA = Origin("Mesa", "25.0.7 (Debian mesa)", "MIT")
GENERATIONS = ("gfx9", "gfx11", "gfx12")


def facts(source: str) -> Iterator[tuple[str, str, tuple[int, ...]]]:
  """(encoding, name, opcode of each generation or -1) of the instructions of Mesa's table, which is a program."""
  space: dict[str, Any] = {"__name__": "aco_opcodes"}
  exec(compile(source, NAME, "exec"), space)
  for name, row in space["instructions"].items():
    opcodes = tuple(getattr(row.op, g) for g in GENERATIONS)
    if not row.format.name.startswith("PSEUDO") and max(opcodes) >= 0: yield row.format.name, name, opcodes


def generate(sources: Sources) -> str:
  """The module: encoding -> lines of `name gfx9 gfx11 gfx12`, opcodes in hex."""
  file = sources.find(NAME)
  families: dict[str, list[str]] = {}
  for family, name, opcodes in facts(file.text):
    shown = " ".join(f"{n:x}" if n >= 0 else "-" for n in opcodes)
    families.setdefault(family, []).append(f"{name} {shown}")
  lines = [head("AMD opcodes as Mesa knows them.", [(MESA, file)], "tools/gen/aco.py"), ""]
  lines += ["# Lines of `name gfx9 gfx11 gfx12`: opcodes in hex, `-` where the generation lacks the instruction.",
            "OPCODES = {"]
  for family in sorted(families):
    lines += [f'  "{family}": """', *sorted(families[family]), '""",']
  return "\n".join([*lines, "}", ""])


FAMILY = Family("aco", "aco_opcodes", "AMD opcodes of Mesa's shader compiler, a second source", (NAME,), generate)
