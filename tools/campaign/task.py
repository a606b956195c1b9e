"""What is run, and what comes of it; values that go from process to process and from machine to machine."""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

_VARIES: Final = re.compile(r"\b0x[0-9a-fA-F]+\b|\b\d+(\.\d+)?\b")


@dataclass(frozen=True)
class Limits:
  """What a program may take: seconds, KiB and open files of its process; and how often one that died is tried."""
  hang: float = 120.0
  memory: int = 3 << 20
  files: int = 500
  tries: int = 3


@dataclass(frozen=True)
class Task:
  """Programs `first` to `first + count - 1` of a kind. `work` is "module:function": the function is given a program's
  number and the parameters, and says what came of it."""
  number: int
  kind: str
  work: str
  first: int
  count: int = 1
  parameters: Mapping[str, Any] = field(default_factory=dict)
  limits: Limits = Limits()
  environment: Mapping[str, str] = field(default_factory=dict)  # of its process, besides the one that is there

  def function(self) -> Callable[[int, Mapping[str, Any]], Answer]:
    """What runs a program."""
    module, _, name = self.work.partition(":")
    function: Callable[[int, Mapping[str, Any]], Answer] = getattr(import_module(module), name)
    return function


@dataclass(frozen=True)
class Finding:
  """Something wrong: the program that showed it, what it is in words, and what findings of one cause have in common."""
  program: int
  text: str
  cause: str


def cause(text: str) -> str:
  """The first line of a text without the numbers that differ from program to program."""
  return _VARIES.sub("#", text.split("\n")[0])[:200]


@dataclass(frozen=True)
class Answer:
  """What came of one program: how it ended, in a word; rows (JSON values) to keep; and what was wrong."""
  ending: str = "ended"
  rows: list[Any] = field(default_factory=list)
  wrong: list[str] = field(default_factory=list)


@dataclass
class Done:
  """What came of a task. `lost` are programs that have no result: they died as often as they may, or ran too long."""
  endings: Counter[str] = field(default_factory=Counter)
  rows: list[Any] = field(default_factory=list)
  findings: list[Finding] = field(default_factory=list)
  lost: list[tuple[int, str]] = field(default_factory=list)
  seconds: float = 0.0  # of a processor
  wall: float = 0.0
  memory: int = 0  # KiB of the process afterwards
  files: int = 0
  worker: str = ""
  commit: str = ""

  def add(self, other: Done) -> None:
    """The results of another part of the task."""
    self.endings.update(other.endings)
    self.rows += other.rows
    self.findings += other.findings
    self.seconds += other.seconds
    self.memory, self.files = max(self.memory, other.memory), max(self.files, other.files)
