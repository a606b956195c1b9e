"""Targets of PTX: those that there are, what runs on which, what instructions ask of a module.

Facts: the PTX ISA manual, 11.1.2 (targets, families), `version target` of the table's rows, and the
targets that instructions are said to be supported on; ptxas confirms all of it.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tinyhw.core.errors import DecodeError, Unsupported
from tinyhw.isa.ptx.forms import Form
from tinyhw.isa.ptx.model import Module

_PLAIN: Final = (10, 11, 12, 13, 20, 21, 30, 32, 35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89)
_OWN: Final = {90: "a", **dict.fromkeys((100, 101, 103, 110, 120, 121), "af")}  # with features of their own, by letter
TARGETS: Final = frozenset({*(f"sm_{n}" for n in (*_PLAIN, *_OWN)),
                            *(f"sm_{n}{letter}" for n, letters in _OWN.items() for letter in letters)})
NEWEST: Final = 9  # the major version that is known
VERSION: Final = "version of PTX"  # what kind of thing is not supported there


def runs(target: str, sm: int) -> bool:
  """Whether a GPU runs PTX for a target: newer ones do; of one with a letter only this very one."""
  number = int(target.rstrip("af").removeprefix("sm_"))
  return number == sm if target[-1] in "af" else number <= sm


def check(module: Module) -> None:
  """Raises Unsupported for a version that is not known, DecodeError for a target that there is not."""
  version, target = f".version {module.version[0]}.{module.version[1]}", module.target[0]
  if module.version[0] > NEWEST:
    raise Unsupported(VERSION, version, where="PTX", hint=f"{NEWEST} is the newest that is known")
  if target not in TARGETS: raise DecodeError(f".target {target}: there is no such target", where="PTX")


def missing(form: Form, module: Module) -> Iterator[str]:
  """What an instruction needs that the module's target or version does not have."""
  row, target = form.row, module.target[0]
  if row.sm > module.sm or row.own and target[-1] not in "af" or row.below and module.sm >= row.below:
    yield f".target sm_{row.sm}{'a' * row.own}, not {target}"
  if row.version > module.version:
    yield f".version {row.version[0]}.{row.version[1]}, not {module.version[0]}.{module.version[1]}"
