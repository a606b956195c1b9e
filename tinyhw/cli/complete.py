"""What the shell offers behind an option: generations, grades, the kernels of a code object."""
from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import click

from tinyhw.core.errors import Error


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
  return [n for n in names if n.startswith(incomplete)]


def arch(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
  """Names of generations."""
  from tinyhw.arch import DECODED
  return _starting(DECODED, incomplete)


def grade(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
  """The ledger's grades."""
  from tinyhw.tools.ledger.ledger import GRADES
  return _starting(GRADES, incomplete)


def kernel(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
  """Kernels of the code object that the line names already."""
  from tinyhw.wire.codeobject import load
  file = next((word for word in os.environ.get("COMP_WORDS", "").split()[2:] if Path(word).is_file()), None)
  try: return _starting(load(Path(file).read_bytes()).kernels, incomplete) if file else []
  except (OSError, Error): return []
