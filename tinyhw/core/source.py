"""Where machine code comes from: lines of source files, inlined calls, variables. What debug information says, as data.

`wire/lines.py` reads it out of code objects; the debugger, the report, the checks and faults show it. Readers may ask
from several threads.

This is the one interface for where code comes from. `wire/lines.py` and `wire/locations.py` answer
from DWARF, lazily, and damage reads as unknown. The debugger, the report and the checks are handed
it.
"""
from __future__ import annotations

import hashlib
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

_TEXT_LIMIT: Final = 16 << 20  # bytes of a source file that is read
DATA_LIMIT: Final = 1 << 16  # bytes of a variable that is shown


@dataclass(frozen=True)
class Spot:
  """A place in a source file. `line` is 0 where the compiler says that code belongs to none, or does not say.

  `function` is the function that the place is in, `inlined` whether it was inlined there into the spot behind it.
  `digest` is the MD5 of the file, where the compiler noted it.
  """
  file: str
  line: int
  column: int = 0
  function: str = ""
  inlined: bool = False
  digest: bytes | None = None

  def __str__(self) -> str: return f"{os.path.basename(self.file) or '?'}:{self.line or '?'}"

  @property
  def text(self) -> str | None:
    """The line as it is written, without the white space around it; None where its file is not to be found."""
    lines = contents(self.file, self.digest)
    return lines[self.line - 1].strip() if lines is not None and 0 < self.line <= len(lines) else None

  def told(self) -> str:
    """"bugs.c:5: out[i] = x;", or the place alone."""
    text = self.text
    return f"{self}: {text}" if text else str(self)


def contents(file: str, digest: bytes | None = None) -> tuple[str, ...] | None:
  """The lines of a source file: at its path, or of that name in the current folder. None where there is none, or only
  another one than was compiled.
  """
  for path in dict.fromkeys((file, os.path.basename(file))):
    try: found = os.stat(path)
    except (OSError, ValueError): continue
    if not stat.S_ISREG(found.st_mode) or found.st_size > _TEXT_LIMIT: continue
    lines = _read(path, found.st_mtime_ns, found.st_size, digest)
    if lines is not None: return lines
  return None


@lru_cache(maxsize=64)
def _read(path: str, changed: int, size: int, digest: bytes | None) -> tuple[str, ...] | None:
  """The lines of a file as it is now (`changed` and `size` make it another entry of the cache)."""
  try: data = Path(path).read_bytes()
  except OSError: return None
  if digest is not None and hashlib.md5(data, usedforsecurity=False).digest() != digest: return None
  return tuple(data.decode("utf-8", "replace").split("\n"))


@dataclass(frozen=True)
class Part:
  """Where some bytes of a variable are.

  `kind` is "v" or "s" (a register's low bytes), "private" (the lane's scratch memory, at `offset` from the value of
  SGPR `number`), "memory" (global memory, at the address `offset`), "const" (`data`), or "lost" (nowhere any more).
  """
  kind: str
  size: int
  number: int = 0
  offset: int = 0
  data: bytes = b""


@dataclass(frozen=True)
class Variable:
  """A variable that can be named at some PC. `parts` are its bytes, in order; where it has none, `trouble` says why.

  `kind`, `size` and `count` are those of the type's elements: "b", "i", "u", "f" (bool, signed, unsigned, float), "*"
  for pointers, "s" for what is shown as bytes. `parameter` says whether it is one of the function's parameters.
  """
  name: str
  type: str
  kind: str
  size: int
  count: int = 1
  parameter: bool = False
  parts: tuple[Part, ...] = ()
  trouble: str = ""

  @property
  def nbytes(self) -> int: return self.size * self.count


class Source(ABC):
  """What debug information says of code, by PC."""

  @abstractmethod
  def chain(self, pc: int) -> tuple[Spot, ...]:
    """The place of an instruction, then the calls by which it was inlined there, the latest first. Empty if unknown."""

  @abstractmethod
  def starts(self, pc: int) -> bool:
    """Whether an instruction is the first of a statement: where a step by lines stands."""

  @abstractmethod
  def files(self) -> tuple[str, ...]:
    """Every file that some code comes from."""

  @abstractmethod
  def addresses(self, file: str, line: int) -> tuple[int, tuple[int, ...]]:
    """(the first line from `line` on that has code, where it starts: once in each function that it is part of).

    `file` is one of `files`. (0, ()) where no later line has code.
    """

  @abstractmethod
  def variables(self, pc: int) -> tuple[Variable, ...]:
    """The variables that can be named at an instruction, innermost scope first."""

  def spot(self, pc: int) -> Spot | None:
    """The place of an instruction, where its line is known."""
    found = self.chain(pc)
    return found[0] if found and found[0].line else None


class Sources(Source):
  """Several sources, each for the code at [start, end), as one."""

  def __init__(self, parts: Iterable[tuple[int, int, Source]]) -> None:
    self._parts = list(parts)

  def _at(self, pc: int) -> tuple[int, Source] | None:
    return next(((start, s) for start, end, s in self._parts if start <= pc < end), None)

  def chain(self, pc: int) -> tuple[Spot, ...]:
    found = self._at(pc)
    return () if found is None else found[1].chain(pc - found[0])

  def starts(self, pc: int) -> bool:
    found = self._at(pc)
    return found is not None and found[1].starts(pc - found[0])

  def files(self) -> tuple[str, ...]:
    return tuple(dict.fromkeys(file for _, _, s in self._parts for file in s.files()))

  def addresses(self, file: str, line: int) -> tuple[int, tuple[int, ...]]:
    found = [(start, *s.addresses(file, line)) for start, _, s in self._parts if file in s.files()]
    nearest = min((at for _, at, _ in found if at), default=0)
    return nearest, tuple(start + a for start, at, starts in found if at == nearest for a in starts)

  def variables(self, pc: int) -> tuple[Variable, ...]:
    found = self._at(pc)
    return () if found is None else found[1].variables(pc - found[0])


def lost(variable: Variable, why: str) -> Variable:
  """The variable without a place, and why."""
  return replace(variable, parts=(), trouble=why)


def passed(variable: Variable, address: int) -> Variable:
  """The variable as it lies in global memory."""
  return replace(variable, parts=(Part("memory", variable.nbytes, offset=address),), trouble="")


def place_of(file: str, known: Iterable[str]) -> list[str]:
  """Those of the known files that a person means by a name: the path, or its end."""
  wanted = file.replace("\\", "/").lstrip("./")
  return [k for k in known if k == file or k.endswith("/" + wanted) or k == wanted]
