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
  from tinyhw.drive.nv.bare import is_ptx
  from tinyhw.isa.ptx import parse
  from tinyhw.kernels.sources import source_of
  from tinyhw.wire.codeobject import load
  file = next((word for word in os.environ.get("COMP_WORDS", "").split()[2:] if Path(word).is_file()), None)
  if file is None: return []
  try:
    binary, source = Path(file).read_bytes(), source_of(Path(file))
    if source is not None: names: Iterable[str] = source.kernels
    else: names = parse(binary).entries if is_ptx(binary) else load(binary).kernels
    return _starting(names, incomplete)
  except (OSError, Error): return []


def until(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
  """What `tinyhw bisect` can look for."""
  from tinyhw.queues.lint import RULES
  return _starting(["hang", "fault", "finding", "difference", "wrong:", "left:", *(f"finding:{n}" for n in RULES)],
                   incomplete)


def vendor(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
  """Vendors that `tinyhw bringup` has a ladder for."""
  return _starting(["AMD", "NV"], incomplete.upper())


def rung(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
  """Rungs and branches of the ladder that the line names."""
  from tinyhw.cli.benches import VENDORS, ladder_of
  named = str(ctx.params.get("device") or "AMD").upper()
  ladder = ladder_of(named if named in VENDORS else "AMD")
  return _starting([*ladder.branches, *(r.name for r in ladder)], incomplete)
